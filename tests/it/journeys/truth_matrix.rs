//! Records of every kind, and everything that is printed about them. `tests/truth.py`, which knows
//! nothing of the product, compares each output with the record's ledger.
//!
//! | Kind | Record |
//! |---|---|
//! | esign, template | `template` |
//! | package, transferred, its tape | `package-transferred` |
//! | shared address, delegated | `shared-delegated` |
//! | corrected signer | `corrected` |
//! | no signature field, released | `no-signature`, `no-signature-released` |
//! | released, pledged | `released`, `pledged` |
//! | converted | `converted`, `paper-converted` |
//! | paper, paper with a statement | `paper`, `paper-stated`, `paper-converted`, `paper-pledged` |
//! | rewritten, signed upload | `rewritten`, `signed-upload` |
//! | KBA, payment | `kba`, `kba-released`, `payment` (in the sandbox) |
//! | bulk | `bulk` |
//! | test, test with KBA | `test`, `test-kba` |
//! | other rules, time stamp | `rules-released`, `stamped`, `stamped-released` |
//!
//! Outputs of each record: certificate, live evaluation, envelope, signers, events, report of the
//! verifier, files of the bundle of a released one, custody record, certificate of completion, page of
//! the certificate's address, page after each signer's part, mails, the parties' view of control.

use std::io::{Cursor, Read as _};
use std::path::Path;

use axum::body::Body;
use axum::http::{Method, Request};
use holdfast::config::Config;
use holdfast::domain::component::Slot;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::sealing::existing::sealed_elsewhere;
use crate::sealing::seals::{paper, vault_in};
use crate::service::bulk;
use crate::service::control::{Party, vault_out};
use crate::support::authority::{AuthorityBehaviour, FakeTimestampAuthority};
use crate::support::{
    CONTRACT, TestApp, envelope_body, form, operator_output, pdf, release_form, verifier_output,
    verifier_text,
};

/// Signature of a buyer, remark of a co-buyer, signature of a co-signer.
const THREE: [&str; 3] = [
    "{{First;type=signature;role=Buyer;required=true}}",
    "{{Remark;type=text;role=Co-buyer}}",
    "{{Third;type=signature;role=Co-signer;required=true}}",
];
const TWO: [&str; 2] = [
    "{{First;type=signature;role=Buyer;required=true}}",
    "{{Second;type=signature;role=Co-buyer;required=true}}",
];
const ONE: [&str; 1] = ["{{First;type=signature;role=Buyer;required=true}}"];

/// A service and the folder with the outputs of its records.
struct Matrix {
    app: TestApp,
    folder: TempDir,
    records: Vec<String>,
}

impl Matrix {
    async fn start() -> Self {
        Self::over(TestApp::start().await).await
    }

    async fn over(app: TestApp) -> Self {
        // A record is read often.
        app.execute("update api_key set rate_limit_rpm = 100000")
            .await;
        Self {
            app,
            folder: tempfile::tempdir().unwrap(),
            records: Vec::new(),
        }
    }

    /// Sends a document with these lines and returns the envelope's id.
    async fn sent(&self, lines: &[&str], signers: Value, more: Value) -> String {
        let document = pdf::with_lines(lines);
        let texts = [("name", "Truth")];
        let template = self
            .app
            .upload("/partner/templates", "application/pdf", &document, &texts)
            .await
            .data(200);
        let mut body = envelope_body(&template["template_id"]);
        body["signers"] = signers;

        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }

        let sent = self.app.post("/partner/envelopes", body).await.data(201);
        text(&sent, "envelope_id")
    }

    async fn signers(&self, id: &str) -> Vec<Value> {
        let path = format!("/partner/envelopes/{id}/signers");
        let signers = self.app.get(&path).await.data(200);
        signers["signers"].as_array().unwrap().clone()
    }

    async fn links(&self, id: &str) -> Vec<String> {
        let path = format!("/partner/envelopes/{id}/signing-links");
        let links = self.app.get(&path).await.data(200);
        let signers = links["signers"].as_array().unwrap().iter();
        signers.map(|signer| text(signer, "embed_url")).collect()
    }

    /// Signs for all signers, and waits for the vault.
    async fn signed(&self, record: &str, id: &str) {
        self.completed(record, id).await;
        self.app.wait_for(id, "vaulted").await;
    }

    /// Signs for all signers in turn, and keeps the page after each part.
    async fn completed(&self, record: &str, id: &str) {
        let signers = self.signers(id).await;
        for (signer, url) in signers.iter().zip(self.links(id).await) {
            let page = form::open(&self.app, &url).await;
            assert_eq!(page.status, 200, "{}", page.text());

            let after = form::press(&self.app, &url, "finish", &form::filled(&page.text())).await;
            assert_eq!(after.status, 200, "{}", after.text());

            let name = format!("finished-{}.html", text(signer, "signer_id"));
            self.write(record, &name, &after.bytes);

            // Persons who sign at different seconds have different printed times.
            tokio::time::sleep(std::time::Duration::from_millis(1_050)).await;
        }
    }

    fn write(&self, record: &str, name: &str, bytes: &[u8]) {
        let folder = self.folder.path().join(record);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), bytes).unwrap();
    }

    async fn json(&self, record: &str, name: &str, path: &str) -> Value {
        let value = self.app.get(path).await.data(200);
        self.write(record, name, value.to_string().as_bytes());
        value
    }

    /// Releases a record to the bank and fetches the released file.
    async fn released(&self, id: &str) {
        let links = vault_out(&self.app, id, release_form()).await.data(200);
        let link = text(&links, "authoritative_signed_url");
        assert_eq!(self.app.get(&link).await.status, 200);
        self.app
            .wait_for_entry(id, "authoritative.downloaded")
            .await;
    }

    async fn converted(&self, id: &str) {
        let mut form = release_form();
        form["medium"] = "paper".into();
        let links = vault_out(&self.app, id, form).await.data(200);
        let link = text(&links, "authoritative_signed_url");
        assert_eq!(self.app.get(&link).await.status, 200);
        self.app
            .wait_for_entry(id, "paper_original.downloaded")
            .await;
    }

    /// Lets a lender take control.
    async fn controlled(&self, id: &str) -> Party {
        let lender = Party::new(&self.app).await;
        let path = format!("/partner/control/records/{id}/designate");
        let body = json!({ "controller": lender.org });
        self.app.post(&path, body).await.data(200);
        let accept = lender.act(&self.app, id, "accept", json!({})).await;
        accept.data(200);
        self.app.wait_for_entry(id, "compliance.certified").await;
        lender
    }

    /// Lets a lender take control, and pledge the record.
    async fn pledged(&self, id: &str) {
        let lender = self.controlled(id).await;
        let pledgee = Party::new(&self.app).await;
        let pledge = json!({ "envelope_id": id, "pledgee": pledgee.org, "terms": "Line 12" });
        let path = "/partner/control/pledges";
        let pledge = self.app.post_as(&lender.key, path, pledge).await;
        pledge.data(201);
    }

    /// Collects every output about a record. The ledger is read last, so it has all of them.
    async fn collect(&mut self, record: &str, id: &str) {
        let path = format!("/partner/envelopes/{id}");
        let released = self.app.get(&path).await.data(200)["status"] == "vaulted_out";
        if released {
            let bundle = self.app.get(&format!("{path}/bundle")).await;
            assert_eq!(bundle.status, 200, "{}", bundle.text());
            self.verified(record, &bundle.bytes).await;
        } else {
            let bundle = self.app.get(&format!("{path}/bundle")).await;
            assert_eq!(bundle.status, 409, "{}", bundle.text());
            self.verified_here(record, id).await;
        }

        let view = format!("/partner/control/records/{id}");
        let view = self.app.get(&view).await;
        if view.status == 200 {
            let view = view.data(200).to_string();
            self.write(record, "control.json", view.as_bytes());
        }

        self.json(record, "envelope.json", &path).await;
        for (name, part) in [
            ("certificate.json", "vault/certificate"),
            ("compliance.json", "compliance"),
            ("signers.json", "signers"),
        ] {
            self.json(record, name, &format!("{path}/{part}")).await;
        }

        let sheet = self.app.get(&format!("{path}/custody-record")).await;
        assert_eq!(sheet.status, 200, "{}", sheet.text());

        self.write(record, "custody-record.pdf", &sheet.bytes);

        let completion = format!("{path}/completion-certificate");
        let completion = self.app.get(&completion).await;
        if completion.status == 200 {
            self.write(record, "completion-certificate.pdf", &completion.bytes);
            let address = pdf::text(&completion.bytes);
            let mut words = address.split_whitespace();
            if let Some(address) = words.find(|word| word.contains("/verify/")) {
                let path = &address[address.find("/verify/").unwrap()..];
                let request = Request::get(path).body(Body::empty()).unwrap();
                let page = self.app.send(request).await;
                assert_eq!(page.status, 200, "{}", page.text());
                self.write(record, "verify.html", &page.bytes);
            }
        }

        let events = json!(self.app.events(id).await);
        self.write(record, "events.json", events.to_string().as_bytes());
        let mails: Vec<String> = crate::support::files_below(&self.app.data.path().join("outbox"))
            .iter()
            .filter_map(|mail| std::fs::read_to_string(mail).ok())
            .filter(|mail| mail.replace("=\r\n", "").contains(id))
            .collect();
        let mails = json!(mails).to_string();
        self.write(record, "mails.json", mails.as_bytes());

        self.json(record, "ledger.json", &format!("{path}/custody"))
            .await;
        self.records.push(record.to_owned());
    }

    /// Keeps the digests of a bundle's files and the reports of the verifier.
    async fn verified(&self, record: &str, bundle: &[u8]) {
        let mut zip = zip::ZipArchive::new(Cursor::new(bundle)).unwrap();
        let mut files = serde_json::Map::new();
        for index in 0..zip.len() {
            let mut file = zip.by_index(index).unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            let digest = hex::encode(Sha256::digest(&bytes));
            files.insert(file.name().to_owned(), digest.into());
        }

        let files = Value::Object(files).to_string();
        self.write(record, "bundle.json", files.as_bytes());

        self.write(record, "bundle.zip", bundle);
        let zip = self.folder.path().join(record).join("bundle.zip");
        let zip = zip.to_str().unwrap().to_owned();
        let run = move || (verifier_output(&zip, &[]), verifier_text(&zip, &[]));
        let (report, words) = tokio::task::spawn_blocking(run).await.unwrap();
        self.write(record, "verify-report.json", &report.stdout);

        self.write(record, "verify-report.txt", &words.stdout);
    }

    /// Keeps the report of the installation on a record that it has.
    async fn verified_here(&self, record: &str, id: &str) {
        let (data, id) = (self.app.data.path().to_owned(), id.to_owned());
        let run = move || operator_output(&data, &["verify", &id]);
        let report = tokio::task::spawn_blocking(run).await.unwrap();
        self.write(record, "verify-report.json", &report.stdout);
    }

    /// Fails with every contradiction that the checker finds.
    fn told_truly(&self) {
        let found = contradictions(self.folder.path(), &self.records);
        assert!(found.is_empty(), "{}", readable(&found));
    }
}

fn text(value: &Value, member: &str) -> String {
    value[member]
        .as_str()
        .unwrap_or_else(|| panic!("no {member}: {value}"))
        .to_owned()
}

fn person(name: &str, email: &str, role: &str) -> Value {
    json!({ "name": name, "email": email, "role": role })
}

fn three() -> Value {
    json!([
        person("Ann Lee", "ann@example.com", "Buyer"),
        person("Bob Oak", "bob@example.com", "Co-buyer"),
        person("Cy Elm", "cy@example.com", "Co-signer"),
    ])
}

/// Runs the checker over the folders of records.
fn contradictions(folder: &Path, records: &[String]) -> Vec<Value> {
    let output = std::process::Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/truth.py"))
        .args(records.iter().map(|record| folder.join(record)))
        .output()
        .expect("python3 is missing");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn readable(found: &[Value]) -> String {
    let lines = found.iter().map(|one| format!("{one}\n"));
    lines.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_about_people_say_what_the_ledger_says() {
    let mut matrix = Matrix::start().await;
    let one = || json!([person("Ann Lee", "ann@example.com", "Buyer")]);
    let id = matrix.sent(&ONE, one(), json!({})).await;
    matrix.signed("template", &id).await;
    matrix.collect("template", &id).await;

    let id = matrix.sent(&THREE, three(), json!({})).await;
    matrix.signed("no-signature", &id).await;
    matrix.collect("no-signature", &id).await;

    let spouses = json!([
        person("Ann Lee", "home@example.com", "Buyer"),
        person("Bob Lee", "Home@example.com", "Co-buyer"),
    ]);
    let delegable = json!({ "allow_delegation": true });
    let id = matrix.sent(&TWO, spouses, delegable).await;
    let url = &matrix.links(&id).await[1];

    let another = [
        ("delegate-name".to_owned(), "Sam Elm".to_owned()),
        ("delegate-email".to_owned(), "sam@example.com".to_owned()),
    ];
    form::open(&matrix.app, url).await;
    let passed = form::press(&matrix.app, url, "delegate", &another).await;
    assert_eq!(passed.status, 200, "{}", passed.text());

    matrix.signed("shared-delegated", &id).await;
    matrix.collect("shared-delegated", &id).await;

    let id = matrix.sent(&ONE, one(), json!({})).await;
    form::open(&matrix.app, &matrix.links(&id).await[0]).await;
    let path = format!("/partner/envelopes/{id}/signers/Buyer");
    let change =
        json!({ "email": "sam@example.com", "name": "Sam Elm", "reason": "Ann is abroad" });
    matrix.app.patch(&path, change).await.data(200);
    matrix.signed("corrected", &id).await;

    matrix.collect("corrected", &id).await;
    matrix.told_truly();
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_about_custody_say_what_the_ledger_says() {
    let mut matrix = Matrix::start().await;
    let id = matrix.sent(&THREE, three(), json!({})).await;
    matrix.signed("no-signature-released", &id).await;
    matrix.released(&id).await;
    matrix.collect("no-signature-released", &id).await;

    let id = matrix.app.vaulted_envelope().await;
    matrix.released(&id).await;
    matrix.collect("released", &id).await;

    let id = matrix.app.vaulted_envelope().await;
    matrix.converted(&id).await;
    matrix.collect("converted", &id).await;

    let id = matrix.app.vaulted_envelope().await;
    matrix.pledged(&id).await;
    matrix.collect("pledged", &id).await;

    matrix.told_truly();
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_about_a_transferred_package_say_what_the_ledger_says() {
    let mut matrix = Matrix::start().await;
    let app = &matrix.app;
    let mut templates = Vec::new();
    for name in ["One", "Two"] {
        let document = pdf::with_lines(&[name, ONE[0]]);
        let made = app.library_template(&[("name", name)], &document).await;
        templates.push(made.data(201)["template_id"].clone());
    }

    let body = json!({ "name": "Sale", "template_ids": templates });
    let package = app.web(Method::POST, "/document-packages", body).await;
    let package = package.data(201)["package_id"].clone();
    let mut body = envelope_body(&Value::Null);
    body.as_object_mut().unwrap().remove("template_id");
    let id = text(
        &app.post("/partner/envelopes", body).await.data(201),
        "envelope_id",
    );

    let body = json!({ "package_id": package, "package_template_ids": templates });
    let path = format!("/envelopes/{id}/send");
    app.web(Method::POST, &path, body).await.data(200);
    matrix.signed("package-transferred", &id).await;

    let seller = matrix.controlled(&id).await;
    let buyer = Party::new(&matrix.app).await;
    let app = &matrix.app;
    let offer = json!({ "records": [id], "buyer": buyer.org });
    let path = "/partner/control/transfers";
    let offer = app.post_as(&seller.key, path, offer).await.data(202);

    let path = format!("{path}/{}", text(&offer, "transfer_id"));
    for (party, step, state) in [
        (&buyer, "", "proposed"),
        (&buyer, "accept", "accepted"),
        (&seller, "confirm", "confirmed"),
    ] {
        if !step.is_empty() {
            let step = format!("{path}/{step}");
            app.post_as(&party.key, &step, json!({})).await.data(202);
        }

        let mut polls = 0;
        while app.get_as(&seller.key, &path).await.data(200)["state"] != state {
            polls += 1;
            assert!(polls < 500, "not {state}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    app.wait_until_idle().await;
    let tape = format!(
        "{}/tape?format=jsonl",
        path.replace("/transfers/", "/pools/")
    );
    let tape = app.get_as(&buyer.key, &tape).await;
    assert_eq!(tape.status, 200, "{}", tape.text());

    let tape = tape.text();
    let rows = tape
        .lines()
        .map(|row| serde_json::from_str::<Value>(row).unwrap());
    let rows = json!(rows.collect::<Vec<_>>());
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");

    matrix.write(
        "package-transferred",
        "tape.json",
        rows.to_string().as_bytes(),
    );
    matrix.collect("package-transferred", &id).await;

    matrix.told_truly();
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_about_uploads_say_what_the_ledger_says() {
    let mut matrix = Matrix::start().await;
    let signed = sealed_elsewhere(&matrix.app).await;
    let mut damaged = CONTRACT.to_vec();
    let at = damaged
        .windows(9)
        .rposition(|window| window == b"startxref");
    damaged.truncate(at.unwrap());

    damaged.extend_from_slice(b"startxref\n99999999\n%%EOF\n");
    for (record, file) in [
        ("paper", CONTRACT),
        ("paper-stated", CONTRACT),
        ("paper-converted", CONTRACT),
        ("paper-pledged", CONTRACT),
        ("rewritten", &damaged),
        ("signed-upload", &signed),
    ] {
        let (id, uploaded) = paper(&matrix.app, file).await;
        uploaded.data(201);
        if record == "paper-stated" {
            let path = format!("/partner/envelopes/{id}/paper-original");
            let kept = json!({ "state": "kept", "where": "Maple Motors, safe 2" });
            matrix.app.put(&path, kept).await.data(200);
        }

        vault_in(&matrix.app, &id).await;
        if record == "paper-converted" {
            matrix.converted(&id).await;
        }

        if record == "paper-pledged" {
            matrix.pledged(&id).await;
        }

        matrix.collect(record, &id).await;
    }

    matrix.told_truly();
}

/// Answers the identity questions of the sandbox.
async fn identified(app: &TestApp, url: &str) {
    form::open(app, url).await;
    let path = url.replace("http://127.0.0.1:8080", "");
    let right = Request::post(path)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from("q1=correct&q2=correct&q3=correct"))
        .unwrap();
    let answered = app.send(right).await;
    assert_eq!(answered.status, 303, "{}", answered.text());
}

/// Sends a document with identity questions for the signer.
async fn questioned(app: &TestApp) -> Value {
    let document = pdf::with_lines(&ONE);
    let texts = [("name", "Asking"), ("kba_required", "true")];
    let template = app.library_template(&texts, &document).await.data(201);
    let body = envelope_body(&template["template_id"]);
    app.post("/partner/envelopes", body).await.data(201)
}

/// Pays the fee of an envelope on the sandbox's page.
async fn paid(app: &TestApp, id: &str, payer: &str) {
    let asked = json!({ "envelope_id": id, "user_email": payer, "widget_type": "sign" });
    let token = text(&app.post("/embed/token", asked).await.data(200), "token");
    let intent = app.post_with_bearer(&token, "/embed/payment-intent", json!({}));
    let secret = text(&intent.await.data(200), "client_secret");
    let page = format!("/sandbox/payments/{}", secret.trim_end_matches("_secret"));
    let pay = Request::post(page)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from("pay=pay"))
        .unwrap();
    assert_eq!(app.send(pay).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_about_checked_people_say_what_the_ledger_says() {
    let mut matrix = Matrix::start().await;
    for record in ["kba", "kba-released"] {
        let sent = questioned(&matrix.app).await;
        let id = text(&sent, "envelope_id");
        identified(&matrix.app, &text(&sent, "sign_url")).await;
        matrix.signed(record, &id).await;
        if record == "kba-released" {
            matrix.released(&id).await;
        }

        matrix.collect(record, &id).await;
    }

    let payer = json!([person("Ann Lee", "ann@example.com", "Buyer")]);
    let fee = json!({ "payment": { "amount_cents": 4900, "currency": "usd" } });
    let id = matrix.sent(&ONE, payer, fee).await;
    paid(&matrix.app, &id, "ann@example.com").await;
    matrix.signed("payment", &id).await;
    matrix.collect("payment", &id).await;

    let app = &matrix.app;
    let template = bulk::notice(app).await;
    let clients = bulk::clients(app, 1).await;
    let batch = bulk::batch_of(app, &template, json!({})).await;
    bulk::set_clients(app, &batch, &clients).await;
    assert_eq!(bulk::submit(app, &batch).await.status, 202);

    bulk::wait_until(app, &batch, "completed").await;
    let list = app.get("/partner/envelopes").await.json();
    let mut all = list["data"].as_array().unwrap().iter();
    let ours = all.find(|one| one["envelope_name"] != "Retail instalment contract");
    let id = text(ours.expect("an envelope of the batch"), "envelope_id");

    // The records of a batch are vaulted on request.
    matrix.completed("bulk", &id).await;
    matrix.app.wait_for(&id, "completed").await;
    let path = format!("/partner/envelopes/{id}/vault-in-signed");
    matrix.app.post(&path, json!({})).await.data(200);
    matrix.collect("bulk", &id).await;

    matrix.told_truly();
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_about_test_data_say_what_the_ledger_says() {
    let mut app = TestApp::with(|_| {}, OrgSettings::default()).await;
    crate::service::test_mode::in_test(&mut app).await;
    let mut matrix = Matrix::over(app).await;
    let one = json!([person("Ann Lee", "ann@example.com", "Buyer")]);
    let id = matrix.sent(&ONE, one, json!({})).await;
    let path = format!("/test/envelopes/{id}/sign");
    matrix.app.post(&path, json!({})).await.data(200);

    in_the_vault(&matrix.app, &id).await;
    matrix.collect("test", &id).await;

    let sent = questioned(&matrix.app).await;
    let id = text(&sent, "envelope_id");
    identified(&matrix.app, &text(&sent, "sign_url")).await;
    matrix.completed("test-kba", &id).await;
    in_the_vault(&matrix.app, &id).await;
    matrix.collect("test-kba", &id).await;

    matrix.told_truly();
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_about_other_rules_say_what_the_ledger_says() {
    let mut matrix = Matrix::start().await;
    crate::evidence::own(&matrix.app, Slot::Compliance, "acme-rules").await;
    let id = matrix.app.vaulted_envelope().await;
    matrix.released(&id).await;
    matrix.collect("rules-released", &id).await;
    matrix.told_truly();
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_about_time_stamps_say_what_the_ledger_says() {
    let key = ["-newkey", "rsa:2048"];
    let authority = FakeTimestampAuthority::start(&key, AuthorityBehaviour::Right).await;
    let url = authority.url.parse().unwrap();
    let stamped = |config: &mut Config| config.seal.timestamp_url = Some(url);
    let mut matrix = Matrix::over(TestApp::with(stamped, OrgSettings::default()).await).await;
    for record in ["stamped", "stamped-released"] {
        let id = matrix.app.vaulted_envelope().await;
        if record == "stamped-released" {
            matrix.released(&id).await;
        }
        matrix.collect(record, &id).await;
    }

    matrix.told_truly();
}

/// Each change of one fact in one output is found.
#[tokio::test(flavor = "multi_thread")]
async fn the_checker_finds_each_changed_fact() {
    let mut matrix = Matrix::start().await;
    let id = matrix.sent(&THREE, three(), json!({})).await;
    matrix.signed("no-signature-released", &id).await;
    matrix.released(&id).await;
    matrix.collect("no-signature-released", &id).await;
    let id = matrix.app.vaulted_envelope().await;
    matrix.pledged(&id).await;

    matrix.collect("pledged", &id).await;

    for (record, least) in [("no-signature-released", 40), ("pledged", 8)] {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/truth_changes.py");
        let output = std::process::Command::new("python3")
            .arg(script)
            .arg(matrix.folder.path().join(record))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");

        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["before"], json!([]));
        assert_eq!(report["unnoticed"], json!([]));
        assert!(report["changes"].as_u64() > Some(least), "{report}");
    }
}

/// Waits for the vault with the API key only; the web app's token is for live data.
async fn in_the_vault(app: &TestApp, id: &str) {
    let path = format!("/partner/envelopes/{id}/status");
    for _ in 0..2_000 {
        if app.get(&path).await.data(200)["status"] == "vaulted" {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
    panic!("{id} is not vaulted");
}
