//! Releases of records that another party controls: they need its consent (UCC §9-105(b)(4)).

use std::collections::BTreeSet;

use holdfast_store::SqlConnection;
use serde::Deserialize;
use serde_json::{Value, json};

use super::statements::{self, SignedForm};
use super::{
    ActDone, LockedRecord, PartyNames, PermittedAct, ReasonForm, RecordView, ReleaseRequestView,
    Request, envelope_of, permit, settle, statement,
};
use holdfast_base::faults;
use holdfast_components::rules::control::{Act, Party};
use holdfast_domain::control::{
    ControlRecord, ControlStage, ReleaseAnswer, ReleaseRequest, ReleaseState,
};
use holdfast_domain::envelope::{Envelope, EnvelopeStatus};
use holdfast_domain::event::EventType;
use holdfast_domain::id::{EnvelopeId, OrgId, ReleaseId};
use holdfast_domain::job::{MailReleaseRequest, ReleaseRecord};
use holdfast_domain::organization::{ApiKeyRecord, Permission, Scope};
use holdfast_domain::release::{ReleaseForm, ReleaseMedium};
use holdfast_domain::statement::SignedStatement;
use holdfast_domain::user::UserStatus;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::permits::legal_holds;
use holdfast_platform::problems::ControlProblem;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::control as rows;
use holdfast_store::{StoreError, WriteTransaction, api_keys, envelopes, jobs, users};

/// Permission to release a record that has parties.
pub struct ReleasePermit {
    record: LockedRecord,
    permitted: PermittedAct,
    /// The release that waits or was agreed to.
    open: Option<ReleaseRequest>,
    /// Whether it was agreed to, with this form.
    consented: bool,
    /// The controller's signed statement, if it releases the record itself.
    signed: Option<Value>,
}

/// Refuses a release that lacks the controller's consent, before any byte of the record is read. The
/// refused release is recorded, and the controller is asked.
pub async fn require(
    core: &Core,
    caller: &Caller,
    envelope: &Envelope,
    form: &ReleaseForm,
    signed: Option<&SignedStatement>,
) -> Result<(), ServiceError> {
    // Without a lock, because most records have no other party. The transaction of the release asks again.
    let mut connection = core.store.read().await?;
    let control = rows::of_envelope(&mut connection, envelope).await?;
    if is_free(&control, envelope, form) {
        return Ok(());
    }

    drop(connection);
    let mut tx = core.store.begin().await?;
    let locked = envelopes::lock(&mut tx, &envelope.org, &envelope.id).await?;
    let envelope = locked.ok_or(ServiceError::NotFound("Envelope"))?;
    match permit_release(core, &mut tx, caller, &envelope, form, signed).await {
        // `None`: no release waits for the controller yet, so this one is recorded.
        Err(ServiceError::Control(ControlProblem::ConsentRequired(None))) => {
            let control = rows::of_envelope(&mut tx, &envelope).await?;
            // After a release there is nothing to ask for. Only the agreed one can be repeated.
            if control.stage == ControlStage::Released {
                return Err(ControlProblem::ConsentRequired(None).into());
            }

            let record = LockedRecord { envelope, control };
            let id = request(core, &mut tx, caller, &record, form).await?;
            // Committed although the caller gets an error: otherwise the controller would never see the
            // request.
            tx.commit().await?;
            faults::pass("release requested");

            Err(ControlProblem::ConsentRequired(Some(id)).into())
        }
        permitted => permitted.map(|_| ()),
    }
}

/// Whether a release needs no permission: a record without an act is the originator's own. The rules
/// decide about every conversion of a record in the vault.
fn is_free(control: &ControlRecord, envelope: &Envelope, form: &ReleaseForm) -> bool {
    let converts = form.medium == ReleaseMedium::Paper;
    control.epoch == 0 && !(converts && envelope.status == EnvelopeStatus::Vaulted)
}

/// Permits a release in the transaction that makes it, with the envelope's row locked. `None` for one that
/// needs no permission.
pub async fn permit_release(
    core: &Core,
    tx: &mut WriteTransaction,
    caller: &Caller,
    envelope: &Envelope,
    form: &ReleaseForm,
    signed: Option<&SignedStatement>,
) -> Result<Option<ReleasePermit>, ServiceError> {
    let control = rows::of_envelope(tx, envelope).await?;
    if is_free(&control, envelope, form) {
        return Ok(None);
    }

    let open = match &control.release {
        Some(release) => rows::release(tx, release).await?,
        None => None,
    };

    // A consent covers the form that the controller has seen, and no other recipient.
    let in_state = |state| {
        open.as_ref().is_some_and(|open| {
            open.state == state && open.controller == control.controller && open.form == json!(form)
        })
    };
    let consented = in_state(ReleaseState::Consented);

    if control.stage == ControlStage::Released && control.controller != caller.org {
        permit_repeat(&control, open.as_ref(), form)?;
    }

    let act = match form.medium {
        ReleaseMedium::Paper if control.stage != ControlStage::Released => Act::ConvertToPaper,
        // A repeat leads to the same archive.
        _ => Act::Release,
    };
    let ask = Request {
        consents: consented.then_some(Party::Controller).into_iter().collect(),
        ..Request::of(act, caller)
    };
    let permitted = permit(core, tx, envelope, &control, ask).await?;

    let record = LockedRecord {
        envelope: envelope.clone(),
        control,
    };

    // For the originator, the controller has signed its consent.
    // A repeat by the controller is no second act, and needs no second signature.
    let by_itself = record.control.controller == caller.org;
    let signed = if by_itself && record.control.stage != ControlStage::Released {
        let event = EventType::ControlReleased;
        let expected = statement(&record, caller, event, json!({ "form": form }));
        statements::require(core, tx, &expected, signed).await?
    } else {
        None
    };

    Ok(Some(ReleasePermit {
        record,
        permitted,
        open,
        consented,
        signed,
    }))
}

/// Permits a repeat to another party than the controller: the archive for the same recipient and purpose, if
/// the controller agreed to that release.
fn permit_repeat(
    control: &ControlRecord,
    open: Option<&ReleaseRequest>,
    form: &ReleaseForm,
) -> Result<(), ServiceError> {
    // Control may have passed since. The consent of an earlier controller does not bind the present one.
    let agreed = open.filter(|open| {
        open.state == ReleaseState::Released && open.controller == control.controller
    });
    let agreed = agreed.ok_or(ControlProblem::ConsentRequired(None))?;
    let agreed = ReleaseForm::deserialize(&agreed.form)
        .map_err(|error| ServiceError::Internal(format!("the form of {}: {error}", agreed.id)))?;

    // A consent to a paper original is none to a file, and the other way round.
    if agreed.medium != form.medium {
        return Err(ControlProblem::ConsentRequired(None).into());
    }

    if agreed.is_for_the_same(form) {
        Ok(())
    } else {
        Err(ControlProblem::ReleasedToAnother.into())
    }
}

/// Records that the record was released, in the transaction of the release.
pub async fn released(
    core: &Core,
    tx: &mut WriteTransaction,
    caller: &Caller,
    permit: ReleasePermit,
    medium: ReleaseMedium,
) -> Result<(), ServiceError> {
    let ReleasePermit {
        record,
        permitted,
        open,
        consented,
        signed,
    } = permit;
    if let Some(open) = &open {
        let (state, answer) = if consented {
            (ReleaseState::Released, None)
        } else {
            // The controller has released the record itself, to another recipient.

            let answer = ReleaseAnswer {
                by: caller.actor.clone(),
                at: core.clock.now(),
                reason: Some("The record was released otherwise".into()),
            };
            (ReleaseState::Refused, Some(answer))
        };

        // Another worker may have settled the same release: this fails then, and the whole release rolls
        // back.
        rows::settle_release(tx, open, state, answer.as_ref()).await?;
    }

    // Without an agreed release, the originator gets neither archive nor bundle (`permit_archive`).
    let released_as = open.filter(|_| consented).map(|open| open.id);
    let next = ControlRecord {
        stage: ControlStage::Released,
        release: released_as.clone(),
        ..record.control.clone()
    };
    let mut details = json!({ "release_id": released_as });
    if medium == ReleaseMedium::Paper {
        details["medium"] = json!(medium);
    }

    let done = ActDone {
        signed,
        ..ActDone::new(caller, EventType::ControlReleased, details)
    };
    settle(
        core,
        tx,
        &mut PartyNames::default(),
        &record,
        next,
        Some(&permitted),
        done,
    )
    .await?;

    Ok(())
}

/// Permits a download of the authoritative copy in the transaction that issues its link, with the
/// envelope's row locked.
pub async fn permit_retrieval(
    core: &Core,
    connection: &mut SqlConnection,
    caller: &Caller,
    envelope: &Envelope,
) -> Result<(), ServiceError> {
    let control = rows::of_envelope(connection, envelope).await?;
    // A record without an act belongs to its originator alone.
    if control.epoch == 0 {
        return Ok(());
    }
    let ask = Request::of(Act::Retrieve, caller);
    permit(core, connection, envelope, &control, ask).await?;
    Ok(())
}

/// Returns the envelope of a record that the caller's organization controls.
///
/// # Errors
/// `NotFound` for every other record, also one in which the organization has another part.
pub async fn controlled(core: &Core, caller: &Caller, id: &str) -> Result<Envelope, ServiceError> {
    let unknown = || ServiceError::NotFound("Envelope");
    let id = EnvelopeId::parse(id).ok_or_else(unknown)?;
    // A record of another controller gets the same words, so that the answer does not distinguish them.
    let envelope = envelope_of(core, caller, &id)
        .await
        .map_err(|error| match error {
            ServiceError::NotFound(_) => unknown(),
            error => error,
        })?;

    let control = rows::of_envelope(&mut *core.store.read().await?, &envelope).await?;
    if control.controller == caller.org {
        Ok(envelope)
    } else {
        Err(unknown())
    }
}

/// Permits reading the archive of a released record: to its controller, and after a release that the
/// controller agreed to.
pub async fn permit_archive(
    connection: &mut SqlConnection,
    caller: &Caller,
    envelope: &Envelope,
) -> Result<(), ServiceError> {
    let control = rows::of_envelope(connection, envelope).await?;
    if control.controller == caller.org || control.release.is_some() {
        Ok(())
    } else {
        Err(ControlProblem::ConsentRequired(None).into())
    }
}

/// Records a release that waits for the controller, and notifies the parties.
async fn request(
    core: &Core,
    tx: &mut WriteTransaction,
    caller: &Caller,
    record: &LockedRecord,
    form: &ReleaseForm,
) -> Result<ReleaseId, ServiceError> {
    let now = core.clock.now();
    let asked = ReleaseRequest {
        id: ReleaseId::new(),
        org: record.envelope.org.clone(),
        envelope: record.envelope.id.clone(),
        controller: record.control.controller.clone(),
        state: ReleaseState::Requested,
        form: json!(form),
        requested_by: caller.actor.clone(),
        requested_at: now,
        answer: None,
    };

    rows::insert_release(tx, &asked).await?;
    let next = ControlRecord {
        release: Some(asked.id.clone()),
        ..record.control.clone()
    };
    // No decision is recorded: the rules have just refused the release, and a request needs no permission.
    let done = ActDone::new(
        caller,
        EventType::ControlReleaseRequested,
        json!({ "release": ReleaseRequestView::from(&asked) }),
    );
    settle(
        core,
        tx,
        &mut PartyNames::default(),
        record,
        next,
        None,
        done,
    )
    .await?;

    // One job for each person: an address that fails does not hold up the other mails.
    for to in people_who_consent(tx, &asked.controller).await? {
        let key = format!("{}:{to}", asked.id);
        let release = asked.id.clone();
        let mail = MailReleaseRequest { release, to };
        jobs::insert(tx, &asked.controller, &mail, Some(&key), now).await?;
    }

    Ok(asked.id)
}

/// Returns the addresses of the owners of keys and of the users that may consent, each once.
async fn people_who_consent(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<BTreeSet<String>, StoreError> {
    let keys = api_keys::list(connection, org).await?;
    let may = |key: &ApiKeyRecord| key.active && key.scopes.contains(&Scope::ControlConsent);
    let keys = keys.into_iter().filter(may);
    let users = users::list(connection, org).await?.into_iter();
    let users = users
        .filter(|user| user.status == UserStatus::Active && user.role.may(Permission::Control));
    let owners = keys.filter_map(|key| key.owner_email);
    Ok(owners.chain(users.map(|user| user.email)).collect())
}

/// Returns the record of a requested release, for its parties.
pub async fn record(core: &Core, caller: &Caller, id: &str) -> Result<RecordView, ServiceError> {
    let unknown = || ServiceError::NotFound("Release request");
    let id = ReleaseId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let request = rows::release(&mut connection, &id).await?;
    drop(connection);

    let request =
        request.filter(|request| [&request.controller, &request.org].contains(&&caller.org));
    let request = request.ok_or_else(unknown)?;
    super::get(core, caller, request.envelope.as_str()).await
}

/// Agrees to a requested release as the controller. A job then makes the release.
pub async fn consent(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: SignedForm,
    answer: &ResponseRecorder<ReleaseRequestView>,
) -> Result<ReleaseRequestView, ServiceError> {
    let mut asked = asked(core, caller, id, Act::ConsentToRelease).await?;
    let (tx, record) = (&mut asked.tx, &asked.record);
    // A consent is followed by the release, so it waits for the end of a hold as well.
    let (envelope, control) = (&record.envelope, &record.control);
    legal_holds::permit_controlled(tx, Some(&caller.org), envelope, control).await?;

    // Stage and controller stay as they are until the job has made the release.
    let next = asked.record.control.clone();
    let given = ReasonForm {
        reason: None,
        signed: form.signed,
    };

    settled(
        core,
        caller,
        asked,
        ReleaseState::Consented,
        given,
        next,
        answer,
    )
    .await
}

/// Refuses a requested release as the controller.
pub async fn refuse(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: ReasonForm,
    answer: &ResponseRecorder<ReleaseRequestView>,
) -> Result<ReleaseRequestView, ServiceError> {
    let asked = asked(core, caller, id, Act::RefuseRelease).await?;
    // The originator may ask again.
    let next = ControlRecord {
        release: None,
        ..asked.record.control.clone()
    };

    settled(
        core,
        caller,
        asked,
        ReleaseState::Refused,
        form,
        next,
        answer,
    )
    .await
}

/// A requested release with its record locked, and the permission to answer it.
struct AskedRelease {
    tx: WriteTransaction,
    record: LockedRecord,
    request: ReleaseRequest,
    permitted: PermittedAct,
}

/// Locks the record of a requested release, and asks the rules about the controller's answer.
async fn asked(
    core: &Core,
    caller: &Caller,
    id: &str,
    act: Act,
) -> Result<AskedRelease, ServiceError> {
    let unknown = || ServiceError::NotFound("Release request");
    let id = ReleaseId::parse(id).ok_or_else(unknown)?;
    let mut tx = core.store.begin().await?;
    // Read without a lock, because the request has the id of the envelope to lock.
    let request = rows::release(&mut tx, &id).await?.ok_or_else(unknown)?;
    let envelope = envelopes::lock(&mut tx, &request.org, &request.envelope).await?;
    let envelope = envelope.ok_or_else(unknown)?;

    // Again, under the lock.
    let request = rows::release(&mut tx, &id).await?.ok_or_else(unknown)?;
    let control = rows::of_envelope(&mut tx, &envelope).await?;
    // The originator may get further: the rules then answer that only the controller decides.
    if request.controller != caller.org && request.org != caller.org {
        return Err(unknown());
    }

    let ask = Request {
        // A consent can be withdrawn until the release is made.
        answers_release: Some(
            control.release.as_ref() == Some(&request.id)
                && match act {
                    Act::ConsentToRelease => request.state == ReleaseState::Requested,
                    _ => request.state != ReleaseState::Released,
                },
        ),
        ..Request::of(act, caller)
    };

    let permitted = permit(core, &mut tx, &envelope, &control, ask).await?;
    Ok(AskedRelease {
        tx,
        record: LockedRecord { envelope, control },
        request,
        permitted,
    })
}

/// Stores the controller's answer and the next state of the record.
async fn settled(
    core: &Core,
    caller: &Caller,
    asked: AskedRelease,
    state: ReleaseState,
    form: ReasonForm,
    next: ControlRecord,
    answer: &ResponseRecorder<ReleaseRequestView>,
) -> Result<ReleaseRequestView, ServiceError> {
    let AskedRelease {
        mut tx,
        record,
        request,
        permitted,
    } = asked;
    let (event, content) = match state {
        // A consent is one to this form.
        ReleaseState::Consented => (
            EventType::ControlReleaseConsented,
            json!({ "release_id": request.id, "form": request.form }),
        ),
        _ => (
            EventType::ControlReleaseRefused,
            json!({ "release_id": request.id, "reason": form.reason }),
        ),
    };

    let expected = statement(&record, caller, event, content);
    let signed = statements::require(core, &mut tx, &expected, form.signed.as_ref()).await?;
    let given = ReleaseAnswer {
        by: caller.actor.clone(),
        at: core.clock.now(),
        reason: form.reason,
    };
    // In this transaction, so that no crash leaves a consent without the job that makes the release.
    if state == ReleaseState::Consented {
        let (job, key) = (
            ReleaseRecord {
                release: request.id.clone(),
            },
            request.id.as_str(),
        );
        jobs::insert(&mut tx, &request.org, &job, Some(key), given.at).await?;
    }

    rows::settle_release(&mut tx, &request, state, Some(&given)).await?;
    let request = ReleaseRequest {
        state,
        answer: Some(given),
        ..request
    };
    let view = ReleaseRequestView::from(&request);
    let done = ActDone {
        signed,
        ..ActDone::new(caller, event, json!({ "release": view }))
    };
    settle(
        core,
        &mut tx,
        &mut PartyNames::default(),
        &record,
        next,
        Some(&permitted),
        done,
    )
    .await?;

    answer.commit(tx, &view).await?;
    faults::pass("answered");
    Ok(view)
}
