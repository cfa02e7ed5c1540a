//! Envelopes, their signers and custodians.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::clock::Timestamp;
use super::contract_dates::PlannedDate;
use super::dates::ZoneName;
use super::id::{BatchId, CustomerId, EnvelopeId, OrgId, SignerId, TemplateId};
use super::import::ImportOrigin;
use super::jurisdiction::Jurisdiction;
use super::locale::Locale;
use super::organization::Role;
use super::reminders::{PlannedReminders, ReminderPlan};
use crate::signature::ExistingSignature;

/// Defines an enum with one text form for each value, used in the API and in the database.
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

            /// Parses a value; `None` for any other text.
            pub fn parse(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Text form, as used in the API.
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
    /// Status of an envelope.
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
    /// Whether the envelope waits for its signers.
    pub fn is_out_for_signing(self) -> bool {
        matches!(self, Self::Sent | Self::Viewed)
    }

    /// Whether the envelope was not sent yet.
    pub fn is_unsent(self) -> bool {
        matches!(self, Self::Pending | Self::Uploaded | Self::Preparing)
    }

    /// Whether the envelope can still be sent or signed.
    pub fn is_unfinished(self) -> bool {
        matches!(
            self,
            Self::Pending | Self::Uploaded | Self::Preparing | Self::Sent | Self::Viewed
        )
    }

    /// Whether all signers have signed, also after vault-in and vault-out.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::Completed | Self::Vaulted | Self::VaultedOut)
    }
}

words! {
    /// Kind of an envelope: signed here (`esign`), or uploaded already signed (`paper`).
    EnvelopeKind {
        Esign = "esign",
        Paper = "paper",
    }
}

words! {
    /// Status of a signer.
    SignerStatus {
        Pending = "pending",
        Viewed = "viewed",
        Started = "started",
        Completed = "completed",
        Declined = "declined",
    }
}

words! {
    /// Whether a signer who completed the form executed a signature: a signature or initials of
    /// theirs is on the document, or the form asked them for none.
    SignatureExecution {
        Executed = "executed",
        NotAsked = "not_asked",
    }
}

words! {
    /// What a signer does: signs, approves, or witnesses the signatures of others.
    SignerKind {
        Signer = "signer",
        Approver = "approver",
        Witness = "witness",
    }
}

words! {
    /// What a signer enters before the document opens: nothing, a code sent to the signer by mail or
    /// as a text message, or a passcode agreed with the sender.
    SignerAccess {
        None = "none",
        EmailCode = "email_code",
        SmsCode = "sms_code",
        Passcode = "passcode",
    }
}

impl SignerAccess {
    /// Returns whether the signer gets a code at each visit.
    pub fn is_sent(self) -> bool {
        matches!(self, Self::EmailCode | Self::SmsCode)
    }
}

words! {
    /// How a signer gets invitations and reminders.
    SignerChannel {
        Email = "email",
        Sms = "sms",
        EmailAndSms = "email_and_sms",
    }
}

words! {
    /// How a recipient who does not sign takes part: gets a copy (`cc`), may also read the document
    /// while it is being signed (`viewer`), or may also take the place of a signer (`substitute`).
    RecipientKind {
        Cc = "cc",
        Viewer = "viewer",
        Substitute = "substitute",
    }
}

impl RecipientKind {
    /// Returns whether the recipient may read the document while it is being signed.
    pub fn reads_along(self) -> bool {
        self != Self::Cc
    }
}

words! {
    /// Status of a custodian's permission.
    CustodianStatus {
        Pending = "pending",
        Accepted = "accepted",
        Revoked = "revoked",
    }
}

words! {
    /// Status of the payment requested at signing.
    PaymentStatus {
        RequiresPayment = "requires_payment",
        Paid = "paid",
    }
}

words! {
    /// File type that can be uploaded.
    FileType {
        Pdf = "application/pdf",
        Png = "image/png",
        Jpeg = "image/jpeg",
    }
}

impl FileType {
    /// Detects the type by the first bytes of a file; `None` for any other type.
    pub fn detect(head: &[u8]) -> Option<Self> {
        // ISO 32000-1, implementation note 13: the header may be anywhere in the
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

/// Secured party: the party that a contract is assigned to (check 8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecuredParty {
    /// Name. Check 8 requires one that is not empty.
    pub name: String,
    /// Role in the transaction, for example `lender`.
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

/// Stored file: key, digest, size and type of an object in storage.
///
/// It has no `Serialize`, so a storage key cannot slip into a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// Storage key.
    pub key: String,
    /// SHA-256, lower-case hex.
    pub sha256: String,
    /// Size in bytes.
    pub size: i64,
    /// Media type.
    pub content_type: String,
}

/// Serialized form of a stored file for database rows, job payloads and encrypted texts. Nothing else
/// serializes a storage key.
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

/// Record of an envelope.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// Its id.
    pub id: EnvelopeId,
    /// Organization that owns the envelope.
    pub org: OrgId,
    /// Customer of the organization.
    pub customer: CustomerId,
    /// Display name.
    pub name: String,
    /// Signed here or uploaded.
    pub kind: EnvelopeKind,
    /// Status.
    pub status: EnvelopeStatus,
    /// Reference chosen by the partner.
    pub external_id: Option<String>,
    /// Template that the envelope was made from.
    pub template: Option<TemplateId>,
    /// Metadata, of which partners see those of [`PUBLIC_METADATA`] and [`OWN_METADATA`].
    pub metadata: Map<String, Value>,
    /// Party that the contract is assigned to.
    pub secured_party: Option<SecuredParty>,
    /// Uploaded file.
    pub upload: Option<StoredFile>,
    /// Signatures that the document had before it was sealed.
    pub existing_signatures: Vec<ExistingSignature>,
    /// Options of sending, and the submission.
    pub sending: SentDocument,
    /// Files of the envelope in the vault.
    pub record: VaultRecord,
    /// E-mail address of the creator, who becomes the custodian.
    pub created_by: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Time at which the last party signed.
    pub signed_at: Option<Timestamp>,
    /// Time at which an unfinished envelope expires.
    pub expires_at: Option<Timestamp>,
    /// Status of the payment; `None` when none was requested.
    pub payment: Option<PaymentStatus>,
    /// Whether the envelope is vaulted automatically once signed; `None` for the organization's
    /// setting.
    pub auto_vault: Option<bool>,
    /// Acceptance of unattended vaulting.
    pub vault_terms: Option<VaultTerms>,
    /// Bulk batch that created the envelope.
    pub batch: Option<BatchId>,
    /// Whether the record is being destroyed or is destroyed; `None` for a whole one.
    pub destruction: Option<EnvelopeDestruction>,
}

words! {
    /// Progress of the destruction of a record. Neither can be read any more; `destroyed`: nothing is left to delete.
    EnvelopeDestruction {
        Destroying = "destroying",
        Destroyed = "destroyed",
    }
}

/// Options of sending an envelope, and its submission at the provider.
#[derive(Clone, Debug)]
pub struct SentDocument {
    /// Signing provider instance that the envelope was sent through.
    pub provider_instance: Option<String>,
    /// Id of the submission at the provider.
    pub submission: Option<String>,
    /// Whether signers sign one after the other.
    pub preserve_signing_order: bool,
    /// Whether signers must pass identity questions before they see the document.
    pub kba_required: bool,
    /// Whether signers are invited by mail.
    pub send_email: bool,
    /// The sender's own subject of the mails that ask signers, in one line.
    pub subject: Option<String>,
    /// Message of the sender to the signers.
    pub message: Option<String>,
    /// Page to which signers return after signing or declining.
    pub return_url: Option<String>,
    /// Whether signers may name another person to sign in their place.
    pub allow_delegation: bool,
    /// Whether signers may decline.
    pub may_decline: bool,
}

impl Default for SentDocument {
    /// Defaults of the API.
    fn default() -> Self {
        Self {
            provider_instance: None,
            submission: None,
            preserve_signing_order: true,
            kba_required: false,
            send_email: true,
            subject: None,
            message: None,
            return_url: None,
            allow_delegation: false,
            may_decline: true,
        }
    }
}

/// Files of an envelope in the vault, all present once it is vaulted. They are separate options
/// because the integrity sweep reports each missing one.
#[derive(Clone, Debug, Default)]
pub struct VaultRecord {
    /// The authoritative copy.
    pub authoritative: AuthoritativeCopy,
    /// SHA-256 of the authoritative copy, kept after vault-out.
    pub document_hash: Option<String>,
    /// The non-authoritative copy.
    pub copy: Option<StoredFile>,
    /// The compliance certificate.
    pub certificate: Option<StoredFile>,
    /// The custody record PDF.
    pub custody_record: Option<StoredFile>,
    /// Score in the certificate; also `None` for envelopes vaulted by earlier releases.
    pub compliance_score: Option<i64>,
}

/// Location of the authoritative copy. There is exactly one copy; a release moves it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AuthoritativeCopy {
    /// Not vaulted yet.
    #[default]
    Nowhere,
    /// In the live vault.
    Live(StoredFile),
    /// Released, in the archive.
    Archived(StoredFile),
}

impl AuthoritativeCopy {
    /// Returns the file in either location.
    pub fn file(&self) -> Option<&StoredFile> {
        match self {
            Self::Nowhere => None,
            Self::Live(file) | Self::Archived(file) => Some(file),
        }
    }

    /// Returns the file if it is in the live vault.
    pub fn live(&self) -> Option<&StoredFile> {
        match self {
            Self::Live(file) => Some(file),
            _ => None,
        }
    }

    /// Returns the file if it is in the archive.
    pub fn archived(&self) -> Option<&StoredFile> {
        match self {
            Self::Archived(file) => Some(file),
            _ => None,
        }
    }
}

/// Acceptance that authorizes unattended vaulting (specification, "Bulk send").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultTerms {
    /// Time of the acceptance.
    pub accepted_at: Timestamp,
    /// E-mail address of the user.
    pub accepted_by: String,
}

/// Members of an envelope's metadata that partners may see.
pub const PUBLIC_METADATA: [&str; 4] = [
    "document_source",
    "source_template_id",
    "bulk_send",
    OPEN_LINK,
];
/// Member with the open link that the envelope was made by.
pub const OPEN_LINK: &str = "open_link";
/// Member with the partner's own metadata.
pub const OWN_METADATA: &str = "own";
/// Member with the jurisdiction of the chattel paper.
pub const JURISDICTION: &str = "chattel_paper_jurisdiction";
/// What facts have instead of the place of a stored file: they are shown to partners, and checks ask only whether
/// there is one.
const STORED: &str = "stored";
/// Member with the statement about the paper original.
const PAPER_ORIGINAL: &str = "paper_original";
/// Member with the import that made the record.
const IMPORTED: &str = "imported";
/// Member with the dates of the contract.
const CONTRACT_DATES: &str = "contract_dates";
/// Member with the plan of reminders.
const REMINDERS: &str = "reminders";
/// Member with the sending at a later time.
const PLANNED_SENDING: &str = "planned_sending";
/// Member with the reason why a planned sending failed.
const SENDING_FAILURE: &str = "sending_failure";
/// Member of that with the e-mail address of the planner of the sending.
const PLANNER: &str = "planned_by";
/// Member with the number of the version, from the first correction.
pub const VERSION: &str = "version";
/// Member with the values that the sender gave for fields.
pub const PREFILLED: &str = "prefilled_data";

words! {
    /// How an envelope is related to another one of its organization. The text is also the name of the member of the
    /// metadata with the other's id.
    EnvelopeLink {
        CopiedFrom = "copied_from",
        CopiedTo = "copied_to",
        Corrects = "corrects",
        CorrectedBy = "corrected_by",
    }
}

words! {
    /// What became of the paper that an upload was made from, by the uploader's statement.
    PaperOriginalState {
        Destroyed = "destroyed",
        Marked = "marked",
        Kept = "kept",
        Unknown = "unknown",
    }
}

/// Statement about the paper original of an upload. While the paper exists, the upload is not the sole
/// original (UCC §9-314A).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PaperOriginal {
    /// What became of the paper; `unknown` without a statement.
    pub state: PaperOriginalState,
    /// Where it is kept, the keeper, or how it was marked.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Who made the statement; null without one.
    pub stated_by: Option<String>,
    /// Time of the statement; null without one.
    pub at: Option<Timestamp>,
}

impl Default for PaperOriginal {
    fn default() -> Self {
        Self {
            state: PaperOriginalState::Unknown,
            place: None,
            stated_by: None,
            at: None,
        }
    }
}

/// Sending of a draft at a later time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSending {
    /// When the draft is sent.
    pub at: Timestamp,
    /// Actor who planned it.
    pub actor: String,
    /// E-mail address of the actor, if there is one.
    pub email: Option<String>,
    /// Role of the user who planned it; none of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Template of the library that is sent; none for a document of the envelope's own, which its sender may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<PlannedTemplate>,
}

/// Template of a planned sending, as it was when the sending was planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTemplate {
    /// Its id.
    pub id: TemplateId,
    /// Hash of document and fields.
    pub content: String,
}

/// Reason why a draft was not sent at its planned time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SendingFailure {
    /// The planned time.
    pub planned_for: Timestamp,
    /// The refusal in words.
    pub reason: String,
}

/// Returns when the draft with this metadata is sent.
pub fn planned_time(metadata: &Map<String, Value>) -> Option<Timestamp> {
    Timestamp::parse(metadata.get(PLANNED_SENDING)?["at"].as_str()?)
}

impl Envelope {
    /// Returns the sending at a later time, while the envelope waits for it.
    pub fn planned_sending(&self) -> Option<PlannedSending> {
        let planned = self.metadata.get(PLANNED_SENDING).cloned();
        let planned = planned.filter(|_| self.is_draft())?;
        serde_json::from_value(planned).ok()
    }

    /// Plans the sending, or ends the plan. Either forgets an earlier failure.
    pub fn plan_sending(&mut self, planned: Option<&PlannedSending>) {
        self.metadata.remove(SENDING_FAILURE);
        match planned {
            Some(planned) => {
                let planned = serde_json::to_value(planned).unwrap_or_default();
                self.metadata.insert(PLANNED_SENDING.into(), planned);
            }
            None => {
                self.metadata.remove(PLANNED_SENDING);
            }
        }
    }

    /// Returns why the envelope was not sent at its planned time.
    pub fn sending_failure(&self) -> Option<SendingFailure> {
        let failure = self.metadata.get(SENDING_FAILURE)?.clone();
        serde_json::from_value(failure).ok()
    }

    /// Ends the plan of sending with a failure.
    pub fn fail_sending(&mut self, failure: &SendingFailure) {
        let planner = self.planned_sending().and_then(|planned| planned.email);
        self.plan_sending(None);
        let mut failure = serde_json::to_value(failure).unwrap_or_default();
        // For the mail alone, and so no member of the failure that partners see.
        failure[PLANNER] = planner.into();
        self.metadata.insert(SENDING_FAILURE.into(), failure);
    }

    /// Returns the e-mail address of the planner of the sending that failed.
    pub fn failed_planner(&self) -> Option<&str> {
        let planner = self.metadata.get(SENDING_FAILURE)?[PLANNER].as_str();
        planner.filter(|planner| planner.contains('@'))
    }

    /// Returns the partner's own metadata.
    pub fn own_metadata(&self) -> Option<&Map<String, Value>> {
        self.metadata.get(OWN_METADATA)?.as_object()
    }

    /// Returns whether a sender can still prepare the envelope.
    pub fn is_draft(&self) -> bool {
        // The envelopes of a batch are prepared in the batch.
        let is_own = self.kind == EnvelopeKind::Esign && self.batch.is_none();
        is_own && self.status.is_unsent() && self.sending.submission.is_none()
    }

    /// Returns the statement about the paper original.
    pub fn paper_original(&self) -> PaperOriginal {
        let stated = self.metadata.get(PAPER_ORIGINAL).cloned();
        let stated = stated.and_then(|stated| serde_json::from_value(stated).ok());
        stated.unwrap_or_default()
    }

    /// Records a statement about the paper original.
    pub fn set_paper_original(&mut self, stated: &PaperOriginal) {
        let stated = serde_json::to_value(stated).unwrap_or_default();
        self.metadata.insert(PAPER_ORIGINAL.into(), stated);
    }

    /// Returns the import that made the record, with what its manifest says.
    pub fn imported(&self) -> Option<ImportOrigin> {
        let imported = self.metadata.get(IMPORTED)?.clone();
        serde_json::from_value(imported).ok()
    }

    /// Records the import that makes the record.
    pub fn set_imported(&mut self, origin: &ImportOrigin) {
        let origin = serde_json::to_value(origin).unwrap_or_default();
        self.metadata.insert(IMPORTED.into(), origin);
    }

    /// Returns the id of the envelope that is related to this one. Of several copies it is the newest.
    pub fn link(&self, link: EnvelopeLink) -> Option<EnvelopeId> {
        EnvelopeId::parse(self.metadata.get(link.as_str())?.as_str()?)
    }

    /// Relates the envelope to another one.
    pub fn set_link(&mut self, link: EnvelopeLink, other: &EnvelopeId) {
        let id = other.as_str().into();
        self.metadata.insert(link.as_str().into(), id);
    }

    /// Returns the number of the version: 1, and one more for each correction of the document.
    pub fn version(&self) -> u64 {
        let version = self.metadata.get(VERSION);
        version.and_then(Value::as_u64).unwrap_or(1)
    }

    /// Sets the number of the version.
    pub fn set_version(&mut self, version: u64) {
        self.metadata.insert(VERSION.into(), version.into());
    }

    /// Returns the values that the sender gave for fields, by their names.
    pub fn prefilled(&self) -> Option<&Map<String, Value>> {
        self.metadata.get(PREFILLED)?.as_object()
    }

    /// Records the values that the sender gave for fields.
    pub fn set_prefilled(&mut self, values: &Map<String, Value>) {
        let values = Value::Object(values.clone());
        self.metadata.insert(PREFILLED.into(), values);
    }

    /// Returns the plan of reminders.
    pub fn reminders(&self) -> Option<PlannedReminders> {
        let planned = self.metadata.get(REMINDERS)?.clone();
        serde_json::from_value(planned).ok()
    }

    /// Sets the plan of reminders.
    pub fn set_reminders(&mut self, planned: PlannedReminders) {
        let planned = serde_json::to_value(planned).unwrap_or_default();
        self.metadata.insert(REMINDERS.into(), planned);
    }

    /// Replaces the plan of reminders of a draft; without one none are sent.
    pub fn plan_reminders(&mut self, plan: Option<ReminderPlan>) {
        match plan {
            Some(plan) => self.set_reminders(PlannedReminders::new(plan)),
            None => {
                self.metadata.remove(REMINDERS);
            }
        }
    }

    /// Returns the dates of the contract.
    pub fn contract_dates(&self) -> Vec<PlannedDate> {
        let dates = self.metadata.get(CONTRACT_DATES).cloned();
        let dates = dates.and_then(|dates| serde_json::from_value(dates).ok());
        dates.unwrap_or_default()
    }

    /// Sets the dates of the contract.
    pub fn set_contract_dates(&mut self, dates: &[PlannedDate]) {
        if dates.is_empty() {
            self.metadata.remove(CONTRACT_DATES);
            return;
        }
        let dates = serde_json::to_value(dates).unwrap_or_default();
        self.metadata.insert(CONTRACT_DATES.into(), dates);
    }

    /// States the jurisdiction of the chattel paper, if there is one.
    pub fn set_jurisdiction(&mut self, jurisdiction: Option<&Jurisdiction>) {
        if let Some(jurisdiction) = jurisdiction {
            let text = jurisdiction.as_str().into();
            self.metadata.insert(JURISDICTION.into(), text);
        }
    }

    /// Returns the jurisdiction of the chattel paper, if one is stated (UCC §9-306A(b)(1)).
    pub fn jurisdiction(&self) -> Option<&str> {
        self.metadata.get(JURISDICTION)?.as_str()
    }

    /// Creates the record of a pending envelope with default options.
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
            existing_signatures: Vec::new(),
            sending: SentDocument::default(),
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
            destruction: None,
        }
    }

    /// Whether the envelope is vaulted automatically once signed. `standing` is the
    /// organization's setting.
    pub fn is_vaulted_unattended(&self, standing: bool) -> bool {
        // The specification requires accepted terms for envelopes of a bulk batch.
        if self.batch.is_some() {
            return self.vault_terms.is_some() && self.auto_vault != Some(false);
        }
        self.auto_vault.unwrap_or(standing)
    }

    /// Whether the envelope was uploaded already signed.
    pub fn is_upload(&self) -> bool {
        self.kind == EnvelopeKind::Paper
    }

    /// Returns provider instance and submission, once the envelope was submitted.
    pub fn submitted(&self) -> Option<(&str, &str)> {
        Some((
            self.sending.provider_instance.as_deref()?,
            self.sending.submission.as_deref()?,
        ))
    }

    /// Returns the creator's e-mail address; `None` for an API key without an owner.
    pub fn creator_email(&self) -> Option<&str> {
        Some(self.created_by.as_str()).filter(|creator| creator.contains('@'))
    }

    /// Returns what facts have for the authoritative copy in the live vault, if there is one.
    pub fn vault_file_path(&self) -> Option<String> {
        let live = self.record.authoritative.live();
        live.map(|_| STORED.to_owned())
    }

    /// Returns what facts have for the non-authoritative copy, if there is one.
    pub fn copy_file_path(&self) -> Option<String> {
        // The rules check that the copy is in the location for copies.
        let copy = self.record.copy.as_ref();
        copy.map(|_| format!("copies:{STORED}"))
    }

    /// Returns what facts have for the certificate, if there is one.
    pub fn certificate_path(&self) -> Option<String> {
        let certificate = self.record.certificate.as_ref();
        certificate.map(|_| STORED.to_owned())
    }

    /// Returns the opaque reference of the uploaded file, if there is one.
    pub fn upload_file_path(&self) -> Option<String> {
        self.upload
            .as_ref()
            .map(|_| format!("uploads:{}/document", self.id))
    }
}

/// Compares two e-mail addresses without regard to case, as mail systems do.
pub fn same_address(left: &str, right: &str) -> bool {
    left.trim().to_lowercase() == right.trim().to_lowercase()
}

/// Hides most of an address from people who may not see it: `j…n@example.com`.
pub fn masked_address(email: &str) -> String {
    let Some((local, domain)) = email.rsplit_once('@') else {
        return "…".into();
    };
    let letters: Vec<char> = local.chars().collect();
    match letters.as_slice() {
        [first, .., last] => format!("{first}…{last}@{domain}"),
        // A single letter would be the whole local part, so none is shown.
        _ => format!("…@{domain}"),
    }
}

/// Person who has to sign an envelope. Two signers may share an e-mail address: records are joined by
/// `id`, and the address is an attribute.
#[derive(Clone, Debug)]
pub struct Signer {
    /// Identity of the person in this envelope.
    pub id: SignerId,
    /// Position in the signing order, from 0.
    pub position: i64,
    /// Name given by the sender.
    pub name: String,
    /// E-mail address given by the sender.
    pub email: String,
    /// Role in the template.
    pub role: String,
    /// What the signer does.
    pub kind: SignerKind,
    /// Role of the witnessed signer, for a witness.
    pub witness_of: Option<String>,
    /// Whether the page of that signer offers the form of the witness after the signature.
    pub same_device: bool,
    /// Group with substitutes who may take the signer's place.
    pub group: Option<String>,
    /// Place in the signing order, from 1. Signers with an equal one sign in any order.
    pub turn: i64,
    /// What the signer enters before the document opens.
    pub access: SignerAccess,
    /// The passcode, encrypted.
    pub passcode: Option<String>,
    /// Mobile number in E.164.
    pub phone: Option<String>,
    /// How the signer gets invitations and reminders.
    pub notify_by: SignerChannel,
    /// Status.
    pub status: SignerStatus,
    /// Id of this signer at the provider.
    pub provider_submitter: Option<String>,
    /// Time at which the signer completed the form.
    pub completed_at: Option<Timestamp>,
    /// Whether the completed form has a signature of the signer. `None` until then, and for forms that
    /// were completed before this was recorded.
    pub execution: Option<SignatureExecution>,
    /// Reason for declining.
    pub decline_reason: Option<String>,
    /// Whether this signer must pass identity questions before the document opens.
    pub challenged: bool,
    /// Language that the sender chose.
    pub locale: Option<Locale>,
    /// Time zone that the sender stated.
    pub time_zone: Option<ZoneName>,
    /// Whether the signer is a consumer, by the statement of the sender; none without a statement.
    pub consumer: Option<bool>,
    /// Outcome of the newest mail or text message to this signer; none before the first.
    pub notice: Option<SignerNotice>,
}

/// Outcome of a mail or text message to a signer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignerNotice {
    /// When it was accepted, or failed.
    pub at: Timestamp,
    /// Why it failed for good. `None` if the next server accepted it, which does not prove that it arrived.
    pub failure: Option<String>,
}

impl Signer {
    /// Returns a new signer, invited by mail alone, with a turn of their own after those before.
    pub fn new(position: i64, name: String, email: String, role: String) -> Self {
        Self {
            id: SignerId::new(),
            position,
            name,
            email,
            role,
            kind: SignerKind::Signer,
            witness_of: None,
            same_device: false,
            group: None,
            turn: position + 1,
            access: SignerAccess::None,
            passcode: None,
            phone: None,
            notify_by: SignerChannel::Email,
            status: SignerStatus::Pending,
            provider_submitter: None,
            completed_at: None,
            execution: None,
            decline_reason: None,
            challenged: false,
            locale: None,
            time_zone: None,
            consumer: None,
            notice: None,
        }
    }

    /// Returns the time at which the signer executed a signature or initials: `None` for approvers, who
    /// only approve, and for people who completed a form that asked them for no signature.
    pub fn signed_at(&self) -> Option<Timestamp> {
        let signs = self.kind != SignerKind::Approver
            && self.execution != Some(SignatureExecution::NotAsked);
        self.completed_at.filter(|_| signs)
    }

    /// Returns the time at which an approver approved.
    pub fn approved_at(&self) -> Option<Timestamp> {
        self.completed_at
            .filter(|_| self.kind == SignerKind::Approver)
    }

    /// Returns whether a role names the signer. Providers compare roles without regard to case.
    pub fn has_role(&self, role: &str) -> bool {
        self.role.eq_ignore_ascii_case(role)
    }

    /// Returns whether the signer cannot take part without a mobile phone.
    pub fn needs_phone(&self) -> bool {
        self.access == SignerAccess::SmsCode || self.notify_by != SignerChannel::Email
    }
}

/// Recipient of an envelope who does not sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// Position after the signers.
    pub position: i64,
    /// Name given by the sender.
    pub name: String,
    /// E-mail address given by the sender.
    pub email: String,
    /// How the recipient takes part.
    pub kind: RecipientKind,
    /// Group of a substitute.
    pub group: Option<String>,
}

/// Permission to keep an envelope's authoritative copy.
#[derive(Clone, Debug)]
pub struct Custodian {
    /// E-mail address of the custodian.
    pub email: String,
    /// Whether the permission is in force.
    pub status: CustodianStatus,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_types_are_detected_by_their_first_bytes() {
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
    fn an_address_is_masked() {
        for (email, shown) in [
            ("jordan@example.com", "j…n@example.com"),
            ("jo@example.com", "j…o@example.com"),
            ("j@example.com", "…@example.com"),
        ] {
            assert_eq!(masked_address(email), shown);
        }
    }

    #[test]
    fn a_failed_sending_keeps_its_planner_until_it_is_planned_again() {
        let now = Timestamp::from_millis(0);
        let kind = EnvelopeKind::Esign;
        let (org, customer) = (OrgId::new(), CustomerId::new());
        let mut draft = Envelope::new(org, customer, "Loan".into(), kind, "key:1".into(), now);
        let planned = PlannedSending {
            at: now,
            actor: "user:ada@oak.example".into(),
            email: Some("ada@oak.example".into()),
            role: None,
            template: None,
        };
        draft.plan_sending(Some(&planned));
        let failure = SendingFailure {
            planned_for: now,
            reason: "No document".into(),
        };
        draft.fail_sending(&failure);
        assert_eq!(draft.planned_sending(), None);
        assert_eq!(draft.sending_failure(), Some(failure));
        assert_eq!(draft.failed_planner(), Some("ada@oak.example"));

        draft.plan_sending(Some(&planned));
        assert_eq!(draft.failed_planner(), None);
    }

    #[test]
    fn every_status_has_a_unique_name() {
        for status in EnvelopeStatus::ALL {
            assert_eq!(EnvelopeStatus::parse(status.as_str()), Some(*status));
        }
        assert_eq!(EnvelopeStatus::parse("Sent"), None);
    }
}
