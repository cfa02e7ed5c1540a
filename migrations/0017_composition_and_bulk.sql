-- Templates that are made of others, packages of templates, and bulk send.

-- `library`: an organization's own. `document`: made for one envelope, batch or
-- composition. `copy`: of a package's member, at the provider of the package.
alter table template add column origin text not null default 'library';
-- The envelope, batch or package that it was made for, and what of: the same again
-- is the same template.
alter table template add column owner_id text;
alter table template add column source_key text;
-- Of a copy: digest of the source as it was copied.
alter table template add column source_content text;
-- What its author wrote it in: `pdf` or `word`.
alter table template add column source_format text not null default 'pdf';
alter table template add column pricing_table bigint not null default 0;
alter table template add column deleted_at text;
create unique index template_by_source on template (bucket, org_id, owner_id, source_key);
create index template_in_library on template (bucket, org_id, origin, template_id);

create table document_package (
    bucket bigint not null,
    package_id text not null,
    org_id text not null,
    name text not null,
    -- In the order of the document, as a JSON array.
    template_ids text not null,
    created_at text not null,
    updated_at text not null,
    primary key (bucket, package_id)
);
create index document_package_by_org on document_package (bucket, org_id, package_id);

create table bulk_batch (
    bucket bigint not null,
    batch_id text not null,
    org_id text not null,
    name text not null,
    document_source text not null,
    source_template_id text,
    source_package_id text,
    kba_required bigint not null,
    preserve_signing_order bigint not null,
    add_me_as_signer bigint not null,
    auto_vault_enabled bigint not null,
    terms_accepted_at text,
    terms_accepted_by text,
    tag_ids text not null,
    master_template_id text,
    provider_instance text,
    -- The master as it was submitted: the provider's id of its copy, and what is
    -- known of its roles and fields, as one JSON object.
    submitted_master text,
    status text not null,
    -- How often it was submitted.
    runs bigint not null,
    created_by text not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text,
    primary key (bucket, batch_id)
);
create index bulk_batch_by_org on bulk_batch (bucket, org_id, batch_id);

create table bulk_item (
    bucket bigint not null,
    item_id text not null,
    org_id text not null,
    batch_id text not null,
    position bigint not null,
    customer_id text not null,
    customer_name text not null,
    email text,
    status text not null,
    envelope_id text,
    error text,
    sent_at text,
    -- From when on it may be taken; of one that is being worked on, the end of the
    -- lease.
    run_at text not null,
    lease_epoch bigint not null,
    attempts bigint not null,
    primary key (bucket, item_id)
);
create index bulk_item_by_org on bulk_item (bucket, org_id);
create index bulk_item_by_batch on bulk_item (bucket, batch_id, status, position);
create unique index bulk_item_by_customer on bulk_item (bucket, batch_id, customer_id);

create index customer_by_org on customer (bucket, org_id, customer_id);

-- Whether a signed envelope is vaulted by itself: null is as the organization has it.
alter table envelope add column auto_vault bigint;
alter table envelope add column vault_in_terms_accepted_at text;
alter table envelope add column vault_in_terms_accepted_by text;
-- The batch it was made in.
alter table envelope add column bulk_batch text;
alter table envelope add column kba_required bigint not null default 0;
-- 0: nobody is invited by mail, as its signers sign in person.
alter table envelope add column send_email bigint not null default 1;
-- From the sender, for the invitation.
alter table envelope add column message text;
