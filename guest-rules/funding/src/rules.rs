//! The rules, in the order in which a person reads a contract.

use crate::amount::Amount;
use crate::date::Date;
use crate::schedule::{Facts, Schedule, unit_period};
use crate::types::{
    Assessment, Decision, Fact, FactOrigin, FactStatus, Finding, FundingFacts, Severity, Stage,
    StipulationState,
};
use crate::{names, vin};

/// Attribute that explains why the buyer lives in another state than that of the contract.
const STATE_REASON: &str = "metadata.state_difference_reason";
/// Attribute: `esign`, or `paper` for a document that was uploaded already signed.
const KIND: &str = "envelope_kind";
/// Terms between the dealer and the lender. No statute requires them.
const AGREEMENT: &str = "dealer agreement";
/// A security interest needs a signed agreement with a description of the collateral.
const AGREEMENT_SIGNED: &str = "UCC 9-203(b)(3)(A)";
const COLLATERAL: &str = "UCC 9-108";
const PAYMENT_SCHEDULE: &str = "12 CFR 1026.18(g)";
const ASSIGNEE: &str = "UCC 9-105(b)(2)";

/// Facts that each contract needs, with the provision that requires them.
const NEEDED: [(&str, &str); 10] = [
    ("apr", "12 CFR 1026.18(e)"),
    ("finance_charge", "12 CFR 1026.18(d)"),
    ("amount_financed", "12 CFR 1026.18(b)"),
    ("total_of_payments", "12 CFR 1026.18(h)"),
    ("number_of_payments", PAYMENT_SCHEDULE),
    ("payment_amount", PAYMENT_SCHEDULE),
    ("first_payment_date", PAYMENT_SCHEDULE),
    (CONTRACT_DATE, "12 CFR part 1026, appendix J(b)(2)"),
    ("vin", COLLATERAL),
    ("secured_party", ASSIGNEE),
];
const CONTRACT_DATE: &str = "contract_date";

/// Name of each rule.
pub const RULES: [&str; 16] = [
    "facts.missing",
    "facts.unreadable",
    "facts.conflicting",
    "facts.declared",
    "box.amount_financed",
    "box.finance_charge",
    "box.total_of_payments",
    "box.total_sale_price",
    "box.apr",
    "vin.check_digit",
    "dates.order",
    "signatures.complete",
    "initials.complete",
    "secured_party.assignee",
    "state.contract",
    "stipulations.complete",
];

/// What a finding of severity `stop` makes of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Something is missing.
    Gap,
    /// Something is wrong.
    Error,
}

/// A finding, and what it makes of the contract if its severity is `stop`.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedFinding {
    /// The finding.
    pub finding: Finding,
    /// Whether something is missing or wrong.
    pub fault: Fault,
}

/// A contract, and what was found so far.
struct Case<'a> {
    facts: &'a FundingFacts,
    named: Facts<'a>,
    schedule: Option<Schedule>,
    findings: Vec<JudgedFinding>,
}

/// Checks a contract by all rules.
pub fn findings(facts: &FundingFacts) -> Vec<JudgedFinding> {
    let named = Facts::of(facts);
    let mut case = Case {
        facts,
        schedule: Schedule::of(&named),
        named,
        findings: Vec::new(),
    };

    case.needed_facts();
    case.payment_frequency();
    case.sources();
    case.amount_financed();
    case.finance_charge();
    case.total_of_payments();
    case.total_sale_price();
    case.annual_percentage_rate();
    case.vehicle();
    case.dates();
    case.signatures();
    case.secured_party();
    case.state();
    case.stipulations();

    case.findings
}

/// Decides by findings: something wrong weighs more than something missing.
pub fn assessment(findings: Vec<JudgedFinding>) -> Assessment {
    let has = |fault: Fault| {
        let mut stops = findings.iter();
        stops.any(|one| one.fault == fault && one.finding.severity == Severity::Stop)
    };
    let decision = if has(Fault::Error) {
        Decision::Refused
    } else if has(Fault::Gap) {
        Decision::Incomplete
    } else {
        Decision::Ready
    };

    Assessment {
        decision,
        findings: findings.into_iter().map(|one| one.finding).collect(),
    }
}

/// A finding before its severity and fault are known.
struct Report<'a> {
    rule: &'a str,
    facts: &'a [&'a str],
    expected: String,
    actual: String,
    sentence: String,
    source: &'a str,
}

impl Case<'_> {
    fn add(&mut self, severity: Severity, fault: Fault, report: Report<'_>) {
        let facts = report.facts.iter().map(|name| (*name).to_owned());
        let finding = Finding {
            rule: report.rule.to_owned(),
            severity,
            facts: facts.collect(),
            expected: report.expected,
            actual: report.actual,
            sentence: report.sentence,
            source: report.source.to_owned(),
        };
        self.findings.push(JudgedFinding { finding, fault });
    }

    fn is_before_sending(&self) -> bool {
        self.facts.stage == Stage::BeforeSending
    }

    fn needed_facts(&mut self) {
        for (name, source) in NEEDED {
            let fact = self.named.get(name);
            let (rule, actual, sentence) = match fact.map(|fact| (fact.status, fact)) {
                Some((FactStatus::Unreadable, _)) => (
                    "facts.unreadable",
                    "unreadable".to_owned(),
                    format!(
                        "{name} stands on a page without text, such as a scan. A person must read it."
                    ),
                ),
                None | Some((FactStatus::Missing, _)) => (
                    "facts.missing",
                    "missing".to_owned(),
                    format!("The contract has no {name}."),
                ),
                Some((_, fact)) if fact.value.is_none() => (
                    "facts.unreadable",
                    fact.words.clone(),
                    format!("The words of {name} are no value of its kind."),
                ),
                Some((_, fact)) if !self.is_usable(name) => (
                    "facts.unreadable",
                    fact.value.clone().unwrap_or_default(),
                    format!("The rules cannot compute with this value of {name}."),
                ),
                Some(_) => continue,
            };

            // The last signer may fill in the date of the contract.
            let is_early = name == CONTRACT_DATE && self.is_before_sending();
            let severity = if is_early {
                Severity::Note
            } else {
                Severity::Stop
            };
            let report = Report {
                rule,
                facts: &[name],
                expected: "a value".to_owned(),
                actual,
                sentence,
                source,
            };
            self.add(severity, Fault::Gap, report);
        }
    }

    /// Whether a fact has a value that the rules can compute with. A map may read a fact as a text of any kind, and a
    /// check must not be left out because of that.
    fn is_usable(&self, name: &str) -> bool {
        match name {
            "number_of_payments" => self.named.number(name).is_some_and(|count| count > 0),
            "first_payment_date" | CONTRACT_DATE => self.named.date(name).is_some(),
            "vin" | "secured_party" => true,
            _ => self.named.amount(name).is_some(),
        }
    }

    fn payment_frequency(&mut self) {
        let Some(words) = self.named.value("payment_frequency") else {
            return;
        };
        if unit_period(words).is_some() {
            return;
        }

        let report = Report {
            rule: "facts.unreadable",
            facts: &["payment_frequency"],
            expected: "a usual frequency, such as monthly or every two weeks".to_owned(),
            actual: words.to_owned(),
            sentence: format!("{words} is no frequency of payments that the rules know."),
            source: PAYMENT_SCHEDULE,
        };
        self.add(Severity::Stop, Fault::Gap, report);
    }

    fn sources(&mut self) {
        let facts = &self.facts.facts;
        let doubtful = |fact: &&Fact| {
            fact.status == FactStatus::Conflicting || fact.origin == Some(FactOrigin::Declared)
        };
        for fact in facts.iter().filter(doubtful) {
            let name = fact.name.as_str();
            let is_needed = NEEDED.iter().any(|(needed, _)| *needed == name);
            let value = fact.value.clone().unwrap_or_default();
            if fact.status == FactStatus::Conflicting {
                let severity = if is_needed {
                    Severity::Stop
                } else {
                    Severity::Warn
                };
                let report = Report {
                    rule: "facts.conflicting",
                    facts: &[name],
                    expected: "equal values in all places".to_owned(),
                    actual: value,
                    sentence: format!(
                        "{name} has different values in the contract, its fields and its metadata."
                    ),
                    source: AGREEMENT,
                };
                self.add(severity, Fault::Error, report);
            } else if is_needed {
                let report = Report {
                    rule: "facts.declared",
                    facts: &[name],
                    expected: "a value in the contract".to_owned(),
                    actual: value,
                    sentence: format!(
                        "{name} comes from the originator's metadata; the contract does not say it."
                    ),
                    source: AGREEMENT,
                };
                self.add(Severity::Stop, Fault::Gap, report);
            }
        }
    }

    fn amount_financed(&mut self) {
        let Some(schedule) = &self.schedule else {
            return;
        };
        let Some(financed) = self.named.amount("amount_financed") else {
            return;
        };
        let sum = schedule.advanced();
        // A contract without advances has its amount financed paid out at once.
        if schedule.advances.is_empty() || sum == Some(financed) {
            return;
        }

        let number = schedule.advances.len();
        self.add(
            Severity::Stop,
            Fault::Error,
            Report {
                rule: "box.amount_financed",
                facts: &["amount_financed", "advance_amount"],
                expected: written(sum),
                actual: financed.to_string(),
                sentence: format!(
                    "The amount financed is not the sum of the advances ({number}), {}.",
                    written(sum)
                ),
                source: "12 CFR 1026.18(b)",
            },
        );
    }

    fn finance_charge(&mut self) {
        let amounts = (
            self.named.amount("total_of_payments"),
            self.named.amount("amount_financed"),
            self.named.amount("finance_charge"),
        );
        let (Some(total), Some(financed), Some(charge)) = amounts else {
            return;
        };
        let expected = total.minus(financed);
        if expected == Some(charge) {
            return;
        }

        self.add(Severity::Stop, Fault::Error, Report {
            rule: "box.finance_charge",
            facts: &["finance_charge", "total_of_payments", "amount_financed"],
            expected: written(expected),
            actual: charge.to_string(),
            sentence: format!("The finance charge is not the total of payments {total} less the amount financed {financed}."),
            source: "12 CFR 1026.18(d), (h)",
        });
    }

    fn total_of_payments(&mut self) {
        let Some(schedule) = &self.schedule else {
            return;
        };
        let Some(total) = self.named.amount("total_of_payments") else {
            return;
        };
        let sum = schedule.total();
        if sum == Some(total) {
            return;
        }

        let words = schedule.sum_in_words();
        let names = schedule.names.clone();
        let mut facts = vec!["total_of_payments"];
        facts.extend(names.iter().map(String::as_str));
        self.add(
            Severity::Stop,
            Fault::Error,
            Report {
                rule: "box.total_of_payments",
                facts: &facts,
                expected: written(sum),
                actual: total.to_string(),
                sentence: format!(
                    "The total of payments is not the sum of the payments, {words} = {}.",
                    written(sum)
                ),
                source: "12 CFR 1026.18(h)",
            },
        );
    }

    fn total_sale_price(&mut self) {
        let amounts = (
            self.named.amount("total_of_payments"),
            self.named.amount("down_payment"),
            self.named.amount("total_sale_price"),
        );
        let (Some(total), Some(down), Some(price)) = amounts else {
            return;
        };
        let expected = total.plus(down);
        if expected == Some(price) {
            return;
        }

        self.add(Severity::Stop, Fault::Error, Report {
            rule: "box.total_sale_price",
            facts: &["total_sale_price", "total_of_payments", "down_payment"],
            expected: written(expected),
            actual: price.to_string(),
            sentence: format!("The total sale price is not the total of payments {total} and the down payment {down} together."),
            source: "12 CFR 1026.18(j)",
        });
    }

    fn annual_percentage_rate(&mut self) {
        let Some(schedule) = &self.schedule else {
            return;
        };
        let amounts = (
            self.named.amount("apr"),
            self.named.amount("amount_financed"),
        );
        let (Some(disclosed), Some(financed)) = amounts else {
            return;
        };
        let Some(start) = self.start() else {
            return;
        };

        // 12 CFR 1026.22(a)(2) and (3): an eighth of a percentage point, or a quarter for irregular transactions.
        let (tolerance, source) = if schedule.is_irregular(start) {
            (250_000, "12 CFR 1026.22(a)(3), appendix J")
        } else {
            (125_000, "12 CFR 1026.22(a)(2), appendix J")
        };
        let tolerance = Amount::of_millionths(tolerance);
        let computed = schedule.rate(financed, start);
        if computed.is_some_and(|computed| computed.distance(disclosed) <= tolerance) {
            return;
        }

        let (expected, sentence) = match computed {
            Some(rate) => (
                format!("{} ± {tolerance}", rate.rounded(4)),
                format!(
                    "The payments beginning with this first date make an annual percentage rate of {} %, computed from {start}.",
                    rate.rounded(2)
                ),
            ),
            None => (
                "a rate that the payments make".to_owned(),
                "No annual percentage rate can be computed from the payments and the amount financed."
                    .to_owned(),
            ),
        };
        self.add(
            Severity::Stop,
            Fault::Error,
            Report {
                rule: "box.apr",
                facts: &[
                    "apr",
                    "amount_financed",
                    "number_of_payments",
                    "payment_amount",
                    "first_payment_date",
                ],
                expected,
                actual: disclosed.to_string(),
                sentence,
                source,
            },
        );
    }

    /// Day on which the finance charge begins: that of the contract, unless it names a later one.
    fn start(&self) -> Option<Date> {
        let start = self.named.date("finance_charge_date");
        let start = start.or_else(|| self.named.date(CONTRACT_DATE));
        // Before sending, the contract is assumed to be signed today.
        let today = || Date::parse(&self.facts.today).filter(|_| self.is_before_sending());
        start.or_else(today)
    }

    fn vehicle(&mut self) {
        let Some(number) = self.named.value("vin") else {
            return;
        };
        let expected = vin::check_digit(number);
        let actual = vin::written_digit(number);
        if expected.is_some() && expected == actual {
            return;
        }

        let (expected, sentence) = match expected {
            Some(digit) => (
                format!("{digit} at the ninth place"),
                "The check digit of the VIN does not fit: a character is wrong.",
            ),
            None => (
                "17 characters without I, O and Q".to_owned(),
                "The VIN does not have 17 permitted characters.",
            ),
        };
        let report = Report {
            rule: "vin.check_digit",
            facts: &["vin"],
            expected,
            actual: number.to_owned(),
            sentence: sentence.to_owned(),
            source: "49 CFR 565.15(c)",
        };
        self.add(Severity::Stop, Fault::Error, report);
    }

    fn dates(&mut self) {
        let signed = self.named.date(CONTRACT_DATE);
        let today = Date::parse(&self.facts.today);
        let pairs = [
            (CONTRACT_DATE, signed, "first_payment_date"),
            (
                "first_payment_date",
                self.named.date("first_payment_date"),
                "maturity_date",
            ),
            (CONTRACT_DATE, signed, "maturity_date"),
        ];
        for (earlier, date, later) in pairs {
            let (Some(date), Some(other)) = (date, self.named.date(later)) else {
                continue;
            };
            if date <= other {
                continue;
            }

            let report = Report {
                rule: "dates.order",
                facts: &[earlier, later],
                expected: format!("{later} on or after {date}"),
                actual: other.to_string(),
                sentence: format!("{later} {other} is before {earlier} {date}."),
                source: PAYMENT_SCHEDULE,
            };
            self.add(Severity::Stop, Fault::Error, report);
        }

        // A contract may be prepared for another day, but it cannot have been signed on a later one.
        if let (Some(date), Some(today)) = (signed, today)
            && date > today
        {
            let severity = if self.is_before_sending() {
                Severity::Warn
            } else {
                Severity::Stop
            };
            let report = Report {
                rule: "dates.order",
                facts: &[CONTRACT_DATE],
                expected: format!("{today} or earlier"),
                actual: date.to_string(),
                sentence: format!("The contract is dated {date}, after the day of the check."),
                source: AGREEMENT,
            };
            self.add(severity, Fault::Error, report);
        }
    }

    fn signatures(&mut self) {
        if self.is_before_sending() {
            return;
        }

        let signers = &self.facts.signers;
        let mut attributes = self.facts.attributes.iter();
        let is_paper = attributes.any(|(name, kind)| name == KIND && kind == "paper");
        if is_paper {
            let report = Report {
                rule: "signatures.complete",
                facts: &[],
                expected: "signatures of all parties".to_owned(),
                actual: "signed elsewhere".to_owned(),
                sentence: "The contract was uploaded already signed. A person must look at its signatures.".to_owned(),
                source: AGREEMENT_SIGNED,
            };
            self.add(Severity::Warn, Fault::Gap, report);
            return;
        }
        if signers.is_empty() {
            let report = Report {
                rule: "signatures.complete",
                facts: &[],
                expected: "at least one signer".to_owned(),
                actual: "none".to_owned(),
                sentence: "The contract has no signer.".to_owned(),
                source: AGREEMENT_SIGNED,
            };
            self.add(Severity::Stop, Fault::Gap, report);
        }

        for signer in signers {
            let who = format!("{} ({})", signer.name, signer.role);
            if !signer.is_signed || !signer.missing_signatures.is_empty() {
                let report = Report {
                    rule: "signatures.complete",
                    facts: &[],
                    expected: format!("signature of {who}"),
                    actual: missing(&signer.missing_signatures),
                    sentence: format!("{who} has not signed everywhere."),
                    source: AGREEMENT_SIGNED,
                };
                self.add(Severity::Stop, Fault::Gap, report);
            }
            if !signer.missing_initials.is_empty() {
                let report = Report {
                    rule: "initials.complete",
                    facts: &[],
                    expected: format!("initials of {who}"),
                    actual: missing(&signer.missing_initials),
                    sentence: format!("Initials of {who} are missing."),
                    source: AGREEMENT,
                };
                self.add(Severity::Stop, Fault::Gap, report);
            }
        }
    }

    fn secured_party(&mut self) {
        let assignee = self.named.value("secured_party");
        let party = self.facts.secured_party.as_deref();
        let party = party.filter(|name| !name.trim().is_empty());
        let Some(party) = party else {
            let report = Report {
                rule: "secured_party.assignee",
                facts: &["secured_party"],
                expected: "a secured party on record".to_owned(),
                actual: "none".to_owned(),
                sentence: "The record names no secured party.".to_owned(),
                source: ASSIGNEE,
            };
            self.add(Severity::Stop, Fault::Gap, report);
            return;
        };

        if let Some(assignee) = assignee
            && !names::are_equal(assignee, party)
        {
            let report = Report {
                rule: "secured_party.assignee",
                facts: &["secured_party"],
                expected: party.to_owned(),
                actual: assignee.to_owned(),
                sentence: format!(
                    "The contract is assigned to {assignee}, and the secured party on record is {party}."
                ),
                source: ASSIGNEE,
            };
            self.add(Severity::Stop, Fault::Error, report);
        }
    }

    fn state(&mut self) {
        let first = self.facts.jurisdictions.first().map(String::as_str);
        let contract = self.named.value("contract_state").or(first);
        let buyer = self.named.value("buyer_state");
        let (Some(contract), Some(buyer)) = (contract, buyer) else {
            return;
        };
        let (left, right) = (names::state_code(contract), names::state_code(buyer));
        if left.is_some() && left == right {
            return;
        }

        let mut attributes = self.facts.attributes.iter();
        let reason = attributes.find(|(name, value)| name == STATE_REASON && !value.is_empty());
        let (severity, sentence) = match reason {
            Some((_, reason)) => (
                Severity::Note,
                format!("The buyer lives in {buyer}, and the contract is of {contract}: {reason}"),
            ),
            None => (
                Severity::Stop,
                format!(
                    "The buyer lives in {buyer}, and the contract is of {contract}. Give the reason in the metadata as `state_difference_reason`."
                ),
            ),
        };
        let report = Report {
            rule: "state.contract",
            facts: &["buyer_state", "contract_state"],
            expected: contract.to_owned(),
            actual: buyer.to_owned(),
            sentence,
            source: AGREEMENT,
        };
        self.add(severity, Fault::Error, report);
    }

    fn stipulations(&mut self) {
        let severity = if self.is_before_sending() {
            Severity::Note
        } else {
            Severity::Stop
        };
        for stipulation in &self.facts.stipulations {
            if stipulation.state != StipulationState::Open {
                continue;
            }

            let kind = &stipulation.kind;
            let report = Report {
                rule: "stipulations.complete",
                facts: &[],
                expected: kind.clone(),
                actual: "open".to_owned(),
                sentence: format!("{kind} is still required."),
                source: AGREEMENT,
            };
            self.add(severity, Fault::Gap, report);
        }
    }
}

fn written(amount: Option<Amount>) -> String {
    amount.map_or_else(
        || "an amount within range".to_owned(),
        |sum| sum.to_string(),
    )
}

fn missing(fields: &[String]) -> String {
    if fields.is_empty() {
        "not finished".to_owned()
    } else {
        format!("missing: {}", fields.join(", "))
    }
}
