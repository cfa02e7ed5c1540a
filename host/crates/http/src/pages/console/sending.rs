//! Sending: choosing a template or a document, the people and values of an envelope, and the act itself.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::PATH;
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::navigation::{Place, encoded, failed};
use super::signed_in::{ConsoleForm, Visitor};
use super::templates::upload_form;
use crate::error::HttpError;
use crate::middleware::extract::valid;
use holdfast_adapters::texts::Texts;
use holdfast_domain::field::Field;
use holdfast_domain::locale::Locale;
use holdfast_domain::organization::Permission;
use holdfast_domain::template::Template;
use holdfast_platform::ServiceError;
use holdfast_service::App;
use holdfast_service::envelopes::creation::{self, CreateEnvelope};
use holdfast_service::templates;

/// Templates to choose from.
const CHOICE: i64 = 50;
/// Kinds of fields that a sender fills in before.
const FILLED: [&str; 7] = [
    "text", "number", "date", "select", "radio", "checkbox", "phone",
];

/// Fields of the secured party, with their labels.
const PARTY_FIELDS: [(&str, &str); 3] = [
    ("party_name", "rules-name"),
    ("party_role", "send-party-role"),
    ("party_identifier", "send-party-identifier"),
];

/// Shows templates to send, and a form for another document.
pub async fn choose(State(app): State<App>, visitor: Visitor) -> Response {
    if let Some(refused) = visitor.refusal(Permission::Send) {
        return refused;
    }

    let (found, _) = match templates::list(
        &app,
        &visitor.caller,
        &templates::TemplateFilter::default(),
        1,
        CHOICE,
    )
    .await
    {
        Ok(found) => found,
        Err(error) => return failed(error),
    };
    let texts = visitor.texts;
    // A template without fields has nothing to sign, so it is not offered.
    let body = html! {
        section.card {
            h2 { (texts.text("send-template")) }
            @if found.is_empty() { p.soft { (texts.text("empty-send")) } }
            ul.rows {
                @for template in found.iter().filter(|one| !one.fields.is_empty()) {
                    li {
                        a href={ (PATH) "/send/" (template.id) } { (template.name) }
                        p.soft { (template.roles().join(", ")) }
                    }
                }
            }
        }
        (upload_form(&visitor, None))
        p { a href={ (PATH) "/bulk" } { (texts.text("send-bulk")) } }
    };

    visitor.page(Place::Send, &texts.text("console-send"), body)
}

/// Shows the form for one envelope.
pub async fn compose(State(app): State<App>, visitor: Visitor, Path(id): Path<String>) -> Response {
    if let Some(refused) = visitor.refusal(Permission::Send) {
        return refused;
    }
    match templates::get(&app, &visitor.caller, &id).await {
        Ok(template) => form_page(&visitor, &template, None),
        Err(error) => failed(error),
    }
}

fn form_page(visitor: &Visitor, template: &Template, refused: Option<&RefusedForm>) -> Response {
    let texts = visitor.texts;
    let action = format!("{PATH}/send/{}", template.id);
    let form = FormView::new(texts, &action, refused);
    let roles = template.roles();
    let filled: Vec<(usize, &Field)> = filled(template).collect();
    let body = html! {
        p.soft {
            a href={ (PATH) "/templates/" (template.id) } { (template.name) }
            @for role in &roles {
                " · "
                a href={ (PATH) "/templates/" (template.id) "/preview?role=" (encoded(role)) } {
                    (texts.with("send-preview", [("role", *role)]))
                }
            }
        }
        form method="post" action=(action) {
            (visitor.token())
            (form.summary())
            section.card {
                (form.text(&TextField {
                    present: &template.name,
                    ..TextField::required("envelope_name", &texts.text("send-name"))
                }))
                (form.text(&TextField::new("external_id", &texts.text("send-reference"))))
            }
            @for (at, role) in roles.iter().enumerate() {
                fieldset.card {
                    legend { h2 { (role) } }
                    (person(texts, &form, at))
                }
            }
            @if roles.len() > 1 {
                (form.tick("ordered", &texts.text("send-ordered"), true))
            }
            @if !filled.is_empty() {
                details.card open[form.is_refused()] {
                    summary { (texts.text("send-values")) }
                    @for (at, field) in &filled { (value_field(&form, *at, field)) }
                }
            }
            section.card {
                (form.text(&TextField {
                    limit: 200,
                    ..TextField::new("subject", &texts.text("send-subject"))
                }))
                (form.lines("message", &texts.text("send-message"), 4, ""))
            }
            details.card open[form.is_refused()] {
                summary { (texts.text("send-party")) }
                p.soft { (texts.text("send-party-hint")) }
                @for (name, label) in PARTY_FIELDS {
                    (form.text(&TextField::new(name, &texts.text(label))))
                }
            }
            button type="submit" { (texts.text("console-send")) }
        }
    };

    let title = texts.text("console-send");
    visitor.form_page(Place::Send, None, &title, body, refused)
}

fn person(texts: Texts, form: &FormView<'_>, at: usize) -> Markup {
    let name = |name: &str| format!("{name}-{at}");
    let languages = Locale::ALL.iter();
    let languages = languages.map(|one| (one.as_str().to_owned(), one.own_name().to_owned()));
    let of_browser = (String::new(), texts.text("send-browser-language"));
    let languages: Vec<_> = std::iter::once(of_browser).chain(languages).collect();
    html! {
        (form.text(&TextField::required(&name("name"), &texts.text("rules-name"))))
        (form.text(&TextField {
            kind: "email",
            limit: 200,
            ..TextField::required(&name("email"), &texts.text("sign-in-email"))
        }))
        (form.select(&name("locale"), &texts.text("settings-language"), &languages, ""))
        (form.tick(&name("code"), &texts.text("send-code"), false))
    }
}

/// Returns the fields that a sender can fill in, with their places.
fn filled(template: &Template) -> impl Iterator<Item = (usize, &Field)> {
    // Signatures, initials and files come from the signer alone, and a formula computes its own value.
    let fields = template.fields.iter().enumerate();
    fields.filter(|(_, field)| {
        FILLED.contains(&field.field_type.as_str()) && field.rules.formula.is_none()
    })
}

fn value_field(form: &FormView<'_>, at: usize, field: &Field) -> Markup {
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
            ..TextField::new(&name, "")
        });
    }

    let options = field.options.iter().map(|one| (one.clone(), one.clone()));
    let none = std::iter::once((String::new(), String::new()));
    let options: Vec<_> = none.chain(options).collect();
    let label = format!("{} ({})", field.name, field.role);
    form.select(&name, &label, &options, "")
}

/// Returns the name of the control for a field, which may itself have the name of another control.
fn value_name(at: usize) -> String {
    format!("value-{at}")
}

/// Returns the fields of the form for members of the request with other names.
fn renamed(template: &Template) -> Vec<(String, String)> {
    let values = filled(template).map(|(at, field)| (field.name.clone(), value_name(at)));
    let others = [
        ("secured_party", "party_name"),
        ("customer_email", "email-0"),
        ("customer_name", "name-0"),
    ];
    let others = others.map(|(member, field)| (member.to_owned(), field.to_owned()));

    others.into_iter().chain(values).collect()
}

/// Returns the body of `POST /partner/envelopes` for a form.
fn request(template: &Template, form: &ConsoleForm) -> Value {
    let value = |name: &str| form.value(name);
    let some = |text: &str| (!text.is_empty()).then(|| Value::from(text));
    let signers: Vec<Value> = template
        .roles()
        .iter()
        .enumerate()
        .map(|(at, role)| {
            let of = |name: &str| value(&format!("{name}-{at}"));
            let mut signer = json!({ "role": role, "name": of("name"), "email": of("email") });
            // Without a choice, the browser of the signer decides.
            if let Some(locale) = some(of("locale")) {
                signer["locale"] = locale;
            }

            // A text message or a passcode needs further values, which programs give.
            if of("code") == "yes" {
                signer["access"] = "email_code".into();
            }

            signer
        })
        .collect();

    let mut values = Map::new();
    for (at, field) in filled(template) {
        if let Some(given) = some(value(&value_name(at))) {
            values.insert(field.name.clone(), given);
        }
    }

    // The form asks for signers only, so the first of them is the customer. The box for the order
    // appears with a second role, so a single signer counts as ordered.
    let mut body = json!({
        "envelope_name": value("envelope_name"), "template_id": template.id,
        "customer_email": signers.first().map(|one| one["email"].clone()),
        "customer_name": signers.first().map(|one| one["name"].clone()),
        "signers": signers,
        "preserve_signing_order": template.roles().len() < 2 || value("ordered") == "yes",
    });
    for member in ["external_id", "subject", "message"] {
        if let Some(given) = some(value(member)) {
            body[member] = given;
        }
    }

    if !values.is_empty() {
        body["prefilled_data"] = Value::Object(values);
    }

    if let Some(name) = some(value("party_name")) {
        body["secured_party"] = json!({
            "name": name, "role": some(value("party_role")), "identifier": some(value("party_identifier")),
        });
    }

    body
}

/// Sends an envelope.
pub async fn send(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> Response {
    if let Some(refused) = form.visitor.refusal(Permission::Send) {
        return refused;
    }

    let caller = form.visitor.caller.clone();
    let template = match templates::get(&app, &caller, &id).await {
        Ok(template) => template,
        Err(error) => return failed(error),
    };
    let again = |error: HttpError| match form.refused_with(error, &renamed(&template)) {
        Ok(refused) => form_page(&form.visitor, &template, Some(&refused)),
        Err(answer) => answer,
    };
    let new = match valid::<CreateEnvelope>(request(&template, &form)) {
        Ok(new) => new,
        Err(error) => return again(error),
    };

    // Completes even if the browser goes away.
    let sent =
        tokio::spawn(async move { creation::create(&app, &caller, new, &unrecorded()).await });
    match sent.await {
        Ok(Ok(created)) => {
            let page = format!("{PATH}/envelopes/{}?done=sent", created.envelope.id);
            Redirect::to(&page).into_response()
        }
        Ok(Err(error)) => again(error.into()),
        Err(error) => failed(ServiceError::Internal(error.to_string())),
    }
}
