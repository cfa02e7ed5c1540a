//! Slow, silent and numerous clients do not affect other clients.

use std::time::{Duration, Instant};

use holdfast::domain::organization::{OrgSettings, Scope};
use holdfast::domain::token::ApiKey;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::builder::PdfBuilder;
use crate::support::process::{ServerHome, ServerProcess, this_program};
use crate::support::{TestApp, form, share_native_code};

/// Generous limit for anything that should happen immediately, even on a busy machine.
const SOON: Duration = Duration::from_secs(20);

async fn connect(url: &str) -> TcpStream {
    let address = url.strip_prefix("http://").unwrap();
    let address = address.split('/').next().unwrap();
    TcpStream::connect(address).await.unwrap()
}

/// Reads until the server closes the connection and returns the bytes.
async fn until_closed(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(SOON, stream.read_to_end(&mut answer)).await;
    // A reset closes the connection too.
    let _ = read.expect("the connection stays open");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends a GET over a new connection and reads the response to its end.
async fn get(url: &str, path: &str) -> String {
    let mut stream = connect(url).await;
    let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    until_closed(&mut stream).await
}

fn post_head(app: &TestApp, path: &str, content_type: &str, length: usize) -> String {
    format!(
        "POST /api/v2/partner{path} HTTP/1.1\r\nhost: test\r\nx-api-key: {}\r\n\
         content-type: {content_type}\r\ncontent-length: {length}\r\n\r\n",
        app.key
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_with_an_endless_request_head_is_closed() {
    let app = TestApp::on_a_socket_over(|config| {
        config.http.header_timeout = Duration::from_millis(300);
    })
    .await;
    for begin in [
        "",
        "GET /healthz HTTP/1.1\r\nhost: te",
        "PRI * HTTP/2.0\r\n",
    ] {
        let mut stream = connect(&app.url()).await;
        stream.write_all(begin.as_bytes()).await.unwrap();
        assert_eq!(until_closed(&mut stream).await, "", "{begin}");
    }

    // The limit also applies after a complete request.
    let mut stream = connect(&app.url()).await;
    let request = b"GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = [0; 1024];
    assert!(stream.read(&mut answer).await.unwrap() > 0);

    stream.write_all(&request[..12]).await.unwrap();
    assert_eq!(until_closed(&mut stream).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_is_closed() {
    let app = TestApp::on_a_socket_over(|config| {
        config.http.idle_timeout = Duration::from_millis(300);
    })
    .await;
    let mut stream = connect(&app.url()).await;
    let request = "GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();

    let answer = until_closed(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_request_body_gets_a_408() {
    let app = TestApp::on_a_socket_over(|config| {
        config.http.body_timeout = Duration::from_millis(300);
    })
    .await;

    let form = "multipart/form-data; boundary=b";
    for (path, content_type, begin) in [
        ("/envelopes", "application/json", "{ \"envelope_name\": "),
        (
            "/templates",
            form,
            "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n%PDF-1.7",
        ),
    ] {
        let mut stream = connect(&app.url()).await;
        let head = post_head(&app, path, content_type, 10_000);
        stream.write_all((head + begin).as_bytes()).await.unwrap();
        let answer = until_closed(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{path}: {answer}");
        assert!(answer.contains("{\"error\":\"The request body did not arrive in time\"}"));
    }
}

/// A failure of the client is not counted as a server error.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_aborted_by_its_client_is_not_a_server_error() {
    let app = TestApp::on_a_socket().await;
    let mut stream = connect(&app.url()).await;
    let head = post_head(
        &app,
        "/templates",
        "multipart/form-data; boundary=b",
        10_000,
    );

    let begin = "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n%PDF";
    stream.write_all((head + begin).as_bytes()).await.unwrap();

    // The connection is half closed, so the response can still be read.
    stream.shutdown().await.unwrap();
    until_closed(&mut stream).await;
    let deadline = Instant::now() + SOON;
    let counted = loop {
        let metrics = app.metrics().await;
        let mut lines = metrics.lines();
        if let Some(line) = lines.find(|line| line.contains("/templates\",status=")) {
            break line.to_owned();
        }
        assert!(Instant::now() < deadline, "the request was not counted");

        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(counted.contains("status=\"400\""), "{counted}");
}

/// Many connections with incomplete request heads cannot lock out other clients.
#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_half_open_connection_is_closed_when_there_are_too_many() {
    let app = TestApp::on_a_socket_over(|config| config.http.connections = 8).await;
    let mut half_open = Vec::new();
    for _ in 0..30 {
        let mut stream = connect(&app.url()).await;
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\n")
            .await
            .unwrap();
        half_open.push(stream);
    }

    for _ in 0..20 {
        let answer = get(&app.url(), "/healthz").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(until_closed(&mut half_open[0]).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_streams_of_a_connection_are_limited() {
    let app = TestApp::on_a_socket_over(|config| config.http.streams = 7).await;
    let mut stream = connect(&app.url()).await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).await.unwrap();

    // A frame has a header of nine bytes, and each setting takes six bytes (RFC 9113).
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], 4, "settings come first");

    let mut settings = vec![0; usize::from(head[2])];
    stream.read_exact(&mut settings).await.unwrap();
    let most = settings.chunks(6).find(|setting| setting[..2] == [0, 3]);
    assert_eq!(most.unwrap()[2..], [0, 0, 0, 7]);
}

/// Large bodies of some clients leave memory for ordinary requests of other clients.
#[tokio::test(flavor = "multi_thread")]
async fn request_bodies_in_memory_have_a_total_limit() {
    const MIB: usize = 1024 * 1024;

    let app = TestApp::on_a_socket_over(|config| config.http.buffered_bytes = MIB).await;
    let head = post_head(&app, "/envelopes", "application/json", MIB);
    let begun = [head.as_bytes(), &vec![b' '; 700_000]].concat();
    let ask = async || {
        let mut stream = connect(&app.url()).await;
        // The server may respond before it has read the whole body.
        let _ = stream.write_all(&begun).await;
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).await.unwrap_or_default();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    };

    let deadline = Instant::now() + SOON;
    let refused = loop {
        // The memory suffices for one of three requests; which one is not determined.
        let three = [(); 3].map(|()| Box::pin(ask()));
        let (answer, _, _) = futures::future::select_all(three).await;
        if !answer.is_empty() {
            break answer;
        }
        assert!(Instant::now() < deadline, "nothing was refused");
    };
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.contains("retry-after: 2"), "{refused}");

    let small = app.post("/partner/envelopes", json!({})).await;
    assert_eq!(small.status, 422);
}

/// Returns the resident memory of this process, which also runs the server, in MiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kibibytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kibibytes.parse::<u64>().unwrap() / 1024
}

/// Returns a document that does not compress.
fn incompressible(size: usize) -> Vec<u8> {
    let mut state: u64 = 42;
    let noise = (0..size).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    });
    let noise: Vec<u8> = noise.collect();

    let mut document = PdfBuilder::new();
    document.page("BT /F1 12 Tf 10 50 Td (Contract) Tj ET");
    let noise = document.stream("", &noise);
    document.catalog(&format!("/Noise {noise} 0 R"));

    document.build()
}

/// Copies are streamed from disk in pieces, and stalled readers delay no other client.
#[tokio::test(flavor = "multi_thread")]
async fn stalled_readers_of_copies_use_no_memory_and_delay_no_others() {
    const READERS: usize = 100;
    const SIZE: usize = 4_000_000;

    for vaulted in [true, false] {
        let settings = OrgSettings {
            auto_vault: vaulted,
            ..OrgSettings::default()
        };
        let app = TestApp::on_a_socket_with(settings).await;
        let fields = json!([{
            "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
            "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.8, "w": 0.3, "h": 0.05 }] },
        }]);
        let template = app.template(&incompressible(SIZE), &fields).await;
        let body = crate::support::envelope_body(&template["template_id"]);
        let envelope = app.post("/partner/envelopes", body).await.data(201);
        let link = envelope["sign_url"].as_str().unwrap().to_owned();
        form::sign(&app, &link).await;

        let id = envelope["envelope_id"].as_str().unwrap();
        app.wait_for(id, if vaulted { "vaulted" } else { "completed" })
            .await;
        let path = link[link.find("/sign/").unwrap()..].to_owned() + "/copy.pdf";
        let whole = get(&app.url(), &path).await;
        assert!(whole.starts_with("HTTP/1.1 200"));
        assert!(whole.len() > SIZE);

        let before = memory();
        let mut readers = Vec::new();
        for _ in 0..READERS {
            let mut stream = connect(&app.url()).await;
            let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            readers.push(stream);
        }

        // Wait until every reader has received its first bytes.
        for stream in &mut readers {
            let begun = tokio::time::timeout(SOON * 3, stream.readable()).await;
            begun.expect("an answer").unwrap();
        }

        let began = Instant::now();
        let answer = get(&app.url(), "/healthz").await;
        assert!(answer.starts_with("HTTP/1.1 200"));
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());

        let held = memory().saturating_sub(before);
        assert!(
            held < 150,
            "{held} MiB for {READERS} copies of {SIZE} bytes"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_disconnected() {
    let app = TestApp::on_a_socket_over(|config| {
        config.http.write_timeout = Duration::from_millis(500);
    })
    .await;
    let mut stream = connect(&app.url()).await;
    let request = "GET /api/v2/openapi.json HTTP/1.1\r\nhost: test\r\n\r\n";

    // More responses than the kernel buffers for one connection.
    let requests = request.repeat(200);
    let _ = tokio::time::timeout(SOON, stream.write_all(requests.as_bytes())).await;

    let deadline = Instant::now() + SOON;
    loop {
        let metrics = app.metrics().await;
        if metrics.contains("not-reading") {
            break;
        }
        assert!(Instant::now() < deadline, "{metrics}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Stalled clients do not keep a server from stopping.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_stops_within_its_grace_period_despite_stalled_clients() {
    let folder = tempfile::tempdir().unwrap();
    share_native_code(folder.path());
    let home = ServerHome {
        program: this_program(),
        data: folder.path().to_owned(),
        database: None,
        settings: vec![("HOLDFAST_HTTP__STOP_GRACE".into(), "4s".into())],
    };
    let key = home.key(&home.organization("Maple"), "envelopes:write");
    let mut server = ServerProcess::start(&home, &[], &[]).unwrap();
    let request = "GET /api/v2/openapi.json HTTP/1.1\r\nhost: test\r\n\r\n";

    let mut stalled = Vec::new();
    for begin in [
        String::new(),
        "GET /healthz HTTP/1.1\r\n".into(),
        format!(
            "POST /api/v2/partner/envelopes HTTP/1.1\r\nhost: test\r\nx-api-key: {key}\r\n\
             content-length: 1000\r\n\r\n{{"
        ),
        request.repeat(200),
    ] {
        let mut stream = connect(&server.url).await;
        let sent = stream.write_all(begin.as_bytes());
        let _ = tokio::time::timeout(Duration::from_secs(2), sent).await;
        stalled.push(stream);
    }

    server.signal("TERM");
    let began = Instant::now();
    while !server.is_dead() {
        assert!(
            began.elapsed() < Duration::from_secs(4),
            "the server does not stop within its grace"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Reads one response: its head, and as many bytes of its body as it announces.
async fn read_response(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let reading = async {
        loop {
            let text = String::from_utf8_lossy(&answer).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let mut lines = head.lines();
                let length = lines.find_map(|line| line.strip_prefix("content-length: "));
                if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                    return text;
                }
            }

            if stream.read_buf(&mut answer).await.unwrap_or(0) == 0 {
                return String::from_utf8_lossy(&answer).into_owned();
            }
        }
    };

    tokio::time::timeout(SOON, reading)
        .await
        .expect("a response")
}

/// Heads of requests that are answered before their body is read, with their status.
async fn early_answers(app: &TestApp) -> Vec<(u16, String, String)> {
    let reader = app.key_with_limit(&[Scope::EnvelopesRead], 100).await;
    let exhausted = app.key_with_limit(Scope::ALL, 1).await;
    app.get_as(&exhausted, "/partner/envelopes").await;
    let unknown = ApiKey::generate(&app.org).reveal().to_owned();
    let envelopes = "/api/v2/partner/envelopes";
    let json = "content-type: application/json\r\n";
    let answers = [
        (401, envelopes, json.to_owned()),
        (401, envelopes, format!("{json}x-api-key: {unknown}\r\n")),
        (403, envelopes, format!("{json}x-api-key: {reader}\r\n")),
        (429, envelopes, format!("{json}x-api-key: {exhausted}\r\n")),
        (
            400,
            envelopes,
            format!("content-type: text/plain\r\nx-api-key: {}\r\n", app.key),
        ),
        (404, "/nowhere", json.to_owned()),
        (405, "/healthz", json.to_owned()),
        (404, "/api/v2/callbacks/signing/nobody", json.to_owned()),
        (
            303,
            "/console/users",
            "cookie: __Host-holdfast=none\r\n".into(),
        ),
        (404, "/sign/none/renew", String::new()),
    ];

    let answers = answers.into_iter();
    answers
        .map(|(status, path, headers)| (status, path.to_owned(), headers))
        .collect()
}

fn refused_head(path: &str, headers: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: test\r\n{headers}content-length: {length}\r\n\r\n")
}

/// Head and body arrive in two packets, as many clients send them.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_refused_early_leaves_its_connection_to_the_next_one() {
    let app = TestApp::on_a_socket().await;
    for (status, path, headers) in early_answers(&app).await {
        let mut stream = connect(&app.url()).await;
        let body = "x".repeat(5_000);
        for packet in [refused_head(&path, &headers, body.len()), body] {
            stream.write_all(packet.as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }

        let refused = read_response(&mut stream).await;
        let expected = format!("HTTP/1.1 {status}");
        assert!(refused.starts_with(&expected), "{path}: {refused}");
        assert!(!refused.contains("connection: close"), "{path}: {refused}");

        let next = b"GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n";
        stream.write_all(next).await.unwrap();
        let next = read_response(&mut stream).await;
        assert!(next.starts_with("HTTP/1.1 200"), "{status} {path}: {next}");
    }
}

/// The client reads the refusal although it was still sending.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_large_body_that_is_refused_announces_the_end_of_the_connection() {
    const MIB: usize = 1024 * 1024;

    let app = TestApp::on_a_socket().await;
    for (status, path, headers) in early_answers(&app).await {
        let mut stream = connect(&app.url()).await;
        let head = refused_head(&path, &headers, 8 * MIB);
        stream.write_all(head.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        for _ in 0..8 {
            stream.write_all(&vec![b'x'; MIB]).await.unwrap();
        }

        let refused = until_closed(&mut stream).await;
        let expected = format!("HTTP/1.1 {status}");
        assert!(refused.starts_with(&expected), "{path}: {refused}");
        assert!(refused.contains("connection: close"), "{path}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_to_send_its_body_is_not_asked_for_it() {
    let app = TestApp::on_a_socket().await;
    let mut stream = connect(&app.url()).await;
    let headers = "expect: 100-continue\r\n";
    let head = refused_head("/api/v2/partner/envelopes", headers, 1_000);
    stream.write_all(head.as_bytes()).await.unwrap();
    let refused = until_closed(&mut stream).await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    assert!(refused.contains("connection: close"), "{refused}");
}

/// A body that does not come holds an early answer for a moment only.
#[tokio::test(flavor = "multi_thread")]
async fn an_early_answer_does_not_wait_for_a_body_that_does_not_come() {
    let app = TestApp::on_a_socket().await;
    let mut stream = connect(&app.url()).await;
    let head = refused_head("/api/v2/partner/envelopes", "", 1_000);
    let began = Instant::now();
    stream.write_all(head.as_bytes()).await.unwrap();
    let refused = read_response(&mut stream).await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    assert!(refused.contains("connection: close"), "{refused}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// Open uploads of one key take a part of the disk, however slowly they come.
#[tokio::test(flavor = "multi_thread")]
async fn open_uploads_of_a_key_have_a_limit() {
    const MIB: usize = 1024 * 1024;

    let app = TestApp::on_a_socket().await;
    let form = "multipart/form-data; boundary=b";
    let begin =
        "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n%PDF-1.7";
    let open = async |size: usize| {
        let mut stream = connect(&app.url()).await;
        let head = post_head(&app, "/templates", form, 50 * MIB);
        stream.write_all((head + begin).as_bytes()).await.unwrap();

        for _ in 0..size {
            // A refused upload may be closed meanwhile.
            let _ = stream.write_all(&vec![b'x'; MIB]).await;
        }

        stream
    };

    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(open(49).await);
    }

    let mut next = open(30).await;
    let refused = read_response(&mut next).await;
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert!(refused.contains("unfinished uploads"), "{refused}");

    // There is room again when they end.
    drop(held);
    let deadline = Instant::now() + SOON;
    loop {
        let mut next = open(30).await;
        let answer = read_response(&mut next);
        if tokio::time::timeout(Duration::from_secs(1), answer)
            .await
            .is_err()
        {
            break;
        }

        assert!(Instant::now() < deadline, "the bytes are not released");
    }
}
