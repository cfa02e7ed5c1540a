//! Time stamps (RFC 3161): a third party's statement of the time at which a seal existed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cms::signed_data::SignedData;
use der::Decode as _;
use der::asn1::{Int, ObjectIdentifier, OctetString};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::signature::DigestAlgorithm;
use x509_cert::Certificate;
use x509_cert::ext::pkix::ExtendedKeyUsage;
use x509_tsp::TstInfo;

use crate::ber;
use crate::signed;
use crate::trust::{self, TrustRoots};

/// RFC 3161, section 2.4.2.
const TST_INFO: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4");
/// RFC 3161, section 2.3.
const TIME_STAMPING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.8");

/// Valid time stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeStamp {
    /// Time at which the authority saw the seal.
    pub at: Timestamp,
    /// Subject of the authority's certificate.
    pub authority: String,
    /// When that certificate ends.
    pub ends_at: Timestamp,
    token: Vec<u8>,
}

impl TimeStamp {
    /// Returns the token in base64.
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.token)
    }

    /// Returns the token.
    pub fn token(&self) -> &[u8] {
        &self.token
    }

    /// Returns the size of the token in bytes.
    pub fn size(&self) -> usize {
        self.token.len()
    }

    /// Returns the certificates in the token, the authority's first.
    pub fn certificates(&self) -> Vec<Certificate> {
        let Ok(message) = signed::read(&self.token) else {
            return Vec::new();
        };
        let own = signed::signer(&message).map(|(_, own)| own.clone());
        own.into_iter()
            .chain(signed::certificates(&message))
            .collect()
    }

    /// Checks that a certificate path leads from the authority to one of the roots.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn leads_to(&self, roots: &TrustRoots) -> Result<(), String> {
        let message = signed::read(&self.token).map_err(|error| error.to_string())?;
        let (_, certificate) = signed::signer(&message)?;
        roots.check(&message, certificate, self.at, &[trust::TIME_STAMPING])
    }

    /// Checks that a token is about `digest`, and is signed with the key of a certificate for
    /// time stamping. [`TimeStamp::leads_to`] checks the path of the certificate.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn open(token: Vec<u8>, digest: &[u8; 32]) -> Result<Self, String> {
        Self::checked(token, DigestAlgorithm::Sha256, digest, None)
    }

    /// Like [`TimeStamp::open`], for a digest of any known algorithm, and for the response to a request with this
    /// nonce.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn checked(
        token: Vec<u8>,
        algorithm: DigestAlgorithm,
        digest: &[u8],
        nonce: Option<&Int>,
    ) -> Result<Self, String> {
        let message = signed::read(&token).map_err(|error| error.to_string())?;
        let (info, certificate) = opened(&message)?;
        let imprint = &info.message_imprint;
        let same = imprint.hash_algorithm.oid == signed::oid_of(algorithm)
            && imprint.hashed_message.as_bytes() == digest;
        if !same {
            return Err("it is about something else".into());
        }
        // Without the nonce, an old answer could be replayed as a new one (RFC 3161, 2.4.2).
        if nonce.is_some() && info.nonce.as_ref() != nonce {
            return Err("it answers another question".into());
        }

        Ok(Self {
            at: time(&info),
            authority: certificate.tbs_certificate.subject.to_string(),
            ends_at: end_of(certificate),
            token,
        })
    }

    /// Opens a token over `content`, with the digest algorithm that the token names.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn over(token: Vec<u8>, content: &[&[u8]]) -> Result<(Self, DigestAlgorithm), String> {
        let message = signed::read(&token).map_err(|error| error.to_string())?;
        let (info, _) = opened(&message)?;
        let named = info.message_imprint.hash_algorithm.oid;
        let mut known = DigestAlgorithm::ALL.iter().copied();
        let algorithm = known
            .find(|known| signed::oid_of(*known) == named)
            .ok_or("its digest algorithm is not known")?;

        let digest = signed::digest_of(algorithm, content);
        Ok((Self::checked(token, algorithm, &digest, None)?, algorithm))
    }
}

/// Returns when a certificate ends.
pub fn end_of(certificate: &Certificate) -> Timestamp {
    Timestamp::from_millis(0)
        + certificate
            .tbs_certificate
            .validity
            .not_after
            .to_unix_duration()
}

/// Returns the content of a token that is signed with the key of a certificate for time stamping,
/// and the certificate.
///
/// # Errors
/// The reason, for people.
pub(crate) fn opened(message: &SignedData) -> Result<(TstInfo, &Certificate), String> {
    let content = &message.encap_content_info;
    if content.econtent_type != TST_INFO {
        return Err("it holds no time".into());
    }

    let info = content
        .econtent
        .as_ref()
        .and_then(|content| content.decode_as::<OctetString>().ok())
        .ok_or("it holds no time")?;
    let (signer, certificate) = signed::signer(message)?;
    if signed::message_digest(signer) != Some(signed::digest(signer, info.as_bytes())?) {
        return Err("it was changed after it was signed".into());
    }

    signed::verify(signer, certificate)?;
    // RFC 3161, 2.3, demands this purpose: a stolen certificate of a web server must not make times.
    let purposes = certificate.tbs_certificate.get::<ExtendedKeyUsage>();
    let purposes = purposes.map_err(|error| error.to_string())?;
    if !purposes.is_some_and(|(_, purposes)| purposes.0.contains(&TIME_STAMPING)) {
        return Err("its certificate is not for time stamps".into());
    }

    // The signature covers the bytes with fractions, so they are cut only after it was verified.
    let info = ber::without_fractions(info.as_bytes());
    let info = TstInfo::from_der(&info).map_err(|error| error.to_string())?;
    Ok((info, certificate))
}

/// Returns the time in a token.
pub(crate) fn time(info: &TstInfo) -> Timestamp {
    Timestamp::from_millis(0) + info.gen_time.to_unix_duration()
}

/// Returns whether a token is about `content`.
///
/// # Errors
/// The digest algorithm is not known or no longer safe.
pub(crate) fn is_about(info: &TstInfo, content: &[u8]) -> Result<bool, String> {
    let imprint = &info.message_imprint;
    let digest = signed::digest_with(imprint.hash_algorithm.oid, content)?;
    Ok(imprint.hashed_message.as_bytes() == digest)
}
