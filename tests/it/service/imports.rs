//! Imports: records of documents that were signed in other systems.

use std::io::{Cursor, Write as _};
use std::time::{Duration, Instant};

use holdfast::config::Config;
use holdfast::domain::clock::of_machine;
use holdfast::domain::id::ImportId;
use holdfast::domain::job::ImportRecords;
use holdfast::domain::organization::OrgSettings;
use holdfast::store::jobs;
use serde_json::{Value, json};

use crate::http::console::Session;
use crate::sealing::existing::sealed_elsewhere;
use crate::support::{CONTRACT, TestApp, TestResponse, pdf, postgres};

const CUSTOMER: [(&str, &str); 2] = [
    ("customer_name", "Archive"),
    ("customer_email", "archive@example.com"),
];

/// Makes an archive of these files.
pub fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

async fn send(app: &TestApp, archive: &[u8], texts: &[(&str, &str)]) -> TestResponse {
    app.upload("/partner/imports", "application/zip", archive, texts)
        .await
}

/// Sends an archive and waits for the end of its import.
async fn imported(app: &TestApp, archive: &[u8], texts: &[(&str, &str)]) -> Value {
    let sent = send(app, archive, texts).await.data(202);
    wait(app, sent["import_id"].as_str().unwrap()).await
}

async fn wait(app: &TestApp, id: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let import = app.get(&format!("/partner/imports/{id}")).await.data(200);
        if import["status"] != "running" {
            return import;
        }
        assert!(Instant::now() < deadline, "{import}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn rows(app: &TestApp, import: &Value, query: &str) -> Vec<Value> {
    let id = import["import_id"].as_str().unwrap();
    let path = format!("/partner/imports/{id}/rows?{query}");
    let found = app.get(&path).await.data(200);
    found.as_array().unwrap().clone()
}

async fn envelope(app: &TestApp, row: &Value) -> Value {
    let id = row["envelope_id"].as_str().unwrap();
    app.get(&format!("/partner/envelopes/{id}")).await.data(200)
}

/// A folder for each envelope of DocuSign needs no manifest. The signatures are reported as those of others, and the
/// certificate of completion stays with the record, also in the vault.
async fn an_envelope_of_docusign_is_a_record(change: impl FnOnce(&mut Config)) {
    let other = TestApp::start().await;
    let signed = sealed_elsewhere(&other).await;
    let app = TestApp::with(change, OrgSettings::default()).await;
    let summary = pdf::with_lines(&["Certificate Of Completion"]);
    let files: [(&str, &[u8]); 2] = [
        ("export/4f2c/Lease.pdf", &signed),
        ("export/4f2c/Summary.pdf", &summary),
    ];

    let import = imported(&app, &zipped(&files), &CUSTOMER).await;
    assert_eq!(import["status"], "completed", "{import}");
    assert_eq!(import["layout"], "docusign");
    let counts = ["rows", "done", "imported", "duplicates", "failed"];
    let counts = counts.map(|name| import[name].as_i64().unwrap());
    assert_eq!(counts, [1, 1, 1, 0, 0]);

    let found = rows(&app, &import, "").await;
    let [row] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(row["file"], "export/4f2c/Lease.pdf");
    let expected = json!({ "found": 1, "intact": 1, "trusted": 0 });
    assert_eq!(row["signatures"], expected);

    let record = envelope(&app, row).await;
    assert_eq!(record["envelope_kind"], "paper");
    assert_eq!(record["status"], "uploaded");
    assert_eq!(record["existing_signatures"][0]["status"], "valid");
    let origin = &record["imported"];
    assert_eq!(origin["source"], "docusign");
    assert_eq!(origin["import_id"], import["import_id"]);
    assert_eq!(origin["certificate"]["name"], "Summary.pdf");
    assert_eq!(origin["declared"]["signers"], json!([]));

    let id = row["envelope_id"].as_str().unwrap();
    let path = format!("/partner/envelopes/{id}");
    app.post(&format!("{path}/vault-in-upload"), json!({}))
        .await
        .data(200);
    let attached = app.get(&format!("{path}/attachments")).await.data(200);
    let certificate = &attached["attachments"][0];
    assert_eq!(certificate["field"], "certificate_of_completion");
    let sha256 = certificate["sha256"].as_str().unwrap();
    let file = app.get(&format!("{path}/attachments/{sha256}")).await;
    assert_eq!(file.bytes, summary);

    // The place of the stored file is in no answer and no entry.
    let custody = app.custody(id).await;
    for shown in [record, attached, custody] {
        assert!(!shown.to_string().contains("uploads/"), "{shown}");
    }
    app.wait_until_idle().await;
    assert!(app.objects("imports").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_of_docusign_is_a_record_on_sqlite() {
    Box::pin(an_envelope_of_docusign_is_a_record(|_| {})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_of_docusign_is_a_record_on_postgresql() {
    let database = postgres::new_database().await;
    let change = |config: &mut Config| config.database_url = Some(database);
    Box::pin(an_envelope_of_docusign_is_a_record(change)).await;
}

/// What a manifest says is declared: in the record and in the first entry of its ledger.
#[tokio::test(flavor = "multi_thread")]
async fn agreements_of_acrobat_sign_have_their_report_and_audit_report() {
    let app = TestApp::start().await;
    let audit = pdf::with_lines(&["Audit Report"]);
    let manifest = "Agreement Name,Agreement ID,Participant Name,Participant Email,Completed Date\n\
         Lease,CBJ1,Jordan Lee;Ann Day,jordan@example.com;ann@example.com,\"March 1, 2024\"\n";
    let files: [(&str, &[u8]); 3] = [
        ("manifest.csv", manifest.as_bytes()),
        ("Lease.pdf", CONTRACT),
        ("Lease - Audit Report.pdf", &audit),
    ];

    let import = imported(&app, &zipped(&files), &[]).await;
    assert_eq!(import["layout"], "adobe_sign");
    let found = rows(&app, &import, "status=imported").await;
    let record = envelope(&app, &found[0]).await;
    assert_eq!(record["envelope_name"], "Lease");
    assert_eq!(record["external_id"], "CBJ1");
    let origin = &record["imported"];
    assert_eq!(origin["certificate"]["name"], "Lease - Audit Report.pdf");
    let declared = json!({
        "signers": [
            { "name": "Jordan Lee", "email": "jordan@example.com" },
            { "name": "Ann Day", "email": "ann@example.com" },
        ],
        "completed_at": "March 1, 2024",
    });
    assert_eq!(origin["declared"], declared);

    let id = found[0]["envelope_id"].as_str().unwrap();
    let created = app.entry(id, "envelope.created").await;
    assert_eq!(created["import"]["declared"], declared);
    assert_eq!(created["import"]["source"], "adobe_sign");
    // Nobody signed here.
    let people = app.get(&format!("/partner/envelopes/{id}/signers")).await;
    assert_eq!(people.data(200)["signers"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn submissions_of_docuseal_are_found_by_the_names_in_their_addresses() {
    let app = TestApp::start().await;
    let log = pdf::with_lines(&["Audit Log"]);
    let manifest = json!({ "data": [{
        "id": 7, "name": "Lease", "audit_log_url": "https://x.example/file/a/Audit%20Log.pdf",
        "combined_document_url": "https://x.example/file/b/lease.pdf",
        "submitters": [{ "name": "Jordan Lee", "email": "jordan@example.com", "completed_at": "2024-03-01T10:00:00Z" }],
    }] });
    let manifest = manifest.to_string();
    let files: [(&str, &[u8]); 3] = [
        ("manifest.json", manifest.as_bytes()),
        ("7/lease.pdf", CONTRACT),
        ("7/Audit Log.pdf", &log),
    ];

    let import = imported(&app, &zipped(&files), &[]).await;
    assert_eq!(import["layout"], "docuseal");
    let found = rows(&app, &import, "").await;
    let record = envelope(&app, &found[0]).await;
    assert_eq!(record["external_id"], "7");
    let origin = &record["imported"];
    assert_eq!(origin["certificate"]["name"], "Audit Log.pdf");
    let signed = &origin["declared"]["signers"][0]["signed_at"];
    assert_eq!(signed, "2024-03-01T10:00:00Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_becomes_one_record_of_its_organization() {
    let app = TestApp::start().await;
    let archive = zipped(&[("a.pdf", CONTRACT), ("b.pdf", CONTRACT)]);
    let first = imported(&app, &archive, &CUSTOMER).await;
    assert_eq!(
        (&first["imported"], &first["duplicates"]),
        (&json!(1), &json!(1))
    );
    let made = rows(&app, &first, "").await;
    assert_eq!(made[1]["status"], "duplicate");
    assert_eq!(made[1]["envelope_id"], made[0]["envelope_id"]);

    let again = imported(&app, &archive, &CUSTOMER).await;
    assert_eq!(again["duplicates"], 2);
    assert_eq!(app.count("envelope").await, 1);
    let listed = app.get("/partner/imports?limit=1").await.data(200);
    assert_eq!(listed[0]["import_id"], again["import_id"]);
    let behind = rows(&app, &again, "starting_after=1&limit=5").await;
    assert_eq!((behind.len(), &behind[0]["number"]), (1, &json!(2)));

    // Another organization learns nothing of it.
    let (_, key) = app.party().await;
    let id = again["import_id"].as_str().unwrap();
    for path in ["", "/rows", "/report"] {
        let path = format!("/partner/imports/{id}{path}");
        assert_eq!(app.get_as(&key, &path).await.error(404), "Import not found");
    }
    let path = "/partner/imports";
    let theirs = app
        .upload_as(&key, path, "application/zip", &archive, &CUSTOMER)
        .await
        .data(202);
    let path = format!("{path}/{}", theirs["import_id"].as_str().unwrap());
    app.wait_until_idle().await;
    let theirs = app.get_as(&key, &path).await.data(200);
    assert_eq!(theirs["imported"], 1, "{theirs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_row_has_its_reason_and_the_others_become_records() {
    let app = TestApp::start().await;
    let other = pdf::with_lines(&["Another contract"]);
    let third = pdf::with_lines(&["A third contract"]);
    let manifest = "document,certificate,customer_name,customer_email\n\
         gone.pdf,,A,a@example.com\n\
         other.pdf,gone.pdf,A,a@example.com\n\
         text.pdf,,A,a@example.com\n\
         broken.pdf,,A,a@example.com\n\
         other.pdf,,,\n\
         third.pdf,third.pdf,A,a@example.com\n\
         contract.pdf,,A,a@example.com\n";
    let files: [(&str, &[u8]); 7] = [
        ("manifest.csv", manifest.as_bytes()),
        ("text.pdf", b"no document"),
        ("broken.pdf", b"%PDF-1.7\nnothing"),
        ("other.pdf", &other),
        ("third.pdf", &third),
        ("contract.pdf", CONTRACT),
        ("=unlisted.pdf", CONTRACT),
    ];

    let import = imported(&app, &zipped(&files), &[]).await;
    assert_eq!(import["status"], "completed");
    assert_eq!(
        (&import["imported"], &import["failed"]),
        (&json!(1), &json!(7))
    );
    let found = rows(&app, &import, "status=failed").await;
    let codes = found.iter().map(|row| {
        let problem = &row["problem"];
        assert!(!problem["message"].as_str().unwrap().is_empty());
        (
            row["line"].as_i64().unwrap(),
            problem["code"].as_str().unwrap(),
        )
    });
    let expected = [
        (2, "no_document"),
        (3, "no_certificate"),
        (4, "refused"),
        (5, "unreadable"),
        (6, "no_customer"),
        (7, "certificate_is_document"),
        (0, "not_listed"),
    ];
    assert_eq!(codes.collect::<Vec<_>>(), expected);
    assert_eq!(app.count("envelope").await, 1);

    let id = import["import_id"].as_str().unwrap();
    let table = app.get(&format!("/partner/imports/{id}/report")).await;
    assert_eq!(table.headers["content-type"], "text/csv");
    let mut reader = csv::Reader::from_reader(table.bytes.as_slice());
    let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(lines.len(), 8);
    assert_eq!(&lines[7][2], "'=unlisted.pdf", "a name is no formula");
    assert_eq!(&lines[6][3], "imported");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_archive_of_documents_is_refused_at_once() {
    let app = TestApp::start().await;
    let code = |answer: TestResponse| {
        assert_eq!(answer.status, 422, "{}", answer.text());
        answer.json()["details"][0]["code"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let good = zipped(&[("a.pdf", CONTRACT)]);
    for (archive, expected) in [
        (b"no zip".to_vec(), "no_archive"),
        (zipped(&[("a.txt", b"text")]), "no_rows"),
        (zipped(&[("../a.pdf", CONTRACT)]), "unsafe_archive"),
        (zipped(&[("manifest.csv", b"a,b\n")]), "unknown_columns"),
        (zipped(&[("manifest.json", b"{")]), "json"),
    ] {
        assert_eq!(code(send(&app, &archive, &[]).await), expected);
    }
    let half = send(&app, &good, &[("customer_name", "Archive")]).await;
    assert_eq!(code(half), "invalid_value");
    let layout = send(&app, &good, &[("layout", "paper")]).await;
    assert!(layout.error(400).starts_with("layout must be one of: "));
    let unknown = app.get("/partner/imports/imp_1").await;
    assert_eq!(unknown.error(404), "Import not found");
    assert_eq!(app.count("record_import").await, 0);
    assert!(app.objects("imports").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn running_imports_are_limited() {
    let app = TestApp::start().await;
    let archive = zipped(&[("a.pdf", CONTRACT)]);
    imported(&app, &archive, &CUSTOMER).await;
    for number in 10..30 {
        app.change(
            "insert into record_import (bucket, import_id, org_id, layout, file, status, planned, made_by, creator,
                 created_at)
             select bucket, substr(import_id, 1, 28) || $1, org_id, layout, file, 'running', planned, made_by,
                 creator, created_at
             from record_import where status = 'completed'",
            &number.to_string(),
        )
        .await;
    }
    let refused = send(&app, &archive, &CUSTOMER).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(refused.json()["code"], "too_many_imports");
}

/// An archive that stays missing is given up with the reason. The records so far stay.
#[tokio::test(flavor = "multi_thread")]
async fn an_import_without_its_archive_fails_after_some_runs() {
    let app = TestApp::start().await;
    let import = imported(&app, &zipped(&[("a.pdf", CONTRACT)]), &CUSTOMER).await;
    app.wait_until_idle().await;
    let id = ImportId::parse(import["import_id"].as_str().unwrap()).unwrap();
    app.execute("update record_import set status = 'running', failures = 6")
        .await;
    let job = ImportRecords { import: id.clone() };
    let mut tx = app.store.begin().await.unwrap();
    jobs::insert(&mut tx, &app.org, &job, None, of_machine())
        .await
        .unwrap();
    tx.commit().await.unwrap();

    // The seventh run is tried again a second later, and the eighth is the last one.
    let failed = wait(&app, id.as_str()).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    assert_eq!(failed["refusal"]["code"], "file_missing");
    assert_eq!(failed["imported"], 1);
    assert_eq!(rows(&app, &failed, "").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_is_imported_in_the_console() {
    let app = TestApp::start().await;
    let olga = Session::of(&app, "olga@oak.example", "owner").await;
    let page = olga.get(&app, "/console/imports").await.text();
    for shown in [
        "Imports from other systems",
        "There are no imports yet.",
        "System that made the archive",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let wrong = olga.upload(&app, "/console/imports", b"no zip", &[]).await;
    assert_eq!(wrong.status, 422);
    assert!(
        wrong.text().contains("The file is no zip"),
        "{}",
        wrong.text()
    );

    let manifest: &[u8] =
        b"document,signers\nlease.pdf,Jordan Lee <jordan@example.com>\ngone.pdf,\n";
    let archive = zipped(&[("manifest.csv", manifest), ("lease.pdf", CONTRACT)]);
    let sent = olga
        .upload(&app, "/console/imports", &archive, &[("layout", "")])
        .await;
    assert_eq!(sent.status, 303, "{}", sent.text());
    let path = sent.headers["location"].to_str().unwrap().to_owned();
    wait(&app, path.rsplit('/').next().unwrap()).await;

    let page = olga.get(&app, &path).await.text();
    for shown in ["1 imported", "1 failed", "Row 2", "no_document"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let page = olga.get(&app, &format!("{path}?status=imported")).await;
    let page = page.text();
    assert!(
        page.contains("Signatures of others in the file: 0."),
        "{page}"
    );
    let page = olga.get(&app, &format!("{path}?status=duplicate")).await;
    assert!(page.text().contains("No rows have this result."));
    let table = olga.get(&app, &format!("{path}/report.csv")).await;
    assert_eq!(table.headers["content-type"], "text/csv");

    let record = app
        .text_of("select envelope_id from record_import_row where status = 'imported'")
        .await;
    let page = olga
        .get(&app, &format!("/console/envelopes/{record}"))
        .await;
    let page = page.text();
    let declared = "Signers and times are as its manifest declares them, and were not verified.";
    for shown in [declared, "jordan@example.com", "Imported from"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
}
