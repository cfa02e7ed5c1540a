//! Trying a signing provider before it is activated: one template goes to the vendor and back.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::activation::{self, ActivationRequest};
use super::changes::permit_alone;
use super::probe::{REASON, settings_of};
use super::{ComponentManager, ComponentOwner, following, named, record};
use crate::documents::admit;
use crate::fields::provider_fields;
use crate::providers::instance::InstanceConfig;
use crate::{Caller, Core, ServiceError};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::providers::{ProviderError, SigningPre};
use holdfast_domain::component::{InstanceReference, Slot};
use holdfast_domain::id::{RequestId, TemplateId};
use holdfast_store::templates;

/// Body of `POST /component-slots/{slot}/try`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "component_id": "cmp_01jt8s5gq2e6m9x4k7w3c5d8fa", "instance": "acme-sign",
    "template_id": "tmpl_01jt8s5gq2e6m9x4k7w3c5d8fb",
}]))]
pub struct TryRequest {
    pub component_id: String,
    #[schemars(length(min = 1, max = 64))]
    pub instance: String,
    /// Settings; those of the instance if absent.
    pub config: Option<InstanceConfig>,
    /// Template of the organization with a document.
    pub template_id: String,
}

/// Result of a trial.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "ok": false, "fields_sent": 2, "fields_at_provider": null,
    "external_id": "trial-req_01jt8s5gq2e6m9x4k7w3c5d8fc", "provider_template_id": null,
    "steps": [{ "call": "create-template", "ok": false, "reason": "the provider answered 401 Unauthorized" }],
}]))]
pub struct TrialView {
    /// Whether every call succeeded, and the vendor has all fields.
    pub ok: bool,
    /// The calls, up to the first that failed. A template that was created is archived.
    pub steps: Vec<TrialStep>,
    pub fields_sent: usize,
    /// Number of fields that the vendor's template has; null if it could not be read.
    pub fields_at_provider: Option<usize>,
    /// Id that the vendor's template was created with.
    pub external_id: String,
    /// Id of the template at the vendor; null if none was created.
    pub provider_template_id: Option<String>,
}

/// A call of a trial.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TrialStep {
    /// Function of the slot's interface.
    pub call: &'static str,
    pub ok: bool,
    /// The plugin's reason, if it failed.
    pub reason: Option<String>,
}

/// Sends a template through a candidate: creates it at the vendor, reads it and archives it. Activates nothing.
///
/// # Errors
/// Where changes need approvals, a candidate is tried with settings of the request only, and not with the stored
/// secrets.
pub async fn try_out(
    core: &Core,
    management: &Arc<ComponentManager>,
    caller: &Caller,
    slot: Slot,
    request: TryRequest,
) -> Result<TrialView, ServiceError> {
    if slot != Slot::Signing {
        let why = "Only provider.signing has templates to try";
        return Err(ServiceError::Semantic(why.into()));
    }

    let (owner, org) = (ComponentOwner::from(caller), &caller.org);
    // Only stored secrets need the policy: the caller knows those that it sends.
    if request.config.is_none() {
        permit_alone(core, &mut *core.store.read().await?, &owner).await?;
    }

    let activation = ActivationRequest {
        component_id: request.component_id,
        config: request.config,
        instance: Some(request.instance),
        reason: None,
        effective_at: None,
    };
    let checked = activation::check(core, &owner, slot, activation).await?;

    let unknown = || ServiceError::NotFound("Template");
    let id = TemplateId::parse(&request.template_id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let template = templates::get(&mut connection, &caller.org, &id).await?;
    let template = template.filter(|template| caller.sees(template));
    let template = template.ok_or_else(unknown)?;
    drop(connection);
    let document = template.document.as_ref();
    let document =
        document.ok_or_else(|| ServiceError::Conflict("Template has no document".into()))?;
    let at = InstanceReference::own(org, &checked.instance);
    let config = settings_of(core, &owner, &checked);
    let config = config.ok_or_else(|| {
        ServiceError::Semantic("The instance has no settings: send them as `config`".into())
    })?;

    let artifact = following::artifact(core, management, &checked.component).await?;
    let plugin = core
        .components
        .provider_from::<SigningPre>(&artifact, org)?;
    let lease = || core.lease_with(slot, &at.to_string(), &config);
    let room = admit(
        core,
        &WorkOwner::new(org, template.id.as_str()),
        document.size.unsigned_abs(),
    )
    .await?;

    let pdf = core.files.get(document).await?;
    let fields = provider_fields(&template.fields);

    // A repeated trial is another template.
    let external_id = format!("trial-{}", RequestId::new());
    let mut trial = TrialView {
        ok: false,
        steps: Vec::new(),
        fields_sent: fields.len(),
        fields_at_provider: None,
        external_id,
        provider_template_id: None,
    };
    let mut details = json!({
        "component": named(&checked.component), "instance": checked.instance, "template_id": template.id,
        "external_id": trial.external_id,
    });

    // First, so that a template that a crash leaves at the vendor can be found.
    note(core, &owner, "component.trial", details.clone()).await?;
    let name = format!("Trial: {}", template.name);
    let created = plugin.create_template(lease(), &name, &trial.external_id, pdf, &fields);
    let created = created.await;
    let created = trial.note("create-template", created);
    // The vendor has the document. The other calls need no room for it.
    drop(room);

    if let Some(created) = created {
        let read = plugin.read_template(lease(), &created.template_id).await;
        let read = trial.note("read-template", read);
        trial.fields_at_provider = read.map(|read| read.fields.len());
        // Also after a failed read, so that no trial is left at the vendor.
        let archived = plugin.archive_template(lease(), &created.template_id);
        trial.note("archive-template", archived.await);
        trial.provider_template_id = Some(created.template_id);
    }

    trial.ok = trial.steps.iter().all(|step| step.ok)
        && trial.fields_at_provider == Some(trial.fields_sent);
    details["ok"] = json!(trial.ok);
    details["provider_template_id"] = json!(trial.provider_template_id);
    note(core, &owner, "component.tried", details).await?;

    Ok(trial)
}

async fn note(
    core: &Core,
    owner: &ComponentOwner,
    action: &str,
    details: Value,
) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    record(core, &mut tx, owner, action, details).await?;
    Ok(tx.commit().await?)
}

impl TrialView {
    fn note<T>(&mut self, call: &'static str, result: Result<T, ProviderError>) -> Option<T> {
        let reason = result.as_ref().err().map(ToString::to_string);
        let reason: Option<String> = reason.map(|reason| reason.chars().take(REASON).collect());
        self.steps.push(TrialStep {
            call,
            ok: reason.is_none(),
            reason,
        });
        result.ok()
    }
}
