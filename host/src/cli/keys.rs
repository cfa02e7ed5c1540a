//! `holdfast key`.

use clap::Subcommand;
use serde_json::{Value, json};

use super::output::CommandOutput;
use super::{Failure, org_id, organizations};
use crate::config::Config;
use crate::domain::clock::Clock;
use crate::domain::id::{KeyId, OrgId};
use crate::domain::organization::{ApiKeyRecord, Scope};
use crate::domain::token::ApiKey;
use crate::service::access::credentials;
use crate::start;
use crate::store::{Store, StoreError, WriteTransaction, api_keys};

/// Default rate limit of a key in requests per minute.
const DEFAULT_RPM: i64 = 100;

#[derive(Subcommand)]
pub enum KeyCommand {
    /// Create a key. It is shown only once.
    Create {
        #[arg(long, value_parser = org_id)]
        org: OrgId,
        /// Scopes, separated by commas.
        #[arg(long, value_delimiter = ',', value_parser = scope, required = true)]
        scopes: Vec<Scope>,
        /// Rate limit in requests per minute.
        #[arg(long, value_parser = clap::value_parser!(i64).range(1..))]
        rpm: Option<i64>,
        #[arg(long)]
        name: Option<String>,
        /// E-mail address of the custodian of envelopes created with this key.
        #[arg(long)]
        owner_email: Option<String>,
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
        #[arg(long, value_delimiter = ',', value_parser = scope)]
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
    match command {
        KeyCommand::Create {
            org,
            scopes,
            rpm,
            name,
            owner_email,
        } => {
            organizations::existing(&store, &org).await?;
            let record = ApiKeyRecord {
                id: KeyId::new(),
                org,
                name,
                scopes,
                rate_limit_rpm: rpm.unwrap_or(DEFAULT_RPM),
                owner_email,
                active: true,
                last_used_at: None,
                revision: 0,
            };
            let key = ApiKey::generate();
            let mut tx = store.begin().await?;
            api_keys::insert(&mut tx, &record, &key.hash(), Clock::default().now()).await?;
            audit(&mut tx, &record, "key.created").await?;
            tx.commit().await?;
            show(output, &record, Some(&key));
        }
        KeyCommand::Rotate { key: id } => {
            let record = existing(&store, &id).await?;
            let key = ApiKey::generate();
            let mut tx = store.begin().await?;
            api_keys::replace_hash(&mut tx, &id, &key.hash()).await?;
            audit(&mut tx, &record, "key.rotated").await?;
            tx.commit().await?;
            show(output, &record, Some(&key));
        }
        KeyCommand::Update {
            key: id,
            scopes,
            rpm,
        } => {
            let mut record = existing(&store, &id).await?;
            record.scopes = scopes.unwrap_or(record.scopes);
            record.rate_limit_rpm = rpm.unwrap_or(record.rate_limit_rpm);
            let mut tx = store.begin().await?;
            api_keys::update(&mut tx, &id, &record.scopes, record.rate_limit_rpm).await?;
            audit(&mut tx, &record, "key.updated").await?;
            tx.commit().await?;
            show(output, &record, None);
        }
        KeyCommand::Deactivate { key: id } => {
            let mut record = existing(&store, &id).await?;
            let mut tx = store.begin().await?;
            api_keys::deactivate(&mut tx, &id).await?;
            record.active = false;
            audit(&mut tx, &record, "key.deactivated").await?;
            tx.commit().await?;
            show(output, &record, None);
        }
        KeyCommand::List { org } => {
            organizations::existing(&store, &org).await?;
            let mut connection = store.read().await?;
            let records = api_keys::list(&mut connection, &org).await?;
            let lines: Vec<String> = records.iter().map(line).collect();
            let views = records.iter().map(|record| view(record, None)).collect();
            output.one(&Value::Array(views), &lines.join("\n"));
        }
    }
    Ok(())
}

/// Records an action on a key, with the key's resulting permissions.
async fn audit(
    tx: &mut WriteTransaction,
    record: &ApiKeyRecord,
    action: &str,
) -> Result<(), StoreError> {
    let mut details = view(record, None);
    if let Value::Object(members) = &mut details {
        members.remove("org_id");
        members.remove("last_used_at");
    }
    credentials::record(
        tx,
        Some(&record.org),
        action,
        details,
        Clock::default().now(),
    )
    .await
}

async fn existing(store: &Store, id: &KeyId) -> Result<ApiKeyRecord, Failure> {
    let mut connection = store.read().await?;
    let found = api_keys::by_id(&mut connection, id).await?;
    found.ok_or_else(|| format!("there is no key {id}").into())
}

fn show(output: &CommandOutput, record: &ApiKeyRecord, key: Option<&ApiKey>) {
    let view = view(record, key);
    match key {
        Some(key) => {
            let note = format!("{}: this key is shown this once", record.id);
            output.with_note(&view, key.reveal(), &note);
        }
        None => output.one(&view, &line(record)),
    }
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

/// JSON view: `{key_id, api_key, scopes, rate_limit_rpm, …}`; `api_key` only for a new key.
fn view(record: &ApiKeyRecord, key: Option<&ApiKey>) -> Value {
    let mut view = json!({
        "key_id": record.id,
        "org_id": record.org,
        "name": record.name,
        "scopes": record.scopes,
        "rate_limit_rpm": record.rate_limit_rpm,
        "owner_email": record.owner_email,
        "active": record.active,
        "last_used_at": record.last_used_at,
    });
    if let (Value::Object(members), Some(key)) = (&mut view, key) {
        members.insert("api_key".into(), key.reveal().into());
    }
    view
}

fn scope(text: &str) -> Result<Scope, String> {
    Scope::parse(text.trim()).ok_or_else(|| {
        let known: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
        format!("unknown scope; known are {}", known.join(", "))
    })
}

fn key_id(text: &str) -> Result<KeyId, String> {
    KeyId::parse(text).ok_or_else(|| "not a key id (key_…)".into())
}
