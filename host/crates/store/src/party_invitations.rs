//! Invitations of parties. A row is in the bucket of the inviting organization; the party knows only its id.

use crate::SqlConnection;
use sqlx::Row as _;

use super::row::{query_locked, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::{JoinedParty, PartyInvitation};
use holdfast_domain::id::{InvitationId, KeyId, OrgId};

pub async fn insert(
    tx: &mut WriteTransaction,
    invitation: &PartyInvitation,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into party_invitation (bucket, invitation_id, org_id, name, email, created_at,
             expires_at)
         values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind_key(&invitation.org, invitation.id.as_str())
    .bind(invitation.org.as_str())
    .bind(&invitation.name)
    .bind(&invitation.email)
    .bind(invitation.created_at.to_string())
    .bind(invitation.expires_at.to_string())
    .run(tx)
    .await
}

/// Records that an invitation was refused because of its name, without that name: it counts as one, and is over at once.
pub async fn insert_refused(
    tx: &mut WriteTransaction,
    org: &OrgId,
    now: Timestamp,
) -> Result<(), StoreError> {
    // Answers about taken names would otherwise be free, and a caller could try out the names of all parties.
    let refused = PartyInvitation {
        id: InvitationId::new(),
        org: org.clone(),
        name: String::new(),
        email: String::new(),
        created_at: now,
        expires_at: now,
        joined: None,
    };

    insert(tx, &refused).await
}

/// Counts the invitations that an organization has made since `since`, and those that were refused.
pub async fn count_since(
    connection: &mut SqlConnection,
    org: &OrgId,
    since: Timestamp,
) -> Result<i64, StoreError> {
    let row = sqlx::query(
        "select count(*) as made from party_invitation
         where bucket = $1 and org_id = $2 and created_at > $3",
    )
    .bind_org(org)
    .bind(since.to_string())
    .fetch_one(connection)
    .await?;

    Ok(row.try_get("made")?)
}

/// Whether an organization was made by an invitation.
pub async fn was_invited(connection: &mut SqlConnection, org: &OrgId) -> Result<bool, StoreError> {
    // The row is in the bucket of the inviting organization, which the caller does not know.
    sqlx::query("select invitation_id from party_invitation where party_id = $1")
        .bind(org.as_str())
        .finds_row(connection)
        .await
}

/// Returns an invitation by any organization.
pub async fn get(
    connection: &mut SqlConnection,
    id: &InvitationId,
) -> Result<Option<PartyInvitation>, StoreError> {
    query_rows("select {columns} from party_invitation where invitation_id = $1")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

/// Returns an invitation with its row locked until the transaction ends.
pub async fn lock(
    tx: &mut WriteTransaction,
    id: &InvitationId,
) -> Result<Option<PartyInvitation>, StoreError> {
    query_locked(
        tx,
        "select {columns} from party_invitation where invitation_id = $1",
    )
    .bind(id.as_str())
    .fetch_optional(tx)
    .await
}

/// Records that the party has joined.
pub async fn set_joined(
    tx: &mut WriteTransaction,
    invitation: &PartyInvitation,
    joined: &JoinedParty,
) -> Result<(), StoreError> {
    sqlx::query(
        "update party_invitation set party_id = $3, key_id = $4, joined_at = $5
         where bucket = $1 and invitation_id = $2",
    )
    .bind_key(&invitation.org, invitation.id.as_str())
    .bind(joined.org.as_str())
    .bind(joined.key.as_str())
    .bind(joined.at.to_string())
    .run(tx)
    .await
}

table_row! {
    PartyInvitation of "party_invitation" by "invitation_id" also "party_id", "key_id", "joined_at" {
        id: parsed("invitation_id", InvitationId::parse),
        org: parsed("org_id", OrgId::parse),
        name: text("name"),
        email: text("email"),
        created_at: time("created_at"),
        expires_at: time("expires_at"),
        // `set_joined` writes the three columns together.
        joined: |row| {
            let org = row.optional_parsed("party_id", OrgId::parse)?;
            let key = row.optional_parsed("key_id", KeyId::parse)?;
            let at = row.optional_time("joined_at")?;
            let joined = org.zip(key).zip(at);
            joined.map(|((org, key), at)| JoinedParty { org, key, at })
        },
    }
}
