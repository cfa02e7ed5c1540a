//! Passkeys of users: adding and removing them, signing in, and confirming a session.
//!
//! A challenge is not stored. It has the end of its time, a random part and a keyed hash over both and its purpose;
//! the random part counts once in an organization.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use serde_json::json;
use url::{Host, Url};
use x509_cert::der::Decode as _;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::spki::SubjectPublicKeyInfoRef;

use super::credentials;
use super::sessions::{self, NewSession};
use crate::access::sessions::SignedIn;
use crate::permits::link_codes::{is_link, link_code};
use crate::room::form::RequestOrigin;
use crate::{Core, ServiceError};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{OrgId, PasskeyId};
use holdfast_domain::organization::{OrgSettings, Permission};
use holdfast_domain::passkey::{
    PasskeyAssertion, PasskeyCreation, PasskeyError, PasskeyKey, PasskeyUse,
};
use holdfast_domain::statement::PartyPublicKey;
use holdfast_domain::token::{LinkToken, random};
use holdfast_domain::user::{Passkey, User, UserStatus};
use holdfast_store::{
    StoreError, WriteTransaction, organizations, party_keys, passkeys as rows, users,
};

/// Time for an answer to a challenge.
const LIFE: Duration = Duration::from_secs(300);
/// Most passkeys of a user.
const MOST: usize = 20;
/// Length in bytes of the end and the random part of a challenge.
const END: usize = 8;
const NONCE: usize = 16;

/// `id-ecPublicKey` and `secp256r1` (RFC 5480), `id-Ed25519` (RFC 8410), `rsaEncryption` (RFC 8017).
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// What a challenge is for. An answer to one serves no other.
pub enum Purpose<'a> {
    SignIn,
    Confirm(&'a SignedIn),
    Add(&'a User),
}

impl Purpose<'_> {
    fn text(&self) -> String {
        match self {
            Self::SignIn => "sign-in".into(),
            Self::Confirm(signed_in) => format!("confirm {}", signed_in.session.id),
            Self::Add(user) => format!("add {}", user.id),
        }
    }
}

/// Host and origin of the pages. Browsers make passkeys for names only, not for addresses.
pub struct PasskeySite {
    pub host: String,
    pub origin: String,
}

/// Returns the site of the pages; none if its host is an address.
pub fn site(core: &Core) -> Option<PasskeySite> {
    let url = Url::parse(&core.config.console_url()).ok()?;
    match url.host() {
        Some(Host::Domain(host)) => Some(PasskeySite {
            host: host.to_owned(),
            origin: core.config.console_origin(),
        }),
        _ => None,
    }
}

/// Makes a challenge, base64url.
pub fn challenge(core: &Core, purpose: &Purpose<'_>) -> Result<String, ServiceError> {
    let end = (core.clock.now() + LIFE).as_millis().to_be_bytes();
    let open = [end.as_slice(), random::<NONCE>().as_slice()].concat();
    let code = link_code(core, &purpose.text(), &BASE64URL.encode(&open))?;
    Ok(BASE64URL.encode([open.as_slice(), code.as_bytes()].concat()))
}

/// Reason why the answer of a passkey is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum PasskeyProblem {
    #[error(transparent)]
    Answer(#[from] PasskeyError),
    #[error("the answer is for another page or comes too late")]
    Challenge,
    #[error("the passkey is not known here")]
    Unknown,
    #[error("this kind of passkey is not supported")]
    Unsupported,
    #[error("the passkey is registered already")]
    Duplicate,
    #[error("a user has at most {MOST} passkeys")]
    TooMany,
    #[error("this passkey signs for the organization: revoke its key first")]
    Signs,
    /// The device counted fewer uses than before: a copy of the passkey is in use.
    #[error("the passkey was copied")]
    Copied,
    #[error("the users of {0} sign in at its issuer")]
    Issuer(OrgId),
    #[error(transparent)]
    Failed(#[from] ServiceError),
}

impl From<StoreError> for PasskeyProblem {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// Checks that a device answered a challenge of ours, for our page. Returns the random part of the challenge.
fn answered(
    core: &Core,
    used: &PasskeyUse,
    purpose: &Purpose<'_>,
) -> Result<String, PasskeyProblem> {
    // A page of another origin could have passed our challenge to the user's device.
    let is_ours = site(core).is_some_and(|site| site.origin == used.origin);
    let (Some((open, code)), true) = (used.challenge.split_at_checked(END + NONCE), is_ours) else {
        return Err(PasskeyProblem::Challenge);
    };

    let code = std::str::from_utf8(code).unwrap_or_default();
    let (end, nonce) = open.split_at(END);
    let end: [u8; END] = end.try_into().map_err(|_| PasskeyProblem::Challenge)?;

    let is_known = is_link(core, &purpose.text(), &BASE64URL.encode(open), code)?;
    if is_known && i64::from_be_bytes(end) > core.clock.now().as_millis() {
        Ok(BASE64URL.encode(nonce))
    } else {
        Err(PasskeyProblem::Challenge)
    }
}

/// Kinds of keys that passkeys have.
enum KeyKind {
    P256,
    Ed25519,
    Rsa,
}

/// Reads a public key: `SubjectPublicKeyInfo` in DER, base64url.
fn read(public_key: &str) -> Option<(KeyKind, Vec<u8>)> {
    let der = BASE64URL.decode(public_key).ok()?;
    let info = SubjectPublicKeyInfoRef::from_der(&der).ok()?;
    let kind = match info.algorithm.oid {
        EC if info.algorithm.parameters_oid() == Ok(P256) => KeyKind::P256,
        ED25519 => KeyKind::Ed25519,
        RSA => KeyKind::Rsa,
        _ => return None,
    };

    Some((kind, info.subject_public_key.as_bytes()?.to_vec()))
}

fn key(public_key: &str) -> Result<PasskeyKey, PasskeyProblem> {
    let (kind, bytes) = read(public_key).ok_or(PasskeyProblem::Unsupported)?;
    Ok(match kind {
        KeyKind::P256 => PasskeyKey::p256(bytes),
        KeyKind::Ed25519 => PasskeyKey::ed25519(bytes),
        KeyKind::Rsa => PasskeyKey::rsa(bytes),
    })
}

/// Returns the key in the form in which a party registers it; none for RSA.
pub fn party_key(passkey: &Passkey) -> Option<PartyPublicKey> {
    let text = |bytes: &[u8]| BASE64URL.encode(bytes);
    match read(&passkey.public_key)? {
        (KeyKind::Ed25519, x) => Some(PartyPublicKey {
            kty: "OKP".into(),
            crv: "Ed25519".into(),
            x: text(&x),
            y: None,
        }),
        // An uncompressed point, SEC 1.
        (KeyKind::P256, point) if point.len() == 65 => Some(PartyPublicKey {
            kty: "EC".into(),
            crv: "P-256".into(),
            x: text(&point[1..33]),
            y: Some(text(&point[33..])),
        }),
        _ => None,
    }
}

/// Lists the passkeys of a user.
pub async fn list(core: &Core, user: &User) -> Result<Vec<Passkey>, ServiceError> {
    let mut connection = core.store.read().await?;
    Ok(rows::list(&mut connection, user).await?)
}

/// New passkey of a user.
pub struct NewPasskey {
    pub creation: PasskeyCreation,
    /// `SubjectPublicKeyInfo` in DER, base64url.
    pub public_key: String,
    pub name: Option<String>,
}

/// Adds a passkey.
pub async fn add(core: &Core, user: &User, new: NewPasskey) -> Result<Passkey, PasskeyProblem> {
    let used = new.creation.read()?;
    let nonce = answered(core, &used, &Purpose::Add(user))?;
    // Refused now: a key of an unknown kind would never sign in.
    key(&new.public_key)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    spend(&mut tx, &user.org, &nonce, now).await?;

    // The lock serializes additions, so that the limit holds.
    organizations::lock(&mut tx, &user.org).await?;
    if rows::list(&mut tx, user).await?.len() >= MOST {
        return Err(PasskeyProblem::TooMany);
    }

    let passkey = Passkey {
        id: PasskeyId::new(),
        org: user.org.clone(),
        user: user.id.clone(),
        credential_id: new.creation.credential_id,
        public_key: new.public_key,
        name: new.name,
        use_count: i64::from(used.count),
        created_at: now,
        used_at: None,
    };

    match rows::insert(&mut tx, &passkey).await {
        Err(StoreError::Conflict) => return Err(PasskeyProblem::Duplicate),
        inserted => inserted?,
    }

    note(&mut tx, user, "passkey.added", &passkey, now).await?;
    tx.commit().await?;
    Ok(passkey)
}

/// Removes a passkey of a user. One that signs for the organization stays until its key is revoked.
pub async fn remove(core: &Core, user: &User, id: &str) -> Result<(), PasskeyProblem> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let found = rows::list(&mut tx, user).await?;
    let found = found.into_iter().find(|one| one.id.as_str() == id);
    let passkey = found.ok_or(PasskeyProblem::Unknown)?;
    // The party's registered key would point to a passkey that is gone.
    let keys = party_keys::list(&mut tx, &user.org).await?;
    let signs = keys.iter().any(|key| {
        key.revoked_at.is_none() && key.credential() == Some(passkey.credential_id.as_str())
    });
    if signs {
        return Err(PasskeyProblem::Signs);
    }

    if rows::delete(&mut tx, user, Some(&passkey.id)).await? > 0 {
        note(&mut tx, user, "passkey.removed", &passkey, now).await?;
    }

    tx.commit().await?;
    Ok(())
}

async fn note(
    tx: &mut WriteTransaction,
    user: &User,
    action: &str,
    passkey: &Passkey,
    now: Timestamp,
) -> Result<(), StoreError> {
    let details = json!({ "user_id": user.id, "passkey_id": passkey.id, "name": passkey.name });
    let actor = format!("user:{}", user.email);
    credentials::record_by(tx, Some(&user.org), &actor, action, details, now).await
}

/// Uses the random part of a challenge.
async fn spend(
    tx: &mut WriteTransaction,
    org: &OrgId,
    nonce: &str,
    now: Timestamp,
) -> Result<(), PasskeyProblem> {
    match party_keys::use_nonce(tx, org, nonce, now + LIFE, now).await {
        Err(StoreError::Conflict) => Err(PasskeyProblem::Challenge),
        spent => Ok(spent?),
    }
}

/// An answer with a verified signature and challenge.
struct VerifiedAnswer {
    nonce: String,
    count: i64,
}

/// Verifies an assertion with the passkey that it names. Changes nothing.
fn verified(
    core: &Core,
    passkey: &Passkey,
    assertion: &PasskeyAssertion,
    purpose: &Purpose<'_>,
) -> Result<VerifiedAnswer, PasskeyProblem> {
    let used = assertion.verify(&key(&passkey.public_key)?)?;
    Ok(VerifiedAnswer {
        nonce: answered(core, &used, purpose)?,
        count: i64::from(used.count),
    })
}

/// Uses an answer once. `passkey` was read in the transaction.
async fn accept(
    core: &Core,
    tx: &mut WriteTransaction,
    passkey: &Passkey,
    answer: &VerifiedAnswer,
) -> Result<(), PasskeyProblem> {
    let (count, now) = (answer.count, core.clock.now());
    // Many devices do not count and always send 0 (WebAuthn Level 2, section 6.1.1).
    if count <= passkey.use_count && (count, passkey.use_count) != (0, 0) {
        return Err(PasskeyProblem::Copied);
    }
    spend(tx, &passkey.org, &answer.nonce, now).await?;
    Ok(rows::used(tx, passkey, count, now).await?)
}

/// Signs in with a passkey. Returns the secret of the new session.
pub async fn sign_in(
    core: &Core,
    assertion: &PasskeyAssertion,
    origin: RequestOrigin,
) -> Result<LinkToken, PasskeyProblem> {
    let unknown = PasskeyProblem::Unknown;
    if BASE64URL.decode(&assertion.credential_id).is_err() {
        return Err(unknown);
    }

    // Strangers cause no write.
    let mut connection = core.store.read().await?;
    let passkey = rows::of_credential(&mut connection, &assertion.credential_id).await?;
    drop(connection);

    let Some(passkey) = passkey else {
        return Err(unknown);
    };

    let answer = verified(core, &passkey, assertion, &Purpose::SignIn)?;
    let mut tx = core.store.begin().await?;

    // The access of the user may be ending.
    organizations::lock(&mut tx, &passkey.org).await?;
    let again = rows::of_credential(&mut tx, &assertion.credential_id).await?;
    let Some(passkey) = again else {
        return Err(unknown);
    };

    let user = users::get(&mut tx, &passkey.org, &passkey.user).await?;
    let user = user.filter(|user| user.status == UserStatus::Active);
    let user = user.ok_or(unknown)?;
    let organization = organizations::get(&mut tx, &passkey.org).await?;
    let settings = organization.map(|organization| organization.settings);
    if settings.as_ref().is_some_and(OrgSettings::requires_sign_on) {
        return Err(PasskeyProblem::Issuer(passkey.org));
    }

    accept(core, &mut tx, &passkey, &answer).await?;
    let by = json!({ "passkey_id": passkey.id });
    let new = NewSession {
        proves: proves(&passkey, settings.as_ref()),
        ..NewSession::of(core, origin, by)
    };
    let secret = sessions::begin(core, &mut tx, user, new).await?;

    tx.commit().await.map_err(ServiceError::from)?;
    Ok(secret)
}

/// Whether a passkey shows who the user is beside the issuer: one that was added later could have been added in a session
/// that the issuer began.
fn proves(passkey: &Passkey, settings: Option<&OrgSettings>) -> bool {
    let sign_on = settings.and_then(|settings| settings.single_sign_on.as_ref());
    let since = sign_on.and_then(|sign_on| sign_on.since);
    since.is_none_or(|since| passkey.created_at < since)
}

/// Notes that the user of a session showed who they are.
pub async fn confirm(
    core: &Core,
    signed_in: &SignedIn,
    assertion: &PasskeyAssertion,
) -> Result<(), PasskeyProblem> {
    let (user, now) = (&signed_in.user, core.clock.now());
    let mut tx = core.store.begin().await?;

    // First, as the end of an access does.
    organizations::lock(&mut tx, &user.org).await?;
    let found = rows::list(&mut tx, user).await?;
    let found = found
        .into_iter()
        .find(|one| one.credential_id == assertion.credential_id);
    let passkey = found.ok_or(PasskeyProblem::Unknown)?;
    let answer = verified(core, &passkey, assertion, &Purpose::Confirm(signed_in))?;
    accept(core, &mut tx, &passkey, &answer).await?;

    users::confirm_session(&mut tx, &signed_in.session, now).await?;
    let organization = organizations::get(&mut tx, &user.org).await?;
    let settings = organization.map(|organization| organization.settings);
    if proves(&passkey, settings.as_ref()) {
        users::prove(&mut tx, &user.org, &user.id, now).await?;
    }

    tx.commit().await.map_err(ServiceError::from)?;
    Ok(())
}

/// Whether the key of a statement is the passkey of a user who may act for the organization, and the answer was given
/// to a page of this installation. The verification of statements asks.
pub async fn may_sign(
    core: &Core,
    tx: &mut WriteTransaction,
    org: &OrgId,
    key: &PartyPublicKey,
    assertion: &PasskeyAssertion,
    used: &PasskeyUse,
) -> Result<bool, StoreError> {
    let is_ours = site(core).is_some_and(|site| site.origin == used.origin);
    let passkey = rows::of_credential(tx, &assertion.credential_id).await?;

    // The signature covers the key, and not the id of the credential.
    let is_named = |one: &Passkey| one.org == *org && party_key(one).as_ref() == Some(key);
    let Some(passkey) = passkey.filter(is_named) else {
        return Ok(false);
    };

    let user = users::get(tx, org, &passkey.user).await?;
    let may = |user: &User| user.status == UserStatus::Active && user.role.may(Permission::Control);
    Ok(is_ours && user.as_ref().is_some_and(may))
}
