-- Control of authoritative copies. A record without a row is controlled by its originator.
create table control_record (
    bucket bigint not null,
    envelope_id text not null,
    -- The originator: the organization of the envelope.
    org_id text not null,
    controller_id text not null,
    -- Designee or buyer that has not taken control yet.
    named_id text,
    stage text not null,
    -- Counted up by every change of this row: an act that was decided on an older one fails.
    epoch bigint not null,
    -- The release that waits for an answer, or was agreed to.
    release_id text,
    -- The transfer that locks the record.
    transfer_id text,
    changed_at text not null,
    controlled_since text not null,
    primary key (bucket, envelope_id)
);
-- The other parties find their records in any bucket.
create index control_record_by_controller on control_record (controller_id, envelope_id);
create index control_record_by_named on control_record (named_id, envelope_id);
create index control_record_by_org on control_record (bucket, org_id, envelope_id);

-- Requested releases of records that another party controls.
create table control_release (
    bucket bigint not null,
    release_id text not null,
    envelope_id text not null,
    org_id text not null,
    -- The party that was asked.
    controller_id text not null,
    -- `requested`, `consented`, `refused` or `released`.
    state text not null,
    -- The release form. A consent covers this form only.
    form text not null,
    requested_by text not null,
    requested_at text not null,
    answered_by text,
    answered_at text,
    reason text,
    primary key (bucket, release_id)
);
create index control_release_by_id on control_release (release_id);
create index control_release_by_org on control_release (bucket, org_id);

-- Allowed acts with the facts and the component that decided.
create table control_decision (
    bucket bigint not null,
    decision_id text not null,
    org_id text not null,
    envelope_id text not null,
    -- The controller at that time, of which the rules decided.
    controller_id text not null,
    act text not null,
    facts text not null,
    component text not null,
    at text not null,
    primary key (bucket, decision_id)
);
create index control_decision_by_envelope on control_decision (bucket, envelope_id);
create index control_decision_by_org on control_decision (bucket, org_id);
create index control_decision_by_controller on control_decision (controller_id, decision_id);
