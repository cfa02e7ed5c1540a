//! Canaries: test calls with known results that a component must pass before it is
//! used. Linking does not check the types of exports; calling them does.

use super::bindings;
use super::engine::LimitedEngine;
use super::error::{CallFailure, ComponentError};
use super::rules::{compliance, control, funding, lifecycle};
use super::slot::ContractProbe;

/// Requires that an empty record is not compliant.
pub fn compliance(
    pre: &bindings::compliance::ComplianceRulesPre<LimitedEngine<()>>,
    probe: &ContractProbe<'_>,
) -> Result<(), ComponentError> {
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

    let evaluation = probe.call(|store| {
        let instance = pre.instantiate(&mut *store)?;
        instance
            .holdfast_compliance_compliance()
            .call_evaluate(store, &facts)
    })?;

    // Rules that accept everything are the worst fault, and an empty record shows it in one call.
    probe.expect(
        !evaluation.compliant && evaluation.score < 100 && !evaluation.checks.is_empty(),
        "an empty record came out compliant",
    )
}

/// Requires that a sent envelope can be voided and a vaulted one cannot.
pub fn lifecycle(
    pre: &bindings::lifecycle::LifecycleRulesPre<LimitedEngine<()>>,
    probe: &ContractProbe<'_>,
) -> Result<(), ComponentError> {
    let facts = lifecycle::EnvelopeFacts {
        kind: lifecycle::EnvelopeKind::Esign,
        has_template: true,
        is_upload: false,
        has_file: false,
        has_vault_file: false,
        payment: lifecycle::PaymentStatus::NotRequested,
        attributes: Vec::new(),
    };

    let void = |current| {
        probe.call(|store| {
            let instance = pre.instantiate(&mut *store)?;
            instance.holdfast_lifecycle_lifecycle().call_envelope(
                store,
                Some(current),
                lifecycle::EnvelopeTrigger::Void,
                &facts,
            )
        })
    };

    // A component that always answers alike fails one of these two.
    let allowed = void(lifecycle::EnvelopeStatus::Sent)?;
    let refused = void(lifecycle::EnvelopeStatus::Vaulted)?;
    probe.expect(
        allowed == Ok(lifecycle::EnvelopeStatus::Voided) && refused.is_err(),
        "the void rule does not hold",
    )
}

/// Requires that a controller can take the copy out, and that an outsider cannot.
pub fn control(
    pre: &bindings::control::ControlRulesPre<LimitedEngine<()>>,
    probe: &ContractProbe<'_>,
) -> Result<(), ComponentError> {
    let release = |actor: Vec<control::Party>| {
        let facts = control::ControlFacts {
            stage: control::Stage::Controlled,
            actor,
            named: Vec::new(),
            is_vaulted: true,
            obstacles: Vec::new(),
            is_expired: false,
            release_requested: false,
            pledges: 0,
            consents: Vec::new(),
            attributes: Vec::new(),
        };

        probe.call(|store| {
            let instance = pre.instantiate(&mut *store)?;
            let rules = instance.holdfast_control_control();
            rules.call_decide(store, control::Act::Release, &facts)
        })
    };

    let own = release(vec![control::Party::Controller])?;
    // An outsider has no part in the record, so the list of parties is empty.
    let foreign = release(Vec::new())?;
    probe.expect(
        own == control::Decision::Allowed && foreign != control::Decision::Allowed,
        "the rule about a release does not hold",
    )
}

/// Requires that a contract without facts, signers and a secured party is not ready.
pub fn funding(
    pre: &bindings::funding::FundingRulesPre<LimitedEngine<()>>,
    probe: &ContractProbe<'_>,
) -> Result<(), ComponentError> {
    let facts = funding::FundingFacts {
        facts: Vec::new(),
        signers: Vec::new(),
        stipulations: Vec::new(),
        secured_party: None,
        jurisdictions: Vec::new(),
        today: "2026-01-02".into(),
        stage: funding::Stage::AfterSigning,
        attributes: Vec::new(),
    };

    let assessment = probe.call(|store| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_funding_funding();
        rules.call_check(store, &facts)
    })?;
    probe.expect(
        assessment.decision != funding::Decision::Ready,
        "a contract without facts and signers came out ready",
    )
}

/// Requires that the component refuses to inspect bytes that are no PDF.
pub fn placement(
    pre: &bindings::placement::PlacementRulesPre<LimitedEngine<()>>,
    probe: &ContractProbe<'_>,
) -> Result<(), ComponentError> {
    // Anyone can upload a file that reaches this function, so bad bytes must give an error and no trap.
    let answer = probe.call(|store| {
        let instance = pre.instantiate(&mut *store)?;
        instance
            .holdfast_placement_placement()
            .call_inspect(store, b"no PDF at all")
    })?;
    probe.expect(answer.is_err(), "something that is no PDF was read as one")
}

/// Requires that the component refuses to render bytes that are no PDF.
pub fn documents(
    pre: &bindings::documents::DocumentsRulesPre<LimitedEngine<()>>,
    probe: &ContractProbe<'_>,
) -> Result<(), ComponentError> {
    let answer = probe.call(|store| {
        let instance = pre.instantiate(&mut *store)?;
        instance
            .holdfast_documents_documents()
            .call_page_image(store, b"no PDF at all", 1, 100)
    })?;
    probe.expect(answer.is_err(), "something that is no PDF was shown as one")
}

impl ContractProbe<'_> {
    fn expect(&self, holds: bool, otherwise: &str) -> Result<(), ComponentError> {
        if holds {
            Ok(())
        } else {
            Err(ComponentError::new(
                self.identity,
                CallFailure::Canary(otherwise.to_owned()),
            ))
        }
    }
}
