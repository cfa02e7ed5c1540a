//! Desired states of components, one for each owner.

use crate::SqlConnection;
use serde::{Deserialize, Serialize};

use super::row::{query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction, owned};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;

/// Signature of a state, with the key that it is checked with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StateSignature {
    /// Name of the publisher.
    pub name: String,
    /// The key that checks the signature, or the identity and its issuer.
    #[serde(flatten)]
    pub publisher: SignedBy,
    /// Base64, or a bundle of Sigstore.
    pub signature: String,
}

/// Key or identity of a signature.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SignedBy {
    /// Ed25519 in hex, or PEM.
    Key {
        public_key: String,
    },
    Identity {
        identity: String,
        issuer: String,
    },
}

/// Stored state.
#[derive(Clone, Debug)]
pub struct StoredState {
    pub version: u64,
    /// The file.
    pub content: String,
    pub signatures: Vec<StateSignature>,
    pub set_by: String,
    pub set_at: Timestamp,
}

/// Returns the state of an owner; `None` is the installation.
pub async fn get(
    connection: &mut SqlConnection,
    org: Option<&OrgId>,
) -> Result<Option<StoredState>, StoreError> {
    let (bucket, owner) = owned(org);
    query_rows("select {columns} from component_state where bucket = $1 and org_id = $2")
        .bind(bucket)
        .bind(owner)
        .fetch_optional(connection)
        .await
}

table_row! {
    StoredState of "component_state" by "org_id" also "org_id", "version" {
        version: |row| row.number("version")?.unsigned_abs(),
        content: text("content"),
        signatures: json("signatures"),
        set_by: text("set_by"),
        set_at: time("set_at"),
    }
}

/// Replaces the state of an owner.
pub async fn put(
    tx: &mut WriteTransaction,
    org: Option<&OrgId>,
    state: &StoredState,
) -> Result<(), StoreError> {
    let (bucket, owner) = owned(org);
    // One row per owner: only the present version bounds the
    // next one. The component ledger has the earlier states.
    sqlx::query(
        "insert into component_state (bucket, org_id, version, content, signatures, set_by, set_at)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (bucket, org_id) do update set version = excluded.version,
             content = excluded.content, signatures = excluded.signatures,
             set_by = excluded.set_by, set_at = excluded.set_at",
    )
    .bind(bucket)
    .bind(owner)
    .bind(state.version.cast_signed())
    .bind(&state.content)
    .bind(serde_json::to_string(&state.signatures).unwrap_or_default())
    .bind(&state.set_by)
    .bind(state.set_at.to_string())
    .run(tx)
    .await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn signatures_of_the_first_release_are_read_and_written_unchanged() {
        let stored = json!({ "name": "ada", "public_key": "5b3e", "signature": "9Jx=" });
        let read: StateSignature = serde_json::from_value(stored.clone()).unwrap();
        assert!(matches!(&read.publisher, SignedBy::Key { public_key } if public_key == "5b3e"));
        assert_eq!(json!(read), stored);

        let identity = json!({
            "name": "ben", "identity": "ben@oak.example", "issuer": "https://token.example",
            "signature": "{}",
        });
        let read: StateSignature = serde_json::from_value(identity.clone()).unwrap();
        assert_eq!(json!(read), identity);
    }
}
