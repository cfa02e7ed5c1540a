-- Fingerprints of records, keyed hashes only: a record may have one controller in the installation, also
-- when it is registered twice.
create table record_fingerprint (
    bucket bigint not null,
    envelope_id text not null,
    org_id text not null,
    -- HMAC-SHA256 with the installation's key for fingerprints.
    fingerprint text not null,
    -- `document` for an uploaded document, and for the copies that were made of a document; `signed_here`
    -- for the executed document if it was signed here; otherwise the kind of the declared collateral.
    kind text not null,
    primary key (bucket, envelope_id, fingerprint)
);
create index record_fingerprint_by_value on record_fingerprint (fingerprint);
create index record_fingerprint_by_org on record_fingerprint (bucket, org_id);

-- One row for each fingerprint that an act has claimed: the lock that makes acts with the same one wait
-- for each other.
create table fingerprint_lock (
    fingerprint text not null primary key
);

-- The key, sealed. One row.
create table fingerprint_key (
    bucket bigint not null,
    key_id text not null,
    org_id text not null,
    sealed text not null,
    primary key (bucket, key_id)
);
create index fingerprint_key_by_org on fingerprint_key (bucket, org_id);

-- Refused acts with a record that another party controls already, by both records.
create table control_conflict (
    bucket bigint not null,
    envelope_id text not null,
    other_id text not null,
    org_id text not null,
    reference text not null,
    attempts bigint not null,
    first_at text not null,
    primary key (bucket, envelope_id, other_id)
);
create index control_conflict_by_org on control_conflict (bucket, org_id);
