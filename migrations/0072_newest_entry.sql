-- Time of the newest entry that the log has placed, or of its newest head: a node whose clock is behind it seals nothing.
-- Null for a log of an earlier release until its next entry.
alter table ledger_log add column newest_at text;
