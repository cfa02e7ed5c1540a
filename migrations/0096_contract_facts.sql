-- Fact maps of organizations: which facts their contracts have, and where they stand.
create table fact_map (
    bucket bigint not null,
    fact_map_id text not null,
    org_id text not null,
    -- Number of the present version, from 1.
    version bigint not null,
    document text not null,
    made_by text not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text,
    primary key (bucket, fact_map_id)
);
create index fact_map_of_org on fact_map (bucket, org_id, fact_map_id);

-- Each version, kept for ever: evidence names them.
create table fact_map_version (
    bucket bigint not null,
    fact_map_id text not null,
    version bigint not null,
    org_id text not null,
    document text not null,
    made_by text not null,
    made_at text not null,
    primary key (bucket, fact_map_id, version)
);
create index fact_map_version_of_org on fact_map_version (bucket, org_id, fact_map_id);

-- The facts of a contract, one row an envelope.
create table contract_facts (
    bucket bigint not null,
    envelope_id text not null,
    org_id text not null,
    fact_map_id text not null,
    map_version bigint not null,
    map_sha256 text not null,
    -- Component that read the document.
    component_name text not null,
    component_version text not null,
    component_sha256 text not null,
    document_sha256 text not null,
    -- Fields and metadata that the map names.
    inputs text not null,
    -- SHA-256 of the canonical fact sheet.
    digest text not null,
    facts text not null,
    created_at text not null,
    primary key (bucket, envelope_id)
);
create index contract_facts_of_org on contract_facts (bucket, org_id, envelope_id);

-- What contracts are found by, within their organization.
create table contract_fact_key (
    bucket bigint not null,
    org_id text not null,
    key_name text not null,
    key_value text not null,
    envelope_id text not null,
    primary key (bucket, org_id, key_name, key_value, envelope_id)
);
create index contract_fact_key_of_envelope on contract_fact_key (bucket, envelope_id);
