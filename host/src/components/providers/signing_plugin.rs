//! Calls into plugins of signing providers.

use bytes::Bytes;
use wasmtime::component::Resource;

use super::{Plugin, ProviderError, SigningPre};
use crate::components::error::ComponentError;
use crate::components::lent::{Blob, Lease};

pub use crate::components::bindings::signing::holdfast::signing::types as signing;

/// One component of slot `provider.signing`, with the right to be called.
pub type SigningPlugin = Plugin<SigningPre>;

impl SigningPlugin {
    /// Reads a template back.
    pub async fn read_template(
        &self,
        lease: Lease,
        template: &str,
    ) -> Result<signing::Template, ProviderError> {
        let template = template.to_owned();
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_read_template(store, &template)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// A template with one PDF and these fields; safe to repeat with the same `external_id`.
    pub async fn create_template(
        &self,
        lease: Lease,
        name: &str,
        external_id: &str,
        document: Bytes,
        fields: &[signing::Field],
    ) -> Result<signing::Template, ProviderError> {
        let (name, external_id, fields) =
            (name.to_owned(), external_id.to_owned(), fields.to_vec());
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                let blob = store.data_mut().data.table.push(Blob(document))?;
                plugin
                    .holdfast_signing_signing()
                    .call_create_template(store, &name, &external_id, blob, &fields)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Adds fields to those a template has.
    pub async fn add_fields(
        &self,
        lease: Lease,
        template: &str,
        fields: &[signing::Field],
    ) -> Result<signing::Template, ProviderError> {
        let (template, fields) = (template.to_owned(), fields.to_vec());
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_add_fields(store, &template, &fields)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// A copy of a template; safe to repeat with the same `external_id`.
    pub async fn clone_template(
        &self,
        lease: Lease,
        template: &str,
        name: &str,
        external_id: &str,
    ) -> Result<signing::Template, ProviderError> {
        let (template, name, external_id) =
            (template.to_owned(), name.to_owned(), external_id.to_owned());
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_clone_template(store, &template, &name, &external_id)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Makes a template one that nothing more is sent of; safe to repeat.
    pub async fn archive_template(
        &self,
        lease: Lease,
        template: &str,
    ) -> Result<(), ProviderError> {
        let template = template.to_owned();
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_archive_template(store, &template)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Invites submitters; safe to repeat with the same external id.
    pub async fn create_submission(
        &self,
        lease: Lease,
        request: signing::SubmissionRequest,
    ) -> Result<signing::Submission, ProviderError> {
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_create_submission(store, &request)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// The provider's view of a submission.
    pub async fn read_submission(
        &self,
        lease: Lease,
        submission: &str,
    ) -> Result<signing::Submission, ProviderError> {
        let submission = submission.to_owned();
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_read_submission(store, &submission)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Makes a submission unsignable.
    pub async fn archive_submission(
        &self,
        lease: Lease,
        submission: &str,
    ) -> Result<(), ProviderError> {
        let submission = submission.to_owned();
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_archive_submission(store, &submission)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// The executed PDF of a completed submission.
    pub async fn signed_document(
        &self,
        lease: Lease,
        submission: &str,
    ) -> Result<Bytes, ProviderError> {
        let submission = submission.to_owned();
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                let answer = plugin
                    .holdfast_signing_signing()
                    .call_signed_document(&mut *store, &submission)
                    .await?;
                match answer {
                    Ok(blob) => Ok(Ok(store.data_mut().data.table.delete(owned(&blob))?.0)),
                    Err(error) => Ok(Err(error)),
                }
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Verifies a callback and says what it is about.
    pub async fn read_callback(
        &self,
        lease: Lease,
        callback: signing::Callback,
    ) -> Result<Result<signing::CallbackSubject, signing::CallbackError>, ComponentError> {
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                plugin
                    .holdfast_signing_signing()
                    .call_read_callback(store, &callback)
                    .await
            })
        })
        .await
    }
}

/// The table's handle of a resource the component gave up.
fn owned(blob: &Resource<Blob>) -> Resource<Blob> {
    Resource::new_own(blob.rep())
}
