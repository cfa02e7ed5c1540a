-- Users of an organization, the links with which they sign in, and their sessions in browsers.
create table org_user (
    bucket bigint not null,
    user_id text not null,
    org_id text not null,
    email text not null,
    role text not null,
    status text not null,
    created_by text not null,
    created_at text not null,
    signed_in_at text,
    primary key (bucket, user_id)
);
create unique index org_user_by_email on org_user (bucket, org_id, email);
-- Who signs in knows the address only.
create index org_user_of_address on org_user (email);

-- The secret part of a link is derived from its id.
create table sign_in_link (
    bucket bigint not null,
    link_id text not null,
    org_id text not null,
    user_id text not null,
    created_at text not null,
    expires_at text not null,
    used_at text,
    primary key (bucket, link_id)
);
create index sign_in_link_by_id on sign_in_link (link_id);
create index sign_in_link_by_org on sign_in_link (bucket, org_id, user_id, created_at);

create table user_session (
    bucket bigint not null,
    session_id text not null,
    org_id text not null,
    user_id text not null,
    secret_hash text not null,
    created_at text not null,
    seen_at text not null,
    expires_at text not null,
    address text,
    browser text,
    primary key (bucket, session_id)
);
create unique index user_session_by_secret on user_session (bucket, secret_hash);
create index user_session_by_org on user_session (bucket, org_id, user_id);
create index user_session_expiring on user_session (expires_at);
