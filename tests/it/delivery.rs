//! Webhook deliveries never reach internal addresses, for any URL and any DNS response.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::Method;
use futures::future::BoxFuture;
use holdfast::delivery::guard::DnsLookup;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::TestApp;
use crate::support::receiver::admit;

const ENDPOINTS: &str = "/webhooks/endpoints";

/// A fake DNS resolver with records that the test sets. It follows aliases.
#[derive(Default)]
struct FakeResolver {
    addresses: Mutex<HashMap<String, Vec<IpAddr>>>,
    aliases: Mutex<HashMap<String, String>>,
    asked: AtomicUsize,
}

impl FakeResolver {
    fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let mut known = self.addresses.lock().unwrap();
        known.insert(name.to_owned(), addresses);
    }

    fn alias(&self, name: &str, of: &str) {
        let mut aliases = self.aliases.lock().unwrap();
        aliases.insert(name.to_owned(), of.to_owned());
    }

    fn find(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let aliases = self.aliases.lock().unwrap();
        let mut name = name;
        for _ in 0..8 {
            match aliases.get(name) {
                Some(canonical) => name = canonical,
                None => break,
            }
        }

        let known = self.addresses.lock().unwrap();
        let none = || io::Error::new(io::ErrorKind::NotFound, "no such name");
        known.get(name).cloned().ok_or_else(none)
    }
}

/// Adapter that implements [`DnsLookup`] with the fake resolver.
struct ResolverHandle(Arc<FakeResolver>);

impl DnsLookup for ResolverHandle {
    fn addresses(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let found = self.0.find(&name);
        Box::pin(async move { found })
    }
}

/// An internal server that counts its connections.
struct InternalServer {
    knocks: Arc<AtomicUsize>,
    port: u16,
}

impl InternalServer {
    async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let knocks = Arc::new(AtomicUsize::new(0));
        let counted = knocks.clone();
        tokio::spawn(async move {
            loop {
                let _ = listener.accept().await;
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });

        Self { knocks, port }
    }

    #[track_caller]
    fn assert_untouched(&self) {
        assert_eq!(self.knocks.load(Ordering::Relaxed), 0);
    }
}

async fn create(app: &TestApp, url: &str) -> crate::support::TestResponse {
    let body = json!({ "url": url, "events": ["*"] });
    app.post_with_bearer(&app.admin(), ENDPOINTS, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_name_with_an_internal_address_is_refused_at_registration() {
    let names = Arc::new(FakeResolver::default());
    let inside = InternalServer::listen().await;
    names.set("inside.example.com", &["127.0.0.1"]);
    names.set("mixed.example.com", &["93.184.216.34", "127.0.0.1"]);
    names.set(
        "six.example.com",
        &["2606:2800:220:1::1", "::ffff:10.0.0.1"],
    );

    names.set("metadata.example.com", &["169.254.169.254"]);
    names.alias("www.example.com", "cdn.example.com");
    names.alias("cdn.example.com", "edge.example.com");
    names.set("edge.example.com", &["192.168.1.1"]);

    let app = TestApp::with_lookup(|_| {}, Arc::new(ResolverHandle(names.clone()))).await;
    for name in [
        "inside.example.com",
        "mixed.example.com",
        "six.example.com",
        "metadata.example.com",
        "www.example.com",
    ] {
        let url = format!("https://{name}:{}/", inside.port);
        let answer = create(&app, &url).await;
        assert_eq!(answer.status, 422, "{name}");

        let issue = answer.json()["details"][0].clone();
        assert_eq!(issue["path"], json!(["url"]));
        assert!(
            issue["message"].as_str().unwrap().contains("is not public"),
            "{issue}"
        );
    }

    let good = create(&app, "https://hooks.example.com/").await.data(201);
    let path = format!("{ENDPOINTS}/{}", good["endpoint_id"].as_str().unwrap());
    let moved = json!({ "url": format!("https://mixed.example.com:{}/", inside.port) });
    let answer = app
        .as_bearer(Method::PATCH, &app.admin(), &path, moved)
        .await;
    assert_eq!(answer.error(422), "Validation failed");

    let legacy = json!({ "webhook_url": format!("https://inside.example.com:{}/", inside.port) });
    let answer = app.patch("/partner/webhook", legacy).await;
    assert_eq!(answer.error(422), "Validation failed");

    inside.assert_untouched();
}

/// A name that had a public address at registration resolves to an internal one at delivery.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_name_that_moves_to_an_internal_address_is_not_contacted() {
    let names = Arc::new(FakeResolver::default());
    let inside = InternalServer::listen().await;
    let settings = |config: &mut holdfast::config::Config| {
        config.webhooks.retry_delays = vec![Duration::from_millis(50)];
    };
    let app = TestApp::with_lookup(settings, Arc::new(ResolverHandle(names.clone()))).await;

    let mut endpoints = Vec::new();
    for name in ["a.example.com", "b.example.com", "c.example.com"] {
        names.set(name, &["93.184.216.34"]);
        let url = format!("https://{name}:{}/", inside.port);
        endpoints.push(create(&app, &url).await.data(201));
    }

    names.set("a.example.com", &["127.0.0.1"]);
    names.set("b.example.com", &["93.184.216.34", "::1"]);
    names.alias("c.example.com", "d.example.com");
    names.alias("d.example.com", "a.example.com");
    let asked = names.asked.load(Ordering::Relaxed);
    app.envelope_event().await;

    for endpoint in &endpoints {
        let row = app.settled_log(endpoint).await.remove(0);
        assert_eq!(row["status"], "failed");
        assert_eq!(row["attempt_count"], 5);
        assert_eq!(row["response_code"], Value::Null);

        let error = row["error"].as_str().unwrap();
        assert!(error.contains("is not public"), "{error}");

        let path = format!(
            "{ENDPOINTS}/{}/test",
            endpoint["endpoint_id"].as_str().unwrap()
        );
        let tested = app.post_with_bearer(&app.admin(), &path, json!({})).await;
        assert_eq!(tested.data(200)["delivered"], false);
    }

    // Each attempt resolves the name once: a second lookup could return another address.
    assert_eq!(names.asked.load(Ordering::Relaxed) - asked, 3 * 6);

    inside.assert_untouched();
}

/// The address rules apply before each delivery, also to URLs that are already stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_stored_webhook_url_is_checked_before_delivery() {
    let inside = InternalServer::listen().await;
    let settings = |config: &mut holdfast::config::Config| {
        config.webhooks.retry_delays = vec![Duration::from_millis(10)];
    };
    let names = Arc::new(FakeResolver::default());
    let app = TestApp::with_lookup(settings, Arc::new(ResolverHandle(names))).await;

    let endpoint = create(&app, "https://hooks.example.com/").await.data(201);
    for url in [
        "https://127.0.0.1:{}/",
        "http://127.0.0.1:{}/",
        "https://[::ffff:127.0.0.1]:{}/",
        "https://2130706433:{}/",
    ] {
        let url = url.replace("{}", &inside.port.to_string());
        app.change("update webhook_endpoint set url = $1", &url)
            .await;
        app.envelope_event().await;
        let log = app.settled_log(&endpoint).await;
        assert!(log.iter().all(|row| row["status"] == "failed"), "{url}");
    }

    inside.assert_untouched();
}

/// TLS verifies the name in the URL.
#[tokio::test(flavor = "multi_thread")]
async fn a_receivers_certificate_needs_the_right_name_and_a_trusted_root() {
    let secure = crate::support::receiver::secure("hooks.example.com").await;
    let names = Arc::new(FakeResolver::default());
    names.set("hooks.example.com", &["127.0.0.1"]);
    names.set("other.example.com", &["127.0.0.1"]);

    for trusted in [true, false] {
        let ca_file = secure.authority.to_path_buf();
        let settings = |config: &mut holdfast::config::Config| {
            admit(config);
            config.webhooks.max_attempts = 1;
            config.webhooks.ca_file = trusted.then_some(ca_file);
        };
        let app = TestApp::with_lookup(settings, Arc::new(ResolverHandle(names.clone()))).await;

        let url = |name: &str| format!("https://{name}:{}/", secure.port);
        let right = create(&app, &url("hooks.example.com")).await.data(201);
        let wrong = create(&app, &url("other.example.com")).await.data(201);
        app.envelope_event().await;
        let right = app.settled_log(&right).await.remove(0);
        let wrong = app.settled_log(&wrong).await.remove(0);
        assert_eq!(wrong["status"], "failed");

        let why = wrong["error"].as_str().unwrap();
        assert!(why.contains("certificate"), "{why}");

        if trusted {
            assert_eq!(right["status"], "delivered", "{right}");
        } else {
            let why = right["error"].as_str().unwrap();
            assert!(why.contains("certificate"), "{why}");
        }
    }

    assert_eq!(
        *secure.versions.lock().unwrap(),
        [axum::http::Version::HTTP_2]
    );
}
