//! Vault-in of a small and a large document, compared with the least work that any vault has to do.

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast::store::Store;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::Failure;
use crate::load::LoadConnection;
use crate::meter::ProcessMeter;
use crate::partner::{FORM, PartnerClient, form, scans};
use crate::report::{self, ReportTable, median, millis, percentile};
use crate::webhooks::database;

const MEGABYTE: usize = 1_000_000;
const SIZES: [usize; 2] = [MEGABYTE, 25 * MEGABYTE];
const ROUNDS: usize = 5;
/// Vault-ins side by side, and their number.
const AT_ONCE: usize = 8;
const MANY: usize = 240;

/// Runs the measurements and prints a table.
pub fn run() -> Result<(), Failure> {
    let postgres = std::env::var("TEST_POSTGRES_URL").map_err(
        |_| "no PostgreSQL: run `make bench`, or this program through tests/with-postgres",
    )?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        report::heading("Vault-in of an uploaded PDF");
        let headings = ["document", "floor ms", "vault-in ms", "ratio", "peak MB", "peak/document"];
        let mut table = ReportTable::new(&headings);
        for size in SIZES {
            table.row(measure(size).await?);
        }

        table.print();
        println!(
            "\nMedians of {ROUNDS}; SQLite and a folder; a document of scanned pages, 1 MB each. The floor is SHA-256 of the bytes, two writes\n\
             of them with fsync and one ECDSA signature. Vault-in marks, seals, makes the copy,\n\
             certificate and custody record, stores and reads back each of them, and records\n\
             what it asked others. The peak is what the server held above what it held before."
        );

        report::heading(&format!("{AT_ONCE} vault-ins at once, 100 kB each"));
        let headings = ["database", "vault-ins/s", "p50 ms", "p99 ms", "server CPU ms", "database CPU ms"];
        let mut table = ReportTable::new(&headings);
        for kind in ["SQLite", "PostgreSQL"] {
            table.row(at_once(kind, &postgres).await?);
        }

        table.print();
        println!("\n{MANY} uploaded documents of one scanned page, {AT_ONCE} at a time; objects in a folder.");
        Ok(())
    })
}

/// Vaults many small documents side by side.
async fn at_once(kind: &'static str, postgres: &str) -> Result<Vec<String>, Failure> {
    let folder = tempfile::tempdir()?;
    let url = database(kind, postgres, "vault", folder.path()).await?;
    let partner = PartnerClient::start(folder.path(), &url)?;
    let store = Store::connect(&url).await?;
    let document = scans(1, 100_000);
    vaulted(&partner, &document).await?;
    let mut requests = Vec::new();
    for _ in 0..MANY {
        requests.push(uploaded(&partner, &document).await?);
    }

    let meter = ProcessMeter::start(partner.server.id(), &store).await?;
    let (address, began) = (partner.server.address, Instant::now());
    let mut waiting: Vec<Vec<Vec<u8>>> = vec![Vec::new(); AT_ONCE];
    for (index, request) in requests.into_iter().enumerate() {
        waiting[index % AT_ONCE].push(request);
    }

    let tasks: Vec<_> = waiting
        .into_iter()
        .map(|requests| tokio::spawn(in_turn(address, requests)))
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }

    let took = began.elapsed().as_secs_f64();
    let used = meter.stop();
    store.close().await;
    partner.server.stop()?;
    let count = MANY as f64;
    Ok(vec![
        kind.to_owned(),
        format!("{:.0}", count / took),
        format!("{:.0}", percentile(&times, 50)),
        format!("{:.0}", percentile(&times, 99)),
        format!("{:.1}", used.server * 1e3 / count),
        format!("{:.1}", used.database * 1e3 / count),
    ])
}

/// Sends vault-ins over one connection; returns the milliseconds of each.
async fn in_turn(address: SocketAddr, requests: Vec<Vec<u8>>) -> Result<Vec<f64>, Failure> {
    let mut connection = LoadConnection::open(address).await?;
    let mut times = Vec::new();
    for request in requests {
        let asked = Instant::now();
        let answer = connection.ask(&request).await?;
        times.push(millis(asked.elapsed()));
        if answer.status != 200 {
            return Err(String::from_utf8_lossy(&answer.body).into());
        }
    }

    Ok(times)
}

async fn measure(size: usize) -> Result<Vec<String>, Failure> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}", folder.path().join("holdfast.db").display());
    let partner = PartnerClient::start(folder.path(), &url)?;

    // Warm-up: one-time loading is not part of any pipeline.
    vaulted(&partner, &scans(1, 1000)).await?;
    let document = scans(size / MEGABYTE, MEGABYTE);

    let (mut floors, mut times, mut peaks) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(millis(floor(folder.path(), &document)?));
        let (time, peak) = vaulted(&partner, &document).await?;
        times.push(millis(time));
        peaks.push(peak);
    }

    partner.server.stop()?;
    let (floor, time) = (median(&floors), median(&times));
    let peak = peaks.iter().copied().fold(0.0, f64::max);
    Ok(vec![
        format!("{} MB", size / MEGABYTE),
        format!("{floor:.1}"),
        format!("{time:.1}"),
        format!("{:.1}", time / floor),
        format!("{:.1}", peak / 1e6),
        format!("{:.1}", peak / size as f64),
    ])
}

/// Vaults a document. Returns the duration, and the peak memory of the server above its memory
/// before.
async fn vaulted(partner: &PartnerClient, document: &[u8]) -> Result<(Duration, f64), Failure> {
    let request = uploaded(partner, document).await?;
    let address = partner.server.address;
    let before = partner.server.resident()?;
    let began = Instant::now();
    let task = tokio::spawn(async move {
        let mut connection = LoadConnection::open(address).await?;
        let answer = connection.ask(&request).await?;
        Ok::<_, Failure>((answer.status, answer.body, began.elapsed()))
    });

    let mut peak = before;
    while !task.is_finished() {
        peak = peak.max(partner.server.resident()?);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    let (status, body, time) = task.await??;
    let body: Value = serde_json::from_slice(&body)?;
    if status != 200 || body["data"]["status"] != "vaulted" {
        return Err(format!("vault-in was answered with {status}: {body}").into());
    }

    Ok((time, (peak - before) * 1024.0))
}

/// Uploads a document for a new envelope. Returns the request that vaults it.
async fn uploaded(partner: &PartnerClient, document: &[u8]) -> Result<Vec<u8>, Failure> {
    let body = json!({
        "envelope_name": "Scan", "customer_email": "jo@example.com", "customer_name": "Jo",
        "envelope_kind": "paper",
    });
    let json = "application/json";
    let create = partner.request("POST", "/envelopes", json, body.to_string().as_bytes());
    let id = partner.ask(&create).await?["envelope_id"].take();
    let id = id.as_str().unwrap_or_default();
    let upload = partner.request(
        "POST",
        &format!("/envelopes/{id}/upload"),
        FORM,
        &form(document, &[]),
    );
    partner.ask(&upload).await?;

    let vault_in = format!("/envelopes/{id}/vault-in-upload");
    Ok(partner.request("POST", &vault_in, json, b"{}"))
}

/// Measures the lower bound: a hash, two synced writes, and a signature.
fn floor(folder: &Path, document: &[u8]) -> Result<Duration, Failure> {
    let key = SigningKey::from_slice(&[7; 32])?;
    let began = Instant::now();
    let digest = Sha256::digest(document);

    for name in ["one", "two"] {
        let mut file = File::create(folder.join(name))?;
        file.write_all(document)?;
        file.sync_all()?;
    }

    let signature: Signature = key.sign(&digest);
    let took = began.elapsed();
    std::hint::black_box(signature);

    Ok(took)
}
