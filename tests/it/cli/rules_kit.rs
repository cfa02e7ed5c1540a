//! Rules of a team: declared in a file, or written in Rust from a starter, with vectors.

use std::fs;
use std::path::Path;

use holdfast::domain::component::Slot;
use holdfast::domain::organization::OrgSettings;
use holdfast_guest_builder::{GuestBuilder, GuestCrate, GuestMemory};
use serde_json::{Value, json};

use super::operator;
use super::plugin_kit::{holdfast, target};
use crate::support::{TestApp, envelope_body};

const GUIDE: &str = include_str!("../../../docs/rules.md");

/// Returns the first block of a language in the guide.
fn block(language: &str) -> &'static str {
    let begin = format!("```{language}\n");
    let (_, rest) = GUIDE.split_once(&begin).unwrap();
    rest.split_once("```").unwrap().0
}

/// Folder with the files of the guide.
pub(crate) fn guide() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rules.toml"), block("toml")).unwrap();
    fs::write(folder.path().join("vectors.yaml"), block("yaml")).unwrap();
    folder
}

fn path(folder: &Path, file: &str) -> String {
    folder.join(file).to_str().unwrap().to_owned()
}

/// Runs a command that must succeed, with JSON output.
pub(crate) fn said(arguments: &[&str]) -> Value {
    let (done, text) = holdfast(&[&["--json"], arguments].concat());
    assert!(done, "{arguments:?}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

/// Follows the guide: declare, build, test, compare, upload, activate; then a contract without insurance is
/// not compliant.
#[tokio::test(flavor = "multi_thread")]
async fn the_guide_leads_from_nothing_to_an_active_check() {
    let folder = guide();
    let (rules, component) = (
        path(folder.path(), "rules.toml"),
        path(folder.path(), "acme-rules.wasm"),
    );
    let built = said(&["component", "build", &rules, &component]);
    assert_eq!(
        (&built["checks"], &built["changes"], &built["vectors"]),
        (&json!(1), &json!(1), &json!(3))
    );

    let checked = said(&["component", "check", &component]);
    assert_eq!(
        (&checked["admitted"], &checked["conformance"]["own_vectors"]),
        (&json!(true), &json!(3))
    );

    let tested = said(&["component", "test", &component, "--questions", "3000"]);
    assert_eq!(tested["passed"], true, "{tested}");

    let (outcomes, branches) = (&tested["outcomes"], &tested["branches"]);
    assert_eq!(
        (&outcomes["covered"], &outcomes["found"]),
        (&json!(13), &json!(20)),
        "{tested}"
    );
    assert!(
        branches["found"].as_u64() > branches["covered"].as_u64(),
        "{tested}"
    );

    let missed = branches["missed"].as_array().unwrap();
    assert!(
        missed
            .iter()
            .all(|one| one["given"]["facts"]["status"].is_string()),
        "with facts that reach it"
    );

    let page = path(folder.path(), "diff.html");
    let differs = said(&[
        "component",
        "diff",
        "holdfast-compliance",
        &component,
        "--questions",
        "2000",
        "--page",
        &page,
    ]);

    let groups = differs["functions"][0]["groups"].as_array().unwrap();
    let group = groups
        .iter()
        .find(|group| group["check"] == "Secured party identified")
        .unwrap();
    assert_eq!(group["direction"], "stricter");

    let changes = group["counterexample"]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(
        changes[0]["field"]
            .as_str()
            .unwrap()
            .starts_with("facts/secured-party"),
        "{changes:?}"
    );

    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("facts/secured-party") && page.contains("All outcomes"),
        "{page}"
    );

    let app = TestApp::with(|_| {}, OrgSettings::default()).await;
    let token = app.web_admin();
    let bytes = fs::read(component).unwrap();
    let component = app
        .upload_component(token, "acme-rules", "1.0.0", &bytes)
        .await
        .data(201);
    let activate =
        json!({ "component_id": component["component_id"], "reason": "Credit policy 7.2" });

    let slot = "/component-slots/rules.compliance/activate";
    app.post_with_bearer(token, slot, activate).await.data(201);
    let template = app.contract_template().await;
    for (metadata, insured, sentence) in [
        (
            json!({ "insurance": "active" }),
            true,
            "The goods are insured (active).",
        ),
        (json!({}), false, "No active insurance is recorded."),
    ] {
        let mut body = envelope_body(&template["template_id"]);
        body["metadata"] = metadata;
        let envelope = app.post("/partner/envelopes", body).await.data(201);
        let path = format!(
            "/partner/envelopes/{}/compliance",
            envelope["envelope_id"].as_str().unwrap()
        );
        let evaluation = app.get(&path).await.data(200);
        let checks = evaluation["compliance"]["checks"].as_array().unwrap();
        let own = checks
            .iter()
            .find(|check| check["requirement"] == "Insurance on file")
            .unwrap();
        assert_eq!(
            (&own["satisfied"], &own["detail"]),
            (&json!(insured), &json!(sentence))
        );

        assert_eq!(own["ucc_reference"], "Credit policy 7.2");
    }
}

/// The pack of 2022 takes declared checks as well.
#[test]
fn declared_rules_can_begin_with_the_pack_of_2022() {
    let folder = guide();
    let rules = format!("base = \"ucc2022\"\n{}", block("toml"));
    let rules = rules.replace("Secured party identified", "Assignee can identify itself");
    let rules = rules.replace("vectors = \"vectors.yaml\"\n", "");
    fs::write(folder.path().join("rules.toml"), rules).unwrap();
    let (rules, component) = (
        path(folder.path(), "rules.toml"),
        path(folder.path(), "acme.wasm"),
    );
    said(&["component", "build", &rules, &component]);

    let vectors = path(folder.path(), "vectors.yaml");
    fs::write(
        &vectors,
        block("yaml").split("vectors:").next().unwrap().to_owned()
            + "vectors: [{ name: insured, expect: { checks: { Insurance on file: true } } }]",
    )
    .unwrap();

    let tested = said(&[
        "component",
        "test",
        &component,
        "--vectors",
        &vectors,
        "--questions",
        "500",
    ]);
    assert_eq!(tested["passed"], true, "{tested}");

    // Without a vector for a compliant record, no record is known to pass.
    let (admitted, told) = holdfast(&["component", "check", &component]);
    assert!(
        !admitted && told.contains("expects `compliant: true`"),
        "{told}"
    );
}

/// If a vector fails, the exit status is 1, and the output has the difference.
#[test]
fn a_vector_that_does_not_hold_fails_the_test() {
    let folder = guide();
    let (rules, component) = (
        path(folder.path(), "rules.toml"),
        path(folder.path(), "acme.wasm"),
    );
    said(&["component", "build", &rules, &component]);
    let vectors = path(folder.path(), "other.yaml");
    fs::write(&vectors, block("yaml").replace("score: 90", "score: 91")).unwrap();

    let (passed, told) = holdfast(&[
        "component",
        "test",
        &component,
        "--vectors",
        &vectors,
        "--questions",
        "100",
    ]);
    assert!(!passed, "{told}");
    assert!(
        told.contains("FAILED \"the insurance has lapsed\": /score is 90 and not 91"),
        "{told}"
    );

    assert!(told.contains("2 of 3 vectors hold"), "{told}");
}

/// Commands that change components name the page in the console, on stderr so that scripts read the result alone.
#[test]
fn commands_name_the_page_of_what_they_changed() {
    let (folder, data) = (guide(), tempfile::tempdir().unwrap());
    let (rules, component) = (
        path(folder.path(), "rules.toml"),
        path(folder.path(), "acme-rules.wasm"),
    );
    said(&["component", "build", &rules, &component]);
    let upload = ["component", "upload", &component, "--name", "acme-rules"];
    let upload = [upload.as_slice(), &["--version", "1.0.0"]].concat();
    let added = operator::holdfast(data.path(), &upload);
    let (result, page) = (text(added.stdout), text(added.stderr));
    let id = result
        .split(' ')
        .find(|word| word.starts_with("cmp_"))
        .unwrap();
    assert!(
        page.ends_with(&format!("/console/components/{id}\n")),
        "{page}"
    );

    let activate = ["component", "activate", "rules.compliance", id];
    let active = operator::holdfast(data.path(), &activate);
    let page = text(active.stderr);
    assert!(
        page.ends_with("/console/rules/rules.compliance\n"),
        "{page}"
    );

    let back = ["component", "rollback", "rules.compliance", "--json"];
    let back = operator::holdfast(data.path(), &back);
    assert!(back.status.success());
    assert!(
        !text(back.stderr).contains("/console/"),
        "programs get no pages"
    );
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Every mistake in declared rules is named, and no component is written.
#[test]
fn mistakes_in_declared_rules_are_named() {
    let check = |member: &str, value: &str| {
        let mut members = [
            ("requirement", "'Own'"),
            ("reference", "'Policy 1'"),
            ("satisfied_when", "'true'"),
            ("satisfied", "'Yes.'"),
            ("unsatisfied", "'No.'"),
        ];
        for known in &mut members {
            if known.0 == member {
                known.1 = value;
            }
        }

        let members = members.map(|(name, value)| format!("{name} = {value}\n"));
        let more = match member {
            "weight" | "colour" => format!("{member} = {value}\n"),
            _ => String::new(),
        };
        format!("[[check]]\n{}{more}", members.concat())
    };

    let change =
        |members: &str| format!("[[change]]\nrequirement = 'Secured party identified'\n{members}");
    for (rules, told) in [
        ("[[check]\n".to_owned(), "rules.toml: "),
        ("base = 'ucc1998'\n".to_owned(), "unknown variant `ucc1998`"),
        (
            "[[check]]\nrequirement = 'Own'\n".to_owned(),
            "missing field `reference`",
        ),
        (check("colour", "'red'"), "unknown field `colour`"),
        (
            check("requirement", "' '"),
            "it needs a name and a reference",
        ),
        (
            check("requirement", "'Secured party identified'"),
            "there is another check of that name",
        ),
        (
            check("", "") + &check("", ""),
            "there is another check of that name",
        ),
        (
            check("satisfied_when", "'status =='"),
            "check \"Own\": satisfied_when: ",
        ),
        (
            check("satisfied_when", "'colour == 1'"),
            "there is no fact colour; there are envelope_id",
        ),
        (
            check(
                "satisfied_when",
                "'submitters.all(one, other.name == \"\")'",
            ),
            "there is no fact other",
        ),
        (
            check("satisfied_when", "'matches(status, \"a\")'"),
            "there is no function matches",
        ),
        (
            check("satisfied_when", "'size(submitters)'"),
            "it is int and not true or false",
        ),
        (
            check("satisfied_when", "'b\"bytes\" == b\"\"'"),
            "facts have no bytes",
        ),
        (
            check("satisfied", "'A {status'"),
            "satisfied: a brace has no partner",
        ),
        (
            check("unsatisfied", "'A } b'"),
            "unsatisfied: a brace has no partner",
        ),
        (check("satisfied", "''"), "satisfied: it is empty"),
        (check("satisfied", "'{colour}'"), "there is no fact colour"),
        (
            check("satisfied_when", "'satisfied'"),
            "satisfied is the result of the pack",
        ),
        (
            check("unsatisfied", "'{detail}'"),
            "detail is the result of the pack",
        ),
        (
            check(
                "satisfied_when",
                &format!("'{}true'", "status == \"a\" ? true : ".repeat(45)),
            ),
            "nested too deeply",
        ),
        (check("weight", "0"), "weight: 1 to 1000"),
        (check("weight", "1001"), "weight: 1 to 1000"),
        (
            check("unsatisfied", &format!("'{}'", "a".repeat(60_000))),
            "fit",
        ),
        (change("also_when = 'true'\n"), "it needs `unsatisfied`"),
        (change("") + &change(""), "it is changed twice"),
        (
            "[[change]]\nrequirement = 'Nothing'\n".to_owned(),
            "the pack has no such check; it has \"Single authoritative copy\"",
        ),
        ("vectors = 'nowhere.yaml'\n".to_owned(), "No such file"),
        ("vectors = 'broken.yaml'\n".to_owned(), "broken.yaml: "),
        (
            "vectors = 'twice.yaml'\n".to_owned(),
            "there are two vectors \"a\"",
        ),
    ] {
        let folder = guide();
        fs::write(folder.path().join("rules.toml"), &rules).unwrap();
        fs::write(
            folder.path().join("broken.yaml"),
            "vectors: [{ name: a, expects: {} }]",
        )
        .unwrap();

        let twice = "vectors: [{ name: a, expect: {} }, { name: a, expect: {} }]";
        fs::write(folder.path().join("twice.yaml"), twice).unwrap();
        let (rules_file, component) = (
            path(folder.path(), "rules.toml"),
            path(folder.path(), "acme.wasm"),
        );
        let (built, said) = holdfast(&["component", "build", &rules_file, &component]);
        assert!(!built && said.contains(told), "{told}\n{rules}\n{said}");
        assert!(!Path::new(&component).exists(), "{rules}");
    }
}

/// Funding rules are declared, tested and compared without a compiler.
#[test]
fn funding_rules_are_declared_from_a_starter() {
    let within = tempfile::tempdir().unwrap();
    let folder = within.path().join("acme-funding");
    let place = folder.to_str().unwrap();
    said(&[
        "component",
        "new",
        "--slot",
        "rules.funding",
        "--lang",
        "toml",
        place,
    ]);
    let component = path(within.path(), "acme-funding.wasm");
    let built = said(&[
        "component",
        "build",
        &path(&folder, "rules.toml"),
        &component,
    ]);
    assert_eq!(
        (
            &built["rules"],
            &built["changes"],
            &built["vectors"],
            &built["slot"]
        ),
        (&json!(1), &json!(1), &json!(4), &json!("rules.funding"))
    );

    let checked = said(&["component", "check", &component]);
    assert_eq!(
        (
            &checked["admitted"],
            &checked["slot"],
            &checked["conformance"]["own_vectors"]
        ),
        (&json!(true), &json!("rules.funding"), &json!(4))
    );

    let tested = said(&["component", "test", &component, "--questions", "500"]);
    assert_eq!(tested["passed"], true, "{tested}");
    assert!(
        tested["outcomes"]["covered"].as_u64() > Some(3),
        "{}",
        tested["outcomes"]
    );

    let differs = said(&[
        "component",
        "diff",
        "holdfast-funding",
        &component,
        "--questions",
        "500",
    ]);
    let groups = differs["functions"][0]["groups"].as_array().unwrap();
    let of_term = groups
        .iter()
        .find(|group| group["check"] == "credit.term: number_of_payments")
        .unwrap();
    assert_eq!(of_term["direction"], "stricter");

    // A starter of compliance rules builds as well, and other rules have none.
    let folder = within.path().join("acme-checks");
    let place = folder.to_str().unwrap();
    let new = [
        "component",
        "new",
        "--lang",
        "toml",
        "--slot",
        "rules.compliance",
        place,
    ];
    said(&new);
    let component = path(within.path(), "acme-checks.wasm");
    said(&[
        "component",
        "build",
        &path(&folder, "rules.toml"),
        &component,
    ]);
    let tested = said(&["component", "test", &component, "--questions", "100"]);
    assert_eq!(tested["passed"], true, "{tested}");
    let place = path(within.path(), "acme-acts");
    let new = [
        "component",
        "new",
        "--lang",
        "toml",
        "--slot",
        "rules.control",
        &place,
    ];
    let (made, told) = holdfast(&new);
    assert!(
        !made && told.contains("rules.control has no starter in toml, and has one in: rust"),
        "{told}"
    );
}

/// Every mistake in declared funding rules is named, and no component is written.
#[test]
fn mistakes_in_declared_funding_rules_are_named() {
    let rule = |member: &str, value: &str| {
        let mut members = vec![
            ("name", "'credit.own'"),
            ("holds_when", "'true'"),
            ("sentence", "'No.'"),
            ("source", "'Policy 1'"),
        ];
        members.retain(|(name, _)| *name != member);
        if !member.is_empty() {
            members.push((member, value));
        }
        let members = members
            .iter()
            .map(|(name, value)| format!("{name} = {value}\n"));
        format!("[[rule]]\n{}", members.collect::<String>())
    };
    let change = |members: &str| format!("[[change]]\nrule = 'box.apr'\n{members}");

    for (rules, told) in [
        (rule("colour", "'red'"), "unknown field `colour`"),
        (
            "[[rule]]\nname = 'a'\n".to_owned(),
            "missing field `holds_when`",
        ),
        (rule("name", "'Credit'"), "a name of lower-case letters"),
        (rule("source", "' '"), "it needs a source"),
        (
            rule("name", "'box.apr'"),
            "there is another rule of that name",
        ),
        (
            rule("", "") + &rule("", ""),
            "there is another rule of that name",
        ),
        (
            rule("severity", "'red'"),
            "unknown variant `red`, expected one of `stop`, `warn`, `note`",
        ),
        (rule("decision", "'ready'"), "unknown variant `ready`"),
        (
            rule("holds_when", "'facts.apr <='"),
            "rule \"credit.own\": holds_when: ",
        ),
        (
            rule("holds_when", "'colour == 1'"),
            "there is no fact colour; there are facts, origins",
        ),
        (
            rule("holds_when", "'matches(stage, \"a\")'"),
            "there is no function matches",
        ),
        (
            rule("holds_when", "'5000 != facts.amount_financed'"),
            "write the fact on the left side",
        ),
        (
            rule("sentence", "'{2 * facts.apr}'"),
            "sentence: write the fact on the left side",
        ),
        (
            rule("holds_when", "'size(signers)'"),
            "it is int and not true or false",
        ),
        (
            rule("applies_when", "'stage'"),
            "it is string and not true or false",
        ),
        (
            rule("expected", "'A {stage'"),
            "expected: a brace has no partner",
        ),
        (rule("actual", "''"), "actual: it is empty"),
        (
            rule("sentence", "'{detail}'"),
            "detail is a text of a built-in rule",
        ),
        (change(""), "it needs `severity`, `sentence` or `source`"),
        (
            change("severity = 'warn'\n") + &change("severity = 'note'\n"),
            "it is changed twice",
        ),
        (
            "[[change]]\nrule = 'box.colour'\nseverity = 'warn'\n".to_owned(),
            "there is no such built-in rule; there are facts.missing",
        ),
        ("vectors = 'nowhere.yaml'\n".to_owned(), "No such file"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = path(folder.path(), "rules.toml");
        fs::write(&file, format!("slot = 'rules.funding'\n{rules}")).unwrap();
        let component = path(folder.path(), "own.wasm");
        let (built, said) = holdfast(&["component", "build", &file, &component]);
        assert!(!built && said.contains(told), "{told}\n{rules}\n{said}");
        assert!(!Path::new(&component).exists(), "{rules}");
    }

    let folder = tempfile::tempdir().unwrap();
    let file = path(folder.path(), "rules.toml");
    fs::write(&file, "slot = 'rules.control'\n").unwrap();
    let component = path(folder.path(), "own.wasm");
    let (built, told) = holdfast(&["component", "build", &file, &component]);
    assert!(
        !built && told.contains("rules of rules.control are not declared in a file"),
        "{told}"
    );
}

/// Rules that let a contract pass of which nothing was read are not admitted.
#[test]
fn declared_funding_rules_never_call_an_unread_contract_ready() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(folder.path(), "rules.toml");
    let rules = [
        "facts.missing",
        "signatures.complete",
        "secured_party.assignee",
    ];
    let changes = rules.map(|rule| format!("[[change]]\nrule = '{rule}'\nseverity = 'note'\n"));
    fs::write(
        &file,
        format!("slot = 'rules.funding'\n{}", changes.concat()),
    )
    .unwrap();
    let component = path(folder.path(), "own.wasm");
    said(&["component", "build", &file, &component]);
    let (admitted, told) = holdfast(&["component", "check", &component]);
    assert!(
        !admitted && told.contains("a contract without facts and signers came out ready"),
        "{told}"
    );
}

/// The command ends, with the reason, although the rules would not.
#[test]
fn rules_that_never_end_are_refused_within_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = "[0,1,2,3,4,5,6,7,8,9]";
    let all = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let nested = all.iter().fold("true".to_owned(), |inner, name| {
        format!("{numbers}.all({name}, {inner})")
    });
    let rules = format!(
        "[[check]]\nrequirement = 'Own'\nreference = 'Policy 1'\nsatisfied_when = '{nested}'\nsatisfied = 'Yes.'\n\
         unsatisfied = 'No.'\n"
    );
    fs::write(folder.path().join("rules.toml"), rules).unwrap();

    let file = |name: &str| path(folder.path(), name);
    let began = std::time::Instant::now();
    let (built, said) = holdfast(&["component", "build", &file("rules.toml"), &file("own.wasm")]);
    assert!(!built && said.contains("simplify the conditions"), "{said}");
    assert!(
        began.elapsed() < std::time::Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
}

/// Mistakes of the other commands.
#[test]
fn comparisons_of_what_cannot_be_compared_are_refused() {
    let folder = guide();
    let nothing = path(folder.path(), "nothing.wasm");
    for (arguments, told) in [
        (
            vec!["diff", "holdfast-compliance", "holdfast-lifecycle"],
            "holdfast-lifecycle for rules.lifecycle",
        ),
        (
            vec!["diff", "holdfast-compliance", &nothing],
            "neither a file nor the name of a built-in component",
        ),
        (
            vec!["diff", "holdfast-documents", "holdfast-documents"],
            "only rules that decide",
        ),
        (
            vec!["diff", "holdfast-payment-stripe", "holdfast-payment-stripe"],
            "only rules that decide",
        ),
        (vec!["test", "holdfast-compliance"], "there are no vectors"),
        (
            vec![
                "diff",
                "holdfast-compliance",
                &path(folder.path(), "rules.toml"),
            ],
            "no WebAssembly component",
        ),
    ] {
        let arguments: Vec<&str> = [vec!["component"], arguments.clone()].concat();
        let (done, said) = holdfast(&arguments);
        assert!(!done && said.contains(told), "{arguments:?}: {said}");
    }
}

/// The page of a placement diff draws the areas of both components.
#[test]
fn the_page_of_a_placement_diff_shows_where_fields_are() {
    let folder = tempfile::tempdir().unwrap();
    let component = path(folder.path(), "placement.wasm");
    let page = path(folder.path(), "diff.html");
    let moved = moved_placement();
    fs::write(&component, moved).unwrap();
    let differs = said(&[
        "component",
        "diff",
        "holdfast-placement",
        &component,
        "--questions",
        "6",
        "--page",
        &page,
    ]);

    let functions = differs["functions"].as_array().unwrap();
    let place = functions
        .iter()
        .find(|function| function["function"] == "place")
        .unwrap();
    let groups = place["groups"].as_array().unwrap();
    assert!(!groups.is_empty(), "{place}");
    assert!(
        groups
            .iter()
            .all(|group| group["direction"] == "other" || group["direction"] == "text"),
        "{place}"
    );

    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("<svg") && page.contains("stroke-dasharray"),
        "{page}"
    );
}

/// A starter has every file of the rules that it begins with.
#[test]
fn starters_contain_all_source_files() {
    let within = tempfile::tempdir().unwrap();
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-rules");
    for (slot, crates) in [
        ("rules.compliance", vec![("compliance", "")]),
        ("rules.lifecycle", vec![("lifecycle", "")]),
        ("rules.control", vec![("control", "")]),
        ("rules.funding", vec![("funding", "")]),
        (
            "rules.placement",
            vec![("placement", ""), ("reader", "reader")],
        ),
    ] {
        let folder = within.path().join(slot.replace('.', "-"));
        said(&["component", "new", "--slot", slot, folder.to_str().unwrap()]);
        for (source, place) in crates {
            let source = rules.join(source).join("src");
            for file in crate::support::files_below(&source) {
                let file = file.strip_prefix(&source).unwrap();
                let copy = folder.join(place).join("src").join(file);
                assert!(copy.exists(), "{slot} lacks {}", file.display());
            }
        }
    }

    let folder = within.path().join("acme");
    let (begun, told) = holdfast(&[
        "component",
        "new",
        "--slot",
        "rules.control",
        "--lang",
        "js",
        folder.to_str().unwrap(),
    ]);
    assert!(
        !begun && told.contains("rules.control has no starter in js, and has one in: rust"),
        "{told}"
    );
}

/// The starters build, are admitted, and answer as the rules that they begin with. `HOLDFAST_STARTERS=all`
/// builds the placement rules as well, which takes minutes.
#[test]
fn starters_build_and_answer_like_the_built_in_rules() {
    let within = tempfile::tempdir().unwrap();
    let mut slots = vec!["compliance", "lifecycle", "control", "funding"];
    if std::env::var_os("HOLDFAST_STARTERS").is_some() {
        slots.push("placement");
    }

    for slot in slots {
        let name = format!("acme-{slot}");
        let folder = within.path().join(&name);
        let place = folder.to_str().unwrap();
        said(&[
            "component",
            "new",
            "--slot",
            &format!("rules.{slot}"),
            place,
        ]);

        let builder = GuestBuilder::at(folder.clone(), target().join("guests")).unwrap();
        let package: &'static str = Box::leak(name.clone().into_boxed_str());
        let module = builder.module(&GuestCrate {
            package,
            slot: "rules.compliance",
            memory: match slot {
                "placement" => GuestMemory::Documents,
                _ => GuestMemory::Rules,
            },
        });
        let module = module.unwrap();

        let component = path(within.path(), &format!("{name}.wasm"));
        let vectors = path(&folder, "vectors.yaml");
        said(&[
            "component",
            "encode",
            module.to_str().unwrap(),
            &component,
            "--vectors",
            &vectors,
        ]);

        let checked = said(&["component", "check", &component]);
        assert_eq!(checked["slot"], format!("rules.{slot}"));
        assert!(checked["conformance"]["own_vectors"].as_u64().unwrap() >= 2);

        let tested = said(&["component", "test", &component, "--questions", "100"]);
        assert_eq!(tested["passed"], true, "{tested}");

        let default = format!("holdfast-{slot}");
        let differs = said(&[
            "component",
            "diff",
            &default,
            &component,
            "--questions",
            "300",
        ]);

        for function in differs["functions"].as_array().unwrap() {
            assert_eq!(function["differing"], 0, "{function}");
        }
    }
}

/// A published set of components is as good as a build: the same sources have the same bytes in any folder.
#[test]
fn a_component_has_the_same_bytes_when_it_is_built_in_another_folder() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for part in ["guest-rules/lifecycle", "plugins/sdk", "wit"] {
        for file in crate::support::files_below(&workspace.join(part)) {
            let copy = folder.path().join(file.strip_prefix(workspace).unwrap());
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(file, copy).unwrap();
        }
    }

    fs::copy(
        workspace.join("Cargo.lock"),
        folder.path().join("Cargo.lock"),
    )
    .unwrap();
    let manifest = fs::read_to_string(workspace.join("Cargo.toml")).unwrap();
    let (head, rest) = manifest.split_once("members = [").unwrap();
    let (_, rest) = rest.split_once("default-members").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    let members = r#"members = ["guest-rules/lifecycle", "plugins/sdk"]"#;
    fs::write(
        folder.path().join("Cargo.toml"),
        format!("{head}{members}\n{rest}"),
    )
    .unwrap();

    let builder = GuestBuilder::at(folder.path().into(), target().join("guests")).unwrap();
    let built = builder.build(&GuestCrate {
        package: "holdfast-lifecycle",
        slot: "rules.lifecycle",
        memory: GuestMemory::Rules,
    });
    let ours = holdfast::components::embedded()
        .find(|one| one.slot == Slot::Lifecycle)
        .unwrap();
    assert!(built.unwrap().component == *ours.bytes());
}

/// Returns a mutant of the built-in placement rules with another constant, which moves fields.
pub fn moved_placement() -> Vec<u8> {
    let artifact = holdfast::components::embedded()
        .find(|one| one.slot == Slot::Placement)
        .unwrap();
    let mut bytes = artifact.bytes().to_vec();

    // 1.0, from which coordinates of PDF pages, which begin at the foot, are taken.
    let one = [0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
    let mut at = 0;
    while let Some(found) = bytes[at..]
        .windows(one.len())
        .position(|window| window == one)
    {
        at += found;
        bytes[at + 7] = 0xe8;
        at += one.len();
    }

    assert!(at > 0);
    bytes
}
