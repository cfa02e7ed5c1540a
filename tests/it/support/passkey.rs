//! A passkey in software, which answers like a device that counts its uses.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;

/// `SubjectPublicKeyInfo` of P-256 up to the point (RFC 5480).
const SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

pub struct SoftPasskey {
    pair: EcdsaKeyPair,
    id: [u8; 16],
    pub origin: String,
    pub count: u32,
}

impl SoftPasskey {
    pub fn new(origin: &str) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self {
            pair: EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap(),
            id: ring::rand::generate(&random).unwrap().expose(),
            origin: origin.to_owned(),
            count: 0,
        }
    }

    /// Returns another passkey that claims the same credential.
    pub fn with_the_name_of(&self) -> Self {
        Self {
            id: self.id,
            ..Self::new(&self.origin)
        }
    }

    /// Returns the key as a JWK.
    pub fn public_key(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        json!({
            "kty": "EC", "crv": "P-256",
            "x": BASE64URL.encode(&point[1..33]), "y": BASE64URL.encode(&point[33..]),
        })
    }

    fn device(&self, flags: u8) -> Vec<u8> {
        let origin = Url::parse(&self.origin).unwrap();
        let mut data = Sha256::digest(origin.host_str().unwrap()).to_vec();
        data.push(flags);
        data.extend(self.count.to_be_bytes());
        data
    }

    fn client(&self, kind: &str, challenge: &str) -> String {
        json!({ "type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": false })
            .to_string()
    }

    /// Describes the new credential.
    pub fn create(&self, challenge: &str) -> Value {
        let mut device = self.device(0x45);
        device.extend([0; 16]);
        device.extend([0, 16]);
        device.extend(self.id);
        device.extend(b"a key in CBOR");

        let public_key = [&SPKI[..], self.pair.public_key().as_ref()].concat();
        json!({
            "credential_id": BASE64URL.encode(self.id), "authenticator_data": BASE64URL.encode(device),
            "client_data": BASE64URL.encode(self.client("webauthn.create", challenge)),
            "public_key": BASE64URL.encode(public_key),
        })
    }

    /// Answers a challenge.
    pub fn get(&mut self, challenge: &str) -> Value {
        self.count += 1;
        let (device, client) = (self.device(0x05), self.client("webauthn.get", challenge));
        let signed = [device.as_slice(), &Sha256::digest(&client)[..]].concat();
        let signature = self.pair.sign(&SystemRandom::new(), &signed).unwrap();
        json!({
            "credential_id": BASE64URL.encode(self.id), "authenticator_data": BASE64URL.encode(device),
            "client_data": BASE64URL.encode(client), "signature": BASE64URL.encode(signature),
        })
    }
}
