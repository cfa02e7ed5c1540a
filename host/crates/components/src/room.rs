//! The interface `holdfast:host/room`: the signing room's records, for the room's component.
//!
//! It is in the linker of every provider. Uploaded components that import it are refused by
//! inspection (`rules/worlds.rs`), and only calls of the instance `embedded` carry records.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use wasmtime::component::{HasSelf, Linker, Resource};

use super::bindings::room::holdfast::host::room as wit;
use super::engine::LimitedEngine;
use super::lent::{LentBlob, LentResources};

pub use super::error::RoomFailure;
pub use wit::{Area, Field, Invitation, NewSubmission, Submission, Submitter, Template};

/// Signing room records of one organization during one unit of work.
pub trait RoomRecords: Send + Sync {
    fn find_template(&self, id: u64) -> Answer<'_, Option<Template>>;
    fn find_template_of<'a>(&'a self, external_id: &'a str) -> Answer<'a, Option<Template>>;
    fn keep_document(&self, document: Bytes) -> Answer<'_, String>;
    fn put_template(&self, template: Template);
    fn find_submission(&self, id: u64) -> Answer<'_, Option<Submission>>;
    fn find_submission_of<'a>(&'a self, external_id: &'a str) -> Answer<'a, Option<Submission>>;
    fn add_submission(&self, submission: NewSubmission);
    fn archive_submission(&self, id: u64);
    fn executed_document(&self, id: u64) -> Answer<'_, Option<Bytes>>;
}

/// Future result of reading or storing a record.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, RoomFailure>>;

/// Adds the interface to a linker.
pub(super) fn link(linker: &mut Linker<LimitedEngine<LentResources>>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<LentResources>>(linker, |limited| &mut limited.data)
}

impl LentResources {
    /// Counts a host call and returns the records.
    fn room(&mut self) -> wasmtime::Result<Arc<dyn RoomRecords>> {
        self.count()?;
        let room = self.room.clone();
        room.ok_or_else(|| wasmtime::Error::msg("this instance has no signing room"))
    }
}

impl wit::Host for LentResources {
    async fn find_template(&mut self, id: u64) -> wasmtime::Result<Option<Template>> {
        Ok(self.room()?.find_template(id).await?)
    }

    async fn find_template_of(
        &mut self,
        external_id: String,
    ) -> wasmtime::Result<Option<Template>> {
        Ok(self.room()?.find_template_of(&external_id).await?)
    }

    async fn keep_document(&mut self, document: Resource<LentBlob>) -> wasmtime::Result<String> {
        let bytes = self.table.get(&document)?.0.clone();
        Ok(self.room()?.keep_document(bytes).await?)
    }

    async fn put_template(&mut self, template: Template) -> wasmtime::Result<()> {
        self.room()?.put_template(template);
        Ok(())
    }

    async fn find_submission(&mut self, id: u64) -> wasmtime::Result<Option<Submission>> {
        Ok(self.room()?.find_submission(id).await?)
    }

    async fn find_submission_of(
        &mut self,
        external_id: String,
    ) -> wasmtime::Result<Option<Submission>> {
        Ok(self.room()?.find_submission_of(&external_id).await?)
    }

    async fn add_submission(&mut self, submission: NewSubmission) -> wasmtime::Result<()> {
        self.room()?.add_submission(submission);
        Ok(())
    }

    async fn archive_submission(&mut self, id: u64) -> wasmtime::Result<()> {
        self.room()?.archive_submission(id);
        Ok(())
    }

    async fn executed_document(&mut self, id: u64) -> wasmtime::Result<Option<Resource<LentBlob>>> {
        match self.room()?.executed_document(id).await? {
            Some(document) => Ok(Some(self.table.push(LentBlob(document))?)),
            None => Ok(None),
        }
    }
}
