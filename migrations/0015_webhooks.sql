-- Webhooks: endpoints, what is delivered to them, and each attempt.

create table webhook_endpoint (
    bucket bigint not null,
    endpoint_id text not null,
    org_id text not null,
    url text not null,
    description text,
    -- Selectors, as one JSON array.
    events text not null,
    is_active bigint not null,
    -- Null: the whole organization's.
    partner_key_id text,
    -- The one that its key writes to with PATCH /partner/webhook.
    legacy bigint not null,
    -- Sealed with the installation's key. Null: deliveries are unsigned.
    secret text,
    previous_secret text,
    grace_expires_at text,
    created_by text not null,
    created_at text not null,
    updated_at text not null,
    -- Its deliveries stay.
    deleted_at text,
    -- Since when every attempt has failed.
    failing_since text,
    warned_at text,
    -- Until then nothing is sent, and then one probe at a time.
    paused_until text,
    disabled_reason text,
    disabled_at text,
    -- One node at a time delivers to it. Whoever takes it over raises the epoch;
    -- what is settled with an older one is not.
    holder text,
    lease_until text,
    lease_epoch bigint not null,
    primary key (bucket, endpoint_id)
);
create index webhook_endpoint_by_org on webhook_endpoint (bucket, org_id, endpoint_id);
create index webhook_endpoint_by_holder on webhook_endpoint (holder);

-- Of an event to an endpoint: committed with the event.
create table webhook_delivery (
    bucket bigint not null,
    delivery_id text not null,
    org_id text not null,
    endpoint_id text not null,
    event_id text not null,
    event_type text not null,
    envelope_id text,
    status text not null,
    attempts bigint not null,
    -- When it is attempted next; null once it is settled.
    due_at text,
    -- The delivery of which this is a replay.
    redelivery_of text,
    created_at text not null,
    updated_at text not null,
    primary key (bucket, delivery_id)
);
create index webhook_delivery_due on webhook_delivery (bucket, endpoint_id, due_at, delivery_id)
    where status = 'pending';
create index webhook_delivery_by_endpoint on webhook_delivery (bucket, endpoint_id, delivery_id);
create index webhook_delivery_by_org on webhook_delivery (bucket, org_id);
create index webhook_delivery_by_status
    on webhook_delivery (bucket, endpoint_id, status, delivery_id);
create index webhook_delivery_pending on webhook_delivery (bucket, event_id)
    where status = 'pending';

create table webhook_attempt (
    bucket bigint not null,
    delivery_id text not null,
    -- From 1.
    attempt bigint not null,
    org_id text not null,
    at text not null,
    -- Null when there was no answer.
    response_code bigint,
    -- As far as it was read; null once it is pruned.
    response_body text,
    -- Why there was no whole answer.
    error text,
    duration_ms bigint not null,
    primary key (bucket, delivery_id, attempt)
);
create index webhook_attempt_by_org on webhook_attempt (bucket, org_id);

-- What is pruned by age. An event without its body is one that was.
create index webhook_attempt_prunable on webhook_attempt (at) where response_body is not null;
create index event_prunable on event (created_at) where body <> '';
