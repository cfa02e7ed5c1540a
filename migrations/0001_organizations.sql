-- Tenants, their API keys, and what has been applied to this database.
--
-- One text for SQLite and PostgreSQL: ids, JSON and times are TEXT (times with
-- a fixed width, so that their order is the order of texts), numbers and flags
-- are BIGINT. Every tenant table starts its key with `bucket`, which is a hash
-- of the organization modulo 64: the same schema then distributes over shards.

create table organization (
    bucket bigint not null,
    org_id text not null,
    name text not null,
    settings text not null,
    created_at text not null,
    primary key (bucket, org_id)
);

-- Looked up by the hash of the key before the organization is known.
create table api_key (
    key_hash text not null,
    bucket bigint not null,
    org_id text not null,
    key_id text not null,
    name text,
    scopes text not null,
    rate_limit_rpm bigint not null,
    owner_email text,
    active bigint not null,
    created_at text not null,
    last_used_at text,
    primary key (key_hash)
);
create unique index api_key_by_id on api_key (key_id);
create index api_key_by_org on api_key (org_id);
