//! The tape of a pool: one row for each record of a transfer, for the analysts of both sides.

use std::io::{self, Write};

use holdfast_store::SqlConnection;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::PartyNames;
use super::transfers::{check_settled, is_party, unknown};
use holdfast_adapters::files::{FilesError, SpooledFile};
use holdfast_domain::cell::inert;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::ControlStage;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::id::{EnvelopeId, TransferId};
use holdfast_domain::tape::{TapeFormat, sample_number};
use holdfast_domain::transfer::{RecordState, Transfer, TransferRecord};
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::row::OwnedEnvelope;
use holdfast_store::{StoreError, control as rows, envelopes, integrity, similarity, transfers};

/// Rows that may wait for the writer of the file.
const QUEUE: usize = 64;
/// Maximum number of columns from metadata.
const COLUMNS: usize = 50;
/// Longest seed, in characters.
const SEED: usize = 200;

/// What a tape contains.
#[derive(Clone, Debug)]
pub struct TapeOptions {
    pub format: TapeFormat,
    /// `name:member` or `member`, separated by commas: a column `name` with this member of the metadata.
    pub columns: Option<String>,
    /// Number of records of a random sample.
    pub sample: Option<u32>,
    pub seed: Option<String>,
    /// Only records that need attention.
    pub exceptions: bool,
}

/// A column from the metadata of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MetadataColumn {
    name: String,
    member: String,
}

/// Row of a tape. A record that was never offered may belong to others, and one that the reader has left does:
/// both have what the transfer stored, and nothing else.
#[derive(Clone, Debug, Serialize)]
struct TapeRow {
    envelope_id: EnvelopeId,
    /// State in the transfer.
    state: RecordState,
    /// Codes of the exceptions.
    exceptions: Vec<String>,
    name: Option<String>,
    originator: Option<String>,
    created_at: Option<Timestamp>,
    signed_at: Option<Timestamp>,
    /// SHA-256 of the authoritative copy when it was offered.
    document_hash: Option<String>,
    compliance_score: Option<i64>,
    chattel_paper_jurisdiction: Option<String>,
    controller: Option<String>,
    stage: Option<ControlStage>,
    controlled_since: Option<Timestamp>,
    metadata: Map<String, Value>,
}

/// Names of the columns of a CSV file before those from metadata.
const FIXED: [&str; 13] = [
    "envelope_id",
    "state",
    "exceptions",
    "name",
    "originator",
    "created_at",
    "signed_at",
    "document_hash",
    "compliance_score",
    "chattel_paper_jurisdiction",
    "controller",
    "stage",
    "controlled_since",
];

/// Writes the tape of a transfer's records to a file.
pub async fn tape(
    core: &Core,
    caller: &Caller,
    id: &str,
    options: TapeOptions,
) -> Result<SpooledFile, ServiceError> {
    let id = TransferId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let transfer = transfers::get(&mut connection, &id).await?;
    let transfer = transfer.filter(|transfer| is_party(transfer, &caller.org));
    let transfer = transfer.ok_or_else(unknown)?;
    // During a step some rows have moved and others have not: such a tape would be of no moment.
    check_settled(&transfer)?;
    let columns = columns(options.columns.as_deref().unwrap_or_default())?;

    let chosen = chosen(&mut connection, &transfer, &options).await?;
    drop(connection);

    // The channel bounds the rows in memory when the disk is slower than the database.
    let (sender, mut receiver) = mpsc::channel::<TapeRow>(QUEUE);
    let (format, names) = (options.format, columns.clone());
    let write = move |file: &mut std::fs::File| {
        let mut out = TapeWriter::new(format, &names, io::BufWriter::new(file))?;
        while let Some(row) = receiver.blocking_recv() {
            out.row(&row)?;
        }
        out.finish()
    };

    let folder = core.config.spool_folder();
    let written = SpooledFile::written(&folder, write);
    let read = async {
        // Owned by this future, so that the channel closes and the writer ends after the last row.
        let sender = sender;
        let mut names = PartyNames::default();
        for record in chosen {
            // A connection for each row: none is held while the queue is full.
            let mut connection = core.store.read().await?;
            let row = row(&mut connection, caller, &mut names, &record, &columns).await?;
            drop(connection);
            if options.exceptions && row.exceptions.is_empty() {
                continue;
            }

            // A send fails if the writer failed, which has the reason.
            if sender.send(row).await.is_err() {
                break;
            }
        }

        Ok::<(), ServiceError>(())
    };

    // After a failed read the writer sees a closed channel and succeeds with half a file, so the reader's
    // error counts first.
    let (written, read) = tokio::join!(written, read);
    read?;
    Ok(written.map_err(FilesError::Spool)?)
}

fn invalid(member: &str, expected: &str, received: &str, message: &str) -> ServiceError {
    ServiceError::invalid("invalid_request", &[member], expected, received, message)
}

/// Parses the mapping of columns.
fn columns(text: &str) -> Result<Vec<MetadataColumn>, ServiceError> {
    let mut columns: Vec<MetadataColumn> = Vec::new();
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (name, member) = part.split_once(':').unwrap_or((part, part));
        let (name, member) = (name.trim(), member.trim());
        // Analysts address columns by name, so each name is there once.
        let taken = FIXED.contains(&name) || columns.iter().any(|column| column.name == name);
        if name.is_empty() || member.is_empty() || taken {
            let expected = "name:member, with a name that no other column has";
            return Err(invalid(
                "columns",
                expected,
                part,
                "The column cannot be used",
            ));
        }

        columns.push(MetadataColumn {
            name: name.to_owned(),
            member: member.to_owned(),
        });
    }

    if columns.len() <= COLUMNS {
        Ok(columns)
    } else {
        let expected = format!("at most {COLUMNS} columns");
        Err(invalid(
            "columns",
            &expected,
            "",
            "There are too many columns",
        ))
    }
}

/// Returns the records of the tape, in the order of their ids.
async fn chosen(
    connection: &mut SqlConnection,
    transfer: &Transfer,
    options: &TapeOptions,
) -> Result<Vec<TransferRecord>, ServiceError> {
    let (all, last) = (RecordState::ALL, i64::MAX);
    let records = transfers::records(connection, transfer, all, None, last).await?;
    // A sample without a seed could not be repeated by the other side.
    match (options.sample, options.seed.as_deref()) {
        (None, None) => Ok(records),
        (Some(count), Some(seed)) if (1..=SEED).contains(&seed.chars().count()) && count > 0 => {
            Ok(sample(records, count, seed))
        }
        _ => {
            let expected = format!("sample of at least 1 with a seed of 1 to {SEED} characters");
            let message = "A sample has a seed, so that the other side can repeat it";
            Err(invalid("seed", &expected, "", message))
        }
    }
}

/// Chooses the records with the smallest SHA-256 of `seed`, a colon and their id. Any party can repeat it.
fn sample(records: Vec<TransferRecord>, count: u32, seed: &str) -> Vec<TransferRecord> {
    let drawn = records
        .into_iter()
        .map(|record| (sample_number(seed, record.envelope.as_str()), record));
    let mut drawn: Vec<_> = drawn.collect();
    drawn.sort_by_key(|(hash, _)| *hash);

    drawn.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    let mut chosen: Vec<TransferRecord> = drawn.into_iter().map(|(_, record)| record).collect();
    // Drawn by hash, but listed in the same order as the whole tape.
    chosen.sort_by(|left, right| left.envelope.cmp(&right.envelope));

    chosen
}

async fn row(
    connection: &mut SqlConnection,
    caller: &Caller,
    names: &mut PartyNames,
    record: &TransferRecord,
    columns: &[MetadataColumn],
) -> Result<TapeRow, ServiceError> {
    let mut row = TapeRow {
        envelope_id: record.envelope.clone(),
        state: record.state,
        exceptions: record.code.iter().cloned().collect(),
        name: None,
        originator: None,
        created_at: None,
        signed_at: None,
        document_hash: record.document_hash.clone(),
        compliance_score: None,
        chattel_paper_jurisdiction: None,
        controller: None,
        stage: None,
        controlled_since: None,
        metadata: Map::new(),
    };

    // A record that was never offered may belong to strangers, so nothing more of it is read.
    let control = match record.document_hash {
        Some(_) => rows::of_record(connection, &record.envelope).await?,
        None => None,
    };
    let own = control.filter(|control| control.parties().contains(&&caller.org));
    let Some(control) = own else {
        return Ok(row);
    };

    let envelope =
        envelopes::get_with_destroyed(connection, &control.org, &record.envelope).await?;
    let envelope = envelope.ok_or(ServiceError::NotFound("Record"))?;
    if envelope.destruction.is_some() {
        row.exceptions.push("destroyed".into());
        return Ok(row);
    }
    let own = envelope.own_metadata();
    let value = |column: &MetadataColumn| own.and_then(|own| own.get(&column.member)).cloned();
    let mapped = columns.iter();
    row.metadata = mapped
        .map(|column| (column.name.clone(), value(column).unwrap_or_default()))
        .collect();

    row.exceptions
        .extend(exceptions(connection, record, &envelope).await?);
    // A mapped member without a value is what an analyst has to ask the seller about.
    let missing = row.metadata.iter().filter(|(_, value)| value.is_null());
    let missing: Vec<String> = missing.map(|(name, _)| format!("missing:{name}")).collect();
    row.exceptions.extend(missing);
    row.originator = Some(names.party(connection, &control.org).await?.name);
    row.controller = Some(names.party(connection, &control.controller).await?.name);

    row.stage = Some(control.stage);
    row.controlled_since = Some(control.controlled_since);
    row.created_at = Some(envelope.created_at);
    row.signed_at = envelope.signed_at;
    row.compliance_score = envelope.record.compliance_score;
    row.chattel_paper_jurisdiction = envelope.jurisdiction().map(str::to_owned);
    row.name = Some(envelope.name);

    Ok(row)
}

/// Returns the codes of a record's exceptions.
async fn exceptions(
    connection: &mut SqlConnection,
    record: &TransferRecord,
    envelope: &Envelope,
) -> Result<Vec<String>, StoreError> {
    let mut codes = Vec::new();
    if envelope.record.authoritative.live().is_none() {
        codes.push("record_not_vaulted".into());
    }

    // The transfer froze the hash at the offer, so that another document behind the record shows.
    let stored = envelope.record.document_hash.as_ref();
    if record.document_hash.is_some() && record.document_hash.as_ref() != stored {
        codes.push("another_document".into());
    }

    if envelope
        .record
        .compliance_score
        .is_some_and(|score| score < 100)
    {
        codes.push("not_compliant".into());
    }

    let checked = OwnedEnvelope {
        org: envelope.org.clone(),
        envelope: envelope.id.clone(),
    };
    if integrity::problems(connection, &checked).await?.is_some() {
        codes.push("record_held".into());
    }

    if !similarity::list(connection, &checked).await?.is_empty() {
        codes.push("similar_record".into());
    }

    // The reason of a refusal stands in the row already.
    codes.retain(|code| record.code.as_ref() != Some(code));
    Ok(codes)
}

/// Writes the rows of a tape.
enum TapeWriter<W: Write> {
    Csv {
        out: Box<csv::Writer<W>>,
        columns: Vec<String>,
    },
    JsonLines(W),
}

impl<W: Write> TapeWriter<W> {
    fn new(format: TapeFormat, columns: &[MetadataColumn], out: W) -> io::Result<Self> {
        if format == TapeFormat::JsonLines {
            return Ok(Self::JsonLines(out));
        }

        let columns: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let mut out = Box::new(csv::Writer::from_writer(out));
        // Names of columns come from the request: one that begins like a formula would run in a spreadsheet.
        let own = columns.iter().map(|name| inert(name));
        let names = FIXED.iter().map(|name| (*name).to_owned()).chain(own);
        out.write_record(names)?;

        Ok(Self::Csv { out, columns })
    }

    fn row(&mut self, row: &TapeRow) -> io::Result<()> {
        match self {
            Self::JsonLines(out) => {
                serde_json::to_writer(&mut *out, row)?;
                out.write_all(b"\n")
            }
            Self::Csv { out, columns } => {
                // Names come from tenants, and the codes of exceptions contain the names of members: both
                // could be formulas.
                let text = |text: &Option<String>| text.as_deref().map(inert).unwrap_or_default();
                let time = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
                let score = row.compliance_score.map(|score| score.to_string());
                let fixed: [String; FIXED.len()] = [
                    row.envelope_id.to_string(),
                    row.state.to_string(),
                    inert(&row.exceptions.join(" ")),
                    text(&row.name),
                    text(&row.originator),
                    time(row.created_at),
                    time(row.signed_at),
                    text(&row.document_hash),
                    score.unwrap_or_default(),
                    text(&row.chattel_paper_jurisdiction),
                    text(&row.controller),
                    row.stage.map(|stage| stage.to_string()).unwrap_or_default(),
                    time(row.controlled_since),
                ];

                let own = columns.iter().map(|name| match row.metadata.get(name) {
                    Some(Value::String(text)) => inert(text),
                    None | Some(Value::Null) => String::new(),
                    // A number stays as it is: with an apostrophe, a negative amount would become a text.
                    Some(other) => other.to_string(),
                });
                Ok(out.write_record(fixed.into_iter().chain(own))?)
            }
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Csv { mut out, .. } => out.flush(),
            Self::JsonLines(mut out) => out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_mapped_from_members_of_the_metadata() {
        let parsed = columns("balance:amount, segment").unwrap();
        let column = |name: &str, member: &str| MetadataColumn {
            name: name.into(),
            member: member.into(),
        };
        assert_eq!(
            parsed,
            [column("balance", "amount"), column("segment", "segment")]
        );
        assert!(columns("").unwrap().is_empty());

        for wrong in ["name:amount", "a:x,a:y", ":x", "a:"] {
            assert!(columns(wrong).is_err(), "{wrong}");
        }

        let many: Vec<String> = (0..51).map(|number| format!("m{number}")).collect();
        assert!(columns(&many.join(",")).is_err());
    }

    #[test]
    fn a_sample_depends_on_its_seed_alone() {
        let record = || TransferRecord {
            envelope: EnvelopeId::new(),
            state: RecordState::Proposed,
            document_hash: None,
            accepted: false,
            code: None,
            reason: None,
        };
        let pool: Vec<TransferRecord> = (0..100).map(|_| record()).collect();

        let ids = |records: Vec<TransferRecord>| -> Vec<EnvelopeId> {
            records.into_iter().map(|record| record.envelope).collect()
        };
        let one = ids(sample(pool.clone(), 10, "closing"));
        assert_eq!(one.len(), 10);

        let mut turned = pool.clone();
        turned.reverse();
        assert_eq!(ids(sample(turned, 10, "closing")), one);
        assert_ne!(ids(sample(pool.clone(), 10, "other")), one);
        assert_eq!(sample(pool, 1_000, "closing").len(), 100);
    }

    #[test]
    fn a_text_is_no_formula() {
        assert_eq!(inert("=HYPERLINK(\"x\")"), "'=HYPERLINK(\"x\")");
        assert_eq!(inert("Contract 7"), "Contract 7");
    }
}
