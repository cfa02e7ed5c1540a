//! Signed acts: a party that has registered a key signs all its acts from then on.

use std::time::Duration;

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use holdfast_domain::control::PartyKey;
use holdfast_domain::event::EventType;
use holdfast_domain::id::OrgId;
use holdfast_domain::statement::{PartyPublicKey, SignedStatement, SignerName, Statement};
use holdfast_domain::token::random;
use holdfast_platform::access::passkeys;
use holdfast_platform::log;
use holdfast_platform::problems::StatementProblem;
use holdfast_platform::{Core, ServiceError};
use holdfast_store::{StoreError, WriteTransaction, party_keys};

/// Time that a draft gives the party to sign.
const DRAFT_LIFE: Duration = Duration::from_secs(3600);
/// Longest time between `issued_at` and `expires_at`.
pub(crate) const LONGEST_LIFE: Duration = Duration::from_secs(24 * 3600);
/// How far a party's clock may be ahead.
const AHEAD: Duration = Duration::from_secs(300);

/// Body of an act without particulars.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{}]))]
pub struct SignedForm {
    /// Your statement about this act, if your organization has registered a key.
    pub signed: Option<SignedStatement>,
}

/// Content that the statement about an act must have.
pub struct ExpectedStatement<'a> {
    pub act: EventType,
    pub party: &'a OrgId,
    pub subject: &'a str,
    pub epoch: Option<i64>,
    pub content: Value,
}

/// Requires a signed statement of a party that has registered a key, and verifies it. Returns it as the
/// ledger keeps it; `None` for a party without keys. Uses up the nonce in the transaction of the act.
pub async fn require(
    core: &Core,
    tx: &mut WriteTransaction,
    expected: &ExpectedStatement<'_>,
    signed: Option<&SignedStatement>,
) -> Result<Option<Value>, ServiceError> {
    let keys = party_keys::list(tx, expected.party).await?;
    let Some(signed) = signed else {
        // Revoked keys count, too. Otherwise an intruder would first revoke the key, and then act unsigned.
        if keys.is_empty() {
            return Ok(None);
        }
        return Err(missing(core, tx, expected, "signed").await?);
    };

    let key = key_of(&keys, signed)?;
    if key.revoked_at.is_some() {
        return Err(StatementProblem::Revoked.into());
    }

    verify(core, tx, expected, signed, &key.public_key).await?;
    Ok(Some(evidence(signed, &key.public_key)))
}

/// Returns the key that a signature names.
fn key_of<'a>(
    keys: &'a [PartyKey],
    signed: &SignedStatement,
) -> Result<&'a PartyKey, StatementProblem> {
    let invalid = StatementProblem::Invalid;
    let name = signed.signer();
    let name = name.map_err(|error| invalid(error.to_string()))?;
    let is_named = |key: &&PartyKey| match &name {
        SignerName::Thumbprint(thumbprint) => key.public_key.thumbprint() == *thumbprint,
        SignerName::Credential(id) => key.credential() == Some(*id),
    };
    let found = keys.iter().find(is_named);

    found.ok_or_else(|| invalid("your organization has no such key".into()))
}

/// Verifies that `key` signed the expected statement, and uses up its nonce.
pub async fn verify(
    core: &Core,
    tx: &mut WriteTransaction,
    expected: &ExpectedStatement<'_>,
    signed: &SignedStatement,
    key: &PartyPublicKey,
) -> Result<(), ServiceError> {
    let invalid = StatementProblem::Invalid;
    let verified = signed.verify(key);
    let used = verified.map_err(|error| invalid(error.to_string()))?;
    if let (Some(passkey), Some(used)) = (&signed.passkey, &used)
        && !passkeys::may_sign(core, tx, expected.party, key, passkey, used).await?
    {
        return Err(StatementProblem::Revoked.into());
    }

    let read = serde_json::from_value(signed.statement.clone());
    let statement: Statement = read.map_err(|error| invalid(error.to_string()))?;
    let installation = log::installation(core, tx).await?;
    let differs = [
        // A statement that was made for a restored copy of this installation counts there only.
        (
            "installation",
            statement.installation.as_ref() != Some(&installation),
        ),
        ("act", statement.act != expected.act.as_str()),
        ("party", statement.party != *expected.party),
        ("subject", statement.subject != expected.subject),
        ("content", statement.content != expected.content),
    ];

    if let Some((member, _)) = differs.iter().find(|(_, differs)| *differs) {
        return Err(StatementProblem::Mismatch(member).into());
    }
    // A code of its own: the party has signed rightly, and only has to sign again.
    if statement.epoch != expected.epoch {
        return Err(StatementProblem::Outdated.into());
    }

    let (now, until) = (core.clock.now(), statement.expires_at);
    // Nonces are kept until their statement ends, so a bounded life bounds the table.
    let issued = statement.issued_at;
    if until <= now || issued > now + AHEAD || until > issued + LONGEST_LIFE {
        return Err(StatementProblem::Expired.into());
    }
    if !(16..=64).contains(&statement.nonce.len()) {
        return Err(invalid("the nonce has 16 to 64 characters".into()).into());
    }

    // In the transaction of the act: a refused act gives its nonce back.
    match party_keys::use_nonce(tx, expected.party, &statement.nonce, until, now).await {
        Err(StoreError::Conflict) => Err(StatementProblem::Replayed.into()),
        used => Ok(used?),
    }
}

/// Returns a signed statement as the ledger keeps it.
pub fn evidence(signed: &SignedStatement, key: &PartyPublicKey) -> Value {
    let mut evidence = json!(signed);
    evidence["public_key"] = json!(key);
    evidence
}

/// Asks the party to sign.
pub async fn missing(
    core: &Core,
    connection: &mut SqlConnection,
    expected: &ExpectedStatement<'_>,
    member: &'static str,
) -> Result<ServiceError, ServiceError> {
    let now = core.clock.now();
    // A registration may wait for a second person.
    let life = match expected.act {
        EventType::ControlKeyRegistered => LONGEST_LIFE,
        _ => DRAFT_LIFE,
    };
    let draft = Statement {
        act: expected.act.to_string(),
        party: expected.party.clone(),
        subject: expected.subject.into(),
        epoch: expected.epoch,
        content: expected.content.clone(),
        nonce: hex::encode(random::<16>()),
        issued_at: now,
        expires_at: now + life,
        installation: Some(log::installation(core, connection).await?),
    };

    let draft = Box::new(draft);
    Ok(StatementProblem::Missing { draft, member }.into())
}
