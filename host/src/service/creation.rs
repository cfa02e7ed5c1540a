//! Creating envelopes.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::envelopes::{invited_now, signer_view};
use super::idempotency::Answering;
use super::lifecycle::Decision;
use super::{
    Caller, Issue, ServiceError, events, lifecycle, links, mails, templates as template_service,
};
use crate::app::App;
use crate::components::providers::{ProviderError, signing as provider};
use crate::domain::clock::Timestamp;
use crate::domain::envelope::{
    Envelope, EnvelopeKind, PaymentStatus, SecuredParty, Signer, SignerStatus,
};
use crate::domain::event::EventType;
use crate::domain::id::{CustomerId, EnvelopeId, OrgId, TemplateId};
use crate::domain::organization::{FIRST_PAYER, Organization, PaymentSettings};
use crate::domain::template::Template;
use crate::store::{customers, envelopes, organizations, payments, signers, templates};

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

/// One of `signers[]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RequestedSigner {
    #[schemars(email)]
    pub email: String,
    #[schemars(length(min = 1, max = 500))]
    pub name: String,
    /// A submitter role of the template.
    #[schemars(length(min = 1, max = 200))]
    pub role: String,
}

/// A created envelope and, when it was sent, where the first signer signs.
pub struct Created {
    pub envelope: Envelope,
    pub sign_url: Option<String>,
}

/// Creates an envelope. With a template it is sent before this returns; when
/// the provider fails nothing is left behind.
pub async fn create(
    app: &App,
    caller: &Caller,
    request: CreateEnvelope,
    answer: &Answering<Created>,
) -> Result<Created, ServiceError> {
    let kind = request.envelope_kind.unwrap_or(EnvelopeKind::Esign);
    let template = match (&request.template_id, kind) {
        (Some(id), EnvelopeKind::Esign) => Some(find_template(app, caller, id).await?),
        _ => None,
    };
    let now = app.clock.now();
    let organization = organization(app, caller).await?;
    let mut envelope = draft(
        caller,
        &request,
        kind,
        template.as_ref(),
        &organization,
        now,
    );
    let payment = payment(&request, &organization);
    envelope.payment = payment.as_ref().map(|_| PaymentStatus::RequiresPayment);
    let begun = lifecycle::first_status(app, &envelope)?;
    envelope.status = begun.status;
    let mut signers = match &template {
        Some(template) => plan_signers(&request, template)?,
        // Kept for when the envelope is sent.
        None if kind == EnvelopeKind::Esign => planned(request.signers.clone().unwrap_or_default()),
        None => Vec::new(),
    };
    if let Some(template) = &template {
        let submission = submit(app, &envelope, template, &request, &signers).await?;
        for signer in &mut signers {
            signer.provider_submitter = submission
                .submitters
                .iter()
                .find(|submitter| submitter.role.eq_ignore_ascii_case(&signer.role))
                .map(|submitter| submitter.submitter_id.clone());
        }
        let instance = &template.provider_instance;
        if signers
            .iter()
            .any(|signer| signer.provider_submitter.is_none())
        {
            withdraw(app, &caller.org, instance, &submission.submission_id).await;
            let why = "a signer is missing from the submission".into();
            return Err(ProviderError::Rejected(why).into());
        }
        envelope.submission = Some(submission.submission_id);
    }
    let id = envelope.id.clone();
    let submitted = (
        envelope.provider_instance.clone(),
        envelope.submission.clone(),
    );
    let plan = Plan {
        envelope,
        begun,
        signers,
        payment,
    };
    let saved = save(app, caller, plan, &request, now, answer).await;
    if saved.is_err()
        && let (Some(instance), Some(submission)) = submitted
        && is_surely_absent(app, &caller.org, &id).await
    {
        withdraw(app, &caller.org, &instance, &submission).await;
    }
    saved
}

/// A commit that failed may have happened all the same, when only its answer
/// was lost.
async fn is_surely_absent(app: &App, org: &OrgId, id: &EnvelopeId) -> bool {
    let look = async {
        let mut connection = app.store.read().await?;
        envelopes::get(&mut connection, org, id).await
    };
    matches!(look.await, Ok(None))
}

/// All that a create writes.
struct Plan {
    envelope: Envelope,
    begun: Decision,
    signers: Vec<Signer>,
    payment: Option<PaymentSettings>,
}

async fn organization(app: &App, caller: &Caller) -> Result<Organization, ServiceError> {
    let mut connection = app.store.read().await?;
    organizations::get(&mut connection, &caller.org)
        .await?
        .ok_or(ServiceError::NotFound("Organization"))
}

/// What has to be paid before vault-in: what the request says, else what the
/// organization always asks.
fn payment(request: &CreateEnvelope, organization: &Organization) -> Option<PaymentSettings> {
    let standing = organization.settings.payment.as_ref();
    match &request.payment {
        None => standing.cloned(),
        Some(requested) => Some(PaymentSettings {
            amount_cents: requested.amount_cents,
            currency: requested.currency.to_uppercase(),
            connected_account: standing.and_then(|standing| standing.connected_account.clone()),
            platform_fee_cents: standing.and_then(|standing| standing.platform_fee_cents),
            payer: requested
                .payer
                .clone()
                .unwrap_or_else(|| FIRST_PAYER.into()),
        }),
    }
}

async fn find_template(app: &App, caller: &Caller, id: &str) -> Result<Template, ServiceError> {
    let id = TemplateId::parse(id).ok_or(ServiceError::NotFound("Template"))?;
    let mut connection = app.store.read().await?;
    let template = templates::get(&mut connection, &caller.org, &id)
        .await?
        .ok_or(ServiceError::NotFound("Template"))?;
    drop(connection);
    let template = template_service::synced(app, template).await?;
    if template.document.is_none() || template.provider_template.is_none() {
        return Err(ServiceError::Conflict("Template has no document".into()));
    }
    Ok(template)
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
        provider_instance: template.map(|template| template.provider_instance.clone()),
        preserve_signing_order: request.preserve_signing_order.unwrap_or(true),
        expires_at: (kind == EnvelopeKind::Esign).then(|| now + Duration::from_secs(days * 86_400)),
        ..new
    }
}

/// Who signs, checked against the template's roles and fields.
fn plan_signers(
    request: &CreateEnvelope,
    template: &Template,
) -> Result<Vec<Signer>, ServiceError> {
    let roles = template.roles();
    let Some(first_role) = roles.first() else {
        return Err(ServiceError::Conflict(
            "Template has no fields to sign".into(),
        ));
    };
    let requested = request.signers.clone().unwrap_or_else(|| {
        vec![RequestedSigner {
            email: request.customer_email.clone(),
            name: request.customer_name.clone(),
            role: (*first_role).into(),
        }]
    });
    let mut issues = Vec::new();
    let known = roles.join(", ");
    for (index, signer) in requested.iter().enumerate() {
        let path = ["signers", &index.to_string(), "role"];
        if !roles.contains(&signer.role.as_str()) {
            issues.push(Issue::new(
                "unknown_role",
                &path,
                known.as_str(),
                signer.role.as_str(),
                format!("The template has no role {}", signer.role),
            ));
        } else if requested[..index]
            .iter()
            .any(|other| other.role == signer.role)
        {
            issues.push(Issue::new(
                "duplicate_role",
                &path,
                "one signer for each role",
                signer.role.as_str(),
                format!("Role {} has more than one signer", signer.role),
            ));
        }
    }
    if requested.len() > roles.len() {
        issues.push(Issue::new(
            "too_many_signers",
            &["signers"],
            format!("at most {} signers", roles.len()),
            requested.len().to_string(),
            format!("The template has {} roles", roles.len()),
        ));
    }
    for role in &roles {
        if !requested.iter().any(|signer| signer.role == *role) {
            issues.push(Issue::new(
                "missing_signer",
                &["signers"],
                format!("a signer with role {role}"),
                "none",
                format!("Role {role} has fields and no signer"),
            ));
        }
    }
    if let Some(payer) = request
        .payment
        .as_ref()
        .and_then(|payment| payment.payer.as_deref())
        && payer != FIRST_PAYER
        && !roles.contains(&payer)
    {
        issues.push(Issue::new(
            "unknown_role",
            &["payment", "payer"],
            known.as_str(),
            payer,
            format!("The template has no role {payer}"),
        ));
    }
    for name in request.prefilled_data.iter().flat_map(Map::keys) {
        let mut named = template.fields.iter().filter(|field| field.name == *name);
        let (code, expected, message) = match named.next() {
            None => (
                "unknown_field",
                "a field of the template",
                format!("The template has no field {name}"),
            ),
            // Nobody signs for somebody else.
            Some(field) if field.is_signature() => (
                "signature_field",
                "a field that is filled by typing",
                format!("Field {name} is filled by its signer only"),
            ),
            Some(_) => continue,
        };
        let path = ["prefilled_data", name];
        issues.push(Issue::new(code, &path, expected, name.as_str(), message));
    }
    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }
    Ok(planned(requested))
}

/// In the order in which they were named.
fn planned(requested: Vec<RequestedSigner>) -> Vec<Signer> {
    requested
        .into_iter()
        .zip(0..)
        .map(|(signer, position)| Signer {
            position,
            name: signer.name,
            email: signer.email,
            role: signer.role,
            status: SignerStatus::Pending,
            provider_submitter: None,
            completed_at: None,
            decline_reason: None,
        })
        .collect()
}

async fn submit(
    app: &App,
    envelope: &Envelope,
    template: &Template,
    request: &CreateEnvelope,
    signers: &[Signer],
) -> Result<provider::Submission, ServiceError> {
    let prefilled = request.prefilled_data.clone().unwrap_or_default();
    let values_for = |role: &str| {
        template
            .fields
            .iter()
            .filter(|field| field.role == role)
            .filter_map(|field| Some((field.name.clone(), text_of(prefilled.get(&field.name)?))))
            .collect()
    };
    let submission = provider::SubmissionRequest {
        template_id: template.provider_template.clone().unwrap_or_default(),
        external_id: envelope.id.to_string(),
        name: envelope.name.clone(),
        preserve_order: envelope.preserve_signing_order,
        submitters: signers
            .iter()
            .map(|signer| provider::SubmitterRequest {
                name: signer.name.clone(),
                email: signer.email.clone(),
                role: signer.role.clone(),
                values: values_for(&signer.role),
            })
            .collect(),
    };
    let lease = app.signing_lease(Some(&envelope.org), &template.provider_instance)?;
    Ok(app
        .components
        .signing(Some(&envelope.org), &template.provider_instance)
        .create_submission(lease, submission)
        .await?)
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

async fn save(
    app: &App,
    caller: &Caller,
    plan: Plan,
    request: &CreateEnvelope,
    now: Timestamp,
    answer: &Answering<Created>,
) -> Result<Created, ServiceError> {
    let Plan {
        mut envelope,
        begun,
        signers,
        payment,
    } = plan;
    let mut tx = app.store.begin().await?;
    envelope.customer = customers::upsert_by_email(
        &mut tx,
        &caller.org,
        &request.customer_email,
        &request.customer_name,
        now,
    )
    .await?;
    envelopes::insert(&mut tx, &envelope).await?;
    if let Some(payment) = &payment {
        payments::insert(&mut tx, &envelope, payment, now).await?;
    }
    begun.record(&mut tx, &envelope, now).await?;
    let data = json!({ "status": envelope.status, "envelope_kind": envelope.kind });
    let (actor, created) = (caller.actor.as_str(), EventType::EnvelopeCreated);
    events::record_and_emit(&mut tx, &envelope, actor, created, data, now).await?;
    for signer in &signers {
        signers::insert(&mut tx, &envelope, signer).await?;
    }
    let mut sign_url = None;
    if let (Some(first), Some(_)) = (signers.first(), &envelope.submission) {
        let data = json!({ "signers": signers.iter().map(signer_view).collect::<Vec<_>>() });
        let sent = EventType::EnvelopeSent;
        events::record_and_emit(&mut tx, &envelope, actor, sent, data, now).await?;
        for signer in invited_now(&envelope, &signers) {
            mails::invite(&mut tx, &envelope, signer, now).await?;
        }
        sign_url = Some(links::make(app, &mut tx, &envelope, first, links::EMBED_LIFE).await?);
    }
    let created = Created { envelope, sign_url };
    answer.commit(tx, &created).await?;
    Ok(created)
}

/// Best effort: the submission was never told to anybody, so that a provider
/// that cannot be reached now leaves nothing that could be signed.
async fn withdraw(app: &App, org: &OrgId, instance: &str, submission: &str) {
    if let Ok(lease) = app.signing_lease(Some(org), instance)
        && let Err(error) = app
            .components
            .signing(Some(org), instance)
            .archive_submission(lease, submission)
            .await
    {
        tracing::warn!(%error, "a submission without an envelope could not be archived");
    }
}
