//! Statements of control: what the obligor of a record gets on demand (UCC §9-406(c): proof of the assignment), with
//! the entries of the ledger behind it and their proofs.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::formats::{CustodyLedger, LogEvidence};
use super::log::{TrustedLogs, included, opened};
use super::report::{EvidenceVerdict, VerdictAnchor};
use super::{acts, strict};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::hash::canonical_sha256;
use holdfast_domain::id::{ControlStatementId, EnvelopeId, OrgId};
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::merkle::ProvenNodes;
use holdfast_domain::statement::{InstallationName, PartyPublicKey};

/// Value of `statement_type`.
pub const STATEMENT_TYPE: &str = "holdfast_control_statement";
/// Acts by which a party takes control, the one that stores the record first.
const STEPS: [&str; 3] = [
    "vault.stored",
    "control.accepted",
    "control.transfer.confirmed",
];
/// Longest time between the moment of a statement and its entry in the ledger.
const MOMENT: Duration = Duration::from_secs(600);
/// Act by which the buyer of a transfer agrees, before control passes.
const BUYER: &str = "control.transfer.accepted";

/// A party that has or had control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlStep {
    /// The party.
    pub organization_id: OrgId,
    /// Its name at that time.
    pub name: String,
    /// Since when it had control.
    pub since: Timestamp,
    /// Entry of the ledger by which control came to it: `vault.stored`, `control.accepted` or
    /// `control.transfer.confirmed`.
    pub act: String,
    /// Sequence number of that entry.
    pub entry: i64,
    /// Thumbprint (RFC 7638) of the key that it signed its acceptance with.
    pub signs_with: Option<String>,
}

/// The party that created a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatedParty {
    /// The party.
    pub organization_id: OrgId,
    /// Its name.
    pub name: String,
}

/// The record of a statement.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatedRecord {
    /// The record.
    pub envelope_id: EnvelopeId,
    /// Name of the document.
    pub name: String,
    /// Always `SHA-256`.
    pub hash_algorithm: String,
    /// Hash of the authoritative copy, lower-case hex.
    pub document_hash: String,
    /// Jurisdiction of the chattel paper, if one is stated (UCC §9-306A(b)(1)).
    pub chattel_paper_jurisdiction: Option<String>,
}

/// A signer of the record.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatedSigner {
    /// Name of the person.
    pub name: String,
    /// Role, such as `Buyer`.
    pub role: String,
    /// When they signed.
    pub signed_at: Option<Timestamp>,
}

/// A statement of control.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ControlStatement {
    /// `holdfast_control_statement`.
    pub statement_type: String,
    /// `1.0`.
    pub statement_version: String,
    /// Its id.
    pub statement_id: ControlStatementId,
    /// The moment that the statement is about.
    pub issued_at: Timestamp,
    /// Public name of the installation.
    pub issuer: String,
    /// The installation, by its log. Statements of earlier releases lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation: Option<InstallationName>,
    /// The person who demanded it.
    pub requested_by: Option<String>,
    /// The record.
    pub record: StatedRecord,
    /// The party that created it.
    pub originator: StatedParty,
    /// The party that has control.
    pub controller: ControlStep,
    /// All parties that had control, oldest first.
    pub control_chain: Vec<ControlStep>,
    /// Who signed the record.
    pub signers: Vec<StatedSigner>,
    /// The checks as the originator's rules answer them at this moment.
    pub compliance: StatedCompliance,
    /// The entries of the ledger that the chain rests on.
    pub entries: Vec<LedgerEntry>,
    /// Page that shows the statement and whether it still holds, without an account.
    pub verification_url: String,
}

/// Checks of a compliance certificate, without the people in it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatedCompliance {
    /// Statute and version of the rules, as in certificates.
    pub certificate_type: Value,
    /// `compliant`, `score` and `checks`.
    pub ucc_9105_compliance: Value,
    /// The component that ran the checks.
    pub rules_component: Value,
}

/// A statement as it is downloaded, with the entry of the ledger that records it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IssuedStatement {
    /// The statement, with all its members: the hash in `issued` covers them.
    #[schemars(with = "ControlStatement")]
    pub statement: Value,
    /// The entry `control.statement.issued`.
    pub issued: LedgerEntry,
    /// Proof that this entry and those of the statement are in the log with the signed head.
    pub log: LogEvidence,
}

impl IssuedStatement {
    /// Reads a downloaded statement. A member that is there twice, or that no format knows, is refused.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        strict::read(bytes)
    }
}

/// Returns the entries of a ledger that a chain of control rests on.
pub fn entries_of_chain(entries: &[LedgerEntry]) -> Vec<LedgerEntry> {
    let counts = |action: &str| STEPS.contains(&action) || action == BUYER;
    let chosen = entries.iter().filter(|entry| counts(&entry.action));
    chosen.cloned().collect()
}

/// Returns the parties that had control, oldest first: the originator since the record is in the vault, then
/// those that took control. Empty before the record is in the vault.
pub fn chain(originator: &StatedParty, entries: &[LedgerEntry]) -> Vec<ControlStep> {
    let steps = entries.iter().filter_map(|entry| {
        let party = match entry.action.as_str() {
            "vault.stored" => originator.clone(),
            action if STEPS.contains(&action) => party(entry, "controller")?,
            _ => return None,
        };
        Some(ControlStep {
            signs_with: signs_with(entries, entry, &party.organization_id),
            organization_id: party.organization_id,
            name: party.name,
            since: entry.at,
            act: entry.action.clone(),
            entry: entry.sequence,
        })
    });

    steps.collect()
}

/// Returns a party that an act of control names.
fn party(entry: &LedgerEntry, part: &str) -> Option<StatedParty> {
    serde_json::from_value(entry.details[part].clone()).ok()
}

/// Returns the thumbprint of the key that a party signed with when it took control by `step`.
fn signs_with(entries: &[LedgerEntry], step: &LedgerEntry, org: &OrgId) -> Option<String> {
    // The seller makes the last step of a transfer; the buyer has agreed before.
    let act = match step.action.as_str() {
        "control.transfer.confirmed" => BUYER,
        own => own,
    };
    let agreed = entries.iter().rev().find(|entry| {
        let by = entry.details["party"]["organization_id"].as_str();
        entry.sequence <= step.sequence && entry.action == act && by == Some(org.as_str())
    });
    let key = agreed?.details["signed"]["public_key"].clone();
    let key: PartyPublicKey = serde_json::from_value(key).ok()?;

    Some(key.thumbprint())
}

/// Result of verifying a statement.
#[derive(Clone, Debug, Serialize)]
pub struct StatementReport {
    /// Conclusion.
    pub verdict: EvidenceVerdict,
    /// True for the verdict `VALID` only.
    pub valid: bool,
    /// Known log that anchors the evidence.
    pub anchor: Option<VerdictAnchor>,
    /// The statement.
    pub statement_id: String,
    /// Name of the party that had control when the statement was issued.
    pub controller: String,
    /// Its organization.
    pub organization_id: String,
    /// Thumbprint of the key that it signed the statement with. Compare it with the one that it publishes.
    pub signed_with: Option<String>,
    /// That moment. Later acts are not part of the statement.
    pub issued_at: Timestamp,
    /// SHA-256 of the authoritative copy.
    pub document_hash: String,
    /// Everything that does not hold.
    pub problems: Vec<String>,
    /// Checks that could not be made, and how to make them.
    pub unproven: Vec<String>,
}

/// Checks a statement: the log has the entry that records it with its hash, and the entries that it rests
/// on, and its members agree with them.
///
/// # Errors
/// It is no statement of control.
pub fn verify_statement(
    issued: &IssuedStatement,
    trusted: &TrustedLogs,
) -> Result<StatementReport, serde_json::Error> {
    let statement: ControlStatement = serde_json::from_value(issued.statement.clone())?;
    let mut problems = Vec::new();
    let log = opened(&issued.log, trusted);
    problems.extend(log.failure().map(str::to_owned));
    // The entry that records the statement must be in the log too, or the statement could be made up later.
    let mut entries = statement.entries.clone();
    entries.push(issued.issued.clone());

    for entry in &entries {
        if !entry.is_intact() {
            problems.push(format!("entry {} was changed", entry.sequence));
        }
    }

    // The strict order also refuses an entry that is there twice.
    if !entries.is_sorted_by(|one, next| one.sequence < next.sequence) {
        problems.push("the entries are not in their order".into());
    }

    let ledger = CustodyLedger {
        envelope_id: statement.record.envelope_id.clone(),
        org_id: statement.originator.organization_id.clone(),
        entries,
        log: None,
    };
    if let Some(head) = &log.checkpoint {
        let mut nodes = ProvenNodes::new(head.size, head.root);
        problems.extend(included(&ledger, &issued.log.inclusion, &mut nodes).err());
    }

    let signed_with = match recorded(&issued.issued, &issued.statement, &statement, &issued.log) {
        Ok(thumbprint) => thumbprint,
        Err(why) => {
            problems.push(why);
            None
        }
    };

    // One request writes and records a statement, so a later record points to a statement that was backdated.
    let (moment, recorded_at) = (statement.issued_at, issued.issued.at);
    if recorded_at < moment || recorded_at > moment + MOMENT {
        problems.push("it was recorded at another time".into());
    }

    // The proven entries determine the parties. The written chain only repeats them for a reader.
    let steps = chain(&statement.originator, &statement.entries);
    if steps != statement.control_chain || steps.last() != Some(&statement.controller) {
        problems.push("the parties are not those of the entries".into());
    }

    let mut stored = statement.entries.iter();
    let stored = stored.find(|entry| entry.action == "vault.stored");
    let hash = stored.and_then(|entry| entry.details["document_hash"].as_str());
    if hash != Some(statement.record.document_hash.as_str()) {
        problems.push("the document is not the one that was stored".into());
    }

    let mut unproven = log.unproven();
    match acts::of_installation(&issued.log, statement.installation.as_ref()) {
        Ok(note) => unproven.extend(note),
        Err(why) => problems.push(why),
    }

    let verdict = match (problems.is_empty(), &log.anchor) {
        (false, _) => EvidenceVerdict::NotValid,
        (true, None) => EvidenceVerdict::NotAnchored,
        (true, Some(_)) => EvidenceVerdict::Valid,
    };
    Ok(StatementReport {
        verdict,
        valid: verdict == EvidenceVerdict::Valid,
        anchor: log.anchor,
        statement_id: statement.statement_id.to_string(),
        organization_id: statement.controller.organization_id.to_string(),
        signed_with,
        controller: statement.controller.name,
        issued_at: statement.issued_at,
        document_hash: statement.record.document_hash,
        problems,
        unproven,
    })
}

/// Checks that an entry records exactly this statement, by its controller, with its signature if there is one.
fn recorded(
    entry: &LedgerEntry,
    text: &Value,
    statement: &ControlStatement,
    log: &LogEvidence,
) -> Result<Option<String>, String> {
    let details = &entry.details;
    let controller = statement.controller.organization_id.as_str();
    let by = details["party"]["organization_id"].as_str();
    // The hash covers the whole statement, so no member can be exchanged after it was recorded.
    let is_this = entry.action == "control.statement.issued"
        && details["statement_id"].as_str() == Some(statement.statement_id.as_str())
        && details["sha256"].as_str() == Some(canonical_sha256(text).as_str())
        && by == Some(controller)
        && details["controller"]["organization_id"].as_str() == Some(controller)
        && details["originator"]["organization_id"].as_str()
            == Some(statement.originator.organization_id.as_str());
    if !is_this {
        return Err("the ledger records another statement".into());
    }

    // A controller with a key signs everything. Without its signature, the operator may have acted alone.
    let signed = &details["signed"];
    if signed.is_null() {
        return match statement.controller.signs_with {
            Some(_) => Err("its controller signs its acts, and not this statement".into()),
            None => Ok(None),
        };
    }

    let verified = acts::verified(signed, Some(log))?;
    let words = verified.statement;
    let content = &words.content;
    let fits = words.act == entry.action
        && words.party == statement.controller.organization_id
        && words.subject == statement.record.envelope_id.as_str()
        && content["requested_by"].as_str() == statement.requested_by.as_deref()
        && content["document_hash"].as_str() == Some(statement.record.document_hash.as_str())
        && content["entry"].as_i64() == Some(statement.controller.entry)
        && entry.at <= words.expires_at;
    if fits {
        Ok(Some(verified.thumbprint))
    } else {
        Err("its controller signed something else".into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_chain_begins_with_the_originator_and_has_a_step_for_each_change() {
        let (dealer, bank, fund) = (OrgId::new(), OrgId::new(), OrgId::new());
        let entry = |sequence: i64, action: &str, details: Value| LedgerEntry {
            sequence,
            at: Timestamp::from_millis(sequence * 1000),
            actor: "key:key_1".into(),
            action: action.into(),
            details,
            previous_hash: String::new(),
            hash: String::new(),
            withheld: false,
        };

        let named = |org: &OrgId, name: &str| json!({ "organization_id": org, "name": name });
        let act = |sequence, action: &str, by: &OrgId, controller: &OrgId, name: &str| {
            let details = json!({
                "originator": named(&dealer, "Dealer"), "controller": named(controller, name),
                "party": named(by, "-"),
            });
            entry(sequence, action, details)
        };

        let originator = StatedParty {
            organization_id: dealer.clone(),
            name: "Dealer".into(),
        };
        assert!(chain(&originator, &[]).is_empty());

        let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
        let mut agreed = act(5, BUYER, &fund, &bank, "Bank");
        agreed.details["signed"] = json!({ "public_key": key });
        let entries = [
            entry(1, "envelope.created", json!({})),
            entry(2, "vault.stored", json!({})),
            act(3, "control.designated", &dealer, &dealer, "Dealer"),
            act(4, "control.accepted", &bank, &bank, "Bank"),
            agreed,
            act(6, "control.viewed", &fund, &bank, "Bank"),
            act(7, "control.transfer.confirmed", &bank, &fund, "Fund"),
        ];

        let steps = chain(&originator, &entries);
        let parts: Vec<(&str, &str, i64)> = steps
            .iter()
            .map(|step| (step.name.as_str(), step.act.as_str(), step.entry))
            .collect();
        assert_eq!(
            parts,
            [
                ("Dealer", "vault.stored", 2),
                ("Bank", "control.accepted", 4),
                ("Fund", "control.transfer.confirmed", 7),
            ]
        );
        assert_eq!(steps[2].organization_id, fund);

        // RFC 8037, appendix A.3.
        let thumbprint = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
        assert_eq!(steps[2].signs_with.as_deref(), Some(thumbprint));
        assert_eq!(steps[1].signs_with, None);

        // The chosen entries alone give the same chain.
        let chosen = entries_of_chain(&entries);
        assert_eq!(chosen.len(), 4);
        assert_eq!(chain(&originator, &chosen), steps);
    }
}
