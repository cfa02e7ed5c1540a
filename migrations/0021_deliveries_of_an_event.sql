-- The deliveries of one event in the log of an endpoint; those that are pending, too.
create index webhook_delivery_by_event on webhook_delivery (bucket, event_id, endpoint_id, delivery_id);

-- For claims, each of which names one bucket.
create index payment_waiting_of_bucket on payment (bucket, looked_at)
    where intent_id is not null and paid_at is null;
