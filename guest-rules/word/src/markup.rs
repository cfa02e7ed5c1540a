//! Tags and characters of XML, as far as the text of documents needs them. Nothing is resolved: a document type, and
//! with it every entity of its own, is refused.

use std::ops::Range;

use crate::{Result, unreadable};

/// A piece of a part.
pub(crate) enum MarkupToken<'a> {
    Tag(MarkupTag<'a>),
    /// Characters between tags: where they are.
    Characters(Range<usize>),
    /// A section whose characters are not escaped.
    Section,
}

/// A tag.
pub(crate) struct MarkupTag<'a> {
    /// Name with its prefix.
    pub name: &'a str,
    /// What follows the name.
    pub attributes: &'a str,
    pub kind: TagKind,
    /// Where `>` or `/>` is.
    pub end: usize,
}

/// Kind of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagKind {
    Opening,
    Closing,
    Empty,
}

/// Reads a part as text.
///
/// # Errors
/// `Unreadable` for another encoding than UTF-8, and for a document type.
pub(crate) fn checked(bytes: Vec<u8>) -> Result<String> {
    let text = String::from_utf8(bytes)
        .map_err(|_| unreadable("The text of the document is not in UTF-8"))?;
    let is_utf8 = |declared: &str| {
        let name = declared.trim_start_matches(['=', ' ', '"', '\'']);
        let name = name.get(..5).unwrap_or_default();
        name.eq_ignore_ascii_case("utf-8")
    };
    let declaration = text.trim_start_matches('\u{feff}').strip_prefix("<?xml ");
    let declaration = declaration.and_then(|rest| rest.split_once("?>"));
    let encoding = declaration.and_then(|(facts, _)| facts.split_once("encoding"));

    match encoding {
        Some((_, declared)) if !is_utf8(declared) => {
            Err(unreadable("The text of the document is not in UTF-8"))
        }
        _ => Ok(text),
    }
}

/// Splits a part into its pieces.
pub(crate) struct MarkupTokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> MarkupTokens<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next piece; `None` at the end. Comments and instructions are left out.
    pub(crate) fn next_piece(&mut self) -> Result<Option<MarkupToken<'a>>> {
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return Ok(None);
            }

            let length = rest.find('<').unwrap_or(rest.len());
            if length > 0 {
                let start = self.at;
                self.at += length;
                return Ok(Some(MarkupToken::Characters(start..self.at)));
            }
            if rest.starts_with("<!--") {
                self.skip("-->")?;
            } else if rest.starts_with("<?") {
                self.skip("?>")?;
            } else if rest.starts_with("<![CDATA[") {
                self.skip("]]>")?;
                return Ok(Some(MarkupToken::Section));
            } else if rest.starts_with("<!") {
                return Err(unreadable("The document declares a type of its own"));
            } else {
                return self.tag().map(Some);
            }
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self, end: &str) -> Result<()> {
        let length = self.rest().find(end).ok_or_else(unfinished)?;
        self.at += length + end.len();
        Ok(())
    }

    fn tag(&mut self) -> Result<MarkupToken<'a>> {
        let rest = self.rest();
        // A `>` in the value of an attribute does not end the tag.
        let mut quote = None;
        let end = rest.bytes().position(|byte| match (quote, byte) {
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                false
            }
            (None, b'>') => true,
            (Some(open), byte) if open == byte => {
                quote = None;
                false
            }
            _ => false,
        });
        let end = end.ok_or_else(unfinished)?;
        let inside = rest.get(1..end).unwrap_or_default();

        let (inside, kind) = match (inside.strip_prefix('/'), inside.strip_suffix('/')) {
            (Some(name), _) => (name, TagKind::Closing),
            (None, Some(inside)) => (inside, TagKind::Empty),
            (None, None) => (inside, TagKind::Opening),
        };
        let name_length = inside.find(char::is_whitespace).unwrap_or(inside.len());
        let (name, attributes) = inside.split_at(name_length);
        let tag = MarkupTag {
            name,
            attributes,
            kind,
            end: self.at + end - usize::from(kind == TagKind::Empty),
        };
        self.at += end + 1;
        Ok(MarkupToken::Tag(tag))
    }
}

fn unfinished() -> crate::WordError {
    unreadable("The text of the document ends within a tag")
}

/// Returns the prefix that a tag declares for one of these names; empty for the names without a prefix.
pub(crate) fn prefix_of<'a>(attributes: &'a str, names: &[&str]) -> Option<&'a str> {
    let mut rest = attributes;
    while let Some((_, found)) = rest.split_once("xmlns") {
        let (prefix, after) = found.split_once('=')?;
        let value = after.trim_start();
        let quote = value
            .chars()
            .next()
            .filter(|one| ['"', '\''].contains(one))?;
        let (value, further) = value.get(1..)?.split_once(quote)?;
        if names.contains(&value) {
            return Some(prefix.trim().trim_start_matches(':'));
        }

        rest = further;
    }

    None
}

/// Returns the characters of a text, each with its place: an escaped one is one character.
pub(crate) fn characters(text: &str, range: Range<usize>) -> Vec<(char, Range<usize>)> {
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let rest = text.get(at..range.end).unwrap_or_default();
        let Some(first) = rest.chars().next() else {
            break;
        };

        let escaped = (first == '&').then(|| escaped(rest)).flatten();
        let (character, length) = escaped.unwrap_or((first, first.len_utf8()));
        found.push((character, at..at + length));
        at += length;
    }

    found
}

/// Reads an escaped character, and returns its length.
fn escaped(text: &str) -> Option<(char, usize)> {
    /// Longest text between `&` and `;`, of a number with leading zeros.
    const LONGEST: usize = 12;

    let end = text.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let name = text.get(1..end)?;
    let character = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let number = match number.strip_prefix('x') {
                Some(number) => u32::from_str_radix(number, 16),
                None => number.parse(),
            };
            char::from_u32(number.ok()?)?
        }
    };
    Some((character, end + 1))
}

/// Adds a character to a text, escaped. Characters that XML does not have are left out.
pub(crate) fn escape(character: char, into: &mut String) {
    match character {
        '&' => into.push_str("&amp;"),
        '<' => into.push_str("&lt;"),
        '>' => into.push_str("&gt;"),
        '\u{fffe}' | '\u{ffff}' => {}
        other if other.is_control() && !('\u{7f}'..='\u{9f}').contains(&other) => {}
        other => into.push(other),
    }
}
