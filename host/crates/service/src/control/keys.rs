//! Keys that a party signs its acts with.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::statements::{self, ExpectedStatement, SignedForm};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::{PartyKey, PartyKeyRequest};
use holdfast_domain::event::{Event, EventType};
use holdfast_domain::id::PartyKeyId;
use holdfast_domain::statement::{PartyPublicKey, SignedStatement};
use holdfast_domain::user::Passkey;
use holdfast_platform::access::credentials;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::problems::StatementProblem;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue};
use holdfast_store::{StoreError, WriteTransaction, deliveries, events, party_keys, passkeys};

/// Body of `POST /partner/control/keys`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "name": "Document desk, HSM 2",
    "public_key": { "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" },
}]))]
pub struct RegisterKeyForm {
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    pub public_key: PartyPublicKey,
    /// The statement about the registration, signed with the new key.
    pub proof: Option<SignedStatement>,
    /// The statement, signed with a key of your organization that is registered already. Needed unless
    /// there is none.
    pub signed: Option<SignedStatement>,
}

/// A party's key, as in answers and events.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "key_id": "pky_01jdk7m3e8f4x9s2w5v6b0c1dc", "name": "Document desk, HSM 2",
    "public_key": { "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" },
    "thumbprint": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
    "created_at": "2026-11-21T09:45:00.000Z", "revoked_at": null,
}]))]
pub struct PartyKeyView {
    pub key_id: PartyKeyId,
    pub name: Option<String>,
    pub public_key: PartyPublicKey,
    /// RFC 7638, the `kid` of signatures.
    pub thumbprint: String,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

impl From<&PartyKey> for PartyKeyView {
    fn from(key: &PartyKey) -> Self {
        Self {
            key_id: key.id.clone(),
            name: key.name.clone(),
            public_key: key.public_key.clone(),
            thumbprint: key.public_key.thumbprint(),
            created_at: key.created_at,
            revoked_at: key.revoked_at,
        }
    }
}

/// Lists the keys of the caller's organization, oldest first.
pub async fn list(core: &Core, caller: &Caller) -> Result<Vec<PartyKeyView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let keys = party_keys::list(&mut connection, &caller.org).await?;
    Ok(keys.iter().map(PartyKeyView::from).collect())
}

/// Registers a key. From then on, the organization signs all its acts of control.
pub async fn register(
    core: &Core,
    caller: &Caller,
    form: RegisterKeyForm,
    answer: &ResponseRecorder<PartyKeyView>,
) -> Result<PartyKeyView, ServiceError> {
    let now = core.clock.now();
    let expected = ExpectedStatement {
        act: EventType::ControlKeyRegistered,
        party: &caller.org,
        subject: caller.org.as_str(),
        epoch: None,
        content: json!({ "public_key": form.public_key }),
    };
    // Nothing is written without a proof, so no transaction is begun for it.
    let Some(proof) = form.proof else {
        let mut connection = core.store.read().await?;
        let asked = statements::missing(core, &mut connection, &expected, "proof").await?;
        return Err(asked);
    };

    let mut tx = core.store.begin().await?;
    let keys = party_keys::list(&mut tx, &caller.org).await?;
    // The first key is taken at its word, and so is the next one after an operator has revoked a lost set.
    let signed = if keys.iter().any(|key| key.revoked_at.is_none()) {
        statements::require(core, &mut tx, &expected, form.signed.as_ref()).await?
    } else {
        None
    };

    // Signed with the new key itself: a party cannot register a key of which it lacks the private part.
    statements::verify(core, &mut tx, &expected, &proof, &form.public_key).await?;
    let key = PartyKey {
        id: PartyKeyId::new(),
        org: caller.org.clone(),
        name: form.name,
        public_key: form.public_key,
        created_at: now,
        created_by: caller.actor.clone(),
        registration: proof,
        revoked_at: None,
    };
    // A request of a second person for this passkey is answered by the registration.
    if let Some(id) = key.credential()
        && let Some(passkey) = passkeys::of_credential(&mut tx, id).await?
    {
        party_keys::forget_request(&mut tx, &caller.org, &passkey.id).await?;
    }

    match party_keys::insert(&mut tx, &key).await {
        Err(StoreError::Conflict) => {
            let (path, key) = (["public_key"], key.public_key.thumbprint());
            let message = "Your organization has registered this key before";
            let issue = ValidationIssue::new("duplicate_key", &path, "a new key", key, message);
            return Err(ServiceError::Invalid(vec![issue]));
        }
        inserted => inserted?,
    }

    let view = PartyKeyView::from(&key);
    let details = json!({
        "key_id": key.id, "thumbprint": view.thumbprint,
        "proof": statements::evidence(&key.registration, &key.public_key), "signed": signed,
    });
    note(
        &mut tx,
        &key,
        EventType::ControlKeyRegistered,
        &caller.actor,
        details,
        now,
    )
    .await?;

    answer.commit(tx, &view).await?;
    Ok(view)
}

/// Time for which a request waits: that of its proof.
const WAITING: Duration = statements::LONGEST_LIFE;

/// Keeps the registration of a passkey until a person with a key of the organization agrees.
pub async fn ask(
    core: &Core,
    caller: &Caller,
    passkey: &Passkey,
    body: Value,
) -> Result<(), ServiceError> {
    let request = PartyKeyRequest {
        passkey: passkey.id.clone(),
        org: caller.org.clone(),
        requested_by: caller.email.clone().unwrap_or_default(),
        body,
        requested_at: core.clock.now(),
    };
    // A request ends with its proof, which is worthless later.
    let since = request.requested_at - WAITING;

    let mut tx = core.store.begin().await?;
    party_keys::request(&mut tx, &request, since).await?;
    Ok(tx.commit().await?)
}

/// Lists the requests for passkeys to sign for the organization, oldest first.
pub async fn asked(core: &Core, caller: &Caller) -> Result<Vec<PartyKeyRequest>, ServiceError> {
    let mut connection = core.store.read().await?;
    let since = core.clock.now() - WAITING;
    Ok(party_keys::requests(&mut connection, &caller.org, since).await?)
}

/// Revokes a key. Its organization signs this with a key that is still valid, which can be the same one.
pub async fn revoke(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: SignedForm,
    answer: &ResponseRecorder<PartyKeyView>,
) -> Result<PartyKeyView, ServiceError> {
    let mut tx = core.store.begin().await?;
    let keys = party_keys::list(&mut tx, &caller.org).await?;
    let key = keys.into_iter().find(|key| key.id.as_str() == id);
    let key = key.ok_or(ServiceError::NotFound("Key"))?;
    let expected = ExpectedStatement {
        act: EventType::ControlKeyRevoked,
        party: &caller.org,
        subject: key.id.as_str(),
        epoch: None,
        content: json!({}),
    };

    // Before the signature is asked for: there is nothing left to sign.
    if key.revoked_at.is_some() {
        return Err(StatementProblem::Revoked.into());
    }

    // Also of the same key: a party with a single one must be able to revoke it.
    let signed = statements::require(core, &mut tx, &expected, form.signed.as_ref()).await?;
    let now = core.clock.now();
    let details = json!({ "signed": signed });
    let key = revoke_by(&mut tx, key, &caller.actor, details, now).await?;
    let view = PartyKeyView::from(&key);
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Revokes a key for the operator, after its party has lost all its keys. It can then register another.
pub async fn revoke_by_operator(
    tx: &mut WriteTransaction,
    key: PartyKey,
    now: Timestamp,
) -> Result<PartyKey, StoreError> {
    revoke_by(tx, key, "operator", json!({}), now).await
}

async fn revoke_by(
    tx: &mut WriteTransaction,
    key: PartyKey,
    actor: &str,
    mut details: Value,
    now: Timestamp,
) -> Result<PartyKey, StoreError> {
    party_keys::revoke(tx, &key.org, &key.id, now).await?;
    let key = PartyKey {
        revoked_at: Some(now),
        ..key
    };
    details["key_id"] = json!(key.id);
    details["thumbprint"] = json!(key.public_key.thumbprint());

    note(tx, &key, EventType::ControlKeyRevoked, actor, details, now).await?;
    Ok(key)
}

/// Records a change of a key in the credential ledger of its organization, and notifies it.
async fn note(
    tx: &mut WriteTransaction,
    key: &PartyKey,
    event: EventType,
    actor: &str,
    details: Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    let org = &key.org;
    // In the credential ledger, because a key belongs to no record.
    credentials::record_by(tx, Some(org), actor, event.as_str(), details, now).await?;
    let mut data = json!(PartyKeyView::from(key));
    data["by"] = json!(actor);
    let event = Event::of_organization(org.clone(), event, now, data);
    events::insert(tx, &event);
    deliveries::fan_out(tx, &event).await
}
