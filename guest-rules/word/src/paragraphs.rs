//! Paragraphs: a word processor splits a text into runs wherever its spelling, language or history differs, so a
//! variable is searched in the text of the whole paragraph.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::markup::{MarkupTag, MarkupToken, MarkupTokens, TagKind, characters, escape, prefix_of};
use crate::{Result, over_limit, unreadable};

/// Longest paragraph in characters.
const MOST_CHARACTERS: usize = 1_000_000;
/// Deepest nesting of paragraphs, as in text boxes within text boxes.
const DEEPEST: usize = 64;
/// Longest name of a variable in characters.
const LONGEST_NAME: usize = 100;
/// Largest part after the replacement.
const MOST_WRITTEN: usize = 96 * 1024 * 1024;
/// Stands for what is no character: a variable does not reach across it.
const GAP: char = '\n';

/// Names of the elements of text in both formats, as transitional and as strict documents declare them.
const WORD: [&str; 2] = [
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
];
const OPEN_DOCUMENT: [&str; 1] = ["urn:oasis:names:tc:opendocument:xmlns:text:1.0"];

/// Format of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentDialect {
    Word,
    OpenDocument,
}

/// A variable where it stands.
pub(crate) struct FoundVariable {
    pub name: String,
    /// Place of each of its characters, brackets included.
    places: Vec<Range<usize>>,
    /// Ends of the tags that open the runs of text that it is in.
    runs: BTreeSet<usize>,
}

/// Variables of a part.
pub(crate) struct DocumentPart {
    pub variables: Vec<FoundVariable>,
    dialect: DocumentDialect,
    /// Prefix of the elements, with its colon.
    prefix: String,
}

/// A character of a paragraph.
struct ParagraphLetter {
    character: char,
    /// Where it is; `None` for what an element stands for.
    place: Option<Range<usize>>,
    /// End of the tag that opens the run, if spaces at the ends of the run count only where that tag says so.
    run: Option<usize>,
}

impl DocumentPart {
    /// Reads the variables of a part.
    pub(crate) fn read(text: &str, dialect: DocumentDialect) -> Result<Self> {
        let mut reader = PartReader {
            part: Self {
                variables: Vec::new(),
                dialect,
                prefix: match dialect {
                    DocumentDialect::Word => "w:".to_owned(),
                    DocumentDialect::OpenDocument => "text:".to_owned(),
                },
            },
            paragraphs: Vec::new(),
            run: None,
            is_first: true,
        };

        let mut tokens = MarkupTokens::of(text);
        while let Some(token) = tokens.next_piece()? {
            match token {
                MarkupToken::Tag(tag) => reader.tag(&tag)?,
                MarkupToken::Characters(range) => reader.characters(text, range)?,
                MarkupToken::Section => reader.push(GAP, None)?,
            }
        }

        if reader.paragraphs.is_empty() {
            Ok(reader.part)
        } else {
            Err(unreadable("A paragraph of the document has no end"))
        }
    }

    /// Returns the part with values in the place of its variables; `None` if none has a value.
    pub(crate) fn with_values(
        &self,
        text: &str,
        values: &BTreeMap<&str, &str>,
    ) -> Result<Option<String>> {
        // What takes the place of a range, by its start.
        let mut edits: BTreeMap<usize, (usize, String)> = BTreeMap::new();
        for variable in &self.variables {
            let Some(value) = values.get(variable.name.as_str()) else {
                continue;
            };

            let mut written = Some(self.written(value));
            for place in &variable.places {
                let new = written.take().unwrap_or_default();
                edits.insert(place.start, (place.end, new));
            }
            for run in &variable.runs {
                edits.insert(*run, (*run, r#" xml:space="preserve""#.to_owned()));
            }
        }
        if edits.is_empty() {
            return Ok(None);
        }

        let mut changed = String::new();
        let mut at = 0;
        for (start, (end, new)) in edits {
            changed.push_str(text.get(at..start).unwrap_or_default());
            changed.push_str(&new);
            at = end;
            if changed.len() > MOST_WRITTEN {
                return Err(over_limit(
                    "With these values, the document becomes too large",
                ));
            }
        }
        changed.push_str(text.get(at..).unwrap_or_default());
        Ok(Some(changed))
    }

    /// Returns a value as text of the document.
    fn written(&self, value: &str) -> String {
        let prefix = &self.prefix;
        let element = |name: &str| match self.dialect {
            // A run of text has characters only, so it ends before the element.
            DocumentDialect::Word => {
                format!(r#"</{prefix}t><{prefix}{name}/><{prefix}t xml:space="preserve">"#)
            }
            DocumentDialect::OpenDocument => format!("<{prefix}{name}/>"),
        };
        let (line_break, is_open) = match self.dialect {
            DocumentDialect::Word => (element("br"), false),
            DocumentDialect::OpenDocument => (element("line-break"), true),
        };

        let mut written = String::new();
        let mut follows_space = true;
        for character in value.replace("\r\n", "\n").replace('\r', "\n").chars() {
            match character {
                '\n' => written.push_str(&line_break),
                '\t' => written.push_str(&element("tab")),
                // OpenDocument takes several spaces for one.
                ' ' if is_open && follows_space => written.push_str(&element("s")),
                other => escape(other, &mut written),
            }
            follows_space = character.is_whitespace();
        }

        written
    }
}

/// Reads a part piece by piece.
struct PartReader {
    part: DocumentPart,
    /// Paragraphs that have not ended, outermost first.
    paragraphs: Vec<Vec<ParagraphLetter>>,
    /// Run of text of a Word document that has not ended: the end of its tag if that tag says nothing about spaces.
    run: Option<Option<usize>>,
    is_first: bool,
}

impl PartReader {
    fn tag(&mut self, tag: &MarkupTag<'_>) -> Result<()> {
        if self.is_first {
            self.is_first = false;
            self.declare(tag);
        }

        let Some(name) = tag.name.strip_prefix(self.part.prefix.as_str()) else {
            return Ok(());
        };
        match (self.part.dialect, name, tag.kind) {
            (DocumentDialect::Word, "p", TagKind::Opening)
            | (DocumentDialect::OpenDocument, "p" | "h", TagKind::Opening) => self.begin(),
            (DocumentDialect::Word, "p", TagKind::Closing)
            | (DocumentDialect::OpenDocument, "p" | "h", TagKind::Closing) => self.end(),
            (DocumentDialect::Word, "t", TagKind::Opening) => {
                let says_spaces = tag.attributes.contains("xml:space");
                self.run = Some((!says_spaces).then_some(tag.end));
                Ok(())
            }
            (DocumentDialect::Word, "t", TagKind::Closing) => {
                self.run = None;
                Ok(())
            }
            (DocumentDialect::Word, "br" | "cr" | "tab" | "instrText" | "delText", _)
            | (DocumentDialect::OpenDocument, "tab" | "line-break", _) => self.push(GAP, None),
            (DocumentDialect::OpenDocument, "s", TagKind::Empty | TagKind::Opening) => {
                self.push(' ', None)
            }
            _ => Ok(()),
        }
    }

    /// Takes the prefix that the first element declares.
    fn declare(&mut self, tag: &MarkupTag<'_>) {
        let names: &[&str] = match self.part.dialect {
            DocumentDialect::Word => &WORD,
            DocumentDialect::OpenDocument => &OPEN_DOCUMENT,
        };
        if let Some(prefix) = prefix_of(tag.attributes, names) {
            self.part.prefix = if prefix.is_empty() {
                String::new()
            } else {
                format!("{prefix}:")
            };
        }
    }

    fn begin(&mut self) -> Result<()> {
        if self.paragraphs.len() == DEEPEST {
            return Err(over_limit(
                "Paragraphs of the document are nested too deeply",
            ));
        }

        // The text of an inner paragraph is not part of the outer one.
        self.push(GAP, None)?;
        self.paragraphs.push(Vec::new());
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let letters = self.paragraphs.pop();
        let letters =
            letters.ok_or_else(|| unreadable("A paragraph of the document has no start"))?;
        self.part.variables.extend(found_in(&letters));
        Ok(())
    }

    fn characters(&mut self, text: &str, range: Range<usize>) -> Result<()> {
        let is_text = match self.part.dialect {
            DocumentDialect::Word => self.run.is_some(),
            DocumentDialect::OpenDocument => true,
        };
        if !is_text || self.paragraphs.is_empty() {
            return Ok(());
        }
        // Checked first, so that a long text is not taken apart.
        if range.len() > MOST_CHARACTERS {
            return Err(too_long());
        }

        for (character, place) in characters(text, range) {
            // In markup, a line break is a space.
            let character = if character == '\n' { ' ' } else { character };
            self.push(character, Some(place))?;
        }
        Ok(())
    }

    fn push(&mut self, character: char, place: Option<Range<usize>>) -> Result<()> {
        let run = self.run.flatten();
        let Some(paragraph) = self.paragraphs.last_mut() else {
            return Ok(());
        };
        if paragraph.len() == MOST_CHARACTERS {
            return Err(too_long());
        }

        paragraph.push(ParagraphLetter {
            character,
            place,
            run,
        });
        Ok(())
    }
}

fn too_long() -> crate::WordError {
    over_limit(format!(
        "A paragraph of the document has more than {MOST_CHARACTERS} characters"
    ))
}

/// Returns the variables of a paragraph.
fn found_in(letters: &[ParagraphLetter]) -> Vec<FoundVariable> {
    let is = |at: usize, wanted: char| {
        letters
            .get(at)
            .is_some_and(|letter| letter.character == wanted)
    };
    let mut found = Vec::new();
    let mut at = 0;
    while at + 1 < letters.len() {
        if !(is(at, '[') && is(at + 1, '[')) {
            at += 1;
            continue;
        }

        let name = letters.get(at + 2..).unwrap_or_default();
        let length = name
            .iter()
            .take(LONGEST_NAME + 1)
            .take_while(|letter| !['[', ']', GAP].contains(&letter.character))
            .count();
        let end = at + 2 + length;
        let written: String = name
            .iter()
            .take(length)
            .map(|letter| letter.character)
            .collect();
        let is_closed = is(end, ']') && is(end + 1, ']');
        match name_of(&written).filter(|_| is_closed) {
            Some(name) => {
                let all = letters.get(at..end + 2).unwrap_or_default();
                found.push(FoundVariable {
                    name,
                    places: all
                        .iter()
                        .filter_map(|letter| letter.place.clone())
                        .collect(),
                    runs: all.iter().filter_map(|letter| letter.run).collect(),
                });
                at = end + 2;
            }
            // The second bracket may be the first one of a variable.
            None => at += 1,
        }
    }

    found
}

/// Returns the name between brackets: letters, digits, spaces, dots, dashes and underscores, with a letter first.
/// Other text between brackets is the document's own.
fn name_of(written: &str) -> Option<String> {
    let name = written.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_of_names = |one: char| one.is_alphanumeric() || " ._-".contains(one);
    let begins_with_letter = name.chars().next().is_some_and(char::is_alphabetic);
    (begins_with_letter && name.chars().all(is_of_names)).then_some(name)
}
