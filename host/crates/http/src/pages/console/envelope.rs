//! The page of one envelope: where it is, then its people, pages, history, checks, evidence and acts.

use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::PATH;
use super::contract_dates;
use super::destruction;
use super::drafts::send_draft;
use super::envelopes::unrecorded;
use super::facts;
use super::forms::{FormView, RefusedForm, TextField};
use super::funding::{self, ShownFunding};
use super::imports;
use super::live::LiveList;
use super::navigation::{PageResult, Place, status};
use super::retention;
use super::sign_on::open_builder;
use super::signed_in::{ConsoleForm, Visitor};
use super::standing::{dot, trouble_in_words, who};
use super::sure::{SURE, SensitiveAct};
use crate::error::HttpError;
use crate::middleware::extract::valid;
use crate::reply::{FileReply, Pdf, PdfOrJson, Zip};
use holdfast_adapters::texts::Texts;
use holdfast_components::rules::placement::PageFacts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{
    Envelope, EnvelopeLink, EnvelopeStatus, PaymentStatus, Signer, same_address,
};
use holdfast_domain::event::EventType;
use holdfast_domain::facts::FactSheet;
use holdfast_domain::identity::KbaStatus;
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::organization::Permission;
use holdfast_domain::question::{QuestionClosing, SignerQuestion};
use holdfast_platform::ServiceError;
use holdfast_platform::components::shadow;
use holdfast_platform::kba::{self, KbaResult};
use holdfast_service::envelopes::compliance::{self, ComplianceView};
use holdfast_service::envelopes::sending::SendEnvelope;
use holdfast_service::envelopes::standing::{self, EnvelopeStanding};
use holdfast_service::envelopes::successors::{self, CorrectEnvelope};
use holdfast_service::envelopes::{documents, people_notes};
use holdfast_service::retention::RetentionView;
use holdfast_service::retention::holds::{self, HoldView};
use holdfast_service::signing::corrections::{self, CorrectSigner};
use holdfast_service::signing::drawings::DRAWN_ELSEWHERE;
use holdfast_service::signing::embed::{self, RequestToken};
use holdfast_service::signing::expiry::{self, ExtendExpiry};
use holdfast_service::signing::questions::{self, CloseQuestion};
use holdfast_service::signing::reminders::{self, RemindRequest};
use holdfast_service::signing::visits::POSTPONED;
use holdfast_service::templates::pages::{self, WIDTHS};
use holdfast_service::vault::history::in_words;
use holdfast_service::vault::vault_in::VaultInEndpoint;
use holdfast_service::vault::{
    completion, custody, custody_record, downloads, evidence_copy, funding_package, vault_in,
};
use holdfast_service::{App, envelopes};

/// Relations to other envelopes, with the names of their texts.
const RELATED: [(EnvelopeLink, &str); 4] = [
    (EnvelopeLink::Corrects, "envelopes-corrects"),
    (EnvelopeLink::CorrectedBy, "envelopes-corrected-by"),
    (EnvelopeLink::CopiedFrom, "envelopes-copied-from"),
    (EnvelopeLink::CopiedTo, "envelopes-copied-to"),
];

/// Most pages that are shown as pictures.
const PICTURES: usize = 20;

/// Something that happened, with where it came from.
struct HistoryRow {
    at: Timestamp,
    text: String,
    /// Address and browser.
    origin: Option<String>,
    /// Version and time of the consent.
    consent: Option<(String, Option<Timestamp>)>,
}

impl HistoryRow {
    /// Describes a ledger entry in plain words; none for one that concerns auditors only.
    fn of(texts: Texts, entry: &LedgerEntry) -> Option<Self> {
        let of = |name: &str| entry.details[name].as_str();
        let origin = [of("ip"), of("user_agent")];
        let origin: Vec<&str> = origin.into_iter().flatten().collect();
        Some(Self {
            at: entry.at,
            text: in_words(texts, entry).or_else(|| own_words(texts, entry))?,
            origin: (!origin.is_empty()).then(|| origin.join(" · ")),
            consent: of("consent_version").map(|version| {
                let at = of("consented_at").and_then(Timestamp::parse);
                (version.to_owned(), at)
            }),
        })
    }
}

/// Returns what the organization's own people did, or none. The pages for other parties leave it out.
fn own_words(texts: Texts, entry: &LedgerEntry) -> Option<String> {
    let who = person_of(&entry.actor);
    let own = match entry.action.as_str() {
        "envelope.extended" => Some("envelopes-history-extended"),
        "envelope.copied" => Some("envelopes-history-copied"),
        _ => None,
    };
    if let Some(own) = own {
        return Some(texts.with(own, [("who", who)]));
    }

    let by_signer = match entry.action.as_str() {
        POSTPONED => Some("envelopes-history-postponed"),
        DRAWN_ELSEWHERE => Some("envelopes-history-drawn"),
        _ => None,
    };
    if let Some(by_signer) = by_signer {
        let name = entry.details["signer"]["name"].as_str()?;
        return Some(texts.with(by_signer, [("name", name)]));
    }

    let of = |member: &str| entry.details[member].as_str().unwrap_or_default();
    match EventType::parse(&entry.action)? {
        EventType::SignerQuestionAsked => {
            let name = entry.details["signer"]["name"].as_str()?;
            let values = [("name", name), ("question", of("question"))];
            Some(texts.with("envelopes-history-asked", values))
        }
        EventType::SignerQuestionClosed if entry.details["answer"].is_null() => {
            Some(texts.with("envelopes-history-dismissed", [("who", who)]))
        }
        EventType::SignerQuestionClosed => {
            let values = [("who", who), ("answer", of("answer"))];
            Some(texts.with("envelopes-history-answered", values))
        }
        EventType::EnvelopeReminderSent => {
            let reminded = entry.details["reminded"].as_array()?.iter();
            let people: Vec<&str> = reminded.filter_map(Value::as_str).collect();
            let people = people.join(&texts.text("list-separator"));
            let values = [("who", who), ("people", people.as_str())];
            Some(texts.with("envelopes-history-reminded", values))
        }
        EventType::PaymentSucceeded => Some(texts.text("envelopes-history-paid")),
        _ => None,
    }
}

/// Returns the address of a user, or the name of another actor.
fn person_of(actor: &str) -> &str {
    actor.strip_prefix("user:").unwrap_or(actor)
}

/// When an envelope passed its steps; the first time for each.
#[derive(Default)]
struct StepTimes {
    sent: Option<Timestamp>,
    viewed: Option<Timestamp>,
    uploaded: Option<Timestamp>,
    vaulted: Option<Timestamp>,
    released: Option<Timestamp>,
    /// The newest reminder, with its actor.
    reminded: Option<(Timestamp, String)>,
}

impl StepTimes {
    fn of(entries: &[LedgerEntry]) -> Self {
        let mut times = Self::default();
        for entry in entries {
            if entry.action == "document.uploaded" {
                times.uploaded = Some(entry.at);
            }

            let Some(event) = EventType::parse(&entry.action) else {
                continue;
            };
            let step = match event {
                EventType::EnvelopeSent => &mut times.sent,
                EventType::SignerViewed => &mut times.viewed,
                EventType::VaultStored => &mut times.vaulted,
                EventType::VaultReleased => &mut times.released,
                EventType::EnvelopeReminderSent => {
                    times.reminded = Some((entry.at, person_of(&entry.actor).to_owned()));
                    continue;
                }
                _ => continue,
            };
            step.get_or_insert(entry.at);
        }

        times
    }
}

/// Step on the way of an envelope.
struct EnvelopeStep {
    name: String,
    is_done: bool,
    at: Option<Timestamp>,
}

/// Returns the steps of an envelope. One that ended without signatures has no later ones.
fn steps(texts: Texts, shown: &ShownEnvelope) -> Vec<EnvelopeStep> {
    let (envelope, times) = (&shown.envelope, &shown.times);
    let step = |name: String, is_done: bool, at: Option<Timestamp>| EnvelopeStep {
        name,
        is_done,
        at: at.filter(|_| is_done),
    };
    let by_status =
        |of: EnvelopeStatus, at: Option<Timestamp>| step(status(texts, of), at.is_some(), at);

    let created = Some(envelope.created_at);
    let mut steps = vec![step(texts.text("envelopes-created"), true, created)];
    if envelope.is_upload() {
        steps.push(by_status(EnvelopeStatus::Uploaded, times.uploaded));
    } else {
        let signed = shown
            .signers
            .iter()
            .filter_map(|signer| signer.completed_at);
        let (count, total) = (signed.clone().count(), shown.signers.len());
        let progress = [("signed", count), ("total", total)];
        let all_signed = envelope.status.is_signed() || (total > 0 && count == total);
        steps.push(by_status(EnvelopeStatus::Sent, times.sent));
        // The time of the first view can be missing where a provider reports only the signature.
        let viewed = step(
            status(texts, EnvelopeStatus::Viewed),
            times.viewed.is_some() || count > 0,
            times.viewed,
        );
        steps.push(viewed);
        steps.push(step(
            texts.with("envelopes-signed", progress),
            all_signed,
            signed.max(),
        ));
    }

    if has_ended(envelope) {
        steps.retain(|step| step.is_done);
        steps.push(by_status(envelope.status, Some(envelope.updated_at)));
    } else {
        steps.push(by_status(EnvelopeStatus::Vaulted, times.vaulted));
        // Most records stay, so the release is no step that the others still wait for.
        if times.released.is_some() {
            steps.push(by_status(EnvelopeStatus::VaultedOut, times.released));
        }
    }

    steps
}

/// Whether the envelope ended without all signatures.
fn has_ended(envelope: &Envelope) -> bool {
    !envelope.status.is_unfinished() && !envelope.status.is_signed()
}

/// Content of the page of an envelope.
struct ShownEnvelope {
    envelope: Envelope,
    standing: Option<EnvelopeStanding>,
    times: StepTimes,
    /// Pages that can be drawn.
    pages: Vec<PageFacts>,
    signers: Vec<Signer>,
    questions: Vec<SignerQuestion>,
    history: Vec<HistoryRow>,
    /// Results of identity questions.
    identity: Vec<KbaResult>,
    compliance: ComplianceView,
    failure: Option<String>,
    /// Law that the rules chose for the record, as the certificate states it.
    law: Option<Value>,
    /// None if no fact map applies, and before the last signature.
    facts: Option<FactSheet>,
    funding: ShownFunding,
    /// How long the record is kept, if a schedule matches it.
    kept: Option<RetentionView>,
    /// The organization's own hold on the record.
    hold: Option<HoldView>,
}

async fn read(app: &App, visitor: &Visitor, id: &str) -> Result<ShownEnvelope, ServiceError> {
    let caller = &visitor.caller;
    let (envelope, compliance) =
        compliance::evaluate(app, &app.management, caller, id, None).await?;
    let (signers, _) = envelopes::people(app, caller, id).await?;
    let questions = questions::list(app, caller, id).await?;
    let ledger = custody::ledger(app, &app.vault, caller, id).await?;
    let history = ledger.entries.iter();
    let history = history.filter_map(|entry| HistoryRow::of(visitor.texts, entry));
    let mut standings = standing::of_envelopes(app, caller, &[&envelope.id]).await?;
    let pages = pages_of(app, &envelope).await;
    let facts = facts::of(app, &envelope).await?;
    let funding = ShownFunding::of(app, visitor, &envelope).await?;
    let kept = holdfast_service::retention::of(app, &envelope).await?;
    let hold = holds::on(app, caller, &envelope).await?;

    let identity = kba::results(app, caller, id).await?;
    let failure = vault_in::failure(app, &envelope).await?;
    let certificate = match envelope.record.certificate {
        // The page is needed most when storage fails.
        Some(_) => compliance::certificate(app, caller, id)
            .await
            .unwrap_or_else(|error| {
                tracing::warn!(%error, envelope = id, "a certificate could not be read for a page");
                Bytes::new()
            }),
        None => Bytes::new(),
    };

    // The rules of an organization may write another kind of certificate. The page then states no law.
    let certificate: Option<Value> = serde_json::from_slice(&certificate).ok();
    Ok(ShownEnvelope {
        law: certificate
            .and_then(|mut certificate| Some(certificate["law"].take()).filter(Value::is_object)),
        standing: standings.remove(&envelope.id),
        times: StepTimes::of(&ledger.entries),
        pages,
        facts,
        funding,
        kept,
        hold,
        envelope,
        signers,
        questions,
        history: history.collect(),
        identity,
        compliance,
        failure: failure.map(|failure| format!("{}: {}", failure.step, failure.message)),
    })
}

/// Returns the pages of an envelope's document that can be drawn.
pub async fn pages_of(app: &App, envelope: &Envelope) -> Vec<PageFacts> {
    let read = async {
        let Some(document) = documents::shown(app, envelope).await? else {
            return Ok(Vec::new());
        };
        let facts = pages::shown_facts(app, &app.pages, &document).await?;
        Ok::<_, ServiceError>(facts.to_vec())
    };

    // Users need the page most when something fails, and it works without the pictures.
    read.await.unwrap_or_else(|error| {
        let id = envelope.id.as_str();
        tracing::warn!(%error, envelope = id, "pages of an envelope could not be read for the console");
        Vec::new()
    })
}

#[derive(Default, Deserialize)]
pub struct ShownQuery {
    /// The act before.
    done: Option<String>,
}

/// Shows one envelope: people, history, checks and actions.
pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
    Query(query): Query<ShownQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    let envelope = envelopes::get_with_destroyed(&app, &visitor.caller, &id).await?;
    if envelope.destruction.is_some() {
        return Ok(destruction::envelope_page(&app, &visitor, &envelope).await?);
    }
    let shown = read(&app, &visitor, &id).await?;
    // The address carries a word and not a text, so that a link of another site cannot put its own
    // words on the page.
    let note = match query.done.as_deref() {
        Some("reminded") => Some(visitor.texts.text("console-reminded")),
        Some("sent") => Some(visitor.texts.text("console-sent")),
        Some("planned") => Some(visitor.texts.text("send-plan-kept")),
        Some("corrected") => Some(visitor.texts.text("console-corrected")),
        Some("voided") => Some(visitor.texts.text("console-voided")),
        Some("extended") => Some(visitor.texts.text("envelopes-extended")),
        Some("dated") => Some(visitor.texts.text("envelopes-dated")),
        Some("copied") => Some(visitor.texts.text("envelopes-copied")),
        Some("replaced") => Some(visitor.texts.text("envelopes-replaced")),
        Some("vaulted") => Some(visitor.texts.text("envelopes-vaulted")),
        Some("checked") => Some(visitor.texts.text("funding-checked")),
        Some("required") => Some(visitor.texts.text("funding-attachments-set")),
        Some("received") => Some(visitor.texts.text("funding-received")),
        Some("waived") => Some(visitor.texts.text("funding-waived")),
        Some("answered") => Some(visitor.texts.text("question-sent")),
        Some("dismissed") => Some(visitor.texts.text("question-dismissed")),
        _ => None,
    };

    Ok(page(
        &visitor,
        &shown,
        note.map(|note| html! { (note) }),
        None,
    ))
}

/// Shows the page again with the entries and problems of a form.
pub async fn again(app: &App, visitor: &Visitor, id: &str, refused: &RefusedForm) -> PageResult {
    let shown = read(app, visitor, id).await?;
    Ok(page(visitor, &shown, None, Some(refused)))
}

/// Renders the page; `refused` is a form that was refused.
fn page(
    visitor: &Visitor,
    shown: &ShownEnvelope,
    note: Option<Markup>,
    refused: Option<&RefusedForm>,
) -> Response {
    let (texts, envelope) = (visitor.texts, &shown.envelope);
    let action = |name: &str| format!("{PATH}/envelopes/{}/{name}", envelope.id);
    let compliance = &shown.compliance;
    let is_open = envelope.status.is_out_for_signing();
    let signed = shown.signers.iter();
    let signed = signed
        .filter(|signer| signer.completed_at.is_some())
        .count();
    // Evidence exists from the certificate on. The bundle waits for the release, because until then
    // the live copy leaves the vault by single-use links only.
    let body = html! {
        @if let Some(note) = note { p.done role="status" { (note) } }
        p.soft {
            code { (envelope.id) }
            @if let Some(external) = &envelope.external_id { " · " (external) }
        }
        @for (link, text) in RELATED {
            @if let Some(other) = envelope.link(link) {
                p.soft { (texts.text(text)) " " a href={ (PATH) "/envelopes/" (other) } { (other) } }
            }
        }
        @if let Some(failure) = &shown.failure {
            p.alarm role="alert" { (texts.text("console-stuck")) " " (failure) }
        }
        @if let Some(failure) = envelope.sending_failure() {
            p.alarm role="alert" {
                (texts.text("send-not-sent")) " " span lang="en" dir="ltr" { (failure.reason) }
            }
        }
        (progress(visitor, shown, refused))
        (asked(visitor, shown, refused))
        section.card {
            h2 { (texts.text("console-people")) }
            ul.rows {
                @for signer in &shown.signers { li { (person(visitor, shown, signer, is_open, refused)) } }
            }
        }
        @if let Some(payment) = envelope.payment {
            section.card {
                h2 { (texts.text("settings-payment")) }
                p {
                    span.tag.wrong[payment == PaymentStatus::RequiresPayment] {
                        @match payment {
                            PaymentStatus::Paid => { (texts.text("console-paid")) }
                            PaymentStatus::RequiresPayment => { (texts.text("console-not-paid")) }
                        }
                    }
                }
            }
        }
        @if let Some(card) = imports::card(texts, envelope) { (card) }
        (contract_dates::card(visitor, envelope, refused))
        (pictures(texts, envelope, signed, shown.pages.len()))
        (facts::card(visitor, shown.facts.as_ref()))
        (funding::cards(visitor, envelope, &shown.funding, &shown.pages, refused))
        (retention::card(texts, shown.kept.as_ref(), shown.hold.as_ref()))
        section.card {
            h2 { (texts.text("vault-what-happened")) }
            ol.ledger {
                @for row in &shown.history {
                    li {
                        (visitor.moment(row.at)) " " span.detail { (row.text) }
                        @if let Some(origin) = &row.origin { p.soft { (origin) } }
                        @if let Some((version, at)) = &row.consent {
                            p.soft {
                                (texts.with("console-consent", [("version", version.as_str())]))
                                @if let Some(at) = at { " " (visitor.moment(*at)) }
                            }
                        }
                    }
                }
            }
        }
        section.card {
            // Nothing of an unsigned document can pass yet, so a result would only alarm.
            @if envelope.status.is_signed() {
                h2 { (texts.with("console-checks", [("score", i64::from(compliance.score))])) }
            } @else {
                h2 { (texts.text("envelopes-checks-later")) }
            }
            ul.rows {
                @for check in &compliance.checks {
                    li {
                        p {
                            @if envelope.status.is_signed() {
                                span.tag.wrong[!check.satisfied] {
                                    @if check.satisfied { (texts.text("yes")) } @else { (texts.text("no")) }
                                }
                                " "
                            }
                            strong { (check.requirement) }
                        }
                        p.soft {
                            (check.ucc_reference)
                            @if envelope.status.is_signed() { ": " (check.detail) }
                        }
                    }
                }
            }
            @if let Some(law) = &shown.law { (stated_law(texts, law)) }
            @if visitor.may(Permission::ReadEvidence) {
                p { a href={ (action("decisions")) } { (texts.text("console-why")) } }
            }
            @if envelope.status.is_signed() && visitor.may(Permission::ReadEvidence) {
                (visitor.button(&action("verify"), None, "console-verify"))
            }
        }
        @if envelope.record.certificate.is_some() {
            section.card {
                h2 { (texts.text("console-evidence")) }
                ul.rows {
                    @for (file, text) in [
                        ("copy", "console-file-copy"), ("certificate.json", "console-file-certificate"),
                        ("custody-record.pdf", "console-file-custody"), ("completion.pdf", "console-file-completion"),
                    ] {
                        li { a href={ (action("files")) "/" (file) } download { (texts.text(text)) } }
                    }
                    @if visitor.may(Permission::ReadEvidence) && envelope.status == EnvelopeStatus::VaultedOut {
                        li { a href={ (action("files")) "/bundle.zip" } download { (texts.text("console-file-bundle")) } }
                    }
                }
            }
        }
        @if visitor.may(Permission::Send) && (is_open || envelope.record.certificate.is_some()) {
            @let form = FormView::new(texts, &action("embed"), refused).with_ids("embed");
            @let people = shown.signers.iter().map(|one| (one.email.clone(), format!("{} ({})", one.name, one.email)));
            details.card open[form.is_refused()] {
                summary { (texts.text("console-embed")) }
                form method="post" action=(action("embed")) {
                    (visitor.token())
                    (form.summary())
                    input type="hidden" name="widget" value=(if is_open { "sign" } else { "vault" });
                    (form.select("email", &texts.text("sign-in-email"), &people.collect::<Vec<_>>(), ""))
                    button.quiet type="submit" { (texts.text("console-embed")) }
                }
            }
        }
        @if let Some(template) = &envelope.template {
            p.soft { a href={ (PATH) "/templates/" (template) } { (texts.text("template-pages")) } }
        }
        @if envelope.status == EnvelopeStatus::Vaulted && visitor.may(Permission::ReadControl) {
            p { a href={ (PATH) "/control/records/" (envelope.id) } { (texts.text("console-control")) } }
        }
        @if envelope.status.is_unfinished() && visitor.may(Permission::Send) {
            @let form = FormView::new(texts, &action("void"), refused);
            details.card open[form.is_refused()] {
                summary { (texts.text("console-void")) }
                form method="post" action=(action("void")) {
                    (visitor.token())
                    (form.summary())
                    (form.text(&TextField::required("reason", &texts.text("console-reason"))))
                    button.danger type="submit" { (texts.text("console-void")) }
                }
            }
        }
    };

    let list = Some(&LiveList::Envelopes);
    visitor.form_page(Place::Envelopes, list, &envelope.name, body, refused)
}

/// Renders where the envelope is: its steps, who it waits for, and the acts of its state.
fn progress(visitor: &Visitor, shown: &ShownEnvelope, refused: Option<&RefusedForm>) -> Markup {
    let (texts, envelope) = (visitor.texts, &shown.envelope);
    let steps = steps(texts, shown);
    let current = steps.iter().position(|step| !step.is_done);
    let trouble = shown.standing.as_ref().and_then(|one| one.trouble.as_ref());
    let facts = facts(visitor, shown);
    html! {
        section.card {
            h2 {
                (texts.text("envelopes-progress")) " "
                (dot(texts, envelope.status, trouble.is_some()))
            }
            ol.steps {
                @for (at, step) in steps.iter().enumerate() {
                    li.past[step.is_done] aria-current=[(Some(at) == current).then_some("step")] {
                        span { (step.name) }
                        @if let Some(at) = step.at { " " (visitor.ago(at)) }
                    }
                }
            }
            @if let Some(trouble) = trouble { p.trouble { (trouble_in_words(texts, trouble)) } }
            @if !facts.is_empty() {
                dl.facts {
                    @for (name, fact) in &facts { div { dt { (texts.text(name)) } dd { (fact) } } }
                }
            }
            @if visitor.may(Permission::Send) { (acts(visitor, envelope, refused)) }
        }
    }
}

/// Returns the names of texts and the facts of an envelope that have a value.
fn facts(visitor: &Visitor, shown: &ShownEnvelope) -> Vec<(&'static str, Markup)> {
    let (texts, envelope) = (visitor.texts, &shown.envelope);
    let standing = shown.standing.as_ref();
    let waits_for = standing.and_then(|standing| {
        let who = who(texts, &standing.next)?;
        Some(html! { (who) " · " (visitor.ago(standing.since)) })
    });
    let expires = envelope
        .expires_at
        .filter(|_| envelope.status.is_unfinished());
    let reminded = shown.times.reminded.as_ref();
    let reminded = reminded.map(|(at, actor)| html! { (visitor.ago(*at)) " · " (actor) });
    let amount = standing.and_then(|standing| standing.amount.as_ref());
    let send_at = envelope.planned_sending().map(|planned| planned.at);

    let facts = [
        ("send-planned", send_at.map(|at| visitor.moment(at))),
        ("envelopes-waits-for", waits_for),
        ("envelopes-expires", expires.map(|at| visitor.moment(at))),
        ("envelopes-reminded", reminded),
        ("envelopes-amount", amount.map(|amount| html! { (amount) })),
    ];
    let given = facts
        .into_iter()
        .filter_map(|(name, fact)| Some((name, fact?)));
    given.collect()
}

/// Renders the acts that move an envelope on from its state.
fn acts(visitor: &Visitor, envelope: &Envelope, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = |name: &str| format!("{PATH}/envelopes/{}/{name}", envelope.id);
    let button = |act: &str, text: &'static str| visitor.button(&action(act), None, text);
    let quiet = |act: &str, text: &'static str| visitor.button(&action(act), Some("quiet"), text);

    let is_draft = envelope.status.is_unfinished() && !envelope.status.is_out_for_signing();
    let has_document = envelope.template.is_some() || envelope.upload.is_some();
    let is_paper = envelope.is_upload() && envelope.upload.is_some();
    let can_be_vaulted = envelope.status == EnvelopeStatus::Completed
        || (is_paper && envelope.status == EnvelopeStatus::Uploaded);

    html! {
        @if is_draft && !envelope.is_upload() {
            @if !has_document { p { (texts.text("envelopes-no-document")) } }
            div.actions {
                @if envelope.is_draft() {
                    a.button href={ (PATH) "/drafts/" (envelope.id) } { (texts.text("send-draft")) }
                }
                (quiet("edit", "template-edit"))
                @if has_document { (button("send", "console-send")) }
            }
        }
        @if envelope.status.is_out_for_signing() {
            div.actions {
                (button("remind", "console-remind"))
                (quiet("links", "console-links"))
            }
            (correction(visitor, envelope, refused))
        }
        @if envelope.status.is_unfinished() && envelope.expires_at.is_some() {
            (extension(visitor, &action("extend"), refused))
        }
        @if has_ended(envelope) && !envelope.is_upload() {
            div.actions { (button("copy", "envelopes-copy")) }
        }
        @if can_be_vaulted {
            details {
                summary { (texts.text("envelopes-vault")) }
                p { (texts.with("envelopes-vault-hint", [("name", envelope.name.as_str())])) }
                (button("vault", "envelopes-vault"))
            }
        }
    }
}

/// Renders the form for a later expiry.
fn extension(visitor: &Visitor, action: &str, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let form = FormView::new(texts, action, refused);
    html! {
        details open[form.is_refused()] {
            summary { (texts.text("envelopes-extend")) }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                (form.field("until", &html! { (texts.text("envelopes-until")) }, html! {
                    input id="until" name="until" type="date" required min=(visitor.now.date()) value=(form.value("until", ""))
                        aria-invalid=[form.invalid("until")] aria-describedby=[form.described("until")];
                }))
                button.quiet type="submit" { (texts.text("envelopes-extend")) }
            }
        }
    }
}

/// Renders the questions of signers, with a form for the answer to each open one.
fn asked(visitor: &Visitor, shown: &ShownEnvelope, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    html! {
        @if !shown.questions.is_empty() {
            section.card id="questions" {
                h2 { (texts.text("question-title")) }
                ul.rows {
                    @for question in &shown.questions {
                        li {
                            p { strong { (question.name) } " " span.soft { (question.role) } " " (visitor.ago(question.asked_at)) }
                            @for line in question.text.lines() { p { (line) } }
                            @match &question.closing {
                                None if visitor.may(Permission::Send) => {
                                    (answer_form(visitor, shown, question, refused))
                                }
                                None => { p.soft { (texts.text("question-open")) } }
                                Some(closing) => { (ending(visitor, closing)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the sender's answer, or that there is none.
fn ending(visitor: &Visitor, closing: &QuestionClosing) -> Markup {
    let texts = visitor.texts;
    html! {
        p.soft {
            @if closing.answer.is_some() { (texts.text("question-answer")) } @else { (texts.text("question-was-dismissed")) }
            " " (visitor.ago(closing.at)) " · " (person_of(&closing.by))
        }
        @for line in closing.answer.iter().flat_map(|answer| answer.lines()) { p { (line) } }
    }
}

/// Renders the form for the answer to a question.
fn answer_form(
    visitor: &Visitor,
    shown: &ShownEnvelope,
    question: &SignerQuestion,
    refused: Option<&RefusedForm>,
) -> Markup {
    let texts = visitor.texts;
    let action = format!(
        "{PATH}/envelopes/{}/questions/{}",
        shown.envelope.id, question.id
    );
    let view = FormView::new(texts, &action, refused).with_ids(&question.id);
    html! {
        form method="post" action=(action) {
            (visitor.token())
            (view.summary())
            (view.lines("answer", &texts.text("question-answer"), 3, ""))
            div.actions {
                button type="submit" name="act" value="answer" { (texts.text("question-reply")) }
                button.quiet type="submit" name="act" value="dismiss" { (texts.text("question-dismiss")) }
            }
        }
    }
}

/// Returns the address that the form for a corrected document is sent to.
fn correction_address(id: impl std::fmt::Display) -> String {
    format!("{PATH}/envelopes/{id}/correct")
}

/// Renders the form for a corrected document, with its consequence.
fn correction(visitor: &Visitor, envelope: &Envelope, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = correction_address(&envelope.id);
    let form = FormView::new(texts, &action, refused).with_ids("document");
    html! {
        details open[form.is_refused()] {
            summary { (texts.text("envelopes-correct")) }
            p { (texts.text("envelopes-correct-hint")) }
            form method="post" action=(action) enctype="multipart/form-data" {
                (visitor.token())
                (form.summary())
                (form.file(&texts.text("envelopes-correct-file"), Some(".pdf,application/pdf")))
                (form.lines("message", &texts.text("envelopes-correct-message"), 3, ""))
                (form.tick(SURE, &texts.text("envelopes-correct-sure"), false))
                (form.problem(SURE))
                button.danger type="submit" { (texts.text("envelopes-correct-send")) }
            }
        }
    }
}

/// Renders pictures of the pages of an envelope that so many people have signed.
pub fn pictures(texts: Texts, envelope: &Envelope, signed: usize, count: usize) -> Markup {
    // Another document or another signature makes another address, because browsers keep pictures.
    let version = format!("{}-{signed}", envelope.updated_at.as_millis());
    html! {
        @if count > 0 {
            section.card {
                h2 { (texts.text("template-pages")) }
                div.sheets {
                    @for number in 1..=count.min(PICTURES) {
                        img src={ (PATH) "/envelopes/" (envelope.id) "/pages/" (number) ".png?v=" (version) }
                            loading="lazy" width="200" height="259"
                            alt=(texts.with("signing-page", [("number", number), ("count", count)]));
                    }
                }
            }
        }
    }
}

/// Renders the outcome of the newest message to a signer.
fn notice(visitor: &Visitor, signer: &Signer) -> Markup {
    let texts = visitor.texts;
    html! {
        @if let Some(notice) = &signer.notice {
            p.soft {
                @match &notice.failure {
                    Some(reason) => {
                        span.tag.wrong { (texts.text("envelopes-notice-failed")) } " " (reason)
                    }
                    None => { (texts.text("envelopes-notice-accepted")) }
                }
                " " (visitor.ago(notice.at))
            }
        }
    }
}

/// Renders a signer, with the form that corrects one who has not signed.
fn person(
    visitor: &Visitor,
    shown: &ShownEnvelope,
    signer: &Signer,
    is_open: bool,
    refused: Option<&RefusedForm>,
) -> Markup {
    let texts = visitor.texts;
    let dates = &visitor.organization.settings.dates;
    let action = format!(
        "{PATH}/envelopes/{}/signers/{}",
        shown.envelope.id, signer.position
    );
    let form = FormView::new(texts, &action, refused).with_ids(signer.position);

    // Not those of the person before this signer.
    let results = shown.identity.iter().filter(|result| {
        result.signer.role == signer.role && same_address(&result.signer.email, &signer.email)
    });
    html! {
        p { strong { (signer.name) } " " span.soft { (signer.role) } }
        p.soft { (signer.email) @if let Some(phone) = &signer.phone { " · " (phone) } }
        p.soft {
            (people_notes::act_in_words(texts, signer, |at| texts.moment(dates, at)))
        }
        (notice(visitor, signer))
        @if let Some(reason) = &signer.decline_reason { p { (reason) } }
        @for result in results {
            p.soft {
                span.tag.wrong[result.status != KbaStatus::Passed] {
                    @match result.status {
                        KbaStatus::Passed if result.is_simulated => { (texts.text("identity-simulated")) }
                        KbaStatus::Passed => { (texts.text("identity-passed")) }
                        _ => { (texts.text("identity-failed")) }
                    }
                }
                " " (visitor.moment(result.occurred_at))
            }
        }
        @if is_open && signer.completed_at.is_none() && visitor.may(Permission::Send) {
            details open[form.is_refused()] {
                summary { (texts.text("console-correct")) }
                form method="post" action=(action) {
                    (visitor.token())
                    (form.summary())
                    (form.text(&TextField {
                        present: &signer.name,
                        ..TextField::required("name", &texts.text("rules-name"))
                    }))
                    (form.text(&TextField {
                        kind: "email",
                        present: &signer.email,
                        limit: 200,
                        ..TextField::required("email", &texts.text("sign-in-email"))
                    }))
                    button type="submit" { (texts.text("console-correct")) }
                }
            }
        }
    }
}

/// Renders the law that a certificate states.
fn stated_law(texts: Texts, law: &Value) -> Markup {
    let of = |member: &str| law[member].as_str().unwrap_or_default().to_owned();
    // An organization may replace the rules that write this. A link with another scheme could run a script.
    let source = of("source");
    html! {
        h3 { (texts.text("console-law")) }
        p { (of("jurisdiction")) ": " (of("applied")) }
        p.soft {
            (of("act")) " · " (texts.text("console-since")) " " (of("effective"))
            @if source.starts_with("https://") { " · " a href=(source) rel="noreferrer" { (source) } }
        }
    }
}

/// Shows the decisions about an envelope with their facts and components, each made again.
pub async fn decisions(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> PageResult {
    visitor.require(Permission::ReadEvidence)?;

    let envelope = envelopes::get(&app, &visitor.caller, &id).await?;
    let org = &visitor.caller.org;
    // Nothing of the replay is stored, so the page shows what the named components answer today.
    let made = shadow::replay_envelope(&app, &app.management, org, &envelope.id).await?;

    let texts = visitor.texts;
    let body = html! {
        p { a href={ (PATH) "/envelopes/" (envelope.id) } { (envelope.name) } }
        @if made.is_empty() { p { (texts.text("console-nothing")) } }
        ul.rows {
            @for one in &made {
                li {
                    p {
                        span.tag.wrong[!one.same] { @if one.same { (texts.text("yes")) } @else { (texts.text("no")) } }
                        " " strong { (one.decision) } " " (one.detail)
                    }
                    p.soft {
                        (one.component["name"].as_str().unwrap_or_default()) " "
                        (one.component["version"].as_str().unwrap_or_default()) " "
                        code { (one.component["sha256"].as_str().unwrap_or_default()) }
                    }
                    details {
                        summary { (texts.text("rules-facts")) }
                        pre tabindex="0" { (serde_json::to_string_pretty(&one.facts).unwrap_or_default()) }
                    }
                }
            }
        }
    };

    Ok(visitor.page(Place::Envelopes, &texts.text("console-why"), body))
}

pub fn back(id: &str, done: &str) -> Response {
    Redirect::to(&format!("{PATH}/envelopes/{id}?done={done}")).into_response()
}

/// Mails the signers another link.
pub async fn remind(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let caller = &form.visitor.caller;
    let all = RemindRequest::default();
    reminders::remind(&app, caller, &id, all, &unrecorded()).await?;
    Ok(back(&id, "reminded"))
}

/// Answers a question of a signer, or dismisses it.
pub async fn close_question(
    State(app): State<App>,
    Path((id, question)): Path<(String, String)>,
    form: ConsoleForm,
) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Send)?;

    let is_dismissed = form.value("act") == "dismiss";
    let closed = async {
        let request = if is_dismissed {
            CloseQuestion::default()
        } else {
            // Browsers send CRLF, which the limit would count as two characters.
            let answer = form.value("answer").replace("\r\n", "\n");
            valid::<CloseQuestion>(json!({ "answer": answer }))?
        };
        let caller = &visitor.caller;
        questions::close(&app, caller, &id, &question, request, &unrecorded()).await?;
        Ok::<_, HttpError>(())
    };
    match closed.await {
        Ok(()) if is_dismissed => Ok(back(&id, "dismissed")),
        Ok(()) => Ok(back(&id, "answered")),
        Err(error) => again(&app, visitor, &id, &form.refused(error)?).await,
    }
}

/// Voids the envelope.
pub async fn void(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let reason = form.value("reason").to_owned();
    let texts = form.visitor.texts;
    if reason.is_empty() || reason.chars().count() > 500 {
        let refused = form.refused_at("reason", texts.text("envelopes-reason"));
        return again(&app, &form.visitor, &id, &refused).await;
    }

    let caller = form.visitor.caller.clone();
    let envelope = envelopes::get(&app, &caller, &id).await?;
    form.meant(&SensitiveAct {
        label: texts.text("console-void"),
        objects: vec![envelope.name],
        consequence: texts.text("sure-void"),
        is_typed: false,
        back: format!("{PATH}/envelopes/{id}"),
    })?;

    let (spawned, path) = (app.clone(), id.clone());

    // Completes even if the browser goes away: the provider is called first.
    let voided = tokio::spawn(async move {
        envelopes::void(&spawned, &caller, &path, Some(reason), &unrecorded()).await
    });
    match voided.await? {
        Ok(_) => Ok(back(&id, "voided")),
        Err(error) => again(&app, &form.visitor, &id, &form.refused(error)?).await,
    }
}

/// Opens the field builder with the document of a draft.
pub async fn edit(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let page = format!("{PATH}/envelopes/{id}");
    Ok(open_builder(&app, &form.visitor, ("envelope_id", &id), &page).await)
}

/// Sends a draft to the signers that were named on its creation.
pub async fn send(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let (caller, request) = (form.visitor.caller.clone(), SendEnvelope::default());
    match send_draft(app.clone(), caller, id.clone(), request).await {
        Ok(()) => Ok(back(&id, "sent")),
        // Findings that stopped it are on the page.
        Err(error) => again(&app, &form.visitor, &id, &form.refused(error)?).await,
    }
}

/// Moves the expiry to the end of a later day.
pub async fn extend(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let until = format!("{}T23:59:59Z", form.value("until"));
    let extended = async {
        let request = valid::<ExtendExpiry>(json!({ "expires_at": until }))?;
        let caller = &form.visitor.caller;
        Ok::<_, HttpError>(expiry::extend(&app, caller, &id, request, &unrecorded()).await?)
    };
    match extended.await {
        Ok(_) => Ok(back(&id, "extended")),
        Err(error) => {
            let member = [("expires_at".to_owned(), "until".to_owned())];
            let refused = form.refused_with(error, &member)?;
            again(&app, &form.visitor, &id, &refused).await
        }
    }
}

/// Parts of the form for a corrected document.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "names the parts of the form")]
struct CorrectionFields {
    token: String,
    file: String,
    message: String,
    sure: String,
}

/// Voids the envelope and sends a corrected one with another document. The form names the consequence, because a page
/// that asks afterwards could not keep the file.
pub async fn replace(
    State(app): State<App>,
    Path(id): Path<String>,
    visitor: Visitor,
    request: Request,
) -> PageResult {
    // Before the body is read, so that a stranger uploads nothing.
    visitor.require(Permission::Send)?;

    let mut form = visitor.upload::<CorrectionFields>(&app, request).await?;
    let entries = form.texts.clone();
    let action = correction_address(&id);
    if entries.get(SURE).map(String::as_str) != Some("yes") {
        let message = visitor.texts.text("envelopes-correct-unsure");
        let refused = RefusedForm::at(&action, &entries, SURE, message);
        return again(&app, &visitor, &id, &refused).await;
    }

    let request = CorrectEnvelope {
        file: form.optional_file(),
        fields: None,
        prefilled: None,
        message: form.texts.remove("message").unwrap_or_default(),
    };
    let (spawned, caller, path) = (app.clone(), visitor.caller.clone(), id.clone());

    // Completes even if the browser goes away: the provider is called first.
    let corrected = tokio::spawn(async move {
        successors::correct(&spawned, &caller, &path, request, &unrecorded()).await
    });
    let error = match corrected.await? {
        Ok(created) => return Ok(back(created.envelope.id.as_str(), "replaced")),
        Err(error) => HttpError::from(error),
    };

    // Mismatches are shown at the file, because the form has the people and values of the envelope.
    let members = ["file", "fields", "signers", "prefilled_data", "payment"];
    let members = members.map(|member| (member.to_owned(), "file".to_owned()));
    let refused = RefusedForm::of(&action, &entries, error, &members)?;
    again(&app, &visitor, &id, &refused).await
}

/// Creates a draft from the envelope, and opens its page.
pub async fn copy(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let caller = &form.visitor.caller;
    let created = successors::copy(&app, &app.pages, caller, &id, &unrecorded()).await?;
    Ok(back(created.envelope.id.as_str(), "copied"))
}

/// Vaults a signed envelope, or an uploaded paper.
pub async fn vault(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    let caller = form.visitor.caller.clone();
    form.visitor.require(Permission::Send)?;

    let envelope = envelopes::get(&app, &caller, &id).await?;
    let entrance = if envelope.is_upload() {
        VaultInEndpoint::Upload
    } else {
        VaultInEndpoint::Signed
    };
    let path = id.clone();

    // Completes even if the browser goes away.
    let vaulted = tokio::spawn(async move {
        vault_in::vault_in(&app, &app.vault, &caller, &path, entrance).await
    });
    vaulted.await??;
    Ok(back(&id, "vaulted"))
}

/// Returns a picture of a page of the document before vault-in.
pub async fn picture(
    State(app): State<App>,
    visitor: Visitor,
    Path((id, name)): Path<(String, String)>,
) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    let not_found = || ServiceError::NotFound("Page");
    let page = name.strip_suffix(".png").and_then(|page| page.parse().ok());
    let page = page.ok_or_else(not_found)?;
    let envelope = envelopes::get(&app, &visitor.caller, &id).await?;
    let document = documents::shown(&app, &envelope).await?;
    let document = document.ok_or_else(not_found)?;
    let picture = pages::picture(&app, &app.pages, &document, page, WIDTHS[0]).await?;

    let headers = [
        (header::CONTENT_TYPE, "image/png"),
        // A page of a contract stays in no browser after the sign-out.
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from(picture)).into_response())
}

/// Verifies the evidence now, and shows the result.
pub async fn verify(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::ReadEvidence)?;

    let shown = read(&app, visitor, &id).await?;
    // This installation trusts its own log and components. Outsiders use `holdfast-verify` with
    // anchors of their own.
    let trusted = custody::own_trust(&app)?;
    let (vault, caller) = (&app.vault, &visitor.caller);
    let report = custody::verify(&app, &app.management, vault, caller, &id, trusted).await?;

    let texts = visitor.texts;
    let note = if report.valid {
        html! { (texts.text("console-verified")) }
    } else {
        html! { (texts.text("console-not-verified")) " " code { (report.verdict) } }
    };

    // Without a redirect, because the verdict is stored nowhere and belongs to this answer.
    Ok(page(visitor, &shown, Some(note), None))
}

/// Shows fresh links of the signers, for another way than mail. The ledger names who fetched them.
pub async fn links(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Send)?;

    // A signing link is the credential of its signer, so a stolen cookie must not reveal it.
    let page = format!("{PATH}/envelopes/{id}");
    form.confirmed(&app, &page).await?;

    let links = envelopes::signing_links(&app, &visitor.caller, &id).await?;
    let texts = visitor.texts;
    let body = html! {
        p.soft { (texts.text("console-links-hint")) }
        ul.rows {
            @for link in links.iter().filter(|link| link.signer.completed_at.is_none()) {
                @let field = format!("link-{}", link.signer.position);
                li {
                    label for=(field) { strong { (link.signer.name) } " " span.soft { (link.signer.role) } }
                    div.copied {
                        input id=(field) readonly value=(link.url);
                        button.quiet type="button" data-copy=(field) hidden { (texts.text("console-copy")) }
                    }
                }
            }
        }
        p { a href={ (PATH) "/envelopes/" (id) } { (texts.text("console-back")) } }
    };

    Ok(visitor.page(Place::Envelopes, &texts.text("console-links"), body))
}

/// Corrects a signer who has not signed.
pub async fn correct(
    State(app): State<App>,
    Path((id, position)): Path<(String, i64)>,
    form: ConsoleForm,
) -> PageResult {
    let caller = &form.visitor.caller;
    form.visitor.require(Permission::Send)?;

    // A corrected address gets a working link, so a stolen cookie could have another person sign.
    let page = format!("{PATH}/envelopes/{id}");
    form.confirmed(&app, &page).await?;

    let change = json!({ "name": form.value("name"), "email": form.value("email") });
    let corrected = async {
        let change = valid::<CorrectSigner>(change)?;
        // The form names a position, and the service corrects the signer of a role.
        let (signers, _) = envelopes::people(&app, caller, &id).await?;
        let signer = signers.iter().find(|signer| signer.position == position);
        let role = &signer.ok_or(ServiceError::NotFound("Signer"))?.role;
        let unrecorded = unrecorded();
        let corrected = corrections::correct(&app, caller, &id, role, change, &unrecorded);
        Ok::<_, HttpError>(corrected.await?)
    };
    match corrected.await {
        Ok(_) => Ok(back(&id, "corrected")),
        Err(error) => again(&app, &form.visitor, &id, &form.refused(error)?).await,
    }
}

/// Sends a file of the evidence.
pub async fn file(
    State(app): State<App>,
    visitor: Visitor,
    Path((id, file)): Path<(String, String)>,
) -> PageResult {
    // A bundle has the bytes of the authoritative copy, so reading envelopes is not enough for it.
    let needs = match file.as_str() {
        "bundle.zip" | "funding-package.zip" => Permission::ReadEvidence,
        _ => Permission::ReadEnvelopes,
    };
    visitor.require(needs)?;

    Ok(send_file(&app, &visitor, &id, &file).await?)
}

async fn send_file(
    app: &App,
    visitor: &Visitor,
    id: &str,
    file: &str,
) -> Result<Response, HttpError> {
    let caller = &visitor.caller;
    let name = format!("{id}-{file}");

    Ok(match file {
        "copy" => {
            // Through a link like every download, so that the ledger names the user who got the file.
            let link = downloads::copy(app, caller, id).await?;
            Redirect::to(&link.url).into_response()
        }
        "certificate.json" => {
            let bytes = compliance::certificate(app, caller, id).await?;
            let reply =
                FileReply::<PdfOrJson>::of_type(app, "application/json", &name, &bytes).await?;
            reply.into_response()
        }
        "custody-record.pdf" => {
            let pdf = custody_record::custody_record(app, &app.management, caller, id).await?;
            let reply = FileReply::<Pdf>::of_bytes(app, &name, &pdf).await?;
            reply.into_response()
        }
        "completion.pdf" => {
            let envelope = envelopes::get(app, caller, id).await?;
            // In the language of the organization, because its own people read it here.
            let pdf = completion::certificate(app, &envelope, None).await?;
            let reply = FileReply::<Pdf>::of_bytes(app, &name, &pdf).await?;
            reply.into_response()
        }

        "funding-package.zip" => {
            let zip = funding_package::package(app, &app.vault, caller, id).await?;
            FileReply::<Zip>::named(&funding_package::file_name(id), zip).into_response()
        }
        "bundle.zip" => {
            let zip = custody::bundle(app, &app.vault, caller, id).await?;
            FileReply::<Zip>::named(&evidence_copy::file_name(id), zip).into_response()
        }
        _ => return Err(ServiceError::NotFound("File").into()),
    })
}

/// Shows a widget as a page of the organization embeds it, with the code for that page.
pub async fn embed(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Send)?;

    // The token opens the form of a signer, so a stolen cookie must not issue one.
    let page = format!("{PATH}/envelopes/{id}");
    form.confirmed(&app, &page).await?;

    let request = json!({
        "envelope_id": id, "user_email": form.value("email"), "widget_type": form.value("widget"),
    });
    let issued = async {
        let request = valid::<RequestToken>(request)?;
        let (caller, unrecorded) = (&visitor.caller, unrecorded());
        let issued = embed::issue(&app, &app.access, caller, request, &unrecorded);
        Ok::<_, HttpError>(issued.await?)
    };
    let issued = match issued.await {
        Ok(issued) => issued,
        Err(error) => {
            let member = [("user_email".to_owned(), "email".to_owned())];
            return again(&app, visitor, &id, &form.refused_with(error, &member)?).await;
        }
    };
    let texts = visitor.texts;
    let origin = |url: &str| {
        let url = url::Url::parse(url).ok()?;
        Some(url.origin().ascii_serialization())
    };
    let own = origin(&app.config.console_url()).unwrap_or_default();

    let allowed = &visitor.organization.settings.embed_origins;
    // This page is framed like any other. Without its origin in `embed_origins` the browser would show
    // an empty frame.
    let is_allowed = allowed.iter().any(|one| one.as_str() == own);
    let code = format!(
        "<script type=\"module\" src=\"{}/embed.js\"></script>\n<holdfast-{} src=\"{}\"></holdfast-{}>",
        app.config.embed_url(),
        issued.widget_type,
        issued.embed_url,
        issued.widget_type,
    );
    let body = html! {
        p { (texts.text("embed-hint")) }
        pre tabindex="0" { (code) }
        @if is_allowed {
            iframe.widget src=(issued.embed_url) title=(texts.text("console-embed")) {}
        } @else {
            p.alarm { (texts.with("embed-not-allowed", [("origin", own.as_str())])) }
            p { a href=(issued.embed_url) target="_blank" rel="noreferrer" { (texts.text("embed-open")) } }
        }
        p { a href={ (PATH) "/envelopes/" (id) } { (texts.text("console-back")) } }
    };

    // The policy opens only for the widget that is on this page.
    let frames = origin(&issued.embed_url).filter(|_| is_allowed);
    Ok(visitor.page_with_frames(Place::Envelopes, &texts.text("console-embed"), body, frames))
}
