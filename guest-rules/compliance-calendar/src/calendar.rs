//! Table of the laws, and which one applies to a record.

use crate::space;
use crate::types::EnvelopeFacts;

/// The table of this release.
pub const BUILT_IN: &str = include_str!("../laws.txt");

/// Attribute with the jurisdiction of the chattel paper (UCC §9-306A(b)(1)).
const JURISDICTION: &str = "chattel_paper_jurisdiction";
/// Attribute with the time at which the envelope was created.
const CREATED_AT: &str = "envelope_created_at";
/// Length of a date in a time stamp (RFC 3339).
const DATE: usize = 10;

/// Row of the table: a jurisdiction that has enacted the amendments of 2022.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnactedLaw<'a> {
    /// For example `US-DE`.
    pub jurisdiction: &'a str,
    /// Date from which §9-105 is in effect as amended, for example `2023-08-18`.
    pub effective: &'a str,
    /// End of the time in which interests of before stay perfected without the amended requirements; empty if the
    /// table does not state it.
    pub adjustment: &'a str,
    /// The enacting act.
    pub act: &'a str,
    /// Address of the source.
    pub source: &'a str,
}

impl<'a> EnactedLaw<'a> {
    /// Parses a row: five cells between vertical bars.
    ///
    /// # Errors
    /// The row has another number of cells, or a cell that must not be empty is.
    fn parse(line: &'a str) -> Result<Self, String> {
        let mut cells = line.split('|').map(str::trim);
        let mut cell = || cells.next().ok_or_else(|| too_few(line));
        let law = Self {
            jurisdiction: cell()?,
            effective: cell()?,
            adjustment: cell()?,
            act: cell()?,
            source: cell()?,
        };
        let needed = [law.jurisdiction, law.effective, law.act, law.source];
        match cells.next().is_none() && needed.iter().all(|cell| !cell.is_empty()) {
            true => Ok(law),
            false => Err(too_few(line)),
        }
    }
}

fn too_few(line: &str) -> String {
    format!(
        "\"{line}\" is no row: it needs jurisdiction | effective date | adjustment date or nothing | act | source"
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

/// The law that applies to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AppliedLaw<'a> {
    pub law: EnactedLaw<'a>,
    /// Date of the record.
    pub date: &'a str,
}

impl AppliedLaw<'_> {
    /// Whether the amendments were in effect on the date of the record.
    pub fn is_amended(&self) -> bool {
        // Dates in this form are ordered as text.
        self.date >= self.law.effective
    }
}

/// Returns the law of the record's jurisdiction. `None` if no jurisdiction or no date is stated, or if the
/// jurisdiction has not enacted the amendments.
pub(crate) fn law_of(facts: &EnvelopeFacts) -> Option<AppliedLaw<'_>> {
    find(table(), facts)
}

pub(crate) fn find<'a>(table: &'a str, facts: &'a EnvelopeFacts) -> Option<AppliedLaw<'a>> {
    let jurisdiction = attribute(facts, JURISDICTION)?;
    let mut rows = rows(table);
    let row = rows.find(|row| {
        let rest = row.strip_prefix(jurisdiction);
        rest.is_some_and(|rest| rest.trim_start().starts_with('|'))
    })?;
    let law = EnactedLaw::parse(row).ok()?;
    let date = date(facts)?;
    Some(AppliedLaw { law, date })
}

/// Returns the table inside this component, or that of this release.
fn table() -> &'static str {
    match space::content() {
        None => BUILT_IN,
        Some(content) => match std::str::from_utf8(content) {
            Ok(table) => table,
            Err(_) => panic!("the table inside this component cannot be read"),
        },
    }
}

/// Returns the date in UTC on which the last party signed. A record without signatures has the date of its envelope.
fn date(facts: &EnvelopeFacts) -> Option<&str> {
    let signed = facts.signed_documents.iter();
    let signed = signed.filter_map(|signed| date_of(&signed.signed_at)).max();
    signed.or_else(|| date_of(attribute(facts, CREATED_AT)?))
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

fn attribute<'a>(facts: &'a EnvelopeFacts, name: &str) -> Option<&'a str> {
    let mut attributes = facts.attributes.iter();
    let found = attributes.find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}
