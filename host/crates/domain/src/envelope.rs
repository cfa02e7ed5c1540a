//! Envelopes, their signers and custodians.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::clock::Timestamp;
use super::id::{BatchId, CustomerId, EnvelopeId, OrgId, TemplateId};

/// A closed set of words: text in the API and in the database.
#[macro_export]
macro_rules! words {
    ($(#[$docs:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$docs])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        pub enum $name {
            $(#[serde(rename = $text)] #[allow(missing_docs)] $variant),*
        }

        #[allow(dead_code)]
        impl $name {
            /// Every value, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// None for a word that is not in the set.
            pub fn parse(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// As it is written in the API.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
}
pub use words;

words! {
    /// Where an envelope stands.
    EnvelopeStatus {
        Pending = "pending",
        Uploaded = "uploaded",
        Preparing = "preparing",
        Sent = "sent",
        Viewed = "viewed",
        Completed = "completed",
        Vaulted = "vaulted",
        VaultedOut = "vaulted_out",
        Declined = "declined",
        Voided = "voided",
        Expired = "expired",
    }
}

impl EnvelopeStatus {
    /// With its signers.
    pub fn is_out_for_signing(self) -> bool {
        matches!(self, Self::Sent | Self::Viewed)
    }

    /// Everybody has signed, wherever the signed document is by now.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::Completed | Self::Vaulted | Self::VaultedOut)
    }
}

words! {
    /// Signed here, or uploaded already signed.
    EnvelopeKind {
        Esign = "esign",
        Paper = "paper",
    }
}

words! {
    /// Where a signer stands.
    SignerStatus {
        Pending = "pending",
        Viewed = "viewed",
        Started = "started",
        Completed = "completed",
        Declined = "declined",
    }
}

words! {
    /// Where a custodian permission stands.
    CustodianStatus {
        Pending = "pending",
        Accepted = "accepted",
        Revoked = "revoked",
    }
}

words! {
    /// Whether the payment asked for at signing has been made.
    PaymentStatus {
        RequiresPayment = "requires_payment",
        Paid = "paid",
    }
}

words! {
    /// The file types that can be uploaded.
    FileType {
        Pdf = "application/pdf",
        Png = "image/png",
        Jpeg = "image/jpeg",
    }
}

impl FileType {
    /// By the first bytes of the file; none for anything else.
    pub fn detect(head: &[u8]) -> Option<Self> {
        // ISO 32000-1, implementation note 13: the header may stand within the
        // first 1024 bytes.
        let window = head.get(..head.len().min(1024)).unwrap_or_default();
        if window.windows(5).any(|bytes| bytes == b"%PDF-") {
            Some(Self::Pdf)
        } else if head.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if head.starts_with(b"\xff\xd8\xff") {
            Some(Self::Jpeg)
        } else {
            None
        }
    }
}

/// The party a contract is assigned to (check 8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecuredParty {
    /// Must not be empty to satisfy check 8.
    pub name: String,
    /// For example `lender`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Postal address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// E-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Registration number or similar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier: Option<String>,
}

/// An object in the store: where it is and what it holds.
///
/// Has no `Serialize`, so that a storage key cannot slip into a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// The object's key.
    pub key: String,
    /// SHA-256, lower-case hex.
    pub sha256: String,
    /// Bytes.
    pub size: i64,
    /// What kind of file it is.
    pub content_type: String,
}

/// A stored file as a row holds it. Nothing else writes its key anywhere.
#[derive(Clone, Debug)]
pub struct KeptFile(pub StoredFile);

#[derive(Serialize, Deserialize)]
struct FileRow<'a> {
    key: Cow<'a, str>,
    sha256: Cow<'a, str>,
    size: i64,
    content_type: Cow<'a, str>,
}

impl Serialize for KeptFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = FileRow {
            key: self.0.key.as_str().into(),
            sha256: self.0.sha256.as_str().into(),
            size: self.0.size,
            content_type: self.0.content_type.as_str().into(),
        };
        row.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for KeptFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let row = FileRow::deserialize(deserializer)?;
        Ok(Self(StoredFile {
            key: row.key.into_owned(),
            sha256: row.sha256.into_owned(),
            size: row.size,
            content_type: row.content_type.into_owned(),
        }))
    }
}

/// An envelope's record.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// Its id.
    pub id: EnvelopeId,
    /// Whose it is.
    pub org: OrgId,
    /// For whom it is.
    pub customer: CustomerId,
    /// Display name.
    pub name: String,
    /// Signed here or uploaded.
    pub kind: EnvelopeKind,
    /// Where it stands.
    pub status: EnvelopeStatus,
    /// The partner's own reference.
    pub external_id: Option<String>,
    /// The template it was made from.
    pub template: Option<TemplateId>,
    /// Everything noted about it; only a subset is shown to partners.
    pub metadata: Map<String, Value>,
    /// The party it is assigned to.
    pub secured_party: Option<SecuredParty>,
    /// The uploaded file.
    pub upload: Option<StoredFile>,
    /// How it goes to its signers.
    pub sending: Sending,
    /// What the vault has of it.
    pub record: VaultRecord,
    /// E-mail of who created it: the custodian-to-be.
    pub created_by: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When every party had signed.
    pub signed_at: Option<Timestamp>,
    /// When an unfinished one expires.
    pub expires_at: Option<Timestamp>,
    /// Where its payment stands; none when none was asked for.
    pub payment: Option<PaymentStatus>,
    /// Whether it is vaulted by itself once signed; none: as the organization has it.
    pub auto_vault: Option<bool>,
    /// Who accepted that it is vaulted unattended, and when.
    pub vault_terms: Option<VaultTerms>,
    /// The bulk batch it was made in.
    pub batch: Option<BatchId>,
}

/// How an envelope goes to its signers.
#[derive(Clone, Debug)]
pub struct Sending {
    /// Which configured signing provider it was sent through.
    pub provider_instance: Option<String>,
    /// The provider's submission.
    pub submission: Option<String>,
    /// Signers sign one after the other.
    pub preserve_signing_order: bool,
    /// Signers are asked about their identity before they see it.
    pub kba_required: bool,
    /// Signers are invited by mail.
    pub send_email: bool,
    /// From the sender to the signers.
    pub message: Option<String>,
}

impl Default for Sending {
    /// As it is sent when nobody asks for anything else.
    fn default() -> Self {
        Self {
            provider_instance: None,
            submission: None,
            preserve_signing_order: true,
            kba_required: false,
            send_email: true,
            message: None,
        }
    }
}

/// What the vault has of an envelope: all of it is there from vaulting on. The members are
/// apart from each other because the integrity sweep names each that is missing.
#[derive(Clone, Debug, Default)]
pub struct VaultRecord {
    /// The authoritative copy.
    pub authoritative: Authoritative,
    /// SHA-256 of the authoritative bytes; stays after vault-out.
    pub document_hash: Option<String>,
    /// The non-authoritative copy.
    pub copy: Option<StoredFile>,
    /// The compliance certificate.
    pub certificate: Option<StoredFile>,
    /// The custody record PDF.
    pub custody_record: Option<StoredFile>,
    /// The score in the certificate; none also for records that earlier releases vaulted.
    pub compliance_score: Option<i64>,
}

/// Where the authoritative copy is. There is one, and a release moves it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Authoritative {
    /// Not vaulted yet.
    #[default]
    Nowhere,
    /// In the live vault.
    Live(StoredFile),
    /// Released: in the archive.
    Archived(StoredFile),
}

impl Authoritative {
    /// Its file, wherever it is.
    pub fn file(&self) -> Option<&StoredFile> {
        match self {
            Self::Nowhere => None,
            Self::Live(file) | Self::Archived(file) => Some(file),
        }
    }

    /// Its file in the live vault.
    pub fn live(&self) -> Option<&StoredFile> {
        match self {
            Self::Live(file) => Some(file),
            _ => None,
        }
    }

    /// Its file in the archive.
    pub fn archived(&self) -> Option<&StoredFile> {
        match self {
            Self::Archived(file) => Some(file),
            _ => None,
        }
    }
}

/// The acceptance that authorizes unattended vaulting (specification, "Bulk send").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultTerms {
    /// When.
    pub accepted_at: Timestamp,
    /// E-mail address of the user.
    pub accepted_by: String,
}

/// An envelope as lists show it.
#[derive(Clone, Debug)]
pub struct ListedEnvelope {
    /// Its id.
    pub id: EnvelopeId,
    /// Display name.
    pub name: String,
    /// Where it stands.
    pub status: EnvelopeStatus,
    /// For whom it is.
    pub customer: CustomerId,
    /// The partner's own reference.
    pub external_id: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Envelope {
    /// A record of which nothing is known yet but whose it is.
    pub fn new(
        org: OrgId,
        customer: CustomerId,
        name: String,
        kind: EnvelopeKind,
        created_by: String,
        now: Timestamp,
    ) -> Self {
        Self {
            id: EnvelopeId::new(),
            org,
            customer,
            name,
            kind,
            status: EnvelopeStatus::Pending,
            external_id: None,
            template: None,
            metadata: Map::new(),
            secured_party: None,
            upload: None,
            sending: Sending::default(),
            record: VaultRecord::default(),
            created_by,
            created_at: now,
            updated_at: now,
            signed_at: None,
            expires_at: None,
            payment: None,
            auto_vault: None,
            vault_terms: None,
            batch: None,
        }
    }

    /// Whether it goes into the vault by itself once signed, in an organization
    /// whose setting is `standing`. One of a bulk batch only where that was accepted.
    pub fn is_vaulted_unattended(&self, standing: bool) -> bool {
        if self.batch.is_some() {
            return self.vault_terms.is_some() && self.auto_vault != Some(false);
        }
        self.auto_vault.unwrap_or(standing)
    }

    /// Whether it was uploaded already signed.
    pub fn is_upload(&self) -> bool {
        self.kind == EnvelopeKind::Paper
    }

    /// The instance of its signing provider and the submission there, once it was submitted.
    pub fn submitted(&self) -> Option<(&str, &str)> {
        Some((
            self.sending.provider_instance.as_deref()?,
            self.sending.submission.as_deref()?,
        ))
    }

    /// Where its creator can be written to; a key without an owner has no address.
    pub fn creator_email(&self) -> Option<&str> {
        Some(self.created_by.as_str()).filter(|creator| creator.contains('@'))
    }

    /// The opaque reference of the authoritative copy, when there is one.
    pub fn vault_file_path(&self) -> Option<String> {
        self.record
            .authoritative
            .live()
            .map(|_| format!("vault:{}/authoritative", self.id))
    }

    /// The opaque reference of the non-authoritative copy, when there is one.
    pub fn copy_file_path(&self) -> Option<String> {
        self.record
            .copy
            .as_ref()
            .map(|_| format!("copies:{}/copy", self.id))
    }

    /// The opaque reference of the certificate, when there is one.
    pub fn certificate_path(&self) -> Option<String> {
        self.record
            .certificate
            .as_ref()
            .map(|_| format!("certificates:{}/certificate", self.id))
    }

    /// The opaque reference of the uploaded file, when there is one.
    pub fn upload_file_path(&self) -> Option<String> {
        self.upload
            .as_ref()
            .map(|_| format!("uploads:{}/document", self.id))
    }
}

/// Somebody who has to sign an envelope.
#[derive(Clone, Debug)]
pub struct Signer {
    /// Place in the signing order, from 0.
    pub position: i64,
    /// Name as given by the sender.
    pub name: String,
    /// E-mail as given by the sender.
    pub email: String,
    /// The template role.
    pub role: String,
    /// Where this signer stands.
    pub status: SignerStatus,
    /// The provider's id of this signer.
    pub provider_submitter: Option<String>,
    /// When the signer finished.
    pub completed_at: Option<Timestamp>,
    /// Why the signer declined.
    pub decline_reason: Option<String>,
    /// Asked about their identity before the document opens.
    pub challenged: bool,
}

/// A permission to keep an envelope's authoritative copy.
#[derive(Clone, Debug)]
pub struct Custodian {
    /// Who.
    pub email: String,
    /// Whether the permission is in force.
    pub status: CustodianStatus,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_types_are_told_by_their_first_bytes() {
        assert_eq!(FileType::detect(b"%PDF-1.7\n"), Some(FileType::Pdf));
        assert_eq!(
            FileType::detect(b"\xef\xbb\xbf%PDF-1.4"),
            Some(FileType::Pdf)
        );
        assert_eq!(
            FileType::detect(b"\x89PNG\r\n\x1a\n...."),
            Some(FileType::Png)
        );
        assert_eq!(FileType::detect(b"\xff\xd8\xff\xe0"), Some(FileType::Jpeg));
        assert_eq!(FileType::detect(b"GIF89a"), None);
        assert_eq!(FileType::detect(b""), None);
    }

    #[test]
    fn every_status_has_one_word() {
        for status in EnvelopeStatus::ALL {
            assert_eq!(EnvelopeStatus::parse(status.as_str()), Some(*status));
        }
        assert_eq!(EnvelopeStatus::parse("Sent"), None);
    }
}
