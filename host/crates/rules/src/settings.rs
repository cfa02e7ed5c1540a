//! Compiler settings of the engines.
//!
//! The build script includes this file too: it compiles the default components
//! ahead of time, and an engine accepts only code that was compiled with its own settings.

use wasmtime::{Config, InstanceAllocationStrategy, PoolingAllocationConfig};

pub const MIB: usize = 1024 * 1024;

/// Settings of all engines. WebAssembly features that are not needed are disabled.
fn common() -> Config {
    let mut config = Config::new();
    // Each feature is more code of the engine that untrusted bytes can reach.
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

/// Settings for small rules, which are called often: pooled memories of 16 MiB, fuel.
pub fn rules() -> Config {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(128)
        .total_core_instances(512)
        .total_memories(128)
        .total_tables(512)
        .max_memories_per_component(4)
        .max_tables_per_component(64)
        .max_core_instances_per_component(200)
        .max_memory_size(16 * MIB)
        .linear_memory_keep_resident(256 * 1024)
        .table_keep_resident(16 * 1024)
        .max_unused_warm_slots(16);

    let mut config = common();
    config
        .consume_fuel(true)
        .concurrency_support(false)
        // Processors differ in the bits of a NaN, and a decision has to repeat on every machine.
        .cranelift_nan_canonicalization(true)
        .memory_reservation(16 * MIB as u64)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));

    config
}

/// Settings for work on whole documents: memory on demand, fuel.
pub fn documents() -> Config {
    let mut config = common();
    config
        .consume_fuel(true)
        .concurrency_support(false)
        .cranelift_nan_canonicalization(true)
        .allocation_strategy(InstanceAllocationStrategy::OnDemand);
    config
}

/// Settings for providers, which wait for a network: asynchronous, pooled memories of 128 MiB.
/// The pool has room for the largest component in every call, so only the number of calls is
/// limited; unused pool slots take address space but no memory.
pub fn providers() -> Config {
    providers_for(256)
}

/// Settings for providers with another number of concurrent calls, which does not affect the
/// compiled code.
pub fn providers_for(calls: u32) -> Config {
    // The pool has room for the limits of each call, so a call meets its own limit first.
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(calls)
        .total_core_instances(calls * 200)
        .total_memories(calls * 4)
        .total_tables(calls * 64)
        .total_stacks(calls)
        .max_memories_per_component(4)
        .max_tables_per_component(64)
        .max_core_instances_per_component(200)
        .max_memory_size(128 * MIB)
        .linear_memory_keep_resident(256 * 1024)
        .table_keep_resident(16 * 1024)
        .async_stack_keep_resident(64 * 1024)
        .max_unused_warm_slots(16);

    let mut config = common();
    config
        .memory_reservation(128 * MIB as u64)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));

    config
}
