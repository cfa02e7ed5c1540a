//! `holdfast tape`: compares a loan tape with the contracts of bundles, without an installation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use holdfast_verify::{USAGE, VerifyArguments};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Failure;
use super::output::CommandOutput;
use holdfast_base::config::Config;
use holdfast_components::compiler::ComponentCompiler;
use holdfast_domain::facts::FactSheet;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::tape::{
    CONTRACT_NUMBER, KeyScan, MapProblem, RecordIndex, RowCase, RowResult, RowStatus, RowsChecked,
    TapeCheck, TapeFormat, TapeKey, TapeMap, TapeReader, TapeSummary, VIN,
};
use holdfast_domain::toml_document;
use holdfast_evidence::{Bundle, EvidenceVerdict, PoolReport, verify_pool};

/// Findings that the text shows. JSON has all of them.
const SHOWN: usize = 200;

#[derive(Subcommand)]
pub enum TapeCommand {
    /// Compare each row of a tape with the facts in the bundles of a folder. Every bundle is verified first. Exit status 1
    /// for findings that stop or a bundle that is not valid; otherwise as `verify` for the weakest bundle.
    Check(CheckedTape),
}

#[derive(Args)]
pub struct CheckedTape {
    /// The tape: CSV, or JSON Lines in a file that ends in `.jsonl`.
    file: PathBuf,
    /// Map of the columns, as JSON.
    #[arg(long, value_name = "FILE")]
    map: PathBuf,
    /// Folder with bundles: folders or zip files.
    #[arg(long, value_name = "FOLDER")]
    bundles: PathBuf,
    /// Proofs of a pool, as a zip: only its records are compared, and each of them needs a bundle.
    #[arg(long, value_name = "FILE")]
    pool: Option<PathBuf>,
    /// Report of the same tape in JSON. The result has to have the digest of that report.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    arguments: VerifyArguments,
}

/// A contract of a bundle.
struct BundledContract {
    org: OrgId,
    facts: Option<FactSheet>,
}

/// A bundle that is not valid, or no bundle.
#[derive(Serialize)]
struct RefusedBundle {
    name: String,
    why: String,
}

/// Contracts of a folder.
struct ReadBundles {
    contracts: BTreeMap<EnvelopeId, BundledContract>,
    refused: Vec<RefusedBundle>,
    /// Weakest verdict of those that are not refused, and of the proofs of the pool.
    weakest: EvidenceVerdict,
}

/// A comparison and its result.
struct TapeComparison {
    summary: TapeSummary,
    rows: Vec<RowResult>,
}

pub async fn run(
    command: TapeCommand,
    config: &Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    let TapeCommand::Check(tape) = command;
    match check(&tape, config, output).await {
        Ok(status) => Ok(status),
        // Unusable input has its own exit status, so that scripts do not take it for a tape with findings.
        Err(error) => {
            output.failure(error.as_ref());
            Ok(ExitCode::from(USAGE))
        }
    }
}

async fn check(
    tape: &CheckedTape,
    config: &Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    let map = read_map(&tape.map)?;
    let expected = tape.report.as_deref().map(expected).transpose()?;
    let mut read = read_bundles(tape, config).await?;
    if let Some(pool) = read_pool(tape, config)? {
        read.keep(&pool.listed, pool.verdict);
    }
    let ReadBundles {
        contracts,
        refused,
        weakest,
    } = read;
    let compared = compare(&tape.file, map, &contracts)?;

    let sha256 = compared.summary.sha256();
    let is_repeated = expected.as_ref().map(|expected| *expected == sha256);
    let findings: Vec<&RowResult> = compared
        .rows
        .iter()
        .filter(|row| row.status != RowStatus::Clean)
        .collect();
    let result = json!({
        "summary": compared.summary, "sha256": sha256, "report_sha256": expected, "same_as_report": is_repeated,
        "bundles": contracts.len(), "refused_bundles": refused, "weakest_bundle": weakest, "rows": findings,
    });
    output.one(&result, &text(&compared, &refused, is_repeated, &sha256));

    let has_failed = compared.summary.totals.stop > 0 || !refused.is_empty();
    let status = if has_failed || is_repeated == Some(false) {
        EvidenceVerdict::NotValid.exit_code()
    } else {
        weakest.exit_code()
    };
    Ok(ExitCode::from(status))
}

/// Reads a map in JSON, or in TOML in a file that ends in `.toml`.
fn read_map(file: &Path) -> Result<TapeMap, Failure> {
    let failed = |why: String| Failure::from(format!("--map {}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    if file.extension().is_none_or(|ending| ending != "toml") {
        return TapeMap::parse(&text).map_err(|problems| failed(listed(&problems, |_| None)));
    }

    let map: TapeMap = toml_document::parsed(&text).map_err(failed)?;
    let problems = map.problems();
    if problems.is_empty() {
        Ok(map)
    } else {
        Err(failed(listed(&problems, toml_document::lines(&text))))
    }
}

/// Returns the mistake in a map, in one line.
fn listed(problems: &[MapProblem], line_of: impl Fn(&[String]) -> Option<usize>) -> String {
    let each = problems.iter().map(|problem| {
        let line = line_of(&problem.path).map(|line| format!("line {line}: "));
        let place = problem.path.join(".");
        format!("{}{place}: {}", line.unwrap_or_default(), problem.message)
    });
    each.collect::<Vec<_>>().join("; ")
}

/// Returns the digest of a report.
fn expected(file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| format!("--report {}: {error}", file.display()))?;
    let report: Value = serde_json::from_str(&text)
        .map_err(|error| format!("--report {}: {error}", file.display()))?;
    let digest = report["sha256"].as_str().map(str::to_owned);
    digest.ok_or_else(|| format!("--report {}: it has no sha256", file.display()).into())
}

impl ReadBundles {
    /// Leaves out the contracts that are not in a pool, and reports records of the pool without a contract.
    fn keep(&mut self, pool: &BTreeSet<EnvelopeId>, verdict: EvidenceVerdict) {
        self.weaken(verdict);
        self.contracts.retain(|id, _| pool.contains(id));
        let missing = pool.iter().filter(|id| !self.contracts.contains_key(*id));
        self.refused.extend(missing.map(|id| RefusedBundle {
            name: id.to_string(),
            why: "the pool has this record, and the folder no valid bundle of it".into(),
        }));
    }

    /// Counts a verdict that is not that of failure.
    fn weaken(&mut self, verdict: EvidenceVerdict) {
        // The codes are in the order of weakness, but for that of failure.
        if verdict.exit_code() > self.weakest.exit_code() {
            self.weakest = verdict;
        }
    }
}

/// Verifies the proofs of the pool.
fn read_pool(tape: &CheckedTape, config: &Config) -> Result<Option<PoolReport>, Failure> {
    let Some(path) = &tape.pool else {
        return Ok(None);
    };
    let named = |why: String| Failure::from(format!("--pool {}: {why}", path.display()));
    let roots = config.seal.timestamp_trust_file.as_deref();
    let trusted = tape.arguments.trusted(roots)?;
    let opened = File::open(path).map_err(|error| named(error.to_string()))?;
    let report = verify_pool(BufReader::new(opened), &trusted);
    let report = report.map_err(|error| named(error.to_string()))?;
    if report.verdict == EvidenceVerdict::NotValid {
        return Err(named("the proofs are not valid".into()));
    }
    Ok(Some(report))
}

/// Reads and verifies the bundles of the folder.
async fn read_bundles(tape: &CheckedTape, config: &Config) -> Result<ReadBundles, Failure> {
    let roots = config.seal.timestamp_trust_file.as_deref();
    let trusted = tape.arguments.trusted(roots)?;
    let settings = &config.components;
    let compiler = ComponentCompiler::new(settings.compiler.clone(), settings.compile_limit);

    let folder = std::fs::read_dir(&tape.bundles);
    let folder =
        folder.map_err(|error| format!("--bundles {}: {error}", tape.bundles.display()))?;
    let mut paths = folder
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.is_dir() || path.extension().is_some_and(|ending| ending == "zip"));
    paths.sort();
    if paths.is_empty() {
        return Err(format!("--bundles {}: there are no bundles", tape.bundles.display()).into());
    }

    let mut read = ReadBundles {
        contracts: BTreeMap::new(),
        refused: Vec::new(),
        weakest: EvidenceVerdict::Valid,
    };
    for path in paths {
        let name = path.display().to_string();
        let mut refuse = |why: String| {
            read.refused.push(RefusedBundle {
                name: name.clone(),
                why,
            });
        };
        let bundle = match Bundle::read(&path) {
            Ok(bundle) => bundle,
            Err(error) => {
                refuse(error.to_string());
                continue;
            }
        };

        let verified = tape.arguments.verify(&bundle, &trusted, &compiler).await;
        let verdict = match verified {
            Ok(report) => report.verdict,
            Err(error) => {
                refuse(error.to_string());
                continue;
            }
        };
        let (
            EvidenceVerdict::Valid | EvidenceVerdict::NotAnchored | EvidenceVerdict::NotReEvaluated,
            Some((id, org)),
        ) = (verdict, bundle.envelope())
        else {
            refuse(verdict.to_string());
            continue;
        };

        read.weaken(verdict);
        let facts = bundle.facts();
        read.contracts.insert(id, BundledContract { org, facts });
    }

    Ok(read)
}

/// Compares the tape with the contracts, as the service does.
fn compare(
    path: &Path,
    map: TapeMap,
    contracts: &BTreeMap<EnvelopeId, BundledContract>,
) -> Result<TapeComparison, Failure> {
    let is_lines = path.extension().is_some_and(|ending| ending == "jsonl");
    let format = if is_lines {
        TapeFormat::JsonLines
    } else {
        TapeFormat::Csv
    };
    let mut file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let tape_sha256 = digest(&mut file)?;

    let mut keys = KeyScan::default();
    let mut reader = TapeReader::open(File::open(path)?, format, &map)?;
    while let Some(row) = reader.next_row()? {
        if let Ok(row) = row {
            keys.add(&row, &map);
        }
    }

    let sheets: Vec<Option<&FactSheet>> = contracts
        .values()
        .map(|contract| contract.facts.as_ref())
        .collect();
    let done = RowsChecked::none(&map);
    let mut check = TapeCheck::new(map.clone(), index(contracts), keys.finish(), done);
    let mut reader = TapeReader::open(File::open(path)?, format, &map)?;
    let mut rows = Vec::new();
    while let Some(row) = reader.next_row()? {
        let row = match row {
            Ok(row) => row,
            Err(problem) => {
                rows.push(check.add(problem.line, RowCase::Problem(problem)));
                continue;
            }
        };
        let found = check.index.look_up(&row, &check.map);
        let facts = |record: u32| sheets.get(record as usize).copied().flatten();
        let case = check.compared(&row, &found, facts);
        rows.push(check.add(row.line, case));
    }
    for envelope in check.unlisted() {
        rows.push(check.add_unlisted(envelope));
    }

    Ok(TapeComparison {
        summary: check.summary(&tape_sha256),
        rows,
    })
}

fn digest(file: &mut File) -> Result<String, Failure> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            break;
        }
        hasher.update(&piece[..length]);
    }
    file.rewind()?;
    Ok(hex::encode(hasher.finalize()))
}

/// Returns the contracts by their keys. A bundle does not have the originator's own id of the record.
fn index(contracts: &BTreeMap<EnvelopeId, BundledContract>) -> RecordIndex {
    let mut index = RecordIndex::default();
    for (envelope, contract) in contracts {
        let Some(record) = index.add(envelope, &contract.org) else {
            continue;
        };
        let Some(facts) = &contract.facts else {
            continue;
        };
        for (name, key) in [
            (CONTRACT_NUMBER, TapeKey::ContractNumber),
            (VIN, TapeKey::VinAndDate),
        ] {
            let value = facts.get(name).and_then(|fact| fact.value.as_deref());
            if let Some(value) = value {
                index.add_key(record, key, value);
            }
        }
    }
    index
}

/// Writes the result for people.
fn text(
    compared: &TapeComparison,
    refused: &[RefusedBundle],
    is_repeated: Option<bool>,
    sha256: &str,
) -> String {
    let totals = &compared.summary.totals;
    let mut lines = vec![format!(
        "{} rows against {} contracts: {} clean, {} with exceptions, {} without a record, {} ambiguous, {} unreadable; {} contracts unlisted",
        totals.rows,
        compared.summary.population,
        totals.clean,
        totals.exceptions,
        totals.unmatched,
        totals.ambiguous,
        totals.unreadable,
        totals.unlisted
    )];
    for bundle in refused {
        lines.push(format!("{} is not used: {}", bundle.name, bundle.why));
    }

    let findings = compared.rows.iter().flat_map(|row| {
        let of_row = row.findings.iter();
        of_row.map(move |finding| (row, finding))
    });
    let findings: Vec<String> = findings
        .map(|(row, finding)| {
            let column = finding.column.as_deref().unwrap_or("row");
            let values = match (&finding.tape, &finding.contract) {
                (None, None) => String::new(),
                (tape, contract) => {
                    let shown =
                        |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".into());
                    format!(" (tape {}, contract {})", shown(tape), shown(contract))
                }
            };
            let place = finding
                .place
                .as_ref()
                .map(|place| format!(", page {}", place.page));
            let detail = finding.detail.as_ref().map(|detail| format!(": {detail}"));
            format!(
                "line {}: {} {column} {}{values}{}{}",
                row.line,
                finding.severity,
                finding.code,
                place.unwrap_or_default(),
                detail.unwrap_or_default()
            )
        })
        .collect();
    lines.extend(findings.iter().take(SHOWN).cloned());
    if findings.len() > SHOWN {
        lines.push(format!(
            "{} further findings: see --json",
            findings.len() - SHOWN
        ));
    }

    lines.push(format!("result SHA-256 {sha256}"));
    match is_repeated {
        Some(true) => lines.push("the same result as in the report".into()),
        Some(false) => lines.push("NOT the result of the report".into()),
        None => {}
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = r#"
keys = ["contract_number"]

[[columns]]
column = "Loan Number"
fact = "contract_number"

[[columns]]
column = "APR"
fact = "apr"
fraction = true
"#;

    fn read(name: &str, text: &str) -> Result<TapeMap, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        read_map(&file).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_map_is_read_in_json_and_in_toml() {
        let map = read("map.toml", MAP).unwrap();
        let document = toml_document::json(MAP).unwrap().to_string();
        assert_eq!(read("map.json", &document), Ok(map));
    }

    #[test]
    fn mistakes_in_a_map_are_named_with_their_line() {
        for (from, to, line) in [
            ("\"APR\"", "APR", 9),
            ("fraction", "fractions", 11),
            ("\"APR\"", "\"Loan Number\"", 9),
            (
                "keys = [\"contract_number\"]",
                "keys = [\"vin_and_date\"]",
                2,
            ),
        ] {
            let why = read("map.toml", &MAP.replace(from, to)).unwrap_err();
            assert!(why.contains(&format!("line {line}: ")), "{to}: {why}");
        }
        let why = read("map.json", "{}").unwrap_err();
        assert!(!why.contains("map.json: line"), "{why}");
    }

    #[test]
    fn a_pool_limits_the_contracts_and_names_those_without_a_bundle() {
        let ids: Vec<EnvelopeId> = (0..3).map(|_| EnvelopeId::new()).collect();
        let contract = |id: &EnvelopeId| {
            let contract = BundledContract {
                org: OrgId::new(),
                facts: None,
            };
            (id.clone(), contract)
        };
        let mut read = ReadBundles {
            contracts: ids[..2].iter().map(contract).collect(),
            refused: Vec::new(),
            weakest: EvidenceVerdict::Valid,
        };
        let pool: BTreeSet<EnvelopeId> = ids[1..].iter().cloned().collect();
        read.keep(&pool, EvidenceVerdict::NotAnchored);

        assert_eq!(read.contracts.keys().collect::<Vec<_>>(), [&ids[1]]);
        let refused: Vec<&str> = read.refused.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(refused, [ids[2].as_str()]);
        assert_eq!(read.weakest, EvidenceVerdict::NotAnchored);
    }
}
