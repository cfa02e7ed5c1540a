//! Credentials: API keys and web-app bearer tokens.

pub mod credentials;
pub mod issuer;
pub mod jwt;
pub mod rate_limit;
pub mod windows;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jsonwebtoken::Algorithm;
use serde::{Deserialize, Serialize};

use crate::domain::clock::Timestamp;
use crate::domain::id::{KeyId, OrgId, TokenId, UserId};
use crate::domain::organization::{ApiKeyRecord, Role};
use crate::domain::token::{ApiKey, SecretHash};
use crate::keys::Key;
use crate::service::access::issuer::Issuer;
use crate::service::access::jwt::Expiring;
use crate::service::access::rate_limit::RateLimits;
use crate::service::access::windows::Windows;
use crate::service::{Caller, Core, ServiceError};
use crate::store::{api_keys, tokens};

/// Keys of tokens, and what is known of credentials that were used lately.
pub struct Access {
    /// Of each generation that can be read; the first signs.
    pub(crate) bearer_keys: Vec<Key>,
    pub(crate) embed_keys: Vec<Key>,
    pub(crate) builder_keys: Vec<Key>,
    pub(crate) issuer: Option<Issuer>,
    pub(crate) rate_limits: RateLimits,
    pub(crate) key_usage: KeyUsage,
    pub(crate) known_keys: KnownKeys,
    /// Requests of links, tokens and addresses in the last minute.
    pub(crate) windows: Windows,
}

/// `aud` of bearer tokens, so that no other token of ours passes for one.
const AUDIENCE: &str = "holdfast web app";
/// Clock skew tolerated on expiry.
const LEEWAY: Duration = Duration::from_secs(jwt::LEEWAY_SECONDS.unsigned_abs());
/// How long a revocation outlives its token: nodes' clocks may differ.
const KEPT_BEHIND_ITS_END: Duration = Duration::from_secs(3600);

/// The key's record; none for a key that is unknown or deactivated.
pub async fn api_key(
    core: &Core,
    access: &Access,
    text: &str,
) -> Result<Option<Arc<ApiKeyRecord>>, ServiceError> {
    let Some(key) = ApiKey::parse(text) else {
        return Ok(None);
    };
    let mut connection = core.store.read().await?;
    let hash = key.hash();
    let record = api_keys::by_hash(&mut connection, &hash).await?;
    let record = record.filter(|record| record.active).map(Arc::new);
    access.known_keys.remember(&hash, record.as_ref());
    if let Some(record) = &record {
        note_use(core, access, record);
    }
    Ok(record)
}

/// The key's record as an earlier request found it. Whoever uses it has to have
/// it confirmed by the statement that reads what was asked for.
pub fn remembered_key(access: &Access, text: &str) -> Option<Arc<ApiKeyRecord>> {
    access.known_keys.get(&ApiKey::parse(text)?.hash())
}

/// Notes that a key was used, to be written later.
pub fn note_use(core: &Core, access: &Access, key: &ApiKeyRecord) {
    access.key_usage.note(&key.id, core.clock.now());
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
pub async fn flush_key_usage(core: &Core, access: &Access) -> Result<(), ServiceError> {
    let seen = access.key_usage.take();
    if seen.is_empty() {
        return Ok(());
    }
    let written = write_key_usage(core, &seen).await;
    if written.is_err() {
        for (key, at) in &seen {
            access.key_usage.note(key, *at);
        }
    }
    written
}

/// In the order of the ids, so that two nodes never wait for each other.
async fn write_key_usage(
    core: &Core,
    seen: &BTreeMap<KeyId, Timestamp>,
) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
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
    /// Id of a token of ours; none for an issuer's.
    pub token: Option<TokenId>,
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
    /// By which it is revoked. Tokens of releases before 0.2 have none.
    #[serde(default)]
    jti: Option<TokenId>,
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

/// A bearer token, with what is recorded of it.
pub struct IssuedToken {
    pub id: TokenId,
    pub text: String,
    pub expires_at: Timestamp,
}

/// A bearer token for a web-app user (HS256).
pub fn issue_bearer(
    keys: &[Key],
    org: &OrgId,
    email: &str,
    role: Role,
    ttl: Duration,
    now: Timestamp,
) -> Result<IssuedToken, ServiceError> {
    let expires_at = now + ttl;
    let id = TokenId::new();
    let claims = Claims {
        jti: Some(id.clone()),
        sub: UserId::new(),
        org_id: org.clone(),
        email: email.into(),
        role,
        aud: AUDIENCE.into(),
        iat: now.as_seconds(),
        exp: expires_at.as_seconds(),
    };
    let text = jwt::issue(keys, &claims)?;
    Ok(IssuedToken {
        id,
        text,
        expires_at,
    })
}

/// The organization, id and end of a token of ours that has not ended.
pub fn own_token(keys: &[Key], token: &str, now: Timestamp) -> Option<(OrgId, TokenId, Timestamp)> {
    let claims: Claims = jwt::read(keys, AUDIENCE, token, now)?;
    let expires_at = Timestamp::from_millis(claims.exp.saturating_mul(1000));
    Some((claims.org_id, claims.jti?, expires_at))
}

/// The user of a valid bearer token: ours, or the issuer's.
///
/// The token's algorithm only says who must have signed it. Our secret is used
/// with HS256 and nothing else, the issuer's keys with RS256 and ES256.
pub async fn bearer(
    core: &Core,
    access: &Access,
    token: &str,
) -> Result<Option<User>, ServiceError> {
    let Ok(header) = jsonwebtoken::decode_header(token) else {
        return Ok(None);
    };
    match (header.alg, &access.issuer) {
        (Algorithm::HS256, _) => own(core, access, token).await,
        (Algorithm::RS256 | Algorithm::ES256, Some(issuer)) => {
            let now = core.clock.now().as_seconds();
            Ok(issuer.user(token, &header, now).await)
        }
        _ => Ok(None),
    }
}

/// A token that was issued for longer than tokens may live now ends with that time.
async fn own(core: &Core, access: &Access, token: &str) -> Result<Option<User>, ServiceError> {
    let now = core.clock.now();
    let Some(claims) = jwt::read::<Claims>(&access.bearer_keys, AUDIENCE, token, now) else {
        return Ok(None);
    };
    let issued_at = Timestamp::from_millis(claims.iat.saturating_mul(1000));
    if issued_at + core.config.auth.max_token_ttl + LEEWAY < now {
        return Ok(None);
    }
    if let Some(id) = &claims.jti {
        let mut connection = core.store.read().await?;
        if tokens::is_revoked(&mut connection, &claims.org_id, id).await? {
            return Ok(None);
        }
    }
    Ok(Some(User {
        org: claims.org_id,
        email: claims.email,
        role: claims.role,
        token: claims.jti,
    }))
}

/// Forgets revoked tokens once no clock takes them any more.
pub async fn forget_revoked(core: &Core) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    tokens::forget(&mut tx, core.clock.now() - KEPT_BEHIND_ITS_END).await?;
    Ok(tx.commit().await?)
}
