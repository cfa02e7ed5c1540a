//! Stipulations of contracts as they are stored, and their waivers.

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::AgreedChange;
use crate::{ServiceError, events, lookup};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::funding::{Stipulation, StipulationState};
use holdfast_domain::id::{EnvelopeId, OrgId, TemplateId};
use holdfast_store::funding::{self as rows, TemplateStipulations};
use holdfast_store::{StoreError, WriteTransaction};

/// Metadata of an envelope whose document was made of a template.
const SOURCE_TEMPLATE: &str = "source_template_id";

/// Body of `PUT /partner/envelopes/{id}/stipulations` and `PUT /partner/templates/{id}/stipulations`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "stipulations": [
    { "kind": "proof_of_income", "field": "Pay stub" }, { "kind": "insurance" },
] }]))]
pub struct RequiredStipulations {
    /// All stipulations; those that are not here are removed. The state of the others stays.
    #[schemars(length(max = 50))]
    pub stipulations: Vec<RequiredStipulation>,
}

impl RequiredStipulations {
    /// Whether an attachment of this kind is required.
    pub fn has(&self, kind: &str) -> bool {
        self.stipulations.iter().any(|one| one.kind == kind)
    }
}

/// Attachment that is required.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RequiredStipulation {
    /// Lower-case letters, digits and underscores, such as `title_application`.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub kind: String,
    /// Field of a signer: the file that is attached there satisfies the stipulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub field: Option<String>,
    /// Envelope of the organization with an uploaded file that satisfies the stipulation. Not for templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope_id: Option<String>,
}

/// A stipulation with its state.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StipulationView {
    /// Kind, such as `proof_of_income`.
    pub kind: String,
    /// State.
    pub state: StipulationState,
    /// Field of a signer whose attached file satisfies it.
    pub field: Option<String>,
    /// Envelope with the uploaded file that satisfies it.
    pub envelope_id: Option<EnvelopeId>,
    /// SHA-256 of the file that satisfies it, lower-case hex.
    pub document_sha256: Option<String>,
    /// Name of that file.
    pub document_name: Option<String>,
    /// Reason of a waiver.
    pub reason: Option<String>,
    /// Who received the file, or waived it.
    pub settled_by: Option<String>,
    /// When that was.
    pub settled_at: Option<Timestamp>,
}

impl From<&Stipulation> for StipulationView {
    fn from(one: &Stipulation) -> Self {
        Self {
            kind: one.kind.clone(),
            state: one.state,
            field: one.field.clone(),
            envelope_id: one.document_envelope.clone(),
            document_sha256: one.document_sha256.clone(),
            document_name: one.document_name.clone(),
            reason: one.reason.clone(),
            settled_by: one.settled_by.clone(),
            settled_at: one.settled_at,
        }
    }
}

/// Returns the stored stipulations of an envelope, then those of its template that the envelope does not have.
pub async fn stored(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Vec<Stipulation>, StoreError> {
    let (org, id) = (&envelope.org, &envelope.id);
    let mut all = rows::stipulations(connection, org, id).await?;
    let source = envelope.metadata.get(SOURCE_TEMPLATE);
    let source = source.and_then(|id| TemplateId::parse(id.as_str()?));
    for template in source.iter().chain(&envelope.template) {
        let required = required_by(connection, org, template).await?;
        for one in required.stipulations {
            if !all.iter().any(|known| known.kind == one.kind) {
                all.push(Stipulation::open(id.clone(), one.kind, one.field));
            }
        }
    }

    Ok(all)
}

/// Returns the stipulations that envelopes of a template begin with.
pub async fn required_by(
    connection: &mut SqlConnection,
    org: &OrgId,
    template: &TemplateId,
) -> Result<RequiredStipulations, StoreError> {
    let set = rows::of_template(connection, org, template).await?;
    let required = set.map(|set| serde_json::from_value(set.stipulations).unwrap_or_default());
    Ok(required.unwrap_or_default())
}

/// Waiver of a stipulation.
pub struct Waiver<'a> {
    pub envelope: &'a EnvelopeId,
    pub kind: &'a str,
    pub reason: String,
    /// Actor who waives.
    pub by: &'a str,
    /// Request that others approved; none where one person waives.
    pub agreed: Option<AgreedChange<'a>>,
}

/// Waives a stipulation of an envelope. Returns all of them.
///
/// # Errors
///
/// `NotFound` for an unknown envelope, or a kind that it does not have; `Conflict` for one that is satisfied.
pub async fn waive(
    tx: &mut WriteTransaction,
    org: &OrgId,
    waiver: Waiver<'_>,
    now: Timestamp,
) -> Result<Vec<Stipulation>, ServiceError> {
    let envelope = lookup::lock_envelope(tx, org, waiver.envelope).await?;
    let mut all = stored(tx, &envelope).await?;
    let one = all.iter_mut().find(|one| one.kind == waiver.kind);
    let one = one.ok_or(ServiceError::NotFound("Stipulation"))?;
    if one.state != StipulationState::Open {
        return Err(ServiceError::Conflict(format!(
            "The stipulation {} is {} already",
            one.kind, one.state
        )));
    }

    one.state = StipulationState::Waived;
    one.reason = Some(waiver.reason);
    one.settled_by = Some(waiver.by.to_owned());
    one.settled_at = Some(now);
    let mut details = json!(StipulationView::from(&*one));
    if let Some(agreed) = &waiver.agreed {
        details["change_id"] = json!(agreed.change);
        details["approved_by"] = json!(agreed.approved_by);
    }

    rows::set_stipulations(tx, &envelope, &all).await?;
    let action = "envelope.stipulation_waived";
    events::record(tx, &envelope, waiver.by, action, details, now).await?;

    Ok(all)
}

/// Removes a stipulation of a template, and so of its envelopes that have none of that kind of their own.
///
/// # Errors
///
/// `NotFound` for a kind that the template does not have.
pub async fn drop_of_template(
    tx: &mut WriteTransaction,
    org: &OrgId,
    template: &TemplateId,
    kind: &str,
) -> Result<(), ServiceError> {
    let mut required = required_by(tx, org, template).await?;
    if !required.has(kind) {
        return Err(ServiceError::NotFound("Stipulation"));
    }

    required.stipulations.retain(|one| one.kind != kind);
    let set = TemplateStipulations {
        template: template.clone(),
        stipulations: json!(required),
    };
    Ok(rows::set_of_template(tx, org, &set).await?)
}
