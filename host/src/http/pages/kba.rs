//! Pages of the identity check in front of a document.

use std::future::Future;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};

use super::look::EmbedMessage;
use super::visit::{BROWSER, SignerVisit};
use crate::domain::clock::Timestamp;
use crate::domain::identity::entry;
use crate::http::error::HttpError;
use crate::service::kba::{
    self, IdentityGate, IdentityInput, IdentityNotice, IdentityPage, IdentityPrompt,
    IdentityQuestion, IdentitySubmission,
};
use crate::service::signing::links::MAIL_LIFE;
use crate::service::{App, ServiceError};
use crate::traces;

/// Recognizes the browser of a signer who has passed, and records an unknown one. Returns the
/// cookie to set in that case.
pub async fn recognise(
    app: &App,
    visit: &SignerVisit,
) -> Result<Option<HeaderValue>, ServiceError> {
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
    let done = tokio::spawn(traces::along(step)).await;
    done.unwrap_or_else(|error| Err(ServiceError::Internal(error.to_string())))
}

fn answer(app: &App, visit: &SignerVisit, gate: Result<IdentityGate, ServiceError>) -> Response {
    match gate {
        Ok(IdentityGate::Open) => Redirect::to(visit.path()).into_response(),
        Ok(IdentityGate::Shown(shown)) => page(visit, &shown, app.clock.now()),
        Err(error @ (ServiceError::OtherProvider(..) | ServiceError::NotConfigured(_))) => {
            tracing::warn!(envelope = %visit.envelope.id, %error, "identity check unavailable");
            visit.unavailable("Your identity cannot be checked right now.")
        }
        Err(error) => HttpError::from(error).into_response(),
    }
}

fn page(visit: &SignerVisit, shown: &IdentityPage, now: Timestamp) -> Response {
    let (title, body) = match &shown.asked {
        IdentityPrompt::Identity(fields) => ("Confirm who you are", identity(visit, fields, shown)),
        IdentityPrompt::Code { until } => ("Enter your code", code(visit, shown, *until, now)),
        IdentityPrompt::Questions { questions, until } => (
            "Answer these questions",
            asked(visit, questions, shown, *until, now),
        ),
        IdentityPrompt::Again { left } => ("Your answers were not correct", again(visit, *left)),
        IdentityPrompt::Wait { until } => ("Come back later", wait(*until, now)),
        IdentityPrompt::Exhausted => ("No more attempts", exhausted()),
        IdentityPrompt::Busy => ("One moment", busy(visit)),
        IdentityPrompt::Unavailable { again } => (
            "Your identity could not be checked",
            unavailable(visit, *again),
        ),
    };
    let body = html! {
        p { "Before “" (visit.envelope.name) "” opens, the sender wants to be sure that it is you." }
        @if let Some(notice) = shown.notice {
            p.problem role="alert" { (told(notice)) }
        }
        (body)
    };
    let status = match shown.problems.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let ready = Some(EmbedMessage::Ready);
    visit.look.notice(status, title, ready, body)
}

fn told(notice: IdentityNotice) -> &'static str {
    match notice {
        IdentityNotice::TimeIsOver => "The time limit has passed. You can start again.",
        IdentityNotice::WrongCode => "That code is not correct. We sent you a new one.",
        IdentityNotice::NotAccepted => "Your entries were not accepted. Check them and try again.",
        IdentityNotice::TooMany => {
            "Too many codes were requested. Wait a while before you try again."
        }
        IdentityNotice::TryLater => "The identity service did not answer. Try again in a moment.",
    }
}

fn wrong(name: &str, shown: &IdentityPage) -> Markup {
    html! {
        @if let Some(why) = shown.problems.get(name) {
            p.problem id={ (name) "-problem" } { (why) }
        }
    }
}

fn identity(visit: &SignerVisit, fields: &[IdentityInput], shown: &IdentityPage) -> Markup {
    let problem = |name: &str| shown.problems.contains_key(name);
    let described = |name: &str| problem(name).then(|| format!("{name}-problem"));
    html! {
        form.identity method="post" action=(visit.path()) novalidate autocomplete="on" {
            @for field in fields {
                @let how = entry(&field.name);
                div.field.invalid[problem(&field.name)] {
                    label for=(field.name) {
                        (field.label)
                        @if field.required { span.required { " (required)" } }
                    }
                    input id=(field.name) name=(field.name) type=(how.kind) value=(field.value)
                        autocomplete=[how.autocomplete] inputmode=[how.inputmode]
                        maxlength="100" required[field.required]
                        aria-invalid=[problem(&field.name).then_some("true")]
                        aria-describedby=[described(&field.name)];
                    (wrong(&field.name, shown))
                }
            }
            @if !fields.is_empty() {
                div.consent.invalid[problem("consent")] {
                    label {
                        input type="checkbox" name="consent" value="yes" required
                            aria-invalid=[problem("consent").then_some("true")]
                            aria-describedby=[described("consent")];
                        " I agree that this information is sent to an identity-verification service, "
                        "which looks up records about me to build questions that I can answer."
                    }
                    (wrong("consent", shown))
                }
                p.fine { "It is used for this check alone and is not kept here: only the result, its time and your internet address are." }
            }
            button type="submit" { "Continue" }
        }
    }
}

fn minutes(until: Timestamp, now: Timestamp) -> i64 {
    ((until.as_seconds() - now.as_seconds() + 59) / 60).max(1)
}

fn time_left(until: Timestamp, now: Timestamp) -> Markup {
    let minutes = minutes(until, now);
    html! {
        p role="status" {
            "You have " (minutes) (if minutes == 1 { " minute" } else { " minutes" }) " for this."
        }
    }
}

fn code(visit: &SignerVisit, shown: &IdentityPage, until: Timestamp, now: Timestamp) -> Markup {
    html! {
        p { "A code was sent to your phone." }
        (time_left(until, now))
        form method="post" action=(visit.path()) novalidate {
            div.field.invalid[shown.problems.contains_key("code")] {
                label for="code" { "Code" }
                input #code name="code" type="text" inputmode="numeric" maxlength="12"
                    autocomplete="one-time-code" required;
                (wrong("code", shown))
            }
            button type="submit" { "Continue" }
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
    html! {
        (time_left(until, now))
        form.questions method="post" action=(visit.path()) novalidate {
            @for question in questions {
                fieldset.invalid[shown.problems.contains_key(&question.id)] {
                    legend { (question.text) }
                    (wrong(&question.id, shown))
                    @for (id, text) in &question.choices {
                        label.choice {
                            input type="radio" name=(question.id) value=(id) required;
                            " " (text)
                        }
                    }
                }
            }
            button type="submit" { "Send answers" }
        }
    }
}

fn busy(visit: &SignerVisit) -> Markup {
    html! {
        p { "We are checking your answers." }
        p { a.button href=(visit.path()) { "Look again" } }
    }
}

fn unavailable(visit: &SignerVisit, again: bool) -> Markup {
    html! {
        p { "There are not enough records about you to ask questions. This is not your fault and has no consequences." }
        @if again {
            p { "If you made a mistake in your entries, enter them again." }
            (once_more(visit))
        }
        p { "The sender can arrange another way to sign." }
    }
}

fn once_more(visit: &SignerVisit) -> Markup {
    html! {
        form method="post" action=(visit.path()) {
            button type="submit" name="again" value="again" { "Try again" }
        }
    }
}

fn again(visit: &SignerVisit, left: usize) -> Markup {
    let times = match left {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    };
    html! {
        p { "At least one answer was wrong. You can try " (times) " more, with other questions." }
        (once_more(visit))
    }
}

fn exhausted() -> Markup {
    html! {
        p { "You have used all attempts." }
        p { "The sender can arrange another way to sign." }
    }
}

fn wait(until: Timestamp, now: Timestamp) -> Markup {
    let minutes = minutes(until, now);
    let when = match minutes {
        ..=1 => "in a minute".to_owned(),
        2..=90 => format!("in {minutes} minutes"),
        _ => format!("in {} hours", (minutes + 59) / 60),
    };
    html! {
        p { "You can try again " (when) "." }
        p { "The sender can also arrange another way to sign." }
    }
}
