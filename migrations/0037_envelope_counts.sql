-- Number of an organization's envelopes by status, so that a list knows its total without counting. On
-- PostgreSQL, changes spread over several rows (shards) that are added up.
create table envelope_count (
    bucket bigint not null,
    org_id text not null,
    status text not null,
    shard bigint not null,
    envelopes bigint not null,
    primary key (bucket, org_id, status, shard)
);
insert into envelope_count (bucket, org_id, status, shard, envelopes)
select bucket, org_id, status, 0, count(*) from envelope group by bucket, org_id, status;
