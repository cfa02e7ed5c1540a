//! What a signer sees, as HTML.

use std::collections::BTreeMap;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::components::rules::placement::PageFacts;
use crate::domain::envelope::{Envelope, Signer};
use crate::room::form::Form;
use crate::store::room::RoomField;

/// A page with a title and a few words.
pub fn notice(status: StatusCode, title: &str, body: Markup) -> Response {
    page(
        status,
        title,
        html! { main.notice { h1 { (title) } (body) } },
    )
}

/// Pages may load only what this server serves, and may not be framed.
pub fn page(status: StatusCode, title: &str, body: Markup) -> Response {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                title { (title) }
                link rel="stylesheet" href="/assets/signing.css";
            }
            body { (body) }
        }
    };
    let policy = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; \
                  frame-ancestors 'none'; base-uri 'none'";
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, markup.into_string()).into_response()
}

/// The signing form.
pub struct Shown<'a> {
    /// Links on the page are relative to it.
    pub token: &'a str,
    pub envelope: &'a Envelope,
    pub signer: &'a Signer,
    pub pages: &'a [PageFacts],
    pub form: &'a Form,
    /// By field name, what was sent and could not be taken as it is.
    pub entered: &'a BTreeMap<String, String>,
    /// By field name, what is wrong with it.
    pub problems: &'a BTreeMap<String, String>,
}

impl Shown<'_> {
    fn value_of(&self, field: &RoomField) -> String {
        let typed = self.entered.get(&field.name).filter(|_| !field.readonly);
        typed
            .or_else(|| self.form.submitter.values.get(&field.name))
            .cloned()
            .unwrap_or_default()
    }

    /// Pages of the document, and one control per field.
    pub fn markup(&self) -> Markup {
        html! {
            header.top {
                p.product { "holdfast" }
                h1 { (self.envelope.name) }
                p { "For " strong { (self.signer.name) } ", " (self.signer.role) }
            }
            main {
                section.document aria-label="Document" {
                    @for (index, facts) in self.pages.iter().enumerate() {
                        @let number = index + 1;
                        figure {
                            img src={ (self.token) "/pages/" (number) ".png" }
                                alt={ "Page " (number) " of " (self.pages.len()) }
                                width=(facts.width.round()) height=(facts.height.round())
                                loading=(if index == 0 { "eager" } else { "lazy" });
                            figcaption { "Page " (number) " of " (self.pages.len()) }
                        }
                    }
                }
                section.fields aria-label="Your fields" {
                    h2 { "Fill in and sign" }
                    @if !self.problems.is_empty() {
                        p.problems role="alert" { "Some fields need attention." }
                    }
                    form method="post" action=(self.token) novalidate {
                        @for (index, field) in self.form.fields.iter().enumerate() {
                            (control(field, index, &self.value_of(field), self.problems.get(&field.name)))
                        }
                        div.field.consent {
                            label {
                                input type="checkbox" name="consent" value="yes" required
                                    aria-describedby=[self.problems.get("consent").map(|_| "consent-problem")];
                                " I agree to sign this document electronically. My signature here has the same effect as one on paper."
                            }
                            (problem("consent", self.problems.get("consent")))
                        }
                        div.actions {
                            button type="submit" name="action" value="finish" { "Finish and sign" }
                            button.quiet type="submit" name="action" value="save" { "Save for later" }
                        }
                        details.decline open[self.problems.contains_key("reason")] {
                            summary { "I do not want to sign" }
                            label for="reason" { "Reason" }
                            textarea id="reason" name="reason" rows="3" maxlength="4000" {}
                            (problem("reason", self.problems.get("reason")))
                            button.danger type="submit" name="action" value="decline" { "Decline" }
                        }
                    }
                }
            }
        }
    }
}

/// One control for one field, with its label and what is wrong with it.
fn control(field: &RoomField, index: usize, value: &str, wrong: Option<&String>) -> Markup {
    let id = format!("field-{index}");
    let described = wrong.map(|_| format!("{id}-problem"));
    let signature = matches!(field.field_type.as_str(), "signature" | "initials");
    let label = html! {
        (field.name)
        @if field.required { span.required { " (required)" } }
    };
    html! {
        div.field.invalid[wrong.is_some()] {
            @match field.field_type.as_str() {
                "checkbox" => {
                    input type="hidden" name=(field.name) value="false";
                    label for=(id) {
                        input id=(id) type="checkbox" name=(field.name) value="true"
                            checked[value == "true"] required[field.required]
                            disabled[field.readonly] aria-describedby=[described.as_deref()];
                        " " (label)
                    }
                }
                "select" => {
                    label for=(id) { (label) }
                    select id=(id) name=(field.name) required[field.required]
                        disabled[field.readonly] aria-describedby=[described.as_deref()] {
                        option value="" { "Choose…" }
                        @for option in &field.options {
                            option value=(option) selected[option == value] { (option) }
                        }
                    }
                }
                "radio" => {
                    fieldset aria-describedby=[described.as_deref()] {
                        legend { (label) }
                        @for option in &field.options {
                            label.choice {
                                input type="radio" name=(field.name) value=(option)
                                    checked[option == value] disabled[field.readonly];
                                " " (option)
                            }
                        }
                    }
                }
                kind => {
                    label for=(id) { (label) }
                    input id=(id) name=(field.name) value=(value)
                        type=(if kind == "date" { "date" } else { "text" })
                        inputmode=[(kind == "number").then_some("decimal")]
                        autocomplete=[signature.then_some("name")]
                        class=[signature.then_some("script")]
                        placeholder=[signature.then_some("Type your name")]
                        required[field.required] readonly[field.readonly]
                        aria-invalid=[wrong.map(|_| "true")]
                        aria-describedby=[described.as_deref()];
                }
            }
            (problem(&id, wrong))
        }
    }
}

fn problem(id: &str, wrong: Option<&String>) -> Markup {
    match wrong {
        None => PreEscaped(String::new()),
        Some(wrong) => html! { p.problem id={ (id) "-problem" } { (wrong) } },
    }
}
