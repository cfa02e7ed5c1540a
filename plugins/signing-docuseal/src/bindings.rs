//! Bindings generated from the WIT contract.

#![allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    reason = "generated from wit/host and wit/signing"
)]

wit_bindgen::generate!({
    path: ["../../wit/host", "../../wit/signing"],
    world: "holdfast:signing/signing-provider",
    generate_all,
    pub_export_macro: true,
});
