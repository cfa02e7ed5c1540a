//! Types and glue generated from the contract.
#![expect(missing_docs, reason = "generated; the contract itself is documented")]
#![cfg_attr(
    target_arch = "wasm32",
    expect(unsafe_code, reason = "generated calls across the component boundary")
)]

wit_bindgen::generate!({
    path: "../../wit/placement",
    world: "placement-rules",
    additional_derives: [PartialEq],
});
