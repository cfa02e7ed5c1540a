//! Parts of the pages that show a record in the vault.

use maud::{Markup, html};

use holdfast_adapters::texts::Texts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::dates::DateSettings;
use holdfast_domain::envelope::{Envelope, Signer};
use holdfast_domain::event::EventType;
use holdfast_domain::ledger::LedgerEntry;
use holdfast_service::envelopes::compliance::ComplianceView;
use holdfast_service::envelopes::people_notes;
use holdfast_service::vault::history::history;

/// Shows who signed, and what happened.
pub fn record_parts(
    texts: Texts,
    dates: &DateSettings,
    signers: &[Signer],
    entries: &[LedgerEntry],
) -> Markup {
    html! {
        section.card {
            h2 { (texts.text("vault-who-signed")) }
            ul.people {
                @for signer in signers {
                    li {
                        strong { (signer.name) } " " span.soft { (signer.role) }
                        span.detail {
                            (people_notes::act_in_words(texts, signer, |at| texts.moment(dates, at)))
                        }
                    }
                }
            }
        }
        section.card {
            h2 { (texts.text("vault-what-happened")) }
            ol.ledger {
                @for line in history(texts, entries) {
                    li { time { (texts.moment(dates, line.at)) } span.detail { (line.text) } }
                }
            }
        }
    }
}

/// Shows what experts compare: the hash of the original, and the checks of the law.
pub fn details(texts: Texts, envelope: &Envelope, compliance: &ComplianceView) -> Markup {
    let checks = &compliance.checks;
    let passed = checks.iter().filter(|check| check.satisfied).count();
    html! {
        details.card {
            summary { (texts.text("vault-experts")) }
            dl {
                (entry(&texts.text("vault-record-number"), html! { (envelope.id) }))
                @if let Some(hash) = &envelope.record.document_hash {
                    (entry(&texts.text("vault-hash"), html! { code { (hash) } }))
                }
            }
            h3 { (texts.with("vault-checks", [("passed", passed), ("total", checks.len())])) }
            ul.checks {
                @for check in checks {
                    li.satisfied[check.satisfied] {
                        span.sign aria-hidden="true" { (if check.satisfied { "✓" } else { "✗" }) }
                        span {
                            strong { (check.requirement) } " (" (check.ucc_reference) ")"
                            span.detail { (texts.text(if check.satisfied { "vault-satisfied" } else { "vault-not-satisfied" })) " " (check.detail) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the time of the last entry of a kind.
pub fn time_of(entries: &[LedgerEntry], kind: EventType) -> Option<Timestamp> {
    let mut entries = entries.iter().rev();
    let entry = entries.find(|entry| entry.action == kind.as_str())?;
    Some(entry.at)
}

/// Renders a fact and its name.
pub fn entry(name: &str, value: Markup) -> Markup {
    html! { dt { (name) } dd { (value) } }
}
