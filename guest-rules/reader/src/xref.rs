//! Check of the cross-reference data.
//!
//! The parser silently rebuilds a broken table, but a writer has to know: after an incremental
//! update of a broken table other readers cannot open the file. So this module walks the chain
//! again, strictly, and requires every listed object to begin at its offset.

use std::collections::HashSet;

use hayro_syntax::object::{Array, Dict, FromBytes, Name, ObjRef, Stream, String as PdfString};

use crate::content::is_space;
use crate::decode::decode;

/// Longest chain of `/Prev` that is followed.
const MAX_SECTIONS: usize = 4_096;
/// Most decoded bytes of one cross-reference stream.
const MAX_STREAM_BYTES: usize = 64 * 1024 * 1024;

/// The cross-reference data of a file, which a writer needs in addition to the objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSurvey {
    /// Whether every object that the sections list begins at its offset.
    pub is_sound: bool,
    /// Whether a trailer names an encryption dictionary, also if the empty password opens the file.
    pub is_encrypted: bool,
    /// Position of the newest section, if the file names one.
    pub start: Option<usize>,
    /// Whether the newest section is a stream.
    pub is_stream: bool,
    /// Highest object number that a section lists.
    pub highest_number: u32,
    /// Numbers of the objects that the sections place in the file. If the sections are not sound, also of those that
    /// begin somewhere in it.
    pub placed: HashSet<u32>,
    /// Numbers that are listed as in use without a place. Some readers search the file for such an object, others
    /// take it for none.
    pub unplaced: HashSet<u32>,
    /// Number of an object that is not at its place and is in the file more than once. Some readers search for it
    /// and take the last one, others take it for none.
    pub ambiguous: Option<u32>,
    /// Number and generation of the information dictionary.
    pub information: Option<(u32, u16)>,
    /// First part of the file identifier.
    pub identifier: Option<Vec<u8>>,
}

/// Reads the cross-reference data of a file, and checks it.
#[must_use]
pub fn survey(data: &[u8]) -> FileSurvey {
    let mut walk = XrefWalk {
        data,
        listed: HashSet::new(),
        placed: HashSet::new(),
        unplaced: HashSet::new(),
        misplaced: None,
        is_encrypted: false,
        newest: None,
    };

    let is_sound = walk.follow_chain().is_some();
    if !is_sound {
        // Readers then search the file, and each decides for itself whether a damaged object is one.
        walk.placed.extend(headers(data));
    }

    let start = newest_section(data);

    // A trailer after a table that cannot be followed still names the file and its information.
    let trailer = walk.newest.take().or_else(|| last_trailer(data));
    let entry = |key: &str| trailer.as_ref().and_then(|trailer| trailer.get_ref(key));
    let identifier = trailer.as_ref().and_then(|trailer| {
        let parts = trailer.get::<Array<'_>>("ID")?;
        let first = parts.iter::<PdfString<'_>>().next()?;
        Some(first.as_bytes().to_vec())
    });

    FileSurvey {
        is_sound,
        is_encrypted: walk.is_encrypted
            || trailer
                .as_ref()
                .is_some_and(|trailer| trailer.contains_key("Encrypt")),
        start,
        is_stream: start.is_some_and(|start| !ByteCursor::at(data, start).keyword(b"xref")),
        highest_number: walk.listed.iter().copied().max().unwrap_or(0),
        placed: std::mem::take(&mut walk.placed),
        unplaced: std::mem::take(&mut walk.unplaced),
        ambiguous: walk.misplaced.filter(|number| copies(data, *number) > 1),
        information: entry("Info").and_then(
            |ObjRef {
                 obj_number,
                 gen_number,
             }| { Some((obj_number, u16::try_from(gen_number).ok()?)) },
        ),
        identifier,
    }
}

/// Returns whether a trailer names an encryption dictionary, also if the empty password opens the
/// file.
#[must_use]
pub fn is_encrypted(data: &[u8]) -> bool {
    survey(data).is_encrypted
}

/// Returns the position after the last `startxref`.
fn newest_section(data: &[u8]) -> Option<usize> {
    let marker = rfind(data, b"startxref")?;
    let mut cursor = ByteCursor::at(data, marker + b"startxref".len());
    usize::try_from(cursor.number()?).ok()
}

fn last_trailer(data: &[u8]) -> Option<Dict<'_>> {
    let marker = rfind(data, b"trailer")?;
    let mut cursor = ByteCursor::at(data, marker + b"trailer".len());
    cursor.skip_space();
    Dict::from_bytes(data.get(cursor.position..)?)
}

struct XrefWalk<'a> {
    data: &'a [u8],
    /// Objects that a newer section has already listed.
    listed: HashSet<u32>,
    placed: HashSet<u32>,
    unplaced: HashSet<u32>,
    /// First object that is not at its place.
    misplaced: Option<u32>,
    is_encrypted: bool,
    /// Trailer of the newest section.
    newest: Option<Dict<'a>>,
}

impl<'a> XrefWalk<'a> {
    /// Follows the chain of sections. Returns `None` at the first inconsistency.
    fn follow_chain(&mut self) -> Option<()> {
        let mut open = vec![newest_section(self.data)?];
        let mut visited = HashSet::new();
        while let Some(position) = open.pop() {
            // `Prev` of a hostile file can lead back to a section, or through endless ones.
            if !visited.insert(position) || visited.len() > MAX_SECTIONS {
                return None;
            }

            let trailer = self.section(position)?;
            self.newest.get_or_insert_with(|| trailer.clone());
            self.is_encrypted |= trailer.contains_key("Encrypt");
            if let Some(previous) = trailer.get::<u32>("Prev") {
                open.push(usize::try_from(previous).ok()?);
            }

            // In a hybrid file the stream complements this table and takes precedence over older
            // ones.
            if let Some(stream) = trailer.get::<u32>("XRefStm") {
                open.push(usize::try_from(stream).ok()?);
            }
        }

        Some(())
    }

    fn section(&mut self, position: usize) -> Option<Dict<'a>> {
        let mut cursor = ByteCursor::at(self.data, position);
        if cursor.keyword(b"xref") {
            self.table(cursor)
        } else {
            self.stream(cursor)
        }
    }

    fn table(&mut self, mut cursor: ByteCursor<'a>) -> Option<Dict<'a>> {
        while !cursor.keyword(b"trailer") {
            let first = cursor.number()?;
            let count = cursor.number()?;
            for index in 0..count {
                let offset = cursor.number()?;
                let generation = cursor.number()?;
                let number = u32::try_from(first.checked_add(index)?).ok()?;
                if cursor.keyword(b"n") {
                    self.check(number, offset, generation)?;
                // A free entry hides the object in older sections, so it counts as listed.
                } else if cursor.keyword(b"f") {
                    self.listed.insert(number);
                } else {
                    return None;
                }
            }
        }

        cursor.skip_space();
        Dict::from_bytes(self.data.get(cursor.position..)?)
    }

    fn stream(&mut self, mut cursor: ByteCursor<'a>) -> Option<Dict<'a>> {
        cursor.number()?;
        cursor.number()?;
        if !cursor.keyword(b"obj") {
            return None;
        }

        cursor.skip_space();
        let stream = Stream::from_bytes(self.data.get(cursor.position..)?)?;
        let dict = stream.dict().clone();
        if dict.get::<Name<'_>>("Type").as_deref() != Some(b"XRef") {
            return None;
        }

        let widths: Vec<usize> = numbers(&dict, "W")?;
        let [kind_width, offset_width, last_width] = widths.as_slice() else {
            return None;
        };

        let row = kind_width
            .checked_add(*offset_width)?
            .checked_add(*last_width)?;
        // Rows without bytes cannot be kept apart, and wider numbers do not fit into 64 bits.
        if row == 0 || *kind_width > 8 || *offset_width > 8 {
            return None;
        }

        let sections: Vec<usize> = match numbers(&dict, "Index") {
            Some(index) => index,
            None => vec![0, dict.get::<u32>("Size")? as usize],
        };
        let decoded = decode(&stream, MAX_STREAM_BYTES).ok()??;
        let mut rows = decoded.chunks_exact(row);
        for pair in sections.as_chunks::<2>().0 {
            let [first, count] = *pair;
            for index in 0..count {
                let entry = rows.next()?;
                // Without the first column, all entries are of type 1 (ISO 32000-1, table 17).
                let kind = match entry.get(..*kind_width)? {
                    [] => 1,
                    bytes => big_endian(bytes),
                };
                let offset = big_endian(entry.get(*kind_width..kind_width + offset_width)?);

                let number = u32::try_from(first.checked_add(index)?).ok()?;
                match kind {
                    1 => {
                        let generation = entry.get(kind_width + offset_width..)?;
                        self.check(number, offset, big_endian(generation))?;
                    }
                    // In an object stream.
                    2 if self.listed.insert(number) => drop(self.placed.insert(number)),
                    _ => drop(self.listed.insert(number)),
                }
            }
        }

        Some(dict)
    }

    /// Requires the object to begin at its offset with its generation, unless a newer section lists it.
    /// Writers often mark a free entry with offset 0.
    fn check(&mut self, number: u32, offset: u64, generation: u64) -> Option<()> {
        if !self.listed.insert(number) {
            return Some(());
        }
        // PDFium takes an object beyond the end for none, as one at 0. Others search the file for it.
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if offset == 0 || offset >= self.data.len() {
            self.unplaced.insert(number);
            return Some(());
        }

        self.placed.insert(number);
        // This is noted first, because every early return below means that the object is not there.
        self.misplaced = Some(number);

        let mut cursor = ByteCursor::at(self.data, offset);
        let is_here = cursor.number()? == u64::from(number) && cursor.number()? == generation;
        if !is_here || !cursor.keyword(b"obj") {
            return None;
        }

        self.misplaced = None;
        Some(())
    }
}

/// Returns the numbers of all objects that begin in the file.
fn headers(data: &[u8]) -> HashSet<u32> {
    let before = |at: usize, is_wanted: fn(u8) -> bool| {
        let part = data.get(..at).unwrap_or_default();
        at - part
            .iter()
            .rev()
            .take_while(|byte| is_wanted(**byte))
            .count()
    };
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let number_before = |keyword: usize| {
        let generation_end = before(keyword, is_space);
        let generation = before(generation_end, is_digit);
        let number_end = before(generation, is_space);
        let number = before(number_end, is_digit);
        if generation == generation_end || number_end == generation {
            return None;
        }
        std::str::from_utf8(data.get(number..number_end)?)
            .ok()?
            .parse()
            .ok()
    };

    let windows = data.windows(b"obj".len()).enumerate();
    let keywords = windows.filter(|(_, window)| *window == b"obj");
    keywords.filter_map(|(at, _)| number_before(at)).collect()
}

/// Returns how often an object of this number begins in the file.
fn copies(data: &[u8], number: u32) -> usize {
    let header = format!("{number} ");
    let begins = |at: &usize| {
        let mut cursor = ByteCursor::at(data, *at + header.len());
        // The header of object 12 ends like that of object 2, so the byte before has to be white space.
        let is_first = *at == 0 || data.get(at - 1).is_some_and(|byte| is_space(*byte));
        is_first && cursor.number().is_some() && cursor.keyword(b"obj")
    };
    let windows = data.windows(header.len()).enumerate();
    let found = windows.filter(|(_, window)| *window == header.as_bytes());

    found.map(|(at, _)| at).filter(begins).count()
}

fn numbers(dict: &Dict<'_>, key: &str) -> Option<Vec<usize>> {
    Some(
        dict.get::<Array<'_>>(key)?
            .iter::<u32>()
            .map(|number| number as usize)
            .collect(),
    )
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn rfind(data: &[u8], needle: &[u8]) -> Option<usize> {
    data.windows(needle.len())
        .rposition(|window| window == needle)
}

/// Lexer of the few tokens of a cross-reference table.
struct ByteCursor<'a> {
    data: &'a [u8],
    position: usize,
}

impl<'a> ByteCursor<'a> {
    fn at(data: &'a [u8], position: usize) -> Self {
        Self { data, position }
    }

    fn skip_space(&mut self) {
        while self
            .data
            .get(self.position)
            .is_some_and(|byte| is_space(*byte))
        {
            self.position += 1;
        }
    }

    fn number(&mut self) -> Option<u64> {
        self.skip_space();
        let start = self.position;
        let mut value = 0_u64;
        while let Some(digit) = self
            .data
            .get(self.position)
            .filter(|byte| byte.is_ascii_digit())
        {
            value = value
                .checked_mul(10)?
                .checked_add(u64::from(digit - b'0'))?;
            self.position += 1;
        }

        (self.position > start).then_some(value)
    }

    fn keyword(&mut self, word: &[u8]) -> bool {
        self.skip_space();
        let found = self
            .data
            .get(self.position..)
            .is_some_and(|tail| tail.starts_with(word));
        if found {
            self.position += word.len();
        }

        found
    }
}
