//! The clients in `sdk`, generated from the OpenAPI document and used at a real server.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::http::openapi::{document, operations};
use crate::support::TestApp;

pub fn target() -> PathBuf {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    temporary.parent().unwrap().to_owned()
}

fn folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../sdk")
        .join(of)
}

/// Runs a program that must succeed.
pub fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; `tests/set-up test` installs what is missing")
    });
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

/// Copies the sources of a client, so tests that run at once do not write the same files.
fn copied(of: &str, parts: &[&str]) -> tempfile::TempDir {
    let copy = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for part in parts {
        let from = folder(of).join(part);
        done(Command::new("cp").arg("-R").arg(from).arg(copy.path()));
    }

    fs::create_dir_all(copy.path().join("docs")).unwrap();
    let text = document().to_string();
    fs::write(copy.path().join("docs/openapi.json"), text).unwrap();

    copy
}

/// The TypeScript client, built from the document of this build.
pub struct TypeScriptSdk(tempfile::TempDir);

impl TypeScriptSdk {
    pub fn built() -> Self {
        let parts = [
            "package.json",
            "tsconfig.json",
            "tsconfig.check.json",
            "README.md",
            "scripts",
            "src",
            "test",
            "examples",
        ];

        let sdk = Self(copied("typescript", &parts));
        let modules = folder("typescript").join("node_modules");
        assert!(modules.exists(), "run `tests/set-up test`");

        std::os::unix::fs::symlink(modules, sdk.folder().join("node_modules")).unwrap();
        done(&mut sdk.node(&["scripts/generate.mjs", "docs/openapi.json"]));
        done(&mut sdk.tsc("tsconfig.json"));

        sdk
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    pub fn node(&self, arguments: &[&str]) -> Command {
        let mut node = Command::new("node");
        node.args(arguments).current_dir(self.folder());
        node
    }

    pub fn tsc(&self, project: &str) -> Command {
        self.node(&["node_modules/typescript/bin/tsc", "-p", project])
    }
}

/// The Python client, generated from the document of this build.
pub struct PythonSdk(tempfile::TempDir);

impl PythonSdk {
    pub fn generated() -> Self {
        let parts = [
            "pyproject.toml",
            "README.md",
            "scripts",
            "src",
            "tests",
            "examples",
        ];
        let sdk = Self(copied("python", &parts));
        let mut generate = sdk.python();
        done(generate.args(["scripts/generate.py", "docs/openapi.json"]));

        sdk
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    pub fn python(&self) -> Command {
        let mut python = Command::new(target().join("clients/venv/bin/python"));
        python.current_dir(self.folder());
        python.env("PYTHONPATH", self.folder().join("src"));
        python
    }
}

/// Sets the variables that the clients read: address, key, token of an owner, organization, and token of a widget.
async fn at_a_server(app: &TestApp, command: &mut Command) {
    let envelope = app.vaulted_envelope().await;
    let body =
        json!({ "envelope_id": envelope, "user_email": "kim@elm.example", "widget_type": "vault" });
    let widget = app.post("/embed/token", body).await.data(200);
    command
        .env("HOLDFAST_URL", app.url())
        .env("HOLDFAST_API_KEY", &app.key)
        .env("HOLDFAST_TOKEN", app.token("owner"))
        .env("HOLDFAST_ORG", app.org.as_str())
        .env("HOLDFAST_EMBED_TOKEN", widget["token"].as_str().unwrap());
}

/// Runs a program beside a server.
async fn done_beside(app: &TestApp, mut command: Command) {
    at_a_server(app, &mut command).await;
    tokio::task::spawn_blocking(move || done(&mut command))
        .await
        .unwrap();
}

/// Makes a test key for a program.
pub async fn test_key(app: &TestApp) -> String {
    let scopes = [
        "envelopes:read",
        "envelopes:write",
        "vault:read",
        "compliance:read",
        "webhooks:listen",
    ];
    let body = json!({ "scopes": scopes, "mode": "test" });

    let owner = app.token("owner");
    let made = app.post_with_bearer(&owner, "/api-keys", body).await;
    made.data(201)["api_key"].as_str().unwrap().to_owned()
}

/// Runs a program beside a server, with a test key.
async fn in_test_mode(app: &TestApp, mut command: Command) {
    command
        .env("HOLDFAST_URL", app.url())
        .env("HOLDFAST_API_KEY", test_key(app).await);
    tokio::task::spawn_blocking(move || done(&mut command))
        .await
        .unwrap();
}

/// Asserts that the server saw every operation.
async fn saw_every_operation(app: &TestApp) {
    let metrics = app.metrics().await;
    let counted = |method: &str, route: &str| {
        metrics.lines().any(|line| {
            line.starts_with("holdfast_http_requests_total{")
                && line.contains(&format!("method=\"{method}\""))
                && line.contains(&format!("route=\"/api/v2{route}\""))
        })
    };

    let document = document();
    let missing: BTreeSet<String> = operations(&document)
        .iter()
        .filter(|one| !counted(one.method.as_str(), &one.path))
        .map(|one| format!("{} {}", one.method, one.path))
        .collect();
    assert!(missing.is_empty(), "not called: {missing:?}");
}

/// Returns the first program in a README.
fn quickstart(readme: &Path, language: &str) -> String {
    let text = fs::read_to_string(readme).unwrap();
    let (_, rest) = text.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_client_calls_every_operation() {
    let sdk = TypeScriptSdk::built();
    done(&mut sdk.tsc("tsconfig.check.json"));
    done(&mut sdk.node(&["--test", "test/client.test.mjs"]));
    let app = TestApp::on_a_socket().await;
    done_beside(&app, sdk.node(&["--test", "test/operations.mjs"])).await;
    saw_every_operation(&app).await;

    // The first five minutes of the README.
    let program = quickstart(&sdk.folder().join("README.md"), "ts");
    fs::write(sdk.folder().join("examples/quickstart.mts"), &program).unwrap();
    fs::write(sdk.folder().join("contract.pdf"), contract()).unwrap();
    done(&mut sdk.tsc("tsconfig.check.json"));
    let tsx = target().join("tsx/node_modules/tsx/dist/cli.mjs");
    let tsx = tsx.to_str().unwrap();
    in_test_mode(&app, sdk.node(&[tsx, "examples/quickstart.mts"])).await;

    // The package has the client with its types, and no tests.
    let packed = done(
        Command::new("npm")
            .args(["pack", "--dry-run", "--ignore-scripts"])
            .current_dir(sdk.folder()),
    );
    for file in [
        "dist/index.js",
        "dist/index.d.ts",
        "dist/generated/schema.d.ts",
        "README.md",
    ] {
        assert!(packed.contains(file), "{file}: {packed}");
    }

    assert!(!packed.contains("test/"), "{packed}");

    // It works in an empty project.
    let project = tempfile::tempdir().unwrap();
    let pack = ["pack", "--ignore-scripts", "--pack-destination"];
    let mut npm = Command::new("npm");
    npm.args(pack).arg(project.path());
    done(npm.current_dir(sdk.folder()));
    let install = ["install", "--offline", "--no-audit", "--no-fund"];
    let mut npm = Command::new("npm");
    npm.args(install).arg("./holdfast-2.0.0.tgz");
    done(npm.current_dir(project.path()));

    fs::write(project.path().join("first.mts"), program).unwrap();
    fs::write(project.path().join("contract.pdf"), contract()).unwrap();
    let mut first = sdk.node(&[tsx, "first.mts"]);
    first.current_dir(project.path());
    in_test_mode(&app, first).await;
}

fn contract() -> &'static [u8] {
    include_bytes!("../fixtures/retail-installment-contract.pdf")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_calls_every_operation() {
    let sdk = PythonSdk::generated();
    done(sdk.python().args(["-m", "mypy", "src", "examples"]));
    done(
        sdk.python()
            .args(["-m", "unittest", "tests/test_client.py"]),
    );
    let app = TestApp::on_a_socket().await;

    let mut all = sdk.python();
    all.arg("tests/operations.py");
    done_beside(&app, all).await;
    saw_every_operation(&app).await;

    let program = quickstart(&sdk.folder().join("README.md"), "python");
    fs::write(sdk.folder().join("quickstart.py"), &program).unwrap();
    fs::write(sdk.folder().join("contract.pdf"), contract()).unwrap();
    let mut quickstart = sdk.python();
    quickstart.arg("quickstart.py");
    in_test_mode(&app, quickstart).await;

    let built = [
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        "dist",
    ];
    done(sdk.python().args(built));

    let wheel = sdk.folder().join("dist/holdfast-2.0.0-py3-none-any.whl");
    let packed = done(sdk.python().args(["-m", "zipfile", "-l"]).arg(&wheel));
    for file in [
        "holdfast/py.typed",
        "holdfast/types.py",
        "holdfast/_operations.py",
    ] {
        assert!(packed.contains(file), "{file}: {packed}");
    }

    // It works in an empty project.
    let project = tempfile::tempdir().unwrap();
    let installed = project.path().join("installed");
    let install = ["-m", "zipfile", "-e"];
    done(sdk.python().args(install).arg(&wheel).arg(&installed));
    fs::write(project.path().join("first.py"), program).unwrap();
    fs::write(project.path().join("contract.pdf"), contract()).unwrap();
    let mut first = sdk.python();
    first.arg("first.py").current_dir(project.path());
    first.env("PYTHONPATH", installed);
    in_test_mode(&app, first).await;
}

/// Linters and generators of others read the document without a warning.
#[test]
fn linters_and_generators_read_the_document() {
    let folder = copied("python", &[]);
    let clients = target().join("clients/node_modules/.bin");
    let at = |program: PathBuf| {
        let mut command = Command::new(program);
        command.current_dir(folder.path());
        command
    };

    let lint = ["lint", "docs/openapi.json", "--extends", "recommended"];
    let redocly = done(
        at(clients.join("redocly"))
            .args(lint)
            .env("REDOCLY_TELEMETRY", "off"),
    );
    assert!(
        redocly.contains("Your API description is valid") && !redocly.contains("You have"),
        "{redocly}"
    );

    // The journeys of partners, with the operations that they call.
    let journeys = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/arazzo.json");
    fs::copy(journeys, folder.path().join("docs/arazzo.json")).unwrap();
    let lint = ["lint", "docs/arazzo.json", "--extends", "recommended"];
    let redocly = done(
        at(clients.join("redocly"))
            .args(lint)
            .env("REDOCLY_TELEMETRY", "off"),
    );
    assert!(!redocly.contains("You have"), "{redocly}");

    fs::write(
        folder.path().join("rules.yaml"),
        "extends: [\"spectral:oas\"]\n",
    )
    .unwrap();
    let lint = [
        "lint",
        "docs/openapi.json",
        "--ruleset",
        "rules.yaml",
        "--fail-severity",
        "hint",
    ];
    done(at(clients.join("spectral")).args(lint));

    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/openapi.config.yaml");
    let venv = target().join("clients/venv/bin");
    let mut generate = at(venv.join("openapi-python-client"));
    generate.args([
        "generate",
        "--path",
        "docs/openapi.json",
        "--output-path",
        "client",
    ]);

    generate.args(["--fail-on-warning", "--config", config]);
    let path = std::env::var("PATH").unwrap();
    done(generate.env("PATH", format!("{}:{path}", venv.display())));
    assert!(folder.path().join("client").exists());
}
