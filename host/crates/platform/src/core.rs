//! The context that every use case receives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio_util::sync::CancellationToken;

use crate::ServiceError;
use crate::components::live_shadow::LiveShadows;
use crate::pace::BatchPace;
use crate::permits::double_pledge::FingerprintKey;
use crate::providers::instance::InstanceConfig;
use crate::request_log::WaitingRequests;
use crate::room::Room;
use crate::sandbox::Sandbox;
use holdfast_adapters::delivery::guard::AllowedAddresses;
use holdfast_adapters::files::Files;
use holdfast_base::config::{Config, EMBEDDED, SecretText, VERIFIED};
use holdfast_base::fair_queue::FairQueue;
use holdfast_base::metrics::{Metrics, ProviderLabels};
use holdfast_base::publishers::BundleVerifier;
use holdfast_components::egress::NetworkAccess;
use holdfast_components::instance_log::InstanceLog;
use holdfast_components::providers::ProviderLease;
use holdfast_components::{ComponentRegistry, Documents, Placement};
use holdfast_domain::at_rest::AtRestCipher;
use holdfast_domain::checkpoint::CheckpointSigner;
use holdfast_domain::clock::Clock;
use holdfast_domain::component::{InstanceReference, Slot};
use holdfast_domain::id::OrgId;
use holdfast_domain::priority::PriorityClass;
use holdfast_evidence::TrustRoots;
use holdfast_store::{Store, StoreError};

/// Shared context of all service functions: settings, clock, storage, components, metrics.
/// Cheap to clone.
#[derive(Clone)]
pub struct Core {
    /// Settings, read and checked at start.
    pub config: Arc<Config>,
    /// Source of the current time.
    pub clock: Clock,
    /// Database handle. Carries the scheduling priority of the work it is used for.
    pub store: Store,
    pub files: Files,
    pub components: Arc<ComponentRegistry>,
    /// Candidate components that run beside the active ones.
    pub shadows: Arc<LiveShadows>,
    /// Encrypts secrets, identity sessions and stored responses at rest.
    pub cipher: Arc<AtRestCipher>,
    /// Signs the heads of the log, with the key that all nodes of the installation share.
    pub log_signer: Arc<CheckpointSigner>,
    /// Key of the fingerprints of records; `None` if no master key of this node opens it.
    pub fingerprint_key: Option<FingerprintKey>,
    /// Budget for documents held in memory, shared fairly between organizations.
    pub document_memory: FairQueue,
    /// Roots of the certificates of signatures in uploads.
    pub signature_roots: Option<Arc<TrustRoots>>,
    /// Verifies signatures on components and states.
    pub bundles: Arc<BundleVerifier>,
    /// HTTP client for requests to providers.
    pub http: reqwest::Client,
    /// The same for the operator's provider instances, which may be in the operator's networks.
    pub own_http: reqwest::Client,
    /// Lines of provider instances that are not stored yet.
    pub instance_log: Arc<InstanceLog>,
    /// Requests that are not stored yet.
    pub request_log: Arc<WaitingRequests>,
    /// How much batches yield to requests.
    pub pace: Arc<BatchPace>,
    /// Metrics of this process.
    pub metrics: Arc<Metrics>,
    /// Cancelled at shutdown; long-lived response streams end then.
    pub stopping: CancellationToken,
}

impl Core {
    /// Returns the same context with its database work at another priority.
    pub fn at(&self, priority: PriorityClass) -> Self {
        Self {
            store: self.store.at(priority),
            ..self.clone()
        }
    }

    /// Returns the built-in signing room.
    pub fn room(&self) -> Room {
        let (files, components) = (self.files.clone(), self.components.clone());
        Room::new(self.store.clone(), files, components, self.clock)
    }

    /// Returns the document reader (placement component) that is active for an organization.
    pub fn placement(&self, org: Option<&OrgId>) -> Placement {
        self.components.placement(org, self.store.priority())
    }

    /// Returns the document writer (documents component) that is active for an organization.
    pub fn documents(&self, org: Option<&OrgId>) -> Documents {
        // A writer that was uploaded may not print the words of a mark, here TEST.
        if let Some(org) = org.filter(|org| org.is_test()) {
            return self
                .components
                .embedded_documents(org, self.store.priority());
        }
        self.components.documents(org, self.store.priority())
    }

    /// Returns the provider instance an organization uses for a slot: the newest one it
    /// configured itself, otherwise the installation's default.
    pub fn instance(&self, slot: Slot, org: &OrgId) -> String {
        // Nothing of a test reaches a provider.
        if org.is_test() {
            return EMBEDDED.into();
        }

        let (active, now) = (self.components.active(), self.clock.now());
        match active.newest_instance(slot, org, now) {
            Some(own) => InstanceReference::own(org, own).to_string(),
            None => self.config.providers.default_of(slot).to_owned(),
        }
    }

    /// Returns the signing instance for an organization's new documents. Envelopes with
    /// identity checks (KBA) use the instance named [`VERIFIED`] if one is configured.
    pub fn signing_instance(&self, org: &OrgId, kba_required: bool) -> String {
        let (active, now) = (self.components.active(), self.clock.now());
        let configured = &self.config.providers.signing;
        if kba_required && !org.is_test() {
            // With settings of its own: an activation of the installation serves the operator's instance.
            let own = active.at(Slot::Signing, Some(org), VERIFIED, now);
            if own.is_some_and(|(live, own)| own && live.config.is_some()) {
                return InstanceReference::own(org, VERIFIED).to_string();
            }
            if configured.instances.contains_key(VERIFIED) {
                return VERIFIED.into();
            }
        }

        self.instance(Slot::Signing, org)
    }

    /// Ends a dry run where it would call a provider.
    pub fn before_provider_call(&self) -> Result<(), StoreError> {
        if self.store.rehearses() {
            Err(StoreError::Rehearsed)
        } else {
            Ok(())
        }
    }

    /// Returns everything a provider call needs: settings, secrets, network access, clock. A dry run ends here, unless
    /// the provider is part of the host.
    ///
    /// The payment, KBA and text message sandboxes run in the host and therefore have no lease.
    ///
    /// # Errors
    /// [`ServiceError::NotConfigured`] when the instance does not exist.
    pub fn lease(&self, slot: Slot, instance: &str) -> Result<ProviderLease, ServiceError> {
        let lease = self.configured(slot, instance)?;
        // Changes of the signing room are part of the caller's transaction, so they are rolled back with it.
        if instance != EMBEDDED {
            self.before_provider_call()?;
        }
        Ok(lease)
    }

    /// As [`Core::lease`], to learn whether the instance exists.
    pub fn configured(&self, slot: Slot, instance: &str) -> Result<ProviderLease, ServiceError> {
        let kind = kind_of(slot);
        let missing =
            || ServiceError::NotConfigured(format!("{kind} provider {instance} is not configured"));
        if instance == EMBEDDED {
            return match slot {
                Slot::Signing => Ok(self.room_lease()),
                _ => Err(missing()),
            };
        }

        let at = InstanceReference::parse(instance);
        if let Some(owner) = &at.org {
            let active = self.components.active();
            let now = self.clock.now();
            let (live, _) = active
                .at(slot, Some(owner), &at.name, now)
                .ok_or_else(missing)?;
            let config = live.config.as_ref().ok_or_else(missing)?;

            // A configuration encrypted with a key that this node lacks counts as missing.
            let config = InstanceConfig::open(config, &self.cipher, &at).ok_or_else(missing)?;
            return Ok(self.lease_with(slot, instance, &config));
        }

        let instances = self.config.providers.instances(slot);
        let configured = instances.and_then(|instances| instances.get(instance));
        let configured = configured.ok_or_else(missing)?;
        let own_host = || {
            vec![
                configured
                    .base_url
                    .host_str()
                    .unwrap_or_default()
                    .to_owned(),
            ]
        };

        let hosts = configured.allow_hosts.clone().unwrap_or_else(own_host);
        let providers = &self.config.providers;
        // Only instances of the operator may be in the operator's networks.
        let allowed = AllowedAddresses::public(providers.allow_insecure)
            .with_networks(&providers.allow_networks);
        let http = self.own_http.clone();
        let egress = NetworkAccess::network(http, hosts, configured.timeout, allowed)
            .noting(self.provider_reachable(slot, instance));

        let (settings, secrets) = (configured.all_settings(), configured.secrets.clone());
        Ok(self.lent(slot, instance, settings, secrets, egress))
    }

    /// Returns what a plugin is lent with an organization's settings of an instance.
    pub fn lease_with(&self, slot: Slot, instance: &str, config: &InstanceConfig) -> ProviderLease {
        // The reachability gauge covers the operator's instances only: instance
        // names chosen by organizations would make its labels unbounded.
        let allowed = AllowedAddresses::public(self.config.providers.allow_insecure);
        let http = self.http.clone();
        let egress = NetworkAccess::network(http, config.hosts(), config.timeout(), allowed);
        let (settings, secrets) = (config.all_settings(), config.secret_texts());
        self.lent(slot, instance, settings, secrets, egress)
    }

    fn lent(
        &self,
        slot: Slot,
        instance: &str,
        settings: BTreeMap<String, String>,
        secrets: BTreeMap<String, SecretText>,
        egress: NetworkAccess,
    ) -> ProviderLease {
        let at = InstanceReference::parse(instance);
        ProviderLease {
            label: format!("{slot} {instance}"),
            settings: Arc::new(settings),
            secrets: Arc::new(secrets),
            egress,
            room: None,
            clock: self.clock,
            log: at
                .org
                .map(|org| self.instance_log.of(&org, slot, &at.name, self.clock)),
        }
    }

    /// Returns the gauge that shows whether one of the operator's instances is reachable.
    pub fn provider_reachable(&self, slot: Slot, instance: &str) -> Gauge {
        let labels = ProviderLabels {
            slot: slot.to_string(),
            instance: instance.to_owned(),
        };
        let family = &self.metrics.provider_reachable;
        family.get_or_create(&labels).clone()
    }

    /// Returns the sandbox provider of a slot (instance `embedded`). `org` is none only for reading a callback.
    ///
    /// # Errors
    /// [`ServiceError::NotConfigured`] in production, where sandboxes are for test data only.
    pub fn sandbox(&self, slot: Slot, org: Option<&OrgId>) -> Result<Sandbox, ServiceError> {
        if self.config.is_production() && org.is_some_and(|org| !org.is_test()) {
            let kind = kind_of(slot).to_lowercase();
            let why = format!("No {kind} provider is configured");
            return Err(ServiceError::NotConfigured(why));
        }
        let url = self.config.public_url();
        let outbox = self.config.outbox();
        Ok(Sandbox::new(self.store.clone(), self.clock, url, outbox))
    }

    /// Returns whether this provider instance is configured.
    pub fn has_provider(&self, slot: Slot, instance: &str) -> bool {
        match (slot, instance) {
            (Slot::Payment | Slot::Kba | Slot::Messaging, EMBEDDED) => !self.config.is_production(),
            _ => self.configured(slot, instance).is_ok(),
        }
    }

    /// Lease for the signing room: no network access. The caller adds the room's records.
    fn room_lease(&self) -> ProviderLease {
        ProviderLease {
            label: format!("{} {EMBEDDED}", Slot::Signing),
            settings: Arc::default(),
            secrets: Arc::default(),
            egress: NetworkAccess::network(
                self.http.clone(),
                Vec::new(),
                Duration::ZERO,
                AllowedAddresses::default(),
            ),
            room: None,
            clock: self.clock,
            log: None,
        }
    }
}

/// Returns the kind of a provider slot in words.
pub fn kind_of(slot: Slot) -> &'static str {
    match slot {
        Slot::Payment => "Payment",
        Slot::Kba => "Identity",
        Slot::Messaging => "Text message",
        Slot::Conversion => "Conversion",
        _ => "Signing",
    }
}
