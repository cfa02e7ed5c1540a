//! Views: a controller lets a person look at a record, by a link in an e-mail.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{self as inspection, Visitor, checked};
use crate::control::invitations::addressee_issues;
use crate::control::statements::{self, SignedForm};
use crate::control::{
    ActDone, ControlView, LockedRecord, PartyNames, Request, control_view, lock, not_vaulted,
    out_of_order, permit, settle, statement,
};
use crate::vault::overview::{self, RecordOverview};
use holdfast_base::faults;
use holdfast_components::rules::control::Act;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::{ControlRecord, Look, View, ViewAccess};
use holdfast_domain::envelope::Envelope;
use holdfast_domain::event::EventType;
use holdfast_domain::id::{EnvelopeId, ViewId};
use holdfast_domain::job::MailView;
use holdfast_domain::organization::Organization;
use holdfast_domain::statement::SignedStatement;
use holdfast_platform::components::ComponentManager;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::permits::link_codes::{is_link, link_code};
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue};
use holdfast_store::{WriteTransaction, control as rows, envelopes, jobs, organizations, views};

/// Time that a view has if the controller states none, and at most.
const TIME: Duration = Duration::from_secs(14 * 86_400);
const MOST_TIME: Duration = Duration::from_secs(366 * 86_400);
/// Time of one look: later, the page has to be opened again, which is recorded.
const OPEN: Duration = Duration::from_secs(3600);

/// Body of `POST /partner/control/views`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "name": "Robin Park", "email": "robin@funding.example",
    "access": "view", "purpose": "Due diligence", "expires_at": "2026-12-01T00:00:00Z",
}]))]
pub struct ViewForm {
    pub envelope_id: String,
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// Gets the link.
    #[schemars(length(max = 200))]
    pub email: String,
    /// `view` when absent.
    pub access: Option<ViewAccess>,
    #[schemars(length(max = 200))]
    pub purpose: Option<String>,
    /// 14 days from now when absent, a year at most.
    pub expires_at: Option<Timestamp>,
    /// Your statement about this act, if your organization has registered a key.
    pub signed: Option<SignedStatement>,
}

/// A person's view of a record.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "view_id": "viw_01jdk7m3e8f4x9s2w5v6b0c1dc", "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "name": "Robin Park", "email": "robin@funding.example", "access": "view", "purpose": "Due diligence",
    "created_at": "2026-11-21T09:45:00.000Z", "expires_at": "2026-12-01T00:00:00.000Z", "revoked_at": null,
}]))]
pub struct ViewView {
    pub view_id: ViewId,
    pub envelope_id: EnvelopeId,
    pub name: String,
    pub email: String,
    pub access: ViewAccess,
    pub purpose: Option<String>,
    pub created_at: Timestamp,
    /// It also ends when control passes.
    pub expires_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

impl From<&View> for ViewView {
    fn from(view: &View) -> Self {
        Self {
            view_id: view.id.clone(),
            envelope_id: view.envelope.clone(),
            name: view.name.clone(),
            email: view.email.clone(),
            access: view.access,
            purpose: view.purpose.clone(),
            created_at: view.created_at,
            expires_at: view.expires_at,
            revoked_at: view.revoked_at,
        }
    }
}

pub(super) fn unknown() -> ServiceError {
    ServiceError::NotFound("View")
}

/// Lets a person look at a record, as its controller. They get a mail with a link.
pub async fn grant(
    core: &Core,
    caller: &Caller,
    form: ViewForm,
    answer: &ResponseRecorder<ViewView>,
) -> Result<ViewView, ServiceError> {
    let mut tx = core.store.begin().await?;
    let record = lock(&mut tx, caller, &form.envelope_id).await?;
    let now = core.clock.now();
    check(&form, now)?;
    let ask = Request::of(Act::GrantView, caller);
    let permitted = permit(core, &mut tx, &record.envelope, &record.control, ask).await?;

    // People see only the non-authoritative copy.
    if record.envelope.record.copy.is_none() {
        return Err(not_vaulted());
    }

    let access = form.access.unwrap_or(ViewAccess::View);
    // `expires_at` of the form: a default that depends on the time would not fit a statement that was signed
    // before.
    let content = json!({
        "name": form.name, "email": form.email, "access": access, "purpose": form.purpose,
        "expires_at": form.expires_at,
    });
    let event = EventType::ControlViewGranted;
    let expected = statement(&record, caller, event, content);
    let signed = statements::require(core, &mut tx, &expected, form.signed.as_ref()).await?;

    let view = View {
        id: ViewId::new(),
        org: record.envelope.org.clone(),
        envelope: record.envelope.id.clone(),
        controller: caller.org.clone(),
        controlled_since: record.control.controlled_since,
        name: form.name,
        email: form.email,
        access,
        purpose: form.purpose,
        created_at: now,
        expires_at: form.expires_at.unwrap_or(now + TIME),
        revoked_at: None,
        opened_at: None,
    };

    views::insert(&mut tx, &view).await?;
    let shown = ViewView::from(&view);
    let done = ActDone {
        signed,
        ..ActDone::new(caller, event, json!({ "view": shown }))
    };
    let (names, next) = (&mut PartyNames::default(), record.control.clone());
    settle(core, &mut tx, names, &record, next, Some(&permitted), done).await?;

    // The job has no link: it is derived from the id when the mail is written, and stored nowhere.
    let job = MailView { view: view.id };
    let key = Some(job.view.as_str());
    jobs::insert(&mut tx, &caller.org, &job, key, now).await?;
    answer.commit(tx, &shown).await?;
    faults::pass("view");

    Ok(shown)
}

fn check(form: &ViewForm, now: Timestamp) -> Result<(), ServiceError> {
    let mut issues = addressee_issues(&form.name, &form.email);
    if let Some(until) = form
        .expires_at
        .filter(|until| *until <= now || *until > now + MOST_TIME)
    {
        let (expected, given) = ("a time within the next year", until.to_string());
        let message = "The view ends at this time";
        issues.push(ValidationIssue::new(
            "out_of_range",
            &["expires_at"],
            expected,
            given,
            message,
        ));
    }

    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }

    form.purpose
        .as_deref()
        .map_or(Ok(()), |purpose| checked(purpose).map(drop))
}

/// Ends a view as the controller of its record.
pub async fn revoke(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: SignedForm,
    answer: &ResponseRecorder<ViewView>,
) -> Result<ViewView, ServiceError> {
    let id = ViewId::parse(id).ok_or_else(unknown)?;
    let mut tx = core.store.begin().await?;
    // Read without a lock, because the view has the id of the record to lock.
    let view = views::get(&mut tx, &id).await?;
    let view = view.filter(|view| view.controller == caller.org);
    let view = view.ok_or_else(unknown)?;
    let record = lock(&mut tx, caller, view.envelope.as_str()).await?;
    let ask = Request::of(Act::RevokeView, caller);
    let permitted = permit(core, &mut tx, &record.envelope, &record.control, ask).await?;

    // Again, under the lock.
    let view = views::get(&mut tx, &id).await?.ok_or_else(unknown)?;
    if view.revoked_at.is_some() {
        return Err(out_of_order("The view was revoked"));
    }

    let event = EventType::ControlViewRevoked;
    let expected = statement(&record, caller, event, json!({ "view_id": view.id }));
    let signed = statements::require(core, &mut tx, &expected, form.signed.as_ref()).await?;
    let now = core.clock.now();
    views::revoke(&mut tx, &view, now).await?;
    let shown = ViewView {
        revoked_at: Some(now),
        ..ViewView::from(&view)
    };
    let done = ActDone {
        signed,
        ..ActDone::new(caller, event, json!({ "view": shown }))
    };

    let (names, next) = (&mut PartyNames::default(), record.control.clone());
    settle(core, &mut tx, names, &record, next, Some(&permitted), done).await?;
    answer.commit(tx, &shown).await?;
    faults::pass("view");

    Ok(shown)
}

/// Returns the link of a view.
pub fn url(core: &Core, id: &ViewId) -> Result<String, ServiceError> {
    let code = link_code(core, "view", id.as_str())?;
    let base = core.config.public_url();
    Ok(format!("{base}/inspect/{id}/{code}"))
}

/// Returns the view behind a link, also one that is over; none for an unknown link.
pub async fn find(core: &Core, id: &str, given: &str) -> Result<Option<View>, ServiceError> {
    let Some(id) = ViewId::parse(id) else {
        return Ok(None);
    };
    // Before the database is read: a guessed link costs a hash and no query.
    if !is_link(core, "view", id.as_str(), given)? {
        return Ok(None);
    }
    Ok(views::get(&mut *core.store.read().await?, &id).await?)
}

/// Returns the organization that granted a view.
pub async fn granted_by(core: &Core, view: &View) -> Result<Organization, ServiceError> {
    let mut connection = core.store.read().await?;
    let organization = organizations::get(&mut connection, &view.controller).await?;
    organization.ok_or_else(unknown)
}

/// Whether a view can be used now.
fn is_open(view: &View, control: &ControlRecord, now: Timestamp) -> bool {
    // Control may have passed on and come back.
    let same =
        view.controller == control.controller && view.controlled_since == control.controlled_since;
    view.revoked_at.is_none() && view.expires_at > now && same
}

/// Locks the record of a view.
///
/// # Errors
/// `NotFound` if the view is over.
pub(super) async fn lock_open(
    core: &Core,
    tx: &mut WriteTransaction,
    view: &View,
) -> Result<LockedRecord, ServiceError> {
    let envelope = envelopes::lock(tx, &view.org, &view.envelope).await?;
    let envelope = envelope.ok_or_else(unknown)?;
    let control = rows::of_envelope(tx, &envelope).await?;

    // The row again, under the lock.
    let view = views::get(tx, &view.id).await?.ok_or_else(unknown)?;
    if is_open(&view, &control, core.clock.now()) {
        Ok(LockedRecord { envelope, control })
    } else {
        Err(unknown())
    }
}

/// What a person sees of a record.
pub struct ShownRecord {
    pub envelope: Envelope,
    pub control: ControlView,
    pub controlled_since: Timestamp,
    pub seen: RecordOverview,
}

/// Opens the page of a record for a person for an hour, which is recorded. Returns false if the view is over.
pub async fn open(core: &Core, view: &View) -> Result<bool, ServiceError> {
    let mut tx = core.store.begin().await?;
    // A view that is over gets a page of its own, and no error.
    let record = match lock_open(core, &mut tx, view).await {
        Ok(record) => record,
        Err(ServiceError::NotFound(_)) => return Ok(false),
        Err(error) => return Err(error),
    };

    // Under the lock: a repeated request is the same look.
    let view = views::get(&mut tx, &view.id).await?.ok_or_else(unknown)?;
    if is_opened(core, &view) {
        return Ok(true);
    }

    let (visitor, look) = (Visitor::Person(&view), Look::Document);
    let purpose = view.purpose.as_deref();
    inspection::note(core, &mut tx, &record, visitor, look, purpose, None).await?;
    // Noted with the entry, so that a reload within the hour is the same look.
    views::opened(&mut tx, &view, core.clock.now()).await?;
    tx.commit().await?;

    Ok(true)
}

/// Whether the person has opened the page within the last hour.
pub fn is_opened(core: &Core, view: &View) -> bool {
    let now = core.clock.now();
    view.opened_at.is_some_and(|at| at + OPEN > now)
}

/// Returns what a person with an opened page sees. None if the view is over.
pub async fn shown(
    core: &Core,
    management: &Arc<ComponentManager>,
    view: &View,
) -> Result<Option<ShownRecord>, ServiceError> {
    let Some(envelope) = open_envelope(core, view).await? else {
        return Ok(None);
    };

    let mut connection = core.store.read().await?;
    let control = rows::of_envelope(&mut connection, &envelope).await?;
    let shown = control_view(&mut PartyNames::default(), &mut connection, &control).await?;
    drop(connection);

    Ok(Some(ShownRecord {
        seen: overview::record(core, management, &envelope).await?,
        control: shown,
        controlled_since: control.controlled_since,
        envelope,
    }))
}

/// Returns the envelope of a view; none if it is over.
pub async fn open_envelope(core: &Core, view: &View) -> Result<Option<Envelope>, ServiceError> {
    let mut connection = core.store.read().await?;
    let envelope = envelopes::get(&mut connection, &view.org, &view.envelope).await?;
    let Some(envelope) = envelope else {
        return Ok(None);
    };
    let control = rows::of_envelope(&mut connection, &envelope).await?;
    Ok(is_open(view, &control, core.clock.now()).then_some(envelope))
}
