-- The score in an envelope's certificate: `compliant` beside it means only that there is one.
-- Null for records that earlier releases vaulted.
alter table envelope add column compliance_score bigint;
