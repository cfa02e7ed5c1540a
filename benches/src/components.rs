//! What a call costs by slot, what an upload costs, and who notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast::components::compiler::Compiler;
use holdfast::components::egress::Egress;
use holdfast::components::providers::ProviderLease;
use holdfast::components::rules::{documents, lifecycle};
use holdfast::components::{Artifact, Components, embedded};
use holdfast::config::SecretText;
use holdfast::domain::clock::Clock;
use holdfast::domain::component::Slot;
use holdfast::domain::envelope::EnvelopeStatus;

use crate::Failure;
use crate::compliance::records;
use crate::report::{self, Table, median, micros, millis, percentile};
use crate::server;

const CONTRACT: &[u8] = include_bytes!("../../tests/fixtures/retail-installment-contract.pdf");
const CALLS: usize = 400;
const FEW: usize = 30;

/// Measures, and prints three tables.
pub fn run() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let cache = tempfile::tempdir()?;
        let components = Arc::new(Components::with_defaults(cache.path().into(), [0; 32])?);
        components.load_documents();
        calls(&components).await?;
        uploads().await?;
        bystanders(&components).await
    })
}

fn row(table: &mut Table, name: &str, times: &[f64]) {
    let middle = median(times);
    table.row([
        name.into(),
        format!("{middle:.1}"),
        format!("{:.1}", percentile(times, 99)),
        format!("{:.0}", 1e6 / middle),
    ]);
}

/// One call in a fresh instance, by slot, through the API that services use.
async fn calls(components: &Components) -> Result<(), Failure> {
    report::heading("One call of each slot, in a fresh instance");
    let mut table = Table::new(&["call", "median µs", "p99 µs", "a second"]);
    let facts = records::for_component(&records::passing());
    let rules = components.compliance(None);
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let began = Instant::now();
        rules.evaluate(&facts)?;
        times.push(micros(began.elapsed()));
    }
    row(&mut table, "rules.compliance evaluate", &times);

    let moves = components.lifecycle(None);
    let asked = lifecycle::EnvelopeFacts {
        kind: lifecycle::EnvelopeKind::Esign,
        has_template: true,
        is_upload: false,
        has_file: false,
        has_vault_file: false,
        payment: lifecycle::PaymentStatus::NotRequested,
        attributes: Vec::new(),
    };
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let began = Instant::now();
        let sent = Some(EnvelopeStatus::Sent);
        moves.envelope(sent, lifecycle::EnvelopeTrigger::View, &asked)?;
        times.push(micros(began.elapsed()));
    }
    row(&mut table, "rules.lifecycle envelope", &times);

    let contract = Bytes::from_static(CONTRACT);
    let reader = components.placement(None);
    let mut times = Vec::new();
    for _ in 0..FEW {
        let began = Instant::now();
        let facts = reader.inspect(contract.clone()).await?;
        facts.map_err(|error| format!("{error:?}"))?;
        times.push(micros(began.elapsed()));
    }
    row(&mut table, "rules.placement inspect, 4 pages", &times);

    let writer = components.documents(None);
    let request = documents::MarkRequest {
        kind: documents::CopyKind::NonAuthoritative,
        envelope_id: "env_01jt8s5gq2e6m9x4k7w3c5d8fa".into(),
        secured_party: Some("First Example Bank".into()),
        marked_at: "2026-05-04T15:04:05.000Z".into(),
        rewrite: false,
    };
    let mut times = Vec::new();
    for _ in 0..FEW {
        let began = Instant::now();
        let marked = writer.mark(contract.clone(), request.clone()).await?;
        marked.map_err(|error| format!("{error:?}"))?;
        times.push(micros(began.elapsed()));
    }
    row(&mut table, "rules.documents mark, 4 pages", &times);

    let plugin = components.signing(None, "embedded");
    let far_end =
        axum::Router::new().fallback(|| async { (axum::http::StatusCode::NOT_FOUND, "{}") });
    let lease = || ProviderLease {
        label: "bench".into(),
        settings: Arc::new([("base_url".to_owned(), "http://far-end".to_owned())].into()),
        secrets: Arc::new([("api_key".to_owned(), SecretText::new("key"))].into()),
        egress: Egress::in_process(far_end.clone(), "far-end"),
        clock: Clock::default(),
    };
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let began = Instant::now();
        let _ = plugin.read_submission(lease(), "1").await;
        times.push(micros(began.elapsed()));
    }
    row(
        &mut table,
        "provider.signing read-submission, far end in process",
        &times,
    );
    table.print();
    println!("\n{CALLS} calls each, {FEW} of those that work on a document.");
    Ok(())
}

/// The server's program, which compiles.
fn compiler() -> Result<Compiler, Failure> {
    let program = server::program()?;
    Ok(Compiler::new(Some(program), Duration::from_secs(300)))
}

/// Compiled in a process of its own, and loaded from the cache.
async fn uploads() -> Result<(), Failure> {
    report::heading("A component's way in");
    let compiler = compiler()?;
    let mut table = Table::new(&["component", "kB", "compiled ms", "cached kB", "loaded ms"]);
    for artifact in embedded() {
        let bytes = Bytes::from(artifact.bytes.clone().into_owned());
        let began = Instant::now();
        let (inspected, native) = compiler.compile(bytes.clone()).await?;
        let compiled = began.elapsed();
        let cache = tempfile::tempdir()?;
        let uploaded = Artifact::uploaded(inspected.slot, &artifact.identity.name, "9.9.9", bytes);
        let node = || Components::with_defaults(cache.path().into(), [0; 32]);
        node()?.keep_native(&uploaded, &native)?;
        let node = node()?;
        let began = Instant::now();
        node.add(&uploaded)?;
        let loaded = began.elapsed();
        table.row([
            artifact.identity.name.clone(),
            format!("{:.0}", artifact.bytes.len() as f64 / 1e3),
            format!("{:.0}", millis(compiled)),
            format!("{:.0}", native.len() as f64 / 1e3),
            format!("{:.1}", millis(loaded)),
        ]);
    }
    table.print();
    println!("\nLoading is reading the cache, checking its MAC, linking, and the canary.");
    Ok(())
}

/// What callers notice while the largest component is compiled.
async fn bystanders(components: &Arc<Components>) -> Result<(), Failure> {
    report::heading("Callers while a candidate is compiled");
    let mut table = Table::new(&["meanwhile", "median µs", "p99 µs", "worst ms"]);
    let largest = embedded().find(|artifact| artifact.slot == Slot::Documents);
    let largest = largest.ok_or("no document component")?;
    let alone = latencies(
        components,
        Duration::from_secs(3),
        Arc::new(AtomicBool::new(false)),
    );
    noticed(&mut table, "nothing", &alone.await?);
    let compiler = compiler()?;
    let done = Arc::new(AtomicBool::new(false));
    let ended = done.clone();
    let compiling = async {
        let bytes = Bytes::from(largest.bytes.clone().into_owned());
        let compiled = compiler.compile(bytes).await;
        ended.store(true, Ordering::Relaxed);
        compiled
    };
    let asking = latencies(components, Duration::from_secs(300), done);
    let (compiled, asked) = tokio::join!(compiling, asking);
    compiled?;
    noticed(&mut table, "a component of 9 MB is compiled", &asked?);
    table.print();
    Ok(())
}

fn noticed(table: &mut Table, name: &str, times: &[f64]) {
    table.row([
        name.into(),
        format!("{:.1}", median(times)),
        format!("{:.1}", percentile(times, 99)),
        format!("{:.1}", percentile(times, 100) / 1e3),
    ]);
}

/// Two callers, one call a millisecond each: how long each took.
async fn latencies(
    components: &Arc<Components>,
    longest: Duration,
    done: Arc<AtomicBool>,
) -> Result<Vec<f64>, Failure> {
    let mut callers = Vec::new();
    for _ in 0..2 {
        let (components, done) = (components.clone(), done.clone());
        callers.push(std::thread::spawn(move || {
            let facts = records::for_component(&records::passing());
            let began = Instant::now();
            let mut times = Vec::new();
            while began.elapsed() < longest && !done.load(Ordering::Relaxed) {
                let one = Instant::now();
                if components.compliance(None).evaluate(&facts).is_err() {
                    return None;
                }
                times.push(micros(one.elapsed()));
                std::thread::sleep(Duration::from_millis(1));
            }
            Some(times)
        }));
    }
    let waiting = tokio::task::spawn_blocking(move || {
        let mut all = Vec::new();
        for caller in callers {
            all.extend(caller.join().ok().flatten()?);
        }
        Some(all)
    });
    Ok(waiting.await?.ok_or("a call failed")?)
}
