//! Decisions of rules as data: blocks in the ledger, exports, and their proofs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use holdfast::config::Config;
use holdfast::domain::checkpoint::{Checkpoint, CheckpointSigner, entry_leaf};
use holdfast::domain::organization::OrgSettings;
use holdfast_test_guests::{LENIENT, OPINIONATED};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::RowAccessor as _;
use serde_json::{Value, json};

use crate::cli::plugin_kit::holdfast;
use crate::support::process::this_program;
use crate::support::{
    SETTINGS, TestApp, decisions_output, operator, operator_output, postgres, release_form,
};

/// Exports an organization's decisions by the operator's tool.
fn exported(app: &TestApp, name: &str, more: &[&str]) -> PathBuf {
    let file = app.data.path().join(name);
    let (org, path) = (app.org.as_str(), file.to_str().unwrap());
    let export = ["decisions", "export", "--org", org, path];
    operator(app.data.path(), &[&export, more].concat());
    file
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn written(folder: &Path, lines: &[Value]) -> PathBuf {
    let file = folder.join("changed.jsonl");
    let text: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&file, text.concat()).unwrap();
    file
}

fn verified(file: &Path, key: &str) -> Value {
    let output = decisions_output(file.to_str().unwrap(), &["--key", key]);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn decisions(lines: &[Value]) -> impl Iterator<Item = &Value> {
    lines.iter().filter(|line| line["type"] == "decision")
}

/// Starts a service on PostgreSQL, which the operator's tool finds, too.
async fn on_postgresql() -> TestApp {
    let database = postgres::new_database().await;
    let url = database.clone();
    let change = |config: &mut Config| {
        let settings = format!("database_url = '{database}'\n");
        std::fs::write(config.data_dir.join(SETTINGS), settings).unwrap();
        config.database_url = Some(url);
    };
    TestApp::with(change, OrgSettings::default()).await
}

async fn exports_are_complete(app: TestApp) {
    let id = app.vaulted_envelope().await;
    let file = exported(&app, "decisions.jsonl", &[]);
    let key = app.ledger_key().await;
    let report = verified(&file, &key);
    assert_eq!(report["verdict"], "VALID", "{report:#}");

    let by_slot = &report["by_slot"];
    assert_eq!(
        (&by_slot["rules.compliance"], &by_slot["rules.placement"]),
        (&json!(1), &json!(1)),
        "{report:#}"
    );
    assert!(by_slot["rules.lifecycle"].as_u64() > Some(3), "{report:#}");

    let all = lines(&file);
    let evaluation = decisions(&all)
        .find(|line| line["slot"] == "rules.compliance")
        .unwrap();
    assert_eq!(
        (&evaluation["envelope_id"], &evaluation["function"]),
        (&json!(id), &json!("evaluate"))
    );
    assert_eq!(evaluation["answer"]["score"], 100, "{evaluation:#}");

    // Statuses are spelled as in the API, whichever slot decided.
    assert_eq!(evaluation["status"], "vaulted", "{evaluation:#}");
    let moves = decisions(&all).filter(|line| line["slot"] == "rules.lifecycle");
    let statuses: Vec<&str> = moves.filter_map(|line| line["status"].as_str()).collect();
    for status in ["sent", "completed", "vaulted"] {
        assert!(statuses.contains(&status), "{statuses:?}");
    }

    assert_eq!(
        evaluation["replay"],
        format!("/envelopes/{id}/replay").as_str()
    );

    let placement = decisions(&all)
        .find(|line| line["slot"] == "rules.placement")
        .unwrap();
    let given = &placement["given"];
    assert_eq!(given["document_sha256"].as_str().unwrap().len(), 64);
    assert!(given.get("pdf").is_none());
    assert!(placement["answer"]["ok"][0]["areas"][0]["page"].is_number());

    // Each line is needed, and none can be changed.
    let other = operator(app.data.path(), &["org", "create", "--name", "Oak"]);
    let (other, path) = (other["org_id"].as_str().unwrap(), file.to_str().unwrap());
    let continued = ["decisions", "export", "--org", other, path];
    let output = operator_output(app.data.path(), &continued);
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(lines(&file), all);

    let folder = tempfile::tempdir().unwrap();
    for left_out in 0..all.len() {
        let mut fewer = all.clone();
        let line = fewer.remove(left_out);
        let report = verified(&written(folder.path(), &fewer), &key);
        assert_eq!(report["verdict"], "NOT VALID", "without {line}");

        let problems = report["problems"].to_string();
        match line["type"].as_str() {
            Some("decision") => {
                let block = &line["block"];
                let counted = format!("block {block} has ");
                assert!(problems.contains(&counted), "{problems}");
                assert!(problems.contains(" decisions, of which "), "{problems}");
            }
            Some("head") => assert!(
                problems.contains("the end of the export is missing"),
                "{problems}"
            ),
            _ => {}
        }
    }

    let (of_others, moved) = (
        " has other decisions than these",
        ": its position, replay path or status was changed",
    );
    type Change = fn(&mut Value);

    let changes: [(Change, &str); 9] = [
        (
            |line| line["answer"] = json!({ "ok": "voided" }),
            ": its answer are masked or were changed",
        ),
        (
            |line| line["given"]["trigger"] = json!("send"),
            ": its parameters are masked or were changed",
        ),
        (
            |line| line["component"]["version"] = json!("9.9.9"),
            of_others,
        ),
        (
            |line| line["given_sha256"] = json!("0".repeat(64)),
            of_others,
        ),
        (
            |line| line["at"] = json!("2020-01-01T00:00:00.000Z"),
            of_others,
        ),
        (|line| line["position"] = json!(99), moved),
        (|line| line["status"] = json!("voided"), moved),
        (
            |line| line["replay"] = json!("/envelopes/other/replay"),
            moved,
        ),
        (
            |line| line["block"] = json!(99),
            " has decisions of another block",
        ),
    ];

    let place = all
        .iter()
        .position(|line| line["slot"] == "rules.lifecycle");
    for (change, why) in changes {
        let mut changed = all.clone();
        change(&mut changed[place.unwrap()]);
        let report = verified(&written(folder.path(), &changed), &key);
        assert_eq!(report["verdict"], "NOT VALID", "{report:#}");
        let problems = report["problems"].to_string();
        assert!(problems.contains(why), "{why}: {problems}");
    }

    let block = all.iter().position(|line| line["type"] == "block");
    let mut changed = all.clone();
    changed[block.unwrap()]["entry"]["details"]["note"] = json!("more");
    let report = verified(&written(folder.path(), &changed), &key);
    let problems = report["problems"].to_string();
    assert!(
        problems.contains("the entry of block 1 was changed"),
        "{problems}"
    );

    let mut of_two = all.clone();
    let mut head = of_two.last().unwrap().clone();
    head["organization_id"] = json!("org_01h455vb4pex5vsknk084sn02q");
    of_two.push(head);
    let report = verified(&written(folder.path(), &of_two), &key);
    let problems = report["problems"].to_string();
    let several = "the pages are of several organizations";
    assert!(problems.contains(several), "{problems}");

    // Of another log.
    let other = decisions_output(file.to_str().unwrap(), &["--key", &other_key(&key)]);
    assert_eq!(other.status.code(), Some(1), "{other:?}");

    // A later export continues the file.
    let before = std::fs::read(&file).unwrap();
    let second = app.vaulted_envelope().await;
    let longer = lines(&exported(&app, "decisions.jsonl", &[]));
    assert!(decisions(&longer).any(|line| line["envelope_id"] == second.as_str()));

    let report = verified(&file, &key);
    assert_eq!(
        (&report["verdict"], &report["decisions"]),
        (&json!("VALID"), &json!(decisions(&longer).count())),
        "{report:#}"
    );

    let whole = exported(&app, "whole.jsonl", &[]);
    let same = |lines: &[Value]| decisions(lines).cloned().collect::<Vec<_>>();
    assert_eq!(same(&longer), same(&lines(&whole)));
    assert!(std::fs::read(&file).unwrap().starts_with(&before[..100]));

    over_the_api(&app, &whole, &key).await;
}

/// Returns a key of the same name that did not sign the log.
fn other_key(key: &str) -> String {
    let signer = CheckpointSigner::new(&[5; 32]).unwrap();
    let name = key.split('+').next().unwrap();
    signer.verifier(name).to_string()
}

fn written_text(app: &TestApp, text: &str) -> PathBuf {
    let file = app.data.path().join("part.jsonl");
    std::fs::write(&file, text).unwrap();
    file
}

/// Blocks under a head of another log, followed by the public head of the real one, which proves nothing about
/// them.
fn forged(app: &TestApp, export: &str) {
    let mut all: Vec<Value> = export
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let head = all.pop().unwrap();
    let seed = [7; 32];
    let signer = CheckpointSigner::new(&seed).unwrap();

    let mut own = head.clone();
    let mut blocks = all.iter().filter(|line| line["type"] == "block");
    let last = blocks.next_back().unwrap()["entry"].clone();
    let chain = format!("decisions:{}", app.org);
    let leaf = entry_leaf(
        &chain,
        last["sequence"].as_i64().unwrap(),
        last["hash"].as_str().unwrap(),
    );
    let checkpoint = Checkpoint {
        origin: "forged.example/ledger".into(),
        size: 1,
        root: leaf,
    };
    own["log"]["checkpoint"] = signer.sign(&checkpoint).into();

    own["log"]["public_key"] = signer.verifier(&checkpoint.origin).to_string().into();
    own["log"]["inclusion"] =
        json!([{ "sequence": last["sequence"], "leaf_index": 0, "proof": [] }]);
    let last = all.iter().rposition(|line| line["type"] == "block");
    all[last.unwrap()]["leaf_index"] = json!(0);
    all.retain(|line| line["type"] != "head");
    let trusted = app.data.path().join("trusted");
    std::fs::write(
        &trusted,
        format!("{}\n", head["log"]["public_key"].as_str().unwrap()),
    )
    .unwrap();

    let verdict = |lines: &[Value]| {
        let file = written(app.data.path(), lines);
        let trust = ["--trust", trusted.to_str().unwrap()];
        let output = decisions_output(file.to_str().unwrap(), &trust);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["verdict"].as_str().unwrap().to_owned()
    };

    let real = [all.as_slice(), std::slice::from_ref(&head)].concat();
    assert_ne!(verdict(&real), "VALID", "its last block has another place");

    let forged = [all.as_slice(), &[own.clone()]].concat();
    assert_eq!(verdict(&forged), "CONSISTENT, NOT ANCHORED");
    assert_eq!(
        verdict(&[forged.as_slice(), &[head]].concat()),
        "CONSISTENT, NOT ANCHORED"
    );
}

async fn over_the_api(app: &TestApp, whole: &Path, key: &str) {
    let officer = app.token("compliance");
    // Page by page, as the links say.
    let (mut text, mut next, mut pages) = (String::new(), "/decisions?limit=1".to_owned(), 0);

    let mut first = None;
    loop {
        let page = app.get_with_bearer(&officer, &next).await;
        assert_eq!(page.status, 200, "{}", page.text());

        text += &page.text();
        pages += 1;
        let Some(link) = page.headers.get("link") else {
            break;
        };

        let link = link.to_str().unwrap();
        let query = link.strip_prefix('<').and_then(|link| link.split_once('>'));
        let query = query.unwrap().0;
        assert!(query.starts_with("?format=jsonl&after="), "{query}");

        next = format!("/decisions{query}");
        first.get_or_insert(text.clone());
    }

    assert_eq!(pages, 2);
    let file = app.data.path().join("pages.jsonl");
    std::fs::write(&file, &text).unwrap();
    let report = verified(&file, key);
    assert_eq!(report["verdict"], "VALID", "{report:#}");

    // Neither page is enough.
    let first = first.unwrap();
    let second = text.strip_prefix(first.as_str()).unwrap();
    for (page, problem) in [
        (first.as_str(), "the pages behind block 1 are missing"),
        (second, "block 1 is missing: block 2 is in its place"),
    ] {
        let page = written_text(app, page);
        let report = verified(&page, key);
        assert_eq!(report["verdict"], "NOT VALID");
        assert_eq!(report["problems"][0], problem, "{report:#}");
    }

    let page = written_text(app, second);
    let known = decisions_output(page.to_str().unwrap(), &["--key", key, "--after", "1"]);
    assert_eq!(known.status.code(), Some(0), "{known:?}");

    forged(app, &text);
    assert_eq!(
        report["decisions"],
        json!(decisions(&lines(whole)).count()),
        "{report:#}"
    );

    // A mask leaves out, and the proof holds.
    let masked = app
        .get_with_bearer(
            &officer,
            "/decisions?mask=submitters,signers,consumer_consent,signed_documents,custodians,detail",
        )
        .await;
    let text = masked.text();
    assert!(!text.contains("jordan.lee@example.com"), "{text}");

    std::fs::write(&file, text).unwrap();
    let output = decisions_output(file.to_str().unwrap(), &["--key", key, "--masked"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["verdict"], &report["masked"]),
        (&json!("VALID"), &json!(2)),
        "{report:#}"
    );

    // A mask that the reader does not know of could hide a change.
    let report = verified(&file, key);
    let problem = report["problems"][0].as_str().unwrap();
    assert!(problem.ends_with("are masked or were changed"), "{problem}");

    let columns = app
        .get_with_bearer(&officer, "/decisions?format=parquet")
        .await;
    let kind = columns.headers["content-type"].to_str().unwrap();
    assert_eq!(kind, "application/vnd.apache.parquet");

    let expected: Vec<Value> = decisions(&lines(whole)).cloned().collect();
    let reader = SerializedFileReader::new(bytes::Bytes::from(columns.bytes)).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().collect();
    assert_eq!(rows.len(), expected.len());

    for (row, line) in rows.into_iter().zip(expected) {
        let row = row.unwrap();
        assert_eq!(
            row.get_string(2).unwrap(),
            line["decision_id"].as_str().unwrap()
        );
        assert_eq!(row.get_string(3).unwrap(), line["slot"].as_str().unwrap());

        let given: Value = serde_json::from_str(row.get_string(11).unwrap()).unwrap();
        assert_eq!(given, line["given"]);
        assert_eq!(
            row.get_string(17).ok().cloned().map(Value::from),
            line.get("status").cloned()
        );
        assert_eq!(
            row.get_string(5).ok().cloned().map(Value::from),
            line.get("envelope_id").cloned()
        );
    }

    let metadata = reader
        .metadata()
        .file_metadata()
        .key_value_metadata()
        .unwrap();
    let metadata: BTreeMap<&str, Value> = metadata
        .iter()
        .map(|pair| {
            let value = serde_json::from_str(pair.value.as_deref().unwrap()).unwrap();
            (pair.key.as_str(), value)
        })
        .collect();
    assert_eq!(metadata["holdfast.blocks"].as_array().unwrap().len(), 2);
    assert_eq!(
        metadata["holdfast.head"]["organization_id"],
        app.org.as_str()
    );

    // Other users do not see them.
    app.get_with_bearer(&app.token("member"), "/decisions")
        .await
        .error(403);
    app.get_as("", "/decisions").await.error(401);

    for query in [
        "format=csv",
        "after=-1",
        "limit=0",
        "limit=10001",
        "before=3",
    ] {
        let path = format!("/decisions?{query}");
        app.get_with_bearer(&officer, &path).await.error(400);
    }

    let stranger = app.get_with_bearer(&app.other_admin(), "/decisions").await;
    let stranger: Value = serde_json::from_str(stranger.text().trim()).unwrap();
    assert_eq!(
        (&stranger["type"], &stranger["next"]),
        (&json!("head"), &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_proves_that_no_decision_is_left_out_on_sqlite() {
    exports_are_complete(TestApp::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_proves_that_no_decision_is_left_out_on_postgresql() {
    exports_are_complete(on_postgresql().await).await;
}

/// Further decisions, as many as a year of a small lender.
async fn add_decisions(app: &TestApp) {
    app.execute(
        "insert into lifecycle_decision (bucket, decision_id, org_id, envelope_id, from_status,
             trigger_name, to_status, facts, component, at)
         with recursive number(n) as (select 1 union all select n + 1 from number where n < 30000)
         select d.bucket, d.decision_id || '_' || n, d.org_id, d.envelope_id, d.from_status,
             d.trigger_name, d.to_status, d.facts, d.component, d.at
         from number, (select * from lifecycle_decision limit 1) d",
    )
    .await;
}

/// Two programs that make blocks at once share the decisions.
#[tokio::test(flavor = "multi_thread")]
async fn two_recorders_make_one_chain() {
    let app = on_postgresql().await;
    app.vaulted_envelope().await;
    add_decisions(&app).await;
    let exports = ["one.jsonl", "two.jsonl", "three.jsonl"].map(|name| {
        let (data, org) = (app.data.path().to_owned(), app.org.to_string());
        let file = app.data.path().join(name);
        std::thread::spawn(move || {
            let path = file.to_str().unwrap();
            operator(&data, &["decisions", "export", "--org", &org, path]);
        })
    });
    for export in exports {
        export.join().unwrap();
    }

    let report = verified(&exported(&app, "all.jsonl", &[]), &app.ledger_key().await);
    assert_eq!(report["verdict"], "VALID", "{report:#}");
    assert!(report["decisions"].as_u64() > Some(30_000), "{report:#}");
}

/// Decisions get into blocks without the operator, and those of a controller belong to the controller.
#[tokio::test(flavor = "multi_thread")]
async fn decisions_get_into_blocks_by_themselves() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    app.post(
        &format!("/partner/envelopes/{id}/vault-out"),
        release_form(),
    )
    .await
    .data(200);

    let later = app.as_of(Duration::from_secs(90)).await;
    let officer = later.token("compliance");
    let mut found = Vec::new();
    for _ in 0..300 {
        let page = later.get_with_bearer(&officer, "/decisions").await.text();
        found = page
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .collect();

        if decisions(&found).any(|line| line["given"]["trigger"] == "VaultOut") {
            return;
        }

        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    panic!("{found:#?}");
}

/// An export is replayed elsewhere: identical with the deciding components, and with others the differences
/// are named.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_replayed_without_the_server() {
    let app = TestApp::start().await;
    for _ in 0..2 {
        app.vaulted_envelope().await;
    }

    let file = exported(&app, "decisions.jsonl", &[]);
    let all = lines(&file);

    // A folder without the installation.
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("decisions.jsonl");
    std::fs::copy(&file, &elsewhere).unwrap();
    let replayed = |component: &str| {
        let export = elsewhere.to_str().unwrap();
        let (done, text) = holdfast(&[
            "--json",
            "decisions",
            "replay",
            export,
            "--component",
            component,
        ]);

        (
            done,
            serde_json::from_str::<Value>(&text).unwrap_or_else(|_| panic!("{text}")),
        )
    };
    for (component, slot) in [
        ("holdfast-compliance", "rules.compliance"),
        ("holdfast-lifecycle", "rules.lifecycle"),
    ] {
        let of_slot = decisions(&all).filter(|line| line["slot"] == slot).count();
        let (done, report) = replayed(component);
        assert!(done, "{report:#}");
        assert_eq!(
            (&report["replayed"], &report["same"]),
            (&json!(of_slot), &json!(of_slot)),
            "{report:#}"
        );
    }

    let (_, placements) = replayed("holdfast-placement");
    assert_eq!(
        (&placements["replayed"], &placements["incomplete"]),
        (&json!(0), &json!(2)),
        "{placements:#}"
    );

    let path = |name: &str, rules: &[u8]| {
        let file = folder.path().join(name);
        std::fs::write(&file, rules).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (done, report) = replayed(&path("opinionated.wasm", OPINIONATED));
    assert!(!done);
    assert_eq!(
        (&report["differing"], &report["same"]),
        (&json!(2), &json!(0)),
        "{report:#}"
    );

    let groups = report["groups"].as_array().unwrap();
    let stricter = groups
        .iter()
        .find(|group| group["check"] == "Secured party identified");
    let stricter = stricter.unwrap();
    assert_eq!(
        (&stricter["direction"], &stricter["count"]),
        (&json!("stricter"), &json!(2))
    );

    let (_, report) = replayed(&path("lenient.wasm", LENIENT));
    assert_eq!(report["failed"], 0, "{report:#}");

    let refused = |component: &str| {
        let export = elsewhere.to_str().unwrap();
        let (done, text) = holdfast(&["decisions", "replay", export, "--component", component]);
        assert!(!done, "{text}");
        text
    };
    assert!(refused("no-such-component").contains("neither a file nor the name"));
    assert!(refused("holdfast-messaging").contains("neither a file nor the name"));

    std::fs::write(&elsewhere, "{}\n").unwrap();
    assert!(refused("holdfast-lifecycle").contains("missing field `type`"));

    // More lines than wait for the threads.
    std::fs::write(&elsewhere, "{}\n".repeat(20_000)).unwrap();
    assert!(refused("holdfast-lifecycle").contains("missing field `type`"));

    // Other files are left alone.
    let data = app.data.path();
    let other = data.join("other.json");
    for text in [
        "{}",
        "one line",
        "{\"type\": \"other\"}\n",
        "{\"type\":\"FeatureCollection\"}",
    ] {
        std::fs::write(&other, text).unwrap();
        let export = [
            "decisions",
            "export",
            "--org",
            app.org.as_str(),
            other.to_str().unwrap(),
        ];
        let output = operator_output(data, &export);
        assert!(!output.status.success(), "{text}");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), text);
    }
}

/// Twenty kills at any moment of an export: the next run continues, and the file equals that of an export
/// without kills.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_survives_kills() {
    let app = TestApp::start().await;
    app.vaulted_envelope().await;
    add_decisions(&app).await;
    let (data, file) = (app.data.path(), app.data.path().join("killed.jsonl"));
    let export = || {
        let mut command = Command::new(this_program());
        command
            .env("HOLDFAST_DATA_DIR", data)
            .args(["decisions", "export", "--org", app.org.as_str()])
            .arg(&file)
            .stderr(Stdio::null())
            .stdout(Stdio::null());

        command
    };

    let (mut kills, mut grown) = (0, 0);
    let mut random = fastrand::Rng::with_seed(7);
    while kills < 20 {
        let mut running = export().spawn().unwrap();
        // Half of the kills wait for the file to begin, which takes longer than the others on a slow machine.
        while kills % 2 == 0
            && running.try_wait().unwrap().is_none()
            && std::fs::metadata(&file).map_or(0, |found| found.len()) == 0
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let pause = if kills % 2 == 0 { 5..50 } else { 50..1500 };
        tokio::time::sleep(Duration::from_millis(random.u64(pause))).await;
        if running.try_wait().unwrap().is_some() {
            // It was finished: begin again.
            std::fs::remove_file(&file).unwrap();
            continue;
        }

        running.kill().unwrap();
        running.wait().unwrap();
        kills += 1;
        let size = std::fs::metadata(&file).map_or(0, |found| found.len());
        grown += u64::from(size > 0);
    }

    assert!(grown > 0, "no kill hit an export that was being written");
    assert!(export().status().unwrap().success());

    let whole = exported(&app, "whole.jsonl", &[]);
    let key = app.ledger_key().await;
    let (killed, undisturbed) = (verified(&file, &key), verified(&whole, &key));
    assert_eq!(killed["verdict"], "VALID", "{killed:#}");

    for member in ["decisions", "by_slot", "first_block", "last_block"] {
        assert_eq!(killed[member], undisturbed[member], "{member}");
    }
    assert!(killed["decisions"].as_u64() > Some(30_000), "{killed:#}");

    let path = file.to_str().unwrap();
    let (done, text) = holdfast(&[
        "--json",
        "decisions",
        "replay",
        path,
        "--component",
        "holdfast-lifecycle",
    ]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(done, "{report:#}");
    assert_eq!(
        report["same"], killed["by_slot"]["rules.lifecycle"],
        "{report:#}"
    );

    // One line less.
    let mut fewer = lines(&file);
    let place = fewer.len() / 2;
    let place = (place..)
        .find(|at| fewer[*at]["type"] == "decision")
        .unwrap();
    fewer.remove(place);

    let report = verified(&written(app.data.path(), &fewer), &key);
    assert_eq!(report["verdict"], "NOT VALID");
}
