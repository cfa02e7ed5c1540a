//! Bindings generated from the WIT contract.

#![allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    reason = "generated from wit/host and wit/payment"
)]

wit_bindgen::generate!({
    path: ["../../wit/host", "../../wit/payment"],
    world: "holdfast:payment/payment-provider",
    generate_all,
    pub_export_macro: true,
});
