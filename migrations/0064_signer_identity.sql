-- Two signers may share an e-mail address, so each has an id of its own. Signers of earlier releases have
-- none: theirs is derived from envelope and position.
alter table signer add column signer_id text;
-- Whether a signer who completed the form executed a signature, or was asked for none.
alter table signer add column execution text;
