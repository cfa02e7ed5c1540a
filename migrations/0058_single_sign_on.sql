-- Sign-in of an organization's users at its OpenID Connect issuer.
alter table organization add column sign_on_secret text;
-- Issuer at which the user of a session signed in.
alter table user_session add column issuer text;
