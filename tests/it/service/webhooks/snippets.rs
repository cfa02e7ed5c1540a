//! Runs the receiver code of `docs/webhooks.md`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::receiver::WebhookReceiver;

const GUIDE: &str = include_str!("../../../../docs/webhooks.md");

/// The guide's code in one language and a harness that calls it, with cases as JSON on standard
/// input and verdicts as JSON on standard output.
struct GuideSnippet {
    language: &'static str,
    program: &'static [&'static str],
    harness: &'static str,
}

const SNIPPETS: [GuideSnippet; 4] = [
    GuideSnippet {
        language: "python",
        program: &["python3", "-c"],
        harness: "
import json, sys
cases = json.load(sys.stdin)
print(json.dumps([verify(c['secret'], c['headers'], base64.b64decode(c['body'])) for c in cases]))",
    },
    GuideSnippet {
        language: "javascript",
        program: &["node", "-e"],
        harness: "
const cases = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(cases.map((c) => verify(c.secret, c.headers, Buffer.from(c.body, 'base64')))));",
    },
    GuideSnippet {
        language: "php",
        program: &["php", "-r"],
        harness: "
$cases = json_decode(stream_get_contents(STDIN), true);
echo json_encode(array_map(fn($c) => verify($c['secret'], $c['headers'], base64_decode($c['body'])), $cases));",
    },
    GuideSnippet {
        language: "ruby",
        program: &["ruby", "-e"],
        harness: "
require 'json'
cases = JSON.parse($stdin.read)
puts cases.map { |c| verify(c['secret'], c['headers'], Base64.decode64(c['body'])) }.to_json",
    },
];

impl GuideSnippet {
    fn code(&self) -> String {
        let fence = format!("```{}\n", self.language);
        let (_, receivers) = GUIDE.split_once("## Verifying the sender").unwrap();
        let (_, rest) = receivers.split_once(&fence).unwrap();
        let (code, _) = rest.split_once("```").unwrap();
        // `php -r` expects code without the opening tag.
        format!("{}\n{}", code.trim_start_matches("<?php\n"), self.harness)
    }

    fn run(&self, cases: &Value) -> Value {
        let [program, flag] = self.program else {
            unreachable!()
        };

        let mut child = Command::new(program)
            .args([flag, self.code().as_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}; run tests/set-up test"));
        let mut input = child.stdin.take().unwrap();
        input.write_all(cases.to_string().as_bytes()).unwrap();

        drop(input);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{program}");

        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// The guide's code accepts genuine deliveries only.
#[tokio::test(flavor = "multi_thread")]
async fn the_guides_code_accepts_only_genuine_deliveries() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    let first = endpoint["secret"].as_str().unwrap().to_owned();
    app.envelope_event().await;
    let plain = receiver.wait_for(1).await.remove(0);
    let id = endpoint["endpoint_id"].as_str().unwrap();
    let path = format!("/webhooks/endpoints/{id}/rotate-secret");
    let rotated = app.post_with_bearer(&app.admin(), &path, json!({})).await;
    let second = rotated.data(200)["secret"].as_str().unwrap().to_owned();

    app.envelope_event().await;
    let during = receiver.wait_for(2).await.remove(1);
    let legacy =
        json!({ "webhook_url": receiver.url, "webhook_secret": "chosen by somebody else" });
    app.patch("/partner/webhook", legacy).await.data(200);
    app.envelope_event().await;
    let received = receiver.wait_for(4).await;
    let own = received[2..]
        .iter()
        .find(|one| one.header("x-service-endpoint") != id)
        .unwrap();

    let case = |secret: &str,
                delivery: &crate::support::receiver::ReceivedDelivery,
                change: &dyn Fn(&mut Value)| {
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let headers: Value = names
            .iter()
            .map(|name| ((*name).to_owned(), json!(delivery.header(name))))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let mut case = json!({ "secret": secret, "headers": headers, "body": STANDARD.encode(&delivery.body) });
        change(&mut case);

        case
    };

    let as_it_is = |_: &mut Value| {};
    let other_body = |case: &mut Value| case["body"] = json!(STANDARD.encode(b"{}"));
    let old = |case: &mut Value| {
        let at: i64 = case["headers"]["webhook-timestamp"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        case["headers"]["webhook-timestamp"] = json!((at - 301).to_string());
    };

    let unsigned = |case: &mut Value| case["headers"]["webhook-signature"] = json!("v1,");
    let cases = json!([
        case(&first, &plain, &as_it_is),
        case(&first, &during, &as_it_is),
        case(&second, &during, &as_it_is),
        case("chosen by somebody else", own, &as_it_is),
        case(&second, &plain, &as_it_is),
        case(&first, &plain, &other_body),
        case(&first, &plain, &old),
        case(&first, &plain, &unsigned),
    ]);
    for snippet in SNIPPETS {
        assert_eq!(
            snippet.run(&cases),
            json!([true, true, true, true, false, false, false, false]),
            "{}",
            snippet.language
        );
    }
}
