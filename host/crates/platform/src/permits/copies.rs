//! Copies that an originator may have given up in a sale.

use holdfast_store::SqlConnection;

use crate::{Caller, ServiceError};
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
        Some(SellerCopy::Marked) => Err(ServiceError::CopyMarked(envelope.id.clone())),
        Some(SellerCopy::Removed) => Err(ServiceError::CopyRemoved),
    }
}
