//! Lists of the console as CSV (RFC 4180), for spreadsheets.

use std::future::Future;

use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

use super::control::RecordsQuery;
use super::customers::CustomerQuery;
use super::envelopes::ListQuery;
use super::insight::RequestQuery;
use super::navigation::PageResult;
use super::signed_in::{Visitor, refused};
use super::vault::{self, VaultQuery};
use holdfast_domain::cell::inert;
use holdfast_domain::organization::Permission;
use holdfast_domain::template::Template;
use holdfast_domain::user::Session;
use holdfast_platform::access::{api_keys, audit, sessions, users};
use holdfast_platform::components::{self, ComponentOwner, changes};
use holdfast_platform::webhooks::{self, deliveries};
use holdfast_platform::{ServiceError, request_log};
use holdfast_service::control::{self, transfers};
use holdfast_service::envelopes::compliance;
use holdfast_service::templates::packages;
use holdfast_service::{App, bulk, customers, envelopes, installation, templates};
use holdfast_store::control::RecordFilter;
use holdfast_store::deliveries::DeliveryFilter;
use holdfast_store::search::FoundEnvelope;

/// Most rows of an export.
const MOST: i64 = 10_000;
/// Rows that are read at once.
const BATCH: i64 = 500;

/// A table that is being written.
struct CsvTable(csv::Writer<Vec<u8>>);

impl CsvTable {
    /// Begins a table with the names of its columns, between blanks.
    fn new(columns: &str) -> Result<Self, ServiceError> {
        let mut table = Self(csv::Writer::from_writer(Vec::new()));
        table.row(columns.split(' ').map(str::to_owned))?;
        Ok(table)
    }

    fn row(&mut self, values: impl IntoIterator<Item = String>) -> Result<(), ServiceError> {
        // Partners and signers choose names. A spreadsheet would run one that begins like a formula.
        let values = values.into_iter().map(|value| inert(&value));
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
    // The table is in memory, so only a mistake of this program can end here.
    ServiceError::Internal(format!("an export: {error}"))
}

fn text(value: Option<&impl ToString>) -> String {
    value.map_or_else(String::new, ToString::to_string)
}

/// Exports the envelopes of a search, with the failed checks of certificates below 100.
pub async fn envelopes(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<ListQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;
    Ok(envelope_table(&app, &visitor, &query).await?)
}

async fn envelope_table(
    app: &App,
    visitor: &Visitor,
    query: &ListQuery,
) -> Result<Response, ServiceError> {
    let columns = "envelope_id name kind status external_id compliance_score failed_checks \
        created_at updated_at expires_at";
    let mut table = CsvTable::new(columns)?;

    // Each batch begins after the last id of the one before. An offset would skip or repeat rows that
    // change place meanwhile.
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

        // A short batch is followed by an empty one, which has no last id and ends the loop.
        rows += BATCH;
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
    // Certificates are read from storage one by one, so a record that passed every check costs no read.
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

/// Answers with a list. Each column, between blanks, is a member of the object that the API has for a row, such as `seller.name`.
async fn listed<T: Serialize>(
    visitor: &Visitor,
    permission: Permission,
    name: &str,
    columns: &str,
    rows: impl Future<Output = Result<Vec<T>, ServiceError>>,
) -> PageResult {
    // The rows are a future that has not run yet, so a refused user causes no query.
    visitor.require(permission)?;
    written(name, columns, rows).await
}

/// Answers the operator with a list of the installation.
async fn operated<T: Serialize>(
    visitor: &Visitor,
    name: &str,
    columns: &str,
    rows: impl Future<Output = Result<Vec<T>, ServiceError>>,
) -> PageResult {
    // A role is not enough: admins of every tenant have it, and these lists are about all tenants.
    if visitor.operates {
        written(name, columns, rows).await
    } else {
        Err(refused(visitor.texts).into())
    }
}

async fn written<T: Serialize>(
    name: &str,
    columns: &str,
    rows: impl Future<Output = Result<Vec<T>, ServiceError>>,
) -> PageResult {
    let rows = rows.await?;
    Ok(table_of(name, columns, &rows)?)
}

fn table_of<T: Serialize>(name: &str, columns: &str, rows: &[T]) -> Result<Response, ServiceError> {
    let mut table = CsvTable::new(columns)?;
    for row in rows {
        // Columns are members of the API's own answer, so an export cannot have a secret that the API
        // leaves out.
        let row = serde_json::to_value(row).map_err(unwritten)?;
        table.row(columns.split(' ').map(|column| cell(&row, column)))?;
    }
    table.answer(name)
}

/// Returns a member by its path. For a list, returns the member of each item, separated by semicolons.
fn cell(value: &Value, path: &str) -> String {
    match value {
        Value::Null => String::new(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| cell(item, path)).collect();
            items.join("; ")
        }
        value if !path.is_empty() => {
            let (member, rest) = path.split_once('.').unwrap_or((path, ""));
            cell(&value[member], rest)
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Exports the list of who did what.
pub async fn audit(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "id at actor action details";
    let rows = audit::list(&app, &visitor.caller, None, MOST);
    listed(&visitor, Permission::Audit, "audit-log", columns, rows).await
}

/// Exports the users.
pub async fn users(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "user_id email role status created_by created_at signed_in_at";

    let rows = users::list(&app, &visitor.caller.org);
    listed(&visitor, Permission::Administer, "users", columns, rows).await
}

/// Exports the templates.
pub async fn templates(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "template_id name roles fields updated_at";
    // The template of the API lists its fields. A table has room for their number.
    let row = |one: &Template| {
        json!({
            "template_id": one.id, "name": one.name, "roles": one.roles(), "fields": one.fields.len(),
            "updated_at": one.updated_at,
        })
    };
    let rows = async {
        let (found, _) = templates::list(
            &app,
            &visitor.caller,
            &templates::TemplateFilter::default(),
            1,
            MOST,
        )
        .await?;
        Ok(found.iter().map(row).collect::<Vec<_>>())
    };

    listed(
        &visitor,
        Permission::ReadEnvelopes,
        "templates",
        columns,
        rows,
    )
    .await
}

/// Exports the batches.
pub async fn batches(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "batch_id name status total_count sent_count failed_count skipped_count \
        created_by created_at";

    let rows = async {
        let (found, _) = bulk::list(&app, &visitor.caller, 1, MOST).await?;
        Ok(found)
    };
    listed(&visitor, Permission::Send, "batches", columns, rows).await
}

/// Exports the clients of a batch.
pub async fn clients(
    State(app): State<App>,
    visitor: Visitor,
    Path(batch): Path<String>,
) -> PageResult {
    let columns = "item_id customer_id customer_name email status envelope_id error sent_at";

    let rows = async {
        let found = bulk::overview(&app, &visitor.caller, &batch).await?;
        Ok(found.items)
    };
    listed(&visitor, Permission::Send, "clients", columns, rows).await
}

/// Exports the transfers, as seller or buyer.
pub async fn transfers(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "transfer_id state seller.name buyer.name price_reference created_at \
        changed_at expires_at";

    let rows = transfers::list(&app, &visitor.caller, None, MOST);
    let permission = Permission::ReadControl;
    listed(&visitor, permission, "transfers", columns, rows).await
}

/// Exports the requests of a search, without their bodies.
pub async fn requests(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<RequestQuery>,
) -> PageResult {
    let columns = "request_id at method route path status credential envelope_id duration_ms";

    let search = query.search();
    let rows = request_log::list(&app, &visitor.caller.org, &search, MOST);
    listed(&visitor, Permission::Integrate, "requests", columns, rows).await
}

/// Exports the deliveries to a receiver.
pub async fn deliveries(
    State(app): State<App>,
    visitor: Visitor,
    Path(receiver): Path<String>,
) -> PageResult {
    let columns = "delivery_id event_id event_type envelope_id status attempt_count \
        response_code error created_at updated_at";

    let all = DeliveryFilter::default();
    let rows = async {
        let found = deliveries::list(&app, &visitor.caller, &receiver, &all, 1, MOST).await?;
        Ok(found.0)
    };

    let permission = Permission::Integrate;
    listed(&visitor, permission, "deliveries", columns, rows).await
}

/// Exports the packages, with the names of their templates.
pub async fn packages(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "package_id name items.name kba_required created_at updated_at";

    let rows = async {
        let (found, _) = packages::list(&app, &visitor.caller, 1, MOST).await?;
        Ok(found)
    };
    let permission = Permission::ReadEnvelopes;
    listed(&visitor, permission, "packages", columns, rows).await
}

/// Exports the records under control in which the organization has a part.
pub async fn records(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<RecordsQuery>,
) -> PageResult {
    let columns = "envelope_id name status stage originator.name controller.name pledgee.name \
        compliance_score controlled_since changed_at document_hash";

    // Without the place in the list, because an export begins with the newest record also on a later page.
    let filter = RecordFilter::of(query.part());
    let rows = control::list(&app, &visitor.caller, &filter, MOST);
    let permission = Permission::ReadControl;
    listed(&visitor, permission, "records", columns, rows).await
}

/// Exports the keys that sign acts of control.
pub async fn control_keys(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "key_id name thumbprint created_at revoked_at";
    let rows = control::keys::list(&app, &visitor.caller);
    let permission = Permission::ReadControl;
    listed(&visitor, permission, "control-keys", columns, rows).await
}

/// Exports the API keys, without their secrets.
pub async fn keys(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "key_id name scopes rate_limit_rpm owner_email active last_used_at";

    let rows = api_keys::list(&app, &visitor.caller.org);
    listed(&visitor, Permission::Integrate, "keys", columns, rows).await
}

/// Exports the receivers of webhooks.
pub async fn receivers(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "endpoint_id url description events is_active failing_since disabled_reason \
        created_at";

    let rows = webhooks::list(&app, &visitor.caller, None);
    listed(&visitor, Permission::Integrate, "receivers", columns, rows).await
}

/// Exports the customers of a search.
pub async fn customers(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<CustomerQuery>,
) -> PageResult {
    let columns = "customer_id name email company phone city country created_at";

    let text = query.text();
    let rows = customers::search(&app, &visitor.caller, text.as_deref(), None, MOST);
    let permission = Permission::ReadEnvelopes;
    listed(&visitor, permission, "customers", columns, rows).await
}

/// Exports the change requests of components.
pub async fn changes(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "change_id state change.action change.slot change.component.name \
        change.component.version reason source.url source.commit emergency requested_by \
        requested_at reviews.by reviews.verdict approvals approvals_required closed_by closed_at \
        activation_id";

    let rows = changes::list(&app, &visitor.caller.org, None, MOST);
    let permission = Permission::ReadEvidence;
    listed(&visitor, permission, "changes", columns, rows).await
}

/// Exports the activations of all slots, with their effective dates.
pub async fn activations(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "activation_id slot instance component_id scope reason activated_by created_at \
        effective_at rolled_back_at rolled_back_by rollback_reason";

    let rows = async {
        let owner = ComponentOwner::from(&visitor.caller);
        let slots = components::slots(&app, &app.management, &owner).await?;
        Ok(slots.into_iter().flat_map(|slot| slot.history).collect())
    };

    let permission = Permission::ReadEvidence;
    listed(&visitor, permission, "activations", columns, rows).await
}

/// Exports the components of the organization and the installation.
pub async fn components(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "component_id slot name version scope sha256 signed_by uploaded_by created_at";

    let rows = async {
        let owner = ComponentOwner::from(&visitor.caller);
        let (found, _) = components::list(&app, &owner, None, 1, MOST).await?;
        Ok(found)
    };

    let permission = Permission::ReadEvidence;
    listed(&visitor, permission, "components", columns, rows).await
}

/// Exports the open sessions of the user.
pub async fn sessions(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "session_id address browser created_at seen_at";
    let rows = async {
        let open = sessions::list(&app, &visitor.signed_in.user).await?;
        let row = |one: &Session| {
            json!({
                "session_id": one.id, "address": one.address, "browser": one.browser,
                "created_at": one.created_at, "seen_at": one.seen_at,
            })
        };
        Ok(open.iter().map(row).collect::<Vec<_>>())
    };

    // No permission is asked for, because these are the user's own sessions.
    written("sessions", columns, rows).await
}

/// Exports the organizations of the installation, the largest first.
pub async fn organizations(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "org_id name envelopes users created_at";
    let rows = installation::organizations(&app, MOST);
    operated(&visitor, "organizations", columns, rows).await
}

/// Exports the nodes and monitors of the installation with the time of their last sign.
pub async fn nodes(State(app): State<App>, visitor: Visitor) -> PageResult {
    let rows = async {
        let view = installation::view(&app).await?;
        let nodes = view.nodes.iter();
        let nodes = nodes.map(|one| json!({ "kind": "node", "name": one.node, "at": one.seen_at }));
        let monitors = view.monitors.iter();
        let monitors = monitors
            .map(|one| json!({ "kind": "monitor", "name": one.address, "at": one.asked_at }));
        Ok(nodes.chain(monitors).collect::<Vec<_>>())
    };

    operated(&visitor, "nodes", "kind name at", rows).await
}

/// Exports the jobs that failed at their last attempt.
pub async fn jobs(State(app): State<App>, visitor: Visitor) -> PageResult {
    let columns = "job_id org_id kind attempts run_at error";
    let rows = installation::failing_jobs(&app, MOST);
    operated(&visitor, "jobs", columns, rows).await
}

/// Exports the records of the vault that fit, with custodians and last checks.
pub async fn vault(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<VaultQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEvidence)?;
    Ok(vault_table(&app, &visitor, &query).await?)
}

async fn vault_table(
    app: &App,
    visitor: &Visitor,
    query: &VaultQuery,
) -> Result<Response, ServiceError> {
    let columns = "envelope_id name status secured_party custodians compliance_score checked_at \
        has_problems";
    let mut table = CsvTable::new(columns)?;

    // By ids as in the export of envelopes, so that a vault-in meanwhile moves no row out of sight.
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

        rows += BATCH;
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
    fn a_cell_is_a_member_by_its_path() {
        let row = json!({
            "id": "a_1", "count": 2, "none": null, "events": ["signed", "voided"],
            "source": { "url": "https://git.example" }, "reviews": [{ "by": "Ada" }, { "by": "Eva" }],
        });
        for (path, written) in [
            ("id", "a_1"),
            ("count", "2"),
            ("none", ""),
            ("none.url", ""),
            ("events", "signed; voided"),
            ("source.url", "https://git.example"),
            ("reviews.by", "Ada; Eva"),
        ] {
            assert_eq!(cell(&row, path), written, "{path}");
        }
    }
}
