//! One time base for all nodes, without jumps.
//!
//! A node reads a clock once at start and counts on by itself. The count is slewed towards
//! the database's clock (on SQLite, the machine's) so slowly that leases, deadlines and the
//! order of entries stay valid when a clock is set by an hour.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::App;
use holdfast_domain::clock::{self, Timestamp};
use holdfast_store::{SqlDialect, Store, StoreError};

const PERIOD: Duration = Duration::from_secs(5);
/// Clock difference above which a warning is logged.
const NOTABLE: Duration = Duration::from_secs(1);
/// Minimum interval between warnings.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// Initializes the node's time from the database. Must run before anything is written.
pub async fn begin(store: &Store) -> Result<(), StoreError> {
    // On SQLite the machine's clock is the reference, and the clocks of the process start with it.
    if store.dialect() == SqlDialect::Postgres {
        clock::begin_at(store.time().await?);
    }
    Ok(())
}

/// Slews the node's time towards the reference clock until `stop` is cancelled.
pub async fn run(app: App, stop: CancellationToken) {
    let mut followed = Instant::now();
    let mut said: Option<Instant> = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
        let database = app.store.dialect() == SqlDialect::Postgres;
        let reference = if database {
            match app.store.time().await {
                Ok(time) => time,
                Err(error) => {
                    // The node counts on by itself while the database is away, so this is no warning.
                    tracing::debug!(%error, "database time could not be read");
                    continue;
                }
            }
        } else {
            clock::of_machine()
        };

        let behind = clock::follow(reference, followed.elapsed());
        followed = Instant::now();
        app.metrics.clock_offset.set(behind);
        let notable = |millis: i64| u128::from(millis.unsigned_abs()) > NOTABLE.as_millis();
        let of_machine = apart(clock::of_machine());

        let due = said.is_none_or(|said| said.elapsed() > SAID_EVERY);
        if due && (notable(behind) || notable(of_machine)) {
            said = Some(Instant::now());
            tracing::warn!(
                machine_ms = of_machine,
                database_ms = database.then_some(behind),
                "machine or database clock differs from this node's time"
            );
        }
    }
}

/// Returns how far `time` is ahead of the node's time, in milliseconds.
fn apart(time: Timestamp) -> i64 {
    time.as_millis() - clock::Clock::default().now().as_millis()
}
