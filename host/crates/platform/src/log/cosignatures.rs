//! Cosignatures of the log's heads: offers each new head to the witnesses of the log (C2SP `tlog-witness`).
//!
//! The log does not wait for them. A witness that is dead, slow or lying costs its own back-off and a report; the ledger
//! and vault-in go on without the quorum.

use std::time::Duration;

use futures::future::join_all;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{LogSequencer, QUORUM_PATIENCE};
use crate::{Core, ServiceError};
use holdfast_adapters::delivery::guard::{self, AddressRefusal, AllowedAddresses};
use holdfast_base::config::LogWitnessSettings;
use holdfast_base::metrics::WitnessLabels;
use holdfast_domain::checkpoint::{Cosignature, VerifierKey, size_of, split_note};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::log_witness::{AddCheckpoint, SIZE_TYPE, WitnessConflict, parse_size};
use holdfast_domain::merkle;
use holdfast_domain::succession::BelievedKeys;
use holdfast_store::log::{self, LogState};
use holdfast_store::log_witnesses::{self, LogWitnessState};
use holdfast_store::{SqlConnection, StoreError, chores};

/// Interval at which new heads are looked for.
const PERIOD: Duration = Duration::from_secs(1);
/// Time limit of one offer to a witness.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time for which a node has the only right to make offers, if it dies meanwhile.
const LEASE: Duration = Duration::from_secs(10);
/// Chore of the node that makes offers.
const CHORE: &str = "witnesses";
/// Largest answer of a witness, in bytes.
const LIMIT: usize = 4096;
/// Longest back-off.
const LONGEST_DELAY: Duration = Duration::from_secs(300);
/// Failures in a row before a witness is reported.
const MOST_FAILURES: i64 = 3;
/// How long evidence waits for the quorum.
const WAIT: Duration = Duration::from_secs(6);

/// Outcome of an offer, for the state of the witness.
enum OfferOutcome {
    Cosigned(Cosignature),
    /// The witness has a newer head, which another node offered meanwhile.
    Newer(u64),
    Contradicts(WitnessConflict),
}

/// Why an offer failed.
#[derive(Debug, thiserror::Error)]
enum OfferFailure {
    #[error("its address is refused: {0}")]
    Address(#[from] AddressRefusal),
    #[error("its url cannot have a path")]
    Url,
    #[error("it does not answer: {}", guard::cause(.0))]
    Unreachable(#[from] reqwest::Error),
    #[error("it does not answer within {} s", PATIENCE.as_secs())]
    TimedOut,
    #[error("it answered more than {} bytes", LIMIT)]
    TooLarge,
    #[error("it answered status {}", .0.as_u16())]
    Status(StatusCode),
    #[error("its answer has no valid cosignature of its key")]
    NoCosignature,
    #[error("its answer names no size of the log")]
    NoSize,
    #[error("it does not accept the size of the log that it names")]
    OtherSizes,
    #[error("the head cannot be proved to it: {0}")]
    Proof(String),
}

impl From<ServiceError> for OfferFailure {
    fn from(error: ServiceError) -> Self {
        Self::Proof(error.to_string())
    }
}

impl From<StoreError> for OfferFailure {
    fn from(error: StoreError) -> Self {
        Self::Proof(error.to_string())
    }
}

/// Answer of a witness to `add-checkpoint`.
enum WitnessAnswer {
    Cosigned(Cosignature),
    /// Size of the newest tree that the witness has cosigned.
    OtherSize(u64),
    /// The proof does not lead from the tree of the witness to the head.
    Inconsistent,
}

/// Head that is offered.
struct OfferedHead {
    size: u64,
    /// Signed note.
    note: String,
}

impl OfferedHead {
    fn text(&self) -> &str {
        split_note(&self.note).map_or("", |(text, _)| text)
    }
}

/// Offers new heads to the witnesses until `stop` is cancelled.
pub async fn run(core: Core, stop: CancellationToken) {
    if core.config.ledger.witnesses.is_empty() {
        return;
    }

    while !stop.is_cancelled() {
        if let Err(error) = offer(&core).await {
            tracing::error!(%error, "head of the log could not be offered to its witnesses");
        }

        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(PERIOD) => {}
        }
    }
}

/// Offers the newest head to the witnesses that lack it, and stores their cosignatures. One node does it at a time.
pub async fn offer(core: &Core) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let mut connection = core.store.read().await?;
    let head = log::head(&mut connection).await?;
    let Some(head) = head.and_then(offered) else {
        return Ok(());
    };
    let states = states(core, &mut connection).await?;
    drop(connection);

    // The back-off first: it spares the check of a signature.
    let mut due = states;
    due.retain(|(witness, state)| state.next_at <= now && !has_cosigned(witness, state, &head));
    if due.is_empty() {
        return Ok(());
    }

    let until = now + LEASE;
    if !chores::claim(&core.store, CHORE, now, until).await? {
        return Ok(());
    }

    // Side by side, so that a slow witness delays no other one.
    let mut offers = Vec::new();
    for (witness, state) in due {
        offers.push(offer_to(core, witness, state, &head));
    }
    let answered = join_all(offers).await;
    settle(core, &head, answered).await?;
    chores::let_go(&core.store, CHORE, until).await?;

    Ok(())
}

fn has_cosigned(witness: &LogWitnessSettings, state: &LogWitnessState, head: &OfferedHead) -> bool {
    let line = state.cosignature.as_deref().unwrap_or_default();
    witness.key.cosignature(head.text(), line).is_some()
}

/// Offers a head to a witness within the time limit. Returns the state of the witness afterwards.
async fn offer_to(
    core: &Core,
    witness: &LogWitnessSettings,
    state: LogWitnessState,
    head: &OfferedHead,
) -> LogWitnessState {
    let asked = ask_until_settled(core, witness, &state, head);
    let outcome = tokio::time::timeout(PATIENCE, asked).await;
    let outcome = outcome.unwrap_or(Err(OfferFailure::TimedOut));
    after(core, witness, state, head, outcome)
}

fn offered(head: LogState) -> Option<OfferedHead> {
    Some(OfferedHead {
        size: head.size,
        note: head.checkpoint?,
    })
}

/// Returns the configured witnesses with their states.
async fn states<'c>(
    core: &'c Core,
    connection: &mut SqlConnection,
) -> Result<Vec<(&'c LogWitnessSettings, LogWitnessState)>, ServiceError> {
    let known = log_witnesses::list(connection).await?;
    let now = core.clock.now();
    let witnesses = core.config.ledger.witnesses.iter();
    let with_state = witnesses.map(|settings| {
        let mut known = known.iter();
        let state = known.find(|state| state.name == settings.name).cloned();
        let state = state.unwrap_or_else(|| LogWitnessState::new(&settings.name, now));
        (settings, state)
    });

    Ok(with_state.collect())
}

/// Offers a head to a witness. A second request follows if the witness names the size that the proof has to begin with.
async fn ask_until_settled(
    core: &Core,
    witness: &LogWitnessSettings,
    state: &LogWitnessState,
    head: &OfferedHead,
) -> Result<OfferOutcome, OfferFailure> {
    // With size 0, a witness that claimed a larger one has to name its own again.
    let mut old = if state.size <= head.size {
        state.size
    } else {
        0
    };
    for _ in 0..2 {
        let answer = ask(core, witness, head, old).await?;
        let size = match answer {
            WitnessAnswer::Cosigned(cosignature) => return Ok(OfferOutcome::Cosigned(cosignature)),
            WitnessAnswer::Inconsistent => {
                let reason = format!(
                    "its head of {old} entries is not the beginning of the log of {}",
                    head.size
                );
                return conflict(core, witness, head, old, reason).await;
            }
            WitnessAnswer::OtherSize(size) => size,
        };

        if size > head.size {
            return larger(core, witness, head, size).await;
        }
        if size == old && size == head.size {
            let reason = format!("its head of {size} entries has another root than the log");
            return conflict(core, witness, head, size, reason).await;
        }
        old = size;
    }

    Err(OfferFailure::OtherSizes)
}

/// Judges a witness that names more entries than the offered head has.
async fn larger(
    core: &Core,
    witness: &LogWitnessSettings,
    head: &OfferedHead,
    size: u64,
) -> Result<OfferOutcome, OfferFailure> {
    // The log may have grown meanwhile, and another node may have offered the newer head.
    let mut connection = core.store.read().await?;
    let now = log::head(&mut connection).await?;
    drop(connection);
    if now.is_some_and(|now| now.size >= size) {
        return Ok(OfferOutcome::Newer(size));
    }

    let reason = format!(
        "it has cosigned {size} entries, and the log has {}: the log was truncated, or another \
         history of it was signed",
        head.size
    );
    conflict(core, witness, head, size, reason).await
}

/// Makes one request.
async fn ask(
    core: &Core,
    witness: &LogWitnessSettings,
    head: &OfferedHead,
    old: u64,
) -> Result<WitnessAnswer, OfferFailure> {
    let mut connection = core.store.read().await?;
    let proof = super::consistency(&mut connection, old, head.size).await?;
    drop(connection);

    let nodes = proof.proof.iter();
    let request = AddCheckpoint {
        old,
        proof: nodes.filter_map(|node| merkle::parse(node)).collect(),
        note: head.note.clone(),
    };
    let url = below(&witness.url, &["add-checkpoint"])?;
    check(core, &url)?;
    let answer = core.own_http.post(url).body(request.to_string());
    let answer = answer.timeout(PATIENCE).send().await?;

    match answer.status() {
        StatusCode::OK => {
            let lines = text(answer).await?;
            let cosignature = witness.key.cosignature(head.text(), &lines);
            let cosignature = cosignature.ok_or(OfferFailure::NoCosignature)?;
            Ok(WitnessAnswer::Cosigned(cosignature))
        }
        StatusCode::CONFLICT => {
            let kind = answer.headers().get(CONTENT_TYPE);
            let is_size = kind.is_some_and(|kind| kind.as_bytes() == SIZE_TYPE.as_bytes());
            let size = text(answer).await?;
            let size = parse_size(size.trim_end_matches('\n')).filter(|_| is_size);
            // A witness with another root for the same size need not name the size.
            let size = size.or((old == head.size).then_some(old));
            Ok(WitnessAnswer::OtherSize(size.ok_or(OfferFailure::NoSize)?))
        }
        StatusCode::UNPROCESSABLE_ENTITY if old > 0 => Ok(WitnessAnswer::Inconsistent),
        status => Err(OfferFailure::Status(status)),
    }
}

/// Returns a URL below the one of a witness.
fn below(url: &Url, path: &[&str]) -> Result<Url, OfferFailure> {
    let mut url = url.clone();
    url.path_segments_mut()
        .map_err(|()| OfferFailure::Url)?
        .pop_if_empty()
        .extend(path);
    Ok(url)
}

fn check(core: &Core, url: &Url) -> Result<(), AddressRefusal> {
    let providers = &core.config.providers;
    let allowed =
        AllowedAddresses::public(providers.allow_insecure).with_networks(&providers.allow_networks);
    guard::check_url(url, &allowed)
}

async fn text(mut answer: Response) -> Result<String, OfferFailure> {
    // Read in pieces, so that the limit holds without a Content-Length.
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        if bytes.len() + piece.len() > LIMIT {
            return Err(OfferFailure::TooLarge);
        }
        bytes.extend_from_slice(&piece);
    }

    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Records that a witness and the log contradict each other, with both heads if the witness shows its own.
async fn conflict(
    core: &Core,
    witness: &LogWitnessSettings,
    head: &OfferedHead,
    witness_size: u64,
    reason: String,
) -> Result<OfferOutcome, OfferFailure> {
    let shown = shown_head(core, witness, head).await;
    let is_proof = match &shown {
        Some(note) => is_of_another_history(core, note).await?,
        None => false,
    };

    Ok(OfferOutcome::Contradicts(WitnessConflict {
        at: core.clock.now(),
        reason,
        witness_size,
        own_head: head.note.clone(),
        witness_head: shown,
        is_proof,
    }))
}

/// Asks a witness for its newest head of the log, as `holdfast witness` serves it. Others have no such address.
async fn shown_head(
    core: &Core,
    witness: &LogWitnessSettings,
    head: &OfferedHead,
) -> Option<String> {
    let origin = head.note.lines().next()?;
    let url = below(&witness.url, &["logs", &log_id(origin), "checkpoint"]).ok()?;
    check(core, &url).ok()?;
    // Less than the time of the offer: a head that does not come must not hide the contradiction.
    let request = core.own_http.get(url).timeout(PATIENCE / 2);
    let answer = request.send().await.ok()?;
    let is_found = answer.status() == StatusCode::OK;
    let note = text(answer).await.ok();
    // The operator's terminal gets this text.
    let is_plain =
        |note: &String| !note.contains(|letter: char| letter.is_control() && letter != '\n');
    note.filter(|note| is_found && is_plain(note) && split_note(note).is_some())
}

/// Returns the name by which a witness serves the head of a log: the SHA-256 of its origin, in hex.
pub fn log_id(origin: &str) -> String {
    hex::encode(Sha256::digest(origin))
}

/// Whether a head is signed with a key of this log and is none of its history.
async fn is_of_another_history(core: &Core, note: &str) -> Result<bool, ServiceError> {
    let mut connection = core.store.read().await?;
    let Some(head) = log::head(&mut connection).await? else {
        return Ok(false);
    };
    let successions = log::successions(&mut connection).await?;
    let key = head.public_key.as_deref().and_then(VerifierKey::parse);
    let opened = key.and_then(|key| {
        let keys = BelievedKeys::new(key, &successions);
        keys.open(note).ok().map(|(checkpoint, _)| checkpoint)
    });

    // A witness can show an honest head and name another size.
    Ok(match opened {
        None => false,
        Some(shown) if shown.size > head.size => true,
        Some(shown) => {
            let tiles = log::tiles(&mut connection, merkle::tiles_of_root(shown.size)).await?;
            tiles.root(shown.size)? != shown.root
        }
    })
}

/// Returns the state of a witness after an offer, and reports what went wrong.
fn after(
    core: &Core,
    witness: &LogWitnessSettings,
    mut state: LogWitnessState,
    head: &OfferedHead,
    outcome: Result<OfferOutcome, OfferFailure>,
) -> LogWitnessState {
    let (now, name) = (core.clock.now(), witness.name.as_str());
    let (label, problem) = match outcome {
        Ok(OfferOutcome::Cosigned(cosignature)) => {
            state.size = head.size;
            state.cosignature = Some(cosignature.line);
            state.answered_at = Some(now);
            ("cosigned", None)
        }
        Ok(OfferOutcome::Newer(size)) => {
            state.size = size;
            state.cosignature = None;
            ("cosigned", None)
        }
        Ok(OfferOutcome::Contradicts(found)) => {
            report(name, &found);
            let problem = found.reason.clone();
            state.conflict = Some(first_or_proof(state.conflict.take(), found));
            ("conflict", Some(problem))
        }
        Err(failure) => {
            let problem = failure.to_string();
            tracing::warn!(
                witness = name,
                problem,
                "witness did not cosign a head of the log"
            );
            ("failed", Some(problem))
        }
    };

    let outcome = label.to_owned();
    let labels = WitnessLabels { outcome };
    core.metrics.witness_answers.get_or_create(&labels).inc();
    state.failures = match problem {
        Some(_) => state.failures.saturating_add(1),
        None => 0,
    };
    state.next_at = now + delay(state.failures);
    state.problem = problem;
    state
}

fn report(name: &str, found: &WitnessConflict) {
    tracing::error!(
        witness = name,
        reason = found.reason,
        own_head = found.own_head,
        witness_head = found.witness_head.as_deref().unwrap_or("not shown"),
        is_proof = found.is_proof,
        "witness contradicts the log"
    );
}

/// Returns the conflict to store. The first one stays, unless a later one is proof.
fn first_or_proof(first: Option<WitnessConflict>, found: WitnessConflict) -> WitnessConflict {
    match first {
        Some(first) if first.is_proof || !found.is_proof => first,
        _ => found,
    }
}

/// Returns the time until the next offer: doubles from a second to five minutes.
fn delay(failures: i64) -> Duration {
    let doubled = u32::try_from(failures).unwrap_or(u32::MAX).min(16);
    match doubled {
        0 => Duration::ZERO,
        doubled => (PERIOD * 2_u32.pow(doubled - 1)).min(LONGEST_DELAY),
    }
}

/// Stores the answers, and the head with all lines if it has the quorum now.
async fn settle(
    core: &Core,
    head: &OfferedHead,
    answered: Vec<LogWitnessState>,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // Locked first, so that nodes whose offers overlap count the lines one after the other.
    let current = log::locked(&mut tx).await?;
    for state in &answered {
        log_witnesses::set(&mut tx, state).await?;
    }

    let all = states(core, &mut tx).await?;
    let with_head = all.iter().filter(|(_, state)| state.size == head.size);
    // Checked again: the head of an earlier history can have had the same size.
    let lines: Vec<String> = with_head
        .filter_map(|(witness, state)| {
            let lines = state.cosignature.as_deref()?;
            witness.key.cosignature(head.text(), lines)
        })
        .map(|cosignature| cosignature.line)
        .collect();

    if lines.len() >= core.config.ledger.quorum() {
        let note = format!("{}{}", head.note, lines.concat());
        // The lease can end during the offers. Another node may have stored a newer head then.
        let newest = current.and_then(|current| size_of(&current.cosigned?));
        if newest.is_none_or(|newest| newest <= head.size) {
            log::set_cosigned(&mut tx, &note, now).await?;
        }
    } else {
        log::set_uncosigned(&mut tx, now).await?;
    }

    tx.commit().await?;
    Ok(())
}

/// Waits until every entry written so far is placed, and for a while until the quorum has cosigned a head with all of
/// them. Returns their number.
pub async fn catch_up(core: &Core, sequencer: &LogSequencer) -> Result<u64, ServiceError> {
    super::catch_up(core, sequencer).await?;
    let size = super::size(core).await?;
    wait(core, size).await?;
    Ok(size)
}

/// Waits for a while until the quorum has cosigned a head of at least `size` entries. Returns whether it has. Does not
/// wait where no quorum is to be expected.
pub async fn wait(core: &Core, size: u64) -> Result<bool, ServiceError> {
    if core.config.ledger.witnesses.is_empty() || size == 0 {
        return Ok(false);
    }

    let deadline = Instant::now() + WAIT;
    loop {
        let mut connection = core.store.read().await?;
        let head = log::head(&mut connection).await?;
        drop(connection);

        let cosigned = head.as_ref().and_then(|head| head.cosigned.as_deref());
        if cosigned
            .and_then(size_of)
            .is_some_and(|found| found >= size)
        {
            return Ok(true);
        }
        let missing = head.map_or(Duration::ZERO, |head| missing_for(&head, core.clock.now()));
        if missing > QUORUM_PATIENCE || Instant::now() > deadline {
            return Ok(false);
        }

        offer(core).await?;
        tokio::time::sleep(PERIOD / 4).await;
    }
}

/// Returns how long the newest head has lacked the quorum.
fn missing_for(head: &LogState, now: Timestamp) -> Duration {
    if head.cosigned.as_deref().and_then(size_of) == Some(head.size) {
        return Duration::ZERO;
    }
    // Without a note, no node has offered the head yet.
    let since = head.uncosigned_since.or(head.signed_at);
    since.map_or(Duration::ZERO, |since| now.since(since))
}

/// Witness of the log with its state, for the operator.
#[derive(Debug, Serialize)]
pub struct LogWitnessView {
    pub name: String,
    pub key: String,
    /// Newest size of the log that it is known to have cosigned.
    pub tree_size: u64,
    pub answered_at: Option<Timestamp>,
    /// Failures since its last cosignature.
    pub failures: i64,
    pub problem: Option<String>,
    /// Contradiction with the log, with both heads.
    pub conflict: Option<WitnessConflict>,
}

/// Returns the configured witnesses.
pub async fn list(core: &Core) -> Result<Vec<LogWitnessView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let states = states(core, &mut connection).await?;
    let views = states.into_iter().map(|(settings, state)| LogWitnessView {
        name: state.name,
        key: settings.key.to_string(),
        tree_size: state.size,
        answered_at: state.answered_at,
        failures: state.failures,
        problem: state.problem,
        conflict: state.conflict,
    });
    Ok(views.collect())
}

/// Checks that the witnesses answer, that none contradicts the log, and that the quorum is not missing.
///
/// # Errors
/// `Internal` with everything that is wrong.
pub async fn check_witnesses(core: &Core) -> Result<String, ServiceError> {
    let witnesses = list(core).await?;
    if witnesses.is_empty() {
        return Ok("the log has no witnesses".into());
    }

    let mut connection = core.store.read().await?;
    let head = log::head(&mut connection).await?;
    let now = core.clock.now();
    let mut problems: Vec<String> = Vec::new();
    for witness in &witnesses {
        if let Some(conflict) = &witness.conflict {
            let reason = &conflict.reason;
            problems.push(format!("{} contradicts the log: {reason}", witness.name));
        } else if let Some(problem) = &witness.problem
            && is_silent(witness, now)
        {
            problems.push(format!("{} does not cosign: {problem}", witness.name));
        }
    }

    let missing = head
        .as_ref()
        .map_or(Duration::ZERO, |head| missing_for(head, now));
    if missing > QUORUM_PATIENCE {
        let minutes = missing.as_secs() / 60;
        problems.push(format!(
            "heads have lacked the quorum for {minutes} minutes"
        ));
    }

    if !problems.is_empty() {
        return Err(ServiceError::Internal(problems.join("; ")));
    }

    let cosigned = head.and_then(|head| size_of(&head.cosigned?));
    Ok(format!(
        "{} witnesses, quorum {}; newest cosigned head: {} entries",
        witnesses.len(),
        core.config.ledger.quorum(),
        cosigned.unwrap_or_default()
    ))
}

fn is_silent(witness: &LogWitnessView, now: Timestamp) -> bool {
    let answered_lately = |at: Timestamp| now.since(at) <= QUORUM_PATIENCE;
    witness.failures >= MOST_FAILURES && !witness.answered_at.is_some_and(answered_lately)
}

/// Updates the metrics about cosigned heads.
pub fn count(core: &Core, head: &LogState) {
    let cosigned = head.cosigned.as_deref().and_then(size_of);
    let cosigned = cosigned.unwrap_or_default().cast_signed();
    core.metrics.ledger_cosigned_size.set(cosigned);
    if !core.config.ledger.witnesses.is_empty() {
        let missing = missing_for(head, core.clock.now()).as_secs();
        core.metrics.quorum_missing.set(missing.cast_signed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_up_to_five_minutes() {
        let seconds = |failures| delay(failures).as_secs();
        assert_eq!([0, 1, 2, 3, 9].map(seconds), [0, 1, 2, 4, 256]);
        assert_eq!([10, 40, i64::MAX].map(seconds), [300; 3]);
    }

    #[test]
    fn a_head_that_the_log_signed_replaces_a_claim() {
        let conflict = |reason: &str, is_proof| WitnessConflict {
            at: Timestamp::from_millis(0),
            reason: reason.into(),
            witness_size: 1,
            own_head: String::new(),
            witness_head: None,
            is_proof,
        };
        let claim = conflict("claim", false);
        let proof = conflict("proof", true);
        for (first, found, stored) in [
            (None, &claim, "claim"),
            (Some(&claim), &conflict("later", false), "claim"),
            (Some(&claim), &proof, "proof"),
            (Some(&proof), &claim, "proof"),
            (Some(&proof), &conflict("later", true), "proof"),
        ] {
            let kept = first_or_proof(first.cloned(), found.clone());
            assert_eq!(kept.reason, stored);
        }
    }
}
