//! Passkeys: signatures that a person's device or security key makes for a page (W3C Web Authentication, level 3).
//!
//! The device signs a challenge together with the origin of the page. A challenge is either one of this installation,
//! for a sign-in, or the hash of a statement of control, which then is evidence.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::Url;

/// Maximum length in characters of each part of an assertion.
const PART_LIMIT: usize = 4000;
/// Bits of the flags in authenticator data: the person touched the device, and was recognized by it.
const PRESENT: u8 = 1;
const RECOGNIZED: u8 = 4;
/// Bit of the flags: a new credential is described.
const ATTESTED: u8 = 64;
/// Lengths in bytes of the parts of authenticator data.
const SITE_HASH: usize = 32;
const HEAD: usize = SITE_HASH + 1 + 4;
const MODEL: usize = 16;

/// Signature of a passkey, with the names of `AuthenticatorAssertionResponse` in this API's spelling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PasskeyAssertion {
    /// Id of the credential, base64url.
    #[schemars(length(max = 4000))]
    pub credential_id: String,
    /// `authenticatorData`, base64url.
    #[schemars(length(max = 4000))]
    pub authenticator_data: String,
    /// `clientDataJSON`, base64url.
    #[schemars(length(max = 4000))]
    pub client_data: String,
    /// Over the authenticator data and the SHA-256 of the client data, base64url.
    #[schemars(length(max = 4000))]
    pub signature: String,
}

/// New credential, as the browser reports it.
#[derive(Clone, Debug, Deserialize)]
pub struct PasskeyCreation {
    pub credential_id: String,
    pub authenticator_data: String,
    pub client_data: String,
}

/// Public key of a passkey in the form that its algorithm needs.
pub struct PasskeyKey {
    algorithm: &'static dyn VerificationAlgorithm,
    bytes: Vec<u8>,
}

impl PasskeyKey {
    /// A point of P-256, uncompressed (SEC 1).
    pub fn p256(point: Vec<u8>) -> Self {
        Self {
            algorithm: &ECDSA_P256_SHA256_ASN1,
            bytes: point,
        }
    }

    /// A public key of Ed25519, 32 bytes.
    pub fn ed25519(key: Vec<u8>) -> Self {
        Self {
            algorithm: &ED25519,
            bytes: key,
        }
    }

    /// A public key of RSA with at least 2048 bits, as `RSAPublicKey` in DER (RFC 8017).
    pub fn rsa(key: Vec<u8>) -> Self {
        Self {
            algorithm: &RSA_PKCS1_2048_8192_SHA256,
            bytes: key,
        }
    }
}

/// What a device stated beside its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasskeyUse {
    /// Origin of the page.
    pub origin: String,
    pub challenge: Vec<u8>,
    /// Number of uses that the device counted; 0 if it does not count.
    pub count: u32,
}

/// Reason why a passkey cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasskeyError {
    #[error("the passkey's answer is malformed: {0}")]
    Malformed(&'static str),
    #[error("the device did not recognize the person")]
    Unattended,
    #[error("the passkey's answer is for another page")]
    Foreign,
    #[error("the signature of the passkey does not fit")]
    Wrong,
}

#[derive(Deserialize)]
struct ClientData {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(rename = "crossOrigin", default)]
    cross_origin: bool,
}

fn part(text: &str) -> Result<Vec<u8>, PasskeyError> {
    let bytes = (text.len() <= PART_LIMIT)
        .then(|| BASE64URL.decode(text).ok())
        .flatten();
    bytes.ok_or(PasskeyError::Malformed("a part is not base64url"))
}

/// Checks what client data and authenticator data say of each other, and returns it with the flags.
fn read(client: &[u8], device: &[u8], kind: &str) -> Result<(PasskeyUse, u8), PasskeyError> {
    let malformed = PasskeyError::Malformed;
    let client: ClientData =
        serde_json::from_slice(client).map_err(|_| malformed("the client data is not readable"))?;
    // Without the kind, a signature for a sign-in could serve as the
    // description of a new passkey, or the reverse.
    if client.kind != kind {
        return Err(malformed("it is for another purpose"));
    }

    let challenge = BASE64URL.decode(&client.challenge);
    let challenge = challenge.map_err(|_| malformed("the challenge is not base64url"))?;
    let (Some(site), Some(&flags), Some(count)) = (
        device.get(..SITE_HASH),
        device.get(SITE_HASH),
        device.get(SITE_HASH + 1..HEAD),
    ) else {
        return Err(malformed("the authenticator data is too short"));
    };

    // Presence alone is a touch that any finder of the key can make. Recognition needs a PIN or the body.
    if flags & PRESENT == 0 || flags & RECOGNIZED == 0 {
        return Err(PasskeyError::Unattended);
    }

    // Passkeys of this program are made for the host of the page, not for a parent domain.
    let host = Url::parse(&client.origin).ok();
    let host = host.as_ref().and_then(Url::host_str).unwrap_or_default();
    if client.cross_origin || Sha256::digest(host)[..] != *site {
        return Err(PasskeyError::Foreign);
    }

    let count = count
        .iter()
        .fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    let used = PasskeyUse {
        origin: client.origin,
        challenge,
        count,
    };

    Ok((used, flags))
}

impl PasskeyAssertion {
    /// Checks the signature, and returns what the device stated. The caller compares origin and challenge.
    ///
    /// # Errors
    /// The assertion is malformed, for another page than its passkey, or not signed by `key`.
    pub fn verify(&self, key: &PasskeyKey) -> Result<PasskeyUse, PasskeyError> {
        let (client, device) = (part(&self.client_data)?, part(&self.authenticator_data)?);
        let signature = part(&self.signature)?;
        let (used, _) = read(&client, &device, "webauthn.get")?;
        // A device signs its own data and the hash of the client data,
        // never the client data (WebAuthn, 6.3.3).
        let signed = [device.as_slice(), &Sha256::digest(&client)[..]].concat();
        UnparsedPublicKey::new(key.algorithm, &key.bytes)
            .verify(&signed, &signature)
            .map_err(|_| PasskeyError::Wrong)?;
        Ok(used)
    }
}

impl PasskeyCreation {
    /// Checks that the new credential belongs to the page, and returns what the device stated. Nothing is signed: a first
    /// use shows that the person has the key.
    ///
    /// # Errors
    /// The description is malformed, or of another credential or page.
    pub fn read(&self) -> Result<PasskeyUse, PasskeyError> {
        let malformed = PasskeyError::Malformed;
        let (client, device) = (part(&self.client_data)?, part(&self.authenticator_data)?);
        let (used, flags) = read(&client, &device, "webauthn.create")?;
        let id = part(&self.credential_id)?;
        let described = device.get(HEAD + MODEL..).unwrap_or_default();
        let length = u16::try_from(id.len()).map_err(|_| malformed("the id is too long"))?;

        // The page sends the id on its own, so it could belong to another credential than the device's data.
        let same = described.starts_with(&length.to_be_bytes())
            && described.get(2..).is_some_and(|rest| rest.starts_with(&id));
        if flags & ATTESTED != 0 && same && id.len() >= 16 {
            Ok(used)
        } else {
            Err(malformed("it describes another credential"))
        }
    }
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::json;

    use super::*;

    const ORIGIN: &str = "https://sign.example";

    fn device(host: &str, flags: u8) -> Vec<u8> {
        let mut data = Sha256::digest(host).to_vec();
        data.push(flags);
        data.extend([0, 0, 1, 2]);
        data
    }

    fn client(kind: &str, origin: &str, crossed: bool) -> Vec<u8> {
        let challenge = BASE64URL.encode(b"challenge");
        json!({ "type": kind, "challenge": challenge, "origin": origin, "crossOrigin": crossed })
            .to_string()
            .into_bytes()
    }

    fn signed(client: &[u8], device: &[u8]) -> (PasskeyAssertion, PasskeyKey) {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random)
                .unwrap();
        let content = [device, &Sha256::digest(client)[..]].concat();
        let signature = pair.sign(&random, &content).unwrap();
        let assertion = PasskeyAssertion {
            credential_id: BASE64URL.encode([7; 16]),
            authenticator_data: BASE64URL.encode(device),
            client_data: BASE64URL.encode(client),
            signature: BASE64URL.encode(signature),
        };

        (
            assertion,
            PasskeyKey::p256(pair.public_key().as_ref().to_vec()),
        )
    }

    #[test]
    fn a_passkey_signs_for_its_page() {
        let get = client("webauthn.get", ORIGIN, false);
        let (one, key) = signed(&get, &device("sign.example", 5));
        let used = one.verify(&key).unwrap();
        assert_eq!((used.origin.as_str(), used.count), (ORIGIN, 258));
        assert_eq!(used.challenge, b"challenge");

        let (_, other) = signed(&get, &device("sign.example", 5));
        assert_eq!(one.verify(&other), Err(PasskeyError::Wrong));

        let longer = PasskeyAssertion {
            authenticator_data: BASE64URL.encode(device("sign.example", 7)),
            ..one.clone()
        };
        assert_eq!(longer.verify(&key), Err(PasskeyError::Wrong));
    }

    #[test]
    fn an_answer_for_another_page_or_without_its_person_is_refused() {
        let get = |origin: &str, crossed: bool| client("webauthn.get", origin, crossed);
        for (client, device, error) in [
            (
                get("https://evil.example", false),
                device("sign.example", 5),
                PasskeyError::Foreign,
            ),
            (
                get(ORIGIN, false),
                device("example", 5),
                PasskeyError::Foreign,
            ),
            (
                get(ORIGIN, true),
                device("sign.example", 5),
                PasskeyError::Foreign,
            ),
            (
                get("null", false),
                device("sign.example", 5),
                PasskeyError::Foreign,
            ),
            (
                get(ORIGIN, false),
                device("sign.example", 1),
                PasskeyError::Unattended,
            ),
            (
                get(ORIGIN, false),
                device("sign.example", 4),
                PasskeyError::Unattended,
            ),
            (
                client("webauthn.create", ORIGIN, false),
                device("sign.example", 5),
                PasskeyError::Malformed("it is for another purpose"),
            ),
            (
                get(ORIGIN, false),
                vec![1; 36],
                PasskeyError::Malformed("the authenticator data is too short"),
            ),
        ] {
            let (one, key) = signed(&client, &device);
            assert_eq!(one.verify(&key), Err(error));
        }

        let (one, key) = signed(b"{}", &device("sign.example", 5));
        assert!(one.verify(&key).is_err());

        let wrong = PasskeyAssertion {
            client_data: "*".into(),
            ..one.clone()
        };
        assert!(wrong.verify(&key).is_err());

        let long = PasskeyAssertion {
            signature: "A".repeat(PART_LIMIT + 4),
            ..one
        };
        assert!(long.verify(&key).is_err());
    }

    #[test]
    fn a_new_passkey_describes_itself() {
        let described = |id: &[u8], flags: u8| {
            let mut data = device("sign.example", flags);
            data.extend([0; MODEL]);
            data.extend(u16::try_from(id.len()).unwrap().to_be_bytes());
            data.extend(id);
            data.extend(b"key");
            data
        };

        let creation = |id: &[u8], device: &[u8], kind: &str| PasskeyCreation {
            credential_id: BASE64URL.encode(id),
            authenticator_data: BASE64URL.encode(device),
            client_data: BASE64URL.encode(client(kind, ORIGIN, false)),
        };
        let id = [9; 20];
        let good = creation(&id, &described(&id, 69), "webauthn.create");
        assert_eq!(good.read().unwrap().origin, ORIGIN);

        for wrong in [
            creation(&id, &described(&id, 5), "webauthn.create"),
            creation(&id, &described(&[8; 20], 69), "webauthn.create"),
            creation(&[9; 19], &described(&id, 69), "webauthn.create"),
            creation(&[9; 4], &described(&[9; 4], 69), "webauthn.create"),
            creation(&id, &device("sign.example", 69), "webauthn.create"),
            creation(&id, &described(&id, 69), "webauthn.get"),
        ] {
            assert!(wrong.read().is_err(), "{wrong:?}");
        }
    }
}
