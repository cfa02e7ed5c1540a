-- Checks of contracts by funding rules, with facts, answer and component, so that each can be repeated.
create table funding_decision (
    bucket bigint not null,
    decision_id text not null,
    org_id text not null,
    envelope_id text not null,
    -- before_sending, after_signing or transfer.
    stage text not null,
    -- ready, incomplete or refused.
    outcome text not null,
    facts text not null,
    answer text not null,
    component text not null,
    -- Pack of a lender, as JSON; null for the rules of the organization itself.
    pack text,
    at text not null,
    block bigint,
    primary key (bucket, decision_id)
);
create index funding_decision_of_envelope on funding_decision (bucket, envelope_id, decision_id);
create index funding_decision_of_org on funding_decision (bucket, org_id, decision_id);
create index funding_decision_without_block on funding_decision (org_id, decision_id) where block is null;
create index funding_decision_by_block on funding_decision (org_id, block) where block is not null;

-- Attachments that the funding of a contract depends on.
create table stipulation (
    bucket bigint not null,
    envelope_id text not null,
    kind text not null,
    org_id text not null,
    -- Place in the list, from 0.
    position bigint not null,
    -- Field of a signer whose file satisfies it.
    field text,
    -- open, received or waived.
    state text not null,
    -- Envelope with the uploaded file that satisfies it.
    document_envelope text,
    document_sha256 text,
    document_name text,
    reason text,
    settled_by text,
    settled_at text,
    primary key (bucket, envelope_id, kind)
);
create index stipulation_of_org on stipulation (bucket, org_id);

-- Stipulations of new envelopes of a template, as JSON.
create table template_stipulation (
    bucket bigint not null,
    template_id text not null,
    org_id text not null,
    stipulations text not null,
    primary key (bucket, template_id)
);
create index template_stipulation_of_org on template_stipulation (bucket, org_id);

-- Funding rules that lenders publish.
create table funding_pack (
    bucket bigint not null,
    pack_id text not null,
    org_id text not null,
    name text not null,
    created_by text not null,
    created_at text not null,
    primary key (bucket, pack_id)
);
create index funding_pack_of_org on funding_pack (bucket, org_id, pack_id);

create table funding_pack_version (
    bucket bigint not null,
    pack_id text not null,
    version bigint not null,
    org_id text not null,
    component_id text not null,
    -- Name, version and digest of the component.
    component text not null,
    description text not null,
    effective_at text not null,
    -- Ids of envelopes of the lender, as JSON.
    samples text not null,
    published_by text not null,
    published_at text not null,
    primary key (bucket, pack_id, version)
);
create index funding_pack_version_of_org on funding_pack_version (bucket, org_id, pack_id);

-- Organizations that a lender invited, in their own buckets, with their subscriptions.
create table funding_invitation (
    bucket bigint not null,
    org_id text not null,
    pack_id text not null,
    lender_id text not null,
    invited_at text not null,
    subscribed_at text,
    -- Null for a subscription that follows the pack.
    pinned bigint,
    primary key (bucket, org_id, pack_id)
);
