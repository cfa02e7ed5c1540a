-- Requests to change components or the policy of their changes, and their reviews.
create table component_change (
    bucket bigint not null,
    change_id text not null,
    org_id text not null,
    -- Of the sealed settings; empty for rules and the policy.
    instance text not null,
    state text not null,
    content text not null,
    -- Sealed settings of a provider instance, until the request is closed.
    config text,
    requested_by text not null,
    requested_at text not null,
    expires_at text not null,
    closed_by text,
    closed_at text,
    activation_id text,
    primary key (bucket, change_id)
);
create index component_change_by_org on component_change (bucket, org_id, change_id);

create table component_review (
    bucket bigint not null,
    review_id text not null,
    org_id text not null,
    change_id text not null,
    reviewer text not null,
    role text not null,
    token_id text,
    verdict text not null,
    comment text,
    reviewed_at text not null,
    -- Why an approval does not count any more.
    void_reason text,
    primary key (bucket, review_id)
);
create index component_review_by_change on component_review (bucket, org_id, change_id, review_id);
