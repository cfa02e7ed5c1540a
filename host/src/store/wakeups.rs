//! Telling other nodes that there is work (PostgreSQL only).
//!
//! Never in a transaction that changes something: PostgreSQL lets those commit one after
//! the other. What was committed is collected for a moment and told in one notification
//! over a connection of its own. It may be lost: each node looks by itself every second.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::postgres::PgListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::webhooks::OwnedEndpoint;
use super::{Dialect, Store};
use crate::domain::id::{EndpointId, OrgId, RequestId};

const CHANNEL: &str = "holdfast";
/// So long what is committed is collected.
const COLLECT: Duration = Duration::from_millis(20);
/// A notification holds 8000 bytes: more endpoints than this are left to the next look.
const ENDPOINTS: usize = 80;
/// Between attempts to connect.
const RETRY: Duration = Duration::from_secs(5);

/// What is to be told.
#[derive(Clone)]
pub(super) struct Wakeups {
    /// How this process calls itself: it does not wake itself.
    node: Arc<str>,
    waiting: Arc<Mutex<Waiting>>,
    added: Arc<Notify>,
}

#[derive(Default)]
struct Waiting {
    jobs: bool,
    endpoints: BTreeMap<OwnedEndpoint, bool>,
}

/// One notification.
#[derive(Serialize, Deserialize)]
struct Told {
    node: String,
    jobs: bool,
    /// Organization, endpoint, and whether its settings were changed.
    endpoints: Vec<(String, String, bool)>,
}

impl Default for Wakeups {
    fn default() -> Self {
        Self {
            node: RequestId::new().as_str().into(),
            waiting: Arc::default(),
            added: Arc::default(),
        }
    }
}

impl Wakeups {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something was committed.
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

/// Tells other nodes what this one commits, and hears what they tell, until told to stop.
pub async fn run(store: Store, stop: CancellationToken) {
    if store.dialect() != Dialect::Postgres {
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
        let told = Told {
            node: wakeups.node.to_string(),
            jobs: waiting.jobs,
            endpoints: endpoints
                .map(|(of, changed)| (of.org.to_string(), of.endpoint.to_string(), changed))
                .collect(),
        };
        if let Err(error) = notify(store, &told).await {
            tracing::debug!(%error, "other nodes were not told of work");
        }
    }
}

async fn notify(store: &Store, told: &Told) -> Result<(), super::StoreError> {
    let payload = serde_json::to_string(told).unwrap_or_default();
    let mut connection = store.read_urgently().await?;
    sqlx::query("select cast(pg_notify($1, $2) as text)")
        .bind(CHANNEL)
        .bind(payload)
        .execute(&mut *connection)
        .await?;
    Ok(())
}

async fn hear(store: &Store) {
    let mut said = false;
    loop {
        if let Err(error) = listen(store).await {
            // Databases like PostgreSQL need not have it.
            if !said {
                tracing::warn!(%error, "work of other nodes is looked for once a second only");
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
            // The connection broke and is there again: something may have been missed.
            None => store.work.notify_one(),
        }
    }
}

impl Store {
    fn heard(&self, told: Told) {
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
