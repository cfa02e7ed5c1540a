//! Delivery of mails to a mail server, or as files to the outbox.

use std::path::PathBuf;

use lettre::message::Mailbox;
use lettre::{Address, Message};

use super::bounces::BounceMailbox;
use super::smtp::SmtpServer;
use super::{EnvelopeMailKind, MailError, outbox};
use holdfast_base::config::{Config, ConfigError};
use holdfast_base::keys::InstallationKeys;
use holdfast_domain::envelope::Signer;
use holdfast_domain::id::{EnvelopeId, JobId};

/// Sends messages; created once at startup.
pub struct MailSender {
    from: Mailbox,
    way: MailTransport,
    bounces: Option<BounceMailbox>,
}

enum MailTransport {
    Server(SmtpServer),
    Outbox(PathBuf),
}

impl MailSender {
    /// Creates the mailer from the settings. An error names the setting and contains no secret.
    pub fn new(config: &Config, keys: &InstallationKeys) -> Result<Self, ConfigError> {
        let from = config.mail_from.parse().map_err(|_| ConfigError::Refused {
            key: "mail_from".into(),
            why: format!("{} is no mailbox like Name <name@host>", config.mail_from),
        })?;
        let way = match &config.smtp_url {
            Some(url) => MailTransport::Server(SmtpServer::new(url, config)?),
            None => MailTransport::Outbox(config.outbox()),
        };

        let bounces = BounceMailbox::new(config, keys)?;
        Ok(Self { from, way, bounces })
    }

    /// Returns the mailbox that returned mails go to, if there is one.
    pub fn bounces(&self) -> Option<&BounceMailbox> {
        self.bounces.as_ref()
    }

    /// Returns the sender address of one mail to a signer, of the kind `kind`. Without a mailbox
    /// for returned mails it is the sender's own.
    pub fn return_path(
        &self,
        envelope: &EnvelopeId,
        signer: &Signer,
        kind: EnvelopeMailKind,
    ) -> Option<Address> {
        self.bounces.as_ref()?.address(envelope, signer, kind)
    }

    /// Returns the installation's own mailbox.
    pub fn from(&self) -> &Mailbox {
        &self.from
    }

    /// Sends a message, or writes it to the outbox.
    pub async fn send(&self, id: &JobId, message: &Message) -> Result<(), MailError> {
        match &self.way {
            MailTransport::Server(server) => server.send(message).await,
            MailTransport::Outbox(folder) => {
                // Named by the job, so that a repeat replaces the file.
                let name = format!("{id}.eml");
                Ok(outbox::write(folder, name, message.formatted()).await?)
            }
        }
    }

    /// Describes where mails go, for the operator.
    pub fn describe(&self) -> String {
        match &self.way {
            MailTransport::Server(server) => format!("mails go to {server}"),
            MailTransport::Outbox(_) => "no mail server: mails are files in the outbox".to_owned(),
        }
    }

    /// Connects to the mail server and authenticates, without sending a mail.
    pub async fn check(&self) -> Result<String, String> {
        if let MailTransport::Server(server) = &self.way {
            let greeted = server.check().await;
            greeted.map_err(|error| format!("{server}: {error}"))?;
        }
        Ok(self.describe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_that_is_not_a_mailbox_is_refused() {
        let config = Config {
            mail_from: "nobody".into(),
            ..Config::default()
        };
        let data = tempfile::tempdir().unwrap();
        let keys = InstallationKeys::open(data.path()).unwrap();
        let error = MailSender::new(&config, &keys).err().unwrap().to_string();
        assert!(error.contains("mail_from"), "{error}");
    }
}
