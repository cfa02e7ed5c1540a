//! Moves of an installation between databases and object stores.
//!
//! `MOVE_RECORDS` sets the number of envelopes of the drill for `make crash`; `make test` has 500.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast::domain::clock::Clock;
use holdfast::store::{Store, installation, moves};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Row as _};

use crate::support::process::{ServerHome, ServerProcess, this_program};
use crate::support::{TestApp, files_below, postgres, release_form, share_native_code};

/// Returns the settings of an installation with this data folder.
fn home(data: &Path) -> ServerHome {
    ServerHome {
        program: this_program(),
        data: data.to_owned(),
        database: None,
        // Nodes on PostgreSQL count as stopped after three of these.
        settings: vec![("HOLDFAST_SWEEP_INTERVAL".into(), "500ms".into())],
    }
}

fn with_database(home: &ServerHome, database: &str) -> ServerHome {
    ServerHome {
        database: Some(database.to_owned()),
        ..home.clone()
    }
}

fn with_storage(home: &ServerHome, url: &str) -> ServerHome {
    let mut home = home.clone();
    home.settings
        .push(("HOLDFAST_STORAGE_URL".into(), url.to_owned()));
    home
}

/// Runs `holdfast move`, which has to succeed, and returns its report.
#[track_caller]
fn moved(home: &ServerHome, arguments: &[&str]) -> Value {
    let (is_done, report) = home.operator("0s", &[&["move"][..], arguments].concat());
    assert!(is_done, "{report}");
    report
}

/// Asserts that a command fails with this text.
#[track_caller]
fn refused(home: &ServerHome, arguments: &[&str], why: &str) {
    let (is_done, answer) = home.operator("0s", arguments);
    let error = answer["error"].as_str().unwrap_or_default();
    assert!(!is_done && error.contains(why), "{why}: {answer}");
}

#[track_caller]
fn refuses_to_move(home: &ServerHome, arguments: &[&str], why: &str) {
    refused(home, &[&["move"][..], arguments].concat(), why);
}

/// Runs `holdfast move` until it kills itself at a fault point. Returns whether it did.
fn is_killed(home: &ServerHome, arguments: &[&str], place: &str, passing: u64) -> bool {
    let output = home
        .command(&home.program)
        .env("HOLDFAST_FAULTS", format!("{place}:{passing}"))
        .args(["--json", "move"])
        .args(arguments)
        .output()
        .unwrap();
    let is_killed = output.status.signal() == Some(9);
    assert!(is_killed || output.status.success(), "{place}: {output:?}");
    is_killed
}

async fn get(server: &ServerProcess, key: &str, path: &str) -> Value {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let request = client.get(format!("{}/api/v2{path}", server.url));
    let answer = request.header("x-api-key", key).send().await.unwrap();
    let status = answer.status();
    let mut body: Value = answer.json().await.unwrap();
    assert!(status.is_success(), "{path}: {body}");
    body["data"].take()
}

/// An installation with a vaulted record on hold, a released one, one that waits for its signature, and a tape.
async fn populated() -> (TestApp, BTreeMap<String, Value>) {
    let app = TestApp::start().await;
    let held = app.vaulted_envelope().await;
    let released = app.vaulted_envelope().await;
    app.sent_envelope().await;
    let path = format!("/partner/envelopes/{released}/vault-out");
    app.post(&path, release_form()).await.data(200);

    let hold = json!({
        "scope": "envelope", "subject_id": held,
        "reason": "The buyer has sued.", "case_reference": "2:26-cv-01187",
    });
    app.post("/partner/legal-holds", hold).await.data(201);
    let map = json!({ "columns": [{ "column": "Id", "fact": "envelope_id" }] }).to_string();
    let texts = [("name", "Line 12"), ("map", map.as_str())];
    app.upload("/partner/control/tapes", "text/csv", b"Id\n", &texts)
        .await
        .data(202);

    app.stop_working();
    let mut ledgers = BTreeMap::new();
    for id in [held, released] {
        let entries = app.custody(&id).await["entries"].take();
        ledgers.insert(id, entries);
    }
    (app, ledgers)
}

/// Asserts that a server serves the records as they were, and that their evidence is valid.
async fn serves(home: &ServerHome, app: &TestApp, ledgers: &BTreeMap<String, Value>) {
    let server = ServerProcess::start(home, &[], &[]).unwrap();
    for (id, entries) in ledgers {
        let path = format!("/partner/envelopes/{id}/custody");
        let custody = get(&server, &app.key, &path).await;
        // Work that waited may have added others since.
        let (entries, now) = (entries.as_array().unwrap(), custody["entries"].as_array());
        assert!(now.unwrap().starts_with(entries), "{custody:#}");
    }
    let holds = get(&server, &app.key, "/partner/legal-holds").await;
    assert!(holds.to_string().contains("2:26-cv-01187"), "{holds}");
    server.kill();

    for id in ledgers.keys() {
        let (_, report) = home.operator("0s", &["verify", id]);
        assert_eq!(report["valid"], true, "{report:#}");
    }
    let (is_whole, swept) = home.operator("0s", &["vault", "sweep"]);
    assert!(is_whole, "{swept}");
    assert_eq!(swept["with_problems"], json!([]), "{swept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_moves_to_postgresql_and_back_with_its_objects() {
    let (app, ledgers) = populated().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let storage = |name: &str| format!("file://{}", elsewhere.path().join(name).display());
    let (old, database) = (home(app.data.path()), postgres::new_database().await);
    let envelopes = app.count("envelope").await;
    let objects = files_below(&app.objects_folder()).len();

    let report = moved(&old, &["--to", &database, "--storage", &storage("first")]);
    assert_eq!(report["tables"]["envelope"]["rows"], envelopes, "{report}");
    assert_eq!(report["tables"]["room_submission"]["rows"], 3);
    assert_eq!(report["tables"]["legal_hold"]["rows"], 1);
    assert_eq!(report["tables"]["tape"]["rows"], 1);
    assert!(report["ledgers"]["log_size"].as_u64().unwrap() > 10);
    assert_eq!(report["objects"]["are_moved"], true);
    assert!(report["objects"]["count"].as_u64().unwrap() > 5);
    assert!(files_below(&elsewhere.path().join("first")).len() <= objects);

    refused(&old, &["org", "list"], "it was moved to postgres://");
    assert!(ServerProcess::start(&old, &[], &[]).is_none());
    let new = with_storage(&with_database(&old, &database), &storage("first"));
    serves(&new, &app, &ledgers).await;
    refuses_to_move(&old, &["--to", &database, "--abandon"], "has been used");
    refuses_to_move(&old, &["--to", &database], "this installation was moved to");

    let before = format!("sqlite://{}", app.data.path().join("holdfast.db").display());
    refuses_to_move(&new, &["--to", &before], "is in use or was used before");
    let folder = elsewhere.path().join("database");
    let second = storage("second");
    let to = ["--to", folder.to_str().unwrap(), "--storage", &second];
    let report = moved(&new, &to);
    assert_eq!(report["tables"]["envelope"]["rows"], envelopes, "{report}");

    refused(&new, &["org", "list"], "it was moved to sqlite://");
    let back = with_database(&old, report["to"].as_str().unwrap());
    serves(&with_storage(&back, &second), &app, &ledgers).await;
}

/// Types, keys and generated numbers that only one of the databases has would get lost on the way.
#[tokio::test(flavor = "multi_thread")]
async fn both_databases_have_the_same_tables_and_generate_no_values() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("test.db").display());
    let sqlite = Store::connect(&url).await.unwrap();
    sqlite.migrate().await.unwrap();
    let postgresql = postgres::new_store().await;
    let tables = moves::tables(&postgresql).await.unwrap();
    assert!(tables.len() > 100, "{}", tables.len());
    assert_eq!(moves::tables(&sqlite).await.unwrap(), tables);

    let mut connection = postgresql.read().await.unwrap();
    let generated = "select cast(table_name as text) from information_schema.columns
        where table_schema = current_schema() and (is_identity = 'YES' or is_generated <> 'NEVER'
            or column_default like 'nextval%')";
    let generated: Vec<String> = sqlx::query_scalar(generated)
        .fetch_all(&mut *connection)
        .await
        .unwrap();
    assert!(generated.is_empty(), "{generated:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_are_partitioned_beforehand_stay_so() {
    let (app, ledgers) = populated().await;
    let (old, database) = (home(app.data.path()), postgres::new_database().await);
    postgres::partition(&database).await;
    moved(&old, &["--to", &database]);
    let new = with_database(&old, &database);
    evidence_is_valid(&new, &ledgers);

    let store = new.store().await;
    let mut connection = store.read().await.unwrap();
    let rows = "select count(*) from pg_class c join envelope e on e.tableoid = c.oid where c.relispartition";
    let rows: i64 = sqlx::query_scalar(rows)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    assert_eq!(rows, app.count("envelope").await);
    drop(connection);

    let at = tempfile::tempdir().unwrap();
    let report = moved(&new, &["--to", at.path().to_str().unwrap()]);
    assert_eq!(report["tables"]["envelope"]["rows"], rows);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_is_given_up_until_the_new_database_is_used() {
    let app = TestApp::start().await;
    app.sent_envelope().await;
    app.stop_working();
    let at = tempfile::tempdir().unwrap();
    let folder = |name: &str| at.path().join(name).display().to_string();
    let file = |name: &str| format!("sqlite://{}/holdfast.db", folder(name));
    let old = home(app.data.path());
    refuses_to_move(
        &old,
        &["--to", &folder("first"), "--abandon"],
        "nothing to abandon",
    );

    let first = folder("first");
    assert!(is_killed(&old, &["--to", &first], "move sliced", 5));
    refused(&old, &["org", "list"], "it is being moved to sqlite://");
    let (is_backed_up, manifest) = old.operator("0s", &["backup", &folder("backup")]);
    assert!(is_backed_up, "{manifest}");
    let first_home = with_database(&old, &file("first"));
    refused(
        &first_home,
        &["org", "list"],
        "it is the incomplete copy of",
    );
    refuses_to_move(
        &old,
        &["--to", &folder("other")],
        "this installation is being moved to",
    );
    refuses_to_move(
        &first_home,
        &["--to", &folder("other")],
        "is the target of a move",
    );

    assert!(is_killed(
        &old,
        &["--to", &first, "--abandon"],
        "move abandoned",
        1
    ));
    refused(&old, &["org", "list"], "it is being moved to");
    refuses_to_move(&old, &["--to", &first], "was given up");
    let answer = moved(&old, &["--to", &first, "--abandon"]);
    assert_eq!(answer["abandoned"], true);
    refused(&first_home, &["org", "list"], "was given up");
    refuses_to_move(&old, &["--to", &first], "is in use or was used before");
    let (is_used_again, _) = old.operator("0s", &["org", "list"]);
    assert!(is_used_again);

    // The installation changed meanwhile, and a complete move can be given up, too.
    let create = ["org", "create", "--name", "Oak"];
    assert!(old.operator("0s", &create).0);
    let report = moved(&old, &["--to", &folder("second")]);
    let organizations = app.count("organization").await;
    assert_eq!(report["tables"]["organization"]["rows"], organizations);
    moved(&old, &["--to", &folder("second"), "--abandon"]);
    assert!(old.operator("0s", &create).0);

    moved(&old, &["--to", &folder("third")]);
    let third = with_database(&old, &file("third"));
    assert!(third.operator("0s", &create).0);
    refuses_to_move(
        &old,
        &["--to", &folder("third"), "--abandon"],
        "has been used",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_is_refused_while_a_server_runs_on_sqlite() {
    let data = tempfile::tempdir().unwrap();
    a_running_server_is_not_left(&home(data.path())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_is_refused_while_a_server_runs_on_postgresql() {
    let data = tempfile::tempdir().unwrap();
    let mut home = with_database(&home(data.path()), &postgres::new_database().await);
    // Long enough for a node on a busy machine to give a sign of life within three intervals.
    home.settings = vec![("HOLDFAST_SWEEP_INTERVAL".into(), "2s".into())];
    a_running_server_is_not_left(&home).await;
}

async fn a_running_server_is_not_left(home: &ServerHome) {
    share_native_code(&home.data);
    let at = tempfile::tempdir().unwrap();
    let to = at.path().join("new").display().to_string();
    let server = ServerProcess::start(home, &[], &[]).unwrap();

    let store = home.store().await;
    let nodes = async || {
        let mut connection = store.read().await.unwrap();
        let signs = installation::signs(&mut connection, installation::NODE).await;
        signs.unwrap().len()
    };
    while nodes().await == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    refuses_to_move(home, &["--to", &to], "a holdfast server uses");

    server.kill();
    moved(home, &["--to", &to]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partitioned_table_refuses_changes_while_it_is_left() {
    let database = postgres::new_database().await;
    postgres::partition(&database).await;
    let store = Store::connect(&database).await.unwrap();
    let tables = moves::tables(&store).await.unwrap();
    let delete = async || {
        let mut tx = store.begin().await.unwrap();
        let deleted = sqlx::query("delete from envelope where bucket = 0");
        let deleted = deleted.execute(&mut *tx).await;
        deleted.map(|_| ()).map_err(|error| error.to_string())
    };

    let now = Clock::default().now();
    moves::fence(&store, "move", "elsewhere", &tables, now)
        .await
        .unwrap();
    let refused = delete().await.unwrap_err();
    assert!(refused.contains("moves to another database"), "{refused}");
    moves::lift_fence(&store, "move", &tables).await.unwrap();
    delete().await.unwrap();
}

/// A node that a move has not noticed.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_stops_when_its_database_is_left() {
    let data = tempfile::tempdir().unwrap();
    let home = home(data.path());
    share_native_code(&home.data);
    let mut server = ServerProcess::start(&home, &[], &[]).unwrap();

    let store = home.store().await;
    let tables = moves::tables(&store).await.unwrap();
    let now = Clock::default().now();
    moves::fence(&store, "move", "elsewhere", &tables, now)
        .await
        .unwrap();
    while !(server.is_dead() && server.has_said("moved to another database, stopping")) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_from_or_to_a_wrong_place_is_refused() {
    let app = TestApp::start().await;
    app.sent_envelope().await;
    app.stop_working();
    let at = tempfile::tempdir().unwrap();
    let place = |name: &str| at.path().join(name).display().to_string();
    let old = home(app.data.path());
    let own = format!("sqlite:{}", app.data.path().join("holdfast.db").display());
    refuses_to_move(&old, &["--to", &own], "is the present database");
    refuses_to_move(
        &old,
        &["--to", "mysql://db/holdfast"],
        "--to must be postgres://",
    );

    let other = TestApp::start().await;
    other.stop_working();
    let used = format!("sqlite:{}", other.data.path().join("holdfast.db").display());
    refuses_to_move(&old, &["--to", &used], "is in use or was used before");

    let to = place("new");
    let storage = |path: &Path| format!("file://{}", path.display());
    let present = storage(&app.objects_folder());
    let inside = storage(&app.objects_folder().join("inside"));
    for nested in [&present, &inside] {
        let arguments = ["--to", &to, "--storage", nested];
        refuses_to_move(&old, &arguments, "is the present object store");
    }
    std::fs::create_dir(at.path().join("full")).unwrap();
    std::fs::write(at.path().join("full/other.pdf"), "other").unwrap();
    let full = storage(&at.path().join("full"));
    let arguments = ["--to", &to, "--storage", &full];
    refuses_to_move(
        &old,
        &arguments,
        "has objects that this installation does not have",
    );

    let nothing = with_database(&old, &format!("sqlite://{}", place("nothing.db")));
    refuses_to_move(&nothing, &["--to", &to], "nothing.db");
    let empty = with_database(&old, &format!("sqlite://{}?mode=rwc", place("empty.db")));
    refuses_to_move(&empty, &["--to", &to], "has no installation");

    // Nothing was begun by the refused attempts.
    let newest = "insert into migration (version, sha256) values (9999, $1)";
    app.change(newest, "of a newer version").await;
    refuses_to_move(&old, &["--to", &to], "is not that of this program");
    app.change(
        "delete from migration where version = 9999 and '' <> $1",
        "x",
    )
    .await;
    app.change(
        "delete from migration where version = 111 and '' <> $1",
        "x",
    )
    .await;
    refuses_to_move(&old, &["--to", &to], "run `holdfast migrate`");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_with_another_value_or_object_is_not_taken_for_the_installation() {
    let (app, _) = populated().await;
    let at = tempfile::tempdir().unwrap();
    let place = |name: &str| at.path().join(name).display().to_string();
    let old = home(app.data.path());
    let storage = format!("file://{}", place("objects"));
    let to = place("new");
    let arguments = ["--to", to.as_str(), "--storage", storage.as_str()];

    assert!(is_killed(&old, &arguments, "move copied", 1));
    let new = with_database(&old, &format!("sqlite://{to}/holdfast.db"));
    let store = new.store().await;
    let set_name = async |name: &str| {
        let mut tx = store.begin().await.unwrap();
        let update = sqlx::query("update organization set name = $1").bind(name);
        update.execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    };
    let name = app.text_of("select name from organization").await;
    set_name("changed").await;
    refuses_to_move(&old, &arguments, "table organization has");
    set_name(&name).await;

    let object = files_below(&at.path().join("objects")).remove(0);
    let bytes = std::fs::read(&object).unwrap();
    std::fs::remove_file(&object).unwrap();
    std::fs::write(&object, [&bytes[..], b"x"].concat()).unwrap();
    refuses_to_move(&old, &arguments, "1 objects have other bytes");
    refused(&new, &["org", "list"], "it is the incomplete copy of");

    std::fs::remove_file(&object).unwrap();
    moved(&old, &arguments);
    assert_eq!(std::fs::read(&object).unwrap(), bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_with_a_gap_is_not_moved() {
    let app = TestApp::start().await;
    app.vaulted_envelope().await;
    app.stop_working();
    let change = "update ledger_entry set previous_hash = $1 where sequence = 2";
    app.change(change, "other").await;
    let at = tempfile::tempdir().unwrap();
    let to = at.path().join("new").display().to_string();
    let old = home(app.data.path());
    refuses_to_move(&old, &["--to", &to], "entry 2 of the ledger");
    moved(&old, &["--to", &to, "--abandon"]);
    assert!(old.operator("0s", &["org", "list"]).0);
}

/// Fault points of a move that are passed once.
const PLACES: [&str; 6] = [
    "move fenced",
    "move begun",
    "move object",
    "move copied",
    "move verified",
    "move left",
];

/// Kills a move at each step and in slices, `SLICES` of them on the way, and finishes it. Returns the report.
fn moved_with_kills(home: &ServerHome, arguments: &[&str]) -> Value {
    const SLICES: u64 = 16;

    let mut kills = 0;
    for place in &PLACES[..2] {
        assert!(is_killed(home, arguments, place, 1), "{place}");
        kills += 1;
    }
    for nth in 0..SLICES {
        let place = ["move slice", "move sliced"][nth as usize % 2];
        // Further on each time, so that kills hit tables of every size.
        assert!(
            is_killed(home, arguments, place, 1 + nth / 2),
            "{place} {nth}"
        );
        refused(home, &["org", "list"], "it is being moved to");
        kills += 1;
    }
    for place in &PLACES[2..] {
        kills += u32::from(is_killed(home, arguments, place, 1));
    }

    let begun = Instant::now();
    let report = moved(home, arguments);
    println!("{kills} kills; the last run took {:?}", begun.elapsed());
    report
}

/// Repeats the rows of an envelope for this many others, which have the same documents.
async fn multiply(app: &TestApp, id: &str, times: u32) {
    let mut tx = app.store.begin().await.unwrap();
    let tables = "select m.name from sqlite_master m join pragma_table_info(m.name) c on c.name = 'envelope_id'
        where m.type = 'table' and m.name not in ('ledger_leaf', 'tape_row') order by m.name";
    let tables: Vec<String> = sqlx::query_scalar(tables)
        .fetch_all(&mut *tx)
        .await
        .unwrap();

    for table in tables {
        let list = |text: String| AssertSqlSafe(text);
        let columns = format!("select name from pragma_table_info('{table}')");
        let columns: Vec<String> = sqlx::query_scalar(list(columns))
            .fetch_all(&mut *tx)
            .await
            .unwrap();
        let keys = format!(
            "select l.name as key_name, i.name as column_name from pragma_index_list('{table}') l
             join pragma_index_info(l.name) i where l.\"unique\" = 1 order by l.name, i.seqno"
        );
        let keys = sqlx::query(list(keys)).fetch_all(&mut *tx).await.unwrap();
        let mut by_key: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in keys {
            let (key, column): (String, String) = (row.get("key_name"), row.get("column_name"));
            by_key.entry(key).or_default().push(column);
        }

        // A key without the envelope ends with an id or a hash of its own.
        let with_others = by_key
            .into_values()
            .filter(|key| !key.iter().any(|column| column == "envelope_id"));
        let mut replaced: Vec<String> = with_others.filter_map(|mut key| key.pop()).collect();
        replaced.push("envelope_id".into());

        let values = columns.iter().map(|column| {
            if replaced.contains(column) {
                format!("substr({column}, 1, length({column}) - 6) || printf('%06d', n)")
            } else {
                column.clone()
            }
        });
        let values: Vec<String> = values.collect();
        let insert = format!(
            "insert into {table} ({}) with recursive number (n) as (select 1 union all select n + 1 from number where n < {times})
             select {} from {table} cross join number where envelope_id = $1",
            columns.join(", "),
            values.join(", ")
        );
        sqlx::query(list(insert))
            .bind(id)
            .execute(&mut *tx)
            .await
            .unwrap_or_else(|error| panic!("{table}: {error}"));
    }
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_at_each_step_of_a_move_lose_and_repeat_nothing() {
    let wanted = std::env::var("MOVE_RECORDS").ok();
    let records: u32 = wanted.map_or(500, |wanted| wanted.parse().unwrap());
    let (app, ledgers) = populated().await;
    let vaulted = "select envelope_id from envelope where status = 'vaulted'";
    multiply(&app, &app.text_of(vaulted).await, records).await;

    let at = tempfile::tempdir().unwrap();
    let storage = |name: &str| format!("file://{}", at.path().join(name).display());
    let (old, database) = (home(app.data.path()), postgres::new_database().await);
    let rows = async |table: &str| app.count(table).await;
    let (envelopes, entries) = (rows("envelope").await, rows("ledger_entry").await);
    assert!(envelopes > i64::from(records));

    let first = storage("first");
    let report = moved_with_kills(&old, &["--to", &database, "--storage", &first]);
    assert_eq!(report["tables"]["envelope"]["rows"], envelopes);
    assert_eq!(report["tables"]["ledger_entry"]["rows"], entries);
    assert_eq!(report["ledgers"]["entries"], entries);
    let new = with_storage(&with_database(&old, &database), &first);
    evidence_is_valid(&new, &ledgers);

    let entries = report["ledgers"]["entries"].clone();
    let folder = at.path().join("back").display().to_string();
    let second = storage("second");
    let report = moved_with_kills(&new, &["--to", &folder, "--storage", &second]);
    assert_eq!(report["tables"]["envelope"]["rows"], envelopes);
    assert_eq!(report["ledgers"]["entries"], entries);
    let back = with_database(&old, report["to"].as_str().unwrap());
    evidence_is_valid(&with_storage(&back, &second), &ledgers);
}

/// Asserts that the evidence of these records is valid.
fn evidence_is_valid(home: &ServerHome, ledgers: &BTreeMap<String, Value>) {
    for id in ledgers.keys() {
        let (_, report) = home.operator("0s", &["verify", id]);
        assert_eq!(report["valid"], true, "{report:#}");
    }
}
