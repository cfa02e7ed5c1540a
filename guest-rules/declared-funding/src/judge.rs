//! The check: the findings of the built-in rules with their changes, then those of the declared rules.

use holdfast_conditions::Conditions;

use crate::contract_facts::{conditions, set_finding};
use crate::declared_rules::{AddedRule, ChangedRule, DeclaredRules};
use crate::rules::{Fault, JudgedFinding, assessment, findings};
use crate::types::{Assessment, Finding, FundingFacts, Severity};

/// Checks a contract by the rules inside this component.
pub fn check(facts: &FundingFacts) -> Assessment {
    check_with(&holdfast_conditions::read(), facts)
}

/// Checks a contract by declared rules.
pub fn check_with(rules: &DeclaredRules, facts: &FundingFacts) -> Assessment {
    let mut conditions = conditions(facts);
    let mut all = findings(facts);
    for judged in &mut all {
        let mut changes = rules.changes.iter();
        let change = changes.find(|change| change.rule == judged.finding.rule);
        if let Some(change) = change {
            set_finding(&mut conditions, Some(&judged.finding));
            apply(&conditions, change, &mut judged.finding);
        }
    }

    // A built-in rule has no text about a rule of the organization. That of the last finding must not stay.
    set_finding(&mut conditions, None);
    let declared = rules.rules.iter();
    all.extend(declared.filter_map(|rule| judge(&conditions, rule, facts)));

    assessment(all)
}

/// Changes a finding of a built-in rule.
fn apply(conditions: &Conditions, change: &ChangedRule, finding: &mut Finding) {
    let severity = change.severity.unwrap_or(finding.severity);
    let applies = change
        .applies_when
        .as_ref()
        .map(|when| conditions.hold(when));
    // A missing fact must not make a finding weaker.
    let applies = match applies {
        None => true,
        Some(Ok(applies)) => applies,
        Some(Err(_)) => weight(severity) > weight(finding.severity),
    };
    if !applies {
        return;
    }

    finding.severity = severity;
    if let Some(sentence) = &change.sentence {
        finding.sentence = conditions.sentence(sentence);
    }
    if let Some(source) = &change.source {
        finding.source.clone_from(source);
    }
}

fn weight(severity: Severity) -> u8 {
    match severity {
        Severity::Note => 0,
        Severity::Warn => 1,
        Severity::Stop => 2,
    }
}

/// Returns the finding of a declared rule; none if its condition holds, or if it is not about this contract.
fn judge(conditions: &Conditions, rule: &AddedRule, facts: &FundingFacts) -> Option<JudgedFinding> {
    // A rule whose contracts cannot be told is about this one: otherwise a missing fact would end it.
    let applies = rule.applies_when.as_ref().map(|when| conditions.hold(when));
    if applies == Some(Ok(false)) {
        return None;
    }

    let holds = conditions.hold(&rule.holds_when);
    if holds == Ok(true) {
        return None;
    }

    // A condition without its facts says that something is missing, not that something is wrong.
    let problem = holds.err();
    let sentence = conditions.sentence(&rule.sentence);
    let actual = match &rule.actual {
        Some(parts) => conditions.sentence(parts),
        None => values(rule, facts),
    };
    let finding = Finding {
        rule: rule.rule.clone(),
        severity: rule.severity,
        facts: rule.facts.clone(),
        expected: conditions.sentence(&rule.expected),
        actual,
        sentence: match &problem {
            None => sentence,
            Some(why) => format!("{sentence} The condition cannot be evaluated: {why}."),
        },
        source: rule.source.clone(),
    };

    Some(JudgedFinding {
        finding,
        fault: if problem.is_some() || rule.is_gap {
            Fault::Gap
        } else {
            Fault::Error
        },
    })
}

/// Returns the values of a rule's facts.
fn values(rule: &AddedRule, facts: &FundingFacts) -> String {
    let values = rule.facts.iter().map(|name| {
        let fact = facts.facts.iter().find(|fact| fact.name == *name);
        fact.and_then(|fact| fact.value.as_deref())
            .unwrap_or("missing")
    });
    values.collect::<Vec<_>>().join(", ")
}
