//! What a Rust component needs to be small and fast inside holdfast.
//!
//! The host makes a fresh instance for every call. What an instance costs is
//! decided here, in the guest: an allocator that never asks the operating
//! system for anything, a small stack, and little initial memory, which the
//! host keeps resident and resets after each call. The link arguments are set
//! by the build (`host/default-components/build.rs` has the sizes), the
//! allocator by the feature `bump-allocator`.

#[cfg(all(target_arch = "wasm32", feature = "bump-allocator"))]
mod bump;
