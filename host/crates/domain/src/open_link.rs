//! Open links of templates: each visitor becomes signer of a record of their own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::clock::Timestamp;
use super::envelope::words;
use super::id::{OpenLinkId, OrgId, TemplateId};

words! {
    /// Whether an open link takes further records.
    OpenLinkStatus {
        Open = "open",
        Expired = "expired",
        UsedUp = "used_up",
        Closed = "closed",
    }
}

words! {
    /// Whether the browser of a visitor computes for about a second before a record is made.
    ProofOfWork {
        Off = "off",
        On = "on",
    }
}

/// Person who signs every record of an open link after its visitor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLinkSigner {
    /// Gets the invitation when the turn comes.
    #[schemars(email)]
    pub email: String,
    /// Name of the person.
    #[schemars(length(min = 1, max = 500))]
    pub name: String,
    /// Role of the template.
    #[schemars(length(min = 1, max = 200))]
    pub role: String,
}

/// Record of an open link.
#[derive(Clone, Debug)]
pub struct OpenLink {
    pub id: OpenLinkId,
    pub org: OrgId,
    pub template: TemplateId,
    /// Name of each record, too.
    pub name: String,
    /// Role that the visitor takes.
    pub role: String,
    /// People of the other roles, in signing order after the visitor.
    pub signers: Vec<OpenLinkSigner>,
    pub expires_at: Timestamp,
    /// Maximum number of records.
    pub limit: i64,
    /// Records so far.
    pub used: i64,
    /// Passcode that visitors enter, encrypted.
    pub code: Option<String>,
    /// Addresses to notify of each new record.
    pub notify: Vec<String>,
    /// Whether the page does not show the signing link, which goes to the mailbox of the visitor.
    pub verify_email: bool,
    pub proof_of_work: ProofOfWork,
    /// Token of the link, encrypted.
    pub token: String,
    /// Actor who created it.
    pub created_by: String,
    /// E-mail address of that actor, who becomes the custodian of its records.
    pub owner_email: Option<String>,
    pub created_at: Timestamp,
    pub closed_at: Option<Timestamp>,
    /// When a visitor first found that the people do not fit the template any more.
    pub unavailable_at: Option<Timestamp>,
}

impl OpenLink {
    /// Returns the status at a time. A closed link stays closed, regardless of all else.
    pub fn status(&self, now: Timestamp) -> OpenLinkStatus {
        if self.closed_at.is_some() {
            OpenLinkStatus::Closed
        } else if self.used >= self.limit {
            OpenLinkStatus::UsedUp
        } else if self.expires_at <= now {
            OpenLinkStatus::Expired
        } else {
            OpenLinkStatus::Open
        }
    }

    /// Whether the people of a record are those of a template's roles.
    pub fn fits(&self, roles: &[&str]) -> bool {
        let others = self.signers.iter().map(|signer| signer.role.as_str());
        let own: Vec<&str> = std::iter::once(self.role.as_str()).chain(others).collect();
        own.iter().all(|role| roles.contains(role)) && roles.iter().all(|role| own.contains(role))
    }

    /// Returns what entries about an act on the link say of it.
    pub fn details(&self) -> Value {
        json!({
            "open_link_id": self.id, "template_id": self.template, "name": self.name, "role": self.role,
            "expires_at": self.expires_at, "limit": self.limit, "has_code": self.code.is_some(),
            "verify_email": self.verify_email, "proof_of_work": self.proof_of_work,
        })
    }

    /// Returns the actor of ledger entries for acts of its visitors.
    pub fn actor(&self) -> String {
        format!("open_link:{}", self.id)
    }
}
