//! Compatibility of components with WIT versions: the table of supported combinations, and the
//! check that frozen packages do not change.

use std::path::{Path, PathBuf};

use holdfast::components::{ComponentArtifact, ComponentRegistry};
use holdfast::domain::component::Slot;

use crate::components::misbehaving::dummy;

fn components() -> ComponentRegistry {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native-code-of-component-tests");
    ComponentRegistry::with_defaults(cache, [9; 32]).unwrap()
}

fn wit(package: &str) -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../wit/{package}/{package}.wit"));
    std::fs::read_to_string(path).unwrap()
}

/// Loads and calls a component that traps in every function, and returns the outcome. `trapped`
/// means that it was linked, instantiated and called.
fn fares(components: &ComponentRegistry, slot: Slot, bytes: Vec<u8>) -> String {
    let artifact = ComponentArtifact::uploaded(slot, "dummy", "1.0.0", bytes.into());
    match components.add(&artifact) {
        Ok(()) => "works".into(),
        Err(error) => error.kind.to_string(),
    }
}

#[test]
fn rules_of_every_supported_wit_version_load() {
    let components = components();
    let compliance = wit("compliance");
    let version = |version: &str| compliance.replace("@1.0.0;", &format!("@{version};"));
    let rows = [
        ("the same", compliance.clone(), "trapped"),
        ("a later patch", version("1.0.7"), "trapped"),
        ("a later minor", version("1.4.0"), "trapped"),
        (
            "one more function",
            compliance.replace(
                "    /// Runs every check",
                "    more: func() -> u32;\n\n    /// Runs every check",
            ),
            "trapped",
        ),
        ("another major", version("2.0.0"), "no exported instance"),
        (
            "one more field",
            compliance.replace(
                "envelope-name: string,",
                "envelope-name: string, more: string,",
            ),
            "expected record of 14 fields, found 15 fields",
        ),
        (
            "another name of a field",
            compliance.replace("envelope-name: string,", "envelope-title: string,"),
            "does not fit its slot",
        ),
        (
            "one more case",
            compliance.replace("        expired,\n", "        expired,\n        lost,\n"),
            "does not fit its slot",
        ),
        (
            "another result",
            compliance.replace("-> evaluation;", "-> option<evaluation>;"),
            "does not fit its slot",
        ),
    ];
    for (name, wit, expected) in rows {
        let fared = fares(
            &components,
            Slot::Compliance,
            dummy(&[&wit], "compliance-rules"),
        );
        assert!(fared.contains(expected), "{name}: {fared}");
    }
}

#[test]
fn providers_of_every_supported_wit_version_load() {
    let components = components();
    let (host, signing) = (wit("host"), wit("signing"));
    let at = |text: &str| {
        let mut text = text.replace("holdfast:host@1.0.0;", "holdfast:host@1.3.0;");
        for interface in [
            "blobs", "settings", "secrets", "http", "log", "clock", "random",
        ] {
            let named = |version: &str| format!("holdfast:host/{interface}@{version}");
            text = text.replace(&named("1.0.0"), &named("1.3.0"));
        }

        text
    };

    let lacking = host.replace(
        "    /// Returns none if the operator configured no secret",
        "    forge: func() -> u32;\n\n    /// Returns none if the operator configured no secret",
    );
    let ungranted = signing.replace(
        "world signing-provider {",
        "interface files { open: func() -> u32; }\n\nworld signing-provider {\n    import files;",
    );
    let rows = [
        ("the same", host.clone(), signing.clone(), "works"),
        (
            "a later minor of the host",
            at(&host),
            at(&signing),
            "works",
        ),
        (
            "a function that the host lacks",
            lacking,
            signing.clone(),
            "does not fit its slot",
        ),
        (
            "an interface that is not granted",
            host.clone(),
            ungranted,
            "does not fit its slot",
        ),
    ];
    for (name, host, signing, expected) in rows {
        let bytes = dummy(&[&host, &signing], "signing-provider");
        let fared = fares(&components, Slot::Signing, bytes);
        assert!(fared.contains(expected), "{name}: {fared}");
    }
}

/// Returns the folder with the released packages.
fn released() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/released-1.0.0")
}

/// Components built against a released package run on this host: no import of their world was
/// removed, and no export is called with another type.
#[test]
fn every_world_is_compatible_with_its_released_version() {
    for (package, world) in [
        ("compliance", "compliance-rules"),
        ("lifecycle", "lifecycle-rules"),
        ("placement", "placement-rules"),
        ("documents", "documents-rules"),
        ("signing", "signing-provider"),
        ("payment", "payment-provider"),
        ("kba", "kba-provider"),
    ] {
        semver_check(package, world, &wit(package), &wit("host"))
            .unwrap_or_else(|why| panic!("{package}: {why:#}"));
    }

    // The comparison has to detect a change.
    let wider = wit("compliance").replace(
        "envelope-name: string,",
        "envelope-name: string, more: string,",
    );
    let noticed = semver_check("compliance", "compliance-rules", &wider, &wit("host"));
    assert!(noticed.is_err());
}

fn semver_check(package: &str, world: &str, now: &str, host: &str) -> Result<(), String> {
    let before = std::fs::read_to_string(released().join(format!("{package}.wit"))).unwrap();
    let host_before = std::fs::read_to_string(released().join("host.wit")).unwrap();

    // Both packages are in one resolve, so one of them needs another version.
    let later = |text: &str| text.replace("@1.0.0", "@1.0.1");
    let mut resolve = wit_parser::Resolve::default();
    let mut push = |name: &str, text: &str| resolve.push_source(name, text).unwrap();
    push("host-before.wit", &host_before);
    let before = push("before.wit", &before);
    push("host.wit", &later(host));

    let now = push("now.wit", &later(now));
    let before = resolve.select_world(&[before], Some(world)).unwrap();
    let now = resolve.select_world(&[now], Some(world)).unwrap();
    wit_component::semver_check(resolve, before, now).map_err(|error| format!("{error:#}"))
}

/// Released components stay supported forever.
#[test]
fn every_released_component_still_runs() {
    let components = components();
    let mut tried = Vec::new();
    for file in std::fs::read_dir(released()).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some((slot, rest)) = name
            .strip_suffix(".wasm")
            .and_then(|name| name.split_once('_'))
        else {
            continue;
        };

        let slot = Slot::parse(slot).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let artifact = ComponentArtifact::uploaded(slot, rest, "0.1.0", bytes.into());
        components
            .add(&artifact)
            .unwrap_or_else(|error| panic!("{name}: {error}"));

        tried.push(slot);
    }

    // Text messages, conversion, control and funding are younger than release 1.0.0.
    let younger = [
        Slot::Messaging,
        Slot::Conversion,
        Slot::Control,
        Slot::Funding,
    ];
    for slot in Slot::ALL.into_iter().filter(|slot| !younger.contains(slot)) {
        assert!(tried.contains(&slot), "{slot} has no released component");
    }
}
