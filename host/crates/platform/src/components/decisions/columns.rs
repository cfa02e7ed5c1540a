//! Exports of decisions as Apache Parquet, for programs that analyze them.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde_json::json;

use holdfast_domain::decision::DecisionLine;
use holdfast_evidence::decisions::{BlockLine, ExportLine, HeadLine};

/// Rows of a row group.
const ROWS: usize = 10_000;

/// Columns, in the order in which [`ColumnWriter::group`] writes them.
const SCHEMA: &str = "
    message decision {
        required int64 block;
        required int64 position;
        required binary decision_id (UTF8);
        required binary slot (UTF8);
        required binary function (UTF8);
        optional binary envelope_id (UTF8);
        optional binary template_id (UTF8);
        required int64 at (TIMESTAMP(MILLIS, true));
        required binary component_name (UTF8);
        required binary component_version (UTF8);
        required binary component_sha256 (UTF8);
        required binary given (JSON);
        required binary given_sha256 (UTF8);
        required binary answer (JSON);
        required binary answer_sha256 (UTF8);
        required boolean masked;
        optional binary replay (UTF8);
        optional binary status (UTF8);
    }
";

/// Writes lines of an export as rows. The blocks and the head are in the metadata of the file, under
/// `holdfast.blocks` and `holdfast.head`.
pub struct ColumnWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Vec<DecisionLine>,
    blocks: Vec<BlockLine>,
    head: Option<HeadLine>,
}

impl<W: Write + Send> ColumnWriter<W> {
    pub fn new(out: W) -> io::Result<Self> {
        let schema = parse_message_type(SCHEMA).map_err(unwritable)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties));
        Ok(Self {
            file: file.map_err(unwritable)?,
            rows: Vec::new(),
            blocks: Vec::new(),
            head: None,
        })
    }

    pub fn line(&mut self, line: ExportLine) -> io::Result<()> {
        match line {
            ExportLine::Decision(decision) => self.rows.push(*decision),
            ExportLine::Block(block) => self.blocks.push(block),
            ExportLine::Head(head) => self.head = Some(head),
        }

        if self.rows.len() < ROWS {
            Ok(())
        } else {
            self.group().map_err(unwritable)
        }
    }

    pub fn finish(mut self) -> io::Result<()> {
        // The last rows are no full group.
        if !self.rows.is_empty() {
            self.group().map_err(unwritable)?;
        }

        // Behind the rows: programs that read only the table do not see them, and the head is known last.
        for (key, value) in [
            ("holdfast.blocks", json!(self.blocks)),
            ("holdfast.head", json!(self.head)),
        ] {
            let pair = KeyValue::new(key.to_owned(), value.to_string());
            self.file.append_key_value_metadata(pair);
        }

        self.file.close().map_err(unwritable)?;
        Ok(())
    }

    /// Writes the rows as one row group.
    fn group(&mut self) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.rows);
        let mut row_group = self.file.next_row_group()?;
        let texts = |text: fn(&DecisionLine) -> String| -> Vec<ByteArray> {
            let texts = rows.iter().map(text);
            texts.map(|text| text.into_bytes().into()).collect()
        };
        let numbers =
            |number: fn(&DecisionLine) -> i64| -> Vec<i64> { rows.iter().map(number).collect() };

        // In the order of `SCHEMA`: the writer hands out one column after the other.
        let group = &mut row_group;
        column::<Int64Type>(group, &numbers(|row| row.block))?;
        column::<Int64Type>(group, &numbers(|row| row.position.cast_signed()))?;
        column::<ByteArrayType>(group, &texts(|row| row.decision_id.clone()))?;
        column::<ByteArrayType>(group, &texts(|row| row.slot.to_string()))?;
        column::<ByteArrayType>(group, &texts(|row| row.function.clone()))?;
        optional(
            group,
            rows.iter()
                .map(|row| row.envelope_id.as_ref().map(ToString::to_string)),
        )?;

        optional(
            group,
            rows.iter()
                .map(|row| row.template_id.as_ref().map(ToString::to_string)),
        )?;
        column::<Int64Type>(group, &numbers(|row| row.at.as_millis()))?;
        column::<ByteArrayType>(group, &texts(|row| row.component.name.clone()))?;

        column::<ByteArrayType>(group, &texts(|row| row.component.version.clone()))?;
        column::<ByteArrayType>(group, &texts(|row| row.component.sha256.clone()))?;
        column::<ByteArrayType>(group, &texts(|row| row.given.to_string()))?;
        column::<ByteArrayType>(group, &texts(|row| row.given_sha256.clone()))?;
        column::<ByteArrayType>(group, &texts(|row| row.answer.to_string()))?;
        column::<ByteArrayType>(group, &texts(|row| row.answer_sha256.clone()))?;
        let masked: Vec<bool> = rows.iter().map(|row| row.masked).collect();
        column::<BoolType>(group, &masked)?;

        optional(group, rows.iter().map(|row| row.replay.clone()))?;
        optional(group, rows.iter().map(|row| row.status.clone()))?;
        row_group.close()?;
        Ok(())
    }
}

/// Writes the next column, which has a value in every row.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    next::<T>(group, values, None)
}

/// Writes the next column, which has texts in some rows.
fn optional(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    texts: impl Iterator<Item = Option<String>>,
) -> Result<(), ParquetError> {
    let texts: Vec<Option<String>> = texts.collect();
    // Parquet stores only the values that are there, and a level for each row.
    let levels: Vec<i16> = texts.iter().map(|text| i16::from(text.is_some())).collect();
    let values: Vec<ByteArray> = texts
        .into_iter()
        .flatten()
        .map(|text| text.into_bytes().into())
        .collect();
    next::<ByteArrayType>(group, &values, Some(&levels))
}

fn next<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let column = group.next_column()?;
    let mut column = column.ok_or_else(|| ParquetError::General("too many columns".into()))?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

fn unwritable(error: ParquetError) -> io::Error {
    io::Error::other(error)
}
