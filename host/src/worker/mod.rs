//! Background work: jobs, webhook deliveries and periodic tasks.
//!
//! | File | Does |
//! |---|---|
//! | `jobs` | claims, runs and settles jobs |
//! | `mails` | reads the records of a due mail, writes it and sends it |
//! | `text_messages` | writes a due text message and sends it |
//! | `webhooks` | dispatches deliveries to the endpoints of organizations |
//! | `periodic` | runs periodic tasks |
//! | `node` | identifies this run of this node, for leases |

mod jobs;
mod mails;
mod node;
mod periodic;
mod text_messages;
mod webhooks;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::node::NodeRun;
use holdfast_platform::components;
use holdfast_platform::log;
use holdfast_service::App;
use holdfast_service::vault::timekeeping;
use holdfast_store as store;

/// Runs all background tasks until `stop` is cancelled, then finishes the jobs in progress.
pub async fn run(app: App, stop: CancellationToken) {
    // On SQLite no other node exists, so leases of a crashed run need not expire first.
    if let Err(error) = store::jobs::forget_leases(&app.store, app.clock.now()).await {
        tracing::error!(%error, "job leases of an earlier run could not be released");
    }

    if let Err(error) = store::bulk::forget_leases(&app.store, app.clock.now()).await {
        tracing::error!(%error, "bulk item leases of an earlier run could not be released");
    }

    // One task for each kind of work: a slow provider or a long sweep must not delay mails and deliveries.
    let node = Arc::new(NodeRun::of(&app.config.data_dir));
    let periodic = tokio::spawn(periodic::run(app.clone(), node.clone(), stop.clone()));
    let sequencer = tokio::spawn(log::run(
        app.core.clone(),
        app.vault.log.clone(),
        stop.clone(),
    ));
    let witnesses = tokio::spawn(log::cosignatures::run(app.core.clone(), stop.clone()));
    let sweeps = tokio::spawn(periodic::sweep(app.clone(), stop.clone()));
    let seals = tokio::spawn(periodic::seals(app.clone(), stop.clone()));
    let polls = tokio::spawn(periodic::poll(app.clone(), stop.clone()));
    let webhooks = tokio::spawn(webhooks::run(app.clone(), node, stop.clone()));
    let activations = tokio::spawn(components::follow(
        app.core.clone(),
        app.management.clone(),
        stop.clone(),
    ));

    let wakeups = tokio::spawn(store::share_wakeups(app.store.clone(), stop.clone()));
    let time = tokio::spawn(timekeeping::run(app.clone(), stop.clone()));
    jobs::run(&app, &stop).await;

    // The process ends after this function, so every task gets the time to finish its last step.
    for (what, work) in [
        ("periodic", periodic),
        ("log", sequencer),
        ("witnesses", witnesses),
        ("sweeps", sweeps),
        ("seals", seals),
        ("polls", polls),
        ("webhooks", webhooks),
        ("activations", activations),
        ("wake-ups", wakeups),
        ("time", time),
    ] {
        if let Err(error) = work.await {
            tracing::error!(what, %error, "background task failed");
        }
    }
}
