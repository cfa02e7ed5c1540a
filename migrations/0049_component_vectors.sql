-- Vectors of a team that hold for a component and later versions of it.
create table component_vectors (
    bucket bigint not null,
    component_id text not null,
    org_id text not null,
    vectors text not null,
    primary key (bucket, component_id)
);
create index component_vectors_by_org on component_vectors (bucket, org_id);
