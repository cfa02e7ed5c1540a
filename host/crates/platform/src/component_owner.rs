//! Whose components a call is about.

use crate::Caller;
use holdfast_domain::id::OrgId;
use holdfast_domain::ledger::{INSTALLATION, LedgerChain};

/// Owner of the components being changed, with the actor who changes them.
#[derive(Clone, Debug)]
pub struct ComponentOwner {
    /// None for the installation.
    pub org: Option<OrgId>,
    /// Actor name for the ledger.
    pub actor: String,
}

impl From<&Caller> for ComponentOwner {
    fn from(caller: &Caller) -> Self {
        Self {
            org: Some(caller.org.clone()),
            actor: caller.actor.clone(),
        }
    }
}

impl ComponentOwner {
    /// Returns the installation as owner, changed by the operator.
    pub fn installation() -> Self {
        Self {
            org: None,
            actor: "operator".into(),
        }
    }

    /// Returns an organization as owner, for reads by the service itself.
    pub fn of(org: OrgId) -> Self {
        Self {
            org: Some(org),
            actor: "system".into(),
        }
    }
}

/// Identifies the owner's component ledger.
impl LedgerChain for ComponentOwner {
    fn chain(&self) -> &str {
        self.org.as_ref().map_or(INSTALLATION, OrgId::as_str)
    }
}
