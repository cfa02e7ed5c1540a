-- Retention schedules of an organization, as JSON.
create table retention_schedules (
    bucket bigint not null,
    org_id text not null,
    schedules text not null,
    changed_by text not null,
    changed_at text not null,
    primary key (bucket, org_id)
);

-- Events that an organization reports about its contracts.
create table retention_event (
    bucket bigint not null,
    envelope_id text not null,
    -- paid_off.
    event text not null,
    org_id text not null,
    -- Day of the event, in ISO 8601.
    event_date text not null,
    reported_by text not null,
    reported_at text not null,
    primary key (bucket, envelope_id, event)
);
create index retention_event_of_org on retention_event (bucket, org_id);

-- Records whose retention is over. A row proposes a destruction and deletes nothing.
create table retention_proposal (
    bucket bigint not null,
    envelope_id text not null,
    org_id text not null,
    schedule text not null,
    event text not null,
    event_date text not null,
    destroy_after text not null,
    proposed_at text not null,
    primary key (bucket, envelope_id)
);
create index retention_proposal_of_org on retention_proposal (bucket, org_id, envelope_id);
