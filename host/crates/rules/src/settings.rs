//! What components are compiled with, per engine.
//!
//! The build script includes this file too: it compiles the default components
//! ahead of time, and code is only taken up by an engine of the same settings.

use wasmtime::{Config, InstanceAllocationStrategy, PoolingAllocationConfig};

pub const MIB: usize = 1024 * 1024;

/// What every component is compiled with. Anything that is not needed is off.
fn common() -> Config {
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

/// Small rules: pooled, 16 MiB, fuel, called all the time.
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
        .cranelift_nan_canonicalization(true)
        .memory_reservation(16 * MIB as u64)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Work on whole documents: memory as needed, fuel.
pub fn documents() -> Config {
    let mut config = common();
    config
        .consume_fuel(true)
        .concurrency_support(false)
        .cranelift_nan_canonicalization(true)
        .allocation_strategy(InstanceAllocationStrategy::OnDemand);
    config
}

/// Providers, which wait for a network: asynchronous, pooled, 128 MiB. There is room for
/// the largest component in every call, so that calls are the only thing that can be
/// short; places that are not used cost addresses and no memory.
pub fn providers() -> Config {
    providers_for(256)
}

/// The same for so many calls; what is compiled does not differ.
pub fn providers_for(calls: u32) -> Config {
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
