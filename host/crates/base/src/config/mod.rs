//! Settings, read and checked once at startup.
//!
//! They come from a TOML file. Each key can be overridden by an
//! environment variable with the prefix `HOLDFAST_` and `__` between
//! levels. An unknown or invalid key is an error that names the key.

mod checks;
mod components;
mod error;
mod http;
pub use holdfast_rules::limits;
mod rates;
mod reference;

pub use components::{ComponentSettings, RegistryLogin, UploadPolicy};
pub use error::ConfigError;
pub use http::HttpSettings;
pub use rates::RateLimitSettings;
pub use reference::{SettingReference, reference, settings};

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use figment::Figment;
use figment::providers::{Env, Format, Toml};
use ipnet::IpNet;
use jiff::{Span, SpanRelativeTo};
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer, Serialize};
use url::Url;

use holdfast_domain::checkpoint::{VerifierKey, WitnessKey};
use holdfast_domain::component::Slot;
use holdfast_domain::id::OrgId;
use holdfast_domain::organization::OrgSettings;
use holdfast_domain::signature::DigestAlgorithm;

/// Variables with the `HOLDFAST_` prefix that belong to the clients of an installation, to the build or to the tests.
const NOT_SETTINGS: &[&str] = &[
    "url",
    "api_key",
    "live_key",
    // Exported by earlier versions of `dev`.
    "test_key",
    "token",
    "org",
    "webhook_secret",
    "corpus",
    "config",
    "mutated",
    "faults",
    "kills",
    "switches",
];

/// All settings of the service.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address the server listens on.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// Separate address for `/metrics`; default: served on `listen`.
    #[schemars(with = "Option<String>")]
    pub metrics_listen: Option<SocketAddr>,
    /// Public URL of this server, without a trailing slash.
    #[schemars(with = "Option<String>")]
    pub public_url: Option<Url>,
    /// `{embed_host}`; default: `/embed` under the public URL.
    #[schemars(with = "Option<String>")]
    pub embed_url: Option<Url>,
    /// `{signing_host}`; default: `/sign` under the public URL.
    #[schemars(with = "Option<String>")]
    pub signing_url: Option<Url>,
    /// Exact addresses or networks of the reverse proxies in front (`["10.42.7.3/32"]`), whose
    /// `X-Forwarded-For` states where a signer comes from. Every other machine in such a network
    /// can write any address into the evidence.
    #[schemars(with = "Vec<String>")]
    pub trusted_proxies: Vec<IpNet>,
    /// `sqlite://…` or `postgres://…`; default: a file in the data folder.
    pub database_url: Option<String>,
    /// `file://…`, `s3://…`, …; default: a folder in the data folder.
    pub storage_url: Option<String>,
    /// Options of the object store: credentials, encryption, retention.
    pub storage: StorageSettings,
    /// Folder of the embedded database, objects, outbox and generated keys.
    pub data_dir: PathBuf,
    /// Mail server: `smtps://user:password@host`, `smtp://…?tls=required` or
    /// `smtp://…?tls=opportunistic`; a password is sent only over TLS. Without a server, mails are
    /// written as files to the outbox.
    pub smtp_url: Option<SecretText>,
    /// Additional trusted certificate authorities for the mail server, in PEM.
    pub smtp_ca_file: Option<PathBuf>,
    /// Sender of mails.
    pub mail_from: String,
    /// Mailbox of returned mails, such as `bounces@mail.example`. Each mail to a signer gets an
    /// address of its own there (`bounces+…@mail.example`); the mail server hands what arrives to
    /// `holdfast mail bounced`.
    pub mail_bounces: Option<String>,
    /// `production` rejects development-only settings. If
    /// unset, `serve` starts on a loopback address only.
    pub env: Option<DeploymentEnvironment>,
    /// Overrides the interval of all periodic work; for tests.
    #[serde(deserialize_with = "optional_duration")]
    #[schemars(with = "Option<String>")]
    pub sweep_interval: Option<Duration>,
    /// Offset added to the clock; for tests.
    #[serde(deserialize_with = "optional_duration")]
    #[schemars(with = "Option<String>")]
    pub clock_offset: Option<Duration>,
    /// Web-app authentication.
    pub auth: AuthSettings,
    /// Signing, payment, KBA and text message provider instances.
    pub providers: ProviderSettings,
    /// Key that seals authoritative copies; by default one is generated in the data folder. Nodes
    /// that share a vault must use the same key.
    pub seal: SealSettings,
    /// Signatures that uploaded documents have already.
    pub signatures: SignatureSettings,
    /// Webhook delivery.
    pub webhooks: WebhookSettings,
    /// Bulk send.
    pub bulk: BulkSettings,
    /// Components that can be replaced at run time.
    pub components: ComponentSettings,
    /// Pages for the people of organizations.
    pub console: ConsoleSettings,
    /// Days for which requests of organizations are kept for those who integrate; 0: none are kept.
    pub request_log_days: u32,
    /// Limits on connections and requests.
    pub http: HttpSettings,
    /// Request rate limits for links, tokens and client addresses.
    pub rate_limits: RateLimitSettings,
    /// Control of records.
    pub control: ControlSettings,
    /// Witnesses of the log.
    pub ledger: LedgerSettings,
    /// This installation as a witness of the logs of others (`holdfast witness serve`).
    pub witness: WitnessSettings,
    /// Logging.
    pub log: LogSettings,
    /// Traces.
    pub traces: TraceSettings,
}

/// Kind of installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeploymentEnvironment {
    /// A developer's machine or a test.
    Development,
    /// An installation with real contracts.
    Production,
}

/// `[storage]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StorageSettings {
    /// Options of the object store by the lower-case names of its environment variables:
    /// `aws_endpoint`, `aws_access_key_id`, `aws_server_side_encryption`…
    pub options: BTreeMap<String, SecretText>,
    /// File with the keys that encrypt documents before they are
    /// uploaded: one `NAME KEY` a line, the key being 32 bytes in base64.
    /// The first key encrypts new objects, the others decrypt older ones.
    pub encryption_key_file: Option<PathBuf>,
    /// AWS KMS key that wraps the object keys instead: its id, ARN or alias.
    pub encryption_kms_key: Option<String>,
    /// Where the key of each record is kept: `s3://…`, `az://…`, `gs://…`, `file://…`, or a folder, below the data folder
    /// unless its path is absolute. A record's documents are encrypted with its key; destroying the key destroys them in
    /// every backup. The place must not keep versions, be part of a backup, or get lost: without the keys the documents
    /// are lost. By default records have no keys of their own.
    pub record_keys: Option<String>,
    /// Retention period of released documents (S3 Object
    /// Lock). The bucket must have Object Lock enabled.
    #[serde(deserialize_with = "optional_duration")]
    #[schemars(with = "Option<String>")]
    pub archive_retention: Option<Duration>,
    /// Whether users with a special permission can shorten the retention.
    pub archive_retention_mode: RetentionMode,
    /// Whether the objects of records under a legal hold get the object store's own hold: the legal hold of S3 Object
    /// Lock or of Azure, or the temporary hold of Google. A bucket of S3 must have Object Lock enabled, a container of
    /// Azure version-level immutability.
    pub object_lock_holds: bool,
}

/// Where the keys of records are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordKeyPlace {
    /// Folder on a local disk.
    Folder(PathBuf),
    /// URL of an object store.
    Url(String),
}

/// The modes of S3 Object Lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RetentionMode {
    /// The retention cannot be shortened or bypassed.
    #[default]
    Compliance,
    /// Users with the permission to bypass governance retention can delete the object.
    Governance,
}

/// `[seal]`. The key is given as PEM files or as one PKCS #12 file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SealSettings {
    /// PKCS #8 key on P-256, in PEM.
    pub key_file: Option<PathBuf>,
    /// PEM chain: the key's certificate first, then its issuers.
    pub certificates_file: Option<PathBuf>,
    /// Key and certificates in one file (RFC 7292).
    pub pkcs12_file: Option<PathBuf>,
    /// File with the password of the PKCS #12 file.
    pub pkcs12_password_file: Option<PathBuf>,
    /// Time stamping authority (RFC 3161). Without one, a seal carries only this host's time.
    #[schemars(with = "Option<String>")]
    pub timestamp_url: Option<Url>,
    /// Trust roots of the time stamping authority, in PEM. Without them its timestamps are recorded
    /// as unchecked, and its URL must be `https`.
    pub timestamp_trust_file: Option<PathBuf>,
    /// Digest algorithm of time stamps over documents: `sha256`, `sha384` or `sha512`; `sha256` unless set. After a
    /// change, every seal with a time stamp gets one with the new algorithm.
    pub timestamp_digest: Option<DigestAlgorithm>,
}

/// `[signatures]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SignatureSettings {
    /// Roots of the certificates with which other parties sign, in PEM. Without them, the
    /// certificates of signatures in uploads are reported as not checked.
    pub trust_file: Option<PathBuf>,
}

/// Location of the sealing key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealingKeyFiles {
    /// Data folder; generated on the first start.
    Own,
    /// PEM files: the key, and its certificates.
    Pem(PathBuf, PathBuf),
    /// PKCS #12: the file, and the file with its password.
    Pkcs12(PathBuf, PathBuf),
}

impl SealSettings {
    /// Returns the digest algorithm of time stamps over documents.
    pub fn digest(&self) -> DigestAlgorithm {
        self.timestamp_digest.unwrap_or(DigestAlgorithm::Sha256)
    }

    /// Returns the configured location; fails when settings of two kinds are mixed.
    pub fn key(&self) -> Result<SealingKeyFiles, ConfigError> {
        let given = (
            &self.key_file,
            &self.certificates_file,
            &self.pkcs12_file,
            &self.pkcs12_password_file,
        );

        match given {
            (None, None, None, None) => Ok(SealingKeyFiles::Own),
            (Some(key), Some(certificates), None, None) => {
                Ok(SealingKeyFiles::Pem(key.clone(), certificates.clone()))
            }
            (None, None, Some(file), Some(password)) => {
                Ok(SealingKeyFiles::Pkcs12(file.clone(), password.clone()))
            }
            _ => Err(ConfigError::Refused {
                key: "seal".into(),
                why: "needs key_file and certificates_file, or pkcs12_file and \
                      pkcs12_password_file, or none of them"
                    .into(),
            }),
        }
    }
}

/// `[auth]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuthSettings {
    /// Longest lifetime of a web-app token issued by this host.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub max_token_ttl: Duration,
    /// Additional OpenID Connect issuer of web-app tokens.
    pub oidc: Option<OidcSettings>,
}

impl Default for AuthSettings {
    fn default() -> Self {
        Self {
            max_token_ttl: Duration::from_secs(86_400),
            oidc: None,
        }
    }
}

/// `[console]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConsoleSettings {
    /// Whether the console is served, and users can sign in.
    pub enabled: bool,
    /// Separate address for the console; default: served on `listen`.
    #[schemars(with = "Option<String>")]
    pub listen: Option<SocketAddr>,
    /// URL of the console's server, without a trailing slash; default: the public URL.
    #[schemars(with = "Option<String>")]
    pub url: Option<Url>,
    /// Organization of the operator: its owners and admins see the whole installation.
    #[schemars(with = "Option<String>")]
    pub operator_org: Option<OrgId>,
    /// Longest time until a user signs in again.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub session_ttl: Duration,
    /// Time without a request after which a session ends.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub idle: Duration,
}

impl Default for ConsoleSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: None,
            url: None,
            operator_org: None,
            session_ttl: Duration::from_secs(12 * 3600),
            idle: Duration::from_secs(2 * 3600),
        }
    }
}

/// `[auth.oidc]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OidcSettings {
    /// Issuer, exactly as in the `iss` claim. Its keys are discovered through
    /// `/.well-known/openid-configuration` below this URL.
    #[schemars(with = "String")]
    pub issuer: Url,
    /// Required `aud` claim.
    pub audience: String,
    /// Claim with the organization's id.
    #[serde(default = "org_claim")]
    pub org_claim: String,
    /// Claim with the user's e-mail address.
    #[serde(default = "email_claim")]
    pub email_claim: String,
    /// Claim with the role: `admin`, `compliance` or `member`.
    #[serde(default = "role_claim")]
    pub role_claim: String,
}

fn org_claim() -> String {
    "org_id".into()
}

fn email_claim() -> String {
    "email".into()
}

fn role_claim() -> String {
    "role".into()
}

/// Provider instances by kind.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderSettings {
    /// Admits `http` and loopback base URLs; development only.
    pub allow_insecure: bool,
    /// Private networks that the instances of this file may be in, for example `["10.20.0.0/16"]`: a signing service
    /// of your own. Instances of organizations reach public addresses only.
    #[schemars(with = "Vec<String>")]
    pub allow_networks: Vec<IpNet>,
    /// Signing services.
    pub signing: SigningProviders,
    /// Payment services.
    pub payment: OtherProviders,
    /// Identity challenge services.
    pub kba: OtherProviders,
    /// Text message services.
    pub messaging: OtherProviders,
    /// Services that make PDFs of word processor documents.
    pub conversion: OtherProviders,
    /// Callbacks per minute that one node accepts for one instance; default 3,000.
    pub callbacks_per_minute: Option<u32>,
}

impl ProviderSettings {
    /// Returns the number of callbacks per minute that this node accepts for one instance.
    pub fn callbacks_per_minute(&self) -> u32 {
        self.callbacks_per_minute.unwrap_or(3_000)
    }

    /// Returns the configured instances of a provider slot, or none for a slot of the rules.
    pub fn instances(&self, slot: Slot) -> Option<&BTreeMap<String, ProviderInstance>> {
        match slot {
            Slot::Signing => Some(&self.signing.instances),
            Slot::Payment => Some(&self.payment.instances),
            Slot::Kba => Some(&self.kba.instances),
            Slot::Messaging => Some(&self.messaging.instances),
            Slot::Conversion => Some(&self.conversion.instances),
            Slot::Compliance
            | Slot::Lifecycle
            | Slot::Placement
            | Slot::Documents
            | Slot::Control
            | Slot::Funding => None,
        }
    }

    /// Returns the name of the default instance of a slot.
    pub fn default_of(&self, slot: Slot) -> &str {
        match slot {
            Slot::Payment => self.payment.chosen(),
            Slot::Kba => self.kba.chosen(),
            Slot::Messaging => self.messaging.chosen(),
            Slot::Conversion => self.conversion.chosen(),
            _ => &self.signing.default,
        }
    }
}

/// `[providers.payment]`, `[providers.kba]`, `[providers.messaging]` and `[providers.conversion]`: the instances, and
/// the default among them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OtherProviders {
    /// Default instance; required when there are several.
    pub default: Option<String>,
    /// The configured instances.
    #[serde(flatten)]
    pub instances: BTreeMap<String, ProviderInstance>,
}

impl OtherProviders {
    /// Returns the default instance, or the only one, or the built-in sandbox.
    fn chosen(&self) -> &str {
        match &self.default {
            Some(default) => default,
            None => self
                .instances
                .keys()
                .next()
                .map_or(EMBEDDED, String::as_str),
        }
    }
}

/// `[providers.signing]`: the default instance, and the instances.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SigningProviders {
    /// Instance that new templates use.
    pub default: String,
    /// The configured instances.
    #[serde(flatten)]
    pub instances: BTreeMap<String, ProviderInstance>,
}

impl Default for SigningProviders {
    fn default() -> Self {
        Self {
            default: EMBEDDED.into(),
            instances: BTreeMap::new(),
        }
    }
}

/// `[bulk]`: bulk send.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BulkSettings {
    /// Items in flight at one provider instance, from this node; 0 disables bulk send.
    pub concurrency: usize,
}

impl Default for BulkSettings {
    fn default() -> Self {
        Self { concurrency: 8 }
    }
}

/// The name of the built-in instance of every provider kind.
pub const EMBEDDED: &str = "embedded";

/// Name of the signing instance for documents that require an identity check of their signers
/// (specification, "KBA and template composition").
pub const VERIFIED: &str = "verified";

/// One configured provider instance.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderInstance {
    /// Base URL of its API.
    #[schemars(with = "String")]
    pub base_url: Url,
    /// Hosts the plugin may connect to; default: the host of `base_url`.
    #[serde(default)]
    pub allow_hosts: Option<Vec<String>>,
    /// Timeout of one request.
    #[serde(default = "ten_seconds", deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub timeout: Duration,
    /// Secrets by name; `<name>_file` reads the secret from a file.
    #[serde(default)]
    pub secrets: BTreeMap<String, SecretText>,
    /// Key that payers' browsers receive (payment only).
    #[serde(default)]
    pub publishable_key: Option<String>,
    /// Additional settings of the plugin.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

/// A secret that is redacted in `Debug` output.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SecretText(#[schemars(with = "String")] SecretString);

impl SecretText {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    /// Returns the plain text.
    pub fn reveal(&self) -> &str {
        self.0.expose_secret()
    }
}

/// `[webhooks]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WebhookSettings {
    /// Admits `http` and loopback receivers; development only.
    pub allow_insecure: bool,
    /// Delays between the attempts of a delivery; the last one repeats.
    #[serde(deserialize_with = "durations")]
    #[schemars(with = "Vec<String>")]
    pub retry_delays: Vec<Duration>,
    /// Maximum number of attempts of one delivery.
    pub max_attempts: u32,
    /// Retention of payloads and response bodies. The log of attempts is kept longer.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub retention: Duration,
    /// Retention of the log of attempts; unlimited by default.
    #[serde(deserialize_with = "optional_duration")]
    #[schemars(with = "Option<String>")]
    pub log_retention: Option<Duration>,
    /// Additional trusted certificate authorities for receivers, in PEM.
    pub ca_file: Option<PathBuf>,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        Self {
            allow_insecure: false,
            retry_delays: vec![
                minutes(1),
                minutes(5),
                minutes(30),
                minutes(120),
                minutes(480),
            ],
            max_attempts: 5,
            retention: Duration::from_secs(30 * 86_400),
            log_retention: None,
            ca_file: None,
        }
    }
}

/// `[control]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ControlSettings {
    /// Whether organizations may invite parties that have no organization here. An invited party gets an
    /// organization, with a key for acts of control only.
    pub invitations: bool,
    /// Most identifiers of collateral that an organization declares in 30 days for documents signed elsewhere; each can
    /// hold up other records. 0: no limit.
    pub unsigned_claims: u32,
}

impl Default for ControlSettings {
    fn default() -> Self {
        Self {
            invitations: true,
            unsigned_claims: 5_000,
        }
    }
}

/// `[ledger]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LedgerSettings {
    /// Witnesses (C2SP `tlog-witness`) that each new head of the log is offered to:
    /// `[{ name = "w1", url = "https://witness.example", key = "witness.example+…" }]`.
    pub witnesses: Vec<LogWitnessSettings>,
    /// Number of witnesses that have to cosign a head; default: more than half of them.
    pub quorum: Option<usize>,
}

impl LedgerSettings {
    /// Returns the number of witnesses that have to cosign a head.
    pub fn quorum(&self) -> usize {
        self.quorum.unwrap_or(self.witnesses.len() / 2 + 1)
    }
}

/// One of `ledger.witnesses`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogWitnessSettings {
    /// Name in logs, metrics and `doctor`.
    pub name: String,
    /// URL below which the witness has `add-checkpoint`.
    #[schemars(with = "String")]
    pub url: Url,
    /// Key that verifies its cosignatures, as `holdfast witness key` prints it.
    #[serde(deserialize_with = "witness_key")]
    #[schemars(with = "String")]
    pub key: WitnessKey,
}

/// `[witness]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WitnessSettings {
    /// Name in the cosignatures: an address without its scheme, such as `witness.example`. It stays
    /// the same for the life of the key.
    pub name: Option<String>,
    /// Address that the witness listens on.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// Keys of the logs that get cosignatures, as in the member `public_key` of `GET /ledger/head`.
    /// The name in a key is the origin of its log; a log can have several keys.
    #[serde(deserialize_with = "log_keys")]
    #[schemars(with = "Vec<String>")]
    pub logs: Vec<VerifierKey>,
}

impl Default for WitnessSettings {
    fn default() -> Self {
        Self {
            name: None,
            // Loopback: a proxy terminates TLS.
            listen: SocketAddr::from(([127, 0, 0, 1], 8460)),
            logs: Vec::new(),
        }
    }
}

/// `[log]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogSettings {
    /// `text` or `json`.
    pub format: LogFormat,
    /// A `tracing` filter, for example `info,holdfast=debug`.
    pub filter: String,
}

/// `[traces]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TraceSettings {
    /// OpenTelemetry collector that accepts OTLP over HTTP, for example `http://127.0.0.1:4318`.
    /// Without one, tracing is off.
    #[schemars(with = "Option<String>")]
    pub endpoint: Option<Url>,
    /// Headers sent to the collector, such as `authorization`.
    pub headers: BTreeMap<String, SecretText>,
    /// Fraction of traces that is exported, 0 to 1.
    pub sample: f64,
}

impl Default for TraceSettings {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: BTreeMap::new(),
            sample: 1.0,
        }
    }
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Human-readable text.
    Text,
    /// One JSON object per line.
    Json,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            format: LogFormat::Text,
            filter: "info".into(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            // Loopback: a first start must not offer sandboxes and an empty installation to the network.
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            // Without it, `/metrics` is on the main listener, for this machine only.
            metrics_listen: None,
            public_url: None,
            embed_url: None,
            signing_url: None,
            trusted_proxies: Vec::new(),
            database_url: None,
            storage_url: None,
            storage: StorageSettings::default(),
            data_dir: "data".into(),
            smtp_url: None,
            smtp_ca_file: None,
            // `.invalid` is reserved (RFC 2606), so no real domain gets replies by mistake.
            mail_from: "holdfast <no-reply@holdfast.invalid>".into(),
            mail_bounces: None,
            // Unset is neither production nor a chosen development: `check_exposure` then insists on
            // loopback.
            env: None,
            sweep_interval: None,
            clock_offset: None,
            auth: AuthSettings::default(),
            providers: ProviderSettings::default(),
            seal: SealSettings::default(),
            signatures: SignatureSettings::default(),
            webhooks: WebhookSettings::default(),
            bulk: BulkSettings::default(),
            components: ComponentSettings::default(),
            console: ConsoleSettings::default(),
            request_log_days: 30,
            http: HttpSettings::default(),
            rate_limits: RateLimitSettings::default(),
            control: ControlSettings::default(),
            ledger: LedgerSettings::default(),
            witness: WitnessSettings::default(),
            log: LogSettings::default(),
            traces: TraceSettings::default(),
        }
    }
}

impl Config {
    /// Reads the settings file, if there is one, and the environment.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let mut figment = Figment::new();
        if let Some(file) = file {
            // figment takes a missing file for an empty one, and the server would run with defaults.
            if !file.is_file() {
                return Err(ConfigError::NoFile(file.display().to_string()));
            }
            figment = figment.merge(Toml::file_exact(file));
        }

        // The environment is merged last, because it overrides the file.
        let environment = Env::prefixed("HOLDFAST_").ignore(NOT_SETTINGS).split("__");
        let config: Self = figment
            .merge(environment)
            .extract()
            .map_err(|error| ConfigError::unreadable(&error))?;

        // Checked here, so that no caller can use unchecked settings.
        config.checked()
    }

    /// Returns whether this is a production installation.
    pub fn is_production(&self) -> bool {
        self.env == Some(DeploymentEnvironment::Production)
    }

    /// Returns the URL of the console's server, without a trailing slash.
    pub fn console_url(&self) -> String {
        match &self.console.url {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => self.public_url(),
        }
    }

    /// Returns the origin of the console's pages, which passkeys sign: scheme, host and port.
    pub fn console_origin(&self) -> String {
        let url = self.console_url();
        // Browsers sign the origin without a path and without a default port, and the texts are compared.
        Url::parse(&url).map_or(url, |url| url.origin().ascii_serialization())
    }

    /// Returns the address of a page of the console by its path, for example `envelopes/env_…`; none where the console
    /// is switched off.
    pub fn console_page(&self, path: &str) -> Option<String> {
        let page = format!("{}/console/{path}", self.console_url());
        self.console.enabled.then_some(page)
    }

    /// Returns the public URL, without a trailing slash.
    pub fn public_url(&self) -> String {
        match &self.public_url {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => format!("http://{}", self.listen),
        }
    }

    /// Returns the folder of messages that no server or provider delivers.
    pub fn outbox(&self) -> PathBuf {
        self.data_dir.join("outbox")
    }

    /// Returns `{base_url}`.
    pub fn base_url(&self) -> String {
        format!("{}/api/v2", self.public_url())
    }

    /// Returns `{signing_host}`, without a trailing slash.
    pub fn signing_url(&self) -> String {
        match &self.signing_url {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => format!("{}/sign", self.public_url()),
        }
    }

    /// Returns the address below which an organization's new signing links are, without a trailing slash: on its own
    /// host while that is in use, or else `{signing_host}`.
    pub fn link_url(&self, organization: &OrgSettings) -> String {
        let own = organization.link_host.as_ref();
        match own.filter(|host| host.is_in_use()) {
            Some(host) => format!("{}{}", host.origin(), self.signing_path()),
            None => self.signing_url(),
        }
    }

    /// Returns the address below which a signer's pages are who asked for `host`, as in the header. Cookies are bound
    /// to the host, and a widget's page accepts the installation's only.
    pub fn signing_url_at(&self, organization: &OrgSettings, host: Option<&str>) -> String {
        let own = organization.link_host.as_ref();
        if own.is_some_and(|own| Some(own.host.as_str()) == host) {
            self.link_url(organization)
        } else {
            self.signing_url()
        }
    }

    /// Returns `{embed_host}`, without a trailing slash.
    pub fn embed_url(&self) -> String {
        match &self.embed_url {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => format!("{}/embed", self.public_url()),
        }
    }

    /// Returns the path of `{embed_host}` on this server:
    /// `/embed`, or empty when it has its own host.
    pub fn embed_path(&self) -> String {
        match &self.embed_url {
            Some(url) => url.path().trim_end_matches('/').to_owned(),
            None => "/embed".to_owned(),
        }
    }

    /// Returns the path of `{signing_host}` on this
    /// server: `/sign`, or empty when it has its own host.
    pub fn signing_path(&self) -> String {
        match &self.signing_url {
            Some(url) => url.path().trim_end_matches('/').to_owned(),
            None => "/sign".to_owned(),
        }
    }

    /// Returns the database URL, by default a SQLite file in the data folder.
    pub fn database_url(&self) -> String {
        self.database_url
            .clone()
            .unwrap_or_else(|| format!("sqlite://{}", self.data_dir.join("holdfast.db").display()))
    }

    /// Returns the folder for unnamed temporary files of uploads and downloads.
    pub fn spool_folder(&self) -> PathBuf {
        self.data_dir.join("uploads-in-progress")
    }

    /// Returns where the keys of records are kept; none if records have no keys of their own.
    pub fn record_keys(&self) -> Option<RecordKeyPlace> {
        let place = self.storage.record_keys.as_ref()?;
        let folder = match place.strip_prefix("file://") {
            Some(path) => path,
            None if place.contains("://") => return Some(RecordKeyPlace::Url(place.clone())),
            None => place,
        };

        // An absolute path replaces the data folder.
        Some(RecordKeyPlace::Folder(self.data_dir.join(folder)))
    }

    /// Returns the URL of the object store; none means the folder `objects` in the data folder.
    pub fn storage_url(&self) -> Option<&str> {
        self.storage_url.as_deref()
    }
}

impl ProviderInstance {
    /// Returns all settings that the plugin can read.
    pub fn all_settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.settings.clone();
        settings.insert("base_url".into(), self.base_url.to_string());
        if let Some(key) = &self.publishable_key {
            settings.insert("publishable_key".into(), key.clone());
        }
        settings
    }

    fn read_secret_files(&mut self, instance: &str) -> Result<(), ConfigError> {
        // The keys change while the map is read, so a new map is built.
        let secrets = std::mem::take(&mut self.secrets);
        for (key, value) in secrets {
            let (name, value) = match key.strip_suffix("_file") {
                None => (key, value),
                Some(name) => {
                    let text = std::fs::read_to_string(value.reveal()).map_err(|source| {
                        ConfigError::SecretFile {
                            name: name.into(),
                            instance: instance.into(),
                            file: value.reveal().into(),
                            source,
                        }
                    })?;

                    // Editors and `echo` append a newline, which is never part of a secret.
                    (name.to_owned(), SecretText::new(text.trim()))
                }
            };

            self.secrets.insert(name, value);
        }

        Ok(())
    }
}

fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}

/// Parses `250ms`, `10s`, `5m`, `2h` or `3d`; a day has 24 hours.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let span: Span = text.parse().ok()?;
    // Settings have no calendar: a day is 24 hours, also when clocks are changed.
    let signed = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    // A negative span is no duration.
    signed.try_into().ok()
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text).ok_or_else(|| not_a_duration(&text))
}

fn optional_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

fn durations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Duration>, D::Error> {
    Vec::<String>::deserialize(deserializer)?
        .iter()
        .map(|text| parse_duration(text).ok_or_else(|| not_a_duration(text)))
        .collect()
}

fn witness_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<WitnessKey, D::Error> {
    let text = String::deserialize(deserializer)?;
    WitnessKey::parse(&text).ok_or_else(|| {
        serde::de::Error::custom(format!(
            "{text:?} is no key of a witness (NAME+ID+KEY, with the algorithm of cosignatures)"
        ))
    })
}

fn log_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<VerifierKey>, D::Error> {
    let keys = Vec::<String>::deserialize(deserializer)?.into_iter();
    let parsed = keys.map(|text| {
        VerifierKey::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{text:?} is no verifier key of a log (NAME+ID+KEY)"
            ))
        })
    });
    parsed.collect()
}

fn not_a_duration<E: serde::de::Error>(text: &str) -> E {
    E::custom(format!(
        "{text:?} is no duration like 250ms, 10s, 5m, 2h or 3d"
    ))
}

#[cfg(test)]
#[expect(
    clippy::result_large_err,
    reason = "figment's Jail wants its own error"
)]
mod tests {
    use figment::Jail;
    use holdfast_domain::clock::Timestamp;
    use holdfast_domain::organization::{LinkHost, LinkHostProblem};

    use super::*;

    #[test]
    fn default_settings_match_the_contract() {
        Jail::expect_with(|_| {
            let config = Config::load(None).unwrap();
            assert_eq!(config.public_url(), "http://127.0.0.1:8080");
            assert_eq!(config.base_url(), "http://127.0.0.1:8080/api/v2");
            assert_eq!(config.signing_url(), "http://127.0.0.1:8080/sign");
            assert_eq!(config.signing_path(), "/sign");
            assert_eq!(config.database_url(), "sqlite://data/holdfast.db");
            assert_eq!(config.webhooks.retry_delays.len(), 5);

            Ok(())
        });
    }

    #[test]
    fn a_dedicated_signing_host_is_served_at_its_root() {
        Jail::expect_with(|jail| {
            jail.set_env("HOLDFAST_SIGNING_URL", "https://sign.example/");
            let config = Config::load(None).unwrap();
            assert_eq!(config.signing_url(), "https://sign.example");
            assert_eq!(config.signing_path(), "");
            Ok(())
        });
    }

    #[test]
    fn pages_stay_on_the_host_of_their_organization_that_was_asked_for() {
        let host = LinkHost {
            host: "contracts.oak.example".into(),
            verified_at: Timestamp::from_millis(0),
            problem: None,
        };
        let settings = |host: LinkHost| OrgSettings {
            link_host: Some(host),
            ..OrgSettings::default()
        };
        let config = Config::default();
        let of_installation = config.signing_url();
        let own = "https://contracts.oak.example/sign";

        let in_use = settings(host.clone());
        assert_eq!(config.link_url(&in_use), own);
        let at = |host| config.signing_url_at(&in_use, host);
        assert_eq!(at(Some("contracts.oak.example")), own);
        for other in [None, Some("127.0.0.1:8080"), Some("evil.example")] {
            assert_eq!(at(other), of_installation);
        }

        let ended = settings(LinkHost {
            problem: Some(LinkHostProblem::NotNamed),
            ..host
        });
        assert_eq!(config.link_url(&ended), of_installation);
        let asked = Some("contracts.oak.example");
        assert_eq!(config.signing_url_at(&ended, asked), of_installation);
    }

    #[test]
    fn the_environment_overrides_the_file() {
        Jail::expect_with(|jail| {
            jail.create_file(
                "holdfast.toml",
                "listen = '127.0.0.1:9'\n[webhooks]\nretry_delays = ['1m']",
            )?;
            jail.set_env("HOLDFAST_LISTEN", "127.0.0.1:10");
            jail.set_env("HOLDFAST_WEBHOOKS__RETRY_DELAYS", "[\"1s\", \"250ms\"]");
            jail.set_env("HOLDFAST_CORPUS", "somewhere");

            jail.set_env("HOLDFAST_API_KEY", "of a client on this machine");
            jail.set_env(
                "HOLDFAST_PROVIDERS__ALLOW_NETWORKS",
                "[\"10.20.0.0/16\", \"fd12::/16\"]",
            );
            let config = Config::load(Some(Path::new("holdfast.toml"))).unwrap();
            assert_eq!(config.listen.port(), 10);
            assert_eq!(
                config.webhooks.retry_delays,
                [Duration::from_secs(1), Duration::from_millis(250)]
            );

            Ok(())
        });
    }

    #[test]
    fn an_unknown_or_invalid_setting_is_named() {
        for (name, value, key) in [
            ("HOLDFAST_LISTENN", "127.0.0.1:1", "listenn"),
            (
                "HOLDFAST_PROVIDERS__ALLOW_NETWORKS",
                "[\"10.20.0.0/16\", \"169.254.0.0/16\"]",
                "169.254.0.0/16 is no private network",
            ),
            (
                "HOLDFAST_PROVIDERS__ALLOW_NETWORKS",
                "[\"0.0.0.0/0\"]",
                "is no private network",
            ),
            ("HOLDFAST_WEBHOOKS__RETRIES", "1", "retries"),
            ("HOLDFAST_CLOCK_OFFSET", "soon", "CLOCK_OFFSET"),
            (
                "HOLDFAST_PROVIDERS__SIGNING__DEFAULT",
                "nobody",
                "providers.signing.default",
            ),
        ] {
            Jail::expect_with(|jail| {
                jail.set_env(name, value);
                let error = Config::load(None).unwrap_err().to_string();
                assert!(error.contains(key), "{error}");
                Ok(())
            });
        }
    }

    #[test]
    fn production_refuses_development_settings() {
        for name in [
            "HOLDFAST_CLOCK_OFFSET",
            "HOLDFAST_SWEEP_INTERVAL",
            "HOLDFAST_WEBHOOKS__ALLOW_INSECURE",
            "HOLDFAST_PROVIDERS__ALLOW_INSECURE",
        ] {
            Jail::expect_with(|jail| {
                let value = if name.contains("ALLOW") { "true" } else { "1h" };
                jail.set_env("HOLDFAST_ENV", "production");
                jail.set_env(name, value);
                let error = Config::load(None).unwrap_err().to_string();
                assert!(error.contains("not allowed in production"), "{error}");
                Ok(())
            });
        }
    }

    #[test]
    fn a_secret_can_be_read_from_a_file_and_is_never_printed() {
        Jail::expect_with(|jail| {
            jail.create_file("token", "s3cret\n")?;
            jail.create_file(
                "holdfast.toml",
                "[providers.signing.cloud]\nbase_url = 'https://sign.example/'\nsecrets = { api_key_file = 'token' }",
            )?;
            let config = Config::load(Some(Path::new("holdfast.toml"))).unwrap();
            let cloud = &config.providers.signing.instances["cloud"];
            assert_eq!(cloud.secrets["api_key"].reveal(), "s3cret");
            assert!(!format!("{config:?}").contains("s3cret"));

            Ok(())
        });
    }
}
