//! Bearer tokens of an OpenID Connect issuer: fetches and refreshes its keys and validates its
//! tokens (OpenID Connect Discovery 1.0, RFC 7517).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{DecodingKey, Header, Validation};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::RwLock;

use crate::config::OidcSettings;
use crate::domain::id::OrgId;
use crate::domain::organization::Role;
use crate::service::access::WebUser;
use crate::service::access::jwt::LEEWAY_SECONDS;

/// Maximum age of the cached keys.
const KEYS_LIFE: Duration = Duration::from_secs(3600);
/// Minimum interval of requests to the issuer. An unknown key id triggers one.
const KEYS_PAUSE: Duration = Duration::from_secs(1);
/// Timeout and size limit of the issuer's answers.
const ISSUER_TIMEOUT: Duration = Duration::from_secs(5);
const ISSUER_BYTES: usize = 1024 * 1024;

/// OpenID Connect issuer with its cached keys.
pub struct TokenIssuer {
    settings: OidcSettings,
    http: reqwest::Client,
    keys: RwLock<IssuerKeys>,
    /// Held while asking the issuer, so that one request at a time does; the others use the cached
    /// keys.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Clone, Default)]
struct IssuerKeys {
    set: Option<Arc<JwkSet>>,
    /// Time of the last successful fetch.
    fetched: Option<Instant>,
    /// Time of the last fetch, successful or not.
    asked: Option<Instant>,
}

/// Reason why an issuer's keys could not be fetched.
#[derive(Debug, thiserror::Error)]
enum IssuerError {
    #[error("request: {0}")]
    Http(#[from] reqwest::Error),
    #[error("answer: {0}")]
    Json(#[from] serde_json::Error),
    #[error("answer is larger than {ISSUER_BYTES} bytes")]
    TooLarge,
    #[error("the discovery document is of another issuer")]
    OtherIssuer,
}

#[derive(Deserialize)]
struct DiscoveryDocument {
    issuer: String,
    jwks_uri: String,
}

impl TokenIssuer {
    /// Creates an issuer without fetching its keys.
    pub fn new(settings: OidcSettings, allow_insecure: bool) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .https_only(!allow_insecure)
            .timeout(ISSUER_TIMEOUT)
            .build()?;
        Ok(Self {
            settings,
            http,
            keys: RwLock::default(),
            asking: tokio::sync::Mutex::new(()),
        })
    }

    /// Validates one of the issuer's tokens at `now` (Unix seconds) and returns its user.
    pub async fn user(&self, token: &str, header: &Header, now: i64) -> Option<WebUser> {
        let key = self.key(header).await?;
        let mut validation = Validation::new(header.alg);
        validation.set_audience(&[&self.settings.audience]);
        validation.set_issuer(&[self.issuer(), &format!("{}/", self.issuer())]);
        let required = ["exp", "aud", "iss"].map(str::to_owned);
        validation.required_spec_claims = HashSet::from(required);
        // `exp` and `nbf` are checked below, against the clock that the service reads.
        validation.validate_exp = false;
        let key = DecodingKey::from_jwk(&key).ok()?;
        let claims = jsonwebtoken::decode::<Map<String, Value>>(token, &key, &validation)
            .ok()?
            .claims;
        let time = |name: &str| claims.get(name).and_then(Value::as_f64);
        let now = now as f64;
        let leeway = LEEWAY_SECONDS as f64;
        if time("exp")? + leeway <= now || time("nbf").is_some_and(|from| from > now + leeway) {
            return None;
        }
        let text = |name: &str| claims.get(name)?.as_str();
        Some(WebUser {
            org: OrgId::parse(text(&self.settings.org_claim)?)?,
            email: text(&self.settings.email_claim)?.to_owned(),
            role: Role::parse(text(&self.settings.role_claim)?)?,
            token: None,
        })
    }

    fn issuer(&self) -> &str {
        self.settings.issuer.as_str().trim_end_matches('/')
    }

    /// Returns the key that a token names: from the cache, or from the issuer if the key is unknown
    /// or the cache is stale. While the issuer cannot be reached, cached keys stay valid.
    async fn key(&self, header: &Header) -> Option<Jwk> {
        let known = self.keys.read().await.clone();
        let found = known.set.as_ref().and_then(|set| find(set, header));
        let younger = |at: Option<Instant>, than| at.is_some_and(|at| at.elapsed() < than);
        if (found.is_some() && younger(known.fetched, KEYS_LIFE))
            || younger(known.asked, KEYS_PAUSE)
        {
            return found;
        }
        let turn = match &found {
            Some(_) => match self.asking.try_lock() {
                Ok(turn) => turn,
                // Another request is refreshing the keys. The cached key is good enough meanwhile.
                Err(_) => return found,
            },
            None => self.asking.lock().await,
        };
        // Another request may have refreshed the keys while this one waited.
        if !younger(self.keys.read().await.asked, KEYS_PAUSE) {
            let answer = self.fetch().await;
            let mut keys = self.keys.write().await;
            keys.asked = Some(Instant::now());
            match answer {
                Ok(set) => {
                    keys.set = Some(Arc::new(set));
                    keys.fetched = keys.asked;
                }
                Err(error) => tracing::warn!(%error, "issuer keys could not be fetched"),
            }
        }
        drop(turn);
        let keys = self.keys.read().await;
        keys.set.as_ref().and_then(|set| find(set, header))
    }

    async fn fetch(&self) -> Result<JwkSet, IssuerError> {
        let url = format!("{}/.well-known/openid-configuration", self.issuer());
        let discovery: DiscoveryDocument = serde_json::from_slice(&self.get(&url).await?)?;
        // Required by OpenID Connect Discovery 1.0, section 4.3.
        if discovery.issuer.trim_end_matches('/') != self.issuer() {
            return Err(IssuerError::OtherIssuer);
        }
        Ok(serde_json::from_slice(
            &self.get(&discovery.jwks_uri).await?,
        )?)
    }

    async fn get(&self, url: &str) -> Result<Vec<u8>, IssuerError> {
        let mut response = self.http.get(url).send().await?.error_for_status()?;
        let mut body = Vec::new();
        // Read in pieces, so that the limit holds without a Content-Length.
        while let Some(piece) = response.chunk().await? {
            if body.len() + piece.len() > ISSUER_BYTES {
                return Err(IssuerError::TooLarge);
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

/// Returns the key that a token names. A token without a key id is accepted only if the issuer has
/// exactly one key.
fn find(set: &JwkSet, header: &Header) -> Option<Jwk> {
    let key = match &header.kid {
        Some(kid) => set.find(kid),
        None => match set.keys.as_slice() {
            [only] => Some(only),
            _ => None,
        },
    };
    key.cloned()
}
