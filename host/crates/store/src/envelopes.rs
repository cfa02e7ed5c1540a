//! Envelopes. Every write names the status it expects (compare-and-swap).

use std::sync::LazyLock;

use crate::SqlConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::page::PagedQuery;
use super::row::{
    RowColumns, TableRow, columns_of, file_json, json_text, locked_by_id, query_rows, row_by_id,
    table_row,
};
use super::search::FoundEnvelope;
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction, counts, ledger};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{
    AuthoritativeCopy, Envelope, EnvelopeDestruction, EnvelopeKind, EnvelopeStatus, PaymentStatus,
    SentDocument, StoredFile, VaultRecord, VaultTerms,
};
use holdfast_domain::id::{BatchId, CustomerId, EnvelopeId, OrgId, TemplateId};
use holdfast_domain::organization::ApiKeyRecord;
use holdfast_domain::signature::ExistingSignature;
use holdfast_domain::template::Template;

/// Criteria of a list of envelopes.
#[derive(Clone, Debug, Default)]
pub struct EnvelopeFilter {
    pub status: Option<EnvelopeStatus>,
    pub customer: Option<CustomerId>,
}

pub async fn insert(tx: &mut WriteTransaction, envelope: &Envelope) -> Result<(), StoreError> {
    let terms = envelope.vault_terms.as_ref();
    // `looked_at` begins with the creation, so the first poll of the provider waits for a whole interval.
    sqlx::query(
        "insert into envelope (bucket, envelope_id, org_id, customer_id, name, kind, status,
             external_id, template_id, metadata, secured_party, is_upload, provider_instance,
             provider_submission, preserve_signing_order, created_by, created_at, updated_at,
             expires_at, payment_status, looked_at, auto_vault, vault_in_terms_accepted_at,
             vault_in_terms_accepted_by, bulk_batch, kba_required, send_email, message, return_url,
             allow_delegation, upload, existing_signatures, subject, may_decline)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
             $20, $17, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33)",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(envelope.customer.as_str())
    .bind(&envelope.name)
    .bind(envelope.kind.as_str())
    .bind(envelope.status.as_str())
    .bind(envelope.external_id.as_deref())
    .bind(envelope.template.as_ref().map(TemplateId::as_str))
    .bind(json_text(&envelope.metadata))
    .bind(envelope.secured_party.as_ref().map(json_text))
    .bind(i64::from(envelope.is_upload()))
    .bind(envelope.sending.provider_instance.as_deref())
    .bind(envelope.sending.submission.as_deref())
    .bind(i64::from(envelope.sending.preserve_signing_order))
    .bind(&envelope.created_by)
    .bind(envelope.created_at.to_string())
    .bind(envelope.updated_at.to_string())
    .bind(envelope.expires_at.map(|at| at.to_string()))
    .bind(envelope.payment.map(PaymentStatus::as_str))
    .bind(envelope.auto_vault.map(i64::from))
    .bind(terms.map(|terms| terms.accepted_at.to_string()))
    .bind(terms.map(|terms| terms.accepted_by.as_str()))
    .bind(envelope.batch.as_ref().map(BatchId::as_str))
    .bind(i64::from(envelope.sending.kba_required))
    .bind(i64::from(envelope.sending.send_email))
    .bind(envelope.sending.message.as_deref())
    .bind(envelope.sending.return_url.as_deref())
    .bind(i64::from(envelope.sending.allow_delegation))
    .bind(file_json(envelope.upload.as_ref()))
    .bind(signatures_json(&envelope.existing_signatures))
    .bind(envelope.sending.subject.as_deref())
    .bind(i64::from(envelope.sending.may_decline))
    .execute(&mut **tx)
    .await?;

    // Lists take their totals from these numbers. The ledger is noted
    // as empty, so that its first entry need not look for a tail.
    counts::added(tx, envelope);
    ledger::begin(tx, &envelope.org, &envelope.id);
    Ok(())
}

/// Returns an envelope if its record is whole.
///
/// # Errors
/// [`StoreError::Destroyed`] from the beginning of its destruction on.
pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<Option<Envelope>, StoreError> {
    whole(get_with_destroyed(connection, org, id).await?)
}

/// Refuses an envelope with a destroyed record. Reading it any further is the exception, so that no read is forgotten.
fn whole(found: Option<Envelope>) -> Result<Option<Envelope>, StoreError> {
    match found {
        Some(envelope) if envelope.destruction.is_some() => Err(StoreError::Destroyed),
        found => Ok(found),
    }
}

/// Returns an envelope, also one of which only ids, hashes and times are left.
pub async fn get_with_destroyed(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<Option<Envelope>, StoreError> {
    row_by_id(connection, org, id.as_str()).await
}

/// Result of reading an envelope with a cached API key.
pub enum KeyedEnvelope {
    /// The key is unchanged; contains the envelope, if the organization has it.
    Yes(Option<Box<Envelope>>),
    /// The key's record has changed since it was cached.
    No,
}

/// Reads an envelope and revalidates the cached key of the request, in one statement.
pub async fn get_for_key(
    connection: &mut SqlConnection,
    key: &ApiKeyRecord,
    id: &EnvelopeId,
) -> Result<KeyedEnvelope, StoreError> {
    // One round trip for both: a read has to notice a revoked key, and must not cost twice as much for it.
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let columns = columns_of::<Envelope>("envelope");
        format!(
            "select {columns} from api_key
             left join envelope on envelope.bucket = $3 and envelope.org_id = $4
                 and envelope.envelope_id = $5
             where api_key.key_id = $1 and api_key.revision = $2"
        )
    });
    let row = sqlx::query(AssertSqlSafe(TEXT.as_str()))
        .bind(key.id.as_str())
        .bind(key.revision)
        .bind_org(&key.org)
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?;

    // The left join gives a row for each valid key, so none means that the key has changed.
    let Some(row) = row else {
        return Ok(KeyedEnvelope::No);
    };

    Ok(KeyedEnvelope::Yes(
        match row.try_get::<Option<String>, _>("envelope_id")? {
            None => None,
            Some(_) => Some(Box::new(Envelope::of_row(&row)?)),
        },
    ))
}

/// Returns an envelope if its record is whole, with its row locked until the transaction ends.
///
/// # Errors
/// [`StoreError::Destroyed`] from the beginning of its destruction on.
pub async fn lock(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<Option<Envelope>, StoreError> {
    whole(lock_with_destroyed(tx, org, id).await?)
}

/// Like [`lock`], for an envelope of which perhaps only ids, hashes and times are left.
pub async fn lock_with_destroyed(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<Option<Envelope>, StoreError> {
    locked_by_id(tx, org, id.as_str()).await
}

/// Returns the envelope of a provider's submission. A callback names neither organization nor
/// envelope; the instance distinguishes submissions of two providers with the same id.
pub async fn by_submission(
    connection: &mut SqlConnection,
    instance: &str,
    submission: &str,
) -> Result<Option<Envelope>, StoreError> {
    query_rows(
        "select {columns} from envelope where provider_submission = $1 and provider_instance = $2",
    )
    .bind(submission)
    .bind(instance)
    .fetch_optional(connection)
    .await
}

/// Returns a page of envelopes, newest first, and the total number.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    filter: &EnvelopeFilter,
    page: i64,
    limit: i64,
) -> Result<(Vec<FoundEnvelope>, i64), StoreError> {
    let total = counts::total_column(filter.status);
    let select = format!("select {{columns}}, {total} from envelope");
    let list = PagedQuery {
        select: &select,
        bucket: org.bucket(),
        wanted: &[
            ("org_id", Some(org.as_str())),
            ("status", filter.status.map(EnvelopeStatus::as_str)),
            (
                "customer_id",
                filter.customer.as_ref().map(CustomerId::as_str),
            ),
        ],
        compared: &[],
        also: "",
    };

    // A customer has few envelopes.
    if filter.customer.is_some() {
        return list.page(connection, page, limit).await;
    }

    let rows = list.rows::<FoundEnvelope>(connection, page, limit).await?;
    // Each row carries the total; an empty page has no row to read it from.
    let total = match rows.first() {
        Some(first) => counts::total(first)?,
        None => counts::envelopes(connection, org, filter.status).await?,
    };
    let found = rows.iter().map(FoundEnvelope::of_row);
    Ok((found.collect::<Result<_, _>>()?, total))
}

/// Envelope past its expiry.
pub struct ExpiredEnvelope {
    pub org: OrgId,
    pub id: EnvelopeId,
    expires_at: Timestamp,
}

/// Returns expired envelopes, oldest first, starting after `after`.
pub async fn expiring(
    connection: &mut SqlConnection,
    now: Timestamp,
    after: Option<&ExpiredEnvelope>,
    limit: i64,
) -> Result<Vec<ExpiredEnvelope>, StoreError> {
    // The statuses are those of the index `envelope_expiring`, word for word. A page begins
    // behind the last envelope, so one that cannot be expired does not stop the sweep.
    query_rows(
        "select {columns} from envelope
         where expires_at <= $1 and status in ('pending', 'uploaded', 'preparing', 'sent', 'viewed')
             and (expires_at > $2 or (expires_at = $2 and envelope_id > $3))
         order by expires_at, envelope_id limit $4",
    )
    .bind(now.to_string())
    .bind(after.map_or_else(String::new, |after| after.expires_at.to_string()))
    .bind(after.map_or("", |after| after.id.as_str()))
    .bind(limit)
    .fetch_all(connection)
    .await
}

table_row! {
    ExpiredEnvelope of "envelope" by "envelope_id" {
        org: parsed("org_id", OrgId::parse),
        id: parsed("envelope_id", EnvelopeId::parse),
        expires_at: time("expires_at"),
    }
}

/// Sets an envelope's status, expecting the status that the decision was based on.
pub async fn set_status(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    status: EnvelopeStatus,
    now: Timestamp,
) -> Result<(), StoreError> {
    // The rules decided about the status that was read, so any change since then is a conflict.
    sqlx::query(
        "update envelope set status = $4, updated_at = $5,
             signed_at = case when $4 = 'completed' then $5 else signed_at end
         where bucket = $1 and envelope_id = $2 and status = $3",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.status.as_str())
    .bind(status.as_str())
    .bind(now.to_string())
    .run_guarded(tx)
    .await?;
    counts::moved(tx, envelope, envelope.status, status);
    Ok(())
}

/// Notes the progress of the destruction of an envelope's record, expecting the progress that was read.
pub async fn set_destruction(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    progress: EnvelopeDestruction,
    now: Timestamp,
) -> Result<(), StoreError> {
    let before = envelope.destruction.map_or("", EnvelopeDestruction::as_str);
    sqlx::query(
        "update envelope set destruction = $4, updated_at = $5
         where bucket = $1 and envelope_id = $2 and coalesce(destruction, '') = $3",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(before)
    .bind(progress.as_str())
    .bind(now.to_string())
    .run_guarded(tx)
    .await
}

/// Sets the payment status.
pub async fn set_payment(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    payment: PaymentStatus,
    now: Timestamp,
) -> Result<(), StoreError> {
    // No status is expected: a payment may be confirmed after the envelope has moved on.
    sqlx::query(
        "update envelope set payment_status = $3, updated_at = $4
         where bucket = $1 and envelope_id = $2",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(payment.as_str())
    .bind(now.to_string())
    .run_guarded(connection)
    .await
}

/// Records a sending: document, provider, submission, and how signers are notified. Expects the
/// status that the decision was based on.
pub async fn set_sent(
    tx: &mut WriteTransaction,
    before: EnvelopeStatus,
    sent: &Envelope,
) -> Result<(), StoreError> {
    // Status and submission are one statement: an envelope that is
    // out for signing is always found by its provider's callbacks.
    sqlx::query(
        "update envelope set status = $4, updated_at = $5, template_id = $6, metadata = $7,
             provider_instance = $8, provider_submission = $9, preserve_signing_order = $10,
             expires_at = $11, payment_status = $12, kba_required = $13, send_email = $14,
             message = $15, allow_delegation = $16, subject = $17, may_decline = $18, looked_at = $5
         where bucket = $1 and envelope_id = $2 and status = $3",
    )
    .bind_key(&sent.org, sent.id.as_str())
    .bind(before.as_str())
    .bind(sent.status.as_str())
    .bind(sent.updated_at.to_string())
    .bind(sent.template.as_ref().map(TemplateId::as_str))
    .bind(json_text(&sent.metadata))
    .bind(sent.sending.provider_instance.as_deref())
    .bind(sent.sending.submission.as_deref())
    .bind(i64::from(sent.sending.preserve_signing_order))
    .bind(sent.expires_at.map(|at| at.to_string()))
    .bind(sent.payment.map(PaymentStatus::as_str))
    .bind(i64::from(sent.sending.kba_required))
    .bind(i64::from(sent.sending.send_email))
    .bind(sent.sending.message.as_deref())
    .bind(i64::from(sent.sending.allow_delegation))
    .bind(sent.sending.subject.as_deref())
    .bind(i64::from(sent.sending.may_decline))
    .run_guarded(tx)
    .await?;
    counts::moved(tx, sent, before, sent.status);
    Ok(())
}

/// Writes the metadata of an envelope, with its row locked.
pub async fn set_metadata(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<(), StoreError> {
    sqlx::query(
        "update envelope set metadata = $3, updated_at = $4
         where bucket = $1 and envelope_id = $2",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(json_text(&envelope.metadata))
    .bind(envelope.updated_at.to_string())
    .run_guarded(connection)
    .await
}

/// Writes what a sender prepares of a draft, expecting the status that was read.
pub async fn set_draft(connection: &mut SqlConnection, draft: &Envelope) -> Result<(), StoreError> {
    sqlx::query(
        "update envelope set name = $4, external_id = $5, customer_id = $6, metadata = $7,
             secured_party = $8, preserve_signing_order = $9, subject = $10, message = $11,
             expires_at = $12, payment_status = $13, updated_at = $14
         where bucket = $1 and envelope_id = $2 and status = $3",
    )
    .bind_key(&draft.org, draft.id.as_str())
    .bind(draft.status.as_str())
    .bind(&draft.name)
    .bind(draft.external_id.as_deref())
    .bind(draft.customer.as_str())
    .bind(json_text(&draft.metadata))
    .bind(draft.secured_party.as_ref().map(json_text))
    .bind(i64::from(draft.sending.preserve_signing_order))
    .bind(draft.sending.subject.as_deref())
    .bind(draft.sending.message.as_deref())
    .bind(draft.expires_at.map(|at| at.to_string()))
    .bind(draft.payment.map(PaymentStatus::as_str))
    .bind(draft.updated_at.to_string())
    .run_guarded(connection)
    .await
}

/// Records another time at which an unfinished envelope expires.
pub async fn set_expiry(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    expires_at: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    // An envelope that was finished meanwhile has another status and keeps its time.
    sqlx::query(
        "update envelope set expires_at = $4, updated_at = $5
         where bucket = $1 and envelope_id = $2 and status = $3",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.status.as_str())
    .bind(expires_at.to_string())
    .bind(now.to_string())
    .run_guarded(connection)
    .await
}

/// Records the template that the builder made from an envelope's document.
pub async fn set_template(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    template: &Template,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update envelope set template_id = $4, updated_at = $5, kba_required = $6
         where bucket = $1 and envelope_id = $2 and status = $3",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.status.as_str())
    .bind(template.id.as_str())
    .bind(now.to_string())
    .bind(i64::from(template.kba_required))
    .run_guarded(connection)
    .await
}

/// Records whether an envelope is vaulted automatically, and who consented.
pub async fn set_vault_consent(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<(), StoreError> {
    let terms = envelope.vault_terms.as_ref();
    // The caller holds the envelope's lock and has checked that it is not vaulted.
    sqlx::query(
        "update envelope set auto_vault = $3, vault_in_terms_accepted_at = $4,
             vault_in_terms_accepted_by = $5, updated_at = $6
         where bucket = $1 and envelope_id = $2",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.auto_vault.map(i64::from))
    .bind(terms.map(|terms| terms.accepted_at.to_string()))
    .bind(terms.map(|terms| terms.accepted_by.as_str()))
    .bind(now.to_string())
    .run(connection)
    .await
}

/// Attaches the uploaded file, and the signatures that it has.
pub async fn set_upload(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    status: EnvelopeStatus,
    upload: &StoredFile,
    now: Timestamp,
) -> Result<(), StoreError> {
    // A template that was made from the previous document does not fit the new one.
    sqlx::query(
        "update envelope set status = $4, upload = $5, updated_at = $6, template_id = null,
             existing_signatures = $7
         where bucket = $1 and envelope_id = $2 and status = $3",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.status.as_str())
    .bind(status.as_str())
    .bind(file_json(Some(upload)))
    .bind(now.to_string())
    .bind(signatures_json(&envelope.existing_signatures))
    .run_guarded(tx)
    .await?;
    counts::moved(tx, envelope, envelope.status, status);
    Ok(())
}

/// Files created by vault-in, and the certificate's score.
pub struct VaultedFiles<'a> {
    pub authoritative: &'a StoredFile,
    pub copy: &'a StoredFile,
    pub certificate: &'a StoredFile,
    pub custody_record: &'a StoredFile,
    pub compliance_score: u32,
    pub existing_signatures: &'a [ExistingSignature],
}

/// Marks an envelope as vaulted; fails if it is vaulted already.
pub async fn set_vaulted(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    files: &VaultedFiles<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    // Two runs of the pipeline may settle at once: `vault is null` lets the first one win.
    sqlx::query(
        "update envelope set status = 'vaulted', vault = $4, document_hash = $5, copy = $6,
             certificate = $7, custody_record = $8, updated_at = $9, compliance_score = $10,
             existing_signatures = $11
         where bucket = $1 and envelope_id = $2 and status = $3 and vault is null",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.status.as_str())
    .bind(file_json(Some(files.authoritative)))
    // A column of its own: a release clears `vault`, and the hash still identifies the document.
    .bind(&files.authoritative.sha256)
    .bind(file_json(Some(files.copy)))
    .bind(file_json(Some(files.certificate)))
    .bind(file_json(Some(files.custody_record)))
    .bind(now.to_string())
    .bind(i64::from(files.compliance_score))
    .bind(signatures_json(files.existing_signatures))
    .run_guarded(tx)
    .await?;
    counts::moved(tx, envelope, envelope.status, EnvelopeStatus::Vaulted);
    Ok(())
}

/// Replaces the certificate of a vaulted envelope.
pub async fn set_certificate(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    certificate: &StoredFile,
    score: u32,
    now: Timestamp,
) -> Result<(), StoreError> {
    // A certificate that has left with a release is not replaced any more.
    sqlx::query(
        "update envelope set certificate = $3, compliance_score = $4, updated_at = $5
         where bucket = $1 and envelope_id = $2 and status = 'vaulted'",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(file_json(Some(certificate)))
    .bind(i64::from(score))
    .bind(now.to_string())
    .run_guarded(tx)
    .await
}

/// Marks an envelope as released: the archived copy replaces the vaulted one.
pub async fn set_vaulted_out(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    archive: &StoredFile,
    now: Timestamp,
) -> Result<(), StoreError> {
    // UCC §9-105 requires a single authoritative copy: one statement
    // moves it to the archive, so that there are never two.
    sqlx::query(
        "update envelope set status = 'vaulted_out', vault = null, archive = $3, updated_at = $4
         where bucket = $1 and envelope_id = $2 and status = 'vaulted' and archive is null",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(file_json(Some(archive)))
    .bind(now.to_string())
    .run_guarded(tx)
    .await?;
    counts::moved(
        tx,
        envelope,
        EnvelopeStatus::Vaulted,
        EnvelopeStatus::VaultedOut,
    );

    Ok(())
}

fn signatures_json(signatures: &[ExistingSignature]) -> Option<String> {
    (!signatures.is_empty()).then(|| json_text(&signatures))
}

impl TableRow for Envelope {
    const TABLE: &'static str = "envelope";
    const ID: &'static str = "envelope_id";
    const COLUMNS: &'static str =
        "envelope_id, org_id, customer_id, name, kind, status, external_id, template_id,
         metadata, secured_party, upload, existing_signatures, provider_instance,
         provider_submission, preserve_signing_order, kba_required, send_email, subject, message,
         return_url, allow_delegation, may_decline, vault, archive, document_hash, copy, certificate,
         custody_record, compliance_score, created_by, created_at, updated_at, signed_at,
         expires_at, payment_status, auto_vault, vault_in_terms_accepted_at,
         vault_in_terms_accepted_by, bulk_batch, destruction";

    fn read(row: &RowColumns<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.parsed("envelope_id", EnvelopeId::parse)?,
            org: row.parsed("org_id", OrgId::parse)?,
            customer: row.parsed("customer_id", CustomerId::parse)?,
            name: row.text("name")?,
            kind: row.parsed("kind", EnvelopeKind::parse)?,
            status: row.parsed("status", EnvelopeStatus::parse)?,
            external_id: row.optional_text("external_id")?,
            template: row.optional_parsed("template_id", TemplateId::parse)?,
            metadata: row.json("metadata")?,
            secured_party: row.optional_json("secured_party")?,
            upload: row.optional_file("upload")?,
            existing_signatures: row
                .optional_json("existing_signatures")?
                .unwrap_or_default(),
            sending: SentDocument {
                provider_instance: row.optional_text("provider_instance")?,
                submission: row.optional_text("provider_submission")?,
                preserve_signing_order: row.flag("preserve_signing_order")?,
                kba_required: row.flag("kba_required")?,
                send_email: row.flag("send_email")?,
                subject: row.optional_text("subject")?,
                message: row.optional_text("message")?,
                return_url: row.optional_text("return_url")?,
                allow_delegation: row.flag("allow_delegation")?,
                may_decline: row.flag("may_decline")?,
            },
            record: VaultRecord {
                // A release clears the live copy, so at most one of the two columns has a file.
                authoritative: match row.optional_file("vault")? {
                    Some(live) => AuthoritativeCopy::Live(live),
                    None => row
                        .optional_file("archive")?
                        .map_or(AuthoritativeCopy::Nowhere, AuthoritativeCopy::Archived),
                },
                document_hash: row.optional_text("document_hash")?,
                copy: row.optional_file("copy")?,
                certificate: row.optional_file("certificate")?,
                custody_record: row.optional_file("custody_record")?,
                compliance_score: row.optional_number("compliance_score")?,
            },
            created_by: row.text("created_by")?,
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
            signed_at: row.optional_time("signed_at")?,
            expires_at: row.optional_time("expires_at")?,
            payment: row.optional_parsed("payment_status", PaymentStatus::parse)?,
            // Null is a third value: the organization's setting decides.
            auto_vault: row.optional_flag("auto_vault")?,
            vault_terms: match row.optional_time("vault_in_terms_accepted_at")? {
                None => None,
                Some(accepted_at) => Some(VaultTerms {
                    accepted_at,
                    accepted_by: row.text("vault_in_terms_accepted_by")?,
                }),
            },
            batch: row.optional_parsed("bulk_batch", BatchId::parse)?,
            destruction: row.optional_parsed("destruction", EnvelopeDestruction::parse)?,
        })
    }
}
