//! How often one signing link, token, session or address has asked.
//!
//! Windows of a minute, counted on this node. API keys are counted over all nodes, in
//! `rate_limit.rs`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::service::access::rate_limit::WINDOW;

/// Windows kept before those that are over are thrown out.
const MOST: usize = 20_000;

/// Kind of key that requests are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Credential {
    SigningLink,
    Copies,
    WebToken,
    BuilderSession,
    /// An organization, by the components that it uploads.
    Uploads,
    Ledger,
    Address,
    /// An address, by the refusals that it got.
    Refused,
}

/// The windows of this node.
#[derive(Default)]
pub struct Windows(Mutex<HashMap<(Credential, String), Window>>);

struct Window {
    began: Instant,
    used: u32,
}

impl Windows {
    /// Counts a request. The seconds to wait, when it is one too many.
    pub fn take(&self, credential: Credential, key: String, limit: u32) -> Result<(), u32> {
        if limit == 0 {
            return Ok(());
        }
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= MOST {
            windows.retain(|_, window| window.began.elapsed() < WINDOW);
        }
        let key = (credential, key);
        // Of more than that many none is counted that is not counted already.
        if windows.len() >= MOST && !windows.contains_key(&key) {
            return Ok(());
        }
        let fresh = || Window {
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
    fn each_key_has_its_own_window() {
        let windows = Windows::default();
        let take = |key: &str| windows.take(Credential::WebToken, key.into(), 2);
        assert_eq!(take("a"), Ok(()));
        assert_eq!(take("a"), Ok(()));
        assert!((1..=60).contains(&take("a").unwrap_err()));
        assert_eq!(take("b"), Ok(()));
    }

    #[test]
    fn zero_is_no_limit() {
        let windows = Windows::default();
        for _ in 0..3 {
            assert_eq!(windows.take(Credential::Ledger, "a".into(), 0), Ok(()));
        }
    }
}
