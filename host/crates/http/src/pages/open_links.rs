//! Page of an open link: a visitor enters name and address, and gets a document of their own.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::json;

use super::assets;
use super::code::minutes;
use super::console::read_form;
use super::page_frame::{PageLook, script_texts, texts_for};
use super::signer_link::{link_token, unknown_link};
use crate::error::HttpError;
use crate::middleware::extract::valid;
use crate::middleware::limits::{self, CredentialLookup};
use crate::routing::{boxed, get};
use holdfast_adapters::texts::Texts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::locale::Locale;
use holdfast_domain::open_link::{OpenLink, OpenLinkStatus};
use holdfast_domain::token::{LinkToken, random};
use holdfast_platform::ServiceError;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_service::App;
use holdfast_service::envelopes::open_link_proofs::{self, VisitorProof};
use holdfast_service::envelopes::open_links::{
    self, LinkVisit, NextPlace, PROOF_USED, PasscodeCheck, ShownOpenLink, VisitorEntries,
};
use holdfast_service::signing::visits;

/// Path below which the pages are.
pub const PATH: &str = "/open";

pub fn routes() -> Router<App> {
    Router::new().route(&format!("{PATH}/{{token}}"), get(show).post(boxed(submit)))
}

/// Request by an open link.
struct OpenVisit {
    token: LinkToken,
    link: OpenLink,
    status: OpenLinkStatus,
    /// Whether the people of the link fit its template.
    is_available: bool,
    /// What the browser computes a proof for; none if the link asks for none.
    challenge: Option<String>,
    /// Name of the organization.
    sender: String,
    look: PageLook,
    texts: Texts,
    /// Network of the request, if it is known, by which wrong passcodes count.
    network: String,
}

/// Controls of what the browser computes.
const CHALLENGE: &str = "challenge";
const PROOF: &str = "proof";

/// Problem of a field, by its name.
type FieldProblem = (&'static str, String);

impl FromRequestParts<App> for OpenVisit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let plain = texts_for(&parts.headers, Locale::default());
        let token = link_token(parts, app, plain).await?;
        let failed = |error: HttpError| error.into_response();

        // Counted by network alone: all visitors have the same token, and one must not use up the limit of the others.
        limits::admit(app, LimitedCredential::OpenLink, "", parts).map_err(failed)?;
        let lookup = CredentialLookup::begin(app, None, token.reveal(), parts).await;
        let lookup = lookup.map_err(failed)?;
        let found = open_links::find(lookup.core(), &token).await;
        let found = found.map_err(|error| failed(error.into()))?;
        // Counts an unknown link against its network before the visitor learns that it is unknown.
        lookup.settle(app, found.is_some()).map_err(failed)?;
        let mut found = found.ok_or_else(|| unknown_link(plain))?;
        let reviewed = open_links::review(app, &mut found).await;
        reviewed.map_err(|error| failed(error.into()))?;
        let ShownOpenLink {
            organization,
            link,
            status,
            is_available,
        } = found;

        let challenge = open_link_proofs::challenge(app, &link).await;
        let challenge = challenge.map_err(|error| failed(error.into()))?;

        let texts = texts_for(&parts.headers, organization.settings.language);
        Ok(Self {
            token,
            status,
            is_available,
            challenge,
            sender: organization.display_name().to_owned(),
            look: PageLook {
                // The form leads to the document, which may be on another host.
                leads_away: !link.verify_email,
                ..PageLook::of(organization, texts)
            },
            link,
            texts,
            network: limits::counted_address(app, parts).unwrap_or_default(),
        })
    }
}

impl OpenVisit {
    /// Page of a link that takes no further records; none while it is open.
    fn over(&self) -> Option<Response> {
        let text = match self.status {
            OpenLinkStatus::Open if self.is_available => return None,
            OpenLinkStatus::Open => "open-unavailable",
            OpenLinkStatus::Expired => "open-expired",
            OpenLinkStatus::UsedUp => "open-used-up",
            OpenLinkStatus::Closed => "open-closed",
        };

        let body = html! { p { (self.texts.text(text)) } };
        let title = self.texts.text("open-over-title");
        Some(self.look.notice(StatusCode::GONE, &title, None, body))
    }

    /// Page with the form, and the entries and problems of a refused one.
    fn form(&self, values: &BTreeMap<String, String>, problems: &[FieldProblem]) -> Response {
        let texts = self.texts;
        let field = |name: &'static str, label: String, kind: &str, completes: &str| {
            let problem = problems.iter().find(|(field, _)| *field == name);
            let problem = problem.map(|(_, message)| message.as_str());
            // A passcode is entered again.
            let value = values.get(name).filter(|_| name != "code");
            html! {
                div.field.invalid[problem.is_some()] {
                    label for=(name) { (label) }
                    @if let Some(problem) = problem {
                        p.problem id={ (name) "-problem" } role="alert" { (problem) }
                    }
                    input id=(name) name=(name) type=(kind) value=[value] required maxlength="200"
                        autocomplete=(completes)
                        aria-invalid=[problem.map(|_| "true")]
                        aria-describedby=[problem.map(|_| format!("{name}-problem"))];
                }
            }
        };

        let values = [
            ("sender", self.sender.as_str()),
            ("document", self.link.name.as_str()),
        ];
        let after = if self.link.verify_email {
            "open-after-mail"
        } else {
            "open-after-browser"
        };
        // The proof is no field: the visitor only presses the button again.
        let of_proof = problems.iter().find(|(field, _)| *field == PROOF);
        let body = html! {
            p { (texts.with("open-hint", values)) }
            form method="post" action={ (PATH) "/" (self.token.reveal()) } novalidate
                data-working[self.challenge.is_some()] {
                // Sent twice, the same form makes one record.
                input type="hidden" name="form" value=(hex::encode(random::<16>()));
                (field("name", texts.text("open-name"), "text", "name"))
                (field("email", texts.text("sign-in-email"), "email", "email"))
                @if self.link.code.is_some() {
                    (field("code", texts.text("code-passcode-label"), "text", "off"))
                }
                @if let Some(challenge) = &self.challenge {
                    // Browsers restore entries on the way back, and an old challenge is of no use.
                    input type="hidden" name=(CHALLENGE) value=(challenge) autocomplete="off";
                    input type="hidden" name=(PROOF) autocomplete="off";
                    p.fine role="status" {}
                    @if !self.link.verify_email {
                        noscript { p.fine { (texts.text("open-without-script")) } }
                    }
                    (script_texts(texts, assets::OPEN))
                }
                @if let Some((_, problem)) = of_proof { p.problem role="alert" { (problem) } }
                button type="submit" { (texts.text("open-continue")) }
            }
            p.fine { (texts.text(after)) }
        };

        let status = if problems.is_empty() {
            StatusCode::OK
        } else {
            StatusCode::UNPROCESSABLE_ENTITY
        };
        self.look.open_notice(status, &self.link.name, body)
    }

    /// Page for a proof that does not count. The browser computes another one for it.
    fn without_proof(&self, values: &BTreeMap<String, String>) -> Response {
        let problem = (PROOF, self.texts.text("open-proof-wrong"));
        self.form(values, &[problem])
    }

    fn locked(&self, until: Timestamp, now: Timestamp) -> Response {
        let texts = self.texts;
        let body = html! {
            p.problem role="alert" { (texts.text("code-locked")) }
            p { (texts.with("code-locked-until", [("minutes", minutes(until, now))])) }
        };
        let title = texts.text("code-title");
        self.look.notice(StatusCode::FORBIDDEN, &title, None, body)
    }

    fn mailed(&self, email: &str) -> Response {
        let texts = self.texts;
        let body: Markup = html! { p { (texts.with("open-mailed", [("email", email)])) } };
        let title = texts.text("link-mailed-title");
        self.look.notice(StatusCode::OK, &title, None, body)
    }

    /// Reads the entries, or returns the problems of their fields.
    fn entries(
        &self,
        values: &BTreeMap<String, String>,
    ) -> Result<VisitorEntries, Vec<FieldProblem>> {
        let value = |name: &str| values.get(name).map_or("", |value| value.trim());
        let given = json!({
            "name": value("name"), "email": value("email"), "locale": self.texts.locale().as_str(),
        });

        valid(given).map_err(|error| {
            let issues = error.issues();
            let is_about = |name: &str| {
                issues
                    .iter()
                    .any(|(path, _)| path.iter().any(|step| step == name))
            };
            let mut problems = Vec::new();
            if is_about("name") {
                problems.push(("name", self.texts.text("open-name-wrong")));
            }
            if is_about("email") || problems.is_empty() {
                problems.push(("email", self.texts.text("open-email-wrong")));
            }

            problems
        })
    }
}

async fn show(visit: OpenVisit) -> Response {
    // Mail programs and search engines fetch links, so a GET changes nothing.
    let form = || visit.form(&BTreeMap::new(), &[]);
    visit.over().unwrap_or_else(form)
}

async fn submit(State(app): State<App>, request: Request) -> Response {
    submitted(&app, request)
        .await
        .unwrap_or_else(|answer| answer)
}

async fn submitted(app: &App, request: Request) -> Result<Response, Response> {
    let (mut parts, body) = request.into_parts();
    let visit = OpenVisit::from_request_parts(&mut parts, app).await?;
    // Each form can send a mail to an unverified address.
    limits::admit(app, LimitedCredential::OpenLinkForm, "", &parts)
        .map_err(IntoResponse::into_response)?;
    let values = read_form(Request::from_parts(parts, body), app).await?;
    if let Some(page) = visit.over() {
        return Ok(page);
    }

    let entries = match visit.entries(&values) {
        Ok(entries) => entries,
        Err(problems) => return Ok(visit.form(&values, &problems)),
    };
    let failed = |error: ServiceError| HttpError::from(error).into_response();
    let value = |name: &str| values.get(name).map_or("", |value| value.trim());
    let proof = open_link_proofs::check(app, &visit.link, value(CHALLENGE), value(PROOF));
    let Some(proof) = proof.map_err(failed)? else {
        return Ok(visit.without_proof(&values));
    };

    let given = values.get("code").map_or("", String::as_str);
    let check = open_links::check_code(app, &visit.link, given, &visit.network).await;
    match check.map_err(failed)? {
        PasscodeCheck::Right => {}
        PasscodeCheck::Wrong => {
            let problem = ("code", visit.texts.text("code-wrong"));
            return Ok(visit.form(&values, &[problem]));
        }
        PasscodeCheck::Locked(until) => return Ok(visit.locked(until, app.clock.now())),
    }

    let email = entries.email.clone();
    let form = values.get("form").cloned().unwrap_or_default();
    let (task, network) = (app.clone(), visit.network.clone());
    let link = OpenLink {
        // A visitor without a proof shows at least that the mailbox is theirs.
        verify_email: visit.link.verify_email || proof == VisitorProof::Absent,
        ..visit.link.clone()
    };
    // Completes even if the browser goes away.
    let opened = tokio::spawn(async move {
        let visit = LinkVisit {
            link: &link,
            network: &network,
            proof: &proof,
        };
        open_links::open(&task, &task.pages, visit, entries, &form).await
    });
    match opened.await {
        Ok(Ok(NextPlace::Mailbox)) => Ok(visit.mailed(&email)),
        Ok(Ok(NextPlace::Unfinished(record))) => {
            if let Some(signer) = &record.visitor {
                let renewed = visits::renew(app, &record.envelope, signer).await;
                renewed.map_err(failed)?;
            }
            // The same page, so that it does not tell who has signed here.
            Ok(visit.mailed(&email))
        }
        Ok(Ok(NextPlace::Document(url))) => Ok(Redirect::to(&url).into_response()),
        Ok(Err(ServiceError::Problem(problem))) if problem.code == Some(PROOF_USED) => {
            Ok(visit.without_proof(&values))
        }
        Ok(Err(error)) => Err(refused(app, visit, error).await),
        Err(error) => Err(failed(ServiceError::Internal(error.to_string()))),
    }
}

/// Returns the page for a record that could not be made. Other visitors may have taken the last one meanwhile.
async fn refused(app: &App, visit: OpenVisit, error: ServiceError) -> Response {
    let found = open_links::find(app, &visit.token).await;
    let over = match found {
        Ok(Some(shown)) => OpenVisit {
            status: shown.status,
            ..visit
        }
        .over(),
        _ => None,
    };
    over.unwrap_or_else(|| HttpError::from(error).into_response())
}
