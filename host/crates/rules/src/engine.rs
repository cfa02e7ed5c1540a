//! The engines, and a store for one call.
//!
//! There are three engines because three kinds of work need different memory: small
//! rules that are called often (pooled 16 MiB slots, fuel, no imports),
//! document work on untrusted files (up to 512 MiB, fuel), and providers
//! that wait for a network (asynchronous, epoch slices).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use wasmtime::{Engine, ResourceLimiter, Store, UpdateDeadline};

use super::gate::{MemoryReservation, TimeSlice};
use super::settings;
use crate::limits::{AllLimits, CallLimits};
use crate::metrics::ComponentMetrics;
use holdfast_domain::component::Slot;

/// Period of the epoch counter.
const EPOCH_TICK: Duration = Duration::from_millis(5);
/// Maximum number of elements of all tables of a call.
const TABLE_ELEMENTS: usize = 100_000;
/// Maximum number of core instances of a component. Languages with a runtime need several
/// modules, and each imported interface adds one.
const CORE_INSTANCES: usize = 200;
const MEMORIES: usize = 4;
const TABLES: usize = 64;

/// The three engines and the thread that counts their epochs.
#[derive(Clone)]
pub struct EngineSet {
    /// Small rules.
    pub rules: Engine,
    /// Document work.
    pub documents: Engine,
    /// Provider plugins.
    pub providers: Engine,
    /// Metrics by component.
    pub metrics: ComponentMetrics,
    /// Resource limits of a call.
    pub limits: AllLimits,
    _ticker: Arc<EpochTicker>,
}

impl EngineSet {
    /// Builds the engines and starts counting epochs.
    pub fn new(limits: AllLimits) -> wasmtime::Result<Self> {
        let rules = Engine::new(&settings::rules())?;
        let documents = Engine::new(&settings::documents())?;
        let providers = Engine::new(&settings::providers())?;
        let ticker = EpochTicker::start([rules.clone(), documents.clone(), providers.clone()]);
        Ok(Self {
            rules,
            documents,
            providers,
            metrics: ComponentMetrics::default(),
            limits,
            _ticker: Arc::new(ticker),
        })
    }

    /// Returns the engine for components of a slot.
    pub fn of(&self, slot: Slot) -> &Engine {
        match slot {
            Slot::Compliance | Slot::Lifecycle | Slot::Control | Slot::Funding => &self.rules,
            Slot::Placement | Slot::Documents => &self.documents,
            Slot::Signing | Slot::Payment | Slot::Kba | Slot::Messaging | Slot::Conversion => {
                &self.providers
            }
        }
    }
}

/// Data of a store, with its resource limiter.
pub struct LimitedEngine<T> {
    pub limits: CpuMeter,
    pub data: T,
}

#[cfg(feature = "wasi")]
impl<T: wasmtime_wasi::WasiView> wasmtime_wasi::WasiView for LimitedEngine<T> {
    fn ctx(&mut self) -> wasmtime_wasi::WasiCtxView<'_> {
        self.data.ctx()
    }
}

#[cfg(feature = "wasi")]
impl<T: wasmtime_wasi_http::WasiHttpView> wasmtime_wasi_http::WasiHttpView for LimitedEngine<T> {
    fn http(&mut self) -> wasmtime_wasi_http::WasiHttpCtxView<'_> {
        self.data.http()
    }
}

/// Resource limiter of a store, with the present use.
pub struct CpuMeter {
    most_memory: usize,
    /// Reservation in the memory share of the organization that owns the component.
    reservation: Option<MemoryReservation>,
    /// Bytes of all linear memories together. WebAssembly memory never shrinks.
    pub memory: usize,
    table_elements: usize,
}

impl CpuMeter {
    fn new(memory: usize, reservation: Option<MemoryReservation>) -> Self {
        Self {
            reservation,
            most_memory: memory,
            memory: 0,
            table_elements: 0,
        }
    }
}

/// Limits apply to a call as a whole, because a component can have several memories and tables.
impl ResourceLimiter for CpuMeter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // A component can have several memories, and the limit is for all of them together.
        let all = self.memory + desired.saturating_sub(current);
        // With `Ok(false)` the component would see a failed allocation and could go on.
        if all > self.most_memory {
            return Err(TooMuchMemory::Bytes(all).into());
        }

        if let Some(reservation) = &mut self.reservation {
            reservation.cover(all)?;
        }

        self.memory = all;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let all = self.table_elements + desired.saturating_sub(current);
        if all > TABLE_ELEMENTS {
            return Err(TooMuchMemory::TableElements(all).into());
        }
        self.table_elements = all;
        Ok(true)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error)
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}

/// Error: a call has reached its memory limit.
#[derive(Debug, thiserror::Error)]
pub enum TooMuchMemory {
    /// All linear memories together.
    #[error("{0} bytes in all")]
    Bytes(usize),
    /// All tables together.
    #[error("{0} elements of all tables, of {TABLE_ELEMENTS}")]
    TableElements(usize),
}

/// Creates a store for one call of a rules or documents component on the present thread. Besides
/// fuel, the processor time of the thread is limited: fuel does not count the bytes that a
/// component makes the host copy or fill. It counts from the first epoch on, because most calls end
/// before that, and reading it is a system call.
pub fn fueled_store(
    engine: &Engine,
    limits: &CallLimits,
) -> wasmtime::Result<Store<LimitedEngine<()>>> {
    let meter = CpuMeter::new(limits.memory, None);
    let mut store = Store::new(
        engine,
        LimitedEngine {
            limits: meter,
            data: (),
        },
    );

    let (began, mut worked) = (Instant::now(), None);
    let most = limits.clone();
    store.limiter(|limited| &mut limited.limits);
    // Fuel covers the work of the component. Its answer takes memory of the host, which needs another limit.
    store.set_hostcall_fuel(limits.output);
    store.set_fuel(limits.fuel)?;
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        let now = thread_time();
        let used = now.saturating_sub(*worked.get_or_insert(now));
        if used > most.cpu {
            return Err(most.out_of_processor_time(used).into());
        }

        // Wall time is limited as well, because the caller may hold a transaction meanwhile.
        let took = began.elapsed();
        if took > most.deadline {
            return Err(most.past_deadline(took).into());
        }

        Ok(UpdateDeadline::Continue(1))
    });

    Ok(store)
}

/// Creates a store for one call of a provider, and the watch that must run the call.
///
/// A trapping deadline would also count the time in which the guest waits for the network. The
/// watch counts only processor time of the thread that runs the guest, including work of the host
/// for it ([`CallWatch::run`]), but neither page faults on its code nor waiting for a
/// processor. The limit is checked at the end of each epoch; then the call yields to
/// other tasks. The caller enforces the wall-clock deadline.
pub fn provider_store<T: Send + 'static>(
    engine: &Engine,
    limits: &CallLimits,
    reservation: Option<MemoryReservation>,
    slice: Option<Arc<TimeSlice>>,
    data: T,
) -> (Store<LimitedEngine<T>>, CallWatch) {
    let meter = CpuMeter::new(limits.memory, reservation);
    let mut store = Store::new(
        engine,
        LimitedEngine {
            limits: meter,
            data,
        },
    );
    store.limiter(|limited| &mut limited.limits);

    store.set_hostcall_fuel(limits.output);
    store.set_epoch_deadline(1);
    let watch = CallWatch::new(slice);
    let (watching, most) = (watch.clone(), limits.clone());
    store.epoch_deadline_callback(move |_| {
        let used = watching.shows();
        if used > most.cpu {
            return Err(most.out_of_processor_time(used).into());
        }

        let watch = watching.clone();
        let turn = async move {
            // Moves the task to the back of the queue, which wasmtime's own yield does not.
            tokio::task::yield_now().await;
            // An organization that has used up its time waits here, while others run.
            if let Some(slice) = &watch.slice {
                slice.open(EPOCH_TICK).await;
                watch.held().reserved = EPOCH_TICK;
            }
        };

        Ok(UpdateDeadline::YieldCustom(1, Box::pin(turn)))
    });

    (store, watch)
}

/// Stopwatch for the processor time of a call.
#[derive(Clone)]
pub struct CallWatch {
    held: Arc<Mutex<HeldMemory>>,
    /// Time slice of the organization that owns the component.
    slice: Option<Arc<TimeSlice>>,
}

#[derive(Default)]
struct HeldMemory {
    /// Processor time of finished polls.
    before: Duration,
    /// Processor time of the thread at the start of the present poll.
    since: Option<Duration>,
    /// Part of the time slice that was spent in advance for the present poll.
    reserved: Duration,
}

/// Returns the processor time of the present thread.
pub fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

impl CallWatch {
    /// Creates a stopwatch that shows 0.
    pub fn new(slice: Option<Arc<TimeSlice>>) -> Self {
        Self {
            held: Arc::default(),
            slice,
        }
    }

    fn held(&self) -> MutexGuard<'_, HeldMemory> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the processor time so far.
    pub fn shows(&self) -> Duration {
        let held = self.held();
        let now = |since: Duration| thread_time().saturating_sub(since);
        held.before + held.since.map_or(Duration::ZERO, now)
    }

    /// Runs a call and measures its processor time.
    pub async fn run<F: Future>(&self, call: F) -> F::Output {
        let mut call = pin!(call);
        // Measures each poll: between two polls the task can move to another thread.
        poll_fn(|context| {
            self.held().since = Some(thread_time());
            let polled = call.as_mut().poll(context);
            let mut held = self.held();
            if let Some(since) = held.since.take() {
                let worked = thread_time().saturating_sub(since);
                held.before += worked;
                let reserved = std::mem::take(&mut held.reserved);
                if let Some(slice) = &self.slice {
                    slice.spend(worked.saturating_sub(reserved), Instant::now());
                }
            }

            polled
        })
        .await
    }
}

/// Thread that increments the epochs until this is dropped.
struct EpochTicker {
    stopped: Arc<AtomicBool>,
}

impl EpochTicker {
    fn start(engines: [Engine; 3]) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = stopped.clone();
        // A thread of its own: a task would tick late when all async threads are busy, and no call would end.
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

impl Drop for EpochTicker {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::{Instance, Module};

    use super::*;

    #[test]
    fn the_memory_limit_covers_all_memories_of_an_instance() {
        let mut meter = CpuMeter::new(10 << 20, None);
        assert!(meter.memory_growing(0, 6 << 20, None).unwrap());
        assert!(meter.memory_growing(0, 3 << 20, None).unwrap());
        assert!(meter.memory_growing(3 << 20, 5 << 20, None).is_err());
        assert_eq!(meter.memory, 9 << 20);
        assert!(meter.table_growing(0, TABLE_ELEMENTS, None).unwrap());
        assert!(meter.table_growing(0, 1, None).is_err());
        assert_eq!(
            (meter.instances(), meter.memories()),
            (CORE_INSTANCES, MEMORIES)
        );
    }

    /// The maximum number of concurrent calls cannot exhaust the tables, memories and core
    /// instances of the pool, however large the components are.
    #[test]
    fn a_component_cannot_exhaust_resources_of_other_calls() {
        let limits = AllLimits::default().of(Slot::Signing);
        let engine = Engine::new(&settings::providers()).unwrap();

        // A module with one table: `funcref`, 0 to 0 elements.
        let module = Module::new(&engine, b"\0asm\x01\0\0\0\x04\x05\x01\x70\x01\0\0").unwrap();
        let mut stores = Vec::new();
        for call in 0..limits.instances {
            let mut store = Store::new(&engine, ());
            for _ in 0..TABLES {
                if let Err(error) = Instance::new(&mut store, &module, &[]) {
                    panic!("call {call}: {error:#}");
                }
            }

            stores.push(store);
        }
    }

    /// Waiting is not counted. Processor time is counted, in the guest and in the host.
    #[tokio::test]
    async fn the_time_limit_counts_processor_time() {
        let watch = CallWatch::new(None);
        watch
            .run(async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                let began = Instant::now();
                while began.elapsed() < Duration::from_millis(20) {}
                tokio::time::sleep(Duration::from_millis(100)).await;
            })
            .await;

        let shows = watch.shows();
        assert!(shows > Duration::ZERO, "{shows:?}");
        assert!(shows < Duration::from_millis(120), "{shows:?}");
    }
}
