//! Notifies other nodes of new work (PostgreSQL only).
//!
//! `NOTIFY` is never part of a transaction with changes, because PostgreSQL serializes the commits
//! of such transactions. Commits are collected for a moment and announced in one notification over
//! a separate connection. Notifications may be lost, so every node also polls once a second.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::postgres::PgListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::statement::RunStatement as _;
use super::webhooks::OwnedEndpoint;
use super::{SqlDialect, Store};
use holdfast_domain::id::{EndpointId, OrgId, RequestId};

const CHANNEL: &str = "holdfast";
/// Window in which commits share one `NOTIFY`.
const COLLECT: Duration = Duration::from_millis(20);
/// Maximum number of endpoints in a notification, as its payload is limited to 8000 bytes. Further
/// endpoints are found by polling.
const ENDPOINTS: usize = 80;
/// Delay between attempts to connect.
const RETRY: Duration = Duration::from_secs(5);

/// Announcements that have not been sent yet.
#[derive(Clone)]
pub(super) struct WakeupChannel {
    /// Id of this process, with which it ignores its own notifications.
    node: Arc<str>,
    waiting: Arc<Mutex<PendingWakeup>>,
    added: Arc<Notify>,
}

#[derive(Default)]
struct PendingWakeup {
    jobs: bool,
    endpoints: BTreeMap<OwnedEndpoint, bool>,
}

/// Payload of a notification.
#[derive(Serialize, Deserialize)]
struct WakeupMessage {
    node: String,
    jobs: bool,
    /// Organization, endpoint, and whether its settings were changed.
    endpoints: Vec<(String, String, bool)>,
}

impl Default for WakeupChannel {
    fn default() -> Self {
        Self {
            node: RequestId::new().as_str().into(),
            waiting: Arc::default(),
            added: Arc::default(),
        }
    }
}

impl WakeupChannel {
    fn lock(&self) -> std::sync::MutexGuard<'_, PendingWakeup> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues the announcement of a commit.
    pub(super) fn tell(&self, jobs: bool, endpoints: &BTreeMap<OwnedEndpoint, bool>) {
        let mut waiting = self.lock();
        waiting.jobs |= jobs;
        for (endpoint, changed) in endpoints {
            if waiting.endpoints.len() >= ENDPOINTS {
                break;
            }
            *waiting.endpoints.entry(endpoint.clone()).or_default() |= *changed;
        }

        drop(waiting);
        self.added.notify_one();
    }
}

/// Announces this node's commits to other nodes, and receives theirs, until `stop` is cancelled.
pub async fn run(store: Store, stop: CancellationToken) {
    if store.dialect() != SqlDialect::Postgres {
        return;
    }
    tokio::select! {
        () = stop.cancelled() => {}
        () = async { tokio::join!(tell(&store), hear(&store)); } => {}
    }
}

async fn tell(store: &Store) {
    let wakeups = &store.wakeups;
    loop {
        wakeups.added.notified().await;
        tokio::time::sleep(COLLECT).await;
        let waiting = std::mem::take(&mut *wakeups.lock());
        let endpoints = waiting.endpoints.into_iter();
        let told = WakeupMessage {
            node: wakeups.node.to_string(),
            jobs: waiting.jobs,
            endpoints: endpoints
                .map(|(of, changed)| (of.org.to_string(), of.endpoint.to_string(), changed))
                .collect(),
        };

        if let Err(error) = notify(store, &told).await {
            tracing::debug!(%error, "new work could not be announced to other nodes");
        }
    }
}

async fn notify(store: &Store, told: &WakeupMessage) -> Result<(), super::StoreError> {
    let payload = serde_json::to_string(told).unwrap_or_default();
    // Announcements must not wait behind the requests that caused them.
    let mut connection = store.read_urgently().await?;
    sqlx::query("select cast(pg_notify($1, $2) as text)")
        .bind(CHANNEL)
        .bind(payload)
        .run(&mut connection)
        .await
}

async fn hear(store: &Store) {
    let mut said = false;
    loop {
        if let Err(error) = listen(store).await {
            // PostgreSQL-like databases may lack `LISTEN`. Warns once, as polling still works.
            if !said {
                tracing::warn!(%error, "no notifications from other nodes, polling once a second");
            }
            said = true;
        }

        tokio::time::sleep(RETRY).await;
    }
}

async fn listen(store: &Store) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect(&store.url).await?;
    listener.listen(CHANNEL).await?;
    loop {
        match listener.try_recv().await? {
            Some(notification) => {
                if let Ok(told) = serde_json::from_str(notification.payload()) {
                    store.heard(told);
                }
            }
            // The connection broke and was restored; notifications may have been missed.
            None => store.work.notify_one(),
        }
    }
}

impl Store {
    fn heard(&self, told: WakeupMessage) {
        // `NOTIFY` also reaches its sender, which has woken itself already.
        if *told.node == *self.wakeups.node {
            return;
        }

        if told.jobs {
            self.work.notify_one();
        }

        let endpoints = told
            .endpoints
            .iter()
            .filter_map(|(org, endpoint, changed)| {
                let (org, endpoint) = (OrgId::parse(org)?, EndpointId::parse(endpoint)?);
                Some((OwnedEndpoint { org, endpoint }, *changed))
            });

        self.fresh.add(endpoints, false);
    }
}
