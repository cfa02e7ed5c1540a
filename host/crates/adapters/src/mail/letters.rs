//! Wording of the mails.

use super::line::one_line;
use crate::texts::Texts;
use holdfast_domain::dates::DateSettings;
use holdfast_domain::envelope::{Envelope, EnvelopeLink, Signer, SignerKind, SignerStatus};
use holdfast_domain::question::SignerQuestion;
use holdfast_domain::webhook::{DisableReason, Endpoint};

/// Content of a mail, independent of its layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailContent {
    /// Texts in the recipient's language.
    pub texts: Texts,
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
pub struct MailButton {
    pub label: String,
    pub url: String,
}

/// Recipient of a notification that a signer declined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclineRecipient<'a> {
    /// The only recipient who learns who declined, and why.
    Creator {
        by: &'a str,
        reason: &'a str,
        /// Page of the envelope in the console; none where there are no pages.
        page: Option<&'a str>,
    },
    /// The signer who declined.
    Decliner,
    OtherSigner,
}

/// Content of a message with a link for a signer.
pub struct LinkFacts<'a> {
    pub texts: Texts,
    pub sender: &'a str,
    pub envelope: &'a Envelope,
    pub signer: &'a Signer,
    /// All signers of the envelope.
    pub signers: &'a [Signer],
    pub dates: &'a DateSettings,
    pub url: String,
}

impl LinkFacts<'_> {
    /// Returns a text about sender and document.
    fn about(&self, key: &'static str) -> String {
        let document = one_line(&self.envelope.name);
        let values = [("sender", self.sender), ("document", &document)];
        self.texts.with(key, values)
    }

    /// Returns the sender's own subject, if something is on it.
    fn own_subject(&self) -> Option<String> {
        let subject = self.envelope.sending.subject.as_deref().map(one_line);
        subject.filter(|subject| !subject.is_empty())
    }

    /// Returns until when to sign and who else signs.
    fn circumstances(&self) -> Option<String> {
        let texts = self.texts;
        let until = self.envelope.expires_at;
        let until = until.map(|at| {
            let moment = texts.moment(self.dates, at);
            texts.with("mail-deadline", [("moment", moment)])
        });
        let others = self.signers.iter();
        // The others appear with name and role. Their addresses are for the sender only.
        let others = others.filter(|other| other.position != self.signer.position);
        let others: Vec<String> = others
            .map(|other| {
                let key = match other.status {
                    SignerStatus::Completed => "mail-other-signed",
                    _ => "mail-other",
                };
                let (name, role) = (one_line(&other.name), one_line(&other.role));
                texts.with(key, [("name", name), ("role", role)])
            })
            .collect();

        let others = (!others.is_empty()).then(|| {
            let signers = others.join(&texts.text("list-separator"));
            texts.with("mail-others", [("signers", signers)])
        });
        let both: Vec<String> = until.into_iter().chain(others).collect();
        (!both.is_empty()).then(|| both.join(" "))
    }

    /// Builds a letter with the link.
    fn letter(self, subject: String, paragraphs: Vec<String>) -> MailContent {
        let texts = self.texts;
        // An approver signs nothing, so the button must not promise it.
        let label = match self.signer.kind {
            SignerKind::Approver => "mail-read",
            SignerKind::Signer | SignerKind::Witness => "mail-read-and-sign",
        };
        MailContent {
            texts,
            subject,
            to: Some(one_line(&self.signer.name)),
            paragraphs: paragraphs.into_iter().chain(self.circumstances()).collect(),
            notes: vec![
                texts.with("mail-why", [("sender", self.sender)]),
                texts.text("mail-link-note"),
                reference(texts, self.envelope.id.as_str()),
            ],
            button: Some(MailButton {
                label: texts.text(label),
                url: self.url,
            }),
        }
    }
}

/// Builds the invitation to sign, approve or witness.
pub fn invitation(facts: LinkFacts<'_>) -> MailContent {
    let (subject, asked) = match facts.signer.kind {
        SignerKind::Signer => ("mail-invitation-subject", "mail-invitation"),
        SignerKind::Approver => ("mail-approval-subject", "mail-approval"),
        SignerKind::Witness => ("mail-witness-subject", "mail-witness"),
    };
    let subject = facts.own_subject().unwrap_or_else(|| facts.about(subject));
    let corrects = facts.envelope.link(EnvelopeLink::Corrects);
    let corrects = corrects.map(|_| facts.about("mail-corrects"));
    let paragraphs = [facts.about(asked)].into_iter().chain(corrects);
    let paragraphs = paragraphs.chain(message(facts.envelope)).collect();
    facts.letter(subject, paragraphs)
}

/// Splits the sender's message into paragraphs.
fn message(envelope: &Envelope) -> impl Iterator<Item = String> {
    by_line(envelope.sending.message.as_deref().unwrap_or_default())
}

/// Splits what a person wrote into paragraphs, one for each line.
fn by_line(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(one_line).filter(|line| !line.is_empty())
}

/// Builds a reminder.
pub fn reminder(facts: LinkFacts<'_>) -> MailContent {
    let texts = facts.texts;
    let subject = match facts.own_subject() {
        Some(subject) => texts.with("mail-reminder-own-subject", [("subject", subject)]),
        None => facts.about("mail-reminder-subject"),
    };

    // With the message again: the signer may have deleted the invitation.
    let paragraphs = [facts.about("mail-reminder")]
        .into_iter()
        .chain(message(facts.envelope))
        .chain([texts.text("mail-reminder-link")])
        .collect();
    facts.letter(subject, paragraphs)
}

/// Builds the mail that lets a signer who asked for it continue later.
pub fn later(facts: LinkFacts<'_>) -> MailContent {
    let subject = facts.about("mail-later-subject");
    let paragraphs = vec![facts.about("mail-later")];
    facts.letter(subject, paragraphs)
}

/// How a recipient gets the copy of the signed document.
pub enum CopyDelivery {
    /// With the certificate of completion, if there is one.
    Attached { certificate: bool },
    /// Too large to attach: a download link for this recipient.
    Linked(String),
    /// Too large to attach, for a recipient with access to the vault.
    Kept,
}

/// Notification about the outcome of an envelope.
pub struct OutcomeNotice<'a> {
    pub texts: Texts,
    /// Display name of the sender.
    pub sender: &'a str,
    pub envelope: &'a Envelope,
    /// Name of the recipient, if known.
    pub to: Option<&'a str>,
}

impl OutcomeNotice<'_> {
    /// Returns a text about the document.
    fn about(&self, key: &'static str) -> String {
        let document = one_line(&self.envelope.name);
        let values = [("sender", self.sender), ("document", &document)];
        self.texts.with(key, values)
    }

    fn letter(&self, subject: &'static str, paragraphs: Vec<String>) -> MailContent {
        let texts = self.texts;
        // The creator has named the others, so only they may wonder.
        let why = self
            .to
            .map(|_| texts.with("mail-why", [("sender", self.sender)]));
        let reference = reference(texts, self.envelope.id.as_str());
        MailContent {
            texts,
            subject: self.about(subject),
            to: self.to.map(one_line),
            paragraphs,
            button: None,
            notes: why.into_iter().chain([reference]).collect(),
        }
    }

    /// Builds the mail with the code that opens the document.
    pub fn access_code(&self, code: &str, minutes: u64) -> MailContent {
        let texts = self.texts;
        let document = one_line(&self.envelope.name);
        let values = [
            ("sender", self.sender),
            ("document", &document),
            ("code", code),
        ];
        let paragraphs = vec![
            texts.with("mail-code", values),
            texts.with("mail-code-use", [("minutes", minutes)]),
        ];

        MailContent {
            texts,
            // Phones show the subject, so the signer need not leave the form.
            subject: texts.with("mail-code-subject", [("code", code)]),
            to: self.to.map(one_line),
            paragraphs,
            // Without a link: a person who reads this mail alone must not be able to open the document.
            button: None,
            notes: vec![
                texts.text("mail-code-note"),
                reference(texts, self.envelope.id.as_str()),
            ],
        }
    }

    /// Builds the mail to a viewer, who may read the document while others sign it.
    pub fn viewing(&self, url: String) -> MailContent {
        let paragraphs = vec![
            self.about("mail-viewing"),
            self.texts.text("mail-viewing-copy"),
        ];
        self.reading("mail-viewing-subject", paragraphs, url)
    }

    /// Builds the mail to a substitute, who may sign in the place of another member of the group.
    pub fn substitute(&self, group: &str, url: String) -> MailContent {
        let texts = self.texts;
        let paragraphs = vec![
            self.about("mail-substitute"),
            texts.with("mail-substitute-group", [("group", one_line(group))]),
        ];
        self.reading("mail-substitute-subject", paragraphs, url)
    }

    fn reading(&self, subject: &'static str, paragraphs: Vec<String>, url: String) -> MailContent {
        let texts = self.texts;
        let letter = self.letter(subject, paragraphs);
        MailContent {
            button: Some(MailButton {
                label: texts.text("mail-read"),
                url,
            }),
            notes: [texts.text("mail-link-note")]
                .into_iter()
                .chain(letter.notes)
                .collect(),
            ..letter
        }
    }

    /// Builds the notification that all signers have signed.
    pub fn completed(&self, copy: CopyDelivery) -> MailContent {
        let (said, url) = match copy {
            CopyDelivery::Attached { certificate: true } => ("mail-attached-certificate", None),
            CopyDelivery::Attached { certificate: false } => ("mail-attached", None),
            CopyDelivery::Linked(url) => ("mail-linked", Some(url)),
            CopyDelivery::Kept => ("mail-too-large", None),
        };
        let paragraphs = vec![self.about("mail-completed"), self.texts.text(said)];

        MailContent {
            button: url.map(|url| MailButton {
                label: self.texts.text("signed-download"),
                url,
            }),
            ..self.letter("mail-completed-subject", paragraphs)
        }
    }

    /// Builds the notification that a signer declined.
    pub fn declined(&self, told: DeclineRecipient<'_>) -> MailContent {
        let paragraphs = match told {
            DeclineRecipient::Creator { by, reason, .. } => {
                let (name, document) = (one_line(by), one_line(&self.envelope.name));
                let values = [("name", name), ("document", document)];
                let mut paragraphs = vec![self.texts.with("mail-declined-by", values)];
                // A signer may decline without a reason, and an empty quotation looks like an error.
                if !reason.trim().is_empty() {
                    let given = self
                        .texts
                        .with("mail-declined-reason", [("reason", reason)]);
                    paragraphs.push(given);
                }

                paragraphs
            }
            DeclineRecipient::Decliner => vec![
                self.about("mail-declined-self"),
                self.about("mail-declined-contact"),
            ],
            DeclineRecipient::OtherSigner => vec![
                self.about("mail-declined-other"),
                self.texts.text("mail-declined-closed"),
            ],
        };

        let page = match told {
            DeclineRecipient::Creator { page, .. } => page,
            DeclineRecipient::Decliner | DeclineRecipient::OtherSigner => None,
        };
        MailContent {
            button: page.map(|url| MailButton {
                label: self.texts.text("mail-envelope-open"),
                url: url.to_owned(),
            }),
            ..self.letter("mail-declined-subject", paragraphs)
        }
    }

    /// Builds the notification that a draft was not sent at its planned time, for the sender.
    pub fn not_sent(&self, reason: &str) -> MailContent {
        let values = [
            ("document", one_line(&self.envelope.name)),
            ("reason", one_line(reason)),
        ];
        let paragraphs = vec![
            self.texts.with("mail-not-sent", values),
            self.texts.text("mail-not-sent-act"),
        ];

        self.letter("mail-not-sent-subject", paragraphs)
    }

    /// Builds the notification that a mail to a signer was returned, for the sender.
    pub fn undelivered(&self, name: &str, reason: &str) -> MailContent {
        let values = [
            ("name", one_line(name)),
            ("document", one_line(&self.envelope.name)),
            ("reason", one_line(reason)),
        ];
        let paragraphs = vec![
            self.texts.with("mail-undelivered", values),
            self.texts.text("mail-undelivered-act"),
        ];

        self.letter("mail-undelivered-subject", paragraphs)
    }

    /// Builds the mail with a signer's question, for the sender. `page` leads to the form for the answer; none where
    /// there are no pages.
    pub fn question(&self, question: &SignerQuestion, page: Option<String>) -> MailContent {
        let values = [
            ("name", one_line(&question.name)),
            ("document", one_line(&self.envelope.name)),
        ];
        let asks = self.texts.with("mail-question", values);
        let answer = self.texts.text("mail-question-answer");
        let paragraphs = [asks].into_iter().chain(by_line(&question.text));
        let paragraphs = paragraphs.chain([answer]).collect();

        MailContent {
            button: page.map(|url| MailButton {
                label: self.texts.text("mail-question-open"),
                url,
            }),
            ..self.letter("mail-question-subject", paragraphs)
        }
    }

    /// Builds the mail with the sender's answer, for the signer who asked. `url` opens the document; none for a signer
    /// who can no longer sign.
    pub fn answer(&self, question: &str, answer: &str, url: Option<String>) -> MailContent {
        let answered = [self.about("mail-answer")];
        let answered = answered.into_iter().chain(by_line(answer));
        let asked = [self.texts.text("mail-answer-asked")];
        let asked = asked.into_iter().chain(by_line(question));
        let letter = self.letter("mail-answer-subject", answered.chain(asked).collect());
        let Some(url) = url else {
            return letter;
        };

        MailContent {
            button: Some(MailButton {
                label: self.texts.text("mail-read"),
                url,
            }),
            notes: [self.texts.text("mail-link-note")]
                .into_iter()
                .chain(letter.notes)
                .collect(),
            ..letter
        }
    }

    /// Builds the notification that the sender withdrew the document, or corrected it and sent it again.
    pub fn withdrawn(&self) -> MailContent {
        if self.envelope.link(EnvelopeLink::CorrectedBy).is_some() {
            // Without mails, the sender hands over the corrected document.
            let next = if self.envelope.sending.send_email {
                "mail-corrected-link"
            } else {
                "mail-corrected-sign"
            };
            let paragraphs = vec![
                self.about("mail-corrected"),
                self.texts.text("mail-corrected-void"),
                self.texts.text(next),
            ];
            return self.letter("mail-corrected-subject", paragraphs);
        }

        let paragraphs = vec![
            self.about("mail-withdrawn"),
            self.texts.text("mail-withdrawn-closed"),
        ];
        self.letter("mail-withdrawn-subject", paragraphs)
    }
}

/// Builds the warning that a webhook endpoint has been failing for days.
pub fn endpoint_failing(
    texts: Texts,
    dates: &DateSettings,
    endpoint: &Endpoint,
    page: Option<String>,
) -> MailContent {
    let host = host(texts, endpoint);
    // The endpoint may have recovered for a moment since the mail was queued.
    let failing = match endpoint.health.failing_since {
        Some(at) => {
            let since = texts.moment(dates, at);
            let values = [("host", host.as_str()), ("since", &since)];
            texts.with("mail-endpoint-failing-since", values)
        }
        None => texts.with("mail-endpoint-failing-days", [("host", host.as_str())]),
    };

    MailContent {
        texts,
        subject: texts.with("mail-endpoint-failing-subject", [("host", host)]),
        to: None,
        paragraphs: vec![failing, texts.text("mail-endpoint-failing")],
        button: to_receiver(texts, page),
        notes: vec![reference(texts, endpoint.id.as_str())],
    }
}

/// Requested release that a controller is asked about.
pub struct ReleaseFacts<'a> {
    pub texts: Texts,
    /// Name of the organization that asks.
    pub originator: &'a str,
    pub document: &'a str,
    /// Organization that would get the copy.
    pub recipient: &'a str,
    pub purpose: &'a str,
    /// The recipient would get a paper original.
    pub is_paper: bool,
    /// Id of the requested release.
    pub reference: &'a str,
    /// Page on which users answer; none where there are no pages.
    pub page: Option<String>,
}

/// Builds the mail that asks a controller to agree to a release.
pub fn release_request(facts: &ReleaseFacts<'_>) -> MailContent {
    let texts = facts.texts;
    let values = [
        ("originator", one_line(facts.originator)),
        ("document", one_line(facts.document)),
        ("recipient", one_line(facts.recipient)),
        ("purpose", one_line(facts.purpose)),
    ];

    // Paper takes the place of the authoritative copy, which the people who
    // consent must read in the question.
    let request = if facts.is_paper {
        "mail-release-paper"
    } else {
        "mail-release"
    };
    MailContent {
        texts,
        subject: texts.with("mail-release-subject", values.clone()),
        to: None,
        paragraphs: vec![
            texts.with(request, values),
            texts.text("mail-release-answer"),
        ],
        button: facts.page.clone().map(|url| MailButton {
            label: texts.text("mail-release-open"),
            url,
        }),
        notes: vec![reference(texts, facts.reference)],
    }
}

/// Facts of the mail about a date of a contract.
pub struct ContractDateFacts<'a> {
    pub texts: Texts,
    pub document: &'a str,
    /// What happens on the day.
    pub name: &'a str,
    /// The day, as the organization writes dates.
    pub date: &'a str,
    /// Days until then; negative once the day is past.
    pub days: i32,
    /// Page of the envelope, if the console has an address.
    pub page: Option<String>,
    /// Id of the envelope.
    pub reference: &'a str,
}

/// Builds the mail about a date of a contract.
pub fn contract_date(facts: &ContractDateFacts<'_>) -> MailContent {
    let texts = facts.texts;
    let values = [
        ("name", one_line(facts.name)),
        ("document", one_line(facts.document)),
        ("date", facts.date.to_owned()),
        ("days", facts.days.to_string()),
    ];
    let sentence = match facts.days {
        ..0 => "mail-date-past",
        0 => "mail-date-today",
        1 => "mail-date-tomorrow",
        _ => "mail-date",
    };

    MailContent {
        texts,
        subject: texts.with("mail-date-subject", values.clone()),
        to: None,
        paragraphs: vec![texts.with(sentence, values)],
        button: facts.page.clone().map(|url| MailButton {
            label: texts.text("mail-date-open"),
            url,
        }),
        notes: vec![reference(texts, facts.reference)],
    }
}

/// Facts of the mail to a person who may look at a record.
pub struct ViewFacts<'a> {
    pub texts: Texts,
    /// Name of the record's controller.
    pub sender: &'a str,
    pub document: &'a str,
    pub to: &'a str,
    /// End of the view.
    pub until: &'a str,
    pub url: String,
    /// Id of the view.
    pub reference: &'a str,
}

/// Builds the mail with the link to a record.
pub fn view(facts: &ViewFacts<'_>) -> MailContent {
    let texts = facts.texts;
    let values = [
        ("sender", one_line(facts.sender)),
        ("document", one_line(facts.document)),
        ("moment", facts.until.to_owned()),
    ];

    MailContent {
        texts,
        subject: texts.with("mail-viewing-subject", values.clone()),
        to: Some(one_line(facts.to)),
        paragraphs: vec![texts.with("mail-view", values)],
        button: Some(MailButton {
            label: texts.text("mail-read"),
            url: facts.url.clone(),
        }),
        notes: vec![
            texts.text("mail-view-note"),
            reference(texts, facts.reference),
        ],
    }
}

/// Builds the mail with which an organization invites a party. `reference` is the id of the invitation.
pub fn party_invitation(
    texts: Texts,
    sender: &str,
    name: &str,
    url: String,
    reference_id: &str,
) -> MailContent {
    // Another organization entered these names, so they must not add lines or addresses to the mail.
    let values = [("sender", one_line(sender)), ("name", one_line(name))];
    MailContent {
        texts,
        subject: texts.with("join-title", values.clone()),
        to: Some(one_line(name)),
        paragraphs: vec![texts.with("join-hint", values)],
        button: Some(MailButton {
            label: texts.text("join-button"),
            url,
        }),
        notes: vec![texts.text("mail-link-note"), reference(texts, reference_id)],
    }
}

/// Builds the mail about a record that a visitor of an open link has made. `reference_id` is the id of the record.
pub fn open_link_used(
    texts: Texts,
    link: &str,
    visitor: &Signer,
    page: Option<String>,
    reference_id: &str,
) -> MailContent {
    // A stranger entered name and address, so they must not add lines to the mail.
    let link = ("link", one_line(link));
    let values = [
        link.clone(),
        ("name", one_line(&visitor.name)),
        ("email", one_line(&visitor.email)),
    ];

    MailContent {
        texts,
        subject: texts.with("mail-open-link-subject", [link]),
        to: None,
        paragraphs: vec![texts.with("mail-open-link", values)],
        button: page.map(|url| MailButton {
            label: texts.text("mail-open-link-button"),
            url,
        }),
        notes: vec![reference(texts, reference_id)],
    }
}

/// Builds the mail about a change of the host of signing links; without a host, they lead to the installation's address.
pub fn link_host_changed(
    texts: Texts,
    organization: &str,
    by: &str,
    host: Option<&str>,
    page: Option<String>,
) -> MailContent {
    let changed = if host.is_some() {
        "settings-link-host-mail-set"
    } else {
        "settings-link-host-mail-removed"
    };
    let values = [
        ("organization", one_line(organization)),
        ("by", one_line(by)),
        ("host", one_line(host.unwrap_or_default())),
    ];
    MailContent {
        texts,
        subject: texts.with("settings-link-host-mail-subject", values.clone()),
        to: None,
        paragraphs: vec![
            texts.with(changed, values),
            texts.text("settings-link-host-mail-check"),
        ],
        button: page.map(|url| MailButton {
            label: texts.text("settings-link-host"),
            url,
        }),
        notes: Vec::new(),
    }
}

/// Builds the mail with which a user signs in.
pub fn sign_in(
    texts: Texts,
    organization: &str,
    email: &str,
    until: &str,
    url: String,
) -> MailContent {
    let values = [
        ("organization", one_line(organization)),
        ("email", one_line(email)),
        ("until", until.to_owned()),
    ];
    MailContent {
        texts,
        subject: texts.with("sign-in-subject", values.clone()),
        // Users have an address and no name.
        to: None,
        paragraphs: vec![texts.with("sign-in-mail", values)],
        button: Some(MailButton {
            label: texts.text("sign-in-button"),
            url,
        }),
        notes: vec![texts.text("sign-in-note")],
    }
}

/// Builds the notification that a webhook endpoint was disabled.
pub fn endpoint_disabled(texts: Texts, endpoint: &Endpoint, page: Option<String>) -> MailContent {
    let host = host(texts, endpoint);
    // After a 410 the receiver itself asked for the end, so the mail does not speak of failures.
    let why = match endpoint.health.disabled {
        Some((DisableReason::Gone, _)) => "mail-endpoint-gone",
        _ => "mail-endpoint-failed",
    };
    MailContent {
        texts,
        subject: texts.with("mail-endpoint-disabled-subject", [("host", host.as_str())]),
        to: None,
        paragraphs: vec![
            texts.with(why, [("host", host)]),
            texts.text("mail-endpoint-disabled"),
        ],
        button: to_receiver(texts, page),
        notes: vec![reference(texts, endpoint.id.as_str())],
    }
}

/// Returns the button that leads to the console's page of a receiver.
fn to_receiver(texts: Texts, page: Option<String>) -> Option<MailButton> {
    page.map(|url| MailButton {
        label: texts.text("mail-endpoint-open"),
        url,
    })
}

/// Returns the host of an endpoint's URL; the full URL may contain a credential.
fn host(texts: Texts, endpoint: &Endpoint) -> String {
    let url = url::Url::parse(&endpoint.url).ok();
    let host = url.as_ref().and_then(|url| url.host_str());
    host.map_or_else(|| texts.text("mail-endpoint-receiver"), one_line)
}

/// Returns the reference that recipients can quote to support.
fn reference(texts: Texts, id: &str) -> String {
    texts.with("reference", [("id", id)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::clock::Timestamp;
    use holdfast_domain::envelope::EnvelopeKind;
    use holdfast_domain::id::{CustomerId, EndpointId, EnvelopeId, OrgId, QuestionId, SignerId};
    use holdfast_domain::locale::Locale;
    use holdfast_domain::webhook::EndpointHealth;

    fn endpoint(health: EndpointHealth) -> Endpoint {
        let at = Timestamp::from_millis(0);
        Endpoint {
            id: EndpointId::new(),
            org: OrgId::new(),
            url: "https://x.example/hooks?token=a".into(),
            description: None,
            selectors: Vec::new(),
            is_active: true,
            key: None,
            legacy: false,
            secret: None,
            previous: None,
            created_by: String::new(),
            created_at: at,
            updated_at: at,
            health,
        }
    }

    #[test]
    fn mails_about_webhooks_are_translated_and_name_the_host_only() {
        let at = Timestamp::from_millis(0);
        let texts = Texts::of(Locale::Accented);
        let failing = |since| {
            let health = EndpointHealth {
                failing_since: since,
                ..EndpointHealth::default()
            };
            endpoint_failing(texts, &DateSettings::default(), &endpoint(health), None)
        };

        let disabled = |why| {
            let health = EndpointHealth {
                disabled: Some((why, at)),
                ..EndpointHealth::default()
            };
            endpoint_disabled(texts, &endpoint(health), None)
        };

        for letter in [
            failing(None),
            failing(Some(at)),
            disabled(DisableReason::Gone),
            disabled(DisableReason::Failing),
        ] {
            let notes = letter.notes.iter().filter(|note| !note.contains("whep_"));
            let lines = [&letter.subject].into_iter().chain(&letter.paragraphs);
            for line in lines.chain(notes) {
                assert!(!line.contains("token"), "{line}");
                let own = line.replace("x.example", "").replace("UTC", "");
                let words = own.split(|letter: char| !letter.is_alphabetic());
                let plain: Vec<&str> = words
                    .filter(|word| word.len() > 1 && word.is_ascii())
                    .collect();
                assert!(plain.is_empty(), "{plain:?}: {line}");
            }
        }
    }

    fn contract() -> Envelope {
        let at = Timestamp::from_millis(0);
        let (org, customer) = (OrgId::new(), CustomerId::new());
        let creator = "ann@example.com".into();
        Envelope::new(
            org,
            customer,
            "Loan".into(),
            EnvelopeKind::Esign,
            creator,
            at,
        )
    }

    fn signer(position: i64, name: &str, kind: SignerKind) -> Signer {
        let (email, role) = (format!("{name}@example.com"), format!("Role of {name}"));
        Signer {
            kind,
            ..Signer::new(position, name.into(), email, role)
        }
    }

    /// Subject and paragraphs.
    fn lines(letter: MailContent) -> Vec<String> {
        [letter.subject]
            .into_iter()
            .chain(letter.paragraphs)
            .collect()
    }

    /// Builds the letter with a link to the first of these signers.
    fn to_first(
        signers: &[Signer],
        expires_at: Option<Timestamp>,
        build: fn(LinkFacts<'_>) -> MailContent,
    ) -> Vec<String> {
        let envelope = Envelope {
            expires_at,
            ..contract()
        };
        lines(build(LinkFacts {
            texts: Texts::default(),
            sender: "Maple",
            envelope: &envelope,
            signer: &signers[0],
            signers,
            dates: &DateSettings::default(),
            url: String::new(),
        }))
    }

    #[test]
    fn an_invitation_asks_for_what_the_signer_is_to_do() {
        for (kind, subject, asked) in [
            (
                SignerKind::Signer,
                "Maple asks you to sign: Loan",
                "Maple asks you to sign “Loan”.",
            ),
            (
                SignerKind::Approver,
                "Maple asks you to approve: Loan",
                "Maple asks you to approve “Loan”.",
            ),
            (
                SignerKind::Witness,
                "Maple asks you to sign as a witness: Loan",
                "Maple asks you to sign “Loan” as a witness.",
            ),
        ] {
            let alone = [signer(0, "Ann", kind)];
            assert_eq!(to_first(&alone, None, invitation), [subject, asked]);
        }

        let why = "You get this e-mail because Maple named your address for this document.";
        let texts = Texts::default();
        assert_eq!(texts.with("mail-why", [("sender", "Maple")]), why);
    }

    #[test]
    fn an_invitation_and_a_reminder_have_the_senders_own_subject_and_message() {
        let mut envelope = contract();
        envelope.sending.subject = Some("Your loan\u{202e}".into());
        envelope.sending.message = Some("Dear Ann,\r\n\r\nplease sign.".into());
        let ann = [signer(0, "Ann", SignerKind::Signer)];
        let built = |build: fn(LinkFacts<'_>) -> MailContent| {
            lines(build(LinkFacts {
                texts: Texts::default(),
                sender: "Maple",
                envelope: &envelope,
                signer: &ann[0],
                signers: &ann,
                dates: &DateSettings::default(),
                url: String::new(),
            }))
        };

        assert_eq!(
            built(invitation),
            [
                "Your loan",
                "Maple asks you to sign “Loan”.",
                "Dear Ann,",
                "please sign.",
            ]
        );
        assert_eq!(
            built(reminder),
            [
                "Reminder: Your loan",
                "Maple is waiting for you to do your part of “Loan”.",
                "Dear Ann,",
                "please sign.",
                "You can open it with this new link. Older links may have expired.",
            ]
        );
    }

    #[test]
    fn letters_about_a_correction_state_what_counts() {
        let mut corrected = contract();
        corrected.set_link(EnvelopeLink::CorrectedBy, &EnvelopeId::new());
        let notice = OutcomeNotice {
            texts: Texts::default(),
            sender: "Maple",
            envelope: &corrected,
            to: Some("Ann"),
        };
        assert_eq!(
            lines(notice.withdrawn()),
            [
                "Corrected: Loan",
                "Maple has corrected “Loan” and sends it again.",
                "Earlier links no longer open it, and signatures on the earlier document do not count.",
                "Signers get another message with a link to the corrected document when it is their turn. \
                 Please sign that one, even if you have signed before.",
            ]
        );

        let mut in_person = corrected.clone();
        in_person.sending.send_email = false;
        let notice = OutcomeNotice {
            envelope: &in_person,
            ..notice
        };
        assert_eq!(
            lines(notice.withdrawn())[3],
            "Please sign the corrected document, even if you have signed before."
        );

        let mut new = contract();
        new.set_link(EnvelopeLink::Corrects, &corrected.id);
        new.sending.message = Some("The price was wrong".into());
        let ann = [signer(0, "Ann", SignerKind::Signer)];
        let invited = invitation(LinkFacts {
            texts: Texts::default(),
            sender: "Maple",
            envelope: &new,
            signer: &ann[0],
            signers: &ann,
            dates: &DateSettings::default(),
            url: String::new(),
        });
        assert_eq!(
            lines(invited),
            [
                "Maple asks you to sign: Loan",
                "Maple asks you to sign “Loan”.",
                "It takes the place of an earlier document that Maple has corrected. \
                 Signatures on the earlier one do not count.",
                "The price was wrong",
            ]
        );
    }

    #[test]
    fn a_letter_about_a_date_names_the_days_only_while_they_are_to_come() {
        let sentence = |days| {
            let letter = contract_date(&ContractDateFacts {
                texts: Texts::default(),
                document: "Loan",
                name: "End of the term",
                date: "2031-11-30",
                days,
                page: None,
                reference: "env_1",
            });
            lines(letter).remove(1)
        };
        let rest = "End of the term. This is a date of “Loan”.";
        assert_eq!(sentence(7), format!("In 7 days, on 2031-11-30: {rest}"));
        assert_eq!(sentence(0), format!("Today, on 2031-11-30: {rest}"));
        assert_eq!(sentence(-2), format!("2031-11-30 has passed: {rest}"));
    }

    #[test]
    fn a_letter_names_the_deadline_and_the_other_signers_by_their_standing() {
        let done = Signer {
            status: SignerStatus::Completed,
            ..signer(1, "Bo", SignerKind::Signer)
        };
        let signers = [
            signer(0, "Ann", SignerKind::Signer),
            done,
            signer(2, "Cy", SignerKind::Signer),
        ];

        let until = Timestamp::from_millis(0);
        let moment = Texts::default().moment(&DateSettings::default(), until);
        assert_eq!(
            to_first(&signers, Some(until), reminder),
            [
                "Reminder: Maple is waiting for you: Loan",
                "Maple is waiting for you to do your part of “Loan”.",
                "You can open it with this new link. Older links may have expired.",
                &format!(
                    "Please sign by {moment}. Other signers: Bo (Role of Bo, done), Cy (Role of Cy)."
                ),
            ]
        );
        assert_eq!(to_first(&signers[..1], None, reminder).len(), 3);
        assert_eq!(
            to_first(&signers[..1], None, later),
            [
                "To finish later: Loan",
                "You wanted to finish “Loan” later. Your entries are kept; this link leads back to them.",
            ]
        );
    }

    fn question() -> SignerQuestion {
        SignerQuestion {
            id: QuestionId::new(),
            signer: SignerId::new(),
            position: 0,
            name: "Bo".into(),
            email: "bo@example.com".into(),
            role: "Buyer".into(),
            text: "Is it new?\n\nAnd red?".into(),
            asked_at: Timestamp::from_millis(0),
            closing: None,
        }
    }

    #[test]
    fn a_letter_about_the_outcome_states_what_happened_to_its_reader() {
        let envelope = contract();
        let notice = || OutcomeNotice {
            texts: Texts::default(),
            sender: "Maple",
            envelope: &envelope,
            to: Some("Ann"),
        };

        let declined = |by, reason| DeclineRecipient::Creator {
            by,
            reason,
            page: None,
        };
        let completed = |copy| notice().completed(copy);
        let attached = |certificate| completed(CopyDelivery::Attached { certificate });

        let finished = [
            "Completed: Loan",
            "“Loan” is completed: all parties have done their part.",
        ];
        for (letter, expected) in [
            (
                attached(true),
                [
                    &finished[..],
                    &["The completed document is attached, marked as a non-authoritative copy, with its certificate \
                       of completion."],
                ]
                .concat(),
            ),
            (
                attached(false),
                [
                    &finished[..],
                    &["The completed document is attached, marked as a non-authoritative copy."],
                ]
                .concat(),
            ),
            (
                completed(CopyDelivery::Linked("https://x.example".into())),
                [
                    &finished[..],
                    &["The completed document is too large for an e-mail. You can download your copy for seven days."],
                ]
                .concat(),
            ),
            (
                completed(CopyDelivery::Kept),
                [
                    &finished[..],
                    &["The completed document is too large for an e-mail."],
                ]
                .concat(),
            ),
            (
                notice().declined(declined("Bo", "Wrong price")),
                vec![
                    "Declined: Loan",
                    "Bo has declined to sign “Loan”.",
                    "The reason given: Wrong price",
                ],
            ),
            (
                notice().declined(declined("Bo", " ")),
                vec!["Declined: Loan", "Bo has declined to sign “Loan”."],
            ),
            (
                notice().declined(DeclineRecipient::Decliner),
                vec![
                    "Declined: Loan",
                    "You have declined to sign “Loan”. Maple has been notified.",
                    "If you did not decline, please contact Maple.",
                ],
            ),
            (
                notice().declined(DeclineRecipient::OtherSigner),
                vec![
                    "Declined: Loan",
                    "Another signer has declined to sign “Loan”.",
                    "The document is closed. You do not need to do anything.",
                ],
            ),
            (
                notice().withdrawn(),
                vec![
                    "Withdrawn: Loan",
                    "Maple has withdrawn “Loan”.",
                    "Your links no longer open it. You do not need to do anything.",
                ],
            ),
            (
                notice().question(&question(), None),
                vec![
                    "Question about: Loan",
                    "Bo has a question about “Loan”:",
                    "Is it new?",
                    "And red?",
                    "While the question is open, nobody is reminded by plan, and all can sign. A reply to this mail goes \
                     to the signer and leaves the question open.",
                ],
            ),
            (
                notice().answer("Is it new?", "Yes.\nIt is.", None),
                vec![
                    "Answer to your question: Loan",
                    "Maple has answered your question about “Loan”:",
                    "Yes.",
                    "It is.",
                    "You asked:",
                    "Is it new?",
                ],
            ),
            (
                notice().viewing("https://x.example".into()),
                vec![
                    "Maple shows you: Loan",
                    "Maple has sent “Loan” to its signers and lets you read it.",
                    "You do not need to do anything. You will get a copy when all parties have done their part.",
                ],
            ),
        ] {
            assert_eq!(lines(letter), expected);
        }
    }

    #[test]
    fn a_controller_is_asked_for_the_medium_of_the_release() {
        let asked = |is_paper| {
            lines(release_request(&ReleaseFacts {
                texts: Texts::default(),
                originator: "Maple",
                document: "Loan",
                recipient: "Second Bank",
                purpose: "Sale",
                is_paper,
                reference: "rel_1",
                page: None,
            }))
        };

        let [file, paper] = [false, true].map(asked);
        for letter in [&file, &paper] {
            assert_eq!(letter[0], "Maple asks to release Loan");
            let answer = "Your organization controls this record. Without your consent the copy stays in the vault. \
                          Answer with the reference below.";
            assert_eq!(letter[2], answer);
        }

        assert_eq!(
            file[1],
            "Maple wants to release the authoritative copy of Loan to Second Bank. Purpose: Sale"
        );
        assert_eq!(
            paper[1],
            "Maple wants to replace the authoritative copy of Loan by a paper original for Second Bank. Purpose: Sale"
        );
    }
}
