-- Outcome of the newest mail or text message to a signer: when it was accepted or failed, and why it failed.
alter table signer add column noticed_at text;
alter table signer add column notice_failure text;
