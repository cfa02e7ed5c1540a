//! Constructors of the errors that callers read.

use crate::DocumentError;

pub(crate) type Result<T> = std::result::Result<T, DocumentError>;

pub(crate) fn unreadable(reason: impl Into<String>) -> DocumentError {
    DocumentError::Unreadable(reason.into())
}

pub(crate) fn over_limit(limit: impl Into<String>) -> DocumentError {
    DocumentError::OverLimit(limit.into())
}

pub(crate) fn other(reason: impl Into<String>) -> DocumentError {
    DocumentError::Other(reason.into())
}

impl From<lopdf::Error> for DocumentError {
    fn from(error: lopdf::Error) -> Self {
        match error {
            lopdf::Error::Decryption(_) | lopdf::Error::InvalidPassword => Self::Encrypted,
            error => unreadable(error.to_string()),
        }
    }
}

impl From<holdfast_word::WordError> for DocumentError {
    fn from(error: holdfast_word::WordError) -> Self {
        match error {
            holdfast_word::WordError::Unreadable(why) => unreadable(why),
            holdfast_word::WordError::OverLimit(limit) => over_limit(limit),
        }
    }
}

impl From<std::io::Error> for DocumentError {
    fn from(error: std::io::Error) -> Self {
        other(format!("the document could not be written: {error}"))
    }
}
