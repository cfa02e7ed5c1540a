-- Which node takes up the work of which organizations. Nothing hangs on it: what is taken
-- up is fenced by the epoch of its own row. Older nodes do not know of it and take up
-- what is due anywhere.
create table bucket_lease (
    bucket bigint not null,
    -- A run of a node; empty when nobody holds it.
    node text not null,
    -- Raised whenever it goes to another run.
    epoch bigint not null,
    held_until text not null,
    primary key (bucket)
);
insert into bucket_lease (bucket, node, epoch, held_until)
with recursive every (bucket) as (select 0 union all select bucket + 1 from every where bucket < 63)
select bucket, '', 0, '' from every;

-- For claims, each of which names one bucket.
create index job_due_of_bucket on job (bucket, run_at) where state = 'waiting';
create index envelope_open_of_bucket on envelope (bucket, looked_at) where status in ('sent', 'viewed');
create index integrity_check_due_of_bucket on integrity_check (bucket, due_at);
