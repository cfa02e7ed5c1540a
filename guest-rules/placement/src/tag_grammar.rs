//! Grammar of `{{name;attribute=value;...}}`.
//!
//! ```text
//! tag       = "{{" [ name ] { ";" attribute "=" value } "}}"
//! attribute = type | role | required | readonly | default | width | height | options | name
//!           | one of the attributes that are passed on unchanged
//! ```
//!
//! Names and values are trimmed. A value ends at the next `;`; there is no escape. Attribute names,
//! types and the words `true` and `false` are compared without regard to case.

use crate::issues::{FieldProblem, code, quoted};
use crate::validate::TYPES;

/// Attributes that are passed on: rules about the answer (`field_rules`), then those known to other
/// tag dialects, which have no effect here. A document that uses them is not refused.
const HANDED_ON: [&str; 23] = [
    "condition",
    "required_if",
    "min",
    "max",
    "max_length",
    "pattern",
    "message",
    "formula",
    "decimals",
    "overflow",
    "title",
    "description",
    "option",
    "format",
    "font",
    "font_size",
    "font_type",
    "color",
    "align",
    "valign",
    "hidden",
    "mask",
    "method",
];

/// Role of a tag without a role.
const DEFAULT_ROLE: &str = "Signer 1";
/// Longest side of a field in points; no page of a PDF is larger.
const LONGEST_SIDE: f64 = 14_400.0;

/// A parsed tag.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldTag {
    pub(crate) name: String,
    pub(crate) field_type: String,
    pub(crate) role: String,
    pub(crate) required: bool,
    pub(crate) readonly: bool,
    pub(crate) default_value: Option<String>,
    pub(crate) options: Vec<String>,
    /// Points of the displayed page.
    pub(crate) width: Option<f64>,
    /// Points of the displayed page.
    pub(crate) height: Option<f64>,
    /// Every attribute as written, in order.
    pub(crate) attributes: Vec<(String, String)>,
}

/// Parses a tag including its braces.
///
/// # Errors
///
/// All problems of the tag.
pub(crate) fn parse(text: &str) -> Result<FieldTag, Vec<FieldProblem>> {
    let body = text
        .strip_prefix("{{")
        .and_then(|rest| rest.strip_suffix("}}"))
        .unwrap_or(text);
    let mut problems = Vec::new();
    let mut tag = FieldTag {
        name: String::new(),
        field_type: "text".to_owned(),
        role: DEFAULT_ROLE.to_owned(),
        // Tags are required by default, as in the dialect they come from.
        required: true,
        readonly: false,
        default_value: None,
        options: Vec::new(),
        width: None,
        height: None,
        attributes: Vec::new(),
    };
    for (position, segment) in body.split(';').map(str::trim).enumerate() {
        // The first segment is a name, also one with an equals sign, unless it begins like an attribute.
        match segment.split_once('=') {
            Some((key, value)) if position > 0 || is_attribute(&key_of(key)) => {
                if let Err(problem) = tag.set(text, &key_of(key), value.trim()) {
                    problems.push(problem);
                }
            }
            _ if position == 0 => segment.clone_into(&mut tag.name),
            // A semicolon at the end leaves an empty segment, which means nothing.
            _ if segment.is_empty() => {}
            _ => problems.push(
                FieldProblem::at(&[], code::INVALID_TAG)
                    .expected("attribute=value")
                    .received(segment)
                    .message(format!(
                        "in the tag {}: {} is not of the form attribute=value",
                        quoted(text),
                        quoted(segment)
                    )),
            ),
        }
    }

    if tag.name.is_empty() {
        problems.push(
            FieldProblem::at(&["name"], code::TOO_SMALL)
                .expected("at least 1 character")
                .received("empty")
                .message(format!("the tag {} has no name", quoted(text))),
        );
    }

    if problems.is_empty() {
        Ok(tag)
    } else {
        Err(problems)
    }
}

/// Normalizes an attribute name. Letter-spaced tags may have gaps inside a word, and no attribute
/// name contains a space.
fn key_of(text: &str) -> String {
    text.chars()
        .filter(|character| !character.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect()
}

fn is_attribute(key: &str) -> bool {
    matches!(
        key,
        "name"
            | "type"
            | "role"
            | "required"
            | "readonly"
            | "default"
            | "width"
            | "height"
            | "options"
    ) || HANDED_ON.contains(&key)
}

impl FieldTag {
    fn set(&mut self, text: &str, key: &str, value: &str) -> Result<(), FieldProblem> {
        // With two values, each reader could take another one.
        if self.attributes.iter().any(|(known, _)| known == key) {
            return Err(FieldProblem::at(&[key], code::INVALID_TAG)
                .expected("each attribute once")
                .received(format!("{key}={value}"))
                .message(format!("in the tag {}: {key} is given twice", quoted(text))));
        }

        match key {
            "name" => value.clone_into(&mut self.name),
            "type" => self.field_type = field_type(text, value)?,
            "role" => {
                // An empty role would leave a field that no signer fills in.
                if !value.is_empty() {
                    value.clone_into(&mut self.role);
                }
            }
            "required" => self.required = truth(text, key, value)?,
            "readonly" => self.readonly = truth(text, key, value)?,
            "default" => self.default_value = Some(value.to_owned()),
            "options" => {
                self.options = value
                    .split(',')
                    .map(str::trim)
                    .filter(|option| !option.is_empty())
                    .map(str::to_owned)
                    .collect();
            }
            "width" => self.width = Some(side(text, key, value)?),
            "height" => self.height = Some(side(text, key, value)?),
            // Their meaning is checked later, with all fields of the document.
            other if HANDED_ON.contains(&other) => {}
            other => {
                return Err(FieldProblem::at(&[other], code::INVALID_TAG)
                    .expected("type, role, required, readonly, default, width, height or options")
                    .received(other)
                    .message(format!(
                        "in the tag {}: there is no attribute {}",
                        quoted(text),
                        quoted(other)
                    )));
            }
        }

        self.attributes.push((key.to_owned(), value.to_owned()));
        Ok(())
    }
}

fn field_type(text: &str, value: &str) -> Result<String, FieldProblem> {
    let kind = key_of(value);
    if TYPES.contains(&kind.as_str()) {
        return Ok(kind);
    }

    Err(FieldProblem::at(&["type"], code::INVALID_ENUM_VALUE)
        .expected(TYPES.join(" | "))
        .received(value)
        .message(format!(
            "in the tag {}: unknown field type {}; it must be one of {}",
            quoted(text),
            quoted(value),
            TYPES.join(", ")
        )))
}

fn truth(text: &str, key: &str, value: &str) -> Result<bool, FieldProblem> {
    match key_of(value).as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(FieldProblem::at(&[key], code::INVALID_ENUM_VALUE)
            .expected("true | false")
            .received(value)
            .message(format!(
                "in the tag {}: {key} must be true or false, not {}",
                quoted(text),
                quoted(value)
            ))),
    }
}

/// Parses a length in points; `px` counts as points, as pixels at 72 per inch do.
fn side(text: &str, key: &str, value: &str) -> Result<f64, FieldProblem> {
    let compact = key_of(value);
    let number = compact.strip_suffix("px").unwrap_or(&compact);
    match number.parse::<f64>() {
        // Parsing takes `inf` and `nan` for numbers, so the value is checked for them.
        Ok(length) if length.is_finite() && length > 0.0 && length <= LONGEST_SIDE => Ok(length),
        _ => Err(FieldProblem::at(&[key], code::INVALID_TAG)
            .expected(format!(
                "pixels at 72 per inch, more than 0, at most {LONGEST_SIDE}"
            ))
            .received(value)
            .message(format!(
                "in the tag {}: {key} must be a number of pixels, not {}",
                quoted(text),
                quoted(value)
            ))),
    }
}
