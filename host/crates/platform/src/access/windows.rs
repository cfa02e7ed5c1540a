//! Rate limits of signing links, tokens, sessions and addresses, and the credentials that this node
//! accepted lately.
//!
//! Windows of a minute, counted on this node only. API keys are counted across nodes, in
//! `rate_limit.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use moka::sync::Cache;

use crate::access::rate_limit::WINDOW;

/// Number of windows of one kind. Each kind has a table of its own, so that keys without proof
/// (addresses) crowd out none that had to be proven (links, tokens).
const MOST: u64 = 50_000;
/// Number of accepted credentials that are remembered.
const ACCEPTED: u64 = 100_000;
/// Time without a request after which a credential is looked up like an unknown one.
const ACCEPTED_FOR: Duration = Duration::from_secs(3600);

/// Kind of key by which requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitedCredential {
    SigningLink,
    Copies,
    WebToken,
    BuilderSession,
    /// Organization, counted by its component uploads.
    Uploads,
    Ledger,
    /// Network, counted by the sign-in links that it asks for.
    SignIn,
    /// Network, counted by the pages of open links that it opens: the address of such a page is public.
    OpenLink,
    /// Network, counted by the forms of open links that it sends.
    OpenLinkForm,
    Address,
    /// Network, counted by the refusals it received.
    Refused,
    /// Network, counted by the unknown credentials it sent. The last kind: it gives the number of
    /// kinds.
    Unknown,
}

/// Rate-limit windows of this node.
pub struct LocalWindows(
    [Cache<String, Arc<MinuteWindow>>; LimitedCredential::Unknown as usize + 1],
);

struct MinuteWindow {
    began: Instant,
    used: AtomicU32,
}

impl MinuteWindow {
    fn begin() -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            used: AtomicU32::new(0),
        })
    }

    /// Returns the seconds until the next window.
    fn left(&self) -> u32 {
        let left = WINDOW.saturating_sub(self.began.elapsed());
        u32::try_from(left.as_secs()).unwrap_or(u32::MAX).max(1)
    }
}

impl Default for LocalWindows {
    fn default() -> Self {
        Self(std::array::from_fn(|_| {
            Cache::builder()
                .max_capacity(MOST)
                .time_to_live(WINDOW)
                .build()
        }))
    }
}

impl LocalWindows {
    /// Counts a request. Returns the seconds to wait if it exceeds the limit.
    pub fn take(&self, credential: LimitedCredential, key: String, limit: u32) -> Result<(), u32> {
        // The operator switches a limit off with 0.
        if limit == 0 {
            return Ok(());
        }
        let window = self.0[credential as usize].get_with(key, MinuteWindow::begin);
        // Only the count matters, so no stronger ordering is needed.
        if window.used.fetch_add(1, Ordering::Relaxed) >= limit {
            return Err(window.left());
        }
        Ok(())
    }

    /// Returns the seconds to wait if the limit is used up, without counting a request.
    pub fn check(&self, credential: LimitedCredential, key: &str, limit: u32) -> Result<(), u32> {
        let window = self.0[credential as usize].get(key);
        let window = window.filter(|window| window.used.load(Ordering::Relaxed) >= limit);
        window.map_or(Ok(()), |window| Err(window.left()))
    }

    /// Returns the number of requests in the current window, and the seconds until it ends.
    pub fn state(&self, credential: LimitedCredential, key: &str) -> (u32, u64) {
        match self.0[credential as usize].get(key) {
            Some(window) => (window.used.load(Ordering::Relaxed), window.left().into()),
            None => (0, WINDOW.as_secs()),
        }
    }
}

/// Hashes of credentials that this node accepted lately. It decides only who waits behind
/// strangers: every request still reads the credential's present state.
pub struct AcceptedCredentials(Cache<String, ()>);

impl Default for AcceptedCredentials {
    fn default() -> Self {
        let cache = Cache::builder().max_capacity(ACCEPTED);
        Self(cache.time_to_idle(ACCEPTED_FOR).build())
    }
}

impl AcceptedCredentials {
    /// Returns whether the credential with this hash was accepted lately.
    pub fn contains(&self, hash: &str) -> bool {
        self.0.get(hash).is_some()
    }

    /// Records the result of a look-up.
    pub fn note(&self, hash: String, is_accepted: bool) {
        if is_accepted {
            self.0.insert(hash, ());
        } else {
            self.0.invalidate(&hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_own_rate_limit_window() {
        let windows = LocalWindows::default();
        let take = |key: &str| windows.take(LimitedCredential::WebToken, key.into(), 2);
        assert_eq!(take("a"), Ok(()));
        assert_eq!(take("a"), Ok(()));
        assert!((1..=60).contains(&take("a").unwrap_err()));
        assert_eq!(take("b"), Ok(()));
    }

    #[test]
    fn a_rate_limit_of_zero_means_unlimited() {
        let windows = LocalWindows::default();
        for _ in 0..3 {
            assert_eq!(
                windows.take(LimitedCredential::Ledger, "a".into(), 0),
                Ok(())
            );
        }
    }

    #[test]
    fn a_flood_of_networks_ends_no_limit_of_a_token_and_takes_bounded_memory() {
        let windows = LocalWindows::default();
        let take = || windows.take(LimitedCredential::WebToken, "token".into(), 2);
        assert_eq!(take(), Ok(()));

        for number in 0..2 * MOST {
            let _ = windows.take(LimitedCredential::Unknown, number.to_string(), 2);
        }
        assert_eq!(take(), Ok(()));
        assert!(take().is_err());

        let unknown = &windows.0[LimitedCredential::Unknown as usize];
        unknown.run_pending_tasks();
        assert!(unknown.entry_count() <= MOST);
    }

    #[test]
    fn a_check_counts_nothing() {
        let windows = LocalWindows::default();
        let check = || windows.check(LimitedCredential::Unknown, "network", 1);
        assert_eq!(check(), Ok(()));
        assert_eq!(check(), Ok(()));
        let state = || windows.state(LimitedCredential::Unknown, "network");
        assert_eq!(state(), (0, 60));
        let taken = windows.take(LimitedCredential::Unknown, "network".into(), 1);
        assert_eq!(taken, Ok(()));
        assert!((1..=60).contains(&check().unwrap_err()));
        assert_eq!(state().0, 1);
    }

    #[test]
    fn a_credential_that_is_no_longer_accepted_is_forgotten() {
        let accepted = AcceptedCredentials::default();
        accepted.note("hash".into(), true);
        assert!(accepted.contains("hash"));
        accepted.note("hash".into(), false);
        assert!(!accepted.contains("hash"));
    }
}
