//! Signatures of publishers on components and states: Ed25519, and bundles of Sigstore.
//!
//! Bundles are verified offline against a trusted root: the certificate with its entry in a Certificate
//! Transparency log, the entry in the transparency log of signatures, and the signature.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p256::ecdsa::signature::hazmat::PrehashVerifier as _;
use p256::pkcs8::DecodePublicKey as _;
use ring::digest;
use ring::signature::{self as algorithms, UnparsedPublicKey, VerificationAlgorithm};
use serde::{Deserialize, Serialize};
use sigstore_verify::crypto::{
    CryptoProvider, Error as CryptoError, HashContext, SigningScheme, install_default_provider,
};
use sigstore_verify::trust_root::{SIGSTORE_PRODUCTION_TRUSTED_ROOT, TrustedRoot};
use sigstore_verify::types::{Bundle, DerPublicKey, HashAlgorithm, SignatureContent};
use sigstore_verify::{
    Error as VerifyError, PublicKeyVerificationPolicy, VerificationPolicy, VerificationResult,
    Verifier,
};

use crate::disk;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::publisher::Publisher;

/// Type of the payload of attestations (in-toto Attestation Framework 1.0).
const STATEMENT: &str = "application/vnd.in-toto+json";

/// Most log entries of a bundle: Sigstore's clients make one.
const LOG_ENTRIES: usize = 4;
/// Begin of an Ed25519 public key in DER (RFC 8410, section 4).
const ED25519_KEY: [u8; 12] = [48, 42, 48, 5, 6, 3, 43, 101, 112, 3, 33, 0];

/// Reason why a bundle proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error("it is no bundle of Sigstore: {0}")]
    Unreadable(String),
    #[error("it has no proof of an entry in a transparency log")]
    NotLogged,
    #[error("it has more than {LOG_ENTRIES} entries of transparency logs")]
    TooManyEntries,
    #[error("it is about another file")]
    OtherFile,
    #[error("it is not signed with a key of a trusted publisher")]
    UnknownKey,
    #[error(transparent)]
    Invalid(VerifyError),
}

/// Reason why a trusted root cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    #[error(transparent)]
    Unreadable(#[from] std::io::Error),
    #[error("it is no trusted root of Sigstore: {0}")]
    Refused(#[from] Box<VerifyError>),
}

/// What a verified bundle proves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedBundle {
    /// Name of the trusted publisher; none if the identity is not trusted.
    pub publisher: Option<String>,
    /// Identity in the certificate; none for a key.
    pub identity: Option<String>,
    pub issuer: Option<String>,
    /// Time of the entry in the transparency log, where the log signs it.
    pub logged_at: Option<Timestamp>,
    /// Type of the statement; none for a plain signature.
    pub predicate_type: Option<String>,
}

/// Verifies bundles of Sigstore.
pub struct BundleVerifier(Verifier);

impl BundleVerifier {
    /// Creates a verifier with a trusted root in a file, or that of Sigstore's public instance.
    ///
    /// # Errors
    /// The file cannot be read, or is no trusted root.
    pub fn new(root: Option<&Path>) -> Result<Self, RootError> {
        // Only the first provider of a process counts, and all are the same.
        let _ = install_default_provider(&RingProvider);
        let text = match root {
            Some(file) => String::from_utf8_lossy(&disk::read(file)?).into_owned(),
            None => SIGSTORE_PRODUCTION_TRUSTED_ROOT.to_owned(),
        };
        let root = TrustedRoot::from_json(&text);
        let root = root.map_err(|error| Box::new(VerifyError::from(error)))?;

        Ok(Self(Verifier::new(&root).map_err(Box::new)?))
    }

    /// Verifies a bundle about one of some files. Returns also which file it is about.
    ///
    /// # Errors
    /// The bundle is about another file, not logged or not valid; or it was made with a key of no publisher.
    pub fn verify(
        &self,
        publishers: &BTreeMap<String, Publisher>,
        files: &[&[u8]],
        text: &str,
    ) -> Result<(VerifiedBundle, usize), BundleError> {
        // Cheap checks come first: a bundle is a caller's input, and each proof costs several signatures.
        let unreadable = |error: &dyn ToString| BundleError::Unreadable(error.to_string());
        let bundle = Bundle::from_json(text).map_err(|error| unreadable(&error))?;
        let logged = &bundle.verification_material.tlog_entries;
        if logged.is_empty() || logged.iter().any(|entry| entry.inclusion_proof.is_none()) {
            return Err(BundleError::NotLogged);
        }
        // Each entry costs the verification of a proof, so a bundle must not bring thousands.
        if logged.len() > LOG_ENTRIES {
            return Err(BundleError::TooManyEntries);
        }

        let predicate_type = match statement(&bundle) {
            Some(statement) => statement["predicateType"].as_str().map(str::to_owned),
            None => None,
        };
        if bundle.signing_certificate().is_some() {
            let (proven, about) =
                self.about_one(files, &bundle, &VerificationPolicy::any_identity())?;
            let identity = proven.identity().map(ToString::to_string);
            let issuer = proven.issuer().map(str::to_owned);
            // Identities are compared after the proof, because a certificate is only a claim before. The
            // issuer counts, too: another one could vouch for the same name.
            let trusted = publishers.iter().find(|(_, publisher)| {
                publisher.identity.is_some()
                    && publisher.identity == identity
                    && publisher.issuer == issuer
            });
            let verified = VerifiedBundle {
                publisher: trusted.map(|(name, _)| name.clone()),
                identity,
                issuer,
                logged_at: logged_at(&proven),
                predicate_type,
            };

            return Ok((verified, about));
        }

        // A bundle with a key does not name its publisher reliably, so each trusted key is tried.
        for (name, publisher) in publishers {
            let key = publisher.pem().and_then(|pem| public_key(pem).ok());
            let Some(key) = key else { continue };
            let policy = PublicKeyVerificationPolicy::new(key);
            match self.about_one(files, &bundle, &policy) {
                Ok((proven, about)) => {
                    let verified = VerifiedBundle {
                        publisher: Some(name.clone()),
                        identity: None,
                        issuer: None,
                        logged_at: logged_at(&proven),
                        predicate_type,
                    };
                    return Ok((verified, about));
                }
                // The files are the same for every key, so no other key can make it fit.
                Err(BundleError::OtherFile) => return Err(BundleError::OtherFile),
                Err(_) => {}
            }
        }

        Err(BundleError::UnknownKey)
    }

    fn about_one(
        &self,
        files: &[&[u8]],
        bundle: &Bundle,
        policy: &impl sigstore_verify::Policy,
    ) -> Result<(VerificationResult, usize), BundleError> {
        for (at, file) in files.iter().enumerate() {
            match self.0.verify(*file, bundle, policy) {
                Ok(proven) => return Ok((proven, at)),
                // A bundle may be about the component or about its manifest in a registry, so the next file
                // is tried.
                Err(VerifyError::ArtifactMismatch(_)) => {}
                Err(error) => return Err(BundleError::Invalid(error)),
            }
        }
        Err(BundleError::OtherFile)
    }
}

fn logged_at(proven: &VerificationResult) -> Option<Timestamp> {
    let time = proven.integrated_time()?;
    Timestamp::parse(&time.to_string())
}

/// Returns the statement of an attestation.
fn statement(bundle: &Bundle) -> Option<serde_json::Value> {
    let SignatureContent::DsseEnvelope(envelope) = &bundle.content else {
        return None;
    };
    let is_statement = envelope.payload_type == STATEMENT;
    let payload = envelope.payload.as_bytes();
    is_statement.then(|| serde_json::from_slice(payload).ok())?
}

/// Returns the statement in the text of a bundle that was verified before.
pub fn statement_of(text: &str) -> Option<serde_json::Value> {
    statement(&Bundle::from_json(text).ok()?)
}

/// Parses the public key of Sigstore bundles: ECDSA with P-256, which Sigstore's clients make, or Ed25519.
fn public_key(pem: &str) -> Result<DerPublicKey, String> {
    let key = DerPublicKey::from_pem(pem).map_err(|error| error.to_string())?;
    // A key that the verifier cannot use would look like one that signed nothing.
    let is_p256 = p256::PublicKey::from_public_key_der(key.as_bytes()).is_ok();
    if is_p256 || ed25519_of(key.as_bytes()).is_some() {
        Ok(key)
    } else {
        Err("it is neither of ECDSA with P-256 nor of Ed25519".into())
    }
}

/// Returns the Ed25519 key in a key in DER.
fn ed25519_of(der: &[u8]) -> Option<&[u8]> {
    let key = der.strip_prefix(&ED25519_KEY)?;
    (key.len() == 32).then_some(key)
}

/// Returns the first publisher with a key that cannot be used, and why.
pub fn problem_of(publishers: &BTreeMap<String, Publisher>) -> Option<(&str, String)> {
    publishers.iter().find_map(|(name, publisher)| {
        let problem = public_key(publisher.pem()?).err()?;
        Some((name.as_str(), format!("has a key of no use: {problem}")))
    })
}

/// Returns the first of several signers that cannot be used, and why. One key does not count twice.
pub fn problem_of_signers(signers: &BTreeMap<String, Publisher>) -> Option<(&str, String)> {
    let mut seen = BTreeSet::new();
    let twice = signers.iter().find(|(_, signer)| {
        let der = signer.pem().and_then(|pem| public_key(pem).ok());
        let key = match &der {
            // One Ed25519 key can be given as hex or as PEM. Compared by bytes, one person does not count as
            // two of n.
            Some(der) => ed25519_of(der.as_bytes())
                .unwrap_or(der.as_bytes())
                .to_vec(),
            None => signer.ed25519().unwrap_or_default(),
        };
        !key.is_empty() && !seen.insert(key)
    });

    let twice = twice.map(|(name, _)| (name.as_str(), "has the key of another".to_owned()));
    problem_of(signers).or(twice)
}

/// Returns the publishers with an Ed25519 key that one of some signatures is of, each with its signature.
pub fn ed25519<'a, 'b>(
    publishers: &'a BTreeMap<String, Publisher>,
    message: &[u8],
    signatures: &'b [String],
) -> Vec<(&'a str, &'b str)> {
    let decoded = signatures.iter().map(|signature| {
        let signature = signature.trim();
        // A signature that is no base64 verifies with no key, so it needs no error of its own.
        (signature, STANDARD.decode(signature).unwrap_or_default())
    });
    let decoded: Vec<(&str, Vec<u8>)> = decoded.collect();
    let by = |publisher: &Publisher| {
        let key = UnparsedPublicKey::new(&algorithms::ED25519, publisher.ed25519()?);
        let mut decoded = decoded.iter();
        decoded.find(|(_, signature)| key.verify(message, signature).is_ok())
    };

    let publishers = publishers.iter();
    publishers
        .filter_map(|(name, publisher)| Some((name.as_str(), by(publisher)?.0)))
        .collect()
}

/// Cryptography for bundles: the same library as for TLS.
#[derive(Debug)]
struct RingProvider;

struct RingHash(digest::Context);

impl HashContext for RingHash {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self: Box<Self>) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

fn unsupported(what: impl ToString) -> CryptoError {
    CryptoError::UnsupportedAlgorithm(what.to_string())
}

impl CryptoProvider for RingProvider {
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Box<dyn HashContext>, CryptoError> {
        let algorithm = match algorithm {
            HashAlgorithm::Sha2256 => &digest::SHA256,
            HashAlgorithm::Sha2384 => &digest::SHA384,
            HashAlgorithm::Sha2512 => &digest::SHA512,
            other => return Err(unsupported(format!("{other:?}"))),
        };
        Ok(Box::new(RingHash(digest::Context::new(algorithm))))
    }

    fn verify_raw(
        &self,
        scheme: SigningScheme,
        key: &[u8],
        data: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        let algorithm: &dyn VerificationAlgorithm = match scheme {
            SigningScheme::EcdsaP256Sha256 => &algorithms::ECDSA_P256_SHA256_ASN1,
            SigningScheme::EcdsaP256Sha384 => &algorithms::ECDSA_P256_SHA384_ASN1,
            SigningScheme::EcdsaP384Sha256 => &algorithms::ECDSA_P384_SHA256_ASN1,
            SigningScheme::EcdsaP384Sha384 => &algorithms::ECDSA_P384_SHA384_ASN1,
            SigningScheme::Ed25519 => &algorithms::ED25519,
            SigningScheme::RsaPkcs1Sha256 => &algorithms::RSA_PKCS1_2048_8192_SHA256,
            SigningScheme::RsaPkcs1Sha384 => &algorithms::RSA_PKCS1_2048_8192_SHA384,
            SigningScheme::RsaPkcs1Sha512 => &algorithms::RSA_PKCS1_2048_8192_SHA512,
            SigningScheme::RsaPssSha256 => &algorithms::RSA_PSS_2048_8192_SHA256,
            SigningScheme::RsaPssSha384 => &algorithms::RSA_PSS_2048_8192_SHA384,
            SigningScheme::RsaPssSha512 => &algorithms::RSA_PSS_2048_8192_SHA512,
            other => return Err(unsupported(format!("{other:?}"))),
        };

        let key = UnparsedPublicKey::new(algorithm, key);
        let refused = |_| CryptoError::Verification("the signature is not of the key".into());
        key.verify(data, signature).map_err(refused)
    }

    fn verify_prehashed(
        &self,
        scheme: SigningScheme,
        key: &[u8],
        digest: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        // ring signs and verifies messages only. Of the digests, p256 verifies the one that Sigstore's
        // clients use.
        if scheme != SigningScheme::EcdsaP256Sha256 {
            return Err(unsupported(format!("{scheme:?} of a digest")));
        }
        let refused = |_| CryptoError::Verification("the signature is not of the key".into());
        let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(key).map_err(refused)?;
        let signature = p256::ecdsa::DerSignature::from_bytes(signature).map_err(refused)?;
        key.verify_prehash(digest, &signature).map_err(refused)
    }
}
