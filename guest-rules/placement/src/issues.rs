//! Problems of a field, and their conversion to issues.

use crate::Issue;

/// Codes that callers may rely on. The first three are also used by plain JSON validation.
pub(crate) mod code {
    pub(crate) const TOO_BIG: &str = "too_big";
    pub(crate) const TOO_SMALL: &str = "too_small";
    pub(crate) const INVALID_ENUM_VALUE: &str = "invalid_enum_value";
    /// Not a number, or not a finite one.
    pub(crate) const INVALID_TYPE: &str = "invalid_type";
    pub(crate) const ANCHOR_NOT_FOUND: &str = "anchor_not_found";
    pub(crate) const OCCURRENCE_OUT_OF_RANGE: &str = "occurrence_out_of_range";
    pub(crate) const PAGE_OUT_OF_RANGE: &str = "page_out_of_range";
    pub(crate) const OUTSIDE_PAGE: &str = "outside_page";
    pub(crate) const CONFLICTING_TYPE: &str = "conflicting_type";
    /// An embedded tag that does not follow the grammar.
    pub(crate) const INVALID_TAG: &str = "invalid_tag";
    /// A rule that fields of this type cannot have.
    pub(crate) const UNSUPPORTED_RULE: &str = "unsupported_rule";
    pub(crate) const INVALID_PATTERN: &str = "invalid_pattern";
    pub(crate) const INVALID_CONDITION: &str = "invalid_condition";
    pub(crate) const INVALID_FORMULA: &str = "invalid_formula";
    /// A rule names a field that does not exist.
    pub(crate) const UNKNOWN_FIELD: &str = "unknown_field";
    /// A rule that depends on its own result.
    pub(crate) const CIRCULAR_RULE: &str = "circular_rule";
}

/// A problem, without the field it concerns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldProblem {
    pub(crate) path: Vec<String>,
    pub(crate) code: &'static str,
    pub(crate) expected: String,
    pub(crate) received: String,
    pub(crate) message: String,
}

impl FieldProblem {
    /// Creates a problem at a path of plain names.
    pub(crate) fn at(path: &[&str], code: &'static str) -> Self {
        Self {
            path: path.iter().map(ToString::to_string).collect(),
            code,
            expected: String::new(),
            received: String::new(),
            message: String::new(),
        }
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = expected.into();
        self
    }

    pub(crate) fn received(mut self, received: impl ToString) -> Self {
        self.received = received.to_string();
        self
    }

    pub(crate) fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Returns the same problem below another path.
    pub(crate) fn below(mut self, parents: &[&str]) -> Self {
        let mut path: Vec<String> = parents.iter().map(ToString::to_string).collect();
        path.append(&mut self.path);
        self.path = path;
        self
    }

    pub(crate) fn of_field(self, index: usize) -> Issue {
        Issue {
            field_index: u32::try_from(index).unwrap_or(u32::MAX),
            path: self.path,
            code: self.code.to_owned(),
            expected: self.expected,
            received: self.received,
            message: self.message,
        }
    }
}

/// Quotes a text in a message, shortened to 80 characters.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('\u{2026}');
    }
    format!("\"{short}\"")
}
