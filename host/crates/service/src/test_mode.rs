//! Test data of an organization: its inbox, people who sign by themselves, and its time.
//!
//! A key of mode `test` belongs to [`OrgId::test`], an organization of its own: the isolation of organizations also
//! separates test data from live data. Test data is never sent to a provider, a mail server or a phone, every page of
//! its documents is marked TEST, and its records cannot be released.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::envelopes::consumer::SIMULATED;
use crate::signing;
use crate::signing::expiry;
use holdfast_adapters::texts::Texts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::Slot;
use holdfast_domain::envelope::{Envelope, EnvelopeStatus, Signer};
use holdfast_domain::field::ATTACHMENT;
use holdfast_domain::id::{EnvelopeId, MessageId};
use holdfast_domain::test_mode::TestMessage;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::kba::IdentitySubmission;
use holdfast_platform::lookup;
use holdfast_platform::room::attachments::ReceivedFile;
use holdfast_platform::room::form::{FormError, RequestOrigin, SigningForm, WITNESS};
use holdfast_platform::signers::invited_now;
use holdfast_platform::{
    Caller, Core, Problem, ProblemKind, ServiceError, ValidationIssue, kba, organizations, payments,
};
use holdfast_store::room::{GivenConsent, RoomField};
use holdfast_store::signers;
use holdfast_store::test_mode::{self as rows, MessageSearch};

/// Time for which messages are kept.
const KEPT: Duration = Duration::from_secs(30 * 86_400);
/// Furthest that time is advanced in total, in seconds: 50 years.
const FURTHEST: i64 = 50 * 366 * 86_400;
/// Names of fields that an error shows.
const SHOWN: usize = 20;
/// What a simulated signer writes into a field for text.
const TEXT: &str = "Test";
/// What a simulated witness states as postal address.
const TEST_ADDRESS: &str = "1 Test Street, Testville";
/// The smallest picture: what a simulated signer attaches.
const PICTURE: &[u8] = include_bytes!("test_mode.png");

/// Body of `POST /test/envelopes/:id/sign`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "signer_email": "jordan.lee@example.com", "values": { "Odometer": "48210" } }]))]
pub struct SimulateSigning {
    /// Email address of the only signer who signs; by default all signers sign, in their order.
    #[schemars(email)]
    pub signer_email: Option<String>,
    /// Values by field name. Other fields that have to be filled get one that fits their type.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
}

/// Body of `POST /test/envelopes/:id/decline`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "reason": "The price is wrong" }]))]
pub struct SimulateDecline {
    /// Email address of the signer; the next signer by default.
    #[schemars(email)]
    pub signer_email: Option<String>,
    #[schemars(length(min = 1, max = 1000))]
    pub reason: Option<String>,
}

/// What simulated signers have done.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "status": "completed", "signers": ["jordan.lee@example.com"],
}]))]
pub struct SimulatedSigners {
    pub envelope_id: EnvelopeId,
    /// Status of the envelope afterwards. A completed one is vaulted in the background.
    pub status: EnvelopeStatus,
    /// E-mail addresses of those who signed or declined.
    pub signers: Vec<String>,
}

/// Body of `POST /test/clock`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "advance_seconds": 2_592_000 }]))]
pub struct AdvanceClock {
    /// At most ten years.
    #[schemars(range(min = 1, max = 316_224_000))]
    pub advance_seconds: i64,
}

/// The time of test data.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{ "now": "2026-11-21T09:30:00.000Z", "advanced_seconds": 2_592_000 }]))]
pub struct TestClockView {
    /// Time of the installation. What happens in a test is recorded with it.
    pub now: Timestamp,
    /// By how much everything that waits has come nearer, in total.
    pub advanced_seconds: i64,
}

/// Refuses a key for live data.
fn only_test(caller: &Caller) -> Result<(), ServiceError> {
    if caller.org.is_test() {
        Ok(())
    } else {
        let message = "This needs a test key (lk_test_…)";
        Err(Problem::new(ProblemKind::Forbidden, "test_key_required", message).into())
    }
}

/// Keeps a message for its organization to read. `source` names the work and the content: a repeat adds nothing.
pub async fn keep(core: &Core, source: &str, message: &TestMessage) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    rows::insert(&mut tx, source, message).await?;
    Ok(tx.commit().await?)
}

/// Deletes old messages.
pub async fn forget(core: &Core) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    rows::delete_before(&mut tx, core.clock.now() - KEPT).await?;
    Ok(tx.commit().await?)
}

/// Lists the messages that would have been sent, newest first.
pub async fn inbox(
    core: &Core,
    caller: &Caller,
    to: Option<String>,
    envelope: Option<&str>,
    after: Option<MessageId>,
    limit: i64,
) -> Result<Vec<TestMessage>, ServiceError> {
    only_test(caller)?;
    let search = MessageSearch {
        to,
        envelope: match envelope.map(EnvelopeId::parse) {
            Some(None) => return Ok(Vec::new()),
            Some(Some(id)) => Some(id),
            None => None,
        },
        after,
    };

    let mut connection = core.store.read().await?;
    Ok(rows::list(&mut connection, &caller.org, &search, limit).await?)
}

/// Returns how far the time was advanced.
pub async fn clock(core: &Core, caller: &Caller) -> Result<TestClockView, ServiceError> {
    only_test(caller)?;
    let mut connection = core.store.read().await?;
    Ok(TestClockView {
        now: core.clock.now(),
        advanced_seconds: rows::advanced(&mut connection, &caller.org).await?,
    })
}

/// Advances the time. Overdue envelopes are expired before this returns; the worker does all other overdue work.
pub async fn advance(
    core: &Core,
    caller: &Caller,
    request: AdvanceClock,
    answer: &ResponseRecorder<TestClockView>,
) -> Result<TestClockView, ServiceError> {
    only_test(caller)?;
    let mut attempts = 1;

    // It locks rows of many tables, which the worker locks in another order: a deadlock rolls one of the two back.
    let view = loop {
        match move_times(core, caller, request.advance_seconds, answer).await {
            Err(ServiceError::Store(error)) if attempts < 10 && error.is_rolled_back() => {
                attempts += 1;
            }
            moved => break moved?,
        }
    };

    expiry::sweep(core, Some(&caller.org)).await?;
    Ok(view)
}

async fn move_times(
    core: &Core,
    caller: &Caller,
    by: i64,
    answer: &ResponseRecorder<TestClockView>,
) -> Result<TestClockView, ServiceError> {
    let mut tx = core.store.begin().await?;
    let advanced_seconds = rows::advance(&mut tx, &caller.org, by).await?;
    // The transaction is dropped, so nothing has moved.
    if advanced_seconds > FURTHEST {
        let why = "The time of test data was advanced by 50 years already";
        return Err(ServiceError::Conflict(why.into()));
    }

    let view = TestClockView {
        now: core.clock.now(),
        advanced_seconds,
    };
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Signs in the place of the signers, through the same form: identity questions are answered rightly, and payments made.
pub async fn sign(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: SimulateSigning,
) -> Result<SimulatedSigners, ServiceError> {
    let only = request.signer_email.as_deref();
    let (mut envelope, mut waiting) = waiting(core, caller, id).await?;
    let mut signer = next(&envelope, waiting, only)?;
    if let Some(first) = &signer {
        check_names(core, &envelope, first, &request.values).await?;
    }

    let mut signers = Vec::new();
    while let Some(now) = signer {
        pass_identity(core, &envelope, &now).await?;
        pay(core, &envelope, &now).await?;
        fill_and_sign(core, &envelope, &now, &request.values).await?;
        // Now and not by the job: the next signer may wait for this one.
        signing::reconcile(core, &envelope).await?;
        signers.push(now.email);
        (envelope, waiting) = self::waiting(core, caller, id).await?;
        // A named signer signs alone. Otherwise the next one follows until none is left.
        signer = waiting.into_iter().next().filter(|_| only.is_none());
    }

    Ok(outcome(envelope, signers))
}

/// Declines in the place of a signer.
pub async fn decline(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: SimulateDecline,
) -> Result<SimulatedSigners, ServiceError> {
    let (envelope, waiting) = waiting(core, caller, id).await?;
    let signer = next(&envelope, waiting, request.signer_email.as_deref())?;
    let signer = signer.ok_or_else(|| closed(&envelope))?;
    signing::check_may_decline(&envelope, &signer)?;
    let reason = request.reason.as_deref().unwrap_or("Declined in a test");
    let (submitter, origin) = (submitter(&signer)?, RequestOrigin::default());
    core.room()
        .decline(&caller.org, submitter, &signer.email, reason, &origin)
        .await
        .map_err(|error| refused(&envelope, error))?;

    signing::reconcile(core, &envelope).await?;
    let envelope = lookup::envelope(core, caller, id).await?;
    Ok(outcome(envelope, vec![signer.email]))
}

fn outcome(envelope: Envelope, signers: Vec<String>) -> SimulatedSigners {
    SimulatedSigners {
        envelope_id: envelope.id,
        status: envelope.status,
        signers,
    }
}

/// Returns an envelope and the signers who can sign now; none if it is not out for signing.
async fn waiting(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<(Envelope, Vec<Signer>), ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    only_test(caller)?;
    let mut waiting = Vec::new();
    if envelope.status.is_out_for_signing() {
        let mut connection = core.store.read().await?;
        let signers = signers::list(&mut connection, &envelope.org, &envelope.id).await?;
        waiting.extend(invited_now(&envelope, &signers).cloned());
    }

    Ok((envelope, waiting))
}

fn closed(envelope: &Envelope) -> ServiceError {
    let status = envelope.status;
    ServiceError::Conflict(format!("Cannot sign an envelope with status: {status}"))
}

/// Returns the signer with this address among those who can sign now, or else the first.
///
/// # Errors
/// `Conflict` if the envelope is not out for signing, `Invalid` if the named signer cannot sign now.
fn next(
    envelope: &Envelope,
    waiting: Vec<Signer>,
    email: Option<&str>,
) -> Result<Option<Signer>, ServiceError> {
    if !envelope.status.is_out_for_signing() {
        return Err(closed(envelope));
    }

    let mut waiting = waiting.into_iter();
    let Some(email) = email else {
        return Ok(waiting.next());
    };

    let named = waiting.find(|signer| signer.email.eq_ignore_ascii_case(email));
    named.map(Some).ok_or_else(|| {
        ServiceError::invalid(
            "not_their_turn",
            &["signer_email"],
            "a signer whose turn it is",
            email,
            format!("{email} cannot sign now"),
        )
    })
}

/// Refuses values for fields that the document does not have: a misspelt name would leave its field with a sample.
///
/// # Errors
/// `Invalid` with an issue for each such name.
async fn check_names(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    values: &BTreeMap<String, String>,
) -> Result<(), ServiceError> {
    if values.is_empty() {
        return Ok(());
    }

    // The fields of all signers: a later one may be the owner of a value.
    let room = core.room();
    let form = room.unruled_form(&envelope.org, submitter(signer)?).await;
    let form = form.map_err(|error| refused(envelope, error))?;
    let known: BTreeSet<&str> = form
        .submission
        .fields
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    let shown: Vec<&str> = known.iter().copied().take(SHOWN).collect();
    let expected = format!("the name of a field, such as {}", shown.join(", "));
    let unknown = values.keys().filter(|name| !known.contains(name.as_str()));
    let issues: Vec<ValidationIssue> = unknown
        .map(|name| {
            let message = format!("The document has no field with the name {name}");
            let path = ["values", name.as_str()];
            ValidationIssue::new("unknown_field", &path, &expected, name, message)
        })
        .collect();

    if issues.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

fn submitter(signer: &Signer) -> Result<i64, ServiceError> {
    let id = signer.provider_submitter.as_deref();
    id.and_then(|id| id.parse().ok())
        .ok_or_else(|| ServiceError::Conflict("The envelope is still being sent".into()))
}

/// Answers the sandbox's identity questions, if the signer is asked any.
async fn pass_identity(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<(), ServiceError> {
    if kba::is_open(core, envelope, signer).await? {
        return Ok(());
    }

    // Opens the questions.
    kba::gate(core, envelope, signer, None).await?;
    let right = ["q1", "q2", "q3"].map(|name| (name.to_owned(), "correct".to_owned()));
    let answers = IdentitySubmission {
        values: right.into(),
        consent: true,
        again: false,
        ip: None,
    };
    kba::go_on(core, envelope, signer, answers).await?;

    if kba::is_open(core, envelope, signer).await? {
        Ok(())
    } else {
        Err(ServiceError::Conflict(format!(
            "{} cannot answer identity questions now",
            signer.email
        )))
    }
}

/// Pays in the sandbox, if the signer is the payer.
async fn pay(core: &Core, envelope: &Envelope, signer: &Signer) -> Result<(), ServiceError> {
    let Some(due) = payments::due(core, envelope).await? else {
        return Ok(());
    };
    if due.position != Some(signer.position) {
        return Ok(());
    }

    let intent = payments::intent(core, envelope, &signer.email, due.position).await?;
    let sandbox = core.sandbox(Slot::Payment, Some(&envelope.org))?;
    let secret = intent.client_secret.as_deref().unwrap_or_default();
    // The sandbox makes the client secret of the intent's id.
    let id = secret.strip_suffix("_secret").unwrap_or_default();
    if let Some(intent) = sandbox.intent(id).await? {
        sandbox.pay(&intent).await?;
    }

    Ok(())
}

async fn fill_and_sign(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    given: &BTreeMap<String, String>,
) -> Result<(), ServiceError> {
    let (room, org, submitter) = (core.room(), &envelope.org, submitter(signer)?);
    let person = (submitter, signer.email.as_str());
    let origin = RequestOrigin::default();
    let refused = |error| refused(envelope, error);
    // Opened first, as by a person, so that the envelope becomes viewed.
    room.open(org, person.0, person.1, &origin)
        .await
        .map_err(refused)?;

    let mut values = given.clone();
    let mut form = room.form(org, submitter).await.map_err(refused)?;

    // An answer may show or require other fields, and these again others.
    loop {
        let before = values.len();
        let missing = missing(&form, &values);
        for field in &missing {
            let value = match field.field_type.as_str() {
                ATTACHMENT => {
                    let file = ReceivedFile {
                        name: Some("test.png".into()),
                        bytes: PICTURE.into(),
                    };
                    let attached = room.attach(org, person, &field.name, file);
                    attached.await.map_err(refused)?
                }
                _ => sample(field, signer, &form.today),
            };

            values.insert(field.name.clone(), value);
        }

        if values.len() == before {
            break;
        }

        (form, _) = room.tried(form, values.clone()).await.map_err(refused)?;
    }

    // Read for witnesses of a signer only.
    for (control, stated) in WITNESS
        .into_iter()
        .zip([signer.name.as_str(), TEST_ADDRESS])
    {
        values.insert(control.to_owned(), stated.to_owned());
    }

    let settings = organizations::read(core, org).await?.settings;
    let locale = signer.locale.unwrap_or(settings.language);

    // No text was shown to a person, so none is named.
    let consent = GivenConsent {
        version: SIMULATED.to_owned(),
        locale,
        sha256: String::new(),
        shown_at: None,
        demonstrated: None,
    };
    room.finish(org, person, &values, Ok(consent), None, &origin)
        .await
        .map_err(refused)?;

    // Now and not by the job of the room, so that the answer has the final status.
    let executed = room.execute(org, form.submission.id).await;
    executed.map_err(|error| ServiceError::Internal(error.to_string()))
}

/// Returns the fields that have to be filled and are not, with a signature if none is required.
fn missing<'a>(form: &'a SigningForm, values: &BTreeMap<String, String>) -> Vec<&'a RoomField> {
    let filled = |field: &RoomField| {
        let value = values.get(&field.name);
        let value = value.or_else(|| form.submitter.values.get(&field.name));
        value.is_some_and(|value| !value.is_empty() && value != "false")
    };
    let open = |field: &&RoomField| {
        // A signer cannot fill a locked field, and is not asked for a hidden one.
        !field.is_locked() && !form.hidden.contains(&field.name) && !filled(field)
    };

    form.fields
        .iter()
        .filter(open)
        .filter(|field| field.required || field.is_signature())
        .collect()
}

/// Returns a value that fits the type of a field.
fn sample(field: &RoomField, signer: &Signer, today: &str) -> String {
    let option = || field.options.first().cloned();
    match field.field_type.as_str() {
        "signature" => signer.name.clone(),
        "initials" => signer
            .name
            .split(' ')
            .filter_map(|name| name.chars().next())
            .collect(),
        "checkbox" => "true".into(),
        "date" => today.to_owned(),
        "number" => field.rules.min.clone().unwrap_or_else(|| "1".into()),
        "select" | "radio" => option().unwrap_or_else(|| TEXT.into()),
        "phone" => "+15555550100".into(),
        "email" => signer.email.clone(),
        _ => TEXT.into(),
    }
}

/// Converts a problem of the form to an error of the service.
fn refused(envelope: &Envelope, error: FormError) -> ServiceError {
    match error {
        FormError::Invalid(problems) => {
            let issue = |(field, why): (String, _)| {
                let why = Texts::default().message(&why);
                ValidationIssue::new(
                    "not_accepted",
                    &["values", &field],
                    "another value",
                    "",
                    why,
                )
            };

            ServiceError::Invalid(problems.into_iter().map(issue).collect())
        }
        FormError::Closed => closed(envelope),
        error => error.into(),
    }
}
