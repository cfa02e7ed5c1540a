//! The dispatcher: of all deliveries that are due, which is attempted next.
//!
//! A node takes an endpoint, alone, for fifteen seconds at a time, and delivers to
//! it in the order of its events. Slots go round over endpoints and not over
//! deliveries, and neither an endpoint nor an organization can have more than its
//! share of them: whoever is slow or dead is so at their own cost.
//!
//! One task owns all of this and waits for nothing: looks into the database,
//! attempts and their recording happen beside it, and tell it what came of them.

mod breaker;
mod lane;
mod recorder;
mod schedule;

use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt as _;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use self::lane::{Lane, Verdict};
use self::recorder::record;
use super::node::Node;
use crate::delivery::sender::{Parcel, Target};
use crate::domain::clock::Timestamp;
use crate::domain::id::OrgId;
use crate::domain::webhook::{DeliveryStatus, Outcome};
use crate::metrics::AttemptLabels;
use crate::service::App;
use crate::store::deliveries::{self, Due};
use crate::store::webhooks::{self, Held, OwnedEndpoint};
use crate::store::{Dialect, StoreError};

/// Attempts at once, in all and for one organization.
const SLOTS: usize = 512;
const SLOTS_OF_ORGANIZATION: usize = SLOTS / 4;
/// Endpoints held at once.
const LANES: usize = 4 * SLOTS;
/// How long an endpoint is held, and how often that is renewed, and its settings
/// read: a change that another node has made shows then.
const LEASE: Duration = Duration::from_secs(15);
const RENEWAL: Duration = Duration::from_secs(1);
/// How long a lost wake-up can go unnoticed.
const SWEEP: Duration = Duration::from_secs(1);
/// How exactly the time of a retry is met.
const TICK: Duration = Duration::from_millis(50);
/// An endpoint whose secret this node cannot read is left to others for so long.
const UNREADABLE: Duration = Duration::from_secs(60);
/// Delivers until told to stop; then finishes what is under way.
pub async fn run(app: App, node: Arc<Node>, stop: CancellationToken) {
    if let Some(earlier) = node.earlier_runs()
        && let Err(error) = webhooks::release_all(&app.store, &earlier).await
    {
        tracing::error!(%error, "endpoints of an earlier run could not be let go of");
    }
    let (told, hear) = mpsc::unbounded_channel();
    let (verdicts, to_record) = mpsc::unbounded_channel();
    let recorder = tokio::spawn(record(app.clone(), to_record, told.clone(), stop.clone()));
    let dispatcher = Dispatcher {
        node: node.run.clone(),
        lanes: HashMap::new(),
        unreadable: HashMap::new(),
        taking: HashSet::new(),
        ready: VecDeque::new(),
        waiting: HashSet::new(),
        blocked: Vec::new(),
        in_flight: HashMap::new(),
        all_in_flight: 0,
        sweeping: false,
        swept_at: None,
        renewing: false,
        renew_again: false,
        renewed_at: Instant::now(),
        told,
        verdicts,
        app,
    };
    dispatcher.run(hear, stop).await;
    if let Err(error) = recorder.await {
        tracing::error!(%error, "the recording of deliveries did not end well");
    }
}

/// What happened beside the dispatcher.
enum Happened {
    Swept(Result<Vec<OwnedEndpoint>, StoreError>),
    Taken {
        endpoint: OwnedEndpoint,
        taken: Result<Option<Box<Held>>, StoreError>,
        asked: Instant,
    },
    Renewed {
        renewed: Result<Vec<Held>, StoreError>,
        asked: Instant,
    },
    Looked {
        at: OwnedEndpoint,
        epoch: i64,
        limit: i64,
        found: Result<Vec<Due>, StoreError>,
    },
    Attempted(Box<Attempted>),
    Recorded(Vec<Verdict>),
}

/// An attempt that is over.
struct Attempted {
    at: OwnedEndpoint,
    epoch: i64,
    /// Where it went: the endpoint may have moved since.
    target: Arc<Target>,
    due: Due,
    began: Timestamp,
    outcome: Outcome,
}

struct Dispatcher {
    app: App,
    /// How this run of the node calls itself in what it holds.
    node: String,
    lanes: HashMap<OwnedEndpoint, Lane>,
    /// Whose secret this node could not read, and when it tried.
    unreadable: HashMap<OwnedEndpoint, Instant>,
    taking: HashSet<OwnedEndpoint>,
    /// Lanes in which something may be possible, in turn, each once.
    ready: VecDeque<OwnedEndpoint>,
    waiting: HashSet<OwnedEndpoint>,
    /// Lanes that lack nothing but a slot.
    blocked: Vec<OwnedEndpoint>,
    in_flight: HashMap<OrgId, usize>,
    all_in_flight: usize,
    sweeping: bool,
    swept_at: Option<Instant>,
    renewing: bool,
    /// Settings were changed since the renewal under way was asked for.
    renew_again: bool,
    renewed_at: Instant,
    told: UnboundedSender<Happened>,
    verdicts: UnboundedSender<Verdict>,
}

impl Dispatcher {
    async fn run(mut self, mut hear: UnboundedReceiver<Happened>, stop: CancellationToken) {
        let app = self.app.clone();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let stopping = stop.is_cancelled();
            tokio::select! {
                () = stop.cancelled(), if !stopping => {}
                fresh = app.store.fresh_endpoints(), if !stopping => {
                    for (endpoint, touch) in fresh {
                        // Another node's endpoint is that node's, unless this one has it.
                        if touch.here || self.lanes.contains_key(&endpoint) {
                            self.stir(endpoint, touch.changed);
                        }
                    }
                }
                Some(happened) = hear.recv() => {
                    self.hear(happened);
                    while let Ok(happened) = hear.try_recv() {
                        self.hear(happened);
                    }
                }
                _ = ticks.tick() => self.tick(stopping),
            }
            if !stop.is_cancelled() {
                self.go_round();
            } else if self.lanes.values().all(Lane::is_quiet) && self.taking.is_empty() {
                break;
            }
        }
        if let Err(error) = webhooks::release_all(&app.store, &self.node).await {
            tracing::warn!(%error, "endpoints stay held until their leases end");
        }
    }

    /// Something was committed for an endpoint, or its settings were changed.
    fn stir(&mut self, endpoint: OwnedEndpoint, changed: bool) {
        match self.lanes.get_mut(&endpoint) {
            Some(lane) => {
                lane.stir();
                if changed {
                    lane.suspend();
                    self.renew_again = self.renewing;
                    self.renew();
                }
                self.make_ready(endpoint);
            }
            None => {
                if changed {
                    self.unreadable.remove(&endpoint);
                }
                self.take(endpoint);
            }
        }
    }

    fn take(&mut self, endpoint: OwnedEndpoint) {
        if self.lanes.contains_key(&endpoint) || self.unreadable.contains_key(&endpoint) {
            return;
        }
        if self.lanes.len() + self.taking.len() >= LANES || !self.taking.insert(endpoint.clone()) {
            return;
        }
        let (app, node, told) = (self.app.clone(), self.node.clone(), self.told.clone());
        tokio::spawn(async move {
            let (asked, now) = (Instant::now(), app.clock.now());
            let taken = webhooks::take(&app.store, &endpoint, &node, now, now + LEASE).await;
            let taken = taken.map(|held| held.map(Box::new));
            let _ = told.send(Happened::Taken {
                endpoint,
                taken,
                asked,
            });
        });
    }

    fn renew(&mut self) {
        if self.renewing || self.lanes.is_empty() {
            return;
        }
        self.renewing = true;
        self.renewed_at = Instant::now();
        let (app, node, told) = (self.app.clone(), self.node.clone(), self.told.clone());
        tokio::spawn(async move {
            let (asked, now) = (Instant::now(), app.clock.now());
            let renewed = webhooks::renew(&app.store, &node, now, now + LEASE).await;
            let _ = told.send(Happened::Renewed { renewed, asked });
        });
    }

    fn tick(&mut self, stopping: bool) {
        let now = self.app.clock.now();
        if self.renewed_at.elapsed() >= RENEWAL {
            self.renew();
        }
        self.lanes.retain(|_, lane| !lane.is_lost());
        if stopping {
            return;
        }
        let period = self.app.config.sweep_interval.unwrap_or(SWEEP).min(SWEEP);
        let swept_lately = self.swept_at.is_some_and(|at| at.elapsed() < period);
        if !self.sweeping && !swept_lately {
            self.unreadable.retain(|_, at| at.elapsed() < UNREADABLE);
            self.sweep(now);
            // Of what other nodes have committed nobody tells.
            if self.app.store.dialect() == Dialect::Postgres {
                self.lanes.values_mut().for_each(Lane::stir);
            }
        }
        let mut awake = Vec::new();
        let mut idle = Vec::new();
        for (endpoint, lane) in &mut self.lanes {
            if lane.wake(now) {
                awake.push(endpoint.clone());
            } else if lane.is_idle(now) {
                idle.push(endpoint.clone());
            }
        }
        for endpoint in awake {
            self.make_ready(endpoint);
        }
        for endpoint in idle {
            self.let_go(&endpoint);
        }
    }

    fn sweep(&mut self, now: Timestamp) {
        self.sweeping = true;
        self.swept_at = Some(Instant::now());
        let (app, told) = (self.app.clone(), self.told.clone());
        tokio::spawn(async move {
            let found = async {
                let mut connection = app.store.read().await?;
                webhooks::with_work(&mut connection, now, SLOTS as i64).await
            };
            let _ = told.send(Happened::Swept(found.await));
        });
    }

    fn let_go(&mut self, endpoint: &OwnedEndpoint) {
        if let Some(lane) = self.lanes.remove(endpoint) {
            self.release(endpoint.clone(), lane.epoch);
        }
    }

    /// What cannot be let go of now is at the next renewal.
    fn release(&self, endpoint: OwnedEndpoint, epoch: i64) {
        let app = self.app.clone();
        tokio::spawn(async move {
            if let Err(error) = webhooks::release(&app.store, &endpoint, epoch).await {
                tracing::warn!(%error, "an endpoint could not be let go of");
            }
        });
    }

    fn hear(&mut self, happened: Happened) {
        match happened {
            Happened::Swept(found) => {
                self.sweeping = false;
                for endpoint in found.unwrap_or_else(|error| {
                    tracing::error!(%error, "due deliveries could not be looked for");
                    Vec::new()
                }) {
                    self.take(endpoint);
                }
            }
            Happened::Taken {
                endpoint,
                taken,
                asked,
            } => {
                self.taking.remove(&endpoint);
                match taken {
                    Ok(Some(held)) => self.open(endpoint, *held, asked + LEASE),
                    Ok(None) => {}
                    Err(error) => tracing::error!(%error, "an endpoint could not be taken"),
                }
            }
            Happened::Renewed { renewed, asked } => {
                self.renewing = false;
                match renewed {
                    // Read before the change, perhaps.
                    Ok(_) if std::mem::take(&mut self.renew_again) => self.renew(),
                    Ok(held) => self.renewed(held, asked),
                    Err(error) => tracing::error!(%error, "endpoints could not be held on to"),
                }
            }
            Happened::Looked {
                at,
                epoch,
                limit,
                found,
            } => {
                if let Err(error) = &found {
                    tracing::error!(%error, "due deliveries could not be read");
                }
                let now = self.app.clock.now();
                if let Some(lane) = self.lane(&at, epoch) {
                    lane.found(found.ok(), limit, now);
                    self.make_ready(at);
                }
            }
            Happened::Attempted(attempted) => self.attempted(*attempted),
            Happened::Recorded(verdicts) => {
                for verdict in verdicts {
                    let settlement = &verdict.settlement;
                    if let Some(lane) = self.lane(&settlement.at, settlement.epoch) {
                        lane.settled(settlement, verdict.envelope.as_ref());
                        self.make_ready(settlement.at.clone());
                    }
                }
            }
        }
    }

    /// Begins to deliver to an endpoint that was taken.
    fn open(&mut self, endpoint: OwnedEndpoint, held: Held, until: Instant) {
        let Some(target) = Target::of(&held.endpoint, &self.app.sealer) else {
            tracing::error!(
                endpoint = %endpoint.endpoint,
                "the endpoint's secret was sealed with another key than this node's"
            );
            // Another node may have the right one.
            self.unreadable.insert(endpoint.clone(), Instant::now());
            self.release(endpoint, held.epoch);
            return;
        };
        let settings = &self.app.config.webhooks;
        let lane = Lane::new(endpoint.clone(), held, target, until, settings);
        self.lanes.insert(endpoint.clone(), lane);
        self.make_ready(endpoint);
    }

    /// The lane that something was begun for, unless it was lost since.
    fn lane(&mut self, endpoint: &OwnedEndpoint, epoch: i64) -> Option<&mut Lane> {
        let lane = self.lanes.get_mut(endpoint)?;
        (lane.epoch == epoch).then_some(lane)
    }

    /// Lanes that are not among those are held no more: disabled, deleted or taken
    /// over. What is held without a lane is let go of, or nobody would ever have it.
    fn renewed(&mut self, held: Vec<Held>, asked: Instant) {
        let mut held: HashMap<_, _> = held
            .into_iter()
            .map(|held| (OwnedEndpoint::of(&held.endpoint), held))
            .collect();
        let sealer = self.app.sealer.clone();
        self.lanes.retain(|endpoint, lane| {
            let known = held.remove_entry(endpoint);
            let Some((endpoint, known)) = known.filter(|(_, held)| held.epoch == lane.epoch) else {
                // What was taken after the renewal was asked for is not in it, perhaps.
                return lane.was_opened_after(asked);
            };
            match Target::of(&known.endpoint, &sealer) {
                Some(target) => lane.renew(known, target, asked + LEASE),
                None => {
                    held.insert(endpoint, known);
                    return false;
                }
            }
            true
        });
        for (endpoint, held) in held {
            if !self.taking.contains(&endpoint) && !self.lanes.contains_key(&endpoint) {
                self.release(endpoint, held.epoch);
            }
        }
        let endpoints: Vec<_> = self.lanes.keys().cloned().collect();
        for endpoint in endpoints {
            self.make_ready(endpoint);
        }
    }

    fn attempted(&mut self, attempted: Attempted) {
        let Attempted {
            at,
            epoch,
            target,
            due,
            began,
            outcome,
        } = attempted;
        self.all_in_flight -= 1;
        if let Some(count) = self.in_flight.get_mut(&at.org) {
            *count -= 1;
            if *count == 0 {
                self.in_flight.remove(&at.org);
            }
        }
        for endpoint in std::mem::take(&mut self.blocked) {
            self.make_ready(endpoint);
        }
        let app = self.app.clone();
        let Some(lane) = self.lane(&at, epoch) else {
            return;
        };
        let verdict = lane.attempted(target, due, outcome, began, &app.config.webhooks);
        let label = match verdict.settlement.status {
            DeliveryStatus::Delivered => "delivered",
            DeliveryStatus::Pending => "retried",
            DeliveryStatus::Failed => "failed",
        };
        let labels = AttemptLabels {
            outcome: label.into(),
        };
        app.metrics.webhook_attempts.get_or_create(&labels).inc();
        let _ = self.verdicts.send(verdict);
        self.make_ready(at);
    }

    fn make_ready(&mut self, endpoint: OwnedEndpoint) {
        if self.waiting.insert(endpoint.clone()) {
            self.ready.push_back(endpoint);
        }
    }

    /// Begins whatever can be begun, one attempt for each endpoint in turn.
    fn go_round(&mut self) {
        let now = self.app.clock.now();
        while let Some(endpoint) = self.ready.pop_front() {
            self.waiting.remove(&endpoint);
            let Some(lane) = self.lanes.get_mut(&endpoint) else {
                continue;
            };
            if let Some(limit) = lane.look() {
                let (epoch, endpoint) = (lane.epoch, endpoint.clone());
                look(self.app.clone(), self.told.clone(), endpoint, epoch, limit);
            }
            let of_organization = self.in_flight.get(&endpoint.org).copied().unwrap_or(0);
            if self.all_in_flight >= SLOTS || of_organization >= SLOTS_OF_ORGANIZATION {
                self.blocked.push(endpoint);
                continue;
            }
            let Some(due) = lane.next(now) else {
                continue;
            };
            self.all_in_flight += 1;
            *self.in_flight.entry(endpoint.org.clone()).or_default() += 1;
            let (target, epoch) = (lane.target.clone(), lane.epoch);
            let (app, told, at) = (self.app.clone(), self.told.clone(), endpoint.clone());
            self.make_ready(endpoint);
            tokio::spawn(async move {
                let began = app.clock.now();
                let parcel = Parcel {
                    delivery: due.id.clone(),
                    event: due.event.clone(),
                    event_type: due.event_type,
                    body: Bytes::from(due.body.clone()),
                };
                let attempt = app.webhooks.send(&target, &parcel, began);
                // A slot must come back, whatever happens.
                let outcome = AssertUnwindSafe(attempt).catch_unwind().await;
                let outcome = outcome.unwrap_or_else(|_| Outcome::nothing("the attempt broke off"));
                let _ = told.send(Happened::Attempted(Box::new(Attempted {
                    at,
                    epoch,
                    target,
                    due,
                    began,
                    outcome,
                })));
            });
        }
    }
}

fn look(app: App, told: UnboundedSender<Happened>, at: OwnedEndpoint, epoch: i64, limit: i64) {
    tokio::spawn(async move {
        let found = async {
            let mut connection = app.store.read_urgently().await?;
            deliveries::next(&mut connection, &at, limit).await
        };
        let found = found.await;
        let _ = told.send(Happened::Looked {
            at,
            epoch,
            limit,
            found,
        });
    });
}
