-- Vault-in, vault-out, and the links to stored files.

-- The decision to vault an envelope, made once. `frozen_at` is the only time
-- the stored files may contain, so that a retry gives the same bytes.
create table vault_intent (
    bucket bigint not null,
    envelope_id text not null,
    org_id text not null,
    trigger_name text not null,
    requested_by text not null,
    frozen_at text not null,
    -- The last ledger entry the custody record tells of.
    ledger_sequence bigint not null,
    finished_at text,
    last_error text,
    primary key (bucket, envelope_id)
);
create index vault_intent_by_org on vault_intent (bucket, org_id);

-- The record as it was evaluated for the certificate: what a later
-- re-evaluation starts from.
create table evaluation (
    bucket bigint not null,
    envelope_id text not null,
    org_id text not null,
    facts text not null,
    component text not null,
    evaluated_at text not null,
    primary key (bucket, envelope_id)
);
create index evaluation_by_org on evaluation (bucket, org_id);

create table vault_release (
    bucket bigint not null,
    envelope_id text not null,
    org_id text not null,
    released_at text not null,
    -- The release form as it was signed.
    form text not null,
    primary key (bucket, envelope_id)
);
create index vault_release_by_org on vault_release (bucket, org_id);

create table download_link (
    bucket bigint not null,
    token_hash text not null,
    org_id text not null,
    envelope_id text not null,
    -- `authoritative`, `copy`, `archive`, `certificate` or `custody_record`.
    file text not null,
    filename text not null,
    single_use bigint not null,
    created_at text not null,
    expires_at text not null,
    used_at text,
    primary key (bucket, token_hash)
);
create index download_link_by_org on download_link (bucket, org_id);
