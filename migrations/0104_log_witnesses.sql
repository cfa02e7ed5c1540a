-- Newest head of the log that the quorum of its witnesses has cosigned, as a signed note with their lines.
alter table ledger_log add column cosigned text;
alter table ledger_log add column cosigned_at text;
-- Since when the newest head has lacked the quorum.
alter table ledger_log add column uncosigned_since text;

-- Witnesses that the heads of the log are offered to, as their last answers left them.
create table ledger_witness (
    name text not null,
    -- Size of the newest tree that the witness is known to have cosigned.
    tree_size bigint not null,
    -- Its line of the head of that size; null if only the size is known.
    cosignature text,
    failures bigint not null,
    next_at text not null,
    answered_at text,
    -- Why the last offer failed.
    problem text,
    -- Contradiction between the log and the witness, as JSON with both heads.
    conflict text,
    primary key (name)
);

-- Logs of others that this installation is a witness of: the newest head of each that it has cosigned.
create table witnessed_log (
    origin text not null,
    tree_size bigint not null,
    root_hash text not null,
    -- The head as a signed note, with this witness's line.
    checkpoint text not null,
    cosigned_at text not null,
    primary key (origin)
);

-- Heads that are signed with the key of their log and do not extend the cosigned one.
create table witnessed_conflict (
    origin text not null,
    tree_size bigint not null,
    root_hash text not null,
    cosigned text not null,
    refused text not null,
    at text not null,
    primary key (origin, tree_size, root_hash)
);
