//! Deliveries of one endpoint that this node holds: their queue, attempts in progress, and the
//! receiver's health.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::breaker::{BreakerState, CircuitBreaker};
use super::schedule;
use holdfast_adapters::delivery::sender::{DeliveryTarget, PATIENCE};
use holdfast_base::config::WebhookSettings;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{DeliveryId, EnvelopeId};
use holdfast_domain::webhook::{AttemptOutcome, DeliveryStatus, DisableReason, EndpointHealth};
use holdfast_store::deliveries::{AttemptSettlement, DeliveryAttempt, PendingDelivery};
use holdfast_store::webhooks::{EndpointLease, OwnedEndpoint};

/// Maximum number of concurrent attempts at one endpoint.
const AT_ONCE: usize = 8;
/// Maximum number of attempts that are made but not recorded. A crash repeats them.
const UNSETTLED: usize = 16;
/// Number of deliveries in one read, at least and at most.
const FEW: usize = 16;
const MANY: usize = 256;
/// Size limit of their bodies, in bytes.
const BODIES: usize = 1024 * 1024;
/// A lane that needs its next batch within this time gets a larger one.
const SOON: Duration = Duration::from_millis(250);
/// Time after which an idle endpoint is released, unless a delivery is due within the same time.
const IDLE: Duration = Duration::from_secs(2);
/// Minimum lease time left beyond the longest possible attempt when one starts.
const MARGIN: Duration = Duration::from_secs(1);

/// Pause after a failed read.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Periods of uninterrupted failure after which the owner is warned and the endpoint is disabled.
const WARN_AFTER: Duration = Duration::from_secs(2 * 86_400);
const DISABLE_AFTER: Duration = Duration::from_secs(5 * 86_400);

pub(super) struct EndpointLane {
    pub owned: OwnedEndpoint,
    pub target: Arc<DeliveryTarget>,
    pub epoch: i64,
    health: EndpointHealth,
    held_until: Instant,
    /// Set while changed settings are being read.
    suspended: bool,
    breaker: CircuitBreaker,
    queue: VecDeque<PendingDelivery>,
    /// Deliveries in the queue, in flight, or not recorded yet.
    known: HashSet<DeliveryId>,
    /// Envelopes with a delivery in flight or not recorded yet. Their next event waits, to keep the
    /// order.
    busy: HashSet<EnvelopeId>,
    in_flight: usize,
    unsettled: usize,
    looking: QueueRead,
    /// Deliveries recorded during a read, which may still have seen them as pending.
    settled_meanwhile: Vec<DeliveryId>,
    /// Earliest due time of the deliveries that are not due yet.
    next_due: Option<Timestamp>,
    batch: usize,
    looked_at: Instant,
    /// Pause after a failed read.
    look_not_before: Instant,
    opened_at: Instant,
    active_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueRead {
    /// All due deliveries are known.
    Done,
    Wanted,
    Underway {
        /// Deliveries were committed since the read began.
        again: bool,
    },
}

/// Result of an attempt, to be recorded.
pub(super) struct AttemptResult {
    pub settlement: AttemptSettlement,
    pub envelope: Option<EnvelopeId>,
    /// Target of the attempt.
    pub target: Arc<DeliveryTarget>,
    /// New health of the endpoint, if it has changed.
    pub health: Option<EndpointHealth>,
    /// Whether to warn the owner that nothing arrives.
    pub warn: bool,
    pub disable: Option<DisableRequest>,
}

/// Request to disable an endpoint, unless it has moved in the meantime.
#[derive(Clone, Debug)]
pub(super) struct DisableRequest {
    pub endpoint: OwnedEndpoint,
    pub url: String,
    pub reason: DisableReason,
}

impl EndpointLane {
    pub fn new(
        owned: OwnedEndpoint,
        held: EndpointLease,
        target: DeliveryTarget,
        until: Instant,
        settings: &WebhookSettings,
    ) -> Self {
        let now = Instant::now();
        let paused = held.endpoint.health.paused_until;
        Self {
            owned,
            target: Arc::new(target),
            epoch: held.epoch,
            health: held.endpoint.health,
            held_until: until,
            suspended: false,
            breaker: CircuitBreaker::new(paused, settings.retry_delays.first().copied()),
            queue: VecDeque::new(),
            known: HashSet::new(),
            busy: HashSet::new(),
            in_flight: 0,
            unsettled: 0,
            looking: QueueRead::Wanted,
            settled_meanwhile: Vec::new(),
            next_due: None,
            batch: FEW,
            looked_at: now,
            look_not_before: now,
            opened_at: now,
            active_at: now,
        }
    }

    /// Extends the lease and applies the current settings.
    pub fn renew(&mut self, held: EndpointLease, target: DeliveryTarget, until: Instant) {
        // Failures of the old address say nothing about the new one, which must not inherit a pause.
        if self.target.url != target.url {
            self.health = held.endpoint.health.clone();
            self.breaker = self.breaker.closed();
        }
        self.target = Arc::new(target);
        self.held_until = until;
        self.suspended = false;
    }

    /// Starts no attempt until [`EndpointLane::renew`].
    pub fn suspend(&mut self) {
        self.suspended = true;
    }

    /// Requests a read, because deliveries were committed.
    pub fn note_commit(&mut self) {
        self.looking = match self.looking {
            QueueRead::Underway { .. } => QueueRead::Underway { again: true },
            _ => QueueRead::Wanted,
        };
    }

    /// Returns the number of rows to read, if a read is due. Deliveries that are already known come
    /// first among them.
    pub fn next_read(&mut self) -> Option<i64> {
        // Reads begin while a quarter is left, so that a fast receiver does not wait for the database.
        let wanted = self.looking == QueueRead::Wanted && self.queue.len() <= self.batch / 4;
        if !wanted || self.suspended || Instant::now() < self.look_not_before {
            return None;
        }
        self.looking = QueueRead::Underway { again: false };
        i64::try_from(self.known.len() + self.batch).ok()
    }

    /// Adds the result of a read for `limit` rows to the queue. None means that the read failed.
    pub fn found(&mut self, rows: Option<Vec<PendingDelivery>>, limit: i64, now: Timestamp) {
        let again = self.looking == QueueRead::Underway { again: true };
        // The pause keeps a failing database from being asked in a tight loop.
        let Some(rows) = rows else {
            self.looking = QueueRead::Wanted;
            self.look_not_before = Instant::now() + LOOK_AGAIN;
            return;
        };

        let full = i64::try_from(rows.len()).is_ok_and(|found| found >= limit);
        let missed = again || !self.settled_meanwhile.is_empty();
        let soon = self.looked_at.elapsed() < SOON;
        let largest = rows.iter().map(|row| row.body.len()).max().unwrap_or(0);
        self.looked_at = Instant::now();

        // Fast receivers get larger batches, within the limit for the bodies' memory.
        self.batch = if soon { self.batch * 2 } else { self.batch / 2 };
        self.batch = self.batch.min(BODIES / largest.max(1)).clamp(FEW, MANY);
        self.next_due = None;

        let mut later = false;
        // Rows come by due time, so the first one of the future ends the list and sets the next look.
        for row in rows {
            if row.due_at > now {
                self.next_due = Some(row.due_at);
                later = true;
                break;
            }

            if self.known.insert(row.id.clone()) {
                self.queue.push_back(row);
            }
        }

        // The read began before these results were committed, and would bring the deliveries a second time.
        for id in std::mem::take(&mut self.settled_meanwhile) {
            self.known.remove(&id);
            self.queue.retain(|due| due.id != id);
        }

        self.looking = if missed || (full && !later) {
            QueueRead::Wanted
        } else {
            QueueRead::Done
        };
    }

    /// Removes and returns the next delivery to attempt, if one is permitted.
    pub fn next(&mut self, now: Timestamp) -> Option<PendingDelivery> {
        // A crash repeats all attempts that were sent and not recorded, so their number stays small.
        if self.suspended || self.unsettled >= UNSETTLED {
            return None;
        }

        // An attempt must end within the lease, or another node could attempt the same delivery.
        if self.held_until < Instant::now() + PATIENCE + MARGIN {
            return None;
        }

        let at_once = match self.breaker.gate(now) {
            BreakerState::Closed => AT_ONCE,
            BreakerState::HalfOpen if self.unsettled == 0 => 1,
            BreakerState::HalfOpen | BreakerState::Open(_) => 0,
        };
        if self.in_flight >= at_once {
            return None;
        }

        // Events of one envelope go out one after the other. Those of others may pass a waiting one.
        let free = |due: &PendingDelivery| {
            !due.envelope
                .as_ref()
                .is_some_and(|id| self.busy.contains(id))
        };
        let due = self.queue.remove(self.queue.iter().position(free)?)?;
        self.busy.extend(due.envelope.clone());

        self.in_flight += 1;
        self.active_at = Instant::now();
        Some(due)
    }

    /// Returns the result of an attempt that began at `at` and has just ended. It counts for the
    /// receiver's health only if the endpoint still has the same URL.
    pub fn attempted(
        &mut self,
        target: Arc<DeliveryTarget>,
        due: PendingDelivery,
        outcome: AttemptOutcome,
        at: Timestamp,
        settings: &WebhookSettings,
    ) -> AttemptResult {
        let now = at + outcome.duration;
        self.in_flight -= 1;
        self.unsettled += 1;
        let succeeded = outcome.is_success();
        let before = self.health.clone();

        let mut disable = None;
        // The address may have changed during the attempt, and this result is not the new receiver's.
        if target.url == self.target.url {
            let reason = self.note(&outcome, at, now);
            disable = reason.map(|reason| DisableRequest {
                endpoint: self.owned.clone(),
                url: target.url.clone(),
                reason,
            });
        }

        // The random part spreads retries, or a receiver that returns would get all of them at once.
        let number = due.attempts + 1;
        let wait = schedule::wait_after(
            u32::try_from(number).unwrap_or(u32::MAX),
            settings.max_attempts,
            &settings.retry_delays,
            outcome.retry_after,
            schedule::chance(),
        );
        let (status, due_at) = match wait {
            _ if succeeded => (DeliveryStatus::Delivered, None),
            // 410 means that the receiver wants no more, so the remaining attempts are not used.
            Some(wait) if !outcome.is_gone() => (DeliveryStatus::Pending, Some(now + wait)),
            _ => (DeliveryStatus::Failed, None),
        };

        AttemptResult {
            settlement: AttemptSettlement {
                at: self.owned.clone(),
                epoch: self.epoch,
                delivery: due.id,
                attempt: DeliveryAttempt::of(number, at, outcome),
                status,
                due_at,
            },
            envelope: due.envelope,
            target,
            warn: before.warned_at.is_none() && self.health.warned_at.is_some(),
            health: (before != self.health).then(|| self.health.clone()),
            disable,
        }
    }

    /// Updates the receiver's health. Returns the reason if the endpoint has to be disabled.
    fn note(
        &mut self,
        outcome: &AttemptOutcome,
        at: Timestamp,
        now: Timestamp,
    ) -> Option<DisableReason> {
        self.breaker.note(outcome.is_success(), now);
        self.health.paused_until = self.breaker.paused_until();
        if outcome.is_success() {
            self.health.failing_since = None;
            self.health.warned_at = None;
            return None;
        }

        // One success resets this time. Only failures without a break disable an endpoint.
        let since = *self.health.failing_since.get_or_insert(at);
        if outcome.is_gone() {
            return Some(DisableReason::Gone);
        }
        if since + DISABLE_AFTER <= now {
            return Some(DisableReason::Failing);
        }

        if since + WARN_AFTER <= now {
            self.health.warned_at.get_or_insert(now);
        }

        None
    }

    /// Records that an attempt's result is committed.
    pub fn settled(&mut self, settlement: &AttemptSettlement, envelope: Option<&EnvelopeId>) {
        self.unsettled -= 1;
        self.active_at = Instant::now();
        if let Some(envelope) = envelope {
            self.busy.remove(envelope);
        }

        if let Some(due) = settlement.due_at {
            self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
        }

        // A read in progress may still bring this delivery, so it stays known until that read is back.
        match self.looking {
            QueueRead::Underway { .. } => self.settled_meanwhile.push(settlement.delivery.clone()),
            _ => {
                self.known.remove(&settlement.delivery);
            }
        }
    }

    /// Returns whether the passage of time alone has made an action possible.
    pub fn wake(&mut self, now: Timestamp) -> bool {
        if self.next_due.is_some_and(|due| due <= now) {
            self.next_due = None;
            self.note_commit();
            return true;
        }
        self.looking == QueueRead::Wanted
            || (!self.queue.is_empty() && self.breaker.gate(now) == BreakerState::HalfOpen)
    }

    /// Returns whether no read, attempt or recording is in progress.
    pub fn is_quiet(&self) -> bool {
        let looking = matches!(self.looking, QueueRead::Underway { .. });
        self.in_flight == 0 && self.unsettled == 0 && !looking
    }

    /// Returns whether the endpoint can be released without delaying a delivery.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        // Giving an endpoint up and taking it again costs two writes, so a short pause is not worth it.
        let soon = now + IDLE;
        let is_open = matches!(self.breaker.gate(now), BreakerState::Open(until) if until > soon);
        let nothing = self.queue.is_empty() && self.looking == QueueRead::Done;
        let nothing_soon = nothing && self.next_due.is_none_or(|due| due > soon);
        self.is_quiet() && (is_open || nothing_soon) && self.active_at.elapsed() > IDLE
    }

    pub fn was_opened_after(&self, asked: Instant) -> bool {
        self.opened_at > asked
    }

    /// Returns whether the lease may have expired.
    pub fn is_lost(&self) -> bool {
        self.held_until < Instant::now()
    }
}
