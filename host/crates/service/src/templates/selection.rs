//! Selection of the templates that make up a document (specification, "KBA and template
//! composition"), shared by the field builder, sending and bulk send.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::templates as template_service;
use crate::templates::composition::{self, NewComposition, found};
use crate::templates::packages::{self, PackageMembers};
use crate::templates::pages::PageCache;
use crate::templates::sharing;
use crate::templates::variables::{self, VariableValues};
use holdfast_domain::hash::sha256;
use holdfast_domain::id::TemplateId;
use holdfast_domain::template::{MadeFor, Origin, Template, TemplateSharing};
use holdfast_platform::{Caller, Core, ServiceError};

/// Number of templates that can be merged (specification, "Limits").
const MERGED: std::ops::RangeInclusive<usize> = 2..=20;

/// Templates that make up a document: one, some of a package, or several.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct TemplateSelection {
    pub template_id: Option<String>,
    pub package_id: Option<String>,
    /// Members of the package to keep, at least one; all when absent.
    pub package_template_ids: Option<Vec<String>>,
    /// 2 to 20 templates, merged in this order.
    pub template_ids: Option<Vec<String>>,
    /// Values of the variables of `template_id`, by their names. A variable with a default needs none.
    pub variables: Option<VariableValues>,
}

impl TemplateSelection {
    /// Refuses combinations that exclude each other.
    pub fn check(&self) -> Result<(), ServiceError> {
        let refuse = |why: &str| Err(ServiceError::Malformed(why.into()));
        if self.template_id.is_some() && self.package_id.is_some() {
            return refuse("template_id cannot be combined with package_id");
        }
        if self.variables.is_some() && self.template_id.is_none() {
            return refuse("variables needs template_id");
        }

        if let Some(kept) = &self.package_template_ids {
            if self.package_id.is_none() {
                return refuse("package_template_ids needs package_id");
            }
            if kept.is_empty() {
                return refuse("package_template_ids needs at least one template");
            }
            if repeats(kept) {
                return refuse("package_template_ids names a template twice");
            }
        }

        if let Some(merged) = &self.template_ids {
            if self.template_id.is_some() || self.package_id.is_some() {
                return refuse("template_ids cannot be combined with template_id or package_id");
            }
            if !MERGED.contains(&merged.len()) {
                return refuse("template_ids needs 2 to 20 templates");
            }
            if repeats(merged) {
                return refuse("template_ids names a template twice");
            }
        }

        Ok(())
    }

    /// Reads the selected templates; none if nothing is selected.
    pub async fn read(
        &self,
        core: &Core,
        caller: &Caller,
    ) -> Result<Option<SelectedTemplates>, ServiceError> {
        self.check()?;
        if let Some(id) = &self.template_id {
            let template = template_service::get(core, caller, id).await?;
            variables::check_known(&template, self.variables.as_ref())?;
            let template = Box::new(template);
            return Ok(Some(SelectedTemplates::Template(
                template,
                self.variables.clone(),
            )));
        }
        if let Some(id) = &self.package_id {
            let members = packages::with_members(core, caller, id).await?;
            return Ok(Some(match &self.package_template_ids {
                None => SelectedTemplates::Package(all_of(members)?),
                Some(kept) => SelectedTemplates::Package(some_of(members, kept)?),
            }));
        }

        let Some(ids) = &self.template_ids else {
            return Ok(None);
        };

        let unknown = || ServiceError::NotFound("Template");
        let ids = ids
            .iter()
            .map(|id| TemplateId::parse(id).ok_or_else(unknown));
        let templates = found(core, caller, &ids.collect::<Result<Vec<_>, _>>()?).await?;
        // `found` returns deleted templates, too: documents that were sent still need them.
        if let Some(deleted) = templates.iter().find(|one| one.deleted_at.is_some()) {
            return Err(deleted_template(deleted));
        }

        Ok(Some(SelectedTemplates::Templates(templates)))
    }
}

fn repeats(ids: &[String]) -> bool {
    let mut seen = std::collections::HashSet::new();
    !ids.iter().all(|id| seen.insert(id))
}

fn deleted_template(template: &Template) -> ServiceError {
    ServiceError::Malformed(format!("Template {} was deleted", template.id))
}

fn all_of(members: PackageMembers) -> Result<KeptMembers, ServiceError> {
    // The caller did not name this template: the package has to be changed first.
    if members
        .templates
        .iter()
        .any(|member| member.deleted_at.is_some())
    {
        return Err(ServiceError::Conflict(
            "A template of the package was deleted".into(),
        ));
    }

    let kept = members.package.templates.clone();
    Ok(KeptMembers { members, kept })
}

fn some_of(members: PackageMembers, kept: &[String]) -> Result<KeptMembers, ServiceError> {
    let named = |id: &TemplateId| kept.iter().any(|kept| kept == id.as_str());
    for id in kept {
        if !members
            .package
            .templates
            .iter()
            .any(|member| member.as_str() == id)
        {
            return Err(ServiceError::Malformed(format!(
                "{id} is not a template of the package"
            )));
        }
    }

    // The order of the package counts, not that of the request.
    let mut in_order = Vec::new();
    for member in members.templates.iter().filter(|member| named(&member.id)) {
        if member.deleted_at.is_some() {
            return Err(deleted_template(member));
        }
        in_order.push(member.id.clone());
    }

    Ok(KeptMembers {
        members,
        kept: in_order,
    })
}

/// Package with the members that a document keeps.
pub struct KeptMembers {
    members: PackageMembers,
    /// In the package's order.
    kept: Vec<TemplateId>,
}

/// Selected templates of a document.
pub enum SelectedTemplates {
    /// A template, with values of its variables.
    Template(Box<Template>, Option<VariableValues>),
    Package(KeptMembers),
    Templates(Vec<Template>),
}

impl SelectedTemplates {
    /// Returns the id of the first template.
    pub fn any(&self) -> Option<&TemplateId> {
        self.templates().first().map(|template| &template.id)
    }

    /// Returns the templates themselves. Copies of a package's members are made in
    /// [`Self::compose`].
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Template(template, _) => vec![template],
            Self::Package(KeptMembers { members, kept }) => {
                let members = members.templates.iter();
                members.filter(|member| kept.contains(&member.id)).collect()
            }
            Self::Templates(templates) => templates.iter().collect(),
        }
    }

    /// Returns whether any of the templates requires identity questions.
    pub fn kba_required(&self) -> bool {
        self.templates()
            .iter()
            .any(|template| template.kba_required)
    }

    /// Returns a hash of the templates' current content (SHA-256, lower-case hex).
    pub fn content(&self) -> String {
        let contents: Vec<String> = self.templates().iter().map(|one| one.content()).collect();
        sha256(contents.join(" ").as_bytes())
    }

    /// Returns a name of the source. The same selection always has the same name.
    pub fn source(&self) -> String {
        // The ids are in the order of the document: another order is another document.
        let ids: Vec<&str> = self.templates().iter().map(|one| one.id.as_str()).collect();
        match self {
            Self::Template(template, values) if template.word_source.is_some() => {
                // With other values it is another document.
                let values = json!([template.variables(), values]).to_string();
                format!(
                    "template {} with {}",
                    template.id,
                    sha256(values.as_bytes())
                )
            }
            Self::Template(..) => format!("template {}", ids.join(" ")),
            Self::Package(kept) => {
                format!("package {} {}", kept.members.package.id, ids.join(" "))
            }
            Self::Templates(_) => format!("templates {}", ids.join(" ")),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Template(template, _) => template.name.clone(),
            Self::Package(kept) => kept.members.package.name.clone(),
            Self::Templates(templates) => {
                // A name has at most 500 characters, as one that a caller gives.
                let names: Vec<&str> = templates.iter().map(|one| one.name.as_str()).collect();
                names.join(", ").chars().take(500).collect()
            }
        }
    }

    /// Composes a template of the selection.
    pub async fn compose(
        &self,
        core: &Core,
        pages: &Arc<PageCache>,
        caller: &Caller,
        name: Option<String>,
        kba_required: bool,
        made_for: Option<MadeFor>,
    ) -> Result<Template, ServiceError> {
        let composition = NewComposition {
            name: name.unwrap_or_else(|| self.name()),
            kba_required,
            may_decline: self
                .templates()
                .into_iter()
                .all(|template| template.may_decline),
            // The first that has a plan: a package has one.
            reminders: self
                .templates()
                .into_iter()
                .find_map(|template| template.reminders),
            // A document without an owner is a template of the library.
            origin: match made_for {
                None => Origin::Library,
                Some(_) => Origin::Document,
            },
            // A template of the library is not seen by more users than its sources.
            shared_with: match made_for {
                None => sharing::of_sources(caller, &self.templates()),
                Some(_) => TemplateSharing::default(),
            },
            made_for,
        };
        if let Self::Template(template, values) = self
            && template.word_source.is_some()
        {
            let values = values.as_ref();
            return variables::filled(core, pages, caller, template, values, composition).await;
        }

        // A package may need copies of its members at the verified provider.
        let sources = match self {
            Self::Package(kept) => packages::kept(core, &kept.members, &self.templates()).await?,
            _ => self.templates().into_iter().cloned().collect(),
        };
        composition::of_templates(core, pages, caller, &sources, composition).await
    }
}
