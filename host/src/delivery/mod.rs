//! What goes out to addresses that other people chose.
//!
//! | File | Does |
//! |---|---|
//! | `guard` | which addresses may be connected to |
//! | `sender` | one attempt of a webhook delivery |
//! | `signature` | what it is signed with |

pub mod guard;
pub mod sender;
pub mod signature;
