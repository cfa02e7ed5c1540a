//! Lists of envelopes by tab, their search, and acts on several.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Redirect};
use maud::{Markup, html};
use serde::Deserialize;

use super::PATH;
use super::forms::{FormView, RefusedForm, TextField};
use super::home::SOON;
use super::live::LiveList;
use super::navigation::{PageResult, Place, export, query, status};
use super::signed_in::{ConsoleForm, Visitor};
use super::standing::{names, state, tabs, who};
use super::sure::SURE;
use crate::error::HttpError;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{EnvelopeStatus, PaymentStatus};
use holdfast_domain::id::EnvelopeId;
use holdfast_domain::organization::Permission;
use holdfast_platform::ServiceError;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_service::envelopes::saved_filters;
use holdfast_service::envelopes::standing::{self, EnvelopeStanding, NextActor};
use holdfast_service::signing::reminders::{self, RemindRequest};
use holdfast_service::{App, envelopes};
use holdfast_store::saved_filters::SavedFilter;
use holdfast_store::search::{EnvelopeSearch, EnvelopeTab, FoundEnvelope, TabCounts};

/// Envelopes of a page.
const PAGE: usize = 25;
const DAY: Duration = Duration::from_secs(86_400);

/// Lists of the first page, as `show` names them.
const SHOWN: [&str; 3] = ["stuck", "expiring", "unpaid"];

/// Lists that many people need: the query of each, and its name.
const SHORT_LISTS: [(&str, &str); 3] = [
    ("status=sent,viewed&show=expiring", "console-expiring"),
    ("status=sent,viewed,completed&show=unpaid", "console-unpaid"),
    ("status=vaulted&score_below=100", "console-below"),
];

/// Where envelopes stand, by their ids.
pub type Standings = BTreeMap<EnvelopeId, EnvelopeStanding>;

/// Conditions of the search form.
#[derive(Deserialize)]
pub struct ListQuery {
    q: Option<String>,
    status: Option<String>,
    score_below: Option<String>,
    /// One of [`SHOWN`].
    show: Option<String>,
    /// First and last day of the creation, in UTC.
    from: Option<String>,
    to: Option<String>,
    /// Tab of the list.
    tab: Option<String>,
    /// `oldest`: the oldest envelopes first.
    sort: Option<String>,
    after: Option<String>,
    /// Only envelopes in front of this one: the page before.
    before: Option<String>,
}

impl ListQuery {
    fn text(&self) -> String {
        let text = self.q.as_deref().unwrap_or_default().trim();
        // PostgreSQL takes no U+0000 in a text, and an address can be longer than the field allows.
        text.chars().filter(|one| *one != '\0').take(200).collect()
    }

    fn statuses(&self) -> Vec<EnvelopeStatus> {
        // Links of the first page ask for several statuses at once.
        let statuses = self.status.as_deref().unwrap_or_default().split(',');
        statuses.filter_map(EnvelopeStatus::parse).collect()
    }

    fn score_below(&self) -> Option<i64> {
        self.score_below.as_deref()?.parse().ok()
    }

    fn tab(&self) -> Option<EnvelopeTab> {
        self.tab.as_deref().and_then(EnvelopeTab::parse)
    }

    fn is_oldest_first(&self) -> bool {
        self.sort.as_deref() == Some("oldest")
    }

    /// Returns the search. Unreadable conditions are ignored.
    pub fn search(&self, now: Timestamp) -> EnvelopeSearch {
        let shows = |list: &str| self.show.as_deref() == Some(list);
        let text = self.text();
        let last = self.to.as_deref().and_then(day);
        EnvelopeSearch {
            text: (!text.is_empty()).then_some(text),
            statuses: self.statuses(),
            score_below: self.score_below(),
            stuck: shows("stuck"),
            expires_before: shows("expiring").then(|| now + SOON),
            payment: shows("unpaid").then_some(PaymentStatus::RequiresPayment),
            created_from: self.from.as_deref().and_then(day),
            // The last day counts as a whole.
            created_before: last.map(|last| last + DAY),
            tab: self.tab(),
            oldest_first: self.is_oldest_first(),
            after: self.after.as_deref().and_then(EnvelopeId::parse),
            ..EnvelopeSearch::default()
        }
    }

    /// Returns the readable conditions with their names, without the place in the list.
    fn conditions(&self) -> [(&'static str, Option<String>); 8] {
        let statuses = self.statuses();
        let statuses: Vec<&str> = statuses.iter().map(|one| one.as_str()).collect();
        let date = |text: &Option<String>| text.clone().filter(|text| day(text).is_some());
        let show = self
            .show
            .clone()
            .filter(|list| SHOWN.contains(&list.as_str()));
        let oldest = self.is_oldest_first().then(|| "oldest".to_owned());
        [
            ("q", Some(self.text())),
            ("status", Some(statuses.join(","))),
            ("from", date(&self.from)),
            ("to", date(&self.to)),
            ("show", show),
            (
                "score_below",
                self.score_below().map(|score| score.to_string()),
            ),
            ("tab", self.tab().map(|tab| tab.as_str().to_owned())),
            ("sort", oldest),
        ]
    }

    /// Returns the conditions as a query.
    fn query(&self) -> String {
        let conditions = self.conditions();
        let conditions = conditions
            .iter()
            .map(|(name, value)| (*name, value.as_deref()));
        query(conditions)
    }

    /// Reads the conditions from the hidden fields of a form.
    fn of_form(form: &ConsoleForm) -> Self {
        let given = |name: &str| form.values.get(name).cloned();
        Self {
            q: given("q"),
            status: given("status"),
            score_below: given("score_below"),
            show: given("show"),
            from: given("from"),
            to: given("to"),
            tab: given("tab"),
            sort: given("sort"),
            after: None,
            before: None,
        }
    }

    /// Returns the conditions that stay when another tab is chosen.
    fn query_of_tabs(&self) -> String {
        query([
            ("q", Some(self.text().as_str())),
            ("from", self.from.as_deref()),
            ("to", self.to.as_deref()),
            ("sort", self.is_oldest_first().then_some("oldest")),
        ])
    }
}

/// Returns the begin of a day (`2026-11-27`) in UTC.
fn day(text: &str) -> Option<Timestamp> {
    Timestamp::parse(&format!("{text}T00:00:00Z"))
}

/// Page of a list.
struct ListPage {
    found: Vec<FoundEnvelope>,
    standings: Standings,
    counts: TabCounts,
    /// The visitor's own filters.
    filters: Vec<SavedFilter>,
    has_previous: bool,
    has_next: bool,
}

/// Reads a page of the envelopes that fit.
async fn read(app: &App, visitor: &Visitor, query: &ListQuery) -> Result<ListPage, ServiceError> {
    let (caller, mut search) = (&visitor.caller, query.search(visitor.now));
    let before = query.before.as_deref().and_then(EnvelopeId::parse);
    // The page before is read backwards from its end.
    let is_backwards = before.is_some();
    if is_backwards {
        search.after = before;
        search.oldest_first = !search.oldest_first;
    }

    // One envelope more than a page shows whether there are others. A count would read all that fit.
    let limit = i64::try_from(PAGE + 1).unwrap_or(i64::MAX);
    let mut found = envelopes::search(app, caller, &search, limit).await?;
    let has_more = found.len() > PAGE;
    found.truncate(PAGE);
    if is_backwards {
        found.reverse();
    }

    let ids: Vec<&EnvelopeId> = found.iter().map(|one| &one.id).collect();
    let standings = standing::of_envelopes(app, caller, &ids).await?;
    let counts = standing::tab_counts(app, caller).await?;
    let filters = saved_filters::list(app, &visitor.signed_in.user).await?;
    Ok(ListPage {
        filters,
        has_previous: if is_backwards {
            has_more
        } else {
            search.after.is_some()
        },
        has_next: is_backwards || has_more,
        standings,
        counts,
        found,
    })
}

/// Shows the envelopes that fit, newest first unless the query asks for the oldest. Unreadable conditions are ignored.
pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<ListQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    shown(&app, &visitor, &query, None).await
}

async fn shown(
    app: &App,
    visitor: &Visitor,
    query: &ListQuery,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let page = read(app, visitor, query).await?;
    let texts = visitor.texts;
    let body = html! {
        (tabs(texts, page.counts, Some(query.tab()), &query.query_of_tabs()))
        (filters(visitor, query, &page.filters, refused))
        (search_form(visitor, query))
        nav.parts.short aria-label=(texts.text("envelopes-short-lists")) {
            @for (conditions, name) in SHORT_LISTS {
                a href={ (PATH) "/envelopes?" (conditions) } { (texts.text(name)) }
            }
        }
        (export(texts, &format!("envelopes.csv?{}", query.query())))
        @if page.found.is_empty() {
            p { (texts.text("console-nothing")) }
        } @else {
            (chosen_rows(visitor, &page))
        }
        (other_pages(visitor, query, &page))
    };

    Ok(visitor.form_page(
        Place::Envelopes,
        Some(&LiveList::Envelopes),
        &texts.text("console-envelopes"),
        body,
        refused,
    ))
}

/// Renders the visitor's own filters, and the form that saves the shown one or removes it.
fn filters(
    visitor: &Visitor,
    query: &ListQuery,
    saved: &[SavedFilter],
    refused: Option<&RefusedForm>,
) -> Markup {
    let texts = visitor.texts;
    let conditions = query.query();
    let current = saved.iter().find(|one| one.query == conditions);
    let remove = format!("{PATH}/filters/remove");
    html! {
        @if !saved.is_empty() {
            nav.parts.short aria-label=(texts.text("filters-saved")) {
                @for one in saved {
                    a href={ (PATH) "/envelopes?" (one.query) } aria-current=[(one.query == conditions).then_some("page")] {
                        (one.name)
                    }
                }
            }
        }
        @if let Some(current) = current {
            form method="post" action=(remove) {
                (visitor.token())
                input type="hidden" name="name" value=(current.name);
                button.quiet type="submit" { (texts.with("filter-remove", [("name", current.name.as_str())])) }
            }
        } @else if !conditions.is_empty() || refused.is_some() {
            (save_form(visitor, query, refused))
        }
    }
}

fn save_form(visitor: &Visitor, query: &ListQuery, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = format!("{PATH}/filters");
    let form = FormView::new(texts, &action, refused);
    let conditions = query.conditions();
    let given = conditions.iter().filter_map(|(name, value)| {
        let value = value.as_ref().filter(|value| !value.is_empty())?;
        Some((name, value))
    });

    html! {
        details.card open[form.is_refused()] {
            summary { (texts.text("filter-save")) }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                @for (name, value) in given { input type="hidden" name=(name) value=(value); }
                (form.text(&TextField {
                    // The API counts characters, and a browser UTF-16 units.
                    limit: 120,
                    ..TextField::required("name", &texts.text("filter-name"))
                }))
                button type="submit" { (texts.text("filter-save")) }
            }
        }
    }
}

/// Saves a filter of the visitor, and shows its list.
pub async fn save_filter(State(app): State<App>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::ReadEnvelopes)?;

    let query = ListQuery::of_form(&form);
    let filter = SavedFilter {
        name: form.value("name").to_owned(),
        query: query.query(),
    };
    let address = format!("{PATH}/envelopes?{}", filter.query);
    match saved_filters::save(&app, &form.visitor.signed_in.user, filter).await {
        Ok(()) => Ok(Redirect::to(&address).into_response()),
        Err(error) => {
            let refused = form.refused(error)?;
            shown(&app, &form.visitor, &query, Some(&refused)).await
        }
    }
}

/// Removes a filter of the visitor.
pub async fn remove_filter(State(app): State<App>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::ReadEnvelopes)?;

    let user = &form.visitor.signed_in.user;
    saved_filters::remove(&app, user, form.value("name")).await?;
    Ok(Redirect::to(&format!("{PATH}/envelopes")).into_response())
}

fn search_form(visitor: &Visitor, query: &ListQuery) -> Markup {
    let texts = visitor.texts;
    let chosen = query.status.as_deref().unwrap_or_default();

    html! {
        form.search method="get" action={ (PATH) "/envelopes" } role="search" {
            div.field {
                label for="q" { (texts.text("console-search-hint")) }
                input id="q" name="q" type="search" value=(query.text()) maxlength="200";
            }

            // A tab is a choice of statuses itself.
            @if let Some(tab) = query.tab() {
                input type="hidden" name="tab" value=(tab.as_str());
            } @else {
                div.field {
                    label for="status" { (texts.text("console-status")) }
                    select id="status" name="status" {
                        option value="" { (texts.text("console-all-statuses")) }
                        @for one in EnvelopeStatus::ALL {
                            option value=(one) selected[chosen == one.as_str()] { (status(texts, *one)) }
                        }
                    }
                }
            }

            div.field {
                label for="from" { (texts.text("console-from")) }
                input id="from" name="from" type="date" value=[query.from.as_deref()];
            }
            div.field {
                label for="to" { (texts.text("console-to")) }
                input id="to" name="to" type="date" value=[query.to.as_deref()];
            }
            div.field {
                label for="sort" { (texts.text("envelopes-sort")) }
                select id="sort" name="sort" {
                    option value="" { (texts.text("envelopes-newest")) }
                    option value="oldest" selected[query.is_oldest_first()] { (texts.text("envelopes-oldest")) }
                }
            }

            @if let Some(score) = query.score_below() {
                input type="hidden" name="score_below" value=(score);
            }
            button type="submit" { (texts.text("console-search")) }
        }
    }
}

/// Renders the links to the pages beside this one.
fn other_pages(visitor: &Visitor, query: &ListQuery, page: &ListPage) -> Markup {
    let texts = visitor.texts;
    let conditions = query.query();
    let address = |place: &str, at: Option<&FoundEnvelope>| {
        let at = at?;
        Some(format!("{PATH}/envelopes?{conditions}&{place}={}", at.id))
    };
    let previous = address("before", page.found.first().filter(|_| page.has_previous));
    let next = address("after", page.found.last().filter(|_| page.has_next));
    let (newer, older) = if query.is_oldest_first() {
        (next, previous)
    } else {
        (previous, next)
    };

    html! {
        @if newer.is_some() || older.is_some() {
            p.pages {
                @if let Some(newer) = newer { a href=(newer) { (texts.text("envelopes-newer")) } }
                @if let Some(older) = older { a href=(older) { (texts.text("console-older")) } }
            }
        }
    }
}

/// Renders found envelopes with a box each, and the acts for several.
fn chosen_rows(visitor: &Visitor, page: &ListPage) -> Markup {
    let texts = visitor.texts;
    // Boxes without an act behind them would only mislead.
    if !visitor.may(Permission::Send) {
        return table(visitor, page, false);
    }

    html! {
        form method="post" action={ (PATH) "/envelopes/act" } {
            (visitor.token())
            label.choice hidden { input type="checkbox" data-all=""; " " (texts.text("envelopes-all")) }
            (table(visitor, page, true))
            // The next page names the documents and people, and asks once more.
            div.actions role="group" aria-label=(texts.text("envelopes-several")) {
                button.quiet type="submit" name="act" value="remind" { (texts.text("console-remind")) "…" }
                button.quiet type="submit" name="act" value="void" { (texts.text("console-void")) "…" }
            }
        }
    }
}

fn table(visitor: &Visitor, page: &ListPage, has_boxes: bool) -> Markup {
    let texts = visitor.texts;
    let standing = |one: &FoundEnvelope| page.standings.get(&one.id);
    let has_amounts = page.standings.values().any(|one| one.amount.is_some());

    let [who_acts, since, amount] = ["envelopes-who", "envelopes-since", "envelopes-amount"];
    let [who_acts, since, amount] = [who_acts, since, amount].map(|key| texts.text(key));

    html! {
        table.listed {
            thead {
                tr {
                    @if has_boxes { td {} }
                    th scope="col" { (texts.text("envelopes-document")) }
                    th scope="col" { (who_acts) }
                    th scope="col" { (texts.text("console-status")) }
                    @if has_amounts { th scope="col" { (amount) } }
                    th scope="col" { (since) }
                }
            }

            tbody {
                @for one in &page.found {
                    tr {
                        @if has_boxes {
                            td.box {
                                @if one.status.is_unfinished() {
                                    input type="checkbox" name={ "id-" (one.id) } value="yes" aria-label=(one.name);
                                }
                            }
                        }
                        th scope="row" {
                            a href={ (PATH) "/envelopes/" (one.id) } { (one.name) }
                            @if let Some(external) = &one.external_id { span.soft { (external) } }
                            @if let Some(score) = one.compliance_score {
                                span.soft { (texts.with("console-score", [("score", score)])) }
                            }
                        }
                        @if let Some(standing) = standing(one) {
                            td data-of=(who_acts) { (who(texts, &standing.next).unwrap_or_else(|| "–".into())) }
                            td { (state(texts, standing)) (planned(visitor, standing)) }
                            @if has_amounts { td.amount data-of=(amount) { (standing.amount.as_deref().unwrap_or("–")) } }
                            td data-of=(since) { (visitor.ago(standing.since)) }
                        }
                    }
                }
            }
        }
    }
}

/// Renders when a draft is sent, if that is planned.
fn planned(visitor: &Visitor, standing: &EnvelopeStanding) -> Markup {
    html! {
        @if let Some(at) = standing.glance.send_at {
            " " span.soft { (visitor.texts.text("send-planned")) " " (visitor.moment(at)) }
        }
    }
}

/// Renders found envelopes as a short list.
pub fn rows(visitor: &Visitor, found: &[FoundEnvelope], standings: &Standings) -> Markup {
    let texts = visitor.texts;
    html! {
        ul.rows {
            @for one in found {
                li {
                    a href={ (PATH) "/envelopes/" (one.id) } { (one.name) }
                    @if let Some(standing) = standings.get(&one.id) {
                        p { (state(texts, standing)) (planned(visitor, standing)) }
                        p.soft {
                            @if let Some(who) = who(texts, &standing.next) { (who) " · " }
                            (visitor.ago(standing.since))
                            @if let Some(amount) = &standing.amount { " · " (amount) }
                            @if let Some(score) = one.compliance_score {
                                " · " (texts.with("console-score", [("score", score)]))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Recorder for acts without an idempotency key.
pub fn unrecorded<T>() -> ResponseRecorder<T> {
    // Browsers send no idempotency key.
    ResponseRecorder::unrecorded()
}

/// Shows what an act on several envelopes will do, and then does it. Those that it fails for are named with the reason.
pub async fn act_on_several(State(app): State<App>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Send)?;

    // As many as a page has boxes for. A hand-made form must not start thousands of acts.
    let ids = form.values.keys();
    let ids: Vec<String> = ids
        .filter_map(|name| name.strip_prefix("id-").map(str::to_owned))
        .take(PAGE)
        .collect();
    let voids = form.value("act") == "void";
    if form.value(SURE) == "yes" {
        act(app, &form, ids, voids).await
    } else {
        ask(&app, &form.visitor, &ids, voids).await
    }
}

/// Shows the documents and people of an act on several envelopes, with the button that does it.
async fn ask(app: &App, visitor: &Visitor, ids: &[String], voids: bool) -> PageResult {
    let ids: Vec<EnvelopeId> = ids.iter().filter_map(|id| EnvelopeId::parse(id)).collect();
    let ids: Vec<&EnvelopeId> = ids.iter().collect();
    let chosen = standing::of_envelopes(app, &visitor.caller, &ids).await?;

    let texts = visitor.texts;
    let is_possible = |one: &EnvelopeStanding| {
        let is = one.glance.status;
        if voids {
            is.is_unfinished()
        } else {
            is.is_out_for_signing()
        }
    };
    let (possible, left_out): (Vec<_>, Vec<_>) = chosen.values().partition(|one| is_possible(one));
    // A person in several documents is one.
    let people = possible.iter().flat_map(|one| match &one.next {
        NextActor::Signers(signers) => signers.as_slice(),
        _ => &[],
    });
    let people: BTreeSet<_> = people.map(|signer| signer.email.to_lowercase()).collect();
    let act = if voids {
        texts.with("envelopes-void-documents", [("count", possible.len())])
    } else {
        texts.with("envelopes-remind-people", [("count", people.len())])
    };

    let title = if possible.is_empty() {
        texts.text("console-envelopes")
    } else {
        act.clone()
    };
    let body = html! {
        @if possible.is_empty() {
            p { (texts.text("envelopes-none")) }
        } @else {
            p { (texts.text(if voids { "envelopes-void-hint" } else { "envelopes-remind-hint" })) }
            ul.rows { @for one in &possible { li { (asked_row(visitor, one, voids)) } } }
            form method="post" action={ (PATH) "/envelopes/act" } {
                (visitor.token())
                input type="hidden" name=(SURE) value="yes";
                input type="hidden" name="act" value=(if voids { "void" } else { "remind" });
                @for one in &possible { input type="hidden" name={ "id-" (one.glance.id) } value="yes"; }
                @if voids {
                    div.field {
                        label for="reason" { (texts.text("console-reason")) }
                        input id="reason" name="reason" required maxlength="500";
                    }
                }
                div.actions { button.danger[voids].sure[voids] type="submit" { (act) } }
            }
        }
        @if !left_out.is_empty() {
            section.card {
                h2 { (texts.text("envelopes-left-out")) }
                ul.rows { @for one in &left_out { li { (asked_row(visitor, one, true)) } } }
            }
        }
        p { a href={ (PATH) "/envelopes" } { (texts.text("console-back")) } }
    };

    Ok(visitor.page(Place::Envelopes, &title, body))
}

fn asked_row(visitor: &Visitor, one: &EnvelopeStanding, shows_status: bool) -> Markup {
    let texts = visitor.texts;
    html! {
        a href={ (PATH) "/envelopes/" (one.glance.id) } { (one.glance.name) }
        p {
            @match &one.next {
                NextActor::Signers(signers) if !shows_status => { (names(texts, signers)) }
                _ => { (state(texts, one)) }
            }
        }
        @if let Some(at) = one.glance.reminded_at {
            p.soft { (texts.text("envelopes-reminded")) " · " (visitor.ago(at)) }
        }
    }
}

/// Reminds the signers of several envelopes, or voids them.
async fn act(app: App, form: &ConsoleForm, ids: Vec<String>, voids: bool) -> PageResult {
    let reason = form.value("reason").to_owned();
    // Checked once, or every envelope would be refused for the same reason.
    if voids && (reason.is_empty() || reason.chars().count() > 500) {
        return Err(HttpError::bad_request("reason is required").into());
    }

    let (core, caller) = (app, form.visitor.caller.clone());

    // Completes even if the browser goes away.
    let done = tokio::spawn(async move {
        // One after the other, because each calls a signing provider. A failure does not stop the next one.
        let mut done = Vec::new();
        for id in ids {
            let acted = if voids {
                let reason = Some(reason.clone());
                let voided = envelopes::void(&core, &caller, &id, reason, &unrecorded()).await;
                voided.map(drop)
            } else {
                let all = RemindRequest::default();
                let told = reminders::remind(&core, &caller, &id, all, &unrecorded()).await;
                told.map(drop)
            };

            done.push((id, acted.err().map(|error| error.to_string())));
        }

        done
    });

    let done = done.await?;
    let texts = form.visitor.texts;
    let failures: Vec<_> = done.iter().filter(|(_, error)| error.is_some()).collect();
    let body = html! {
        p.done role="status" { (texts.with("envelopes-done", [("count", done.len() - failures.len())])) }
        @if !failures.is_empty() {
            ul.rows {
                @for (id, error) in failures {
                    li {
                        a href={ (PATH) "/envelopes/" (id) } { (id) }
                        p.soft { (error.as_deref().unwrap_or_default()) }
                    }
                }
            }
        }
        p { a href={ (PATH) "/envelopes" } { (texts.text("console-envelopes")) } }
    };

    let title = texts.text("console-envelopes");
    Ok(form.visitor.page(Place::Envelopes, &title, body))
}
