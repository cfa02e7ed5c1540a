//! Files that are shipped with the binary match its behaviour.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::sdk::target;
use crate::support::TestApp;
use crate::support::authority::openssl;

pub fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging")
}

pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A dashboard or an alert that queries an unknown metric would silently stay empty.
#[tokio::test(flavor = "multi_thread")]
async fn dashboard_and_alerts_use_existing_metrics() {
    let app = TestApp::start().await;
    app.vaulted_envelope().await;
    let metrics = app.metrics().await;

    let mut counted = BTreeSet::new();
    for line in metrics.lines() {
        let Some(typed) = line.strip_prefix("# TYPE ") else {
            continue;
        };

        let (name, kind) = typed.split_once(' ').unwrap();
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };

        counted.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }

    for file in ["grafana-dashboard.json", "alerts.yaml"] {
        let text = std::fs::read_to_string(packaging().join("monitoring").join(file)).unwrap();
        let asked: BTreeSet<String> = text
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .filter(|word| word.starts_with("holdfast_"))
            .map(str::to_owned)
            .collect();
        assert!(asked.len() > 10, "{file}: {asked:?}");

        let unknown: Vec<_> = asked.difference(&counted).collect();
        assert!(unknown.is_empty(), "{file} asks for {unknown:?}");
    }
}

/// The guide names five alerts first, all of them with a metric that their rule asks for.
#[test]
fn the_alerts_of_the_guide_are_those_of_the_rules() {
    let guide = packaging().join("../docs/monitoring.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let rules = std::fs::read_to_string(packaging().join("monitoring/alerts.yaml")).unwrap();
    let rules: Vec<&str> = rules.split("- alert: ").skip(1).collect();

    let rows: Vec<&str> = guide
        .lines()
        .filter(|line| line.starts_with("| `Holdfast"))
        .collect();
    assert!(rows.len() >= 10, "{rows:?}");

    for row in rows {
        let mut quoted = row.split('`').skip(1).step_by(2);
        let alert = format!("{}\n", quoted.next().unwrap());
        let rule = rules.iter().find(|rule| rule.starts_with(&alert));
        let rule = rule.unwrap_or_else(|| panic!("{alert} is no alert"));
        let metrics: Vec<&str> = quoted
            .filter(|word| word.starts_with("holdfast_"))
            .collect();
        assert!(!metrics.is_empty(), "{row}");
        for metric in metrics {
            assert!(rule.contains(metric), "{alert}: {metric}");
        }
    }
}

#[test]
fn manifests_are_well_formed() {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../pdf-readers/bin/python");
    let count = "import sys, yaml\nfor f in sys.argv[1:]:\n    \
                 print(*[d.get('kind', 'rules') for d in yaml.safe_load_all(open(f))])";
    let kinds = run(Command::new(python)
        .args(["-c", count])
        .arg(packaging().join("kubernetes/holdfast.yaml"))
        .arg(packaging().join("monitoring/alerts.yaml")));

    let all = "ConfigMap Deployment Service PodDisruptionBudget NetworkPolicy";
    assert_eq!(kinds.lines().collect::<Vec<_>>(), [all, "rules"]);

    let dashboard = packaging().join("monitoring/grafana-dashboard.json");
    let dashboard = std::fs::read(dashboard).unwrap();
    let dashboard: serde_json::Value = serde_json::from_slice(&dashboard).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() > 20);
}

/// The settings in shipped files are known to the parser.
#[test]
fn shipped_settings_are_known_to_the_parser() {
    let manifest = std::fs::read_to_string(packaging().join("kubernetes/holdfast.yaml")).unwrap();
    let (_, settings) = manifest.split_once("holdfast.toml: |\n").unwrap();
    let (settings, _) = settings.split_once("---").unwrap();
    let debian = std::fs::read_to_string(packaging().join("debian/holdfast.toml")).unwrap();

    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("kubernetes", settings), ("debian", debian.as_str())] {
        let file = folder.path().join(format!("{name}.toml"));
        std::fs::write(&file, text).unwrap();
        let config = holdfast::config::Config::load(Some(&file));
        assert!(config.is_ok(), "{name}: {}", config.unwrap_err());
    }
}

/// Packages run in production mode, without the payment and identity sandboxes.
#[test]
fn packages_run_in_production_mode() {
    let text = |file: &str| std::fs::read_to_string(packaging().join(file)).unwrap();
    assert!(text("Containerfile").contains("HOLDFAST_ENV=production"));
    for file in ["debian/holdfast.toml", "kubernetes/holdfast.yaml"] {
        assert!(text(file).contains("env = \"production\""), "{file}");
    }
}

/// Other pods in the cluster reach neither the service nor its metrics.
#[test]
fn the_network_policy_limits_incoming_connections() {
    let manifest = std::fs::read_to_string(packaging().join("kubernetes/holdfast.yaml")).unwrap();
    let (_, policy) = manifest.split_once("kind: NetworkPolicy").unwrap();
    let doors = policy.matches("ports:").count();
    assert_eq!(doors, 2, "the service and its metrics");
    assert_eq!(policy.matches("- from:").count(), doors, "{policy}");
    assert!(
        !manifest.contains("/8\"]"),
        "trusted proxies are exact networks"
    );
}

/// Every ignored advisory has a date by which it has to be reviewed.
#[test]
fn ignored_advisories_have_a_reason_and_an_end_date() {
    let text = std::fs::read_to_string(packaging().join("../deny.toml")).unwrap();
    let settings: toml::Table = text.parse().unwrap();
    let today = jiff::Zoned::now().date();
    for ignored in settings["advisories"]["ignore"].as_array().unwrap() {
        let (id, reason) = (&ignored["id"], ignored["reason"].as_str().unwrap());
        let rest = reason.strip_prefix("until ").unwrap_or_default();
        let (end, why) = rest.split_once(": ").unwrap_or_default();
        let end: jiff::civil::Date = end.parse().unwrap_or_else(|_| panic!("{id} has no end"));
        assert!(why.len() > 20, "{id} has no reason");
        assert!(
            today <= end,
            "{id} was ignored until {end}: look at it again"
        );
    }
}

/// `cargo build` alone makes a program of one file; a build for packages lists the files beside it.
#[test]
fn a_default_build_lists_no_files_beside_it() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    assert_eq!(run(program.arg("shared-files")), "");
}

/// Recipients of bundles look for the verifier where the program is.
#[test]
fn the_verifier_lies_beside_the_program() {
    let root = packaging().join("..");
    let makefile = std::fs::read_to_string(root.join("Makefile")).unwrap();
    let demos: Vec<&str> = makefile
        .lines()
        .filter(|line| line.contains("--bin demo"))
        .collect();
    assert_eq!(demos.len(), 3);
    for demo in demos {
        assert!(
            demo.contains("--bin holdfast --bin holdfast-verify"),
            "{demo}"
        );
    }

    let image = std::fs::read_to_string(packaging().join("Containerfile")).unwrap();
    for program in ["holdfast", "holdfast-verify"] {
        let copied = format!("/{program} /usr/bin/{program}\n");
        assert!(image.contains(&copied), "{copied}");
    }
}

/// The program depends on the C library only.
#[test]
fn the_debian_package_contains_all_files_of_a_server() {
    let libraries = run(Command::new("ldd").arg(env!("CARGO_BIN_EXE_holdfast")));
    for library in libraries.lines() {
        let known = ["linux-vdso", "libc.", "libm.", "libgcc_s.", "ld-linux"];
        assert!(known.iter().any(|name| library.contains(name)), "{library}");
    }

    let folder = tempfile::tempdir().unwrap();

    // A small program replaces both, which would take minutes to pack.
    let build = |to: &str| {
        let to = folder.path().join(to);
        let mut build = Command::new(packaging().join("build-deb"));
        let package = run(build.arg("/bin/true").arg("/bin/true").arg(&to));
        PathBuf::from(package.trim())
    };
    let package = build("one");

    let contents = run(Command::new("dpkg-deb").arg("--contents").arg(&package));
    for file in [
        "./usr/bin/holdfast\n",
        "./usr/bin/holdfast-verify",
        "./usr/lib/systemd/system/holdfast.service",
        "./etc/holdfast/holdfast.toml",
        "./usr/share/doc/holdfast/OFL.txt",
        "./usr/share/doc/holdfast/README.md",
        "./usr/share/doc/holdfast/docs/arazzo.json",
        "./usr/share/doc/holdfast/docs/configuration.md",
        "./usr/share/doc/holdfast/docs/openapi.json",
        "./usr/share/doc/holdfast/docs/operations.md",
        "./usr/share/holdfast/monitoring/alerts.yaml",
    ] {
        assert!(contents.contains(file), "{file} in {contents}");
    }

    assert!(contents.lines().all(|line| line.contains("root/root")));
    let control = run(Command::new("dpkg-deb").arg("--field").arg(&package));
    assert!(control.contains("Package: holdfast"), "{control}");
    assert!(control.contains("libc6 (>= 2."), "{control}");

    let again = build("two");
    assert!(std::fs::read(package).unwrap() == std::fs::read(again).unwrap());
}

/// Returns the first sample of the guide to proxies in a language.
fn proxy_sample(language: &str) -> String {
    let guide = packaging().join("../docs/reverse-proxy.md");
    let text = std::fs::read_to_string(guide).unwrap();
    let (_, rest) = text.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// Replaces parts of a sample that are different on this machine.
fn adapted(mut sample: String, replacements: &[(&str, &str)]) -> String {
    for (of_the_guide, here) in replacements {
        assert!(sample.contains(of_the_guide), "{of_the_guide} in {sample}");
        sample = sample.replace(of_the_guide, here);
    }

    sample
}

/// A proxy with a configuration of the guide, in front of a server.
struct GuideProxy {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Drop for GuideProxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl GuideProxy {
    /// Starts one. `command` gets its folder, which has key and certificate, its port and the address of the server.
    fn start(app: &TestApp, command: impl FnOnce(&Path, u16, &str) -> Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        openssl(
            folder.path(),
            &[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-keyout",
                "sign.example.key",
                "-out",
                "sign.example.pem",
                "-days",
                "2",
                "-subj",
                "/CN=sign.example",
                "-addext",
                "subjectAltName=DNS:sign.example",
            ],
        );

        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);

        let url = app.url();
        let server = url.strip_prefix("http://").unwrap();
        let process = command(folder.path(), port, server)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("the proxy; tests/set-up test unpacks it");
        let proxy = Self {
            process,
            port,
            folder,
        };

        for _ in 0..100 {
            if proxy.status("/healthz", &[]) == "200" {
                return proxy;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the proxy does not answer on port {port}");
    }

    fn curl(&self, path: &str, arguments: &[&str]) -> String {
        let output = Command::new("curl")
            .current_dir(self.folder.path())
            .args(["-sS", "--cacert", "sign.example.pem", "--connect-to"])
            .arg(format!("sign.example:443:127.0.0.1:{}", self.port))
            .args(arguments)
            .arg(format!("https://sign.example{path}"))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn status(&self, path: &str, arguments: &[&str]) -> String {
        let only_status = ["-o", "/dev/null", "-w", "%{http_code}"];
        self.curl(path, &[&only_status[..], arguments].concat())
    }

    /// Makes the checks of the guide, and those of its table for other proxies.
    fn check(&self, app: &TestApp) {
        assert_eq!(self.status("/metrics", &[]), "404");
        let head = self.curl("/healthz", &["-I"]).to_lowercase();
        assert!(head.contains("x-request-id: "), "{head}");

        // The server knows the host under which it is public, and refuses others.
        let bearer = format!("Authorization: Bearer {}", app.key);
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let message = [
            "-H",
            &bearer,
            "-H",
            "Content-Type: application/json",
            "-H",
            "Accept: application/json, text/event-stream",
            "--data",
            ping,
        ];
        assert_eq!(self.status("/mcp", &message), "200");

        // A file above the default limits of proxies reaches the server, which refuses it for its type.
        let file = self.folder.path().join("large");
        std::fs::write(file, vec![0; 20 << 20]).unwrap();
        let key = format!("X-API-Key: {}", app.key);
        let form = ["-H", &key, "-F", "file=@large", "-F", "name=Large"];
        let refused = self.curl("/api/v2/partner/templates", &[&form[..], &["-i"]].concat());
        assert!(refused.contains(" 415"), "{refused}");
        assert!(
            refused.to_lowercase().contains("x-request-id: "),
            "{refused}"
        );
    }
}

async fn behind_a_proxy() -> TestApp {
    TestApp::on_a_socket_over(|config| {
        config.public_url = Some("https://sign.example".parse().unwrap());
        config.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_runs_with_the_configuration_of_the_guide() {
    let app = behind_a_proxy().await;
    let proxy = GuideProxy::start(&app, |folder, port, server| {
        let folder = folder.display();
        let sample = adapted(
            proxy_sample("nginx"),
            &[
                ("listen 443 ssl", &format!("listen 127.0.0.1:{port} ssl")),
                ("/etc/ssl/sign.example", &format!("{folder}/sign.example")),
                ("127.0.0.1:8080", server),
            ],
        );

        let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let folders: String = folders
            .iter()
            .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
            .collect();
        let text = format!(
            "daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nevents {{}}\n\
             http {{\naccess_log off;\n{folders}{sample}}}\n"
        );
        std::fs::write(format!("{folder}/nginx.conf"), text).unwrap();

        let mut nginx = Command::new(target().join("proxies/usr/sbin/nginx"));
        nginx.args(["-e", "stderr", "-p"]).arg(format!("{folder}/"));
        nginx.arg("-c").arg(format!("{folder}/nginx.conf"));
        nginx
    });

    proxy.check(&app);
}

#[tokio::test(flavor = "multi_thread")]
async fn caddy_runs_with_the_configuration_of_the_guide() {
    let app = behind_a_proxy().await;
    let proxy = GuideProxy::start(&app, |folder, port, server| {
        let site =
            format!("https://sign.example:{port} {{\n\ttls sign.example.pem sign.example.key\n");
        // The certificate is one of the test, as no authority can reach this machine.
        let sample = adapted(
            proxy_sample("caddyfile"),
            &[("sign.example {\n", &site), ("127.0.0.1:8080", server)],
        );
        let text = format!("{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n{sample}");
        std::fs::write(folder.join("Caddyfile"), text).unwrap();

        let mut caddy = Command::new(target().join("proxies/usr/bin/caddy"));
        caddy.args(["run", "--config", "Caddyfile", "--adapter", "caddyfile"]);
        caddy
            .env("XDG_DATA_HOME", folder)
            .env("XDG_CONFIG_HOME", folder);
        caddy
    });

    proxy.check(&app);
}
