-- When a signer consented to signing electronically.
alter table room_submitter add column consented_at text;
