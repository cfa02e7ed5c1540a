//! A fake of Google Cloud Storage, which has no emulator of its XML API. That API is S3's with
//! other header names, so this proxy translates the headers and moto stores the objects. It
//! requires no credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use holdfast::config::{Config, SecretText};
use serde_json::json;

use super::s3::S3Server;

/// Google's name of each header, its S3 name, and the S3 value where it differs.
const NAMES: [(&str, &str, Option<&str>); 2] = [
    ("x-goog-if-generation-match", "if-none-match", Some("*")),
    ("x-goog-copy-source", "x-amz-copy-source", None),
];

/// A running store with the bucket `plain`.
pub struct FakeGcs {
    url: String,
    pub s3: Arc<S3Server>,
    /// Number of conditional requests, which create an object only if none exists.
    create_only: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct HeaderTranslator {
    s3: Arc<S3Server>,
    create_only: Arc<AtomicUsize>,
    http: reqwest::Client,
}

impl FakeGcs {
    pub async fn start() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let s3 = Arc::new(S3Server::moto());
        let translator = HeaderTranslator {
            s3: s3.clone(),
            create_only: Arc::default(),
            http: reqwest::Client::new(),
        };
        let create_only = translator.create_only.clone();

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(translate).with_state(translator);
        tokio::spawn(async move { axum::serve(listener, router).await });

        Self {
            url,
            s3,
            create_only,
        }
    }

    pub fn create_only(&self) -> usize {
        self.create_only.load(Ordering::Relaxed)
    }

    /// Configures a node to store its objects here.
    pub fn configure(&self, config: &mut Config) {
        config.storage_url = Some("gs://plain/holdfast".into());
        let account = json!({
            "private_key": "none", "private_key_id": "none", "client_email": "",
            "disable_oauth": true, "gcs_base_url": self.url,
        });
        for (name, value) in [
            ("google_service_account_key", account.to_string()),
            ("allow_http", "true".to_owned()),
        ] {
            let options = &mut config.storage.options;
            options.insert(name.into(), SecretText::new(value));
        }
    }
}

async fn translate(State(to): State<HeaderTranslator>, request: Request) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    for (name, there, value) in NAMES {
        if let Some(given) = parts.headers.remove(name) {
            if value.is_some() {
                assert_eq!(given, "0", "{name}");
                to.create_only.fetch_add(1, Ordering::Relaxed);
            }
            let value = value.map_or(given, HeaderValue::from_static);
            parts.headers.insert(HeaderName::from_static(there), value);
        }
    }

    for own in ["host", "authorization"] {
        parts.headers.remove(own);
    }

    let signed = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
                  SignedHeaders=host, Signature=0";
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let answer = to
        .http
        .request(parts.method, format!("{}{}", to.s3.url, parts.uri))
        .headers(parts.headers)
        .header("authorization", signed)
        .body(body)
        .send()
        .await;
    let Ok(answer) = answer else {
        let mut nothing = Response::new(Body::empty());
        *nothing.status_mut() = StatusCode::BAD_GATEWAY;
        return nothing;
    };

    let mut translated = Response::new(Body::empty());
    *translated.status_mut() = answer.status();
    *translated.headers_mut() = answer.headers().clone();

    // Objects are never overwritten, so each has a single generation.
    let generation = HeaderName::from_static("x-goog-generation");
    translated
        .headers_mut()
        .insert(generation, HeaderValue::from_static("1"));
    *translated.body_mut() = Body::from_stream(answer.bytes_stream());

    translated
}
