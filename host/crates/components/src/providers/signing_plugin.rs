//! Calls of signing plugins.

use bytes::Bytes;
use wasmtime::component::Resource;

use super::{PluginRuntime, ProviderError, SigningPre};
use crate::error::ComponentError;
use crate::lent::{LentBlob, LentHost};

pub use crate::bindings::signing::holdfast::signing::types as signing;

/// Component of slot `provider.signing`.
pub type SigningPlugin = PluginRuntime<SigningPre>;

impl SigningPlugin {
    /// Reads a template.
    pub async fn read_template(
        &self,
        lease: LentHost,
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

    /// Creates a template with one PDF and these fields. Idempotent by `external_id`.
    pub async fn create_template(
        &self,
        lease: LentHost,
        name: &str,
        external_id: &str,
        document: Bytes,
        fields: &[signing::Field],
    ) -> Result<signing::Template, ProviderError> {
        let (name, external_id, fields) =
            (name.to_owned(), external_id.to_owned(), fields.to_vec());
        self.call(lease, move |store, plugin| {
            Box::pin(async move {
                // The document goes as a handle, because a copy in the
                // component's memory could exceed its limit.
                let blob = store.data_mut().data.table.push(LentBlob(document))?;
                plugin
                    .holdfast_signing_signing()
                    .call_create_template(store, &name, &external_id, blob, &fields)
                    .await
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Adds fields to a template.
    pub async fn add_fields(
        &self,
        lease: LentHost,
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

    /// Copies a template. Idempotent by `external_id`.
    pub async fn clone_template(
        &self,
        lease: LentHost,
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

    /// Archives a template: nothing more can be sent of it. Idempotent.
    pub async fn archive_template(
        &self,
        lease: LentHost,
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

    /// Creates a submission, which invites the signers. Idempotent by external id.
    pub async fn create_submission(
        &self,
        lease: LentHost,
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

    /// Reads a submission.
    pub async fn read_submission(
        &self,
        lease: LentHost,
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

    /// Archives a submission: it can no longer be signed.
    pub async fn archive_submission(
        &self,
        lease: LentHost,
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

    /// Returns the executed document of a completed submission.
    pub async fn signed_document(
        &self,
        lease: LentHost,
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
                    // Taking the handle out of the table gives the bytes without a copy.
                    Ok(blob) => Ok(Ok(store.data_mut().data.table.delete(owned(&blob))?.0)),
                    Err(error) => Ok(Err(error)),
                }
            })
        })
        .await?
        .map_err(ProviderError::from)
    }

    /// Verifies a callback and returns its subject.
    pub async fn read_callback(
        &self,
        lease: LentHost,
        callback: signing::Callback,
    ) -> Result<Result<signing::CallbackSubject, signing::CallbackError>, ComponentError> {
        // The plugin's own error stays: a callback with a wrong signature is no failure of the provider.
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

/// Returns the table handle of a resource that the component passed to the host.
pub(super) fn owned(blob: &Resource<LentBlob>) -> Resource<LentBlob> {
    Resource::new_own(blob.rep())
}
