//! Traces for an OpenTelemetry collector: one trace covers the request, its components and
//! providers, and the jobs that it created.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Json;
use axum::http::HeaderMap;
use serde_json::Value;

use crate::journeys::crash::CrashDrill;
use crate::support::process::{ServerHome, ServerProcess, this_program};

/// A received span.
#[derive(Clone, Debug)]
struct CollectedSpan {
    trace: String,
    id: String,
    parent: String,
    name: String,
    attributes: BTreeMap<String, Value>,
}

type Spans = Arc<Mutex<Vec<CollectedSpan>>>;

fn spans_of(body: &Value) -> Vec<CollectedSpan> {
    let scopes = body["resourceSpans"].as_array().unwrap().iter();
    let scopes = scopes.flat_map(|resource| resource["scopeSpans"].as_array().unwrap());
    let spans = scopes.flat_map(|scope| scope["spans"].as_array().unwrap());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    spans
        .map(|span| CollectedSpan {
            trace: text(&span["traceId"]),
            id: text(&span["spanId"]),
            parent: text(&span["parentSpanId"]),
            name: text(&span["name"]),
            attributes: span["attributes"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|one| {
                    let value = one["value"].as_object().unwrap().values().next();
                    (text(&one["key"]), value.unwrap().clone())
                })
                .collect(),
        })
        .collect()
}

/// Starts a collector that requires an authorization header.
async fn collector(spans: Spans) -> String {
    let take = move |headers: HeaderMap, Json(body): Json<Value>| {
        let spans = spans.clone();
        async move {
            assert_eq!(headers["authorization"], "Bearer of-the-collector");
            spans.lock().unwrap().extend(spans_of(&body));
            Json(serde_json::json!({}))
        }
    };
    let router = axum::Router::new().route("/v1/traces", axum::routing::post(take));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });

    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_spans_the_request_and_its_jobs() {
    let spans = Spans::default();
    let endpoint = collector(spans.clone()).await;
    let folder = tempfile::tempdir().unwrap();
    let home = ServerHome {
        program: this_program(),
        data: folder.path().to_owned(),
        database: None,
        settings: vec![
            ("HOLDFAST_TRACES__ENDPOINT".into(), endpoint),
            (
                "HOLDFAST_TRACES__HEADERS".into(),
                "{authorization=\"Bearer of-the-collector\"}".into(),
            ),
        ],
    };

    let objects = folder.path().join("objects");
    let mut drill = CrashDrill::at(home.clone(), objects).await;
    let server = ServerProcess::start(&home, &[], &[]).unwrap();
    let partner = "4bf92f3577b34da6a3ce929d0e0e4736";
    let health = reqwest::Client::new()
        .get(format!("{}/healthz", server.url))
        .header("traceparent", format!("00-{partner}-00f067aa0ba902b7-01"));
    assert_eq!(health.send().await.unwrap().status(), 200);

    let urls = [server.url.clone()];
    drill.work_at(&urls, Duration::from_secs(1)).await;
    drill.finish(&server, Instant::now()).await;

    // The server exports its remaining spans when it stops.
    server.signal("TERM");
    let since = Instant::now();
    let has_vaulted = |spans: &[CollectedSpan]| {
        let kind = |span: &CollectedSpan| {
            span.attributes.get("job.kind") == Some(&"envelope.vault".into())
        };
        spans.iter().filter(|span| kind(span)).count() >= drill.tracked.len()
    };
    while !has_vaulted(&spans.lock().unwrap()) {
        assert!(since.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let spans = spans.lock().unwrap().clone();
    let by_id: BTreeMap<&str, &CollectedSpan> =
        spans.iter().map(|span| (span.id.as_str(), span)).collect();

    // The path of a span from itself up to the root of its trace.
    let path = |span: &CollectedSpan| {
        let mut names = vec![span.name.clone()];
        let mut at = span;
        while let Some(parent) = by_id.get(at.parent.as_str()) {
            assert_eq!(parent.trace, at.trace);
            names.push(parent.name.clone());
            at = parent;
        }

        names
    };

    let paths: Vec<Vec<String>> = spans.iter().map(path).collect();
    let is = |wanted: &[&str]| paths.iter().any(|path| path == wanted);
    let create = "POST /api/v2/partner/envelopes";
    assert!(is(&["component", create]), "{paths:?}");
    assert!(is(&["provider", create]), "{paths:?}");

    let jobs = paths.iter().filter(|path| path[0] == "job");
    let mut roots = jobs.map(|path| path.last().unwrap().as_str());
    assert!(
        roots.any(|root| root.starts_with("POST /sign/")),
        "{paths:?}"
    );

    let left = paths
        .iter()
        .any(|path| path.starts_with(&["component".into(), "job".into()]));
    assert!(left, "{paths:?}");

    let of_partner = spans.iter().find(|span| span.trace == partner).unwrap();
    assert_eq!(of_partner.parent, "00f067aa0ba902b7");
    assert_eq!(of_partner.attributes["http.route"], "/healthz");
    assert_eq!(of_partner.attributes["http.response.status_code"], "200");

    // No span names a person or a document.
    for span in &spans {
        let text = format!("{span:?}");
        for one in &drill.tracked {
            assert!(!text.contains(&one.id), "{text}");
        }
        assert!(!text.contains("@") && !text.contains("Jordan"), "{text}");
    }
}
