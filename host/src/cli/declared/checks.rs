//! Declared rules of slot `rules.compliance`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use holdfast_compliance_calendar::{laws, write_laws};
use holdfast_conditions::{Expression, write};
use holdfast_declared::types::{EnvelopeFacts, EnvelopeStatus};
use holdfast_declared::{
    AddedCheck, ChangedCheck, DeclaredRules, VARIABLES, conditions, evaluate_with, set_check,
};
use jiff::civil::Date;
use serde::Deserialize;
use serde_json::json;

use super::expressions::{Vocabulary, is_condition, tried_in_time, values};
use super::{BuiltRules, template};
use crate::cli::Failure;
use holdfast_components::RulesBase;
use holdfast_domain::component::Slot;
use holdfast_domain::jurisdiction::Jurisdiction;

/// Facts of a record, without functions of their own.
const VOCABULARY: Vocabulary = Vocabulary {
    names: &VARIABLES,
    functions: &[],
};

/// Declared rules as a team writes them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    /// Slot of the rules; `build` has chosen by it.
    #[serde(default, rename = "slot")]
    _slot: Option<Slot>,
    /// Built-in pack that the rules begin with.
    #[serde(default)]
    base: WrittenBase,
    /// File with the table of the laws, beside this one, for the base `calendar`.
    laws: Option<PathBuf>,
    /// File with the team's vectors, beside this one.
    vectors: Option<PathBuf>,
    #[serde(default)]
    change: Vec<WrittenChange>,
    #[serde(default)]
    check: Vec<WrittenCheck>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WrittenBase {
    #[default]
    Specification,
    Ucc2022,
    /// Both, by jurisdiction and date.
    Calendar,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenChange {
    requirement: String,
    reference: Option<String>,
    statute_reference: Option<String>,
    also_when: Option<String>,
    satisfied: Option<String>,
    unsatisfied: Option<String>,
    weight: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCheck {
    requirement: String,
    reference: String,
    statute_reference: Option<String>,
    satisfied_when: String,
    satisfied: String,
    unsatisfied: String,
    weight: Option<u32>,
}

/// Largest weight of a check.
const HEAVIEST: u32 = 1000;

/// Puts compliance rules of a file into a component.
///
/// # Errors
/// The check and the member that cannot be used.
pub(super) fn build(text: &str, beside: &Path) -> Result<BuiltRules, Failure> {
    let file: RulesFile = toml::from_str(text)?;
    let base = match file.base {
        WrittenBase::Specification => RulesBase::Specification,
        WrittenBase::Ucc2022 => RulesBase::Ucc2022,
        WrittenBase::Calendar => RulesBase::Calendar,
    };
    let mut component = template(base)?;

    let mut rules = DeclaredRules::default();
    let mut laws = 0;
    if base == RulesBase::Calendar {
        // The calendar only chooses between two packs, so checks of its own would belong to neither.
        let table = file
            .laws
            .as_ref()
            .filter(|_| file.change.is_empty() && file.check.is_empty());
        let table = table
            .ok_or("the base `calendar` needs `laws`, and has no changes or checks of its own")?;
        let table = beside.join(table);
        let text =
            fs::read_to_string(&table).map_err(|error| format!("{}: {error}", table.display()))?;

        let unusable = |why: String| Failure::from(format!("{}: {why}", table.display()));
        laws = checked_laws(&text).map_err(unusable)?;
        write_laws(&mut component, text.as_bytes()).map_err(unusable)?;
    } else {
        if file.laws.is_some() {
            return Err("`laws` are for the base `calendar`".into());
        }

        let pack = match base {
            RulesBase::Ucc2022 => holdfast_declared_ucc2022::requirements(),
            _ => holdfast_declared::requirements(),
        };
        rules = declared(&file, &pack)?;
        write(&mut component, &rules)?;
    }

    Ok(BuiltRules {
        component,
        vectors: file.vectors,
        text: format!(
            "checks: {} new, {} changed; laws: {laws}",
            rules.checks.len(),
            rules.changes.len()
        ),
        counts: json!({
            "checks": rules.checks.len(), "changes": rules.changes.len(), "laws": laws,
        }),
    })
}

/// Checks a table of laws. Returns the number of its rows.
fn checked_laws(table: &str) -> Result<usize, String> {
    let laws = laws(table)?;
    let mut seen = BTreeSet::new();
    for law in &laws {
        let about = |what: &str| format!("{}: {what}", law.jurisdiction);
        Jurisdiction::try_from(law.jurisdiction.to_owned())?;
        if !seen.insert(law.jurisdiction) {
            return Err(about("it is in the table twice"));
        }

        // The component compares dates as texts, which is right for this form only.
        for date in [law.effective_date().unwrap_or_default(), law.adjustment] {
            let is_date = date.len() == 10 && date.parse::<Date>().is_ok();
            if !date.is_empty() && !is_date {
                return Err(about(&format!("{date} is no date; write it as 2026-06-03")));
            }
        }

        if !law.adjustment.is_empty() && law.adjustment < law.effective {
            return Err(about("the adjustment date is before the effective date"));
        }
    }

    match laws.len() {
        0 => Err("the table has no rows".into()),
        rows => Ok(rows),
    }
}

fn declared(file: &RulesFile, pack: &[&str]) -> Result<DeclaredRules, String> {
    let mut named: Vec<&str> = Vec::new();
    let mut changes = Vec::new();
    for change in &file.change {
        let name = change.requirement.as_str();
        let about = |what: &str| format!("change of \"{name}\": {what}");
        if !pack.contains(&name) {
            let known = pack.join("\", \"");
            return Err(about(&format!(
                "the pack has no such check; it has \"{known}\""
            )));
        }
        if named.contains(&name) {
            return Err(about("it is changed twice"));
        }

        // The pack's own sentence explains its own failure. It would be wrong about a further condition.
        if change.also_when.is_some() && change.unsatisfied.is_none() {
            return Err(about(
                "with `also_when` it needs `unsatisfied`, the sentence if the condition does not hold",
            ));
        }

        named.push(name);
        let expression = |what, text: &Option<String>| {
            let parsed = text
                .as_deref()
                .map(|text| VOCABULARY.parse(text))
                .transpose();
            parsed.map_err(|why| about(&format!("{what}: {why}")))
        };
        let sentence = |what, text: &Option<String>| {
            let parts = text
                .as_deref()
                .map(|text| VOCABULARY.sentence(text))
                .transpose();
            parts.map_err(|why| about(&format!("{what}: {why}")))
        };

        changes.push(ChangedCheck {
            requirement: name.to_owned(),
            reference: change.reference.clone(),
            statute_reference: change.statute_reference.clone(),
            also_when: expression("also_when", &change.also_when)?,
            satisfied: sentence("satisfied", &change.satisfied)?,
            unsatisfied: sentence("unsatisfied", &change.unsatisfied)?,
            weight: change
                .weight
                .map(|one| weight(one).map_err(|why| about(&why)))
                .transpose()?,
        });
    }

    let mut checks = Vec::new();
    for check in &file.check {
        let name = check.requirement.as_str();
        let about = |what: &str| format!("check \"{name}\": {what}");
        if name.trim().is_empty() || check.reference.trim().is_empty() {
            return Err(about("it needs a name and a reference"));
        }
        // Answers and vectors name a check by its requirement alone.
        if named.contains(&name) || pack.contains(&name) {
            return Err(about("there is another check of that name"));
        }

        named.push(name);
        let told = |what: &str, why: String| about(&format!("{what}: {why}"));
        checks.push(AddedCheck {
            requirement: name.to_owned(),
            reference: check.reference.clone(),
            statute_reference: check.statute_reference.clone(),
            satisfied_when: VOCABULARY
                .parse(&check.satisfied_when)
                .map_err(|why| told("satisfied_when", why))?,
            satisfied: VOCABULARY
                .sentence(&check.satisfied)
                .map_err(|why| told("satisfied", why))?,
            unsatisfied: VOCABULARY
                .sentence(&check.unsatisfied)
                .map_err(|why| told("unsatisfied", why))?,
            weight: weight(check.weight.unwrap_or(1)).map_err(|why| about(&why))?,
        });
    }

    // After parsing, because only the parsed expressions show which names they use.
    for check in &checks {
        let sentences = check.satisfied.iter().chain(&check.unsatisfied);
        let expressions: Vec<&Expression> =
            values(sentences).chain([&check.satisfied_when]).collect();
        only_facts(&check.requirement, &expressions)?;
    }

    let rules = DeclaredRules { changes, checks };
    let trial = rules.clone();
    tried_in_time(move || tried(&trial))?;
    Ok(rules)
}

fn weight(weight: u32) -> Result<u32, String> {
    if (1..=HEAVIEST).contains(&weight) {
        Ok(weight)
    } else {
        Err(format!("weight: 1 to {HEAVIEST}"))
    }
}

/// Names that changes of a check have besides the facts.
const OF_CHANGES: [&str; 2] = ["satisfied", "detail"];

/// Refuses names of the pack's result in a check that has none.
fn only_facts(name: &str, expressions: &[&Expression]) -> Result<(), String> {
    let mut names = Vec::new();
    for expression in expressions {
        expression.uses(&mut Vec::new(), &mut names, &mut Vec::new());
    }

    match names.into_iter().find(|name| OF_CHANGES.contains(name)) {
        Some(unknown) => Err(format!(
            "check \"{name}\": {unknown} is the result of the pack, and this check is not of the pack"
        )),
        None => Ok(()),
    }
}

/// Evaluates the rules on an empty record, and its conditions for types that never fit.
fn tried(rules: &DeclaredRules) -> Result<(), String> {
    let facts = EnvelopeFacts {
        envelope_id: "env_1".into(),
        envelope_name: "Contract".into(),
        customer_id: "cust_1".into(),
        status: EnvelopeStatus::Pending,
        vault_file_path: None,
        document_hash: None,
        copy_file_path: None,
        vault_out_certificate_path: None,
        secured_party: None,
        submitters: Vec::new(),
        signed_documents: Vec::new(),
        custodians: Vec::new(),
        identity_verifications: Vec::new(),
        attributes: Vec::new(),
    };

    // The answer about an empty record means nothing. The caller only measures that it comes.
    let _ = evaluate_with(rules, &facts);
    let mut conditions = conditions(&facts);
    set_check(&mut conditions, true, "");
    let changed = rules.changes.iter();
    let changed =
        changed.filter_map(|change| Some((&change.requirement, change.also_when.as_ref()?)));
    let added = rules.checks.iter();

    let added = added.map(|check| (&check.requirement, &check.satisfied_when));
    for (name, condition) in changed.chain(added) {
        is_condition(&conditions, name, condition)?;
    }

    Ok(())
}
