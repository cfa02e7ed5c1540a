//! The key that seals authoritative copies: a PAdES signature (ETSI EN 319 142-1,
//! level B-B) with ECDSA on P-256. A certification authority of this installation
//! issues its certificate on the first start, unless an operator brought a key.
//!
//! Signing is deterministic (RFC 6979): a pipeline that is run again seals the
//! same bytes with the same signature.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

use cms::builder::{SignedDataBuilder, SignerInfoBuilder};
use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::content_info::ContentInfo;
use cms::signed_data::{EncapsulatedContentInfo, SignedData, SignerIdentifier, SignerInfo};
use der::asn1::{Any, GeneralizedTime, ObjectIdentifier, OctetString, SetOfVec};
use der::{Decode as _, Encode as _, EncodePem as _, Sequence};
use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::{DerSignature, SigningKey, VerifyingKey};
use p256::pkcs8::{DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, LineEnding};
use sha2::{Digest as _, Sha256};
use x509_cert::Certificate;
use x509_cert::attr::Attribute;
use x509_cert::builder::{Builder as _, CertificateBuilder, Profile};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use x509_cert::time::{Time, Validity};

use crate::domain::clock::Timestamp;
use crate::domain::token::random;

const ID_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1");
const SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
/// RFC 5652, section 11.2.
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
/// RFC 5035.
const SIGNING_CERTIFICATE_V2: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.47");

/// Life of our own authority, and of a key that it certifies.
const AUTHORITY_LIFE: Duration = Duration::from_secs(20 * 365 * 86_400);
const KEY_LIFE: Duration = Duration::from_secs(5 * 365 * 86_400);

/// Room for a signature with a short chain of certificates.
pub const SIGNATURE_BYTES: u32 = 8 * 1024;

/// Why a seal cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The key's files.
    #[error("the sealing key cannot be read or kept: {0}")]
    Io(#[from] io::Error),
    /// What is in them.
    #[error("the sealing key or its certificates are not usable: {0}")]
    Unusable(String),
    /// Nobody should trust a seal that was made with it.
    #[error("the sealing key's certificate ended at {0}")]
    Expired(String),
}

fn unusable(error: impl std::fmt::Display) -> SealError {
    SealError::Unusable(error.to_string())
}

/// RFC 5035: the certificate a signature was made with, by its SHA-256.
#[derive(Sequence)]
struct EssCertIdV2 {
    cert_hash: OctetString,
}

#[derive(Sequence)]
struct SigningCertificateV2 {
    certs: Vec<EssCertIdV2>,
}

/// A key and its certificates, the key's own first.
pub struct SealingKey {
    key: SigningKey,
    certificates: Vec<Certificate>,
}

impl SealingKey {
    /// The key in `folder`; made with an authority of its own when there is none.
    pub fn open_or_make(folder: &Path, now: Timestamp) -> Result<Self, SealError> {
        if !folder.join("key.pem").exists() {
            make(folder, now)?;
        }
        Self::read(&folder.join("key.pem"), &folder.join("certificates.pem"))
    }

    /// A PKCS #8 key and the certificates from its own up to the authority's, in PEM.
    pub fn read(key: &Path, certificates: &Path) -> Result<Self, SealError> {
        let key = SigningKey::from_pkcs8_pem(&fs::read_to_string(key)?).map_err(unusable)?;
        let certificates =
            Certificate::load_pem_chain(&fs::read(certificates)?).map_err(unusable)?;
        let own = certificates
            .first()
            .ok_or_else(|| unusable("there is no certificate"))?;
        let certified = own.tbs_certificate.subject_public_key_info.clone();
        let public = SubjectPublicKeyInfoOwned::from_key(*key.verifying_key()).map_err(unusable)?;
        if certified != public {
            return Err(unusable("the first certificate is of another key"));
        }
        Ok(Self { key, certificates })
    }

    /// SHA-256 of its certificate, lower-case hex.
    pub fn fingerprint(&self) -> Result<String, SealError> {
        fingerprint(&self.certificates[0]).map_err(unusable)
    }

    /// When nothing may be sealed with it any more.
    pub fn expires_at(&self) -> Timestamp {
        let end = self.certificates[0].tbs_certificate.validity.not_after;
        Timestamp::from_millis(0) + end.to_unix_duration()
    }

    /// Whether anything may be sealed with it.
    pub fn check(&self, now: Timestamp) -> Result<(), SealError> {
        if self.expires_at() <= now {
            return Err(SealError::Expired(self.expires_at().to_string()));
        }
        Ok(())
    }

    /// Signs all of a document but the empty `place`, and writes the signature
    /// into it.
    pub fn seal(
        &self,
        mut pdf: Vec<u8>,
        place: Range<usize>,
        now: Timestamp,
    ) -> Result<Vec<u8>, SealError> {
        self.check(now)?;
        let empty = pdf
            .get(place.clone())
            .and_then(|place| place.strip_prefix(b"<")?.strip_suffix(b">"))
            .is_some_and(|digits| digits.iter().all(|digit| *digit == b'0'));
        if !empty {
            return Err(unusable("the document has no empty place for a signature"));
        }
        let digest = digest_around(&pdf, &place);
        let signature = hex::encode(self.signed(&digest).map_err(unusable)?);
        let digits = place.start + 1..place.end - 1;
        if signature.len() > digits.len() {
            return Err(unusable("the signature is larger than its place"));
        }
        pdf[digits.start..digits.start + signature.len()].copy_from_slice(signature.as_bytes());
        // What others could not verify must not be vaulted, whatever prepared it.
        verify(&pdf).map_err(unusable)?;
        Ok(pdf)
    }

    fn signed(&self, digest: &[u8; 32]) -> Result<Vec<u8>, cms::builder::Error> {
        let own = &self.certificates[0];
        let content = EncapsulatedContentInfo {
            econtent_type: ID_DATA,
            econtent: None,
        };
        let signer = SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
            issuer: own.tbs_certificate.issuer.clone(),
            serial_number: own.tbs_certificate.serial_number.clone(),
        });
        let sha_256 = AlgorithmIdentifierOwned {
            oid: SHA_256,
            parameters: None,
        };
        let mut signer =
            SignerInfoBuilder::new(&self.key, signer, sha_256.clone(), &content, Some(digest))?;
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
        for certificate in &self.certificates {
            signed.add_certificate(CertificateChoices::Certificate(certificate.clone()))?;
        }
        signed.add_signer_info::<SigningKey, DerSignature>(signer)?;
        Ok(signed.build()?.to_der()?)
    }
}

/// A seal that holds.
pub struct Seal {
    /// SHA-256 of the certificate it was made with, lower-case hex.
    pub certificate: String,
    /// Whose certificate that is.
    pub subject: String,
}

/// The outermost seal of a document: that it covers the whole document, and that
/// its signature is that of the key in its certificate. Whether to trust the
/// certificate is for the caller to say.
///
/// # Errors
///
/// Why it does not hold, in words.
pub fn verify(pdf: &[u8]) -> Result<Seal, String> {
    let place = place(pdf).ok_or("there is no seal over the whole document")?;
    let digits = &pdf[place.start + 1..place.end - 1];
    let padded = hex::decode(digits).map_err(|_| "the seal's place holds no signature")?;
    let mut reader = der::SliceReader::new(&padded).map_err(|error| error.to_string())?;
    let content = ContentInfo::decode(&mut reader).map_err(|error| format!("the seal: {error}"))?;
    let signed: SignedData = content
        .content
        .decode_as()
        .map_err(|error| format!("the seal: {error}"))?;
    let [signer] = signed.signer_infos.0.as_slice() else {
        return Err("the seal has not exactly one signer".into());
    };
    let certificate = certificate_of(&signed, signer).ok_or("the seal has no certificate")?;
    let print = fingerprint(certificate).map_err(|error| error.to_string())?;
    let attribute = |oid| -> Option<&Any> {
        let attributes = signer.signed_attrs.as_ref()?;
        let attribute = attributes.iter().find(|attribute| attribute.oid == oid)?;
        attribute.values.get(0)
    };
    let digest = attribute(MESSAGE_DIGEST).and_then(|value| value.decode_as::<OctetString>().ok());
    if digest.is_none_or(|digest| digest.as_bytes() != digest_around(pdf, &place)) {
        return Err("the document was changed after it was sealed".into());
    }
    let named = attribute(SIGNING_CERTIFICATE_V2)
        .and_then(|value| value.decode_as::<SigningCertificateV2>().ok())
        .and_then(|named| Some(hex::encode(named.certs.first()?.cert_hash.as_bytes())));
    if named.as_deref() != Some(print.as_str()) {
        return Err("the seal names another certificate than it carries".into());
    }
    let holds = || -> Result<(), Box<dyn std::error::Error>> {
        let info = certificate
            .tbs_certificate
            .subject_public_key_info
            .to_der()?;
        let key = VerifyingKey::from_public_key_der(&info)?;
        let signature = DerSignature::try_from(signer.signature.as_bytes())?;
        // What is signed is the set itself, not the member of the structure
        // (RFC 5652, section 5.4).
        key.verify(&signer.signed_attrs.to_der()?, &signature)?;
        Ok(())
    };
    holds().map_err(|error| format!("the seal's signature does not hold: {error}"))?;
    Ok(Seal {
        certificate: print,
        subject: certificate.tbs_certificate.subject.to_string(),
    })
}

/// Where the last signature stands, if it covers all else.
fn place(pdf: &[u8]) -> Option<Range<usize>> {
    const KEY: &[u8] = b"/ByteRange";
    let at = pdf.windows(KEY.len()).rposition(|window| window == KEY)?;
    let rest = &pdf[at + KEY.len()..];
    let open = rest.iter().position(|byte| *byte == b'[')?;
    let close = rest.iter().take(200).position(|byte| *byte == b']')?;
    let numbers: Vec<usize> = std::str::from_utf8(rest.get(open + 1..close)?)
        .ok()?
        .split_whitespace()
        .map(|number| number.parse().ok())
        .collect::<Option<_>>()?;
    let [0, start, end, length] = numbers[..] else {
        return None;
    };
    let whole = end.checked_add(length)? == pdf.len() && start + 2 <= end;
    let bracketed = pdf.get(start) == Some(&b'<') && pdf.get(end.checked_sub(1)?) == Some(&b'>');
    (whole && bracketed).then_some(start..end)
}

fn certificate_of<'a>(signed: &'a SignedData, signer: &SignerInfo) -> Option<&'a Certificate> {
    let SignerIdentifier::IssuerAndSerialNumber(named) = &signer.sid else {
        return None;
    };
    signed.certificates.as_ref()?.0.iter().find_map(|choice| {
        let CertificateChoices::Certificate(certificate) = choice else {
            return None;
        };
        let known = &certificate.tbs_certificate;
        (known.issuer == named.issuer && known.serial_number == named.serial_number)
            .then_some(certificate)
    })
}

fn digest_around(pdf: &[u8], place: &Range<usize>) -> [u8; 32] {
    Sha256::new()
        .chain_update(&pdf[..place.start])
        .chain_update(&pdf[place.end..])
        .finalize()
        .into()
}

fn fingerprint(certificate: &Certificate) -> der::Result<String> {
    Ok(hex::encode(Sha256::digest(certificate.to_der()?)))
}

/// A new authority and a key that it certifies. Written beside and renamed, so
/// that of two processes starting together one wins whole.
fn make(folder: &Path, now: Timestamp) -> Result<(), SealError> {
    let authority_key = new_key();
    let authority_name = name("holdfast sealing authority")?;
    let authority = certificate(
        Profile::Root,
        &authority_name,
        &authority_key,
        &authority_key,
        (now, AUTHORITY_LIFE),
    )?;
    let key = new_key();
    let profile = Profile::Leaf {
        issuer: authority_name,
        enable_key_agreement: false,
        enable_key_encipherment: false,
    };
    let subject = name("holdfast vault")?;
    let own = certificate(profile, &subject, &key, &authority_key, (now, KEY_LIFE))?;

    let parent = folder.parent().unwrap_or(folder);
    fs::create_dir_all(parent)?;
    let beside = tempfile::tempdir_in(parent)?;
    let secret = |name: &str, key: &SigningKey| -> Result<(), SealError> {
        let text = key.to_pkcs8_pem(LineEnding::LF).map_err(unusable)?;
        Ok(write(&beside.path().join(name), text.as_bytes())?)
    };
    secret("key.pem", &key)?;
    secret("authority-key.pem", &authority_key)?;
    let mut chain = String::new();
    for certificate in [own, authority] {
        chain += &certificate.to_pem(LineEnding::LF).map_err(unusable)?;
    }
    write(&beside.path().join("certificates.pem"), chain.as_bytes())?;
    match fs::rename(beside.path(), folder) {
        Ok(()) => {
            // It is no temporary folder any more.
            let _ = beside.keep();
            fs::File::open(parent)?.sync_all()?;
            Ok(())
        }
        Err(_) if folder.join("key.pem").exists() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Only its owner may read it.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn new_key() -> SigningKey {
    loop {
        // One in 2^32 is not below the curve's order.
        if let Ok(key) = SigningKey::from_slice(&random::<32>()) {
            return key;
        }
    }
}

fn name(common: &str) -> Result<Name, SealError> {
    Name::from_str(&format!("CN={common}")).map_err(unusable)
}

fn certificate(
    profile: Profile,
    subject: &Name,
    key: &SigningKey,
    issuer: &SigningKey,
    (from, life): (Timestamp, Duration),
) -> Result<Certificate, SealError> {
    let time = |at: Timestamp| -> Result<Time, SealError> {
        let since = Duration::from_secs(at.as_seconds().unsigned_abs());
        let time = GeneralizedTime::from_unix_duration(since).map_err(unusable)?;
        Ok(Time::GeneralTime(time))
    };
    let validity = Validity {
        not_before: time(from)?,
        not_after: time(from + life)?,
    };
    let mut serial = random::<16>();
    // Positive, and never shortened by a leading zero.
    serial[0] = serial[0] & 0x7f | 0x40;
    let serial = SerialNumber::new(&serial).map_err(unusable)?;
    let public = SubjectPublicKeyInfoOwned::from_key(*key.verifying_key()).map_err(unusable)?;
    CertificateBuilder::new(profile, serial, validity, subject.clone(), public, issuer)
        .and_then(|builder| builder.build::<DerSignature>())
        .map_err(unusable)
}
