//! Conditions: `Field`, `Field:value`, `!Field`, `!Field:value`.

use crate::RuledField;

/// A condition about the answer of one field.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    pub(super) field: String,
    /// The answer that is meant; none means any.
    value: Option<String>,
    negated: bool,
}

impl Condition {
    /// Parses a condition. Names may contain colons, so the longest known name counts; none if no
    /// field has such a name.
    pub(super) fn parse(text: &str, fields: &[RuledField]) -> Option<Self> {
        let text = text.trim();
        let (negated, text) = match text.strip_prefix('!') {
            Some(rest) => (true, rest.trim()),
            None => (false, text),
        };
        let is_field = |name: &str| fields.iter().any(|field| field.name == name);
        // The whole text comes first, because a name may itself look like a name with a value.
        if is_field(text) {
            return Some(Self {
                field: text.to_owned(),
                value: None,
                negated,
            });
        }

        let colons = text.rmatch_indices(':').map(|(at, _)| at);
        let mut parts = colons.map(|at| (text[..at].trim(), text[at + 1..].trim()));
        let (field, value) = parts.find(|(name, value)| is_field(name) && !value.is_empty())?;
        Some(Self {
            field: field.to_owned(),
            value: Some(value.to_owned()),
            negated,
        })
    }

    /// Returns whether the condition holds for the answer of its field. Case is ignored. An unticked
    /// box is no answer; `yes` and `no` stand for a ticked and an unticked one.
    pub(super) fn holds(&self, answer: &str, is_checkbox: bool) -> bool {
        let answer = answer.trim();
        let is_met = match &self.value {
            None => !(answer.is_empty() || is_checkbox && answer == "false"),
            Some(value) if is_checkbox => {
                let wanted = matches!(value.to_lowercase().as_str(), "true" | "yes");
                wanted == (answer == "true")
            }
            Some(value) => value.to_lowercase() == answer.to_lowercase(),
        };

        is_met != self.negated
    }
}
