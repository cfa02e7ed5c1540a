//! Renders a letter as a message with headers and parts (RFC 5322, RFC 2045).

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use lettre::address::Envelope;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment, Mailbox, MultiPart, SinglePart};
use lettre::{Address, Message};

use super::MailError;
use super::layout::{self, MailBranding};
use super::letters::MailContent;
use super::line::{file_name, short_line};
use holdfast_domain::brand::BrandLogo;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::FileType;
use holdfast_domain::id::JobId;

/// Maximum length of a subject or name in a header, in characters.
const HEADER_TEXT: usize = 200;

/// Input of a message.
pub struct MessageDraft<'a> {
    /// Id of the job; a repeated attempt gets the same `Message-ID`.
    pub id: &'a JobId,
    /// The installation's own mailbox.
    pub from: &'a Mailbox,
    /// E-mail address.
    pub to: &'a str,
    /// Sender of the SMTP envelope, which gets the mail if it is returned; `None` for `from`.
    pub return_path: Option<Address>,
    /// Address for replies.
    pub reply_to: Option<&'a str>,
    pub letter: &'a MailContent,
    pub look: &'a MailBranding,
    pub attachments: Vec<PdfAttachment>,
    pub at: Timestamp,
}

/// An attached document.
pub struct PdfAttachment {
    pub name: String,
    pub bytes: Bytes,
}

impl MessageDraft<'_> {
    pub fn message(self) -> Result<Message, MailError> {
        // The organization's name with the installation's address, since only its
        // own domain can vouch for the mail.
        let from = Mailbox::new(display_name(&self.look.sender), self.from.email.clone());
        let name = self.letter.to.as_deref().and_then(display_name);
        let to = Mailbox::new(name, self.to.trim().parse()?);
        let return_path = self.return_path;
        let domain = self.from.email.domain();
        let mut builder = Message::builder()
            .from(from)
            .to(to.clone())
            .subject(short_line(&self.letter.subject, HEADER_TEXT))
            .date(system_time(self.at))
            // Derived from the job, so that mail clients can drop a duplicate after a crash.
            .message_id(Some(format!("<{}@{domain}>", self.id)))
            .raw_header(automatic());
        if return_path.is_some() {
            builder = builder.envelope(Envelope::new(return_path, vec![to.email])?);
        }

        // The user who created the envelope may have an invalid address.
        let reply_to = self
            .reply_to
            .and_then(|text| text.trim().parse::<Address>().ok());
        if let Some(address) = reply_to {
            builder = builder.reply_to(address.into());
        }

        let words = words(self.letter, self.look, domain)?;
        if self.attachments.is_empty() {
            return Ok(builder.multipart(words)?);
        }

        let mut parts = MultiPart::mixed().multipart(words);
        for pdf in self.attachments {
            let file = Attachment::new(file_name(&pdf.name)).body(
                Vec::from(pdf.bytes),
                ContentType::parse(FileType::Pdf.as_str())?,
            );
            parts = parts.singlepart(file);
        }

        Ok(builder.multipart(parts)?)
    }
}

/// Builds the text and HTML alternatives, with the logo.
fn words(letter: &MailContent, look: &MailBranding, domain: &str) -> Result<MultiPart, MailError> {
    let text = SinglePart::plain(layout::text(letter, look));
    let alternative = MultiPart::alternative().singlepart(text);
    let Some(logo) = &look.logo else {
        let page = layout::html(letter, look, None);
        return Ok(alternative.singlepart(SinglePart::html(page)));
    };

    let content_id = format!("logo@{domain}");
    let page = layout::html(letter, look, Some(&format!("cid:{content_id}")));
    let related = MultiPart::related()
        .singlepart(SinglePart::html(page))
        .singlepart(picture(logo, content_id)?);
    Ok(alternative.multipart(related))
}

fn picture(logo: &BrandLogo, content_id: String) -> Result<SinglePart, MailError> {
    let name = match logo.file_type {
        FileType::Jpeg => "logo.jpg",
        _ => "logo.png",
    };
    let content_type = ContentType::parse(logo.file_type.as_str())?;
    let inline = Attachment::new_inline_with_name(content_id, name.to_owned());
    Ok(inline.body(logo.bytes.clone(), content_type))
}

/// Suppresses automatic replies such as vacation notices (RFC 3834).
fn automatic() -> HeaderValue {
    let name = HeaderName::new_from_ascii_str("Auto-Submitted");
    HeaderValue::new(name, "auto-generated".to_owned())
}

fn system_time(at: Timestamp) -> SystemTime {
    let millis = u64::try_from(at.as_millis()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

/// Returns a name for a header; none if nothing printable is left.
fn display_name(name: &str) -> Option<String> {
    Some(short_line(name, HEADER_TEXT)).filter(|name| !name.is_empty())
}
