//! Sign-in by a mailed link, sign-out, and the open sessions of a user.

use std::collections::BTreeMap;

use axum::extract::{FromRequest, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::live::LiveList;
use super::navigation::{PageResult, Place, encoded, export};
use super::signed_in::{ConsoleForm, Visitor, cookie, is_foreign, plain, read_form, refused};
use super::sure::SensitiveAct;
use super::{PATH, passkeys, sign_on};
use crate::middleware::limits;
use crate::middleware::origin::origin;
use crate::pages::page_frame::PageLook;
use crate::pages::signer_link::unknown_link;
use holdfast_adapters::texts::Texts;
use holdfast_domain::id::SessionId;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_platform::access::{sessions, single_sign_on};
use holdfast_platform::room::form::RequestOrigin;
use holdfast_service::App;

/// Longest path to which a sign-in leads.
const NEXT_LIMIT: usize = 500;

/// Returns a path that leads to a page of the console; none for other places.
pub fn local(next: &str) -> Option<&str> {
    // Only paths of the console. Any other address would make the sign-in an open redirect.
    let rest = next.strip_prefix(PATH)?;
    // `/consolex` begins the same and is another page.
    let is_below = rest.is_empty() || rest.starts_with(['/', '?']);
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let path = rest.split(['?', '#']).next().unwrap_or_default();

    // Browsers resolve these, also in their encoded form.
    let leads_up = path.split('/').any(|part| {
        let part = part.to_ascii_lowercase().replace("%2e", ".");
        part == "." || part == ".."
    });
    let is_local = is_below && !leads_up && next.len() <= NEXT_LIMIT;

    (is_local && next.bytes().all(is_plain)).then_some(next)
}

/// Returns the address of the sign-in that leads to the page of a request.
pub fn address(parts: &Parts) -> String {
    let asked = parts
        .uri
        .path_and_query()
        .map_or("", |asked| asked.as_str());
    match local(asked) {
        // A form cannot be sent again after the sign-in, so only pages are worth coming back to.
        Some(next) if parts.method == Method::GET && next != PATH => {
            let next = encoded(next);
            format!("{PATH}/sign-in?next={next}")
        }
        _ => format!("{PATH}/sign-in"),
    }
}

#[derive(Deserialize)]
pub struct NextPage {
    next: Option<String>,
}

/// Shows the form for the address, and a button for passkeys.
pub async fn ask(
    State(app): State<App>,
    headers: HeaderMap,
    Query(query): Query<NextPage>,
) -> PageResult {
    let texts = plain(&headers);
    let title = texts.text("sign-in-title");
    let next = query.next.as_deref().and_then(local).unwrap_or_default();
    let passkey = passkeys::sign_in_form(&app, texts, next)?;
    let body = html! {
        (passkey)
        (other_ways(texts, next))
        p { (texts.text("sign-in-hint")) }
        form method="post" action={ (PATH) "/sign-in" } {
            div.field {
                label for="email" { (texts.text("sign-in-email")) }
                input id="email" name="email" type="email" required autocomplete="email" maxlength="200";
            }
            input type="hidden" name="next" value=(next);
            button type="submit" { (texts.text("sign-in-send")) }
        }
    };

    Ok(PageLook::plain(texts).console_notice(StatusCode::OK, &title, body))
}

/// Renders the form for an organization that has an issuer.
fn other_ways(texts: Texts, next: &str) -> Markup {
    html! {
        details {
            summary { (texts.text("sign-on-title")) }
            form method="get" action={ (PATH) "/sso" } {
                div.field {
                    label for="org" { (texts.text("sign-on-organization")) }
                    input id="org" name="org" required maxlength="100" autocomplete="off" spellcheck="false";
                }
                input type="hidden" name="next" value=(next);
                button.quiet type="submit" { (texts.text("sign-on-continue")) }
            }
        }
    }
}

/// Form of a visitor who signs in, sent from a page of this site and within the limit of the address.
pub struct SignInForm {
    pub texts: Texts,
    pub values: BTreeMap<String, String>,
    pub origin: RequestOrigin,
    /// Network of the visitor, if it is known.
    pub network: Option<String>,
}

impl SignInForm {
    /// Returns the page to which the sign-in leads.
    pub fn next(&self) -> Option<&str> {
        self.values.get("next").and_then(|next| local(next))
    }
}

impl FromRequest<App> for SignInForm {
    type Rejection = Response;

    async fn from_request(request: Request, app: &App) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let texts = plain(&parts.headers);
        // Another site could sign the visitor in to an account of its own and read what the visitor enters
        // there.
        if is_foreign(app, &parts.headers) {
            return Err(refused(texts));
        }

        // Before the form is read, by address: there is no credential, and each form may send a mail.
        limits::admit(app, LimitedCredential::SignIn, "", &parts)
            .map_err(IntoResponse::into_response)?;
        Ok(Self {
            texts,
            origin: origin(app, &parts),
            network: limits::counted_address(app, &parts),
            values: read_form(Request::from_parts(parts, body), app).await?,
        })
    }
}

/// Mails links. The answer is the same for every address.
pub async fn send(State(app): State<App>, form: SignInForm) -> Response {
    let texts = form.texts;
    let email = form.values.get("email").cloned().unwrap_or_default();
    let next = form.next().map(str::to_owned);
    let network = form.network.unwrap_or_default();
    // Not awaited, because the time of the answer would tell whether the address has access.
    tokio::spawn(async move {
        let requested = sessions::request_link(&app, &email, next.as_deref(), &network);
        // The visitor gets the same page in any case, so the log is the only trace of a failure.
        if let Err(error) = requested.await {
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
) -> PageResult {
    let texts = plain(&headers);
    let Some(offered) = sessions::offered(&app, &link, &code).await? else {
        return Ok(unknown_link(texts));
    };
    if !offered.is_open {
        return Ok(over(texts));
    }

    // The link proves the mailbox, for which only the button counts, too.
    if offered.leads_to_issuer() && !offered.needs_proof() {
        let next = offered.link.leads_to.as_deref().and_then(local);
        let to = sign_on::address(&offered.organization.id, next, false);
        return Ok(Redirect::to(&to).into_response());
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
    Ok(PageLook::plain(texts).notice(StatusCode::OK, &title, None, body))
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
) -> PageResult {
    // There is no session yet, and thus no token for the form. Its origin has to be enough.
    let (parts, _) = request.into_parts();
    let texts = plain(&parts.headers);
    if is_foreign(&app, &parts.headers) {
        return Err(refused(texts).into());
    }

    let offered = sessions::offered(&app, &link, &code).await?;
    let Some(offered) = offered.filter(|offered| offered.is_open) else {
        return Ok(over(texts));
    };
    let next = offered.link.leads_to.clone();
    let next = next.as_deref().and_then(local);
    if offered.leads_to_issuer() {
        // The link shows that the user has the mailbox, which the issuer cannot.
        sessions::prove(&app, &offered).await?;
        let to = sign_on::address(&offered.organization.id, next, false);
        return Ok(sign_on::onward(texts, &to));
    }

    let signed_in = sessions::sign_in(&app, offered, origin(&app, &parts)).await?;
    // None: another request was first, or the access ended a moment ago.
    let Some(secret) = signed_in else {
        return Ok(over(texts));
    };
    let cookie = [(header::SET_COOKIE, cookie(Some(&secret)))];
    Ok((cookie, Redirect::to(next.unwrap_or(PATH))).into_response())
}

/// Ends the session.
pub async fn leave(State(app): State<App>, form: ConsoleForm) -> PageResult {
    // The session ends first. The user is signed out here even if the issuer cannot be reached.
    let signed_in = &form.visitor.signed_in;
    sessions::end(&app, &signed_in.user, Some(&signed_in.session.id)).await?;

    let cookie = [(header::SET_COOKIE, cookie(None))];
    Ok(match single_sign_on::end_url(&app, signed_in).await {
        Some(url) => (cookie, sign_on::onward(form.visitor.texts, url.as_str())).into_response(),
        None => (cookie, Redirect::to(&format!("{PATH}/sign-in"))).into_response(),
    })
}

/// Lists the passkeys and open sessions of the user.
pub async fn sessions(State(app): State<App>, visitor: Visitor) -> PageResult {
    let texts = visitor.texts;
    let open = sessions::list(&app, &visitor.signed_in.user).await?;
    let passkeys = passkeys::section(&app, &visitor).await?;
    let body = html! {
        (passkeys)
        h2 { (texts.text("console-open-sessions")) }
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
                    @let end = format!("{PATH}/sessions/{}/end", session.id);
                    (visitor.button(&end, Some("quiet"), "console-end-session"))
                }
            }
        }
        (export(texts, "sessions.csv"))
    };

    Ok(visitor.live_page(
        Place::Sessions,
        &LiveList::Sessions,
        &texts.text("console-sessions"),
        body,
    ))
}

/// Ends one session of the user.
pub async fn end_session(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    let (user, texts) = (&form.visitor.signed_in.user, form.visitor.texts);
    let back = format!("{PATH}/sessions");
    let open = sessions::list(&app, user).await?;
    // Only sessions of the user can end here. For another id the user gets the list.
    let session = SessionId::parse(&id).and_then(|id| open.into_iter().find(|one| one.id == id));
    let Some(session) = session else {
        return Ok(Redirect::to(&back).into_response());
    };

    let named = [session.address, session.browser];
    form.meant(&SensitiveAct {
        label: texts.text("console-end-session"),
        objects: named.into_iter().flatten().collect(),
        consequence: texts.text("sure-session-end"),
        is_typed: false,
        back: back.clone(),
    })?;

    sessions::end(&app, user, Some(&session.id)).await?;
    Ok(Redirect::to(&back).into_response())
}
