//! Checks that each component that contributed to the evidence is the activated one.

use serde_json::Value;

use super::formats::{COMPONENT_LEDGER, ComponentEntry, ComponentLedger, CustodyLedger};
use super::report::ReportFinding;
use super::{Bundle, TrustedLogs, last};
use holdfast_domain::checkpoint::{Checkpoint, entry_leaf};
use holdfast_domain::component::{DecisionOrigin, EvidenceParticipant, Slot};
use holdfast_domain::hash::sha256;
use holdfast_domain::ledger::INSTALLATION;
use holdfast_domain::merkle::{self, Hash};

const CHECK: &str = "components";
const LEDGER: &str = "component ledger";

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
    let mut findings: Vec<ReportFinding> = swapped(bundle).into_iter().collect();
    let Some(named) = stored.and_then(|stored| stored.get("components")) else {
        return findings;
    };
    let Ok(participants) = serde_json::from_value::<Vec<EvidenceParticipant>>(named.clone()) else {
        findings.push(ReportFinding::fails(
            CHECK,
            "the ledger's components cannot be read",
        ));
        return findings;
    };
    findings.push(match contradiction(&participants, evaluated, certificate) {
        Some(why) => ReportFinding::fails(CHECK, why),
        None => ReportFinding::holds(CHECK, listed(&participants, trusted)),
    });
    let carried = bundle.optional(COMPONENT_LEDGER);
    let activated: Vec<&EvidenceParticipant> = participants
        .iter()
        .filter(|participant| participant.activation_id.is_some())
        .collect();
    findings.extend(match carried {
        Some(bytes) => Some(match activations(bytes, ledger, &activated, checkpoint) {
            Ok(detail) => ReportFinding::holds(LEDGER, detail),
            Err(why) => ReportFinding::fails(LEDGER, why),
        }),
        None if activated.is_empty() => None,
        None => Some(ReportFinding::holds(
            LEDGER,
            "not in this bundle: who activated the components is not shown",
        )),
    });
    findings
}

/// Returns a finding if a component in the bundle does not have the SHA-256 of its file name.
fn swapped(bundle: &Bundle) -> Option<ReportFinding> {
    let mut carried = bundle.components();
    let (name, bytes) = carried.find(|(name, bytes)| sha256(bytes) != **name)?;
    Some(ReportFinding::fails(
        "carried components",
        format!(
            "the component {name} was changed: its SHA-256 is {}",
            sha256(bytes)
        ),
    ))
}

/// Returns the first contradiction between ledger and certificate about the components.
fn contradiction(
    participants: &[EvidenceParticipant],
    evaluated: Option<&Value>,
    certificate: &Value,
) -> Option<String> {
    let decided = evaluated.and_then(|evaluated| evaluated["component"]["sha256"].as_str());
    let compliance = |participant: &&EvidenceParticipant| participant.slot == Slot::Compliance;
    let listed = participants.iter().find(compliance);
    if listed.map(|listed| listed.identity.sha256.as_str()) != decided {
        return Some("the rules that evaluated the record are not among the components".into());
    }
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
    activated: &[&EvidenceParticipant],
    checkpoint: Option<&Checkpoint>,
) -> Result<String, String> {
    let ledger: ComponentLedger =
        serde_json::from_slice(bytes).map_err(|error| format!("it cannot be read: {error}"))?;
    let checkpoint = checkpoint.ok_or("there is no checkpoint to prove it against")?;
    for entry in &ledger.entries {
        if entry.chain != custody.org_id.as_str() && entry.chain != INSTALLATION {
            return Err(format!("it is about another organization: {}", entry.chain));
        }
        proved(entry, checkpoint)?;
    }
    for participant in activated {
        if !ledger
            .entries
            .iter()
            .any(|entry| activates(entry, participant))
        {
            return Err(format!(
                "it does not hold the activation of {}",
                participant.identity
            ));
        }
    }
    Ok(match activated.len() {
        0 => "every component is a default".into(),
        count => format!("it holds the activations of {count} components, and the log holds it"),
    })
}

fn proved(entry: &ComponentEntry, checkpoint: &Checkpoint) -> Result<(), String> {
    let (chain, sequence) = (&entry.chain, entry.entry.sequence);
    if entry.entry.computed_hash() != entry.entry.hash {
        return Err(format!("entry {sequence} of {chain} was changed"));
    }
    let proof: Option<Vec<Hash>> = entry.proof.iter().map(|node| merkle::parse(node)).collect();
    let leaf = entry_leaf(chain, sequence, &entry.entry.hash);
    let (index, size) = (entry.leaf_index, checkpoint.size);
    match proof.is_some_and(|proof| merkle::includes(leaf, index, &proof, size, &checkpoint.root)) {
        true => Ok(()),
        false => Err(format!(
            "entry {sequence} of {chain} is not the one that the log holds"
        )),
    }
}

fn activates(entry: &ComponentEntry, participant: &EvidenceParticipant) -> bool {
    let details = &entry.entry.details;
    let action = entry.entry.action.as_str();
    let id = participant.activation_id.as_ref().map(ToString::to_string);
    matches!(action, "component.activated" | "component.scheduled")
        && details["activation_id"].as_str() == id.as_deref()
        && details["component"]["sha256"].as_str() == Some(participant.identity.sha256.as_str())
        && details["slot"].as_str() == Some(participant.slot.as_str())
}
