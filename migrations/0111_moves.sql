-- Moves of the installation between databases. These tables say what one database is, so that a move copies every
-- table but these and `migration`.
create table installation_move (
    move_id text not null,
    -- At the database that is left: moving, moved. At the new one: copying, verified, started, abandoned.
    state text not null,
    -- The other database, without user and password.
    place text not null,
    begun_at text not null,
    changed_at text not null,
    primary key (move_id)
);

-- What the new database has of each table.
create table installation_move_table (
    move_id text not null,
    table_name text not null,
    -- Key of the last row as a JSON array; null before the first.
    last_key text,
    is_complete bigint not null,
    primary key (move_id, table_name)
);
