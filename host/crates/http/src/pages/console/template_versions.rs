//! Versions of a template: another PDF, compared before it takes the place of the present one, and earlier versions.

use axum::extract::{FromRequestParts as _, Path, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use schemars::JsonSchema;

use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm};
use super::navigation::{PageResult, Place};
use super::signed_in::{ConsoleForm, Visitor};
use super::templates::{address, show_again};
use crate::error::HttpError;
use crate::middleware::extract::MultipartForm;
use holdfast_domain::field::Area;
use holdfast_domain::organization::Permission;
use holdfast_domain::template::{Template, TemplateVersion};
use holdfast_service::App;
use holdfast_service::templates::versions::{
    self, FieldChange, FieldOutcome, NewVersion, VersionChange,
};

/// Renders the versions of a template, with the form for another PDF.
pub fn section(
    visitor: &Visitor,
    template: &Template,
    versions: &[TemplateVersion],
    refused: Option<&RefusedForm>,
) -> Markup {
    let texts = visitor.texts;
    let page = address(&template.id);
    let action = format!("{page}/versions");
    let form = FormView::new(texts, &action, refused);
    let sends = visitor.may(Permission::Send);

    html! {
        details.card open[form.is_refused()] {
            summary { (texts.text("template-versions")) }
            ul.rows {
                @for version in versions {
                    li {
                        p {
                            strong { (texts.with("template-version", [("number", version.number)])) }
                            @if version.number == template.version { " · " (texts.text("template-version-present")) }
                        }
                        p.soft {
                            (visitor.moment(version.made_at))
                            @if let Some(made_by) = &version.made_by { " · " (made_by) }
                            " · " (texts.with("template-fields", [("count", version.fields.len())]))
                        }
                        p.soft { "SHA-256 " code { (version.document.sha256) } }
                        p {
                            a href={ (page) "/document?version=" (version.number) } download { (texts.text("template-download")) }
                        }
                        @if sends && version.number != template.version {
                            form method="post" action={ (action) "/restore" } {
                                (visitor.token())
                                input type="hidden" name="number" value=(version.number);
                                button.quiet type="submit" { (texts.text("template-version-restore")) }
                            }
                        }
                    }
                }
            }

            @if sends {
                form method="post" action=(action) enctype="multipart/form-data" {
                    (visitor.token())
                    (form.summary())
                    (form.file(&texts.text("template-replace"), Some(".pdf,application/pdf")))
                    (form.tick("accept_certification_loss", &texts.text("template-certification"), false))
                    button type="submit" { (texts.text("template-compare")) }
                }
            }
        }
    }
}

/// Fields of the form for another PDF.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "names the parts of the form")]
struct VersionFields {
    token: String,
    file: String,
    accept_certification_loss: String,
}

/// Takes another PDF, and shows its effect on the fields. Nothing is changed.
pub async fn compare(
    State(app): State<App>,
    Path(id): Path<String>,
    request: Request,
) -> PageResult {
    // The session is checked before the body is read, so that a stranger uploads nothing.
    let (mut parts, body) = request.into_parts();
    let visitor = Visitor::from_request_parts(&mut parts, &app).await?;
    visitor.require(Permission::Send)?;

    let form = visitor.upload::<VersionFields>(&app, Request::from_parts(parts, body));
    let mut form = form.await?;
    let entries = form.texts.clone();
    match propose(&app, &visitor, &id, &mut form).await {
        Ok((change, proposal)) => Ok(differences(&visitor, &change, &proposal)),
        Err(error) => {
            let action = format!("{}/versions", address(&id));
            let members = [("file".to_owned(), "file".to_owned())];
            let refused = RefusedForm::of(&action, &entries, error, &members)?;
            show_again(&app, &visitor, &id, Some(&refused)).await
        }
    }
}

async fn propose(
    app: &App,
    visitor: &Visitor,
    id: &str,
    form: &mut MultipartForm<VersionFields>,
) -> Result<(VersionChange, String), HttpError> {
    let file = form.file()?;
    let accepts = form.texts.get("accept_certification_loss");
    let accepts = accepts.is_some_and(|text| text == "yes");
    let (caller, pages) = (&visitor.caller, &app.pages);
    Ok(versions::propose(app, pages, caller, id, file, accepts).await?)
}

/// Shows each field with its place before and after, and the button that makes the version.
fn differences(visitor: &Visitor, change: &VersionChange, proposal: &str) -> Response {
    let texts = visitor.texts;
    let page = address(&change.template);
    let body = html! {
        p { strong { (change.name) } " · " (texts.with("template-version", [("number", change.number)])) }
        p { (texts.text("template-compare-note")) }
        p.soft { "SHA-256 " code { (change.sha256) } }
        @for warning in &change.warnings { p.alarm { span lang="en" dir="ltr" { (warning.message) } } }
        ul.rows { @for field in &change.fields { (row(visitor, field)) } }
        form method="post" action={ (page) "/versions/confirm" } {
            (visitor.token())
            input type="hidden" name="proposal" value=(proposal);
            button type="submit" { (texts.text("template-replace")) }
        }
        p { a href=(page) { (texts.text("sure-not")) } }
    };

    let title = texts.text("template-changes");
    visitor.page(Place::Templates, &title, body)
}

fn row(visitor: &Visitor, field: &FieldChange) -> Markup {
    let texts = visitor.texts;
    let outcome = match field.outcome {
        FieldOutcome::Kept => "template-kept",
        FieldOutcome::Moved => "template-moved",
        FieldOutcome::Changed => "template-changed",
        FieldOutcome::Lost => "template-lost",
        FieldOutcome::Added => "template-added",
    };
    let (from, to) = (places(&field.from), places(&field.to));
    let may_move = matches!(field.outcome, FieldOutcome::Moved | FieldOutcome::Changed);
    html! {
        li {
            p { strong { (field.name) } " · " (field.role) }
            p.alarm[field.outcome == FieldOutcome::Lost] {
                (texts.text(outcome))
                @if may_move && field.from != field.to {
                    ": " (texts.with("template-move", [("from", from.as_str()), ("to", to.as_str())]))
                }
            }
            // Of the API, which speaks English.
            @if let Some(reason) = &field.reason { p.soft { span lang="en" dir="ltr" { (reason) } } }
        }
    }
}

/// Returns places as page and percent from the left and from the top, such as `3 (29 %, 71 %)`.
fn places(areas: &[Area]) -> String {
    let place = |area: &Area| {
        let (x, y) = (area.x * 100.0, area.y * 100.0);
        format!("{} ({x:.0} %, {y:.0} %)", area.page)
    };
    areas.iter().map(place).collect::<Vec<_>>().join(", ")
}

/// Makes the version that the page before has shown.
pub async fn confirm(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    let new = NewVersion::Proposed(form.value("proposal").to_owned());
    make(&app, &id, &form, new).await
}

/// Makes a version of an earlier one.
pub async fn restore(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    // No version has the number 0.
    let number = form.value("number").parse().unwrap_or_default();
    make(&app, &id, &form, NewVersion::Earlier(number)).await
}

async fn make(app: &App, id: &str, form: &ConsoleForm, new: NewVersion) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Send)?;

    let made = versions::replace(app, &app.pages, &visitor.caller, id, new, &unrecorded()).await;
    match made {
        Ok(_) => Ok(Redirect::to(&address(&id)).into_response()),
        Err(error) => show_again(app, visitor, id, Some(&form.refused(error)?)).await,
    }
}
