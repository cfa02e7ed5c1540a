-- Components that are replaced at run time, and which one is active.

create table component (
    bucket bigint not null,
    component_id text not null,
    -- Empty: the installation's, for every organization.
    org_id text not null,
    slot text not null,
    name text not null,
    version text not null,
    -- Its bytes are kept under this digest for ever: decisions name it.
    sha256 text not null,
    size bigint not null,
    imports text not null,
    conformance text not null,
    signed_by text,
    uploaded_by text not null,
    created_at text not null,
    primary key (bucket, component_id)
);
create index component_by_org on component (bucket, org_id, component_id);
create index component_by_version on component (bucket, org_id, name, version);
create index component_by_sha256 on component (sha256);

-- A component put into a slot, from a time on. What counts at a time is the last
-- one before it that was not rolled back: an organization's own, else the
-- installation's, else the default component.
create table component_activation (
    bucket bigint not null,
    activation_id text not null,
    org_id text not null,
    slot text not null,
    -- Of a provider; empty for rules.
    instance text not null,
    component_id text not null,
    name text not null,
    version text not null,
    sha256 text not null,
    -- Of a provider's instance; sealed with the installation's key.
    config text,
    reason text,
    activated_by text not null,
    created_at text not null,
    effective_at text not null,
    rolled_back_at text,
    rolled_back_by text,
    rollback_reason text,
    primary key (bucket, activation_id)
);
create index component_activation_by_slot
    on component_activation (bucket, org_id, slot, instance, activation_id);
create index component_activation_live on component_activation (activation_id)
    where rolled_back_at is null;

-- Raised with every change, so that nodes see that there is one. Whoever changes
-- something holds this row.
create table component_revision (
    id bigint primary key,
    revision bigint not null
);
insert into component_revision (id, revision) values (1, 0);

-- Every move of an envelope, with what the rules were asked and which component
-- answered: it can be asked again.
create table lifecycle_decision (
    bucket bigint not null,
    decision_id text not null,
    org_id text not null,
    envelope_id text not null,
    -- Null before there is one.
    from_status text,
    trigger_name text not null,
    to_status text not null,
    facts text not null,
    component text not null,
    at text not null,
    primary key (bucket, decision_id)
);
create index lifecycle_decision_by_org on lifecycle_decision (bucket, org_id, decision_id);
create index lifecycle_decision_by_envelope on lifecycle_decision (bucket, envelope_id, decision_id);

-- Which component placed its fields last.
alter table template add column placed_by text;

-- A candidate that is asked beside the active component, and what it says.
create table component_shadow (
    bucket bigint not null,
    shadow_id text not null,
    org_id text not null,
    slot text not null,
    component_id text not null,
    sha256 text not null,
    started_by text not null,
    started_at text not null,
    ended_at text,
    compared bigint not null,
    differing bigint not null,
    -- The candidate gave no answer.
    failed bigint not null,
    -- Came too fast to be compared.
    left_out bigint not null,
    primary key (bucket, shadow_id)
);
create index component_shadow_by_slot on component_shadow (bucket, org_id, slot, shadow_id);
create table component_difference (
    bucket bigint not null,
    shadow_id text not null,
    org_id text not null,
    record_id text not null,
    what text not null,
    before_value text,
    after_value text,
    at text not null,
    primary key (bucket, shadow_id, record_id, what)
);
create index component_difference_by_org on component_difference (bucket, org_id);
