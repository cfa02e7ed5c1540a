//! Why a document could not be read.

use std::fmt;

use crate::limits::Limit;

/// Why a document, or one of its pages, could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// The bytes are not a PDF, or it is damaged beyond reading; the text says what is missing.
    Unreadable(String),
    /// It opens only with a password (or with a security handler this reader does not know).
    Encrypted,
    /// Reading on would take more work than an honest document needs.
    OverLimit(Limit),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "the PDF could not be read: {why}"),
            Self::Encrypted => f.write_str("the PDF needs a password"),
            Self::OverLimit(limit) => write!(f, "the PDF has {limit}"),
        }
    }
}

impl std::error::Error for ReadError {}
