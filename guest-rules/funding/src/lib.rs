//! The default funding rules: whether a retail instalment contract is complete and computed correctly.
//!
//! The rules recompute the federal disclosures from the payment schedule, in integers: amounts are exact, and the
//! annual percentage rate is accurate far beyond the digits that a contract prints. Each rule names its source.

mod amount;
pub mod apr;
mod bindings;
mod date;
mod names;
mod rules;
mod schedule;
#[cfg(test)]
mod tests;
mod vin;

pub use amount::Amount;
pub use bindings::types;
pub use date::Date;
pub use rules::{Fault, JudgedFinding, RULES, assessment, findings};

use types::{Assessment, FundingFacts};

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;

/// Checks a contract by all rules, and decides.
pub fn check(facts: &FundingFacts) -> Assessment {
    assessment(findings(facts))
}
