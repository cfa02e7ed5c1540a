//! Sending an envelope to its signers: planning the signers, creating the provider's
//! submission, and announcing the envelope. A partner's create, a web-app user's send and a
//! bulk batch all use it.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::envelopes::parties::{self, RequestedRecipient, RequestedSigner};
use holdfast_base::config::EMBEDDED;
use holdfast_components::providers::{ProviderError, signing as asked};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::dates::DAY_OF_SIGNING;
use holdfast_domain::entry;
use holdfast_domain::envelope::{
    Envelope, EnvelopeStatus, Recipient, RecipientKind, Signer, SignerKind,
};
use holdfast_domain::event::EventType;
use holdfast_domain::field::Field;
use holdfast_domain::hash::sha256;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::job::{NextStep, WithdrawSubmission};
use holdfast_domain::organization::FIRST_PAYER;
use holdfast_domain::template::Template;
use holdfast_platform::organizations as organization_service;
use holdfast_platform::room::fitting::FieldEntry;
use holdfast_platform::room::unsent;
use holdfast_platform::signers::{invited_now, signer_view};

use crate::envelopes::reminders;
use crate::templates as template_service;
use crate::templates::{answers::unfit, warnings};
use holdfast_platform::events;
use holdfast_platform::providers::{SigningProvider, provider};
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue, mails, messaging};
use holdfast_store::{StoreError, WriteTransaction, envelopes, jobs};

/// The caller's choice of signers, values and payer.
pub struct SendingOptions<'a> {
    pub signers: Option<Vec<RequestedSigner>>,
    pub preserve_signing_order: bool,
    pub recipients: Vec<RequestedRecipient>,
    /// E-mail address and name of the default signer.
    pub customer: Option<(String, String)>,
    pub prefilled: Option<&'a Map<String, Value>>,
    /// Role of the payer, or `first`.
    pub payer: Option<&'a str>,
    /// Whether signers may decline; none for the choice of the template.
    pub may_decline: Option<bool>,
    /// The organization refuses signers with roles that ask for no signature.
    pub refuse_unsigned_roles: bool,
}

/// Plans the people, and checks them, the values and the payer against the template.
pub fn plan(
    core: &Core,
    template: &Template,
    wanted: &SendingOptions<'_>,
) -> Result<(Vec<Signer>, Vec<Recipient>), ServiceError> {
    let roles = template.roles();
    let Some(first_role) = roles.first() else {
        return Err(ServiceError::Conflict(
            "Template has no fields to sign".into(),
        ));
    };

    let requested = match (&wanted.signers, &wanted.customer) {
        (Some(requested), _) => requested.clone(),
        (None, Some((email, name))) => vec![RequestedSigner {
            email: email.clone(),
            name: name.clone(),
            role: Some((*first_role).into()),
            kind: None,
            witness_of: None,
            same_device: None,
            group: None,
            order: None,
            access: None,
            passcode: None,
            phone: None,
            notify_by: None,
            locale: None,
            time_zone: None,
            consumer: None,
        }],
        (None, None) => Vec::new(),
    };

    let signers = parties::planned(
        &core.cipher,
        &template.org,
        requested,
        wanted.preserve_signing_order,
        core.clock.now(),
    )?;
    messaging::check(core, &template.org, &signers)?;

    let recipients =
        parties::recipients(wanted.recipients.clone(), &signers, template.kba_required)?;
    // All problems are reported at once, like those of a body that does not fit its schema.
    let may_decline = wanted.may_decline.unwrap_or(template.may_decline);
    let mut issues = parties::unsupported(template, &signers, &recipients, may_decline);
    let known = roles.join(", ");
    for (index, signer) in signers.iter().enumerate() {
        let path = ["signers", &index.to_string(), "role"];
        let unknown = !roles.contains(&signer.role.as_str());
        if unknown && !parties::is_without_fields(template, signer) {
            issues.push(ValidationIssue::new(
                "unknown_role",
                &path,
                known.as_str(),
                signer.role.as_str(),
                format!("The template has no role {}", signer.role),
            ));
        } else if signers[..index]
            .iter()
            .any(|other| other.role.eq_ignore_ascii_case(&signer.role))
        {
            issues.push(ValidationIssue::new(
                "duplicate_role",
                &path,
                "one signer for each role",
                signer.role.as_str(),
                format!("Role {} has more than one signer", signer.role),
            ));
        }
    }

    // An approver without fields takes no role of the template.
    let with_fields = signers.iter();
    let with_fields = with_fields.filter(|signer| !parties::is_without_fields(template, signer));
    if with_fields.count() > roles.len() {
        issues.push(ValidationIssue::new(
            "too_many_signers",
            &["signers"],
            format!("at most {} signers", roles.len()),
            signers.len().to_string(),
            format!("The template has {} roles", roles.len()),
        ));
    }

    // The fields of such a role would stay empty, and the envelope would never be completed.
    for role in &roles {
        if !signers.iter().any(|signer| signer.role == *role) {
            issues.push(ValidationIssue::new(
                "missing_signer",
                &["signers"],
                format!("a signer with role {role}"),
                "none",
                format!("Role {role} has fields and no signer"),
            ));
        }
    }

    // Where the organization allows such roles, the answer has a warning instead.
    if wanted.refuse_unsigned_roles {
        for (index, signer) in warnings::unsigned_roles(template, &signers) {
            issues.push(ValidationIssue::new(
                "no_signature_field",
                &["signers", &index.to_string(), "role"],
                "a role with a signature or initials field",
                signer.role.as_str(),
                warnings::no_signature_field(&signer.role),
            ));
        }
    }

    if let Some(payer) = wanted.payer
        && payer != FIRST_PAYER
        && !roles.contains(&payer)
    {
        issues.push(ValidationIssue::new(
            "unknown_role",
            &["payment", "payer"],
            known.as_str(),
            payer,
            format!("The template has no role {payer}"),
        ));
    }

    for (name, value) in wanted.prefilled.into_iter().flatten() {
        let mut named = template.fields.iter().filter(|field| field.name == *name);
        let (code, expected, message) = match named.next() {
            None => (
                "unknown_field",
                "a field of the template",
                format!("The template has no field {name}"),
            ),
            // Signature fields cannot be prefilled: only the signer may fill them.
            Some(field) if field.is_signature() => (
                "signature_field",
                "a field that is filled by typing",
                format!("Field {name} is filled by its signer only"),
            ),
            Some(field) => match wrong_entry(field, value) {
                Some(expected) => (
                    "invalid_value",
                    expected,
                    format!("Field {name} takes {expected}"),
                ),
                None => continue,
            },
        };

        let path = ["prefilled_data", name];
        issues.push(ValidationIssue::new(
            code,
            &path,
            expected,
            name.as_str(),
            message,
        ));
    }

    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }

    Ok((signers, recipients))
}

/// Refuses prefilled values that cannot be written into their fields: after signing it would be too late.
pub async fn check_fit(
    core: &Core,
    template: &Template,
    prefilled: Option<&Map<String, Value>>,
) -> Result<(), ServiceError> {
    let Some(prefilled) = prefilled.filter(|values| !values.is_empty()) else {
        return Ok(());
    };
    let Some(document) = template.document.as_ref() else {
        return Ok(());
    };
    // Another provider writes the values itself, and only it knows the layout.
    if template.provider_instance != EMBEDDED {
        return Ok(());
    }

    let given = |field: &Field| {
        let value = text_of(prefilled.get(&field.name)?);
        let stored = entry::stored(&field.field_type, &field.options, &value);
        // The day of signing has no text yet that could be measured.
        let is_day = value == DAY_OF_SIGNING;
        (!is_day).then(|| (unsent(field.clone()), stored.unwrap_or(value)))
    };
    let given: Vec<_> = template.fields.iter().filter_map(given).collect();
    let entries: Vec<_> = given
        .iter()
        .map(|(field, value)| FieldEntry { field, value })
        .collect();

    let room = core.room();
    let pages = room.page_facts(&template.org, document).await?;
    // The form of dates decides how long they are.
    let dates = organization_service::read(core, &template.org)
        .await?
        .settings
        .dates
        .format;
    let misfits = room
        .misfits(&template.org, &pages, &entries, (None, dates))
        .await?;

    let issues: Vec<_> = misfits
        .into_iter()
        .map(|misfit| unfit(&["prefilled_data", &misfit.field], &misfit))
        .collect();
    if issues.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

/// Returns a template of the caller's organization that is ready to be sent.
pub async fn sendable(core: &Core, caller: &Caller, id: &str) -> Result<Template, ServiceError> {
    ready(core, template_service::get(core, caller, id).await?).await
}

/// Returns the template once it is synchronized with its provider.
pub async fn ready(core: &Core, template: Template) -> Result<Template, ServiceError> {
    let template = template_service::synced(core, template).await?;
    if template.document.is_none() || template.provider_template.is_none() {
        return Err(ServiceError::Conflict("Template has no document".into()));
    }
    Ok(template)
}

/// Content of a submission requested from the provider.
pub struct DispatchRequest<'a> {
    /// The provider's template id.
    pub template: &'a str,
    /// Idempotency key: a repeat after a lost response finds the same submission.
    pub external_id: String,
    /// Field values, for each role of the template.
    pub values: Vec<(String, Vec<(String, String)>)>,
}

impl<'a> DispatchRequest<'a> {
    /// Builds the request for an unmodified template, with field values.
    pub fn of(
        template: &'a Template,
        external_id: String,
        prefilled: Option<&Map<String, Value>>,
    ) -> Self {
        let of_role = |role: &str| {
            let own = template.fields.iter().filter(|field| field.role == role);
            own.filter_map(|field| {
                let value = text_of(prefilled?.get(&field.name)?);
                let stored = entry::stored(&field.field_type, &field.options, &value);
                Some((field.name.clone(), stored.unwrap_or(value)))
            })
            .collect()
        };

        let roles = template.roles().into_iter();
        Self {
            template: template.provider_template.as_deref().unwrap_or_default(),
            external_id,
            values: roles.map(|role| (role.to_owned(), of_role(role))).collect(),
        }
    }
}

/// Returns the submission's external id, derived from the content being sent. Sending the
/// same content again resumes the same submission; changed content gets another one.
pub fn external_id(envelope: &EnvelopeId, what: &impl serde::Serialize) -> String {
    let digest = sha256(json!(what).to_string().as_bytes());
    format!("{envelope}.{}", &digest[..16])
}

/// Creates the submission at the provider, stores the provider's signer ids in `signers`,
/// and returns the submission's id. The caller's transaction must write the signing room's
/// records ([`SigningProvider::write`]).
pub async fn submit(
    core: &Core,
    signing: &SigningProvider,
    envelope: &Envelope,
    request: DispatchRequest<'_>,
    signers: &mut [Signer],
) -> Result<String, ServiceError> {
    let values_of = |role: &str| {
        let found = request.values.iter().find(|(name, _)| name == role);
        found.map(|(_, values)| values.clone()).unwrap_or_default()
    };

    // An approver without fields is added to the signing room later (`parties::arrange`).
    let has_fields = |signer: &&Signer| {
        signer.kind != SignerKind::Approver
            || request.values.iter().any(|(name, _)| *name == signer.role)
    };
    let submission = asked::SubmissionRequest {
        template_id: request.template.to_owned(),
        external_id: request.external_id,
        name: envelope.name.clone(),
        preserve_order: envelope.sending.preserve_signing_order,
        submitters: signers
            .iter()
            .filter(has_fields)
            .map(|signer| asked::SubmitterRequest {
                name: signer.name.clone(),
                email: signer.email.clone(),
                role: signer.role.clone(),
                values: values_of(&signer.role),
            })
            .collect(),
    };

    let submission = signing.create_submission(submission).await?;
    // Providers compare roles without regard to case.
    for signer in &mut *signers {
        signer.provider_submitter = submission
            .submitters
            .iter()
            .find(|submitter| submitter.role.eq_ignore_ascii_case(&signer.role))
            .map(|submitter| submitter.submitter_id.clone());
    }

    let invited = |signer: &Signer| signer.provider_submitter.is_some();

    // A signer without a submitter could never sign, so the submission is useless.
    if !signers.iter().filter(has_fields).all(invited) {
        withdraw(core, signing, &submission.submission_id).await;
        let why = "a signer is missing from the submission".into();
        return Err(ProviderError::Rejected(why).into());
    }

    Ok(submission.submission_id)
}

/// Returns what a field takes instead, if it does not take this value. Without that, the wrong value would be in a form
/// and its signer could not correct it.
fn wrong_entry(field: &Field, value: &Value) -> Option<&'static str> {
    // A list or an object would be stored as its JSON text.
    let is_plain = !value.is_array() && !value.is_object();
    let text = text_of(value);
    if is_plain && entry::stored(&field.field_type, &field.options, &text).is_some() {
        return None;
    }
    Some(entry::expected(&field.field_type))
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Records and emits that the envelope was sent, and invites the signers who can sign now.
pub async fn announce(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signers: &[Signer],
    recipients: &[Recipient],
    actor: &str,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let data = json!({ "signers": signers.iter().map(signer_view).collect::<Vec<_>>() });
    let sent = EventType::EnvelopeSent;
    events::record_and_emit(tx, envelope, actor, sent, data, now).await?;
    // With a signing order, later signers are invited when their turn comes.
    for signer in invited_now(envelope, signers) {
        mails::invite_signer(tx, envelope, signer, now).await?;
    }
    if let Some(planned) = envelope.reminders() {
        let first = now + planned.plan.wait(true);
        reminders::schedule(tx, envelope, first).await?;
        if planned.plan.before_expiry_days.is_some() {
            reminders::schedule_warning(tx, envelope, now).await?;
        }
    }

    for recipient in recipients {
        // A viewer reads along from now on. A `cc` gets only the finished copy.
        if recipient.kind == RecipientKind::Viewer {
            mails::invite(tx, envelope, recipient, now).await?;
        }
    }

    Ok(())
}

/// Withdraws a submission, best effort: no link to it was ever issued, so an unreachable
/// provider leaves nothing that could be signed.
async fn withdraw(core: &Core, signing: &SigningProvider, submission: &str) {
    if let Err(error) = archive(core, signing, submission).await {
        tracing::warn!(%error, "submission without an envelope could not be archived");
    }
}

/// Archives a submission. One that the provider does not know counts as archived.
async fn archive(
    core: &Core,
    signing: &SigningProvider,
    submission: &str,
) -> Result<(), ServiceError> {
    match signing.archive_submission(submission).await {
        // An archived submission of the signing room is a change here, which has to be committed.
        Ok(()) => Ok(signing.keep(core).await?),
        Err(ProviderError::NotFound) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Withdraws a submission after saving its envelope failed. Keeps it if the envelope names
/// it: a commit that reported an error may have succeeded, with only its response lost.
pub async fn withdraw_unless_named(
    core: &Core,
    org: &OrgId,
    envelope: &EnvelopeId,
    instance: &str,
    submission: &str,
) {
    let look = async {
        let mut connection = core.store.read().await?;
        envelopes::get(&mut connection, org, envelope).await
    };
    let named = match look.await {
        Ok(None) => false,
        Ok(Some(now)) => now.sending.submission.as_deref() == Some(submission),
        // Unknown: a submission that an envelope may name must not be withdrawn.
        Err(_) => true,
    };

    if !named && let Ok(signing) = provider(core, org, instance) {
        withdraw(core, &signing, submission).await;
    }
}

/// Time after which a stray submission is checked again, while its envelope may adopt it.
const STRAY_WAIT: Duration = Duration::from_secs(60);

/// Queues the withdrawal of a stray submission, in the caller's transaction.
pub async fn insert_stray(
    tx: &mut WriteTransaction,
    org: &OrgId,
    stray: &WithdrawSubmission,
    now: Timestamp,
) -> Result<(), StoreError> {
    jobs::insert(tx, org, stray, None, now).await
}

/// Archives a stray submission, unless its envelope names it by now.
pub async fn withdraw_stray(
    core: &Core,
    org: &OrgId,
    stray: &WithdrawSubmission,
) -> Result<NextStep, ServiceError> {
    // A job runs this. The envelope may have adopted the submission since the job was queued.
    let mut connection = core.store.read().await?;
    let envelope = envelopes::get(&mut connection, org, &stray.envelope).await?;
    drop(connection);
    let Some(envelope) = envelope else {
        return Ok(NextStep::Done);
    };
    if envelope.sending.submission.as_ref() == Some(&stray.submission) {
        return Ok(NextStep::Done);
    }

    // A sending in progress may have found this submission by its external id.
    if envelope.sending.submission.is_none() && envelope.status == EnvelopeStatus::Preparing {
        return Ok(NextStep::Again(core.clock.now() + STRAY_WAIT));
    }

    let signing = provider(core, org, &stray.instance)?;
    archive(core, &signing, &stray.submission).await?;
    Ok(NextStep::Done)
}
