//! The declared rules, as they are inside the component.

use holdfast_conditions::{Expression, SentencePart};
use serde::{Deserialize, Serialize};

/// Rules on top of a built-in pack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeclaredRules {
    /// Changes of the pack's checks.
    pub changes: Vec<ChangedCheck>,
    /// Further checks, after those of the pack.
    pub checks: Vec<AddedCheck>,
}

/// Change of a check. An absent member leaves that part unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangedCheck {
    /// Name of the check in the pack.
    pub requirement: String,
    /// Reference of the check.
    pub reference: Option<String>,
    /// Paragraph of the statute, for the certificate.
    pub statute_reference: Option<String>,
    /// Condition that the check needs besides its own.
    pub also_when: Option<Expression>,
    /// Sentence if it is satisfied.
    pub satisfied: Option<Vec<SentencePart>>,
    /// Sentence if it is not.
    pub unsatisfied: Option<Vec<SentencePart>>,
    /// Share in the score.
    pub weight: Option<u32>,
}

/// Check of the organization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AddedCheck {
    /// Name of the check.
    pub requirement: String,
    /// Law or policy that requires it.
    pub reference: String,
    /// Paragraph of the statute, for the certificate; the reference if absent.
    pub statute_reference: Option<String>,
    /// The condition.
    pub satisfied_when: Expression,
    /// Sentence if it is satisfied.
    pub satisfied: Vec<SentencePart>,
    /// Sentence if it is not.
    pub unsatisfied: Vec<SentencePart>,
    /// Share in the score.
    pub weight: u32,
}
