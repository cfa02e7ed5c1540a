-- Web-app tokens that were revoked before they ended.
create table revoked_token (
    bucket bigint not null,
    token_id text not null,
    org_id text not null,
    revoked_at text not null,
    -- By then no clock takes it any more, and the row goes.
    expires_at text not null,
    primary key (bucket, token_id)
);
create index revoked_token_by_org on revoked_token (bucket, org_id);
create index revoked_token_ended on revoked_token (expires_at);

-- Keys of the log that were replaced: each as a note that the old key and the new one
-- have signed.
create table log_key_succession (
    position bigint not null,
    note text not null,
    at text not null,
    primary key (position)
);
