//! Rows of one record: what a destruction leaves of each table.

use std::collections::BTreeSet;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Row as _};

use super::statement::RunStatement as _;
use super::{SqlConnection, StoreError, WriteTransaction, decision_blocks, ledger};
use holdfast_domain::envelope::Envelope;
use holdfast_domain::id::{OrgId, TemplateId};
use holdfast_domain::job::{DestroyRecord, JobPayload as _};

/// Table with rows of records.
#[derive(Clone, Copy, Debug)]
pub struct RecordTable {
    /// Its name.
    pub table: &'static str,
    /// How the rows of a record are found.
    pub way: Way,
    /// What a destruction leaves of the rows.
    pub fate: Fate,
}

/// Way from a record to its rows in a table. [`super::sealed_records`] takes the same ways for many records at once.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// Rows with the envelope's id in this column.
    Column(&'static str),
    /// Clients of the batch that made the envelope, with its id.
    Batch,
    /// Submitters in the signing room. Their external ids begin with that of the envelope, which has 30 characters, as
    /// in the index.
    Submitters,
    /// Documents that were made for the envelope alone. One that was deleted since has no owner any more.
    Documents,
    /// Rows that belong to the record's rows in another table, in the same bucket.
    Through(Through),
}

/// Way to rows through those of another table.
#[derive(Clone, Copy, Debug)]
pub struct Through {
    /// Column that has a value of the other table's column.
    pub column: &'static str,
    /// The other table.
    pub other: &'static RecordTable,
    /// Its column.
    pub of_other: &'static str,
    /// Whether a statement names the organization as well, for a table with an index on it.
    pub is_by_organization: bool,
}

/// What a destruction leaves of rows.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// Nothing.
    Deleted,
    /// The rows without these columns: `name` becomes null, and `name=text` gets a text where null is not possible.
    Redacted(&'static [&'static str]),
    /// The rows with digests instead of inputs and answers, because blocks of decisions commit to them.
    Digested,
    /// The rows, which have ids, hashes, statuses and times. Entries of ledgers are redacted by [`super::ledger`].
    Kept,
}

const fn row(table: &'static str, way: Way, fate: Fate) -> RecordTable {
    RecordTable { table, way, fate }
}

const fn through(column: &'static str, other: &'static RecordTable, of_other: &'static str) -> Way {
    Way::Through(Through {
        column,
        other,
        of_other,
        is_by_organization: false,
    })
}

const fn through_in_organization(
    column: &'static str,
    other: &'static RecordTable,
    of_other: &'static str,
) -> Way {
    Way::Through(Through {
        column,
        other,
        of_other,
        is_by_organization: true,
    })
}

const ENVELOPE: Way = Way::Column("envelope_id");
const OF_SUBMISSIONS: Way = through("submission_id", &ROOM_SUBMITTER, "submission_id");
const OF_ROOM_TEMPLATES: Way = through_in_organization("external_id", &TEMPLATE, "template_id");
const OF_TEMPLATES: Way = through("template_id", &TEMPLATE, "template_id");
const OF_IDENTITY_CHECKS: Way = through("kba_id", &KBA_SESSION, "kba_id");

// Tables with rows through which those of others are found.
const KBA_SESSION: RecordTable = row("kba_session", ENVELOPE, Fate::Deleted);
const EVENT: RecordTable = row("event", ENVELOPE, Fate::Redacted(&["body="]));
const WEBHOOK_DELIVERY: RecordTable = row(
    "webhook_delivery",
    through("event_id", &EVENT, "event_id"),
    Fate::Deleted,
);
const ROOM_SUBMITTER: RecordTable = row("room_submitter", Way::Submitters, Fate::Deleted);
const TEMPLATE: RecordTable = row("template", Way::Documents, Fate::Deleted);

/// Tables with rows of records, in the order of a destruction: rows that are found through others come before those.
pub const RECORD_TABLES: &[RecordTable] = &[
    row("access_code", ENVELOPE, Fate::Deleted),
    row("access_code_failure", ENVELOPE, Fate::Deleted),
    row(
        "bulk_item",
        Way::Batch,
        Fate::Redacted(&["customer_name=", "email", "error"]),
    ),
    row(
        "component_difference",
        Way::Column("record_id"),
        Fate::Redacted(&["before_value", "after_value"]),
    ),
    row("contract_fact_key", ENVELOPE, Fate::Deleted),
    row("contract_facts", ENVELOPE, Fate::Deleted),
    row(
        "control_conflict",
        ENVELOPE,
        Fate::Redacted(&["statement", "other_statement", "suspension_reason"]),
    ),
    row("control_copy", ENVELOPE, Fate::Deleted),
    row("control_decision", ENVELOPE, Fate::Digested),
    row("control_pledge", ENVELOPE, Fate::Redacted(&["terms"])),
    row("control_record", ENVELOPE, Fate::Kept),
    row(
        "control_release",
        ENVELOPE,
        Fate::Redacted(&["form={}", "reason"]),
    ),
    row("control_sold", ENVELOPE, Fate::Kept),
    row("control_statement", ENVELOPE, Fate::Deleted),
    row("control_transfer_record", ENVELOPE, Fate::Kept),
    row("control_view", ENVELOPE, Fate::Deleted),
    row("custodian", ENVELOPE, Fate::Deleted),
    row("destroyed_record", ENVELOPE, Fate::Kept),
    row("destruction_record", ENVELOPE, Fate::Kept),
    row("download_link", ENVELOPE, Fate::Deleted),
    row("drawing_handover", ENVELOPE, Fate::Deleted),
    row("evaluation", ENVELOPE, Fate::Digested),
    row("funding_decision", ENVELOPE, Fate::Digested),
    row("integrity_check", ENVELOPE, Fate::Deleted),
    row("kba_billed", OF_IDENTITY_CHECKS, Fate::Deleted),
    row("kba_billed_person", OF_IDENTITY_CHECKS, Fate::Deleted),
    row("kba_browser", ENVELOPE, Fate::Deleted),
    KBA_SESSION,
    row("ledger_entry", ENVELOPE, Fate::Kept),
    row("ledger_leaf", ENVELOPE, Fate::Kept),
    row("ledger_pending", ENVELOPE, Fate::Kept),
    row("legal_hold", Way::Column("subject"), Fate::Kept),
    row("lifecycle_decision", ENVELOPE, Fate::Digested),
    row("open_link_record", ENVELOPE, Fate::Deleted),
    row("payment", ENVELOPE, Fate::Redacted(&["payer="])),
    row("record_band", ENVELOPE, Fate::Deleted),
    row("record_fingerprint", ENVELOPE, Fate::Deleted),
    row(
        "record_import_row",
        ENVELOPE,
        Fate::Redacted(&["file=", "document_sha256", "signatures"]),
    ),
    row("record_similar", ENVELOPE, Fate::Deleted),
    row("record_text", ENVELOPE, Fate::Deleted),
    row(
        "request_log",
        ENVELOPE,
        Fate::Redacted(&["request", "answer"]),
    ),
    row(
        "retention_event",
        ENVELOPE,
        Fate::Redacted(&["reported_by="]),
    ),
    row("retention_proposal", ENVELOPE, Fate::Deleted),
    row("seal_state", ENVELOPE, Fate::Deleted),
    row(
        "signer",
        ENVELOPE,
        Fate::Redacted(&[
            "name=",
            "email=",
            "phone",
            "passcode",
            "decline_reason",
            "notice_failure",
            "provider_submitter",
        ]),
    ),
    row("signer_question", ENVELOPE, Fate::Deleted),
    row("signing_link", ENVELOPE, Fate::Deleted),
    row(
        "stipulation",
        ENVELOPE,
        Fate::Redacted(&["document_name", "reason"]),
    ),
    // The cells are statements of the tape's own organization. Values read from the contract go.
    row("tape_row", ENVELOPE, Fate::Redacted(&["findings", "reuse"])),
    row("test_message", ENVELOPE, Fate::Deleted),
    row(
        "vault_intent",
        ENVELOPE,
        Fate::Redacted(&["requested_by=", "last_error"]),
    ),
    row("vault_release", ENVELOPE, Fate::Redacted(&["form={}"])),
    row("vault_step", ENVELOPE, Fate::Deleted),
    row(
        "webhook_attempt",
        through("delivery_id", &WEBHOOK_DELIVERY, "delivery_id"),
        Fate::Deleted,
    ),
    WEBHOOK_DELIVERY,
    EVENT,
    row(
        "signer_delivery",
        through_in_organization("submitter_id", &ROOM_SUBMITTER, "submitter_id"),
        Fate::Deleted,
    ),
    row("room_submission", OF_SUBMISSIONS, Fate::Deleted),
    ROOM_SUBMITTER,
    row("room_template", OF_ROOM_TEMPLATES, Fate::Deleted),
    row("placement_decision", OF_TEMPLATES, Fate::Digested),
    row("template_stipulation", OF_TEMPLATES, Fate::Deleted),
    row("template_version", OF_TEMPLATES, Fate::Deleted),
    TEMPLATE,
    // Last: rows above are found through it.
    row(
        "envelope",
        ENVELOPE,
        Fate::Redacted(&[
            "name=",
            "external_id",
            "metadata={}",
            "secured_party",
            "upload",
            "vault",
            "copy",
            "certificate",
            "custody_record",
            "archive",
            "existing_signatures",
            "provider_submission",
            "created_by=",
            "subject",
            "message",
            "return_url",
            "vault_in_terms_accepted_at",
            "vault_in_terms_accepted_by",
        ]),
    ),
];

/// Tables with rows of a record in the buckets of all its parties.
const OF_PARTIES: [&str; 6] = [
    "component_difference",
    "event",
    "request_log",
    "tape_row",
    "webhook_attempt",
    "webhook_delivery",
];

/// Tables with rows through which people reach a record without an account, work on it becomes due, or lists show it.
const DOORS: [&str; 10] = [
    "access_code",
    "control_view",
    "download_link",
    "drawing_handover",
    "envelope",
    "integrity_check",
    "retention_proposal",
    "seal_state",
    "signer",
    "signing_link",
];

impl Way {
    /// Returns the condition that finds the rows: `$1` is the bucket and `$2` the envelope.
    fn condition(&self) -> String {
        match self {
            Self::Column(column) => format!("{column} = $2"),
            Self::Batch => "envelope_id = $2 and batch_id = (select e.bulk_batch from envelope e
                 where e.bucket = $1 and e.envelope_id = $2)"
                .to_owned(),
            Self::Submitters => "substr(external_id, 1, 30) = $2".to_owned(),
            Self::Documents => "template_id in (select own.template_id from envelope e
                     join template own on own.bucket = e.bucket and own.org_id = e.org_id
                         and own.owner_id = e.envelope_id
                     where e.bucket = $1 and e.envelope_id = $2 and own.origin = 'document'
                 union all
                 select own.template_id from envelope e
                     join template own on own.bucket = e.bucket and own.template_id = e.template_id
                     where e.bucket = $1 and e.envelope_id = $2 and e.bulk_batch is null
                         and own.origin = 'document' and own.owner_id is null)"
                .to_owned(),
            Self::Through(way) => way.condition(),
        }
    }
}

impl Through {
    fn condition(&self) -> String {
        let (column, of_other) = (self.column, self.of_other);
        let (other, of_record) = (self.other.table, self.other.way.condition());
        let found = format!(
            "{column} in (select own.{of_other} from {other} own where own.bucket = $1 and {of_record})"
        );
        if self.is_by_organization {
            format!(
                "org_id = (select e.org_id from envelope e
                     where e.bucket = $1 and e.envelope_id = $2) and {found}"
            )
        } else {
            found
        }
    }
}

impl RecordTable {
    /// Applies the fate of the rows in one bucket.
    async fn apply(
        &self,
        tx: &mut WriteTransaction,
        envelope: &Envelope,
        bucket: i64,
    ) -> Result<(), StoreError> {
        let (table, condition) = (self.table, self.way.condition());
        let text = match self.fate {
            Fate::Kept | Fate::Digested => return Ok(()),
            Fate::Deleted => format!("delete from {table} where bucket = $1 and {condition}"),
            Fate::Redacted(columns) => {
                let assigned = assignments(columns);
                format!("update {table} set {assigned} where bucket = $1 and {condition}")
            }
        };

        // Constants of this file; the values are bound.
        sqlx::query(AssertSqlSafe(text))
            .bind(bucket)
            .bind(envelope.id.as_str())
            .run(tx)
            .await
    }
}

/// Returns the assignments of a statement that redacts columns.
pub(super) fn assignments(columns: &[&str]) -> String {
    let assigned = columns.iter().map(|column| match column.split_once('=') {
        Some((column, text)) => format!("{column} = '{text}'"),
        None => format!("{column} = null"),
    });
    let assigned: Vec<String> = assigned.collect();
    assigned.join(", ")
}

/// Closes the ways to a record at the beginning of its destruction: links of people, due work, jobs, and values in lists.
pub async fn close(tx: &mut WriteTransaction, envelope: &Envelope) -> Result<(), StoreError> {
    for table in RECORD_TABLES
        .iter()
        .filter(|table| DOORS.contains(&table.table))
    {
        table.apply(tx, envelope, envelope.org.bucket()).await?;
    }

    remove_jobs(tx, envelope).await
}

/// Removes the jobs about a record, apart from its destruction. Their payloads can have addresses of people.
async fn remove_jobs(tx: &mut WriteTransaction, envelope: &Envelope) -> Result<(), StoreError> {
    sqlx::query(
        "delete from job where bucket = $1 and org_id = $2 and payload like $3 and kind <> $4",
    )
    .bind_org(&envelope.org)
    .bind(format!("%{}%", envelope.id))
    .bind(DestroyRecord::NAME)
    .run(tx)
    .await
}

/// Leaves of the rows of a record what their tables keep: ids, hashes, statuses and times. May run again.
pub async fn destroy(tx: &mut WriteTransaction, envelope: &Envelope) -> Result<(), StoreError> {
    // First: some decisions are found through rows that go.
    for table in RECORD_TABLES {
        if matches!(table.fate, Fate::Digested) {
            let condition = table.way.condition();
            decision_blocks::digest(tx, table.table, &condition, envelope).await?;
        }
    }

    let own = BTreeSet::from([envelope.org.bucket()]);
    let of_parties = buckets_of_parties(tx, envelope).await?;
    for table in RECORD_TABLES {
        let is_of_parties = OF_PARTIES.contains(&table.table);
        let buckets = if is_of_parties { &of_parties } else { &own };
        for bucket in buckets {
            table.apply(tx, envelope, *bucket).await?;
        }
    }

    remove_jobs(tx, envelope).await
}

/// Returns the buckets of the originator and of all organizations that the ledger names: each act of a party is in it.
async fn buckets_of_parties(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<BTreeSet<i64>, StoreError> {
    let mut buckets = BTreeSet::from([envelope.org.bucket()]);
    for entry in ledger::list(connection, Some(&envelope.org), &envelope.id).await? {
        add_buckets(&entry.details, &mut buckets);
    }
    Ok(buckets)
}

/// Adds the buckets of the organizations in a value.
fn add_buckets(value: &Value, buckets: &mut BTreeSet<i64>) {
    match value {
        Value::String(text) => buckets.extend(OrgId::parse(text).map(|org| org.bucket())),
        Value::Array(items) => items.iter().for_each(|item| add_buckets(item, buckets)),
        Value::Object(members) => members.values().for_each(|item| add_buckets(item, buckets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the documents that were made for an envelope alone. They have objects of their own.
pub async fn documents(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Vec<TemplateId>, StoreError> {
    let of_record = TEMPLATE.way.condition();
    let text = format!("select template_id from template where bucket = $1 and {of_record}");
    let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(text))
        .bind(envelope.org.bucket())
        .bind(envelope.id.as_str())
        .fetch_all(connection)
        .await?;
    Ok(rows.iter().filter_map(|id| TemplateId::parse(id)).collect())
}

/// Returns the keys of the objects in the signing room that only this record has. They are named by their content, so two
/// records can share one.
pub async fn room_objects(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Vec<String>, StoreError> {
    let (submissions, submitters) = (OF_SUBMISSIONS.condition(), ROOM_SUBMITTER.way.condition());
    let templates = OF_ROOM_TEMPLATES.condition();
    let text = format!(
        "select document_key as files from room_submission where bucket = $1 and {submissions}
         union select signed_key as files from room_submission where bucket = $1 and {submissions}
         union select attachments as files from room_submitter where bucket = $1 and {submitters}
         union select document_key as files from room_template
             where bucket = $1 and {templates}"
    );
    let rows = sqlx::query(AssertSqlSafe(text))
        .bind_key(&envelope.org, envelope.id.as_str())
        .fetch_all(&mut *connection)
        .await?;

    let mut keys = Vec::new();
    for row in &rows {
        let files: Option<String> = row.try_get("files")?;
        keys.extend(keys_in(&files.unwrap_or_default()));
    }
    // Those below the envelope's own id are deleted with its other objects.
    keys.retain(|key| !key.contains(envelope.id.as_str()));
    keys.sort_unstable();
    keys.dedup();

    let mut own = Vec::new();
    for key in keys {
        if !is_shared(connection, envelope, &key).await? {
            own.push(key);
        }
    }
    Ok(own)
}

/// Returns the object keys in a column, which has one key, or JSON with keys and digests.
fn keys_in(files: &str) -> Vec<String> {
    let words = files.split('"');
    let keys = words.filter(|word| word.starts_with("room/"));
    keys.map(str::to_owned).collect()
}

/// Whether rows of other records, or of templates, have an object of the signing room as well.
async fn is_shared(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    key: &str,
) -> Result<bool, StoreError> {
    let (submissions, submitters) = (OF_SUBMISSIONS.condition(), ROOM_SUBMITTER.way.condition());
    let templates = OF_ROOM_TEMPLATES.condition();
    // Templates first: their documents are the ones that many submissions share.
    let text = format!(
        "select template_id as id from room_template where bucket = $1 and org_id = $4
             and document_key like $3 and (external_id is null or not ({templates}))
         union all
         select submission_id as id from room_submission where bucket = $1 and org_id = $4
             and (document_key like $3 or signed_key like $3) and not ({submissions})
         union all
         select submitter_id as id from room_submitter where bucket = $1 and org_id = $4
             and attachments like $3 and (external_id is null or not ({submitters}))
         limit 1"
    );
    sqlx::query(AssertSqlSafe(text))
        .bind_key(&envelope.org, envelope.id.as_str())
        .bind(format!("%{key}%"))
        .bind(envelope.org.as_str())
        .finds_row(connection)
        .await
}

/// Returns the SHA-256 of each file of a record in the signing room: executed documents, and files of signers.
pub async fn room_digests(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<(Vec<String>, Vec<String>), StoreError> {
    let (submissions, submitters) = (OF_SUBMISSIONS.condition(), ROOM_SUBMITTER.way.condition());
    let text = format!(
        "select signed_key as signed, cast(null as text) as attached from room_submission
             where bucket = $1 and {submissions}
         union all
         select cast(null as text) as signed, attachments as attached from room_submitter
             where bucket = $1 and {submitters}"
    );
    let rows = sqlx::query(AssertSqlSafe(text))
        .bind_key(&envelope.org, envelope.id.as_str())
        .fetch_all(connection)
        .await?;

    let (mut signed, mut attached) = (Vec::new(), Vec::new());
    for row in &rows {
        let digests = |files: Option<String>| digests_in(&files.unwrap_or_default());
        signed.extend(digests(row.try_get("signed")?));
        attached.extend(digests(row.try_get("attached")?));
    }
    Ok((signed, attached))
}

/// Returns the digests in the object keys of a column: the last part of a key is the SHA-256 of the object.
fn digests_in(files: &str) -> Vec<String> {
    let keys = keys_in(files).into_iter();
    keys.filter_map(|key| Some(key.rsplit_once('/')?.1.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_objects_are_found_in_text_and_json() {
        let key = "room/07/org_1/attached/ab";
        let json = format!(r#"{{"id":{{"key":"{key}","sha256":"ab","name":"room"}}}}"#);
        assert_eq!(keys_in(&json), [key]);
        assert_eq!(keys_in(&format!(r#"["{key}","ab"]"#)), [key]);
        assert_eq!(keys_in(key), [key]);
        assert!(keys_in("").is_empty());
        assert_eq!(digests_in(key), ["ab"]);
    }

    #[test]
    fn the_buckets_of_parties_are_found_at_any_depth_of_an_entry() {
        let (lender, buyer) = (OrgId::new(), OrgId::new());
        let details = serde_json::json!({
            "controller": { "organization_id": lender, "name": "First Bank" },
            "parties": [buyer, "org_1", 7, null],
        });
        let mut found = BTreeSet::new();
        add_buckets(&details, &mut found);
        assert_eq!(found, BTreeSet::from([lender.bucket(), buyer.bucket()]));
    }

    /// A destruction finds rows through others, so those come later.
    #[test]
    fn rows_are_deleted_before_those_that_they_are_found_through() {
        for (at, table) in RECORD_TABLES.iter().enumerate() {
            let later = RECORD_TABLES.iter().skip(at + 1);
            let later: Vec<&str> = later.map(|one| one.table).collect();
            for parent in [
                "event",
                "webhook_delivery",
                "kba_session",
                "room_submitter",
                "template",
                "envelope",
            ] {
                let condition = table.way.condition();
                let is_through = condition.contains(&format!("from {parent} "))
                    || condition.contains(&format!("join {parent} "));
                if is_through && parent != table.table {
                    assert!(later.contains(&parent), "{} before {parent}", table.table);
                }
            }
        }
    }
}
