//! Messages of test data, which are kept to be read and not sent.

use schemars::JsonSchema;
use serde::Serialize;

use super::clock::Timestamp;
use super::envelope::words;
use super::id::{EnvelopeId, MessageId, OrgId};

words! {
    /// Way of a message.
    MessageChannel {
        Email = "email",
        Sms = "sms",
    }
}

/// A mail or text message that would have been sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "message_id": "msg_01jdk7m3e8f4x9s2w5v6b0c1df", "channel": "email", "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "to": "jordan.lee@example.com", "subject": "Crescent (TEST) asks you to sign",
    "body": "Crescent (TEST) asks you to sign: Retail instalment contract 2041", "link": "https://sign.example.com/sign/2f8c…",
    "attachments": [], "at": "2026-11-21T09:30:00.000Z",
}]))]
pub struct TestMessage {
    /// Id of the message.
    #[serde(rename = "message_id")]
    pub id: MessageId,
    #[serde(skip)]
    pub org: OrgId,
    pub channel: MessageChannel,
    /// Envelope that the message is about.
    #[serde(rename = "envelope_id")]
    pub envelope: Option<EnvelopeId>,
    /// E-mail address or telephone number.
    pub to: String,
    /// Of a mail.
    pub subject: Option<String>,
    /// Plain text.
    pub body: String,
    /// Where the button of the mail leads, for example to the form to sign.
    pub link: Option<String>,
    /// Names of attached files.
    pub attachments: Vec<String>,
    pub at: Timestamp,
}
