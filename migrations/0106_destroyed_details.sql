-- 1 if the details were destroyed with their record, which leaves the hash without its content.
alter table ledger_entry add column withheld bigint not null default 0;
