//! `holdfast listen`, `trigger` and `events resend`, as programs beside a server.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use holdfast::domain::organization::{OrgSettings, Scope};
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::process::{ServerHome, ServerProcess, this_program};
use crate::support::receiver::{WebhookReceiver, status};

fn command(url: &str, key: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(this_program());
    command
        .args(arguments)
        .env("HOLDFAST_URL", url)
        .env("HOLDFAST_API_KEY", key)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A running listener.
struct Listener {
    child: Child,
    /// Secret that it printed.
    secret: String,
}

impl Listener {
    fn start(
        url: &str,
        key: &str,
        state: &Path,
        receiver: &WebhookReceiver,
        more: &[&str],
    ) -> Self {
        let file = state.to_str().unwrap();
        let arguments = ["listen", "--forward", &receiver.url, "--state", file];
        let mut child = command(url, key, &[&arguments, more].concat())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();

        let said = "secret of forwarded webhooks: ";
        let secret = lines
            .by_ref()
            .map(Result::unwrap)
            .find_map(|line| line.strip_prefix(said).map(str::to_owned));
        let secret = secret.expect("a listener that says its secret");

        // A full pipe would block it.
        std::thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .for_each(|line| eprintln!("{line}"))
        });

        Self { child, secret }
    }

    fn signal(mut self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(sent.unwrap().success());
        self.child.wait().unwrap();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(mut command: Command) -> (bool, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.success(),
        text(output.stdout),
        text(output.stderr),
    )
}

async fn make(url: &str, key: &str, count: usize) {
    let http = reqwest::Client::new();
    for _ in 0..count {
        let body = json!({
            "envelope_name": "Lease", "envelope_kind": "paper",
            "customer_email": "jordan.lee@example.com", "customer_name": "Jordan Lee",
        });
        let made = http
            .post(format!("{url}/api/v2/partner/envelopes"))
            .header("x-api-key", key)
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
            .await
            .unwrap();
        assert_eq!(made.status(), 201);
    }
}

fn ids(receiver: &WebhookReceiver) -> Vec<String> {
    let received = receiver.received();
    received
        .iter()
        .map(|one| one.header("webhook-id").to_owned())
        .collect()
}

/// Through restarts of the server and of the listener, and a receiver that is away: nothing is missed, nothing comes
/// twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_listener_goes_on_after_restarts() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let data = tempfile::tempdir().unwrap();
    let home = ServerHome::of(data.path());
    let key = home.key(&home.organization("Oak"), "envelopes:write,webhooks:listen");

    // The server has the same address after its restart.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let address = free.unwrap().to_string();
    let url = format!("http://{address}");
    let here = [("HOLDFAST_LISTEN", address.as_str())];
    let server = ServerProcess::start(&home, &[], &here).unwrap();
    let state = data.path().join("listen.json");

    let receiver = WebhookReceiver::start().await;

    make(&url, &key, 2).await;
    let listener = Listener::start(&url, &key, &state, &receiver, &[]);
    make(&url, &key, 3).await;
    receiver.wait_for(3).await;

    server.kill();
    let _server = ServerProcess::start(&home, &[], &here).unwrap();
    make(&url, &key, 2).await;
    receiver.wait_for(5).await;

    // The listener ends, misses events, and continues after the last one.
    let secret = listener.secret.clone();
    listener.signal("TERM");
    make(&url, &key, 4).await;
    let listener = Listener::start(&url, &key, &state, &receiver, &[]);
    assert_eq!(listener.secret, secret);

    receiver.wait_for(9).await;

    // It is killed while nothing happens, and the receiver is away afterwards.
    tokio::time::sleep(Duration::from_millis(300)).await;
    listener.signal("KILL");
    receiver.answer(|index, _| status(if index < 11 { 503 } else { 204 }));
    make(&url, &key, 1).await;
    let listener = Listener::start(&url, &key, &state, &receiver, &[]);
    receiver.wait_for(12).await;

    listener.signal("TERM");

    let got = ids(&receiver);

    // The last event was offered three times, as the receiver refused it twice.
    assert_eq!(got[9], got[10]);
    assert_eq!(got[10], got[11]);

    let http = reqwest::Client::new();
    let feed = format!("{url}/api/v2/partner/events?limit=100");
    let feed = http
        .get(feed)
        .header("x-api-key", &key)
        .send()
        .await
        .unwrap();
    let feed: Value = serde_json::from_slice(&feed.bytes().await.unwrap()).unwrap();
    let all = feed["data"].as_array().unwrap().iter();
    let all: Vec<&str> = all.map(|one| one["event_id"].as_str().unwrap()).collect();

    // Not the two from before it began.
    assert_eq!(got[..10], all[2..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_forwarded_as_the_service_sends_them() {
    let app = TestApp::on_a_socket_with(OrgSettings::default()).await;
    let key = app.key_with(&[Scope::WebhooksListen]).await;
    let (folder, receiver) = (tempfile::tempdir().unwrap(), WebhookReceiver::start().await);
    let state = folder.path().join("listen.json");
    app.envelope_event().await;
    let listener = Listener::start(
        &app.url(),
        &key,
        &state,
        &receiver,
        &["--from-start", "--types", "envelope.created"],
    );

    let received = receiver.wait_for(1).await;
    let event = received[0].json();
    assert_eq!(received[0].event_type(), "envelope.created");
    assert_eq!(event["event_id"], received[0].header("webhook-id"));

    let secret = holdfast::domain::webhook::WebhookSecret::of(listener.secret.clone());
    let of_body = holdfast::delivery::signature::of_body(&secret, &received[0].body);
    assert_eq!(received[0].header("x-service-signature"), of_body);
    assert!(received[0].header("webhook-signature").starts_with("v1,"));
    assert_eq!(received[0].header("user-agent"), "Service-Webhooks/1.0");

    // A sample, and the event again.
    let url = app.url();
    let sample = [
        "trigger",
        "vault.stored",
        "--forward",
        &receiver.url,
        "--secret",
        &listener.secret,
    ];
    let (done, said, _) = run(command(&url, &key, &sample));
    assert!(done && said.contains("answered 204"), "{said}");
    assert_eq!(receiver.wait_for(2).await[1].event_type(), "vault.stored");

    let id = event["event_id"].as_str().unwrap();
    let again = [
        "events",
        "resend",
        id,
        "--forward",
        &receiver.url,
        "--secret",
        &listener.secret,
    ];

    let (done, said, _) = run(command(&url, &key, &again));
    assert!(done, "{said}");
    assert_eq!(receiver.wait_for(3).await[2].json(), event);

    let (done, said, _) = run(command(&url, &key, &["events", "resend", id]));
    assert!(done && said.contains("no active endpoint"), "{said}");

    let mut from_environment = command(&url, &key, &sample[..4]);
    from_environment.env("HOLDFAST_WEBHOOK_SECRET", &listener.secret);
    let (done, _, error) = run(from_environment);
    assert!(done, "{error}");

    receiver.answer_with(500);
    assert!(!run(command(&url, &key, &sample)).0);

    for (arguments, why) in [
        (&["events", "resend", "evt_1"][..], "not an event id"),
        (
            &["events", "resend", "evt_01jdk7m3e8f4x9s2w5v6b0c1dc"],
            "Event not found",
        ),
        (
            &["trigger", "vault.opened", "--forward", "http://127.0.0.1:1"],
            "unknown type of event",
        ),
        (
            &["trigger", "vault.stored", "--forward", "http://127.0.0.1:1"],
            "the secret that signs is required",
        ),
    ] {
        let (done, _, said) = run(command(&url, &key, arguments));
        assert!(!done && said.contains(why), "{arguments:?}: {said}");
    }

    let unusual = folder.path().join("unusual.json");
    std::fs::write(&unusual, "{").unwrap();
    let broken = ["listen", "--state", unusual.to_str().unwrap()];
    let (done, _, said) = run(command(&url, &key, &broken));
    assert!(
        !done && said.contains("is no state of a listener"),
        "{said}"
    );

    let other = app.key_with(&[Scope::EnvelopesRead]).await;
    let new = folder.path().join("new.json");
    let (done, _, said) = run(command(
        &url,
        &other,
        &["listen", "--state", new.to_str().unwrap()],
    ));
    assert!(
        !done && said.contains("Missing required scope: webhooks:listen"),
        "{said}"
    );
}
