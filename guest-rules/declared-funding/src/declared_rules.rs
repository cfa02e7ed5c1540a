//! The declared rules, as they are inside the component.

use holdfast_conditions::{Expression, SentencePart};
use serde::{Deserialize, Serialize};

use crate::types::Severity;

/// Rules on top of the built-in ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeclaredRules {
    /// Changes of built-in rules.
    pub changes: Vec<ChangedRule>,
    /// Further rules, after the built-in ones.
    pub rules: Vec<AddedRule>,
}

/// Change of the findings of a built-in rule. An absent member leaves that part unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangedRule {
    /// Name of the rule.
    pub rule: String,
    /// Condition for the change; it always applies if absent.
    pub applies_when: Option<Expression>,
    /// Severity of the findings.
    pub severity: Option<Severity>,
    /// Sentence of the findings.
    pub sentence: Option<Vec<SentencePart>>,
    /// Law or agreement behind the rule.
    pub source: Option<String>,
}

/// Rule of the organization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AddedRule {
    /// Name of the rule, such as `credit.term`.
    pub rule: String,
    /// Severity of its finding.
    pub severity: Severity,
    /// Whether a contract that does not meet the rule lacks something. Otherwise something is wrong with it.
    pub is_gap: bool,
    /// Names of the facts that it is about.
    pub facts: Vec<String>,
    /// Contracts that it is about; all if absent.
    pub applies_when: Option<Expression>,
    /// The condition.
    pub holds_when: Expression,
    /// What the rule expects.
    pub expected: Vec<SentencePart>,
    /// What stands in the contract; the values of the facts if absent.
    pub actual: Option<Vec<SentencePart>>,
    /// Sentence if the condition does not hold.
    pub sentence: Vec<SentencePart>,
    /// Law or agreement behind the rule.
    pub source: String,
}
