//! `bindgen!` output for `wit/`: one module per world. No code outside
//! the crate names these modules; the files that make the calls re-export the types that
//! other code needs.

#![allow(missing_docs, clippy::all, reason = "generated from wit/")]

pub mod signing {
    wasmtime::component::bindgen!({
        path: ["../../../wit/host", "../../../wit/signing"],
        world: "holdfast:signing/signing-provider",
        imports: { default: async | trappable },
        exports: { default: async },
        with: {
            "holdfast:host/blobs.blob": crate::lent::LentBlob,
            "holdfast:host/secrets.secret": crate::lent::LentSecret,
        },
    });
}

/// The records of the signing room, for its component.
pub mod room {
    wasmtime::component::bindgen!({
        path: "../../../wit/host",
        world: "holdfast:host/signing-room",
        imports: { default: async | trappable },
        with: { "holdfast:host/blobs": super::signing::holdfast::host::blobs },
    });
}

/// Defines the bindings of a kind of provider. All kinds share the host interfaces.
macro_rules! provider {
    ($module:ident, $package:literal, $world:literal) => {
        pub mod $module {
            wasmtime::component::bindgen!({
                path: ["../../../wit/host", $package],
                world: $world,
                imports: { default: async | trappable },
                exports: { default: async },
                additional_derives: [PartialEq],
                with: {
                    "holdfast:host/blobs": super::signing::holdfast::host::blobs,
                    "holdfast:host/secrets": super::signing::holdfast::host::secrets,
                    "holdfast:host/settings": super::signing::holdfast::host::settings,
                    "holdfast:host/http": super::signing::holdfast::host::http,
                    "holdfast:host/log": super::signing::holdfast::host::log,
                    "holdfast:host/clock": super::signing::holdfast::host::clock,
                    "holdfast:host/random": super::signing::holdfast::host::random,
                },
            });
        }
    };
}

provider!(
    payment,
    "../../../wit/payment",
    "holdfast:payment/payment-provider"
);
provider!(kba, "../../../wit/kba", "holdfast:kba/kba-provider");
provider!(
    messaging,
    "../../../wit/messaging",
    "holdfast:messaging/messaging-provider"
);
provider!(
    conversion,
    "../../../wit/conversion",
    "holdfast:conversion/conversion-provider"
);
