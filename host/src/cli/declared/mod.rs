//! `holdfast component build`: makes a component from declared rules.

mod checks;
mod expressions;
mod funding;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Failure;
use super::output::CommandOutput;
use super::rules::read_vectors;
use holdfast_components::{RulesBase, rules_template};
use holdfast_domain::component::Slot;

#[derive(Args)]
pub struct BuildRules {
    /// Declared rules, see docs/rules.md.
    rules: PathBuf,
    /// Output file.
    component: PathBuf,
}

/// The member by which the kind of a file is known.
#[derive(Deserialize)]
struct AnyRules {
    /// Slot of the rules; `rules.compliance` if absent.
    slot: Option<Slot>,
}

/// Component with rules, and their kind.
struct BuiltRules {
    component: Vec<u8>,
    /// File with the team's vectors.
    vectors: Option<PathBuf>,
    /// Summary for people.
    text: String,
    /// Summary for programs.
    counts: Value,
}

/// Builds a component.
///
/// # Errors
/// The rule and the member that cannot be used.
pub fn build(build: &BuildRules, output: &CommandOutput) -> Result<ExitCode, Failure> {
    let text = fs::read_to_string(&build.rules)
        .map_err(|error| format!("{}: {error}", build.rules.display()))?;
    let unusable = |why: Failure| Failure::from(format!("{}: {why}", build.rules.display()));
    let any: AnyRules = toml::from_str(&text).map_err(|error| unusable(error.into()))?;
    let slot = any.slot.unwrap_or(Slot::Compliance);
    let beside = build.rules.parent().unwrap_or_else(|| Path::new("."));
    let built = match slot {
        Slot::Compliance => checks::build(&text, beside),
        Slot::Funding => funding::build(&text),
        other => Err(format!(
            "rules of {other} are not declared in a file; write them in Rust, see docs/rules.md"
        )
        .into()),
    };
    let mut built = built.map_err(unusable)?;

    let mut vectors = 0;
    // Vectors travel inside the component: an upload and every later version of the name must pass them.
    if let Some(vectors_file) = &built.vectors {
        let own = read_vectors(&beside.join(vectors_file), slot)?;
        own.put_into(&mut built.component)?;
        vectors = own.vectors.len();
    }

    // The component of an earlier build stays until everything about the new one is valid.
    fs::write(&build.component, &built.component)?;
    let text = format!(
        "{}: {}; vectors: {vectors}",
        build.component.display(),
        built.text
    );

    let mut value = built.counts;
    value["component"] = json!(build.component);
    value["slot"] = json!(slot);
    value["vectors"] = json!(vectors);
    output.one(&value, &text);

    Ok(ExitCode::SUCCESS)
}

/// Returns the component that rules are written into.
fn template(base: RulesBase) -> Result<Vec<u8>, Failure> {
    let template = rules_template(base)?;
    Ok(template.ok_or("this binary has no component for declared rules")?)
}
