use holdfast_documents::{
    CompletionFacts, DocumentError, HandwritingStyle, Picture, PictureFormat, SignatureAppearance,
    SignerSummary, TypedSignature, completion_certificate,
};
use image::ImageFormat;

use crate::support::{
    TempFile, assert_clean, encoded, extracted, facts as document_facts, quarters, run,
};

fn rows(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(label, value): &(&str, &str)| ((*label).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn signer(name: &str, signature: Option<SignatureAppearance>) -> SignerSummary {
    SignerSummary {
        name: name.to_owned(),
        about: "Buyer, jordan.ellery@mail.example".to_owned(),
        signature,
        rows: rows(&[
            ("Invited", "25 November 2026, 09:00 (America/New_York)"),
            ("Signed", "25 November 2026, 09:12 (America/New_York)"),
            ("Internet address", "203.0.113.7"),
            (
                "Device",
                "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 Chrome/142.0",
            ),
        ]),
    }
}

fn certificate_of(signers: Vec<SignerSummary>) -> CompletionFacts {
    CompletionFacts {
        title: "Certificate of completion".to_owned(),
        issued_at: "2026-11-25T14:12:00.000Z".to_owned(),
        document_name: "Retail Installment Sale Contract RIC-2026-004187".to_owned(),
        rows: rows(&[
            ("Reference", "env_01jt8s5gq2e6m9x4k7w3c5d8fa"),
            ("Signed document (SHA-256)", &"9f86d081".repeat(8)),
        ]),
        signers,
        verification_url: "https://sign.example/verify/01jt8s5gq2e6m9x4k7w3c5d8fa.q7w3c5d8fa9x4k"
            .to_owned(),
        verification_caption:
            "Check this record, and whether your copy is the one that was signed:".to_owned(),
    }
}

fn typed(name: &str) -> SignatureAppearance {
    SignatureAppearance::Typed(TypedSignature {
        name: name.to_owned(),
        style: Some(HandwritingStyle::Formal),
    })
}

#[test]
fn the_certificate_shows_each_signer_with_signature_and_times() {
    let drawn = SignatureAppearance::Drawn(Picture {
        format: PictureFormat::Png,
        bytes: encoded(&quarters(120, 40), ImageFormat::Png),
    });
    let facts = certificate_of(vec![
        signer("Jordan A. Ellery", Some(typed("Jordan A. Ellery"))),
        signer("Σοφία Παπαδοπούλου", Some(drawn)),
        signer("Morgan T. Ellery", None),
    ]);
    let pdf = completion_certificate(&facts).unwrap();
    assert_clean(&pdf);
    assert_eq!(
        pdf,
        completion_certificate(&facts).unwrap(),
        "deterministic"
    );

    let text = extracted(&pdf, 1);
    for expected in [
        "Certificate of completion",
        "Retail Installment Sale Contract RIC-2026-004187",
        "Jordan A. Ellery",
        "Σοφία Παπαδοπούλου",
        "203.0.113.7",
        "25 November 2026, 09:12 (America/New_York)",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }

    assert!(document_facts(&pdf, &[]).contains("Pages:           1"));
    let file = TempFile::new(&pdf);
    let (_, images, _) = run("pdfimages", "poppler-utils", &["-list", file.path()]);
    let images = String::from_utf8(images).unwrap();
    assert!(images.lines().count() > 2, "{images}");
}

/// The program that reads the code is independent of the one that wrote it.
#[test]
fn the_code_on_the_certificate_leads_to_the_verification_page() {
    let facts = certificate_of(vec![signer("Jordan A. Ellery", None)]);
    let pdf = completion_certificate(&facts).unwrap();
    let file = TempFile::new(&pdf);
    let picture = format!("{}.picture", file.path());
    run(
        "pdftoppm",
        "poppler-utils",
        &["-png", "-r", "150", "-singlefile", file.path(), &picture],
    );

    let picture = format!("{picture}.png");
    let (_, read, _) = run("zbarimg", "zbar-tools", &["--quiet", "--raw", &picture]);
    std::fs::remove_file(&picture).unwrap();
    assert_eq!(
        String::from_utf8(read).unwrap().trim(),
        facts.verification_url
    );
}

#[test]
fn many_signers_continue_on_further_pages() {
    let all = (0..20).map(|number| signer(&format!("Signer {number}"), Some(typed("A. B."))));
    let pdf = completion_certificate(&certificate_of(all.collect())).unwrap();
    assert_clean(&pdf);
    let last = extracted(&pdf, 5);
    assert!(
        last.contains("Signer 19") && last.contains("5 / 5"),
        "{last}"
    );
}

#[test]
fn facts_that_cannot_be_certified_are_refused() {
    let mut wrong = certificate_of(Vec::new());
    wrong.issued_at = "yesterday".to_owned();
    assert!(matches!(
        completion_certificate(&wrong),
        Err(DocumentError::Other(_))
    ));

    let mut long = certificate_of(Vec::new());
    long.verification_url = "https://sign.example/".to_owned() + &"x".repeat(3_000);
    assert!(matches!(
        completion_certificate(&long),
        Err(DocumentError::OverLimit(_))
    ));

    let many = (0..40).map(|_| signer(&"x".repeat(6_000), None)).collect();
    let many = completion_certificate(&certificate_of(many));
    assert!(matches!(many, Err(DocumentError::OverLimit(_))));

    let broken = SignatureAppearance::Drawn(Picture {
        format: PictureFormat::Png,
        bytes: b"no picture".to_vec(),
    });
    let broken = completion_certificate(&certificate_of(vec![signer("A", Some(broken))]));
    assert!(broken.is_err());
}
