//! Bindings generated from the WIT contract.

#![allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    reason = "generated from wit/host and wit/conversion"
)]

wit_bindgen::generate!({
    path: ["../../wit/host", "../../wit/conversion"],
    world: "holdfast:conversion/probing-conversion-provider",
    generate_all,
    pub_export_macro: true,
});
