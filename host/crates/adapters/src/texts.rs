//! Texts for people in their language: the messages of `host/locales`, dates and amounts.
//!
//! The files are in Fluent's format, which leaves plurals and the order of words to each language.
//! `docs/languages.md` describes how to add a text or a language.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use icu_calendar::Gregorian;
use icu_datetime::fieldsets::{E, T, YM, YMD};
use icu_datetime::input::{Date, Time};
use icu_datetime::{FixedCalendarDateTimeFormatter, NoCalendarFormatter};
use icu_decimal::DecimalFormatter;
use icu_decimal::input::Decimal;
use icu_locale_core::{Locale as DataLocale, locale};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use holdfast_domain::clock::Timestamp;
use holdfast_domain::dates::DateSettings;
use holdfast_domain::disclosure::{ConsumerDisclosure, TextsByLanguage, wordings_for};
use holdfast_domain::envelope::SignerKind;
use holdfast_domain::locale::{ConsentText, Locale, Message};
use holdfast_domain::organization::{OrgSettings, Organization, minor_digits};

/// Version of the wording of our own consent text in all languages. The version of a text adds a part that
/// changes with the organization's settings.
pub const CONSENT_VERSION: &str = "holdfast-2";

/// Texts in one language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    locale: Locale,
}

/// Consent text as a signer sees it.
pub struct ShownConsent {
    pub text: ConsentText,
    /// Language of the text, which differs from the page's if the organization has no own text in
    /// that.
    pub locale: Locale,
}

impl ShownConsent {
    /// Returns the whole text: the statement and the disclosure, separated by an empty line.
    pub fn body(&self) -> String {
        format!("{}\n\n{}", self.text.statement, self.text.disclosure)
    }

    /// Returns the SHA-256 of the whole text in UTF-8.
    pub fn sha256(&self) -> String {
        hex::encode(Sha256::digest(self.body()))
    }

    /// Returns the paragraphs of the disclosure.
    pub fn paragraphs(&self) -> impl Iterator<Item = &str> {
        let paragraphs = self.text.disclosure.split("\n\n").map(str::trim);
        paragraphs.filter(|paragraph| !paragraph.is_empty())
    }
}

type Bundle = FluentBundle<FluentResource>;

static BUNDLES: LazyLock<HashMap<Locale, Bundle>> = LazyLock::new(|| {
    let accented = [Locale::Accented];
    let locales = Locale::ALL.into_iter().chain(accented);
    locales.map(|locale| (locale, bundle(locale))).collect()
});

/// Returns the file of a language.
fn source(locale: Locale) -> &'static str {
    match locale {
        Locale::En | Locale::Accented => include_str!("../../../locales/en.ftl"),
        Locale::Es => include_str!("../../../locales/es.ftl"),
        Locale::Fr => include_str!("../../../locales/fr.ftl"),
        Locale::De => include_str!("../../../locales/de.ftl"),
        Locale::Pt => include_str!("../../../locales/pt.ftl"),
        Locale::ZhHans => include_str!("../../../locales/zh-Hans.ftl"),
        Locale::Ar => include_str!("../../../locales/ar.ftl"),
    }
}

fn bundle(locale: Locale) -> Bundle {
    // The tests parse every file, so that no message is missing here.
    let resource = match FluentResource::try_new(source(locale).to_owned()) {
        Ok(resource) | Err((resource, _)) => resource,
    };
    let tags = locale.as_str().parse().into_iter().collect();
    let mut bundle = FluentBundle::new_concurrent(tags);

    // Marks that keep a name of the other direction apart from the words around it.
    bundle.set_use_isolating(locale.direction() == "rtl");
    if locale == Locale::Accented {
        bundle.set_transform(Some(accented));
    }

    bundle.add_resource_overriding(resource);
    bundle
}

/// Returns a day as ICU has it; none outside its calendar.
fn gregorian(day: jiff::civil::Date) -> Option<Date<Gregorian>> {
    let part = |number: i8| u8::try_from(number).ok();
    Date::try_new_gregorian(day.year().into(), part(day.month())?, part(day.day())?).ok()
}

/// Puts an accent on every letter of English.
fn accented(text: &str) -> Cow<'_, str> {
    const PLAIN: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const ACCENTED: &str = "áƀçðéƒĝĥîĵķļɱñöþǫŕšţûṽŵẋýžÁƁÇÐÉƑĜĤÎĴĶĻṀÑÖÞǪŔŠŢÛṼŴẊÝŽ";

    let letter = |letter: char| {
        let place = PLAIN.chars().position(|plain| plain == letter);
        place
            .and_then(|place| ACCENTED.chars().nth(place))
            .unwrap_or(letter)
    };

    text.chars().map(letter).collect()
}

impl Texts {
    pub fn of(locale: Locale) -> Self {
        Self { locale }
    }

    pub fn locale(self) -> Locale {
        self.locale
    }

    /// Returns a text without variables.
    pub fn text(self, key: &'static str) -> String {
        self.with(key, [] as [(&str, &str); 0])
    }

    /// Returns a text with the values of its variables.
    pub fn with<'a, V: Into<FluentValue<'a>>>(
        self,
        key: &'static str,
        values: impl IntoIterator<Item = (&'a str, V)>,
    ) -> String {
        let values: FluentArgs<'a> = values.into_iter().collect();
        let mut errors = Vec::new();
        let text = self.formatted(key, Some(&values), &mut errors);

        if !errors.is_empty() {
            // The text is shown anyway: a page with a gap is better than none, and the log names the message.
            tracing::error!(
                key,
                locale = self.locale.as_str(),
                ?errors,
                "text has an error"
            );
        }

        text
    }

    /// Returns the text of a message.
    pub fn message(self, message: &Message) -> String {
        match message {
            Message::Text(key) => self.text(key),
            Message::Count(key, limit) => self.with(key, [("limit", *limit)]),
            Message::Limit(key, limit) => self.with(key, [("limit", limit.as_str())]),
            Message::Written(words) => words.clone(),
        }
    }

    /// Returns a text for a script, which replaces the variables, written as `{$name}`, itself.
    pub fn pattern(self, key: &str) -> String {
        // Fluent writes variables without a value in this way, and reports each.
        self.formatted(key, None, &mut Vec::new())
    }

    fn formatted(
        self,
        key: &str,
        values: Option<&FluentArgs<'_>>,
        errors: &mut Vec<fluent_bundle::FluentError>,
    ) -> String {
        let bundle = BUNDLES.get(&self.locale);
        let found = bundle.and_then(|bundle| Some((bundle, bundle.get_message(key)?.value()?)));
        let Some((bundle, pattern)) = found else {
            tracing::error!(key, locale = self.locale.as_str(), "text is missing");
            // The tests make sure that no text is missing. The key would show a developer which one is.
            return key.to_owned();
        };
        bundle.format_pattern(pattern, values, errors).into_owned()
    }

    /// Describes an instant in the organization's time zone, for example `25 November 2026, 16:30
    /// (Europe/Berlin)`.
    pub fn moment(self, dates: &DateSettings, at: Timestamp) -> String {
        self.written(dates, at, T::hm())
    }

    /// Like [`Texts::moment`], with seconds.
    pub fn exact_moment(self, dates: &DateSettings, at: Timestamp) -> String {
        self.written(dates, at, T::hms())
    }

    fn written(self, dates: &DateSettings, at: Timestamp, precision: T) -> String {
        let local = dates.local(at);
        // A date that ICU cannot write is still shown, in ISO form: no page fails because of it.
        self.date_and_time(local, precision).map_or_else(
            || local.to_string(),
            |(date, time)| {
                let zone = dates.time_zone.as_str();
                self.with(
                    "moment",
                    [("date", date.as_str()), ("time", &time), ("zone", zone)],
                )
            },
        )
    }

    /// Returns the name of a month with its year.
    pub fn month(self, of: jiff::civil::Date) -> String {
        let form = match self.locale {
            // ICU's data for the long form lack the digits.
            Locale::Pt => YM::medium(),
            _ => YM::long(),
        };
        let written = || {
            let months = FixedCalendarDateTimeFormatter::try_new((&self.data()).into(), form);
            Some(months.ok()?.format(&gregorian(of)?).to_string())
        };

        written().map_or_else(|| of.to_string(), |text| self.spelled(text))
    }

    /// Returns the short name of a weekday.
    pub fn weekday(self, of: jiff::civil::Date) -> String {
        let written = || {
            let days = FixedCalendarDateTimeFormatter::try_new((&self.data()).into(), E::short());
            Some(days.ok()?.format(&gregorian(of)?).to_string())
        };
        written().map_or_else(|| of.to_string(), |text| self.spelled(text))
    }

    /// Returns a text of ICU in the language of the pages.
    fn spelled(self, text: String) -> String {
        match self.locale {
            // Fluent transforms messages only, and these texts come from ICU.
            Locale::Accented => accented(&text).into_owned(),
            _ => text,
        }
    }

    /// Returns nothing only for dates outside the calendar of ICU.
    fn date_and_time(self, local: jiff::civil::DateTime, precision: T) -> Option<(String, String)> {
        let part = |number: i8| u8::try_from(number).ok();
        let date = gregorian(local.date())?;
        let (hour, minute) = (part(local.hour())?, part(local.minute())?);
        let time = Time::try_new(hour, minute, part(local.second())?, 0).ok()?;
        let data = self.data();
        let days = FixedCalendarDateTimeFormatter::try_new((&data).into(), YMD::long()).ok()?;

        let times = NoCalendarFormatter::try_new((&data).into(), precision).ok()?;
        Some((
            self.spelled(days.format(&date).to_string()),
            self.spelled(times.format(&time).to_string()),
        ))
    }

    /// Writes an amount of money, for example `USD 49.00`.
    pub fn amount(self, minor_units: u64, currency: &str) -> String {
        let mut number = Decimal::from(minor_units);
        // Decimal arithmetic: a float would show some amounts a cent off.
        number.multiply_pow10(-i16::from(minor_digits(currency)));
        let formatter = DecimalFormatter::try_new((&self.data()).into(), Default::default());
        let number = formatter.map_or_else(
            |_| number.to_string(),
            |formatter| formatter.format(&number).to_string(),
        );
        self.with("amount", [("currency", currency), ("number", &number)])
    }

    /// Returns the locale of dates and numbers. English ones are unambiguous outside the
    /// United States, too. Arabic ones have the digits of the amounts in contracts.
    fn data(self) -> DataLocale {
        match self.locale {
            Locale::En | Locale::Accented => locale!("en-GB"),
            Locale::Es => locale!("es"),
            Locale::Fr => locale!("fr"),
            Locale::De => locale!("de"),
            Locale::Pt => locale!("pt"),
            Locale::ZhHans => locale!("zh-Hans"),
            Locale::Ar => "ar-u-nu-latn".parse().unwrap_or(locale!("ar")),
        }
    }

    /// Returns the consent text for a signer: the organization's in the signer's language, else in
    /// the organization's, else ours. `jurisdiction` is that of the document, if it states one; ours names the way out
    /// that the form offers.
    pub fn consent(
        self,
        organization: &Organization,
        kind: SignerKind,
        jurisdiction: Option<&str>,
        way_out: WayOut,
    ) -> ShownConsent {
        let settings = &organization.settings;
        // The organization's own words come before ours, even in another language: its counsel answers for
        // them.
        let own = |locale: Locale| Some((locale, settings.consent.get(&locale)?.clone()));
        let (locale, text) = own(self.locale)
            .or_else(|| own(settings.language))
            .unwrap_or_else(|| {
                let text = ConsentText {
                    version: version_of_ours(organization, way_out),
                    statement: self.statement(settings, kind, jurisdiction),
                    disclosure: self.disclosure(organization, way_out),
                };
                (self.locale, text)
            });

        // Part of every statement: without it, the tick would confirm no access to the document.
        let texts = Self::of(locale);
        let confirmed = texts.text("consent-access");
        let statement = texts.sentences(&[text.statement.trim(), &confirmed]);
        ShownConsent {
            text: ConsentText { statement, ..text },
            locale,
        }
    }

    /// Returns our sentences beside the checkbox, with what the signature is meant to be.
    fn statement(
        self,
        settings: &OrgSettings,
        kind: SignerKind,
        jurisdiction: Option<&str>,
    ) -> String {
        let (consent, intent) = match kind {
            // An approver signs nothing, so the sentence must not speak of a signature.
            SignerKind::Approver => {
                let intent = self.text("consent-approval-intent");
                (self.text("consent-approval"), intent)
            }
            SignerKind::Signer | SignerKind::Witness => {
                // Our words promise no legal effect (eIDAS, Article 25). An organization can have others for
                // a jurisdiction.
                let mut wordings = wordings_for(&settings.signature_wording, jurisdiction);
                let own = wordings.find_map(|texts| self.own_text(texts, settings.language));
                let intent = own.map_or_else(|| self.text("consent-intent"), str::to_owned);
                (self.text("consent-statement"), intent)
            }
        };

        self.sentences(&[&consent, &intent])
    }

    /// Joins sentences to a paragraph.
    fn sentences(self, sentences: &[&str]) -> String {
        let space = match self.locale {
            // Chinese sentences follow each other without a space.
            Locale::ZhHans => "",
            _ => " ",
        };
        sentences.join(space)
    }

    /// Returns an organization's text in the language of these texts, else in the organization's.
    fn own_text(self, texts: &TextsByLanguage, organization: Locale) -> Option<&str> {
        let text = texts.get(&self.locale).or_else(|| texts.get(&organization));
        text.map(|text| text.trim())
    }

    /// Writes the disclosure of 15 U.S.C. §7001(c)(1)(B) and (C)(i) from the organization's settings. Where
    /// one is not set, the text states nothing on its behalf.
    fn disclosure(self, organization: &Organization, way_out: WayOut) -> String {
        let settings = &organization.settings;
        let own = &settings.consumer_disclosure;
        let sender = organization.display_name();
        let named = |key| self.with(key, [("sender", sender)]);
        let written =
            |texts: &TextsByLanguage| self.own_text(texts, settings.language).map(str::to_owned);

        // Each paragraph answers one clause of the statute: (B)(ii) here, then (i) paper and withdrawal,
        // (iii) contact, (iv) copies and their fee, and (C)(i) requirements.
        let scope = written(&own.scope).unwrap_or_else(|| named("disclosure-scope"));
        let opening = |summary| {
            let decline = self.text(summary);
            let values = [("sender", sender), ("decline", decline.as_str())];
            self.with("disclosure-paper", values)
        };
        let paper = match way_out {
            WayOut::Decline => opening("decline-summary"),
            WayOut::Ask => opening("question-summary"),
            WayOut::Leave => named("disclosure-paper-leave"),
        };
        let consequences = written(&own.withdrawal);
        let consequences =
            consequences.unwrap_or_else(|| named("disclosure-withdrawal-consequences"));

        let withdrawal = self.text("disclosure-withdrawal");
        let withdrawal = self.sentences(&[&withdrawal, &consequences]);
        let contact = match self.contact(own) {
            Some(contact) => {
                let values = [("sender", sender), ("contact", contact.as_str())];
                self.with("disclosure-contact", values)
            }
            // Without contact data of the sender, the text states that none are given here.
            None => named("disclosure-contact-unnamed"),
        };

        let fee = self.paper_fee(own, sender);
        let copy = self.sentences(&[&named("disclosure-copy"), &fee]);
        let requirements = written(&own.requirements);
        let requirements = requirements.unwrap_or_else(|| self.text("disclosure-requirements"));
        let download = self.text("signing-download");
        let check = self.with("disclosure-check", [("download", download.as_str())]);
        let requirements = self.sentences(&[&requirements, &check]);

        [
            named("disclosure-asks"),
            scope,
            paper,
            withdrawal,
            contact,
            copy,
            requirements,
            self.text("disclosure-recorded"),
        ]
        .join("\n\n")
    }

    /// Returns the contact data that the organization has given.
    fn contact(self, own: &ConsumerDisclosure) -> Option<String> {
        let parts = [&own.contact_email, &own.contact_phone, &own.contact_address];
        let parts: Vec<&str> = parts
            .into_iter()
            .flatten()
            .map(|part| part.trim())
            .collect();
        (!parts.is_empty()).then(|| parts.join(" · "))
    }

    fn paper_fee(self, own: &ConsumerDisclosure, sender: &str) -> String {
        match &own.paper_fee {
            // An unnamed fee is not a fee of zero: the statute asks for a statement, and only the sender can
            // make it.
            None => self.with("disclosure-fee-unnamed", [("sender", sender)]),
            Some(fee) if fee.amount_cents == 0 => self.text("disclosure-free"),
            Some(fee) => {
                let fee = self.amount(fee.amount_cents, &fee.currency);
                self.with("disclosure-fee", [("fee", fee.as_str())])
            }
        }
    }
}

/// Part of the form by which a person who does not sign gets on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayOut {
    Decline,
    Ask,
    /// The form has neither.
    Leave,
}

impl WayOut {
    /// Returns the way out of a form of the person's own.
    pub fn of(may_decline: bool) -> Self {
        if may_decline {
            Self::Decline
        } else {
            Self::Ask
        }
    }
}

/// Returns the version of our text for an organization: it changes with every part of the text that comes
/// from the organization.
fn version_of_ours(organization: &Organization, way_out: WayOut) -> String {
    let settings = &organization.settings;
    // Everything that the built text is made of. A change makes a new version, and an open page has to be
    // ticked again.
    let mut parts = vec![
        json!(organization.display_name()),
        json!(settings.language),
        json!(settings.consumer_disclosure),
        json!(settings.signature_wording),
    ];
    // Only then, so that texts of earlier releases keep their versions.
    match way_out {
        WayOut::Decline => {}
        WayOut::Ask => parts.push(json!("no decline")),
        WayOut::Leave => parts.push(json!("no way out")),
    }
    let parts = Value::from(parts);
    // Eight digits tell the versions of one organization apart. The evidence has the digest of the whole text
    // besides.
    let digest = hex::encode(Sha256::digest(parts.to_string()));

    format!("{CONSENT_VERSION}.{}", &digest[..8])
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::*;
    use holdfast_domain::disclosure::PaperFee;
    use holdfast_domain::id::OrgId;

    /// Returns the messages of a file with the names of their variables.
    fn messages(locale: Locale) -> BTreeMap<String, BTreeSet<String>> {
        let mut messages = BTreeMap::new();
        let mut key = String::new();
        for line in source(locale).lines() {
            if let Some((name, _)) = line.split_once(" =")
                && name.starts_with(|first: char| first.is_ascii_lowercase())
            {
                name.clone_into(&mut key);
                let earlier = messages.insert(key.clone(), BTreeSet::new());
                assert!(earlier.is_none(), "{key} is there twice");
            }

            let name = |rest: &str| -> String {
                rest.chars()
                    .take_while(char::is_ascii_alphanumeric)
                    .collect()
            };
            let names = line.split('$').skip(1).map(name);

            if let Some(variables) = messages.get_mut(&key) {
                variables.extend(names);
            }
        }

        messages
    }

    #[test]
    fn every_language_has_the_messages_and_variables_of_english() {
        let english = messages(Locale::En);
        assert!(english.len() > 200, "{}", english.len());
        for locale in Locale::ALL {
            let parsed = FluentResource::try_new(source(locale).to_owned());
            assert!(parsed.is_ok(), "{}: {:?}", locale.as_str(), parsed.err());
            assert_eq!(messages(locale), english, "{}", locale.as_str());
        }
    }

    #[test]
    fn every_text_can_be_written_in_every_language() {
        for locale in Locale::ALL.into_iter().chain([Locale::Accented]) {
            for (key, variables) in messages(locale) {
                for number in [0, 1, 2, 3, 11, 100] {
                    let values = variables
                        .iter()
                        .map(|name| (name.as_str(), number))
                        .collect();
                    let mut errors = Vec::new();
                    let text = Texts::of(locale).formatted(&key, Some(&values), &mut errors);
                    assert!(errors.is_empty(), "{} {key}: {errors:?}", locale.as_str());
                    assert!(!text.contains(['{', '$']), "{text}");
                }
            }
        }
    }

    /// Returns the source files that name texts.
    fn sources() -> Vec<(String, String)> {
        let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut folders = vec![host.join("src"), host.join("crates")];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let kind = path.extension().and_then(|kind| kind.to_str());
                if path.is_dir() {
                    folders.push(path);
                } else if matches!(kind, Some("rs" | "js")) {
                    let text = std::fs::read_to_string(&path).unwrap();
                    files.push((path.display().to_string(), text));
                }
            }
        }

        files
    }

    #[test]
    fn every_text_is_used_and_every_used_text_exists() {
        let english = messages(Locale::En);
        let sources = sources();
        for key in english.keys() {
            let quoted = format!("\"{key}\"");
            let used = sources.iter().any(|(_, source)| source.contains(&quoted));
            assert!(used, "{key} is not used");
        }

        for (file, source) in &sources {
            let calls: &[&str] = if file.ends_with(".js") {
                &[" text(\""]
            } else {
                &[
                    "texts.text(\"",
                    "texts.with(\"",
                    "Message::new(\"",
                    "Message::Limit(\"",
                ]
            };

            for call in calls {
                for rest in source.split(call).skip(1) {
                    let key = rest.split('"').next().unwrap();
                    // The examples in this file's own code.
                    let known = english.contains_key(key) || file.ends_with("texts.rs");
                    assert!(known, "{file} uses {key}, which does not exist");
                }
            }
        }
    }

    #[test]
    fn dates_and_amounts_are_written_as_in_each_language() {
        let at = Timestamp::parse("2026-11-05T15:30:09Z").unwrap();
        let dates: DateSettings = serde_json::from_str(r#"{"time_zone":"Europe/Berlin"}"#).unwrap();
        let bare = |text: String| text.replace(['\u{2068}', '\u{2069}', '\u{200f}'], "");
        for (locale, moment, amount) in [
            (
                Locale::En,
                "5 November 2026, 16:30 (Europe/Berlin)",
                "USD 12,345.60",
            ),
            (
                Locale::Es,
                "5 de noviembre de 2026, 16:30 (Europe/Berlin)",
                "12.345,60 USD",
            ),
            (
                Locale::Fr,
                "5 novembre 2026, 16:30 (Europe/Berlin)",
                "12\u{202f}345,60 USD",
            ),
            (
                Locale::De,
                "5. November 2026, 16:30 Uhr (Europe/Berlin)",
                "12.345,60 USD",
            ),
            (
                Locale::Pt,
                "5 de novembro de 2026, 16:30 (Europe/Berlin)",
                "USD 12.345,60",
            ),
            (
                Locale::ZhHans,
                "2026年11月5日 16:30（Europe/Berlin）",
                "USD 12,345.60",
            ),
            (
                Locale::Ar,
                "5 نوفمبر 2026، 4:30 م (Europe/Berlin)",
                "12,345.60 USD",
            ),
        ] {
            let texts = Texts::of(locale);
            // CLDR puts spaces of several kinds before the part of the day.
            let written = bare(texts.moment(&dates, at)).replace(['\u{a0}', '\u{202f}'], " ");
            assert_eq!(written, moment, "{}", locale.as_str());
            assert_eq!(
                bare(texts.amount(1_234_560, "USD")),
                amount,
                "{}",
                locale.as_str()
            );
        }

        let english = Texts::default();
        let exact = "5 November 2026, 16:30:09 (Europe/Berlin)";
        assert_eq!(english.exact_moment(&dates, at), exact);

        for (units, currency, amount) in [
            (4900, "USD", "USD 49.00"),
            (5, "EUR", "EUR 0.05"),
            (500, "JPY", "JPY 500"),
            (1234, "KWD", "KWD 1.234"),
        ] {
            assert_eq!(english.amount(units, currency), amount);
        }
    }

    #[test]
    fn names_of_the_other_direction_stay_apart() {
        let arabic = Texts::of(Locale::Ar).with("not-yet", [("name", "Ann (Buyer)")]);
        assert!(arabic.contains("\u{2068}Ann (Buyer)\u{2069}"), "{arabic}");
        let english = Texts::default().with("not-yet", [("name", "Ann")]);
        assert!(english.starts_with("Ann signs before you."), "{english}");
    }

    #[test]
    fn a_script_gets_texts_with_the_names_of_their_variables() {
        let pattern = Texts::default().pattern("signing-progress");
        assert_eq!(pattern, "{$done} of {$total} required fields done");
    }

    fn organization(settings: OrgSettings) -> Organization {
        Organization {
            id: OrgId::new(),
            name: "Oak".into(),
            settings,
            created_at: Timestamp::from_millis(0),
        }
    }

    /// Returns the default text, as a signer of Oak reads it.
    fn shown(locale: Locale, settings: OrgSettings) -> ShownConsent {
        Texts::of(locale).consent(
            &organization(settings),
            SignerKind::Signer,
            None,
            WayOut::Decline,
        )
    }

    /// The ledger names a version for the text that a signer agreed to: a changed text needs a new
    /// one.
    #[test]
    fn the_consent_text_of_a_version_never_changes() {
        let known = [
            (
                Locale::En,
                "7903f18f58c93a64e62e40a041d4ff06428da567affc87abbef401991ec63716",
            ),
            (
                Locale::Es,
                "72703587c633a5ec29ddd12d73d9f1cf9331690aab22d23e298007abc605aee8",
            ),
            (
                Locale::Fr,
                "03f8648a28ac5b5d3581a221b627a997a81907808e2f4d945dc9311286232404",
            ),
            (
                Locale::De,
                "2b0a3fdcef279b4495faf08b7e1c86bc863d008cf6c6f2413a43b1febd9eae88",
            ),
            (
                Locale::Pt,
                "251e2b920e424b3a684163e9c0c9addda7f97ce55f387c31f51fffb1f692a012",
            ),
            (
                Locale::ZhHans,
                "089646e7634459dcd91a23c6db9d037339110d971ac271e4aa44e738b8b820a6",
            ),
            (
                Locale::Ar,
                "5607a3f9043ec8b858d108d73040c9176c8a9fed0246e261db135b39862f8c3e",
            ),
        ];
        assert_eq!(CONSENT_VERSION, "holdfast-2");

        let present = known.map(|(locale, _)| {
            let shown = shown(locale, OrgSettings::default());
            assert!(shown.text.version.starts_with("holdfast-2."));
            (locale, shown.sha256())
        });
        let known = known.map(|(locale, sha256)| (locale, sha256.to_owned()));
        assert_eq!(present, known);
    }

    /// 15 U.S.C. §7001(c)(1)(B)(i)-(iv) and (C)(i).
    #[test]
    fn the_disclosure_says_what_the_organization_has_stated() {
        let settings = OrgSettings {
            consumer_disclosure: ConsumerDisclosure {
                contact_email: Some("documents@oak.example".into()),
                contact_phone: Some("+1 512 555 0142".into()),
                paper_fee: Some(PaperFee {
                    amount_cents: 500,
                    currency: "USD".into(),
                }),
                scope: [(Locale::En, "It covers all notices.".into())].into(),
                withdrawal: [(Locale::En, "We then write by post.".into())].into(),
                requirements: [(Locale::En, "You need a tablet.".into())].into(),
                ..ConsumerDisclosure::default()
            },
            ..OrgSettings::default()
        };

        let text = shown(Locale::En, settings).text.disclosure;
        for said in [
            "You may have this document on paper instead",
            "You may withdraw this consent",
            "It covers all notices.",
            "We then write by post.",
            "contact Oak: documents@oak.example · +1 512 555 0142",
            "The copy on paper costs USD 5.00.",
            "You need a tablet.",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }

        assert!(!text.contains("states no"), "{text}");
    }

    #[test]
    fn a_disclosure_states_nothing_that_the_organization_has_not_said() {
        let text = shown(Locale::En, OrgSettings::default()).text.disclosure;
        for said in [
            "Oak states no condition, no further consequence and no fee of a withdrawal here.",
            "Oak names no address for this here.",
            "Oak states no fee for it here.",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }

        assert!(!text.contains("free of charge"), "{text}");
    }

    #[test]
    fn each_change_of_what_the_disclosure_says_is_a_new_version() {
        let fee = |amount_cents| OrgSettings {
            consumer_disclosure: ConsumerDisclosure {
                paper_fee: Some(PaperFee {
                    amount_cents,
                    currency: "USD".into(),
                }),
                ..ConsumerDisclosure::default()
            },
            ..OrgSettings::default()
        };

        let wording = OrgSettings {
            signature_wording: [("US".into(), [(Locale::En, "I sign.".into())].into())].into(),
            ..OrgSettings::default()
        };
        let all = [OrgSettings::default(), fee(0), fee(100), wording];
        let versions = all.map(|settings| shown(Locale::En, settings).text.version);
        let different: BTreeSet<&String> = versions.iter().collect();
        assert_eq!(different.len(), versions.len(), "{versions:?}");
    }

    /// eIDAS Art. 25(2) gives the effect of a handwritten signature to qualified electronic signatures only.
    #[test]
    fn no_language_promises_the_effect_of_a_signature_on_paper() {
        for (locale, promise) in [
            (Locale::En, "same effect"),
            (Locale::Es, "mismo efecto"),
            (Locale::Fr, "même effet"),
            (Locale::De, "dieselbe Wirkung"),
            (Locale::Pt, "mesmo efeito"),
            (Locale::ZhHans, "同等效力"),
            (Locale::Ar, "الأثر نفسه"),
        ] {
            let text = source(locale);
            assert!(!text.contains(promise), "{}: {promise}", locale.as_str());
        }
    }

    #[test]
    fn a_wording_of_the_jurisdiction_replaces_ours() {
        let text = |text: &str| [(Locale::En, text.to_owned())].into();
        let organization = organization(OrgSettings {
            signature_wording: [
                (
                    "US-DE".to_owned(),
                    text("Signed under the law of Delaware."),
                ),
                ("default".to_owned(), text("Signed.")),
            ]
            .into(),
            ..OrgSettings::default()
        });

        let statement = |kind, jurisdiction| {
            let shown =
                Texts::of(Locale::En).consent(&organization, kind, jurisdiction, WayOut::Decline);
            shown.text.statement
        };
        let delaware = statement(SignerKind::Signer, Some("US-DE"));
        assert!(delaware.contains("the law of Delaware"), "{delaware}");

        let other = statement(SignerKind::Witness, Some("US-TX"));
        assert!(other.contains(" Signed. "), "{other}");

        // An approver signs nothing.
        let approver = statement(SignerKind::Approver, Some("US-DE"));
        assert!(!approver.contains("Signed"), "{approver}");
    }

    #[test]
    fn an_organizations_own_consent_text_comes_first() {
        let text = |statement: &str| ConsentText {
            version: "7".into(),
            statement: statement.into(),
            disclosure: "Paper is possible.".into(),
        };
        let settings = || OrgSettings {
            language: Locale::Fr,
            consent: [(Locale::Fr, text("Oui.")), (Locale::De, text("Ja."))].into(),
            ..OrgSettings::default()
        };
        for (locale, language, statement) in [
            (
                Locale::De,
                Locale::De,
                "Ja. Ich konnte das Dokument in dieser Form öffnen und lesen.",
            ),
            (
                Locale::Es,
                Locale::Fr,
                "Oui. J’ai pu ouvrir et lire le document sous cette forme.",
            ),
        ] {
            let shown = shown(locale, settings());
            assert_eq!(
                (shown.locale, shown.text.statement.as_str()),
                (language, statement)
            );
        }
    }

    #[test]
    fn months_and_weekdays_have_names_in_every_language() {
        let day = jiff::civil::date(2026, 11, 2);
        for (locale, month, weekday) in [
            (Locale::En, "November 2026", "Mon"),
            (Locale::De, "November 2026", "Mo"),
            (Locale::Es, "noviembre de 2026", "lun"),
            (Locale::Fr, "novembre 2026", "lun."),
            (Locale::Pt, "nov. de 2026", "seg."),
            (Locale::ZhHans, "2026年11月", "周一"),
            (Locale::Ar, "نوفمبر 2026", "الاثنين"),
        ] {
            let texts = Texts::of(locale);
            assert_eq!(texts.month(day), month);
            assert_eq!(texts.weekday(day), weekday);
        }
    }
}
