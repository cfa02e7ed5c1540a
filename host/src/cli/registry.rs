//! Components from files and from OCI registries.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::json;

use super::Failure;
use super::output::CommandOutput;
use crate::config::Config;
use crate::delivery::registry::{Registry, RegistryReference};
use crate::disk;
use crate::domain::clock::Clock;
use crate::service::components::UPLOAD_LIMIT;
use crate::tls;

/// Component with its origin.
pub struct FoundComponent {
    pub bytes: Bytes,
    /// Reference in a registry; none for a file.
    pub from: Option<String>,
}

/// Returns the path of a file in a folder or below, also where a link leads out of it.
pub fn below(folder: &Path, file: &str) -> io::Result<PathBuf> {
    let (folder, found) = (folder.canonicalize()?, folder.join(file).canonicalize()?);
    match found.starts_with(folder) {
        true => Ok(found),
        false => Err(io::Error::other("it leads out of the folder of the state")),
    }
}

/// Reads a component: a file below `beside`, or a reference `oci://host/name@sha256:…`, with the configured login of
/// its registry if `logins`.
pub async fn component(
    config: &Config,
    place: &str,
    beside: &Path,
    logins: bool,
) -> Result<FoundComponent, Failure> {
    if !RegistryReference::is_meant(place) {
        let file = match beside == Path::new("") {
            true => place.into(),
            false => below(beside, place)?,
        };
        let bytes = disk::read(&file);
        let bytes = bytes.map_err(|error| format!("{place}: {error}"))?;
        return Ok(FoundComponent {
            bytes: bytes.into(),
            from: None,
        });
    }
    tls::use_one();
    let reference: RegistryReference = place.parse()?;
    let bytes = Registry::new(config, &reference, logins)?
        .pull(UPLOAD_LIMIT)
        .await
        .map_err(|error| format!("{reference}: {error}"))?;
    Ok(FoundComponent {
        bytes,
        from: Some(reference.to_string()),
    })
}

/// `holdfast component pull`.
pub async fn pull(
    reference: &str,
    file: &Path,
    config: &Config,
    output: &CommandOutput,
) -> Result<(), Failure> {
    if !RegistryReference::is_meant(reference) {
        return Err(format!("{reference} is no reference: it begins with oci://").into());
    }
    let found = component(config, reference, Path::new(""), true).await?;
    std::fs::write(file, &found.bytes)?;
    let size = found.bytes.len();
    let text = format!("{}: {size} bytes", file.display());
    output.one(&json!({ "file": file, "bytes": size }), &text);
    Ok(())
}

/// `holdfast component push`.
pub async fn push(
    file: &Path,
    reference: &str,
    config: &Config,
    output: &CommandOutput,
) -> Result<(), Failure> {
    tls::use_one();
    let reference: RegistryReference = reference.parse()?;
    let created = Clock::default().now().to_string();
    let pushed = Registry::new(config, &reference, true)?
        .push(disk::read(file)?.into(), &created)
        .await
        .map_err(|error| format!("{reference}: {error}"))?;
    let pushed = pushed.to_string();
    output.one(&json!({ "reference": pushed }), &pushed);
    Ok(())
}
