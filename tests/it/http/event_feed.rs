//! The feed of events: order, places, waiting, and sending again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use holdfast::config::Config;
use holdfast::domain::clock;
use holdfast::domain::id::EventId;
use holdfast::domain::organization::{OrgSettings, Scope};
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::receiver::WebhookReceiver;

const FEED: &str = "/partner/events";

fn ids(events: &Value) -> Vec<String> {
    let events = events.as_array().unwrap().iter();
    events
        .map(|event| event["event_id"].as_str().unwrap().to_owned())
        .collect()
}

/// Reads the feed behind an event to its end.
async fn behind(app: &TestApp, after: Option<&str>, limit: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut after = after.map(str::to_owned);
    loop {
        let from = after.map_or_else(String::new, |id| format!("&starting_after={id}"));
        let page = app.get(&format!("{FEED}?limit={limit}{from}")).await;
        let more = page.json()["meta"]["has_more"].as_bool().unwrap();
        found.extend(ids(&page.data(200)));

        if !more {
            return found;
        }

        after = found.last().cloned();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_has_every_event_once_and_in_order() {
    let app = TestApp::start().await;
    let mut envelopes = Vec::new();
    for _ in 0..5 {
        envelopes.push(app.envelope_event().await);
    }

    let all = app.get(FEED).await.data(200);
    let about: Vec<&str> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["envelope_id"].as_str().unwrap())
        .collect();
    assert_eq!(about, envelopes);
    assert_eq!(all[0]["event_type"], "envelope.created");
    assert_eq!(all[0]["data"]["envelope_id"], envelopes[0].as_str());

    let all = ids(&all);
    assert_eq!(behind(&app, None, 2).await, all);
    assert_eq!(behind(&app, Some(&all[1]), 1).await, all[2..]);

    let newest = app.get(&format!("{FEED}?newest=true&limit=2")).await;
    assert_eq!(ids(&newest.data(200)), all[3..]);

    let second = app.get(&format!("{FEED}?page=2&limit=2")).await.json();
    assert_eq!(ids(&second["data"]), all[2..4]);
    assert_eq!(second["meta"], json!({ "limit": 2, "has_more": true }));
    let third = app.get(&format!("{FEED}?page=3&limit=2")).await.json();
    assert_eq!(ids(&third["data"]), all[4..]);
    assert_eq!(third["meta"]["has_more"], false);

    let typed = |types: &str| format!("{FEED}?types={types}");
    let created = app.get(&typed("vault.stored,envelope.created")).await;
    assert_eq!(ids(&created.data(200)), all);

    let stored = app.get(&typed("vault.stored")).await;
    assert_eq!(stored.data(200), json!([]));

    let one = app.get(&format!("{FEED}/{}", all[2])).await.data(200);
    assert_eq!(one["envelope_id"], envelopes[2].as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_feed_cannot_answer_is_refused() {
    let app = TestApp::start().await;
    app.envelope_event().await;
    let event = ids(&app.get(FEED).await.data(200)).remove(0);
    for wrong in [
        format!("newest=true&starting_after={event}"),
        "newest=true&page=1".to_owned(),
        format!("page=1&starting_after={event}"),
        "types=vault.stored,vault.opened".to_owned(),
        "wait=26".to_owned(),
        "wait=soon".to_owned(),
        "limit=101".to_owned(),
        "starting_after=evt_1".to_owned(),
    ] {
        let answer = app.get(&format!("{FEED}?{wrong}")).await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.text());
    }

    // Unknown, and of another organization.
    let other = app.other_organization().await;
    let foreign = format!("?starting_after={event}");

    let unknown = format!("?starting_after={}", EventId::new());
    for path in [unknown.as_str(), "/evt_1"] {
        let answer = app.get(&format!("{FEED}{path}")).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }

    for path in [foreign, format!("/{event}")] {
        let answer = app.get_as(&other, &format!("{FEED}{path}")).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    assert_eq!(app.get_as(&other, FEED).await.data(200), json!([]));

    let reader = app.key_with(&[Scope::EnvelopesRead]).await;
    for path in [FEED.to_owned(), format!("{FEED}/{event}")] {
        assert_eq!(app.get_as(&reader, &path).await.status, 403, "{path}");
    }
}

/// A transaction can commit after another one with later ids of events.
async fn an_event_that_commits_late(app: TestApp) {
    for _ in 0..3 {
        app.envelope_event().await;
    }

    let seen = behind(&app, None, 100).await;

    // As if its transaction had begun before those of the others.
    let early = EventId::before(EventId::parse(&seen[1]).unwrap().generated_at());
    let text =
        "insert into event (bucket, event_id, org_id, envelope_id, event_type, body, created_at)
         select bucket, $1, org_id, envelope_id, event_type, replace(body, event_id, $1), created_at
         from event where event_id = $2";
    let mut tx = app.store.begin().await.unwrap();
    sqlx::query(text)
        .bind(early.as_str())
        .bind(seen[1].as_str())
        .execute(&mut *tx)
        .await
        .unwrap();

    tx.commit().await.unwrap();
    let late = behind(&app, seen.last().map(String::as_str), 100).await;
    assert_eq!(late, [early.as_str()]);
    assert_eq!(behind(&app, None, 2).await, [seen, late].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_commits_late_is_not_missed_on_sqlite() {
    an_event_that_commits_late(TestApp::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_commits_late_is_not_missed_on_postgresql() {
    an_event_that_commits_late(TestApp::on_postgresql().await).await;
}

/// Of two readers at once, the second one waits for the first, and then gives places that leave no gap.
#[tokio::test(flavor = "multi_thread")]
async fn places_have_no_gap_if_two_readers_give_them() {
    let app = TestApp::on_postgresql().await;
    for _ in 0..3 {
        app.envelope_event().await;
    }

    let now = clock::of_machine();
    let mut first = app.store.begin().await.unwrap();
    let from = EventId::before(now - Duration::from_secs(3600));
    holdfast::store::event_feed::place(&mut first, &app.org, &from, now, 100)
        .await
        .unwrap();

    // One that begins before the others, and one behind them.
    let text =
        "insert into event (bucket, event_id, org_id, envelope_id, event_type, body, created_at)
         select bucket, $1, org_id, envelope_id, event_type, replace(body, event_id, $1), created_at
         from event order by event_id limit 1";
    let early = EventId::before(now - Duration::from_secs(60));
    let mut tx = app.store.begin().await.unwrap();
    sqlx::query(text)
        .bind(early.as_str())
        .execute(&mut *tx)
        .await
        .unwrap();

    tx.commit().await.unwrap();
    app.envelope_event().await;

    let commit = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        first.commit().await.unwrap();
    };
    let (read, ()) = tokio::join!(behind(&app, None, 100), commit);
    assert_eq!(read.len(), 5);
    assert_eq!(read[3], early.as_str());

    let mut connection = app.store.read().await.unwrap();
    let last = EventId::parse(&read[4]).unwrap();
    let position = holdfast::store::event_feed::position(&mut connection, &app.org, &last).await;
    assert_eq!(position.unwrap(), Some(5));
}

/// The first reading of an old installation orders all events, in several requests.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_waits_until_many_old_events_have_their_places() {
    let app = TestApp::start().await;
    app.envelope_event().await;
    let mut tx = app.store.begin().await.unwrap();
    sqlx::query(
        "with recursive number(n) as (select 1 union all select n + 1 from number where n < 25000)
         insert into event (bucket, event_id, org_id, envelope_id, event_type, body, created_at)
         select bucket, substr(event_id, 1, 14) || printf('%016d', n), org_id, envelope_id, event_type,
             replace(body, event_id, substr(event_id, 1, 14) || printf('%016d', n)), created_at
         from event, number",
    )
    .execute(&mut *tx)
    .await
    .unwrap();

    tx.commit().await.unwrap();
    let newest = format!("{FEED}?newest=true&limit=1");
    let early = app.get(&newest).await;
    assert_eq!(early.status, 503, "{}", early.text());
    assert!(early.headers.contains_key("retry-after"));

    let last = app.get(&newest).await.data(200);
    assert_eq!(last[0]["event_type"], "envelope.created");

    let path = format!("{FEED}?starting_after={}", ids(&last)[0]);
    assert_eq!(app.get(&path).await.data(200), json!([]));
}

/// Readers beside writers: each reads the same events in the same order, and none is missing.
#[tokio::test(flavor = "multi_thread")]
async fn readers_at_once_read_the_same_feed() {
    let app = TestApp::on_postgresql().await;
    let key = app
        .key_with_limit(&[Scope::WebhooksListen, Scope::EnvelopesWrite], 10_000)
        .await;
    let writes = async {
        let mut made = BTreeSet::new();
        for _ in 0..40 {
            made.insert(app.envelope_event().await);
        }
        made
    };

    let read = async || {
        let mut found: Vec<(String, String)> = Vec::new();
        let until = Instant::now() + Duration::from_secs(60);
        while found.len() < 40 && Instant::now() < until {
            let from = found.last().map(|(id, _)| format!("&starting_after={id}"));
            let path = format!("{FEED}?wait=2&limit=7{}", from.unwrap_or_default());
            let page = app.get_as(&key, &path).await.data(200);
            for event in page.as_array().unwrap() {
                let text = |name: &str| event[name].as_str().unwrap().to_owned();
                found.push((text("event_id"), text("envelope_id")));
            }
        }

        found
    };

    let (made, one, two, three) = tokio::join!(writes, read(), read(), read());
    assert_eq!(one, two);
    assert_eq!(one, three);

    let about: BTreeSet<String> = one.into_iter().map(|(_, envelope)| envelope).collect();
    assert_eq!(about, made);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_waits_for_the_next_event() {
    let app = TestApp::start().await;
    let begun = Instant::now();
    let none = app.get(&format!("{FEED}?wait=1")).await.data(200);
    assert_eq!(none, json!([]));
    assert!(begun.elapsed() >= Duration::from_secs(1));

    let path = format!("{FEED}?wait=25");
    let later = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        app.envelope_event().await
    };
    let (waited, envelope) = tokio::join!(app.get(&path), later);
    assert_eq!(waited.data(200)[0]["envelope_id"], envelope.as_str());
    assert!(begun.elapsed() < Duration::from_secs(15));
}

/// After the retention, a reader that missed events gets an error; one that had read all of them continues.
#[tokio::test(flavor = "multi_thread")]
async fn the_feed_says_where_it_begins() {
    let short = |config: &mut Config| config.webhooks.retention = Duration::from_secs(3600);
    let app = TestApp::with(short, OrgSettings::default()).await;
    for _ in 0..3 {
        app.envelope_event().await;
    }

    let old = behind(&app, None, 100).await;
    let after = |id: &str| format!("{FEED}?starting_after={id}");
    let later = app.as_of_with(Duration::from_secs(2 * 3600), short).await;

    let until = Instant::now() + Duration::from_secs(120);
    while later.get(&after(&old[1])).await.status != StatusCode::GONE {
        assert!(
            Instant::now() < until,
            "the bodies of events are not pruned"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    // The first event may have lost its place, too; the last one has it.
    while later.get(&format!("{FEED}/{}", old[2])).await.status != 404 {
        assert!(Instant::now() < until);
    }

    let gone = later.get(&after(&old[0])).await;
    assert_eq!(gone.status, StatusCode::GONE, "{}", gone.text());
    assert_eq!(later.get(&after(&old[2])).await.data(200), json!([]));
    assert_eq!(later.get(FEED).await.data(200), json!([]));

    // Ids have the time of the machine, which is beyond the retention for the server with a later clock.
    app.envelope_event().await;
    let next = behind(&app, Some(&old[2]), 100).await;
    assert_eq!(next.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_sent_again_to_its_endpoints() {
    let app = TestApp::with_receivers().await;
    app.envelope_event().await;
    let event = behind(&app, None, 100).await.remove(0);
    let resend = format!("{FEED}/{event}/resend");
    assert_eq!(app.post(&resend, json!({})).await.data(201), json!([]));

    let (wanting, other) = (
        WebhookReceiver::start().await,
        WebhookReceiver::start().await,
    );
    let endpoint = app.endpoint(&wanting.url, &["envelope.*"]).await;
    app.endpoint(&other.url, &["vault.stored"]).await;
    let made = app.post(&resend, json!({})).await.data(201);
    assert_eq!(made.as_array().unwrap().len(), 1);
    assert_eq!(made[0]["endpoint_id"], endpoint["endpoint_id"]);
    assert_eq!(made[0]["event_id"], event.as_str());

    let received = wanting.wait_for(1).await;
    assert_eq!(received[0].json()["event_id"], event.as_str());
    assert_eq!(received[0].header("webhook-id"), event);
    assert!(other.received().is_empty());

    let unknown = format!("{FEED}/{}/resend", EventId::new());
    assert_eq!(app.post(&unknown, json!({})).await.status, 404);
}
