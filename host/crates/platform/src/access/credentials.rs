//! Audit trail of an organization's credentials and the installation's keys. It is hash-chained
//! like the custody ledgers and part of the same log.

use holdfast_store::SqlConnection;
use serde_json::Value;

use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;
use holdfast_domain::ledger::{LedgerChain, LedgerEntry, NewEntry};
use holdfast_store::{StoreError, WriteTransaction, ledger};

/// Ledger chain of one owner: an organization, or the installation.
pub struct CredentialChain(String);

impl CredentialChain {
    pub fn of(org: Option<&OrgId>) -> Self {
        Self(match org {
            Some(org) => format!("credentials:{org}"),
            None => "credentials".into(),
        })
    }
}

impl LedgerChain for CredentialChain {
    fn chain(&self) -> &str {
        &self.0
    }
}

/// Records an operator's action, in the transaction of the action itself.
pub async fn record(
    tx: &mut WriteTransaction,
    org: Option<&OrgId>,
    action: &str,
    details: Value,
    at: Timestamp,
) -> Result<(), StoreError> {
    record_by(tx, org, "operator", action, details, at).await
}

/// Records an action of `actor`, in the transaction of the action itself.
pub async fn record_by(
    tx: &mut WriteTransaction,
    org: Option<&OrgId>,
    actor: &str,
    action: &str,
    details: Value,
    at: Timestamp,
) -> Result<(), StoreError> {
    let entry = NewEntry {
        at,
        actor: actor.into(),
        action: action.into(),
        details,
    };
    ledger::append(tx, org, &CredentialChain::of(org), entry).await?;
    Ok(())
}

/// Returns all entries, oldest first.
pub async fn history(
    connection: &mut SqlConnection,
    org: Option<&OrgId>,
) -> Result<Vec<LedgerEntry>, StoreError> {
    ledger::list(connection, org, &CredentialChain::of(org)).await
}
