//! WASI 0.2 for providers in languages with a runtime that requires it:
//! clocks, randomness, standard output, an empty file system, and HTTP. There are no
//! sockets. Requests of `wasi:http` go through [`super::egress`] like those of the host's own
//! interface, so one allow-list and one address guard apply to both.

use std::future::Future;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use wasmtime::component::Linker;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::clocks::HostWallClock;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView,
};

use super::egress::{
    BLOB_LIMIT, EgressBody, IncomingResponse, OutboundRequest, OutgoingRequest, is_ours,
};
use super::engine::LimitedEngine;
use super::instance_log::InstanceLogger;
use super::lent::{self, LentResources};
use holdfast_domain::clock::Clock;

use super::bindings::signing::holdfast::host as wit;
use wit::http::HttpError;
use wit::log::Level;

/// Maximum size in bytes of a request body that is buffered to send its length.
const BUFFERED: usize = 1024 * 1024;
/// Maximum number of bytes that one call may print.
const PRINTED: usize = 64 * 1024;
/// Maximum sizes in bytes: of a set of headers, of random bytes returned at once, and of buffered
/// chunks of a request's body. They are small because each exists once for each handle of a call.
const FIELDS: usize = 32 * 1024;
const RANDOM: u64 = 64 * 1024;
const WAITING: usize = 64 * 1024;

/// Adds all interfaces of [`WASI`](super::worlds::WASI) to a linker.
pub(super) fn link(linker: &mut Linker<LimitedEngine<LentResources>>) -> wasmtime::Result<()> {
    use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
    use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView as _};
    use wasmtime_wasi::p2::bindings::{cli, filesystem, random};
    use wasmtime_wasi::random::WasiRandom;

    type T = LimitedEngine<LentResources>;

    wasmtime_wasi::p2::add_to_linker_proxy_interfaces_async(linker)?;
    // Runtimes of languages need these to start. There is nothing behind them: no variables, no files.
    cli::environment::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::exit::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_input::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_output::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_stdin::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_stdout::add_to_linker::<T, WasiCli>(linker, T::cli)?;

    cli::terminal_stderr::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    random::insecure::add_to_linker::<T, WasiRandom>(linker, |lent| lent.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<T, WasiRandom>(linker, |lent| lent.ctx().ctx.random())?;
    filesystem::preopens::add_to_linker::<T, WasiFilesystem>(linker, T::filesystem)?;
    filesystem::types::add_to_linker::<T, WasiFilesystem>(linker, T::filesystem)?;

    // HTTP alone: its clocks and streams are linked above, and a second link of one name is an error.
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)
}

/// WASI context of a call. Calls that do not use WASI have none.
pub(super) struct WasiHost {
    ctx: WasiCtx,
    http: WasiHttpCtx,
}

impl WasiHost {
    pub fn new(label: &str, clock: Clock, log: Option<InstanceLogger>) -> Self {
        let left = Arc::new(Mutex::new(PRINTED));
        let printer = |level| LogPrinter {
            line: Arc::new(Mutex::new(OutputLine {
                label: label.to_owned(),
                log: log.clone(),
                level,
                text: Vec::new(),
                left: left.clone(),
            })),
        };

        let ctx = WasiCtx::builder()
            .stdout(printer(Level::Info))
            .stderr(printer(Level::Warn))
            .wall_clock(WallClock(clock))
            // No interface of sockets is linked, so this is a second barrier.
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .max_random_size(RANDOM)
            .build();

        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(FIELDS);
        Self { ctx, http }
    }
}

impl WasiView for LentResources {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let (wasi, table, _) = self.wasi();
        WasiCtxView {
            ctx: &mut wasi.ctx,
            table,
        }
    }
}

impl WasiHttpView for LentResources {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let (wasi, table, hooks) = self.wasi();
        WasiHttpCtxView {
            ctx: &mut wasi.http,
            table,
            hooks,
        }
    }
}

/// Clock of the service, which can be moved for rehearsals.
struct WallClock(Clock);

impl HostWallClock for WallClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.now().as_millis()).unwrap_or_default())
    }
}

/// Standard output or standard error: writes lines to the host's log.
struct LogPrinter {
    line: Arc<Mutex<OutputLine>>,
}

struct OutputLine {
    label: String,
    log: Option<InstanceLogger>,
    level: Level,
    text: Vec<u8>,
    /// Bytes that the call may still print, shared by both streams.
    left: Arc<Mutex<usize>>,
}

impl OutputLine {
    fn print(&mut self, bytes: &[u8]) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        // Output above the budget is dropped without an error: a plugin that prints much can still work.
        let bytes = &bytes[..bytes.len().min(*left)];
        *left -= bytes.len();
        drop(left);
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        self.text.extend(pieces.next().unwrap_or_default());

        for piece in pieces {
            self.end();
            self.text.extend(piece);
        }
    }

    fn end(&mut self) {
        let text = mem::take(&mut self.text);
        if !text.is_empty() {
            let text = String::from_utf8_lossy(&text).into_owned();
            lent::note(&self.label, self.log.as_ref(), self.level, text);
        }
    }
}

impl Drop for OutputLine {
    fn drop(&mut self) {
        self.end();
    }
}

impl IsTerminal for LogPrinter {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogPrinter {
    /// WASI 0.3 is not supported.
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(LogPrinter {
            line: self.line.clone(),
        })
    }
}

#[async_trait]
impl Pollable for LogPrinter {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for LogPrinter {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.print(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PRINTED)
    }
}

type Sent = (
    http::Response<WasiBody>,
    Box<dyn Future<Output = Result<(), Error>> + Send>,
);

impl WasiHttpHooks for OutboundRequest {
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        WAITING
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        _: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Sent, Error>> + Send> {
        // Counted here and not in the future, or a plugin could open many requests before the first one runs.
        let admitted = self.admit(request.method(), &request.uri().to_string());
        let headers = self.headers(request.headers());
        let (egress, label) = (self.egress.clone(), self.label.clone());
        // A plugin that repeats refused requests must not fill the log.
        let told_before = self.is_over();
        Box::new(async move {
            let deadline = tokio::time::Instant::now() + egress.timeout();
            let exchange = async {
                let (url, headers) = (admitted?, headers?);
                let method = request.method().clone();
                let body = outgoing_body(request.into_body()).await?;
                let request = OutgoingRequest {
                    method,
                    url,
                    headers,
                    body,
                };

                egress.open(request).await
            };

            let ended = tokio::time::timeout_at(deadline, exchange).await;
            match ended.unwrap_or(Err(HttpError::Timeout)) {
                Ok(answer) => Ok((
                    incoming(answer, deadline),
                    Box::new(async { Ok(()) }) as Box<dyn Future<Output = _> + Send>,
                )),
                Err(error) => {
                    // The component only gets the kind of the error, so the log has the rest.
                    if !told_before {
                        lent::note(&label, None, Level::Warn, format!("no answer: {error}"));
                    }
                    Err(told(error))
                }
            }
        })
    }
}

impl OutboundRequest {
    /// Returns the headers with `{{secret:NAME}}` in values replaced by secrets.
    fn headers(&self, headers: &http::HeaderMap) -> Result<Vec<(String, String)>, HttpError> {
        headers
            .iter()
            .filter(|(name, _)| !is_ours(name.as_str()))
            .map(|(name, value)| {
                let value = value.to_str().map_err(|_| {
                    HttpError::InvalidRequest(format!("header {name} is not plain text"))
                })?;
                Ok((name.as_str().to_owned(), self.filled(value)?))
            })
            .collect()
    }

    fn filled(&self, value: &str) -> Result<String, HttpError> {
        let mut filled = String::with_capacity(value.len());
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("{{secret:") {
            let found = after.split_once("}}");
            // With the placeholder left in, the vendor would refuse the
            // request, and the cause would be hidden.
            let Some((secret, (_, after))) =
                found.and_then(|found| Some((self.secrets.get(found.0)?, found)))
            else {
                return Err(HttpError::InvalidRequest(
                    "a header names a secret that this instance has not".into(),
                ));
            };

            filled += before;
            filled += secret.reveal();

            // Continues behind the placeholder: an inserted secret is not searched again.
            rest = after;
        }

        Ok(filled + rest)
    }
}

/// Buffers a body to find its length. Streams a larger one in chunks without a length.
async fn outgoing_body(body: WasiBody) -> Result<EgressBody, HttpError> {
    let broken = |error: Error| HttpError::InvalidRequest(format!("its body broke off: {error}"));
    let mut pieces = body.into_data_stream();
    let mut begin = BytesMut::new();
    while let Some(piece) = pieces.next().await {
        begin.extend(piece.map_err(broken)?);
        // All calls share the memory of the host, so a large body is streamed.
        if begin.len() > BUFFERED {
            let begin = begin.freeze();
            let mut left = BLOB_LIMIT;
            let rest = pieces.map_err(|error| std::io::Error::other(error.to_string()));
            let limited = stream::once(async { Ok(begin) })
                .chain(rest)
                .map(move |piece| {
                    let piece = piece?;
                    left = left
                        .checked_sub(piece.len())
                        .ok_or_else(|| std::io::Error::other("the body is too long"))?;
                    Ok(piece)
                });

            return Ok(EgressBody {
                length: None,
                pieces: limited.boxed(),
            });
        }
    }

    Ok(EgressBody::whole(begin.freeze()))
}

/// Converts a response. Its body fails after the deadline and above the size limit.
fn incoming(answer: IncomingResponse, deadline: tokio::time::Instant) -> http::Response<WasiBody> {
    let open = Some((answer.body, BLOB_LIMIT));
    let frames = stream::unfold(open, move |open| async move {
        let (mut body, left) = open?;
        let piece = match tokio::time::timeout_at(deadline, body.next()).await {
            Ok(Some(Ok(piece))) => piece,
            Ok(Some(Err(error))) => return Some((Err(told(error)), None)),
            Ok(None) => return None,
            Err(_) => return Some((Err(Error::HttpResponseTimeout), None)),
        };
        match left.checked_sub(piece.len()) {
            Some(left) => Some((Ok(Frame::data(piece)), Some((body, left)))),
            None => Some((Err(Error::HttpResponseBodySize(None)), None)),
        }
    });

    let mut response = http::Response::new(StreamBody::new(frames).boxed_unsync());
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;

    response
}

fn told(error: HttpError) -> Error {
    match error {
        HttpError::Denied(_) => Error::HttpRequestDenied,
        HttpError::Unreachable(_) => Error::DestinationUnavailable,
        HttpError::Timeout => Error::HttpResponseTimeout,
        HttpError::OverLimit(_) => Error::ConnectionLimitReached,
        HttpError::InvalidRequest(why) | HttpError::Other(why) => Error::InternalError(Some(why)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;
    use crate::egress::NetworkAccess;
    use holdfast_base::config::SecretText;

    fn outbound() -> OutboundRequest {
        let secrets = [("api_key", "k-1"), ("other", "{{secret:api_key}}")];
        let secrets = secrets.map(|(name, text)| (name.to_owned(), SecretText::new(text)));
        let egress =
            NetworkAccess::scripted(Arc::new(|_| Ok(http::Response::default())), "far-end");
        let secrets = Arc::new(BTreeMap::from(secrets));
        OutboundRequest::new("test".into(), egress, secrets, 2)
    }

    #[test]
    fn a_secret_placeholder_is_substituted_once() {
        let outbound = outbound();
        for (value, filled) in [
            ("plain", "plain"),
            ("Bearer {{secret:api_key}}", "Bearer k-1"),
            ("{{secret:api_key}}:{{secret:api_key}}", "k-1:k-1"),
            // Placeholders within a secret are not replaced.
            ("{{secret:other}}", "{{secret:api_key}}"),
            ("}} {{ secret:api_key }}", "}} {{ secret:api_key }}"),
        ] {
            assert_eq!(outbound.filled(value).unwrap(), filled);
        }

        for value in ["{{secret:unknown}}", "{{secret:api_key", "{{secret:}}"] {
            let refused = outbound.filled(value).unwrap_err().to_string();
            assert!(refused.contains("has not"), "{value}: {refused}");
            assert!(
                !refused.contains("unknown"),
                "names are the plugin's own: {refused}"
            );
        }
    }

    #[test]
    fn plugins_cannot_set_routing_and_framing_headers() {
        let mut headers = HeaderMap::new();
        for name in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "proxy-authorization",
            "accept",
        ] {
            let name = HeaderName::try_from(name.to_lowercase()).unwrap();
            headers.insert(name, HeaderValue::from_static("x"));
        }

        let left = outbound().headers(&headers).unwrap();
        assert_eq!(left, [("accept".to_owned(), "x".to_owned())]);
    }

    #[test]
    fn requests_are_counted_and_trace_is_refused() {
        let mut outbound = outbound();
        let (get, trace) = (http::Method::GET, http::Method::TRACE);
        assert!(outbound.admit(&get, "http://far-end/a").is_ok());
        assert!(outbound.admit(&trace, "http://far-end/a").is_err());

        let over = outbound.admit(&get, "http://far-end/a").unwrap_err();
        assert!(over.to_string().contains("more than 2 requests"));
        assert!(!outbound.is_over(), "the first refusal is told");
        assert!(outbound.admit(&get, "http://far-end/a").is_err());
        assert!(outbound.is_over());
    }
}
