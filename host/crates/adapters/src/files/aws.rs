//! AWS calls that the object store's client lacks: Object Lock and KMS.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::FilesError;
use super::calls::{RequestSigner, SignedCalls, StoreCall, StoreService};
use holdfast_base::config::RetentionMode;
use holdfast_domain::clock::Timestamp;

const XML: &str = "application/xml";
/// Namespace of S3's documents.
const S3: &str = "http://s3.amazonaws.com/doc/2006-03-01/";
const AMZ_JSON: &str = "application/x-amz-json-1.1";

/// Client for signed AWS requests.
pub(super) struct AwsClient {
    calls: SignedCalls,
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
        let credentials = builder.build()?.credentials().clone();
        Ok(Self {
            calls: SignedCalls::new(RequestSigner::Aws {
                credentials,
                region,
            })?,
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
            ("content-type", XML),
            ("x-amz-sdk-checksum-algorithm", "SHA256"),
            ("x-amz-checksum-sha256", &digest),
        ];
        self.call(StoreService::S3, Method::PUT, &url, &headers, body)
            .await?;

        Ok(())
    }

    /// Returns whether the bucket has Object Lock enabled (S3, `GetObjectLockConfiguration`).
    pub(super) async fn can_lock(&self) -> Result<bool, FilesError> {
        let url = format!("{}?object-lock", self.bucket);
        let headers = [("content-type", XML)];
        let answer = self
            .call(StoreService::S3, Method::GET, &url, &headers, String::new())
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
        let headers = [
            ("content-type", AMZ_JSON),
            ("x-amz-target", target.as_str()),
        ];
        let body = body.to_string();
        let answer = self
            .call(StoreService::Kms, Method::POST, &self.kms, &headers, body)
            .await?;
        // The parser's error is dropped, because it may quote the key.
        serde_json::from_slice(&answer)
            .map_err(|_| FilesError::Refused("AWS KMS answered something else".into()))
    }

    async fn call(
        &self,
        service: StoreService,
        method: Method,
        url: &str,
        headers: &[(&'static str, &str)],
        body: String,
    ) -> Result<Bytes, FilesError> {
        let call = StoreCall {
            service,
            method,
            url,
            headers,
            body,
        };
        Ok(self.calls.send(&call).await?.body)
    }
}

fn decoded(text: &str) -> Result<Vec<u8>, FilesError> {
    STANDARD
        .decode(text)
        .map_err(|_| FilesError::Refused("AWS KMS answered something else".into()))
}
