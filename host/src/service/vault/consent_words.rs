//! The words about a signer's consent to electronic records, in the files of a record.

use crate::domain::clock::Timestamp;
use crate::domain::dates::DateSettings;
use crate::domain::disclosure::DemonstratedAccess;
use crate::service::envelopes::consumer::{MissingConsent, SignersConsent};
use crate::texts::Texts;

/// Writes the disclosure of a signer and the demonstrated access.
#[derive(Clone, Copy)]
pub struct ConsentWriter<'a> {
    pub texts: Texts,
    pub dates: &'a DateSettings,
}

impl ConsentWriter<'_> {
    /// Returns the rows about one signer: label and value.
    pub fn rows(self, consent: &SignersConsent) -> Vec<(String, String)> {
        let row = |label, value| (self.texts.text(label), value);
        let consented = consent.consented_at.map(|at| self.moment(at));
        let consumer = self.texts.text(match consent.consumer {
            Some(true) => "certificate-consumer-yes",
            Some(false) => "certificate-consumer-no",
            None => "certificate-consumer-unstated",
        });
        let mut rows = vec![row("certificate-consumer", consumer)];

        match &consent.given {
            Ok(given) => {
                let values = [
                    ("version", given.version.as_str()),
                    ("language", given.locale.as_str()),
                    ("sha256", given.sha256.as_str()),
                ];
                let text = self.texts.with("certificate-disclosure-text", values);
                let shown = given.shown_at.map(|at| self.moment(at));
                let shown = joined([shown, Some(text)]);
                rows.push(row("certificate-disclosure", shown));
                rows.extend(consented.map(|consented| row("certificate-consent", consented)));
                let access = self.access(given.demonstrated.as_ref());
                rows.push(row("certificate-access", access));
            }
            Err(missing) => {
                let none = self.texts.text("certificate-disclosure-none");
                let why = joined([Some(none), Some(self.missing(missing))]);
                rows.push(row("certificate-disclosure", why));
                // A release before this one recorded a consent, to a text that stood beside the tick.
                if *missing == MissingConsent::EarlierRelease {
                    rows.extend(consented.map(|consented| row("certificate-consent", consented)));
                }
            }
        }
        rows
    }

    fn moment(self, at: Timestamp) -> String {
        self.texts.exact_moment(self.dates, at)
    }

    fn missing(self, missing: &MissingConsent) -> String {
        match missing {
            MissingConsent::Unsigned => self.texts.text("consent-reason-unsigned"),
            MissingConsent::OtherProvider(provider) => {
                let values = [("provider", provider.as_str())];
                self.texts.with("consent-reason-provider", values)
            }
            MissingConsent::Simulated => self.texts.text("consent-reason-test"),
            MissingConsent::EarlierRelease => self.texts.text("consent-reason-earlier"),
        }
    }

    /// Returns the deliveries before the consent.
    fn access(self, demonstrated: Option<&DemonstratedAccess>) -> String {
        let Some(access) = demonstrated else {
            return self.texts.text("certificate-access-none");
        };
        let times = access.first_page_at.zip(access.last_page_at);
        let pages = times.map(|(first, last)| {
            let (first, last) = (self.moment(first), self.moment(last));
            let (pages, count) = (
                ranges(&access.pages_delivered),
                access.page_count.to_string(),
            );
            let values = [
                ("pages", pages.as_str()),
                ("count", &count),
                ("first", &first),
                ("last", &last),
            ];
            self.texts.with("certificate-access-pages", values)
        });

        let pdf = access.pdf_delivered_at.map(|at| {
            let moment = self.moment(at);
            let values = [("moment", moment.as_str())];
            self.texts.with("certificate-access-pdf", values)
        });

        let confirmed = || self.texts.text("certificate-access-confirmed");
        let confirmed = access.signer_confirmed.then(confirmed);
        joined([pages, pdf, confirmed])
    }
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" · ")
}

/// Writes sorted page numbers, for example `1-3, 5`.
fn ranges(pages: &[u32]) -> String {
    let mut written: Vec<(u32, u32)> = Vec::new();
    for page in pages {
        match written.last_mut() {
            Some((_, last)) if *page == *last + 1 => *last = *page,
            _ => written.push((*page, *page)),
        }
    }
    let range = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let written: Vec<String> = written.iter().map(range).collect();
    written.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_pages_are_written_as_a_range() {
        assert_eq!(ranges(&[1, 2, 3, 5, 7, 8]), "1-3, 5, 7-8");
        assert_eq!(ranges(&[4]), "4");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn nothing_is_claimed_where_nothing_was_delivered() {
        let dates = DateSettings::default();
        let writer = ConsentWriter {
            texts: Texts::default(),
            dates: &dates,
        };
        assert_eq!(writer.access(None), "nothing was recorded");
        let access = DemonstratedAccess {
            pages_delivered: Vec::new(),
            page_count: 2,
            first_page_at: None,
            last_page_at: None,
            pdf_delivered_at: Some(Timestamp::from_millis(0)),
            signer_confirmed: true,
        };
        let written = writer.access(Some(&access));
        assert!(written.starts_with("PDF delivered"), "{written}");
        assert!(!written.contains("pages"), "{written}");
    }
}
