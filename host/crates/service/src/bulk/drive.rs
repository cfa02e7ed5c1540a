//! Sends a batch in chunks: claims items, creates their envelopes in the same transaction, makes
//! their submissions at the provider, and settles the chunk.
//!
//! When a worker dies, the leases of its items expire. The next worker continues with the existing
//! envelope and finds the existing submission, so each client gets exactly one of both. Several
//! nodes may work on one batch; no two hold the same item.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::claim::{ClaimedItem, actor, claim, overtaken};
use super::ending::{finish, lose_master};
use crate::bulk::BulkState;
use crate::envelopes::{dispatch, lifecycle};
use crate::funding::{self, SendingCheck};
use holdfast_base::faults;
use holdfast_components::providers::ProviderError;
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::bulk::{Batch, BatchItem, BatchStatus, ItemOutcome, SubmittedMaster};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, SentDocument, Signer};
use holdfast_domain::id::{BatchId, OrgId};
use holdfast_domain::job::{NextStep, WithdrawSubmission};
use holdfast_platform::providers::{SigningProvider, provider};
use holdfast_platform::signers::signer_view;
use holdfast_platform::{Core, ServiceError, kba};
use holdfast_store::funding::{self as funding_rows, FundingCheck};
use holdfast_store::{
    StoreError, WriteTransaction, bulk, envelopes as envelope_store, signers as signer_store,
};

/// Maximum number of items in a claim.
pub(super) const CHUNK: usize = 10;
/// Retry interval of a lane while its provider is busy.
const TURN_WAIT: Duration = Duration::from_secs(1);
/// Duration of an item's lease, which its worker renews.
pub(super) const LEASE: Duration = Duration::from_secs(15);
const RENEWAL: Duration = Duration::from_secs(5);
/// Time after which a lane yields to the lanes of other batches.
const SLICE: Duration = Duration::from_millis(250);
/// Back-off of an item while its provider cannot be reached.
const RETRY_SECONDS: [u64; 3] = [1, 5, 15];
/// Bounds of the wait of a lane with nothing to do.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(1);
pub(super) const SHORTEST_WAIT: Duration = Duration::from_millis(50);

/// Wait when a provider limits the rate without giving a duration.
const RATE_LIMIT_SECONDS: u32 = 30;
/// Maximum length, in characters, of a provider's reason in an item's error.
const REASON: usize = 300;

/// Error of items in a batch that has lost its master template.
pub(super) const NO_MASTER: &str = "Master template cannot be read";

/// Limits how many items this node has in progress at one provider instance.
#[derive(Default)]
pub struct ProviderGates {
    by_instance: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl ProviderGates {
    fn of(&self, instance: &str, concurrency: usize) -> Arc<Semaphore> {
        let mut gates = self
            .by_instance
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let gate = gates
            .entry(instance.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(concurrency)));
        gate.clone()
    }
}

/// Works on a batch for one time slice.
pub async fn drive(
    core: &Core,
    bulk: &BulkState,
    org: &OrgId,
    id: &BatchId,
) -> Result<NextStep, ServiceError> {
    let until = Instant::now() + SLICE;
    loop {
        let mut connection = core.store.read().await?;
        let batch = bulk::get(&mut connection, org, id).await?;
        drop(connection);
        let Some(batch) = batch.filter(|batch| batch.status == BatchStatus::Running) else {
            return Ok(NextStep::Done);
        };
        let Some(master) = &batch.submitted else {
            return Err(ServiceError::Internal(
                "a batch runs without a master".into(),
            ));
        };

        let Some(turns) = turns(core, bulk, &batch).await else {
            // The provider is busy with other batches, or bulk send is disabled on this node.
            return Ok(NextStep::Again(core.clock.now() + TURN_WAIT));
        };

        let lane = core.pace.begin();
        let chunk = claim(core, &batch, master, turns.num_permits() as i64).await?;
        faults::pass("bulk claimed");
        if chunk.is_empty() {
            drop(turns);
            return wait_or_finish(core, &batch).await;
        }

        send(core, &batch, master, chunk, turns).await?;
        faults::pass("bulk settled");

        let pause = lane.end();
        if Instant::now() + pause >= until {
            return Ok(NextStep::Again(core.clock.now() + pause));
        }
        tokio::time::sleep(pause).await;
    }
}

/// Acquires permits for a whole chunk before items are claimed, so that no leased item waits for
/// the provider. None if the permits do not become free within a slice, or bulk send is disabled.
async fn turns(core: &Core, bulk: &BulkState, batch: &Batch) -> Option<OwnedSemaphorePermit> {
    let instance = batch.provider_instance.as_deref().unwrap_or_default();
    let concurrency = core.config.bulk.concurrency;
    if concurrency == 0 {
        return None;
    }

    let gate = bulk.gates.of(instance, concurrency);
    let wanted = concurrency.min(CHUNK) as u32;
    let free = tokio::time::timeout(SLICE, gate.acquire_many_owned(wanted));
    free.await.ok()?.ok()
}

async fn wait_or_finish(core: &Core, batch: &Batch) -> Result<NextStep, ServiceError> {
    let mut connection = core.store.read().await?;
    let due = bulk::next_due(&mut connection, batch).await?;
    drop(connection);

    let now = core.clock.now();
    match due {
        Some(at) => Ok(NextStep::Again(
            at.clamp(now + SHORTEST_WAIT, now + LONGEST_WAIT),
        )),
        None => {
            finish(core, batch).await?;
            Ok(NextStep::Done)
        }
    }
}

/// Submission that a provider has accepted.
struct ProviderSubmission {
    id: String,
    signing: SigningProvider,
    /// Check by the funding rules before it.
    checked: Option<FundingCheck>,
}

/// Reason why an item was not sent.
enum SendFailure {
    /// The master template cannot be cloned, for any client.
    Master,
    Other(ServiceError),
}

/// Submits all items of a chunk and settles them.
async fn send(
    core: &Core,
    batch: &Batch,
    master: &SubmittedMaster,
    mut chunk: Vec<ClaimedItem>,
    mut turns: OwnedSemaphorePermit,
) -> Result<(), ServiceError> {
    let items: Vec<BatchItem> = chunk.iter().map(|parcel| parcel.item.clone()).collect();
    // Each releases its permit as soon as it has its answer. Unused permits are released at once.
    let submit_all = join_all(chunk.iter_mut().map(|parcel| {
        let turn = turns.split(1);
        async move {
            let submission = submit(core, batch, master, parcel).await;
            drop(turn);
            submission
        }
    }));

    drop(turns);

    // While the provider is slow, the leases must not expire: another worker would repeat the
    // calls.
    let renewals = async {
        loop {
            tokio::time::sleep(RENEWAL).await;
            let until = core.clock.now() + LEASE;
            if let Err(error) = bulk::renew(&core.store, &items, until).await {
                tracing::warn!(batch = %batch.id, %error, "bulk item leases could not be renewed");
            }
        }
    };

    let submissions = tokio::select! {
        submissions = submit_all => submissions,
        never = renewals => never,
    };
    faults::pass("bulk submitted");

    settle(core, batch, chunk, submissions).await
}

/// Clones the master for one client and creates the submission. Both calls are idempotent: a repeat
/// finds what the first one made.
async fn submit(
    core: &Core,
    batch: &Batch,
    master: &SubmittedMaster,
    parcel: &mut ClaimedItem,
) -> Result<ProviderSubmission, SendFailure> {
    let instance = batch.provider_instance.as_deref().unwrap_or_default();
    let signing = provider(core, &batch.org, instance).map_err(SendFailure::Other)?;
    let ClaimedItem {
        item,
        envelope,
        signers,
        values,
    } = parcel;

    let checked = checked(core, envelope, signers, values).await;
    let checked = checked.map_err(SendFailure::Other)?;

    let source = &master.provider_template;
    let clone = signing.clone_template(source, &envelope.name, item.id.as_str());
    let clone = clone.await.map_err(|error| match error {
        ProviderError::NotFound => SendFailure::Master,
        error => SendFailure::Other(error.into()),
    })?;
    // The digest covers people and values. A client that was corrected since gets
    // a new submission, not the old one.
    let named: Vec<Value> = signers.iter().map(signer_view).collect();
    let what = json!([named, values, envelope.sending.preserve_signing_order]);

    let role = master.roles.first().cloned().unwrap_or_default();
    let request = dispatch::DispatchRequest {
        template: &clone.template_id,
        external_id: dispatch::external_id(&envelope.id, &what),
        values: vec![(role, values.clone())],
    };
    let id = dispatch::submit(core, &signing, envelope, request, signers).await;

    Ok(ProviderSubmission {
        id: id.map_err(SendFailure::Other)?,
        signing,
        checked: checked.into_record(),
    })
}

/// Checks the contract of one client by the funding rules, with the values that its fields are filled with.
async fn checked(
    core: &Core,
    envelope: &Envelope,
    signers: &[Signer],
    values: &[(String, String)],
) -> Result<SendingCheck, ServiceError> {
    let mut asked = envelope.clone();
    let values = values
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)));
    asked.set_prefilled(&values.collect());
    let checked = funding::before_sending(core, &asked, signers, None).await?;
    if let Some(refused) = checked.refusal() {
        funding::record_refusal(core, envelope, checked).await?;
        return Err(refused.into());
    }

    Ok(checked)
}

/// Settles a chunk in one transaction.
async fn settle(
    core: &Core,
    batch: &Batch,
    chunk: Vec<ClaimedItem>,
    submissions: Vec<Result<ProviderSubmission, SendFailure>>,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let mut lost_master = false;
    let mut outcomes = Vec::new();

    let mut tx = core.store.begin().await?;
    for (parcel, submission) in chunk.into_iter().zip(submissions) {
        if !bulk::holds(&mut tx, &parcel.item).await? {
            // The lease expired and another worker has the item. It finds this submission, unless
            // it searched before the submission existed.
            if let Ok(submission) = submission {
                put_aside(&mut tx, batch, &parcel.envelope, submission.id, now).await?;
            }
            continue;
        }

        let outcome = match submission {
            Ok(submission) => sent(core, &mut tx, batch, &parcel, submission, now).await?,
            Err(SendFailure::Master) => {
                lost_master = true;
                ItemOutcome::Failed(NO_MASTER.into())
            }
            Err(SendFailure::Other(error)) => not_sent(batch, &parcel.item, &error, now),
        };
        bulk::settle(&mut tx, &parcel.item, &outcome).await?;

        outcomes.push(outcome);
    }

    tx.commit().await?;

    // Counted after the commit, so that a failed transaction counts nothing.
    for outcome in outcomes.iter().filter(|_| !batch.org.is_test()) {
        core.metrics.bulk_items.get_or_create(&outcome.into()).inc();
    }

    // After the commit, because it locks the batch and fails the items that this chunk does not hold.
    if lost_master {
        lose_master(core, batch).await?;
    }

    Ok(())
}

/// Schedules the withdrawal of a submission that belongs to no envelope.
async fn put_aside(
    tx: &mut WriteTransaction,
    batch: &Batch,
    envelope: &Envelope,
    submission: String,
    now: Timestamp,
) -> Result<(), StoreError> {
    let stray = WithdrawSubmission {
        envelope: envelope.id.clone(),
        instance: batch.provider_instance.clone().unwrap_or_default(),
        submission,
    };
    dispatch::insert_stray(tx, &batch.org, &stray, now).await
}

/// Marks an envelope as sent. If it was sent by hand or ended in the meantime, it is left alone and
/// the submission is withdrawn.
async fn sent(
    core: &Core,
    tx: &mut WriteTransaction,
    batch: &Batch,
    parcel: &ClaimedItem,
    submission: ProviderSubmission,
    now: Timestamp,
) -> Result<ItemOutcome, ServiceError> {
    // A user may have sent or voided the envelope by hand while the provider was called.
    let before = envelope_store::lock(tx, &batch.org, &parcel.envelope.id).await?;
    let before = before.ok_or(ServiceError::NotFound("Envelope"))?;
    if let Some(outcome) = overtaken(&before, now) {
        put_aside(tx, batch, &before, submission.id, now).await?;
        return Ok(outcome);
    }

    submission.signing.write(tx).await?;
    let decided = lifecycle::decide(core, &before, EnvelopeTrigger::Send).await?;
    let from = before.status;
    let sent = Envelope {
        status: decided.status,
        updated_at: now,
        sending: SentDocument {
            submission: Some(submission.id),
            ..before.sending
        },
        ..before
    };

    envelope_store::set_sent(tx, from, &sent).await?;
    decided.record(tx, &sent, now).await?;
    if let Some(check) = &submission.checked {
        funding_rows::insert_decision(tx, &sent.org, check).await?;
    }

    // The signers are replaced because only now they have ids at the provider.
    signer_store::forget(tx, &sent).await?;
    let mut signers = parcel.signers.clone();
    kba::mark_challenged(tx, &sent, Some(&batch.created_by), &mut signers).await?;
    for signer in &signers {
        signer_store::insert(tx, &sent, signer).await?;
    }

    dispatch::announce(tx, &sent, &signers, &[], &actor(batch), now).await?;
    Ok(ItemOutcome::Sent(now))
}

/// Decides about an item that could not be sent: a later retry, or failure if the provider rejected
/// it or the attempts are used up.
fn not_sent(batch: &Batch, item: &BatchItem, error: &ServiceError, now: Timestamp) -> ItemOutcome {
    let why = match error {
        ServiceError::Provider(ProviderError::Rejected(why)) => {
            let why = limited(why);
            return ItemOutcome::Failed(format!("Signing provider refused: {why}"));
        }
        // A repeat would be refused again: the document or the rules have to change first.
        ServiceError::Problem(problem) => return ItemOutcome::Failed(limited(&problem.message)),
        // A rate limit is not the item's fault and uses up no attempt.
        ServiceError::Provider(ProviderError::RateLimited(seconds)) => {
            let wait = seconds.unwrap_or(RATE_LIMIT_SECONDS).clamp(1, 3600);
            let at = now + Duration::from_secs(u64::from(wait));
            let why = "Signing provider limits the rate".into();
            return ItemOutcome::Later {
                at,
                why,
                counts: false,
            };
        }
        ServiceError::Provider(ProviderError::NotConfigured(_))
        | ServiceError::NotConfigured(_) => "Signing provider is not configured",
        ServiceError::Component(_) => "Funding rules could not be asked",
        _ => "Signing provider could not be reached",
    };

    let attempt = usize::try_from(item.attempts).unwrap_or(usize::MAX);
    let (batch, item) = (batch.id.as_str(), item.id.as_str());
    let wait = RETRY_SECONDS.get(attempt);
    tracing::warn!(batch, item, %error, retried = wait.is_some(), "bulk item not sent");

    match wait {
        Some(seconds) => ItemOutcome::Later {
            at: now + Duration::from_secs(*seconds),
            why: why.into(),
            counts: true,
        },
        None => ItemOutcome::Failed(why.into()),
    }
}

/// Returns a reason as users see it: its length and characters are limited.
fn limited(why: &str) -> String {
    why.chars()
        .filter(|c| !c.is_control())
        .take(REASON)
        .collect()
}
