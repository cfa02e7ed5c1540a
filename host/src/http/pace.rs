//! Measures how fast a client sends or reads.

use std::time::{Duration, Instant};

/// Minimum rate in bytes per second, below which even a steady client is too slow.
const SLOWEST: u64 = 8 * 1024;

/// Time that the server waited for a client, and the bytes moved. Processing time of the server
/// does not count.
pub(super) struct TransferPace {
    bytes: u64,
    waited: Duration,
    waiting_since: Option<Instant>,
}

impl TransferPace {
    pub fn new() -> Self {
        Self {
            bytes: 0,
            waited: Duration::ZERO,
            waiting_since: None,
        }
    }

    /// Records that the server waits for the client. Returns false if it was waiting already.
    pub fn wait(&mut self) -> bool {
        let begins = self.waiting_since.is_none();
        self.waiting_since.get_or_insert_with(Instant::now);
        begins
    }

    /// Records bytes that the client sent or took.
    pub fn moved(&mut self, bytes: usize) {
        if let Some(since) = self.waiting_since.take() {
            self.waited += since.elapsed();
        }
        self.bytes += bytes as u64;
    }

    /// Returns the time limit of the current wait: at most `patience`, less if the client was slow
    /// before.
    pub fn left(&self, patience: Duration) -> Duration {
        let earned = Duration::from_millis(self.bytes.saturating_mul(1000) / SLOWEST);
        (patience + earned)
            .saturating_sub(self.waited)
            .min(patience)
    }

    /// Returns whether the current wait exceeds its limit.
    pub fn is_over(&self, patience: Duration) -> bool {
        let waiting = self.waiting_since.map(|since| since.elapsed());
        waiting.is_some_and(|waiting| waiting > self.left(patience))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn pace(bytes: u64, waited: u64) -> TransferPace {
        TransferPace {
            bytes,
            waited: Duration::from_secs(waited),
            waiting_since: None,
        }
    }

    #[test]
    fn a_client_that_sends_too_slowly_times_out() {
        assert_eq!(pace(0, 0).left(PATIENCE), PATIENCE);
        assert_eq!(pace(100, 29).left(PATIENCE).as_secs(), 1);
        assert_eq!(pace(100, 31).left(PATIENCE), Duration::ZERO);
    }

    #[test]
    fn a_slow_but_steady_client_does_not_time_out() {
        let an_hour = 3600;
        assert_eq!(pace(an_hour * SLOWEST, an_hour).left(PATIENCE), PATIENCE);
    }

    #[test]
    fn only_a_pending_read_can_time_out() {
        let mut pace = pace(0, 31);
        assert!(!pace.is_over(PATIENCE));
        assert!(pace.wait());
        assert!(!pace.wait());
        std::thread::sleep(Duration::from_millis(5));
        assert!(pace.is_over(PATIENCE));
        pace.moved(1);
        assert!(!pace.is_over(PATIENCE));
    }
}
