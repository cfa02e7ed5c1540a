//! Prometheus metrics, served at `/metrics`.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

use holdfast_domain::bulk::ItemOutcome;
use holdfast_domain::import::ImportRowStatus;
use holdfast_rules::metrics::ComponentMetrics;

/// Histogram buckets in seconds, from a millisecond to ten seconds.
const DURATIONS: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Defines a group of metrics. A row consists of a metric's help (its
/// doc comment, one line), field, kind and name, and optionally a unit
/// and an initial value. Fields that are not metrics go in parentheses.
macro_rules! metrics {
    (
        $(#[$about:meta])*
        $group:ident($(
            $(#[$other_about:meta])* $other_visibility:vis $other:ident: $other_kind:ty
        ),*) {$(
            #[doc = $help:literal]
            $visibility:vis $field:ident: $kind:ty = $name:literal
                $(in $unit:expr)? $(, $initial:expr)?;
        )*}
    ) => {
        $(#[$about])*
        pub struct $group {
            $($(#[$other_about])* $other_visibility $other: $other_kind,)*
            $(#[doc = $help] $visibility $field: $kind,)*
        }

        impl Default for $group {
            fn default() -> Self {
                Self {
                    $($other: Default::default(),)*
                    $($field: metrics!(@initial $($initial)?),)*
                }
            }
        }

        impl $group {
            fn register(&self, registry: &mut Registry) {$(
                let unit = None::<Unit>$(.or(Some($unit)))?;
                register(registry, $name, $help, unit, self.$field.clone());
            )*}
        }
    };
    (@initial) => { Default::default() };
    (@initial $initial:expr) => { $initial };
}

/// Registers a metric; its help is a doc comment.
fn register(
    registry: &mut Registry,
    name: &str,
    help: &str,
    unit: Option<Unit>,
    metric: impl Metric,
) {
    // The registry appends its own full stop.
    let help = help.trim().trim_end_matches('.');
    match unit {
        None => registry.register(name, help, metric),
        Some(unit) => registry.register_with_unit(name, help, unit, metric),
    }
}

/// Labels of a request: method, route and status. The route is the pattern and never the path,
/// which contains ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// For example `GET`.
    pub method: String,
    /// For example `/api/v2/partner/envelopes/{id}`.
    pub route: String,
    /// For example `200`.
    pub status: u16,
}

/// Labels of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct JobLabels {
    /// For example `envelope.vault`.
    pub kind: String,
    /// `done`, `retried` or `failed`.
    pub outcome: String,
}

/// Labels of a webhook delivery attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct AttemptLabels {
    /// `delivered`, `retried` or `failed`.
    pub outcome: String,
}

/// Labels of an item of a bulk batch, or of a row of an import.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ItemLabels {
    /// `sent`, `failed`, `skipped`, `cancelled` or `retried`; of a row `imported`, `duplicate` or `failed`.
    pub outcome: String,
}

impl From<ImportRowStatus> for ItemLabels {
    fn from(status: ImportRowStatus) -> Self {
        let outcome = status.to_string();
        Self { outcome }
    }
}

impl From<&ItemOutcome> for ItemLabels {
    fn from(outcome: &ItemOutcome) -> Self {
        let outcome = match outcome {
            ItemOutcome::Sent(_) => "sent",
            ItemOutcome::Failed(_) => "failed",
            ItemOutcome::Skipped(_) => "skipped",
            ItemOutcome::Cancelled => "cancelled",
            ItemOutcome::Later { .. } => "retried",
        };

        Self {
            outcome: outcome.into(),
        }
    }
}

/// Labels of a connection that the server closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ClosedLabels {
    /// `half-open`, `idle`, `not-reading`, `shed`, `refused` or `stopping`.
    pub reason: String,
}

metrics! {
    /// Connections of clients.
    #[derive(Clone)]
    ConnectionMetrics() {
        /// Open connections of clients.
        open: Gauge = "connections_open";
        /// Connections of clients that the server closed, by reason.
        closed: Family<ClosedLabels, Counter> = "connections_closed";
    }
}

/// Open connection; dropping it ends its count.
pub struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl ConnectionMetrics {
    /// Counts a connection until the result is dropped.
    pub fn opened(&self) -> OpenConnection {
        self.open.inc();
        OpenConnection(self.open.clone())
    }

    /// Counts a connection that the server closed.
    pub fn closed(&self, reason: &str) {
        let reason = reason.into();
        self.closed.get_or_create(&ClosedLabels { reason }).inc();
    }
}

/// Labels of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DiskLabels {
    /// Folder on the disk: `data` or `objects`.
    pub folder: String,
}

/// Labels of an answer of a witness of the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WitnessLabels {
    /// `cosigned`, `failed` or `conflict`.
    pub outcome: String,
}

/// Labels of an operator-configured provider instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ProviderLabels {
    /// For example `provider.signing`.
    pub slot: String,
    /// Name of the instance in the settings.
    pub instance: String,
}

metrics! {
    /// All metrics of this process.
    Metrics(
        registry: Registry,
        /// Connections of clients.
        pub connections: ConnectionMetrics
    ) {
        /// Number of HTTP requests answered.
        pub requests: Family<RequestLabels, Counter> = "http_requests";
        /// Time until the head of a response is sent.
        pub request_duration: Histogram = "http_request_duration" in Unit::Seconds, Histogram::new(DURATIONS);
        /// Free space on the disks of the data folder and of the object folder.
        pub disk_free: Family<DiskLabels, Gauge> = "disk_free" in Unit::Bytes;
        /// Requests that failed because a disk was full.
        pub disk_full: Counter = "disk_full";
        /// Requests answered with status 429.
        pub rate_limited: Counter = "rate_limited_requests";
        /// Jobs settled, by outcome.
        pub jobs: Family<JobLabels, Counter> = "jobs";
        /// Items of bulk batches settled, by outcome.
        pub bulk_items: Family<ItemLabels, Counter> = "bulk_items";
        /// Rows of imports with a result, by outcome.
        pub import_rows: Family<ItemLabels, Counter> = "import_rows";
        /// Waiting jobs, including leased ones.
        pub jobs_waiting: Gauge = "jobs_waiting";
        /// Jobs that failed for good, after their last attempt.
        pub jobs_failed: Gauge = "jobs_failed";
        /// Webhook delivery attempts, by outcome.
        pub webhook_attempts: Family<AttemptLabels, Counter> = "webhook_attempts";
        /// Webhook deliveries that are due.
        pub webhook_due: Gauge = "webhook_deliveries_due";
        /// Age of the oldest due webhook delivery.
        pub webhook_lag: Gauge = "webhook_delivery_lag" in Unit::Seconds;
        /// Webhook endpoints with an open circuit breaker.
        pub webhook_paused: Gauge = "webhook_endpoints_paused";
        /// Webhook endpoints disabled because of their failures.
        pub webhook_disabled: Gauge = "webhook_endpoints_disabled";
        /// Envelopes that expired.
        pub expired: Counter = "envelopes_expired";
        /// Open envelopes read back from their providers by periodic polling.
        pub provider_polls: Counter = "provider_polls";
        /// Periodic polls of open envelopes that failed.
        pub provider_polls_failed: Counter = "provider_polls_failed";
        /// Seals made without the configured authority's timestamp, because it failed.
        pub without_trusted_time: Counter = "seals_without_trusted_time";
        /// Times that the log was found forked or truncated.
        pub ledger_forks: Counter = "ledger_forks";
        /// Time since the oldest unleased job became due.
        pub job_lag: Gauge = "job_lag" in Unit::Seconds;
        /// Lead of the reference clock (database or machine) over this node's clock.
        pub clock_offset: Gauge = "clock_offset" in Unit::Other("milliseconds".into());
        /// How far this node's clock is behind the newest entry of the log, as of the last check.
        pub clock_behind: Gauge = "clock_behind" in Unit::Seconds;
        /// Ledger entries that are not in the log yet.
        pub ledger_pending: Gauge = "ledger_pending";
        /// Entries in the log of all ledgers.
        pub ledger_size: Gauge = "ledger_size";
        /// Entries in the newest head of the log that the quorum of witnesses has cosigned.
        pub ledger_cosigned_size: Gauge = "ledger_cosigned_size";
        /// Time for which heads of the log have lacked the quorum of cosignatures.
        pub quorum_missing: Gauge = "ledger_quorum_missing" in Unit::Seconds;
        /// Offers of heads to the witnesses of the log, by outcome.
        pub witness_answers: Family<WitnessLabels, Counter> = "ledger_witness_answers";
        /// Vaulted envelopes that passed through an integrity check.
        pub integrity_checked: Counter = "integrity_checked";
        /// Vaulted envelopes that an integrity check could not read.
        pub integrity_unread: Counter = "integrity_unread";
        /// Envelopes in the vault or released from it.
        pub integrity_total: Gauge = "integrity_envelopes";
        /// Vaulted or released envelopes checked in the last seven days.
        pub integrity_this_week: Gauge = "integrity_checked_in_a_week";
        /// Vaulted or released envelopes with a problem in their last integrity check.
        pub integrity_problems: Gauge = "integrity_with_problems";
        /// Active components that this node cannot load.
        pub components_broken: Gauge = "components_broken";
        /// 1 if a configured provider answered the last request, otherwise 0.
        pub provider_reachable: Family<ProviderLabels, Gauge> = "provider_reachable";
        /// Decisions that a shadow candidate evaluated as well.
        pub shadow_compared: Counter = "shadow_compared";
        /// Shadow evaluations with a different result.
        pub shadow_differing: Counter = "shadow_differing";
        /// Shadow evaluations that failed.
        pub shadow_failed: Counter = "shadow_failed";
        /// Stored objects removed because no row refers to them.
        pub orphans_removed: Counter = "orphans_removed";
    }
}

impl Metrics {
    /// Creates and registers all metrics.
    pub fn new(components: &ComponentMetrics) -> Self {
        let metrics = Self::default();
        // Counters start at zero, so that rates are correct from the first event on.
        for outcome in ["sent", "failed", "skipped", "cancelled", "retried"] {
            let outcome = outcome.to_owned();
            drop(metrics.bulk_items.get_or_create(&ItemLabels { outcome }));
        }

        for outcome in ["imported", "duplicate", "failed"] {
            let outcome = outcome.to_owned();
            drop(metrics.import_rows.get_or_create(&ItemLabels { outcome }));
        }

        // Alerts on failures would otherwise miss the first one, which has no earlier value.
        for outcome in ["delivered", "retried", "failed"] {
            let outcome = outcome.to_owned();
            let labels = AttemptLabels { outcome };
            drop(metrics.webhook_attempts.get_or_create(&labels));
        }

        for outcome in ["cosigned", "failed", "conflict"] {
            let outcome = outcome.to_owned();
            drop(
                metrics
                    .witness_answers
                    .get_or_create(&WitnessLabels { outcome }),
            );
        }

        let mut registry = Registry::with_prefix("holdfast");
        metrics.register(&mut registry);
        metrics.connections.register(&mut registry);

        // Counted by the components themselves, which do not know this registry.
        let (failures, peak) = (components.failures.clone(), components.memory_peak.clone());
        let what = "Component calls that trapped or used up their budget";
        registry.register("component_call_failures", what, failures);
        let what = "Most linear memory that a call has had";
        registry.register_with_unit("component_memory_peak", what, Unit::Bytes, peak);

        Self {
            registry,
            ..metrics
        }
    }

    /// Counts an answered request.
    pub fn answered(&self, labels: RequestLabels, duration: Duration) {
        // Durations have no labels: a histogram for each route and status would have thousands of series.
        self.requests.get_or_create(&labels).inc();
        self.request_duration.observe(duration.as_secs_f64());
    }

    /// Encodes the metrics as OpenMetrics text.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}
