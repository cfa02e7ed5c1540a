-- Distributes the tables over the workers of a Citus cluster, by bucket. Run it with psql
-- on the coordinator, as the owner of the tables: after `holdfast migrate` and before the
-- first node starts, and again after an upgrade that adds tables. Tables that are already
-- distributed stay unchanged.
--
-- A table with `bucket` as the first column of its key holds rows of organizations. The
-- other tables are small and stay on the coordinator, to which all nodes connect: API
-- keys, chores, the head and the tiles of the log, and the owners of buckets. So do the
-- passkeys, which are unique over all organizations.
create extension if not exists citus;

select format('select create_distributed_table(%L, %L)', c.oid::regclass, 'bucket')
from pg_index i
join pg_class c on c.oid = i.indrelid
join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
where i.indisprimary and i.indnkeyatts > 1 and a.attname = 'bucket'
    and c.relname <> 'passkey' and c.relnamespace = current_schema()::regnamespace
    and not exists (select from citus_tables t where t.table_name = c.oid::regclass)
order by c.relname
\gexec
