//! The engines, their settings and every budget, in one place.
//!
//! Three engines, because three kinds of work want different memory: small
//! rules that are called all the time (pooled 16 MiB slots, fuel, no imports),
//! document work that reads hostile files (up to 512 MiB, fuel), and providers
//! that wait for a network (asynchronous, epoch slices).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store, StoreLimits,
    StoreLimitsBuilder, UpdateDeadline,
};

/// Period of the epoch counter.
const EPOCH_TICK: Duration = Duration::from_millis(10);

const MIB: usize = 1024 * 1024;

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
    _ticker: Arc<Ticker>,
}

impl Engines {
    /// Builds the engines and starts counting epochs.
    pub fn new() -> wasmtime::Result<Self> {
        let rules = Engine::new(&rules_config())?;
        let documents = Engine::new(&documents_config())?;
        let providers = Engine::new(&providers_config())?;
        let ticker = Ticker::start([rules.clone(), documents.clone(), providers.clone()]);
        Ok(Self {
            rules,
            documents,
            providers,
            _ticker: Arc::new(ticker),
        })
    }
}

/// What every component is compiled with. Anything that is not needed is off.
fn common_config() -> Config {
    let mut config = Config::new();
    config
        .wasm_tail_call(false)
        .wasm_relaxed_simd(false)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .wasm_component_model(true)
        .epoch_interruption(true)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(8))
        .generate_address_map(false);
    config
}

fn rules_config() -> Config {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(128)
        .total_core_instances(512)
        .total_memories(128)
        .total_tables(512)
        .max_memory_size(16 * MIB)
        .linear_memory_keep_resident(256 * 1024)
        .table_keep_resident(16 * 1024)
        .max_unused_warm_slots(16);
    let mut config = common_config();
    config
        .consume_fuel(true)
        .concurrency_support(false)
        .cranelift_nan_canonicalization(true)
        .memory_reservation(16 * MIB as u64)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

fn documents_config() -> Config {
    let mut config = common_config();
    config
        .consume_fuel(true)
        .concurrency_support(false)
        .cranelift_nan_canonicalization(true)
        .allocation_strategy(InstanceAllocationStrategy::OnDemand);
    config
}

fn providers_config() -> Config {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(64)
        .total_core_instances(2048)
        .total_memories(64)
        .total_tables(256)
        .total_stacks(64)
        .max_memory_size(128 * MIB)
        .linear_memory_keep_resident(256 * 1024)
        .table_keep_resident(16 * 1024)
        .async_stack_keep_resident(64 * 1024)
        .max_unused_warm_slots(16);
    let mut config = common_config();
    config
        .memory_reservation(128 * MIB as u64)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// A store's data, with the limits wasmtime asks it about.
pub(super) struct Limited<T> {
    limits: StoreLimits,
    pub data: T,
}

/// A store for one call of a rules or documents component.
pub(super) fn fueled_store(
    engine: &Engine,
    budget: Budget,
) -> wasmtime::Result<Store<Limited<()>>> {
    let limits = StoreLimitsBuilder::new()
        .memory_size(budget.memory_bytes)
        .table_elements(budget.table_elements)
        .trap_on_grow_failure(true)
        .build();
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
    let limits = StoreLimitsBuilder::new()
        .memory_size(PROVIDER_MEMORY_BYTES)
        .table_elements(20_000)
        .trap_on_grow_failure(true)
        .build();
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
