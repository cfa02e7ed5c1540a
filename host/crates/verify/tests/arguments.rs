//! Argument errors of `holdfast-verify`. Integration tests of the host cover bundles.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn verify(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast-verify"));
    command.args(arguments).output().unwrap()
}

/// Unusable arguments give exit code 2 and a message with the reason.
#[test]
fn unreadable_verify_arguments_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().to_str().unwrap();
    let file = folder.path().join("note");
    std::fs::write(&file, "no key").unwrap();
    let file = file.to_str().unwrap();
    let head = folder.path().join("head.json");
    std::fs::write(&head, "{}").unwrap();

    let head = head.to_str().unwrap();
    for (arguments, why) in [
        (vec![], "<BUNDLE>"),
        (vec!["/nowhere.zip"], "cannot read the bundle"),
        (vec![file], "cannot read the bundle"),
        (vec![bundle, "--key", "x"], "--key: not a verifier key: x"),
        (vec![bundle, "--head", "/nowhere"], "/nowhere: "),
        (
            vec![bundle, "--head", head],
            "the given head cannot be read",
        ),
        (vec![bundle, "--trust", file], "line 1: not a verifier key"),
        (
            vec![bundle, "--witness-policy", file],
            "line 1: no line of a witness policy",
        ),
        (
            vec![bundle, "--timestamp-trust", file],
            "it holds no certificate",
        ),
    ] {
        let output = verify(&arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(why), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn an_incomplete_bundle_is_not_verified() {
    let folder = tempfile::tempdir().unwrap();
    let output = verify(&[folder.path().to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the bundle has no "), "{said}");
}
