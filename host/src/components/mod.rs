//! WebAssembly and nothing else: typed calls, what is active for whom, and what providers
//! are lent. Engines, artifacts and rules are in the crate `holdfast-rules`.
//!
//! | File | Holds |
//! |---|---|
//! | `bindings.rs` | what `bindgen!` makes of `wit/` |
//! | `registry.rs` | which of them is active for whom, since when |
//! | `documents.rs` | calls into the slots that work on documents |
//! | `providers/` | calls into provider plugins, a file for each kind |
//! | `lent.rs` | what the host lends to a provider: blobs, secrets, settings, clock, log |
//! | `room.rs` | what the component of the signing room is lent beside |
//! | `wasi.rs` | what WASI asks for, for languages that cannot do without |
//! | `egress.rs` | how a provider's request leaves, and where it may go |
//! | `conformance.rs` | questions with known answers that a candidate must get right |
//! | `script.rs` | a far end as a plugin's author writes it down |
//!
//! Every call runs in a fresh instance, so that no state passes between
//! organizations and a trap harms one call alone.

mod bindings;
mod conformance;
mod documents;
pub mod egress;
mod lent;
pub mod providers;
mod registry;
pub mod room;
pub mod script;
mod wasi;

pub use crate::rules::{
    Artifact, ComponentError, Engines, Failure, built_in, compiler, compliance_alone, embedded,
    inspection, is_reserved_name, known_compliance, known_digests, load_compliance, room_component,
    rules, worlds,
};
use crate::rules::{artifact, background, baseline, engine, error, gate, limits, slot};
pub use documents::{Documents, Placement};
pub use registry::{Activations, Components, Live};
