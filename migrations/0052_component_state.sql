-- The signed state of components that an owner wants; an empty organization is the installation.
create table component_state (
    bucket bigint not null,
    org_id text not null,
    version bigint not null,
    content text not null,
    signatures text not null,
    set_by text not null,
    set_at text not null,
    primary key (bucket, org_id)
);
