//! Every way by which bytes leave or are deleted, under a legal hold. `tests/hold-paths` lists all operations, jobs and
//! commands; a new one fails the first test until it is there.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use holdfast::config::Config;
use holdfast::domain::job::KINDS;
use holdfast::vault::orphans;
use serde_json::{Value, json};

use super::destruction;
use super::holds::{lift, place, place_as, refused};
use crate::http::console::Session;
use crate::http::openapi::{ApiOperation, document, operations};
use crate::service::control::{Party, vault_out};
use crate::support::{TestApp, TestResponse, release_form};

/// Outcomes in the order of the documentation. `stays` is not shown: it takes nothing out of the store.
const SHOWN: [&str; 4] = ["refused", "record by record", "waits", "done"];
const STAYS: &str = "stays";

/// Row of the list.
struct HoldPath {
    outcome: &'static str,
    name: &'static str,
    why: &'static str,
}

fn paths() -> Vec<HoldPath> {
    let lines = include_str!("../../../hold-paths").lines();
    let rows = lines.filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let mut parts = line.splitn(3, '|').map(str::trim);
        let mut part = || parts.next().expect("outcome | name | why");
        HoldPath {
            outcome: part(),
            name: part(),
            why: part(),
        }
    })
    .collect()
}

fn name_of(operation: &ApiOperation) -> String {
    format!("{} {}", operation.method, operation.path)
}

/// Returns the first words of the commands in their documentation.
fn commands() -> BTreeSet<String> {
    let rows = include_str!("../../../../docs/command-line.md").lines();
    let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split(" | ").next());
    let commands = cells.flat_map(|cell| cell.split('`').step_by(2));
    let words = commands.filter_map(|command| command.split_whitespace().next());
    let is_name = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
    words.filter(is_name).map(str::to_owned).collect()
}

#[test]
fn every_operation_job_and_command_is_in_the_list() {
    let rows = paths();
    for row in &rows {
        assert!(
            row.outcome == STAYS || SHOWN.contains(&row.outcome),
            "{}",
            row.name
        );
        assert_eq!(row.why.is_empty(), row.outcome == STAYS, "{}", row.name);
    }

    let listed = rows.iter().map(|row| row.name.to_owned());
    let listed: BTreeSet<String> = listed
        .filter(|name| !name.starts_with("periodic "))
        .collect();
    let known: BTreeSet<String> = operations(&document())
        .iter()
        .map(name_of)
        .chain(KINDS.iter().map(|kind| format!("job {}", kind.name)))
        .chain(commands().iter().map(|name| format!("command {name}")))
        .collect();
    let unlisted: Vec<_> = known.difference(&listed).collect();
    let unknown: Vec<_> = listed.difference(&known).collect();
    assert!(
        unlisted.is_empty() && unknown.is_empty(),
        "unlisted: {unlisted:#?}, unknown: {unknown:#?}"
    );
}

/// Returns the rows that the documentation shows, as a table.
fn table() -> String {
    let rows = paths();
    let mut table = "| What | Under a hold | Why |\n|---|---|---|\n".to_owned();
    for outcome in SHOWN {
        let mut reasons: Vec<&str> = Vec::new();
        for row in rows.iter().filter(|row| row.outcome == outcome) {
            if !reasons.contains(&row.why) {
                reasons.push(row.why);
            }
        }
        for why in reasons {
            let same = |row: &&HoldPath| row.outcome == outcome && row.why == why;
            let names = rows.iter().filter(same);
            let names: Vec<String> = names.map(|row| format!("`{}`", row.name)).collect();
            table += &format!("| {} | {outcome} | {why} |\n", names.join(", "));
        }
    }
    table
}

/// Set `UPDATE_RETENTION=1` to rewrite the table.
#[test]
fn the_documentation_has_the_table_of_paths() {
    const BEGIN: &str = "the same list.\n\n";
    const END: &str = "\n## What is not done\n";
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/retention.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("a place for the table");
    let (present, after) = rest.split_once(END).expect("a section behind the table");
    let table = table();
    if std::env::var_os("UPDATE_RETENTION").is_some() {
        std::fs::write(file, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(present, table, "run this test with UPDATE_RETENTION=1");
    }
}

fn often(config: &mut Config) {
    config.sweep_interval = Some(Duration::from_millis(200));
}

/// Objects for all paths that a hold refuses, and the results of taking them.
struct RefusedPaths {
    app: TestApp,
    lender: Party,
    /// Token of a user of the lender.
    lea: String,
    taken: BTreeSet<String>,
}

impl RefusedPaths {
    async fn new() -> Self {
        let app = TestApp::start().await;
        let lender = Party::new(&app).await;
        Self {
            lea: app.token_at(&lender.org, "lea@bank.example", "owner"),
            lender,
            app,
            taken: BTreeSet::new(),
        }
    }

    /// Makes a record that the lender controls.
    async fn controlled(&self) -> String {
        let id = self.designated().await;
        let accepted = self.lender.act(&self.app, &id, "accept", json!({})).await;
        accepted.data(200);
        id
    }

    /// Makes a record of which the lender was offered control.
    async fn designated(&self) -> String {
        let id = self.app.vaulted_envelope().await;
        let path = format!("/partner/control/records/{id}/designate");
        let to = json!({ "controller": self.lender.org });
        self.app.post(&path, to).await.data(200);
        id
    }

    /// Makes a transfer that its buyer accepted.
    async fn accepted(&self, buyer: &Party, id: &str) -> String {
        let offer = json!({ "records": [id], "buyer": buyer.org });
        let path = "/partner/control/transfers";
        let begun = self.app.post_as(&self.lender.key, path, offer).await;
        let transfer = begun.data(202)["transfer_id"].as_str().unwrap().to_owned();
        self.app.wait_until_idle().await;
        let accept = format!("{path}/{transfer}/accept");
        let accepted = self.app.post_as(&buyer.key, &accept, json!({})).await;
        accepted.data(202);
        self.app.wait_until_idle().await;
        transfer
    }

    /// Takes a path as program or user of the lender.
    async fn lender(&mut self, path: &str, id: &str, body: Value) -> TestResponse {
        let called = path.replace("{id}", id);
        self.taken.insert(format!("POST {path}"));
        if path.starts_with("/partner/") {
            self.app.post_as(&self.lender.key, &called, body).await
        } else {
            self.app.post_with_bearer(&self.lea, &called, body).await
        }
    }

    /// Takes a path as program or user of the originator.
    async fn own(&mut self, method: Method, path: &str, id: &str, body: Value) -> TestResponse {
        let called = path.replace("{id}", id);
        self.taken.insert(format!("{method} {path}"));
        match method {
            Method::POST if path.starts_with("/partner/") => self.app.post(&called, body).await,
            Method::DELETE if path.starts_with("/partner/") => {
                let request = Request::delete(format!("/api/v2{called}"));
                let request = request.header("x-api-key", &self.app.key);
                self.app.send(request.body(Body::empty()).unwrap()).await
            }
            _ => self.app.web(method, &called, body).await,
        }
    }

    /// Asserts that the only record of a transfer was refused for the hold.
    async fn record_is_refused(&self, transfer: &str) {
        self.app.wait_until_idle().await;
        let path = format!("/partner/control/transfers/{transfer}");
        let read = self.app.get_as(&self.lender.key, &path).await.data(200);
        assert_eq!(read["records"][0]["code"], "legal_hold", "{read}");
    }
}

/// Asserts that an erasure refused all parts for a hold.
#[track_caller]
fn all_is_kept(erasure: &Value) {
    assert_eq!(erasure["erased"], json!([]), "{erasure}");
    assert_eq!(erasure["erasable"], json!([]), "{erasure}");
    let refused = erasure["refused"].as_array().unwrap();
    assert!(refused.len() > 1, "{erasure}");
    for part in refused {
        assert_eq!(part["reason"], "legal_hold", "{erasure}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_path_that_a_hold_refuses_is_refused() {
    let mut paths = RefusedPaths::new().await;
    let buyer = Party::new(&paths.app).await;
    let own = paths.app.vaulted_envelope().await;
    let released = paths.app.vaulted_envelope().await;
    let links = vault_out(&paths.app, &released, release_form())
        .await
        .data(200);
    let offered = paths.designated().await;
    let (asked, sold) = (paths.controlled().await, paths.controlled().await);
    let (sold_too, kept) = (paths.controlled().await, paths.controlled().await);
    let release = vault_out(&paths.app, &asked, release_form()).await;
    let release = release.json()["details"]["release_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let transfer = paths.accepted(&buyer, &sold).await;
    let transfer_too = paths.accepted(&buyer, &sold_too).await;
    let template = paths.app.contract_template().await;
    let template = template["template_id"].as_str().unwrap().to_owned();
    let batch = json!({ "name": "Notice", "document_source": "new" });
    let batch = paths
        .app
        .web(Method::POST, "/bulk-send", batch)
        .await
        .data(201);
    let batch = batch["batch_id"].as_str().unwrap().to_owned();
    let map = json!({
        "columns": [{ "column": "Envelope", "fact": "envelope_id" }], "keys": ["envelope_id"],
    });
    let texts = [("name", "Line 12"), ("map", &map.to_string())];
    let path = "/partner/control/tapes";
    let tape = format!("Envelope\n{own}\n");
    let tape = paths
        .app
        .upload(path, "text/csv", tape.as_bytes(), &texts)
        .await;
    let tape = tape.data(202)["tape_id"].as_str().unwrap().to_owned();
    paths.app.wait_until_idle().await;

    // Requests to destroy records: one to authorize, one to carry out, and one that the lender has to consent to.
    let (waiting, ordered) = (
        paths.app.vaulted_envelope().await,
        paths.app.vaulted_envelope().await,
    );
    let held = paths.controlled().await;
    let waiting = destruction::requested(&paths.app, &waiting).await;
    let ordered = destruction::requested(&paths.app, &ordered).await;
    destruction::step(&paths.app, destruction::BEN, &ordered, "authorize")
        .await
        .data(200);
    let consented = destruction::requested(&paths.app, &held).await;

    let own_hold = place(&paths.app, "organization", None).await;
    let their_hold = place_as(&paths.app, &paths.lender.key, "organization", None).await;

    // The originator's own records and templates.
    let out = "/partner/envelopes/{id}/vault-out";
    for id in [&own, &released] {
        let answer = paths.own(Method::POST, out, id, release_form()).await;
        assert_eq!(refused(&answer)["hold_id"], own_hold.as_str());
    }
    let to = json!({ "controller": paths.lender.org });
    for path in [
        "/partner/control/records/{id}/designate",
        "/control/records/{id}/designate",
    ] {
        let answer = paths.own(Method::POST, path, &own, to.clone()).await;
        assert_eq!(refused(&answer)["hold_id"], own_hold.as_str());
    }
    for (path, id) in [
        ("/templates/{id}", &template),
        ("/bulk-send/{id}", &batch),
        ("/partner/control/tapes/{id}", &tape),
        ("/control/tapes/{id}", &tape),
    ] {
        let answer = paths.own(Method::DELETE, path, id, Value::Null).await;
        assert_eq!(refused(&answer)["hold_id"], own_hold.as_str());
    }

    let destroy = json!({ "envelope_ids": [own], "reason": "Its time is over." });
    for (path, id) in [
        ("/partner/destructions", &own),
        ("/destructions", &own),
        ("/destructions/{id}/authorize", &waiting),
        ("/destructions/{id}/carry-out", &ordered),
    ] {
        let answer = paths.own(Method::POST, path, id, destroy.clone()).await;
        assert_eq!(refused(&answer)["hold_id"], own_hold.as_str());
    }
    let path = "/control/destructions/{id}/consent";
    let answer = paths.lender(path, &consented, json!({})).await;
    assert_eq!(refused(&answer)["hold_id"], their_hold.as_str());

    // An erasure refuses the records of a person one by one, and the person's own values.
    let path = format!("/partner/envelopes/{own}");
    let person = paths.app.get(&path).await.data(200)["customer_id"].clone();
    let person = person.as_str().unwrap().to_owned();
    let erasures = ["/partner/customers/{id}/erase", "/customers/{id}/erase"];
    let approval = "/customers/{id}/erase/approve";
    paths
        .own(Method::POST, erasures[0], &person, json!({}))
        .await
        .data(200);
    // The first person takes the request of the key over, the second one approves it.
    paths
        .own(Method::POST, approval, &person, json!({}))
        .await
        .data(200);
    let second = paths.app.person("ben@oak.example", "compliance");
    let path = approval.replace("{id}", &person);
    let approved = paths.app.post_with_bearer(&second, &path, json!({})).await;
    all_is_kept(&approved.data(200));
    for path in erasures {
        let again = paths.own(Method::POST, path, &person, json!({})).await;
        all_is_kept(&again.data(200));
    }

    // The link has no caller, so it learns nothing of the hold.
    let url = links["authoritative_signed_url"].as_str().unwrap();
    let download = paths.app.get(url).await;
    assert!(!download.text().contains(&own_hold), "{}", download.text());
    assert_eq!(refused(&download), Value::Null);
    paths.taken.insert("GET /downloads/{token}".into());
    let copy = links["certified_vaulted_copy_signed_url"].as_str().unwrap();
    assert_eq!(paths.app.get(copy).await.status, 200);

    // A record that the lender was offered is under the originator's hold, its own ones under its own.
    for path in [
        "/partner/control/records/{id}/accept",
        "/control/records/{id}/accept",
    ] {
        let answer = paths.lender(path, &offered, json!({})).await;
        assert_eq!(refused(&answer), Value::Null);
    }
    for path in [
        "/partner/control/releases/{id}/consent",
        "/control/releases/{id}/consent",
    ] {
        let answer = paths.lender(path, &release, json!({})).await;
        assert_eq!(refused(&answer)["hold_id"], their_hold.as_str());
    }
    for path in [
        "/partner/control/records/{id}/release",
        "/control/records/{id}/release",
    ] {
        let answer = paths.lender(path, &kept, release_form()).await;
        assert_eq!(refused(&answer)["hold_id"], their_hold.as_str());
    }

    // Steps of a transfer answer at once. Their records are refused one by one.
    for (path, transfer) in [
        ("/partner/control/transfers/{id}/confirm", &transfer),
        ("/control/transfers/{id}/confirm", &transfer_too),
    ] {
        paths.lender(path, transfer, json!({})).await.data(202);
        paths.record_is_refused(transfer).await;
    }
    for path in ["/partner/control/transfers", "/control/transfers"] {
        let offer = json!({ "records": [kept], "buyer": buyer.org });
        let begun = paths.lender(path, "", offer).await.data(202);
        let transfer = begun["transfer_id"].as_str().unwrap();
        paths.record_is_refused(transfer).await;
    }

    // Nothing has left or changed hands.
    for id in [&own, &asked, &sold, &sold_too, &kept, &offered] {
        assert_eq!(paths.app.wait_for(id, "vaulted").await["vaulted"], true);
    }
    for (id, controller) in [
        (&own, &paths.app.org),
        (&sold, &paths.lender.org),
        (&offered, &paths.app.org),
    ] {
        let path = format!("/partner/control/records/{id}");
        let record = paths.app.get(&path).await.data(200);
        assert_eq!(record["controller"]["organization_id"], controller.as_str());
    }

    let rows = self::paths();
    let refusing = ["refused", "record by record"];
    let listed = rows.iter().filter(|row| refusing.contains(&row.outcome));
    let listed = listed.map(|row| row.name.to_owned());
    let listed: BTreeSet<String> = listed.filter(|name| !name.starts_with("job ")).collect();
    assert_eq!(paths.taken, listed);
}

/// Calls an operation as a program or user of the organization, about a held record and with an empty body.
async fn called(app: &TestApp, operation: &ApiOperation, id: &str) -> TestResponse {
    let path = operation
        .path
        .replace("{slot}", "rules.compliance")
        .replace("{id}", id)
        .replace("{role}", "Buyer")
        .replace("{line}", "1")
        .replace("{name}", "Line-12")
        .replace("{stipulation}", "insurance")
        .replace("{question_id}", "qst_01jdk7m3e8f4x9s2w5v6b0c1dh")
        .replace("{instance}", "embedded")
        .replace("{token}", "unknown")
        .replace("{sha256}", &"0".repeat(64));
    assert!(!path.contains('{'), "{path}");

    let mut request = Request::builder()
        .method(&operation.method)
        .uri(format!("/api/v2{path}"))
        .header("content-type", "application/json")
        .header("x-org-id", app.org.as_str());
    let by_key = operation.description["x-scopes"].is_array();
    if by_key || path.starts_with("/embed/") {
        request = request.header("x-api-key", &app.key);
    } else {
        request = request.header("authorization", format!("Bearer {}", app.web_admin()));
    }
    let body = match operation.method {
        Method::GET | Method::DELETE => Body::empty(),
        _ => "{}".into(),
    };
    app.send(request.body(body).unwrap()).await
}

/// All other operations do as they do without a hold, and none of them takes the record.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_in_the_way_of_no_other_operation() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    place(&app, "organization", None).await;
    let stored: BTreeSet<_> = app.objects("vault").into_iter().collect();

    let rows = paths();
    let free = rows
        .iter()
        .filter(|row| ["done", STAYS].contains(&row.outcome));
    let free: BTreeSet<&str> = free.map(|row| row.name).collect();
    let mut seen = 0;
    for operation in operations(&document()) {
        let name = name_of(&operation);
        if !free.contains(name.as_str()) {
            continue;
        }
        let answer = called(&app, &operation, &id).await;
        let is_json = answer.bytes.starts_with(b"{");
        let code = is_json.then(|| answer.json()["code"].clone());
        assert_ne!(code, Some(json!("legal_hold")), "{name}");
        seen += 1;
    }
    assert!(seen > 200, "{seen}");

    // The copies that the table calls done are given.
    for (path, status) in [
        (format!("/partner/envelopes/{id}/vault/signed-url"), 200),
        (
            format!("/partner/envelopes/{id}/vault/copy/signed-url"),
            200,
        ),
        (
            format!("/partner/envelopes/{id}/completion-certificate"),
            200,
        ),
        (format!("/partner/envelopes/{id}/custody-record"), 200),
        (
            format!("/partner/control/records/{id}/copy?purpose=Suit"),
            200,
        ),
    ] {
        let answer = app.get(&path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
    }
    assert_eq!(app.wait_for(&id, "vaulted").await["vaulted"], true);
    let left: BTreeSet<_> = app.objects("vault").into_iter().collect();
    assert!(stored.is_subset(&left), "{stored:?} {left:?}");
}

/// The console calls the same use cases, and shows the refusal.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_refuses_what_a_hold_keeps() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let id = template["template_id"].as_str().unwrap();
    place(&app, "organization", None).await;
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let path = format!("/console/templates/{id}/delete");
    let answer = ada.post(&app, &path, "sure=yes").await;
    assert_eq!(answer.status, 409, "{}", answer.text());
    let path = format!("/templates/{id}");
    app.web(Method::GET, &path, Value::Null).await.data(200);
}

/// A release that was agreed to before the hold is made after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_consented_release_waits_for_the_end_of_a_hold() {
    let (app, id, lender) = crate::service::control::controlled().await;
    let asked = vault_out(&app, &id, release_form()).await;
    let release = asked.json()["details"]["release_id"]
        .as_str()
        .unwrap()
        .to_owned();
    app.wait_until_idle().await;
    app.stop_working();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let consent = format!("/partner/control/releases/{release}/consent");
    app.post_as(&lender.key, &consent, json!({}))
        .await
        .data(200);
    let hold_id = place_as(&app, &lender.key, "envelope", Some(&id)).await;

    let node = app.another_node(often).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(node.wait_for(&id, "vaulted").await["vaulted"], true);

    for (person, step) in [
        ("lea@bank.example", "lift"),
        ("leo@bank.example", "lift/approve"),
    ] {
        let token = node.token_at(&lender.org, person, "compliance");
        let path = format!("/legal-holds/{hold_id}/{step}");
        let body = json!({ "reason": "Settled" });
        node.post_with_bearer(&token, &path, body).await.data(200);
    }
    node.wait_for(&id, "vaulted_out").await;
}

/// The live copy of a released record is deleted by a job, which leaves it while there is a hold.
#[tokio::test(flavor = "multi_thread")]
async fn the_job_that_deletes_an_object_waits_for_the_end_of_a_hold() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let live = app.objects("vault").remove(0);
    app.wait_until_idle().await;
    app.stop_working();
    tokio::time::sleep(Duration::from_secs(1)).await;
    vault_out(&app, &id, release_form()).await.data(200);
    let hold_id = place(&app, "envelope", Some(&id)).await;

    let node = app.another_node(often).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(live.exists());
    lift(&node, &hold_id).await;
    node.wait_until_gone(&live).await;
}

/// A replaced document may be what the case is about.
#[tokio::test(flavor = "multi_thread")]
async fn orphaned_objects_stay_while_the_organization_has_a_hold() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let orphan = app
        .objects("vault")
        .remove(0)
        .with_file_name("0".repeat(64));
    std::fs::write(&orphan, b"left behind").unwrap();
    let hold_id = place(&app, "envelope", Some(&id)).await;

    let day_after = Duration::from_secs(25 * 3600);
    let later = app.as_of(day_after).await;
    let node = &later.service;
    orphans::sweep(node, &node.vault).await.unwrap();
    assert!(orphan.exists());

    lift(&later, &hold_id).await;
    orphans::sweep(node, &node.vault).await.unwrap();
    assert!(!orphan.exists());
}
