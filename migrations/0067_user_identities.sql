-- Account of a user at an OpenID Connect issuer (Core 1.0, section 5.7: `iss` and `sub`, not the address). Users
-- of earlier releases get theirs with their next sign-in at the issuer.
alter table org_user add column issuer text;
alter table org_user add column subject text;
-- Last time at which the user showed a mailed link or a passkey of this installation.
alter table org_user add column proved_at text;
create unique index org_user_by_identity on org_user (bucket, org_id, issuer, subject);
-- Account with which a review was given, as JSON.
alter table component_review add column identity text;
