//! Packages: ordered templates that are sent as one document.
//!
//! A package requires identity verification if any member does. Its document is then at the
//! verified provider instance, so members at another instance are copied there. A copy is made when
//! the package is written, and updated on use if its source's document or fields have changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::templates::composition::found;
use crate::templates::synced;
use holdfast_adapters::files::StorageArea as FileArea;
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::providers::ProviderError;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{PackageId, TemplateId};
use holdfast_domain::package::Package;
use holdfast_domain::template::{MadeFor, Origin, SourceFormat, Template};
use holdfast_platform::documents::admit;
use holdfast_platform::fields::provider_fields;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::providers::provider;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue};
use holdfast_store::{StoreError, packages, templates};

/// Maximum number of a package's members (specification, "Templates combined").
const MEMBERS: usize = 20;

/// Body of `POST /document-packages`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "name": "Vehicle sale",
    "template_ids": ["tmpl_01jdk7m3e8f4x9s2w5v6b0c1da", "tmpl_01jdk7m3e8f4x9s2w5v6b0c1de"],
}]))]
pub struct CreatePackage {
    #[schemars(length(min = 1, max = 500))]
    pub name: String,
    /// In the order of the document.
    #[schemars(length(min = 1, max = MEMBERS))]
    pub template_ids: Vec<String>,
}

/// Body of `PATCH /document-packages/{id}`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "name": "Vehicle sale and registration" }]))]
pub struct ChangePackage {
    #[schemars(length(min = 1, max = 500))]
    pub name: Option<String>,
    #[schemars(length(min = 1, max = MEMBERS))]
    pub template_ids: Option<Vec<String>>,
}

/// Package.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "package_id": "pkg_01jdk7m3e8f4x9s2w5v6b0c1dg", "name": "Vehicle sale", "kba_required": true,
    "provider_instance": "verified",
    "items": [{ "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "Contract",
                "kba_required": true, "provider_instance": "verified", "deleted": false }],
    "created_at": "2026-11-21T09:30:00.000Z", "updated_at": "2026-11-21T09:30:00.000Z",
}]))]
pub struct PackageView {
    pub package_id: PackageId,
    pub name: String,
    /// Whether any member requires identity questions.
    pub kba_required: bool,
    /// Provider instance of the package's document.
    pub provider_instance: String,
    /// In the order of the document.
    pub items: Vec<MemberView>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Member with the current attributes of its template.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MemberView {
    pub template_id: TemplateId,
    pub name: String,
    pub kba_required: bool,
    pub provider_instance: String,
    /// A package with a deleted member cannot be used until it is changed.
    pub deleted: bool,
}

/// Package with the templates of its members.
pub struct PackageMembers {
    pub package: Package,
    pub templates: Vec<Template>,
}

impl PackageMembers {
    async fn read(core: &Core, caller: &Caller, package: Package) -> Result<Self, ServiceError> {
        let templates = found(core, caller, &package.templates).await?;
        Ok(Self { package, templates })
    }

    fn kba_required(&self) -> bool {
        self.templates.iter().any(|member| member.kba_required)
    }

    fn view(&self, core: &Core) -> PackageView {
        let kba_required = self.kba_required();
        let member = |template: &Template| MemberView {
            template_id: template.id.clone(),
            name: template.name.clone(),
            kba_required: template.kba_required,
            provider_instance: template.provider_instance.clone(),
            deleted: template.deleted_at.is_some(),
        };

        PackageView {
            package_id: self.package.id.clone(),
            name: self.package.name.clone(),
            kba_required,
            provider_instance: core.signing_instance(&self.package.org, kba_required),
            items: self.templates.iter().map(member).collect(),
            created_at: self.package.created_at,
            updated_at: self.package.updated_at,
        }
    }
}

/// Creates a package.
pub async fn create(
    core: &Core,
    caller: &Caller,
    request: CreatePackage,
    answer: &ResponseRecorder<PackageView>,
) -> Result<PackageView, ServiceError> {
    let now = core.clock.now();
    let package = Package {
        id: PackageId::new(),
        org: caller.org.clone(),
        name: request.name,
        templates: members(&request.template_ids)?,
        created_at: now,
        updated_at: now,
    };
    let members = usable(core, caller, package).await?;
    // Asked before the transaction: a slow provider must not hold the database.
    let copies = missing_copies(core, &members).await?;

    let view = members.view(core);
    // Copies commit with their package: none exists without its owner.
    let mut tx = core.store.begin().await?;
    packages::insert(&mut tx, &members.package).await?;
    for copy in &copies {
        templates::insert(&mut tx, copy).await?;
    }

    answer.commit(tx, &view).await?;
    Ok(view)
}

/// Changes a package's name or members.
pub async fn change(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: ChangePackage,
) -> Result<PackageView, ServiceError> {
    // A package with a template that the caller does not see is not the caller's to change.
    let before = with_members(core, caller, id).await?.package;
    let now = core.clock.now();
    let mut after = before.clone();
    after.updated_at = now;
    if let Some(name) = request.name {
        after.name = name;
    }

    let members = match &request.template_ids {
        None => PackageMembers::read(core, caller, after).await?,
        Some(ids) => {
            after.templates = self::members(ids)?;
            usable(core, caller, after).await?
        }
    };
    // The members are unchanged. A copy that is missing is made on use.
    let copies = match request.template_ids {
        None => Vec::new(),
        Some(_) => missing_copies(core, &members).await?,
    };

    let mut tx = core.store.begin().await?;
    // Compare-and-swap: the second of two concurrent changes is refused.
    packages::replace(&mut tx, &before, &members.package, now).await?;
    for copy in &copies {
        templates::insert(&mut tx, copy).await?;
    }

    tx.commit().await?;
    Ok(members.view(core))
}

/// Returns a package of the caller's organization.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<PackageView, ServiceError> {
    Ok(with_members(core, caller, id).await?.view(core))
}

/// Returns a page of the packages of which the caller sees all templates, newest first, and their number.
pub async fn list(
    core: &Core,
    caller: &Caller,
    page: i64,
    limit: i64,
) -> Result<(Vec<PackageView>, i64), ServiceError> {
    let mut connection = core.store.read().await?;
    let reader = caller.template_reader();
    let (found, total) =
        packages::list(&mut connection, &caller.org, reader.as_ref(), page, limit).await?;
    // Members are read with connections of their own.
    drop(connection);

    let mut views = Vec::new();
    for package in found {
        views.push(
            PackageMembers::read(core, caller, package)
                .await?
                .view(core),
        );
    }

    Ok((views, total))
}

async fn read(core: &Core, caller: &Caller, id: &str) -> Result<Package, ServiceError> {
    let unknown = || ServiceError::NotFound("Package");
    let id = PackageId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let found = packages::get(&mut connection, &caller.org, &id).await?;
    found.ok_or_else(unknown)
}

/// Returns a package with its members' templates, including deleted ones. One with a template that the caller does not
/// see is unknown.
pub async fn with_members(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<PackageMembers, ServiceError> {
    let package = read(core, caller, id).await?;
    match PackageMembers::read(core, caller, package).await {
        Err(ServiceError::NotFound(_)) => Err(ServiceError::NotFound("Package")),
        members => members,
    }
}

/// Returns the sources of a document that keeps these members of the package, in the package's
/// order: each member itself, or its copy where identity verification requires one. Only the kept
/// members decide whether it does.
pub async fn kept(
    core: &Core,
    members: &PackageMembers,
    kept: &[&Template],
) -> Result<Vec<Template>, ServiceError> {
    let kba_required = kept.iter().any(|member| member.kba_required);
    let instance = core.signing_instance(&members.package.org, kba_required);
    let mut sources = Vec::new();
    for member in kept {
        sources.push(if needs_copy(member, kba_required, &instance) {
            fresh_copy(core, &members.package, member, &instance).await?
        } else {
            (*member).clone()
        });
    }

    Ok(sources)
}

/// Parses the template ids of a body and rejects duplicates.
fn members(ids: &[String]) -> Result<Vec<TemplateId>, ServiceError> {
    let mut members = Vec::new();
    let mut issues = Vec::new();
    for (index, text) in ids.iter().enumerate() {
        if ids[..index].contains(text) {
            issues.push(ValidationIssue::new(
                "duplicate_template",
                &["template_ids", &index.to_string()],
                "each template once",
                text.as_str(),
                "The template is in the package already",
            ));
        }

        members.push(TemplateId::parse(text).ok_or(ServiceError::NotFound("Template")));
    }

    if issues.is_empty() {
        members.into_iter().collect()
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

/// Checks that all members may be in a package.
async fn usable(
    core: &Core,
    caller: &Caller,
    package: Package,
) -> Result<PackageMembers, ServiceError> {
    let members = PackageMembers::read(core, caller, package).await?;
    let mut issues = Vec::new();
    for (index, member) in members.templates.iter().enumerate() {
        // A deleted template cannot be chosen any more, so it is answered like an unknown one.
        if member.deleted_at.is_some() {
            return Err(ServiceError::NotFound("Template"));
        }

        if member.source_format == SourceFormat::Word {
            issues.push(ValidationIssue::new(
                "word_template",
                &["template_ids", &index.to_string()],
                "a template that was made of a PDF",
                member.id.as_str(),
                "A template that was written in a word processor cannot be in a package",
            ));
        }
    }

    if issues.is_empty() {
        Ok(members)
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

fn needs_copy(member: &Template, kba_required: bool, instance: &str) -> bool {
    kba_required && member.provider_instance != instance
}

fn copy_of(members: &Package, member: &Template) -> MadeFor {
    MadeFor {
        owner: members.id.to_string(),
        source: member.id.to_string(),
    }
}

/// Creates, at the provider, copies of the members that need one and have none. The caller inserts
/// them with the package.
async fn missing_copies(
    core: &Core,
    members: &PackageMembers,
) -> Result<Vec<Template>, ServiceError> {
    let kba_required = members.kba_required();
    let instance = core.signing_instance(&members.package.org, kba_required);
    let mut copies = Vec::new();
    for member in &members.templates {
        if !needs_copy(member, kba_required, &instance) {
            continue;
        }

        let mut connection = core.store.read().await?;
        let made_for = copy_of(&members.package, member);
        let known = templates::made_for(&mut connection, &member.org, &made_for).await?;
        drop(connection);

        // The copy is from an earlier version of the package and may be out of date.
        if known.is_some() {
            fresh_copy(core, &members.package, member, &instance).await?;
            continue;
        }

        let mut copy = new_copy(member, made_for, &instance, core.clock.now());
        take_over(core, &mut copy, member).await?;
        let at_provider = create_at_provider(core, &copy).await?;
        // The provider has this content already, so the first use need not send it.
        copy.provider_template = Some(at_provider);
        copy.provider_stale = false;

        copies.push(copy);
    }

    Ok(copies)
}

/// Returns the member's copy, updated to the member's current content.
async fn fresh_copy(
    core: &Core,
    package: &Package,
    member: &Template,
    instance: &str,
) -> Result<Template, ServiceError> {
    let made_for = copy_of(package, member);
    let mut connection = core.store.read().await?;
    let known = templates::made_for(&mut connection, &package.org, &made_for).await?;
    drop(connection);
    let now = core.clock.now();
    let (mut copy, is_new) = match known {
        Some(copy) => (copy, false),
        // The member needs a copy only since its package was written.
        None => (new_copy(member, made_for, instance, now), true),
    };
    // The member may have been edited since the copy was made.
    if is_new || copy.copied_content.as_deref() != Some(&member.content()) {
        take_over(core, &mut copy, member).await?;
        let mut tx = core.store.begin().await?;
        if is_new {
            // Another request has inserted the copy first. A retry checks whether it is current.
            match templates::insert(&mut tx, &copy).await {
                Err(error) if error.is_unique_violation() => {
                    return Err(StoreError::Conflict.into());
                }
                inserted => inserted?,
            }
        } else {
            templates::copy_anew(&mut tx, &copy, now).await?
        }

        tx.commit().await?;
        copy.provider_stale = true;
    }

    synced(core, copy).await
}

fn new_copy(member: &Template, made_for: MadeFor, instance: &str, now: Timestamp) -> Template {
    let (org, name) = (member.org.clone(), member.name.clone());
    Template {
        // A copy exists only because its document is verified.
        kba_required: true,
        origin: Origin::Copy,
        made_for: Some(made_for),
        ..Template::new(org, name, instance.to_owned(), now)
    }
}

/// Copies document and fields, with their roles. Other settings are not copied.
async fn take_over(
    core: &Core,
    copy: &mut Template,
    member: &Template,
) -> Result<(), ServiceError> {
    let Some(document) = &member.document else {
        let name = &member.name;
        return Err(ServiceError::Conflict(format!(
            "Template {name} has no document"
        )));
    };

    let _room = admit(
        core,
        &WorkOwner::new(&copy.org, copy.id.as_str()),
        document.size.unsigned_abs(),
    )
    .await?;
    let pdf = core.files.get(document).await?;

    let (area, id) = (FileArea::Templates, copy.id.as_str());
    let put = core.files.put(area, &copy.org, id, pdf, "application/pdf");
    copy.document = Some(put.await?);
    copy.name.clone_from(&member.name);
    copy.fields.clone_from(&member.fields);
    copy.copied_content = Some(member.content());

    Ok(())
}

async fn create_at_provider(core: &Core, copy: &Template) -> Result<String, ServiceError> {
    let document = copy.document.as_ref();
    let document = document.ok_or_else(|| ProviderError::Rejected("it has no document".into()))?;
    let room = admit(
        core,
        &WorkOwner::new(&copy.org, copy.id.as_str()),
        document.size.unsigned_abs(),
    )
    .await?;

    let pdf = core.files.get(document).await?;
    // The memory reservation ends before the provider call, which may be slow.
    drop(room);
    let signing = provider(core, &copy.org, &copy.provider_instance)?;
    let fields = provider_fields(&copy.fields);
    let created = signing.create_template(&copy.name, copy.id.as_str(), pdf, &fields);
    let created = created.await?;
    // The handle ends here. A template in the signing room would be lost with it.
    signing.keep(core).await?;

    Ok(created.template_id)
}
