//! Templates: a document, its fields and the roles that fill them.

use std::time::Duration;

use super::signature::ExistingSignature;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::clock::Timestamp;
use super::envelope::{KeptFile, StoredFile, words};
use super::field::Field;
use super::hash::sha256;
use super::id::{OrgId, TemplateId};
use super::organization::Role;
use super::reminders::ReminderPlan;

words! {
    /// Purpose of a template.
    Origin {
        Library = "library",
        Document = "document",
        Copy = "copy",
    }
}

words! {
    /// Format that a template was authored in. holdfast stores PDFs only: a `word` template was
    /// converted from a word document by another program or service.
    SourceFormat {
        Pdf = "pdf",
        Word = "word",
    }
}

words! {
    /// File type of a word processor, of which a service can make a PDF. The text is its media type.
    WordDocument {
        Docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        Odt = "application/vnd.oasis.opendocument.text",
    }
}

impl WordDocument {
    /// Whether a file with this beginning can be one: both types are ZIP archives.
    pub fn is_archive(head: &[u8]) -> bool {
        head.starts_with(b"PK\x03\x04")
    }

    /// Detects the type by names in the archive, which are not compressed; `None` for any other archive, and for a
    /// document with macros. Nothing is unpacked.
    pub fn detect(archive: &[u8]) -> Option<Self> {
        /// Name and content of the first entry, without a gap, and the beginning of the next record
        /// (OpenDocument 1.3, part 2, section 3.3).
        const ODT: &[u8] = b"mimetypeapplication/vnd.oasis.opendocument.textPK";
        /// Bytes of an entry before its name.
        const ENTRY: usize = 30;
        /// Main part of the document, in all programs that write the type.
        const DOCX: &[u8] = b"word/document.xml";
        /// End of the name of a part with macros.
        const MACROS: &[u8] = b"vbaproject.bin";

        if !Self::is_archive(archive) {
            return None;
        }
        if archive
            .get(ENTRY..)
            .is_some_and(|rest| rest.starts_with(ODT))
        {
            return Some(Self::Odt);
        }

        let names = names_of(archive)?;
        let has_macros = |name: &&[u8]| name.to_ascii_lowercase().ends_with(MACROS);
        let is_docx = names.contains(&DOCX) && !names.iter().any(has_macros);
        is_docx.then_some(Self::Docx)
    }

    /// Returns a file name with the type's extension.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Docx => "document.docx",
            Self::Odt => "document.odt",
        }
    }
}

/// Returns the names in the central directory of a ZIP archive (APPNOTE 6.3.10, sections 4.3.12 and 4.3.16); `None` for a
/// damaged one, and for one of thousands of files or of gigabytes, which no document is.
fn names_of(archive: &[u8]) -> Option<Vec<&[u8]>> {
    /// First bytes of the record at the end, and its length without the comment.
    const END: &[u8] = b"PK\x05\x06";
    const END_LENGTH: usize = 22;
    /// First bytes of an entry of the directory, and its length before the name.
    const ENTRY: &[u8] = b"PK\x01\x02";
    const ENTRY_LENGTH: usize = 46;
    const MOST_ENTRIES: usize = 4096;

    let number = |at: usize| {
        let bytes: [u8; 2] = archive.get(at..at + 2)?.try_into().ok()?;
        Some(usize::from(u16::from_le_bytes(bytes)))
    };

    // The comment is the last part of the archive, and its length is known only from the record before it.
    let last = archive.len().checked_sub(END_LENGTH)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    let end = (first..=last).rev().find(|at| {
        archive[*at..].starts_with(END)
            && number(*at + 20).is_some_and(|length| *at + END_LENGTH + length == archive.len())
    })?;

    let count = number(end + 10)?;
    if count > MOST_ENTRIES {
        return None;
    }

    let offset: [u8; 4] = archive.get(end + 16..end + 20)?.try_into().ok()?;
    let mut at = usize::try_from(u32::from_le_bytes(offset)).ok()?;
    let mut names = Vec::new();
    for _ in 0..count {
        if !archive.get(at..)?.starts_with(ENTRY) {
            return None;
        }

        let name = at + ENTRY_LENGTH;
        let length = number(at + 28)?;
        names.push(archive.get(name..name + length)?);
        // Further facts and a comment follow the name.
        at = name + length + number(at + 30)? + number(at + 32)?;
    }

    Some(names)
}

/// Owner and source of a derived template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeFor {
    /// Id of the envelope, batch or package that the template was made for.
    pub owner: String,
    /// Key of the source. Deriving from an equal source again yields the same template.
    pub source: String,
}

/// What took the place of an upload about which readers could disagree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DocumentRepair {
    /// SHA-256 of the upload.
    pub uploaded_hash: String,
    /// SHA-256 of the document that is signed and kept instead.
    pub rewritten_hash: String,
    pub rewritten_size: u64,
    pub reason: String,
    /// Signatures of the upload that the sender gave up, as they were verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<ExistingSignature>,
}

/// Roles and users that see a template, beside owners and admins, who see all. Without any, all users of the
/// organization see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateSharing {
    /// Roles of the users who see the template.
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub roles: Vec<Role>,
    /// E-mail addresses of users who see the template.
    #[serde(default)]
    #[schemars(length(max = 100), inner(email))]
    pub users: Vec<String>,
}

impl TemplateSharing {
    /// Whether all users of the organization see the template.
    pub fn is_with_all(&self) -> bool {
        self.roles.is_empty() && self.users.is_empty()
    }

    /// Whether a user sees the template.
    pub fn includes(&self, reader: &TemplateReader) -> bool {
        self.is_with_all()
            || self.roles.contains(&reader.role)
            || self.users.contains(&reader.email)
    }
}

/// User who sees only templates that are shared with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateReader {
    pub role: Role,
    /// In lower case.
    pub email: String,
}

impl TemplateReader {
    /// Returns a user as a reader; `None` for owners and admins, who see all templates.
    pub fn of(role: Role, email: &str) -> Option<Self> {
        let sees_all = matches!(role, Role::Owner | Role::Admin);
        (!sees_all).then(|| Self {
            role,
            email: email.trim().to_lowercase(),
        })
    }
}

/// Variable of a template's word processor document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateVariable {
    /// Name, as between the brackets of `[[name]]`.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// Text for envelopes that give none; null if they have to.
    #[schemars(length(max = 5000))]
    pub default: Option<String>,
}

/// Document of a word processor with variables. Each envelope's PDF is made of it, with the envelope's values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WordSource {
    pub document: KeptFile,
    /// In the order of their first appearance.
    pub variables: Vec<TemplateVariable>,
}

/// Time for which a deleted template of the library can be restored.
pub const RESTORABLE: Duration = Duration::from_secs(30 * 86_400);

/// Record of a template.
#[derive(Clone, Debug)]
pub struct Template {
    pub id: TemplateId,
    pub org: OrgId,
    pub name: String,
    pub external_id: Option<String>,
    pub kba_required: bool,
    /// Whether signers may decline, unless the envelope overrides it.
    pub may_decline: bool,
    /// Plan of reminders of envelopes that name none; without one, that of the organization.
    pub reminders: Option<ReminderPlan>,
    pub provider_instance: String,
    /// Id at the provider; `None` until the provider has a document.
    pub provider_template: Option<String>,
    pub document: Option<StoredFile>,
    /// What took the place of the upload, if that was repaired.
    pub repair: Option<DocumentRepair>,
    pub fields: Vec<Field>,
    /// Whether the provider lacks the present document and fields.
    pub provider_stale: bool,
    pub origin: Origin,
    pub made_for: Option<MadeFor>,
    /// For a copy, the source's [`Template::content`] at the time of copying.
    pub copied_content: Option<String>,
    pub source_format: SourceFormat,
    /// Whether the document has a price table, which the author's program fills in.
    pub pricing_table: bool,
    /// Words by which the organization sorts its templates.
    pub tags: Vec<String>,
    /// Path of the folder, such as `Sales/Ohio`; `None` at the top.
    pub folder: Option<String>,
    /// Users who see the template.
    pub shared_with: TemplateSharing,
    /// Document that the PDF was made of, if it has variables.
    pub word_source: Option<WordSource>,
    /// Number of the present version, from 1. Another document makes another version.
    pub version: i64,
    /// Who made the present version; unknown for templates of earlier releases.
    pub version_by: Option<String>,
    /// When the present version was made; `None` for that of the template's creation.
    pub version_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

/// Document and fields of a template, as one of its versions has them.
#[derive(Clone, Debug)]
pub struct TemplateVersion {
    /// Number, from 1.
    pub number: i64,
    /// Who made it; unknown for templates of earlier releases.
    pub made_by: Option<String>,
    pub made_at: Timestamp,
    pub document: StoredFile,
    /// What took the place of the upload, if that was repaired.
    pub repair: Option<DocumentRepair>,
    pub fields: Vec<Field>,
    /// Document that the PDF was made of, if it has variables.
    pub word_source: Option<WordSource>,
}

impl Template {
    /// Creates a template without document and fields.
    pub fn new(org: OrgId, name: String, provider_instance: String, now: Timestamp) -> Self {
        Self {
            id: TemplateId::new(),
            org,
            name,
            external_id: None,
            kba_required: false,
            may_decline: true,
            reminders: None,
            provider_instance,
            provider_template: None,
            document: None,
            repair: None,
            fields: Vec::new(),
            // The provider has no copy yet, so the first use sends one.
            provider_stale: true,
            origin: Origin::Library,
            made_for: None,
            copied_content: None,
            source_format: SourceFormat::Pdf,
            pricing_table: false,
            tags: Vec::new(),
            folder: None,
            shared_with: TemplateSharing::default(),
            word_source: None,
            version: 1,
            version_by: None,
            version_at: None,
            created_at: now,
            updated_at: now,
            deleted_at: None,
        }
    }

    /// Returns until when a deleted template of the library can be restored.
    pub fn restorable_until(&self) -> Option<Timestamp> {
        let deleted_at = self.deleted_at.filter(|_| self.origin == Origin::Library);
        deleted_at.map(|deleted_at| deleted_at + RESTORABLE)
    }

    /// Returns how the present document took the place of an upload.
    pub fn repair(&self) -> Option<&DocumentRepair> {
        let document = self.document.as_ref()?;
        let repair = self.repair.as_ref();
        repair.filter(|repair| repair.rewritten_hash == document.sha256)
    }

    /// Returns the present version; `None` without a document.
    pub fn present_version(&self) -> Option<TemplateVersion> {
        Some(TemplateVersion {
            number: self.version,
            made_by: self.version_by.clone(),
            made_at: self.version_at.unwrap_or(self.created_at),
            document: self.document.clone()?,
            repair: self.repair().cloned(),
            fields: self.fields.clone(),
            word_source: self.word_source.clone(),
        })
    }

    /// Whether a user sees the template; `None` stands for callers who see all.
    pub fn is_seen_by(&self, reader: Option<&TemplateReader>) -> bool {
        reader.is_none_or(|reader| self.shared_with.includes(reader))
    }

    /// Returns the variables of the word processor document; none of a PDF.
    pub fn variables(&self) -> &[TemplateVariable] {
        let source = self.word_source.as_ref();
        source.map_or(&[], |source| &source.variables)
    }

    /// Returns the SHA-256 (lower-case hex) of document and fields, the parts that a copy shares.
    pub fn content(&self) -> String {
        let document = self.document.as_ref();
        let document = document.map(|document| document.sha256.as_str());
        sha256(json!([document, self.fields]).to_string().as_bytes())
    }

    /// Returns the roles in the order in which the fields first name them.
    pub fn roles(&self) -> Vec<&str> {
        let mut roles: Vec<&str> = Vec::new();
        for field in &self.fields {
            if !roles.contains(&field.role.as_str()) {
                roles.push(&field.role);
            }
        }
        roles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an archive with these files, uncompressed. What the detection does not read is zero.
    fn archive(files: &[(&str, &str)]) -> Vec<u8> {
        let length = |text: &str| u16::try_from(text.len()).unwrap().to_le_bytes();
        let (mut archive, mut directory) = (Vec::new(), Vec::new());
        for (name, content) in files {
            archive.extend_from_slice(b"PK\x03\x04");
            archive.extend_from_slice(&[0; 26]);
            archive.extend_from_slice(name.as_bytes());
            archive.extend_from_slice(content.as_bytes());

            directory.extend_from_slice(b"PK\x01\x02");
            directory.extend_from_slice(&[0; 24]);
            directory.extend_from_slice(&length(name));
            directory.extend_from_slice(&[0; 16]);
            directory.extend_from_slice(name.as_bytes());
        }

        let offset = u32::try_from(archive.len()).unwrap();
        archive.extend_from_slice(&directory);
        archive.extend_from_slice(b"PK\x05\x06");
        archive.extend_from_slice(&[0; 6]);
        let count = u16::try_from(files.len()).unwrap();
        archive.extend_from_slice(&count.to_le_bytes());
        archive.extend_from_slice(&[0; 4]);
        archive.extend_from_slice(&offset.to_le_bytes());
        archive.extend_from_slice(&[0; 2]);
        archive
    }

    #[test]
    fn a_shared_template_is_seen_by_its_roles_and_users_and_by_admins() {
        let shared = TemplateSharing {
            roles: vec![Role::Compliance],
            users: vec!["ana@oak.example".into()],
        };
        let sees = |sharing: &TemplateSharing, role: Role, email: &str| {
            TemplateReader::of(role, email).is_none_or(|reader| sharing.includes(&reader))
        };
        for (role, email, expected) in [
            (Role::Compliance, "lee@oak.example", true),
            (Role::Sender, " Ana@Oak.example", true),
            (Role::Sender, "lee@oak.example", false),
            (Role::Auditor, "lee@oak.example", false),
            (Role::Admin, "lee@oak.example", true),
            (Role::Owner, "lee@oak.example", true),
        ] {
            assert_eq!(sees(&shared, role, email), expected, "{role} {email}");
            assert!(sees(&TemplateSharing::default(), role, email));
        }
    }

    #[test]
    fn documents_of_word_processors_are_detected_by_names_in_their_archive() {
        let detect = |name: &str, content: &str| WordDocument::detect(&archive(&[(name, content)]));
        let odt = WordDocument::Odt.as_str();
        assert_eq!(detect("mimetype", odt), Some(WordDocument::Odt));
        assert_eq!(
            detect("word/document.xml", "<w:document/>"),
            Some(WordDocument::Docx)
        );

        // A spreadsheet, a template of documents, and a text that is no archive.
        let sheet = "application/vnd.oasis.opendocument.spreadsheet";
        assert_eq!(detect("mimetype", sheet), None);
        assert_eq!(detect("mimetype", &format!("{odt}-template")), None);
        assert_eq!(detect("xl/workbook.xml", ""), None);
        assert_eq!(WordDocument::detect(b"word/document.xml"), None);
        assert_eq!(WordDocument::detect(b"PK\x03\x04"), None);
    }

    #[test]
    fn the_main_part_of_a_document_is_a_file_and_no_text_in_one() {
        let document = ("word/document.xml", "<w:document/>");
        let other = ("xl/workbook.xml", "word/document.xml");
        assert_eq!(WordDocument::detect(&archive(&[other])), None);
        let both = archive(&[other, document]);
        assert_eq!(WordDocument::detect(&both), Some(WordDocument::Docx));

        // A part with macros, and archives that end early or count too many files.
        let macros = archive(&[document, ("word/vbaProject.bin", "")]);
        assert_eq!(WordDocument::detect(&macros), None);
        for length in 0..both.len() {
            assert_eq!(WordDocument::detect(&both[..length]), None, "{length}");
        }
        let mut many = both.clone();
        let count = both.len() - 12;
        many[count..count + 2].copy_from_slice(&u16::MAX.to_le_bytes());
        assert_eq!(WordDocument::detect(&many), None);
    }

    #[test]
    fn a_comment_at_the_end_of_an_archive_is_no_directory() {
        let document = ("word/document.xml", "<w:document/>");
        let mut commented = archive(&[document]);
        let length = commented.len() - 2;
        commented[length..].copy_from_slice(&9_u16.to_le_bytes());
        commented.extend_from_slice(b"PK\x05\x06 text");
        let found = WordDocument::detect(&commented);
        assert_eq!(found, Some(WordDocument::Docx));
    }
}
