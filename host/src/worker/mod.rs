//! Background work: jobs, webhook deliveries and periodic tasks.
//!
//! | File | Does |
//! |---|---|
//! | `jobs` | claims, runs and settles jobs |
//! | `mails` | reads the records of a due mail, writes it and sends it |
//! | `webhooks` | dispatches deliveries to the endpoints of organizations |
//! | `periodic` | runs periodic tasks |
//! | `node` | identifies this run of this node, for leases |

mod jobs;
mod mails;
mod node;
mod periodic;
mod webhooks;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::node::Node;
use crate::service::vault::{log, timekeeping};
use crate::service::{App, components};
use crate::store::{self, buckets};

/// Runs all background tasks until `stop` is cancelled, then finishes the jobs in progress.
pub async fn run(app: App, stop: CancellationToken) {
    if let Err(error) = store::jobs::forget_leases(&app.store, app.clock.now()).await {
        tracing::error!(%error, "leases of an earlier run could not be taken back");
    }
    if let Err(error) = store::bulk::forget_leases(&app.store, app.clock.now()).await {
        tracing::error!(%error, "bulk items of an earlier run could not be taken back");
    }
    let node = Arc::new(Node::of(&app.config.data_dir));
    // Before the first claim.
    hold_buckets(&app, &node).await;
    let buckets = tokio::spawn(keep_buckets(app.clone(), node.clone(), stop.clone()));
    let periodic = tokio::spawn(periodic::run(app.clone(), stop.clone()));
    let sequencer = tokio::spawn(log::run(app.clone(), stop.clone()));
    let sweeps = tokio::spawn(periodic::sweep(app.clone(), stop.clone()));
    let polls = tokio::spawn(periodic::poll(app.clone(), stop.clone()));
    let webhooks = tokio::spawn(webhooks::run(app.clone(), node, stop.clone()));
    let activations = tokio::spawn(components::follow(app.clone(), stop.clone()));
    let wakeups = tokio::spawn(store::share_wakeups(app.store.clone(), stop.clone()));
    let time = tokio::spawn(timekeeping::run(app.clone(), stop.clone()));
    jobs::run(&app, &stop).await;
    for (what, work) in [
        ("periodic", periodic),
        ("log", sequencer),
        ("sweeps", sweeps),
        ("polls", polls),
        ("webhooks", webhooks),
        ("activations", activations),
        ("wake-ups", wakeups),
        ("time", time),
        ("buckets", buckets),
    ] {
        if let Err(error) = work.await {
            tracing::error!(what, %error, "background work did not end well");
        }
    }
}

async fn hold_buckets(app: &App, node: &Node) {
    let earlier = node.earlier_runs();
    match buckets::hold(&app.store, &node.run, earlier.as_deref(), app.clock.now()).await {
        Ok(held) => {
            app.metrics
                .buckets_held
                .set(held.try_into().unwrap_or_default());
        }
        Err(error) => tracing::warn!(%error, "buckets could not be held"),
    }
}

/// Renews the leases on a share of the buckets until `stop` is cancelled, then releases them.
async fn keep_buckets(app: App, node: Arc<Node>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(buckets::RENEWAL) => hold_buckets(&app, &node).await,
        }
    }
    if let Err(error) = buckets::let_go(&app.store, &node.run).await {
        tracing::warn!(%error, "buckets stay held until their leases end");
    }
    app.metrics.buckets_held.set(0);
}
