//! Packages: templates that go out together, as one document.

use super::clock::Timestamp;
use super::id::{OrgId, PackageId, TemplateId};

/// A package's record.
#[derive(Clone, Debug)]
pub struct Package {
    pub id: PackageId,
    pub org: OrgId,
    pub name: String,
    /// In the order of the document.
    pub templates: Vec<TemplateId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
