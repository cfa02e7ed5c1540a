//! The authoritative copy: the executed document, marked and sealed.
//!
//! The authoritative copy starts with the executed bytes. If a document makes that
//! impossible, only the built-in writer may replace them, and the evidence records it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::participants::{CalledComponent, PipelineComponents};
use super::pipeline::{PipelineStep, VaultInPipeline};
use super::time::TrustedTime;
use crate::components::rules::documents;
use crate::components::{CallFailure, ComponentError, Documents, Placement, embedded};
use crate::domain::component::{ComponentIdentity, Slot};
use crate::domain::envelope::{FileType, KeptFile};
use crate::domain::hash::sha256;
use crate::files::StorageArea;
use crate::sealing::{SIGNATURE_BYTES, UnstampedSeal};
use crate::service::ServiceError;
use crate::service::envelopes::uploads::picture;
use crate::service::vault::copies::{self, MarkedCopy};
use crate::service::vault::custody_sheet::RecordWriter;

/// Result of `seal`: the authoritative copy.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SealedCopy {
    pub(super) file: KeptFile,
    /// SHA-256 of the sealing certificate. None for a document that is certified against any
    /// change and is therefore kept unsealed.
    pub(super) seal: Option<String>,
    pub(super) time: TrustedTime,
    /// Set when the copy does not start with the executed bytes.
    #[serde(default)]
    pub(super) rewritten: Option<RewrittenDocument>,
}

/// Bytes that replace the executed ones, and why.
#[derive(Clone, Serialize, Deserialize)]
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

    /// Returns the text for the custody record.
    pub(super) fn line(&self, source: &KeptFile, writer: RecordWriter<'_>) -> String {
        let key = match FileType::parse(&source.0.content_type) {
            Some(FileType::Pdf) | None => "custody-repaired",
            Some(_) => "custody-picture",
        };
        let kind = source.0.content_type.as_str();
        let values = [("type", kind), ("sha256", &self.rewritten_hash)];
        writer.texts.with(key, values)
    }
}

impl SealedCopy {
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
pub(super) struct ExecutedDocument {
    pub(super) pdf: Bytes,
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

impl VaultInPipeline<'_> {
    /// Runs the steps `time` and `seal`. The time stamp is recorded before the copy that
    /// contains it is stored, so that a repeat produces the same copy.
    pub(super) async fn sealed(&mut self, source: &KeptFile) -> Result<SealedCopy, ServiceError> {
        if let Some(sealed) = self.begin(PipelineStep::Seal).await? {
            return Ok(sealed);
        }
        let time: Option<TrustedTime> = self.begin(PipelineStep::Time).await?;
        let MarkedDocument {
            pdf,
            sealable,
            rewritten,
        } = self.marked(source).await?;
        let (pdf, seal, time) = match sealable {
            false => (pdf, None, TrustedTime::NotAsked),
            true => {
                let unstamped = self.sign(pdf).await?;
                let time = self.time_of(&unstamped, time).await?;
                let sealed = unstamped.finish(time.token().as_deref())?;
                let seal = self.vault.sealing.fingerprint()?;
                (sealed.into(), Some(seal), time)
            }
        };
        self.begins_as_recorded(&pdf, source, rewritten.as_ref())?;
        let mut called = self.rules.of_documents()?;
        called.extend(rewritten.as_ref().map(|rewritten| CalledComponent {
            slot: Slot::Documents,
            identity: rewritten.component.clone(),
        }));
        self.step = PipelineStep::Seal;
        let file = self
            .store(StorageArea::Vault, pdf, "application/pdf")
            .await?;
        let sealed = SealedCopy {
            file,
            seal,
            time,
            rewritten,
        };
        self.done(sealed, called).await
    }

    /// Returns the executed document as a PDF. The built-in writer converts pictures.
    pub(super) async fn executed(
        &self,
        source: &KeptFile,
    ) -> Result<ExecutedDocument, ServiceError> {
        let bytes = self.core.files.get(&source.0).await?;
        let kind = FileType::parse(&source.0.content_type).unwrap_or(FileType::Pdf);
        let Some(picture) = picture(kind, &bytes) else {
            return Ok(ExecutedDocument {
                pdf: bytes,
                drawn_by: None,
            });
        };
        let embedded = &self.rules.embedded_documents;
        let pdf = embedded.picture_to_pdf(picture).await??;
        // The call above has loaded it.
        let by = embedded.identity()?;
        let reason = format!("the upload is a picture ({})", source.0.content_type);
        Ok(ExecutedDocument {
            pdf: pdf.into(),
            drawn_by: Some((by, reason)),
        })
    }

    /// Marks the executed document. The active components may only append to it; replacing it,
    /// or keeping it unsealed, requires the agreement of the built-in ones.
    async fn marked(&self, source: &KeptFile) -> Result<MarkedDocument, ServiceError> {
        let ExecutedDocument { pdf, drawn_by } = self.executed(source).await?;
        let drawn = drawn_by.map(|(by, reason)| RewrittenDocument::new(&pdf, reason, by));
        let (documents, reader) = (&self.rules.documents, &self.rules.placement);
        let mut marked = self.mark(documents, reader, pdf).await?;
        let active = documents.identity()?;
        let own = embedded_writer().unwrap_or_else(|| active.clone());
        // A replaceable writer may only append. If it did not, the built-in writer decides: if that
        // one can append, the replaceable one is at fault.
        if active != own && !matches!(marked, MarkedCopy::Appended(_)) {
            let ExecutedDocument { pdf, .. } = self.executed(source).await?;
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
                pdf: self.executed(source).await?.pdf,
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
        copies::mark(documents, reader, pdf, request).await
    }

    /// Reserves space for the signature and signs a marked document.
    async fn sign(&self, marked: Bytes) -> Result<UnstampedSeal, ServiceError> {
        let request = documents::SealRequest {
            name: self.intent.issuer.clone(),
            reason: format!("Authoritative copy of {}", self.envelope.id),
            signed_at: self.intent.frozen_at.to_string(),
            signature_bytes: SIGNATURE_BYTES,
        };
        let (documents, reader) = (&self.rules.documents, &self.rules.placement);
        let space = documents.prepare_seal(marked.clone(), request).await??;
        let prepared = copies::joined(marked, &space.appended);
        // The reader checks the document before it is signed.
        reader.inspect(prepared.clone()).await??;
        let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let place = place(space.place_start)..place(space.place_end);
        let now = self.core.clock.now();
        Ok(self.vault.sealing.sign(prepared.into(), place, now)?)
    }

    /// Checks that the copy starts with the executed bytes or their recorded replacement. The
    /// active component chooses where the signature goes, so its output is not trusted.
    fn begins_as_recorded(
        &self,
        copy: &Bytes,
        source: &KeptFile,
        rewritten: Option<&RewrittenDocument>,
    ) -> Result<(), ServiceError> {
        let (hash, size) = match rewritten {
            Some(rewritten) => (&rewritten.rewritten_hash, rewritten.rewritten_size),
            None => (&source.0.sha256, source.0.size.cast_unsigned()),
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if copy.get(..size).is_some_and(|bytes| sha256(bytes) == *hash) {
            return Ok(());
        }
        let why = "the executed document is not the beginning of the sealed one";
        Err(unusable(&self.rules.documents.identity()?, why).into())
    }

    /// Returns the recorded time stamp if it covers this signature, otherwise a new one.
    async fn time_of(
        &mut self,
        unstamped: &UnstampedSeal,
        recorded: Option<TrustedTime>,
    ) -> Result<TrustedTime, ServiceError> {
        if let Some(time) = recorded.filter(|time| time.is_about(unstamped)) {
            return Ok(time);
        }
        let answer = self.trusted_time(unstamped).await;
        // Another run may have recorded its stamp first. It counts only for this signature.
        let kept = self.done(answer.clone(), Vec::new()).await?;
        Ok(match kept.is_about(unstamped) {
            true => kept,
            false => answer,
        })
    }

    /// Requests a time stamp token for the signature. If that fails, vaulting continues and the
    /// evidence states the reason.
    async fn trusted_time(&self, unstamped: &UnstampedSeal) -> TrustedTime {
        let Some(authority) = &self.vault.timestamps else {
            return TrustedTime::NotAsked;
        };
        let reason = match authority.stamp(&unstamped.signature_digest()).await {
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
