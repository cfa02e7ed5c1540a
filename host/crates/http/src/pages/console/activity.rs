//! Pictures of the last days: what happened to envelopes, how long it took, which are stuck, and what receivers took.

use axum::extract::State;
use maud::{Markup, html};

use super::PATH;
use super::graph::{BarGraph, BarPart, BarRow};
use super::navigation::{PageResult, Place, status};
use super::receivers::{by_outcome, outcomes};
use super::signed_in::Visitor;
use holdfast_adapters::texts::Texts;
use holdfast_domain::envelope::EnvelopeStatus;
use holdfast_domain::organization::Permission;
use holdfast_platform::webhooks::EndpointView;
use holdfast_platform::webhooks::deliveries;
use holdfast_service::App;
use holdfast_service::envelopes::activity::{self, DAYS, EnvelopeActivity, StuckCounts};
use holdfast_store::activity::{FunnelCounts, SigningTimes};
use holdfast_store::deliveries::PeriodCounts;
use holdfast_store::search::MOST_TROUBLES;

/// Minutes from which a time is shown in hours, and from which in days.
const IN_HOURS: u64 = 121;
const IN_DAYS: u64 = 48 * 60 + 1;

/// Shows the pictures.
pub async fn show(State(app): State<App>, visitor: Visitor) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    let numbers = activity::of_organization(&app, &visitor.caller).await?;
    let receivers = if visitor.may(Permission::Integrate) {
        deliveries::by_endpoint(&app, &visitor.caller, DAYS).await?
    } else {
        Vec::new()
    };

    let texts = visitor.texts;
    let body = html! {
        div.lists {
            section.card { (by_day(&visitor, &numbers)) }
            section.card { (funnel(texts, numbers.funnel)) }
            section.card { (times(texts, numbers.times)) }
            section.card { (stuck(texts, &numbers.stuck)) }
            @if !receivers.is_empty() { section.card { (received(texts, &receivers)) } }
        }
    };

    // It follows no list: each change would count 30 days again.
    Ok(visitor.page(Place::Activity, &texts.text("console-activity"), body))
}

/// Returns the only part of a graph with one number for each row.
fn only(name: String, class: &'static str) -> Vec<BarPart> {
    vec![BarPart { name, class }]
}

fn by_day(visitor: &Visitor, numbers: &EnvelopeActivity) -> Markup {
    let texts = visitor.texts;
    let format = visitor.organization.settings.dates.format;
    let part = |(name, class)| BarPart {
        name: texts.text(name),
        class,
    };
    let parts = [
        ("activity-created", "open"),
        ("activity-sent", "busy"),
        ("activity-completed", "good"),
    ];
    let rows = numbers.days.iter().map(|(day, counts)| {
        let date = format.written(&day.date().to_string());
        let values = vec![counts.created, counts.sent, counts.completed];
        BarRow::new(date.clone(), date, values)
    });

    BarGraph {
        title: texts.text("activity-days"),
        of_rows: texts.text("graph-day"),
        parts: parts.map(part).into(),
        rows: rows.collect(),
        as_table: texts.text("graph-table"),
    }
    .strips()
}

fn funnel(texts: Texts, counts: FunnelCounts) -> Markup {
    let steps = [
        ("activity-sent", counts.sent),
        ("activity-viewed", counts.viewed),
        ("activity-completed", counts.signed),
        ("activity-vaulted", counts.vaulted),
    ];
    let rows = steps.map(|(name, number)| {
        let name = texts.text(name);
        BarRow::new(name.clone(), name, vec![number])
    });

    BarGraph {
        title: texts.text("activity-funnel"),
        of_rows: texts.text("activity-step"),
        parts: only(texts.text("console-envelopes"), "busy"),
        rows: rows.into(),
        as_table: texts.text("graph-table"),
    }
    .lying()
}

fn times(texts: Texts, times: SigningTimes) -> Markup {
    let shares = [
        ("activity-median", times.median),
        ("activity-ninetieth", times.ninetieth),
    ];
    let rows = shares.into_iter().filter_map(|(name, millis)| {
        // Rounded up, so that the share is signed within the shown time.
        let minutes = u64::try_from(millis?).unwrap_or_default();
        let minutes = minutes.div_ceil(60_000);
        let name = texts.text(name);
        Some(BarRow {
            beside: Some(span(texts, minutes)),
            ..BarRow::new(
                name.clone(),
                name,
                vec![i64::try_from(minutes).unwrap_or(i64::MAX)],
            )
        })
    });

    let graph = BarGraph {
        title: texts.text("activity-times"),
        of_rows: texts.text("activity-share"),
        parts: only(texts.text("activity-in-minutes"), "good"),
        rows: rows.collect(),
        as_table: texts.text("graph-table"),
    };
    html! {
        @if graph.rows.is_empty() {
            h2 { (graph.title) }
            p.soft { (texts.text("console-nothing")) }
        } @else {
            (graph.lying())
            p.soft { (texts.with("activity-counted", [("count", times.envelopes)])) }
        }
    }
}

/// Writes a time in the unit that shows it with two digits or three.
fn span(texts: Texts, minutes: u64) -> String {
    let (key, unit) = match minutes {
        0..IN_HOURS => ("activity-minutes", 1),
        IN_HOURS..IN_DAYS => ("activity-hours", 60),
        _ => ("activity-whole-days", 24 * 60),
    };
    texts.with(key, [("count", minutes.div_ceil(unit))])
}

fn stuck(texts: Texts, counts: &StuckCounts) -> Markup {
    let troubles = &counts.troubles;
    let troubles = [
        ("activity-unreached", troubles.unreached),
        ("activity-unidentified", troubles.unidentified),
        ("console-stopped", troubles.stopped),
        ("console-unpaid", troubles.unpaid),
    ];
    let is_capped = troubles.iter().any(|(_, number)| *number > MOST_TROUBLES);
    let troubles = troubles.map(|(name, number)| {
        let name = texts.text(name);
        // One more than the limit was counted, to tell that there are more.
        let beside = (number > MOST_TROUBLES).then(|| format!("{MOST_TROUBLES}+"));
        BarRow {
            beside,
            ..BarRow::new(name.clone(), name, vec![number.min(MOST_TROUBLES)])
        }
    });
    let ended = [
        (EnvelopeStatus::Declined, counts.declined),
        (EnvelopeStatus::Expired, counts.expired),
    ];
    let ended = ended.map(|(is, number)| {
        let name = status(texts, is);
        BarRow::new(name.clone(), name, vec![number])
    });

    let graph = BarGraph {
        title: texts.text("activity-stuck"),
        of_rows: texts.text("activity-cause"),
        parts: only(texts.text("console-envelopes"), "bad"),
        rows: troubles.into_iter().chain(ended).collect(),
        as_table: texts.text("graph-table"),
    };
    html! {
        (graph.lying())
        @if is_capped {
            p.soft { (texts.with("activity-capped", [("count", MOST_TROUBLES)])) }
        }
        p { a href={ (PATH) "/envelopes?tab=stuck" } { (texts.text("console-all")) } }
    }
}

fn received(texts: Texts, receivers: &[(EndpointView, PeriodCounts)]) -> Markup {
    let rows = receivers.iter().map(|(receiver, counts)| {
        let (url, settled) = (receiver.url.clone(), counts.delivered + counts.failed);
        // Rounded down: a receiver with a failure never has 100 %.
        let share = (settled > 0).then(|| counts.delivered * 100 / settled);
        let share = share.map_or_else(|| "–".to_owned(), |share| format!("{share} %"));
        BarRow {
            beside: Some(share),
            ..BarRow::new(url.clone(), url, by_outcome(*counts))
        }
    });

    BarGraph {
        title: texts.text("activity-receivers"),
        of_rows: texts.text("activity-receiver"),
        parts: outcomes(texts),
        rows: rows.collect(),
        as_table: texts.text("graph-table"),
    }
    .lying()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_a_unit_that_fits() {
        for (minutes, written) in [
            (0, "0 min"),
            (120, "120 min"),
            (121, "3 h"),
            (48 * 60, "48 h"),
            (48 * 60 + 1, "3 d"),
        ] {
            assert_eq!(span(Texts::default(), minutes), written);
        }
    }
}
