//! Passkeys: sign-in, confirmation of sensitive actions, and the passkeys of a user.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::navigation::{PageResult, failed};
use super::sign_in::{SignInForm, local};
use super::signed_in::{ConsoleForm, Visitor, cookie, hidden};
use super::sure::SensitiveAct;
use super::{PATH, sign_on};
use crate::pages::page_frame::PageLook;
use holdfast_adapters::texts::Texts;
use holdfast_domain::passkey::{PasskeyAssertion, PasskeyCreation};
use holdfast_domain::user::{Passkey, User};
use holdfast_platform::ServiceError;
use holdfast_platform::access::passkeys::{self, NewPasskey, PasskeyProblem, PasskeySite, Purpose};
use holdfast_service::App;

/// Field with a device's answer.
pub const ANSWER: &str = "passkey";
/// Field of an answer that is a confirmation, and not the content of the form.
pub const CONFIRMS: &str = "confirms";

/// Form that asks the device of the user.
pub struct DeviceForm<'a> {
    /// `get` or `create`, as in `navigator.credentials`.
    pub kind: &'static str,
    pub site: &'a PasskeySite,
    /// base64url.
    pub challenge: String,
    /// Ids of credentials that may answer, or that a new one may not replace.
    pub known: Vec<&'a str>,
    /// For a new passkey.
    pub user: Option<&'a User>,
    pub action: &'a str,
    pub button: String,
}

impl DeviceForm<'_> {
    /// Renders the form with further fields. It appears only where the browser has passkeys.
    pub fn render(&self, texts: Texts, fields: Markup) -> Markup {
        html! {
            form method="post" action=(self.action) hidden
                data-passkey=(self.kind) data-challenge=(self.challenge) data-site=(self.site.host)
                data-known=(self.known.join(" "))
                data-user=[self.user.map(|user| &user.id)] data-name=[self.user.map(|user| &user.email)] {
                p.problem role="alert" hidden { (texts.text("passkey-failed")) }
                (fields)
                input type="hidden" name=(ANSWER);
                button type="submit" { (self.button) }
            }
            p.soft.unscripted { (texts.text("passkey-needed")) }
        }
    }
}

/// Reads a device's answer.
fn read<T: for<'de> Deserialize<'de>>(values: &BTreeMap<String, String>) -> Option<T> {
    // An answer of a device has a few kilobytes. Nothing longer is parsed.
    let text = values.get(ANSWER).filter(|text| text.len() <= 20_000)?;
    serde_json::from_str(text).ok()
}

/// Renders the button that signs in with a passkey; nothing where browsers have none.
pub fn sign_in_form(app: &App, texts: Texts, next: &str) -> Result<Markup, ServiceError> {
    let Some(site) = passkeys::site(app) else {
        return Ok(html! {});
    };

    let form = DeviceForm {
        kind: "get",
        challenge: passkeys::challenge(app, &Purpose::SignIn)?,
        site: &site,
        // The visitor is not known yet. Named credentials would reveal who has access, so the device
        // offers its own.
        known: Vec::new(),
        user: None,
        action: &format!("{PATH}/sign-in/passkey"),
        button: texts.text("passkey-sign-in"),
    };

    Ok(form.render(
        texts,
        html! { input type="hidden" name="next" value=(next); },
    ))
}

/// Signs in with a passkey.
pub async fn sign_in(State(app): State<App>, form: SignInForm) -> Response {
    let texts = form.texts;
    let Some(assertion) = read::<PasskeyAssertion>(&form.values) else {
        return not_accepted(texts);
    };

    match passkeys::sign_in(&app, &assertion, form.origin.clone()).await {
        Ok(secret) => {
            let cookie = [(header::SET_COOKIE, cookie(Some(&secret)))];
            (cookie, Redirect::to(form.next().unwrap_or(PATH))).into_response()
        }
        Err(PasskeyProblem::Failed(error)) => failed(error),
        // The organization requires its issuer, so a passkey alone signs in no more.
        Err(PasskeyProblem::Issuer(org)) => {
            sign_on::onward(texts, &sign_on::address(&org, form.next(), false))
        }
        // The log has the reason. The page names none, so that a stranger learns nothing about the passkey.
        Err(problem) => {
            tracing::info!(%problem, "a sign-in with a passkey was refused");
            not_accepted(texts)
        }
    }
}

fn not_accepted(texts: Texts) -> Response {
    let body = html! {
        p { (texts.text("passkey-refused")) }
        p { a href={ (PATH) "/sign-in" } { (texts.text("sign-in-title")) } }
    };
    let title = texts.text("passkey-refused-title");
    PageLook::plain(texts).notice(StatusCode::FORBIDDEN, &title, None, body)
}

impl ConsoleForm {
    /// Requires that the user has shown who they are a short time ago. The page that asks for it sends the form again;
    /// after a mailed link, the user begins anew on the page `back`.
    pub async fn confirmed(&self, app: &App, back: &str) -> Result<(), Response> {
        // One confirmation counts for ten minutes, so a series of acts asks once.
        let signed_in = &self.visitor.signed_in;
        if signed_in.is_confirmed(self.visitor.now) {
            return Ok(());
        }
        // Without the mark, the answer is content of the form, such as the signature of a statement.
        if self.value(CONFIRMS) == "yes"
            && let Some(assertion) = read::<PasskeyAssertion>(&self.values)
        {
            return match passkeys::confirm(app, signed_in, &assertion).await {
                Ok(()) => Ok(()),
                Err(PasskeyProblem::Failed(error)) => Err(failed(error)),
                Err(problem) => {
                    tracing::info!(%problem, "a confirmation with a passkey was refused");
                    Err(not_accepted(self.visitor.texts))
                }
            };
        }

        Err(self.ask(app, back).await.unwrap_or_else(failed))
    }

    /// Renders what the user entered as hidden fields.
    fn entries(&self) -> Markup {
        let values = self.values.iter();
        hidden(values.filter(|(name, _)| ![ANSWER, CONFIRMS].contains(&name.as_str())))
    }

    async fn ask(&self, app: &App, back: &str) -> Result<Response, ServiceError> {
        let (texts, signed_in) = (self.visitor.texts, &self.visitor.signed_in);
        let known = passkeys::list(app, &signed_in.user).await?;
        // A user without a passkey gets the other ways only.
        let site = passkeys::site(app).filter(|_| !known.is_empty());
        let settings = &self.visitor.organization.settings;
        let body = html! {
            p { (texts.text("confirm-hint")) }
            @if let Some(site) = &site {
                (DeviceForm {
                    kind: "get",
                    challenge: passkeys::challenge(app, &Purpose::Confirm(signed_in))?,
                    site,
                    known: known.iter().map(|one| one.credential_id.as_str()).collect(),
                    user: None,
                    action: &self.path,
                    button: texts.text("confirm-passkey"),
                }.render(texts, html! {
                    (self.entries())
                    input type="hidden" name=(CONFIRMS) value="yes";
                }))
            }
            @if settings.single_sign_on.is_some() {
                form method="post" action=(sign_on::address(&signed_in.user.org, Some(back), true)) {
                    button type="submit" { (texts.text("confirm-issuer")) }
                }
            }
            @if !settings.requires_sign_on() {
                // In a tab of its own, so that the entries stay here.
                form method="post" action={ (PATH) "/sign-in" } target="_blank" rel="noopener" {
                    input type="hidden" name="email" value=(signed_in.user.email);
                    input type="hidden" name="next" value=(back);
                    button.quiet[site.is_some() || settings.single_sign_on.is_some()] type="submit" { (texts.text("confirm-mail")) }
                }
                form method="post" action=(self.path) {
                    (self.entries())
                    p.soft { (texts.text("confirm-mail-then")) }
                    button.quiet type="submit" { (texts.text("confirm-go-on")) }
                }
            }
        };

        let title = texts.text("confirm-title");
        Ok(PageLook::plain(texts).console_notice(StatusCode::OK, &title, body))
    }
}

impl Visitor {
    /// Renders the way to show who the user is before they fill in a form of the page `back`. Nothing while a
    /// confirmation counts.
    pub fn identity_first(&self, back: &str) -> Markup {
        let texts = self.texts;
        html! {
            @if !self.signed_in.is_confirmed(self.now) {
                form.first method="post" action={ (PATH) "/confirm" } {
                    (self.token())
                    input type="hidden" name="next" value=(back);
                    p { (texts.text("confirm-first")) }
                    button.quiet type="submit" { (texts.text("confirm-first-button")) }
                }
            }
        }
    }
}

/// Renders the passkeys of the signed-in user, with a form for another one.
pub async fn section(app: &App, visitor: &Visitor) -> Result<Markup, ServiceError> {
    let (texts, user) = (visitor.texts, &visitor.signed_in.user);
    let Some(site) = passkeys::site(app) else {
        return Ok(html! {});
    };

    let known = passkeys::list(app, user).await?;
    // A new passkey would outlive a stolen session, so its form needs a confirmation.
    let is_confirmed = visitor.signed_in.is_confirmed(visitor.now);
    let form = DeviceForm {
        kind: "create",
        challenge: passkeys::challenge(app, &Purpose::Add(user))?,
        site: &site,
        // The browser then refuses a device that is registered already.
        known: known.iter().map(|one| one.credential_id.as_str()).collect(),
        user: Some(user),
        action: &format!("{PATH}/passkeys"),
        button: texts.text("passkey-add"),
    };

    let fields = html! {
        (visitor.token())
        div.field {
            label for="label" { (texts.text("passkey-name")) }
            input id="label" name="label" maxlength="100" autocomplete="off";
        }
    };

    Ok(html! {
        section.card {
            h2 { (texts.text("passkeys-title")) }
            p { (texts.text("passkeys-hint")) }
            ul.rows {
                @for passkey in &known { li { (row(visitor, passkey)) } }
            }
            @if is_confirmed {
                (form.render(texts, fields))
            } @else {
                form method="post" action={ (PATH) "/confirm" } {
                    (visitor.token())
                    input type="hidden" name="next" value={ (PATH) "/sessions" };
                    button type="submit" { (texts.text("passkey-add")) }
                }
            }
        }
    })
}

/// Asks who the user is, and leads to a page then.
pub async fn confirm(State(app): State<App>, form: ConsoleForm) -> PageResult {
    // The browser names the next page. `local` keeps the form from being an open redirect.
    let back = local(form.value("next")).unwrap_or(PATH);
    form.confirmed(&app, back).await?;
    Ok(Redirect::to(back).into_response())
}

fn row(visitor: &Visitor, passkey: &Passkey) -> Markup {
    let texts = visitor.texts;
    html! {
        p { strong { (passkey.name.as_deref().unwrap_or("–")) } }
        p.soft { (texts.text("passkey-added")) " " (visitor.moment(passkey.created_at)) }
        @if let Some(at) = passkey.used_at {
            p.soft { (texts.text("console-last-used")) " " (visitor.moment(at)) }
        }
        (visitor.button(&format!("{PATH}/passkeys/{}/remove", passkey.id), Some("quiet"), "passkey-remove"))
    }
}

/// New passkey in the browser's words.
#[derive(Deserialize)]
struct Created {
    #[serde(flatten)]
    creation: PasskeyCreation,
    public_key: String,
}

/// Adds a passkey.
pub async fn add(State(app): State<App>, form: ConsoleForm) -> Response {
    let back = format!("{PATH}/sessions");
    // The answer in the form is the new passkey, so that it cannot confirm. The page asks for that before.
    if !form.visitor.signed_in.is_confirmed(form.visitor.now) {
        return Redirect::to(&back).into_response();
    }
    let Some(created) = read::<Created>(&form.values) else {
        return not_accepted(form.visitor.texts);
    };

    // The field has this limit, so only a hand-made name is cut.
    let name = Some(form.value("label").chars().take(100).collect::<String>());
    let new = NewPasskey {
        creation: created.creation,
        public_key: created.public_key,
        name: name.filter(|name| !name.is_empty()),
    };
    let added = passkeys::add(&app, &form.visitor.signed_in.user, new).await;

    done(form.visitor.texts, added.map(|_| ()), &back)
}

/// Removes a passkey.
pub async fn remove(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    let back = format!("{PATH}/sessions");
    // The cookie alone must not take away what shows who the user is.
    form.confirmed(&app, &back).await?;

    let (user, texts) = (&form.visitor.signed_in.user, form.visitor.texts);
    let known = passkeys::list(&app, user).await?;
    // The service answers for an unknown passkey.
    if let Some(passkey) = known.into_iter().find(|one| one.id.as_str() == id) {
        form.meant(&SensitiveAct {
            label: texts.text("passkey-remove"),
            objects: vec![passkey.name.unwrap_or_else(|| id.clone())],
            consequence: texts.text("sure-passkey-remove"),
            is_typed: false,
            back: back.clone(),
        })?;
    }

    let removed = passkeys::remove(&app, &form.visitor.signed_in.user, &id).await;
    Ok(done(form.visitor.texts, removed, &back))
}

/// Leads back to the page, or shows why the passkey was not taken.
fn done(texts: Texts, result: Result<(), PasskeyProblem>, back: &str) -> Response {
    let text = match result {
        Ok(()) => return Redirect::to(back).into_response(),
        Err(PasskeyProblem::Failed(error)) => return failed(error),
        Err(PasskeyProblem::Signs) => "passkey-signs",
        Err(PasskeyProblem::TooMany) => "passkey-too-many",
        Err(PasskeyProblem::Duplicate) => "passkey-duplicate",
        // One page for all reasons why an answer of a device does not count, as for the sign-in.
        Err(_) => return not_accepted(texts),
    };
    let body = html! {
        p { (texts.text(text)) }
        p { a href=(back) { (texts.text("console-back")) } }
    };

    let title = texts.text("passkeys-title");
    PageLook::plain(texts).notice(StatusCode::CONFLICT, &title, None, body)
}
