-- What a signer does (`signer`, `approver`, `witness`), or how a person who does not sign takes part
-- (`cc`, `viewer`).
alter table signer add column kind text not null default 'signer';
-- Place in the signing order; signers with an equal one sign in any order. Null: one after the other,
-- by position.
alter table signer add column turn bigint;
alter table room_submitter add column turn bigint;
-- Whether signers may name another person to sign in their place.
alter table envelope add column allow_delegation integer not null default 0;
-- Values that the sender prefilled, as one JSON object: a person who replaces a signer starts with them.
alter table room_submitter add column prefilled text;
