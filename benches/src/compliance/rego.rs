//! The eight checks in Rego, compiled once to the bytecode of `regorus`.

use std::collections::BTreeMap;

use holdfast_compliance::types::EnvelopeFacts;
use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::RegoVM;
use regorus::{Engine, Value};

use super::records::{custodian_status_text, status_text};
use crate::Failure;

const ENTRY_POINT: &str = "data.holdfast.compliance.evaluation";

/// A virtual machine with the program loaded.
pub struct RegoEngine {
    machine: RegoVM,
}

impl RegoEngine {
    /// Compiles the policy.
    pub fn new() -> Result<Self, Failure> {
        let mut engine = Engine::new();
        engine.add_policy(
            "checks.rego".into(),
            include_str!("../policies/checks.rego").into(),
        )?;
        let policy = engine.compile_with_entrypoint(&ENTRY_POINT.into())?;
        let program = Compiler::compile_from_policy(&policy, &[ENTRY_POINT])?;

        let mut machine = RegoVM::new_with_policy(policy);
        machine.load_program(program);
        machine.set_data(Value::new_object())?;

        Ok(Self { machine })
    }

    /// Returns the eight results in the format of the engine.
    pub fn decide(&mut self, input: Value) -> Result<Value, Failure> {
        self.machine.set_input(input);
        Ok(self.machine.execute_entry_point_by_index(0)?)
    }
}

/// Parses the results: whether each check is satisfied, and its sentence.
pub fn read(answer: &Value) -> Result<Vec<(bool, String)>, Failure> {
    let member = |check: &Value, name: &str| {
        check
            .as_object()
            .map(|check| check.get(&name.into()).cloned())
    };
    answer
        .as_array()?
        .iter()
        .map(
            |check| match (member(check, "satisfied")?, member(check, "detail")?) {
                (Some(satisfied), Some(detail)) => {
                    Ok((*satisfied.as_bool()?, detail.as_string()?.to_string()))
                }
                _ => Err("Rego left out a member of a check".into()),
            },
        )
        .collect()
}

/// Returns the input document of the engine: the members of the record that the checks read.
pub fn input(facts: &EnvelopeFacts) -> Value {
    let submitters = facts.submitters.iter().map(|submitter| {
        object([
            ("name", text(&submitter.name)),
            ("email", text(&submitter.email)),
            ("role", text(&submitter.role)),
        ])
    });

    let signed_documents = facts.signed_documents.iter().map(|signed| {
        object([
            ("signer_email", text(&signed.signer_email)),
            ("signed_at", text(&signed.signed_at)),
        ])
    });

    let custodians = facts.custodians.iter().map(|custodian| {
        object([
            ("email", text(&custodian.email)),
            ("status", text(custodian_status_text(custodian.status))),
        ])
    });

    let secured_party = facts
        .secured_party
        .as_ref()
        .map_or(Value::Null, |party| object([("name", text(&party.name))]));
    object([
        ("status", text(status_text(facts.status))),
        ("vault_file_path", optional_text(&facts.vault_file_path)),
        ("document_hash", optional_text(&facts.document_hash)),
        ("copy_file_path", optional_text(&facts.copy_file_path)),
        (
            "vault_out_certificate_path",
            optional_text(&facts.vault_out_certificate_path),
        ),
        ("secured_party", secured_party),
        ("submitters", submitters.collect::<Vec<_>>().into()),
        (
            "signed_documents",
            signed_documents.collect::<Vec<_>>().into(),
        ),
        ("custodians", custodians.collect::<Vec<_>>().into()),
    ])
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    members
        .into_iter()
        .map(|(name, value)| (Value::from(name), value))
        .collect::<BTreeMap<_, _>>()
        .into()
}

fn text(text: &str) -> Value {
    text.into()
}

fn optional_text(text: &Option<String>) -> Value {
    text.as_deref().map_or(Value::Null, Value::from)
}
