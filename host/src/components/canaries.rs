//! Questions with known answers that a component must get right before it is
//! used. Linking does not check the types of exports; calling them does.

use wasmtime::Store;

use super::bindings;
use super::engine::Limited;
use super::rules::{compliance, lifecycle};

type Canary = wasmtime::Result<Result<(), String>>;

/// An empty record fails every check but the one on signatories.
pub(super) fn compliance(
    store: &mut Store<Limited<()>>,
    pre: &bindings::compliance::ComplianceRulesPre<Limited<()>>,
) -> Canary {
    let facts = compliance::EnvelopeFacts {
        envelope_id: "env_canary".into(),
        envelope_name: String::new(),
        customer_id: String::new(),
        status: compliance::EnvelopeStatus::Pending,
        vault_file_path: None,
        document_hash: None,
        copy_file_path: None,
        vault_out_certificate_path: None,
        secured_party: None,
        submitters: Vec::new(),
        signed_documents: Vec::new(),
        custodians: Vec::new(),
        identity_verifications: Vec::new(),
        attributes: Vec::new(),
    };
    let instance = pre.instantiate(&mut *store)?;
    let evaluation = instance
        .holdfast_compliance_compliance()
        .call_evaluate(store, &facts)?;
    Ok(expect(
        !evaluation.compliant && evaluation.score < 100 && !evaluation.checks.is_empty(),
        "an empty record came out compliant",
    ))
}

/// A vaulted envelope cannot be voided; a sent one can.
pub(super) fn lifecycle(
    store: &mut Store<Limited<()>>,
    pre: &bindings::lifecycle::LifecycleRulesPre<Limited<()>>,
) -> Canary {
    let facts = lifecycle::EnvelopeFacts {
        kind: lifecycle::EnvelopeKind::Esign,
        has_template: true,
        is_upload: false,
        has_file: false,
        has_vault_file: false,
        payment: lifecycle::PaymentStatus::NotRequested,
        attributes: Vec::new(),
    };
    let instance = pre.instantiate(&mut *store)?;
    let rules = instance.holdfast_lifecycle_lifecycle();
    let void = lifecycle::EnvelopeTrigger::Void;
    let sent = Some(lifecycle::EnvelopeStatus::Sent);
    let vaulted = Some(lifecycle::EnvelopeStatus::Vaulted);
    let allowed = rules.call_envelope(&mut *store, sent, void, &facts)?;
    let refused = rules.call_envelope(&mut *store, vaulted, void, &facts)?;
    Ok(expect(
        allowed == Ok(lifecycle::EnvelopeStatus::Voided) && refused.is_err(),
        "the void rule does not hold",
    ))
}

/// Bytes that are no PDF are refused, not read.
pub(super) fn placement(
    store: &mut Store<Limited<()>>,
    pre: &bindings::placement::PlacementRulesPre<Limited<()>>,
) -> Canary {
    let instance = pre.instantiate(&mut *store)?;
    let answer = instance
        .holdfast_placement_placement()
        .call_inspect(store, b"no PDF at all")?;
    Ok(expect(
        answer.is_err(),
        "something that is no PDF was read as one",
    ))
}

/// Bytes that are no PDF are refused, not marked.
pub(super) fn documents(
    store: &mut Store<Limited<()>>,
    pre: &bindings::documents::DocumentsRulesPre<Limited<()>>,
) -> Canary {
    let instance = pre.instantiate(&mut *store)?;
    let answer =
        instance
            .holdfast_documents_documents()
            .call_page_image(store, b"no PDF at all", 1, 100)?;
    Ok(expect(
        answer.is_err(),
        "something that is no PDF was shown as one",
    ))
}

fn expect(holds: bool, otherwise: &str) -> Result<(), String> {
    holds.then_some(()).ok_or_else(|| otherwise.to_owned())
}
