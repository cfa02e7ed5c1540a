//! The custody record: the history of a document as a PDF.

mod layout;

use krilla::SerializeSettings;
use krilla::configure::{Archival, ConfigurationBuilder};
use krilla::embed::{AssociationKind, EmbeddedFile, MimeType};
use krilla::metadata::Metadata;

use crate::CustodyFacts;
use crate::error::{Result, other, over_limit};
use crate::moment::CalendarTime;
use crate::overlay;

/// File name of the attached certificate.
const ATTACHMENT: &str = "ucc-compliance-certificate.json";

/// Limit on the characters of all facts together. A longer record would be of no use to a reader.
const MAX_CHARACTERS: usize = 2_000_000;

/// Writes the custody record of one envelope as PDF/A-3b.
///
/// The record shows the facts unchanged: the document and its hashes, the parties, the control
/// checks with their results, the chain of custody in order, and the component that ran the checks.
/// The certificate is attached as `ucc-compliance-certificate.json` (`application/json`,
/// relationship *Data*). All fonts are embedded and every date comes from the facts, so equal facts
/// give equal bytes.
///
/// Characters that Noto Sans lacks are shown as a replacement sign but stay searchable and can be
/// copied.
///
/// # Errors
///
/// `other` when `recorded-at` is not an RFC 3339 time or the output violates PDF/A; `over-limit`
/// for facts of more than two million characters.
pub fn custody_record(facts: &CustodyFacts) -> Result<Vec<u8>> {
    let recorded_at = CalendarTime::parse(&facts.recorded_at, "recorded-at")?;
    let characters = facts.certificate_json.len()
        + facts
            .timeline
            .iter()
            .map(|entry| entry.detail.len() + entry.action.len())
            .sum::<usize>()
        + facts
            .checks
            .iter()
            .map(|check| check.detail.len() + check.requirement.len())
            .sum::<usize>()
        + facts
            .attributes
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum::<usize>();
    if characters > MAX_CHARACTERS {
        return Err(over_limit(format!("{MAX_CHARACTERS} characters of facts")));
    }

    let configuration = ConfigurationBuilder::new()
        .with_archival_validator(Archival::A3_B)
        .finish()
        .map_err(|error| other(format!("PDF/A-3b is not available: {error:?}")))?;
    let mut document = krilla::Document::new_with(SerializeSettings {
        configuration,
        enable_tagging: false,
        ..SerializeSettings::default()
    });
    layout::lay_out(facts)?.draw_into(&mut document)?;
    document.set_metadata(
        Metadata::new()
            .title(format!("Custody record of {}", facts.envelope_id))
            .description(format!(
                "Who held the authoritative copy of \u{201c}{}\u{201d}, since when, and how that was checked",
                facts.envelope_name
            ))
            .authors(vec![facts.issuer.clone()])
            .creator("holdfast".to_owned())
            .language("en-US".to_owned())
            .document_id(format!("custody:{}:{}", facts.envelope_id, facts.document_hash))
            .creation_date(recorded_at.to_krilla()),
    );
    let attached = document.embed_file(EmbeddedFile {
        path: ATTACHMENT.to_owned(),
        mime_type: MimeType::new("application/json"),
        description: Some("Certificate of the control checks this record reports".to_owned()),
        association_kind: AssociationKind::Data,
        data: facts.certificate_json.clone().into_bytes().into(),
        modification_date: Some(recorded_at.to_krilla()),
        compress: Some(true),
        location: None,
    });
    attached.ok_or_else(|| other("the certificate could not be attached"))?;
    overlay::finish(document)
}
