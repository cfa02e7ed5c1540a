//! Errors of reading.

use std::fmt;

use crate::limits::ReadLimit;

/// Error of reading a document or one of its pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// The bytes are not a PDF, or too damaged to be read; the text names the missing part.
    Unreadable(String),
    /// The document needs a password, or a security handler that this reader does not support.
    Encrypted,
    /// Reading would take more work than any legitimate document needs.
    OverLimit(ReadLimit),
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
