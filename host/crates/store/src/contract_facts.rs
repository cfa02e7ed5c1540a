//! Facts of contracts, and the keys by which contracts are found.

use crate::SqlConnection;
use serde_json::json;
use sqlx::AssertSqlSafe;

use super::row::{RowColumns, json_text, numbered, query_rows, row_by_id, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::fact_map::{FactInputs, KEY_FACTS};
use holdfast_domain::facts::{FactMapIdentity, FactSheet};
use holdfast_domain::hash::canonical_sha256;
use holdfast_domain::id::{EnvelopeId, OrgId};

/// Key with the partner's own reference of an envelope.
pub const EXTERNAL_ID: &str = "external_id";
/// Key with the id of an envelope.
pub const ENVELOPE_ID: &str = "envelope_id";

/// Longest value of a key, in bytes. PostgreSQL has no index of much longer ones, and no contract is looked for by them.
const KEY_BYTES: usize = 500;

/// Facts of one contract.
#[derive(Clone, Debug)]
pub struct ContractFacts {
    pub org: OrgId,
    pub envelope: EnvelopeId,
    pub sheet: FactSheet,
    /// What the sheet was read from, besides the document.
    pub inputs: FactInputs,
    /// SHA-256 of the sheet's canonical JSON (RFC 8785), lower-case hex.
    pub digest: String,
    pub created_at: Timestamp,
}

impl ContractFacts {
    /// Creates the row of an envelope's sheet.
    pub fn new(envelope: &Envelope, sheet: FactSheet, inputs: FactInputs, now: Timestamp) -> Self {
        Self {
            org: envelope.org.clone(),
            envelope: envelope.id.clone(),
            digest: canonical_sha256(&json!(sheet)),
            sheet,
            inputs,
            created_at: now,
        }
    }
}

/// Contract that has a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundKey {
    pub value: String,
    pub envelope: EnvelopeId,
}

/// Stores the facts of an envelope in place of earlier ones, with the keys that it is found by.
pub async fn insert(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    facts: &ContractFacts,
) -> Result<(), StoreError> {
    let sheet = &facts.sheet;
    sqlx::query(
        "insert into contract_facts (bucket, envelope_id, org_id, fact_map_id, map_version, map_sha256,
             component_name, component_version, component_sha256, document_sha256, inputs, digest, facts,
             created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
         on conflict (bucket, envelope_id) do update set fact_map_id = excluded.fact_map_id,
             map_version = excluded.map_version, map_sha256 = excluded.map_sha256,
             component_name = excluded.component_name, component_version = excluded.component_version,
             component_sha256 = excluded.component_sha256, document_sha256 = excluded.document_sha256,
             inputs = excluded.inputs, digest = excluded.digest, facts = excluded.facts,
             created_at = excluded.created_at",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(&sheet.fact_map.fact_map_id)
    .bind(i64::from(sheet.fact_map.version))
    .bind(&sheet.fact_map.sha256)
    .bind(&sheet.component.name)
    .bind(&sheet.component.version)
    .bind(&sheet.component.sha256)
    .bind(&sheet.document_sha256)
    .bind(json_text(&facts.inputs))
    .bind(&facts.digest)
    .bind(json_text(&sheet.facts))
    .bind(facts.created_at.to_string())
    .run(tx)
    .await?;

    replace_keys(tx, envelope, sheet).await
}

/// Removes the facts of an envelope, and the keys that it is found by.
pub async fn delete(tx: &mut WriteTransaction, envelope: &Envelope) -> Result<(), StoreError> {
    sqlx::query("delete from contract_facts where bucket = $1 and envelope_id = $2")
        .bind_key(&envelope.org, envelope.id.as_str())
        .run(tx)
        .await?;

    delete_keys(tx, envelope).await
}

async fn delete_keys(tx: &mut WriteTransaction, envelope: &Envelope) -> Result<(), StoreError> {
    sqlx::query("delete from contract_fact_key where bucket = $1 and envelope_id = $2")
        .bind_key(&envelope.org, envelope.id.as_str())
        .run(tx)
        .await
}

async fn replace_keys(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    sheet: &FactSheet,
) -> Result<(), StoreError> {
    // A later reading can find another number, and the contract is then not found by the earlier one.
    delete_keys(tx, envelope).await?;

    for (name, value) in keys(envelope, sheet) {
        sqlx::query(
            "insert into contract_fact_key (bucket, org_id, key_name, key_value, envelope_id)
             values ($1, $2, $3, $4, $5)",
        )
        .bind_org(&envelope.org)
        .bind(name)
        .bind(value)
        .bind(envelope.id.as_str())
        .run(tx)
        .await?;
    }

    Ok(())
}

/// Returns the names and values that a contract is found by.
fn keys<'a>(envelope: &'a Envelope, sheet: &'a FactSheet) -> Vec<(&'static str, &'a str)> {
    let of_facts = KEY_FACTS.into_iter().filter_map(|name| {
        let value = sheet.get(name)?.value.as_deref()?;
        Some((name, value))
    });
    let external = envelope.external_id.as_deref();
    let own = [(ENVELOPE_ID, envelope.id.as_str())];
    let all = of_facts
        .chain(external.map(|external| (EXTERNAL_ID, external)))
        .chain(own);

    // A value that the database refuses would stop the vaulting for good.
    all.filter(|(_, value)| value.len() <= KEY_BYTES && !value.contains('\0'))
        .collect()
}

/// Returns the facts of an envelope.
pub async fn of_envelope(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Option<ContractFacts>, StoreError> {
    row_by_id(connection, org, envelope.as_str()).await
}

/// Returns facts of an organization's contracts in the order of the envelopes' ids, after one of them.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    after: Option<&EnvelopeId>,
    limit: i64,
) -> Result<Vec<ContractFacts>, StoreError> {
    query_rows(
        "select {columns} from contract_facts
         where bucket = $1 and org_id = $2 and envelope_id > $3
         order by envelope_id limit $4",
    )
    .bind_org(org)
    // Before all ids.
    .bind(after.map_or("", EnvelopeId::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Finds contracts by the values of a key, in one query: `contract_number`, `vin`, [`EXTERNAL_ID`] or
/// [`ENVELOPE_ID`].
pub async fn by_key(
    connection: &mut SqlConnection,
    org: &OrgId,
    key_name: &str,
    values: &[String],
) -> Result<Vec<FoundKey>, StoreError> {
    // `in ()` is not valid SQL.
    if values.is_empty() {
        return Ok(Vec::new());
    }

    let text = format!(
        "select key_value, envelope_id from contract_fact_key
         where bucket = $1 and org_id = $2 and key_name = $3 and key_value in ({})
         order by key_value, envelope_id",
        numbered(4, values.len())
    );
    let mut query = sqlx::query(AssertSqlSafe(text))
        .bind_org(org)
        .bind(key_name);
    for value in values {
        query = query.bind(value);
    }

    let rows = query.fetch_all(connection).await?;
    let found = rows.iter().map(|row| {
        let columns = RowColumns::of(row, "contract_fact_key", "envelope_id");
        Ok::<_, StoreError>(FoundKey {
            value: columns.text("key_value")?,
            envelope: columns.parsed("envelope_id", EnvelopeId::parse)?,
        })
    });
    found.collect()
}

table_row! {
    ContractFacts of "contract_facts" by "envelope_id"
        also "fact_map_id", "map_version", "map_sha256", "component_name", "component_version",
            "component_sha256", "document_sha256", "facts"
    {
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        sheet: |row| FactSheet {
            fact_map: FactMapIdentity {
                fact_map_id: row.text("fact_map_id")?,
                version: u32::try_from(row.number("map_version")?).unwrap_or_default(),
                sha256: row.text("map_sha256")?,
            },
            component: ComponentIdentity {
                name: row.text("component_name")?,
                version: row.text("component_version")?,
                sha256: row.text("component_sha256")?,
            },
            document_sha256: row.text("document_sha256")?,
            facts: row.json("facts")?,
        },
        inputs: json("inputs"),
        digest: text("digest"),
        created_at: time("created_at"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::envelope::EnvelopeKind;
    use holdfast_domain::facts::{Fact, FactKind, FactStatus};
    use holdfast_domain::id::CustomerId;

    fn sheet(number: &str) -> FactSheet {
        FactSheet {
            fact_map: FactMapIdentity {
                fact_map_id: "fmp_1".into(),
                version: 1,
                sha256: String::new(),
            },
            component: ComponentIdentity {
                name: "reader".into(),
                version: "1.0.0".into(),
                sha256: String::new(),
            },
            document_sha256: String::new(),
            facts: vec![Fact {
                name: "contract_number".into(),
                kind: FactKind::Text,
                currency: None,
                status: FactStatus::Known,
                value: Some(number.into()),
                origin: None,
                sources: Vec::new(),
            }],
        }
    }

    #[test]
    fn a_value_that_no_index_takes_is_no_key() {
        let (org, customer) = (OrgId::new(), CustomerId::new());
        let (kind, at) = (EnvelopeKind::Paper, Timestamp::from_millis(0));
        let envelope = Envelope::new(org, customer, "Loan".into(), kind, "key:key_1".into(), at);
        let own = (ENVELOPE_ID, envelope.id.as_str());
        let known = sheet("RIC-2041");
        assert_eq!(
            keys(&envelope, &known),
            [("contract_number", "RIC-2041"), own]
        );

        for refused in ["7".repeat(KEY_BYTES + 1), "RIC\0".into()] {
            assert_eq!(keys(&envelope, &sheet(&refused)), [own]);
        }
    }
}
