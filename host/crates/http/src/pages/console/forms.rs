//! Forms that come back with the user's entries, and with each problem at its field.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{Extensions, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::signed_in::ConsoleForm;
use crate::error::HttpError;
use holdfast_adapters::texts::Texts;
use holdfast_platform::ServiceError;

/// A problem of a form.
#[derive(Debug, PartialEq)]
struct FormProblem {
    /// Name of the field. None for a problem of the whole form.
    field: Option<String>,
    message: String,
    /// Whether the message is one of the API, which speaks English.
    is_of_api: bool,
}

/// A form that was refused, with its entries.
pub struct RefusedForm {
    /// Address that the form was sent to. It identifies the form on a page with several.
    action: String,
    values: BTreeMap<String, String>,
    problems: Vec<FormProblem>,
    status: StatusCode,
    /// Facts about the error for the log and the metrics.
    extensions: Extensions,
    /// Whether a form of the page shows the problems. None does if the act is no longer offered.
    is_shown: AtomicBool,
}

impl RefusedForm {
    /// Keeps the entries of a form with an error. Errors that no other entry prevents are returned as
    /// answers. `renamed` maps members of the API to fields with other names.
    pub fn of(
        action: &str,
        values: &BTreeMap<String, String>,
        error: HttpError,
        renamed: &[(String, String)],
    ) -> Result<Self, Response> {
        let status = match error.status() {
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            status @ (StatusCode::CONFLICT
            | StatusCode::FORBIDDEN
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE) => status,
            _ => return Err(error.into_response()),
        };

        let problems = problems(values, &error, renamed);
        let (parts, _) = error.into_response().into_parts();
        Ok(Self {
            action: action.to_owned(),
            values: values.clone(),
            problems,
            status,
            extensions: parts.extensions,
            is_shown: AtomicBool::new(false),
        })
    }

    /// Refuses a form for one of its fields, with a text for people.
    pub fn at(
        action: &str,
        values: &BTreeMap<String, String>,
        field: &str,
        message: String,
    ) -> Self {
        let problem = FormProblem {
            field: Some(field.to_owned()),
            message,
            is_of_api: false,
        };
        Self {
            action: action.to_owned(),
            values: values.clone(),
            problems: vec![problem],
            status: StatusCode::UNPROCESSABLE_ENTITY,
            extensions: Extensions::new(),
            is_shown: AtomicBool::new(false),
        }
    }

    /// Renders the problems, if no form of the page did.
    pub fn left_over(&self, texts: Texts) -> Markup {
        html! {
            @if !self.is_shown.load(Ordering::Relaxed) { (self.listed(texts, String::clone)) }
        }
    }

    /// Renders all problems, with links to their fields by `id`.
    fn listed(&self, texts: Texts, id: impl Fn(&String) -> String) -> Markup {
        self.is_shown.store(true, Ordering::Relaxed);
        html! {
            @if !self.problems.is_empty() {
                div.problems role="alert" tabindex="-1" {
                    p { (texts.text("signing-problems")) }
                    ul {
                        @for problem in &self.problems {
                            li {
                                @match &problem.field {
                                    Some(field) => a href={ "#" (id(field)) } { (shown(problem)) },
                                    None => (shown(problem)),
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Gives a page the status of the refusal.
    pub fn answer(&self, mut page: Response) -> Response {
        *page.status_mut() = self.status;
        *page.extensions_mut() = self.extensions.clone();
        page
    }
}

/// Returns the problems of an error. Each field has at most one.
fn problems(
    values: &BTreeMap<String, String>,
    error: &HttpError,
    renamed: &[(String, String)],
) -> Vec<FormProblem> {
    let mut found: Vec<FormProblem> = Vec::new();
    for (path, message) in error.issues() {
        let field = field_of(values, &path, renamed).or_else(|| field_in(values, &message));
        let message = match &field {
            Some(_) => message,
            None if path.is_empty() => message,
            None => format!("{}: {message}", path.join(".")),
        };
        let is_known = field.is_some() && found.iter().any(|one| one.field == field);
        if !is_known {
            found.push(FormProblem {
                field,
                message,
                is_of_api: true,
            });
        }
    }

    if found.is_empty() {
        found.push(FormProblem {
            field: None,
            message: error.message().to_owned(),
            is_of_api: true,
        });
    }

    found
}

/// Returns the field that a member of the API came from, such as `email-0` for `signers.0.email`.
fn field_of(
    values: &BTreeMap<String, String>,
    path: &[String],
    renamed: &[(String, String)],
) -> Option<String> {
    // From the last step of the path, because the first ones are shared by several fields.
    (0..path.len()).rev().find_map(|at| {
        let step = &path[at];
        let before = at.checked_sub(1).map(|before| path[before].as_str());
        let list = at.checked_sub(2).map(|list| path[list].as_str());
        let names = [
            // The list is part of the name where a form has two of them.
            format!(
                "{}_{step}-{}",
                list.unwrap_or_default(),
                before.unwrap_or_default()
            ),
            format!("{step}-{}", before.unwrap_or_default()),
            format!("{}_{step}", before.unwrap_or_default()),
            step.clone(),
        ];
        let own = names.into_iter().find(|name| values.contains_key(name));
        own.or_else(|| {
            let other = renamed.iter().find(|(member, _)| member == step);
            other.map(|(_, field)| field.clone())
        })
    })
}

/// Returns the field that a message of the API names, for a member with several fields.
fn field_in(values: &BTreeMap<String, String>, message: &str) -> Option<String> {
    let is_part = |one: char| one.is_alphanumeric() || one == '_';
    let mut words = message.split(|one| !is_part(one));
    // A name of one word could be a word of the sentence.
    let named = words.find(|word| word.contains('_') && values.contains_key(*word));
    named.map(str::to_owned)
}

impl ConsoleForm {
    /// Keeps the entries for the page that shows the form again.
    pub fn refused(&self, error: impl Into<HttpError>) -> Result<RefusedForm, Response> {
        self.refused_with(error, &[])
    }

    /// Like [`ConsoleForm::refused`], for members with other names than their fields.
    pub fn refused_with(
        &self,
        error: impl Into<HttpError>,
        renamed: &[(String, String)],
    ) -> Result<RefusedForm, Response> {
        RefusedForm::of(&self.path, &self.values, error.into(), renamed)
    }

    /// Like [`ConsoleForm::refused`], with an unknown id as a mistake of its field and not of the address.
    pub fn refused_id(
        &self,
        error: ServiceError,
        field: &str,
        text: &'static str,
    ) -> Result<RefusedForm, Response> {
        match error {
            ServiceError::NotFound(_) => Ok(self.refused_at(field, self.visitor.texts.text(text))),
            error => self.refused(error),
        }
    }

    /// Like [`RefusedForm::at`], for this form.
    pub fn refused_at(&self, field: &str, message: String) -> RefusedForm {
        RefusedForm::at(&self.path, &self.values, field, message)
    }

    /// Keeps the entries for a page that shows the form again without a problem, such as with more fields.
    pub fn kept(&self) -> RefusedForm {
        RefusedForm {
            action: self.path.clone(),
            values: self.values.clone(),
            problems: Vec::new(),
            status: StatusCode::OK,
            extensions: Extensions::new(),
            is_shown: AtomicBool::new(false),
        }
    }
}

/// One-line field of a form.
pub struct TextField<'a> {
    pub name: &'a str,
    pub label: Markup,
    /// Type of the control, such as `email`.
    pub kind: &'a str,
    /// Value before the user has entered one.
    pub present: &'a str,
    pub is_required: bool,
    pub limit: u32,
    pub pattern: Option<&'a str>,
}

impl<'a> TextField<'a> {
    /// Describes an optional field for a short text.
    pub fn new(name: &'a str, label: &str) -> Self {
        Self {
            name,
            label: html! { (label) },
            kind: "text",
            present: "",
            is_required: false,
            limit: 500,
            pattern: None,
        }
    }

    /// Describes a field that has to be filled in.
    pub fn required(name: &'a str, label: &str) -> Self {
        Self {
            is_required: true,
            ..Self::new(name, label)
        }
    }
}

/// Form on a page: empty, or with the entries and problems of a refused one.
pub struct FormView<'a> {
    pub texts: Texts,
    refused: Option<&'a RefusedForm>,
    /// End of the ids of its fields, on pages with several such forms.
    suffix: String,
}

impl<'a> FormView<'a> {
    /// Returns the form that is sent to an address.
    pub fn new(texts: Texts, action: &str, refused: Option<&'a RefusedForm>) -> Self {
        Self {
            texts,
            refused: refused.filter(|refused| refused.action == action),
            suffix: String::new(),
        }
    }

    /// Gives the fields ids of their own.
    pub fn with_ids(self, suffix: impl std::fmt::Display) -> Self {
        Self {
            suffix: format!("-{suffix}"),
            ..self
        }
    }

    pub fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    pub fn id(&self, name: &str) -> String {
        format!("{name}{}", self.suffix)
    }

    /// Returns what the user entered, or the present value.
    pub fn value<'v>(&'v self, name: &str, present: &'v str) -> &'v str {
        match self.refused {
            Some(refused) => refused.values.get(name).map_or("", String::as_str),
            None => present,
        }
    }

    /// Whether a box is ticked.
    pub fn is_ticked(&self, name: &str, present: bool) -> bool {
        // Browsers leave out boxes without a tick.
        self.refused
            .map_or(present, |refused| refused.values.contains_key(name))
    }

    fn problem_of(&self, name: &str) -> Option<&FormProblem> {
        let problems = &self.refused?.problems;
        problems
            .iter()
            .find(|problem| problem.field.as_deref() == Some(name))
    }

    /// Value of `aria-invalid` for a field.
    pub fn invalid(&self, name: &str) -> Option<&'static str> {
        self.problem_of(name).map(|_| "true")
    }

    /// Value of `aria-describedby` for a field.
    pub fn described(&self, name: &str) -> Option<String> {
        self.problem_of(name)
            .map(|_| format!("{}-problem", self.id(name)))
    }

    /// Renders the problem of a field.
    pub fn problem(&self, name: &str) -> Markup {
        html! {
            @if let Some(problem) = self.problem_of(name) {
                p.problem id={ (self.id(name)) "-problem" } { (shown(problem)) }
            }
        }
    }

    /// Renders all problems, with links to their fields.
    pub fn summary(&self) -> Markup {
        html! {
            @if let Some(refused) = self.refused {
                (refused.listed(self.texts, |field| self.id(field)))
            }
        }
    }

    /// Renders a control with its label and problem.
    pub fn field(&self, name: &str, label: &Markup, control: Markup) -> Markup {
        html! {
            div.field {
                label for=(self.id(name)) { (label) }
                (control)
                (self.problem(name))
            }
        }
    }

    /// Renders a one-line field.
    pub fn text(&self, field: &TextField<'_>) -> Markup {
        let name = field.name;
        // A secret is entered again, because pages show none.
        let value = match field.kind {
            "password" => "",
            _ => self.value(name, field.present),
        };
        let control = html! {
            input id=(self.id(name)) name=(name) type=(field.kind) value=(value) required[field.is_required]
                maxlength=(field.limit) pattern=[field.pattern] step=[(field.kind == "number").then_some("any")]
                autocomplete=(if field.kind == "password" { "new-password" } else { "off" })
                aria-invalid=[self.invalid(name)] aria-describedby=[self.described(name)];
        };
        self.field(name, &field.label, control)
    }

    /// Renders the field for a file, of these types if there are any.
    pub fn file(&self, label: &str, accepted: Option<&str>) -> Markup {
        let control = html! {
            input id=(self.id("file")) name="file" type="file" accept=[accepted] required
                aria-invalid=[self.invalid("file")] aria-describedby=[self.described("file")];
        };
        self.field("file", &html! { (label) }, control)
    }

    /// Renders a field for several lines.
    pub fn lines(&self, name: &str, label: &str, rows: u8, present: &str) -> Markup {
        let control = html! {
            // Browsers drop the first line break of a text.
            textarea id=(self.id(name)) name=(name) rows=(rows)
                aria-invalid=[self.invalid(name)] aria-describedby=[self.described(name)] { "\n" (self.value(name, present)) }
        };
        self.field(name, &html! { (label) }, control)
    }

    /// Renders a choice of values with their labels.
    pub fn select(
        &self,
        name: &str,
        label: &str,
        options: &[(String, String)],
        present: &str,
    ) -> Markup {
        let chosen = self.value(name, present);
        let control = html! {
            select id=(self.id(name)) name=(name)
                aria-invalid=[self.invalid(name)] aria-describedby=[self.described(name)] {
                @for (value, label) in options {
                    option value=(value) selected[value == chosen] { (label) }
                }
            }
        };
        self.field(name, &html! { (label) }, control)
    }

    /// Renders a box to tick.
    pub fn tick(&self, name: &str, label: &str, present: bool) -> Markup {
        html! {
            label.choice {
                input type="checkbox" id=(self.id(name)) name=(name) value="yes" checked[self.is_ticked(name, present)];
                " " (label)
            }
        }
    }
}

fn shown(problem: &FormProblem) -> Markup {
    html! {
        @if problem.is_of_api {
            span lang="en" dir="ltr" { (problem.message) }
        } @else {
            (problem.message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn a_member_of_the_api_leads_to_its_field() {
        let fields = [
            "email-0",
            "email-1",
            "brand_name",
            "paper_fee",
            "party_name",
            "recipients_email-1",
            "version",
        ];
        let values = fields.map(|name| (name.to_owned(), String::new())).into();
        let renamed = [("secured_party".to_owned(), "party_name".to_owned())];
        for (member, field) in [
            ("signers.1.email", Some("email-1")),
            ("brand.name", Some("brand_name")),
            (
                "consumer_disclosure.paper_fee.amount_cents",
                Some("paper_fee"),
            ),
            ("secured_party.name", Some("party_name")),
            ("consent.de.version", Some("version")),
            ("signers.2.email", None),
            ("recipients.1.email", Some("recipients_email-1")),
        ] {
            let found = field_of(&values, &path(member), &renamed);
            assert_eq!(found.as_deref(), field, "{member}");
        }
    }
}
