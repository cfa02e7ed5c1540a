-- How far the object store's own hold follows a legal hold, as JSON; null before its first step.
alter table legal_hold add column store_hold text;

-- Plan of reminders of envelopes that are made from a template, as JSON; null takes that of the organization.
alter table template add column reminders text;
-- Name of the signer's time zone, for quiet hours; null takes that of the organization.
alter table signer add column time_zone text;
