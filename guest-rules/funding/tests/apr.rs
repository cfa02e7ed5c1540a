//! Annual percentage rates against the examples of Regulation Z, and against an independent implementation.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use holdfast_funding::apr::{Position, Run, UnitPeriod, annual_percentage_rate};
use holdfast_funding::{Amount, Date};
use serde_json::json;

fn amount(text: &str) -> Amount {
    Amount::parse(text).unwrap()
}

fn date(text: &str) -> Date {
    Date::parse(text).unwrap()
}

/// Rate of payments that begin on a date, in groups of number and amount, one unit-period apart.
fn rate(
    advance: &str,
    on: &str,
    unit: UnitPeriod,
    first: &str,
    groups: &[(u32, &str)],
) -> Option<Amount> {
    let mut first = Position::between(unit, date(on), date(first)).unwrap();
    let runs: Vec<Run> = groups
        .iter()
        .map(|(count, payment)| {
            let run = Run {
                amount: amount(payment),
                count: *count,
                first,
            };
            first = first.later(*count).unwrap();
            run
        })
        .collect();

    annual_percentage_rate(unit, &[Run::at_once(amount(advance))], &runs)
}

fn printed(rate: Option<Amount>) -> String {
    rate.unwrap().rounded(2).to_string()
}

/// 12 CFR part 1026, appendix J, (c)(1) to (c)(4): the digits that the Regulation prints.
#[test]
fn the_examples_with_one_advance_and_regular_periods_have_the_printed_rates() {
    use UnitPeriod::{HalfMonth, Months, Weeks};

    type Example<'a> = (
        &'a str,
        &'a str,
        &'a str,
        UnitPeriod,
        &'a str,
        &'a [(u32, &'a str)],
        &'a str,
    );
    let examples: [Example<'_>; 11] = [
        (
            "(1)(i)",
            "5000.00",
            "1978-01-10",
            Months(1),
            "1978-02-10",
            &[(24, "230.00")],
            "9.69",
        ),
        (
            "(1)(ii)",
            "6000.00",
            "1978-02-10",
            Months(1),
            "1978-04-01",
            &[(36, "200.00")],
            "11.82",
        ),
        (
            "(1)(iii)",
            "5000.00",
            "1978-02-23",
            HalfMonth,
            "1978-03-01",
            &[(24, "219.17")],
            "10.34",
        ),
        (
            "(1)(iv)",
            "10000.00",
            "1978-05-23",
            Months(3),
            "1978-10-01",
            &[(40, "385.00")],
            "8.97",
        ),
        (
            "(1)(v)",
            "500.00",
            "1978-03-20",
            Weeks(1),
            "1978-04-21",
            &[(30, "17.60")],
            "14.96",
        ),
        (
            "(2)(i)",
            "5000.00",
            "1978-01-10",
            Months(1),
            "1978-02-10",
            &[(1, "250.00"), (23, "230.00")],
            "10.08",
        ),
        (
            "(2)(ii)",
            "400.00",
            "1978-03-18",
            Weeks(4),
            "1978-04-20",
            &[(1, "39.50"), (11, "38.31")],
            "28.50",
        ),
        (
            "(3)(i)",
            "5000.00",
            "1978-01-10",
            Months(1),
            "1978-02-10",
            &[(23, "230.00"), (1, "280.00")],
            "10.50",
        ),
        (
            "(3)(ii)",
            "200.00",
            "1978-04-03",
            Weeks(2),
            "1978-04-11",
            &[(19, "9.50"), (1, "30.00")],
            "12.22",
        ),
        (
            "(4)(i)",
            "5000.00",
            "1978-01-10",
            Months(1),
            "1978-02-10",
            &[(1, "250.00"), (22, "230.00"), (1, "280.00")],
            "10.90",
        ),
        (
            "(4)(ii)",
            "8000.00",
            "1978-01-10",
            Months(2),
            "1978-03-01",
            &[(1, "449.36"), (18, "465.00"), (1, "200.00")],
            "7.30",
        ),
    ];
    for (example, advance, on, unit, first, groups, expected) in examples {
        let rate = printed(rate(advance, on, unit, first, groups));
        assert_eq!(rate, expected, "{example}");
    }
}

/// Appendix J, (c)(5): a single payment.
#[test]
fn the_examples_with_a_single_payment_have_the_printed_rates() {
    use UnitPeriod::{TermOfDays, TermOfMonths, Year};

    for (example, on, unit, due, payment, expected) in [
        (
            "(5)(i)",
            "1978-01-03",
            TermOfDays(255),
            "1978-09-15",
            "1080.00",
            "11.45",
        ),
        (
            "(5)(ii)",
            "1978-07-15",
            TermOfMonths(6),
            "1979-01-15",
            "1044.00",
            "8.80",
        ),
        (
            "(5)(iii)",
            "1978-01-17",
            Year,
            "1979-07-17",
            "1135.19",
            "8.76",
        ),
        (
            "(5)(iv)",
            "1978-01-03",
            Year,
            "1980-01-03",
            "1240.00",
            "11.36",
        ),
    ] {
        let rate = printed(rate("1000.00", on, unit, due, &[(1, payment)]));
        assert_eq!(rate, expected, "{example}");
    }
}

/// Amounts on dates: the first of `count` equal ones, one unit-period apart.
fn runs(unit: UnitPeriod, start: &str, all: &[(&str, u32, &str)]) -> Vec<Run> {
    let at = |day| Position::between(unit, date(start), date(day)).unwrap();
    let all = all.iter();
    all.map(|(day, count, text)| Run {
        amount: amount(text),
        count: *count,
        first: at(day),
    })
    .collect()
}

/// Appendix J, (c)(6)(i): payments every four weeks, of which the second one in a month comes two weeks later.
#[test]
fn the_example_with_skipped_payments_has_the_printed_rate() {
    let unit = UnitPeriod::Weeks(4);
    let payments = [
        ("1978-02-20", 9, "100.00"),
        ("1978-11-13", 6, "100.00"),
        ("1979-05-14", 6, "100.00"),
        ("1979-11-12", 3, "100.00"),
    ];
    let payments = runs(unit, "1978-01-25", &payments);
    let rate = annual_percentage_rate(unit, &[Run::at_once(amount("2135.00"))], &payments);
    assert_eq!(printed(rate), "12.00");
}

/// Appendix J, (c)(6)(ii): months without payments, and single payments between others.
#[test]
fn the_example_with_skipped_and_single_payments_has_the_printed_rate() {
    let unit = UnitPeriod::Months(1);
    let payments = [
        ("1978-09-15", 3, "1000.00"),
        ("1979-03-15", 1, "2000.00"),
        ("1979-09-15", 3, "750.00"),
        ("1980-02-01", 1, "1000.00"),
    ];
    let payments = runs(unit, "1978-03-03", &payments);
    // The appendix prints these terms: six months and 12 days, twenty-two months and 29 days.
    assert_eq!(
        (payments[0].first.periods, payments[0].first.fraction),
        (6, (12, 30))
    );
    assert_eq!(
        (payments[3].first.periods, payments[3].first.fraction),
        (22, (29, 30))
    );
    let rate = annual_percentage_rate(unit, &[Run::at_once(amount("7350.00"))], &payments);
    assert_eq!(printed(rate), "10.22");
}

/// Appendix J, (c)(6)(iii): a mortgage whose payment changes each year. It rises by 3 % for ten years; the insurance premium
/// in it falls with the balance.
#[test]
fn the_example_of_a_mortgage_with_varying_payments_has_the_printed_rate() {
    let of_years = [
        "291.81", "300.18", "308.78", "317.61", "326.65", "335.92", "345.42", "355.15", "365.12",
        "375.33", "385.76", "385.42", "385.03", "384.62", "384.17", "383.67", "383.13", "382.54",
        "381.90", "381.20", "380.43", "379.60", "378.68", "377.69", "376.60", "375.42", "374.13",
        "372.72", "371.18", "369.50",
    ];
    let groups = of_years.map(|payment| (12, payment));
    let rate = rate(
        "39688.56",
        "1978-04-10",
        UnitPeriod::Months(1),
        "1978-06-01",
        &groups,
    );
    assert_eq!(printed(rate), "9.80");
}

/// Appendix J, (c)(7)(i): three advances of a construction loan.
#[test]
fn the_example_with_three_advances_has_the_printed_rate() {
    let unit = UnitPeriod::Months(1);
    let advances = [
        ("1979-04-10", 1, "20000.00"),
        ("1979-06-12", 1, "20000.00"),
        ("1979-09-18", 1, "20000.00"),
    ];
    let advances = runs(unit, "1979-04-10", &advances);
    let payments = runs(unit, "1979-04-10", &[("1979-12-10", 240, "612.36")]);
    let rate = annual_percentage_rate(unit, &advances, &payments);
    assert_eq!(printed(rate), "10.25");
}

/// Appendix J, (c)(7)(ii): eight advances of a student loan, with payments that begin before the first of them. The rate is that of
/// its schedule; no text with the printed digits was at hand.
#[test]
fn the_example_with_payments_before_the_first_advance_is_computed() {
    let unit = UnitPeriod::Months(1);
    let advances = [
        ("1978-09-05", 1, "1800.00"),
        ("1979-01-05", 1, "1000.00"),
        ("1979-09-05", 1, "1800.00"),
        ("1980-01-05", 1, "1000.00"),
        ("1980-09-05", 1, "1800.00"),
        ("1981-01-05", 1, "1000.00"),
        ("1981-09-05", 1, "1800.00"),
        ("1982-01-05", 1, "1000.00"),
    ];
    let advances = runs(unit, "1978-07-01", &advances);
    let payments = runs(unit, "1978-07-01", &[("1978-07-01", 50, "240.00")]);
    let rate = annual_percentage_rate(unit, &advances, &payments);
    assert_eq!(printed(rate), "32.04");
}

#[test]
fn payments_that_do_not_exceed_the_advance_have_no_rate() {
    let unit = UnitPeriod::Months(1);
    let of = |advance, payment| rate(advance, "2026-01-10", unit, "2026-02-10", &[(24, payment)]);
    assert_eq!(of("5520.00", "230.00"), None);
    assert_eq!(of("0.00", "230.00"), None);
    // A rate of more than 100 % a month is an error in the contract, not a loan.
    assert_eq!(of("100.00", "230.00"), None);
    assert_eq!(rate("100.00", "2026-01-10", unit, "2026-02-10", &[]), None);
    let payments = runs(unit, "2026-01-10", &[("2026-02-10", 24, "230.00")]);
    assert_eq!(annual_percentage_rate(unit, &[], &payments), None);
    // Both advances together are more than the payments.
    let advances = [("2026-01-10", 1, "3000.00"), ("2026-03-10", 1, "2600.00")];
    let advances = runs(unit, "2026-01-10", &advances);
    assert_eq!(annual_percentage_rate(unit, &advances, &payments), None);
}

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn ten_thousand_schedules_agree_with_an_independent_implementation() {
    let units = [
        ("week", UnitPeriod::Weeks(1), 10),
        ("two-weeks", UnitPeriod::Weeks(2), 20),
        ("four-weeks", UnitPeriod::Weeks(4), 40),
        ("half-month", UnitPeriod::HalfMonth, 25),
        ("month", UnitPeriod::Months(1), 60),
        ("two-months", UnitPeriod::Months(2), 90),
        ("quarter", UnitPeriod::Months(3), 120),
        ("year", UnitPeriod::Year, 500),
    ];
    let mut numbers = Numbers(66);
    let (mut questions, mut ours) = (String::new(), Vec::new());
    while ours.len() < 10_000 {
        let (name, unit, days) = units[numbers.below(8) as usize];
        let start = date("2024-01-01");
        let start = start.plus_months(numbers.below(48) as i32);
        let start = of_days(start.days() + numbers.below(31) as i64);
        let first = of_days(start.days() + 1 + numbers.below(days) as i64);

        // Payments above the advance by 1 to 60 %, the first and last of another amount in half of the schedules.
        let count = 2 + numbers.below(90) as u32;
        let advance = 100_000 + numbers.below(9_000_000);
        let payment = advance * (101 + numbers.below(60)) / 100 / u64::from(count) + 1;
        let odd = |numbers: &mut Numbers| payment + numbers.below(2) * numbers.below(payment);
        let (opening, closing) = (odd(&mut numbers), odd(&mut numbers));
        let cents = |cents: u64| format!("{}.{:02}", cents / 100, cents % 100);
        let (advance, payment) = (cents(advance), cents(payment));
        let (opening, closing) = (cents(opening), cents(closing));
        let mut groups = vec![(1, opening.as_str()), (1, closing.as_str())];
        if count > 2 {
            groups.insert(1, (count - 2, payment.as_str()));
        }

        let on = start.to_string();
        let due = first.to_string();
        let payments: Vec<&str> = groups
            .iter()
            .flat_map(|(count, payment)| vec![*payment; *count as usize])
            .collect();
        // Twice the payments a few days after the advance make more than 100 % for one unit-period.
        let Some(rate) = rate(&advance, &on, unit, &due, &groups) else {
            continue;
        };
        ours.push(rate);
        let question = json!({ "advance": advance, "date": on, "unit": name, "first": due, "payments": payments });
        questions += &format!("{question}\n");
    }

    assert_agreement(questions, &ours);
}

#[test]
fn a_thousand_schedules_with_several_advances_agree_with_an_independent_implementation() {
    let mut numbers = Numbers(67);
    let (mut questions, mut ours) = (String::new(), Vec::new());
    let unit = UnitPeriod::Months(1);
    while ours.len() < 1000 {
        let start = of_days(date("2024-01-01").days() + numbers.below(365) as i64);
        // Payments begin after all advances, or between them.
        let first = of_days(start.days() + 20 + numbers.below(200) as i64);
        let cents = |cents: u64| format!("{}.{:02}", cents / 100, cents % 100);
        let single = 100_000 + numbers.below(900_000);
        let further: Vec<(String, String)> = (0..=numbers.below(5))
            .map(|_| {
                let on = of_days(start.days() + numbers.below(150) as i64);
                (on.to_string(), cents(100_000 + numbers.below(900_000)))
            })
            .collect();
        let total = further.iter().fold(single, |sum, (_, text)| {
            sum + text.replace('.', "").parse::<u64>().unwrap()
        });
        let count = 12 + numbers.below(60) as u32;
        let payment = cents(total * (105 + numbers.below(40)) / 100 / u64::from(count) + 1);

        let (on, due, single) = (start.to_string(), first.to_string(), cents(single));
        let mut advances = vec![Run::at_once(amount(&single))];
        for (day, text) in &further {
            advances.extend(runs(unit, &on, &[(day, 1, text)]));
        }
        let payments = runs(unit, &on, &[(&due, count, &payment)]);
        let Some(rate) = annual_percentage_rate(unit, &advances, &payments) else {
            continue;
        };
        ours.push(rate);
        let payments = vec![payment; count as usize];
        let question = json!({
            "advance": single, "date": on, "unit": "month", "first": due, "payments": payments,
            "advances": further,
        });
        questions += &format!("{question}\n");
    }

    assert_agreement(questions, &ours);
}

/// Compares rates with those of `tests/apr.py`.
fn assert_agreement(questions: String, ours: &[Amount]) {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/apr.py");
    let mut python = Command::new("python3")
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = python.stdin.take().unwrap();
    // Both pipes are in use at once, so that neither side waits for the other.
    let writer = std::thread::spawn(move || input.write_all(questions.as_bytes()).unwrap());
    let answers = python.wait_with_output().unwrap();
    writer.join().unwrap();
    let answers = String::from_utf8(answers.stdout).unwrap();
    assert_eq!(answers.lines().count(), ours.len());

    for (at, (answer, ours)) in answers.lines().zip(ours.iter().copied()).enumerate() {
        let (whole, fraction) = answer.split_once('.').unwrap();
        let theirs = amount(&format!("{whole}.{}", &fraction[..6]));
        let difference = ours.distance(theirs);
        assert!(
            difference <= amount("0.0001"),
            "schedule {at}: {ours} and {theirs}"
        );
    }
}

/// Date of a number of days since 1970-01-01.
fn of_days(days: i64) -> Date {
    let mut date = date("2023-12-31").plus_months(((days - 19_722) / 31) as i32);
    while date.days() < days {
        date = next_day(date);
    }
    date
}

fn next_day(day: Date) -> Date {
    if day.is_end_of_month() {
        let first = format!("{}-01", &day.plus_months(1).to_string()[..7]);
        return date(&first);
    }
    let text = day.to_string();
    let (month, number) = text.split_at(8);
    let number: u32 = number.parse().unwrap();
    date(&format!("{month}{:02}", number + 1))
}
