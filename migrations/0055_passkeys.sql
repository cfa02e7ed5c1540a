-- Passkeys of users, and when a session was last confirmed with one.
create table passkey (
    bucket bigint not null,
    passkey_id text not null,
    org_id text not null,
    user_id text not null,
    credential_id text not null,
    public_key text not null,
    name text,
    use_count bigint not null,
    created_at text not null,
    used_at text,
    primary key (bucket, passkey_id)
);
create index passkey_by_user on passkey (bucket, org_id, user_id);
-- Who signs in knows the credential only.
create unique index passkey_by_credential on passkey (credential_id);

alter table user_session add column confirmed_at text;
-- Page to which a sign-in leads.
alter table sign_in_link add column leads_to text;
