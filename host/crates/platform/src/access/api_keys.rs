//! API keys of an organization, for its operator and its own users.

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::credentials;
use crate::idempotency::ResponseRecorder;
use crate::{Caller, Core, ServiceError};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{KeyId, OrgId};
use holdfast_domain::organization::{ApiKeyRecord, KeyMode, Scope};
use holdfast_domain::token::ApiKey;
use holdfast_store::{StoreError, WriteTransaction, api_keys, organizations};

/// Default rate limit of a key in requests per minute, and the highest that an organization sets itself.
pub const DEFAULT_RPM: i64 = 100;
/// Most active keys of an organization that its users create.
const MOST: usize = 100;

/// API key, without the key itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "key_id": "key_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "Back office", "scopes": ["envelopes:read", "envelopes:write"],
    "rate_limit_rpm": 100, "owner_email": "ada@acme.example", "active": true, "mode": "live",
    "last_used_at": "2026-11-21T09:41:07.250Z",
}]))]
pub struct ApiKeyView {
    pub key_id: KeyId,
    pub name: Option<String>,
    pub scopes: Vec<Scope>,
    /// Requests per minute.
    pub rate_limit_rpm: i64,
    /// Custodian of envelopes that are created with the key.
    pub owner_email: Option<String>,
    /// Requests with a deactivated key get 401.
    pub active: bool,
    /// `test` for a key that begins with `lk_test_` and reaches test data only.
    pub mode: KeyMode,
    pub last_used_at: Option<Timestamp>,
}

impl From<&ApiKeyRecord> for ApiKeyView {
    fn from(record: &ApiKeyRecord) -> Self {
        Self {
            key_id: record.id.clone(),
            name: record.name.clone(),
            scopes: record.scopes.clone(),
            rate_limit_rpm: record.rate_limit_rpm,
            owner_email: record.owner_email.clone(),
            active: record.active,
            mode: record.mode(),
            last_used_at: record.last_used_at,
        }
    }
}

/// API key that was created or replaced now.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "key_id": "key_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "Back office", "scopes": ["envelopes:read"],
    "rate_limit_rpm": 100, "owner_email": null, "active": true, "mode": "test", "last_used_at": null,
    "api_key": "lk_test_…",
}]))]
pub struct IssuedKey {
    #[serde(flatten)]
    pub key: ApiKeyView,
    /// The key. It is shown this once.
    pub api_key: String,
}

/// Body of `POST /api-keys`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "name": "Back office", "scopes": ["envelopes:read", "envelopes:write"], "owner_email": "ada@acme.example",
}]))]
pub struct NewKey {
    #[schemars(length(min = 1, max = 100))]
    pub name: Option<String>,
    #[schemars(length(min = 1, max = 20))]
    pub scopes: Vec<Scope>,
    /// Requests per minute; 100 when absent. The operator sets more.
    #[schemars(range(min = 1, max = 100))]
    pub rate_limit_rpm: Option<i64>,
    /// Custodian of envelopes that are created with the key.
    #[schemars(email)]
    pub owner_email: Option<String>,
    /// `live` when absent.
    pub mode: Option<KeyMode>,
}

/// Body of `PATCH /api-keys/{id}`: absent members stay unchanged.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "scopes": ["envelopes:read"] }]))]
pub struct KeyChange {
    #[schemars(length(min = 1, max = 20))]
    pub scopes: Option<Vec<Scope>>,
    /// Requests per minute. The operator sets more.
    #[schemars(range(min = 1, max = 100))]
    pub rate_limit_rpm: Option<i64>,
}

/// Returns a key of the caller's organization. Locks the organization, so that no other change comes in between.
async fn locked(
    tx: &mut WriteTransaction,
    caller: &Caller,
    id: &str,
) -> Result<ApiKeyRecord, ServiceError> {
    organizations::lock(tx, &caller.org).await?;
    let found = match KeyId::parse(id) {
        Some(id) => api_keys::by_id(tx, &id).await?,
        None => None,
    };
    // The keys for test data belong to the test organization of the same caller.
    found
        .filter(|record| [&record.org, &record.org.live()].contains(&&caller.org))
        .ok_or(ServiceError::NotFound("API key"))
}

fn still_active(record: &ApiKeyRecord) -> Result<(), ServiceError> {
    if record.active {
        Ok(())
    } else {
        Err(ServiceError::Conflict("The key is deactivated".into()))
    }
}

/// Lists the keys of an organization.
pub async fn list(core: &Core, org: &OrgId) -> Result<Vec<ApiKeyView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let records = of_organization(&mut connection, org).await?;
    Ok(records.iter().map(ApiKeyView::from).collect())
}

/// Returns the keys of an organization, with those for its test data.
pub async fn of_organization(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<Vec<ApiKeyRecord>, StoreError> {
    let mut records = api_keys::list(connection, org).await?;
    if !org.is_test() {
        records.extend(api_keys::list(connection, &org.test()).await?);
    }
    Ok(records)
}

/// Creates a key for a person of the organization.
pub async fn create(
    core: &Core,
    caller: &Caller,
    new: NewKey,
    answer: &ResponseRecorder<IssuedKey>,
) -> Result<IssuedKey, ServiceError> {
    let (org, now) = (&caller.org, core.clock.now());
    let record = ApiKeyRecord {
        id: KeyId::new(),
        org: match new.mode.unwrap_or(KeyMode::Live) {
            KeyMode::Live => org.clone(),
            KeyMode::Test => org.test(),
        },
        name: new.name,
        scopes: new.scopes,
        rate_limit_rpm: new.rate_limit_rpm.unwrap_or(DEFAULT_RPM),
        owner_email: new.owner_email,
        active: true,
        last_used_at: None,
        revision: 0,
    };

    let mut tx = core.store.begin().await?;

    // The lock serializes concurrent creates, so that the limit holds.
    organizations::lock(&mut tx, org).await?;
    let keys = of_organization(&mut tx, org).await?;
    if keys.iter().filter(|key| key.active).count() >= MOST {
        return Err(ServiceError::Conflict(format!(
            "The organization has {MOST} active keys; deactivate one"
        )));
    }

    let issued = issue(&mut tx, &record, &caller.actor, now).await?;
    answer.commit(tx, &issued).await?;
    Ok(issued)
}

/// Changes scopes or rate limit of a key; the key stays the same.
pub async fn change(
    core: &Core,
    caller: &Caller,
    id: &str,
    change: KeyChange,
) -> Result<ApiKeyView, ServiceError> {
    let mut tx = core.store.begin().await?;
    let record = locked(&mut tx, caller, id).await?;
    still_active(&record)?;
    let record = ApiKeyRecord {
        scopes: change.scopes.unwrap_or(record.scopes),
        rate_limit_rpm: change.rate_limit_rpm.unwrap_or(record.rate_limit_rpm),
        ..record
    };
    update(&mut tx, &record, &caller.actor, core.clock.now()).await?;

    tx.commit().await?;
    Ok(ApiKeyView::from(&record))
}

/// Replaces a key: the old one stops working at once.
pub async fn rotate(
    core: &Core,
    caller: &Caller,
    id: &str,
    answer: &ResponseRecorder<IssuedKey>,
) -> Result<IssuedKey, ServiceError> {
    let mut tx = core.store.begin().await?;
    let record = locked(&mut tx, caller, id).await?;
    still_active(&record)?;
    let actor = &caller.actor;
    let issued = replace(&mut tx, &record, actor, core.clock.now()).await?;
    answer.commit(tx, &issued).await?;
    Ok(issued)
}

/// Deactivates a key for good: the next request with it is refused.
pub async fn deactivate(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<ApiKeyView, ServiceError> {
    let mut tx = core.store.begin().await?;
    let record = locked(&mut tx, caller, id).await?;
    let record = end(&mut tx, record, &caller.actor, core.clock.now()).await?;
    tx.commit().await?;
    Ok(ApiKeyView::from(&record))
}

/// Stores a new key, with its entry in the credential ledger.
pub async fn issue(
    tx: &mut WriteTransaction,
    record: &ApiKeyRecord,
    actor: &str,
    now: Timestamp,
) -> Result<IssuedKey, StoreError> {
    // Test data exists from the first key for it.
    if record.org.is_test() {
        organizations::open_test(tx, &record.org).await?;
    }
    let key = ApiKey::generate(&record.org);
    api_keys::insert(tx, record, &key.hash(), now).await?;
    note(tx, record, actor, "key.created", now).await?;
    Ok(issued(record, &key))
}

/// Replaces the secret of a key, with an entry in the credential ledger.
pub async fn replace(
    tx: &mut WriteTransaction,
    record: &ApiKeyRecord,
    actor: &str,
    now: Timestamp,
) -> Result<IssuedKey, StoreError> {
    let key = ApiKey::generate(&record.org);
    api_keys::replace_hash(tx, &record.id, &key.hash()).await?;
    note(tx, record, actor, "key.rotated", now).await?;
    Ok(issued(record, &key))
}

/// Stores scopes and rate limit of a key, with an entry in the credential ledger.
pub async fn update(
    tx: &mut WriteTransaction,
    record: &ApiKeyRecord,
    actor: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    api_keys::update(tx, &record.id, &record.scopes, record.rate_limit_rpm).await?;
    note(tx, record, actor, "key.updated", now).await
}

/// Deactivates a key, with an entry in the credential ledger.
pub async fn end(
    tx: &mut WriteTransaction,
    record: ApiKeyRecord,
    actor: &str,
    now: Timestamp,
) -> Result<ApiKeyRecord, StoreError> {
    api_keys::deactivate(tx, &record.id).await?;
    let record = ApiKeyRecord {
        active: false,
        ..record
    };
    note(tx, &record, actor, "key.deactivated", now).await?;
    Ok(record)
}

fn issued(record: &ApiKeyRecord, key: &ApiKey) -> IssuedKey {
    IssuedKey {
        key: ApiKeyView::from(record),
        api_key: key.reveal().into(),
    }
}

/// Records an action on a key, with the key's resulting permissions.
async fn note(
    tx: &mut WriteTransaction,
    record: &ApiKeyRecord,
    actor: &str,
    action: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut details = json!(ApiKeyView::from(record));
    // The time of use changes with each request. The entry is about permissions.
    if let Value::Object(members) = &mut details {
        members.remove("last_used_at");
    }
    // Those who watch over the organization's keys see all of them.
    credentials::record_by(tx, Some(&record.org.live()), actor, action, details, now).await
}
