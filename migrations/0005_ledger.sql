-- The custody ledger. An entry is written in the transaction of the change it
-- records and never changed. The primary key lets one of two writers win.

create table ledger_entry (
    bucket bigint not null,
    envelope_id text not null,
    sequence bigint not null,
    org_id text not null,
    at text not null,
    actor text not null,
    action text not null,
    details text not null,
    previous_hash text not null,
    hash text not null,
    primary key (bucket, envelope_id, sequence)
);
create index ledger_entry_by_org on ledger_entry (bucket, org_id);
