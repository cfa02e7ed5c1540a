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
    -- Whether the page does not show the signing link, which goes to the mailbox of the visitor.
    verify_email bigint not null,
    -- The token of the link: its hash to find it by, and encrypted, because its managers may see it again.
    token_hash text not null,
    token text not null,
    created_by text not null,
    owner_email text,
    created_at text not null,
    closed_at text,
    -- When a visitor first found that the people do not fit the template any more.
    unavailable_at text,
    primary key (bucket, open_link_id)
);
create unique index open_link_by_token on open_link (bucket, token_hash);
create index open_link_by_template on open_link (bucket, org_id, template_id, open_link_id);

-- The newest record of each address of an open link. The customer has the address.
create table open_link_record (
    bucket bigint not null,
    org_id text not null,
    open_link_id text not null,
    customer_id text not null,
    envelope_id text not null,
    primary key (bucket, org_id, open_link_id, customer_id)
);

-- Wrong passcodes and records of open links within a time. `kind` says what is counted; the network is empty where all
-- networks count together.
create table open_link_count (
    bucket bigint not null,
    org_id text not null,
    open_link_id text not null,
    kind text not null,
    network text not null,
    number bigint not null,
    began_at text not null,
    primary key (bucket, org_id, open_link_id, kind, network)
);
