-- Credentials, request counting, idempotency, payments and expiry.

-- A key is looked up by the first half of its hash and then compared whole in
-- constant time.
alter table api_key add column hash_prefix text not null default '';
update api_key set hash_prefix = substr(key_hash, 1, 32);
create index api_key_by_prefix on api_key (hash_prefix);
-- Counts the changes of a key's record, so that a remembered one can be confirmed.
alter table api_key add column revision bigint not null default 0;

-- The running window of a key: how many of its requests the nodes have leased.
create table rate_window (
    bucket bigint not null,
    key_id text not null,
    org_id text not null,
    started_at text not null,
    leased bigint not null,
    primary key (bucket, key_id)
);
create index rate_window_by_org on rate_window (bucket, org_id);

-- One row for each Idempotency-Key of a caller. `status` and `body` are written
-- in the transaction of the change they answer.
create table idempotency (
    bucket bigint not null,
    org_id text not null,
    actor text not null,
    idempotency_key text not null,
    fingerprint text not null,
    -- Which attempt holds the row; a late one settles nothing.
    claim text not null,
    lease_until text not null,
    status bigint,
    body text,
    created_at text not null,
    primary key (bucket, org_id, actor, idempotency_key)
);
create index idempotency_by_age on idempotency (created_at);

-- What an envelope's payer owes. The envelope carries the status, because the
-- lifecycle rules ask for it.
create table payment (
    bucket bigint not null,
    envelope_id text not null,
    payment_id text not null,
    org_id text not null,
    amount_cents bigint not null,
    currency text not null,
    -- A role name, or `first`.
    payer text not null,
    connected_account text,
    platform_fee_cents bigint,
    created_at text not null,
    primary key (bucket, envelope_id)
);
create index payment_by_org on payment (bucket, org_id);
alter table envelope add column payment_status text;

create index envelope_expiring on envelope (expires_at)
    where status in ('pending', 'uploaded', 'preparing', 'sent', 'viewed');
