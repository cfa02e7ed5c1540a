//! Cost of calls by slot, cost of an upload, and its effect on other callers.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast::components::compiler::ComponentCompiler;
use holdfast::components::egress::{FarEnd, NetworkAccess};
use holdfast::components::providers::signing;
use holdfast::components::providers::{ProviderError, ProviderLease};
use holdfast::components::room::{self, Answer, RoomRecords};
use holdfast::components::rules::{documents, lifecycle};
use holdfast::components::{ComponentArtifact, ComponentRegistry, WordedMark, embedded};
use holdfast::config::{EMBEDDED, SecretText};
use holdfast::domain::clock::Clock;
use holdfast::domain::component::Slot;
use holdfast::domain::envelope::EnvelopeStatus;
use holdfast::domain::priority::PriorityClass;
use holdfast_compliance as native;
use holdfast_lifecycle as native_lifecycle;
use tokio::runtime::Handle;

use crate::Failure;
use crate::compliance::records;
use crate::report::{self, ReportTable, median, micros, millis, percentile};
use crate::server;

const CONTRACT: &[u8] = include_bytes!("../../tests/fixtures/retail-installment-contract.pdf");
const ROUNDS: usize = 5;
const CALLS: usize = 400;
const FEW: usize = 20;

/// Runs the measurements and prints three tables.
pub fn run() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let cache = tempfile::tempdir()?;
    let components = Arc::new(ComponentRegistry::with_defaults(
        cache.path().into(),
        [0; 32],
    )?);
    components.load_documents();

    calls(&components, runtime.handle())?;
    runtime.block_on(async {
        uploads().await?;
        bystanders(&components).await
    })
}

type Call<'a> = Box<dyn Fn() -> Result<(), Failure> + Sync + 'a>;

/// A call through the API of the services, and the same work without a component.
struct CallCase<'a> {
    name: &'static str,
    component: Call<'a>,
    native: Call<'a>,
    calls: usize,
}

/// Makes `calls` calls on each of `threads` threads. Returns their durations in microseconds, and
/// the number of calls per second.
fn timed(threads: usize, calls: usize, call: &Call<'_>) -> Result<(Vec<f64>, f64), Failure> {
    let one_thread = || {
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let began = Instant::now();
            call()?;
            times.push(micros(began.elapsed()));
        }

        Ok::<_, Failure>(times)
    };

    let began = Instant::now();
    let times = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(one_thread)).collect();
        running
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("a call panicked".into()))
            })
            .collect::<Result<Vec<_>, _>>()
    })?;

    let per_second = (threads * calls) as f64 / began.elapsed().as_secs_f64();
    Ok((times.concat(), per_second))
}

/// Measures one call in a fresh instance, by slot.
fn calls(components: &ComponentRegistry, runtime: &Handle) -> Result<(), Failure> {
    report::heading("One call of each slot, in a fresh instance");
    let mut table = ReportTable::new(&[
        "call",
        "median µs",
        "p99 µs",
        "native µs",
        "x native",
        "a second, 1 thread",
        "2 threads",
    ]);
    for case in cases(components, runtime) {
        // In turns, so both are exposed to the same noise.
        let (mut component, mut native) = (Vec::new(), Vec::new());
        let (mut one, mut two) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (times, per_second) = timed(1, case.calls, &case.component)?;
            component.extend(times);
            one.push(per_second);
            native.extend(timed(1, case.calls, &case.native)?.0);
            two.push(timed(2, case.calls, &case.component)?.1);
        }

        let (middle, natively) = (median(&component), median(&native));
        table.row([
            case.name.into(),
            format!("{middle:.1}"),
            format!("{:.1}", percentile(&component, 99)),
            format!("{natively:.1}"),
            format!("{:.1}", middle / natively),
            format!("{:.0}", median(&one)),
            format!("{:.0}", median(&two)),
        ]);
    }

    table.print();
    println!(
        "\n{ROUNDS} rounds of {CALLS} calls, {FEW} of those that work on a document; native is the same source, or for\n\
         the provider the same request without a plugin."
    );

    Ok(())
}

fn cases<'a>(components: &'a ComponentRegistry, runtime: &'a Handle) -> Vec<CallCase<'a>> {
    let record = records::passing();
    let facts = records::for_component(&record);
    let rules = components.compliance(None);
    let moves = components.lifecycle(None);
    let again = moves.clone();
    let contract = Bytes::from_static(CONTRACT);
    let reader = components.placement(None, PriorityClass::Request);

    let writer = components.documents(None, PriorityClass::Request);
    let plugin = components.signing(None, "vendor");
    let room = components.signing(None, EMBEDDED);
    let records = Arc::new(OneTemplate);
    let far_end: FarEnd = Arc::new(|_| Ok(nothing_found()));
    let nowhere = far_end.clone();
    let wrong = |error: &dyn std::fmt::Debug| Failure::from(format!("{error:?}"));

    let pdf = contract.clone();
    vec![
        CallCase {
            name: "rules.compliance evaluate",
            component: Box::new(move || Ok(drop(black_box(rules.evaluate(black_box(&facts))?)))),
            native: Box::new(move || Ok(drop(black_box(native::evaluate(black_box(&record)))))),
            calls: CALLS,
        },
        CallCase {
            name: "rules.lifecycle envelope, asked before",
            component: Box::new(move || {
                let sent = Some(EnvelopeStatus::Sent);
                let view = lifecycle::EnvelopeTrigger::View;
                black_box(moves.envelope(sent, view, &sent_from_template())?);
                Ok(())
            }),
            native: Box::new(move || {
                let sent = Some(native_lifecycle::types::EnvelopeStatus::Sent);
                let view = native_lifecycle::types::EnvelopeTrigger::View;
                let next = native_lifecycle::envelope(sent, view, &sent_from_template_natively());
                black_box(next).map_err(|refused| wrong(&refused))?;
                Ok(())
            }),
            calls: CALLS,
        },
        CallCase {
            name: "rules.lifecycle envelope, anew",
            component: Box::new(move || {
                let sent = Some(EnvelopeStatus::Sent);
                let view = lifecycle::EnvelopeTrigger::View;
                black_box(again.envelope_anew(sent, view, &sent_from_template())?);
                Ok(())
            }),
            native: Box::new(move || {
                let sent = Some(native_lifecycle::types::EnvelopeStatus::Sent);
                let view = native_lifecycle::types::EnvelopeTrigger::View;
                let next = native_lifecycle::envelope(sent, view, &sent_from_template_natively());
                black_box(next).map_err(|refused| wrong(&refused))?;
                Ok(())
            }),
            calls: CALLS,
        },
        CallCase {
            name: "rules.placement inspect, 4 pages",
            component: Box::new(move || {
                let facts = runtime.block_on(reader.inspect(contract.clone()))?;
                black_box(facts).map_err(|error| wrong(&error))?;
                Ok(())
            }),
            native: Box::new(move || {
                let facts = holdfast_placement::inspect(CONTRACT.to_vec());
                black_box(facts).map_err(|error| wrong(&error))?;
                Ok(())
            }),
            calls: FEW,
        },
        CallCase {
            name: "rules.documents mark, 4 pages",
            component: Box::new(move || {
                let request = documents::MarkRequest {
                    kind: documents::CopyKind::NonAuthoritative,
                    envelope_id: ENVELOPE.into(),
                    secured_party: Some("First Example Bank".into()),
                    marked_at: "2026-05-04T15:04:05.000Z".into(),
                    rewrite: false,
                };
                let request = WordedMark {
                    request,
                    words: None,
                };
                let marked = runtime.block_on(writer.mark(pdf.clone(), request))?;
                black_box(marked).map_err(|error| wrong(&error))?;
                Ok(())
            }),
            native: Box::new(move || {
                let request = holdfast_documents::MarkRequest {
                    kind: holdfast_documents::CopyKind::NonAuthoritative,
                    envelope_id: ENVELOPE.into(),
                    secured_party: Some("First Example Bank".into()),
                    marked_at: "2026-05-04T15:04:05.000Z".into(),
                    rewrite: false,
                };
                let marked = holdfast_documents::mark(CONTRACT.to_vec(), &request);
                black_box(marked).map_err(|error| wrong(&error))?;
                Ok(())
            }),
            calls: FEW,
        },
        CallCase {
            name: "provider.signing read-submission, far end in process",
            component: Box::new(move || {
                let lease = ProviderLease {
                    room: None,
                    label: "bench".into(),
                    settings: Arc::new(
                        [("base_url".to_owned(), "http://far-end".to_owned())].into(),
                    ),
                    secrets: Arc::new([("api_key".to_owned(), SecretText::new("key"))].into()),
                    egress: NetworkAccess::scripted(far_end.clone(), "far-end"),
                    clock: Clock::default(),
                    log: None,
                };
                match runtime.block_on(plugin.read_submission(lease, "1")) {
                    Err(ProviderError::NotFound) => Ok(()),
                    other => Err(wrong(&other)),
                }
            }),
            native: Box::new(move || {
                black_box(nothing_found());
                Ok(())
            }),
            calls: CALLS,
        },
        CallCase {
            name: "provider.signing create-submission in the signing room",
            component: Box::new({
                let records = records.clone();
                move || {
                    let lease = ProviderLease {
                        room: Some(records.clone()),
                        label: "bench".into(),
                        settings: Arc::default(),
                        secrets: Arc::default(),
                        egress: NetworkAccess::scripted(nowhere.clone(), "nowhere"),
                        clock: Clock::default(),
                        log: None,
                    };
                    black_box(runtime.block_on(room.create_submission(lease, submission()))?);
                    Ok(())
                }
            }),
            native: Box::new(move || {
                // The same records, without a component.
                let asked = submission();
                black_box(runtime.block_on(records.find_submission_of(&asked.external_id))?);
                black_box(runtime.block_on(records.find_template(1))?);
                black_box(asked);
                Ok(())
            }),
            calls: CALLS,
        },
    ]
}

/// Response of the simulated provider.
fn nothing_found() -> axum::http::Response<Bytes> {
    let mut answer = axum::http::Response::new(Bytes::from_static(b"{}"));
    *answer.status_mut() = axum::http::StatusCode::NOT_FOUND;
    answer
}

fn submission() -> signing::SubmissionRequest {
    signing::SubmissionRequest {
        template_id: "1".into(),
        external_id: ENVELOPE.into(),
        name: "Retail instalment contract".into(),
        preserve_order: true,
        submitters: vec![signing::SubmitterRequest {
            name: "Jordan Lee".into(),
            email: "jordan.lee@example.com".into(),
            role: "Buyer".into(),
            values: vec![("Price".into(), "12.5".into())],
        }],
    }
}

/// In-memory records of a signing room with one template.
struct OneTemplate;

impl RoomRecords for OneTemplate {
    fn find_template(&self, id: u64) -> Answer<'_, Option<room::Template>> {
        let field = |name: &str, field_type: &str| room::Field {
            name: name.into(),
            field_type: field_type.into(),
            role: "Buyer".into(),
            required: true,
            readonly: false,
            default_value: None,
            options: Vec::new(),
            areas: vec![room::Area {
                page: 1,
                x: 0.1,
                y: 0.1,
                w: 0.3,
                h: 0.03,
            }],
            attributes: Vec::new(),
        };

        let template = room::Template {
            id,
            name: "Contract".into(),
            external_id: "template".into(),
            document: "key sha256".into(),
            roles: vec!["Buyer".into()],
            fields: vec![
                field("Price", "number"),
                field("Signed on", "date"),
                field("Buyer signature", "signature"),
            ],
            archived: false,
        };

        Box::pin(async { Ok(Some(template)) })
    }

    fn find_template_of<'a>(&'a self, _: &'a str) -> Answer<'a, Option<room::Template>> {
        Box::pin(async { Ok(None) })
    }

    fn keep_document(&self, _: Bytes) -> Answer<'_, String> {
        Box::pin(async { Ok("key sha256".into()) })
    }

    fn put_template(&self, template: room::Template) {
        black_box(template);
    }

    fn find_submission(&self, _: u64) -> Answer<'_, Option<room::Submission>> {
        Box::pin(async { Ok(None) })
    }

    fn find_submission_of<'a>(&'a self, _: &'a str) -> Answer<'a, Option<room::Submission>> {
        Box::pin(async { Ok(None) })
    }

    fn add_submission(&self, submission: room::NewSubmission) {
        black_box(submission);
    }

    fn archive_submission(&self, id: u64) {
        black_box(id);
    }

    fn executed_document(&self, _: u64) -> Answer<'_, Option<Bytes>> {
        Box::pin(async { Ok(None) })
    }
}

const ENVELOPE: &str = "env_01jt8s5gq2e6m9x4k7w3c5d8fa";

fn sent_from_template() -> lifecycle::EnvelopeFacts {
    lifecycle::EnvelopeFacts {
        kind: lifecycle::EnvelopeKind::Esign,
        has_template: true,
        is_upload: false,
        has_file: false,
        has_vault_file: false,
        payment: lifecycle::PaymentStatus::NotRequested,
        attributes: Vec::new(),
    }
}

fn sent_from_template_natively() -> native_lifecycle::types::EnvelopeFacts {
    native_lifecycle::types::EnvelopeFacts {
        kind: native_lifecycle::types::EnvelopeKind::Esign,
        has_template: true,
        is_upload: false,
        has_file: false,
        has_vault_file: false,
        payment: native_lifecycle::types::PaymentStatus::NotRequested,
        attributes: Vec::new(),
    }
}

/// Returns a compiler that runs the server binary.
fn compiler() -> Result<ComponentCompiler, Failure> {
    let program = server::program()?;
    Ok(ComponentCompiler::new(
        Some(program),
        Duration::from_secs(300),
    ))
}

/// Measures compiling components in a child process, and loading them from the cache.
async fn uploads() -> Result<(), Failure> {
    report::heading("A component's way in");
    let compiler = compiler()?;
    let mut table = ReportTable::new(&["component", "kB", "compiled ms", "cached kB", "loaded ms"]);
    for artifact in embedded() {
        let bytes = artifact.bytes();
        let began = Instant::now();
        let (inspected, native) = compiler.compile(bytes.clone()).await?;
        let compiled = began.elapsed();
        let cache = tempfile::tempdir()?;
        let uploaded =
            ComponentArtifact::uploaded(inspected.slot, &artifact.identity.name, "9.9.9", bytes);

        let node = || ComponentRegistry::with_defaults(cache.path().into(), [0; 32]);
        let size = native.len();
        node()?
            .keep_native(uploaded.slot, &uploaded.identity, native)
            .await?;
        let node = node()?;
        let began = Instant::now();

        node.add(&uploaded)?;
        let loaded = began.elapsed();
        table.row([
            artifact.identity.name.clone(),
            format!("{:.0}", artifact.size() as f64 / 1e3),
            format!("{:.0}", millis(compiled)),
            format!("{:.0}", size as f64 / 1e3),
            format!("{:.1}", millis(loaded)),
        ]);
    }

    table.print();
    println!("\nLoading is reading the cache, checking its MAC, linking, and the canary.");
    Ok(())
}

/// Measures the latency of callers while the largest component is compiled.
async fn bystanders(components: &Arc<ComponentRegistry>) -> Result<(), Failure> {
    report::heading("Callers while a candidate is compiled");
    let mut table = ReportTable::new(&["meanwhile", "median µs", "p99 µs", "worst ms"]);
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
        let bytes = largest.bytes();
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

fn noticed(table: &mut ReportTable, name: &str, times: &[f64]) {
    table.row([
        name.into(),
        format!("{:.1}", median(times)),
        format!("{:.1}", percentile(times, 99)),
        format!("{:.1}", percentile(times, 100) / 1e3),
    ]);
}

/// Runs two callers that make one call per millisecond each, and returns the durations.
async fn latencies(
    components: &Arc<ComponentRegistry>,
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
