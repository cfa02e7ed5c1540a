//! Time stamps of seals: an authority confirms the time, or every record states that none did.

use holdfast::domain::organization::OrgSettings;
use holdfast::sealing;
use serde_json::Value;

use crate::support::authority::{AuthorityBehaviour, FakeTimestampAuthority};
use crate::support::{TestApp, pdf};

async fn stamped_by(authority: &FakeTimestampAuthority) -> TestApp {
    let url = authority.url.parse().unwrap();
    TestApp::with(
        |config| config.seal.timestamp_url = Some(url),
        OrgSettings::default(),
    )
    .await
}

/// Returns the details of the ledger entry about vaulting.
async fn stored(app: &TestApp, id: &str) -> Value {
    app.entry(id, "vault.stored").await
}

/// Returns the certificate's statement about the time of the seal.
async fn certified(app: &TestApp, id: &str) -> Value {
    let certificate = format!("/partner/envelopes/{id}/vault/certificate");
    let certificate = app.get(&certificate).await.data(200);
    certificate["provenance"]["trusted_time"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_marks_the_time_of_an_unknown_authority_as_unchecked() {
    let authority =
        FakeTimestampAuthority::start(&["-newkey", "rsa:2048"], AuthorityBehaviour::Right).await;
    let app = stamped_by(&authority).await;
    let id = app.vaulted_envelope().await;
    let time = certified(&app, &id).await;
    assert_eq!(time["status"], "stamped", "{time}");
    assert_eq!(time["checked"], false, "{time}");
    assert_eq!(
        time["statement"],
        "time from an authority that is not checked"
    );
    assert_eq!(stored(&app, &id).await["trusted_time"], time);
}

/// Starts an installation that trusts the roots in `trust`.
async fn trusting(authority: &FakeTimestampAuthority, trust: &std::path::Path) -> TestApp {
    let (url, trust) = (authority.url.parse().unwrap(), trust.to_owned());
    TestApp::with(
        |config| {
            config.seal.timestamp_url = Some(url);
            config.seal.timestamp_trust_file = Some(trust);
        },
        OrgSettings::default(),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_trusted_authority_is_verified() {
    let rsa = ["-newkey", "rsa:3072", "-sha256"];
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    for key in [&rsa[..], &curve[..]] {
        let authority = FakeTimestampAuthority::start(key, AuthorityBehaviour::Right).await;
        let app = trusting(&authority, &authority.root()).await;
        let id = app.vaulted_envelope().await;
        let time = stored(&app, &id).await["trusted_time"].clone();
        assert_eq!(time["status"], "stamped", "{time}");
        assert_eq!(time["checked"], true, "{time}");
        assert_eq!(time.get("statement"), None, "{time}");
        assert_eq!(certified(&app, &id).await, time);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_stamp_without_a_trusted_root_is_refused() {
    let authority =
        FakeTimestampAuthority::start(&["-newkey", "rsa:2048"], AuthorityBehaviour::Right).await;
    let other =
        FakeTimestampAuthority::start(&["-newkey", "rsa:2048"], AuthorityBehaviour::Right).await;
    let app = trusting(&authority, &other.root()).await;
    let id = app.vaulted_envelope().await;
    let time = stored(&app, &id).await["trusted_time"].clone();
    assert_eq!(time["status"], "no trusted time", "{time}");

    let reason = time["reason"].as_str().unwrap();
    assert!(reason.contains("leads to no trusted root"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_file_of_roots_is_refused_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("roots.pem");
    let start = async |text: Option<&str>| {
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }

        let mut config = holdfast::config::Config {
            data_dir: folder.path().join("data"),
            ..holdfast::config::Config::default()
        };
        config.seal.timestamp_trust_file = Some(file.clone());

        holdfast::start::start(config)
            .await
            .err()
            .unwrap()
            .to_string()
    };
    for text in [None, Some(""), Some("no certificate")] {
        let refused = start(text).await;
        assert!(refused.contains("seal.timestamp_trust_file"), "{refused}");
        assert!(refused.contains("roots.pem"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_without_roots_requires_https() {
    let with = |url: &str, trust: Option<&str>| {
        let mut config = holdfast::config::Config::default();
        config.seal.timestamp_url = Some(url.parse().unwrap());
        config.seal.timestamp_trust_file = trust.map(Into::into);
        config.checked().err().map(|error| error.to_string())
    };
    let refused = with("http://tsa.example/", None).unwrap();
    assert!(refused.contains("seal.timestamp_url"), "{refused}");
    assert!(refused.contains("timestamp_trust_file"), "{refused}");
    assert_eq!(with("https://tsa.example/", None), None);
    assert_eq!(with("http://tsa.example/", Some("roots.pem")), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seal_with_a_time_stamp_is_accepted_with_every_kind_of_key() {
    let rsa = ["-newkey", "rsa:3072", "-sha256"];
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    for key in [&rsa[..], &curve[..]] {
        let authority = FakeTimestampAuthority::start(key, AuthorityBehaviour::Right).await;
        let app = stamped_by(&authority).await;
        let id = app.vaulted_envelope().await;
        let sealed = std::fs::read(&app.objects("vault")[0]).unwrap();
        let seal = sealing::verify(&sealed).unwrap();
        let stamp = seal.stamp.unwrap().unwrap();
        assert_eq!(stamp.authority, "CN=Example Time");

        let certificates = app.data.path().join("keys/seal/certificates.pem");
        let said = pdf::stamped_seal(&sealed, &certificates, &authority.root());
        assert_eq!(said["time"]["trusted"], true, "{said}");
        assert_eq!(said["time"]["at"], stamp.at.to_string(), "{said}");
        assert_eq!(said["trusted"], true, "{said}");
        assert_eq!(said["whole"], true, "{said}");

        let time = &stored(&app, &id).await["trusted_time"];
        assert_eq!(time["status"], "stamped");
        assert_eq!(time["at"], stamp.at.to_string());
        assert_eq!(certified(&app, &id).await, *time);

        let types = app.event_types(&id).await;
        assert!(
            !types.contains(&"vault.without_trusted_time".to_owned()),
            "{types:?}"
        );

        let report = app.release_and_verify(&id).await;
        assert_eq!(report["valid"], true, "{report}");

        let sealed = finding(&report, "seal");
        let sealed = sealed["detail"].as_str().unwrap();
        assert!(
            sealed.starts_with("the authoritative copy is sealed by "),
            "{sealed}"
        );

        let said = finding(&report, "trusted time");
        assert!(
            said["detail"]
                .as_str()
                .unwrap()
                .contains("CN=Example Time saw the seal at")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seal_without_a_usable_time_stamp_is_made_and_reported() {
    let cases = [
        (AuthorityBehaviour::Unavailable, "answered with status 503"),
        (AuthorityBehaviour::Garbage, "gave no usable token"),
        (AuthorityBehaviour::OtherBytes, "it is about something else"),
        (AuthorityBehaviour::OtherPurpose, "gave no usable token"),
        (AuthorityBehaviour::Endless, "it is too large"),
    ];

    for (manner, reason) in cases {
        let authority = FakeTimestampAuthority::start(&["-newkey", "rsa:2048"], manner).await;
        let app = stamped_by(&authority).await;
        let id = app.vaulted_envelope().await;
        let time = &stored(&app, &id).await["trusted_time"];
        assert_eq!(time["status"], "no trusted time", "{manner:?}");
        assert_eq!(certified(&app, &id).await, *time, "{manner:?}");

        let told = time["reason"].as_str().unwrap();
        assert!(told.contains(reason), "{manner:?}: {told}");

        let events = app.events(&id).await;
        let event = events
            .iter()
            .find(|event| event["event_type"] == "vault.without_trusted_time");
        assert_eq!(event.unwrap()["data"]["reason"], told);

        let metrics = app.metrics().await;
        assert!(metrics.contains("holdfast_seals_without_trusted_time_total 1"));

        let sealed = std::fs::read(&app.objects("vault")[0]).unwrap();
        assert!(sealing::verify(&sealed).unwrap().stamp.is_none());

        let report = app.release_and_verify(&id).await;
        assert_eq!(report["valid"], true, "{report}");

        let said = finding(&report, "trusted time")["detail"].as_str().unwrap();
        assert!(said.starts_with("no trusted time: "), "{said}");
    }
}

/// An authority that repeats an earlier response is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_time_stamp_is_refused() {
    let authority =
        FakeTimestampAuthority::start(&["-newkey", "rsa:2048"], AuthorityBehaviour::Replayed).await;
    let app = stamped_by(&authority).await;
    let first = app.vaulted_envelope().await;
    assert_eq!(
        stored(&app, &first).await["trusted_time"]["status"],
        "stamped"
    );

    let second = app.vaulted_envelope().await;
    let time = &stored(&app, &second).await["trusted_time"];
    assert_eq!(time["status"], "no trusted time", "{time}");
}

/// Uses an address where no server listens.
#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_authority_delays_vaulting_only_briefly() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let url = url.parse().unwrap();
    let given = |config: &mut holdfast::config::Config| config.seal.timestamp_url = Some(url);
    let app = TestApp::with(given, OrgSettings::default()).await;
    let id = app.vaulted_envelope().await;
    let time = &stored(&app, &id).await["trusted_time"];
    assert!(
        time["reason"].as_str().unwrap().contains("did not answer"),
        "{time}"
    );
}

fn finding<'a>(report: &'a Value, check: &str) -> &'a Value {
    let findings = report["checks"].as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["check"] == check)
        .unwrap()
}
