//! Mails: what they say, what they look like, and how they leave.
//!
//! | File | Holds |
//! |---|---|
//! | `deliver` | a due mail: read what it is about, write it, send it |
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

mod deliver;
mod layout;
mod letters;
mod line;
mod mailer;
mod message;
mod smtp;

use std::time::Duration;

use crate::service::ServiceError;
use crate::store::StoreError;

pub(crate) use deliver::{deliver, deliver_about_endpoint};
pub(crate) use mailer::Mailer;

/// Why a mail did not go out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MailError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Service(#[from] ServiceError),
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
            Self::Store(error) => error.is_outage(),
            Self::Service(error) => error.is_outage(),
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
            Self::Service(error) => matches!(error, ServiceError::NotFound(_)),
            Self::Store(_) | Self::Late(_) | Self::Outbox(_) => false,
        }
    }
}
