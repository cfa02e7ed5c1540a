//! Creates the application from its settings.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;

use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use url::Url;

use holdfast_adapters::delivery::guard::{self, AllowedAddresses, DnsLookup, SystemLookup};
use holdfast_adapters::delivery::revocation::RevocationFetcher;
use holdfast_adapters::delivery::sender::{SenderError, WebhookSender};
use holdfast_adapters::files::{Files, FilesError, OpenTransfers};
use holdfast_adapters::mail::MailSender;
use holdfast_adapters::sealing::{SealError, SealingKey, TimestampAuthority, TrustRoots};
use holdfast_base::config::{
    ComponentSettings, Config, ConfigError, RecordKeyPlace, SealingKeyFiles,
};
use holdfast_base::disk;
use holdfast_base::fair_queue::FairQueue;
use holdfast_base::keys::{BEARER_TOKENS, InstallationKeys, RECORD_KEYS};
use holdfast_base::metrics::Metrics;
use holdfast_base::publishers::{self, BundleVerifier, RootError};
use holdfast_base::tls;
use holdfast_components::compiler::ComponentCompiler;
use holdfast_components::{ComponentError, ComponentRegistry};
use holdfast_domain::checkpoint::CheckpointSigner;
use holdfast_domain::clock::Clock;
use holdfast_evidence::TrustError;
use holdfast_platform::Core;
use holdfast_platform::access::issuer::TokenIssuer;
use holdfast_platform::access::rate_limit::RateLimits;
use holdfast_platform::access::windows::{AcceptedCredentials, LocalWindows};
use holdfast_platform::access::{AccessState, KeyUsage, KnownKeys, LOOKUPS_OF_STRANGERS};
use holdfast_platform::components::{
    ActivationFollower, ComponentManager, load_on_demand, refresh,
};
use holdfast_platform::documents;
use holdfast_platform::log::witness::LogWitness;
use holdfast_platform::permits::double_pledge as fingerprints;
use holdfast_service::ServiceState;
use holdfast_service::vault::copies::CopyCache;
use holdfast_service::vault::{EnvelopeLocks, Vault, timekeeping};
use holdfast_store::moves::{self, InstallationMove, MoveState};
use holdfast_store::{Store, StoreError};

pub use holdfast_service::App;

/// Reason the application could not be created.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database failed.
    #[error("cannot use the database: {0}")]
    Store(#[from] StoreError),
    /// The database could not be opened.
    #[error("cannot use the database {place}: {source}")]
    Database {
        /// Its server or file, without user and password.
        place: String,
        /// Error of the database.
        source: StoreError,
    },
    /// The database was left by a move, or is the copy of one that is not complete.
    #[error("cannot use the database {place}: {}", fence_text(.fence))]
    Fenced {
        /// Its server or file, without user and password.
        place: String,
        /// The move.
        fence: Box<InstallationMove>,
    },
    /// The roots of signatures in uploads cannot be read.
    #[error("signatures.trust_file {0}")]
    SignatureTrust(TrustError),
    /// The trusted root of Sigstore cannot be used.
    #[error("components.sigstore_root_file: {0}")]
    SigstoreRoot(RootError),
    /// The object store could not be opened.
    #[error("cannot use the object store {place}: {source}")]
    Files {
        /// Its URL without user, password and query.
        place: String,
        /// Error of the object store.
        source: FilesError,
    },
    /// A built-in component could not be loaded.
    #[error("cannot load a component: {0}")]
    Component(#[from] ComponentError),
    /// The data folder could not be prepared.
    #[error("cannot use the data folder {folder}: {source}")]
    DataFolder {
        /// Path of the folder.
        folder: String,
        /// I/O error.
        source: std::io::Error,
    },
    /// The cipher for stored responses could not be created.
    #[error("cannot set up the cipher for kept answers")]
    Sealer,
    /// The key that seals authoritative copies is unusable.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The key that signs the log's checkpoints is unusable.
    #[error("cannot set up the key for checkpoints")]
    Log,
    /// This installation cannot be a witness.
    #[error("cannot be a witness: {0}")]
    Witness(&'static str),
    /// The webhook client could not be created.
    #[error(transparent)]
    Webhooks(#[from] SenderError),
    /// The active components could not be read.
    #[error("cannot read which components are active: {0}")]
    Activations(String),
    /// Settings contradict each other.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The HTTP client for providers could not be created.
    #[error("cannot make an HTTP client: {0}")]
    Http(#[from] reqwest::Error),
}

/// Opens the database and migrates its schema.
pub async fn open_store(config: &Config) -> Result<Store, StartError> {
    // The embedded database is in the data folder, and SQLite does not create folders.
    if config.database_url.is_none() {
        prepare_data_folder(&config.data_dir)?;
    }

    let url = config.database_url();
    let named = |source| StartError::Database {
        place: place(&url),
        source,
    };
    let store = Store::connect(&url).await.map_err(named)?;
    // Before the migration, which would change a database that was left.
    check_fence(&store, config, &url).await?;
    store.migrate().await.map_err(named)?;

    Ok(store)
}

/// Refuses a database that a move has left or not completed. A complete copy becomes the installation's now: from here
/// on the move cannot be given up.
async fn check_fence(store: &Store, config: &Config, url: &str) -> Result<(), StartError> {
    let Some(fence) = moves::unsettled(store).await? else {
        return Ok(());
    };

    if fence.state == MoveState::Verified {
        let now = Clock::ahead_by(config.clock_offset.unwrap_or_default()).now();
        let (from, to) = (MoveState::Verified, MoveState::Started);
        if moves::change_state(store, &fence.id, from, to, now).await? {
            return Ok(());
        }
    }

    // Another node may have been first, or an operator who gave the move up.
    match moves::unsettled(store).await? {
        None => Ok(()),
        Some(fence) => Err(StartError::Fenced {
            place: place(url),
            fence: Box::new(fence),
        }),
    }
}

/// Explains why a database is not used, and what to do.
fn fence_text(fence: &InstallationMove) -> String {
    let place = &fence.place;
    match fence.state {
        MoveState::Moving => format!(
            "it is being moved to {place}. Run the same `holdfast move --to` again to finish, or with --abandon to give the move up"
        ),
        MoveState::Moved => {
            format!("it was moved to {place}. Set database_url to the new database")
        }
        MoveState::Copying => format!(
            "it is the incomplete copy of {place}. Run the same `holdfast move --to` again, with the settings of before, to finish"
        ),
        MoveState::Verified | MoveState::Started => {
            format!("it has just been taken over from {place}. Start again")
        }
        MoveState::Abandoned => format!(
            "the move from {place} to it was given up. Set database_url back to the database of before, and remove this one"
        ),
    }
}

/// Removes user, password and query from a URL, so that it can be displayed.
pub(crate) fn place(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else {
        // `sqlite:` paths are not always valid URLs; they contain no secret before the query.
        return url.split('?').next().unwrap_or_default().to_owned();
    };
    // The setters fail for URLs without a host only, and those have no user or password.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.to_string()
}

/// Opens the object store.
pub fn open_files(config: &Config) -> Result<Files, StartError> {
    tls::use_one();
    let files = match config.storage_url() {
        Some(url) => Files::open(url, &config.storage),
        None => Files::local(&config.data_dir.join("objects"))
            .and_then(|files| files.with(&config.storage)),
    };
    let files = files.map_err(|source| StartError::Files {
        place: storage_place(config),
        source,
    })?;

    with_record_keys(files, config)
}

/// Adds the keys of records, if they are configured.
fn with_record_keys(files: Files, config: &Config) -> Result<Files, StartError> {
    let Some(place) = config.record_keys() else {
        return Ok(files);
    };

    // The master key is in the data folder, which may be new.
    prepare_data_folder(&config.data_dir)?;
    let master = keys(config)?.generations(RECORD_KEYS);
    files
        .with_record_keys(&place, &config.storage, &master)
        .map_err(|source| StartError::Files {
            place: match &place {
                RecordKeyPlace::Folder(folder) => folder.display().to_string(),
                RecordKeyPlace::Url(url) => self::place(url),
            },
            source,
        })
}

/// Returns the location of the object store, for display.
pub(crate) fn storage_place(config: &Config) -> String {
    match config.storage_url() {
        Some(url) => place(url),
        None => config.data_dir.join("objects").display().to_string(),
    }
}

/// Creates the application from its settings.
pub async fn start(config: Config) -> Result<App, StartError> {
    let files = open_files(&config)?;
    start_with(config, files).await
}

/// Like [`start`], with a given object store.
pub async fn start_with(config: Config, files: Files) -> Result<App, StartError> {
    start_with_lookup(config, files, Arc::new(SystemLookup)).await
}

/// Like [`start_with`], with a given resolver for webhook receivers.
pub async fn start_with_lookup(
    config: Config,
    files: Files,
    lookup: Arc<dyn DnsLookup>,
) -> Result<App, StartError> {
    tls::use_one();
    // Before keys and caches are written to it.
    prepare_data_folder(&config.data_dir)?;
    let keys = keys(&config)?;
    let clock = Clock::ahead_by(config.clock_offset.unwrap_or_default());

    // Takes as long as preparing the database, and needs nothing of it.
    let loading = spawn_blocking({
        let cache = config.data_dir.join("native-code");
        let (key, limits) = (keys.derived("native code"), config.components.limits()?);
        move || ComponentRegistry::load(cache, key, limits, clock)
    });
    let store = open_store(&config).await?;

    // Before the first clock reading below, which must follow the database's time.
    timekeeping::begin(&store).await?;
    let loaded = loading.await;
    let mut components = loaded.unwrap_or_else(|error| resume_unwind(error.into_panic()))?;
    components.limit_native_code(config.components.native_code_bytes);
    let components = Arc::new(components);
    let cipher = Arc::new(keys.cipher().ok_or(StartError::Sealer)?);

    // The start continues without the key: reading and signing do not need it, and an operator can restore the
    // master key meanwhile.
    let fingerprint_key = fingerprints::load_key(&store, &cipher).await?;
    if fingerprint_key.is_none() {
        tracing::error!(
            "no master key opens the key of the fingerprints: records cannot change hands"
        );
    }

    let sealing = match config.seal.key()? {
        SealingKeyFiles::Own => {
            SealingKey::open_or_make(&config.data_dir.join("keys/seal"), clock.now())?
        }
        SealingKeyFiles::Pem(key, certificates) => SealingKey::read(&key, &certificates)?,
        SealingKeyFiles::Pkcs12(file, password) => SealingKey::read_pkcs12(&file, &password)?,
    };

    // An expired certificate stops the start; it would fail every vault-in later.
    sealing.check(clock.now())?;
    // Files of trust are read at the start: a wrong path shows now and not at the first seal.
    let trust = config.seal.timestamp_trust_file.as_deref();
    let trust = trust
        .map(TrustRoots::read)
        .transpose()
        .map_err(SealError::from)?;
    let timestamps = match &config.seal.timestamp_url {
        Some(url) => Some(TimestampAuthority::new(url.clone(), trust)?),
        None => None,
    };

    let signature_roots = config.signatures.trust_file.as_deref();
    let signature_roots = signature_roots.map(TrustRoots::read).transpose();
    let signature_roots = signature_roots
        .map_err(StartError::SignatureTrust)?
        .map(Arc::new);
    let bundles = BundleVerifier::new(config.components.sigstore_root_file.as_deref());
    let bundles = Arc::new(bundles.map_err(StartError::SigstoreRoot)?);

    // The settings were checked for their form. Whether a key is usable takes the cryptography of this
    // module's crates.
    check_publisher_keys(&config.components)?;
    let log_signer = CheckpointSigner::new(keys.log()).ok_or(StartError::Log)?;
    let metrics = Metrics::new(&components.metrics());
    let issuer = match &config.auth.oidc {
        Some(oidc) => Some(TokenIssuer::new(
            oidc.clone(),
            config.providers.allow_insecure,
        )?),
        None => None,
    };

    let mailer = MailSender::new(&config, &keys)?;
    // Two clients: a tenant's addresses have to be public, and the operator's may be in private networks.
    let public = AllowedAddresses::public(config.providers.allow_insecure);
    let own = public
        .clone()
        .with_networks(&config.providers.allow_networks);
    let http = guard::client(public)?;
    let own_http = guard::client(own.clone())?;
    // The certificates of authorities that the operator chose name these places.
    let revocation = RevocationFetcher::new(own)?;

    let webhooks = WebhookSender::new(&config.webhooks, lookup)?;
    let compiling = &config.components;
    let compiler = if compiling.compiles_own_work {
        ComponentCompiler::for_own_work()
    } else {
        ComponentCompiler::new(compiling.compiler.clone(), compiling.compile_limit)
    };

    let core = Core {
        instance_log: Arc::default(),
        request_log: Arc::default(),
        pace: Arc::default(),
        config: Arc::new(config),
        clock,
        store,
        files,
        components,
        shadows: Arc::default(),
        cipher,
        log_signer: Arc::new(log_signer),
        fingerprint_key,
        document_memory: FairQueue::new(documents::IN_MEMORY),
        signature_roots,
        bundles,
        http,
        own_http,
        metrics: Arc::new(metrics),
        // One token for listeners, worker and open streams, so that all of them stop together.
        stopping: CancellationToken::new(),
    };

    let app = Arc::new(ServiceState {
        core,
        access: Arc::new(AccessState {
            // All generations, because tokens outlive a rotation of the master key.
            bearer_keys: keys.generations(BEARER_TOKENS),
            embed_keys: keys.generations("embed tokens"),
            builder_keys: keys.generations("builder sessions"),
            issuer,
            // Limits are counted in memory, by a lease of this node (docs/decisions/0004).
            rate_limits: RateLimits::default(),
            key_usage: KeyUsage::default(),
            known_keys: KnownKeys::default(),
            windows: LocalWindows::default(),
            accepted: AcceptedCredentials::default(),
            strangers: FairQueue::new(LOOKUPS_OF_STRANGERS),
        }),
        management: Arc::new(ComponentManager {
            compiler,
            followed: ActivationFollower::default(),
        }),
        pages: Arc::default(),
        callbacks: Arc::default(),
        transfers: OpenTransfers::default(),
        vault: Arc::new(Vault {
            sealing,
            timestamps,
            revocation,
            log: Arc::default(),
            copies: CopyCache::default(),
            locks: EnvelopeLocks::default(),
        }),
        bulk: Arc::default(),
        webhooks: Arc::new(webhooks),
        mailer: Arc::new(mailer),
        seen: Arc::default(),
    });

    // A weak reference, because the components are owned by the service.
    let service = Arc::downgrade(&app);
    // Components of organizations are loaded by their first call. Loading all would make the start as slow as
    // its slowest upload.
    app.components.load_with(move |slot, identity| {
        let service = service.clone();
        async move {
            let app = service
                .upgrade()
                .ok_or_else(|| ComponentError::absent(&identity, "the service is stopping"))?;
            load_on_demand(&app, &app.management, slot, &identity).await
        }
    });

    // A node that was down must catch up with activations before it answers requests.
    refresh(&app, &app.management)
        .await
        .map_err(|error| StartError::Activations(error.to_string()))?;

    Ok(app)
}

/// Opens this installation as a witness of the logs of others.
pub async fn open_witness(config: &Config) -> Result<LogWitness, StartError> {
    let name = config.witness.name.clone();
    let name = name.ok_or(StartError::Witness("set witness.name first"))?;
    let store = open_store(config).await?;
    prepare_data_folder(&config.data_dir)?;
    let seed = holdfast_base::keys::witness(&config.data_dir).map_err(|source| {
        StartError::DataFolder {
            folder: config.data_dir.display().to_string(),
            source,
        }
    })?;

    let unusable = StartError::Witness("keys/witness.key cannot be used");
    let signer = CheckpointSigner::new(&seed).ok_or(unusable)?;
    let clock = Clock::ahead_by(config.clock_offset.unwrap_or_default());
    let logs = config.witness.logs.clone();
    Ok(LogWitness::new(store, clock, signer, name, logs))
}

/// Entries of the data folder.
const KEPT: [&str; 8] = [
    "keys",
    "objects",
    "record-keys",
    "outbox",
    "native-code",
    "holdfast.db",
    "holdfast.db-wal",
    "holdfast.db-shm",
];

/// Creates the data folder and makes its known entries private. An existing folder keeps its own
/// mode, because it may contain other things.
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

/// Opens the keys of the installation, generating them on the first start.
pub(crate) fn keys(config: &Config) -> Result<InstallationKeys, StartError> {
    InstallationKeys::open(&config.data_dir).map_err(|source| StartError::DataFolder {
        folder: config.data_dir.display().to_string(),
        source,
    })
}

/// Refuses publishers with keys of no use.
fn check_publisher_keys(settings: &ComponentSettings) -> Result<(), ConfigError> {
    let trusted = publishers::problem_of(&settings.trusted);
    let trusted = trusted.map(|found| ("components.trusted", found));
    let signers = publishers::problem_of_signers(&settings.state.keys);
    let signers = signers.map(|found| ("components.state.keys", found));
    match trusted.or(signers) {
        Some((setting, (name, why))) => Err(ConfigError::refused(format!("{setting}.{name}"), why)),
        None => Ok(()),
    }
}
