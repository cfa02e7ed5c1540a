//! Bearer tokens of an OpenID Connect issuer: its keys, fetched and renewed, and
//! what its tokens say (OpenID Connect Discovery 1.0, RFC 7517).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{DecodingKey, Header, Validation};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::RwLock;

use crate::config::Oidc;
use crate::domain::id::OrgId;
use crate::domain::organization::Role;
use crate::service::access::User;
use crate::service::access::jwt::LEEWAY_SECONDS;

/// How long the issuer's keys are used without looking again.
const KEYS_LIFE: Duration = Duration::from_secs(3600);
/// A key nobody knows makes us look again, at most this often.
const KEYS_PAUSE: Duration = Duration::from_secs(1);
/// Time and size of what the issuer answers.
const ISSUER_TIMEOUT: Duration = Duration::from_secs(5);
const ISSUER_BYTES: usize = 1024 * 1024;

/// An issuer and the keys it was last seen with.
pub struct Issuer {
    settings: Oidc,
    http: reqwest::Client,
    keys: RwLock<Keys>,
    /// One at a time asks the issuer; the others use what is known.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Clone, Default)]
struct Keys {
    set: Option<Arc<JwkSet>>,
    /// When they were fetched.
    fetched: Option<Instant>,
    /// When the issuer was last asked, with or without success.
    asked: Option<Instant>,
}

/// Why an issuer's keys cannot be had.
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
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl Issuer {
    /// Fetches nothing yet.
    pub fn new(settings: Oidc, allow_insecure: bool) -> Result<Self, reqwest::Error> {
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

    /// The user of one of the issuer's tokens, at `now` (Unix seconds).
    pub async fn user(&self, token: &str, header: &Header, now: i64) -> Option<User> {
        let key = self.key(header).await?;
        let mut validation = Validation::new(header.alg);
        validation.set_audience(&[&self.settings.audience]);
        validation.set_issuer(&[self.issuer(), &format!("{}/", self.issuer())]);
        let required = ["exp", "aud", "iss"].map(str::to_owned);
        validation.required_spec_claims = HashSet::from(required);
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
        Some(User {
            org: OrgId::parse(text(&self.settings.org_claim)?)?,
            email: text(&self.settings.email_claim)?.to_owned(),
            role: Role::parse(text(&self.settings.role_claim)?)?,
            token: None,
        })
    }

    fn issuer(&self) -> &str {
        self.settings.issuer.as_str().trim_end_matches('/')
    }

    /// The key that a token names: from memory, or, when it is not there or too
    /// old, from the issuer, which may have changed its keys. A key that is
    /// known stays good while the issuer cannot be reached.
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
                Err(_) => return found,
            },
            None => self.asking.lock().await,
        };
        // Somebody else may have asked while we waited.
        if !younger(self.keys.read().await.asked, KEYS_PAUSE) {
            let answer = self.fetch().await;
            let mut keys = self.keys.write().await;
            keys.asked = Some(Instant::now());
            match answer {
                Ok(set) => {
                    keys.set = Some(Arc::new(set));
                    keys.fetched = keys.asked;
                }
                Err(error) => tracing::warn!(%error, "the issuer's keys could not be fetched"),
            }
        }
        drop(turn);
        let keys = self.keys.read().await;
        keys.set.as_ref().and_then(|set| find(set, header))
    }

    async fn fetch(&self) -> Result<JwkSet, IssuerError> {
        let url = format!("{}/.well-known/openid-configuration", self.issuer());
        let discovery: Discovery = serde_json::from_slice(&self.get(&url).await?)?;
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
        while let Some(piece) = response.chunk().await? {
            if body.len() + piece.len() > ISSUER_BYTES {
                return Err(IssuerError::TooLarge);
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

/// The key a token names; a token that names none has to mean the only one.
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
