//! Fair queue for a scarce resource. Organizations take turns, and within an organization its
//! envelopes. Requests go before jobs, most of the time. While several organizations compete, each
//! is limited to a share; a single one can use everything.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use holdfast_domain::id::OrgId;
use holdfast_domain::priority::PriorityClass;

/// Requests served in a row before a waiting job gets its turn.
const REQUESTS_IN_A_ROW: u32 = 4;
/// Time limit of a waiting request.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time limit of a waiting job.
const PATIENCE_OF_JOBS: Duration = Duration::from_secs(300);

/// Time for which shares apply after a second organization was seen.
const SHARED: Duration = Duration::from_secs(30);

/// Units that the queue hands out, and limits of waiting calls.
#[derive(Clone, Copy, Debug)]
pub struct QueueCapacity {
    /// Total number of units.
    pub units: usize,
    /// Units of one organization while others compete.
    pub of_organization: usize,
    /// Maximum number of waiting calls.
    pub waiting: usize,
    /// Maximum number of waiting calls of one organization.
    pub waiting_of_organization: usize,
    /// Maximum number of waiting calls for one envelope or document.
    pub waiting_of_item: usize,
}

/// Beneficiary of the work: an organization, and one of its envelopes or documents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct WorkOwner {
    org: String,
    item: String,
}

impl WorkOwner {
    /// Creates the owner; `item` is an envelope, a document, or empty.
    pub fn new(org: &OrgId, item: &str) -> Self {
        Self {
            org: org.to_string(),
            item: item.to_owned(),
        }
    }

    /// Creates the owner of look-ups for clients without a known credential: the network that they
    /// come from, which takes turns like an organization.
    pub fn of_network(network: &str) -> Self {
        Self {
            org: network.to_owned(),
            item: String::new(),
        }
    }
}

/// Fair queue; cheap to clone.
#[derive(Clone)]
pub struct FairQueue(Arc<Mutex<FairQueueState>>);

struct FairQueueState {
    capacity: QueueCapacity,
    free: usize,
    held: HashMap<String, usize>,
    requests: PriorityLine,
    jobs: PriorityLine,
    requests_in_a_row: u32,
    /// Organization of the latest call.
    latest: Option<String>,
    shared_until: Option<Instant>,
}

/// Waiting calls of one kind: requests or jobs.
#[derive(Default)]
struct PriorityLine {
    /// Waiting organizations in the order of their turns.
    turns: VecDeque<String>,
    waiting: HashMap<String, OrganizationCalls>,
}

/// Waiting calls of one organization.
#[derive(Default)]
struct OrganizationCalls {
    /// Items in the order of their turns.
    turns: VecDeque<String>,
    waiting: HashMap<String, VecDeque<WaitingCall>>,
}

struct WaitingCall {
    units: usize,
    ready: oneshot::Sender<QueueTurn>,
}

/// Right to use some units; dropping it releases them.
pub struct QueueTurn {
    /// None once the units are released.
    queue: Option<FairQueue>,
    org: String,
    units: usize,
}

impl Drop for QueueTurn {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            let mut state = queue.lock();
            // Waiting calls are woken here, because the queue has no task of its own.
            state.release(&self.org, self.units);
            state.serve(&queue);
        }
    }
}

impl FairQueue {
    /// Creates an empty queue.
    pub fn new(capacity: QueueCapacity) -> Self {
        Self(Arc::new(Mutex::new(FairQueueState {
            free: capacity.units,
            capacity,
            held: HashMap::new(),
            requests: PriorityLine::default(),
            jobs: PriorityLine::default(),
            requests_in_a_row: 0,
            latest: None,
            shared_until: None,
        })))
    }

    /// Waits for `units`, capped at an organization's share. Returns none if too many calls are
    /// waiting, or if the wait takes too long.
    pub async fn turn(
        &self,
        owner: &WorkOwner,
        priority: PriorityClass,
        units: usize,
    ) -> Option<QueueTurn> {
        let job = priority >= PriorityClass::Job;
        // Jobs wait longer: no person waits for them, and a job that gives up starts again from its
        // beginning.
        let ready = self.join(owner, units, job)?;
        let patience = if job { PATIENCE_OF_JOBS } else { PATIENCE };
        tokio::time::timeout(patience, ready).await.ok()?.ok()
    }

    fn join(
        &self,
        owner: &WorkOwner,
        units: usize,
        job: bool,
    ) -> Option<oneshot::Receiver<QueueTurn>> {
        let mut state = self.lock();
        // Cancelled calls are removed only when the queue is full, as that scans all of it.
        if !state.has_room(owner) {
            state.requests.forget_cancelled();
            state.jobs.forget_cancelled();
            if !state.has_room(owner) {
                return None;
            }
        }

        // A call larger than a share could never be served while others compete, so it is capped.
        state.note(&owner.org);
        let units = units.clamp(1, state.capacity.of_organization);
        let (ready, receiver) = oneshot::channel();
        let line = if job {
            &mut state.jobs
        } else {
            &mut state.requests
        };
        line.push(owner, WaitingCall { units, ready });

        state.serve(self);
        Some(receiver)
    }

    fn lock(&self) -> MutexGuard<'_, FairQueueState> {
        // A panic of one caller must not close the queue for all others.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FairQueueState {
    fn has_room(&self, owner: &WorkOwner) -> bool {
        // One tenant's waiting calls must not fill the queue for all, nor one document those of its tenant.
        let lines = [&self.requests, &self.jobs];
        let sum = |count: fn(&PriorityLine, &WorkOwner) -> usize| -> usize {
            lines.iter().map(|line| count(line, owner)).sum()
        };
        sum(|line, _| line.len()) < self.capacity.waiting
            && sum(PriorityLine::len_of_organization) < self.capacity.waiting_of_organization
            && sum(PriorityLine::len_of_item) < self.capacity.waiting_of_item
    }

    /// Records which organization called, to detect competition.
    fn note(&mut self, org: &str) {
        if self.latest.as_deref() == Some(org) {
            return;
        }
        // A change of caller means that at least two organizations compete.
        if self.latest.is_some() {
            self.shared_until = Some(Instant::now() + SHARED);
        }
        self.latest = Some(org.to_owned());
    }

    /// Returns the number of units that one organization may hold at present.
    fn share(&self) -> usize {
        match self.shared_until {
            // Shares end half a minute after the last competition, so a lone tenant soon uses everything
            // again.
            Some(until) if Instant::now() < until => self.capacity.of_organization,
            _ => self.capacity.units,
        }
    }

    fn release(&mut self, org: &str, units: usize) {
        self.free += units;
        if let Some(held) = self.held.get_mut(org) {
            *held -= units;
            // Entries of idle organizations would pile up for ever.
            if *held == 0 {
                self.held.remove(org);
            }
        }
    }

    /// Hands out free units until no waiting call can be served.
    fn serve(&mut self, queue: &FairQueue) {
        while self.serve_one(queue) {}
    }

    fn serve_one(&mut self, queue: &FairQueue) -> bool {
        let jobs_first = self.requests_in_a_row >= REQUESTS_IN_A_ROW;
        // If the preferred kind has nothing to serve, the other one gets its turn.
        for jobs in [jobs_first, !jobs_first] {
            let (share, held) = (self.share(), &self.held);
            let line = if jobs {
                &mut self.jobs
            } else {
                &mut self.requests
            };
            let may_have = |org: &str, units: usize| {
                held.get(org).copied().unwrap_or_default() + units <= share
            };
            // An organization at its share is passed over: waiting for it would hold up all the others.
            let Some((org, units)) = line.next(may_have) else {
                continue;
            };

            // Smaller calls must not overtake, or a large one would starve.
            if units > self.free {
                return false;
            }
            let Some(call) = line.pop(&org) else {
                continue;
            };

            self.requests_in_a_row = if jobs { 0 } else { self.requests_in_a_row + 1 };
            self.free -= units;
            *self.held.entry(org.clone()).or_default() += units;
            let turn = QueueTurn {
                queue: Some(queue.clone()),
                org,
                units,
            };

            // The caller may have given up meanwhile; its units go back.
            if let Err(mut turn) = call.ready.send(turn) {
                // Dropping the turn must not release again: this function holds the lock.
                turn.queue = None;
                self.release(&turn.org, units);
            }

            return true;
        }

        false
    }
}

impl PriorityLine {
    fn push(&mut self, owner: &WorkOwner, call: WaitingCall) {
        if !self.waiting.contains_key(&owner.org) {
            self.turns.push_back(owner.org.clone());
        }

        let calls = self.waiting.entry(owner.org.clone()).or_default();
        if !calls.waiting.contains_key(&owner.item) {
            calls.turns.push_back(owner.item.clone());
        }

        let item = calls.waiting.entry(owner.item.clone()).or_default();
        item.push_back(call);
    }

    /// Returns the next organization that may have the units of its call, and their number.
    fn next(&self, may_have: impl Fn(&str, usize) -> bool) -> Option<(String, usize)> {
        self.turns.iter().find_map(|org| {
            let calls = self.waiting.get(org)?;
            let call = calls.waiting.get(calls.turns.front()?)?.front()?;
            may_have(org, call.units).then(|| (org.clone(), call.units))
        })
    }

    /// Removes an organization's next call and moves
    /// organization and item to the end of their queues.
    fn pop(&mut self, org: &str) -> Option<WaitingCall> {
        // The organization may have been passed over, so it is not always the first.
        self.turns.retain(|other| other != org);
        let calls = self.waiting.get_mut(org)?;
        let item = calls.turns.pop_front()?;
        let waiting = calls.waiting.get_mut(&item)?;
        let call = waiting.pop_front();

        if waiting.is_empty() {
            calls.waiting.remove(&item);
        } else {
            calls.turns.push_back(item);
        }

        // At the end of the line, so that others get their turns before its next call.
        if calls.waiting.is_empty() {
            self.waiting.remove(org);
        } else {
            self.turns.push_back(org.to_owned());
        }

        call
    }

    fn forget_cancelled(&mut self) {
        for calls in self.waiting.values_mut() {
            for item in calls.waiting.values_mut() {
                item.retain(|call| !call.ready.is_closed());
            }
            calls.waiting.retain(|_, item| !item.is_empty());
            calls.turns.retain(|item| calls.waiting.contains_key(item));
        }

        self.waiting.retain(|_, calls| !calls.waiting.is_empty());
        self.turns.retain(|org| self.waiting.contains_key(org));
    }

    fn len(&self) -> usize {
        self.waiting.values().map(OrganizationCalls::len).sum()
    }

    fn len_of_organization(&self, owner: &WorkOwner) -> usize {
        self.waiting
            .get(&owner.org)
            .map_or(0, OrganizationCalls::len)
    }

    fn len_of_item(&self, owner: &WorkOwner) -> usize {
        let calls = self.waiting.get(&owner.org);
        let item = calls.and_then(|calls| calls.waiting.get(&owner.item));
        item.map_or(0, VecDeque::len)
    }
}

impl OrganizationCalls {
    fn len(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(units: usize, of_organization: usize) -> FairQueue {
        FairQueue::new(QueueCapacity {
            units,
            of_organization,
            waiting: 100,
            waiting_of_organization: 10,
            waiting_of_item: 5,
        })
    }

    fn owner(org: &str, item: &str) -> WorkOwner {
        WorkOwner {
            org: org.into(),
            item: item.into(),
        }
    }

    /// Returns the order in which waiting calls get their turns, one after the other.
    fn served(queue: &FairQueue, calls: &[(&str, &str, bool)]) -> Vec<String> {
        let first = queue
            .join(&owner("nobody", ""), 1, false)
            .unwrap()
            .try_recv();
        let mut waiting: Vec<_> = calls
            .iter()
            .map(|(org, item, job)| {
                let ready = queue.join(&owner(org, item), 1, *job).unwrap();
                (format!("{org}{item}"), ready)
            })
            .collect();

        drop(first);
        let mut order = Vec::new();
        while !waiting.is_empty() {
            let ready = |(_, ready): &mut (_, oneshot::Receiver<QueueTurn>)| ready.try_recv().ok();
            let found = waiting
                .iter_mut()
                .enumerate()
                .find_map(|(index, call)| Some((index, ready(call)?)));
            let (index, turn) = found.expect("a call whose turn it is");
            order.push(waiting.remove(index).0);

            drop(turn);
        }

        order
    }

    #[test]
    fn the_fair_queue_alternates_between_organizations_and_envelopes() {
        let calls = [
            ("a", "1", false),
            ("a", "1", false),
            ("a", "2", false),
            ("b", "1", false),
            ("c", "1", false),
        ];
        let order = served(&queue(1, 1), &calls);
        assert_eq!(order, ["a1", "b1", "c1", "a2", "a1"]);
    }

    #[test]
    fn requests_are_served_before_jobs_without_starving_them() {
        let mut calls = vec![("a", "", true)];
        for item in ["1", "2", "3", "4", "5"] {
            calls.push(("b", item, false));
        }
        let order = served(&queue(1, 1), &calls);
        let job = order.iter().position(|call| call == "a").unwrap();
        assert!((3..=4).contains(&job), "{order:?}");
    }

    #[test]
    fn one_organization_cannot_fill_the_fair_queue() {
        let queue = queue(2, 1);
        let turn = |org: &str| queue.join(&owner(org, ""), 1, false).unwrap();
        drop(turn("b"));
        let (mut first, mut second, mut other) = (turn("a"), turn("a"), turn("b"));
        let held = first.try_recv().unwrap();
        assert!(second.try_recv().is_err());

        let _others = other.try_recv().unwrap();
        drop(held);
        assert!(second.try_recv().is_ok());
    }

    #[test]
    fn an_organization_alone_can_use_the_whole_fair_queue() {
        let queue = queue(2, 1);
        let turn = |org: &str| queue.join(&owner(org, ""), 1, false).unwrap();
        let alone = [turn("a").try_recv(), turn("a").try_recv()];
        assert!(alone.iter().all(Result::is_ok));

        drop(alone);
        drop(turn("b"));
        let _held = turn("a").try_recv().unwrap();
        assert!(turn("a").try_recv().is_err());

        // Simulates the end of the half minute.
        queue.lock().shared_until = Some(Instant::now());
        assert!(turn("a").try_recv().is_ok());
    }

    #[test]
    fn a_fair_queue_has_a_maximum_length() {
        let queue = queue(1, 1);
        let _held = queue.join(&owner("a", "1"), 1, false).unwrap().try_recv();
        let waiting: Vec<_> = (0..5)
            .map(|_| queue.join(&owner("a", "1"), 1, false).unwrap())
            .collect();
        assert!(queue.join(&owner("a", "1"), 1, false).is_none());
        assert!(queue.join(&owner("a", "2"), 1, false).is_some());

        // Cancelled calls no longer count.
        drop(waiting);
        assert!(queue.join(&owner("a", "1"), 1, false).is_some());
    }

    #[test]
    fn a_request_larger_than_a_share_takes_the_whole_share() {
        let queue = queue(64, 32);
        drop(queue.join(&owner("b", ""), 1, false));
        let large = queue.join(&owner("a", ""), 50, false).unwrap().try_recv();
        let other = queue.join(&owner("b", ""), 50, false).unwrap().try_recv();
        assert!(large.is_ok() && other.is_ok());
        let third = queue.join(&owner("c", ""), 1, false).unwrap().try_recv();
        assert!(third.is_err());
    }

    /// The caller gives up after its units were assigned and before it takes them.
    #[test]
    fn an_abandoned_turn_is_returned_to_the_queue() {
        let queue = queue(1, 1);
        drop(queue.join(&owner("a", ""), 1, false));
        let next = queue.join(&owner("b", ""), 1, false).unwrap().try_recv();
        assert!(next.is_ok());
    }
}
