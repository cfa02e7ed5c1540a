//! Acts about the funding of contracts that one person, or two by a change request, can make: waivers of stipulations, and
//! packs that a lender publishes.

pub mod packs;
pub mod stipulations;

use holdfast_domain::id::ChangeId;

/// Change request that others approved.
pub struct AgreedChange<'a> {
    pub change: &'a ChangeId,
    /// Actors with a valid approval.
    pub approved_by: &'a [String],
}
