//! A server that is killed in the middle of its work finishes it after a restart.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::multipart;
use serde_json::{Value, json};

use crate::operator::holdfast;
use crate::support::{CONTRACT, envelope_body, files_below, form, share_native_code};

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(data: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut child = Command::new(env!("CARGO_BIN_EXE_holdfast"))
            .env("HOLDFAST_DATA_DIR", data)
            .env("HOLDFAST_LISTEN", format!("127.0.0.1:{port}"))
            .arg("serve")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        while !lines
            .next()
            .expect("the server starts")
            .unwrap()
            .contains("listening on")
        {}
        // A full pipe would stop the server.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            url: format!("http://127.0.0.1:{port}"),
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_vaults_each_signed_envelope_exactly_once_after_restart() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let data = tempfile::tempdir().unwrap();
    share_native_code(data.path());
    let operator = |arguments: &[&str]| -> Value {
        let output = holdfast(data.path(), &[&["--json"], arguments].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let org = operator(&["org", "create", "--name", "Maple"]);
    let scopes = "envelopes:read,envelopes:write,compliance:read";
    let key = operator(&[
        "key",
        "create",
        "--org",
        org["org_id"].as_str().unwrap(),
        "--scopes",
        scopes,
    ]);
    let client = Client {
        http: reqwest::Client::new(),
        key: key["api_key"].as_str().unwrap().into(),
    };

    let mut server = Server::start(data.path());
    let template = client.template(&server.url).await;
    let mut envelopes = Vec::new();
    for wait in [0, 30, 80, 150, 300] {
        let envelope = client
            .post(&server.url, "/partner/envelopes", &envelope_body(&template))
            .await;
        client.sign(envelope["sign_url"].as_str().unwrap()).await;
        envelopes.push(envelope["envelope_id"].as_str().unwrap().to_owned());
        tokio::time::sleep(Duration::from_millis(wait)).await;
        server.kill();
        server = Server::start(data.path());
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    for id in &envelopes {
        loop {
            let status = client
                .get(&server.url, &format!("/partner/envelopes/{id}/status"))
                .await;
            if status["status"] == "vaulted" {
                break;
            }
            assert!(Instant::now() < deadline, "{id} is still {status}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let ledger = client
            .get(&server.url, &format!("/partner/envelopes/{id}/custody"))
            .await;
        let actions: Vec<&str> = ledger["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["action"].as_str().unwrap())
            .collect();
        assert_eq!(
            actions
                .iter()
                .filter(|action| **action == "vault.stored")
                .count(),
            1
        );
        assert_eq!(
            actions
                .iter()
                .filter(|action| **action == "envelope.completed")
                .count(),
            1
        );
    }
    // Certificates and custody records lie together.
    for (area, files) in [("vault", 1), ("copies", 1), ("certificates", 2)] {
        let mut objects = files_below(&data.path().join("objects").join(area));
        // A write that was cut off leaves a staged file that nothing points to.
        objects.retain(|path| path.file_name().is_some_and(|name| name.len() == 64));
        assert_eq!(objects.len(), files * envelopes.len(), "{area}");
    }
    server.kill();
}

struct Client {
    http: reqwest::Client,
    key: String,
}

impl Client {
    async fn template(&self, url: &str) -> Value {
        let fields = json!([{
            "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
            "placement": { "mode": "anchor", "anchor_text": "Buyer signature:", "w": 0.3, "h": 0.03 },
        }]);
        let file = multipart::Part::bytes(CONTRACT)
            .file_name("c.pdf")
            .mime_str("application/pdf")
            .unwrap();
        let form = multipart::Form::new()
            .part("file", file)
            .text("name", "Contract")
            .text("fields_json", fields.to_string());
        let request = self
            .http
            .post(format!("{url}/api/v2/partner/templates"))
            .multipart(form);
        self.send(request).await["template_id"].clone()
    }

    async fn sign(&self, url: &str) {
        let page = self
            .http
            .get(url)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        let mut values = form::filled(&page);
        values.push(("action".into(), "finish".into()));
        let answer = self.http.post(url).form(&values).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }

    async fn get(&self, url: &str, path: &str) -> Value {
        self.send(self.http.get(format!("{url}/api/v2{path}")))
            .await
    }

    async fn post(&self, url: &str, path: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{url}/api/v2{path}"));
        self.send(
            request
                .header("content-type", "application/json")
                .body(body.to_string()),
        )
        .await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Value {
        let answer = request.header("x-api-key", &self.key).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{status}: {text}");
        serde_json::from_str::<Value>(&text).unwrap()["data"].take()
    }
}
