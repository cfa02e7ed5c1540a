-- People whom a controller lets look at a record by a link. The link is not stored: it is derived from the id.
create table control_view (
    bucket bigint not null,
    view_id text not null,
    envelope_id text not null,
    org_id text not null,
    -- The controller that granted it, and since when it had control. The view ends when control passes.
    controller_id text not null,
    controlled_since text not null,
    name text not null,
    email text not null,
    access text not null,
    purpose text,
    created_at text not null,
    expires_at text not null,
    revoked_at text,
    -- Time of the last recorded look at the pages.
    opened_at text,
    primary key (bucket, view_id)
);
create index control_view_by_id on control_view (view_id);
create index control_view_by_record on control_view (bucket, envelope_id, view_id);
create index control_view_by_org on control_view (bucket, org_id);

-- Watermarked copies, each with its holder.
create table control_copy (
    bucket bigint not null,
    copy_id text not null,
    envelope_id text not null,
    org_id text not null,
    party_id text not null,
    holder text not null,
    view_id text,
    purpose text not null,
    made_at text not null,
    primary key (bucket, copy_id)
);
create index control_copy_by_id on control_copy (copy_id);
create index control_copy_by_org on control_copy (bucket, org_id);

-- Statements of control for obligors.
create table control_statement (
    bucket bigint not null,
    statement_id text not null,
    envelope_id text not null,
    org_id text not null,
    -- The controller that issued it.
    party_id text not null,
    body text not null,
    -- Since when it had control.
    controlled_since text not null,
    primary key (bucket, statement_id)
);
create index control_statement_by_id on control_statement (statement_id);
create index control_statement_by_org on control_statement (bucket, org_id);
