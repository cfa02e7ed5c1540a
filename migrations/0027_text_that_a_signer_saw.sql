-- SHA-256 of the text of the pages that a signer had before them when they signed.
alter table room_submitter add column shown_text_sha256 text;
