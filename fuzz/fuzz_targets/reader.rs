//! Page facts, the text layer and the search for anchors, on whole files.
#![no_main]

use holdfast_placement::{inspect, occurrences, text};

libfuzzer_sys::fuzz_target!(|pdf: &[u8]| {
    let _ = inspect(pdf.to_vec());
    let _ = text(pdf.to_vec(), 1);
    let _ = occurrences(pdf.to_vec(), "sign", None);
});
