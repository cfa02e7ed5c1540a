//! Strict reading of zip archives.
//!
//! Readers of zip differ: some follow the central directory, others the headers in front of the files, and most
//! take one of two files with the same name. Evidence must not depend on the reader, so both are walked here,
//! they must agree, and every byte must belong to one file. Problems are collected, not only the first.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::bufread::DeflateDecoder;

const LOCAL: [u8; 4] = *b"PK\x03\x04";
const CENTRAL: [u8; 4] = *b"PK\x01\x02";
const END: [u8; 4] = *b"PK\x05\x06";
const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";

/// Size of the fixed part of each header.
const LOCAL_SIZE: usize = 30;
const CENTRAL_SIZE: usize = 46;
const END_SIZE: usize = 22;

/// Flag: sizes and checksum follow the file.
const HAS_DESCRIPTOR: u16 = 1 << 3;
/// Flags that change nothing about names and bytes: level of compression, descriptor, names in UTF-8.
const HARMLESS_FLAGS: u16 = 0b110 | HAS_DESCRIPTOR | 1 << 11;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Extra fields that give an entry other sizes or another name.
const FORBIDDEN_EXTRAS: [u16; 3] = [0x0001, 0x6375, 0x7075];

/// Largest central directory that is read: of more files than any evidence has.
const DIRECTORY_LIMIT: u64 = 16 * 1024 * 1024;

/// Limits of an archive.
#[derive(Clone, Copy, Debug)]
pub struct ArchiveLimits {
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all files.
    pub total: u64,
}

/// Archive with a checked structure.
pub struct Archive<R> {
    file: R,
    limits: ArchiveLimits,
    entries: Vec<ArchiveEntry>,
    /// Everything that is wrong with the archive.
    pub problems: Vec<String>,
}

/// File in an archive.
#[derive(Clone, Debug)]
struct ArchiveEntry {
    name: String,
    flags: u16,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    /// Position of the local header.
    header: u64,
    /// Position of the first byte; known after the local header was read.
    data: u64,
}

/// Fields of a header, by their offset.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }
}

impl<R: Read + Seek> Archive<R> {
    /// Walks the central directory and the local headers.
    ///
    /// # Errors
    /// The file is no zip archive.
    pub fn open(mut file: R, limits: ArchiveLimits) -> io::Result<Self> {
        let mut problems = Vec::new();
        let length = file.seek(SeekFrom::End(0))?;
        let (end, fields) = end_of(&mut file, length)?;
        let fields = Fields(&fields);

        // Readers search for the end from the back. Bytes behind it could hold a second archive.
        if end + END_SIZE as u64 != length {
            problems.push("bytes follow the end of the archive".to_owned());
        }

        let (size, start) = (u64::from(fields.u32(12)), u64::from(fields.u32(16)));
        // Zip64 and archives in parts have further records, which readers treat in different ways.
        if fields.u32(4) != 0 || fields.u16(8) != fields.u16(10) || start == u64::from(u32::MAX) {
            problems.push("the archive is one of several parts, or of more than 4 GiB".to_owned());
        }

        if start + size != end {
            problems.push("bytes that belong to no file are in the archive".to_owned());
        }

        // With bytes in front of the archive, all positions are shifted by their number.
        let begin = end.saturating_sub(size);
        // The file itself states this size, so without a limit it could make the reader allocate gigabytes.
        if size > DIRECTORY_LIMIT || size > end {
            return Err(io::Error::other(
                "the list of the archive's files is too large",
            ));
        }

        file.seek(SeekFrom::Start(begin))?;
        let mut directory = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        file.read_exact(&mut directory)?;
        let mut entries = listed(&directory, fields.u16(10), &mut problems);
        check_names(&entries, &mut problems);
        check_sizes(&entries, limits, &mut problems);
        walk(&mut file, &mut entries, start, &mut problems)?;

        Ok(Self {
            file,
            limits,
            entries,
            problems,
        })
    }

    /// Returns the names in the order of the list. Folders end with a slash.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// Returns the sizes that the list states, by name.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, u64)> {
        let entries = self.entries.iter();
        entries.map(|entry| (entry.name.as_str(), entry.size))
    }

    /// Returns the bytes of a file; `None` if there is none of this name.
    ///
    /// # Errors
    /// The reason, for people: the file is damaged.
    pub fn read(&mut self, name: &str) -> Option<Result<Vec<u8>, String>> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        let entry = entry.clone();
        Some(self.unpacked(&entry))
    }

    fn unpacked(&mut self, entry: &ArchiveEntry) -> Result<Vec<u8>, String> {
        let damaged = |why: &str| format!("{} cannot be read: {why}", entry.name);
        // A few packed bytes can unpack to gigabytes, so the stated sizes are
        // checked before anything is unpacked.
        if entry.size > self.limits.file || entry.packed > self.limits.file {
            return Err(damaged("it is over the limit"));
        }

        let seek = self.file.seek(SeekFrom::Start(entry.data));
        seek.map_err(|error| damaged(&error.to_string()))?;

        // One byte more than stated shows that there is more.
        let mut bytes = Vec::new();
        let packed = (&mut self.file).take(entry.packed);
        let (read, used) = if entry.method == DEFLATED {
            let mut decoder = DeflateDecoder::new(BufReader::new(packed));
            let read = (&mut decoder).take(entry.size + 1).read_to_end(&mut bytes);
            // Reads the mark at the end, if all bytes were read before it.
            let rest = io::copy(&mut (&mut decoder).take(1), &mut io::sink());
            (read.and(rest.map(|rest| rest == 0)), decoder.total_in())
        } else {
            let mut packed = packed;
            let read = packed.read_to_end(&mut bytes);
            (read.map(|_| true), bytes.len() as u64)
        };

        let at_end = read.map_err(|error| damaged(&error.to_string()))?;
        if !at_end || bytes.len() as u64 != entry.size || used != entry.packed {
            return Err(damaged("it has another size than stated"));
        }
        if crc32fast::hash(&bytes) != entry.crc {
            return Err(damaged("its checksum is another one"));
        }

        Ok(bytes)
    }
}

/// Returns the position and the fields of the end record.
fn end_of(file: &mut (impl Read + Seek), length: u64) -> io::Result<(u64, [u8; END_SIZE])> {
    // The record can have a comment of 64 KiB.
    let from = length.saturating_sub(END_SIZE as u64 + u64::from(u16::MAX));
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;

    let windows = tail.windows(END_SIZE).enumerate().rev();
    let found = windows
        .filter(|(_, window)| window.starts_with(&END))
        .find_map(|(at, window)| Some((from + at as u64, window.try_into().ok()?)));
    found.ok_or_else(|| io::Error::other("it is no zip archive"))
}

/// Reads the central directory.
fn listed(directory: &[u8], count: u16, problems: &mut Vec<String>) -> Vec<ArchiveEntry> {
    let mut entries = Vec::new();
    let mut rest = directory;
    while rest.len() >= CENTRAL_SIZE && rest.starts_with(&CENTRAL) {
        let fields = Fields(rest);
        let lengths = [28, 30, 32].map(|at| usize::from(fields.u16(at)));
        let [name, extra, comment] = lengths;
        // The loop ends with a rest, which the check behind it reports as a damaged list.
        let Some(variable) = rest.get(CENTRAL_SIZE..CENTRAL_SIZE + name + extra + comment) else {
            break;
        };

        let (name, after) = variable.split_at(name);
        let name = text(name, problems);

        let flags = fields.u16(8);
        let method = fields.u16(10);
        if flags & !HARMLESS_FLAGS != 0 || ![STORED, DEFLATED].contains(&method) {
            problems.push(format!("{name} is encrypted, or packed in an unknown way"));
        }

        // Extra fields can hold another name or size. Some readers take
        // those, others take the ones of the entry.
        if comment != 0 || !is_plain_extra(&after[..extra]) {
            problems.push(format!(
                "{name} has a comment, another name or another size"
            ));
        }

        // The upper half is the mode of Unix, which begins with the type of the file.
        let kind = fields.u32(38) >> 28;
        let expected = if name.ends_with('/') { 0o4 } else { 0o10 };
        // A link could point out of the folder in which a person unpacks the bundle.
        if fields.u16(4) >> 8 == 3 && kind != 0 && kind != expected {
            problems.push(format!("{name} is a link or a special file"));
        }

        entries.push(ArchiveEntry {
            flags,
            method,
            crc: fields.u32(16),
            packed: u64::from(fields.u32(20)),
            size: u64::from(fields.u32(24)),
            header: u64::from(fields.u32(42)),
            data: 0,
            name,
        });

        rest = &rest[CENTRAL_SIZE + lengths.iter().sum::<usize>()..];
    }

    if !rest.is_empty() || entries.len() != usize::from(count) {
        problems.push("the list of the archive's files is damaged".to_owned());
    }

    entries
}

/// Returns a name, and reports one that is not UTF-8.
fn text(name: &[u8], problems: &mut Vec<String>) -> String {
    let shown = String::from_utf8_lossy(name);
    if matches!(shown, std::borrow::Cow::Owned(_)) {
        problems.push(format!("{shown:?} is an unsafe name"));
    }
    shown.into_owned()
}

fn is_plain_extra(mut extra: &[u8]) -> bool {
    while extra.len() >= 4 {
        let fields = Fields(extra);
        let end = 4 + usize::from(fields.u16(2));
        if FORBIDDEN_EXTRAS.contains(&fields.u16(0)) || end > extra.len() {
            return false;
        }
        extra = &extra[end..];
    }

    extra.is_empty()
}

fn check_names(entries: &[ArchiveEntry], problems: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for ArchiveEntry { name, .. } in entries {
        // A person may unpack the archive with a program that follows such a name out of the folder.
        if is_unsafe(name) {
            problems.push(format!("{name:?} is an unsafe name"));
        }
        if !seen.insert(name.as_str()) {
            problems.push(format!("{name} is in the archive twice"));
        }
    }
}

/// Whether a name could lead out of the folder that an archive is unpacked into, or looks like another one.
pub(super) fn is_unsafe(name: &str) -> bool {
    let parts = name.strip_suffix('/').unwrap_or(name).split('/');
    let is_bad = |part: &str| matches!(part, "" | "." | "..");
    parts.into_iter().any(is_bad)
        || name.contains(['\\', ':'])
        || name.chars().any(char::is_control)
}

fn check_sizes(entries: &[ArchiveEntry], limits: ArchiveLimits, problems: &mut Vec<String>) {
    for entry in entries.iter().filter(|entry| entry.size > limits.file) {
        let (name, size, limit) = (&entry.name, entry.size, limits.file);
        problems.push(format!("{name} has {size} bytes, the limit is {limit}"));
    }

    let total: u64 = entries.iter().map(|entry| entry.size).sum();
    if total > limits.total {
        let limit = limits.total;
        problems.push(format!(
            "the files have {total} bytes, the limit is {limit}"
        ));
    }

    for entry in entries {
        let has_bytes = entry.size > 0 || entry.packed > 0;
        if has_bytes && entry.name.ends_with('/') {
            problems.push(format!("the folder {} has bytes of its own", entry.name));
        }

        // A stored file has one size. With two of them, readers disagree about its end.
        if entry.method == STORED && entry.size != entry.packed {
            problems.push(format!("{} has two sizes", entry.name));
        }
    }
}

/// Walks the local headers from the first byte to the central directory, and compares them with it.
fn walk(
    file: &mut (impl Read + Seek),
    entries: &mut [ArchiveEntry],
    end: u64,
    problems: &mut Vec<String>,
) -> io::Result<()> {
    // The list may have another order than the bytes, but its files must fill the archive without a gap.
    let mut order: Vec<&mut ArchiveEntry> = entries.iter_mut().collect();
    order.sort_by_key(|entry| entry.header);

    let mut at = 0;
    for entry in order {
        if entry.header != at {
            let hidden = hidden(file, at)?;
            problems.push(format!("{hidden} in front of {}", entry.name));
        }

        file.seek(SeekFrom::Start(entry.header))?;
        let Some(header) = local(file)? else {
            problems.push(format!("{} has no header", entry.name));
            continue;
        };

        if let Some(what) = header.contradicts(entry) {
            let name = &entry.name;
            problems.push(format!(
                "{name} has {what} in front of its bytes than in the list"
            ));
        }

        entry.data = entry.header + header.length;
        at = entry.data + entry.packed;
        if entry.flags & HAS_DESCRIPTOR != 0 {
            at += descriptor(file, at, entry)?;
        }
    }

    if at != end {
        let hidden = hidden(file, at)?;
        problems.push(format!("{hidden} behind the last file"));
    }

    Ok(())
}

/// Describes bytes that belong to no listed file.
fn hidden(file: &mut (impl Read + Seek), at: u64) -> io::Result<String> {
    file.seek(SeekFrom::Start(at))?;
    Ok(match local(file)? {
        Some(header) => format!("a file {:?} that the list lacks is", header.name),
        None => "bytes that belong to no file are".to_owned(),
    })
}

/// Header in front of a file.
struct LocalHeader {
    name: String,
    flags: u16,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    plain: bool,
    /// Bytes of the header with name and extra fields.
    length: u64,
}

impl LocalHeader {
    /// Returns what differs from the entry of the list.
    fn contradicts(&self, entry: &ArchiveEntry) -> Option<&'static str> {
        // With a descriptor behind the bytes, the header may have zeros,
        // because the writer did not know them yet.
        let later = self.flags & HAS_DESCRIPTOR != 0;
        let same = |here: u64, listed: u64| here == listed || later && here == 0;
        if self.name != entry.name || !self.plain {
            return Some("another name");
        }
        if self.flags != entry.flags || self.method != entry.method {
            return Some("another way of packing");
        }

        let sizes = same(self.packed, entry.packed) && same(self.size, entry.size);
        let sum = same(u64::from(self.crc), u64::from(entry.crc));
        (!sizes || !sum).then_some("another size or checksum")
    }
}

/// Reads the header at the present position; `None` if there is none.
fn local(file: &mut impl Read) -> io::Result<Option<LocalHeader>> {
    let mut fixed = Vec::new();
    file.take(LOCAL_SIZE as u64).read_to_end(&mut fixed)?;
    // A header that is cut off is a finding of the archive and no error of reading it.
    if fixed.len() < LOCAL_SIZE || !fixed.starts_with(&LOCAL) {
        return Ok(None);
    }

    let fields = Fields(&fixed);
    let [name, extra] = [26, 28].map(|at| usize::from(fields.u16(at)));
    let mut variable = Vec::new();
    file.take((name + extra) as u64)
        .read_to_end(&mut variable)?;

    if variable.len() < name + extra {
        return Ok(None);
    }

    let (name, extra) = variable.split_at(name);
    Ok(Some(LocalHeader {
        name: String::from_utf8_lossy(name).into_owned(),
        flags: fields.u16(6),
        method: fields.u16(8),
        crc: fields.u32(14),
        packed: u64::from(fields.u32(18)),
        size: u64::from(fields.u32(22)),
        plain: is_plain_extra(extra),
        length: (LOCAL_SIZE + variable.len()) as u64,
    }))
}

/// Returns the size of the descriptor behind a file; 0 if it is not the one of the list.
fn descriptor(file: &mut (impl Read + Seek), at: u64, entry: &ArchiveEntry) -> io::Result<u64> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(16).read_to_end(&mut bytes)?;

    // The mark at its beginning is optional.
    let signed = bytes.starts_with(&DESCRIPTOR);
    let values = bytes.get(if signed { 4 } else { 0 }..).unwrap_or_default();
    if values.len() < 12 {
        return Ok(0);
    }

    let fields = Fields(values);
    let same = fields.u32(0) == entry.crc
        && u64::from(fields.u32(4)) == entry.packed
        && u64::from(fields.u32(8)) == entry.size;
    // With a size of 0, the next header is not at its place, and the walk reports the bytes between.
    Ok(match (same, signed) {
        (false, _) => 0,
        (true, true) => 16,
        (true, false) => 12,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    const LIMITS: ArchiveLimits = ArchiveLimits {
        file: 1000,
        total: 1500,
    };

    fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in files {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    /// Replaces a name everywhere by another one of the same length.
    fn renamed(mut zip: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
        assert_eq!(from.len(), to.len());
        for at in places(&zip, from) {
            zip[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
        zip
    }

    fn places(zip: &[u8], text: &str) -> Vec<usize> {
        let windows = zip.windows(text.len()).enumerate();
        let found = windows.filter(|(_, window)| *window == text.as_bytes());
        found.map(|(at, _)| at).collect()
    }

    fn problems(zip: Vec<u8>) -> Vec<String> {
        Archive::open(Cursor::new(zip), LIMITS).unwrap().problems
    }

    #[track_caller]
    fn refused(zip: Vec<u8>, why: &str) {
        let problems = problems(zip).join("; ");
        assert!(problems.contains(why), "{problems}");
    }

    fn two_files() -> Vec<u8> {
        zipped(&[
            ("one", b"first"),
            ("two", b"second, longer, longer, longer"),
        ])
    }

    #[test]
    fn a_plain_archive_is_read() {
        let mut archive = Archive::open(Cursor::new(two_files()), LIMITS).unwrap();
        assert_eq!(archive.problems, Vec::<String>::new());
        assert_eq!(archive.names().collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(archive.read("one").unwrap().unwrap(), b"first");
        let second = b"second, longer, longer, longer";
        assert_eq!(archive.read("two").unwrap().unwrap(), second);
        assert!(archive.read("three").is_none());
    }

    #[test]
    fn folders_and_stored_files_are_read() {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.add_directory("components", SimpleFileOptions::default())
            .unwrap();
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        zip.start_file("components/one", stored).unwrap();
        zip.write_all(b"first").unwrap();
        let zip = zip.finish().unwrap().into_inner();
        let mut archive = Archive::open(Cursor::new(zip), LIMITS).unwrap();
        assert_eq!(archive.problems, Vec::<String>::new());
        assert_eq!(archive.read("components/one").unwrap().unwrap(), b"first");
    }

    #[test]
    fn a_streamed_archive_is_read() {
        let mut zip = ZipWriter::new_stream(Vec::new());
        zip.start_file("one", SimpleFileOptions::default()).unwrap();
        zip.write_all(b"first").unwrap();
        let zip = zip.finish().unwrap().into_inner();
        let mut archive = Archive::open(Cursor::new(zip), LIMITS).unwrap();
        assert_eq!(archive.problems, Vec::<String>::new());
        assert_eq!(archive.read("one").unwrap().unwrap(), b"first");
    }

    #[test]
    fn a_name_that_is_there_twice_is_refused() {
        let zip = zipped(&[("one", b"first"), ("two", b"second")]);
        refused(renamed(zip, "two", "one"), "one is in the archive twice");
    }

    #[test]
    fn a_file_that_the_list_lacks_is_refused_by_its_name() {
        // A second file in front of, between, or behind those of the list.
        let hidden = zipped(&[("bad", b"forged")]);
        let hidden = &hidden[..places(&hidden, "PK\x01\x02")[0]];

        let zip = two_files();
        for at in [
            0,
            places(&zip, "PK\x03\x04")[1],
            places(&zip, "PK\x01\x02")[0],
        ] {
            let mut forged = zip.clone();
            forged.splice(at..at, hidden.iter().copied());

            // The positions of the files behind it, and of the list, in the records.
            let moved = u32::try_from(hidden.len()).unwrap();
            let move_by = |forged: &mut Vec<u8>, position: usize| {
                let field = &forged[position..position + 4];
                let value = u32::from_le_bytes(field.try_into().unwrap());
                if value as usize >= at {
                    let value = (value + moved).to_le_bytes();
                    forged[position..position + 4].copy_from_slice(&value);
                }
            };
            for central in places(&forged, "PK\x01\x02") {
                move_by(&mut forged, central + 42);
            }

            let end = places(&forged, "PK\x05\x06")[0];
            move_by(&mut forged, end + 16);
            refused(forged, "\"bad\" that the list lacks");
        }
    }

    #[test]
    fn bytes_that_belong_to_no_file_are_refused() {
        let zip = two_files();
        let behind = "bytes follow the end of the archive";
        refused([zip.clone(), b"more".to_vec()].concat(), behind);
        refused(
            [b"more".to_vec(), zip.clone()].concat(),
            "bytes that belong to no file are in the archive",
        );

        // In front of the list, with the right position.
        let mut between = zip.clone();
        let list = places(&zip, "PK\x01\x02")[0];
        between.splice(list..list, *b"more");
        let end = places(&between, "PK\x05\x06")[0];
        let moved = u32::try_from(list + 4).unwrap().to_le_bytes();
        between[end + 16..end + 20].copy_from_slice(&moved);

        let behind = "bytes that belong to no file are behind the last file";
        refused(between, behind);

        // Two whole archives in one file.
        refused([zip.clone(), zip].concat(), "belong to no file");
    }

    #[test]
    fn headers_that_contradict_the_list_are_refused() {
        let zip = two_files();
        let mut other_name = zip.clone();
        let first = places(&zip, "one")[0];
        other_name[first..first + 3].copy_from_slice(b"two");
        refused(other_name, "one has another name");

        for field in [14, 18, 22] {
            let mut other_size = zip.clone();
            other_size[field] ^= 1;
            refused(other_size, "one has another size or checksum");
        }

        let mut other_packing = zip.clone();
        other_packing[8] = 0;
        refused(other_packing, "one has another way of packing");
        let mut none = zip;
        none[0] = b'x';

        refused(none, "one has no header");
    }

    /// Each field of the list, changed alone, has its sentence.
    #[test]
    fn a_list_that_cannot_be_trusted_is_refused_by_its_field() {
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("one", stored).unwrap();
        zip.write_all(b"first").unwrap();
        let zip = zip.finish().unwrap().into_inner();
        let list = places(&zip, "PK\x01\x02")[0];

        let end = places(&zip, "PK\x05\x06")[0];
        for (at, bits, why) in [
            (list + 8, 1, "one is encrypted, or packed in an unknown way"),
            (
                list + 10,
                9,
                "one is encrypted, or packed in an unknown way",
            ),
            (list + 24, 1, "one has two sizes"),
            (end + 4, 1, "the archive is one of several parts"),
            (end + 10, 3, "the list of the archive's files is damaged"),
        ] {
            let mut changed = zip.clone();
            changed[at] ^= bits;
            refused(changed, why);
        }

        let mut with_comment = zip;
        with_comment.splice(list + CENTRAL_SIZE + 3..list + CENTRAL_SIZE + 3, *b"note");
        with_comment[list + 32] = 4;
        let end = places(&with_comment, "PK\x05\x06")[0];
        with_comment[end + 12] += 4;

        refused(
            with_comment,
            "one has a comment, another name or another size",
        );
    }

    #[test]
    fn a_file_with_other_bytes_cannot_be_read() {
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("one", stored).unwrap();
        zip.write_all(b"first").unwrap();
        let zip = renamed(zip.finish().unwrap().into_inner(), "first", "other");
        let mut archive = Archive::open(Cursor::new(zip), LIMITS).unwrap();
        let why = archive.read("one").unwrap().unwrap_err();
        assert_eq!(why, "one cannot be read: its checksum is another one");
    }

    #[test]
    fn unsafe_names_are_refused() {
        for name in ["/on", "../", "a\\b", "a:b", "a\nb", "a//", "./a"] {
            let zip = zipped(&[("one", b"first")]);
            let zip = renamed(zip, "one", name);
            refused(zip, "is an unsafe name");
        }

        let mut no_text = zipped(&[("one", b"first")]);
        for at in places(&no_text.clone(), "one") {
            no_text[at] = 0xff;
        }

        refused(no_text, "is an unsafe name");
    }

    #[test]
    fn files_over_the_limit_are_refused() {
        let large = vec![0; 1001];
        refused(zipped(&[("one", &large)]), "one has 1001 bytes");
        let half = vec![0; 800];
        let zip = zipped(&[("one", &half), ("two", &half)]);
        refused(zip, "the files have 1600 bytes, the limit is 1500");
    }

    #[test]
    fn a_file_with_more_bytes_than_stated_is_refused() {
        let zip = zipped(&[("one", &[0; 900])]);
        // Both headers state fewer bytes.
        let mut shorter = zip.clone();
        let list = places(&zip, "PK\x01\x02")[0];
        for at in [22, list + 24] {
            shorter[at..at + 4].copy_from_slice(&100_u32.to_le_bytes());
        }

        let mut archive = Archive::open(Cursor::new(shorter), LIMITS).unwrap();
        assert_eq!(archive.problems, Vec::<String>::new());

        let why = archive.read("one").unwrap().unwrap_err();
        assert!(why.contains("another size than stated"), "{why}");
    }

    #[test]
    fn links_are_refused() {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default();
        zip.add_symlink("one", "two", options).unwrap();
        let zip = zip.finish().unwrap().into_inner();
        refused(zip, "one is a link");
    }

    #[test]
    fn no_flipped_bit_in_a_header_goes_unnoticed() {
        let zip = two_files();
        let intact = |zip: Vec<u8>| {
            let mut archive = Archive::open(Cursor::new(zip), LIMITS).ok()?;
            let read = |archive: &mut Archive<_>, name: &str| archive.read(name)?.ok();
            let files = (read(&mut archive, "one")?, read(&mut archive, "two")?);
            archive.problems.is_empty().then_some(files)
        };
        let files = intact(zip.clone());
        assert!(files.is_some());

        for bit in 0..zip.len() * 8 {
            let mut flipped = zip.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // Dates, versions and modes are no part of the evidence; names and bytes are.
            let read = intact(flipped);
            assert!(read.is_none() || read == files, "bit {bit}");
        }
    }

    #[test]
    fn a_file_that_is_no_archive_is_an_error() {
        let why = |bytes| {
            let opened = Archive::open(Cursor::new(bytes), LIMITS);
            opened.err().unwrap().to_string()
        };
        for bytes in [b"".to_vec(), b"no zip".to_vec(), vec![0; 70_000]] {
            assert_eq!(why(bytes), "it is no zip archive");
        }

        let mut zip = two_files();
        let end = places(&zip, "PK\x05\x06")[0];
        zip[end + 15] = 1;
        assert_eq!(why(zip), "the list of the archive's files is too large");
    }
}
