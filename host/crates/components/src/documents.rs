//! Calls of the slots that read and write documents: off the async threads, a
//! few at a time.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use wasmtime::Store;

use super::background;
use super::contract_facts;
use super::engine::LimitedEngine;
use super::error::{CallFailure, ComponentError};
use super::rules::document_values::{BoxedValue, FlowingField, Misfit};
use super::rules::handwriting::{HandwritingStyle, WrittenField};
use super::rules::{
    completion, copies, documents, early_handwriting, field_rules, form_fields, found, long_term,
    placement, sources, variables, vaulting, watermarks, wording, wordings,
};
use super::slot::{ComponentHandle, ComponentWorld, active};
use holdfast_base::fair_queue::{FairQueue, WorkOwner};
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::fact_map::{FactAnswers, FactMapDocument, FactWords};
use holdfast_domain::priority::PriorityClass;

pub(super) use holdfast_rules::rules::{DocumentsPre, PlacementAdditions, PlacementPre};

/// Queue position of a caller. Only a few calls run at once, because each may use hundreds of MiB.
#[derive(Clone)]
pub(super) struct DocumentTurns {
    pub queue: FairQueue,
    pub owner: WorkOwner,
    pub priority: PriorityClass,
}

/// Result of a call: the component's result, or its error about the document.
pub type Answer<T, E> = Result<Result<T, E>, ComponentError>;

/// Component of a slot that works on documents.
#[derive(Clone)]
pub struct OnDocuments<P> {
    slot: ComponentHandle<P>,
    turns: DocumentTurns,
}

/// Component of slot `rules.placement`.
pub type Placement = OnDocuments<PlacementPre>;
/// Component of slot `rules.documents`.
pub type Documents = OnDocuments<DocumentsPre>;

/// Mark with its words in another language than English.
#[derive(Clone)]
pub struct WordedMark {
    pub request: documents::MarkRequest,
    pub words: Option<wording::MarkWords>,
}

impl<P: ComponentWorld> OnDocuments<P> {
    pub(super) fn new(slot: ComponentHandle<P>, turns: DocumentTurns) -> Self {
        Self { slot, turns }
    }

    /// Sets the organization, and the envelope or document, that the work is for.
    pub fn for_owner(mut self, owner: WorkOwner) -> Self {
        self.turns.owner = owner;
        self
    }

    /// Returns the identity of the component.
    pub fn identity(&self) -> Result<ComponentIdentity, ComponentError> {
        self.slot.identity()
    }

    async fn work<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store<LimitedEngine<()>>, &P) -> wasmtime::Result<R> + Send + 'static,
    ) -> Result<R, ComponentError> {
        let held = self.slot.ready().await?;
        // A default component that is not loaded yet is loaded below, off the async threads.
        if let Some(Err(error)) = LazyLock::get(&held) {
            return Err(error.again());
        }

        // The turn comes after the load: a component that is not there yet
        // must not hold a place in the queue.
        let DocumentTurns {
            queue,
            owner,
            priority,
        } = &self.turns;
        let Some(turn) = queue.turn(owner, *priority, 1).await else {
            return Err(ComponentError {
                component: "documents".into(),
                kind: CallFailure::Busy,
                by_document: false,
            });
        };

        let task = background::run(move || {
            // The turn moves into the task. If the caller goes away, the work still runs and still counts.
            let _turn = turn;
            active(&held)?
                .call(work)
                .map_err(ComponentError::on_document)
        });

        // A panic of the thread concerns this call only, so it becomes a trap.
        task.await.unwrap_or_else(|error| {
            Err(ComponentError {
                component: "documents".into(),
                kind: CallFailure::Trap(error.to_string()),
                by_document: false,
            })
        })
    }
}

/// Defines methods that each call one function of the component's interface, or of one that was added after 1.0
/// (`part.interface`). A component without the added one fails.
macro_rules! calls {
    ($interface:ident: $(
        $(#[$about:meta])*
        fn $name:ident = $call:ident($($argument:ident: $of:ty => $passed:expr),* $(,)?)
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
    ($part:ident.$interface:ident: $(
        $(#[$about:meta])*
        fn $name:ident = $call:ident($($argument:ident: $of:ty => $passed:expr),* $(,)?)
            -> $answer:ty, $error:ty;
    )*) => {$(
        $(#[$about])*
        pub async fn $name(&self, $($argument: $of),*) -> Answer<$answer, $error> {
            self.work(move |store, pre| {
                let instance = added(pre.$part.as_ref())?.instantiate(&mut *store)?;
                instance.$interface().$call(store, $($passed),*)
            })
            .await
        }
    )*};
}

fn added<T>(part: Option<&T>) -> wasmtime::Result<&T> {
    part.ok_or_else(|| wasmtime::Error::msg("it lacks an interface that was added after 1.0"))
}

impl Placement {
    calls! { holdfast_placement_placement:
        /// Inspects an upload. An unreadable document gives a typed error.
        fn inspect = call_inspect(pdf: Bytes => &pdf)
            -> placement::DocumentFacts, placement::ReadError;
        /// Returns the text lines of one page.
        fn text = call_text(pdf: Bytes => &pdf, page: u32 => page)
            -> Vec<placement::TextLine>, placement::ReadError;
        /// Resolves requested fields to rectangles.
        fn place = call_place(pdf: Bytes => &pdf, fields: Vec<placement::FieldRequest> => &fields)
            -> Vec<placement::ResolvedField>, placement::PlaceError;
        /// Returns all occurrences of an anchor text, in document order.
        fn occurrences = call_occurrences(
            pdf: Bytes => &pdf,
            text: String => &text,
            page: Option<u32> => page
        ) -> Vec<placement::Area>, placement::ReadError;
        /// Returns the fields that the document contains as tags.
        fn tags = call_tags(pdf: Bytes => &pdf)
            -> Vec<placement::ResolvedField>, placement::PlaceError;
    }
}

impl Placement {
    calls! { similarity.holdfast_placement_similarity:
        /// Returns the MinHash values of a document's words.
        fn signature = call_signature(pdf: Bytes => &pdf) -> Option<Vec<u32>>, placement::ReadError;
    }
}

impl Placement {
    /// Returns how a document writes an anchor text, for each of its occurrences. `None` from a component built
    /// for 1.0.
    pub async fn wordings(
        &self,
        pdf: Bytes,
        text: String,
        page: Option<u32>,
    ) -> Answer<Option<Vec<wordings::Wording>>, placement::ReadError> {
        self.work(move |store, pre| {
            let Some(wordings) = &pre.wordings else {
                return Ok(Ok(None));
            };

            let instance = wordings.instantiate(&mut *store)?;
            let wordings = instance.holdfast_placement_wordings();
            let found = wordings.call_wordings(store, &pdf, &text, page)?;
            Ok(found.map(Some))
        })
        .await
    }
}

impl Placement {
    /// Reads the printed facts of a map, and gives words their canonical values. `None` from a component built for
    /// 1.0.
    pub async fn facts(
        &self,
        pdf: Bytes,
        map: Arc<FactMapDocument>,
        words: Arc<[FactWords]>,
    ) -> Result<Option<FactAnswers>, ComponentError> {
        self.work(move |store, pre| match &pre.facts {
            Some(facts) => contract_facts::ask(store, facts, &pdf, &map, &words).map(Some),
            None => Ok(None),
        })
        .await
    }
}

impl Documents {
    calls! { holdfast_documents_documents:
        /// Removes tags from the pages.
        fn strip_tags = call_strip_tags(pdf: Bytes => &pdf) -> Vec<u8>, documents::DocumentError;
        /// Adds an empty placeholder for the signature.
        fn prepare_seal = call_prepare_seal(
            pdf: Bytes => &pdf,
            request: documents::SealRequest => &request
        ) -> documents::SealSpace, documents::DocumentError;
        /// Converts a picture to a one-page document.
        fn picture_to_pdf = call_picture_to_pdf(picture: documents::Picture => &picture)
            -> Vec<u8>, documents::DocumentError;
        /// Merges documents in this order.
        fn merge = call_merge(pdfs: Vec<Bytes> => &copied(&pdfs))
            -> Vec<u8>, documents::DocumentError;
        /// Renders a page as a picture, `width` pixels wide.
        fn page_image = call_page_image(pdf: Bytes => &pdf, page: u32 => page, width: u32 => width)
            -> documents::PageImage, documents::DocumentError;
    }
}

impl Documents {
    /// Writes field values onto the pages, and long texts on pages at the end. A component built for 1.0 sets
    /// typed signatures in its own style; one without `values` makes every text fit its field.
    pub async fn fill(
        &self,
        pdf: Bytes,
        fields: Vec<FlowingField>,
    ) -> Answer<Vec<u8>, documents::DocumentError> {
        self.work(move |store, pre| {
            // The newest function comes first. Each older one knows less
            // about a field, so the rest is dropped.
            if let Some(values) = &pre.values {
                let instance = values.instantiate(&mut *store)?;
                return instance
                    .holdfast_documents_values()
                    .call_fill(store, &pdf, &fields);
            }

            let fields: Vec<_> = fields.into_iter().map(|flowing| flowing.field).collect();
            let styled = |written: WrittenField| early_handwriting::WrittenField {
                field: written.field,
                style: written.style.map(early_style),
            };
            if let Some(additions) = &pre.additions {
                let fields: Vec<_> = fields.into_iter().map(styled).collect();
                let instance = additions.instantiate(&mut *store)?;
                return instance
                    .holdfast_documents_handwriting()
                    .call_fill(store, &pdf, &fields);
            }

            let fields: Vec<_> = fields.into_iter().map(|written| written.field).collect();
            let instance = pre.instantiate(&mut *store)?;
            instance
                .holdfast_documents_documents()
                .call_fill(store, &pdf, &fields)
        })
        .await
    }

    /// Returns for each value why it cannot be written into a field of its size. A component without this
    /// function makes every value fit.
    pub async fn check_values(
        &self,
        values: Vec<BoxedValue>,
    ) -> Result<Vec<Option<Misfit>>, ComponentError> {
        let count = values.len();
        let answers = self.work(move |store, pre| {
            let Some(functions) = &pre.values else {
                return Ok(vec![None; count]);
            };

            let instance = functions.instantiate(&mut *store)?;
            instance
                .holdfast_documents_values()
                .call_check(store, &values)
        });

        let answers = answers.await?;
        // With a missing answer the others would belong to the wrong values,
        // and a signer would see a wrong error.
        if answers.len() != count {
            let why = "it returned another number of answers than of values".into();
            return Err(ComponentError::new(
                &self.identity()?,
                CallFailure::Answer(why),
            ));
        }

        Ok(answers)
    }

    /// Marks every page as the authoritative or a non-authoritative copy. A component built for 1.0
    /// writes the English words only.
    pub async fn mark(
        &self,
        pdf: Bytes,
        mark: WordedMark,
    ) -> Answer<documents::Marked, documents::DocumentError> {
        let WordedMark { request, words } = mark;
        self.work(move |store, pre| {
            if let Some(additions) = &pre.additions {
                let instance = additions.instantiate(&mut *store)?;
                return instance.holdfast_documents_wording().call_mark(
                    store,
                    &pdf,
                    &request,
                    words.as_ref(),
                );
            }

            let instance = pre.instantiate(&mut *store)?;
            instance
                .holdfast_documents_documents()
                .call_mark(store, &pdf, &request)
        })
        .await
    }

    /// Marks both copies for the vault and reserves space for the seal, in one pass. None if the
    /// document needs [`Documents::mark`], and for a component without this function.
    pub async fn prepare_copies(
        &self,
        pdf: Bytes,
        request: vaulting::VaultRequest,
    ) -> Answer<Option<vaulting::VaultCopies>, documents::DocumentError> {
        self.work(move |store, pre| {
            let Some(vaulting) = &pre.vaulting else {
                return Ok(Ok(None));
            };

            let instance = vaulting.instantiate(&mut *store)?;
            instance
                .holdfast_documents_vaulting()
                .call_prepare_copies(store, &pdf, &request)
        })
        .await
    }

    /// Writes the custody record as PDF/A-3b: the sheet, or with a component built for 1.0 the facts.
    pub async fn custody_record(
        &self,
        facts: documents::CustodyFacts,
        sheet: wording::CustodySheet,
    ) -> Answer<Vec<u8>, documents::DocumentError> {
        self.work(move |store, pre| {
            if let Some(additions) = &pre.additions {
                let instance = additions.instantiate(&mut *store)?;
                return instance
                    .holdfast_documents_wording()
                    .call_custody_record(store, &sheet);
            }

            let instance = pre.instantiate(&mut *store)?;
            instance
                .holdfast_documents_documents()
                .call_custody_record(store, &facts)
        })
        .await
    }
}

impl Documents {
    calls! { additions.holdfast_documents_wording:
        /// Writes a sheet in the form of a custody record as PDF/A-3b.
        fn sheet = call_custody_record(sheet: wording::CustodySheet => &sheet)
            -> Vec<u8>, documents::DocumentError;
    }
    calls! { additions.holdfast_documents_completion:
        /// Writes the certificate of completion.
        fn completion_certificate = call_certificate(facts: completion::CompletionFacts => &facts)
            -> Vec<u8>, documents::DocumentError;
    }
    calls! { additions.holdfast_documents_signatures:
        /// Lists the signatures of a document, not verified.
        fn signatures = call_signatures(pdf: Bytes => &pdf)
            -> found::FoundSignatures, documents::DocumentError;
    }
    calls! { additions.holdfast_documents_form_fields:
        /// Lists the fields of the form that a document already has.
        fn form_fields = call_form_fields(pdf: Bytes => &pdf)
            -> Vec<form_fields::FormField>, documents::DocumentError;
    }
    calls! { watermarks.holdfast_documents_watermarks:
        /// Marks a copy for its holder, and returns the bytes to append.
        fn watermark = call_watermark(
            pdf: Bytes => &pdf,
            request: watermarks::WatermarkRequest => &request
        ) -> Vec<u8>, documents::DocumentError;
    }
    calls! { copies.holdfast_documents_copies:
        /// Writes a marked document anew. None for one with kept signatures.
        fn write_anew = call_write_anew(
            pdf: Bytes => &pdf,
            signatures: copies::SignatureHandling => signatures
        ) -> Option<Vec<u8>>, documents::DocumentError;
    }
    calls! { sources.holdfast_documents_sources:
        /// Checks an upload, and repairs it where readers would disagree about it.
        fn settle = call_settle(pdf: Bytes => &pdf)
            -> sources::SettledDocument, documents::DocumentError;
        /// Writes a protected document without its protection.
        fn unlock = call_unlock(pdf: Bytes => &pdf, password: String => &password)
            -> Vec<u8>, documents::DocumentError;
        /// Removes scripts and actions. None for a document without them.
        fn without_actions = call_without_actions(pdf: Bytes => &pdf)
            -> Option<Vec<u8>>, documents::DocumentError;
    }
    calls! { variables.holdfast_documents_variables:
        /// Lists the variables of a document of a word processor.
        fn find_variables = call_find(document: Bytes => &document)
            -> Vec<String>, documents::DocumentError;
        /// Writes values in the place of variables.
        fn replace_variables = call_replace(
            document: Bytes => &document,
            values: Vec<variables::VariableValue> => &values
        ) -> Vec<u8>, documents::DocumentError;
    }
    calls! { long_term.holdfast_documents_long_term:
        /// Adds validation data, and an empty placeholder for a time stamp.
        fn extend = call_extend(
            pdf: Bytes => &pdf,
            request: long_term::ExtensionRequest => &request
        ) -> long_term::DocumentExtension, documents::DocumentError;
        /// Returns the validation data that a document has.
        fn validation_data = call_validation_data_of(pdf: Bytes => &pdf)
            -> long_term::ValidationData, documents::DocumentError;
    }
    calls! { excerpts.holdfast_documents_excerpts:
        /// Renders the surroundings of a place, with a frame around it. `width` is that of the whole page in pixels.
        fn excerpt = call_excerpt(
            pdf: Bytes => &pdf,
            place: documents::Area => place,
            width: u32 => width
        ) -> documents::PageImage, documents::DocumentError;
    }
    calls! { values.holdfast_documents_values:
        /// Draws a value as it is written into a field, on a transparent ground.
        fn draw_value = call_draw(value: BoxedValue => &value, pixels: u32 => pixels)
            -> documents::PageImage, documents::DocumentError;
    }
}

/// Returns a style in the words of a component without `values`.
pub fn early_style(style: HandwritingStyle) -> early_handwriting::HandwritingStyle {
    match style {
        HandwritingStyle::Casual => early_handwriting::HandwritingStyle::Casual,
        HandwritingStyle::Formal => early_handwriting::HandwritingStyle::Formal,
        HandwritingStyle::Light => early_handwriting::HandwritingStyle::Light,
    }
}

/// Rules about the answers of signers, as an organization's placement component applies them. For one
/// built for 1.0, the built-in component does.
pub struct AnswerRules {
    pub(super) own: Placement,
    pub(super) embedded: Placement,
}

impl AnswerRules {
    /// Returns the problems of the rules themselves.
    pub async fn check(
        &self,
        fields: Vec<field_rules::RuledField>,
    ) -> Result<Vec<placement::Issue>, ComponentError> {
        self.ask(move |store, instance| {
            let rules = instance.holdfast_placement_field_rules();
            rules.call_check(store, &fields)
        })
        .await
    }

    /// Applies the rules to the entries so far; returns one state for each field.
    pub async fn apply(
        &self,
        fields: Vec<field_rules::RuledField>,
        entries: Vec<field_rules::Entry>,
        today: String,
    ) -> Result<Vec<field_rules::FieldState>, ComponentError> {
        let count = fields.len();
        let states = self.ask(move |store, instance| {
            let rules = instance.holdfast_placement_field_rules();
            rules.call_apply(store, &fields, &entries, &today)
        });
        let states = states.await?;
        // With a missing state the others would belong to the wrong fields.
        if states.len() != count {
            let why = "it returned another number of states than of fields".into();
            let component = self.own.identity()?;
            return Err(ComponentError::new(&component, CallFailure::Answer(why)));
        }

        Ok(states)
    }

    async fn ask<R: Send + 'static>(
        &self,
        call: impl Fn(&mut Store<LimitedEngine<()>>, &PlacementAdditions) -> wasmtime::Result<R>
        + Clone
        + Send
        + 'static,
    ) -> Result<R, ComponentError> {
        // The built-in component answers only for a missing function, never after a failure of the own one.
        for rules in [&self.own, &self.embedded] {
            let call = call.clone();
            let answer = rules.work(move |store, pre| {
                let Some(additions) = &pre.additions else {
                    return Ok(None);
                };
                let instance = additions.instantiate(&mut *store)?;
                call(store, &instance).map(Some)
            });

            if let Some(answer) = answer.await? {
                return Ok(answer);
            }
        }

        let component = self.embedded.identity()?;
        Err(ComponentError::absent(component, "it has no field rules"))
    }
}

/// Copies the documents into the lists that the binding takes.
fn copied(pdfs: &[Bytes]) -> Vec<Vec<u8>> {
    pdfs.iter().map(|pdf| pdf.to_vec()).collect()
}
