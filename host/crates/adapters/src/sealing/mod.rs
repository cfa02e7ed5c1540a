//! Sealing of authoritative copies: a PAdES signature (ETSI EN 319 142-1, level B-B; B-T with a
//! time stamping authority) with ECDSA on P-256. Unless the operator provides a key, one is
//! generated on the first start and certified by this installation's own authority.
//!
//! Signing is deterministic (RFC 6979): a repeated pipeline
//! step seals the same bytes with the same signature.

mod authority;
mod timestamp;

use std::io;
use std::ops::Range;
use std::path::Path;

use cms::builder::{SignedDataBuilder, SignerInfoBuilder};
use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::content_info::ContentInfo;
use cms::signed_data::{EncapsulatedContentInfo, SignedData, SignerIdentifier, SignerInfos};
use der::asn1::{Any, ObjectIdentifier, OctetString, SetOfVec};
use der::{Decode as _, Encode as _};
use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::DecodePrivateKey as _;
use sha2::{Digest as _, Sha256};
use x509_cert::Certificate;
use x509_cert::attr::Attribute;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use holdfast_base::disk;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::signature::DigestAlgorithm;
pub use holdfast_evidence::TrustRoots;
use holdfast_evidence::seal::{
    EssCertIdV2, SIGNING_CERTIFICATE_V2, SigningCertificateV2, TIME_STAMP_TOKEN, digest_around,
    fingerprint, verify_over,
};
pub use holdfast_evidence::seal::{verify, verify_stamp};
use holdfast_evidence::signed;
use holdfast_evidence::stamp::TimeStamp;
pub use timestamp::{TimestampAuthority, TimestampError};

const ID_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1");
const ID_SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
/// Space reserved in the document for a signature and
/// a timestamp, each with a short certificate chain.
pub const SIGNATURE_BYTES: u32 = 16 * 1024;

/// Reason a seal cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The key files cannot be read or written.
    #[error("the sealing key cannot be read or kept: {0}")]
    Io(#[from] io::Error),
    /// The content of the key files is invalid.
    #[error("the sealing key or its certificates are not usable: {0}")]
    Unusable(String),
    /// The file with the trust roots of time stamping authorities is invalid.
    #[error("seal.timestamp_trust_file {0}")]
    TimestampTrust(#[from] holdfast_evidence::TrustError),
    /// The certificate has expired, so verifiers would reject the seal.
    #[error("the sealing key's certificate ended at {0}")]
    Expired(String),
    /// The clock of the node is behind the log, so the seal would state a time before that of earlier entries.
    #[error(
        "the clock shows {now} and the ledger has entries of {newest}: set the clock, or run `holdfast vault \
         confirm-clock` if it was ahead before"
    )]
    ClockBehind {
        /// By the clock.
        now: Timestamp,
        /// Of the newest entry.
        newest: Timestamp,
    },
}

fn text(bytes: Vec<u8>) -> Result<String, SealError> {
    String::from_utf8(bytes).map_err(unusable)
}

fn unusable(error: impl std::fmt::Display) -> SealError {
    SealError::Unusable(error.to_string())
}

/// Sealing key and its certificate chain, starting with the key's own certificate.
pub struct SealingKey {
    key: SigningKey,
    certificates: Vec<Certificate>,
}

impl SealingKey {
    /// Reads the key in `folder`, generating it with its own authority if there is none.
    pub fn open_or_make(folder: &Path, now: Timestamp) -> Result<Self, SealError> {
        if !folder.join("key.pem").exists() {
            authority::make(folder, now)?;
        }
        // Also cleans up installations made by older releases.
        authority::forget_key(folder)?;
        Self::read(&folder.join("key.pem"), &folder.join("certificates.pem"))
    }

    /// Reads a PKCS #8 key and its certificate chain, leaf first, from PEM files.
    pub fn read(key: &Path, certificates: &Path) -> Result<Self, SealError> {
        let key = text(disk::read(key)?)
            .and_then(|text| SigningKey::from_pkcs8_pem(&text).map_err(unusable))?;
        let certificates =
            Certificate::load_pem_chain(&disk::read(certificates)?).map_err(unusable)?;
        Self::of(key, certificates)
    }

    /// Reads the only key of a PKCS #12 file (RFC 7292) and
    /// its certificates; the password is in a separate file.
    pub fn read_pkcs12(file: &Path, password: &Path) -> Result<Self, SealError> {
        let password = text(disk::read(password)?)?;
        // Editors append a line end. Spaces can be a part of the password.
        let password = password.trim_end_matches(['\r', '\n']);
        let store = p12_keystore::KeyStore::from_pkcs12(&disk::read(file)?, password);
        let store = store.map_err(unusable)?;
        let (_, chain) = store
            .private_key_chain()
            .ok_or_else(|| unusable("the PKCS #12 file holds no private key"))?;
        let key = SigningKey::from_pkcs8_der(chain.key()).map_err(unusable)?;

        let certificates = chain
            .chain()
            .iter()
            .map(|certificate| Certificate::from_der(certificate.as_der()))
            .collect::<der::Result<_>>();
        Self::of(key, certificates.map_err(unusable)?)
    }

    fn of(key: SigningKey, certificates: Vec<Certificate>) -> Result<Self, SealError> {
        let own = certificates
            .first()
            .ok_or_else(|| unusable("there is no certificate"))?;
        let certified = own.tbs_certificate.subject_public_key_info.clone();
        let public = SubjectPublicKeyInfoOwned::from_key(*key.verifying_key()).map_err(unusable)?;

        // Verifiers could not match a signature to a certificate of another key.
        if certified != public {
            return Err(unusable("the first certificate is of another key"));
        }

        Ok(Self { key, certificates })
    }

    /// Returns the SHA-256 of the key's certificate in lower-case hex.
    pub fn fingerprint(&self) -> Result<String, SealError> {
        fingerprint(&self.certificates[0]).map_err(unusable)
    }

    /// Returns the expiry of the key's certificate.
    pub fn expires_at(&self) -> Timestamp {
        let end = self.certificates[0].tbs_certificate.validity.not_after;
        Timestamp::from_millis(0) + end.to_unix_duration()
    }

    /// Fails if the certificate has expired.
    pub fn check(&self, now: Timestamp) -> Result<(), SealError> {
        if self.expires_at() <= now {
            return Err(SealError::Expired(self.expires_at().to_string()));
        }
        Ok(())
    }

    /// Signs the whole document except the empty placeholder at `place`. The caller vouches for `digest`, the
    /// SHA-256 of the signed bytes.
    pub fn sign(
        &self,
        pdf: Vec<u8>,
        place: Range<usize>,
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<UnstampedSeal, SealError> {
        self.check(now)?;
        check_place(&pdf, &place)?;
        let signed = self.signed(&digest).map_err(unusable)?;
        Ok(UnstampedSeal {
            pdf,
            place,
            digest,
            signed,
        })
    }

    fn signed(&self, digest: &[u8; 32]) -> Result<SignedData, cms::builder::Error> {
        let own = &self.certificates[0];
        // A detached signature: the document around it is the content (PAdES, `ETSI.CAdES.detached`).
        let content = EncapsulatedContentInfo {
            econtent_type: ID_DATA,
            econtent: None,
        };
        let signer = SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
            issuer: own.tbs_certificate.issuer.clone(),
            serial_number: own.tbs_certificate.serial_number.clone(),
        });

        let sha_256 = AlgorithmIdentifierOwned {
            oid: signed::SHA_256,
            parameters: None,
        };
        let mut signer =
            SignerInfoBuilder::new(&self.key, signer, sha_256.clone(), &content, Some(digest))?;
        // The signed attribute binds the certificate to the signature (ETSI EN 319 122-1), so another
        // certificate of the key cannot be substituted. There is no signing-time, because PAdES forbids it.
        let certificate = SigningCertificateV2 {
            certs: vec![EssCertIdV2 {
                cert_hash: OctetString::new(Sha256::digest(own.to_der()?).to_vec())?,
            }],
        };

        let mut values = SetOfVec::new();
        values.insert(Any::encode_from(&certificate)?)?;
        signer.add_signed_attribute(Attribute {
            oid: SIGNING_CERTIFICATE_V2,
            values,
        })?;
        let mut signed = SignedDataBuilder::new(&content);
        signed.add_digest_algorithm(sha_256)?;

        // The whole chain, because a verifier offline cannot fetch the issuer's certificate.
        for certificate in &self.certificates {
            signed.add_certificate(CertificateChoices::Certificate(certificate.clone()))?;
        }

        signed.add_signer_info::<SigningKey, DerSignature>(signer)?;
        Ok(signed.build()?.content.decode_as()?)
    }
}

/// Signature that has not been embedded in its document yet.
pub struct UnstampedSeal {
    pdf: Vec<u8>,
    /// Byte range of the placeholder, from `<` to `>`.
    place: Range<usize>,
    /// SHA-256 of the document without the placeholder.
    digest: [u8; 32],
    signed: SignedData,
}

impl UnstampedSeal {
    /// Returns the digest to be timestamped: the SHA-256 of the signature (RFC 3161, appendix A).
    pub fn signature_digest(&self) -> [u8; 32] {
        let signer = self.signed.signer_infos.0.get(0);
        let signature = signer.map(|signer| signer.signature.as_bytes());
        Sha256::digest(signature.unwrap_or_default()).into()
    }

    /// Returns whether a token of this size fits into the document together with the signature.
    pub fn has_room_for(&self, token: usize) -> bool {
        // A signature that cannot be encoded fits nowhere, and `finish` reports why.
        let own = self.signed.to_der().map_or(usize::MAX, |own| own.len());
        // Overhead of the attribute's encoding and of longer length fields.
        const FRAME: usize = 64;
        own.saturating_add(token).saturating_add(FRAME) <= (self.place.len() - 2) / 2
    }

    /// Embeds the signature, and the timestamp token if there is one; returns the sealed document.
    pub fn finish(self, token: Option<&[u8]>) -> Result<Vec<u8>, SealError> {
        let Self {
            mut pdf,
            place,
            digest,
            signed,
        } = self;
        let message = match token {
            None => message(&signed),
            Some(token) => with_token(signed, token).and_then(|signed| message(&signed)),
        };
        write_at(&mut pdf, &place, &message.map_err(unusable)?)?;

        // An unverifiable seal must not be vaulted, whichever component prepared the document.
        let known = |found: &Range<usize>| {
            if *found == place {
                digest
            } else {
                digest_around(&pdf, found)
            }
        };
        verify_over(&pdf, known).map_err(unusable)?;

        Ok(pdf)
    }
}

/// Requires an empty placeholder. It comes from a component, and anything but zeros in it would be lost without a signature
/// over it.
fn check_place(pdf: &[u8], place: &Range<usize>) -> Result<(), SealError> {
    let is_empty = pdf
        .get(place.clone())
        .and_then(|place| place.strip_prefix(b"<")?.strip_suffix(b">"))
        .is_some_and(|digits| digits.iter().all(|digit| *digit == b'0'));
    is_empty
        .then_some(())
        .ok_or_else(|| unusable("the document has no empty place for a signature"))
}

/// Writes a signature into its placeholder.
fn write_at(pdf: &mut [u8], place: &Range<usize>, signature: &[u8]) -> Result<(), SealError> {
    let signature = hex::encode(signature);
    // The angle brackets belong to the placeholder and stay. Unused digits stay zeros.
    let digits = place.start + 1..place.end - 1;
    // Its size is fixed before signing, because the signature covers the offsets around it.
    if signature.len() > digits.len() {
        return Err(unusable("the signature is larger than its place"));
    }

    pdf[digits.start..digits.start + signature.len()].copy_from_slice(signature.as_bytes());
    Ok(())
}

/// A document with an empty placeholder for a time stamp over it.
pub struct UnstampedDocument {
    pdf: Vec<u8>,
    place: Range<usize>,
}

impl UnstampedDocument {
    /// Takes a document and the byte range of the placeholder, from `<` to `>`.
    pub fn new(pdf: Vec<u8>, place: Range<usize>) -> Result<Self, SealError> {
        check_place(&pdf, &place)?;
        Ok(Self { pdf, place })
    }

    /// Returns the digest to be time stamped.
    pub fn digest(&self, algorithm: DigestAlgorithm) -> Vec<u8> {
        let around = [&self.pdf[..self.place.start], &self.pdf[self.place.end..]];
        signed::digest_of(algorithm, &around)
    }

    /// Embeds the time stamp; returns the document, whose last time stamp was verified.
    pub fn finish(mut self, stamp: &TimeStamp) -> Result<Vec<u8>, SealError> {
        write_at(&mut self.pdf, &self.place, stamp.token())?;
        verify_stamp(&self.pdf).map_err(unusable)?;
        Ok(self.pdf)
    }
}

fn message(signed: &SignedData) -> der::Result<Vec<u8>> {
    let content = ContentInfo {
        content_type: ID_SIGNED_DATA,
        content: Any::encode_from(signed)?,
    };
    content.to_der()
}

/// Adds a timestamp token as an unsigned attribute.
fn with_token(mut signed: SignedData, token: &[u8]) -> der::Result<SignedData> {
    let mut signers = signed.signer_infos.0.into_vec();
    if let Some(signer) = signers.first_mut() {
        let attribute = Attribute {
            oid: TIME_STAMP_TOKEN,
            values: SetOfVec::try_from(vec![Any::from_der(token)?])?,
        };
        // Unsigned, because the token is about the signature and can only be made after it.
        signer.unsigned_attrs = Some(SetOfVec::try_from(vec![attribute])?);
    }

    signed.signer_infos = SignerInfos(SetOfVec::try_from(signers)?);
    Ok(signed)
}
