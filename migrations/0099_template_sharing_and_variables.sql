-- Folder of a template, such as `Sales/Ohio`; none at the top.
alter table template add column folder text;
-- Roles and users that see the template, as JSON; none for all users of the organization.
alter table template add column shared_with text;
-- Packages with such a template are left out of the lists of other users.
create index template_shared on template (bucket, org_id) where shared_with is not null;

-- Word processor document with variables, and the defaults of these, as JSON. Each envelope's PDF is made of it.
alter table template add column word_source text;
alter table template_version add column word_source text;
