-- How far the object store's own hold follows a legal hold, as JSON; null before its first step.
alter table legal_hold add column store_hold text;
