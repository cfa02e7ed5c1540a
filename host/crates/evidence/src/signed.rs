//! Signed messages (RFC 5652) with one signer, the format of seals and time stamps.

use cms::cert::CertificateChoices;
use cms::content_info::ContentInfo;
use cms::signed_data::{SignedData, SignerIdentifier, SignerInfo};
use der::asn1::{Any, ObjectIdentifier, OctetString, UintRef};
use der::{Decode as _, Encode as _, Sequence};
use ring::signature as algorithms;
use ring::signature::{UnparsedPublicKey, VerificationAlgorithm};
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use x509_cert::Certificate;
use x509_cert::ext::pkix::SubjectKeyIdentifier;

use holdfast_domain::signature::DigestAlgorithm;

/// NIST, id-sha256.
pub const SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const SHA_1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");
const SHA_384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const SHA_512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");
/// RFC 5652, section 11.2.
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
/// RFC 4056, id-RSASSA-PSS.
const RSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P_384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");

/// Parses a signed message. Trailing bytes are ignored: PDF pads signatures with zeros.
pub fn read(bytes: &[u8]) -> der::Result<SignedData> {
    let mut reader = der::SliceReader::new(bytes)?;
    ContentInfo::decode(&mut reader)?.content.decode_as()
}

/// Returns an encoded message without the zeros behind it.
pub fn token(padded: &[u8]) -> der::Result<Vec<u8>> {
    let mut reader = der::SliceReader::new(padded)?;
    Any::decode(&mut reader)?.to_der()
}

/// Returns the single signer and its certificate.
pub fn signer(signed: &SignedData) -> Result<(&SignerInfo, &Certificate), String> {
    let [signer] = signed.signer_infos.0.as_slice() else {
        return Err("it has not exactly one signer".into());
    };
    let certificate = certificate_of(signed, signer).ok_or("it has no certificate")?;
    Ok((signer, certificate))
}

/// Returns the first value of a signed attribute.
pub fn attribute(signer: &SignerInfo, oid: ObjectIdentifier) -> Option<&Any> {
    let attributes = signer.signed_attrs.as_ref()?;
    attributes
        .iter()
        .find(|attribute| attribute.oid == oid)?
        .values
        .get(0)
}

/// Returns the digest of the content that the signed attributes state.
pub fn message_digest(signer: &SignerInfo) -> Option<Vec<u8>> {
    let digest = attribute(signer, MESSAGE_DIGEST)?.decode_as::<OctetString>();
    Some(digest.ok()?.as_bytes().to_vec())
}

/// Computes the digest of `content` with the signer's algorithm.
pub fn digest(signer: &SignerInfo, content: &[u8]) -> Result<Vec<u8>, String> {
    digest_with(signer.digest_alg.oid, content)
}

/// Computes the digest of `content` with an algorithm that is still safe.
pub fn digest_with(algorithm: ObjectIdentifier, content: &[u8]) -> Result<Vec<u8>, String> {
    match algorithm {
        SHA_256 => Ok(Sha256::digest(content).to_vec()),
        SHA_384 => Ok(Sha384::digest(content).to_vec()),
        SHA_512 => Ok(Sha512::digest(content).to_vec()),
        SHA_1 => Err("its digest algorithm SHA-1 is no longer safe".into()),
        other => Err(format!("its digest algorithm {other} is not known")),
    }
}

/// Returns the object identifier of a digest algorithm.
pub fn oid_of(algorithm: DigestAlgorithm) -> ObjectIdentifier {
    match algorithm {
        DigestAlgorithm::Sha256 => SHA_256,
        DigestAlgorithm::Sha384 => SHA_384,
        DigestAlgorithm::Sha512 => SHA_512,
    }
}

/// Computes the digest of the pieces of a content.
pub fn digest_of(algorithm: DigestAlgorithm, pieces: &[&[u8]]) -> Vec<u8> {
    fn of<D: sha2::Digest>(pieces: &[&[u8]]) -> Vec<u8> {
        let all = pieces.iter();
        all.fold(D::new(), |digest, piece| digest.chain_update(piece))
            .finalize()
            .to_vec()
    }

    match algorithm {
        DigestAlgorithm::Sha256 => of::<Sha256>(pieces),
        DigestAlgorithm::Sha384 => of::<Sha384>(pieces),
        DigestAlgorithm::Sha512 => of::<Sha512>(pieces),
    }
}

/// Returns the certificates of a message.
pub fn certificates(signed: &SignedData) -> Vec<Certificate> {
    let choices = signed.certificates.iter().flat_map(|all| all.0.iter());
    let certificate = |choice: &CertificateChoices| match choice {
        CertificateChoices::Certificate(certificate) => Some(certificate.clone()),
        CertificateChoices::Other(_) => None,
    };
    choices.filter_map(certificate).collect()
}

/// Returns the algorithm of the signature, by key and digest.
///
/// # Errors
/// The reason, for people: the algorithm is not known.
pub fn algorithm(
    signer: &SignerInfo,
    certificate: &Certificate,
) -> Result<&'static dyn VerificationAlgorithm, String> {
    let info = &certificate.tbs_certificate.subject_public_key_info;
    let curve =
        || -> Option<ObjectIdentifier> { info.algorithm.parameters.as_ref()?.decode_as().ok() };
    let padded = signer.signature_algorithm.oid == RSA_PSS;
    if info.algorithm.oid == RSA {
        check_size(info.subject_public_key.raw_bytes())?;
    }

    // Curve and key come from the certificate. A message must not choose how it is verified.
    match (info.algorithm.oid, curve(), signer.digest_alg.oid) {
        (RSA, _, SHA_256) if padded => Ok(&algorithms::RSA_PSS_2048_8192_SHA256),
        (RSA, _, SHA_384) if padded => Ok(&algorithms::RSA_PSS_2048_8192_SHA384),
        (RSA, _, SHA_512) if padded => Ok(&algorithms::RSA_PSS_2048_8192_SHA512),
        (RSA, _, SHA_256) => Ok(&algorithms::RSA_PKCS1_2048_8192_SHA256),
        (RSA, _, SHA_384) => Ok(&algorithms::RSA_PKCS1_2048_8192_SHA384),
        (RSA, _, SHA_512) => Ok(&algorithms::RSA_PKCS1_2048_8192_SHA512),
        (EC, Some(P_256), SHA_256) => Ok(&algorithms::ECDSA_P256_SHA256_ASN1),
        (EC, Some(P_256), SHA_384) => Ok(&algorithms::ECDSA_P256_SHA384_ASN1),
        (EC, Some(P_384), SHA_256) => Ok(&algorithms::ECDSA_P384_SHA256_ASN1),
        (EC, Some(P_384), SHA_384) => Ok(&algorithms::ECDSA_P384_SHA384_ASN1),
        _ => Err("its kind of key and digest is not known".into()),
    }
}

/// RFC 8017, appendix A.1.1.
#[derive(Sequence)]
struct RsaPublicKey<'a> {
    modulus: UintRef<'a>,
    exponent: UintRef<'a>,
}

/// Refuses RSA keys outside of the sizes that can be verified. Without this check, their signatures
/// would appear to be wrong.
fn check_size(key: &[u8]) -> Result<(), String> {
    let key = RsaPublicKey::from_der(key).map_err(|error| format!("its key: {error}"))?;
    match key.modulus.as_bytes().len() * 8 {
        ..2_048 => Err("its RSA key of fewer than 2,048 bits is no longer safe".into()),
        2_048..=8_192 => Ok(()),
        8_193.. => Err("its RSA key has more than 8,192 bits".into()),
    }
}

/// Verifies the signature over the signed attributes with the certificate's key.
pub fn verify(signer: &SignerInfo, certificate: &Certificate) -> Result<(), String> {
    let algorithm = algorithm(signer, certificate)?;
    let info = &certificate.tbs_certificate.subject_public_key_info;

    // The signature covers the attributes encoded as a SET OF, not with the implicit tag
    // that they have in the message (RFC 5652, section 5.4).
    let attributes = signer
        .signed_attrs
        .to_der()
        .map_err(|error| error.to_string())?;

    UnparsedPublicKey::new(algorithm, info.subject_public_key.raw_bytes())
        .verify(&attributes, signer.signature.as_bytes())
        .map_err(|_| "its signature does not hold".into())
}

fn certificate_of<'a>(signed: &'a SignedData, signer: &SignerInfo) -> Option<&'a Certificate> {
    // A message carries a whole chain in any order, so the id selects the
    // signer's certificate (RFC 5652, 5.3).
    signed.certificates.as_ref()?.0.iter().find_map(|choice| {
        let CertificateChoices::Certificate(certificate) = choice else {
            return None;
        };

        let known = &certificate.tbs_certificate;
        let named = match &signer.sid {
            SignerIdentifier::IssuerAndSerialNumber(named) => {
                known.issuer == named.issuer && known.serial_number == named.serial_number
            }
            SignerIdentifier::SubjectKeyIdentifier(named) => {
                let own = known.get::<SubjectKeyIdentifier>();
                own.is_ok_and(|own| own.is_some_and(|(_, own)| own == *named))
            }
        };

        named.then_some(certificate)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_and_unknown_digests_are_named() {
        assert!(digest_with(SHA_256, b"text").is_ok());
        let sha_1 = digest_with(SHA_1, b"text").unwrap_err();
        assert_eq!(sha_1, "its digest algorithm SHA-1 is no longer safe");
        let other = digest_with(RSA, b"text").unwrap_err();
        assert_eq!(
            other,
            "its digest algorithm 1.2.840.113549.1.1.1 is not known"
        );
    }

    #[test]
    fn keys_outside_of_the_verified_sizes_are_named() {
        let key = |bytes: usize| {
            let modulus = vec![0xff; bytes];
            let key = RsaPublicKey {
                modulus: UintRef::new(&modulus).unwrap(),
                exponent: UintRef::new(&[1, 0, 1]).unwrap(),
            };
            check_size(&key.to_der().unwrap())
        };
        assert_eq!(key(256), Ok(()));
        assert_eq!(key(1024), Ok(()));

        let small = "its RSA key of fewer than 2,048 bits is no longer safe";
        assert_eq!(key(255).unwrap_err(), small);

        let large = "its RSA key has more than 8,192 bits";
        assert_eq!(key(1025).unwrap_err(), large);

        let none = check_size(b"no key").unwrap_err();
        assert!(none.starts_with("its key: "), "{none}");
    }
}
