//! The first step of sending: a document, a template, or a draft to go on with; and controls for values of fields.

use axum::extract::State;
use maud::{Markup, html};

use super::PATH;
use super::drafts::{DraftStep, step_line};
use super::forms::{FormView, RefusedForm, TextField};
use super::navigation::{PageResult, Place};
use super::signed_in::Visitor;
use holdfast_domain::envelope::{EnvelopeKind, EnvelopeStatus};
use holdfast_domain::field::Field;
use holdfast_domain::organization::Permission;
use holdfast_domain::template::Template;
use holdfast_service::templates::{self, TemplateFilter};
use holdfast_service::{App, envelopes};
use holdfast_store::search::EnvelopeSearch;

/// Templates to choose from.
const CHOICE: i64 = 50;
/// Kinds of fields that a sender fills in before.
const FILLED: [&str; 7] = [
    "text", "number", "date", "select", "radio", "checkbox", "phone",
];

/// Drafts that are listed.
const DRAFTS: i64 = 10;

/// Fields of the secured party, with their labels.
pub const PARTY_FIELDS: [(&str, &str); 3] = [
    ("party_name", "rules-name"),
    ("party_role", "send-party-role"),
    ("party_identifier", "send-party-identifier"),
];

/// Shows templates to send, and a form for another document.
pub async fn choose(State(app): State<App>, visitor: Visitor) -> PageResult {
    visitor.require(Permission::Send)?;

    choice_page(&app, &visitor, None).await
}

/// Shows the first step: a document, a template, or a draft to go on with.
pub async fn choice_page(
    app: &App,
    visitor: &Visitor,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let search = EnvelopeSearch {
        statuses: vec![EnvelopeStatus::Pending, EnvelopeStatus::Uploaded],
        ..EnvelopeSearch::default()
    };
    let filter = TemplateFilter::default();
    let (found, _) = templates::list(app, &visitor.caller, &filter, 1, CHOICE).await?;
    let mut drafts = envelopes::search(app, &visitor.caller, &search, DRAFTS).await?;
    // A paper is signed already.
    drafts.retain(|draft| draft.kind == EnvelopeKind::Esign);

    let texts = visitor.texts;
    let body = html! {
        (step_line(texts, DraftStep::Document, None))
        (document_form(visitor, refused))
        section.card {
            h2 { (texts.text("send-template")) }
            @if found.is_empty() { p.soft { (texts.text("empty-send")) } }
            form method="post" action={ (PATH) "/drafts/template" } {
                (visitor.token())
                ul.rows {
                    // A template without fields has nothing to sign, so it is not offered.
                    @for template in found.iter().filter(|one| !one.fields.is_empty()) {
                        li {
                            a href={ (PATH) "/templates/" (template.id) } { (template.name) }
                            p.soft { (template.roles().join(", ")) }
                            // The page of the template has the form for the values of its variables.
                            @if template.variables().is_empty() {
                                button.quiet type="submit" name="template" value=(template.id) {
                                    (texts.text("send-continue"))
                                    span.soft { " " (template.name) }
                                }
                            } @else {
                                a.button.quiet href={ (PATH) "/templates/" (template.id) } {
                                    (texts.text("send-continue"))
                                    span.soft { " " (template.name) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if !drafts.is_empty() {
            section.card {
                h2 { (texts.text("send-drafts")) }
                ul.rows {
                    @for draft in &drafts {
                        li {
                            a href={ (PATH) "/drafts/" (draft.id) } { (draft.name) }
                            p.soft { (visitor.ago(draft.updated_at)) }
                        }
                    }
                }
            }
        }
        p { a href={ (PATH) "/bulk" } { (texts.text("send-bulk")) } }
        p { a href={ (PATH) "/imports" } { (texts.text("send-import")) } }
    };

    let title = texts.text("console-send");
    Ok(visitor.form_page(Place::Send, None, &title, body, refused))
}

/// Renders the form that takes a document. Browsers let people drop a file on its control.
fn document_form(visitor: &Visitor, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = format!("{PATH}/drafts");
    let form = FormView::new(texts, &action, refused);
    html! {
        section.card {
            h2 { (texts.text("template-new")) }
            form method="post" action=(action) enctype="multipart/form-data" {
                (visitor.token())
                (form.summary())
                (form.field("file", &html! { (texts.text("send-drop")) }, html! {
                    input.drop id="file" name="file" type="file" required
                        accept=".pdf,application/pdf,image/png,image/jpeg"
                        aria-invalid=[form.invalid("file")] aria-describedby=[form.described("file")];
                }))
                button type="submit" { (texts.text("send-continue")) }
            }
        }
    }
}

/// Returns the fields that a sender can fill in, with their places.
pub fn filled(template: &Template) -> impl Iterator<Item = (usize, &Field)> {
    // Signatures, initials and files come from the signer alone, and a formula computes its own value.
    let fields = template.fields.iter().enumerate();
    fields.filter(|(_, field)| {
        FILLED.contains(&field.field_type.as_str()) && field.rules.formula.is_none()
    })
}

/// Renders the control for a field's value.
pub fn value_field(form: &FormView<'_>, at: usize, field: &Field, present: &str) -> Markup {
    let name = value_name(at);
    let kind = match field.field_type.as_str() {
        "date" => "date",
        "number" => "number",
        _ => "text",
    };

    if field.options.is_empty() {
        return form.text(&TextField {
            label: html! { (field.name) " " span.soft { "(" (field.role) ")" } },
            kind,
            limit: 4000,
            present,
            ..TextField::new(&name, "")
        });
    }

    let options = field.options.iter().map(|one| (one.clone(), one.clone()));
    let none = std::iter::once((String::new(), String::new()));
    let options: Vec<_> = none.chain(options).collect();
    let label = format!("{} ({})", field.name, field.role);
    form.select(&name, &label, &options, present)
}

/// Returns the name of the control for a field, which may itself have the name of another control.
pub fn value_name(at: usize) -> String {
    format!("value-{at}")
}
