//! Table of the laws, and which text of the statute applies to a record.

use crate::record::attribute;
use crate::space;
use crate::types::EnvelopeFacts;

/// The table of this release.
pub const BUILT_IN: &str = include_str!("../laws.txt");

/// Attribute with the jurisdiction of the chattel paper (UCC §9-306A(b)(1)).
const JURISDICTION: &str = "chattel_paper_jurisdiction";
/// Attribute with the time of the question: when the record is evaluated.
const ASKED_AT: &str = "asked_at";
/// Attribute with the time at which the envelope was created.
const CREATED_AT: &str = "envelope_created_at";
/// Length of a date in a time stamp (RFC 3339).
const DATE: usize = 10;
/// Effective date of a law that is enacted, while no source was found that states the date.
const UNKNOWN: &str = "unknown";

/// Row of the table: a jurisdiction that has enacted the amendments of 2022.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnactedLaw<'a> {
    /// For example `US-DE`.
    pub jurisdiction: &'a str,
    /// Date from which §9-105 is in effect as amended, for example `2023-08-18`, or `unknown`.
    pub effective: &'a str,
    /// End of the time in which interests of before stay perfected without the amended requirements; empty if the
    /// table does not state it.
    pub adjustment: &'a str,
    /// The enacting act.
    pub act: &'a str,
    /// Address of the source.
    pub source: &'a str,
    /// Who compared the row with a second source, and when; empty for a row without a review.
    pub review: &'a str,
}

impl<'a> EnactedLaw<'a> {
    /// Parses a row: five or six cells between vertical bars.
    ///
    /// # Errors
    /// The row has another number of cells, or a cell that must not be empty is.
    fn parse(line: &'a str) -> Result<Self, String> {
        let mut cells = line.split('|').map(str::trim);
        let mut cell = || cells.next().ok_or_else(|| no_row(line));
        let law = Self {
            jurisdiction: cell()?,
            effective: cell()?,
            adjustment: cell()?,
            act: cell()?,
            source: cell()?,
            review: cells.next().unwrap_or_default(),
        };

        let needed = [law.jurisdiction, law.effective, law.act, law.source];
        if cells.next().is_none() && needed.iter().all(|cell| !cell.is_empty()) {
            Ok(law)
        } else {
            Err(no_row(line))
        }
    }

    /// Returns the effective date, if a source states it.
    pub fn effective_date(&self) -> Option<&'a str> {
        (self.effective != UNKNOWN).then_some(self.effective)
    }
}

fn no_row(line: &str) -> String {
    format!(
        "\"{line}\" is no row: it needs jurisdiction | effective date or \"unknown\" | adjustment date or nothing | act | source | review or nothing"
    )
}

/// Parses a table. Empty lines and lines that begin with `#` are left out.
///
/// # Errors
/// The first row that cannot be read.
pub fn laws(table: &str) -> Result<Vec<EnactedLaw<'_>>, String> {
    rows(table).map(EnactedLaw::parse).collect()
}

fn rows(table: &str) -> impl Iterator<Item = &str> {
    let lines = table.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Finding of the table about the jurisdiction of a record on the date of the question.
///
/// The date of the signature does not choose the text: from its effective date on, the amended article
/// applies to a transaction "even if the transaction […] was entered into" before (UCC §A-301(a)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LawInForce<'a> {
    /// No jurisdiction is stated.
    NotStated,
    /// The jurisdiction has no row.
    NotInTable {
        jurisdiction: &'a str,
        date: Option<&'a str>,
    },
    /// The amendments are enacted; from when on, no source of the table states.
    DateUnknown {
        law: EnactedLaw<'a>,
        date: Option<&'a str>,
    },
    /// The amendments are in effect from a known date on.
    Dated {
        law: EnactedLaw<'a>,
        date: Option<&'a str>,
    },
}

impl LawInForce<'_> {
    /// Whether the amendments are in effect on the date of the question.
    pub fn is_amended(&self) -> bool {
        let Self::Dated { law, date } = self else {
            return false;
        };
        // Dates in this form are ordered as text.
        date.is_some_and(|date| date >= law.effective)
    }
}

/// Returns the law that applies to a record, by the table inside this component or that of this release.
pub(crate) fn law_of(facts: &EnvelopeFacts) -> LawInForce<'_> {
    find(table(), facts)
}

pub(crate) fn find<'a>(table: &'a str, facts: &'a EnvelopeFacts) -> LawInForce<'a> {
    let Some(jurisdiction) = attribute(facts, JURISDICTION) else {
        return LawInForce::NotStated;
    };

    let date = question_date(facts);
    // The bar must follow at once: the row of `US-DE` is none for `US-D`.
    let row = rows(table).find(|row| {
        let rest = row.strip_prefix(jurisdiction);
        rest.is_some_and(|rest| rest.trim_start().starts_with('|'))
    });

    // Building a component parses every row, so a row in use can be read.
    match row.and_then(|row| EnactedLaw::parse(row).ok()) {
        None => LawInForce::NotInTable { jurisdiction, date },
        Some(law) if law.effective_date().is_none() => LawInForce::DateUnknown { law, date },
        Some(law) => LawInForce::Dated { law, date },
    }
}

/// Returns the table inside this component, or that of this release.
fn table() -> &'static str {
    match space::content() {
        None => BUILT_IN,
        Some(content) => match std::str::from_utf8(content) {
            Ok(table) => table,
            // The table of this release could name another law, so the call ends here.
            Err(_) => panic!("the table inside this component cannot be read"),
        },
    }
}

/// Returns the date of the question in UTC. Hosts that do not state it have asked after the last signature,
/// or after the envelope was created.
fn question_date(facts: &EnvelopeFacts) -> Option<&str> {
    if let Some(date) = attribute(facts, ASKED_AT).and_then(date_of) {
        return Some(date);
    }
    let signed = facts.signed_documents.iter();
    let signed = signed.filter_map(|signed| date_of(&signed.signed_at)).max();
    signed.or_else(|| date_of(attribute(facts, CREATED_AT)?))
}

/// Returns the date of the last signature in UTC.
pub(crate) fn signature_date(facts: &EnvelopeFacts) -> Option<&str> {
    let signed = facts.signed_documents.iter();
    signed.filter_map(|signed| date_of(&signed.signed_at)).max()
}

/// Returns the date of a time stamp, such as `2026-06-03`.
fn date_of(time: &str) -> Option<&str> {
    let date = time.get(..DATE)?;
    let fits = |(place, byte): (usize, u8)| match place {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    (0..).zip(date.bytes()).all(fits).then_some(date)
}
