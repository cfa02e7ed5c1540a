//! Checks the imports of the host's crates and their modules against the tables in ARCHITECTURE.md, "Layers".

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::postgres::is_of_installation;

/// Returns the modules and their allowed imports, in the order of the table below a heading.
fn allowed(heading: &str) -> Vec<(String, BTreeSet<String>)> {
    let text = std::fs::read_to_string(root().join("../ARCHITECTURE.md")).unwrap();
    let section = text.split(&format!("\n{heading}\n")).nth(1);
    let section = section.expect("a section with a table");
    let section = section.split("\n##").next().unwrap();
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

/// Returns the modules named after `crate::`, outside of comments and unit tests.
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

/// Crates with files that are modules of the table by themselves.
const FOLDERS: [&str; 3] = ["", "base", "adapters"];
/// Modules that are in a crate of areas, and below or above them.
const BESIDE_AREAS: [(&str, &str); 3] = [
    ("platform", "room"),
    ("platform", "sandbox"),
    ("service", "doctor"),
];

/// Returns the module of a crate's file in the table of layers.
fn module_of(crate_name: &str, path: &Path) -> String {
    let first = path.iter().next().unwrap().to_str().unwrap();
    let first = first.trim_end_matches(".rs");
    let is_own = FOLDERS.contains(&crate_name) || BESIDE_AREAS.contains(&(crate_name, first));
    if is_own { first } else { crate_name }.to_owned()
}

/// Writes the paths of a crate's file as if all modules of the table were in one crate.
fn as_one_crate(crate_name: &str, text: &str) -> String {
    let mut text = text.to_owned();
    if !FOLDERS.contains(&crate_name) {
        text = text.replace("crate::", &format!("holdfast_{crate_name}::"));
    }
    for (of, module) in BESIDE_AREAS {
        text = text.replace(
            &format!("holdfast_{of}::{module}"),
            &format!("holdfast_{module}"),
        );
    }
    for folder in &FOLDERS[1..] {
        text = text.replace(&format!("holdfast_{folder}::"), "crate::");
    }

    text.replace("holdfast_", "crate::")
}

fn actual() -> BTreeMap<String, BTreeSet<String>> {
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    let mut sources_of: Vec<(String, PathBuf)> = vec![(String::new(), root().join("src"))];
    for folder in crates {
        let folder = folder.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        sources_of.push((name, folder.join("src")));
    }

    let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (crate_name, source) in sources_of {
        let mut files = Vec::new();
        sources(&source, &mut files);
        for file in files {
            let module = module_of(&crate_name, file.strip_prefix(&source).unwrap());
            if ["lib", "main"].contains(&module.as_str()) {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            let found = imports(&as_one_crate(&crate_name, &text));
            modules.entry(module).or_default().extend(found);
        }
    }

    let names: BTreeSet<String> = modules.keys().cloned().collect();
    for (module, imports) in &mut modules {
        imports.retain(|import| names.contains(import) && import != module);
    }
    modules
}

#[test]
fn a_module_imports_exactly_the_modules_in_the_table_of_layers() {
    let listed: BTreeMap<_, _> = allowed("## Layers").into_iter().collect();
    assert_eq!(listed, actual());
}

/// Returns the areas of `service` and `platform` with their imports, without `core.rs` and `app.rs`, which wire their
/// state.
fn areas() -> BTreeMap<String, BTreeSet<String>> {
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for crate_name in ["platform", "service"] {
        let source = root().join(format!("crates/{crate_name}/src"));
        let mut found = Vec::new();
        sources(&source, &mut found);
        for file in found {
            let path = file.strip_prefix(&source).unwrap();
            let name = path.iter().next().unwrap().to_str().unwrap();
            let area = name.trim_end_matches(".rs").to_owned();
            let is_beside = BESIDE_AREAS.contains(&(crate_name, area.as_str()));
            if !is_beside && !["lib", "app", "core"].contains(&area.as_str()) {
                files.push((area, file));
            }
        }
    }
    let names: BTreeSet<String> = files.iter().map(|(area, _)| area.clone()).collect();

    let mut areas: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (area, file) in files {
        let text = std::fs::read_to_string(file).unwrap();
        let mut found = imports(&text.replace("holdfast_platform::", "crate::"));
        found.retain(|import| names.contains(import) && *import != area);
        areas.entry(area).or_default().extend(found);
    }

    areas
}

#[test]
fn an_area_of_the_service_imports_exactly_the_areas_in_its_table() {
    let listed: BTreeMap<_, _> = allowed("### Areas of `service`").into_iter().collect();
    assert_eq!(listed, areas());
}

/// Code below the HTTP layer does not use types of axum.
#[test]
fn axum_is_used_only_in_http_and_at_start_up() {
    let mut files = Vec::new();
    sources(root(), &mut files);
    let knows_axum = |file: &PathBuf| std::fs::read_to_string(file).unwrap().contains("axum::");
    let outside: Vec<_> = files
        .iter()
        .map(|file| (file, file.strip_prefix(root()).unwrap()))
        .filter(|(file, path)| !path.starts_with("crates/http") && knows_axum(file))
        .map(|(_, path)| path.to_owned())
        .collect();
    assert_eq!(outside, [PathBuf::from("src/server.rs")]);
}

/// Clients for addresses that others choose are made by the guard, which checks what a name resolves to. The others here
/// talk to addresses of the operator, or of the person who runs the command.
#[test]
fn only_these_files_make_an_http_client() {
    const MAKERS: [&str; 10] = [
        "crates/adapters/src/delivery/guard.rs",
        "crates/adapters/src/delivery/sender.rs",
        "crates/adapters/src/files/calls.rs",
        "crates/adapters/src/sealing/timestamp.rs",
        "crates/base/src/traces.rs",
        "crates/platform/src/access/issuer.rs",
        "src/cli/dev/mod.rs",
        "src/cli/import.rs",
        "src/cli/ledger.rs",
        "src/cli/listen.rs",
    ];

    let mut files = Vec::new();
    for folder in ["src", "crates"] {
        sources(&root().join(folder), &mut files);
    }
    let makes_one = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        ["reqwest::Client::", " Client::"]
            .iter()
            .any(|call| text.contains(call))
    };
    files.retain(makes_one);
    let mut makers: Vec<_> = files
        .iter()
        .map(|file| file.strip_prefix(root()).unwrap())
        .collect();
    makers.sort();
    assert_eq!(makers, MAKERS.map(Path::new));
}

#[test]
fn the_tables_of_layers_and_areas_point_down_only() {
    for heading in ["## Layers", "### Areas of `service`"] {
        let mut above = BTreeSet::new();
        for (module, imports) in allowed(heading) {
            let upward: Vec<_> = imports.intersection(&above).collect();
            assert!(upward.is_empty(), "{module} imports {upward:?} from above");
            above.insert(module);
        }
    }
}

#[test]
fn imports_in_groups_and_in_code_are_detected() {
    let text = "
        use crate::{http, store::{self, jobs}};
        // crate::comment
        fn f() { crate::service::x() }
#[cfg(test)]
mod tests { use crate::test_only; }";
    let expected = ["http", "service", "store"].map(str::to_owned);
    assert_eq!(imports(text), BTreeSet::from(expected));
}

/// Statements on tenant data that span all buckets, by file and first words.
const OVER_ALL_BUCKETS: &[(&str, &[&str])] = &[
    // `page::PagedQuery` or a constant appends the bucket and the organization.
    ("bulk.rs", &["select {columns} from bulk_batch"]),
    (
        "component_changes.rs",
        &["update component_change set config = null where expires_at"],
    ),
    (
        "drawings.rs",
        &["delete from drawing_handover where expires_at"],
    ),
    ("instance_log.rs", &["delete from instance_log where at"]),
    // Names are compared by their shape, which SQL cannot.
    ("organizations.rs", &["select name from organization"]),
    // A dispute is between records of two organizations, and its reference is all that both know.
    (
        "disputes.rs",
        &[
            "select {columns} from control_conflict where reference",
            "select {columns} from control_conflict where statement",
        ],
    ),
    // The object store follows the holds of all organizations, and the operator sees how many there are.
    (
        "legal_holds.rs",
        &["select {columns} from legal_hold where lifted_at"],
    ),
    ("request_log.rs", &["delete from request_log where at"]),
    // The daily run is about every organization with schedules.
    (
        "retention.rs",
        &["select {columns} from retention_schedules order by"],
    ),
    ("test_mode.rs", &["delete from test_message where at"]),
    // The schema itself.
    (
        "dialect.rs",
        &[
            "select name from sqlite_master",
            "select name, lower(type) as type, pk as key_place",
            "select cast(c.relname as text) as name",
            "select cast(a.attname as text) as name,",
        ],
    ),
    // A move copies all rows of all tables.
    (
        "moves.rs",
        &[
            "select 1 as found from {name}",
            "select {columns} from {} {condition} order by {names}",
            "insert into {} ({}) values {}",
            "delete from {table}",
        ],
    ),
    // Data of the whole installation that the operator sees.
    (
        "installation.rs",
        &["select {columns} from job where state"],
    ),
    (
        "components.rs",
        &[
            "select {columns} from component {WHERE}",
            "select count(*) as total from component {WHERE}",
            // Components that a node loads and lists for operators.
            "select {columns} from component order by component_id",
            "select {columns}, name, version, sha256 from component_activation where rolled",
        ],
    ),
    (
        "control.rs",
        &[
            // A party finds records of other organizations by its own id.
            "select {columns} from control_record where controller_id",
            "select {columns} from control_record where envelope_id",
            "select {columns} from control_record where {conditions}",
            "select {columns} from control_release where release_id",
            "select {columns} from control_pledge where pledge_id",
        ],
    ),
    (
        "control_statements.rs",
        &["select {columns} from control_statement where statement_id"],
    ),
    (
        "party_invitations.rs",
        &[
            "select {columns} from party_invitation where invitation_id",
            "select invitation_id from party_invitation where party_id",
        ],
    ),
    ("open_links.rs", &["select {columns} from open_link"]),
    (
        "passkeys.rs",
        // Who signs in knows the credential only.
        &["select {columns} from passkey where credential_id"],
    ),
    (
        "users.rs",
        &[
            // Who signs in knows an address or a link.
            "select {columns} from org_user where email",
            "select {columns} from sign_in_link where link_id",
            "delete from user_session where expires_at",
            "delete from sign_in_link where expires_at",
            "delete from sign_in_mail where sent_at",
        ],
    ),
    (
        "views.rs",
        &[
            // Those who have a link or a copy know only its id.
            "select {columns} from control_view where view_id",
            "select {columns} from control_copy where copy_id",
        ],
    ),
    ("customers.rs", &["select {columns} from customer"]),
    ("packages.rs", &["select {columns} from document_package"]),
    ("page.rs", &["select count(*) as total from ("]),
    ("templates.rs", &["select {columns} from template"]),
    (
        "envelopes.rs",
        &[
            "select {columns}, {total} from envelope",
            // Look-ups by a provider's own id.
            "select {columns} from envelope where provider_submission",
            // Due work.
            "select {columns} from envelope where expires_at",
        ],
    ),
    (
        "payments.rs",
        &["select {columns} from payment where instance = $1 and intent_id"],
    ),
    (
        "shadows.rs",
        &["select {columns} from component_shadow where ended_at"],
    ),
    // Clean-up.
    (
        "idempotency.rs",
        &[
            "delete from idempotency where created_at",
            "delete from idempotency where status is null",
        ],
    ),
    (
        "kba.rs",
        &[
            "update kba_session set status = 'ended'",
            // The operator's report of prices.
            "select org_id, status, count(*) as sessions",
        ],
    ),
    (
        "decision_blocks.rs",
        &[
            // For the blocks of all organizations, and for decisions of a controller about records of others.
            "select distinct {owner} as owner from",
            "select {columns} from {name} where {owner} =",
        ],
    ),
    (
        "tapes.rs",
        &[
            // A party looks rows up in records of other organizations.
            "select org_id, envelope_id from control_record where controller_id",
            "select org_id, envelope_id from control_record where named_id",
            "select org_id, envelope_id from control_record where pledgee_id",
        ],
    ),
    ("tokens.rs", &["delete from revoked_token where expires_at"]),
    (
        "transfers.rs",
        &[
            // The buyer knows a transfer's id, and not its bucket.
            "select {columns} from control_transfer where transfer_id",
            "select {columns} from control_transfer where state in ('proposing', 'proposed',",
            // A party finds sold records of other organizations.
            "select {columns} from control_sold where party_id",
        ],
    ),
    (
        "webhooks.rs",
        &[
            "update webhook_endpoint set holder = null",
            "select count(paused_until)",
        ],
    ),
    // Counts for `/metrics`, and the operator's commands.
    ("deliveries.rs", &["select count(*) as due"]),
    (
        "integrity.rs",
        &[
            "update integrity_check set due_at",
            "select envelope_id, problems",
            "select count(*) as total,",
        ],
    ),
    (
        "jobs.rs",
        &[
            "select count(case when state",
            "update job set run_at = $1, lease_epoch",
        ],
    ),
    (
        "sealed_records.rs",
        &[
            // The database of a backup.
            "select {columns} from sealed_record",
            "insert into sealed_record",
            "select rowid as number, payload from job",
            "select name from pragma_table_info",
            "select found.record as record,",
            "delete from sealing;",
            "delete from {name} where",
            "delete from {JOBS} where",
            "update {name} set {assigned} where",
        ],
    ),
    (
        "seal_states.rs",
        &[
            // A changed setting, and the operator's health check.
            "update seal_state set due_at",
            "select count(*) as ending,",
        ],
    ),
    (
        "lib.rs",
        &[
            "select org_id from organization limit 1",
            "select cast(extract(epoch from clock_timestamp())",
        ],
    ),
    (
        "organizations.rs",
        &["select {columns} from organization order by"],
    ),
    ("page_facts.rs", &["delete from page_facts where kept_at"]),
];

/// Returns the SQL of a source file, one line each: literals that start like a statement.
fn statements(text: &str) -> Vec<String> {
    let verbs = [
        "select ",
        "insert into ",
        "update ",
        "delete from ",
        "with ",
    ];

    text.split('"')
        .filter(|literal| verbs.iter().any(|verb| literal.starts_with(verb)))
        .map(|literal| literal.split_whitespace().collect::<Vec<_>>().join(" "))
        // `format!` has doubled braces.
        .map(|statement| statement.replace("{{columns}}", "{columns}"))
        .collect()
}

/// Returns the first table that a statement reads or writes, if it names one.
fn table(statement: &str) -> Option<&str> {
    let words: Vec<&str> = statement.split(' ').collect();
    let before = words
        .iter()
        .position(|word| ["from", "into", "update"].contains(word))?;
    words.get(before + 1).copied()
}

/// PostgreSQL refuses a prepared statement if a newer node's migration has changed its result, so nodes of two versions
/// could not work side by side.
#[test]
fn a_statement_names_its_columns() {
    let mut files = Vec::new();
    sources(&root().join("crates/store/src"), &mut files);

    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod").next().unwrap();
        for statement in statements(code) {
            let outer = statement.split(" from ").next().unwrap();
            // All columns of a table in parentheses are those that the inner statement names.
            let is_inner = statement.starts_with("select * from (");
            let is_open = outer.contains(".*") || (outer.contains("select *") && !is_inner);
            assert!(!is_open, "{}: {statement}", path.display());
            assert!(
                !statement.contains("returning *"),
                "{}: {statement}",
                path.display()
            );
        }
    }
}

#[test]
fn a_statement_on_tenant_data_names_its_bucket() {
    let mut files = Vec::new();
    sources(&root().join("crates/store/src"), &mut files);
    let mut unused: BTreeSet<(&str, &str)> = OVER_ALL_BUCKETS
        .iter()
        .flat_map(|(file, beginnings)| beginnings.iter().map(|beginning| (*file, *beginning)))
        .collect();
    let excepted = unused.clone();

    let mut seen = 0;
    let mut without = Vec::new();
    for path in files {
        let file = path.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod").next().unwrap();
        for statement in statements(code) {
            let Some(table) = table(&statement) else {
                continue;
            };
            if is_of_installation(table) {
                continue;
            }

            seen += 1;
            if statement.contains("bucket") {
                continue;
            }

            let exception = excepted
                .iter()
                .find(|(of, beginning)| *of == file && statement.starts_with(beginning));
            match exception {
                Some(exception) => {
                    unused.remove(exception);
                }
                None => without.push(format!("{file}: {statement}")),
            }
        }
    }

    assert!(seen > 150, "{seen}");
    assert!(without.is_empty(), "{without:#?}");
    assert!(unused.is_empty(), "exceptions of nothing: {unused:?}");
}
