//! A fake of Google Cloud Storage, which has no emulator of its XML API. That API is S3's with
//! other header names, so this proxy translates the headers and moto stores the objects. Of the
//! JSON API it has the calls for holds, which require the token of the settings.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use holdfast::config::{Config, SecretText};
use serde_json::{Value, json};

use super::holds::{HeldObjects, answer_of};
use super::s3::S3Server;

const TOKEN: &str = "token-of-the-stand-in";

/// Google's name of each header, its S3 name, and the S3 value where it differs.
const NAMES: [(&str, &str, Option<&str>); 2] = [
    ("x-goog-if-generation-match", "if-none-match", Some("*")),
    ("x-goog-copy-source", "x-amz-copy-source", None),
];

/// A running store with the bucket `plain`.
pub struct FakeGcs {
    url: String,
    pub s3: Arc<S3Server>,
    /// Objects with a temporary hold.
    pub held: HeldObjects,
    /// Number of conditional requests, which create an object only if none exists.
    create_only: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct HeaderTranslator {
    s3: Arc<S3Server>,
    held: HeldObjects,
    permissions: &'static [&'static str],
    create_only: Arc<AtomicUsize>,
    http: reqwest::Client,
}

impl FakeGcs {
    pub async fn start() -> Self {
        Self::with_permissions(&["storage.objects.update"]).await
    }

    /// Starts with the permissions that the token has for calls of the JSON API.
    pub async fn with_permissions(permissions: &'static [&'static str]) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let s3 = Arc::new(S3Server::moto());
        let translator = HeaderTranslator {
            s3: s3.clone(),
            held: HeldObjects::default(),
            permissions,
            create_only: Arc::default(),
            http: reqwest::Client::new(),
        };
        let held = translator.held.clone();
        let create_only = translator.create_only.clone();

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(translate).with_state(translator);
        tokio::spawn(async move { axum::serve(listener, router).await });

        Self {
            url,
            s3,
            held,
            create_only,
        }
    }

    pub fn create_only(&self) -> usize {
        self.create_only.load(Ordering::Relaxed)
    }

    /// Configures a node to store its objects here.
    pub fn configure(&self, config: &mut Config) {
        config.storage_url = Some("gs://plain/holdfast".into());
        for (name, value) in [
            ("google_base_url", self.url.as_str()),
            ("google_bearer_token", TOKEN),
            ("allow_http", "true"),
        ] {
            let options = &mut config.storage.options;
            options.insert(name.into(), SecretText::new(value));
        }
    }
}

/// Decodes the key of an object in a path.
fn decoded(name: &str) -> String {
    let mut pairs = url::form_urlencoded::parse(name.as_bytes());
    let name = pairs.next().map(|(name, _)| name.into_owned());
    name.unwrap_or_default()
}

/// Answers a call about the bucket in the JSON API.
async fn json_api(to: &HeaderTranslator, call: &str, request: Request) -> Response<Body> {
    let token = request.headers().get("authorization");
    if token.is_none_or(|token| *token != format!("Bearer {TOKEN}")) {
        return answer_of(StatusCode::UNAUTHORIZED);
    }
    if call == "iam/testPermissions" {
        assert_eq!(request.method(), Method::GET);
        let granted = json!({ "permissions": to.permissions });
        return Response::new(Body::from(granted.to_string()));
    }

    let name = call.strip_prefix("o/").expect("an object");
    assert_eq!(request.method(), Method::PATCH);
    if to.permissions.is_empty() {
        return answer_of(StatusCode::FORBIDDEN);
    }
    let body = to_bytes(request.into_body(), usize::MAX).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    to.held
        .set(&decoded(name), body["temporaryHold"].as_bool().unwrap());

    Response::new(Body::from("{}"))
}

async fn translate(State(to): State<HeaderTranslator>, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if let Some(call) = path.strip_prefix("/storage/v1/b/plain/") {
        return json_api(&to, call, request).await;
    }
    let key = path.strip_prefix("/plain/").map(decoded);
    let is_held = key.is_some_and(|key| to.held.has(&key));
    if is_held && request.method() == Method::DELETE {
        return answer_of(StatusCode::FORBIDDEN);
    }

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
        return answer_of(StatusCode::BAD_GATEWAY);
    };

    let mut translated = answer_of(answer.status());
    *translated.headers_mut() = answer.headers().clone();

    // Objects are never overwritten, so each has a single generation.
    let generation = HeaderName::from_static("x-goog-generation");
    translated
        .headers_mut()
        .insert(generation, HeaderValue::from_static("1"));
    *translated.body_mut() = Body::from_stream(answer.bytes_stream());

    translated
}
