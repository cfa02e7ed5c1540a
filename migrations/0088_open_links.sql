-- Open links of templates. Whoever opens one becomes signer of a record of their own.
create table open_link (
    bucket bigint not null,
    open_link_id text not null,
    org_id text not null,
    template_id text not null,
    name text not null,
    -- Role of the template that the visitor takes, and the fixed people of the other roles (JSON).
    role text not null,
    signers text not null,
    expires_at text not null,
    record_limit bigint not null,
    used bigint not null,
    -- Passcode, encrypted.
    code text,
    -- Addresses that are told of each new record (JSON).
    notify text not null,
    -- Whether the visitor gets the signing link by mail only.
    verify_email bigint not null,
    -- The token of the link: its hash to find it by, and encrypted, because its managers may see it again.
    token_hash text not null,
    token text not null,
    created_by text not null,
    owner_email text,
    created_at text not null,
    closed_at text,
    primary key (bucket, open_link_id)
);
create unique index open_link_by_token on open_link (bucket, token_hash);
create index open_link_by_template on open_link (bucket, org_id, template_id, open_link_id);

-- Wrong passcodes of open links, by network.
create table open_link_failure (
    bucket bigint not null,
    org_id text not null,
    open_link_id text not null,
    network text not null,
    failures bigint not null,
    began_at text not null,
    primary key (bucket, org_id, open_link_id, network)
);
