//! Copies that an originator may have given up in a sale.

use holdfast_store::SqlConnection;

use crate::{Caller, Problem, ProblemKind, ServiceError};
use holdfast_domain::envelope::Envelope;
use holdfast_domain::transfer::SellerCopy;
use holdfast_store::transfers;

/// Permits a copy without a watermark to the originator, which may have given it up in a sale.
pub async fn permit_copy(
    connection: &mut SqlConnection,
    caller: &Caller,
    envelope: &Envelope,
) -> Result<(), ServiceError> {
    let sold = transfers::sold_by(connection, &caller.org, &envelope.id).await?;
    // The originator gave its copy up in the sale, and can get control back, which ends this.
    match sold.map(|sold| sold.copy) {
        None | Some(SellerCopy::Kept) => Ok(()),
        Some(SellerCopy::Marked) => {
            let id = &envelope.id;
            let message = format!(
                "You sold this record; its copies are watermarked (/partner/control/records/{id}/copy)"
            );
            Err(Problem::new(ProblemKind::State, "copy_marked", message).into())
        }
        Some(SellerCopy::Removed) => Err(removed()),
    }
}

/// Refuses a copy to the originator that sold the record with its copy.
pub fn removed() -> ServiceError {
    let message = "You sold this record and gave up your copy of it";
    Problem::new(ProblemKind::State, "copy_removed", message).into()
}
