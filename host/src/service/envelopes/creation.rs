//! Creating envelopes.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::domain::clock::Timestamp;
use crate::domain::envelope::{
    Envelope, EnvelopeKind, PaymentStatus, SecuredParty, Sending, Signer,
};
use crate::domain::event::EventType;
use crate::domain::id::CustomerId;
use crate::domain::organization::{FIRST_PAYER, Organization, PaymentSettings, known_currency};
use crate::domain::template::Template;
use crate::domain::warning::Warning;
use crate::service::envelopes::dispatch::{self, RequestedSigner, Wanted, planned};
use crate::service::envelopes::lifecycle::{self, Decision};
use crate::service::envelopes::warnings;
use crate::service::events;
use crate::service::idempotency::Answering;
use crate::service::signing::links;
use crate::service::signing::provider::{SigningProvider, provider};
use crate::service::{Caller, Core, Issue, ServiceError, kba};
use crate::store::{customers, envelopes, payments, signers};

/// Body of `POST /partner/envelopes`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_name": "Retail instalment contract 2041",
    "customer_email": "jordan.lee@example.com",
    "customer_name": "Jordan Lee",
    "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da",
    "external_id": "deal-2041",
    "secured_party": { "name": "First Example Bank", "role": "assignee" },
    "signers": [{ "email": "jordan.lee@example.com", "name": "Jordan Lee", "role": "Buyer" }],
}]))]
pub struct CreateEnvelope {
    /// Display name.
    #[schemars(length(min = 1, max = 500))]
    pub envelope_name: String,
    /// The customer is looked up or created by this address.
    #[schemars(email)]
    pub customer_email: String,
    /// Updates the customer's name.
    #[schemars(length(min = 1, max = 500))]
    pub customer_name: String,
    /// Needed for signing dispatch.
    pub template_id: Option<String>,
    /// The partner's own reference.
    #[schemars(length(max = 500))]
    pub external_id: Option<String>,
    /// Template field name to value.
    pub prefilled_data: Option<Map<String, Value>>,
    /// The party the contract is assigned to.
    pub secured_party: Option<SecuredParty>,
    /// `esign` when absent.
    pub envelope_kind: Option<EnvelopeKind>,
    /// Who signs; the customer when absent.
    #[schemars(length(min = 1, max = 50))]
    pub signers: Option<Vec<RequestedSigner>>,
    /// One after the other (default) or all at once.
    pub preserve_signing_order: Option<bool>,
    /// Asks the payer for this instead of what the organization always asks.
    pub payment: Option<RequestedPayment>,
}

/// A payment for this envelope alone.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RequestedPayment {
    /// Minor units.
    #[schemars(range(min = 1, max = 99_999_999))]
    pub amount_cents: u64,
    /// ISO 4217, three letters.
    #[schemars(regex(pattern = "^[A-Za-z]{3}$"))]
    pub currency: String,
    /// A role name, or `first` (default).
    #[schemars(length(min = 1, max = 200))]
    pub payer: Option<String>,
}

impl CreateEnvelope {
    fn wanted(&self) -> Wanted<'_> {
        let payment = self.payment.as_ref();
        Wanted {
            signers: self.signers.clone(),
            customer: Some((self.customer_email.clone(), self.customer_name.clone())),
            prefilled: self.prefilled_data.as_ref(),
            payer: payment.and_then(|payment| payment.payer.as_deref()),
        }
    }
}

/// A created envelope and, when it was sent, where the first signer signs.
pub struct Created {
    pub envelope: Envelope,
    pub sign_url: Option<String>,
    pub warnings: Vec<Warning>,
}

/// Creates an envelope. With a template it is sent before this returns; when
/// the provider fails nothing is left behind.
pub async fn create(
    core: &Core,
    caller: &Caller,
    request: CreateEnvelope,
    answer: &Answering<Created>,
) -> Result<Created, ServiceError> {
    let kind = request.envelope_kind.unwrap_or(EnvelopeKind::Esign);
    let template = match (&request.template_id, kind) {
        (Some(id), EnvelopeKind::Esign) => Some(dispatch::sendable(core, caller, id).await?),
        _ => None,
    };
    let now = core.clock.now();
    let organization = dispatch::organization(core, &caller.org).await?;
    let mut envelope = draft(
        caller,
        &request,
        kind,
        template.as_ref(),
        &organization,
        now,
    );
    let payment = payment(&request, &organization)?;
    envelope.payment = payment.as_ref().map(|_| PaymentStatus::RequiresPayment);
    let begun = lifecycle::first_status(core, &envelope).await?;
    envelope.status = begun.status;
    let mut signers = match &template {
        Some(template) => dispatch::plan(template, &request.wanted())?,
        // Kept for when the envelope is sent.
        None if kind == EnvelopeKind::Esign => planned(request.signers.clone().unwrap_or_default()),
        None => Vec::new(),
    };
    let mut signing = None;
    if let Some(template) = &template {
        kba::check_step(core, &caller.org, template.kba_required).await?;
        let prefilled = request.prefilled_data.as_ref();
        let asked = dispatch::Request::of(template, envelope.id.to_string(), prefilled);
        let at = signing.insert(provider(core, &caller.org, &template.provider_instance)?);
        let submission = dispatch::submit(core, at, &envelope, asked, &mut signers).await?;
        envelope.sending.submission = Some(submission);
    }
    let id = envelope.id.clone();
    let submitted = (
        envelope.sending.provider_instance.clone(),
        envelope.sending.submission.clone(),
    );
    let plan = Plan {
        envelope,
        begun,
        signers,
        signing,
        payment,
    };
    let saved = save(core, caller, plan, &request, now, answer).await;
    if saved.is_err()
        && let (Some(instance), Some(submission)) = submitted
    {
        dispatch::withdraw_unless_named(core, &caller.org, &id, &instance, &submission).await;
    }
    saved
}

/// All that a create writes.
struct Plan {
    envelope: Envelope,
    begun: Decision,
    signers: Vec<Signer>,
    /// Has what the signing room is to keep.
    signing: Option<SigningProvider>,
    payment: Option<PaymentSettings>,
}

/// What has to be paid before vault-in: what the request says, else what the
/// organization always asks.
fn payment(
    request: &CreateEnvelope,
    organization: &Organization,
) -> Result<Option<PaymentSettings>, ServiceError> {
    let standing = organization.settings.payment.as_ref();
    let Some(requested) = &request.payment else {
        return Ok(standing.cloned());
    };
    let Some(currency) = known_currency(&requested.currency) else {
        return Err(ServiceError::Invalid(vec![Issue::new(
            "unknown_currency",
            &["payment", "currency"],
            "a currency of ISO 4217 with minor units",
            requested.currency.as_str(),
            format!("{} is no currency to pay in", requested.currency),
        )]));
    };
    // A fee in one currency says nothing of another, and is never more than what is paid.
    let same = standing.filter(|standing| standing.currency == currency);
    let fee = same.and_then(|standing| standing.platform_fee_cents);
    Ok(Some(PaymentSettings {
        amount_cents: requested.amount_cents,
        currency,
        connected_account: standing.and_then(|standing| standing.connected_account.clone()),
        platform_fee_cents: fee.map(|fee| fee.min(requested.amount_cents)),
        payer: requested
            .payer
            .clone()
            .unwrap_or_else(|| FIRST_PAYER.into()),
    }))
}

/// The record before anything is decided. The customer's id is filled in when
/// it is saved.
fn draft(
    caller: &Caller,
    request: &CreateEnvelope,
    kind: EnvelopeKind,
    template: Option<&Template>,
    organization: &Organization,
    now: Timestamp,
) -> Envelope {
    let days = u64::from(organization.settings.envelope_ttl_days);
    let mut metadata = Map::new();
    if let Some(template) = template {
        metadata.insert("document_source".into(), "template".into());
        metadata.insert("source_template_id".into(), template.id.as_str().into());
    } else if kind == EnvelopeKind::Paper {
        metadata.insert("document_source".into(), "upload".into());
    } else if let Some(values) = &request.prefilled_data {
        // Not shown to partners; for when the envelope is sent.
        metadata.insert("prefilled_data".into(), Value::Object(values.clone()));
    }
    let customer = CustomerId::new();
    let name = request.envelope_name.clone();
    let new = Envelope::new(
        caller.org.clone(),
        customer,
        name,
        kind,
        caller.creator(),
        now,
    );
    Envelope {
        external_id: request.external_id.clone(),
        template: template.map(|template| template.id.clone()),
        metadata,
        secured_party: request.secured_party.clone(),
        sending: Sending {
            provider_instance: template.map(|template| template.provider_instance.clone()),
            preserve_signing_order: request.preserve_signing_order.unwrap_or(true),
            kba_required: template.is_some_and(|template| template.kba_required),
            ..Sending::default()
        },
        expires_at: (kind == EnvelopeKind::Esign).then(|| now + Duration::from_secs(days * 86_400)),
        ..new
    }
}

async fn save(
    core: &Core,
    caller: &Caller,
    plan: Plan,
    request: &CreateEnvelope,
    now: Timestamp,
    answer: &Answering<Created>,
) -> Result<Created, ServiceError> {
    let Plan {
        mut envelope,
        begun,
        mut signers,
        signing,
        payment,
    } = plan;
    let mut tx = core.store.begin().await?;
    if let Some(signing) = &signing {
        signing.write(&mut tx).await?;
    }
    let email = &request.customer_email;
    let known = customers::by_email(&mut tx, &caller.org, email).await?;
    let name = &request.customer_name;
    envelope.customer = customers::upsert_by_email(&mut tx, &caller.org, email, name, now).await?;
    envelopes::insert(&mut tx, &envelope).await?;
    if let Some(payment) = &payment {
        let own = request.payment.is_some();
        payments::insert(&mut tx, &envelope, payment, own, now).await?;
    }
    begun.record(&mut tx, &envelope, now).await?;
    let data = json!({ "status": envelope.status, "envelope_kind": envelope.kind });
    let (actor, created) = (caller.actor.as_str(), EventType::EnvelopeCreated);
    events::record_and_emit(&mut tx, &envelope, actor, created, data, now).await?;
    kba::mark_challenged(&mut tx, &envelope, caller.email.as_deref(), &mut signers).await?;
    for signer in &signers {
        signers::insert(&mut tx, &envelope, signer).await?;
    }
    let mut sign_url = None;
    if let (Some(first), Some(_)) = (signers.first(), &envelope.sending.submission) {
        dispatch::announce(&mut tx, &envelope, &signers, actor, now).await?;
        sign_url = Some(links::make(core, &mut tx, &envelope, first, links::EMBED_LIFE).await?);
    }
    let warnings = warnings::of_envelope(request, envelope.kind, known.is_none());
    let created = Created {
        envelope,
        sign_url,
        warnings,
    };
    answer.commit(tx, &created).await?;
    Ok(created)
}
