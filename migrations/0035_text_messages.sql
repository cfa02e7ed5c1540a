-- Mobile number of a signer in E.164, and how the signer is told: `email`, `sms` or `email_and_sms`.
alter table signer add column phone text;
alter table signer add column notify_by text not null default 'email';
