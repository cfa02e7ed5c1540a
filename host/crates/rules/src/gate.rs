//! Admission of calls: concurrency limits, and the memory and processor time that the calls of
//! one organization share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Unit of memory shares: a WebAssembly page.
const PAGE: usize = 64 * 1024;

/// Limits of concurrent calls: in total, and on behalf of one organization. A
/// call needs a permit of each.
#[derive(Clone, Default)]
pub struct CallGate {
    /// Semaphores, the narrowest first: a caller that waits for its organization's limit must not
    /// hold a permit that others need.
    pub permits: Vec<Arc<Semaphore>>,
    /// Memory share, for components that an organization uploaded.
    pub memory: Option<Arc<MemoryShare>>,
    /// Time slice, for components that an organization uploaded.
    pub time: Option<Arc<TimeSlice>>,
}

/// Permit for one call.
pub struct CallPermit {
    _permits: Vec<OwnedSemaphorePermit>,
    /// Reservation of linear memory.
    pub memory: Option<MemoryReservation>,
    /// Reservation of memory for fetched documents.
    pub fetched: Option<MemoryReservation>,
}

impl CallGate {
    /// Creates a gate with one semaphore and no shares.
    pub fn of(permits: Arc<Semaphore>) -> Self {
        Self {
            permits: vec![permits],
            ..Self::default()
        }
    }

    /// Waits for a permit for at most `patience`. `expected` is the memory in bytes that the
    /// component is known to use.
    pub async fn pass(&self, patience: Duration, expected: usize) -> Option<CallPermit> {
        let turn = async {
            // Waiting for the time slice holds nothing, so it comes first.
            if let Some(time) = &self.time {
                time.open(Duration::ZERO).await;
            }

            // Memory comes before the permits: a call that waits for it
            // must not hold a place that others need.
            let (memory, fetched) = match &self.memory {
                Some(share) => (
                    Some(share.reserve(expected).await?),
                    Some(share.reserve(0).await?),
                ),
                None => (None, None),
            };

            let mut permits = Vec::with_capacity(self.permits.len());
            for semaphore in &self.permits {
                permits.push(semaphore.clone().acquire_owned().await.ok()?);
            }

            Some(CallPermit {
                _permits: permits,
                memory,
                fetched,
            })
        };

        tokio::time::timeout(patience, turn).await.ok().flatten()
    }
}

/// Memory limit for all calls of one organization's components, within a limit for the
/// components of all organizations.
pub struct MemoryShare {
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
    most: usize,
}

fn pages(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PAGE)).unwrap_or(u32::MAX)
}

impl MemoryShare {
    /// Creates a semaphore with permits for this number of bytes.
    pub fn permits(bytes: usize) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(pages(bytes) as usize))
    }

    /// Creates a share of `most` bytes for one organization, out of `all`.
    pub fn new(most: usize, all: Arc<Semaphore>) -> Self {
        Self {
            own: Self::permits(most),
            all,
            most,
        }
    }

    /// Waits until this number of bytes is free.
    async fn reserve(&self, bytes: usize) -> Option<MemoryReservation> {
        // More than the whole share would wait forever.
        let pages = pages(bytes.min(self.most));
        // The own share comes first, so waiting for it takes nothing from other organizations.
        let own = self.own.clone().acquire_many_owned(pages).await.ok()?;
        let all = self.all.clone().acquire_many_owned(pages).await.ok()?;
        Some(MemoryReservation {
            share: (self.own.clone(), self.all.clone()),
            held: (own, all),
        })
    }
}

/// Part of a memory share, held until it is dropped.
pub struct MemoryReservation {
    share: (Arc<Semaphore>, Arc<Semaphore>),
    held: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

/// Error: other calls of the organization use the rest of its memory share.
#[derive(Debug, thiserror::Error)]
#[error("the organization's share of memory is in use")]
pub struct ShareInUse;

impl MemoryReservation {
    /// Extends the reservation to `bytes` without waiting.
    pub fn cover(&mut self, bytes: usize) -> Result<(), ShareInUse> {
        // Waiting could deadlock: other calls that hold memory may be waiting for more, too.
        let wanted = pages(bytes) as usize;
        let more = wanted.saturating_sub(self.held.0.num_permits());
        let more = u32::try_from(more).map_err(|_| ShareInUse)?;
        let take = |semaphore: &Arc<Semaphore>| {
            let taken = semaphore.clone().try_acquire_many_owned(more);
            taken.map_err(|_| ShareInUse)
        };
        let (own, all) = (take(&self.share.0)?, take(&self.share.1)?);
        self.held.0.merge(own);

        self.held.1.merge(all);
        Ok(())
    }
}

/// Long-term share of one processor for the rules of one organization on a node.
pub const RULES: f64 = 0.1;
/// Long-term share of one processor for the plugins of one organization on a node.
pub const PLUGINS: f64 = 0.2;
/// Burst after a pause.
const BURST: Duration = Duration::from_millis(500);
/// Calls of one organization's rules at once.
const AT_ONCE: usize = 2;

/// Token bucket of processor time for the rules, or the plugins, of one organization.
pub struct TimeSlice {
    share: f64,
    /// Processor time in excess of the share, and the time at which it was computed.
    debt: Mutex<(Duration, Instant)>,
    turns: Arc<Semaphore>,
}

impl TimeSlice {
    /// Creates a time slice; `share` is a fraction of one processor.
    pub fn new(share: f64) -> Self {
        Self {
            share,
            debt: Mutex::new((Duration::ZERO, Instant::now())),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Adds the processor time of a call, and returns the delay of the next call.
    pub fn spend(&self, took: Duration, now: Instant) -> Duration {
        let mut debt = self.debt_at(now);
        debt.0 += took;
        self.wait(debt.0)
    }

    /// Whether a call may run now. For callers that must not wait.
    pub fn is_open(&self) -> bool {
        self.spend(Duration::ZERO, Instant::now()).is_zero()
    }

    /// Waits until the share allows more processor time, and spends `reserve` in advance:
    /// otherwise all waiting calls would run at the same moment.
    pub async fn open(&self, reserve: Duration) {
        loop {
            let wait = self.reserve(reserve, Instant::now());
            if wait.is_zero() {
                return;
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Spends `reserve` if the share is open. Otherwise returns the time until it opens.
    fn reserve(&self, reserve: Duration, now: Instant) -> Duration {
        let mut debt = self.debt_at(now);
        let wait = self.wait(debt.0);
        if wait.is_zero() {
            debt.0 += reserve;
        }
        wait
    }

    fn wait(&self, debt: Duration) -> Duration {
        debt.saturating_sub(BURST).div_f64(self.share)
    }

    fn debt_at(&self, now: Instant) -> MutexGuard<'_, (Duration, Instant)> {
        let mut debt = self.debt.lock().unwrap_or_else(PoisonError::into_inner);
        let made_up = now.saturating_duration_since(debt.1).mul_f64(self.share);
        *debt = (debt.0.saturating_sub(made_up), now);
        debt
    }

    /// Waits for a permit for at most `patience`.
    pub async fn pass(&self, patience: Duration) -> Option<OwnedSemaphorePermit> {
        let turn = async {
            let turn = self.turns.clone().acquire_owned().await.ok()?;
            self.open(Duration::ZERO).await;
            Some(turn)
        };
        tokio::time::timeout(patience, turn).await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_of_one_organization_share_its_memory_quota() {
        let all = MemoryShare::permits(3 << 20);
        let oak = MemoryShare::new(2 << 20, all.clone());
        let elm = MemoryShare::new(2 << 20, all);
        let mut first = oak.reserve(1 << 20).await.unwrap();
        assert!(first.cover(2 << 20).is_ok());
        assert!(
            first.cover((2 << 20) + 1).is_err(),
            "its own share is used up"
        );

        let waits = tokio::time::timeout(Duration::from_millis(20), oak.reserve(1)).await;
        assert!(
            waits.is_err(),
            "the next call of the same organization waits"
        );

        let mut other = elm.reserve(1 << 20).await.unwrap();
        assert!(other.cover(2 << 20).is_err(), "nothing is left for all");

        drop(first);
        assert!(other.cover(2 << 20).is_ok());
        assert!(oak.reserve(1 << 20).await.is_some());
    }

    #[test]
    fn rules_that_used_up_their_time_slice_wait_for_the_next() {
        let slice = TimeSlice::new(RULES);
        let now = Instant::now();
        assert_eq!(slice.spend(BURST, now), Duration::ZERO);
        let wait = slice.spend(Duration::from_millis(10), now);
        assert_eq!(wait.as_millis(), 100, "ten milliseconds at a tenth");
        let later = now + Duration::from_millis(100);
        assert!(slice.spend(Duration::ZERO, later) < Duration::from_millis(1));
    }

    #[test]
    fn calls_waiting_for_a_share_run_one_at_a_time() {
        let slice = TimeSlice::new(PLUGINS);
        let (now, reserve) = (Instant::now(), Duration::from_millis(5));
        slice.spend(BURST, now);
        assert_eq!(slice.reserve(reserve, now), Duration::ZERO);
        assert_eq!(slice.reserve(reserve, now).as_millis(), 25);
        let later = now + Duration::from_millis(26);
        assert_eq!(slice.reserve(reserve, later), Duration::ZERO);
        assert!(slice.reserve(reserve, later) > Duration::from_millis(20));
    }
}
