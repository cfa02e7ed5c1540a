//! What is counted, in Prometheus text at `/metrics`.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::domain::bulk::Outcome;

/// From a millisecond to ten seconds.
const DURATIONS: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Labels of a request: its method, its route as written (never its path, which
/// holds ids), and its status.
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

/// Labels of an attempt to deliver a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct AttemptLabels {
    /// `delivered`, `retried` or `failed`.
    pub outcome: String,
}

/// Labels of an item of a bulk batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ItemLabels {
    /// `sent`, `failed`, `skipped`, `cancelled` or `retried`.
    pub outcome: String,
}

impl From<&Outcome> for ItemLabels {
    fn from(outcome: &Outcome) -> Self {
        let outcome = match outcome {
            Outcome::Sent(_) => "sent",
            Outcome::Failed(_) => "failed",
            Outcome::Skipped(_) => "skipped",
            Outcome::Cancelled => "cancelled",
            Outcome::Later { .. } => "retried",
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

/// Connections of clients.
#[derive(Clone, Default)]
pub struct ConnectionMetrics {
    open: Gauge,
    closed: Family<ClosedLabels, Counter>,
}

/// One open connection; dropping it ends its count.
pub struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl ConnectionMetrics {
    /// Counts a connection for as long as the result is held.
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
    /// `data` or `objects`: the folder on it.
    pub folder: String,
}

/// Labels of a provider's instance that the operator configured.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ProviderLabels {
    /// For example `provider.signing`.
    pub slot: String,
    /// Its name in the settings.
    pub instance: String,
}

/// Labels of a component.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ComponentLabels {
    /// Name and version.
    pub component: String,
}

/// What components did, by component.
#[derive(Clone, Default)]
pub struct ComponentMetrics {
    failures: Family<ComponentLabels, Counter>,
    memory_peak: Family<ComponentLabels, Gauge>,
}

/// What one component did.
#[derive(Clone)]
pub struct ComponentMeter {
    /// Calls that failed.
    pub failures: Counter,
    memory_peak: Gauge,
    reported: bool,
}

impl ComponentMetrics {
    /// Of the component with this name and version.
    pub fn of(&self, component: &str) -> ComponentMeter {
        let labels = ComponentLabels {
            component: component.into(),
        };
        ComponentMeter {
            failures: self.failures.get_or_create(&labels).clone(),
            memory_peak: self.memory_peak.get_or_create(&labels).clone(),
            reported: true,
        }
    }
}

impl ComponentMeter {
    /// Of a component that is being examined.
    pub fn of_candidate() -> Self {
        Self {
            failures: Counter::default(),
            memory_peak: Gauge::default(),
            reported: false,
        }
    }

    /// Whether its failures are logged and counted.
    pub fn is_reported(&self) -> bool {
        self.reported
    }

    /// The most linear memory that a call has had, in bytes.
    pub fn memory_peak(&self) -> i64 {
        self.memory_peak.get()
    }

    /// Notes how much linear memory a call had in the end, in bytes.
    pub fn used(&self, memory: usize) {
        let memory = i64::try_from(memory).unwrap_or(i64::MAX);
        if memory > self.memory_peak.get() {
            self.memory_peak.set(memory);
        }
    }
}

/// Every metric of this process.
pub struct Metrics {
    registry: Registry,
    /// Requests answered.
    pub requests: Family<RequestLabels, Counter>,
    /// Seconds a request took.
    pub request_duration: Histogram,
    /// Requests refused because their key had none left.
    pub rate_limited: Counter,
    /// Connections of clients.
    pub connections: ConnectionMetrics,
    /// Free bytes of disks, as of the last look.
    pub disk_free: Family<DiskLabels, Gauge>,
    /// Requests that failed because a disk was full.
    pub disk_full: Counter,
    /// Jobs settled.
    pub jobs: Family<JobLabels, Counter>,
    /// Jobs that wait, as of the last look.
    pub jobs_waiting: Gauge,
    /// Jobs set aside after their last attempt, as of the last look.
    pub jobs_failed: Gauge,
    /// Items of bulk batches that were settled.
    pub bulk_items: Family<ItemLabels, Counter>,
    /// Attempts to deliver webhooks.
    pub webhook_attempts: Family<AttemptLabels, Counter>,
    /// Deliveries that are due, as of the last look.
    pub webhook_due: Gauge,
    /// Seconds since the oldest of them became due, as of the last look.
    pub webhook_lag: Gauge,
    /// Endpoints to which nothing but probes is sent, as of the last look.
    pub webhook_paused: Gauge,
    /// Endpoints that were disabled for their failures, as of the last look.
    pub webhook_disabled: Gauge,
    /// Envelopes that expired.
    pub expired: Counter,
    /// Open envelopes read back from their providers by time.
    pub provider_polls: Counter,
    /// Open envelopes that could not be read back.
    pub provider_polls_failed: Counter,
    /// Seals that no time stamping authority vouches for.
    pub without_trusted_time: Counter,
    /// Times that another checkpoint of a size was found published.
    pub ledger_forks: Counter,
    /// Ledger entries that wait for their place in the log.
    pub ledger_pending: Gauge,
    /// Seconds since the oldest job became due that nobody works on.
    pub job_lag: Gauge,
    /// Buckets whose work this node takes up first.
    pub buckets_held: Gauge,
    /// Milliseconds that the clock which is followed is ahead.
    pub clock_offset: Gauge,
    /// Entries in the log of all ledgers.
    pub ledger_size: Gauge,
    /// Vaulted envelopes that were re-read.
    pub integrity_checked: Counter,
    /// Vaulted envelopes that could not be re-read.
    pub integrity_unread: Counter,
    /// Envelopes in the vault or released from it.
    pub integrity_total: Gauge,
    /// Of those, re-read in the last seven days.
    pub integrity_this_week: Gauge,
    /// Of those, with something that does not hold.
    pub integrity_problems: Gauge,
    /// Components that were activated and that this node cannot load.
    pub components_broken: Gauge,
    /// 1 where a provider answered the last request, whatever it said; 0 where it could
    /// not be reached.
    pub provider_reachable: Family<ProviderLabels, Gauge>,
    /// Decisions that were asked of a candidate too.
    pub shadow_compared: Counter,
    /// Of those, with another answer.
    pub shadow_differing: Counter,
    /// Of those, without an answer.
    pub shadow_failed: Counter,
    /// Stored objects removed because no row points to them.
    pub orphans_removed: Counter,
}

impl Metrics {
    /// A registry with everything in it.
    pub fn new(components: ComponentMetrics) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("holdfast"),
            requests: Family::default(),
            request_duration: Histogram::new(DURATIONS),
            rate_limited: Counter::default(),
            connections: ConnectionMetrics::default(),
            disk_free: Family::default(),
            disk_full: Counter::default(),
            jobs: Family::default(),
            jobs_waiting: Gauge::default(),
            jobs_failed: Gauge::default(),
            bulk_items: Family::default(),
            webhook_attempts: Family::default(),
            webhook_due: Gauge::default(),
            webhook_lag: Gauge::default(),
            webhook_paused: Gauge::default(),
            webhook_disabled: Gauge::default(),
            expired: Counter::default(),
            provider_polls: Counter::default(),
            provider_polls_failed: Counter::default(),
            without_trusted_time: Counter::default(),
            ledger_forks: Counter::default(),
            ledger_pending: Gauge::default(),
            job_lag: Gauge::default(),
            buckets_held: Gauge::default(),
            clock_offset: Gauge::default(),
            ledger_size: Gauge::default(),
            integrity_checked: Counter::default(),
            integrity_unread: Counter::default(),
            integrity_total: Gauge::default(),
            integrity_this_week: Gauge::default(),
            integrity_problems: Gauge::default(),
            components_broken: Gauge::default(),
            provider_reachable: Family::default(),
            shadow_compared: Counter::default(),
            shadow_differing: Counter::default(),
            shadow_failed: Counter::default(),
            orphans_removed: Counter::default(),
        };
        // A rate needs a beginning: what has not happened yet is counted as none.
        for outcome in ["sent", "failed", "skipped", "cancelled", "retried"] {
            let outcome = outcome.to_owned();
            drop(metrics.bulk_items.get_or_create(&ItemLabels { outcome }));
        }
        for outcome in ["delivered", "retried", "failed"] {
            let outcome = outcome.to_owned();
            let labels = AttemptLabels { outcome };
            drop(metrics.webhook_attempts.get_or_create(&labels));
        }
        let registry = &mut metrics.registry;
        registry.register(
            "http_requests",
            "Requests answered",
            metrics.requests.clone(),
        );
        registry.register_with_unit(
            "http_request_duration",
            "Time to the head of an answer",
            Unit::Seconds,
            metrics.request_duration.clone(),
        );
        registry.register_with_unit(
            "disk_free",
            "Free room on the disks of the data folder and of the object folder",
            Unit::Bytes,
            metrics.disk_free.clone(),
        );
        registry.register(
            "disk_full",
            "Requests that failed because a disk was full",
            metrics.disk_full.clone(),
        );
        registry.register(
            "connections_open",
            "Open connections of clients",
            metrics.connections.open.clone(),
        );
        registry.register(
            "connections_closed",
            "Connections of clients that the server closed, by reason",
            metrics.connections.closed.clone(),
        );
        registry.register(
            "rate_limited_requests",
            "Requests refused because their key had none left",
            metrics.rate_limited.clone(),
        );
        registry.register("jobs", "Jobs settled", metrics.jobs.clone());
        registry.register(
            "bulk_items",
            "Items of bulk batches that were settled",
            metrics.bulk_items.clone(),
        );
        registry.register(
            "jobs_waiting",
            "Jobs that wait",
            metrics.jobs_waiting.clone(),
        );
        registry.register(
            "jobs_failed",
            "Jobs set aside after their last attempt",
            metrics.jobs_failed.clone(),
        );
        registry.register(
            "webhook_attempts",
            "Attempts to deliver webhooks",
            metrics.webhook_attempts.clone(),
        );
        registry.register(
            "webhook_deliveries_due",
            "Webhook deliveries that are due",
            metrics.webhook_due.clone(),
        );
        registry.register_with_unit(
            "webhook_delivery_lag",
            "Time since the oldest of them became due",
            Unit::Seconds,
            metrics.webhook_lag.clone(),
        );
        registry.register(
            "webhook_endpoints_paused",
            "Webhook endpoints to which nothing but probes is sent",
            metrics.webhook_paused.clone(),
        );
        registry.register(
            "webhook_endpoints_disabled",
            "Webhook endpoints that were disabled for their failures",
            metrics.webhook_disabled.clone(),
        );
        registry.register(
            "envelopes_expired",
            "Envelopes that expired",
            metrics.expired.clone(),
        );
        registry.register(
            "provider_polls",
            "Open envelopes read back from their providers by time",
            metrics.provider_polls.clone(),
        );
        registry.register(
            "provider_polls_failed",
            "Open envelopes that could not be read back from their providers",
            metrics.provider_polls_failed.clone(),
        );
        registry.register(
            "seals_without_trusted_time",
            "Seals that no time stamping authority vouches for",
            metrics.without_trusted_time.clone(),
        );
        registry.register(
            "ledger_forks",
            "Times that another checkpoint of a size was found published",
            metrics.ledger_forks.clone(),
        );
        registry.register_with_unit(
            "job_lag",
            "Time since the oldest job became due that nobody works on",
            Unit::Seconds,
            metrics.job_lag.clone(),
        );
        registry.register(
            "buckets_held",
            "Buckets of organizations (64 in all) whose work this node takes up first",
            metrics.buckets_held.clone(),
        );
        registry.register_with_unit(
            "clock_offset",
            "How far the clock that is followed is ahead: the database's, or the machine's",
            Unit::Other("milliseconds".into()),
            metrics.clock_offset.clone(),
        );
        registry.register(
            "ledger_pending",
            "Ledger entries that wait for their place in the log",
            metrics.ledger_pending.clone(),
        );
        registry.register(
            "ledger_size",
            "Entries in the log of all ledgers",
            metrics.ledger_size.clone(),
        );
        registry.register(
            "integrity_checked",
            "Vaulted envelopes that were re-read",
            metrics.integrity_checked.clone(),
        );
        registry.register(
            "integrity_unread",
            "Vaulted envelopes that could not be re-read",
            metrics.integrity_unread.clone(),
        );
        registry.register(
            "integrity_envelopes",
            "Envelopes in the vault or released from it",
            metrics.integrity_total.clone(),
        );
        registry.register(
            "integrity_checked_in_a_week",
            "Of those, re-read in the last seven days",
            metrics.integrity_this_week.clone(),
        );
        registry.register(
            "integrity_with_problems",
            "Of those, with something that does not hold",
            metrics.integrity_problems.clone(),
        );
        registry.register(
            "components_broken",
            "Components that were activated and that this node cannot load",
            metrics.components_broken.clone(),
        );
        registry.register(
            "provider_reachable",
            "1 where a configured provider answered the last request",
            metrics.provider_reachable.clone(),
        );
        registry.register(
            "shadow_compared",
            "Decisions that were asked of a candidate too",
            metrics.shadow_compared.clone(),
        );
        registry.register(
            "shadow_differing",
            "Of those, with another answer",
            metrics.shadow_differing.clone(),
        );
        registry.register(
            "shadow_failed",
            "Of those, without an answer",
            metrics.shadow_failed.clone(),
        );
        registry.register(
            "orphans_removed",
            "Stored objects removed because no row points to them",
            metrics.orphans_removed.clone(),
        );
        registry.register(
            "component_call_failures",
            "Component calls that trapped or used up their budget",
            components.failures,
        );
        registry.register_with_unit(
            "component_memory_peak",
            "Most linear memory that a call has had",
            Unit::Bytes,
            components.memory_peak,
        );
        metrics
    }

    /// Counts an answered request.
    pub fn answered(&self, labels: RequestLabels, duration: Duration) {
        self.requests.get_or_create(&labels).inc();
        self.request_duration.observe(duration.as_secs_f64());
    }

    /// OpenMetrics text, which Prometheus reads.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}
