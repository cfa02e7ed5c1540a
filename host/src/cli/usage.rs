//! `holdfast usage`: billed usage.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::output::CommandOutput;
use super::{Failure, org_id};
use crate::start;
use holdfast_base::config::Config;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;
use holdfast_domain::identity::KbaStatus;
use holdfast_store::kba::{self, KbaUsage};

#[derive(Subcommand)]
pub enum UsageCommand {
    /// Show the identity question sessions of a calendar month, by organization.
    Kba(KbaUsageArguments),
}

#[derive(Args)]
pub struct KbaUsageArguments {
    /// Calendar month in UTC, for example 2026-11.
    #[arg(long, value_parser = month)]
    month: Date,
    /// Show only this organization.
    #[arg(long, value_parser = org_id)]
    org: Option<OrgId>,
}

/// Parses a month and returns its first day.
fn month(text: &str) -> Result<Date, String> {
    let shape = text.len() == 7 && text.as_bytes().get(4) == Some(&b'-');
    let first = shape.then(|| format!("{text}-01").parse().ok()).flatten();
    first.ok_or_else(|| format!("{text} is no month; write it as 2026-11"))
}

pub async fn run(
    command: UsageCommand,
    config: &Config,
    output: &CommandOutput,
) -> Result<(), Failure> {
    let UsageCommand::Kba(wanted) = command;
    let store = start::open_store(config).await?;
    let (from, to) = (begins(wanted.month)?, begins(next(wanted.month)?)?);
    let mut connection = store.read().await?;
    let usage = kba::usage(&mut connection, None, from, to).await?;
    let month = wanted.month.strftime("%Y-%m").to_string();

    let mut by_org: BTreeMap<OrgId, Vec<KbaUsage>> = BTreeMap::new();
    for one in usage {
        if wanted.org.as_ref().is_none_or(|org| *org == one.org) {
            by_org.entry(one.org.clone()).or_default().push(one);
        }
    }

    let rows: Vec<Value> = by_org
        .iter()
        .map(|(org, all)| row(org, &month, all))
        .collect();
    let lines: Vec<String> = rows.iter().map(line).collect();
    output.one(&Value::Array(rows), &lines.join("\n"));

    Ok(())
}

fn next(month: Date) -> Result<Date, Failure> {
    Ok(month.checked_add(jiff::Span::new().months(1))?)
}

fn begins(day: Date) -> Result<Timestamp, Failure> {
    let midnight = day.to_zoned(TimeZone::UTC)?.timestamp();
    Ok(Timestamp::from_millis(midnight.as_millisecond()))
}

fn row(org: &OrgId, month: &str, all: &[KbaUsage]) -> Value {
    let sessions = |status| {
        let of = all.iter().filter(|one| one.status == status);
        of.map(|one| one.sessions).sum::<i64>()
    };
    json!({
        "org_id": org,
        "month": month,
        "passed": sessions(KbaStatus::Passed),
        "failed": sessions(KbaStatus::Failed),
        "unavailable": sessions(KbaStatus::Unavailable),
        "billed_signers": all.iter().map(|one| one.billed).sum::<i64>(),
        "amount_cents": all.iter().map(|one| one.amount_cents).sum::<i64>(),
        "currency": "USD",
    })
}

fn line(row: &Value) -> String {
    format!(
        "{} {}: {} passed, {} failed, {} unavailable; {} signers billed, {} cents",
        row["org_id"].as_str().unwrap_or_default(),
        row["month"].as_str().unwrap_or_default(),
        row["passed"],
        row["failed"],
        row["unavailable"],
        row["billed_signers"],
        row["amount_cents"],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn price_reports_start_months_at_midnight_utc() {
        let november = month("2026-11").unwrap();
        assert_eq!(
            begins(november).unwrap().to_string(),
            "2026-11-01T00:00:00.000Z"
        );

        let december = month("2026-12").unwrap();
        assert_eq!(next(december).unwrap(), jiff::civil::date(2027, 1, 1));

        for wrong in ["2026", "2026-13", "11-2026", "2026-11-01", "2026/11"] {
            assert!(month(wrong).is_err(), "{wrong}");
        }
    }
}
