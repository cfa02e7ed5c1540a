//! Pages of the identity check in front of a document.

use std::future::Future;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};

use super::page_frame::EmbedMessage;
use super::signer_link::{BROWSER, SignerVisit};
use crate::error::HttpError;
use holdfast_adapters::texts::Texts;
use holdfast_base::traces;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::identity::entry;
use holdfast_platform::ServiceError;
use holdfast_platform::kba::{
    self, IdentityGate, IdentityInput, IdentityNotice, IdentityPage, IdentityPrompt,
    IdentityQuestion, IdentitySubmission,
};
use holdfast_platform::providers::links::MAIL_LIFE;
use holdfast_service::App;

/// Recognizes the browser of a signer who has passed, and records an unknown one. Returns the
/// cookie to set in that case.
pub async fn recognise(
    app: &App,
    visit: &SignerVisit,
) -> Result<Option<HeaderValue>, ServiceError> {
    // Only a signer who was asked questions has a pass to which a browser could be bound.
    if !visit.signer.challenged {
        return Ok(None);
    }

    let (envelope, signer) = (&visit.envelope, &visit.signer);
    let cookie = visit.browser.as_deref();
    let given = kba::recognise(app, envelope, signer, cookie, &visit.origin).await?;
    Ok(given.and_then(|token| {
        let secure = app.config.signing_url().starts_with("https:");
        // Lax, because the first visit comes from a link in an e-mail. Documents with identity
        // checks are never shown in a widget, so no cross-site cookie is needed.
        let secure = if secure { "; Secure" } else { "" };
        let (value, path) = (token.reveal(), visit.path());
        // As long as the mailed link that leads here.
        let life = MAIL_LIFE.as_secs();
        let cookie = format!(
            "{BROWSER}={value}; Path={path}; Max-Age={life}; HttpOnly; SameSite=Lax{secure}"
        );

        HeaderValue::from_str(&cookie).ok()
    }))
}

/// Returns whether the document may be shown. If so, records the browser.
pub async fn is_open(app: &App, visit: &SignerVisit) -> Result<bool, ServiceError> {
    let open = kba::is_open(app, &visit.envelope, &visit.signer).await?;
    if open {
        recognise(app, visit).await?;
    }
    Ok(open)
}

/// Adds the cookie to the response, if there is one.
pub fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Returns the page of the identity check, or none if the document is open.
pub async fn closed(app: &App, visit: &SignerVisit, ip: Option<String>) -> Option<Response> {
    // The step outlives the request when the client disconnects, so it owns its data.
    let (app_, envelope, signer) = (app.clone(), visit.envelope.clone(), visit.signer.clone());
    let gate = to_its_end(async move { kba::gate(&app_, &envelope, &signer, ip).await }).await;
    match gate {
        Ok(IdentityGate::Open) => None,
        other => Some(answer(app, visit, other)),
    }
}

/// Processes one step of the identity check. The browser that completes the last step is bound to
/// the signer.
pub async fn go_on(app: &App, visit: &SignerVisit, given: IdentitySubmission) -> Response {
    let (app_, envelope, signer) = (app.clone(), visit.envelope.clone(), visit.signer.clone());
    let step = async move { kba::go_on(&app_, &envelope, &signer, given).await };
    let gate = to_its_end(step).await;
    let cookie = match &gate {
        Ok(IdentityGate::Open) => match recognise(app, visit).await {
            Ok(cookie) => cookie,
            Err(error) => return HttpError::from(error).into_response(),
        },
        _ => None,
    };

    // After a pass, the document is shown by a new request, so that a reload does not resend the
    // form.
    with_cookie(answer(app, visit, gate), cookie)
}

/// Runs a step to completion even if the client disconnects, so that no step is half done.
async fn to_its_end(
    step: impl Future<Output = Result<IdentityGate, ServiceError>> + Send + 'static,
) -> Result<IdentityGate, ServiceError> {
    // A spawned task would begin a trace of its own, and its provider calls would be missing in that
    // of the request.
    let done = tokio::spawn(traces::along(step)).await;
    done.unwrap_or_else(|error| Err(ServiceError::Internal(error.to_string())))
}

fn answer(app: &App, visit: &SignerVisit, gate: Result<IdentityGate, ServiceError>) -> Response {
    match gate {
        Ok(IdentityGate::Open) => Redirect::to(visit.path()).into_response(),
        Ok(IdentityGate::Shown(shown)) => page(visit, &shown, app.clock.now()),
        // The link is valid and the signer made no mistake. The page asks to come back, and the log has
        // the cause.
        Err(error @ (ServiceError::OtherProvider(..) | ServiceError::NotConfigured(_))) => {
            tracing::warn!(envelope = %visit.envelope.id, %error, "identity check unavailable");
            visit.unavailable("unavailable-identity")
        }
        Err(error) => HttpError::from(error).into_response(),
    }
}

fn page(visit: &SignerVisit, shown: &IdentityPage, now: Timestamp) -> Response {
    let (title, body) = match &shown.asked {
        IdentityPrompt::Identity(fields) => ("identity-title", identity(visit, fields, shown)),
        IdentityPrompt::Code { until } => ("identity-code-title", code(visit, shown, *until, now)),
        IdentityPrompt::Questions { questions, until } => (
            "identity-questions-title",
            asked(visit, questions, shown, *until, now),
        ),
        IdentityPrompt::Again { left } => ("identity-wrong-title", again(visit, *left)),
        IdentityPrompt::Wait { until } => ("identity-wait-title", wait(visit.texts, *until, now)),
        IdentityPrompt::Exhausted => ("identity-exhausted-title", exhausted(visit.texts)),
        IdentityPrompt::Busy => ("identity-busy-title", busy(visit)),
        IdentityPrompt::Unavailable { again } => {
            ("identity-unavailable-title", unavailable(visit, *again))
        }
    };

    let body = html! {
        p { (visit.texts.with("identity-before", [("document", visit.envelope.name.as_str())])) }
        @if let Some(notice) = shown.notice {
            p.problem role="alert" { (visit.texts.text(told(notice))) }
        }
        (body)
    };

    let status = if shown.problems.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    visit.notice(status, title, EmbedMessage::Ready, body)
}

/// Returns the key of a notice's text.
fn told(notice: IdentityNotice) -> &'static str {
    match notice {
        IdentityNotice::TimeIsOver => "identity-time-over",
        IdentityNotice::WrongCode => "identity-wrong-code",
        IdentityNotice::NotAccepted => "identity-not-accepted",
        IdentityNotice::TooMany => "identity-too-many",
        IdentityNotice::TryLater => "identity-try-later",
    }
}

fn wrong(texts: Texts, name: &str, shown: &IdentityPage) -> Markup {
    html! {
        @if let Some(why) = shown.problems.get(name) {
            p.problem id={ (name) "-problem" } { (texts.message(why)) }
        }
    }
}

fn identity(visit: &SignerVisit, fields: &[IdentityInput], shown: &IdentityPage) -> Markup {
    let texts = visit.texts;
    let problem = |name: &str| shown.problems.contains_key(name);
    let described = |name: &str| problem(name).then(|| format!("{name}-problem"));

    // Without fields nothing about the person goes to the provider, so there is no box for a consent.
    html! {
        form.identity method="post" action=(visit.path()) novalidate autocomplete="on" {
            @for field in fields {
                @let how = entry(&field.name);
                div.field.invalid[problem(&field.name)] {
                    label for=(field.name) {
                        (how.label.map_or_else(|| field.label.clone(), |key| texts.text(key)))
                        @if field.required { span.required { " " (texts.text("signing-required")) } }
                    }
                    input id=(field.name) name=(field.name) type=(how.kind) value=(field.value)
                        autocomplete=[how.autocomplete] inputmode=[how.inputmode]
                        maxlength="100" required[field.required]
                        aria-invalid=[problem(&field.name).then_some("true")]
                        aria-describedby=[described(&field.name)];
                    (wrong(texts, &field.name, shown))
                }
            }

            @if !fields.is_empty() {
                div.consent.invalid[problem("consent")] {
                    label {
                        input type="checkbox" name="consent" value="yes" required
                            aria-invalid=[problem("consent").then_some("true")]
                            aria-describedby=[described("consent")];
                        " " (texts.text("identity-consent"))
                    }
                    (wrong(texts, "consent", shown))
                }
                p.fine { (texts.text("identity-kept")) }
            }

            button type="submit" { (texts.text("identity-continue")) }
        }
    }
}

fn minutes(until: Timestamp, now: Timestamp) -> i64 {
    // Rounded up, because a page with 0 minutes left would look like one that is over.
    ((until.as_seconds() - now.as_seconds() + 59) / 60).max(1)
}

fn time_left(texts: Texts, until: Timestamp, now: Timestamp) -> Markup {
    let left = texts.with("identity-minutes", [("minutes", minutes(until, now))]);
    html! { p role="status" { (left) } }
}

fn code(visit: &SignerVisit, shown: &IdentityPage, until: Timestamp, now: Timestamp) -> Markup {
    let texts = visit.texts;
    html! {
        p { (texts.text("identity-code-sent")) }
        (time_left(texts, until, now))
        form method="post" action=(visit.path()) novalidate {
            div.field.invalid[shown.problems.contains_key("code")] {
                label for="code" { (texts.text("identity-code")) }
                input #code name="code" type="text" inputmode="numeric" maxlength="12"
                    autocomplete="one-time-code" required;
                (wrong(texts, "code", shown))
            }
            button type="submit" { (texts.text("identity-continue")) }
        }
    }
}

fn asked(
    visit: &SignerVisit,
    questions: &[IdentityQuestion],
    shown: &IdentityPage,
    until: Timestamp,
    now: Timestamp,
) -> Markup {
    let texts = visit.texts;
    html! {
        (time_left(texts, until, now))
        form.questions method="post" action=(visit.path()) novalidate {
            @for question in questions {
                fieldset.invalid[shown.problems.contains_key(&question.id)] {
                    legend { (question.text) }
                    (wrong(texts, &question.id, shown))
                    @for (id, text) in &question.choices {
                        label.choice {
                            input type="radio" name=(question.id) value=(id) required;
                            " " (text)
                        }
                    }
                }
            }
            button type="submit" { (texts.text("identity-send")) }
        }
    }
}

fn busy(visit: &SignerVisit) -> Markup {
    html! {
        p { (visit.texts.text("identity-checking")) }
        p { a.button href=(visit.path()) { (visit.texts.text("identity-look-again")) } }
    }
}

fn unavailable(visit: &SignerVisit, again: bool) -> Markup {
    html! {
        p { (visit.texts.text("identity-unavailable")) }
        @if again {
            p { (visit.texts.text("identity-enter-again")) }
            (once_more(visit))
        }
        p { (visit.texts.text("identity-other-way")) }
    }
}

fn once_more(visit: &SignerVisit) -> Markup {
    html! {
        form method="post" action=(visit.path()) {
            button type="submit" name="again" value="again" { (visit.texts.text("identity-try-again")) }
        }
    }
}

fn again(visit: &SignerVisit, left: usize) -> Markup {
    html! {
        p { (visit.texts.with("identity-wrong", [("left", left)])) }
        (once_more(visit))
    }
}

fn exhausted(texts: Texts) -> Markup {
    html! {
        p { (texts.text("identity-exhausted")) }
        p { (texts.text("identity-other-way")) }
    }
}

fn wait(texts: Texts, until: Timestamp, now: Timestamp) -> Markup {
    let minutes = minutes(until, now);
    // The wait can last a day, and a large number of minutes is hard to read.
    let when = match minutes {
        ..=90 => texts.with("identity-wait-minutes", [("minutes", minutes)]),
        _ => texts.with("identity-wait-hours", [("hours", (minutes + 59) / 60)]),
    };
    html! {
        p { (when) }
        p { (texts.text("identity-also-other-way")) }
    }
}
