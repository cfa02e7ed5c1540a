//! A separate service for each test: the real router, worker, database and object folder.
//! Helpers use the public API only, except for those in `database.rs`.

mod app;
pub mod authority;
pub mod azure;
pub mod browser;
mod commands;
mod database;
pub mod docuseal;
mod envelopes;
pub mod example_sign;
pub mod faulty;
mod files;
pub mod form;
pub mod gcs;
pub mod holds;
pub mod issuer;
pub mod method;
pub mod pages;
pub mod passkey;
pub mod pdf;
pub mod postgres;
pub mod process;
pub mod processor;
pub mod proxy;
pub mod receiver;
mod requests;
pub mod revocation;
pub mod rewrite;
pub mod s3;
pub mod sigstore;
pub mod smtp;
mod templates;
mod tenants;
pub mod uploads;
mod vault;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use axum::Router;
use holdfast::config::StorageSettings;
use holdfast::domain::id::OrgId;
use holdfast::metrics::ConnectionMetrics;
use holdfast::start::App;
use holdfast::store::Store;
use tempfile::TempDir;

pub use app::{SETTINGS, configuration, share_native_code};
pub use commands::{
    decisions_output, operator, operator_output, pool_output, statement_output, verifier_output,
    verifier_output_at, verifier_text,
};
pub use envelopes::{buyer_and_seller, envelope_body};
pub use files::{files_below, files_with};
pub use requests::TestResponse;
pub use templates::{CONTRACT, padded};
pub use tenants::org_of;
pub use vault::release_form;

/// A running service, and one organization with an API key that has every scope.
pub struct TestApp {
    pub store: Store,
    pub org: OrgId,
    pub key: String,
    /// Its first node, for work that no request asks for.
    pub service: App,
    /// One router for each node; requests go to them in turn.
    routers: Vec<Router>,
    next: AtomicUsize,
    pub data: Arc<TempDir>,
    /// URL of its socket, if it listens on one.
    url: Option<String>,
    connections: ConnectionMetrics,
    /// Folder with its SQLite database, unless `database_url` names a server.
    root: Arc<TempDir>,
    database_url: Option<String>,
    /// Its object store, unless the objects are in the data folder.
    storage: Option<(String, StorageSettings)>,
    /// Offset by which its clock runs ahead.
    ahead: Duration,
    /// Token of an admin, issued on first use.
    admin: std::sync::OnceLock<String>,
    _worker: WorkerShutdown,
}

/// Stops the worker with the test.
struct WorkerShutdown(tokio_util::sync::CancellationToken);

impl Drop for WorkerShutdown {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
