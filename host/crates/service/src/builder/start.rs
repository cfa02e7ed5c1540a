//! Starts a builder session: selects the template to edit, or creates it from the named source
//! (specification, "KBA and template composition", and its rows for `POST /esign/builder-session`).

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AUDIENCE, BuilderClaims, is_console};
use crate::bulk;
use crate::envelopes::creation::check_return_url;
use crate::templates::built::document_of;
use crate::templates::composition::{self, NewComposition, made_before};
use crate::templates::pages::PageCache;
use crate::templates::selection::{SelectedTemplates, TemplateSelection};
use crate::templates::synced;
use holdfast_domain::bulk::{Batch, DocumentSource};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, EnvelopeKind, EnvelopeStatus};
use holdfast_domain::id::{RequestId, TemplateId};
use holdfast_domain::template::{MadeFor, Origin, Template, TemplateSharing};
use holdfast_platform::access::jwt;
use holdfast_platform::access::{AccessState, BeginningCredential};
use holdfast_platform::lookup;
use holdfast_platform::organizations;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{StoreError, envelopes, templates};

/// Lifetime of a session.
const LIFE: Duration = Duration::from_secs(3600);
/// Name of a document without one.
const UNNAMED: &str = "New document";

/// Body of `POST /esign/builder-session`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da" }]))]
pub struct StartSession {
    #[serde(flatten)]
    pub selection: TemplateSelection,
    /// Edits the document of this envelope.
    pub envelope_id: Option<String>,
    /// Edits the master template of this batch.
    pub batch_id: Option<String>,
    /// Name of the document.
    #[schemars(length(min = 1, max = 500))]
    pub template_name: Option<String>,
    /// Whether signers of a new document must answer identity questions.
    pub kba_required: Option<bool>,
    /// Page to which the builder leads back, with `template_id` in its query: one of the console, or of an
    /// origin in the organization's `return_origins`.
    #[schemars(url, length(max = 2000))]
    pub return_url: Option<String>,
}

/// Issued session with its URL.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "session_id": "req_01jdk7m3e8f4x9s2w5v6b0c1df",
    "builder_url": "https://holdfast.example/builder#token=eyJ0eXAiOiJKV1Qi…",
    "expires_at": "2026-11-21T10:30:00.000Z", "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da",
    "kba_required": false, "provider_instance": "embedded", "roles": ["Buyer"],
}]))]
pub struct IssuedSession {
    pub session_id: RequestId,
    pub builder_url: String,
    pub expires_at: Timestamp,
    pub template_id: TemplateId,
    pub kba_required: bool,
    pub provider_instance: String,
    /// Parties in signing order.
    pub roles: Vec<String>,
}

impl StartSession {
    fn check(&self) -> Result<(), ServiceError> {
        let refuse = |why: &str| Err(ServiceError::Malformed(why.into()));
        let selection = &self.selection;
        if self.batch_id.is_some() && self.envelope_id.is_some() {
            return refuse("batch_id cannot be combined with envelope_id");
        }
        if self.batch_id.is_some() && selection.package_template_ids.is_some() {
            return refuse("package_template_ids cannot be used on a batch");
        }
        if self.batch_id.is_some() && selection.template_ids.is_some() {
            return refuse("template_ids cannot be used on a batch");
        }

        // Templates say themselves whether their signers are asked, and a session cannot change it.
        let from_templates = selection.template_id.is_some() || selection.package_id.is_some();
        if self.kba_required.is_some() && from_templates {
            return refuse("kba_required cannot be combined with template_id or package_id");
        }

        selection.check()?;
        let nothing = self.batch_id.is_none()
            && self.envelope_id.is_none()
            && !from_templates
            && selection.template_ids.is_none()
            && self.template_name.is_none();
        if nothing {
            return refuse(
                "Name an envelope, a batch, a template, a package or templates, or give \
                 template_name for a new document",
            );
        }

        Ok(())
    }
}

/// Starts a session of the field builder.
pub async fn start(
    core: &Core,
    access: &AccessState,
    pages: &Arc<PageCache>,
    caller: &Caller,
    request: &StartSession,
) -> Result<IssuedSession, ServiceError> {
    request.check()?;
    let organization = organizations::read(core, &caller.org).await?;
    // An address that is not registered could lead the author to a foreign page.
    let elsewhere = request.return_url.as_deref();
    let elsewhere = elsewhere.filter(|url| !is_console(core, url));
    check_return_url(elsewhere, &organization)?;
    let template = if let Some(id) = &request.batch_id {
        for_batch(core, pages, caller, id, request).await?
    } else if let Some(id) = &request.envelope_id {
        for_envelope(core, pages, caller, id, request).await?
    } else {
        for_library(core, pages, caller, request).await?
    };

    let session_id = RequestId::new();
    let expires_at = core.clock.now() + LIFE;
    let claims = BuilderClaims {
        sub: caller.creator(),
        org: template.org.clone(),
        template: template.id.clone(),
        jti: session_id.clone(),
        return_url: request.return_url.clone(),
        aud: AUDIENCE.into(),
        exp: expires_at.as_seconds(),
        begun: BeginningCredential::sealed(core, caller),
        role: caller.role,
    };

    let token = jwt::issue(&access.builder_keys, &claims)?;
    Ok(IssuedSession {
        session_id,
        // The token is in the fragment of the URL, which browsers do not send to servers.
        builder_url: format!("{}/builder#token={token}", core.config.public_url()),
        expires_at,
        roles: template.roles().into_iter().map(str::to_owned).collect(),
        template_id: template.id,
        kba_required: template.kba_required,
        provider_instance: template.provider_instance,
    })
}

/// Returns a template of the library: the named one, or a new one.
async fn for_library(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    request: &StartSession,
) -> Result<Template, ServiceError> {
    let name = request.template_name.clone();
    let wanted = request.kba_required.unwrap_or_default();
    match request.selection.read(core, caller).await? {
        Some(SelectedTemplates::Template(template, _)) => Ok(*template),
        Some(several) => {
            // A request can add identity questions, but not take away those of a member.
            let kba_required = several.kba_required() || wanted;
            let new = several
                .compose(core, pages, caller, name, kba_required, None)
                .await?;
            synced(core, new).await
        }
        None => {
            let new = NewComposition {
                name: name.unwrap_or_else(|| UNNAMED.into()),
                kba_required: wanted,
                may_decline: true,
                reminders: None,
                origin: Origin::Library,
                made_for: None,
                shared_with: TemplateSharing::default(),
            };
            composition::empty(core, caller, new).await
        }
    }
}

/// Returns the master template of a batch. The same source always gives the same one.
async fn for_batch(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    id: &str,
    request: &StartSession,
) -> Result<Template, ServiceError> {
    let batch = bulk::get(core, caller, id).await?;
    bulk::check_open(core, &batch).await?;
    check_source(&batch, request)?;
    let source = match batch.source {
        DocumentSource::Template => TemplateSelection {
            template_id: batch.source_template.as_ref().map(ToString::to_string),
            ..TemplateSelection::default()
        },
        DocumentSource::Package => TemplateSelection {
            package_id: batch.source_package.as_ref().map(ToString::to_string),
            ..TemplateSelection::default()
        },
        DocumentSource::New => TemplateSelection::default(),
    };

    // A batch's source never changes, so the name can be constant.
    let made_for = MadeFor {
        owner: batch.id.to_string(),
        source: "master".into(),
    };
    let name = request.template_name.clone();
    // An author may have edited the master. Composing it again would lose that.
    let master = match current_master(core, &batch).await? {
        // A template of the library, which is not shared with every user.
        Some(master) if !caller.sees(&master) => return Err(ServiceError::NotFound("Template")),
        Some(master) => Some(master),
        None => made_before(core, &caller.org, &made_for).await?,
    };
    let master = match master {
        Some(master) => master,
        None => match source.read(core, caller).await? {
            Some(selected) => {
                let kba_required = selected.kba_required();
                let made_for = Some(made_for);
                selected
                    .compose(core, pages, caller, name, kba_required, made_for)
                    .await?
            }
            None => {
                let new = NewComposition {
                    // A batch without a source begins with an empty document, which the author attaches.
                    name: name.unwrap_or_else(|| batch.name.clone()),
                    kba_required: batch.kba_required,
                    may_decline: true,
                    reminders: None,
                    origin: Origin::Document,
                    made_for: Some(made_for),
                    shared_with: TemplateSharing::default(),
                };
                composition::empty(core, caller, new).await?
            }
        },
    };

    bulk::set_master(core, &batch, &master).await?;
    synced(core, master).await
}

/// Returns the batch's current master template, if it still exists.
async fn current_master(core: &Core, batch: &Batch) -> Result<Option<Template>, ServiceError> {
    let Some(master) = &batch.master else {
        return Ok(None);
    };
    let mut connection = core.store.read().await?;
    Ok(templates::get(&mut connection, &batch.org, master).await?)
}

/// Checks that the document named in the request is the batch's.
fn check_source(batch: &Batch, request: &StartSession) -> Result<(), ServiceError> {
    let refuse = |why: &str| Err(ServiceError::Malformed(why.into()));
    let is = |known: Option<&str>, named: &String| known == Some(named.as_str());
    if let Some(named) = &request.selection.template_id
        && !is(
            batch.source_template.as_ref().map(TemplateId::as_str),
            named,
        )
        && !is(batch.master.as_ref().map(TemplateId::as_str), named)
    {
        return refuse("template_id is not the batch's template");
    }

    let package = batch.source_package.as_ref().map(ToString::to_string);
    if let Some(named) = &request.selection.package_id
        && !is(package.as_deref(), named)
    {
        return refuse("package_id is not the batch's package");
    }
    if request
        .kba_required
        .is_some_and(|wanted| wanted != batch.kba_required)
    {
        return refuse("kba_required is a setting of the batch");
    }

    Ok(())
}

/// Returns the document of an unsent envelope: made of templates, of the attached file, or new.
async fn for_envelope(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    id: &str,
    request: &StartSession,
) -> Result<Template, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    let selected = request.selection.read(core, caller).await?;
    check_unsent(&envelope)?;
    let template = document_of(
        core,
        pages,
        caller,
        &envelope,
        selected.as_ref(),
        request.template_name.clone(),
        request.kba_required,
    )
    .await?;
    // An edited document stays the envelope's. Only another source replaces it.
    if envelope.template.as_ref() != Some(&template.id) {
        let mut tx = core.store.begin().await?;
        let now = core.clock.now();

        // Composing took a while: another request may have changed the envelope since.
        let is = envelopes::lock(&mut tx, &envelope.org, &envelope.id).await?;
        let same = |is: &Envelope| is.upload == envelope.upload && is.template == envelope.template;
        if !is.is_some_and(|is| same(&is)) {
            return Err(StoreError::Conflict.into());
        }

        envelopes::set_template(&mut tx, &envelope, &template, now).await?;
        tx.commit().await?;
    }

    synced(core, template).await
}

fn check_unsent(envelope: &Envelope) -> Result<(), ServiceError> {
    use EnvelopeStatus::{Pending, Preparing, Uploaded};

    if envelope.batch.is_some() {
        return Err(ServiceError::Conflict(
            "The document of a bulk batch's envelope is the batch's".into(),
        ));
    }
    if envelope.kind == EnvelopeKind::Paper {
        return Err(ServiceError::Conflict(
            "A paper envelope is already signed and has no fields".into(),
        ));
    }

    match envelope.status {
        Pending | Uploaded | Preparing => Ok(()),
        status => Err(ServiceError::Conflict(format!(
            "Cannot edit envelope with status: {status}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refusal(request: Value) -> Option<String> {
        let request: StartSession = serde_json::from_value(request).unwrap();
        request.check().err().map(|error| error.to_string())
    }

    #[test]
    fn every_conflict_of_builder_options_has_its_own_message() {
        for (request, expected) in [
            (
                json!({ "batch_id": "b", "envelope_id": "e" }),
                "batch_id cannot be combined with envelope_id",
            ),
            (
                json!({ "batch_id": "b", "package_id": "p", "package_template_ids": ["a"] }),
                "package_template_ids cannot be used on a batch",
            ),
            (
                json!({ "package_id": "p", "package_template_ids": [] }),
                "package_template_ids needs at least one template",
            ),
            (
                json!({ "package_template_ids": ["a"] }),
                "package_template_ids needs package_id",
            ),
            (
                json!({ "batch_id": "b", "template_ids": ["a", "b"] }),
                "template_ids cannot be used on a batch",
            ),
            (
                json!({ "template_id": "t", "template_ids": ["a", "b"] }),
                "template_ids cannot be combined with template_id or package_id",
            ),
            (
                json!({ "package_id": "p", "template_ids": ["a", "b"] }),
                "template_ids cannot be combined with template_id or package_id",
            ),
            (
                json!({ "template_ids": ["a", "b", "a"] }),
                "template_ids names a template twice",
            ),
            (
                json!({ "template_ids": ["a"] }),
                "template_ids needs 2 to 20 templates",
            ),
            (
                json!({ "template_id": "t", "package_id": "p" }),
                "template_id cannot be combined with package_id",
            ),
            (
                json!({ "template_id": "t", "kba_required": false }),
                "kba_required cannot be combined with template_id or package_id",
            ),
            (
                json!({ "package_id": "p", "kba_required": true }),
                "kba_required cannot be combined with template_id or package_id",
            ),
        ] {
            assert_eq!(
                refusal(request.clone()).as_deref(),
                Some(expected),
                "{request}"
            );
        }

        assert!(refusal(json!({})).is_some());
        assert_eq!(
            refusal(json!({ "template_name": "New", "kba_required": true })),
            None
        );
        assert_eq!(refusal(json!({ "template_ids": ["a", "b"] })), None);
    }
}
