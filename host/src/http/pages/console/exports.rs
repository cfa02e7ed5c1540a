//! Lists of the console as CSV (RFC 4180), for spreadsheets.

use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::envelopes::ListQuery;
use super::frame::failed;
use super::vault::{self, VaultQuery};
use super::visitor::Visitor;
use crate::domain::organization::Permission;
use crate::service::access::{audit, users};
use crate::service::envelopes::compliance;
use crate::service::{App, ServiceError, envelopes};
use crate::store::search::FoundEnvelope;

/// Most rows of an export.
const MOST: usize = 10_000;
/// Rows that are read at once.
const BATCH: i64 = 500;

/// A table that is being written.
struct CsvTable(csv::Writer<Vec<u8>>);

impl CsvTable {
    fn new(columns: &[&str]) -> Result<Self, ServiceError> {
        let mut table = Self(csv::Writer::from_writer(Vec::new()));
        table.row(columns.iter().copied().map(str::to_owned))?;
        Ok(table)
    }

    fn row(&mut self, values: impl IntoIterator<Item = String>) -> Result<(), ServiceError> {
        let values = values.into_iter().map(inert);
        self.0.write_record(values).map_err(unwritten)
    }

    fn answer(self, name: &str) -> Result<Response, ServiceError> {
        let bytes = self.0.into_inner().map_err(unwritten)?;
        let headers = [
            (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
            (header::CACHE_CONTROL, "no-store".to_owned()),
            (
                header::CONTENT_DISPOSITION,
                format!("attachment; filename=\"{name}.csv\""),
            ),
        ];
        Ok((headers, bytes).into_response())
    }
}

fn unwritten(error: impl std::fmt::Display) -> ServiceError {
    ServiceError::Internal(format!("an export: {error}"))
}

/// Returns a value that spreadsheets do not run as a formula.
fn inert(value: String) -> String {
    match value.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{value}"),
        false => value,
    }
}

fn text(value: Option<&impl ToString>) -> String {
    value.map_or_else(String::new, ToString::to_string)
}

/// Exports the envelopes of a search, with the failed checks of certificates below 100.
pub async fn envelopes(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<ListQuery>,
) -> Response {
    if let Some(refused) = visitor.refusal(Permission::ReadEnvelopes) {
        return refused;
    }
    envelope_table(&app, &visitor, &query)
        .await
        .unwrap_or_else(failed)
}

async fn envelope_table(
    app: &App,
    visitor: &Visitor,
    query: &ListQuery,
) -> Result<Response, ServiceError> {
    let mut table = CsvTable::new(&[
        "envelope_id",
        "name",
        "kind",
        "status",
        "external_id",
        "compliance_score",
        "failed_checks",
        "created_at",
        "updated_at",
        "expires_at",
    ])?;
    let (mut search, mut rows) = (query.search(visitor.now), 0);
    loop {
        let found = envelopes::search(app, &visitor.caller, &search, BATCH).await?;
        for one in &found {
            let checks = failed_checks(app, visitor, one).await?;
            table.row([
                one.id.to_string(),
                one.name.clone(),
                one.kind.to_string(),
                one.status.to_string(),
                text(one.external_id.as_ref()),
                text(one.compliance_score.as_ref()),
                checks,
                one.created_at.to_string(),
                one.updated_at.to_string(),
                text(one.expires_at.as_ref()),
            ])?;
        }
        rows += found.len();
        search.after = found.last().map(|last| last.id.clone());
        if search.after.is_none() || rows >= MOST {
            return table.answer("envelopes");
        }
    }
}

/// Returns the failed checks of a certificate, separated by semicolons.
async fn failed_checks(
    app: &App,
    visitor: &Visitor,
    found: &FoundEnvelope,
) -> Result<String, ServiceError> {
    if found.compliance_score.is_none_or(|score| score >= 100) {
        return Ok(String::new());
    }
    let bytes = compliance::certificate(app, &visitor.caller, found.id.as_str()).await?;
    let certificate: Value = serde_json::from_slice(&bytes).map_err(unwritten)?;
    let checks = certificate["ucc_9105_compliance"]["checks"].as_array();
    let failed = checks
        .into_iter()
        .flatten()
        .filter(|check| check["satisfied"] == false)
        .filter_map(|check| check["requirement"].as_str());
    Ok(failed.collect::<Vec<_>>().join("; "))
}

/// Exports the list of who did what.
pub async fn audit(State(app): State<App>, visitor: Visitor) -> Response {
    if let Some(refused) = visitor.refusal(Permission::Audit) {
        return refused;
    }
    audit_table(&app, &visitor).await.unwrap_or_else(failed)
}

async fn audit_table(app: &App, visitor: &Visitor) -> Result<Response, ServiceError> {
    let columns = ["id", "at", "actor", "action", "details"];
    let (mut table, mut after, mut rows) = (CsvTable::new(&columns)?, None, 0);
    loop {
        let found = audit::list(app, &visitor.caller, after.as_deref(), BATCH).await?;
        for one in &found {
            table.row([
                one.id.clone(),
                one.at.to_string(),
                one.actor.clone(),
                one.action.clone(),
                one.details.to_string(),
            ])?;
        }
        rows += found.len();
        after = found.last().map(|last| last.id.clone());
        if after.is_none() || rows >= MOST {
            return table.answer("audit-log");
        }
    }
}

/// Exports the users.
pub async fn users(State(app): State<App>, visitor: Visitor) -> Response {
    if let Some(refused) = visitor.refusal(Permission::Administer) {
        return refused;
    }
    user_table(&app, &visitor).await.unwrap_or_else(failed)
}

async fn user_table(app: &App, visitor: &Visitor) -> Result<Response, ServiceError> {
    let columns = [
        "user_id",
        "email",
        "role",
        "status",
        "created_by",
        "created_at",
        "signed_in_at",
    ];
    let mut table = CsvTable::new(&columns)?;
    for one in users::list(app, &visitor.caller.org).await? {
        table.row([
            one.user_id.to_string(),
            one.email,
            one.role.to_string(),
            one.status.to_string(),
            one.created_by,
            one.created_at.to_string(),
            text(one.signed_in_at.as_ref()),
        ])?;
    }
    table.answer("users")
}

/// Exports the records of the vault that fit, with custodians and last checks.
pub async fn vault(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<VaultQuery>,
) -> Response {
    if let Some(refused) = visitor.refusal(Permission::ReadEvidence) {
        return refused;
    }
    vault_table(&app, &visitor, &query)
        .await
        .unwrap_or_else(failed)
}

async fn vault_table(
    app: &App,
    visitor: &Visitor,
    query: &VaultQuery,
) -> Result<Response, ServiceError> {
    let mut table = CsvTable::new(&[
        "envelope_id",
        "name",
        "status",
        "secured_party",
        "custodians",
        "compliance_score",
        "checked_at",
        "has_problems",
    ])?;
    let (mut search, mut rows) = (query.search(), 0);
    loop {
        let found = vault::found(app, &visitor.caller, &search, BATCH).await?;
        for (one, record) in &found {
            table.row([
                one.id.to_string(),
                one.name.clone(),
                one.status.to_string(),
                text(one.secured_party.as_ref().map(|party| &party.name)),
                record.custodians.join(" "),
                text(one.compliance_score.as_ref()),
                text(record.checked_at.as_ref()),
                record.has_problems.to_string(),
            ])?;
        }
        rows += found.len();
        search.after = found.last().map(|(last, _)| last.id.clone());
        if search.after.is_none() || rows >= MOST {
            return table.answer("vault");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_no_formula() {
        for (value, written) in [
            ("=1+1", "'=1+1"),
            ("+49", "'+49"),
            ("-1", "'-1"),
            ("@a", "'@a"),
            ("\tx", "'\tx"),
            ("deal-1", "deal-1"),
            ("", ""),
        ] {
            assert_eq!(inert(value.to_owned()), written);
        }
    }
}
