//! How often one signing link, token, session or address may ask, and the look-up of credentials.

use std::net::Ipv6Addr;
use std::time::Duration;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::Response;
use serde_json::json;

use super::origin::origin;
use crate::error::HttpError;
use crate::openapi;
use holdfast_domain::hash::sha256;
use holdfast_platform::Core;
use holdfast_platform::access::StrangerTurn;
use holdfast_platform::access::rate_limit::RateAllowance;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_service::App;

/// Refusals without delay for one address within a window.
const REFUSALS: u32 = 100;
/// Sign-in links that a network asks for within a minute.
const SIGN_INS: u32 = 10;
/// Pages of open links that a network opens within a minute: an office or an event may be one network.
const OPEN_LINKS: u32 = 120;
/// Forms of open links that a network sends within a minute.
const OPEN_LINK_FORMS: u32 = 10;
/// Unknown credentials that a network sends within a minute before it has to wait.
const UNKNOWN: u32 = 30;
/// Delay of each further refusal.
const PAUSE: Duration = Duration::from_secs(1);

/// Counts a request of a credential that is known to be real, and of its address.
///
/// # Errors
/// 429 with `Retry-After`.
pub fn admit(
    app: &App,
    credential: LimitedCredential,
    secret: &str,
    parts: &Parts,
) -> Result<(), HttpError> {
    admit_address(app, credential, parts)?;
    // The key stays in memory, so it is the hash and not the secret.
    match secret {
        "" => Ok(()),
        secret => count(app, credential, sha256(secret.as_bytes())),
    }
}

/// Counts a request of an address.
fn admit_address(app: &App, credential: LimitedCredential, parts: &Parts) -> Result<(), HttpError> {
    let Some(address) = counted_address(app, parts) else {
        return Ok(());
    };

    // The address counts before the credential: one client with many tokens has one limit.
    count(app, LimitedCredential::Address, address.clone())?;
    match credential {
        // These need no credential, so that their own limits count by address too.
        LimitedCredential::Ledger
        | LimitedCredential::SignIn
        | LimitedCredential::OpenLink
        | LimitedCredential::OpenLinkForm => count(app, credential, address),
        _ => Ok(()),
    }
}

fn count(app: &App, credential: LimitedCredential, key: String) -> Result<(), HttpError> {
    let limit = limit_of(app, credential);
    let counted = app.access.windows.take(credential, key, limit);
    counted.map_err(exceeded)
}

/// Returns the requests of a window; 0 for a limit that the operator switched off.
fn limit_of(app: &App, credential: LimitedCredential) -> u32 {
    let limits = &app.config.rate_limits;
    match credential {
        LimitedCredential::SigningLink => limits.signing_link,
        LimitedCredential::Copies => limits.copies,
        LimitedCredential::WebToken => limits.web_token,
        LimitedCredential::BuilderSession => limits.builder_session,
        LimitedCredential::Uploads => limits.component_uploads,
        LimitedCredential::Ledger => limits.ledger,
        LimitedCredential::SignIn => SIGN_INS,
        LimitedCredential::OpenLink => OPEN_LINKS,
        LimitedCredential::OpenLinkForm => OPEN_LINK_FORMS,
        LimitedCredential::Address => limits.address,
        LimitedCredential::Refused => REFUSALS,
        // Not a setting: without this limit, guesses would reach the database at full speed.
        LimitedCredential::Unknown => UNKNOWN,
    }
}

/// Returns the allowance of a key on this node; none if there is no limit.
fn allowance(app: &App, credential: LimitedCredential, key: &str) -> Option<RateAllowance> {
    let limit = Some(limit_of(app, credential)).filter(|limit| *limit > 0)?;
    let (used, left) = app.access.windows.state(credential, key);
    Some(RateAllowance {
        limit: limit.into(),
        remaining: limit.saturating_sub(used).into(),
        reset: app.clock.now() + Duration::from_secs(left),
        exceeded: used > limit,
    })
}

/// Returns the allowance of a web-app token that this node accepted.
pub fn allowance_of_token(app: &App, token: &str) -> Option<RateAllowance> {
    let hash = sha256(token.as_bytes());
    let is_real = app.access.accepted.contains(&hash);
    is_real
        .then(|| allowance(app, LimitedCredential::WebToken, &hash))
        .flatten()
}

/// Returns the allowance of an address, for an answer to a request without a credential that has one.
pub fn allowance_of_address(
    app: &App,
    address: Option<&str>,
    response: &Response,
) -> Option<RateAllowance> {
    // A request without an address comes from this process, or from behind an unknown proxy.
    let address = address.unwrap_or_default();
    let of = |credential| allowance(app, credential, address);
    let status = response.status();
    let is_guess = status == StatusCode::UNAUTHORIZED;
    let by_address = of(LimitedCredential::Address).filter(|_| !is_guess);
    // The limit of unknown credentials cannot be switched off, so that every answer has an allowance.
    let shown = by_address.or_else(|| of(LimitedCredential::Unknown))?;
    if status != StatusCode::TOO_MANY_REQUESTS {
        return Some(shown);
    }

    // A limit of another kind is used up, and its end is in the answer.
    let wait = response.headers().get(header::RETRY_AFTER);
    let wait = wait.and_then(|wait| wait.to_str().ok()?.parse().ok());
    let reset = wait.map(|wait| app.clock.now() + Duration::from_secs(wait));
    Some(RateAllowance {
        remaining: 0,
        reset: reset.unwrap_or(shown.reset),
        exceeded: true,
        ..shown
    })
}

fn exceeded(wait: u32) -> HttpError {
    HttpError::new(StatusCode::TOO_MANY_REQUESTS, "Rate limit exceeded")
        .with_details(json!({ "retry_after": wait }))
        .retry_after(wait)
}

/// Look-up of a credential in the database.
///
/// A credential that this node accepted lately is counted and looked up at once. Any other may be a
/// guess: its network has a small limit, which is checked before the database is asked, and it waits
/// for a connection that known callers do not use.
pub struct CredentialLookup {
    core: Core,
    credential: Option<LimitedCredential>,
    hash: String,
    network: Option<String>,
    /// Present for an unknown credential.
    turn: Option<StrangerTurn>,
}

impl CredentialLookup {
    /// Begins a look-up. `credential` is the kind by which its requests are counted; API keys and open links
    /// have limits of their own.
    ///
    /// # Errors
    /// 429 if the credential exceeds its limit, or its network sent too many unknown ones; 503 if
    /// too many networks wait.
    pub async fn begin(
        app: &App,
        credential: Option<LimitedCredential>,
        secret: &str,
        parts: &Parts,
    ) -> Result<Self, HttpError> {
        let mut lookup = Self {
            core: app.core.clone(),
            credential,
            // The key stays in memory, so it is the hash and not the secret.
            hash: sha256(secret.as_bytes()),
            network: counted_address(app, parts),
            turn: None,
        };

        if let Some(credential) = credential {
            admit_address(app, credential, parts)?;
        }

        // A known caller in the same network as an attacker must not wait behind the attacker's guesses.
        if app.access.accepted.contains(&lookup.hash) {
            if let Some(credential) = credential {
                count(app, credential, lookup.hash.clone())?;
            }
            return Ok(lookup);
        }

        check_network(app, lookup.network.as_deref())?;
        let network = lookup.network.as_deref().unwrap_or_default();
        lookup.turn = Some(app.access.stranger_turn(network).await?);

        // Requests of the same network that waited together may have used up its limit.
        check_network(app, lookup.network.as_deref())?;
        lookup.core.store = app.core.store.for_strangers();

        Ok(lookup)
    }

    /// Returns the context for the look-up, with the database connections that it uses.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Records whether the credential is real, and counts the first request of a real one.
    ///
    /// # Errors
    /// 429 if the credential exceeds its limit.
    pub fn settle(self, app: &App, is_accepted: bool) -> Result<(), HttpError> {
        app.access.accepted.note(self.hash.clone(), is_accepted);
        match (is_accepted, self.credential) {
            // A credential that was accepted lately was counted in `begin` already.
            (true, Some(credential)) if self.turn.is_some() => count(app, credential, self.hash),
            (true, _) => Ok(()),
            (false, _) => {
                note_unknown(app, self.network);
                Ok(())
            }
        }
    }
}

/// Refuses a network that sent too many unknown credentials.
///
/// # Errors
/// 429 with `Retry-After`.
pub fn check_network(app: &App, network: Option<&str>) -> Result<(), HttpError> {
    let Some(network) = network else {
        return Ok(());
    };
    let windows = &app.access.windows;
    let checked = windows.check(LimitedCredential::Unknown, network, UNKNOWN);
    checked.map_err(exceeded)
}

/// Counts an unknown credential of a network.
pub fn note_unknown(app: &App, network: Option<String>) {
    if let Some(network) = network {
        let windows = &app.access.windows;
        // The next request of the network is the one that is refused.
        let _ = windows.take(LimitedCredential::Unknown, network, UNKNOWN);
    }
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
        // The delay must not hold up the stop of the server.
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = app.stopping.cancelled() => {}
        }
    }
}

/// Returns an IPv4 address unchanged and the /56 network of an IPv6 address.
///
/// One household or office gets a /56 (RFC 6177), so a smaller network would give one client
/// hundreds of limits. IPv4 addresses are not grouped: behind one address there are often several
/// clients already, and neighbours in a /24 have nothing to do with each other.
fn network(address: String) -> String {
    match address.parse::<Ipv6Addr>() {
        Ok(address) => {
            let [first, second, third, fourth, ..] = address.segments();
            format!("{first:x}:{second:x}:{third:x}:{:x}::/56", fourth & 0xff00)
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
        assert_eq!(network(one.into()), "2001:db8:0:0::/56");
        assert_eq!(network(one.into()), network(other.into()));
        assert_eq!(network(one.into()), network("2001:db8:0:ff::1".into()));
        assert_ne!(network(one.into()), network("2001:db8:0:100::1".into()));
    }
}
