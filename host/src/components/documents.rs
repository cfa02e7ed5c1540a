//! Calls into the slots that read and write documents: off the async threads, a
//! few at a time.

use std::sync::LazyLock;

use bytes::Bytes;
use wasmtime::Store;

use super::background;
use super::engine::Limited;
use super::error::{ComponentError, Failure};
use super::rules::{documents, placement};
use super::slot::{Handle, World, active};
use crate::domain::component::ComponentIdentity;
use crate::domain::priority::Priority;
use crate::fair_queue::{FairQueue, Owner};

pub(super) use crate::rules::rules::{DocumentsPre, PlacementPre};

/// The turns of calls: each may use hundreds of MiB, so that there are few at once.
#[derive(Clone)]
pub(super) struct Turns {
    pub queue: FairQueue,
    pub owner: Owner,
    pub priority: Priority,
}

/// Result of a call: the component's answer, or its error about the document.
pub type Answer<T, E> = Result<Result<T, E>, ComponentError>;

/// One component of a slot that works on documents.
#[derive(Clone)]
pub struct OnDocuments<P> {
    slot: Handle<P>,
    turns: Turns,
}

/// One component of slot `rules.placement`.
pub type Placement = OnDocuments<PlacementPre>;
/// One component of slot `rules.documents`.
pub type Documents = OnDocuments<DocumentsPre>;

impl<P: World> OnDocuments<P> {
    pub(super) fn new(slot: Handle<P>, turns: Turns) -> Self {
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

    async fn work<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store<Limited<()>>, &P) -> wasmtime::Result<R> + Send + 'static,
    ) -> Result<R, ComponentError> {
        let held = self.slot.ready().await?;
        // A default that is still to be loaded is loaded below, off the async threads.
        if let Some(Err(error)) = LazyLock::get(&held) {
            return Err(error.again());
        }
        let Turns {
            queue,
            owner,
            priority,
        } = &self.turns;
        let Some(turn) = queue.turn(owner, *priority, 1).await else {
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
}

/// Defines methods that each call one function of the component's interface.
macro_rules! calls {
    ($interface:ident: $(
        $(#[$about:meta])*
        fn $name:ident = $call:ident($($argument:ident: $of:ty => $passed:expr),*)
            -> $answer:ty, $error:ty;
    )*) => {$(
        $(#[$about])*
        pub async fn $name(&self, $($argument: $of),*) -> Answer<$answer, $error> {
            self.work(move |store, pre| {
                let instance = pre.instantiate(&mut *store)?;
                instance.$interface().$call(store, $($passed),*)
            })
            .await
        }
    )*};
}

impl Placement {
    calls! { holdfast_placement_placement:
        /// What an upload is; a document that cannot be read is a typed error.
        fn inspect = call_inspect(pdf: Bytes => &pdf)
            -> placement::DocumentFacts, placement::ReadError;
        /// The lines of one page.
        fn text = call_text(pdf: Bytes => &pdf, page: u32 => page)
            -> Vec<placement::TextLine>, placement::ReadError;
        /// Resolves requested fields to rectangles.
        fn place = call_place(pdf: Bytes => &pdf, fields: Vec<placement::FieldRequest> => &fields)
            -> Vec<placement::ResolvedField>, placement::PlaceError;
        /// Every place where an anchor text occurs, in document order.
        fn occurrences = call_occurrences(
            pdf: Bytes => &pdf,
            text: String => &text,
            page: Option<u32> => page
        ) -> Vec<placement::Area>, placement::ReadError;
        /// The fields written into the document as tags.
        fn tags = call_tags(pdf: Bytes => &pdf)
            -> Vec<placement::ResolvedField>, placement::PlaceError;
    }
}

impl Documents {
    calls! { holdfast_documents_documents:
        /// Removes tags from the pages.
        fn strip_tags = call_strip_tags(pdf: Bytes => &pdf) -> Vec<u8>, documents::DocumentError;
        /// Writes values at their places.
        fn fill = call_fill(pdf: Bytes => &pdf, fields: Vec<documents::FilledField> => &fields)
            -> Vec<u8>, documents::DocumentError;
        /// Marks every page as the authoritative or a non-authoritative copy.
        fn mark = call_mark(pdf: Bytes => &pdf, request: documents::MarkRequest => &request)
            -> documents::Marked, documents::DocumentError;
        /// A document with an empty place for a signature.
        fn prepare_seal = call_prepare_seal(
            pdf: Bytes => &pdf,
            request: documents::SealRequest => &request
        ) -> documents::SealSpace, documents::DocumentError;
        /// A one-page document that shows the picture.
        fn picture_to_pdf = call_picture_to_pdf(picture: documents::Picture => &picture)
            -> Vec<u8>, documents::DocumentError;
        /// One document with the pages of all, in this order.
        fn merge = call_merge(pdfs: Vec<Bytes> => &copied(&pdfs))
            -> Vec<u8>, documents::DocumentError;
        /// A page as a picture, `width` pixels wide.
        fn page_image = call_page_image(pdf: Bytes => &pdf, page: u32 => page, width: u32 => width)
            -> documents::PageImage, documents::DocumentError;
        /// The custody record as PDF/A-3b.
        fn custody_record = call_custody_record(facts: documents::CustodyFacts => &facts)
            -> Vec<u8>, documents::DocumentError;
    }
}

/// Copies the documents into the lists that the call takes.
fn copied(pdfs: &[Bytes]) -> Vec<Vec<u8>> {
    pdfs.iter().map(|pdf| pdf.to_vec()).collect()
}
