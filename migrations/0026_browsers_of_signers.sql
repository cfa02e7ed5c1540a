-- Browsers in which a signer came to a document after the identity questions: the first is
-- the one in which they were answered.
create table kba_browser (
    bucket bigint not null,
    envelope_id text not null,
    position bigint not null,
    -- Of the cookie.
    hash text not null,
    org_id text not null,
    -- The signer at that time: another person may sign in their place later.
    email text not null,
    ip_address text,
    -- Null of the browser in which the questions were answered.
    rebound_at text,
    primary key (bucket, envelope_id, position, hash)
);
create index kba_browser_by_org on kba_browser (bucket, org_id);

-- When a fresh link or a copy was last mailed to a signer who asked for it.
alter table signer add column renewed_at text;
