//! Proofs of a pool, checked by `holdfast-verify` alone.

use std::io::{Read as _, Write as _};
use std::path::Path;

use holdfast::domain::id::EnvelopeId;
use serde_json::{Value, json};

use super::transfers::{more, offered, step, wait};
use super::{Party, code};
use crate::service::vault::integrity::{enter_destruction, redact_details};
use crate::support::{TestApp, TestResponse, operator_output, pool_output, release_form};

/// Files of a zip, by name.
type PoolFiles = Vec<(String, Value)>;

async fn proofs(app: &TestApp, party: &Party, transfer: &str) -> TestResponse {
    let path = format!("/partner/control/pools/{transfer}/proofs");
    app.get_as(&party.key, &path).await
}

async fn files(app: &TestApp, party: &Party, transfer: &str) -> PoolFiles {
    let answer = proofs(app, party, transfer).await;
    assert_eq!(answer.status, 200, "{}", answer.text());

    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(answer.bytes)).unwrap();
    let names: Vec<String> = zip.file_names().map(str::to_owned).collect();
    let mut file = |name: String| {
        let mut text = String::new();
        zip.by_name(&name)
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        (name, serde_json::from_str(&text).unwrap())
    };

    names.into_iter().map(&mut file).collect()
}

fn write(path: &Path, files: &PoolFiles) {
    let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, content) in files {
        zip.start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(content.to_string().as_bytes()).unwrap();
    }
    zip.finish().unwrap();
}

/// Verifies a pool with the key of the log, and returns the exit code and the report.
fn verify(files: &PoolFiles, key: Option<&str>) -> (i32, Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool.zip");
    write(&path, files);
    let more = key.map_or_else(Vec::new, |key| vec!["--key", key]);
    let output = pool_output(path.to_str().unwrap(), &more);
    let report = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code().unwrap(), report)
}

/// Sells three records.
async fn sold() -> (TestApp, [Party; 2], Vec<String>, String) {
    let app = TestApp::start().await;
    let (lender, funder) = (Party::new(&app).await, Party::new(&app).await);
    let mut records = more(&app, &lender, 3).await;
    records.sort();
    let transfer = offered(&app, &lender, &funder, &records).await;
    step(&app, &funder, &transfer, "accept").await.data(202);
    wait(&app, &funder, &transfer, "accepted").await;

    step(&app, &lender, &transfer, "confirm").await.data(202);
    wait(&app, &funder, &transfer, "confirmed").await;
    (app, [lender, funder], records, transfer)
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_of_a_sale_prove_it_offline() {
    let (app, [lender, funder], records, transfer) = sold().await;
    let key = app.ledger_key().await;

    // The seller does not see later acts of the buyer.
    funder
        .act(&app, &records[0], "release", release_form())
        .await
        .data(200);

    for (party, entries_after) in [(&lender, 0), (&funder, 1)] {
        let files = files(&app, party, &transfer).await;
        assert_eq!(files.len(), 4);

        let (status, report) = verify(&files, Some(&key));
        assert_eq!(
            (status, &report["verdict"]),
            (0, &json!("VALID")),
            "{report:#}"
        );
        assert_eq!(report["records"], 3);
        assert_eq!(report["anchor"]["public_key"], key.as_str());

        let controllers: i64 = report["controlled_by"]
            .as_object()
            .unwrap()
            .values()
            .map(|count| count.as_i64().unwrap())
            .sum();
        assert_eq!(controllers, 3);
        assert_eq!(verify(&files, None).0, 3);

        let name = format!("records/{}.json", records[0]);
        let first = &files.iter().find(|(file, _)| *file == name).unwrap().1;
        let released = first["entries"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry["action"] == "control.released")
            .count();
        assert_eq!(released, entries_after);
    }

    let stranger = Party::new(&app).await;
    proofs(&app, &stranger, &transfer).await.error(404);
}

/// The acts of one record name people, and are destroyed.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_without_its_details_is_unproven_and_no_problem() {
    let (app, [_, funder], records, transfer) = sold().await;
    let record = EnvelopeId::parse(&records[0]).unwrap();
    enter_destruction(&app, &app.org, &record).await;

    // The same before the job of the destruction has come to the rows, and after it.
    for is_redacted in [false, true] {
        if is_redacted {
            redact_details(&app, &app.org, &record).await;
        }
        let files = files(&app, &funder, &transfer).await;
        let (status, report) = verify(&files, Some(&app.ledger_key().await));
        assert_eq!(status, 4, "{report:#}");
        assert_eq!(report["verdict"], "CONSISTENT, NOT COMPLETE");
        assert_eq!(report["problems"], json!([]), "{report:#}");
        let unproven = report["unproven"].as_array().unwrap();
        assert_eq!(unproven.len(), 1, "{report:#}");
        let why = unproven[0].as_str().unwrap();
        let said = ": the record was destroyed, and the details of its acts with it";
        assert_eq!(why, format!("{}{said}", records[0]));
    }
}

/// Verifies a pool of three records, of which one has withheld entries and no destruction.
fn assert_unproven(pool: &PoolFiles, key: &str, record: &str) {
    let (status, report) = verify(pool, Some(key));
    assert_eq!(status, 4, "{report:#}");
    assert_eq!(report["verdict"], "CONSISTENT, NOT COMPLETE");
    assert_eq!(report["problems"], json!([]), "{report:#}");
    let why = format!(
        "{record}: details of its entries are withheld: either the record was destroyed after this part of its \
         ledger, or the file was made without them"
    );
    assert_eq!(report["unproven"], json!([why]), "{report:#}");

    // The record counts for no controller.
    let controlled = report["controlled_by"].as_object().unwrap();
    let counts = controlled.values().map(|count| count.as_i64().unwrap());
    assert_eq!(counts.sum::<i64>(), 2, "{report:#}");
}

/// The seller's part of a ledger ends before the destruction by the buyer.
#[tokio::test(flavor = "multi_thread")]
async fn a_sold_record_that_its_buyer_destroyed_is_unproven_for_the_seller() {
    let (app, [lender, _], records, transfer) = sold().await;
    let key = app.ledger_key().await;
    let record = EnvelopeId::parse(&records[0]).unwrap();
    let name = format!("records/{record}.json");
    enter_destruction(&app, &app.org, &record).await;

    for is_redacted in [false, true] {
        if is_redacted {
            redact_details(&app, &app.org, &record).await;
            // As after a sale by a user, whose address was in the entry.
            let withhold = "update ledger_entry set details = 'null', withheld = 1
                 where envelope_id = $1 and action = 'control.transfer.confirmed'";
            app.change(withhold, record.as_str()).await;
        }

        let pool = files(&app, &lender, &transfer).await;
        assert_unproven(&pool, &key, &records[0]);

        let file = pool.iter().position(|(file, _)| *file == name).unwrap();
        let entries = pool[file].1["entries"].as_array().unwrap();
        let last = entries.last().unwrap();
        assert_eq!(last["action"], "control.transfer.confirmed");
        assert_eq!(last["withheld"] == true, is_redacted);

        // A change is still one, of a whole entry and of a withheld one.
        let index = |is_withheld: bool| {
            let mut entries = entries.iter();
            let found = entries.position(|entry| (entry["withheld"] == true) == is_withheld);
            found.unwrap()
        };
        for (entry, member, value, why) in [
            (index(false), "action", json!("x"), "was changed"),
            (index(true), "details", json!({ "x": 1 }), "was changed"),
            (
                index(true),
                "hash",
                json!("0".repeat(64)),
                "does not follow from",
            ),
        ] {
            let mut pool = pool.clone();
            pool[file].1["entries"][entry][member] = value;
            let (status, report) = verify(&pool, Some(&key));
            assert_eq!(status, 1, "{member}: {report:#}");
            let problem = &report["problems"][0];
            assert_eq!(problem["envelope_id"], records[0], "{member}: {report:#}");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(why), "{member}: {report:#}");
        }
    }
}

/// A file cannot show that a record was destroyed later, so a forged one gets the same answer.
#[tokio::test(flavor = "multi_thread")]
async fn details_that_are_taken_out_of_a_file_leave_its_record_unproven() {
    let (app, [_, funder], records, transfer) = sold().await;
    let key = app.ledger_key().await;
    let mut pool = files(&app, &funder, &transfer).await;
    let name = format!("records/{}.json", records[0]);
    let file = pool.iter().position(|(file, _)| *file == name).unwrap();
    let entry = &mut pool[file].1["entries"][0];
    entry["details"] = Value::Null;
    entry["withheld"] = json!(true);

    assert_unproven(&pool, &key, &records[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_that_is_changed_left_out_or_swapped_is_named() {
    let (app, [_, funder], records, transfer) = sold().await;
    let key = app.ledger_key().await;
    let files = files(&app, &funder, &transfer).await;
    let index = |id: &str| {
        let name = format!("records/{id}.json");
        files.iter().position(|(file, _)| *file == name).unwrap()
    };

    let list = files
        .iter()
        .position(|(file, _)| file == "pool.json")
        .unwrap();
    let (first, second) = (index(&records[0]), index(&records[1]));
    let last_entry =
        |pool: &PoolFiles, file: usize| pool[file].1["entries"].as_array().unwrap().len() - 1;

    type Tampering<'a> = (
        &'a str,
        Box<dyn Fn(&mut PoolFiles) + 'a>,
        Option<&'a str>,
        &'a str,
    );

    let tamperings: Vec<Tampering<'_>> = vec![
        (
            "an entry is changed",
            Box::new(|pool| pool[first].1["entries"][2]["details"]["x"] = json!(1)),
            Some(&records[0]),
            "",
        ),
        (
            "the receipt is changed",
            Box::new(|pool| {
                let last = last_entry(pool, first);
                pool[first].1["entries"][last]["details"]["inclusion"]["index"] = json!(1);
            }),
            Some(&records[0]),
            "",
        ),
        (
            "the last entry is left out",
            Box::new(|pool| {
                pool[first].1["entries"].as_array_mut().unwrap().pop();
            }),
            Some(&records[0]),
            "its last entry is not the one that the log holds",
        ),
        (
            "the record is left out",
            Box::new(|pool| {
                pool.remove(first);
            }),
            Some(&records[0]),
            "the file of the record is missing",
        ),
        (
            "the record is left out as one that was refused",
            Box::new(|pool| {
                pool[list].1["records"][0]["state"] = json!("refused");
                pool.remove(first);
            }),
            Some(&records[0]),
            "the file of the record is missing",
        ),
        (
            "the record counts as one that was only accepted",
            Box::new(|pool| pool[list].1["records"][0]["state"] = json!("accepted")),
            Some(&records[0]),
            "its state does not fit that of the transfer",
        ),
        (
            "two records are swapped",
            Box::new(|pool| {
                let content = pool[first].1.clone();
                pool[first].1 = pool[second].1.clone();
                pool[second].1 = content;
            }),
            Some(&records[0]),
            "the file is about ",
        ),
        (
            "a record stands for another",
            Box::new(|pool| {
                let mut content = pool[second].1.clone();
                content["envelope_id"] = json!(records[0]);
                pool[first].1 = content;
            }),
            Some(&records[0]),
            "",
        ),
        (
            "a document is exchanged in the list",
            Box::new(|pool| pool[list].1["records"][0]["document_hash"] = json!("00")),
            Some(&records[0]),
            "its document is another one than the list names",
        ),
        (
            "a record is missing in the list",
            Box::new(|pool| {
                pool[list].1["records"].as_array_mut().unwrap().remove(0);
            }),
            None,
            "the list of records is not the one that was offered",
        ),
        (
            "the receipt is another one",
            Box::new(|pool| pool[list].1["receipt"]["records"] = json!(2)),
            Some(&records[2]),
            "its step names other records",
        ),
        (
            "the head is unsigned",
            Box::new(|pool| {
                let note = pool[list].1["log"]["checkpoint"].as_str().unwrap();
                let note = note
                    .replacen("\n4", "\n5", 1)
                    .replacen("ledger\n", "ledgers\n", 1);
                pool[list].1["log"]["checkpoint"] = json!(note);
            }),
            None,
            "",
        ),
    ];

    for (name, tamper, record, why) in tamperings {
        let mut pool = files.clone();
        tamper(&mut pool);
        let (status, report) = verify(&pool, Some(&key));
        assert_eq!(
            (status, &report["verdict"]),
            (1, &json!("NOT VALID")),
            "{name}"
        );

        let problems = report["problems"].as_array().unwrap();
        let is_named = |problem: &Value| {
            let detail = problem["detail"].as_str().unwrap();
            problem["envelope_id"] == json!(record) && detail.contains(why)
        };
        assert!(problems.iter().any(is_named), "{name}: {report:#}");
    }

    let mut pool = files.clone();
    pool[list].1["receipt"]["records"] = json!(2);
    let (_, report) = verify(&pool, Some(&key));
    let receipt = "the list of records is not the one of the receipt";
    assert!(
        report["problems"].to_string().contains(receipt),
        "{report:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_checks_a_pool_before_it_accepts() {
    let app = TestApp::start().await;
    let (lender, funder) = (Party::new(&app).await, Party::new(&app).await);
    let records = more(&app, &lender, 2).await;
    let transfer = offered(&app, &lender, &funder, &records).await;
    let (status, report) = verify(
        &files(&app, &funder, &transfer).await,
        Some(&app.ledger_key().await),
    );
    assert_eq!((status, &report["records"]), (0, &json!(2)), "{report:#}");

    step(&app, &lender, &transfer, "cancel").await.data(202);
    wait(&app, &lender, &transfer, "cancelled").await;
    let late = proofs(&app, &funder, &transfer).await;
    assert_eq!(code(&late, 409), "control_out_of_order");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_left_the_sale_is_proved_to_have_left_it() {
    let app = TestApp::start().await;
    let (lender, funder) = (Party::new(&app).await, Party::new(&app).await);
    let records = more(&app, &lender, 2).await;
    let transfer = offered(&app, &lender, &funder, &records).await;

    // A damaged record cannot be accepted.
    let mut copies = app.objects("copies").into_iter();
    let of_first = copies.find(|copy| copy.to_str().unwrap().contains(&records[0]));
    let copy = of_first.unwrap();
    let bytes = std::fs::read(&copy).unwrap();
    std::fs::write(&copy, &bytes[1..]).unwrap();
    operator_output(app.data.path(), &["vault", "sweep"]);

    step(&app, &funder, &transfer, "accept").await.data(202);
    let accepted = wait(&app, &funder, &transfer, "accepted").await;
    assert_eq!(accepted["counts"], json!({ "accepted": 1, "refused": 1 }));

    step(&app, &lender, &transfer, "confirm").await.data(202);
    wait(&app, &funder, &transfer, "confirmed").await;
    let key = app.ledger_key().await;
    for party in [&lender, &funder] {
        let pool = files(&app, party, &transfer).await;
        let (status, report) = verify(&pool, Some(&key));
        assert_eq!((status, &report["records"]), (0, &json!(2)), "{report:#}");
    }

    let pool = files(&app, &funder, &transfer).await;
    let name = format!("records/{}.json", records[0]);
    let left = &pool.iter().find(|(file, _)| *file == name).unwrap().1;
    let last = left["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(last["action"], "control.transfer.cancelled");
}
