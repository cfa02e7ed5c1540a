//! The document as a signer sees it: with the entries of those who signed before.

use holdfast_handwriting::Handwriting;
use sha2::{Digest as _, Sha256};

use super::execute::filled;
use super::signature::is_picture;
use holdfast_components::rules::document_values::FlowingField;
use holdfast_components::rules::documents::DocumentError;
use holdfast_domain::dates::DateFormat;
use holdfast_domain::envelope::StoredFile;
use holdfast_domain::field::Area;
use holdfast_store::room::{RoomAttachment, RoomField, RoomSubmitter};

/// A document with the entries of the submitters who have completed it.
#[derive(Clone)]
pub struct ShownDocument {
    pub file: StoredFile,
    fields: Vec<RoomField>,
    dates: DateFormat,
    /// Submitters who have completed, in signing order.
    pub(super) signed: Vec<RoomSubmitter>,
}

/// What an earlier signer entered in one field.
pub struct EarlierEntry<'a> {
    pub signer: &'a str,
    pub role: &'a str,
    pub areas: &'a [Area],
    field: &'a RoomField,
    value: &'a str,
    file: Option<&'a RoomAttachment>,
    dates: DateFormat,
}

impl EarlierEntry<'_> {
    /// Returns field, value and signer for people, for example `Waiver: Yes (Ana Diaz, Buyer)`.
    pub fn text(&self) -> String {
        let (date, file);
        // English words in every language: these lines are part of the digest that a signer signs.
        let value = match self.field.field_type.as_str() {
            "checkbox" if self.value == "true" => "Yes",
            "checkbox" => "No",
            "signature" | "initials" if is_picture(self.value) => "signed by hand",
            "date" => {
                date = self.dates.written(self.value);
                &date
            }
            _ => match self.file {
                // Another file of the same name has to make another version.
                Some(attached) => {
                    file = format!("{}, SHA-256 {}", self.value, attached.sha256);
                    &file
                }
                None => self.value,
            },
        };

        format!(
            "{}: {value} ({}, {})",
            self.field.name, self.signer, self.role
        )
    }
}

impl From<StoredFile> for ShownDocument {
    /// A document without entries.
    fn from(file: StoredFile) -> Self {
        Self {
            file,
            fields: Vec::new(),
            dates: DateFormat::default(),
            signed: Vec::new(),
        }
    }
}

impl ShownDocument {
    pub(super) fn new(
        file: StoredFile,
        fields: Vec<RoomField>,
        dates: DateFormat,
        signed: Vec<RoomSubmitter>,
    ) -> Self {
        Self {
            file,
            fields,
            dates,
            signed,
        }
    }

    /// Returns whether the document has entries of earlier signers.
    pub fn has_entries(&self) -> bool {
        !self.signed.is_empty()
    }

    /// Returns whether an entry may stand on a page that was added for it.
    pub fn may_have_more_pages(&self) -> bool {
        self.entries()
            .any(|entry| entry.field.rules.overflow.is_some())
    }

    /// Identifies the content, in hexadecimal: the SHA-256 of the file before the first signer has
    /// signed, then the SHA-256 of lines. The first line is the file's; each entry adds its text for
    /// people and the SHA-256 of its value. A check of it needs no extraction of text.
    pub fn version(&self) -> String {
        if self.signed.is_empty() {
            return self.file.sha256.clone();
        }

        let mut lines = format!("{}\n", self.file.sha256);
        for entry in self.entries() {
            // The text for people is the same for two drawn signatures, so the value itself is hashed, too.
            let value = hex::encode(Sha256::digest(entry.value));
            lines.push_str(&format!("{}\n{value}\n", entry.text()));
        }

        hex::encode(Sha256::digest(lines))
    }

    /// Identifies what pages look like with the entries, for caches: other fields, rules or styles make other
    /// pages of the same content.
    pub fn look(&self) -> String {
        if self.signed.is_empty() {
            return self.file.sha256.clone();
        }

        let styles = self.signed.iter();
        let styles: Vec<_> = styles
            .map(|signer| signer.signature_style.map(Handwriting::as_str))
            .collect();
        let seen = serde_json::json!([self.version(), self.fields, styles]);
        hex::encode(Sha256::digest(seen.to_string()))
    }

    /// Returns the entries of earlier signers.
    pub fn entries(&self) -> impl Iterator<Item = EarlierEntry<'_>> {
        self.signed.iter().flat_map(|submitter| {
            let own = self.fields.iter();
            let own = own.filter(|field| field.submitter_uuid == submitter.role);
            own.filter_map(|field| {
                let value = submitter.values.get(&field.name)?;
                // An optional field that stayed empty leaves the page as it was.
                (!value.is_empty()).then_some(EarlierEntry {
                    signer: &submitter.name,
                    role: &submitter.role,
                    areas: field.places_of(value),
                    field,
                    value,
                    file: submitter.attachments.get(&field.name),
                    dates: self.dates,
                })
            })
        })
    }

    /// Returns the files that earlier signers attached, with the signer's name and that of the field.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str, &RoomAttachment)> {
        self.signed.iter().flat_map(|submitter| {
            let files = submitter.attachments.iter();
            files.map(|(field, file)| (submitter.name.as_str(), field.as_str(), file))
        })
    }

    /// Returns the entries with their places, to be written into the document.
    pub fn filled(&self) -> Result<Vec<FlowingField>, DocumentError> {
        let signed = self.signed.iter();
        signed
            .flat_map(|submitter| filled(&self.fields, submitter, self.dates))
            .collect()
    }
}
