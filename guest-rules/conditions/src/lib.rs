//! Conditions and sentences of rules that an organization declares in a file, and the space inside a component that the
//! rules are written into. Which facts a condition may name depends on the slot.

mod conditions;
mod expression;
mod space;
mod written;

pub use conditions::Conditions;
pub use expression::{Expression, SentencePart};
pub use written::{read, write};
