//! Signatures of publishers on uploaded components, and their statements: provenance and bills of materials.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::admission::ComponentUpload;
use super::{ComponentOwner, get};
use crate::{Core, ServiceError};
use holdfast_adapters::delivery::registry::{self, AttachedBundles};
use holdfast_base::config::{Config, UploadPolicy};
use holdfast_base::publishers::{self, BundleError, VerifiedBundle};
use holdfast_components::inspection::AdmissionReason;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::Slot;
use holdfast_domain::hash::sha256;
use holdfast_store::components;

/// Most bundles of a component.
const MOST: usize = 10;

/// Types of statements with which a publisher answers for a component: releases of cosign, and provenance (SLSA). A bill
/// of materials or the report of a scanner describes a component, but does not permit its use.
const RELEASES: [&str; 2] = [
    "https://sigstore.dev/cosign/sign/",
    "https://slsa.dev/provenance/",
];

/// Bundles of Sigstore about an upload.
#[derive(Clone, Default)]
pub struct OfferedBundles {
    /// Bundles that the uploader gave. All of them have to be valid.
    pub given: Vec<String>,
    /// Bundles that came with the component from a registry, where others can add some: those that prove nothing are
    /// left out.
    pub attached: Vec<String>,
    /// Manifest of the component in a registry, which bundles may be about instead of the file.
    pub manifest: Option<Bytes>,
    /// Why further bundles could not be read.
    pub problems: Vec<String>,
}

impl OfferedBundles {
    /// Returns the bundles that came with a component from a registry.
    pub fn attached(attached: AttachedBundles, manifest: Bytes) -> Self {
        Self {
            given: Vec::new(),
            attached: attached.bundles,
            manifest: Some(manifest),
            problems: attached.problems,
        }
    }

    /// Splits a text into bundles: one object, or JSON Lines.
    ///
    /// # Errors
    /// The text is no JSON, or has too many values.
    pub fn split(text: &str) -> Result<Vec<String>, String> {
        let bundles = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        // One more than allowed, to refuse a long text without reading all of it.
        let bundles: Result<Vec<Value>, _> = bundles.take(MOST + 1).collect();
        let bundles = bundles.map_err(|error| error.to_string())?;
        match bundles.len() {
            0..=MOST => Ok(bundles.iter().map(Value::to_string).collect()),
            _ => Err(format!("they are more than {MOST}")),
        }
    }
}

/// A bundle that is kept with a component.
#[derive(Clone, Serialize, Deserialize)]
pub struct KeptBundle {
    #[serde(flatten)]
    proven: VerifiedBundle,
    bundle: String,
    /// Manifest that the bundle is about; none if it is about the file.
    manifest: Option<String>,
}

/// Bundles that are kept with a component.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct KeptAttestations {
    bundles: Vec<KeptBundle>,
}

impl KeptAttestations {
    pub fn is_empty(&self) -> bool {
        self.bundles.is_empty()
    }

    /// Returns their description for the ledger.
    pub fn summary(&self) -> Value {
        let bundles = self.bundles.iter();
        bundles
            .map(|one| {
                let proven = &one.proven;
                json!({
                    "publisher": proven.publisher, "identity": proven.identity, "issuer": proven.issuer,
                    "predicate_type": proven.predicate_type, "sha256": sha256(one.bundle.as_bytes()),
                })
            })
            .collect()
    }
}

/// Valid signatures of an upload, before its slot is known.
pub struct VerifiedSignatures {
    /// Whether the component needs one.
    needed: bool,
    /// Names of the publishers that answer for it.
    publishers: Vec<String>,
    pub kept: KeptAttestations,
}

fn refused(message: impl Into<String>) -> ServiceError {
    ServiceError::NotAdmitted(vec![AdmissionReason::new("signature", message)])
}

/// Whether an owner's components have to be signed.
fn is_needed(config: &Config, owner: &ComponentOwner) -> bool {
    match owner.org {
        // Production asks organizations for signatures by default; the operator asks itself by naming
        // publishers.
        Some(_) => config.components.uploads(config.is_production()) == UploadPolicy::Signed,
        None => !config.components.trusted.is_empty(),
    }
}

/// Verifies the signature and the bundles of an upload.
pub async fn verified(
    core: &Core,
    owner: &ComponentOwner,
    upload: &ComponentUpload,
    bytes: &Bytes,
) -> Result<VerifiedSignatures, ServiceError> {
    let offered = OfferedSignatures {
        needed: is_needed(&core.config, owner),
        bytes: bytes.clone(),
        sha256: upload.file.sha256().to_owned(),
        signature: upload.signature.clone(),
        bundles: upload.bundles.clone(),
    };

    let core = core.clone();

    // Hashes of a large file take their time.
    let verified = tokio::task::spawn_blocking(move || offered.verified(&core));
    verified
        .await
        .map_err(|error| ServiceError::Internal(format!("signatures of a component: {error}")))?
}

/// Signatures of an upload that were not verified yet.
struct OfferedSignatures {
    needed: bool,
    bytes: Bytes,
    sha256: String,
    signature: Option<String>,
    bundles: OfferedBundles,
}

impl OfferedSignatures {
    fn verified(mut self, core: &Core) -> Result<VerifiedSignatures, ServiceError> {
        let mut found = VerifiedSignatures {
            needed: self.needed,
            publishers: self.keys(&core.config)?,
            kept: KeptAttestations::default(),
        };
        let mut reasons = std::mem::take(&mut self.bundles.problems);
        let given = std::mem::take(&mut self.bundles.given);

        let attached = std::mem::take(&mut self.bundles.attached);
        if given.len() > MOST {
            return Err(refused(format!("there are more than {MOST} bundles")));
        }
        // Otherwise a valid bundle about the manifest of another component would count for this one.
        if let Some(manifest) = &self.bundles.manifest
            && !registry::is_manifest_of(manifest, &self.sha256)
        {
            return Err(refused("the manifest is that of another component"));
        }

        let given = given.into_iter().map(|bundle| (bundle, false));
        let attached = attached.into_iter().map(|bundle| (bundle, true));
        for (at, (bundle, is_attached)) in given.chain(attached).enumerate() {
            let number = at + 1;
            match self.proven(core, &bundle) {
                Ok((kept, is_release)) => {
                    match (&kept.proven.publisher, is_release) {
                        // A bill of materials is signed, too, and does not allow the use of a component.
                        (Some(publisher), true) => found.publishers.push(publisher.clone()),
                        (Some(_), false) => {
                            reasons.push(format!("bundle {number} is no release"));
                        }
                        (None, _) => reasons.push(format!(
                            "bundle {number} is signed by {} of {}, whom this installation does not trust",
                            kept.proven.identity.as_deref().unwrap_or("nobody"),
                            kept.proven.issuer.as_deref().unwrap_or("nobody"),
                        )),
                    }

                    // What strangers attach in a registry is not kept where publishers are known.
                    let is_strange = is_attached && self.needed && kept.proven.publisher.is_none();
                    if !is_strange && found.kept.bundles.len() < MOST {
                        found.kept.bundles.push(kept);
                    }
                }
                // Others can attach bundles in a registry. An invalid one there must not keep the upload out.
                Err(error) if is_attached => reasons.push(format!("bundle {number}: {error}")),
                Err(error) => return Err(refused(format!("bundle {number}: {error}"))),
            }
        }

        // Valid bundles are kept even where none is needed: `attestations` shows them to everyone.
        if !self.needed || !found.publishers.is_empty() {
            return Ok(found);
        }
        if reasons.is_empty() {
            return Err(refused(
                "this installation admits signed components only: send `signature`, the Ed25519 signature of the \
                 file in base64, or `bundles` of Sigstore",
            ));
        }

        Err(refused(reasons.join("; ")))
    }

    /// Returns the publishers with the Ed25519 key of the signature.
    fn keys(&self, config: &Config) -> Result<Vec<String>, ServiceError> {
        let publishers = &config.components.trusted;
        let signature = self.signature.clone();
        // Without trusted keys there is nothing to compare a signature with.
        let Some(signature) = signature.filter(|_| self.needed || !publishers.is_empty()) else {
            return Ok(Vec::new());
        };
        if STANDARD.decode(signature.trim()).is_err() {
            return Err(refused("the signature is not base64"));
        }

        let signatures = [signature];
        let signers = publishers::ed25519(publishers, &self.bytes, &signatures);
        if signers.is_empty() {
            Err(refused(
                "the signature is of none of the keys that this installation trusts",
            ))
        } else {
            Ok(signers
                .into_iter()
                .map(|(name, _)| name.to_owned())
                .collect())
        }
    }

    /// Verifies a bundle. Returns also whether its publisher answers for the component with it.
    fn proven(&self, core: &Core, bundle: &str) -> Result<(KeptBundle, bool), BundleError> {
        // `cosign sign` and `attest` are about the manifest, `sign-blob` about the file.
        let files = [Some(&self.bytes), self.bundles.manifest.as_ref()];
        let files: Vec<&[u8]> = files.into_iter().flatten().map(|file| &**file).collect();
        let publishers = &core.config.components.trusted;
        let (proven, about) = core.bundles.verify(publishers, &files, bundle)?;
        let is_release = proven
            .predicate_type
            .as_ref()
            .is_none_or(|kind| RELEASES.iter().any(|release| kind.starts_with(release)));

        let manifest = self.bundles.manifest.as_ref().filter(|_| about > 0);
        let kept = KeptBundle {
            proven,
            bundle: bundle.to_owned(),
            manifest: manifest.map(|manifest| String::from_utf8_lossy(manifest).into_owned()),
        };

        Ok((kept, is_release))
    }
}

impl VerifiedSignatures {
    /// Returns the publisher that answers for a component of a slot.
    ///
    /// # Errors
    /// One is needed, and there is none for the slot.
    pub fn publisher(&self, config: &Config, slot: Slot) -> Result<Option<String>, ServiceError> {
        // A publisher may be trusted for some slots only, and the slot is known after the inspection.
        let trusted = &config.components.trusted;
        let covers = |name: &&String| trusted.get(*name).is_some_and(|one| one.covers(slot));
        let found = self.publishers.iter().find(covers);
        match (found, self.publishers.first()) {
            (None, Some(other)) if self.needed => Err(refused(format!(
                "{other} may not sign components of {slot}"
            ))),
            (found, _) => Ok(found.cloned()),
        }
    }
}

/// What a publisher says about a component.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "publisher": "release", "identity": "https://github.com/acme/rules/.github/workflows/release.yml@refs/tags/v2.1.0",
    "issuer": "https://token.actions.githubusercontent.com", "logged_at": "2026-05-04T15:04:05.000Z",
    "predicate_type": "https://slsa.dev/provenance/v1",
    "statement": { "_type": "https://in-toto.io/Statement/v1", "predicateType": "https://slsa.dev/provenance/v1" },
    "bundle": { "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json" }, "manifest": null,
}]))]
pub struct AttestationView {
    /// Name of the trusted publisher; null if the installation does not trust the identity.
    pub publisher: Option<String>,
    /// Identity in the certificate; null if the bundle was made with a key.
    pub identity: Option<String>,
    /// OpenID Connect issuer of the identity.
    pub issuer: Option<String>,
    /// Time of the entry in the transparency log, where the log signs it.
    pub logged_at: Option<Timestamp>,
    /// Type of the statement; null for a plain signature.
    pub predicate_type: Option<String>,
    /// The statement (in-toto), for example provenance (SLSA) or a bill of materials; null for a plain signature.
    pub statement: Option<Value>,
    /// The bundle of Sigstore, which anyone can verify.
    pub bundle: Value,
    /// Manifest in the registry that the bundle is about; null if it is about the component's file.
    pub manifest: Option<String>,
}

/// Returns what publishers say about a component.
pub async fn list(
    core: &Core,
    owner: &ComponentOwner,
    id: &str,
) -> Result<Vec<AttestationView>, ServiceError> {
    let component = get(core, owner, id).await?;
    let mut connection = core.store.read().await?;
    let kept = components::attestations(&mut connection, &component).await?;
    let Some(kept) = kept else {
        return Ok(Vec::new());
    };

    // Statements can be long.
    let views = tokio::task::spawn_blocking(move || {
        let kept: KeptAttestations = serde_json::from_value(kept)?;
        Ok::<_, serde_json::Error>(
            kept.bundles
                .into_iter()
                .map(AttestationView::from)
                .collect(),
        )
    });

    let failed = |error: &dyn std::fmt::Display| {
        ServiceError::Internal(format!("attestations of {id}: {error}"))
    };
    let views = views.await.map_err(|error| failed(&error))?;
    views.map_err(|error| failed(&error))
}

impl From<KeptBundle> for AttestationView {
    fn from(kept: KeptBundle) -> Self {
        let VerifiedBundle {
            publisher,
            identity,
            issuer,
            logged_at,
            predicate_type,
        } = kept.proven;

        Self {
            publisher,
            identity,
            issuer,
            logged_at,
            predicate_type,
            statement: publishers::statement_of(&kept.bundle),
            bundle: serde_json::from_str(&kept.bundle).unwrap_or_default(),
            manifest: kept.manifest,
        }
    }
}
