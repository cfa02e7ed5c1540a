//! Comparison of other compliance rules with a built-in pack, the baseline.
//!
//! Rules of an organization or an operator may be stricter than the specification and never
//! looser. Published test vectors cannot ensure that, because rules can be written to recognize
//! them. Therefore every evaluation is compared with the built-in pack of the same family, and a
//! check passes only if it passes in both.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::artifact::{NativeCodeCache, built_in};
use super::engine::EngineSet;
use super::error::ComponentError;
use super::released::released_packs;
use super::rules::{self, CompliancePre, compliance};
use super::slot::{self, ActiveComponent, Deferred};
use holdfast_domain::component::{ComponentIdentity, Slot};

/// Result of one component for a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RulesOpinion {
    pub component: ComponentIdentity,
    pub compliant: bool,
    pub score: u32,
    pub missing_requirements: Vec<String>,
}

impl RulesOpinion {
    pub fn new(component: &ComponentIdentity, evaluation: &compliance::Evaluation) -> Self {
        Self {
            component: component.clone(),
            compliant: evaluation.compliant,
            score: evaluation.score,
            missing_requirements: evaluation.missing_requirements.clone(),
        }
    }
}

/// The built-in compliance packs.
#[derive(Clone)]
pub struct BaselineRules {
    /// Pack of the specification.
    default: Deferred<CompliancePre>,
    /// Packs of other families, loaded lazily.
    others: Vec<Deferred<CompliancePre>>,
    /// SHA-256 of each pack.
    digests: Vec<String>,
    /// Packs of earlier releases by their SHA-256, to repeat comparisons of then. Loaded lazily.
    released: HashMap<String, Deferred<CompliancePre>>,
}

impl BaselineRules {
    /// Creates the packs. `default` is the default component of the slot.
    pub fn new(
        engines: &EngineSet,
        cache: &NativeCodeCache,
        default: Deferred<CompliancePre>,
    ) -> Self {
        let packs = || built_in().filter(|artifact| artifact.slot == Slot::Compliance);
        let others = packs().skip(1);
        Self {
            default,
            others: others
                .map(|artifact| slot::deferred(engines, cache, Some(artifact)))
                .collect(),
            digests: packs().map(|artifact| artifact.identity.sha256).collect(),
            released: released_packs()
                .map(|artifact| {
                    let digest = artifact.identity.sha256.clone();
                    (digest, slot::deferred(engines, cache, Some(artifact)))
                })
                .collect(),
        }
    }

    /// Returns the pack of an earlier release with this SHA-256.
    pub fn released(&self, sha256: &str) -> Option<&Deferred<CompliancePre>> {
        self.released.get(sha256)
    }

    /// Whether a component is one of the packs, and so needs no comparison.
    pub fn has(&self, sha256: &str) -> bool {
        self.digests.iter().any(|digest| digest == sha256)
    }

    /// Returns the pack that shares most requirements with an evaluation, and the pack's own
    /// evaluation of the same facts.
    pub fn of_family(
        &self,
        own: &compliance::Evaluation,
        facts: &compliance::EnvelopeFacts,
    ) -> Result<(&ActiveComponent<CompliancePre>, compliance::Evaluation), ComponentError> {
        let shared = |evaluation: &compliance::Evaluation| {
            let named = |check: &&compliance::Check| {
                let mut own = own.checks.iter();
                own.any(|own| own.requirement == check.requirement)
            };
            evaluation.checks.iter().filter(named).count()
        };

        // Most rules are of the family of the default, so it is asked first and often alone.
        let mut best = asked(&self.default, facts)?;
        for pack in &self.others {
            // All requirements of the default are shared: this is its family.
            if shared(&best.1) == best.1.checks.len() {
                break;
            }

            let other = asked(pack, facts)?;
            if shared(&other.1) > shared(&best.1) {
                best = other;
            }
        }

        Ok(best)
    }
}

/// Returns a pack with its evaluation of the facts.
pub fn asked<'a>(
    pack: &'a Deferred<CompliancePre>,
    facts: &compliance::EnvelopeFacts,
) -> Result<(&'a ActiveComponent<CompliancePre>, compliance::Evaluation), ComponentError> {
    let pack = (**pack).as_ref().map_err(ComponentError::again)?;
    Ok((pack, rules::evaluate(pack, facts)?))
}

/// Intersects two evaluations: a check passes only if it passes in both.
pub fn intersection(
    own: &compliance::Evaluation,
    baseline: &compliance::Evaluation,
) -> compliance::Evaluation {
    let failed: BTreeMap<&str, &compliance::Check> = baseline
        .checks
        .iter()
        .filter(|check| !check.satisfied)
        .map(|check| (check.requirement.as_str(), check))
        .collect();
    let mut checks: Vec<compliance::Check> = own
        .checks
        .iter()
        .map(|check| match failed.get(check.requirement.as_str()) {
            Some(failed) if check.satisfied => compliance::Check {
                satisfied: false,
                detail: failed.detail.clone(),
                ..check.clone()
            },
            _ => check.clone(),
        })
        .collect();

    // A check that the rules left out still fails, or leaving it out would make them looser.
    let unnamed = failed.into_values().filter(|failed| {
        let mut checks = own.checks.iter();
        !checks.any(|check| check.requirement == failed.requirement)
    });
    checks.extend(unnamed.cloned());
    let missing_requirements: Vec<String> = checks
        .iter()
        .filter(|check| !check.satisfied)
        .map(|check| check.requirement.clone())
        .collect();
    let compliant = own.compliant && baseline.compliant && missing_requirements.is_empty();

    let total = checks.len().max(1);
    let passed = checks.len() - missing_requirements.len();
    let share = u32::try_from((passed * 100 + total / 2) / total).unwrap_or_default();

    // If every check stays as the rules have it, their own weights count.
    let share = if checks == own.checks {
        own.score
    } else {
        share
    };
    let score = share.min(own.score).min(baseline.score);

    compliance::Evaluation {
        compliant,
        // Only a compliant record can have the score 100.
        score: if compliant { score } else { score.min(99) },
        missing_requirements,
        checks,
    }
}

/// Attribute of the facts: who the rules belong to. With it, the certificate has the checks of those rules
/// in a section of their own.
const OWNER: &str = "rules_owner";

/// Writes the certificate of other rules. The section of the statute has the checks of the built-in pack
/// with the pack's own sentences, and a check passes there only if the other rules accept it as well. What
/// the other rules add or change stands in `organization_checks` with the name of their owner, outside the
/// count of the statute. `evaluations` has both results; a record is compliant only by both.
///
/// Facts of earlier releases name no owner: their certificates mix both ([`merged`]).
///
/// `None` if one of the certificates is no JSON object.
pub fn certificate(
    facts: &compliance::EnvelopeFacts,
    texts: (&str, &str),
    evaluations: (&compliance::Evaluation, &compliance::Evaluation),
    both: &compliance::Evaluation,
    opinions: &[RulesOpinion],
) -> Option<String> {
    let (own, baseline) = texts;
    let mut owners = facts.attributes.iter();
    let Some((_, owner)) = owners.find(|(name, _)| name == OWNER) else {
        return merged(own, baseline, both, opinions);
    };

    let mut certificate: Map<String, Value> = serde_json::from_str(own).ok()?;
    let of_pack: Map<String, Value> = serde_json::from_str(baseline).ok()?;
    let (own, pack) = evaluations;

    let mut statute = of_pack.get("ucc_9105_compliance")?.clone();
    let checks = statute["checks"].as_array_mut()?;
    let mut passed = 0;
    for check in checks.iter_mut() {
        let mut same = own.checks.iter();
        let same = same.find(|own| check["requirement"] == own.requirement.as_str());
        if check["satisfied"] == true && same.is_some_and(|same| !same.satisfied) {
            let pack = check["detail"].as_str().unwrap_or_default();
            check["detail"] = format!("{pack} The rules of {owner} ask for more.").into();
            check["satisfied"] = false.into();
        }

        passed += usize::from(check["satisfied"] == true);
    }

    let total = checks.len().max(1);
    statute["compliant"] = (passed == total).into();
    statute["score"] = ((passed * 100 + total / 2) / total).into();
    certificate.insert("ucc_9105_compliance".into(), statute);

    // Other rules do not decide which statute was tested, and how.
    for member in ["certificate_type", "esign_act_compliance", "legal_notices"] {
        if let Some(stated) = of_pack.get(member) {
            certificate.insert(member.into(), stated.clone());
        }
    }

    let added = own
        .checks
        .iter()
        .filter(|check| !pack.checks.contains(check));
    let added: Vec<Value> = added
        .map(|check| {
            json!({
                "requirement": check.requirement, "reference": check.ucc_reference,
                "satisfied": check.satisfied, "detail": check.detail,
            })
        })
        .collect();
    // Checks of the organization stand apart, so a reader cannot take its policy for the statute.
    let section = json!({
        "owner": owner, "component": opinions.first().map(|opinion| &opinion.component),
        "compliant": own.compliant, "score": own.score, "checks": added,
    });
    certificate.insert("organization_checks".into(), section);

    certificate.insert("evaluations".into(), json!(opinions));
    Some(format!("{:#}\n", Value::Object(certificate)))
}

/// Adds both results to the certificate of other rules, and sets compliance to the intersection, as
/// releases did that knew no owner of rules. `None` if one of the certificates is no JSON object.
fn merged(
    own: &str,
    baseline: &str,
    both: &compliance::Evaluation,
    opinions: &[RulesOpinion],
) -> Option<String> {
    // Old evidence is re-evaluated byte by byte, so this form must stay as it was.
    let mut certificate: Map<String, Value> = serde_json::from_str(own).ok()?;
    let baseline: Map<String, Value> = serde_json::from_str(baseline).ok()?;
    let stated = object(&mut certificate, "ucc_9105_compliance");
    stated.insert("compliant".into(), both.compliant.into());
    stated.insert("score".into(), both.score.into());
    let checks = stated.entry("checks").or_insert_with(|| json!([]));
    if !checks.is_array() {
        *checks = json!([]);
    }

    let checks = checks.as_array_mut()?;
    for check in &both.checks {
        let known = checks
            .iter_mut()
            .find(|known| known["requirement"] == check.requirement);
        match known {
            Some(known) => {
                known["satisfied"] = check.satisfied.into();
                known["detail"] = check.detail.as_str().into();
            }
            None => checks.push(json!({
                "requirement": check.requirement, "ucc_reference": check.ucc_reference,
                "satisfied": check.satisfied, "detail": check.detail,
            })),
        }
    }

    let esign = "esign_act_compliance";
    let executed = baseline.get(esign).map(|stated| &stated["compliant"]);
    if executed != Some(&Value::Bool(true)) {
        object(&mut certificate, esign).insert("compliant".into(), false.into());
    }

    certificate.insert("evaluations".into(), json!(opinions));
    Some(format!("{:#}\n", Value::Object(certificate)))
}

/// Returns the member object with this name. Creates it, or replaces a value of another type.
fn object<'a>(members: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let member = members.entry(name).or_insert(Value::Null);
    if !member.is_object() {
        *member = json!({});
    }
    match member {
        Value::Object(object) => object,
        _ => unreachable!("it was made an object"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluation(checks: &[(&str, bool)]) -> compliance::Evaluation {
        let missing = checks.iter().filter(|(_, satisfied)| !satisfied);
        let missing: Vec<String> = missing.map(|(name, _)| (*name).to_owned()).collect();
        let compliant = missing.is_empty();
        compliance::Evaluation {
            compliant,
            score: if compliant { 100 } else { 50 },
            missing_requirements: missing,
            checks: checks
                .iter()
                .map(|(requirement, satisfied)| compliance::Check {
                    requirement: (*requirement).into(),
                    ucc_reference: "UCC".into(),
                    satisfied: *satisfied,
                    detail: format!("{requirement} is {satisfied}"),
                })
                .collect(),
        }
    }

    #[test]
    fn weights_of_the_rules_count_if_no_check_is_overruled() {
        let mut own = evaluation(&[("hash", true), ("own", false)]);
        own.score = 90;
        let both = intersection(&own, &evaluation(&[("hash", true)]));
        assert_eq!((both.compliant, both.score), (false, 90));
        let overruled = intersection(&own, &evaluation(&[("hash", false)]));
        assert_eq!(overruled.score, 0);
    }

    #[test]
    fn a_check_passes_only_if_both_packs_pass_it() {
        let own = evaluation(&[("hash", true), ("own", true)]);
        let baseline = evaluation(&[("hash", false), ("party", false), ("copy", true)]);
        let both = intersection(&own, &baseline);
        assert!(!both.compliant);
        assert_eq!(both.missing_requirements, ["hash", "party"]);
        assert_eq!(both.score, 33);
        assert_eq!(both.checks[0].detail, "hash is false");

        let stricter = evaluation(&[("hash", true), ("own", false)]);
        let both = intersection(&stricter, &evaluation(&[("hash", true)]));
        assert_eq!(both.missing_requirements, ["own"]);
        assert_eq!(both, stricter);
    }

    #[test]
    fn an_evaluation_without_checks_is_not_compliant() {
        let mut own = evaluation(&[]);
        own.compliant = true;
        let both = intersection(&own, &evaluation(&[("hash", false)]));
        assert!(!both.compliant);
        assert_eq!((both.score, both.missing_requirements.len()), (0, 1));
    }

    #[test]
    fn a_certificate_states_only_results_of_both_packs() {
        let own = r#"{"z":1,"ucc_9105_compliance":{"compliant":true,"score":100,"checks":[
            {"requirement":"hash","satisfied":true,"detail":"fine","statute_reference":"x"}]},
            "esign_act_compliance":{"compliant":true},"a":2}"#;
        let baseline = r#"{"esign_act_compliance":{"compliant":false}}"#;
        let both = evaluation(&[("hash", false), ("party", false)]);
        let text = merged(own, baseline, &both, &[]).unwrap();
        let stated: Value = serde_json::from_str(&text).unwrap();
        let names: Vec<&String> = stated.as_object().unwrap().keys().collect();
        assert_eq!(
            names,
            [
                "z",
                "ucc_9105_compliance",
                "esign_act_compliance",
                "a",
                "evaluations"
            ]
        );

        let checks = &stated["ucc_9105_compliance"]["checks"];
        assert_eq!(checks[0]["satisfied"], false);
        assert_eq!(checks[0]["statute_reference"], "x");
        assert_eq!(checks[1]["requirement"], "party");
        assert_eq!(stated["ucc_9105_compliance"]["compliant"], false);
        assert_eq!(stated["esign_act_compliance"]["compliant"], false);
    }

    #[test]
    fn malformed_certificate_statements_are_replaced() {
        let own = r#"{"ucc_9105_compliance":"all well","esign_act_compliance":[]}"#;
        let both = evaluation(&[("hash", false)]);
        let text = merged(own, "{}", &both, &[]).unwrap();
        let stated: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(stated["ucc_9105_compliance"]["compliant"], false);
        assert_eq!(stated["esign_act_compliance"]["compliant"], false);
        assert_eq!(merged("[]", "{}", &both, &[]), None);
    }

    /// "The State of Delaware has registered this as the only original" is the organization's word.
    #[test]
    fn an_organizations_own_words_stand_outside_the_section_of_the_statute() {
        let facts = compliance::EnvelopeFacts {
            envelope_id: "env_1".into(),
            envelope_name: String::new(),
            customer_id: String::new(),
            status: compliance::EnvelopeStatus::Vaulted,
            vault_file_path: None,
            document_hash: None,
            copy_file_path: None,
            vault_out_certificate_path: None,
            secured_party: None,
            submitters: Vec::new(),
            signed_documents: Vec::new(),
            custodians: Vec::new(),
            identity_verifications: Vec::new(),
            attributes: vec![(OWNER.into(), "Maple Motors".into())],
        };

        let pack = evaluation(&[("hash", true), ("copy", true)]);
        let mut own = evaluation(&[("hash", true), ("copy", false), ("registered", true)]);
        own.checks[0].detail = "The State of Delaware has registered this.".into();
        let both = intersection(&own, &pack);
        let of_own = r#"{"ucc_9105_compliance":{"checks":[]},"legal_notices":["ours"]}"#;
        let of_pack = r#"{"ucc_9105_compliance":{"compliant":true,"score":100,"checks":[
            {"requirement":"hash","satisfied":true,"detail":"hash is true"},
            {"requirement":"copy","satisfied":true,"detail":"copy is true"}]},
            "legal_notices":["of the pack"]}"#;
        let text = certificate(&facts, (of_own, of_pack), (&own, &pack), &both, &[]).unwrap();
        let stated: Value = serde_json::from_str(&text).unwrap();

        let statute = &stated["ucc_9105_compliance"];
        assert_eq!(statute["checks"].as_array().unwrap().len(), 2);
        assert_eq!(statute["checks"][0]["detail"], "hash is true");
        assert_eq!(
            (&statute["compliant"], &statute["score"]),
            (&json!(false), &json!(50))
        );
        assert!(!statute.to_string().contains("Delaware"), "{statute}");
        assert_eq!(stated["legal_notices"], json!(["of the pack"]));

        let section = &stated["organization_checks"];
        assert_eq!(section["owner"], "Maple Motors");

        let names: Vec<&Value> = section["checks"].as_array().unwrap().iter().collect();
        assert_eq!(names.len(), 3, "{section}");
        assert_eq!(names[2]["requirement"], "registered");
    }
}
