//! Change requests: making one, its comparison, reviews by other people, and the change itself.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::PATH;
use super::live::LiveList;
use super::navigation::{Place, failed};
use super::rules::{change_row, may_change, scrolling};
use super::signed_in::{ConsoleForm, Visitor, refused};
use crate::error::HttpError;
use holdfast_adapters::texts::Texts;
use holdfast_components::drawing;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::Slot;
use holdfast_domain::component_change::{
    BehaviourGroup, ChangeComparison, ChangeSource, ChangeState, DifferenceDirection,
    DifferenceGroup, GeneratedComparison, Verdict,
};
use holdfast_domain::organization::Permission;
use holdfast_platform::ServiceError;
use holdfast_platform::components::changes::{
    self, ChangeOfficer, ChangeView, NewChange, NewReview, ProposedChange,
};
use holdfast_service::App;

fn officer(visitor: &Visitor) -> ChangeOfficer {
    ChangeOfficer {
        caller: visitor.caller.clone(),
        role: visitor.signed_in.user.role,
        // A session has no bearer token. Its own end is checked with each request.
        token: None,
        identity: visitor.signed_in.user.identity.clone(),
    }
}

fn page_of(id: &str) -> String {
    format!("{PATH}/changes/{id}")
}

/// Shows a change request with its comparison and reviews.
pub async fn show(State(app): State<App>, visitor: Visitor, Path(id): Path<String>) -> Response {
    if let Some(refused) = visitor.refusal(Permission::ReadEvidence) {
        return refused;
    }

    let read = async {
        let change = changes::find(&app, &visitor.caller.org, &id).await?;
        changes::view(&app, change).await
    };
    let change = match read.await {
        Ok(change) => change,
        Err(error) => return failed(error),
    };

    let texts = visitor.texts;
    // Reviewers see the whole request, because they approve all of it and not a summary.
    let body = html! {
        section.card {
            (change_row(&visitor, &change))
            @if change.emergency { p { span.tag.wrong { (texts.text("rules-emergency")) } } }
            @if let Some(probe) = &change.probe {
                p.soft { (probe.reason.as_deref().unwrap_or("–")) }
            }
            h3 { (texts.text("rules-exactly")) }
            pre tabindex="0" { (exactly(&change)) }
        }
        @if let Some(comparison) = &change.comparison {
            section.card {
                h2 { (texts.text("rules-compare-past")) }
                (compared(&visitor, comparison))
            }
            @if let Some(generated) = &comparison.generated {
                section.card {
                    h2 { (texts.text("rules-compare-generated")) }
                    (generated_comparison(texts, generated))
                }
            }
        }
        (actions(&visitor, &change))
    };

    visitor.live_page(
        Place::Rules,
        &LiveList::Rules,
        &texts.text("rules-change"),
        body,
    )
}

/// Returns all that the request would change, for its reviewers. Secrets have their names only.
fn exactly(change: &ChangeView) -> String {
    let mut shown = json!(change.change);
    if let Some(config) = &change.config {
        shown["config"] = config.clone();
    }
    serde_json::to_string_pretty(&shown).unwrap_or_default()
}

/// Renders what the user may do with a request.
fn actions(visitor: &Visitor, change: &ChangeView) -> Markup {
    let texts = visitor.texts;
    let is_open = change.state == ChangeState::Open;
    let page = page_of(change.change_id.as_str());
    let form = |act: &str, button: &'static str, quiet: bool| {
        html! {
            form method="post" action={ (page) "/" (act) } {
                (visitor.token())
                button.quiet[quiet] type="submit" { (texts.text(button)) }
            }
        }
    };

    let may_act = may_change(visitor, change.change.slot());
    // An emergency change still needs reviews after it was applied, so their form stays.
    html! {
        @if visitor.may(Permission::ChangeRules) && (is_open || change.review_due) {
            section.card {
                h2 { (texts.text("rules-review")) }
                form method="post" action={ (page) "/review" } {
                    (visitor.token())
                    div.field {
                        label for="comment" { (texts.text("rules-comment")) }
                        textarea id="comment" name="comment" maxlength="2000" {}
                    }
                    fieldset {
                        legend { (texts.text("rules-review")) }
                    @for (verdict, text) in [(Verdict::Approve, "rules-approve"), (Verdict::Refuse, "rules-refuse"), (Verdict::Comment, "rules-comment")] {
                        label.choice { input type="radio" name="verdict" value=(verdict) required; " " (texts.text(text)) }
                    }
                    }
                    button type="submit" { (texts.text("rules-send-review")) }
                }
            }
        }
        @if is_open && may_act {
            section.card {
                (form("apply", "rules-apply", false))
                @if change.change.activates_rules() { (form("compare", "rules-compare-again", true)) }
                (form("withdraw", "rules-withdraw", true))
            }
        }
    }
}

/// Renders a comparison on past records.
fn compared(visitor: &Visitor, comparison: &ChangeComparison) -> Markup {
    let texts = visitor.texts;
    let numbers = [
        ("compared", comparison.compared),
        ("differing", comparison.differing),
    ];
    html! {
        p.soft {
            (texts.with("console-compared", numbers)) " · " (visitor.moment(comparison.at))
        }
        (past_groups(texts, &comparison.groups))
    }
}

/// Renders differences on past records.
pub fn past_groups(texts: Texts, groups: &[DifferenceGroup]) -> Markup {
    html! {
        @if groups.is_empty() {
            p { (texts.text("rules-no-difference")) }
        } @else {
            (scrolling(texts, &["rules-check", "rules-direction", "rules-count", "rules-before", "rules-after", "rules-example"], html! {
                @for group in groups {
                    @let one = &group.example;
                    tr {
                        td { (group.check) }
                        td { (direction(texts, group.direction)) }
                        td { (group.count) }
                        td { (said(&one.before, one.before_sentence.as_deref())) }
                        td { (said(&one.after, one.after_sentence.as_deref())) }
                        td { code { (one.record_id) } }
                    }
                }
            }))
        }
    }
}

fn generated_comparison(texts: Texts, generated: &GeneratedComparison) -> Markup {
    let numbers = [
        ("asked", generated.asked),
        ("differing", generated.differing),
    ];
    html! {
        p.soft { (texts.with("rules-asked", numbers)) }
        (generated_groups(texts, &generated.groups))
    }
}

/// Renders differences on generated facts, each with its smallest counterexample.
pub fn generated_groups(texts: Texts, groups: &[BehaviourGroup]) -> Markup {
    html! {
        @if groups.is_empty() {
            p { (texts.text("rules-no-difference")) }
        } @else {
            (scrolling(texts, &["rules-check", "rules-direction", "rules-count", "rules-facts", "rules-before", "rules-after"], html! {
                @for group in groups {
                    @let one = &group.counterexample;
                    tr {
                        td { (group.check) }
                        td { (direction(texts, group.direction)) }
                        td { (group.count) }
                        td {
                            (one.base)
                            @for change in &one.changes {
                                br;
                                code { (change.field) ": " (plain(&change.from)) " → " (plain(&change.to)) }
                            }
                        }
                        td { (said(&one.before, one.before_sentence.as_deref())) }
                        td { (said(&one.after, one.after_sentence.as_deref())) }
                    }
                }
            }))
            @for page in groups.iter().flat_map(|group| &group.counterexample.pages) {
                figure.page-drawing {
                    (drawing::svg(page, &texts.with("rules-page", [("number", page.number)])))
                    figcaption { (texts.with("rules-page", [("number", page.number)])) }
                }
            }
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn said(value: &Value, sentence: Option<&str>) -> Markup {
    html! {
        code { (plain(value)) }
        @if let Some(sentence) = sentence { br; (sentence) }
    }
}

fn direction(texts: Texts, direction: DifferenceDirection) -> String {
    texts.text(match direction {
        DifferenceDirection::Stricter => "direction-stricter",
        DifferenceDirection::Looser => "direction-looser",
        DifferenceDirection::Text => "direction-text",
        DifferenceDirection::Other => "direction-other",
    })
}

/// Parses a local time of a form, which is in UTC; none if it is empty.
fn moment(text: &str) -> Result<Option<Timestamp>, ServiceError> {
    if text.is_empty() {
        return Ok(None);
    }

    let wrong = || ServiceError::Malformed(format!("{text} is no time"));
    // Browsers leave the seconds out when they are zero.
    let full = match text.len() {
        16 => format!("{text}:00Z"),
        _ => format!("{text}Z"),
    };
    Timestamp::parse(&full).map(Some).ok_or_else(wrong)
}

/// Requests a change, and leads to the request. Without a reason in the form, it is the name of the act: the policy
/// turned an act of another page into a request.
pub async fn request(app: App, form: &ConsoleForm, change: ProposedChange, act: &str) -> Response {
    let reason = form.value("reason");
    let reason = if reason.is_empty() { act } else { reason };
    let (url, commit) = (form.value("url"), form.value("commit"));
    // Only both together name a source. The form for providers has neither.
    let source = (!url.is_empty() && !commit.is_empty()).then(|| ChangeSource {
        url: url.to_owned(),
        commit: commit.to_owned(),
    });
    let new = NewChange {
        change,
        reason: reason.to_owned(),
        source,
        compare: form.value("compare") == "yes",
        emergency: form.value("emergency") == "yes",
    };

    let officer = officer(&form.visitor);

    // Completes even if the browser goes away.
    let made =
        tokio::spawn(async move { changes::create(&app, &app.management, &officer, new).await });
    match made.await {
        Ok(Ok(change)) => Redirect::to(&page_of(change.change_id.as_str())).into_response(),
        Ok(Err(error)) => failed(error),
        Err(error) => failed(ServiceError::Internal(error.to_string())),
    }
}

/// Requests the activation of a component.
pub async fn activate(
    State(app): State<App>,
    Path((slot, id)): Path<(String, String)>,
    form: ConsoleForm,
) -> Response {
    let Some(slot) = permitted(&form.visitor, &slot) else {
        return refused(form.visitor.texts);
    };

    let effective_at = match moment(form.value("effective_at")) {
        Ok(effective_at) => effective_at,
        Err(error) => return failed(error),
    };
    let change = ProposedChange::Activate {
        slot,
        component_id: id,
        instance: Some(form.value("instance").to_owned()).filter(|name| !name.is_empty()),
        config: None,
        effective_at,
    };

    request(app, &form, change, "").await
}

/// Requests that an activation is rolled back.
pub async fn roll_back(
    State(app): State<App>,
    Path((slot, id)): Path<(String, String)>,
    form: ConsoleForm,
) -> Response {
    let Some(slot) = permitted(&form.visitor, &slot) else {
        return refused(form.visitor.texts);
    };

    let change = ProposedChange::RollBack {
        slot,
        instance: Some(form.value("instance").to_owned()).filter(|name| !name.is_empty()),
        // Without an id the current activation is rolled back, which may be another one than the user saw.
        activation_id: Some(id),
    };
    request(app, &form, change, "").await
}

/// Returns the slot if the user may change it.
fn permitted(visitor: &Visitor, slot: &str) -> Option<Slot> {
    Slot::parse(slot).filter(|slot| may_change(visitor, Some(*slot)))
}

/// Reviews a request. An approval is confirmed by the user.
pub async fn review(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> Response {
    if let Some(refused) = form.visitor.refusal(Permission::ChangeRules) {
        return refused;
    }
    let Some(verdict) = Verdict::parse(form.value("verdict")) else {
        return HttpError::bad_request("verdict is required").into_response();
    };
    // A verdict decides about the request, so the cookie alone is not enough. A comment decides nothing.
    if verdict != Verdict::Comment
        && let Err(asks) = form.confirmed(&app, &page_of(&id)).await
    {
        return asks;
    }

    let new = NewReview {
        verdict,
        comment: Some(form.value("comment").to_owned()),
    };
    answer(changes::review(&app, &officer(&form.visitor), &id, new).await)
}

fn answer(changed: Result<ChangeView, ServiceError>) -> Response {
    match changed {
        Ok(change) => Redirect::to(&page_of(change.change_id.as_str())).into_response(),
        Err(error) => failed(error),
    }
}

/// Makes an approved change, compares it again, or withdraws it.
pub async fn act(
    State(app): State<App>,
    Path((id, act)): Path<(String, String)>,
    form: ConsoleForm,
) -> Response {
    // The permission depends on the slot, which only the stored request knows.
    let change = match changes::find(&app, &form.visitor.caller.org, &id).await {
        Ok(change) => change,
        Err(error) => return failed(error),
    };
    if !may_change(&form.visitor, change.content.change.slot()) {
        return refused(form.visitor.texts);
    }
    // Applying changes which component decides. A comparison or a withdrawal leaves the active one alone.
    if act == "apply"
        && let Err(asks) = form.confirmed(&app, &page_of(&id)).await
    {
        return asks;
    }

    // A comparison runs for up to a minute, and an applied change is put in place on this node after
    // its commit. Neither stops with the browser.
    let officer = officer(&form.visitor);
    let done = tokio::spawn(async move {
        match act.as_str() {
            "apply" => changes::apply(&app, &app.management, &officer, &id).await,
            "compare" => changes::compare(&app, &app.management, &officer, &id).await,
            "withdraw" => changes::withdraw(&app, &officer, &id).await,
            _ => Err(ServiceError::NotFound("Page")),
        }
    });
    match done.await {
        Ok(done) => answer(done),
        Err(error) => failed(ServiceError::Internal(error.to_string())),
    }
}
