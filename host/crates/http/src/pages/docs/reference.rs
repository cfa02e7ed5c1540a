//! API reference: Swagger UI over `/api/v2/openapi.json`.

use std::sync::LazyLock;

use aide::swagger::Swagger;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, body::Bytes};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

use holdfast_service::App;

/// Fills in the API key that the console puts behind the address. Browsers do not send that part.
const WITH_KEY: &str = "        onComplete: () => {
            const key = new URLSearchParams(location.hash.slice(1)).get('key');
            if (!key) return;
            history.replaceState(null, '', location.pathname);
            ui.preauthorizeApiKey('apiKey', key);
        },
";

pub fn routes() -> Router<App> {
    Router::new().route("/docs/api", get(reference))
}

/// The page, and its Content-Security-Policy.
struct Reference {
    page: Bytes,
    policy: String,
}

/// Written at the first visit: the page has the 1.7 MB of Swagger UI.
static REFERENCE: LazyLock<Reference> = LazyLock::new(|| {
    let page = Swagger::new("/api/v2/openapi.json")
        .with_title("holdfast API")
        .html()
        .replacen(
            "<head>",
            "<head><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">",
            1,
        )
        .replacen(
            "        ],\n    })",
            &format!("        ],\n{WITH_KEY}    }})"),
            1,
        );
    Reference {
        policy: policy(&page),
        page: page.into(),
    }
});

/// `GET /docs/api`.
async fn reference() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "max-age=3600"),
    ];
    let policy = [(header::CONTENT_SECURITY_POLICY, REFERENCE.policy.as_str())];
    (headers, policy, REFERENCE.page.clone()).into_response()
}

/// Returns the page's Content-Security-Policy. Swagger UI inlines its script and style, so the
/// policy allows each by its SHA-256 (Content Security Policy Level 3, 2.3.1) and no others.
fn policy(page: &str) -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src 'self' data:; \
         connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
        hashes(page, "script"),
        hashes(page, "style")
    )
}

/// Returns the sources `'sha256-…'` of all elements of this name, none of which has attributes.
fn hashes(page: &str, element: &str) -> String {
    let (start, end) = (format!("<{element}>"), format!("</{element}>"));
    let mut sources = Vec::new();
    let mut rest = page;
    while let Some((_, from)) = rest.split_once(&start)
        && let Some((text, after)) = from.split_once(&end)
    {
        // Browsers hash exactly the text between the tags.
        let hash = BASE64_STANDARD.encode(Sha256::digest(text));
        sources.push(format!("'sha256-{hash}'"));
        rest = after;
    }

    sources.join(" ")
}
