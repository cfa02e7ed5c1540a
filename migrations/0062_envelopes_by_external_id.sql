-- The list of envelopes can be limited to an id of the partner.
create index envelope_by_external_id on envelope (bucket, org_id, external_id);
