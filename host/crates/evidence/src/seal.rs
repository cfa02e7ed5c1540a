//! Seals: PAdES signatures (ETSI EN 319 142-1) over a whole document.

use std::ops::Range;

use der::asn1::{ObjectIdentifier, OctetString};
use der::{Encode as _, Sequence};
use sha2::{Digest as _, Sha256};
use x509_cert::Certificate;

use crate::signed;
use crate::stamp::TimeStamp;
use holdfast_domain::signature::DigestAlgorithm;

/// RFC 5035.
pub const SIGNING_CERTIFICATE_V2: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.47");
/// RFC 3161, appendix A.
pub const TIME_STAMP_TOKEN: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.14");

/// Reference to the certificate of a signature by its SHA-256 (RFC 5035).
#[derive(Sequence)]
pub struct EssCertIdV2 {
    /// SHA-256.
    pub cert_hash: OctetString,
}

/// Attribute of a signature that names its certificates (RFC 5035).
#[derive(Sequence)]
pub struct SigningCertificateV2 {
    /// Certificates, the signer's first.
    pub certs: Vec<EssCertIdV2>,
}

/// Valid seal.
pub struct DocumentSeal {
    /// Time stamp in the seal, or the reason why it is invalid.
    pub stamp: Option<Result<TimeStamp, String>>,
    /// SHA-256 of the sealing certificate, lower-case hex.
    pub certificate: String,
    /// Subject of the sealing certificate.
    pub subject: String,
    /// Certificates in the seal, the sealing one first.
    pub certificates: Vec<Certificate>,
    /// The encoded signature, with the zeros behind it.
    pub contents: Vec<u8>,
}

/// Verifies the outermost seal: it must cover the whole document, and its signature must match
/// its certificate. The caller decides whether to trust the certificate.
///
/// # Errors
///
/// The reason, for people.
pub fn verify(pdf: &[u8]) -> Result<DocumentSeal, String> {
    verify_over(pdf, |place| digest_around(pdf, place))
}

/// Like [`verify`], for a caller that knows the SHA-256 of the document without a range.
///
/// # Errors
///
/// The reason, for people.
pub fn verify_over(
    pdf: &[u8],
    digest: impl FnOnce(&Range<usize>) -> [u8; 32],
) -> Result<DocumentSeal, String> {
    let place = place(pdf).ok_or("there is no seal over the whole document")?;
    let digits = &pdf[place.start + 1..place.end - 1];
    let padded = hex::decode(digits).map_err(|_| "the seal's place holds no signature")?;
    let signed = signed::read(&padded).map_err(|error| format!("the seal: {error}"))?;
    let (signer, certificate) =
        signed::signer(&signed).map_err(|why| format!("the seal: {why}"))?;
    let print = fingerprint(certificate).map_err(|error| error.to_string())?;

    if signed::message_digest(signer).as_deref() != Some(&digest(&place)) {
        return Err("the document was changed after it was sealed".into());
    }

    // The signed attribute binds the certificate, so it cannot be exchanged for another one.
    let named = signed::attribute(signer, SIGNING_CERTIFICATE_V2)
        .and_then(|value| value.decode_as::<SigningCertificateV2>().ok())
        .and_then(|named| Some(hex::encode(named.certs.first()?.cert_hash.as_bytes())));
    if named.as_deref() != Some(print.as_str()) {
        return Err("the seal names another certificate than it carries".into());
    }

    signed::verify(signer, certificate).map_err(|why| format!("the seal: {why}"))?;
    let token = signer.unsigned_attrs.as_ref().and_then(|attributes| {
        let attribute = attributes
            .iter()
            .find(|attribute| attribute.oid == TIME_STAMP_TOKEN)?;
        attribute.values.get(0)?.to_der().ok()
    });

    // A time stamp covers the value of the signature, and with it the document (RFC 3161, appendix A).
    let digest: [u8; 32] = Sha256::digest(signer.signature.as_bytes()).into();
    let own = std::iter::once(certificate.clone());
    Ok(DocumentSeal {
        stamp: token.map(|token| TimeStamp::open(token, &digest)),
        certificate: print,
        subject: certificate.tbs_certificate.subject.to_string(),
        certificates: own.chain(signed::certificates(&signed)).collect(),
        contents: padded,
    })
}

/// Returns the range of the last signature, if it covers the rest of the document.
fn place(pdf: &[u8]) -> Option<Range<usize>> {
    const KEY: &[u8] = b"/ByteRange";

    // Signatures are appended, so the range of the last one is the one that can cover the whole file.
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

    // Bytes outside the signed range could change what a reader shows.
    let whole = end.checked_add(length)? == pdf.len() && start.checked_add(2)? <= end;
    let bracketed = pdf.get(start) == Some(&b'<') && pdf.get(end.checked_sub(1)?) == Some(&b'>');
    (whole && bracketed).then_some(start..end)
}

/// A time stamp over a whole document (`ETSI.RFC3161`).
pub struct DocumentStamp {
    /// The time stamp.
    pub stamp: TimeStamp,
    /// Digest algorithm that it covers the document with.
    pub algorithm: DigestAlgorithm,
    /// The encoded token, with the zeros behind it.
    pub contents: Vec<u8>,
}

/// Verifies the time stamp at the end of a document: it must cover the whole document.
///
/// # Errors
///
/// The reason, for people.
pub fn verify_stamp(pdf: &[u8]) -> Result<DocumentStamp, String> {
    let place = place(pdf).ok_or("there is no time stamp over the whole document")?;
    let digits = &pdf[place.start + 1..place.end - 1];
    let contents = hex::decode(digits).map_err(|_| "the time stamp's place holds no token")?;

    let token = signed::token(&contents).map_err(|error| format!("the time stamp: {error}"))?;
    let around = [&pdf[..place.start], &pdf[place.end..]];
    let (stamp, algorithm) =
        TimeStamp::over(token, &around).map_err(|why| format!("the time stamp: {why}"))?;

    Ok(DocumentStamp {
        stamp,
        algorithm,
        contents,
    })
}

/// Computes the SHA-256 of a document without the range of its signature.
pub fn digest_around(pdf: &[u8], place: &Range<usize>) -> [u8; 32] {
    Sha256::new()
        .chain_update(&pdf[..place.start])
        .chain_update(&pdf[place.end..])
        .finalize()
        .into()
}

/// Computes the SHA-256 of a certificate in lower-case hex.
///
/// # Errors
/// The certificate cannot be encoded.
pub fn fingerprint(certificate: &Certificate) -> der::Result<String> {
    Ok(hex::encode(Sha256::digest(certificate.to_der()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a document with a signature of these digits.
    fn document(digits: &str) -> Vec<u8> {
        let end = "\n%%EOF";
        let (start, length) = (40, end.len());
        let after = start + digits.len() + 2;
        let range = format!("/ByteRange [0 {start} {after} {length}]");
        format!("{range:start$}<{digits}>{end}").into_bytes()
    }

    #[test]
    fn a_seal_that_cannot_be_read_is_said_to_be_none() {
        for (pdf, why) in [
            (b"%PDF".to_vec(), "there is no seal over the whole document"),
            (
                [document("00"), b"more".to_vec()].concat(),
                "there is no seal over the whole document",
            ),
            (document("zz"), "the seal's place holds no signature"),
            (document("00"), "the seal: "),
        ] {
            let refused = verify(&pdf).err().unwrap();
            assert!(refused.starts_with(why), "{refused}");
        }
    }
}
