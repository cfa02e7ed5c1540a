//! Statements of the documents about the tests.

use std::collections::BTreeSet;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Appends the Rust sources below a folder.
fn sources(folder: &Path, found: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// Returns the test names in the last column of a document's tables.
fn named_tests(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let quoted = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let is_test = |name: &&str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        name.contains('_') && name.bytes().all(plain)
    };

    quoted.filter(is_test).map(str::to_owned).collect()
}

#[test]
fn every_test_that_a_document_names_exists() {
    let mut text = String::new();
    for folder in ["tests", "host", "guest-rules", "plugins", "fuzz", "benches"] {
        sources(&root().join(folder), &mut text);
    }

    let end = |character: char| !character.is_ascii_alphanumeric() && character != '_';
    let names = text.split("fn ").skip(1);
    let known: BTreeSet<&str> = names.filter_map(|rest| rest.split(end).next()).collect();
    for document in ["SECURITY.md", "docs/readings.md", "docs/specification.md"] {
        let named = named_tests(document);
        assert!(named.len() > 20, "{document}: {named:?}");

        let unknown: Vec<_> = named
            .iter()
            .filter(|name| !known.contains(name.as_str()))
            .collect();
        assert!(unknown.is_empty(), "{document}: {unknown:?}");
    }
}

/// Pictures of the console are those that its page shows, and load fast.
#[test]
fn the_pictures_of_the_console_are_shown_and_small() {
    let page = std::fs::read_to_string(root().join("docs/console.md")).unwrap();
    let shown = page.split("pictures/").skip(1);
    let shown: BTreeSet<String> = shown
        .filter_map(|rest| rest.split(['"', ')']).next())
        .map(str::to_owned)
        .collect();

    let mut stored = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("docs/pictures")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let size = entry.metadata().unwrap().len();
        assert!(size <= 120_000, "{name}: {size} bytes");
        stored.insert(name);
    }
    assert_eq!(shown, stored);
}

/// The guide to errors has a row for each status, and names only codes that exist.
#[test]
fn the_guide_to_errors_is_complete() {
    let guide = std::fs::read_to_string(root().join("docs/errors.md")).unwrap();
    let document = std::fs::read(root().join("docs/openapi.json")).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
    let answers = document["components"]["responses"].as_object().unwrap();
    assert!(answers.len() > 10);

    for name in answers.keys() {
        let status = name.trim_start_matches("Error");
        assert!(guide.contains(&format!("\n| {status} | ")), "{status}");
    }

    let mut text = String::new();
    for folder in ["host/src", "host/crates", "guest-rules"] {
        sources(&root().join(folder), &mut text);
    }

    let (_, codes) = guide.split_once("## Codes").unwrap();
    let codes: BTreeSet<&str> = codes.split('`').skip(1).step_by(2).collect();
    let whole = |code: &&&str| {
        code.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let codes: Vec<_> = codes.iter().filter(whole).collect();
    assert!(codes.len() > 20, "{codes:?}");

    for code in codes {
        assert!(text.contains(&format!("\"{code}\"")), "{code}");
    }
}

/// Every code that an issue has is in a guide.
#[test]
fn every_code_of_an_issue_is_documented() {
    let mut guides = String::new();
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            guides.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }

    let mut text = String::new();
    sources(&root().join("host/crates"), &mut text);
    let calls = ["ValidationIssue::new(", "ServiceError::invalid("];
    let issues = calls.iter().flat_map(|call| text.split(call).skip(1));
    let codes: BTreeSet<&str> = issues
        .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
        .collect();
    assert!(codes.len() > 40, "{codes:?}");

    let unknown: Vec<_> = codes
        .iter()
        .filter(|code| !guides.contains(&format!("`{code}`")))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Returns the name of the variable that a text begins with, after its `$`.
fn variable(text: &str) -> &str {
    let end = text.find(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    text.split_at(end.unwrap_or(text.len())).0
}

/// Pages, programs and starters take address, key and token from the same variables. A page that needs a second
/// party exports its key under a name of its own.
#[test]
fn every_sample_has_the_same_variables() {
    let mut files = vec![
        root().join("README.md"),
        root().join("examples/README.md"),
        root().join("examples/curl/first-contract.sh"),
        root().join("host/src/cli/starter/README.md"),
        root().join("sdk/python/README.md"),
        root().join("sdk/typescript/README.md"),
    ];
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }

    let mut seen = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut check = |before: &str, name: &str, known: &[&str]| {
            let is_own = text.contains(&format!(" {name}=")) && !name.starts_with("HOLDFAST_");
            assert!(
                known.contains(&name) || is_own,
                "{}: {before}${name}",
                file.display()
            );
            seen.insert(name.to_owned());
        };

        for (before, known) in [
            ("X-API-Key: $", "HOLDFAST_API_KEY"),
            ("Authorization: Bearer $", "HOLDFAST_TOKEN"),
        ] {
            for rest in text.split(before).skip(1) {
                check(before, variable(rest), &[known]);
            }
        }

        // The part before the path of the API is the address, without this path.
        for before in text.split("/api/v2").filter(|before| !before.is_empty()) {
            if let Some((_, name)) = before.rsplit_once('$')
                && name == variable(name)
            {
                check("/api/v2 after ", name, &["HOLDFAST_URL"]);
            }
        }
    }

    for name in ["HOLDFAST_URL", "HOLDFAST_API_KEY", "HOLDFAST_TOKEN"] {
        assert!(seen.contains(name), "{name}: {seen:?}");
    }
}

/// Returns the folder of each module of the table of layers.
fn modules() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, table) = text.split_once("\n## Layers\n").unwrap();
    let (table, _) = table.split_once("\n### ").unwrap();
    let rows = table.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.split('|').collect();
        let module = cells.first()?.trim().trim_end_matches('`').to_owned();
        let place = cells.get(3)?.trim();
        let folder = match place
            .strip_prefix("crate `")
            .map(|rest| rest.trim_end_matches('`'))
        {
            Some(name) if name == module => format!("host/crates/{name}/src"),
            Some(name) => format!("host/crates/{name}/src/{module}"),
            None => format!("host/src/{module}"),
        };
        Some((module, folder))
    });

    rows.collect()
}

/// A path begins at the root, or with a module of the table of layers.
#[test]
fn every_source_file_that_a_document_names_exists() {
    let modules = modules();
    assert!(modules.len() > 25, "{modules:?}");

    let mut named = 0;
    for document in ["ARCHITECTURE.md", "docs/walks.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let quoted = text.split('`').skip(1).step_by(2);
        let is_path = |path: &&str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
            path.contains('/') && path.ends_with(".rs") && path.bytes().all(plain)
        };
        for path in quoted.filter(is_path) {
            let (first, rest) = path.split_once('/').unwrap();
            let folder = modules.iter().find(|(module, _)| module == first);
            let below = folder.map(|(_, folder)| root().join(folder).join(rest));
            let exists = root().join(path).exists() || below.is_some_and(|path| path.exists());
            assert!(exists, "{document}: {path}");
            named += 1;
        }
    }
    assert!(named > 60, "{named}");
}
