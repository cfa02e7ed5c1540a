//! Wording of text messages. Each is short: a message longer than 160 characters costs several.

use super::line::short_line;
use crate::texts::Texts;
use holdfast_domain::envelope::SignerKind;

/// Maximum length of names of senders and documents, in characters.
const NAME_LENGTH: usize = 60;

/// What all text messages about an envelope name.
pub struct TextWording<'a> {
    pub texts: Texts,
    /// Display name of the sender.
    pub sender: &'a str,
    /// Name of the document.
    pub document: &'a str,
    /// Kind of the signer who gets the message.
    pub kind: SignerKind,
}

impl TextWording<'_> {
    /// Asks a signer to sign, or an approver to approve.
    pub fn invitation(&self, url: &str) -> String {
        let key = match self.kind {
            SignerKind::Approver => "text-approval",
            SignerKind::Signer | SignerKind::Witness => "text-invitation",
        };
        format!("{}\n{url}", self.about(key, ""))
    }

    /// Asks a signer again.
    pub fn reminder(&self, url: &str) -> String {
        format!("{}\n{url}", self.about("text-reminder", ""))
    }

    /// Gives a signer the code that opens the document. The last line binds it to the page's host, so
    /// that phones offer the code on that page only ("domain-bound codes" of the Web Incubator Group).
    pub fn access_code(&self, code: &str, signing_url: &str) -> String {
        let said = self.about("text-code", code);
        let url = url::Url::parse(signing_url).ok();
        // A code without the binding still works, so an address without a host is no failure.
        match url.as_ref().and_then(url::Url::host_str) {
            Some(host) => format!("{said}\n\n@{host} #{code}"),
            None => said,
        }
    }

    fn about(&self, key: &'static str, code: &str) -> String {
        let sender = short_line(self.sender, NAME_LENGTH);
        let document = short_line(self.document, NAME_LENGTH);
        let values = [
            ("sender", sender.as_str()),
            ("document", &document),
            ("code", code),
        ];
        self.texts.with(key, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::locale::Locale;

    fn wording(locale: Locale) -> TextWording<'static> {
        TextWording {
            texts: Texts::of(locale),
            sender: "Birch\nMotors",
            document: "Loan",
            kind: SignerKind::Signer,
        }
    }

    #[test]
    fn a_message_asks_for_what_its_reader_is_to_do() {
        let to = |kind| TextWording {
            kind,
            ..wording(Locale::En)
        };
        for (kind, asked) in [
            (SignerKind::Signer, "sign"),
            (SignerKind::Witness, "sign"),
            (SignerKind::Approver, "approve"),
        ] {
            let expected =
                format!("Birch Motors asks you to {asked} “Loan”:\nhttps://sign.example");
            assert_eq!(to(kind).invitation("https://sign.example"), expected);
            assert_eq!(
                to(kind).reminder("https://sign.example"),
                "Reminder: Birch Motors is waiting for you to do your part of “Loan”:\nhttps://sign.example"
            );
        }
    }

    #[test]
    fn a_code_is_bound_to_the_host_of_its_page() {
        let text = wording(Locale::En).access_code("123456", "https://sign.example:8443/x");
        assert!(text.starts_with("123456 is your code"), "{text}");
        assert!(text.ends_with("\n\n@sign.example #123456"), "{text}");
    }

    #[test]
    fn a_link_stands_on_a_line_of_its_own_in_every_language() {
        for locale in Locale::ALL {
            let text = wording(locale).invitation("https://sign.example/s/1");
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), 2, "{text}");
            assert_eq!(lines[1], "https://sign.example/s/1");
        }
    }
}
