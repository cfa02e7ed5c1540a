//! Measures how fast a client sends or reads.

use std::time::{Duration, Instant};

/// Minimum rate in bytes per second, below which even a steady client is too slow.
const SLOWEST: u64 = 8 * 1024;

/// Time that the server waited for a client beyond what the bytes since may take. Processing time of
/// the server does not count.
pub(super) struct TransferPace {
    waited: Duration,
    waiting_since: Option<Instant>,
}

impl TransferPace {
    pub fn new() -> Self {
        Self {
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
        // Only time in which the server waited counts, or a slow handler would cost the client its
        // connection.
        if let Some(since) = self.waiting_since.take() {
            self.waited += since.elapsed();
        }
        // Time that the bytes may take. A fast beginning pays for earlier waits only, or a
        // client could send much at once and then hold its place for hours.
        let earned = Duration::from_nanos(bytes as u64 * 1_000_000_000 / SLOWEST);
        self.waited = self.waited.saturating_sub(earned);
    }

    /// Returns the time limit of the current wait: at most `patience`, less if the client was slow
    /// before.
    pub fn left(&self, patience: Duration) -> Duration {
        patience.saturating_sub(self.waited)
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

    fn pace(waited: u64) -> TransferPace {
        TransferPace {
            waited: Duration::from_secs(waited),
            waiting_since: None,
        }
    }

    /// Lets the server wait for some seconds, and the client move some bytes then.
    fn waits(pace: &mut TransferPace, seconds: u64, bytes: u64) {
        pace.waiting_since = Instant::now().checked_sub(Duration::from_secs(seconds));
        pace.moved(bytes as usize);
    }

    #[test]
    fn a_client_that_sends_too_slowly_times_out() {
        let mut slow = pace(0);
        assert_eq!(slow.left(PATIENCE), PATIENCE);
        waits(&mut slow, 29, 100);
        assert_eq!(slow.left(PATIENCE).as_secs(), 1);
        waits(&mut slow, 2, 100);
        assert_eq!(slow.left(PATIENCE), Duration::ZERO);
    }

    #[test]
    fn a_slow_but_steady_client_does_not_time_out() {
        let mut steady = pace(0);
        for _ in 0..3600 {
            waits(&mut steady, 1, SLOWEST + 100);
        }
        assert_eq!(steady.left(PATIENCE), PATIENCE);
    }

    #[test]
    fn a_fast_beginning_does_not_pay_for_a_slow_end() {
        let mut upload = pace(0);
        waits(&mut upload, 0, 40 * 1024 * 1024);
        waits(&mut upload, 29, 1);
        waits(&mut upload, 29, 1);
        assert_eq!(upload.left(PATIENCE), Duration::ZERO);
    }

    #[test]
    fn only_a_pending_read_can_time_out() {
        let mut pace = pace(31);
        assert!(!pace.is_over(PATIENCE));
        assert!(pace.wait());
        assert!(!pace.wait());
        std::thread::sleep(Duration::from_millis(5));
        assert!(pace.is_over(PATIENCE));
        pace.moved(1);
        assert!(!pace.is_over(PATIENCE));
    }
}
