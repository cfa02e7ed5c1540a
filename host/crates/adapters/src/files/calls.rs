//! Signed requests of the object store's services that its client lacks.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use object_store::aws::{AwsAuthorizer, AwsCredentialProvider};
use object_store::azure::{AzureAuthorizer, AzureCredentialProvider};
use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::gcp::GcpCredentialProvider;

use super::FilesError;

/// Timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Delays between attempts.
const DELAYS: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
];
/// Response size limit, well above any expected response.
const ANSWER_LIMIT: usize = 256 * 1024;

/// Service that gets signed requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreService {
    S3,
    Kms,
    Azure,
    Google,
}

impl fmt::Display for StoreService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::S3 => "AWS s3",
            Self::Kms => "AWS kms",
            Self::Azure => "Azure",
            Self::Google => "Google",
        })
    }
}

/// A request before its signature.
pub(super) struct StoreCall<'a> {
    pub(super) service: StoreService,
    pub(super) method: Method,
    pub(super) url: &'a str,
    /// Names in lower case.
    pub(super) headers: &'a [(&'static str, &'a str)],
    pub(super) body: String,
}

/// Answer to a request that succeeded.
pub(super) struct CallAnswer {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Credentials of the object store's client, which sign requests.
pub(super) enum RequestSigner {
    Aws {
        credentials: AwsCredentialProvider,
        region: String,
    },
    Azure {
        credentials: AzureCredentialProvider,
        account: String,
    },
    Google {
        credentials: GcpCredentialProvider,
    },
}

impl RequestSigner {
    /// Signs a request. The error is a reason that shows nothing of the credentials.
    async fn sign(
        &self,
        service: StoreService,
        request: &mut HttpRequest,
    ) -> Result<(), &'static str> {
        const MISSING: &str = "there are no credentials";
        const UNSIGNED: &str = "the request cannot be signed";

        match self {
            Self::Aws {
                credentials,
                region,
            } => {
                let name = if service == StoreService::Kms {
                    "kms"
                } else {
                    "s3"
                };
                let credential = credentials.get_credential().await.map_err(|_| MISSING)?;
                let authorizer = AwsAuthorizer::new(&credential, name, region);
                authorizer
                    .try_authorize(request, None)
                    .map_err(|_| UNSIGNED)?;
            }
            Self::Azure {
                credentials,
                account,
            } => {
                let credential = credentials.get_credential().await.map_err(|_| MISSING)?;
                let authorizer = AzureAuthorizer::new(&credential, account);
                authorizer.try_authorize(request).map_err(|_| UNSIGNED)?;
            }
            Self::Google { credentials } => {
                let credential = credentials.get_credential().await.map_err(|_| MISSING)?;
                let bearer = format!("Bearer {}", credential.bearer);
                let mut bearer = HeaderValue::from_str(&bearer).map_err(|_| UNSIGNED)?;
                bearer.set_sensitive(true);
                request.headers_mut().insert(AUTHORIZATION, bearer);
            }
        }

        Ok(())
    }
}

/// Client for signed requests.
pub(super) struct SignedCalls {
    http: reqwest::Client,
    signer: RequestSigner,
}

impl SignedCalls {
    pub(super) fn new(signer: RequestSigner) -> Result<Self, FilesError> {
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            // A signature is for one address, and a URL with a token would be the referrer of the next request.
            .redirect(reqwest::redirect::Policy::none())
            .build();
        let http = http.map_err(|error| FilesError::Refused(error.without_url().to_string()))?;
        Ok(Self { http, signer })
    }

    /// Sends a request and retries transient failures.
    ///
    /// # Errors
    ///
    /// [`FilesError::Gone`] if there is no such object, [`FilesError::Refused`] if a repeat would fail like this call,
    /// [`FilesError::Away`] after all retries.
    pub(super) async fn send(&self, call: &StoreCall<'_>) -> Result<CallAnswer, FilesError> {
        // All calls may be repeated: a retention is set to the same time, a hold to the same state,
        // and a data key that is lost is not used.
        let mut delays = DELAYS.into_iter();
        loop {
            match self.attempt(call).await {
                Err(CallFailure::Again(why)) => match delays.next() {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => return Err(FilesError::Away(format!("{}: {why}", call.service))),
                },
                Err(CallFailure::Failed(error)) => return Err(error),
                Ok(answer) => return Ok(answer),
            }
        }
    }

    async fn attempt(&self, call: &StoreCall<'_>) -> Result<CallAnswer, CallFailure> {
        let failed = |why: &str| {
            CallFailure::Failed(FilesError::Refused(format!("{}: {why}", call.service)))
        };
        let body = Bytes::from(call.body.clone());
        let mut request = http::Request::builder()
            .method(call.method.clone())
            .uri(call.url);
        for (name, value) in call.headers {
            request = request.header(HeaderName::from_static(name), *value);
        }

        let mut request: HttpRequest = request
            .body(HttpRequestBody::from(body.clone()))
            .map_err(|_| failed("the address cannot be used"))?;
        // Each attempt is signed anew, because signatures have a time and credentials of a role expire.
        let signed = self.signer.sign(call.service, &mut request).await;
        signed.map_err(failed)?;

        let (parts, _) = request.into_parts();
        let answer = self
            .http
            .request(parts.method, parts.uri.to_string())
            .headers(parts.headers)
            .body(body)
            .send()
            .await
            // The URL contains the object's key and may contain a token, which must not reach the log.
            .map_err(|error| CallFailure::Again(error.without_url().to_string()))?;

        let status = answer.status();
        // Other refusals would be the same at the next try.
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(CallFailure::Again(status.to_string()));
        }
        if status == StatusCode::NOT_FOUND && call.service != StoreService::Kms {
            return Err(CallFailure::Failed(FilesError::Gone));
        }
        if !status.is_success() {
            return Err(failed(&status.to_string()));
        }

        let headers = answer.headers().clone();
        let body = answer.bytes().await;
        let body = body.map_err(|error| CallFailure::Again(error.without_url().to_string()))?;
        if body.len() <= ANSWER_LIMIT {
            Ok(CallAnswer { headers, body })
        } else {
            Err(failed("the answer is too large"))
        }
    }
}

/// Failure of one attempt: retryable or final.
enum CallFailure {
    Again(String),
    Failed(FilesError),
}
