-- Texts about electronic records that signers were shown, by SHA-256 of their UTF-8. They are never deleted: the
-- evidence of a signature names the text by its digest.
create table disclosure (
    bucket bigint not null,
    org_id text not null,
    sha256 text not null,
    version text not null,
    locale text not null,
    body text not null,
    first_shown_at text not null,
    primary key (bucket, org_id, sha256)
);

-- What the pages of a submitter delivered, and when first: kind 'disclosure' (item: its SHA-256), 'page' (item: its
-- number) or 'pdf' (item: empty). Another person in the submitter's place has rows of their own.
create table signer_delivery (
    bucket bigint not null,
    org_id text not null,
    submitter_id bigint not null,
    person text not null,
    kind text not null,
    item text not null,
    at text not null,
    primary key (bucket, org_id, submitter_id, person, kind, item)
);

-- When the text that a submitter agreed to was shown first, and what had been delivered by then (JSON).
alter table room_submitter add column consent_shown_at text;
alter table room_submitter add column consent_demonstrated text;

-- Whether a signer is a consumer, by the statement of the sender; null: not stated.
alter table signer add column consumer bigint;
