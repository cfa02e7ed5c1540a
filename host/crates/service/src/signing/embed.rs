//! Embed tokens: short-lived JWTs with which a partner's page shows the sign or vault widget
//! of one envelope (specification, "Embed tokens").

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::envelopes::lifecycle;
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, Signer, SignerStatus, words};
use holdfast_domain::id::{EnvelopeId, OrgId, RequestId};
use holdfast_domain::organization::{Organization, Scope};
use holdfast_platform::access::jwt::{self, ExpiringClaims};
use holdfast_platform::access::{AccessState, BeginningCredential};
use holdfast_platform::events;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::lookup;
use holdfast_platform::providers::links;
use holdfast_platform::signers::invited_now;
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError};
use holdfast_store::{envelopes, organizations, signers};

/// Lifetime of a token (specification, "Limits").
const LIFE: Duration = Duration::from_secs(15 * 60);

words! {
    /// The widget that a token shows.
    Widget {
        Sign = "sign",
        Vault = "vault",
    }
}

impl Widget {
    /// Returns the scope an API key needs to issue tokens for the widget.
    pub fn scope(self) -> Scope {
        match self {
            Self::Sign => Scope::EsignWrite,
            Self::Vault => Scope::VaultRead,
        }
    }

    fn trigger(self) -> EnvelopeTrigger {
        match self {
            Self::Sign => EnvelopeTrigger::EmbedSign,
            Self::Vault => EnvelopeTrigger::EmbedVault,
        }
    }
}

/// Body of `POST /embed/token`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "user_email": "jordan.lee@example.com",
    "widget_type": "sign",
}]))]
pub struct RequestToken {
    pub envelope_id: String,
    /// For `sign`, must be a signer of the envelope.
    #[schemars(email, length(max = 254))]
    pub user_email: String,
    pub widget_type: Widget,
}

/// A token, and the URL at which a browser uses it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "token": "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.eyJlbnZlbG9wZUlkIjoi…",
    "expires_at": "2026-11-21T09:45:00.000Z",
    "embed_url": "https://holdfast.example/embed/sign#token=eyJ0eXAiOiJKV1Qi…",
    "widget_type": "sign", "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc",
}]))]
pub struct EmbedToken {
    pub token: String,
    pub expires_at: Timestamp,
    /// URL for an iframe.
    pub embed_url: String,
    pub widget_type: Widget,
    pub envelope_id: EnvelopeId,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EmbedTokenClaims {
    envelope_id: EnvelopeId,
    org_id: OrgId,
    widget_type: Widget,
    /// The request's `user_email`.
    sub: String,
    aud: String,
    jti: RequestId,
    iat: i64,
    exp: i64,
    /// Credential of the issuer, sealed; none before release 0.2.
    #[serde(default)]
    begun: Option<String>,
}

impl ExpiringClaims for EmbedTokenClaims {
    fn exp(&self) -> i64 {
        self.exp
    }
}

/// The envelope and user of a valid token.
pub struct OpenedEmbedToken {
    pub envelope: Envelope,
    pub email: String,
}

impl OpenedEmbedToken {
    /// Returns the token's holder as a caller.
    pub fn caller(&self) -> Caller {
        Caller {
            org: self.envelope.org.clone(),
            actor: format!("embed:{}", self.email),
            email: Some(self.email.clone()),
            token: None,
            role: None,
        }
    }
}

/// Issues a token. The ledger records the caller and the user.
pub async fn issue(
    core: &Core,
    access: &AccessState,
    caller: &Caller,
    request: RequestToken,
    answer: &ResponseRecorder<EmbedToken>,
) -> Result<EmbedToken, ServiceError> {
    let id = EnvelopeId::parse(&request.envelope_id);
    let id = id.ok_or(ServiceError::NotFound("Envelope"))?;
    let widget = request.widget_type;
    let mut tx = core.store.begin().await?;
    let trigger = widget.trigger();
    let known = lookup::lock_envelope(&mut tx, &caller.org, &id).await?;

    // Widgets cannot show identity questions (specification, "KBA"). Checked before the
    // lifecycle rules, so that the error is the same in every status.
    if widget == Widget::Sign && known.sending.kba_required {
        let message =
            "This envelope's signers are asked about their identity; use their signing links";
        return Err(Problem::new(ProblemKind::State, "kba_required", message).into());
    }

    let (envelope, _) = lifecycle::lock_for(core, &mut tx, &caller.org, &id, trigger).await?;
    if widget == Widget::Sign {
        let signers = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
        if who_signs(&envelope, &signers, &request.user_email).is_none() {
            return Err(unknown_signer(&request.user_email));
        }
    }

    // The answer commits with the ledger entry, so no token leaves that the ledger does not know.
    let now = core.clock.now();
    let token = signed(core, access, caller, &envelope, &request, now)?;
    let details = json!({ "widget_type": widget, "user_email": request.user_email });
    let action = "embed_token.issued";
    events::record(&mut tx, &envelope, &caller.actor, action, details, now).await?;
    answer.commit(tx, &token).await?;

    Ok(token)
}

fn unknown_signer(email: &str) -> ServiceError {
    ServiceError::invalid(
        "unknown_signer",
        &["user_email"],
        "a signer of the envelope",
        email,
        format!("The envelope has no signer {email}"),
    )
}

fn signed(
    core: &Core,
    access: &AccessState,
    caller: &Caller,
    envelope: &Envelope,
    request: &RequestToken,
    now: Timestamp,
) -> Result<EmbedToken, ServiceError> {
    let expires_at = now + LIFE;
    let widget = request.widget_type;
    let claims = EmbedTokenClaims {
        envelope_id: envelope.id.clone(),
        org_id: envelope.org.clone(),
        widget_type: widget,
        sub: request.user_email.clone(),
        aud: core.config.embed_url(),
        jti: RequestId::new(),
        iat: now.as_seconds(),
        exp: expires_at.as_seconds(),
        begun: BeginningCredential::sealed(core, caller),
    };

    let token = jwt::issue(&access.embed_keys, &claims)?;
    Ok(EmbedToken {
        // The token is in the fragment, which browsers do not send to servers.
        embed_url: format!("{}/{widget}#token={token}", core.config.embed_url()),
        token,
        expires_at,
        widget_type: widget,
        envelope_id: envelope.id.clone(),
    })
}

/// Validates a token for a widget. None if it is foreign, expired or for another widget.
pub async fn open(
    core: &Core,
    access: &AccessState,
    token: &str,
    widget: Widget,
) -> Result<Option<OpenedEmbedToken>, ServiceError> {
    read(core, access, token, |opens| opens == widget).await
}

/// Like [`open`], for a token of any widget.
pub async fn open_any(
    core: &Core,
    access: &AccessState,
    token: &str,
) -> Result<Option<OpenedEmbedToken>, ServiceError> {
    read(core, access, token, |_| true).await
}

async fn read(
    core: &Core,
    access: &AccessState,
    token: &str,
    fits: impl FnOnce(Widget) -> bool,
) -> Result<Option<OpenedEmbedToken>, ServiceError> {
    let (audience, now) = (core.config.embed_url(), core.clock.now());
    let claims = jwt::read::<EmbedTokenClaims>(&access.embed_keys, &audience, token, now);
    let Some(claims) = claims.filter(|claims| fits(claims.widget_type)) else {
        return Ok(None);
    };

    // A revoked credential ends the tokens that it issued.
    let begun = claims.begun.as_deref();
    if !BeginningCredential::is_sealed_in_force(core, &claims.org_id, begun).await? {
        return Ok(None);
    }

    let mut connection = core.store.read().await?;
    let envelope = envelopes::get(&mut connection, &claims.org_id, &claims.envelope_id).await?;
    Ok(envelope.map(|envelope| OpenedEmbedToken {
        envelope,
        email: claims.sub,
    }))
}

/// Returns the organization that issued a token, also when it has expired. None for a forged one.
pub async fn issuer(
    core: &Core,
    access: &AccessState,
    token: &str,
) -> Result<Option<Organization>, ServiceError> {
    let audience = core.config.embed_url();
    let claims = jwt::read_expired::<EmbedTokenClaims>(&access.embed_keys, &audience, token);
    let Some(claims) = claims else {
        return Ok(None);
    };
    let mut connection = core.store.read().await?;
    Ok(organizations::get(&mut connection, &claims.org_id).await?)
}

/// Issues a fresh signing link for the token's user, and records it. None if the user is no
/// longer a signer.
pub async fn signing_link(
    core: &Core,
    opened: &OpenedEmbedToken,
) -> Result<Option<String>, ServiceError> {
    let envelope = &opened.envelope;
    let mut tx = core.store.begin().await?;

    // The lock keeps a correction from expiring links between the read and the new link.
    envelopes::lock(&mut tx, &envelope.org, &envelope.id).await?;
    let signers = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
    let Some(signer) = who_signs(envelope, &signers, &opened.email) else {
        return Ok(None);
    };

    let url = links::make_embedded(core, &mut tx, envelope, signer).await?;
    let (actor, now) = (opened.caller().actor, core.clock.now());
    let details = json!({ "signers": 1, "widget_type": Widget::Sign });
    let action = "signing_links.fetched";
    events::record(&mut tx, envelope, &actor, action, details, now).await?;
    tx.commit().await?;

    Ok(Some(url))
}

/// Returns the signer with this address: preferably one who can sign now, then one who has
/// not signed. None if no signer has the address any more.
fn who_signs<'a>(envelope: &Envelope, signers: &'a [Signer], email: &str) -> Option<&'a Signer> {
    let named = |signer: &&Signer| signer.email.eq_ignore_ascii_case(email);
    let unsigned = |signer: &&Signer| signer.status != SignerStatus::Completed;
    invited_now(envelope, signers)
        .find(named)
        .or_else(|| signers.iter().filter(named).find(unsigned))
        .or_else(|| signers.iter().find(named))
}
