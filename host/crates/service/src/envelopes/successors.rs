//! New envelopes made from earlier ones: copies, and versions with a corrected document.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::envelopes::creation::{self, CreatedEnvelope, CreationPlan};
use crate::envelopes::dispatch::{self, DispatchRequest};
use crate::envelopes::lifecycle::{self, LifecycleDecision};
use crate::envelopes::sending::{self, SendEnvelope};
use crate::envelopes::{VoidCause, contract_dates, documents, uploads, voiding};
use crate::funding;
use crate::templates::composition::ReplacedFields;
use crate::templates::pages::PageCache;
use crate::templates::{RequestedField, built, warnings};
use holdfast_adapters::files::StorageArea;
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{
    Envelope, EnvelopeLink, OPEN_LINK, PaymentStatus, Recipient, SentDocument, Signer,
    SignerAccess, StoredFile, VERSION,
};
use holdfast_domain::organization::{Organization, PaymentSettings};
use holdfast_domain::reminders::PlannedReminders;
use holdfast_domain::template::Template;
use holdfast_domain::warning::Warning;
use holdfast_platform::documents::{DocumentUpload, admit};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::permits::erased_customers;
use holdfast_platform::providers::provider;
use holdfast_platform::{
    Caller, Core, ServiceError, ValidationIssue, events, kba, lookup, organizations,
};
use holdfast_store::payments::EnvelopePayment;
use holdfast_store::{
    SqlConnection, WriteTransaction, envelopes, fingerprints, payments, signers, templates,
};

/// Creates a draft from an envelope in any status: with its document, fields, people, values and settings, and
/// without answers, signatures, passcodes and submission. Sends nothing.
///
/// # Errors
///
/// `Conflict` for a paper envelope, which has none of these.
pub async fn copy(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    id: &str,
    answer: &ResponseRecorder<CreatedEnvelope>,
) -> Result<CreatedEnvelope, ServiceError> {
    let source = SourceRecords::read(core, caller, id).await?;
    let earlier = &source.envelope;
    if earlier.is_upload() {
        let why = "A paper envelope was signed elsewhere: create another one for its upload";
        return Err(ServiceError::Conflict(why.into()));
    }

    let now = core.clock.now();
    let organization = organizations::read(core, &caller.org).await?;
    let mut envelope = successor(caller, earlier, &organization, now);
    envelope.set_link(EnvelopeLink::CopiedFrom, &earlier.id);
    // That people signed in person belongs to the earlier sending; each send of a draft may state it again.
    envelope.sending.send_email = true;
    // The new contract has a term of its own, and no visitor of a link made it.
    envelope.set_contract_dates(&[]);
    envelope.metadata.remove(OPEN_LINK);
    let (payment, has_own_payment) = source.payment_of_copy(&organization);
    envelope.payment = payment.as_ref().map(|_| PaymentStatus::RequiresPayment);

    // A created envelope with a template is sent at once, so the rules are asked before it gets its document.
    let begun = lifecycle::first_status(core, &envelope).await?;
    envelope.status = begun.status;
    let mut decided = vec![begun];
    decided.extend(copy_document(core, pages, caller, &source, &mut envelope).await?);

    let signers: Vec<Signer> = source.signers.iter().map(signer_afresh).collect();
    let warnings = without_passcode(&signers);
    let mut plan = CreationPlan {
        envelope,
        origin: origin(EnvelopeLink::CopiedFrom, earlier),
        decided,
        signers,
        recipients: source.recipients.clone(),
        signing: None,
        payment,
        has_own_payment,
        collateral: Vec::new(),
        open_link: None,
        checked: None,
    };

    let mut tx = core.store.begin().await?;
    creation::write(core, &mut tx, caller, &mut plan, now).await?;
    fingerprints::copy_collateral(&mut tx, earlier, &plan.envelope.id).await?;
    note_copy(&mut tx, caller, earlier, &plan.envelope, now).await?;
    let created = CreatedEnvelope {
        envelope: plan.envelope,
        sign_url: None,
        warnings,
    };
    answer.commit(tx, &created).await?;

    Ok(created)
}

/// Maximum length of the message about a correction, in characters.
const LONGEST_MESSAGE: usize = 2000;

/// What a correction changes.
pub struct CorrectEnvelope {
    /// Another document.
    pub file: Option<DocumentUpload>,
    /// Other fields. None takes those of the new document's tags, or else those of the template.
    pub fields: Option<Vec<RequestedField>>,
    /// Values by field name. None takes those of the envelope that still have a field.
    pub prefilled: Option<Map<String, Value>>,
    /// What changed, for the signers and the ledger.
    pub message: String,
}

impl CorrectEnvelope {
    fn check(&self) -> Result<(), ServiceError> {
        let issue = |code: &str, member: &str, expected: &str, message: &str| {
            ValidationIssue::new(code, &[member], expected, "", message)
        };
        let mut issues = Vec::new();
        let length = self.message.trim().chars().count();
        if !(1..=LONGEST_MESSAGE).contains(&length) {
            let expected = format!("a text of 1 to {LONGEST_MESSAGE} characters");
            let why = "The signers are told what changed";
            issues.push(issue("invalid_message", "message", &expected, why));
        }
        if self.file.is_none() && self.fields.is_none() {
            let why = "Nothing is corrected";
            issues.push(issue(
                "unchanged",
                "file",
                "another document or fields",
                why,
            ));
        }

        if issues.is_empty() {
            Ok(())
        } else {
            Err(ServiceError::Invalid(issues))
        }
    }
}

/// Refuses an envelope that cannot be corrected.
pub(super) fn check_correctable(envelope: &Envelope) -> Result<(), ServiceError> {
    if !envelope.status.is_out_for_signing() {
        let status = envelope.status;
        return Err(ServiceError::Conflict(format!(
            "Cannot correct the document of an envelope with status: {status}"
        )));
    }
    // The corrected envelope would ask for the same payment again.
    if envelope.payment == Some(PaymentStatus::Paid) {
        let why = "The payment was made for this document: void the envelope, and refund it";
        return Err(ServiceError::Conflict(why.into()));
    }

    Ok(())
}

/// Voids an envelope that is out for signing, and sends a new version of it with another document or other fields to
/// the same people, in one transaction. Signatures on the earlier document do not count any more: they are named in
/// `envelope.voided`. Passcodes stay, because the signers know them.
///
/// # Errors
///
/// `Invalid` for an empty correction, and for people, values or fields that do not fit the document; `Conflict` for an
/// envelope that is not out for signing, or that was paid for.
pub async fn correct(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: CorrectEnvelope,
    answer: &ResponseRecorder<CreatedEnvelope>,
) -> Result<CreatedEnvelope, ServiceError> {
    let mut own = None;
    let corrected = correct_with(core, caller, id, request, &mut own, answer).await;
    if corrected.is_err()
        && let Some(document) = own
    {
        built::forget(core, caller, &document).await;
    }

    corrected
}

/// Corrects an envelope. `own` gets the document that is made for the new one.
async fn correct_with(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: CorrectEnvelope,
    own: &mut Option<Template>,
    answer: &ResponseRecorder<CreatedEnvelope>,
) -> Result<CreatedEnvelope, ServiceError> {
    let source = SourceRecords::read(core, caller, id).await?;
    request.check()?;
    let earlier = &source.envelope;
    check_correctable(earlier)?;
    // Asked before anything is stored or sent to the provider, and again under the lock.
    lifecycle::next_status(core, earlier, EnvelopeTrigger::Void).await?;

    let now = core.clock.now();
    let organization = organizations::read(core, &caller.org).await?;
    let mut envelope = successor(caller, earlier, &organization, now);
    envelope.set_link(EnvelopeLink::Corrects, &earlier.id);
    envelope.set_version(earlier.version() + 1);
    envelope.sending.message = Some(request.message.trim().to_owned());
    // The settings may have changed since the signers were shown the payment.
    let has_own_payment = source.payment.as_ref().is_some_and(|one| one.own);
    let payment = source.payment.as_ref().map(|one| one.asked.clone());
    envelope.payment = payment.as_ref().map(|_| PaymentStatus::RequiresPayment);

    let (template, mut notes) =
        corrected_document(core, caller, &source, &mut envelope, &request).await?;
    *own = Some(template.clone());
    let template = dispatch::ready(core, template).await?;
    envelope.template = Some(template.id.clone());
    envelope.sending.provider_instance = Some(template.provider_instance.clone());
    envelope.sending.kba_required = template.kba_required;

    let prefilled = match request.prefilled {
        Some(values) => values,
        None => values_with_field(earlier, &template),
    };
    envelope.set_prefilled(&prefilled);
    dispatch::check_fit(core, &template, Some(&prefilled)).await?;
    let kept = SendEnvelope::default();
    let ordered = envelope.sending.preserve_signing_order;
    let people = sending::planned(core, earlier, &template, &kept, ordered, Some(&prefilled));
    let (mut signers, recipients) = people.await?;
    notes.extend(warnings::of_unsigned_roles(&template, &signers));
    kba::check_step(core, &caller.org, template.kba_required).await?;
    let begun = lifecycle::first_status(core, &envelope).await?;
    envelope.status = begun.status;

    let checked = funding::before_sending(core, &envelope, &signers, None).await?;
    // Nothing of a refused correction is kept; the earlier envelope stays.
    if let Some(refused) = checked.refusal() {
        return Err(refused.into());
    }
    notes.extend(checked.warnings());

    let asked = DispatchRequest::of(&template, envelope.id.to_string(), Some(&prefilled));
    let signing = provider(core, &caller.org, &template.provider_instance)?;
    let submission = dispatch::submit(core, &signing, &envelope, asked, &mut signers).await?;
    envelope.sending.submission = Some(submission.clone());
    let new = envelope.id.clone();
    let plan = CreationPlan {
        envelope,
        origin: origin(EnvelopeLink::Corrects, earlier),
        decided: vec![begun],
        signers,
        recipients,
        signing: Some(signing),
        payment,
        has_own_payment,
        collateral: Vec::new(),
        open_link: None,
        checked: checked.into_record(),
    };

    let saved = replace(core, caller, &source, plan, notes, answer).await;
    // The submission exists at the provider, but no envelope names it: withdraw it.
    if saved.is_err() {
        let (org, instance) = (&caller.org, &template.provider_instance);
        dispatch::withdraw_unless_named(core, org, &new, instance, &submission).await;
    }

    saved
}

/// Returns the document of a corrected envelope as a template, with warnings about its file.
async fn corrected_document(
    core: &Core,
    caller: &Caller,
    source: &SourceRecords,
    envelope: &mut Envelope,
    request: &CorrectEnvelope,
) -> Result<(Template, Vec<Warning>), ServiceError> {
    let (document, notes) = match &request.file {
        Some(upload) => {
            let kind = upload.file_type()?;
            let received = uploads::receive(core, &caller.org, &envelope.id, kind, upload);
            let (file, checked) = received.await?;
            envelope.upload = Some(file.clone());
            envelope.existing_signatures = checked.signatures;
            let metadata = &mut envelope.metadata;
            metadata.insert("document_source".into(), "upload".into());
            metadata.remove("source_template_id");
            (file, checked.warnings)
        }
        None => {
            let sent = documents::file(core, &source.envelope).await?;
            let why = || ServiceError::Conflict("Envelope has no document".into());
            (sent.ok_or_else(why)?, Vec::new())
        }
    };

    let before = source.template.as_ref();
    let fields = ReplacedFields {
        requested: request.fields.as_deref(),
        before: before
            .map(|template| template.fields.as_slice())
            .unwrap_or_default(),
    };
    let template = built::corrected(core, caller, &document, fields, envelope).await?;
    Ok((template, notes))
}

/// Returns the values of an earlier envelope that a document still has fields for.
fn values_with_field(earlier: &Envelope, template: &Template) -> Map<String, Value> {
    let has_field = |name: &str| template.fields.iter().any(|field| field.name == name);
    let values = earlier.prefilled().into_iter().flatten();
    let kept = values.filter(|(name, _)| has_field(name));
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Voids the earlier envelope and writes the corrected one in one transaction.
async fn replace(
    core: &Core,
    caller: &Caller,
    source: &SourceRecords,
    mut plan: CreationPlan,
    warnings: Vec<Warning>,
    answer: &ResponseRecorder<CreatedEnvelope>,
) -> Result<CreatedEnvelope, ServiceError> {
    let cause = VoidCause {
        reason: plan.envelope.sending.message.clone(),
        corrected_by: Some(plan.envelope.id.clone()),
        ..VoidCause::default()
    };
    let zone = contract_dates::zone(core, &caller.org).await?;
    // Checked early, too, before the submission at the provider is archived.
    let mut connection = core.store.read().await?;
    source.check_people(&mut connection).await?;
    drop(connection);

    let earlier = &source.envelope;
    let (mut tx, voided) = voiding(core, caller, earlier.id.as_str(), cause).await?;
    source.check_people(&mut tx).await?;
    // They may have been set since the envelope was read.
    plan.envelope.set_contract_dates(&voided.contract_dates());
    let sign_url = creation::write(core, &mut tx, caller, &mut plan, voided.updated_at).await?;
    let dates = plan.envelope.contract_dates();
    contract_dates::plan_next(&mut tx, &plan.envelope, &dates, &zone).await?;
    fingerprints::copy_collateral(&mut tx, earlier, &plan.envelope.id).await?;
    let created = CreatedEnvelope {
        envelope: plan.envelope,
        sign_url,
        warnings,
    };
    answer.commit(tx, &created).await?;

    Ok(created)
}

/// Records of the envelope that a new one is made from.
struct SourceRecords {
    envelope: Envelope,
    signers: Vec<Signer>,
    recipients: Vec<Recipient>,
    /// Its document with the fields. A template is read even if it was deleted since.
    template: Option<Template>,
    /// Payment that the envelope or the settings requested.
    payment: Option<EnvelopePayment>,
}

impl SourceRecords {
    async fn read(core: &Core, caller: &Caller, id: &str) -> Result<Self, ServiceError> {
        let envelope = lookup::envelope(core, caller, id).await?;
        let (org, id) = (&envelope.org, &envelope.id);
        let mut connection = core.store.read().await?;
        erased_customers::permit_envelope(&mut connection, org, &envelope.customer).await?;
        let signers = signers::list(&mut connection, org, id).await?;
        let recipients = signers::recipients(&mut connection, org, id).await?;
        let payment = payments::get(&mut connection, org, id).await?;
        let template = match &envelope.template {
            Some(template) => templates::find(&mut connection, org, template).await?,
            None => None,
        };
        // One of the library, which is not shared with every user.
        if template
            .as_ref()
            .is_some_and(|template| !caller.sees(template))
        {
            return Err(ServiceError::NotFound("Template"));
        }

        Ok(Self {
            signers,
            recipients,
            template,
            payment,
            envelope,
        })
    }

    /// Refuses a correction if the people of the envelope were changed since they were read: the corrected one would ask
    /// the earlier people.
    async fn check_people(&self, connection: &mut SqlConnection) -> Result<(), ServiceError> {
        let (org, id) = (&self.envelope.org, &self.envelope.id);
        let signers = signers::list(connection, org, id).await?;
        let recipients = signers::recipients(connection, org, id).await?;

        if are_same(&signers, &self.signers) && recipients == self.recipients {
            Ok(())
        } else {
            let why = "The people of the envelope were changed meanwhile; correct it again";
            Err(ServiceError::Conflict(why.into()))
        }
    }

    /// Returns the payment of a copy, and whether the envelope itself requests it. Without one of its own, the present
    /// settings decide.
    fn payment_of_copy(&self, organization: &Organization) -> (Option<PaymentSettings>, bool) {
        match self.payment.as_ref().filter(|one| one.own) {
            Some(own) => (Some(own.asked.clone()), true),
            None => (organization.settings.payment.clone(), false),
        }
    }
}

/// Returns whether two lists are of the same signers, regardless of progress.
fn are_same(left: &[Signer], right: &[Signer]) -> bool {
    let is_same = |(left, right): (&Signer, &Signer)| {
        left.id == right.id
            && left.name == right.name
            && left.email == right.email
            && left.phone == right.phone
            && left.role == right.role
    };
    left.len() == right.len() && left.iter().zip(right).all(is_same)
}

/// Returns the record of a new envelope with the settings of an earlier one.
fn successor(
    caller: &Caller,
    earlier: &Envelope,
    organization: &Organization,
    now: Timestamp,
) -> Envelope {
    let mut metadata = earlier.metadata.clone();
    // The batch, the relations and the version are those of the earlier envelope.
    metadata.remove("bulk_send");
    metadata.remove(VERSION);
    for link in EnvelopeLink::ALL {
        metadata.remove(link.as_str());
    }

    let days = u64::from(organization.settings.envelope_ttl_days);
    let new = Envelope::new(
        earlier.org.clone(),
        earlier.customer.clone(),
        earlier.name.clone(),
        earlier.kind,
        caller.creator(),
        now,
    );
    let mut envelope = Envelope {
        external_id: earlier.external_id.clone(),
        metadata,
        secured_party: earlier.secured_party.clone(),
        sending: SentDocument {
            provider_instance: None,
            submission: None,
            ..earlier.sending.clone()
        },
        expires_at: Some(now + Duration::from_secs(days * 86_400)),
        // Vaulting without a person needs an acceptance of its own.
        auto_vault: earlier.auto_vault.filter(|is_unattended| !is_unattended),
        ..new
    };

    // The plan of the sending and its failure are those of the earlier envelope.
    envelope.plan_sending(None);
    // The reminders of the earlier envelope do not count.
    if let Some(planned) = earlier.reminders() {
        envelope.set_reminders(PlannedReminders::new(planned.plan));
    }

    envelope
}

/// Copies the document of an earlier envelope to a new one. Returns the decision about its upload.
async fn copy_document(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    source: &SourceRecords,
    envelope: &mut Envelope,
) -> Result<Option<LifecycleDecision>, ServiceError> {
    let mut decided = None;
    if let Some(upload) = &source.envelope.upload {
        let decision = lifecycle::decide(core, envelope, EnvelopeTrigger::Upload).await?;
        envelope.status = decision.status;
        envelope.upload = Some(copy_file(core, upload, envelope).await?);
        envelope.existing_signatures = source.envelope.existing_signatures.clone();
        decided = Some(decision);
    }

    // A template without a file is one that was only begun in the field builder.
    let template = source.template.as_ref();
    if let Some(template) = template.filter(|template| template.document.is_some()) {
        let own = built::copied(core, pages, caller, template, envelope).await?;
        envelope.sending.kba_required = own.kba_required;
        envelope.template = Some(own.id);
    }

    Ok(decided)
}

/// Stores a file of another envelope again, because each file belongs to one owner.
async fn copy_file(
    core: &Core,
    file: &StoredFile,
    envelope: &Envelope,
) -> Result<StoredFile, ServiceError> {
    let (org, owner) = (&envelope.org, envelope.id.as_str());
    let _room = admit(core, &WorkOwner::new(org, owner), file.size.unsigned_abs()).await?;
    let bytes = core.files.get(file).await?;
    let area = StorageArea::Uploads;
    let stored = core.files.put(area, org, owner, bytes, &file.content_type);
    Ok(stored.await?)
}

/// Returns the same person without what belongs to the earlier envelope: identity, progress and passcode.
fn signer_afresh(earlier: &Signer) -> Signer {
    let (name, email) = (earlier.name.clone(), earlier.email.clone());
    Signer {
        kind: earlier.kind,
        witness_of: earlier.witness_of.clone(),
        same_device: earlier.same_device,
        group: earlier.group.clone(),
        turn: earlier.turn,
        access: earlier.access,
        phone: earlier.phone.clone(),
        notify_by: earlier.notify_by,
        locale: earlier.locale,
        time_zone: earlier.time_zone.clone(),
        consumer: earlier.consumer,
        ..Signer::new(earlier.position, name, email, earlier.role.clone())
    }
}

/// Warns about signers who need a passcode before the envelope can be sent.
fn without_passcode(signers: &[Signer]) -> Vec<Warning> {
    let signers = signers.iter().enumerate();
    let asked = signers.filter(|(_, signer)| signer.access == SignerAccess::Passcode);
    let warning = |(index, signer): (usize, &Signer)| {
        let message = format!(
            "{} is to enter a passcode, which is not copied: name the signers on sending",
            signer.name
        );
        let path = ["signers", &index.to_string(), "passcode"];
        Warning::new("passcode_missing", &path, message)
    };
    asked.map(warning).collect()
}

/// Returns what the first entry of the new ledger states about the earlier envelope.
fn origin(link: EnvelopeLink, earlier: &Envelope) -> Map<String, Value> {
    Map::from_iter([(link.as_str().to_owned(), json!(earlier.id))])
}

/// Records in the earlier envelope which one was made from it.
async fn note_copy(
    tx: &mut WriteTransaction,
    caller: &Caller,
    earlier: &Envelope,
    copy: &Envelope,
    now: Timestamp,
) -> Result<(), ServiceError> {
    // Read again under the lock, because the metadata is written as a whole. The time of the last change stays: a copy
    // changes nothing for the parties of the earlier envelope.
    let mut locked = lookup::lock_envelope(tx, &earlier.org, &earlier.id).await?;
    locked.set_link(EnvelopeLink::CopiedTo, &copy.id);
    envelopes::set_metadata(tx, &locked).await?;

    let details = json!({ "copied_to": copy.id });
    events::record(tx, &locked, &caller.actor, "envelope.copied", details, now).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::envelope::SignerStatus;

    #[test]
    fn another_person_is_a_change_of_signers_and_progress_is_not() {
        let ann = Signer::new(0, "Ann".into(), "ann@oak.example".into(), "Buyer".into());
        let viewed = Signer {
            status: SignerStatus::Viewed,
            ..ann.clone()
        };
        assert!(are_same(std::slice::from_ref(&ann), &[viewed]));

        let bo = Signer {
            email: "bo@oak.example".into(),
            ..ann.clone()
        };
        assert!(!are_same(std::slice::from_ref(&ann), &[bo]));
        assert!(!are_same(&[ann], &[]));
    }
}
