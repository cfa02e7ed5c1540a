//! A third-party mail server: aiosmtpd, run by `tests/mail_server.py`.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail_parser::{Message, MessageParser, MimeHeaders as _, PartType};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::authority::openssl;
use super::browser::screenshots;

const CONFIG: &str = "
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign
[server]
basicConstraints = critical,CA:false
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1
";

/// A running server and all mails it has accepted.
pub struct MailServer {
    pub port: u16,
    settings: Value,
    running: Option<Child>,
    folder: TempDir,
}

/// A received mail.
pub struct ReceivedMail {
    /// Sender of the SMTP envelope.
    pub sender: String,
    /// Recipients of the SMTP envelope.
    pub recipients: Vec<String>,
    pub encrypted: bool,
    /// Authenticated user.
    pub user: Option<String>,
    pub mail: Message<'static>,
}

impl MailServer {
    /// Starts a server. `tls` is `none`, `starttls` or `implicit`; `tests/mail_server.py` documents
    /// the settings in `more`.
    pub fn start(tls: &str, more: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("mails")).unwrap();
        make_certificates(folder.path());
        let mut settings = json!({
            "folder": folder.path().join("mails"),
            "port": 0,
            "tls": tls,
            "certificate": folder.path().join("server.pem"),
            "key": folder.path().join("server.key"),
        });
        for (name, value) in more.as_object().unwrap() {
            settings[name] = value.clone();
        }

        let mut server = Self {
            port: 0,
            settings,
            running: None,
            folder,
        };
        server.go_on();

        server
    }

    /// Stops listening.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Listens again on the same port.
    pub fn go_on(&mut self) {
        self.settings["port"] = self.port.into();
        let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../pdf-readers/bin/python");
        let mut child = Command::new(python)
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../tests/mail_server.py"
            ))
            .arg(self.settings.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("aiosmtpd is missing: run `tests/set-up test`");

        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let port = line.trim().parse();
        self.port = port.expect("aiosmtpd is missing: run `tests/set-up test`");

        self.running = Some(child);
    }

    /// Returns the path of the root of its certificate.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// Waits for `count` mails and returns them in order of arrival.
    pub async fn wait_for(&self, count: usize) -> Vec<ReceivedMail> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let received = self.received();
            if received.len() >= count {
                return received;
            }
            assert!(
                Instant::now() < deadline,
                "{} mails and not {count}",
                received.len()
            );

            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub fn received(&self) -> Vec<ReceivedMail> {
        let mails = self.folder.path().join("mails");
        let mut files: Vec<PathBuf> = std::fs::read_dir(mails)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.file_name()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .starts_with(char::is_numeric)
            })
            .filter(|path| path.extension().is_some_and(|extension| extension == "eml"))
            .collect();

        files.sort();
        files.iter().map(|file| read(file)).collect()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn read(file: &Path) -> ReceivedMail {
    let how = std::fs::read(file.with_extension("json")).unwrap();
    let how: Value = serde_json::from_slice(&how).unwrap();
    let raw = std::fs::read(file).unwrap();
    let recipients = how["to"].as_array().unwrap().iter();
    ReceivedMail {
        sender: how["from"].as_str().unwrap().to_owned(),
        recipients: recipients
            .map(|address| address.as_str().unwrap().to_owned())
            .collect(),
        encrypted: how["encrypted"].as_bool().unwrap(),
        user: how["user"].as_str().map(str::to_owned),
        mail: MessageParser::default().parse(&raw).unwrap().into_owned(),
    }
}

impl ReceivedMail {
    pub fn subject(&self) -> &str {
        self.mail.subject().unwrap()
    }

    /// Returns the only recipient.
    pub fn to(&self) -> &str {
        assert_eq!(self.recipients.len(), 1, "{:?}", self.recipients);
        &self.recipients[0]
    }

    pub fn text(&self) -> String {
        self.mail.body_text(0).expect("a text").into_owned()
    }

    /// Returns the HTML part that was sent. The parser would also derive one from the text.
    pub fn html(&self) -> &str {
        let part = self.mail.html_part(0).expect("a page");
        match &part.body {
            PartType::Html(page) => page,
            other => panic!("no page but {other:?}"),
        }
    }

    /// Returns the signing link, which has to be in both the text and the HTML part.
    pub fn link(&self) -> String {
        let text = self.text();
        let start = text.find("http://").expect("a link");
        let link: String = text[start..]
            .chars()
            .take_while(|character| !character.is_whitespace())
            .collect();
        assert!(self.html().contains(&format!("href=\"{link}\"")), "{link}");
        link
    }

    /// Returns the bytes of the part with this content id.
    pub fn inline(&self, content_id: &str) -> &[u8] {
        let mut parts = self.mail.parts.iter();
        let part = parts.find(|part| part.content_id() == Some(content_id));
        part.expect("a part with this id").contents()
    }

    /// Writes the HTML and the text beside the screenshots, for people who look at them, and returns the path of the
    /// HTML. A logo becomes part of it, because a browser has no other parts of the mail.
    pub fn write_beside_screenshots(&self, name: &str) -> PathBuf {
        let mut page = self.html().to_owned();
        if let Some((_, rest)) = self.html().split_once("src=\"cid:") {
            let content_id = rest.split('"').next().unwrap();
            let picture = STANDARD.encode(self.inline(content_id));
            let data = format!("data:image/png;base64,{picture}");
            page = page.replace(&format!("cid:{content_id}"), &data);
        }

        let folder = screenshots();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.txt")), self.text()).unwrap();
        let file = folder.join(format!("{name}.html"));
        std::fs::write(&file, page).unwrap();
        file
    }

    /// Returns the name and the bytes of each attachment.
    pub fn attachments(&self) -> Vec<(String, Vec<u8>)> {
        self.mail
            .parts
            .iter()
            .filter(|part| {
                part.content_disposition()
                    .is_some_and(|kind| kind.is_attachment())
            })
            .map(|part| {
                let name = part.attachment_name().unwrap().to_owned();
                (name, part.contents().to_vec())
            })
            .collect()
    }
}

fn make_certificates(at: &Path) {
    std::fs::write(at.join("openssl.cnf"), CONFIG).unwrap();
    let common = "req -x509 -nodes -days 3650 -config openssl.cnf \
                  -newkey ec -pkeyopt ec_paramgen_curve:P-256";
    let root = "-keyout root.key -out root.pem -extensions authority -subj /CN=ExampleMailRoot";

    let own = "-keyout server.key -out server.pem -extensions server -subj /CN=ExampleMail \
               -CA root.pem -CAkey root.key";
    for more in [root, own] {
        let arguments: Vec<&str> = common
            .split_whitespace()
            .chain(more.split_whitespace())
            .collect();
        openssl(at, &arguments);
    }
}
