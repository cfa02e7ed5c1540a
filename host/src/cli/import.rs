//! `holdfast import`: sends documents that were signed in another system to an installation, from a zip or a folder.
//!
//! A folder is planned here as the installation plans an archive, and sent in parts. The key of each request is made from its
//! bytes, so that the command can be interrupted and run again.

use std::collections::HashSet;
use std::fs;
use std::io::{Cursor, Write as _};
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::vec;

use clap::Args;
use reqwest::multipart::{Form, Part};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::Failure;
use super::output::CommandOutput;
use holdfast_base::tls;
use holdfast_domain::hash::sha256;
use holdfast_domain::import::{
    ImportLayout, Manifest, PlannedRecord, PlannedRow, manifest_of, plan,
};

/// Longest request: a part of a slow line.
const TIMEOUT: Duration = Duration::from_secs(900);
/// Interval at which the progress is read, and pause before a request is repeated.
const PAUSE: Duration = Duration::from_secs(1);
/// Requests until an installation counts as not answering.
const TRIES: usize = 60;
/// Most bytes of documents in one part of a folder.
const PART: u64 = 100 * 1024 * 1024;
/// Rows without a record that the text shows. JSON has all of them.
const SHOWN: usize = 200;
/// Rows that are read at once.
const PAGE: usize = 1_000;

#[derive(Args)]
pub struct ImportArguments {
    /// Zip, or folder with documents (PDF) and perhaps `manifest.csv` or `manifest.json`.
    #[arg(value_name = "FOLDER|ZIP")]
    from: PathBuf,
    /// Address of the installation, such as https://sign.example.
    #[arg(long, env = "HOLDFAST_URL")]
    url: Url,
    /// API key with the scopes envelopes:read and envelopes:write.
    #[arg(long, env = "HOLDFAST_API_KEY", hide_env_values = true)]
    api_key: String,
    /// System whose export it is: columns, docusign, adobe_sign or docuseal; found by the names when absent.
    #[arg(long, value_parser = layout)]
    layout: Option<ImportLayout>,
    /// Name of the customer of documents that name none.
    #[arg(long, requires = "customer_email")]
    customer_name: Option<String>,
    /// E-mail address of that customer.
    #[arg(long, requires = "customer_name")]
    customer_email: Option<String>,
}

fn layout(text: &str) -> Result<ImportLayout, String> {
    ImportLayout::parse(text).ok_or_else(|| {
        let known: Vec<&str> = ImportLayout::ALL.iter().map(|one| one.as_str()).collect();
        format!("known layouts are {}", known.join(", "))
    })
}

/// Sends the documents, waits for the records, and prints the results. Exit status 1 if a document has no record.
pub async fn run(import: ImportArguments, output: &CommandOutput) -> Result<ExitCode, Failure> {
    let installation = Installation::new(&import)?;
    let (mut imports, mut problems) = (Vec::new(), Vec::new());
    if import.from.is_dir() {
        let mut parts = FolderParts::read(&import.from, import.layout)?;
        while let Some(part) = parts.next_part()? {
            let sent = installation.import(part, Some(parts.layout)).await?;
            imports.push(sent);
        }
        problems = parts.problems;
    } else {
        let archive = fs::read(&import.from);
        let archive = archive.map_err(|error| named(&import.from, &error))?;
        imports.push(installation.import(archive, import.layout).await?);
    }

    for one in &imports {
        let id = one["import_id"].as_str().unwrap_or_default();
        problems.extend(installation.failed_rows(id).await?);
    }
    let is_whole = imports.iter().all(|one| one["status"] == "completed");
    let text = text(&imports, &problems);
    output.one(&json!({ "imports": imports, "problems": problems }), &text);

    Ok(if is_whole && problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn named(path: &Path, error: &dyn std::error::Error) -> Failure {
    format!("{}: {error}", path.display()).into()
}

/// Writes the results for people.
fn text(imports: &[Value], problems: &[Value]) -> String {
    let sum = |name: &str| -> i64 { imports.iter().filter_map(|one| one[name].as_i64()).sum() };
    let mut lines = vec![format!(
        "{} imported, {} imported before, {} without a record",
        sum("imported"),
        sum("duplicates"),
        problems.len()
    )];
    for one in imports {
        let part = |name: &str| one[name].as_str().unwrap_or_default();
        lines.push(format!("{}: {}", part("import_id"), part("status")));
    }

    let problem = |one: &Value| {
        let part = |name: &str| one[name].as_str().unwrap_or_default();
        let line = one["line"].as_i64().unwrap_or_default();
        format!(
            "line {line} {}: {} {}",
            part("file"),
            part("code"),
            part("message")
        )
    };
    lines.extend(problems.iter().take(SHOWN).map(problem));
    if problems.len() > SHOWN {
        let more = problems.len() - SHOWN;
        lines.push(format!("{more} further ones: see --json"));
    }
    lines.join("\n")
}

/// Documents of a folder that are not sent yet.
struct FolderParts {
    folder: PathBuf,
    layout: ImportLayout,
    rows: Peekable<vec::IntoIter<PlannedRow>>,
    /// Rows that become no record.
    problems: Vec<Value>,
}

impl FolderParts {
    fn read(folder: &Path, layout: Option<ImportLayout>) -> Result<Self, Failure> {
        let mut names = Vec::new();
        list(folder, "", &mut names)?;
        names.sort_unstable();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let manifest = match manifest_of(names.iter().copied())? {
            Some(name) => {
                let bytes = fs::read(folder.join(name))?;
                let read = Manifest::read(bytes, name.ends_with(".json"), layout);
                let read = read.map_err(|error| format!("{name}: {error}"))?;
                Some((name, read))
            }
            None => None,
        };

        let plan = plan(&names, manifest)?;
        Ok(Self {
            folder: folder.to_owned(),
            layout: plan.layout,
            rows: plan.rows.into_iter().peekable(),
            problems: Vec::new(),
        })
    }

    /// Packs the next documents with a manifest of their own; `None` at the end.
    fn next_part(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut part = ZipWriter::new(Cursor::new(Vec::new()));
        // PDFs hardly shrink.
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        let (mut size, mut packed, mut rows) = (0, HashSet::new(), Vec::new());
        while let Some(next) = self.rows.peek() {
            let added = size_of(&self.folder, next)?;
            if size > 0 && size + added > PART {
                break;
            }
            let Some(row) = self.rows.next() else {
                break;
            };
            let record = match row.record {
                Ok(record) => record,
                Err(problem) => {
                    self.problems.push(json!({
                        "line": row.line, "file": row.file, "code": problem.code, "message": problem.message,
                    }));
                    continue;
                }
            };

            size += added;
            for name in std::iter::once(&row.file).chain(&record.certificate) {
                if packed.insert(name.clone()) {
                    part.start_file(name.as_str(), options)?;
                    let path = self.folder.join(name);
                    let bytes = fs::read(&path).map_err(|error| named(&path, &error))?;
                    part.write_all(&bytes)?;
                }
            }
            rows.push(manifest_row(&row.file, &record));
        }
        if rows.is_empty() {
            return Ok(None);
        }

        part.start_file("manifest.json", options)?;
        part.write_all(&serde_json::to_vec(&rows)?)?;
        Ok(Some(part.finish()?.into_inner()))
    }
}

/// Returns the bytes of a row's files.
fn size_of(folder: &Path, row: &PlannedRow) -> Result<u64, Failure> {
    let Ok(record) = &row.record else {
        return Ok(0);
    };
    let mut size = 0;
    for name in std::iter::once(&row.file).chain(&record.certificate) {
        let path = folder.join(name);
        let file = fs::metadata(&path).map_err(|error| named(&path, &error))?;
        size += file.len();
    }
    Ok(size)
}

/// Lists the files below a folder. Links are not followed.
fn list(folder: &Path, prefix: &str, names: &mut Vec<String>) -> Result<(), Failure> {
    let entries = fs::read_dir(folder).map_err(|error| named(folder, &error))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name
            .to_str()
            .ok_or_else(|| format!("{}: the name is not UTF-8", entry.path().display()))?;
        let name = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            list(&entry.path(), &format!("{name}/"), names)?;
        } else if kind.is_file() {
            names.push(name);
        }
    }
    Ok(())
}

/// Describes a record in the layout of this service.
fn manifest_row(document: &str, record: &PlannedRecord) -> Value {
    let customer = record.customer.as_ref();
    json!({
        "document": document, "certificate": record.certificate, "name": record.name,
        "external_id": record.external_id, "customer_name": customer.map(|one| &one.name),
        "customer_email": customer.map(|one| &one.email), "signers": record.declared.signers,
        "sent_at": record.declared.sent_at, "completed_at": record.declared.completed_at,
    })
}

/// Requests of an installation.
struct Installation<'a> {
    import: &'a ImportArguments,
    http: Client,
}

impl<'a> Installation<'a> {
    fn new(import: &'a ImportArguments) -> Result<Self, Failure> {
        tls::use_one();
        let http = Client::builder().timeout(TIMEOUT);
        // A key goes to the named address only.
        let http = http.redirect(Policy::none()).build()?;
        Ok(Self { import, http })
    }

    fn address(&self, path: &str) -> String {
        let url = self.import.url.as_str().trim_end_matches('/');
        format!("{url}/api/v2/partner/imports{path}")
    }

    /// Sends an archive, and waits for the end of its import.
    async fn import(
        &self,
        archive: Vec<u8>,
        layout: Option<ImportLayout>,
    ) -> Result<Value, Failure> {
        let texts = [
            ("layout", layout.map(|layout| layout.to_string())),
            ("customer_name", self.import.customer_name.clone()),
            ("customer_email", self.import.customer_email.clone()),
        ];
        // Another choice for the same documents is another request.
        let key = sha256(format!("{} {texts:?}", sha256(&archive)).as_bytes());
        let request = || {
            let file = Part::bytes(archive.clone()).file_name("import.zip");
            let form = Form::new().part("file", file);
            let form = texts.iter().fold(form, |form, (name, text)| match text {
                Some(text) => form.text(*name, text.clone()),
                None => form,
            });
            let request = self.http.post(self.address("")).multipart(form);
            request.header("idempotency-key", &key)
        };

        let mut import = self.ask(request).await?;
        let id = import["import_id"].as_str().unwrap_or_default().to_owned();
        let path = format!("/{id}");
        // A repeated request has the answer of the first one, so the state is read again in any case.
        loop {
            import = self.ask(|| self.http.get(self.address(&path))).await?;
            if import["status"] != "running" {
                return Ok(import);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns the rows of an import without a record.
    async fn failed_rows(&self, id: &str) -> Result<Vec<Value>, Failure> {
        let (mut found, mut after) = (Vec::new(), 0);
        loop {
            let path = format!("/{id}/rows?status=failed&limit={PAGE}&starting_after={after}");
            let page = self.ask(|| self.http.get(self.address(&path))).await?;
            let page = page.as_array().cloned().unwrap_or_default();
            for row in &page {
                after = row["number"].as_i64().unwrap_or(i64::MAX);
                let problem = &row["problem"];
                found.push(json!({
                    "line": row["line"], "file": row["file"], "code": problem["code"], "message": problem["message"],
                }));
            }
            if page.len() < PAGE {
                return Ok(found);
            }
        }
    }

    /// Sends a request until there is an answer. Returns the data; an error has the message of the API.
    async fn ask(&self, request: impl Fn() -> RequestBuilder) -> Result<Value, Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let request = request().header("x-api-key", &self.import.api_key);
            let error: Failure = match answer(request).await {
                Ok((status, body)) if status.is_success() => return Ok(body["data"].clone()),
                Ok((status, body)) => {
                    let why = body["error"].as_str().unwrap_or(status.as_str());
                    let issues = body["details"].as_array().into_iter().flatten();
                    let issues = issues.filter_map(|issue| issue["message"].as_str());
                    let why: Vec<&str> = std::iter::once(why).chain(issues).collect();
                    let why: Failure = why.join(": ").into();
                    // A restart or a limit of the rate ends by itself.
                    let passes =
                        status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                    if !passes {
                        return Err(why);
                    }
                    why
                }
                Err(error) => error.into(),
            };
            if tries == TRIES {
                return Err(error);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Returns the answer of a request; a body that is no JSON counts as empty.
async fn answer(request: RequestBuilder) -> Result<(StatusCode, Value), reqwest::Error> {
    let answer = request.send().await?;
    let status = answer.status();
    let body = answer.bytes().await?;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names in a part, and its rows of the manifest.
    fn unpacked(part: Vec<u8>) -> (Vec<String>, Value) {
        let mut zip = zip::ZipArchive::new(Cursor::new(part)).unwrap();
        let names = zip.file_names().map(str::to_owned).collect();
        let manifest = zip.by_name("manifest.json").unwrap();
        (names, serde_json::from_reader(manifest).unwrap())
    }

    #[test]
    fn a_folder_is_packed_with_a_manifest_of_its_rows() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("e1/Lease.pdf", "%PDF-");
        write("e1/Summary.pdf", "%PDF-1");
        write(
            "manifest.csv",
            "Envelope ID,Subject,Recipient Name,Recipient Email\ne1,A,Jordan Lee,j@example.com\ne2,B,,\n",
        );

        let mut parts = FolderParts::read(folder.path(), None).unwrap();
        let (mut names, rows) = unpacked(parts.next_part().unwrap().unwrap());
        names.sort_unstable();
        assert_eq!(names, ["e1/Lease.pdf", "e1/Summary.pdf", "manifest.json"]);
        assert_eq!(rows[0]["document"], "e1/Lease.pdf");
        assert_eq!(rows[0]["certificate"], "e1/Summary.pdf");
        assert_eq!(rows[0]["signers"][0]["email"], "j@example.com");
        assert_eq!(parts.layout, ImportLayout::Docusign);
        assert!(parts.next_part().unwrap().is_none());
        assert_eq!(parts.problems[0]["code"], "no_document");
        assert_eq!(parts.problems[0]["line"], 3);
    }

    #[test]
    fn the_text_counts_and_names_what_has_no_record() {
        let imports = [
            json!({ "import_id": "imp_1", "status": "completed", "imported": 2, "duplicates": 1 }),
        ];
        let problems =
            [json!({ "line": 3, "file": "a.pdf", "code": "unreadable", "message": "x" })];
        let text = text(&imports, &problems);
        assert!(
            text.starts_with("2 imported, 1 imported before, 1 without a record"),
            "{text}"
        );
        assert!(text.ends_with("line 3 a.pdf: unreadable x"), "{text}");
    }
}
