-- Keys that parties sign their acts of control with.
create table party_key (
    bucket bigint not null,
    key_id text not null,
    org_id text not null,
    name text,
    -- The public key, a JWK.
    public_key text not null,
    -- RFC 7638.
    thumbprint text not null,
    created_at text not null,
    created_by text not null,
    -- The signed statement by which the key was registered.
    registration text not null,
    revoked_at text,
    primary key (bucket, key_id)
);
create index party_key_by_org on party_key (bucket, org_id);
create unique index party_key_by_thumbprint on party_key (bucket, org_id, thumbprint);

-- Nonces of signed statements, kept until the statement has expired.
create table statement_nonce (
    bucket bigint not null,
    org_id text not null,
    nonce text not null,
    expires_at text not null,
    primary key (bucket, org_id, nonce)
);
create index statement_nonce_by_org on statement_nonce (bucket, org_id, expires_at);

-- The signed statement of the step in progress.
alter table control_transfer add column signed text;
-- Number and root of the offered records.
alter table control_transfer add column offered text;
-- Whether the record is part of the buyer's receipt.
alter table control_transfer_record add column accepted bigint not null default 0;
