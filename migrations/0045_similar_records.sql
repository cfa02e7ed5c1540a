-- Keyed MinHash values of a record's words, to find scans and reprints over all organizations.
create table record_text (
    bucket bigint not null,
    envelope_id text not null,
    org_id text not null,
    -- Null for a document with too few words that count.
    signature text,
    -- 1 for a document that was signed here: two of these are two contracts.
    signed_here bigint not null,
    primary key (bucket, envelope_id)
);
create index record_text_by_org on record_text (bucket, org_id);

-- Groups of these values: records are compared if they share one.
create table record_band (
    bucket bigint not null,
    envelope_id text not null,
    org_id text not null,
    band text not null,
    primary key (bucket, envelope_id, band)
);
create index record_band_by_value on record_band (band);
create index record_band_by_org on record_band (bucket, org_id);

-- Pairs that were found, by both records.
create table record_similar (
    bucket bigint not null,
    envelope_id text not null,
    other_id text not null,
    org_id text not null,
    reference text not null,
    -- Part of the words that both share.
    percent bigint not null,
    -- Since when the other record has its controller.
    since text not null,
    primary key (bucket, envelope_id, other_id)
);
create index record_similar_by_org on record_similar (bucket, org_id);
