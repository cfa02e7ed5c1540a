//! Disclosure about electronic records (15 U.S.C. §7001(c)(1)): the statements of an organization, and the
//! deliveries of a signer's pages before the consent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::jurisdiction::Jurisdiction;
use super::locale::Locale;
use super::organization::{LARGEST_AMOUNT, known_currency};

/// Longest contact detail, in characters.
const CONTACT: usize = 500;
/// Longest text of one language, in characters.
const TEXT: usize = 4_000;
/// Most jurisdictions with a wording of their own.
const JURISDICTIONS: usize = 100;

/// Key of the wording for jurisdictions that have none of their own.
pub const DEFAULT_WORDING: &str = "default";

/// Texts by language.
pub type TextsByLanguage = BTreeMap<Locale, String>;

/// Statements of an organization about electronic records. The built-in text is made of it; parts that are
/// not given are worded so that they state nothing on the organization's behalf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{
    "contact_email": "documents@crescent.example", "contact_phone": "+1 512 555 0142",
    "contact_address": "1 Main Street, Austin, TX 78701", "paper_fee": { "amount_cents": 0, "currency": "USD" },
    "scope": { "en": "Your consent covers this contract and all notices about it." },
    "withdrawal": { "en": "We then send later notices by post." }, "requirements": {},
}]))]
pub struct ConsumerDisclosure {
    /// E-mail address for withdrawals, changes of contact data and paper copies.
    #[schemars(length(max = 500))]
    pub contact_email: Option<String>,
    /// Telephone number for the same.
    #[schemars(length(max = 500))]
    pub contact_phone: Option<String>,
    /// Postal address in one line.
    #[schemars(length(max = 500))]
    pub contact_address: Option<String>,
    /// Fee of a paper copy; an amount of 0 makes it free of charge.
    pub paper_fee: Option<PaperFee>,
    /// What the consent covers, by language. Default: this transaction only.
    #[schemars(with = "BTreeMap<String, String>")]
    pub scope: TextsByLanguage,
    /// Conditions, consequences and fees of a withdrawal, by language.
    #[schemars(with = "BTreeMap<String, String>")]
    pub withdrawal: TextsByLanguage,
    /// Hardware and software that a signer needs to read and keep the records, by language.
    #[schemars(with = "BTreeMap<String, String>")]
    pub requirements: TextsByLanguage,
}

/// Fee of a paper copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperFee {
    /// Amount in minor units of the currency.
    #[schemars(range(max = 99_999_999))]
    pub amount_cents: u64,
    /// ISO 4217 code in upper case.
    pub currency: String,
}

impl ConsumerDisclosure {
    /// Returns the first member that cannot be used, and why.
    pub fn problem(&self) -> Option<String> {
        let contacts = [
            ("contact_email", &self.contact_email),
            ("contact_phone", &self.contact_phone),
            ("contact_address", &self.contact_address),
        ];
        for (name, contact) in contacts {
            let Some(contact) = contact else { continue };
            // A line break would let a contact look like text of the disclosure itself.
            let is_line = !contact.trim().is_empty() && !contact.chars().any(char::is_control);
            if !is_line || contact.chars().count() > CONTACT {
                return Some(format!("{name} is one line of 1 to {CONTACT} characters"));
            }
        }

        // This is no full check of addresses. It catches a name or a phone number in the wrong member.
        let email = self.contact_email.as_deref();
        if email.is_some_and(|email| !email.contains('@') || email.contains(' ')) {
            return Some("contact_email is no e-mail address".into());
        }

        // A consumer must learn of any fee for a paper copy, so the fee has to be readable
        // (15 U.S.C. §7001(c)(1)(B)(iv)).
        if let Some(fee) = &self.paper_fee {
            let code = &fee.currency;
            if known_currency(code).as_ref() != Some(code) {
                return Some(format!("paper_fee: {code} is no currency code of ISO 4217"));
            }
            if fee.amount_cents > LARGEST_AMOUNT {
                return Some(format!(
                    "paper_fee: amount_cents is at most {LARGEST_AMOUNT}"
                ));
            }
        }

        let texts = [
            ("scope", &self.scope),
            ("withdrawal", &self.withdrawal),
            ("requirements", &self.requirements),
        ];
        texts
            .into_iter()
            .find_map(|(name, texts)| problem_of_texts(name, texts))
    }
}

/// Returns why texts cannot be used.
fn problem_of_texts(name: &str, texts: &TextsByLanguage) -> Option<String> {
    let fits = |text: &String| !text.trim().is_empty() && text.chars().count() <= TEXT;
    let (locale, _) = texts.iter().find(|(_, text)| !fits(text))?;
    let language = locale.as_str();
    Some(format!(
        "{name}.{language} is a text of 1 to {TEXT} characters"
    ))
}

/// What a signer declares with the signature, by jurisdiction and language. Keys are jurisdictions such as
/// `US-DE`, countries such as `US`, and `default`.
pub type SignatureWording = BTreeMap<String, TextsByLanguage>;

/// Returns why a wording cannot be used.
pub fn problem_of_wording(wording: &SignatureWording) -> Option<String> {
    if wording.len() > JURISDICTIONS {
        return Some(format!("at most {JURISDICTIONS} jurisdictions"));
    }

    // A misspelled jurisdiction would never match a signer, and the default
    // wording would appear without a warning.
    let is_known = |key: &str| {
        key == DEFAULT_WORDING || key == "US" || Jurisdiction::try_from(key.to_owned()).is_ok()
    };
    let unknown = wording.keys().find(|key| !is_known(key));
    if let Some(key) = unknown {
        return Some(format!(
            "{key} is no jurisdiction; write a state as US-DE, a country as US, or {DEFAULT_WORDING}"
        ));
    }

    wording
        .iter()
        .find_map(|(key, texts)| problem_of_texts(key, texts))
}

/// Returns the wordings for a jurisdiction, the most specific first.
pub fn wordings_for<'a>(
    wording: &'a SignatureWording,
    jurisdiction: Option<&'a str>,
) -> impl Iterator<Item = &'a TextsByLanguage> {
    let country = jurisdiction.and_then(|code| code.split('-').next());
    let keys = [jurisdiction, country, Some(DEFAULT_WORDING)];
    keys.into_iter()
        .flatten()
        .filter_map(move |key| wording.get(key))
}

/// Deliveries of a signer's pages before the consent. The signer's browser got these files, and the signer
/// confirmed to have read them; whether a person looked at them is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DemonstratedAccess {
    /// Numbers of the pages that were delivered as pictures.
    pub pages_delivered: Vec<u32>,
    pub page_count: usize,
    pub first_page_at: Option<Timestamp>,
    pub last_page_at: Option<Timestamp>,
    /// Time at which the document was first delivered as PDF.
    pub pdf_delivered_at: Option<Timestamp>,
    /// Time at which the browser had reported every page as displayed; none without such reports of all pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_pages_displayed_at: Option<Timestamp>,
    /// Whether the sentence of the consent confirmed that the document could be opened and read.
    pub signer_confirmed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> TextsByLanguage {
        [(Locale::En, text.to_owned())].into()
    }

    #[test]
    fn the_most_specific_wording_comes_first() {
        let wording: SignatureWording = ["default", "US", "US-DE"]
            .map(|key| (key.to_owned(), text(key)))
            .into();
        let first = |jurisdiction| {
            let mut found = wordings_for(&wording, jurisdiction);
            found.next().map(|texts| texts[&Locale::En].clone())
        };
        assert_eq!(first(Some("US-DE")).unwrap(), "US-DE");
        assert_eq!(first(Some("US-TX")).unwrap(), "US");
        assert_eq!(first(Some("FR")).unwrap(), "default");
        assert_eq!(first(None).unwrap(), "default");
    }

    #[test]
    fn a_wording_belongs_to_a_known_jurisdiction() {
        let wording =
            |key: &str| -> SignatureWording { [(key.to_owned(), text("I sign."))].into() };
        for known in ["default", "US", "US-DE", "FR", "CA-ON"] {
            assert_eq!(problem_of_wording(&wording(known)), None, "{known}");
        }

        for unknown in ["Delaware", "US-XX", "us", ""] {
            assert!(problem_of_wording(&wording(unknown)).is_some(), "{unknown}");
        }

        let empty: SignatureWording = [("US".to_owned(), text(" "))].into();
        assert!(problem_of_wording(&empty).is_some());
    }

    #[test]
    fn a_disclosure_has_usable_parts() {
        assert_eq!(ConsumerDisclosure::default().problem(), None);
        let fee = |amount_cents, currency: &str| ConsumerDisclosure {
            paper_fee: Some(PaperFee {
                amount_cents,
                currency: currency.into(),
            }),
            ..ConsumerDisclosure::default()
        };
        assert_eq!(fee(0, "USD").problem(), None);

        let email = |address: &str| ConsumerDisclosure {
            contact_email: Some(address.into()),
            ..ConsumerDisclosure::default()
        };
        assert_eq!(email("documents@oak.example").problem(), None);

        let blank = ConsumerDisclosure {
            scope: text(""),
            ..ConsumerDisclosure::default()
        };
        let wrong = [
            fee(1, "usd"),
            fee(1, "XXX"),
            fee(LARGEST_AMOUNT + 1, "USD"),
            email("documents"),
            email("a@b\nBcc: c@d"),
            blank,
        ];

        for wrong in wrong {
            assert!(wrong.problem().is_some(), "{wrong:?}");
        }
    }
}
