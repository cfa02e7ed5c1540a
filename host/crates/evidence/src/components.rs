//! Checks that each component that contributed to the evidence is the activated one.

use std::collections::BTreeSet;

use serde::Deserialize as _;
use serde_json::Value;

use super::formats::{COMPONENT_LEDGER, ComponentEntry, ComponentLedger, CustodyLedger};
use super::log::parsed;
use super::report::{OpenQuestion, ReportFinding};
use super::{Bundle, CERTIFIED_ANEW, TrustedLogs, last, strict};
use holdfast_domain::checkpoint::{Checkpoint, entry_leaf};
use holdfast_domain::component::{DecisionOrigin, EvidenceParticipant, Slot};
use holdfast_domain::hash::sha256;
use holdfast_domain::ledger::INSTALLATION;
use holdfast_domain::merkle;

const CHECK: &str = "components";
const LEDGER: &str = "component ledger";
const CARRIED: &str = "carried components";

/// Returns the findings about components; none for evidence of early releases, which did not
/// name components.
pub(super) fn findings(
    bundle: &Bundle,
    ledger: &CustodyLedger,
    certificate: &Value,
    checkpoint: Option<&Checkpoint>,
    trusted: &TrustedLogs,
) -> Vec<ReportFinding> {
    let details = |action| last(&ledger.entries, action).map(|entry| &entry.details);
    let (stored, evaluated) = (details("vault.stored"), details("compliance.evaluated"));
    let anew = details(CERTIFIED_ANEW);
    let (Ok(at_vaulting), Ok(later)) = (named(stored), named(anew)) else {
        let why = "the ledger's components cannot be read";
        return vec![ReportFinding::fails(CHECK, why)];
    };

    // Rules that certified after a change of control can be others than those at the vaulting.
    let participants = at_vaulting.as_ref().map(|at_vaulting| {
        let mut all = at_vaulting.clone();
        let others = later
            .iter()
            .flatten()
            .filter(|one| !at_vaulting.contains(one));
        all.extend(others.cloned());
        all
    });

    // The certificate in the evidence is the last one, so its rules are the ones that decided.
    let decided = decided_by(anew).or_else(|| decided_by(evaluated));
    let mut findings = Vec::new();
    // Evidence of early releases can carry a changed component as well, so this runs before the return below.
    findings.extend(carried(bundle, participants.as_deref(), decided));
    let (Some(at_vaulting), Some(participants)) = (at_vaulting, participants) else {
        return findings;
    };

    let deciders = [(Some(at_vaulting), evaluated), (later, anew)];
    let is_complete = deciders.iter().all(|(named, evaluation)| {
        let named = named.as_deref();
        named.is_none_or(|named| rules_among(named) == decided_by(*evaluation))
    });
    findings.push(if !is_complete {
        let why = "the rules that evaluated the record are not among the components";
        ReportFinding::fails(CHECK, why)
    } else if let Some(why) = contradiction(&participants, certificate) {
        ReportFinding::fails(CHECK, why)
    } else {
        ReportFinding::holds(CHECK, listed(&participants, trusted))
    });

    let Some(bytes) = bundle.optional(COMPONENT_LEDGER) else {
        findings.push(not_shown(bundle, &participants, decided, trusted));
        return findings;
    };

    match activations(bytes, ledger, &participants, checkpoint) {
        Ok((activations, detail)) => {
            findings.push(ReportFinding::holds(LEDGER, detail));
            findings.extend(listed_files(&activations, bundle, decided, trusted));
        }
        Err(why) => findings.push(ReportFinding::fails(LEDGER, why)),
    }

    findings
}

/// Returns the finding for evidence without the component ledger. The files of a vault-out come without it,
/// which leaves nothing open if every component is a default, or the verifier brings the rules.
fn not_shown(
    bundle: &Bundle,
    participants: &[EvidenceParticipant],
    decided: Option<&str>,
    trusted: &TrustedLogs,
) -> ReportFinding {
    let is_activated = participants.iter().any(|one| one.activation_id.is_some());
    let has_rules = decided.is_some_and(|decided| trusted.has_rules(decided));
    // An export always has this ledger. Without it, a file was removed, or
    // the evidence is of an early release.
    if bundle.is_of_export() || is_activated && !has_rules {
        let why = "not in this bundle: who activated the components is not shown";
        return ReportFinding::unchecked(LEDGER, OpenQuestion::Rules, why);
    }

    let why = if is_activated {
        "not among the files of a vault-out: who activated the components is not shown"
    } else {
        "not among the files of a vault-out; the ledger names no activated component"
    };
    ReportFinding::unchecked(LEDGER, OpenQuestion::Nothing, why)
}

/// Returns a finding if a component in the bundle does not have the SHA-256 of its file name, or is none
/// of those that the ledger names.
fn carried(
    bundle: &Bundle,
    participants: Option<&[EvidenceParticipant]>,
    decided: Option<&str>,
) -> Option<ReportFinding> {
    let is_named = |digest: &str| {
        let mut named = participants.unwrap_or_default().iter();
        // Early ledgers name no participants, but their evaluation names its component.
        Some(digest) == decided || named.any(|one| one.identity.sha256 == digest)
    };
    // A verifier runs the carried rules, so a changed file could bring rules that give any certificate.
    bundle.components().find_map(|(name, bytes)| {
        let actual = sha256(bytes);
        let why = if actual != name {
            format!("the component {name} was changed: its SHA-256 is {actual}")
        } else if !is_named(name) {
            format!("the component {name} is none of those that the ledger names")
        } else {
            return None;
        };

        Some(ReportFinding::fails(CARRIED, why))
    })
}

/// Returns the components that an entry names; none for those of early releases.
fn named(details: Option<&Value>) -> Result<Option<Vec<EvidenceParticipant>>, serde_json::Error> {
    let named = details.and_then(|details| details.get("components"));
    named.map(Vec::deserialize).transpose()
}

/// Returns the SHA-256 of the rules that made an evaluation.
fn decided_by(evaluation: Option<&Value>) -> Option<&str> {
    evaluation?["component"]["sha256"].as_str()
}

/// Returns the SHA-256 of the rules among the components.
fn rules_among(participants: &[EvidenceParticipant]) -> Option<&str> {
    let mut participants = participants.iter();
    let rules = participants.find(|participant| participant.slot == Slot::Compliance)?;
    Some(&rules.identity.sha256)
}

/// Returns the first component of the certificate that the ledger does not name.
fn contradiction(participants: &[EvidenceParticipant], certificate: &Value) -> Option<String> {
    let certified = certificate["provenance"]["components"].as_array();
    let mut certified = certified.into_iter().flatten();
    let unknown = certified.find(|named| {
        let named = serde_json::from_value::<EvidenceParticipant>((*named).clone());
        !named.is_ok_and(|named| participants.contains(&named))
    })?;

    Some(format!(
        "the certificate names {} {}, which the ledger does not",
        unknown["slot"].as_str().unwrap_or("a component"),
        unknown["name"].as_str().unwrap_or_default(),
    ))
}

/// Lists the components in one line, each with its owner.
fn listed(participants: &[EvidenceParticipant], trusted: &TrustedLogs) -> String {
    let lines: Vec<String> = participants
        .iter()
        .map(|participant| {
            // The ledger only claims that a component is a default. A known
            // digest shows that a release has it.
            let owner = match participant.owner {
                DecisionOrigin::Default
                    if trusted.knows_component(&participant.identity.sha256) =>
                {
                    "default"
                }
                DecisionOrigin::Default => "default of another release",
                DecisionOrigin::Operator => "the operator's",
                DecisionOrigin::Organization => "the organization's own",
            };

            format!("{}: {} ({owner})", participant.slot, participant.identity)
        })
        .collect();

    lines.join("; ")
}

/// Checks each entry of the bundle's component ledger, and that each activation is among them.
fn activations(
    bytes: &[u8],
    custody: &CustodyLedger,
    participants: &[EvidenceParticipant],
    checkpoint: Option<&Checkpoint>,
) -> Result<(ComponentLedger, String), String> {
    let ledger: ComponentLedger =
        strict::read(bytes).map_err(|error| format!("it cannot be read: {error}"))?;
    let checkpoint = checkpoint.ok_or("there is no checkpoint to prove it against")?;

    // Test data is judged by the rules of its organization.
    let organization = custody.org_id.live();
    let mut seen = BTreeSet::new();
    for entry in &ledger.entries {
        if entry.chain != organization.as_str() && entry.chain != INSTALLATION {
            return Err(format!("it is about another organization: {}", entry.chain));
        }

        // Two chains can have equal numbers, so the chain is a part of the place.
        let place = (entry.chain.as_str(), entry.entry.sequence);
        if !seen.insert(place) {
            return Err(format!("entry {} of {} is there twice", place.1, place.0));
        }

        proved(entry, checkpoint)?;
    }

    let activated: Vec<&EvidenceParticipant> = participants
        .iter()
        .filter(|participant| participant.activation_id.is_some())
        .collect();

    let missing = |one: &&&EvidenceParticipant| {
        let mut entries = ledger.entries.iter();
        !entries.any(|entry| entry.activates(one))
    };
    // Evidence of earlier releases can hold further entries, and lists no components.
    if super::is_of_this_format(custody) {
        exactly(&ledger, &activated)?;
        check_list(&ledger, participants)?;
    } else if let Some(missing) = activated.iter().find(missing) {
        return Err(lacks("activation", missing));
    }

    let detail = match activated.len() {
        0 => "every component is a default".into(),
        count => format!("it holds the activations of {count} components, and the log holds it"),
    };
    Ok((ledger, detail))
}

/// Checks that the list of carried components is there, and names components that took part, each once.
fn check_list(
    ledger: &ComponentLedger,
    participants: &[EvidenceParticipant],
) -> Result<(), String> {
    let listed = ledger.carried_components.as_ref();
    let listed = listed.ok_or("it does not list the components in the bundle")?;
    let is_named = |digest: &String| {
        let mut named = participants.iter();
        named.any(|one| one.identity.sha256 == *digest)
    };
    if listed.is_sorted_by(|one, next| one < next) && listed.iter().all(is_named) {
        Ok(())
    } else {
        Err("its list of components has others than the ledger".into())
    }
}

/// Checks that the entries are the activation and the upload of each activated component, and no others.
/// A component of the release was never uploaded.
fn exactly(ledger: &ComponentLedger, activated: &[&EvidenceParticipant]) -> Result<(), String> {
    let count = |is: &dyn Fn(&ComponentEntry) -> bool| {
        ledger.entries.iter().filter(|entry| is(entry)).count()
    };
    // Two entries for one activation would let a reader pick the one that suits them.
    for participant in activated {
        if count(&|entry| entry.activates(participant)) != 1 {
            return Err(lacks("activation", participant));
        }

        let uploaded = participant.owner != DecisionOrigin::Default;
        if uploaded && count(&|entry| entry.uploads(participant)) != 1 {
            return Err(lacks("upload", participant));
        }
    }

    let is_needed = |entry: &&ComponentEntry| {
        activated
            .iter()
            .any(|one| entry.activates(one) || entry.uploads(one))
    };
    match ledger.entries.iter().find(|entry| !is_needed(entry)) {
        Some(other) => Err(format!(
            "entry {} of {} is about no component of this evidence",
            other.entry.sequence, other.chain
        )),
        None => Ok(()),
    }
}

fn lacks(what: &str, participant: &EvidenceParticipant) -> String {
    format!("it does not hold the {what} of {}", participant.identity)
}

/// Compares the components in the bundle with its list; `None` if they are the same, or there is no list. A
/// missing one discredits nothing, and leaves nothing open for a verifier that has the rules from elsewhere.
fn listed_files(
    ledger: &ComponentLedger,
    bundle: &Bundle,
    decided: Option<&str>,
    trusted: &TrustedLogs,
) -> Option<ReportFinding> {
    let listed: BTreeSet<&str> = ledger
        .carried_components
        .as_ref()?
        .iter()
        .map(String::as_str)
        .collect();
    let carried: BTreeSet<&str> = bundle.components().map(|(digest, _)| digest).collect();
    // An unlisted component is an addition to the bundle. A missing one only leaves a question open.
    if let Some(other) = carried.difference(&listed).next() {
        let why = format!("the component {other} is not in the list of the component ledger");
        return Some(ReportFinding::fails(CARRIED, why));
    }

    let missing = listed.difference(&carried).next()?;
    let open = match decided {
        Some(decided) if trusted.has_rules(decided) => OpenQuestion::Nothing,
        _ => OpenQuestion::Rules,
    };

    let why = format!("the component {missing} of the list is not in this bundle");
    Some(ReportFinding::unchecked(CARRIED, open, why))
}

fn proved(entry: &ComponentEntry, checkpoint: &Checkpoint) -> Result<(), String> {
    let (chain, sequence) = (&entry.chain, entry.entry.sequence);
    // The log proves the hash only, so the hash must belong to these details.
    if !entry.entry.is_intact() {
        return Err(format!("entry {sequence} of {chain} was changed"));
    }

    let leaf = entry_leaf(chain, sequence, &entry.entry.hash);
    let (index, size) = (entry.leaf_index, checkpoint.size);
    let holds = parsed(&entry.proof)
        .is_some_and(|proof| merkle::includes(leaf, index, &proof, size, &checkpoint.root));
    if holds {
        Ok(())
    } else {
        Err(format!(
            "entry {sequence} of {chain} is not the one that the log holds"
        ))
    }
}
