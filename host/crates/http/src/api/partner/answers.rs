//! Views of envelopes for partners.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use holdfast_domain::clock::Timestamp;
use holdfast_domain::contract_dates::PlannedDate;
use holdfast_domain::dates::ZoneName;
use holdfast_domain::envelope::{
    Envelope, EnvelopeDestruction, EnvelopeKind, EnvelopeLink, EnvelopeStatus, PUBLIC_METADATA,
    PaperOriginal, Recipient, RecipientKind, SendingFailure, SignatureExecution, Signer,
    SignerAccess, SignerChannel, SignerKind, SignerNotice, SignerStatus,
};
use holdfast_domain::id::{CustomerId, EnvelopeId, QuestionId, SignerId, TemplateId};
use holdfast_domain::question::SignerQuestion;
use holdfast_domain::reminders::PlannedReminders;
use holdfast_domain::signature::ExistingSignature;
use holdfast_platform::room::attachments::{AttachedFile, SignersFile};
use holdfast_service::envelopes::SignerLink;
use holdfast_service::envelopes::creation::CreatedEnvelope;
use holdfast_service::envelopes::uploads::StoredUpload;
use holdfast_service::imports::ImportedView;
use holdfast_store::search::FoundEnvelope;

/// An envelope.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "envelope_name": "Retail instalment contract 2041",
    "status": "sent", "customer_id": "cust_01jdk7m3e8f4x9s2w5v6b0c1db", "external_id": "deal-2041",
    "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da", "envelope_kind": "esign",
    "created_at": "2026-11-21T09:30:00.000Z", "updated_at": "2026-11-21T09:30:00.000Z",
    "vaulted": false, "compliant": false, "certificate_issued": false, "compliance_score": null,
    "metadata": { "document_source": "template", "source_template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da" },
    "sign_url": "https://holdfast.example/sign/0f3Jq…",
}]))]
pub struct EnvelopeView {
    envelope_id: EnvelopeId,
    envelope_name: String,
    status: EnvelopeStatus,
    customer_id: CustomerId,
    external_id: Option<String>,
    template_id: Option<TemplateId>,
    envelope_kind: EnvelopeKind,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Whether the authoritative copy is in the vault.
    vaulted: bool,
    /// Whether a certificate has been generated, regardless of its result; equal to
    /// `certificate_issued`. Decide on `compliance_score`, or on `GET …/compliance`.
    compliant: bool,
    certificate_issued: bool,
    /// The score in the certificate: only 100 is compliant. Null before there is a certificate, and
    /// for records vaulted by a release that did not record the score.
    compliance_score: Option<i64>,
    /// `document_source`, `source_template_id`, `bulk_send` and `open_link`, where known, and your own members.
    metadata: Map<String, Value>,
    /// Jurisdiction of the chattel paper. Present only if one is stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    chattel_paper_jurisdiction: Option<String>,
    /// Signatures that the document had before it was sealed. Present only if it had any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    existing_signatures: Vec<ExistingSignature>,
    /// What the uploader stated about the paper original. Present for paper envelopes only.
    #[serde(skip_serializing_if = "Option::is_none")]
    paper_original: Option<PaperOriginal>,
    /// Import that made the record, with what its manifest declares. Present only for imported ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    imported: Option<ImportedView>,
    /// Plan of reminders, and how many were sent by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reminders: Option<PlannedReminders>,
    /// When the draft is sent. Present only while its sending is planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    send_at: Option<Timestamp>,
    /// Why the draft was not sent at its planned time. Present only until it is sent or planned again.
    #[serde(skip_serializing_if = "Option::is_none")]
    sending_failure: Option<SendingFailure>,
    /// Dates of the contract, and the notices of each that are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    contract_dates: Option<Vec<PlannedDate>>,
    /// The envelope that this one was copied from. Present only in copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    copied_from: Option<EnvelopeId>,
    /// The newest copy of this envelope. Present only if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    copied_to: Option<EnvelopeId>,
    /// The envelope that this one corrects. Present only in corrected ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    corrects: Option<EnvelopeId>,
    /// The envelope with the corrected document. Present only if this one was corrected, and so voided.
    #[serde(skip_serializing_if = "Option::is_none")]
    corrected_by: Option<EnvelopeId>,
    /// Number of the version, from 2. Present only in corrected envelopes.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    /// Progress of the record's destruction. From `destroying` on, only ids, hashes, statuses and times are left to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    destruction: Option<EnvelopeDestruction>,
    /// Link for the first signer. Present only in the answer to a create that also sent the
    /// envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    sign_url: Option<String>,
}

impl From<&Envelope> for EnvelopeView {
    fn from(envelope: &Envelope) -> Self {
        // Other members are the host's own notes, which are no part of the contract.
        let mut metadata: Map<String, Value> = PUBLIC_METADATA
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), envelope.metadata.get(*key)?.clone())))
            .collect();
        metadata.extend(envelope.own_metadata().cloned().unwrap_or_default());

        Self {
            envelope_id: envelope.id.clone(),
            envelope_name: envelope.name.clone(),
            status: envelope.status,
            customer_id: envelope.customer.clone(),
            external_id: envelope.external_id.clone(),
            template_id: envelope.template.clone(),
            envelope_kind: envelope.kind,
            created_at: envelope.created_at,
            updated_at: envelope.updated_at,
            vaulted: envelope.record.authoritative.live().is_some(),
            // The contract's name for an issued certificate. The verdict is in `compliance_score`.
            compliant: envelope.record.certificate.is_some(),
            certificate_issued: envelope.record.certificate.is_some(),
            compliance_score: envelope.record.compliance_score,
            metadata,
            chattel_paper_jurisdiction: envelope.jurisdiction().map(str::to_owned),
            existing_signatures: envelope.existing_signatures.clone(),
            // Only an upload can have an original on paper.
            paper_original: envelope.is_upload().then(|| envelope.paper_original()),
            imported: ImportedView::of(envelope),
            reminders: envelope.reminders(),
            send_at: envelope.planned_sending().map(|planned| planned.at),
            sending_failure: envelope.sending_failure(),
            contract_dates: Some(envelope.contract_dates()).filter(|dates| !dates.is_empty()),
            copied_from: envelope.link(EnvelopeLink::CopiedFrom),
            copied_to: envelope.link(EnvelopeLink::CopiedTo),
            corrects: envelope.link(EnvelopeLink::Corrects),
            corrected_by: envelope.link(EnvelopeLink::CorrectedBy),
            version: Some(envelope.version()).filter(|version| *version > 1),
            destruction: envelope.destruction,
            sign_url: None,
        }
    }
}

impl From<&CreatedEnvelope> for EnvelopeView {
    fn from(created: &CreatedEnvelope) -> Self {
        Self {
            sign_url: created.sign_url.clone(),
            ..Self::from(&created.envelope)
        }
    }
}

/// Envelope as a list item.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "envelope_name": "Retail instalment contract 2041",
    "status": "completed", "customer_id": "cust_01jdk7m3e8f4x9s2w5v6b0c1db", "external_id": null,
    "created_at": "2026-11-21T09:30:00.000Z", "updated_at": "2026-11-21T09:41:07.250Z",
}]))]
pub struct EnvelopeItem {
    envelope_id: EnvelopeId,
    envelope_name: String,
    status: EnvelopeStatus,
    customer_id: CustomerId,
    external_id: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<FoundEnvelope> for EnvelopeItem {
    fn from(envelope: FoundEnvelope) -> Self {
        Self {
            envelope_id: envelope.id,
            envelope_name: envelope.name,
            status: envelope.status,
            customer_id: envelope.customer,
            external_id: envelope.external_id,
            created_at: envelope.created_at,
            updated_at: envelope.updated_at,
        }
    }
}

/// Status of an envelope.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "status": "vaulted", "vaulted": true,
    "compliant": true, "certificate_issued": true, "compliance_score": 100,
    "signed_at": "2026-11-21T09:41:07.250Z",
    "updated_at": "2026-11-21T09:41:08.911Z",
}]))]
pub struct StatusView {
    envelope_id: EnvelopeId,
    status: EnvelopeStatus,
    vaulted: bool,
    /// Whether a certificate has been generated, regardless of its result; equal to
    /// `certificate_issued`. Decide on `compliance_score`, or on `GET …/compliance`.
    compliant: bool,
    certificate_issued: bool,
    /// The score in the certificate: only 100 is compliant. Null before there is a certificate, and
    /// for records vaulted by a release that did not record the score.
    compliance_score: Option<i64>,
    /// Time at which the last party signed.
    signed_at: Option<Timestamp>,
    updated_at: Timestamp,
}

impl From<&Envelope> for StatusView {
    fn from(envelope: &Envelope) -> Self {
        Self {
            envelope_id: envelope.id.clone(),
            status: envelope.status,
            vaulted: envelope.record.authoritative.live().is_some(),
            compliant: envelope.record.certificate.is_some(),
            certificate_issued: envelope.record.certificate.is_some(),
            compliance_score: envelope.record.compliance_score,
            signed_at: envelope.signed_at,
            updated_at: envelope.updated_at,
        }
    }
}

/// Stored upload.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "path": "uploads:env_01jdk7m3e8f4x9s2w5v6b0c1dc/document",
    "hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "size": 48213, "content_type": "application/pdf",
}]))]
pub struct UploadView {
    /// Opaque reference.
    path: String,
    /// SHA-256, lower-case hex.
    hash: String,
    /// Size in bytes.
    size: i64,
    content_type: String,
    /// Signatures that the document has already. Present only if it has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    existing_signatures: Vec<ExistingSignature>,
}

impl From<&StoredUpload> for UploadView {
    fn from(stored: &StoredUpload) -> Self {
        Self {
            path: stored.path.clone(),
            hash: stored.file.sha256.clone(),
            size: stored.file.size,
            content_type: stored.file.content_type.clone(),
            existing_signatures: stored.existing_signatures.clone(),
        }
    }
}

/// One link per signer.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{ "signers": [{
    "signer_id": "sgn_01jdk7m3e8f4x9s2w5v6b0c1dk", "name": "Jordan Lee", "email": "jordan.lee@example.com", "slug": "1041",
    "embed_url": "https://holdfast.example/sign/0f3Jq…", "status": "pending",
}] }]))]
pub struct SigningLinks {
    signers: Vec<SignerEntry>,
}

/// Signer with a fresh link.
#[derive(Serialize, JsonSchema)]
struct SignerEntry {
    /// Identity of the signer; an e-mail address may be shared.
    signer_id: SignerId,
    name: String,
    email: String,
    slug: Option<String>,
    /// Valid for an hour. Use it unchanged.
    embed_url: String,
    status: SignerStatus,
}

/// One link per signer, for the organization's back office.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{ "signers": [{
    "signer_id": "sgn_01jdk7m3e8f4x9s2w5v6b0c1dk", "name": "Jordan Lee", "email": "jordan.lee@example.com", "role": "Buyer", "slug": "1041",
    "signing_url": "https://holdfast.example/sign/0f3Jq…", "status": "pending",
}] }]))]
pub struct OwnSigningLinks {
    signers: Vec<OwnSignerEntry>,
}

/// Signer with a fresh link.
#[derive(Serialize, JsonSchema)]
struct OwnSignerEntry {
    /// Identity of the signer; an e-mail address may be shared.
    signer_id: SignerId,
    name: String,
    email: String,
    role: String,
    slug: Option<String>,
    /// Valid for an hour. Use it unchanged.
    signing_url: String,
    status: SignerStatus,
}

impl From<Vec<SignerLink>> for OwnSigningLinks {
    fn from(links: Vec<SignerLink>) -> Self {
        let signers = links
            .into_iter()
            .map(|link| OwnSignerEntry {
                signer_id: link.signer.id,
                name: link.signer.name,
                email: link.signer.email,
                role: link.signer.role,
                slug: link.signer.provider_submitter,
                signing_url: link.url,
                status: link.signer.status,
            })
            .collect();

        Self { signers }
    }
}

impl From<Vec<SignerLink>> for SigningLinks {
    fn from(links: Vec<SignerLink>) -> Self {
        let signers = links
            .into_iter()
            .map(|link| SignerEntry {
                signer_id: link.signer.id,
                name: link.signer.name,
                email: link.signer.email,
                slug: link.signer.provider_submitter,
                embed_url: link.url,
                status: link.signer.status,
            })
            .collect();

        Self { signers }
    }
}

/// A signer.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "signer_id": "sgn_01jdk7m3e8f4x9s2w5v6b0c1dk", "email": "jordan.lee@example.com", "name": "Jordan Lee",
    "role": "Buyer", "kind": "signer", "witness_of": null, "same_device": false, "group": null, "order": 1,
    "access": "none", "phone": null, "notify_by": "email", "time_zone": null,
    "status": "viewed", "completed_at": null, "signature": null, "consumer": true,
    "notice": { "status": "accepted", "at": "2026-05-04T15:04:05.000Z", "reason": null },
}]))]
pub struct SignerView {
    /// Identity of the signer; an e-mail address may be shared.
    signer_id: SignerId,
    email: String,
    name: String,
    role: String,
    kind: SignerKind,
    /// Role of the witnessed signer, for a witness.
    witness_of: Option<String>,
    /// Whether the page of that signer offers the form of the witness after the signature.
    same_device: bool,
    /// Group with substitutes who may take the signer's place.
    group: Option<String>,
    /// Place in the signing order, from 1; signers with an equal one sign in any order.
    order: i64,
    /// What the signer enters before the document opens.
    access: SignerAccess,
    /// Mobile number in E.164.
    phone: Option<String>,
    /// How the signer gets invitations and reminders.
    notify_by: SignerChannel,
    /// Time zone of the signer, as the sender stated it.
    time_zone: Option<ZoneName>,
    status: SignerStatus,
    completed_at: Option<Timestamp>,
    /// Whether the completed form has a signature of the signer: `executed`, or `not_asked`.
    signature: Option<SignatureExecution>,
    /// Whether the signer is a consumer, as the sender stated it.
    consumer: Option<bool>,
    /// Outcome of the newest mail or text message to the signer. Null before the first.
    notice: Option<NoticeView>,
}

/// Outcome of a mail or text message to a signer.
#[derive(Serialize, JsonSchema)]
struct NoticeView {
    status: NoticeStatus,
    at: Timestamp,
    /// Why it failed.
    reason: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum NoticeStatus {
    /// The next server or provider accepted it. That does not prove that it arrived.
    Accepted,
    /// It was refused for good, or a bounce reported so later.
    Failed,
}

impl From<&SignerNotice> for NoticeView {
    fn from(notice: &SignerNotice) -> Self {
        let failed = notice.failure.as_ref().map(|_| NoticeStatus::Failed);
        Self {
            status: failed.unwrap_or(NoticeStatus::Accepted),
            at: notice.at,
            reason: notice.failure.clone(),
        }
    }
}

impl From<&Signer> for SignerView {
    fn from(signer: &Signer) -> Self {
        Self {
            signer_id: signer.id.clone(),
            email: signer.email.clone(),
            name: signer.name.clone(),
            role: signer.role.clone(),
            kind: signer.kind,
            witness_of: signer.witness_of.clone(),
            same_device: signer.same_device,
            group: signer.group.clone(),
            order: signer.turn,
            access: signer.access,
            phone: signer.phone.clone(),
            notify_by: signer.notify_by,
            time_zone: signer.time_zone.clone(),
            status: signer.status,
            completed_at: signer.completed_at,
            signature: signer.execution,
            consumer: signer.consumer,
            notice: signer.notice.as_ref().map(NoticeView::from),
        }
    }
}

/// Recipient who does not sign.
#[derive(Serialize, JsonSchema)]
struct RecipientView {
    email: String,
    name: String,
    kind: RecipientKind,
    /// Group of a substitute.
    group: Option<String>,
}

/// The people of an envelope.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "signers": [{
        "signer_id": "sgn_01jdk7m3e8f4x9s2w5v6b0c1dk", "email": "jordan.lee@example.com", "name": "Jordan Lee",
        "role": "Buyer", "kind": "signer", "witness_of": null, "same_device": false, "group": null, "order": 1,
        "access": "none", "phone": null, "notify_by": "email", "time_zone": null,
        "status": "viewed", "completed_at": null, "signature": null, "consumer": true,
        "notice": { "status": "accepted", "at": "2026-05-04T15:04:05.000Z", "reason": null },
    }],
    "recipients": [{ "email": "office@example.com", "name": "Back office", "kind": "cc", "group": null }],
}]))]
pub struct PeopleView {
    /// In signing order.
    signers: Vec<SignerView>,
    recipients: Vec<RecipientView>,
}

impl PeopleView {
    pub fn new(signers: &[Signer], recipients: Vec<Recipient>) -> Self {
        let recipient = |recipient: Recipient| RecipientView {
            email: recipient.email,
            name: recipient.name,
            kind: recipient.kind,
            group: recipient.group,
        };
        Self {
            signers: signers.iter().map(SignerView::from).collect(),
            recipients: recipients.into_iter().map(recipient).collect(),
        }
    }
}

/// Files that signers attached, or the certificate of completion that was imported with a document.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "attachments": [{
        "role": "Buyer", "signer": "Jordan Lee", "signed": true, "field": "Driving licence",
        "name": "licence.jpg", "content_type": "image/jpeg", "size": 184_220,
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    }],
}]))]
pub struct AttachmentsView {
    attachments: Vec<AttachmentView>,
}

#[derive(Serialize, JsonSchema)]
pub struct AttachmentView {
    /// Empty for an imported certificate, whose `field` is `certificate_of_completion`.
    role: String,
    /// Name of the signer; empty for an imported certificate.
    signer: String,
    /// Whether the signer has signed; before, the file may still be replaced. True for an imported certificate.
    signed: bool,
    #[serde(flatten)]
    file: AttachedFile,
}

/// Questions of signers to the sender.
#[derive(Serialize, JsonSchema)]
pub struct QuestionsView {
    questions: Vec<QuestionView>,
}

/// Question of a signer to the sender.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "question_id": "qst_01jdk7m3e8f4x9s2w5v6b0c1dh",
    "signer": {
        "signer_id": "sgn_01jdk7m3e8f4x9s2w5v6b0c1dk", "name": "Jordan Lee", "email": "jordan.lee@example.com",
        "role": "Buyer",
    },
    "question": "Does the price include the delivery?", "asked_at": "2026-11-21T09:36:02.000Z",
    "status": "answered", "answer": "Yes.", "closed_at": "2026-11-21T09:41:07.250Z",
}]))]
pub struct QuestionView {
    question_id: QuestionId,
    /// The signer as of the question.
    signer: AskerView,
    question: String,
    /// Time of the question.
    asked_at: Timestamp,
    /// While a question is open, the envelope waits for the sender.
    status: QuestionStatus,
    /// Answer of the sender. Null unless the status is `answered`.
    answer: Option<String>,
    /// Time of the answer or the dismissal. Null while the question is open.
    closed_at: Option<Timestamp>,
}

#[derive(Serialize, JsonSchema)]
struct AskerView {
    signer_id: SignerId,
    /// Name of the signer.
    name: String,
    /// E-mail address of the signer.
    email: String,
    role: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum QuestionStatus {
    Open,
    Answered,
    Dismissed,
}

impl From<&SignerQuestion> for QuestionView {
    fn from(question: &SignerQuestion) -> Self {
        let closing = question.closing.as_ref();
        Self {
            question_id: question.id.clone(),
            signer: AskerView {
                signer_id: question.signer.clone(),
                name: question.name.clone(),
                email: question.email.clone(),
                role: question.role.clone(),
            },
            question: question.text.clone(),
            asked_at: question.asked_at,
            status: match (closing, question.answer()) {
                (None, _) => QuestionStatus::Open,
                (Some(_), Some(_)) => QuestionStatus::Answered,
                (Some(_), None) => QuestionStatus::Dismissed,
            },
            answer: question.answer().map(str::to_owned),
            closed_at: closing.map(|closing| closing.at),
        }
    }
}

impl From<Vec<SignerQuestion>> for QuestionsView {
    fn from(questions: Vec<SignerQuestion>) -> Self {
        Self {
            questions: questions.iter().map(QuestionView::from).collect(),
        }
    }
}

impl From<Vec<SignersFile>> for AttachmentsView {
    fn from(files: Vec<SignersFile>) -> Self {
        let view = |file: SignersFile| AttachmentView {
            role: file.role,
            signer: file.signer,
            signed: file.is_final,
            file: file.file,
        };

        Self {
            attachments: files.into_iter().map(view).collect(),
        }
    }
}
