//! Pages of the console, and the daily run of retention, with 100,000 envelopes of one organization.

use std::path::Path;
use std::time::{Duration, Instant};

use holdfast::config::Config;
use holdfast::domain::clock::Clock;
use holdfast::domain::envelope::{
    Envelope, EnvelopeKind, EnvelopeStatus, Signer, SignerNotice, SignerStatus,
};
use holdfast::domain::id::OrgId;
use holdfast::domain::retention::{EndEvent, RetentionSchedule};
use holdfast::retention;
use holdfast::store::retention::{OwnedSchedules, set_schedules};
use holdfast::store::{SqlDialect, Store, customers, envelopes, signers};

use crate::Failure;
use crate::load;
use crate::partner::PartnerClient;
use crate::report::{ReportTable, heading, millis, percentile};
use crate::webhooks::database;

const ENVELOPES: usize = 100_000;
/// People who look at the same time.
const PEOPLE: usize = 2;
/// Time for each page.
const TURN: Duration = Duration::from_secs(4);
/// People load fewer pages in a minute than the load does in a second.
const SETTINGS: [(&str, &str); 2] = [
    ("HOLDFAST_RATE_LIMITS__WEB_TOKEN", "0"),
    ("HOLDFAST_RATE_LIMITS__ADDRESS", "0"),
];

const PAGES: [(&str, &str); 11] = [
    ("home", ""),
    ("list", "/envelopes"),
    ("list, oldest first", "/envelopes?sort=oldest"),
    ("needs you", "/envelopes?tab=needs-you"),
    ("waiting for others", "/envelopes?tab=waiting"),
    ("stuck", "/envelopes?tab=stuck"),
    ("done", "/envelopes?tab=done"),
    ("by status", "/envelopes?status=viewed"),
    ("search that finds many", "/envelopes?q=contract"),
    ("search that finds nothing", "/envelopes?q=nowhere"),
    ("activity", "/activity"),
];

/// Measures the pages on both databases.
pub fn run() -> Result<(), Failure> {
    let server = std::env::var("TEST_POSTGRES_URL")
        .map_err(|_| "no PostgreSQL: run this with `make bench`")?;
    heading("Pages of the console, 100,000 envelopes of one organization");
    let mut table = ReportTable::new(&["database, page", "pages/s", "p50 ms", "p99 ms"]);
    let mut runs = ReportTable::new(&["daily run of retention", "s", "commits"]);
    let runtime = tokio::runtime::Runtime::new()?;
    for kind in ["SQLite", "PostgreSQL"] {
        runtime.block_on(measure((&mut table, &mut runs), kind, &server))?;
    }

    table.print();
    println!("\n{PEOPLE} people at once. Goal: p99 of each list at most 100 ms.\n");
    runs.print();
    println!("\nNo record is due. Goal: at most 60 s, and nothing is written.");
    Ok(())
}

async fn measure(
    (table, runs): (&mut ReportTable, &mut ReportTable),
    kind: &str,
    server: &str,
) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let url = database(kind, server, "console", folder.path()).await?;
    let partner = PartnerClient::start_with(folder.path(), &url, &SETTINGS)?;
    let store = Store::connect(&url).await?;
    fill(&store, &partner.org).await?;
    store.close().await;

    let cookie = partner.console_cookie().await?;
    let headers = [("cookie", cookie.as_str()), ("accept", "text/html")];
    let address = partner.server.address;
    for (name, path) in PAGES {
        let page = load::get(address, &format!("/console{path}"), &headers);
        let times = load::run(address, &[page], PEOPLE, TURN, 200).await?;
        let times: Vec<f64> = times.into_iter().map(millis).collect();
        table.row([
            format!("{kind}, {name}"),
            format!("{:.0}", times.len() as f64 / TURN.as_secs_f64()),
            format!("{:.1}", percentile(&times, 50)),
            format!("{:.1}", percentile(&times, 99)),
        ]);
    }

    partner.server.stop()?;
    let (took, commits) = daily_run(folder.path(), &url, &partner.org).await?;
    runs.row([
        kind.to_owned(),
        format!("{:.2}", took.as_secs_f64()),
        commits.to_string(),
    ]);
    Ok(())
}

/// Judges all envelopes by a schedule for each event. Returns the time, and the number of commits.
async fn daily_run(folder: &Path, url: &str, org: &OrgId) -> Result<(Duration, u64), Failure> {
    let app = holdfast::start::start(Config {
        data_dir: folder.to_owned(),
        database_url: Some(url.to_owned()),
        ..Config::default()
    })
    .await?;
    let schedules = EndEvent::ALL.iter().map(|event| RetentionSchedule {
        name: event.to_string(),
        kind: None,
        jurisdiction: None,
        event: *event,
        keep_months: 84,
    });
    let owned = OwnedSchedules {
        org: org.clone(),
        schedules: schedules.collect(),
        changed_by: "bench".to_owned(),
        changed_at: app.clock.now(),
    };
    let mut tx = app.store.begin().await?;
    set_schedules(&mut tx, &owned).await?;
    tx.commit().await?;

    let (begin, before) = (Instant::now(), app.store.commits());
    let proposed = retention::propose(&app).await?;
    let (took, commits) = (begin.elapsed(), app.store.commits() - before);
    if proposed > 0 {
        return Err(format!("{proposed} records are due").into());
    }
    app.store.close().await;

    Ok((took, commits))
}

/// Adds envelopes in the states of a dealer: most are vaulted, and some signers cannot be reached.
async fn fill(store: &Store, org: &OrgId) -> Result<(), Failure> {
    let now = Clock::default().now();
    let mut tx = store.begin().await?;
    let customer = customers::upsert_by_email(&mut tx, org, "jo@example.com", "Jo", now).await?;
    for number in 0..ENVELOPES {
        let mut envelope = Envelope::new(
            org.clone(),
            customer.id.clone(),
            format!("Contract {number}"),
            EnvelopeKind::Esign,
            "bench@example.com".to_owned(),
            now,
        );
        envelope.status = status(number);
        envelope.external_id = Some(format!("deal-{number}"));
        envelopes::insert(&mut tx, &envelope).await?;

        let name = format!("Jo {}", number % 1_000);
        let email = format!("jo{number}@example.com");
        let mut signer = Signer::new(0, name, email, "Buyer".to_owned());
        if matches!(
            envelope.status,
            EnvelopeStatus::Completed | EnvelopeStatus::Vaulted
        ) {
            signer.status = SignerStatus::Completed;
        }
        signers::insert(&mut tx, &envelope, &signer).await?;
        if number % 200 == 3 {
            let notice = SignerNotice {
                at: now,
                failure: Some("550 no such user".to_owned()),
            };
            signers::set_notice(&mut tx, &envelope, &signer, &notice).await?;
        }
    }
    tx.commit().await?;

    // PostgreSQL analyzes tables automatically, but only after a minute; SQLite never does.
    if store.dialect() == SqlDialect::Postgres {
        let mut connection = store.read().await?;
        sqlx::query("analyze").execute(&mut *connection).await?;
    }

    Ok(())
}

fn status(number: usize) -> EnvelopeStatus {
    match number % 20 {
        0 => EnvelopeStatus::Pending,
        1 | 3 => EnvelopeStatus::Sent,
        2 => EnvelopeStatus::Viewed,
        4 => EnvelopeStatus::Declined,
        5 => EnvelopeStatus::Completed,
        _ => EnvelopeStatus::Vaulted,
    }
}
