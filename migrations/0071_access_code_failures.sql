-- Wrong entries of a signer's code by the network that they came from, so that a stranger locks out only themselves.
create table access_code_failure (
    bucket bigint not null,
    org_id text not null,
    envelope_id text not null,
    position bigint not null,
    email text not null,
    network text not null,
    failures bigint not null,
    locks bigint not null,
    locked_until text,
    primary key (bucket, envelope_id, position, network)
);
create index access_code_failure_by_org on access_code_failure (bucket, org_id, envelope_id);
