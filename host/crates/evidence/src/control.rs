//! Replays the acts of control in a ledger (UCC §9-105): every change of the controller was offered by
//! the one before, and accepted.

use serde_json::Value;

use super::report::ReportFinding;
use holdfast_domain::ledger::LedgerEntry;

const CHECK: &str = "control";

/// State of control while its acts are replayed.
struct ControlState<'a> {
    originator: &'a str,
    controller: &'a str,
    /// Designee or buyer.
    offered: Option<&'a str>,
    /// Whether the buyer has accepted.
    accepted: bool,
    /// Whether the controller has agreed to a release.
    consented: bool,
    epoch: u64,
}

/// Checks the acts of control, and returns the name of the controller. `None` for a record without acts,
/// which its originator controls.
pub(crate) fn replay(entries: &[LedgerEntry]) -> Option<(ReportFinding, Option<String>)> {
    let acts = || entries.iter().filter(|entry| is_act(entry));
    let first = acts().next()?;
    let originator = party(&first.details, "originator");
    let mut state = ControlState {
        originator,
        controller: originator,
        offered: None,
        accepted: false,
        consented: false,
        epoch: 0,
    };
    for entry in acts() {
        if let Err(why) = state.apply(entry) {
            let (number, action) = (entry.sequence, &entry.action);
            let detail = format!("entry {number}, {action}: {why}");
            return Some((ReportFinding::fails(CHECK, detail), None));
        }
    }
    let last = acts().next_back()?;
    let released = entries.iter().any(|entry| entry.action == "vault.released");
    if released && state.controller != originator && last.action != "control.released" {
        let why = "the record was released without the act of its controller";
        return Some((ReportFinding::fails(CHECK, why), None));
    }
    let name = last.details["controller"]["name"]
        .as_str()
        .unwrap_or_default();
    let detail = format!(
        "controlled by {name} ({}) after {} acts, each by the party that may do it",
        state.controller, state.epoch
    );
    Some((ReportFinding::holds(CHECK, detail), Some(name.to_owned())))
}

/// Refused second pledges change nothing.
fn is_act(entry: &LedgerEntry) -> bool {
    entry.action.starts_with("control.") && entry.action != "control.conflict"
}

fn party<'a>(details: &'a Value, part: &str) -> &'a str {
    let id = details[part]["organization_id"].as_str();
    id.unwrap_or_default()
}

impl<'a> ControlState<'a> {
    fn apply(&mut self, entry: &'a LedgerEntry) -> Result<(), String> {
        let details = &entry.details;
        let (by, controller) = (party(details, "party"), party(details, "controller"));
        if details["epoch"].as_u64() != Some(self.epoch + 1) {
            return Err(format!("its epoch is not {}", self.epoch + 1));
        }
        self.epoch += 1;
        let offered = Some(party(details, "designee")).filter(|id| !id.is_empty());
        let buyer = Some(party(details, "buyer")).filter(|id| !id.is_empty());
        let (may, next) = match entry.action.as_str() {
            "control.designated" => {
                self.offered = offered;
                (by == self.originator && by == self.controller, by)
            }
            "control.transfer.proposed" => {
                self.offered = buyer;
                (by == self.controller, by)
            }
            "control.accepted" => (self.offered.take() == Some(by), by),
            "control.transfer.accepted" => {
                self.accepted = true;
                (self.offered == Some(by), self.controller)
            }
            "control.transfer.confirmed" => {
                let (to, accepted) = (self.offered.take(), self.accepted);
                self.accepted = false;
                let may = by == self.controller && accepted;
                (may, to.unwrap_or_default())
            }
            "control.declined" => {
                let may = Some(by) == self.offered || by == self.originator;
                self.offered = None;
                (may, self.controller)
            }
            "control.transfer.cancelled" | "control.transfer.expired" => {
                let may = [self.offered, Some(self.controller)].contains(&Some(by));
                (self.offered, self.accepted) = (None, false);
                (may, self.controller)
            }
            "control.release.consented" => {
                self.consented = true;
                (by == self.controller, self.controller)
            }
            "control.release.refused" => (by == self.controller, self.controller),
            "control.released" => {
                let agreed = by == self.originator && self.consented;
                (by == self.controller || agreed, self.controller)
            }
            // Asks for something, or is an act of a later release.
            _ => (true, self.controller),
        };
        if !may {
            return Err(format!("{by} is not the party that may do this"));
        }
        if controller != next {
            return Err(format!(
                "it names {controller} as the controller, expected is {next}"
            ));
        }
        if next != self.controller {
            // A consent was the one of the controller before.
            self.consented = false;
        }
        self.controller = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use holdfast_domain::clock::Timestamp;

    use super::*;

    /// An act by a party, after which `controller` has control and `offered` was offered it.
    fn act(action: &str, by: &str, controller: &str, offered: &str) -> LedgerEntry {
        let party = |id: &str| match id {
            "" => Value::Null,
            id => json!({ "organization_id": id, "name": format!("Name of {id}") }),
        };
        let (designee, buyer) = match action.contains("transfer") {
            true => ("", offered),
            false => (offered, ""),
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
        replay(entries).and_then(|(finding, _)| finding.ok)
    }

    #[test]
    fn a_chain_of_acts_names_its_controller() {
        let (finding, name) = replay(&sale()).unwrap();
        assert_eq!(finding.ok, Some(true), "{}", finding.detail);
        assert_eq!(name.as_deref(), Some("Name of fund"));
        assert!(replay(&[act("vault.stored", "dealer", "dealer", "")]).is_none());
        let mut with_conflict = sale();
        with_conflict.insert(5, act("control.conflict", "", "bank", "fund"));
        assert_eq!(holds(&with_conflict), Some(true));
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
}
