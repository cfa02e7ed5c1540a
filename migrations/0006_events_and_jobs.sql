-- The outbox: events and jobs commit with the change that caused them.

create table event (
    bucket bigint not null,
    event_id text not null,
    org_id text not null,
    envelope_id text,
    event_type text not null,
    -- The delivered body, byte for byte.
    body text not null,
    created_at text not null,
    primary key (bucket, event_id)
);
create index event_by_org on event (bucket, org_id, event_id);
create index event_by_envelope on event (bucket, envelope_id, event_id);

-- Work to be done after a commit. A worker leases a row, does the work and
-- settles it with the epoch it was given; a late worker settles nothing.
create table job (
    bucket bigint not null,
    job_id text not null,
    org_id text not null,
    kind text not null,
    -- At most one unfinished job of a kind and key.
    dedup_key text,
    payload text not null,
    state text not null,
    run_at text not null,
    attempts bigint not null,
    lease_epoch bigint not null,
    last_error text,
    created_at text not null,
    primary key (bucket, job_id)
);
create index job_due on job (state, run_at);
create unique index job_dedup on job (bucket, kind, dedup_key);
create index job_by_org on job (bucket, org_id);
