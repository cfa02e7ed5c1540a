//! The engines and every budget, in one place.
//!
//! Three engines, because three kinds of work want different memory: small
//! rules that are called all the time (pooled 16 MiB slots, fuel, no imports),
//! document work that reads hostile files (up to 512 MiB, fuel), and providers
//! that wait for a network (asynchronous, epoch slices).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use wasmtime::{Engine, ResourceLimiter, Store, StoreLimits, StoreLimitsBuilder, UpdateDeadline};

use super::settings::{self, MIB};
use crate::metrics::ComponentMetrics;

/// Period of the epoch counter.
const EPOCH_TICK: Duration = Duration::from_millis(10);

/// What one call may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Deterministic CPU budget; the compliance rules use about 20,000.
    pub fuel: u64,
    /// Backstop for work that fuel does not count, in epoch ticks.
    pub epoch_ticks: u64,
    pub memory_bytes: usize,
    pub table_elements: usize,
}

/// Rules: 10 million units of fuel, 200 ms, 12 MiB.
pub(super) const RULES: Budget = Budget {
    fuel: 10_000_000,
    epoch_ticks: 20,
    memory_bytes: 12 * MIB,
    table_elements: 20_000,
};

/// Document work: a 500-page file takes about 5e9 units; 512 MiB.
pub(super) const DOCUMENTS: Budget = Budget {
    fuel: 20_000_000_000,
    epoch_ticks: 2_000,
    memory_bytes: 512 * MIB,
    table_elements: 20_000,
};

/// Providers: CPU time in slices of one tick, yielding in between; the wall
/// clock is watched outside.
pub(super) const PROVIDER_SLICES: u64 = 20;
/// Memory of a provider's instance.
const PROVIDER_MEMORY_BYTES: usize = 96 * MIB;
/// Wall clock of one provider call, its requests included.
pub(super) const PROVIDER_DEADLINE: Duration = Duration::from_secs(60);

/// The three engines and the thread that counts their epochs.
#[derive(Clone)]
pub struct Engines {
    /// Small rules.
    pub rules: Engine,
    /// Document work.
    pub documents: Engine,
    /// Provider plugins.
    pub providers: Engine,
    /// What their components did.
    pub metrics: ComponentMetrics,
    _ticker: Arc<Ticker>,
}

impl Engines {
    /// Builds the engines and starts counting epochs.
    pub fn new() -> wasmtime::Result<Self> {
        let rules = Engine::new(&settings::rules())?;
        let documents = Engine::new(&settings::documents())?;
        let providers = Engine::new(&settings::providers())?;
        let ticker = Ticker::start([rules.clone(), documents.clone(), providers.clone()]);
        Ok(Self {
            rules,
            documents,
            providers,
            metrics: ComponentMetrics::default(),
            _ticker: Arc::new(ticker),
        })
    }
}

/// A store's data, with the limits wasmtime asks it about.
pub(super) struct Limited<T> {
    pub limits: Limits,
    pub data: T,
}

/// What a store may have, and what it had.
pub(super) struct Limits {
    limits: StoreLimits,
    /// Bytes of the largest linear memory so far.
    pub memory: usize,
}

impl Limits {
    fn new(memory_bytes: usize, table_elements: usize) -> Self {
        Self {
            limits: StoreLimitsBuilder::new()
                .memory_size(memory_bytes)
                .table_elements(table_elements)
                .trap_on_grow_failure(true)
                .build(),
            memory: 0,
        }
    }
}

impl ResourceLimiter for Limits {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let allowed = self.limits.memory_growing(current, desired, maximum)?;
        if allowed {
            self.memory = self.memory.max(desired);
        }
        Ok(allowed)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.limits.memory_grow_failed(error)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.limits.table_growing(current, desired, maximum)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.limits.table_grow_failed(error)
    }
}

/// A store for one call of a rules or documents component.
pub(super) fn fueled_store(
    engine: &Engine,
    budget: Budget,
) -> wasmtime::Result<Store<Limited<()>>> {
    let limits = Limits::new(budget.memory_bytes, budget.table_elements);
    let mut store = Store::new(engine, Limited { limits, data: () });
    store.limiter(|limited| &mut limited.limits);
    store.set_fuel(budget.fuel)?;
    store.set_epoch_deadline(budget.epoch_ticks);
    Ok(store)
}

/// A store for one call of a provider.
///
/// A trapping deadline would count the time a guest waits in a host call, so
/// slices of CPU time are counted in a callback instead.
pub(super) fn provider_store<T: Send + 'static>(engine: &Engine, data: T) -> Store<Limited<T>> {
    let limits = Limits::new(PROVIDER_MEMORY_BYTES, 20_000);
    let mut store = Store::new(engine, Limited { limits, data });
    store.limiter(|limited| &mut limited.limits);
    store.set_epoch_deadline(1);
    let mut slices = 0;
    store.epoch_deadline_callback(move |_| {
        slices += 1;
        Ok(if slices > PROVIDER_SLICES {
            UpdateDeadline::Interrupt
        } else {
            UpdateDeadline::Yield(1)
        })
    });
    store
}

/// Counts epochs until it is dropped.
struct Ticker {
    stopped: Arc<AtomicBool>,
}

impl Ticker {
    fn start(engines: [Engine; 3]) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = stopped.clone();
        thread::spawn(move || {
            while !flag.load(Ordering::Relaxed) {
                thread::sleep(EPOCH_TICK);
                for engine in &engines {
                    engine.increment_epoch();
                }
            }
        });
        Self { stopped }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}
