//! Calendar of the dates from which components are effective.

use jiff::ToSpan as _;
use jiff::civil::Date;
use maud::{Markup, html};

use super::PATH;
use super::navigation::export;
use super::signed_in::Visitor;
use holdfast_platform::components::{ActivationView, SlotView};

/// Renders a month, and under it each date of the month and each planned one after it. A month that is not readable
/// counts as the current one.
pub fn calendar(visitor: &Visitor, month: Option<&str>, slots: &[SlotView]) -> Markup {
    let texts = visitor.texts;
    let dates = &visitor.organization.settings.dates;
    // Days are those of the organization's time zone, like all dates on its pages.
    let day = |one: &ActivationView| dates.local(one.effective_at).date();
    let today = dates.local(visitor.now).date();
    let asked = month.and_then(|month| format!("{month}-01").parse().ok());
    let first: Date = asked.unwrap_or(today).first_of_month();
    let month_at = |months: i64| first.checked_add(months.months()).ok();

    let mut shown: Vec<&ActivationView> = slots.iter().flat_map(|slot| &slot.history).collect();
    shown.retain(|one| {
        let planned = one.effective_at > visitor.now && day(one) > first;
        one.rolled_back_at.is_none() && (planned || day(one).first_of_month() == first)
    });
    shown.sort_by_key(|one| one.effective_at);
    let has_dates = |of: Date| shown.iter().any(|one| day(one) == of);

    let link = |month: Date, text: String| {
        let month = month.strftime("%Y-%m");
        html! { a href={ (PATH) "/rules?month=" (month) "#dates" } { (text) } }
    };
    html! {
        section.card id="dates" {
            h2 { (texts.text("rules-dates")) }
            nav.parts aria-label=(texts.text("rules-dates")) {
                @if let Some(before) = month_at(-1) { (link(before, format!("← {}", texts.month(before)))) }
                @if let Some(after) = month_at(1) { (link(after, format!("{} →", texts.month(after)))) }
            }
            table.calendar {
                caption { (texts.month(first)) }
                thead {
                    tr { @for one in weeks(first).first().into_iter().flatten() { th scope="col" { (texts.weekday(*one)) } } }
                }
                tbody {
                    @for week in weeks(first) {
                        tr {
                            @for one in week {
                                td aria-current=[(one == today).then_some("date")] {
                                    @if one.first_of_month() != first {
                                    } @else if has_dates(one) {
                                        a href={ "#day-" (one) } { (one.day()) }
                                    } @else {
                                        (one.day())
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @if shown.is_empty() { p.soft { (texts.text("console-nothing")) } }
            ol.ledger {
                @for of_day in shown.chunk_by(|one, next| day(one) == day(next)) {
                    li id=[of_day.first().map(|one| format!("day-{}", day(one)))] {
                        @for one in of_day { p { (entry(visitor, one)) } }
                    }
                }
            }
            (export(texts, "activations.csv"))
        }
    }
}

fn entry(visitor: &Visitor, one: &ActivationView) -> Markup {
    html! {
        (visitor.moment(one.effective_at)) " "
        a href={ (PATH) "/rules/" (one.slot) } { (one.slot) }
        @if let Some(instance) = &one.instance { " " (instance) }
        @if one.effective_at > visitor.now { " " span.tag { (visitor.texts.text("console-planned")) } }
        @if let Some(reason) = &one.reason { " " (reason) }
    }
}

/// Returns the weeks of a month, from Monday to Sunday, with the days of its neighbours at both ends.
fn weeks(first: Date) -> Vec<[Date; 7]> {
    let before = i64::from(first.weekday().to_monday_zero_offset());
    // A hand-written month can lie at the end of the calendar, where an addition would overflow.
    let at = |days: i64| first.saturating_add(days.days());
    // A month touches at most six weeks.
    let starts = (0..6).map(|week| week * 7 - before);
    let starts = starts.filter(|start| at(*start) <= first.last_of_month());
    starts
        .map(|start| std::array::from_fn(|day| at(start.saturating_add_unsigned(day as u64))))
        .collect()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_month_has_whole_weeks() {
        let months = [
            (date(2026, 2, 1), date(2026, 1, 26), date(2026, 3, 1), 5),
            (date(2027, 2, 1), date(2027, 2, 1), date(2027, 2, 28), 4),
            (date(2026, 11, 1), date(2026, 10, 26), date(2026, 12, 6), 6),
        ];
        for (first, from, to, count) in months {
            let weeks = weeks(first);
            assert_eq!(weeks.len(), count, "{first}");
            assert_eq!((weeks[0][0], weeks[count - 1][6]), (from, to), "{first}");
        }
    }
}
