//! Page in front of a document that asks for a code (`access` of a signer).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};

use super::page_frame::EmbedMessage;
use super::signer_link::SignerVisit;
use crate::error::HttpError;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Signer, SignerAccess, masked_address};
use holdfast_domain::identity::last_digits;
use holdfast_platform::ServiceError;
use holdfast_service::App;
use holdfast_service::signing::access_codes::{
    self, CodeCheck, CodeEntry, CodePrompt, CodeRequest, PASS_LIFE,
};

/// Name of the cookie that opens the document for a browser.
pub const PASS: &str = "holdfast_access";

/// Shows what the signer has to do before the document opens.
pub async fn ask(app: &App, visit: &SignerVisit) -> Response {
    match access_codes::prompt(app, &visit.envelope, &visit.signer, &visit.network).await {
        Ok(prompt) => page(app, visit, prompt, None),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Sends a code, or checks the entered one.
pub async fn submitted(app: &App, visit: &SignerVisit, action: &str, given: &str) -> Response {
    let sends = visit.signer.access.is_sent();
    let answer = match action {
        // A passcode was agreed with the sender. A request cannot make this host send it.
        "send-code" if sends => sent(app, visit).await,
        "enter-code" if !given.trim().is_empty() => checked(app, visit, given).await,
        // For example a form that was open when the cookie expired.
        _ => Ok(ask(app, visit).await),
    };
    answer.unwrap_or_else(|error| HttpError::from(error).into_response())
}

async fn sent(app: &App, visit: &SignerVisit) -> Result<Response, ServiceError> {
    let (envelope, signer) = (&visit.envelope, &visit.signer);
    Ok(
        match access_codes::send(app, envelope, signer, &visit.network).await? {
            CodeRequest::Sent => page(app, visit, CodePrompt::Enter, None),
            CodeRequest::Locked(until) => page(app, visit, CodePrompt::Locked(until), None),
            CodeRequest::Later(next) => {
                let minutes = minutes(next, app.clock.now());
                let text = visit.texts.with("code-later", [("minutes", minutes)]);
                // The code that was sent last may still be valid, so the page offers its entry beside the
                // waiting time.
                let prompt = access_codes::prompt(app, envelope, signer, &visit.network).await?;
                let page = page(app, visit, prompt, Some(&text));
                let wait = seconds(next, app.clock.now()).to_string();
                let status = StatusCode::TOO_MANY_REQUESTS;
                (status, [(header::RETRY_AFTER, wait)], page).into_response()
            }
        },
    )
}

async fn checked(app: &App, visit: &SignerVisit, given: &str) -> Result<Response, ServiceError> {
    let entry = CodeEntry {
        link: &visit.token,
        given,
        origin: &visit.origin,
        network: &visit.network,
    };
    let check = access_codes::check(app, &visit.envelope, &visit.signer, entry).await?;

    Ok(match check {
        CodeCheck::Right(pass) => {
            // A new request opens the document. A reload of this one would send a code again that works
            // only once.
            let mut response = Redirect::to(visit.path()).into_response();
            let cookie = HeaderValue::from_str(&cookie(app, visit, &pass));
            let cookie = cookie.map_err(|error| ServiceError::Internal(error.to_string()))?;
            response.headers_mut().append(header::SET_COOKIE, cookie);
            response
        }
        CodeCheck::Locked(until) => page(app, visit, CodePrompt::Locked(until), None),
        CodeCheck::Wrong => {
            let wrong = visit.texts.text("code-wrong");
            page(app, visit, CodePrompt::Enter, Some(&wrong))
        }
        // No code is left that could be right, so the page offers to send another one.
        CodeCheck::Outdated => {
            let wrong = visit.texts.text("code-outdated");
            page(app, visit, CodePrompt::Send, Some(&wrong))
        }
    })
}

/// The cookie also works in a frame of the organization's page, which is on another site: its path
/// contains the signing link, so no other site can use it.
fn cookie(app: &App, visit: &SignerVisit, pass: &str) -> String {
    // Browsers refuse `SameSite=None` without `Secure`, which an installation without TLS cannot have.
    let secure = app.config.signing_url().starts_with("https:");
    let scope = if secure {
        "SameSite=None; Secure; Partitioned"
    } else {
        "SameSite=Lax"
    };
    let (path, life) = (visit.path(), PASS_LIFE.as_secs());
    format!("{PASS}={pass}; Path={path}; Max-Age={life}; HttpOnly; {scope}")
}

fn page(app: &App, visit: &SignerVisit, prompt: CodePrompt, wrong: Option<&str>) -> Response {
    let texts = visit.texts;
    // Everyone with the link sees this page, so it shows only parts of the address and of the number.
    let told = |mail: &'static str, phone: &'static str| match &visit.signer {
        Signer {
            access: SignerAccess::SmsCode,
            phone: Some(number),
            ..
        } => texts.with(phone, [("digits", last_digits(number))]),
        signer => texts.with(mail, [("address", masked_address(&signer.email))]),
    };

    let sends = visit.signer.access.is_sent();
    let document = [("document", visit.envelope.name.as_str())];
    let body = html! {
        p { (texts.with("identity-before", document)) }
        @match prompt {
            CodePrompt::Locked(until) => {
                p.problem role="alert" { (texts.text("code-locked")) }
                p { (texts.with("code-locked-until", [("minutes", minutes(until, app.clock.now()))])) }
            }
            CodePrompt::Send => {
                @if let Some(wrong) = wrong { p.problem role="alert" { (wrong) } }
                p { (told("code-will-send", "code-will-send-phone")) }
                (send(visit, "code-send"))
            }
            CodePrompt::Enter => {
                p { (if sends { told("code-sent", "code-sent-phone") } else { texts.text("code-passcode") }) }
                (entry(visit, wrong))
                @if sends { (send(visit, "code-send-another")) }
            }
        }
    };

    let status = match (prompt, wrong) {
        (CodePrompt::Locked(_), _) => StatusCode::FORBIDDEN,
        (_, Some(_)) => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::OK,
    };
    visit.notice(status, "code-title", EmbedMessage::Ready, body)
}

fn entry(visit: &SignerVisit, wrong: Option<&str>) -> Markup {
    let texts = visit.texts;
    let sends = visit.signer.access.is_sent();
    html! {
        form method="post" action=(visit.path()) novalidate {
            div.field.invalid[wrong.is_some()] {
                label for="code" { (texts.text(if sends { "code-label" } else { "code-passcode-label" })) }
                @if let Some(wrong) = wrong {
                    p.problem id="code-problem" role="alert" { (wrong) }
                }
                input #code name="code" type="text" maxlength="64" required
                    inputmode=[sends.then_some("numeric")]
                    autocomplete=(if sends { "one-time-code" } else { "off" })
                    aria-invalid=[wrong.map(|_| "true")]
                    aria-describedby=[wrong.map(|_| "code-problem")];
            }
            button type="submit" name="action" value="enter-code" { (texts.text("code-open")) }
        }
    }
}

fn send(visit: &SignerVisit, label: &'static str) -> Markup {
    html! {
        form method="post" action=(visit.path()) {
            button.quiet type="submit" name="action" value="send-code" { (visit.texts.text(label)) }
        }
    }
}

fn seconds(until: Timestamp, now: Timestamp) -> i64 {
    // The time may pass while the page is written, and zero would make the client retry at once.
    (until.as_seconds() - now.as_seconds()).max(1)
}

/// Returns the minutes to wait, at least one.
pub fn minutes(until: Timestamp, now: Timestamp) -> i64 {
    (seconds(until, now) + 59) / 60
}
