//! Sending: choosing a template or a document, the people and values of an envelope, and the act itself.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::PATH;
use super::envelopes::unrecorded;
use super::navigation::{Place, encoded, failed};
use super::signed_in::{ConsoleForm, Visitor};
use super::templates::upload_form;
use crate::middleware::extract::valid;
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

/// Shows templates to send, and a form for another document.
pub async fn choose(State(app): State<App>, visitor: Visitor) -> Response {
    if let Some(refused) = visitor.refusal(Permission::Send) {
        return refused;
    }

    let (found, _) = match templates::list(&app, &visitor.caller, 1, CHOICE).await {
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
        (upload_form(&visitor))
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
        Ok(template) => form_page(&visitor, &template),
        Err(error) => failed(error),
    }
}

fn form_page(visitor: &Visitor, template: &Template) -> Response {
    let texts = visitor.texts;
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
        form method="post" action={ (PATH) "/send/" (template.id) } {
            (visitor.token())
            section.card {
                div.field {
                    label for="envelope_name" { (texts.text("send-name")) }
                    input id="envelope_name" name="envelope_name" value=(template.name) required maxlength="500";
                }
                div.field {
                    label for="external_id" { (texts.text("send-reference")) }
                    input id="external_id" name="external_id" maxlength="500" autocomplete="off";
                }
            }
            @for (at, role) in roles.iter().enumerate() {
                fieldset.card {
                    legend { h2 { (role) } }
                    (person(visitor, at))
                }
            }
            @if roles.len() > 1 {
                label.choice {
                    input type="checkbox" name="ordered" value="yes" checked;
                    " " (texts.text("send-ordered"))
                }
            }
            @if !filled.is_empty() {
                details.card {
                    summary { (texts.text("send-values")) }
                    @for (at, field) in &filled { (value_field(*at, field)) }
                }
            }
            details.card {
                summary { (texts.text("send-party")) }
                p.soft { (texts.text("send-party-hint")) }
                @for (name, label) in [("party_name", "rules-name"), ("party_role", "send-party-role"), ("party_identifier", "send-party-identifier")] {
                    div.field {
                        label for=(name) { (texts.text(label)) }
                        input id=(name) name=(name) maxlength="500" autocomplete="off";
                    }
                }
            }
            button type="submit" { (texts.text("console-send")) }
        }
    };

    visitor.page(Place::Send, &texts.text("console-send"), body)
}

fn person(visitor: &Visitor, at: usize) -> Markup {
    let texts = visitor.texts;
    let id = |name: &str| format!("{name}-{at}");
    html! {
        div.field {
            label for=(id("name")) { (texts.text("rules-name")) }
            input id=(id("name")) name=(id("name")) required maxlength="500" autocomplete="off";
        }
        div.field {
            label for=(id("email")) { (texts.text("sign-in-email")) }
            input id=(id("email")) name=(id("email")) type="email" required maxlength="200" autocomplete="off";
        }
        div.field {
            label for=(id("locale")) { (texts.text("settings-language")) }
            select id=(id("locale")) name=(id("locale")) {
                option value="" { (texts.text("send-browser-language")) }
                @for one in Locale::ALL { option value=(one.as_str()) lang=(one.as_str()) { (one.own_name()) } }
            }
        }
        label.choice {
            input type="checkbox" name=(id("code")) value="yes";
            " " (texts.text("send-code"))
        }
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

fn value_field(at: usize, field: &Field) -> Markup {
    // Named by its place, because a field may have any name, also that of another control.
    let id = format!("value-{at}");
    let kind = match field.field_type.as_str() {
        "date" => "date",
        "number" => "number",
        _ => "text",
    };

    html! {
        div.field {
            label for=(id) { (field.name) " " span.soft { "(" (field.role) ")" } }
            @if field.options.is_empty() {
                input id=(id) name=(id) type=(kind) step="any" maxlength="4000" autocomplete="off";
            } @else {
                select id=(id) name=(id) {
                    option value="" {}
                    @for option in &field.options { option { (option) } }
                }
            }
        }
    }
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
        if let Some(given) = some(value(&format!("value-{at}"))) {
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
    if let Some(reference) = some(value("external_id")) {
        body["external_id"] = reference;
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
    let new = match valid::<CreateEnvelope>(request(&template, &form)) {
        Ok(new) => new,
        Err(error) => return error.into_response(),
    };

    // Completes even if the browser goes away.
    let sent =
        tokio::spawn(async move { creation::create(&app, &caller, new, &unrecorded()).await });
    match sent.await {
        Ok(Ok(created)) => {
            let page = format!("{PATH}/envelopes/{}?done=sent", created.envelope.id);
            Redirect::to(&page).into_response()
        }
        Ok(Err(error)) => failed(error),
        Err(error) => failed(ServiceError::Internal(error.to_string())),
    }
}
