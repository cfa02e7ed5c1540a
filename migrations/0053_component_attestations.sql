-- What publishers say about a component: bundles of Sigstore, with what they prove.
create table component_attestations (
    bucket bigint not null,
    component_id text not null,
    org_id text not null,
    attestations text not null,
    primary key (bucket, component_id)
);
create index component_attestations_by_org on component_attestations (bucket, org_id);
