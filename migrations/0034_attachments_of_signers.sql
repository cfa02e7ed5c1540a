-- Files that a signer attached, by the name of the field: JSON with storage key, SHA-256, file name,
-- content type and size in bytes.
alter table room_submitter add column attachments text;
