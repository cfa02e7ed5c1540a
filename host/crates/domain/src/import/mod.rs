//! Imports of documents that were signed in another system: an archive of PDFs, perhaps with a manifest.
//!
//! What a manifest says about signers and times is *declared*: it is kept with the record in the words of the manifest, and
//! never verified or claimed as a signature of this service.

mod manifest;
mod plan;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::envelope::{KeptFile, StoredFile, words};
use crate::id::{EnvelopeId, ImportId, OrgId};
use crate::signature::{ExistingSignature, SignatureStatus, SignatureTrust};
use crate::tape::StoredRefusal;

pub use manifest::{MANIFEST_LIMIT, Manifest, ManifestRow};
pub use plan::{ImportPlan, PlannedRecord, PlannedRow, manifest_of, plan};

/// Most rows of an import.
pub const ROWS: usize = 10_000;

words! {
    /// System whose export an archive is, by its layout. `columns` is the layout of this service.
    ImportLayout {
        Columns = "columns",
        Docusign = "docusign",
        AdobeSign = "adobe_sign",
        Docuseal = "docuseal",
    }
}

words! {
    /// State of an import.
    ImportStatus {
        Running = "running",
        Completed = "completed",
        // The stored archive is damaged or gone.
        Failed = "failed",
    }
}

words! {
    /// Result of a row: a record was made, an earlier import made one of the same document, or there is none.
    ImportRowStatus {
        Imported = "imported",
        Duplicate = "duplicate",
        Failed = "failed",
    }
}

/// Signer as the manifest names one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeclaredSigner {
    /// Name, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// E-mail address, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Time of the signature, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_at: Option<String>,
}

/// What a manifest says about a document. Nothing of it is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeclaredFacts {
    /// Those who signed, by the manifest.
    pub signers: Vec<DeclaredSigner>,
    /// Time of the sending, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<String>,
    /// Time of the last signature, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
}

/// Certificate of completion of the other system, kept with the record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportedCertificate {
    pub file: KeptFile,
    /// Name in the archive, without folders.
    pub name: String,
    /// Signatures in the certificate.
    pub existing_signatures: Vec<ExistingSignature>,
}

/// Import that made a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportOrigin {
    pub import: ImportId,
    /// Number of the row.
    pub row: i64,
    pub source: ImportLayout,
    pub declared: DeclaredFacts,
    pub certificate: Option<ImportedCertificate>,
}

/// Customer of rows that name none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportCustomer {
    pub name: String,
    pub email: String,
}

/// An import of an organization.
#[derive(Clone, Debug)]
pub struct Import {
    pub id: ImportId,
    pub org: OrgId,
    pub layout: ImportLayout,
    pub file: StoredFile,
    /// Customer of rows that name none.
    pub customer: Option<ImportCustomer>,
    pub status: ImportStatus,
    /// Rows of the archive.
    pub planned: i64,
    /// Rows with a result.
    pub done: i64,
    pub imported: i64,
    pub duplicates: i64,
    pub failed: i64,
    /// Runs that ended with a defect of the stored archive.
    pub failures: i64,
    pub refusal: Option<StoredRefusal>,
    pub made_by: String,
    /// Creator of the records: an e-mail address, or the actor.
    pub creator: String,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// Numbers of the signatures in a document. They are those of others, verified as far as their certificates allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignatureCounts {
    /// Signatures and time stamps in the document.
    pub found: usize,
    /// Those whose signed bytes are unchanged.
    pub intact: usize,
    /// Those of them with a certificate that leads to a configured root.
    pub trusted: usize,
}

impl SignatureCounts {
    pub fn of(signatures: &[ExistingSignature]) -> Self {
        let intact = signatures
            .iter()
            .filter(|signature| signature.status == SignatureStatus::Valid);
        let trusted = intact
            .clone()
            .filter(|signature| signature.trust == SignatureTrust::Trusted);
        Self {
            found: signatures.len(),
            intact: intact.count(),
            trusted: trusted.count(),
        }
    }
}

/// Result of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportRow {
    /// Place in the archive, from 1.
    pub number: i64,
    /// Line of the manifest; 0 without one.
    pub line: i64,
    /// Document in the archive; empty if the row names none.
    pub file: String,
    pub status: ImportRowStatus,
    /// The record; of a duplicate the one that has the document already.
    pub envelope: Option<EnvelopeId>,
    pub document_sha256: Option<String>,
    pub signatures: Option<SignatureCounts>,
    /// Why there is no record.
    pub problem: Option<StoredRefusal>,
}
