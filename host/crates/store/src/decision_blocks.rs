//! Blocks of decisions: runs of recorded decisions of an organization's rules, to which its ledger commits.

use std::collections::BTreeSet;

use crate::SqlConnection;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use sqlx::any::AnyRow;

use super::row::{RowColumns, json_text};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::Slot;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::hash::canonical_sha256;
use holdfast_domain::id::OrgId;

/// Recorded decision of any slot.
#[derive(Clone, Debug)]
pub struct RecordedDecision {
    pub slot: Slot,
    /// Id of the decision; of the envelope, which is evaluated once.
    pub id: String,
    /// Id of the envelope, or of the template.
    pub subject: String,
    pub at: Timestamp,
    /// Name, version and digest of the deciding component.
    pub component: Value,
    /// Called function of the slot's interface.
    pub function: String,
    /// Parameters of the call, as the host writes them.
    pub given: Value,
    /// What the function returned, as the host writes it; null if it was not recorded.
    pub answer: Value,
    /// Digests of parameters and answer that were deleted with their record.
    pub digests: Option<DecisionDigests>,
}

/// SHA-256 of the canonical JSON of a decision's parameters and answer, lower-case hex.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecisionDigests {
    pub given: String,
    pub answer: String,
}

/// Table with the decisions of a slot.
struct DecisionTable {
    name: &'static str,
    id: &'static str,
    /// Column of the owner of the deciding rules.
    owner: &'static str,
    /// Columns that `read` needs.
    columns: &'static str,
    read: fn(&RowColumns<'_>) -> Result<RecordedDecision, StoreError>,
}

/// All of them, in the order of decisions in a block.
const TABLES: [DecisionTable; 5] = [
    DecisionTable {
        name: "evaluation",
        id: "envelope_id",
        owner: "org_id",
        columns: "envelope_id, evaluated_at, component, facts, answer, digests",
        read: evaluation,
    },
    DecisionTable {
        name: "lifecycle_decision",
        id: "decision_id",
        owner: "org_id",
        columns: "decision_id, envelope_id, at, component, from_status, trigger_name, to_status,
            facts, digests",
        read: transition,
    },
    DecisionTable {
        name: "placement_decision",
        id: "decision_id",
        owner: "org_id",
        columns: "decision_id, template_id, at, component, document, facts, answer, digests",
        read: placement,
    },
    // Rows are in the buckets of the originators, so no statement here names a bucket.
    DecisionTable {
        name: "control_decision",
        id: "decision_id",
        owner: "controller_id",
        columns: "decision_id, envelope_id, at, component, act, facts, digests",
        read: act,
    },
    // The facts are the originator's, also where the rules of a lender decided.
    DecisionTable {
        name: "funding_decision",
        id: "decision_id",
        owner: "org_id",
        columns: "decision_id, envelope_id, at, component, facts, answer, digests",
        read: funding,
    },
];

/// Returns organizations with decisions that are in no block yet, in the order of their ids behind `after`.
pub async fn waiting(
    connection: &mut SqlConnection,
    after: &str,
    limit: usize,
) -> Result<Vec<OrgId>, StoreError> {
    let mut found = BTreeSet::new();
    for table in &TABLES {
        let DecisionTable { name, owner, .. } = table;
        // Partial indexes have only the rows without a block, so recorded decisions cost nothing here.
        let text = format!(
            "select distinct {owner} as owner from {name}
             where block is null and {owner} > $1 order by {owner} limit $2"
        );
        let rows = sqlx::query(AssertSqlSafe(text))
            .bind(after)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&mut *connection)
            .await?;
        for row in rows {
            let columns = table.columns(&row);
            found.insert(columns.parsed("owner", OrgId::parse)?);
        }
    }

    // Each table gave up to `limit` owners. One order over all
    // tables lets the next call begin behind the last one.
    Ok(found.into_iter().take(limit).collect())
}

/// Puts up to `limit` decisions of each slot that are in no block into block `block`, and returns them in the
/// order of the block. Ids are unique over all buckets; the buckets are named for the primary key.
pub async fn take(
    tx: &mut WriteTransaction,
    org: &OrgId,
    block: i64,
    limit: i64,
) -> Result<Vec<RecordedDecision>, StoreError> {
    let mut taken = Vec::new();
    for table in &TABLES {
        let DecisionTable {
            name,
            id,
            owner,
            columns,
            ..
        } = table;

        // The chosen rows first: as conditions of the update, PostgreSQL read the whole table for each block.
        let text = format!(
            "with chosen as materialized (
                 select bucket as chosen_bucket, {id} as chosen_id from {name}
                 where {owner} = $2 and block is null order by {id} limit $3)
             update {name} set block = $1 from chosen
             where bucket = chosen_bucket and {id} = chosen_id and block is null
             returning {columns}"
        );

        let rows = sqlx::query(AssertSqlSafe(text))
            .bind(block)
            .bind(org.as_str())
            .bind(limit)
            .fetch_all(&mut **tx)
            .await?;
        let mut decisions = table.decisions(&rows)?;

        // The database returns changed rows in any order.
        decisions.sort_by(|one, other| one.id.cmp(&other.id));
        taken.append(&mut decisions);
    }

    Ok(taken)
}

/// Returns the decisions of a block, in its order.
pub async fn of_block(
    connection: &mut SqlConnection,
    org: &OrgId,
    block: i64,
) -> Result<Vec<RecordedDecision>, StoreError> {
    let mut found = Vec::new();
    for table in &TABLES {
        let DecisionTable {
            name,
            id,
            owner,
            columns,
            ..
        } = table;
        // The order of `take`: the Merkle root of the block depends on it.
        let text =
            format!("select {columns} from {name} where {owner} = $1 and block = $2 order by {id}");
        let rows = sqlx::query(AssertSqlSafe(text))
            .bind(org.as_str())
            .bind(block)
            .fetch_all(&mut *connection)
            .await?;

        found.append(&mut table.decisions(&rows)?);
    }

    Ok(found)
}

/// Deletes parameters and answers of the decisions of a table about a record, and keeps their digests, to which blocks commit.
/// `condition` finds the decisions: `$1` is the bucket, and `$2` the envelope.
pub(super) async fn digest(
    tx: &mut WriteTransaction,
    name: &str,
    condition: &str,
    envelope: &Envelope,
) -> Result<(), StoreError> {
    let Some(table) = TABLES.iter().find(|table| table.name == name) else {
        return Ok(());
    };
    let DecisionTable { id, columns, .. } = table;
    let text = format!(
        "select {columns} from {name} where bucket = $1 and {condition} and digests is null"
    );
    let rows = sqlx::query(AssertSqlSafe(text))
        .bind_key(&envelope.org, envelope.id.as_str())
        .fetch_all(&mut **tx)
        .await?;

    // Status and act are columns of their own and stay, so only some tables have an answer to delete.
    let answer = if columns.contains(", answer,") {
        ", answer = 'null'"
    } else {
        ""
    };
    let text = format!(
        "update {name} set facts = 'null', digests = $3{answer} where bucket = $1 and {id} = $2"
    );
    for decision in table.decisions(&rows)? {
        let digests = DecisionDigests {
            given: canonical_sha256(&decision.given),
            answer: canonical_sha256(&decision.answer),
        };
        sqlx::query(AssertSqlSafe(text.clone()))
            .bind(envelope.org.bucket())
            .bind(&decision.id)
            .bind(json_text(&digests))
            .run(tx)
            .await?;
    }
    Ok(())
}

impl DecisionTable {
    fn columns<'r>(&self, row: &'r AnyRow) -> RowColumns<'r> {
        RowColumns::of(row, self.name, self.id)
    }

    fn decisions(&self, rows: &[AnyRow]) -> Result<Vec<RecordedDecision>, StoreError> {
        let rows = rows.iter();
        rows.map(|row| (self.read)(&self.columns(row))).collect()
    }
}

fn evaluation(columns: &RowColumns<'_>) -> Result<RecordedDecision, StoreError> {
    let envelope = columns.text("envelope_id")?;
    Ok(RecordedDecision {
        slot: Slot::Compliance,
        id: envelope.clone(),
        subject: envelope,
        at: columns.time("evaluated_at")?,
        component: columns.json("component")?,
        function: "evaluate".into(),
        given: json!({ "facts": columns.json::<Value>("facts")? }),
        answer: columns.optional_json("answer")?.unwrap_or_default(),
        digests: columns.optional_json("digests")?,
    })
}

fn transition(columns: &RowColumns<'_>) -> Result<RecordedDecision, StoreError> {
    let (from, trigger) = (
        columns.optional_text("from_status")?,
        columns.text("trigger_name")?,
    );
    let facts: Value = columns.json("facts")?;
    Ok(RecordedDecision {
        slot: Slot::Lifecycle,
        id: columns.text("decision_id")?,
        subject: columns.text("envelope_id")?,
        at: columns.time("at")?,
        component: columns.json("component")?,
        function: "envelope".into(),
        given: json!({ "current": from, "trigger": trigger, "facts": facts }),
        // Only permitted transitions are recorded.
        answer: json!({ "ok": columns.text("to_status")?.replace('_', "-") }),
        digests: columns.optional_json("digests")?,
    })
}

fn placement(columns: &RowColumns<'_>) -> Result<RecordedDecision, StoreError> {
    let mut given: Value = columns.json("facts")?;
    given["document_sha256"] = json!(columns.text("document")?);
    Ok(RecordedDecision {
        slot: Slot::Placement,
        id: columns.text("decision_id")?,
        subject: columns.text("template_id")?,
        at: columns.time("at")?,
        component: columns.json("component")?,
        // No column names the function: only the parameters of `place` have fields.
        function: match given.get("fields") {
            Some(_) => "place".into(),
            None => "tags".into(),
        },
        given,
        answer: columns.json("answer")?,
        digests: columns.optional_json("digests")?,
    })
}

fn act(columns: &RowColumns<'_>) -> Result<RecordedDecision, StoreError> {
    let (act, facts) = (columns.text("act")?, columns.json::<Value>("facts")?);
    Ok(RecordedDecision {
        slot: Slot::Control,
        id: columns.text("decision_id")?,
        subject: columns.text("envelope_id")?,
        at: columns.time("at")?,
        component: columns.json("component")?,
        function: "decide".into(),
        given: json!({ "act": act, "facts": facts }),
        // Only permitted acts are recorded.
        answer: json!("allowed"),
        digests: columns.optional_json("digests")?,
    })
}

fn funding(columns: &RowColumns<'_>) -> Result<RecordedDecision, StoreError> {
    Ok(RecordedDecision {
        slot: Slot::Funding,
        id: columns.text("decision_id")?,
        subject: columns.text("envelope_id")?,
        at: columns.time("at")?,
        component: columns.json("component")?,
        function: "check".into(),
        given: json!({ "facts": columns.json::<Value>("facts")? }),
        answer: columns.json("answer")?,
        digests: columns.optional_json("digests")?,
    })
}
