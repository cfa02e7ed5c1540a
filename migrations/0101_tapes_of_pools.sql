-- Transfer whose records are the population of a tape; none for all records in which the organization has the part.
alter table tape add column pool_id text;
-- Checks that ended with a defect of the stored file. After a few of them the tape has failed.
alter table tape add column failures bigint not null default 0;
-- Names of the columns in the file, as JSON, while a person chooses what they hold.
alter table tape add column header text;
-- Tapes whose period of retention is over.
create index tape_by_age on tape (bucket, org_id, created_at);
