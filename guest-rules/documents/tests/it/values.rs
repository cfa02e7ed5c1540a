//! Values before they are signed: whether they fit, and how they look.

use holdfast_documents::{
    BoxedValue, Continuation, DocumentError, FieldValue, FlowingField, HandwritingStyle, Misfit,
    SealRequest, WrittenField, check_values, draw_value, fill, fill_flowing, without_actions,
};

use crate::support::{
    PageRaster, TestPdf, authoritative, extracted, facts, field, mark, non_authoritative, page,
    prepare_seal, text,
};

/// A name in each script that a signer may write with, and its code.
const NAMES: [(&str, &str); 45] = [
    ("Latn", "Zoë Łukasz Nguyễn Ørsted"),
    ("Grek", "Ελένη Παπαδοπούλου"),
    ("Cyrl", "Наталія Кравченко"),
    ("Armn", "Արամ Խաչատրյան"),
    ("Hebr", "שָׁלוֹם כהן"),
    ("Arab", "محمد بن علي"),
    ("Syrc", "ܐܦܪܝܡ"),
    ("Thaa", "އަޙްމަދު"),
    ("Nkoo", "ߒߞߏ ߡߊߡߊߘߎ"),
    ("Deva", "क्षितिज शर्मा"),
    ("Beng", "রবীন্দ্রনাথ ঠাকুর"),
    ("Guru", "ਗੁਰਪ੍ਰੀਤ ਸਿੰਘ"),
    ("Gujr", "નરેન્દ્ર પટેલ"),
    ("Orya", "ଜଗନ୍ନାଥ ଦାସ"),
    ("Taml", "தமிழ்ச்செல்வி"),
    ("Telu", "శ్రీనివాస రావు"),
    ("Knda", "ಶ್ರೀನಿವಾಸ"),
    ("Mlym", "ശ്രീകുമാർ"),
    ("Sinh", "ශ්‍රී ලංකා පෙරේරා"),
    ("Thai", "สมชาย ใจดี"),
    ("Laoo", "ບຸນມີ ສີສຸກ"),
    ("Tibt", "བསྟན་འཛིན"),
    ("Mymr", "အောင်ဆန်း"),
    ("Geor", "ნინო ბერიძე"),
    ("Hang", "김민준"),
    ("Ethi", "አበበ ቢቂላ"),
    ("Cher", "ᏣᎳᎩ ᏍᏏᏉᏯ"),
    ("Cans", "ᐃᓄᒃᑎᑐᑦ"),
    ("Khmr", "សុខ វិជ្ជា"),
    ("Mong", "ᠮᠣᠩᠭᠣᠯ"),
    ("Tale", "ᥖᥭᥰ ᥘᥫᥴ"),
    ("Tfng", "ⵜⴰⵎⴰⵣⵉⵖⵜ"),
    ("Hani", "李小龙 王麗華 𠮷野"),
    ("Hira", "さくら サクラ"),
    ("Bopo", "ㄅㄆㄇㄈ"),
    ("Yiii", "ꆈꌠ ꁱꂷ"),
    ("Lisu", "ꓡꓲꓢꓴ"),
    ("Vaii", "ꕙꔤ"),
    ("Java", "ꦗꦮ"),
    ("Bali", "ᬩᬮᬶ"),
    ("Sund", "ᮞᮥᮔ᮪ᮓ"),
    ("Mtei", "ꯃꯅꯤꯄꯨꯔ"),
    ("Olck", "ᱥᱟᱱᱛᱟᱲᱤ"),
    ("Adlm", "𞤀𞤣𞤤𞤢𞤥"),
    ("Zsye", "☐ ✓ ☑ 👍🏽 😀 ✍️"),
];

fn boxed(value: FieldValue, width: f32, height: f32) -> BoxedValue {
    BoxedValue {
        value,
        style: None,
        width,
        height,
    }
}

fn typed(name: &str) -> FieldValue {
    FieldValue::Typed(name.to_owned())
}

#[test]
fn names_in_forty_scripts_are_drawn_and_found_again() {
    for (script, name) in NAMES {
        for value in [text(name), typed(name)] {
            let asked = boxed(value.clone(), 240.0, 30.0);
            assert_eq!(check_values(&[asked]), [None], "{script}");

            let filled = fill(
                &page("/MediaBox[0 0 612 792]", ""),
                &[field(1, [0.1, 0.1, 0.4, 0.04], value)],
            );
            let filled = filled.unwrap_or_else(|error| panic!("{script}: {error:?}"));
            let found = extracted(&filled, 1);
            assert!(!found.contains('\u{FFFD}'), "{script}: {found}");
        }
    }
}

/// The pictures stay below the build folder, for people who can read them.
#[test]
fn each_name_has_ink_in_its_picture() {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/scripts");
    std::fs::create_dir_all(folder).unwrap();
    for (script, name) in NAMES {
        let picture = draw_value(&boxed(typed(name), 240.0, 36.0), 480).unwrap();
        assert_eq!(picture.width, 480, "{script}");
        std::fs::write(format!("{folder}/{script}.png"), &picture.png).unwrap();
        let decoded = image::load_from_memory(&picture.png).unwrap().to_rgba8();
        let ink = decoded.pixels().filter(|pixel| pixel.0[3] > 128).count();
        assert!(ink > 300, "{script}: {ink} pixels of ink");
    }
}

#[test]
fn a_value_without_ink_is_refused() {
    for invisible in ["\u{200D}", "\u{3164}", "\u{2800} \u{FE0F}"] {
        let asked = boxed(typed(invisible), 240.0, 30.0);
        let missing = Some(Misfit::NotDrawable(invisible.to_owned()));
        assert_eq!(check_values(&[asked]), [missing]);
    }
}

#[test]
fn characters_that_no_typeface_has_are_named() {
    let asked = boxed(text("Sumer 𒀀𒀁 and 𒀀"), 240.0, 30.0);
    let missing = Some(Misfit::NotDrawable("𒀀𒀁".to_owned()));
    assert_eq!(check_values(std::slice::from_ref(&asked)), [missing]);
    assert!(draw_value(&asked, 100).is_err());
}

#[test]
fn a_picture_needs_a_value_and_a_size() {
    let refused = |value, pixels| draw_value(&boxed(value, 240.0, 30.0), pixels).unwrap_err();
    let empty = refused(text("  "), 100);
    assert_eq!(
        empty,
        DocumentError::Other("an empty value has no look".into())
    );

    let narrow = refused(text("Jordan"), 0);
    assert_eq!(
        narrow,
        DocumentError::OverLimit("a picture is at least one pixel wide".into())
    );
}

/// The text was signed: it is never lost, and the document is written.
#[test]
fn a_long_text_without_room_for_its_reference_or_for_pages_is_still_written() {
    let long = "word ".repeat(300);
    let flowing = |w: f64| FlowingField {
        field: WrittenField {
            field: field(1, [0.1, 0.1, w, 0.02], text(&long)),
            style: None,
        },
        continuation: Some(Continuation {
            heading: "Terms".to_owned(),
            reference: "[… p. {page}]".to_owned(),
        }),
    };

    let source = page("/MediaBox[0 0 612 792]", "");
    let words = |pdf: &[u8], number| extracted(pdf, number).matches("word").count();
    let narrow = fill_flowing(&source, &[flowing(0.02)]).unwrap();
    assert_eq!(words(&narrow, 2), 300);

    let request = SealRequest {
        name: "Signature".to_owned(),
        reason: String::new(),
        signed_at: "2026-05-04T15:04:05.000Z".to_owned(),
        signature_bytes: 8_192,
    };
    let signed = prepare_seal(&source, &request).unwrap().pdf;
    let filled = fill_flowing(&signed, &[flowing(0.6)]).unwrap();
    assert_eq!(words(&filled, 1), 300);
    assert!(facts(&filled, &[]).contains("Pages:           1"));
}

#[test]
fn scripts_of_a_signed_document_are_not_removed() {
    let request = SealRequest {
        name: "Signature".to_owned(),
        reason: String::new(),
        signed_at: "2026-05-04T15:04:05.000Z".to_owned(),
        signature_bytes: 8_192,
    };
    let signed = prepare_seal(&page("/MediaBox[0 0 612 792]", ""), &request).unwrap();

    let why = "it is signed, and removing its scripts would break the signatures";
    let refused = without_actions(&signed.pdf).unwrap_err();
    assert_eq!(refused, DocumentError::Unreadable(why.into()));
}

/// No accepted value fails later.
#[test]
fn what_passes_the_check_never_fails_when_it_is_written() {
    let mut seed = 0x2545_F491_u32;
    let mut next = |below: u32| {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        seed % below
    };

    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..150 {
        let words: Vec<&str> = (0..=next(30)).map(|_| NAMES[next(45) as usize].1).collect();
        let separator = [" ", "\n", ""][next(3) as usize];
        let words = words.join(separator);
        let value = [text(&words), typed(&words)][next(2) as usize].clone();
        let style = [None, Some(HandwritingStyle::Formal)][next(2) as usize];
        let size = [0.02, 0.06, 0.3].map(|side| f64::from(next(100)) / 1_000.0 + side);
        let (w, h) = (size[next(3) as usize], size[next(2) as usize]);
        let asked = BoxedValue {
            value: value.clone(),
            style,
            width: (w * 612.0) as f32,
            height: (h * 792.0) as f32,
        };

        let fits = check_values(&[asked])[0].is_none();
        let written = fill(
            &page("/MediaBox[0 0 612 792]", ""),
            &[field(1, [0.1, 0.1, w, h], value)],
        );
        if fits {
            accepted += 1;
            assert!(written.is_ok(), "{words} in {w} x {h}: {written:?}");
        } else {
            refused += 1;
        }
    }

    assert!(
        accepted > 20 && refused > 20,
        "{accepted} accepted, {refused} refused"
    );
}

#[test]
fn a_long_text_goes_on_at_the_end_of_the_document() {
    let terms: String = (1..=90)
        .map(|number| format!("Clause {number} of the additional terms.\n"))
        .collect();
    let flowing = FlowingField {
        field: WrittenField {
            field: field(1, [0.1, 0.1, 0.4, 0.05], text(&terms)),
            style: None,
        },
        continuation: Some(Continuation {
            heading: "Additional terms (Ana Diaz, Buyer)".to_owned(),
            reference: "[… p. {page}]".to_owned(),
        }),
    };

    let source = page("/MediaBox[0 0 612 792]", "");
    let filled = fill_flowing(&source, std::slice::from_ref(&flowing)).unwrap();

    let summary = facts(&filled, &[]);
    assert!(summary.contains("Pages:           3"), "{summary}");

    let first = extracted(&filled, 1);
    assert!(first.contains("Clause 1 of"), "{first}");
    assert!(first.contains("[… p. 2]"), "{first}");

    let whole = extracted(&filled, 2) + &extracted(&filled, 3);
    assert!(whole.contains("Additional terms (Ana Diaz, Buyer)"));

    for number in 1..=90 {
        let clause = format!("Clause {number} of the additional terms.");
        assert!(whole.contains(&clause), "{clause}");
    }

    // A text of very many short lines stands there as running text.
    let mut many = flowing;
    many.field.field.value = text(&"a\n".repeat(2_000));
    let filled = fill_flowing(&source, &[many]).unwrap();
    let summary = facts(&filled, &[]);
    assert!(summary.contains("Pages:           3"), "{summary}");
}

#[test]
fn a_value_shows_on_a_dark_page() {
    let dark = page("/MediaBox[0 0 612 792]", "0.05 g 0 0 612 792 re f");
    for value in [typed("Jordan Avery"), text("4,500.00")] {
        let filled = fill(&dark, &[field(1, [0.1, 0.1, 0.4, 0.05], value)]).unwrap();
        let seen = PageRaster::poppler(&filled, 1);
        let shades = (0..80).map(|step| seen.at(0.1 + 0.0049 * f64::from(step), 0.127)[0]);
        let shades: Vec<u8> = shades.collect();
        let (darkest, lightest) = (shades.iter().min().unwrap(), shades.iter().max().unwrap());
        assert!(lightest - darkest > 100, "{shades:?}");
    }
}

/// A page with a yellow note that covers its lower half.
fn noted() -> Vec<u8> {
    let mut document = TestPdf::new();
    document.add("<</Type/Catalog/Pages 2 0 R>>");
    document.add("<</Type/Pages/Kids[3 0 R]/Count 1>>");
    document.add(
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Annots[<</Type/Annot/Subtype/Stamp\
         /Rect[0 0 612 396]/F 4/AP<</N 5 0 R>>>>]>>",
    );

    document.stream("", b"0 g 72 700 100 20 re f");
    document.stream(
        "/Type/XObject/Subtype/Form/BBox[0 0 612 396]",
        b"1 1 0.8 rg 0 0 612 396 re f",
    );

    document.finish()
}

#[test]
fn a_signature_under_a_note_shows() {
    let filled = fill(
        &noted(),
        &[field(1, [0.1, 0.7, 0.4, 0.05], typed("Jordan Avery"))],
    )
    .unwrap();
    let seen = PageRaster::poppler(&filled, 1);
    let ink = (0..200).filter(|step| seen.at(0.1 + 0.002 * f64::from(*step), 0.735)[0] < 120);
    assert!(ink.count() > 5, "the name is hidden");

    // The note itself is still there.
    assert!(seen.at(0.9, 0.9)[2] < 230);
}

#[test]
fn a_document_whose_note_would_hide_the_marks_is_refused() {
    for request in [authoritative(), non_authoritative()] {
        let marked = mark(&noted(), &request);
        let is_hidden = request == authoritative();
        assert_eq!(marked.is_err(), is_hidden);

        if let Err(DocumentError::Unreadable(why)) = marked {
            assert!(
                why.ends_with("page 1 would have something that hides what is added to it"),
                "{why}"
            );
        }
    }
}
