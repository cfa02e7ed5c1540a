//! How often one signing link, token, session or address may ask.

use std::net::Ipv6Addr;
use std::time::Duration;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde_json::json;

use super::origin::origin;
use crate::domain::hash::sha256;
use crate::http::error::HttpError;
use crate::http::openapi;
use crate::service::App;
use crate::service::access::windows::LimitedCredential;

/// Refusals without delay for one address within a window.
const REFUSALS: u32 = 100;
/// Sign-in links that an address asks for within a minute.
const SIGN_INS: u32 = 10;
/// Delay of each further refusal.
const PAUSE: Duration = Duration::from_secs(1);

/// Counts a request of this credential, and of its address.
///
/// # Errors
/// 429 with `Retry-After`.
pub fn admit(
    app: &App,
    credential: LimitedCredential,
    secret: &str,
    parts: &Parts,
) -> Result<(), HttpError> {
    let limits = &app.config.rate_limits;
    let limit = match credential {
        LimitedCredential::SigningLink => limits.signing_link,
        LimitedCredential::Copies => limits.copies,
        LimitedCredential::WebToken => limits.web_token,
        LimitedCredential::BuilderSession => limits.builder_session,
        LimitedCredential::Uploads => limits.component_uploads,
        LimitedCredential::Ledger => limits.ledger,
        LimitedCredential::SignIn => SIGN_INS,
        LimitedCredential::Address => limits.address,
        LimitedCredential::Refused => REFUSALS,
    };
    let address = counted_address(app, parts);
    let counted = match address {
        Some(address) => {
            let windows = &app.access.windows;
            let key = address.clone();
            windows
                .take(LimitedCredential::Address, address, limits.address)
                .and_then(|()| match credential {
                    // These need no credential, so that their own limits count by address too.
                    LimitedCredential::Ledger | LimitedCredential::SignIn => {
                        windows.take(credential, key, limit)
                    }
                    _ => Ok(()),
                })
        }
        None => Ok(()),
    };
    // The key stays in memory, so it is the hash and not the secret.
    let counted = counted.and_then(|()| match secret {
        "" => Ok(()),
        secret => app
            .access
            .windows
            .take(credential, sha256(secret.as_bytes()), limit),
    });
    counted.map_err(|wait| {
        HttpError::new(StatusCode::TOO_MANY_REQUESTS, "Rate limit exceeded")
            .with_details(json!({ "retry_after": wait }))
            .retry_after(wait)
    })
}

/// Returns the address that a request is counted by, if it is known.
pub fn counted_address(app: &App, parts: &Parts) -> Option<String> {
    origin(app, parts).ip.map(network)
}

/// Delays the answer to a client with many recent refusals. Immediate refusals at full speed
/// would take processor time from other clients.
pub async fn slow_down(app: &App, address: Option<String>) {
    let Some(address) = address else { return };
    let counted = app
        .access
        .windows
        .take(LimitedCredential::Refused, address, REFUSALS);
    if counted.is_err() {
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = app.stopping.cancelled() => {}
        }
    }
}

/// Returns an IPv4 address unchanged and the /64 network of an IPv6 address, because one host has a
/// whole network of those.
fn network(address: String) -> String {
    match address.parse::<Ipv6Addr>() {
        Ok(address) => {
            let [first, second, third, fourth, ..] = address.segments();
            format!("{first:x}:{second:x}:{third:x}:{fourth:x}::/64")
        }
        Err(_) => address,
    }
}

/// Reader of the public log, without a credential.
pub struct LedgerReader {
    /// Address that its requests are counted by, if it is known.
    pub address: Option<String>,
}

impl FromRequestParts<App> for LedgerReader {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        admit(app, LimitedCredential::Ledger, "", parts)?;
        Ok(Self {
            address: counted_address(app, parts),
        })
    }
}

impl OperationInput for LedgerReader {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        openapi::error(operation, 429);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_ipv6_network_share_a_limit() {
        assert_eq!(network("203.0.113.7".into()), "203.0.113.7");
        let (one, other) = ("2001:db8::1", "2001:db8::ffff:2");
        assert_eq!(network(one.into()), "2001:db8:0:0::/64");
        assert_eq!(network(one.into()), network(other.into()));
        assert_ne!(network(one.into()), network("2001:db8:0:1::1".into()));
    }
}
