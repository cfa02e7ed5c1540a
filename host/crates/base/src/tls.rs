//! TLS of this program as a client.

use std::sync::{Arc, LazyLock};

use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls_platform_verifier::Verifier;

/// Installs the TLS provider. Several TLS users share the process, and the first installation wins.
pub fn use_one() {
    let _ = default_provider().install_default();
}

/// Verifies servers by the certificate authorities of the system. Most systems have them in hundreds of files, so they
/// are read once.
static SYSTEM: LazyLock<Result<Arc<Verifier>, rustls::Error>> =
    LazyLock::new(|| Verifier::new(Arc::new(default_provider())).map(Arc::new));

/// Returns the settings of clients that trust the authorities of the system.
pub fn system_roots() -> Result<ClientConfig, rustls::Error> {
    with_verifier(SYSTEM.clone()?)
}

/// Returns the settings of clients with a verifier of their own.
pub fn with_verifier(verifier: Arc<Verifier>) -> Result<ClientConfig, rustls::Error> {
    let client = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let client = client.with_safe_default_protocol_versions()?;
    // The method is marked dangerous, because any verifier can be set. This one checks chain, name and time.
    let client = client
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    Ok(client.with_no_client_auth())
}

/// Lets an HTTP client trust the authorities of the system, with HTTP/2 where the server speaks it.
pub fn with_system_roots(client: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    match system_roots() {
        Ok(mut tls) => {
            tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            client.tls_backend_preconfigured(tls)
        }
        // The client reads them itself, and returns the error.
        Err(_) => client,
    }
}
