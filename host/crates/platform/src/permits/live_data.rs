//! Acts that are for live data only.

use crate::{Problem, ProblemKind, ServiceError};
use holdfast_domain::id::OrgId;

/// Refuses to release test data or to pass it on: it never becomes an authoritative record.
pub fn require_live(org: &OrgId) -> Result<(), ServiceError> {
    if org.is_test() {
        let message = "Test data cannot be released or passed on";
        Err(Problem::new(ProblemKind::State, "test_data", message).into())
    } else {
        Ok(())
    }
}
