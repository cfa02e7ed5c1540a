//! The rules of a document, read once.

use super::attribute;
use super::condition::Condition;
use super::formula::Formula;
use crate::RuledField;

/// Maximum number of rules that depend on each other in a row.
pub(super) const LONGEST_CHAIN: usize = 64;

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

    /// Returns the fields with rules that depend on themselves, and those at the end of a longer chain of
    /// rules than [`LONGEST_CHAIN`].
    pub(super) fn tangled(&self) -> (Vec<usize>, Vec<usize>) {
        let needs: Vec<Vec<usize>> = (0..self.fields.len())
            .map(|index| self.needs(index))
            .collect();
        let mut users = vec![Vec::new(); needs.len()];
        for (index, needed) in needs.iter().enumerate() {
            for needed in needed {
                users[*needed].push(index);
            }
        }

        // Fields that depend on nothing go first, then those that depend on these only, and so on.
        // Each remaining field is part of a circle, or depends on one.
        let (depths, remaining) = peeled(&needs, &users, vec![true; needs.len()]);
        let (_, circles) = peeled(&users, &needs, remaining);
        let all = 0..needs.len();
        let long = all.clone().filter(|index| depths[*index] > LONGEST_CHAIN);
        let long = long.collect();

        (all.filter(|index| circles[*index]).collect(), long)
    }
}

/// Takes away fields that need nothing that is still there. Returns how many steps each one took, and
/// which ones remain.
fn peeled(
    needs: &[Vec<usize>],
    users: &[Vec<usize>],
    mut there: Vec<bool>,
) -> (Vec<usize>, Vec<bool>) {
    let is_there = |needed: &&usize, there: &[bool]| there[**needed];
    // With a count for each field, the time grows with the number of rules and not with its square.
    let mut missing: Vec<usize> = needs
        .iter()
        .map(|needed| {
            needed
                .iter()
                .filter(|needed| is_there(needed, &there))
                .count()
        })
        .collect();

    let mut depths = vec![0; needs.len()];
    let mut open: Vec<usize> = (0..needs.len())
        .filter(|index| there[*index] && missing[*index] == 0)
        .collect();
    while let Some(index) = open.pop() {
        there[index] = false;
        for user in &users[index] {
            depths[*user] = depths[*user].max(depths[index] + 1);
            missing[*user] -= 1;
            if missing[*user] == 0 && there[*user] {
                open.push(*user);
            }
        }
    }

    (depths, there)
}
