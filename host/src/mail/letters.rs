//! What mails say.

use super::line::one_line;
use crate::domain::envelope::Envelope;
use crate::domain::webhook::{DisableReason, Endpoint};

/// A mail's content, whatever it looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    pub subject: String,
    /// Name of who is written to; none when it is not known.
    pub to: Option<String>,
    pub paragraphs: Vec<String>,
    pub button: Option<Button>,
    /// Small print.
    pub notes: Vec<String>,
}

/// The one thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Button {
    pub label: &'static str,
    pub url: String,
}

/// Who is told that somebody has declined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told<'a> {
    /// Alone told who it was, and why.
    Creator {
        by: &'a str,
        reason: &'a str,
    },
    /// Who declined.
    Decliner,
    OtherSigner,
}

const LINK_NOTE: &str =
    "The link is meant for you alone and works for seven days. Please do not forward this e-mail.";

/// Asks somebody to sign.
pub(crate) fn invitation(sender: &str, envelope: &Envelope, to: &str, url: String) -> Letter {
    let document = one_line(&envelope.name);
    Letter {
        subject: format!("{sender} asks you to sign: {document}"),
        to: Some(one_line(to)),
        paragraphs: [format!("{sender} asks you to sign “{document}”.")]
            .into_iter()
            .chain(message(envelope))
            .collect(),
        button: Some(read_and_sign(url)),
        notes: vec![LINK_NOTE.into(), reference(envelope)],
    }
}

/// What the sender writes to the signers, a paragraph for each of its lines.
fn message(envelope: &Envelope) -> impl Iterator<Item = String> {
    let lines = envelope
        .sending
        .message
        .as_deref()
        .unwrap_or_default()
        .lines();
    lines.map(one_line).filter(|line| !line.is_empty())
}

/// Asks somebody again.
pub(crate) fn reminder(sender: &str, envelope: &Envelope, to: &str, url: String) -> Letter {
    let document = one_line(&envelope.name);
    Letter {
        subject: format!("Reminder: {sender} waits for your signature: {document}"),
        to: Some(one_line(to)),
        paragraphs: vec![
            format!("{sender} still waits for your signature on “{document}”."),
            "You can sign it with this fresh link, whatever became of the one before.".into(),
        ],
        button: Some(read_and_sign(url)),
        notes: vec![LINK_NOTE.into(), reference(envelope)],
    }
}

/// How somebody gets the copy of what everybody has signed.
pub(crate) enum Copy {
    Attached,
    /// Too large: by a link of their own.
    Linked(String),
    /// Too large, for who has the vault itself.
    Kept,
}

/// Says that everybody has signed.
pub(crate) fn completed(envelope: &Envelope, to: Option<&str>, copy: Copy) -> Letter {
    let document = one_line(&envelope.name);
    let (said, url) = match copy {
        Copy::Attached => (
            "The signed document is attached, marked as a non-authoritative copy.",
            None,
        ),
        Copy::Linked(url) => (
            "The signed document is too large for an e-mail. You can download your copy for seven days.",
            Some(url),
        ),
        Copy::Kept => ("The signed document is too large for an e-mail.", None),
    };
    Letter {
        subject: format!("Signed by everybody: {document}"),
        to: to.map(one_line),
        paragraphs: vec![format!("Everybody has signed “{document}”."), said.into()],
        button: url.map(|url| Button {
            label: "Download your copy",
            url,
        }),
        notes: vec![reference(envelope)],
    }
}

/// Says that somebody has declined.
pub(crate) fn declined(
    sender: &str,
    envelope: &Envelope,
    to: Option<&str>,
    told: Told<'_>,
) -> Letter {
    let document = one_line(&envelope.name);
    let paragraphs = match told {
        Told::Creator { by, reason } => {
            let mut paragraphs = vec![format!(
                "{} has declined to sign “{document}”.",
                one_line(by)
            )];
            if !reason.trim().is_empty() {
                paragraphs.push(format!("The reason given: {reason}"));
            }
            paragraphs
        }
        Told::Decliner => vec![
            format!("You have declined to sign “{document}”. {sender} has been told."),
            format!("If it was not you who declined, please tell {sender}."),
        ],
        Told::OtherSigner => vec![
            format!("Another signer has declined to sign “{document}”."),
            "It is closed, and there is nothing left for you to do.".into(),
        ],
    };
    Letter {
        subject: format!("Declined: {document}"),
        to: to.map(one_line),
        paragraphs,
        button: None,
        notes: vec![reference(envelope)],
    }
}

/// Says that the sender wants no signature any more.
pub(crate) fn withdrawn(sender: &str, envelope: &Envelope, to: &str) -> Letter {
    let document = one_line(&envelope.name);
    Letter {
        subject: format!("Withdrawn: {document}"),
        to: Some(one_line(to)),
        paragraphs: vec![
            format!("{sender} has withdrawn “{document}”."),
            "The links you were sent no longer lead to it, and there is nothing left for you to do."
                .into(),
        ],
        button: None,
        notes: vec![reference(envelope)],
    }
}

/// Says that nothing has arrived at a webhook endpoint for days.
pub(crate) fn endpoint_failing(endpoint: &Endpoint) -> Letter {
    let host = host(endpoint);
    let since = endpoint.health.failing_since;
    let since = since.map_or_else(|| "for days".into(), |at| format!("since {at}"));
    Letter {
        subject: format!("Webhooks do not arrive at {host}"),
        to: None,
        paragraphs: vec![
            format!("Every attempt to deliver an event to {host} has failed {since}."),
            "After five days of this the endpoint is disabled, and what waits for it is given up."
                .into(),
        ],
        button: None,
        notes: vec![endpoint_reference(endpoint)],
    }
}

/// Says that a webhook endpoint was disabled.
pub(crate) fn endpoint_disabled(endpoint: &Endpoint) -> Letter {
    let host = host(endpoint);
    let why = match endpoint.health.disabled {
        Some((DisableReason::Gone, _)) => "It answered 410: it wants nothing more.",
        _ => "Every attempt of five days has failed.",
    };
    Letter {
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

/// A URL may hold a credential: only its host is named.
fn host(endpoint: &Endpoint) -> String {
    let url = url::Url::parse(&endpoint.url).ok();
    let host = url.as_ref().and_then(|url| url.host_str());
    one_line(host.unwrap_or("your receiver"))
}

fn endpoint_reference(endpoint: &Endpoint) -> String {
    format!("Reference: {}", endpoint.id)
}

fn read_and_sign(url: String) -> Button {
    Button {
        label: "Read and sign the document",
        url,
    }
}

/// What to name when asking about it.
fn reference(envelope: &Envelope) -> String {
    format!("Reference: {}", envelope.id)
}
