//! Requests by a signer's link, and the pages for a signer with nothing to sign.

use std::collections::BTreeMap;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use super::code;
use super::page_frame::{EmbedMessage, PageLook, languages, texts_for};
use crate::error::HttpError;
use crate::middleware::limits::{self, CredentialLookup};
use crate::middleware::origin::origin;
use holdfast_adapters::texts::{ShownConsent, Texts, WayOut};
use holdfast_base::config::EMBEDDED;
use holdfast_domain::envelope::{
    Envelope, EnvelopeLink, EnvelopeStatus, RecipientKind, SignatureExecution, Signer, SignerKind,
    SignerStatus,
};
use holdfast_domain::locale::Locale;
use holdfast_domain::token::LinkToken;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_platform::room::form::{FormError, RequestOrigin};
use holdfast_platform::{Core, ServiceError};
use holdfast_service::App;
use holdfast_service::signing::access_codes;
use holdfast_service::signing::visits::{self, LinkVisitor};
use holdfast_store::disclosures::DocumentReader;

/// Name of the cookie that identifies a browser.
pub const BROWSER: &str = "holdfast_identity";

/// Request by a signer's link, resolved to envelope and signer.
pub struct SignerVisit {
    pub token: LinkToken,
    pub envelope: Envelope,
    pub signer: Signer,
    /// Names of the others who have not signed yet.
    pub still_to_sign: Vec<String>,
    /// Whether a witness may sign on this signer's device now.
    pub has_witness: bool,
    pub expired: bool,
    /// Whether the signer still has to enter a code before the document opens.
    pub locked: bool,
    /// Amount that this signer has to pay, formatted for people.
    pub owes: Option<String>,
    pub look: PageLook,
    pub texts: Texts,
    /// Consent to signing electronically, in the words that this signer reads.
    pub consent: ShownConsent,
    /// Whether the signer has to open the document as PDF before signing.
    pub require_access: bool,
    /// Whether every page has to be shown to the signer before signing.
    pub require_pages: bool,
    /// Whether the response goes to a person: not the answer to a HEAD request or a prefetch.
    pub is_seen: bool,
    /// Cookie of a browser that was here before.
    pub browser: Option<String>,
    /// Client address and browser of the request.
    pub origin: RequestOrigin,
    /// Network of the request, if it is known, by which wrong codes count.
    pub network: String,
    /// Path of this signer's pages.
    path: String,
    /// Address of this signer's pages, on the host that the request was for.
    url: String,
    /// The sender's page to go back to, if its origin is registered still.
    back: Option<String>,
}

impl FromRequestParts<App> for SignerVisit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        // The organization is not known yet, so only the browser can name a language.
        let unknown = texts_for(&parts.headers, Locale::default());
        let token = link_token(parts, app, unknown).await?;
        let failed = |error: HttpError| error.into_response();

        // Wrong tokens count against their network, and links that this node accepted lately do not wait
        // behind them.
        let counted = Some(LimitedCredential::SigningLink);
        let lookup = CredentialLookup::begin(app, counted, token.reveal(), parts).await;
        let lookup = lookup.map_err(failed)?;
        let found = visits::find(lookup.core(), &token).await;
        let found = found.map_err(|error| failed(error.into()))?;
        let elsewhere = match &found {
            Some(_) => None,
            None => now_substitute(lookup.core(), &token)
                .await
                .map_err(failed)?,
        };
        let is_known = found.is_some() || elsewhere.is_some();
        lookup.settle(app, is_known).map_err(failed)?;
        if let Some(page) = elsewhere {
            return Err(page.into_response());
        }

        match found {
            Some(visitor) => {
                let pass = cookie(parts, code::PASS);
                let (envelope, signer) = (&visitor.envelope, &visitor.signer);
                let locked = !access_codes::is_pass(app, envelope, signer, &token, pass.as_deref());
                // Pages, pictures and copies of a locked link answer like those of an unknown one.
                if locked && !is_open_to_all(app, parts, &token) {
                    return Err(unknown_link(unknown));
                }

                let organization = visitor.organization.settings.language;
                let browser = languages(&parts.headers);
                let locale = Locale::chosen(visitor.signer.locale, browser, organization);
                let host = parts.headers.get(header::HOST);
                let host = host.and_then(|host| host.to_str().ok());
                let settings = &visitor.organization.settings;
                let base = app.config.signing_url_at(settings, host);
                Ok(Self {
                    url: format!("{base}/{}", token.reveal()),
                    browser: cookie(parts, BROWSER),
                    is_seen: is_seen(parts),
                    origin: origin(app, parts),
                    network: limits::counted_address(app, parts).unwrap_or_default(),
                    locked,
                    ..Self::of(app, &token, visitor, locale)
                })
            }
            None => Err(unknown_link(unknown)),
        }
    }
}

impl SignerVisit {
    fn of(app: &App, token: &LinkToken, visitor: LinkVisitor, locale: Locale) -> Self {
        let settings = &visitor.organization.settings;
        let texts = Texts::of(locale);
        let owes = visitor.owes.as_ref();
        let path = format!("{}/{}", app.config.signing_path(), token.reveal());
        let back = visitor.envelope.sending.return_url.clone();
        // Checked at each visit: an origin that the organization has withdrawn is no way back any more.
        let back = back.filter(|url| settings.permits_return_to(url));

        let way_out = if visitor.signer.same_device {
            WayOut::Leave
        } else {
            WayOut::of(visitor.envelope.sending.may_decline)
        };

        Self {
            token: token.clone(),
            // The next four and the URL belong to a request. The extractor and `again` fill them in.
            browser: None,
            is_seen: true,
            origin: RequestOrigin::default(),
            network: String::new(),
            texts,
            consent: texts.consent(
                &visitor.organization,
                visitor.signer.kind,
                visitor.envelope.jurisdiction(),
                way_out,
            ),
            require_access: settings.require_access_demonstration,
            require_pages: settings.require_all_pages_shown,
            owes: owes.map(|asked| texts.amount(asked.amount_cents, &asked.currency)),
            look: PageLook::of(visitor.organization, texts),
            path,
            url: String::new(),
            back,
            envelope: visitor.envelope,
            signer: visitor.signer,
            still_to_sign: visitor.still_to_sign,
            has_witness: visitor.has_witness,
            expired: visitor.expired,
            // The safe default, because only the extractor has seen the cookie.
            locked: true,
        }
    }

    /// Returns the path of this signer's pages.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the address of this signer's pages.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address below which all signers' pages are, on the host that the request was for.
    pub fn base(&self) -> &str {
        self.url.rsplit_once('/').map_or("", |(base, _)| base)
    }

    /// Reads envelope and signer again after a change.
    pub async fn again(self, app: &App) -> Self {
        match visits::find(app, &self.token).await {
            Ok(Some(visitor)) => Self {
                browser: self.browser,
                is_seen: self.is_seen,
                origin: self.origin,
                network: self.network,
                url: self.url,
                locked: self.locked,
                ..Self::of(app, &self.token, visitor, self.texts.locale())
            },
            // The act is done, and a failing read must not turn it into an error page.
            _ => self,
        }
    }

    /// Returns the signer's id in the embedded room; none at an external provider.
    pub fn room_submitter(&self) -> Option<i64> {
        // Submitters of other providers have ids as well, which mean nothing in this room.
        let embedded = self.envelope.sending.provider_instance.as_deref() == Some(EMBEDDED);
        self.signer
            .provider_submitter
            .as_ref()
            .filter(|_| embedded)?
            .parse()
            .ok()
    }

    /// Returns the signer as a reader of the document in the signing room.
    pub fn reader(&self, submitter: i64) -> DocumentReader<'_> {
        DocumentReader {
            org: &self.envelope.org,
            submitter,
            person: &self.signer.email,
        }
    }

    /// Returns whether the page asks for a code: while the document can be read by this link.
    pub fn asks_for_code(&self) -> bool {
        // An expired link offers only its renewal, and an ended document only the reason. Neither needs a
        // code.
        let status = self.envelope.status;
        self.locked && !self.expired && (status.is_out_for_signing() || status.is_signed())
    }

    /// Renders a page; `title` is the key of its title.
    pub fn notice(
        &self,
        status: StatusCode,
        title: &'static str,
        happening: EmbedMessage,
        body: Markup,
    ) -> Response {
        let title = self.texts.text(title);
        self.look.notice(status, &title, Some(happening), body)
    }

    /// Names the document. Its sender is at the top of the page: a person may have several links.
    fn document(&self) -> Markup {
        html! { p.fine { bdi { (self.envelope.name) } } }
    }

    /// Renders a page with one sentence; `title` and `text` are keys.
    pub fn notice_of_end(
        &self,
        status: StatusCode,
        title: &'static str,
        text: &'static str,
    ) -> Response {
        let body = html! { (self.document()) p { (self.texts.text(text)) } };
        self.notice(status, title, EmbedMessage::Error, body)
    }

    /// Returns the page for a signer with nothing to sign, with the reason; `None` while the form
    /// is open.
    pub fn closed(&self) -> Option<Response> {
        // The signer's own act comes first: a signer who is done still reaches the copy after the document
        // has ended.
        match self.signer.status {
            SignerStatus::Completed => return Some(self.signed_page(false)),
            SignerStatus::Declined => return Some(self.declined_page()),
            SignerStatus::Pending | SignerStatus::Viewed | SignerStatus::Started => {}
        }

        let is_open = self.envelope.status.is_out_for_signing();
        let (title, text) = match end_of(&self.envelope) {
            // The reason why the document ended is more useful than the age of the link.
            Some(end) => end,
            None if is_open && self.expired => return Some(self.expired_page()),
            None if is_open => return None,
            None => ("nothing-to-sign-title", "nothing-to-sign"),
        };

        Some(self.notice_of_end(StatusCode::OK, title, text))
    }

    /// Page shown while a provider cannot be reached: the link itself is valid. `what` is the key of
    /// its text.
    pub fn unavailable(&self, what: &'static str) -> Response {
        self.notice_of_end(StatusCode::BAD_GATEWAY, "unavailable-title", what)
    }

    fn expired_page(&self) -> Response {
        let body = html! {
            (self.document())
            p { (self.texts.text("link-expired")) }
            (self.renewal("link-renew"))
        };
        let title = "link-expired-title";
        self.notice(StatusCode::GONE, title, EmbedMessage::Error, body)
    }

    /// Renders the button that mails a link; `label` is the key of its text.
    fn renewal(&self, label: &'static str) -> Markup {
        html! {
            form method="post" action={ (self.path) "/renew" } {
                button type="submit" { (self.texts.text(label)) }
            }
        }
    }

    /// Page after signing, with the signer's copy once all have done their part. `thanks` is for the
    /// first view. It uses "signed" only of a person who executed a signature.
    pub fn signed_page(&self, thanks: bool) -> Response {
        let texts = self.texts;
        let signer = &self.signer;
        let (title, sentence) = match signer.execution {
            // An approval is no signature, so the page never states that an approver signed.
            _ if signer.kind == SignerKind::Approver => ("approved-title", "approved-document"),
            Some(SignatureExecution::NotAsked) => ("done-title", "done-document"),
            _ => ("signed-title", "signed-document"),
        };
        let title = if thanks { "signed-thanks" } else { title };

        let body = html! {
            p { (texts.with(sentence, [("document", self.envelope.name.as_str())])) }
            @if let Some(amount) = self.owes.as_ref().filter(|_| !self.expired) {
                (payment(texts, &self.path, amount))
            }
            @if let Some((_, end)) = end_of(&self.envelope) {
                p { (texts.text(end)) }
            } @else if !self.has_copy() {
                @if self.has_witness && !self.expired { (self.witness()) }
                @if !self.still_to_sign.is_empty() {
                    p { (texts.text("signed-still-to-sign")) }
                    ul { @for name in &self.still_to_sign { li { (name) } } }
                }
                p { (texts.text("signed-copy-later")) }
            } @else if self.expired {
                p { (texts.text("signed-copy-expired")) }
                (self.renewal("signed-mail-copy"))
            } @else {
                p { (texts.text("signed-copy-ready")) }
                @if self.envelope.record.copy.is_some() {
                    a.copy href={ (self.path) "/copy.pdf" } download {
                        img src={ (self.path) "/copy.png" } alt=(texts.text("signed-first-page"));
                    }
                }
                p { a.button href={ (self.path) "/copy.pdf" } download { (texts.text("signed-download")) } }
                @if self.envelope.record.document_hash.is_some() {
                    p { a href={ (self.path) "/certificate.pdf" } download { (texts.text("signed-certificate")) } }
                }
            }
            // A signer who still has to pay must not leave.
            @if self.owes.is_none() || self.expired {
                (self.way_back("completed"))
            }
        };

        self.notice(StatusCode::OK, title, EmbedMessage::Completed, body)
    }

    /// Asks the signer to pass the device to the witness.
    fn witness(&self) -> Markup {
        html! {
            p { (self.texts.text("witness-pass")) }
            form method="post" action={ (self.path) "/witness" } {
                button type="submit" { (self.texts.text("witness-open")) }
            }
        }
    }

    /// Leads to the sender's own page, if the envelope names one.
    fn way_back(&self, event: &str) -> Markup {
        let url = self.back.as_deref();
        let url = url.and_then(|url| url::Url::parse(url).ok());
        html! {
            @if let Some(mut url) = url {
                @let host = url.host_str().unwrap_or_default().to_owned();
                @let id = self.envelope.id.as_str();
                @let _ = url.query_pairs_mut().append_pair("envelope_id", id).append_pair("event", event);
                p { a.button.quiet href=(url) rel="noreferrer" { (self.texts.with("continue-to", [("host", host)])) } }
            } @else {
                p { (self.texts.text("close-page")) }
            }
        }
    }

    pub fn declined_page(&self) -> Response {
        let told = self.texts.text("you-declined");
        let body = html! { (self.document()) p { (told) } (self.way_back("declined")) };
        let title = "you-declined-title";
        self.notice(StatusCode::OK, title, EmbedMessage::Declined, body)
    }

    /// Page for a signer who comes later; `other` is the one who signs first, if known.
    pub fn not_yet(&self, status: StatusCode, other: Option<&str>) -> Response {
        let text = match other {
            Some(name) => self.texts.with("not-yet", [("name", name)]),
            None => self.texts.text("not-yet-other"),
        };
        let body = html! { (self.document()) p { (text) } };
        self.notice(status, "not-yet-title", EmbedMessage::Ready, body)
    }

    pub fn has_copy(&self) -> bool {
        self.envelope.status.is_signed()
    }

    pub fn failed(&self, error: FormError) -> Response {
        let (title, text) = match error {
            FormError::NotFound => return unknown_link(self.texts),
            FormError::Closed => ("closed-title", "closed"),
            FormError::NotYourTurn => return self.not_yet(StatusCode::CONFLICT, None),
            error => return HttpError::from(ServiceError::from(error)).into_response(),
        };
        self.notice_of_end(StatusCode::CONFLICT, title, text)
    }
}

/// Returns the keys of title and sentence about a document that ended before all parties did their part.
pub fn end_of(envelope: &Envelope) -> Option<(&'static str, &'static str)> {
    match envelope.status {
        EnvelopeStatus::Voided if envelope.link(EnvelopeLink::CorrectedBy).is_some() => {
            // Without mails, there is no newer message to look for.
            let sentence = if envelope.sending.send_email {
                "corrected"
            } else {
                "corrected-ask"
            };
            Some(("corrected-title", sentence))
        }
        EnvelopeStatus::Voided => Some(("withdrawn-title", "withdrawn")),
        EnvelopeStatus::Expired => Some(("expired-title", "expired")),
        EnvelopeStatus::Declined => Some(("declined-by-other-title", "declined-by-other")),
        _ => None,
    }
}

/// Leads a signer to the page for readers, if a substitute has taken the signer's place: the link followed its
/// person.
async fn now_substitute(core: &Core, token: &LinkToken) -> Result<Option<Redirect>, HttpError> {
    let reader = visits::find_reader(core, token).await?;
    let substitute = reader.filter(|reader| reader.recipient.kind == RecipientKind::Substitute);
    let path = format!("{}/view/{}", core.config.signing_path(), token.reveal());
    Ok(substitute.map(|_| Redirect::to(&path)))
}

/// Returns whether a signer who still has to enter a code may request this path: the page that asks
/// for it, and the one that renews an expired link.
fn is_open_to_all(app: &App, parts: &Parts, token: &LinkToken) -> bool {
    let page = format!("{}/{}", app.config.signing_path(), token.reveal());
    let path = parts.uri.path();
    path == page || path == format!("{page}/renew")
}

/// Returns whether a person asks for the response now: not for a HEAD request, nor when a browser or a mail
/// program fetches a link ahead.
fn is_seen(parts: &Parts) -> bool {
    // Browsers send the first one (Fetch, `Sec-Purpose`). The others come from older browsers and mail
    // programs.
    let names = ["sec-purpose", "purpose", "x-purpose", "x-moz"];
    let ahead = |name: &&str| {
        let value = parts.headers.get(*name);
        let value = value.and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.contains("prefetch") || value.contains("preview"))
    };
    parts.method != Method::HEAD && !names.iter().any(ahead)
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
pub fn payment(texts: Texts, path: &str, amount: &str) -> Markup {
    html! {
        section.payment aria-label=(texts.text("payment-title")) {
            p { (texts.text("payment-due")) " " strong { (amount) } }
            p { a.button href={ (path) "/pay" } { (texts.with("payment-pay", [("amount", amount)])) } }
        }
    }
}

/// Returns id and code of a link such as `/control/cst_…/code`.
pub fn id_and_code(parts: &Parts) -> Option<(String, String)> {
    let mut segments = parts.uri.path().split('/').skip(2);
    Some((segments.next()?.to_owned(), segments.next()?.to_owned()))
}

/// Returns the token of a request by a link. An address without one gets the page for an unknown link.
pub async fn link_token(parts: &mut Parts, app: &App, texts: Texts) -> Result<LinkToken, Response> {
    let segments = Path::<BTreeMap<String, String>>::from_request_parts(parts, app).await;
    segments
        .ok()
        .and_then(|Path(segments)| LinkToken::parse(segments.get("token")?))
        .ok_or_else(|| unknown_link(texts))
}

/// Page for an unknown link.
pub fn unknown_link(texts: Texts) -> Response {
    let body = html! { p { (texts.text("link-unknown")) } };
    PageLook::plain(texts).notice(
        StatusCode::NOT_FOUND,
        &texts.text("link-unknown-title"),
        Some(EmbedMessage::Error),
        body,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::clock::Timestamp;
    use holdfast_domain::envelope::EnvelopeKind;
    use holdfast_domain::id::{CustomerId, EnvelopeId, OrgId};

    fn envelope(status: EnvelopeStatus) -> Envelope {
        let new = Envelope::new(
            OrgId::new(),
            CustomerId::new(),
            "Contract".into(),
            EnvelopeKind::Esign,
            "key:key_1".into(),
            Timestamp::from_millis(0),
        );
        Envelope { status, ..new }
    }

    #[test]
    fn a_corrected_document_is_not_called_withdrawn() {
        let mut corrected = envelope(EnvelopeStatus::Voided);
        corrected.set_link(EnvelopeLink::CorrectedBy, &EnvelopeId::new());
        assert_eq!(end_of(&corrected), Some(("corrected-title", "corrected")));

        corrected.sending.send_email = false;
        let in_person = Some(("corrected-title", "corrected-ask"));
        assert_eq!(end_of(&corrected), in_person);
        for (key, next) in [
            (
                "corrected",
                "Look for the newer message with a link to the corrected one.",
            ),
            ("corrected-ask", "Ask the sender for the corrected one."),
        ] {
            let sentence = format!("The sender has corrected this document. {next}");
            assert_eq!(Texts::default().text(key), sentence);
        }
    }

    #[test]
    fn a_document_that_ended_is_called_by_its_status() {
        let texts = Texts::default();
        for (status, title, sentence) in [
            (
                EnvelopeStatus::Voided,
                "Withdrawn",
                "The sender has withdrawn this document.",
            ),
            (
                EnvelopeStatus::Expired,
                "Expired",
                "The time limit for signing this document has passed.",
            ),
            (
                EnvelopeStatus::Declined,
                "Declined",
                "Another signer has declined this document.",
            ),
        ] {
            let (key, text) = end_of(&envelope(status)).unwrap();
            assert_eq!(
                (texts.text(key), texts.text(text)),
                (title.into(), sentence.into())
            );
        }

        for going_on in [
            EnvelopeStatus::Sent,
            EnvelopeStatus::Viewed,
            EnvelopeStatus::Completed,
            EnvelopeStatus::Vaulted,
            EnvelopeStatus::VaultedOut,
        ] {
            assert_eq!(end_of(&envelope(going_on)), None);
        }
    }
}
