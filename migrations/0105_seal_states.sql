-- What the seal of each authoritative copy proves, and the updates behind the copy that keep it provable: validation data and
-- time stamps over the document (PAdES, ETSI EN 319 142-1).
create table seal_state (
    bucket bigint not null,
    envelope_id text not null,
    org_id text not null,
    -- B-B, B-T, B-LT or B-LTA, and why it is not higher.
    level text not null,
    reason text,
    -- Stored file of the updates, as JSON, and its SHA-256; null before the first. A writer that finds another one was overtaken.
    updates text,
    updates_sha256 text,
    -- Time stamps over the document among the updates.
    stamps bigint not null default 0,
    -- Digest algorithm of the newest time stamp, and when its certificate ends. Null without a time stamp.
    digest text,
    ends_at text,
    created_at text not null,
    -- When to look again; null if nothing can be added.
    due_at text,
    primary key (bucket, envelope_id)
);
create index seal_state_due on seal_state (due_at) where due_at is not null;
create index seal_state_due_of_bucket on seal_state (bucket, due_at) where due_at is not null;
create index seal_state_of_org on seal_state (bucket, org_id, envelope_id);
create index seal_state_digest on seal_state (digest, due_at) where due_at is not null;
create index seal_state_ending on seal_state (ends_at) where ends_at is not null;

-- Records of earlier releases are looked at once: their level is at least this one.
insert into seal_state (bucket, envelope_id, org_id, level, created_at, due_at)
    select bucket, envelope_id, org_id, 'B-B', updated_at, updated_at from envelope
    where status in ('vaulted', 'vaulted_out');
