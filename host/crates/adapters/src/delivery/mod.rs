//! Requests to URLs that callers supply.
//!
//! | File | Does |
//! |---|---|
//! | `guard` | decides which addresses may be connected to |
//! | `registry` | components in OCI registries |
//! | `revocation` | fetches statements about the revocation of certificates |
//! | `sender` | makes one attempt of a webhook delivery |
//! | `signature` | signs it |

pub mod guard;
pub mod registry;
pub mod revocation;
pub mod sender;
pub mod signature;
