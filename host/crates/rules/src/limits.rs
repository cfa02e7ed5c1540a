//! Resource limits of one call of a component, by slot.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use holdfast_domain::component::Slot;

const MIB: usize = 1024 * 1024;

/// Resource limits of one call, and of concurrent calls.
#[derive(Clone, Debug, PartialEq)]
pub struct CallLimits {
    /// Slot that they are for, which is a part of their settings' names.
    pub slot: Slot,
    /// Linear memory, in bytes.
    pub memory: usize,
    /// Wasmtime's fuel, a deterministic measure of work; rules only.
    pub fuel: u64,
    /// Wall-clock time. For rules a backstop for work that fuel does not count, and long
    /// enough to read their code from a disk.
    pub deadline: Duration,
    /// Processor time of the thread that runs the call.
    pub cpu: Duration,
    /// Bytes that the component may pass to the host in one call.
    pub output: usize,
    /// Number of host calls; providers only.
    pub host_calls: u32,
    /// Number of HTTP requests; providers only.
    pub requests: u32,
    /// Concurrent calls. Further calls wait.
    pub instances: usize,
    /// Concurrent calls on behalf of one organization, regardless of the component's owner.
    pub instances_of_organization: usize,
    /// Bytes that all calls of one organization's own components hold together:
    /// memory and fetched documents; providers only.
    pub memory_of_organization: usize,
}

/// Changes to the default limits of a slot: `[components.limits."rules.compliance"]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Linear memory of one call, in bytes.
    memory_bytes: Option<usize>,
    /// Units of deterministic CPU time (Wasmtime fuel) of one call; rules only.
    fuel: Option<u64>,
    /// Wall-clock time of one call.
    #[serde(deserialize_with = "some_duration")]
    #[schemars(with = "Option<String>")]
    deadline: Option<Duration>,
    /// CPU time of one call.
    #[serde(deserialize_with = "some_duration")]
    #[schemars(with = "Option<String>")]
    cpu: Option<Duration>,
    /// Bytes that a component may return in one call.
    output_bytes: Option<usize>,
    /// Calls of host functions in one call; providers only.
    host_calls: Option<u32>,
    /// HTTP requests that one call may send; providers only.
    requests: Option<u32>,
    /// Calls at the same time. Further calls wait.
    instances: Option<usize>,
    /// Calls at the same time for one organization.
    instances_of_organization: Option<usize>,
    /// Bytes of memory and fetched documents that all calls of one organization's components
    /// hold together; providers only.
    memory_of_organization_bytes: Option<usize>,
}

fn some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = text.parse::<jiff::SignedDuration>().ok();
    match parsed.and_then(|duration| duration.try_into().ok()) {
        Some(duration) => Ok(Some(duration)),
        None => Err(serde::de::Error::custom(format!(
            "{text:?} is no duration, for example 200ms or 60s"
        ))),
    }
}

/// Limits of all slots.
#[derive(Clone, Debug)]
pub struct AllLimits(BTreeMap<Slot, CallLimits>);

impl Default for AllLimits {
    fn default() -> Self {
        Self(
            Slot::ALL
                .into_iter()
                .map(|slot| (slot, defaults(slot)))
                .collect(),
        )
    }
}

/// Returns the default limits. A call of rules uses about 20,000 units of fuel, a file of 500
/// pages about 5e9.
fn defaults(slot: Slot) -> CallLimits {
    let rules = CallLimits {
        slot,
        memory: 12 * MIB,
        fuel: 10_000_000,
        deadline: Duration::from_secs(2),
        cpu: Duration::from_millis(200),
        output: 4 * MIB,
        // Rules import nothing, so there is no host call to count.
        host_calls: 0,
        requests: 0,
        instances: 96,
        instances_of_organization: 32,
        memory_of_organization: 0,
    };

    match slot {
        Slot::Compliance | Slot::Funding => rules,
        // These rules run inside a write transaction, for which other writers wait.
        Slot::Lifecycle | Slot::Control => CallLimits {
            fuel: 1_000_000,
            cpu: Duration::from_millis(20),
            ..rules
        },
        Slot::Placement | Slot::Documents => CallLimits {
            memory: 512 * MIB,
            fuel: 20_000_000_000,
            deadline: Duration::from_secs(20),
            cpu: Duration::from_secs(20),
            output: 256 * MIB,
            // Two calls can use a gigabyte of memory together.
            instances: 2,
            instances_of_organization: 1,
            ..rules
        },
        Slot::Signing | Slot::Payment | Slot::Kba | Slot::Messaging | Slot::Conversion => {
            CallLimits {
                slot,
                memory: 96 * MIB,
                // Providers wait for a network, so processor time limits them and not fuel.
                fuel: 0,
                deadline: Duration::from_secs(60),
                cpu: Duration::from_millis(200),
                output: 128 * MIB,
                host_calls: 2_000,
                requests: 16,
                instances: 240,
                instances_of_organization: 48,
                memory_of_organization: 256 * MIB,
            }
        }
    }
}

/// Returns the maximum limits, for which the engines are configured.
fn most(slot: Slot) -> CallLimits {
    let most = defaults(slot);
    // Rules and providers run in pools of a fixed size, which a setting must not exceed.
    match slot {
        Slot::Compliance | Slot::Lifecycle | Slot::Control | Slot::Funding => CallLimits {
            memory: 16 * MIB,
            instances: 120,
            ..most
        },
        Slot::Placement | Slot::Documents => CallLimits {
            memory: 4096 * MIB,
            instances: 64,
            ..most
        },
        Slot::Signing | Slot::Payment | Slot::Kba | Slot::Messaging | Slot::Conversion => {
            CallLimits {
                memory: 128 * MIB,
                instances: 250,
                ..most
            }
        }
    }
}

impl CallLimits {
    /// Returns a limit by the name of its setting, for messages about a call that reached it.
    pub fn named(&self, setting: &str, most: impl fmt::Display) -> String {
        let slot = self.slot;
        format!("the limit `components.limits.\"{slot}\".{setting}` is {most}")
    }

    /// Describes a call that used up its processor time.
    pub fn out_of_processor_time(&self, used: Duration) -> TooMuchTime {
        let limit = self.named("cpu", Millis(self.cpu));
        TooMuchTime(format!(
            "took {} of processor time on this machine; {limit}",
            Millis(used)
        ))
    }

    /// Describes a call that did not end before its deadline.
    pub fn past_deadline(&self, took: Duration) -> TooMuchTime {
        let limit = self.named("deadline", Millis(self.deadline));
        TooMuchTime(format!(
            "took {} on this machine, with the time that it waited; {limit}",
            Millis(took)
        ))
    }
}

/// Error: a call has used up its time. Names the limit.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TooMuchTime(String);

/// Duration in milliseconds, for messages.
pub struct Millis(pub Duration);

impl fmt::Display for Millis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ms", self.0.as_millis())
    }
}

impl AllLimits {
    /// Applies settings to the defaults.
    ///
    /// # Errors
    /// A message with the unknown slot, or the setting out of range.
    pub fn new(settings: &BTreeMap<String, LimitSettings>) -> Result<Self, String> {
        let mut all = Self::default();
        for (name, changed) in settings {
            let slot = Slot::parse(name).ok_or_else(|| {
                let known = Slot::ALL.map(Slot::as_str).join(", ");
                format!("{name} is no slot; known are {known}")
            })?;
            let Some(limits) = all.0.get_mut(&slot) else {
                continue;
            };
            if !(slot.is_provider() || matches!(slot, Slot::Placement | Slot::Documents))
                && (changed.instances.is_some() || changed.instances_of_organization.is_some())
            {
                return Err(format!(
                    "{slot} has no limit of instances: its calls take microseconds, one on each thread"
                ));
            }

            changed.apply(limits);
            let shared = matches!(slot, Slot::Placement | Slot::Documents);
            // One organization must not take all places, or others would wait behind its documents.
            if shared && changed.instances_of_organization.is_none() {
                limits.instances_of_organization = limits.instances.div_ceil(2);
            }

            let most = most(slot);
            for (what, is, most) in [
                ("memory_bytes", limits.memory, most.memory),
                ("instances", limits.instances, most.instances),
                (
                    "memory_of_organization_bytes",
                    // Rules have no such share, and their default 0 must pass.
                    limits.memory_of_organization.max(1),
                    4096 * MIB,
                ),
            ] {
                if !(1..=most).contains(&is) {
                    return Err(format!("{what} of {slot} must be 1 to {most}"));
                }
            }

            let of_organization = &mut limits.instances_of_organization;
            *of_organization = (*of_organization).clamp(1, limits.instances);
        }

        Ok(all)
    }

    /// Returns the limits of one slot.
    pub fn of(&self, slot: Slot) -> CallLimits {
        self.0.get(&slot).cloned().unwrap_or_else(|| defaults(slot))
    }
}

impl LimitSettings {
    fn apply(&self, limits: &mut CallLimits) {
        fn set<T: Clone>(limit: &mut T, to: &Option<T>) {
            if let Some(to) = to {
                *limit = to.clone();
            }
        }

        set(&mut limits.memory, &self.memory_bytes);
        set(&mut limits.fuel, &self.fuel);
        set(&mut limits.deadline, &self.deadline);
        set(&mut limits.cpu, &self.cpu);
        set(&mut limits.output, &self.output_bytes);
        set(&mut limits.host_calls, &self.host_calls);
        set(&mut limits.requests, &self.requests);

        set(&mut limits.instances, &self.instances);
        set(
            &mut limits.instances_of_organization,
            &self.instances_of_organization,
        );

        set(
            &mut limits.memory_of_organization,
            &self.memory_of_organization_bytes,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AllLimits, String> {
        let settings = toml::from_str(text).map_err(|error| error.to_string())?;
        AllLimits::new(&settings)
    }

    #[test]
    fn a_limit_is_changed_for_one_slot() {
        let all = read("[\"provider.signing\"]\ndeadline = \"5s\"\nhost_calls = 10").unwrap();
        let signing = all.of(Slot::Signing);
        assert_eq!(signing.deadline, Duration::from_secs(5));
        assert_eq!(signing.host_calls, 10);
        assert_eq!(signing.memory, defaults(Slot::Signing).memory);
        assert_eq!(all.of(Slot::Compliance), defaults(Slot::Compliance));
    }

    /// A message has the setting that an operator can change, with the value that was in force.
    #[test]
    fn a_call_that_took_too_long_names_its_limit() {
        let all = read("[\"provider.payment\"]\ncpu = \"300ms\"").unwrap();
        let limits = all.of(Slot::Payment);
        assert_eq!(
            limits
                .out_of_processor_time(Duration::from_millis(312))
                .to_string(),
            "took 312 ms of processor time on this machine; the limit \
             `components.limits.\"provider.payment\".cpu` is 300 ms"
        );
        assert_eq!(
            limits.past_deadline(Duration::from_secs(60)).to_string(),
            "took 60000 ms on this machine, with the time that it waited; the limit \
             `components.limits.\"provider.payment\".deadline` is 60000 ms"
        );
    }

    #[test]
    fn invalid_component_limits_are_named() {
        for (text, named) in [
            ("[\"rules.unknown\"]", "is no slot"),
            (
                "[\"rules.compliance\"]\nmemory_bytes = 17000000",
                "memory_bytes",
            ),
            (
                "[\"rules.compliance\"]\ninstances = 9",
                "no limit of instances",
            ),
            ("[\"provider.signing\"]\ninstances = 0", "instances"),
            ("[\"rules.compliance\"]\nmemory = 1", "unknown field"),
            (
                "[\"provider.signing\"]\nmemory_of_organization_bytes = 99999999999",
                "memory_of_organization_bytes",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
