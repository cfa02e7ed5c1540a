//! `holdfast key`.

use clap::Subcommand;
use serde_json::{Value, json};

use super::output::CommandOutput;
use super::{Failure, org_id, organizations};
use crate::start;
use holdfast_base::config::Config;
use holdfast_domain::clock::Clock;
use holdfast_domain::id::{KeyId, OrgId};
use holdfast_domain::organization::{ApiKeyRecord, Scope};
use holdfast_platform::access::api_keys::{self, ApiKeyView, DEFAULT_RPM, IssuedKey};
use holdfast_store::{WriteTransaction, api_keys as key_rows, organizations as organization_rows};

/// Actor of the entries in the credential ledger.
const OPERATOR: &str = "operator";

#[derive(Subcommand)]
pub enum KeyCommand {
    /// Create a key. It is shown only once.
    Create {
        #[arg(long, value_parser = org_id)]
        org: OrgId,
        /// Scopes, separated by commas (docs/roles.md).
        #[arg(long, value_delimiter = ',', value_parser = scope, required = true, long_help = scopes_help())]
        scopes: Vec<Scope>,
        /// Rate limit in requests per minute.
        #[arg(long, value_parser = clap::value_parser!(i64).range(1..))]
        rpm: Option<i64>,
        #[arg(long)]
        name: Option<String>,
        /// E-mail address of the custodian of envelopes created with this key.
        #[arg(long)]
        owner_email: Option<String>,
        /// For test data, which live keys and console users do not see.
        #[arg(long)]
        test: bool,
    },
    /// Replace a key: the old one stops working at once. The new one is shown only once.
    Rotate {
        #[arg(value_parser = key_id)]
        key: KeyId,
    },
    /// Change scopes or limits of a key; the key stays the same.
    Update {
        #[arg(value_parser = key_id)]
        key: KeyId,
        /// Scopes that replace those of the key, separated by commas (docs/roles.md).
        #[arg(long, value_delimiter = ',', value_parser = scope, long_help = scopes_help())]
        scopes: Option<Vec<Scope>>,
        #[arg(long, value_parser = clap::value_parser!(i64).range(1..))]
        rpm: Option<i64>,
    },
    /// Revoke a key. The next request with it is refused.
    Deactivate {
        #[arg(value_parser = key_id)]
        key: KeyId,
    },
    /// List an organization's keys.
    List {
        #[arg(long, value_parser = org_id)]
        org: OrgId,
    },
}

pub async fn run(
    command: KeyCommand,
    config: &Config,
    output: &CommandOutput,
) -> Result<(), Failure> {
    let store = start::open_store(config).await?;
    let now = Clock::default().now();
    match command {
        KeyCommand::Create {
            org,
            scopes,
            rpm,
            name,
            owner_email,
            test,
        } => {
            // Test data has the organization's id with a mark, so the check covers both sides.
            organizations::existing(&store, &org).await?;
            let record = ApiKeyRecord {
                id: KeyId::new(),
                org: if test { org.test() } else { org },
                name,
                scopes,
                rate_limit_rpm: rpm.unwrap_or(DEFAULT_RPM),
                owner_email,
                active: true,
                last_used_at: None,
                revision: 0,
            };

            let mut tx = store.begin().await?;
            let issued = api_keys::issue(&mut tx, &record, OPERATOR, now).await?;
            tx.commit().await?;

            // Shown after the commit: a key that was printed has to work. Only its hash is
            // stored, so there is no second look.
            show_issued(output, &record, &issued);
        }
        KeyCommand::Rotate { key: id } => {
            let mut tx = store.begin().await?;
            // The lock makes two rotations follow each other. Otherwise both would
            // show a key, and one would be void.
            let record = locked(&mut tx, &id).await?;
            let issued = api_keys::replace(&mut tx, &record, OPERATOR, now).await?;
            tx.commit().await?;
            show_issued(output, &record, &issued);
        }
        KeyCommand::Update {
            key: id,
            scopes,
            rpm,
        } => {
            let mut tx = store.begin().await?;
            let mut record = locked(&mut tx, &id).await?;
            record.scopes = scopes.unwrap_or(record.scopes);
            record.rate_limit_rpm = rpm.unwrap_or(record.rate_limit_rpm);
            api_keys::update(&mut tx, &record, OPERATOR, now).await?;
            tx.commit().await?;
            output.one(&view(&record), &line(&record));
        }
        KeyCommand::Deactivate { key: id } => {
            let mut tx = store.begin().await?;
            let record = locked(&mut tx, &id).await?;
            let record = api_keys::end(&mut tx, record, OPERATOR, now).await?;
            tx.commit().await?;
            output.one(&view(&record), &line(&record));
        }
        KeyCommand::List { org } => {
            organizations::existing(&store, &org).await?;
            let mut connection = store.read().await?;
            let records = api_keys::of_organization(&mut connection, &org).await?;
            let lines: Vec<String> = records.iter().map(line).collect();
            let views = records.iter().map(view).collect();
            output.one(&Value::Array(views), &lines.join("\n"));
        }
    }

    Ok(())
}

/// Returns a key. Locks its organization, so that no other change comes in between.
async fn locked(tx: &mut WriteTransaction, id: &KeyId) -> Result<ApiKeyRecord, Failure> {
    let unknown = || format!("there is no key {id}");
    let found = key_rows::by_id(tx, id).await?.ok_or_else(unknown)?;
    // The key names its organization, so a first read has to find it. The second
    // one sees the state under the lock.
    organization_rows::lock(tx, &found.org).await?;
    let found = key_rows::by_id(tx, id).await?;
    Ok(found.ok_or_else(unknown)?)
}

fn show_issued(output: &CommandOutput, record: &ApiKeyRecord, issued: &IssuedKey) {
    let mut shown = view(record);
    shown["api_key"] = json!(issued.api_key);
    let note = format!("{}: this key is shown this once", record.id);
    output.with_note(&shown, &issued.api_key, &note);
}

fn line(record: &ApiKeyRecord) -> String {
    format!(
        "{}  {}  {} requests/min  {}",
        record.id,
        if record.active {
            "active"
        } else {
            "deactivated"
        },
        record.rate_limit_rpm,
        record
            .scopes
            .iter()
            .map(|scope| scope.as_str())
            .collect::<Vec<_>>()
            .join(",")
    )
}

/// JSON view: `{key_id, org_id, scopes, rate_limit_rpm, …}`.
fn view(record: &ApiKeyRecord) -> Value {
    let mut view = json!(ApiKeyView::from(record));
    view["org_id"] = json!(record.org);
    view
}

fn scope(text: &str) -> Result<Scope, String> {
    Scope::parse(text.trim()).ok_or_else(|| {
        let known: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
        format!("unknown scope; known are {}", known.join(", "))
    })
}

/// Returns the list of scopes for `--help`.
fn scopes_help() -> String {
    let mut help = "Scopes, separated by commas (docs/roles.md has their operations):".to_owned();
    for scope in Scope::ALL {
        help.push_str(&format!("\n  {:<16} {}", scope.as_str(), scope.allows()));
    }

    help
}

fn key_id(text: &str) -> Result<KeyId, String> {
    KeyId::parse(text).ok_or_else(|| "not a key id (key_…)".into())
}
