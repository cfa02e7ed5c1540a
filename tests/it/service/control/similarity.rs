//! Scans and reprints of a contract are reported, and not refused.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast::components::ComponentRegistry;
use holdfast::domain::id::OrgId;
use holdfast::domain::priority::PriorityClass;
use holdfast::domain::similarity::{Signature, THRESHOLD};
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
fn variant(kind: usize, seed: u64) -> Vec<Vec<String>> {
    let mut pages = contract(seed);
    let mut numbers = Numbers(seed * 104_729 + kind as u64);
    match kind {
        // Another frame around the same text.
        0 => pages[0].insert(0, "Printed for the file".into()),
        1 => misread(&mut pages, &mut numbers, 100),
        2 => misread(&mut pages, &mut numbers, 40),
        3 => drop(pages.remove(usize::try_from(numbers.next(4)).unwrap())),
        _ => {
            let line = usize::try_from(1 + numbers.next(18)).unwrap();
            let changed = pages[2][line].rsplit_once(' ').unwrap().0.to_owned();
            pages[2][line] = format!("{changed} 77777.77");
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

/// Prints recall and precision: `HOLDFAST_SIMILAR=1000` for the figures of docs/control.md.
#[tokio::test(flavor = "multi_thread")]
async fn variants_of_a_contract_are_found_and_other_contracts_are_not() {
    let originals: u64 = std::env::var("HOLDFAST_SIMILAR")
        .map_or(30, |count| count.parse().expect("a number of originals"));
    let cache = tempfile::tempdir().unwrap();
    let components = ComponentRegistry::with_defaults(cache.path().into(), [0; 32]).unwrap();
    components.load_documents();
    let reader = components.embedded_placement(&OrgId::new(), PriorityClass::Request);
    let signature = async |pages: &[Vec<String>]| {
        let values = reader
            .signature(Bytes::from(document(pages)))
            .await
            .unwrap()
            .unwrap();
        Signature::keyed(b"key", &values.unwrap()).unwrap()
    };
    let (mut known, mut bands) = (
        Vec::new(),
        std::collections::HashMap::<String, Vec<usize>>::new(),
    );
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
            let signature = signature(&variant(kind, seed)).await;
            let mut near: Vec<usize> = signature
                .bands()
                .iter()
                .filter_map(|band| bands.get(band))
                .flatten()
                .copied()
                .collect();
            near.sort_unstable();
            near.dedup();
            for other in near {
                if signature.similarity(&known[other]) >= THRESHOLD {
                    reported += 1;
                    if other as u64 == seed {
                        found += 1;
                    }
                }
            }
        }
        right += found;
        let recall = found as f64 / originals as f64;
        writeln!(table, "{name}: recall {recall:.3}").unwrap();
        assert!(recall >= 0.9, "{table}");
    }
    let precision = f64::from(right) / f64::from(reported);
    println!(
        "{table}precision {precision:.3} over {} variants",
        originals * 5
    );
    assert!(precision >= 0.95, "{precision}");
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
    let (scan, other) = pledged(&variant(1, 1)).await;
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
