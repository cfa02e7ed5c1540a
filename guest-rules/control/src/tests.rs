//! Every act at every stage by every party, and the obstacles and consents that change the answer.

use crate::decide;
use crate::types::{Act, ControlFacts, Decision, Obstacle, Party, RefusalReason, Stage};

use Party::{Buyer, Controller, Designee, Host, Originator, Pledgee, Viewer};

const STAGES: [Stage; 6] = [
    Stage::Originated,
    Stage::Designated,
    Stage::Controlled,
    Stage::Proposed,
    Stage::Accepted,
    Stage::Released,
];

fn facts(stage: Stage, actor: &[Party]) -> ControlFacts {
    ControlFacts {
        stage,
        actor: actor.to_vec(),
        named: Vec::new(),
        is_vaulted: true,
        obstacles: Vec::new(),
        is_expired: false,
        release_requested: false,
        pledges: 0,
        consents: Vec::new(),
        attributes: Vec::new(),
    }
}

/// Returns the decision as one word: `yes`, the reason of a refusal, or the parties that must consent.
fn word(decision: Decision) -> String {
    match decision {
        Decision::Allowed => "yes".into(),
        Decision::ConsentNeeded(parties) => format!("{parties:?}"),
        Decision::Refused(refusal) => match refusal.reason {
            RefusalReason::OutOfOrder => "order".into(),
            RefusalReason::WrongParty => "party".into(),
            other => format!("{other:?}"),
        },
    }
}

/// Returns the decisions about an act by a party, for each of [`STAGES`] in order.
fn row(act: Act, actor: &[Party]) -> String {
    let at = |stage| word(decide(act, &facts(stage, actor)));
    STAGES.map(at).join(" ")
}

#[test]
fn every_act_is_for_one_party_at_its_stages() {
    // Columns: originated designated controlled proposed accepted released
    let table = [
        (
            Act::Designate,
            Originator,
            "yes order order order order order",
        ),
        (
            Act::Designate,
            Viewer,
            "party order order order order order",
        ),
        (Act::Accept, Designee, "order yes order order order order"),
        (
            Act::Accept,
            Originator,
            "order party order order order order",
        ),
        (Act::Decline, Designee, "order yes order order order order"),
        (
            Act::Decline,
            Originator,
            "order yes order order order order",
        ),
        (Act::Decline, Viewer, "order party order order order order"),
        (
            Act::ProposeTransfer,
            Controller,
            "yes order yes order order order",
        ),
        (
            Act::ProposeTransfer,
            Originator,
            "party order party order order order",
        ),
        (
            Act::AcceptTransfer,
            Buyer,
            "order order order yes order order",
        ),
        (
            Act::AcceptTransfer,
            Controller,
            "order order order party order order",
        ),
        (
            Act::ConfirmTransfer,
            Controller,
            "order order order order yes order",
        ),
        (
            Act::ConfirmTransfer,
            Buyer,
            "order order order order party order",
        ),
        (
            Act::CancelTransfer,
            Controller,
            "order order order yes yes order",
        ),
        (
            Act::CancelTransfer,
            Buyer,
            "order order order yes yes order",
        ),
        (
            Act::CancelTransfer,
            Originator,
            "order order order party party order",
        ),
        (
            Act::ExpireTransfer,
            Host,
            "order order order order order order",
        ),
        (
            Act::ExpireTransfer,
            Controller,
            "order order order party party order",
        ),
        (Act::Pledge, Controller, "yes order yes order order order"),
        (Act::Pledge, Pledgee, "party order party order order order"),
        (Act::Release, Controller, "yes order yes order order yes"),
        (Act::Release, Buyer, "party party party party party party"),
        (
            Act::ConvertToPaper,
            Controller,
            "yes order yes order order order",
        ),
    ];
    for (act, party, expected) in table {
        assert_eq!(row(act, &[party]), expected, "{act:?} by {party:?}");
    }
}

#[test]
fn acts_without_a_stage_depend_on_the_party_only() {
    for party in [Originator, Controller, Designee, Buyer, Pledgee, Viewer] {
        assert!(!row(Act::Inspect, &[party]).contains("party"), "{party:?}");
    }
    assert!(!row(Act::Inspect, &[]).contains("yes"));
    for act in [Act::GrantView, Act::RevokeView] {
        assert!(!row(act, &[Controller]).contains("party"), "{act:?}");
        assert!(!row(act, &[Originator, Viewer]).contains("yes"), "{act:?}");
    }
    assert!(!row(Act::ReleasePledge, &[Pledgee]).contains("party"));
    assert!(!row(Act::ReleasePledge, &[Controller]).contains("yes"));
}

#[test]
fn the_originator_needs_the_consent_of_a_controller_to_take_the_copy_out() {
    for act in [Act::Release, Act::Retrieve, Act::ConvertToPaper] {
        let without = facts(Stage::Controlled, &[Originator]);
        assert_eq!(
            word(decide(act, &without)),
            "[Party::Controller]",
            "{act:?}"
        );
        let with = ControlFacts {
            consents: vec![Controller],
            ..without
        };
        assert_eq!(word(decide(act, &with)), "yes", "{act:?}");
        let own = facts(Stage::Originated, &[Originator, Controller]);
        assert_eq!(word(decide(act, &own)), "yes", "{act:?}");
    }
}

#[test]
fn a_pledged_record_needs_the_consent_of_its_pledgee_to_move() {
    let acts = [
        (Act::Release, Stage::Controlled),
        (Act::ConvertToPaper, Stage::Controlled),
        (Act::ProposeTransfer, Stage::Controlled),
        (Act::ConfirmTransfer, Stage::Accepted),
        (Act::Pledge, Stage::Controlled),
    ];
    for (act, stage) in acts {
        let pledged = ControlFacts {
            pledges: 1,
            ..facts(stage, &[Controller])
        };
        assert_eq!(word(decide(act, &pledged)), "[Party::Pledgee]", "{act:?}");
        let with = ControlFacts {
            consents: vec![Pledgee],
            ..pledged
        };
        assert_eq!(word(decide(act, &with)), "yes", "{act:?}");
    }
}

#[test]
fn a_requested_release_is_answered_by_the_controller_and_blocks_a_sale() {
    for act in [Act::ConsentToRelease, Act::RefuseRelease] {
        let asked = |actor: &[Party]| ControlFacts {
            release_requested: true,
            ..facts(Stage::Controlled, actor)
        };
        assert_eq!(word(decide(act, &asked(&[Controller]))), "yes");
        assert_eq!(word(decide(act, &asked(&[Originator]))), "party");
        assert_eq!(
            word(decide(act, &facts(Stage::Controlled, &[Controller]))),
            "order"
        );
    }
    for act in [Act::ConsentToRelease, Act::RefuseRelease] {
        let late = ControlFacts {
            release_requested: true,
            ..facts(Stage::Released, &[Controller])
        };
        assert_eq!(word(decide(act, &late)), "order", "after the release");
    }
    for act in [Act::ProposeTransfer, Act::Pledge] {
        let asked = ControlFacts {
            release_requested: true,
            ..facts(Stage::Controlled, &[Controller])
        };
        assert_eq!(word(decide(act, &asked)), "order", "{act:?}");
    }
}

#[test]
fn a_record_with_an_obstacle_does_not_change_hands() {
    let acts = [
        (Act::Designate, Stage::Originated, Originator),
        (Act::Accept, Stage::Designated, Designee),
        (Act::ProposeTransfer, Stage::Controlled, Controller),
        (Act::AcceptTransfer, Stage::Proposed, Buyer),
        (Act::ConfirmTransfer, Stage::Accepted, Controller),
        (Act::Pledge, Stage::Controlled, Controller),
        (Act::ConvertToPaper, Stage::Controlled, Controller),
    ];
    for (act, stage, party) in acts {
        let outside = ControlFacts {
            is_vaulted: false,
            ..facts(stage, &[party])
        };
        assert!(
            word(decide(act, &outside)).contains("NotVaulted"),
            "{act:?}"
        );
        for (obstacle, reason) in [
            (Obstacle::Unpaid, "Unpaid"),
            (Obstacle::IdentityOpen, "IdentityOpen"),
            (Obstacle::Held, "Held"),
        ] {
            let held = ControlFacts {
                obstacles: vec![obstacle],
                ..facts(stage, &[party])
            };
            assert!(word(decide(act, &held)).contains(reason), "{act:?}");
        }
    }
}

#[test]
fn nobody_transfers_a_record_to_its_controller() {
    for (act, actor) in [
        (Act::Designate, vec![Originator, Controller]),
        (Act::ProposeTransfer, vec![Controller]),
        (Act::Pledge, vec![Controller]),
    ] {
        let own = ControlFacts {
            named: vec![Controller],
            ..facts(Stage::Originated, &actor)
        };
        assert!(word(decide(act, &own)).contains("ToOneself"), "{act:?}");
    }
}

#[test]
fn an_offer_ends_with_its_time() {
    let late = |stage, party| ControlFacts {
        is_expired: true,
        ..facts(stage, &[party])
    };
    let accept = decide(Act::AcceptTransfer, &late(Stage::Proposed, Buyer));
    assert!(word(accept).contains("Expired"));
    let confirm = decide(Act::ConfirmTransfer, &late(Stage::Accepted, Controller));
    assert!(word(confirm).contains("Expired"));
    for stage in [Stage::Proposed, Stage::Accepted] {
        assert_eq!(word(decide(Act::ExpireTransfer, &late(stage, Host))), "yes");
    }
}
