//! The eight checks in Cedar: one policy set, eight requests for each record.

use std::str::FromStr as _;

use cedar_policy::{
    Authorizer, Context, Decision, Entities, EntityId, EntityTypeName, EntityUid, PolicySet,
    Request, RestrictedExpression,
};
use holdfast_compliance::types::EnvelopeFacts;

use super::records::{custodian_status_text, status_text};
use crate::Failure;

/// Names of the checks, in the order of the specification.
const CHECKS: [&str; 8] = [
    "single_authoritative_copy",
    "tamper_evident_record",
    "controlling_party_identified",
    "all_signatories_executed",
    "copies_identifiable",
    "record_fully_executed",
    "audit_certificate_generated",
    "secured_party_identified",
];

/// The parsed policy set and the names used in requests.
pub struct CedarEngine {
    authorizer: Authorizer,
    policies: PolicySet,
    entities: Entities,
    principal: EntityUid,
    checks: Vec<EntityUid>,
    envelope: EntityTypeName,
}

/// A record, prepared for requests.
pub struct CedarSubject {
    resource: EntityUid,
    context: Context,
}

impl CedarEngine {
    /// Parses the policies.
    pub fn new() -> Result<Self, Failure> {
        let action = EntityTypeName::from_str("Action")?;
        Ok(Self {
            authorizer: Authorizer::new(),
            policies: PolicySet::from_str(include_str!("../policies/checks.cedar"))?,
            entities: Entities::empty(),
            principal: EntityUid::from_str("Service::\"holdfast\"")?,
            checks: CHECKS
                .iter()
                .map(|name| EntityUid::from_type_name_and_id(action.clone(), EntityId::new(name)))
                .collect(),
            envelope: EntityTypeName::from_str("Envelope")?,
        })
    }

    /// Returns the record as resource and context.
    pub fn subject(&self, facts: &EnvelopeFacts) -> Result<CedarSubject, Failure> {
        let resource = EntityUid::from_type_name_and_id(
            self.envelope.clone(),
            EntityId::new(&facts.envelope_id),
        );
        Ok(CedarSubject {
            resource,
            context: context(facts)?,
        })
    }

    /// Sends the eight requests; a policy that cannot be evaluated is an error.
    pub fn decide(&self, subject: &CedarSubject) -> Result<[bool; 8], Failure> {
        let mut satisfied = [false; 8];
        for (satisfied, check) in satisfied.iter_mut().zip(&self.checks) {
            let request = Request::new(
                self.principal.clone(),
                check.clone(),
                subject.resource.clone(),
                subject.context.clone(),
                None,
            )?;
            let response = self
                .authorizer
                .is_authorized(&request, &self.policies, &self.entities);
            if let Some(error) = response.diagnostics().errors().next() {
                return Err(error.to_string().into());
            }

            *satisfied = response.decision() == Decision::Allow;
        }

        Ok(satisfied)
    }
}

fn context(facts: &EnvelopeFacts) -> Result<Context, Failure> {
    let submitters = facts
        .submitters
        .iter()
        .map(|submitter| email(&submitter.email));
    let signers = facts
        .signed_documents
        .iter()
        .map(|signed| email(&signed.signer_email));

    let statuses = facts
        .custodians
        .iter()
        .map(|custodian| string(custodian_status_text(custodian.status)));
    let mut pairs = vec![
        ("status".to_owned(), string(status_text(facts.status))),
        (
            "document_hash_is_sha256".to_owned(),
            RestrictedExpression::new_bool(facts.document_hash.as_deref().is_some_and(is_sha256)),
        ),
        (
            "custodian_statuses".to_owned(),
            RestrictedExpression::new_set(statuses),
        ),
        (
            "submitters".to_owned(),
            RestrictedExpression::new_set(submitters),
        ),
        ("signers".to_owned(), RestrictedExpression::new_set(signers)),
    ];

    let secured_party = facts.secured_party.as_ref().map(|party| party.name.trim());
    for (name, value) in [
        ("vault_file_path", facts.vault_file_path.as_deref()),
        ("copy_file_path", facts.copy_file_path.as_deref()),
        (
            "vault_out_certificate_path",
            facts.vault_out_certificate_path.as_deref(),
        ),
        ("secured_party_name", secured_party),
    ] {
        if let Some(value) = value {
            pairs.push((name.to_owned(), string(value)));
        }
    }

    Ok(Context::from_pairs(pairs)?)
}

fn string(text: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(text.to_owned())
}

fn email(address: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(address.trim().to_lowercase())
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
