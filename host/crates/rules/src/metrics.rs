//! Metrics by component.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// Metric labels of a component.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ComponentLabels {
    /// Name and version.
    pub component: String,
}

/// Metrics of all components.
#[derive(Clone, Default)]
pub struct ComponentMetrics {
    /// Calls that trapped or used up their budget.
    pub failures: Family<ComponentLabels, Counter>,
    /// Peak linear memory of a call, in bytes.
    pub memory_peak: Family<ComponentLabels, Gauge>,
}

/// Metrics of one component.
#[derive(Clone)]
pub struct ComponentMeter {
    /// Calls that failed.
    pub failures: Counter,
    memory_peak: Gauge,
    reported: bool,
}

impl ComponentMetrics {
    /// Returns the metrics of the component with this name and version.
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
    /// Returns metrics of a candidate, which are not exported.
    pub fn of_candidate() -> Self {
        Self {
            failures: Counter::default(),
            memory_peak: Gauge::default(),
            reported: false,
        }
    }

    /// Whether failures are logged and counted.
    pub fn is_reported(&self) -> bool {
        self.reported
    }

    /// Returns the peak linear memory of a call, in bytes.
    pub fn memory_peak(&self) -> i64 {
        self.memory_peak.get()
    }

    /// Records the linear memory of a call at its end, in bytes.
    pub fn used(&self, memory: usize) {
        let memory = i64::try_from(memory).unwrap_or(i64::MAX);
        if memory > self.memory_peak.get() {
            self.memory_peak.set(memory);
        }
    }
}
