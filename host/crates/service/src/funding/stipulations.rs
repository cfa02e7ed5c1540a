//! Stipulations: attachments that the funding of a contract depends on. A file that a signer attached, an uploaded file
//! or a waiver with a reason satisfies one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::funding::{Stipulation, StipulationState};
use holdfast_domain::id::{EnvelopeId, TemplateId};
use holdfast_platform::funding_acts::stipulations::{self as acts, Waiver, stored};
pub use holdfast_platform::funding_acts::stipulations::{
    RequiredStipulation, RequiredStipulations, StipulationView,
};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::permits::four_eyes;
use holdfast_platform::{Caller, Core, ServiceError, events, lookup};
use holdfast_store::funding::{self as rows, TemplateStipulations};
use holdfast_store::{SqlConnection, envelopes, templates};

/// Longest kind, in bytes.
const KIND: usize = 64;

/// Body of `POST /partner/envelopes/{id}/stipulations/{kind}/waiver`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "reason": "Employer confirmed the income by telephone." }]))]
pub struct WaiverForm {
    /// Why it is waived.
    #[schemars(length(min = 1, max = 500))]
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

impl From<&[Stipulation]> for StipulationsView {
    fn from(all: &[Stipulation]) -> Self {
        Self {
            stipulations: all.iter().map(StipulationView::from).collect(),
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
/// `Invalid` for a kind that is named twice or malformed, or an envelope without an uploaded file; `Change` where the policy
/// requires approvals, and an open stipulation of a sent envelope is not in the list.
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
    let is_dropped =
        |one: &Stipulation| one.state == StipulationState::Open && !request.has(&one.kind);
    // Dropping an attachment from the list of a sent contract is a waiver without a reason.
    if !envelope.status.is_unsent() && before.iter().any(is_dropped) {
        four_eyes::permit_act(core, &mut tx, &caller.org).await?;
    }

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
        return Err(ServiceError::invalid(
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
/// `NotFound` for a kind that the envelope does not have, `Conflict` for one that is satisfied, `Change` where the policy
/// requires approvals.
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
        return Err(ServiceError::invalid(
            "invalid_value",
            &["reason"],
            "a reason",
            "blank",
            why,
        ));
    }

    let id = lookup::envelope(core, caller, id).await?.id;
    let mut tx = core.store.begin().await?;
    four_eyes::permit_act(core, &mut tx, &caller.org).await?;
    let waiver = Waiver {
        envelope: &id,
        kind,
        reason,
        by: &caller.actor,
        agreed: None,
    };
    let all = acts::waive(&mut tx, &caller.org, waiver, core.clock.now()).await?;
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
    Ok(acts::required_by(&mut connection, &caller.org, &id).await?)
}

/// Replaces the stipulations that envelopes of a template begin with. Envelopes that were sent see them, too.
///
/// # Errors
///
/// `Invalid` as for an envelope; `Change` where the policy requires approvals, and a stipulation is not in the list any more.
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
        return Err(ServiceError::invalid(
            "invalid_value",
            &["stipulations", &at.to_string(), "envelope_id"],
            "no envelope",
            "an envelope",
            "A file belongs to an envelope and not to its template",
        ));
    }

    let mut tx = core.store.begin().await?;
    let template = template(&mut tx, caller, id).await?;
    let before = acts::required_by(&mut tx, &caller.org, &template).await?;
    if before
        .stipulations
        .iter()
        .any(|one| !request.has(&one.kind))
    {
        four_eyes::permit_act(core, &mut tx, &caller.org).await?;
    }

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
            return Err(ServiceError::invalid(
                "invalid_value",
                &path,
                expected,
                kind,
                why,
            ));
        }
        if all.iter().take(at).any(|other| other.kind == kind) {
            let why = "The kind is in the list twice";
            return Err(ServiceError::invalid(
                "duplicate",
                &path,
                "each kind once",
                kind,
                why,
            ));
        }
    }

    Ok(())
}
