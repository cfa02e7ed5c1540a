//! Variables `[[name]]` in documents of word processors (DOCX, ODT): finding them, and writing values in their place.
//!
//! | File | Holds |
//! |---|---|
//! | `archive.rs` | the ZIP archive: bounds, parts with text, and an archive with other parts |
//! | `markup.rs` | tags and characters of a part |
//! | `paragraphs.rs` | text of paragraphs across their runs, and the variables in it |
//!
//! Every document is treated as hostile. Only parts with text are unpacked; all others are copied as they are.
//! Nothing is calculated: a formula or field of the document stays what it is, and a value is always text.

mod archive;
mod markup;
mod paragraphs;

use std::collections::BTreeMap;

use archive::DocumentArchive;
use paragraphs::{DocumentDialect, DocumentPart};

/// Largest number of different variables of a document.
pub const MOST_VARIABLES: usize = 200;

/// Why a document cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordError {
    /// It is damaged, or written in a way that readers may understand differently.
    Unreadable(String),
    /// It exceeds a limit, which the text names.
    OverLimit(String),
}

pub(crate) type Result<T> = std::result::Result<T, WordError>;

pub(crate) fn unreadable(why: impl Into<String>) -> WordError {
    WordError::Unreadable(why.into())
}

pub(crate) fn over_limit(limit: impl Into<String>) -> WordError {
    WordError::OverLimit(limit.into())
}

/// Returns the names of a document's variables, in the order of their first appearance: in the text, then in headers,
/// footers and notes.
///
/// # Errors
/// [`WordError`] for a damaged document, and for one beyond the limits.
pub fn variables(document: &[u8]) -> Result<Vec<String>> {
    let archive = DocumentArchive::read(document)?;
    let mut names: Vec<String> = Vec::new();
    for (_, text, dialect) in parts(&archive)? {
        for variable in DocumentPart::read(&text, dialect)?.variables {
            if !names.contains(&variable.name) {
                names.push(variable.name);
            }
            if names.len() > MOST_VARIABLES {
                let limit = format!("The document has more than {MOST_VARIABLES} variables");
                return Err(over_limit(limit));
            }
        }
    }

    Ok(names)
}

/// Returns the document with values in the place of its variables. Line breaks and tabs of a value become those of the
/// document. A variable without a value stays as it is.
///
/// # Errors
/// [`WordError`] for a damaged document, and for one beyond the limits.
pub fn replace_variables(document: &[u8], values: &[(String, String)]) -> Result<Vec<u8>> {
    let values: BTreeMap<&str, &str> = values
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let archive = DocumentArchive::read(document)?;
    let mut replaced = BTreeMap::new();
    for (index, text, dialect) in parts(&archive)? {
        let part = DocumentPart::read(&text, dialect)?;
        if let Some(changed) = part.with_values(&text, &values)? {
            replaced.insert(index, changed.into_bytes());
        }
    }

    archive.with_parts(&replaced)
}

/// Returns the parts with text: their place in the archive, content and dialect; the main part first.
fn parts(archive: &DocumentArchive<'_>) -> Result<Vec<(usize, String, DocumentDialect)>> {
    let mut found: Vec<(u8, String, usize, DocumentDialect)> = archive
        .names()
        .enumerate()
        .filter_map(|(index, name)| {
            let (rank, dialect) = rank(name)?;
            Some((rank, name.to_owned(), index, dialect))
        })
        .collect();
    found.sort_by(|left, right| (left.0, &left.1).cmp(&(right.0, &right.1)));

    let mut parts = Vec::new();
    let mut room = archive::MOST_TEXT;
    for (_, _, index, dialect) in found {
        let text = archive.unpacked(index, room)?;
        room -= text.len();
        parts.push((index, markup::checked(text)?, dialect));
    }

    Ok(parts)
}

/// Returns the order and the dialect of a part with text; `None` for any other part.
fn rank(name: &str) -> Option<(u8, DocumentDialect)> {
    match name {
        "word/document.xml" => return Some((0, DocumentDialect::Word)),
        "content.xml" => return Some((0, DocumentDialect::OpenDocument)),
        "styles.xml" => return Some((1, DocumentDialect::OpenDocument)),
        _ => {}
    }

    let part = name.strip_prefix("word/")?.strip_suffix(".xml")?;
    let is_repeated = part.starts_with("header") || part.starts_with("footer");
    let has_text = is_repeated || part == "footnotes" || part == "endnotes";
    (has_text && !part.contains('/')).then_some((1, DocumentDialect::Word))
}

#[cfg(test)]
mod tests;
