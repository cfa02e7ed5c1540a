-- Templates keep the documents and fields that another version replaced.
alter table template add column version bigint not null default 1;
-- Who made the present version, and when; null in templates of earlier releases.
alter table template add column version_by text;
alter table template add column version_at text;

create table template_version (
    bucket bigint not null,
    template_id text not null,
    number bigint not null,
    org_id text not null,
    made_by text,
    made_at text not null,
    document_key text not null,
    document_sha256 text not null,
    document_size bigint not null,
    document_repair text,
    fields text not null,
    primary key (bucket, template_id, number)
);
-- A stored document is kept while a version names it.
create index template_version_by_document on template_version (bucket, org_id, document_key);

-- The anchors of a template's fields are in the decisions that placed them.
create index placement_decision_by_template on placement_decision (bucket, template_id, decision_id);

-- Words by which an organization sorts its templates: a JSON array.
alter table template add column tags text not null default '[]';
