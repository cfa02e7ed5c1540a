//! Bundles as evidence copies: their names, their own description, and the record of every
//! export.

use serde_json::json;

use super::custody_sheet::RecordWriter;
use super::repeats::{self, RecordedRelease};
use super::vault_out::ReleaseMedium;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::hash::sha256;
use holdfast_domain::ledger::LedgerEntry;
use holdfast_evidence::formats::AUTHORITATIVE;
use holdfast_platform::{Caller, Core, ServiceError, events, lookup};
use holdfast_store::vault;

/// File of a bundle with the bundle's own description.
pub const NOTICE: &str = "EVIDENCE-COPY.txt";
/// Name of the PDF in the bundle of a record that a paper original replaced.
const EVIDENCE_COPY: &str = "evidence-copy.pdf";
/// Action of the ledger entry of an export.
const EXPORTED: &str = "bundle.exported";

/// Returns the name of the bundle for people who save it.
pub fn file_name(id: &str) -> String {
    format!("{id}-evidence-copy.zip")
}

/// Returns the name of the PDF in a bundle. After a conversion to paper nothing electronic is authoritative.
pub fn name_of_pdf(released: &RecordedRelease) -> &'static str {
    match released.form.medium {
        ReleaseMedium::Electronic => AUTHORITATIVE,
        ReleaseMedium::Paper => EVIDENCE_COPY,
    }
}

/// Records an export in the ledger, with the text of its notice. The bundle that is made afterwards holds the
/// entry of its own export.
pub async fn record_export(
    core: &Core,
    caller: &Caller,
    envelope: &Envelope,
) -> Result<RecordedRelease, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = lookup::lock_envelope(&mut tx, &envelope.org, &envelope.id).await?;
    let released = repeats::recorded(&mut tx, &envelope).await?;
    let released =
        released.ok_or_else(|| ServiceError::Conflict("Envelope has not been released".into()))?;

    // In the language that was fixed at vault-in, like the other files of the record.
    let wording = vault::wording(&mut tx, &envelope).await?;
    let notice = notice(RecordWriter::new(&wording), &envelope, &released, now);
    // The ledger has the whole text, so a verifier can compare it with the file in the bundle.
    let details = json!({
        "as": "evidence_copy",
        "notice_sha256": sha256(notice.as_bytes()),
        "notice": notice,
    });
    events::record(&mut tx, &envelope, &caller.actor, EXPORTED, details, now).await?;

    tx.commit().await?;
    Ok(released)
}

/// Returns the notice of the newest export.
pub fn notice_of(entries: &[LedgerEntry]) -> Option<&str> {
    let exported = |entry: &&LedgerEntry| entry.action == EXPORTED;
    let newest = entries.iter().rfind(exported)?;
    newest.details["notice"].as_str()
}

fn notice(
    writer: RecordWriter<'_>,
    envelope: &Envelope,
    released: &RecordedRelease,
    now: Timestamp,
) -> String {
    let texts = writer.texts;
    let form = &released.form;
    let recipient = format!("{}, {}", form.recipient_name, form.recipient_organization);
    let (released_at, exported_at) = (
        writer.moment(&released.at.to_string()),
        writer.moment(&now.to_string()),
    );
    let values = [
        ("moment", released_at.as_str()),
        ("recipient", &recipient),
        ("file", name_of_pdf(released)),
    ];

    // After a conversion to paper, the notice must not call anything electronic authoritative.
    let (what, where_to) = match form.medium {
        ReleaseMedium::Electronic => ("evidence-copy-is", "evidence-copy-released"),
        ReleaseMedium::Paper => ("evidence-copy-is-paper", "evidence-copy-paper"),
    };
    let hash = envelope.record.document_hash.as_deref();
    let paragraphs = [
        texts.with("evidence-copy-title", [("id", envelope.id.as_str())]),
        texts.with(where_to, values),
        texts.with(what, values),
        format!(
            "{} (SHA-256): {}",
            name_of_pdf(released),
            hash.unwrap_or_default()
        ),
        texts.with("evidence-copy-exported", [("moment", exported_at)]),
    ];

    paragraphs.join("\n\n") + "\n"
}
