//! Records in the vault, by secured party and custodian, with the time at which each was last read back.

use axum::extract::{Query, State};
use maud::html;
use serde::Deserialize;

use super::PATH;
use super::live::LiveList;
use super::navigation::{PageResult, Place, export, query, status};
use super::signed_in::Visitor;
use holdfast_domain::envelope::EnvelopeStatus;
use holdfast_domain::id::EnvelopeId;
use holdfast_domain::organization::Permission;
use holdfast_platform::{Caller, ServiceError};
use holdfast_service::vault::integrity::{self, VaultedRecord};
use holdfast_service::{App, envelopes};
use holdfast_store::search::{EnvelopeSearch, FoundEnvelope};

/// Records of a page.
const PAGE: i64 = 25;

/// Conditions of the search form.
#[derive(Deserialize)]
pub struct VaultQuery {
    party: Option<String>,
    custodian: Option<String>,
    released: Option<String>,
    pub after: Option<EnvelopeId>,
}

impl VaultQuery {
    fn words(given: Option<&String>) -> Option<String> {
        let text = given?.trim();
        // PostgreSQL takes no U+0000 in a text, and an address can be longer than the field allows.
        let text: String = text.chars().filter(|one| *one != '\0').take(200).collect();
        (!text.is_empty()).then_some(text)
    }

    /// Returns the search.
    pub fn search(&self) -> EnvelopeSearch {
        // A released record has left the vault, so it is never in one list with the others.
        let status = match self.released.as_deref() {
            Some("yes") => EnvelopeStatus::VaultedOut,
            _ => EnvelopeStatus::Vaulted,
        };
        EnvelopeSearch {
            statuses: vec![status],
            secured_party: Self::words(self.party.as_ref()),
            custodian: Self::words(self.custodian.as_ref()),
            after: self.after.clone(),
            ..EnvelopeSearch::default()
        }
    }

    fn query(&self) -> String {
        query([
            ("party", self.party.as_deref()),
            ("custodian", self.custodian.as_deref()),
            ("released", self.released.as_deref()),
        ])
    }
}

/// Returns found records with their custodians and last checks.
pub async fn found(
    app: &App,
    caller: &Caller,
    search: &EnvelopeSearch,
    limit: i64,
) -> Result<Vec<(FoundEnvelope, VaultedRecord)>, ServiceError> {
    let found = envelopes::search(app, caller, search, limit).await?;
    let ids: Vec<&EnvelopeId> = found.iter().map(|one| &one.id).collect();
    // One query for all rows of the page instead of one for each.
    let mut kept = integrity::of_records(app, &caller.org, &ids).await?;
    let records = found.into_iter().map(|one| {
        let record = kept.remove(&one.id).unwrap_or_default();
        (one, record)
    });
    Ok(records.collect())
}

/// Lists the records that fit, newest first.
pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<VaultQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEvidence)?;

    let mut records = found(&app, &visitor.caller, &query.search(), PAGE + 1).await?;
    let has_more = records.len() > usize::try_from(PAGE).unwrap_or_default();
    records.truncate(usize::try_from(PAGE).unwrap_or_default());
    let texts = visitor.texts;

    let last = records.last().filter(|_| has_more);
    let older = last.map(|(last, _)| format!("{PATH}/vault?{}&after={}", query.query(), last.id));
    let body = html! {
        form.search method="get" action={ (PATH) "/vault" } role="search" {
            div.field {
                label for="party" { (texts.text("send-party")) }
                input id="party" name="party" type="search" value=[query.party.as_deref()] maxlength="200";
            }
            div.field {
                label for="custodian" { (texts.text("vault-custodian")) }
                input id="custodian" name="custodian" type="search" value=[query.custodian.as_deref()] maxlength="200";
            }
            label.choice {
                input type="checkbox" name="released" value="yes" checked[query.released.as_deref() == Some("yes")];
                " " (status(texts, EnvelopeStatus::VaultedOut))
            }
            button type="submit" { (texts.text("console-search")) }
        }
        (export(texts, &format!("vault.csv?{}", query.query())))
        @if records.is_empty() {
            p { @if query.query().is_empty() { (texts.text("empty-vault")) } @else { (texts.text("console-nothing")) } }
        }
        ul.rows {
            @for (one, record) in &records {
                li {
                    a href={ (PATH) "/envelopes/" (one.id) } { (one.name) }
                    p.soft {
                        @match &one.secured_party {
                            Some(party) => { (party.name) }
                            None => { (texts.text("vault-no-party")) }
                        }
                        @for custodian in &record.custodians { " · " (custodian) }
                        @if let Some(score) = one.compliance_score {
                            " · " (texts.with("console-score", [("score", score)]))
                        }
                    }
                    p.soft {
                        @match record.checked_at {
                            Some(at) => { (texts.text("vault-read-back")) " " (visitor.moment(at)) }
                            None => { (texts.text("vault-not-read-back")) }
                        }
                        @if record.has_problems { " " span.tag.wrong { (texts.text("console-findings")) } }
                    }
                    @if one.status == EnvelopeStatus::Vaulted && visitor.may(Permission::ReadControl) {
                        p { a href={ (PATH) "/control/records/" (one.id) } { (texts.text("vault-release")) } }
                    }
                }
            }
        }
        @if let Some(older) = older { p { a href=(older) { (texts.text("console-older")) } } }
    };

    // A vault-in changes the numbers by status, which this stream follows.
    Ok(visitor.live_page(
        Place::Vault,
        &LiveList::Envelopes,
        &texts.text("console-vault"),
        body,
    ))
}
