//! Effects of the rules on the entries so far.

use std::collections::HashMap;

use jiff::civil::Date;
use rust_decimal::Decimal;

use super::condition::Condition;
use super::limit::{DateLimit, decimal};
use super::rule_set::{LONGEST_CHAIN, RuleSet};
use super::{attribute, pattern};
use crate::{FieldEntry, FieldState, RuleProblem, RuledField};

/// Returns one state for each field, in the given order. `today` is an ISO 8601 date.
///
/// Rules that [`check`](super::check) would refuse have no effect.
pub fn apply(fields: &[RuledField], entries: &[FieldEntry], today: &str) -> Vec<FieldState> {
    let mut answers = Answers {
        rules: RuleSet::new(fields),
        entries: entries
            .iter()
            .map(|entry| {
                (
                    (entry.role.as_str(), entry.name.as_str()),
                    entry.value.trim(),
                )
            })
            .collect(),
        known: vec![Knowledge::Unknown; fields.len()],
        depth: 0,
    };

    // Without a readable day, no limit of a date can be judged, and none is reported as broken.
    let today = today.parse().ok();
    (0..fields.len())
        .map(|index| {
            let field = &fields[index];
            let answer = answers.of(index);
            let shown = answer.is_some();
            let value = answer.unwrap_or_default();
            let required_if = attribute(field, "required_if");
            let required_if = required_if.and_then(|text| Condition::parse(text, fields));
            let needed = match required_if {
                Some(condition) => field.required || answers.holds(&condition, index),
                None => field.required,
            };

            let has_formula = answers.rules.formulas[index].is_some();
            FieldState {
                shown,
                required: shown && needed,
                // An empty answer breaks no limit. Whether one is needed is stated beside it.
                problem: if shown && !value.is_empty() {
                    problem(field, &value, today)
                } else {
                    None
                },
                computed: has_formula.then_some(value),
            }
        })
        .collect()
}

#[derive(Clone)]
enum Knowledge {
    Unknown,
    /// Being computed: rules that lead back to themselves count as unanswered.
    Open,
    /// The answer; none for a field that is not shown.
    Known(Option<String>),
}

struct Answers<'a> {
    rules: RuleSet<'a>,
    entries: HashMap<(&'a str, &'a str), &'a str>,
    known: Vec<Knowledge>,
    /// Number of rules being followed.
    depth: usize,
}

impl Answers<'_> {
    /// Returns the answer of a field, entered or computed; none if the field is not shown.
    fn of(&mut self, index: usize) -> Option<String> {
        match &self.known[index] {
            Knowledge::Known(answer) => return answer.clone(),
            Knowledge::Open => return None,
            // Longer chains are refused by the check; here they must not use up the stack.
            Knowledge::Unknown if self.depth > LONGEST_CHAIN + 1 => return None,
            Knowledge::Unknown => self.known[index] = Knowledge::Open,
        }

        self.depth += 1;
        let condition = self.rules.conditions[index].clone();
        let shown = condition.is_none_or(|condition| self.holds(&condition, index));
        let answer = shown.then(|| match self.rules.formulas[index].clone() {
            Some(formula) => {
                let names: Vec<String> = formula.fields().map(str::to_owned).collect();
                let numbers: HashMap<String, Option<Decimal>> = names
                    .into_iter()
                    .map(|name| {
                        let number = self.number(&name, index);
                        (name, number)
                    })
                    .collect();

                // A formula of constants has a result at once.
                let is_open = !numbers.is_empty() && numbers.values().all(Option::is_none);
                let field = &self.rules.fields[index];
                let decimals = attribute(field, "decimals").and_then(|text| text.parse().ok());
                let mut value =
                    |name: &str| numbers.get(name).copied().flatten().unwrap_or_default();
                let result = formula.result(decimals.unwrap_or(2), &mut value);

                result.filter(|_| !is_open).unwrap_or_default()
            }
            None => self.entered(index).to_owned(),
        });

        self.depth -= 1;
        self.known[index] = Knowledge::Known(answer.clone());
        answer
    }

    fn entered(&self, index: usize) -> &str {
        let field = &self.rules.fields[index];
        let key = (field.role.as_str(), field.name.as_str());
        self.entries.get(&key).copied().unwrap_or_default()
    }

    fn holds(&mut self, condition: &Condition, from: usize) -> bool {
        // The check refuses a condition about an unknown field. Here it must not hide anything.
        let Some(index) = self.rules.named(&condition.field, from) else {
            return true;
        };
        let answer = self.of(index).unwrap_or_default();
        condition.holds(&answer, self.rules.fields[index].field_type == "checkbox")
    }

    /// Returns the number of a field; none while it has no answer. A ticked box is 1.
    fn number(&mut self, name: &str, from: usize) -> Option<Decimal> {
        let index = self.rules.named(name, from)?;
        let answer = self.of(index)?;
        match self.rules.fields[index].field_type.as_str() {
            "checkbox" => Some(match answer.as_str() {
                "true" => Decimal::ONE,
                "false" => Decimal::ZERO,
                _ => return None,
            }),
            _ => decimal(&answer),
        }
    }
}

fn problem(field: &RuledField, value: &str, today: Option<Date>) -> Option<RuleProblem> {
    match field.field_type.as_str() {
        "number" => {
            // More digits than an exact number has, which a limit or a formula could not judge.
            let Some(number) = decimal(value) else {
                return Some(RuleProblem::NoMatch(None));
            };

            let limit = |name| attribute(field, name).and_then(|text| Some((decimal(text)?, text)));
            if let Some((_, text)) = limit("min").filter(|(min, _)| number < *min) {
                return Some(RuleProblem::TooSmall(text.to_owned()));
            }

            let (_, text) = limit("max").filter(|(max, _)| number > *max)?;
            Some(RuleProblem::TooBig(text.to_owned()))
        }
        "date" => {
            let date: Date = value.parse().ok()?;
            let limit = |name| DateLimit::parse(attribute(field, name)?)?.day(today?);
            if let Some(min) = limit("min").filter(|min| date < *min) {
                return Some(RuleProblem::TooSmall(min.to_string()));
            }

            let max = limit("max").filter(|max| date > *max)?;
            Some(RuleProblem::TooBig(max.to_string()))
        }
        "text" => {
            let most = attribute(field, "max_length").and_then(|text| text.parse::<u32>().ok());
            let length = value.chars().count();
            if let Some(most) = most.filter(|most| length > *most as usize) {
                return Some(RuleProblem::TooLong(most));
            }

            let matches = pattern(attribute(field, "pattern")?).ok()?.is_match(value);
            let message = attribute(field, "message").map(str::to_owned);
            (!matches).then_some(RuleProblem::NoMatch(message))
        }
        _ => None,
    }
}
