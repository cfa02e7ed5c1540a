//! Changes that nobody makes alone where the organization's policy requires approvals.

use holdfast_store::SqlConnection;

use crate::problems::ChangeProblem;
use crate::{Core, ServiceError};
use holdfast_domain::component_change::ChangePolicy;
use holdfast_domain::id::OrgId;
use holdfast_domain::organization::Role;
use holdfast_store::{WriteTransaction, components, organizations};

/// Returns the policy of an organization, which is at least as strict as the installation's.
pub(crate) async fn policy_of(
    core: &Core,
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<ChangePolicy, ServiceError> {
    let organization = organizations::get(connection, org).await?;
    let own = organization.map(|organization| organization.settings.component_changes);
    let own = own.unwrap_or_default();
    Ok(ChangePolicy {
        reviews_required: own
            .reviews_required
            .max(core.config.components.reviews_required),
        ..own
    })
}

/// Refuses a role that reviews changes where the policy requires approvals: one person would make a reviewer. Locks the
/// changes of components.
pub(crate) async fn permit_role(
    core: &Core,
    tx: &mut WriteTransaction,
    org: &OrgId,
    role: Role,
) -> Result<(), ServiceError> {
    // The lock of all changes: an approval is not counted while a reviewer is being made.
    components::lock_changes(tx).await?;
    let policy = policy_of(core, tx, org).await?;
    if policy.reviews_required > 0 && policy.lets_review(role) {
        Err(ChangeProblem::ApprovalRequired.into())
    } else {
        Ok(())
    }
}

/// Refuses to let one person change a setting with power over others where the policy requires approvals: the sign-in, or
/// the host of signing links. Locks the changes of components.
pub(crate) async fn permit_setting(
    core: &Core,
    tx: &mut WriteTransaction,
    org: &OrgId,
) -> Result<(), ServiceError> {
    components::lock_changes(tx).await?;
    match policy_of(core, tx, org).await?.reviews_required {
        0 => Ok(()),
        _ => Err(ChangeProblem::ApprovalRequired.into()),
    }
}

/// Refuses an act of one person that others rely on, where the policy requires approvals. Test data is not funded.
pub async fn permit_act(
    core: &Core,
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<(), ServiceError> {
    if org.is_test() {
        return Ok(());
    }

    match policy_of(core, connection, org).await?.reviews_required {
        0 => Ok(()),
        _ => Err(ChangeProblem::ApprovalRequired.into()),
    }
}
