-- Requests for passkeys to sign for the organization: a person with a key has to agree.
create table party_key_request (
    bucket bigint not null,
    passkey_id text not null,
    org_id text not null,
    requested_by text not null,
    -- Body of the registration, with the proof.
    body text not null,
    requested_at text not null,
    primary key (bucket, passkey_id)
);
create index party_key_request_by_org on party_key_request (bucket, org_id);
