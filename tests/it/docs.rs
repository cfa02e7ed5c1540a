//! What the documents state about the tests.

use std::collections::BTreeSet;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Collects the names of all functions below a folder.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1);
            let end = |character: char| !character.is_ascii_alphanumeric() && character != '_';
            found.extend(names.filter_map(|rest| rest.split(end).next().map(str::to_owned)));
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
    let mut known = BTreeSet::new();
    for folder in ["tests", "host", "guest-rules", "plugins", "fuzz", "benches"] {
        functions(&root().join(folder), &mut known);
    }
    for document in ["SECURITY.md", "docs/readings.md"] {
        let named = named_tests(document);
        assert!(named.len() > 20, "{document}: {named:?}");
        let unknown: Vec<_> = named.iter().filter(|name| !known.contains(*name)).collect();
        assert!(unknown.is_empty(), "{document}: {unknown:?}");
    }
}
