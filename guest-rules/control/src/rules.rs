//! One function for each act, in the order of `wit/control/control.wit`.

use crate::types::{Act, ControlFacts, Decision, Obstacle, Party, Refusal, RefusalReason, Stage};

use Party::{Buyer, Controller, Designee, Host, Originator, Pledgee, Viewer};
use Stage::{Accepted, Controlled, Designated, Originated, Proposed, Released};

/// The system must reliably establish the purchaser as the party to which the copy was assigned.
const ASSIGNED: &str = "UCC 9-105(a)";
/// Copies that add or change an assignee need the consent of the secured party. In the text of 2022:
/// the purchaser can prevent others from adding or changing the identified purchaser.
const CONSENT: &str = "UCC 9-105(b)(4), 9-105(c)(3)(A)";
/// The purchaser alone has the power to transfer control.
const TRANSFER: &str = "UCC 9-105(c)(3)(B)";
/// Terms that the parties accept by using the service. No provision of the statute requires it.
const AGREEMENT: &str = "agreement of the parties";
/// A matter of order, without a provision behind it.
const ORDER: &str = "";

/// The first objection of a rule, if there is one.
type Rule = Result<(), Decision>;

/// Decides whether the acting party may do this now.
pub fn decide(act: Act, facts: &ControlFacts) -> Decision {
    let rule = match act {
        Act::Designate => designate(facts),
        Act::Accept => accept(facts),
        Act::Decline => decline(facts),
        Act::ProposeTransfer => propose_transfer(facts),
        Act::Inspect => inspect(facts),
        Act::AcceptTransfer => accept_transfer(facts),
        Act::ConfirmTransfer => confirm_transfer(facts),
        Act::CancelTransfer => cancel_transfer(facts),
        Act::ExpireTransfer => expire_transfer(facts),
        Act::Pledge => pledge(facts),
        Act::ReleasePledge => release_pledge(facts),
        Act::GrantView | Act::RevokeView => change_views(facts),
        Act::ConsentToRelease | Act::RefuseRelease => answer_release(facts),
        Act::Release => release(facts),
        Act::Retrieve => retrieve(facts),
        Act::ConvertToPaper => convert_to_paper(facts),
    };

    rule.err().unwrap_or(Decision::Allowed)
}

fn designate(facts: &ControlFacts) -> Rule {
    at(facts, &[Originated], "designated")?;
    by(
        facts,
        &[Originator],
        "Only the originator designates a controller",
        ASSIGNED,
    )?;

    to_another(facts)?;
    movable(facts)?;

    // A pledged record stays with its pledgor.
    match facts.pledges {
        0 => Ok(()),
        _ => needs(facts, &[Pledgee]),
    }
}

fn accept(facts: &ControlFacts) -> Rule {
    at(facts, &[Designated], "accepted")?;
    by(
        facts,
        &[Designee],
        "Only the designated party accepts control",
        ASSIGNED,
    )?;
    // Payment, identity and integrity may have changed since the designation.
    movable(facts)
}

fn decline(facts: &ControlFacts) -> Rule {
    at(facts, &[Designated], "declined")?;
    // Control stays where it is, so no obstacle and no consent is asked about.
    let only = "Only the designated party declines, or the originator withdraws the designation";
    by(facts, &[Designee, Originator], only, ORDER)
}

fn propose_transfer(facts: &ControlFacts) -> Rule {
    at(facts, &[Originated, Controlled], "offered")?;
    by(
        facts,
        &[Controller],
        "Only the controller transfers control",
        TRANSFER,
    )?;

    // A release that waits for an answer could take the record out of the sale.
    to_another(facts)?;
    movable(facts)?;
    without_open_release(facts)?;

    with_consents(facts)
}

fn inspect(facts: &ControlFacts) -> Rule {
    let parties = [Originator, Controller, Designee, Buyer, Pledgee, Viewer];
    by(
        facts,
        &parties,
        "Only parties of the record look at it",
        ORDER,
    )
}

fn accept_transfer(facts: &ControlFacts) -> Rule {
    at(facts, &[Proposed], "accepted by a buyer")?;
    by(
        facts,
        &[Buyer],
        "Only the buyer accepts the offer",
        ASSIGNED,
    )?;

    // The job that ends offers may be late.
    // Control passes only when the controller confirms, so no consent is needed.
    in_time(facts)?;
    movable(facts)
}

fn confirm_transfer(facts: &ControlFacts) -> Rule {
    at(facts, &[Accepted], "confirmed")?;
    by(
        facts,
        &[Controller],
        "Only the controller transfers control",
        TRANSFER,
    )?;

    // Everything is asked again, because time has passed since the offer: a pledge or an obstacle may be new.
    in_time(facts)?;
    movable(facts)?;
    with_consents(facts)
}

fn cancel_transfer(facts: &ControlFacts) -> Rule {
    // An end only unlocks the record, so neither time nor obstacles stand in its way.
    at(facts, &[Proposed, Accepted], "taken out of a transfer")?;
    by(
        facts,
        &[Controller, Buyer],
        "Only seller and buyer cancel a transfer",
        ORDER,
    )
}

fn expire_transfer(facts: &ControlFacts) -> Rule {
    at(facts, &[Proposed, Accepted], "taken out of a transfer")?;
    by(facts, &[Host], "A transfer expires by its time only", ORDER)?;
    // Rules have no clock. The host states whether the time is over.
    if facts.is_expired {
        Ok(())
    } else {
        refuse(
            RefusalReason::OutOfOrder,
            "The transfer has time left",
            ORDER,
        )
    }
}

fn pledge(facts: &ControlFacts) -> Rule {
    at(facts, &[Originated, Controlled], "pledged")?;
    by(
        facts,
        &[Controller],
        "Only the controller pledges a record",
        AGREEMENT,
    )?;

    // A release that waits for an answer could take the security from the pledgee.
    to_another(facts)?;
    movable(facts)?;
    without_open_release(facts)?;

    with_consents(facts)
}

fn release_pledge(facts: &ControlFacts) -> Rule {
    // A pledgee can let go at any stage: nothing moves by it.
    by(
        facts,
        &[Pledgee],
        "Only the pledgee gives up its pledge",
        AGREEMENT,
    )
}

fn change_views(facts: &ControlFacts) -> Rule {
    by(
        facts,
        &[Controller],
        "Only the controller decides who may look at a record",
        AGREEMENT,
    )
}

fn answer_release(facts: &ControlFacts) -> Rule {
    by(
        facts,
        &[Controller],
        "Only the controller answers a requested release",
        CONSENT,
    )?;

    // The model of all interleavings found this case: the controller
    // may have released the record itself meanwhile.
    if facts.stage == Released {
        return at(facts, &[], "released again");
    }

    if facts.release_requested {
        Ok(())
    } else {
        refuse(
            RefusalReason::OutOfOrder,
            "No release is waiting for an answer",
            ORDER,
        )
    }
}

/// A repeated release gives the same archive again.
fn release(facts: &ControlFacts) -> Rule {
    let only = "Only the originator and the controller release a record";
    by(facts, &[Originator, Controller], only, CONSENT)?;
    if facts.stage == Released {
        return Ok(());
    }
    at(facts, &[Originated, Controlled], "released")?;
    with_consents(facts)
}

fn retrieve(facts: &ControlFacts) -> Rule {
    let only = "Only the originator and the controller get the authoritative copy";
    by(facts, &[Originator, Controller], only, CONSENT)?;
    // The copy stays in the vault, so the pledgee keeps its security and is not asked.
    needs(facts, &[Controller])
}

fn convert_to_paper(facts: &ControlFacts) -> Rule {
    at(facts, &[Originated, Controlled], "converted")?;
    let only = "Only the originator and the controller convert a record";
    by(facts, &[Originator, Controller], only, AGREEMENT)?;
    // Paper cannot be repaired or called back, so damage and open payments are asked about here.
    movable(facts)?;
    with_consents(facts)
}

fn at(facts: &ControlFacts, stages: &[Stage], done: &str) -> Rule {
    if stages.contains(&facts.stage) {
        return Ok(());
    }

    let state = match facts.stage {
        Originated => "no other party was designated",
        Designated => "a designated party has not answered yet",
        Controlled => "another party has control",
        Proposed => "it is offered to a buyer",
        Accepted => "a buyer has accepted it",
        Released => "its authoritative copy was released",
    };
    let message = format!("The record cannot be {done}: {state}");

    refuse(RefusalReason::OutOfOrder, message, ORDER)
}

fn by(facts: &ControlFacts, parties: &[Party], only: &str, source: &str) -> Rule {
    if parties.iter().any(|party| facts.actor.contains(party)) {
        Ok(())
    } else {
        refuse(RefusalReason::WrongParty, only, source)
    }
}

fn to_another(facts: &ControlFacts) -> Rule {
    if facts.named.contains(&Controller) {
        refuse(
            RefusalReason::ToOneself,
            "This party has control already",
            ASSIGNED,
        )
    } else {
        Ok(())
    }
}

/// Only a record in the vault and without obstacles changes hands.
fn movable(facts: &ControlFacts) -> Rule {
    // One reason is enough for the caller. The next one shows when this one is gone.
    let (reason, message) = match facts.obstacles.first() {
        Some(Obstacle::Unpaid) => (RefusalReason::Unpaid, "Payment has not been completed"),
        Some(Obstacle::IdentityOpen) => (
            RefusalReason::IdentityOpen,
            "A signer's identity questions are open",
        ),
        Some(Obstacle::Held) => (
            RefusalReason::Held,
            "The record is held after an integrity check",
        ),
        None if !facts.is_vaulted => (
            RefusalReason::NotVaulted,
            "No authoritative copy is in the vault",
        ),
        None => return Ok(()),
    };

    refuse(reason, message, "UCC 9-105(b)(1)")
}

fn in_time(facts: &ControlFacts) -> Rule {
    if facts.is_expired {
        refuse(
            RefusalReason::Expired,
            "The time of the offer is over",
            ORDER,
        )
    } else {
        Ok(())
    }
}

fn without_open_release(facts: &ControlFacts) -> Rule {
    if facts.release_requested {
        let message = "A requested release of the record waits for an answer";
        refuse(RefusalReason::OutOfOrder, message, ORDER)
    } else {
        Ok(())
    }
}

/// An act that takes a record from its controller, or from a pledgee, needs their consent.
fn with_consents(facts: &ControlFacts) -> Rule {
    match facts.pledges {
        0 => needs(facts, &[Controller]),
        _ => needs(facts, &[Controller, Pledgee]),
    }
}

/// A party needs no consent of its own.
fn needs(facts: &ControlFacts, parties: &[Party]) -> Rule {
    // Consents are those for this very act since control last changed. The host leaves older ones out.
    let given = |party: &Party| facts.actor.contains(party) || facts.consents.contains(party);
    let missing: Vec<Party> = parties
        .iter()
        .filter(|party| !given(party))
        .copied()
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Decision::ConsentNeeded(missing))
    }
}

fn refuse(reason: RefusalReason, message: impl Into<String>, source: &str) -> Rule {
    Err(Decision::Refused(Refusal {
        reason,
        message: message.into(),
        source: source.into(),
    }))
}
