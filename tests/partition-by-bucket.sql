-- Partitions the tenants' tables by bucket, which is the closest to shards that plain
-- PostgreSQL offers. Like Citus, it refuses a unique key without the bucket, so the passkeys
-- stay whole: a sign-in begins with nothing but the credential.
do $$
declare
    one record;
begin
    for one in
        select c.relname as name
        from pg_index i
        join pg_class c on c.oid = i.indrelid
        join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
        where i.indisprimary and i.indnkeyatts > 1 and a.attname = 'bucket'
            and c.relname <> 'passkey' and c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
    loop
        execute format('alter table %I rename to %I', one.name, 'whole_' || one.name);
        execute format(
            'create table %I (like %I including all) partition by hash (bucket)',
            one.name, 'whole_' || one.name
        );
        for part in 0..3 loop
            execute format(
                'create table %I partition of %I for values with (modulus 4, remainder %s)',
                one.name || '_' || part, one.name, part
            );
        end loop;
        execute format('insert into %I select * from %I', one.name, 'whole_' || one.name);
        execute format('drop table %I', 'whole_' || one.name);
    end loop;
end $$;
