//! Sign-in by a mailed link, sign-out, and the open sessions of a user.

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;

use super::PATH;
use super::frame::{Place, failed};
use super::visitor::{ConsoleForm, Visitor, cookie, plain, read_form, refused};
use crate::domain::id::SessionId;
use crate::http::middleware::limits;
use crate::http::middleware::origin::origin;
use crate::http::pages::look::PageLook;
use crate::http::pages::visit::unknown_link;
use crate::service::App;
use crate::service::access::sessions;
use crate::service::access::windows::LimitedCredential;
use crate::texts::Texts;

/// Whether a page of another site sent the request. Such a page could sign the visitor in to a foreign account.
fn is_foreign(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    site.is_some_and(|site| site != "same-origin")
}

/// Shows the form for the address.
pub async fn ask(headers: HeaderMap) -> Response {
    let texts = plain(&headers);
    let title = texts.text("sign-in-title");
    let body = html! {
        p { (texts.text("sign-in-hint")) }
        form method="post" action={ (PATH) "/sign-in" } {
            div.field {
                label for="email" { (texts.text("sign-in-email")) }
                input id="email" name="email" type="email" required autocomplete="email" maxlength="200";
            }
            button type="submit" { (texts.text("sign-in-send")) }
        }
    };
    PageLook::plain(texts).notice(StatusCode::OK, &title, None, body)
}

/// Mails links. The answer is the same for every address.
pub async fn send(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let texts = plain(&parts.headers);
    if is_foreign(&parts.headers) {
        return refused(texts);
    }
    if let Err(refused) = limits::admit(&app, LimitedCredential::SignIn, "", &parts) {
        return refused.into_response();
    }
    let values = match read_form(Request::from_parts(parts, body), &app).await {
        Ok(values) => values,
        Err(refused) => return refused,
    };
    let email = values.get("email").cloned().unwrap_or_default();
    tokio::spawn(async move {
        if let Err(error) = sessions::request_link(&app, &email).await {
            tracing::error!(%error, "a sign-in link could not be sent");
        }
    });
    let title = texts.text("sign-in-sent-title");
    let text = html! { p { (texts.text("sign-in-sent")) } };
    PageLook::plain(texts).notice(StatusCode::OK, &title, None, text)
}

/// Shows the user of a link. Only the button signs in, because programs follow the links of mails.
pub async fn offer(
    State(app): State<App>,
    headers: HeaderMap,
    Path((link, code)): Path<(String, String)>,
) -> Response {
    let texts = plain(&headers);
    let offered = match sessions::offered(&app, &link, &code).await {
        Ok(Some(offered)) => offered,
        Ok(None) => return unknown_link(texts),
        Err(error) => return failed(error),
    };
    if !offered.is_open {
        return over(texts);
    }
    let values = [
        ("email", offered.user.email.as_str()),
        ("organization", offered.organization.name.as_str()),
    ];
    let body = html! {
        p { (texts.with("sign-in-as", values)) }
        form method="post" action={ (PATH) "/enter/" (link) "/" (code) } {
            button type="submit" { (texts.text("sign-in-button")) }
        }
    };
    let title = texts.text("sign-in-title");
    PageLook::plain(texts).notice(StatusCode::OK, &title, None, body)
}

/// Page of a used or expired link.
fn over(texts: Texts) -> Response {
    let body = html! {
        p { (texts.text("sign-in-over")) }
        p { a href={ (PATH) "/sign-in" } { (texts.text("sign-in-send")) } }
    };
    let title = texts.text("sign-in-over-title");
    PageLook::plain(texts).notice(StatusCode::GONE, &title, None, body)
}

/// Signs in. Each sign-in begins a new session.
pub async fn enter(
    State(app): State<App>,
    Path((link, code)): Path<(String, String)>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let texts = plain(&parts.headers);
    if is_foreign(&parts.headers) {
        return refused(texts);
    }
    let signed_in = async {
        match sessions::offered(&app, &link, &code).await? {
            Some(offered) => sessions::sign_in(&app, offered, origin(&app, &parts)).await,
            None => Ok(None),
        }
    };
    match signed_in.await {
        Ok(Some(secret)) => {
            let cookie = [(header::SET_COOKIE, cookie(Some(&secret)))];
            (cookie, Redirect::to(PATH)).into_response()
        }
        Ok(None) => over(texts),
        Err(error) => failed(error),
    }
}

/// Ends the session.
pub async fn leave(State(app): State<App>, form: ConsoleForm) -> Response {
    let signed_in = &form.visitor.signed_in;
    if let Err(error) = sessions::end(&app, &signed_in.user, Some(&signed_in.session.id)).await {
        return failed(error);
    }
    let cookie = [(header::SET_COOKIE, cookie(None))];
    (cookie, Redirect::to(&format!("{PATH}/sign-in"))).into_response()
}

/// Lists the open sessions of the user.
pub async fn sessions(State(app): State<App>, visitor: Visitor) -> Response {
    let texts = visitor.texts;
    let open = match sessions::list(&app, &visitor.signed_in.user).await {
        Ok(open) => open,
        Err(error) => return failed(error),
    };
    let body = html! {
        p { (texts.text("console-sessions-hint")) }
        ul.rows {
            @for session in &open {
                li {
                    p {
                        strong { (session.address.as_deref().unwrap_or("–")) }
                        @if session.id == visitor.signed_in.session.id {
                            " " span.tag { (texts.text("console-this-session")) }
                        }
                    }
                    p.soft { (session.browser.as_deref().unwrap_or("–")) }
                    p.soft { (texts.text("console-signed-in")) " " (visitor.moment(session.created_at)) }
                    form method="post" action={ (PATH) "/sessions/" (session.id) "/end" } {
                        (visitor.token())
                        button.quiet type="submit" { (texts.text("console-end-session")) }
                    }
                }
            }
        }
    };
    visitor.page(Place::Sessions, &texts.text("console-sessions"), body)
}

/// Ends one session of the user.
pub async fn end_session(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> Response {
    if let Some(id) = SessionId::parse(&id)
        && let Err(error) = sessions::end(&app, &form.visitor.signed_in.user, Some(&id)).await
    {
        return failed(error);
    }
    Redirect::to(&format!("{PATH}/sessions")).into_response()
}
