-- Envelopes that wait for a signer who cannot be reached or identified are few among many: each search reads only its own.
create index signer_unreached on signer (bucket, org_id, envelope_id)
    where notice_failure is not null and completed_at is null;
create index kba_session_unpassed on kba_session (bucket, org_id, envelope_id)
    where status in ('failed', 'unavailable');
