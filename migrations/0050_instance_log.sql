-- Log of the organizations' own provider instances.
create table instance_log (
    bucket bigint not null,
    line_id text not null,
    org_id text not null,
    slot text not null,
    instance text not null,
    at text not null,
    level text not null,
    component text not null,
    message text not null,
    primary key (bucket, line_id)
);
create index instance_log_by_instance on instance_log (bucket, org_id, slot, instance, line_id);
create index instance_log_by_time on instance_log (at);
