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

/// Defines `retry_after` and `unreachable` over a plugin's own bindings: `Response` and `HttpError`
/// of `holdfast:host/http`, and the `ProviderError` of its world.
#[macro_export]
macro_rules! http_failures {
    () => {
        /// Seconds that an answer asks to wait (RFC 9110, section 10.2.3); dates are not read.
        fn retry_after(response: &Response) -> Option<u32> {
            let (_, seconds) = response
                .headers
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
            seconds.parse().ok()
        }

        /// A request that was never answered, as the world's error.
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
