//! Requests to the service, and its responses.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use super::TestApp;

/// A response with its complete body.
pub struct TestResponse {
    pub status: StatusCode,
    pub headers: axum::http::HeaderMap,
    pub bytes: Vec<u8>,
}

impl TestResponse {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&self.bytes)))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Asserts the status and returns the `data` of the response.
    #[track_caller]
    pub fn data(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()["data"].take()
    }

    /// Asserts the status and returns the `error` of the response.
    #[track_caller]
    pub fn error(self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()["error"]
            .as_str()
            .expect("an error text")
            .to_owned()
    }
}

impl TestApp {
    pub async fn send(&self, request: Request<Body>) -> TestResponse {
        let path = request.uri().path();
        // Changes of components and endpoints take effect on other nodes with a delay, and the
        // next request may go to another node.
        let activates = request.method() != Method::GET
            && ["/component", "/webhooks/endpoints/", "/partner/webhook"]
                .iter()
                .any(|begin| path.starts_with(&api(begin)));

        let response = self.router().oneshot(request).await.unwrap();
        if activates && response.status().is_success() && self.routers.len() > 1 {
            // Other nodes may need this long to pick up the change.
            tokio::time::sleep(Duration::from_secs(2)).await;
        }

        let (parts, body) = response.into_parts();
        TestResponse {
            status: parts.status,
            headers: parts.headers,
            bytes: body.collect().await.unwrap().to_bytes().to_vec(),
        }
    }

    /// Sends a request and returns the response without reading its body. Dropping it hangs up.
    pub async fn begin(&self, request: Request<Body>) -> axum::response::Response {
        self.router().oneshot(request).await.unwrap()
    }

    /// Sends a request and hangs up before reading the response's body.
    pub async fn hang_up(&self, request: Request<Body>) -> StatusCode {
        self.begin(request).await.status()
    }

    pub async fn get(&self, path: &str) -> TestResponse {
        self.get_as(&self.key, path).await
    }

    pub async fn get_as(&self, key: &str, path: &str) -> TestResponse {
        let request = Request::get(api(path)).header("x-api-key", key);
        self.send(request.body(Body::empty()).unwrap()).await
    }

    pub async fn get_with_bearer(&self, token: &str, path: &str) -> TestResponse {
        let request = Request::get(api(path)).header("authorization", format!("Bearer {token}"));
        self.send(request.body(Body::empty()).unwrap()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> TestResponse {
        self.post_as(&self.key, path, body).await
    }

    pub async fn post_as(&self, key: &str, path: &str, body: Value) -> TestResponse {
        self.post_text(key, path, "application/json", body.to_string())
            .await
    }

    pub async fn post_text(
        &self,
        key: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Body>,
    ) -> TestResponse {
        let request = Request::builder()
            .method(Method::POST)
            .uri(api(path))
            .header("x-api-key", key)
            .header("content-type", content_type);
        self.send(request.body(body.into()).unwrap()).await
    }

    pub async fn post_with_bearer(&self, token: &str, path: &str, body: Value) -> TestResponse {
        self.as_bearer(Method::POST, token, path, body).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> TestResponse {
        self.patch_as(&self.key, path, body).await
    }

    pub async fn patch_as(&self, key: &str, path: &str, body: Value) -> TestResponse {
        let request = Request::patch(api(path))
            .header("x-api-key", key)
            .header("content-type", "application/json");
        self.send(request.body(body.to_string().into()).unwrap())
            .await
    }

    pub async fn put(&self, path: &str, body: Value) -> TestResponse {
        let request = Request::put(api(path))
            .header("x-api-key", &self.key)
            .header("content-type", "application/json");
        self.send(request.body(body.to_string().into()).unwrap())
            .await
    }

    /// Sends a JSON body with a bearer token, with any method.
    pub async fn as_bearer(
        &self,
        method: Method,
        token: &str,
        path: &str,
        body: Value,
    ) -> TestResponse {
        let request = Request::builder()
            .method(method)
            .uri(api(path))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json");
        self.send(request.body(body.to_string().into()).unwrap())
            .await
    }

    /// Sends a request as an admin of the organization, without a body when it is null.
    pub async fn web(&self, method: Method, path: &str, body: Value) -> TestResponse {
        let body = match body {
            Value::Null => Body::empty(),
            body => body.to_string().into(),
        };
        self.web_body(method, path, "application/json", body).await
    }

    /// Sends a body of any type as an admin of the organization.
    pub async fn web_body(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Body>,
    ) -> TestResponse {
        let request = Request::builder()
            .method(method)
            .uri(api(path))
            .header("authorization", format!("Bearer {}", self.web_admin()))
            .header("x-org-id", self.org.as_str())
            .header("content-type", content_type);

        self.send(request.body(body.into()).unwrap()).await
    }

    /// Returns the check of each dependency from `/readyz`.
    pub async fn ready(&self) -> Value {
        let request = Request::get("/readyz").body(Body::empty()).unwrap();
        self.send(request).await.json()["checks"].take()
    }

    /// Returns the metrics of all nodes, one node after the other.
    pub async fn metrics(&self) -> String {
        let mut all = String::new();
        for _ in &self.routers {
            let request = Request::get("/metrics").body(Body::empty()).unwrap();
            all += &self.send(request).await.text();
        }
        all
    }
}

/// Prefixes a path of the API. A complete URL of this server is reduced to its path.
pub(super) fn api(path: &str) -> String {
    match path.strip_prefix("http://127.0.0.1:") {
        Some(rest) => rest[rest.find('/').unwrap()..].to_owned(),
        None => format!("/api/v2{path}"),
    }
}
