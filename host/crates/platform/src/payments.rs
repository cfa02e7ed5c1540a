//! Payment at signing: a provider collects the payment, and an envelope that requires one
//! is vaulted only after it was paid (specification, "Payment status").
//!
//! A callback only names the payment to look up. Its status is read from the provider, so
//! repeated, reordered or lost callbacks do no harm.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::error::CallbackError;
use crate::events;
use crate::lookup;
use crate::sandbox;
use crate::vaulting;
use crate::{Caller, Core, ServiceError};
use holdfast_base::config::EMBEDDED;
use holdfast_components::providers::{
    LeasedPlugin, PaymentProvider, ProviderError, payment as seen,
};
use holdfast_domain::component::{InstanceReference, Slot};
use holdfast_domain::envelope::{
    Envelope, EnvelopeKind, EnvelopeStatus, PaymentStatus, Signer, same_address,
};
use holdfast_domain::event::EventType;
use holdfast_domain::id::OrgId;
use holdfast_domain::organization::FIRST_PAYER;
use holdfast_store::payments::EnvelopePayment;
use holdfast_store::row::OwnedEnvelope;
use holdfast_store::{customers, envelopes, ledger, organizations, payments, signers};

/// Default interval at which open payments are polled at their provider.
const INTERVAL: Duration = Duration::from_secs(300);
/// Polling of a payment stops this long after its intent was created.
const GIVEN_UP: Duration = Duration::from_secs(60 * 86_400);
/// Number of payments claimed in one round.
const BATCH: i64 = 32;
/// Number of claimed payments that are polled concurrently.
const AT_ONCE: usize = 4;

/// Data that the payer's browser needs (specification, `POST /embed/payment-intent`).
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "payment_required": true, "payment_id": "pay_01jdk7m3e8f4x9s2w5v6b0c1dh",
    "client_secret": "pi_3QK…_secret_…", "publishable_key": "pk_live_…",
    "amount_cents": 4900, "currency": "USD", "status": "requires_payment",
}]))]
pub struct PaymentIntent {
    /// False when no payment is due, or none from this signer.
    pub payment_required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment_id: Option<String>,
    /// Secret for the processor's own form in the payer's browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publishable_key: Option<String>,
    /// Amount in minor units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount_cents: Option<u64>,
    /// ISO 4217 code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PaymentStatus>,
    /// Page on which the payer can pay, if the provider has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment_url: Option<String>,
    /// The processor's script for browsers, if it has one.
    #[serde(skip)]
    pub script: Option<String>,
}

/// Status of an envelope's payment (specification, `POST /embed/payment-status`).
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{ "status": "paid" }]))]
pub struct PaymentStatusView {
    /// Null when the envelope requires no payment.
    pub status: Option<PaymentStatus>,
}

/// An open payment and its payer.
pub struct PaymentDue {
    pub payment: EnvelopePayment,
    pub payer_email: String,
    /// The payer's position among the signers; none for a document that is not signed here.
    pub position: Option<i64>,
}

/// Returns the open payment of an envelope and its payer, or none when nothing is due.
pub async fn due(core: &Core, envelope: &Envelope) -> Result<Option<PaymentDue>, ServiceError> {
    // In the vault it was paid before, and one that has ended is not to be paid any more.
    let open = match envelope.status {
        EnvelopeStatus::Sent | EnvelopeStatus::Viewed | EnvelopeStatus::Completed => true,
        EnvelopeStatus::Uploaded => envelope.kind == EnvelopeKind::Paper,
        EnvelopeStatus::Pending
        | EnvelopeStatus::Preparing
        | EnvelopeStatus::Vaulted
        | EnvelopeStatus::VaultedOut
        | EnvelopeStatus::Declined
        | EnvelopeStatus::Voided
        | EnvelopeStatus::Expired => false,
    };

    if !open || envelope.payment != Some(PaymentStatus::RequiresPayment) {
        return Ok(None);
    }

    let mut connection = core.store.read().await?;
    let payment = payments::get(&mut connection, &envelope.org, &envelope.id).await?;
    let signers = signers::list(&mut connection, &envelope.org, &envelope.id).await?;
    let customer = customers::get(&mut connection, &envelope.org, &envelope.customer).await?;
    Ok(payment.and_then(|payment| {
        let signer = payer(&payment.asked.payer, signers);
        Some(PaymentDue {
            position: signer.as_ref().map(|signer| signer.position),
            payer_email: match signer {
                Some(signer) => signer.email,
                // Paper envelopes have no signers, so the customer pays.
                None => customer?.email?,
            },
            payment,
        })
    }))
}

/// Returns the signer with the payer's role. If the document lacks a role that the
/// organization always has pay, the first signer pays.
fn payer(role: &str, mut signers: Vec<Signer>) -> Option<Signer> {
    let named = |signer: &Signer| role != FIRST_PAYER && signer.role == role;
    let index = signers.iter().position(named).unwrap_or(0);
    (index < signers.len()).then(|| signers.swap_remove(index))
}

/// Requests the payment from its payer, if `email` is the payer. A token of the widgets names an
/// address only; where the signer is known, `position` is theirs: two may have one address.
pub async fn intent(
    core: &Core,
    envelope: &Envelope,
    email: &str,
    position: Option<i64>,
) -> Result<PaymentIntent, ServiceError> {
    let is_payer = |due: &PaymentDue| {
        same_address(&due.payer_email, email)
            && position.is_none_or(|position| due.position == Some(position))
    };
    match due(core, envelope).await?.filter(is_payer) {
        Some(due) => begun(core, &due).await,
        None => Ok(PaymentIntent::default()),
    }
}

/// Requests the payment of an envelope regardless of its payer. For the organization's back
/// office, when the payer has no signing link, or no longer uses it.
pub async fn collect(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<PaymentIntent, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    match due(core, &envelope).await? {
        Some(due) => begun(core, &due).await,
        None => Ok(PaymentIntent::default()),
    }
}

async fn begun(core: &Core, due: &PaymentDue) -> Result<PaymentIntent, ServiceError> {
    let (payment, intent) = asked(core, due).await?;
    let status = settle(core, &payment, &intent).await?;

    // Paid in the meantime: nothing is due any more.
    if status == PaymentStatus::Paid {
        return Ok(PaymentIntent::default());
    }

    // A script from an organization's own plugin would run on pages that all
    // organizations share, so only the operator's instances may provide one.
    let operators = is_operators(&payment);
    Ok(PaymentIntent {
        payment_required: true,
        payment_id: Some(payment.id.to_string()),
        client_secret: Some(intent.client_secret),
        publishable_key: Some(intent.publishable_key),
        amount_cents: Some(payment.asked.amount_cents),
        currency: Some(payment.asked.currency),
        status: Some(status),
        payment_url: intent.page,
        script: intent.script.filter(|_| operators),
    })
}

/// Returns whether the payment's provider instance belongs to the operator.
fn is_operators(payment: &EnvelopePayment) -> bool {
    let instance = payment.intent.as_ref().map(|(instance, _)| instance);
    instance.is_some_and(|instance| InstanceReference::parse(instance).org.is_none())
}

/// Returns the payment status, read from the provider while the payment is open.
pub async fn standing(core: &Core, envelope: &Envelope) -> Result<PaymentStatusView, ServiceError> {
    let mut status = envelope.payment;
    if status == Some(PaymentStatus::RequiresPayment) {
        let mut connection = core.store.read().await?;
        let payment = payments::get(&mut connection, &envelope.org, &envelope.id).await?;
        drop(connection);

        if let Some(payment) = payment
            && payment.intent.is_some()
        {
            status = Some(reconcile(core, &payment).await?);
        }
    }

    Ok(PaymentStatusView { status })
}

/// Returns the payment intent at the provider, and creates it if there is none yet. The
/// payment's id is the provider's idempotency key.
async fn asked(
    core: &Core,
    due: &PaymentDue,
) -> Result<(EnvelopePayment, seen::Intent), ServiceError> {
    let payment = &due.payment;
    if payment.intent.is_some() {
        let intent = read(core, payment).await?;
        // A canceled intent can never be paid, so a new one is created.
        if intent.status != seen::PaymentStatus::Canceled {
            return Ok((payment.clone(), intent));
        }
    }

    core.before_provider_call()?;
    let org = &payment.org;
    let instance = core.instance(Slot::Payment, org);
    let asked = provider(core, Some(org), &instance)?;
    let request = seen::IntentRequest {
        // The suffix makes a new idempotency key: with the old one the provider would
        // return the canceled intent.
        payment_id: match payment.begun {
            0 => payment.id.to_string(),
            before => format!("{}-{}", payment.id, before + 1),
        },
        envelope_id: payment.envelope.to_string(),
        amount: payment.asked.amount_cents,
        currency: payment.asked.currency.clone(),
        connected_account: payment.asked.connected_account.clone(),
        platform_fee: payment.asked.platform_fee_cents,
        payer_email: Some(due.payer_email.clone()),
    };

    let intent = asked.create_intent(request).await.map_err(failed)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = envelopes::lock(&mut tx, org, &payment.envelope).await?;
    let envelope = envelope.ok_or(ServiceError::NotFound("Envelope"))?;
    if payments::set_intent(&mut tx, payment, &instance, &intent.intent_id, now).await? {
        let mut details = json!({
            "payment_id": payment.id,
            "provider_instance": instance,
            "intent_id": intent.intent_id,
            "amount_cents": payment.asked.amount_cents,
            "currency": payment.asked.currency,
        });
        sandbox::mark(&mut details, &instance);

        let actor = format!("payer:{}", due.payer_email);
        events::record(
            &mut tx,
            &envelope,
            &actor,
            "payment.requested",
            details,
            now,
        )
        .await?;

        tx.commit().await?;
        let intent_of = Some((instance, intent.intent_id.clone()));
        let payment = EnvelopePayment {
            begun: payment.begun + 1,
            intent: intent_of,
            ..payment.clone()
        };

        return Ok((payment, intent));
    }

    drop(tx);

    // A concurrent request recorded its intent first; use that one.
    let mut connection = core.store.read().await?;
    let now = payments::get(&mut connection, org, &payment.envelope).await?;
    drop(connection);
    let payment = now.ok_or(ServiceError::NotFound("Envelope"))?;
    let intent = read(core, &payment).await?;

    Ok((payment, intent))
}

/// Reads the payment intent from its provider.
async fn read(core: &Core, payment: &EnvelopePayment) -> Result<seen::Intent, ServiceError> {
    let Some((instance, intent)) = &payment.intent else {
        return Err(ServiceError::NotFound("Payment"));
    };
    let asked = provider(core, Some(&payment.org), instance)?;
    asked.read_intent(intent).await.map_err(failed)
}

/// Returns the provider behind an instance. `org` is none only for reading a callback.
///
/// # Errors
/// [`ServiceError::NotConfigured`] when there is no such instance.
fn provider(
    core: &Core,
    org: Option<&OrgId>,
    instance: &str,
) -> Result<Box<dyn PaymentProvider>, ServiceError> {
    if instance == EMBEDDED {
        return Ok(core.sandbox(Slot::Payment, org)?.payment(org));
    }

    let lease = core.lease(Slot::Payment, instance)?;
    let plugin = match org {
        Some(org) => core.components.payment(Some(org), instance),
        None => core.components.payment_callbacks(instance),
    };
    Ok(Box::new(LeasedPlugin { plugin, lease }))
}

fn failed(error: ProviderError) -> ServiceError {
    ServiceError::OtherProvider(Slot::Payment, error)
}

/// Reads the payment from its provider and records a change of its status.
async fn reconcile(core: &Core, payment: &EnvelopePayment) -> Result<PaymentStatus, ServiceError> {
    let intent = read(core, payment).await?;
    settle(core, payment, &intent).await
}

/// Records the payment, exactly once, if the provider reports it as paid in full and in the
/// right currency.
async fn settle(
    core: &Core,
    payment: &EnvelopePayment,
    intent: &seen::Intent,
) -> Result<PaymentStatus, ServiceError> {
    let asked = &payment.asked;
    let same_currency = intent.currency.eq_ignore_ascii_case(&asked.currency);

    // Another amount or currency is not this payment, even if the provider calls it paid.
    if intent.amount != asked.amount_cents || !same_currency {
        return Err(failed(ProviderError::Rejected(format!(
            "the provider has {} {} for a payment of {} {}",
            intent.amount, intent.currency, asked.amount_cents, asked.currency
        ))));
    }
    if intent.status != seen::PaymentStatus::Paid {
        return Ok(PaymentStatus::RequiresPayment);
    }

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = envelopes::lock(&mut tx, &payment.org, &payment.envelope).await?;
    let envelope = envelope.ok_or(ServiceError::NotFound("Envelope"))?;

    // Compare-and-swap: a callback and a poll may arrive here at the same time, and
    // one of them writes the ledger entry and the event.
    if !payments::set_paid(&mut tx, payment, now).await? {
        return Ok(PaymentStatus::Paid);
    }

    envelopes::set_payment(&mut tx, &envelope, PaymentStatus::Paid, now).await?;

    // The money has arrived, so it is recorded. The operator may have to refund it.
    if matches!(
        envelope.status,
        EnvelopeStatus::Voided | EnvelopeStatus::Declined | EnvelopeStatus::Expired
    ) {
        let status = envelope.status;
        tracing::warn!(envelope = %envelope.id, %status, "payment received for an ended envelope");
    }

    let data = json!({ "amount_cents": asked.amount_cents, "currency": asked.currency });
    let mut details = data.clone();
    details["envelope_status"] = json!(envelope.status);
    details["payment_id"] = json!(payment.id);
    details["intent_id"] = json!(intent.intent_id);
    if let Some((instance, _)) = &payment.intent {
        sandbox::mark(&mut details, instance);
    }

    let (event, actor) = (EventType::PaymentSucceeded, "provider");
    events::record(&mut tx, &envelope, actor, event.as_str(), details, now).await?;
    events::emit(&mut tx, &envelope, event, data, now).await?;

    // A signed envelope that is vaulted automatically was waiting for the payment.
    let organization = organizations::get(&mut tx, &payment.org).await?;
    let standing = organization.is_some_and(|organization| organization.settings.auto_vault);
    if envelope.status == EnvelopeStatus::Completed && envelope.is_vaulted_unattended(standing) {
        vaulting::queue(&mut tx, &envelope, None, now).await?;
    }

    tx.commit().await?;
    Ok(PaymentStatus::Paid)
}

/// Handles a provider's callback.
pub async fn callback(
    core: &Core,
    instance: &str,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
) -> Result<(), CallbackError> {
    let subject = provider(core, None, instance)?
        .read_callback(seen::Callback { headers, body })
        .await
        .map_err(ServiceError::from)?;
    match subject {
        Ok(seen::CallbackSubject::Intent(intent)) => catch_up(core, instance, &intent).await?,
        Ok(seen::CallbackSubject::Reversal((intent, amount, word))) => {
            if let Some(payment) = of_intent(core, instance, &intent).await? {
                note_reversal(core, &payment, amount, &word).await?;
            }
        }
        Ok(seen::CallbackSubject::Ignored) => {}
        Err(seen::CallbackError::Unverified(why)) => return Err(CallbackError::Unverified(why)),
        Err(seen::CallbackError::Malformed(why)) => return Err(CallbackError::Malformed(why)),
    }

    Ok(())
}

/// Reconciles the payment that belongs to a provider's intent.
pub async fn catch_up(core: &Core, instance: &str, intent: &str) -> Result<(), ServiceError> {
    match of_intent(core, instance, intent).await? {
        Some(payment) => reconcile(core, &payment).await.map(drop),
        None => Ok(()),
    }
}

/// Returns the payment of an intent; none for another service's payment at the same
/// processor.
async fn of_intent(
    core: &Core,
    instance: &str,
    intent: &str,
) -> Result<Option<EnvelopePayment>, ServiceError> {
    let mut connection = core.store.read().await?;
    Ok(payments::by_intent(&mut connection, instance, intent).await?)
}

/// Records a refund or dispute in the ledger, once. It changes no state, because a vaulted
/// document stays signed.
async fn note_reversal(
    core: &Core,
    payment: &EnvelopePayment,
    amount: u64,
    word: &str,
) -> Result<(), ServiceError> {
    const ACTION: &str = "payment.reversal_reported";

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = envelopes::lock(&mut tx, &payment.org, &payment.envelope).await?;
    let envelope = envelope.ok_or(ServiceError::NotFound("Envelope"))?;
    let details = json!({
        "payment_id": payment.id,
        "amount_cents": amount,
        "currency": payment.asked.currency,
        "reason": word,
    });
    // Providers repeat callbacks: the same reversal is recorded once.
    let entries = ledger::list(&mut tx, Some(&payment.org), &payment.envelope).await?;
    if entries.iter().any(|entry| entry.is_of(ACTION, &details)) {
        return Ok(());
    }

    tracing::warn!(envelope = %envelope.id, amount, word, "payment reversal reported");
    events::record(&mut tx, &envelope, "provider", ACTION, details, now).await?;
    Ok(tx.commit().await?)
}

/// Polls open payments, longest unchecked first, so that a lost callback is only a delay.
pub async fn round(core: &Core) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let interval = core.config.sweep_interval.unwrap_or(INTERVAL);
    loop {
        let due = payments::claim(&core.store, now - GIVEN_UP, now - interval, now, BATCH).await?;
        // A full batch: more payments may be due.
        let more = due.len() as i64 == BATCH && !core.stopping.is_cancelled();
        stream::iter(due)
            .for_each_concurrent(AT_ONCE, |due| look(core, due))
            .await;

        if !more {
            return Ok(());
        }
    }
}

async fn look(core: &Core, due: OwnedEnvelope) {
    let looked = async {
        let mut connection = core.store.read().await?;
        let payment = payments::get(&mut connection, &due.org, &due.envelope).await?;
        drop(connection);
        let payment = payment.ok_or(ServiceError::NotFound("Payment"))?;
        reconcile(core, &payment).await
    };

    match looked.await {
        Ok(_) => drop(core.metrics.provider_polls.inc()),
        Err(error) => {
            core.metrics.provider_polls_failed.inc();
            tracing::warn!(envelope = %due.envelope, %error, "payment could not be read back");
        }
    }
}
