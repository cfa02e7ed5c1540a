//! Drafts: envelopes that a sender prepares in steps before they are sent.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::envelopes::creation::{self, RequestedPayment};
use crate::envelopes::lifecycle::{self, LifecycleDecision};
use crate::envelopes::parties::{self, RequestedRecipient, RequestedSigner};
use crate::envelopes::planned_sending;
use crate::envelopes::reminders;
use crate::envelopes::sending::{self, SendEnvelope};
use crate::envelopes::uploads::{self, AttachedFile};
use crate::templates::built::document_of;
use crate::templates::pages::PageCache;
use crate::templates::selection::{SelectedTemplates, TemplateSelection};
use crate::templates::variables::VariableValues;
use holdfast_base::config::SecretText;
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{
    Envelope, EnvelopeKind, PREFILLED, PaymentStatus, Recipient, SecuredParty, SentDocument,
    Signer, SignerAccess, same_address,
};
use holdfast_domain::id::{CustomerId, EnvelopeId};
use holdfast_domain::organization::Organization;
use holdfast_domain::reminders::{PlannedReminders, ReminderPlan};
use holdfast_domain::template::Template;
use holdfast_platform::documents::DocumentUpload;
use holdfast_platform::events;
use holdfast_platform::lookup;
use holdfast_platform::organizations;
use holdfast_platform::passcodes::open_passcode;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue, messaging};
use holdfast_store::customers::CustomerRow;
use holdfast_store::payments::EnvelopePayment;
use holdfast_store::{
    StoreError, WriteTransaction, customers, envelopes, payments, signers, templates,
};

/// Latest expiry of a draft from now: five years.
const LONGEST: Duration = Duration::from_secs(5 * 366 * 86_400);

/// People of a draft, who take the place of those before.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct DraftPeople {
    /// Signers; the first one is the customer.
    #[schemars(length(min = 1, max = 50))]
    pub signers: Vec<RequestedSigner>,
    /// True: signers sign one after the other. False: all at once.
    pub preserve_signing_order: bool,
    /// People who get the signed copy, or may read the document, and do not sign.
    #[schemars(length(max = 50))]
    pub recipients: Vec<RequestedRecipient>,
}

/// Details of a draft, which take the place of those before.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct DraftDetails {
    /// Display name.
    #[schemars(length(min = 1, max = 500))]
    pub envelope_name: String,
    /// The sender's own reference.
    #[schemars(length(max = 500))]
    pub external_id: Option<String>,
    /// Subject of the mails that invite and remind signers, in one line. Without it, the subject names the
    /// sender and the document.
    #[schemars(length(min = 1, max = 200))]
    pub subject: Option<String>,
    /// Message to the signers, in plain text, in the mails that invite and remind them.
    #[schemars(length(max = 2000))]
    pub message: Option<String>,
    /// Time at which the envelope expires, in the future and at most five years from now; absent keeps the present one.
    pub expires_at: Option<Timestamp>,
    /// Plan of reminders. Without one none are sent.
    pub reminders: Option<ReminderPlan>,
    /// Payment for this envelope, instead of the organization's default.
    pub payment: Option<RequestedPayment>,
    /// The party to which the contract is assigned.
    pub secured_party: Option<SecuredParty>,
    /// Values by field name.
    pub prefilled_data: Map<String, Value>,
}

/// A draft with everything that was prepared.
pub struct Draft {
    pub envelope: Envelope,
    pub signers: Vec<Signer>,
    pub recipients: Vec<Recipient>,
    /// The document with its fields.
    pub template: Option<Template>,
    pub payment: Option<EnvelopePayment>,
}

/// Part of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftPart {
    People,
    Fields,
    Details,
}

/// Reason for which a draft cannot be sent yet.
pub struct DraftProblem {
    /// Part in which it is solved.
    pub part: DraftPart,
    /// The problem in the words of the API; none if the part is empty.
    pub message: Option<String>,
}

/// Creates a draft of an uploaded document.
pub async fn of_upload(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    name: String,
    upload: DocumentUpload,
) -> Result<Envelope, ServiceError> {
    let file_type = upload.file_type()?;
    let mut new = blank(core, caller, name).await?;
    let decided = lifecycle::decide(core, &new.envelope, EnvelopeTrigger::Upload).await?;
    let envelope = &mut new.envelope;
    let received = uploads::receive(core, &caller.org, &envelope.id, file_type, &upload);
    let (file, checked) = received.await?;

    // Made before the draft is stored: a document that cannot be prepared leaves no draft behind.
    envelope.upload = Some(file.clone());
    envelope.existing_signatures = checked.signatures;
    let template = document_of(core, pages, caller, envelope, None, None, None).await?;

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    insert(&mut tx, caller, &new, now).await?;
    let attached = AttachedFile {
        file: &file,
        repair: checked.repair.as_ref(),
    };
    uploads::attach(
        &mut tx,
        caller,
        &new.envelope,
        decided.status,
        attached,
        now,
    )
    .await?;
    decided.record(&mut tx, &new.envelope, now).await?;
    let attached = Envelope {
        status: decided.status,
        ..new.envelope
    };
    envelopes::set_template(&mut tx, &attached, &template, now).await?;
    tx.commit().await?;

    Ok(attached)
}

/// Creates a draft of a template, with values of its variables. It gets a document of its own, which the sender may
/// change.
pub async fn of_template(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    template: &str,
    values: VariableValues,
) -> Result<Envelope, ServiceError> {
    let selection = TemplateSelection {
        template_id: Some(template.to_owned()),
        variables: Some(values),
        ..TemplateSelection::default()
    };
    let selected = selection.read(core, caller).await?;
    let Some(SelectedTemplates::Template(source, _)) = &selected else {
        return Err(ServiceError::NotFound("Template"));
    };

    let mut new = blank(core, caller, source.name.clone()).await?;
    let envelope = &mut new.envelope;
    let own = document_of(core, pages, caller, envelope, selected.as_ref(), None, None).await?;
    envelope.template = Some(own.id);
    envelope.sending.kba_required = own.kba_required;
    let metadata = &mut envelope.metadata;
    metadata.insert("document_source".into(), "template".into());
    metadata.insert("source_template_id".into(), source.id.as_str().into());

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    insert(&mut tx, caller, &new, now).await?;
    tx.commit().await?;

    Ok(new.envelope)
}

/// An envelope that is about to be stored.
struct NewDraft {
    envelope: Envelope,
    begun: LifecycleDecision,
    organization: Organization,
}

/// Returns a draft with the defaults of the organization. Its customer is stored with its people.
async fn blank(core: &Core, caller: &Caller, name: String) -> Result<NewDraft, ServiceError> {
    let organization = organizations::read(core, &caller.org).await?;
    let settings = &organization.settings;
    let now = core.clock.now();
    let days = u64::from(settings.envelope_ttl_days);
    let new = Envelope::new(
        caller.org.clone(),
        CustomerId::new(),
        name,
        EnvelopeKind::Esign,
        caller.creator(),
        now,
    );
    let mut envelope = Envelope {
        expires_at: Some(now + Duration::from_secs(days * 86_400)),
        // Set before the rules are asked, because the payment is one of their facts.
        payment: settings
            .payment
            .as_ref()
            .map(|_| PaymentStatus::RequiresPayment),
        ..new
    };
    envelope.set_jurisdiction(settings.chattel_paper_jurisdiction.as_ref());
    if let Some(plan) = settings.reminders {
        envelope.set_reminders(PlannedReminders::new(plan));
    }

    let begun = lifecycle::first_status(core, &envelope).await?;
    envelope.status = begun.status;
    Ok(NewDraft {
        envelope,
        begun,
        organization,
    })
}

async fn insert(
    tx: &mut WriteTransaction,
    caller: &Caller,
    new: &NewDraft,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let envelope = &new.envelope;
    envelopes::insert(tx, envelope).await?;
    if let Some(standing) = &new.organization.settings.payment {
        payments::insert(tx, envelope, standing, false, now).await?;
    }

    new.begun.record(tx, envelope, now).await?;
    events::record_created(tx, envelope, &caller.actor, Map::new(), now).await?;
    Ok(())
}

/// Returns a draft.
///
/// # Errors
///
/// `Conflict` for an envelope that is no draft any more.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<Draft, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    check_draft(&envelope)?;
    let mut connection = core.store.read().await?;
    let (org, id) = (&envelope.org, &envelope.id);
    let signers = signers::list(&mut connection, org, id).await?;
    let recipients = signers::recipients(&mut connection, org, id).await?;
    let payment = payments::get(&mut connection, org, id).await?;
    let template = match &envelope.template {
        Some(template) => templates::get(&mut connection, org, template).await?,
        None => None,
    };

    Ok(Draft {
        envelope,
        signers,
        recipients,
        template,
        payment,
    })
}

fn check_draft(envelope: &Envelope) -> Result<(), ServiceError> {
    if envelope.is_draft() {
        Ok(())
    } else {
        Err(ServiceError::Conflict(format!(
            "Cannot prepare an envelope with status: {}",
            envelope.status
        )))
    }
}

/// Returns what a draft lacks, in the order of its parts. Sending may still be refused for other reasons.
pub async fn problems(core: &Core, draft: &Draft) -> Result<Vec<DraftProblem>, ServiceError> {
    let mut problems = Vec::new();
    let mut lacks = |part| {
        problems.push(DraftProblem {
            part,
            message: None,
        });
    };
    if draft.signers.is_empty() {
        lacks(DraftPart::People);
    }

    let template = draft.template.as_ref();
    let template = template.filter(|template| !template.fields.is_empty());
    let Some(template) = template else {
        lacks(DraftPart::Fields);
        return Ok(problems);
    };
    if !problems.is_empty() {
        return Ok(problems);
    }

    // The check of the sending itself, so that a complete draft is not refused for its people.
    let envelope = &draft.envelope;
    let (request, ordered) = (
        SendEnvelope::default(),
        envelope.sending.preserve_signing_order,
    );
    let values = envelope.prefilled();
    let planned = sending::planned(core, envelope, template, &request, ordered, values).await;
    match planned {
        Ok(_) => Ok(problems),
        Err(ServiceError::Invalid(issues)) => {
            problems.extend(issues.into_iter().map(problem));
            Ok(problems)
        }
        Err(error) => Err(error),
    }
}

fn problem(issue: ValidationIssue) -> DraftProblem {
    let first = issue.path.first().and_then(Value::as_str);
    DraftProblem {
        part: match first {
            Some("payment" | "prefilled_data") => DraftPart::Details,
            _ => DraftPart::People,
        },
        message: Some(issue.message),
    }
}

/// Locks a draft until the transaction ends.
async fn lock(
    tx: &mut WriteTransaction,
    caller: &Caller,
    id: &str,
) -> Result<Envelope, ServiceError> {
    let id = EnvelopeId::parse(id).ok_or(ServiceError::NotFound("Envelope"))?;
    let envelope = lookup::lock_envelope(tx, &caller.org, &id).await?;
    check_draft(&envelope)?;
    Ok(envelope)
}

/// Sets the people of a draft. A passcode that is not entered again stays with its signer's address.
///
/// # Errors
///
/// `Conflict` for an envelope that is no draft, `Invalid` for people who do not fit together.
pub async fn set_people(
    core: &Core,
    caller: &Caller,
    id: &str,
    people: DraftPeople,
) -> Result<(), ServiceError> {
    let DraftPeople {
        signers: mut requested,
        preserve_signing_order: ordered,
        recipients,
    } = people;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = lock(&mut tx, caller, id).await?;

    let before = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
    for signer in &mut requested {
        if signer.access == Some(SignerAccess::Passcode) && signer.passcode.is_none() {
            signer.passcode = known_passcode(core, &envelope, &before, &signer.email);
        }
    }
    let planned = parties::planned(&core.cipher, &envelope.org, requested, ordered, now)?;
    messaging::check(core, &envelope.org, &planned)?;
    let recipients = parties::recipients(recipients, &planned, envelope.sending.kba_required)?;

    let mut changed = Envelope {
        updated_at: now,
        sending: SentDocument {
            preserve_signing_order: ordered,
            ..envelope.sending.clone()
        },
        ..envelope
    };
    // The schema requires a signer.
    if let Some(first) = planned.first() {
        changed.customer = customer(&mut tx, &changed, first, now).await?;
    }
    envelopes::set_draft(&mut tx, &changed).await?;
    signers::forget(&mut tx, &changed).await?;
    for signer in &planned {
        signers::insert(&mut tx, &changed, signer).await?;
    }
    for recipient in &recipients {
        signers::insert_recipient(&mut tx, &changed, recipient).await?;
    }

    let details = json!({ "signers": planned.len(), "recipients": recipients.len() });
    record(&mut tx, caller, &changed, details, now).await?;
    Ok(tx.commit().await?)
}

/// Returns the passcode that the signer with this address had before.
fn known_passcode(
    core: &Core,
    envelope: &Envelope,
    before: &[Signer],
    email: &str,
) -> Option<SecretText> {
    let mut before = before.iter();
    let signer = before.find(|signer| same_address(&signer.email, email))?;
    let sealed = signer.passcode.as_deref()?;
    open_passcode(&core.cipher, &envelope.org, sealed).map(SecretText::new)
}

/// Returns the customer with the address of a signer, who is created if there is none.
async fn customer(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<CustomerId, StoreError> {
    let org = &envelope.org;
    let is_stored = customers::get(tx, org, &envelope.customer).await?.is_some();
    if !is_stored && customers::by_email(tx, org, &signer.email).await?.is_none() {
        // With the id that the draft has had from its creation, because its first event names it.
        let new = CustomerRow {
            id: envelope.customer.clone(),
            email: Some(signer.email.trim().to_lowercase()),
            name: signer.name.clone(),
            details: Map::new(),
            created_at: now,
            updated_at: now,
            erased_at: None,
        };
        customers::insert(tx, org, &new).await?;
        return Ok(new.id);
    }

    let customer = customers::upsert_by_email(tx, org, &signer.email, &signer.name, now).await?;
    Ok(customer.id)
}

/// Sets the details of a draft.
///
/// # Errors
///
/// `Conflict` for an envelope that is no draft, `Invalid` for a subject, a time, a plan or a payment out of range.
pub async fn set_details(
    core: &Core,
    caller: &Caller,
    id: &str,
    details: DraftDetails,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    check_expiry(details.expires_at, now)?;
    creation::check_subject(details.subject.as_deref())?;
    if let Some(plan) = &details.reminders {
        reminders::check(plan, &["reminders"])?;
    }
    let organization = organizations::read(core, &caller.org).await?;
    let payment = creation::payment(details.payment.as_ref(), &organization)?;

    let mut tx = core.store.begin().await?;
    let envelope = lock(&mut tx, caller, id).await?;
    let mut changed = Envelope {
        name: details.envelope_name,
        external_id: details.external_id,
        secured_party: details.secured_party,
        expires_at: details.expires_at.or(envelope.expires_at),
        payment: payment.as_ref().map(|_| PaymentStatus::RequiresPayment),
        updated_at: now,
        sending: SentDocument {
            subject: details.subject,
            message: details.message,
            ..envelope.sending.clone()
        },
        ..envelope
    };
    if let Some(planned) = changed.planned_sending() {
        planned_sending::check(planned.at, changed.expires_at, now)?;
    }
    changed.plan_reminders(details.reminders);
    if details.prefilled_data.is_empty() {
        changed.metadata.remove(PREFILLED);
    } else {
        changed.set_prefilled(&details.prefilled_data);
    }

    envelopes::set_draft(&mut tx, &changed).await?;
    payments::remove(&mut tx, &changed).await?;
    if let Some(payment) = &payment {
        let own = details.payment.is_some();
        payments::insert(&mut tx, &changed, payment, own, now).await?;
    }
    let what = json!({ "name": changed.name, "expires_at": changed.expires_at });
    record(&mut tx, caller, &changed, what, now).await?;
    Ok(tx.commit().await?)
}

fn check_expiry(expires_at: Option<Timestamp>, now: Timestamp) -> Result<(), ServiceError> {
    match expires_at {
        Some(at) if at <= now || at > now + LONGEST => Err(ServiceError::invalid(
            "out_of_range",
            &["expires_at"],
            "a time in the future, within five years",
            at.to_string(),
            "The expiry has to be in the future, and within five years",
        )),
        _ => Ok(()),
    }
}

/// Records a change of a draft in its ledger.
async fn record(
    tx: &mut WriteTransaction,
    caller: &Caller,
    draft: &Envelope,
    details: Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    events::record(tx, draft, &caller.actor, "envelope.drafted", details, now).await?;
    Ok(())
}
