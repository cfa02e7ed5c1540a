//! A webhook receiver: a real server on loopback that records its requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use holdfast::config::Config;
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::TestApp;
use super::authority::openssl;

/// A received delivery.
#[derive(Clone, Debug)]
pub struct ReceivedDelivery {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub at: Instant,
}

impl ReceivedDelivery {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub fn event_type(&self) -> &str {
        self.header("x-service-event")
    }
}

type Answer = Box<dyn Fn(usize, &ReceivedDelivery) -> Response + Send + Sync>;

struct ReceiverState {
    received: Mutex<Vec<ReceivedDelivery>>,
    answer: Mutex<Answer>,
    /// Delay of every response.
    delay: Mutex<Duration>,
    /// Gate that holds responses back until it turns true.
    held: Mutex<Option<watch::Receiver<bool>>>,
}

#[derive(Clone)]
pub struct WebhookReceiver {
    inner: Arc<ReceiverState>,
    pub url: String,
}

impl WebhookReceiver {
    /// Starts a receiver that responds 204 to every delivery.
    pub async fn start() -> Self {
        let inner = Arc::new(ReceiverState {
            received: Mutex::default(),
            answer: Mutex::new(Box::new(|_, _| status(204))),
            delay: Mutex::default(),
            held: Mutex::default(),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());

        let router = Router::new().fallback(receive).with_state(inner.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { inner, url }
    }

    /// Responds to each delivery with the result of `answer`, which gets its index, starting at 0.
    pub fn answer(
        &self,
        answer: impl Fn(usize, &ReceivedDelivery) -> Response + Send + Sync + 'static,
    ) {
        *self.inner.answer.lock().unwrap() = Box::new(answer);
    }

    pub fn answer_with(&self, code: u16) {
        self.answer(move |_, _| status(code));
    }

    pub fn take_long(&self, delay: Duration) {
        *self.inner.delay.lock().unwrap() = delay;
    }

    /// Holds all responses back until `true` is sent on the returned channel.
    pub fn hold(&self) -> watch::Sender<bool> {
        let (tell, told) = watch::channel(false);
        *self.inner.held.lock().unwrap() = Some(told);
        tell
    }

    /// Responds 200 from now on, and counts the deliveries.
    pub fn count_and_take(&self) -> Arc<AtomicUsize> {
        let count = Arc::<AtomicUsize>::default();
        let counted = count.clone();
        self.answer(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            status(200)
        });
        count
    }

    pub fn received(&self) -> Vec<ReceivedDelivery> {
        self.inner.received.lock().unwrap().clone()
    }

    /// Waits for `count` deliveries and returns everything received.
    pub async fn wait_for(&self, count: usize) -> Vec<ReceivedDelivery> {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let received = self.received();
            if received.len() >= count {
                return received;
            }

            let types = received
                .iter()
                .map(|one| one.headers.get("x-service-event"));
            let types: Vec<_> = types.collect();
            assert!(Instant::now() < deadline, "{types:?}, not {count}");

            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

pub fn status(code: u16) -> Response {
    Response::builder()
        .status(code)
        .body(Body::empty())
        .unwrap()
}

async fn receive(State(inner): State<Arc<ReceiverState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return status(400).into_response();
    };

    let received = ReceivedDelivery {
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        body: body.to_bytes(),
        at: Instant::now(),
    };
    let index = {
        let mut all = inner.received.lock().unwrap();
        all.push(received.clone());
        all.len() - 1
    };

    let delay = *inner.delay.lock().unwrap();
    tokio::time::sleep(delay).await;
    let held = inner.held.lock().unwrap().clone();
    if let Some(mut held) = held {
        let _ = held.wait_for(|told| *told).await;
    }

    let answer = inner.answer.lock().unwrap();
    answer(index, &received)
}

/// A receiver that speaks TLS, for one host name.
pub struct TlsReceiver {
    pub port: u16,
    /// Root certificate in PEM.
    pub authority: tempfile::TempPath,
    /// HTTP version of each request.
    pub versions: Arc<Mutex<Vec<http::Version>>>,
}

/// Starts a TLS receiver with a certificate for `name`.
pub async fn secure(name: &str) -> TlsReceiver {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let extensions = format!("subjectAltName=DNS:{name}\nextendedKeyUsage=serverAuth\n");
    std::fs::write(at.join("extensions"), extensions).unwrap();
    let key = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ];

    let ca = [
        "req",
        "-x509",
        "-subj",
        "/CN=Test authority",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
    ];

    openssl(at, &[&ca[..], &key].concat());
    let request = [
        "req",
        "-subj",
        "/CN=receiver",
        "-keyout",
        "key.pem",
        "-out",
        "request",
    ];

    openssl(at, &[&request[..], &key].concat());
    let sign = [
        "x509",
        "-req",
        "-in",
        "request",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-extfile",
        "extensions",
        "-out",
        "certificate.pem",
    ];

    openssl(at, &sign);
    let certificates = CertificateDer::pem_file_iter(at.join("certificate.pem")).unwrap();
    let certificates = certificates.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(at.join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];

    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let versions = Arc::new(Mutex::new(Vec::new()));
    let seen = versions.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, seen) = (acceptor.clone(), seen.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };

                let service = hyper_util::service::TowerToHyperService::new(tower::service_fn(
                    move |request: http::Request<_>| {
                        seen.lock().unwrap().push(request.version());
                        async { Ok::<_, std::convert::Infallible>(status(204)) }
                    },
                ));
                let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });

    let authority = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::copy(at.join("ca.pem"), &authority).unwrap();
    TlsReceiver {
        port,
        authority,
        versions,
    }
}

/// Allows receivers on loopback, and retries failed deliveries soon.
pub fn admit(config: &mut Config) {
    config.webhooks.allow_insecure = true;
    config.webhooks.retry_delays = vec![Duration::from_millis(300)];
}

impl TestApp {
    /// Starts a service that delivers to receivers on loopback.
    pub async fn with_receivers() -> Self {
        Self::with(
            admit,
            holdfast::domain::organization::OrgSettings::default(),
        )
        .await
    }

    /// Creates an endpoint at `url` for these events and returns the response.
    pub async fn endpoint(&self, url: &str, events: &[&str]) -> Value {
        let body = json!({ "url": url, "events": events });
        self.post_with_bearer(&self.admin(), "/webhooks/endpoints", body)
            .await
            .data(201)
    }

    /// Creates a paper envelope, which causes exactly one event, and returns its id.
    pub async fn envelope_event(&self) -> String {
        let body = json!({
            "envelope_name": "Lease", "envelope_kind": "paper",
            "customer_email": "jordan.lee@example.com", "customer_name": "Jordan Lee",
        });
        let envelope = self.post("/partner/envelopes", body).await.data(201);
        envelope["envelope_id"].as_str().unwrap().to_owned()
    }

    /// Polls the log of an endpoint, newest first, until `done` accepts it.
    pub async fn wait_for_log(
        &self,
        endpoint: &Value,
        done: impl Fn(&[Value]) -> bool,
    ) -> Vec<Value> {
        let id = endpoint["endpoint_id"].as_str().unwrap();
        let path = format!("/webhooks/endpoints/{id}/deliveries?limit=100");
        let (admin, deadline) = (self.admin(), Instant::now() + Duration::from_secs(120));
        loop {
            let log = self.get_with_bearer(&admin, &path).await.data(200);
            let log = log.as_array().unwrap();
            if done(log) {
                return log.clone();
            }
            assert!(Instant::now() < deadline, "{log:#?}");

            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until an endpoint's log has entries and none is pending, and returns it.
    pub async fn settled_log(&self, endpoint: &Value) -> Vec<Value> {
        self.wait_for_log(endpoint, |log| {
            !log.is_empty() && log.iter().all(|row| row["status"] != "pending")
        })
        .await
    }
}
