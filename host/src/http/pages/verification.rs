//! The public page to which the code on a certificate of completion leads. Holders of a copy can
//! check whether it is the document that was signed. The copy does not leave the visitor's device.

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{Markup, html};

use super::look::PageLook;
use crate::domain::envelope::EnvelopeStatus;
use crate::http::error::HttpError;
use crate::http::middleware::limits;
use crate::service::App;
use crate::service::access::windows::LimitedCredential;
use crate::service::vault::completion::{self, PublicRecord};

/// Path below which the pages are.
pub const PATH: &str = "/verify";

pub fn routes() -> Router<App> {
    Router::new().route(&format!("{PATH}/{{org}}/{{envelope}}/{{code}}"), get(page))
}

async fn page(
    State(app): State<App>,
    Path((org, envelope, code)): Path<(String, String, String)>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    match completion::public_record(&app, &org, &envelope, &code).await {
        // Only real links are counted: guesses would fill the table of the counts.
        Ok(Some(record)) => {
            match limits::admit(&app, LimitedCredential::SigningLink, &code, &parts) {
                Ok(()) => shown(record),
                Err(refused) => refused.into_response(),
            }
        }
        Ok(None) => {
            let text =
                html! { p { "Check the address, or scan the code on the certificate again." } };
            let title = "There is no such record";
            PageLook::default().notice(StatusCode::NOT_FOUND, title, None, text)
        }
        Err(error) => HttpError::from(error).into_response(),
    }
}

fn shown(record: PublicRecord) -> Response {
    let PublicRecord {
        organization,
        envelope,
        signers,
    } = record;
    let dates = organization.settings.dates.clone();
    let look = PageLook::of(organization);
    let hashes: Vec<(&str, &str)> = [
        (
            "the copy for the parties",
            envelope
                .record
                .copy
                .as_ref()
                .map(|copy| copy.sha256.as_str()),
        ),
        (
            "the authoritative copy",
            envelope.record.document_hash.as_deref(),
        ),
    ]
    .into_iter()
    .filter_map(|(name, hash)| Some((name, hash?)))
    .collect();
    let body = html! {
        header.top { (look.masthead()) h1 { (envelope.name) } p { "Record " (envelope.id) } }
        main.vault.verification {
            section.card {
                h2 { (state(envelope.status)) }
                dl {
                    @for signer in &signers {
                        dt { (signer.role) }
                        dd {
                            (signer.name)
                            @if let Some(at) = signer.completed_at { ", signed " (dates.exact_moment(at)) }
                        }
                    }
                }
            }
            section.card {
                h2 { "Is your copy the one?" }
                p { "Choose your file. It is compared on this device and not sent anywhere." }
                label.drop { "PDF file" br; input id="file" type="file" accept="application/pdf"; }
                p.verdict role="status" aria-live="polite" {}
            }
            section.card {
                h2 { "Fingerprints (SHA-256)" }
                (fingerprints(&hashes))
            }
        }
    };
    look.page(StatusCode::OK, &envelope.name, None, "verification", body)
}

fn state(status: EnvelopeStatus) -> &'static str {
    match status {
        EnvelopeStatus::VaultedOut => {
            "Signed by all parties. The authoritative copy was released to another custodian."
        }
        _ => "Signed by all parties. The authoritative copy is in the vault.",
    }
}

fn fingerprints(hashes: &[(&str, &str)]) -> Markup {
    html! {
        dl.fingerprints {
            @for (name, hash) in hashes {
                dt { (name) }
                dd data-sha256=(hash) data-name=(name) { code { (hash) } }
            }
        }
    }
}
