//! OpenID Connect issuers: a conforming one, and one with answers that a test chooses.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::{get, post};
use axum::{Json, Router};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use p256::elliptic_curve::sec1::ToEncodedPoint as _;
use p256::pkcs8::EncodePrivateKey as _;
use serde_json::{Value, json};

/// A signing key of an issuer.
pub struct IssuerKey {
    id: &'static str,
    secret: p256::SecretKey,
}

impl IssuerKey {
    pub fn new(id: &'static str, seed: u8) -> Self {
        Self {
            id,
            secret: p256::SecretKey::from_slice(&[seed; 32]).unwrap(),
        }
    }

    pub fn jwk(&self) -> Value {
        use base64::Engine as _;
        let encode = |bytes: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
        let point = self.secret.public_key().to_encoded_point(false);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id,
            "x": encode(point.x().unwrap()), "y": encode(point.y().unwrap()),
        })
    }

    pub fn sign(&self, claims: &Value) -> String {
        let der = self.secret.to_pkcs8_der().unwrap();
        let header = Header {
            kid: Some(self.id.into()),
            ..Header::new(Algorithm::ES256)
        };
        let key = EncodingKey::from_ec_der(der.as_bytes());
        jsonwebtoken::encode(&header, claims, &key).unwrap()
    }
}

/// A stand-in for an issuer: discovery, keys and tokens, which can change.
pub struct FakeIssuer {
    pub url: String,
    pub keys: Arc<Mutex<Vec<Value>>>,
    /// Answer of the token endpoint; an error without one.
    tokens: Arc<Mutex<Option<Value>>>,
    pub server: tokio::task::JoinHandle<()>,
}

impl FakeIssuer {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let keys: Arc<Mutex<Vec<Value>>> = Arc::default();
        let tokens: Arc<Mutex<Option<Value>>> = Arc::default();
        let (issuer, served, issued) = (url.clone(), keys.clone(), tokens.clone());
        let router = Router::new()
            .route(
                "/.well-known/openid-configuration",
                get(move || async move {
                    Json(json!({
                        "issuer": issuer, "jwks_uri": format!("{issuer}/jwks"),
                        "authorization_endpoint": format!("{issuer}/authorize"),
                        "token_endpoint": format!("{issuer}/token"),
                    }))
                }),
            )
            .route(
                "/jwks",
                get(move || async move { Json(json!({ "keys": *served.lock().unwrap() })) }),
            )
            .route(
                "/token",
                post(move || async move {
                    match issued.lock().unwrap().clone() {
                        Some(tokens) => Json(tokens).into_response(),
                        None => StatusCode::BAD_REQUEST.into_response(),
                    }
                }),
            );

        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            keys,
            tokens,
            server,
        }
    }

    pub fn publish(&self, keys: &[&IssuerKey]) {
        *self.keys.lock().unwrap() = keys.iter().map(|key| key.jwk()).collect();
    }

    /// Issues this ID token from now on.
    pub fn issue(&self, token: Option<&str>) {
        let tokens = token.map(|token| json!({ "id_token": token, "token_type": "Bearer" }));
        *self.tokens.lock().unwrap() = tokens;
    }
}

/// Authentication with a second factor, as [`ConformingIssuer`] names it.
pub const TWO_FACTORS: &str = "urn:oak:two-factors";
pub const CLIENT: &str = "holdfast";
/// With letters that a client has to encode.
pub const CLIENT_SECRET: &str = "secret +/%: of the client";

/// A running `oidc-provider`.
pub struct ConformingIssuer {
    pub url: String,
    running: Child,
}

impl ConformingIssuer {
    /// Starts it for one client. `people` has the claims of each person by login.
    pub fn start(app: &str, people: &Value) -> Self {
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/it/support/issuer.mjs"
        );
        let modules = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../oidc/node_modules");
        let client = json!({
            "client_id": CLIENT, "client_secret": CLIENT_SECRET,
            "redirect_uris": [format!("{app}/console/sso/callback")],
            "post_logout_redirect_uris": [format!("{app}/console/sign-in")],
        });
        let settings = json!({ "client": client, "people": people });
        let mut running = Command::new("node")
            .arg(script)
            .env(
                "MODULES",
                modules.canonicalize().expect("run `tests/set-up test`"),
            )
            .env("SETTINGS", settings.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node is missing: run `tests/set-up test`");

        let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
        let url = lines.find_map(|line| line.ok().filter(|line| line.starts_with("http")));

        // The issuer writes further lines.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            url: url.expect("run `tests/set-up test`"),
            running,
        }
    }
}

impl Drop for ConformingIssuer {
    fn drop(&mut self) {
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}
