//! Vectors of `rules.control`, and the questions that they do not list.

use serde::Deserialize;

use super::{ConformanceRun, data};
use crate::inspection::AdmissionReason;
use crate::rules::{ControlPre, control, decide_control};
use crate::slot::ActiveComponent;
use holdfast_domain::component::ConformanceResult;

#[derive(Deserialize)]
struct ControlVectors {
    version: String,
    /// Acts that must stay possible.
    way: Vec<ControlVector>,
    /// Acts that must stay impossible.
    never: Vec<ControlVector>,
}

#[derive(Deserialize)]
struct ControlVector {
    name: String,
    act: control::Act,
    facts: control::ControlFacts,
}

/// Runs the control vectors, then compares all acts at all stages with the default component.
pub(super) fn control_vectors(
    active: &ActiveComponent<ControlPre>,
    default: &ActiveComponent<ControlPre>,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let all: ControlVectors = data(include_str!("../../../../../wit/control/vectors.json"))?;
    let mut examination = ConformanceRun::new(&all.version);
    let way = all.way.iter().map(|vector| (vector, true));

    let never = all.never.iter().map(|vector| (vector, false));
    for (vector, possible) in way.chain(never) {
        let Some(decision) = decided(&mut examination, active, &vector.name, vector) else {
            continue;
        };

        let allowed = decision == control::Decision::Allowed;
        let otherwise = if possible {
            "is refused; without it no record can change hands"
        } else {
            "is allowed; the law does not allow it"
        };
        examination.called("decide", allowed);

        examination.expect(allowed == possible, &vector.name, otherwise);
    }

    // The vectors name single acts. Here every act at every stage is compared with the default.
    for vector in control_questions() {
        let Some(decision) = decided(&mut examination, active, &vector.name, &vector) else {
            continue;
        };
        let expected = decide_control(default, vector.act, &vector.facts);
        // A failure of the default must not let a looser candidate pass.
        let holds = expected.is_ok_and(|expected| !is_looser(&decision, &expected));
        examination.expect(holds, &vector.name, "is looser than the default rules");
    }

    examination.end(true)
}

fn decided(
    examination: &mut ConformanceRun,
    active: &ActiveComponent<ControlPre>,
    name: &str,
    vector: &ControlVector,
) -> Option<control::Decision> {
    examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_control_control();
        rules.call_decide(store, vector.act, &vector.facts)
    })
}

/// Whether a decision permits, now or after consents, what the default decision does not.
fn is_looser(decision: &control::Decision, default: &control::Decision) -> bool {
    use control::Decision::{Allowed, ConsentNeeded, Refused};
    match (decision, default) {
        (Refused(_), _) | (_, Allowed) => false,
        (_, Refused(_)) | (Allowed, ConsentNeeded(_)) => true,
        // Each consent that the default asks for protects a party. More are fine, fewer are not.
        (ConsentNeeded(given), ConsentNeeded(needed)) => {
            !needed.iter().all(|party| given.contains(party))
        }
    }
}

/// Returns every act at every stage by every party, with and without the facts that matter to some act.
fn control_questions() -> impl Iterator<Item = ControlVector> {
    use control::{Act, ControlFacts, Obstacle, Party, Stage};

    let acts = [
        Act::Designate,
        Act::Accept,
        Act::Decline,
        Act::ProposeTransfer,
        Act::Inspect,
        Act::AcceptTransfer,
        Act::ConfirmTransfer,
        Act::CancelTransfer,
        Act::ExpireTransfer,
        Act::Pledge,
        Act::ReleasePledge,
        Act::GrantView,
        Act::RevokeView,
        Act::ConsentToRelease,
        Act::RefuseRelease,
        Act::Release,
        Act::Retrieve,
        Act::ConvertToPaper,
    ];

    let stages = [
        Stage::Originated,
        Stage::Designated,
        Stage::Controlled,
        Stage::Proposed,
        Stage::Accepted,
        Stage::Released,
    ];

    // The empty list is an outsider.
    let actors: [&[Party]; 9] = [
        &[],
        &[Party::Originator],
        &[Party::Originator, Party::Controller],
        &[Party::Controller],
        &[Party::Designee],
        &[Party::Buyer],
        &[Party::Pledgee],
        &[Party::Viewer],
        &[Party::Host],
    ];

    let variants: [fn(&mut ControlFacts); 8] = [
        |_| {},
        |facts| facts.named = vec![Party::Controller],
        |facts| facts.is_vaulted = false,
        |facts| facts.obstacles = vec![Obstacle::Held],
        |facts| facts.is_expired = true,
        |facts| facts.release_requested = true,
        |facts| facts.pledges = 1,
        |facts| facts.consents = vec![Party::Controller],
    ];

    let asked = acts.into_iter().flat_map(move |act| {
        let at = stages.into_iter();
        at.flat_map(move |stage| actors.map(|actor| (act, stage, actor)))
    });
    asked.flat_map(move |(act, stage, actor)| {
        variants.map(|vary| {
            let mut facts = ControlFacts {
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
            };

            vary(&mut facts);
            let name = format!("{act:?} by {actor:?}: {facts:?}");
            ControlVector { name, act, facts }
        })
    })
}
