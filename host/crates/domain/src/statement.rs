//! Statements: acts of control that a party signs with a key of its own. The operator of the
//! installation cannot make them without the key.
//!
//! A statement is JSON, signed in its canonical form (RFC 8785). The signature is a compact JWS with
//! detached content (RFC 7515, appendix F) that names the key by its thumbprint (RFC 7638), or that of a
//! passkey with the SHA-256 of the canonical form as its challenge.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use ring::signature::{ECDSA_P256_SHA256_FIXED, ED25519, UnparsedPublicKey, VerificationAlgorithm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::clock::Timestamp;
use super::id::OrgId;
use super::passkey::{PasskeyAssertion, PasskeyError, PasskeyKey, PasskeyUse};

/// Maximum length in bytes of a signature. A header has about 80.
const SIGNATURE_LIMIT: usize = 2000;

/// Public key of a party, as a JWK (RFC 7517): Ed25519 (RFC 8037) or P-256 (RFC 7518).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartyPublicKey {
    /// `OKP` for Ed25519, `EC` for P-256.
    pub kty: String,
    /// `Ed25519` or `P-256`.
    pub crv: String,
    /// 32 bytes in base64url.
    pub x: String,
    /// 32 bytes in base64url, for P-256 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<String>,
}

/// Statement of a party about its act.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "act": "control.accepted", "party": "org_01jdk7m3e8f4x9s2w5v6b0c1db",
    "subject": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "epoch": 1,
    "content": { "document_hash": "9f86d081884c7d65…" }, "nonce": "Zk1vQ2x6bG9wTnlwVmFy",
    "issued_at": "2026-11-21T09:45:00.000Z", "expires_at": "2026-11-21T10:45:00.000Z",
    "installation": {
        "origin": "vault.example/ledger", "public_key": "vault.example/ledger+c7902100+AQ3k…",
        "url": "https://vault.example",
    },
}]))]
pub struct Statement {
    /// The event that the act causes.
    pub act: String,
    /// The acting organization.
    pub party: OrgId,
    /// Id of the envelope, transfer or key that the act is about; the party for a new transfer or key.
    pub subject: String,
    /// Epoch of the record before the act; null if the subject is no record.
    pub epoch: Option<i64>,
    /// Particulars of the act, as in the draft of the error `control_signature_required`.
    pub content: Value,
    /// Chosen by the party, and used once.
    #[schemars(length(min = 16, max = 64))]
    pub nonce: String,
    pub issued_at: Timestamp,
    /// At most 24 hours after `issued_at`.
    pub expires_at: Timestamp,
    /// Where the act counts: a restored copy of the installation has another address, and a statement about its record
    /// is none about this one. Statements of earlier releases lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation: Option<InstallationName>,
}

/// Names an installation by its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstallationName {
    /// Name of the log, as `origin` of `GET /ledger/head`.
    pub origin: String,
    /// Key of the log, as `public_key` of `GET /ledger/head`.
    pub public_key: String,
    /// Origin of its console, which a passkey signs.
    pub url: String,
}

/// A statement with its signature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SignedStatement {
    /// As it was signed: members that are unknown here would belong to the signature, too.
    #[schemars(with = "Statement")]
    pub statement: Value,
    /// Compact JWS with detached content: `header..signature`. The header has `alg` (`EdDSA` or `ES256`)
    /// and `kid`, the thumbprint of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2000))]
    pub signature: Option<String>,
    /// Instead of `signature`: that of a passkey, made on a page of this installation. Its challenge is the
    /// SHA-256 of the canonical statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passkey: Option<PasskeyAssertion>,
}

/// Name of the key that signed a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignerName<'a> {
    /// RFC 7638.
    Thumbprint(String),
    /// Id of a passkey's credential.
    Credential(&'a str),
}

/// Reason why a signature cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("the signature is not a detached JWS: {0}")]
    Malformed(&'static str),
    #[error("the public key is not acceptable: {0}")]
    Key(&'static str),
    #[error("the signature does not fit the statement and the key")]
    Wrong,
    #[error("send either signature or passkey")]
    Ambiguous,
    #[error(transparent)]
    Passkey(#[from] PasskeyError),
}

#[derive(Deserialize)]
struct JwsHeader {
    alg: String,
    kid: String,
    crit: Option<Value>,
}

impl PartyPublicKey {
    /// Returns the thumbprint of the key (RFC 7638): SHA-256 in base64url.
    pub fn thumbprint(&self) -> String {
        let members = canonical(&json!(self));
        BASE64URL.encode(Sha256::digest(members))
    }

    /// Returns the algorithm, its names in a JWS, and the key in the form that it needs.
    fn parts(&self) -> Result<Verifier, SignatureError> {
        let part = |text: &str| -> Result<[u8; 32], SignatureError> {
            let bytes = BASE64URL.decode(text).ok();
            let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
            bytes.ok_or(SignatureError::Key("x and y are 32 bytes in base64url"))
        };
        match (self.kty.as_str(), self.crv.as_str(), &self.y) {
            ("OKP", "Ed25519", None) => Ok(Verifier {
                algorithm: &ED25519,
                // The second name is the one of RFC 9864.
                names: &["EdDSA", "Ed25519"],
                key: part(&self.x)?.to_vec(),
            }),
            ("EC", "P-256", Some(y)) => Ok(Verifier {
                algorithm: &ECDSA_P256_SHA256_FIXED,
                names: &["ES256"],
                // An uncompressed point, SEC 1.
                key: [&[4], part(&self.x)?.as_slice(), part(y)?.as_slice()].concat(),
            }),
            _ => Err(SignatureError::Key("it is neither Ed25519 nor P-256")),
        }
    }
}

impl PartyPublicKey {
    /// Returns the key of a passkey.
    fn passkey(&self) -> Result<PasskeyKey, SignatureError> {
        let key = self.parts()?.key;
        Ok(match self.y {
            Some(_) => PasskeyKey::p256(key),
            None => PasskeyKey::ed25519(key),
        })
    }
}

struct Verifier {
    algorithm: &'static dyn VerificationAlgorithm,
    names: &'static [&'static str],
    key: Vec<u8>,
}

impl SignedStatement {
    /// Returns the name of the key that the signature is of.
    ///
    /// # Errors
    /// There is not exactly one signature, or it is not a detached JWS.
    pub fn signer(&self) -> Result<SignerName<'_>, SignatureError> {
        match (&self.signature, &self.passkey) {
            (Some(jws), None) => Ok(SignerName::Thumbprint(jws_parts(jws)?.1.kid)),
            (None, Some(passkey)) => Ok(SignerName::Credential(&passkey.credential_id)),
            _ => Err(SignatureError::Ambiguous),
        }
    }

    /// Checks that `key` signed the statement. Returns what the device stated, if the key is a passkey's.
    ///
    /// # Errors
    /// The signature is malformed, of another key, or over other content.
    pub fn verify(&self, key: &PartyPublicKey) -> Result<Option<PasskeyUse>, SignatureError> {
        match (&self.signature, &self.passkey) {
            (Some(jws), None) => self.verify_jws(jws, key).map(|()| None),
            (None, Some(passkey)) => {
                let used = passkey.verify(&key.passkey()?)?;
                // The challenge ties the gesture to this statement. Another statement
                // shown on the same page does not fit.
                if used.challenge == challenge(&self.statement) {
                    Ok(Some(used))
                } else {
                    Err(SignatureError::Wrong)
                }
            }
            // With both, two verifiers could check different ones and disagree about the statement.
            _ => Err(SignatureError::Ambiguous),
        }
    }

    fn verify_jws(&self, jws: &str, key: &PartyPublicKey) -> Result<(), SignatureError> {
        let (header_text, header, signature) = jws_parts(jws)?;
        let verifier = key.parts()?;
        // The algorithm follows from the key, never from the header: RFC 8725, 3.1, warns of such confusions.
        if !verifier.names.contains(&header.alg.as_str()) {
            return Err(SignatureError::Malformed("alg is not the one of the key"));
        }
        if header.kid != key.thumbprint() {
            return Err(SignatureError::Wrong);
        }

        let content = BASE64URL.encode(canonical(&self.statement));
        let signed = format!("{header_text}.{content}");
        UnparsedPublicKey::new(verifier.algorithm, verifier.key)
            .verify(signed.as_bytes(), &signature)
            .map_err(|_| SignatureError::Wrong)
    }
}

/// Returns what a passkey signs for a statement: the SHA-256 of its canonical form.
pub fn challenge(statement: &Value) -> Vec<u8> {
    Sha256::digest(canonical(statement)).to_vec()
}

/// Returns header text, header and signature of a detached JWS.
fn jws_parts(jws: &str) -> Result<(&str, JwsHeader, Vec<u8>), SignatureError> {
    let malformed = SignatureError::Malformed;
    if jws.len() > SIGNATURE_LIMIT {
        return Err(malformed("it is too long"));
    }

    let (text, signature) = jws.split_once("..").ok_or(malformed("it has no `..`"))?;
    let header = BASE64URL.decode(text).ok();
    let header = header.and_then(|header| serde_json::from_slice(&header).ok());
    let header: JwsHeader = header.ok_or(malformed("the header needs alg and kid"))?;
    // RFC 7515, 4.1.11: a verifier must refuse extensions that it does not understand.
    if header.crit.is_some() {
        return Err(malformed("crit is not supported"));
    }

    let signature = BASE64URL.decode(signature);
    let signature = signature.map_err(|_| malformed("the signature is not base64url"))?;
    Ok((text, header, signature))
}

/// RFC 8785. Values that were parsed from JSON always have a canonical form.
fn canonical(value: &Value) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8037, appendix A: the key, its thumbprint, and a signature made with it.
    const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    const THUMBPRINT: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
    const D: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";

    fn key() -> PartyPublicKey {
        PartyPublicKey {
            kty: "OKP".into(),
            crv: "Ed25519".into(),
            x: X.into(),
            y: None,
        }
    }

    fn signed(header: &Value, statement: Value) -> SignedStatement {
        let pair = ring::signature::Ed25519KeyPair::from_seed_and_public_key(
            &BASE64URL.decode(D).unwrap(),
            &BASE64URL.decode(X).unwrap(),
        );
        let header = BASE64URL.encode(header.to_string());
        let content = BASE64URL.encode(canonical(&statement));
        let signature = pair.unwrap().sign(format!("{header}.{content}").as_bytes());

        SignedStatement {
            statement,
            signature: Some(format!("{header}..{}", BASE64URL.encode(signature))),
            passkey: None,
        }
    }

    #[test]
    fn a_statement_is_signed_in_its_canonical_form() {
        assert_eq!(key().thumbprint(), THUMBPRINT);
        let header = json!({ "alg": "EdDSA", "kid": THUMBPRINT });
        let one = signed(&header, json!({ "b": 1, "a": "é" }));
        assert_eq!(one.verify(&key()), Ok(None));
        assert_eq!(
            one.signer(),
            Ok(SignerName::Thumbprint(THUMBPRINT.to_owned()))
        );

        let text = r#"{"a":"\u00e9","b":1.0}"#;
        let same = SignedStatement {
            statement: serde_json::from_str(text).unwrap(),
            ..one.clone()
        };
        assert_eq!(same.verify(&key()), Ok(None));

        let other = SignedStatement {
            statement: json!({ "b": 2, "a": "é" }),
            ..one
        };
        assert_eq!(other.verify(&key()), Err(SignatureError::Wrong));
    }

    #[test]
    fn a_signature_in_another_form_or_of_another_key_is_refused() {
        let statement = json!({ "act": "control.accepted" });
        let wrong = [
            json!({ "alg": "none", "kid": THUMBPRINT }),
            json!({ "alg": "ES256", "kid": THUMBPRINT }),
            json!({ "alg": "EdDSA", "kid": "other" }),
            json!({ "alg": "EdDSA" }),
            json!({ "alg": "EdDSA", "kid": THUMBPRINT, "crit": ["b64"], "b64": false }),
        ];
        for header in &wrong {
            let one = signed(header, statement.clone());
            assert!(one.verify(&key()).is_err(), "{header}");
        }

        let good = signed(&json!({ "alg": "EdDSA", "kid": THUMBPRINT }), statement);
        let jws = good.signature.as_deref().unwrap();
        let attached = jws.replacen("..", ".e30.", 1);
        for signature in ["", "..", "a..b", attached.as_str(), &"a".repeat(3000)] {
            let one = SignedStatement {
                signature: Some(signature.to_owned()),
                ..good.clone()
            };
            assert!(one.verify(&key()).is_err(), "{signature}");
        }

        for (kty, crv, x, y) in [
            ("OKP", "X25519", X, None),
            ("EC", "P-256", X, None),
            ("EC", "P-384", X, Some(X)),
            ("OKP", "Ed25519", "11qY", None),
            ("EC", "P-256", X, Some(X)),
        ] {
            let other = PartyPublicKey {
                kty: kty.into(),
                crv: crv.into(),
                x: x.into(),
                y: y.map(str::to_owned),
            };
            assert!(good.verify(&other).is_err(), "{kty} {crv}");
        }
    }
}
