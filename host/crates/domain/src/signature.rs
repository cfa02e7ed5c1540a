//! Signatures that a document had before holdfast received it, which are reported and never claimed
//! as ours; and levels of our own seals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::envelope::words;

words! {
    /// Level of a seal (PAdES, ETSI EN 319 142-1). Each one includes those before it: `B-T` has a trusted time,
    /// `B-LT` the certificates and statements about their revocation, `B-LTA` a time stamp over all of it.
    SealLevel {
        Signature = "B-B",
        Time = "B-T",
        Validation = "B-LT",
        Archive = "B-LTA",
    }
}

words! {
    /// Digest algorithm of a time stamp.
    DigestAlgorithm {
        Sha256 = "sha256",
        Sha384 = "sha384",
        Sha512 = "sha512",
    }
}

/// What a seal proves, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SealState {
    /// Level that was reached so far.
    pub level: SealLevel,
    /// Why the level is not higher, where something is missing.
    pub reason: Option<String>,
    /// When the certificate of the newest time stamp ends. A new time stamp is added half a year before.
    pub provable_until: Option<Timestamp>,
}

/// Result of verifying one signature of a received document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExistingSignature {
    /// Full name of the signature field; empty if the signature belongs to no field.
    pub field: String,
    pub kind: SignatureKind,
    pub status: SignatureStatus,
    /// Reason for any status but `valid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Subject of the signer's certificate, by RFC 4514.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// SHA-256 of the signer's certificate, lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_sha256: Option<String>,
    /// Time of the signature, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_at: Option<String>,
    /// Source of `signed_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_source: Option<SignatureTimeSource>,
    pub covers: SignedPart,
    pub changes_after_signing: LaterChange,
    /// `PAdES-B`, `PAdES-T`, `PAdES-LT` or `PAdES-LTA` (ETSI EN 319 142-1); `CMS-…` for signatures
    /// that do not meet PAdES. `LT` if the document has statements about the revocation of each certificate
    /// of the signature and of its time stamp. Absent for time stamps and where it cannot be determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    pub trust: SignatureTrust,
}

/// Kind of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignatureKind {
    /// Signature of a person or an organization.
    Signature,
    /// Time stamp over the document (RFC 3161).
    TimeStamp,
}

/// Result for the signature as a whole. The trust in its certificate is stated apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignatureStatus {
    /// The signed bytes are unchanged, and later revisions changed only what the signature permits.
    Valid,
    /// The signed bytes were changed, or a later revision changed more than the signature permits.
    Altered,
    /// The signature could not be read, or uses an algorithm that is unknown or unsafe.
    NotVerifiable,
}

/// Source of a signature's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignatureTimeSource {
    /// A time stamp that holds.
    TimeStamp,
    /// The signer's own clock.
    Signer,
}

/// Part of the document that a signature covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignedPart {
    /// The whole document.
    WholeDocument,
    /// The document before later revisions were appended.
    EarlierRevision,
    /// Not even the revision that it was made in.
    Part,
}

/// The weightiest change in the revisions after a signature, in ascending order.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LaterChange {
    /// No later revision.
    None,
    /// Signatures, time stamps and their validation data only.
    Signatures,
    /// Values of form fields.
    FormFields,
    /// Annotations, or the appearance of a signature.
    Annotations,
    /// Anything else: pages, scripts, attached files.
    Content,
    /// The signed revision alone could not be read.
    Unknown,
}

/// Trust in the signer's certificate. Revocation is not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignatureTrust {
    /// A certificate path leads to a configured root.
    Trusted,
    /// None does.
    Untrusted,
    /// No roots are configured, or the signature could not be read.
    NotChecked,
}
