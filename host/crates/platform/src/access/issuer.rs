//! Bearer tokens of an OpenID Connect issuer: fetches and refreshes its keys and validates its
//! tokens (OpenID Connect Discovery 1.0, RFC 7517).

use std::sync::Arc;
use std::time::{Duration, Instant};

use jsonwebtoken::Header;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::RwLock;

use crate::access::WebUser;
use crate::access::jwt::{self, ExpectedToken};
use holdfast_base::config::OidcSettings;
use holdfast_base::tls;
use holdfast_domain::id::OrgId;
use holdfast_domain::organization::Role;
use holdfast_domain::user::IssuerIdentity;

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

/// Reason why an issuer's answer could not be read.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    #[error("request: {0}")]
    Http(reqwest::Error),
    #[error("answer: {0}")]
    Json(#[from] serde_json::Error),
    #[error("answer is larger than {ISSUER_BYTES} bytes")]
    TooLarge,
    #[error("the discovery document is of another issuer")]
    OtherIssuer,
}

/// Endpoints of an issuer (OpenID Connect Discovery 1.0, section 3).
#[derive(Deserialize)]
pub struct DiscoveryDocument {
    pub issuer: String,
    pub jwks_uri: String,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    pub userinfo_endpoint: Option<String>,
    /// OpenID Connect RP-Initiated Logout 1.0.
    pub end_session_endpoint: Option<String>,
    #[serde(default)]
    pub token_endpoint_auth_methods_supported: Vec<String>,
    /// RFC 9207.
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

impl From<reqwest::Error> for IssuerError {
    /// Drops the URL, which can have a secret.
    fn from(error: reqwest::Error) -> Self {
        Self::Http(error.without_url())
    }
}

impl TokenIssuer {
    /// Creates an issuer without fetching its keys.
    pub fn new(settings: OidcSettings, allow_insecure: bool) -> Result<Self, reqwest::Error> {
        // A redirect could lead the request to another host than the operator's issuer.
        let http = tls::with_system_roots(reqwest::Client::builder())
            .redirect(reqwest::redirect::Policy::none())
            .https_only(!allow_insecure)
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
        // Issuers write their own name with or without a slash at its end.
        let expected = ExpectedToken {
            issuers: &[self.issuer(), &format!("{}/", self.issuer())],
            audience: &self.settings.audience,
        };
        let claims = jwt::read_foreign(token, header.alg, &key, &expected, now)?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);

        Some(WebUser {
            org: OrgId::parse(text(&self.settings.org_claim)?)?,
            email: text(&self.settings.email_claim)?.to_owned(),
            role: Role::parse(text(&self.settings.role_claim)?)?,
            token: None,
            identity: text("sub").map(|subject| IssuerIdentity {
                issuer: text("iss").unwrap_or_else(|| self.issuer()).to_owned(),
                subject: subject.to_owned(),
            }),
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
        let discovered = discover(&self.http, self.issuer()).await?;
        read_json(self.http.get(&discovered.jwks_uri)).await
    }
}

/// Reads the endpoints of an issuer.
pub async fn discover(
    http: &reqwest::Client,
    issuer: &str,
) -> Result<DiscoveryDocument, IssuerError> {
    let issuer = issuer.trim_end_matches('/');
    let url = format!("{issuer}/.well-known/openid-configuration");
    let discovered: DiscoveryDocument = read_json(http.get(url)).await?;

    // Required by OpenID Connect Discovery 1.0, section 4.3.
    if discovered.issuer.trim_end_matches('/') == issuer {
        Ok(discovered)
    } else {
        Err(IssuerError::OtherIssuer)
    }
}

/// Sends a request to an issuer and reads its answer.
pub async fn read_json<T: DeserializeOwned>(
    request: reqwest::RequestBuilder,
) -> Result<T, IssuerError> {
    let response = request.timeout(ISSUER_TIMEOUT).send().await?;
    let mut response = response.error_for_status()?;
    let mut body = Vec::new();

    // Read in pieces, so that the limit holds without a Content-Length.
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > ISSUER_BYTES {
            return Err(IssuerError::TooLarge);
        }
        body.extend_from_slice(&piece);
    }

    Ok(serde_json::from_slice(&body)?)
}

/// Returns the key that a token names. A token without a key id is accepted only if the issuer has
/// exactly one key.
pub fn find(set: &JwkSet, header: &Header) -> Option<Jwk> {
    let key = match &header.kid {
        Some(kid) => set.find(kid),
        None => match set.keys.as_slice() {
            [only] => Some(only),
            _ => None,
        },
    };
    key.cloned()
}
