//! The funding package of a contract: one zip file with the contract, its facts, the findings of the funding rules, the
//! stipulations with their files, and the proofs.

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;

use super::Vault;
use super::custody::{self, BundleContent};
use crate::facts;
use crate::funding::stipulations::{self, StipulationsView};
use holdfast_adapters::files::SpooledFile;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::funding::Stipulation;
use holdfast_platform::{Caller, Core, ServiceError, lookup};
use holdfast_store::{envelopes, funding as rows};

/// Files of a package.
const CONTRACT: &str = "contract.pdf";
const FACTS: &str = "facts.json";
const FINDINGS: &str = "findings.json";
const STIPULATIONS: &str = "stipulations.json";
const CERTIFICATE: &str = "proofs/certificate.json";
const CUSTODY_RECORD: &str = "proofs/custody-record.pdf";
const LEDGER: &str = "proofs/ledger.json";

/// Returns the file name of a package.
pub fn file_name(id: &str) -> String {
    format!("{id}-funding.zip")
}

/// Writes the package of a vaulted contract. The contract in it is the non-authoritative copy: the authoritative one
/// stays in the vault.
///
/// # Errors
///
/// `Conflict` for an envelope that is not in the vault, or was never checked.
pub async fn package(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &str,
) -> Result<SpooledFile, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    let record = &envelope.record;
    let (Some(copy), Some(certificate)) = (&record.copy, &record.certificate) else {
        return Err(ServiceError::Conflict(
            "Envelope is not in the vault: there is no contract for a package".into(),
        ));
    };
    let mut connection = core.store.read().await?;
    let checks = rows::decisions_of(&mut connection, &envelope.org, &envelope.id).await?;
    drop(connection);
    let Some(newest) = checks.last() else {
        return Err(ServiceError::Conflict(
            "The contract was never checked: POST funding-check first".into(),
        ));
    };

    let findings = json!({
        "decision_id": newest.id,
        "stage": newest.stage,
        "decision": newest.outcome,
        "checked_at": newest.at,
        "component": newest.component,
        "pack": newest.pack,
        "facts": newest.facts,
        "assessment": newest.answer,
    });
    let sheet = facts::of_envelope(core, &envelope.org, &envelope.id).await?;
    let required = stipulations::of_envelope(core, &envelope).await?;
    let ledger = custody::ledger_of(core, vault, &envelope).await?;

    let mut files = vec![
        (CONTRACT.to_owned(), BundleContent::Stored(copy.clone())),
        (FACTS.to_owned(), written(&sheet)?),
        (FINDINGS.to_owned(), written(&findings)?),
        (
            STIPULATIONS.to_owned(),
            written(&StipulationsView::from(required.as_slice()))?,
        ),
        (
            CERTIFICATE.to_owned(),
            BundleContent::Stored(certificate.clone()),
        ),
        (LEDGER.to_owned(), written(&ledger)?),
    ];
    if let Some(custody_record) = &record.custody_record {
        let content = BundleContent::Stored(custody_record.clone());
        files.push((CUSTODY_RECORD.to_owned(), content));
    }
    for one in &required {
        files.extend(attachment(core, &envelope, one).await?);
    }

    custody::zipped(core, files).await
}

/// Returns the file that satisfies a stipulation, under its kind: names of files are words of others.
async fn attachment(
    core: &Core,
    envelope: &Envelope,
    one: &Stipulation,
) -> Result<Option<(String, BundleContent)>, ServiceError> {
    let name = |content_type: &str| {
        let ending = match content_type {
            "application/pdf" => "pdf",
            "image/png" => "png",
            "image/jpeg" => "jpg",
            _ => "bin",
        };
        format!("stipulations/{}.{ending}", one.kind)
    };

    if let Some(source) = &one.document_envelope {
        let mut connection = core.store.read().await?;
        // Of a destroyed one, no file is left.
        let found = envelopes::get_with_destroyed(&mut connection, &envelope.org, source).await?;
        let found = found.filter(|found| found.destruction.is_none());
        // It may have got another upload since, which is not the file that was received.
        let file = found.and_then(|found| found.upload);
        let file = file.filter(|file| Some(&file.sha256) == one.document_sha256.as_ref());
        return Ok(file.map(|file| (name(&file.content_type), BundleContent::Stored(file))));
    }

    let (Some(submission), Some(sha256)) =
        (lookup::room_submission(envelope), &one.document_sha256)
    else {
        return Ok(None);
    };
    let files = core.room().attachments(&envelope.org, submission).await?;
    let Some(file) = files.iter().find(|file| file.file.sha256 == *sha256) else {
        return Ok(None);
    };
    let bytes = core.room().attached(file).await?;

    Ok(Some((
        name(&file.file.content_type),
        BundleContent::Made(bytes),
    )))
}

fn written(value: &impl Serialize) -> Result<BundleContent, ServiceError> {
    let text = serde_json::to_vec_pretty(value)
        .map_err(|error| ServiceError::Internal(error.to_string()))?;
    Ok(BundleContent::Made(Bytes::from(text)))
}
