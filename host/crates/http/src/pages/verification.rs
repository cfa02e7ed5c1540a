//! The public page to which the code on a certificate of completion leads. Holders of a copy can
//! check whether it is the document that was signed. The copy does not leave the visitor's device.

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::assets;
use super::page_frame::{PageLook, script_texts, texts_for};
use crate::error::HttpError;
use crate::middleware::limits;
use crate::routing::get;
use holdfast_domain::envelope::EnvelopeStatus;
use holdfast_domain::locale::Locale;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_service::App;
use holdfast_service::envelopes::people_notes;
use holdfast_service::vault::completion::{self, PublicRecord};

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
                Ok(()) => shown(record, &parts.headers),
                Err(refused) => refused.into_response(),
            }
        }
        Ok(None) => {
            let texts = texts_for(&parts.headers, Locale::default());
            let text = html! { p { (texts.text("verify-unknown")) } };
            let title = texts.text("verify-unknown-title");
            PageLook::plain(texts).notice(StatusCode::NOT_FOUND, &title, None, text)
        }
        Err(error) => HttpError::from(error).into_response(),
    }
}

fn shown(record: PublicRecord, headers: &HeaderMap) -> Response {
    let PublicRecord {
        organization,
        envelope,
        signers,
        is_converted,
    } = record;
    let dates = organization.settings.dates.clone();

    let texts = texts_for(headers, organization.settings.language);
    let look = PageLook::of(organization, texts);
    // A holder may have the parties' copy or, after a release, the authoritative one. The page
    // compares with both.
    let hashes: Vec<(String, &str)> = [
        (
            "verify-copy",
            envelope
                .record
                .copy
                .as_ref()
                .map(|copy| copy.sha256.as_str()),
        ),
        (
            "verify-authoritative",
            envelope.record.document_hash.as_deref(),
        ),
    ]
    .into_iter()
    .filter_map(|(name, hash)| Some((texts.text(name), hash?)))
    .collect();

    let body = html! {
        header.top { (look.masthead()) h1 { (envelope.name) } p { (texts.with("verify-record", [("id", envelope.id.as_str())])) } }
        main.vault.verification {
            section.card {
                h2 { (texts.text(state(envelope.status, is_converted))) }
                dl {
                    @for signer in &signers {
                        dt { (signer.role) }
                        dd {
                            (signer.name) ": "
                            (people_notes::act_in_words(texts, signer, |at| texts.exact_moment(&dates, at)))
                        }
                    }
                }
            }
            section.card {
                h2 { (texts.text("verify-title")) }
                p { (texts.text("verify-choose")) }
                label.drop { (texts.text("verify-file")) br; input id="file" type="file" accept="application/pdf"; }
                p.verdict role="status" aria-live="polite" {}
            }
            section.card {
                h2 { (texts.text("verify-fingerprints")) }
                (fingerprints(&hashes))
            }
            (script_texts(texts, assets::VERIFICATION))
        }
    };

    look.page(StatusCode::OK, &envelope.name, None, "verification", body)
}

/// Returns the key of the status's text.
fn state(status: EnvelopeStatus, is_converted: bool) -> &'static str {
    match status {
        // Before the status: after a conversion to paper, nothing electronic is authoritative.
        _ if is_converted => "verify-paper",
        EnvelopeStatus::VaultedOut => "verify-released",
        _ => "verify-vaulted",
    }
}

fn fingerprints(hashes: &[(String, &str)]) -> Markup {
    html! {
        dl.fingerprints {
            @for (name, hash) in hashes {
                dt { (name) }
                dd data-sha256=(hash) data-name=(name) { code { (hash) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_adapters::texts::Texts;

    #[test]
    fn the_page_says_where_the_authoritative_copy_is() {
        use EnvelopeStatus::{Vaulted, VaultedOut};

        for (status, is_converted, words) in [
            (
                Vaulted,
                false,
                "Completed by all parties. The authoritative copy is in the vault.",
            ),
            (
                VaultedOut,
                false,
                "Completed by all parties. The authoritative copy was released to another custodian.",
            ),
            (
                VaultedOut,
                true,
                "Completed by all parties. A paper original has replaced the authoritative copy.",
            ),
        ] {
            let said = Texts::default().text(state(status, is_converted));
            assert_eq!(said, words);
        }
    }
}
