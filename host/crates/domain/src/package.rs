//! Packages: templates that go out together, as one document.

use super::clock::Timestamp;
use super::id::{OrgId, PackageId, TemplateId};

/// Record of a package.
#[derive(Clone, Debug)]
pub struct Package {
    pub id: PackageId,
    pub org: OrgId,
    pub name: String,
    /// Templates in the order of the document.
    pub templates: Vec<TemplateId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
