//! Components that the service pulls from a registry for an organization.

use super::admission::UPLOAD_LIMIT;
use super::attestations::OfferedBundles;
use crate::{Core, ServiceError};
pub use holdfast_adapters::delivery::registry::Login;
use holdfast_adapters::delivery::registry::{Registry, RegistryError, RegistryReference};
use holdfast_adapters::files::{FilesError, SpoolWriter, SpooledFile};
use holdfast_components::inspection::AdmissionReason;

/// A pulled component on disk, with the bundles that refer to it.
pub struct PulledFile {
    pub file: SpooledFile,
    pub bundles: OfferedBundles,
    /// The reference, as in the ledger.
    pub from: String,
}

/// Pulls a component by `oci://host/name@sha256:…`. The login is used for this pull only, and that of the
/// operator never.
///
/// # Errors
/// [`ServiceError::NotAdmitted`] with the code `registry` if the registry does not serve it.
pub async fn pull(
    core: &Core,
    reference: &str,
    login: Option<Login>,
) -> Result<PulledFile, ServiceError> {
    let refused = |error: RegistryError| {
        ServiceError::NotAdmitted(vec![AdmissionReason::new("registry", error.to_string())])
    };
    let reference: RegistryReference = reference.parse().map_err(refused)?;
    let mut registry = Registry::new(&core.config, &reference, login).map_err(refused)?;
    // On disk, because the component may wait for its turn of the compiler.
    let spool = SpoolWriter::new(&core.config.spool_folder()).await;
    let mut spool = spool.map_err(FilesError::Spool)?;

    let (mut download, manifest) = registry.component(UPLOAD_LIMIT).await.map_err(refused)?;
    while let Some(piece) = download.piece().await.map_err(refused)? {
        spool.write(&piece).await.map_err(FilesError::Spool)?;
    }

    // Bundles that cannot be read are only noted: whether one is needed is decided with the slot.
    let attached = registry.attached().await;
    Ok(PulledFile {
        file: spool.finish().await.map_err(FilesError::Spool)?,
        bundles: OfferedBundles::attached(attached, manifest),
        from: reference.to_string(),
    })
}
