//! Everything wired together.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use prometheus_client::metrics::gauge::Gauge;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::components::compiler::Compiler;
use crate::components::egress::Egress;
use crate::components::providers::ProviderLease;
use crate::components::{ComponentError, Components};
use crate::config::{Config, ConfigError, EMBEDDED, SealingKeyFiles, VERIFIED};
use crate::delivery::guard::{self, Lookup, SystemLookup};
use crate::delivery::sender::{Sender, SenderError};
use crate::disk;
use crate::domain::clock::Clock;
use crate::domain::component::{Instance, Slot};
use crate::domain::id::{EnvelopeId, OrgId};
use crate::domain::seal::Sealer;
use crate::fair_queue::FairQueue;
use crate::files::{Files, FilesError};
use crate::http::bodies::Buffered;
use crate::http::limits::Windows;
use crate::keys::{BEARER_TOKENS, Key, Keys};
use crate::mail::Mailer;
use crate::metrics::{Metrics, ProviderLabels};
use crate::room::{self, Room};
use crate::sandbox::Sandbox;
use crate::sealing::{SealError, SealingKey, TimestampAuthority};
use crate::service::access::{KeyUsage, KnownKeys};
use crate::service::bulk::drive::Gates;
use crate::service::bulk::watch::Streams;
use crate::service::callbacks::CallbackLimits;
use crate::service::components::{Followed, load_on_demand, refresh};
use crate::service::copies::Copies;
use crate::service::issuer::Issuer;
use crate::service::live_shadow::Shadows;
use crate::service::log::Sequencer;
use crate::service::pages::Pages;
use crate::service::provider_instance::InstanceConfig;
use crate::service::rate_limit::RateLimits;
use crate::service::{ServiceError, timekeeping, uploads};
use crate::store::{Store, StoreError};

/// The running service. Cheap to clone.
pub type App = Arc<Service>;

/// What every part of the service works with.
pub struct Service {
    /// Settings.
    pub config: Config,
    /// The time.
    pub clock: Clock,
    pub(crate) store: Store,
    pub(crate) files: Files,
    pub(crate) components: Arc<Components>,
    /// Compiles what is uploaded.
    pub(crate) compiler: Compiler,
    /// Candidates beside active components.
    pub(crate) shadows: Shadows,
    /// Which activations this node has taken over.
    pub(crate) followed: Followed,
    pub(crate) mailer: Mailer,
    pub(crate) room: Room,
    /// Of each generation that can be read; the first signs.
    pub(crate) bearer_keys: Vec<Key>,
    pub(crate) embed_keys: Vec<Key>,
    pub(crate) builder_keys: Vec<Key>,
    pub(crate) rate_limits: RateLimits,
    /// Callbacks that providers sent lately.
    pub(crate) callbacks: CallbackLimits,
    pub(crate) key_usage: KeyUsage,
    pub(crate) known_keys: KnownKeys,
    pub(crate) issuer: Option<Issuer>,
    /// Seals authoritative copies.
    pub(crate) sealing: SealingKey,
    /// Vouches for the time of a seal.
    pub(crate) timestamps: Option<TimestampAuthority>,
    /// Sends webhook deliveries.
    pub(crate) webhooks: Sender,
    /// Extends the log of all ledgers.
    pub(crate) log: Sequencer,
    pub(crate) sealer: Arc<Sealer>,
    /// What is counted.
    pub metrics: Metrics,
    /// Until when what the metrics say of rows is new enough.
    pub(crate) gauges_good_until: tokio::sync::Mutex<Option<Instant>>,
    /// What the object store could do when it was last tried.
    pub(crate) storage_seen: tokio::sync::Mutex<Option<(Instant, Result<String, String>)>>,
    /// Who may be at a provider for a bulk batch.
    pub(crate) bulk: Gates,
    /// Who watches bulk batches.
    pub(crate) streams: Streams,
    /// Cancelled when the process is to end: streams end then.
    pub(crate) stopping: CancellationToken,
    /// Bytes of request bodies that are held in memory.
    pub(crate) buffered: Buffered,
    /// Requests of links, tokens and addresses in the last minute.
    pub(crate) windows: Windows,
    /// Bytes of uploads that may be held in memory.
    pub(crate) document_memory: FairQueue,
    /// Copies that signers asked for lately.
    pub(crate) copies: Copies,
    /// Pages of documents that were shown lately.
    pub(crate) pages: Pages,
    /// Stands for payment and identity providers, where that is allowed.
    pub(crate) sandbox: Option<Sandbox>,
    room_api: axum::Router,
    pub(crate) http: reqwest::Client,
    vaulting: Mutex<HashMap<EnvelopeId, Weak<tokio::sync::Mutex<()>>>>,
}

/// Why the service could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database.
    #[error("cannot use the database: {0}")]
    Store(#[from] StoreError),
    /// The database did not let us in.
    #[error("cannot use the database {place}: {source}")]
    Database {
        /// Its server or file, without user and password.
        place: String,
        /// Why not.
        source: StoreError,
    },
    /// The object store.
    #[error("cannot use the object store {place}: {source}")]
    Files {
        /// Its URL without user, password and query.
        place: String,
        /// Why not.
        source: FilesError,
    },
    /// A default component.
    #[error("cannot load a component: {0}")]
    Component(#[from] ComponentError),
    /// The data folder.
    #[error("cannot use the data folder {folder}: {source}")]
    DataFolder {
        /// Which.
        folder: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The cipher for kept answers.
    #[error("cannot set up the cipher for kept answers")]
    Sealer,
    /// The key that seals authoritative copies.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The key that signs the log's checkpoints.
    #[error("cannot set up the key for checkpoints")]
    Log,
    /// The client for webhooks.
    #[error(transparent)]
    Webhooks(#[from] SenderError),
    /// The activations.
    #[error("cannot read which components are active: {0}")]
    Activations(String),
    /// Settings that do not go together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The HTTP client for providers.
    #[error("cannot make an HTTP client: {0}")]
    Http(#[from] reqwest::Error),
}

/// Opens the database and brings its schema up to date.
pub async fn open_store(config: &Config) -> Result<Store, StartError> {
    if config.database_url.is_none() {
        prepare_data_folder(&config.data_dir)?;
    }
    let url = config.database_url();
    let named = |source| StartError::Database {
        place: place(&url),
        source,
    };
    let store = Store::connect(&url).await.map_err(named)?;
    store.migrate().await.map_err(named)?;
    Ok(store)
}

/// A URL as it may be shown: without user, password and query.
pub(crate) fn place(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else {
        // `sqlite:` paths are not always URLs; they hold no secret before the query.
        return url.split('?').next().unwrap_or_default().to_owned();
    };
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.to_string()
}

/// Opens the object store.
pub fn open_files(config: &Config) -> Result<Files, StartError> {
    use_one_tls();
    let files = match config.storage_url() {
        Some(url) => Files::open(url, &config.storage),
        None => Files::local(&config.data_dir.join("objects"))
            .and_then(|files| files.with(&config.storage)),
    };
    files.map_err(|source| StartError::Files {
        place: storage_place(config),
        source,
    })
}

/// The object store as it may be shown.
pub(crate) fn storage_place(config: &Config) -> String {
    match config.storage_url() {
        Some(url) => place(url),
        None => config.data_dir.join("objects").display().to_string(),
    }
}

/// Wires everything together.
pub async fn start(config: Config) -> Result<App, StartError> {
    let files = open_files(&config)?;
    start_with(config, files).await
}

/// As [`start`], with a given object store.
pub async fn start_with(config: Config, files: Files) -> Result<App, StartError> {
    start_over(config, files, Arc::new(SystemLookup)).await
}

/// As [`start_with`], with the names of webhook receivers looked up in `lookup`.
pub async fn start_over(
    config: Config,
    files: Files,
    lookup: Arc<dyn Lookup>,
) -> Result<App, StartError> {
    use_one_tls();
    prepare_data_folder(&config.data_dir)?;
    let keys = keys(&config)?;
    let store = open_store(&config).await?;
    timekeeping::begin(&store).await?;
    let clock = Clock::ahead_by(config.clock_offset.unwrap_or_default());
    let cache = config.data_dir.join("native-code");
    let mut components = Components::load(
        cache,
        keys.derived("native code"),
        config.components.limits()?,
        clock,
    )?;
    components.limit_native_code(config.components.native_code_bytes);
    let components = Arc::new(components);
    let sealer = Arc::new(keys.sealer().ok_or(StartError::Sealer)?);
    let sealing = match config.seal.key()? {
        SealingKeyFiles::Own => {
            SealingKey::open_or_make(&config.data_dir.join("keys/seal"), clock.now())?
        }
        SealingKeyFiles::Pem(key, certificates) => SealingKey::read(&key, &certificates)?,
        SealingKeyFiles::Pkcs12(file, password) => SealingKey::read_pkcs12(&file, &password)?,
    };
    sealing.check(clock.now())?;
    let trust = config.seal.timestamp_trust()?;
    let timestamps = match &config.seal.timestamp_url {
        Some(url) => Some(TimestampAuthority::new(url.clone(), trust)?),
        None => None,
    };
    let log = Sequencer::new(keys.log()).ok_or(StartError::Log)?;
    let metrics = Metrics::new(components.metrics());
    let issuer = match &config.auth.oidc {
        Some(oidc) => Some(Issuer::new(oidc.clone(), config.providers.allow_insecure)?),
        None => None,
    };
    let mailer = Mailer::new(&config)?;
    let room = Room::new(
        store.clone(),
        files.clone(),
        components.clone(),
        clock,
        keys.derived("signing room"),
    );
    let sandbox = (!config.is_production()).then(|| {
        let key = keys.derived("sandboxes");
        Sandbox::new(store.clone(), clock, key, config.public_url())
    });
    let compiler = Compiler::new(
        config.components.compiler.clone(),
        config.components.compile_limit,
    );
    let app = Arc::new(Service {
        compiler,
        followed: Followed::default(),
        gauges_good_until: tokio::sync::Mutex::default(),
        storage_seen: tokio::sync::Mutex::default(),
        shadows: Shadows::default(),
        room_api: room::router(room.clone()),
        bearer_keys: keys.generations(BEARER_TOKENS),
        embed_keys: keys.generations("embed tokens"),
        builder_keys: keys.generations("builder sessions"),
        http: guard::client(config.providers.allow_insecure)?,
        webhooks: Sender::new(&config.webhooks, lookup)?,
        sandbox,
        vaulting: Mutex::new(HashMap::new()),
        rate_limits: RateLimits::default(),
        callbacks: CallbackLimits::default(),
        key_usage: KeyUsage::default(),
        known_keys: KnownKeys::default(),
        pages: Pages::default(),
        bulk: Gates::default(),
        streams: Streams::default(),
        stopping: CancellationToken::new(),
        buffered: Buffered::default(),
        windows: Windows::default(),
        document_memory: FairQueue::new(uploads::IN_MEMORY),
        copies: Copies::default(),
        issuer,
        sealing,
        timestamps,
        log,
        sealer,
        metrics,
        config,
        clock,
        store,
        files,
        components,
        mailer,
        room,
    });
    let service = Arc::downgrade(&app);
    app.components.load_with(move |slot, identity| {
        let service = service.clone();
        async move {
            let app = service
                .upgrade()
                .ok_or_else(|| ComponentError::absent(&identity, "the service is stopping"))?;
            load_on_demand(&app, slot, &identity).await
        }
    });
    // A node that was down follows before it answers.
    refresh(&app)
        .await
        .map_err(|error| StartError::Activations(error.to_string()))?;
    Ok(app)
}

impl Service {
    /// The instance of a kind of provider that an organization uses: the last that it
    /// set up itself, else the installation's default.
    pub(crate) fn instance(&self, slot: Slot, org: &OrgId) -> String {
        let (active, now) = (self.components.active(), self.clock.now());
        match active.newest_instance(slot, org, now) {
            Some(own) => Instance::own(org, own).to_string(),
            None => self.config.providers.default_of(slot).to_owned(),
        }
    }

    /// The signing instance of an organization's new documents. Those whose signers are
    /// asked about their identity go to the instance called [`VERIFIED`], where there is
    /// one.
    pub(crate) fn signing_instance(&self, org: &OrgId, kba_required: bool) -> String {
        let (active, now) = (self.components.active(), self.clock.now());
        let configured = &self.config.providers.signing;
        if kba_required {
            let own = active.at(Slot::Signing, Some(org), VERIFIED, now);
            if own.is_some_and(|(live, own)| own && live.config.is_some()) {
                return Instance::own(org, VERIFIED).to_string();
            }
            if configured.instances.contains_key(VERIFIED) {
                return VERIFIED.into();
            }
        }
        self.instance(Slot::Signing, org)
    }

    /// What a call to a signing provider may use; see [`Self::lease`].
    pub(crate) fn signing_lease(
        &self,
        org: Option<&OrgId>,
        instance: &str,
    ) -> Result<ProviderLease, ServiceError> {
        self.lease(Slot::Signing, org, instance)
    }

    /// What a call to a provider may use.
    ///
    /// `org` is none only for reading a callback, which needs the callback
    /// secret and nothing else.
    ///
    /// # Errors
    /// [`ServiceError::NotConfigured`] when there is no such instance; in production the
    /// sandboxes are none.
    pub(crate) fn lease(
        &self,
        slot: Slot,
        org: Option<&OrgId>,
        instance: &str,
    ) -> Result<ProviderLease, ServiceError> {
        let kind = match slot {
            Slot::Payment => "Payment",
            Slot::Kba => "Identity",
            _ => "Signing",
        };
        let missing =
            || ServiceError::NotConfigured(format!("{kind} provider {instance} is not configured"));
        if instance == EMBEDDED {
            return match (slot, &self.sandbox) {
                (Slot::Payment, Some(sandbox)) => Ok(sandbox.payment_lease(org)),
                (Slot::Kba, Some(sandbox)) => Ok(sandbox.kba_lease()),
                (Slot::Payment | Slot::Kba, None) => Err(ServiceError::NotConfigured(format!(
                    "No {} provider is configured",
                    kind.to_lowercase()
                ))),
                _ => Ok(self.room_lease(org)),
            };
        }
        let at = Instance::parse(instance);
        let (settings, secrets, allow_hosts, timeout, reachable) = if let Some(owner) = &at.org {
            let active = self.components.active();
            let now = self.clock.now();
            let (live, _) = active
                .at(slot, Some(owner), &at.name, now)
                .ok_or_else(missing)?;
            let config = live.config.as_ref().ok_or_else(missing)?;
            let config = InstanceConfig::open(config, &self.sealer, &at).ok_or_else(missing)?;
            (
                config.all_settings(),
                config.secret_texts(),
                config.hosts(),
                config.timeout(),
                None,
            )
        } else {
            let instances = self.config.providers.instances(slot);
            let configured = instances.and_then(|instances| instances.get(instance));
            let configured = configured.ok_or_else(missing)?;
            let own_host = configured.base_url.host_str().unwrap_or_default();
            (
                configured.all_settings(),
                configured.secrets.clone(),
                configured
                    .allow_hosts
                    .clone()
                    .unwrap_or_else(|| vec![own_host.to_owned()]),
                configured.timeout,
                Some(self.provider_reachable(slot, instance)),
            )
        };
        let egress = Egress::network(
            self.http.clone(),
            allow_hosts,
            timeout,
            self.config.providers.allow_insecure,
        );
        Ok(ProviderLease {
            label: format!("{slot} {instance}"),
            settings: Arc::new(settings),
            secrets: Arc::new(secrets),
            egress: match reachable {
                Some(reachable) => egress.noting(reachable),
                None => egress,
            },
            clock: self.clock,
        })
    }

    /// Shows whether an instance of the operator's could be reached.
    pub(crate) fn provider_reachable(&self, slot: Slot, instance: &str) -> Gauge {
        let labels = ProviderLabels {
            slot: slot.to_string(),
            instance: instance.to_owned(),
        };
        let family = &self.metrics.provider_reachable;
        family.get_or_create(&labels).clone()
    }

    fn room_lease(&self, org: Option<&OrgId>) -> ProviderLease {
        let mut secrets =
            BTreeMap::from([("webhook_secret".to_owned(), self.room.webhook_secret())]);
        if let Some(org) = org {
            secrets.insert("api_key".to_owned(), self.room.token(org));
        }
        let base_url = format!("http://{}", room::HOST);
        ProviderLease {
            label: format!("provider.signing {EMBEDDED}"),
            settings: Arc::new(BTreeMap::from([("base_url".to_owned(), base_url)])),
            secrets: Arc::new(secrets),
            egress: Egress::in_process(self.room_api.clone(), room::HOST),
            clock: self.clock,
        }
    }

    /// One vault pipeline at a time per envelope and process: a second call
    /// waits and then finds the work done. Between processes the database
    /// decides.
    pub(crate) fn vaulting(&self, envelope: &EnvelopeId) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self
            .vaulting
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        locks.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = locks.get(envelope).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::new(tokio::sync::Mutex::new(()));
        locks.insert(envelope.clone(), Arc::downgrade(&lock));
        lock
    }
}

/// Several TLS users share the process; the first call decides for all.
pub(crate) fn use_one_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// What an installation keeps in its data folder.
const KEPT: [&str; 7] = [
    "keys",
    "objects",
    "outbox",
    "native-code",
    "holdfast.db",
    "holdfast.db-wal",
    "holdfast.db-shm",
];

/// The folder itself may hold other things, and keeps its mode when it was there before.
fn prepare_data_folder(folder: &Path) -> Result<(), StartError> {
    let prepared = disk::make_folder(folder).and_then(|()| {
        KEPT.iter()
            .try_for_each(|name| disk::make_private(&folder.join(name)))
    });
    prepared.map_err(|source| StartError::DataFolder {
        folder: folder.display().to_string(),
        source,
    })
}

/// The keys of the installation; made on the first start.
pub(crate) fn keys(config: &Config) -> Result<Keys, StartError> {
    Keys::open(&config.data_dir).map_err(|source| StartError::DataFolder {
        folder: config.data_dir.display().to_string(),
        source,
    })
}
