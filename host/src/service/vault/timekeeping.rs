//! One time for all nodes, without jumps.
//!
//! A node reads its clock once, when it starts, and counts on from there. What it counts
//! follows the database's clock (on SQLite the machine's) so slowly that leases, deadlines
//! and the order of what is written hold when somebody sets a clock by an hour.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::domain::clock::{self, Timestamp};
use crate::service::App;
use crate::store::{Dialect, Store, StoreError};

const PERIOD: Duration = Duration::from_secs(5);
/// What is further apart is said.
const NOTABLE: Duration = Duration::from_secs(1);
/// So often, while it is.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// Takes the database's time, before anything is written by it.
pub async fn begin(store: &Store) -> Result<(), StoreError> {
    if store.dialect() == Dialect::Postgres {
        clock::begin_at(store.time().await?);
    }
    Ok(())
}

/// Follows the clock until told to stop.
pub async fn run(app: App, stop: CancellationToken) {
    let mut followed = Instant::now();
    let mut said: Option<Instant> = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
        let database = app.store.dialect() == Dialect::Postgres;
        let reference = match database {
            false => clock::of_machine(),
            true => match app.store.time().await {
                Ok(time) => time,
                Err(error) => {
                    tracing::debug!(%error, "the database did not say what time it is");
                    continue;
                }
            },
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
                "a clock is away from the time that this node goes by"
            );
        }
    }
}

/// How far something is ahead of the time that counts, in milliseconds.
fn apart(time: Timestamp) -> i64 {
    time.as_millis() - clock::Clock::default().now().as_millis()
}
