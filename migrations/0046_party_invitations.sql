-- Invitations of parties that have no organization here. A row is in the bucket of the inviting organization. The
-- link is not stored: it is derived from the id.
create table party_invitation (
    bucket bigint not null,
    invitation_id text not null,
    org_id text not null,
    name text not null,
    email text not null,
    created_at text not null,
    expires_at text not null,
    -- The organization that was made for the party, its first key, and when.
    party_id text,
    key_id text,
    joined_at text,
    primary key (bucket, invitation_id)
);
create index party_invitation_by_id on party_invitation (invitation_id);
create index party_invitation_by_org on party_invitation (bucket, org_id, created_at);
create index party_invitation_by_party on party_invitation (party_id);
