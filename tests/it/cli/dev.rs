//! `holdfast dev`: keys that stay, sample data, and projects that are swapped after each change.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use holdfast::domain::component::Slot;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use super::plugin_kit::in_rust;
use super::rules_kit;
use crate::support::receiver::WebhookReceiver;
use crate::support::{CONTRACT, envelope_body};

/// A running `holdfast dev`.
struct DevProcess {
    child: Child,
    said: Receiver<String>,
    heard: Vec<String>,
}

impl DevProcess {
    fn start(data: &Path, more: &[&str]) -> Self {
        Self::start_after(data, more, &BTreeMap::new())
    }

    /// Starts it in a shell with these exports.
    fn start_after(data: &Path, more: &[&str], exports: &BTreeMap<String, String>) -> Self {
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_holdfast"))
            .arg("dev")
            .args(more)
            .args(["--listen", &address.to_string(), "--data"])
            .arg(data)
            .envs(exports)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();

        let (tell, said) = channel();
        let errors = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            errors.lines().map_while(Result::ok).for_each(|line| {
                let _ = tell.send(line);
            });
        });

        let mut process = Self {
            child,
            said,
            heard: Vec::new(),
        };
        process.hears("holdfast dev runs at");

        process
    }

    /// Waits for a line that contains a text.
    fn hears(&mut self, what: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(240);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.said.recv_timeout(left) else {
                panic!("never said {what:?}:\n{}", self.heard.join("\n"));
            };

            self.heard.push(line.clone());
            if line.contains(what) {
                return line;
            }
        }
    }

    /// Ends it as Ctrl-C does.
    fn end(mut self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.heard.join("\n"));
    }

    /// Reads the exports as a shell does.
    fn exports(&mut self) -> BTreeMap<String, String> {
        let mut lines = BufReader::new(self.child.stdout.as_mut().unwrap());
        let mut exports = BTreeMap::new();
        loop {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            let (name, value) = line
                .trim()
                .strip_prefix("export ")
                .unwrap()
                .split_once('=')
                .unwrap();
            exports.insert(name.to_owned(), value.to_owned());

            if name == "HOLDFAST_ORG" {
                return exports;
            }
        }
    }
}

impl Drop for DevProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn data(request: RequestBuilder) -> Value {
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let body: Value = answer.json().await.unwrap();
    assert!(status.is_success(), "{status}: {body}");
    body["data"].clone()
}

fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_for_this_machine_keeps_its_keys_and_has_sample_data() {
    let folder = tempfile::tempdir().unwrap();
    // A folder that is in use keeps its files, and settings of another installation have no effect.
    fs::write(folder.path().join(".gitignore"), "/own\n").unwrap();
    let elsewhere = BTreeMap::from([
        (
            "HOLDFAST_DATABASE_URL".to_owned(),
            "postgres://nobody@127.0.0.1:1/none".to_owned(),
        ),
        (
            "HOLDFAST_SMTP_URL".to_owned(),
            "smtp://127.0.0.1:1?tls=opportunistic".to_owned(),
        ),
        (
            "HOLDFAST_PROVIDERS__SIGNING__DEFAULT".to_owned(),
            "cloud".to_owned(),
        ),
        (
            "HOLDFAST_PROVIDERS__SIGNING__CLOUD__BASE_URL".to_owned(),
            "https://127.0.0.1:1".to_owned(),
        ),
    ]);

    let receiver = WebhookReceiver::start().await;
    let hooks = receiver.url.clone();
    let mut dev = DevProcess::start_after(folder.path(), &["--hooks", &hooks], &elsewhere);
    let exports = dev.exports();
    let api = |path: &str| format!("{}/api/v2{path}", exports["HOLDFAST_URL"]);
    let client = client();
    let listed = client.get(api("/partner/envelopes"));
    let listed = data(listed.header("x-api-key", &exports["HOLDFAST_LIVE_KEY"])).await;
    assert_eq!(listed[0]["envelope_name"], "Sample contract");

    let test = client.get(api("/partner/envelopes"));
    let test = data(test.header("x-api-key", &exports["HOLDFAST_API_KEY"])).await;
    assert_eq!(test, json!([]));
    assert!(exports["HOLDFAST_API_KEY"].starts_with("lk_test_"));

    let users = client
        .get(api("/users"))
        .bearer_auth(&exports["HOLDFAST_TOKEN"]);
    assert_eq!(data(users).await[0]["email"], "you@example.com");

    let link = dev
        .hears("to sign")
        .split_whitespace()
        .last()
        .unwrap()
        .to_owned();
    let page = client.get(link).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Sample contract"), "{page}");

    let console = dev
        .heard
        .iter()
        .find(|line| line.contains("console"))
        .unwrap();
    let link = console.split_whitespace().last().unwrap().to_owned();
    assert!(client.get(link).send().await.unwrap().status().is_success());

    let kept = fs::read_to_string(folder.path().join(".gitignore")).unwrap();
    assert_eq!(kept, "/own\n");
    assert!(folder.path().join("holdfast.db").exists());

    // A receiver on this machine gets the events of the sample, and those of test data.
    receiver.wait_for(1).await;
    let draft = client
        .post(api("/partner/envelopes"))
        .header("x-api-key", &exports["HOLDFAST_API_KEY"]);
    data(draft.json(&envelope_body(&Value::Null))).await;
    let is_of_test = |event: &Value| {
        event["org_id"]
            .as_str()
            .is_some_and(|org| org.starts_with("org_test_"))
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !receiver
        .received()
        .iter()
        .any(|one| is_of_test(&one.json()))
    {
        assert!(Instant::now() < deadline, "no event of test data");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let again = exports;
    dev.end();

    let mut dev = DevProcess::start_after(folder.path(), &[], &again);
    let exports = dev.exports();
    for name in ["HOLDFAST_API_KEY", "HOLDFAST_LIVE_KEY", "HOLDFAST_ORG"] {
        assert_eq!(exports[name], again[name], "{name}");
    }

    let api = |path: &str| format!("{}/api/v2{path}", exports["HOLDFAST_URL"]);
    let listed = client.get(api("/partner/envelopes"));
    let listed = data(listed.header("x-api-key", &exports["HOLDFAST_LIVE_KEY"])).await;
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");

    dev.end();
}

#[test]
fn what_dev_cannot_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = |variables: &[(&str, &str)], project: &Path, more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_holdfast"))
            .arg("dev")
            .arg(project)
            .arg("--data")
            .arg(folder.path().join("data"))
            .args(more)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert!(!output.status.success());

        String::from_utf8(output.stderr).unwrap()
    };

    let empty = run(&[], folder.path(), &[]);
    assert!(
        empty.contains("has no rules.toml, package.json or Makefile"),
        "{empty}"
    );

    let absent = run(&[], &folder.path().join("absent"), &[]);
    assert!(absent.contains("No such file"), "{absent}");

    let production = run(&[("HOLDFAST_ENV", "production")], folder.path(), &[]);
    assert!(production.contains("for development"), "{production}");

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    fs::write(folder.path().join("rules.toml"), "").unwrap();
    let there = run(&[], folder.path(), &["--listen", &address]);
    assert!(there.contains("cannot listen on"), "{there}");

    // Without a terminal there is no question.
    let public = run(&[], folder.path(), &["--listen", "0.0.0.0:0"]);
    assert!(
        public.contains("other machines can reach it") && public.contains("--public"),
        "{public}"
    );
    assert!(!folder.path().join("data").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_swapped_after_each_change() {
    let data_folder = tempfile::tempdir().unwrap();
    let project = rules_kit::guide();
    let path = project.path().to_str().unwrap().to_owned();
    let mut dev = DevProcess::start(data_folder.path(), &[&path]);
    dev.hears("is active for rules.compliance");
    let exports = dev.exports();
    let client = client();
    let slots = || {
        let at = format!("{}/api/v2/component-slots", exports["HOLDFAST_URL"]);
        data(client.get(at).bearer_auth(&exports["HOLDFAST_TOKEN"]))
    };
    let active = |slots: &Value| {
        let slots = slots.as_array().unwrap();
        let one = slots
            .iter()
            .find(|slot| slot["slot"] == "rules.compliance")
            .unwrap();
        one["active"]["version"].clone()
    };

    let first = active(&slots().await);
    let rules = project.path().join("rules.toml");
    let text = fs::read_to_string(&rules).unwrap();

    // A mistake leaves the last version active.
    fs::write(&rules, "[[check]]\n").unwrap();
    dev.hears("not activated, the last one stays active");
    assert_eq!(active(&slots().await), first);

    fs::write(
        &rules,
        text.replace("Credit policy 7.2", "Credit policy 7.3"),
    )
    .unwrap();
    dev.hears("is active for rules.compliance");
    assert_ne!(active(&slots().await), first);

    // A removed file is a change.
    fs::remove_file(project.path().join("vectors.yaml")).unwrap();
    dev.hears("not activated, the last one stays active");

    dev.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_works_with_the_service_of_its_script() {
    let data_folder = tempfile::tempdir().unwrap();
    let project = tempfile::tempdir().unwrap();
    let at = |file: &str| project.path().join(file);
    fs::write(at("plugin.bin"), in_rust(Slot::Signing)).unwrap();
    fs::write(at("Makefile"), "build:\n\tcp plugin.bin acme-sign.wasm\n").unwrap();
    let script = include_str!("../../../plugins/examples/far-end.json");
    fs::write(at("far-end.json"), script).unwrap();

    let path = project.path().to_str().unwrap().to_owned();
    let mut dev = DevProcess::start(data_folder.path(), &[&path]);
    let exports = dev.exports();
    let active = dev.hears("is active for provider.signing");
    assert!(active.contains("/api/v2/callbacks/signing/"), "{active}");

    let file = reqwest::multipart::Part::bytes(CONTRACT).file_name("contract.pdf");
    let file = file.mime_str("application/pdf").unwrap();
    let form = reqwest::multipart::Form::new()
        .part("file", file)
        .text("name", "Lease")
        .text("fields_json", "[]");
    let at_api = format!("{}/api/v2/partner/templates", exports["HOLDFAST_URL"]);
    let made = client()
        .post(at_api)
        .header("x-api-key", &exports["HOLDFAST_LIVE_KEY"]);
    data(made.multipart(form)).await;

    let line = dev.hears("far end: POST /templates -> 201");
    assert!(line.contains("(create-template)"), "{line}");

    // A service that behaves otherwise is found before the swap.
    fs::write(at("far-end.json"), script.replace("\"t-1\"", "\"t-9\"")).unwrap();
    dev.hears("not activated");

    dev.end();
}
