-- Clients of an organization. `email` is kept in lower case and may be unknown.

create table customer (
    bucket bigint not null,
    customer_id text not null,
    org_id text not null,
    email text,
    name text not null,
    -- The other fields of the specification, as one JSON object.
    details text not null,
    created_at text not null,
    updated_at text not null,
    primary key (bucket, customer_id)
);
create unique index customer_by_email on customer (bucket, org_id, email);
