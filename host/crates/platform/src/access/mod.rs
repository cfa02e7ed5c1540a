//! Credentials: API keys and web-app bearer tokens.

pub mod api_keys;
pub mod audit;
pub mod credentials;
pub mod issuer;
pub mod jwt;
pub mod passkeys;
pub mod rate_limit;
pub mod sessions;
pub mod single_sign_on;
pub mod users;
pub mod windows;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jsonwebtoken::Algorithm;
use serde::{Deserialize, Serialize};

use crate::access::issuer::TokenIssuer;
use crate::access::jwt::ExpiringClaims;
use crate::access::rate_limit::RateLimits;
use crate::access::windows::{AcceptedCredentials, LocalWindows};
use crate::{Caller, Core, ServiceError};
use holdfast_base::fair_queue::{FairQueue, QueueCapacity, QueueTurn, WorkOwner};
use holdfast_base::keys::Key;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{KeyId, OrgId, TokenId, UserId};
use holdfast_domain::organization::{ApiKeyRecord, Permission, Role, Scope};
use holdfast_domain::priority::PriorityClass;
use holdfast_domain::token::{ApiKey, SecretHash};
use holdfast_domain::user::{IssuerIdentity, User, UserStatus};
use holdfast_store::{STRANGERS, api_keys as key_rows, tokens, users as user_rows};

/// Token keys, and in-memory state of recently used credentials.
pub struct AccessState {
    /// One key per readable generation; the first one signs.
    pub bearer_keys: Vec<Key>,
    pub embed_keys: Vec<Key>,
    pub builder_keys: Vec<Key>,
    pub issuer: Option<TokenIssuer>,
    pub rate_limits: RateLimits,
    pub key_usage: KeyUsage,
    pub known_keys: KnownKeys,
    /// Request counts per link, token and address in the last minute.
    pub windows: LocalWindows,
    /// Credentials that this node accepted lately.
    pub accepted: AcceptedCredentials,
    /// Turns of networks at looking up credentials that this node does not know.
    pub strangers: FairQueue,
}

/// Look-ups of credentials that this node does not know. One network uses all turns only while no
/// other waits.
pub const LOOKUPS_OF_STRANGERS: QueueCapacity = QueueCapacity {
    units: STRANGERS as usize,
    of_organization: 1,
    // A network's first requests after a start wait here too, as many as its programs send at once.
    waiting: 1024,
    waiting_of_organization: 512,
    waiting_of_item: 512,
};

/// Turn of a network at looking up a credential; dropping it ends the turn.
pub struct StrangerTurn {
    _turn: QueueTurn,
}

impl AccessState {
    /// Waits for the turn of a network.
    ///
    /// # Errors
    /// Too many look-ups wait.
    pub async fn stranger_turn(&self, network: &str) -> Result<StrangerTurn, ServiceError> {
        let owner = WorkOwner::of_network(network);
        let turn = self.strangers.turn(&owner, PriorityClass::Request, 1);
        let turn = turn.await.ok_or(ServiceError::Busy)?;
        Ok(StrangerTurn { _turn: turn })
    }
}

/// `aud` of bearer tokens, so that no token of another purpose is accepted as one.
const AUDIENCE: &str = "holdfast web app";
/// Context of the sealed credential in a token.
const BEGUN: &str = "credential of a token";
/// Clock skew tolerated on expiry.
const LEEWAY: Duration = Duration::from_secs(jwt::LEEWAY_SECONDS.unsigned_abs());
/// Time for which a revocation outlives its token, because nodes' clocks may differ.
const KEPT_BEHIND_ITS_END: Duration = Duration::from_secs(3600);

/// Returns the key's record; none if the key is unknown or deactivated.
pub async fn api_key(
    core: &Core,
    access: &AccessState,
    text: &str,
) -> Result<Option<Arc<ApiKeyRecord>>, ServiceError> {
    let Some(key) = ApiKey::parse(text) else {
        return Ok(None);
    };

    let mut connection = core.store.read().await?;
    let hash = key.hash();
    let record = key_rows::by_hash(&mut connection, &hash).await?;
    let record = record.filter(|record| record.active).map(Arc::new);

    // Without a record, this removes a deactivated key from the cache.
    access.known_keys.remember(&hash, record.as_ref());
    if let Some(record) = &record {
        note_use(core, access, record);
    }

    Ok(record)
}

/// Returns the cached record of a key. The statement that reads the requested data must confirm it,
/// because the key may have changed since.
pub fn remembered_key(access: &AccessState, text: &str) -> Option<Arc<ApiKeyRecord>> {
    access.known_keys.get(&ApiKey::parse(text)?.hash())
}

/// Records a key's use in memory, to be written later.
pub fn note_use(core: &Core, access: &AccessState, key: &ApiKeyRecord) {
    access.key_usage.note(&key.id, core.clock.now());
}

/// Cache of API key records.
#[derive(Default)]
pub struct KnownKeys {
    by_hash: Mutex<HashMap<SecretHash, Arc<ApiKeyRecord>>>,
}

/// Cache capacity. A full cache is cleared as a whole.
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

/// Last use of each key, written in batches and not with each request.
#[derive(Default)]
pub struct KeyUsage {
    seen: Mutex<BTreeMap<KeyId, Timestamp>>,
}

impl KeyUsage {
    fn note(&self, key: &KeyId, at: Timestamp) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.get_mut(key) {
            // Requests end in any order, and an older time must not win.
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

/// Writes the last use of keys. On failure, the times stay in memory for the next run.
pub async fn flush_key_usage(core: &Core, access: &AccessState) -> Result<(), ServiceError> {
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

/// Writes in id order, so that two nodes cannot deadlock.
async fn write_key_usage(
    core: &Core,
    seen: &BTreeMap<KeyId, Timestamp>,
) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    for (key, at) in seen {
        key_rows::touch(&mut tx, key, *at).await?;
    }
    Ok(tx.commit().await?)
}

impl From<&ApiKeyRecord> for Caller {
    fn from(key: &ApiKeyRecord) -> Self {
        Self {
            org: key.org.clone(),
            actor: format!("key:{}", key.id),
            email: key.owner_email.clone(),
            token: None,
            role: None,
        }
    }
}

/// Web-app user, as stated by a valid bearer token.
#[derive(Clone, Debug)]
pub struct WebUser {
    pub org: OrgId,
    pub email: String,
    pub role: Role,
    /// Id of the token, for tokens that this service issued; none for an issuer's.
    pub token: Option<TokenId>,
    /// Account at an issuer; none for a token of this service.
    pub identity: Option<IssuerIdentity>,
}

impl From<&WebUser> for Caller {
    fn from(user: &WebUser) -> Self {
        Self {
            org: user.org.clone(),
            actor: format!("user:{}", user.email),
            email: Some(user.email.clone()),
            token: user.token.clone(),
            role: Some(user.role),
        }
    }
}

/// Claims of the service's own bearer tokens.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct BearerClaims {
    /// Id for revocation. Tokens issued before release 0.2 have none.
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

impl ExpiringClaims for BearerClaims {
    fn exp(&self) -> i64 {
        self.exp
    }
}

/// Issued bearer token, with the attributes that are recorded.
pub struct IssuedToken {
    pub id: TokenId,
    pub text: String,
    pub expires_at: Timestamp,
}

/// Issues a bearer token for a web-app user (HS256).
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
    let claims = BearerClaims {
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

/// Returns organization, id and expiry of a valid token that this service issued.
pub fn own_token(keys: &[Key], token: &str, now: Timestamp) -> Option<(OrgId, TokenId, Timestamp)> {
    let claims: BearerClaims = jwt::read(keys, AUDIENCE, token, now)?;
    let expires_at = Timestamp::from_millis(claims.exp.saturating_mul(1000));
    Some((claims.org_id, claims.jti?, expires_at))
}

/// Returns the user of a valid bearer token, issued by this service or by the OpenID Connect
/// issuer.
///
/// The token's algorithm selects only the verifier. The service's secret is used with HS256 and
/// nothing else, the issuer's keys with RS256 and ES256, so that neither can stand in for the
/// other.
pub async fn bearer(
    core: &Core,
    access: &AccessState,
    token: &str,
) -> Result<Option<WebUser>, ServiceError> {
    let Ok(header) = jsonwebtoken::decode_header(token) else {
        // Unreadable tokens and invalid ones get the same answer.
        return Ok(None);
    };

    let user = match (header.alg, &access.issuer) {
        (Algorithm::HS256, _) => own(core, access, token).await?,
        (Algorithm::RS256 | Algorithm::ES256, Some(issuer)) => {
            let now = core.clock.now().as_seconds();
            issuer.user(token, &header, now).await
        }
        _ => None,
    };
    let Some(user) = user else {
        return Ok(None);
    };

    // The organization's record of its user takes precedence over an older token.
    let mut connection = core.store.read().await?;

    // An account at an issuer stays the same user under another address.
    let bound = match &user.identity {
        Some(identity) => user_rows::by_identity(&mut connection, &user.org, identity).await?,
        None => None,
    };
    let known = match bound {
        Some(bound) => Some(bound),
        None => {
            let email = users::address(&user.email);
            user_rows::by_address(&mut connection, &user.org, &email).await?
        }
    };

    drop(connection);
    let Some(known) = known else {
        return Ok(Some(user));
    };

    // Or the address belongs to another person at the issuer now.
    if known.status == UserStatus::Ended || is_other_account(&known, &user) {
        return Ok(None);
    }
    if let (None, Some(identity)) = (&known.identity, &user.identity)
        && !users::bind(core, &known, identity).await?
    {
        return Ok(None);
    }

    Ok(Some(WebUser {
        role: known.role,
        email: known.email,
        ..user
    }))
}

/// Credential with which a token or a stream was begun. It is asked for at each use: access ends when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginningCredential {
    /// Actor of the caller.
    by: String,
    /// Bearer token of the service, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<TokenId>,
}

impl From<&Caller> for BeginningCredential {
    fn from(caller: &Caller) -> Self {
        Self {
            by: caller.actor.clone(),
            token: caller.token.clone(),
        }
    }
}

impl BeginningCredential {
    /// Returns the credential of a caller sealed, for a token: who holds the token need not know it.
    pub fn sealed(core: &Core, caller: &Caller) -> Option<String> {
        let credential = serde_json::to_string(&Self::from(caller)).ok()?;
        Some(core.cipher.encrypt(&credential, BEGUN))
    }

    /// Whether a sealed credential is in force. Tokens of earlier releases have none.
    pub async fn is_sealed_in_force(
        core: &Core,
        org: &OrgId,
        sealed: Option<&str>,
    ) -> Result<bool, ServiceError> {
        let Some(sealed) = sealed else {
            return Ok(true);
        };

        let opened = core.cipher.open(sealed, BEGUN);
        // A credential that cannot be opened may have been revoked, so the token does not count.
        let opened: Option<Self> = opened.and_then(|text| serde_json::from_str(&text).ok());
        match opened {
            Some(credential) => credential.is_in_force(core, org).await,
            None => Ok(false),
        }
    }

    /// Whether the key is active, the access of the user has not ended, and the bearer token was not revoked.
    pub async fn is_in_force(&self, core: &Core, org: &OrgId) -> Result<bool, ServiceError> {
        let mut connection = core.store.read().await?;
        if let Some(token) = &self.token
            && tokens::is_revoked(&mut connection, org, token).await?
        {
            return Ok(false);
        }
        if let Some(id) = self.by.strip_prefix("key:").and_then(KeyId::parse) {
            let key = key_rows::by_id(&mut connection, &id).await?;
            return Ok(key.is_some_and(|key| key.active && key.org == *org));
        }

        if let Some(email) = self.by.strip_prefix("user:") {
            let email = users::address(email);
            // Users of the operator's issuer can be without a row here.
            let user = user_rows::by_address(&mut connection, org, &email).await?;
            return Ok(user.is_none_or(|user| user.status != UserStatus::Ended));
        }

        // Other actors, such as the operator, have no credential that could end.
        Ok(true)
    }
}

/// Whether the key or the user who planned a sending may still send.
pub async fn may_still_send(core: &Core, org: &OrgId, actor: &str) -> Result<bool, ServiceError> {
    let mut connection = core.store.read().await?;
    if let Some(id) = actor.strip_prefix("key:").and_then(KeyId::parse) {
        let key = key_rows::by_id(&mut connection, &id).await?;
        let key = key.filter(|key| key.active && key.org == *org);
        return Ok(key.is_some_and(|key| key.scopes.contains(&Scope::EnvelopesWrite)));
    }

    if let Some(email) = actor.strip_prefix("user:") {
        let email = users::address(email);
        // Users of the operator's issuer can be without a row here.
        let user = user_rows::by_address(&mut connection, org, &email).await?;
        let may = |user: User| user.status != UserStatus::Ended && user.role.may(Permission::Send);
        return Ok(user.is_none_or(may));
    }

    Ok(true)
}

/// Whether a token is of another account at the issuer than the known user's.
fn is_other_account(known: &User, user: &WebUser) -> bool {
    let (Some(known), Some(user)) = (&known.identity, &user.identity) else {
        return false;
    };
    // A subject is unique at its issuer only (OpenID Connect Core 1.0, section 2).
    known.issuer == user.issuer && known.subject != user.subject
}

/// Validates a token of this service. A lowered `max_token_ttl` also applies to tokens that were
/// issued before.
async fn own(
    core: &Core,
    access: &AccessState,
    token: &str,
) -> Result<Option<WebUser>, ServiceError> {
    let now = core.clock.now();
    let Some(claims) = jwt::read::<BearerClaims>(&access.bearer_keys, AUDIENCE, token, now) else {
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

    Ok(Some(WebUser {
        org: claims.org_id,
        email: claims.email,
        role: claims.role,
        token: claims.jti,
        identity: None,
    }))
}

/// Deletes revocations of tokens that have expired by every node's clock.
pub async fn forget_revoked(core: &Core) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    tokens::forget(&mut tx, core.clock.now() - KEPT_BEHIND_ITS_END).await?;
    Ok(tx.commit().await?)
}
