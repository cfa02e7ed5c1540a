//! The custody record: the history of a document as a PDF.

mod english;
mod layout;

use krilla::SerializeSettings;
use krilla::configure::{Archival, ConfigurationBuilder};
use krilla::embed::{AssociationKind, EmbeddedFile, MimeType};
use krilla::metadata::Metadata;

use crate::error::{Result, other, over_limit};
use crate::moment::CalendarTime;
use crate::overlay;
use crate::{CustodyFacts, CustodySection, CustodySheet};

/// File name of the attached certificate.
const ATTACHMENT: &str = "ucc-compliance-certificate.json";

/// Limit on the characters of all facts together. A longer record would be of no use to a reader.
const MAX_CHARACTERS: usize = 2_000_000;

/// Writes the custody record of one envelope in English: see [`worded_custody_record`].
///
/// # Errors
///
/// Those of [`worded_custody_record`].
pub fn custody_record(facts: &CustodyFacts) -> Result<Vec<u8>> {
    worded_custody_record(&english::sheet(facts))
}

/// Writes the custody record of one envelope as PDF/A-3b.
///
/// The record shows the given text unchanged: the document and its hashes, the parties, the control
/// checks with their results, the chain of custody in order, and the component that ran the checks.
/// The certificate is attached as `ucc-compliance-certificate.json` (`application/json`,
/// relationship *Data*). All fonts are embedded and every date comes from the sheet, so equal sheets
/// give equal bytes. Pages in a language that is read from right to left are mirrored.
///
/// Characters that the fonts lack are shown as a replacement sign but stay searchable and can be
/// copied.
///
/// # Errors
///
/// `other` when `recorded-at` is not an RFC 3339 time, a row has another number of cells than its table has
/// columns, or the output violates PDF/A; `over-limit` for more than two million characters.
pub fn worded_custody_record(sheet: &CustodySheet) -> Result<Vec<u8>> {
    let recorded_at = CalendarTime::parse(&sheet.recorded_at, "recorded-at")?;
    // The limit comes before the layout: shaping a huge text would use up the time of the sandbox.
    if sheet.certificate_json.len() + characters(sheet) > MAX_CHARACTERS {
        return Err(over_limit(format!("{MAX_CHARACTERS} characters of facts")));
    }

    // The layout pairs cells with columns. A surplus cell would disappear from the record without a trace.
    let uneven = |section: &CustodySection| {
        let mut rows = section.rows.iter();
        rows.any(|row| row.cells.len() != section.columns.len())
    };
    if sheet.sections.iter().any(uneven) {
        return Err(other("a row has one cell for each column"));
    }

    // Level 3 of PDF/A is the one that permits an attached file of another format.
    let configuration = ConfigurationBuilder::new()
        .with_archival_validator(Archival::A3_B)
        .finish()
        .map_err(|error| other(format!("PDF/A-3b is not available: {error:?}")))?;
    let mut document = krilla::Document::new_with(SerializeSettings {
        configuration,
        enable_tagging: false,
        ..SerializeSettings::default()
    });
    layout::lay_out(sheet)?.draw_into(&mut document)?;

    // The identifier is made of the record and not of random numbers: equal sheets have to give equal bytes.
    document.set_metadata(
        Metadata::new()
            .title(sheet.file_title.clone())
            .description(sheet.file_subject.clone())
            .authors(vec![sheet.issuer.clone()])
            .creator("holdfast".to_owned())
            .language(sheet.language.clone())
            .document_id(format!(
                "custody:{}:{}",
                sheet.envelope_id, sheet.document_hash
            ))
            .creation_date(recorded_at.to_krilla()),
    );

    // Programs repeat the checks from this attachment. The table on the pages is for people.
    let attached = document.embed_file(EmbeddedFile {
        path: ATTACHMENT.to_owned(),
        mime_type: MimeType::new("application/json"),
        description: Some(sheet.certificate_about.clone()),
        association_kind: AssociationKind::Data,
        data: sheet.certificate_json.clone().into_bytes().into(),
        modification_date: Some(recorded_at.to_krilla()),
        compress: Some(true),
        location: None,
    });

    attached.ok_or_else(|| other("the certificate could not be attached"))?;
    overlay::finish(document)
}

fn characters(sheet: &CustodySheet) -> usize {
    let of_section = |section: &CustodySection| {
        let facts = section.facts.iter();
        let facts = facts.map(|(label, value)| label.len() + value.len());
        let cells = section.rows.iter().flat_map(|row| &row.cells);
        facts.chain(cells.map(String::len)).sum::<usize>()
    };
    sheet.sections.iter().map(of_section).sum()
}
