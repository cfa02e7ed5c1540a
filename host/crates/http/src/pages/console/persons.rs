//! Data held about a customer: its export, and its erasure by two people.

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect};
use maud::{Markup, html};

use super::PATH;
use super::changes::officer;
use super::forms::RefusedForm;
use super::navigation::{PageResult, Place};
use super::signed_in::{ConsoleForm, Visitor};
use super::sure::SensitiveAct;
use crate::reply::{FileReply, Zip};
use holdfast_adapters::texts::Texts;
use holdfast_domain::erasure::{ErasureRefusal, ErasureState, PersonPart};
use holdfast_domain::organization::Permission;
use holdfast_platform::ServiceError;
use holdfast_service::App;
use holdfast_service::persons::erasure::{self, ErasureStep, ErasureView, PartView, RefusedPart};
use holdfast_service::persons::export;

/// Returns the address of the page about the erasure of a customer.
pub fn address(customer: &str) -> String {
    format!("{PATH}/customers/{customer}/erasure")
}

/// Renders the way to both, for the page of a customer.
pub fn card(visitor: &Visitor, customer: &str) -> Markup {
    let texts = visitor.texts;
    html! {
        @if visitor.may(Permission::Hold) {
            section.card {
                h2 { (texts.text("person-title")) }
                p { (texts.text("person-export-hint")) }
                (visitor.button(&format!("{PATH}/customers/{customer}/export"), Some("quiet"), "person-export"))
                p { a href=(address(customer)) { (texts.text("person-erase")) } }
            }
        }
    }
}

/// Downloads everything that is held about a customer.
pub async fn export(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Hold)?;

    let zip = export::package(&app, &visitor.caller, &id).await?;
    Ok(FileReply::<Zip>::named(&export::file_name(&id), zip).into_response())
}

/// Shows what an erasure does or did, and the next step.
pub async fn show(State(app): State<App>, visitor: Visitor, Path(id): Path<String>) -> PageResult {
    visitor.require(Permission::Hold)?;

    page(&app, &visitor, &id, None).await
}

async fn page(app: &App, visitor: &Visitor, id: &str, refused: Option<&RefusedForm>) -> PageResult {
    // Without a request, the page shows what an erasure would do.
    let view = match erasure::get(app, &visitor.caller, id).await {
        Err(ServiceError::NotFound(_)) => erasure::preview(app, &visitor.caller, id).await?,
        found => found?,
    };

    let texts = visitor.texts;
    let body = html! {
        p { (texts.text("erasure-hint")) }
        section.card {
            (state(visitor, &view))
            (steps(visitor, &view))
        }
        @if !view.erasable.is_empty() {
            section.card {
                h2 { (texts.text("erasure-erasable")) }
                ul.rows { @for one in &view.erasable { li { (part(texts, one)) } } }
            }
        }
        section.card {
            h2 { (texts.text("erasure-refused")) }
            @if view.refused.is_empty() { p { (texts.text("erasure-refused-none")) } }
            ul.rows { @for one in &view.refused { li { (kept(texts, one)) } } }
        }
        @if !view.erased.is_empty() {
            section.card {
                h2 { (texts.text("erasure-erased")) }
                ul.rows { @for one in &view.erased { li { (part(texts, one)) } } }
            }
        }
        p { a href={ (PATH) "/customers" } { (texts.text("console-customers")) } }
    };
    let title = texts.text("person-erase");
    Ok(visitor.form_page(Place::Customers, None, &title, body, refused))
}

/// Renders who has asked, and who approved.
fn state(visitor: &Visitor, view: &ErasureView) -> Markup {
    let texts = visitor.texts;
    let text = match view.state {
        None => "erasure-not-requested",
        Some(ErasureState::Requested) => "erasure-requested",
        Some(ErasureState::Partly) => "erasure-partly",
        Some(ErasureState::Erased) => "erasure-complete",
    };
    html! {
        p { strong { (texts.text(text)) } " " code { (view.customer_id) } }
        @if let (Some(by), Some(at)) = (&view.requested_by, view.requested_at) {
            p.soft { (texts.text("erasure-by")) " " (by) " · " (visitor.moment(at)) }
        }
        @if let (Some(by), Some(at)) = (&view.approved_by, view.approved_at) {
            p.soft { (texts.text("erasure-approved-by")) " " (by) " · " (visitor.moment(at)) }
        }
    }
}

/// Renders what a person may do next.
fn steps(visitor: &Visitor, view: &ErasureView) -> Markup {
    let own = address(view.customer_id.as_str());
    let request = format!("{own}/request");
    html! {
        @match view.state {
            // Nothing is erased yet.
            None => (visitor.button(&request, Some("quiet"), "erasure-request")),
            Some(ErasureState::Requested) => {
                (visitor.button(&format!("{own}/approve"), Some("danger"), "erasure-approve"))
                (visitor.button(&format!("{own}/withdraw"), Some("quiet"), "holds-withdraw"))
            }
            Some(ErasureState::Partly) => (visitor.button(&request, Some("danger"), "erasure-repeat")),
            Some(ErasureState::Erased) => {}
        }
    }
}

fn part(texts: Texts, part: &PartView) -> Markup {
    let is_link = part.part == PersonPart::Envelope && part.name.is_some();
    let kind = match part.part {
        PersonPart::Customer => "erasure-customer",
        PersonPart::Envelope => "erasure-envelope",
    };
    let name = part.name.as_deref().unwrap_or(&part.id);
    html! {
        (texts.text(kind)) ": "
        @if is_link { a href={ (PATH) "/envelopes/" (part.id) } { (name) } } @else { (name) }
    }
}

fn kept(texts: Texts, refused: &RefusedPart) -> Markup {
    let reason = match refused.reason {
        ErasureRefusal::LegalHold => "erasure-legal-hold",
        ErasureRefusal::OtherPartyControls => "erasure-other-party",
        ErasureRefusal::OpenEnvelope => "erasure-open",
        ErasureRefusal::RetentionRunning => "erasure-retention",
        ErasureRefusal::AuthoritativeRecord => "erasure-authoritative",
        ErasureRefusal::OtherPeople => "erasure-other-people",
    };
    html! {
        (part(texts, &refused.part))
        p.soft {
            (texts.text(reason))
            @if let Some(case) = &refused.case_reference { " · " (case) }
            @if let Some(schedule) = &refused.schedule {
                " · " (schedule) " · "
                @match refused.destroy_after {
                    Some(until) => (texts.with("retention-until", [("date", until.to_string())])),
                    None => (texts.text("retention-waiting")),
                }
            }
        }
    }
}

/// Takes a step towards an erasure. What erases something asks before.
pub async fn step(
    State(app): State<App>,
    Path((id, step)): Path<(String, String)>,
    form: ConsoleForm,
) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Hold)?;

    let taken = match step.as_str() {
        "request" => {
            let identity = visitor.signed_in.user.identity.as_ref();
            let view = erasure::preview(&app, &visitor.caller, &id).await?;
            if view.state == Some(ErasureState::Partly) {
                form.meant(&act(visitor, &view, "erasure-repeat"))?;
            }
            erasure::request(&app, &visitor.caller, identity, &id).await
        }
        "approve" => {
            let view = erasure::get(&app, &visitor.caller, &id).await?;
            form.meant(&act(visitor, &view, "erasure-approve"))?;
            erasure::decide(&app, &officer(visitor), &id, ErasureStep::Approve).await
        }
        "withdraw" => erasure::decide(&app, &officer(visitor), &id, ErasureStep::Withdraw).await,
        _ => return Err(ServiceError::NotFound("Page").into()),
    };

    match taken {
        Ok(_) => Ok(Redirect::to(&address(&id)).into_response()),
        Err(error) => {
            let refused = form.refused(error)?;
            page(&app, visitor, &id, Some(&refused)).await
        }
    }
}

/// Describes an act that erases the parts which no duty keeps.
fn act(visitor: &Visitor, view: &ErasureView, label: &'static str) -> SensitiveAct {
    let texts = visitor.texts;
    let names = view.erasable.iter();
    let names = names.map(|part| part.name.clone().unwrap_or_else(|| part.id.clone()));
    SensitiveAct {
        label: texts.text(label),
        objects: names.collect(),
        consequence: texts.text("sure-erasure"),
        is_typed: false,
        back: address(view.customer_id.as_str()),
    }
}
