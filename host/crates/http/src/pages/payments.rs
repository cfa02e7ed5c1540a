//! The payer's page at the signing host, and the sandbox's payment page.

use axum::Router;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::html;
use serde::Deserialize;

use super::assets;
use super::kba;
use super::page_frame::{EmbedMessage, FramePolicy, PageLook, script_texts, texts_for};
use super::signer_link::SignerVisit;
use crate::error::HttpError;
use crate::routing::{boxed, get};
use holdfast_adapters::texts::Texts;
use holdfast_domain::component::Slot;
use holdfast_domain::organization::Organization;
use holdfast_platform::ServiceError;
use holdfast_platform::organizations;
use holdfast_platform::payments;
use holdfast_service::App;
use holdfast_store::sandbox::SandboxIntent;

/// Returns the route of the payer's page, below a signing link.
pub fn routes(path: &str) -> Router<App> {
    Router::new().route(&format!("{path}/{{token}}/pay"), get(pay))
}

/// Returns the routes of the sandbox's payment page.
pub fn sandbox_routes() -> Router<App> {
    Router::new().route(
        "/sandbox/payments/{intent}",
        get(sandbox_page).post(boxed(sandbox_pay)),
    )
}

/// Redirects to the provider's page, or shows a page with the provider's form.
async fn pay(State(app): State<App>, visit: SignerVisit) -> Response {
    match kba::is_open(&app, &visit).await {
        Ok(true) if !visit.expired => {}
        // The signing page explains the reason.
        Ok(_) => return Redirect::to(visit.path()).into_response(),
        Err(error) => return HttpError::from(error).into_response(),
    }

    // Two signers may share an address, so the position names the one who has to pay.
    let signer = &visit.signer;
    let position = Some(signer.position);
    let asked = payments::intent(&app, &visit.envelope, &signer.email, position).await;
    let intent = match asked {
        Ok(intent) => intent,
        // The provider is away or not set up. The link is good, so the signer gets a page and the operator
        // a log line.
        Err(error @ (ServiceError::OtherProvider(..) | ServiceError::NotConfigured(_))) => {
            tracing::warn!(envelope = %visit.envelope.id, %error, "payment page is not available");
            return visit.unavailable("unavailable-payment");
        }
        Err(error) => return HttpError::from(error).into_response(),
    };
    // The payment arrived in the meantime, or another signer has to make it.
    let (true, Some(amount), Some(currency)) = (
        intent.payment_required,
        intent.amount_cents,
        &intent.currency,
    ) else {
        return Redirect::to(visit.path()).into_response();
    };

    let back = visit.url().to_owned();
    if let Some(page) = &intent.payment_url {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("return", &back)
            .finish();
        return Redirect::to(&format!("{page}?{query}")).into_response();
    }

    let texts = visit.texts;
    let amount = texts.amount(amount, currency);
    let title = texts.text("payment-title");
    // A provider with neither a page nor a script collects in a way that is not on this page.
    if intent.script.is_none() {
        let body = html! {
            p { (texts.text("payment-due")) " " strong { (amount) } }
            p { (texts.text("payment-other-way")) }
        };
        return visit.look.notice(StatusCode::OK, &title, None, body);
    }

    let body = html! {
        header.top {
            (visit.look.masthead())
            h1 { (title) }
            p { (texts.with("payment-for", [("document", visit.envelope.name.as_str())])) }
        }
        main.notice {
            p { (texts.text("payment-due")) " " strong { (amount) } }
            form #payment data-secret=[intent.client_secret.as_deref()] data-key=[intent.publishable_key.as_deref()]
                data-return=(back) data-library=[intent.script.as_deref()] {
                div #payment-element {}
                p.problem role="alert" hidden {}
                button type="submit" disabled { (texts.with("payment-pay", [("amount", amount.as_str())])) }
            }
            noscript { p.problem { (texts.text("payment-needs-script")) } }
            p { a href=(visit.path()) { (texts.text("payment-back")) } }
        }
    };

    let body = html! { (body) (script_texts(texts, assets::PAYMENT)) };
    // The policy opens for the origin of the library only. Only the operator's provider instances may
    // name one, because the script runs on pages of all tenants.
    let look = PageLook {
        library: intent.script.as_deref().and_then(origin_of),
        ..visit.look
    };
    look.page(StatusCode::OK, &title, None, "payment", body)
}

/// Returns scheme, host and port, as used in a Content-Security-Policy.
fn origin_of(url: &str) -> Option<String> {
    let origin = url::Url::parse(url).ok()?.origin();
    // An opaque origin would be written as `null`, which names no host.
    origin.is_tuple().then(|| origin.ascii_serialization())
}

#[derive(Deserialize)]
struct ReturnQuery {
    #[serde(rename = "return")]
    back: Option<String>,
}

/// Request for the sandbox's payment page.
struct SandboxVisit {
    intent: SandboxIntent,
    /// Link back to the payer's signing page. Only our own links are accepted, so that the page is
    /// no open redirect.
    back: Option<String>,
    organization: Organization,
    texts: Texts,
}

impl FromRequestParts<App> for SandboxVisit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        // In production the sandbox takes payments of test data only. Whether an intent is test data is
        // known after it was read, so the first look-up names no organization.
        let unknown = || HttpError::new(StatusCode::NOT_FOUND, "Not found").into_response();
        let sandbox = app.sandbox(Slot::Payment, None).map_err(|_| unknown())?;
        let Path(id) = Path::<String>::from_request_parts(parts, app)
            .await
            .map_err(|_| unknown())?;
        let intent = sandbox
            .intent(&id)
            .await
            .map_err(|error| HttpError::internal(error.to_string()).into_response())?
            .ok_or_else(unknown)?;
        // Now with the organization: a live one has no sandbox in production.
        app.sandbox(Slot::Payment, Some(&intent.org))
            .map_err(|_| unknown())?;

        let organization = organizations::read(app, &intent.org).await;
        let organization = organization.map_err(|_| unknown())?;
        let query = Query::<ReturnQuery>::from_request_parts(parts, app).await;
        let ours = [
            app.config.signing_url(),
            app.config.link_url(&organization.settings),
        ];
        // With the slash, because the URL of our host is also the beginning of `host.example.evil`.
        let is_ours = |back: &String| ours.iter().any(|own| back.starts_with(&format!("{own}/")));
        let back = query.ok().and_then(|Query(query)| query.back);
        Ok(Self {
            texts: texts_for(&parts.headers, organization.settings.language),
            organization,
            intent,
            back: back.filter(is_ours),
        })
    }
}

impl SandboxVisit {
    fn page(&self, paid: bool) -> Response {
        let amount = u64::try_from(self.intent.amount).unwrap_or_default();
        let texts = self.texts;
        let amount = texts.amount(amount, &self.intent.currency.to_ascii_uppercase());
        let look = PageLook {
            // The signing form may be embedded, and its payer ends up here.
            framing: FramePolicy::Anybody,
            ..PageLook::of(self.organization.clone(), texts)
        };

        let body = html! {
            @if paid {
                p { (texts.text("payment-paid")) " " strong { (amount) } }
                @if let Some(back) = &self.back {
                    p { a.button href=(back) { (texts.text("payment-back")) } }
                } @else {
                    p { (texts.text("close-page")) }
                }
            } @else {
                p { (texts.text("payment-due")) " " strong { (amount) } }
                p { (texts.text("payment-sandbox")) }
                form method="post" {
                    button type="submit" name="pay" value="pay" { (texts.with("payment-pay", [("amount", amount.as_str())])) }
                }
            }
        };

        let (title, happening) = if paid {
            ("payment-received-title", Some(EmbedMessage::Ready))
        } else {
            ("payment-title", None)
        };
        look.notice(StatusCode::OK, &texts.text(title), happening, body)
    }
}

async fn sandbox_page(visit: SandboxVisit) -> Response {
    visit.page(visit.intent.paid)
}

async fn sandbox_pay(State(app): State<App>, visit: SandboxVisit) -> Response {
    let Ok(sandbox) = app.sandbox(Slot::Payment, Some(&visit.intent.org)) else {
        return HttpError::new(StatusCode::NOT_FOUND, "Not found").into_response();
    };
    match sandbox.pay(&visit.intent).await {
        Ok(()) => visit.page(true),
        Err(error) => HttpError::internal(error.to_string()).into_response(),
    }
}
