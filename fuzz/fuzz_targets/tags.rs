//! Embedded tags: found by the reader, parsed, and cut from the page. The input is page content, so
//! that fuzzing explores tags and not the file format.
#![no_main]

libfuzzer_sys::fuzz_target!(|content: &[u8]| {
    let pdf = page(content);
    let _ = holdfast_placement::tags(pdf.clone());
    let _ = holdfast_documents::strip_tags(&pdf);
});

/// Returns a document of one page with this content.
fn page(content: &[u8]) -> Vec<u8> {
    let mut pdf = b"%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n\
        2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
        3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 5 0 R\
        /Resources<</Font<</F1 4 0 R>>>>>>endobj\n\
        4 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>endobj\n"
        .to_vec();
    pdf.extend(format!("5 0 obj<</Length {}>>stream\n", content.len()).into_bytes());

    pdf.extend(content);
    pdf.extend(b"\nendstream endobj\ntrailer<</Size 6/Root 1 0 R>>\n%%EOF\n");
    pdf
}
