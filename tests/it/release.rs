//! A release: equal programs give equal bytes, and `install.sh` installs nothing that the release's key did not sign.
//! Small programs stand in for those of holdfast, which take half an hour to build.

use std::collections::BTreeSet;
use std::env::{self, consts::ARCH};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use axum::http::StatusCode;
use axum::routing::get;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::packaging::{packaging, run};

/// The architecture of a release that these tests do not run on.
const OTHER: &str = if cfg!(target_arch = "x86_64") {
    "aarch64"
} else {
    "x86_64"
};

/// Time of the files of a release: 2026-09-21.
const COMMITTED: &str = "1790000000";

/// Publisher with a key and programs for both architectures.
struct Publisher {
    folder: TempDir,
}

impl Publisher {
    fn new() -> Self {
        let publisher = Self {
            folder: tempfile::tempdir().unwrap(),
        };

        for architecture in [ARCH, OTHER] {
            publisher.add_programs(architecture);
        }
        // A program for another machine cannot be asked for its files: it has all of the folder.
        fs::write(publisher.at(OTHER).join("share/rules.cwasm.zst"), "code").unwrap();

        let build = json!({
            "version": "0.0.0", "repository": "https://code.example/holdfast.git", "commit": "91ab", "targets": [ARCH, OTHER],
            "tools": { "rustc": "rustc 1.95.0" }, "commands": ["packaging/release OUT"], "builder": "urn:builder:test",
        });
        let package = json!({
            "id": "path+file:///source/host#holdfast@0.0.0", "name": "holdfast", "version": "0.0.0", "source": null,
            "license": "Apache-2.0", "license_file": null, "manifest_path": "/source/host/Cargo.toml",
        });
        let metadata = json!({
            "workspace_root": "/source", "workspace_members": [package["id"]], "packages": [package],
            "resolve": { "nodes": [{ "id": package["id"], "deps": [] }] },
        });
        fs::write(publisher.built().join("build.json"), build.to_string()).unwrap();
        fs::write(
            publisher.built().join("metadata.json"),
            metadata.to_string(),
        )
        .unwrap();

        make_key(&publisher.key("release"));
        publisher
    }

    /// Copies a program of the system, with the machine of `architecture` in the header of ELF.
    fn add_programs(&self, architecture: &str) {
        let folder = self.at(architecture);
        fs::create_dir_all(folder.join("share")).unwrap();

        let mut program = fs::read("/bin/true").unwrap();
        program[18] = if architecture == "x86_64" { 62 } else { 183 };
        for name in ["holdfast", "holdfast-verify"] {
            write_program(&folder.join(name), &program);
        }
    }

    fn built(&self) -> PathBuf {
        self.folder.path().join("built")
    }

    fn at(&self, architecture: &str) -> PathBuf {
        self.built().join(architecture)
    }

    fn key(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.pem"))
    }

    /// Returns the command that makes a release in a folder.
    fn assembling(&self, folder: &str, umask: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"])
            .arg(packaging().join("assemble"))
            .arg(self.built())
            .arg(self.folder.path().join(folder))
            .env("RELEASE_KEY", self.key("release"))
            .env("SOURCE_DATE_EPOCH", COMMITTED)
            .env("PARTS", "deb");
        command
    }

    fn release(&self) -> PathBuf {
        run(&mut self.assembling("release", "022"));
        self.folder.path().join("release")
    }

    /// Replaces the checksums and their signature, as after a change by the publisher.
    fn sign(&self, release: &Path) {
        let script =
            "rm -f SHA256SUMS SHA256SUMS.sig; sums=$(sha256sum -- *); echo \"$sums\" >SHA256SUMS
            openssl pkeyutl -sign -rawin -inkey \"$1\" -in SHA256SUMS -out SHA256SUMS.sig";
        let mut command = Command::new("sh");
        command
            .args(["-ec", script, "sh"])
            .arg(self.key("release"))
            .current_dir(release);
        run(&mut command);
    }

    /// Packs the archive of this machine again after a change of its folder.
    fn repack(&self, release: &Path, version: &str, change: impl FnOnce(&Path)) {
        let archive = archive_in(release, ARCH);
        let unpacked = tempfile::tempdir().unwrap();
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(&archive).arg("-C");
        run(unpack.arg(unpacked.path()).arg("--strip-components=1"));

        change(unpacked.path());
        fs::remove_file(&archive).unwrap();
        let name = format!("holdfast-{version}-{ARCH}-linux");
        let mut pack = Command::new("tar");
        pack.arg("-czf").arg(release.join(format!("{name}.tar.gz")));
        pack.arg("-C").arg(unpacked.path());
        run(pack.arg(format!("--transform=s,^[.],{name},")).arg("."));
        self.sign(release);
    }
}

fn make_key(file: &Path) {
    let mut command = Command::new("openssl");
    run(command
        .args(["genpkey", "-algorithm", "ed25519", "-out"])
        .arg(file));
}

fn write_program(file: &Path, bytes: impl AsRef<[u8]>) {
    fs::write(file, bytes).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

fn archive_in(release: &Path, architecture: &str) -> PathBuf {
    let end = format!("-{architecture}-linux.tar.gz");
    let mut found = names(release)
        .into_iter()
        .filter(|name| name.ends_with(&end));
    release.join(found.next().unwrap())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn json_in(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

fn sha256_of(file: &Path) -> String {
    let listed = run(Command::new("sha256sum").arg(file));
    listed.split(' ').next().unwrap().to_owned()
}

/// Returns a `PATH` that finds scripts instead of programs of the system.
fn path_with(folder: &Path, scripts: &[(&str, &str)]) -> String {
    fs::create_dir_all(folder).unwrap();
    for (name, script) in scripts {
        write_program(&folder.join(name), format!("#!/bin/sh\n{script}\n"));
    }

    format!("{}:{}", folder.display(), env::var("PATH").unwrap())
}

/// Folder to install into.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn prefix(&self) -> PathBuf {
        self.folder.path().join("prefix")
    }

    /// Returns the command of the script in a release, which has its key.
    fn script(&self, release: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.arg(release.join("install.sh")).arg("--prefix");
        command.arg(self.prefix()).args(arguments);
        command.env_remove("HOLDFAST_RELEASE");
        command
    }

    /// Checks that the script refuses with `reason` and installs nothing.
    fn refuses(&self, command: &mut Command, reason: &str) {
        let Output { status, stderr, .. } = command.output().unwrap();
        let message = String::from_utf8(stderr).unwrap();
        assert!(!status.success(), "{reason}: it was installed");
        assert!(message.contains(reason), "{reason}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");

        assert!(!self.prefix().join("bin/holdfast-verify").exists());
        assert!(!self.prefix().join("lib/holdfast").exists(), "{reason}");
    }

    fn version(&self) -> String {
        let current = self.prefix().join("lib/holdfast/current");
        let version = fs::read_link(current).unwrap();
        version.into_os_string().into_string().unwrap()
    }
}

/// Clock, umask, and the order and times of files have no effect.
#[test]
fn equal_programs_give_an_equal_release() {
    let publisher = Publisher::new();
    let release = publisher.release();
    publisher.add_programs(OTHER);
    run(&mut publisher.assembling("again", "077"));
    let again = publisher.folder.path().join("again");

    assert_eq!(names(&release), names(&again));
    for name in names(&release) {
        let equal = fs::read(release.join(&name)).unwrap() == fs::read(again.join(&name)).unwrap();
        assert!(equal, "{name}");
    }

    // A changed program changes the release.
    let mut program = fs::read(publisher.at(ARCH).join("holdfast")).unwrap();
    program.push(0);
    write_program(&publisher.at(ARCH).join("holdfast"), program);
    let before = sha256_of(&archive_in(&release, ARCH));
    assert_ne!(before, sha256_of(&archive_in(&publisher.release(), ARCH)));
}

#[test]
fn a_release_has_archives_packages_and_statements_about_them() {
    let publisher = Publisher::new();
    let release = publisher.release();
    let version = env!("CARGO_PKG_VERSION");
    let expected = [
        "SHA256SUMS".to_owned(),
        "SHA256SUMS.sig".to_owned(),
        format!("holdfast-{version}-aarch64-linux.tar.gz"),
        format!("holdfast-{version}-x86_64-linux.tar.gz"),
        format!("holdfast-{version}.cdx.json"),
        format!("holdfast_{version}_amd64.deb"),
        format!("holdfast_{version}_arm64.deb"),
        "install.sh".to_owned(),
        "provenance.json".to_owned(),
    ];
    assert_eq!(names(&release), expected);

    let contents = run(Command::new("tar")
        .arg("-tzf")
        .arg(archive_in(&release, OTHER)));
    for file in [
        "bin/holdfast\n",
        "bin/holdfast-verify\n",
        "etc/holdfast/holdfast.toml\n",
        "lib/systemd/system/holdfast.service\n",
        "share/doc/holdfast/LICENSE\n",
        "share/doc/holdfast/OFL.txt\n",
        "share/holdfast/rules.cwasm.zst\n",
    ] {
        let file = format!("holdfast-{version}-{OTHER}-linux/{file}");
        assert!(contents.contains(&file), "{file} in {contents}");
    }

    // The checksums name all other files, and the provenance those that were there before it.
    let checksums = fs::read_to_string(release.join("SHA256SUMS")).unwrap();
    assert_eq!(checksums.lines().count(), expected.len() - 2);
    let provenance = json_in(&release.join("provenance.json"));
    let subjects = provenance["subject"].as_array().unwrap();
    assert_eq!(subjects.len(), expected.len() - 3);
    for subject in subjects {
        let name = subject["name"].as_str().unwrap();
        assert_eq!(subject["digest"]["sha256"], sha256_of(&release.join(name)));
    }

    let definition = &provenance["predicate"]["buildDefinition"];
    let source = &definition["resolvedDependencies"][0];
    assert_eq!(source["digest"]["gitCommit"], "91ab");
    assert_eq!(
        definition["externalParameters"]["targets"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

/// A missing tool is named with the command that installs it, before the long build. No half release stays.
#[test]
fn a_release_that_cannot_be_made_states_why() {
    let publisher = Publisher::new();
    let without_compiler = path_with(
        &publisher.folder.path().join("stand-ins"),
        &[("rustc", "echo /nonexistent")],
    );

    let build = |targets: &str, key: &Path, parts: &str| {
        let mut command = Command::new(packaging().join("release"));
        command.arg(publisher.folder.path().join("out"));
        command.env("TARGETS", targets).env("PARTS", parts);
        command
            .env("RELEASE_KEY", key)
            .env("PATH", &without_compiler);
        command
    };
    let key = publisher.key("release");
    let cases = [
        (
            build(OTHER, Path::new(""), "deb"),
            "openssl genpkey -algorithm ed25519".to_owned(),
        ),
        (
            build("s390x", &key, "deb"),
            "TARGETS has 's390x'".to_owned(),
        ),
        (build("", &key, "deb"), "TARGETS is empty".to_owned()),
        (
            build(&format!("{ARCH} {OTHER}"), &key, "deb"),
            format!(
                "run 'rustup target add {ARCH}-unknown-linux-gnu', or leave {ARCH} out: TARGETS=\"{OTHER}\""
            ),
        ),
    ];
    for (mut command, reason) in cases {
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && message.contains(&reason),
            "{reason}: {message}"
        );
    }

    let documents = publisher.folder.path().join("documents");
    fs::create_dir(&documents).unwrap();
    fs::write(documents.join("letter.txt"), "Dear Jordan").unwrap();
    let other_key = publisher.folder.path().join("rsa.pem");
    run(Command::new("openssl")
        .args(["genrsa", "-out"])
        .arg(&other_key));
    let mut wrong_part = publisher.assembling("out", "022");
    wrong_part.env("PARTS", "rpm");
    let mut wrong_key = publisher.assembling("out", "022");
    wrong_key.env("RELEASE_KEY", &other_key);
    let cases = [
        (
            publisher.assembling("documents", "022"),
            "is not empty and no release",
        ),
        (wrong_part, "PARTS has 'rpm'"),
        (wrong_key, "is no Ed25519 key"),
    ];
    for (mut command, reason) in cases {
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && message.contains(reason),
            "{reason}: {message}"
        );
    }
    assert!(documents.join("letter.txt").exists());

    // A program in the folder of the other architecture.
    fs::copy(
        publisher.at(ARCH).join("holdfast"),
        publisher.at(OTHER).join("holdfast"),
    )
    .unwrap();
    let output = publisher.assembling("out", "022").output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains(&format!("is not for {ARCH}")), "{message}");
    assert!(!publisher.folder.path().join("out").exists());
}

#[test]
fn a_release_is_installed_again_upgraded_and_removed() {
    let publisher = Publisher::new();
    let release = publisher.release();
    let machine = Machine::new();
    let bin = machine.prefix().join("bin");

    // From its own folder, twice.
    for _ in 0..2 {
        let next_steps = run(&mut machine.script(&release, &[]));
        assert!(next_steps.contains("bin/holdfast dev"), "{next_steps}");
        assert_eq!(machine.version(), env!("CARGO_PKG_VERSION"));
        assert_eq!(names(&bin), ["holdfast", "holdfast-verify"]);
        run(&mut Command::new(bin.join("holdfast")));
    }

    // The version before stays, and older ones go.
    for version in ["9.0.0", "9.1.0"] {
        publisher.repack(&release, version, |_| ());
        run(&mut machine.script(&release, &[]));
        assert_eq!(machine.version(), version);
    }
    // A repair deletes neither of them.
    run(&mut machine.script(&release, &[]));
    let home = machine.prefix().join("lib/holdfast");
    assert_eq!(names(&home), ["9.0.0", "9.1.0", "current"]);

    // With `--prefix /var`, data has the same folder.
    fs::write(home.join("holdfast.db"), "data").unwrap();
    publisher.repack(&release, "9.2.0", |_| ());
    run(&mut machine.script(&release, &[]));
    let kept = run(&mut machine.script(&release, &["--uninstall"]));
    assert!(kept.contains("data in /var/lib/holdfast stay"), "{kept}");
    assert!(names(&bin).is_empty());
    assert_eq!(names(&home), ["holdfast.db"]);
}

/// A mirror can offer an old release with its old signature.
#[test]
fn an_older_release_does_not_replace_a_newer_one() {
    let publisher = Publisher::new();
    let release = publisher.release();
    let machine = Machine::new();
    publisher.repack(&release, "9.10.0", |_| ());
    run(&mut machine.script(&release, &[]));

    publisher.repack(&release, "9.9.0", |_| ());
    let output = machine.script(&release, &[]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{message}");
    let reason = "9.10.0 is installed, and the release has the older 9.9.0";
    assert!(message.contains(reason), "{message}");
    assert_eq!(machine.version(), "9.10.0");
}

#[test]
fn a_service_that_could_not_start_is_not_installed() {
    let publisher = Publisher::new();
    let release = publisher.release();
    let machine = Machine::new();

    for (user, prefix, reason) in [
        ("1000", "/opt/holdfast", "run this as root"),
        (
            "0",
            "/home/jordan/holdfast",
            "a service has no access to /home/jordan/holdfast",
        ),
        ("0", "/opt/hold fast", "a unit cannot name /opt/hold fast"),
    ] {
        let answer = format!("echo {user}");
        let path = path_with(
            &machine.folder.path().join("stand-ins"),
            &[("id", answer.as_str())],
        );
        let arguments = ["--systemd", "--prefix", prefix];
        machine.refuses(
            machine.script(&release, &arguments).env("PATH", path),
            reason,
        );
    }
}

#[test]
fn a_service_keeps_its_settings() {
    let publisher = Publisher::new();
    let release = publisher.release();
    let machine = Machine::new();
    let calls = machine.folder.path().join("calls");
    let record = format!("echo \"${{0##*/}} $*\" >>{}", calls.display());
    let absent = format!("{record}; exit 2");
    let path = path_with(
        &machine.folder.path().join("stand-ins"),
        &[
            ("id", "echo 0"),
            ("getent", absent.as_str()),
            ("groupadd", record.as_str()),
            ("useradd", record.as_str()),
            ("chown", record.as_str()),
            ("systemctl", record.as_str()),
        ],
    );

    run(machine.script(&release, &["--systemd"]).env("PATH", &path));
    let settings = machine.prefix().join("etc/holdfast/holdfast.toml");
    let unit = machine.prefix().join("lib/systemd/system/holdfast.service");
    let called = fs::read_to_string(&calls).unwrap();
    for call in [
        "groupadd --system holdfast",
        "useradd --system",
        "chown root:holdfast",
    ] {
        assert!(called.contains(call), "{call} in {called}");
    }
    let mode = fs::metadata(&settings).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);

    // The unit starts the program of this prefix with the settings beside it.
    let text = fs::read_to_string(&unit).unwrap();
    let program = machine.prefix().join("bin/holdfast");
    let start = format!(
        "ExecStart={} --config {} serve",
        program.display(),
        settings.display()
    );
    assert!(text.contains(&start), "{text}");
    assert!(!text.contains("/usr/"), "{text}");

    fs::write(&settings, "listen = \"127.0.0.1:9000\"").unwrap();
    publisher.repack(&release, "9.0.0", |_| ());
    run(machine.script(&release, &["--systemd"]).env("PATH", &path));
    assert_eq!(
        fs::read_to_string(&settings).unwrap(),
        "listen = \"127.0.0.1:9000\""
    );

    run(machine
        .script(&release, &["--uninstall"])
        .env("PATH", &path));
    assert!(settings.exists() && !unit.exists());
}

#[test]
fn a_release_that_was_changed_is_not_installed() {
    let publisher = Publisher::new();
    let machine = Machine::new();
    let published = publisher.release();
    let refused = |change: &dyn Fn(&Path), reason: &str| {
        let release = publisher.folder.path().join("changed");
        run(Command::new("cp").arg("-rT").arg(&published).arg(&release));
        change(&release);
        machine.refuses(&mut machine.script(&release, &[]), reason);
    };

    refused(
        &|release| {
            let archive = archive_in(release, ARCH);
            let mut bytes = fs::read(&archive).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(archive, bytes).unwrap();
        },
        "does not have the SHA-256 of SHA256SUMS",
    );

    // Checksums that fit the changed files, without the key of the publisher.
    refused(
        &|release| {
            fs::write(archive_in(release, ARCH), "other").unwrap();
            let sums = run(Command::new("sh")
                .args(["-c", "sha256sum -- *.tar.gz"])
                .current_dir(release));
            fs::write(release.join("SHA256SUMS"), sums).unwrap();
        },
        "the signature of SHA256SUMS is not by the key of this script",
    );
    for (name, reason) in [
        ("SHA256SUMS", "SHA256SUMS is missing in"),
        ("SHA256SUMS.sig", "SHA256SUMS.sig is missing in"),
    ] {
        refused(
            &|release| fs::remove_file(release.join(name)).unwrap(),
            reason,
        );
    }
    refused(
        &|release| fs::remove_file(archive_in(release, ARCH)).unwrap(),
        "-linux.tar.gz is missing in",
    );
}

#[test]
fn a_release_of_another_key_is_not_installed() {
    let publisher = Publisher::new();
    let release = publisher.release();
    let machine = Machine::new();

    make_key(&publisher.key("other"));
    let public = publisher.key("other-public");
    let mut command = Command::new("openssl");
    command.args(["pkey", "-pubout", "-in"]);
    run(command.arg(publisher.key("other")).arg("-out").arg(&public));
    let named = ["--key", public.to_str().unwrap()];
    let reason = format!("is not by the key {}", public.display());
    machine.refuses(&mut machine.script(&release, &named), &reason);

    let absent = ["--key", "/nonexistent.pem"];
    let reason = "the key /nonexistent.pem cannot be read";
    machine.refuses(&mut machine.script(&release, &absent), reason);

    // The script of the repository has no key of its own.
    fs::copy(packaging().join("install.sh"), release.join("install.sh")).unwrap();
    let reason = "Name its public key: --key FILE";
    machine.refuses(&mut machine.script(&release, &[]), reason);
}

#[test]
fn a_release_without_a_program_for_this_machine_is_not_installed() {
    let publisher = Publisher::new();
    let release = publisher.release();
    let machine = Machine::new();
    let on = |answer: &str| {
        let script = format!("case $1 in -s) echo Linux ;; *) echo {answer} ;; esac");
        path_with(
            &machine.folder.path().join(answer),
            &[("uname", script.as_str())],
        )
    };

    let reason = "the release has no program for riscv64, only holdfast-";
    machine.refuses(
        machine.script(&release, &[]).env("PATH", on("riscv64")),
        reason,
    );
    let reason = "the program does not run on this machine";
    machine.refuses(machine.script(&release, &[]).env("PATH", on(OTHER)), reason);

    let path = path_with(
        &machine.folder.path().join("other"),
        &[("uname", "echo Darwin")],
    );
    let reason = "holdfast runs on Linux; this is Darwin";
    machine.refuses(machine.script(&release, &[]).env("PATH", path), reason);
}

/// The program has the list of its files.
#[test]
fn an_archive_without_all_files_of_its_program_is_not_installed() {
    let publisher = Publisher::new();
    let release = publisher.release();
    let machine = Machine::new();

    publisher.repack(&release, "9.0.0", |archive| {
        let digest = "0".repeat(64);
        let script = format!("#!/bin/sh\necho '{digest}  rules.cwasm.zst'\n");
        write_program(&archive.join("bin/holdfast"), script);
    });
    let reason = "the archive lacks files of its program";
    machine.refuses(&mut machine.script(&release, &[]), reason);
}

#[test]
fn a_program_from_elsewhere_is_not_replaced() {
    let publisher = Publisher::new();
    let release = publisher.release();
    let machine = Machine::new();
    let program = machine.prefix().join("bin/holdfast");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, "another program").unwrap();

    let reason = "bin/holdfast was not installed by this script";
    machine.refuses(&mut machine.script(&release, &[]), reason);
    assert_eq!(fs::read_to_string(&program).unwrap(), "another program");

    let reason = "there is no installation of this script";
    machine.refuses(&mut machine.script(&release, &["--uninstall"]), reason);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_installed_from_an_address() {
    let publisher = Publisher::new();
    let release = publisher.release();
    let folder = release.clone();
    let serve = move |axum::extract::Path(name): axum::extract::Path<String>| {
        let file = folder.join(name);
        async move { fs::read(file).map_err(|_| StatusCode::NOT_FOUND) }
    };
    let router = axum::Router::new().route("/download/{name}", get(serve));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/download", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });

    let machine = Machine::new();
    let elsewhere = format!("{address}/elsewhere");
    tokio::task::block_in_place(|| {
        // Two errors: the one of curl, and the one of the script.
        let missing = machine.script(&release, &["--from", &elsewhere]).output();
        let message = String::from_utf8(missing.unwrap().stderr).unwrap();
        assert!(
            message.contains("SHA256SUMS cannot be fetched from"),
            "{message}"
        );
        assert!(!machine.prefix().exists());

        run(machine
            .script(&release, &[])
            .env("HOLDFAST_RELEASE", &address));
    });
    assert_eq!(machine.version(), env!("CARGO_PKG_VERSION"));
}

/// Crates that only builds and tests use are not listed; guests, which no dependency links, are.
#[test]
fn the_bill_of_materials_lists_the_crates_of_the_programs() {
    let root = packaging().join("..");
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--locked", "--format-version", "1"]);
    let native = format!("{ARCH}-unknown-linux-gnu");
    for platform in [native.as_str(), "wasm32-unknown-unknown"] {
        command.args(["--filter-platform", platform]);
    }
    let folder = tempfile::tempdir().unwrap();
    let metadata = folder.path().join("metadata.json");
    fs::write(&metadata, run(command.current_dir(&root))).unwrap();

    let mut command = Command::new(packaging().join("sbom"));
    command.arg(root.join("Cargo.lock")).arg(COMMITTED);
    let listed = run(command.stdin(fs::File::open(metadata).unwrap()));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["specVersion"], "1.6");
    assert_eq!(listed["metadata"]["component"]["name"], "holdfast");
    assert_eq!(listed["metadata"]["timestamp"], "2026-09-21T14:13:20Z");

    let components = listed["components"].as_array().unwrap();
    let named = |name: &str| {
        components
            .iter()
            .find(|component| component["name"] == name)
    };
    let runtime = named("wasmtime").unwrap();
    assert!(
        runtime["purl"]
            .as_str()
            .unwrap()
            .starts_with("pkg:cargo/wasmtime@")
    );
    assert_eq!(runtime["hashes"][0]["content"].as_str().unwrap().len(), 64);
    assert!(
        runtime["licenses"][0]["expression"]
            .as_str()
            .unwrap()
            .contains("Apache-2.0")
    );
    for shipped in [
        "holdfast-verify",
        "holdfast-documents",
        "holdfast-signing-embedded",
        "krilla",
    ] {
        assert!(named(shipped).is_some(), "{shipped}");
    }
    for absent in [
        "fantoccini",
        "holdfast-demo",
        "holdfast-bench",
        "holdfast-guest-builder",
    ] {
        assert!(named(absent).is_none(), "{absent}");
    }

    // Each dependency is in the list.
    let mut references: BTreeSet<&str> = components
        .iter()
        .map(|component| component["bom-ref"].as_str().unwrap())
        .collect();
    assert_eq!(references.len(), components.len());
    references.extend(listed["metadata"]["component"]["bom-ref"].as_str());
    for dependency in listed["dependencies"].as_array().unwrap() {
        for other in dependency["dependsOn"].as_array().unwrap() {
            assert!(references.contains(other.as_str().unwrap()), "{other}");
        }
    }
}
