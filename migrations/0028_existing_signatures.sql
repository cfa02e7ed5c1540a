-- Signatures that the document of an envelope had before it was vaulted, as a JSON list; null when
-- it had none.
alter table envelope add column existing_signatures text;
