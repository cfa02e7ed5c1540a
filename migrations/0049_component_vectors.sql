-- Vectors of a team that hold for a component and later versions of it.
create table component_vectors (
    bucket bigint not null,
    component_id text not null,
    vectors text not null,
    primary key (bucket, component_id)
);
