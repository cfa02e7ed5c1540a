//! Components from files and from OCI registries.

use std::io;
use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};
use serde_json::json;

use super::Failure;
use super::output::CommandOutput;
use holdfast_adapters::delivery::registry::{Login, Registry, RegistryError, RegistryReference};
use holdfast_base::config::Config;
use holdfast_base::disk;
use holdfast_base::tls;
use holdfast_domain::clock::Clock;
use holdfast_platform::components::UPLOAD_LIMIT;
use holdfast_platform::components::attestations::OfferedBundles;

/// Component with its origin.
pub struct FoundComponent {
    pub bytes: Bytes,
    /// Reference in a registry; none for a file.
    pub from: Option<String>,
    /// Bundles of Sigstore that refer to it in the registry.
    pub bundles: OfferedBundles,
}

/// Reads files with bundles of Sigstore.
pub fn bundles(files: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let mut all = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file);
        let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
        let bundles = OfferedBundles::split(&text);
        all.extend(bundles.map_err(|why| format!("{}: {why}", file.display()))?);
    }
    Ok(all)
}

/// Returns the path of a file in a folder or below, also where a link leads out of it.
pub fn below(folder: &Path, file: &str) -> io::Result<PathBuf> {
    let (folder, found) = (folder.canonicalize()?, folder.join(file).canonicalize()?);
    if found.starts_with(folder) {
        Ok(found)
    } else {
        Err(io::Error::other("it leads out of the folder of the state"))
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
        // An operator may name any file. A state comes from others and must not
        // reach files outside its folder.
        let file = if beside == Path::new("") {
            place.into()
        } else {
            below(beside, place)?
        };
        let bytes = disk::read(&file);
        let bytes = bytes.map_err(|error| format!("{place}: {error}"))?;

        return Ok(FoundComponent {
            bytes: bytes.into(),
            from: None,
            bundles: OfferedBundles::default(),
        });
    }

    tls::use_one();
    let reference: RegistryReference = place.parse()?;
    let login = if logins {
        Login::configured(config, &reference)?
    } else {
        None
    };
    let mut registry = Registry::new(config, &reference, login)?;
    // The pieces are no component until the last one was compared with the digest of the reference.
    let pulled = async {
        let (mut download, manifest) = registry.component(UPLOAD_LIMIT).await?;
        let mut bytes = BytesMut::new();
        while let Some(piece) = download.piece().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok::<_, RegistryError>((bytes.freeze(), manifest))
    };
    let pulled = pulled.await;
    let (bytes, manifest) = pulled.map_err(|error| format!("{reference}: {error}"))?;

    Ok(FoundComponent {
        bytes,
        from: Some(reference.to_string()),
        bundles: OfferedBundles::attached(registry.attached().await, manifest),
    })
}

/// `holdfast component pull`. Beside the file it writes the manifest and the bundles: with them the component can be
/// uploaded where there is no network.
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
    // The upload of an offline machine checks the same proofs, so they travel with the file.
    let beside = |extension: &str| {
        let mut path = file.as_os_str().to_owned();
        path.push(extension);
        PathBuf::from(path)
    };
    if let Some(manifest) = &found.bundles.manifest {
        std::fs::write(beside(".manifest.json"), manifest)?;
    }

    let bundles = &found.bundles.attached;

    // One bundle on each line. The file of an earlier pull does not stay.
    let lines: String = bundles
        .iter()
        .filter_map(|bundle| one_line(bundle))
        .collect();
    std::fs::write(beside(".sigstore.jsonl"), lines)?;
    let (size, count, problems) = (found.bytes.len(), bundles.len(), &found.bundles.problems);
    let mut text = format!(
        "{}: {size} bytes, {count} bundles of Sigstore",
        file.display()
    );
    for problem in problems {
        text += &format!("\nnot read: {problem}");
    }

    let view = json!({ "file": file, "bytes": size, "bundles": count, "problems": problems });
    output.one(&view, &text);
    Ok(())
}

/// Returns a bundle on a line of its own, if it is JSON.
fn one_line(bundle: &str) -> Option<String> {
    let bundle: serde_json::Value = serde_json::from_str(bundle).ok()?;
    Some(format!("{bundle}\n"))
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
    let pushed = Registry::new(config, &reference, Login::configured(config, &reference)?)?
        .push(disk::read(file)?.into(), &created)
        .await
        .map_err(|error| format!("{reference}: {error}"))?;
    let pushed = pushed.to_string();
    output.one(&json!({ "reference": pushed }), &pushed);

    Ok(())
}

/// `holdfast component attach`.
pub async fn attach(
    reference: &str,
    files: &[PathBuf],
    config: &Config,
    output: &CommandOutput,
) -> Result<(), Failure> {
    tls::use_one();
    // All files are read first: a mistyped name must not leave a part of the bundles attached.
    let bundles = bundles(files)?;
    let reference: RegistryReference = reference.parse()?;
    let login = Login::configured(config, &reference)?;
    let mut registry = Registry::new(config, &reference, login)?;
    let count = bundles.len();

    for bundle in bundles {
        let attached = registry.attach(bundle.into()).await;
        attached.map_err(|error| format!("{reference}: {error}"))?;
    }

    let text = format!("{reference}: {count} bundles attached");
    output.one(
        &json!({ "reference": reference.to_string(), "bundles": count }),
        &text,
    );

    Ok(())
}
