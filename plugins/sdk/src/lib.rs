//! Support for small and fast Rust components in holdfast.
//!
//! The host makes a fresh instance for every call. The guest determines the cost of an instance:
//! this crate provides an allocator that never calls the operating system, a small stack, and
//! little initial memory, which the host keeps resident and resets after each call. The build sets
//! the link arguments (`host/default-components/build.rs` has the sizes); the feature
//! `bump-allocator` selects the allocator.

#[cfg(all(target_arch = "wasm32", feature = "bump-allocator"))]
mod bump;
pub mod form;

/// Defines `retry_after` and `unreachable` over a plugin's own bindings: `Response` and `HttpError`
/// of `holdfast:host/http`, and the `ProviderError` of its world.
#[macro_export]
macro_rules! http_failures {
    () => {
        /// Returns the seconds that a response asks to wait (RFC 9110, section 10.2.3); dates are
        /// ignored.
        fn retry_after(response: &Response) -> Option<u32> {
            let (_, seconds) = response
                .headers
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
            seconds.parse().ok()
        }

        /// Maps a request without a response to the world's error.
        fn unreachable(error: HttpError) -> ProviderError {
            match error {
                HttpError::Denied(why) => ProviderError::NotConfigured(why),
                HttpError::Timeout => ProviderError::Unreachable("timed out".into()),
                HttpError::Unreachable(why)
                | HttpError::OverLimit(why)
                | HttpError::InvalidRequest(why)
                | HttpError::Other(why) => ProviderError::Unreachable(why),
            }
        }
    };
}
