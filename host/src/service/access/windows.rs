//! Rate limits of signing links, tokens, sessions and addresses.
//!
//! Windows of a minute, counted on this node only. API keys are counted across nodes, in
//! `rate_limit.rs`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::service::access::rate_limit::WINDOW;

/// Number of windows at which expired ones are dropped, and the hard limit.
const MOST: usize = 20_000;

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
    /// Address, counted by the sign-in links that it asks for.
    SignIn,
    Address,
    /// Address, counted by the refusals it received.
    Refused,
}

/// Rate-limit windows of this node.
#[derive(Default)]
pub struct LocalWindows(Mutex<HashMap<(LimitedCredential, String), MinuteWindow>>);

struct MinuteWindow {
    began: Instant,
    used: u32,
}

impl LocalWindows {
    /// Counts a request. Returns the seconds to wait if it exceeds the limit.
    pub fn take(&self, credential: LimitedCredential, key: String, limit: u32) -> Result<(), u32> {
        if limit == 0 {
            return Ok(());
        }
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= MOST {
            windows.retain(|_, window| window.began.elapsed() < WINDOW);
        }
        let key = (credential, key);
        // Fails open: with a full table, new keys are not counted, which bounds the memory.
        if windows.len() >= MOST && !windows.contains_key(&key) {
            return Ok(());
        }
        let fresh = || MinuteWindow {
            began: Instant::now(),
            used: 0,
        };
        let window = windows.entry(key).or_insert_with(fresh);
        if window.began.elapsed() >= WINDOW {
            *window = fresh();
        }
        if window.used >= limit {
            let left = WINDOW.saturating_sub(window.began.elapsed());
            return Err(u32::try_from(left.as_secs()).unwrap_or(u32::MAX).max(1));
        }
        window.used += 1;
        Ok(())
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
}
