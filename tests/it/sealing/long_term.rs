//! Seals that outlive their certificates: validation data, time stamps over documents, and their renewal.

use std::io::{Cursor, Read as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use holdfast::config::{Config, SealSettings};
use holdfast::domain::organization::OrgSettings;
use holdfast::domain::signature::DigestAlgorithm;
use holdfast::store::chores;
use serde_json::Value;

use super::seals::{authoritative_copy, paper};
use crate::support::authority::{FakeTimestampAuthority, with_clock};
use crate::support::revocation::{FakeCertificateAuthority, RevocationBehaviour};
use crate::support::{TestApp, operator_output, pdf, release_form, verifier_output_at};

const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Authorities of an operator: one certifies the sealing key, the other the time stamping authority.
struct World {
    seals: FakeCertificateAuthority,
    times: FakeCertificateAuthority,
    stamps: FakeTimestampAuthority,
    folder: tempfile::TempDir,
}

impl World {
    async fn new(seals: RevocationBehaviour, times: RevocationBehaviour) -> Self {
        let seals = FakeCertificateAuthority::start("Example Root", seals).await;
        let times = FakeCertificateAuthority::start("Example Time Root", times).await;
        let stamps = FakeTimestampAuthority::certified_by(&times, 3650).await;
        let folder = tempfile::tempdir().unwrap();
        Self {
            seals,
            times,
            stamps,
            folder,
        }
    }

    /// Returns the settings of the operator, with a sealing key for `days`.
    fn settings(&self, purpose: &str, days: u32) -> SealSettings {
        let (key, certificates) = self.seals.certify("Example Vault", purpose, days);
        SealSettings {
            key_file: Some(key),
            certificates_file: Some(certificates),
            timestamp_url: Some(self.stamps.url.parse().unwrap()),
            timestamp_trust_file: Some(self.trust(&[&self.times])),
            ..SealSettings::default()
        }
    }

    /// Writes the roots of authorities to a file.
    fn trust(&self, authorities: &[&FakeCertificateAuthority]) -> PathBuf {
        let roots = authorities.iter();
        let roots = roots.map(|authority| std::fs::read(authority.root()).unwrap());
        let file = self
            .folder
            .path()
            .join(format!("{}.pem", authorities.len()));
        std::fs::write(&file, roots.collect::<Vec<_>>().concat()).unwrap();
        file
    }

    async fn app(&self, purpose: &str) -> TestApp {
        let seal = self.settings(purpose, 730);
        TestApp::with(
            |config| {
                config.seal = seal;
                quick(config);
            },
            OrgSettings::default(),
        )
        .await
    }
}

/// Permits the addresses of the tests, and looks often.
fn quick(config: &mut Config) {
    config.providers.allow_insecure = true;
    config.sweep_interval = Some(Duration::from_millis(50));
}

/// Starts the service anew with its clock ahead. It does not search for orphaned objects: by that clock, files that are just
/// being written are old.
async fn as_of(app: &TestApp, ahead: Duration, settings: SealSettings) -> TestApp {
    let then = app.service.core.clock.now() + ahead;
    chores::claim(&app.store, "orphans", then, then + YEAR)
        .await
        .unwrap();
    app.as_of_with(ahead, |config| {
        config.seal = settings;
        quick(config);
    })
    .await
}

/// Returns what the envelope's seal proves.
async fn seal(app: &TestApp, id: &str) -> Value {
    let path = format!("/partner/envelopes/{id}/compliance");
    app.get(&path).await.data(200)["seal"].clone()
}

/// Waits until the seal is as wanted; fails after a minute.
async fn wait_for(app: &TestApp, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let seal = seal(app, id).await;
        if wanted(&seal) {
            return seal;
        }
        assert!(Instant::now() < deadline, "{seal}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the details of the ledger entries about additions to the seal.
async fn extensions(app: &TestApp, id: &str) -> Vec<Value> {
    let custody = app.custody(id).await;
    let entries = custody["entries"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["action"] == "seal.extended")
        .map(|entry| entry["details"].clone())
        .collect()
}

/// Returns the authoritative copy with the updates that an entry of the ledger names.
fn with_updates(app: &TestApp, id: &str, extension: &Value) -> Vec<u8> {
    let hash = extension["updates_hash"].as_str().unwrap();
    let objects = app.objects("certificates");
    let updates = objects.iter().find(|path| path.ends_with(hash)).unwrap();
    [authoritative_copy(app, id), std::fs::read(updates).unwrap()].concat()
}

fn passes(report: &Value) {
    assert_eq!(report["verdict"], "AdESPassed.OK", "{report}");
    assert_eq!(report["permitted"], true, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seal_becomes_provable_soon_after_vault_in() {
    let world = World::new(RevocationBehaviour::Right, RevocationBehaviour::ListOnly).await;
    let app = world.app("seals").await;
    let id = app.vaulted_envelope().await;
    let before = authoritative_copy(&app, &id);

    let state = wait_for(&app, &id, |seal| seal["level"] == "B-LTA").await;
    assert_eq!(state["reason"], Value::Null);
    assert!(state["provable_until"].is_string(), "{state}");
    assert_eq!(authoritative_copy(&app, &id), before, "never changes");

    let [extension] = extensions(&app, &id).await.try_into().unwrap();
    assert_eq!(extension["level"], "B-LTA");
    assert_eq!(extension["replaced_hash"], Value::Null);
    // The sealing certificate by its responder, that of the time stamping authority by its list.
    assert_eq!(extension["answers"], 1, "{extension}");
    assert_eq!(extension["lists"], 1, "{extension}");
    assert_eq!(extension["time_stamp"]["digest"], "sha256");

    let whole = with_updates(&app, &id, &extension);
    let said = pdf::signatures(&whole);
    assert!(said.contains("Signature is Valid."), "{said}");

    // An answer serves every record until it ends.
    let asked = world.seals.asked();
    let second = app.vaulted_envelope().await;
    wait_for(&app, &second, |seal| seal["level"] == "B-LTA").await;
    assert_eq!(world.seals.asked(), asked);

    let report = app.release_and_verify(&id).await;
    assert_eq!(report["valid"], true, "{report}");
    let checks = report["checks"].as_array().unwrap();
    let check = checks
        .iter()
        .find(|check| check["check"] == "long-term seal");
    assert_eq!(check.unwrap()["ok"], true, "{report}");
}

/// Five years later the sealing certificate has ended. After ten the time stamping authority's has too, and another one
/// with another digest algorithm has confirmed the seal half a year before.
#[tokio::test(flavor = "multi_thread")]
async fn a_seal_is_provable_after_five_and_after_fifteen_years() {
    let world = World::new(RevocationBehaviour::Right, RevocationBehaviour::Right).await;
    let app = world.app("seals").await;
    let id = app.vaulted_envelope().await;
    wait_for(&app, &id, |seal| seal["level"] == "B-LTA").await;
    let [first] = extensions(&app, &id).await.try_into().unwrap();
    let whole = with_updates(&app, &id, &first);

    let roots = [world.seals.root(), world.times.root()];
    let lists = [world.times.list_of(5 * YEAR)];
    passes(&pdf::long_term(&whole, 5 * YEAR, &roots, &lists, None));
    let said = pdf::signatures_at(&whole, 5 * YEAR);
    assert!(said.contains("Signature is Valid."), "{said}");

    // Nothing is due after nine years, and a new time stamp in the last half year.
    let ahead = 9 * YEAR + 200 * DAY;
    let new_root = FakeCertificateAuthority::start_with(
        "Later Time Root",
        "sha512",
        RevocationBehaviour::Right,
    )
    .await;
    let new_stamps = FakeTimestampAuthority::certified_by(&new_root, 30 * 365).await;
    for authority in [&world.seals, &world.times, &new_root] {
        authority.advance(ahead);
    }
    new_stamps.advance(ahead);

    let mut settings = world.settings("seals", 30 * 365);
    settings.timestamp_url = Some(new_stamps.url.parse().unwrap());
    settings.timestamp_trust_file = Some(world.trust(&[&world.times, &new_root]));
    settings.timestamp_digest = Some(DigestAlgorithm::Sha512);
    let later = as_of(&app, ahead, settings).await;
    let until = first["time_stamp"]["ends_at"].clone();
    wait_for(&later, &id, |seal| seal["provable_until"] != until).await;

    let [kept, second] = extensions(&later, &id).await.try_into().unwrap();
    assert_eq!(
        kept, first,
        "the ledger keeps the digest of what was replaced"
    );
    assert_eq!(second["replaced_hash"], first["updates_hash"]);
    assert_eq!(second["level"], "B-LTA");
    assert_eq!(second["time_stamp"]["digest"], "sha512");
    let renewed = with_updates(&app, &id, &second);
    assert!(renewed.starts_with(&whole));

    let roots = [world.seals.root(), world.times.root(), new_root.root()];
    let lists = [new_root.list_of(15 * YEAR)];
    for distrusted in [None, Some(("sha256", 2040))] {
        passes(&pdf::long_term(
            &renewed,
            15 * YEAR,
            &roots,
            &lists,
            distrusted,
        ));
    }
    let said = pdf::signatures_at(&renewed, 15 * YEAR);
    assert!(said.contains("Signature is Valid."), "{said}");

    // Without the second time stamp, nothing shows that the first one was made in time.
    let report = pdf::long_term(&whole, 15 * YEAR, &roots, &lists, None);
    assert_ne!(report["verdict"], "AdESPassed.OK", "{report}");
}

/// Readers of 2041 have a bundle of today and the roots. The authority that certified the sealing key has ended, and they
/// distrust SHA-256 from 2040 on.
#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_of_today_is_verified_in_2041() {
    let then: jiff::Timestamp = "2041-07-01T00:00:00Z".parse().unwrap();
    let ahead = then.duration_since(jiff::Timestamp::now()).unsigned_abs();
    let manner = RevocationBehaviour::Right;
    let ending = ahead.as_secs() / DAY.as_secs() - 1_000;
    let seals = FakeCertificateAuthority::start_for("Example Root", "sha256", manner, ending);
    let times = FakeCertificateAuthority::start_with("Example Time Root", "sha512", manner);
    let (seals, times) = (seals.await, times.await);
    let world = World {
        stamps: FakeTimestampAuthority::certified_by(&times, 20 * 365).await,
        seals,
        times,
        folder: tempfile::tempdir().unwrap(),
    };

    let mut settings = world.settings("seals", 730);
    settings.timestamp_digest = Some(DigestAlgorithm::Sha512);
    let configure = |config: &mut Config| {
        config.seal = settings;
        quick(config);
    };
    let app = TestApp::with(configure, OrgSettings::default()).await;
    let id = app.vaulted_envelope().await;
    wait_for(&app, &id, |seal| seal["level"] == "B-LTA").await;
    let release = format!("/partner/envelopes/{id}/vault-out");
    app.post(&release, release_form()).await.data(200);
    let bundle = app.get(&format!("/partner/envelopes/{id}/bundle")).await;
    let key = app.ledger_key().await;
    let root = world.seals.root();
    let ended = with_clock("openssl", ahead)
        .args(["x509", "-noout", "-checkend", "0", "-in"])
        .arg(&root)
        .output();
    assert!(!ended.unwrap().status.success(), "the signing CA has ended");

    let file = world.folder.path().join("bundle.zip");
    std::fs::write(&file, &bundle.bytes).unwrap();
    let trust = world.trust(&[&world.times]);
    let arguments = ["--key", &key, "--timestamp-trust", trust.to_str().unwrap()];
    let verified = verifier_output_at(ahead, file.to_str().unwrap(), &arguments);
    let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(report["verdict"], "VALID", "{report}");
    let mut checks = report["checks"].as_array().unwrap().iter();
    let check = checks.find(|check| check["check"] == "long-term seal");
    let said = check.unwrap()["detail"].as_str().unwrap();
    assert!(said.ends_with("time stamps over the document: 1"), "{said}");

    // `cat authoritative.pdf seal-updates.bin`, as docs/decisions/0068 states.
    let mut zip = zip::ZipArchive::new(Cursor::new(bundle.bytes)).unwrap();
    let mut whole = Vec::new();
    for name in ["authoritative.pdf", "seal-updates.bin"] {
        let mut part = zip.by_name(name).unwrap();
        part.read_to_end(&mut whole).unwrap();
    }
    let (roots, lists) = ([root, world.times.root()], [world.times.list_of(ahead)]);
    for distrusted in [None, Some(("sha256", 2040))] {
        passes(&pdf::long_term(&whole, ahead, &roots, &lists, distrusted));
    }
    // A reader that distrusts the algorithm of the time stamp itself has nothing left to believe.
    let report = pdf::long_term(&whole, ahead, &roots, &lists, Some(("sha512", 2040)));
    assert_ne!(report["verdict"], "AdESPassed.OK", "{report}");
    let said = pdf::signatures_at(&whole, ahead);
    assert!(said.contains("Signature is Valid."), "{said}");
}

/// The installation was switched off when the time stamp should have been renewed.
#[tokio::test(flavor = "multi_thread")]
async fn an_ended_time_stamp_is_not_followed_by_another() {
    let world = World::new(RevocationBehaviour::Right, RevocationBehaviour::Right).await;
    let app = world.app("seals").await;
    let id = app.vaulted_envelope().await;
    let before = wait_for(&app, &id, |seal| seal["level"] == "B-LTA").await;

    let settings = world.settings("seals", 30 * 365);
    let later = as_of(&app, 11 * YEAR, settings).await;
    let state = wait_for(&later, &id, |seal| seal["reason"].is_string()).await;
    let reason = state["reason"].as_str().unwrap();
    assert!(reason.contains("time stamp ended at"), "{reason}");
    assert_eq!(state["provable_until"], before["provable_until"]);
    assert_eq!(extensions(&later, &id).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seal_without_revocation_data_states_why() {
    for (manner, reason) in [
        (
            RevocationBehaviour::TooLarge,
            "answers with more than 1048576 bytes",
        ),
        (
            RevocationBehaviour::OutOfDate,
            "out of date since 2025-01-08",
        ),
        (RevocationBehaviour::Unavailable, "answers with status 404"),
        (
            RevocationBehaviour::OtherIssuer,
            "the list is of another issuer",
        ),
        (RevocationBehaviour::Revoked, "was revoked at 2025-06-01"),
        (RevocationBehaviour::Garbage, "/ca.crl: "),
        (RevocationBehaviour::Silent, "cannot be reached"),
    ] {
        let world = World::new(manner, RevocationBehaviour::Right).await;
        let app = world.app("seals").await;
        let began = Instant::now();
        let id = app.vaulted_envelope().await;
        assert!(began.elapsed() < Duration::from_secs(60), "{manner:?}");
        assert_eq!(seal(&app, &id).await["level"], "B-T", "{manner:?}");

        let state = wait_for(&app, &id, |seal| seal["reason"].is_string()).await;
        assert_eq!(state["level"], "B-T", "{manner:?}: {state}");
        let said = state["reason"].as_str().unwrap();
        assert!(said.contains(reason), "{manner:?}: {said}");
        assert!(said.contains("CN=Example Vault"), "{manner:?}: {said}");
        assert_eq!(extensions(&app, &id).await, [] as [Value; 0]);

        // It is tried again after some hours.
        world.seals.behave(RevocationBehaviour::Right);
        let later = app.as_of_with(DAY / 2, |config| {
            config.seal = world.settings("seals", 730);
            quick(config);
        });
        let later = later.await;
        wait_for(&later, &id, |seal| seal["level"] == "B-LTA").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_without_places_leaves_the_seal_at_its_level() {
    let world = World::new(RevocationBehaviour::Right, RevocationBehaviour::Right).await;
    let app = world.app("seals_without_places").await;
    let id = app.vaulted_envelope().await;
    let state = wait_for(&app, &id, |seal| seal["reason"].is_string()).await;
    assert_eq!(state["level"], "B-T");
    let reason = state["reason"].as_str().unwrap();
    assert!(
        reason.contains("names no list of revoked certificates"),
        "{reason}"
    );

    let plain = TestApp::start().await;
    let id = plain.vaulted_envelope().await;
    let state = seal(&plain, &id).await;
    assert_eq!(state["level"], "B-B");
    assert_eq!(state["reason"], "no time stamping authority was asked");
}

/// An unknown issuer, and an authority that is gone when the data are there.
#[tokio::test(flavor = "multi_thread")]
async fn data_without_a_time_stamp_are_kept_and_stamped_later() {
    let world = World::new(RevocationBehaviour::Unavailable, RevocationBehaviour::Right).await;
    let app = world.app("seals").await;
    let id = app.vaulted_envelope().await;
    wait_for(&app, &id, |seal| seal["reason"].is_string()).await;

    world.seals.behave(RevocationBehaviour::Right);
    let mut settings = world.settings("seals", 730);
    settings.timestamp_url = None;
    let without = as_of(&app, DAY / 2, settings).await;
    // The root of the time stamping authority is not in its tokens.
    let unknown = |seal: &Value| {
        seal["reason"]
            .as_str()
            .is_some_and(|why| why.contains("is not known"))
    };
    wait_for(&without, &id, unknown).await;

    let mut settings = world.settings("seals", 730);
    settings.timestamp_url = Some("http://127.0.0.1:9/".parse().unwrap());
    let unreachable = as_of(&without, DAY, settings).await;
    let state = wait_for(&unreachable, &id, |seal| seal["level"] == "B-LT").await;
    let reason = state["reason"].as_str().unwrap();
    assert!(reason.contains("did not answer"), "{reason}");

    let back = as_of(&unreachable, 2 * DAY, world.settings("seals", 730)).await;
    wait_for(&back, &id, |seal| seal["level"] == "B-LTA").await;
    assert_eq!(extensions(&back, &id).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_warns_of_seals_that_are_about_to_end() {
    let world = World::new(RevocationBehaviour::Right, RevocationBehaviour::Right).await;
    let app = world.app("seals").await;
    let id = app.vaulted_envelope().await;
    wait_for(&app, &id, |seal| seal["level"] == "B-LTA").await;

    app.stop_working();
    let (key, certificates) = world.seals.certify("Later Vault", "seals", 30 * 365);
    let said = async |ahead: Duration| {
        let config = Config {
            data_dir: app.data.path().into(),
            clock_offset: Some(ahead),
            seal: SealSettings {
                key_file: Some(key.clone()),
                certificates_file: Some(certificates.clone()),
                ..SealSettings::default()
            },
            ..Config::default()
        };
        let later = holdfast::start::start(config).await.unwrap();
        let checks = holdfast::doctor::checks(&later).await;
        let seal = checks.into_iter().find(|check| check.name == "seal");
        let seal = seal.unwrap();
        (seal.ok, seal.detail)
    };

    let (is_well, detail) = said(9 * YEAR).await;
    assert!(is_well, "{detail}");
    assert!(detail.starts_with("a key that is good until"), "{detail}");
    let (is_well, detail) = said(10 * YEAR - 80 * DAY).await;
    assert!(!is_well, "{detail}");
    let ending = "1 seals are provable for less than 90 days";
    assert!(detail.starts_with(ending), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_updates_are_found() {
    let world = World::new(RevocationBehaviour::Right, RevocationBehaviour::Right).await;
    let app = world.app("seals").await;
    let id = app.vaulted_envelope().await;
    wait_for(&app, &id, |seal| seal["level"] == "B-LTA").await;
    let [extension] = extensions(&app, &id).await.try_into().unwrap();
    let hash = extension["updates_hash"].as_str().unwrap().to_owned();
    let objects = app.objects("certificates");
    let file = objects.iter().find(|path| path.ends_with(&hash)).unwrap();
    let mut bytes = std::fs::read(file).unwrap();
    bytes[100] ^= 1;
    std::fs::remove_file(file).unwrap();
    std::fs::write(file, bytes).unwrap();

    let output = operator_output(app.data.path(), &["vault", "sweep"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("the stored seal updates was changed"),
        "{said}"
    );
}

/// Long-term data of others count if they cover every certificate.
#[tokio::test(flavor = "multi_thread")]
async fn levels_of_existing_signatures_are_those_of_their_data() {
    let world = World::new(RevocationBehaviour::Right, RevocationBehaviour::Right).await;
    let other = world.app("seals").await;
    let id = other.vaulted_envelope().await;
    wait_for(&other, &id, |seal| seal["level"] == "B-LTA").await;
    let [extension] = extensions(&other, &id).await.try_into().unwrap();
    let sealed = authoritative_copy(&other, &id);
    let whole = with_updates(&other, &id, &extension);

    let app = TestApp::start().await;
    for (file, levels) in [
        (&sealed, vec!["PAdES-T"]),
        (&whole, vec!["PAdES-LTA"]),
        // Certificates alone prove nothing about revocation.
        (&renamed(&whole, b"/OCSPs", b"/OCSPx"), vec!["PAdES-T"]),
    ] {
        let (_, answer) = paper(&app, file).await;
        let upload = answer.data(201);
        let signatures = upload["existing_signatures"].as_array().unwrap();
        let found: Vec<&str> = signatures
            .iter()
            .filter_map(|signature| signature["level"].as_str())
            .collect();
        assert_eq!(found, levels, "{signatures:?}");
    }
}

/// Renames a key in a document, and in the same length.
fn renamed(document: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut renamed = document.to_vec();
    for at in 0..renamed.len() - from.len() {
        if renamed[at..].starts_with(from) {
            renamed[at..at + from.len()].copy_from_slice(to);
        }
    }
    renamed
}
