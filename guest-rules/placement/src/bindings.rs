//! Bindings generated from the contract.
#![expect(missing_docs, reason = "generated; the contract itself is documented")]

wit_bindgen::generate!({
    path: "../../wit/placement",
    world: "default-placement",
    additional_derives: [PartialEq],
});
