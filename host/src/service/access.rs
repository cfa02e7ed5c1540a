//! Credentials: API keys and web-app bearer tokens.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jsonwebtoken::Algorithm;
use serde::{Deserialize, Serialize};

use super::jwt::{self, Expiring};
use super::{Caller, ServiceError};
use crate::app::App;
use crate::domain::clock::Timestamp;
use crate::domain::id::{KeyId, OrgId, UserId};
use crate::domain::organization::{ApiKeyRecord, Role};
use crate::domain::token::{ApiKey, SecretHash};
use crate::store::api_keys;

/// `aud` of bearer tokens, so that no other token of ours passes for one.
const AUDIENCE: &str = "holdfast web app";

/// The key's record; none for a key that is unknown or deactivated.
pub async fn api_key(app: &App, text: &str) -> Result<Option<Arc<ApiKeyRecord>>, ServiceError> {
    let Some(key) = ApiKey::parse(text) else {
        return Ok(None);
    };
    let mut connection = app.store.read().await?;
    let hash = key.hash();
    let record = api_keys::by_hash(&mut connection, &hash).await?;
    let record = record.filter(|record| record.active).map(Arc::new);
    app.known_keys.remember(&hash, record.as_ref());
    if let Some(record) = &record {
        note_use(app, record);
    }
    Ok(record)
}

/// The key's record as an earlier request found it. Whoever uses it has to have
/// it confirmed by the statement that reads what was asked for.
pub fn remembered_key(app: &App, text: &str) -> Option<Arc<ApiKeyRecord>> {
    app.known_keys.get(&ApiKey::parse(text)?.hash())
}

/// Notes that a key was used, to be written later.
pub fn note_use(app: &App, key: &ApiKeyRecord) {
    app.key_usage.note(&key.id, app.clock.now());
}

/// Records of keys that were used lately.
#[derive(Default)]
pub struct KnownKeys {
    by_hash: Mutex<HashMap<SecretHash, Arc<ApiKeyRecord>>>,
}

/// Keys remembered at once; past that all are forgotten.
const KNOWN_KEYS: usize = 10_000;

impl KnownKeys {
    fn get(&self, hash: &SecretHash) -> Option<Arc<ApiKeyRecord>> {
        let known = self.by_hash.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(hash).cloned()
    }

    fn remember(&self, hash: &SecretHash, record: Option<&Arc<ApiKeyRecord>>) {
        let mut known = self.by_hash.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_KEYS {
            known.clear();
        }
        match record {
            Some(record) => known.insert(hash.clone(), record.clone()),
            None => known.remove(hash),
        };
    }
}

/// When keys were used, to be written now and then and not with each request.
#[derive(Default)]
pub struct KeyUsage {
    seen: Mutex<BTreeMap<KeyId, Timestamp>>,
}

impl KeyUsage {
    fn note(&self, key: &KeyId, at: Timestamp) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.get_mut(key) {
            Some(last) => *last = at.max(*last),
            None => {
                seen.insert(key.clone(), at);
            }
        }
    }

    fn take(&self) -> BTreeMap<KeyId, Timestamp> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes when keys were last used; what cannot be written is kept for the next
/// time.
pub async fn flush_key_usage(app: &App) -> Result<(), ServiceError> {
    let seen = app.key_usage.take();
    if seen.is_empty() {
        return Ok(());
    }
    let written = write_key_usage(app, &seen).await;
    if written.is_err() {
        for (key, at) in &seen {
            app.key_usage.note(key, *at);
        }
    }
    written
}

/// In the order of the ids, so that two nodes never wait for each other.
async fn write_key_usage(app: &App, seen: &BTreeMap<KeyId, Timestamp>) -> Result<(), ServiceError> {
    let mut tx = app.store.begin().await?;
    for (key, at) in seen {
        api_keys::touch(&mut tx, key, *at).await?;
    }
    Ok(tx.commit().await?)
}

impl From<&ApiKeyRecord> for Caller {
    fn from(key: &ApiKeyRecord) -> Self {
        Self {
            org: key.org.clone(),
            actor: format!("key:{}", key.id),
            email: key.owner_email.clone(),
        }
    }
}

/// A web-app user, as a valid bearer token says.
#[derive(Clone, Debug)]
pub struct User {
    pub org: OrgId,
    pub email: String,
    pub role: Role,
}

impl From<&User> for Caller {
    fn from(user: &User) -> Self {
        Self {
            org: user.org.clone(),
            actor: format!("user:{}", user.email),
            email: Some(user.email.clone()),
        }
    }
}

/// What our own bearer tokens say.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Claims {
    sub: UserId,
    org_id: OrgId,
    email: String,
    role: Role,
    aud: String,
    iat: i64,
    exp: i64,
}

impl Expiring for Claims {
    fn exp(&self) -> i64 {
        self.exp
    }
}

/// A bearer token for a web-app user (HS256), and when it expires.
pub fn issue_bearer(
    key: &[u8; 32],
    org: &OrgId,
    email: &str,
    role: Role,
    ttl: Duration,
    now: Timestamp,
) -> Result<(String, Timestamp), ServiceError> {
    let expires_at = now + ttl;
    let claims = Claims {
        sub: UserId::new(),
        org_id: org.clone(),
        email: email.into(),
        role,
        aud: AUDIENCE.into(),
        iat: now.as_seconds(),
        exp: expires_at.as_seconds(),
    };
    let token = jwt::issue(key, &claims)?;
    Ok((token, expires_at))
}

/// The user of a valid bearer token: ours, or the issuer's.
///
/// The token's algorithm only says who must have signed it. Our secret is used
/// with HS256 and nothing else, the issuer's keys with RS256 and ES256.
pub async fn bearer(app: &App, token: &str) -> Option<User> {
    let header = jsonwebtoken::decode_header(token).ok()?;
    match (header.alg, &app.issuer) {
        (Algorithm::HS256, _) => own(app, token),
        (Algorithm::RS256 | Algorithm::ES256, Some(issuer)) => {
            let now = app.clock.now().as_seconds();
            issuer.user(token, &header, now).await
        }
        _ => None,
    }
}

fn own(app: &App, token: &str) -> Option<User> {
    let claims: Claims = jwt::read(&app.bearer_key, AUDIENCE, token, app.clock.now())?;
    Some(User {
        org: claims.org_id,
        email: claims.email,
        role: claims.role,
    })
}
