//! Components in OCI registries (OCI Distribution Specification 1.1), in the layout of WebAssembly packages: a config of type
//! `application/vnd.wasm.config.v0+json` and one layer of type `application/wasm`.
//!
//! Components are pulled by the digest of their manifest, so a moved tag changes nothing. Every address is checked as
//! for plugins ([`super::guard`]), those of redirects and of token services too.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

use super::guard::{self, AddressRefusal, AllowedAddresses};
use holdfast_base::config::{Config, SecretText};
use holdfast_domain::hash::sha256;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
const LAYER: &str = "application/wasm";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// Begin of the types of bundles (Sigstore bundle format, versions 0.1 to 0.3).
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// Type of pushed bundles.
const BUNDLE_V0_3: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// Most bundles that are read with a component.
const BUNDLES: usize = 10;
/// Largest bundle, in bytes.
const BUNDLE_LIMIT: u64 = 1024 * 1024;

/// Largest manifest, in bytes (OCI Distribution Specification: registries accept at least this).
const MANIFEST_LIMIT: u64 = 4 * 1024 * 1024;
/// Largest manifest of a component, in bytes. It has two descriptors and some annotations.
const OWN_MANIFEST_LIMIT: u64 = 64 * 1024;
/// Largest answer of a token service, in bytes.
const TOKEN_LIMIT: u64 = 64 * 1024;
/// Time limit of one request, its body included.
const PATIENCE: Duration = Duration::from_secs(120);
/// Name of a component in errors.
const COMPONENT: &str = "the component";
/// Time limit of downloading a component, and of downloading its bundles.
const PULL_PATIENCE: Duration = Duration::from_secs(300);
/// Redirects of one request.
const REDIRECTS: usize = 5;
/// Attempts to add to a list that others change, too.
const ATTEMPTS: usize = 5;

/// Reason why a registry did not serve a request. The texts have no address but that of the reference.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error(
        "{0} is no reference; write it as oci://host/name@sha256:… to pull, and oci://host/name:tag to push"
    )]
    Reference(String),
    #[error("the address is refused: {0}")]
    Address(#[from] AddressRefusal),
    #[error("the registry cannot be reached: {0}")]
    Unreachable(#[source] reqwest::Error),
    #[error("the registry answers {status} to the request for {what}")]
    Status { what: String, status: StatusCode },
    #[error("{0} is larger than allowed")]
    TooLarge(String),
    #[error("{what} has another digest than {expected}")]
    Digest { what: String, expected: String },
    #[error("the manifest is not that of a component: {0}")]
    Manifest(String),
    #[error("the registry answers in a way that the protocol does not know: {0}")]
    Protocol(&'static str),
    #[error("the registry takes longer than {} seconds", PULL_PATIENCE.as_secs())]
    Slow,
    #[error("the password of the registry cannot be read: {0}")]
    Login(#[source] std::io::Error),
}

/// Where a component is in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryReference {
    /// Host with port, as in a URL.
    host: String,
    /// Name of the repository.
    name: String,
    version: ReferenceVersion,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ReferenceVersion {
    /// `sha256:` and 64 digits.
    Digest(String),
    Tag(String),
}

impl RegistryReference {
    /// Whether a text is meant as a reference.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("oci://")
    }
}

impl FromStr for RegistryReference {
    type Err = RegistryError;

    fn from_str(text: &str) -> Result<Self, RegistryError> {
        let parse = || {
            let (host, rest) = text.strip_prefix("oci://")?.split_once('/')?;
            let (name, version) = match rest.split_once('@') {
                Some((name, digest)) => {
                    let version = ReferenceVersion::Digest(digest.to_owned());
                    (name, is_digest(digest).then_some(version)?)
                }
                None => {
                    let (name, tag) = rest.rsplit_once(':')?;
                    let is_tag = (1..=128).contains(&tag.len()) && tag.bytes().all(of_tag);
                    (name, is_tag.then(|| ReferenceVersion::Tag(tag.to_owned()))?)
                }
            };

            // Lower-case letters and digits, with separators in between.
            let is_part = |part: &str| {
                let ends = [part.bytes().next(), part.bytes().last()];
                let of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
                ends.into_iter().all(|end| end.is_some_and(of_name))
                    && part
                        .bytes()
                        .all(|byte| of_name(byte) || b"._-".contains(&byte))
            };

            // No part begins with a point, so a name cannot climb out of its repository in the URL.
            let is_name = name.len() <= 255 && name.split('/').all(is_part);
            (is_name && is_host(host)).then(|| Self {
                host: host.to_owned(),
                name: name.to_owned(),
                version,
            })
        };

        parse().ok_or_else(|| RegistryError::Reference(text.to_owned()))
    }
}

/// Whether a text is a host, with a port or without, and nothing else.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    // User information or a path in the host would send the request, and its login, elsewhere.
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    let of_address = |byte: u8| byte.is_ascii_hexdigit() || b":.".contains(&byte);
    let is_address = |inner: &str| !inner.is_empty() && inner.bytes().all(of_address);
    let is_named = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(is_address),
        None => !host.is_empty() && host.bytes().all(of_name),
    };

    is_named && text.len() <= 255 && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    hex.len() == 64 && hex.bytes().all(is_hex)
}

fn of_tag(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-".contains(&byte)
}

impl fmt::Display for RegistryReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            host,
            name,
            version,
        } = self;
        match version {
            ReferenceVersion::Digest(digest) => write!(formatter, "oci://{host}/{name}@{digest}"),
            ReferenceVersion::Tag(tag) => write!(formatter, "oci://{host}/{name}:{tag}"),
        }
    }
}

/// Manifest of an image (OCI Image Specification 1.1).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImageManifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
}

impl ImageManifest {
    /// Returns the one layer of a component's manifest.
    fn component(text: &[u8]) -> Result<Descriptor, RegistryError> {
        let unfit = |why: String| RegistryError::Manifest(why);
        if text.len() as u64 > OWN_MANIFEST_LIMIT {
            return Err(RegistryError::TooLarge("the manifest".into()));
        }

        let manifest: Self =
            serde_json::from_slice(text).map_err(|error| unfit(error.to_string()))?;
        if manifest.config.media_type != CONFIG {
            let kind = manifest.config.media_type;
            return Err(unfit(format!("its config is of type {kind}")));
        }
        // With several layers it would be open which of them the digest of an admitted component means.
        let [layer] = manifest.layers.as_slice() else {
            return Err(unfit(format!("it has {} layers", manifest.layers.len())));
        };

        if layer.media_type != LAYER {
            return Err(unfit(format!("its layer is of type {}", layer.media_type)));
        }
        // The digest becomes a part of the next address, so it must have this form.
        if !is_digest(&layer.digest) {
            return Err(unfit("its layer has no SHA-256".into()));
        }

        Ok(layer.clone())
    }
}

/// Whether a text is the manifest of the component with a SHA-256 (lower-case hex).
pub fn is_manifest_of(text: &[u8], sha256: &str) -> bool {
    ImageManifest::component(text).is_ok_and(|layer| layer.digest == format!("sha256:{sha256}"))
}

/// Bundles of Sigstore that refer to a manifest, not verified.
#[derive(Default)]
pub struct AttachedBundles {
    pub bundles: Vec<String>,
    /// Why further bundles could not be read.
    pub problems: Vec<String>,
}

/// Component that is being downloaded.
pub struct ComponentDownload {
    response: reqwest::Response,
    hash: Sha256,
    /// Bytes that may follow.
    left: u64,
    /// `sha256:` and 64 digits.
    expected: String,
    deadline: Instant,
}

impl ComponentDownload {
    /// Returns the next piece. The pieces are those of the component if the last call gives `None`.
    ///
    /// # Errors
    /// The registry has other bytes, or more than the limit, or is too slow.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, RegistryError> {
        // The deadline is for all pieces, or a registry could send a byte now and then for ever.
        let piece = timeout_at(self.deadline, self.response.chunk()).await;
        let piece = piece
            .map_err(|_| RegistryError::Slow)?
            .map_err(unreachable)?;
        let Some(piece) = piece else {
            let found = format!("sha256:{}", hex::encode(self.hash.finalize_reset()));
            same_digest(COMPONENT, &found, &self.expected)?;
            return Ok(None);
        };

        let left = self.left.checked_sub(piece.len() as u64);
        self.left = left.ok_or_else(|| RegistryError::TooLarge(COMPONENT.into()))?;
        self.hash.update(&piece);

        Ok(Some(piece))
    }
}

impl Descriptor {
    fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.into(),
            digest: digest(bytes),
            size: bytes.len() as u64,
        }
    }
}

/// Returns the tag of the list of manifests that refer to another.
fn referrers_tag(subject: &str) -> String {
    subject.replace(':', "-")
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256(bytes))
}

/// Answer of a token service. Registries name the token in either way.
#[derive(Deserialize)]
struct IssuedToken {
    token: Option<String>,
    access_token: Option<String>,
}

/// Login of a registry.
pub struct Login {
    pub username: String,
    pub password: SecretText,
}

impl Login {
    /// Returns the configured login for the registry of a reference, if there is one.
    ///
    /// # Errors
    /// [`RegistryError::Login`] if its file cannot be read.
    pub fn configured(
        config: &Config,
        reference: &RegistryReference,
    ) -> Result<Option<Self>, RegistryError> {
        let Some(login) = config.components.registries.get(&reference.host) else {
            return Ok(None);
        };
        Ok(Some(Self {
            username: login.username.clone(),
            password: login.password().map_err(RegistryError::Login)?,
        }))
    }
}

/// Client of one repository.
pub struct Registry<'a> {
    http: reqwest::Client,
    allow_insecure: bool,
    reference: &'a RegistryReference,
    login: Option<Login>,
    /// Header for requests to the registry, once it has asked for one.
    authorization: Option<String>,
}

impl<'a> Registry<'a> {
    /// Creates a client.
    ///
    /// # Errors
    /// [`RegistryError::Unreachable`] if no client can be made.
    pub fn new(
        config: &Config,
        reference: &'a RegistryReference,
        login: Option<Login>,
    ) -> Result<Self, RegistryError> {
        let allow_insecure = config.providers.allow_insecure;
        Ok(Self {
            http: guard::client(AllowedAddresses::public(allow_insecure))
                .map_err(RegistryError::Unreachable)?,
            allow_insecure,
            reference,
            login,
            authorization: None,
        })
    }

    /// Begins to download the component of at most `limit` bytes. Returns also the manifest that the reference names.
    ///
    /// # Errors
    /// The reference names a tag, or the registry has no component there.
    pub async fn component(
        &mut self,
        limit: u64,
    ) -> Result<(ComponentDownload, Bytes), RegistryError> {
        let deadline = Instant::now() + PULL_PATIENCE;
        let begun = timeout_at(deadline, async {
            let wanted = self.digest()?;
            // By digest and checked: the registry and everything between may serve other bytes.
            let path = format!("manifests/{wanted}");
            let manifest = self.read(&path, "the manifest", MANIFEST_LIMIT).await?;
            checked("the manifest", &manifest, &wanted)?;
            let layer = ImageManifest::component(&manifest)?;
            if layer.size > limit {
                return Err(RegistryError::TooLarge(COMPONENT.into()));
            }

            let request = self.get(&format!("blobs/{}", layer.digest), COMPONENT)?;
            let download = ComponentDownload {
                response: self.sent(request).await?,
                hash: Sha256::new(),
                // The limit and not the stated size, because the statement is the registry's own.
                left: limit,
                expected: layer.digest,
                deadline,
            };

            Ok((download, manifest))
        });

        begun.await.map_err(|_| RegistryError::Slow)?
    }

    /// Downloads the bundles that refer to the manifest. Others can add to them, so that one which cannot be read is
    /// only noted.
    pub async fn attached(&mut self) -> AttachedBundles {
        let mut found = AttachedBundles::default();
        let read = async {
            let subject = self.digest()?;
            self.read_bundles(&subject, &mut found).await
        };
        // The component counts without its bundles, so a failure here is noted and not returned.
        let ended = timeout_at(Instant::now() + PULL_PATIENCE, read).await;
        if let Err(error) = ended.unwrap_or(Err(RegistryError::Slow)) {
            found.problems.push(error.to_string());
        }

        found
    }

    fn digest(&self) -> Result<String, RegistryError> {
        match &self.reference.version {
            ReferenceVersion::Digest(digest) => Ok(digest.clone()),
            ReferenceVersion::Tag(_) => Err(RegistryError::Reference(self.reference.to_string())),
        }
    }

    async fn read_bundles(
        &mut self,
        subject: &str,
        found: &mut AttachedBundles,
    ) -> Result<(), RegistryError> {
        let index = self.referrers(subject).await?.manifests;
        let of_bundle = |one: &&Value| {
            let kind = one["artifactType"].as_str();
            kind.is_some_and(|kind| kind.starts_with(BUNDLE))
        };
        let digests: Vec<&str> = index
            .iter()
            .filter(of_bundle)
            .map(|one| one["digest"].as_str().unwrap_or_default())
            .collect();
        // Many registries let strangers attach bundles, so their number is limited.
        if digests.len() > BUNDLES {
            found.problems.push(format!(
                "{} bundles refer to it; the first {BUNDLES} were read",
                digests.len()
            ));
        }

        for digest in digests.into_iter().take(BUNDLES) {
            match self.bundle(digest).await {
                Ok(bundle) => found.bundles.push(bundle),
                Err(error) => found.problems.push(error.to_string()),
            }
        }

        Ok(())
    }

    /// Downloads the bundle of a referring manifest.
    async fn bundle(&mut self, digest: &str) -> Result<String, RegistryError> {
        let what = "a bundle";
        let unfit = || RegistryError::Protocol("a bundle has no layer with a SHA-256");
        // It stands in a list that others write, and becomes a part of an address.
        if !is_digest(digest) {
            return Err(unfit());
        }

        let path = format!("manifests/{digest}");
        let manifest = self.read(&path, what, MANIFEST_LIMIT).await?;
        checked(what, &manifest, digest)?;
        let manifest: ImageManifest = serde_json::from_slice(&manifest).map_err(|_| unfit())?;
        let of_bundle = |one: &&Descriptor| one.media_type.starts_with(BUNDLE);
        let layer = manifest.layers.iter().find(of_bundle);
        let layer = layer
            .filter(|layer| is_digest(&layer.digest))
            .ok_or_else(unfit)?;
        let path = format!("blobs/{}", layer.digest);
        let bundle = self.read(&path, what, BUNDLE_LIMIT).await?;
        checked(what, &bundle, &layer.digest)?;

        let unreadable = |_| RegistryError::Protocol("a bundle is no text");
        String::from_utf8(bundle.into()).map_err(unreadable)
    }

    /// Returns the list of the manifests that refer to another. Registries that do not keep it have it under a tag
    /// (OCI Distribution Specification 1.1, "Referrers tag schema").
    async fn referrers(&mut self, subject: &str) -> Result<ReferrerList, RegistryError> {
        let kept = format!("referrers/{subject}?artifactType={BUNDLE_V0_3}").replace('+', "%2B");
        let tagged = format!("manifests/{}", referrers_tag(subject));
        // Only registries without lists of their own leave the tag to their clients, so it comes second.
        for (path, is_kept) in [(kept, true), (tagged, false)] {
            match self
                .read(&path, "the list of bundles", MANIFEST_LIMIT)
                .await
            {
                Ok(index) => return ReferrerList::parsed(&index, is_kept),
                Err(RegistryError::Status { status, .. }) if is_absent(status, is_kept) => {}
                Err(error) => return Err(error),
            }
        }

        Ok(ReferrerList {
            index: json!({ "schemaVersion": 2, "mediaType": INDEX }),
            manifests: Vec::new(),
            is_kept: false,
        })
    }

    /// Uploads a bundle about a component that was pushed.
    ///
    /// # Errors
    /// The reference names a tag, or the registry does not take the bundle.
    pub async fn attach(&mut self, bundle: Bytes) -> Result<(), RegistryError> {
        let subject = self.digest()?;
        let path = format!("manifests/{subject}");
        let text = self.read(&path, "the manifest", MANIFEST_LIMIT).await?;
        checked("the manifest", &text, &subject)?;
        let config = Bytes::from_static(b"{}");
        let (layer, empty) = (
            Descriptor::of(BUNDLE_V0_3, &bundle),
            Descriptor::of(EMPTY, &config),
        );
        // Registries refuse a manifest that names unknown blobs, so the blobs come first.
        self.put_blob(&empty, config).await?;

        self.put_blob(&layer, bundle).await?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE_V0_3, "config": empty,
            "layers": [layer], "subject": Descriptor::of(MANIFEST, &text),
        });
        let manifest = Bytes::from(manifest.to_string());
        let described = Descriptor::of(MANIFEST, &manifest);
        self.put_manifest(&described.digest, MANIFEST, manifest)
            .await?;

        // A registry without lists of its own leaves them to its clients, which write over each other
        // without a lock.
        let mut entry = json!(described);
        entry["artifactType"] = json!(BUNDLE_V0_3);

        // Another client may write the list at the same time.
        for _ in 0..ATTEMPTS {
            let list = self.referrers(&subject).await?;
            if list.is_kept || list.names(&described.digest) {
                return Ok(());
            }

            let index = list.with(entry.clone());
            let index = Bytes::from(index.to_string());
            self.put_manifest(&referrers_tag(&subject), INDEX, index)
                .await?;
        }

        if self.referrers(&subject).await?.names(&described.digest) {
            Ok(())
        } else {
            Err(RegistryError::Protocol(
                "its list of bundles keeps changing",
            ))
        }
    }

    async fn put_manifest(
        &mut self,
        name: &str,
        kind: &'static str,
        manifest: Bytes,
    ) -> Result<(), RegistryError> {
        let request = RegistryRequest {
            method: Method::PUT,
            url: self.url(&format!("manifests/{name}"))?,
            what: "the manifest",
            body: Some((kind, manifest)),
        };
        self.sent(request).await?;
        Ok(())
    }

    /// Uploads a component under the tag of the reference. Returns the reference by digest.
    ///
    /// # Errors
    /// The reference names a digest, or the registry does not take the component.
    pub async fn push(
        &mut self,
        component: Bytes,
        created: &str,
    ) -> Result<RegistryReference, RegistryError> {
        let ReferenceVersion::Tag(tag) = self.reference.version.clone() else {
            return Err(RegistryError::Reference(self.reference.to_string()));
        };

        let layer = Descriptor::of(LAYER, &component);
        let config = json!({
            "created": created, "architecture": "wasm", "os": "wasip2",
            "layerDigests": [layer.digest],
        });
        let config = Bytes::from(config.to_string());
        let described = Descriptor::of(CONFIG, &config);
        self.put_blob(&described, config).await?;

        self.put_blob(&layer, component).await?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": [layer],
        });
        let manifest = Bytes::from(manifest.to_string());
        let digest = digest(&manifest);
        // The tag comes last, so it never names a component that is not complete.
        self.put_manifest(&tag, MANIFEST, manifest).await?;

        Ok(RegistryReference {
            version: ReferenceVersion::Digest(digest),
            ..self.reference.clone()
        })
    }

    async fn put_blob(&mut self, blob: &Descriptor, bytes: Bytes) -> Result<(), RegistryError> {
        let what = "an upload";
        let begin = RegistryRequest {
            method: Method::POST,
            url: self.url("blobs/uploads/")?,
            what,
            body: Some(("application/octet-stream", Bytes::new())),
        };
        let base = begin.url.clone();

        let begun = self.sent(begin).await?;
        let mut url =
            location(&base, &begun).ok_or(RegistryError::Protocol("an upload has no location"))?;
        // The registry chose this address, so it is checked before the component goes there.
        self.check(&url)?;
        url.query_pairs_mut().append_pair("digest", &blob.digest);
        let put = RegistryRequest {
            method: Method::PUT,
            url,
            what,
            body: Some(("application/octet-stream", bytes)),
        };
        self.sent(put).await?;

        Ok(())
    }

    fn url(&self, path: &str) -> Result<Url, RegistryError> {
        let RegistryReference { host, name, .. } = self.reference;
        let unknown = |_| RegistryError::Reference(self.reference.to_string());
        let url = |scheme: &str| Url::parse(&format!("{scheme}://{host}/v2/{name}/{path}"));
        let mut url_of = url("https").map_err(unknown)?;
        if self.allow_insecure && is_loopback(&url_of) {
            url_of = url("http").map_err(unknown)?;
        }

        // The text of a reference comes from callers, like any other address.
        guard::check_url(&url_of, &AllowedAddresses::public(self.allow_insecure))?;
        Ok(url_of)
    }

    async fn read(
        &mut self,
        path: &str,
        what: &'static str,
        limit: u64,
    ) -> Result<Bytes, RegistryError> {
        let request = self.get(path, what)?;
        body(self.sent(request).await?, what, limit).await
    }

    fn get(&self, path: &str, what: &'static str) -> Result<RegistryRequest, RegistryError> {
        Ok(RegistryRequest {
            method: Method::GET,
            url: self.url(path)?,
            what,
            body: None,
        })
    }

    /// Sends a request. Logs in when the registry asks for it, and follows redirects. Other origins get no login.
    async fn sent(&mut self, request: RegistryRequest) -> Result<reqwest::Response, RegistryError> {
        let mut at = request.url.clone();
        let mut response = self.once(&request, &at).await?;

        // Each request may need another scope, or a new token.
        if response.status() == StatusCode::UNAUTHORIZED && self.is_own(&at)? {
            let challenge = response.headers().get(WWW_AUTHENTICATE);
            let challenge = challenge.and_then(|value| value.to_str().ok());
            let challenge = challenge.unwrap_or_default().to_owned();
            self.authorization = Some(self.authorized(&challenge).await?);
            response = self.once(&request, &at).await?;
        }

        // The client follows none by itself, because each new address has to be checked.
        for _ in 0..REDIRECTS {
            if !response.status().is_redirection() || request.method != Method::GET {
                break;
            }

            let missing = RegistryError::Protocol("a redirect has no location");
            let next = location(&at, &response).ok_or(missing)?;
            self.check(&next)?;
            response = self.once(&request, &next).await?;
            at = next;
        }

        if response.status().is_success() {
            Ok(response)
        } else {
            Err(RegistryError::Status {
                what: request.what.into(),
                status: response.status(),
            })
        }
    }

    /// Whether a URL is of the registry itself.
    fn is_own(&self, url: &Url) -> Result<bool, RegistryError> {
        Ok(url.origin() == self.url("")?.origin())
    }

    /// Checks an address that the registry names. Without TLS only this machine may be asked, in development.
    fn check(&self, url: &Url) -> Result<(), RegistryError> {
        guard::check_url(url, &AllowedAddresses::public(self.allow_insecure))?;
        if url.scheme() == "https" || is_loopback(url) {
            Ok(())
        } else {
            Err(AddressRefusal::Scheme(url.scheme().into()).into())
        }
    }

    async fn once(
        &self,
        request: &RegistryRequest,
        url: &Url,
    ) -> Result<reqwest::Response, RegistryError> {
        // Registries redirect downloads to a storage service, which must not see the login.
        let with_login = self.is_own(url)?;
        let mut sent = self.http.request(request.method.clone(), url.clone());
        sent = sent.timeout(PATIENCE);
        sent = sent.header(ACCEPT, format!("{MANIFEST}, {INDEX}, */*"));
        if let Some(authorization) = self.authorization.as_ref().filter(|_| with_login) {
            sent = sent.header(AUTHORIZATION, authorization);
        }

        if let Some((kind, bytes)) = &request.body {
            sent = sent.header(CONTENT_TYPE, *kind).body(bytes.clone());
        }

        sent.send().await.map_err(unreachable)
    }

    /// Returns the header for a challenge: a token of the registry's token service, or the login itself.
    async fn authorized(&self, challenge: &str) -> Result<String, RegistryError> {
        let basic = self.login.as_ref().map(|login| {
            let pair = format!("{}:{}", login.username, login.password.reveal());
            format!("Basic {}", STANDARD.encode(pair))
        });
        let (scheme, parameters) = challenge.split_once(' ').unwrap_or((challenge, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            let needed = RegistryError::Protocol("it asks for a login, and there is none");
            return basic.ok_or(needed);
        }

        let parameters = parameters_of(parameters);
        let unknown = RegistryError::Protocol("it names no token service");
        let realm = parameters.get("realm").ok_or(unknown)?;
        let mut url = Url::parse(realm)
            .map_err(|_| RegistryError::Protocol("its token service has no address"))?;
        // By the protocol, the login goes to the service that the registry names.
        // Its address is checked like others.
        self.check(&url)?;

        for name in ["service", "scope"] {
            if let Some(value) = parameters.get(name) {
                url.query_pairs_mut().append_pair(name, value);
            }
        }

        let mut request = self.http.get(url).timeout(PATIENCE);
        // Without a login the service gives a token for public repositories.
        if let Some(basic) = basic {
            request = request.header(AUTHORIZATION, basic);
        }

        let response = request.send().await.map_err(unreachable)?;
        let what = "a token";
        if !response.status().is_success() {
            let status = response.status();
            return Err(RegistryError::Status {
                what: what.into(),
                status,
            });
        }

        let issued = body(response, what, TOKEN_LIMIT).await?;
        let issued: Option<IssuedToken> = serde_json::from_slice(&issued).ok();
        let token = issued.and_then(|issued| issued.token.or(issued.access_token));
        let token = token.ok_or(RegistryError::Protocol("its token service gives no token"))?;
        Ok(format!("Bearer {token}"))
    }
}

struct RegistryRequest {
    method: Method,
    url: Url,
    /// Name of the requested object, for errors.
    what: &'static str,
    body: Option<(&'static str, Bytes)>,
}

/// List of the manifests that refer to another (OCI Image Specification 1.1, image index). Members that this program
/// does not know stay.
struct ReferrerList {
    index: Value,
    manifests: Vec<Value>,
    /// Whether the registry keeps it itself.
    is_kept: bool,
}

impl ReferrerList {
    fn parsed(text: &[u8], is_kept: bool) -> Result<Self, RegistryError> {
        let unreadable = || RegistryError::Protocol("the list of bundles is unreadable");
        let mut index: Value = serde_json::from_slice(text).map_err(|_| unreadable())?;
        let Some(Value::Array(manifests)) = index.get_mut("manifests").map(Value::take) else {
            return Err(unreadable());
        };

        Ok(Self {
            index,
            manifests,
            is_kept,
        })
    }

    fn names(&self, digest: &str) -> bool {
        self.manifests.iter().any(|one| one["digest"] == digest)
    }

    fn with(mut self, entry: Value) -> Value {
        self.manifests.push(entry);
        self.index["manifests"] = Value::Array(self.manifests);
        self.index
    }
}

/// Whether a status means that there is no list: the registry does not keep such lists, or has none under the tag.
fn is_absent(status: StatusCode, is_kept: bool) -> bool {
    let unknown = [StatusCode::BAD_REQUEST, StatusCode::METHOD_NOT_ALLOWED];
    status == StatusCode::NOT_FOUND || (is_kept && unknown.contains(&status))
}

fn unreachable(error: reqwest::Error) -> RegistryError {
    RegistryError::Unreachable(error.without_url())
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Parses the parameters of a challenge (RFC 9110, section 11.2).
fn parameters_of(mut text: &str) -> BTreeMap<String, String> {
    let mut parameters = BTreeMap::new();
    while let Some((name, rest)) = text.split_once('=') {
        let name = name.trim_matches([' ', ',']).to_ascii_lowercase();
        // A quoted value may contain commas: a scope lists its actions with them.
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(',').unwrap_or((rest, "")),
        };
        parameters.insert(name, value.to_owned());
        text = rest;
    }

    parameters
}

fn location(base: &Url, response: &reqwest::Response) -> Option<Url> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    base.join(location).ok()
}

/// Reads a body of at most `limit` bytes.
async fn body(
    mut response: reqwest::Response,
    what: &str,
    limit: u64,
) -> Result<Bytes, RegistryError> {
    // Counted while it is read, because a stated length need not be true.
    let mut read = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if read.len() as u64 + chunk.len() as u64 > limit {
            return Err(RegistryError::TooLarge(what.into()));
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read.freeze())
}

fn checked(what: &str, bytes: &[u8], expected: &str) -> Result<(), RegistryError> {
    same_digest(what, &digest(bytes), expected)
}

fn same_digest(what: &str, found: &str, expected: &str) -> Result<(), RegistryError> {
    if found == expected {
        Ok(())
    } else {
        Err(RegistryError::Digest {
            what: what.into(),
            expected: expected.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_names_a_digest_or_a_tag() {
        let digest = "a".repeat(64);
        for known in [
            format!("oci://ghcr.io/acme/rules@sha256:{digest}"),
            format!("oci://127.0.0.1:5000/rules@sha256:{digest}"),
            format!("oci://[::1]:5000/rules@sha256:{digest}"),
            "oci://registry.example/acme/rules/compliance:1.2.0".to_owned(),
        ] {
            assert_eq!(
                known.parse::<RegistryReference>().unwrap().to_string(),
                known
            );
        }

        for wrong in [
            "ghcr.io/acme/rules:1".to_owned(),
            "oci://ghcr.io/acme/rules".to_owned(),
            format!("oci://ghcr.io/acme/rules@sha256:{}", &digest[1..]),
            format!("oci://ghcr.io/acme/rules@sha512:{digest}"),
            format!("oci://ghcr.io/acme/../rules@sha256:{digest}"),
            format!("oci://ghcr.io/Acme@sha256:{digest}"),
            "oci:///rules:1".to_owned(),
            format!("oci://api.example\\admin?id=1#/rules@sha256:{digest}"),
            format!("oci://user@api.example/rules@sha256:{digest}"),
            format!("oci://api.example:port/rules@sha256:{digest}"),
            "oci://ghcr.io/rules:a b".to_owned(),
        ] {
            assert!(wrong.parse::<RegistryReference>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_parameters_of_a_challenge_are_parsed() {
        let text = r#"realm="https://auth.example/token",service="registry.example",scope="repository:acme/rules:pull,push""#;
        let parameters = parameters_of(text);
        assert_eq!(parameters["realm"], "https://auth.example/token");
        assert_eq!(parameters["scope"], "repository:acme/rules:pull,push");
        assert_eq!(parameters_of("a=b, c=d").len(), 2);
        assert!(parameters_of("").is_empty());
    }
}
