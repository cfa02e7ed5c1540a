//! Mails: what they say, what they look like, and how they leave.
//!
//! | File | Holds |
//! |---|---|
//! | `letters` | the wording of each kind |
//! | `line` | names that others chose, as one line |
//! | `layout` | a letter as HTML and as text, in the organization's look |
//! | `message` | headers and parts |
//! | `mailer` | the way out: a mail server, or files in the outbox |
//! | `smtp` | speaking with the mail server |
//!
//! A mail may go out twice when the process dies between sending and settling.
//! Both have the same `Message-ID`; a link in it is made at that moment and is
//! no less valid than the first.

pub(crate) mod layout;
pub(crate) mod letters;
mod line;
mod mailer;
pub(crate) mod message;
mod smtp;

use std::time::Duration;

pub(crate) use mailer::Mailer;

/// Why a mail did not go out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MailError {
    #[error("address: {0}")]
    Address(#[from] lettre::address::AddressError),
    #[error("message: {0}")]
    Message(#[from] lettre::error::Error),
    #[error("message: {0}")]
    ContentType(#[from] lettre::message::header::ContentTypeErr),
    #[error("server: {0}")]
    Server(#[from] lettre::transport::smtp::Error),
    #[error("server: no answer within {} s", .0.as_secs())]
    Late(Duration),
    #[error("outbox: {0}")]
    Outbox(#[from] std::io::Error),
}

impl MailError {
    /// The server could not be reached, or asks to come again.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::Server(_) => !self.is_final(),
            Self::Late(_) => true,
            _ => false,
        }
    }

    /// Trying again would not help.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Address(_) | Self::Message(_) | Self::ContentType(_) => true,
            Self::Server(error) => error.is_permanent() && !smtp::is_about_credentials(error),
            Self::Late(_) | Self::Outbox(_) => false,
        }
    }
}
