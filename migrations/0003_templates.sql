-- Templates: a document, its fields, and the counterpart at a signing provider.

create table template (
    bucket bigint not null,
    template_id text not null,
    org_id text not null,
    name text not null,
    external_id text,
    kba_required bigint not null,
    provider_instance text not null,
    provider_template text,
    document_key text,
    document_sha256 text,
    document_size bigint,
    fields text not null,
    created_at text not null,
    updated_at text not null,
    primary key (bucket, template_id)
);
create index template_by_org on template (bucket, org_id, template_id);
