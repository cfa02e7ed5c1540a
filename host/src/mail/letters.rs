//! Wording of the mails.

use super::line::one_line;
use crate::domain::dates::DateSettings;
use crate::domain::envelope::{Envelope, Signer, SignerKind, SignerStatus};
use crate::domain::webhook::{DisableReason, Endpoint};

/// Content of a mail, independent of its layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MailContent {
    pub subject: String,
    /// Recipient's name, if known.
    pub to: Option<String>,
    pub paragraphs: Vec<String>,
    pub button: Option<MailButton>,
    /// Small print.
    pub notes: Vec<String>,
}

/// Call to action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MailButton {
    pub label: &'static str,
    pub url: String,
}

/// Recipient of a notification that a signer declined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeclineRecipient<'a> {
    /// The only recipient who learns who declined, and why.
    Creator {
        by: &'a str,
        reason: &'a str,
    },
    /// The signer who declined.
    Decliner,
    OtherSigner,
}

const LINK_NOTE: &str =
    "The link is meant for you alone and works for seven days. Please do not forward this e-mail.";

/// What a signer is told with a link.
pub(crate) struct LinkFacts<'a> {
    pub sender: &'a str,
    pub envelope: &'a Envelope,
    pub signer: &'a Signer,
    /// All signers of the envelope.
    pub signers: &'a [Signer],
    pub dates: &'a DateSettings,
    pub url: String,
}

impl LinkFacts<'_> {
    /// Returns until when to sign and who else signs.
    fn circumstances(&self) -> Option<String> {
        let until = self.envelope.expires_at;
        let until = until.map(|at| format!("Please sign by {}.", self.dates.moment(at)));
        let others = self.signers.iter();
        let others = others.filter(|other| other.position != self.signer.position);
        let others: Vec<String> = others
            .map(|other| {
                let has_signed = match other.status {
                    SignerStatus::Completed => ", has signed",
                    _ => "",
                };
                format!(
                    "{} ({}{has_signed})",
                    one_line(&other.name),
                    one_line(&other.role)
                )
            })
            .collect();
        let others = (!others.is_empty()).then(|| format!("Other signers: {}.", others.join(", ")));
        let both: Vec<String> = until.into_iter().chain(others).collect();
        (!both.is_empty()).then(|| both.join(" "))
    }
}

/// Builds the invitation to sign, approve or witness.
pub(crate) fn invitation(facts: LinkFacts<'_>) -> MailContent {
    let (sender, document) = (facts.sender, one_line(&facts.envelope.name));
    let (subject, asked) = match facts.signer.kind {
        SignerKind::Signer => (
            format!("{sender} asks you to sign: {document}"),
            format!("{sender} asks you to sign “{document}”."),
        ),
        SignerKind::Approver => (
            format!("{sender} asks you to approve: {document}"),
            format!("{sender} asks you to approve “{document}”."),
        ),
        SignerKind::Witness => (
            format!("{sender} asks you to sign as a witness: {document}"),
            format!("{sender} asks you to sign “{document}” as a witness."),
        ),
    };
    MailContent {
        subject,
        to: Some(one_line(&facts.signer.name)),
        paragraphs: [asked]
            .into_iter()
            .chain(message(facts.envelope))
            .chain(facts.circumstances())
            .collect(),
        notes: vec![LINK_NOTE.into(), reference(facts.envelope)],
        button: Some(read_and_sign(facts.url)),
    }
}

/// Builds the mail with the code that opens the document.
pub(crate) fn access_code(
    sender: &str,
    envelope: &Envelope,
    to: &str,
    code: &str,
    minutes: u64,
) -> MailContent {
    let document = one_line(&envelope.name);
    MailContent {
        subject: format!("Your code: {code}"),
        to: Some(one_line(to)),
        paragraphs: vec![
            format!("Your code for “{document}” of {sender} is {code}."),
            format!("Enter it on the page that asked for it. It works once, for {minutes} minutes."),
        ],
        button: None,
        notes: vec![
            "Nobody will ask you for this code by telephone. If you did not ask for it, ignore this e-mail."
                .into(),
            reference(envelope),
        ],
    }
}

/// Builds the mail to a viewer, who may read the document while others sign it.
pub(crate) fn viewing(sender: &str, envelope: &Envelope, to: &str, url: String) -> MailContent {
    let document = one_line(&envelope.name);
    MailContent {
        subject: format!("{sender} shows you: {document}"),
        to: Some(one_line(to)),
        paragraphs: vec![
            format!("{sender} has sent “{document}” to its signers and lets you read it."),
            "You do not need to do anything. You will get a copy when all parties have signed."
                .into(),
        ],
        button: Some(MailButton {
            label: "Read the document",
            url,
        }),
        notes: vec![LINK_NOTE.into(), reference(envelope)],
    }
}

/// Splits the sender's message into paragraphs, one for each line.
fn message(envelope: &Envelope) -> impl Iterator<Item = String> {
    let lines = envelope
        .sending
        .message
        .as_deref()
        .unwrap_or_default()
        .lines();
    lines.map(one_line).filter(|line| !line.is_empty())
}

/// Builds a reminder.
pub(crate) fn reminder(facts: LinkFacts<'_>) -> MailContent {
    let (sender, document) = (facts.sender, one_line(&facts.envelope.name));
    let what = [
        format!("{sender} is waiting for your signature on “{document}”."),
        "You can sign it with this new link. Older links may have expired.".into(),
    ];
    MailContent {
        subject: format!("Reminder: {sender} is waiting for your signature: {document}"),
        to: Some(one_line(&facts.signer.name)),
        paragraphs: what.into_iter().chain(facts.circumstances()).collect(),
        notes: vec![LINK_NOTE.into(), reference(facts.envelope)],
        button: Some(read_and_sign(facts.url)),
    }
}

/// How a recipient gets the copy of the signed document.
pub(crate) enum CopyDelivery {
    /// With the certificate of completion, if there is one.
    Attached { certificate: bool },
    /// Too large to attach: a download link for this recipient.
    Linked(String),
    /// Too large to attach, for a recipient with access to the vault.
    Kept,
}

/// Builds the notification that all signers have signed.
pub(crate) fn completed(envelope: &Envelope, to: Option<&str>, copy: CopyDelivery) -> MailContent {
    let document = one_line(&envelope.name);
    let (said, url) = match copy {
        CopyDelivery::Attached { certificate: true } => (
            "The signed document is attached, marked as a non-authoritative copy, and a certificate of who signed when.",
            None,
        ),
        CopyDelivery::Attached { certificate: false } => (
            "The signed document is attached, marked as a non-authoritative copy.",
            None,
        ),
        CopyDelivery::Linked(url) => (
            "The signed document is too large for an e-mail. You can download your copy for seven days.",
            Some(url),
        ),
        CopyDelivery::Kept => ("The signed document is too large for an e-mail.", None),
    };
    MailContent {
        subject: format!("Completed: {document}"),
        to: to.map(one_line),
        paragraphs: vec![
            format!("“{document}” is completed: all parties have signed."),
            said.into(),
        ],
        button: url.map(|url| MailButton {
            label: "Download your copy",
            url,
        }),
        notes: vec![reference(envelope)],
    }
}

/// Builds the notification that a signer declined.
pub(crate) fn declined(
    sender: &str,
    envelope: &Envelope,
    to: Option<&str>,
    told: DeclineRecipient<'_>,
) -> MailContent {
    let document = one_line(&envelope.name);
    let paragraphs = match told {
        DeclineRecipient::Creator { by, reason } => {
            let mut paragraphs = vec![format!(
                "{} has declined to sign “{document}”.",
                one_line(by)
            )];
            if !reason.trim().is_empty() {
                paragraphs.push(format!("The reason given: {reason}"));
            }
            paragraphs
        }
        DeclineRecipient::Decliner => vec![
            format!("You have declined to sign “{document}”. {sender} has been notified."),
            format!("If you did not decline, please contact {sender}."),
        ],
        DeclineRecipient::OtherSigner => vec![
            format!("Another signer has declined to sign “{document}”."),
            "The document is closed. You do not need to do anything.".into(),
        ],
    };
    MailContent {
        subject: format!("Declined: {document}"),
        to: to.map(one_line),
        paragraphs,
        button: None,
        notes: vec![reference(envelope)],
    }
}

/// Builds the notification that the sender withdrew the document.
pub(crate) fn withdrawn(sender: &str, envelope: &Envelope, to: &str) -> MailContent {
    let document = one_line(&envelope.name);
    MailContent {
        subject: format!("Withdrawn: {document}"),
        to: Some(one_line(to)),
        paragraphs: vec![
            format!("{sender} has withdrawn “{document}”."),
            "Your links no longer open it. You do not need to do anything.".into(),
        ],
        button: None,
        notes: vec![reference(envelope)],
    }
}

/// Builds the warning that a webhook endpoint has been failing for days.
pub(crate) fn endpoint_failing(endpoint: &Endpoint) -> MailContent {
    let host = host(endpoint);
    let since = endpoint.health.failing_since;
    let since = since.map_or_else(|| "for days".into(), |at| format!("since {at}"));
    MailContent {
        subject: format!("Webhooks do not arrive at {host}"),
        to: None,
        paragraphs: vec![
            format!("Every attempt to deliver an event to {host} has failed {since}."),
            "After five days of failures the endpoint is disabled and its waiting deliveries are dropped."
                .into(),
        ],
        button: None,
        notes: vec![endpoint_reference(endpoint)],
    }
}

/// Builds the notification that a webhook endpoint was disabled.
pub(crate) fn endpoint_disabled(endpoint: &Endpoint) -> MailContent {
    let host = host(endpoint);
    let why = match endpoint.health.disabled {
        Some((DisableReason::Gone, _)) => "It answered 410 (gone).",
        _ => "Every attempt failed for five days.",
    };
    MailContent {
        subject: format!("Webhooks to {host} are disabled"),
        to: None,
        paragraphs: vec![
            format!("The webhook endpoint at {host} was disabled. {why}"),
            "Events are not kept for it from now on. Enable it again once its receiver is \
             back; what was missed can be delivered again from its log."
                .into(),
        ],
        button: None,
        notes: vec![endpoint_reference(endpoint)],
    }
}

/// Returns the host of an endpoint's URL; the full URL may contain a credential.
fn host(endpoint: &Endpoint) -> String {
    let url = url::Url::parse(&endpoint.url).ok();
    let host = url.as_ref().and_then(|url| url.host_str());
    one_line(host.unwrap_or("your receiver"))
}

fn endpoint_reference(endpoint: &Endpoint) -> String {
    format!("Reference: {}", endpoint.id)
}

fn read_and_sign(url: String) -> MailButton {
    MailButton {
        label: "Read and sign the document",
        url,
    }
}

/// Returns the reference that recipients can quote to support.
fn reference(envelope: &Envelope) -> String {
    format!("Reference: {}", envelope.id)
}
