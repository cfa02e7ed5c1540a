//! Languages of pages and mails, and the choice among them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Language of texts for people.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("examples" = ["en", "es-MX"]))]
pub enum Locale {
    /// English.
    #[default]
    En,
    /// Spanish.
    Es,
    /// French.
    Fr,
    /// German.
    De,
    /// Portuguese.
    Pt,
    /// Chinese in simplified characters.
    ZhHans,
    /// Arabic, written from right to left.
    Ar,
    /// English with accents on every translated letter, which shows texts that are not translated.
    /// Browsers and senders cannot choose it.
    Accented,
}

/// Text for people, written in the reader's language when a page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Text with this key in the files of texts.
    Text(&'static str),
    /// Text that names a number.
    Count(&'static str, usize),
    /// Text that names a limit as it is written, such as an amount or a date.
    Limit(&'static str, String),
    /// Words of the author of a document.
    Written(String),
}

impl Message {
    /// Returns a message without a number.
    pub const fn new(key: &'static str) -> Self {
        Self::Text(key)
    }

    /// Returns a message that names a number.
    pub const fn with_limit(key: &'static str, limit: usize) -> Self {
        Self::Count(key, limit)
    }
}

impl Locale {
    /// Every language that people can choose.
    pub const ALL: [Self; 7] = [
        Self::En,
        Self::Es,
        Self::Fr,
        Self::De,
        Self::Pt,
        Self::ZhHans,
        Self::Ar,
    ];

    /// Returns the language tag (BCP 47).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Es => "es",
            Self::Fr => "fr",
            Self::De => "de",
            Self::Pt => "pt",
            Self::ZhHans => "zh-Hans",
            Self::Ar => "ar",
            Self::Accented => "en-XA",
        }
    }

    /// Returns the name of the language in the language itself.
    pub fn own_name(self) -> &'static str {
        match self {
            Self::En => "English",
            Self::Es => "Español",
            Self::Fr => "Français",
            Self::De => "Deutsch",
            Self::Pt => "Português",
            Self::ZhHans => "简体中文",
            Self::Ar => "العربية",
            Self::Accented => "Éñĝļîšĥ",
        }
    }

    /// Returns the direction of writing, as in the `dir` attribute of HTML.
    pub fn direction(self) -> &'static str {
        match self {
            Self::Ar => "rtl",
            _ => "ltr",
        }
    }

    /// Returns the language for a tag such as `es-MX`; none for a malformed tag or a language
    /// without texts.
    pub fn of_tag(tag: &str) -> Option<Self> {
        let mut subtags = tag.split('-');
        let language = subtags.next()?.to_ascii_lowercase();
        let fits = |subtag: &str| {
            (1..=8).contains(&subtag.len())
                && subtag.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        if !subtags.all(fits) {
            return None;
        }

        // Only the language counts. A signer with `es-MX` reads Spanish better than English.
        let is_language = |locale: &Self| locale.as_str().split('-').next() == Some(&language);
        Self::ALL.into_iter().find(is_language)
    }

    /// Returns the language that a browser prefers (`Accept-Language`, RFC 9110, 12.5.4); none if it
    /// names no language with texts.
    pub fn accepted(header: &str) -> Option<Self> {
        let mut best: Option<(Self, f32)> = None;
        // Real browsers send a handful; the rest of a longer list is ignored.
        for range in header.split(',').take(20) {
            let (tag, parameter) = range.split_once(';').unwrap_or((range, "q=1"));
            let quality = parameter.trim().strip_prefix("q=");
            let quality = quality.and_then(|quality| quality.trim().parse().ok());
            let (Some(locale), Some(quality)) = (Self::of_tag(tag.trim()), quality) else {
                continue;
            };

            // The first of equals wins, and `q=0` refuses a language (RFC 9110, 12.4.2).
            if quality > best.map_or(0.0, |(_, quality)| quality) {
                best = Some((locale, quality));
            }
        }

        best.map(|(locale, _)| locale)
    }

    /// Returns the language of a signer: the sender's choice, else the browser's, else the
    /// organization's.
    pub fn chosen(signer: Option<Self>, browser: Option<&str>, organization: Self) -> Self {
        signer
            .or_else(|| browser.and_then(Self::accepted))
            .unwrap_or(organization)
    }

    /// Returns the tags of all languages, for messages.
    pub fn known() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }

    /// Returns the language of a stored tag.
    pub fn parse(tag: &str) -> Option<Self> {
        match tag {
            "en-XA" => Some(Self::Accented),
            tag => Self::of_tag(tag),
        }
    }
}

impl TryFrom<String> for Locale {
    type Error = String;

    fn try_from(tag: String) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{tag} is no language with texts; use one of {}",
                Self::known()
            )
        };
        Self::parse(&tag).ok_or_else(wrong)
    }
}

impl From<Locale> for String {
    fn from(locale: Locale) -> Self {
        locale.as_str().to_owned()
    }
}

/// Consent to signing electronically, in an organization's own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsentText {
    /// Version of at most 500 characters, which the ledger names with each signature.
    pub version: String,
    /// Sentence beside the checkbox. The page adds the confirmation that the document could be read.
    pub statement: String,
    /// Disclosure about electronic records, in paragraphs that empty lines separate. It stands above the
    /// document.
    pub disclosure: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_falls_back_to_its_language() {
        for (tag, expected) in [
            ("es", Some(Locale::Es)),
            ("es-MX", Some(Locale::Es)),
            ("PT-br", Some(Locale::Pt)),
            ("zh", Some(Locale::ZhHans)),
            ("zh-Hans-CN", Some(Locale::ZhHans)),
            ("ar-EG-u-nu-arab", Some(Locale::Ar)),
            ("it", None),
            ("", None),
            ("es_MX", None),
            ("es-", None),
            ("es-toolongsubtag", None),
            ("en-XA", Some(Locale::En)),
        ] {
            assert_eq!(Locale::of_tag(tag), expected, "{tag}");
        }
    }

    #[test]
    fn the_browsers_first_language_with_texts_wins() {
        for (header, expected) in [
            ("fr-CA,fr;q=0.9,en;q=0.8", Some(Locale::Fr)),
            ("it, de;q=0.5, es;q=0.7", Some(Locale::Es)),
            ("de;q=0, en;q=0.1", Some(Locale::En)),
            ("de ; q=0.4 , ar;q=x", Some(Locale::De)),
            ("*", None),
            ("it,ja", None),
            ("", None),
        ] {
            assert_eq!(Locale::accepted(header), expected, "{header}");
        }
    }

    #[test]
    fn the_senders_choice_comes_before_browser_and_organization() {
        let chosen = |signer, browser| Locale::chosen(signer, browser, Locale::Pt);
        assert_eq!(chosen(Some(Locale::Ar), Some("de")), Locale::Ar);
        assert_eq!(chosen(None, Some("de")), Locale::De);
        assert_eq!(chosen(None, Some("it")), Locale::Pt);
        assert_eq!(chosen(None, None), Locale::Pt);
    }

    #[test]
    fn stored_languages_are_read_back() {
        for locale in Locale::ALL.into_iter().chain([Locale::Accented]) {
            assert_eq!(Locale::parse(locale.as_str()), Some(locale));
        }
        let wrong = Locale::try_from("tlh".to_owned()).unwrap_err();
        assert!(wrong.contains("en, es, fr, de, pt, zh-Hans, ar"), "{wrong}");
    }
}
