//! The way out: a mail server, or files in the outbox.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use lettre::Message;
use lettre::message::Mailbox;

use super::MailError;
use super::smtp::Smtp;
use crate::config::{Config, ConfigError};
use crate::domain::id::JobId;

/// Takes messages; made once.
pub(crate) struct Mailer {
    from: Mailbox,
    way: Way,
}

enum Way {
    Server(Smtp),
    Outbox(PathBuf),
}

impl Mailer {
    /// As the settings say. An error names its setting and no secret.
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        let from = config.mail_from.parse().map_err(|_| ConfigError::Refused {
            key: "mail_from".into(),
            why: format!("{} is no mailbox like Name <name@host>", config.mail_from),
        })?;
        let way = match &config.smtp_url {
            Some(url) => Way::Server(Smtp::new(url, config)?),
            None => Way::Outbox(config.data_dir.join("outbox")),
        };
        Ok(Self { from, way })
    }

    /// The installation's own mailbox.
    pub(crate) fn from(&self) -> &Mailbox {
        &self.from
    }

    /// Hands a message over.
    pub(crate) async fn send(&self, id: &JobId, message: &Message) -> Result<(), MailError> {
        match &self.way {
            Way::Server(server) => server.send(message).await,
            Way::Outbox(folder) => {
                let (folder, name) = (folder.clone(), format!("{id}.eml"));
                let bytes = message.formatted();
                let put = tokio::task::spawn_blocking(move || put(&folder, &name, &bytes));
                Ok(put.await.map_err(std::io::Error::other)??)
            }
        }
    }

    /// Which way it is.
    pub(crate) fn describe(&self) -> String {
        match &self.way {
            Way::Server(server) => format!("mails go to {server}"),
            Way::Outbox(_) => "no mail server: mails are files in the outbox".to_owned(),
        }
    }

    /// Speaks with the mail server, as far as being let in.
    pub(crate) async fn check(&self) -> Result<String, String> {
        if let Way::Server(server) = &self.way {
            let greeted = server.check().await;
            greeted.map_err(|error| format!("{server}: {error}"))?;
        }
        Ok(self.describe())
    }
}

/// Whole or not at all, for the owner only; a repeat takes its own place.
fn put(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(folder.join(name))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_outbox_holds_one_file_for_a_mail_and_shows_it_to_its_owner_only() {
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
    fn a_sender_that_is_no_mailbox_is_refused() {
        let config = Config {
            mail_from: "nobody".into(),
            ..Config::default()
        };
        let error = Mailer::new(&config).err().unwrap().to_string();
        assert!(error.contains("mail_from"), "{error}");
    }
}
