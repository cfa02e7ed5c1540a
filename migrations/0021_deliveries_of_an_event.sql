-- The deliveries of one event, in the log of an endpoint and when its body may go. The
-- index that this one replaces knew only those that are pending.
create index webhook_delivery_by_event on webhook_delivery (bucket, event_id, endpoint_id, delivery_id);
drop index webhook_delivery_pending;
