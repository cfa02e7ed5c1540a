//! Vectors of a team: facts, and what its rules must answer about them. They travel inside the
//! component, in a custom section. A later version must pass those of the versions before it, or
//! name the ones that it changes.

use std::collections::BTreeSet;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wasm_encoder::{ComponentSection as _, CustomSection};
use wasmparser::{Parser, Payload};

use super::engine::thread_time;
use super::inspection::AdmissionReason;
use super::program::RulesProgram;
use crate::limits::Millis;
use holdfast_domain::component::Slot;

/// Custom section of a component that holds its vectors as JSON.
const SECTION: &str = "holdfast:vectors";
/// Vectors of a component, those of earlier versions included.
const MAX_VECTORS: usize = 2000;
/// Bytes of all vectors of a component, those of earlier versions included.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Processor time for all vectors of a candidate.
const MAX_TIME: Duration = Duration::from_secs(30);
/// Reasons in a refusal.
const MAX_REASONS: usize = 20;

/// Vectors as a team writes them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorFile {
    /// Parameters of every vector. A vector's own are merged into them (RFC 7396).
    #[serde(default)]
    given: Map<String, Value>,
    vectors: Vec<WrittenVector>,
    /// Vectors of earlier versions that no longer hold.
    #[serde(default)]
    changes: Vec<VectorChange>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenVector {
    name: String,
    /// Function of the slot's interface; its main one if absent.
    call: Option<String>,
    #[serde(default)]
    given: Map<String, Value>,
    expect: Value,
}

/// Vector with all its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RulesVector {
    pub name: String,
    /// Function of the slot's interface.
    pub call: String,
    /// Parameters by name.
    pub given: Map<String, Value>,
    /// The part of the answer that matters. The checks of an evaluation and the findings about a contract are named.
    pub expect: Value,
}

/// Vector of an earlier version that a version changes on purpose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VectorChange {
    pub vector: String,
    pub reason: String,
}

/// Vectors of a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "vectors": [{ "name": "Insurance is on file", "call": "evaluate", "given": { "facts": {} },
                  "expect": { "checks": { "Insurance on file": true } } }],
    "changes": [{ "vector": "Insurance may be missing", "reason": "Counsel, 2027-01-01" }],
}]))]
pub struct VectorSet {
    pub vectors: Vec<RulesVector>,
    /// Vectors of earlier versions that no longer hold.
    #[serde(default)]
    pub changes: BTreeSet<VectorChange>,
}

/// Result of one vector.
#[derive(Clone, Debug, Serialize)]
pub struct VectorResult {
    pub name: String,
    /// Differences between the answer and the expected one.
    pub wrong: Vec<String>,
}

impl VectorFile {
    /// Completes the vectors for a slot.
    ///
    /// # Errors
    /// The vector that is unusable, and why.
    pub fn complete(self, slot: Slot) -> Result<VectorSet, String> {
        let mut vectors = Vec::new();
        for vector in self.vectors {
            let call = vector
                .call
                .or_else(|| main_function(slot).map(str::to_owned));
            let call = call.ok_or_else(|| {
                format!(
                    "\"{}\": rules of {slot} have no main function: give `call`",
                    vector.name
                )
            })?;

            // The common facts come first, so a vector has to state only its difference.
            let mut given = Value::Object(self.given.clone());
            merge(&mut given, &Value::Object(vector.given));
            let Value::Object(mut given) = given else {
                continue;
            };
            if slot == Slot::Funding {
                list_contract(&mut given);
            }

            vectors.push(RulesVector {
                name: vector.name,
                call,
                given,
                expect: vector.expect,
            });
        }

        let set = VectorSet {
            vectors,
            changes: self.changes.into_iter().collect(),
        };
        set.check()?;

        Ok(set)
    }
}

/// Lists the facts and stipulations of a contract that were given by name, so that a vector states only those that differ.
fn list_contract(given: &mut Map<String, Value>) {
    let Some(contract) = given.get_mut("facts").and_then(Value::as_object_mut) else {
        return;
    };

    if let Some(Value::Object(facts)) = contract.get("facts") {
        let listed = facts.iter().map(|(name, fact)| {
            let mut listed = json!({
                "name": name, "status": "known", "origin": "printed", "words": fact["value"],
            });
            merge(&mut listed, fact);
            listed
        });
        let listed = listed.collect();
        contract.insert("facts".to_owned(), Value::Array(listed));
    }

    if let Some(Value::Object(stipulations)) = contract.get("stipulations") {
        let listed = stipulations
            .iter()
            .map(|(kind, state)| json!({ "kind": kind, "state": state }));
        let listed = listed.collect();
        contract.insert("stipulations".to_owned(), Value::Array(listed));
    }
}

/// Returns the function that most vectors of a slot are about.
fn main_function(slot: Slot) -> Option<&'static str> {
    match slot {
        Slot::Compliance => Some("evaluate"),
        Slot::Lifecycle => Some("envelope"),
        Slot::Control => Some("decide"),
        Slot::Funding => Some("check"),
        Slot::Placement => Some("place"),
        _ => None,
    }
}

/// Applies a merge patch (RFC 7396): null removes a member.
pub fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *value = patch.clone();
        return;
    };

    // RFC 7396, section 2: a patch that is an object replaces a value of any other type.
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }

    let Some(into) = value.as_object_mut() else {
        return;
    };

    for (name, patch) in members {
        match patch {
            Value::Null => {
                into.remove(name);
            }
            patch => merge(into.entry(name.as_str()).or_insert(Value::Null), patch),
        }
    }
}

impl VectorSet {
    /// Reads the vectors inside a component; an empty set if it has none.
    ///
    /// # Errors
    /// The section is too large or not understood.
    pub fn inside(component: &[u8]) -> Result<Self, String> {
        // Sections of nested modules belong to the tools of a language and not to the team.
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(component) {
            match payload.map_err(|error| error.to_string())? {
                Payload::CustomSection(section) if depth == 0 && section.name() == SECTION => {
                    return Self::of_section(section.data());
                }
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }

        Ok(Self::default())
    }

    /// Checks the number of the vectors, and their names.
    fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        // Later versions refer to a vector by its name.
        let twice = self
            .vectors
            .iter()
            .find(|one| !names.insert(one.name.as_str()));
        if let Some(twice) = twice {
            return Err(format!("there are two vectors \"{}\"", twice.name));
        }

        if self.vectors.len() > MAX_VECTORS {
            Err(format!("there are more than {MAX_VECTORS} vectors"))
        } else {
            Ok(())
        }
    }

    fn of_section(section: &[u8]) -> Result<Self, String> {
        // The component is not trusted yet, so the size is checked before anything is parsed.
        if section.len() > MAX_BYTES {
            return Err(format!("the vectors have more than {MAX_BYTES} bytes"));
        }
        let set: Self = serde_json::from_slice(section)
            .map_err(|error| format!("its section {SECTION} holds no vectors: {error}"))?;
        set.check()?;
        Ok(set)
    }

    /// Adds the vectors to a component without any.
    ///
    /// # Errors
    /// The component has vectors already, or these are too large.
    pub fn put_into(&self, component: &mut Vec<u8>) -> Result<(), String> {
        // Only the first section is read, so vectors in a second one would be lost without an error.
        if Self::inside(component)? != Self::default() {
            return Err("the component has vectors already".into());
        }

        let text = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        if text.len() > MAX_BYTES {
            return Err(format!("the vectors have more than {MAX_BYTES} bytes"));
        }

        let section = CustomSection {
            name: SECTION.into(),
            data: text.into(),
        };
        section.append_to_component(component);

        Ok(())
    }

    /// Asks rules each vector.
    pub fn results(&self, rules: &RulesProgram) -> Vec<VectorResult> {
        let vectors = self.vectors.iter();
        vectors.map(|vector| vector.result(rules)).collect()
    }

    /// Checks a candidate's vectors, and those of the version before it.
    ///
    /// # Errors
    /// The vectors that do not hold.
    pub fn admit(&self, rules: &RulesProgram, before: &Self) -> Result<(), Vec<AdmissionReason>> {
        let began = thread_time();
        let mut reasons = Vec::new();
        let own = self.vectors.iter().map(|vector| (vector, ""));

        let earlier = self.must_keep(before).map(|vector| {
            let advice = "; an earlier version has this vector: name it under `changes` if it no longer holds";
            (vector, advice)
        });
        for (vector, advice) in own.chain(earlier) {
            let used = thread_time().saturating_sub(began);
            if used > MAX_TIME {
                reasons.push(AdmissionReason::new("over_limit", out_of_time(used)));
                break;
            }

            let wrong = vector.result(rules).wrong;
            if !wrong.is_empty() && reasons.len() < MAX_REASONS {
                let what = format!("\"{}\": {}{advice}", vector.name, wrong.join(", "));
                reasons.push(AdmissionReason::new("vectors", what));
            }
        }

        // Vectors add up over versions, so the limit is for all of them together.
        let kept = self.kept(before);
        if kept.vectors.len() > MAX_VECTORS || kept.size() > MAX_BYTES {
            let what = format!(
                "with those of earlier versions it has more than {MAX_VECTORS} vectors or {MAX_BYTES} bytes of them"
            );
            reasons.push(AdmissionReason::new("over_limit", what));
        }

        if reasons.is_empty() {
            Ok(())
        } else {
            Err(reasons)
        }
    }

    /// Returns the size as JSON, in bytes.
    pub fn size(&self) -> usize {
        serde_json::to_vec(self).map_or(usize::MAX, |text| text.len())
    }

    /// Returns the changes that concern vectors of the version before, and were not made before.
    pub fn changed(&self, before: &Self) -> Vec<VectorChange> {
        let known: BTreeSet<&str> = before.vectors.iter().map(|one| one.name.as_str()).collect();
        let new = self.changes.difference(&before.changes);
        let concerned = new.filter(|change| known.contains(change.vector.as_str()));
        concerned.cloned().collect()
    }

    /// Returns these vectors with those of the version before that stay in force, and the changes of all
    /// versions.
    pub fn kept(&self, before: &Self) -> Self {
        let own: BTreeSet<&str> = self.vectors.iter().map(|one| one.name.as_str()).collect();
        let earlier = self.must_keep(before);
        // The earlier vector of an equal name was checked as well, so one of the two is enough.
        let earlier = earlier.filter(|vector| !own.contains(vector.name.as_str()));
        Self {
            vectors: self.vectors.iter().chain(earlier).cloned().collect(),
            changes: self.changes.union(&before.changes).cloned().collect(),
        }
    }

    /// Returns the vectors of the version before that this one does not change. A change that an earlier
    /// version named is used up.
    fn must_keep<'a>(&self, before: &'a Self) -> impl Iterator<Item = &'a RulesVector> {
        let changed = self.changed(before).into_iter();
        let changed: BTreeSet<String> = changed.map(|change| change.vector).collect();
        let earlier = before.vectors.iter();
        earlier.filter(move |vector| !changed.contains(&vector.name))
    }
}

/// Describes vectors that used up their time.
fn out_of_time(used: Duration) -> String {
    let (used, most) = (Millis(used), Millis(MAX_TIME));
    format!(
        "its vectors took {used} of processor time on this machine; all vectors of a component have {most}"
    )
}

impl RulesVector {
    fn result(&self, rules: &RulesProgram) -> VectorResult {
        let mut wrong = Vec::new();
        match rules.call(&self.call, &self.given) {
            Ok(answer) => compare("", &self.expect, &by_name(answer, &self.expect), &mut wrong),
            Err(error) => wrong.push(error),
        }

        VectorResult {
            name: self.name.clone(),
            wrong,
        }
    }
}

/// Turns the checks of an evaluation into an object by requirement, and findings into one by rule.
fn by_name(mut answer: Value, expected: &Value) -> Value {
    // By requirement, so that a new check does not shift the others.
    if let Some(checks) = answer.get_mut("checks")
        && let Some(list) = checks.as_array()
    {
        let named = list.iter().map(|check| {
            let requirement = check["requirement"].as_str().unwrap_or_default();
            (requirement.to_owned(), check.clone())
        });
        *checks = Value::Object(named.collect());
    }

    // A vector may also give the whole list.
    if expected["findings"].is_object()
        && let Some(findings) = answer.get_mut("findings")
        && let Some(list) = findings.as_array()
    {
        *findings = Value::Object(by_rule(list));
    }

    answer
}

/// Returns the severest finding of each rule, the first of several.
fn by_rule(findings: &[Value]) -> Map<String, Value> {
    let weight = |finding: &Value| match finding["severity"].as_str() {
        Some("stop") => 2,
        Some("warn") => 1,
        _ => 0,
    };

    let mut named = Map::new();
    for finding in findings {
        let rule = finding["rule"].as_str().unwrap_or_default();
        let is_severer = named
            .get(rule)
            .is_none_or(|known| weight(finding) > weight(known));
        if is_severer {
            named.insert(rule.to_owned(), finding.clone());
        }
    }

    named
}

/// Compares the members that are expected. A check may be expected by its outcome alone, a finding by its severity.
fn compare(path: &str, expected: &Value, answer: &Value, wrong: &mut Vec<String>) {
    match (expected, answer) {
        (Value::Object(members), Value::Object(answer)) => {
            // Other members may change: a vector is only about those that it names.
            for (name, expected) in members {
                let found = answer.get(name).unwrap_or(&Value::Null);
                compare(&format!("{path}/{name}"), expected, found, wrong);
            }
        }
        (Value::Bool(_), Value::Object(check)) if check.contains_key("satisfied") => {
            let satisfied = &check["satisfied"];
            if expected != satisfied {
                let detail = &check["detail"];
                wrong.push(format!(
                    "{path} is {satisfied} and not {expected}: {detail}"
                ));
            }
        }
        (Value::String(severity), Value::Object(finding)) if finding.contains_key("severity") => {
            let found = &finding["severity"];
            if found != severity {
                let sentence = &finding["sentence"];
                wrong.push(format!(
                    "{path} is {found} and not \"{severity}\": {sentence}"
                ));
            }
        }
        _ if expected == answer => {}
        _ => wrong.push(format!("{path} is {answer} and not {expected}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_that_take_too_long_are_told_their_processor_time() {
        assert_eq!(
            out_of_time(Duration::from_millis(30_100)),
            "its vectors took 30100 ms of processor time on this machine; all vectors of a component have 30000 ms"
        );
    }

    #[test]
    fn facts_of_a_contract_are_given_by_name() {
        let file = json!({
            "given": { "facts": {
                "facts": {
                    "apr": { "kind": "percentage", "value": "9.69" },
                    "vin": { "kind": "vin", "value": "1M8GDM9AXKP042788" },
                },
                "stipulations": { "insurance": "open" },
            } },
            "vectors": [{
                "name": "another rate",
                "given": { "facts": { "facts": {
                    "apr": { "value": "12.00", "origin": "declared" }, "vin": null,
                } } },
                "expect": {},
            }],
        });
        let file: VectorFile = serde_json::from_value(file).unwrap();
        let set = file.complete(Slot::Funding).unwrap();

        let given = &set.vectors[0].given["facts"];
        assert_eq!(
            given["facts"],
            json!([{
                "name": "apr", "kind": "percentage", "status": "known", "origin": "declared",
                "value": "12.00", "words": "12.00",
            }])
        );
        assert_eq!(
            given["stipulations"],
            json!([{ "kind": "insurance", "state": "open" }])
        );
    }

    #[test]
    fn a_finding_is_expected_by_its_rule_and_its_severity() {
        let answer = json!({ "decision": "refused", "findings": [
            { "rule": "credit.term", "severity": "stop", "sentence": "84 payments." },
            { "rule": "facts.missing", "severity": "note", "sentence": "No date." },
            { "rule": "facts.missing", "severity": "stop", "sentence": "No rate." },
        ] });
        let wrong = |expected: Value| {
            let mut wrong = Vec::new();
            let named = by_name(answer.clone(), &expected);
            compare("", &expected, &named, &mut wrong);
            wrong
        };

        let right = json!({ "credit.term": "stop", "facts.missing": "stop", "box.apr": null });
        assert!(wrong(json!({ "findings": right })).is_empty());
        assert!(
            wrong(json!({ "findings": { "credit.term": { "sentence": "84 payments." } } }))
                .is_empty()
        );
        assert_eq!(
            wrong(json!({ "findings": { "credit.term": "warn" } })),
            ["/findings/credit.term is \"stop\" and not \"warn\": \"84 payments.\""]
        );
        assert_eq!(
            wrong(json!({ "findings": { "box.apr": "stop" } })),
            ["/findings/box.apr is null and not \"stop\""]
        );
        // The whole list, as before.
        assert!(wrong(json!({ "findings": answer["findings"] })).is_empty());
        assert_eq!(wrong(json!({ "findings": [] })).len(), 1);
    }
}
