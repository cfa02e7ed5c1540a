-- A signer or a substitute belongs to a group: a substitute may take the place of a signer of the group who has not signed.
alter table signer add column signing_group text;
-- Role of the signer whose signature a witness witnesses.
alter table signer add column witness_of text;
-- Whether the witness signs on the device of that signer.
alter table signer add column same_device bigint not null default 0;
alter table room_submitter add column witness_of text;
-- Name and postal address that the witness stated, as JSON.
alter table room_submitter add column witness text;
