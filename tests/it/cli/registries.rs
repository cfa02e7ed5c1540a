//! Components in OCI registries.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use holdfast::config::Config;
use holdfast::domain::component::Slot;
use holdfast::domain::hash::sha256;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::service::components::registry::variant;
use crate::support::sigstore::{ISSUER, PROVENANCE, Signing, Sigstore, WORKFLOW};
use crate::support::{SETTINGS, TestApp, operator_output};

/// User of the registry, with `PASSWORD` as bcrypt.
const USERS: &str = "lender:$2b$05$TUOVhLsfLp4YZgx9OET.Gu9ia691VyUxH.cDe4Z8mlThjkQBCzrCS\n";
const PASSWORD: &str = "correct horse";

/// A running registry (Debian's `docker-registry`).
struct RunningRegistry {
    address: String,
    storage: PathBuf,
    running: Child,
    _folder: TempDir,
}

impl Drop for RunningRegistry {
    fn drop(&mut self) {
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}

impl RunningRegistry {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let (users, storage) = (folder.path().join("users"), folder.path().join("storage"));
        fs::write(&users, USERS).unwrap();
        let settings = format!(
            "version: 0.1\nstorage: {{ filesystem: {{ rootdirectory: {} }} }}\nhttp: {{ addr: \"{address}\" }}\n\
             auth: {{ htpasswd: {{ realm: lenders, path: {} }} }}\n",
            storage.display(),
            users.display()
        );

        let file = folder.path().join("registry.yml");
        fs::write(&file, settings).unwrap();
        let running = Command::new("docker-registry")
            .arg("serve")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("docker-registry is missing: run `tests/set-up test`");

        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(&address).is_err() {
            assert!(Instant::now() < deadline, "the registry does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }

        Self {
            address,
            storage,
            running,
            _folder: folder,
        }
    }
}

/// Settings and files of an operator.
struct Operator {
    folder: TempDir,
}

impl Operator {
    fn new(registry: &str, password: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("password");
        fs::write(&secret, format!("{password}\n")).unwrap();
        let settings = format!(
            "[providers]\nallow_insecure = true\n[components.registries.\"{registry}\"]\nusername = \"lender\"\n\
             password_file = \"{}\"\n",
            secret.display()
        );
        fs::write(folder.path().join(SETTINGS), settings).unwrap();

        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Returns whether a command succeeded, and its output.
    fn runs(&self, arguments: &[&str]) -> (bool, String) {
        let output = operator_output(self.folder.path(), arguments);
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!text.contains(PASSWORD), "{text}");
        (output.status.success(), text)
    }

    fn pushed(&self, bytes: &[u8], reference: &str) -> String {
        let file = self.path("pushed.wasm");
        fs::write(&file, bytes).unwrap();
        let (done, text) = self.runs(&["component", "push", &file, reference]);
        assert!(done, "{text}");
        let said: Value = serde_json::from_str(&text).unwrap();
        said["reference"].as_str().unwrap().to_owned()
    }

    /// Pulls a component; the error otherwise.
    fn pulled(&self, reference: &str) -> Result<Vec<u8>, String> {
        let file = self.path("pulled.wasm");
        let _ = fs::remove_file(&file);
        match self.runs(&["component", "pull", reference, &file]) {
            (true, _) => Ok(fs::read(file).unwrap()),
            (false, text) => {
                assert!(!Path::new(&file).exists());
                Err(text)
            }
        }
    }
}

fn refused(pulled: Result<Vec<u8>, String>, why: &str) {
    let text = pulled.unwrap_err();
    assert!(text.contains(why), "{why}: {text}");
}

/// A component is pulled by the digest of its manifest, so a moved tag changes nothing.
#[test]
fn a_component_comes_from_a_registry_by_its_digest() {
    let registry = RunningRegistry::start();
    let operator = Operator::new(&registry.address, PASSWORD);
    let at = |rest: &str| format!("oci://{}/lender/rules{rest}", registry.address);
    let [first, second] = ["first", "second"].map(|note| variant(Slot::Compliance, note));
    let reference = operator.pushed(&first, &at(":1.0.0"));
    assert!(reference.starts_with(&at("@sha256:")), "{reference}");
    assert_eq!(operator.pulled(&reference).unwrap(), first);

    let moved = operator.pushed(&second, &at(":1.0.0"));
    assert_ne!(moved, reference);
    assert_eq!(operator.pulled(&reference).unwrap(), first);
    assert_eq!(operator.pulled(&moved).unwrap(), second);

    refused(
        operator.pulled(&at(":1.0.0")),
        "write it as oci://host/name@sha256:",
    );
    refused(
        operator.pulled(&at(&format!("@sha256:{}", "0".repeat(64)))),
        "404",
    );

    refused(operator.pulled("rules.wasm"), "it begins with oci://");
    let stranger = Operator::new(&registry.address, "wrong");
    refused(stranger.pulled(&reference), "401");
    let nobody = Operator::new("registry.example", PASSWORD);
    refused(
        nobody.pulled(&reference),
        "it asks for a login, and there is none",
    );

    // Bytes that changed inside the registry.
    let blob = sha256(&first);
    let blob = format!("docker/registry/v2/blobs/sha256/{}/{blob}/data", &blob[..2]);
    fs::write(registry.storage.join(blob), &second).unwrap();
    refused(operator.pulled(&reference), "has another digest");

    // Only public addresses, unless development settings allow others.
    fs::write(operator.folder.path().join(SETTINGS), "").unwrap();
    refused(operator.pulled(&reference), "its address is not public");
}

/// The ledger has the reference that an upload came from.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_from_a_registry_names_it() {
    let registry = RunningRegistry::start();
    let app = TestApp::start().await;
    let operator = Operator::new(&registry.address, PASSWORD);
    let bytes = variant(Slot::Compliance, "from a registry");
    let tag = format!("oci://{}/rules:2", registry.address);
    let reference = operator.pushed(&bytes, &tag);
    let settings = fs::read(operator.folder.path().join(SETTINGS)).unwrap();
    fs::write(app.data.path().join(SETTINGS), settings).unwrap();

    let named = ["--name", "our-rules", "--version", "2.0.0"];
    let upload = [
        ["component", "upload", reference.as_str()].as_slice(),
        &named,
    ]
    .concat();
    let uploaded = crate::support::operator(app.data.path(), &upload);
    assert_eq!(uploaded["sha256"], sha256(&bytes).as_str());

    let history = crate::support::operator(app.data.path(), &["component", "history"]);
    let last = history.as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["details"]["from"], reference.as_str(), "{last:#}");
}

/// Bundles are pulled with the component. Everything after that works without the registry.
#[tokio::test(flavor = "multi_thread")]
async fn bundles_come_with_a_component_from_a_registry() {
    let registry = RunningRegistry::start();
    let operator = Operator::new(&registry.address, PASSWORD);
    let at = |rest: &str| format!("oci://{}/rules{rest}", registry.address);
    let [bytes, other] = ["signed", "other"].map(|note| variant(Slot::Compliance, note));
    let reference = operator.pushed(&bytes, &at(":1"));
    let (_, digest) = reference.rsplit_once(':').unwrap();
    let manifest = format!(
        "docker/registry/v2/blobs/sha256/{}/{digest}/data",
        &digest[..2]
    );
    let manifest = fs::read(registry.storage.join(manifest)).unwrap();
    let sigstore = Sigstore::signing(&[
        Signing::of(&manifest).saying(PROVENANCE, json!({})),
        Signing::of(&other),
        Signing::of(&bytes).by("https://github.com/oak/rules/other"),
    ]);
    let bundle = |at: usize| {
        let file = operator.path(&format!("bundle{at}.json"));
        fs::write(&file, format!("{:#}", sigstore.bundles[at])).unwrap();
        file
    };

    let attach = |bundles: &[usize]| {
        let files: Vec<String> = bundles.iter().map(|at| bundle(*at)).collect();
        let mut arguments = vec!["component", "attach", &reference];
        arguments.extend(files.iter().map(String::as_str));
        let (done, text) = operator.runs(&arguments);
        assert!(done, "{text}");
    };

    let app = TestApp::start().await;
    let settings = fs::read_to_string(operator.folder.path().join(SETTINGS)).unwrap();
    let root = sigstore.root_file(app.data.path());
    let trusting = format!(
        "{settings}[components]\nsigstore_root_file = \"{}\"\n[components.trusted.release]\n\
         identity = \"{WORKFLOW}\"\nissuer = \"{ISSUER}\"\n",
        root.display()
    );
    fs::write(app.data.path().join(SETTINGS), trusting).unwrap();

    let upload = |version: &str, file: &str, more: &[&str]| {
        let named = [
            "component",
            "upload",
            file,
            "--name",
            "our-rules",
            "--version",
            version,
        ];

        operator_output(app.data.path(), &[named.as_slice(), more].concat())
    };

    let fails = |output: std::process::Output, why: &str| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            !output.status.success() && text.contains(why),
            "{why}: {text}"
        );
    };

    fails(
        upload("1.0.0", &reference, &[]),
        "admits signed components only",
    );
    attach(&[1, 2]);
    let wrong = "bundle 1: it is about another file; bundle 2 is signed by https://github.com/oak/rules/other of";
    fails(upload("1.0.0", &reference, &[]), wrong);

    let (done, text) = operator.runs(&["component", "attach", &at(":1"), &bundle(0)]);
    assert!(!done && text.contains("oci://host/name@sha256:"), "{text}");

    // The same bundle again, and others beside it.
    attach(&[0]);
    attach(&[0]);
    let pulled = operator.path("pulled.wasm");
    let (done, text) = operator.runs(&["component", "pull", &reference, &pulled]);
    assert!(done && text.contains("\"bundles\":3"), "{text}");

    let from_registry = upload("0.9.0", &reference, &[]);
    let uploaded: Value = serde_json::from_slice(&from_registry.stdout).unwrap();
    assert_eq!(uploaded["signed_by"], "release", "{uploaded:#}");

    drop(registry);

    // Offline, with the files beside the component. Others have attached bundles that prove nothing.
    let bundles = format!("{pulled}.sigstore.jsonl");
    let manifest = format!("{pulled}.manifest.json");
    fails(
        upload("1.0.0", &pulled, &["--bundle", &bundles]),
        "about another file",
    );

    let files = ["--bundle", &bundles, "--manifest", &manifest];
    let done = upload("1.0.0", &pulled, &files);
    let uploaded: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(uploaded["signed_by"], "release", "{uploaded:#}");

    let id = uploaded["component_id"].as_str().unwrap();
    let kept = crate::support::operator(app.data.path(), &["component", "attestations", id]);
    assert_eq!(kept.as_array().unwrap().len(), 1, "{kept:#}");
    assert_eq!(kept[0]["predicate_type"], PROVENANCE);
    assert_eq!(kept[0]["publisher"], "release");
    assert_eq!(
        kept[0]["manifest"],
        String::from_utf8(fs::read(manifest).unwrap()).unwrap()
    );
}

/// Organizations name a registry and bring a login for one pull.
#[tokio::test(flavor = "multi_thread")]
async fn an_organization_uploads_from_its_registry() {
    let registry = RunningRegistry::start();
    let operator = Operator::new(&registry.address, PASSWORD);
    let bytes = variant(Slot::Compliance, "of an organization");
    let tag = format!("oci://{}/rules:1", registry.address);
    let reference = operator.pushed(&bytes, &tag);
    let insecure = |config: &mut Config| {
        config.providers.allow_insecure = true;
        // The login of the operator is not for organizations.
        let folder = operator.folder.path();
        let login = json!({ "username": "lender", "password_file": folder.join("password") });
        let login = serde_json::from_value(login).unwrap();
        let registries = &mut config.components.registries;
        registries.insert(registry.address.clone(), login);
    };

    let app = TestApp::with(insecure, OrgSettings::default()).await;
    let officer = app.token("compliance");
    let upload = async |texts: &[(&str, &str)]| {
        let named = [("name", "our-rules"), ("version", "1.0.0")];
        let texts = [named.as_slice(), texts].concat();
        app.upload_form(&officer, None, &texts).await
    };

    let login = [("username", "lender"), ("password", PASSWORD)];
    let from = [("from", reference.as_str())];
    // One digest in sixteen ends with 0.
    let other = if reference.ends_with('0') { "1" } else { "0" };
    let changed = format!("{}{other}", &reference[..reference.len() - 1]);
    for (texts, why) in [
        (
            vec![("from", tag.as_str())],
            "write it as oci://host/name@sha256:",
        ),
        (from.to_vec(), "it asks for a login, and there is none"),
        (
            [
                from.as_slice(),
                &[("username", "lender"), ("password", "wrong")],
            ]
            .concat(),
            "401",
        ),
        (
            [[("from", changed.as_str())].as_slice(), &login].concat(),
            "404",
        ),
        (
            vec![(
                "from",
                "oci://169.254.169.254/rules@sha256:0000000000000000000000000000000000000000000000000000000000000000",
            )],
            "the address is refused",
        ),
    ] {
        let refused = upload(&texts).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(refused.json()["details"][0]["code"], "registry");
        assert!(refused.text().contains(why), "{why}: {}", refused.text());
        assert!(!refused.text().contains(PASSWORD), "{}", refused.text());
    }

    for (texts, why) in [
        (vec![], "file or from is required"),
        (vec![from[0], login[0]], "username and password go together"),
        (
            vec![from[0], ("bundles", "{}")],
            "from and bundles exclude each other",
        ),
        (
            vec![from[0], ("manifest", "{}")],
            "from and manifest exclude each other",
        ),
    ] {
        assert_eq!(upload(&texts).await.error(400), why);
    }

    let both = [("name", "our-rules"), ("version", "1.0.0"), from[0]];
    let both = app.upload_form(&officer, Some(&bytes), &both).await;
    assert_eq!(both.error(400), "file and from exclude each other");

    let needless = [
        ("name", "our-rules"),
        ("version", "1.0.0"),
        login[0],
        login[1],
    ];
    let needless = app.upload_form(&officer, Some(&bytes), &needless).await;
    assert_eq!(needless.error(400), "file and username exclude each other");

    let component = upload(&[from.as_slice(), &login].concat()).await.data(201);
    assert_eq!(component["sha256"], sha256(&bytes).as_str());

    let history = app.get_with_bearer(&officer, "/component-ledger").await;
    assert!(!history.text().contains(PASSWORD));

    let history = history.data(200);
    let last = history.as_array().unwrap().last().unwrap();
    assert_eq!(last["details"]["from"], reference.as_str());
}

/// Requests that a stand-in for a hosted registry received: path, and authorization.
type Received = Arc<Mutex<Vec<(String, Option<String>)>>>;

/// Stands in for a hosted registry: it names a token service, and redirects to its object store.
async fn hosted(State(received): State<Received>, request: Request) -> Response {
    let path = request.uri().to_string();
    let headers = request.headers();
    let authorization = headers.get(header::AUTHORIZATION);
    let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
    let host = headers[header::HOST].to_str().unwrap().to_owned();
    let all = &mut received.lock().unwrap();
    all.push((path.clone(), authorization.clone()));

    let component = variant(Slot::Compliance, "hosted");
    let layer = format!("sha256:{}", sha256(&component));
    if path.starts_with("/token?") {
        return axum::Json(json!({ "access_token": "t0ken" })).into_response();
    }
    if path == "/store/component" {
        return component.into_response();
    }
    if authorization.as_deref() != Some("Bearer t0ken") {
        let challenge = format!(
            "Bearer realm=\"http://{host}/token\",service=\"hosted\",scope=\"repository:rules:pull\""
        );
        return (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, challenge)],
        )
            .into_response();
    }

    match path {
        path if path.contains("/manifests/sha256:") => {
            manifest(&layer, component.len(), "application/wasm").into_response()
        }
        path if path.ends_with(&layer) => {
            // Another origin: the same server under its other name.
            let port = host.rsplit_once(':').unwrap().1;
            let elsewhere = format!("http://localhost:{port}/store/component");
            (
                StatusCode::TEMPORARY_REDIRECT,
                [(header::LOCATION, elsewhere)],
            )
                .into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Stands in for a registry with a token service for each scope and a list of referrers of its own.
#[derive(Clone, Default)]
struct ModernRegistry(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl ModernRegistry {
    async fn answer(State(registry): State<Self>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 1 << 24).await.unwrap();
        let path = parts.uri.path().to_owned();
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let header = |name| {
            parts
                .headers
                .get(name)
                .map(|value: &HeaderValue| value.to_str().unwrap())
        };
        let host = header(header::HOST).unwrap();

        if path == "/token" {
            // The token is good for the asked scope only.
            let scope = query.rsplit("scope=").next().unwrap().to_owned();
            return axum::Json(json!({ "token": scope })).into_response();
        }

        let is_read = parts.method == Method::GET;
        let scope = if is_read { "pull" } else { "push" };
        if header(header::AUTHORIZATION) != Some(&format!("Bearer {scope}")) {
            let challenge = format!("Bearer realm=\"http://{host}/token\",scope=\"{scope}\"");
            let headers = [(header::WWW_AUTHENTICATE, challenge)];
            return (StatusCode::UNAUTHORIZED, headers).into_response();
        }

        let mut kept = registry.0.lock().unwrap();
        if is_read && path.contains("/referrers/") {
            assert!(query.starts_with("artifactType=application"), "{query}");
            let manifests: Vec<Value> = kept
                .values()
                .filter_map(|bytes| {
                    let manifest: Value = serde_json::from_slice(bytes).ok()?;
                    let digest = format!("sha256:{}", sha256(bytes));
                    let subject = manifest["subject"]["digest"].as_str()?;
                    path.ends_with(subject).then(
                        || json!({ "digest": digest, "artifactType": manifest["artifactType"] }),
                    )
                })
                .collect();

            return axum::Json(json!({ "manifests": manifests })).into_response();
        }

        if is_read {
            let name = path.rsplit('/').next().unwrap();
            return match kept.get(name) {
                Some(bytes) => bytes.clone().into_response(),
                None => StatusCode::NOT_FOUND.into_response(),
            };
        }
        if path.ends_with("/uploads/") {
            let headers = [(header::LOCATION, format!("http://{host}/v2/upload"))];
            return (StatusCode::ACCEPTED, headers).into_response();
        }

        kept.insert(format!("sha256:{}", sha256(&body)), body.to_vec());
        StatusCode::CREATED.into_response()
    }
}

/// Bundles are attached where each request needs a token of its own, and the registry keeps the list.
#[tokio::test(flavor = "multi_thread")]
async fn bundles_are_attached_to_a_hosted_registry() {
    let router = Router::new()
        .fallback(ModernRegistry::answer)
        .with_state(ModernRegistry::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(axum::serve(listener, router).into_future());
    let bytes = variant(Slot::Compliance, "modern");
    let pulled = bytes.clone();
    let blocking = tokio::task::spawn_blocking(move || {
        let operator = Operator::new(&address, PASSWORD);
        let tag = format!("oci://{address}/rules:1");
        let reference = operator.pushed(&bytes, &tag);
        let file = operator.path("bundle.json");
        fs::write(
            &file,
            "{\"mediaType\": \"application/vnd.dev.sigstore.bundle.v0.3+json\"}",
        )
        .unwrap();

        let (done, text) = operator.runs(&["component", "attach", &reference, &file]);
        assert!(done, "{text}");

        let pulled = operator.pulled(&reference).unwrap();
        let bundles = format!("{}.sigstore.jsonl", operator.path("pulled.wasm"));
        (pulled, fs::read_to_string(bundles).unwrap())
    });

    let (found, bundles) = blocking.await.unwrap();
    assert_eq!(found, pulled);
    assert_eq!(bundles.lines().count(), 1, "{bundles}");
}

fn manifest(layer: &str, size: usize, kind: &str) -> String {
    json!({
        "schemaVersion": 2,
        "config": { "mediaType": "application/vnd.wasm.config.v0+json", "digest": layer, "size": 2 },
        "layers": [{ "mediaType": kind, "digest": layer, "size": size }],
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hosted_registry_has_a_token_service_and_another_store() {
    let received = Received::default();
    let router = Router::new().fallback(hosted).with_state(received.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(axum::serve(listener, router).into_future());
    let component = variant(Slot::Compliance, "hosted");
    let layer = format!("sha256:{}", sha256(&component));
    let digest = sha256(manifest(&layer, component.len(), "application/wasm").as_bytes());
    let reference = format!("oci://{address}/rules@sha256:{digest}");
    let pulled = tokio::task::spawn_blocking(move || {
        let operator = Operator::new(&address, PASSWORD);
        operator.pulled(&reference)
    });
    assert_eq!(pulled.await.unwrap().unwrap(), component);

    let received = received.lock().unwrap();
    let token = received
        .iter()
        .find(|(path, _)| path.starts_with("/token?"))
        .unwrap();
    assert!(
        token.0.contains("scope=repository%3Arules%3Apull"),
        "{token:?}"
    );
    assert!(token.1.as_ref().unwrap().starts_with("Basic "), "{token:?}");

    // The store gets no login.
    let store = received.iter().find(|(path, _)| path == "/store/component");
    assert_eq!(store.unwrap().1, None);
}
