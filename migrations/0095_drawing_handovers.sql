-- Addresses by which signers draw an entry of the form on another device, one for each signer: a newer one replaces it.
create table drawing_handover (
    bucket bigint not null,
    envelope_id text not null,
    position bigint not null,
    org_id text not null,
    -- Signer as of the request: another person may take the place later.
    signer_id text not null,
    -- Submitter of the signing room, and the field that gets the drawing.
    submitter_id bigint not null,
    field text not null,
    -- Type of the field: `signature` or `initials`.
    kind text not null,
    token_hash text not null,
    expires_at text not null,
    -- None while the drawing is awaited.
    drawn_at text,
    primary key (bucket, envelope_id, position)
);
create index drawing_handover_of_org on drawing_handover (bucket, org_id);
create unique index drawing_handover_token on drawing_handover (bucket, token_hash);
