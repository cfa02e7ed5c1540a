//! Distributed traces of requests: components, providers and the jobs they add, across nodes.
//! Exported to an OpenTelemetry collector (OTLP over HTTP).
//!
//! Spans use a separate target, so that log lines do not change and spans cost nothing while
//! tracing is off. They contain routes, components and hosts, but no data of persons or documents.

use std::collections::HashMap;

use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry::KeyValue;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing::{Instrument as _, Level, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, layer};

use crate::config::TraceSettings;
use crate::tls;

/// Target of all trace spans.
pub const TARGET: &str = holdfast_rules::TRACES;
/// Header of W3C Trace Context.
const TRACEPARENT: &str = "traceparent";

/// Creates a trace span.
#[macro_export]
macro_rules! span {
    ($($what:tt)*) => {
        tracing::debug_span!(target: $crate::traces::TARGET, $($what)*)
    };
}
pub use crate::span;

/// Exports traces; dropping it flushes the remaining ones.
pub struct TraceExporter(SdkTracerProvider);

impl TraceExporter {
    /// Starts the export; none if no collector is configured. Must be called within a runtime,
    /// which sends the requests.
    ///
    /// # Errors
    /// Fails if no client can be created from the settings.
    pub fn start(
        settings: &TraceSettings,
    ) -> Result<Option<Self>, Box<dyn std::error::Error + Send + Sync>> {
        let Some(endpoint) = &settings.endpoint else {
            return Ok(None);
        };

        tls::use_one();
        // The exporter's thread has no runtime, so the client keeps the handle of this one.
        let client = TraceHttpClient {
            http: reqwest::Client::new(),
            runtime: Handle::current(),
        };
        let headers = settings.headers.iter();
        let headers = headers.map(|(name, value)| (name.clone(), value.reveal().to_owned()));

        let url = format!("{}/v1/traces", endpoint.as_str().trim_end_matches('/'));
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpJson)
            .with_endpoint(url)
            .with_headers(headers.collect::<HashMap<_, _>>())
            .build()?;

        // Empty, because the default detectors would read environment variables beside our settings.
        let resource = Resource::builder_empty()
            .with_service_name("holdfast")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();

        // Sampling depends on the trace id only: all nodes
        // decide alike, and callers cannot force it.
        let provider = SdkTracerProvider::builder()
            .with_sampler(Sampler::TraceIdRatioBased(settings.sample))
            .with_resource(resource)
            .with_batch_exporter(exporter)
            .build();

        Ok(Some(Self(provider)))
    }

    /// Returns the `tracing` layer that collects spans.
    pub fn layer<S>(&self) -> impl layer::Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        // Source locations and thread names tell a reader of traces nothing, and each span would carry them.
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("holdfast"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(Targets::new().with_target(TARGET, Level::DEBUG))
    }
}

impl Drop for TraceExporter {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "last traces could not be sent");
        }
    }
}

/// HTTP client for the exporter, which calls it from a thread without a runtime.
#[derive(Debug)]
struct TraceHttpClient {
    http: reqwest::Client,
    runtime: Handle,
}

#[async_trait]
impl HttpClient for TraceHttpClient {
    async fn send_bytes(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, HttpError> {
        let http = self.http.clone();
        // Connections belong to the runtime that made them, so the request runs there.
        let sent = self.runtime.spawn(async move {
            let (parts, body) = request.into_parts();
            let answer = http
                .request(parts.method, parts.uri.to_string())
                .headers(parts.headers)
                .body(body)
                .send()
                .await?;
            let status = answer.status();

            Ok::<_, reqwest::Error>((status, answer.bytes().await?))
        });

        let (status, body) = sent.await??;
        let mut answer = http::Response::new(body);
        *answer.status_mut() = status;

        Ok(answer)
    }
}

tokio::task_local! {
    /// Span of the current request or job; the innermost span is that of the log lines.
    static REQUEST: Span;
}

/// Runs a request's work inside its trace span.
pub async fn within<T>(span: Span, work: impl Future<Output = T>) -> T {
    REQUEST.scope(span.clone(), work.instrument(span)).await
}

/// Carries the current request's span into a spawned task.
pub fn along<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    // A spawned task does not inherit task-local values, so the span is passed on by hand.
    let request = REQUEST
        .try_with(Span::clone)
        .unwrap_or_else(|_| Span::none());
    within(request, work.in_current_span())
}

/// Returns the `traceparent` of the current request or job, for work that continues it later; none
/// while tracing is off.
pub fn current() -> Option<String> {
    let span = REQUEST.try_with(Span::clone);
    let context = span.unwrap_or_else(|_| Span::current()).context();

    // Without a collector, spans have no ids that a job could continue.
    if !context.span().span_context().is_valid() {
        return None;
    }

    let mut carrier = HashMap::new();
    TraceContextPropagator::new().inject_context(&context, &mut carrier);
    carrier.remove(TRACEPARENT)
}

/// Makes `span` a child of the trace in `traceparent`, if there is a valid one.
pub fn go_on(span: &Span, traceparent: Option<&str>) {
    let Some(traceparent) = traceparent else {
        return;
    };

    // A caller's header is untrusted text. The propagator ignores one that is malformed.
    let carrier = HashMap::from([(TRACEPARENT.to_owned(), traceparent.to_owned())]);
    let context = TraceContextPropagator::new().extract(&carrier);
    if context.span().span_context().is_valid() {
        // Fails only while tracing is off.
        let _ = span.set_parent(context);
    }
}

/// Returns the caller's `traceparent`.
pub fn of_headers(headers: &http::HeaderMap) -> Option<&str> {
    headers.get(TRACEPARENT)?.to_str().ok()
}
