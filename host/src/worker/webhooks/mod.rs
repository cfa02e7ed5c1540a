//! The dispatcher: selects which due delivery is attempted next.
//!
//! A node leases an endpoint exclusively for fifteen seconds at a time and delivers its events in
//! order. Slots rotate over endpoints rather than deliveries, and each endpoint and organization
//! has an upper limit, so a slow or dead receiver delays only its own deliveries.
//!
//! One task owns this state and never blocks. Database reads, attempts and their recording run in
//! other tasks, which report their results to it.

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

use self::lane::{AttemptResult, EndpointLane};
use self::recorder::record;
use super::node::NodeRun;
use holdfast_adapters::delivery::sender::{DeliveryPayload, DeliveryTarget};
use holdfast_base::metrics::AttemptLabels;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;
use holdfast_domain::webhook::{AttemptOutcome, DeliveryStatus};
use holdfast_service::App;
use holdfast_store::deliveries::{self, PendingDelivery};
use holdfast_store::webhooks::{self, EndpointLease, OwnedEndpoint};
use holdfast_store::{SqlDialect, StoreError};

/// Maximum number of concurrent attempts, in total and for one organization.
const SLOTS: usize = 512;
const SLOTS_OF_ORGANIZATION: usize = SLOTS / 4;
/// Maximum number of leased endpoints.
const LANES: usize = 4 * SLOTS;
/// Duration of an endpoint's lease, and interval of its renewal. A renewal also reads the settings,
/// which shows changes made by other nodes.
const LEASE: Duration = Duration::from_secs(15);
const RENEWAL: Duration = Duration::from_secs(1);
/// Poll interval, in case a wake-up is lost.
const SWEEP: Duration = Duration::from_secs(1);
/// Precision of retry times.
const TICK: Duration = Duration::from_millis(50);
/// Time for which an endpoint is left to other nodes when this node cannot read its secret.
const UNREADABLE: Duration = Duration::from_secs(60);
/// Delivers until `stop` is cancelled, then finishes attempts in progress.
pub async fn run(app: App, node: Arc<NodeRun>, stop: CancellationToken) {
    if let Some(earlier) = node.earlier_runs()
        && let Err(error) = webhooks::release_all(&app.store, &earlier).await
    {
        tracing::error!(%error, "endpoint leases of an earlier run could not be released");
    }

    let (reports, incoming) = mpsc::unbounded_channel();
    let (results, to_record) = mpsc::unbounded_channel();
    let recorder = tokio::spawn(record(
        app.clone(),
        to_record,
        reports.clone(),
        stop.clone(),
    ));
    let dispatcher = WebhookDispatcher {
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
        reports,
        results,
        app,
    };

    // The dispatcher drops its sender at the end. The recorder then stores the last results and ends, too.
    dispatcher.run(incoming, stop).await;
    if let Err(error) = recorder.await {
        tracing::error!(%error, "delivery recorder failed");
    }
}

/// Report of another task to the dispatcher.
enum DispatcherEvent {
    Swept(Result<Vec<OwnedEndpoint>, StoreError>),
    Taken {
        endpoint: OwnedEndpoint,
        taken: Result<Option<Box<EndpointLease>>, StoreError>,
        asked: Instant,
    },
    Renewed {
        renewed: Result<Vec<EndpointLease>, StoreError>,
        asked: Instant,
    },
    BatchRead {
        at: OwnedEndpoint,
        epoch: i64,
        limit: i64,
        found: Result<Vec<PendingDelivery>, StoreError>,
    },
    Attempted(Box<FinishedAttempt>),
    Recorded(Vec<AttemptResult>),
}

/// Finished attempt.
struct FinishedAttempt {
    at: OwnedEndpoint,
    epoch: i64,
    /// Target of the attempt; the endpoint may have moved since.
    target: Arc<DeliveryTarget>,
    due: PendingDelivery,
    began: Timestamp,
    outcome: AttemptOutcome,
}

struct WebhookDispatcher {
    app: App,
    /// Name of this run of the node, in leases.
    node: String,
    lanes: HashMap<OwnedEndpoint, EndpointLane>,
    /// Endpoints with a secret that this node could not read, with the time of the try.
    unreadable: HashMap<OwnedEndpoint, Instant>,
    taking: HashSet<OwnedEndpoint>,
    /// Lanes to check for possible actions, in turn, each at most once.
    ready: VecDeque<OwnedEndpoint>,
    waiting: HashSet<OwnedEndpoint>,
    /// Lanes that wait for a free slot only.
    blocked: Vec<OwnedEndpoint>,
    in_flight: HashMap<OrgId, usize>,
    all_in_flight: usize,
    sweeping: bool,
    swept_at: Option<Instant>,
    renewing: bool,
    /// Whether settings have changed since the renewal in progress began.
    renew_again: bool,
    renewed_at: Instant,
    reports: UnboundedSender<DispatcherEvent>,
    results: UnboundedSender<AttemptResult>,
}

impl WebhookDispatcher {
    async fn run(
        mut self,
        mut incoming: UnboundedReceiver<DispatcherEvent>,
        stop: CancellationToken,
    ) {
        // The loop borrows the store, and the handlers below need the dispatcher mutably.
        let app = self.app.clone();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);

        loop {
            let stopping = stop.is_cancelled();
            tokio::select! {
                () = stop.cancelled(), if !stopping => {}
                fresh = app.store.fresh_endpoints(), if !stopping => {
                    for (endpoint, touch) in fresh {
                        // An endpoint leased by another node is left to that node.
                        if touch.here || self.lanes.contains_key(&endpoint) {
                            self.note_commit(endpoint, touch.changed);
                        }
                    }
                }
                Some(event) = incoming.recv() => {
                    self.apply(event);
                    // All reports first, so that one round sees the state after them
                    // instead of one round for each.
                    while let Ok(event) = incoming.try_recv() {
                        self.apply(event);
                    }
                }
                _ = ticks.tick() => self.tick(stopping),
            }

            // When stopping, no attempt begins any more, and those in progress are waited for and recorded.
            if !stop.is_cancelled() {
                self.serve_ready_lanes();
            } else if self.lanes.values().all(EndpointLane::is_quiet) && self.taking.is_empty() {
                break;
            }
        }

        if let Err(error) = webhooks::release_all(&app.store, &self.node).await {
            tracing::warn!(%error, "endpoint leases could not be released, they will expire");
        }
    }

    /// Handles a commit for an endpoint: new deliveries, or changed settings.
    fn note_commit(&mut self, endpoint: OwnedEndpoint, changed: bool) {
        match self.lanes.get_mut(&endpoint) {
            Some(lane) => {
                lane.note_commit();
                if changed {
                    // The receiver may have moved or lost its secret, so nothing more goes to the old one.
                    lane.suspend();
                    // A renewal in progress may have read the old settings, so another one has to
                    // follow.
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
        // Endpoints beyond the limit stay free for other nodes, and the next sweep finds them again.
        if self.lanes.len() + self.taking.len() >= LANES || !self.taking.insert(endpoint.clone()) {
            return;
        }

        let (app, node, reports) = (self.app.clone(), self.node.clone(), self.reports.clone());
        tokio::spawn(async move {
            // Measured before the request, so the lease never ends later for this node than in the database.
            let (asked, now) = (Instant::now(), app.clock.now());
            let taken = webhooks::take(&app.store, &endpoint, &node, now, now + LEASE).await;
            let taken = taken.map(|held| held.map(Box::new));
            let _ = reports.send(DispatcherEvent::Taken {
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
        // Set when the renewal begins: a slow database must not get one request after the other.
        self.renewed_at = Instant::now();
        let (app, node, reports) = (self.app.clone(), self.node.clone(), self.reports.clone());
        tokio::spawn(async move {
            let (asked, now) = (Instant::now(), app.clock.now());
            let renewed = webhooks::renew(&app.store, &node, now, now + LEASE).await;
            let _ = reports.send(DispatcherEvent::Renewed { renewed, asked });
        });
    }

    fn tick(&mut self, stopping: bool) {
        let now = self.app.clock.now();
        // Also while stopping, because attempts in progress must not outlast the lease.
        if self.renewed_at.elapsed() >= RENEWAL {
            self.renew();
        }

        // Another node may have leased these endpoints by now.
        self.lanes.retain(|_, lane| !lane.is_lost());
        if stopping {
            return;
        }

        let period = self.app.config.sweep_interval.unwrap_or(SWEEP).min(SWEEP);
        let swept_lately = self.swept_at.is_some_and(|at| at.elapsed() < period);
        if !self.sweeping && !swept_lately {
            self.unreadable.retain(|_, at| at.elapsed() < UNREADABLE);
            self.sweep(now);
            // Notifications from other nodes may have been lost.
            if self.app.store.dialect() == SqlDialect::Postgres {
                self.lanes.values_mut().for_each(EndpointLane::note_commit);
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

        // An idle endpoint is released, so that any node can take it with its next event.
        for endpoint in idle {
            self.let_go(&endpoint);
        }
    }

    fn sweep(&mut self, now: Timestamp) {
        self.sweeping = true;
        self.swept_at = Some(Instant::now());
        let (app, reports) = (self.app.clone(), self.reports.clone());
        tokio::spawn(async move {
            let found = async {
                let mut connection = app.store.read().await?;
                webhooks::with_work(&mut connection, now, SLOTS as i64).await
            };
            let _ = reports.send(DispatcherEvent::Swept(found.await));
        });
    }

    fn let_go(&mut self, endpoint: &OwnedEndpoint) {
        if let Some(lane) = self.lanes.remove(endpoint) {
            self.release(endpoint.clone(), lane.epoch);
        }
    }

    /// Releases an endpoint. A failure is repaired by the next renewal, which releases leases
    /// without a lane.
    fn release(&self, endpoint: OwnedEndpoint, epoch: i64) {
        let app = self.app.clone();
        tokio::spawn(async move {
            if let Err(error) = webhooks::release(&app.store, &endpoint, epoch).await {
                tracing::warn!(%error, "endpoint lease could not be released");
            }
        });
    }

    fn apply(&mut self, event: DispatcherEvent) {
        match event {
            DispatcherEvent::Swept(found) => {
                self.sweeping = false;
                for endpoint in found.unwrap_or_else(|error| {
                    tracing::error!(%error, "endpoints with due deliveries could not be read");
                    Vec::new()
                }) {
                    self.take(endpoint);
                }
            }
            DispatcherEvent::Taken {
                endpoint,
                taken,
                asked,
            } => {
                self.taking.remove(&endpoint);
                match taken {
                    Ok(Some(held)) => self.open(endpoint, *held, asked + LEASE),
                    Ok(None) => {}
                    Err(error) => tracing::error!(%error, "endpoint lease could not be acquired"),
                }
            }
            DispatcherEvent::Renewed { renewed, asked } => {
                self.renewing = false;
                match renewed {
                    // The renewal may have read the settings before they changed.
                    Ok(_) if std::mem::take(&mut self.renew_again) => self.renew(),
                    Ok(held) => self.renewed(held, asked),
                    Err(error) => tracing::error!(%error, "endpoint leases could not be renewed"),
                }
            }
            DispatcherEvent::BatchRead {
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
            DispatcherEvent::Attempted(attempted) => self.attempted(*attempted),
            DispatcherEvent::Recorded(results) => {
                for verdict in results {
                    let settlement = &verdict.settlement;
                    if let Some(lane) = self.lane(&settlement.at, settlement.epoch) {
                        lane.settled(settlement, verdict.envelope.as_ref());
                        self.make_ready(settlement.at.clone());
                    }
                }
            }
        }
    }

    /// Starts delivering to a leased endpoint.
    fn open(&mut self, endpoint: OwnedEndpoint, held: EndpointLease, until: Instant) {
        // Without the secret a delivery would go out unsigned, which a receiver must never get.
        let Some(target) = DeliveryTarget::of(&held.endpoint, &self.app.cipher) else {
            tracing::error!(
                endpoint = %endpoint.endpoint,
                "endpoint secret was sealed with another key than this node's"
            );

            // Another node may have the right key.
            self.unreadable.insert(endpoint.clone(), Instant::now());
            self.release(endpoint, held.epoch);
            return;
        };

        let settings = &self.app.config.webhooks;
        let lane = EndpointLane::new(endpoint.clone(), held, target, until, settings);
        self.lanes.insert(endpoint.clone(), lane);

        self.make_ready(endpoint);
    }

    /// Returns the lane for which a task was started, unless its lease was lost since.
    fn lane(&mut self, endpoint: &OwnedEndpoint, epoch: i64) -> Option<&mut EndpointLane> {
        let lane = self.lanes.get_mut(endpoint)?;
        (lane.epoch == epoch).then_some(lane)
    }

    /// Applies a renewal. Lanes that are missing from it are dropped: their endpoints were
    /// disabled, deleted or leased by another node. Leases without a lane are released, because no
    /// node could deliver under them.
    fn renewed(&mut self, held: Vec<EndpointLease>, asked: Instant) {
        let mut held: HashMap<_, _> = held
            .into_iter()
            .map(|held| (OwnedEndpoint::of(&held.endpoint), held))
            .collect();
        let cipher = self.app.cipher.clone();
        self.lanes.retain(|endpoint, lane| {
            let known = held.remove_entry(endpoint);
            let Some((endpoint, known)) = known.filter(|(_, held)| held.epoch == lane.epoch) else {
                // The renewal may not include leases acquired after it began.
                return lane.was_opened_after(asked);
            };

            match DeliveryTarget::of(&known.endpoint, &cipher) {
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

        // New settings may permit attempts that were suspended, so every lane is looked at once.
        let endpoints: Vec<_> = self.lanes.keys().cloned().collect();
        for endpoint in endpoints {
            self.make_ready(endpoint);
        }
    }

    fn attempted(&mut self, attempted: FinishedAttempt) {
        let FinishedAttempt {
            at,
            epoch,
            target,
            due,
            began,
            outcome,
        } = attempted;

        // Before the lane is looked up: the slot was taken in any case, also by a lane that is gone now.
        self.all_in_flight -= 1;
        if let Some(count) = self.in_flight.get_mut(&at.org) {
            *count -= 1;
            if *count == 0 {
                self.in_flight.remove(&at.org);
            }
        }

        // A slot is free now.
        for endpoint in std::mem::take(&mut self.blocked) {
            self.make_ready(endpoint);
        }

        let app = self.app.clone();

        // The lease was lost. The delivery is still pending, and its new holder attempts it again.
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

        let _ = self.results.send(verdict);
        self.make_ready(at);
    }

    fn make_ready(&mut self, endpoint: OwnedEndpoint) {
        if self.waiting.insert(endpoint.clone()) {
            self.ready.push_back(endpoint);
        }
    }

    /// Starts everything that is possible, one attempt per endpoint in turn.
    fn serve_ready_lanes(&mut self) {
        let now = self.app.clock.now();
        while let Some(endpoint) = self.ready.pop_front() {
            self.waiting.remove(&endpoint);
            let Some(lane) = self.lanes.get_mut(&endpoint) else {
                continue;
            };

            // Before the limits, because a read takes no slot and its result is there when one becomes free.
            if let Some(limit) = lane.next_read() {
                let (epoch, endpoint) = (lane.epoch, endpoint.clone());
                read_batch(
                    self.app.clone(),
                    self.reports.clone(),
                    endpoint,
                    epoch,
                    limit,
                );
            }

            let of_organization = self.in_flight.get(&endpoint.org).copied().unwrap_or(0);
            if self.all_in_flight >= SLOTS || of_organization >= SLOTS_OF_ORGANIZATION {
                self.blocked.push(endpoint);
                continue;
            }
            let Some(due) = lane.next(now) else {
                continue;
            };

            // Counted before the task starts, so the next lane of this round sees the slot as taken.
            self.all_in_flight += 1;
            *self.in_flight.entry(endpoint.org.clone()).or_default() += 1;
            let (target, epoch) = (lane.target.clone(), lane.epoch);
            let (app, reports, at) = (self.app.clone(), self.reports.clone(), endpoint.clone());

            // At the end of the line: one attempt per turn is fair to the other endpoints.
            self.make_ready(endpoint);
            tokio::spawn(async move {
                let began = app.clock.now();
                let parcel = DeliveryPayload {
                    delivery: due.id.clone(),
                    event: due.event.clone(),
                    event_type: due.event_type,
                    body: Bytes::from(due.body.clone()),
                };
                let attempt = app.webhooks.send(&target, &parcel, began);

                // Catch panics, so that the slot is released in any case.
                let outcome = AssertUnwindSafe(attempt).catch_unwind().await;
                let outcome =
                    outcome.unwrap_or_else(|_| AttemptOutcome::nothing("the attempt broke off"));
                let _ = reports.send(DispatcherEvent::Attempted(Box::new(FinishedAttempt {
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

fn read_batch(
    app: App,
    reports: UnboundedSender<DispatcherEvent>,
    at: OwnedEndpoint,
    epoch: i64,
    limit: i64,
) {
    tokio::spawn(async move {
        // Requests may use up the other connections, and without reads all deliveries of the lane would wait.
        let found = async {
            let mut connection = app.store.read_urgently().await?;
            deliveries::next(&mut connection, &at, limit).await
        };
        let found = found.await;
        let _ = reports.send(DispatcherEvent::BatchRead {
            at,
            epoch,
            limit,
            found,
        });
    });
}
