//! Rows of a tape, one after the other: CSV (RFC 4180) or JSON Lines, in UTF-8 or UTF-16.
//!
//! A row that cannot be read is reported with its line, and the next one follows. Memory is bounded by the longest
//! row that is accepted.

use std::fmt;
use std::io::{self, Read};

use csv_core::ReadRecordResult;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::map::{COLUMNS, ColumnSeparator, NAME, TapeMap, plain_name};
use crate::envelope::words;

/// Bytes that are looked at before the first row is read.
const HEAD: usize = 64 * 1024;
/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;
/// Longest row, in bytes.
const ROW: usize = 1024 * 1024;
/// Most cells of a row.
const CELLS: usize = 2_000;
/// Most rows of a tape.
pub const ROWS: u64 = 1_000_000;

words! {
    /// Format of a tape.
    TapeFormat {
        // RFC 4180, with the names of the columns in the first line.
        Csv = "csv",
        // One JSON object on each line.
        JsonLines = "jsonl",
    }
}

impl TapeFormat {
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv",
            Self::JsonLines => "application/jsonl",
        }
    }
}

/// A row with the cells of the mapped columns, in the order of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapeRow {
    /// Line of the file on which the row begins, from 1.
    pub line: u64,
    /// None for a member that a line of JSON does not have.
    pub cells: Vec<Option<String>>,
}

/// A row that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowProblem {
    pub line: u64,
    /// Stable code for programs.
    pub code: &'static str,
    pub message: String,
}

/// A file that is no tape for this map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TapeRefusal {
    /// Stable code for programs.
    pub code: &'static str,
    pub message: String,
}

/// Why a tape cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Refused(#[from] TapeRefusal),
    #[error(transparent)]
    Read(#[from] io::Error),
}

/// Reads the rows of a tape.
pub struct TapeReader {
    rows: RowSource,
    /// Mapped columns, as the file names them.
    names: Vec<String>,
    read: u64,
}

enum RowSource {
    Csv {
        records: Box<CsvParser>,
        /// Number of columns of the header.
        width: usize,
        /// Place of each mapped column.
        places: Vec<usize>,
    },
    JsonLines(JsonLineParser),
}

fn refused(code: &'static str, message: impl Into<String>) -> TapeRefusal {
    TapeRefusal {
        code,
        message: message.into(),
    }
}

impl TapeReader {
    /// Opens a tape, and finds the mapped columns.
    ///
    /// # Errors
    /// The file is no tape for this map, or cannot be read.
    pub fn open(
        source: impl Read + Send + 'static,
        format: TapeFormat,
        map: &TapeMap,
    ) -> Result<Self, OpenError> {
        let (head, source) = decoded(source)?;
        let names = map
            .columns
            .iter()
            .map(|column| column.column.clone())
            .collect();
        let rows = match format {
            TapeFormat::JsonLines => {
                RowSource::JsonLines(JsonLineParser(CountedLines::new(source)))
            }
            TapeFormat::Csv => csv(&head, source, map)?,
        };

        Ok(Self {
            rows,
            names,
            read: 0,
        })
    }

    /// Returns the next row, or why it cannot be read.
    ///
    /// # Errors
    /// The file cannot be read further.
    pub fn next_row(&mut self) -> io::Result<Option<Result<TapeRow, RowProblem>>> {
        let next = match &mut self.rows {
            RowSource::Csv {
                records,
                width,
                places,
            } => records.next_row(*width, places)?,
            RowSource::JsonLines(lines) => lines.next_row(&self.names)?,
        };
        self.read += u64::from(next.is_some());
        if self.read <= ROWS {
            return Ok(next);
        }
        Err(io::Error::other(TooManyRows))
    }
}

/// Returns the names of a file's columns as it writes them, at most as many as a map has: of CSV those of the first row, of
/// JSON Lines the members of the first line. A column without a name, or with one that is too
/// long for a map, is left out.
///
/// # Errors
/// The file has no names, or one twice, or cannot be read.
pub fn column_names(
    source: impl Read + Send + 'static,
    format: TapeFormat,
) -> Result<Vec<String>, OpenError> {
    let (head, source) = decoded(source)?;
    let mut names = Vec::new();
    match format {
        TapeFormat::Csv => {
            for separator in ColumnSeparator::ALL {
                // The right separator makes the most columns of the header.
                let found = written_names(&head, *separator)?;
                if found.len() > names.len() {
                    names = found;
                }
            }
        }
        TapeFormat::JsonLines => {
            names = JsonLineParser(CountedLines::new(source)).first_names()?;
        }
    }

    for name in &mut names {
        *name = name.trim().to_owned();
    }
    names.retain(|name| (1..=NAME).contains(&name.chars().count()));
    names.truncate(COLUMNS);
    if names.is_empty() {
        return Err(refused("no_header", "The file begins with no names of columns").into());
    }
    let mut plain: Vec<String> = names.iter().map(|name| plain_name(name)).collect();
    plain.sort_unstable();
    if let Some(pair) = plain.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(duplicated(&pair[0]).into());
    }
    Ok(names)
}

/// Error of a tape with more than [`ROWS`] rows.
#[derive(Debug, thiserror::Error)]
#[error("the tape has more than {ROWS} rows; split it")]
pub struct TooManyRows;

/// Decodes the text of a file. Returns its beginning, and all of it.
fn decoded(
    mut source: impl Read + Send + 'static,
) -> Result<(Vec<u8>, Box<dyn Read + Send>), OpenError> {
    let mut head = Vec::new();
    (&mut source).take(HEAD as u64).read_to_end(&mut head)?;
    let all = io::Cursor::new(head.clone()).chain(source);
    let is_wide = head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]);

    let mut text: Box<dyn Read + Send> = if head.starts_with(&[0xff, 0xfe, 0, 0]) {
        return Err(refused("utf_32", "The file is UTF-32; save it as UTF-8").into());
    } else if is_wide {
        Box::new(Utf16::new(all, head[0] == 0xfe))
    } else if head.starts_with(b"PK\x03\x04") || head.starts_with(b"\xd0\xcf\x11\xe0") {
        let message = "The file is a spreadsheet or an archive; save the table as CSV (UTF-8)";
        return Err(refused("spreadsheet", message).into());
    } else if head.starts_with(b"\x1f\x8b") {
        return Err(refused("compressed", "The file is compressed; send it as it is").into());
    } else if head.iter().take(1024).any(|byte| *byte == 0) {
        let message = "The file is UTF-16 without a byte order mark, or no text; save it as UTF-8";
        return Err(refused("utf_16_without_mark", message).into());
    } else {
        Box::new(all)
    };

    let mut beginning = Vec::new();
    (&mut text).take(HEAD as u64).read_to_end(&mut beginning)?;
    if let Some(rest) = beginning.strip_prefix(b"\xef\xbb\xbf") {
        beginning = rest.to_vec();
    }
    if beginning.iter().all(u8::is_ascii_whitespace) {
        return Err(refused("empty", "The file is empty").into());
    }

    let all = io::Cursor::new(beginning.clone()).chain(text);
    Ok((beginning, Box::new(all)))
}

/// Text in UTF-16 as UTF-8. A unit that is no character becomes U+FFFD, which no row may contain.
struct Utf16<R> {
    source: R,
    is_big_endian: bool,
    /// Bytes of a character that is not complete yet.
    rest: Vec<u8>,
    ready: Vec<u8>,
    given: usize,
    has_begun: bool,
    is_over: bool,
}

impl<R: Read> Utf16<R> {
    fn new(source: R, is_big_endian: bool) -> Self {
        Self {
            source,
            is_big_endian,
            rest: Vec::new(),
            ready: Vec::new(),
            given: 0,
            has_begun: false,
            is_over: false,
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut piece = [0; 8192];
        let length = self.source.read(&mut piece)?;
        self.is_over = length == 0;
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend_from_slice(&piece[..length]);

        let pairs = bytes.chunks_exact(2);
        let odd = pairs.remainder().to_vec();
        let units = pairs.map(|pair| {
            let pair = [pair[0], pair[1]];
            if self.is_big_endian {
                u16::from_be_bytes(pair)
            } else {
                u16::from_le_bytes(pair)
            }
        });
        let mut units: Vec<u16> = units.collect();

        self.rest = odd;
        // The second half of a pair of surrogates is in the next piece.
        let half = units
            .last()
            .copied()
            .filter(|unit| (0xd800..0xdc00).contains(unit));
        if let Some(half) = half.filter(|_| !self.is_over) {
            units.pop();
            let bytes = if self.is_big_endian {
                half.to_be_bytes()
            } else {
                half.to_le_bytes()
            };
            self.rest.splice(0..0, bytes);
        }
        if self.is_over && !self.rest.is_empty() {
            self.rest.clear();
            units.push(0xfffd);
        }

        let mut text = String::from_utf16_lossy(&units);
        if !self.has_begun && !text.is_empty() {
            self.has_begun = true;
            text = text
                .strip_prefix('\u{feff}')
                .map(str::to_owned)
                .unwrap_or(text);
        }
        self.ready = text.into_bytes();
        self.given = 0;
        Ok(())
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.ready.len() && !self.is_over {
            self.fill()?;
        }
        let waiting = &self.ready[self.given..];
        let length = waiting.len().min(buffer.len());
        buffer[..length].copy_from_slice(&waiting[..length]);
        self.given += length;
        Ok(length)
    }
}

/// Bytes of a file with the number of the line that is read next.
struct CountedLines {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    line: u64,
    after_return: bool,
    is_over: bool,
}

impl CountedLines {
    fn new(source: Box<dyn Read + Send>) -> Self {
        Self {
            source,
            buffer: vec![0; PIECE],
            begin: 0,
            end: 0,
            line: 1,
            after_return: false,
            is_over: false,
        }
    }

    /// Returns the bytes that wait, and reads some if there are none. Empty at the end of the file.
    fn waiting(&mut self) -> io::Result<&[u8]> {
        while self.begin == self.end && !self.is_over {
            self.begin = 0;
            self.end = self.source.read(&mut self.buffer)?;
            self.is_over = self.end == 0;
        }
        Ok(&self.buffer[self.begin..self.end])
    }

    /// Takes bytes off, and counts the lines that end in them.
    fn take(&mut self, length: usize) {
        for byte in &self.buffer[self.begin..self.begin + length] {
            let ends = *byte == b'\r' || *byte == b'\n' && !self.after_return;
            self.line += u64::from(ends);
            self.after_return = *byte == b'\r';
        }
        self.begin += length;
    }

    /// Takes off empty lines.
    fn skip_empty_lines(&mut self) -> io::Result<()> {
        loop {
            let waiting = self.waiting()?;
            let is_end = |byte: &u8| *byte == b'\r' || *byte == b'\n';
            let length = waiting.iter().take_while(|byte| is_end(byte)).count();
            if length == 0 {
                return Ok(());
            }
            self.take(length);
        }
    }
}

/// Records of a CSV file.
struct CsvParser {
    source: CountedLines,
    parser: csv_core::Reader,
    output: Vec<u8>,
    ends: Vec<usize>,
}

/// A record whose cells are in the buffers of its reader.
struct CsvRecord {
    line: u64,
    last_line: u64,
    cells: usize,
    is_too_long: bool,
    /// The file ends inside quotation marks.
    is_open: bool,
}

impl CsvParser {
    fn new(source: Box<dyn Read + Send>, separator: ColumnSeparator) -> Self {
        let parser = csv_core::ReaderBuilder::new()
            .delimiter(separator.byte())
            .build();
        Self {
            source: CountedLines::new(source),
            parser,
            output: vec![0; 16 * 1024],
            ends: vec![0; CELLS + 1],
        }
    }

    fn next(&mut self) -> io::Result<Option<CsvRecord>> {
        self.source.skip_empty_lines()?;
        let (line, mut written, mut cells, mut quotes) = (self.source.line, 0, 0, 0);
        let mut is_too_long = false;
        loop {
            let input = self.source.waiting()?;
            let (result, read, wrote, ended) = self.parser.read_record(
                input,
                &mut self.output[written..],
                &mut self.ends[cells..],
            );
            let at_end = input.is_empty();
            quotes += input[..read].iter().filter(|byte| **byte == b'"').count();
            self.source.take(read);
            written += wrote;
            cells += ended;

            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if self.output.len() < ROW => {
                    self.output.resize(self.output.len() * 2, 0);
                }
                // The rest of the record is parsed all the same, to find its end.
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    is_too_long = true;
                    (written, cells) = (0, 0);
                }
                ReadRecordResult::Record => {
                    return Ok(Some(CsvRecord {
                        line,
                        // The end of the record's last line is taken off already.
                        last_line: self
                            .source
                            .line
                            .saturating_sub(u64::from(!at_end))
                            .max(line),
                        cells,
                        is_too_long,
                        is_open: at_end && quotes % 2 == 1,
                    }));
                }
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    fn cell(&self, index: usize) -> &[u8] {
        let begin = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.output[begin..self.ends[index]]
    }

    fn next_row(
        &mut self,
        width: usize,
        places: &[usize],
    ) -> io::Result<Option<Result<TapeRow, RowProblem>>> {
        let Some(record) = self.next()? else {
            return Ok(None);
        };

        let line = record.line;
        let problem = |code, message: String| {
            Ok(Some(Err(RowProblem {
                line,
                code,
                message,
            })))
        };
        if record.is_too_long {
            let message = format!(
                "The row is longer than {ROW} bytes or {CELLS} cells; is a quotation mark not closed?"
            );
            return problem("too_long", message);
        }
        if record.is_open {
            let message =
                "A quotation mark of the row is not closed; the rest of the file belongs to it";
            return problem("open_quotation", message.into());
        }
        if record.cells != width {
            let mut message = format!("The row has {} cells, and the header {width}", record.cells);
            if record.last_line > line {
                message += &format!(
                    "; lines {line} to {} are one row, because of a quotation mark",
                    record.last_line
                );
            }
            return problem("width", message);
        }

        let cells: Option<Vec<Option<String>>> = places
            .iter()
            .map(|place| text(self.cell(*place)).map(Some))
            .collect();
        match cells {
            Some(cells) => Ok(Some(Ok(TapeRow { line, cells }))),
            None => problem(
                "encoding",
                "The row is not UTF-8; save the file as UTF-8".into(),
            ),
        }
    }
}

/// Returns a text without characters that were lost on the way.
fn text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.contains('\u{fffd}')).then(|| text.to_owned())
}

/// Finds the separator and the mapped columns in the header.
fn csv(head: &[u8], source: Box<dyn Read + Send>, map: &TapeMap) -> Result<RowSource, OpenError> {
    let wanted: Vec<String> = map
        .columns
        .iter()
        .map(|column| plain_name(&column.column))
        .collect();
    let candidates: Vec<(ColumnSeparator, Vec<String>)> = ColumnSeparator::ALL
        .iter()
        .map(|separator| Ok((*separator, header(head, *separator)?)))
        .collect::<Result<_, OpenError>>()?;
    let found = |names: &[String]| wanted.iter().filter(|name| names.contains(name)).count();
    // The first one of equals: a header of one column looks the same with all of them.
    let best = candidates
        .iter()
        .rev()
        .max_by_key(|(_, names)| found(names));
    let Some((best, best_names)) = best else {
        return Err(refused("no_header", "The file has no header").into());
    };

    let (separator, names) = match map.separator {
        None => (*best, best_names),
        Some(given) => {
            let own = candidates.iter().find(|(separator, _)| *separator == given);
            let names = own.map_or(best_names, |(_, names)| names);
            if found(names) < found(best_names) {
                let message = format!(
                    "With the separator {:?} the header has {} columns; the file seems to use {:?}",
                    given.as_str(),
                    names.len(),
                    best.as_str()
                );
                return Err(refused("wrong_separator", message).into());
            }
            (given, names)
        }
    };

    let places = places(names, map, &wanted)?;
    let mut records = Box::new(CsvParser::new(source, separator));
    let width = names.len();
    records.next()?;
    Ok(RowSource::Csv {
        records,
        width,
        places,
    })
}

/// Returns the names of the first record, as they are compared.
fn header(head: &[u8], separator: ColumnSeparator) -> Result<Vec<String>, OpenError> {
    let names = written_names(head, separator)?;
    Ok(names.iter().map(|name| plain_name(name)).collect())
}

/// Returns the names of the first record, as the file writes them.
fn written_names(head: &[u8], separator: ColumnSeparator) -> Result<Vec<String>, OpenError> {
    let source: Box<dyn Read + Send> = Box::new(io::Cursor::new(head.to_vec()));
    let mut records = CsvParser::new(source, separator);
    let Some(record) = records.next()? else {
        return Ok(Vec::new());
    };
    if record.is_too_long || record.is_open {
        return Err(refused("no_header", "The first row is too long for a header").into());
    }

    let names = (0..record.cells).map(|index| text(records.cell(index)));
    let names: Option<Vec<String>> = names.collect();
    let unreadable = || {
        refused(
            "encoding",
            "The header is not UTF-8; save the file as UTF-8",
        )
    };
    Ok(names.ok_or_else(unreadable)?)
}

/// Returns the place of each mapped column in the header.
fn places(names: &[String], map: &TapeMap, wanted: &[String]) -> Result<Vec<usize>, TapeRefusal> {
    let missing: Vec<&str> = wanted
        .iter()
        .zip(&map.columns)
        .filter(|(name, _)| !names.contains(name))
        .map(|(_, column)| column.column.as_str())
        .collect();
    if missing.len() == wanted.len() {
        let message = format!(
            "The first row has none of the mapped columns, so the file has no header or another one. It has: {}",
            names.join(" | ").chars().take(300).collect::<String>()
        );
        return Err(refused("no_header", message));
    }
    if !missing.is_empty() {
        let message = format!("The header lacks the mapped columns {}", missing.join(", "));
        return Err(refused("missing_column", message));
    }

    let mut places = Vec::with_capacity(wanted.len());
    for name in wanted {
        let mut of_name = (0..).zip(names).filter(|(_, other)| *other == name);
        let (Some((place, _)), None) = (of_name.next(), of_name.next()) else {
            return Err(duplicated(name));
        };
        places.push(place);
    }
    Ok(places)
}

fn duplicated(name: &str) -> TapeRefusal {
    let message = format!("The header has the column \"{name}\" twice; rename one of them");
    refused("duplicated_column", message)
}

/// Lines of a file of JSON objects.
struct JsonLineParser(CountedLines);

impl JsonLineParser {
    /// Returns the names of the members of the first line; none if it is no JSON object.
    fn first_names(&mut self) -> io::Result<Vec<String>> {
        self.0.skip_empty_lines()?;
        let line = self.next_line()?.unwrap_or_default().0;
        let members = text(&line).and_then(|line| serde_json::from_str::<RawMembers>(&line).ok());
        let members = members.map(|members| members.0).unwrap_or_default();
        Ok(members.into_iter().map(|(name, _)| name).collect())
    }

    fn next_row(&mut self, names: &[String]) -> io::Result<Option<Result<TapeRow, RowProblem>>> {
        let (line, bytes, is_too_long) = loop {
            self.0.skip_empty_lines()?;
            let line = self.0.line;
            let Some((bytes, is_too_long)) = self.next_line()? else {
                return Ok(None);
            };
            if is_too_long || !bytes.iter().all(u8::is_ascii_whitespace) {
                break (line, bytes, is_too_long);
            }
        };

        let problem = |code, message: String| RowProblem {
            line,
            code,
            message,
        };
        if is_too_long {
            let message = format!("The line is longer than {ROW} bytes");
            return Ok(Some(Err(problem("too_long", message))));
        }
        let Some(text) = text(&bytes) else {
            let message = "The line is not UTF-8; save the file as UTF-8";
            return Ok(Some(Err(problem("encoding", message.into()))));
        };
        let row = match serde_json::from_str::<RawMembers>(&text) {
            Ok(members) => cells(&members, names).map(|cells| TapeRow { line, cells }),
            Err(error) => Err(format!("The line is no JSON object: {error}")),
        };
        Ok(Some(row.map_err(|message| problem("json", message))))
    }

    fn next_line(&mut self) -> io::Result<Option<(Vec<u8>, bool)>> {
        let (mut line, mut is_too_long, mut has_begun) = (Vec::new(), false, false);
        loop {
            let waiting = self.0.waiting()?;
            if waiting.is_empty() {
                return Ok(has_begun.then_some((line, is_too_long)));
            }

            has_begun = true;
            let end = waiting.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(waiting.len(), |end| end + 1);
            if line.len() + length <= ROW {
                line.extend_from_slice(&waiting[..length]);
            } else {
                is_too_long = true;
                line.clear();
            }
            self.0.take(length);
            if end.is_some() {
                return Ok(Some((line, is_too_long)));
            }
        }
    }
}

/// Members of an object with their text, so that no number becomes a binary fraction.
struct RawMembers(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for RawMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyMembers;

        impl<'de> Visitor<'de> for AnyMembers {
            type Value = RawMembers;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<RawMembers, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = access.next_entry()? {
                    members.push((name, value));
                }
                Ok(RawMembers(members))
            }
        }

        deserializer.deserialize_map(AnyMembers)
    }
}

fn cells(members: &RawMembers, names: &[String]) -> Result<Vec<Option<String>>, String> {
    let cell = |name: &String| {
        let mut found = members.0.iter().filter(|(other, _)| other == name);
        match (found.next(), found.next()) {
            (None, _) => Ok(None),
            (Some((_, value)), None) => {
                cell_of(value.get()).map_err(|why| format!("{name}: {why}"))
            }
            (Some(_), Some(_)) => Err(format!("The line has the member {name} twice")),
        }
    };
    names.iter().map(cell).collect()
}

/// Returns the text of a JSON value.
fn cell_of(raw: &str) -> Result<Option<String>, String> {
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw)
            .map(Some)
            .map_err(|error| error.to_string()),
        Some(b'n') => Ok(None),
        Some(b'{' | b'[') => Err("a list or an object is no value of a column".into()),
        _ => Ok(Some(raw.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TapeMap {
        TapeMap::parse(
            r#"{"columns":[{"column":"Loan","fact":"contract_number"},{"column":"Amount","fact":"amount_financed"}]}"#,
        )
        .unwrap()
    }

    fn open(
        bytes: impl Into<Vec<u8>>,
        format: TapeFormat,
        map: &TapeMap,
    ) -> Result<TapeReader, OpenError> {
        TapeReader::open(io::Cursor::new(bytes.into()), format, map)
    }

    fn refusal(bytes: impl Into<Vec<u8>>) -> &'static str {
        match open(bytes, TapeFormat::Csv, &map()) {
            Err(OpenError::Refused(refusal)) => refusal.code,
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("accepted"),
        }
    }

    /// Returns a line for each row: its cells, or the code of its problem.
    fn rows_of(mut reader: TapeReader) -> Vec<String> {
        let mut rows = Vec::new();
        while let Some(row) = reader.next_row().unwrap() {
            rows.push(match row {
                Ok(row) => {
                    let cells = row.cells.iter().map(|cell| cell.as_deref().unwrap_or("-"));
                    format!("{}: {}", row.line, cells.collect::<Vec<_>>().join("|"))
                }
                Err(problem) => format!("{}! {}", problem.line, problem.code),
            });
        }
        rows
    }

    fn csv_rows(bytes: impl Into<Vec<u8>>) -> Vec<String> {
        rows_of(open(bytes, TapeFormat::Csv, &map()).unwrap())
    }

    #[test]
    fn mapped_columns_are_found_by_name_and_the_others_ignored() {
        let text = "State,  amount ,Loan\r\nTX,\"1,000.00\",A-1\r\n\r\nOK,\"2 \"\"x\"\"\",A-2";
        assert_eq!(csv_rows(text), ["2: A-1|1,000.00", "4: A-2|2 \"x\""]);
    }

    #[test]
    fn the_separator_is_found_by_the_header() {
        for separator in [",", ";", "\t", "|"] {
            let text = "Loan;Amount\nA-1;5\n".replace(';', separator);
            assert_eq!(csv_rows(text), ["2: A-1|5"], "{separator}");
        }

        let mut wrong = map();
        wrong.separator = Some(ColumnSeparator::Comma);
        let Err(OpenError::Refused(refusal)) =
            open("Loan;Amount\nA-1;5\n", TapeFormat::Csv, &wrong)
        else {
            panic!("accepted");
        };
        assert_eq!(refusal.code, "wrong_separator");
        assert!(refusal.message.contains("\";\""), "{refusal}");
    }

    #[test]
    fn a_file_without_a_usable_header_is_refused_by_name() {
        assert_eq!(refusal("A-1,5\nA-2,6\n"), "no_header");
        assert_eq!(refusal("Loan,State\nA-1,TX\n"), "missing_column");
        assert_eq!(
            refusal("Loan,Amount,amount\nA-1,5,6\n"),
            "duplicated_column"
        );
        assert_eq!(refusal(""), "empty");
        assert_eq!(refusal("\r\n \n"), "empty");
        assert_eq!(refusal(b"PK\x03\x04xlsx".to_vec()), "spreadsheet");
        assert_eq!(refusal(b"\x1f\x8b\x08".to_vec()), "compressed");
        assert_eq!(refusal(b"L\0o\0a\0n\0".to_vec()), "utf_16_without_mark");
        assert_eq!(refusal(b"\xff\xfe\0\0L\0\0\0".to_vec()), "utf_32");
        assert_eq!(refusal(b"Loan\xe9,Amount\nA,5\n".to_vec()), "encoding");
    }

    #[test]
    fn byte_order_marks_and_utf_16_are_read() {
        let text = "Loan,Amount\nÄ-1 \u{1f697},5\n";
        let mut marked = b"\xef\xbb\xbf".to_vec();
        marked.extend(text.bytes());
        assert_eq!(csv_rows(marked), ["2: Ä-1 \u{1f697}|5"]);

        // Long enough that characters stand across the pieces that are decoded at once.
        let long: String = std::iter::once("Loan,Amount\n".to_owned())
            .chain((0..9000).map(|number| format!("\u{1f697}{number},5\n")))
            .collect();
        let units = || std::iter::once(0xfeff).chain(long.encode_utf16());
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        for bytes in [little.clone(), big] {
            let rows = csv_rows(bytes);
            assert_eq!(rows.len(), 9000);
            assert_eq!(rows[8999], "9001: \u{1f697}8999|5");
        }

        // A file that was cut in the middle of a character.
        let mut cut = little;
        cut.truncate(cut.len() - 5);
        let rows = csv_rows(cut);
        assert_eq!(rows.len(), 9000);
        assert_eq!(rows[8999], "9001! width");
    }

    #[test]
    fn a_bad_row_is_reported_with_its_line_and_the_rest_goes_on() {
        let text = "Loan,Amount\nA-1,5\nA-2\nA-3,5,6\nA-4,\"5\n5\"\nA-5,7\n";
        assert_eq!(
            csv_rows(text),
            [
                "2: A-1|5",
                "3! width",
                "4! width",
                "5: A-4|5\n5",
                "7: A-5|7"
            ]
        );

        let mut bytes = b"Loan,Amount\nA-1,5\nA-\xe9,6\n".to_vec();
        bytes.extend(b"A-3,7\n");
        assert_eq!(csv_rows(bytes), ["2: A-1|5", "3! encoding", "4: A-3|7"]);

        let open = "Loan,Amount\nA-1,5\nA-2,\"6\nA-3,7\n";
        assert_eq!(csv_rows(open), ["2: A-1|5", "3! open_quotation"]);
    }

    #[test]
    fn a_field_of_ten_megabytes_is_one_bad_row() {
        let huge = "x".repeat(10 * 1024 * 1024);
        let text = format!("Loan,Amount\nA-1,5\n{huge},6\nA-3,\"{huge}\n{huge}\"\nA-4,7\n");
        assert_eq!(
            csv_rows(text),
            ["2: A-1|5", "3! too_long", "4! too_long", "6: A-4|7"]
        );

        let cells = format!("Loan,Amount\n{}\nA-2,7\n", ",".repeat(5000));
        assert_eq!(csv_rows(cells), ["2! too_long", "3: A-2|7"]);
    }

    #[test]
    fn the_names_of_columns_are_read_without_a_map() {
        let names = |text: &str, format| {
            column_names(io::Cursor::new(text.to_owned().into_bytes()), format)
        };
        for (text, format) in [
            ("Loan No.; Amount ;\nA-1;5;x\n", TapeFormat::Csv),
            ("\u{feff}Loan No.\tAmount\n", TapeFormat::Csv),
            (
                "\n{\"Loan No.\":\"A-1\",\"Amount\":1}\n",
                TapeFormat::JsonLines,
            ),
        ] {
            assert_eq!(
                names(text, format).unwrap(),
                ["Loan No.", "Amount"],
                "{text}"
            );
        }
        let many: String = (0..300).map(|number| format!("c{number},")).collect();
        assert_eq!(names(&many, TapeFormat::Csv).unwrap().len(), COLUMNS);
        let long = format!("Loan,{}\n", "x".repeat(NAME + 1));
        assert_eq!(names(&long, TapeFormat::Csv).unwrap(), ["Loan"]);

        for (text, format, code) in [
            ("Loan,loan \n", TapeFormat::Csv, "duplicated_column"),
            (";;\nA;5;x\n", TapeFormat::Csv, "no_header"),
            ("no json\n", TapeFormat::JsonLines, "no_header"),
            ("", TapeFormat::Csv, "empty"),
        ] {
            match names(text, format) {
                Err(OpenError::Refused(refusal)) => assert_eq!(refusal.code, code, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn lines_of_json_keep_the_digits_of_numbers() {
        let text = "{\"Loan\":\"A-1\",\"Amount\":21500.10,\"x\":[1]}\n\n{\"Amount\":null}\r\nnot json\n\
                    {\"Loan\":\"A-2\",\"Loan\":\"A-3\"}\n{\"Loan\":{}}\n[1]\n{\"Loan\":\"A-4\",\"Amount\":NaN}\n\
                    {\"Loan\":\"A-5\",\"Amount\":1}";
        let rows = rows_of(open(text, TapeFormat::JsonLines, &map()).unwrap());
        assert_eq!(
            rows,
            [
                "1: A-1|21500.10",
                "3: -|-",
                "4! json",
                "5! json",
                "6! json",
                "7! json",
                "8! json",
                "9: A-5|1"
            ]
        );

        let long = format!(
            "{{\"Loan\":\"{}\"}}\n{{\"Loan\":\"A-2\"}}\n",
            "x".repeat(ROW)
        );
        let rows = rows_of(open(long, TapeFormat::JsonLines, &map()).unwrap());
        assert_eq!(rows, ["1! too_long", "2: A-2|-"]);
    }
}
