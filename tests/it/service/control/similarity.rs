//! Scans and reprints of a contract are reported, and not refused.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast::components::ComponentRegistry;
use holdfast::domain::id::OrgId;
use holdfast::domain::priority::PriorityClass;
use holdfast::domain::similarity::{self, Signature};
use serde_json::{Value, json};

use super::Party;
use crate::support::{TestApp, pdf};

/// Numbers that only depend on their seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Text of a short contract: 20 numbers of the form, and 12 of one customer.
fn short_contract(seed: u64) -> Vec<Vec<String>> {
    let mut numbers = Numbers(seed * 6_007 + 3);
    let mut lines = vec!["Promissory note, form LN-4471 7/24".to_owned()];
    for line in 10..28 {
        lines.push(format!(
            "Clause {line}5. The borrower agrees under rule {line}88"
        ));
    }

    for name in [
        "Principal",
        "Rate",
        "Payment",
        "First payment",
        "Last payment",
        "House number",
    ] {
        let (one, other) = (1_000 + numbers.next(90_000), 100 + numbers.next(9_000));
        lines.push(format!("{name}: {one}.{other}"));
        lines.push(format!(
            "{name} after default: {}",
            1_000 + numbers.next(90_000)
        ));
    }

    lines.truncate(38);
    vec![lines]
}

/// Text of a contract: pages of one form, with the numbers of one customer.
fn contract(seed: u64) -> Vec<Vec<String>> {
    let mut numbers = Numbers(seed * 7_919 + 1);
    let mut amount = || format!("{}.{:02}", 100 + numbers.next(90_000), numbers.next(100));
    let mut pages = Vec::new();
    for page in 1..=4 {
        let mut lines = vec![format!(
            "Retail instalment contract, form 553-CA-ARB 7/24, page {page} of 4"
        )];
        for line in 0..9 {
            let section = page * 10 + line;
            lines.push(format!(
                "Section {section}01. Payable under 15 U.S.C. 1601, rule {section}26: {}",
                amount()
            ));
            lines.push(format!("balance {} after {}", amount(), amount()));
        }

        pages.push(lines);
    }

    pages
}

fn document(pages: &[Vec<String>]) -> Vec<u8> {
    let pages: Vec<Vec<&str>> = pages
        .iter()
        .map(|lines| lines.iter().map(String::as_str).collect())
        .collect();
    let pages: Vec<&[&str]> = pages.iter().map(Vec::as_slice).collect();
    pdf::with_pages(&pages, 0)
}

/// Kinds of variants of an original.
const KINDS: [&str; 5] = [
    "saved again",
    "scanned well",
    "scanned badly",
    "without a page",
    "one number changed",
];

/// Makes a variant of a contract.
fn variant(kind: usize, seed: u64, mut pages: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let mut numbers = Numbers(seed * 104_729 + kind as u64);
    match kind {
        // Another frame around the same text.
        0 => pages[0].insert(0, "Printed for the file".into()),
        1 => misread(&mut pages, &mut numbers, 100),
        2 => misread(&mut pages, &mut numbers, 40),
        3 if pages.len() > 1 => {
            let page = numbers.next(pages.len() as u64);
            pages.remove(usize::try_from(page).unwrap());
        }
        // The lower quarter of the only page.
        3 => {
            let kept = pages[0].len() * 3 / 4;
            pages[0].truncate(kept);
        }
        _ => {
            let page = pages.len() / 2;
            let last = pages[page].len() - 1;
            let changed = pages[page][last].rsplit_once(' ').unwrap().0.to_owned();
            pages[page][last] = format!("{changed} 77777.77");
        }
    }

    pages
}

/// Misreads one in so many characters, as a recognition of text does.
fn misread(pages: &mut [Vec<String>], numbers: &mut Numbers, one_in: u64) {
    for line in pages.iter_mut().flatten() {
        let read = line.chars().map(|character| match numbers.next(one_in) {
            0 => match character {
                '0' => 'O',
                '1' => 'l',
                '5' => 'S',
                '8' => 'B',
                'e' => 'c',
                digit if digit.is_ascii_digit() => '7',
                other => other,
            },
            _ => character,
        });

        *line = read.collect();
    }
}

/// Prints recall and precision: `SIMILAR_ORIGINALS=1000` for the figures of docs/proofs.md.
#[tokio::test(flavor = "multi_thread")]
async fn variants_of_a_contract_are_found_and_other_contracts_are_not() {
    let (recall, precision) = found_among_variants("long form", contract).await;
    assert!(recall >= 0.9 && precision >= 0.95, "{recall} {precision}");
    // On a form with few numbers of the customer, a part of a contract does not stand out.
    let (recall, precision) = found_among_variants("short form", short_contract).await;
    assert!(recall >= 0.7 && precision >= 0.5, "{recall} {precision}");
}

/// Returns the part of variants of contracts on a form that are found, and the part of right reports.
async fn found_among_variants(form: &str, contract: fn(u64) -> Vec<Vec<String>>) -> (f64, f64) {
    let originals: u64 = std::env::var("SIMILAR_ORIGINALS")
        .map_or(30, |count| count.parse().expect("a number of originals"));
    let cache = tempfile::tempdir().unwrap();
    let components = ComponentRegistry::with_defaults(cache.path().into(), [0; 32]).unwrap();
    components.load_documents();
    let reader = components.embedded_placement(&OrgId::new(), PriorityClass::Request);
    let signature = async |pages: &[Vec<String>]| {
        let pdf = Bytes::from(document(pages));
        let values = reader.signature(pdf).await.unwrap().unwrap();
        Signature::keyed(b"key", &values.unwrap()).unwrap()
    };

    let (mut known, mut bands) = (Vec::new(), HashMap::<String, Vec<usize>>::new());
    for seed in 0..originals {
        let signature = signature(&contract(seed)).await;
        for band in signature.bands() {
            bands.entry(band).or_default().push(known.len());
        }
        known.push(signature);
    }

    let (mut table, mut reported, mut right) = (String::new(), 0, 0);
    for (kind, name) in KINDS.iter().enumerate() {
        let mut found = 0;
        for seed in 0..originals {
            let signature = signature(&variant(kind, seed, contract(seed))).await;
            let of_bands = signature.bands();
            let near = of_bands.iter().filter_map(|band| bands.get(band)).flatten();
            let near: BTreeSet<usize> = near.copied().collect();
            let mut near: Vec<(f64, usize)> = near
                .into_iter()
                .map(|other| (signature.similarity(&known[other]), other))
                .collect();
            near.sort_by(|one, other| other.0.total_cmp(&one.0));

            let similarities: Vec<f64> = near.iter().map(|(similarity, _)| *similarity).collect();
            near.truncate(similarity::reported(&similarities));
            reported += near.len();

            if near.iter().any(|(_, other)| *other as u64 == seed) {
                found += 1;
            }
        }

        right += found;
        let recall = f64::from(found) / originals as f64;
        writeln!(table, "{form}, {name}: recall {recall:.3}").unwrap();
    }

    let precision = f64::from(right) / reported as f64;
    println!(
        "{table}{form}: precision {precision:.3} over {} variants",
        originals * 5
    );

    (f64::from(right) / (originals * 5) as f64, precision)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_under_another_controller_is_reported_to_both_and_names_nobody() {
    let app = TestApp::start().await;
    let dealer = Party::new(&app).await;
    let pledged = async |pages: &[Vec<String>]| {
        let (id, lender) = (
            dealer.vaulted(&app, &document(pages), json!([])).await,
            Party::new(&app).await,
        );
        dealer.pledge(&app, &id, &lender).await;
        (id, lender)
    };
    let (first, one) = pledged(&contract(1)).await;

    app.wait_until_idle().await;
    let (scan, other) = pledged(&variant(1, 1, contract(1))).await;
    let (unlike, third) = pledged(&contract(2)).await;
    let similar = async |by: &Party, id: &str| {
        let path = format!("/partner/control/records/{id}/inspection");
        app.get_as(&by.key, &path).await.data(200)["similar"].clone()
    };

    let deadline = Instant::now() + Duration::from_secs(30);
    while similar(&other, &scan).await == json!([]) {
        assert!(Instant::now() < deadline, "nothing was found");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    app.wait_until_idle().await;
    let found = similar(&other, &scan).await;
    let of_first = similar(&one, &first).await;
    assert_eq!(found[0]["reference"], of_first[0]["reference"]);
    assert!(found[0]["similarity"].as_f64().unwrap() >= 0.6, "{found}");
    assert_eq!(similar(&third, &unlike).await, json!([]));

    let entries = dealer.entries(&app, &scan, "control.similar").await;
    assert_eq!(entries.len(), 1, "a pair is reported once");

    let told = entries[0].to_string();
    assert!(
        !told.contains(one.org.as_str()) && !told.contains(&first),
        "{told}"
    );

    let events = one.events(&app, &first).await;
    let event = events
        .iter()
        .find(|event| event["event_type"] == "control.similar")
        .unwrap();
    let told: &Value = &event["data"];
    assert!(!told.to_string().contains(other.org.as_str()), "{told}");
    assert!(!told.to_string().contains(&scan), "{told}");

    // Neither the words nor their plain values are stored.
    let kept = app
        .text_of("select signature from record_text limit 1")
        .await;
    assert_eq!(kept.len(), 1024);

    let report = one
        .act(&app, &first, "release", crate::support::release_form())
        .await;
    report.data(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_that_one_controller_pledges_to_another_lender_is_reported() {
    let app = TestApp::start().await;
    let dealer = Party::new(&app).await;
    let lenders = [Party::new(&app).await, Party::new(&app).await];
    let texts = [contract(3), variant(1, 3, contract(3))];

    let mut records = Vec::new();
    for (text, lender) in texts.iter().zip(&lenders) {
        let id = dealer.vaulted(&app, &document(text), json!([])).await;
        let body = json!({ "envelope_id": id, "pledgee": lender.org });
        let path = "/partner/control/pledges";
        app.post_as(&dealer.key, path, body).await.data(201);
        app.wait_until_idle().await;
        records.push(id);
    }

    let deadline = Instant::now() + Duration::from_secs(30);
    while dealer
        .entries(&app, &records[0], "control.similar")
        .await
        .is_empty()
    {
        assert!(Instant::now() < deadline, "nothing was found");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    for (id, lender) in records.iter().zip(&lenders) {
        let events = lender.events(&app, id).await;
        let found = events
            .iter()
            .any(|event| event["event_type"] == "control.similar");
        assert!(found, "{events:#?}");
    }
}
