//! Statements about the revocation of certificates, fetched from the places that certificates name: lists (RFC 5280) and
//! answers of responders (RFC 6960, appendix A).
//!
//! The statements are signed, so they are fetched with plain HTTP too. They are kept in memory as long as their readers
//! say that they are current.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use moka::sync::Cache;
use url::Url;

use super::guard::{self, AllowedAddresses};
use holdfast_domain::hash::sha256;

/// Time limit of a request, its body included.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest statement, in bytes. A list becomes a part of each record that needs it.
pub const STATEMENT_LIMIT: usize = 1024 * 1024;
/// Statements that are kept, in bytes of all together, and for how long: revocations have to become known.
const KEPT_BYTES: u64 = 32 * 1024 * 1024;
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// Reason why a statement was not fetched. The texts have no address but that of the certificate.
#[derive(Debug, thiserror::Error)]
pub enum RevocationFetchError {
    /// The certificate names an address that may not be asked.
    #[error("{0} is refused: {1}")]
    Refused(String, String),
    /// There was no answer.
    #[error("{0} cannot be reached: {1}")]
    Unreachable(String, String),
    /// The answer is an error.
    #[error("{0} answers with status {1}")]
    Status(String, u16),
    /// The answer is too large.
    #[error("{0} answers with more than {limit} bytes", limit = STATEMENT_LIMIT)]
    TooLarge(String),
}

/// Fetches statements, and keeps them for the next certificate of the same issuer.
pub struct RevocationFetcher {
    http: reqwest::Client,
    allowed: AllowedAddresses,
    kept: Cache<String, Bytes>,
}

impl RevocationFetcher {
    /// Creates a client for these addresses and plain HTTP.
    pub fn new(allowed: AllowedAddresses) -> reqwest::Result<Self> {
        let allowed = allowed.with_plain_http();
        let size =
            |_: &String, statement: &Bytes| u32::try_from(statement.len()).unwrap_or(u32::MAX);
        Ok(Self {
            http: guard::client(allowed.clone())?,
            allowed,
            kept: Cache::builder()
                .max_capacity(KEPT_BYTES)
                .weigher(size)
                .time_to_live(KEPT_FOR)
                .build(),
        })
    }

    /// Fetches a list, unless one is kept that `is_current`.
    pub async fn list(
        &self,
        url: &str,
        is_current: impl Fn(&[u8]) -> bool,
    ) -> Result<Bytes, RevocationFetchError> {
        self.fetch(url, None, is_current).await
    }

    /// Asks a responder, unless an answer to the same question is kept that `is_current`.
    pub async fn answer(
        &self,
        url: &str,
        question: Vec<u8>,
        is_current: impl Fn(&[u8]) -> bool,
    ) -> Result<Bytes, RevocationFetchError> {
        self.fetch(url, Some(question), is_current).await
    }

    async fn fetch(
        &self,
        url: &str,
        question: Option<Vec<u8>>,
        is_current: impl Fn(&[u8]) -> bool,
    ) -> Result<Bytes, RevocationFetchError> {
        let key = match &question {
            Some(question) => format!("{url} {}", sha256(question)),
            None => url.to_owned(),
        };
        if let Some(kept) = self.kept.get(&key).filter(|kept| is_current(kept)) {
            return Ok(kept);
        }

        let fetched = self.ask(url, question).await?;
        // Only what can be used again is kept: anyone on the way can answer with something else.
        if is_current(&fetched) {
            self.kept.insert(key, fetched.clone());
        }
        Ok(fetched)
    }

    async fn ask(
        &self,
        named: &str,
        question: Option<Vec<u8>>,
    ) -> Result<Bytes, RevocationFetchError> {
        let refused = |why: &dyn std::fmt::Display| {
            RevocationFetchError::Refused(named.to_owned(), why.to_string())
        };
        let unreachable = |error: reqwest::Error| {
            RevocationFetchError::Unreachable(named.to_owned(), error.without_url().to_string())
        };
        let url = Url::parse(named).map_err(|error| refused(&error))?;
        guard::check_url(&url, &self.allowed).map_err(|error| refused(&error))?;

        let request = match question {
            Some(question) => self
                .http
                .post(url)
                .header("content-type", "application/ocsp-request")
                .body(question),
            None => self.http.get(url),
        };
        let answer = request.timeout(PATIENCE).send().await;
        let mut answer = answer.map_err(unreachable)?;
        if !answer.status().is_success() {
            let status = answer.status().as_u16();
            return Err(RevocationFetchError::Status(named.to_owned(), status));
        }

        let mut body = BytesMut::new();
        while let Some(piece) = answer.chunk().await.map_err(unreachable)? {
            // Checked per piece, so that an endless answer cannot fill memory.
            if body.len() + piece.len() > STATEMENT_LIMIT {
                return Err(RevocationFetchError::TooLarge(named.to_owned()));
            }
            body.extend_from_slice(&piece);
        }

        Ok(body.freeze())
    }
}
