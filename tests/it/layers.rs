//! Imports of the host's modules point one way: the table in ARCHITECTURE.md, "Layers".

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Modules with their imports, in the order of the table.
fn allowed() -> Vec<(String, BTreeSet<String>)> {
    let text = std::fs::read_to_string(root().join("../ARCHITECTURE.md")).unwrap();
    let section = text
        .split("\n## Layers\n")
        .nth(1)
        .expect("a section Layers");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let module = cells.next()?.trim_matches('`').to_owned();
        let imports = cells.next()?.split_whitespace();
        let imports = imports.map(|name| name.trim_matches(['`', ',']).to_owned());
        Some((module, imports.collect()))
    });
    rows.collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The modules that come after each `crate::` outside of comments and unit tests.
fn imports(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod").next().unwrap();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.collect::<Vec<_>>().join("\n");
    let name = |text: &str| {
        let end = text.find(|character: char| !character.is_alphanumeric() && character != '_');
        text[..end.unwrap_or(text.len())].to_owned()
    };
    let mut found = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        let Some(group) = after.strip_prefix('{') else {
            found.insert(name(after));
            continue;
        };
        let mut depth = 0;
        let mut start = true;
        for (at, character) in group.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                _ if start && character.is_alphabetic() => {
                    found.insert(name(&group[at..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    found
}

fn actual() -> BTreeMap<String, BTreeSet<String>> {
    let source = root().join("src");
    let mut files = Vec::new();
    sources(&source, &mut files);
    let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let path = file.strip_prefix(&source).unwrap();
        let module = path.iter().next().unwrap().to_str().unwrap();
        let module = module.trim_end_matches(".rs").to_owned();
        if ["lib", "main"].contains(&module.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let mut imports = imports(&text);
        imports.remove(&module);
        modules.entry(module).or_default().extend(imports);
    }
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    let crates: Vec<PathBuf> = crates.map(|folder| folder.unwrap().path()).collect();
    let name = |folder: &PathBuf| folder.file_name().unwrap().to_str().unwrap().to_owned();
    let names: BTreeSet<String> = crates.iter().map(name).collect();
    for folder in &crates {
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        let mut found: BTreeSet<String> = BTreeSet::new();
        for file in files {
            let text = std::fs::read_to_string(file).unwrap();
            found.extend(imports(
                &text.replace("crate::", "").replace("holdfast_", "crate::"),
            ));
        }
        found.retain(|import| names.contains(import));
        found.remove(&name(folder));
        modules.insert(name(folder), found);
    }
    modules
}

#[test]
fn a_module_imports_what_the_table_of_layers_names_and_nothing_else() {
    let allowed = allowed();
    let listed: BTreeMap<_, _> = allowed.iter().cloned().collect();
    assert_eq!(listed, actual());
}

/// A handler's types stay out of what a handler calls.
#[test]
fn axum_is_known_in_http_and_at_start_up_only() {
    let source = root().join("src");
    let mut files = Vec::new();
    sources(&source, &mut files);
    let knows_axum = |file: &PathBuf| std::fs::read_to_string(file).unwrap().contains("axum::");
    let outside: Vec<_> = files
        .iter()
        .map(|file| (file, file.strip_prefix(&source).unwrap()))
        .filter(|(file, path)| !path.starts_with("http") && knows_axum(file))
        .map(|(_, path)| path.to_owned())
        .collect();
    assert_eq!(outside, [PathBuf::from("server.rs")]);
}

#[test]
fn the_table_of_layers_points_down_only() {
    let mut above = BTreeSet::new();
    for (module, imports) in allowed() {
        let upward: Vec<_> = imports.intersection(&above).collect();
        assert!(upward.is_empty(), "{module} imports {upward:?} from above");
        above.insert(module);
    }
}

#[test]
fn imports_in_groups_and_in_code_are_seen() {
    let text = "
        use crate::{http, store::{self, jobs}};
        // crate::comment
        fn f() { crate::service::x() }
#[cfg(test)]
mod tests { use crate::test_only; }";
    let expected = ["http", "service", "store"].map(str::to_owned);
    assert_eq!(imports(text), BTreeSet::from(expected));
}
