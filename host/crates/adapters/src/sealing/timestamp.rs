//! Client of time stamping authorities (RFC 3161).

use std::time::Duration;

use cmpv2::status::PkiStatus;
use der::asn1::{Int, OctetString};
use der::{Decode as _, Encode as _};
use url::Url;
use x509_cert::Certificate;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_tsp::{MessageImprint, TimeStampReq, TimeStampResp, TspVersion};

use holdfast_base::tls;
use holdfast_evidence::stamp::TimeStamp;
use holdfast_evidence::{TrustRoots, signed};

use holdfast_domain::signature::DigestAlgorithm;
use holdfast_domain::token::random;

/// Timeout of a request, and the number of attempts.
const TIMEOUT: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 2;
/// Response size limit, well above the size of any token.
const ANSWER_LIMIT: usize = 64 * 1024;

/// Reason no timestamp was obtained.
#[derive(Debug, thiserror::Error)]
pub enum TimestampError {
    /// The authority did not answer.
    #[error("the time stamping authority did not answer: {0}")]
    Unreachable(String),
    /// The authority answered with an HTTP error.
    #[error("the time stamping authority answered with status {0}")]
    Status(u16),
    /// The token failed verification.
    #[error("the time stamping authority gave no usable token: {0}")]
    Unusable(String),
}

/// Time stamping authority.
pub struct TimestampAuthority {
    url: Url,
    http: reqwest::Client,
    trust: Option<TrustRoots>,
}

impl TimestampAuthority {
    /// Creates the client of an operator-configured authority.
    /// Without `trust`, its certificate is not verified.
    pub fn new(url: Url, trust: Option<TrustRoots>) -> reqwest::Result<Self> {
        let http = tls::with_system_roots(reqwest::Client::builder())
            .timeout(TIMEOUT)
            // Only the configured address is trusted.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()?;
        Ok(Self { url, http, trust })
    }

    /// Returns the trusted roots of its certificates.
    pub fn roots(&self) -> Vec<Certificate> {
        let trust = self.trust.as_ref();
        trust.map(TrustRoots::certificates).unwrap_or_default()
    }

    /// Returns whether tokens are verified against trust roots.
    pub fn is_checked(&self) -> bool {
        self.trust.is_some()
    }

    /// Requests a token for a digest; retries once if the authority is unreachable.
    pub async fn stamp(
        &self,
        algorithm: DigestAlgorithm,
        digest: &[u8],
    ) -> Result<TimeStamp, TimestampError> {
        let mut attempt = 1;
        loop {
            match self.ask(algorithm, digest).await {
                // An answer of the authority would be the same again. A lost connection may not be.
                Err(TimestampError::Unreachable(_)) if attempt < ATTEMPTS => attempt += 1,
                answer => return answer,
            }
        }
    }

    async fn ask(
        &self,
        algorithm: DigestAlgorithm,
        digest: &[u8],
    ) -> Result<TimeStamp, TimestampError> {
        let unusable = |error: &dyn std::fmt::Display| TimestampError::Unusable(error.to_string());
        // The URL of an authority can contain the account's credentials, so errors lack it.
        let unreachable =
            |error: reqwest::Error| TimestampError::Unreachable(error.without_url().to_string());
        let nonce = nonce().map_err(|error| unusable(&error))?;
        let request = request(algorithm, digest, &nonce).map_err(|error| unusable(&error))?;
        let mut response = self
            .http
            .post(self.url.clone())
            .header("content-type", "application/timestamp-query")
            .body(request)
            .send()
            .await
            .map_err(unreachable)?;
        if !response.status().is_success() {
            return Err(TimestampError::Status(response.status().as_u16()));
        }

        let mut answer = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(unreachable)? {
            answer.extend_from_slice(&piece);
            // Checked per piece, so that an endless response cannot fill memory.
            if answer.len() > ANSWER_LIMIT {
                return Err(unusable(&"it is too large"));
            }
        }

        let token = token(&answer).map_err(TimestampError::Unusable)?;

        // The nonce proves that the token answers this request and is not replayed.
        let stamp = TimeStamp::checked(token, algorithm, digest, Some(&nonce));
        let stamp = stamp.map_err(TimestampError::Unusable)?;
        if let Some(trust) = &self.trust {
            stamp.leads_to(trust).map_err(TimestampError::Unusable)?;
        }

        Ok(stamp)
    }
}

/// Returns a random positive integer.
fn nonce() -> der::Result<Int> {
    let mut bytes = random::<16>();
    // The first bits are 01, so that the encoding is never shortened by a leading zero.
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Int::new(&bytes)
}

fn request(algorithm: DigestAlgorithm, digest: &[u8], nonce: &Int) -> der::Result<Vec<u8>> {
    let request = TimeStampReq {
        version: TspVersion::V1,
        message_imprint: MessageImprint {
            hash_algorithm: AlgorithmIdentifierOwned {
                oid: signed::oid_of(algorithm),
                parameters: None,
            },
            hashed_message: OctetString::new(digest.to_vec())?,
        },
        req_policy: None,
        nonce: Some(nonce.clone()),
        // The token has to be verifiable offline for years, so it needs the authority's certificate.
        cert_req: true,
        extensions: None,
    };

    request.to_der()
}

fn token(answer: &[u8]) -> Result<Vec<u8>, String> {
    let answer = TimeStampResp::from_der(answer).map_err(|error| error.to_string())?;
    // Both codes mean that a token is present (RFC 3161, section 2.4.2). The caller checks the token itself.
    if !matches!(
        answer.status.status,
        PkiStatus::Accepted | PkiStatus::GrantedWithMods
    ) {
        return Err("it was not granted".into());
    }

    let token = answer.time_stamp_token.ok_or("there is none")?;
    token.to_der().map_err(|error| error.to_string())
}
