//! Claims the next items of a batch. The claim's transaction also creates the envelopes of items
//! that have none yet.

use std::time::Duration;

use serde_json::{Map, json};

use super::drive::LEASE;
use crate::envelopes::lifecycle;
use holdfast_domain::bulk::{Batch, BatchItem, ItemOutcome, NO_EMAIL, SubmittedMaster};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{
    Envelope, EnvelopeKind, EnvelopeStatus, PaymentStatus, SentDocument, Signer,
};
use holdfast_domain::organization::Organization;
use holdfast_domain::prefill;
use holdfast_domain::reminders::PlannedReminders;
use holdfast_platform::events;
use holdfast_platform::organizations;
use holdfast_platform::{Core, ServiceError};
use holdfast_store::customers::CustomerRow;
use holdfast_store::{
    WriteTransaction, bulk, customers, envelopes as envelope_store, payments,
    signers as signer_store,
};

/// Claimed item with everything needed to send it.
pub(super) struct ClaimedItem {
    pub item: BatchItem,
    pub envelope: Envelope,
    pub signers: Vec<Signer>,
    /// Values of the client's fields.
    pub values: Vec<(String, String)>,
}

/// Leases the next items and creates their envelopes where missing.
pub(super) async fn claim(
    core: &Core,
    batch: &Batch,
    master: &SubmittedMaster,
    limit: i64,
) -> Result<Vec<ClaimedItem>, ServiceError> {
    // Read before the transaction begins, to keep the time of its locks short.
    let organization = organizations::read(core, &batch.org).await?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let items = bulk::claim(&mut tx, batch, now, LEASE, limit).await?;
    if items.is_empty() {
        return Ok(Vec::new());
    }

    let ids: Vec<_> = items.iter().map(|item| item.customer.clone()).collect();
    let clients = customers::by_ids(&mut tx, &batch.org, &ids).await?;
    let mut parcels = Vec::new();
    for item in items {
        // An earlier attempt may have created the envelope and failed at the provider.
        let envelope = match &item.envelope {
            Some(id) => envelope_store::get(&mut tx, &batch.org, id).await?,
            None => None,
        };

        // The envelope was sent by hand, or ended, before this attempt.
        if let Some(settled) = envelope
            .as_ref()
            .and_then(|envelope| overtaken(envelope, now))
        {
            bulk::settle(&mut tx, &item, &settled).await?;
            continue;
        }

        // The client's current data, not the data at the time the list was made.
        let client = clients.get(&item.customer);
        let email = client.and_then(|client| client.email.as_deref());
        let (Some(client), Some(email), None) = (client, email, batch.skips(email)) else {
            let why = batch.skips(email).unwrap_or(NO_EMAIL);
            bulk::settle(&mut tx, &item, &ItemOutcome::Skipped(why.into())).await?;
            continue;
        };

        let signers = signers(batch, master, client, email);
        let envelope = match envelope {
            Some(envelope) => envelope,
            None => {
                let of = (batch, master, &item);
                create(core, &mut tx, of, client, &signers, &organization).await?
            }
        };
        let role = master.roles.first().map(String::as_str).unwrap_or_default();
        let values = prefill::values(&master.fields, role, |datum| client.datum(datum));

        parcels.push(ClaimedItem {
            item,
            envelope,
            signers,
            values,
        });
    }

    tx.commit().await?;
    Ok(parcels)
}

/// Returns the outcome of an envelope that no longer waits to be sent; none for one that does.
pub(super) fn overtaken(envelope: &Envelope, now: Timestamp) -> Option<ItemOutcome> {
    let status = envelope.status;
    if status == EnvelopeStatus::Preparing {
        None
    } else if status.is_out_for_signing() || status.is_signed() {
        // The client has the document, so the item has reached its goal.
        Some(ItemOutcome::Sent(now))
    } else {
        Some(ItemOutcome::Failed(format!("Envelope is {status}")))
    }
}

/// Returns the signers: the client first, then the sender if they are to sign too.
fn signers(
    batch: &Batch,
    master: &SubmittedMaster,
    client: &CustomerRow,
    email: &str,
) -> Vec<Signer> {
    let contact = client.datum("primary_contact_name");
    let client = (
        contact.unwrap_or_else(|| client.name.clone()),
        email.to_owned(),
    );
    let sender = (batch.created_by.clone(), batch.created_by.clone());
    let people = if batch.add_me_as_signer {
        vec![client, sender]
    } else {
        vec![client]
    };

    people
        .into_iter()
        .zip(&master.roles)
        .zip(0..)
        .map(|(((name, email), role), position)| Signer::new(position, name, email, role.clone()))
        .collect()
}

/// Creates an item's envelope. From now on it is among the client's documents.
async fn create(
    core: &Core,
    tx: &mut WriteTransaction,
    (batch, master, item): (&Batch, &SubmittedMaster, &BatchItem),
    client: &CustomerRow,
    signers: &[Signer],
    organization: &Organization,
) -> Result<Envelope, ServiceError> {
    let now = core.clock.now();
    let mut metadata = Map::new();
    metadata.insert("document_source".into(), json!(batch.source));
    if let Some(source) = &batch.source_template {
        metadata.insert("source_template_id".into(), json!(source));
    }

    if let Some(source) = &batch.source_package {
        metadata.insert("source_package_id".into(), json!(source));
    }

    let origin = json!({ "batch_id": batch.id, "item_id": item.id });
    metadata.insert("bulk_send".into(), origin.clone());
    if !batch.tags.is_empty() {
        metadata.insert("tag_ids".into(), json!(batch.tags));
    }

    let payment = organization.settings.payment.as_ref();
    let days = u64::from(organization.settings.envelope_ttl_days);
    let new = Envelope::new(
        batch.org.clone(),
        client.id.clone(),
        batch.name.clone(),
        EnvelopeKind::Esign,
        batch.created_by.clone(),
        now,
    );
    let mut envelope = Envelope {
        template: batch.master.clone(),
        metadata,
        sending: SentDocument {
            provider_instance: batch.provider_instance.clone(),
            preserve_signing_order: batch.preserve_signing_order,
            kba_required: batch.kba_required,
            may_decline: !master.forbids_declining,
            ..SentDocument::default()
        },
        expires_at: Some(now + Duration::from_secs(days * 86_400)),
        payment: payment.map(|_| PaymentStatus::RequiresPayment),
        auto_vault: Some(batch.auto_vault_enabled),
        vault_terms: batch.terms.clone(),
        batch: Some(batch.id.clone()),
        ..new
    };

    // The setting of today is copied, because the law of an envelope must not change with a setting.
    let jurisdiction = organization.settings.chattel_paper_jurisdiction.as_ref();
    envelope.set_jurisdiction(jurisdiction);
    if let Some(plan) = master.reminders.or(organization.settings.reminders) {
        envelope.set_reminders(PlannedReminders::new(plan));
    }
    let begun = lifecycle::first_status_in_bulk(core, &envelope).await?;
    envelope.status = begun.status;
    envelope_store::insert(tx, &envelope).await?;
    // In the transaction of the claim: after a crash the next worker finds this
    // envelope and makes no second one.
    bulk::set_envelope(tx, item, &envelope.id).await?;
    if let Some(payment) = payment {
        payments::insert(tx, &envelope, payment, false, now).await?;
    }

    begun.record(tx, &envelope, now).await?;
    let mut more = Map::from_iter([("bulk_send".to_owned(), origin)]);
    // The batch is no part of an envelope's evidence, so its own ledger shows who authorized the vaulting.
    if let Some(terms) = &envelope.vault_terms {
        let (at, by) = (json!(terms.accepted_at), json!(terms.accepted_by));
        more.insert("vault_in_terms_accepted_at".into(), at);
        more.insert("vault_in_terms_accepted_by".into(), by);
    }

    events::record_created(tx, &envelope, &actor(batch), more, now).await?;
    for signer in signers {
        signer_store::insert(tx, &envelope, signer).await?;
    }

    Ok(envelope)
}

/// Returns the sender as the actor of ledger entries.
pub(super) fn actor(batch: &Batch) -> String {
    format!("user:{}", batch.created_by)
}
