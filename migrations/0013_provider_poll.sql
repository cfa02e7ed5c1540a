-- Open envelopes are read back from their provider by time as well: a callback
-- can be lost.

-- When the envelope's submission was last read, or began to be.
alter table envelope add column looked_at text not null default '';
update envelope set looked_at = updated_at;
-- Since when the provider has been seen to hold the submission of this open
-- envelope archived.
alter table envelope add column archived_since text;
create index envelope_open_by_look on envelope (looked_at) where status in ('sent', 'viewed');

-- The links of a signer in whose place somebody else signs.
create index signing_link_by_signer on signing_link (bucket, envelope_id, position);
