//! Destruction of records: requests, and the steps of people towards it.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use serde_json::json;

use super::PATH;
use super::changes::officer;
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::navigation::{PageResult, Place};
use super::retention::{AfterQuery, PAGE, cut};
use super::signed_in::{ConsoleForm, Visitor};
use super::sure::SensitiveAct;
use crate::error::HttpError;
use crate::middleware::extract::valid;
use crate::reply::{FileReply, PdfOrJson};
use holdfast_domain::destruction::{
    DestructionCause, DestructionCertificate, DestructionRecordState, DestructionState,
};
use holdfast_domain::envelope::Envelope;
use holdfast_domain::id::{DestructionId, EnvelopeId};
use holdfast_domain::organization::Permission;
use holdfast_platform::ServiceError;
use holdfast_service::App;
use holdfast_service::envelopes;
use holdfast_service::retention::destruction::{
    self, DestructionAct, DestructionRecordView, DestructionView, NewDestruction, certificate,
};

/// Records of a request that a page names.
const SHOWN: usize = 50;

fn address() -> String {
    format!("{PATH}/destructions")
}

/// Lists requests, newest first, with the form for another one.
pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<AfterQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEvidence)?;

    page(&app, &visitor, query.after.as_deref(), None).await
}

async fn page(
    app: &App,
    visitor: &Visitor,
    after: Option<&str>,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let after = after.and_then(DestructionId::parse);
    let mut found = destruction::list(app, &visitor.caller, after.as_ref(), PAGE + 1).await?;
    let has_more = cut(&mut found);

    let texts = visitor.texts;
    let body = html! {
        p { (texts.text("destruction-hint")) }
        @if found.is_empty() { p { (texts.text("destruction-none")) } }
        ul.rows { @for request in &found { li { (request_of(visitor, request)) } } }
        @if let Some(last) = found.last().filter(|_| has_more) {
            p { a href={ (address()) "?after=" (last.destruction_id) } { (texts.text("console-earlier")) } }
        }
        @if visitor.may(Permission::Hold) { (request_form(visitor, refused)) }
    };
    let title = texts.text("console-destruction");
    Ok(visitor.form_page(Place::Destruction, None, &title, body, refused))
}

fn request_of(visitor: &Visitor, request: &DestructionView) -> Markup {
    let texts = visitor.texts;
    let (state, is_open) = match request.state {
        DestructionState::Requested => ("destruction-requested", true),
        DestructionState::Authorized => ("destruction-authorized", true),
        DestructionState::CarriedOut => ("destruction-carried-out", false),
        DestructionState::Withdrawn => ("destruction-withdrawn", false),
    };

    let steps = [
        (
            "destruction-requested",
            Some(&request.requested_by),
            Some(request.requested_at),
        ),
        (
            "destruction-authorized",
            request.authorized_by.as_ref(),
            request.authorized_at,
        ),
        (
            "destruction-carried-out",
            request.carried_out_by.as_ref(),
            request.carried_out_at,
        ),
        (
            "destruction-withdrawn",
            request.withdrawn_by.as_ref(),
            request.withdrawn_at,
        ),
    ];

    let more = request.records.len().saturating_sub(SHOWN);
    html! {
        p {
            strong { (request.reason) } " "
            span.tag.wrong[is_open] { (texts.text(state)) }
        }
        @for (label, by, at) in steps {
            @if let (Some(by), Some(at)) = (by, at) {
                p.soft { (texts.text(label)) " · " (by) " · " (visitor.moment(at)) }
            }
        }
        @if let Some(recipient) = &request.certificate_recipient {
            p.soft { (texts.text("destruction-recipient")) " " (recipient) }
        }
        ul {
            @for record in request.records.iter().take(SHOWN) {
                li { (record_of(visitor, request, record)) }
            }
        }
        @if more > 0 { p.soft { (texts.with("destruction-more", [("count", more)])) } }
        @if visitor.may(Permission::Hold) { (steps_of(visitor, request)) }
    }
}

fn record_of(
    visitor: &Visitor,
    request: &DestructionView,
    record: &DestructionRecordView,
) -> Markup {
    let texts = visitor.texts;
    let state = match record.state {
        DestructionRecordState::Waiting => "destruction-waiting",
        DestructionRecordState::Destroying => "destruction-destroying",
        DestructionRecordState::Destroyed => "destruction-destroyed",
        DestructionRecordState::Refused => "destruction-refused",
    };
    let is_certified = matches!(
        record.state,
        DestructionRecordState::Destroying | DestructionRecordState::Destroyed
    );
    let lacks_consent = record.consent_required && record.consented_at.is_none() && !is_certified;
    html! {
        a href={ (PATH) "/envelopes/" (record.envelope_id) } { code { (record.envelope_id) } }
        " " span.tag { (texts.text(state)) }
        @if lacks_consent { " " span.tag.wrong { (texts.text("destruction-without-consent")) } }
        @if let Some(refusal) = &record.refusal {
            " " span.soft lang="en" dir="ltr" { (refusal.message) }
        }
        @if is_certified {
            " " (certificate_link(visitor, &request.destruction_id, &record.envelope_id))
        }
    }
}

fn certificate_link(visitor: &Visitor, id: &DestructionId, envelope: &EnvelopeId) -> Markup {
    let own = format!("{}/{id}/certificate/{envelope}", address());
    html! {
        a href={ (own) ".pdf" } { (visitor.texts.text("destruction-certificate")) }
        " (" a href={ (own) ".json" } { "JSON" } ")"
    }
}

/// Renders what a person may do with a request.
fn steps_of(visitor: &Visitor, request: &DestructionView) -> Markup {
    let own = format!("{}/{}", address(), request.destruction_id);
    let step = |name: &str| format!("{own}/{name}");
    html! {
        @match request.state {
            DestructionState::Requested => {
                (visitor.button(&step("authorize"), Some("danger"), "destruction-authorize"))
                (visitor.button(&step("withdraw"), Some("quiet"), "destruction-withdraw"))
            }
            DestructionState::Authorized => {
                (visitor.button(&step("carry-out"), Some("danger"), "destruction-carry-out"))
                (visitor.button(&step("take-back"), Some("quiet"), "destruction-take-back"))
                (visitor.button(&step("withdraw"), Some("quiet"), "destruction-withdraw"))
            }
            DestructionState::CarriedOut | DestructionState::Withdrawn => {}
        }
    }
}

fn request_form(visitor: &Visitor, refused: Option<&RefusedForm>) -> Markup {
    let (texts, action) = (visitor.texts, address());
    let form = FormView::new(texts, &action, refused);
    html! {
        section.card {
            h2 { (texts.text("destruction-new")) }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                (form.tick("due", &texts.text("destruction-due"), false))
                (form.lines("envelope_ids", &texts.text("destruction-ids"), 4, ""))
                (form.text(&TextField { limit: 200, ..TextField::new("certificate_recipient", &texts.text("destruction-recipient")) }))
                (form.lines("reason", &texts.text("console-reason"), 4, ""))
                button type="submit" { (texts.text("destruction-request")) }
            }
        }
    }
}

/// Requests a destruction.
pub async fn request(State(app): State<App>, form: ConsoleForm) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Hold)?;

    let ids = form.value("envelope_ids").split_whitespace();
    let ids: Vec<&str> = ids.collect();
    let recipient = Some(form.value("certificate_recipient")).filter(|name| !name.is_empty());
    let new = json!({
        "due": form.value("due") == "yes", "envelope_ids": (!ids.is_empty()).then_some(ids),
        "reason": form.value("reason"), "certificate_recipient": recipient,
    });
    let refused = match valid::<NewDestruction>(new) {
        Ok(new) => match destruction::request(&app, &visitor.caller, new, &unrecorded()).await {
            Ok(_) => return Ok(Redirect::to(&address()).into_response()),
            Err(error) => form.refused_id(error, "envelope_ids", "destruction-unknown")?,
        },
        Err(error) => form.refused(error)?,
    };
    page(&app, visitor, None, Some(&refused)).await
}

/// Takes a step of a request. The steps of the second and the third act ask first: they lead to an act
/// that cannot be undone.
pub async fn step(
    State(app): State<App>,
    Path((id, step)): Path<(String, String)>,
    form: ConsoleForm,
) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Hold)?;

    let request = destruction::get(&app, &visitor.caller, &id).await?;
    let (act, texts) = match step.as_str() {
        "withdraw" => (DestructionAct::Withdraw, None),
        "take-back" => (DestructionAct::TakeBack, None),
        "authorize" => {
            let texts = ("destruction-authorize", "sure-destruction-authorize");
            (DestructionAct::Authorize, Some(texts))
        }
        "carry-out" => {
            let texts = ("destruction-carry-out", "sure-destruction-carry-out");
            (DestructionAct::CarryOut, Some(texts))
        }
        _ => return Err(ServiceError::NotFound("Page").into()),
    };
    if let Some((label, consequence)) = texts {
        form.meant(&SensitiveAct {
            label: visitor.texts.text(label),
            objects: names(&app, visitor, &request).await?,
            consequence: visitor.texts.text(consequence),
            is_typed: false,
            back: address(),
        })?;
    }

    match destruction::decide(&app, &officer(visitor), &id, act).await {
        Ok(_) => Ok(Redirect::to(&address()).into_response()),
        Err(error) => {
            let refused = form.refused(error)?;
            page(&app, visitor, None, Some(&refused)).await
        }
    }
}

/// Returns the names of the records that an act is about, for the page that asks.
async fn names(
    app: &App,
    visitor: &Visitor,
    request: &DestructionView,
) -> Result<Vec<String>, ServiceError> {
    let mut names = Vec::new();
    for record in request.records.iter().take(SHOWN) {
        let id = record.envelope_id.as_str();
        let envelope = envelopes::get_with_destroyed(app, &visitor.caller, id).await?;
        names.push(format!("{} ({id})", envelope.name));
    }

    let more = request.records.len().saturating_sub(SHOWN);
    if more > 0 {
        let count = [("count", more)];
        names.push(visitor.texts.with("destruction-more", count));
    }
    Ok(names)
}

/// Sends a certificate: `env_….pdf` or `env_….json`.
pub async fn certificate(
    State(app): State<App>,
    visitor: Visitor,
    Path((id, file)): Path<(String, String)>,
) -> PageResult {
    visitor.require(Permission::ReadEvidence)?;

    let unknown = || ServiceError::NotFound("Page");
    let (envelope, kind) = file.split_once('.').ok_or_else(unknown)?;
    let envelope = EnvelopeId::parse(envelope).ok_or_else(unknown)?;
    let caller = &visitor.caller;
    let (kind, bytes) = match kind {
        "pdf" => {
            let pdf = certificate::pdf(&app, &app.vault, caller, &id, &envelope).await?;
            ("application/pdf", pdf.to_vec())
        }
        "json" => {
            let issued = certificate::of_record(&app, &app.vault, caller, &id, &envelope).await?;
            let json = serde_json::to_vec_pretty(&issued);
            let json = json.map_err(|error| HttpError::internal(error.to_string()))?;
            ("application/json", json)
        }
        _ => return Err(unknown().into()),
    };
    let name = format!("destruction-{file}");
    let reply = FileReply::<PdfOrJson>::of_type(&app, kind, &name, &bytes).await?;
    Ok(reply.into_response())
}

/// Renders the page of an envelope with a destroyed record.
pub async fn envelope_page(
    app: &App,
    visitor: &Visitor,
    envelope: &Envelope,
) -> Result<Response, ServiceError> {
    let destroyed = certificate::of_envelope(app, &envelope.org, &envelope.id).await?;
    let read = destroyed.map(|destroyed| serde_json::from_str(&destroyed.certificate));
    let certified: Option<DestructionCertificate> = read
        .transpose()
        .map_err(|error| ServiceError::Internal(error.to_string()))?;

    let texts = visitor.texts;
    let body = html! {
        p.alarm role="status" { (texts.text("destruction-gone")) }
        @if let Some(certified) = certified {
            section.card {
                h2 { (texts.text("console-destruction")) }
                p { (visitor.moment(certified.destroyed_at)) }
                @match certified.cause {
                    DestructionCause::Destruction(id) => {
                        p { (certificate_link(visitor, &id, &envelope.id)) }
                        p { a href=(address()) { code { (id) } } }
                    }
                    DestructionCause::Erasure(id) => { p { code { (id) } } }
                }
                @if let Some(hash) = certified.record.document_hash {
                    p.soft { code { (hash) } " (SHA-256)" }
                }
            }
        }
    };
    Ok(visitor.page(Place::Envelopes, envelope.id.as_str(), body))
}
