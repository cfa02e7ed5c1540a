//! Templates: a document, its fields and the roles that fill them.

use serde_json::json;

use super::clock::Timestamp;
use super::envelope::{StoredFile, words};
use super::field::Field;
use super::hash::sha256;
use super::id::{OrgId, TemplateId};

words! {
    /// What a template is there for.
    Origin {
        Library = "library",
        Document = "document",
        Copy = "copy",
    }
}

words! {
    /// What a template's author wrote it in. holdfast keeps PDFs only: a template of
    /// the second kind is what some other program made of a word document.
    SourceFormat {
        Pdf = "pdf",
        Word = "word",
    }
}

/// What a template was made for, and what of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeFor {
    /// The envelope, batch or package.
    pub owner: String,
    /// Names the source: the same again is the same template.
    pub source: String,
}

/// A template's record.
#[derive(Clone, Debug)]
pub struct Template {
    pub id: TemplateId,
    pub org: OrgId,
    pub name: String,
    pub external_id: Option<String>,
    pub kba_required: bool,
    pub provider_instance: String,
    /// The provider's own id; none until it has a document.
    pub provider_template: Option<String>,
    pub document: Option<StoredFile>,
    pub fields: Vec<Field>,
    /// The provider does not have this document and these fields yet.
    pub provider_stale: bool,
    pub origin: Origin,
    pub made_for: Option<MadeFor>,
    /// Of a copy: the source's [`Template::content`] when it was copied.
    pub copied_content: Option<String>,
    pub source_format: SourceFormat,
    /// Has a table of prices that its author's program fills in.
    pub pricing_table: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Template {
    /// A template of which nothing is known but whose it is and where it goes.
    pub fn new(org: OrgId, name: String, provider_instance: String, now: Timestamp) -> Self {
        Self {
            id: TemplateId::new(),
            org,
            name,
            external_id: None,
            kba_required: false,
            provider_instance,
            provider_template: None,
            document: None,
            fields: Vec::new(),
            provider_stale: true,
            origin: Origin::Library,
            made_for: None,
            copied_content: None,
            source_format: SourceFormat::Pdf,
            pricing_table: false,
            created_at: now,
            updated_at: now,
            deleted_at: None,
        }
    }

    /// SHA-256, lower-case hex, of all that a copy of it has: document and fields.
    pub fn content(&self) -> String {
        let document = self.document.as_ref();
        let document = document.map(|document| document.sha256.as_str());
        sha256(json!([document, self.fields]).to_string().as_bytes())
    }

    /// Submitter roles in the order in which the fields first name them.
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
