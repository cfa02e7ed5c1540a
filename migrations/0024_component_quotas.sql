-- What compiling the components of an organization took, for its quota of an hour.
create table component_compile (
    bucket bigint not null,
    compile_id text not null,
    org_id text not null,
    at text not null,
    millis bigint not null,
    primary key (bucket, compile_id)
);
create index component_compile_by_org on component_compile (bucket, org_id, at);

-- Set where so many later activations count at the same place that nobody goes back to
-- this one: nodes do not read it any more, and the history still shows it.
alter table component_activation add column superseded_at text;
