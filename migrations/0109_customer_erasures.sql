-- Requests to erase a customer. A row stays as the record of what two people decided, and has no value of the person.
create table customer_erasure (
    bucket bigint not null,
    customer_id text not null,
    org_id text not null,
    requested_by text not null,
    -- Account at an issuer with which that person signed in, as JSON.
    requested_as text,
    requested_at text not null,
    approved_by text,
    approved_at text,
    -- Ids of the envelopes that were erased and of those that are left, as JSON.
    erased text not null,
    remaining text not null,
    primary key (bucket, customer_id)
);
create index customer_erasure_of_org on customer_erasure (bucket, org_id, customer_id);

-- The row of an erased customer has no values, and stays so that references to its id stay valid.
alter table customer add column erased_at text;
