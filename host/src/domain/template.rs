//! Templates: a document, its fields and the roles that fill them.

use super::clock::Timestamp;
use super::envelope::StoredFile;
use super::field::Field;
use super::id::{OrgId, TemplateId};

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
    pub created_at: Timestamp,
}

impl Template {
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
