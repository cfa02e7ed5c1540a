//! Choice of the TLS library.

/// Installs the TLS provider. Several TLS users share the process, and the first installation wins.
pub(crate) fn use_one() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
