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

/// Returns the words of a refusal, and the provision that they cite.
fn refused(act: Act, facts: &ControlFacts) -> (String, String) {
    match decide(act, facts) {
        Decision::Refused(refusal) => (refusal.message, refusal.source),
        other => panic!("{act:?}: {other:?}"),
    }
}

/// "Only …" names the parties that may act, with a source where a provision has the rule.
#[test]
fn a_refusal_names_the_parties_that_may_act_and_its_source() {
    let consent = "UCC 9-105(b)(4), 9-105(c)(3)(A)";
    let agreement = "agreement of the parties";
    let cases = [
        (
            Act::Designate,
            Stage::Originated,
            "Only the originator designates a controller",
            "UCC 9-105(a)",
        ),
        (
            Act::Accept,
            Stage::Designated,
            "Only the designated party accepts control",
            "UCC 9-105(a)",
        ),
        (
            Act::Decline,
            Stage::Designated,
            "Only the designated party declines, or the originator withdraws the designation",
            "",
        ),
        (
            Act::ProposeTransfer,
            Stage::Controlled,
            "Only the controller transfers control",
            "UCC 9-105(c)(3)(B)",
        ),
        (
            Act::Inspect,
            Stage::Controlled,
            "Only parties of the record look at it",
            "",
        ),
        (
            Act::AcceptTransfer,
            Stage::Proposed,
            "Only the buyer accepts the offer",
            "UCC 9-105(a)",
        ),
        (
            Act::ConfirmTransfer,
            Stage::Accepted,
            "Only the controller transfers control",
            "UCC 9-105(c)(3)(B)",
        ),
        (
            Act::CancelTransfer,
            Stage::Accepted,
            "Only seller and buyer cancel a transfer",
            "",
        ),
        (
            Act::ExpireTransfer,
            Stage::Accepted,
            "A transfer expires by its time only",
            "",
        ),
        (
            Act::Pledge,
            Stage::Controlled,
            "Only the controller pledges a record",
            agreement,
        ),
        (
            Act::ReleasePledge,
            Stage::Controlled,
            "Only the pledgee gives up its pledge",
            agreement,
        ),
        (
            Act::GrantView,
            Stage::Controlled,
            "Only the controller decides who may look at a record",
            agreement,
        ),
        (
            Act::ConsentToRelease,
            Stage::Controlled,
            "Only the controller answers a requested release",
            consent,
        ),
        (
            Act::Release,
            Stage::Controlled,
            "Only the originator and the controller release a record",
            consent,
        ),
        (
            Act::Retrieve,
            Stage::Controlled,
            "Only the originator and the controller get the authoritative copy",
            consent,
        ),
        (
            Act::ConvertToPaper,
            Stage::Controlled,
            "Only the originator and the controller convert a record",
            agreement,
        ),
    ];
    for (act, stage, words, source) in cases {
        let (message, cited) = refused(act, &facts(stage, &[]));
        assert_eq!(
            (message.as_str(), cited.as_str()),
            (words, source),
            "{act:?}"
        );
    }
}

#[test]
fn a_refusal_states_where_the_record_is() {
    let cases = [
        (
            Act::Accept,
            Stage::Originated,
            "The record cannot be accepted: no other party was designated",
        ),
        (
            Act::Designate,
            Stage::Designated,
            "The record cannot be designated: a designated party has not answered yet",
        ),
        (
            Act::Decline,
            Stage::Controlled,
            "The record cannot be declined: another party has control",
        ),
        (
            Act::Pledge,
            Stage::Proposed,
            "The record cannot be pledged: it is offered to a buyer",
        ),
        (
            Act::ProposeTransfer,
            Stage::Accepted,
            "The record cannot be offered: a buyer has accepted it",
        ),
        (
            Act::ConvertToPaper,
            Stage::Released,
            "The record cannot be converted: its authoritative copy was released",
        ),
        (
            Act::ConfirmTransfer,
            Stage::Proposed,
            "The record cannot be confirmed: it is offered to a buyer",
        ),
        (
            Act::AcceptTransfer,
            Stage::Controlled,
            "The record cannot be accepted by a buyer: another party has control",
        ),
        (
            Act::CancelTransfer,
            Stage::Controlled,
            "The record cannot be taken out of a transfer: another party has control",
        ),
        (
            Act::ConsentToRelease,
            Stage::Released,
            "The record cannot be released again: its authoritative copy was released",
        ),
        (
            Act::ConsentToRelease,
            Stage::Controlled,
            "No release is waiting for an answer",
        ),
    ];

    let everybody = [Originator, Controller, Designee, Buyer, Pledgee, Viewer];
    for (act, stage, words) in cases {
        assert_eq!(refused(act, &facts(stage, &everybody)).0, words, "{act:?}");
    }
}

#[test]
fn a_refusal_names_the_obstacle() {
    let own = facts(Stage::Controlled, &[Controller]);
    let words = |facts: &ControlFacts| refused(Act::ProposeTransfer, facts);
    for (obstacle, message) in [
        (Obstacle::Unpaid, "Payment has not been completed"),
        (
            Obstacle::IdentityOpen,
            "A signer's identity questions are open",
        ),
        (
            Obstacle::Held,
            "The record is held after an integrity check",
        ),
    ] {
        let obstacles = vec![obstacle];
        let (said, source) = words(&ControlFacts {
            obstacles,
            ..own.clone()
        });
        assert_eq!(
            (said.as_str(), source.as_str()),
            (message, "UCC 9-105(b)(1)")
        );
    }

    let outside = ControlFacts {
        is_vaulted: false,
        ..own.clone()
    };
    assert_eq!(words(&outside).0, "No authoritative copy is in the vault");

    let oneself = ControlFacts {
        named: vec![Controller],
        ..own.clone()
    };
    assert_eq!(
        words(&oneself),
        (
            "This party has control already".into(),
            "UCC 9-105(a)".into()
        )
    );

    let asked = ControlFacts {
        release_requested: true,
        ..own
    };
    assert_eq!(
        words(&asked).0,
        "A requested release of the record waits for an answer"
    );

    let late = ControlFacts {
        is_expired: true,
        ..facts(Stage::Proposed, &[Buyer])
    };
    assert_eq!(
        refused(Act::AcceptTransfer, &late).0,
        "The time of the offer is over"
    );

    let early = refused(Act::ExpireTransfer, &facts(Stage::Proposed, &[Host]));
    assert_eq!(early.0, "The transfer has time left");
}
