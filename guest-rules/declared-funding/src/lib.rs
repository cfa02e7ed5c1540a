//! Funding rules that a lender or an originator declares in a file, without a programming language: the built-in rules with
//! other severities and texts, and rules of its own. Conditions are expressions of the Common Expression Language; numbers
//! of a contract are exact decimals in them.
//!
//! The component is built once. `holdfast component build` writes the rules into a space of its bytes that is reserved for
//! them (`holdfast-conditions`).

#[path = "../../funding/src/amount.rs"]
mod amount;
#[path = "../../funding/src/apr.rs"]
pub mod apr;
#[path = "../../funding/src/bindings.rs"]
mod bindings;
mod contract_facts;
#[path = "../../funding/src/date.rs"]
mod date;
mod decimal;
mod declared_rules;
mod judge;
#[path = "../../funding/src/names.rs"]
mod names;
#[path = "../../funding/src/rules.rs"]
mod rules;
#[path = "../../funding/src/schedule.rs"]
mod schedule;
#[cfg(test)]
mod tests;
#[path = "../../funding/src/vin.rs"]
mod vin;

pub use amount::Amount;
pub use bindings::types;
pub use contract_facts::{OF_CHANGES, VARIABLES, conditions, set_finding};
pub use date::Date;
pub use declared_rules::{AddedRule, ChangedRule, DeclaredRules};
pub use judge::{check, check_with};
pub use rules::{Fault, JudgedFinding, RULES, assessment, findings};

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
