-- Requests of partners and users with what was answered, without what is private.
create table request_log (
    bucket bigint not null,
    request_id text not null,
    org_id text not null,
    at text not null,
    method text not null,
    -- As in the OpenAPI document, and with its ids.
    route text not null,
    path text not null,
    status bigint not null,
    credential text,
    envelope_id text,
    duration_ms bigint not null,
    -- JSON.
    request text,
    answer text,
    primary key (bucket, request_id)
);
create index request_log_by_org on request_log (bucket, org_id, request_id);
create index request_log_by_envelope on request_log (bucket, envelope_id, request_id)
    where envelope_id is not null;
create index request_log_by_time on request_log (at);
