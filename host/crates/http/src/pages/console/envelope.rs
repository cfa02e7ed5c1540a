//! The page of one envelope: people, history, checks, evidence and actions.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::PATH;
use super::envelopes::unrecorded;
use super::live::LiveList;
use super::navigation::{Place, failed, status};
use super::signed_in::{ConsoleForm, Visitor};
use crate::error::HttpError;
use crate::middleware::extract::valid;
use crate::reply::{FileReply, Pdf, PdfOrJson, Zip};
use holdfast_adapters::texts::Texts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, EnvelopeStatus, PaymentStatus, Signer, same_address};
use holdfast_domain::identity::KbaStatus;
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::organization::Permission;
use holdfast_platform::ServiceError;
use holdfast_platform::components::shadow;
use holdfast_platform::kba::{self, KbaResult};
use holdfast_service::envelopes::compliance::{self, ComplianceView};
use holdfast_service::envelopes::people_notes;
use holdfast_service::signing::corrections::{self, CorrectSigner};
use holdfast_service::signing::embed::{self, RequestToken};
use holdfast_service::signing::reminders::{self, RemindRequest};
use holdfast_service::vault::history::in_words;
use holdfast_service::vault::{
    completion, custody, custody_record, downloads, evidence_copy, vault_in,
};
use holdfast_service::{App, envelopes};

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
            text: in_words(texts, entry)?,
            origin: (!origin.is_empty()).then(|| origin.join(" · ")),
            consent: of("consent_version").map(|version| {
                let at = of("consented_at").and_then(Timestamp::parse);
                (version.to_owned(), at)
            }),
        })
    }
}

/// Content of the page of an envelope.
struct ShownEnvelope {
    envelope: Envelope,
    signers: Vec<Signer>,
    history: Vec<HistoryRow>,
    /// Results of identity questions.
    identity: Vec<KbaResult>,
    compliance: ComplianceView,
    failure: Option<String>,
    /// Law that the rules chose for the record, as the certificate states it.
    law: Option<Value>,
}

async fn read(app: &App, visitor: &Visitor, id: &str) -> Result<ShownEnvelope, ServiceError> {
    let caller = &visitor.caller;
    let (envelope, compliance) =
        compliance::evaluate(app, &app.management, caller, id, None).await?;
    let (signers, _) = envelopes::people(app, caller, id).await?;
    let ledger = custody::ledger(app, &app.vault, caller, id).await?;
    let history = ledger.entries.iter();
    let history = history.filter_map(|entry| HistoryRow::of(visitor.texts, entry));

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
        envelope,
        signers,
        history: history.collect(),
        identity,
        compliance,
        failure: failure.map(|failure| format!("{}: {}", failure.step, failure.message)),
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
) -> Response {
    if let Some(refused) = visitor.refusal(Permission::ReadEnvelopes) {
        return refused;
    }

    let shown = match read(&app, &visitor, &id).await {
        Ok(shown) => shown,
        Err(error) => return failed(error),
    };
    // The address carries a word and not a text, so that a link of another site cannot put its own
    // words on the page.
    let note = match query.done.as_deref() {
        Some("reminded") => Some(visitor.texts.text("console-reminded")),
        Some("sent") => Some(visitor.texts.text("console-sent")),
        Some("corrected") => Some(visitor.texts.text("console-corrected")),
        Some("voided") => Some(visitor.texts.text("console-voided")),
        _ => None,
    };

    page(&visitor, &shown, note.map(|note| html! { (note) }))
}

fn page(visitor: &Visitor, shown: &ShownEnvelope, note: Option<Markup>) -> Response {
    let (texts, envelope) = (visitor.texts, &shown.envelope);
    let action = |name: &str| format!("{PATH}/envelopes/{}/{name}", envelope.id);
    let compliance = &shown.compliance;
    let is_open = envelope.status.is_out_for_signing();
    // Evidence exists from the certificate on. The bundle waits for the release, because until then
    // the live copy leaves the vault by single-use links only.
    let body = html! {
        @if let Some(note) = note { p.done role="status" { (note) } }
        p.soft {
            span.tag { (status(texts, envelope.status)) } " "
            code { (envelope.id) }
            @if let Some(external) = &envelope.external_id { " · " (external) }
        }
        @if let Some(failure) = &shown.failure {
            p.alarm role="alert" { (texts.text("console-stuck")) " " (failure) }
        }
        section.card {
            h2 { (texts.text("console-people")) }
            ul.rows {
                @for signer in &shown.signers { li { (person(visitor, shown, signer, is_open)) } }
            }
            @if is_open && visitor.may(Permission::Send) {
                div.actions {
                    form method="post" action=(action("remind")) {
                        (visitor.token())
                        button type="submit" { (texts.text("console-remind")) }
                    }
                    form method="post" action=(action("links")) {
                        (visitor.token())
                        button.quiet type="submit" { (texts.text("console-links")) }
                    }
                }
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
            h2 { (texts.with("console-checks", [("score", i64::from(compliance.score))])) }
            ul.rows {
                @for check in &compliance.checks {
                    li {
                        p {
                            span.tag.wrong[!check.satisfied] {
                                @if check.satisfied { (texts.text("yes")) } @else { (texts.text("no")) }
                            }
                            " " strong { (check.requirement) }
                        }
                        p.soft { (check.ucc_reference) ": " (check.detail) }
                    }
                }
            }
            @if let Some(law) = &shown.law { (stated_law(texts, law)) }
            @if visitor.may(Permission::ReadEvidence) {
                p { a href={ (action("decisions")) } { (texts.text("console-why")) } }
            }
            @if envelope.status.is_signed() && visitor.may(Permission::ReadEvidence) {
                form method="post" action=(action("verify")) {
                    (visitor.token())
                    button type="submit" { (texts.text("console-verify")) }
                }
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
            details.card {
                summary { (texts.text("console-embed")) }
                form method="post" action=(action("embed")) {
                    (visitor.token())
                    input type="hidden" name="widget" value=(if is_open { "sign" } else { "vault" });
                    div.field {
                        label for="embed-email" { (texts.text("sign-in-email")) }
                        select id="embed-email" name="email" {
                            @for signer in &shown.signers { option value=(signer.email) { (signer.name) " (" (signer.email) ")" } }
                        }
                    }
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
            details.card {
                summary { (texts.text("console-void")) }
                form method="post" action=(action("void")) {
                    (visitor.token())
                    div.field {
                        label for="reason" { (texts.text("console-reason")) }
                        input id="reason" name="reason" required maxlength="500";
                    }
                    button.danger type="submit" { (texts.text("console-void")) }
                }
            }
        }
    };

    visitor.live_page(Place::Envelopes, &LiveList::Envelopes, &envelope.name, body)
}

/// Renders a signer, with the form that corrects one who has not signed.
fn person(visitor: &Visitor, shown: &ShownEnvelope, signer: &Signer, is_open: bool) -> Markup {
    let texts = visitor.texts;
    let id = |name: &str| format!("{name}-{}", signer.position);

    // Not those of the person before this signer.
    let results = shown.identity.iter().filter(|result| {
        result.signer.role == signer.role && same_address(&result.signer.email, &signer.email)
    });
    html! {
        p { strong { (signer.name) } " " span.soft { (signer.role) } }
        p.soft { (signer.email) @if let Some(phone) = &signer.phone { " · " (phone) } }
        p.soft {
            (people_notes::act_in_words(texts, signer, |at| visitor.moment(at).into_string()))
        }
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
            details {
                summary { (texts.text("console-correct")) }
                form method="post" action={ (PATH) "/envelopes/" (shown.envelope.id) "/signers/" (signer.position) } {
                    (visitor.token())
                    div.field {
                        label for=(id("name")) { (texts.text("rules-name")) }
                        input id=(id("name")) name="name" value=(signer.name) required maxlength="500" autocomplete="off";
                    }
                    div.field {
                        label for=(id("email")) { (texts.text("sign-in-email")) }
                        input id=(id("email")) name="email" type="email" value=(signer.email) required maxlength="200" autocomplete="off";
                    }
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
) -> Response {
    if let Some(refused) = visitor.refusal(Permission::ReadEvidence) {
        return refused;
    }

    let read = async {
        let envelope = envelopes::get(&app, &visitor.caller, &id).await?;
        let org = &visitor.caller.org;
        // Nothing of the replay is stored, so the page shows what the named components answer today.
        let made = shadow::replay_envelope(&app, &app.management, org, &envelope.id).await?;
        Ok((envelope, made))
    };
    let (envelope, made) = match read.await {
        Ok(read) => read,
        Err(error) => return failed(error),
    };

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

    visitor.page(Place::Envelopes, &texts.text("console-why"), body)
}

fn back(id: &str, done: &str) -> Response {
    Redirect::to(&format!("{PATH}/envelopes/{id}?done={done}")).into_response()
}

/// Mails the signers another link.
pub async fn remind(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> Response {
    if let Some(refused) = form.visitor.refusal(Permission::Send) {
        return refused;
    }

    let caller = &form.visitor.caller;
    let all = RemindRequest::default();
    match reminders::remind(&app, caller, &id, all, &unrecorded()).await {
        Ok(_) => back(&id, "reminded"),
        Err(error) => failed(error),
    }
}

/// Voids the envelope.
pub async fn void(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> Response {
    if let Some(refused) = form.visitor.refusal(Permission::Send) {
        return refused;
    }

    let reason = form.value("reason").to_owned();
    // The form requires a reason of this length, so only a hand-made request ends here.
    if reason.is_empty() || reason.chars().count() > 500 {
        return back(&id, "");
    }

    let caller = form.visitor.caller.clone();
    let path = id.clone();

    // Completes even if the browser goes away: the provider is called first.
    let voided = tokio::spawn(async move {
        envelopes::void(&app, &caller, &path, Some(reason), &unrecorded()).await
    });
    match voided.await {
        Ok(Ok(_)) => back(&id, "voided"),
        Ok(Err(error)) => failed(error),
        Err(error) => failed(ServiceError::Internal(error.to_string())),
    }
}

/// Verifies the evidence now, and shows the result.
pub async fn verify(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> Response {
    let visitor = &form.visitor;
    if let Some(refused) = visitor.refusal(Permission::ReadEvidence) {
        return refused;
    }

    let verified = async {
        let shown = read(&app, visitor, &id).await?;
        // This installation trusts its own log and components. Outsiders use `holdfast-verify` with
        // anchors of their own.
        let trusted = custody::own_trust(&app)?;
        let (vault, caller) = (&app.vault, &visitor.caller);
        let report = custody::verify(&app, &app.management, vault, caller, &id, trusted).await?;
        Ok::<_, ServiceError>((shown, report))
    };
    let (shown, report) = match verified.await {
        Ok(verified) => verified,
        Err(error) => return failed(error),
    };

    let texts = visitor.texts;
    let note = if report.valid {
        html! { (texts.text("console-verified")) }
    } else {
        html! { (texts.text("console-not-verified")) " " code { (report.verdict) } }
    };

    // Without a redirect, because the verdict is stored nowhere and belongs to this answer.
    page(visitor, &shown, Some(note))
}

/// Shows fresh links of the signers, for another way than mail. The ledger names who fetched them.
pub async fn links(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> Response {
    let visitor = &form.visitor;
    if let Some(refused) = visitor.refusal(Permission::Send) {
        return refused;
    }

    // A signing link is the credential of its signer, so a stolen cookie must not reveal it.
    let page = format!("{PATH}/envelopes/{id}");
    if let Err(asks) = form.confirmed(&app, &page).await {
        return asks;
    }

    let links = match envelopes::signing_links(&app, &visitor.caller, &id).await {
        Ok(links) => links,
        Err(error) => return failed(error),
    };
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

    visitor.page(Place::Envelopes, &texts.text("console-links"), body)
}

/// Corrects a signer who has not signed.
pub async fn correct(
    State(app): State<App>,
    Path((id, position)): Path<(String, i64)>,
    form: ConsoleForm,
) -> Response {
    let caller = &form.visitor.caller;
    if let Some(refused) = form.visitor.refusal(Permission::Send) {
        return refused;
    }

    // A corrected address gets a working link, so a stolen cookie could have another person sign.
    let page = format!("{PATH}/envelopes/{id}");
    if let Err(asks) = form.confirmed(&app, &page).await {
        return asks;
    }

    let change = json!({ "name": form.value("name"), "email": form.value("email") });
    let change = match valid::<CorrectSigner>(change) {
        Ok(change) => change,
        Err(error) => return error.into_response(),
    };
    let corrected = async {
        // The form names a position, and the service corrects the signer of a role.
        let (signers, _) = envelopes::people(&app, caller, &id).await?;
        let signer = signers.iter().find(|signer| signer.position == position);
        let role = &signer.ok_or(ServiceError::NotFound("Signer"))?.role;
        corrections::correct(&app, caller, &id, role, change, &unrecorded()).await
    };
    match corrected.await {
        Ok(_) => back(&id, "corrected"),
        Err(error) => failed(error),
    }
}

/// Sends a file of the evidence.
pub async fn file(
    State(app): State<App>,
    visitor: Visitor,
    Path((id, file)): Path<(String, String)>,
) -> Response {
    // A bundle has the bytes of the authoritative copy, so reading envelopes is not enough for it.
    let needs = match file.as_str() {
        "bundle.zip" => Permission::ReadEvidence,
        _ => Permission::ReadEnvelopes,
    };
    if let Some(refused) = visitor.refusal(needs) {
        return refused;
    }

    send_file(&app, &visitor, &id, &file)
        .await
        .unwrap_or_else(IntoResponse::into_response)
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
        "bundle.zip" => {
            let zip = custody::bundle(app, &app.vault, caller, id).await?;
            FileReply::<Zip>::named(&evidence_copy::file_name(id), zip).into_response()
        }
        _ => return Err(ServiceError::NotFound("File").into()),
    })
}

/// Shows a widget as a page of the organization embeds it, with the code for that page.
pub async fn embed(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> Response {
    let visitor = &form.visitor;
    if let Some(refused) = visitor.refusal(Permission::Send) {
        return refused;
    }

    // The token opens the form of a signer, so a stolen cookie must not issue one.
    let page = format!("{PATH}/envelopes/{id}");
    if let Err(asks) = form.confirmed(&app, &page).await {
        return asks;
    }

    let request = json!({
        "envelope_id": id, "user_email": form.value("email"), "widget_type": form.value("widget"),
    });
    let request = match valid::<RequestToken>(request) {
        Ok(request) => request,
        Err(error) => return error.into_response(),
    };

    let (caller, unrecorded) = (&visitor.caller, unrecorded());
    let issued = match embed::issue(&app, &app.access, caller, request, &unrecorded).await {
        Ok(issued) => issued,
        Err(error) => return failed(error),
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
    visitor.page_with_frames(Place::Envelopes, &texts.text("console-embed"), body, frames)
}
