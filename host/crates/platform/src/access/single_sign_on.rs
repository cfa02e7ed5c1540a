//! Sign-in of an organization's users at its OpenID Connect issuer: authorization code flow with PKCE (OpenID Connect
//! Core 1.0, RFC 7636, RFC 9207).
//!
//! What a sign-in has to remember until the issuer's answer is sealed in a cookie of the browser; nothing is stored.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use jsonwebtoken::Algorithm;
use jsonwebtoken::jwk::JwkSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use url::Url;

use super::issuer::{DiscoveryDocument, IssuerError, discover, find, read_json};
use super::jwt::{self, ExpectedToken, LEEWAY_SECONDS};
use super::sessions::{self, NewSession, SignedIn};
use super::users::{self, AccountHolder, IssuerSignIn};
use crate::room::form::RequestOrigin;
use crate::{Core, ServiceError};
use holdfast_adapters::delivery::guard::{self, AllowedAddresses};
use holdfast_adapters::mail::is_address;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{OrgId, SessionId, UserId};
use holdfast_domain::organization::{GroupRole, Organization, Role, SingleSignOn};
use holdfast_domain::token::{LinkToken, random};
use holdfast_domain::user::{IssuerIdentity, Session};
use holdfast_store::{StoreError, organizations, users as rows};

/// Time for a sign-in at the issuer.
pub const LIFE: Duration = Duration::from_secs(900);
/// Path of the page to which the issuer leads back.
pub const CALLBACK: &str = "/console/sso/callback";
/// Context of the sealed cookie.
const COOKIE: &str = "single sign-on";
/// Longest subject (OpenID Connect Core 1.0, section 2: 255 ASCII characters).
const SUBJECT: usize = 255;
/// Longest secret of a client.
const SECRET: usize = 1_000;

/// Returns the context that binds the sealed secret of a client to its organization.
pub fn secret_context(org: &str) -> String {
    format!("sign-on {org}")
}

/// Returns the address to which the issuer leads back.
pub fn redirect_uri(core: &Core) -> String {
    format!("{}{CALLBACK}", core.config.console_url())
}

/// Member `single_sign_on` of `PATCH /organization`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeSingleSignOn {
    #[schemars(with = "String", url)]
    pub issuer: Url,
    #[schemars(length(min = 1, max = 200))]
    pub client_id: String,
    /// Absent: the present secret stays, if issuer and client stay. Null: a public client.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>", length(max = 1000))]
    pub client_secret: Option<Option<String>>,
    /// Scopes to ask for, besides `openid`.
    #[schemars(length(max = 20))]
    pub scopes: Option<Vec<String>>,
    /// Claim with the groups of a user; `groups` when absent.
    pub groups_claim: Option<String>,
    /// Roles of groups. The first one that a user is in counts.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub roles: Vec<GroupRole>,
    pub default_role: Option<Role>,
    #[serde(default)]
    #[schemars(length(max = 20))]
    pub acr_values: Vec<String>,
    #[serde(default)]
    pub required: bool,
}

fn given<'de, D: serde::Deserializer<'de>>(given: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(given).map(Some)
}

/// New settings, with what becomes of the secret.
pub struct CheckedSignOn {
    pub settings: SingleSignOn,
    /// `None` keeps the present one.
    pub secret: Option<Option<String>>,
}

impl ChangeSingleSignOn {
    /// Checks the settings, and that the issuer can be reached.
    ///
    /// # Errors
    /// `Invalid` with the member at fault.
    pub async fn checked(
        self,
        core: &Core,
        present: Option<&SingleSignOn>,
    ) -> Result<CheckedSignOn, ServiceError> {
        let refused = |member: &str, why: String| {
            let path = ["single_sign_on", member];
            ServiceError::invalid(
                "invalid_value",
                &path,
                "a value that can be used",
                "another value",
                why,
            )
        };

        // Both are sent as lists with spaces between the words.
        let words = self.scopes.iter().flatten().chain(&self.acr_values);
        let is_word = |word: &String| {
            !word.is_empty()
                && word.len() <= 200
                && word.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if !words.into_iter().all(is_word) {
            let why = "Scopes and acr values are words without spaces";
            return Err(refused("scopes", why.into()));
        }

        if self.client_id.trim().is_empty() || self.client_id.len() > 200 {
            return Err(refused("client_id", "A client has an id".into()));
        }
        if self
            .client_secret
            .iter()
            .flatten()
            .any(|secret| secret.len() > SECRET)
        {
            return Err(refused("client_secret", "The secret is too long".into()));
        }

        if self.roles.len() > 100 || self.acr_values.len() > 20 {
            return Err(refused("roles", "Too many values".into()));
        }
        if self.roles.is_empty() && self.default_role.is_none() {
            let why = "Nobody could sign in: name groups with their roles, or a default role";
            return Err(refused("roles", why.into()));
        }

        let settings = SingleSignOn {
            issuer: self.issuer,
            client_id: self.client_id,
            scopes: self.scopes.unwrap_or_else(|| vec!["email".into()]),
            groups_claim: self.groups_claim.unwrap_or_else(|| "groups".into()),
            roles: self.roles,
            default_role: self.default_role,
            acr_values: self.acr_values,
            required: self.required,
            since: None,
            set_by: None,
        };

        // A wrong address shows up now, and not when the first user cannot sign in.
        Endpoints::of(core, &settings)
            .await
            .map_err(|why| refused("issuer", why.to_string()))?;
        // A kept secret must not be sent to another issuer or for another client.
        let same = present.is_some_and(|present| {
            present.issuer == settings.issuer && present.client_id == settings.client_id
        });
        let secret = match self.client_secret {
            None if same => None,
            other => Some(other.flatten().filter(|secret| !secret.is_empty())),
        };

        Ok(CheckedSignOn { settings, secret })
    }
}

/// Reason why the sign-in failed.
#[derive(Debug, thiserror::Error)]
pub enum SignOnProblem {
    #[error("the organization has no sign-in of its own")]
    Unknown,
    #[error("the sign-in was begun in another browser or too long ago")]
    Over,
    #[error("the issuer refused: {0}")]
    Refused(String),
    #[error("the issuer's answer cannot be trusted: {0}")]
    Untrusted(&'static str),
    #[error("the issuer could not be reached: {0}")]
    Issuer(#[from] IssuerError),
    #[error("the address of the issuer is refused: {0}")]
    Address(String),
    #[error("the issuer gives no e-mail address")]
    NoAddress,
    #[error("the user is in no group with a role")]
    NoRole,
    #[error("the access of the user was ended")]
    Ended,
    #[error("the address belongs to a user with another account at the issuer")]
    OtherAccount,
    #[error("another user signed in than the one of the session")]
    OtherUser,
    #[error("the sign-in at the issuer does not confirm: it is too old or not strong enough")]
    Weak,
    #[error(transparent)]
    Failed(#[from] ServiceError),
}

impl From<StoreError> for SignOnProblem {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// Endpoints of an issuer, checked for the network that they are in.
struct Endpoints {
    authorization: Url,
    token: Url,
    keys: Url,
    user_info: Option<Url>,
    end_session: Option<Url>,
    document: DiscoveryDocument,
}

impl Endpoints {
    async fn of(core: &Core, settings: &SingleSignOn) -> Result<Self, SignOnProblem> {
        // The organization names these addresses. None of them may lead into the operator's network.
        let insecure = core.config.providers.allow_insecure;
        let checked = |url: Url| match guard::check_url(&url, &AllowedAddresses::public(insecure)) {
            Ok(()) => Ok(url),
            Err(refused) => Err(SignOnProblem::Address(refused.to_string())),
        };
        let read = |text: &str| {
            let url = Url::parse(text);
            checked(url.map_err(|_| SignOnProblem::Untrusted("an endpoint is no URL"))?)
        };

        checked(settings.issuer.clone())?;
        let document = discover(&core.http, settings.issuer.as_str()).await?;
        let missing = || SignOnProblem::Untrusted("it has no endpoint for sign-ins");
        let named = |text: &Option<String>| text.as_deref().map(read).transpose();
        Ok(Self {
            authorization: named(&document.authorization_endpoint)?.ok_or_else(missing)?,
            token: named(&document.token_endpoint)?.ok_or_else(missing)?,
            keys: read(&document.jwks_uri)?,
            user_info: named(&document.userinfo_endpoint)?,
            end_session: named(&document.end_session_endpoint)?,
            document,
        })
    }

    /// Exchanges the code for the tokens.
    async fn exchange(
        &self,
        core: &Core,
        organization: &SignOnOf,
        code: &str,
        verifier: &str,
    ) -> Result<IssuedTokens, SignOnProblem> {
        let client = &organization.settings.client_id;
        let redirect = redirect_uri(core);
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect.as_str()),
            ("code_verifier", verifier),
        ];

        let mut request = core.http.post(self.token.clone());
        // A document that names no method means `client_secret_basic` (OpenID Connect Discovery 1.0,
        // section 3).
        let known = &self.document.token_endpoint_auth_methods_supported;
        let posts = known.iter().any(|one| one == "client_secret_post")
            && !known.iter().any(|one| one == "client_secret_basic");
        match &organization.secret {
            // RFC 6749, section 2.3.1: both are form-encoded first.
            Some(secret) if !posts => {
                let encoded = |text: &str| -> String {
                    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
                };
                request = request.basic_auth(encoded(client), Some(encoded(secret)));
            }
            Some(secret) => {
                form.extend([("client_id", client.as_str()), ("client_secret", secret)])
            }
            None => form.push(("client_id", client)),
        }

        Ok(read_json(request.form(&form)).await?)
    }
}

#[derive(Deserialize)]
struct IssuedTokens {
    id_token: String,
    access_token: Option<String>,
}

/// Organization with the settings of its sign-in.
struct SignOnOf {
    organization: Organization,
    settings: SingleSignOn,
    secret: Option<String>,
}

impl SignOnOf {
    async fn read(core: &Core, org: &OrgId) -> Result<Self, SignOnProblem> {
        let mut connection = core.store.read().await?;
        let organization = organizations::get(&mut connection, org).await?;
        let sealed = organizations::sign_on_secret(&mut connection, org).await?;
        drop(connection);
        let organization = organization.ok_or(SignOnProblem::Unknown)?;
        let settings = organization.settings.single_sign_on.clone();
        let settings = settings.ok_or(SignOnProblem::Unknown)?;

        let context = secret_context(org.as_str());
        let secret = match sealed {
            Some(sealed) => {
                let opened = core.cipher.open(&sealed, &context);
                let lost = || ServiceError::Internal("the client's secret cannot be read".into());
                Some(opened.ok_or_else(lost)?)
            }
            None => None,
        };

        Ok(Self {
            organization,
            settings,
            secret,
        })
    }
}

/// What a sign-in remembers in the browser.
#[derive(Serialize, Deserialize)]
struct PendingSignOn {
    org: OrgId,
    state: String,
    nonce: String,
    verifier: String,
    /// Milliseconds since 1970.
    begun_at: i64,
    next: Option<String>,
    /// Session that is to be confirmed.
    confirms: Option<(UserId, SessionId)>,
}

/// A sign-in that continues at the issuer.
pub struct BegunSignOn {
    pub url: Url,
    /// Value of the cookie.
    pub cookie: String,
}

fn secret_text() -> String {
    BASE64URL.encode(random::<32>())
}

/// Organization with an issuer, as visitors see it before they sign in.
pub struct OfferedSignOn {
    pub organization: String,
    /// Host of the issuer.
    pub issuer: String,
}

/// Returns what the sign-in of an organization offers.
pub async fn offered(core: &Core, org: &OrgId) -> Result<OfferedSignOn, SignOnProblem> {
    let known = SignOnOf::read(core, org).await?;
    let host = known.settings.issuer.host_str().unwrap_or_default();
    Ok(OfferedSignOn {
        issuer: host.to_owned(),
        organization: known.organization.name,
    })
}

/// Begins a sign-in that leads to the page with the path `next`, or confirms a session.
pub async fn begin(
    core: &Core,
    org: &OrgId,
    next: Option<&str>,
    confirms: Option<&SignedIn>,
) -> Result<BegunSignOn, SignOnProblem> {
    let known = SignOnOf::read(core, org).await?;
    let endpoints = Endpoints::of(core, &known.settings).await?;
    // A session of another organization proves nothing here.
    let confirms = confirms.filter(|signed_in| signed_in.user.org == *org);
    let pending = PendingSignOn {
        org: org.clone(),
        state: secret_text(),
        nonce: secret_text(),
        verifier: secret_text(),
        begun_at: core.clock.now().as_millis(),
        next: next.map(str::to_owned),
        confirms: confirms.map(|one| (one.user.id.clone(), one.session.id.clone())),
    };

    // An intercepted code is worthless without the verifier (RFC 7636).
    let challenge = BASE64URL.encode(Sha256::digest(&pending.verifier));
    let scope = ["openid"].into_iter();
    let scope = scope.chain(known.settings.scopes.iter().map(String::as_str));
    let scope: Vec<&str> = scope.collect();
    let mut url = endpoints.authorization;
    {
        let mut query = url.query_pairs_mut();
        query.extend_pairs([
            ("response_type", "code"),
            ("client_id", &known.settings.client_id),
            ("redirect_uri", &redirect_uri(core)),
            ("scope", &scope.join(" ")),
            ("state", &pending.state),
            ("nonce", &pending.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);

        if let Some(signed_in) = confirms {
            // The answer then has `auth_time`.
            query.extend_pairs([("max_age", "0"), ("login_hint", &signed_in.user.email)]);
            if !known.settings.acr_values.is_empty() {
                query.append_pair("acr_values", &known.settings.acr_values.join(" "));
            }
        }
    }

    let cookie = core.cipher.encrypt(&json!(pending).to_string(), COOKIE);
    Ok(BegunSignOn { url, cookie })
}

/// Parameters with which the issuer leads back.
#[derive(Deserialize)]
pub struct IssuerAnswer {
    code: Option<String>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

/// A finished sign-in.
pub struct FinishedSignOn {
    pub next: Option<String>,
    /// Secret of the new session; none if one was confirmed.
    pub session: Option<LinkToken>,
}

/// Finishes a sign-in with the cookie of its beginning.
pub async fn finish(
    core: &Core,
    cookie: &str,
    answer: &IssuerAnswer,
    origin: RequestOrigin,
) -> Result<FinishedSignOn, SignOnProblem> {
    let opened = core.cipher.open(cookie, COOKIE);
    let opened = opened.and_then(|text| serde_json::from_str(&text).ok());
    let pending: PendingSignOn = opened.ok_or(SignOnProblem::Over)?;
    let begun = Timestamp::from_millis(pending.begun_at);
    // The answer has to belong to the sign-in of this browser: otherwise an attacker could sign a user in
    // to another account (RFC 6749, section 10.12).
    let state = answer.state.as_deref().unwrap_or_default();
    let is_ours = bool::from(state.as_bytes().ct_eq(pending.state.as_bytes()));
    if !is_ours || begun + LIFE <= core.clock.now() {
        return Err(SignOnProblem::Over);
    }

    let known = SignOnOf::read(core, &pending.org).await?;
    let endpoints = Endpoints::of(core, &known.settings).await?;
    let issuer = endpoints.document.issuer.as_str();

    // Without this check, another issuer's answer could be passed off as this one's (RFC 9207).
    let names_itself = endpoints
        .document
        .authorization_response_iss_parameter_supported;
    match &answer.iss {
        Some(iss) if iss != issuer => return Err(SignOnProblem::Untrusted("another issuer")),
        None if names_itself => return Err(SignOnProblem::Untrusted("no issuer")),
        _ => {}
    }

    if let Some(error) = &answer.error {
        // The text comes from outside and goes to a page and a log line.
        let error = error.chars().filter(|one| one.is_ascii_graphic());
        return Err(SignOnProblem::Refused(error.take(100).collect()));
    }

    let code = answer.code.as_deref();
    let code = code.ok_or(SignOnProblem::Untrusted("no code"))?;
    let tokens = endpoints.exchange(core, &known, code, &pending.verifier);
    let tokens = tokens.await?;
    let mut claims = identity(
        core,
        &endpoints,
        &known.settings,
        &tokens.id_token,
        &pending,
    )
    .await?;

    // Some issuers leave address and groups out of the ID token.
    let is_missing = |name: &str| !claims.contains_key(name);
    if (is_missing("email") || is_missing(&known.settings.groups_claim))
        && let (Some(url), Some(token)) = (&endpoints.user_info, &tokens.access_token)
    {
        let request = core.http.get(url.clone()).bearer_auth(token);
        let further: Map<String, Value> = read_json(request).await?;

        // OpenID Connect Core 1.0, section 5.3.4.
        if further.get("sub") != claims.get("sub") {
            return Err(SignOnProblem::Untrusted("user information of another user"));
        }

        // The signed token counts more than the answer about the user.
        for (name, value) in further {
            claims.entry(name).or_insert(value);
        }
    }

    let user = SignedOnUser::of(&claims, issuer, &known.settings)?;
    match &pending.confirms {
        Some((id, session)) => {
            confirm(core, &known, &user, id, session, begun).await?;
            Ok(FinishedSignOn {
                next: pending.next,
                session: None,
            })
        }
        None => Ok(FinishedSignOn {
            session: Some(sign_in(core, &known, &user, origin).await?),
            next: pending.next,
        }),
    }
}

/// Validates an ID token (OpenID Connect Core 1.0, section 3.1.3.7) and returns its claims.
async fn identity(
    core: &Core,
    endpoints: &Endpoints,
    settings: &SingleSignOn,
    token: &str,
    pending: &PendingSignOn,
) -> Result<Map<String, Value>, SignOnProblem> {
    let untrusted = SignOnProblem::Untrusted;
    let header = jsonwebtoken::decode_header(token);
    let header = header.map_err(|_| untrusted("the ID token is unreadable"))?;
    // With such an algorithm, a public key would be taken for a shared secret, and anyone has it.
    if matches!(
        header.alg,
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512
    ) {
        return Err(untrusted("the ID token has no public signature"));
    }

    let keys: JwkSet = read_json(core.http.get(endpoints.keys.clone())).await?;
    let key = find(&keys, &header).ok_or(untrusted("the key of the ID token is unknown"))?;
    let expected = ExpectedToken {
        issuers: &[&endpoints.document.issuer],
        audience: &settings.client_id,
    };
    let now = core.clock.now().as_seconds();
    let claims = jwt::read_foreign(token, header.alg, &key, &expected, now);
    let claims = claims.ok_or(untrusted("the ID token is not valid"))?;
    let text = |name: &str| claims.get(name).and_then(Value::as_str);

    // OpenID Connect Core 1.0, section 3.1.3.7: several audiences need `azp`, and it has to be this
    // client.
    let several = claims.get("aud").and_then(Value::as_array);
    let azp = text("azp");
    if several.is_some_and(|all| all.len() > 1) && azp.is_none()
        || azp.is_some_and(|azp| azp != settings.client_id)
    {
        return Err(untrusted("the ID token is for another client"));
    }

    if text("nonce") == Some(pending.nonce.as_str()) {
        Ok(claims)
    } else {
        Err(untrusted("the ID token is of another sign-in"))
    }
}

/// User as the issuer describes them.
struct SignedOnUser {
    identity: IssuerIdentity,
    email: String,
    role: Role,
    acr: Option<String>,
    /// Seconds since 1970.
    auth_time: Option<i64>,
}

impl SignedOnUser {
    fn of(
        claims: &Map<String, Value>,
        issuer: &str,
        settings: &SingleSignOn,
    ) -> Result<Self, SignOnProblem> {
        let subject = claims.get("sub").and_then(Value::as_str);
        let subject = subject.filter(|subject| !subject.is_empty() && subject.len() <= SUBJECT);
        let subject = subject.ok_or(SignOnProblem::Untrusted("the ID token names no subject"))?;
        let email = claims.get("email").and_then(Value::as_str);
        let email = users::address(email.unwrap_or_default());
        let is_unverified = claims.get("email_verified").is_some_and(|one| {
            // Some issuers write a string.
            *one == json!(false) || *one == json!("false")
        });
        // Users without a bound account are found by their address, so it must be verified.
        if !is_address(&email) || is_unverified {
            return Err(SignOnProblem::NoAddress);
        }

        let groups = match claims.get(&settings.groups_claim) {
            Some(Value::Array(groups)) => {
                let names = groups.iter().filter_map(Value::as_str);
                names.map(str::to_owned).collect()
            }
            Some(Value::String(group)) => vec![group.clone()],
            _ => Vec::new(),
        };

        Ok(Self {
            identity: IssuerIdentity {
                issuer: issuer.to_owned(),
                subject: subject.to_owned(),
            },
            email,
            role: settings.role_of(&groups).ok_or(SignOnProblem::NoRole)?,
            acr: claims.get("acr").and_then(Value::as_str).map(str::to_owned),
            auth_time: claims.get("auth_time").and_then(Value::as_i64),
        })
    }
}

/// Begins a session. A user without access gets it with the role of their groups.
async fn sign_in(
    core: &Core,
    known: &SignOnOf,
    user: &SignedOnUser,
    origin: RequestOrigin,
) -> Result<LinkToken, SignOnProblem> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let org = &known.organization.id;
    let identity = &user.identity;
    let set_by = known.settings.set_by.as_deref();
    let (email, role) = (&user.email, user.role);
    let found = match users::signed_on(&mut tx, org, set_by, email, role, identity, now).await? {
        IssuerSignIn::Granted(found) => *found,
        IssuerSignIn::Ended => return Err(SignOnProblem::Ended),
        IssuerSignIn::OtherAccount => return Err(SignOnProblem::OtherAccount),
    };

    // A session at the issuer can be days old, and another person at the browser could use it.
    let confirmed_at = match user.auth_time {
        Some(at) if known.settings.confirms(user.acr.as_deref()) => {
            Timestamp::from_millis(at.saturating_mul(1_000)).min(now)
        }
        _ => now - sessions::CONFIRMED,
    };
    let new = NewSession {
        origin,
        by: json!({ "issuer": identity.issuer, "subject": identity.subject, "acr": user.acr }),
        confirmed_at,
        issuer: Some(identity.issuer.clone()),
        proves: false,
    };
    let secret = sessions::begin(core, &mut tx, found, new).await?;

    tx.commit().await.map_err(ServiceError::from)?;
    Ok(secret)
}

/// Notes that the user of a session signed in again, after the sign-in was begun.
async fn confirm(
    core: &Core,
    known: &SignOnOf,
    user: &SignedOnUser,
    id: &UserId,
    session: &SessionId,
    begun: Timestamp,
) -> Result<(), SignOnProblem> {
    // A session at the issuer can be days old. Only a sign-in after the beginning of this one confirms.
    let is_fresh = user
        .auth_time
        .is_some_and(|at| at.saturating_add(LEEWAY_SECONDS) >= begun.as_seconds());
    if !is_fresh || !known.settings.confirms(user.acr.as_deref()) {
        return Err(SignOnProblem::Weak);
    }

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let users = rows::list(&mut tx, &known.organization.id).await?;
    let found = match users::holder(&users, &user.identity, &user.email) {
        AccountHolder::Bound(found) | AccountHolder::Named(found) => Some(found),
        AccountHolder::OtherAccount | AccountHolder::Nobody => None,
    };
    // Another account at the issuer must not confirm this session.
    let found = found.filter(|found| found.id == *id);
    let found = found.ok_or(SignOnProblem::OtherUser)?;

    let seen_after = now - core.config.console.idle;
    let open = rows::sessions(&mut tx, found, now, seen_after).await?;
    let is_named = |one: &&Session| one.id == *session;
    let open = open.iter().find(is_named).ok_or(SignOnProblem::Over)?;
    rows::confirm_session(&mut tx, open, now).await?;
    tx.commit().await.map_err(ServiceError::from)?;

    Ok(())
}

/// Returns the address at which the issuer ends its session, too; none where it has no such address, or if the
/// session was begun elsewhere.
pub async fn end_url(core: &Core, signed_in: &SignedIn) -> Option<Url> {
    let issuer = signed_in.session.issuer.as_ref()?;
    // Signing out here must not fail because the issuer is down.
    let known = SignOnOf::read(core, &signed_in.user.org).await.ok()?;
    let endpoints = Endpoints::of(core, &known.settings).await.ok()?;
    let mut url = endpoints.end_session?;

    if endpoints.document.issuer != *issuer {
        return None;
    }

    let back = format!("{}/console/sign-in", core.config.console_url());
    url.query_pairs_mut().extend_pairs([
        ("client_id", known.settings.client_id.as_str()),
        ("post_logout_redirect_uri", &back),
    ]);

    Some(url)
}
