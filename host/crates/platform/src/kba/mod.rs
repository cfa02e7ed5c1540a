//! Identity questions in front of a document (specification, "KBA and template composition"). A
//! provider asks; the host records the result.
//!
//! | File | Holds |
//! |---|---|
//! | `mod.rs` | which signers are asked, and the results for the back office |
//! | `binding.rs` | the browser in which a signer passed, and other ones |
//! | `gate.rs` | the check in front of the document, and one step through it |
//! | `outcome.rs` | recording a result and its price |
//!
//! A signer's input goes to the provider and is stored nowhere: not in the database, not in a log
//! line, not in an error.

mod binding;
mod gate;
mod outcome;

use std::time::Duration;

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::Serialize;

pub use binding::recognise;
pub use gate::{
    IdentityGate, IdentityInput, IdentityNotice, IdentityPage, IdentityPrompt, IdentityQuestion,
    IdentitySubmission, gate, go_on, is_open,
};

use crate::lookup;
use crate::sandbox;
use crate::{Caller, Core, ServiceError};
use holdfast_base::config::EMBEDDED;
use holdfast_components::providers::{KbaProvider, LeasedPlugin, ProviderError};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::Slot;
use holdfast_domain::envelope::{Envelope, Signer};
use holdfast_domain::id::OrgId;
use holdfast_domain::identity::{KbaSession, KbaStatus};
use holdfast_domain::ledger::LedgerEntry;
use holdfast_store::{StoreError, api_keys, kba, ledger};

/// Checks that an identity provider is available before a document that needs one is sent.
pub async fn check_step(core: &Core, org: &OrgId, kba_required: bool) -> Result<(), ServiceError> {
    if !kba_required {
        return Ok(());
    }

    // A call that changes nothing: a missing setting is found now, and not by the signer.
    let instance = core.instance(Slot::Kba, org);
    provider(core, org, &instance)?
        .required_identity()
        .await
        .map_err(|error| ServiceError::OtherProvider(Slot::Kba, ProviderError::from(error)))?;

    Ok(())
}

/// Opens a provider instance.
///
/// # Errors
/// [`ServiceError::NotConfigured`] when there is no such instance.
fn provider(
    core: &Core,
    org: &OrgId,
    instance: &str,
) -> Result<Box<dyn KbaProvider>, ServiceError> {
    if instance == EMBEDDED {
        return Ok(core.sandbox(Slot::Kba, Some(org))?.kba());
    }
    let lease = core.lease(Slot::Kba, instance)?;
    let plugin = core.components.kba(Some(org), instance);
    Ok(Box::new(LeasedPlugin { plugin, lease }))
}

/// Marks the signers who must answer identity questions: those on the client's side. The sender's
/// own people are exempt: creator, sender, and owners of active API keys.
pub async fn mark_challenged(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    sender: Option<&str>,
    signers: &mut [Signer],
) -> Result<(), StoreError> {
    if !envelope.sending.kba_required {
        return Ok(());
    }
    let own = own_people(connection, envelope, sender).await?;
    for signer in signers {
        signer.challenged = !is_among(&own, &signer.email);
    }
    Ok(())
}

/// Returns whether a person who takes a signer's place must answer identity questions.
pub async fn is_challenged(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    email: &str,
) -> Result<bool, StoreError> {
    if !envelope.sending.kba_required {
        return Ok(false);
    }
    let own = own_people(connection, envelope, None).await?;
    Ok(!is_among(&own, email))
}

async fn own_people(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    sender: Option<&str>,
) -> Result<Vec<String>, StoreError> {
    // These are the addresses that the service can prove to be of the sender's side.
    let mut own = api_keys::owner_emails(connection, &envelope.org).await?;
    own.extend(envelope.creator_email().map(str::to_owned));
    own.extend(sender.map(str::to_owned));
    Ok(own)
}

fn is_among(own: &[String], email: &str) -> bool {
    own.iter().any(|one| one.eq_ignore_ascii_case(email))
}

/// Result of one attempt (specification, "KBA result").
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "kba_id": "kba_01jdk7m3e8f4x9s2w5v6b0c1dj", "status": "passed",
    "signer": { "email": "jordan.lee@example.com", "name": "Jordan Lee", "role": "Buyer" },
    "occurred_at": "2026-11-21T09:36:12.000Z", "provider_session_id": "evf_3VT3bHTCnPbrm",
    "ip_address": "203.0.113.7", "price_cents": 400,
}]))]
pub struct KbaResult {
    pub kba_id: String,
    /// `passed`, `failed` or `unavailable`.
    pub status: KbaStatus,
    /// Signer who answered.
    pub signer: AnsweredBy,
    pub occurred_at: Timestamp,
    pub provider_session_id: Option<String>,
    pub ip_address: Option<String>,
    /// US cents: 400 for a signer's first pass in a calendar month, else 0.
    pub price_cents: i64,
    /// Whether the sandbox answered, and no person.
    #[serde(skip)]
    pub is_simulated: bool,
}

/// Signer as of the time of the answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AnsweredBy {
    pub email: String,
    pub name: String,
    pub role: String,
}

/// Returns an envelope's results, oldest first.
pub async fn results(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<Vec<KbaResult>, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    let mut connection = core.store.read().await?;
    let sessions = kba::list(&mut connection, &envelope.org, &envelope.id).await?;

    // Another person can have taken the place since. The ledger names the one who answered.
    let entries = ledger::list(&mut connection, Some(&envelope.org), &envelope.id).await?;
    let told = |session: KbaSession| {
        let id = session.id.as_str();
        let is_of_session =
            |entry: &&LedgerEntry| entry.action == outcome::ACTION && entry.details["kba_id"] == id;
        let answered = entries.iter().find(is_of_session);
        let answered = |member: &str| {
            let value = answered.and_then(|entry| entry.details["signer"][member].as_str());
            value.unwrap_or_default().to_owned()
        };

        Some(KbaResult {
            kba_id: session.id.to_string(),
            occurred_at: session.ended_at?,
            signer: AnsweredBy {
                name: answered("name"),
                role: answered("role"),
                email: session.email,
            },
            status: session.status,
            is_simulated: sandbox::is_sandbox(&session.instance),
            provider_session_id: session.provider_session,
            ip_address: session.ip,
            price_cents: session.price_cents,
        })
    };

    let known = sessions
        .into_iter()
        .filter(|session| is_result(session.status));
    Ok(known.filter_map(told).collect())
}

/// Returns whether the status is a result.
pub fn is_result(status: KbaStatus) -> bool {
    match status {
        KbaStatus::Passed | KbaStatus::Failed | KbaStatus::Unavailable => true,
        KbaStatus::Open | KbaStatus::Ended => false,
    }
}

/// Upper bound of a provider call's duration.
const LONGEST_CALL: Duration = Duration::from_secs(120);

/// Ends sessions that were not continued in time.
pub async fn forget(core: &Core) -> Result<(), ServiceError> {
    let now = core.clock.now();
    // An answer in progress may still end its session, so it gets the time of one call.
    let mut tx = core.store.begin().await?;
    kba::forget(&mut tx, now - LONGEST_CALL, now).await?;
    Ok(tx.commit().await?)
}
