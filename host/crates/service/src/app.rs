//! The running service: the shared context, and the state of each area.

use std::ops::Deref;
use std::sync::Arc;

use crate::bulk::BulkState;
use crate::gauges::ProbeCache;
use crate::signing::callbacks::CallbackLimits;
use crate::templates::pages::PageCache;
use crate::vault::Vault;
use holdfast_adapters::delivery::sender::WebhookSender;
use holdfast_adapters::files::OpenTransfers;
use holdfast_adapters::mail::MailSender;
use holdfast_domain::priority::PriorityClass;
use holdfast_platform::Core;
use holdfast_platform::access::AccessState;
use holdfast_platform::components::ComponentManager;

/// The running service. Cheap to clone.
pub type App = Arc<ServiceState>;

/// The shared context, plus state that belongs to single areas.
pub struct ServiceState {
    pub core: Core,
    pub access: Arc<AccessState>,
    pub management: Arc<ComponentManager>,
    /// Cache of recently rendered document pages.
    pub pages: Arc<PageCache>,
    /// Rate limits for provider callbacks.
    pub callbacks: Arc<CallbackLimits>,
    /// Uploads and downloads in progress.
    pub transfers: OpenTransfers,
    pub vault: Arc<Vault>,
    pub bulk: Arc<BulkState>,
    /// HTTP sender for webhook deliveries.
    pub webhooks: Arc<WebhookSender>,
    pub mailer: Arc<MailSender>,
    pub seen: Arc<ProbeCache>,
}

impl Deref for ServiceState {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl ServiceState {
    /// Returns the same service with its database work at another priority.
    pub fn at(&self, priority: PriorityClass) -> App {
        self.with(self.core.at(priority))
    }

    /// Returns the same service for dry runs: an operation ends with [`StoreError::Rehearsed`] where it would
    /// commit its first change or call a provider.
    ///
    /// [`StoreError::Rehearsed`]: holdfast_store::StoreError::Rehearsed
    pub fn rehearsing(&self) -> App {
        self.with(Core {
            store: self.core.store.rehearsing(),
            files: self.core.files.rehearsing(),
            // Candidates are compared on real evaluations.
            shadows: Arc::default(),
            ..self.core.clone()
        })
    }

    fn with(&self, core: Core) -> App {
        Arc::new(Self {
            core,
            access: self.access.clone(),
            management: self.management.clone(),
            pages: self.pages.clone(),
            callbacks: self.callbacks.clone(),
            transfers: self.transfers.clone(),
            vault: self.vault.clone(),
            bulk: self.bulk.clone(),
            webhooks: self.webhooks.clone(),
            mailer: self.mailer.clone(),
            seen: self.seen.clone(),
        })
    }
}
