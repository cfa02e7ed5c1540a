//! Change requests of components, and their reviews.

use crate::SqlConnection;
use sqlx::Row as _;

use super::row::{json_text, query_rows, row_by_id, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component_change::{
    ChangeReview, ChangeState, ComponentChange, Verdict, VoidReason,
};
use holdfast_domain::id::{ActivationId, ChangeId, OrgId, ReviewId, TokenId};
use holdfast_domain::organization::Role;

/// Adds a change request. `instance` is empty for rules.
pub async fn insert(
    tx: &mut WriteTransaction,
    change: &ComponentChange,
    instance: &str,
) -> Result<(), StoreError> {
    // The instance has a column of its own: the settings are sealed
    // with it as context, and `sealed` needs it when the key changes.
    sqlx::query(
        "insert into component_change (bucket, change_id, org_id, instance, state, content,
             config, requested_by, requested_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind_key(&change.org, change.id.as_str())
    .bind(change.org.as_str())
    .bind(instance)
    .bind(change.state.as_str())
    .bind(json_text(&change.content))
    .bind(change.config.as_deref())
    .bind(&change.requested_by)
    .bind(change.requested_at.to_string())
    .bind(change.expires_at.to_string())
    .run(tx)
    .await
}

/// Returns a change request of the organization.
pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &ChangeId,
) -> Result<Option<ComponentChange>, StoreError> {
    row_by_id(connection, org, id.as_str()).await
}

/// Lists the organization's change requests, newest first: those before `before`, if it is given.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    before: Option<&ChangeId>,
    limit: i64,
) -> Result<Vec<ComponentChange>, StoreError> {
    query_rows(
        "select {columns} from component_change
         where bucket = $1 and org_id = $2 and ($3 = '' or change_id < $3)
         order by change_id desc limit $4",
    )
    .bind_org(org)
    .bind(before.map_or("", ChangeId::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Lists the change requests of an organization that are open and not expired, newest first.
pub async fn open(
    connection: &mut SqlConnection,
    org: &OrgId,
    now: Timestamp,
) -> Result<Vec<ComponentChange>, StoreError> {
    // No job closes expired requests. Each reader compares the time instead.
    query_rows(
        "select {columns} from component_change
         where bucket = $1 and org_id = $2 and state = 'open' and expires_at > $3
         order by change_id desc",
    )
    .bind_org(org)
    .bind(now.to_string())
    .fetch_all(connection)
    .await
}

/// Counts the change requests of an organization that are open and not expired.
pub async fn count_open(
    connection: &mut SqlConnection,
    org: &OrgId,
    now: Timestamp,
) -> Result<i64, StoreError> {
    // The condition of `open`: an expired request does not count towards the limit of open ones.
    let row = sqlx::query(
        "select count(*) as open from component_change
         where bucket = $1 and org_id = $2 and state = 'open' and expires_at > $3",
    )
    .bind_org(org)
    .bind(now.to_string())
    .fetch_one(connection)
    .await?;

    Ok(row.try_get("open")?)
}

/// Deletes the sealed settings of all expired requests.
pub async fn forget_configs(tx: &mut WriteTransaction, now: Timestamp) -> Result<(), StoreError> {
    // An expired request can never be applied, so its secrets are only a risk.
    sqlx::query(
        "update component_change set config = null where expires_at < $1 and config is not null",
    )
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Replaces the content of an open change request.
pub async fn set_content(
    tx: &mut WriteTransaction,
    change: &ComponentChange,
) -> Result<(), StoreError> {
    // A request that was closed stays as it was when it was decided.
    sqlx::query(
        "update component_change set content = $4
         where bucket = $1 and org_id = $2 and change_id = $3 and state = 'open'",
    )
    .bind_org(&change.org)
    .bind(change.id.as_str())
    .bind(json_text(&change.content))
    .run(tx)
    .await
}

/// Closes an open change request and drops its sealed settings.
///
/// # Errors
/// `Conflict` if it was closed in the meantime.
pub async fn close(
    tx: &mut WriteTransaction,
    change: &ComponentChange,
    state: ChangeState,
    by: &str,
    at: Timestamp,
    activation: Option<&ActivationId>,
) -> Result<(), StoreError> {
    // Expecting `open` lets one of two closings win. The settings go
    // in the same statement: an activation has a copy of its own.
    sqlx::query(
        "update component_change
         set state = $4, closed_by = $5, closed_at = $6, activation_id = $7, config = null
         where bucket = $1 and org_id = $2 and change_id = $3 and state = 'open'",
    )
    .bind_org(&change.org)
    .bind(change.id.as_str())
    .bind(state.as_str())
    .bind(by)
    .bind(at.to_string())
    .bind(activation.map(ActivationId::as_str))
    .run_guarded(tx)
    .await
}

/// Adds a review.
pub async fn insert_review(
    tx: &mut WriteTransaction,
    change: &ComponentChange,
    review: &ChangeReview,
) -> Result<(), StoreError> {
    // The token is kept because its revocation voids the approval, the
    // account because two users with one account are not two reviewers.
    sqlx::query(
        "insert into component_review (bucket, review_id, org_id, change_id, reviewer, role,
             token_id, verdict, comment, reviewed_at, identity)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(change.org.bucket())
    .bind(ReviewId::new().as_str())
    .bind(change.org.as_str())
    .bind(change.id.as_str())
    .bind(&review.by)
    .bind(review.role.as_str())
    .bind(review.token.as_ref().map(TokenId::as_str))
    .bind(review.verdict.as_str())
    .bind(review.comment.as_deref())
    .bind(review.at.to_string())
    .bind(review.identity.as_ref().map(json_text))
    .run(tx)
    .await
}

/// Makes the approvals of a change request void.
pub async fn void_approvals(
    tx: &mut WriteTransaction,
    change: &ComponentChange,
    why: VoidReason,
) -> Result<(), StoreError> {
    // A change of the request makes an approval doubtful, but not a refusal. The first reason stays.
    sqlx::query(
        "update component_review set void_reason = $4
         where bucket = $1 and org_id = $2 and change_id = $3 and verdict = 'approve'
             and void_reason is null",
    )
    .bind_org(&change.org)
    .bind(change.id.as_str())
    .bind(why.as_str())
    .run(tx)
    .await
}

/// Makes the approvals of open change requests void that were given with a token.
pub async fn void_approvals_of_token(
    tx: &mut WriteTransaction,
    org: &OrgId,
    token: &TokenId,
) -> Result<(), StoreError> {
    // Closed requests keep their approvals: they were valid when the request was applied.
    sqlx::query(
        "update component_review set void_reason = $4
         where bucket = $1 and org_id = $2 and token_id = $3 and verdict = 'approve'
             and void_reason is null and change_id in (
                 select change_id from component_change
                 where bucket = $1 and org_id = $2 and state = 'open')",
    )
    .bind_org(org)
    .bind(token.as_str())
    .bind(VoidReason::Revoked.as_str())
    .run(tx)
    .await
}

/// Makes the approvals of open change requests void that a person gave.
pub async fn void_approvals_of(
    tx: &mut WriteTransaction,
    org: &OrgId,
    actor: &str,
) -> Result<(), StoreError> {
    // A person who loses a role or the access has no part in requests that are still to be decided.
    sqlx::query(
        "update component_review set void_reason = $4
         where bucket = $1 and org_id = $2 and lower(reviewer) = lower($3)
             and verdict = 'approve' and void_reason is null and change_id in (
                 select change_id from component_change
                 where bucket = $1 and org_id = $2 and state = 'open')",
    )
    .bind_org(org)
    .bind(actor)
    .bind(VoidReason::Revoked.as_str())
    .run(tx)
    .await
}

/// Returns the reviews of a change request, oldest first.
pub async fn reviews(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &ChangeId,
) -> Result<Vec<ChangeReview>, StoreError> {
    query_rows(
        "select {columns} from component_review
         where bucket = $1 and org_id = $2 and change_id = $3 order by review_id",
    )
    .bind_org(org)
    .bind(id.as_str())
    .fetch_all(connection)
    .await
}

table_row! {
    ComponentChange of "component_change" by "change_id" {
        id: parsed("change_id", ChangeId::parse),
        org: parsed("org_id", OrgId::parse),
        content: json("content"),
        config: optional_text("config"),
        state: parsed("state", ChangeState::parse),
        requested_by: text("requested_by"),
        requested_at: time("requested_at"),
        expires_at: time("expires_at"),
        closed_by: optional_text("closed_by"),
        closed_at: optional_time("closed_at"),
        activation: optional_parsed("activation_id", ActivationId::parse),
    }
}

table_row! {
    ChangeReview of "component_review" by "review_id" also "review_id" {
        by: text("reviewer"),
        role: parsed("role", Role::parse),
        token: optional_parsed("token_id", TokenId::parse),
        identity: optional_json("identity"),
        verdict: parsed("verdict", Verdict::parse),
        comment: optional_text("comment"),
        at: time("reviewed_at"),
        void: optional_parsed("void_reason", VoidReason::parse),
    }
}
