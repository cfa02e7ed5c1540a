//! What every part of the service works with.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio_util::sync::CancellationToken;

use crate::components::egress::Egress;
use crate::components::providers::ProviderLease;
use crate::components::{Components, Documents, Placement};
use crate::config::{Config, EMBEDDED, VERIFIED};
use crate::delivery::sender::Sender;
use crate::domain::clock::Clock;
use crate::domain::component::{Instance, Slot};
use crate::domain::id::OrgId;
use crate::domain::priority::Priority;
use crate::domain::seal::Sealer;
use crate::fair_queue::FairQueue;
use crate::files::Files;
use crate::mail::Mailer;
use crate::metrics::{Metrics, ProviderLabels};
use crate::room::Room;
use crate::sandbox::Sandbox;
use crate::service::ServiceError;
use crate::service::access::Access;
use crate::service::bulk::Bulk;
use crate::service::components::Management;
use crate::service::components::live_shadow::Shadows;
use crate::service::gauges::Seen;
use crate::service::signing::callbacks::CallbackLimits;
use crate::service::signing::provider_instance::InstanceConfig;
use crate::service::templates::pages::Pages;
use crate::service::vault::Vault;
use crate::store::Store;

/// The running service. Cheap to clone.
pub type App = Arc<Service>;

/// What every part of the service works with. Cheap to clone.
#[derive(Clone)]
pub struct Core {
    /// Settings.
    pub config: Arc<Config>,
    /// The time.
    pub clock: Clock,
    /// Knows the priority of the work that this is for.
    pub(crate) store: Store,
    pub(crate) files: Files,
    pub(crate) components: Arc<Components>,
    /// Candidates beside active components.
    pub(crate) shadows: Arc<Shadows>,
    /// Seals secrets, sessions and answers.
    pub(crate) sealer: Arc<Sealer>,
    /// Bytes of documents that may be held in memory.
    pub(crate) document_memory: FairQueue,
    /// For requests to providers.
    pub(crate) http: reqwest::Client,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Cancelled when the process is to end: streams end then.
    pub(crate) stopping: CancellationToken,
}

/// What every part works with, and the state that single areas keep.
pub struct Service {
    pub(crate) core: Core,
    pub(crate) access: Arc<Access>,
    pub(crate) management: Arc<Management>,
    /// Pages of documents that were shown lately.
    pub(crate) pages: Arc<Pages>,
    /// Callbacks that providers sent lately.
    pub(crate) callbacks: Arc<CallbackLimits>,
    pub(crate) vault: Arc<Vault>,
    pub(crate) bulk: Arc<Bulk>,
    /// Sends webhook deliveries.
    pub(crate) webhooks: Arc<Sender>,
    pub(crate) mailer: Arc<Mailer>,
    pub(crate) seen: Arc<Seen>,
}

impl Deref for Service {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl Service {
    /// The same service for work of another priority.
    pub(crate) fn at(&self, priority: Priority) -> App {
        let store = self.core.store.at(priority);
        Arc::new(Self {
            core: Core {
                store,
                ..self.core.clone()
            },
            access: self.access.clone(),
            management: self.management.clone(),
            pages: self.pages.clone(),
            callbacks: self.callbacks.clone(),
            vault: self.vault.clone(),
            bulk: self.bulk.clone(),
            webhooks: self.webhooks.clone(),
            mailer: self.mailer.clone(),
            seen: self.seen.clone(),
        })
    }
}

impl Core {
    /// The signing room, the provider that is built in.
    pub(crate) fn room(&self) -> Room {
        let (files, components) = (self.files.clone(), self.components.clone());
        Room::new(self.store.clone(), files, components, self.clock)
    }

    /// The reader of documents that is active for an organization.
    pub(crate) fn placement(&self, org: Option<&OrgId>) -> Placement {
        self.components.placement(org, self.store.priority())
    }

    /// The writer of documents that is active for an organization.
    pub(crate) fn documents(&self, org: Option<&OrgId>) -> Documents {
        self.components.documents(org, self.store.priority())
    }

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

    /// The sandbox of a slot, instance `embedded`.
    ///
    /// # Errors
    /// [`ServiceError::NotConfigured`] in production, which has none.
    pub(crate) fn sandbox(&self, slot: Slot) -> Result<Sandbox, ServiceError> {
        if self.config.is_production() {
            let kind = kind_of(slot).to_lowercase();
            let why = format!("No {kind} provider is configured");
            return Err(ServiceError::NotConfigured(why));
        }
        let url = self.config.public_url();
        Ok(Sandbox::new(self.store.clone(), self.clock, url))
    }

    /// Whether there is such an instance.
    pub(crate) fn has_provider(&self, slot: Slot, instance: &str) -> bool {
        match (slot, instance) {
            (Slot::Payment | Slot::Kba, EMBEDDED) => self.sandbox(slot).is_ok(),
            _ => self.lease(slot, instance).is_ok(),
        }
    }

    /// The signing room reaches nothing but its records.
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
}

fn kind_of(slot: Slot) -> &'static str {
    match slot {
        Slot::Payment => "Payment",
        Slot::Kba => "Identity",
        _ => "Signing",
    }
}
