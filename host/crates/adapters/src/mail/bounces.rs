//! Bounces: mails that a server accepted, and another one returned later (RFC 3464).
//!
//! Each mail to a signer gets a sender address of its own (VERP), such as
//! `bounces+01m8k11jk….0.i.5f0c…@mail.example`. A returned mail goes to that address, which names the
//! envelope, the signer's position and the kind of mail, and ends in a keyed hash.

use std::fmt;
use std::str::FromStr as _;

use lettre::Address;

use crate::mail::EnvelopeMailKind;
use holdfast_base::config::{Config, ConfigError};
use holdfast_base::keys::{InstallationKeys, Key};
use holdfast_domain::envelope::Signer;
use holdfast_domain::hash::hmac_sha256;
use holdfast_domain::id::EnvelopeId;

/// Derivation purpose of the keys of the addresses.
const PURPOSE: &str = "mail bounces";
/// Maximum length of a local part, in bytes (RFC 5321, 4.5.3.1.1).
const LOCAL_PART: usize = 64;
/// Length of the keyed hash in an address, in characters. Guesses are mails, so 64 bits are enough.
const MAC: usize = 16;
/// Maximum length of a position in an address.
const POSITION: usize = 3;
/// Mailbox that returned mails go to, with the keys of its addresses.
pub struct BounceMailbox {
    user: String,
    domain: String,
    /// The current key first.
    keys: Vec<Key>,
}

/// Mail that was returned.
#[derive(Debug, PartialEq, Eq)]
pub struct ReturnedMail {
    pub envelope: EnvelopeId,
    /// Position of the signer in the envelope.
    pub position: i64,
    /// Kind of mail.
    pub kind: &'static str,
    /// Status and diagnosis of the server that returned it, for example `5.1.1; smtp; 550 unknown`.
    pub reason: String,
    mac: String,
}

impl ReturnedMail {
    /// Returns an id of the mail: the same for all bounces of it, which a receiver could write any number of.
    pub fn id(&self) -> &str {
        &self.mac
    }
}

/// Reason why a message is no report about a mail that will not be delivered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BounceError {
    #[error("the message has no address of a mail to a signer")]
    NoAddress,
    #[error("the message does not report a final failure (RFC 3464, Action: failed)")]
    NotFinal,
}

impl BounceMailbox {
    /// Reads the setting; none without one.
    pub(super) fn new(
        config: &Config,
        keys: &InstallationKeys,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(mailbox) = &config.mail_bounces else {
            return Ok(None);
        };

        let refused = |why: String| ConfigError::Refused {
            key: "mail_bounces".into(),
            why,
        };
        let address = Address::from_str(mailbox)
            .map_err(|_| refused(format!("{mailbox} is no address like bounces@mail.example")))?;

        // "+", the id without its prefix, the position, the kind and the hash, with three points.
        let added = 1 + EnvelopeId::new().as_str().len() - EnvelopeId::PREFIX.len()
            + POSITION
            + 1
            + MAC
            + 3;
        // Refused at the start, or the addresses of all mails would be too long later.
        let most = LOCAL_PART - added;
        if address.user().len() > most {
            return Err(refused(format!(
                "the part before @ has more than {most} characters, and each mail adds {added}"
            )));
        }

        Ok(Some(Self {
            user: address.user().to_owned(),
            domain: address.domain().to_owned(),
            keys: keys.generations(PURPOSE),
        }))
    }

    /// Returns the sender address of a mail to a signer. The kind is its first letter.
    pub(super) fn address(
        &self,
        envelope: &EnvelopeId,
        signer: &Signer,
        kind: EnvelopeMailKind,
    ) -> Option<Address> {
        let kind = kind.as_str();
        let mac = mac(self.keys.first()?, envelope, signer, kind);
        let id = &envelope.as_str()[EnvelopeId::PREFIX.len()..];
        let user = format!(
            "{}+{id}.{}.{}.{mac}",
            self.user,
            signer.position,
            &kind[..1]
        );

        Address::new(user, &self.domain).ok()
    }

    /// Reads a returned mail, with all headers and parts. Only lines of the status part are looked at
    /// (RFC 3464, 2.3), and the first address of ours, in whichever header or part it is: mail
    /// systems put it in `To`, `Delivered-To`, `X-Original-To` or the returned headers.
    pub fn read(&self, message: &str) -> Result<ReturnedMail, BounceError> {
        let mut found = self.addresses(message);
        let (envelope, position, kind, mac) = found.next().ok_or(BounceError::NoAddress)?;

        let field = |name: &str| {
            let mut lines = message.lines();
            lines.find_map(|line| {
                let (found, value) = line.split_once(':')?;
                found
                    .trim()
                    .eq_ignore_ascii_case(name)
                    .then(|| value.trim())
            })
        };

        // Reports of a delay have another action, and the mail may still arrive.
        let failed = field("Action").is_some_and(|action| action.eq_ignore_ascii_case("failed"));
        let status = field("Status").filter(|status| status.starts_with("5."));
        let Some(status) = status.filter(|_| failed) else {
            return Err(BounceError::NotFinal);
        };

        let diagnosis = field("Diagnostic-Code").unwrap_or_default();
        // A stranger wrote these lines, and they go to the ledger and to the sender.
        let printable = |text: &str| {
            text.chars()
                .filter(|one| !one.is_control())
                .collect::<String>()
        };
        let reason = [status, diagnosis].map(printable).join("; ");

        Ok(ReturnedMail {
            envelope,
            position,
            kind,
            reason: reason.trim_end_matches("; ").to_owned(),
            mac,
        })
    }

    /// Whether the returned mail was sent to this person at this address.
    pub fn was_sent_to(&self, mail: &ReturnedMail, signer: &Signer) -> bool {
        self.keys
            .iter()
            .any(|key| mac(key, &mail.envelope, signer, mail.kind) == mail.mac)
    }

    /// Finds well-formed addresses of this mailbox in a text.
    fn addresses<'a>(
        &'a self,
        message: &'a str,
    ) -> impl Iterator<Item = (EnvelopeId, i64, &'static str, String)> + 'a {
        let begin = format!("{}+", self.user);
        let end = format!("@{}", self.domain);
        message.split(char::is_whitespace).filter_map(move |word| {
            let (_, word) = word.split_once(&begin)?;
            let (local, _) = word.split_once(&end)?;

            // Some mail systems write local parts in lower case; all parts of ours are.
            let mut parts = local.split('.');
            let (id, position, kind, mac) =
                (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
            let envelope = EnvelopeId::parse(&format!("{}{id}", EnvelopeId::PREFIX))?;
            let kinds = EnvelopeMailKind::ALL.map(EnvelopeMailKind::as_str);
            let kind = kinds.into_iter().find(|known| known[..1] == *kind)?;

            Some((envelope, position.parse().ok()?, kind, mac.to_owned()))
        })
    }
}

impl fmt::Display for BounceMailbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.user, self.domain)
    }
}

/// Returns the keyed hash in an address. It names the person and their address: a report about the
/// mail to an earlier person or address is not one about the present.
fn mac(key: &Key, envelope: &EnvelopeId, signer: &Signer, kind: &str) -> String {
    let parts = [envelope.as_str(), signer.id.as_str(), &signer.email, kind].join("\n");
    let mut code = hex::encode(hmac_sha256(key, &[parts.as_bytes()]));
    // All of it would not fit into a local part.
    code.truncate(MAC);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox() -> BounceMailbox {
        let data = tempfile::tempdir().unwrap();
        let keys = InstallationKeys::open(data.path()).unwrap();
        let config = Config {
            mail_bounces: Some("bounces@mail.example".into()),
            ..Config::default()
        };
        BounceMailbox::new(&config, &keys).unwrap().unwrap()
    }

    fn signer() -> Signer {
        Signer::new(2, "Ann".into(), "ann@example.com".into(), "Buyer".into())
    }

    /// Report of a mail server, as it arrives in the mailbox.
    fn report(to: &Address, action: &str, status: &str) -> String {
        format!(
            "Return-Path: <>\r\nTo: {to}\r\nContent-Type: multipart/report; report-type=delivery-status\r\n\r\n\
             Reporting-MTA: dns; mx.example\r\n\r\nFinal-Recipient: rfc822; ann@example.com\r\n\
             Action: {action}\r\nStatus: {status}\r\nDiagnostic-Code: smtp; 550 unknown user\r\n"
        )
    }

    #[test]
    fn a_bounce_names_the_mail_that_was_returned() {
        let (mailbox, envelope, signer) = (mailbox(), EnvelopeId::new(), signer());
        let address = mailbox
            .address(&envelope, &signer, EnvelopeMailKind::Invitation)
            .unwrap();
        assert!(address.user().len() <= LOCAL_PART, "{address}");

        let mail = mailbox.read(&report(&address, "failed", "5.1.1")).unwrap();
        assert_eq!(mail.envelope, envelope);
        assert_eq!((mail.position, mail.kind), (signer.position, "invitation"));
        assert_eq!(mail.reason, "5.1.1; smtp; 550 unknown user");
        assert!(mailbox.was_sent_to(&mail, &signer));
    }

    #[test]
    fn a_bounce_of_a_mail_to_an_earlier_address_is_not_about_the_present_one() {
        let (mailbox, envelope, mut signer) = (mailbox(), EnvelopeId::new(), signer());
        let address = mailbox
            .address(&envelope, &signer, EnvelopeMailKind::Reminder)
            .unwrap();
        signer.email = "ann.lee@example.com".into();
        let mail = mailbox.read(&report(&address, "failed", "5.1.1")).unwrap();
        assert!(!mailbox.was_sent_to(&mail, &signer));
    }

    #[test]
    fn delays_successes_and_other_mails_are_no_bounces() {
        let (mailbox, envelope, signer) = (mailbox(), EnvelopeId::new(), signer());
        let address = mailbox
            .address(&envelope, &signer, EnvelopeMailKind::Invitation)
            .unwrap();
        for (action, status) in [
            ("delayed", "4.4.1"),
            ("delivered", "2.0.0"),
            ("failed", "4.2.2"),
        ] {
            let read = mailbox.read(&report(&address, action, status));
            assert_eq!(read, Err(BounceError::NotFinal), "{action}");
        }

        let stranger = "bounces+x.0.i.0@mail.example".parse().unwrap();
        let read = mailbox.read(&report(&stranger, "failed", "5.1.1"));
        assert_eq!(read, Err(BounceError::NoAddress));
    }

    #[test]
    fn a_mailbox_with_no_room_for_addresses_is_refused() {
        let data = tempfile::tempdir().unwrap();
        let keys = InstallationKeys::open(data.path()).unwrap();
        for mailbox in ["nobody", "returned-mail-of-our-house@mail.example"] {
            let config = Config {
                mail_bounces: Some(mailbox.into()),
                ..Config::default()
            };
            let refused = BounceMailbox::new(&config, &keys).err().unwrap();
            assert!(refused.to_string().contains("mail_bounces"), "{refused}");
        }
    }
}
