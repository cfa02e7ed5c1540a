-- Steps of vault-in that are done, so that a pipeline that is run again goes on
-- behind them; the log of all ledger entries; and what is checked by time.

-- A step is recorded once: of two pipelines at work on one envelope, the first
-- to finish a step decides what it gave.
create table vault_step (
    bucket bigint not null,
    envelope_id text not null,
    -- Steps of an intent that was given up, as its document was replaced, are
    -- nobody's any more.
    intent_id text not null,
    step text not null,
    org_id text not null,
    -- What later steps need of it, as one JSON value.
    result text not null,
    recorded_at text not null,
    primary key (bucket, envelope_id, intent_id, step)
);
create index vault_step_by_org on vault_step (bucket, org_id);

alter table vault_intent add column intent_id text not null default '';
-- What is under way begins anew, with steps that are recorded.
delete from vault_intent where finished_at is null;
-- The signed head of the log as the intent found it; stands in the certificate.
alter table vault_intent add column checkpoint text;
-- Where the pipeline stands when it fails.
alter table vault_intent add column failed_step text;
alter table vault_intent add column failed_at text;
alter table vault_intent add column failures bigint not null default 0;

-- One Merkle log of the entries of all ledgers (RFC 6962). An entry waits here,
-- written with it, until it is given its place.
create table ledger_pending (
    bucket bigint not null,
    envelope_id text not null,
    sequence bigint not null,
    hash text not null,
    at text not null,
    primary key (bucket, envelope_id, sequence)
);
create index ledger_pending_in_order on ledger_pending (at, envelope_id, sequence);
insert into ledger_pending (bucket, envelope_id, sequence, hash, at)
    select bucket, envelope_id, sequence, hash, at from ledger_entry;

create table ledger_leaf (
    bucket bigint not null,
    envelope_id text not null,
    sequence bigint not null,
    leaf_index bigint not null,
    primary key (bucket, envelope_id, sequence)
);

-- Up to 256 hashes of one level: leaves on level 0, roots of full tiles of the
-- level below on the others. Only a level's last tile ever grows.
create table ledger_tile (
    level bigint not null,
    tile bigint not null,
    -- 64 hex digits a hash, one behind the other.
    hashes text not null,
    primary key (level, tile)
);

-- The log's one row: its name, its head, and who may extend it.
create table ledger_log (
    log_id bigint not null,
    origin text not null,
    tree_size bigint not null,
    root_hash text not null,
    -- What its checkpoints are verified with: one key for all nodes.
    public_key text,
    -- The signed note of the head.
    checkpoint text,
    signed_at text,
    holder text,
    lease_until text,
    primary key (log_id)
);

-- When each vaulted envelope is to be re-read next.
create table integrity_check (
    bucket bigint not null,
    envelope_id text not null,
    org_id text not null,
    due_at text not null,
    checked_at text,
    -- What did not hold at the last look, as a JSON array; null when all held.
    problems text,
    primary key (bucket, envelope_id)
);
create index integrity_check_due on integrity_check (due_at);
create index integrity_check_by_org on integrity_check (bucket, org_id);
insert into integrity_check (bucket, envelope_id, org_id, due_at)
    select bucket, envelope_id, org_id, updated_at from envelope
    where status in ('vaulted', 'vaulted_out');

-- Work that one node does for all, each at its time.
create table chore (
    name text not null,
    due_at text not null,
    primary key (name)
);
