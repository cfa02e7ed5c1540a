//! A signing provider during one unit of work.

use std::sync::Arc;

use bytes::Bytes;

use crate::components::ComponentError;
use crate::components::providers::{ProviderError, ProviderLease, SigningPlugin, signing};
use crate::components::room::RoomRecords;
use crate::config::EMBEDDED;
use crate::domain::component::{ComponentIdentity, Slot};
use crate::domain::id::OrgId;
use crate::room::Records;
use crate::service::{Core, ServiceError};
use crate::store::{StoreError, Tx};

/// The plugin of a signing instance with its lease.
///
/// A vendor's service has carried out a request when it answers. The signing room carries it
/// out when the transaction of [`SigningProvider::write`] commits.
pub struct SigningProvider {
    plugin: SigningPlugin,
    lease: ProviderLease,
    records: Option<Arc<Records>>,
}

/// The provider behind an instance, for one organization.
///
/// # Errors
/// [`ServiceError::NotConfigured`] when there is no such instance.
pub fn provider(core: &Core, org: &OrgId, instance: &str) -> Result<SigningProvider, ServiceError> {
    let mut lease = core.lease(Slot::Signing, instance)?;
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
    /// Which component answers.
    pub fn identity(&self) -> Result<ComponentIdentity, ComponentError> {
        self.plugin.identity()
    }

    /// Writes the pending changes of the signing room; nothing for other providers.
    pub async fn write(&self, tx: &mut Tx) -> Result<(), StoreError> {
        match &self.records {
            Some(records) => records.write(tx).await,
            None => Ok(()),
        }
    }

    /// The same in a transaction of its own.
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

    /// A template with one PDF and these fields; safe to repeat with the same `external_id`.
    pub async fn create_template(
        &self,
        name: &str,
        external_id: &str,
        document: Bytes,
        fields: &[signing::Field],
    ) -> Result<signing::Template, ProviderError> {
        let lease = self.lease.clone();
        let created = self
            .plugin
            .create_template(lease, name, external_id, document, fields);
        created.await
    }

    /// Adds fields to those a template has.
    pub async fn add_fields(
        &self,
        template: &str,
        fields: &[signing::Field],
    ) -> Result<signing::Template, ProviderError> {
        let lease = self.lease.clone();
        self.plugin.add_fields(lease, template, fields).await
    }

    /// A copy of a template; safe to repeat with the same `external_id`.
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

    /// Makes a template one that nothing more is sent of; safe to repeat.
    pub async fn archive_template(&self, template: &str) -> Result<(), ProviderError> {
        self.plugin
            .archive_template(self.lease.clone(), template)
            .await
    }

    /// Invites submitters; safe to repeat with the same external id.
    pub async fn create_submission(
        &self,
        request: signing::SubmissionRequest,
    ) -> Result<signing::Submission, ProviderError> {
        self.plugin
            .create_submission(self.lease.clone(), request)
            .await
    }

    /// The provider's view of a submission.
    pub async fn read_submission(
        &self,
        submission: &str,
    ) -> Result<signing::Submission, ProviderError> {
        self.plugin
            .read_submission(self.lease.clone(), submission)
            .await
    }

    /// Makes a submission unsignable.
    pub async fn archive_submission(&self, submission: &str) -> Result<(), ProviderError> {
        self.plugin
            .archive_submission(self.lease.clone(), submission)
            .await
    }

    /// The executed PDF of a completed submission.
    pub async fn signed_document(&self, submission: &str) -> Result<Bytes, ProviderError> {
        self.plugin
            .signed_document(self.lease.clone(), submission)
            .await
    }
}
