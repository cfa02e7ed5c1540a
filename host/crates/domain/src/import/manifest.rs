//! Reading of manifests: a table (CSV) or JSON, in the layouts that are known.

use std::collections::HashMap;
use std::io::Cursor;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{DeclaredFacts, DeclaredSigner, ImportLayout, ROWS};
use crate::tape::{
    DecimalMark, OpenError, RowProblem, TapeColumn, TapeFormat, TapeMap, TapeReader, TapeRefusal,
    TapeRow, column_names, plain_name,
};

/// Largest manifest, in bytes.
pub const MANIFEST_LIMIT: usize = 8 * 1024 * 1024;
/// Longest value, in characters.
const VALUE: usize = 500;
/// Most signers of a row.
const SIGNERS: usize = 100;

/// A manifest that was read.
#[derive(Debug)]
pub struct Manifest {
    pub layout: ImportLayout,
    pub rows: Vec<Result<ManifestRow, RowProblem>>,
}

/// Row of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestRow {
    /// Line of a table, or place in a JSON list, from 1.
    pub line: u64,
    /// Documents of the row in the archive. Without any, they are found by id and name.
    pub documents: Vec<String>,
    /// Certificate of completion in the archive.
    pub certificate: Option<String>,
    pub name: Option<String>,
    /// Id at the other system.
    pub external_id: Option<String>,
    pub customer_name: Option<String>,
    pub customer_email: Option<String>,
    pub declared: DeclaredFacts,
}

/// What a column of a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Document,
    Certificate,
    Name,
    ExternalId,
    CustomerName,
    CustomerEmail,
    /// `Name <address>; Name <address>`.
    Signers,
    SignerName,
    SignerEmail,
    SignerTime,
    SentAt,
    CompletedAt,
}

/// Columns of this service. The last ones describe signers of other systems.
const OWN: &[(&str, Member)] = &[
    ("document", Member::Document),
    ("certificate", Member::Certificate),
    ("name", Member::Name),
    ("external_id", Member::ExternalId),
    ("customer_name", Member::CustomerName),
    ("customer_email", Member::CustomerEmail),
    ("signers", Member::Signers),
    ("sent_at", Member::SentAt),
    ("completed_at", Member::CompletedAt),
];

const DOCUSIGN: &[(&str, Member)] = &[
    ("envelope id", Member::ExternalId),
    ("subject", Member::Name),
    ("envelope subject", Member::Name),
    ("email subject", Member::Name),
    ("recipient name", Member::SignerName),
    ("recipient email", Member::SignerEmail),
    ("signer name", Member::SignerName),
    ("signer email", Member::SignerEmail),
    ("signed on", Member::SignerTime),
    ("sent on", Member::SentAt),
    ("completed on", Member::CompletedAt),
];

const ADOBE_SIGN: &[(&str, Member)] = &[
    ("agreement id", Member::ExternalId),
    ("agreement name", Member::Name),
    ("participant name", Member::SignerName),
    ("participant email", Member::SignerEmail),
    ("recipient name", Member::SignerName),
    ("recipient email", Member::SignerEmail),
    ("sent date", Member::SentAt),
    ("completed date", Member::CompletedAt),
];

/// With several signers, each of these names has the signer's role and a dash in front.
const DOCUSEAL: &[(&str, Member)] = &[
    ("name", Member::SignerName),
    ("email", Member::SignerEmail),
    ("completed at", Member::SignerTime),
];

fn refused(code: &'static str, message: impl Into<String>) -> OpenError {
    let message = message.into();
    TapeRefusal { code, message }.into()
}

fn too_many_rows() -> OpenError {
    let message = format!("The manifest has more than {ROWS} rows; split the archive");
    refused("too_many_rows", message)
}

impl Manifest {
    /// Reads a manifest, JSON if `is_json` and otherwise a table. `layout` is the sender's choice; without it, the names
    /// of columns and members decide.
    ///
    /// # Errors
    /// It is no manifest of a known layout.
    pub fn read(
        bytes: Vec<u8>,
        is_json: bool,
        layout: Option<ImportLayout>,
    ) -> Result<Self, OpenError> {
        if bytes.len() > MANIFEST_LIMIT {
            let message = format!("The manifest is larger than {MANIFEST_LIMIT} bytes");
            return Err(refused("too_large", message));
        }
        if is_json {
            Self::of_json(&bytes, layout)
        } else {
            Self::of_table(bytes, layout)
        }
    }

    fn of_table(bytes: Vec<u8>, layout: Option<ImportLayout>) -> Result<Self, OpenError> {
        let names = column_names(Cursor::new(bytes.clone()), TapeFormat::Csv)?;
        let layout = layout.or_else(|| layout_of(&names)).ok_or_else(|| {
            let message = "The manifest has none of the columns by which a layout is known: document, \
                           Envelope ID, Agreement ID, Agreement Name or Document 1";
            refused("unknown_columns", message)
        })?;
        let columns: Vec<KnownColumn> = names
            .iter()
            .filter_map(|name| KnownColumn::of(layout, name))
            .collect();
        if columns.is_empty() {
            let message = format!("The manifest has no column of the layout {layout}");
            return Err(refused("unknown_columns", message));
        }

        let map = map_of(&columns);
        let mut reader = TapeReader::open(Cursor::new(bytes), TapeFormat::Csv, &map)?;
        let mut rows = Vec::new();
        while let Some(row) = reader.next_row()? {
            if rows.len() == ROWS {
                return Err(too_many_rows());
            }
            rows.push(row.and_then(|row| row_of(&columns, row)));
        }
        Ok(Self {
            layout,
            rows: merged(layout, rows),
        })
    }

    fn of_json(bytes: &[u8], layout: Option<ImportLayout>) -> Result<Self, OpenError> {
        let wrong = |error: serde_json::Error| {
            let message = format!("The manifest is no list of objects in JSON: {error}");
            refused("json", message)
        };
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        let items: Vec<Box<RawValue>> = if first == Some(&b'[') {
            serde_json::from_slice(bytes).map_err(wrong)?
        } else {
            let page: JsonPage = serde_json::from_slice(bytes).map_err(wrong)?;
            page.data
        };
        if items.len() > ROWS {
            return Err(too_many_rows());
        }

        let is_docuseal = items.first().is_some_and(|item| {
            let read = serde_json::from_str::<JsonRow>(item.get());
            read.is_ok_and(|row| row.submitters.is_some())
        });
        let found = if is_docuseal {
            ImportLayout::Docuseal
        } else {
            ImportLayout::Columns
        };
        let layout = layout.unwrap_or(found);
        let rows = (1..).zip(&items);
        let rows = rows.map(|(line, item)| json_row(layout, line, item.get()));
        Ok(Self {
            layout,
            rows: rows.collect(),
        })
    }
}

/// Finds the layout by the names of columns.
fn layout_of(names: &[String]) -> Option<ImportLayout> {
    let names: Vec<String> = names.iter().map(|name| plain_name(name)).collect();
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if has("envelope id") {
        Some(ImportLayout::Docusign)
    } else if has("agreement id") || has("agreement name") {
        Some(ImportLayout::AdobeSign)
    } else if has("document 1") {
        Some(ImportLayout::Docuseal)
    } else if has("document") {
        Some(ImportLayout::Columns)
    } else {
        None
    }
}

/// Column of a table with a known meaning.
struct KnownColumn {
    /// Name in the table.
    name: String,
    /// Role of the signer that it is about; empty where the table has one signer in a row.
    role: String,
    member: Member,
}

impl KnownColumn {
    fn of(layout: ImportLayout, name: &str) -> Option<Self> {
        let plain = plain_name(name);
        let (role, plain) = match (layout, plain.rsplit_once(" - ")) {
            (ImportLayout::Docuseal, Some((role, rest))) => (role.to_owned(), rest.to_owned()),
            _ => (String::new(), plain.clone()),
        };
        let foreign: &[(&str, Member)] = match layout {
            ImportLayout::Columns => &[],
            ImportLayout::Docusign => DOCUSIGN,
            ImportLayout::AdobeSign => ADOBE_SIGN,
            ImportLayout::Docuseal => DOCUSEAL,
        };

        // `Document 1`, `Document 2` …: addresses that end with the name of the file.
        let is_address = layout == ImportLayout::Docuseal
            && plain
                .strip_prefix("document ")
                .is_some_and(|number| number.parse::<u32>().is_ok());
        let mut known = foreign.iter().chain(OWN);
        let member = if is_address {
            Some(Member::Document)
        } else {
            known
                .find(|(known, _)| *known == plain)
                .map(|(_, member)| *member)
        };
        member.map(|member| Self {
            name: name.to_owned(),
            role,
            member,
        })
    }
}

/// Returns the map by which the reader of tapes finds these columns.
fn map_of(columns: &[KnownColumn]) -> TapeMap {
    let columns = columns.iter().map(|column| TapeColumn {
        column: column.name.clone(),
        fact: column.name.clone(),
        kind: None,
        tolerance: None,
        severity: None,
        fraction: false,
    });
    TapeMap {
        columns: columns.collect(),
        keys: Vec::new(),
        date_order: None,
        decimal: DecimalMark::Point,
        separator: None,
        date_fact: None,
    }
}

fn row_of(columns: &[KnownColumn], row: TapeRow) -> Result<ManifestRow, RowProblem> {
    let mut read = ManifestRow {
        line: row.line,
        ..ManifestRow::default()
    };
    let mut signers: Vec<(SignerPlace<'_>, DeclaredSigner)> = Vec::new();
    for (column, cell) in columns.iter().zip(row.cells) {
        let cell = cell.filter(|cell| !cell.trim().is_empty());
        let Some(cell) = cell else {
            continue;
        };

        let one = |cell: &str| value(row.line, &column.name, cell);
        match column.member {
            Member::Document => read.documents.push(one(&file_name(cell.trim()))?),
            Member::Certificate => read.certificate = Some(one(&cell)?),
            Member::Name => read.name = Some(one(&cell)?),
            Member::ExternalId => read.external_id = Some(one(&cell)?),
            Member::CustomerName => read.customer_name = Some(one(&cell)?),
            Member::CustomerEmail => read.customer_email = Some(one(&cell)?),
            Member::SentAt => read.declared.sent_at = Some(one(&cell)?),
            Member::CompletedAt => read.declared.completed_at = Some(one(&cell)?),
            Member::Signers => {
                for signer in cell.split(';').filter(|text| !text.trim().is_empty()) {
                    read.declared.signers.push(written_signer(&one(signer)?));
                    check_signers(row.line, read.declared.signers.len())?;
                }
            }
            Member::SignerName | Member::SignerEmail | Member::SignerTime => {
                // Several signers in one cell stand in the same order in each column.
                let texts = cell.split(';').enumerate();
                for (at, text) in texts.filter(|(_, text)| !text.trim().is_empty()) {
                    let text = Some(one(text)?);
                    let signer = signer_at(&mut signers, (column.role.as_str(), at));
                    match column.member {
                        Member::SignerName => signer.name = text,
                        Member::SignerEmail => signer.email = text,
                        _ => signer.signed_at = text,
                    }
                    // At once: a cell can have as many semicolons as it has bytes.
                    check_signers(row.line, signers.len())?;
                }
            }
        }
    }

    let found = signers.into_iter().map(|(_, signer)| signer);
    read.declared.signers.extend(found);
    read.declared
        .signers
        .retain(|signer| *signer != DeclaredSigner::default());
    check_signers(read.line, read.declared.signers.len())?;
    Ok(read)
}

/// Role of a signer, and the place among those of the role.
type SignerPlace<'r> = (&'r str, usize);

/// Returns the signer at a place.
fn signer_at<'s, 'r>(
    signers: &'s mut Vec<(SignerPlace<'r>, DeclaredSigner)>,
    place: SignerPlace<'r>,
) -> &'s mut DeclaredSigner {
    let known = signers.iter().position(|(other, _)| *other == place);
    let at = known.unwrap_or_else(|| {
        signers.push((place, DeclaredSigner::default()));
        signers.len() - 1
    });
    &mut signers[at].1
}

/// Reads `Name <address>`, an address or a name.
fn written_signer(text: &str) -> DeclaredSigner {
    let both = text
        .strip_suffix('>')
        .and_then(|text| text.split_once('<'))
        .map(|(name, email)| (name.trim(), email.trim()));
    let (name, email) = match both {
        Some(both) => both,
        None if text.contains('@') => ("", text),
        None => (text, ""),
    };
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    DeclaredSigner {
        name: some(name),
        email: some(email),
        signed_at: None,
    }
}

fn check_signers(line: u64, signers: usize) -> Result<(), RowProblem> {
    if signers <= SIGNERS {
        return Ok(());
    }
    let message = format!("The row has more than {SIGNERS} signers");
    Err(problem(line, "too_many_signers", message))
}

fn problem(line: u64, code: &'static str, message: impl Into<String>) -> RowProblem {
    RowProblem {
        line,
        code,
        message: message.into(),
    }
}

/// Returns a value without blanks around it.
fn value(line: u64, column: &str, text: &str) -> Result<String, RowProblem> {
    let text = text.trim();
    if text.chars().any(char::is_control) {
        let message = format!("{column} has a control character or a line break");
        Err(problem(line, "invalid_value", message))
    } else if text.chars().count() > VALUE {
        let message = format!("{column} is longer than {VALUE} characters");
        Err(problem(line, "too_long", message))
    } else {
        Ok(text.to_owned())
    }
}

/// Returns the name of the file at the end of an address; any other text is a path already.
fn file_name(text: &str) -> String {
    let address = url::Url::parse(text).ok();
    let address = address.filter(|address| matches!(address.scheme(), "http" | "https"));
    let last = address
        .as_ref()
        .and_then(|address| address.path_segments()?.next_back());
    match last {
        Some(last) => decoded(last),
        None => text.to_owned(),
    }
}

/// Decodes the `%20` of an address.
fn decoded(text: &str) -> String {
    // Within a query, the standard decoder of addresses reads a plus as a blank, and the path has it as it is.
    let query = format!("x={}", text.replace('+', "%2B").replace('&', "%26"));
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs
        .next()
        .map_or_else(|| text.to_owned(), |(_, value)| value.into_owned())
}

/// Joins rows of one agreement: these reports have a row for each recipient.
fn merged(
    layout: ImportLayout,
    rows: Vec<Result<ManifestRow, RowProblem>>,
) -> Vec<Result<ManifestRow, RowProblem>> {
    if !matches!(layout, ImportLayout::Docusign | ImportLayout::AdobeSign) {
        return rows;
    }

    let mut known: HashMap<String, usize> = HashMap::new();
    let mut joined: Vec<Result<ManifestRow, RowProblem>> = Vec::new();
    for row in rows {
        let id = row.as_ref().ok().and_then(|row| row.external_id.clone());
        let place = id.as_ref().and_then(|id| known.get(id)).copied();
        let earlier = place.and_then(|place| joined.get_mut(place));
        if let (Ok(row), Some(Ok(earlier))) = (&row, earlier) {
            let room = SIGNERS.saturating_sub(earlier.declared.signers.len());
            let signers = row.declared.signers.iter().take(room).cloned();
            earlier.declared.signers.extend(signers);
            continue;
        }

        if let Some(id) = id {
            known.insert(id, joined.len());
        }
        joined.push(row);
    }
    joined
}

/// Answer of a list of submissions.
#[derive(Deserialize)]
struct JsonPage {
    data: Vec<Box<RawValue>>,
}

/// Row of this service's layout, or a submission of DocuSeal's API.
#[derive(Deserialize)]
struct JsonRow {
    document: Option<String>,
    certificate: Option<String>,
    name: Option<String>,
    external_id: Option<String>,
    customer_name: Option<String>,
    customer_email: Option<String>,
    signers: Option<Vec<JsonSigner>>,
    sent_at: Option<String>,
    completed_at: Option<String>,
    /// Of a submission.
    id: Option<u64>,
    submitters: Option<Vec<JsonSigner>>,
    documents: Option<Vec<JsonDocument>>,
    combined_document_url: Option<String>,
    audit_log_url: Option<String>,
    created_at: Option<String>,
    template: Option<JsonTemplate>,
}

#[derive(Deserialize)]
struct JsonSigner {
    name: Option<String>,
    email: Option<String>,
    #[serde(alias = "completed_at")]
    signed_at: Option<String>,
}

#[derive(Deserialize)]
struct JsonDocument {
    url: String,
}

#[derive(Deserialize)]
struct JsonTemplate {
    name: Option<String>,
}

fn json_row(layout: ImportLayout, line: u64, text: &str) -> Result<ManifestRow, RowProblem> {
    let row: JsonRow = serde_json::from_str(text)
        .map_err(|error| problem(line, "unreadable_row", error.to_string()))?;
    let one = |name: &str, text: Option<String>| {
        let text = text.filter(|text| !text.trim().is_empty());
        text.map(|text| value(line, name, &text)).transpose()
    };

    let is_submission = layout == ImportLayout::Docuseal && row.submitters.is_some();
    let documents: Vec<String> = if let Some(document) = row.document {
        vec![document]
    } else if let Some(combined) = row.combined_document_url {
        vec![file_name(&combined)]
    } else {
        let documents = row.documents.unwrap_or_default();
        documents.iter().map(|one| file_name(&one.url)).collect()
    };
    let certificate = row.certificate.or(row.audit_log_url);
    let certificate = certificate.map(|text| file_name(&text));
    let name = row.name.or(row.template.and_then(|template| template.name));
    let sent_at = row.sent_at.or(row.created_at.filter(|_| is_submission));
    let id = row.id.map(|id| id.to_string());

    let mut signers = Vec::new();
    for signer in row.submitters.or(row.signers).unwrap_or_default() {
        signers.push(DeclaredSigner {
            name: one("name", signer.name)?,
            email: one("email", signer.email)?,
            signed_at: one("signed_at", signer.signed_at)?,
        });
    }
    let read = ManifestRow {
        line,
        documents: documents
            .into_iter()
            .filter_map(|document| one("document", Some(document)).transpose())
            .collect::<Result<_, _>>()?,
        certificate: one("certificate", certificate)?,
        name: one("name", name)?,
        external_id: one("external_id", row.external_id.or(id))?,
        customer_name: one("customer_name", row.customer_name)?,
        customer_email: one("customer_email", row.customer_email)?,
        declared: DeclaredFacts {
            signers,
            sent_at: one("sent_at", sent_at)?,
            completed_at: one("completed_at", row.completed_at)?,
        },
    };
    check_signers(line, read.declared.signers.len())?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, is_json: bool) -> Manifest {
        Manifest::read(text.as_bytes().to_vec(), is_json, None).unwrap()
    }

    fn code(text: &str, is_json: bool) -> &'static str {
        match Manifest::read(text.as_bytes().to_vec(), is_json, None) {
            Err(OpenError::Refused(refusal)) => refusal.code,
            other => panic!("{other:?}"),
        }
    }

    fn signer(name: &str, email: &str, signed_at: Option<&str>) -> DeclaredSigner {
        DeclaredSigner {
            name: Some(name.into()),
            email: Some(email.into()),
            signed_at: signed_at.map(str::to_owned),
        }
    }

    #[test]
    fn columns_of_this_service_are_read() {
        let manifest = read(
            "document,certificate,name,external_id,customer_name,customer_email,signers,sent_at,completed_at,Note\n\
             a.pdf,a-cert.pdf,Contract,41,Jordan Lee,jordan@example.com,\
             Jordan Lee <jordan@example.com>; ann@example.com;Sam,2024-01-02,3 Jan 2024,x\n\
             b.pdf,,,,,,,,,\n",
            false,
        );
        assert_eq!(manifest.layout, ImportLayout::Columns);
        let row = manifest.rows[0].as_ref().unwrap();
        assert_eq!(row.line, 2);
        assert_eq!(row.documents, ["a.pdf"]);
        assert_eq!(row.certificate.as_deref(), Some("a-cert.pdf"));
        assert_eq!(row.external_id.as_deref(), Some("41"));
        assert_eq!(row.declared.completed_at.as_deref(), Some("3 Jan 2024"));
        let [first, second, third] = row.declared.signers.as_slice() else {
            panic!("{row:?}");
        };
        assert_eq!(*first, signer("Jordan Lee", "jordan@example.com", None));
        assert_eq!(second.email.as_deref(), Some("ann@example.com"));
        assert_eq!(third.name.as_deref(), Some("Sam"));
        assert!(manifest.rows[1].as_ref().unwrap().name.is_none());
    }

    #[test]
    fn recipients_of_one_envelope_are_one_row() {
        let manifest = read(
            "Envelope ID,Subject,Recipient Name,Recipient Email,Completed On\n\
             e1,Lease,Jordan Lee,jordan@example.com,1/2/2024\n\
             e1,Lease,Ann Day,ann@example.com,1/2/2024\n\
             e2,Loan,Sam Ray,sam@example.com,1/3/2024\n",
            false,
        );
        assert_eq!(manifest.layout, ImportLayout::Docusign);
        assert_eq!(manifest.rows.len(), 2);
        let row = manifest.rows[0].as_ref().unwrap();
        assert_eq!(row.name.as_deref(), Some("Lease"));
        let expected = [
            signer("Jordan Lee", "jordan@example.com", None),
            signer("Ann Day", "ann@example.com", None),
        ];
        assert_eq!(row.declared.signers, expected);
    }

    #[test]
    fn several_participants_in_a_cell_are_several_signers() {
        let manifest = read(
            "Agreement Name,Agreement ID,Participant Name,Participant Email\n\
             Lease,CBJ1,Jordan Lee;Ann Day,jordan@example.com;ann@example.com\n",
            false,
        );
        assert_eq!(manifest.layout, ImportLayout::AdobeSign);
        let row = manifest.rows[0].as_ref().unwrap();
        assert_eq!(
            row.declared.signers[1],
            signer("Ann Day", "ann@example.com", None)
        );
    }

    #[test]
    fn a_cell_has_a_limited_number_of_signers() {
        let names = |signer: &str, count: usize| {
            let text = format!(
                "Agreement ID,Participant Name\n1,{}\n",
                signer.repeat(count)
            );
            read(&text, false).rows.swap_remove(0)
        };
        // A million empty places are read in one pass.
        let row = names(";", 1_000_000 - 100).unwrap();
        assert!(row.declared.signers.is_empty());
        let row = names("a;", SIGNERS + 1).unwrap_err();
        assert_eq!(row.code, "too_many_signers");
    }

    #[test]
    fn roles_of_docuseal_are_signers_and_addresses_are_files() {
        let manifest = read(
            "Buyer - Name,Buyer - Email,Buyer - Completed at,Seller - Name,Seller - Email,Document 1\n\
             Jordan Lee,jordan@example.com,2024-01-02,Ann Day,ann@example.com,https://x.example/file/a/Lease%20%2B1.pdf\n",
            false,
        );
        assert_eq!(manifest.layout, ImportLayout::Docuseal);
        let row = manifest.rows[0].as_ref().unwrap();
        assert_eq!(row.documents, ["Lease +1.pdf"]);
        let expected = [
            signer("Jordan Lee", "jordan@example.com", Some("2024-01-02")),
            signer("Ann Day", "ann@example.com", None),
        ];
        assert_eq!(row.declared.signers, expected);
    }

    #[test]
    fn submissions_of_an_api_are_rows() {
        let text = r#"{"data":[{"id":7,"name":null,"template":{"name":"Lease"},"created_at":"2024-01-01T00:00:00Z",
            "completed_at":"2024-01-02T00:00:00Z","audit_log_url":"https://x.example/a/Audit%20Log.pdf",
            "combined_document_url":null,"documents":[{"name":"lease","url":"https://x.example/a/lease.pdf"}],
            "submitters":[{"name":"Jordan Lee","email":"jordan@example.com","completed_at":"2024-01-02T00:00:00Z"}]},
            {"id":"x"}],"pagination":{"count":2}}"#;
        let manifest = read(text, true);
        assert_eq!(manifest.layout, ImportLayout::Docuseal);
        let row = manifest.rows[0].as_ref().unwrap();
        assert_eq!(row.external_id.as_deref(), Some("7"));
        assert_eq!(row.name.as_deref(), Some("Lease"));
        assert_eq!(row.documents, ["lease.pdf"]);
        assert_eq!(row.certificate.as_deref(), Some("Audit Log.pdf"));
        assert_eq!(
            row.declared.sent_at.as_deref(),
            Some("2024-01-01T00:00:00Z")
        );
        let signed = "2024-01-02T00:00:00Z";
        let expected = [signer("Jordan Lee", "jordan@example.com", Some(signed))];
        assert_eq!(row.declared.signers, expected);
        let wrong = manifest.rows[1].as_ref().unwrap_err();
        assert_eq!((wrong.line, wrong.code), (2, "unreadable_row"));
    }

    #[test]
    fn a_json_list_is_a_manifest_of_this_service() {
        let manifest = read(
            r#"[{"document":"a.pdf","signers":[{"email":"a@b.c"}]}]"#,
            true,
        );
        assert_eq!(manifest.layout, ImportLayout::Columns);
        let row = manifest.rows[0].as_ref().unwrap();
        assert_eq!(row.documents, ["a.pdf"]);
        assert_eq!(row.declared.signers[0].email.as_deref(), Some("a@b.c"));
    }

    #[test]
    fn what_is_no_manifest_is_refused() {
        assert_eq!(code("a,b\n1,2\n", false), "unknown_columns");
        assert_eq!(code("", false), "empty");
        assert_eq!(code("{\"rows\":[]}", true), "json");
        assert_eq!(code("[1", true), "json");
        let many = format!("document\n{}", "a.pdf\n".repeat(ROWS + 1));
        assert_eq!(code(&many, false), "too_many_rows");
        let many = format!("[{}{{}}]", "{},".repeat(ROWS));
        assert_eq!(code(&many, true), "too_many_rows");
        assert_eq!(code(&" ".repeat(MANIFEST_LIMIT + 1), false), "too_large");

        let forced = Some(ImportLayout::Columns);
        let other = Manifest::read(b"Envelope ID\n1\n".to_vec(), false, forced);
        assert!(
            matches!(other, Err(OpenError::Refused(refusal)) if refusal.code == "unknown_columns")
        );
    }

    #[test]
    fn a_wrong_row_is_named_and_the_others_are_read() {
        let long = "x".repeat(VALUE + 1);
        let signers = "a@b.c;".repeat(SIGNERS + 1);
        let manifest = read(
            &format!(
                "document,name,signers\na.pdf,{long},\n\"b\n.pdf\",x,\nc.pdf,x,{signers}\nd.pdf,x,\n"
            ),
            false,
        );
        let codes = manifest
            .rows
            .iter()
            .map(|row| row.as_ref().map_err(|why| why.code).err());
        let expected = [
            Some("too_long"),
            Some("invalid_value"),
            Some("too_many_signers"),
            None,
        ];
        assert_eq!(codes.collect::<Vec<_>>(), expected);
    }
}
