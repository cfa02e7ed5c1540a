-- Sizes of the pages of a document by its SHA-256, as one component read them, so that the first visitor of
-- a form does not wait for the document to be read.
create table page_facts (
    bucket bigint not null,
    org_id text not null,
    sha256 text not null,
    component text not null,
    pages text not null,
    kept_at text not null,
    primary key (bucket, org_id, sha256)
);
create index page_facts_kept on page_facts (kept_at);
