//! Partner API: the feed of events.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use crate::error::HttpError;
use crate::live;
use crate::middleware::act::BareAct;
use crate::middleware::caller::{PartnerCaller, WebhooksListen};
use crate::middleware::extract::{PageWindow, ResourceId, ValidQuery};
use crate::reply::{Created, CursorReply, DataReply, Found};
use holdfast_domain::event::EventType;
use holdfast_domain::id::EventId;
use holdfast_platform::access::BeginningCredential;
use holdfast_platform::webhooks::deliveries::DeliveryView;
use holdfast_platform::webhooks::feed::{self, EventView, FeedStart};
use holdfast_service::App;

/// Longest wait for an event in seconds.
const LONGEST: u64 = 25;
/// Time between two looks for new events.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Deserialize, JsonSchema)]
pub struct EventsQuery {
    /// Page number, from 1; not together with `starting_after` or `newest`. Pages have numbers up to the 1000th event, and
    /// move when the oldest events are deleted: a feed is read behind its last event.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// Last event of the page before, or the last one that you handled. The oldest event that is kept begins the feed
    /// when absent.
    starting_after: Option<EventId>,
    /// `true`: the newest events instead, to begin behind them. Not together with `starting_after`.
    newest: Option<bool>,
    /// Types of events, separated by commas; all when absent.
    types: Option<String>,
    /// Seconds to wait for an event if there is none: 0 to 25; 0 when absent.
    #[schemars(range(min = 0, max = 25))]
    wait: Option<u64>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
}

impl EventsQuery {
    fn start(&self) -> Result<FeedStart, HttpError> {
        if self.page.is_some() && self.newest == Some(true) {
            let why = "page and newest exclude each other";
            return Err(HttpError::bad_request(why));
        }

        match (&self.starting_after, self.newest) {
            (Some(_), Some(true)) => Err(HttpError::bad_request(
                "starting_after and newest exclude each other",
            )),
            // `newest=false` is what the default means, so it goes together with an id.
            (Some(id), _) => Ok(FeedStart::After(id.clone())),
            (None, Some(true)) => Ok(FeedStart::Newest),
            (None, _) => Ok(FeedStart::Oldest),
        }
    }

    fn types(&self) -> Result<Vec<EventType>, HttpError> {
        let named = self.types.as_deref().unwrap_or_default();
        let named = named.split(',').map(str::trim);
        named
            .filter(|name| !name.is_empty())
            .map(|name| {
                let unknown = || HttpError::bad_request(format!("unknown event type: {name}"));
                EventType::parse(name).ok_or_else(unknown)
            })
            .collect()
    }
}

/// Lists events in the order of the feed: one that a reader has not seen is always behind those that it has. Waits for
/// events if it is asked to.
pub async fn list(
    State(app): State<App>,
    partner: PartnerCaller<WebhooksListen>,
    ValidQuery(query): ValidQuery<EventsQuery>,
) -> Result<CursorReply<EventView>, HttpError> {
    let is_behind = query.starting_after.is_some();
    let window = PageWindow::checked((query.page, query.limit), is_behind, 20, 100)?;
    let (start, types) = (query.start()?, query.types()?);
    let wait = query.wait.unwrap_or_default();
    if wait > LONGEST {
        return Err(HttpError::bad_request(format!(
            "wait must be 0 to {LONGEST}"
        )));
    }

    let until = Instant::now() + Duration::from_secs(wait);

    // A list of the newest events has no page behind it.
    let most = if matches!(start, FeedStart::Newest) {
        window.read() - 1
    } else {
        window.read()
    };
    let mut place = None;
    loop {
        // The key may have been deactivated while the request waited.
        let begun = BeginningCredential::from(&partner.caller);
        if place.is_some() && !begun.is_in_force(&app, &partner.caller.org).await? {
            let unauthorized = StatusCode::UNAUTHORIZED;
            return Err(HttpError::new(unauthorized, "Invalid API key"));
        }

        let found = feed::list(&app, &partner.caller, &start, &types, most).await?;
        if window.is_reached_by(found.len()) || Instant::now() >= until {
            return Ok(window.reply(found));
        }

        // Only a request that waits takes a place. Most find their events at once.
        if place.is_none() {
            place = Some(live::place(&app, &partner.caller.org)?);
        }

        tokio::select! {
            // An empty page is a normal answer: the client asks again and reaches another node.
            () = app.stopping.cancelled() => return Ok(window.reply(found)),
            () = sleep(LOOK) => {}
        }
    }
}

pub async fn read(
    State(app): State<App>,
    partner: PartnerCaller<WebhooksListen>,
    ResourceId(id): ResourceId,
) -> Result<Found<EventView>, HttpError> {
    Ok(DataReply::new(
        &feed::get(&app, &partner.caller, &id).await?,
    ))
}

pub async fn resend(
    act: BareAct<PartnerCaller<WebhooksListen>>,
) -> Result<Created<Vec<DeliveryView>>, HttpError> {
    act.run(feed::resend).await
}
