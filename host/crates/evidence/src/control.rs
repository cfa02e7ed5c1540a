//! Replays the acts of control in a ledger (UCC §9-105): every change of the controller was offered by
//! the one before, and accepted. Parties that registered a key have signed their acts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::acts;
use super::formats::LogEvidence;
use super::report::{ControlReport, OpenQuestion, ReportFinding, SignerReport};
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::transfer::RecordInclusion;

const CHECK: &str = "control";

/// Record that the acts are about.
struct Record<'a> {
    envelope: &'a str,
    /// SHA-256 of the authoritative copy.
    document_hash: Option<&'a str>,
    /// Form of its release.
    release_form: &'a Value,
    /// Log that the evidence is in.
    log: Option<&'a LogEvidence>,
}

/// An act that changes who has control, or what the controller allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActKind {
    Designated,
    Accepted,
    Declined,
    TransferProposed,
    TransferAccepted,
    TransferConfirmed,
    TransferCancelled,
    TransferExpired,
    Pledged,
    PledgeReleased,
    ReleaseRequested,
    ReleaseConsented,
    ReleaseRefused,
    Released,
    ViewGranted,
    ViewRevoked,
}

impl ActKind {
    fn parse(action: &str) -> Option<Self> {
        Some(match action {
            "control.designated" => Self::Designated,
            "control.accepted" => Self::Accepted,
            "control.declined" => Self::Declined,
            "control.transfer.proposed" => Self::TransferProposed,
            "control.transfer.accepted" => Self::TransferAccepted,
            "control.transfer.confirmed" => Self::TransferConfirmed,
            "control.transfer.cancelled" => Self::TransferCancelled,
            "control.transfer.expired" => Self::TransferExpired,
            "control.pledged" => Self::Pledged,
            "control.pledge.released" => Self::PledgeReleased,
            "control.release.requested" => Self::ReleaseRequested,
            "control.release.consented" => Self::ReleaseConsented,
            "control.release.refused" => Self::ReleaseRefused,
            "control.released" => Self::Released,
            "control.view.granted" => Self::ViewGranted,
            "control.view.revoked" => Self::ViewRevoked,
            _ => return None,
        })
    }

    /// Returns whether the act takes a record from its pledgee.
    fn is_locked_by_pledge(self) -> bool {
        matches!(
            self,
            Self::Designated
                | Self::TransferProposed
                | Self::TransferConfirmed
                | Self::Pledged
                | Self::Released
        )
    }
}

/// An act with its parties.
struct ControlAct<'a> {
    kind: ActKind,
    by: &'a str,
    /// Who is offered control by a designation or a proposal.
    offered: Option<&'a str>,
    pledgee: &'a str,
    /// Form of the release that the controller signed its consent to.
    consented_form: Option<&'a Value>,
}

impl<'a> ControlAct<'a> {
    fn read(kind: ActKind, details: &'a Value) -> Self {
        let offered = match kind {
            ActKind::Designated => party(details, "designee"),
            _ => party(details, "buyer"),
        };
        let form = &details["signed"]["statement"]["content"]["form"];
        Self {
            kind,
            by: party(details, "party"),
            offered: Some(offered).filter(|id| !id.is_empty()),
            pledgee: party(details, "pledgee"),
            consented_form: Some(form).filter(|form| !form.is_null()),
        }
    }
}

/// Consent of a controller to a release.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ReleaseConsent<'a> {
    /// None for a consent that was not signed.
    form: Option<&'a Value>,
}

/// Who has control, with open offers, pledges and consents. The table of the acts: [`Self::may`] and [`Self::next`].
#[derive(Clone, Copy, Debug, PartialEq)]
struct Standing<'a> {
    originator: &'a str,
    controller: &'a str,
    /// Designee or buyer.
    offered: Option<&'a str>,
    /// Whether the buyer has accepted.
    accepted: bool,
    /// Pledgee of a live pledge.
    pledgee: Option<&'a str>,
    consent: Option<ReleaseConsent<'a>>,
    /// Whether it was released by an act of its controller, or with its consent.
    released: bool,
}

impl<'a> Standing<'a> {
    fn of_originator(originator: &'a str) -> Self {
        Self {
            originator,
            controller: originator,
            offered: None,
            accepted: false,
            pledgee: None,
            consent: None,
            released: false,
        }
    }

    /// Returns whether the party may do this. `release_form` is that of the release in the ledger.
    fn may(&self, act: &ControlAct<'_>, release_form: &Value) -> bool {
        let is_controller = act.by == self.controller;
        let is_originator = act.by == self.originator;
        let is_offered = self.offered == Some(act.by);
        match act.kind {
            ActKind::TransferProposed
            | ActKind::Pledged
            | ActKind::ReleaseConsented
            | ActKind::ReleaseRefused
            | ActKind::ViewGranted
            | ActKind::ViewRevoked => is_controller,
            ActKind::Designated => is_controller && is_originator,
            ActKind::Accepted | ActKind::TransferAccepted => is_offered,
            // Without an acceptance, a seller could put a record on a party that never agreed.
            ActKind::TransferConfirmed => is_controller && self.accepted,
            // The originator withdraws its designation by the same act.
            ActKind::Declined => is_offered || is_originator,
            ActKind::TransferCancelled | ActKind::TransferExpired => is_offered || is_controller,
            ActKind::PledgeReleased => self.pledgee == Some(act.by),
            ActKind::Released => {
                // A consent to a transfer of the file must not serve for a conversion to paper.
                let covers = |consent: ReleaseConsent<'_>| {
                    consent.form.is_none_or(|form| form == release_form)
                };
                is_controller || (is_originator && self.consent.is_some_and(covers))
            }
            // It asks for something, and changes nothing.
            ActKind::ReleaseRequested => true,
        }
    }

    /// Returns the standing after an act that the party may do.
    fn next(mut self, act: &ControlAct<'a>) -> Self {
        match act.kind {
            ActKind::Designated | ActKind::TransferProposed => {
                // An acceptance was that of the offer before.
                (self.offered, self.accepted) = (act.offered, false);
            }
            ActKind::Accepted => (self.controller, self.offered) = (act.by, None),
            ActKind::TransferAccepted => self.accepted = true,
            ActKind::TransferConfirmed => {
                self.controller = self.offered.unwrap_or_default();
                (self.offered, self.accepted) = (None, false);
            }
            ActKind::Declined | ActKind::TransferCancelled | ActKind::TransferExpired => {
                (self.offered, self.accepted) = (None, false);
            }
            ActKind::Pledged => self.pledgee = Some(act.pledgee),
            ActKind::PledgeReleased => self.pledgee = None,
            ActKind::ReleaseConsented => {
                let form = act.consented_form;
                self.consent = Some(ReleaseConsent { form });
            }
            // A consent can be withdrawn.
            ActKind::ReleaseRefused => self.consent = None,
            ActKind::Released => self.released = true,
            ActKind::ReleaseRequested | ActKind::ViewGranted | ActKind::ViewRevoked => {}
        }

        if matches!(act.kind, ActKind::Accepted | ActKind::TransferConfirmed) {
            // A consent was the one of the controller before.
            self.consent = None;
        }
        self
    }
}

/// State while the acts are replayed.
struct ControlReplay<'a> {
    record: &'a Record<'a>,
    standing: Standing<'a>,
    /// Number of acts so far.
    epoch: u64,
    /// Thumbprints of the keys that each party signed with.
    signers: BTreeMap<&'a str, BTreeSet<String>>,
}

/// Why an act does not follow from those before.
enum ReplayProblem {
    Wrong(String),
    /// The act is of a later release than this verifier.
    UnknownAct,
}

impl From<String> for ReplayProblem {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

/// Checks the acts of control, and returns the controller. `None` for a record without acts, which its
/// originator controls.
pub(crate) fn replay(
    envelope: &str,
    entries: &[LedgerEntry],
    log: Option<&LogEvidence>,
) -> Option<(ReportFinding, Option<ControlReport>)> {
    let acts = || entries.iter().filter(|entry| is_act(entry));
    let first = acts().next()?;
    // Every act names the originator, and the first one comes before any change of control.
    let originator = party(&first.details, "originator");
    let details = |action: &str| entries.iter().find(|entry| entry.action == action);
    let stored = details("vault.stored").map(|entry| &entry.details["document_hash"]);
    let record = Record {
        envelope,
        document_hash: stored.and_then(Value::as_str),
        release_form: details("vault.released")
            .map_or(&Value::Null, |entry| &entry.details["form"]),
        log,
    };
    let mut replay = ControlReplay {
        record: &record,
        standing: Standing::of_originator(originator),
        epoch: 0,
        signers: BTreeMap::new(),
    };
    // Without the details of one act, those behind it cannot be shown either.
    let mut signable = entries
        .iter()
        .filter(|entry| is_act(entry) || is_stated(entry));
    if signable.any(|entry| entry.withheld) {
        let why = "acts were destroyed with the record, so their signatures cannot be verified";
        let finding = ReportFinding::unchecked(CHECK, OpenQuestion::Rules, why);
        return Some((finding, None));
    }

    // Statements are checked between the acts, because each counts against the controller of its moment.
    for entry in entries
        .iter()
        .filter(|entry| is_act(entry) || is_stated(entry))
    {
        let checked = if is_stated(entry) {
            replay.stated(entry).map_err(ReplayProblem::from)
        } else {
            replay.apply(entry)
        };
        let Err(problem) = checked else {
            continue;
        };

        let (number, action) = (entry.sequence, &entry.action);
        let about = |why: &str| format!("entry {number}, {action}: {why}");
        let finding = match problem {
            ReplayProblem::Wrong(why) => ReportFinding::fails(CHECK, about(&why)),
            ReplayProblem::UnknownAct => {
                let why = about("the verifier does not know this act; use a newer one");
                ReportFinding::unchecked(CHECK, OpenQuestion::Rules, why)
            }
        };
        return Some((finding, None));
    }

    let last = acts().next_back()?;
    let released = entries.iter().any(|entry| entry.action == "vault.released");
    let standing = replay.standing;
    // Before control has passed, the originator releases alone and needs no act for it.
    if released && standing.controller != originator && !standing.released {
        let why = "the record was released without the act of its controller";
        return Some((ReportFinding::fails(CHECK, why), None));
    }

    let name = last.details["controller"]["name"]
        .as_str()
        .unwrap_or_default();
    let signers: Vec<SignerReport> = replay
        .signers
        .iter()
        .map(|(party, keys)| SignerReport {
            organization_id: (*party).to_owned(),
            thumbprints: keys.iter().cloned().collect(),
        })
        .collect();

    let mut detail = format!(
        "controlled by {name} ({}) after {} acts, each by the party that may do it",
        standing.controller, replay.epoch
    );
    for signer in &signers {
        let keys = signer.thumbprints.join(", ");
        detail += &format!("; {} signs with {keys}", signer.organization_id);
    }

    detail += &addresses(entries).unwrap_or_default();
    // Such a statement also fits a restored copy of the installation, which a reader should know.
    let unnamed = entries
        .iter()
        .filter(|entry| acts::is_unnamed(&entry.details["signed"]))
        .count();
    if unnamed > 0 {
        detail += &format!(
            "; {unnamed} of the signed statements are of a release whose statements named no installation"
        );
    }

    let report = ControlReport {
        controller: name.to_owned(),
        signers,
    };
    Some((ReportFinding::holds(CHECK, detail), Some(report)))
}

/// Names the addresses that the statements were signed for, if there are several. A copy that was restored with the keys
/// of an installation has the same log, and another address.
fn addresses(entries: &[LedgerEntry]) -> Option<String> {
    let stated = |entry: &LedgerEntry| {
        let url = &entry.details["signed"]["statement"]["installation"]["url"];
        url.as_str().map(str::to_owned)
    };
    let found: BTreeSet<String> = entries.iter().filter_map(stated).collect();
    let found: Vec<String> = found.into_iter().collect();

    (found.len() > 1).then(|| {
        format!(
            "; the statements were signed for several addresses: {}",
            found.join(", ")
        )
    })
}

/// Findings about other records, looks and statements change nothing.
fn is_act(entry: &LedgerEntry) -> bool {
    let action = entry.action.as_str();
    let others = [
        "control.conflict",
        "control.disputed",
        "control.similar",
        "control.viewed",
        "control.statement.issued",
    ];

    action.starts_with("control.") && !others.contains(&action)
}

/// Whether an entry records a statement of control, which changes nothing.
fn is_stated(entry: &LedgerEntry) -> bool {
    entry.action == "control.statement.issued"
}

fn party<'a>(details: &'a Value, part: &str) -> &'a str {
    let id = details[part]["organization_id"].as_str();
    id.unwrap_or_default()
}

impl<'a> ControlReplay<'a> {
    /// Checks that the controller issued a statement of control, and signed it if it signs its acts.
    fn stated(&self, entry: &'a LedgerEntry) -> Result<(), String> {
        let by = party(&entry.details, "party");
        if by != self.standing.controller {
            return Err(format!("{by} is not the controller"));
        }

        match self.signature(entry)? {
            None if self.signers.contains_key(by) => Err(format!(
                "{by} signed its acts before, and not this statement"
            )),
            _ => Ok(()),
        }
    }

    /// Checks an act, and follows it. Changes nothing if it does not hold.
    fn apply(&mut self, entry: &'a LedgerEntry) -> Result<(), ReplayProblem> {
        let details = &entry.details;
        let kind = ActKind::parse(&entry.action).ok_or(ReplayProblem::UnknownAct)?;
        let act = ControlAct::read(kind, details);
        let (by, standing) = (act.by, &self.standing);
        let thumbprint = self.signature(entry)?;
        let epoch = self.epoch + 1;
        // The epoch is a fencing token. An act that was made for an older state cannot follow a newer one.
        if details["epoch"].as_u64() != Some(epoch) {
            return Err(format!("its epoch is not {epoch}").into());
        }
        if kind.is_locked_by_pledge() && standing.pledgee.is_some_and(|pledgee| pledgee != by) {
            return Err("the record is pledged".to_owned().into());
        }
        if !standing.may(&act, self.record.release_form) {
            return Err(format!("{by} is not the party that may do this").into());
        }

        let next = standing.next(&act);
        let named = party(details, "controller");
        if named != next.controller {
            let why = format!(
                "it names {named} as the controller, expected is {}",
                next.controller
            );
            return Err(why.into());
        }

        // A party that signed once signs for ever. Otherwise the operator could act in its name without a
        // signature.
        let is_controller = by == standing.controller;
        if thumbprint.is_none()
            && self.signers.contains_key(by)
            && !is_unsigned(kind, is_controller)
        {
            return Err(format!("{by} signed its acts before, and not this one").into());
        }

        if let Some(thumbprint) = thumbprint {
            self.signers.entry(by).or_default().insert(thumbprint);
        }
        (self.standing, self.epoch) = (next, epoch);
        Ok(())
    }

    /// Verifies the signed statement of an act, and returns the thumbprint of the key. `None` for an
    /// act of a party without a key.
    fn signature(&self, entry: &LedgerEntry) -> Result<Option<String>, String> {
        let details = &entry.details;
        let inclusion = self.inclusion(details)?;
        if details["signed"].is_null() {
            return Ok(None);
        }

        let verified = acts::verified(&details["signed"], self.record.log)?;
        let statement = verified.statement;
        let (by, content) = (party(details, "party"), &statement.content);
        let transfer = details["transfer_id"].as_str();
        let (subject, epoch) = match (entry.action.as_str(), transfer) {
            // The transfer gets its id afterwards.
            ("control.transfer.proposed", _) => (by, None),
            // One signature covers all records of a transfer, so it cannot name the epoch of a single one.
            (_, Some(transfer)) => (transfer, None),
            (_, None) => (self.record.envelope, Some(self.epoch)),
        };

        let names = |member: &str, part: &str| content[member] == details[part]["organization_id"];
        // The operator writes the entry. Members that matter to the party have to be those that it signed.
        let same = match entry.action.as_str() {
            "control.designated" => names("controller", "designee"),
            "control.transfer.proposed" => {
                // Without the member, the seller keeps its copy.
                let agreed = |copy: &Value| copy.as_str().unwrap_or("kept").to_owned();
                let copies = agreed(&content["seller_copy"]) == agreed(&details["seller_copy"]);
                names("buyer", "buyer") && copies
            }
            "control.release.consented" | "control.release.refused" => {
                content["release_id"] == details["release"]["release_id"]
            }
            "control.released" => content["form"] == *self.record.release_form,
            "control.pledged" => {
                names("pledgee", "pledgee") && content["terms"] == details["pledge"]["terms"]
            }
            "control.view.granted" => {
                let mut members = vec!["name", "email", "access", "purpose"];
                // Without a time of its own, the view ends after the usual one.
                members.extend((!content["expires_at"].is_null()).then_some("expires_at"));
                let view = &details["view"];
                members.iter().all(|member| content[member] == view[member])
            }
            "control.view.revoked" => content["view_id"] == details["view"]["view_id"],
            "control.pledge.released" => content["pledge_id"] == details["pledge"]["pledge_id"],
            "control.declined" => content["reason"] == details["reason"],
            _ => true,
        };

        let document = content["document_hash"].as_str();
        let about = inclusion.is_none_or(|inclusion| {
            serde_json::to_value(inclusion.among).ok().as_ref() == Some(&content["records"])
        });
        let fits = statement.act == entry.action
            && statement.party.as_str() == by
            && statement.subject == subject
            && statement.epoch.and_then(|epoch| u64::try_from(epoch).ok()) == epoch
            && document.is_none_or(|hash| Some(hash) == self.record.document_hash)
            && same
            && about
            // A step of a transfer may come later.
            && (epoch.is_none() || entry.at <= statement.expires_at);
        if fits {
            Ok(Some(verified.thumbprint))
        } else {
            Err("the signed statement says something else".into())
        }
    }

    /// Checks that the record is among those of the transfer.
    fn inclusion(&self, details: &Value) -> Result<Option<RecordInclusion>, String> {
        if details["inclusion"].is_null() {
            return Ok(None);
        }

        let read = serde_json::from_value(details["inclusion"].clone());
        let inclusion: RecordInclusion = read.map_err(|error| error.to_string())?;
        let hash = details["document_hash"].as_str();
        if hash.is_some() && hash != self.record.document_hash {
            return Err("the document is another one".into());
        }

        if inclusion.holds(self.record.envelope, hash) {
            Ok(Some(inclusion))
        } else {
            Err("the record is not among those of the transfer".into())
        }
    }
}

/// Returns whether an act needs no signature of its own: it asks for something, ends a transfer that failed or
/// is over, or makes a release that the controller agreed to.
fn is_unsigned(kind: ActKind, is_controller: bool) -> bool {
    match kind {
        ActKind::ReleaseRequested | ActKind::TransferCancelled | ActKind::TransferExpired => true,
        ActKind::Released => !is_controller,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    use serde_json::json;

    use holdfast_domain::clock::Timestamp;
    use holdfast_domain::statement::PartyPublicKey;

    use super::*;

    /// An act by a party, after which `controller` has control and `offered` was offered it.
    fn act(action: &str, by: &str, controller: &str, offered: &str) -> LedgerEntry {
        let party = |id: &str| match id {
            "" => Value::Null,
            id => json!({ "organization_id": id, "name": format!("Name of {id}") }),
        };
        let (designee, buyer) = if action.contains("transfer") {
            ("", offered)
        } else {
            (offered, "")
        };

        LedgerEntry {
            sequence: 0,
            at: Timestamp::from_millis(0),
            actor: "key:key_1".into(),
            action: action.into(),
            details: json!({
                "originator": party("dealer"), "controller": party(controller),
                "designee": party(designee), "buyer": party(buyer), "party": party(by),
            }),
            previous_hash: String::new(),
            hash: String::new(),
            withheld: false,
        }
    }

    /// A sale from dealer to bank to fund, and the release by the fund.
    fn sale() -> Vec<LedgerEntry> {
        numbered(vec![
            act("control.designated", "dealer", "dealer", "bank"),
            act("control.accepted", "bank", "bank", ""),
            act("control.release.requested", "dealer", "bank", ""),
            act("control.release.refused", "bank", "bank", ""),
            act("control.transfer.proposed", "bank", "bank", "fund"),
            act("control.transfer.accepted", "fund", "bank", "fund"),
            act("control.transfer.confirmed", "bank", "fund", ""),
            act("control.release.requested", "dealer", "fund", ""),
            act("control.release.consented", "fund", "fund", ""),
            act("vault.released", "dealer", "fund", ""),
            act("control.released", "dealer", "fund", ""),
        ])
    }

    fn numbered(mut entries: Vec<LedgerEntry>) -> Vec<LedgerEntry> {
        let mut epoch = 0;
        for (entry, sequence) in entries.iter_mut().zip(1..) {
            entry.sequence = sequence;
            epoch += u64::from(is_act(entry));
            entry.details["epoch"] = epoch.into();
        }
        entries
    }

    fn holds(entries: &[LedgerEntry]) -> Option<bool> {
        replay("env", entries, None).and_then(|(finding, _)| finding.ok)
    }

    #[test]
    fn a_chain_of_acts_names_its_controller() {
        let (finding, report) = replay("env", &sale(), None).unwrap();
        let detail =
            "controlled by Name of fund (fund) after 10 acts, each by the party that may do it";
        assert_eq!((finding.ok, finding.detail.as_str()), (Some(true), detail));
        assert_eq!(report.unwrap().controller, "Name of fund");
        assert!(replay("env", &[act("vault.stored", "dealer", "dealer", "")], None).is_none());

        let mut with_conflict = sale();
        with_conflict.insert(5, act("control.conflict", "", "bank", "fund"));
        assert_eq!(holds(&with_conflict), Some(true));
    }

    #[test]
    fn the_controller_decides_who_looks_at_a_record() {
        let with_view = |by: &str| {
            let mut entries = sale();
            entries.insert(2, act("control.viewed", "dealer", "bank", ""));
            entries.insert(3, act("control.view.granted", by, "bank", ""));
            numbered(entries)
        };
        assert_eq!(holds(&with_view("bank")), Some(true));
        assert_eq!(holds(&with_view("dealer")), Some(false));

        let with_statement = |by: &str| {
            let mut entries = sale();
            entries.insert(2, act("control.statement.issued", by, "bank", ""));
            numbered(entries)
        };
        assert_eq!(holds(&with_statement("bank")), Some(true));
        assert_eq!(holds(&with_statement("dealer")), Some(false));

        let mut released = sale();
        released.push(act("control.view.revoked", "fund", "fund", ""));
        assert_eq!(holds(&numbered(released)), Some(true));
    }

    /// A later release may know acts that change who has control.
    #[test]
    fn an_unknown_act_leaves_open_who_has_control() {
        let mut entries = sale();
        entries.insert(4, act("control.lent", "bank", "bank", ""));
        let (finding, report) = replay("env", &numbered(entries), None).unwrap();
        assert_eq!(finding.ok, None);
        assert!(report.is_none());
        assert_eq!(
            finding.detail,
            "entry 5, control.lent: the verifier does not know this act; use a newer one"
        );
    }

    #[test]
    fn a_destroyed_act_leaves_open_who_has_control() {
        let mut entries = sale();
        entries[2].details = Value::Null;
        entries[2].withheld = true;
        let (finding, report) = replay("env", &entries, None).unwrap();
        assert_eq!(finding.ok, None);
        assert!(report.is_none());
        assert_eq!(
            finding.detail,
            "acts were destroyed with the record, so their signatures cannot be verified"
        );
    }

    #[test]
    fn an_acceptance_counts_for_its_own_offer_only() {
        let mut entries = sale();
        entries.insert(6, act("control.declined", "fund", "bank", ""));
        entries.insert(7, act("control.transfer.proposed", "bank", "bank", "fund"));
        assert_eq!(holds(&numbered(entries)), Some(false));
    }

    #[test]
    fn a_withdrawn_consent_covers_no_release() {
        let mut withdrawn = sale();
        let refused = act("control.release.refused", "fund", "fund", "");
        withdrawn.insert(9, refused);
        assert_eq!(holds(&numbered(withdrawn)), Some(false));
    }

    /// Each way in which an act cannot be has its sentence.
    #[test]
    fn the_first_act_that_does_not_follow_is_named_with_its_reason() {
        let why = |entries: &[LedgerEntry]| replay("env", entries, None).unwrap().0.detail;
        let changed = |index: usize, part: &str, id: &str| {
            let mut entries = sale();
            entries[index].details[part]["organization_id"] = id.into();
            why(&entries)
        };
        let acceptance = "entry 2, control.accepted: ";
        assert_eq!(
            changed(1, "party", "thief"),
            format!("{acceptance}thief is not the party that may do this")
        );
        assert_eq!(
            changed(1, "controller", "thief"),
            format!("{acceptance}it names thief as the controller, expected is bank")
        );

        let mut gap = sale();
        gap[1].details["epoch"] = 5.into();
        assert_eq!(why(&gap), format!("{acceptance}its epoch is not 2"));

        let mut stated = sale();
        stated.insert(2, act("control.statement.issued", "dealer", "bank", ""));
        let statement = "entry 3, control.statement.issued: dealer is not the controller";
        assert_eq!(why(&numbered(stated)), statement);

        let mut pledged = sale();
        pledged[4] = act("control.pledged", "bank", "bank", "");
        pledged[4].details["pledgee"] = json!({ "organization_id": "pledgee" });
        pledged[5] = act("control.transfer.proposed", "bank", "bank", "fund");
        let offer = "entry 6, control.transfer.proposed: the record is pledged";
        assert_eq!(why(&numbered(pledged)), offer);

        let mut without = sale();
        without.remove(10);
        assert_eq!(
            why(&numbered(without)),
            "the record was released without the act of its controller"
        );

        let mut vaulted = act("vault.stored", "dealer", "dealer", "");
        vaulted.details = json!({ "document_hash": "ab" });
        for (document, reason) in [
            ("cd", "the document is another one"),
            ("ab", "the record is not among those of the transfer"),
        ] {
            let mut stored = sale();
            stored.insert(0, vaulted.clone());
            stored[7].details["document_hash"] = document.into();
            let root = "00".repeat(32);
            stored[7].details["inclusion"] =
                json!({ "records": 1, "root": root, "index": 0, "path": [] });
            assert_eq!(
                why(&numbered(stored)),
                format!("entry 8, control.transfer.confirmed: {reason}")
            );
        }
    }

    #[test]
    fn an_act_that_is_left_out_or_done_by_another_is_named() {
        // All acts but the requests, which change nothing, and the refusal.
        for index in [0, 1, 4, 5, 6, 8, 10] {
            let mut without = sale();
            without.remove(index);
            assert_eq!(holds(&without), Some(false), "gap at {index}");
            assert_eq!(holds(&numbered(without)), Some(false), "without {index}");
        }

        for index in [0, 1, 3, 4, 5, 6, 8, 10] {
            let mut by_another = sale();
            by_another[index].details["party"]["organization_id"] = "thief".into();
            assert_eq!(holds(&by_another), Some(false), "{index} by another");
            let mut to_another = sale();
            to_another[index].details["controller"]["organization_id"] = "thief".into();
            assert_eq!(holds(&to_another), Some(false), "{index} for another");
        }

        let mut swapped = sale();
        swapped.swap(5, 6);
        assert_eq!(holds(&numbered(swapped)), Some(false));
    }

    /// Signs an act with a statement that has this content.
    fn sign(pair: &Ed25519KeyPair, entry: &mut LedgerEntry, epoch: u64, content: &Value) {
        let x = BASE64URL.encode(pair.public_key());
        let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": x });
        let thumbprint = serde_json::from_value::<PartyPublicKey>(key.clone()).unwrap();
        let statement = json!({
            "act": entry.action, "party": entry.details["party"]["organization_id"],
            "subject": "env_1", "epoch": epoch, "content": content, "nonce": "0123456789abcdef",
            "issued_at": Timestamp::from_millis(0), "expires_at": Timestamp::from_millis(1000),
        });

        let header = json!({ "alg": "EdDSA", "kid": thumbprint.thumbprint() });
        let header = BASE64URL.encode(header.to_string());
        let mut sorted = BTreeMap::new();
        sorted.extend(statement.as_object().unwrap());
        let text = serde_json::to_string(&sorted).unwrap();
        let signature = pair.sign(format!("{header}.{}", BASE64URL.encode(text)).as_bytes());

        entry.details["signed"] = json!({
            "statement": statement, "public_key": key,
            "signature": format!("{header}..{}", BASE64URL.encode(signature)),
        });
    }

    #[test]
    fn a_signed_act_says_what_the_entry_says() {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let signed = |to: &str, epoch: u64| {
            let mut entries = sale();
            entries[0].details["designee"] =
                json!({ "organization_id": "org_01h455vb4pex5vsknk084sn02q" });

            for entry in &mut entries {
                let text = entry.details.to_string();
                let text = text.replace("\"dealer\"", "\"org_01h455vb4pex5vsknk084sn02r\"");
                let text = text.replace("\"bank\"", "\"org_01h455vb4pex5vsknk084sn02q\"");
                entry.details = serde_json::from_str(&text).unwrap();
            }

            sign(&pair, &mut entries[0], epoch, &json!({ "controller": to }));
            entries
        };

        let good = signed("org_01h455vb4pex5vsknk084sn02q", 0);
        let holds = |entries: &[LedgerEntry]| {
            let (finding, report) = replay("env_1", entries, None).unwrap();
            (finding.ok, finding.detail, report)
        };
        let fails = |entries: &[LedgerEntry], why: &str| {
            let (ok, detail, _) = holds(entries);
            assert_eq!(ok, Some(false), "{detail}");
            assert!(detail.ends_with(why), "{detail}");
        };

        let other_words = "the signed statement says something else";
        let (ok, detail, report) = holds(&good);
        assert_eq!(ok, Some(true), "{detail}");

        let old =
            "; 1 of the signed statements are of a release whose statements named no installation";
        assert!(detail.ends_with(old), "{detail}");

        let signers = report.unwrap().signers;
        assert_eq!(signers[0].organization_id, "org_01h455vb4pex5vsknk084sn02r");
        assert_eq!(signers[0].thumbprints.len(), 1);

        // About another party, another state of the record, another record, or with other words.
        fails(&signed("org_thief", 0), other_words);
        fails(&signed("org_01h455vb4pex5vsknk084sn02q", 3), other_words);
        assert_eq!(replay("env_2", &good, None).unwrap().0.ok, Some(false));

        let mut changed = good.clone();
        changed[0].details["signed"]["statement"]["nonce"] = json!("another nonce than that");
        assert_eq!(holds(&changed).0, Some(false));

        // A restored copy with the same keys has another address.
        let mut two = good.clone();
        let mut stated = act("control.statement.issued", "", "", "");
        for (entry, url) in [
            (&mut two[0], "https://a.example"),
            (&mut stated, "https://b.example"),
        ] {
            entry.details["signed"]["statement"]["installation"]["url"] = url.into();
        }

        two.push(stated);
        let told = "; the statements were signed for several addresses: https://a.example, https://b.example";
        assert_eq!(addresses(&two).as_deref(), Some(told));
        assert_eq!(addresses(&two[..1]), None);

        // A party that has signed signs its later statements and acts, too.
        let mut stated = good.clone();
        let mut statement = act("control.statement.issued", "", "", "");
        let dealer = json!({ "organization_id": "org_01h455vb4pex5vsknk084sn02r" });
        statement.details["party"] = dealer.clone();
        statement.details["controller"] = dealer;
        stated.insert(1, statement);

        fails(&stated, "signed its acts before, and not this statement");
        let mut later = good.clone();
        later[1].action = "control.declined".into();
        later[1].details["party"] = later[0].details["party"].clone();
        later[1].details["controller"] = later[0].details["controller"].clone();
        fails(&later[..2], "signed its acts before, and not this one");
        later[0].details["signed"] = Value::Null;
        assert_eq!(holds(&later[..2]).0, Some(true));
    }
}
