//! Parts of lists and pages that show where an envelope stands.

use maud::{Markup, html};

use super::PATH;
use super::navigation::status;
use super::signed_in::Visitor;
use holdfast_adapters::texts::Texts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{EnvelopeStatus, Signer};
use holdfast_service::envelopes::standing::{EnvelopeStanding, NextActor, Trouble};
use holdfast_store::search::{EnvelopeTab, MOST_TROUBLES, TabCounts};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Age in seconds from which the date itself is shown.
const OLD: u64 = 60 * DAY;
/// Number of names in a row.
const NAMED: usize = 2;

impl Visitor {
    /// Renders how long ago a moment was, with the moment itself on hover.
    pub fn ago(&self, at: Timestamp) -> Markup {
        let texts = self.texts;
        let seconds = self.now.since(at).as_secs();
        let counted = |key, unit: u64| texts.with(key, [("count", seconds / unit)]);
        let text = match seconds {
            0..MINUTE => texts.text("envelopes-now"),
            MINUTE..HOUR => counted("envelopes-minutes", MINUTE),
            HOUR..DAY => counted("envelopes-hours", HOUR),
            DAY..OLD => counted("envelopes-days", DAY),
            _ => return self.moment(at),
        };

        let exact = texts.moment(&self.organization.settings.dates, at);
        html! { time datetime=(at) title=(exact) { (text) } }
    }
}

/// Renders a status as a coloured dot with its word.
pub fn dot(texts: Texts, is: EnvelopeStatus, has_trouble: bool) -> Markup {
    let tone = match is {
        EnvelopeStatus::Declined | EnvelopeStatus::Expired => "bad",
        _ if has_trouble => "bad",
        EnvelopeStatus::Vaulted | EnvelopeStatus::VaultedOut => "good",
        EnvelopeStatus::Sent
        | EnvelopeStatus::Viewed
        | EnvelopeStatus::Preparing
        | EnvelopeStatus::Completed => "busy",
        EnvelopeStatus::Pending | EnvelopeStatus::Uploaded | EnvelopeStatus::Voided => "idle",
    };

    // The word carries the meaning; the colour only repeats it.
    html! { span class={ "dot " (tone) } { (status(texts, is)) } }
}

/// Renders the status of an envelope with its trouble.
pub fn state(texts: Texts, standing: &EnvelopeStanding) -> Markup {
    html! {
        (dot(texts, standing.glance.status, standing.trouble.is_some()))
        @if let Some(trouble) = &standing.trouble {
            span.trouble { (trouble_in_words(texts, trouble)) }
        }
    }
}

/// Describes the trouble of an envelope.
pub fn trouble_in_words(texts: Texts, trouble: &Trouble) -> String {
    match trouble {
        Trouble::Unreached { name, .. } => {
            texts.with("envelopes-unreached", [("name", name.as_str())])
        }
        Trouble::Unidentified { name } => {
            texts.with("envelopes-unidentified", [("name", name.as_str())])
        }
        Trouble::VaultingStopped => texts.text("console-stopped"),
        Trouble::Unpaid => texts.text("console-unpaid"),
    }
}

/// Returns the name of the next actor; none if the envelope is done.
pub fn who(texts: Texts, next: &NextActor) -> Option<String> {
    match next {
        NextActor::Sender => Some(texts.text("envelopes-you")),
        NextActor::Service => Some(texts.text("envelopes-service")),
        NextActor::Signers(signers) => Some(names(texts, signers)),
        NextActor::Nobody => None,
    }
}

/// Returns the names of the first signers, and the number of the others.
pub fn names(texts: Texts, signers: &[Signer]) -> String {
    let named: Vec<&str> = signers.iter().map(|one| one.name.as_str()).collect();
    let first = &named[..named.len().min(NAMED)];
    let text = first.join(&texts.text("list-separator"));
    match named.len() - first.len() {
        0 => text,
        others => format!("{text} +{others}"),
    }
}

/// Returns the name of a tab.
fn tab_name(texts: Texts, tab: EnvelopeTab) -> String {
    texts.text(match tab {
        EnvelopeTab::NeedsYou => "envelopes-needs-you",
        EnvelopeTab::Waiting => "envelopes-waiting",
        EnvelopeTab::Stuck => "envelopes-stuck",
        EnvelopeTab::Done => "envelopes-tab-done",
    })
}

/// Renders the tabs with their numbers. `current` is the open one on the page of the list, none for all envelopes;
/// `query` has the other conditions, which stay.
pub fn tabs(
    texts: Texts,
    counts: TabCounts,
    current: Option<Option<EnvelopeTab>>,
    query: &str,
) -> Markup {
    let address = |tab: &str| {
        let parts = [query, tab].into_iter().filter(|part| !part.is_empty());
        let parts: Vec<&str> = parts.collect();
        match parts.join("&").as_str() {
            "" => format!("{PATH}/envelopes"),
            query => format!("{PATH}/envelopes?{query}"),
        }
    };
    // Troubles are counted up to a limit. Numbers that rest on more of them are left out.
    let number = |tab: EnvelopeTab| match (counts.is_capped, tab) {
        (false, _) | (true, EnvelopeTab::Done) => Some(counts.of(tab).to_string()),
        (true, EnvelopeTab::Stuck) if counts.stuck > MOST_TROUBLES => {
            Some(format!("{MOST_TROUBLES}+"))
        }
        // Questions were too many to count, and troubles were not.
        (true, EnvelopeTab::Stuck) => Some(counts.stuck.to_string()),
        (true, _) => None,
    };

    html! {
        nav.parts.tabs aria-label=(texts.text("envelopes-tabs")) {
            a href=(address("")) aria-current=[(current == Some(None)).then_some("page")] {
                (texts.text("console-all-statuses"))
            }
            @for tab in EnvelopeTab::ALL {
                a href=(address(&format!("tab={}", tab.as_str())))
                    aria-current=[(current == Some(Some(tab))).then_some("page")] {
                    (tab_name(texts, tab))
                    @if let Some(number) = number(tab) { " " span.number { (number) } }
                }
            }
        }
    }
}
