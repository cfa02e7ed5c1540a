//! New envelopes made from earlier ones.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::envelopes::creation::{self, CreatedEnvelope, CreationPlan};
use crate::envelopes::lifecycle::{self, LifecycleDecision};
use crate::templates::built;
use crate::templates::pages::PageCache;
use holdfast_adapters::files::StorageArea;
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{
    Envelope, EnvelopeLink, PaymentStatus, Recipient, SentDocument, Signer, SignerAccess,
    StoredFile,
};
use holdfast_domain::organization::{Organization, PaymentSettings};
use holdfast_domain::reminders::PlannedReminders;
use holdfast_domain::template::Template;
use holdfast_domain::warning::Warning;
use holdfast_platform::documents::admit;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, ServiceError, events, lookup, organizations};
use holdfast_store::{WriteTransaction, envelopes, fingerprints, payments, signers, templates};

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
    let (payment, has_own_payment) = source.payment(&organization);
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

/// Records of the envelope that a new one is made from.
struct SourceRecords {
    envelope: Envelope,
    signers: Vec<Signer>,
    recipients: Vec<Recipient>,
    /// Its document with the fields. A template is read even if it was deleted since.
    template: Option<Template>,
    /// Payment that the envelope itself requested.
    own_payment: Option<PaymentSettings>,
}

impl SourceRecords {
    async fn read(core: &Core, caller: &Caller, id: &str) -> Result<Self, ServiceError> {
        let envelope = lookup::envelope(core, caller, id).await?;
        let (org, id) = (&envelope.org, &envelope.id);
        let mut connection = core.store.read().await?;
        let signers = signers::list(&mut connection, org, id).await?;
        let recipients = signers::recipients(&mut connection, org, id).await?;
        let payment = payments::get(&mut connection, org, id).await?;
        let template = match &envelope.template {
            Some(template) => templates::find(&mut connection, org, template).await?,
            None => None,
        };

        Ok(Self {
            signers,
            recipients,
            template,
            own_payment: payment.filter(|one| one.own).map(|one| one.asked),
            envelope,
        })
    }

    /// Returns the payment of the new envelope, and whether the envelope itself requests it.
    fn payment(&self, organization: &Organization) -> (Option<PaymentSettings>, bool) {
        match &self.own_payment {
            Some(own) => (Some(own.clone()), true),
            None => (organization.settings.payment.clone(), false),
        }
    }
}

/// Returns the record of a new envelope with the settings of an earlier one.
fn successor(
    caller: &Caller,
    earlier: &Envelope,
    organization: &Organization,
    now: Timestamp,
) -> Envelope {
    let mut metadata = earlier.metadata.clone();
    // The batch and the relations are those of the earlier envelope.
    metadata.remove("bulk_send");
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
        auto_vault: earlier.auto_vault,
        ..new
    };

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
        turn: earlier.turn,
        access: earlier.access,
        phone: earlier.phone.clone(),
        notify_by: earlier.notify_by,
        locale: earlier.locale,
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
    let locked = envelopes::lock(tx, &earlier.org, &earlier.id).await?;
    let mut locked = locked.ok_or(ServiceError::NotFound("Envelope"))?;
    locked.set_link(EnvelopeLink::CopiedTo, &copy.id);
    envelopes::set_metadata(tx, &locked).await?;

    let details = json!({ "copied_to": copy.id });
    events::record(tx, &locked, &caller.actor, "envelope.copied", details, now).await?;
    Ok(())
}
