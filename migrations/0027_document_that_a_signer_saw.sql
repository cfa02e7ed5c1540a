-- SHA-256 of the document that a signer had before them when they signed, with the entries of
-- earlier signers.
alter table room_submitter add column shown_sha256 text;
