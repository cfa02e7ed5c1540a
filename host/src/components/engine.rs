//! The engines, and a store for one call.
//!
//! Three engines, because three kinds of work want different memory: small
//! rules that are called all the time (pooled 16 MiB slots, fuel, no imports),
//! document work that reads hostile files (up to 512 MiB, fuel), and providers
//! that wait for a network (asynchronous, epoch slices).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wasmtime::{
    CallHook, Engine, ResourceLimiter, Store, StoreLimits, StoreLimitsBuilder, UpdateDeadline,
};

use super::limits::{AllLimits, Limits};
use super::settings;
use crate::domain::component::Slot;
use crate::metrics::ComponentMetrics;

/// Period of the epoch counter.
const EPOCH_TICK: Duration = Duration::from_millis(10);
/// Elements of all tables of an instance.
const TABLE_ELEMENTS: usize = 20_000;

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
    /// What a call may use.
    pub(super) limits: AllLimits,
    _ticker: Arc<Ticker>,
}

impl Engines {
    /// Builds the engines and starts counting epochs.
    pub fn new(limits: AllLimits) -> wasmtime::Result<Self> {
        let rules = Engine::new(&settings::rules())?;
        let documents = Engine::new(&settings::documents())?;
        let providers = Engine::new(&settings::providers())?;
        let ticker = Ticker::start([rules.clone(), documents.clone(), providers.clone()]);
        Ok(Self {
            rules,
            documents,
            providers,
            metrics: ComponentMetrics::default(),
            limits,
            _ticker: Arc::new(ticker),
        })
    }

    /// The one that components of a slot run in.
    pub fn of(&self, slot: Slot) -> &Engine {
        match slot {
            Slot::Compliance | Slot::Lifecycle => &self.rules,
            Slot::Placement | Slot::Documents => &self.documents,
            Slot::Signing => &self.providers,
        }
    }
}

/// A store's data, with the limits wasmtime asks it about.
pub(super) struct Limited<T> {
    pub limits: Meter,
    pub data: T,
}

/// What a store may have, and what it had.
pub(super) struct Meter {
    limits: StoreLimits,
    /// Bytes of the largest linear memory so far.
    pub memory: usize,
    /// How long the component itself has run, and since when it does.
    ran: Duration,
    since: Instant,
}

impl Meter {
    fn new(memory: usize) -> Self {
        Self {
            limits: StoreLimitsBuilder::new()
                .memory_size(memory)
                .table_elements(TABLE_ELEMENTS)
                .trap_on_grow_failure(true)
                .build(),
            memory: 0,
            ran: Duration::ZERO,
            since: Instant::now(),
        }
    }
}

impl ResourceLimiter for Meter {
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
    limits: &Limits,
) -> wasmtime::Result<Store<Limited<()>>> {
    let meter = Meter::new(limits.memory);
    let mut store = Store::new(
        engine,
        Limited {
            limits: meter,
            data: (),
        },
    );
    store.limiter(|limited| &mut limited.limits);
    store.set_hostcall_fuel(limits.output);
    store.set_fuel(limits.fuel)?;
    store.set_epoch_deadline(ticks(limits.deadline));
    Ok(store)
}

/// A store for one call of a provider.
///
/// A trapping deadline would count the time a guest waits in a host call, so the
/// time between two of them is what counts, looked at whenever an epoch ends. Then
/// everybody else's work goes on; the wall clock is watched outside.
pub(super) fn provider_store<T: Send + 'static>(
    engine: &Engine,
    limits: &Limits,
    data: T,
) -> Store<Limited<T>> {
    let meter = Meter::new(limits.memory);
    let mut store = Store::new(
        engine,
        Limited {
            limits: meter,
            data,
        },
    );
    store.limiter(|limited| &mut limited.limits);
    store.set_hostcall_fuel(limits.output);
    store.set_epoch_deadline(1);
    store.call_hook(|mut context, hook| {
        let meter = &mut context.data_mut().limits;
        match hook {
            CallHook::CallingWasm | CallHook::ReturningFromHost => meter.since = Instant::now(),
            CallHook::CallingHost | CallHook::ReturningFromWasm => {
                meter.ran += meter.since.elapsed();
            }
        }
        Ok(())
    });
    let most = limits.cpu;
    // Called as the host is, so what has run until now is counted.
    store.epoch_deadline_callback(move |context| {
        Ok(if context.data().limits.ran > most {
            UpdateDeadline::Interrupt
        } else {
            // Behind the others, which wasmtime's own way of yielding is not.
            UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now()))
        })
    });
    store
}

fn ticks(duration: Duration) -> u64 {
    let ticks = duration.as_millis().div_ceil(EPOCH_TICK.as_millis());
    u64::try_from(ticks).unwrap_or(u64::MAX).max(1)
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
