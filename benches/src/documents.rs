//! Documents in the sandbox: finding anchors in a long one compared with poppler, making templates
//! of it, marks, the custody record and page images.

use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use holdfast::components::rules::{documents, placement, vaulting, wording};
use holdfast::components::{ComponentRegistry, WordedMark};
use holdfast::domain::priority::PriorityClass;
use serde_json::json;

use crate::Failure;
use crate::partner::{FORM, PartnerClient, form};
use crate::pdf::PdfBuilder;
use crate::report::{self, ReportTable, median, millis};

const PAGES: usize = 500;
/// Page of the anchor in the comparison.
const PAGE: usize = 400;
const ROUNDS: usize = 5;
/// Width of a page image on a signing page, in pixels.
const IMAGE_WIDTH: u32 = 1000;
const CONTRACT: &[u8] = include_bytes!("../../tests/fixtures/retail-installment-contract.pdf");

/// Runs the measurements and prints three tables.
pub fn run() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let long = Bytes::from(text_document(PAGES)?);
        let cache = tempfile::tempdir()?;
        let components = ComponentRegistry::with_defaults(cache.path().into(), [0; 32])?;
        components.load_documents();
        anchors(&components, &long).await?;
        templates(&long).await?;
        writing(&components).await
    })
}

/// Compares the component with `pdftotext -bbox` for one anchor on page 400 of 500.
async fn anchors(components: &ComponentRegistry, long: &Bytes) -> Result<(), Failure> {
    report::heading("One anchor on page 400 of a 500-page document");
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(long)?;

    let (mut ours, mut poppler) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = processor_time(WriterKind::Own)?;
        let placed = components
            .placement(None, PriorityClass::Request)
            .place(long.clone(), vec![anchor(PAGE)])
            .await?
            .map_err(|error| format!("{error:?}"))?;
        ours.push(millis(processor_time(WriterKind::Own)? - before));

        let page = placed[0].areas[0].page;
        if page as usize != PAGE {
            return Err(format!("the anchor was found on page {page}").into());
        }

        let before = processor_time(WriterKind::Children)?;
        let output = Command::new("pdftotext")
            .arg("-bbox")
            .arg(file.path())
            .arg("-")
            .output()
            .map_err(|error| format!("pdftotext: {error}; run `apt-get install poppler-utils`"))?;

        poppler.push(millis(processor_time(WriterKind::Children)? - before));
        if !String::from_utf8_lossy(&output.stdout).contains(&format!("A{PAGE}")) {
            return Err("pdftotext does not see the anchor".into());
        }
    }

    let (own, other) = (median(&ours), median(&poppler));
    let mut table = ReportTable::new(&["reader", "CPU ms", "ratio"]);
    table.row([
        "pdftotext -bbox".into(),
        format!("{other:.0}"),
        "1.00".into(),
    ]);

    table.row([
        "holdfast, in the sandbox".into(),
        format!("{own:.0}"),
        format!("{:.2}", own / other),
    ]);
    table.print();
    let peak = components.metrics().of(&components
        .placement(None, PriorityClass::Request)
        .identity()?
        .to_string());
    println!(
        "\nMedian of {ROUNDS}; the document has {:.1} MB. The component's memory reached {:.1} MiB,\n\
         {:.1} MiB of it the document itself.",
        long.len() as f64 / 1e6,
        peak.memory_peak() as f64 / 1_048_576.0,
        long.len() as f64 / 1_048_576.0,
    );

    Ok(())
}

fn anchor(page: usize) -> placement::FieldRequest {
    placement::FieldRequest {
        name: format!("Signature {page}"),
        field_type: "signature".into(),
        role: "Buyer".into(),
        required: true,
        default_value: None,
        position: placement::Position::Anchor(placement::Anchor {
            text: format!("Signature A{page} of the buyer"),
            occurrence: None,
            page: None,
            offset_x: 0.0,
            offset_y: 0.0,
            w: 0.2,
            h: 0.03,
        }),
    }
}

/// Measures `POST /partner/templates` with the long document and an increasing number of anchors.
async fn templates(long: &Bytes) -> Result<(), Failure> {
    report::heading("Making a template of it");
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}", folder.path().join("holdfast.db").display());
    let partner = PartnerClient::start(folder.path(), &url)?;

    let mut table = ReportTable::new(&["anchors", "median ms", "ms an anchor"]);
    for count in [1, 20, 200] {
        let fields: Vec<_> = (0..count)
            .map(|index| {
                let page = index * PAGES / count + 1;
                json!({
                    "name": format!("Signature {page}"), "type": "signature", "role": "Buyer",
                    "placement": {
                        "mode": "anchor", "anchor_text": format!("Signature A{page} of the buyer"),
                        "w": 0.2, "h": 0.03,
                    },
                })
            })
            .collect();

        let fields = json!(fields).to_string();
        let body = form(long, &[("name", "Long"), ("fields_json", &fields)]);
        let request = partner.request("POST", "/templates", FORM, &body);

        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let template = partner.ask(&request).await?;
            times.push(millis(began.elapsed()));
            if template["fields_added"] != count {
                return Err(format!("{count} anchors gave {}", template["fields_added"]).into());
            }
        }

        let time = median(&times);
        table.row([
            count.to_string(),
            format!("{time:.0}"),
            format!("{:.1}", time / count as f64),
        ]);
    }

    table.print();
    println!("\nOver HTTP, through the built-in room, on SQLite; median of {ROUNDS}.");
    partner.server.stop()
}

/// Measures writing and drawing on an ordinary contract of four pages.
async fn writing(components: &ComponentRegistry) -> Result<(), Failure> {
    report::heading("Writing and drawing");
    let rules = components.documents(None, PriorityClass::Request);
    let contract = Bytes::from_static(CONTRACT);
    let mark = |kind| WordedMark {
        request: documents::MarkRequest {
            kind,
            envelope_id: "env_01jt8s5gq2e6m9x4k7w3c5d8fa".into(),
            secured_party: Some("First Example Bank".into()),
            marked_at: "2026-05-04T15:04:05.000Z".into(),
            rewrite: false,
        },
        words: None,
    };

    let copies = || vaulting::VaultRequest {
        authoritative: mark(documents::CopyKind::Authoritative).request,
        seal: documents::SealRequest {
            name: "holdfast".into(),
            reason: "Authoritative copy".into(),
            signed_at: "2026-05-04T15:04:05.000Z".into(),
            signature_bytes: 16 * 1024,
        },
        copy: mark(documents::CopyKind::NonAuthoritative).request,
        words: None,
    };

    let mut rows: [(&str, Vec<f64>); 5] = [
        ("mark the authoritative copy, 4 pages", Vec::new()),
        ("mark the other copy, 4 pages", Vec::new()),
        ("custody record", Vec::new()),
        ("page image, 1000 pixels wide", Vec::new()),
        ("both copies and the seal's space in one pass", Vec::new()),
    ];
    for _ in 0..4 * ROUNDS {
        let mut began = Instant::now();
        let mut lap = || millis(std::mem::replace(&mut began, Instant::now()).elapsed());
        let authoritative = mark(documents::CopyKind::Authoritative);
        done(
            rules
                .mark(contract.clone(), authoritative)
                .await?
                .map(added),
        )?;

        rows[0].1.push(lap());
        let other = mark(documents::CopyKind::NonAuthoritative);
        done(rules.mark(contract.clone(), other).await?.map(added))?;
        rows[1].1.push(lap());
        done(
            rules
                .custody_record(custody_facts(), custody_sheet())
                .await?,
        )?;

        rows[2].1.push(lap());
        let picture = rules.page_image(contract.clone(), 1, IMAGE_WIDTH).await?;
        done(picture.map(|picture| picture.png))?;
        rows[3].1.push(lap());
        let made = rules.prepare_copies(contract.clone(), copies()).await?;
        done(made.map(|made| made.map_or_else(Vec::new, |made| made.copy)))?;

        rows[4].1.push(lap());
    }

    let mut table = ReportTable::new(&["work", "median ms"]);
    for (name, times) in rows {
        table.row([name.to_owned(), format!("{:.1}", median(&times))]);
    }

    table.print();
    println!(
        "\nIn the sandbox, one after the other; median of {}.",
        4 * ROUNDS
    );

    Ok(())
}

/// Returns the bytes that a mark added to a document.
fn added(marked: documents::Marked) -> Vec<u8> {
    match marked {
        documents::Marked::Unchanged => Vec::new(),
        documents::Marked::Appended(bytes) | documents::Marked::Rewritten(bytes) => bytes,
    }
}

fn done(written: Result<Vec<u8>, documents::DocumentError>) -> Result<(), Failure> {
    match written {
        Ok(bytes) if !bytes.is_empty() => Ok(()),
        Ok(_) => Err("nothing was written".into()),
        Err(error) => Err(format!("{error:?}").into()),
    }
}

/// Returns the same record in words of the host.
fn custody_sheet() -> wording::CustodySheet {
    let facts = custody_facts();
    let column = |title: &str, width| wording::TableColumn {
        title: title.into(),
        width,
    };
    let checks = facts.checks.iter().map(|check| wording::TableRow {
        satisfied: Some(check.satisfied),
        cells: vec![check.requirement.clone(), check.detail.clone()],
    });

    let timeline = facts.timeline.iter().map(|entry| wording::TableRow {
        satisfied: None,
        cells: vec![
            entry.at.clone(),
            format!("{}: {}", entry.action, entry.detail),
        ],
    });

    let section = |heading: &str, rows| wording::CustodySection {
        heading: heading.into(),
        facts: vec![("Envelope".into(), facts.envelope_id.clone())],
        columns: vec![column("One", 0.3), column("Other", 0.7)],
        rows,
        note: String::new(),
    };

    wording::CustodySheet {
        envelope_id: facts.envelope_id.clone(),
        document_hash: facts.document_hash.clone(),
        recorded_at: facts.recorded_at.clone(),
        language: "en-US".into(),
        issuer: facts.issuer.clone(),
        title: "Custody record".into(),
        file_title: "Custody record".into(),
        file_subject: facts.envelope_name.clone(),
        document_name: facts.envelope_name.clone(),
        byline: facts.issuer.clone(),
        verdict: Some(("8 of 8".into(), true)),
        sections: vec![
            section("Control checks", checks.collect()),
            section("Chain of custody", timeline.collect()),
        ],
        foot: facts.recorded_at.clone(),
        certificate_json: facts.certificate_json.clone(),
        certificate_about: "Certificate".into(),
    }
}

fn custody_facts() -> documents::CustodyFacts {
    let check = |number: u32| documents::CheckResult {
        requirement: format!("Requirement {number}"),
        reference: "UCC §9-105(b)(1)".into(),
        satisfied: true,
        detail: "One authoritative copy is stored in the vault.".into(),
    };

    let entry = |second: u32| documents::TimelineEntry {
        at: format!("2026-05-04T15:04:{second:02}.000Z"),
        actor: "signer:jordan.lee@example.com".into(),
        action: "signer.completed".into(),
        detail: "9f2c4be07d1358a6e0b7c5d2134fa86e".repeat(2),
    };

    documents::CustodyFacts {
        envelope_id: "env_01jt8s5gq2e6m9x4k7w3c5d8fa".into(),
        envelope_name: "Retail instalment contract 2041".into(),
        customer_id: "cust_01jt8s5gq2e6m9x4k7w3c5d8fb".into(),
        issuer: "holdfast at https://holdfast.example".into(),
        recorded_at: "2026-05-04T15:04:59.000Z".into(),
        hash_algorithm: "SHA-256".into(),
        document_hash: "9f2c4be07d1358a6e0b7c5d2134fa86e".repeat(2),
        copy_hash: "0b7c5d2134fa86e9f2c4be07d1358a6e".repeat(2),
        secured_party: Some("First Example Bank".into()),
        custodian: "vault@dealer.example".into(),
        parties: vec![documents::Party {
            name: "Jordan Lee".into(),
            email: "jordan.lee@example.com".into(),
            role: "Buyer".into(),
            signed_at: Some("2026-05-04T15:04:05.000Z".into()),
        }],
        timeline: (0..12).map(entry).collect(),
        checks: (1..=8).map(check).collect(),
        rules_component: "holdfast-compliance 1.0.0".into(),
        certificate_json: json!({ "certificate_version": "1.0" }).to_string(),
        attributes: Vec::new(),
    }
}

/// Returns a document with about 4,300 characters and one distinct anchor on each page.
pub fn text_document(pages: usize) -> Result<Vec<u8>, Failure> {
    const WORDS: [&str; 16] = [
        "the",
        "buyer",
        "shall",
        "pay",
        "instalment",
        "monthly",
        "under",
        "this",
        "contract",
        "without",
        "notice",
        "seller",
        "assigns",
        "vehicle",
        "finance",
        "charge",
    ];

    let mut state = 17_u64;
    let mut word = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        WORDS[(state >> 60) as usize]
    };

    let mut pdf = PdfBuilder::new();
    for page in 1..=pages {
        let mut content = String::from("BT /F1 8 Tf 40 770 Td 11.5 TL\n");
        for line in 0..62 {
            let text = if line == 31 {
                format!("Signature A{page} of the buyer")
            } else {
                (0..12).map(|_| word()).collect::<Vec<_>>().join(" ")
            };
            content += &format!("({text}) Tj T*\n");
        }

        content += "ET";
        let mut deflated = ZlibEncoder::new(Vec::new(), Compression::default());
        deflated.write_all(content.as_bytes())?;

        pdf.page_of(&deflated.finish()?);
    }

    Ok(pdf.build())
}

/// Process of a time measurement: this one, or the children it has waited for.
enum WriterKind {
    Own,
    Children,
}

/// Returns the processor time used so far, in steps of 10 ms.
fn processor_time(whose: WriterKind) -> Result<Duration, Failure> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // The fields follow the program name, which may contain any character.
    let rest = text.rsplit_once(')').ok_or("an unknown /proc/self/stat")?.1;
    let first = match whose {
        WriterKind::Own => 11,
        WriterKind::Children => 13,
    };

    let mut ticks = 0;
    for field in rest.split_whitespace().skip(first).take(2) {
        ticks += field.parse::<u64>()?;
    }

    Ok(Duration::from_millis(ticks * 10))
}
