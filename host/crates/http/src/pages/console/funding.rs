//! Funding on the page of an envelope: the newest check with its findings, required attachments, and the package; and
//! the marks of findings on the pages of a document.

use std::collections::BTreeSet;

use axum::extract::{Path, Request, State};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::PATH;
use super::changes::request;
use super::envelope::{again, back};
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::navigation::PageResult;
use super::signed_in::{ConsoleForm, Visitor};
use super::sure::SensitiveAct;
use super::users::needs_approval;
use crate::error::HttpError;
use crate::middleware::extract::{MultipartForm, valid};
use holdfast_adapters::texts::Texts;
use holdfast_components::rules::placement::PageFacts;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::facts::FactPlace;
use holdfast_domain::funding::{FindingSeverity, FundingOutcome, FundingStage, StipulationState};
use holdfast_domain::organization::Permission;
use holdfast_platform::ServiceError;
use holdfast_platform::components::changes::ProposedChange;
use holdfast_service::envelopes::creation::{self, CreateEnvelope};
use holdfast_service::envelopes::uploads;
use holdfast_service::funding::stipulations::{
    self, RequiredStipulation, RequiredStipulations, StipulationView, WaiverForm,
};
use holdfast_service::funding::{self, CheckRequest, FindingView, FoundFact, FundingCheckView};
use holdfast_service::{App, customers, envelopes};

/// Longest reason of a waiver, which may become that of a change request.
const REASON: u32 = 500;
/// Pages that are shown with marks.
const PAGES: usize = 5;
/// Width of a page with marks, in units of its drawing.
const WIDTH: f64 = 1000.0;

/// Funding of an envelope, as its page shows it.
pub struct ShownFunding {
    check: Option<FundingCheckView>,
    required: Vec<StipulationView>,
}

impl ShownFunding {
    pub async fn of(
        app: &App,
        visitor: &Visitor,
        envelope: &Envelope,
    ) -> Result<Self, ServiceError> {
        // Users need the page most when something fails, and it works without the check.
        let check = funding::newest(app, envelope).await.unwrap_or_else(|error| {
            let id = envelope.id.as_str();
            tracing::warn!(%error, envelope = id, "a funding check could not be read for the console");
            None
        });
        let required = stipulations::list(app, &visitor.caller, envelope.id.as_str()).await?;
        Ok(Self {
            check,
            required: required.stipulations,
        })
    }
}

fn address(id: impl std::fmt::Display, rest: &str) -> String {
    format!("{PATH}/envelopes/{id}/{rest}")
}

/// Returns the address of the page of an envelope.
fn page_of(id: &str) -> String {
    format!("{PATH}/envelopes/{id}")
}

fn attachment_address(id: impl std::fmt::Display, kind: &str, act: &str) -> String {
    address(id, &format!("stipulations/{kind}/{act}"))
}

/// Renders the cards about funding; nothing for an organization that uses none of it.
pub fn cards(
    visitor: &Visitor,
    envelope: &Envelope,
    shown: &ShownFunding,
    pages: &[PageFacts],
    refused: Option<&RefusedForm>,
) -> Markup {
    let is_checked = visitor.organization.settings.funding.checks();
    if !is_checked && shown.check.is_none() && shown.required.is_empty() {
        return html! {};
    }

    let texts = visitor.texts;
    let has_package = envelope.record.certificate.is_some() && shown.check.is_some();
    html! {
        section.card id="funding" {
            h2 { (texts.text("funding-check")) }
            @match &shown.check {
                Some(check) => {
                    (result(visitor, check))
                    (findings(texts, &check.findings))
                    (marked_pages(texts, envelope, &check.findings, pages))
                }
                None => p.soft { (texts.text("funding-not-checked")) },
            }
            @if visitor.may(Permission::Send) {
                (visitor.button(&address(&envelope.id, "funding-check"), Some("quiet"), "funding-check-now"))
            }
            @if has_package && visitor.may(Permission::ReadEvidence) {
                p { a href=(address(&envelope.id, "files/funding-package.zip")) download { (texts.text("funding-package")) } }
            }
        }
        (attachments(visitor, envelope, &shown.required, refused))
    }
}

/// Renders the decision of a check with who made it.
fn result(visitor: &Visitor, check: &FundingCheckView) -> Markup {
    let texts = visitor.texts;
    let decision = match check.decision {
        FundingOutcome::Ready => "funding-ready",
        FundingOutcome::Incomplete => "funding-incomplete",
        FundingOutcome::Refused => "funding-refused",
    };
    let stage = match check.stage {
        FundingStage::BeforeSending => "funding-before-sending",
        FundingStage::AfterSigning => "funding-after-signing",
        FundingStage::Transfer => "funding-at-transfer",
    };
    html! {
        p {
            span.tag.wrong[check.decision != FundingOutcome::Ready] { (texts.text(decision)) }
            " " (texts.text(stage)) " · " (visitor.moment(check.checked_at))
        }
        p.soft {
            (check.rules_component.name) " " (check.rules_component.version)
            @if let Some(pack) = &check.pack {
                " · " (texts.with("funding-by-pack", [("version", pack.version)])) " " code { (pack.pack_id) }
            }
        }
    }
}

/// Renders findings, the heaviest first, each with its sentence and the places of its facts.
pub fn findings(texts: Texts, found: &[FindingView]) -> Markup {
    let mut found: Vec<&FindingView> = found.iter().collect();
    found.sort_by_key(|finding| match finding.severity {
        FindingSeverity::Stop => 0,
        FindingSeverity::Warn => 1,
        FindingSeverity::Note => 2,
    });
    html! {
        ul.rows { @for finding in found { li { (finding_row(texts, finding)) } } }
    }
}

fn finding_row(texts: Texts, finding: &FindingView) -> Markup {
    let severity = match finding.severity {
        FindingSeverity::Stop => "funding-stop",
        FindingSeverity::Warn => "funding-warn",
        FindingSeverity::Note => "funding-note",
    };
    // Sentences are those of the rules, which speak English.
    html! {
        p {
            span.tag.wrong[finding.severity == FindingSeverity::Stop] { (texts.text(severity)) } " "
            span lang="en" dir="ltr" { (finding.sentence) }
        }
        p.soft lang="en" dir="ltr" { code { (finding.rule) } " · " (finding.source) }
        p.soft {
            (texts.text("funding-expected")) " " span dir="auto" { (finding.expected) } " · "
            (texts.text("funding-actual")) " " span dir="auto" { (finding.actual) }
        }
        @for fact in &finding.facts { p.soft { (stands(texts, fact)) } }
    }
}

/// Renders a fact of a finding, with the words and where they stand.
fn stands(texts: Texts, fact: &FoundFact) -> Markup {
    html! {
        code { (fact.name) }
        @if let Some(words) = &fact.words { " · " span dir="auto" { (words) } }
        @if let Some(field) = &fact.field { " · " (field) }
        @if let Some(place) = &fact.place { " · " (texts.with("envelopes-fact-page", [("page", place.page)])) }
    }
}

/// Renders the pages on which findings that stop have their facts, with a mark on each of these.
pub fn marked_pages(
    texts: Texts,
    envelope: &Envelope,
    found: &[FindingView],
    pages: &[PageFacts],
) -> Markup {
    let stops = found
        .iter()
        .filter(|finding| finding.severity == FindingSeverity::Stop);
    let facts = stops.flat_map(|finding| &finding.facts);
    let places: Vec<&FactPlace> = facts.filter_map(|fact| fact.place.as_ref()).collect();
    let numbers: BTreeSet<u32> = places.iter().map(|place| place.page).collect();
    let size_of = |number: u32| {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        pages.get(index).map(|page| (number, page))
    };

    html! {
        @for (number, page) in numbers.into_iter().filter_map(size_of).take(PAGES) {
            figure.page-drawing {
                (marked_page(texts, envelope, (number, page), &places))
                figcaption { (texts.with("funding-marked", [("page", number)])) }
            }
        }
    }
}

fn marked_page(
    texts: Texts,
    envelope: &Envelope,
    (number, page): (u32, &PageFacts),
    places: &[&FactPlace],
) -> Markup {
    let height = WIDTH * page.height / page.width.max(1.0);
    // Another document of the draft makes another address, because browsers keep pictures.
    let version = envelope.updated_at.as_millis();
    let picture = address(&envelope.id, &format!("pages/{number}.png?v={version}"));
    let here = places.iter().filter(|place| place.page == number);
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height:.0}")) role="img"
            aria-label=(texts.with("funding-marked", [("page", number)])) {
            image href=(picture) width=(WIDTH) height=(format!("{height:.0}")) preserveAspectRatio="none" {}
            @for place in here {
                rect.mark x=(across(place.x, WIDTH)) y=(across(place.y, height))
                    width=(across(place.w, WIDTH)) height=(across(place.h, height)) fill="none" stroke="#c0102a" stroke-width="6" {}
            }
        }
    }
}

/// Returns a fraction of a length of the drawing.
fn across(fraction: f64, length: f64) -> String {
    format!("{:.1}", fraction * length)
}

/// Returns the findings that refused a sending; none for another error.
pub fn of_refusal(error: &HttpError) -> Vec<FindingView> {
    let found = error.details().cloned();
    found
        .and_then(|found| serde_json::from_value(found).ok())
        .unwrap_or_default()
}

/// Renders the required attachments with their states, and the forms that settle the open ones.
fn attachments(
    visitor: &Visitor,
    envelope: &Envelope,
    required: &[StipulationView],
    refused: Option<&RefusedForm>,
) -> Markup {
    let texts = visitor.texts;
    let action = address(&envelope.id, "stipulations");
    let form = FormView::new(texts, &action, refused);
    let lines: Vec<String> = required.iter().map(line_of).collect();
    html! {
        section.card id="stipulations" {
            h2 { (texts.text("funding-attachments")) }
            @if required.is_empty() { p.soft { (texts.text("funding-attachments-none")) } }
            ul.rows {
                @for one in required { li { (attachment(visitor, envelope, one, refused)) } }
            }
            @if visitor.may(Permission::Send) {
                details open[form.is_refused()] {
                    summary { (texts.text("funding-attachments-change")) }
                    form method="post" action=(action) {
                        (visitor.token())
                        (form.summary())
                        (form.lines("stipulations", &texts.text("funding-attachments-lines"), 4, &lines.join("\n")))
                        button type="submit" { (texts.text("settings-save")) }
                    }
                }
            }
        }
    }
}

/// Returns the line of an attachment in the form for all of them.
fn line_of(one: &StipulationView) -> String {
    match &one.field {
        Some(field) => format!("{} = {field}", one.kind),
        None => one.kind.clone(),
    }
}

fn attachment(
    visitor: &Visitor,
    envelope: &Envelope,
    one: &StipulationView,
    refused: Option<&RefusedForm>,
) -> Markup {
    let texts = visitor.texts;
    let state = match one.state {
        StipulationState::Open => "funding-attachment-open",
        StipulationState::Received => "funding-attachment-received",
        StipulationState::Waived => "funding-attachment-waived",
    };
    let is_open = one.state == StipulationState::Open;
    html! {
        p {
            span.tag.wrong[is_open] { (texts.text(state)) } " " strong { (one.kind) }
            @if let Some(field) = &one.field { " · " (field) }
        }
        @if let Some(name) = &one.document_name {
            p.soft {
                @match &one.envelope_id {
                    Some(source) => a href={ (PATH) "/envelopes/" (source) } { (name) },
                    None => (name),
                }
            }
        }
        @if let Some(reason) = &one.reason { p { (reason) } }
        @if let (Some(by), Some(at)) = (&one.settled_by, one.settled_at) {
            p.soft { (by) " · " (visitor.moment(at)) }
        }
        @if is_open && visitor.may(Permission::Send) { (settling(visitor, envelope, &one.kind, refused)) }
    }
}

/// Renders the forms for the file of an attachment, and for its waiver.
fn settling(
    visitor: &Visitor,
    envelope: &Envelope,
    kind: &str,
    refused: Option<&RefusedForm>,
) -> Markup {
    let texts = visitor.texts;
    let of = |act: &str| attachment_address(&envelope.id, kind, act);
    let (send, waive) = (of("file"), of("waive"));

    let file = FormView::new(texts, &send, refused).with_ids(format!("file-{kind}"));
    let waiver = FormView::new(texts, &waive, refused).with_ids(format!("waive-{kind}"));

    html! {
        details open[file.is_refused()] {
            summary { (texts.text("funding-upload")) }
            form method="post" action=(send) enctype="multipart/form-data" {
                (visitor.token())
                (file.summary())
                (file.field("file", &html! { (texts.text("funding-upload-file")) }, html! {
                    input id=(file.id("file")) name="file" type="file" required
                        accept=".pdf,application/pdf,image/png,image/jpeg"
                        aria-invalid=[file.invalid("file")] aria-describedby=[file.described("file")];
                }))
                button type="submit" { (texts.text("funding-upload")) }
            }
        }
        details open[waiver.is_refused()] {
            summary { (texts.text("funding-waive")) }
            form method="post" action=(waive) {
                (visitor.token())
                (waiver.summary())
                (waiver.text(&TextField {
                    limit: REASON,
                    ..TextField::required("reason", &texts.text("console-reason"))
                }))
                button.danger type="submit" { (texts.text("funding-waive")) }
            }
        }
    }
}

/// Checks an envelope now.
pub async fn check(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let request = CheckRequest::default();
    funding::check(&app, &form.visitor.caller, &id, request, &unrecorded()).await?;
    Ok(back(&id, "checked"))
}

/// Replaces the list of required attachments.
pub async fn require(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;
    // An attachment that is left out is no longer required, as after a waiver.
    form.confirmed(&app, &page_of(&id)).await?;

    let set = async {
        let required = valid::<RequiredStipulations>(required_of(form.value("stipulations")))?;
        let caller = &form.visitor.caller;
        Ok::<_, HttpError>(stipulations::set(&app, caller, &id, required, &unrecorded()).await?)
    };
    match set.await {
        Ok(_) => Ok(back(&id, "required")),
        Err(error) => again(&app, &form.visitor, &id, &form.refused(error)?).await,
    }
}

/// Returns the list of a form, with a line for each attachment: its kind, and after a sign the field of a signer.
fn required_of(text: &str) -> Value {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let required = lines.map(|line| match line.split_once('=') {
        Some((kind, field)) => json!({ "kind": kind.trim(), "field": field.trim() }),
        None => json!({ "kind": line }),
    });
    json!({ "stipulations": required.collect::<Vec<_>>() })
}

/// Waives a required attachment.
pub async fn waive(
    State(app): State<App>,
    Path((id, kind)): Path<(String, String)>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;
    // A waiver takes a condition of the funding away, so a stolen cookie is not enough.
    form.confirmed(&app, &page_of(&id)).await?;

    let caller = &form.visitor.caller;
    let envelope = envelopes::get(&app, caller, &id).await?;
    // Before the question, which would be answered for nothing.
    let waiver = match valid::<WaiverForm>(json!({ "reason": form.value("reason") })) {
        Ok(waiver) => waiver,
        Err(error) => return again(&app, &form.visitor, &id, &form.refused(error)?).await,
    };
    let texts = form.visitor.texts;
    form.meant(&SensitiveAct {
        label: texts.text("funding-waive"),
        objects: vec![format!("{kind}: {}", envelope.name)],
        consequence: texts.text("sure-funding-waive"),
        is_typed: false,
        back: page_of(&id),
    })?;

    let of = (id.as_str(), kind.as_str());
    let waived = stipulations::waive(&app, caller, of, waiver, &unrecorded()).await;
    // Others rely on the attachment, so the policy may require that they agree.
    let done = if needs_approval(&waived) {
        let change = ProposedChange::WaiveStipulation {
            envelope_id: Some(id.clone()),
            template_id: None,
            kind: kind.clone(),
        };
        request(app.clone(), &form, change, &texts.text("funding-waive")).await
    } else {
        waived.map(|_| back(&id, "waived"))
    };

    match done {
        Ok(answer) => Ok(answer),
        Err(error) => again(&app, &form.visitor, &id, &form.refused(error)?).await,
    }
}

/// Parts of the form for an attachment.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "names the parts of the form")]
struct AttachmentFields {
    token: String,
    file: String,
}

/// Takes the file of a required attachment.
pub async fn receive(
    State(app): State<App>,
    Path((id, kind)): Path<(String, String)>,
    visitor: Visitor,
    request: Request,
) -> PageResult {
    // Before the body is read, so that a stranger uploads nothing.
    visitor.require(Permission::Send)?;

    let mut form = visitor.upload::<AttachmentFields>(&app, request).await?;
    let entries = form.texts.clone();
    match received(&app, &visitor, (&id, &kind), &mut form).await {
        Ok(()) => Ok(back(&id, "received")),
        Err(error) => {
            let action = attachment_address(&id, &kind, "file");
            let members = [("file".to_owned(), "file".to_owned())];
            let refused = RefusedForm::of(&action, &entries, error, &members)?;
            again(&app, &visitor, &id, &refused).await
        }
    }
}

/// Stores a file as the upload of another envelope of the same customer, which satisfies the stipulation.
async fn received(
    app: &App,
    visitor: &Visitor,
    (id, kind): (&str, &str),
    form: &mut MultipartForm<AttachmentFields>,
) -> Result<(), HttpError> {
    let caller = &visitor.caller;
    let file = form.file()?;
    // Refused before anything is stored.
    file.file_type()?;
    let envelope = envelopes::get(app, caller, id).await?;
    let present = stipulations::list(app, caller, id).await?.stipulations;
    if !present.iter().any(|one| one.kind == kind) {
        return Err(ServiceError::NotFound("Stipulation").into());
    }

    let customer = customers::get(app, caller, envelope.customer.as_str()).await?;
    let email = customer.email.ok_or_else(|| {
        let why = "The customer of this envelope has no e-mail address; add it first";
        ServiceError::Semantic(why.into())
    })?;
    let name: String = format!("{kind}: {}", envelope.name)
        .chars()
        .take(500)
        .collect();
    let paper = valid::<CreateEnvelope>(json!({
        "envelope_kind": "paper", "envelope_name": name,
        "customer_email": email, "customer_name": customer.customer.name,
    }))?;
    let paper = creation::create(app, &app.pages, caller, paper, &unrecorded()).await?;

    let paper = paper.envelope.id.as_str();
    let stored = async {
        uploads::upload(app, caller, paper, file, None, &unrecorded()).await?;
        let required = with_file(present, kind, paper);
        stipulations::set(app, caller, id, required, &unrecorded()).await
    };
    if let Err(error) = stored.await {
        let why = "The attachment was refused".to_owned();
        envelopes::void_unsent(app, caller, paper, why).await?;
        return Err(error.into());
    }
    Ok(())
}

/// Returns the list of attachments, with the envelope that has the file of one of them.
fn with_file(present: Vec<StipulationView>, kind: &str, source: &str) -> RequiredStipulations {
    let required = present.into_iter().map(|one| RequiredStipulation {
        envelope_id: (one.kind == kind).then(|| source.to_owned()),
        kind: one.kind,
        field: one.field,
    });
    RequiredStipulations {
        stipulations: required.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: FindingSeverity, sentence: &str, place: Option<FactPlace>) -> FindingView {
        FindingView {
            rule: "box.total_of_payments".into(),
            severity,
            facts: vec![FoundFact {
                name: "total_of_payments".into(),
                status: None,
                value: Some("5250.00".into()),
                words: Some("$5,250.00".into()),
                place,
                field: None,
                role: None,
            }],
            expected: "5520.00".into(),
            actual: "5250.00".into(),
            sentence: sentence.into(),
            source: "12 CFR 1026.18(h)".into(),
        }
    }

    #[test]
    fn what_stops_comes_first_with_its_place() {
        let place = FactPlace::new(2, [0.5, 0.25, 0.1, 0.02]);
        let found = [
            finding(FindingSeverity::Note, "A note.", None),
            finding(FindingSeverity::Stop, "The sum is wrong.", Some(place)),
        ];
        let page = findings(Texts::default(), &found).into_string();
        let (stop, note) = (page.find("The sum is wrong."), page.find("A note."));
        assert!(stop < note && stop.is_some(), "{page}");
        for part in ["5520.00", "$5,250.00", "page 2", "12 CFR 1026.18(h)"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn findings_of_a_refusal_are_read_and_other_details_are_not() {
        let found = finding(FindingSeverity::Stop, "The sum is wrong.", None);
        let error = || HttpError::bad_request("Refused");
        let refused = error().with_details(json!([found]));
        assert_eq!(of_refusal(&refused), [found]);
        let issues = json!([{ "path": ["name"], "message": "too long" }]);
        assert!(of_refusal(&error().with_details(issues)).is_empty());
        assert!(of_refusal(&error()).is_empty());
    }

    #[test]
    fn a_line_names_an_attachment_and_perhaps_the_field_of_a_signer() {
        let required = required_of("insurance\n\n proof_of_income = Pay stub \n");
        let expected = json!({ "stipulations": [
            { "kind": "insurance" }, { "kind": "proof_of_income", "field": "Pay stub" },
        ] });
        assert_eq!(required, expected);
    }
}
