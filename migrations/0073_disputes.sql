-- Disputes about conflicts of records: what each side says, and the suspension of the claim that holds up the other
-- record, which two operators decide. A claim that is suspended in any dispute holds up no record.
alter table control_conflict add column statement text;
alter table control_conflict add column other_statement text;
alter table control_conflict add column suspension_reason text;
alter table control_conflict add column requested_by text;
-- Account at an issuer with which the operator signed in, as JSON.
alter table control_conflict add column requested_as text;
alter table control_conflict add column requested_at text;
alter table control_conflict add column suspended_by text;
alter table control_conflict add column suspended_at text;
create index control_conflict_by_reference on control_conflict (reference);
create index control_conflict_by_claim on control_conflict (other_id);
