-- The built-in signing room. It is a provider like any other: it knows nothing
-- of envelopes, and its ids are numbers as at DocuSeal.

create table room_template (
    bucket bigint not null,
    template_id bigint not null,
    org_id text not null,
    name text not null,
    external_id text,
    document_key text not null,
    document_sha256 text not null,
    roles text not null,
    fields text not null,
    created_at text not null,
    archived_at text,
    primary key (bucket, template_id)
);
create unique index room_template_by_external_id on room_template (bucket, org_id, external_id);

create table room_submission (
    bucket bigint not null,
    submission_id bigint not null,
    org_id text not null,
    template_id bigint not null,
    name text not null,
    preserve_order bigint not null,
    document_key text not null,
    fields text not null,
    signed_key text,
    created_at text not null,
    completed_at text,
    archived_at text,
    primary key (bucket, submission_id)
);
create index room_submission_by_org on room_submission (bucket, org_id);

create table room_submitter (
    bucket bigint not null,
    submitter_id bigint not null,
    org_id text not null,
    submission_id bigint not null,
    position bigint not null,
    slug text not null,
    name text not null,
    email text not null,
    role text not null,
    external_id text,
    -- Field name to value, as one JSON object.
    field_values text not null,
    opened_at text,
    started_at text,
    completed_at text,
    declined_at text,
    decline_reason text,
    ip text,
    user_agent text,
    primary key (bucket, submitter_id)
);
create index room_submitter_by_submission on room_submitter (bucket, submission_id, position);
create unique index room_submitter_by_slug on room_submitter (bucket, slug);
create index room_submitter_by_external_id on room_submitter (bucket, org_id, external_id);
