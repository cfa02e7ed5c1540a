//! Statements that a party signed, as the entries of a ledger keep them.

use serde_json::Value;

use super::formats::LogEvidence;
use holdfast_domain::checkpoint::VerifierKey;
use holdfast_domain::statement::{InstallationName, PartyPublicKey, SignedStatement, Statement};
use holdfast_domain::succession::KeySuccession;

/// A statement whose signature holds.
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

    if let Some(installation) = &statement.installation {
        if log.is_some_and(|log| !is_of(log, installation)) {
            return Err(format!(
                "the signed statement counts at the installation {} only",
                installation.url
            ));
        }
        if used.is_some_and(|used| used.origin != installation.url) {
            return Err("the passkey answered another page than the installation's".into());
        }
    }
    Ok(VerifiedStatement {
        thumbprint: key.thumbprint(),
        statement,
    })
}

/// Whether an entry's signed statement is of a release whose statements named no installation.
pub(crate) fn is_unnamed(signed: &Value) -> bool {
    signed["statement"].is_object() && signed["statement"]["installation"].is_null()
}

/// Whether a log is the one that an installation is named by: one of its keys, the present one or one that was
/// replaced, is the one stated.
pub(crate) fn is_of(log: &LogEvidence, installation: &InstallationName) -> bool {
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
    use holdfast_domain::checkpoint::CheckpointSigner;
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
    fn a_statement_without_an_installation_is_of_an_earlier_release() {
        assert!(is_unnamed(
            &json!({ "statement": { "act": "control.accepted" } })
        ));
        assert!(!is_unnamed(&json!({ "statement": { "installation": {} } })));
        assert!(!is_unnamed(&Value::Null));
    }
}
