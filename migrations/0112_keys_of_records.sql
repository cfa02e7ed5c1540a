-- Covering, so that SQLite does not take the primary key for the smaller way and reads all keys of an organization.
drop index contract_fact_key_of_envelope;
create index contract_fact_key_by_envelope on contract_fact_key (bucket, envelope_id, org_id, key_name, key_value);
