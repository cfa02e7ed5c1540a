//! `holdfast component test`, `diff` and `build`: work on rules without an installation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use bytes::Bytes;
use clap::Args;
use serde_json::json;
use tempfile::TempDir;

use super::output::CommandOutput;
use super::{Failure, diff_page};
use holdfast_base::config::Config;
use holdfast_base::disk;
use holdfast_base::tls;
use holdfast_components::behaviour::{
    self, BehaviourDiff, FunctionDiff, QuestionPlan, RulesProgram,
};
use holdfast_components::branches::{self, Branch};
use holdfast_components::compiler::{CompileError, ComponentCompiler};
use holdfast_components::inspection::{AdmissionReason, InspectedComponent};
use holdfast_components::vectors::{VectorFile, VectorSet};
use holdfast_components::{ComponentArtifact, ComponentRegistry, built_in};
use holdfast_domain::clock::Clock;
use holdfast_domain::component::Slot;
use holdfast_domain::token::random;

/// Components in a temporary folder, checked and compiled like uploads.
pub struct Workbench {
    pub components: ComponentRegistry,
    compiler: ComponentCompiler,
    _cache: TempDir,
}

/// Component on the workbench.
pub struct PreparedComponent {
    pub artifact: ComponentArtifact,
    pub inspected: InspectedComponent,
}

impl Workbench {
    pub fn new(config: &Config) -> Result<Self, Failure> {
        tls::use_one();
        let settings = &config.components;
        let cache = tempfile::tempdir()?;
        // The key protects compiled code in this folder only, which ends with the process.
        let components = ComponentRegistry::load(
            cache.path().into(),
            random::<32>(),
            settings.limits()?,
            Clock::default(),
        )?;

        Ok(Self {
            components,
            compiler: ComponentCompiler::new(settings.compiler.clone(), settings.compile_limit),
            _cache: cache,
        })
    }

    /// Inspects and compiles a component.
    ///
    /// # Errors
    /// The inner error has the reasons for which it cannot be admitted.
    pub async fn prepare(
        &self,
        name: &str,
        bytes: Bytes,
    ) -> Result<Result<PreparedComponent, Vec<AdmissionReason>>, Failure> {
        // The file is unknown code, so it is compiled in the confined child even on the author's machine.
        let (inspected, native) = match self.compiler.compile(bytes.clone()).await {
            Ok(compiled) => compiled,
            Err(CompileError::Refused(reasons)) => return Ok(Err(reasons)),
            Err(error) => return Err(error.into()),
        };
        // Nothing is admitted here, so the version is never compared with another.
        let artifact = ComponentArtifact::uploaded(inspected.slot, name, "0.0.0", bytes);
        self.components
            .keep_native(artifact.slot, &artifact.identity, native)
            .await?;

        Ok(Ok(PreparedComponent {
            artifact,
            inspected,
        }))
    }

    /// Loads rules from a file, or built-in ones by their name.
    pub async fn rules(&self, named: &str) -> Result<(RulesProgram, VectorSet), Failure> {
        if let Some(built_in) = built_in().find(|one| one.identity.name == named) {
            return self.program(&built_in);
        }

        // Names of built-in components come first, so a file beside the author
        // cannot replace one by accident.
        let path = Path::new(named);
        let bytes = disk::read(path).map_err(|error| {
            format!("{named} is neither a file nor the name of a built-in component: {error}")
        })?;

        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        match self.prepare(&name, bytes.into()).await? {
            Ok(prepared) => self.program(&prepared.artifact),
            Err(reasons) => Err(reasons
                .iter()
                .map(|reason| format!("{named}: {}", reason.message))
                .collect::<Vec<_>>()
                .join("\n")
                .into()),
        }
    }

    fn program(&self, artifact: &ComponentArtifact) -> Result<(RulesProgram, VectorSet), Failure> {
        if artifact.slot.is_provider() || artifact.slot == Slot::Documents {
            return Err(format!(
                "{} is for {}: only rules that decide can be asked by name",
                artifact.identity, artifact.slot
            )
            .into());
        }

        let program = self.components.program(artifact)?;
        Ok((program, VectorSet::inside(&artifact.bytes())?))
    }
}

/// Reads vectors in YAML.
pub fn read_vectors(file: &Path, slot: Slot) -> Result<VectorSet, Failure> {
    let text = fs::read_to_string(file)?;
    let unusable = |why: String| Failure::from(format!("{}: {why}", file.display()));
    let vectors: VectorFile =
        serde_saphyr::from_str(&text).map_err(|error| unusable(error.to_string()))?;
    vectors.complete(slot).map_err(unusable)
}

/// Returns the most questions for each function, and the threads that ask them.
fn plan(slot: Slot, questions: Option<usize>, vectors: Vec<VectorSet>) -> QuestionPlan {
    // A question about placement includes a whole document, so far fewer fit into the same time.
    let default = match slot {
        Slot::Placement => 100,
        _ => 100_000,
    };
    QuestionPlan {
        vectors,
        most: questions.unwrap_or(default),
        threads: thread::available_parallelism().map_or(1, usize::from),
        ..QuestionPlan::default()
    }
}

#[derive(Args)]
pub struct TestRules {
    component: String,
    /// Vectors in YAML, instead of those inside the component.
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
    /// Number of generated questions for each function, to find the branches.
    #[arg(long, value_name = "NUMBER")]
    questions: Option<usize>,
}

/// Runs a team's vectors, and reports the checks and branches that they cover. Exit status 1 if a vector
/// does not hold.
pub async fn test(
    test: TestRules,
    config: &Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    let bench = Workbench::new(config)?;
    let (rules, inside) = bench.rules(&test.component).await?;
    let vectors = match &test.vectors {
        Some(file) => read_vectors(file, rules.slot)?,
        None => inside,
    };
    // Zero of zero vectors would hold, and a pipeline would take that for a test.
    if vectors.vectors.is_empty() {
        return Err("there are no vectors: give a file with --vectors".into());
    }

    let results = vectors.results(&rules);
    let failed: Vec<_> = results.iter().filter(|one| !one.wrong.is_empty()).collect();
    let covered: BTreeSet<Branch> = vectors
        .vectors
        .iter()
        .flat_map(|vector| branches::taken(&rules, &vector.call, &vector.given))
        .collect();

    let questions = test
        .questions
        .or((rules.slot != Slot::Placement).then_some(20_000));
    let found = branches::branches(&rules, &plan(rules.slot, questions, vec![vectors.clone()]));
    // A sentence that names a fact may be longer in one record than in another,
    // so either may contain the other.
    let is_covered = |branch: &&Branch| {
        covered
            .iter()
            .any(|one| one.is_within(branch) || branch.is_within(one))
    };
    let (reached, missed): (Vec<&Branch>, Vec<&Branch>) = found.keys().partition(is_covered);

    let checks: BTreeSet<(&str, &str)> = found.keys().map(Branch::outcome).collect();
    let covered_checks: BTreeSet<(&str, &str)> = reached.iter().map(|one| one.outcome()).collect();
    let mut lines: Vec<String> = failed
        .iter()
        .map(|one| format!("FAILED \"{}\": {}", one.name, one.wrong.join(", ")))
        .collect();
    lines.push(format!(
        "{} of {} vectors hold",
        results.len() - failed.len(),
        results.len()
    ));

    lines.push(format!(
        "outcomes of checks covered: {} of {}; branches: {} of {}",
        covered_checks.len(),
        checks.len(),
        reached.len(),
        found.len()
    ));

    let told = missed.iter().take(MAX_LINES);
    lines.extend(told.map(|branch| format!("  not covered: {}: {}", branch.check, branch)));
    if missed.len() > MAX_LINES {
        lines.push(format!(
            "  and {} more: use --json",
            missed.len() - MAX_LINES
        ));
    }

    // The terminal gets the first ones only. Programs get all, each with facts that reach it.
    let missed: Vec<_> = missed
        .iter()
        .map(|branch| json!({ "branch": branch, "given": found.get(*branch) }))
        .collect();
    let value = json!({
        "passed": failed.is_empty(), "vectors": results,
        "outcomes": { "covered": covered_checks.len(), "found": checks.len() },
        "branches": { "covered": reached.len(), "found": found.len(), "missed": missed },
    });
    output.one(&value, &lines.join("\n"));

    Ok(if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[derive(Args)]
pub struct DiffRules {
    /// Component file, or name of a built-in component.
    before: String,
    /// Component file, or name of a built-in component.
    after: String,
    /// Number of questions for each function; 100,000 if absent, and 100 about documents.
    #[arg(long, value_name = "NUMBER")]
    questions: Option<usize>,
    /// Write the report as a web page.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// Compares two components on generated facts.
pub async fn diff(
    diff: DiffRules,
    config: &Config,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    let bench = Workbench::new(config)?;
    let (before, vectors_before) = bench.rules(&diff.before).await?;
    let (after, vectors_after) = bench.rules(&diff.after).await?;
    // Each slot has its own questions, so components of two slots have none in common.
    if before.slot != after.slot {
        return Err(format!(
            "{} is for {}, and {} for {}",
            diff.before, before.slot, diff.after, after.slot
        )
        .into());
    }

    let plan = plan(
        before.slot,
        diff.questions,
        vec![vectors_before, vectors_after],
    );
    let report = behaviour::compare(&before, &after, &plan);
    if let Some(page) = &diff.page {
        fs::write(page, diff_page::page(&report))?;
    }

    output.one(&json!(report), &told(&report));
    Ok(ExitCode::SUCCESS)
}

/// Branches, and groups of differences of each function, that are printed.
const MAX_LINES: usize = 20;

/// Returns a report as text.
fn told(report: &BehaviourDiff) -> String {
    let mut lines = vec![format!(
        "{} and {} ({})",
        report.before, report.after, report.slot
    )];
    for function in &report.functions {
        lines.push(asked(function));
        for group in function.groups.iter().take(MAX_LINES) {
            let example = &group.counterexample;
            lines.push(format!(
                "  {}: {} ({})",
                json!(group.direction).as_str().unwrap_or_default(),
                group.check,
                group.count
            ));

            let with = if example.changes.is_empty() {
                ""
            } else {
                ", with"
            };
            lines.push(format!("    {}{with}", example.base));
            let changes = example.changes.iter();
            lines.extend(
                changes.map(|change| {
                    format!("      {}: {} -> {}", change.field, change.from, change.to)
                }),
            );

            for (value, sentence) in [
                (&example.before, &example.before_sentence),
                (&example.after, &example.after_sentence),
            ] {
                let sentence = sentence
                    .as_ref()
                    .map_or(String::new(), |one| format!(": {one}"));
                lines.push(format!("    {value}{sentence}"));
            }
        }
    }

    // An author must not take the printed groups for all of them.
    let more = |function: &FunctionDiff| function.groups.len().saturating_sub(MAX_LINES);
    let more: usize = report.functions.iter().map(more).sum();
    if more > 0 {
        lines.push(format!(
            "{more} more groups of differences: use --json or --page"
        ));
    }

    if report.is_equal() {
        lines.push(
            "No difference was found. That is no proof: only these questions were asked.".into(),
        );
    }

    lines.join("\n")
}

/// Describes the questions about a function.
pub fn asked(function: &FunctionDiff) -> String {
    let asked = function.asked;
    let all = asked.all();
    let stopped = match function.stopped_after {
        Some(number) => format!("; the time sufficed for {number}"),
        None => String::new(),
    };
    let combinations = if asked.exhaustive {
        format!("all {} combinations, ", asked.combinations)
    } else {
        String::new()
    };

    format!(
        "{}: {all} questions ({combinations}{} known, {} of {} with one change, {} of {} pairs of changes, {} with many); {} differ, {} failed{stopped}",
        function.function,
        asked.bases,
        asked.single,
        asked.all_single,
        asked.pairs,
        asked.all_pairs,
        asked.random,
        function.differing,
        function.failed
    )
}
