//! Statements that a party signed, as the entries of a ledger keep them.

use serde_json::Value;

use super::formats::LogEvidence;
use holdfast_domain::checkpoint::VerifierKey;
use holdfast_domain::statement::{InstallationName, PartyPublicKey, SignedStatement, Statement};
use holdfast_domain::succession::KeySuccession;

/// A statement with a signature that holds.
pub(crate) struct VerifiedStatement {
    pub statement: Statement,
    /// Of the key that signed it (RFC 7638).
    pub thumbprint: String,
}

/// Verifies the signed statement of an entry: its signature, and that it names the installation of the log. A
/// passkey's answer has to be for a page of that installation.
///
/// # Errors
/// The reason, for people.
pub(crate) fn verified(
    signed: &Value,
    log: Option<&LogEvidence>,
) -> Result<VerifiedStatement, String> {
    let unreadable = |error: serde_json::Error| error.to_string();
    let key: PartyPublicKey =
        serde_json::from_value(signed["public_key"].clone()).map_err(unreadable)?;
    let signed: SignedStatement = serde_json::from_value(signed.clone()).map_err(unreadable)?;
    let used = signed.verify(&key).map_err(|error| error.to_string())?;
    let statement: Statement = serde_json::from_value(signed.statement).map_err(unreadable)?;

    // Statements of early releases name no installation. The report counts them, since their age is no fault.
    if let Some(installation) = &statement.installation {
        if log.is_some_and(|log| !is_of(log, installation)) {
            return Err(format!(
                "the signed statement counts at the installation {} only",
                installation.url
            ));
        }

        // The device signs the origin of the page. Another page could have shown another text to the person.
        let page = used.as_ref().map(|used| used.origin.as_str());
        answered(installation, page)?;
    }

    Ok(VerifiedStatement {
        thumbprint: key.thumbprint(),
        statement,
    })
}

/// Checks that the page that a passkey answered is the installation's.
fn answered(installation: &InstallationName, page: Option<&str>) -> Result<(), String> {
    match page {
        Some(page) if page != installation.url => {
            Err("the passkey answered another page than the installation's".into())
        }
        _ => Ok(()),
    }
}

/// Whether an entry's signed statement is of a release without the name of the installation.
pub(crate) fn is_unnamed(signed: &Value) -> bool {
    signed["statement"].is_object() && signed["statement"]["installation"].is_null()
}

/// Checks that a statement of control is of the installation of its log. Returns the limits of one of an earlier
/// release.
///
/// # Errors
/// The reason, for people.
pub(crate) fn of_installation(
    log: &LogEvidence,
    installation: Option<&InstallationName>,
) -> Result<Option<String>, String> {
    match installation {
        Some(installation) if is_of(log, installation) => Ok(None),
        Some(installation) => Err(format!(
            "it is a statement of the installation {}",
            installation.url
        )),
        None => Ok(Some(
            "it is of a release whose statements named no installation: whether it is of this one or of a restored \
             copy shows in the log only"
                .into(),
        )),
    }
}

/// Whether a log is the one that an installation is named by: one of its keys, the present one or one that was
/// replaced, is the one stated.
fn is_of(log: &LogEvidence, installation: &InstallationName) -> bool {
    // Statements outlive keys, so a key that was replaced since then still names this log.
    let replaced = log.successions.iter().filter_map(|note| {
        let succession = KeySuccession::open(note).ok()?;
        Some([
            succession.old_key().to_string(),
            succession.new_key().to_string(),
        ])
    });
    let mut keys = replaced.flatten().chain([log.public_key.clone()]);

    let named = VerifierKey::parse(&installation.public_key);
    named.is_some_and(|key| key.name() == installation.origin)
        && keys.any(|key| key == installation.public_key)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
    use holdfast_domain::checkpoint::CheckpointSigner;
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    use serde_json::json;

    use super::*;

    const ORIGIN: &str = "vault.example/ledger";

    fn signer(seed: u8) -> CheckpointSigner {
        CheckpointSigner::new(&[seed; 32]).unwrap()
    }

    fn log(public_key: &CheckpointSigner, successions: Vec<String>) -> LogEvidence {
        LogEvidence {
            checkpoint: String::new(),
            public_key: public_key.verifier(ORIGIN).to_string(),
            successions,
            certified: None,
            inclusion: Vec::new(),
        }
    }

    fn named(origin: &str, key: &CheckpointSigner) -> InstallationName {
        InstallationName {
            origin: origin.into(),
            public_key: key.verifier(ORIGIN).to_string(),
            url: "https://vault.example".into(),
        }
    }

    #[test]
    fn an_installation_is_named_by_a_key_of_its_log() {
        let (old, new, foreign) = (signer(1), signer(2), signer(3));
        let succession = KeySuccession::sign(&old, &new, ORIGIN, 7);
        let log = log(&new, vec![succession]);
        assert!(is_of(&log, &named(ORIGIN, &new)));
        assert!(
            is_of(&log, &named(ORIGIN, &old)),
            "signed before the key was replaced"
        );
        assert!(!is_of(&log, &named(ORIGIN, &foreign)));
        assert!(!is_of(&log, &named("copy.example/ledger", &new)));
    }

    #[test]
    fn a_statement_of_control_is_of_the_installation_of_its_log() {
        let log = log(&signer(2), Vec::new());
        let own = named(ORIGIN, &signer(2));
        assert_eq!(of_installation(&log, Some(&own)), Ok(None));

        let foreign = named(ORIGIN, &signer(3));
        let why = "it is a statement of the installation https://vault.example";
        assert_eq!(of_installation(&log, Some(&foreign)), Err(why.into()));

        let note = of_installation(&log, None).unwrap().unwrap();
        assert!(note.starts_with("it is of a release whose statements named no installation"));
        assert!(
            note.ends_with("of a restored copy shows in the log only"),
            "{note}"
        );
    }

    /// Signs a statement that names this installation.
    fn signed(installation: &Value) -> Value {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let key =
            json!({ "kty": "OKP", "crv": "Ed25519", "x": BASE64URL.encode(pair.public_key()) });
        let thumbprint = serde_json::from_value::<PartyPublicKey>(key.clone())
            .unwrap()
            .thumbprint();
        let statement = json!({
            "act": "control.accepted", "party": "org_01h455vb4pex5vsknk084sn02q", "subject": "env_1", "epoch": 1,
            "content": {}, "nonce": "0123456789abcdef", "issued_at": "2026-11-21T09:45:00.000Z",
            "expires_at": "2026-11-21T10:45:00.000Z", "installation": installation,
        });

        let header = BASE64URL.encode(json!({ "alg": "EdDSA", "kid": thumbprint }).to_string());
        let sorted: BTreeMap<_, _> = statement.as_object().unwrap().iter().collect();
        let text = serde_json::to_string(&sorted).unwrap();
        let signature = pair.sign(format!("{header}.{}", BASE64URL.encode(text)).as_bytes());
        let signature = format!("{header}..{}", BASE64URL.encode(signature));
        json!({ "statement": statement, "public_key": key, "signature": signature })
    }

    #[test]
    fn an_act_that_was_signed_for_another_installation_does_not_count() {
        let log = log(&signer(2), Vec::new());
        let own = verified(&signed(&json!(named(ORIGIN, &signer(2)))), Some(&log));
        assert_eq!(own.map(|own| own.statement.subject), Ok("env_1".into()));

        let copy = verified(&signed(&json!(named(ORIGIN, &signer(3)))), Some(&log));
        let why = "the signed statement counts at the installation https://vault.example only";
        assert_eq!(copy.map(|_| ()), Err(why.into()));
        assert!(
            verified(&signed(&Value::Null), Some(&log)).is_ok(),
            "an earlier release"
        );
    }

    #[test]
    fn a_passkey_answers_a_page_of_the_installation() {
        let installation = named(ORIGIN, &signer(2));
        assert_eq!(
            answered(&installation, Some("https://vault.example")),
            Ok(())
        );
        assert_eq!(
            answered(&installation, None),
            Ok(()),
            "a key that is no passkey"
        );

        let why = "the passkey answered another page than the installation's";
        assert_eq!(
            answered(&installation, Some("https://copy.example")),
            Err(why.into())
        );
    }

    #[test]
    fn a_statement_without_an_installation_is_of_an_earlier_release() {
        assert!(is_unnamed(
            &json!({ "statement": { "act": "control.accepted" } })
        ));
        assert!(!is_unnamed(&json!({ "statement": { "installation": {} } })));
        assert!(!is_unnamed(&Value::Null));
    }
}
