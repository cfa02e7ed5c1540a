//! Outgoing requests of providers.
//!
//! A request passes the instance's allow-list of hosts, the address guard, and
//! limits of number, time and size. Secrets are inserted into headers here: after
//! the component has passed the request on, and only for allowed hosts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use prometheus_client::metrics::gauge::Gauge;
use serde::Deserialize;
use tracing::Instrument as _;
use tracing::field::Empty;
use url::Url;
use wasmtime::component::Resource;

use super::bindings::signing::holdfast::host as wit;
use super::instance_log::InstanceLogger;
use super::lent::{FETCHED, LentBlob, LentResources};
use holdfast_adapters::delivery::guard::{self, AllowedAddresses};
use holdfast_base::config::SecretText;
use holdfast_base::traces;
use holdfast_domain::component::InstanceLogLevel;

use wit::http::{BlobResponse, BodyPart, HeaderValue, HttpError, Request, Response};

/// Maximum size in bytes of a response that is copied into a component's memory.
const ANSWER_LIMIT: usize = 4 * 1024 * 1024;
/// Maximum size in bytes of a response that stays with the host as a blob.
pub(super) const BLOB_LIMIT: usize = 64 * 1024 * 1024;
/// Size in bytes of the pieces in which blobs are encoded and sent. A multiple of 3, so that
/// the pieces of base64 join without padding in between.
const PIECE: usize = 48 * 1024;

/// Function that replaces the external service in tests of plugins.
pub type FarEnd = Arc<
    dyn Fn(http::Request<Bytes>) -> Result<http::Response<Bytes>, NetworkFailure> + Send + Sync,
>;

/// Failure of a request that gets no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkFailure {
    Timeout,
    Unreachable,
}

impl From<NetworkFailure> for HttpError {
    fn from(failure: NetworkFailure) -> Self {
        match failure {
            NetworkFailure::Timeout => Self::Timeout,
            NetworkFailure::Unreachable => Self::Unreachable("the connection was refused".into()),
        }
    }
}

/// Network access of one provider instance.
#[derive(Clone)]
pub struct NetworkAccess {
    allow_hosts: Vec<String>,
    allowed: AllowedAddresses,
    timeout: Duration,
    transport: EgressTransport,
    /// Metric: 1 if the last request reached the external service, otherwise 0.
    reachable: Option<Gauge>,
    /// Log that gets the requests that fail.
    log: Option<InstanceLogger>,
}

#[derive(Clone)]
enum EgressTransport {
    Network(reqwest::Client),
    /// Function in place of the network.
    Scripted(FarEnd),
}

impl NetworkAccess {
    /// Allows requests over the network to `allow_hosts` only.
    pub fn network(
        client: reqwest::Client,
        allow_hosts: Vec<String>,
        timeout: Duration,
        allowed: AllowedAddresses,
    ) -> Self {
        Self {
            allow_hosts,
            allowed,
            timeout,
            transport: EgressTransport::Network(client),
            reachable: None,
            log: None,
        }
    }

    /// Sets the metric that shows whether the external service can be reached.
    pub fn noting(mut self, reachable: Gauge) -> Self {
        self.reachable = Some(reachable);
        self
    }

    /// Sets the log that gets the requests that fail.
    pub(super) fn logging(mut self, log: Option<InstanceLogger>) -> Self {
        self.log = log;
        self
    }

    /// Sends all requests for `host` to `far_end`.
    pub fn scripted(far_end: FarEnd, host: &str) -> Self {
        Self {
            allow_hosts: vec![host.into()],
            allowed: AllowedAddresses::public(true),
            timeout: Duration::from_secs(60),
            transport: EgressTransport::Scripted(far_end),
            reachable: None,
            log: None,
        }
    }

    fn check(&self, url: &str) -> Result<Url, HttpError> {
        self.checked(url)
            .inspect_err(|refused| self.note("request", refused))
    }

    /// Writes a request that failed to the instance's log.
    fn note(&self, request: &str, error: &HttpError) {
        let Some(log) = &self.log else {
            return;
        };

        let why = match error {
            HttpError::Denied(why) | HttpError::Unreachable(why) => why,
            HttpError::OverLimit(why) | HttpError::InvalidRequest(why) => why,
            HttpError::Other(why) => why,
            HttpError::Timeout => "no answer in time",
        };

        log.write(InstanceLogLevel::Warn, &format!("{request}: {why}"));
    }

    fn checked(&self, url: &str) -> Result<Url, HttpError> {
        let url = Url::parse(url).map_err(|error| HttpError::InvalidRequest(error.to_string()))?;
        let host = url.host_str().unwrap_or_default();
        // Whole names are compared. A pattern could also match a host that an attacker registers.
        if !self
            .allow_hosts
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(host))
        {
            return Err(HttpError::Denied(format!(
                "host {host} is not on the allow-list of this instance"
            )));
        }

        // A scripted service has no address to check.
        if let EgressTransport::Network(_) = self.transport {
            guard::check_url(&url, &self.allowed)
                .map_err(|refused| HttpError::Denied(refused.to_string()))?;
        }

        Ok(url)
    }

    /// Returns the time limit of an exchange, including the body of the response.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn open(
        &self,
        request: OutgoingRequest,
    ) -> Result<IncomingResponse, HttpError> {
        let host = request.url.host_str().unwrap_or_default();
        let span = traces::span!(
            "provider request",
            otel.kind = "client",
            http.request.method = %request.method,
            server.address = host,
            http.response.status_code = Empty,
        );

        // Without the query, which may have personal data.
        let named = format!("{} {host}{}", request.method, request.url.path());
        let opened = self.exchange(request).instrument(span.clone()).await;
        match (&opened, &self.log) {
            (Err(error), _) => self.note(&named, error),
            (Ok(answer), Some(log)) if answer.status.as_u16() >= 400 => {
                log.write(
                    InstanceLogLevel::Warn,
                    &format!("{named}: {}", answer.status),
                );
            }
            _ => {}
        }

        if let Some(reachable) = &self.reachable {
            match &opened {
                // Any response shows that the service is reachable. A refusal
                // of this host shows nothing about it.
                Ok(_) => drop(reachable.set(1)),
                Err(HttpError::Unreachable(_) | HttpError::Timeout) => drop(reachable.set(0)),
                Err(_) => {}
            }
        }

        if let Ok(answer) = &opened {
            span.record("http.response.status_code", answer.status.as_u16());
        }

        opened
    }

    async fn exchange(&self, request: OutgoingRequest) -> Result<IncomingResponse, HttpError> {
        let EgressBody { length, pieces } = request.body;
        match &self.transport {
            EgressTransport::Network(client) => {
                let mut outgoing = client.request(request.method, request.url);
                for (name, value) in request.headers {
                    outgoing = outgoing.header(name, value);
                }

                if let Some(length) = length {
                    outgoing = outgoing.header("content-length", length);
                }

                let answer = outgoing
                    .body(reqwest::Body::wrap_stream(pieces))
                    .send()
                    .await
                    .map_err(|error| HttpError::Unreachable(chain(&error)))?;
                Ok(IncomingResponse {
                    status: answer.status(),
                    headers: answer.headers().clone(),
                    body: answer
                        .bytes_stream()
                        .map(|piece| piece.map_err(|error| HttpError::Unreachable(chain(&error))))
                        .boxed(),
                })
            }
            EgressTransport::Scripted(far_end) => {
                // Scripts name only path and query, since the host was compared with the allow-list before.
                let mut asked = http::Request::builder()
                    .method(request.method)
                    .uri(request.url.path().to_owned() + &query(&request.url));
                for (name, value) in request.headers {
                    asked = asked.header(name, value);
                }

                let body: Vec<Bytes> = pieces
                    .try_collect()
                    .await
                    .map_err(|error| HttpError::Other(error.to_string()))?;
                let asked = asked
                    .body(body.concat().into())
                    .map_err(|error| HttpError::InvalidRequest(error.to_string()))?;
                let (head, body) = far_end(asked)?.into_parts();

                Ok(IncomingResponse {
                    status: head.status,
                    headers: head.headers,
                    body: stream::once(async { Ok(body) }).boxed(),
                })
            }
        }
    }
}

/// Request with its secrets inserted and its body ready to be streamed.
pub(super) struct OutgoingRequest {
    pub method: http::Method,
    pub url: Url,
    pub headers: Vec<(String, String)>,
    pub body: EgressBody,
}

/// Body of a request.
pub(super) struct EgressBody {
    /// Length in bytes, if known.
    pub length: Option<usize>,
    pub pieces: BoxStream<'static, Result<Bytes, std::io::Error>>,
}

impl EgressBody {
    /// Creates a body from bytes that are in memory.
    pub fn whole(bytes: Bytes) -> Self {
        Self {
            length: Some(bytes.len()),
            pieces: pieces(bytes, false),
        }
    }
}

/// Response with a body that is still to be read.
pub(super) struct IncomingResponse {
    pub status: http::StatusCode,
    pub headers: http::HeaderMap,
    pub body: BoxStream<'static, Result<Bytes, HttpError>>,
}

/// Outgoing requests of one call: network access, secrets, and a counter.
pub(super) struct OutboundRequest {
    /// Component and instance, for log lines.
    pub label: String,
    pub egress: NetworkAccess,
    pub secrets: Arc<BTreeMap<String, SecretText>>,
    /// Number of requests so far, including refused ones.
    requests: u32,
    most_requests: u32,
}

impl OutboundRequest {
    pub fn new(
        label: String,
        egress: NetworkAccess,
        secrets: Arc<BTreeMap<String, SecretText>>,
        most_requests: u32,
    ) -> Self {
        Self {
            label,
            egress,
            secrets,
            requests: 0,
            most_requests,
        }
    }

    /// Counts a request and checks its method and URL.
    pub fn admit(&mut self, method: &http::Method, url: &str) -> Result<Url, HttpError> {
        // Refused requests count too, or a plugin could try out hosts without end.
        self.requests = self.requests.saturating_add(1);
        // TRACE echoes the secrets back; CONNECT is for proxies.
        if [http::Method::TRACE, http::Method::CONNECT].contains(method) {
            return Err(HttpError::InvalidRequest(format!("method {method}")));
        }
        if self.requests > self.most_requests {
            return Err(HttpError::OverLimit(format!(
                "more than {} requests in one call",
                self.most_requests
            )));
        }

        self.egress.check(url)
    }

    /// Whether a request before the last one was refused because of the number of requests.
    pub fn is_over(&self) -> bool {
        self.requests > self.most_requests.saturating_add(1)
    }

    /// Sends a request and reads the whole response, as long as `has_room` allows.
    async fn send(
        &self,
        request: OutgoingRequest,
        limit: usize,
        has_room: impl FnMut(usize) -> bool,
    ) -> Result<EgressAnswer, HttpError> {
        // One limit covers head and body, so it also ends a service that sends one byte at a time.
        let exchange = async {
            let answer = self.egress.open(request).await?;
            Ok(EgressAnswer {
                status: answer.status.as_u16(),
                headers: readable(&answer.headers),
                body: collect(answer.body, limit, has_room).await?,
            })
        };
        let ended = tokio::time::timeout(self.egress.timeout, exchange).await;

        ended.unwrap_or(Err(HttpError::Timeout))
    }
}

struct EgressAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl LentResources {
    fn outgoing(
        &mut self,
        request: Request,
    ) -> wasmtime::Result<Result<OutgoingRequest, HttpError>> {
        let Ok(method) = request.method.parse() else {
            return Ok(Err(HttpError::InvalidRequest(format!(
                "method {}",
                request.method
            ))));
        };

        let url = match self.outbound.admit(&method, &request.url) {
            Ok(url) => url,
            Err(error) => return Ok(Err(error)),
        };

        let mut headers = Vec::with_capacity(request.headers.len());
        for (name, value) in request.headers {
            // With these headers a plugin could reach another host, or smuggle a second request
            // (RFC 9112, 11.2).
            if is_ours(&name) {
                continue;
            }

            let value = match value {
                HeaderValue::Plain(text) => text,
                // The URL was checked before, so the secret leaves for an allowed host only.
                HeaderValue::Secret((before, secret)) => {
                    with_secret(before, self.table.get(&secret)?.0.reveal())
                }
            };

            headers.push((name, value));
        }

        let mut length = 0;
        let mut parts: Vec<BoxStream<'static, Result<Bytes, std::io::Error>>> = Vec::new();
        for part in request.body {
            let (bytes, encoded) = match part {
                BodyPart::Text(text) => (Bytes::from(text), false),
                BodyPart::Bytes(bytes) => (Bytes::from(bytes), false),
                BodyPart::Blob(blob) => (self.blob(&blob)?, false),
                BodyPart::BlobBase64(blob) => (self.blob(&blob)?, true),
            };
            // The length is computed and not measured, so an encoded
            // document never lies in memory as a whole.
            length += if encoded {
                bytes.len().div_ceil(3) * 4
            } else {
                bytes.len()
            };

            parts.push(pieces(bytes, encoded));
        }

        Ok(Ok(OutgoingRequest {
            method,
            url,
            headers,
            body: EgressBody {
                length: Some(length),
                pieces: stream::iter(parts).flatten().boxed(),
            },
        }))
    }

    fn blob(&self, blob: &Resource<LentBlob>) -> wasmtime::Result<Bytes> {
        Ok(self.table.get(blob)?.0.clone())
    }
}

/// Whether only the host may set a header, because it affects routing or framing of a request.
pub(super) fn is_ours(name: &str) -> bool {
    const OURS: [&str; 10] = [
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
    ];

    let name = name.to_ascii_lowercase();
    OURS.contains(&name.as_str()) || name.starts_with("proxy-")
}

/// Appends a secret to a header value; encodes `Basic user:` with its password (RFC 7617).
fn with_secret(before: String, secret: &str) -> String {
    match before.strip_prefix("Basic ") {
        Some(user) if user.ends_with(':') => {
            format!("Basic {}", STANDARD.encode(format!("{user}{secret}")))
        }
        _ => before + secret,
    }
}

/// Splits `bytes` into pieces, each encoded lazily.
fn pieces(bytes: Bytes, base64: bool) -> BoxStream<'static, Result<Bytes, std::io::Error>> {
    let count = bytes.len().div_ceil(PIECE);
    stream::iter((0..count).map(move |index| {
        let end = ((index + 1) * PIECE).min(bytes.len());
        let piece = bytes.slice(index * PIECE..end);
        Ok(if base64 {
            STANDARD.encode(piece).into()
        } else {
            piece
        })
    }))
    .boxed()
}

async fn collect(
    mut pieces: impl futures::Stream<Item = Result<Bytes, HttpError>> + Unpin,
    limit: usize,
    mut has_room: impl FnMut(usize) -> bool,
) -> Result<Bytes, HttpError> {
    let mut body = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        // The length in the header is only a claim, so the limit counts the bytes that arrive.
        if body.len() + piece.len() > limit {
            return Err(HttpError::OverLimit(format!(
                "answer of more than {limit} bytes"
            )));
        }
        if !has_room(body.len() + piece.len()) {
            return Err(HttpError::OverLimit(
                "the organization's share of memory is in use".into(),
            ));
        }

        body.extend_from_slice(&piece);
    }

    Ok(body.into())
}

fn readable(headers: &http::HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        })
        .collect()
}

fn query(url: &Url) -> String {
    url.query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default()
}

/// Formats the causes of an error. Omits the error itself: its text has the URL, which can contain
/// a credential.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&error.to_string());
        cause = error.source();
    }

    if text.is_empty() {
        "the exchange failed".into()
    } else {
        text
    }
}

impl wit::http::Host for LentResources {
    async fn send(&mut self, request: Request) -> wasmtime::Result<Result<Response, HttpError>> {
        self.count()?;
        let outgoing = match self.outgoing(request)? {
            Ok(outgoing) => outgoing,
            Err(error) => return Ok(Err(error)),
        };
        let answer = self.outbound.send(outgoing, ANSWER_LIMIT, |_| true).await;

        Ok(answer.map(|answer| Response {
            status: answer.status,
            headers: answer.headers,
            body: answer.body.to_vec(),
        }))
    }

    async fn fetch(
        &mut self,
        request: Request,
    ) -> wasmtime::Result<Result<BlobResponse, HttpError>> {
        self.count()?;
        let outgoing = match self.outgoing(request)? {
            Ok(outgoing) => outgoing,
            Err(error) => return Ok(Err(error)),
        };
        // All documents of a call share this budget, or a plugin could fetch large ones again and again.
        let limit = self.fetch_left.min(BLOB_LIMIT);
        let before = FETCHED - self.fetch_left;

        let share = &mut self.fetched;
        // The reservation grows with the bytes that arrive, because the length is not known before.
        let has_room = |bytes| match share {
            Some(share) => share.cover(before + bytes).is_ok(),
            None => true,
        };
        match self.outbound.send(outgoing, limit, has_room).await {
            Ok(answer) => {
                self.fetch_left = self.fetch_left.saturating_sub(answer.body.len());
                Ok(Ok(BlobResponse {
                    status: answer.status,
                    headers: answer.headers,
                    body: self.table.push(LentBlob(answer.body))?,
                }))
            }
            Err(error) => Ok(Err(error)),
        }
    }
}
