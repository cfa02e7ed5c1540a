//! Sending a created envelope: with a template, with all or part of a package, with several
//! templates, or with its attached document.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::envelopes::creation::{CreatedEnvelope, check_subject};
use crate::envelopes::dispatch::{self, SendingOptions};
use crate::envelopes::lifecycle;
use crate::envelopes::parties::{self, RequestedRecipient, RequestedSigner};
use crate::envelopes::planned_sending::{self, planned_by};
use crate::funding;
use crate::templates::built::{document_of, document_to_send};
use crate::templates::pages::PageCache;
use crate::templates::selection::{SelectedTemplates, TemplateSelection};
use crate::templates::warnings;
use holdfast_base::config::SecretText;
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, EnvelopeLink, Recipient, SentDocument, Signer};
use holdfast_domain::funding::FundingMode;
use holdfast_domain::template::Template;
use holdfast_domain::warning::Warning;
use holdfast_platform::envelope_locks::EnvelopeLocks;
use holdfast_platform::events;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::lookup;
use holdfast_platform::organizations;
use holdfast_platform::passcodes::open_passcode;
use holdfast_platform::providers::links;
use holdfast_platform::providers::{SigningProvider, provider};
use holdfast_platform::signers::signer_view;
use holdfast_platform::{Caller, Core, ServiceError, kba};
use holdfast_store::funding::{self as funding_rows, FundingCheck};
use holdfast_store::{customers, envelopes, payments, signers, templates};

/// Body of `POST /envelopes/{id}/send`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "package_id": "pkg_01jdk7m3e8f4x9s2w5v6b0c1dg",
    "package_template_ids": ["tmpl_01jdk7m3e8f4x9s2w5v6b0c1da"],
    "signers": [{ "email": "jordan.lee@example.com", "name": "Jordan Lee", "role": "Buyer" }],
    "subject": "Your instalment contract", "message": "Please sign before Friday.",
}]))]
pub struct SendEnvelope {
    /// Document to send; defaults to the one that is attached or was built.
    #[serde(flatten)]
    pub selection: TemplateSelection,
    /// Signers; defaults to those named on creation, then to the customer.
    #[schemars(length(min = 1, max = 50))]
    pub signers: Option<Vec<RequestedSigner>>,
    /// True: one after the other. False: all at once. Defaults to the choice on creation.
    pub preserve_signing_order: Option<bool>,
    /// People who get the signed copy, or may read the document, and do not sign; defaults to those
    /// named on creation.
    #[schemars(length(max = 50))]
    pub recipients: Option<Vec<RequestedRecipient>>,
    /// True: signers may name another person to sign in their place. Defaults to the choice on
    /// creation.
    pub allow_delegation: Option<bool>,
    /// False: the signing page offers no way to decline. Defaults to true if the choice on creation and the settings of
    /// all templates allow it.
    pub may_decline: Option<bool>,
    /// Values by field name.
    pub prefilled_data: Option<Map<String, Value>>,
    /// Subject of the mails that invite and remind signers, in one line. Defaults to that given on creation;
    /// without one, the subject names the sender and the document.
    #[schemars(length(min = 1, max = 200))]
    pub subject: Option<String>,
    /// Message to the signers, in plain text, in the mails that invite and remind them. Defaults to that
    /// given on creation.
    #[schemars(length(max = 2000))]
    pub message: Option<String>,
    /// False: no mails invite or remind the signers, because they sign in person. The signed copy still comes by mail.
    /// Not with identity verification (422).
    pub send_email: Option<bool>,
    /// When the envelope is sent instead of now: in the future, within a year, and before it expires.
    pub send_at: Option<Timestamp>,
    /// Check by the funding rules, if the request wants a stricter one than the organization: `?funding=`.
    #[serde(skip)]
    pub funding: Option<FundingMode>,
}

/// Sends an envelope, or prepares it for its sending at a later time.
pub async fn send(
    core: &Core,
    locks: &EnvelopeLocks,
    pages: &Arc<PageCache>,
    caller: &Caller,
    id: &str,
    request: SendEnvelope,
    answer: &ResponseRecorder<CreatedEnvelope>,
) -> Result<CreatedEnvelope, ServiceError> {
    request.selection.check()?;
    check_subject(request.subject.as_deref())?;
    let id = lookup::envelope(core, caller, id).await?.id;
    let selected = request.selection.read(core, caller).await?;

    // Serializes sends in this process, so that two of them do not create two submissions.
    let lock = locks.of(&id);
    let _one_at_a_time = lock.lock().await;

    // Read again under the lock: another caller may have changed or sent it meanwhile.
    let envelope = lookup::envelope(core, caller, id.as_str()).await?;

    // Ask the rules before anything is rendered or sent to the provider.
    let mut asked = envelope.clone();
    if let Some(id) = selected.as_ref().and_then(SelectedTemplates::any) {
        asked.template = Some(id.clone());
    }

    lifecycle::next_status(core, &asked, EnvelopeTrigger::Send).await?;
    let template = document(core, pages, caller, &envelope, selected.as_ref()).await?;
    let template = dispatch::ready(core, template).await?;
    let prefilled = request
        .prefilled_data
        .clone()
        .or_else(|| envelope.prefilled().cloned());

    let mut sent = Envelope {
        template: Some(template.id.clone()),
        sending: SentDocument {
            provider_instance: Some(template.provider_instance.clone()),
            preserve_signing_order: request
                .preserve_signing_order
                .unwrap_or(envelope.sending.preserve_signing_order),
            kba_required: template.kba_required,
            subject: request
                .subject
                .clone()
                .or_else(|| envelope.sending.subject.clone()),
            message: request
                .message
                .clone()
                .or_else(|| envelope.sending.message.clone()),
            send_email: request.send_email.unwrap_or(envelope.sending.send_email),
            allow_delegation: request
                .allow_delegation
                .unwrap_or(envelope.sending.allow_delegation),
            may_decline: request
                .may_decline
                .unwrap_or(envelope.sending.may_decline && template.may_decline),
            ..envelope.sending.clone()
        },
        ..envelope.clone()
    };

    let ordered = sent.sending.preserve_signing_order;
    dispatch::check_fit(core, &template, prefilled.as_ref()).await?;
    let (mut signers, recipients) = planned(
        core,
        &envelope,
        &template,
        &request,
        ordered,
        prefilled.as_ref(),
    )
    .await?;

    if sent.sending.kba_required && !sent.sending.send_email {
        return Err(ServiceError::Semantic(
            "A document with identity verification cannot be signed in person".into(),
        ));
    }

    kba::check_step(core, &caller.org, sent.sending.kba_required).await?;
    note_source(&mut sent, selected.as_ref());
    if let Some(values) = &prefilled {
        sent.set_prefilled(values);
    }

    let checked = funding::before_sending(core, &sent, &signers, request.funding).await?;
    if let Some(refused) = checked.refusal() {
        funding::record_refusal(core, &envelope, checked).await?;
        return Err(refused.into());
    }

    let mut notes = warnings::of_unsigned_roles(&template, &signers);
    notes.extend(checked.warnings());
    let later = request.send_at;
    let later = later.map(|at| planned_by(caller, at, Some(&template)));
    sent.plan_sending(later.as_ref());
    if let Some(later) = later {
        planned_sending::check(later.at, sent.expires_at, core.clock.now())?;
        let people = PlannedPeople {
            warnings: notes,
            signers,
            recipients,
            // The job checks again, with the rules of that day.
            checked: None,
        };
        return prepare(core, caller, &envelope, sent, people, answer).await;
    }

    let named: Vec<Value> = signers.iter().map(signer_view).collect();
    let what = json!([
        template.provider_template,
        template.content(),
        named,
        prefilled,
        sent.sending.preserve_signing_order,
    ]);
    let external_id = dispatch::external_id(&sent.id, &what);
    let asked = dispatch::DispatchRequest::of(&template, external_id, prefilled.as_ref());

    let signing = provider(core, &caller.org, &template.provider_instance)?;
    let submission = dispatch::submit(core, &signing, &sent, asked, &mut signers).await?;
    sent.sending.submission = Some(submission.clone());
    let people = PlannedPeople {
        warnings: notes,
        signers,
        recipients,
        checked: checked.into_record(),
    };

    let saved = save(core, caller, &envelope, &signing, sent, people, answer).await;
    if saved.is_err() {
        let (org, instance) = (&caller.org, &template.provider_instance);
        dispatch::withdraw_unless_named(core, org, &envelope.id, instance, &submission).await;
    }

    saved
}

/// Returns the document to send, as a template.
async fn document(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    envelope: &Envelope,
    selected: Option<&SelectedTemplates>,
) -> Result<Template, ServiceError> {
    match selected {
        // A library template is used directly; the envelope needs no composed document.
        Some(SelectedTemplates::Template(template, _)) if template.word_source.is_none() => {
            return Ok((**template).clone());
        }
        Some(selected) => return document_to_send(core, pages, caller, envelope, selected).await,
        None => {}
    }

    if let Some(id) = &envelope.template {
        let mut connection = core.store.read().await?;
        let built = templates::get(&mut connection, &envelope.org, id).await?;
        let built = built.filter(|template| caller.sees(template));
        return built.ok_or(ServiceError::NotFound("Template"));
    }

    document_of(core, pages, caller, envelope, None, None, None).await
}

/// Plans the people: those in the request, else those of the envelope, else the customer.
pub(super) async fn planned(
    core: &Core,
    envelope: &Envelope,
    template: &Template,
    request: &SendEnvelope,
    preserve_signing_order: bool,
    prefilled: Option<&Map<String, Value>>,
) -> Result<(Vec<Signer>, Vec<Recipient>), ServiceError> {
    let organization = organizations::read(core, &envelope.org).await?;
    let mut connection = core.store.read().await?;
    let kept = signers::list(&mut connection, &envelope.org, &envelope.id).await?;
    let others = signers::recipients(&mut connection, &envelope.org, &envelope.id).await?;
    let customer = customers::get(&mut connection, &envelope.org, &envelope.customer).await?;
    let payment = payments::get(&mut connection, &envelope.org, &envelope.id).await?;
    drop(connection);

    // The organization's default payer need not exist in every template, so only the
    // envelope's own payment is checked.
    let payment = payment.filter(|payment| payment.own);

    // Turns that only repeat the positions are no groups: the order may be dropped on sending.
    let grouped = kept.iter().any(|signer| signer.turn != signer.position + 1);
    let kept: Vec<RequestedSigner> = kept
        .into_iter()
        .map(|signer| RequestedSigner {
            email: signer.email,
            name: signer.name,
            role: Some(signer.role),
            kind: Some(signer.kind),
            witness_of: signer.witness_of,
            same_device: Some(signer.same_device),
            group: signer.group,
            order: (grouped && preserve_signing_order).then_some(signer.turn),
            access: Some(signer.access),
            // `planned` seals the passcode again, as if the request had given it.
            passcode: signer
                .passcode
                .and_then(|sealed| open_passcode(&core.cipher, &envelope.org, &sealed))
                .map(SecretText::new),
            phone: signer.phone,
            notify_by: Some(signer.notify_by),
            locale: signer.locale.map(Into::into),
            time_zone: signer.time_zone,
            consumer: signer.consumer,
        })
        .collect();

    let others = others.into_iter().map(|recipient| RequestedRecipient {
        email: recipient.email,
        name: recipient.name,
        kind: Some(recipient.kind),
        group: recipient.group,
    });
    let customer = customer.and_then(|customer| Some((customer.email?, customer.name)));
    let wanted = SendingOptions {
        signers: request
            .signers
            .clone()
            .or_else(|| Some(kept).filter(|kept| !kept.is_empty())),
        preserve_signing_order,
        recipients: request
            .recipients
            .clone()
            .unwrap_or_else(|| others.collect()),
        customer,
        prefilled,
        payer: payment.as_ref().map(|payment| payment.asked.payer.as_str()),
        may_decline: request
            .may_decline
            .or(Some(envelope.sending.may_decline && template.may_decline)),
        refuse_unsigned_roles: organization.settings.refuse_unsigned_roles,
    };

    dispatch::plan(core, template, &wanted)
}

/// Records in the metadata where the document came from.
fn note_source(sent: &mut Envelope, selected: Option<&SelectedTemplates>) {
    let source = match selected {
        Some(SelectedTemplates::Template(template, _)) => {
            let id = template.id.as_str().into();
            sent.metadata.insert("source_template_id".into(), id);
            "template"
        }
        Some(SelectedTemplates::Package(_)) => "package",
        Some(SelectedTemplates::Templates(_)) => "templates",
        None if sent.metadata.contains_key("document_source") => return,
        None if sent.upload.is_some() => "upload",
        None => "new",
    };

    sent.metadata
        .insert("document_source".into(), source.into());
}

/// Signers and recipients of a new envelope, and the findings before it is sent.
struct PlannedPeople {
    signers: Vec<Signer>,
    recipients: Vec<Recipient>,
    warnings: Vec<Warning>,
    /// Check by the funding rules.
    checked: Option<FundingCheck>,
}

/// Commits a draft that is sent later, unless it changed since `before`. Its provider is called then.
async fn prepare(
    core: &Core,
    caller: &Caller,
    before: &Envelope,
    mut draft: Envelope,
    people: PlannedPeople,
    answer: &ResponseRecorder<CreatedEnvelope>,
) -> Result<CreatedEnvelope, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let locked = lookup::lock_envelope(&mut tx, &before.org, &before.id).await?;
    if locked.updated_at != before.updated_at {
        return Err(changed_meanwhile());
    }

    planned_sending::check_draft(&locked)?;
    draft.updated_at = now;
    keep_copy(&mut draft, &locked);
    envelopes::set_sent(&mut tx, locked.status, &draft).await?;
    signers::forget(&mut tx, &draft).await?;
    for signer in &people.signers {
        signers::insert(&mut tx, &draft, signer).await?;
    }
    for recipient in &people.recipients {
        signers::insert_recipient(&mut tx, &draft, recipient).await?;
    }

    planned_sending::schedule(&mut tx, &draft).await?;
    let send_at = draft.planned_sending().map(|planned| planned.at);
    let details = json!({ "to": send_at, "signers": people.signers.len() });
    let action = "envelope.sending_planned";
    events::record(&mut tx, &draft, &caller.actor, action, details, now).await?;
    let created = CreatedEnvelope {
        envelope: draft,
        sign_url: None,
        warnings: people.warnings,
    };
    answer.commit(tx, &created).await?;

    Ok(created)
}

/// Keeps which copy was made of the envelope: a copy is noted in the metadata and is no change of the envelope.
fn keep_copy(sent: &mut Envelope, locked: &Envelope) {
    if let Some(copy) = locked.link(EnvelopeLink::CopiedTo) {
        sent.set_link(EnvelopeLink::CopiedTo, &copy);
    }
}

fn changed_meanwhile() -> ServiceError {
    ServiceError::Conflict("The envelope was changed meanwhile; send it again".into())
}

/// Commits the sent envelope, unless it changed since `before`.
async fn save(
    core: &Core,
    caller: &Caller,
    before: &Envelope,
    signing: &SigningProvider,
    mut sent: Envelope,
    people: PlannedPeople,
    answer: &ResponseRecorder<CreatedEnvelope>,
) -> Result<CreatedEnvelope, ServiceError> {
    let PlannedPeople {
        mut signers,
        recipients,
        warnings,
        checked,
    } = people;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let locked = lookup::lock_envelope(&mut tx, &before.org, &before.id).await?;

    // The document, the template or another part changed since it was submitted.
    let same = |now: &Envelope| {
        now.upload == before.upload
            && now.template == before.template
            && now.updated_at == before.updated_at
    };

    let asked = Envelope {
        template: sent.template.clone(),
        ..locked.clone()
    };
    // Asked first: an envelope that was sent or voided meanwhile is refused for that reason.
    let decided = lifecycle::decide(core, &asked, EnvelopeTrigger::Send).await?;

    if !same(&locked) {
        return Err(changed_meanwhile());
    }

    sent.status = decided.status;
    sent.updated_at = now;
    keep_copy(&mut sent, &locked);
    signing.write(&mut tx).await?;
    parties::arrange(core, &mut tx, &sent, &mut signers).await?;
    envelopes::set_sent(&mut tx, locked.status, &sent).await?;
    decided.record(&mut tx, &sent, now).await?;
    if let Some(check) = &checked {
        funding_rows::insert_decision(&mut tx, &sent.org, check).await?;
    }

    // Replaces the signers planned on creation.
    signers::forget(&mut tx, &sent).await?;
    kba::mark_challenged(&mut tx, &sent, caller.email.as_deref(), &mut signers).await?;
    for signer in &signers {
        signers::insert(&mut tx, &sent, signer).await?;
    }

    for recipient in &recipients {
        signers::insert_recipient(&mut tx, &sent, recipient).await?;
    }

    let actor = &caller.actor;
    dispatch::announce(&mut tx, &sent, &signers, &recipients, actor, now).await?;
    let sign_url = match signers.first() {
        Some(first) => Some(links::make(core, &mut tx, &sent, first, links::EMBED_LIFE).await?),
        None => None,
    };
    let created = CreatedEnvelope {
        envelope: sent,
        sign_url,
        warnings,
    };
    answer.commit(tx, &created).await?;

    Ok(created)
}
