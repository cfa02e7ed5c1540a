-- Envelopes that a person looks for are few among many: each of these searches reads only its own.
create index envelope_expiring_of_org on envelope (bucket, org_id, status, expires_at)
    where status in ('pending', 'uploaded', 'preparing', 'sent', 'viewed');
create index envelope_unpaid on envelope (bucket, org_id, status, envelope_id)
    where payment_status = 'requires_payment';
create index envelope_below on envelope (bucket, org_id, status, envelope_id)
    where compliance_score < 100;
create index vault_intent_stopped on vault_intent (bucket, envelope_id)
    where failed_step is not null;
