//! The words about a signer's consent to electronic records, in the files of a record.

use crate::envelopes::consumer::{MissingConsent, SignersConsent};
use holdfast_adapters::texts::Texts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::dates::DateSettings;
use holdfast_domain::disclosure::DemonstratedAccess;

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
        // 15 U.S.C. §7001(c) protects consumers. Whether a signer is one is a statement of the sender.
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
                // The row stays and has the reason: a missing row would look like an omission.
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

        // Without both times no page is claimed: the evidence may state less than happened, never more.
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

        // A report of the browser: no more is known of the person before it.
        let displayed = access.all_pages_displayed_at.map(|at| {
            let values = [("moment", self.moment(at))];
            self.texts.with("certificate-access-displayed", values)
        });

        // The signer's own statement stands beside the deliveries. 15 U.S.C. §7001(c)(1)(C)(ii) asks for
        // a consent that reasonably demonstrates access.
        let confirmed = || self.texts.text("certificate-access-confirmed");
        let confirmed = access.signer_confirmed.then(confirmed);
        joined([pages, pdf, displayed, confirmed])
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

    let range = |(first, last): &(u32, u32)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    };
    let written: Vec<String> = written.iter().map(range).collect();

    written.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::id::SignerId;
    use holdfast_domain::locale::Locale;
    use holdfast_store::room::GivenConsent;

    fn at() -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn moment() -> String {
        Texts::default().exact_moment(&DateSettings::default(), at())
    }

    fn consent(given: Result<GivenConsent, MissingConsent>) -> SignersConsent {
        SignersConsent {
            signer_id: SignerId::new(),
            position: 0,
            name: "Ann".into(),
            email: "ann@example.com".into(),
            role: "Buyer".into(),
            consumer: None,
            given,
            consented_at: Some(at()),
        }
    }

    fn rows(consent: &SignersConsent) -> Vec<String> {
        let dates = DateSettings::default();
        let writer = ConsentWriter {
            texts: Texts::default(),
            dates: &dates,
        };
        let rows = writer.rows(consent).into_iter();
        rows.map(|(label, value)| format!("{label}: {value}"))
            .collect()
    }

    #[test]
    fn a_consent_names_its_text_and_the_access_before_it() {
        let now = moment();
        let given = GivenConsent {
            version: "holdfast-2".into(),
            locale: Locale::En,
            sha256: "ab".into(),
            shown_at: Some(at()),
            demonstrated: Some(DemonstratedAccess {
                pages_delivered: vec![1, 2],
                page_count: 3,
                first_page_at: Some(at()),
                last_page_at: Some(at()),
                pdf_delivered_at: None,
                all_pages_displayed_at: None,
                signer_confirmed: true,
            }),
        };

        let access = format!(
            "Access before the consent: pictures of pages 1-2 of 3 delivered, {now} to {now} · the signer \
             confirmed: could open and read the document"
        );
        let expected = [
            "Consumer: the sender states nothing".to_owned(),
            format!("Disclosure shown: {now} · version holdfast-2, en, ab (SHA-256)"),
            format!("Electronic consent: {now}"),
            access,
        ];
        assert_eq!(rows(&consent(Ok(given.clone()))), expected);

        let unshown = GivenConsent {
            shown_at: None,
            demonstrated: None,
            ..given
        };
        let rows = rows(&consent(Ok(unshown)));
        assert_eq!(
            rows[1],
            "Disclosure shown: version holdfast-2, en, ab (SHA-256)"
        );
        assert_eq!(rows[3], "Access before the consent: nothing was recorded");
    }

    #[test]
    fn where_no_text_was_shown_the_reason_stands_in_its_place() {
        let now = moment();
        for (missing, why) in [
            (MissingConsent::Unsigned, "has not signed"),
            (
                MissingConsent::OtherProvider("docuseal".into()),
                "signed at another provider (docuseal); this service showed no disclosure",
            ),
            (
                MissingConsent::Simulated,
                "TEST: signed by the test interface; no disclosure was shown to a person",
            ),
            (
                MissingConsent::EarlierRelease,
                "signed with an earlier release, which kept no text of a disclosure",
            ),
        ] {
            let is_earlier = missing == MissingConsent::EarlierRelease;
            let rows = rows(&consent(Err(missing)));
            let none = format!("Disclosure shown: none was shown by this service · {why}");
            assert_eq!(rows[1], none);
            let consented = format!("Electronic consent: {now}");
            assert_eq!(rows.contains(&consented), is_earlier, "{rows:?}");
        }
    }

    #[test]
    fn a_consumer_is_one_by_the_senders_statement() {
        for (consumer, words) in [
            (Some(true), "yes, as the sender states"),
            (Some(false), "no, as the sender states"),
            (None, "the sender states nothing"),
        ] {
            let consent = SignersConsent {
                consumer,
                ..consent(Err(MissingConsent::Unsigned))
            };
            assert_eq!(rows(&consent)[0], format!("Consumer: {words}"));
        }
    }

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
            all_pages_displayed_at: None,
            signer_confirmed: true,
        };

        let now = moment();
        assert_eq!(
            writer.access(Some(&access)),
            format!(
                "PDF delivered, {now} · the signer confirmed: could open and read the document"
            )
        );

        let displayed = DemonstratedAccess {
            pdf_delivered_at: None,
            all_pages_displayed_at: Some(Timestamp::from_millis(0)),
            signer_confirmed: false,
            ..access
        };
        assert_eq!(
            writer.access(Some(&displayed)),
            format!("the browser reported every page as displayed, the last {now}")
        );
    }
}
