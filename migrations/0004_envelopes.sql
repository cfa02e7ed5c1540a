-- Envelopes, their signers and custodians, and the links by which signers come.

create table envelope (
    bucket bigint not null,
    envelope_id text not null,
    org_id text not null,
    customer_id text not null,
    name text not null,
    kind text not null,
    status text not null,
    external_id text,
    template_id text,
    metadata text not null,
    secured_party text,
    is_upload bigint not null,
    -- Each stored file: key, SHA-256, size and type, as one JSON object.
    upload text,
    vault text,
    copy text,
    certificate text,
    custody_record text,
    archive text,
    document_hash text,
    provider_instance text,
    provider_submission text,
    preserve_signing_order bigint not null,
    created_by text not null,
    created_at text not null,
    updated_at text not null,
    signed_at text,
    expires_at text,
    primary key (bucket, envelope_id)
);
create index envelope_by_org on envelope (bucket, org_id, envelope_id);
create index envelope_by_status on envelope (bucket, org_id, status, envelope_id);
create index envelope_by_customer on envelope (bucket, org_id, customer_id, envelope_id);
-- A provider's callback names its own submission only.
create index envelope_by_submission on envelope (provider_submission);

create table signer (
    bucket bigint not null,
    envelope_id text not null,
    position bigint not null,
    org_id text not null,
    name text not null,
    email text not null,
    role text not null,
    status text not null,
    provider_submitter text,
    completed_at text,
    decline_reason text,
    primary key (bucket, envelope_id, position)
);
create index signer_by_org on signer (bucket, org_id);

create table custodian (
    bucket bigint not null,
    envelope_id text not null,
    email text not null,
    org_id text not null,
    status text not null,
    created_at text not null,
    primary key (bucket, envelope_id, email)
);
create index custodian_by_org on custodian (bucket, org_id);

-- Our own expiring links. Only the hash of a link's token is kept.
create table signing_link (
    bucket bigint not null,
    token_hash text not null,
    org_id text not null,
    envelope_id text not null,
    position bigint not null,
    created_at text not null,
    expires_at text not null,
    primary key (bucket, token_hash)
);
create index signing_link_by_org on signing_link (bucket, org_id);
