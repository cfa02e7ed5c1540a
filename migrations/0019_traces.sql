-- What a job belongs to: the W3C traceparent of what asked for it, where that is traced.
-- Older nodes leave it out.
alter table job add column trace text;
