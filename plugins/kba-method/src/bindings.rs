//! Bindings generated from the WIT contract.

#![allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    reason = "generated from wit/host and wit/kba"
)]

wit_bindgen::generate!({
    path: ["../../wit/host", "../../wit/kba"],
    world: "holdfast:kba/probing-kba-provider",
    generate_all,
    pub_export_macro: true,
});
