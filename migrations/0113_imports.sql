-- Imports: documents that were signed in another system, from an archive of files with a manifest.
create table record_import (
    bucket bigint not null,
    import_id text not null,
    org_id text not null,
    -- Layout of the archive: whose export it is.
    layout text not null,
    -- Stored archive, as JSON. The object is deleted at the end.
    file text not null,
    -- Name and e-mail address of the customer of rows that name none, as JSON.
    customer text,
    status text not null,
    -- Rows of the archive, and those that are done. A worker that finds another number was overtaken.
    planned bigint not null,
    done bigint not null default 0,
    imported bigint not null default 0,
    duplicates bigint not null default 0,
    failed bigint not null default 0,
    -- Runs that ended with a defect of the stored archive. After a few of them the import has failed.
    failures bigint not null default 0,
    -- Why the import was given up, as JSON.
    refusal text,
    made_by text not null,
    -- Creator of the records.
    creator text not null,
    created_at text not null,
    finished_at text,
    primary key (bucket, import_id)
);
create index record_import_of_org on record_import (bucket, org_id, import_id);

-- Results of rows.
create table record_import_row (
    bucket bigint not null,
    import_id text not null,
    -- Place of the row in the archive, from 1.
    number bigint not null,
    org_id text not null,
    -- Line of the manifest; 0 without one.
    line bigint not null,
    -- Document in the archive; empty if the row names none.
    file text not null,
    status text not null,
    -- The record; of a duplicate the one that has the document already.
    envelope_id text,
    document_sha256 text,
    -- Counts of the signatures in the document, as JSON.
    signatures text,
    -- Why there is no record.
    code text,
    message text,
    primary key (bucket, import_id, number)
);
create index record_import_row_of_record on record_import_row (bucket, envelope_id);
-- The record of a document that was imported before.
create index record_import_row_of_document on record_import_row (bucket, org_id, document_sha256)
    where status = 'imported';
