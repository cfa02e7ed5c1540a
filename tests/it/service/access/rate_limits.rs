//! Requests per minute and key (contract, section 2).

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use holdfast::config::Config;
use holdfast::domain::organization::{OrgSettings, Scope};
use serde_json::json;

use crate::support::{TestApp, TestResponse, postgres};

fn header(answer: &TestResponse, name: &str) -> i64 {
    answer.headers[name].to_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_report_the_remaining_requests_until_the_limit_refuses() {
    let app = TestApp::start().await;
    let key = app.key_with_limit(Scope::ALL, 3).await;
    let before = holdfast::domain::clock::Clock::default().now().as_seconds();
    for left in [2, 1, 0] {
        let answer = app.get_as(&key, "/partner/envelopes").await;
        assert_eq!(answer.status, 200);
        assert_eq!(header(&answer, "x-ratelimit-limit"), 3);
        assert_eq!(header(&answer, "x-ratelimit-remaining"), left);
        let reset = header(&answer, "x-ratelimit-reset");
        assert!((before + 58..=before + 65).contains(&reset), "{reset}");
    }

    let refused = app.get_as(&key, "/partner/envelopes").await;
    assert_eq!(refused.headers["retry-after"], "60");
    assert_eq!(header(&refused, "x-ratelimit-remaining"), 0);

    let wait = refused.json()["details"]["retry_after"].as_i64().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(refused.error(429), "Rate limit exceeded");

    // Another key of the organization is not affected.
    assert_eq!(app.get("/partner/envelopes").await.status, 200);
}

/// The order of checks is credential, scope, rate limit, request body.
#[tokio::test(flavor = "multi_thread")]
async fn scope_is_checked_before_the_limit_and_the_limit_before_the_body() {
    let app = TestApp::start().await;
    let key = app.key_with_limit(&[Scope::EnvelopesRead], 1).await;
    let write = || app.post_text(&key, "/partner/envelopes", "application/json", "{broken");
    let answer = write().await;
    assert_eq!(header(&answer, "x-ratelimit-remaining"), 1);
    assert_eq!(answer.error(403), "Missing required scope: envelopes:write");
    assert_eq!(app.get_as(&key, "/partner/envelopes").await.status, 200);
    assert_eq!(write().await.status, 403);

    let key = app.key_with_limit(Scope::ALL, 1).await;
    assert_eq!(app.get_as(&key, "/partner/envelopes").await.status, 200);

    let answer = app
        .post_text(&key, "/partner/envelopes", "application/json", "{broken")
        .await;
    assert_eq!(answer.status, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn error_responses_report_the_remaining_requests() {
    let app = TestApp::start().await;
    let id = "env_01h455vb4pex5vsknk084sn02q";
    for answer in [
        app.get(&format!("/partner/envelopes/{id}")).await,
        app.post("/partner/envelopes", json!({})).await,
        app.get("/partner/envelopes?limit=1000").await,
    ] {
        assert!(answer.status.is_client_error());
        assert!(header(&answer, "x-ratelimit-remaining") < header(&answer, "x-ratelimit-limit"));
    }
}

/// By key, else by token, else by address; a refused credential has the limit of guesses.
#[tokio::test(flavor = "multi_thread")]
async fn every_response_has_the_rate_limit_headers() {
    let app = TestApp::on_a_socket().await;
    let http = reqwest::Client::new();
    let bearer = format!("Bearer {}", app.web_admin());
    let (token, address) = ("6000", "60000");
    let rows = [
        ("/api/v2/partner/envelopes", None, 401, "30"),
        (
            "/api/v2/partner/envelopes",
            Some(("x-api-key", "lk_1".to_owned())),
            401,
            "30",
        ),
        (
            "/api/v2/templates",
            Some(("authorization", bearer)),
            200,
            token,
        ),
        ("/api/v2/nothing", None, 404, address),
        ("/api/v2/openapi.json", None, 200, address),
        ("/docs", None, 200, address),
        ("/console", None, 200, address),
        ("/sign/nothing", None, 404, address),
        ("/healthz", None, 200, address),
    ];

    for (path, credential, status, limit) in rows {
        let mut request = http.get(format!("{}{path}", app.url()));
        if let Some((name, value)) = credential {
            request = request.header(name, value);
        }

        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        assert_eq!(answer.headers()["x-ratelimit-limit"], limit, "{path}");
        for name in ["x-ratelimit-remaining", "x-ratelimit-reset"] {
            let value = answer.headers()[name].to_str().unwrap();
            assert!(value.parse::<u64>().is_ok(), "{path}: {name} is {value}");
        }
    }
}

/// Two nodes on one PostgreSQL share a key's window and exceed it by at most one share, a tenth.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_share_a_rate_limit_window() {
    let url = postgres::new_database().await;
    let first = TestApp::with(
        |config| config.database_url = Some(url.clone()),
        OrgSettings::default(),
    )
    .await;
    let second = TestApp::with(
        |config| config.database_url = Some(url.clone()),
        OrgSettings::default(),
    )
    .await;

    let key = first.key_with_limit(Scope::ALL, 40).await;
    let mut served = 0;
    for _ in 0..30 {
        for node in [&first, &second] {
            if node.get_as(&key, "/partner/envelopes").await.status == 200 {
                served += 1;
            }
        }
    }

    // The overshoot is one share, a tenth of 40.
    assert!((40..=44).contains(&served), "{served} of 60 were served");
}

/// Concurrent requests on one node lease once together, so it does not take the whole
/// limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_burst_at_one_node_does_not_take_the_other_nodes_share() {
    let url = postgres::new_database().await;
    let node = async || {
        let settings = |config: &mut Config| config.database_url = Some(url.clone());
        TestApp::with(settings, OrgSettings::default()).await
    };
    let (first, second) = (node().await, node().await);
    let key = first.key_with_limit(Scope::ALL, 100).await;
    let at_once = (0..40).map(|_| async { first.get_as(&key, "/partner/envelopes").await.status });
    let served = futures::future::join_all(at_once).await;
    assert!(served.iter().all(|status| *status == 200), "{served:?}");

    for _ in 0..20 {
        let answer = second.get_as(&key, "/partner/envelopes").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

/// The last use of a key is written occasionally and not with each request.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_use_of_a_key_is_recorded() {
    let app = TestApp::with(
        |config| config.sweep_interval = Some(Duration::from_millis(50)),
        OrgSettings::default(),
    )
    .await;
    let request = Request::get("/healthz").body(Body::empty()).unwrap();
    app.send(request).await;
    assert_eq!(app.key_last_used().await, None);

    app.get("/partner/envelopes").await.data(200);
    for _ in 0..100 {
        if app.key_last_used().await.is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    panic!("the use of the key was not noted in five seconds");
}
