//! Model of one record with two sellers and two buyers: every interleaving of their acts, of the job
//! that makes the steps of transfers, of consents, and of time.
//!
//! The rules are the component's own, and the changes of a record those of the host
//! (`holdfast_domain::control`). A crash is an interleaving in which a step comes later; a retry is one
//! in which it is asked for again.

use holdfast_control::decide;
use holdfast_control::types::{Act, ControlFacts, Decision, Party, Stage};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::{ControlRecord, ControlStage, LivePledge, ReleaseState};
use holdfast_domain::id::{EnvelopeId, OrgId, PledgeId, TransferId};
use holdfast_domain::transfer::{RecordState, TransferState};
use stateright::{Checker as _, Model, Property};

/// Largest number of transfers in one run.
const SALES: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sale {
    id: TransferId,
    seller: OrgId,
    buyer: OrgId,
    state: TransferState,
    record: RecordState,
    /// The party that asked for the step in progress; none if the time was over.
    acting: Option<OrgId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    record: ControlRecord,
    sales: Vec<Sale>,
    /// The originator's request for a release.
    release: Option<ReleaseState>,
    /// The controller that agreed to the release, or released by itself.
    agreed: Option<OrgId>,
    /// The controller that gave the live pledge.
    pledgor: Option<OrgId>,
    /// Whether the time of all offers is over.
    late: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Propose {
        seller: OrgId,
        buyer: OrgId,
    },
    Begin {
        sale: usize,
        by: Option<OrgId>,
        to: TransferState,
    },
    Job {
        sale: usize,
    },
    TimePasses,
    AskForRelease,
    Answer {
        by: OrgId,
        consents: bool,
    },
    Release {
        by: OrgId,
    },
    Pledge {
        by: OrgId,
    },
    ReleasePledge {
        by: OrgId,
    },
}

struct Trade {
    originator: OrgId,
    sellers: [OrgId; 2],
    buyers: [OrgId; 2],
    pledge: LivePledge,
    /// Ids are given in advance, so equal states are equal.
    transfers: Vec<TransferId>,
    envelope: EnvelopeId,
}

impl Trade {
    fn new() -> Self {
        Self {
            originator: OrgId::new(),
            sellers: [OrgId::new(), OrgId::new()],
            buyers: [OrgId::new(), OrgId::new()],
            pledge: LivePledge {
                id: PledgeId::new(),
                pledgee: OrgId::new(),
            },
            transfers: (0..SALES).map(|_| TransferId::new()).collect(),
            envelope: EnvelopeId::new(),
        }
    }

    fn everybody(&self) -> impl Iterator<Item = &OrgId> {
        let sides = self.sellers.iter().chain(&self.buyers);
        sides.chain([&self.originator, &self.pledge.pledgee])
    }
}

/// Asks the rules as the host does.
fn allowed(world: &World, act: Act, actor: Option<&OrgId>, named: Option<&OrgId>) -> bool {
    let record = &world.record;
    let parts = |party: &OrgId| {
        let mut parts = Vec::new();
        if record.org == *party {
            parts.push(Party::Originator);
        }

        if record.controller == *party {
            parts.push(Party::Controller);
        }

        if record.named.as_ref() == Some(party) {
            parts.push(Party::Buyer);
        }

        if record.pledgee() == Some(party) {
            parts.push(Party::Pledgee);
        }

        parts
    };

    let answers = matches!(act, Act::ConsentToRelease | Act::RefuseRelease);
    let consents = act == Act::Release && world.release == Some(ReleaseState::Consented);
    let facts = ControlFacts {
        stage: match record.stage {
            ControlStage::Originated => Stage::Originated,
            ControlStage::Designated => Stage::Designated,
            ControlStage::Controlled => Stage::Controlled,
            ControlStage::Proposed => Stage::Proposed,
            ControlStage::Accepted => Stage::Accepted,
            ControlStage::Released => Stage::Released,
        },
        actor: actor.map_or_else(|| vec![Party::Host], parts),
        named: named.map(parts).unwrap_or_default(),
        is_vaulted: record.stage != ControlStage::Released,
        obstacles: Vec::new(),
        is_expired: act == Act::ExpireTransfer,
        release_requested: if answers {
            world.release == Some(ReleaseState::Requested)
        } else {
            world.release.is_some()
        },
        pledges: u32::from(record.pledge.is_some()),
        consents: if consents {
            vec![Party::Controller]
        } else {
            Vec::new()
        },
        attributes: Vec::new(),
    };

    decide(act, &facts) == Decision::Allowed
}

fn is_open(sale: &Sale) -> bool {
    let waits = [TransferState::Proposed, TransferState::Accepted];
    sale.state.step().is_some() || waits.contains(&sale.state)
}

fn is_ending(state: TransferState) -> bool {
    matches!(state, TransferState::Cancelling | TransferState::Expiring)
}

/// Makes the step in progress of a sale; `None` if there is none.
fn job(world: &World, index: usize) -> Option<World> {
    let mut next = world.clone();
    let sale = &mut next.sales[index];
    let step = sale.state.step()?;
    let holds = world.record.transfer.as_ref() == Some(&sale.id);
    let record = world.record.clone();
    if is_ending(sale.state) {
        next.record = if holds { record.kept() } else { record };
        sale.record = step.to;
        sale.state = step.done;
        return Some(next);
    }

    let (act, named) = match step.to {
        RecordState::Proposed => (Act::ProposeTransfer, Some(&sale.buyer)),
        RecordState::Accepted => (Act::AcceptTransfer, None),
        _ => (Act::ConfirmTransfer, None),
    };
    let moves = (holds || step.to == RecordState::Proposed)
        && allowed(world, act, sale.acting.as_ref(), named);
    next.record = match (moves, step.to) {
        (true, RecordState::Proposed) => record.proposed(sale.buyer.clone(), sale.id.clone()),
        (true, RecordState::Accepted) => record.accepted(),
        (true, _) => record.passed_on(),
        (false, _) if holds => record.kept(),
        (false, _) => record,
    };

    (sale.record, sale.state) = if moves {
        (step.to, step.done)
    } else {
        (RecordState::Refused, TransferState::Failed)
    };

    Some(next)
}

impl Model for Trade {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            record: ControlRecord {
                org: self.originator.clone(),
                envelope: self.envelope.clone(),
                controller: self.sellers[0].clone(),
                named: None,
                stage: ControlStage::Controlled,
                // Not counted: states that differ in it alone are equal.
                epoch: 0,
                pledge: None,
                release: None,
                transfer: None,
                changed_at: Timestamp::from_millis(0),
                controlled_since: Timestamp::from_millis(0),
            },
            sales: Vec::new(),
            release: None,
            agreed: None,
            pledgor: None,
            late: false,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Step>) {
        if world.sales.len() < SALES && !world.late {
            for seller in &self.sellers {
                for buyer in &self.buyers {
                    let (seller, buyer) = (seller.clone(), buyer.clone());
                    actions.push(Step::Propose { seller, buyer });
                }
            }
        }

        for (sale, one) in world.sales.iter().enumerate() {
            actions.push(Step::Job { sale });
            for party in [&one.seller, &one.buyer] {
                for to in [
                    TransferState::Accepting,
                    TransferState::Confirming,
                    TransferState::Cancelling,
                ] {
                    let by = Some(party.clone());
                    actions.push(Step::Begin { sale, by, to });
                }
            }

            let to = TransferState::Expiring;
            actions.push(Step::Begin { sale, by: None, to });
        }

        actions.push(Step::TimePasses);
        actions.push(Step::AskForRelease);
        for by in self.everybody() {
            actions.push(Step::Release { by: by.clone() });
            actions.push(Step::Pledge { by: by.clone() });
            actions.push(Step::ReleasePledge { by: by.clone() });

            for consents in [true, false] {
                let by = by.clone();
                actions.push(Step::Answer { by, consents });
            }
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        match step {
            Step::Propose { seller, buyer } => next.sales.push(Sale {
                id: self.transfers[world.sales.len()].clone(),
                acting: Some(seller.clone()),
                seller,
                buyer,
                state: TransferState::Proposing,
                record: RecordState::Pending,
            }),
            Step::Begin { sale, by, to } => {
                let one = &mut next.sales[sale];
                let may = match to {
                    TransferState::Accepting => {
                        one.state == TransferState::Proposed && by.as_ref() == Some(&one.buyer)
                    }
                    TransferState::Confirming => {
                        one.state == TransferState::Accepted && by.as_ref() == Some(&one.seller)
                    }
                    _ => is_open(one) && one.state.step().is_none(),
                };

                let in_time = match to {
                    TransferState::Cancelling => true,
                    TransferState::Expiring => world.late,
                    _ => !world.late,
                };
                if !may || !in_time {
                    return None;
                }

                one.state = to;
                one.acting = by;
            }
            Step::Pledge { by } => {
                let pledgee = &self.pledge.pledgee;
                if !allowed(world, Act::Pledge, Some(&by), Some(pledgee)) {
                    return None;
                }
                next.record.pledge = Some(self.pledge.clone());
                next.pledgor = Some(by);
            }
            Step::ReleasePledge { by } => {
                if !allowed(world, Act::ReleasePledge, Some(&by), None) {
                    return None;
                }
                (next.record.pledge, next.pledgor) = (None, None);
            }
            Step::Job { sale } => return job(world, sale),
            Step::TimePasses => {
                if world.late {
                    return None;
                }
                next.late = true;
            }
            Step::AskForRelease => {
                let waits = [ControlStage::Originated, ControlStage::Controlled];
                if world.release.is_some() || !waits.contains(&world.record.stage) {
                    return None;
                }
                next.release = Some(ReleaseState::Requested);
            }
            Step::Answer { by, consents } => {
                let act = if consents {
                    Act::ConsentToRelease
                } else {
                    Act::RefuseRelease
                };
                if !allowed(world, act, Some(&by), None) {
                    return None;
                }

                next.release = consents.then_some(ReleaseState::Consented);
                next.agreed = consents.then_some(by);
            }
            Step::Release { by } => {
                let done = world.record.stage == ControlStage::Released;
                if done || !allowed(world, Act::Release, Some(&by), None) {
                    return None;
                }

                if world.record.controller == by {
                    next.agreed = Some(by);
                }

                next.record.stage = ControlStage::Released;
            }
        }

        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "one controller: the one that bought the record",
                |model: &Trade, world: &World| {
                    let bought = |sale: &&Sale| sale.record == RecordState::Confirmed;
                    let last = world.sales.iter().filter(bought).map(|sale| &sale.buyer);
                    let first = [&model.sellers[0]];
                    first
                        .into_iter()
                        .chain(last)
                        .any(|org| *org == world.record.controller)
                },
            ),
            Property::always(
                "a record is in one transfer at most, which names it",
                |_: &Trade, world: &World| {
                    let holds = |sale: &Sale| {
                        let open = [RecordState::Proposed, RecordState::Accepted];
                        open.contains(&sale.record)
                    };
                    world.sales.iter().all(|sale| {
                        holds(sale) == (world.record.transfer.as_ref() == Some(&sale.id))
                    })
                },
            ),
            Property::always("no release without consent", |_: &Trade, world: &World| {
                let released = world.record.stage == ControlStage::Released;
                !released || world.agreed.as_ref() == Some(&world.record.controller)
            }),
            Property::always(
                "a released or offered record is not sold",
                |_: &Trade, world: &World| {
                    world.record.stage != ControlStage::Released || world.record.transfer.is_none()
                },
            ),
            Property::always(
                "a pledged record stays with its pledgor, in the vault",
                |_: &Trade, world: &World| match &world.record.pledge {
                    None => true,
                    Some(_) => {
                        world.pledgor.as_ref() == Some(&world.record.controller)
                            && world.record.stage != ControlStage::Released
                    }
                },
            ),
            Property::sometimes("a record is pledged", |_: &Trade, world: &World| {
                world.record.pledge.is_some()
            }),
            Property::eventually("an offer ends", |_: &Trade, world: &World| {
                world.late && !world.sales.iter().any(is_open)
            }),
            Property::sometimes("a record is sold", |model: &Trade, world: &World| {
                let bought = |sale: &&Sale| sale.record == RecordState::Confirmed;
                let sold = world.sales.iter().filter(bought).count();
                sold >= 1 && model.buyers.contains(&world.record.controller)
            }),
            Property::sometimes(
                "a release is made by consent",
                |model: &Trade, world: &World| {
                    world.record.stage == ControlStage::Released
                        && world.release == Some(ReleaseState::Consented)
                        && world.agreed.as_ref() == Some(&model.sellers[0])
                },
            ),
        ]
    }
}

#[test]
fn all_interleavings_keep_one_controller_and_need_consent() {
    let checker = Trade::new().checker().threads(2).spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
    assert!(checker.unique_state_count() > 1_000);
}
