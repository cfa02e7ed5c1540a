-- Disputes about conflicts of records: what each side says, and the suspension of the claim that holds up the other
-- record, which two operators decide.
alter table control_conflict add column statement text;
alter table control_conflict add column other_statement text;
alter table control_conflict add column suspension_reason text;
alter table control_conflict add column requested_by text;
alter table control_conflict add column requested_at text;
alter table control_conflict add column suspended_by text;
alter table control_conflict add column suspended_at text;
create index control_conflict_by_reference on control_conflict (reference);
-- Reference of the dispute in which the claim by this fingerprint was suspended: it holds up no other record.
alter table record_fingerprint add column suspended_in text;
