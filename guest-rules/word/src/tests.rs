use std::collections::BTreeMap;

use super::archive::DocumentArchive;
use super::{WordError, replace_variables, variables};
use crate::paragraphs::{DocumentDialect, DocumentPart};

const WORD: &str = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main""#;
const OPEN_DOCUMENT: &str = r#"xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0""#;

/// Returns an archive of these parts, uncompressed.
fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    archive_of(
        &parts
            .iter()
            .map(|(name, text)| (*name, text.as_bytes(), text.len()))
            .collect::<Vec<_>>(),
    )
}

/// Returns an archive of these parts, each with the size that its directory states.
fn archive_of(parts: &[(&str, &[u8], usize)]) -> Vec<u8> {
    let short = |length: usize| u16::try_from(length).unwrap().to_le_bytes();
    let long = |length: usize| u32::try_from(length).unwrap().to_le_bytes();
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content, stated) in parts {
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let mut facts = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        facts.extend_from_slice(&crc.sum().to_le_bytes());
        facts.extend_from_slice(&long(content.len()));
        facts.extend_from_slice(&long(*stated));
        facts.extend_from_slice(&short(name.len()));
        facts.extend_from_slice(&[0; 2]);

        directory.extend_from_slice(b"PK\x01\x02\x14\0");
        directory.extend_from_slice(&facts);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&long(bytes.len()));
        directory.extend_from_slice(name.as_bytes());

        bytes.extend_from_slice(b"PK\x03\x04");
        bytes.extend_from_slice(&facts);
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(content);
    }

    let start = bytes.len();
    bytes.extend_from_slice(&directory);
    bytes.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    bytes.extend_from_slice(&short(parts.len()));
    bytes.extend_from_slice(&short(parts.len()));
    bytes.extend_from_slice(&long(directory.len()));
    bytes.extend_from_slice(&long(start));
    bytes.extend_from_slice(&[0; 2]);
    bytes
}

/// Returns a Word document with these paragraphs.
fn docx(paragraphs: &str) -> Vec<u8> {
    let body = format!("<w:document {WORD}><w:body>{paragraphs}</w:body></w:document>");
    archive(&[
        ("[Content_Types].xml", "<Types/>"),
        ("word/document.xml", &body),
    ])
}

/// Returns an OpenDocument text with these paragraphs.
fn odt(paragraphs: &str) -> Vec<u8> {
    let body =
        format!("<office:document-content {OPEN_DOCUMENT}>{paragraphs}</office:document-content>");
    archive(&[
        ("mimetype", "application/vnd.oasis.opendocument.text"),
        ("content.xml", &body),
        (
            "styles.xml",
            &format!("<office:document-styles {OPEN_DOCUMENT}/>"),
        ),
    ])
}

/// Returns a paragraph with one run for each text.
fn paragraph(runs: &[&str]) -> String {
    let run = |text: &&str| format!("<w:r><w:t>{text}</w:t></w:r>");
    let runs: Vec<String> = runs.iter().map(run).collect();
    format!(
        "<w:p>{}</w:p>",
        runs.join("<w:proofErr w:type=\"spellEnd\"/>")
    )
}

/// Returns a part of a document.
fn part(document: &[u8], name: &str) -> String {
    let archive = DocumentArchive::read(document).unwrap();
    let index = archive.names().position(|known| known == name).unwrap();
    String::from_utf8(archive.unpacked(index, 1_000_000).unwrap()).unwrap()
}

/// Returns the main part with a value for the variable `name`.
fn replaced(document: &[u8], value: &str) -> String {
    let values = [("name".to_owned(), value.to_owned())];
    let changed = replace_variables(document, &values).unwrap();
    let main = ["word/document.xml", "content.xml"];
    let archive = DocumentArchive::read(&changed).unwrap();
    let main = main
        .into_iter()
        .find(|main| archive.names().any(|name| name == *main));
    part(&changed, main.unwrap())
}

#[test]
fn variables_are_listed_in_the_order_of_the_text_then_of_headers() {
    let header = format!(
        "<w:hdr {WORD}>{}</w:hdr>",
        paragraph(&["[[agency]] [[city]]"])
    );
    let body = paragraph(&["Between [[customer_name]] and [[Seller.Name 2]], [[city]]"]);
    let body = format!("<w:document {WORD}>{body}</w:document>");
    let document = archive(&[("word/header1.xml", &header), ("word/document.xml", &body)]);
    let found = variables(&document).unwrap();
    assert_eq!(found, ["customer_name", "Seller.Name 2", "city", "agency"]);
}

#[test]
fn a_variable_is_found_across_runs_and_replaced_in_the_first() {
    let document = docx(&paragraph(&["Dear [", "[na", "me]", "], welcome"]));
    assert_eq!(variables(&document).unwrap(), ["name"]);

    let text = replaced(&document, "Ana");
    assert!(
        text.contains(r#"<w:t xml:space="preserve">Dear Ana</w:t>"#),
        "{text}"
    );
    assert!(
        text.contains(r#"<w:t xml:space="preserve"></w:t>"#),
        "{text}"
    );
    assert!(
        text.contains(r#"<w:t xml:space="preserve">, welcome</w:t>"#),
        "{text}"
    );
}

#[test]
fn a_value_is_text_and_never_markup() {
    let text = replaced(&docx(&paragraph(&["[[name]]"])), "<w:br/> & [[name]]\u{0}");
    assert!(
        text.contains("&lt;w:br/&gt; &amp; [[name]]</w:t>"),
        "{text}"
    );
    let text = replaced(&odt("<text:p>[[name]]</text:p>"), "a<b");
    assert!(text.contains("<text:p>a&lt;b</text:p>"), "{text}");
}

#[test]
fn line_breaks_and_tabs_become_those_of_the_document() {
    let text = replaced(&docx(&paragraph(&["[[name]]"])), "1 Oak St\r\nOhio\tUSA");
    let expected = "1 Oak St</w:t><w:br/><w:t xml:space=\"preserve\">Ohio</w:t><w:tab/><w:t xml:space=\"preserve\">USA</w:t>";
    assert!(text.contains(expected), "{text}");

    let text = replaced(&odt("<text:p>[[name]]</text:p>"), "a  b\nc");
    assert!(
        text.contains("<text:p>a <text:s/>b<text:line-break/>c</text:p>"),
        "{text}"
    );
}

#[test]
fn spans_and_headings_of_an_opendocument_text_are_read() {
    let document = odt("<text:h>[[<text:span>na</text:span>me]]</text:h>");
    let text = replaced(&document, "Ana");
    assert!(
        text.contains("<text:h>Ana<text:span></text:span></text:h>"),
        "{text}"
    );
    assert_eq!(
        part(&document, "mimetype"),
        "application/vnd.oasis.opendocument.text"
    );
}

#[test]
fn escaped_characters_and_other_prefixes_are_understood() {
    let paragraph =
        r#"<x:p><x:r><x:t xml:space="preserve">&#91;&#x5b;name]&#93; &amp; co</x:t></x:r></x:p>"#;
    let body = format!(
        "<x:document {}>{paragraph}</x:document>",
        WORD.replace(":w=", ":x=")
    );
    let document = archive(&[("word/document.xml", &body)]);
    let text = replaced(&document, "Ana\nLee");
    let expected = "Ana</x:t><x:br/><x:t xml:space=\"preserve\">Lee &amp; co</x:t>";
    assert!(text.contains(expected), "{text}");
}

/// Fields and formulas are not text, so nothing in them is replaced, and a value cannot become one.
#[test]
fn instructions_of_fields_stay_as_they_are() {
    let field = "<w:p><w:r><w:instrText>[[name]]</w:instrText></w:r><w:r><w:t>[[</w:t></w:r><w:r><w:instrText>x</w:instrText></w:r><w:r><w:t>name]]</w:t></w:r></w:p>";
    let document = docx(field);
    assert_eq!(variables(&document).unwrap(), Vec::<String>::new());
    assert!(replaced(&document, "=1+1").contains(field));
}

#[test]
fn text_boxes_have_paragraphs_of_their_own() {
    let inner = paragraph(&["[[name]]"]);
    let document = docx(&format!(
        "<w:p><w:r><w:t>[[outer</w:t></w:r><w:r><w:pict>{inner}</w:pict></w:r><w:r><w:t>]]</w:t></w:r></w:p>"
    ));
    assert_eq!(variables(&document).unwrap(), ["name"]);
}

#[test]
fn other_text_between_brackets_is_the_documents_own() {
    let document = docx(&paragraph(&[
        "[[1]] [[]] [name] [[a[b]] [[x] ] [[[name]]] [[a;b]]",
    ]));
    assert_eq!(variables(&document).unwrap(), ["name"]);
    let line = docx("<w:p><w:r><w:t>[[na</w:t><w:br/><w:t>me]]</w:t></w:r></w:p>");
    assert_eq!(variables(&line).unwrap(), Vec::<String>::new());
}

#[test]
fn parts_without_variables_keep_their_bytes() {
    let document = odt("<text:p>[[name]]</text:p>");
    let changed = replace_variables(&document, &[("name".to_owned(), "Ana".to_owned())]).unwrap();
    // The first part is where readers of the type look for it.
    assert!(changed[30..].starts_with(b"mimetypeapplication/vnd.oasis.opendocument.textPK"));
    assert_eq!(part(&changed, "styles.xml"), part(&document, "styles.xml"));
    // Equal input gives equal bytes.
    let again = replace_variables(&document, &[("name".to_owned(), "Ana".to_owned())]).unwrap();
    assert_eq!(changed, again);
    // A variable without a value stays.
    let unchanged = replace_variables(&document, &[]).unwrap();
    assert_eq!(
        part(&unchanged, "content.xml"),
        part(&document, "content.xml")
    );
}

#[test]
fn archives_that_unpack_to_more_than_the_limits_are_refused() {
    let bomb = archive_of(&[("word/document.xml", b"", 49 * 1024 * 1024)]);
    let limit = "The text of the document is larger than 48 MiB";
    assert_eq!(variables(&bomb), Err(WordError::OverLimit(limit.into())));

    let media = archive_of(&[
        ("word/document.xml", b"<w/>", 4),
        ("word/media/1.png", b"", 513 * 1024 * 1024),
    ]);
    let limit = "Unpacked, the document is larger than 512 MiB";
    assert_eq!(variables(&media), Err(WordError::OverLimit(limit.into())));

    // One that understates its size is stopped at the limit, too.
    let zeros = vec![0; 49 * 1024 * 1024];
    let packed = super::archive::deflated(&zeros).unwrap();
    let mut lying = archive_of(&[("word/document.xml", &packed, 10)]);
    // The method of both records.
    let directory = lying
        .windows(4)
        .rposition(|bytes| bytes == b"PK\x01\x02")
        .unwrap();
    lying[8] = 8;
    lying[directory + 10] = 8;
    let limit = "The text of the document is larger than 48 MiB";
    assert_eq!(variables(&lying), Err(WordError::OverLimit(limit.into())));
}

#[test]
fn damaged_and_ambiguous_documents_are_refused() {
    let body = docx(&paragraph(&["[[name]]"]));
    for length in [0, 10, body.len() / 2, body.len() - 1] {
        assert!(
            matches!(variables(&body[..length]), Err(WordError::Unreadable(_))),
            "{length}"
        );
    }

    let twice = archive(&[("word/document.xml", "<a/>"), ("word/document.xml", "<b/>")]);
    let why = "Two parts of the document have the same name";
    assert_eq!(variables(&twice), Err(WordError::Unreadable(why.into())));
    for (text, why) in [
        (
            "<!DOCTYPE w [<!ENTITY a \"b\">]><w/>",
            "The document declares a type of its own",
        ),
        ("<w:p", "The text of the document ends within a tag"),
        ("</w:p>", "A paragraph of the document has no start"),
        ("<w:p>", "A paragraph of the document has no end"),
        (
            "<?xml version=\"1.0\" encoding=\"UTF-16\"?><w/>",
            "The text of the document is not in UTF-8",
        ),
    ] {
        let document = archive(&[("word/document.xml", text)]);
        assert_eq!(
            variables(&document),
            Err(WordError::Unreadable(why.into())),
            "{text}"
        );
    }
}

#[test]
fn many_variables_long_and_deep_paragraphs_are_refused() {
    let many: String = (0..=200).map(|number| format!("[[v{number}]]")).collect();
    let limit = "The document has more than 200 variables";
    assert_eq!(
        variables(&docx(&paragraph(&[&many]))),
        Err(WordError::OverLimit(limit.into()))
    );

    let long = "a".repeat(1_000_001);
    let limit = "A paragraph of the document has more than 1000000 characters";
    assert_eq!(
        variables(&docx(&paragraph(&[&long]))),
        Err(WordError::OverLimit(limit.into()))
    );

    let deep = format!("{}{}", "<w:p>".repeat(65), "</w:p>".repeat(65));
    let limit = "Paragraphs of the document are nested too deeply";
    assert_eq!(
        variables(&docx(&deep)),
        Err(WordError::OverLimit(limit.into()))
    );
}

#[test]
fn values_that_make_a_part_too_large_are_refused() {
    let text = format!(
        "<w:d {WORD}>{}</w:d>",
        paragraph(&[&"[[name]]".repeat(1000)])
    );
    let part = DocumentPart::read(&text, DocumentDialect::Word).unwrap();
    let value = "x".repeat(100 * 1024);
    let values = BTreeMap::from([("name", value.as_str())]);
    let limit = "With these values, the document becomes too large";
    assert_eq!(
        part.with_values(&text, &values),
        Err(WordError::OverLimit(limit.into()))
    );
}
