//! Who did what in an organization: its credential ledger and its component ledger in one list.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::credentials::CredentialChain;
use crate::component_owner::ComponentOwner;
use crate::{Caller, Core, ServiceError};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;
use holdfast_domain::ledger::LedgerChain as _;
use holdfast_store::ledger::{self, LedgerPosition};

/// Entry of the list.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "id": "credentials-12", "ledger": "credentials", "sequence": 12, "at": "2026-11-21T09:41:07.250Z",
    "actor": "user:ada@acme.example", "action": "key.created",
    "details": { "key_id": "key_01jdk7m3e8f4x9s2w5v6b0c1da", "scopes": ["envelopes:read"] },
}]))]
pub struct AuditEntry {
    /// For `starting_after`.
    pub id: String,
    /// `credentials`: keys, tokens and settings. `components`: changes of components.
    pub ledger: &'static str,
    /// Number in its ledger, which is a hash chain.
    pub sequence: i64,
    pub at: Timestamp,
    /// `user:…`, `key:…`, `operator` or `system`.
    pub actor: String,
    pub action: String,
    pub details: Value,
}

const CREDENTIALS: &str = "credentials";
const COMPONENTS: &str = "components";

/// Names of the chains of an organization.
struct AuditChains {
    credentials: String,
    components: String,
}

impl AuditChains {
    fn of(org: &OrgId) -> Self {
        let components = ComponentOwner::of(org.clone());
        Self {
            credentials: CredentialChain::of(Some(org)).chain().to_owned(),
            components: components.chain().to_owned(),
        }
    }

    /// Parses the id of an entry.
    fn position(&self, id: &str) -> Option<LedgerPosition> {
        // Numbers begin anew in each chain, so the id names the chain, too.
        let (ledger, sequence) = id.split_once('-')?;
        let chain = match ledger {
            CREDENTIALS => &self.credentials,
            COMPONENTS => &self.components,
            _ => return None,
        };

        Some(LedgerPosition {
            chain: chain.clone(),
            sequence: sequence.parse().ok()?,
        })
    }
}

/// Returns the newest entries, or those before one.
pub async fn list(
    core: &Core,
    caller: &Caller,
    after: Option<&str>,
    limit: i64,
) -> Result<Vec<AuditEntry>, ServiceError> {
    let chains = AuditChains::of(&caller.org);
    let after = match after {
        None => None,
        Some(id) => Some(chains.position(id).ok_or_else(|| {
            ServiceError::Malformed("starting_after is no id of an entry".into())
        })?),
    };

    let mut connection = core.store.read().await?;
    let both = [chains.credentials.as_str(), chains.components.as_str()];
    let org = &caller.org;
    // A page needs the newest entries of both chains together, so one query orders them.
    let found = ledger::newest_of(&mut connection, org, both, after.as_ref(), limit).await?;
    let entries = found.into_iter().map(|(chain, entry)| {
        let ledger = if chain == chains.credentials {
            CREDENTIALS
        } else {
            COMPONENTS
        };
        AuditEntry {
            id: format!("{ledger}-{}", entry.sequence),
            ledger,
            sequence: entry.sequence,
            at: entry.at,
            actor: entry.actor,
            action: entry.action,
            details: entry.details,
        }
    });

    Ok(entries.collect())
}
