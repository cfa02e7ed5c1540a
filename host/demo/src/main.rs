//! `make demo`: one document, from template to verified release, over the
//! public API of a server started for the purpose.
//!
//! `demo [--serve] [--sale] [PDF]`: without a PDF, the retail installment contract of the
//! test fixtures; with `--sale` it is sold before its release; with `--serve` the server keeps
//! running at the end.

mod sale;
mod samples;

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::multipart;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const FIXTURE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/fixtures/retail-installment-contract.pdf"
);

#[tokio::main]
async fn main() -> Result<()> {
    // The call fails only if a provider is installed already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let keep = arguments.iter().any(|argument| argument == "--serve");
    let sale = arguments.iter().any(|argument| argument == "--sale");
    arguments.retain(|argument| !argument.starts_with("--") && !argument.is_empty());
    let pdf = PathBuf::from(arguments.first().map_or(FIXTURE, String::as_str));
    let own = !arguments.is_empty();

    let data = tempfile::tempdir()?;
    let mut server = DemoServer::start(data.path())?;
    let mut steps = StepPrinter { number: 0 };
    let demo = DemoPartner::set_up(&server, &mut steps)?;
    let id = demo.walk(&mut steps, &pdf, own).await?;
    // The sale ends with a release, and `end` repeats it. The repeat has the same form, so it returns fresh
    // links.
    if sale {
        demo.sell(&server, &mut steps, &id, &release_form()).await?;
    }

    demo.end(&mut steps, &id, data.path()).await?;

    println!();
    println!("Where to look next");
    println!("  readiness         {}/readyz", server.url);
    println!("  the API           {}/docs", server.url);
    println!("  settings, map     docs/configuration.md, ARCHITECTURE.md");

    if keep {
        println!("  for curl, the clients and the guides, with test data:");
        println!(
            "                    export HOLDFAST_URL={} HOLDFAST_API_KEY={}",
            server.url,
            demo.test_key(&server)?
        );
        println!("  for contracts that are released or sold, and for users of the organization:");
        println!("                    export HOLDFAST_LIVE_KEY={}", demo.key);
        println!(
            "                    export HOLDFAST_ORG={} HOLDFAST_TOKEN={}",
            demo.org,
            demo.owner_token(&server)?
        );

        let waiting = demo.samples(&mut server, &pdf).await?;
        println!("  the console, as owner of the organization (the link works once):");
        println!("                    {}", demo.owner_link(&server)?);

        println!("  a contract that waits for your signature, beside samples in other states:");
        println!("                    {waiting}");
        println!();
        println!(
            "The server keeps running at {}. Stop it with Ctrl-C.",
            server.url
        );

        // Ctrl-C reaches the server too, because both processes share the terminal's group.
        server.child.wait()?;
    }

    Ok(())
}

/// Prints numbered steps.
struct StepPrinter {
    number: u32,
}

impl StepPrinter {
    fn step(&mut self, text: &str) {
        self.number += 1;
        println!("{:>2}. {text}", self.number);
    }

    fn fact(&self, name: &str, value: impl std::fmt::Display) {
        println!("      {name:<18} {value}");
    }
}

/// A server of its own, ended with the demo.
struct DemoServer {
    child: Child,
    address: String,
    url: String,
    data: PathBuf,
}

impl DemoServer {
    fn start(data: &Path) -> Result<Self> {
        // The system names a free port, and the listener closes at once. The server binds that port a moment
        // later.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let started = Instant::now();
        let child = Self::run(data, &address, &[])?;
        let url = format!("http://{address}");
        println!(
            "The server listens at {url} ({} ms after its start)",
            started.elapsed().as_millis()
        );

        Ok(Self {
            child,
            address,
            url,
            data: data.into(),
        })
    }

    /// Ends the server and starts it with further settings.
    fn restart(&mut self, settings: &[(&str, &str)]) -> Result<()> {
        // Only a finished process has let go of the database and the port, which the next one takes.
        self.child.kill()?;
        self.child.wait()?;
        self.child = Self::run(&self.data, &self.address, settings)?;
        Ok(())
    }

    /// Starts the program, and waits until it listens.
    fn run(data: &Path, address: &str, settings: &[(&str, &str)]) -> Result<Child> {
        let mut child = Self::program(data)
            .env("HOLDFAST_LISTEN", address)
            .envs(settings.iter().copied())
            .arg("serve")
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().ok_or("the server has a log")?;
        let mut lines = BufReader::new(stderr).lines();

        // The lines are kept for the error: a server that does not start explains the reason there.
        let mut seen = Vec::new();
        loop {
            let Some(line) = lines.next().transpose()? else {
                return Err(format!("the server did not start:\n{}", seen.join("\n")).into());
            };
            if line.contains("listening on") {
                break;
            }

            seen.push(line);
        }

        // Without a reader, the pipe would fill up and the server would block on its next log line.
        let log = data.join("server.log");
        std::thread::spawn(move || {
            use std::io::Write as _;

            let mut file = std::fs::File::options()
                .create(true)
                .append(true)
                .open(log)
                .ok();
            for line in lines.map_while(std::result::Result::ok) {
                if let Some(file) = &mut file {
                    let _ = writeln!(file, "{line}");
                }
            }
        });

        Ok(child)
    }

    /// The `holdfast` binary beside this one.
    fn program(data: &Path) -> Command {
        let own = std::env::current_exe().unwrap_or_default();
        let mut command = Command::new(own.with_file_name("holdfast"));
        command.env("HOLDFAST_DATA_DIR", data);
        command
    }

    fn operator(&self, arguments: &[&str]) -> Result<Value> {
        let output = Self::program(&self.data)
            .arg("--json")
            .args(arguments)
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

impl Drop for DemoServer {
    fn drop(&mut self) {
        // A server that has ended already is no error. Without `wait`, it would stay as a zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct DemoPartner {
    http: reqwest::Client,
    api: String,
    key: String,
    /// Its organization.
    org: String,
}

/// Returns what the box for the consent sends: the SHA-256 of the text above the document.
fn tick_of(form: &str) -> Result<String> {
    let control = form.split("name=\"consent\" value=\"").nth(1);
    let value = control.and_then(|rest| rest.split('"').next());
    Ok(value.ok_or("the form has no consent")?.to_owned())
}

impl DemoPartner {
    fn set_up(server: &DemoServer, steps: &mut StepPrinter) -> Result<Self> {
        steps.step("Create an organization and an API key");
        let org = server.operator(&["org", "create", "--name", "Pinecrest Auto Center"])?;
        let org_id = text(&org, "org_id")?;
        let scopes = "envelopes:read,envelopes:write,vault:read,vault:write,vault:release,\
                      compliance:read,control:write,webhooks:listen";
        steps.fact("organization", &org_id);
        Self::with_key(server, &org_id, scopes, "vault@pinecrest.example")
    }

    /// Creates a key of an organization.
    fn with_key(server: &DemoServer, org: &str, scopes: &str, owner: &str) -> Result<Self> {
        let create = ["key", "create", "--org", org, "--scopes", scopes];
        let key = server.operator(&[&create[..], &["--owner-email", owner]].concat())?;
        Ok(Self {
            // A proxy of the environment does not reach this machine's loopback address.
            http: reqwest::Client::builder().no_proxy().build()?,
            api: format!("{}/api/v2", server.url),
            key: text(&key, "api_key")?,
            org: org.to_owned(),
        })
    }

    /// Creates a key for test data.
    fn test_key(&self, server: &DemoServer) -> Result<String> {
        // Test data is never released, so the key has no scope for a release.
        let scopes = "envelopes:read,envelopes:write,vault:read,vault:write,compliance:read,\
                      webhooks:listen";
        let create = [
            "key", "create", "--org", &self.org, "--scopes", scopes, "--test",
        ];
        text(&server.operator(&create)?, "api_key")
    }

    /// Issues a bearer token of an owner.
    fn owner_token(&self, server: &DemoServer) -> Result<String> {
        let issue = ["token", "issue", "--org", &self.org, "--role", "owner"];
        let owner = ["--email", "owner@pinecrest.example"];
        text(&server.operator(&[&issue[..], &owner].concat())?, "token")
    }

    /// Invites an owner of the organization. Returns the link to sign in to the console.
    fn owner_link(&self, server: &DemoServer) -> Result<String> {
        let invite = ["user", "invite", "--org", &self.org, "--role", "owner"];
        let owner = ["--email", "owner@pinecrest.example"];
        let invited = server.operator(&[&invite[..], &owner].concat())?;
        let link = text(&invited, "url")?;
        // The command does not know the port that the server chose.
        let path = link.find("/console/").ok_or("a link of the console")?;
        Ok(format!("{}{}", server.url, &link[path..]))
    }

    /// Takes a document from template to vault. Returns the id of its envelope.
    async fn walk(&self, steps: &mut StepPrinter, pdf: &Path, own: bool) -> Result<String> {
        let document = std::fs::read(pdf)?;
        steps.step(&format!("Make a template from {}", pdf.display()));
        let fields = fields(own);
        let template = self.template(document, &fields).await?;
        let template_id = text(&template, "template_id")?;
        steps.fact("template", &template_id);

        for field in template["fields"].as_array().ok_or("fields")? {
            let area = &field["areas"][0];
            // Only a field that was placed by an anchor reports where its text stands.
            let how = if field["anchor_match"].is_null() {
                "coordinates"
            } else {
                "anchor"
            };
            let place = format!(
                "{} by {how}: page {} at x {:.3}, y {:.3}",
                field["type"].as_str().unwrap_or_default(),
                area["page"],
                area["x"].as_f64().unwrap_or_default(),
                area["y"].as_f64().unwrap_or_default()
            );

            steps.fact(field["name"].as_str().unwrap_or_default(), place);
        }

        steps.step("Create an envelope: it is sent at once");
        let envelope = self.envelope(&template_id).await?;
        let id = text(&envelope, "envelope_id")?;
        let sign_url = text(&envelope, "sign_url")?;
        steps.fact("envelope", &id);
        steps.fact("status", text(&envelope, "status")?);
        steps.fact("sign at", &sign_url);

        steps.step("Sign it through the HTML form, as the buyer's browser would");
        self.sign(steps, &sign_url, &fields).await?;

        // Vaulting runs as a job after the last signature, so the demo has to wait for it.
        steps.step("The worker vaults it without being asked");
        let status = self.wait_until(&id, "vaulted").await?;
        steps.fact("status", text(&status, "status")?);
        steps.fact("signed at", text(&status, "signed_at")?);

        steps.step("Ask for compliance");
        let compliance = self
            .get(&format!("/partner/envelopes/{id}/compliance"))
            .await?;
        let compliance = &compliance["compliance"];
        steps.fact("score", &compliance["score"]);

        for check in compliance["checks"].as_array().ok_or("checks")? {
            let mark = if check["satisfied"] == true {
                "ok"
            } else {
                "NO"
            };
            steps.fact(mark, check["requirement"].as_str().unwrap_or_default());
        }

        // The envelope above has every fact that the checks ask for, so a lower score is a defect.
        if compliance["score"] != 100 {
            return Err("the envelope is not compliant".into());
        }

        steps.step("Read the certificate");
        let certificate = self
            .get(&format!("/partner/envelopes/{id}/vault/certificate"))
            .await?;
        steps.fact("type", text(&certificate, "certificate_type")?);
        steps.fact(
            "document hash",
            text(&certificate["document_integrity"], "document_hash")?,
        );

        steps.fact("issued at", text(&certificate, "issued_at")?);

        steps.step("Download the authoritative copy by its single-use link");
        let link = self
            .get(&format!("/partner/envelopes/{id}/vault/signed-url"))
            .await?;
        let url = text(&link, "signed_url")?;
        let first = self.http.get(&url).send().await?;
        steps.fact("first use", first.status());

        steps.fact("bytes", first.bytes().await?.len());
        let second = self.http.get(&url).send().await?;
        steps.fact("second use", second.status());
        // 410 and not 404: the link existed and is used up.
        if second.status() != 410 {
            return Err("a single-use link worked twice".into());
        }

        Ok(id)
    }

    /// Releases the record and verifies it.
    async fn end(&self, steps: &mut StepPrinter, id: &str, work: &Path) -> Result<()> {
        steps.step("Release it: the authoritative copy leaves the vault for good");
        let bundle = work.join("bundle");
        self.release(id, &bundle).await?;
        let status = self.get(&format!("/partner/envelopes/{id}/status")).await?;
        steps.fact("status", text(&status, "status")?);

        for file in std::fs::read_dir(&bundle)? {
            let file = file?;
            steps.fact(
                &format!("{} bytes", file.metadata()?.len()),
                file.file_name().to_string_lossy(),
            );
        }

        steps.step("Verify the bundle offline");
        // A bundle proves nothing by itself. The reader needs the log's key from another source.
        let key = text(&self.get("/ledger/head").await?, "public_key")?;
        let report = verify(&bundle, &key)?;
        print_report(&report);

        if !report.0 {
            return Err("the bundle does not verify".into());
        }

        steps.step("Flip one bit in a copy of the bundle and verify that");
        let changed = work.join("changed-bundle");
        flip_one_bit(&bundle, &changed)?;
        let report = verify(&changed, &key)?;
        print_report(&report);

        // A verifier that calls everything valid would pass the step before.
        if report.0 {
            return Err("a changed bundle was called valid".into());
        }

        Ok(())
    }

    async fn template(&self, document: Vec<u8>, fields: &Value) -> Result<Value> {
        let file = multipart::Part::bytes(document)
            .file_name("contract.pdf")
            .mime_str("application/pdf")?;
        let form = multipart::Form::new()
            .part("file", file)
            .text("name", "Retail installment contract")
            .text("fields_json", fields.to_string());
        let request = self
            .http
            .post(format!("{}/partner/templates", self.api))
            .multipart(form);

        self.send(request).await
    }

    async fn envelope(&self, template_id: &str) -> Result<Value> {
        self.post(
            "/partner/envelopes",
            &json!({
                "envelope_name": "Retail installment contract RIC-2026-004187",
                "customer_email": "jordan.ellery@example.com",
                "customer_name": "Jordan A. Ellery",
                "template_id": template_id,
                "secured_party": { "name": "Crescent Auto Finance, LLC", "role": "assignee" },
            }),
        )
        .await
    }

    /// Opens the form, looks at the first page, fills in every field and presses `finish`.
    async fn sign(&self, steps: &StepPrinter, url: &str, fields: &Value) -> Result<()> {
        let form = self.http.get(url).send().await?.error_for_status()?;
        // The server accepts only the digest of a text that this signer's page has shown.
        let consent = tick_of(&form.text().await?)?;
        steps.fact("consent to the text with SHA-256", &consent);

        let mut values = vec![("consent", consent.as_str()), ("action", "finish")];
        for field in fields.as_array().ok_or("fields")? {
            let value = match field["type"].as_str() {
                Some("date") => "2026-11-21",
                _ => "Jordan A. Ellery",
            };
            let name = field["name"].as_str().ok_or("name")?;
            steps.fact(name, value);
            values.push((name, value));
        }

        // The evidence states which pages were delivered before the signature, so the page is fetched first.
        let image = self
            .http
            .get(format!("{url}/pages/1.png"))
            .send()
            .await?
            .error_for_status()?;
        steps.fact(
            "page image",
            format!("{} bytes of PNG", image.bytes().await?.len()),
        );

        let answer = self.http.post(url).form(&values).send().await?;
        steps.fact("finish", answer.status());
        answer.error_for_status()?;

        Ok(())
    }

    async fn wait_until(&self, id: &str, status: &str) -> Result<Value> {
        // The first vault-in may wait until the document components are loaded.
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let now = self.get(&format!("/partner/envelopes/{id}/status")).await?;
            if now["status"] == status {
                return Ok(now);
            }
            if Instant::now() > deadline {
                return Err(format!("still {} after a minute", now["status"]).into());
            }

            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn release(&self, id: &str, folder: &Path) -> Result<()> {
        let release = self
            .post(
                &format!("/partner/envelopes/{id}/vault-out"),
                &release_form(),
            )
            .await?;
        std::fs::create_dir_all(folder)?;

        // Each link works for one complete download only, so every file is saved at once.
        for file in [
            "authoritative",
            "certified_vaulted_copy",
            "compliance_certificate",
            "vault_custody_record",
        ] {
            let url = text(&release, &format!("{file}_signed_url"))?;
            let name = text(&release, &format!("{file}_filename"))?;
            let bytes = self
                .http
                .get(url)
                .send()
                .await?
                .error_for_status()?
                .bytes()
                .await?;

            std::fs::write(folder.join(name), bytes)?;
        }

        // The release has four files. The verifier also needs the ledger with its proofs, which has its own
        // operation.
        let ledger = self
            .get(&format!("/partner/envelopes/{id}/custody"))
            .await?;
        std::fs::write(
            folder.join("custody-ledger.json"),
            serde_json::to_vec_pretty(&ledger)?,
        )?;

        Ok(())
    }

    async fn get(&self, path: &str) -> Result<Value> {
        self.send(self.http.get(format!("{}{path}", self.api)))
            .await
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let request = self.http.post(format!("{}{path}", self.api));
        self.send(
            request
                .header("content-type", "application/json")
                .body(body.to_string()),
        )
        .await
    }

    /// Returns status and body of the answer to a request that may be refused.
    async fn answer_to(&self, path: &str, body: &Value) -> Result<(u16, Value)> {
        let request = self.http.post(format!("{}{path}", self.api));
        let request = request
            .header("content-type", "application/json")
            .header("x-api-key", &self.key);
        let answer = request.body(body.to_string()).send().await?;
        let status = answer.status().as_u16();
        Ok((status, serde_json::from_str(&answer.text().await?)?))
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Value> {
        let answer = request.header("x-api-key", &self.key).send().await?;
        let status = answer.status();
        let body = answer.text().await?;
        if !status.is_success() {
            return Err(format!("{status}: {body}").into());
        }
        let mut body: Value = serde_json::from_str(&body)?;
        Ok(body["data"].take())
    }
}

fn release_form() -> Value {
    json!({
        "recipient_name": "Robin Park",
        "recipient_organization": "Crescent Auto Finance, LLC",
        "recipient_email": "robin.park@crescent.example",
        "purpose_of_release": "Assignment of the contract",
        "acknowledge_authoritative_copy": true,
        "acknowledge_chain_of_custody": true,
        "authorized_signature": "Casey Pine",
    })
}

/// Fields of the buyer: on the fixture one by an anchor and one by coordinates, on any other
/// document one on its first page.
fn fields(own: bool) -> Value {
    if own {
        return json!([signature_on_first_page()]);
    }

    json!([
        {
            "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
            "placement": {
                "mode": "anchor", "anchor_text": "Buyer signature:",
                "offset_y": -0.042, "w": 0.45, "h": 0.033,
            },
        },
        {
            "name": "Signed on", "type": "date", "role": "Buyer", "required": true,
            "placement": { "mode": "absolute", "areas": [{ "page": 4, "x": 0.675, "y": 0.268, "w": 0.2, "h": 0.025 }] },
        },
    ])
}

fn signature_on_first_page() -> Value {
    json!({
        "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.85, "w": 0.3, "h": 0.04 }] },
    })
}

/// Runs `holdfast verify` on a folder, for a reader who knows the log's key: whether
/// it is valid, and the report.
fn verify(bundle: &Path, key: &str) -> Result<(bool, String)> {
    // The verifier runs with an empty data folder, to show that it needs nothing of the installation.
    let empty = tempfile::tempdir()?;
    let output = DemoServer::program(empty.path())
        .arg("verify")
        .arg(bundle)
        .args(["--key", key])
        .output()?;
    Ok((output.status.success(), String::from_utf8(output.stdout)?))
}

fn print_report(report: &(bool, String)) {
    for line in report.1.lines() {
        println!("      {line}");
    }
}

fn flip_one_bit(bundle: &Path, changed: &Path) -> Result<()> {
    std::fs::create_dir_all(changed)?;
    for file in std::fs::read_dir(bundle)? {
        let file = file?;
        let mut bytes = std::fs::read(file.path())?;
        // The other files stay intact, so the report has to name exactly this one.
        if file.file_name() == "authoritative.pdf" {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }

        std::fs::write(changed.join(file.file_name()), bytes)?;
    }

    Ok(())
}

fn text(value: &Value, key: &str) -> Result<String> {
    value[key]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("no {key} in {value}").into())
}
