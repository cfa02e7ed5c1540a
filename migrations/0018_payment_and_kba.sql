-- Payments at their providers, and what identity questions came to.

-- Which instance collects a payment, the provider's id for it, and how far it is.
alter table payment add column instance text;
alter table payment add column intent_id text;
-- How often it was begun, and when last: one that the provider has cancelled is begun again.
alter table payment add column begun bigint not null default 0;
alter table payment add column begun_at text;
-- The envelope asked for it itself; else its organization always does.
alter table payment add column own bigint not null default 0;
alter table payment add column looked_at text;
alter table payment add column paid_at text;
create index payment_by_intent on payment (instance, intent_id);
create index payment_waiting on payment (looked_at)
    where intent_id is not null and paid_at is null;

-- Who is asked about their identity before the document opens.
alter table signer add column challenged bigint not null default 0;

-- One attempt of a signer to prove who they are. What the signer enters is kept
-- nowhere; what the provider needs on the next call, and the questions, are sealed
-- and go with the session's end.
create table kba_session (
    bucket bigint not null,
    kba_id text not null,
    org_id text not null,
    envelope_id text not null,
    position bigint not null,
    email text not null,
    instance text not null,
    -- open, ended (nothing was found out), passed, failed or unavailable.
    status text not null,
    -- Of an open one: starting, code, questions or answering.
    step text not null,
    sealed text,
    provider_session_id text,
    ip_address text,
    price_cents bigint not null,
    started_at text not null,
    expires_at text not null,
    ended_at text,
    primary key (bucket, kba_id)
);
create index kba_session_by_org on kba_session (bucket, org_id, ended_at);
create index kba_session_by_envelope on kba_session (bucket, envelope_id, kba_id);
create index kba_session_open on kba_session (expires_at) where status = 'open';

-- A signer's first pass in a month of an organization: that one is billed.
create table kba_billed (
    bucket bigint not null,
    org_id text not null,
    -- YYYY-MM, UTC.
    month text not null,
    email text not null,
    kba_id text not null,
    primary key (bucket, org_id, month, email)
);
create index kba_billed_by_org on kba_billed (bucket, org_id);

-- The development sandbox's payments.
create table sandbox_intent (
    bucket bigint not null,
    intent_id text not null,
    org_id text not null,
    -- What was asked for; the same again is the same payment.
    payment_id text not null,
    amount bigint not null,
    currency text not null,
    status text not null,
    created_at text not null,
    primary key (bucket, intent_id)
);
create unique index sandbox_intent_by_payment on sandbox_intent (bucket, org_id, payment_id);
