-- What a signer enters before the document opens: `none`, `email_code` or `passcode`.
alter table signer add column access text not null default 'none';
-- The sender's passcode, encrypted.
alter table signer add column passcode text;

-- Codes and attempts of signers. One row for each signer who has asked for a code or entered one.
create table access_code (
    bucket bigint not null,
    envelope_id text not null,
    position bigint not null,
    org_id text not null,
    -- The signer at that time: another person may sign in their place later.
    email text not null,
    -- The code that was mailed last, encrypted.
    code text,
    sent_at text,
    -- Codes since `first_sent_at`.
    sends bigint not null default 0,
    first_sent_at text,
    -- Wrong entries since the last right one or the last lock.
    failures bigint not null default 0,
    -- Locks since the last right entry: each one is longer.
    locks bigint not null default 0,
    locked_until text,
    primary key (bucket, envelope_id, position)
);
create index access_code_by_org on access_code (bucket, org_id);
