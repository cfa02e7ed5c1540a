//! Signatures of publishers on components: bundles of Sigstore, provenance and bills of materials.

use std::path::Path;

use axum::http::Method;
use base64::Engine as _;
use holdfast::config::Config;
use holdfast::domain::component::Slot;
use holdfast::domain::hash::sha256;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use super::registry::variant;
use super::state::{rules, state};
use crate::support::sigstore::{ISSUER, MATERIALS, PROVENANCE, Signing, Sigstore, WORKFLOW};
use crate::support::{TestApp, TestResponse, operator_output};

/// Starts a service that trusts these publishers, and bundles of this instance of Sigstore.
async fn trusting(publishers: Value, sigstore: &Sigstore, folder: &Path) -> TestApp {
    let root = sigstore.root_file(folder);
    let change = |config: &mut Config| {
        config.components.trusted = serde_json::from_value(publishers).unwrap();
        config.components.sigstore_root_file = Some(root);
    };
    TestApp::with(change, OrgSettings::default()).await
}

fn release(slots: &[&str]) -> Value {
    json!({ "release": { "identity": WORKFLOW, "issuer": ISSUER, "slots": slots } })
}

async fn uploaded(app: &TestApp, version: &str, bytes: &[u8], bundles: &str) -> TestResponse {
    let texts = [
        ("name", "oak-rules"),
        ("version", version),
        ("bundles", bundles),
    ];
    app.upload_signed_component(&app.token("compliance"), bytes, &texts)
        .await
}

/// The upload is refused with one reason, and nothing is kept.
fn refused(answer: &TestResponse, why: &str) {
    assert_eq!(answer.status, 422, "{}", answer.text());
    let reasons = answer.json()["details"].clone();
    assert_eq!(reasons[0]["code"], "signature", "{reasons:#}");
    let message = reasons[0]["message"].as_str().unwrap();
    assert!(message.contains(why), "{why}: {message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_is_admitted_with_a_bundle_of_its_publisher() {
    let bytes = variant(Slot::Compliance, "signed with Sigstore");
    let provenance = json!({ "buildDefinition": { "buildType": "https://oak.example/build" } });
    let sigstore = Sigstore::signing(&[
        Signing::of(&bytes),
        Signing::of(&bytes).saying(PROVENANCE, provenance.clone()),
        Signing::of(&bytes).saying(MATERIALS, json!({ "bomFormat": "CycloneDX" })),
    ]);

    let folder = tempfile::tempdir().unwrap();
    let app = trusting(release(&["rules.compliance"]), &sigstore, folder.path()).await;
    let officer = app.token("compliance");
    let [signature, provenance_bundle, materials] = sigstore.bundles.as_slice() else {
        panic!("three bundles were asked for");
    };

    refused(
        &uploaded(&app, "1.0.0", &bytes, "").await,
        "or `bundles` of Sigstore",
    );

    // A bill of materials alone does not release a component.
    let alone = uploaded(&app, "1.0.0", &bytes, &materials.to_string()).await;
    refused(&alone, "bundle 1 is no release");
    let lines = format!("{provenance_bundle}\n{materials}\n");
    let component = uploaded(&app, "1.0.0", &bytes, &lines).await.data(201);
    assert_eq!(component["signed_by"], "release");

    let path = format!(
        "/components/{}/attestations",
        component["component_id"].as_str().unwrap()
    );
    let kept = app.get_with_bearer(&officer, &path).await.data(200);
    let [made, of] = kept.as_array().unwrap().as_slice() else {
        panic!("two bundles are kept: {kept:#}");
    };
    assert_eq!(
        (&made["publisher"], &made["identity"], &made["issuer"]),
        (&json!("release"), &json!(WORKFLOW), &json!(ISSUER))
    );
    assert_eq!(made["predicate_type"], PROVENANCE);
    assert_eq!(made["statement"]["predicate"], provenance);

    assert_eq!(&made["bundle"], provenance_bundle);
    assert!(made["logged_at"].is_string(), "{made:#}");
    assert_eq!(of["statement"]["predicate"]["bomFormat"], "CycloneDX");

    let history = app.get_with_bearer(&officer, "/component-ledger").await;
    let history = history.data(200);
    let entry = history.as_array().unwrap().last().unwrap();
    assert_eq!(entry["details"]["attestations"][0]["publisher"], "release");
    assert_eq!(
        entry["details"]["attestations"][0]["predicate_type"],
        PROVENANCE
    );

    // One object, not in lines.
    let next = uploaded(&app, "1.0.1", &bytes, &format!("{signature:#}")).await;
    assert_eq!(next.data(201)["signed_by"], "release");

    // Bundles come with the first upload of a version.
    let again = uploaded(&app, "1.0.0", &bytes, &signature.to_string()).await;
    assert!(again.error(409).contains("was uploaded before"));

    // Another organization sees nothing.
    app.get_with_bearer(&app.other_admin(), &path)
        .await
        .error(404);
    let missing = "/components/cmp_01jdk7m3e8f4x9s2w5v6b0c1da/attestations";
    app.get_with_bearer(&officer, missing).await.error(404);
}

/// Everything that makes a bundle worthless, by name.
#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_proves_nothing_is_refused_by_name() {
    let [bytes, other] = ["one", "other"].map(|note| variant(Slot::Compliance, note));
    let stranger = "https://github.com/oak/rules/.github/workflows/other.yml@refs/heads/main";
    let sigstore = Sigstore::signing(&[
        Signing::of(&bytes),
        Signing::of(&bytes).by(stranger),
        Signing::of(&other),
        Signing::of(&other).saying(PROVENANCE, json!({})),
        Signing::of(&bytes).with_key(),
    ]);

    let elsewhere = Sigstore::signing(&[Signing::of(&bytes)]);
    let folder = tempfile::tempdir().unwrap();
    let app = trusting(release(&[]), &sigstore, folder.path()).await;
    let [good, by_stranger, of_other, about_other, with_key] = sigstore.bundles.as_slice() else {
        panic!("five bundles were asked for");
    };

    let changed = |change: &dyn Fn(&mut Value)| {
        let mut bundle = good.clone();
        change(&mut bundle);
        bundle
    };
    let entry = |bundle: &mut Value| bundle["verificationMaterial"]["tlogEntries"][0].take();
    let unlogged = changed(&|bundle| {
        bundle["verificationMaterial"]["tlogEntries"] = json!([]);
    });

    let unproven = changed(&|bundle| {
        let mut logged = entry(bundle);
        logged.as_object_mut().unwrap().remove("inclusionProof");
        bundle["verificationMaterial"]["tlogEntries"][0] = logged;
    });
    let of_another_log = changed(&|bundle| {
        let theirs = elsewhere.bundles[0]["verificationMaterial"]["tlogEntries"][0].clone();
        bundle["verificationMaterial"]["tlogEntries"][0] = theirs;
    });

    let of_another_entry = changed(&|bundle| {
        let other = of_other["verificationMaterial"]["tlogEntries"][0].clone();
        bundle["verificationMaterial"]["tlogEntries"][0] = other;
    });
    let of_another_authority = changed(&|bundle| {
        let theirs = elsewhere.bundles[0]["verificationMaterial"]["x509CertificateChain"].clone();
        bundle["verificationMaterial"]["x509CertificateChain"] = theirs;
    });

    let promised = changed(&|bundle| {
        let mut logged = entry(bundle);
        let time: i64 = logged["integratedTime"].as_str().unwrap().parse().unwrap();
        logged["integratedTime"] = json!((time + 5).to_string());
        bundle["verificationMaterial"]["tlogEntries"][0] = logged;
    });
    for (bundle, why) in [
        (
            by_stranger,
            "other.yml@refs/heads/main of https://token.actions",
        ),
        (of_other, "bundle 1: it is about another file"),
        (about_other, "bundle 1: it is about another file"),
        (
            with_key,
            "bundle 1: it is not signed with a key of a trusted publisher",
        ),
        (
            &unlogged,
            "bundle 1: it has no proof of an entry in a transparency log",
        ),
        (
            &unproven,
            "bundle 1: it has no proof of an entry in a transparency log",
        ),
        (&of_another_log, "No log key valid"),
        (&of_another_entry, "bundle 1: it is about another file"),
        (&promised, "invalid inclusion promise"),
        (&elsewhere.bundles[0], "No log key valid"),
        (&of_another_authority, "certificate chain is invalid"),
        (
            &json!({ "mediaType": "text/plain" }),
            "bundle 1: it is no bundle of Sigstore",
        ),
    ] {
        refused(
            &uploaded(&app, "1.0.0", &bytes, &bundle.to_string()).await,
            why,
        );
    }

    let broken = uploaded(&app, "1.0.0", &bytes, "{").await.error(400);
    assert!(broken.starts_with("bundles: "), "{broken:#}");

    let many = vec![good.to_string(); 11].join("\n");
    let many = uploaded(&app, "1.0.0", &bytes, &many).await.error(400);
    assert!(many.contains("more than 10"), "{many:#}");

    let officer = app.token("compliance");
    let list = app.get_with_bearer(&officer, "/components").await.json();
    let own = list["data"].as_array().unwrap().iter();
    assert!(
        own.clone().all(|one| one["name"] != "oak-rules"),
        "{list:#}"
    );

    uploaded(&app, "1.0.0", &bytes, &good.to_string())
        .await
        .data(201);
}

/// The manifest of another component with its bundle is no signature of this component.
#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_is_that_of_the_component() {
    let [bytes, other] = ["one", "other"].map(|note| variant(Slot::Compliance, note));
    let manifest = |layer: &[u8]| {
        let layer = format!("sha256:{}", sha256(layer));
        let config = "application/vnd.wasm.config.v0+json";
        let layers = json!([{ "mediaType": "application/wasm", "digest": layer, "size": 1 }]);
        json!({
            "schemaVersion": 2, "layers": layers,
            "config": { "mediaType": config, "digest": layer, "size": 2 },
        })
        .to_string()
    };

    let [own, of_other] = [&bytes, &other].map(|layer| manifest(layer));
    let state = "version: 1\n";
    let signed = [own.as_bytes(), of_other.as_bytes(), state.as_bytes()];
    let sigstore = Sigstore::signing(&signed.map(Signing::of));
    let folder = tempfile::tempdir().unwrap();
    let app = trusting(release(&[]), &sigstore, folder.path()).await;
    let upload = async |manifest: &str, at: usize| {
        let bundle = sigstore.bundles[at].to_string();
        let texts = [
            ("name", "oak-rules"),
            ("version", "1.0.0"),
            ("bundles", bundle.as_str()),
            ("manifest", manifest),
        ];

        let officer = app.token("compliance");
        app.upload_signed_component(&officer, &bytes, &texts).await
    };

    let why = "the manifest is that of another component";
    refused(&upload(&of_other, 1).await, why);
    refused(&upload(state, 2).await, why);
    refused(&upload(&own, 1).await, "bundle 1: it is about another file");
    let padded = own.replacen('{', &format!("{{\"pad\":\"{}\",", "x".repeat(65_536)), 1);
    refused(&upload(&padded, 0).await, why);
    assert_eq!(upload(&own, 0).await.data(201)["signed_by"], "release");
}

/// A publisher answers for the slots that the settings name; a key in PEM is a publisher, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_answers_for_its_slots() {
    let bytes = variant(Slot::Compliance, "of another slot");
    let sigstore = Sigstore::signing(&[Signing::of(&bytes), Signing::of(&bytes).with_key()]);
    let folder = tempfile::tempdir().unwrap();
    let mut publishers = release(&["rules.lifecycle"]);
    publishers["counsel"] = json!({ "key": sigstore.public_key });
    let app = trusting(publishers, &sigstore, folder.path()).await;
    let by_release = uploaded(&app, "1.0.0", &bytes, &sigstore.bundles[0].to_string()).await;
    refused(
        &by_release,
        "release may not sign components of rules.compliance",
    );

    let by_counsel = uploaded(&app, "1.0.0", &bytes, &sigstore.bundles[1].to_string()).await;
    assert_eq!(by_counsel.data(201)["signed_by"], "counsel");
}

/// Where no signature is needed, provenance is kept, even from an identity that is not trusted.
#[tokio::test(flavor = "multi_thread")]
async fn provenance_is_kept_where_no_signature_is_needed() {
    let bytes = variant(Slot::Compliance, "with provenance");
    let sigstore = Sigstore::signing(&[Signing::of(&bytes).saying(PROVENANCE, json!({}))]);
    let folder = tempfile::tempdir().unwrap();
    let app = trusting(json!({}), &sigstore, folder.path()).await;
    let component = uploaded(&app, "1.0.0", &bytes, &sigstore.bundles[0].to_string()).await;
    let component = component.data(201);
    assert_eq!(component["signed_by"], Value::Null);

    let path = format!(
        "/components/{}/attestations",
        component["component_id"].as_str().unwrap()
    );
    let kept = app.get_with_bearer(&app.token("compliance"), &path).await;
    let kept = kept.data(200);
    assert_eq!(kept[0]["publisher"], Value::Null);
    assert_eq!(kept[0]["identity"], WORKFLOW);
}

/// States are signed with keys, and with bundles of people who have no key of their own.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_signed_with_bundles() {
    // The state names components by their hash, which is known only after the upload.
    let first = TestApp::start().await;
    let officer = first.token("compliance");
    let component = rules(&first, &officer, "1.0.0").await;
    let wanted = state(&first, 1, &component);
    let [ada, ben] = ["https://oak.example/ada", "https://oak.example/ben"];
    let sigstore = Sigstore::signing(&[
        Signing::of(wanted.as_bytes()).by(ada),
        Signing::of(wanted.as_bytes()).by(ben),
        Signing::of(wanted.as_bytes())
            .by(ben)
            .saying(PROVENANCE, json!({})),
        Signing::of(b"version: 1\n").by(ben),
        Signing::of(wanted.as_bytes()).by("https://oak.example/stranger"),
    ]);

    let root = sigstore.root_file(first.data.path());
    let app = first
        .another_node(|config| config.components.sigstore_root_file = Some(root))
        .await;
    let person = |identity| json!({ "identity": identity, "issuer": ISSUER });
    let policy = json!({
        "reviews_required": 1,
        "state": { "keys": { "ada": person(ada), "ben": person(ben) }, "threshold": 2 },
    });
    let set = app.as_bearer(
        Method::PUT,
        app.web_admin(),
        "/component-policy",
        policy.clone(),
    );
    assert_eq!(set.await.data(200)["state"], policy["state"]);

    let sent = async |bundles: &[&Value]| {
        let body = json!({ "state": wanted, "bundles": bundles });
        app.post_with_bearer(&officer, "/component-state", body)
            .await
    };

    let [by_ada, by_ben, statement, of_other, by_stranger] =
        [0, 1, 2, 3, 4].map(|at| &sigstore.bundles[at]);
    for too_few in [
        vec![by_ada],
        vec![by_ada, by_ada],
        vec![by_ada, statement],
        vec![by_ada, of_other],
        vec![by_ada, by_stranger],
    ] {
        let refused = sent(&too_few).await.error(409);
        assert!(refused.starts_with("1 of 2"), "{refused}");
    }

    let view = sent(&[by_ada, by_ben]).await.data(200);
    assert_eq!(view["signed_by"], json!(["ada", "ben"]));
    assert_eq!(view["components"][0]["status"], "requested");

    let history = app
        .get_with_bearer(&officer, "/component-ledger")
        .await
        .data(200);
    let mut set = history.as_array().unwrap().iter();
    let set = set.rfind(|entry| entry["action"] == "state.set").unwrap();
    let signature = &set["details"]["signatures"][0];
    assert_eq!(
        (&signature["name"], &signature["identity"]),
        (&json!("ada"), &json!(ada))
    );

    let bundle: Value = serde_json::from_str(signature["signature"].as_str().unwrap()).unwrap();
    assert_eq!(&bundle, by_ada);

    // Keys of no use, and one key in two forms.
    let pem = |der: &[u8]| {
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
    };
    let key = [7; 32];
    let in_der = [
        b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00".as_slice(),
        &key,
    ]
    .concat();

    let person = |key: &str| json!({ "key": key });
    for (keys, why) in [
        (
            json!({ "ada": person(&pem(&[0; 3])) }),
            "ada has a key of no use",
        ),
        (
            json!({ "ada": hex::encode(key), "ben": person(&pem(&in_der)) }),
            "ben has the key of another",
        ),
    ] {
        let policy = json!({ "reviews_required": 1, "state": { "keys": keys } });
        let set = app.as_bearer(Method::PUT, app.web_admin(), "/component-policy", policy);
        let refused = set.await;
        assert!(
            refused.status == 422 && refused.text().contains(why),
            "{}",
            refused.text()
        );

        let change = format!(
            "component_changes={}",
            json!({ "reviews_required": 1, "state": { "keys": keys } })
        );
        let output = operator_output(
            first.data.path(),
            &["org", "set", app.org.as_str(), &change],
        );
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && told.contains(why), "{told}");
    }
}
