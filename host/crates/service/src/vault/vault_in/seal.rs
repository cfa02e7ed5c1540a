//! The authoritative copy: the executed document, marked and sealed.
//!
//! The authoritative copy starts with the executed bytes. If a document makes that
//! impossible, only the built-in writer may replace them, and the evidence records it.

use std::ops::Range;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::participants::{CalledComponent, PipelineComponents};
use super::pipeline::{PipelineStep, VaultInPipeline};
use super::time::TrustedTime;
use crate::vault::copies::{self, CopyFile, CopyForm};
use crate::vault::custody_sheet::PICTURE;
use holdfast_adapters::files::{HashedBytes, StorageArea, UnstoredFile};
use holdfast_adapters::sealing::{SIGNATURE_BYTES, UnstampedSeal};
use holdfast_components::rules::{documents, vaulting, wording};
use holdfast_components::{CallFailure, ComponentError, Documents, Placement, embedded};
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::envelope::{FileType, KeptFile};
use holdfast_domain::hash::sha256;
use holdfast_domain::signature::DigestAlgorithm;
use holdfast_platform::ServiceError;
use holdfast_platform::documents::marks::{self, MarkedCopy};
use holdfast_platform::documents::picture;
use holdfast_platform::log;

const PDF: &str = "application/pdf";

/// Both copies, made but not stored.
pub(super) struct MadeCopies {
    pub(super) authoritative: UnstoredFile,
    pub(super) copy: UnstoredFile,
    pub(super) copy_form: CopyForm,
    /// SHA-256 of the sealing certificate. None for a document that is certified against any
    /// change and is therefore kept unsealed.
    pub(super) seal: Option<String>,
    pub(super) time: TrustedTime,
    /// Set when the authoritative copy does not start with the executed bytes.
    pub(super) rewritten: Option<RewrittenDocument>,
}

/// Bytes that replace the executed ones, and why.
#[derive(Serialize)]
pub(super) struct RewrittenDocument {
    /// SHA-256 of the bytes that the copy starts with instead.
    rewritten_hash: String,
    rewritten_size: u64,
    reason: String,
    /// Component that wrote the replacement.
    component: ComponentIdentity,
}

impl RewrittenDocument {
    fn new(bytes: &Bytes, reason: String, component: ComponentIdentity) -> Self {
        Self {
            rewritten_hash: sha256(bytes),
            rewritten_size: bytes.len() as u64,
            reason,
            component,
        }
    }
}

impl MadeCopies {
    /// Returns the document that the authoritative copy begins with: the executed one, or what replaces it.
    pub(super) fn document(&self, source: &KeptFile) -> Option<Bytes> {
        let size = match &self.rewritten {
            None => source.0.size.unsigned_abs(),
            Some(rewritten) => rewritten.rewritten_size,
        };
        self.authoritative.beginning(usize::try_from(size).ok()?)
    }

    /// Returns the value for ledger and certificate: null if the executed bytes were kept.
    pub(super) fn rewritten_from(&self, source: &KeptFile) -> Value {
        match &self.rewritten {
            None => Value::Null,
            Some(rewritten) => {
                let mut value = json!(rewritten);
                value["executed_hash"] = source.0.sha256.as_str().into();
                value
            }
        }
    }
}

/// The executed document as a PDF.
struct ExecutedDocument {
    pdf: HashedBytes,
    /// Component that converted a picture to a PDF, and the reason to record.
    drawn_by: Option<(ComponentIdentity, String)>,
}

/// The marked document before sealing.
struct MarkedDocument {
    pdf: Bytes,
    /// False for a document that is certified against any change.
    sealable: bool,
    rewritten: Option<RewrittenDocument>,
}

/// Both copies before the signature.
struct UnsealedCopies {
    /// The executed document, or its replacement.
    executed: HashedBytes,
    /// What the authoritative copy appends to it.
    update: Vec<u8>,
    /// Empty place for the signature in the authoritative copy.
    place: Option<Range<usize>>,
    copy: NonAuthoritativeCopy,
    copy_form: CopyForm,
    rewritten: Option<RewrittenDocument>,
}

/// Bytes of the non-authoritative copy.
enum NonAuthoritativeCopy {
    /// The bytes behind the executed document.
    Update(Vec<u8>),
    Whole(Bytes),
}

impl VaultInPipeline<'_> {
    /// Makes both copies. A repeat makes the same bytes: the signature is deterministic, and a time stamp
    /// is recorded.
    pub(super) async fn make_copies(
        &mut self,
        source: &KeptFile,
    ) -> Result<MadeCopies, ServiceError> {
        self.step = PipelineStep::Seal;
        let unsealed = match self.in_one_pass(source).await? {
            Some(unsealed) => unsealed,
            None => self.one_by_one(source).await?,
        };
        let UnsealedCopies {
            executed,
            update,
            place,
            copy,
            copy_form,
            rewritten,
        } = unsealed;
        let HashedBytes {
            bytes: executed,
            hash,
        } = executed;
        let length = executed.len();

        let whole = marks::joined(executed, &update);
        let (whole, seal, time) = match place {
            None => (whole, None, TrustedTime::NotAsked),
            Some(place) => {
                // The component chooses the place, and may not sign anything else.
                let around = update
                    .get(..place.start.wrapping_sub(length))
                    .zip(whole.get(place.end..));
                let Some((before, behind)) = around else {
                    let why = "the place of the signature is outside its update";
                    return Err(unusable(&self.rules.documents.identity()?, why).into());
                };

                let digest = hash.with(&[before, behind]);

                // A seal with a wrong time could never be corrected.
                log::check_clock(self.core).await?;
                let now = self.core.clock.now();
                let sealing = &self.vault.sealing;
                let unstamped = sealing.sign(whole.into(), place, digest, now)?;
                let time = self.time_of(&unstamped).await?;
                self.step = PipelineStep::Seal;

                let sealed = unstamped.finish(time.token().as_deref())?;
                (sealed.into(), Some(sealing.fingerprint()?), time)
            }
        };

        // Both copies share one buffer where they can: a large document is in memory once.
        let (executed, update) = (whole.slice(..length), whole.slice(length..));
        let digest = hex::encode(hash.with(&[&update]));
        let authoritative = self.unstored(StorageArea::Vault, (vec![whole], digest), PDF);
        let copy = match copy {
            NonAuthoritativeCopy::Update(update) => {
                let digest = hex::encode(hash.with(&[&update]));
                (vec![executed, update.into()], digest)
            }
            NonAuthoritativeCopy::Whole(whole) => {
                let digest = sha256(&whole);
                (vec![whole], digest)
            }
        };

        let made = MadeCopies {
            authoritative,
            copy: self.unstored(StorageArea::Copies, copy, PDF),
            copy_form,
            seal,
            time,
            rewritten,
        };

        // The certificate names each component that wrote or read these files.
        self.called.extend(self.rules.of_documents()?);
        if copy_form == CopyForm::NewFile {
            let writer = self.rules.embedded_documents.identity();
            self.called
                .push(CalledComponent::new(Slot::Documents, writer)?);
        }

        self.called
            .extend(made.rewritten.as_ref().map(|rewritten| CalledComponent {
                slot: Slot::Documents,
                identity: rewritten.component.clone(),
            }));

        Ok(made)
    }

    /// Makes both copies by one call of the writer, and checks them with the reader. None if the document
    /// needs the separate steps.
    async fn in_one_pass(&self, source: &KeptFile) -> Result<Option<UnsealedCopies>, ServiceError> {
        let ExecutedDocument { pdf, drawn_by } = self.executed(source).await?;
        let HashedBytes { bytes: pdf, hash } = pdf;
        let rewritten = drawn_by.map(|(by, reason)| RewrittenDocument::new(&pdf, reason, by));
        let authoritative = self.mark_request(documents::CopyKind::Authoritative);
        let request = vaulting::VaultRequest {
            authoritative: authoritative.request,
            seal: self.seal_request(),
            copy: self
                .mark_request(documents::CopyKind::NonAuthoritative)
                .request,
            words: authoritative.words.map(copy_words),
        };

        let (writer, reader) = (&self.rules.documents, &self.rules.placement);
        let made = match writer.prepare_copies(pdf.clone(), request).await {
            Ok(Ok(Some(made))) => made,
            Ok(_) => return Ok(None),
            // The separate steps take less memory and time each.
            Err(error) if error.by_document => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some((pdf, copy, copy_form)) = self.copy_from_update(pdf, made.copy).await? else {
            return Ok(None);
        };

        let update = &made.authoritative.appended;
        let (pdf, read) = marks::read_back(reader, pdf, update).await?;
        // The separate steps can rewrite a document if the reader rejects its update.
        if read.is_err() {
            return Ok(None);
        }

        Ok(Some(UnsealedCopies {
            executed: HashedBytes { bytes: pdf, hash },
            place: Some(place_of(&made.authoritative)),
            update: made.authoritative.appended,
            copy,
            copy_form,
            rewritten,
        }))
    }

    /// Makes the other copy of the update with its mark. Returns it after the document, which shared its memory;
    /// none if the update cannot be read.
    async fn copy_from_update(
        &self,
        pdf: Bytes,
        update: Vec<u8>,
    ) -> Result<Option<(Bytes, NonAuthoritativeCopy, CopyForm)>, ServiceError> {
        let (built_in, reader) = (&self.rules.embedded_documents, &self.rules.placement);
        let length = pdf.len();
        let marked = marks::joined(pdf, &update);
        let CopyFile { bytes, form } =
            copies::as_file_of_its_own(built_in, reader, marked.clone()).await?;
        if form == CopyForm::NewFile {
            let mut pdf = Vec::from(marked);
            pdf.truncate(length);
            return Ok(Some((pdf.into(), NonAuthoritativeCopy::Whole(bytes), form)));
        }

        // The failed rewriting frees its memory before the document is joined again.
        drop(bytes);
        let (pdf, read) = marks::read_back(reader, marked.slice(..length), &update).await?;
        let copy = NonAuthoritativeCopy::Update(update);
        Ok(read.is_ok().then_some((pdf, copy, form)))
    }

    /// Marks, seals and marks again: for documents that are repaired, or kept unchanged.
    async fn one_by_one(&mut self, source: &KeptFile) -> Result<UnsealedCopies, ServiceError> {
        let MarkedDocument {
            mut pdf,
            sealable,
            rewritten,
        } = self.marked(source).await?;
        let (writer, reader) = (&self.rules.documents, &self.rules.placement);
        let (update, place) = if sealable {
            let space = writer
                .prepare_seal(pdf.clone(), self.seal_request())
                .await??;

            // The reader checks the document before it is signed.
            let (given_back, read) = marks::read_back(reader, pdf, &space.appended).await?;
            read?;
            pdf = given_back;
            let place = place_of(&space);
            (space.appended, Some(place))
        } else {
            (Vec::new(), None)
        };

        self.step = PipelineStep::Copy;
        // Read again: keeping the first bytes would hold the document in memory twice during the calls
        // above.
        let executed = self.executed(source).await?.pdf.bytes;
        let mark = self.mark_request(documents::CopyKind::NonAuthoritative);
        let built_in = &self.rules.embedded_documents;
        let copy = copies::non_authoritative(writer, built_in, reader, executed, mark).await?;
        self.step = PipelineStep::Seal;

        Ok(UnsealedCopies {
            executed: HashedBytes::of(pdf),
            update,
            place,
            copy: NonAuthoritativeCopy::Whole(copy.bytes),
            copy_form: copy.form,
            rewritten,
        })
    }

    fn seal_request(&self) -> documents::SealRequest {
        documents::SealRequest {
            name: self.intent.issuer.clone(),
            reason: if self.envelope.org.is_test() {
                format!("Test of {}", self.envelope.id)
            } else {
                format!("Authoritative copy of {}", self.envelope.id)
            },
            signed_at: self.intent.frozen_at.to_string(),
            signature_bytes: SIGNATURE_BYTES,
        }
    }

    /// Returns the executed document as a PDF. The built-in writer converts pictures.
    async fn executed(&self, source: &KeptFile) -> Result<ExecutedDocument, ServiceError> {
        let read = self.core.files.get_hashed(&source.0).await?;
        let kind = FileType::parse(&source.0.content_type).unwrap_or(FileType::Pdf);
        let Some(picture) = picture(kind, &read.bytes) else {
            return Ok(ExecutedDocument {
                pdf: read,
                drawn_by: None,
            });
        };

        let embedded = &self.rules.embedded_documents;
        let pdf = embedded.picture_to_pdf(picture).await??;

        // The call above has loaded it.
        let by = embedded.identity()?;
        let reason = format!("{PICTURE}{})", source.0.content_type);
        Ok(ExecutedDocument {
            pdf: HashedBytes::of(pdf.into()),
            drawn_by: Some((by, reason)),
        })
    }

    /// Marks the executed document. The active components may only append to it; replacing it,
    /// or keeping it unsealed, requires the agreement of the built-in ones.
    async fn marked(&self, source: &KeptFile) -> Result<MarkedDocument, ServiceError> {
        let ExecutedDocument { pdf, drawn_by } = self.executed(source).await?;
        let pdf = pdf.bytes;
        let drawn = drawn_by.map(|(by, reason)| RewrittenDocument::new(&pdf, reason, by));
        let (documents, reader) = (&self.rules.documents, &self.rules.placement);
        let mut marked = self.mark(documents, reader, pdf).await?;
        let active = documents.identity()?;
        let own = embedded_writer().unwrap_or_else(|| active.clone());

        // A replaceable writer may only append. If it did not, the built-in writer decides: if that
        // one can append, the replaceable one is at fault.
        if active != own && !matches!(marked, MarkedCopy::Appended(_)) {
            let pdf = self.executed(source).await?.pdf.bytes;
            let PipelineComponents {
                embedded_documents,
                embedded_placement,
                ..
            } = &self.rules;
            marked = self
                .mark(embedded_documents, embedded_placement, pdf)
                .await?;

            if matches!(marked, MarkedCopy::Appended(_)) {
                let why = "the executed document is not the beginning of the marked one";
                return Err(unusable(&active, why).into());
            }
        }

        Ok(match marked {
            MarkedCopy::Appended(pdf) => MarkedDocument {
                pdf,
                sealable: true,
                rewritten: drawn,
            },
            MarkedCopy::Unchanged => MarkedDocument {
                pdf: self.executed(source).await?.pdf.bytes,
                sealable: false,
                rewritten: drawn,
            },
            MarkedCopy::Rewritten(pdf) => {
                let reason = "the document's structure had to be repaired to add to it";
                MarkedDocument {
                    rewritten: Some(RewrittenDocument::new(&pdf, reason.into(), own)),
                    sealable: true,
                    pdf,
                }
            }
        })
    }

    async fn mark(
        &self,
        documents: &Documents,
        reader: &Placement,
        pdf: Bytes,
    ) -> Result<MarkedCopy, ServiceError> {
        let request = self.mark_request(documents::CopyKind::Authoritative);
        marks::mark(documents, reader, pdf, request).await
    }

    /// Returns the recorded time stamp if it covers this signature, otherwise a new one.
    async fn time_of(&mut self, unstamped: &UnstampedSeal) -> Result<TrustedTime, ServiceError> {
        let recorded: Option<TrustedTime> = self.begin(PipelineStep::Time).await?;
        match recorded {
            Some(time) if time.is_about(unstamped) => return Ok(time),
            // The document or the sealing key was replaced since.
            Some(_) => self.forget(PipelineStep::Time).await?,
            None => {}
        }

        if self.vault.timestamps.is_none() || self.envelope.org.is_test() {
            return Ok(TrustedTime::NotAsked);
        }

        let answer = self.trusted_time(unstamped).await;

        // Another run may have recorded its stamp first. It counts only for this signature.
        let kept = self.done(answer.clone(), Vec::new()).await?;
        Ok(if kept.is_about(unstamped) {
            kept
        } else {
            answer
        })
    }

    /// Requests a time stamp token for the signature. If that fails, vaulting continues and the
    /// evidence states the reason.
    async fn trusted_time(&self, unstamped: &UnstampedSeal) -> TrustedTime {
        let Some(authority) = &self.vault.timestamps else {
            return TrustedTime::NotAsked;
        };

        let digest = unstamped.signature_digest();
        let reason = match authority.stamp(DigestAlgorithm::Sha256, &digest).await {
            Ok(stamp) if unstamped.has_room_for(stamp.size()) => {
                return TrustedTime::Stamped {
                    at: stamp.at.to_string(),
                    token: stamp.base64(),
                    authority: stamp.authority,
                    checked: authority.is_checked(),
                };
            }
            Ok(_) => "the token is larger than its place".to_owned(),
            Err(error) => error.to_string(),
        };

        self.core.metrics.without_trusted_time.inc();
        tracing::error!(envelope = %self.envelope.id, reason, "sealing without a trusted time stamp");
        TrustedTime::None { reason }
    }
}

fn copy_words(words: wording::MarkWords) -> vaulting::CopyWords {
    vaulting::CopyWords {
        authoritative: words.authoritative,
        non_authoritative: words.non_authoritative,
        secured_party: words.secured_party,
    }
}

fn place_of(space: &documents::SealSpace) -> Range<usize> {
    let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    place(space.place_start)..place(space.place_end)
}

/// Returns the built-in document writer.
fn embedded_writer() -> Option<ComponentIdentity> {
    let found = embedded().find(|artifact| artifact.slot == Slot::Documents);
    found.map(|artifact| artifact.identity)
}

fn unusable(identity: &ComponentIdentity, why: &str) -> ComponentError {
    ComponentError {
        component: identity.to_string(),
        kind: CallFailure::Answer(why.into()),
        by_document: false,
    }
}
