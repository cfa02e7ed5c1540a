-- A template whose fields or document are newer here than at its provider: nothing
-- is sent of it before the provider has them.
alter table template add column provider_stale bigint not null default 0;
