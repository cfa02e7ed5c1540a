-- Salts of the personal values of an entry, as JSON by their places. Null without any, in entries of earlier releases, and
-- after the record was destroyed.
alter table ledger_entry add column salts text;
-- 1 if the details were destroyed as a whole, which leaves the hash without its content.
alter table ledger_entry add column withheld bigint not null default 0;
