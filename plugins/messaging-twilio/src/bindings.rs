//! Bindings generated from the WIT contract.

#![allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    reason = "generated from wit/host and wit/messaging"
)]

wit_bindgen::generate!({
    path: ["../../wit/host", "../../wit/messaging"],
    world: "holdfast:messaging/probing-messaging-provider",
    generate_all,
    pub_export_macro: true,
});
