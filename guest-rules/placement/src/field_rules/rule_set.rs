//! The rules of a document, read once.

use super::attribute;
use super::condition::Condition;
use super::formula::Formula;
use crate::RuledField;

/// Fields with their rules. Rules that cannot be read are left out.
pub(super) struct RuleSet<'a> {
    pub(super) fields: &'a [RuledField],
    pub(super) conditions: Vec<Option<Condition>>,
    pub(super) formulas: Vec<Option<Formula>>,
}

impl<'a> RuleSet<'a> {
    pub(super) fn new(fields: &'a [RuledField]) -> Self {
        let condition =
            |field: &RuledField| Condition::parse(attribute(field, "condition")?, fields);
        let formula = |field: &RuledField| {
            let is_number = field.field_type == "number";
            let text = attribute(field, "formula").filter(|_| is_number)?;
            Formula::parse(text).ok()
        };
        Self {
            fields,
            conditions: fields.iter().map(condition).collect(),
            formulas: fields.iter().map(formula).collect(),
        }
    }

    /// Returns the field that a rule of `from` means: the one of the same signer, or the first one.
    pub(super) fn named(&self, name: &str, from: usize) -> Option<usize> {
        let role = &self.fields[from].role;
        let all = self.fields.iter().enumerate();
        let mut named = all.filter(|(_, field)| field.name == name);
        let first = named.clone().next();
        let own = named.find(|(_, field)| field.role == *role);
        own.or(first).map(|(index, _)| index)
    }

    /// Fields on which the answer of a field depends.
    fn needs(&self, index: usize) -> Vec<usize> {
        let condition = self.conditions[index].iter();
        let condition = condition.map(|condition| condition.field.as_str());
        let formula = self.formulas[index].iter().flat_map(Formula::fields);
        let names = condition.chain(formula);
        names.filter_map(|name| self.named(name, index)).collect()
    }

    /// Returns whether the rules of a field lead back to it.
    pub(super) fn leads_back(&self, index: usize) -> bool {
        let mut seen = vec![false; self.fields.len()];
        let mut open = self.needs(index);
        while let Some(next) = open.pop() {
            if next == index {
                return true;
            }
            if !std::mem::replace(&mut seen[next], true) {
                open.extend(self.needs(next));
            }
        }
        false
    }
}
