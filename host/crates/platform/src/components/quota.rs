//! Quotas of an organization's uploads: bytes, versions, and compile time per hour. The
//! operator has no quota.

use std::time::Duration;

use holdfast_store::SqlConnection;

use crate::{Core, Problem, ProblemKind, ServiceError};
use holdfast_domain::id::OrgId;
use holdfast_store::components;

const HOUR: Duration = Duration::from_secs(3600);
/// `Retry-After` in seconds, when the compile time of the last hour is used up.
const RETRY: u32 = 300;

/// Checks the organization's quotas of versions and bytes.
pub(super) async fn check_size(
    core: &Core,
    connection: &mut SqlConnection,
    org: Option<&OrgId>,
    size: u64,
) -> Result<(), ServiceError> {
    let Some(org) = org else {
        return Ok(());
    };

    let quotas = &core.config.components;
    let (bytes, versions) = components::usage(connection, org).await?;
    // Conflict and not 429: the quota does not come back with time.
    if versions >= i64::from(quotas.quota_versions) {
        return Err(ServiceError::Conflict(format!(
            "The organization has {versions} components, and may have {}",
            quotas.quota_versions
        )));
    }

    let all = u64::try_from(bytes)
        .unwrap_or_default()
        .saturating_add(size);
    if all > quotas.quota_bytes {
        return Err(ServiceError::Conflict(format!(
            "The organization's components would have {all} bytes, and may have {}",
            quotas.quota_bytes
        )));
    }

    Ok(())
}

/// Checks the organization's quota of compile time in the last hour.
pub(super) async fn check_compile_time(
    core: &Core,
    org: Option<&OrgId>,
) -> Result<(), ServiceError> {
    let Some(org) = org else {
        return Ok(());
    };

    let minutes = core.config.components.quota_compile_minutes;
    let since = core.clock.now() - HOUR;
    let mut connection = core.store.read().await?;
    let used = components::compiled_since(&mut connection, org, since).await?;
    if used >= i64::from(minutes) * 60_000 {
        let message =
            format!("The organization's components may be compiled for {minutes} minutes an hour");
        return Err(Problem::new(ProblemKind::Quota(RETRY), None, message).into());
    }

    Ok(())
}

/// Adds compile time to the organization's usage.
pub(super) async fn note_compile_time(
    core: &Core,
    org: Option<&OrgId>,
    took: Duration,
) -> Result<(), ServiceError> {
    let Some(org) = org else {
        return Ok(());
    };
    let now = core.clock.now();
    let millis = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
    let mut tx = core.store.begin().await?;
    // Rows older than an hour are deleted in the same call, so that the table needs no task of its own.
    components::note_compile(&mut tx, org, now, millis, now - HOUR).await?;
    Ok(tx.commit().await?)
}
