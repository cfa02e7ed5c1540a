//! Refuses requests about erased customers. Only the id of such a customer is left.

use crate::ServiceError;
use crate::problems::{Problem, ProblemKind};
use holdfast_domain::id::{CustomerId, OrgId};
use holdfast_store::SqlConnection;
use holdfast_store::customers::{self, CustomerRow};

/// Code of the refusals.
const CODE: &str = "customer_erased";

/// Returns the answer to a request about an erased customer.
pub fn gone() -> ServiceError {
    let message = "The data of this customer was erased";
    Problem::new(ProblemKind::Gone, CODE, message).into()
}

/// Permits an envelope for a customer. An unknown customer is no concern of this check.
pub async fn permit_envelope(
    connection: &mut SqlConnection,
    org: &OrgId,
    customer: &CustomerId,
) -> Result<(), ServiceError> {
    let found = customers::get(connection, org, customer).await?;
    found.as_ref().map_or(Ok(()), permit)
}

/// Like [`permit_envelope`], for a customer that was read already.
pub fn permit(customer: &CustomerRow) -> Result<(), ServiceError> {
    if customer.erased_at.is_none() {
        return Ok(());
    }
    let message =
        "The data of this customer was erased: create the envelope with the person's address";
    Err(Problem::new(ProblemKind::State, CODE, message).into())
}
