-- What happened to envelopes, by time: pictures of 30 days read no other entries.
create index ledger_entry_activity on ledger_entry (bucket, org_id, action, at, envelope_id)
    where action in ('envelope.created', 'envelope.sent', 'envelope.completed');

-- Filters of the list of envelopes that users keep for themselves: the query of its address.
create table saved_filter (
    bucket bigint not null,
    org_id text not null,
    user_id text not null,
    name text not null,
    query text not null,
    created_at text not null,
    primary key (bucket, org_id, user_id, name)
);
