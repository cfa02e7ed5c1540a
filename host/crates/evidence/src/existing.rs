//! Verification of signatures that a document had before holdfast received it (PAdES, ETSI EN 319
//! 142-1; ISO 32000-2, 12.8). What each one covers and what changed after it is known already.

use cms::signed_data::{SignedData, SignerInfo};
use der::Encode as _;
use der::asn1::ObjectIdentifier;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::signature::{
    ExistingSignature, LaterChange, SignatureKind, SignatureStatus, SignatureTimeSource,
    SignatureTrust, SignedPart,
};
use x509_cert::Certificate;

use crate::ber;
use crate::revocation::ValidationData;
use crate::seal::{SIGNING_CERTIFICATE_V2, TIME_STAMP_TOKEN, fingerprint};
use crate::signed;
use crate::stamp;
use crate::trust::{DOCUMENT_SIGNING, TIME_STAMPING, TrustRoots};

/// Limit on the bytes of one signature. Signatures with revocation lists inside have hundreds of
/// kilobytes.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// RFC 5035, the certificate reference by SHA-1, which PAdES permits too.
const SIGNING_CERTIFICATE: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.12");

/// `SubFilter` of PAdES signatures and of time stamps over a document.
const PADES: &str = "ETSI.CAdES.detached";
const DOCUMENT_TIME_STAMP: &str = "ETSI.RFC3161";
/// `SubFilter` of signatures before PAdES.
const CMS: &str = "adbe.pkcs7.detached";

/// A signature found in a document, not verified.
pub struct UnverifiedSignature {
    /// Full name of its field.
    pub field: String,
    /// `SubFilter`.
    pub format: String,
    /// Covered bytes: pairs of offset and length.
    pub ranges: Vec<(u64, u64)>,
    /// The encoded signature, padded with zeros.
    pub contents: Vec<u8>,
    /// Time stated by the signer, in RFC 3339.
    pub claimed_at: Option<String>,
    /// Part of the document that it covers.
    pub covers: SignedPart,
    /// The weightiest later change.
    pub later: LaterChange,
}

/// The signatures of a document in the order in which they were appended.
pub struct UnverifiedSignatures {
    /// Changes permitted by the author's certification: 1 none, 2 form fields, 3 annotations too.
    pub certification_level: Option<u8>,
    /// Certificates and statements about their revocation that the document holds.
    pub validation_data: ValidationData,
    /// Each signature.
    pub signatures: Vec<UnverifiedSignature>,
}

/// Verifies the signatures of `pdf`. Certificates are checked at the time of a valid time stamp, or
/// else at `now`; without `roots`, they are not checked.
pub fn verify(
    pdf: &[u8],
    found: &UnverifiedSignatures,
    roots: Option<&TrustRoots>,
    now: Timestamp,
) -> Vec<ExistingSignature> {
    // The author's levels are those of ISO 32000-2, 12.8.2.2. Without one, form fields may still change.
    let permitted = match found.certification_level {
        Some(1) => LaterChange::Signatures,
        Some(3) => LaterChange::Annotations,
        _ => LaterChange::FormFields,
    };
    let verified: Vec<Verified> = found
        .signatures
        .iter()
        .map(|signature| Verified::of(pdf, signature, roots, now))
        .collect();

    // A time stamp over the document dates the signatures before it.
    let stamped_later = |index: usize| {
        verified
            .iter()
            .skip(index + 1)
            .any(|later| later.kind == SignatureKind::TimeStamp && later.problem.is_none())
    };
    let roots = roots.map(TrustRoots::certificates).unwrap_or_default();
    let describe = |(index, verified): (usize, &Verified)| {
        let signature = &found.signatures[index];
        let is_covered = verified.is_covered(&found.validation_data, &roots);
        verified.described(signature, permitted, stamped_later(index), is_covered)
    };

    verified.iter().enumerate().map(describe).collect()
}

/// Reason that a signature is not valid.
enum SignatureProblem {
    Altered(String),
    NotVerifiable(String),
}

/// A signature after the verification of its own bytes.
struct Verified {
    kind: SignatureKind,
    problem: Option<SignatureProblem>,
    signer: Option<String>,
    certificate: Option<String>,
    stamp: Option<Timestamp>,
    names_certificate: bool,
    trust: SignatureTrust,
    /// Certificates of the signature, and of its time stamp: each time the signer's first.
    certificates: Vec<Vec<Certificate>>,
}

impl Verified {
    fn of(
        pdf: &[u8],
        signature: &UnverifiedSignature,
        roots: Option<&TrustRoots>,
        now: Timestamp,
    ) -> Self {
        let kind = match signature.format.as_str() {
            DOCUMENT_TIME_STAMP => SignatureKind::TimeStamp,
            _ => SignatureKind::Signature,
        };
        let mut verified = Self {
            kind,
            problem: None,
            signer: None,
            certificate: None,
            stamp: None,
            names_certificate: false,
            trust: SignatureTrust::NotChecked,
            certificates: Vec::new(),
        };

        // The result keeps the parts that were read before the problem, such as the name of the signer.
        verified.problem = verified.read(pdf, signature, roots, now).err();
        verified
    }

    fn read(
        &mut self,
        pdf: &[u8],
        signature: &UnverifiedSignature,
        roots: Option<&TrustRoots>,
        now: Timestamp,
    ) -> Result<(), SignatureProblem> {
        let unknown = SignatureProblem::NotVerifiable;
        if ![PADES, CMS, DOCUMENT_TIME_STAMP].contains(&signature.format.as_str()) {
            return Err(unknown(format!(
                "its format {:?} is not supported",
                signature.format
            )));
        }
        if signature.contents.len() > MAX_BYTES {
            return Err(unknown(format!("it has more than {MAX_BYTES} bytes")));
        }

        // Other programs write BER with indefinite lengths, which the strict parser refuses.
        let message = signed::read(&ber::definite(&signature.contents))
            .map_err(|error| unknown(format!("it cannot be read: {error}")))?;
        let (signer, certificate) = signed::signer(&message).map_err(unknown)?;
        self.signer = Some(certificate.tbs_certificate.subject.to_string());
        self.certificate = fingerprint(certificate).ok();
        self.certificates.push(carried(&message, certificate));

        let covered = covered(pdf, &signature.ranges)
            .ok_or_else(|| unknown("its byte range lies outside the document".into()))?;
        match self.kind {
            SignatureKind::TimeStamp => {
                let (info, _) = stamp::opened(&message).map_err(unknown)?;
                if !stamp::is_about(&info, &covered).map_err(unknown)? {
                    return Err(altered("the stamped bytes were changed".into()));
                }
                self.stamp = Some(stamp::time(&info));
            }
            SignatureKind::Signature => {
                let digest = signed::digest(signer, &covered).map_err(unknown)?;
                if signed::message_digest(signer).is_some_and(|signed| signed != digest) {
                    return Err(altered("the signed bytes were changed".into()));
                }
                // Without signed attributes, the signature does not cover a digest
                // that the check above could compare.
                if signer.signed_attrs.is_none() {
                    return Err(unknown("it has no signed attributes".into()));
                }

                // An unknown algorithm leaves the signature open. Only a
                // known one can show that it was altered.
                signed::algorithm(signer, certificate).map_err(unknown)?;
                signed::verify(signer, certificate).map_err(altered)?;
                self.names_certificate = names_certificate(signer);

                if let Some((at, certificates)) = time_of(signer) {
                    self.stamp = Some(at);
                    self.certificates.push(certificates);
                }
            }
        }

        // A certificate that has expired since then was still good at the proven time.
        let at = self.stamp.unwrap_or(now);
        self.trust = trust(roots, self.kind, &message, certificate, at);
        Ok(())
    }

    /// Whether the data of the document show that no certificate of the signature, and of its time stamp, was revoked.
    fn is_covered(&self, data: &ValidationData, roots: &[Certificate]) -> bool {
        let is_covered = |certificates: &Vec<Certificate>| {
            let known = [certificates.as_slice(), roots].concat();
            certificates
                .first()
                .is_some_and(|signer| data.cover(signer, &known))
        };
        // Without data nothing has to be verified, which takes time.
        !data.is_empty() && self.certificates.iter().all(is_covered)
    }

    fn described(
        &self,
        signature: &UnverifiedSignature,
        permitted: LaterChange,
        stamped_later: bool,
        is_covered: bool,
    ) -> ExistingSignature {
        let (status, problem) = match &self.problem {
            Some(SignatureProblem::Altered(why)) => (SignatureStatus::Altered, Some(why.clone())),
            Some(SignatureProblem::NotVerifiable(why)) => {
                (SignatureStatus::NotVerifiable, Some(why.clone()))
            }
            None => later_problem(signature, permitted),
        };

        let stamped = self.stamp.is_some() || stamped_later;
        // The signer's own clock proves nothing, so a reader learns where the time comes from.
        let (signed_at, time_source) = match (self.stamp, &signature.claimed_at) {
            (Some(at), _) => (Some(at.to_string()), Some(SignatureTimeSource::TimeStamp)),
            (None, Some(claimed)) => (Some(claimed.clone()), Some(SignatureTimeSource::Signer)),
            (None, None) => (None, None),
        };
        let level = (self.kind == SignatureKind::Signature && self.problem.is_none()).then(|| {
            let family = if signature.format == PADES && self.names_certificate {
                "PAdES"
            } else {
                "CMS"
            };
            // The levels of ETSI EN 319 142-1 build on each other: time, then
            // revocation data, then a stamp over both.
            let level = match (stamped, is_covered, stamped_later) {
                (true, true, true) => "LTA",
                (true, true, false) => "LT",
                (true, false, _) => "T",
                (false, _, _) => "B",
            };

            format!("{family}-{level}")
        });

        ExistingSignature {
            field: signature.field.clone(),
            kind: self.kind,
            status,
            problem,
            signer: self.signer.clone(),
            certificate_sha256: self.certificate.clone(),
            signed_at,
            time_source,
            covers: signature.covers,
            changes_after_signing: signature.later,
            level,
            trust: self.trust,
        }
    }
}

/// Judges the bytes around an intact signature, and the revisions after it.
fn later_problem(
    signature: &UnverifiedSignature,
    permitted: LaterChange,
) -> (SignatureStatus, Option<String>) {
    // A signature over a part proves nothing about the rest of its revision,
    // so the later changes do not matter.
    let why = match (signature.covers, signature.later) {
        (SignedPart::Part, _) => "it does not cover the whole revision that it was made in",
        (_, LaterChange::Unknown) => {
            let why = "the revision that it covers cannot be read alone";
            return (SignatureStatus::NotVerifiable, Some(why.into()));
        }
        (_, later) if later <= permitted => return (SignatureStatus::Valid, None),
        (_, LaterChange::Content) => "a later revision changed the content",
        (_, LaterChange::Annotations) => "a later revision changed annotations",
        (_, _) => "a later revision changed form fields, which the author does not permit",
    };

    (SignatureStatus::Altered, Some(why.into()))
}

fn altered(why: String) -> SignatureProblem {
    SignatureProblem::Altered(why)
}

/// Returns the covered bytes as one; none if they lie outside the document.
fn covered(pdf: &[u8], ranges: &[(u64, u64)]) -> Option<Vec<u8>> {
    let mut covered = Vec::new();
    for (offset, length) in ranges {
        let start = usize::try_from(*offset).ok()?;
        let end = start.checked_add(usize::try_from(*length).ok()?)?;
        let piece = pdf.get(start..end)?;

        // Overlapping ranges could otherwise multiply the document in memory.
        if covered.len() + piece.len() > pdf.len() {
            return None;
        }

        covered.extend_from_slice(piece);
    }

    Some(covered)
}

fn names_certificate(signer: &SignerInfo) -> bool {
    [SIGNING_CERTIFICATE_V2, SIGNING_CERTIFICATE]
        .into_iter()
        .any(|oid| signed::attribute(signer, oid).is_some())
}

/// Returns the certificates of a message, the signer's first.
fn carried(message: &SignedData, signer: &Certificate) -> Vec<Certificate> {
    let own = std::iter::once(signer.clone());
    own.chain(signed::certificates(message)).collect()
}

/// Returns the time of the signature's time stamp, if it has one that holds, and its certificates.
fn time_of(signer: &SignerInfo) -> Option<(Timestamp, Vec<Certificate>)> {
    let attributes = signer.unsigned_attrs.as_ref()?;
    let attribute = attributes
        .iter()
        .find(|attribute| attribute.oid == TIME_STAMP_TOKEN)?;
    let token = attribute.values.get(0)?.to_der().ok()?;
    let message = signed::read(&token).ok()?;
    let (info, certificate) = stamp::opened(&message).ok()?;
    let about = stamp::is_about(&info, signer.signature.as_bytes()).ok()?;

    // The token lies outside of the signature, so it counts only if it stamps this very signature.
    about.then(|| (stamp::time(&info), carried(&message, certificate)))
}

fn trust(
    roots: Option<&TrustRoots>,
    kind: SignatureKind,
    message: &SignedData,
    certificate: &Certificate,
    at: Timestamp,
) -> SignatureTrust {
    // A certificate for web servers must not vouch for the signature of a person.
    let purposes: &[_] = match kind {
        SignatureKind::Signature => &DOCUMENT_SIGNING,
        SignatureKind::TimeStamp => &[TIME_STAMPING],
    };
    match roots.map(|roots| roots.check(message, certificate, at, purposes)) {
        None => SignatureTrust::NotChecked,
        Some(Ok(())) => SignatureTrust::Trusted,
        Some(Err(_)) => SignatureTrust::Untrusted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(format: &str) -> UnverifiedSignature {
        UnverifiedSignature {
            field: "Sig1".into(),
            format: format.into(),
            ranges: Vec::new(),
            contents: Vec::new(),
            claimed_at: None,
            covers: SignedPart::WholeDocument,
            later: LaterChange::None,
        }
    }

    /// Verifies one signature of an empty document.
    fn verified(signature: UnverifiedSignature) -> ExistingSignature {
        let found = UnverifiedSignatures {
            certification_level: None,
            validation_data: ValidationData::default(),
            signatures: vec![signature],
        };
        verify(b"", &found, None, Timestamp::from_millis(0)).remove(0)
    }

    #[test]
    fn a_signature_that_cannot_be_read_is_not_said_to_be_altered() {
        let long = UnverifiedSignature {
            contents: vec![0; MAX_BYTES + 1],
            ..signature(PADES)
        };
        for (signature, why) in [
            (
                signature("adbe.x509.rsa"),
                "its format \"adbe.x509.rsa\" is not supported",
            ),
            (long, "it has more than 4194304 bytes"),
            (signature(PADES), "it cannot be read: "),
        ] {
            let verified = verified(signature);
            assert_eq!(verified.status, SignatureStatus::NotVerifiable);
            let problem = verified.problem.unwrap();
            assert!(problem.starts_with(why), "{problem}");
            assert_eq!(verified.trust, SignatureTrust::NotChecked);
        }
    }

    #[test]
    fn a_later_revision_is_judged_by_what_the_author_permits() {
        let changed = |covers, later, permitted| {
            let signature = UnverifiedSignature {
                covers,
                later,
                ..signature(PADES)
            };
            later_problem(&signature, permitted)
        };

        let earlier = SignedPart::EarlierRevision;
        let (forms, all) = (LaterChange::FormFields, LaterChange::Annotations);
        for (covers, later, permitted, status, why) in [
            (
                earlier,
                LaterChange::FormFields,
                forms,
                SignatureStatus::Valid,
                None,
            ),
            (
                earlier,
                LaterChange::FormFields,
                LaterChange::Signatures,
                SignatureStatus::Altered,
                Some("a later revision changed form fields, which the author does not permit"),
            ),
            (
                earlier,
                LaterChange::Annotations,
                all,
                SignatureStatus::Valid,
                None,
            ),
            (
                earlier,
                LaterChange::Annotations,
                forms,
                SignatureStatus::Altered,
                Some("a later revision changed annotations"),
            ),
            (
                earlier,
                LaterChange::Content,
                all,
                SignatureStatus::Altered,
                Some("a later revision changed the content"),
            ),
            (
                earlier,
                LaterChange::Unknown,
                all,
                SignatureStatus::NotVerifiable,
                Some("the revision that it covers cannot be read alone"),
            ),
            (
                SignedPart::Part,
                LaterChange::None,
                all,
                SignatureStatus::Altered,
                Some("it does not cover the whole revision that it was made in"),
            ),
        ] {
            let found = changed(covers, later, permitted);
            assert_eq!(found, (status, why.map(str::to_owned)));
        }
    }

    #[test]
    fn bytes_outside_the_document_are_not_covered() {
        assert_eq!(covered(b"document", &[(0, 3), (5, 3)]).unwrap(), b"docent");
        for outside in [(6, 3), (9, 0), (u64::MAX, 1)] {
            assert_eq!(covered(b"document", &[outside]), None);
        }
    }
}
