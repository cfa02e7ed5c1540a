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
use serde_json::json;
use url::{Host, Url};

use super::guard::{self, AddressRefusal};
use crate::config::{Config, SecretText};
use crate::domain::hash::sha256;

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
/// Largest answer of a token service, in bytes.
const TOKEN_LIMIT: u64 = 64 * 1024;
/// Time limit of one request, its body included.
const PATIENCE: Duration = Duration::from_secs(120);
/// Redirects of one request.
const REDIRECTS: usize = 5;

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
            let is_name = name.len() <= 255 && name.split('/').all(is_part);
            (is_name && !host.is_empty()).then(|| Self {
                host: host.to_owned(),
                name: name.to_owned(),
                version,
            })
        };
        parse().ok_or_else(|| RegistryError::Reference(text.to_owned()))
    }
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

/// Index of the manifests that refer to another (OCI Image Specification 1.1).
#[derive(Debug, Default, Deserialize)]
struct ReferrerIndex {
    manifests: Vec<Descriptor>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    artifact_type: Option<String>,
}

/// Component from a registry.
pub struct PulledComponent {
    pub bytes: Bytes,
    /// The manifest that the reference names.
    pub manifest: Bytes,
    /// Bundles of Sigstore that refer to the manifest, not verified.
    pub bundles: Vec<String>,
}

impl Descriptor {
    fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.into(),
            digest: digest(bytes),
            size: bytes.len() as u64,
            artifact_type: None,
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
            http: guard::client(allow_insecure).map_err(RegistryError::Unreachable)?,
            allow_insecure,
            reference,
            login,
            authorization: None,
        })
    }

    /// Downloads the component of at most `limit` bytes, and the bundles that refer to it.
    ///
    /// # Errors
    /// The reference names a tag, or the registry has other bytes.
    pub async fn pull(&mut self, limit: u64) -> Result<PulledComponent, RegistryError> {
        let ReferenceVersion::Digest(wanted) = self.reference.version.clone() else {
            return Err(RegistryError::Reference(self.reference.to_string()));
        };
        let path = format!("manifests/{wanted}");
        let text = self.read(&path, "the manifest", MANIFEST_LIMIT).await?;
        checked("the manifest", &text, &wanted)?;
        let unfit = |why: String| RegistryError::Manifest(why);
        let manifest: ImageManifest =
            serde_json::from_slice(&text).map_err(|error| unfit(error.to_string()))?;
        if manifest.config.media_type != CONFIG {
            return Err(unfit(format!(
                "its config is of type {}",
                manifest.config.media_type
            )));
        }
        let [layer] = manifest.layers.as_slice() else {
            return Err(unfit(format!("it has {} layers", manifest.layers.len())));
        };
        if layer.media_type != LAYER {
            return Err(unfit(format!("its layer is of type {}", layer.media_type)));
        }
        if !is_digest(&layer.digest) {
            return Err(unfit("its layer has no SHA-256".into()));
        }
        if layer.size > limit {
            return Err(RegistryError::TooLarge("the component".into()));
        }
        let path = format!("blobs/{}", layer.digest);
        let bytes = self.read(&path, "the component", limit).await?;
        checked("the component", &bytes, &layer.digest)?;
        Ok(PulledComponent {
            bytes,
            manifest: text,
            bundles: self.bundles(&wanted).await?,
        })
    }

    /// Downloads the bundles that refer to a manifest.
    async fn bundles(&mut self, subject: &str) -> Result<Vec<String>, RegistryError> {
        let mut bundles = Vec::new();
        let of_bundle =
            |kind: &Option<String>| kind.as_ref().is_some_and(|kind| kind.starts_with(BUNDLE));
        let referrers = self.referrers(subject).await?.0.manifests;
        let referrers = referrers.iter().filter(|one| of_bundle(&one.artifact_type));
        for referrer in referrers.filter(|one| is_digest(&one.digest)) {
            let path = format!("manifests/{}", referrer.digest);
            let manifest = self.read(&path, "a bundle", MANIFEST_LIMIT).await?;
            checked("a bundle", &manifest, &referrer.digest)?;
            let Ok(manifest) = serde_json::from_slice::<ImageManifest>(&manifest) else {
                continue;
            };
            let layers = manifest.layers.iter();
            for layer in layers.filter(|one| one.media_type.starts_with(BUNDLE)) {
                if bundles.len() == BUNDLES || !is_digest(&layer.digest) {
                    break;
                }
                let path = format!("blobs/{}", layer.digest);
                let bundle = self.read(&path, "a bundle", BUNDLE_LIMIT).await?;
                checked("a bundle", &bundle, &layer.digest)?;
                bundles.push(String::from_utf8_lossy(&bundle).into_owned());
            }
        }
        Ok(bundles)
    }

    /// Returns the manifests that refer to another, and whether the registry keeps that list itself. Others keep it
    /// under a tag (OCI Distribution Specification 1.1, "Referrers tag schema").
    async fn referrers(&mut self, subject: &str) -> Result<(ReferrerIndex, bool), RegistryError> {
        let ways = [
            format!("referrers/{subject}"),
            format!("manifests/{}", referrers_tag(subject)),
        ];
        for (path, own) in ways.iter().zip([true, false]) {
            match self.read(path, "the list of bundles", MANIFEST_LIMIT).await {
                Ok(index) => {
                    let index = serde_json::from_slice(&index);
                    let unknown = |_| RegistryError::Protocol("a list of bundles is unreadable");
                    return Ok((index.map_err(unknown)?, own));
                }
                Err(RegistryError::Status { status, .. }) if status.is_client_error() => {}
                Err(error) => return Err(error),
            }
        }
        Ok((ReferrerIndex::default(), false))
    }

    /// Uploads a bundle about a component that was pushed.
    ///
    /// # Errors
    /// The reference names a tag, or the registry does not take the bundle.
    pub async fn attach(&mut self, bundle: Bytes) -> Result<(), RegistryError> {
        let ReferenceVersion::Digest(subject) = self.reference.version.clone() else {
            return Err(RegistryError::Reference(self.reference.to_string()));
        };
        let path = format!("manifests/{subject}");
        let text = self.read(&path, "the manifest", MANIFEST_LIMIT).await?;
        let config = Bytes::from_static(b"{}");
        let (layer, empty) = (
            Descriptor::of(BUNDLE_V0_3, &bundle),
            Descriptor::of(EMPTY, &config),
        );
        self.put_blob(&empty, config).await?;
        self.put_blob(&layer, bundle).await?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE_V0_3, "config": empty,
            "layers": [layer], "subject": Descriptor::of(MANIFEST, &text),
        });
        let manifest = Bytes::from(manifest.to_string());
        let mut described = Descriptor::of(MANIFEST, &manifest);
        described.artifact_type = Some(BUNDLE_V0_3.into());
        self.put_manifest(&described.digest, MANIFEST, manifest)
            .await?;
        let (index, own) = self.referrers(&subject).await?;
        if own {
            return Ok(());
        }
        let mut manifests = index.manifests;
        manifests.retain(|one| one.digest != described.digest);
        manifests.push(described);
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
        let tag = referrers_tag(&subject);
        self.put_manifest(&tag, INDEX, Bytes::from(index.to_string()))
            .await
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
        guard::check_url(&url_of, self.allow_insecure)?;
        Ok(url_of)
    }

    async fn read(
        &mut self,
        path: &str,
        what: &'static str,
        limit: u64,
    ) -> Result<Bytes, RegistryError> {
        let request = RegistryRequest {
            method: Method::GET,
            url: self.url(path)?,
            what,
            body: None,
        };
        body(self.sent(request).await?, what, limit).await
    }

    /// Sends a request. Logs in when the registry asks for it, and follows redirects. Other origins get no login.
    async fn sent(&mut self, request: RegistryRequest) -> Result<reqwest::Response, RegistryError> {
        let mut at = request.url.clone();
        let mut response = self.once(&request, &at).await?;
        let asks = response.status() == StatusCode::UNAUTHORIZED && self.is_own(&at)?;
        if asks && self.authorization.is_none() {
            let challenge = response.headers().get(WWW_AUTHENTICATE);
            let challenge = challenge.and_then(|value| value.to_str().ok());
            let challenge = challenge.unwrap_or_default().to_owned();
            self.authorization = Some(self.authorized(&challenge).await?);
            response = self.once(&request, &at).await?;
        }
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
        match response.status().is_success() {
            true => Ok(response),
            false => Err(RegistryError::Status {
                what: request.what.into(),
                status: response.status(),
            }),
        }
    }

    /// Whether a URL is of the registry itself.
    fn is_own(&self, url: &Url) -> Result<bool, RegistryError> {
        Ok(url.origin() == self.url("")?.origin())
    }

    /// Checks an address that the registry names. Without TLS only this machine may be asked, in development.
    fn check(&self, url: &Url) -> Result<(), RegistryError> {
        guard::check_url(url, self.allow_insecure)?;
        match url.scheme() == "https" || is_loopback(url) {
            true => Ok(()),
            false => Err(AddressRefusal::Scheme(url.scheme().into()).into()),
        }
    }

    async fn once(
        &self,
        request: &RegistryRequest,
        url: &Url,
    ) -> Result<reqwest::Response, RegistryError> {
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
        let unreachable = |error: reqwest::Error| RegistryError::Unreachable(error.without_url());
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
        self.check(&url)?;
        for name in ["service", "scope"] {
            if let Some(value) = parameters.get(name) {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        let mut request = self.http.get(url).timeout(PATIENCE);
        if let Some(basic) = basic {
            request = request.header(AUTHORIZATION, basic);
        }
        let unreachable = |error: reqwest::Error| RegistryError::Unreachable(error.without_url());
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
    let mut read = BytesMut::new();
    let unreachable = |error: reqwest::Error| RegistryError::Unreachable(error.without_url());
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if read.len() as u64 + chunk.len() as u64 > limit {
            return Err(RegistryError::TooLarge(what.into()));
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read.freeze())
}

fn checked(what: &str, bytes: &[u8], expected: &str) -> Result<(), RegistryError> {
    match digest(bytes) == expected {
        true => Ok(()),
        false => Err(RegistryError::Digest {
            what: what.into(),
            expected: expected.into(),
        }),
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
