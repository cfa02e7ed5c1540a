//! The log of all custody ledgers, from the point of view of an external monitor.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ct_merkle::{InclusionProof, RootHash};
use holdfast::domain::checkpoint::VerifierKey;
use holdfast::domain::merkle::{TileId, TileReader};
use serde_json::{Value, json};

use crate::support::{TestApp, operator_output};

async fn head(app: &TestApp, query: &str) -> Value {
    app.get_as("", &format!("/ledger/head{query}"))
        .await
        .data(200)
}

fn bytes(hex_text: &Value) -> Vec<u8> {
    hex::decode(hex_text.as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_entry_in_the_log_is_accepted_by_independent_verifiers() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let custody = app.custody(&id).await;
    let log = &custody["log"];
    let key = VerifierKey::parse(log["public_key"].as_str().unwrap()).unwrap();
    let checkpoint = key.open(log["checkpoint"].as_str().unwrap()).unwrap();
    let root = RootHash::<sha2_next::Sha256>::new(checkpoint.root.into(), checkpoint.size);

    let entries = custody["entries"].as_array().unwrap();
    let inclusion = log["inclusion"].as_array().unwrap();
    assert!(entries.len() >= 6);
    assert_eq!(entries.len(), inclusion.len());

    for (entry, place) in entries.iter().zip(inclusion) {
        let proof: Vec<u8> = place["proof"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(bytes)
            .collect();
        let proof = InclusionProof::try_from_bytes(proof).unwrap();

        // RFC 8785: members in sorted order, without spaces.
        let leaf =
            json!({ "entry": entry["hash"], "envelope_id": id, "sequence": entry["sequence"] });
        let leaf = leaf.to_string().into_bytes();
        let index = place["leaf_index"].as_u64().unwrap();
        root.verify_inclusion(&leaf, index, &proof).unwrap();
        let wrong = leaf.iter().map(|byte| byte ^ 1).collect::<Vec<u8>>();
        assert!(root.verify_inclusion(&wrong, index, &proof).is_err());
    }

    // The certificate contains the previous head.
    let certificate = format!("/partner/envelopes/{id}/vault/certificate");
    let certificate = app.get(&certificate).await.data(200);
    let before = key
        .open(certificate["ledger_checkpoint"].as_str().unwrap())
        .unwrap();
    assert!(before.size < checkpoint.size);

    let proof = head(&app, &format!("?since={}", before.size)).await;
    assert_eq!(proof["consistency"]["from"], before.size);

    // Checkpoints are in the object store and never overwritten.
    let kept = app.objects("ledger/checkpoints");
    let name = format!("{:020}", checkpoint.size);
    let kept = kept.iter().find(|path| path.ends_with(&name)).unwrap();
    assert_eq!(std::fs::read_to_string(kept).unwrap(), log["checkpoint"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_public_tiles_reproduce_the_root_of_the_log_head() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    app.custody(&id).await;
    let head = head(&app, "").await;
    let size = head["tree_size"].as_u64().unwrap();
    assert_eq!(head["consistency"], Value::Null);

    let note = app.get_as("", "/ledger/checkpoint").await;
    assert_eq!(note.text(), head["checkpoint"]);

    let key = VerifierKey::parse(head["public_key"].as_str().unwrap()).unwrap();
    let checkpoint = key.open(&note.text()).unwrap();
    assert_eq!(hex::encode(checkpoint.root), head["root_hash"]);
    assert!(note.text().contains(&STANDARD.encode(checkpoint.root)));
    assert_eq!(checkpoint.origin, "127.0.0.1:8080/api/v2/ledger");

    let tile = app
        .get_as("", &format!("/ledger/tile/0/000.p/{size}"))
        .await;
    assert_eq!(tile.status, 200);

    let mut tiles = TileReader::default();
    for (index, leaf) in tile.bytes.chunks(32).enumerate() {
        tiles
            .append(index as u64, leaf.try_into().unwrap())
            .unwrap();
    }

    assert_eq!(tiles.get(TileId::of_leaf(0)).unwrap().len() as u64, size);
    assert_eq!(hex::encode(tiles.root(size).unwrap()), head["root_hash"]);

    for missing in [
        "0/000",
        "0/001.p/1",
        "1/000.p/1",
        "0/x",
        "a/000",
        "0/000.p/255",
    ] {
        let answer = app.get_as("", &format!("/ledger/tile/{missing}")).await;
        assert_eq!(answer.error(404), "Tile not found", "{missing}");
    }

    let beyond = app
        .get_as("", &format!("/ledger/head?since={}", size + 1000))
        .await;
    assert!(beyond.error(404).contains("entries, not"));

    app.get_as("", "/ledger/head?since=-1").await.error(400);
}

/// A node with another key must not sign the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_another_log_key_does_not_extend_the_log() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    app.custody(&id).await;
    let before = head(&app, "").await["tree_size"].clone();
    assert_eq!(app.ready().await["ledger"], true);

    let other = "update ledger_log set public_key = $1";
    app.change(other, "127.0.0.1:8080/api/v2/ledger+00000000+AAAA")
        .await;
    let link = format!("/partner/envelopes/{id}/vault/copy/signed-url");
    app.get(&link).await.data(200);
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    assert_eq!(head(&app, "").await["tree_size"], before);
    assert_eq!(app.count("ledger_pending").await, 1);
    assert_eq!(app.ready().await["ledger"], false);
}

/// Fills more than one tile, in batches.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_several_tiles_is_consistent_with_each_of_its_heads() {
    let app = TestApp::without_auto_vault().await;
    let mut heads = Vec::new();
    let body = || {
        let mut body = crate::support::envelope_body(&Value::Null);
        body["envelope_kind"] = "paper".into();
        body
    };
    for _ in 0..3 {
        let mut last = String::new();
        for _ in 0..150 {
            let created = app.post("/partner/envelopes", body()).await.data(201);
            last = created["envelope_id"].as_str().unwrap().to_owned();
        }

        let custody = app.custody(&last).await;
        assert_eq!(custody["log"]["inclusion"].as_array().unwrap().len(), 1);

        heads.push(head(&app, "").await);
    }

    let now = heads.pop().unwrap();
    assert!(now["tree_size"].as_u64().unwrap() >= 450);

    let key = VerifierKey::parse(now["public_key"].as_str().unwrap()).unwrap();
    let root = key.open(now["checkpoint"].as_str().unwrap()).unwrap();
    let root = RootHash::<sha2_next::Sha256>::new(root.root.into(), root.size);
    for then in heads {
        let then = key.open(then["checkpoint"].as_str().unwrap()).unwrap();
        let proof = head(&app, &format!("?since={}", then.size)).await;
        let nodes = proof["consistency"]["proof"].as_array().unwrap();
        let nodes: Vec<u8> = nodes.iter().flat_map(bytes).collect();
        let nodes = ct_merkle::ConsistencyProof::try_from_bytes(nodes).unwrap();
        let then = RootHash::new(then.root.into(), then.size);
        root.verify_consistency(&then, &nodes).unwrap();
    }

    let tile = app.get_as("", "/ledger/tile/0/000").await;
    assert_eq!(tile.bytes.len(), 256 * 32);

    let above = app.get_as("", "/ledger/tile/1/000.p/1").await;
    assert_eq!(above.bytes.len(), 32);
}

/// Runs `holdfast verify` with further arguments; returns whether the bundle is valid, and the
/// checks of the log.
async fn said_of_the_log(bundle: &str, more: &[&str]) -> (bool, Vec<(String, bool, String)>) {
    let arguments = [&["verify", bundle], more].concat();
    let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    let nothing = tempfile::tempdir().unwrap();
    let output = tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        operator_output(nothing.path(), &arguments)
    });
    let output = output.await.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report["checks"].as_array().unwrap();

    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let about = findings.iter().filter(|finding| {
        let check = finding["check"].as_str().unwrap();
        ["log", "head", "certified head"].contains(&check)
    });
    let told = about.map(|finding| {
        (
            text(&finding["check"]),
            finding["ok"] == true,
            text(&finding["detail"]),
        )
    });

    (output.status.success(), told.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_is_verified_against_a_saved_log_head() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let release = format!("/partner/envelopes/{id}/vault-out");
    app.post(&release, crate::support::release_form())
        .await
        .data(200);
    let zip = app
        .get_with_bearer(&app.admin(), &format!("/envelopes/{id}/bundle"))
        .await;
    assert_eq!(zip.status, 200);

    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let bundle = file("bundle.zip", &zip.bytes);
    let (valid, told) = said_of_the_log(&bundle, &[]).await;
    assert!(!valid, "{told:?}");
    assert!(told[0].2.contains("by its own word"), "{told:?}");
    assert_eq!((told[1].0.as_str(), told[1].1), ("certified head", true));

    // The log grows, and a later head proves consistency with the bundle's head.
    let size = head(&app, "").await["tree_size"].as_u64().unwrap();
    let other = app.vaulted_envelope().await;
    app.custody(&other).await;
    let later = app.get_as("", &format!("/ledger/head?since={size}")).await;
    let later = file("later.json", &later.bytes);
    let (valid, told) = said_of_the_log(&bundle, &["--head", &later]).await;
    assert!(valid, "{told:?}");
    assert!(!told[0].2.contains("by its own word"), "{told:?}");
    assert!(told[1].2.contains("goes on from the bundle's"), "{told:?}");

    let key = head(&app, "").await["public_key"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(said_of_the_log(&bundle, &["--key", &key]).await.0);

    // A head without that proof, a head of another log, and another key.
    let unproved = file("unproved.json", &app.get_as("", "/ledger/head").await.bytes);
    let (valid, told) = said_of_the_log(&bundle, &["--head", &unproved]).await;
    assert!(
        !valid && told[1].2.contains(&format!("?since={size}")),
        "{told:?}"
    );

    let elsewhere = TestApp::with(
        |config| config.public_url = Some("https://elsewhere.example".parse().unwrap()),
        holdfast::domain::organization::OrgSettings::default(),
    )
    .await;
    let mut body = crate::support::envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();

    let foreign = elsewhere.post("/partner/envelopes", body).await.data(201);
    elsewhere
        .custody(foreign["envelope_id"].as_str().unwrap())
        .await;
    let foreign = file(
        "foreign.json",
        &elsewhere.get_as("", "/ledger/head").await.bytes,
    );
    let (valid, told) = said_of_the_log(&bundle, &["--head", &foreign]).await;
    assert!(!valid && told[0].2.contains("is of the log"), "{told:?}");

    // A reader with an older head detects that the history was rewritten.
    app.rewrite_ledger(&other, 1, "somebody else").await;
    app.rebuild_log().await;
    let again = app
        .get_with_bearer(&app.admin(), &format!("/envelopes/{id}/bundle"))
        .await;
    let again = file("again.zip", &again.bytes);
    let (valid, told) = said_of_the_log(&again, &["--head", &later]).await;
    assert!(!valid, "{told:?}");
    assert_eq!((told[1].0.as_str(), told[1].1), ("head", false), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_sees_growth_and_detects_rewritten_history() {
    let app = TestApp::start().await;
    let url = format!("{}/api/v2", app.listen().await);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("head.json");
    let state = state.to_str().unwrap();
    let look = || async {
        let arguments = ["ledger", "monitor", "--url", &url, "--state", state];
        let (data, arguments) = (folder.path().to_owned(), arguments.map(str::to_owned));
        let output = tokio::task::spawn_blocking(move || {
            operator_output(&data, &arguments.each_ref().map(String::as_str))
        });
        let output = output.await.unwrap();

        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };

    let id = app.vaulted_envelope().await;
    app.custody(&id).await;
    let (ok, first) = look().await;
    assert!(ok, "{first}");
    assert_eq!(look().await, (true, first.clone()));

    let id = app.vaulted_envelope().await;
    app.custody(&id).await;
    let (ok, grown) = look().await;
    assert!(ok && grown != first, "{grown}");
    assert_eq!(app.ready().await["ledger"], true);

    let seen = std::fs::read_to_string(state).unwrap();

    // The operator rewrites an entry and signs a log that contains it from the start.
    app.rewrite_ledger(&id, 1, "somebody else").await;
    app.rebuild_log().await;
    app.vaulted_envelope().await;
    let (ok, refused) = look().await;
    assert!(!ok && refused.contains("NOT CONSISTENT"), "{refused}");
    assert_eq!(
        std::fs::read_to_string(state).unwrap(),
        seen,
        "the evidence stays"
    );

    // The published checkpoints reveal it too: the node reports itself as not ready.
    assert_eq!(app.ready().await["ledger"], false);

    // A truncated log is shorter than its published head.
    app.execute("delete from ledger_entry").await;
    app.rebuild_log().await;
    let (ok, refused) = look().await;
    assert!(
        !ok && refused.contains("fewer entries than before"),
        "{refused}"
    );
}
