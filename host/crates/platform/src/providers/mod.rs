//! A signing provider for the duration of one unit of work.

pub mod instance;
pub mod links;

use std::sync::Arc;

use bytes::Bytes;

use crate::room::BufferedRoomRecords;
use crate::{Core, ServiceError};
use holdfast_base::config::EMBEDDED;
use holdfast_components::ComponentError;
use holdfast_components::providers::{ProviderError, ProviderLease, SigningPlugin, signing};
use holdfast_components::room::RoomRecords;
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::id::OrgId;
use holdfast_store::{StoreError, WriteTransaction};

/// Plugin of a signing instance, with its lease.
///
/// An external provider has carried out a request when it responds. The built-in signing
/// room carries it out when the transaction of [`SigningProvider::write`] commits.
pub struct SigningProvider {
    plugin: SigningPlugin,
    lease: ProviderLease,
    records: Option<Arc<BufferedRoomRecords>>,
}

/// Returns the provider behind an instance, for one organization.
///
/// # Errors
/// [`ServiceError::NotConfigured`] when the instance does not exist.
pub fn provider(core: &Core, org: &OrgId, instance: &str) -> Result<SigningProvider, ServiceError> {
    let mut lease = core.lease(Slot::Signing, instance)?;
    // Only the built-in room has records here. They wait in memory for the transaction of the caller.
    let records = (instance == EMBEDDED).then(|| Arc::new(core.room().records(org)));
    lease.room = records
        .clone()
        .map(|records| records as Arc<dyn RoomRecords>);

    Ok(SigningProvider {
        plugin: core.components.signing(Some(org), instance),
        lease,
        records,
    })
}

impl SigningProvider {
    /// Returns the identity of the plugin's component.
    pub fn identity(&self) -> Result<ComponentIdentity, ComponentError> {
        self.plugin.identity()
    }

    /// Writes the signing room's pending changes in `tx`. Does nothing for other providers.
    pub async fn write(&self, tx: &mut WriteTransaction) -> Result<(), StoreError> {
        match &self.records {
            // Another provider has carried out the request when it responds.
            Some(records) => records.write(tx).await,
            None => Ok(()),
        }
    }

    /// Like [`SigningProvider::write`], in a transaction of its own.
    pub async fn keep(&self, core: &Core) -> Result<(), StoreError> {
        match &self.records {
            Some(records) if !records.is_written() => {
                let mut tx = core.store.begin().await?;
                records.write(&mut tx).await?;
                tx.commit().await
            }
            _ => Ok(()),
        }
    }

    /// Creates a template with one PDF and its fields. Idempotent per `external_id`.
    pub async fn create_template(
        &self,
        name: &str,
        external_id: &str,
        document: Bytes,
        fields: &[signing::Field],
    ) -> Result<signing::Template, ProviderError> {
        if let Some(records) = &self.records {
            records.store_documents_of(external_id);
        }

        // Each call runs in a fresh instance of the plugin, which takes a lease of its own.
        let lease = self.lease.clone();
        let created = self
            .plugin
            .create_template(lease, name, external_id, document, fields);
        created.await
    }

    /// Adds fields to a template.
    pub async fn add_fields(
        &self,
        template: &str,
        fields: &[signing::Field],
    ) -> Result<signing::Template, ProviderError> {
        let lease = self.lease.clone();
        self.plugin.add_fields(lease, template, fields).await
    }

    /// Copies a template. Idempotent per `external_id`.
    pub async fn clone_template(
        &self,
        template: &str,
        name: &str,
        external_id: &str,
    ) -> Result<signing::Template, ProviderError> {
        let lease = self.lease.clone();
        let clone = self
            .plugin
            .clone_template(lease, template, name, external_id);
        clone.await
    }

    /// Archives a template, so that nothing more is sent from it. Idempotent.
    pub async fn archive_template(&self, template: &str) -> Result<(), ProviderError> {
        self.plugin
            .archive_template(self.lease.clone(), template)
            .await
    }

    /// Creates a submission, which invites its submitters. Idempotent per external id.
    pub async fn create_submission(
        &self,
        request: signing::SubmissionRequest,
    ) -> Result<signing::Submission, ProviderError> {
        self.plugin
            .create_submission(self.lease.clone(), request)
            .await
    }

    /// Reads a submission.
    pub async fn read_submission(
        &self,
        submission: &str,
    ) -> Result<signing::Submission, ProviderError> {
        self.plugin
            .read_submission(self.lease.clone(), submission)
            .await
    }

    /// Archives a submission, so that it cannot be signed.
    pub async fn archive_submission(&self, submission: &str) -> Result<(), ProviderError> {
        self.plugin
            .archive_submission(self.lease.clone(), submission)
            .await
    }

    /// Downloads the executed PDF of a completed submission.
    pub async fn signed_document(&self, submission: &str) -> Result<Bytes, ProviderError> {
        self.plugin
            .signed_document(self.lease.clone(), submission)
            .await
    }
}
