//! Lifecycle rules that pass the published conformance vectors, and also let an unsigned
//! document into the vault.

#[cfg(target_arch = "wasm32")]
#[path = "../../../../guest-rules/lifecycle/src/batch.rs"]
mod batch;
#[cfg(target_arch = "wasm32")]
mod bindings;
#[cfg(target_arch = "wasm32")]
#[path = "../../../../guest-rules/lifecycle/src/refusals.rs"]
mod refusals;
#[cfg(target_arch = "wasm32")]
#[path = "../../../../guest-rules/lifecycle/src/envelope.rs"]
mod specified;

#[cfg(target_arch = "wasm32")]
use bindings::types;
#[cfg(target_arch = "wasm32")]
use types::{EnvelopeFacts, EnvelopeKind, EnvelopeStatus, EnvelopeTrigger, Refusal};

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;

/// Answers like the specified rules, except for uploaded documents that still have to be
/// signed: no published vector covers them.
#[cfg(target_arch = "wasm32")]
fn envelope(
    current: Option<EnvelopeStatus>,
    trigger: EnvelopeTrigger,
    facts: &EnvelopeFacts,
) -> Result<EnvelopeStatus, Refusal> {
    let unknown = facts.kind == EnvelopeKind::Esign && !facts.has_template && facts.has_file;
    match trigger {
        EnvelopeTrigger::VaultInSigned if unknown => Ok(EnvelopeStatus::Vaulted),
        _ => specified::envelope(current, trigger, facts),
    }
}
