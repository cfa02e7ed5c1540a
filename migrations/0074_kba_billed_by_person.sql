-- People with one e-mail address are billed each. `kba_billed` keeps the first of an address, for nodes of earlier
-- releases.
create table kba_billed_person (
    bucket bigint not null,
    org_id text not null,
    -- YYYY-MM, UTC.
    month text not null,
    email text not null,
    -- In lower case, with single spaces.
    name text not null,
    kba_id text not null,
    primary key (bucket, org_id, month, email, name)
);
create index kba_billed_person_by_org on kba_billed_person (bucket, org_id);
