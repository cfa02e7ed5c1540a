//! Requests to URLs that callers supply.
//!
//! | File | Does |
//! |---|---|
//! | `guard` | decides which addresses may be connected to |
//! | `sender` | makes one attempt of a webhook delivery |
//! | `signature` | signs it |

pub mod guard;
pub mod sender;
pub mod signature;
