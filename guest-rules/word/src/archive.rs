//! ZIP archives (APPNOTE 6.3.10), as word processors write them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};

use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

use crate::{Result, over_limit, unreadable};

/// Largest size of all parts with text together, unpacked.
pub(crate) const MOST_TEXT: usize = 48 * 1024 * 1024;
/// Largest size of all parts together, as the archive states it.
const MOST_UNPACKED: u64 = 512 * 1024 * 1024;
/// Largest number of parts.
const MOST_PARTS: usize = 4096;

/// First bytes and fixed lengths of the records.
const LOCAL: &[u8] = b"PK\x03\x04";
const LOCAL_LENGTH: usize = 30;
const CENTRAL: &[u8] = b"PK\x01\x02";
const CENTRAL_LENGTH: usize = 46;
const END: &[u8] = b"PK\x05\x06";
const END_LENGTH: usize = 22;

/// Compression methods.
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// Flags: the part is encrypted; its name is UTF-8.
const ENCRYPTED: u16 = 1;
const UTF_8: u16 = 1 << 11;

/// A part of an archive.
struct ArchiveEntry<'a> {
    name: &'a str,
    method: u16,
    /// Time and date, as they are stored.
    moment: u32,
    crc: u32,
    unpacked_size: u32,
    packed: &'a [u8],
}

/// An archive whose bounds were checked. Nothing is unpacked.
pub(crate) struct DocumentArchive<'a> {
    /// In the order of their bytes: readers of OpenDocument want the first one to stay the first.
    entries: Vec<ArchiveEntry<'a>>,
}

impl<'a> DocumentArchive<'a> {
    /// Reads the directory of an archive.
    ///
    /// # Errors
    /// `Unreadable` for a damaged or encrypted archive, and for two parts of one name; `OverLimit` for one that
    /// becomes too large.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self> {
        let damaged = || unreadable("The archive of the document is damaged");
        let end = end_of(bytes).ok_or_else(damaged)?;
        let count = usize::from(number16(bytes, end + 10).ok_or_else(damaged)?);
        if count > MOST_PARTS {
            let limit = format!("The document has more than {MOST_PARTS} parts");
            return Err(over_limit(limit));
        }

        let mut at = offset(bytes, end + 16).ok_or_else(damaged)?;
        let mut found = Vec::new();
        let mut names = BTreeSet::new();
        let (mut packed, mut unpacked) = (0, 0);
        for _ in 0..count {
            let (entry, start, next) = entry(bytes, at).ok_or_else(damaged)??;
            packed += entry.packed.len();
            unpacked += u64::from(entry.unpacked_size);
            // Of two parts with one name, readers may take either.
            if !names.insert(entry.name) {
                return Err(unreadable("Two parts of the document have the same name"));
            }

            found.push((start, entry));
            at = next;
        }

        if unpacked > MOST_UNPACKED {
            let limit = "Unpacked, the document is larger than 512 MiB";
            return Err(over_limit(limit));
        }
        // Parts that share their bytes would make a copy larger than the original.
        if packed > bytes.len() {
            return Err(unreadable("Parts of the document overlap"));
        }

        found.sort_by_key(|(start, _)| *start);
        let entries = found.into_iter().map(|(_, entry)| entry).collect();
        Ok(Self { entries })
    }

    /// Returns the names of the parts.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name)
    }

    /// Unpacks a part of at most `room` bytes.
    ///
    /// # Errors
    /// `OverLimit` for a larger one; `Unreadable` for one that is not as the directory states.
    pub(crate) fn unpacked(&self, index: usize, room: usize) -> Result<Vec<u8>> {
        let entry = self.entries.get(index);
        let entry = entry.ok_or_else(|| unreadable("The document lacks a part"))?;
        let too_large = || {
            let most = MOST_TEXT / 1024 / 1024;
            over_limit(format!(
                "The text of the document is larger than {most} MiB"
            ))
        };
        if entry.unpacked_size as usize > room {
            return Err(too_large());
        }

        let text = match entry.method {
            STORED => entry.packed.to_vec(),
            DEFLATED => {
                // The size that the directory states may be a lie.
                let mut text = Vec::new();
                let decoder = DeflateDecoder::new(entry.packed);
                decoder
                    .take(room as u64 + 1)
                    .read_to_end(&mut text)
                    .map_err(|_| unreadable("A part of the document cannot be unpacked"))?;
                text
            }
            _ => {
                return Err(unreadable(
                    "A part of the document has an unknown compression",
                ));
            }
        };
        if text.len() > room {
            return Err(too_large());
        }

        let is_as_stated = text.len() == entry.unpacked_size as usize && crc(&text) == entry.crc;
        if is_as_stated {
            Ok(text)
        } else {
            Err(unreadable("A part of the document is damaged"))
        }
    }

    /// Returns an archive with other content of some parts. All others keep their bytes.
    pub(crate) fn with_parts(&self, replaced: &BTreeMap<usize, Vec<u8>>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut directory = Vec::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let packed_anew;
            let entry = match replaced.get(&index) {
                None => entry,
                Some(text) => {
                    packed_anew = deflated(text)?;
                    &ArchiveEntry {
                        name: entry.name,
                        method: DEFLATED,
                        moment: entry.moment,
                        crc: crc(text),
                        unpacked_size: length(text)?,
                        packed: &packed_anew,
                    }
                }
            };

            let start = length(&bytes)?;
            bytes.extend_from_slice(LOCAL);
            bytes.extend_from_slice(&facts(entry)?);
            bytes.extend_from_slice(entry.name.as_bytes());
            bytes.extend_from_slice(entry.packed);

            directory.extend_from_slice(CENTRAL);
            // Made by a version of the format that knows directories and compression.
            directory.extend_from_slice(&20_u16.to_le_bytes());
            directory.extend_from_slice(&facts(entry)?);
            // No comment, first disk, no attributes.
            directory.extend_from_slice(&[0; 10]);
            directory.extend_from_slice(&start.to_le_bytes());
            directory.extend_from_slice(entry.name.as_bytes());
        }

        let start = length(&bytes)?;
        bytes.extend_from_slice(&directory);
        bytes.extend_from_slice(END);
        bytes.extend_from_slice(&[0; 4]);
        let count = u16::try_from(self.entries.len()).unwrap_or(u16::MAX);
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&length(&directory)?.to_le_bytes());
        bytes.extend_from_slice(&start.to_le_bytes());
        bytes.extend_from_slice(&[0; 2]);
        Ok(bytes)
    }
}

/// Returns where the record at the end of the archive begins. The comment is the last part of the archive, and its
/// length is known only from this record.
fn end_of(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(END_LENGTH)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    (first..=last).rev().find(|at| {
        bytes.get(*at..).is_some_and(|rest| rest.starts_with(END))
            && number16(bytes, at + 20)
                .is_some_and(|comment| at + END_LENGTH + usize::from(comment) == bytes.len())
    })
}

/// Reads an entry of the directory: the part, where it begins, and where the next entry does. `None` for a damaged one.
fn entry(bytes: &[u8], at: usize) -> Option<Result<(ArchiveEntry<'_>, usize, usize)>> {
    if !bytes.get(at..)?.starts_with(CENTRAL) {
        return None;
    }
    if number16(bytes, at + 8)? & ENCRYPTED != 0 {
        return Some(Err(unreadable("The document is protected by a password")));
    }

    let (packed_size, start) = (offset(bytes, at + 20)?, offset(bytes, at + 42)?);
    let name_at = at + CENTRAL_LENGTH;
    let name_length = usize::from(number16(bytes, at + 28)?);
    let name = bytes.get(name_at..name_at + name_length)?;
    let further = usize::from(number16(bytes, at + 30)?) + usize::from(number16(bytes, at + 32)?);

    // The record before the bytes has a name and further facts of its own.
    if !bytes.get(start..)?.starts_with(LOCAL) {
        return None;
    }
    let own_name = usize::from(number16(bytes, start + 26)?);
    let own_further = usize::from(number16(bytes, start + 28)?);
    if bytes.get(start + LOCAL_LENGTH..)?.get(..own_name)? != name {
        return None;
    }

    let packed_at = start + LOCAL_LENGTH + own_name + own_further;
    let entry = ArchiveEntry {
        name: std::str::from_utf8(name).ok()?,
        method: number16(bytes, at + 10)?,
        moment: number32(bytes, at + 12)?,
        crc: number32(bytes, at + 16)?,
        unpacked_size: number32(bytes, at + 24)?,
        packed: bytes.get(packed_at..packed_at.checked_add(packed_size)?)?,
    };
    Some(Ok((entry, start, name_at + name_length + further)))
}

/// Returns the facts that both records of a part have, from the version of the format to the length of further facts.
fn facts(entry: &ArchiveEntry<'_>) -> Result<Vec<u8>> {
    let name_length = u16::try_from(entry.name.len())
        .map_err(|_| unreadable("A part of the document has a long name"))?;
    let mut facts = Vec::new();
    facts.extend_from_slice(&20_u16.to_le_bytes());
    facts.extend_from_slice(&UTF_8.to_le_bytes());
    facts.extend_from_slice(&entry.method.to_le_bytes());
    facts.extend_from_slice(&entry.moment.to_le_bytes());
    facts.extend_from_slice(&entry.crc.to_le_bytes());
    facts.extend_from_slice(&length(entry.packed)?.to_le_bytes());
    facts.extend_from_slice(&entry.unpacked_size.to_le_bytes());
    facts.extend_from_slice(&name_length.to_le_bytes());
    facts.extend_from_slice(&[0; 2]);
    Ok(facts)
}

pub(crate) fn deflated(text: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(text).and_then(|()| encoder.finish());
    written.map_err(|_| over_limit("The text of the document cannot be packed"))
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn length(bytes: &[u8]) -> Result<u32> {
    u32::try_from(bytes.len()).map_err(|_| over_limit("The document is larger than 4 GiB"))
}

fn number16(bytes: &[u8], at: usize) -> Option<u16> {
    let number = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(number.try_into().ok()?))
}

fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    let number = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(number.try_into().ok()?))
}

/// Reads a length or place. Archives of more than 4 GiB have none here, and no document is one.
fn offset(bytes: &[u8], at: usize) -> Option<usize> {
    let number = number32(bytes, at)?;
    (number != u32::MAX).then_some(number as usize)
}
