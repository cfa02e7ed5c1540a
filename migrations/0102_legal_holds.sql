-- Legal holds. A hold covers records while its organization controls them.
create table legal_hold (
    bucket bigint not null,
    hold_id text not null,
    org_id text not null,
    -- envelope, customer, pool or organization.
    scope text not null,
    -- Id of the envelope, customer, transfer or organization, and the bucket of its rows.
    subject text not null,
    subject_bucket bigint not null,
    reason text not null,
    case_reference text not null,
    placed_by text not null,
    placed_at text not null,
    lift_reason text,
    lift_requested_by text,
    -- Account at an issuer with which that person signed in, as JSON.
    lift_requested_as text,
    lift_requested_at text,
    lifted_by text,
    lifted_at text,
    primary key (bucket, hold_id)
);
create index legal_hold_of_org on legal_hold (bucket, org_id, hold_id);
-- Every release and every change of control asks for these.
create index legal_hold_in_force on legal_hold (bucket, org_id) where lifted_at is null;
