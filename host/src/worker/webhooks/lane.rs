//! What one node has in hand for one endpoint: deliveries in their order, and what
//! the receiver has shown of itself.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::breaker::{Breaker, Gate};
use super::schedule;
use crate::config::Webhooks;
use crate::delivery::sender::{PATIENCE, Target};
use crate::domain::clock::Timestamp;
use crate::domain::id::{DeliveryId, EnvelopeId};
use crate::domain::webhook::{DeliveryStatus, DisableReason, Health, Outcome};
use crate::store::deliveries::{Attempt, Due, Settlement};
use crate::store::webhooks::{Held, OwnedEndpoint};

/// Attempts at once to one endpoint.
const AT_ONCE: usize = 8;
/// Attempts that are made and not recorded yet: a crash makes them once more.
const UNSETTLED: usize = 16;
/// Deliveries looked for at once, at first and at most.
const FEW: usize = 16;
const MANY: usize = 256;
/// Of their bodies, in bytes.
const BODIES: usize = 1024 * 1024;
/// A receiver that takes as many as were looked for within this is a fast one.
const SOON: Duration = Duration::from_millis(250);
/// How long an endpoint with nothing to do is kept, and what is due sooner waited for.
const IDLE: Duration = Duration::from_secs(2);
/// No attempt is begun that may last longer than the endpoint is held.
const MARGIN: Duration = Duration::from_secs(1);

/// Between two looks when one has failed.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Every attempt has failed for so long: the owner is told; the endpoint is disabled.
const WARN_AFTER: Duration = Duration::from_secs(2 * 86_400);
const DISABLE_AFTER: Duration = Duration::from_secs(5 * 86_400);

pub(super) struct Lane {
    pub owned: OwnedEndpoint,
    pub target: Arc<Target>,
    pub epoch: i64,
    health: Health,
    held_until: Instant,
    /// Its settings have changed, and are being read.
    suspended: bool,
    breaker: Breaker,
    queue: VecDeque<Due>,
    /// In the queue, under way, or not recorded yet.
    known: HashSet<DeliveryId>,
    /// Envelopes of which something is under way or not recorded yet: their next
    /// event waits for it.
    busy: HashSet<EnvelopeId>,
    in_flight: usize,
    unsettled: usize,
    looking: Looking,
    /// Recorded while a look was under way, which may still have seen them pending.
    settled_meanwhile: Vec<DeliveryId>,
    /// When the first of those that are not due yet will be.
    next_due: Option<Timestamp>,
    batch: usize,
    looked_at: Instant,
    /// After a look that failed.
    look_not_before: Instant,
    opened_at: Instant,
    active_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looking {
    /// Everything that is due is known.
    Done,
    Wanted,
    Underway {
        /// Something was committed since.
        again: bool,
    },
}

/// What an attempt comes to.
pub(super) struct Verdict {
    pub settlement: Settlement,
    pub envelope: Option<EnvelopeId>,
    /// Where it went.
    pub target: Arc<Target>,
    /// To be noted, when it has changed.
    pub health: Option<Health>,
    /// The owner is to be told that nothing arrives.
    pub warn: bool,
    pub disable: Option<Disable>,
}

/// An endpoint that is to be disabled, unless it has moved meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Disable {
    pub endpoint: OwnedEndpoint,
    pub url: String,
    pub reason: DisableReason,
}

impl Lane {
    pub fn new(
        owned: OwnedEndpoint,
        held: Held,
        target: Target,
        until: Instant,
        settings: &Webhooks,
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
            breaker: Breaker::new(paused, settings.retry_delays.first().copied()),
            queue: VecDeque::new(),
            known: HashSet::new(),
            busy: HashSet::new(),
            in_flight: 0,
            unsettled: 0,
            looking: Looking::Wanted,
            settled_meanwhile: Vec::new(),
            next_due: None,
            batch: FEW,
            looked_at: now,
            look_not_before: now,
            opened_at: now,
            active_at: now,
        }
    }

    /// Held for longer, with the settings as they are now.
    pub fn renew(&mut self, held: Held, target: Target, until: Instant) {
        if self.target.url != target.url {
            self.health = held.endpoint.health.clone();
            self.breaker = self.breaker.closed();
        }
        self.target = Arc::new(target);
        self.held_until = until;
        self.suspended = false;
    }

    /// Nothing is begun before [`Lane::renew`].
    pub fn suspend(&mut self) {
        self.suspended = true;
    }

    /// Something was committed for it.
    pub fn stir(&mut self) {
        self.looking = match self.looking {
            Looking::Underway { .. } => Looking::Underway { again: true },
            _ => Looking::Wanted,
        };
    }

    /// How many rows to look for, if it is time to: those that are known come first.
    pub fn look(&mut self) -> Option<i64> {
        let wanted = self.looking == Looking::Wanted && self.queue.len() <= self.batch / 4;
        if !wanted || self.suspended || Instant::now() < self.look_not_before {
            return None;
        }
        self.looking = Looking::Underway { again: false };
        i64::try_from(self.known.len() + self.batch).ok()
    }

    /// Takes in what a look for `limit` rows has found; nothing when it failed.
    pub fn found(&mut self, rows: Option<Vec<Due>>, limit: i64, now: Timestamp) {
        let again = self.looking == Looking::Underway { again: true };
        let Some(rows) = rows else {
            self.looking = Looking::Wanted;
            self.look_not_before = Instant::now() + LOOK_AGAIN;
            return;
        };
        let full = i64::try_from(rows.len()).is_ok_and(|found| found >= limit);
        let missed = again || !self.settled_meanwhile.is_empty();
        let soon = self.looked_at.elapsed() < SOON;
        let largest = rows.iter().map(|row| row.body.len()).max().unwrap_or(0);
        self.looked_at = Instant::now();
        self.batch = if soon { self.batch * 2 } else { self.batch / 2 };
        self.batch = self.batch.min(BODIES / largest.max(1)).clamp(FEW, MANY);
        self.next_due = None;
        let mut later = false;
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
        for id in std::mem::take(&mut self.settled_meanwhile) {
            self.known.remove(&id);
            self.queue.retain(|due| due.id != id);
        }
        self.looking = if missed || (full && !later) {
            Looking::Wanted
        } else {
            Looking::Done
        };
    }

    /// The next delivery to be attempted now, if one may be.
    pub fn next(&mut self, now: Timestamp) -> Option<Due> {
        if self.suspended || self.unsettled >= UNSETTLED {
            return None;
        }
        if self.held_until < Instant::now() + PATIENCE + MARGIN {
            return None;
        }
        let at_once = match self.breaker.gate(now) {
            Gate::Open => AT_ONCE,
            Gate::Probe if self.unsettled == 0 => 1,
            Gate::Probe | Gate::Shut(_) => 0,
        };
        if self.in_flight >= at_once {
            return None;
        }
        let free = |due: &Due| {
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

    /// What an attempt that began at `at` and has just ended comes to.
    /// What the receiver has shown counts only when the endpoint is still there.
    pub fn attempted(
        &mut self,
        target: Arc<Target>,
        due: Due,
        outcome: Outcome,
        at: Timestamp,
        settings: &Webhooks,
    ) -> Verdict {
        let now = at + outcome.duration;
        self.in_flight -= 1;
        self.unsettled += 1;
        let succeeded = outcome.is_success();
        let before = self.health.clone();
        let mut disable = None;
        if target.url == self.target.url {
            let reason = self.note(&outcome, at, now);
            disable = reason.map(|reason| Disable {
                endpoint: self.owned.clone(),
                url: target.url.clone(),
                reason,
            });
        }
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
            Some(wait) if !outcome.is_gone() => (DeliveryStatus::Pending, Some(now + wait)),
            _ => (DeliveryStatus::Failed, None),
        };
        Verdict {
            settlement: Settlement {
                at: self.owned.clone(),
                epoch: self.epoch,
                delivery: due.id,
                attempt: Attempt::of(number, at, outcome),
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

    /// Notes what an attempt says of the receiver, and whether to give it up.
    fn note(&mut self, outcome: &Outcome, at: Timestamp, now: Timestamp) -> Option<DisableReason> {
        self.breaker.note(outcome.is_success(), now);
        self.health.paused_until = self.breaker.paused_until();
        if outcome.is_success() {
            self.health.failing_since = None;
            self.health.warned_at = None;
            return None;
        }
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

    /// An attempt is recorded.
    pub fn settled(&mut self, settlement: &Settlement, envelope: Option<&EnvelopeId>) {
        self.unsettled -= 1;
        self.active_at = Instant::now();
        if let Some(envelope) = envelope {
            self.busy.remove(envelope);
        }
        if let Some(due) = settlement.due_at {
            self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
        }
        match self.looking {
            Looking::Underway { .. } => self.settled_meanwhile.push(settlement.delivery.clone()),
            _ => {
                self.known.remove(&settlement.delivery);
            }
        }
    }

    /// Whether time alone has made something possible.
    pub fn wake(&mut self, now: Timestamp) -> bool {
        if self.next_due.is_some_and(|due| due <= now) {
            self.next_due = None;
            self.stir();
            return true;
        }
        self.looking == Looking::Wanted
            || (!self.queue.is_empty() && self.breaker.gate(now) == Gate::Probe)
    }

    /// Nothing is under way.
    pub fn is_quiet(&self) -> bool {
        let looking = matches!(self.looking, Looking::Underway { .. });
        self.in_flight == 0 && self.unsettled == 0 && !looking
    }

    /// Whether some other node could as well have it.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        let soon = now + IDLE;
        let shut = matches!(self.breaker.gate(now), Gate::Shut(until) if until > soon);
        let nothing = self.queue.is_empty() && self.looking == Looking::Done;
        let nothing_soon = nothing && self.next_due.is_none_or(|due| due > soon);
        self.is_quiet() && (shut || nothing_soon) && self.active_at.elapsed() > IDLE
    }

    pub fn was_opened_after(&self, asked: Instant) -> bool {
        self.opened_at > asked
    }

    /// Whether somebody else may have it by now.
    pub fn is_lost(&self) -> bool {
        self.held_until < Instant::now()
    }
}
