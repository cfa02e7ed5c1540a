//! Statements that a certificate was not revoked: lists of its issuer (RFC 5280, section 5) and answers of responders
//! (RFC 6960).

use std::cell::Cell;
use std::time::Duration;

use der::asn1::{Any, BitString, GeneralizedTime, ObjectIdentifier, OctetString};
use der::{Decode as _, Encode as _, Sequence};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use webpki::ALL_VERIFICATION_ALGS;
pub use x509_cert::Certificate;
use x509_cert::crl::CertificateList;
use x509_cert::ext::Extensions;
use x509_cert::ext::pkix::crl::dp::IssuingDistributionPoint;
use x509_cert::ext::pkix::name::{DistributionPointName, GeneralName};
use x509_cert::ext::pkix::{
    AuthorityInfoAccessSyntax, BasicConstraints, CrlDistributionPoints, ExtendedKeyUsage, KeyUsage,
};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use super::stamp::end_of;
use holdfast_domain::clock::Timestamp;

/// RFC 6960, section 4.2.2.2.
const OCSP_SIGNING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.9");
/// RFC 6960, section 4.2.1.
const BASIC_RESPONSE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.1");
/// RFC 5280, section 4.2.2.1.
const RESPONDER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1");
/// RFC 5280, section 5.2.5.
const ISSUING_DISTRIBUTION_POINT: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.28");
/// NIST CSOR, id-sha1. Responders identify certificates by it (RFC 5019, section 2.1.1); nothing depends on its safety.
const SHA_1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");

/// Limits on the certificates from a signer to a root, on those of an answer, and on the statements of one document that are
/// verified: others made the document.
const MAX_PATH: usize = 10;
const MAX_CARRIED: usize = 8;
const MAX_VERIFIED: usize = 1000;

/// How far the clock of an issuer may be ahead, and the time for which a statement without an end is used. Otherwise it could
/// be shown for ever.
const SKEW: Duration = Duration::from_secs(300);
const UNDATED: Duration = Duration::from_secs(86_400);

/// Time for which a statement holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementPeriod {
    /// When it was made.
    pub from: Timestamp,
    /// When a newer one will be available, or the certificate of its signer ends. Without it, a newer one always is.
    pub until: Option<Timestamp>,
}

impl StatementPeriod {
    /// Checks that the statement was made, and that no newer one is due yet.
    fn check(self, now: Timestamp) -> Result<(), String> {
        if now + SKEW < self.from {
            return Err(format!("the statement is of the future: {}", self.from));
        }
        let until = self.until.unwrap_or(self.from + UNDATED);
        if until <= now {
            return Err(format!("the statement is out of date since {until}"));
        }

        Ok(())
    }
}

/// Places where statements about a certificate can be fetched.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RevocationSources {
    /// URLs of responders.
    pub responders: Vec<String>,
    /// URLs of lists.
    pub lists: Vec<String>,
}

/// Returns the places that a certificate names.
pub fn sources(certificate: &Certificate) -> RevocationSources {
    let certificate = &certificate.tbs_certificate;
    let access = certificate
        .get::<AuthorityInfoAccessSyntax>()
        .ok()
        .flatten();
    let access = access.into_iter().flat_map(|(_, access)| access.0);
    let responders = access
        .filter(|access| access.access_method == RESPONDER)
        .filter_map(|access| url(&access.access_location));

    let points = certificate.get::<CrlDistributionPoints>().ok().flatten();
    let points = points.into_iter().flat_map(|(_, points)| points.0);
    let names = points.filter_map(|point| match point.distribution_point {
        Some(DistributionPointName::FullName(names)) => Some(names),
        _ => None,
    });
    let lists = names.flatten().filter_map(|name| url(&name));

    RevocationSources {
        responders: responders.collect(),
        lists: lists.collect(),
    }
}

fn url(name: &GeneralName) -> Option<String> {
    let GeneralName::UniformResourceIdentifier(url) = name else {
        return None;
    };
    // Directories (LDAP) are named too, and not asked.
    let url = url.to_string();
    (url.starts_with("http://") || url.starts_with("https://")).then_some(url)
}

/// Returns the certificates from a signer towards a root, as far as they are known. The last one is a root if
/// [`is_root`] says so.
pub fn path(signer: &Certificate, known: &[Certificate]) -> Vec<Certificate> {
    let mut path = vec![signer.clone()];
    let mut last = signer;
    while !is_root(last) && path.len() < MAX_PATH {
        let Some(issuer) = known.iter().find(|known| is_issued_by(last, known)) else {
            break;
        };
        path.push(issuer.clone());
        last = issuer;
    }

    path
}

/// Whether a certificate is its own issuer.
pub fn is_root(certificate: &Certificate) -> bool {
    certificate.tbs_certificate.issuer == certificate.tbs_certificate.subject
}

fn is_issued_by(certificate: &Certificate, issuer: &Certificate) -> bool {
    let (signed, by) = (&certificate.tbs_certificate, &issuer.tbs_certificate);
    signed.issuer == by.subject
        && signed.to_der().is_ok_and(|content| {
            let algorithm = &certificate.signature_algorithm;
            let key = &by.subject_public_key_info;
            holds(algorithm, key, &content, &certificate.signature)
        })
}

/// Verifies a signature. The algorithms are those of certificate paths.
fn holds(
    algorithm: &AlgorithmIdentifierOwned,
    key: &SubjectPublicKeyInfoOwned,
    content: &[u8],
    signature: &BitString,
) -> bool {
    let encoded = (
        Any::encode_from(algorithm),
        Any::encode_from(&key.algorithm),
    );
    let (Ok(of_signature), Ok(of_key)) = encoded else {
        return false;
    };

    ALL_VERIFICATION_ALGS.iter().any(|known| {
        known.signature_alg_id().as_ref() == of_signature.value()
            && known.public_key_alg_id().as_ref() == of_key.value()
            && known
                .verify_signature(
                    key.subject_public_key.raw_bytes(),
                    content,
                    signature.raw_bytes(),
                )
                .is_ok()
    })
}

/// List of the certificates that an issuer revoked.
pub struct RevocationList {
    list: CertificateList,
    content: Vec<u8>,
}

impl RevocationList {
    /// Parses a list.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let list = CertificateList::from_der(bytes).map_err(|error| error.to_string())?;
        let content = list.tbs_cert_list.to_der();
        let content = content.map_err(|error| error.to_string())?;
        Ok(Self { list, content })
    }

    /// Returns the time for which the list states that a certificate is not revoked.
    ///
    /// # Errors
    /// The reason, for people: the list is not of this issuer, does not hold, or has the certificate.
    pub fn about(
        &self,
        certificate: &Certificate,
        issuer: &Certificate,
    ) -> Result<StatementPeriod, String> {
        let list = &self.list.tbs_cert_list;
        let (about, by) = (&certificate.tbs_certificate, &issuer.tbs_certificate);
        if list.issuer != about.issuer {
            return Err("the list is of another issuer".into());
        }
        let algorithm = &self.list.signature_algorithm;
        let key = &by.subject_public_key_info;
        if !holds(algorithm, key, &self.content, &self.list.signature) {
            return Err("the list is not signed by the issuer of the certificate".into());
        }
        // RFC 5280, 4.2.1.3: a key that may only sign certificates makes no lists.
        let usage = by.get::<KeyUsage>().map_err(|error| error.to_string())?;
        if usage.is_some_and(|(_, usage)| !usage.crl_sign()) {
            return Err("the issuer's certificate is not for lists".into());
        }
        check_scope(list.crl_extensions.as_ref(), certificate)?;

        let mut revoked = list.revoked_certificates.iter().flatten();
        let entry = revoked.find(|entry| entry.serial_number == about.serial_number);
        if let Some(entry) = entry {
            let at = Timestamp::from_millis(0) + entry.revocation_date.to_unix_duration();
            return Err(format!("the certificate was revoked at {at}"));
        }

        let time =
            |time: x509_cert::time::Time| Timestamp::from_millis(0) + time.to_unix_duration();
        Ok(StatementPeriod {
            from: time(list.this_update),
            until: list.next_update.map(time),
        })
    }
}

/// Refuses lists that need not have a certificate if it was revoked.
fn check_scope(extensions: Option<&Extensions>, certificate: &Certificate) -> Result<(), String> {
    for extension in extensions.into_iter().flatten() {
        if extension.extn_id == ISSUING_DISTRIBUTION_POINT {
            let scope = IssuingDistributionPoint::from_der(extension.extn_value.as_bytes());
            let scope = scope.map_err(|error| error.to_string())?;
            let is_of_others = if is_authority(certificate) {
                scope.only_contains_user_certs
            } else {
                scope.only_contains_ca_certs
            };
            if is_of_others
                || scope.only_some_reasons.is_some()
                || scope.indirect_crl
                || scope.only_contains_attribute_certs
                || !is_place_of(scope.distribution_point, certificate)
            {
                return Err("the list is about other certificates of the issuer".into());
            }
        } else if extension.critical {
            // A delta list is critical, too (RFC 5280, 5.2.4).
            return Err(format!(
                "the list has the unknown extension {}",
                extension.extn_id
            ));
        }
    }

    Ok(())
}

/// Whether a certificate is that of an authority.
fn is_authority(certificate: &Certificate) -> bool {
    let constraints = certificate.tbs_certificate.get::<BasicConstraints>();
    constraints
        .ok()
        .flatten()
        .is_some_and(|(_, constraints)| constraints.ca)
}

/// Whether a certificate names the place of a list, or the list names none. Issuers divide long lists among places (RFC
/// 5280, 6.3.3).
fn is_place_of(place: Option<DistributionPointName>, certificate: &Certificate) -> bool {
    match place {
        None => true,
        Some(DistributionPointName::FullName(names)) => {
            let named = sources(certificate).lists;
            let mut names = names.iter().filter_map(url);
            names.any(|name| named.contains(&name))
        }
        Some(DistributionPointName::NameRelativeToCRLIssuer(_)) => false,
    }
}

/// RFC 6960, section 4.1.1.
#[derive(Sequence)]
struct CertificateId {
    hash_algorithm: AlgorithmIdentifierOwned,
    issuer_name_hash: OctetString,
    issuer_key_hash: OctetString,
    serial_number: SerialNumber,
}

impl CertificateId {
    fn of(certificate: &Certificate, issuer: &Certificate) -> der::Result<Self> {
        let hash = |bytes: &[u8]| {
            let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
            OctetString::new(digest.as_ref())
        };
        let by = &issuer.tbs_certificate;
        Ok(Self {
            hash_algorithm: AlgorithmIdentifierOwned {
                oid: SHA_1,
                parameters: Some(Any::null()),
            },
            issuer_name_hash: hash(&by.subject.to_der()?)?,
            issuer_key_hash: hash(by.subject_public_key_info.subject_public_key.raw_bytes())?,
            serial_number: certificate.tbs_certificate.serial_number.clone(),
        })
    }

    /// Whether both are about one certificate. Responders leave the parameters of the algorithm out or not.
    fn is(&self, other: &Self) -> bool {
        self.hash_algorithm.oid == other.hash_algorithm.oid
            && self.issuer_name_hash == other.issuer_name_hash
            && self.issuer_key_hash == other.issuer_key_hash
            && self.serial_number == other.serial_number
    }
}

/// RFC 6960, section 4.1.1, without the optional parts.
#[derive(Sequence)]
struct OcspRequest {
    content: RequestContent,
}

#[derive(Sequence)]
struct RequestContent {
    requests: Vec<RequestOfOne>,
}

#[derive(Sequence)]
struct RequestOfOne {
    certificate: CertificateId,
}

/// RFC 6960, section 4.2.1.
#[derive(Sequence)]
struct OcspResponse {
    /// An enumeration: 0 is success.
    status: Any,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    response: Option<ResponseBytes>,
}

#[derive(Sequence)]
struct ResponseBytes {
    kind: ObjectIdentifier,
    response: OctetString,
}

#[derive(Sequence)]
struct BasicResponse {
    /// Kept as it was encoded, because it is signed.
    content: Any,
    algorithm: AlgorithmIdentifierOwned,
    signature: BitString,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    certificates: Option<Vec<Certificate>>,
}

#[derive(Sequence)]
struct ResponseContent {
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    version: Option<Any>,
    responder: Any,
    produced_at: GeneralizedTime,
    responses: Vec<ResponseOfOne>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    extensions: Option<Any>,
}

#[derive(Sequence)]
struct ResponseOfOne {
    certificate: CertificateId,
    /// A choice of context-specific tags: 0 is good.
    status: Any,
    this_update: GeneralizedTime,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    next_update: Option<GeneralizedTime>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    extensions: Option<Any>,
}

/// Encodes the question for the status of a certificate.
///
/// # Errors
/// A part of the certificates cannot be encoded.
pub fn question(certificate: &Certificate, issuer: &Certificate) -> der::Result<Vec<u8>> {
    let certificate = CertificateId::of(certificate, issuer)?;
    let content = RequestContent {
        requests: vec![RequestOfOne { certificate }],
    };
    OcspRequest { content }.to_der()
}

/// Answer of a responder.
pub struct RevocationAnswer {
    basic: BasicResponse,
    content: ResponseContent,
}

impl RevocationAnswer {
    /// Parses an answer.
    ///
    /// # Errors
    /// The reason, for people: it cannot be read, or the responder refused.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let text = |error: der::Error| error.to_string();
        let answer = OcspResponse::from_der(bytes).map_err(text)?;
        if answer.status.value() != [0] {
            return Err("the responder gave no answer".into());
        }

        let response = answer.response.ok_or("the responder gave no answer")?;
        if response.kind != BASIC_RESPONSE {
            return Err("the answer is of an unknown kind".into());
        }

        let basic = BasicResponse::from_der(response.response.as_bytes()).map_err(text)?;
        let content = basic.content.decode_as::<ResponseContent>().map_err(text)?;
        Ok(Self { basic, content })
    }

    /// Returns the time for which the responder states that a certificate is not revoked.
    ///
    /// # Errors
    /// The reason, for people: the answer is about another certificate, does not hold, or the certificate was revoked.
    pub fn about(
        &self,
        certificate: &Certificate,
        issuer: &Certificate,
    ) -> Result<StatementPeriod, String> {
        let wanted = CertificateId::of(certificate, issuer).map_err(|error| error.to_string())?;
        let mut answers = self.content.responses.iter();
        let answer = answers.find(|answer| answer.certificate.is(&wanted));
        let answer = answer.ok_or("the answer is about another certificate")?;
        let signer = self.signer(issuer);
        let signer = signer.ok_or("the answer is not signed for the issuer of the certificate")?;

        // The tag of the choice: [0] good, [1] revoked, [2] unknown (RFC 6960, 4.2.1).
        match der::Tagged::tag(&answer.status) {
            der::Tag::ContextSpecific { number, .. } if number.value() == 0 => {}
            der::Tag::ContextSpecific { number, .. } if number.value() == 1 => {
                return Err("the certificate was revoked".into());
            }
            _ => return Err("the responder does not know the certificate".into()),
        }

        let time = |time: GeneralizedTime| Timestamp::from_millis(0) + time.to_unix_duration();
        Ok(StatementPeriod {
            from: time(answer.this_update),
            // Later, the key of a responder says nothing any more.
            until: answer
                .next_update
                .map(|until| time(until).min(end_of(signer))),
        })
    }

    /// Returns who signed the answer: the issuer, or a responder that the issuer certified for it.
    fn signer<'a>(&'a self, issuer: &'a Certificate) -> Option<&'a Certificate> {
        let content = self.basic.content.to_der().ok()?;
        let carried = self.basic.certificates.iter().flatten().take(MAX_CARRIED);
        let delegated = carried.filter(|one| may_answer(one) && is_issued_by(one, issuer));

        std::iter::once(issuer).chain(delegated).find(|signer| {
            let key = &signer.tbs_certificate.subject_public_key_info;
            holds(&self.basic.algorithm, key, &content, &self.basic.signature)
        })
    }
}

/// Whether a certificate has the purpose of answering for its issuer.
fn may_answer(certificate: &Certificate) -> bool {
    let purposes = certificate.tbs_certificate.get::<ExtendedKeyUsage>();
    let purposes = purposes.ok().flatten();
    purposes.is_some_and(|(_, purposes)| purposes.0.contains(&OCSP_SIGNING))
}

/// Certificates and statements about their revocation, as a document holds them.
#[derive(Default)]
pub struct ValidationData {
    certificates: Vec<Certificate>,
    lists: Vec<RevocationList>,
    answers: Vec<RevocationAnswer>,
    /// Statements that were verified so far.
    verified: Cell<usize>,
}

impl ValidationData {
    /// Reads certificates, lists and answers in DER. Those that cannot be read are left out: they prove nothing.
    pub fn read(certificates: &[Vec<u8>], lists: &[Vec<u8>], answers: &[Vec<u8>]) -> Self {
        let certificates = certificates.iter();
        let certificates = certificates.filter_map(|bytes| Certificate::from_der(bytes).ok());
        let lists = lists
            .iter()
            .filter_map(|bytes| RevocationList::read(bytes).ok());
        let answers = answers.iter();
        let answers = answers.filter_map(|bytes| RevocationAnswer::read(bytes).ok());
        Self {
            certificates: certificates.collect(),
            lists: lists.collect(),
            answers: answers.collect(),
            verified: Cell::default(),
        }
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty() && self.lists.is_empty() && self.answers.is_empty()
    }

    /// Whether the data show for each certificate from a signer to a root that it was not revoked. `carried` are the
    /// certificates of the signature itself.
    pub fn cover(&self, signer: &Certificate, carried: &[Certificate]) -> bool {
        let known = [carried, &self.certificates].concat();
        let path = path(signer, &known);
        let ends_at_root = path.last().is_some_and(is_root);
        ends_at_root && path.windows(2).all(|pair| self.state(&pair[0], &pair[1]))
    }

    fn state(&self, certificate: &Certificate, issuer: &Certificate) -> bool {
        let mut lists = self.lists.iter();
        let mut answers = self.answers.iter();
        answers.any(|answer| self.has_room() && answer.about(certificate, issuer).is_ok())
            || lists.any(|list| self.has_room() && list.about(certificate, issuer).is_ok())
    }

    /// Counts another statement, unless there were too many.
    fn has_room(&self) -> bool {
        let verified = self.verified.get();
        self.verified.set(verified + 1);
        verified < MAX_VERIFIED
    }
}

/// A certificate whose signature is to stay provable, with the issuer that speaks about it.
pub struct NeededStatement {
    certificate: Certificate,
    issuer: Certificate,
}

impl NeededStatement {
    /// Returns the subject of the certificate.
    pub fn subject(&self) -> String {
        self.certificate.tbs_certificate.subject.to_string()
    }

    /// Returns when the certificate ends.
    pub fn ends_at(&self) -> Timestamp {
        end_of(&self.certificate)
    }

    /// Returns the places where the statement can be fetched.
    pub fn sources(&self) -> RevocationSources {
        sources(&self.certificate)
    }

    /// Returns the question for a responder.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn question(&self) -> Result<Vec<u8>, String> {
        question(&self.certificate, &self.issuer).map_err(|error| error.to_string())
    }

    /// Checks that a list states now that the certificate is not revoked.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn check_list(&self, list: &[u8], now: Timestamp) -> Result<(), String> {
        let list = RevocationList::read(list)?;
        list.about(&self.certificate, &self.issuer)?.check(now)
    }

    /// Checks that an answer states now that the certificate is not revoked.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn check_answer(&self, answer: &[u8], now: Timestamp) -> Result<(), String> {
        let answer = RevocationAnswer::read(answer)?;
        answer.about(&self.certificate, &self.issuer)?.check(now)
    }
}

/// The certificates from a signer to a root, and what has to be stated about each.
pub struct NeededData {
    /// Certificates in DER, the signer's first.
    pub certificates: Vec<Vec<u8>>,
    /// Statements, the one about the signer first. None is needed about a root.
    pub statements: Vec<NeededStatement>,
}

/// Returns what keeps a signature provable. `carried` are its certificates, the signer's first.
///
/// # Errors
/// The reason, for people: the issuer of a certificate is not known.
pub fn needed(carried: &[Certificate], roots: &[Certificate]) -> Result<NeededData, String> {
    let signer = carried.first().ok_or("it has no certificate")?;
    let path = path(signer, &[carried, roots].concat());
    if let Some(last) = path.last().filter(|last| !is_root(last)) {
        let issuer = &last.tbs_certificate.issuer;
        return Err(format!("the certificate of {issuer} is not known"));
    }

    let statements = path.windows(2).map(|pair| NeededStatement {
        certificate: pair[0].clone(),
        issuer: pair[1].clone(),
    });
    let certificates = path.iter().map(Certificate::to_der);
    let certificates = certificates.collect::<der::Result<_>>();

    Ok(NeededData {
        certificates: certificates.map_err(|error| error.to_string())?,
        statements: statements.collect(),
    })
}

/// Returns the name of a signature in the `VRI` dictionary (ETSI EN 319 142-1, 5.4.2.3): the SHA-1 of its contents with
/// their padding.
pub fn vri_name(contents: &[u8]) -> String {
    hex::encode_upper(digest(&SHA1_FOR_LEGACY_USE_ONLY, contents))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_current_until_the_next_one_is_due() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        let check = |until, now| {
            let from = at(86_400);
            StatementPeriod { from, until }.check(at(now))
        };
        let until = Some(at(100_000));
        assert_eq!(check(until, 86_100), Ok(()));
        assert_eq!(check(until, 99_999), Ok(()));
        assert_eq!(
            check(until, 100_000).unwrap_err(),
            "the statement is out of date since 1970-01-02T03:46:40.000Z"
        );
        assert_eq!(
            check(until, 86_099).unwrap_err(),
            "the statement is of the future: 1970-01-02T00:00:00.000Z"
        );

        // A statement that names no end is used for a day.
        assert_eq!(check(None, 172_799), Ok(()));
        assert!(check(None, 172_800).is_err());
    }

    #[test]
    fn bytes_that_are_no_statement_are_refused() {
        assert!(RevocationList::read(b"no list").is_err());
        assert!(RevocationAnswer::read(b"no answer").is_err());

        // An enumeration with the value 6: the responder refuses strangers.
        let refused = RevocationAnswer::read(&[0x30, 0x03, 0x0a, 0x01, 0x06]);
        assert_eq!(
            refused.err().as_deref(),
            Some("the responder gave no answer")
        );

        let nothing = ValidationData::read(&[b"x".to_vec()], &[b"x".to_vec()], &[b"x".to_vec()]);
        assert!(nothing.is_empty());
    }

    #[test]
    fn only_places_on_the_web_are_asked() {
        let name = |text: &str| {
            let text = der::asn1::Ia5String::new(text).unwrap();
            url(&GeneralName::UniformResourceIdentifier(text))
        };
        assert_eq!(
            name("http://a.example/ca.crl").as_deref(),
            Some("http://a.example/ca.crl")
        );
        assert_eq!(name("ldap://a.example/cn=ca"), None);
    }

    #[test]
    fn signatures_are_named_by_their_contents() {
        let name = vri_name(b"");
        assert_eq!(name, "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709");
    }
}
