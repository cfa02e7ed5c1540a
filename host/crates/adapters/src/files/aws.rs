//! AWS calls that the object store's client lacks: Object Lock and KMS.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsAuthorizer, AwsCredentialProvider};
use object_store::client::{HttpRequest, HttpRequestBody};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::FilesError;
use holdfast_base::config::RetentionMode;
use holdfast_domain::clock::Timestamp;

/// Timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Delays between attempts.
const DELAYS: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
];
const XML: &str = "application/xml";
/// Namespace of S3's documents.
const S3: &str = "http://s3.amazonaws.com/doc/2006-03-01/";
const AMZ_JSON: &str = "application/x-amz-json-1.1";
/// Response size limit, well above any expected response.
const ANSWER_LIMIT: usize = 256 * 1024;

/// Client for signed AWS requests.
pub(super) struct AwsClient {
    http: reqwest::Client,
    credentials: AwsCredentialProvider,
    region: String,
    /// URL of the S3 bucket.
    bucket: String,
    /// URL of KMS.
    kms: String,
}

impl AwsClient {
    /// Takes the object store's configuration, and the KMS endpoint if it is not the AWS default.
    pub(super) fn new(
        (builder, kms): (AmazonS3Builder, Option<String>),
    ) -> Result<Self, FilesError> {
        let value = |key: AmazonS3ConfigKey| builder.get_config_value(&key);
        let region = value(AmazonS3ConfigKey::Region).unwrap_or_else(|| "us-east-1".into());
        let name = value(AmazonS3ConfigKey::Bucket).unwrap_or_default();
        let endpoint = value(AmazonS3ConfigKey::S3Endpoint)
            .or_else(|| value(AmazonS3ConfigKey::Endpoint))
            .map(|endpoint| endpoint.trim_end_matches('/').to_owned());

        // A virtual-hosted endpoint contains the bucket's name already.
        let hosted = value(AmazonS3ConfigKey::VirtualHostedStyleRequest);
        let bucket = match endpoint {
            Some(endpoint) if hosted.as_deref() == Some("true") => endpoint,
            Some(endpoint) => format!("{endpoint}/{name}"),
            None => format!("https://s3.{region}.amazonaws.com/{name}"),
        };

        let kms = kms.unwrap_or_else(|| format!("https://kms.{region}.amazonaws.com"));
        let http = reqwest::Client::builder().timeout(TIMEOUT).build();
        Ok(Self {
            http: http.map_err(|error| FilesError::Aws(error.without_url().to_string()))?,
            credentials: builder.build()?.credentials().clone(),
            region,
            bucket,
            kms,
        })
    }

    /// Locks the object against removal and replacement until `until` (S3, `PutObjectRetention`).
    pub(super) async fn retain(
        &self,
        key: &str,
        mode: RetentionMode,
        until: Timestamp,
    ) -> Result<(), FilesError> {
        let mode = match mode {
            RetentionMode::Compliance => "COMPLIANCE",
            RetentionMode::Governance => "GOVERNANCE",
        };
        let body = format!(
            "<Retention xmlns=\"{S3}\"><Mode>{mode}</Mode>\
             <RetainUntilDate>{until}</RetainUntilDate></Retention>"
        );
        self.lock(key, "retention", body).await
    }

    /// Sets the object's legal hold, or takes it off (S3, `PutObjectLegalHold`).
    pub(super) async fn hold(&self, key: &str, is_held: bool) -> Result<(), FilesError> {
        let status = if is_held { "ON" } else { "OFF" };
        let body = format!("<LegalHold xmlns=\"{S3}\"><Status>{status}</Status></LegalHold>");
        self.lock(key, "legal-hold", body).await
    }

    /// Changes the Object Lock of an object.
    async fn lock(&self, key: &str, what: &str, body: String) -> Result<(), FilesError> {
        let url = format!("{}/{key}?{what}", self.bucket);

        // S3 requires a checksum on requests that change Object Lock.
        let digest = STANDARD.encode(Sha256::digest(&body));
        let headers = [
            ("x-amz-sdk-checksum-algorithm", "SHA256"),
            ("x-amz-checksum-sha256", &digest),
        ];
        self.call("s3", Method::PUT, &url, XML, &headers, body)
            .await?;

        Ok(())
    }

    /// Returns whether the bucket has Object Lock enabled (S3, `GetObjectLockConfiguration`).
    pub(super) async fn can_lock(&self) -> Result<bool, FilesError> {
        let url = format!("{}?object-lock", self.bucket);
        let answer = self
            .call("s3", Method::GET, &url, XML, &[], String::new())
            .await;
        match answer {
            Ok(answer) => {
                let answer = String::from_utf8_lossy(&answer);
                Ok(answer.contains("<ObjectLockEnabled>Enabled</ObjectLockEnabled>"))
            }
            // A bucket that never had Object Lock has no such configuration.
            Err(FilesError::Gone) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Generates a 256-bit data key; returns it in plain and wrapped by KMS.
    pub(super) async fn new_data_key(
        &self,
        key: &str,
        context: &str,
    ) -> Result<(Vec<u8>, String), FilesError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct GenerateDataKeyResponse {
            plaintext: String,
            ciphertext_blob: String,
        }

        // KMS opens the key in the same context only, so it cannot be used for another purpose.
        let body = json!({
            "KeyId": key, "KeySpec": "AES_256", "EncryptionContext": { "holdfast": context },
        });
        let answer: GenerateDataKeyResponse = self.ask_kms("GenerateDataKey", &body).await?;
        Ok((decoded(&answer.plaintext)?, answer.ciphertext_blob))
    }

    /// Unwraps a data key with KMS.
    pub(super) async fn open_data_key(
        &self,
        wrapped: &str,
        context: &str,
    ) -> Result<Vec<u8>, FilesError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct GenerateDataKeyResponse {
            plaintext: String,
        }

        let body = json!({
            "CiphertextBlob": wrapped, "EncryptionContext": { "holdfast": context },
        });
        let answer: GenerateDataKeyResponse = self.ask_kms("Decrypt", &body).await?;
        decoded(&answer.plaintext)
    }

    async fn ask_kms<T: serde::de::DeserializeOwned>(
        &self,
        operation: &str,
        body: &serde_json::Value,
    ) -> Result<T, FilesError> {
        let target = format!("TrentService.{operation}");
        let headers = [("x-amz-target", target.as_str())];
        let body = body.to_string();
        let answer = self
            .call("kms", Method::POST, &self.kms, AMZ_JSON, &headers, body)
            .await?;
        // The parser's error is dropped, because it may quote the key.
        serde_json::from_slice(&answer)
            .map_err(|_| FilesError::Aws("KMS answered something else".into()))
    }

    /// Sends a request and retries transient failures.
    async fn call(
        &self,
        service: &str,
        method: Method,
        url: &str,
        content_type: &'static str,
        headers: &[(&'static str, &str)],
        body: String,
    ) -> Result<Bytes, FilesError> {
        // All calls here may be repeated: a retention is set to the same time, a hold to the
        // same state, and a data key that is lost is not used.
        let mut delays = DELAYS.into_iter();
        loop {
            let body = Bytes::from(body.clone());
            let attempt = self.attempt(service, method.clone(), url, content_type, headers, body);
            match attempt.await {
                Err(AwsCallFailure::Again(why)) => match delays.next() {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => return Err(FilesError::AwsAway(format!("{service}: {why}"))),
                },
                Err(AwsCallFailure::Failed(error)) => return Err(error),
                Ok(answer) => return Ok(answer),
            }
        }
    }

    async fn attempt(
        &self,
        service: &str,
        method: Method,
        url: &str,
        content_type: &'static str,
        headers: &[(&'static str, &str)],
        body: Bytes,
    ) -> Result<Bytes, AwsCallFailure> {
        let failed =
            |why: &str| AwsCallFailure::Failed(FilesError::Aws(format!("{service}: {why}")));
        let mut request = http::Request::builder()
            .method(method)
            .uri(url)
            .header(CONTENT_TYPE, HeaderValue::from_static(content_type));
        for (name, value) in headers {
            request = request.header(HeaderName::from_static(name), *value);
        }

        let mut request: HttpRequest = request
            .body(HttpRequestBody::from(body.clone()))
            .map_err(|_| failed("the address cannot be used"))?;
        // Each attempt is signed anew, because signatures have a time and credentials of a role expire.
        let credential = self.credentials.get_credential().await;
        let credential = credential.map_err(|_| failed("there are no credentials"))?;
        AwsAuthorizer::new(&credential, service, &self.region)
            .try_authorize(&mut request, None)
            .map_err(|_| failed("the request cannot be signed"))?;

        let (parts, _) = request.into_parts();
        let answer = self
            .http
            .request(parts.method, parts.uri.to_string())
            .headers(parts.headers)
            .body(body)
            .send()
            .await
            // The URL contains the object's key, which must not reach the log.
            .map_err(|error| AwsCallFailure::Again(error.without_url().to_string()))?;

        let status = answer.status();
        // Other refusals would be the same at the next try.
        if status.is_server_error() || status == http::StatusCode::TOO_MANY_REQUESTS {
            return Err(AwsCallFailure::Again(status.to_string()));
        }
        if status == http::StatusCode::NOT_FOUND && service == "s3" {
            return Err(AwsCallFailure::Failed(FilesError::Gone));
        }
        if !status.is_success() {
            return Err(failed(&status.to_string()));
        }

        let answer = answer.bytes().await;
        let answer =
            answer.map_err(|error| AwsCallFailure::Again(error.without_url().to_string()))?;
        if answer.len() <= ANSWER_LIMIT {
            Ok(answer)
        } else {
            Err(failed("the answer is too large"))
        }
    }
}

/// Failure of one attempt: retryable or final.
enum AwsCallFailure {
    Again(String),
    Failed(FilesError),
}

fn decoded(text: &str) -> Result<Vec<u8>, FilesError> {
    STANDARD
        .decode(text)
        .map_err(|_| FilesError::Aws("KMS answered something else".into()))
}
