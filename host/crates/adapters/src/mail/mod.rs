//! Mails: wording, layout and delivery; wording of text messages.
//!
//! | File | Holds |
//! |---|---|
//! | `address` | the parser of addresses |
//! | `bounces` | mails that another server returns later |
//! | `letters` | the wording of each kind |
//! | `line` | user-supplied names, made safe for one line |
//! | `layout` | a letter as HTML and as text, in the organization's branding |
//! | `message` | headers and parts |
//! | `mailer` | delivery to a mail server, or as files to the outbox |
//! | `outbox` | the folder of these files |
//! | `smtp` | the SMTP connection |
//! | `wording` | text messages |
//!
//! A mail may be sent twice if the process dies between sending and recording it. Both have the
//! same `Message-ID`, and the links in both are valid.

pub mod address;
pub mod bounces;
pub mod layout;
pub mod letters;
mod line;
mod mailer;
pub mod message;
pub mod outbox;
mod smtp;
pub mod wording;

use std::time::Duration;

pub use address::is_address;
pub use mailer::MailSender;

/// Subject of a mail about an envelope. The first letters of the names differ: bounces name a kind by its letter.
#[derive(Clone, Copy, Debug)]
pub enum EnvelopeMailKind {
    Invitation,
    Reminder,
    AccessCode,
    Completion,
    Decline,
    Withdrawal,
    Undelivered,
    NotSent,
    /// A signer's question, to the sender.
    Question,
    /// The sender's answer.
    Answer,
    /// A link, for a signer who finishes later.
    Later,
}

impl EnvelopeMailKind {
    pub const ALL: [Self; 11] = [
        Self::Invitation,
        Self::Reminder,
        Self::AccessCode,
        Self::Completion,
        Self::Decline,
        Self::Withdrawal,
        Self::Undelivered,
        Self::NotSent,
        Self::Question,
        Self::Answer,
        Self::Later,
    ];

    /// Returns the name in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invitation => "invitation",
            Self::Reminder => "reminder",
            Self::AccessCode => "access_code",
            Self::Completion => "completion",
            Self::Decline => "decline",
            Self::Withdrawal => "withdrawal",
            Self::Undelivered => "undelivered",
            Self::NotSent => "not_sent",
            Self::Question => "question",
            Self::Answer => "senders_answer",
            Self::Later => "later",
        }
    }
}

/// Reason a mail was not sent.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
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
    /// Returns whether the server was unreachable or reported a temporary failure.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Server(_) => !self.is_final(),
            Self::Late(_) => true,
            _ => false,
        }
    }

    /// Returns whether a retry cannot succeed.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Address(_) | Self::Message(_) | Self::ContentType(_) => true,
            Self::Server(error) => error.is_permanent() && !smtp::is_about_credentials(error),
            Self::Late(_) | Self::Outbox(_) => false,
        }
    }
}
