-- Pledges of records by their controllers. While one is live, the record does not change hands.
create table control_pledge (
    bucket bigint not null,
    pledge_id text not null,
    envelope_id text not null,
    org_id text not null,
    pledgor_id text not null,
    pledgee_id text not null,
    terms text,
    created_at text not null,
    released_at text,
    primary key (bucket, pledge_id)
);
create index control_pledge_by_id on control_pledge (pledge_id);
create index control_pledge_by_org on control_pledge (bucket, org_id);

-- The live pledge of a record, if there is one.
alter table control_record add column pledge_id text;
alter table control_record add column pledgee_id text;
-- A sold record is found by its id alone.
create index control_record_by_envelope on control_record (envelope_id);
create index control_record_by_pledgee on control_record (pledgee_id, envelope_id);
