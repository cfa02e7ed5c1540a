//! One delivery attempt: a signed POST and its result.
//!
//! Connections are pooled, go to checked addresses only, and use HTTP/2 where the receiver supports
//! it. An attempt has ten seconds in total, at most 64 KiB of the response are read, and redirects
//! are not followed.

use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use url::{Host, Url};

use super::guard::{
    self, AllowedAddresses, CONNECT_TIMEOUT, DnsLookup, GuardedResolver, ResolveError,
};
use super::signature;
use holdfast_base::config::WebhookSettings;
use holdfast_base::disk;
use holdfast_base::tls;
use holdfast_domain::at_rest::AtRestCipher;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::event::EventType;
use holdfast_domain::id::{DeliveryId, EndpointId, EventId};
use holdfast_domain::webhook::{AttemptOutcome, EncryptedSecret, Endpoint, WebhookSecret};

/// Timeout of an attempt, from the DNS lookup to the end of the response.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Number of response bytes that are read and stored.
const ANSWER_LIMIT: usize = 64 * 1024;
/// Maximum size of a response's head, in bytes.
const HEAD_LIMIT: usize = 64 * 1024;
/// Number of idle connections per receiver, and how long they stay open.
const IDLE_CONNECTIONS: usize = 8;
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Interval of HTTP/2 pings on a silent connection,
/// and the time until an unanswered ping closes it.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Timeout of the DNS lookup when an endpoint is registered.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(2);

/// Name of this service in requests to receivers.
pub const USER_AGENT: HeaderValue = HeaderValue::from_static("Service-Webhooks/1.0");

/// Destination of a delivery.
#[derive(Clone, Debug)]
pub struct DeliveryTarget {
    pub endpoint: EndpointId,
    pub url: String,
    /// Secret for `X-Service-Signature`; none when deliveries are unsigned.
    pub secret: Option<WebhookSecret>,
    /// Previous secret, and the time until which it also signs.
    pub previous: Option<(WebhookSecret, Timestamp)>,
}

impl DeliveryTarget {
    /// Returns the endpoint's current destination. Returns none when its secret was sealed with
    /// another key: a delivery that must be signed is never sent unsigned.
    pub fn of(endpoint: &Endpoint, cipher: &AtRestCipher) -> Option<Self> {
        let open = |sealed: &EncryptedSecret| sealed.decrypt(&endpoint.id, cipher);
        let secret = match &endpoint.secret {
            None => None,
            Some(sealed) => Some(open(sealed)?),
        };
        let previous = endpoint.previous.as_ref();
        let previous = previous.and_then(|old| Some((open(&old.secret)?, old.until)));

        Some(Self {
            endpoint: endpoint.id.clone(),
            url: endpoint.url.clone(),
            secret,
            previous,
        })
    }
}

/// Payload of a delivery.
#[derive(Clone, Debug)]
pub struct DeliveryPayload {
    pub delivery: DeliveryId,
    pub event: EventId,
    pub event_type: EventType,
    /// Body, identical on every attempt.
    pub body: Bytes,
}

/// Reason the sender could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SenderError {
    /// The file of certificate authorities is invalid.
    #[error("cannot read webhooks.ca_file: {0}")]
    Authorities(String),
    /// The system's certificate authorities or TLS could not be set up.
    #[error("cannot set up TLS for webhooks: {0}")]
    Tls(#[from] rustls::Error),
}

/// Connector that applies [`CONNECT_TIMEOUT`] to TCP and TLS together.
#[derive(Clone)]
struct GuardedConnector(HttpsConnector<HttpConnector<GuardedResolver>>);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl tower::Service<http::Uri> for GuardedConnector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, uri: http::Uri) -> Self::Future {
        let connecting = tokio::time::timeout(CONNECT_TIMEOUT, self.0.call(uri));
        Box::pin(async move {
            let late = || format!("no connection within {} s", CONNECT_TIMEOUT.as_secs());
            connecting.await.map_err(|_| late())?
        })
    }
}

/// Sends deliveries.
#[derive(Clone)]
pub struct WebhookSender {
    client: Client<GuardedConnector, Full<Bytes>>,
    resolver: GuardedResolver,
    allow_insecure: bool,
}

impl WebhookSender {
    /// Creates a sender that resolves names with `lookup`.
    pub fn new(
        settings: &WebhookSettings,
        lookup: Arc<dyn DnsLookup>,
    ) -> Result<Self, SenderError> {
        let resolver =
            GuardedResolver::new(lookup, AllowedAddresses::public(settings.allow_insecure));
        let mut tcp = HttpConnector::new_with_resolver(resolver.clone());

        // The TLS wrapper above it passes `https` URLs down to this connector.
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(client_tls(settings.ca_file.as_deref())?)
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIME)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .http1_max_buf_size(HEAD_LIMIT)
            .http2_max_header_list_size(HEAD_LIMIT as u32)
            // Small windows bound the memory that a fast receiver can make us buffer.
            .http2_initial_stream_window_size(ANSWER_LIMIT as u32)
            .http2_initial_connection_window_size(4 * ANSWER_LIMIT as u32)
            .timer(TokioTimer::new())
            .http2_keep_alive_interval(KEEP_ALIVE)
            .http2_keep_alive_timeout(KEEP_ALIVE)
            .build(GuardedConnector(https));

        Ok(Self {
            client,
            resolver,
            allow_insecure: settings.allow_insecure,
        })
    }

    /// Checks that an endpoint may have this URL: the specification's rules, and the addresses that
    /// its name resolves to now. A name that does not resolve yet is accepted.
    pub async fn check(&self, url: &str) -> Result<Url, String> {
        let url = self.check_text(url)?;
        if let Some(Host::Domain(name)) = url.host() {
            let resolved = tokio::time::timeout(LOOKUP_PATIENCE, self.resolver.resolve(name));
            // Timeouts and unknown names pass: DNS may be
            // set up later, and every send checks again.
            if let Ok(Err(ResolveError::Refused(refused))) = resolved.await {
                return Err(refused.to_string());
            }
        }

        Ok(url)
    }

    fn check_text(&self, url: &str) -> Result<Url, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        guard::check_url(&url, &AllowedAddresses::public(self.allow_insecure))
            .map_err(|refused| refused.to_string())?;
        Ok(url)
    }

    /// Makes one attempt at time `now`.
    pub async fn send(
        &self,
        target: &DeliveryTarget,
        parcel: &DeliveryPayload,
        now: Timestamp,
    ) -> AttemptOutcome {
        let started = Instant::now();
        let mut outcome = AttemptOutcome::nothing("");
        let exchange = self.exchange(target, parcel, now, &mut outcome);

        // The exchange fills `outcome` as it goes, so that
        // a timeout keeps the status received before it.
        outcome.error = match tokio::time::timeout(PATIENCE, exchange).await {
            Ok(exchanged) => exchanged.err(),
            Err(_) => Some(format!(
                "no complete answer within {} s",
                PATIENCE.as_secs()
            )),
        };

        outcome.duration = started.elapsed();
        outcome
    }

    async fn exchange(
        &self,
        target: &DeliveryTarget,
        parcel: &DeliveryPayload,
        now: Timestamp,
        outcome: &mut AttemptOutcome,
    ) -> Result<(), String> {
        // The rules may have become stricter since the endpoint was registered.
        let url = self.check_text(&target.url)?;
        let mut request = http::Request::post(url.as_str())
            .body(Full::new(parcel.body.clone()))
            .map_err(|error| error.to_string())?;
        *request.headers_mut() = headers(target, parcel, now).map_err(|error| error.to_string())?;
        let answer = self.client.request(request).await;
        let answer = answer.map_err(|error| cause(&error))?;
        outcome.status = Some(answer.status().as_u16());

        outcome.retry_after = retry_after(answer.headers(), now);
        let mut kept = Vec::new();
        let mut body = answer.into_body();

        // Dropping an unread rest closes its connection.
        while kept.len() < ANSWER_LIMIT {
            let Some(frame) = body.frame().await else {
                break;
            };

            let frame = frame.map_err(|error| cause(&error));
            if let Ok(data) = frame?.into_data() {
                let room = ANSWER_LIMIT - kept.len();
                kept.extend_from_slice(&data[..data.len().min(room)]);
            }
        }

        outcome.body = Some(readable(&kept));
        Ok(())
    }
}

/// Converts a response to text of at most [`ANSWER_LIMIT`] bytes. Control characters are replaced:
/// PostgreSQL text cannot hold NUL, and JSON escapes take six bytes each.
fn readable(answer: &[u8]) -> String {
    let plain = |character: char| match character {
        '\n' | '\r' | '\t' => character,
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    let mut text: String = String::from_utf8_lossy(answer).chars().map(plain).collect();

    // Replacing invalid bytes by U+FFFD can make the text longer than the input.
    text.truncate(text.floor_char_boundary(ANSWER_LIMIT));
    text
}

fn authorities(file: &Path) -> Result<Vec<CertificateDer<'static>>, SenderError> {
    let pem = disk::read(file).map_err(|error| SenderError::Authorities(error.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let named = |why: String| SenderError::Authorities(format!("{}: {why}", file.display()));
    match found {
        Ok(found) if found.is_empty() => Err(named("holds no certificate in PEM".into())),
        found => found.map_err(|error| named(error.to_string())),
    }
}

fn client_tls(ca_file: Option<&Path>) -> Result<rustls::ClientConfig, SenderError> {
    let Some(file) = ca_file else {
        return Ok(tls::system_roots()?);
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(authorities(file)?, provider)?;
    Ok(tls::with_verifier(Arc::new(verifier))?)
}

/// Returns the specification's headers, then those of Standard Webhooks.
fn headers(
    target: &DeliveryTarget,
    parcel: &DeliveryPayload,
    now: Timestamp,
) -> Result<HeaderMap, header::InvalidHeaderValue> {
    let mut headers = HeaderMap::with_capacity(12);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::USER_AGENT, USER_AGENT);
    let mut put = |name: &'static str, value: String| {
        headers.insert(HeaderName::from_static(name), value.try_into()?);
        Ok::<_, header::InvalidHeaderValue>(())
    };
    put("x-service-event", parcel.event_type.to_string())?;

    put("x-service-delivery", parcel.delivery.to_string())?;
    put("x-service-endpoint", target.endpoint.to_string())?;
    put("webhook-id", parcel.event.to_string())?;
    put("webhook-timestamp", now.as_seconds().to_string())?;

    let Some(secret) = &target.secret else {
        return Ok(headers);
    };

    let standard = |secret| signature::standard(secret, &parcel.event, now, &parcel.body);
    let mut signatures = standard(secret);
    put(
        "x-service-signature",
        signature::of_body(secret, &parcel.body),
    )?;

    // During the grace period receivers may verify with either secret.
    if let Some((previous, _)) = target.previous.as_ref().filter(|(_, until)| now < *until) {
        let of_body = signature::of_body(previous, &parcel.body);
        put("x-service-signature-previous", of_body)?;
        signatures = format!("{signatures} {}", standard(previous));
    }

    put("webhook-signature", signatures)?;
    Ok(headers)
}

/// Parses `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }

    let date = httpdate::parse_http_date(text).ok()?;
    let since_1970 = date.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let now = Duration::from_secs(now.as_seconds().unsigned_abs());

    // A date in the past means "retry now".
    Some(since_1970.saturating_sub(now))
}

/// Returns the text of the innermost cause, which describes the failure without the address.
fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(inner) = innermost.source() {
        innermost = inner;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(previous: Option<(WebhookSecret, Timestamp)>) -> DeliveryTarget {
        DeliveryTarget {
            endpoint: EndpointId::new(),
            url: "https://hooks.example.com/".into(),
            secret: Some(WebhookSecret::of("the present secret".into())),
            previous,
        }
    }

    fn parcel() -> DeliveryPayload {
        DeliveryPayload {
            delivery: DeliveryId::new(),
            event: EventId::new(),
            event_type: EventType::WebhookTest,
            body: Bytes::from_static(b"{}"),
        }
    }

    #[test]
    fn the_old_secret_signs_until_the_end_of_its_rotation() {
        let until = Timestamp::from_millis(48 * 3_600_000);
        let target = target(Some((WebhookSecret::of("the secret before".into()), until)));
        let parcel = parcel();
        let during = headers(&target, &parcel, until - Duration::from_millis(1)).unwrap();
        let old = signature::of_body(&WebhookSecret::of("the secret before".into()), b"{}");
        assert_eq!(during["x-service-signature-previous"], old);

        let standard = during["webhook-signature"].to_str().unwrap();
        assert_eq!(standard.split(' ').count(), 2, "{standard}");

        let after = headers(&target, &parcel, until).unwrap();
        assert!(!after.contains_key("x-service-signature-previous"));
        assert_eq!(after["x-service-signature"], during["x-service-signature"]);

        let standard = after["webhook-signature"].to_str().unwrap();
        assert_eq!(standard.split(' ').count(), 1);
    }

    #[test]
    fn a_delivery_without_a_secret_is_not_signed() {
        let target = DeliveryTarget {
            secret: None,
            ..target(None)
        };
        let headers = headers(&target, &parcel(), Timestamp::from_millis(1_500)).unwrap();
        assert!(
            headers
                .keys()
                .all(|name| !name.as_str().contains("signature"))
        );
        assert_eq!(headers["webhook-timestamp"], "1");
    }

    #[test]
    fn a_response_is_stored_as_text_of_limited_length() {
        assert_eq!(
            readable(b"a\tb\r\n\0\x01\xff"),
            "a\tb\r\n\u{fffd}\u{fffd}\u{fffd}"
        );
        assert!(readable(&[0xff; ANSWER_LIMIT]).len() <= ANSWER_LIMIT);
        assert!(readable(&[1; ANSWER_LIMIT]).len() <= ANSWER_LIMIT);
        assert_eq!(readable(&[b'x'; ANSWER_LIMIT]).len(), ANSWER_LIMIT);
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_a_date() {
        let now = Timestamp::parse("2015-10-21T07:28:00.000Z").unwrap();
        let asked = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(text));
            retry_after(&headers, now)
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(asked("120"), seconds(120));
        assert_eq!(asked("Wed, 21 Oct 2015 07:29:30 GMT"), seconds(90));
        assert_eq!(asked("Wed, 21 Oct 2015 07:27:30 GMT"), seconds(0));
        assert_eq!(asked("soon"), None);
        assert_eq!(asked("-1"), None);
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
