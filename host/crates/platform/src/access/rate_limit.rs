//! Rate limits of API keys (contract, section 2).
//!
//! A window of 60 seconds begins with a key's first request. On SQLite this process is the only
//! node and counts alone. On PostgreSQL a node leases shares of the limit from the database, so
//! that most requests cost no query: up to a tenth at a time, less as the limit runs out, so that
//! no node holds requests that another could use. Concurrent requests wait for one lease instead of
//! taking one each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::access::AccessState;
use crate::{Core, ServiceError};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::KeyId;
use holdfast_domain::organization::ApiKeyRecord;
use holdfast_store::{ACQUIRE_TIMEOUT, SqlDialect, StoreError, rate_windows};

/// Length of a window.
pub const WINDOW: Duration = Duration::from_secs(60);
/// Number of windows above which expired ones are dropped.
const MOST: usize = 10_000;

/// Rate-limit state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateAllowance {
    /// Requests per window.
    pub limit: i64,
    /// Requests left in this window, to this node's knowledge.
    pub remaining: i64,
    /// End of the window.
    pub reset: Timestamp,
    /// Whether this request exceeds the limit.
    pub exceeded: bool,
}

/// Rate-limit windows of this node.
#[derive(Default)]
pub struct RateLimits {
    windows: Mutex<HashMap<KeyId, KeyWindow>>,
}

/// Window of a key, with the lock that serializes its leases.
struct KeyWindow {
    window: LeasedWindow,
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone, Copy, Debug)]
struct LeasedWindow {
    started_at: Timestamp,
    /// Requests leased by this node.
    granted: i64,
    /// Requests leased by all nodes, as of this node's last lease.
    leased: i64,
    used: i64,
}

impl LeasedWindow {
    fn new(started_at: Timestamp) -> Self {
        Self {
            started_at,
            granted: 0,
            leased: 0,
            used: 0,
        }
    }

    /// Counts one request if this node has one left. None if it has to lease first.
    fn take(&mut self, limit: i64) -> Option<RateAllowance> {
        if self.used < self.granted {
            self.used += 1;
            return Some(self.allowance(limit, false));
        }
        (self.leased >= limit).then(|| self.allowance(limit, true))
    }

    /// Returns the size of the next lease: a hundredth of the limit, then twice as much each time.
    fn share(&self, limit: i64) -> i64 {
        // A node that dies takes its unused share along: it is never more than the node has used.
        let earned = self.granted.max(limit / 100).max(1);
        ((limit - self.leased) / 8)
            .clamp(1, (limit / 10).max(1))
            .min(earned)
    }

    /// Adds a leased share, cut to the rest of the limit.
    fn grant(&mut self, share: i64, leased: i64, limit: i64) {
        self.granted += share.min(limit - (leased - share)).max(0);
        self.leased = leased;
    }

    fn allowance(&self, limit: i64, exceeded: bool) -> RateAllowance {
        let elsewhere = (self.leased.min(limit) - self.granted).max(0);
        RateAllowance {
            limit,
            remaining: (limit - elsewhere - self.used).max(0),
            reset: self.started_at + WINDOW,
            exceeded,
        }
    }
}

/// Counts a request of `key`, leasing a share if necessary.
pub async fn take(
    core: &Core,
    access: &AccessState,
    key: &ApiKeyRecord,
) -> Result<RateAllowance, ServiceError> {
    let limit = key.rate_limit_rpm;
    let now = core.clock.now();
    let alone = core.store.dialect() == SqlDialect::Sqlite;
    let take_here = |window: &mut LeasedWindow| {
        if alone {
            // The only node owns the whole limit.
            window.granted = limit;
            window.leased = limit;
        }
        window.take(limit)
    };
    if let Some(allowance) = access.rate_limits.with(key, now, take_here) {
        return Ok(allowance);
    }

    let turn = access.rate_limits.turn(key);

    // Waits no longer than for a database connection.
    let turn = tokio::time::timeout(ACQUIRE_TIMEOUT, turn.lock());
    let _turn = turn
        .await
        .map_err(|_| StoreError::from(sqlx::Error::PoolTimedOut))?;

    // The previous holder of the lock may have leased enough for this request.
    if let Some(allowance) = access.rate_limits.with(key, now, take_here) {
        return Ok(allowance);
    }

    let share = access
        .rate_limits
        .with(key, now, |window| window.share(limit));
    let mut tx = core.store.committing().begin().await?;
    let shared = rate_windows::lease(&mut tx, key, share, now, now - WINDOW).await?;
    tx.commit().await?;

    Ok(access.rate_limits.with(key, now, |window| {
        // Another node has started a new window in the meantime.
        if window.started_at != shared.started_at {
            *window = LeasedWindow::new(shared.started_at);
        }

        window.grant(share, shared.leased, limit);
        window
            .take(limit)
            .unwrap_or_else(|| window.allowance(limit, true))
    }))
}

/// Returns the rate-limit state of `key` without counting a request.
pub fn peek(core: &Core, access: &AccessState, key: &ApiKeyRecord) -> RateAllowance {
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
        work: impl FnOnce(&mut LeasedWindow) -> R,
    ) -> R {
        let mut windows = self.lock();
        if windows.len() > MOST {
            windows.retain(|_, kept| kept.window.started_at + WINDOW > now);
        }

        let kept = windows.entry(key.id.clone()).or_insert_with(|| KeyWindow {
            window: LeasedWindow::new(now),
            turn: Arc::default(),
        });
        if kept.window.started_at + WINDOW <= now {
            kept.window = LeasedWindow::new(now);
        }

        work(&mut kept.window)
    }

    /// Returns the key's lock: only one of its requests leases at a time.
    fn turn(&self, key: &ApiKeyRecord) -> Arc<tokio::sync::Mutex<()>> {
        let windows = self.lock();
        windows
            .get(&key.id)
            .map(|kept| kept.turn.clone())
            .unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, KeyWindow>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_node_counts_up_to_the_limit() {
        let mut window = LeasedWindow::new(Timestamp::from_millis(0));
        window.grant(3, 3, 3);
        let remaining: Vec<i64> = (0..3).map(|_| window.take(3).unwrap().remaining).collect();
        assert_eq!(remaining, [2, 1, 0]);
        assert!(window.take(3).unwrap().exceeded);
    }

    #[test]
    fn a_node_leases_another_share_while_some_are_left() {
        let mut window = LeasedWindow::new(Timestamp::from_millis(0));
        window.grant(10, 10, 100);
        for _ in 0..10 {
            assert!(!window.take(100).unwrap().exceeded);
        }
        assert!(window.take(100).is_none());

        // Another node leased 80 in the meantime.
        window.grant(10, 100, 100);
        assert_eq!(window.take(100).unwrap().remaining, 9);

        for _ in 0..9 {
            assert!(!window.take(100).unwrap().exceeded);
        }
        assert!(window.take(100).unwrap().exceeded);
    }

    #[test]
    fn shares_shrink_with_what_is_left() {
        let mut window = LeasedWindow::new(Timestamp::from_millis(0));
        let mut shares = Vec::new();
        while window.leased < 100 {
            let share = window.share(100);
            window.grant(share, window.leased + share, 100);
            shares.push(share);
        }

        assert_eq!(shares[..7], [1, 1, 2, 4, 8, 10, 9]);
        assert_eq!(shares[shares.len() - 3..], [1, 1, 1]);
        assert_eq!(shares.iter().sum::<i64>(), 100);
        assert_eq!(LeasedWindow::new(Timestamp::from_millis(0)).share(1), 1);
    }

    #[test]
    fn nodes_that_die_early_leave_most_of_the_limit() {
        let lost = (0..60).map(|_| LeasedWindow::new(Timestamp::from_millis(0)).share(6_000));
        assert_eq!(lost.sum::<i64>(), 3_600);
    }

    #[test]
    fn a_share_beyond_the_limit_does_not_count() {
        let mut window = LeasedWindow::new(Timestamp::from_millis(0));
        window.grant(10, 105, 100);
        assert_eq!(window.granted, 5);
        window.grant(10, 115, 100);
        assert_eq!(window.granted, 5);
    }
}
