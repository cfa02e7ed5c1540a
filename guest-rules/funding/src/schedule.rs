//! The payment schedule of a contract, read from its facts.

use crate::amount::Amount;
use crate::apr::{Position, Run, UnitPeriod, annual_percentage_rate};
use crate::date::Date;
use crate::types::{Fact, FactStatus, FundingFacts};

/// Rows of a schedule, and advances: `number_of_payments`, then `number_of_payments_2` and so on. A mortgage whose payment
/// changes each year for thirty years has thirty.
const MOST_ROWS: usize = 40;

/// Facts by name.
pub(crate) struct Facts<'a>(&'a [Fact]);

impl<'a> Facts<'a> {
    pub fn of(facts: &'a FundingFacts) -> Self {
        Self(&facts.facts)
    }

    pub fn get(&self, name: &str) -> Option<&'a Fact> {
        self.0.iter().find(|fact| fact.name == name)
    }

    /// Value of a fact that was read. Of two values that differ, the stronger one counts.
    pub fn value(&self, name: &str) -> Option<&'a str> {
        let fact = self.get(name)?;
        let was_read = matches!(fact.status, FactStatus::Known | FactStatus::Conflicting);
        fact.value.as_deref().filter(|_| was_read)
    }

    pub fn amount(&self, name: &str) -> Option<Amount> {
        self.value(name).and_then(Amount::parse)
    }

    pub fn number(&self, name: &str) -> Option<u32> {
        self.value(name)?.parse().ok()
    }

    pub fn date(&self, name: &str) -> Option<Date> {
        self.value(name).and_then(Date::parse)
    }
}

/// Row of a payment schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub count: u32,
    pub payment: Amount,
    /// Due date of the first payment of the row; that after the row before if absent.
    pub begins: Option<Date>,
}

/// Advance of a contract with several ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Advance {
    pub amount: Amount,
    /// Date; the beginning of the term if the first one has none.
    pub on: Option<Date>,
}

/// Advances and payments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// Empty for a contract whose amount financed is advanced at once.
    pub advances: Vec<Advance>,
    pub rows: Vec<Row>,
    pub unit: UnitPeriod,
    /// Names of the facts that the rows come from.
    pub names: Vec<String>,
}

impl Schedule {
    /// Reads the rows; none if the first is incomplete.
    pub fn of(facts: &Facts<'_>) -> Option<Self> {
        let (mut rows, mut names) = (Vec::new(), Vec::new());
        for number in 1..=MOST_ROWS {
            let suffix = suffix(number);
            let count = format!("number_of_payments{suffix}");
            let payment = format!("payment_amount{suffix}");
            let begins = format!("first_payment_date{suffix}");
            let (Some(times), Some(amount)) = (facts.number(&count), facts.amount(&payment)) else {
                break;
            };

            rows.push(Row {
                count: times,
                payment: amount,
                begins: facts.date(&begins),
            });
            names.extend([count, payment]);
        }

        let unit = match facts.value("payment_frequency") {
            // Instalment contracts are paid monthly unless they say otherwise.
            None => UnitPeriod::Months(1),
            Some(words) => unit_period(words)?,
        };
        let has_payments = rows.iter().any(|row| row.count > 0);

        has_payments.then_some(Self {
            advances: advances(facts),
            rows,
            unit,
            names,
        })
    }

    /// Sum of the advances; none for a contract with one, or if it is too large.
    pub fn advanced(&self) -> Option<Amount> {
        let (first, others) = self.advances.split_first()?;
        let mut others = others.iter();
        others.try_fold(first.amount, |sum, one| sum.plus(one.amount))
    }

    /// Sum of all payments.
    pub fn total(&self) -> Option<Amount> {
        let mut rows = self.rows.iter();
        rows.try_fold(Amount::default(), |sum, row| {
            sum.plus(row.payment.times(row.count)?)
        })
    }

    /// The sum as it is computed, such as `60 × 485.12`.
    pub fn sum_in_words(&self) -> String {
        let rows = self.rows.iter();
        let rows = rows.map(|row| format!("{} × {}", row.count, row.payment));
        rows.collect::<Vec<_>>().join(" + ")
    }

    /// Whether there are several advances, or payments or their dates differ apart from the first and the last payment
    /// (12 CFR 1026.22(a)(3)).
    pub fn is_irregular(&self, from: Date) -> bool {
        if self.advances.len() > 1 {
            return true;
        }

        let last = self.rows.len().saturating_sub(1);
        let middle = self.rows.iter().enumerate().filter(|(at, row)| {
            let may_be_odd = row.count == 1 && (*at == 0 || *at == last);
            !may_be_odd
        });
        let mut amounts = middle.map(|(_, row)| row.payment);
        let first = amounts.next();
        let has_other_amount = amounts.any(|amount| Some(amount) != first);

        // A row with a date is regular if the date is the one that would follow anyway.
        let runs = self.runs(self.unit, from).unwrap_or_default();
        let mut neighbours = runs.iter().zip(runs.iter().skip(1));
        let has_gap =
            neighbours.any(|(before, next)| before.first.later(before.count) != Some(next.first));

        has_gap || has_other_amount
    }

    /// Recomputes the annual percentage rate; none if it cannot be computed.
    pub fn rate(&self, advance: Amount, from: Date) -> Option<Amount> {
        let single = match self.rows.as_slice() {
            [row] if row.count == 1 && self.advances.len() < 2 => {
                row.begins.and_then(|due| term(from, due))
            }
            _ => None,
        };
        let unit = single.unwrap_or(self.unit);
        let advances = self.advance_runs(unit, advance, from)?;

        annual_percentage_rate(unit, &advances, &self.runs(unit, from)?)
    }

    /// Places the advances in time; none if a later one has no date, or one is before the term.
    fn advance_runs(&self, unit: UnitPeriod, single: Amount, from: Date) -> Option<Vec<Run>> {
        if self.advances.is_empty() {
            return Some(vec![Run::at_once(single)]);
        }

        let advances = self.advances.iter().enumerate().map(|(at, advance)| {
            let on = match (at, advance.on) {
                (0, None) => from,
                (_, on) => on?,
            };
            Some(Run {
                amount: advance.amount,
                count: 1,
                first: Position::between(unit, from, on)?,
            })
        });
        advances.collect()
    }

    /// Places the rows in time; none without the date of the first payment.
    fn runs(&self, unit: UnitPeriod, from: Date) -> Option<Vec<Run>> {
        let mut runs: Vec<Run> = Vec::new();
        for row in &self.rows {
            let first = match (row.begins, runs.last()) {
                (Some(begins), _) => Position::between(unit, from, begins)?,
                (None, Some(before)) => before.first.later(before.count)?,
                (None, None) => return None,
            };
            runs.push(Run {
                amount: row.payment,
                count: row.count,
                first,
            });
        }

        Some(runs)
    }
}

/// Returns the end of the names of a row's facts.
fn suffix(number: usize) -> String {
    if number == 1 {
        String::new()
    } else {
        format!("_{number}")
    }
}

/// Reads the advances: `advance_amount` and `advance_date`, then `advance_amount_2` and so on.
fn advances(facts: &Facts<'_>) -> Vec<Advance> {
    let rows = (1..=MOST_ROWS).map(|number| {
        let suffix = suffix(number);
        Some(Advance {
            amount: facts.amount(&format!("advance_amount{suffix}"))?,
            on: facts.date(&format!("advance_date{suffix}")),
        })
    });
    rows.map_while(|row| row).collect()
}

/// Unit-period of a single payment in less than a year (appendix J, (b)(5)(vi)); none for longer terms.
fn term(from: Date, due: Date) -> Option<UnitPeriod> {
    let (months, begins) = due.months_since(from);
    let months = u32::try_from(months).ok()?;
    if months >= 12 {
        return Some(UnitPeriod::Year);
    }
    if begins == from && months > 0 {
        return Some(UnitPeriod::TermOfMonths(months));
    }

    let days = u32::try_from(due.days() - from.days()).ok()?;
    (days > 0).then_some(UnitPeriod::TermOfDays(days))
}

/// Unit-period of words as they stand in contracts; none if they are unknown.
pub(crate) fn unit_period(words: &str) -> Option<UnitPeriod> {
    let plain: String = words.to_lowercase().replace(['-', '_'], " ");
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    // Longer words come first, because `semi monthly` contains `monthly`.
    let known = [
        ("every four weeks", UnitPeriod::Weeks(4)),
        ("every 4 weeks", UnitPeriod::Weeks(4)),
        ("every two weeks", UnitPeriod::Weeks(2)),
        ("every 2 weeks", UnitPeriod::Weeks(2)),
        ("every other week", UnitPeriod::Weeks(2)),
        ("bi weekly", UnitPeriod::Weeks(2)),
        ("biweekly", UnitPeriod::Weeks(2)),
        ("weekly", UnitPeriod::Weeks(1)),
        ("semi monthly", UnitPeriod::HalfMonth),
        ("semimonthly", UnitPeriod::HalfMonth),
        ("twice a month", UnitPeriod::HalfMonth),
        ("bi monthly", UnitPeriod::Months(2)),
        ("every two months", UnitPeriod::Months(2)),
        ("quarterly", UnitPeriod::Months(3)),
        ("semi annual", UnitPeriod::Months(6)),
        ("semiannual", UnitPeriod::Months(6)),
        ("half yearly", UnitPeriod::Months(6)),
        ("annual", UnitPeriod::Year),
        ("yearly", UnitPeriod::Year),
        ("monthly", UnitPeriod::Months(1)),
        ("each month", UnitPeriod::Months(1)),
        ("daily", UnitPeriod::Day),
    ];

    let found = known.iter().find(|(name, _)| plain.contains(name));
    found.map(|(_, unit)| *unit)
}
