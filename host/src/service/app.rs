//! What every part of the service works with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use prometheus_client::metrics::gauge::Gauge;
use tokio_util::sync::CancellationToken;

use crate::components::Components;
use crate::components::compiler::Compiler;
use crate::components::egress::Egress;
use crate::components::providers::ProviderLease;
use crate::config::{Config, EMBEDDED, VERIFIED};
use crate::delivery::sender::Sender;
use crate::domain::clock::Clock;
use crate::domain::component::{Instance, Slot};
use crate::domain::id::{EnvelopeId, OrgId};
use crate::domain::seal::Sealer;
use crate::fair_queue::FairQueue;
use crate::files::Files;
use crate::keys::Key;
use crate::mail::Mailer;
use crate::metrics::{Metrics, ProviderLabels};
use crate::room::Room;
use crate::sandbox::Sandbox;
use crate::sealing::{SealingKey, TimestampAuthority};
use crate::service::ServiceError;
use crate::service::access::issuer::Issuer;
use crate::service::access::rate_limit::RateLimits;
use crate::service::access::windows::Windows;
use crate::service::access::{KeyUsage, KnownKeys};
use crate::service::bulk::drive::Gates;
use crate::service::bulk::watch::Streams;
use crate::service::components::Followed;
use crate::service::components::live_shadow::Shadows;
use crate::service::signing::callbacks::CallbackLimits;
use crate::service::signing::provider_instance::InstanceConfig;
use crate::service::templates::pages::Pages;
use crate::service::vault::copies::Copies;
use crate::service::vault::log::Sequencer;
use crate::store::Store;

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
    pub(crate) http: reqwest::Client,
    pub(crate) vaulting: Mutex<HashMap<EnvelopeId, Weak<tokio::sync::Mutex<()>>>>,
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

    /// What a call to a provider may use.
    ///
    /// `org` is none only for reading a callback, which needs the callback
    /// secret and nothing else.
    ///
    /// # Errors
    /// [`ServiceError::NotConfigured`] when there is no such instance. The sandboxes need no
    /// lease and have none.
    pub(crate) fn lease(&self, slot: Slot, instance: &str) -> Result<ProviderLease, ServiceError> {
        let kind = kind_of(slot);
        let missing =
            || ServiceError::NotConfigured(format!("{kind} provider {instance} is not configured"));
        if instance == EMBEDDED {
            return match slot {
                Slot::Signing => Ok(self.room_lease()),
                _ => Err(missing()),
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
            room: None,
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

    /// The signing room reaches nothing but its records.
    /// The sandbox of a slot, instance `embedded`.
    ///
    /// # Errors
    /// [`ServiceError::NotConfigured`] in production, which has none.
    pub(crate) fn sandbox(&self, slot: Slot) -> Result<&Sandbox, ServiceError> {
        let kind = kind_of(slot).to_lowercase();
        let none = || ServiceError::NotConfigured(format!("No {kind} provider is configured"));
        self.sandbox.as_ref().ok_or_else(none)
    }

    /// Whether there is such an instance.
    pub(crate) fn has_provider(&self, slot: Slot, instance: &str) -> bool {
        match (slot, instance) {
            (Slot::Payment | Slot::Kba, EMBEDDED) => self.sandbox.is_some(),
            _ => self.lease(slot, instance).is_ok(),
        }
    }

    fn room_lease(&self) -> ProviderLease {
        ProviderLease {
            label: format!("{} {EMBEDDED}", Slot::Signing),
            settings: Arc::default(),
            secrets: Arc::default(),
            egress: Egress::network(self.http.clone(), Vec::new(), Duration::ZERO, false),
            room: None,
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

fn kind_of(slot: Slot) -> &'static str {
    match slot {
        Slot::Payment => "Payment",
        Slot::Kba => "Identity",
        _ => "Signing",
    }
}
