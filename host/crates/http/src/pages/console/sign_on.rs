//! Sign-in at the organization's own issuer (OpenID Connect).

use axum::extract::{FromRequestParts as _, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use serde::Deserialize;
use serde_json::json;

use super::PATH;
use super::navigation::failed;
use super::sign_in::local;
use super::signed_in::{Visitor, cookie, is_foreign, named_cookie, plain, refused};
use crate::middleware::extract::valid;
use crate::middleware::limits;
use crate::middleware::origin::origin;
use crate::pages::page_frame::PageLook;
use holdfast_adapters::texts::Texts;
use holdfast_domain::id::OrgId;
use holdfast_platform::access::single_sign_on::{self, IssuerAnswer, LIFE, SignOnProblem};
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_service::App;
use holdfast_service::builder::{StartSession, start};

/// Cookie of a sign-in that continues at the issuer. Browsers send it with the issuer's redirect.
const COOKIE: &str = "__Host-holdfast-sso";

/// Returns the address of an organization's sign-in that leads to a page of the console, or confirms the session.
pub fn address(org: &OrgId, next: Option<&str>, confirms: bool) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("next", next.unwrap_or(PATH));
    if confirms {
        query.append_pair("confirm", "yes");
    }
    format!("{PATH}/sso/{org}?{}", query.finish())
}

fn pending(value: &str, seconds: u64) -> HeaderValue {
    let cookie =
        format!("{COOKIE}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax");
    // The value is base64.
    HeaderValue::from_str(&cookie).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Renders a page that leads on. The browser then sends the session's cookie, which it keeps back after a redirect
/// from another site, and no form of this site leads to another.
pub fn onward(texts: Texts, to: &str) -> Response {
    let body = html! { p { a href=(to) { (texts.text("sign-on-continue")) } } };
    let title = texts.text("sign-in-title");
    let page = PageLook::plain(texts).notice(StatusCode::OK, &title, None, body);
    // The page has a link as well, so it works without the header.
    match HeaderValue::from_str(&format!("0; url={to}")) {
        Ok(refresh) => ([("refresh", refresh)], page).into_response(),
        Err(_) => page,
    }
}

/// Leads to the field builder, which is on another server where the console has its own.
pub fn to_builder(app: &App, texts: Texts, url: &str) -> Response {
    match app.config.console.url {
        Some(_) => onward(texts, url),
        None => Redirect::to(url).into_response(),
    }
}

/// Opens the field builder on what `member` of its request names, such as `template_id`. It leads back to `page`.
pub async fn open_builder(
    app: &App,
    visitor: &Visitor,
    (member, id): (&str, &str),
    page: &str,
) -> Response {
    // The builder may be on another host, so the way back is a whole URL.
    let back = format!("{}{page}", app.config.console_url());
    let request = match valid::<StartSession>(json!({ member: id, "return_url": back })) {
        Ok(request) => request,
        Err(error) => return error.into_response(),
    };

    match start(app, &app.access, &app.pages, &visitor.caller, &request).await {
        Ok(issued) => to_builder(app, visitor.texts, &issued.builder_url),
        Err(error) => failed(error),
    }
}

#[derive(Deserialize)]
pub struct ChosenOrganization {
    org: String,
    next: Option<String>,
}

/// Leads to the sign-in of an organization by its id.
pub async fn choose(headers: HeaderMap, Query(chosen): Query<ChosenOrganization>) -> Response {
    let texts = plain(&headers);
    let Some(org) = OrgId::parse(chosen.org.trim()) else {
        return problem(texts, &SignOnProblem::Unknown);
    };
    let next = chosen.next.as_deref().and_then(local);
    onward(texts, &address(&org, next, false))
}

#[derive(Deserialize)]
pub struct SignOnQuery {
    next: Option<String>,
    /// `yes` if the sign-in is to confirm the session.
    confirm: Option<String>,
}

/// Names the organization and its issuer. Only the button leads on: a link of another site could sign the visitor in as
/// another user.
pub async fn offer(
    State(app): State<App>,
    Path(org): Path<String>,
    Query(query): Query<SignOnQuery>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let texts = plain(&parts.headers);
    // Each request reads an organization for a stranger, so addresses are counted.
    if let Err(refused) = limits::admit(&app, LimitedCredential::SignIn, "", &parts) {
        return refused.into_response();
    }
    let Some(org) = OrgId::parse(&org) else {
        return problem(texts, &SignOnProblem::Unknown);
    };

    let offered = match single_sign_on::offered(&app, &org).await {
        Ok(offered) => offered,
        Err(error) => return problem(texts, &error),
    };
    let values = [
        ("organization", offered.organization.as_str()),
        ("issuer", offered.issuer.as_str()),
    ];

    let next = query.next.as_deref().and_then(local);
    let action = address(&org, next, query.confirm.as_deref() == Some("yes"));
    let body = html! {
        p { (texts.with("sign-on-offer", values)) }
        form method="post" action=(action) {
            button type="submit" { (texts.text("sign-on-continue")) }
        }
    };

    let title = texts.text("sign-in-title");
    PageLook::plain(texts).notice(StatusCode::OK, &title, None, body)
}

/// Leads to the issuer.
pub async fn begin(
    State(app): State<App>,
    Path(org): Path<String>,
    Query(query): Query<SignOnQuery>,
    request: Request,
) -> Response {
    let (mut parts, _) = request.into_parts();
    let texts = plain(&parts.headers);
    // Another site could begin a sign-in that ends in an account of its own.
    if is_foreign(&app, &parts.headers) {
        return refused(texts);
    }
    if let Err(refused) = limits::admit(&app, LimitedCredential::SignIn, "", &parts) {
        return refused.into_response();
    }
    let Some(org) = OrgId::parse(&org) else {
        return problem(texts, &SignOnProblem::Unknown);
    };

    // Only a confirmation belongs to the present session. Without one, the sign-in begins a new session.
    let visitor = match query.confirm.as_deref() {
        Some("yes") => Visitor::from_request_parts(&mut parts, &app).await.ok(),
        _ => None,
    };
    let confirms = visitor.as_ref().map(|visitor| &visitor.signed_in);

    let next = query.next.as_deref().and_then(local);
    match single_sign_on::begin(&app, &org, next, confirms).await {
        Ok(begun) => {
            let cookie = [(header::SET_COOKIE, pending(&begun.cookie, LIFE.as_secs()))];
            (cookie, onward(texts, begun.url.as_str())).into_response()
        }
        Err(error) => problem(texts, &error),
    }
}

/// Signs in with the issuer's answer.
pub async fn finish(
    State(app): State<App>,
    Query(answer): Query<IssuerAnswer>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let texts = plain(&parts.headers);
    if let Err(refused) = limits::admit(&app, LimitedCredential::SignIn, "", &parts) {
        return refused.into_response();
    }

    // The sealed cookie binds the answer to the browser that began: an answer from elsewhere finds none.
    let begun = named_cookie(&parts.headers, COOKIE).unwrap_or_default();
    let finished = single_sign_on::finish(&app, begun, &answer, origin(&app, &parts)).await;
    // The first answer uses the cookie up, also when it is refused.
    let over = [(header::SET_COOKIE, pending("", 0))];
    match finished {
        Ok(finished) => {
            let next = finished.next.as_deref().and_then(local).unwrap_or(PATH);
            let mut page = (over, onward(texts, next)).into_response();
            if let Some(secret) = &finished.session {
                // Appended, because the response already ends the other cookie.
                page.headers_mut()
                    .append(header::SET_COOKIE, cookie(Some(secret)));
            }

            page
        }
        Err(error) => (over, problem(texts, &error)).into_response(),
    }
}

/// Shows why the sign-in failed.
pub fn problem(texts: Texts, problem: &SignOnProblem) -> Response {
    let (status, text) = match problem {
        SignOnProblem::Unknown => (StatusCode::NOT_FOUND, "sign-on-unknown"),
        SignOnProblem::Over => (StatusCode::GONE, "sign-on-over"),
        SignOnProblem::Refused(_) => (StatusCode::FORBIDDEN, "sign-on-refused"),
        // The issuer or its settings are at fault, and not the visitor.
        SignOnProblem::Untrusted(_) | SignOnProblem::Address(_) | SignOnProblem::Issuer(_) => {
            (StatusCode::BAD_GATEWAY, "sign-on-failed")
        }
        SignOnProblem::NoAddress => (StatusCode::FORBIDDEN, "sign-on-no-address"),
        SignOnProblem::NoRole => (StatusCode::FORBIDDEN, "sign-on-no-role"),
        SignOnProblem::Ended => (StatusCode::FORBIDDEN, "sign-on-ended"),
        SignOnProblem::OtherAccount => (StatusCode::FORBIDDEN, "sign-on-other-account"),
        SignOnProblem::OtherUser => (StatusCode::FORBIDDEN, "sign-on-other-user"),
        SignOnProblem::Weak => (StatusCode::FORBIDDEN, "sign-on-weak"),
        SignOnProblem::Failed(error) => {
            tracing::error!(%error, "a sign-in at an issuer failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "sign-on-failed")
        }
    };

    // A failure of our own is logged above as an error.
    if !matches!(problem, SignOnProblem::Failed(_)) {
        tracing::info!(%problem, "a sign-in at an issuer was refused");
    }

    let body = html! {
        p { (texts.text(text)) }
        @if let SignOnProblem::Refused(why) = problem { p.soft { code { (why) } } }
        p { a href={ (PATH) "/sign-in" } { (texts.text("sign-in-title")) } }
    };

    let title = texts.text("sign-on-refused-title");
    PageLook::plain(texts).notice(status, &title, None, body)
}
