//! Delivery of mails to a mail server, or as files to the outbox.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use lettre::Message;
use lettre::message::Mailbox;

use super::MailError;
use super::smtp::SmtpServer;
use crate::config::{Config, ConfigError};
use crate::domain::id::JobId;

/// Sends messages; created once at startup.
pub(crate) struct MailSender {
    from: Mailbox,
    way: MailTransport,
}

enum MailTransport {
    Server(SmtpServer),
    Outbox(PathBuf),
}

impl MailSender {
    /// Creates the mailer from the settings. An error names the setting and contains no secret.
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        let from = config.mail_from.parse().map_err(|_| ConfigError::Refused {
            key: "mail_from".into(),
            why: format!("{} is no mailbox like Name <name@host>", config.mail_from),
        })?;
        let way = match &config.smtp_url {
            Some(url) => MailTransport::Server(SmtpServer::new(url, config)?),
            None => MailTransport::Outbox(config.data_dir.join("outbox")),
        };
        Ok(Self { from, way })
    }

    /// Returns the installation's own mailbox.
    pub(crate) fn from(&self) -> &Mailbox {
        &self.from
    }

    /// Sends a message, or writes it to the outbox.
    pub(crate) async fn send(&self, id: &JobId, message: &Message) -> Result<(), MailError> {
        match &self.way {
            MailTransport::Server(server) => server.send(message).await,
            MailTransport::Outbox(folder) => {
                let (folder, name) = (folder.clone(), format!("{id}.eml"));
                let bytes = message.formatted();
                let put = tokio::task::spawn_blocking(move || put(&folder, &name, &bytes));
                Ok(put.await.map_err(std::io::Error::other)??)
            }
        }
    }

    /// Describes where mails go, for the operator.
    pub(crate) fn describe(&self) -> String {
        match &self.way {
            MailTransport::Server(server) => format!("mails go to {server}"),
            MailTransport::Outbox(_) => "no mail server: mails are files in the outbox".to_owned(),
        }
    }

    /// Connects to the mail server and authenticates, without sending a mail.
    pub(crate) async fn check(&self) -> Result<String, String> {
        if let MailTransport::Server(server) = &self.way {
            let greeted = server.check().await;
            greeted.map_err(|error| format!("{server}: {error}"))?;
        }
        Ok(self.describe())
    }
}

/// Writes a file atomically, readable by the owner only. A repeated mail replaces its file.
fn put(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    // Synced before the rename, or a crash could leave an empty mail under the final name.
    file.as_file().sync_all()?;
    file.persist(folder.join(name))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_outbox_has_one_private_file_for_each_mail() {
        let folder = crate::test_folder();
        let outbox = folder.path().join("outbox");
        put(&outbox, "a.eml", b"first").unwrap();
        put(&outbox, "a.eml", b"again").unwrap();
        let files: Vec<_> = std::fs::read_dir(&outbox)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(files, ["a.eml"]);
        let file = outbox.join("a.eml");
        assert_eq!(std::fs::read(&file).unwrap(), b"again");
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_sender_that_is_not_a_mailbox_is_refused() {
        let config = Config {
            mail_from: "nobody".into(),
            ..Config::default()
        };
        let error = MailSender::new(&config).err().unwrap().to_string();
        assert!(error.contains("mail_from"), "{error}");
    }
}
