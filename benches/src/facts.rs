//! Facts of a contract, funding checks, and tapes over stored facts.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast::components::ComponentRegistry;
use holdfast::components::rules::funding;
use holdfast::domain::clock::Clock;
use holdfast::domain::fact_map::{
    FactDirection, FactMapDocument, FactWords, MappedFact, PrintedPlace,
};
use holdfast::domain::facts::{Fact, FactKind, FactOrigin, FactPlace, FactSource, FactStatus};
use holdfast::domain::id::{CustomerId, EnvelopeId, OrgId};
use holdfast::domain::priority::PriorityClass;
use holdfast::store::{SqlDialect, Store};
use holdfast_placement as native;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::Failure;
use crate::load;
use crate::meter::ProcessMeter;
use crate::partner::{BenchTenant, FORM, PartnerClient, form};
use crate::pdf::PdfBuilder;
use crate::report::{ReportTable, heading, median, micros, millis, percentile, thousands};
use crate::webhooks::database;

const STARTER: &str =
    include_str!("../../host/crates/service/src/facts/starters/retail_installment.json");
const VECTORS: &str = include_str!("../../wit/funding/vectors.json");
const PAGES: usize = 6;
const ROUNDS: usize = 5;
/// Calls of a round.
const READINGS: usize = 40;
const CHECKS: usize = 2_000;

/// Rows of the tapes. Each tape has an organization with as many records. They need some 5 GB of the disk.
const TAPES: [u64; 2] = [100_000, 1_000_000];
/// Records that one statement adds. The server writes between two of them.
const BATCH: u64 = 20_000;
/// Number of the first record. All numbers have as many digits, so that SQL needs no padding.
const FIRST: u64 = 1_000_000;
/// Number of the first contract that nobody has.
const UNKNOWN: u64 = 5_000_000;
/// Tapes of strangers of each sort.
const STRANGERS: usize = 3;
/// Every so many rows, one has a wrong amount.
const WRONG: u64 = 1_000;
/// Time between two looks at a tape.
const POLL: Duration = Duration::from_millis(50);

/// Columns of the tapes: fact, type, and its value, in which the number of the record replaces `#`.
const COLUMNS: [(&str, FactKind, &str); 8] = [
    ("contract_number", FactKind::Text, "RIC-#"),
    ("vin", FactKind::Vin, "1HGCM82633#"),
    ("contract_date", FactKind::Date, "2026-11-21"),
    ("amount_financed", FactKind::Money, "21500.00"),
    ("finance_charge", FactKind::Money, "4920.56"),
    ("apr", FactKind::Percentage, "7.9"),
    ("number_of_payments", FactKind::Integer, "60"),
    ("payment_amount", FactKind::Money, "440.34"),
];

/// Runs the measurements and prints two tables.
pub fn run() -> Result<(), Failure> {
    let server = std::env::var("TEST_POSTGRES_URL")
        .map_err(|_| "no PostgreSQL: run this with `make bench`")?;
    let runtime = tokio::runtime::Runtime::new()?;
    let cache = tempfile::tempdir()?;
    let components = ComponentRegistry::with_defaults(cache.path().into(), [0; 32])?;
    components.load_documents();

    heading("Facts of a contract, and a funding check, in a fresh instance");
    let mut table = ReportTable::new(&["call", "median µs", "p99 µs", "native µs", "x native"]);
    runtime.block_on(reading(&mut table, &components))?;
    checking(&mut table, &components)?;
    table.print();
    println!("\nGoals: facts of {PAGES} pages 5,000 µs, a funding check 15 µs.");

    heading("Tapes over stored facts");
    let mut table = ReportTable::new(&[
        "database, tape",
        "s",
        "rows/s",
        "floor s",
        "x floor",
        "peak MiB",
        "used again",
    ]);
    let mut of_strangers = Vec::new();
    for kind in ["SQLite", "PostgreSQL"] {
        let ratio = runtime.block_on(tapes(&mut table, kind, &server))?;
        of_strangers.push(format!("{ratio:.2} ({kind})"));
    }
    table.print();
    println!(
        "\nFrom the upload to the result. The floor reads the same file and hashes each line, in one thread. Goals: 10 s\n\
         for 100,000 rows, 90 s for 1,000,000, and 200 MiB of the server for both.\n\
         A stranger's tape of contracts of others takes {} times as long as one of contracts that nobody has.",
        of_strangers.join(", ")
    );
    Ok(())
}

/// Adds the times of calls of a component, and of the same work without one.
fn add_row(table: &mut ReportTable, name: String, times: &[Duration], natively: &[Duration]) {
    let in_micros =
        |times: &[Duration]| -> Vec<f64> { times.iter().copied().map(micros).collect() };
    let (times, natively) = (in_micros(times), in_micros(natively));
    table.row([
        name,
        format!("{:.1}", median(&times)),
        format!("{:.1}", percentile(&times, 99)),
        format!("{:.1}", median(&natively)),
        format!("{:.1}", median(&times) / median(&natively)),
    ]);
}

async fn reading(table: &mut ReportTable, components: &ComponentRegistry) -> Result<(), Failure> {
    let map: Arc<FactMapDocument> = Arc::new(serde_json::from_str(STARTER)?);
    let requests: Vec<native::FactRequest> = map.facts.iter().map(request).collect();
    let contract = Bytes::from(contract());
    let reader = components.placement(None, PriorityClass::Request);
    let words: Arc<[FactWords]> = Arc::new([]);

    // In turns, so that both are exposed to the same noise.
    let (mut times, mut natively) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for _ in 0..READINGS {
            let began = Instant::now();
            let facts = reader.facts(contract.clone(), map.clone(), words.clone());
            let facts = facts.await?.ok_or("the component reads no facts")?;
            times.push(began.elapsed());
            if facts.printed.len() != requests.len() {
                return Err("a reading is missing".into());
            }
            black_box(facts);
        }
        for _ in 0..READINGS {
            let began = Instant::now();
            let readings = native::read(contract.to_vec(), &requests);
            natively.push(began.elapsed());
            black_box(readings).map_err(|error| format!("{error:?}"))?;
        }
    }

    let name = format!("{} facts of {PAGES} pages", requests.len());
    add_row(table, name, &times, &natively);
    Ok(())
}

/// Converts a fact of a map for the reader without a sandbox.
fn request(fact: &MappedFact) -> native::FactRequest {
    let source = |place: &PrintedPlace| native::PrintedSource {
        anchor: place.anchor.clone(),
        occurrence: place.occurrence,
        page: place.page,
        direction: match place.direction {
            FactDirection::RightOf => native::Direction::RightOf,
            FactDirection::Below => native::Direction::Below,
            FactDirection::NumberOfLine => {
                native::Direction::NumberOfLine(place.number.unwrap_or(1))
            }
        },
    };

    native::FactRequest {
        format: native::ValueFormat {
            kind: match fact.kind {
                FactKind::Text => native::ValueKind::Text,
                FactKind::Integer => native::ValueKind::Integer,
                FactKind::Money => native::ValueKind::Money,
                FactKind::Percentage => native::ValueKind::Percentage,
                FactKind::Date => native::ValueKind::Date,
                FactKind::Vin => native::ValueKind::Vin,
                FactKind::Boolean => native::ValueKind::Boolean,
            },
            currency: fact.currency.clone(),
            date_order: fact.date_order.clone(),
            decimal_separator: fact.decimal_separator.clone(),
        },
        sources: fact.printed.iter().map(source).collect(),
    }
}

/// Returns a contract with its facts on the first page, and five pages of terms.
fn contract() -> Vec<u8> {
    let first = [
        "Contract Number: RIC-2041    Contract Date: 11/21/2026",
        "Buyer Name: Jordan Lee",
        "Seller Name: Oak Motors LLC",
        "Assignee: First Example Bank",
        "Vehicle Identification Number: 1M8GDM9AXKP042788",
        "Annual Percentage Rate: 7.90 %",
        "Finance Charge: $4,920.56",
        "Amount Financed: $21,500.00",
        "Total of Payments: $26,420.56",
        "Number of Payments: 60",
        "Payment Amount: $440.34",
        "First Payment: 12/21/2026",
    ];
    let terms = "You promise to pay the Amount Financed and the Finance Charge on the dates of the schedule above.";

    let mut pdf = PdfBuilder::new();
    for page in 0..PAGES {
        let own: &[&str] = if page == 0 { &first } else { &[] };
        let lines = own.iter().copied().chain(std::iter::repeat(terms)).take(60);
        let mut content = String::from("BT /F1 8 Tf 40 760 Td 12 TL\n");
        for line in lines {
            content += &format!("({line}) Tj T*\n");
        }
        content += "ET";
        pdf.page_with("/MediaBox [0 0 612 792]", "", &content);
    }
    pdf.build()
}

fn checking(table: &mut ReportTable, components: &ComponentRegistry) -> Result<(), Failure> {
    let vectors: Value = serde_json::from_str(VECTORS)?;
    let complete = &vectors["vectors"][0]["facts"];
    let facts: funding::FundingFacts = serde_json::from_value(complete.clone())?;
    let same: holdfast_funding::types::FundingFacts = serde_json::from_value(complete.clone())?;
    let rules = components.funding(None);

    let (mut times, mut natively) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for _ in 0..CHECKS {
            let began = Instant::now();
            let assessment = rules.check(black_box(&facts))?;
            times.push(began.elapsed());
            if assessment.decision != funding::Decision::Ready {
                return Err("the complete contract is not ready".into());
            }
        }
        for _ in 0..CHECKS {
            let began = Instant::now();
            black_box(holdfast_funding::check(black_box(&same)));
            natively.push(began.elapsed());
        }
    }

    add_row(table, "funding check".into(), &times, &natively);
    Ok(())
}

/// Measures tapes of all sizes on a database, each twice, and returns the ratio of [`strangers`].
async fn tapes(table: &mut ReportTable, kind: &str, server: &str) -> Result<f64, Failure> {
    let folder = tempfile::tempdir()?;
    let url = database(kind, server, "facts", folder.path()).await?;
    let partner = PartnerClient::start(folder.path(), &url)?;
    let store = Store::connect(&url).await?;
    for rows in TAPES {
        let tenant = partner.another()?;
        fill(&store, &tenant.org, rows).await?;
        let tape = tape(FIRST, rows);
        let floor = floor(&tape);

        for turn in ["first", "the next day"] {
            let meter = ProcessMeter::start(partner.server.id(), &store).await?;
            let began = Instant::now();
            let checked = check(&partner, &tenant, &tape).await?;
            let took = began.elapsed();
            let peak = meter.stop().peak;

            // A result that is wrong has no speed.
            let counted = [&checked["totals"]["rows"], &checked["totals"]["exceptions"]];
            if counted != [&json!(rows), &json!(rows / WRONG)] {
                return Err(format!("a tape of {rows} rows came out as {checked}").into());
            }
            table.row([
                format!("{kind}, {} rows, {turn}", thousands(rows as f64)),
                format!("{:.1}", took.as_secs_f64()),
                thousands(rows as f64 / took.as_secs_f64()),
                format!("{:.2}", floor.as_secs_f64()),
                format!("{:.0}", millis(took) / millis(floor)),
                format!("{peak:.0}"),
                thousands(checked["reused"].as_f64().unwrap_or_default()),
            ]);
        }
    }

    let ratio = strangers(&partner, TAPES[0]).await?;
    store.close().await;
    partner.server.stop()?;
    Ok(ratio)
}

/// Compares tapes of contracts that another organization has with those of contracts that nobody has. The time of the
/// first must reveal nothing.
async fn strangers(partner: &PartnerClient, rows: u64) -> Result<f64, Failure> {
    let tapes = [tape(FIRST, rows), tape(UNKNOWN, rows)];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..STRANGERS {
        for (tape, times) in tapes.iter().zip(&mut times) {
            let stranger = partner.another()?;
            let began = Instant::now();
            let checked = check(partner, &stranger, tape).await?;
            times.push(began.elapsed().as_secs_f64());
            if checked["totals"]["unmatched"] != json!(rows) {
                return Err(format!("a stranger's tape came out as {checked}").into());
            }
        }
    }

    Ok(median(&times[0]) / median(&times[1]))
}

/// Returns the value of a column for a record.
fn value(pattern: &str, record: u64) -> String {
    pattern.replace('#', &record.to_string())
}

/// Returns a tape with a row for each record from the first one on.
fn tape(first: u64, rows: u64) -> Vec<u8> {
    let mut text = COLUMNS.map(|(name, _, _)| name).join(",");
    text.push('\n');
    for record in first..first + rows {
        let cells = COLUMNS.map(|(name, _, pattern)| {
            let is_wrong = name == "amount_financed" && record % WRONG == 0;
            let pattern = if is_wrong { "22500.00" } else { pattern };
            value(pattern, record)
        });
        text += &cells.join(",");
        text.push('\n');
    }
    text.into_bytes()
}

/// Reads the file, and hashes each line.
fn floor(tape: &[u8]) -> Duration {
    let began = Instant::now();
    for line in tape.split(|byte| *byte == b'\n') {
        black_box(Sha256::digest(line));
    }
    began.elapsed()
}

/// Sends a tape, and returns it when it is checked.
async fn check(
    partner: &PartnerClient,
    tenant: &BenchTenant,
    tape: &[u8],
) -> Result<Value, Failure> {
    let columns = COLUMNS.map(|(name, _, _)| json!({ "column": name, "fact": name }));
    let map = json!({ "columns": columns, "keys": ["contract_number", "vin_and_date"] });
    let body = form(
        tape,
        &[
            ("name", "Line 12"),
            ("format", "csv"),
            ("map", &map.to_string()),
        ],
    );
    let headers = [("x-api-key", tenant.key.as_str()), ("content-type", FORM)];
    let path = "/api/v2/partner/control/tapes";
    let address = partner.server.address;
    let request = load::request(address, "POST", path, &headers, &body);
    let sent = partner.ask(&request).await?;

    let id = sent["tape_id"].as_str().ok_or("a tape without an id")?;
    let look = load::get(address, &format!("{path}/{id}"), &headers[..1]);
    loop {
        let tape = partner.ask(&look).await?;
        match tape["status"].as_str() {
            Some("checking") => tokio::time::sleep(POLL).await,
            Some("checked") => return Ok(tape),
            _ => return Err(format!("the tape was not checked: {tape}").into()),
        }
    }
}

/// Adds vaulted records with their facts, as after years of contracts.
async fn fill(store: &Store, org: &OrgId, records: u64) -> Result<(), Failure> {
    let id = EnvelopeId::new().to_string();
    let digits = FIRST.to_string().len();
    let prefix = id
        .get(..id.len() - digits)
        .ok_or("an id that is shorter than a number")?;
    let (now, customer) = (Clock::default().now().to_string(), CustomerId::new());
    let facts = stored_facts()?;

    let mut first = FIRST;
    while first < FIRST + records {
        let end = (first + BATCH).min(FIRST + records);
        let mut tx = store.begin().await?;
        for statement in STATEMENTS {
            sqlx::query(sqlx::AssertSqlSafe(format!("{GIVEN} {statement}")))
                .bind(i64::try_from(first)?)
                .bind(i64::try_from(end)?)
                .bind(org.bucket())
                .bind(org.as_str())
                .bind(prefix)
                .bind(customer.as_str())
                .bind(&now)
                .bind(&facts)
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await?;
        first = end;
    }

    // PostgreSQL analyzes tables automatically, but only after a minute; SQLite never does.
    if store.dialect() == SqlDialect::Postgres {
        let mut connection = store.read().await?;
        sqlx::query("analyze").execute(&mut *connection).await?;
    }
    Ok(())
}

/// Returns the facts of the first record as they are stored.
fn stored_facts() -> Result<String, Failure> {
    let facts = COLUMNS.map(|(name, kind, pattern)| {
        let value = Some(value(pattern, FIRST));
        let source = FactSource {
            origin: FactOrigin::Printed,
            value: value.clone(),
            words: value.clone().unwrap_or_default(),
            problem: None,
            place: Some(FactPlace::new(1, [0.1, 0.2, 0.3, 0.02])),
            field: None,
            role: None,
        };
        Fact {
            name: name.to_owned(),
            kind,
            currency: (kind == FactKind::Money).then(|| "USD".to_owned()),
            status: FactStatus::Known,
            value,
            origin: Some(FactOrigin::Printed),
            sources: vec![source],
        }
    });
    Ok(serde_json::to_string(&facts)?)
}

/// Parameters: `$1` and `$2` first number and the one behind the last, `$3` bucket, `$4` organization, `$5` beginning of
/// ids, `$6` customer, `$7` now, `$8` facts of the first record. This prefix names all of them, so that every statement
/// binds the same ones. `record` has the numbers, with the ids.
const GIVEN: &str = "with recursive
    given (first_number, end_number, bucket, org_id, prefix, customer_id, now, facts) as (select
        cast($1 as bigint), cast($2 as bigint), cast($3 as bigint), cast($4 as text), cast($5 as text),
        cast($6 as text), cast($7 as text), cast($8 as text)),
    counted (n) as (
        select first_number from given
        union all select n + 1 from counted, given where n + 1 < end_number),
    record (number, id) as (select cast(n as text), prefix || cast(n as text) from counted, given)";

/// Statements that add a record each, with its facts and the keys that it is found by.
const STATEMENTS: [&str; 4] = [
    "insert into envelope (bucket, envelope_id, org_id, customer_id, name, kind, status, external_id,
         metadata, is_upload, preserve_signing_order, created_by, created_at, updated_at, looked_at)
     select bucket, id, org_id, customer_id, 'Contract ' || number, 'esign', 'vaulted', 'deal-' || number,
         '{}', 0, 0, 'office@example.com', now, now, now
     from record, given",
    "insert into contract_facts (bucket, envelope_id, org_id, fact_map_id, map_version, map_sha256,
         component_name, component_version, component_sha256, document_sha256, inputs, digest, facts, created_at)
     select bucket, id, org_id, 'fmp_bench', 1, 'map', 'holdfast-placement', '0.1.0', 'component', number,
         '{\"fields\":[],\"declared\":{}}', 'facts of ' || id, replace(facts, '1000000', number), now
     from record, given",
    "insert into contract_fact_key (bucket, org_id, key_name, key_value, envelope_id)
     select bucket, org_id, 'contract_number', 'RIC-' || number, id from record, given
     union all select bucket, org_id, 'vin', '1HGCM82633' || number, id from record, given",
    "insert into contract_fact_key (bucket, org_id, key_name, key_value, envelope_id)
     select bucket, org_id, 'external_id', 'deal-' || number, id from record, given
     union all select bucket, org_id, 'envelope_id', id, id from record, given",
];
