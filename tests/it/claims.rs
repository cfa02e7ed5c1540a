//! Compares `docs/claims.md` with the sentences that the sources print about a record.
//!
//! The sentences are read from the sources; the table adds the fact that each rests on, and the tests that
//! fail if it is printed without the fact. With `UPDATE_CLAIMS=1` the table is written anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

const TABLE: &str = "docs/claims.md";
/// Fact or tests of a new sentence, until they are filled in.
const OPEN: &str = "?";

/// Sources of sentences about a record, in the order of the table's sections.
const SOURCES: [(&str, ClaimSource); 18] = [
    ("host/locales/en.ftl", ClaimSource::Texts),
    ("guest-rules/compliance/src", ClaimSource::Rust),
    ("guest-rules/compliance-ucc2022/src", ClaimSource::Rust),
    ("guest-rules/compliance-calendar/src", ClaimSource::Rust),
    ("guest-rules/declared/src", ClaimSource::Rust),
    ("guest-rules/conditions/src", ClaimSource::Rust),
    ("guest-rules/control/src", ClaimSource::Rust),
    ("guest-rules/lifecycle/src", ClaimSource::Rust),
    ("guest-rules/documents/src", ClaimSource::Rust),
    ("host/crates/service/src/vault", ClaimSource::Rust),
    (
        "host/crates/service/src/envelopes/consumer.rs",
        ClaimSource::Rust,
    ),
    ("host/crates/evidence/src", ClaimSource::Rust),
    ("host/crates/verify/src", ClaimSource::Rust),
    ("docs/evidence.md", ClaimSource::Document),
    ("docs/vault.md", ClaimSource::Document),
    ("docs/control.md", ClaimSource::Document),
    ("docs/consent.md", ClaimSource::Document),
    ("docs/signers.md", ClaimSource::Document),
];

/// Words that make a short text more than a label: they state what happened to a record.
const OUTCOMES: [&str; 30] = [
    "approved",
    "authoritative",
    "changed",
    "checked",
    "complet",
    "confirm",
    "consent",
    "control",
    "custod",
    "declin",
    "destroyed",
    "expired",
    "held",
    "identity",
    "kept",
    "marked",
    "original",
    "paid",
    "passed",
    "pledged",
    "released",
    "replac",
    "rewritten",
    "seal",
    "signed",
    "stamp",
    "trusted",
    "valid",
    "vault",
    "withdrawn",
];

/// Macros and functions with texts for operators and developers.
const UNPRINTED: [&str; 9] = [
    "debug",
    "error",
    "expect",
    "info",
    "panic",
    "trace",
    "unreachable",
    "warn",
    "write_all",
];

#[derive(Clone, Copy)]
enum ClaimSource {
    /// Messages of the English texts.
    Texts,
    /// String literals of the Rust files in a folder, without their tests.
    Rust,
    /// Sentences of a document, without its tables and code.
    Document,
}

/// Sentence, and its place in the source: the key of a text, a file, or the heading above it.
struct Claim {
    place: String,
    sentence: String,
}

impl ClaimSource {
    fn claims(self, source: &str) -> Vec<Claim> {
        let path = root().join(source);
        match self {
            Self::Texts => messages(&read(&path)),
            Self::Rust => literals(&path),
            Self::Document => prose(&read(&path)),
        }
    }
}

/// Row of the table: sentences that rest on one fact.
struct ClaimRow {
    sentences: Vec<String>,
    fact: String,
    tests: String,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the messages that are no labels. Variants of a message are one sentence.
fn messages(text: &str) -> Vec<Claim> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let is_comment = line.starts_with('#');
        if line.starts_with([' ', '}']) {
            let (_, value) = found.last_mut().expect("a message before its variants");
            value.push(' ');
            value.push_str(line.trim());
        } else if let Some((key, value)) = line.split_once(" = ").filter(|_| !is_comment) {
            found.push((key.to_owned(), value.to_owned()));
        }
    }

    let claims = found.into_iter().filter(|(_, value)| !is_label(value));
    let claim = |(place, value)| Claim {
        sentence: format!("`{place}` {value}"),
        place,
    };
    claims.map(claim).collect()
}

/// Whether a text names a value, a field or a button: at most three words without a placeholder, a full stop
/// and a word of [`OUTCOMES`].
fn is_label(text: &str) -> bool {
    let is_short = text.split_whitespace().count() <= 3;
    let lower = text.to_lowercase();
    let is_outcome = OUTCOMES.iter().any(|word| lower.contains(word));
    is_short && !text.contains('{') && !text.ends_with(['.', ':', '?', '!']) && !is_outcome
}

fn literals(source: &Path) -> Vec<Claim> {
    let mut found = Vec::new();
    for path in rust_files(source) {
        let tokens: TokenStream = read(&path).parse().expect("Rust");
        let mut texts = Vec::new();
        collect_texts(tokens, &mut texts);
        let place = path.strip_prefix(source).unwrap().to_str().unwrap();
        let texts = texts.into_iter().filter(|text| is_prose(text));
        found.extend(texts.map(|text| Claim {
            place: place.to_owned(),
            sentence: text.replace('\n', " ").trim().to_owned(),
        }));
    }

    found
}

/// Returns a file, or those below a folder in the order of their names.
fn rust_files(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap();
        let mut below: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        below.sort();
        return below.iter().flat_map(|path| rust_files(path)).collect();
    }

    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    if is_rust && !path.ends_with("tests.rs") {
        vec![path.to_owned()]
    } else {
        Vec::new()
    }
}

/// Whether a literal has words. Names of members and actions have no spaces.
fn is_prose(text: &str) -> bool {
    let is_word = |word: &str| word.chars().filter(|letter| letter.is_alphabetic()).count() > 1;
    text.contains(' ') && text.split(' ').any(is_word)
}

/// Collects string literals outside of attributes, unit tests and [`UNPRINTED`]. A list that is concatenated
/// is one sentence.
fn collect_texts(tokens: TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |at: usize, text: &str| {
        tokens
            .get(at)
            .is_some_and(|token| token.to_string() == text)
    };
    let is_group = |at: usize| matches!(tokens.get(at), Some(TokenTree::Group(_)));

    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                at += if is(at + 1, "!") { 2 } else { 1 };
                let is_test = tokens[at].to_string().replace(' ', "") == "[cfg(test)]";
                let is_body = |token: &TokenTree| {
                    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
                        || token.to_string() == ";"
                };

                while is_test && !is_body(&tokens[at]) {
                    at += 1;
                }
            }
            TokenTree::Ident(name) if UNPRINTED.iter().any(|known| name == known) => {
                if is(at + 1, "!") && is_group(at + 2) {
                    at += 2;
                } else if is_group(at + 1) && (is(at, "expect") || is(at, "write_all")) {
                    at += 1;
                }
            }
            TokenTree::Group(group) => {
                let is_list = group.delimiter() == Delimiter::Bracket;
                if is_list && is(at + 1, ".") && is(at + 2, "concat") {
                    found.push(concatenated(group.stream()));
                } else {
                    collect_texts(group.stream(), found);
                }
            }
            TokenTree::Literal(_) => found.extend(string_value(&tokens[at])),
            _ => {}
        }

        at += 1;
    }
}

fn string_value(token: &TokenTree) -> Option<String> {
    let literal = syn::parse_str::<syn::LitStr>(&token.to_string());
    literal.ok().map(|literal| literal.value())
}

/// Joins the elements of a list. Other expressions become placeholders.
fn concatenated(list: TokenStream) -> String {
    let tokens: Vec<TokenTree> = list.into_iter().collect();
    let elements = tokens.split(|token| token.to_string() == ",");
    let texts = elements.map(|element| match element {
        [] => String::new(),
        [token] if string_value(token).is_some() => string_value(token).unwrap_or_default(),
        other => {
            let tokens: TokenStream = other.iter().cloned().collect();
            let name = tokens.to_string().replace(' ', "");
            format!("{{{}}}", name.trim_start_matches('&'))
        }
    });

    texts.collect()
}

fn prose(text: &str) -> Vec<Claim> {
    let mut found = Vec::new();
    let mut heading = String::new();
    let mut paragraph = String::new();

    let mut is_code = false;
    for line in text.lines().map(str::trim).chain([""]) {
        let is_fence = line.starts_with("```");
        let ends = is_fence || line.is_empty() || line.starts_with(['#', '|', '-']);
        if ends {
            for sentence in sentences(&std::mem::take(&mut paragraph)) {
                let place = heading.clone();
                found.push(Claim { place, sentence });
            }
        }

        is_code ^= is_fence;
        if is_code || is_fence || line.starts_with('|') {
            continue;
        }

        if let Some(title) = line.strip_prefix('#') {
            heading = title.trim_start_matches('#').trim().to_owned();
        } else {
            let space = if paragraph.is_empty() { "" } else { " " };
            paragraph = format!("{paragraph}{space}{}", line.trim_start_matches("- "));
        }
    }

    found
}

/// Splits a paragraph behind full stops that a capital letter or code follows.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = paragraph.trim();
    while !rest.is_empty() {
        let mut stops = rest.match_indices(". ").map(|(at, _)| at);
        let end = stops.find(|at| {
            let next = rest[at + 2..].trim_start_matches(['*', '"']).chars().next();
            next.is_some_and(|letter| letter == '`' || letter.is_uppercase())
        });
        let (sentence, more) = rest.split_at(end.map_or(rest.len(), |at| at + 1));
        found.push(sentence.to_owned());

        rest = more.trim_start();
    }

    found
}

/// Returns the places of each source that the table leaves out, by their beginnings.
fn left_out(table: &str) -> BTreeMap<String, Vec<String>> {
    let (_, section) = table.split_once("\n## Left out\n").expect("a section");
    let section = section.split("\n## ").next().unwrap();
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cell = row.split('|').nth(1).unwrap();
        let mut names = cell.split('`').skip(1).step_by(2).map(str::to_owned);
        let source = names.next().unwrap();
        places.entry(source).or_default().extend(names);
    }

    places
}

/// Returns the rows below the heading of a source.
fn rows_of(table: &str, source: &str) -> Vec<ClaimRow> {
    let Some((_, section)) = table.split_once(&format!("\n## {source}\n")) else {
        return Vec::new();
    };

    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let row = |line: &str| {
        let line = line.replace("\\|", "\u{0}");
        let mut cells = line
            .split('|')
            .skip(1)
            .map(|cell| cell.trim().replace('\u{0}', "|"));
        let mut cell = || cells.next().unwrap_or_default();
        let sentences = cell();

        ClaimRow {
            sentences: sentences
                .split("<br>")
                .map(|text| text.trim().to_owned())
                .collect(),
            fact: cell(),
            tests: cell(),
        }
    };

    rows.map(row).collect()
}

/// Returns the sentences of a source that need a row, each once.
fn printed(source: &str, kind: ClaimSource, left_out: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut sentences = Vec::new();
    for claim in kind.claims(source) {
        let is_left_out = left_out.iter().any(|start| claim.place.starts_with(start));
        if !is_left_out && seen.insert(claim.sentence.clone()) {
            sentences.push(claim.sentence);
        }
    }

    sentences
}

/// Returns the names of the functions that an attribute marks as tests.
fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders = vec![
        root().join("tests"),
        root().join("host"),
        root().join("guest-rules"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                names.extend(tests_in(&read(&path)));
            }
        }
    }

    names
}

fn tests_in(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        is_test |= line.starts_with("#[") && line.contains("test");
        if let Some((_, rest)) = line.split_once("fn ").filter(|_| !line.starts_with("//")) {
            let name = rest.split(['(', '<']).next().unwrap();
            names.extend(is_test.then(|| name.to_owned()));
            is_test = false;
        }
    }

    names
}

/// Writes the section of a source: rows without their vanished sentences, then a row for each new one.
fn section(source: &str, sentences: &[String], rows: &[ClaimRow]) -> String {
    let mut text = format!("## {source}\n\n| Sentence | Rests on | Tests |\n|---|---|---|\n");
    let mut known = BTreeSet::new();
    let mut write = |sentences: &[&String], fact: &str, tests: &str| {
        let sentences: Vec<String> = sentences
            .iter()
            .map(|text| text.replace('|', "\\|"))
            .collect();
        let (fact, tests) = (fact.replace('|', "\\|"), tests.replace('|', "\\|"));
        writeln!(text, "| {} | {fact} | {tests} |", sentences.join("<br>")).unwrap();
    };
    for row in rows {
        let stay = row
            .sentences
            .iter()
            .filter(|sentence| sentences.contains(sentence));
        let stay: Vec<&String> = stay.filter(|sentence| known.insert(*sentence)).collect();
        if !stay.is_empty() {
            write(&stay, &row.fact, &row.tests);
        }
    }

    for sentence in sentences
        .iter()
        .filter(|sentence| !known.contains(sentence))
    {
        write(&[sentence], OPEN, OPEN);
    }

    text
}

#[test]
fn every_sentence_about_a_record_has_its_fact_and_test() {
    let path = root().join(TABLE);
    let table = read(&path);
    let left_out = left_out(&table);
    let tests = tests();
    let mut written = table.split("\n## host/locales").next().unwrap().to_owned();
    let mut problems = Vec::new();

    for (source, kind) in SOURCES {
        let left_out = left_out.get(source).map_or(&[][..], Vec::as_slice);
        let sentences = printed(source, kind, left_out);
        assert!(!sentences.is_empty(), "{source} has no sentences");

        let rows = rows_of(&table, source);
        for row in &rows {
            let names: Vec<&str> = row.tests.split('`').skip(1).step_by(2).collect();
            let unknown = names.iter().filter(|name| !tests.contains(**name));
            problems.extend(unknown.map(|name| format!("{source}: no test {name}")));
            if row.fact.is_empty() || row.fact == OPEN || names.is_empty() {
                problems.push(format!("{source}: no fact or test: {:?}", row.sentences));
            }
        }

        let listed: Vec<&String> = rows.iter().flat_map(|row| &row.sentences).collect();
        let once: BTreeSet<&String> = listed.iter().copied().collect();
        let printed: BTreeSet<&String> = sentences.iter().collect();
        let new = printed.difference(&once);
        problems.extend(new.map(|sentence| format!("{source}: new: {sentence}")));
        let gone = once.difference(&printed);
        problems.extend(gone.map(|sentence| format!("{source}: vanished: {sentence}")));
        assert_eq!(listed.len(), once.len(), "{source} has a sentence twice");

        written.push('\n');
        written.push_str(&section(source, &sentences, &rows));
    }

    if std::env::var_os("UPDATE_CLAIMS").is_some() {
        std::fs::write(path, written).unwrap();
    }
    assert!(
        problems.is_empty(),
        "{TABLE} (UPDATE_CLAIMS=1 writes its sentences anew):\n{}",
        problems.join("\n")
    );
}

/// Words of a text, without punctuation.
fn words(text: &str) -> Vec<&str> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric());
    parts.filter(|word| !word.is_empty()).collect()
}

/// Adds the runs of `count` words to `found`.
fn add_runs(words: &[&str], count: usize, found: &mut BTreeSet<String>) {
    found.extend(words.windows(count).map(|run| run.join(" ")));
}

/// Returns the runs of three words of a sentence, between its values; all words of one that has no such run.
fn runs(sentence: &str) -> BTreeSet<String> {
    // The key of a text, and the values.
    let text = sentence.split_once("` ").map_or(sentence, |(_, text)| text);
    let parts: Vec<Vec<&str>> = text
        .split(['{', '['])
        .map(|part| part.split_once(['}', ']']).map_or(part, |(_, text)| text))
        .map(words)
        .collect();

    let mut found = BTreeSet::new();
    for part in &parts {
        add_runs(part, 3, &mut found);
    }

    if found.is_empty() {
        let short = parts.iter().filter(|part| !part.is_empty());
        found.extend(short.map(|part| part.join(" ")));
    }

    found
}

/// Returns the runs of one to three words in the sources of all tests but this one.
fn runs_of_tests() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = ["tests", "host", "guest-rules"]
        .map(|name| root().join(name))
        .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
                continue;
            }

            let is_test = name.contains("/tests/") || name.ends_with("/tests.rs");
            let is_source = name.ends_with(".rs") || is_test && name.ends_with(".py");
            if !is_source || name.ends_with("/claims.rs") {
                continue;
            }

            let text = read(&path);
            let text = match text.split_once("#[cfg(test)]\nmod tests {") {
                _ if is_test => text.as_str(),
                Some((_, tests)) => tests,
                None => continue,
            };
            let words = words(text);

            for count in 1..=3 {
                add_runs(&words, count, &mut found);
            }
        }
    }

    found
}

/// Each sentence that code prints stands in a test, with words that no other sentence has if there are such. The
/// table lists those that do not. This cannot judge what the test makes of the words.
#[test]
fn every_sentence_about_a_record_has_its_words_in_a_test() {
    let table = read(&root().join(TABLE));
    let left_out = left_out(&table);
    let (_, unread) = table.split_once("\n## Not read\n").expect("a section");
    let unread = unread.split("\n## ").next().unwrap();
    let unread: BTreeSet<&str> = unread.split('`').skip(1).step_by(2).collect();

    let mut claims: Vec<(String, BTreeSet<String>)> = Vec::new();
    for (source, kind) in SOURCES {
        let left_out = left_out.get(source).map_or(&[][..], Vec::as_slice);
        if !matches!(kind, ClaimSource::Document) {
            let sentences = printed(source, kind, left_out).into_iter();
            claims.extend(sentences.map(|sentence| (sentence.clone(), runs(&sentence))));
        }
    }

    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for run in claims.iter().flat_map(|(_, runs)| runs) {
        *times.entry(run).or_default() += 1;
    }

    let tested = runs_of_tests();
    let mut problems = Vec::new();
    for (sentence, runs) in &claims {
        let own: Vec<&String> = runs.iter().filter(|run| times[run.as_str()] == 1).collect();
        let chosen = if own.is_empty() {
            runs.iter().collect()
        } else {
            own
        };

        let is_read = chosen.is_empty() || chosen.iter().any(|run| tested.contains(*run));
        if is_read == unread.contains(sentence.replace('`', "").as_str()) {
            let what = if is_read {
                "is read"
            } else {
                "no test has its words"
            };
            problems.push(format!("{what}: {sentence}"));
        }
    }

    assert!(
        problems.is_empty(),
        "{TABLE}, section Not read:\n{}",
        problems.join("\n")
    );
}

/// The scanner finds what a reader of the source finds.
#[test]
fn sentences_are_found_in_code_texts_and_prose() {
    let code = "/// Not this. \n fn a() { f(\"one sentence\"); [\"the hash is \", &hash, \".\"].concat();
        warn!(\"not this one\"); x.expect(\"nor this\"); }
        #[cfg(test)] mod tests { const A: &str = \"nor that one\"; } const B: &str = \"a last one\";";
    let mut found = Vec::new();
    collect_texts(code.parse().unwrap(), &mut found);
    assert_eq!(found, ["one sentence", "the hash is {hash}.", "a last one"]);

    let texts = "a-label = Sent by\na-fact = Signed\na-value = Sent { $moment }\nmany = { $n ->\n    [one] One.\n}\n";
    let found: Vec<String> = messages(texts)
        .into_iter()
        .map(|claim| claim.sentence)
        .collect();
    let expected = [
        "`a-fact` Signed",
        "`a-value` Sent { $moment }",
        "`many` { $n -> [one] One. }",
    ];
    assert_eq!(found, expected);

    let document = "# Title\nOne (e.g. this) is\none. `two` is another.\n\n| a. B | c |\n\n```\nCode. Here.\n```\n- Item.\n";
    let found = prose(document).into_iter();
    let found: Vec<String> = found
        .map(|claim| format!("{}: {}", claim.place, claim.sentence))
        .collect();
    assert_eq!(
        found,
        [
            "Title: One (e.g. this) is one.",
            "Title: `two` is another.",
            "Title: Item."
        ]
    );
}
