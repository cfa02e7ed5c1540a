-- Tapes: tables that a party writes itself, compared with the contracts of its records.
create table tape (
    bucket bigint not null,
    tape_id text not null,
    org_id text not null,
    -- Name of the line or pool. The newest tapes of other names are searched for the same records.
    name text not null,
    -- `csv` or `jsonl`.
    format text not null,
    -- Stored file, as JSON.
    file text not null,
    map text not null,
    -- Part of the organization in the records; none for any part.
    part text,
    status text not null,
    -- Rows and unlisted records so far. A worker that finds another number was overtaken.
    done bigint not null default 0,
    -- Results so far, as JSON: enough to continue after a crash.
    progress text,
    -- Why the file is no tape for the map, as JSON.
    refusal text,
    -- Rows whose comparison was that of the tape before.
    reused bigint not null default 0,
    other_tapes bigint not null default 0,
    other_claims bigint not null default 0,
    -- Result, as JSON, and the number of the ledger's entry about it.
    summary text,
    ledger_sequence bigint,
    made_by text not null,
    created_at text not null,
    checked_at text,
    primary key (bucket, tape_id)
);
create index tape_of_org on tape (bucket, org_id, tape_id);

-- Results of rows, and behind the last line those of records that no row lists.
create table tape_row (
    bucket bigint not null,
    tape_id text not null,
    line bigint not null,
    org_id text not null,
    status text not null,
    -- Weight of the heaviest finding; none without findings.
    severity text,
    envelope_id text,
    -- 1 for the first row that lists its record.
    is_first bigint not null,
    -- Outcomes of the compared columns, one letter each.
    cells text not null,
    -- Findings of the comparison, of the tape alone, and of other tapes and claims; none if empty.
    findings text,
    repeated text,
    elsewhere text,
    -- Hash of row, facts and map.
    reuse text,
    primary key (bucket, tape_id, line)
);
create index tape_row_of_org on tape_row (bucket, org_id, tape_id);
create index tape_row_of_record on tape_row (bucket, tape_id, envelope_id) where is_first = 1;
create index tape_row_to_look_at on tape_row (bucket, tape_id, line) where status <> 'clean';

-- How the columns of tapes are read, by name.
create table tape_map (
    bucket bigint not null,
    org_id text not null,
    name text not null,
    document text not null,
    made_by text not null,
    updated_at text not null,
    primary key (bucket, org_id, name)
);
