//! How many requests a key may make (contract, section 2).
//!
//! A window of 60 seconds begins with a key's first request. On SQLite this
//! process is the only node and counts alone. On PostgreSQL a node leases up to a
//! tenth of the limit at a time, so that most requests cost no query, and less the
//! less there is left, so that no node keeps what another could use. Requests that
//! come at once wait for one lease, and do not each make one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::domain::clock::Timestamp;
use crate::domain::id::KeyId;
use crate::domain::organization::ApiKeyRecord;
use crate::service::access::Access;
use crate::service::{Core, ServiceError};
use crate::store::{ACQUIRE_TIMEOUT, Dialect, StoreError, rate_windows};

/// Length of a window.
pub const WINDOW: Duration = Duration::from_secs(60);
/// Windows kept before old ones are thrown out.
const MOST: usize = 10_000;

/// What a key has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Requests per window.
    pub limit: i64,
    /// Left in this window, as far as this node knows.
    pub remaining: i64,
    /// When the window ends.
    pub reset: Timestamp,
    /// This request is one too many.
    pub exceeded: bool,
}

/// The windows of this node.
#[derive(Default)]
pub struct RateLimits {
    windows: Mutex<HashMap<KeyId, Kept>>,
}

/// A key's window, and who leases for it.
struct Kept {
    window: Window,
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    started_at: Timestamp,
    /// Leased by this node.
    granted: i64,
    /// Leased by all nodes, at the last look.
    leased: i64,
    used: i64,
}

impl Window {
    fn new(started_at: Timestamp) -> Self {
        Self {
            started_at,
            granted: 0,
            leased: 0,
            used: 0,
        }
    }

    /// Counts one request, if this node may. None when it has to lease first.
    fn take(&mut self, limit: i64) -> Option<Allowance> {
        if self.used < self.granted {
            self.used += 1;
            return Some(self.allowance(limit, false));
        }
        (self.leased >= limit).then(|| self.allowance(limit, true))
    }

    /// How much to lease next.
    fn share(&self, limit: i64) -> i64 {
        ((limit - self.leased) / 8).clamp(1, (limit / 10).max(1))
    }

    /// Adds a share of which no more than what is left of the limit counts.
    fn grant(&mut self, share: i64, leased: i64, limit: i64) {
        self.granted += share.min(limit - (leased - share)).max(0);
        self.leased = leased;
    }

    fn allowance(&self, limit: i64, exceeded: bool) -> Allowance {
        let elsewhere = (self.leased.min(limit) - self.granted).max(0);
        Allowance {
            limit,
            remaining: (limit - elsewhere - self.used).max(0),
            reset: self.started_at + WINDOW,
            exceeded,
        }
    }
}

/// Counts a request of `key`.
pub async fn take(
    core: &Core,
    access: &Access,
    key: &ApiKeyRecord,
) -> Result<Allowance, ServiceError> {
    let limit = key.rate_limit_rpm;
    let now = core.clock.now();
    let alone = core.store.dialect() == Dialect::Sqlite;
    let take_here = |window: &mut Window| {
        if alone {
            window.granted = limit;
            window.leased = limit;
        }
        window.take(limit)
    };
    if let Some(allowance) = access.rate_limits.with(key, now, take_here) {
        return Ok(allowance);
    }
    let turn = access.rate_limits.turn(key);
    let turn = tokio::time::timeout(ACQUIRE_TIMEOUT, turn.lock());
    let _turn = turn
        .await
        .map_err(|_| StoreError::from(sqlx::Error::PoolTimedOut))?;
    // Whoever had the turn before has leased for others, too.
    if let Some(allowance) = access.rate_limits.with(key, now, take_here) {
        return Ok(allowance);
    }
    let share = access
        .rate_limits
        .with(key, now, |window| window.share(limit));
    let mut tx = core.store.begin().await?;
    let shared = rate_windows::lease(&mut tx, key, share, now, now - WINDOW).await?;
    tx.commit().await?;
    Ok(access.rate_limits.with(key, now, |window| {
        if window.started_at != shared.started_at {
            *window = Window::new(shared.started_at);
        }
        window.grant(share, shared.leased, limit);
        window
            .take(limit)
            .unwrap_or_else(|| window.allowance(limit, true))
    }))
}

/// What `key` has left, without counting.
pub fn peek(core: &Core, access: &Access, key: &ApiKeyRecord) -> Allowance {
    let limit = key.rate_limit_rpm;
    access.rate_limits.with(key, core.clock.now(), |window| {
        window.allowance(limit, false)
    })
}

impl RateLimits {
    fn with<R>(
        &self,
        key: &ApiKeyRecord,
        now: Timestamp,
        work: impl FnOnce(&mut Window) -> R,
    ) -> R {
        let mut windows = self.lock();
        if windows.len() > MOST {
            windows.retain(|_, kept| kept.window.started_at + WINDOW > now);
        }
        let kept = windows.entry(key.id.clone()).or_insert_with(|| Kept {
            window: Window::new(now),
            turn: Arc::default(),
        });
        if kept.window.started_at + WINDOW <= now {
            kept.window = Window::new(now);
        }
        work(&mut kept.window)
    }

    /// One request of a key leases at a time.
    fn turn(&self, key: &ApiKeyRecord) -> Arc<tokio::sync::Mutex<()>> {
        let windows = self.lock();
        windows
            .get(&key.id)
            .map(|kept| kept.turn.clone())
            .unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, Kept>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_alone_counts_to_the_limit() {
        let mut window = Window::new(Timestamp::from_millis(0));
        window.grant(3, 3, 3);
        let remaining: Vec<i64> = (0..3).map(|_| window.take(3).unwrap().remaining).collect();
        assert_eq!(remaining, [2, 1, 0]);
        assert!(window.take(3).unwrap().exceeded);
    }

    #[test]
    fn a_node_asks_for_another_share_while_there_are_any() {
        let mut window = Window::new(Timestamp::from_millis(0));
        window.grant(10, 10, 100);
        for _ in 0..10 {
            assert!(!window.take(100).unwrap().exceeded);
        }
        assert!(window.take(100).is_none());
        // Another node took eighty in the meantime.
        window.grant(10, 100, 100);
        assert_eq!(window.take(100).unwrap().remaining, 9);
        for _ in 0..9 {
            assert!(!window.take(100).unwrap().exceeded);
        }
        assert!(window.take(100).unwrap().exceeded);
    }

    #[test]
    fn shares_shrink_with_what_is_left() {
        let mut window = Window::new(Timestamp::from_millis(0));
        let mut shares = Vec::new();
        while window.leased < 100 {
            let share = window.share(100);
            window.grant(share, window.leased + share, 100);
            shares.push(share);
        }
        assert_eq!(shares[..3], [10, 10, 10]);
        assert_eq!(shares[shares.len() - 3..], [1, 1, 1]);
        assert_eq!(shares.iter().sum::<i64>(), 100);
        assert_eq!(Window::new(Timestamp::from_millis(0)).share(1), 1);
    }

    #[test]
    fn a_share_past_the_limit_does_not_count() {
        let mut window = Window::new(Timestamp::from_millis(0));
        window.grant(10, 105, 100);
        assert_eq!(window.granted, 5);
        window.grant(10, 115, 100);
        assert_eq!(window.granted, 5);
    }
}
