//! Vectors of `rules.lifecycle`, and questions in batches.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{ConformanceRun, data};
use crate::engine::LimitedEngine;
use crate::inspection::AdmissionReason;
use crate::rules::{LifecyclePre, lifecycle};
use crate::slot::ActiveComponent;
use holdfast_domain::component::ConformanceResult;

#[derive(Deserialize)]
struct LifecycleVectors {
    version: String,
    facts: Vec<LifecycleFacts>,
    /// Triggers, each with a status, that every rules component must allow.
    way: Vec<(usize, String, String)>,
}

/// Facts with the transition table: for each trigger and status the next status, or `!` and the
/// reason of the refusal.
#[derive(Deserialize)]
struct LifecycleFacts {
    name: String,
    esign: bool,
    has_template: bool,
    is_upload: bool,
    has_file: bool,
    has_vault_file: bool,
    payment: String,
    moves: BTreeMap<String, BTreeMap<String, String>>,
}

impl LifecycleFacts {
    fn facts(&self) -> lifecycle::EnvelopeFacts {
        lifecycle::EnvelopeFacts {
            kind: if self.esign {
                lifecycle::EnvelopeKind::Esign
            } else {
                lifecycle::EnvelopeKind::Paper
            },
            has_template: self.has_template,
            is_upload: self.is_upload,
            has_file: self.has_file,
            has_vault_file: self.has_vault_file,
            payment: match self.payment.as_str() {
                "paid" => lifecycle::PaymentStatus::Paid,
                "requires_payment" => lifecycle::PaymentStatus::RequiresPayment,
                _ => lifecycle::PaymentStatus::NotRequested,
            },
            attributes: Vec::new(),
        }
    }
}

pub(super) fn lifecycle_vectors(
    active: &ActiveComponent<LifecyclePre>,
    default: &ActiveComponent<LifecyclePre>,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let all: LifecycleVectors = data(include_str!("../../../../../wit/lifecycle/vectors.json"))?;
    let mut examination = ConformanceRun::new(&all.version);
    for (index, row) in all.facts.iter().enumerate() {
        let facts = row.facts();
        for (trigger, from) in &row.moves {
            for (status, expected) in from {
                let name = format!("{}: {trigger} in {status}", row.name);
                let (Some(asked), Ok(current)) = (trigger_named(trigger), status_named(status))
                else {
                    examination.wrong(&name, "is no move of this host");
                    continue;
                };
                let Some(answer) = examination.ask(active, &name, |store, pre| {
                    let instance = pre.instantiate(&mut *store)?;
                    instance
                        .holdfast_lifecycle_lifecycle()
                        .call_envelope(store, current, asked, &facts)
                }) else {
                    continue;
                };

                // These moves lead from creation to release. Refusing any
                // other move is stricter, and so allowed.
                let must = all
                    .way
                    .iter()
                    .any(|way| *way == (index, trigger.clone(), status.clone()));
                match answer {
                    Ok(next) => {
                        // Another status is not stricter but different, and the host would act on it.
                        let next = status_name(next);
                        examination.expect(
                            next == expected,
                            &name,
                            &format!("leads to {next}; the specification says {expected}"),
                        );
                    }
                    Err(_) => examination.expect(
                        !must,
                        &name,
                        "is refused; without it no envelope can be vaulted and released",
                    ),
                }
            }
        }
    }

    batches(&mut examination, active, default);
    examination.end(true)
}

/// Checks all transitions of a batch: a transition that the default refuses must be refused, and
/// an allowed one must lead to the same status.
pub(super) fn batches(
    examination: &mut ConformanceRun,
    active: &ActiveComponent<LifecyclePre>,
    default: &ActiveComponent<LifecyclePre>,
) {
    use lifecycle::BatchStatus as Status;
    use lifecycle::BatchTrigger as Trigger;

    // The whole table is small enough to ask, so it needs no file of vectors.
    let statuses = [
        None,
        Some(Status::Draft),
        Some(Status::Ready),
        Some(Status::Running),
        Some(Status::Completed),
        Some(Status::Cancelled),
        Some(Status::Failed),
    ];

    let triggers = [
        Trigger::Create,
        Trigger::SetItems,
        Trigger::Update,
        Trigger::Submit,
        Trigger::Finish,
        Trigger::Fail,
        Trigger::Cancel,
        Trigger::Delete,
    ];

    for (status, trigger) in statuses
        .into_iter()
        .flat_map(|status| triggers.map(|trigger| (status, trigger)))
    {
        let name = format!("batch: {trigger:?} in {status:?}");
        // Candidate and default get the same question, so only their answers can differ.
        let ask = |store: &mut wasmtime::Store<LimitedEngine<()>>, pre: &LifecyclePre| {
            let instance = pre.instantiate(&mut *store)?;
            let rules = instance.holdfast_lifecycle_lifecycle();
            rules.call_batch(store, status, trigger)
        };
        let Some(answer) = examination.ask(active, &name, ask) else {
            continue;
        };

        examination.called("batch", answer.is_ok());
        // A refusal is stricter and so always allowed.
        if let (Ok(next), (Ok(expected), _)) = (answer, default.measured(ask)) {
            examination.expect(
                expected.as_ref().ok() == Some(&next),
                &name,
                &format!("leads to {next:?}; the specification has {expected:?}"),
            );
        }
    }
}

/// Statuses by their names in the API.
const STATUSES: [(&str, lifecycle::EnvelopeStatus); 11] = [
    ("pending", lifecycle::EnvelopeStatus::Pending),
    ("uploaded", lifecycle::EnvelopeStatus::Uploaded),
    ("preparing", lifecycle::EnvelopeStatus::Preparing),
    ("sent", lifecycle::EnvelopeStatus::Sent),
    ("viewed", lifecycle::EnvelopeStatus::Viewed),
    ("completed", lifecycle::EnvelopeStatus::Completed),
    ("vaulted", lifecycle::EnvelopeStatus::Vaulted),
    ("vaulted_out", lifecycle::EnvelopeStatus::VaultedOut),
    ("declined", lifecycle::EnvelopeStatus::Declined),
    ("voided", lifecycle::EnvelopeStatus::Voided),
    ("expired", lifecycle::EnvelopeStatus::Expired),
];

fn status_name(status: lifecycle::EnvelopeStatus) -> &'static str {
    STATUSES
        .iter()
        .find(|(_, known)| *known == status)
        .map_or("", |(name, _)| name)
}

/// Parses a status; `-` stands for no status yet.
fn status_named(name: &str) -> Result<Option<lifecycle::EnvelopeStatus>, ()> {
    if name == "-" {
        return Ok(None);
    }
    let found = STATUSES.iter().find(|(known, _)| *known == name);
    found.map(|(_, status)| Some(*status)).ok_or(())
}

fn trigger_named(name: &str) -> Option<lifecycle::EnvelopeTrigger> {
    use lifecycle::EnvelopeTrigger as Trigger;

    Some(match name {
        "create" => Trigger::Create,
        "create-in-bulk" => Trigger::CreateInBulk,
        "upload" => Trigger::Upload,
        "send" => Trigger::Send,
        "view" => Trigger::View,
        "progress" => Trigger::Progress,
        "complete" => Trigger::Complete,
        "decline" => Trigger::Decline,
        "void" => Trigger::Void,
        "expire" => Trigger::Expire,
        "vault-in-signed" => Trigger::VaultInSigned,
        "vault-in-upload" => Trigger::VaultInUpload,
        "vault-out" => Trigger::VaultOut,
        "remind" => Trigger::Remind,
        "signing-links" => Trigger::SigningLinks,
        "embed-sign" => Trigger::EmbedSign,
        "embed-vault" => Trigger::EmbedVault,
        "download-authoritative" => Trigger::DownloadAuthoritative,
        "download-copy" => Trigger::DownloadCopy,
        _ => return None,
    })
}
