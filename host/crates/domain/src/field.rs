//! Signing fields, in the one form that the API and the database share.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::envelope::words;

/// Rectangle on a displayed page: fractions 0.0 to 1.0, origin top-left;
/// `page` is 1-based.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Area {
    pub page: u32,
    pub x: f64,
    pub y: f64,
    pub w: f64,
    pub h: f64,
}

/// Signing field with its resolved rectangles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Field {
    pub name: String,
    #[serde(rename = "type")]
    pub field_type: String,
    pub role: String,
    pub required: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub readonly: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_value: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    pub areas: Vec<Area>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor_match: Option<Area>,
    #[serde(flatten)]
    pub rules: FieldRules,
}

/// Widest place of a radio button, as a fraction of the page's width. A wider one has room for the text
/// of an option.
const WIDEST_BUTTON: f64 = 0.05;

/// Returns whether a field has a place as small as a button for each of its options, in their order, as
/// in a group of radio buttons. The place of the chosen option is then marked, and no text written.
pub fn is_group(field_type: &str, options: &[String], areas: &[Area]) -> bool {
    field_type == FieldType::Radio.as_str()
        && options.len() > 1
        && options.len() == areas.len()
        && areas.iter().all(|area| area.w <= WIDEST_BUTTON)
}

/// Rules about the answer of a signer, in the words of `holdfast:placement/field-rules`, which checks
/// and applies them. Numbers may be given as JSON numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldRules {
    /// Smallest number, or earliest date: ISO 8601, `today`, `today+30` or `today-1`.
    #[serde(
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<TextOrNumber>")]
    pub min: Option<String>,
    /// Largest number, or latest date.
    #[serde(
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<TextOrNumber>")]
    pub max: Option<String>,
    /// Maximum length of a text, in characters: 1 to 4,000.
    #[serde(
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<TextOrNumber>")]
    pub max_length: Option<String>,
    /// Regular expression for the whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Words for an entry that does not match the pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Shows the field: `Field`, `Field:value`, `!Field` or `!Field:value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Requires the field, like `condition`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_if: Option<String>,
    /// Computes a number: `[Price] * [Rate] / 100`. The signer cannot change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    /// Decimal places of the result: 0 to 8, 2 when absent.
    #[serde(
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<TextOrNumber>")]
    pub decimals: Option<String>,
    /// `page`: a text that is too long for its field stands on a page at the end of the document, and the field
    /// refers to it. Without it, such a text is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow: Option<String>,
}

/// A number, or its text.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum TextOrNumber {
    Text(String),
    Number(serde_json::Number),
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let given = Option::<TextOrNumber>::deserialize(deserializer)?;
    Ok(given.map(|given| match given {
        TextOrNumber::Text(text) => text,
        TextOrNumber::Number(number) => number.to_string(),
    }))
}

impl FieldRules {
    /// Names of the rules, which are also attributes of tags.
    pub const NAMES: [&str; 10] = [
        "min",
        "max",
        "max_length",
        "pattern",
        "message",
        "condition",
        "required_if",
        "formula",
        "decimals",
        "overflow",
    ];

    fn values(&mut self) -> [&mut Option<String>; 10] {
        [
            &mut self.min,
            &mut self.max,
            &mut self.max_length,
            &mut self.pattern,
            &mut self.message,
            &mut self.condition,
            &mut self.required_if,
            &mut self.formula,
            &mut self.decimals,
            &mut self.overflow,
        ]
    }

    /// Returns the rules among the attributes of a field. Empty values are none.
    pub fn from_attributes(attributes: &[(String, String)]) -> Self {
        let mut rules = Self::default();
        // `NAMES` and `values` have the same order, so the pairs need no table of their own.
        for (name, value) in Self::NAMES.into_iter().zip(rules.values()) {
            let given = attributes.iter().find(|(known, _)| known == name);
            *value = given.map(|(_, given)| given.trim().to_owned());
            value.take_if(|value| value.is_empty());
        }
        rules
    }

    /// Returns the rules as attributes of a field.
    pub fn attributes(&self) -> Vec<(String, String)> {
        let mut rules = self.clone();
        let named = Self::NAMES.into_iter().zip(rules.values());
        named
            .filter_map(|(name, value)| Some((name.to_owned(), value.take()?)))
            .collect()
    }

    /// Removes one rule; returns whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let mut named = Self::NAMES.into_iter().zip(self.values());
        let found = named.find(|(known, _)| *known == name);
        found.is_some_and(|(_, value)| value.take().is_some())
    }

    /// Follows fields that got other names, given as pairs of the name before and after.
    pub fn rename(&mut self, renamed: &[(&str, String)]) {
        for condition in [&mut self.condition, &mut self.required_if] {
            let Some(text) = condition else { continue };
            let negation = if text.trim_start().starts_with('!') {
                "!"
            } else {
                ""
            };
            let rest = text.trim_start().trim_start_matches('!').trim_start();

            // Names may contain colons, so the longest name counts.
            let about = |(before, _): &&(&str, String)| {
                let after = rest.strip_prefix(before);
                after.is_some_and(|after| after.is_empty() || after.trim_start().starts_with(':'))
            };
            let longest = renamed
                .iter()
                .filter(about)
                .max_by_key(|(before, _)| before.len());

            if let Some((before, after)) = longest {
                *text = format!("{negation}{after}{}", &rest[before.len()..]);
            }
        }

        // Names in formulas stand in brackets, so each one ends with its
        // bracket, and no longest match is needed.
        if let Some(formula) = &mut self.formula {
            let parts = formula.split_inclusive(']').map(|part| {
                let Some((start, name)) = part.strip_suffix(']').and_then(|p| p.split_once('['))
                else {
                    return part.to_owned();
                };

                let known = renamed.iter().find(|(before, _)| *before == name.trim());
                let name = known.map_or(name, |(_, after)| after.as_str());
                format!("{start}[{name}]")
            });

            *formula = parts.collect();
        }
    }

    /// Returns whether there is no rule.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Field {
    /// Whether the field is filled by signing rather than by typing a value.
    pub fn is_signature(&self) -> bool {
        is_signature(&self.field_type)
    }
}

words! {
    /// Field type. `select` and `radio` take one of `options`. `attachment` takes a file of the signer:
    /// PDF, PNG or JPEG up to 10 MB, which becomes an appendix of the document.
    FieldType {
        Signature = "signature",
        Initials = "initials",
        Text = "text",
        Date = "date",
        Checkbox = "checkbox",
        Number = "number",
        Select = "select",
        Radio = "radio",
        Attachment = "attachment",
    }
}

/// Type of fields that take a file of the signer.
pub const ATTACHMENT: &str = "attachment";

/// Whether fields of this type are filled by signing.
pub fn is_signature(field_type: &str) -> bool {
    matches!(field_type, "signature" | "initials")
}
