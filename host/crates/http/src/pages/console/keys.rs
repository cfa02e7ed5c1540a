//! API keys: making, replacing and ending them. A new key is shown once, with a call to try it.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::PATH;
use super::developers;
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::navigation::{OtherAnswer, PageResult, copied};
use super::signed_in::{ConsoleForm, Visitor};
use super::sure::SensitiveAct;
use crate::error::HttpError;
use crate::middleware::extract::valid;
use crate::pages::page_frame::PageLook;
use holdfast_adapters::texts::Texts;
use holdfast_domain::organization::{Permission, Scope};
use holdfast_platform::ServiceError;
use holdfast_platform::access::api_keys::{self, ApiKeyView, IssuedKey, NewKey};
use holdfast_service::App;

fn page() -> String {
    format!("{PATH}/developers")
}

/// Renders the form for a new key.
pub fn new_key(visitor: &Visitor, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = format!("{PATH}/keys");
    let form = FormView::new(texts, &action, refused);
    html! {
        details.card open[form.is_refused()] {
            summary { (texts.text("key-new")) }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                (form.text(&TextField {
                    limit: 100,
                    ..TextField::new("name", &texts.text("rules-name"))
                }))
                (form.tick("test", &texts.text("key-test"), false))
                fieldset id="scopes" aria-describedby=[form.described("scopes")] {
                    legend { (texts.text("key-scopes")) }
                    @for scope in Scope::ALL {
                        @let name = format!("scope-{scope}");
                        label.choice {
                            input type="checkbox" name=(name) value="yes" checked[form.is_ticked(&name, false)];
                            " " code { (scope) }
                        }
                    }
                    (form.problem("scopes"))
                }
                button type="submit" { (texts.text("key-new")) }
            }
        }
    }
}

/// Renders what the user may do with a key.
pub fn acts(visitor: &Visitor, key: &ApiKeyView) -> Markup {
    let texts = visitor.texts;
    let form = |act: &str, text: &'static str, kind: &str| {
        html! {
            form method="post" action={ (PATH) "/keys/" (key.key_id) "/" (act) } {
                (visitor.token())
                button class=(kind) type="submit" { (texts.text(text)) }
            }
        }
    };

    // The end is apart from the replacement, so that a slip ends no key.
    html! {
        @if key.active {
            @if visitor.may(Permission::Administer) { (form("rotate", "key-rotate", "quiet")) }
            details {
                summary { (texts.text("key-deactivate")) }
                p.soft { (texts.text("sure-key-deactivate")) }
                (form("deactivate", "key-deactivate", "danger"))
            }
        }
    }
}

/// Makes a key.
pub async fn create(State(app): State<App>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Administer)?;
    // A key works without its user, so a stolen cookie must not make one.
    form.confirmed(&app, &page()).await?;

    let names = form.values.keys();
    let scopes: Vec<&str> = names
        .filter_map(|name| name.strip_prefix("scope-"))
        .collect();
    // An absent mode means `live`.
    let mut body = Map::from_iter([("scopes".to_owned(), json!(scopes))]);
    if !form.value("test").is_empty() {
        body.insert("mode".into(), "test".into());
    }

    // A key without a name is shown by its id.
    if !form.value("name").is_empty() {
        body.insert("name".into(), form.value("name").into());
    }

    let made = match valid::<NewKey>(Value::Object(body)) {
        Ok(new) => api_keys::create(&app, &form.visitor.caller, new, &unrecorded())
            .await
            .map_err(HttpError::from),
        Err(error) => Err(error),
    };
    match made {
        Ok(issued) => Ok(shown(&app, form.visitor.texts, &issued)),
        Err(error) => {
            // The boxes of the scopes are one field for the user.
            let scopes = [("scopes".to_owned(), "scopes".to_owned())];
            let refused = form.refused_with(error, &scopes)?;
            developers::shown(&app, &form.visitor, Some(&refused)).await
        }
    }
}

/// Replaces a key.
pub async fn rotate(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Administer)?;
    // The answer has the new key, so this needs the user and not only the cookie.
    form.confirmed(&app, &page()).await?;

    ask_if_sure(&app, &form, &id, "key-rotate", "sure-key-rotate").await?;

    let issued = api_keys::rotate(&app, &form.visitor.caller, &id, &unrecorded()).await?;
    Ok(shown(&app, form.visitor.texts, &issued))
}

/// Ends a key.
pub async fn deactivate(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    // Developers may end a key that has leaked. Only admins make and replace keys.
    form.visitor.require(Permission::Integrate)?;
    form.confirmed(&app, &page()).await?;

    ask_if_sure(&app, &form, &id, "key-deactivate", "sure-key-deactivate").await?;

    api_keys::deactivate(&app, &form.visitor.caller, &id).await?;
    Ok(Redirect::to(&page()).into_response())
}

/// Asks before an act that ends a key.
async fn ask_if_sure(
    app: &App,
    form: &ConsoleForm,
    id: &str,
    label: &'static str,
    consequence: &'static str,
) -> Result<(), OtherAnswer> {
    let (caller, texts) = (&form.visitor.caller, form.visitor.texts);
    let keys = api_keys::list(app, &caller.org).await?;
    let key = keys.into_iter().find(|key| key.key_id.as_str() == id);
    let key = key.ok_or(ServiceError::NotFound("Key"))?;
    let name = key.name.unwrap_or_else(|| key.key_id.to_string());

    form.meant(&SensitiveAct {
        label: texts.text(label),
        objects: vec![name],
        consequence: texts.text(consequence),
        is_typed: false,
        back: page(),
    })?;
    Ok(())
}

/// Shows a new key, this once.
fn shown(app: &App, texts: Texts, issued: &IssuedKey) -> Response {
    // On two lines, as a shell takes it, so that it fits the page.
    let call = format!(
        "curl {}/partner/envelopes \\\n  -H \"X-API-Key: {}\"",
        app.config.base_url(),
        issued.api_key
    );
    // The examples of the reference take both from the shell.
    let exports = format!(
        "export HOLDFAST_URL={}\nexport HOLDFAST_API_KEY={}",
        app.config.public_url(),
        issued.api_key
    );
    let body = html! {
        p { (texts.text("key-shown")) }
        (copied(texts, "key", &texts.text("key-value"), &issued.api_key))
        @if issued.key.scopes.contains(&Scope::EnvelopesRead) {
            p { (texts.text("key-try")) }
            pre tabindex="0" { (call) }
        }
        p { a href={ (app.config.public_url()) "/docs/api" } target="_blank" rel="noreferrer" { (texts.text("key-docs")) } }
        pre tabindex="0" { (exports) }
        p { a href=(page()) { (texts.text("console-back")) } }
    };

    PageLook::plain(texts).made(&texts.text("key-new"), body)
}
