//! Reference of all settings, made of the definitions that the parser reads.

use std::time::Duration;

use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Config;

const HEAD: &str = "# Configuration

Settings come from a TOML file (`--config holdfast.toml`) and from environment variables, which
override the file. The variable of a setting has the prefix `HOLDFAST_`, upper case, and `__`
between levels: `webhooks.max_attempts` is `HOLDFAST_WEBHOOKS__MAX_ATTEMPTS`. Lists are written as
in TOML (`[\"1m\", \"5m\"]`), durations as `250ms`, `10s`, `5m`, `2h` or `3d`. An unknown key or an
invalid value stops the program at start with an error that names the key.

`holdfast settings` prints this page for the version that is installed.
";

/// One setting.
#[derive(Debug, Serialize)]
pub struct SettingReference {
    /// Path of its table in the file, empty at the top level.
    pub section: String,
    /// Key in that table.
    pub key: String,
    /// Default as the file would have it; none where there is none, or where it depends on
    /// other settings.
    pub default: Option<String>,
    /// Meaning, with the values of an enumeration.
    pub meaning: String,
}

/// All settings, the top level first.
pub fn settings() -> Vec<SettingReference> {
    let mut generator = SchemaSettings::draft2020_12();
    // The page shows plain keys, so references would have to be resolved again below.
    generator.inline_subschemas = true;
    let schema = generator.into_generator().into_root_schema_for::<Config>();
    let mut all = Vec::new();
    if let Some(root) = schema.as_object() {
        collect(&mut all, "", root);
    }
    all
}

/// All settings of an operator as a Markdown page, one table for each section of the file.
pub fn reference() -> String {
    let mut tables: Vec<(Vec<String>, String)> = Vec::new();
    let all = settings();
    // Levers of tests are in `settings --json` and docs/testing.md only.
    for section in all.chunk_by(|one, next| one.section == next.section) {
        let rows = section
            .iter()
            .filter(|setting| !setting.meaning.ends_with("; for tests."));
        let rows: String = rows.map(row).collect();
        let name = section.first().map(|setting| setting.section.clone());

        // Sections that have the same settings, such as the providers of all kinds, share a table.
        match tables.iter_mut().find(|(_, known)| *known == rows) {
            Some((sections, _)) => sections.extend(name),
            None => tables.push((name.into_iter().collect(), rows)),
        }
    }

    let mut page = String::from(HEAD);
    for (sections, rows) in tables {
        let title = |path: &String| match path.as_str() {
            "" => "Top level".to_owned(),
            path => format!("`[{path}]`"),
        };
        let titles: Vec<String> = sections.iter().map(title).collect();
        page += &format!(
            "\n## {}\n\n| Key | Default | Meaning |\n|---|---|---|\n{rows}",
            titles.join(", ")
        );
    }

    page
}

fn row(setting: &SettingReference) -> String {
    let default = setting.default.as_ref();
    let default = default.map_or("none".to_owned(), |default| format!("`{default}`"));
    // A bar would end the cell of the Markdown table.
    let meaning = setting.meaning.replace('|', "\\|");
    format!("| `{}` | {default} | {meaning} |\n", setting.key)
}

/// Collects the settings of a section, then those of the sections below it.
fn collect(all: &mut Vec<SettingReference>, section: &str, schema: &Map<String, Value>) {
    // Plain keys come first: a section that others interrupt would get its heading twice.
    let (nested, plain): (Vec<_>, Vec<_>) = members(schema)
        .into_iter()
        .partition(|(_, member)| !members(member).is_empty());

    let required = schema.get("required").and_then(Value::as_array);
    for (key, member) in plain {
        let is_required =
            required.is_some_and(|required| required.contains(&Value::from(key.as_str())));
        let note = is_required.then(|| "Required.".to_owned());
        let meaning = [description(&member), choices(&member), note];
        let meaning: Vec<String> = meaning.into_iter().flatten().collect();
        all.push(SettingReference {
            section: section.to_owned(),
            key,
            default: default(&member),
            meaning: meaning.join(" "),
        });
    }

    for (key, member) in nested {
        match section {
            "" => collect(all, &key, &member),
            section => collect(all, &format!("{section}.{key}"), &member),
        }
    }
}

/// Members of an object by their keys; `<name>` stands for keys that the operator chooses.
fn members(schema: &Map<String, Value>) -> Vec<(String, Map<String, Value>)> {
    let fixed = schema.get("properties").and_then(Value::as_object);
    let mut members: Vec<_> = fixed
        .into_iter()
        .flatten()
        .filter_map(|(key, member)| Some((key.clone(), given(member.as_object()?))))
        .collect();

    let named = schema.get("additionalProperties");
    if let Some(member) = named.and_then(Value::as_object) {
        let member = given(member);
        // A map of plain values has no keys to document.
        if member.contains_key("properties") {
            members.push(("<name>".to_owned(), member));
        }
    }

    members
}

/// The schema of a value that is set, of one that may be absent.
fn given(schema: &Map<String, Value>) -> Map<String, Value> {
    let options = schema.get("anyOf").and_then(Value::as_array);
    let set = options
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .find(|option| option.get("type") != Some(&Value::from("null")));
    let mut given = schema.clone();
    // The outer schema keeps its description and default, which the inner one lacks.
    given.remove("anyOf");

    for (key, value) in set.into_iter().flatten() {
        given.entry(key.clone()).or_insert_with(|| value.clone());
    }

    given
}

fn description(schema: &Map<String, Value>) -> Option<String> {
    let text = schema.get("description")?.as_str()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The values of an enumeration, each with its meaning.
fn choices(schema: &Map<String, Value>) -> Option<String> {
    let choices = schema.get("oneOf")?.as_array()?.iter();
    let choices: Vec<String> = choices
        .filter_map(|choice| {
            let value = choice.get("const")?.as_str()?;
            let meaning = choice.get("description")?.as_str()?;
            Some(format!("`{value}`: {}", meaning.trim_end_matches('.')))
        })
        .collect();

    Some(format!("{}.", choices.join("; ")))
}

fn default(schema: &Map<String, Value>) -> Option<String> {
    let value = schema.get("default").filter(|value| !value.is_null())?;
    Some(shown(value))
}

/// A value as the file has it.
fn shown(value: &Value) -> String {
    // The schema has durations as serde writes them, an object with `secs` and `nanos` that no file may
    // contain.
    if let Some(duration) = duration(value) {
        return duration;
    }

    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|item| match duration(item) {
                    Some(duration) => format!("\"{duration}\""),
                    None => item.to_string(),
                })
                .collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// A duration as the parser reads it, in the largest unit that needs no fraction.
fn duration(value: &Value) -> Option<String> {
    let parts = (value.get("secs")?.as_u64()?, value.get("nanos")?.as_u64()?);
    let whole = Duration::from_secs(parts.0);
    Some(match parts {
        (0, nanos) => format!("{}ms", nanos / 1_000_000),
        (seconds, _) if seconds % 86_400 == 0 => format!("{}d", seconds / 86_400),
        (seconds, _) if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        (seconds, _) if seconds % 60 == 0 => format!("{}m", seconds / 60),
        _ => format!("{}s", whole.as_secs()),
    })
}
