//! Requests by a signer's link, and the pages for a signer with nothing to sign.

use std::collections::BTreeMap;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::code;
use super::look::{EmbedMessage, PageLook};
use crate::config::EMBEDDED;
use crate::domain::envelope::{Envelope, EnvelopeStatus, Signer, SignerStatus};
use crate::domain::token::LinkToken;
use crate::http::error::HttpError;
use crate::http::middleware::limits;
use crate::http::middleware::origin::origin;
use crate::room::form::{FormError, RequestOrigin};
use crate::service::access::windows::LimitedCredential;
use crate::service::signing::access_codes;
use crate::service::signing::visits::{self, LinkVisitor};
use crate::service::{App, ServiceError};

/// Name of the cookie that identifies a browser.
pub const BROWSER: &str = "holdfast_identity";

/// Request by a signer's link, resolved to envelope and signer.
pub struct SignerVisit {
    pub token: LinkToken,
    pub envelope: Envelope,
    pub signer: Signer,
    /// Names of the others who have not signed yet.
    pub still_to_sign: Vec<String>,
    pub expired: bool,
    /// Whether the signer still has to enter a code before the document opens.
    pub locked: bool,
    /// Amount that this signer has to pay, formatted for people.
    pub owes: Option<String>,
    pub look: PageLook,
    /// Cookie of a browser that was here before.
    pub browser: Option<String>,
    /// Client address and browser of the request.
    pub origin: RequestOrigin,
    /// Path of this signer's pages.
    path: String,
}

impl FromRequestParts<App> for SignerVisit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let segments = Path::<BTreeMap<String, String>>::from_request_parts(parts, app).await;
        let token = segments
            .ok()
            .and_then(|Path(segments)| LinkToken::parse(segments.get("token")?))
            .ok_or_else(unknown_link)?;
        limits::admit(app, LimitedCredential::SigningLink, token.reveal(), parts)
            .map_err(IntoResponse::into_response)?;
        match visits::find(app, &token).await {
            Ok(Some(visitor)) => {
                let pass = cookie(parts, code::PASS);
                let (envelope, signer) = (&visitor.envelope, &visitor.signer);
                let locked = !access_codes::is_pass(app, envelope, signer, pass.as_deref());
                if locked && !is_open_to_all(parts, &token) {
                    return Err(unknown_link());
                }
                Ok(Self {
                    browser: cookie(parts, BROWSER),
                    origin: origin(app, parts),
                    locked,
                    ..Self::of(app, &token, visitor)
                })
            }
            Ok(None) => Err(unknown_link()),
            Err(error) => Err(HttpError::from(error).into_response()),
        }
    }
}

impl SignerVisit {
    fn of(app: &App, token: &LinkToken, visitor: LinkVisitor) -> Self {
        let path = format!("{}/{}", app.config.signing_path(), token.reveal());
        Self {
            token: token.clone(),
            browser: None,
            origin: RequestOrigin::default(),
            look: PageLook::of(visitor.organization),
            path,
            envelope: visitor.envelope,
            signer: visitor.signer,
            still_to_sign: visitor.still_to_sign,
            expired: visitor.expired,
            locked: true,
            owes: visitor.owes,
        }
    }

    /// Returns the path of this signer's pages.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reads envelope and signer again after a change.
    pub async fn again(self, app: &App) -> Self {
        match visits::find(app, &self.token).await {
            Ok(Some(visitor)) => Self {
                browser: self.browser,
                origin: self.origin,
                locked: self.locked,
                ..Self::of(app, &self.token, visitor)
            },
            _ => self,
        }
    }

    /// Returns the signer's id in the embedded room; none at an external provider.
    pub fn room_submitter(&self) -> Option<i64> {
        let embedded = self.envelope.sending.provider_instance.as_deref() == Some(EMBEDDED);
        self.signer
            .provider_submitter
            .as_ref()
            .filter(|_| embedded)?
            .parse()
            .ok()
    }

    /// Returns whether the page asks for a code: while the document can be read by this link.
    pub fn asks_for_code(&self) -> bool {
        let status = self.envelope.status;
        self.locked && !self.expired && (status.is_out_for_signing() || status.is_signed())
    }

    pub fn notice(
        &self,
        status: StatusCode,
        title: &str,
        happening: EmbedMessage,
        body: Markup,
    ) -> Response {
        self.look.notice(status, title, Some(happening), body)
    }

    pub fn notice_of_end(&self, status: StatusCode, title: &str, text: &str) -> Response {
        self.notice(status, title, EmbedMessage::Error, html! { p { (text) } })
    }

    /// Returns the page for a signer with nothing to sign, with the reason; `None` while the form
    /// is open.
    pub fn closed(&self) -> Option<Response> {
        let (title, text) = match (self.signer.status, self.envelope.status) {
            (SignerStatus::Completed, _) => return Some(self.signed_page("You have signed")),
            (SignerStatus::Declined, _) => return Some(self.declined_page()),
            (_, EnvelopeStatus::Voided) => ("Withdrawn", "The sender has withdrawn this document."),
            (_, EnvelopeStatus::Expired) => (
                "Expired",
                "The time limit for signing this document has passed.",
            ),
            (_, EnvelopeStatus::Declined) => {
                ("Declined", "Another signer has declined this document.")
            }
            (_, status) if status.is_out_for_signing() && self.expired => {
                return Some(self.expired_page());
            }
            (_, status) if status.is_out_for_signing() => return None,
            _ => ("Nothing to sign", "This document is not open for signing."),
        };
        Some(self.notice_of_end(StatusCode::OK, title, text))
    }

    /// Page shown while a provider cannot be reached: the link itself is valid.
    pub fn unavailable(&self, what: &str) -> Response {
        let body = html! { p { (what) " Your link is valid: try again in a few minutes." } };
        let title = "Not available right now";
        self.notice(StatusCode::BAD_GATEWAY, title, EmbedMessage::Error, body)
    }

    fn expired_page(&self) -> Response {
        let body = html! {
            p { "Links work for a limited time, to protect your document." }
            (self.renewal("E-mail me a new link"))
        };
        let title = "This link has expired";
        self.notice(StatusCode::GONE, title, EmbedMessage::Error, body)
    }

    pub fn renewal(&self, label: &str) -> Markup {
        html! {
            form method="post" action={ (self.path) "/renew" } {
                button type="submit" { (label) }
            }
        }
    }

    /// Page after signing, with the signer's copy once all have signed.
    pub fn signed_page(&self, title: &str) -> Response {
        let body = html! {
            p { "You have signed “" (self.envelope.name) "”." }
            @if let Some(amount) = self.owes.as_ref().filter(|_| !self.expired) {
                (payment(&self.path, amount))
            }
            @if !self.has_copy() {
                @if !self.still_to_sign.is_empty() {
                    p { "Still to sign:" }
                    ul { @for name in &self.still_to_sign { li { (name) } } }
                }
                p { "You will get your copy by e-mail when all parties have signed." }
            } @else if self.expired {
                p { "All parties have signed. This link has expired, so we will send your copy by e-mail." }
                (self.renewal("E-mail me my copy"))
            } @else {
                p { "All parties have signed. Download your copy; we also send it by e-mail." }
                @if self.envelope.record.copy.is_some() {
                    a.copy href={ (self.path) "/copy.pdf" } download {
                        img src={ (self.path) "/copy.png" } alt="First page of the signed document";
                    }
                }
                p { a.button href={ (self.path) "/copy.pdf" } download { "Download your copy" } }
                @if self.envelope.record.document_hash.is_some() {
                    p { a href={ (self.path) "/certificate.pdf" } download { "Download the certificate of completion" } }
                }
            }
            // A signer who still has to pay must not leave.
            @if self.owes.is_none() || self.expired {
                (self.way_back("completed"))
            }
        };
        self.notice(StatusCode::OK, title, EmbedMessage::Completed, body)
    }

    /// Leads to the sender's own page, if the envelope names one.
    fn way_back(&self, event: &str) -> Markup {
        let url = self.envelope.sending.return_url.as_deref();
        let url = url.and_then(|url| url::Url::parse(url).ok());
        html! {
            @if let Some(mut url) = url {
                @let host = url.host_str().unwrap_or_default().to_owned();
                @let id = self.envelope.id.as_str();
                @let _ = url.query_pairs_mut().append_pair("envelope_id", id).append_pair("event", event);
                p { a.button.quiet href=(url) rel="noreferrer" { "Continue to " (host) } }
            } @else {
                p { "You can close this page." }
            }
        }
    }

    pub fn declined_page(&self) -> Response {
        let body = html! { p { "We have notified the sender." } (self.way_back("declined")) };
        let title = "You have declined";
        self.notice(StatusCode::OK, title, EmbedMessage::Declined, body)
    }

    pub fn not_yet(&self, status: StatusCode, other: &str) -> Response {
        let text =
            format!("{other} signs before you. You will get an e-mail when it is your turn.");
        let body = html! { p { (text) } };
        let title = "It's not your turn yet";
        self.notice(status, title, EmbedMessage::Ready, body)
    }

    pub fn has_copy(&self) -> bool {
        self.envelope.status.is_signed()
    }

    pub fn failed(&self, error: FormError) -> Response {
        let (title, text) = match error {
            FormError::NotFound => return unknown_link(),
            FormError::Closed => ("This document is closed", "It can no longer be signed."),
            FormError::NotYourTurn => return self.not_yet(StatusCode::CONFLICT, "Another person"),
            error => return HttpError::from(room_error(error)).into_response(),
        };
        self.notice_of_end(StatusCode::CONFLICT, title, text)
    }
}

/// Returns whether a signer who still has to enter a code may request this path: the page that asks
/// for it, and the one that renews an expired link.
fn is_open_to_all(parts: &Parts, token: &LinkToken) -> bool {
    let path = parts.uri.path();
    let below = path.rsplit_once(token.reveal()).map(|(_, below)| below);
    matches!(below, Some("" | "/renew"))
}

/// Returns the value of a cookie.
fn cookie(parts: &Parts, name: &str) -> Option<String> {
    let cookies = parts.headers.get_all(header::COOKIE);
    let mut pairs = cookies
        .iter()
        .filter_map(|header| header.to_str().ok())
        .flat_map(|header| header.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(given, _)| *given == name)?;
    Some(value.to_owned())
}

/// Renders the payment step.
pub fn payment(path: &str, amount: &str) -> Markup {
    html! {
        section.payment aria-label="Payment" {
            p { "Amount due: " strong { (amount) } }
            p { a.button href={ (path) "/pay" } { "Pay " (amount) } }
        }
    }
}

/// Converts an error of the signing room to a service error.
pub fn room_error(error: FormError) -> ServiceError {
    match error {
        FormError::Store(error) => error.into(),
        FormError::Files(error) => error.into(),
        FormError::Component(error) => error.into(),
        error => ServiceError::Conflict(error.to_string()),
    }
}

/// Page for an unknown link.
pub fn unknown_link() -> Response {
    let body = html! { p { "Check that it is complete, or ask the sender for a new one." } };
    let title = "This link does not work";
    PageLook::default().notice(
        StatusCode::NOT_FOUND,
        title,
        Some(EmbedMessage::Error),
        body,
    )
}
