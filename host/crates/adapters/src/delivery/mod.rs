//! Requests to URLs that callers supply.
//!
//! | File | Does |
//! |---|---|
//! | `guard` | decides which addresses may be connected to |
//! | `registry` | components in OCI registries |
//! | `sender` | makes one attempt of a webhook delivery |
//! | `signature` | signs it |

pub mod guard;
pub mod registry;
pub mod sender;
pub mod signature;
