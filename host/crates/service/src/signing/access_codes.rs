//! A code before the document: sent to the signer by mail or text message, or agreed with the sender.
//!
//! The browser that entered the right code gets a cookie for this link; every other browser and every
//! new link asks again.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, Signer, SignerAccess};
use holdfast_domain::event::EventType;
use holdfast_domain::id::EnvelopeId;
use holdfast_domain::token::{LinkToken, random};
use holdfast_platform::passcodes::{CONFIRMED, open_passcode};
use holdfast_platform::providers::links;
use holdfast_platform::room::form::RequestOrigin;
use holdfast_platform::signers::contact_view;
use holdfast_platform::{Core, ServiceError, events, mails};
use holdfast_store::WriteTransaction;
use holdfast_store::access_codes::{self, CodeState, NetworkFailures};

/// Time for which a sent code is valid.
pub const CODE_LIFE: Duration = Duration::from_secs(600);
/// Minimum time between two codes.
const COOL_DOWN: Duration = Duration::from_secs(60);
/// Number of mails in [`SEND_WINDOW`] after which another one waits for the end of the last code.
const MOST_SENDS: i64 = 5;
const SEND_WINDOW: Duration = Duration::from_secs(3600);
/// Number of wrong entries of a network that lock the document for it.
const MOST_FAILURES: i64 = 5;
/// Number of wrong entries of all networks that lock the document for all: the code has a million
/// values.
const MOST_FAILURES_OF_ALL: i64 = 25;
/// Time of the first, the second and each later lock.
const LOCKS: [Duration; 3] = [
    Duration::from_secs(900),
    Duration::from_secs(3600),
    Duration::from_secs(24 * 3600),
];
/// Time for which a browser is not asked again.
pub const PASS_LIFE: Duration = Duration::from_secs(12 * 3600);

/// What a signer sees in front of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodePrompt {
    /// No valid code was sent yet.
    Send,
    /// The signer enters a code or passcode.
    Enter,
    /// Too many wrong entries.
    Locked(Timestamp),
}

/// Result of a signer's request for a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeRequest {
    Sent,
    /// A code was sent a moment ago, or too many were.
    Later(Timestamp),
    Locked(Timestamp),
}

/// Result of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeCheck {
    /// Right; the value of the cookie for this browser.
    Right(String),
    Wrong,
    /// The code is too old, or none was sent.
    Outdated,
    Locked(Timestamp),
}

/// Content of the cookie, encrypted.
#[derive(Serialize, Deserialize)]
struct AccessPass {
    /// Hash of the link's token.
    link: String,
    envelope: EnvelopeId,
    position: i64,
    email: String,
    until: Timestamp,
}

fn code_context(envelope: &Envelope) -> String {
    format!("access code {}", envelope.id)
}

/// Returns whether the cookie opens the document for this signer.
pub fn is_pass(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    link: &LinkToken,
    cookie: Option<&str>,
) -> bool {
    let pass = || {
        let text = core.cipher.open(cookie?, &pass_context(envelope))?;
        serde_json::from_str::<AccessPass>(&text).ok()
    };
    // The pass is bound to link, place and person. A forwarded link asks for the code again.
    signer.access == SignerAccess::None
        || pass().is_some_and(|pass| {
            pass.link == link.hash().as_str()
                && pass.envelope == envelope.id
                && pass.position == signer.position
                && pass.email == signer.email
                && pass.until > core.clock.now()
        })
}

fn pass_context(envelope: &Envelope) -> String {
    format!("access pass {}", envelope.org)
}

/// Returns what to ask a visitor from `network` for.
pub async fn prompt(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    network: &str,
) -> Result<CodePrompt, ServiceError> {
    let mut connection = core.store.read().await?;
    let state = access_codes::get(&mut connection, envelope, signer).await?;
    let failures = access_codes::failures_of(&mut connection, envelope, signer, network).await?;
    let now = core.clock.now();
    Ok(match locked(&state, &failures, now) {
        Some(until) => CodePrompt::Locked(until),
        None if signer.access.is_sent() && valid(&state, now).is_none() => CodePrompt::Send,
        None => CodePrompt::Enter,
    })
}

/// Returns the end of the lock for a network.
fn locked(state: &CodeState, failures: &NetworkFailures, now: Timestamp) -> Option<Timestamp> {
    let until = state.locked_until.max(failures.locked_until);
    until.filter(|until| *until > now)
}

/// Returns the encrypted code that was sent last, while it is valid.
fn valid(state: &CodeState, now: Timestamp) -> Option<&str> {
    let (code, sent_at) = state.sent.as_ref()?;
    (*sent_at + CODE_LIFE > now).then_some(code.as_str())
}

/// Sends the signer a code. While the last one is valid it is sent again, and past the limit nothing is sent: a
/// stranger who asks for codes takes none from the signer.
pub async fn send(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    network: &str,
) -> Result<CodeRequest, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // Also locks the envelope: concurrent requests send one code, and each entry counts.
    if !links::is_current(&mut tx, envelope, signer).await? {
        return Err(ServiceError::NotFound("Signer"));
    }

    let mut state = access_codes::get(&mut tx, envelope, signer).await?;
    let failures = access_codes::failures_of(&mut tx, envelope, signer, network).await?;
    if let Some(until) = locked(&state, &failures, now) {
        return Ok(CodeRequest::Locked(until));
    }

    let soon = state.sent.as_ref().map(|(_, at)| *at + COOL_DOWN);
    if let Some(next) = soon.filter(|next| *next > now) {
        return Ok(CodeRequest::Later(next));
    }

    let window = state.first_sent_at.map(|first| first + SEND_WINDOW);
    let is_flooded = state.sends >= MOST_SENDS && window.is_some_and(|end| end > now);
    let last = state.sent.take();
    let last = last.filter(|(_, sent_at)| *sent_at + CODE_LIFE > now);
    // Only while the last code works. A flood of requests must not leave the signer without any code.
    if let Some((_, sent_at)) = &last
        && is_flooded
    {
        return Ok(CodeRequest::Later(*sent_at + CODE_LIFE));
    }

    match window.filter(|end| *end > now) {
        Some(_) => state.sends += 1,
        None => (state.sends, state.first_sent_at) = (1, Some(now)),
    }

    let new = || core.cipher.encrypt(&new_code(), &code_context(envelope));
    let code = last.map_or_else(new, |(code, _)| code);
    state.sent = Some((code, now));
    access_codes::put(&mut tx, envelope, signer, &state).await?;
    mails::access_code(&mut tx, envelope, signer, now).await?;
    tx.commit().await?;

    Ok(CodeRequest::Sent)
}

/// Returns six random digits. The remainder favours the first of 10^6 codes by less than one in 10^13.
fn new_code() -> String {
    format!("{:06}", u64::from_le_bytes(random::<8>()) % 1_000_000)
}

/// Returns the code to send; none once it is outdated.
pub async fn code_to_send(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<Option<String>, ServiceError> {
    let mut connection = core.store.read().await?;
    let state = access_codes::get(&mut connection, envelope, signer).await?;
    let sealed = valid(&state, core.clock.now());
    Ok(sealed.and_then(|sealed| core.cipher.open(sealed, &code_context(envelope))))
}

/// Drops the code that was sent last: it went to a telephone that is no longer the signer's.
pub async fn forget(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<(), ServiceError> {
    let state = access_codes::get(tx, envelope, signer).await?;
    let state = CodeState {
        sent: None,
        ..state
    };
    Ok(access_codes::put(tx, envelope, signer, &state).await?)
}

/// An entry of a code.
pub struct CodeEntry<'a> {
    pub link: &'a LinkToken,
    pub given: &'a str,
    pub origin: &'a RequestOrigin,
    /// Network by which wrong entries count.
    pub network: &'a str,
}

/// Checks an entry. Wrong ones count by network; too many lock the document for it and are reported.
pub async fn check(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    entry: CodeEntry<'_>,
) -> Result<CodeCheck, ServiceError> {
    let CodeEntry {
        link,
        given,
        origin,
        network,
    } = entry;
    let now = core.clock.now();

    let mut tx = core.store.begin().await?;
    if !links::is_current(&mut tx, envelope, signer).await? {
        return Err(ServiceError::NotFound("Signer"));
    }

    let mut state = access_codes::get(&mut tx, envelope, signer).await?;
    let mut failures = access_codes::failures_of(&mut tx, envelope, signer, network).await?;
    if let Some(until) = locked(&state, &failures, now) {
        return Ok(CodeCheck::Locked(until));
    }

    let expected = match signer.access {
        SignerAccess::EmailCode | SignerAccess::SmsCode => {
            let sealed = valid(&state, now);
            sealed.and_then(|sealed| core.cipher.open(sealed, &code_context(envelope)))
        }
        _ => {
            let sealed = signer.passcode.as_ref();
            sealed.and_then(|sealed| open_passcode(&core.cipher, &envelope.org, sealed))
        }
    };

    // An entry without a valid code is no guess, so it does not count as wrong.
    let Some(expected) = expected else {
        return Ok(CodeCheck::Outdated);
    };

    let details = json!({
        "signer": contact_view(signer),
        "method": signer.access,
        "ip_address": origin.ip,
        "at": now,
    });
    let actor = format!("signer:{}", signer.email);
    if is_equal(&expected, given.trim()) {
        // A code works once.
        let cleared = CodeState {
            sent: None,
            failures: 0,
            locks: 0,
            locked_until: None,
            ..state
        };
        access_codes::put(&mut tx, envelope, signer, &cleared).await?;

        access_codes::forget_failures(&mut tx, envelope, signer).await?;
        events::record(&mut tx, envelope, &actor, CONFIRMED, details, now).await?;
        tx.commit().await?;
        // Made after the commit: a code that still works must not have opened the document.
        let pass = AccessPass {
            link: link.hash().as_str().to_owned(),
            envelope: envelope.id.clone(),
            position: signer.position,
            email: signer.email.clone(),
            until: now + PASS_LIFE,
        };
        let text = serde_json::to_string(&pass);
        let text = text.map_err(|error| ServiceError::Internal(error.to_string()))?;
        let sealed = core.cipher.encrypt(&text, &pass_context(envelope));

        return Ok(CodeCheck::Right(sealed));
    }

    // By network, so that a stranger locks out only that network. Over all networks, because a code has
    // only a million values.
    state.failures += 1;
    failures.failures += 1;
    let mut locked_until = None;
    if failures.failures >= MOST_FAILURES {
        locked_until = Some(now + lock(failures.locks));
        failures = NetworkFailures {
            failures: 0,
            locks: failures.locks + 1,
            locked_until,
        };
    }

    if state.failures >= MOST_FAILURES_OF_ALL {
        locked_until = locked_until.max(Some(now + lock(state.locks)));
        state = CodeState {
            failures: 0,
            locks: state.locks + 1,
            locked_until,
            // The guesses so far were about this code. The next one makes them worthless.
            sent: None,
            ..state
        };
    }

    if locked_until.is_some() {
        let failed = EventType::SignerAccessFailed;
        events::record_and_emit(&mut tx, envelope, &actor, failed, details, now).await?;
    }

    access_codes::put(&mut tx, envelope, signer, &state).await?;
    access_codes::put_failures(&mut tx, envelope, signer, network, &failures).await?;
    tx.commit().await?;

    Ok(locked_until.map_or(CodeCheck::Wrong, CodeCheck::Locked))
}

/// Returns the time of a lock after `locks` earlier ones.
fn lock(locks: i64) -> Duration {
    let [first, second, later] = LOCKS;
    match locks {
        0 => first,
        1 => second,
        _ => later,
    }
}

/// Compares by hashes, so that the time reveals nothing about the expected text.
fn is_equal(expected: &str, given: &str) -> bool {
    Sha256::digest(expected) == Sha256::digest(given)
}
