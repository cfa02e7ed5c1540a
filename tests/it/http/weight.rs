//! Bytes that a signer's browser loads: compression, widths of pictures and caching.

use axum::body::Body;
use axum::http::Request;

use crate::support::{TestApp, TestResponse, form};

const FOR_GOOD: &str = "max-age=31536000, immutable";

async fn accepting(app: &TestApp, encodings: &str, path: &str) -> TestResponse {
    let request = Request::get(path)
        .header("x-api-key", &app.key)
        .header("accept-encoding", encodings);
    app.send(request.body(Body::empty()).unwrap()).await
}

/// Returns the addresses in `attribute` of the first element of the page that matches.
fn attribute(page: &str, selector: &str, attribute: &str) -> String {
    let page = scraper::Html::parse_document(page);
    let selector = scraper::Selector::parse(selector).unwrap();
    let element = page.select(&selector).next().unwrap();
    element.attr(attribute).unwrap().to_owned()
}

fn path_of(url: &str) -> &str {
    &url[url.find("/sign/").unwrap()..]
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_compressed_and_the_api_is_not() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let page = path_of(envelope["sign_url"].as_str().unwrap());
    let plain = accepting(&app, "identity", page).await;
    let style = attribute(&plain.text(), "link[rel=stylesheet]", "href");
    for (path, encodings, expected) in [
        (page, "gzip, br", Some("br")),
        (page, "gzip", Some("gzip")),
        (page, "identity", None),
        (&style, "gzip, br", Some("br")),
        ("/api/v2/openapi.json", "br", Some("br")),
        ("/docs/api/partner-envelopes", "br", Some("br")),
        ("/api/v2/partner/envelopes", "gzip, br", None),
    ] {
        let answer = accepting(&app, encodings, path).await;
        assert_eq!(answer.status, 200, "{path}");
        let encoding = answer.headers.get("content-encoding");
        let encoding = encoding.map(|value| value.to_str().unwrap());
        assert_eq!(encoding, expected, "{path} with {encodings}");
    }

    let small = accepting(&app, "br", &style).await.bytes.len();
    let large = accepting(&app, "identity", &style).await.bytes.len();
    assert!(small * 3 < large, "{small} of {large} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_with_their_version_in_the_address_are_cached_for_good() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let page = form::open(&app, url).await.text();
    for (selector, name) in [
        ("link[rel=stylesheet]", "href"),
        ("script[src]", "src"),
        (".sheet img", "src"),
        ("figcaption a", "href"),
    ] {
        let address = attribute(&page, selector, name);
        let current = accepting(&app, "identity", &address).await;
        assert_eq!(current.status, 200, "{address}");

        let lifetime = current.headers["cache-control"].to_str().unwrap();
        assert!(lifetime.ends_with(FOR_GOOD), "{address}: {lifetime}");

        // A page that an earlier release sent must not pin the newer file to its own address.
        let (_, version) = address.split_once("v=").unwrap();
        let version = version.split('&').next().unwrap();
        for older in ["", "0123456789abcdef"] {
            let older = address.replace(version, older);
            let answer = accepting(&app, "identity", &older).await;
            assert_eq!(answer.bytes, current.bytes, "{older}");
            let lifetime = answer.headers["cache-control"].to_str().unwrap();
            assert!(lifetime.ends_with("max-age=3600"), "{older}: {lifetime}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_of_pages_come_in_two_widths_and_with_a_palette() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let page = form::open(&app, envelope["sign_url"].as_str().unwrap()).await;
    let sources = attribute(&page.text(), ".sheet img", "srcset");
    let sources: Vec<(&str, u32)> = sources
        .split(", ")
        .map(|source| source.split_once(' ').unwrap())
        .map(|(address, width)| (address, width.trim_end_matches('w').parse().unwrap()))
        .collect();
    assert_eq!(sources.len(), 2, "{sources:?}");

    for (address, width) in sources {
        let picture = accepting(&app, "br", address).await;
        assert_eq!(picture.headers.get("content-encoding"), None);

        // IHDR: width, height, bits of a sample, type of colour (3: palette).
        let header = &picture.bytes[16..26];
        assert_eq!(header[..4], width.to_be_bytes(), "{address}");
        assert_eq!(header[8..10], [4, 3], "{address}");
        assert!(picture.bytes.len() < 100_000, "{}", picture.bytes.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_width_that_is_no_number_is_refused() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let answer = form::open(&app, &format!("{url}/pages/1.png?w=wide")).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    let any = form::open(&app, &format!("{url}/pages/1.png?w=1")).await;
    assert_eq!(any.status, 200);
}
