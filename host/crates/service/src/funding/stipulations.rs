//! Stipulations: attachments that the funding of a contract depends on. A file that a signer attached, an uploaded file
//! or a waiver with a reason satisfies one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::invalid;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::funding::{Stipulation, StipulationState};
use holdfast_domain::id::{EnvelopeId, TemplateId};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, ServiceError, events, lookup};
use holdfast_store::funding::{self as rows, TemplateStipulations};
use holdfast_store::{SqlConnection, StoreError, envelopes, templates};

/// Metadata of an envelope whose document was made of a template.
const SOURCE_TEMPLATE: &str = "source_template_id";
/// Longest kind, in bytes.
const KIND: usize = 64;

/// Body of `PUT /partner/envelopes/{id}/stipulations` and `PUT /partner/templates/{id}/stipulations`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "stipulations": [
    { "kind": "proof_of_income", "field": "Pay stub" }, { "kind": "insurance" },
] }]))]
pub struct RequiredStipulations {
    /// All stipulations; those that are not here are removed. The state of the others stays.
    #[schemars(length(max = 50))]
    pub stipulations: Vec<RequiredStipulation>,
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

/// Body of `POST /partner/envelopes/{id}/stipulations/{kind}/waiver`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "reason": "Employer confirmed the income by telephone." }]))]
pub struct WaiverForm {
    /// Why it is waived.
    #[schemars(length(min = 1, max = 1000))]
    pub reason: String,
}

/// Stipulations with their states.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{ "stipulations": [{
    "kind": "proof_of_income", "state": "received", "field": "Pay stub", "envelope_id": null,
    "document_sha256": "9f86…", "document_name": "stub.pdf", "reason": null, "settled_by": null, "settled_at": null,
}] }]))]
pub struct StipulationsView {
    /// The stipulations, in their order.
    pub stipulations: Vec<StipulationView>,
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

impl From<&[Stipulation]> for StipulationsView {
    fn from(all: &[Stipulation]) -> Self {
        Self {
            stipulations: all.iter().map(StipulationView::from).collect(),
        }
    }
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

/// Returns the stipulations of an envelope: its own and those of its template, with the files that signers attached.
pub async fn of_envelope(
    core: &Core,
    envelope: &Envelope,
) -> Result<Vec<Stipulation>, ServiceError> {
    let mut connection = core.store.read().await?;
    let mut all = stored(&mut connection, envelope).await?;
    drop(connection);

    let Some(submission) = lookup::room_submission(envelope) else {
        return Ok(all);
    };
    let files = core.room().attachments(&envelope.org, submission).await?;
    for one in &mut all {
        let mut files = files.iter();
        // A file of a signer who has not signed may still be exchanged.
        let found =
            files.find(|file| file.is_final && Some(&file.file.field) == one.field.as_ref());
        if let Some(found) = found.filter(|_| one.state == StipulationState::Open) {
            one.state = StipulationState::Received;
            one.document_sha256 = Some(found.file.sha256.clone());
            one.document_name = Some(found.file.name.clone());
        }
    }

    Ok(all)
}

/// Returns the stored stipulations of an envelope, then those of its template that the envelope does not have.
async fn stored(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Vec<Stipulation>, StoreError> {
    let (org, id) = (&envelope.org, &envelope.id);
    let mut all = rows::stipulations(connection, org, id).await?;
    let source = envelope.metadata.get(SOURCE_TEMPLATE);
    let source = source.and_then(|id| TemplateId::parse(id.as_str()?));
    for template in source.iter().chain(&envelope.template) {
        let Some(set) = rows::of_template(connection, org, template).await? else {
            continue;
        };
        let required: RequiredStipulations =
            serde_json::from_value(set.stipulations).unwrap_or(RequiredStipulations {
                stipulations: Vec::new(),
            });
        for one in required.stipulations {
            if !all.iter().any(|known| known.kind == one.kind) {
                all.push(Stipulation::open(id.clone(), one.kind, one.field));
            }
        }
    }

    Ok(all)
}

/// Lists the stipulations of an envelope.
pub async fn list(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<StipulationsView, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    Ok(of_envelope(core, &envelope).await?.as_slice().into())
}

/// Replaces the stipulations of an envelope.
///
/// # Errors
///
/// `Invalid` for a kind that is named twice or malformed, or an envelope without an uploaded file.
pub async fn set(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: RequiredStipulations,
    answer: &ResponseRecorder<StipulationsView>,
) -> Result<StipulationsView, ServiceError> {
    check(&request)?;
    let id = lookup::envelope(core, caller, id).await?.id;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = lookup::lock_envelope(&mut tx, &caller.org, &id).await?;
    let before = rows::stipulations(&mut tx, &caller.org, &id).await?;

    let mut all = Vec::new();
    for (at, required) in request.stipulations.into_iter().enumerate() {
        let mut kept = before.iter();
        let kept = kept.find(|one| one.kind == required.kind).cloned();
        let mut one =
            kept.unwrap_or_else(|| Stipulation::open(id.clone(), required.kind.clone(), None));
        one.field = required.field;
        if let Some(source) = &required.envelope_id {
            receive(&mut tx, caller, &mut one, at, source, now).await?;
        }
        all.push(one);
    }

    rows::set_stipulations(&mut tx, &envelope, &all).await?;
    let view = StipulationsView::from(all.as_slice());
    let details = json!(view);
    let action = "envelope.stipulations_set";
    events::record(&mut tx, &envelope, &caller.actor, action, details, now).await?;
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Satisfies a stipulation by the uploaded file of another envelope of the organization.
async fn receive(
    connection: &mut SqlConnection,
    caller: &Caller,
    one: &mut Stipulation,
    at: usize,
    source: &str,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let found = match EnvelopeId::parse(source) {
        Some(id) => envelopes::get(connection, &caller.org, &id).await?,
        None => None,
    };
    let file = found.and_then(|envelope| Some((envelope.id, envelope.name, envelope.upload?)));
    let Some((envelope, name, file)) = file else {
        return Err(invalid(
            "no_upload",
            &["stipulations", &at.to_string(), "envelope_id"],
            "an envelope of this organization with an uploaded file",
            source,
            "No such envelope has an uploaded file",
        ));
    };
    if one.document_envelope.as_ref() == Some(&envelope)
        && one.document_sha256.as_ref() == Some(&file.sha256)
    {
        return Ok(());
    }

    one.state = StipulationState::Received;
    one.document_envelope = Some(envelope);
    one.document_sha256 = Some(file.sha256);
    one.document_name = Some(name);
    one.reason = None;
    one.settled_by = Some(caller.actor.clone());
    one.settled_at = Some(now);
    Ok(())
}

/// Waives a stipulation of an envelope.
///
/// # Errors
///
/// `NotFound` for a kind that the envelope does not have, `Conflict` for one that is satisfied.
pub async fn waive(
    core: &Core,
    caller: &Caller,
    (id, kind): (&str, &str),
    form: WaiverForm,
    answer: &ResponseRecorder<StipulationsView>,
) -> Result<StipulationsView, ServiceError> {
    let reason = form.reason.trim().to_owned();
    if reason.is_empty() {
        let why = "A waiver needs a reason";
        return Err(invalid(
            "invalid_value",
            &["reason"],
            "a reason",
            "blank",
            why,
        ));
    }

    let id = lookup::envelope(core, caller, id).await?.id;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = lookup::lock_envelope(&mut tx, &caller.org, &id).await?;
    let mut all = stored(&mut tx, &envelope).await?;
    let one = all.iter_mut().find(|one| one.kind == kind);
    let one = one.ok_or(ServiceError::NotFound("Stipulation"))?;
    if one.state != StipulationState::Open {
        return Err(ServiceError::Conflict(format!(
            "The stipulation {kind} is {} already",
            one.state
        )));
    }

    one.state = StipulationState::Waived;
    one.reason = Some(reason);
    one.settled_by = Some(caller.actor.clone());
    one.settled_at = Some(now);
    let details = json!(StipulationView::from(&*one));
    rows::set_stipulations(&mut tx, &envelope, &all).await?;
    let action = "envelope.stipulation_waived";
    events::record(&mut tx, &envelope, &caller.actor, action, details, now).await?;
    let view = StipulationsView::from(all.as_slice());
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Returns the stipulations that envelopes of a template begin with.
pub async fn of_template(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<RequiredStipulations, ServiceError> {
    let mut connection = core.store.read().await?;
    let id = template(&mut connection, caller, id).await?;
    let set = rows::of_template(&mut connection, &caller.org, &id).await?;
    let none = || RequiredStipulations {
        stipulations: Vec::new(),
    };
    match set {
        None => Ok(none()),
        Some(set) => Ok(serde_json::from_value(set.stipulations).unwrap_or_else(|_| none())),
    }
}

/// Replaces the stipulations that envelopes of a template begin with. Envelopes that were sent see them, too.
pub async fn set_of_template(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: RequiredStipulations,
    answer: &ResponseRecorder<RequiredStipulations>,
) -> Result<RequiredStipulations, ServiceError> {
    check(&request)?;
    let with_file = request.stipulations.iter();
    if let Some(at) = with_file
        .map(|one| &one.envelope_id)
        .position(Option::is_some)
    {
        return Err(invalid(
            "invalid_value",
            &["stipulations", &at.to_string(), "envelope_id"],
            "no envelope",
            "an envelope",
            "A file belongs to an envelope and not to its template",
        ));
    }

    let mut tx = core.store.begin().await?;
    let template = template(&mut tx, caller, id).await?;
    let set = TemplateStipulations {
        template,
        stipulations: json!(request),
    };
    rows::set_of_template(&mut tx, &caller.org, &set).await?;
    answer.commit(tx, &request).await?;

    Ok(request)
}

async fn template(
    connection: &mut SqlConnection,
    caller: &Caller,
    id: &str,
) -> Result<TemplateId, ServiceError> {
    let unknown = || ServiceError::NotFound("Template");
    let id = TemplateId::parse(id).ok_or_else(unknown)?;
    let found = templates::get(connection, &caller.org, &id).await?;
    let found = found.filter(|template| caller.sees(template));
    found.map(|template| template.id).ok_or_else(unknown)
}

/// Checks the kinds of a request.
fn check(request: &RequiredStipulations) -> Result<(), ServiceError> {
    let all = &request.stipulations;
    for (at, one) in all.iter().enumerate() {
        let kind = one.kind.as_str();
        let path = at.to_string();
        let path = ["stipulations", path.as_str(), "kind"];
        let is_word = kind.starts_with(|first: char| first.is_ascii_lowercase())
            && kind.len() <= KIND
            && kind
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !is_word {
            let expected = "lower-case letters, digits and underscores, at most 64";
            let why = "A kind is a word for programs, such as proof_of_income";
            return Err(invalid("invalid_value", &path, expected, kind, why));
        }
        if all.iter().take(at).any(|other| other.kind == kind) {
            let why = "The kind is in the list twice";
            return Err(invalid("duplicate", &path, "each kind once", kind, why));
        }
    }

    Ok(())
}
