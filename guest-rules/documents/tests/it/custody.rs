use holdfast_documents::{
    CheckResult, CustodyFacts, CustodySection, CustodySheet, DocumentError, Party, TableColumn,
    TableRow, TimelineEntry, custody_record, worded_custody_record,
};

use crate::support::{TempFile, assert_clean, extracted, facts as document_facts, run};

const DOCUMENT_HASH: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const COPY_HASH: &str = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752";

fn facts() -> CustodyFacts {
    let at = |minute: usize| format!("2026-05-04T14:{:02}:10.000Z", minute % 60);
    CustodyFacts {
        envelope_id: "env_01jt8s5gq2e6m9x4k7w3c5d8fa".to_owned(),
        envelope_name: "Retail Installment Sale Contract RIC-2026-004187".to_owned(),
        customer_id: "cus_01jt8s5gq2e6m9x4k7w3c5d8fb".to_owned(),
        issuer: "Pinecrest Auto Center, Inc.".to_owned(),
        recorded_at: "2026-05-04T15:04:05.000Z".to_owned(),
        hash_algorithm: "SHA-256".to_owned(),
        document_hash: DOCUMENT_HASH.to_owned(),
        copy_hash: COPY_HASH.to_owned(),
        secured_party: Some("Crescent Auto Finance, LLC".to_owned()),
        custodian: "vault@crescent.example".to_owned(),
        parties: vec![
            Party {
                name: "Jordan A. Ellery".to_owned(),
                email: "jordan.ellery@mail.example".to_owned(),
                role: "Buyer".to_owned(),
                signed_at: Some(at(58)),
            },
            Party {
                name: "Σοφία Παπαδοπούλου".to_owned(),
                email: "a.very.long.address.that.does.not.fit.its.column@subdomain.mail.example"
                    .to_owned(),
                role: "Co-buyer".to_owned(),
                signed_at: None,
            },
        ],
        timeline: (0..25)
            .map(|minute| TimelineEntry {
                at: at(minute),
                actor: "jordan.ellery@mail.example".to_owned(),
                action: "signer.viewed".to_owned(),
                detail: format!("entry {minute} from 203.0.113.7"),
            })
            .collect(),
        checks: (1..=8)
            .map(|number| CheckResult {
                requirement: format!("Requirement {number}"),
                reference: format!("UCC 9-105(b)({number})"),
                satisfied: number != 5,
                detail: "Exactly one authoritative object exists.".to_owned(),
            })
            .collect(),
        rules_component: "holdfast-compliance 1.0.0 sha256:2c26b46b68ffc68ff99b453c1d304134"
            .to_owned(),
        certificate_json: r#"{"score":87,"name":"Ω"}"#.to_owned(),
        attributes: vec![("Envelope kind".to_owned(), "esign".to_owned())],
    }
}

fn whole_text(pdf: &[u8]) -> String {
    let count = document_facts(pdf, &[])
        .lines()
        .find_map(|line| line.strip_prefix("Pages:")?.trim().parse::<u32>().ok())
        .expect("a record has pages");
    (1..=count).map(|page| extracted(pdf, page)).collect()
}

#[test]
fn the_custody_record_contains_every_fact() {
    let record = custody_record(&facts()).unwrap();
    assert_clean(&record);
    let text = whole_text(&record);
    for fact in [
        DOCUMENT_HASH,
        COPY_HASH,
        "env_01jt8s5gq2e6m9x4k7w3c5d8fa",
        "Crescent Auto Finance, LLC",
        "Σοφία Παπαδοπούλου",
        "not signed",
        "4 May 2026, 14:58:10 UTC",
        "1 of 8 control checks are not satisfied",
        "Not satisfied.",
        "UCC 9-105(b)(8)",
        "entry 24 from 203.0.113.7",
        "holdfast-compliance 1.0.0",
        "1 / ",
        "Hash algorithm",
        "Chain of custody",
        "Rules component",
        "How this record was made",
        "The attached certificate has these checks in a form for programs.",
    ] {
        assert!(text.contains(fact), "{fact} is missing in {text}");
    }
}

#[test]
fn the_custody_record_has_the_certificate_attached() {
    let record = custody_record(&facts()).unwrap();
    let file = TempFile::new(&record);
    let (_, list, _) = run("pdfdetach", "poppler-utils", &["-list", file.path()]);
    assert!(String::from_utf8_lossy(&list).contains("ucc-compliance-certificate.json"));

    let out = format!("{}.json", file.path());
    let (code, _, errors) = run(
        "pdfdetach",
        "poppler-utils",
        &["-save", "1", "-o", &out, file.path()],
    );
    assert_eq!(code, 0, "{errors}");

    let attached = std::fs::read_to_string(&out).unwrap();
    std::fs::remove_file(&out).unwrap();
    assert_eq!(attached, facts().certificate_json);
}

#[test]
fn the_record_declares_pdf_a_3b_and_embeds_its_fonts() {
    let record = custody_record(&facts()).unwrap();
    let metadata = document_facts(&record, &["-meta"]);
    assert!(
        metadata.contains("<pdfaid:part>3</pdfaid:part>")
            && metadata.contains("<pdfaid:conformance>B</pdfaid:conformance>"),
        "{metadata}"
    );

    let file = TempFile::new(&record);
    let (_, fonts, _) = run("pdffonts", "poppler-utils", &[file.path()]);
    let fonts = String::from_utf8_lossy(&fonts).into_owned();
    let embedded: Vec<&str> = fonts.lines().skip(2).collect();
    assert!(!embedded.is_empty());

    // Columns: name, type, encoding, embedded, subset, unicode, object.
    assert!(
        embedded.iter().all(|line| line.contains("yes yes yes")),
        "{fonts}"
    );
}

#[test]
fn the_custody_record_contains_no_time_but_the_given_one() {
    let record = custody_record(&facts()).unwrap();
    assert_eq!(record, custody_record(&facts()).unwrap());

    let text = document_facts(&record, &["-isodates"]);
    assert!(text.contains("2026-05-04T15:04:05Z"), "{text}");

    let title = "Custody record of env_01jt8s5gq2e6m9x4k7w3c5d8fa";
    assert!(text.contains(title), "{text}");
    assert!(
        text.contains("Who held the authoritative copy of")
            && text.contains("and how that was checked"),
        "{text}"
    );
}

#[test]
fn the_custody_record_accepts_unusual_facts() {
    let long = "x".repeat(3_000);
    let record = custody_record(&CustodyFacts {
        envelope_name: String::new(),
        secured_party: None,
        custodian: String::new(),
        parties: Vec::new(),
        checks: Vec::new(),
        timeline: vec![TimelineEntry {
            at: "some day".to_owned(),
            actor: long.clone(),
            action: "note\u{202e}\u{0}".to_owned(),
            detail: "山田 😀 ".repeat(400),
        }],
        attributes: vec![(long.clone(), long)],
        ..facts()
    })
    .unwrap();

    assert_clean(&record);
    let text = whole_text(&record);
    for said in ["some day", "Unnamed envelope", "not given"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn a_custody_record_counts_the_checks_that_are_not_satisfied() {
    let checked = |satisfied: fn(usize) -> bool| {
        let mut facts = facts();
        for (index, check) in facts.checks.iter_mut().enumerate() {
            check.satisfied = satisfied(index);
        }
        whole_text(&custody_record(&facts).unwrap())
    };

    let (all, one) = (
        "All 8 control checks are satisfied",
        "1 of 8 control checks are not satisfied",
    );
    let text = checked(|_| true);
    assert!(text.contains(all) && !text.contains(one), "{text}");

    let text = checked(|index| index > 0);
    assert!(text.contains(one) && !text.contains(all), "{text}");
}

#[test]
fn a_custody_record_without_a_time_is_refused() {
    let outcome = custody_record(&CustodyFacts {
        recorded_at: "now".to_owned(),
        ..facts()
    });
    assert!(matches!(outcome, Err(DocumentError::Other(_))));
}

fn arabic_sheet() -> CustodySheet {
    CustodySheet {
        envelope_id: "env_01jt8s5gq2e6m9x4k7w3c5d8fa".to_owned(),
        document_hash: DOCUMENT_HASH.to_owned(),
        recorded_at: "2026-05-04T15:04:05.000Z".to_owned(),
        language: "ar".to_owned(),
        issuer: "holdfast".to_owned(),
        title: "سجل الحفظ".to_owned(),
        file_title: "سجل حفظ".to_owned(),
        file_subject: String::new(),
        document_name: "عقد بيع".to_owned(),
        byline: "أصدره holdfast".to_owned(),
        verdict: Some(("1 / 2".to_owned(), false)),
        sections: vec![CustodySection {
            heading: "عمليات التحقق".to_owned(),
            facts: vec![(
                "الملف".to_owned(),
                "env_01jt8s5gq2e6m9x4k7w3c5d8fa".to_owned(),
            )],
            columns: vec![
                TableColumn {
                    title: "المتطلَّب".to_owned(),
                    width: 0.5,
                },
                TableColumn {
                    title: "النتيجة".to_owned(),
                    width: 0.5,
                },
            ],
            rows: vec![TableRow {
                satisfied: Some(false),
                cells: vec!["Requirement 1".to_owned(), "missing".to_owned()],
            }],
            note: "ملاحظة".to_owned(),
        }],
        foot: "سُجّل".to_owned(),
        certificate_json: "{}".to_owned(),
        certificate_about: "الشهادة".to_owned(),
    }
}

#[test]
fn a_record_read_from_right_to_left_begins_at_the_right() {
    let record = worded_custody_record(&arabic_sheet()).unwrap();
    assert_clean(&record);
    let words = crate::support::words(&record);
    let place = |word: &str| words.iter().find(|one| one.text == word).unwrap().edges[0];
    // The first column of the table lies to the right of the second.
    assert!(place("Requirement") > place("missing"), "{words:?}");
}

#[test]
fn a_row_with_another_number_of_cells_is_refused() {
    let mut sheet = arabic_sheet();
    sheet.sections[0].rows[0].cells.pop();
    let outcome = worded_custody_record(&sheet);
    assert!(
        matches!(outcome, Err(DocumentError::Other(_))),
        "{outcome:?}"
    );
}
