-- Requests to destroy records, with the steps of people as JSON: actor, organization, id and role of the user, time.
create table destruction (
    bucket bigint not null,
    destruction_id text not null,
    org_id text not null,
    reason text not null,
    certificate_recipient text,
    requested text not null,
    authorized text,
    carried_out text,
    withdrawn text,
    primary key (bucket, destruction_id)
);
create index destruction_of_org on destruction (bucket, org_id, destruction_id);

-- Records of a request, in the bucket of their originator. Another party that controls one has to consent.
create table destruction_record (
    bucket bigint not null,
    destruction_id text not null,
    envelope_id text not null,
    org_id text not null,
    controller_id text not null,
    -- Step of the controller, as JSON.
    consented text,
    -- What stood against the destruction when its turn came, as JSON.
    refusal text,
    primary key (bucket, destruction_id, envelope_id)
);
create index destruction_record_of_org on destruction_record (bucket, org_id);
create index destruction_record_of_envelope on destruction_record (bucket, envelope_id);
create index destruction_record_of_controller on destruction_record (controller_id, destruction_id);

-- Records that are being destroyed or are destroyed, with their certificates.
create table destroyed_record (
    bucket bigint not null,
    envelope_id text not null,
    org_id text not null,
    -- JSON. The ledger has the SHA-256 of its canonical form (RFC 8785).
    certificate text not null,
    begun_at text not null,
    destroyed_at text,
    primary key (bucket, envelope_id)
);
create index destroyed_record_of_org on destroyed_record (bucket, org_id);

-- destroying or destroyed; null for a whole record.
alter table envelope add column destruction text;

-- SHA-256 of inputs and answer of a decision about a destroyed record, as JSON. Its block commits to them.
alter table evaluation add column digests text;
alter table lifecycle_decision add column digests text;
alter table placement_decision add column digests text;
alter table control_decision add column digests text;
alter table funding_decision add column digests text;

-- What a tape found about a record, by the record.
create index tape_row_by_record on tape_row (bucket, envelope_id) where envelope_id is not null;
