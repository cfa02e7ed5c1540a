//! Streams that tell an open page when its list has changed.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use serde::Serialize;
use serde_json::Value;

use super::PATH;
use super::navigation::PageResult;
use super::signed_in::{Visitor, refused};
use crate::live;
use holdfast_domain::hash::sha256;
use holdfast_domain::organization::Permission;
use holdfast_platform::ServiceError;
use holdfast_platform::access::{api_keys, audit, sessions, users};
use holdfast_platform::components::{self, ComponentOwner, changes};
use holdfast_platform::request_log::{self, RequestSearch};
use holdfast_platform::webhooks::{self, deliveries};
use holdfast_service::control::{self, transfers};
use holdfast_service::templates::packages;
use holdfast_service::{App, bulk, envelopes, installation, templates};
use holdfast_store::control::{ListedPart, RecordFilter};
use holdfast_store::deliveries::DeliveryFilter;

/// Interval at which a stream looks for changes.
const LOOK: Duration = Duration::from_secs(2);
/// Interval for the installation: its numbers are counted over all organizations.
const LOOK_AT_ALL: Duration = Duration::from_secs(5);
/// Rows of a list that are watched: its first pages.
const ROWS: i64 = 200;

/// List that a page follows.
#[derive(Clone)]
pub enum LiveList {
    /// The numbers of envelopes by status.
    Envelopes,
    Templates,
    Packages,
    Batches,
    Control,
    Transfers,
    ControlKeys,
    Rules,
    Developers,
    /// A receiver and the deliveries to it.
    Deliveries(String),
    Requests,
    Audit,
    Users,
    Sessions,
    Installation,
}

impl LiveList {
    /// Returns the address of the stream.
    pub fn address(&self) -> String {
        let rest = match self {
            Self::Envelopes => "",
            Self::Templates => "/templates",
            Self::Packages => "/packages",
            Self::Batches => "/bulk",
            Self::Control => "/control",
            Self::Transfers => "/transfers",
            Self::ControlKeys => "/control/keys",
            Self::Rules => "/rules",
            Self::Developers => "/developers",
            Self::Deliveries(receiver) => return format!("{PATH}/receivers/{receiver}/live"),
            Self::Requests => "/requests",
            Self::Audit => "/audit",
            Self::Users => "/users",
            Self::Sessions => "/sessions",
            Self::Installation => "/operator",
        };

        format!("{PATH}/live{rest}")
    }

    /// Returns whether a visitor may read the list.
    pub fn is_open_to(&self, visitor: &Visitor) -> bool {
        // As for the pages themselves: even the moment of a change reveals something about the list.
        let permission = match self {
            Self::Envelopes | Self::Templates | Self::Packages => Permission::ReadEnvelopes,
            Self::Batches => Permission::Send,
            Self::Control | Self::Transfers | Self::ControlKeys => Permission::ReadControl,
            Self::Rules => Permission::ReadEvidence,
            Self::Developers | Self::Deliveries(_) | Self::Requests => Permission::Integrate,
            Self::Audit => Permission::Audit,
            Self::Users => Permission::Administer,
            Self::Sessions => return true,
            Self::Installation => return visitor.operates,
        };

        visitor.may(permission)
    }

    /// Returns a mark that changes with what the page shows.
    async fn mark(&self, app: &App, visitor: &Visitor) -> Result<String, ServiceError> {
        let caller = &visitor.caller;

        match self {
            // Counts change with every status and are cheap. Rows would be read every two seconds for each
            // open page.
            Self::Envelopes => mark(&envelopes::numbers(app, caller).await?),
            Self::Templates => {
                // A template can have a thousand fields, and its time of change stands for all of them.
                let (found, total) =
                    templates::list(app, caller, &templates::TemplateFilter::default(), 1, ROWS)
                        .await?;
                let rows = found.iter().map(|one| (&one.id, one.updated_at));
                mark(&(rows.collect::<Vec<_>>(), total))
            }
            Self::Packages => mark(&packages::list(app, caller, 1, ROWS).await?),
            Self::Batches => mark(&bulk::list(app, caller, 1, ROWS).await?),

            Self::Control => {
                // An act can move a record from one part to another, so all of them are watched.
                let mut parts = Vec::new();
                for part in ListedPart::ALL {
                    let filter = RecordFilter::of(*part);
                    parts.push(control::list(app, caller, &filter, ROWS).await?);
                }
                mark(&parts)
            }
            Self::Transfers => mark(&transfers::list(app, caller, None, ROWS).await?),
            Self::ControlKeys => mark(&control::keys::list(app, caller).await?),

            Self::Rules => {
                let owner = ComponentOwner::from(caller);
                let slots = components::slots(app, &app.management, &owner).await?;
                let candidates = components::list(app, &owner, None, 1, ROWS).await?;
                let requests = changes::list(app, &caller.org, None, ROWS).await?;
                mark(&(slots, candidates, requests))
            }

            Self::Developers => {
                let keys = api_keys::list(app, &caller.org).await?;
                mark(&(keys, webhooks::list(app, caller, None).await?))
            }
            Self::Deliveries(receiver) => {
                let all = DeliveryFilter::default();
                let found = deliveries::list(app, caller, receiver, &all, 1, ROWS).await?;
                mark(&(webhooks::find(app, caller, receiver).await?, found))
            }
            Self::Requests => {
                let all = RequestSearch::default();
                mark(&request_log::list(app, &caller.org, &all, ROWS).await?)
            }

            // Both ledgers only grow, so the newest entry is enough.
            Self::Audit => mark(&audit::list(app, caller, None, 1).await?),
            Self::Users => mark(&users::list(app, &caller.org).await?),
            Self::Sessions => {
                // Without their times: each use of a session would make its own page read itself again.
                let open = sessions::list(app, &visitor.signed_in.user).await?;
                mark(&open.iter().map(|one| &one.id).collect::<Vec<_>>())
            }
            Self::Installation => mark(&steady(installation::view(app).await?)?),
        }
    }

    fn interval(&self) -> Duration {
        match self {
            Self::Installation => LOOK_AT_ALL,
            _ => LOOK,
        }
    }
}

fn mark(rows: &impl Serialize) -> Result<String, ServiceError> {
    // The browser only compares marks, so a digest is enough and reveals nothing of the list.
    let bytes = serde_json::to_vec(rows);
    bytes.map(|bytes| sha256(&bytes)).map_err(unwritten)
}

fn unwritten(error: serde_json::Error) -> ServiceError {
    ServiceError::Internal(format!("a live list: {error}"))
}

/// Returns the installation without the times at which its nodes and monitors were last seen.
fn steady(view: installation::InstallationView) -> Result<Value, ServiceError> {
    // Nodes report again and again. With those times the page would read itself again without end.
    let mut view = serde_json::to_value(view).map_err(unwritten)?;
    for (list, name) in [("nodes", "node"), ("monitors", "address")] {
        if let Some(seen) = view[list].as_array_mut() {
            seen.iter_mut().for_each(|one| *one = one[name].take());
        }
    }
    Ok(view)
}

/// Streams the mark of a list: a page reads itself again after each event but the first.
pub async fn follow(State(app): State<App>, visitor: Visitor, list: LiveList) -> PageResult {
    if !list.is_open_to(&visitor) {
        return Err(refused(visitor.texts).into());
    }

    // Taken before the first read, because every stream polls the database.
    let place = live::page_place(&app, &visitor.caller.org, &visitor.signed_in.session.id)?;
    let first = list.mark(&app, &visitor).await?;

    let (core, every) = (app.clone(), list.interval());
    // Each read is a future of its own and may not borrow from the closure.
    let watched = Arc::new((list, visitor));
    let read = move || {
        let (core, watched) = (core.clone(), watched.clone());
        async move {
            let (list, visitor) = &*watched;
            // The stream ends with the session, and with the role that may read the list.
            let visitor = visitor.again(&core).await.ok()??;
            if !list.is_open_to(&visitor) {
                return None;
            }

            // An error ends the stream. The browser connects again and gets the answer of a fresh request.
            list.mark(&core, &visitor).await.ok()
        }
    };

    Ok(live::stream(app, place, every, first, |_| "changed", read))
}

/// Streams the mark of the deliveries to a receiver.
pub async fn deliveries(
    app: State<App>,
    visitor: Visitor,
    Path(receiver): Path<String>,
) -> PageResult {
    follow(app, visitor, LiveList::Deliveries(receiver)).await
}
