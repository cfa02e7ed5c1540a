//! Which TLS library this process uses.

/// Several TLS users share the process; the first call decides for all.
pub(crate) fn use_one() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
