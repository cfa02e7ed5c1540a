//! Files that signers attach. They become an appendix of the executed document.

use std::collections::BTreeMap;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::execute::ExecuteError;
use super::form::{FormError, SignerTurn};
use super::{Room, owner_of};
use holdfast_adapters::files::{FilesError, StorageArea as FileArea};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::ComponentError;
use holdfast_components::rules::documents::{DocumentError, Picture, PictureFormat};
use holdfast_domain::envelope::{FileType, StoredFile};
use holdfast_domain::field::ATTACHMENT;
use holdfast_domain::id::OrgId;
use holdfast_domain::locale::Message;
use holdfast_store::StoreError;
use holdfast_store::room::{self as rooms, RoomAttachment, RoomSubmission, RoomSubmitter};

/// Maximum size of one file, in MiB.
pub const FILE_MIB: usize = 10;
/// Maximum size of all files of a document, in MiB. They are joined in memory.
const TOTAL_MIB: usize = 20;
/// Maximum number of pages of one file.
const PAGES: usize = 50;
/// Field of a certificate of completion that was imported.
const IMPORTED: &str = "certificate_of_completion";
/// Name of a file that the signer's browser did not name.
const UNNAMED: &str = "attachment";

/// Description of an attached file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachedFile {
    /// Name of the field.
    pub field: String,
    /// Name that the file had at the signer.
    pub name: String,
    /// `application/pdf`, `image/png` or `image/jpeg`, by the first bytes of the file.
    pub content_type: String,
    /// In bytes.
    pub size: i64,
    /// Lower-case hexadecimal.
    pub sha256: String,
}

/// Lists attached files by the name of their field.
pub fn listed(attachments: &BTreeMap<String, RoomAttachment>) -> Vec<AttachedFile> {
    let described = |(field, file): (&String, &RoomAttachment)| AttachedFile {
        field: field.clone(),
        name: file.name.clone(),
        content_type: file.content_type.clone(),
        size: file.size,
        sha256: file.sha256.clone(),
    };
    attachments.iter().map(described).collect()
}

/// File that a signer uploads, as received.
pub struct ReceivedFile {
    /// Without folders and control characters.
    pub name: Option<String>,
    pub bytes: Bytes,
}

impl Room {
    /// Attaches a file to a field of the signer, in place of an earlier one, and returns its name.
    /// Problems with the file are problems of the field.
    pub async fn attach(
        &self,
        org: &OrgId,
        (submitter, person): (i64, &str),
        field: &str,
        file: ReceivedFile,
    ) -> Result<String, FormError> {
        let form = self.unruled_form(org, submitter).await?;
        let own = form.fields.iter();
        let mut own = own.filter(|own| own.field_type == ATTACHMENT && !own.is_locked());
        let known = own.find(|own| own.name == field);
        known.ok_or(FormError::NotFound)?;
        let mut connection = self.store.read().await?;
        let all = rooms::submitters(&mut connection, org, form.submission.id).await?;

        drop(connection);
        // Checked before the sandbox reads the file, because joining large files is the expensive part.
        let others = others(&all, form.submitter.id, field);
        let total: i64 = others.iter().map(|other| other.size).sum();
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        if total.saturating_add(file.bytes.len()) > TOTAL_MIB << 20 {
            let why = Message::with_limit("problem-attachments-size", TOTAL_MIB);
            return Err(wrong(field, why));
        }

        // Before the transaction: its lock would block the other signers while the sandbox works.
        let checked = self.readable(&form.submission, &others, &file.bytes);
        let kind = match checked.await? {
            Ok(kind) => kind,
            Err(why) => return Err(wrong(field, why)),
        };
        let owner = owner_of(&form.submitter, "attached");
        let stored = self
            .files
            .put(FileArea::Room, org, owner, file.bytes, kind.as_str())
            .await?;

        let SignerTurn {
            mut tx,
            mut submitter,
            submitters,
            ..
        } = self.turn(org, submitter, person).await?;

        // Together with another file that came meanwhile, it might not fit.
        if self::others(&submitters, submitter.id, field) != others {
            return Err(FormError::Busy);
        }

        let attached = RoomAttachment {
            key: stored.key,
            sha256: stored.sha256,
            name: file.name.unwrap_or_else(|| UNNAMED.to_owned()),
            content_type: stored.content_type,
            size: stored.size,
        };
        let name = attached.name.clone();
        // The name is the field's entry, so that rules and required fields see an answer.
        submitter.values.insert(field.to_owned(), name.clone());

        submitter.attachments.insert(field.to_owned(), attached);
        self.start(&mut tx, &mut submitter).await?;
        rooms::update_submitter(&mut tx, &submitter).await?;
        tx.commit().await?;

        Ok(name)
    }

    /// Removes the file of a field.
    pub async fn detach(
        &self,
        org: &OrgId,
        (submitter, person): (i64, &str),
        field: &str,
    ) -> Result<(), FormError> {
        let SignerTurn {
            mut tx,
            mut submitter,
            ..
        } = self.turn(org, submitter, person).await?;
        if submitter.attachments.remove(field).is_some() {
            submitter.values.insert(field.to_owned(), String::new());
            rooms::update_submitter(&mut tx, &submitter).await?;
            tx.commit().await?;
        }

        Ok(())
    }

    /// Returns the type of a file that can become pages of the document beside the other files, or the
    /// reason that it cannot. The sandbox joins them, as when the document is executed.
    async fn readable(
        &self,
        submission: &RoomSubmission,
        others: &[RoomAttachment],
        bytes: &Bytes,
    ) -> Result<Result<FileType, Message>, FormError> {
        if bytes.len() > FILE_MIB << 20 {
            let why = Message::with_limit("problem-attachment-size", FILE_MIB);
            return Ok(Err(why));
        }
        let Some(kind) = FileType::detect(bytes) else {
            return Ok(Err(Message::new("problem-attachment-type")));
        };

        // The first bytes say nothing about the rest, so a reader opens the file while
        // the signer can still replace it.
        let unreadable = || Message::new("problem-attachment-unreadable");
        let org = &submission.org;
        if kind == FileType::Pdf {
            let placement = self.components.placement(Some(org), self.store.priority());
            match placement.inspect(bytes.clone()).await? {
                Ok(facts) if facts.pages.len() <= PAGES => {}
                Ok(_) => {
                    let why = Message::with_limit("problem-attachment-pages", PAGES);
                    return Ok(Err(why));
                }
                Err(_) => return Ok(Err(unreadable())),
            }
        }

        // A trial of the later work, with all files: what joins now joins after the last signature.
        let owner = WorkOwner::new(org, &submission.id.to_string());
        let document = self.files.get(&submission.file()).await?;
        let mut files = self.stored(others).await?;
        files.push((kind, bytes.clone()));

        match self.joined(&owner, document, files).await {
            Ok(Ok(_)) => Ok(Ok(kind)),
            Ok(Err(_)) => Ok(Err(unreadable())),
            // The signer can replace a file that breaks the component. Other failures are not the file's.
            Err(error) if error.by_document => Ok(Err(unreadable())),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads attached files, with their types.
    async fn stored(&self, files: &[RoomAttachment]) -> Result<Vec<(FileType, Bytes)>, FilesError> {
        let mut stored = Vec::new();
        for file in files {
            let kind = FileType::parse(&file.content_type).unwrap_or(FileType::Pdf);
            stored.push((kind, self.files.get(&file.file()).await?));
        }
        Ok(stored)
    }

    async fn as_pages(
        &self,
        owner: &WorkOwner,
        kind: FileType,
        bytes: Bytes,
    ) -> Result<Result<Bytes, DocumentError>, ComponentError> {
        let format = match kind {
            FileType::Pdf => return Ok(Ok(bytes)),
            FileType::Png => PictureFormat::Png,
            FileType::Jpeg => PictureFormat::Jpeg,
        };
        // Decoders of pictures are a favourite target, so pictures are drawn inside the sandbox only.
        let bytes = bytes.to_vec();
        let documents = self.components.documents(None, self.store.priority());
        let documents = documents.for_owner(owner.clone());
        let drawn = documents.picture_to_pdf(Picture { format, bytes }).await?;

        Ok(drawn.map(Bytes::from))
    }

    /// Appends files to a document.
    async fn joined(
        &self,
        owner: &WorkOwner,
        document: Bytes,
        files: Vec<(FileType, Bytes)>,
    ) -> Result<Result<Vec<u8>, DocumentError>, ComponentError> {
        let mut parts = vec![document];
        for (kind, bytes) in files {
            match self.as_pages(owner, kind, bytes).await? {
                Ok(pages) => parts.push(pages),
                Err(error) => return Ok(Err(error)),
            }
        }

        let documents = self.components.documents(None, self.store.priority());
        documents.for_owner(owner.clone()).merge(parts).await
    }

    /// Adds the files that signers attached to the executed document, in the order of signers and fields.
    pub(super) async fn with_attachments(
        &self,
        executed: Vec<u8>,
        submission: &RoomSubmission,
        submitters: &[RoomSubmitter],
    ) -> Result<Vec<u8>, ExecuteError> {
        let attached = submitters.iter().flat_map(|submitter| {
            let fields = submission.fields.iter();
            let own = fields.filter(|field| field.submitter_uuid == submitter.role);
            own.filter_map(|field| submitter.attachments.get(&field.name))
        });
        let attached: Vec<RoomAttachment> = attached.cloned().collect();
        // Without files the document stays byte for byte as it was filled.
        if attached.is_empty() {
            return Ok(executed);
        }

        let owner = WorkOwner::new(&submission.org, &submission.id.to_string());
        let files = self.stored(&attached).await?;
        let joined = self.joined(&owner, executed.into(), files).await?;
        joined.map_err(ExecuteError::Document)
    }

    /// Returns the files attached to a submission, with the role and the name of their signers.
    pub async fn attachments(
        &self,
        org: &OrgId,
        submission: i64,
    ) -> Result<Vec<SignersFile>, StoreError> {
        let mut connection = self.store.read().await?;
        let submitters = rooms::submitters(&mut connection, org, submission).await?;
        let of_signer = |submitter: RoomSubmitter| {
            let described = listed(&submitter.attachments);
            let files = submitter.attachments.into_values();
            let (role, name) = (submitter.role, submitter.name);
            // A signer may still exchange a file before signing, so readers of the API need to know.
            let is_final = submitter.completed_at.is_some();
            described
                .into_iter()
                .zip(files)
                .map(move |(file, stored)| SignersFile {
                    role: role.clone(),
                    signer: name.clone(),
                    is_final,
                    file,
                    stored,
                })
        };

        Ok(submitters.into_iter().flat_map(of_signer).collect())
    }

    /// Returns the bytes of an attached file.
    pub async fn attached(&self, file: &SignersFile) -> Result<Bytes, FilesError> {
        self.files.get(&file.stored.file()).await
    }
}

/// File of one signer, or an imported certificate of completion.
pub struct SignersFile {
    /// Empty for a certificate.
    pub role: String,
    /// Name of the signer; empty for a certificate.
    pub signer: String,
    /// Whether the signer has signed, so that the file cannot change any more.
    pub is_final: bool,
    pub file: AttachedFile,
    stored: RoomAttachment,
}

impl SignersFile {
    /// Describes a certificate of completion that was imported with a signed document. No signer attached it.
    pub fn of_import(name: &str, file: StoredFile) -> Self {
        let stored = RoomAttachment {
            key: file.key,
            sha256: file.sha256,
            name: name.to_owned(),
            content_type: file.content_type,
            size: file.size,
        };
        Self {
            role: String::new(),
            signer: String::new(),
            is_final: true,
            file: AttachedFile {
                field: IMPORTED.to_owned(),
                name: stored.name.clone(),
                content_type: stored.content_type.clone(),
                size: stored.size,
                sha256: stored.sha256.clone(),
            },
            stored,
        }
    }
}

/// Returns the files of a submission except for that of one field.
fn others(submitters: &[RoomSubmitter], submitter: i64, field: &str) -> Vec<RoomAttachment> {
    let kept = submitters.iter().flat_map(|other| {
        let files = other.attachments.iter();
        files.filter(move |(name, _)| other.id != submitter || name.as_str() != field)
    });
    kept.map(|(_, file)| file.clone()).collect()
}

fn wrong(field: &str, why: Message) -> FormError {
    FormError::Invalid([(field.to_owned(), why)].into())
}
