-- How the installation called itself when an envelope was to be vaulted: the
-- name stands in the certificate and the custody record, and a pipeline that is
-- run again after the setting was changed has to make the same files. Intents
-- from before this take the present name.
alter table vault_intent add column issuer text;
