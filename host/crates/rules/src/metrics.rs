//! What components did.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// Labels of a component.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ComponentLabels {
    /// Name and version.
    pub component: String,
}

/// By component.
#[derive(Clone, Default)]
pub struct ComponentMetrics {
    /// Calls that trapped or used up their budget.
    pub failures: Family<ComponentLabels, Counter>,
    /// Most linear memory that a call has had, in bytes.
    pub memory_peak: Family<ComponentLabels, Gauge>,
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
