//! Calls into the slots that read and write documents: off the async threads, a
//! few at a time.

use std::sync::LazyLock;

use bytes::Bytes;
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

use super::background;
use super::bindings;
use super::canaries;
use super::engine::Limited;
use super::error::{ComponentError, Failure};
use super::rules::{documents, placement};
use super::slot::{Handle, Probe, World, active};
use crate::domain::component::{ComponentIdentity, Slot};
use crate::fair_queue::{FairQueue, Owner};

pub(super) type PlacementPre = bindings::placement::PlacementRulesPre<Limited<()>>;
pub(super) type DocumentsPre = bindings::documents::DocumentsRulesPre<Limited<()>>;

impl World for PlacementPre {
    const SLOT: Slot = Slot::Placement;

    fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        Self::new(Linker::new(engine).instantiate_pre(component)?)
    }

    fn canary(&self, probe: &Probe<'_>) -> Result<(), ComponentError> {
        canaries::placement(self, probe)
    }
}

impl World for DocumentsPre {
    const SLOT: Slot = Slot::Documents;

    fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        Self::new(Linker::new(engine).instantiate_pre(component)?)
    }

    fn canary(&self, probe: &Probe<'_>) -> Result<(), ComponentError> {
        canaries::documents(self, probe)
    }
}

/// The turns of calls: each may use hundreds of MiB, so that there are few at once.
#[derive(Clone)]
pub(super) struct Turns {
    pub queue: FairQueue,
    pub owner: Owner,
}

/// One component of slot `rules.placement`.
#[derive(Clone)]
pub struct Placement {
    slot: Handle<PlacementPre>,
    turns: Turns,
}

impl Placement {
    pub(super) fn new(slot: Handle<PlacementPre>, turns: Turns) -> Self {
        Self { slot, turns }
    }

    /// The same component at work for an organization, on one of its envelopes or
    /// documents.
    pub(crate) fn for_owner(mut self, owner: Owner) -> Self {
        self.turns.owner = owner;
        self
    }

    /// The component that finds anchors.
    pub fn identity(&self) -> Result<ComponentIdentity, ComponentError> {
        self.slot.identity()
    }

    /// What an upload is; a document that cannot be read is a typed error.
    pub async fn inspect(
        &self,
        pdf: Bytes,
    ) -> Result<Result<placement::DocumentFacts, placement::ReadError>, ComponentError> {
        self.work(move |store, instance| {
            instance
                .holdfast_placement_placement()
                .call_inspect(store, &pdf)
        })
        .await
    }

    /// The lines of one page.
    pub async fn text(
        &self,
        pdf: Bytes,
        page: u32,
    ) -> Result<Result<Vec<placement::TextLine>, placement::ReadError>, ComponentError> {
        self.work(move |store, instance| {
            instance
                .holdfast_placement_placement()
                .call_text(store, &pdf, page)
        })
        .await
    }

    /// Resolves requested fields to rectangles.
    pub async fn place(
        &self,
        pdf: Bytes,
        fields: Vec<placement::FieldRequest>,
    ) -> Result<Result<Vec<placement::ResolvedField>, placement::PlaceError>, ComponentError> {
        self.work(move |store, instance| {
            instance
                .holdfast_placement_placement()
                .call_place(store, &pdf, &fields)
        })
        .await
    }

    /// Every place where an anchor text occurs, in document order.
    pub async fn occurrences(
        &self,
        pdf: Bytes,
        text: String,
        page: Option<u32>,
    ) -> Result<Result<Vec<placement::Area>, placement::ReadError>, ComponentError> {
        self.work(move |store, instance| {
            instance
                .holdfast_placement_placement()
                .call_occurrences(store, &pdf, &text, page)
        })
        .await
    }

    /// The fields written into the document as tags.
    pub async fn tags(
        &self,
        pdf: Bytes,
    ) -> Result<Result<Vec<placement::ResolvedField>, placement::PlaceError>, ComponentError> {
        self.work(move |store, instance| {
            instance
                .holdfast_placement_placement()
                .call_tags(store, &pdf)
        })
        .await
    }

    async fn work<R: Send + 'static>(
        &self,
        work: impl FnOnce(
            &mut Store<Limited<()>>,
            &bindings::placement::PlacementRules,
        ) -> wasmtime::Result<R>
        + Send
        + 'static,
    ) -> Result<R, ComponentError> {
        heavy(&self.slot, &self.turns, move |store, pre| {
            let instance = pre.instantiate(&mut *store)?;
            work(store, &instance)
        })
        .await
    }
}

/// One component of slot `rules.documents`.
#[derive(Clone)]
pub struct Documents {
    slot: Handle<DocumentsPre>,
    turns: Turns,
}

impl Documents {
    pub(super) fn new(slot: Handle<DocumentsPre>, turns: Turns) -> Self {
        Self { slot, turns }
    }

    /// The same component at work for an organization, on one of its envelopes or
    /// documents.
    pub(crate) fn for_owner(mut self, owner: Owner) -> Self {
        self.turns.owner = owner;
        self
    }

    /// Which component answers.
    pub fn identity(&self) -> Result<ComponentIdentity, ComponentError> {
        self.slot.identity()
    }

    /// Removes tags from the pages.
    pub async fn strip_tags(
        &self,
        pdf: Bytes,
    ) -> Result<Result<Vec<u8>, documents::DocumentError>, ComponentError> {
        self.work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_strip_tags(store, &pdf)
        })
        .await
    }

    /// Writes values at their places.
    pub async fn fill(
        &self,
        pdf: Bytes,
        fields: Vec<documents::FilledField>,
    ) -> Result<Result<Vec<u8>, documents::DocumentError>, ComponentError> {
        self.work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_fill(store, &pdf, &fields)
        })
        .await
    }

    /// Marks every page as the authoritative or a non-authoritative copy.
    pub async fn mark(
        &self,
        pdf: Bytes,
        request: documents::MarkRequest,
    ) -> Result<Result<documents::Marked, documents::DocumentError>, ComponentError> {
        self.work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_mark(store, &pdf, &request)
        })
        .await
    }

    /// A document with an empty place for a signature.
    pub async fn prepare_seal(
        &self,
        pdf: Bytes,
        request: documents::SealRequest,
    ) -> Result<Result<documents::SealSpace, documents::DocumentError>, ComponentError> {
        self.work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_prepare_seal(store, &pdf, &request)
        })
        .await
    }

    /// A one-page document that shows the picture.
    pub async fn picture_to_pdf(
        &self,
        picture: documents::Picture,
    ) -> Result<Result<Vec<u8>, documents::DocumentError>, ComponentError> {
        self.work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_picture_to_pdf(store, &picture)
        })
        .await
    }

    /// One document with the pages of all, in this order.
    pub async fn merge(
        &self,
        pdfs: Vec<Bytes>,
    ) -> Result<Result<Vec<u8>, documents::DocumentError>, ComponentError> {
        self.work(move |store, instance| {
            let pdfs: Vec<Vec<u8>> = pdfs.iter().map(|pdf| pdf.to_vec()).collect();
            instance
                .holdfast_documents_documents()
                .call_merge(store, &pdfs)
        })
        .await
    }

    /// A page as a picture, `width` pixels wide.
    pub async fn page_image(
        &self,
        pdf: Bytes,
        page: u32,
        width: u32,
    ) -> Result<Result<documents::PageImage, documents::DocumentError>, ComponentError> {
        self.work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_page_image(store, &pdf, page, width)
        })
        .await
    }

    /// The custody record as PDF/A-3b.
    pub async fn custody_record(
        &self,
        facts: documents::CustodyFacts,
    ) -> Result<Result<Vec<u8>, documents::DocumentError>, ComponentError> {
        self.work(move |store, instance| {
            instance
                .holdfast_documents_documents()
                .call_custody_record(store, &facts)
        })
        .await
    }

    async fn work<R: Send + 'static>(
        &self,
        work: impl FnOnce(
            &mut Store<Limited<()>>,
            &bindings::documents::DocumentsRules,
        ) -> wasmtime::Result<R>
        + Send
        + 'static,
    ) -> Result<R, ComponentError> {
        heavy(&self.slot, &self.turns, move |store, pre| {
            let instance = pre.instantiate(&mut *store)?;
            work(store, &instance)
        })
        .await
    }
}

async fn heavy<P: World, R: Send + 'static>(
    slot: &Handle<P>,
    turns: &Turns,
    work: impl FnOnce(&mut Store<Limited<()>>, &P) -> wasmtime::Result<R> + Send + 'static,
) -> Result<R, ComponentError> {
    let held = slot.ready().await?;
    // A default that is still to be loaded is loaded below, off the async threads.
    if let Some(Err(error)) = LazyLock::get(&held) {
        return Err(error.again());
    }
    let Some(turn) = turns.queue.turn(&turns.owner, 1).await else {
        return Err(ComponentError {
            component: "documents".into(),
            kind: Failure::Busy,
            by_document: false,
        });
    };
    let task = background::run(move || {
        let _turn = turn;
        active(&held)?
            .call(work)
            .map_err(ComponentError::on_document)
    });
    task.await.unwrap_or_else(|error| {
        Err(ComponentError {
            component: "documents".into(),
            kind: Failure::Trap(error.to_string()),
            by_document: false,
        })
    })
}
