//! Knowledge-based authentication (KBA): sessions, and the format of the data that a signer
//! enters. The entered data is never stored.

use super::clock::Timestamp;
use super::envelope::{Signer, words};
use super::id::{EnvelopeId, KbaId, OrgId};
use super::locale::Message;

words! {
    /// Status of a session. `ended`: the session broke off or expired without a result.
    /// `unavailable`: the provider has too little history of the person to build questions.
    KbaStatus {
        Open = "open",
        Ended = "ended",
        Passed = "passed",
        Failed = "failed",
        Unavailable = "unavailable",
    }
}

words! {
    /// Step of an open session. In `starting` and `answering` it waits for the provider, in
    /// the other steps for the signer.
    KbaStep {
        Starting = "starting",
        Code = "code",
        Questions = "questions",
        Answering = "answering",
    }
}

/// One attempt of a signer to verify their identity.
#[derive(Clone, Debug)]
pub struct KbaSession {
    pub id: KbaId,
    pub org: OrgId,
    pub envelope: EnvelopeId,
    /// Position of the signer in the signing order.
    pub position: i64,
    /// E-mail address of the signer when the session started.
    pub email: String,
    /// Provider instance that asks the questions.
    pub instance: String,
    pub status: KbaStatus,
    pub step: KbaStep,
    /// The provider's state and the questions, sealed for this session.
    pub sealed: Option<String>,
    pub provider_session: Option<String>,
    pub ip: Option<String>,
    /// Price in US cents.
    pub price_cents: i64,
    pub started_at: Timestamp,
    pub expires_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

impl KbaSession {
    /// Whether the session belongs to this signer with their present e-mail address.
    pub fn is_of(&self, signer: &Signer) -> bool {
        // A signer can be replaced in place: the new person must not inherit a passed session.
        self.position == signer.position && self.email.eq_ignore_ascii_case(&signer.email)
    }
}

/// HTML input attributes of an identity field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityEntry {
    /// `type` attribute of the input.
    pub kind: &'static str,
    pub autocomplete: Option<&'static str>,
    pub inputmode: Option<&'static str>,
    /// Key of the label's text; none for fields that only the provider knows.
    pub label: Option<&'static str>,
}

/// Returns the input attributes of a field that a provider declares (`holdfast:kba`,
/// `identity-field`).
pub fn entry(field: &str) -> IdentityEntry {
    // The tokens for `autocomplete` are those of the HTML standard, so a
    // browser can fill in the person's own data.
    let (kind, autocomplete, inputmode, label) = match field {
        "first_name" => (
            "text",
            Some("given-name"),
            None,
            Some("identity-first-name"),
        ),
        "last_name" => (
            "text",
            Some("family-name"),
            None,
            Some("identity-last-name"),
        ),
        "phone" => ("tel", Some("tel"), None, Some("identity-phone")),
        "date_of_birth" => ("date", Some("bday"), None, Some("identity-birth")),
        // A browser must not keep a part of a social security number.
        "ssn_last4" => ("text", Some("off"), Some("numeric"), Some("identity-ssn")),
        "line1" => ("text", Some("address-line1"), None, Some("identity-line1")),
        "line2" => ("text", Some("address-line2"), None, Some("identity-line2")),
        "city" => ("text", Some("address-level2"), None, Some("identity-city")),
        "state" => ("text", Some("address-level1"), None, Some("identity-state")),
        "zip" => (
            "text",
            Some("postal-code"),
            Some("numeric"),
            Some("identity-zip"),
        ),
        // A provider can declare fields of its own. They have no known
        // meaning, so browsers do not fill them in.
        _ => ("text", Some("off"), None, None),
    };

    IdentityEntry {
        kind,
        autocomplete,
        inputmode,
        label,
    }
}

/// Returns the last two digits of a telephone number: its owner recognizes them, and they tell others
/// little.
pub fn last_digits(phone: &str) -> &str {
    let start = phone.char_indices().rev().nth(1).map_or(0, |(at, _)| at);
    &phone[start..]
}

/// Normalizes an entered value to the format that providers accept.
///
/// # Errors
/// A message for the signer.
pub fn read(field: &str, text: &str, now: Timestamp) -> Result<String, Message> {
    let text = text.trim();
    let digits = || {
        text.chars()
            .filter(char::is_ascii_digit)
            .collect::<String>()
    };
    match field {
        "phone" => {
            let digits = digits();
            let plain = |one: char| one.is_ascii_digit() || " +-().".contains(one);
            match (text.starts_with('+'), digits.len()) {
                // Letters could stand for digits or for an extension. Dropping them
                // would make another person's number.
                _ if !text.chars().all(plain) => Err(Message::new("identity-phone-digits")),
                // E.164 allows 15 digits at most.
                (true, 8..=15) => Ok(format!("+{digits}")),
                // Ten digits without a country code are a number of the North American plan.
                (false, 10) => Ok(format!("+1{digits}")),
                (false, 11) if digits.starts_with('1') => Ok(format!("+{digits}")),
                _ => Err(Message::new("identity-phone-area")),
            }
        }
        "date_of_birth" => {
            let date: jiff::civil::Date = text
                .parse()
                .map_err(|_| Message::new("identity-enter-date"))?;
            // The year 1900 lies before the birth of any living person, so an earlier date is a typing error.
            let (oldest, today) = (jiff::civil::date(1900, 1, 1), now.date());
            if (oldest..today).contains(&date) {
                Ok(date.to_string())
            } else {
                Err(Message::new("identity-enter-birth"))
            }
        }
        "ssn_last4" => {
            if text.len() == 4 && digits().len() == 4 {
                Ok(text.to_owned())
            } else {
                Err(Message::new("identity-four-digits"))
            }
        }
        "zip" => {
            let digits = digits();
            let plain = text.chars().all(|one| one.is_ascii_digit() || one == '-');
            if plain && matches!(digits.len(), 5 | 9) {
                // Providers take five digits. The other four only name a delivery route.
                Ok(digits[..5].to_owned())
            } else {
                Err(Message::new("identity-five-digits"))
            }
        }
        "state" => {
            if text.len() == 2 && text.chars().all(|one| one.is_ascii_alphabetic()) {
                Ok(text.to_ascii_uppercase())
            } else {
                Err(Message::new("identity-two-letters"))
            }
        }
        _ if text.chars().count() > 100 => Err(Message::new("identity-hundred")),
        _ => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(field: &str, text: &str) -> Result<String, Message> {
        let now = Timestamp::parse("2026-11-22T12:00:00.000Z").unwrap();
        super::read(field, text, now)
    }

    #[test]
    fn identity_data_is_normalized_for_providers() {
        for (field, text, expected) in [
            ("phone", "(512) 555-0123", "+15125550123"),
            ("phone", "1 512 555 0123", "+15125550123"),
            ("phone", "+44 20 7946 0018", "+442079460018"),
            ("date_of_birth", "1980-02-29", "1980-02-29"),
            ("ssn_last4", " 0042 ", "0042"),
            ("zip", "78701-1234", "78701"),
            ("state", "tx", "TX"),
            ("first_name", " Kim ", "Kim"),
        ] {
            assert_eq!(read(field, text).as_deref(), Ok(expected), "{field} {text}");
        }
    }

    #[test]
    fn invalid_identity_data_is_refused_without_being_echoed() {
        for (field, text) in [
            ("phone", "555-0123"),
            ("phone", "call me"),
            ("phone", "512 555 012３"),
            ("date_of_birth", "1980-02-30"),
            ("date_of_birth", "2026-11-22"),
            ("date_of_birth", "1899-12-31"),
            ("date_of_birth", "29.02.1980"),
            ("ssn_last4", "123"),
            ("ssn_last4", "12a4"),
            ("zip", "7870"),
            ("zip", "ABCDE"),
            ("state", "Texas"),
            ("state", "T1"),
            ("line1", &"x".repeat(101)),
        ] {
            assert!(read(field, text).is_err(), "{field} {text}");
        }
    }
}
