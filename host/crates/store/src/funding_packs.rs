//! Funding packs of lenders. A pack is in the bucket of its lender; an invitation is in that of the invited
//! organization, and so is its subscription.

use crate::SqlConnection;

use super::row::{json_text, query_rows, row_by_id, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::funding::{FundingInvitation, FundingPack, FundingPackVersion};
use holdfast_domain::id::{ComponentId, FundingPackId, OrgId};

/// Adds a pack.
pub async fn insert(tx: &mut WriteTransaction, pack: &FundingPack) -> Result<(), StoreError> {
    sqlx::query(
        "insert into funding_pack (bucket, pack_id, org_id, name, created_by, created_at)
         values ($1, $2, $3, $4, $5, $6)",
    )
    .bind_key(&pack.org, pack.id.as_str())
    .bind(pack.org.as_str())
    .bind(&pack.name)
    .bind(&pack.created_by)
    .bind(pack.created_at.to_string())
    .run(tx)
    .await
}

/// Adds a version. Two requests for the same number conflict.
pub async fn insert_version(
    tx: &mut WriteTransaction,
    version: &FundingPackVersion,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into funding_pack_version (bucket, pack_id, version, org_id, component_id, component, description,
             effective_at, samples, published_by, published_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         on conflict (bucket, pack_id, version) do nothing",
    )
    .bind_key(&version.org, version.pack.as_str())
    .bind(i64::from(version.version))
    .bind(version.org.as_str())
    .bind(version.component.as_str())
    .bind(json_text(&version.identity))
    .bind(&version.description)
    .bind(version.effective_at.to_string())
    .bind(json_text(&version.samples))
    .bind(&version.published_by)
    .bind(version.published_at.to_string())
    .run_guarded(tx)
    .await
}

/// Returns a pack of a lender.
pub async fn get(
    connection: &mut SqlConnection,
    lender: &OrgId,
    id: &FundingPackId,
) -> Result<Option<FundingPack>, StoreError> {
    row_by_id(connection, lender, id.as_str()).await
}

/// Lists the packs of a lender, oldest first.
pub async fn list(
    connection: &mut SqlConnection,
    lender: &OrgId,
) -> Result<Vec<FundingPack>, StoreError> {
    query_rows(
        "select {columns} from funding_pack where bucket = $1 and org_id = $2 order by pack_id",
    )
    .bind_org(lender)
    .fetch_all(connection)
    .await
}

/// Lists the versions of a pack, in order.
pub async fn versions(
    connection: &mut SqlConnection,
    lender: &OrgId,
    id: &FundingPackId,
) -> Result<Vec<FundingPackVersion>, StoreError> {
    query_rows(
        "select {columns} from funding_pack_version
         where bucket = $1 and org_id = $2 and pack_id = $3 order by version",
    )
    .bind_org(lender)
    .bind(id.as_str())
    .fetch_all(connection)
    .await
}

/// Invites an organization to a pack. Has no effect on one that was invited.
pub async fn invite(
    tx: &mut WriteTransaction,
    invitation: &FundingInvitation,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into funding_invitation (bucket, org_id, pack_id, lender_id, invited_at)
         values ($1, $2, $3, $4, $5) on conflict (bucket, org_id, pack_id) do nothing",
    )
    .bind_org(&invitation.org)
    .bind(invitation.pack.as_str())
    .bind(invitation.lender.as_str())
    .bind(invitation.invited_at.to_string())
    .run(tx)
    .await
}

/// Lists the invitations of an organization, oldest first.
pub async fn invitations(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<Vec<FundingInvitation>, StoreError> {
    query_rows(
        "select {columns} from funding_invitation where bucket = $1 and org_id = $2
         order by invited_at, pack_id",
    )
    .bind_org(org)
    .fetch_all(connection)
    .await
}

/// Returns the invitation of an organization to a pack.
pub async fn invitation(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &FundingPackId,
) -> Result<Option<FundingInvitation>, StoreError> {
    row_by_id(connection, org, id.as_str()).await
}

/// Subscribes an organization to a pack that it was invited to, in place of its other subscriptions; none ends them.
pub async fn subscribe(
    tx: &mut WriteTransaction,
    org: &OrgId,
    pack: Option<&FundingPackId>,
    pinned: Option<u32>,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update funding_invitation set subscribed_at = null, pinned = null
         where bucket = $1 and org_id = $2 and subscribed_at is not null",
    )
    .bind_org(org)
    .run(tx)
    .await?;
    let Some(pack) = pack else {
        return Ok(());
    };

    sqlx::query(
        "update funding_invitation set subscribed_at = $4, pinned = $5
         where bucket = $1 and org_id = $2 and pack_id = $3",
    )
    .bind_org(org)
    .bind(pack.as_str())
    .bind(now.to_string())
    .bind(pinned.map(i64::from))
    .run_guarded(tx)
    .await
}

table_row! {
    FundingPack of "funding_pack" by "pack_id" {
        id: parsed("pack_id", FundingPackId::parse),
        org: parsed("org_id", OrgId::parse),
        name: text("name"),
        created_by: text("created_by"),
        created_at: time("created_at"),
    }
}

table_row! {
    FundingPackVersion of "funding_pack_version" by "pack_id" also "version" {
        pack: parsed("pack_id", FundingPackId::parse),
        org: parsed("org_id", OrgId::parse),
        version: |row| u32::try_from(row.number("version")?).unwrap_or_default(),
        component: parsed("component_id", ComponentId::parse),
        identity: json("component"),
        description: text("description"),
        effective_at: time("effective_at"),
        samples: json("samples"),
        published_by: text("published_by"),
        published_at: time("published_at"),
    }
}

table_row! {
    FundingInvitation of "funding_invitation" by "pack_id" also "pinned" {
        org: parsed("org_id", OrgId::parse),
        pack: parsed("pack_id", FundingPackId::parse),
        lender: parsed("lender_id", OrgId::parse),
        invited_at: time("invited_at"),
        subscribed_at: optional_time("subscribed_at"),
        pinned: |row| {
            row.optional_number("pinned")?
                .map(|version| u32::try_from(version).unwrap_or_default())
        },
    }
}
