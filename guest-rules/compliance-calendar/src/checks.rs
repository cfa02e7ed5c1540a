//! Texts that the shared writer of certificates needs. `certified.rs` replaces them by those of the pack that
//! applies.

pub(crate) use crate::specified::{CERTIFICATE_TYPE, ESIGN_CHECKS, LEGAL_NOTICES};
