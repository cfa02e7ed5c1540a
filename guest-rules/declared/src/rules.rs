//! The declared rules, as they are inside the component.

use serde::{Deserialize, Serialize};

use crate::expression::{Expression, SentencePart};
use crate::space;

/// Rules on top of a built-in pack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeclaredRules {
    /// Changes of the pack's checks.
    pub changes: Vec<ChangedCheck>,
    /// Further checks, after those of the pack.
    pub checks: Vec<AddedCheck>,
}

/// Returns the rules of this component; none if nothing was written. Rules that cannot be read end the call:
/// without them, the pack alone would answer.
pub(crate) fn written() -> DeclaredRules {
    match space::content().map(serde_json::from_slice) {
        None => DeclaredRules::default(),
        Some(Ok(rules)) => rules,
        Some(Err(_)) => panic!("the rules inside this component cannot be read"),
    }
}

/// Writes rules into a component.
///
/// # Errors
/// The rules are too large or nested too deeply, or the component has no space for rules.
pub fn write_rules(component: &mut [u8], rules: &DeclaredRules) -> Result<(), String> {
    let text = serde_json::to_vec(rules).map_err(|error| error.to_string())?;
    // The component reads them with the same limits.
    let read = serde_json::from_slice::<DeclaredRules>(&text);
    if !read.is_ok_and(|read| read == *rules) {
        return Err(
            "an expression is nested too deeply, or has a number that is not finite".into(),
        );
    }

    space::write(component, &text)
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
