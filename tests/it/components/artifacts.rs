//! The built artifacts: their imports, and that they behave like their source.

use std::path::Path;

use holdfast::components::rules::{compliance, lifecycle};
use holdfast::components::{ComponentRegistry, embedded};
use serde_json::{Value, json};
use wasmparser::{Parser, Payload};

fn imports(component: &[u8]) -> Vec<String> {
    let mut depth = 0;
    let mut names = Vec::new();
    for payload in Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            Payload::ComponentImportSection(section) if depth == 0 => {
                names.extend(
                    section
                        .into_iter()
                        .map(|import| import.unwrap().name.name.to_owned()),
                );
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) if depth > 0 => depth -= 1,
            _ => {}
        }
    }

    names
}

#[test]
fn rules_import_only_types_and_providers_only_their_world() {
    let slots: Vec<String> = embedded()
        .map(|artifact| artifact.slot.to_string())
        .collect();
    assert_eq!(
        slots,
        [
            "rules.compliance",
            "rules.lifecycle",
            "rules.placement",
            "rules.documents",
            "rules.control",
            "rules.funding",
            "provider.signing",
            "provider.payment",
            "provider.kba",
            "provider.messaging",
            "provider.conversion"
        ]
    );

    for artifact in embedded() {
        let package = artifact.slot.as_str().split_once('.').unwrap().1;
        // Types carry no capability: an empty linker satisfies this import.
        let types = format!("holdfast:{package}/types@1.0.0");
        let faces = "holdfast:documents/faces@1.0.0";
        let granted = [
            "blobs", "settings", "secrets", "http", "log", "clock", "random",
        ]
        .map(|interface| format!("holdfast:host/{interface}@1.0.0"));

        let provider = artifact.slot.is_provider();
        for import in imports(&artifact.bytes()) {
            let is_data = import == types || import == faces;
            let allowed = is_data || (provider && granted.contains(&import));
            assert!(allowed, "{}: {import}", artifact.slot);
        }
    }
}

#[test]
fn artifacts_contain_no_build_paths() {
    let home = std::env::var("HOME").unwrap();
    for artifact in embedded() {
        let found = artifact
            .bytes()
            .windows(home.len() + 1)
            .any(|bytes| bytes.starts_with(home.as_bytes()) && bytes.ends_with(b"/"));
        assert!(!found, "{} names {home}", artifact.slot);
    }
}

fn components() -> ComponentRegistry {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native-code-of-component-tests");
    ComponentRegistry::with_defaults(cache, [9; 32]).unwrap()
}

/// Runs the vectors of the specification's table against the built component.
#[test]
fn the_compliance_component_passes_the_vectors() {
    let components = components();
    let all: Value =
        serde_json::from_str(include_str!("../../../wit/compliance/vectors.json")).unwrap();
    let vectors: Vec<LifecycleVector> = serde_json::from_value(all["vectors"].clone()).unwrap();
    assert!(vectors.len() >= 20);

    for vector in vectors {
        let evaluation = components.compliance(None).evaluate(&vector.facts).unwrap();
        let failed: Vec<usize> = evaluation
            .checks
            .iter()
            .zip(1..)
            .filter(|(check, _)| !check.satisfied)
            .map(|(_, number)| number)
            .collect();
        assert_eq!(failed, vector.failed, "{}", vector.name);
        assert_eq!(evaluation.score, vector.score, "{}", vector.name);
        assert_eq!(
            evaluation.compliant,
            vector.failed.is_empty(),
            "{}",
            vector.name
        );
    }
}

#[derive(serde::Deserialize)]
struct LifecycleVector {
    name: String,
    facts: compliance::EnvelopeFacts,
    failed: Vec<usize>,
    score: u32,
}

/// For every status, trigger and combination of facts, the component and the natively compiled
/// source return the same result.
#[test]
fn the_lifecycle_component_behaves_like_its_source() {
    use holdfast::domain::envelope::EnvelopeStatus;
    use holdfast_lifecycle::types as native;

    let components = components();
    let mut compared = 0;
    for kind in [true, false] {
        for bits in 0..16u32 {
            for payment in 0..3 {
                for (trigger, native_trigger) in TRIGGERS {
                    for status in EnvelopeStatus::ALL
                        .iter()
                        .map(|status| Some(*status))
                        .chain([None])
                    {
                        let flag = |bit: u32| bits & (1 << bit) != 0;
                        let facts = lifecycle::EnvelopeFacts {
                            kind: if kind {
                                lifecycle::EnvelopeKind::Esign
                            } else {
                                lifecycle::EnvelopeKind::Paper
                            },
                            has_template: flag(0),
                            is_upload: flag(1),
                            has_file: flag(2),
                            has_vault_file: flag(3),
                            payment: [
                                lifecycle::PaymentStatus::NotRequested,
                                lifecycle::PaymentStatus::RequiresPayment,
                                lifecycle::PaymentStatus::Paid,
                            ][payment],
                            attributes: Vec::new(),
                        };

                        let native_facts = native::EnvelopeFacts {
                            kind: if kind {
                                native::EnvelopeKind::Esign
                            } else {
                                native::EnvelopeKind::Paper
                            },
                            has_template: flag(0),
                            is_upload: flag(1),
                            has_file: flag(2),
                            has_vault_file: flag(3),
                            payment: [
                                native::PaymentStatus::NotRequested,
                                native::PaymentStatus::RequiresPayment,
                                native::PaymentStatus::Paid,
                            ][payment],
                            attributes: Vec::new(),
                        };

                        let sandboxed =
                            components.lifecycle(None).envelope(status, trigger, &facts);
                        let direct = holdfast_lifecycle::envelope(
                            status.map(native_status),
                            native_trigger,
                            &native_facts,
                        );

                        let sandboxed = match sandboxed {
                            Ok(status) => Ok(status.as_str()),
                            Err(error) => Err(error.to_string()),
                        };
                        let direct = direct
                            .map(holdfast_lifecycle::status_text)
                            .map_err(|refusal| refusal.message);
                        assert_eq!(sandboxed, direct, "{status:?} {trigger:?} {facts:?}");

                        compared += 1;
                    }
                }
            }
        }
    }

    assert_eq!(compared, 2 * 16 * 3 * 19 * 12);
}

fn native_status(
    status: holdfast::domain::envelope::EnvelopeStatus,
) -> holdfast_lifecycle::types::EnvelopeStatus {
    use holdfast::domain::envelope::EnvelopeStatus as Ours;
    use holdfast_lifecycle::types::EnvelopeStatus as Native;

    match status {
        Ours::Pending => Native::Pending,
        Ours::Uploaded => Native::Uploaded,
        Ours::Preparing => Native::Preparing,
        Ours::Sent => Native::Sent,
        Ours::Viewed => Native::Viewed,
        Ours::Completed => Native::Completed,
        Ours::Vaulted => Native::Vaulted,
        Ours::VaultedOut => Native::VaultedOut,
        Ours::Declined => Native::Declined,
        Ours::Voided => Native::Voided,
        Ours::Expired => Native::Expired,
    }
}

/// Facts of the vectors: name, kind, template, upload, file, vault file, payment.
const SITUATIONS: [(&str, bool, [bool; 4], &str); 7] = [
    (
        "sent from a template",
        true,
        [true, false, false, false],
        "not_requested",
    ),
    (
        "sent from a template, unpaid",
        true,
        [true, false, false, false],
        "requires_payment",
    ),
    (
        "sent from a template, paid",
        true,
        [true, false, false, false],
        "paid",
    ),
    (
        "without a template",
        true,
        [false, false, false, false],
        "not_requested",
    ),
    (
        "in the vault",
        true,
        [true, false, false, true],
        "not_requested",
    ),
    (
        "paper with a file",
        false,
        [false, true, true, false],
        "not_requested",
    ),
    (
        "paper without a file",
        false,
        [false, true, false, false],
        "not_requested",
    ),
];

/// The conformance vectors of lifecycle rules match the source. `UPDATE_VECTORS=1` rewrites the
/// file.
#[test]
fn the_lifecycle_vectors_match_the_source() {
    use holdfast::domain::envelope::EnvelopeStatus;
    use holdfast_lifecycle::types as native;
    use std::fmt::Write as _;

    let statuses = || {
        EnvelopeStatus::ALL
            .iter()
            .map(|status| Some(*status))
            .chain([None])
    };

    let mut rows = Vec::new();
    for (name, esign, [has_template, is_upload, has_file, has_vault_file], payment) in SITUATIONS {
        let facts = native::EnvelopeFacts {
            kind: if esign {
                native::EnvelopeKind::Esign
            } else {
                native::EnvelopeKind::Paper
            },
            has_template,
            is_upload,
            has_file,
            has_vault_file,
            payment: match payment {
                "paid" => native::PaymentStatus::Paid,
                "requires_payment" => native::PaymentStatus::RequiresPayment,
                _ => native::PaymentStatus::NotRequested,
            },
            attributes: Vec::new(),
        };

        let moves = TRIGGERS.map(|(trigger, native_trigger)| {
            let answers: Vec<String> = statuses()
                .map(|status| {
                    let from = status.map_or("-", |status| status.as_str());
                    let answer = holdfast_lifecycle::envelope(
                        status.map(native_status),
                        native_trigger,
                        &facts,
                    );
                    let to = match answer {
                        Ok(status) => holdfast_lifecycle::status_text(status).to_owned(),
                        Err(refusal) => format!("!{}", kebab(&format!("{:?}", refusal.reason))),
                    };

                    format!("{from:?}: {to:?}")
                })
                .collect();

            format!(
                "    {:?}: {{ {} }}",
                kebab(&format!("{trigger:?}")),
                answers.join(", ")
            )
        });

        let facts = json!({
            "name": name, "esign": esign, "has_template": has_template, "is_upload": is_upload,
            "has_file": has_file, "has_vault_file": has_vault_file, "payment": payment,
        });
        let facts = facts.to_string();
        let facts = facts.trim_end_matches('}');

        rows.push(format!(
            "  {facts}, \"moves\": {{\n{}\n  }}}}",
            moves.join(",\n")
        ));
    }

    // The path from creation to release that every lifecycle has to allow.
    let way = [
        (0, "create", "-"),
        (0, "view", "sent"),
        (0, "complete", "viewed"),
        (0, "vault-in-signed", "completed"),
        (4, "vault-out", "vaulted"),
    ];

    let mut text = String::from("{\n\"version\": \"1.0.0\",\n");
    writeln!(text, "\"way\": {},", json!(way)).unwrap();
    writeln!(text, "\"facts\": [\n{}\n]\n}}", rows.join(",\n")).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit/lifecycle/vectors.json");
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap() == text,
        "wit/lifecycle/vectors.json is not what the source says: run this test with UPDATE_VECTORS=1"
    );
}

/// Turns `EnvelopeTrigger::VaultInSigned` into `vault-in-signed`.
fn kebab(name: &str) -> String {
    let name = name.rsplit("::").next().unwrap_or(name);
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(letter.to_ascii_lowercase());
    }

    text
}

macro_rules! triggers {
    ($($name:ident),* $(,)?) => {
        [$((lifecycle::EnvelopeTrigger::$name, holdfast_lifecycle::types::EnvelopeTrigger::$name)),*]
    };
}

const TRIGGERS: [(
    lifecycle::EnvelopeTrigger,
    holdfast_lifecycle::types::EnvelopeTrigger,
); 19] = triggers![
    Create,
    CreateInBulk,
    Upload,
    Send,
    View,
    Progress,
    Complete,
    Decline,
    Void,
    Expire,
    VaultInSigned,
    VaultInUpload,
    VaultOut,
    Remind,
    SigningLinks,
    EmbedSign,
    EmbedVault,
    DownloadAuthoritative,
    DownloadCopy,
];

/// Released packages can only grow, so components built against them stay valid.
#[test]
fn every_wit_package_parses_and_states_its_version() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    let mut packages = 0;
    for package in std::fs::read_dir(folder).unwrap() {
        let path = package.unwrap().path();
        let text = std::fs::read_dir(&path)
            .unwrap()
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "wit"))
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect::<String>();

        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            text.contains(&format!("package holdfast:{name}@1.0.0;")),
            "{name}"
        );

        packages += 1;
    }

    assert_eq!(packages, 12);
}
