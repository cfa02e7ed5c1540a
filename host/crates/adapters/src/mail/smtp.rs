//! Connection to the mail server.
//!
//! Connections are pooled here and not in lettre's own pool, which has no timeout for responses and
//! would reuse a connection after a mail was abandoned in the middle.

use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use lettre::Message;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, Certificate, Tls, TlsParameters, TlsParametersBuilder,
};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Category;
use lettre::transport::smtp::{self, SMTP_PORT, SUBMISSION_PORT, SUBMISSIONS_PORT};
use tokio::time::Instant;
use url::Url;

use super::MailError;
use holdfast_base::config::{Config, ConfigError, SecretText};

/// Timeout of one mail, from the connection to the server's last response.
const MAIL_PATIENCE: Duration = Duration::from_secs(60);
/// Timeout of connecting to each of the server's addresses.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Timeout of a connection test.
const CHECK_PATIENCE: Duration = Duration::from_secs(15);
/// Number of idle connections, and their lifetime: shorter than any server's.
const KEPT: usize = 4;
const KEPT_FOR: Duration = Duration::from_secs(30);

/// A mail server.
pub(super) struct SmtpServer {
    host: String,
    port: u16,
    tls: Tls,
    /// Name for the EHLO command.
    name: ClientId,
    credentials: Option<Credentials>,
    kept: Mutex<Vec<IdleConnection>>,
}

/// Idle connection.
struct IdleConnection {
    connection: AsyncSmtpConnection,
    since: Instant,
}

/// Use of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SmtpEncryption {
    /// From the first byte.
    Implicit,
    /// With STARTTLS, before anything else is sent.
    Required,
    /// With STARTTLS, if the server offers it.
    Opportunistic,
    Never,
}

impl SmtpServer {
    pub(super) fn new(url: &SecretText, config: &Config) -> Result<Self, ConfigError> {
        let url = Url::parse(url.reveal()).map_err(|error| refused(error.to_string()))?;
        let encryption = encryption(&url).ok_or_else(|| {
            refused("write it as smtps://host, or as smtp://host with ?tls=required, ?tls=opportunistic or nothing behind")
        })?;
        let host = url.host_str().unwrap_or_default();

        // An IPv6 literal is bracketed in URLs, but not for the TLS and TCP layers.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(refused("names no host"));
        }

        let credentials = credentials(&url)?;
        let hidden = matches!(
            encryption,
            SmtpEncryption::Implicit | SmtpEncryption::Required
        );

        // Opportunistic TLS can be stripped by an attacker, so it must not protect a password.
        if credentials.is_some() && !hidden {
            return Err(refused("a password needs smtps:// or ?tls=required"));
        }

        let tls = TlsParameters::builder(host.to_owned());
        let tls = trusting(tls, config.smtp_ca_file.as_deref())?;
        let tls = tls
            .build_rustls()
            .map_err(|error| refused(error.to_string()))?;
        let (port, tls) = match encryption {
            SmtpEncryption::Implicit => (SUBMISSIONS_PORT, Tls::Wrapper(tls)),
            SmtpEncryption::Required => (SUBMISSION_PORT, Tls::Required(tls)),
            SmtpEncryption::Opportunistic => (SUBMISSION_PORT, Tls::Opportunistic(tls)),
            SmtpEncryption::Never => (SMTP_PORT, Tls::None),
        };

        Ok(Self {
            host: host.to_owned(),
            port: url.port().unwrap_or(port),
            tls,
            name: own_name(config),
            credentials,
            kept: Mutex::new(Vec::new()),
        })
    }

    /// Sends a message. A connection with an error or a timeout is not reused.
    pub(super) async fn send(&self, message: &Message) -> Result<(), MailError> {
        let bytes = message.formatted();
        // The limit below covers all of it, because the library waits for an answer without one.
        let sent = async {
            let mut connection = match self.take().await {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            connection.send(message.envelope(), &bytes).await?;

            // Returned to the pool only after success; on any error or timeout it is dropped.
            self.keep(connection);
            Ok::<_, smtp::Error>(())
        };

        let sent = tokio::time::timeout(MAIL_PATIENCE, sent).await;
        Ok(sent.map_err(|_| MailError::Late(MAIL_PATIENCE))??)
    }

    /// Connects and authenticates.
    pub(super) async fn check(&self) -> Result<(), MailError> {
        let greeted = async {
            let mut connection = self.connect().await?;
            connection.quit().await?;
            Ok::<_, smtp::Error>(())
        };
        let greeted = tokio::time::timeout(CHECK_PATIENCE, greeted).await;
        Ok(greeted.map_err(|_| MailError::Late(CHECK_PATIENCE))??)
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, smtp::Error> {
        let name = &self.name;
        let implicit = match &self.tls {
            Tls::Wrapper(tls) => Some(tls.clone()),
            _ => None,
        };
        let server = (self.host.as_str(), self.port);
        let patience = Some(CONNECT_PATIENCE);

        let mut connection =
            AsyncSmtpConnection::connect_tokio1(server, patience, name, implicit, None).await?;
        match &self.tls {
            Tls::Required(tls) => connection.starttls(tls.clone(), name).await?,
            Tls::Opportunistic(tls) if connection.can_starttls() => {
                connection.starttls(tls.clone(), name).await?;
            }
            _ => {}
        }

        // After STARTTLS, so the password never crosses the network in the clear.
        if let Some(credentials) = &self.credentials {
            connection.auth(DEFAULT_MECHANISMS, credentials).await?;
        }

        Ok(connection)
    }

    /// Returns an idle connection that still answers.
    async fn take(&self) -> Option<AsyncSmtpConnection> {
        loop {
            // The lock is released before the connection is tested, which waits for the server.
            let mut kept = self.kept().pop()?;
            if kept.since.elapsed() < KEPT_FOR && kept.connection.test_connected().await {
                return Some(kept.connection);
            }
        }
    }

    fn keep(&self, connection: AsyncSmtpConnection) {
        let mut kept = self.kept();
        if kept.len() < KEPT {
            kept.push(IdleConnection {
                connection,
                since: Instant::now(),
            });
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<IdleConnection>> {
        self.kept
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Formats the server without its credentials.
impl fmt::Display for SmtpServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = match self.tls {
            Tls::Wrapper(_) => "TLS",
            Tls::Required(_) => "STARTTLS",
            Tls::Opportunistic(_) => "STARTTLS when offered",
            Tls::None => "no TLS",
        };
        write!(formatter, "{}:{} with {tls}", self.host, self.port)
    }
}

/// Returns whether the server rejected the credentials (codes 530 to 538). The operator can fix
/// that, so the mail is retried.
pub(super) fn is_about_credentials(error: &smtp::Error) -> bool {
    error
        .status()
        .is_some_and(|code| code.category == Category::Unspecified3)
}

fn encryption(url: &Url) -> Option<SmtpEncryption> {
    // Exact forms only: a mistyped parameter must not turn encryption off.
    match (url.scheme(), url.query()) {
        ("smtps", None) => Some(SmtpEncryption::Implicit),
        ("smtp", Some("tls=required")) => Some(SmtpEncryption::Required),
        ("smtp", Some("tls=opportunistic")) => Some(SmtpEncryption::Opportunistic),
        ("smtp", None) => Some(SmtpEncryption::Never),
        _ => None,
    }
}

fn credentials(url: &Url) -> Result<Option<Credentials>, ConfigError> {
    let plain = |text: &str| {
        let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
        decoded.map(|text| text.into_owned())
    };

    let read = || refused("user and password are percent-encoded UTF-8");
    match url.password() {
        None if url.username().is_empty() => Ok(None),
        None => Err(refused("names a user and no password")),
        Some(password) => {
            let user = plain(url.username()).map_err(|_| read())?;
            let password = plain(password).map_err(|_| read())?;
            Ok(Some(Credentials::new(user, password)))
        }
    }
}

/// Returns the domain of the public URL, if there is one.
fn own_name(config: &Config) -> ClientId {
    // Many servers distrust an EHLO name that does not resolve, such as that of a container.
    let domain = config.public_url.as_ref().and_then(Url::domain);
    match domain {
        Some(domain) => ClientId::Domain(domain.to_owned()),
        None => ClientId::default(),
    }
}

/// Adds the file's certificate authorities to the default trust roots.
fn trusting(
    tls: TlsParametersBuilder,
    authorities: Option<&Path>,
) -> Result<TlsParametersBuilder, ConfigError> {
    let Some(file) = authorities else {
        return Ok(tls);
    };

    let refused = |why: String| ConfigError::Refused {
        key: "smtp_ca_file".into(),
        why: format!("{}: {why}", file.display()),
    };
    let pem = std::fs::read(file).map_err(|error| refused(error.to_string()))?;
    let certificate = Certificate::from_pem(&pem).map_err(|error| refused(error.to_string()))?;

    Ok(tls.add_root_certificate(certificate))
}

fn refused(why: impl Into<String>) -> ConfigError {
    ConfigError::Refused {
        key: "smtp_url".into(),
        why: why.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> Result<SmtpServer, String> {
        SmtpServer::new(&SecretText::new(url), &Config::default())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_mail_url_sets_host_port_and_encryption() {
        for (url, shown) in [
            ("smtps://mail.example", "mail.example:465 with TLS"),
            (
                "smtps://ann:s3cret@mail.example:4465",
                "mail.example:4465 with TLS",
            ),
            (
                "smtp://mail.example?tls=required",
                "mail.example:587 with STARTTLS",
            ),
            (
                "smtp://mail.example?tls=opportunistic",
                "mail.example:587 with STARTTLS when offered",
            ),
            ("smtp://[::1]:2525", "::1:2525 with no TLS"),
        ] {
            assert_eq!(server(url).unwrap().to_string(), shown, "{url}");
        }
    }

    #[test]
    fn an_invalid_mail_url_is_refused_without_showing_its_password() {
        for (url, why) in [
            ("https://ann:s3cret@mail.example", "write it as smtps://"),
            (
                "smtp://ann:s3cret@mail.example?tls=perhaps",
                "write it as smtps://",
            ),
            (
                "smtps://ann:s3cret@mail.example?tls=none",
                "write it as smtps://",
            ),
            ("smtp://ann:s3cret@mail.example", "a password needs"),
            (
                "smtp://ann:s3cret@mail.example?tls=opportunistic",
                "a password needs",
            ),
            ("smtps://ann:s3cret%ff@mail.example", "percent-encoded"),
            ("smtps://ann@mail.example", "no password"),
            ("ann:s3cret@mail.example", "write it as smtps://"),
            ("smtps://ann:s3cret@", "host"),
            ("mail.example", "relative URL"),
        ] {
            let error = server(url).err().unwrap();
            assert!(
                error.contains("smtp_url") && error.contains(why),
                "{url}: {error}"
            );
            assert!(!error.contains("s3cret"), "{url}: {error}");
        }
    }
}
