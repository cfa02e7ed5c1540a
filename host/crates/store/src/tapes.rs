//! Tapes, the results of their rows, and the maps by which columns are read.

use std::collections::{BTreeMap, HashMap};

use crate::SqlConnection;
use sqlx::AssertSqlSafe;
use sqlx::any::{Any, AnyArguments};
use sqlx::query::Query;

use super::contract_facts::ContractFacts;
use super::row::{
    OwnedEnvelope, TableRow, file_json, json_text, numbered, query_rows, row_by_id, table_row,
};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::KeptFile;
use holdfast_domain::id::{EnvelopeId, OrgId, TapeId, TransferId};
use holdfast_domain::tape::{
    FindingCode, RowStatus, RowsChecked, Severity, StoredRefusal, Tape, TapeFinding, TapeFormat,
    TapeMap, TapePart, TapeStatus, TapeSummary,
};
use holdfast_domain::transfer::Transfer;

/// Rows that one statement inserts.
const INSERTED: usize = 200;
/// Values that a list in a statement has at most.
const LISTED: usize = 1_000;

/// Result of a row as it is stored.
#[derive(Clone, Debug)]
pub struct StoredRow {
    /// Line of the tape; behind the last one for records that no row lists.
    pub line: i64,
    pub status: RowStatus,
    /// Of the heaviest finding.
    pub severity: Option<Severity>,
    pub envelope: Option<EnvelopeId>,
    /// Whether it is the first row that lists its record.
    pub is_first: bool,
    pub cells: String,
    /// Of the comparison.
    pub findings: Vec<TapeFinding>,
    /// Of rows that share a key or a record.
    pub repeated: Vec<TapeFinding>,
    /// Of other tapes and claims.
    pub elsewhere: Vec<TapeFinding>,
    pub reuse: Option<String>,
}

/// Rows of a page.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowFilter {
    pub status: Option<RowStatus>,
    pub severity: Option<Severity>,
    /// Only rows that need attention.
    pub exceptions: bool,
}

/// Adds a tape.
pub async fn insert(tx: &mut WriteTransaction, tape: &Tape) -> Result<(), StoreError> {
    sqlx::query(
        "insert into tape (bucket, tape_id, org_id, name, format, file, map, part, status, made_by, created_at,
             pool_id, header)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    )
    .bind_key(&tape.org, tape.id.as_str())
    .bind(tape.org.as_str())
    .bind(&tape.name)
    .bind(tape.format.as_str())
    .bind(file_json(Some(&tape.file)))
    .bind(json_text(&tape.map))
    .bind(tape.part.map(TapePart::as_str))
    .bind(tape.status.as_str())
    .bind(&tape.made_by)
    .bind(tape.created_at.to_string())
    .bind(tape.pool.as_ref().map(TransferId::as_str))
    .bind(tape.header.as_ref().map(json_text))
    .run(tx)
    .await
}

/// Returns a tape of an organization.
pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &TapeId,
) -> Result<Option<Tape>, StoreError> {
    row_by_id(connection, org, id.as_str()).await
}

/// Lists the tapes of an organization, newest first.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    after: Option<&TapeId>,
    limit: i64,
) -> Result<Vec<Tape>, StoreError> {
    query_rows(
        "select {columns} from tape where bucket = $1 and org_id = $2 and tape_id < $3
         order by tape_id desc limit $4",
    )
    .bind_org(org)
    .bind(after.map_or(TapeId::LAST, TapeId::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Counts the tapes of an organization that are being checked, or wait for the choice of their columns.
pub async fn unfinished(connection: &mut SqlConnection, org: &OrgId) -> Result<i64, StoreError> {
    use sqlx::Row as _;

    let row = sqlx::query(
        "select count(*) as unfinished from tape
         where bucket = $1 and org_id = $2 and status in ('checking', 'choosing')",
    )
    .bind_org(org)
    .fetch_one(connection)
    .await?;
    Ok(row.try_get("unfinished")?)
}

/// Returns the newest earlier checked tape of each name: that of the tape's own name, and the newest of the others.
pub async fn newest_of_names(
    connection: &mut SqlConnection,
    tape: &Tape,
    limit: i64,
) -> Result<Vec<Tape>, StoreError> {
    // Ids sort by the time of their generation.
    query_rows(
        "select {columns} from tape where bucket = $1 and org_id = $2 and tape_id in
             (select max(tape_id) from tape where bucket = $1 and org_id = $2 and status = 'checked'
                 and tape_id < $3 group by name)
         order by case when name = $4 then 0 else 1 end, tape_id desc limit $5",
    )
    .bind_org(&tape.org)
    .bind(tape.id.as_str())
    .bind(&tape.name)
    .bind(limit)
    .fetch_all(connection)
    .await
}

table_row! {
    Tape of "tape" by "tape_id" also "file" {
        id: parsed("tape_id", TapeId::parse),
        org: parsed("org_id", OrgId::parse),
        name: text("name"),
        format: parsed("format", TapeFormat::parse),
        file: |row| row.json::<KeptFile>("file")?.0,
        map: json("map"),
        part: optional_parsed("part", TapePart::parse),
        pool: optional_parsed("pool_id", TransferId::parse),
        status: parsed("status", TapeStatus::parse),
        header: optional_json("header"),
        failures: number("failures"),
        progress: optional_json("progress"),
        refusal: optional_json("refusal"),
        reused: number("reused"),
        other_tapes: number("other_tapes"),
        other_claims: number("other_claims"),
        summary: optional_json("summary"),
        ledger_sequence: optional_number("ledger_sequence"),
        made_by: text("made_by"),
        created_at: time("created_at"),
        checked_at: optional_time("checked_at"),
    }
}

/// Adds results of rows, and notes how far the check is.
///
/// # Errors
/// [`StoreError::Conflict`] if another worker has come further than `before`.
pub async fn add_rows(
    tx: &mut WriteTransaction,
    tape: &Tape,
    before: &RowsChecked,
    now: &RowsChecked,
    rows: &[StoredRow],
) -> Result<(), StoreError> {
    // First, so that a worker that was overtaken inserts nothing.
    sqlx::query(
        "update tape set done = $4, progress = $5, reused = $6, other_tapes = $7, other_claims = $8
         where bucket = $1 and tape_id = $2 and done = $3 and status = 'checking'",
    )
    .bind_key(&tape.org, tape.id.as_str())
    .bind(done(before))
    .bind(done(now))
    .bind(json_text(now))
    .bind(tape.reused)
    .bind(tape.other_tapes)
    .bind(tape.other_claims)
    .run_guarded(tx)
    .await?;

    for rows in rows.chunks(INSERTED) {
        insert_rows(tx, tape, rows).await?;
    }
    Ok(())
}

/// Returns the number of results, which fences off a worker that was overtaken.
fn done(progress: &RowsChecked) -> i64 {
    i64::try_from(progress.totals.rows + progress.totals.unlisted).unwrap_or(i64::MAX)
}

async fn insert_rows(
    tx: &mut WriteTransaction,
    tape: &Tape,
    rows: &[StoredRow],
) -> Result<(), StoreError> {
    const OF_ROW: usize = 10;

    let groups = rows
        .iter()
        .enumerate()
        .map(|(index, _)| format!("($1, $2, $3, {})", numbered(4 + index * OF_ROW, OF_ROW)));
    let groups: Vec<String> = groups.collect();
    let text = format!(
        "insert into tape_row (bucket, tape_id, org_id, line, status, severity, envelope_id, is_first, cells,
             findings, repeated, elsewhere, reuse)
         values {}",
        groups.join(", ")
    );

    let mut query: Query<'_, Any, AnyArguments> = sqlx::query(AssertSqlSafe(text))
        .bind_key(&tape.org, tape.id.as_str())
        .bind(tape.org.as_str());
    let list = |findings: &Vec<TapeFinding>| (!findings.is_empty()).then(|| json_text(findings));
    for row in rows {
        query = query
            .bind(row.line)
            .bind(row.status.as_str())
            .bind(row.severity.map(Severity::as_str))
            .bind(row.envelope.as_ref().map(EnvelopeId::as_str))
            .bind(i64::from(row.is_first))
            .bind(&row.cells)
            .bind(list(&row.findings))
            .bind(list(&row.repeated))
            .bind(list(&row.elsewhere))
            .bind(row.reuse.as_deref());
    }
    query.run(tx).await
}

/// Returns results of rows behind a line, in their order.
pub async fn rows(
    connection: &mut SqlConnection,
    tape: &Tape,
    filter: RowFilter,
    after: i64,
    limit: i64,
) -> Result<Vec<StoredRow>, StoreError> {
    let mut conditions = String::new();
    if filter.exceptions
        || filter
            .status
            .is_some_and(|status| status != RowStatus::Clean)
    {
        // In the words of the index of these rows.
        conditions += " and status <> 'clean'";
    }
    // Words of this program, never input.
    if let Some(status) = filter.status {
        conditions += &format!(" and status = '{status}'");
    }
    if let Some(severity) = filter.severity {
        conditions += &format!(" and severity = '{severity}'");
    }

    let text = format!(
        "select {{columns}} from tape_row where bucket = $1 and tape_id = $2 and line > $3{conditions}
         order by line limit $4"
    );
    query_rows(AssertSqlSafe(text))
        .bind_key(&tape.org, tape.id.as_str())
        .bind(after)
        .bind(limit)
        .fetch_all(connection)
        .await
}

/// Returns the first row of a tape with each of these records: a tape can list one a million times.
pub async fn rows_of_records(
    connection: &mut SqlConnection,
    tape: &Tape,
    envelopes: &[EnvelopeId],
) -> Result<Vec<StoredRow>, StoreError> {
    let mut found = Vec::new();
    for envelopes in envelopes.chunks(LISTED) {
        let text = format!(
            "select {{columns}} from tape_row where bucket = $1 and tape_id = $2 and is_first = 1
                 and envelope_id in ({})",
            numbered(3, envelopes.len())
        );
        let mut query =
            query_rows::<StoredRow>(AssertSqlSafe(text)).bind_key(&tape.org, tape.id.as_str());
        for envelope in envelopes {
            query = query.bind(envelope.as_str());
        }
        found.extend(query.fetch_all(connection).await?);
    }
    Ok(found)
}

table_row! {
    StoredRow of "tape_row" by "tape_id" also "tape_id", "findings", "repeated", "elsewhere" {
        line: number("line"),
        status: parsed("status", RowStatus::parse),
        severity: optional_parsed("severity", Severity::parse),
        envelope: optional_parsed("envelope_id", EnvelopeId::parse),
        is_first: flag("is_first"),
        cells: text("cells"),
        findings: |row| row.optional_json("findings")?.unwrap_or_default(),
        repeated: |row| row.optional_json("repeated")?.unwrap_or_default(),
        elsewhere: |row| row.optional_json("elsewhere")?.unwrap_or_default(),
        reuse: optional_text("reuse"),
    }
}

/// Ends a check with its result.
pub async fn finish(
    tx: &mut WriteTransaction,
    tape: &Tape,
    summary: &TapeSummary,
    ledger_sequence: i64,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update tape set status = 'checked', summary = $3, ledger_sequence = $4, checked_at = $5
         where bucket = $1 and tape_id = $2 and status = 'checking'",
    )
    .bind_key(&tape.org, tape.id.as_str())
    .bind(json_text(summary))
    .bind(ledger_sequence)
    .bind(now.to_string())
    .run_guarded(tx)
    .await
}

/// Ends a check without a result: the file is no tape, or is damaged. Rows that were checked before the defect stay.
pub async fn end(
    tx: &mut WriteTransaction,
    tape: &Tape,
    status: TapeStatus,
    refusal: &StoredRefusal,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update tape set status = $5, refusal = $3, checked_at = $4
         where bucket = $1 and tape_id = $2 and status = 'checking'",
    )
    .bind_key(&tape.org, tape.id.as_str())
    .bind(json_text(refusal))
    .bind(now.to_string())
    .bind(status.as_str())
    .run_guarded(tx)
    .await
}

/// Counts a check that ended with a defect of the stored file.
pub async fn count_failure(tx: &mut WriteTransaction, tape: &Tape) -> Result<(), StoreError> {
    sqlx::query(
        "update tape set failures = failures + 1 where bucket = $1 and tape_id = $2 and status = 'checking'",
    )
    .bind_key(&tape.org, tape.id.as_str())
    .run(tx)
    .await
}

/// Begins the check of a tape after the choice of its columns.
///
/// # Errors
/// [`StoreError::Conflict`] if its check has begun.
pub async fn begin(
    tx: &mut WriteTransaction,
    tape: &Tape,
    map: &TapeMap,
) -> Result<(), StoreError> {
    sqlx::query(
        "update tape set status = 'checking', map = $3, header = null
         where bucket = $1 and tape_id = $2 and status = 'choosing'",
    )
    .bind_key(&tape.org, tape.id.as_str())
    .bind(json_text(map))
    .run_guarded(tx)
    .await
}

/// Deletes a tape. Its rows, which then belong to nothing, are deleted by [`delete_rows`].
///
/// # Errors
/// [`StoreError::Conflict`] if it is deleted already.
pub async fn delete(tx: &mut WriteTransaction, tape: &Tape) -> Result<(), StoreError> {
    sqlx::query("delete from tape where bucket = $1 and org_id = $2 and tape_id = $3")
        .bind_org(&tape.org)
        .bind(tape.id.as_str())
        .run_guarded(tx)
        .await
}

/// Deletes rows of a deleted tape. Returns their number.
pub async fn delete_rows(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &TapeId,
    limit: i64,
) -> Result<u64, StoreError> {
    let deleted = sqlx::query(
        "delete from tape_row where bucket = $1 and tape_id = $2 and org_id = $3 and line in
             (select line from tape_row where bucket = $1 and tape_id = $2 and org_id = $3
                 order by line limit $4)",
    )
    .bind_key(org, id.as_str())
    .bind(org.as_str())
    .bind(limit)
    .execute(&mut **tx)
    .await?;
    Ok(deleted.rows_affected())
}

/// Lists tapes of an organization that were sent before a moment, the oldest first: those that wait for the choice of
/// their columns, or all that are not being checked.
pub async fn sent_before(
    connection: &mut SqlConnection,
    org: &OrgId,
    before: Timestamp,
    only_choosing: bool,
    limit: i64,
) -> Result<Vec<Tape>, StoreError> {
    query_rows(
        "select {columns} from tape where bucket = $1 and org_id = $2 and created_at < $3
             and status <> 'checking' and ($4 = 0 or status = 'choosing')
         order by created_at limit $5",
    )
    .bind_org(org)
    .bind(before.to_string())
    .bind(i64::from(only_choosing))
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Returns the first rows of a tape with a claim of another party, in the order of their lines.
pub async fn claimed(
    connection: &mut SqlConnection,
    tape: &Tape,
    limit: i64,
) -> Result<Vec<StoredRow>, StoreError> {
    // Such a row is never clean, so that the index of rows to look at finds it.
    query_rows(
        "select {columns} from tape_row where bucket = $1 and tape_id = $2 and status <> 'clean'
             and elsewhere like $4
         order by line limit $3",
    )
    .bind_key(&tape.org, tape.id.as_str())
    .bind(limit)
    // As a value of JSON, which no text of a finding can have: its quotation marks are escaped.
    .bind(format!("%\"{}\"%", FindingCode::OtherClaim))
    .fetch_all(connection)
    .await
}

/// Returns a row of a tape.
pub async fn row(
    connection: &mut SqlConnection,
    tape: &Tape,
    line: i64,
) -> Result<Option<StoredRow>, StoreError> {
    query_rows("select {columns} from tape_row where bucket = $1 and tape_id = $2 and line = $3")
        .bind_key(&tape.org, tape.id.as_str())
        .bind(line)
        .fetch_optional(connection)
        .await
}

/// Returns the offered records of a transfer in which a party has a part now, in the order of their ids. `part` names one
/// part.
pub async fn pool_records(
    connection: &mut SqlConnection,
    party: &OrgId,
    transfer: &Transfer,
    part: Option<TapePart>,
    after: &str,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    // Words of this program, never input. A record that was never offered has no hash, and may belong to strangers.
    let has_part = match part {
        Some(TapePart::Originator) => "c.org_id = $3",
        Some(TapePart::Controller) => "c.controller_id = $3",
        Some(TapePart::Named) => "c.named_id = $3",
        Some(TapePart::Pledgee) => "c.pledgee_id = $3",
        None => "(c.org_id = $3 or c.controller_id = $3 or c.named_id = $3 or c.pledgee_id = $3)",
    };
    let text = format!(
        "select c.org_id as org_id, c.envelope_id as envelope_id from control_transfer_record t
         join control_record c on c.envelope_id = t.envelope_id
         where t.bucket = $1 and t.transfer_id = $2 and t.document_hash is not null
             and c.stage <> 'released' and c.envelope_id > $4 and {has_part}
         order by c.envelope_id limit $5"
    );
    query_rows(AssertSqlSafe(text))
        .bind(transfer.seller.bucket())
        .bind(transfer.id.as_str())
        .bind(party.as_str())
        .bind(after)
        .bind(limit)
        .fetch_all(connection)
        .await
}

/// Returns the vaulted records that an organization originated, in the order of their ids.
pub async fn own_records(
    connection: &mut SqlConnection,
    org: &OrgId,
    only_controlled: bool,
    after: &str,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    query_rows(
        "select {columns} from envelope
         where bucket = $1 and org_id = $2 and status = 'vaulted' and envelope_id > $3
             and ($4 = 0 or not exists (select 1 from control_record c where c.bucket = envelope.bucket
                 and c.envelope_id = envelope.envelope_id and c.controller_id <> envelope.org_id))
         order by envelope_id limit $5",
    )
    .bind_org(org)
    .bind(after)
    .bind(i64::from(only_controlled))
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Returns records of other organizations that a party controls, in the order of their ids.
pub async fn controlled_records(
    connection: &mut SqlConnection,
    party: &OrgId,
    after: &str,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    query_rows(
        "select org_id, envelope_id from control_record where controller_id = $1 and org_id <> $1
             and stage <> 'released' and envelope_id > $2 order by envelope_id limit $3",
    )
    .bind(party.as_str())
    .bind(after)
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Returns records of other organizations that were offered to a party, in the order of their ids.
pub async fn offered_records(
    connection: &mut SqlConnection,
    party: &OrgId,
    after: &str,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    query_rows(
        "select org_id, envelope_id from control_record where named_id = $1 and org_id <> $1
             and controller_id <> $1 and stage <> 'released' and envelope_id > $2
         order by envelope_id limit $3",
    )
    .bind(party.as_str())
    .bind(after)
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Returns records of other organizations that are pledged to a party, in the order of their ids.
pub async fn pledged_records(
    connection: &mut SqlConnection,
    party: &OrgId,
    after: &str,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    query_rows(
        "select org_id, envelope_id from control_record where pledgee_id = $1 and org_id <> $1
             and controller_id <> $1 and coalesce(named_id, '') <> $1 and stage <> 'released'
             and envelope_id > $2
         order by envelope_id limit $3",
    )
    .bind(party.as_str())
    .bind(after)
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// A key of a record.
#[derive(Clone, Debug)]
pub struct RecordKey {
    pub envelope: EnvelopeId,
    pub name: String,
    pub value: String,
}

table_row! {
    RecordKey of "contract_fact_key" by "envelope_id" {
        envelope: parsed("envelope_id", EnvelopeId::parse),
        name: text("key_name"),
        value: text("key_value"),
    }
}

/// Groups records by their originators, in lists that fit into a statement.
fn by_org(records: &[OwnedEnvelope]) -> Vec<(OrgId, Vec<&EnvelopeId>)> {
    let mut of_org: BTreeMap<&OrgId, Vec<&EnvelopeId>> = BTreeMap::new();
    for record in records {
        of_org
            .entry(&record.org)
            .or_default()
            .push(&record.envelope);
    }

    let lists = of_org.into_iter().flat_map(|(org, envelopes)| {
        let parts: Vec<Vec<&EnvelopeId>> = envelopes.chunks(LISTED).map(<[_]>::to_vec).collect();
        parts.into_iter().map(|part| (org.clone(), part))
    });
    lists.collect()
}

/// Reads the rows of records.
async fn rows_of<T: TableRow>(
    connection: &mut SqlConnection,
    records: &[OwnedEnvelope],
) -> Result<Vec<T>, StoreError> {
    let mut rows = Vec::new();
    for (org, envelopes) in by_org(records) {
        let (table, list) = (T::TABLE, numbered(3, envelopes.len()));
        let text = format!(
            "select {{columns}} from {table} where bucket = $1 and org_id = $2
                 and envelope_id in ({list})"
        );
        let mut query = query_rows::<T>(AssertSqlSafe(text)).bind_org(&org);
        for envelope in envelopes {
            query = query.bind(envelope.as_str());
        }
        rows.extend(query.fetch_all(connection).await?);
    }
    Ok(rows)
}

/// Returns the keys of records.
pub async fn keys_of(
    connection: &mut SqlConnection,
    records: &[OwnedEnvelope],
) -> Result<Vec<RecordKey>, StoreError> {
    rows_of(connection, records).await
}

/// Returns the facts of records. Records without facts are left out.
pub async fn facts_of(
    connection: &mut SqlConnection,
    records: &[OwnedEnvelope],
) -> Result<Vec<ContractFacts>, StoreError> {
    rows_of(connection, records).await
}

/// Returns the digests of the fact sheets of records. Records without facts are left out.
pub async fn facts_digests(
    connection: &mut SqlConnection,
    records: &[OwnedEnvelope],
) -> Result<HashMap<EnvelopeId, String>, StoreError> {
    let digests: Vec<FactsDigest> = rows_of(connection, records).await?;
    let each = digests.into_iter().map(|one| (one.envelope, one.digest));
    Ok(each.collect())
}

struct FactsDigest {
    envelope: EnvelopeId,
    digest: String,
}

table_row! {
    FactsDigest of "contract_facts" by "envelope_id" {
        envelope: parsed("envelope_id", EnvelopeId::parse),
        digest: text("digest"),
    }
}

/// A map under its name.
#[derive(Clone, Debug)]
pub struct NamedTapeMap {
    pub name: String,
    pub map: TapeMap,
    pub made_by: String,
    pub updated_at: Timestamp,
}

table_row! {
    NamedTapeMap of "tape_map" by "name" {
        name: text("name"),
        map: json("document"),
        made_by: text("made_by"),
        updated_at: time("updated_at"),
    }
}

/// Stores a map under its name, in place of an earlier one.
pub async fn put_map(
    tx: &mut WriteTransaction,
    org: &OrgId,
    named: &NamedTapeMap,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into tape_map (bucket, org_id, name, document, made_by, updated_at)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (bucket, org_id, name) do update set document = excluded.document,
             made_by = excluded.made_by, updated_at = excluded.updated_at",
    )
    .bind_org(org)
    .bind(&named.name)
    .bind(json_text(&named.map))
    .bind(&named.made_by)
    .bind(named.updated_at.to_string())
    .run(tx)
    .await
}

/// Returns the map with a name.
pub async fn map(
    connection: &mut SqlConnection,
    org: &OrgId,
    name: &str,
) -> Result<Option<NamedTapeMap>, StoreError> {
    row_by_id(connection, org, name).await
}

/// Lists the maps of an organization by name.
pub async fn maps(
    connection: &mut SqlConnection,
    org: &OrgId,
    limit: i64,
) -> Result<Vec<NamedTapeMap>, StoreError> {
    query_rows(
        "select {columns} from tape_map where bucket = $1 and org_id = $2 order by name limit $3",
    )
    .bind_org(org)
    .bind(limit)
    .fetch_all(connection)
    .await
}
