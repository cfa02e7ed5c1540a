-- Language that the sender chose for a signer; null: the browser's or the organization's.
alter table signer add column locale text;
-- Consent text that a submitter agreed to: version, language and SHA-256.
alter table room_submitter add column consent_version text;
alter table room_submitter add column consent_locale text;
alter table room_submitter add column consent_sha256 text;
