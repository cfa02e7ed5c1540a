//! Creating envelopes.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::envelopes::dispatch::{self, SendingOptions};
use crate::envelopes::lifecycle::{self, LifecycleDecision};
use crate::envelopes::open_links::{self, LinkVisit};
use crate::envelopes::paper_original::PaperStatement;
use crate::envelopes::parties::{self, RequestedRecipient, RequestedSigner};
use crate::envelopes::planned_sending::{self, planned_by};
use crate::envelopes::reminders;
use crate::funding::{self, SendingCheck};
use crate::templates::built::{self, with_values};
use crate::templates::pages::PageCache;
use crate::templates::variables::VariableValues;
use crate::templates::warnings;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::collateral::Collateral;
use holdfast_domain::envelope::{
    Envelope, EnvelopeKind, OPEN_LINK, OWN_METADATA, PUBLIC_METADATA, PaymentStatus, Recipient,
    SecuredParty, SentDocument, Signer,
};
use holdfast_domain::funding::FundingMode;
use holdfast_domain::id::CustomerId;
use holdfast_domain::job::MailOpenLink;
use holdfast_domain::jurisdiction::Jurisdiction;
use holdfast_domain::open_link::OpenLink;
use holdfast_domain::organization::{FIRST_PAYER, Organization, PaymentSettings, known_currency};
use holdfast_domain::reminders::{PlannedReminders, ReminderPlan};
use holdfast_domain::template::Template;
use holdfast_domain::warning::Warning;
use holdfast_platform::events;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::organizations;
use holdfast_platform::permits::double_pledge;
use holdfast_platform::providers::links;
use holdfast_platform::providers::{SigningProvider, provider};
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue, kba, messaging};
use holdfast_store::fingerprints::{self, Fingerprint};
use holdfast_store::funding::{self as funding_rows, FundingCheck};
use holdfast_store::{WriteTransaction, customers, envelopes, jobs, payments, signers};

/// Limits of a partner's own metadata.
const METADATA_MEMBERS: usize = 50;
const METADATA_TEXT: usize = 500;

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
    /// Address of the customer, who is looked up or created by it.
    #[schemars(email)]
    pub customer_email: String,
    /// Name of the customer. Updates the stored name.
    #[schemars(length(min = 1, max = 500))]
    pub customer_name: String,
    /// Required to send the envelope on creation.
    pub template_id: Option<String>,
    /// The partner's own reference.
    #[schemars(length(max = 500))]
    pub external_id: Option<String>,
    /// Values by template field name.
    pub prefilled_data: Option<Map<String, Value>>,
    /// Values of the template's variables, by their names. A variable with a default needs none.
    pub variables: Option<VariableValues>,
    /// The party to which the contract is assigned.
    pub secured_party: Option<SecuredParty>,
    /// Defaults to `esign`.
    pub envelope_kind: Option<EnvelopeKind>,
    /// Signers; defaults to the customer.
    #[schemars(length(min = 1, max = 50))]
    pub signers: Option<Vec<RequestedSigner>>,
    /// True (default): signers sign one after the other. False: all at once.
    pub preserve_signing_order: Option<bool>,
    /// People who get the signed copy, or may read the document, and do not sign.
    #[schemars(length(max = 50))]
    pub recipients: Option<Vec<RequestedRecipient>>,
    /// True: signers may name another person to sign in their place. Defaults to false.
    pub allow_delegation: Option<bool>,
    /// False: the signing page offers no way to decline; signers can ask the sender instead. Defaults to the setting of
    /// the template, and without one to true.
    pub may_decline: Option<bool>,
    /// Payment for this envelope, instead of the organization's default.
    pub payment: Option<RequestedPayment>,
    /// Page to which signers return after signing or declining, with `envelope_id` and `event`
    /// (`completed` or `declined`) added to its query. Its origin has to be one of the
    /// organization's `return_origins`.
    #[schemars(url, length(max = 2000))]
    pub return_url: Option<String>,
    /// Subject of the mails that invite and remind signers, in one line. Without it, the subject names the
    /// sender and the document.
    #[schemars(length(min = 1, max = 200))]
    pub subject: Option<String>,
    /// Message to the signers, in plain text, in the mails that invite and remind them.
    #[schemars(length(max = 2000))]
    pub message: Option<String>,
    /// When signers who have not signed are reminded, instead of the organization's plan. `at_most` 0 sends
    /// no reminders.
    pub reminders: Option<ReminderPlan>,
    /// What secures the contract. Only keyed hashes of it are stored; they refuse a second pledge of the
    /// same collateral to another party.
    #[schemars(length(max = 20))]
    pub collateral: Option<Vec<Collateral>>,
    /// Jurisdiction of the chattel paper (UCC §9-306A(b)(1)); the organization's when absent. The certificate
    /// states it; write it into the contract, too.
    pub chattel_paper_jurisdiction: Option<Jurisdiction>,
    /// What became of the paper that the upload of a paper envelope is made from.
    pub paper_original: Option<PaperStatement>,
    /// When the envelope is sent instead of now: in the future, and within a year. Until then it is a draft, and
    /// its days until the expiry count from then.
    pub send_at: Option<Timestamp>,
    /// Facts about the contract, such as amounts: up to 50 texts, numbers or booleans, each of at most 500
    /// characters. Every party of the record sees them.
    pub metadata: Option<Map<String, Value>>,
    /// Check by the funding rules, if the request wants a stricter one than the organization: `?funding=`.
    #[serde(skip)]
    pub funding: Option<FundingMode>,
}

/// Payment requested for one envelope.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RequestedPayment {
    /// Amount in minor units.
    #[schemars(range(min = 1, max = 99_999_999))]
    pub amount_cents: u64,
    /// ISO 4217 code, three letters.
    #[schemars(regex(pattern = "^[A-Za-z]{3}$"))]
    pub currency: String,
    /// Role of the payer, or `first` (default).
    #[schemars(length(min = 1, max = 200))]
    pub payer: Option<String>,
}

impl CreateEnvelope {
    fn wanted(&self, organization: &Organization) -> SendingOptions<'_> {
        let payment = self.payment.as_ref();
        SendingOptions {
            signers: self.signers.clone(),
            preserve_signing_order: self.preserve_signing_order.unwrap_or(true),
            recipients: self.recipients.clone().unwrap_or_default(),
            customer: Some((self.customer_email.clone(), self.customer_name.clone())),
            prefilled: self.prefilled_data.as_ref(),
            payer: payment.and_then(|payment| payment.payer.as_deref()),
            may_decline: self.may_decline,
            refuse_unsigned_roles: organization.settings.refuse_unsigned_roles,
        }
    }
}

/// A created envelope and, if it was sent, the first signer's signing link.
pub struct CreatedEnvelope {
    pub envelope: Envelope,
    pub sign_url: Option<String>,
    pub warnings: Vec<Warning>,
}

/// Creates an envelope. With a template, the envelope is sent before this returns; if the
/// provider fails, nothing is kept.
pub async fn create(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    request: CreateEnvelope,
    answer: &ResponseRecorder<CreatedEnvelope>,
) -> Result<CreatedEnvelope, ServiceError> {
    create_by(core, pages, caller, request, None, answer).await
}

/// Like [`create`], for the visitor of an open link if there is one.
///
/// # Errors
///
/// `Conflict` if the link takes no further records, or the visitor has an unfinished one; `Quota` if the visitor's network
/// made too many.
pub async fn create_by(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    request: CreateEnvelope,
    visit: Option<LinkVisit<'_>>,
    answer: &ResponseRecorder<CreatedEnvelope>,
) -> Result<CreatedEnvelope, ServiceError> {
    let mut own = None;
    let created = create_with(core, pages, caller, request, visit, &mut own, answer).await;
    // Made for this envelope alone, before the rules and the provider were asked.
    if created.is_err()
        && let Some(document) = own
    {
        built::forget(core, caller, &document).await;
    }

    created
}

/// Creates an envelope. `own` gets the document that is made for it.
async fn create_with(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    request: CreateEnvelope,
    visit: Option<LinkVisit<'_>>,
    own: &mut Option<Template>,
    answer: &ResponseRecorder<CreatedEnvelope>,
) -> Result<CreatedEnvelope, ServiceError> {
    let kind = request.envelope_kind.unwrap_or(EnvelopeKind::Esign);
    if request.variables.is_some() && request.template_id.is_none() {
        return Err(ServiceError::Malformed(
            "variables needs template_id".into(),
        ));
    }
    // A template has no effect on a paper envelope. The answer has a warning about it.
    let template = match (&request.template_id, kind) {
        (Some(id), EnvelopeKind::Esign) => Some(dispatch::sendable(core, caller, id).await?),
        _ => None,
    };
    let now = core.clock.now();
    let organization = organizations::read(core, &caller.org).await?;
    let mut envelope = draft(
        caller,
        &request,
        kind,
        template.as_ref(),
        &organization,
        now,
    );

    if let Some(visit) = visit {
        let about = open_links::metadata(visit.link);
        envelope.metadata.insert(OPEN_LINK.into(), about);
    }

    // Everything that can refuse the request runs before the provider is called. A submission would have
    // to be withdrawn.
    let payment = payment(request.payment.as_ref(), &organization)?;
    let collateral = request.collateral.as_deref().unwrap_or_default();
    let collateral = double_pledge::of_collateral(core, &caller.org, collateral)?;
    check_return_url(request.return_url.as_deref(), &organization)?;
    check_metadata(request.metadata.as_ref())?;
    check_subject(request.subject.as_deref())?;
    if let Some(at) = request.send_at {
        planned_sending::check(at, None, now)?;
    }
    if let Some(plan) = &request.reminders {
        reminders::check(plan, &["reminders"])?;
    }
    // Set before the rules are asked, because the payment is one of their facts.
    envelope.payment = payment.as_ref().map(|_| PaymentStatus::RequiresPayment);
    // An envelope with a template counts as sent, so one that is sent later begins without it.
    let begins_with = envelope.template.take_if(|_| request.send_at.is_some());
    let begun = lifecycle::first_status(core, &envelope).await?;
    envelope.template = envelope.template.take().or(begins_with);
    envelope.status = begun.status;
    let (mut signers, recipients) = match &template {
        Some(template) => {
            dispatch::check_fit(core, template, request.prefilled_data.as_ref()).await?;
            dispatch::plan(core, template, &request.wanted(&organization))?
        }
        // Stored for sending later.
        None if kind == EnvelopeKind::Esign => {
            let ordered = envelope.sending.preserve_signing_order;
            let signers = request.signers.clone().unwrap_or_default();
            let now = core.clock.now();
            let signers = parties::planned(&core.cipher, &caller.org, signers, ordered, now)?;
            messaging::check(core, &caller.org, &signers)?;
            let others = request.recipients.clone().unwrap_or_default();
            // Sending plans the people again, with the template.
            let recipients = parties::recipients(others, &signers, false)?;
            (signers, recipients)
        }
        None => (Vec::new(), Vec::new()),
    };

    if let Some(template) = &template {
        kba::check_step(core, &caller.org, template.kba_required).await?;
    }
    // Made after the checks, so that a refused request leaves no document.
    let template = match template {
        Some(template) => {
            let values = request.variables.as_ref();
            let filled = with_values(core, pages, caller, &envelope, template, values).await?;
            Some(sent_with(core, &mut envelope, filled, own).await?)
        }
        None => None,
    };
    let mut unsigned = template
        .as_ref()
        .map(|template| warnings::of_unsigned_roles(template, &signers))
        .unwrap_or_default();
    let mut checked = SendingCheck::default();
    // The rules read the document that is sent, with the values of its variables.
    if template.is_some() {
        checked = funding::before_sending(core, &envelope, &signers, request.funding).await?;
        // No record of a refused envelope is kept.
        if let Some(refused) = checked.refusal() {
            return Err(refused.into());
        }
        unsigned.extend(checked.warnings());
    }

    let planned = request.send_at;
    let planned = planned.map(|at| planned_by(caller, at, template.as_ref()));
    envelope.plan_sending(planned.as_ref().filter(|_| kind == EnvelopeKind::Esign));

    let mut signing = None;
    if let Some(template) = template.as_ref().filter(|_| planned.is_none()) {
        let prefilled = request.prefilled_data.as_ref();
        let asked = dispatch::DispatchRequest::of(template, envelope.id.to_string(), prefilled);
        let at = signing.insert(provider(core, &caller.org, &template.provider_instance)?);
        let submission = dispatch::submit(core, at, &envelope, asked, &mut signers).await?;
        envelope.sending.submission = Some(submission);
    }

    let id = envelope.id.clone();
    let submitted = (
        envelope.sending.provider_instance.clone(),
        envelope.sending.submission.clone(),
    );
    let repair = template.as_ref().and_then(Template::repair);
    let repair = repair.map(|repair| ("rewritten".to_owned(), json!(repair)));
    let send_at = envelope.planned_sending();
    let send_at = send_at.map(|planned| ("send_at".to_owned(), json!(planned.at)));
    let plan = CreationPlan {
        envelope,
        origin: repair.into_iter().chain(send_at).collect(),
        decided: vec![begun],
        signers,
        recipients,
        signing,
        payment,
        has_own_payment: request.payment.is_some(),
        collateral,
        open_link: visit.map(|visit| visit.link.clone()),
        checked: checked.into_record(),
    };

    let saved = save(core, caller, plan, &request, unsigned, visit, answer).await;

    // The submission exists at the provider, but no envelope names it: withdraw it.
    if saved.is_err()
        && let (Some(instance), Some(submission)) = submitted
    {
        dispatch::withdraw_unless_named(core, &caller.org, &id, &instance, &submission).await;
    }

    saved
}

/// Gives an envelope the document that was filled for it, if its template has variables. Returns the sent document.
async fn sent_with(
    core: &Core,
    envelope: &mut Envelope,
    filled: Template,
    own: &mut Option<Template>,
) -> Result<Template, ServiceError> {
    if envelope.template.as_ref() == Some(&filled.id) {
        return Ok(filled);
    }

    *own = Some(filled.clone());
    let ready = dispatch::ready(core, filled).await?;
    envelope.template = Some(ready.id.clone());
    envelope.sending.provider_instance = Some(ready.provider_instance.clone());
    Ok(ready)
}

/// Everything that creating an envelope writes.
pub(super) struct CreationPlan {
    pub envelope: Envelope,
    /// Facts about the origin of the envelope and its document, for the first entry of the ledger.
    pub origin: Map<String, Value>,
    /// The decisions that led to the envelope's status.
    pub decided: Vec<LifecycleDecision>,
    pub signers: Vec<Signer>,
    pub recipients: Vec<Recipient>,
    /// Holds the signing room's records, which the same transaction writes.
    pub signing: Option<SigningProvider>,
    pub payment: Option<PaymentSettings>,
    /// Whether the envelope itself requests the payment, and not its organization's settings.
    pub has_own_payment: bool,
    pub collateral: Vec<Fingerprint>,
    /// Open link of the visitor who makes it.
    pub open_link: Option<OpenLink>,
    /// Check by the funding rules before the sending.
    pub checked: Option<FundingCheck>,
}

/// Checks that people may be sent to `url` afterwards.
pub fn check_return_url(
    url: Option<&str>,
    organization: &Organization,
) -> Result<(), ServiceError> {
    // Without this check, a stolen API key could lead signers from a trusted page to any site.
    match url.filter(|url| !organization.settings.permits_return_to(url)) {
        None => Ok(()),
        Some(url) => Err(ServiceError::invalid(
            "unknown_origin",
            &["return_url"],
            "a URL at one of the organization's return_origins",
            url,
            "The origin of return_url is not registered for this organization",
        )),
    }
}

/// Checks the sender's own subject of mails. Schemas check its length.
pub fn check_subject(subject: Option<&str>) -> Result<(), ServiceError> {
    // It becomes a header, in which a second line would be another header.
    let is_wrong =
        |subject: &&str| subject.trim().is_empty() || subject.chars().any(char::is_control);
    match subject.filter(is_wrong) {
        None => Ok(()),
        Some(subject) => Err(ServiceError::invalid(
            "invalid_value",
            &["subject"],
            "one line of 1 to 200 characters",
            subject,
            "A subject is one line with something on it",
        )),
    }
}

/// Checks the partner's own facts about the contract.
fn check_metadata(metadata: Option<&Map<String, Value>>) -> Result<(), ServiceError> {
    let Some(metadata) = metadata else {
        return Ok(());
    };

    let issue = |path: &[&str], expected: &str, received: String| {
        let message = "metadata holds facts about the contract";
        ValidationIssue::new("invalid_metadata", path, expected, received, message)
    };

    let mut issues = Vec::new();
    if metadata.len() > METADATA_MEMBERS {
        let expected = format!("at most {METADATA_MEMBERS} members");
        issues.push(issue(&["metadata"], &expected, metadata.len().to_string()));
    }

    // Partners see the members that the service writes itself. The same name must not mean something
    // else.
    for (name, value) in metadata {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if !(1..=40).contains(&name.len()) || !name.bytes().all(plain) {
            let expected = "a name of 1 to 40 letters, digits, dots, dashes and underscores";
            issues.push(issue(&["metadata"], expected, name.clone()));
        } else if PUBLIC_METADATA.contains(&name.as_str()) {
            let expected = "another name: this one is taken";
            issues.push(issue(&["metadata", name], expected, name.clone()));
        }

        // Each value becomes an attribute of the facts, which is a plain text.
        let fits = match value {
            Value::String(text) => text.chars().count() <= METADATA_TEXT,
            Value::Number(_) | Value::Bool(_) => true,
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        };
        if !fits {
            let expected =
                format!("a text of at most {METADATA_TEXT} characters, a number or a boolean");
            issues.push(issue(&["metadata", name], &expected, String::new()));
        }
    }

    if issues.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

/// Returns the payment required before vault-in: the request's, or else the organization's
/// default.
pub fn payment(
    requested: Option<&RequestedPayment>,
    organization: &Organization,
) -> Result<Option<PaymentSettings>, ServiceError> {
    let standing = organization.settings.payment.as_ref();
    let Some(requested) = requested else {
        return Ok(standing.cloned());
    };
    let Some(currency) = known_currency(&requested.currency) else {
        return Err(ServiceError::invalid(
            "unknown_currency",
            &["payment", "currency"],
            "a currency of ISO 4217 with minor units",
            requested.currency.as_str(),
            format!("{} is no currency to pay in", requested.currency),
        ));
    };

    // The organization's fee applies only in its own currency, and is capped at the amount.
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

/// Builds the record before the rules are asked. `save` fills in the customer's id.
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
    }

    if let Some(own) = &request.metadata {
        metadata.insert(OWN_METADATA.into(), Value::Object(own.clone()));
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

    let own = organization.settings.chattel_paper_jurisdiction.as_ref();
    let mut envelope = Envelope {
        external_id: request.external_id.clone(),
        template: template.map(|template| template.id.clone()),
        metadata,
        secured_party: request.secured_party.clone(),
        sending: SentDocument {
            provider_instance: template.map(|template| template.provider_instance.clone()),
            preserve_signing_order: request.preserve_signing_order.unwrap_or(true),
            kba_required: template.is_some_and(|template| template.kba_required),
            subject: request.subject.clone(),
            message: request.message.clone(),
            return_url: request.return_url.clone(),
            allow_delegation: request.allow_delegation.unwrap_or(false),
            may_decline: request
                .may_decline
                .unwrap_or_else(|| template.is_none_or(|template| template.may_decline)),
            ..SentDocument::default()
        },
        // An upload was signed elsewhere, so no signer can miss a deadline.
        expires_at: (kind == EnvelopeKind::Esign)
            .then(|| request.send_at.unwrap_or(now) + Duration::from_secs(days * 86_400)),
        ..new
    };

    // Used when the envelope is sent, or when a new one is made from it. Partners do not see it.
    if let Some(values) = &request.prefilled_data
        && kind == EnvelopeKind::Esign
    {
        envelope.set_prefilled(values);
    }

    envelope.set_jurisdiction(request.chattel_paper_jurisdiction.as_ref().or(own));
    // The plan at this moment: a later change does not remind signers who were promised none.
    let of_template = template.and_then(|template| template.reminders);
    let plan = request.reminders.or(of_template);
    let plan = plan.or(organization.settings.reminders);
    if let Some(plan) = plan.filter(|_| kind == EnvelopeKind::Esign) {
        envelope.set_reminders(PlannedReminders::new(plan));
    }
    if let Some(statement) = request.paper_original.clone()
        && kind == EnvelopeKind::Paper
    {
        envelope.set_paper_original(&statement.of(caller, now));
    }

    envelope
}

/// Writes the envelope of a request and everything that belongs to it in one transaction.
async fn save(
    core: &Core,
    caller: &Caller,
    mut plan: CreationPlan,
    request: &CreateEnvelope,
    unsigned: Vec<Warning>,
    visit: Option<LinkVisit<'_>>,
    answer: &ResponseRecorder<CreatedEnvelope>,
) -> Result<CreatedEnvelope, ServiceError> {
    let (now, email) = (plan.envelope.created_at, &request.customer_email);
    let mut tx = core.store.begin().await?;
    // In the transaction of the record, so that the limits of the link hold.
    if let Some(visit) = visit {
        open_links::take(&mut tx, visit, email, now).await?;
    }

    // A stranger who enters the address of a customer must not rename that customer.
    let known = match visit {
        Some(_) => customers::by_email(&mut tx, &caller.org, email).await?,
        None => None,
    };
    let name = known.map_or_else(|| request.customer_name.clone(), |known| known.name);
    let name = &name;
    let customer = customers::upsert_by_email(&mut tx, &caller.org, email, name, now).await?;
    if let Some(visit) = visit {
        let id = &plan.envelope.id;
        open_links::keep_record(&mut tx, visit.link, &customer.id, id).await?;
    }
    plan.envelope.customer = customer.id;
    let sign_url = write(core, &mut tx, caller, &mut plan, now).await?;

    let mut warnings = warnings_about(request, plan.envelope.kind, customer.is_new);
    warnings.extend(unsigned);
    let created = CreatedEnvelope {
        envelope: plan.envelope,
        sign_url,
        warnings,
    };
    // The stored answer of the idempotency key commits with the envelope: a repeat cannot create a second
    // one.
    answer.commit(tx, &created).await?;

    Ok(created)
}

/// Writes a new envelope and everything that belongs to it in the caller's transaction. Returns the first signer's
/// signing link, if the envelope is sent.
pub(super) async fn write(
    core: &Core,
    tx: &mut WriteTransaction,
    caller: &Caller,
    plan: &mut CreationPlan,
    now: Timestamp,
) -> Result<Option<String>, ServiceError> {
    let envelope = &plan.envelope;
    let signers = &mut plan.signers;
    // The room's submission commits with the envelope that names it.
    if let Some(signing) = &plan.signing {
        signing.write(tx).await?;
        parties::arrange(core, tx, envelope, signers).await?;
    }

    envelopes::insert(tx, envelope).await?;
    if let Some(payment) = &plan.payment {
        payments::insert(tx, envelope, payment, plan.has_own_payment, now).await?;
    }

    // Any organization can upload a document and declare collateral, and its claim holds up the records
    // of others.
    if envelope.is_upload() {
        let (org, declared) = (&envelope.org, plan.collateral.len());
        double_pledge::permit_claims(core, tx, org, declared, now).await?;
    }

    fingerprints::insert(tx, &envelope.org, &envelope.id, &plan.collateral).await?;
    for decision in &plan.decided {
        decision.record(tx, envelope, now).await?;
    }
    if let Some(check) = &plan.checked {
        funding_rows::insert_decision(tx, &envelope.org, check).await?;
    }

    let actor = caller.actor.as_str();
    let mut origin = plan.origin.clone();
    if let Some(link) = &plan.open_link {
        origin.insert(OPEN_LINK.to_owned(), open_links::origin(link, signers));
    }
    events::record_created(tx, envelope, actor, origin, now).await?;
    kba::mark_challenged(tx, envelope, caller.email.as_deref(), signers).await?;
    if let Some(link) = &plan.open_link {
        follow_link(tx, envelope, link, signers, now).await?;
    }
    let signers = &plan.signers;
    for signer in signers {
        signers::insert(tx, envelope, signer).await?;
    }

    for recipient in &plan.recipients {
        signers::insert_recipient(tx, envelope, recipient).await?;
    }

    planned_sending::schedule(tx, envelope).await?;
    let mut sign_url = None;
    if let (Some(first), Some(_)) = (signers.first(), &envelope.sending.submission) {
        dispatch::announce(tx, envelope, signers, &plan.recipients, actor, now).await?;
        sign_url = Some(links::make(core, tx, envelope, first, links::EMBED_LIFE).await?);
    }

    Ok(sign_url)
}

/// Notifies those named by an open link of its new record, and lets its visitor answer identity questions
/// where the template asks them.
async fn follow_link(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    link: &OpenLink,
    signers: &mut [Signer],
    now: Timestamp,
) -> Result<(), ServiceError> {
    // The sender's own people are not asked, and a visitor can enter the address of one of them.
    for visitor in signers.iter_mut().filter(|signer| signer.role == link.role) {
        visitor.challenged = envelope.sending.kba_required;
    }

    for place in 0..link.notify.len() {
        let job = MailOpenLink {
            link: link.id.clone(),
            envelope: envelope.id.clone(),
            place,
        };
        let key = format!("{}:{place}", envelope.id);
        jobs::insert(tx, &envelope.org, &job, Some(&key), now).await?;
    }

    Ok(())
}

/// Warns about facts a new envelope lacks for compliance, and about members without effect.
fn warnings_about(request: &CreateEnvelope, kind: EnvelopeKind, new: bool) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let named = request.secured_party.as_ref();
    if named.is_none_or(|party| party.name.trim().is_empty()) {
        let message = "Without the name of a secured party, check 8 of the compliance will fail";
        let path = ["secured_party", "name"];
        // Names the object if it is missing as a whole, and otherwise the member.
        let path = &path[..1 + usize::from(named.is_some())];
        warnings.push(Warning::new("secured_party_missing", path, message));
    }

    if new {
        let message = format!(
            "No customer had {} before: one was created",
            request.customer_email
        );
        warnings.push(Warning::new(
            "unknown_customer",
            &["customer_email"],
            message,
        ));
    }

    if kind == EnvelopeKind::Paper {
        // These members would be dropped without a word, because a paper envelope has no signers here.
        let unused = [
            ("template_id", request.template_id.is_some()),
            ("prefilled_data", request.prefilled_data.is_some()),
            ("variables", request.variables.is_some()),
            ("signers", request.signers.is_some()),
            ("recipients", request.recipients.is_some()),
            ("allow_delegation", request.allow_delegation.is_some()),
            ("send_at", request.send_at.is_some()),
            ("subject", request.subject.is_some()),
            ("message", request.message.is_some()),
            ("may_decline", request.may_decline.is_some()),
        ];

        for (member, _) in unused.into_iter().filter(|(_, given)| *given) {
            let message = format!("{member} has no effect on a paper envelope");
            warnings.push(Warning::new("member_without_effect", &[member], message));
        }
    }

    warnings
}
