//! Change requests: making one, its comparison, reviews by other people, and the change itself.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::json;

use super::PATH;
use super::comparison::{generated_groups, past_groups};
use super::forms::{FormView, RefusedForm};
use super::live::LiveList;
use super::navigation::{PageResult, Place};
use super::rules::{change_row, change_title, component_again, may_change, slot_page};
use super::signed_in::{ConsoleForm, Visitor, refused};
use super::sure::SensitiveAct;
use holdfast_adapters::texts::Texts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::Slot;
use holdfast_domain::component_change::{
    ChangeComparison, ChangeSource, ChangeState, GeneratedComparison, Verdict,
};
use holdfast_domain::organization::Permission;
use holdfast_platform::ServiceError;
use holdfast_platform::components::changes::{
    self, ChangeOfficer, ChangeView, NewChange, NewReview, ProposedChange,
};
use holdfast_platform::components::{self, ComponentOwner, ComponentView};
use holdfast_service::App;

/// Returns the person who asks for, or makes, a change that takes two people.
pub fn officer(visitor: &Visitor) -> ChangeOfficer {
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
pub async fn show(State(app): State<App>, visitor: Visitor, Path(id): Path<String>) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    shown(&app, &visitor, &id, None).await
}

async fn shown(
    app: &App,
    visitor: &Visitor,
    id: &str,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let change = changes::find(app, &visitor.caller.org, id).await?;
    // Senders see the requests that they may make.
    if !visitor.may(Permission::ReadEvidence) {
        visitor.require(change.content.change.permission())?;
    }
    let change = changes::view(app, change).await?;

    let texts = visitor.texts;
    // Reviewers see the whole request, because they approve all of it and not a summary.
    let body = html! {
        section.card {
            (change_row(visitor, &change))
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
                (compared(visitor, comparison))
            }
            @if let Some(generated) = &comparison.generated {
                section.card {
                    h2 { (texts.text("rules-compare-generated")) }
                    (generated_comparison(texts, generated))
                }
            }
        }
        (actions(visitor, &change, refused))
    };

    Ok(visitor.form_page(
        Place::Rules,
        Some(&LiveList::Rules).filter(|list| list.is_open_to(visitor)),
        &texts.text("rules-change"),
        body,
        refused,
    ))
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
fn actions(visitor: &Visitor, change: &ChangeView, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let is_open = change.state == ChangeState::Open;
    let page = page_of(change.change_id.as_str());
    let form = |act: &str, button: &'static str, kind: &str| {
        html! {
            form method="post" action={ (page) "/" (act) } {
                (visitor.token())
                button class=(kind) type="submit" { (texts.text(button)) }
            }
        }
    };
    let action = format!("{page}/review");
    let review = FormView::new(texts, &action, refused);
    let verdict = review.value("verdict", "");

    let may_act = visitor.may(change.change.permission());
    // An emergency change still needs reviews after it was applied, so their form stays.
    html! {
        @if visitor.may(Permission::ChangeRules) && (is_open || change.review_due) {
            section.card {
                h2 { (texts.text("rules-review")) }
                (visitor.identity_first(&page))
                form method="post" action=(action) {
                    (visitor.token())
                    (review.summary())
                    (review.lines("comment", &texts.text("rules-comment"), 4, ""))
                    fieldset id="verdict" tabindex="-1" aria-describedby=[review.described("verdict")] {
                        legend { (texts.text("rules-review")) }
                        (review.problem("verdict"))
                    @for (one, text) in [(Verdict::Approve, "rules-approve"), (Verdict::Refuse, "rules-refuse"), (Verdict::Comment, "rules-comment")] {
                        label.choice {
                            input type="radio" name="verdict" value=(one) required checked[one.as_str() == verdict];
                            " " (texts.text(text))
                        }
                    }
                    }
                    button type="submit" { (texts.text("rules-send-review")) }
                }
            }
        }
        @if is_open && may_act {
            section.card {
                (form("apply", "rules-apply", ""))
                @if change.change.activates_rules() { (form("compare", "rules-compare-again", "quiet")) }
            }
            section.card {
                h2 { (texts.text("rules-withdraw")) }
                p { (texts.text("sure-rules-withdraw")) }
                (form("withdraw", "rules-withdraw", "danger"))
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

/// Parses a local time of a form, which is in UTC; none if it is empty.
pub fn moment(text: &str) -> Result<Option<Timestamp>, ServiceError> {
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
pub async fn request(
    app: App,
    form: &ConsoleForm,
    change: ProposedChange,
    act: &str,
) -> Result<Response, ServiceError> {
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
    let made = made
        .await
        .map_err(|error| ServiceError::Internal(error.to_string()))?;
    Ok(to_page_of(&made?))
}

/// Requests the activation of a component.
pub async fn activate(
    State(app): State<App>,
    Path((slot, id)): Path<(String, String)>,
    form: ConsoleForm,
) -> PageResult {
    let slot = permitted(&form.visitor, &slot)?;

    let Ok(effective_at) = moment(form.value("effective_at")) else {
        let problem = form.visitor.texts.text("problem-date");
        let refused = form.refused_at("effective_at", problem);
        return component_again(&app, &form.visitor, &id, &refused).await;
    };
    let change = ProposedChange::Activate {
        slot,
        component_id: id.clone(),
        instance: Some(form.value("instance").to_owned()).filter(|name| !name.is_empty()),
        config: None,
        effective_at,
    };

    match request(app.clone(), &form, change, "").await {
        Ok(answer) => Ok(answer),
        Err(error) => {
            let source = [("source".to_owned(), "url".to_owned())];
            let refused = form.refused_with(error, &source)?;
            component_again(&app, &form.visitor, &id, &refused).await
        }
    }
}

/// Requests that an activation is rolled back.
pub async fn roll_back(
    State(app): State<App>,
    Path((slot, id)): Path<(String, String)>,
    form: ConsoleForm,
) -> PageResult {
    let slot = permitted(&form.visitor, &slot)?;

    let component = activated(&app, &form.visitor, slot, &id).await?;
    let texts = form.visitor.texts;
    // Before the question, which would be answered for nothing.
    if !(1..=500).contains(&form.value("reason").chars().count()) {
        let refused = form.refused_at("reason", texts.text("envelopes-reason"));
        return slot_page(&app, &form.visitor, slot, Some(&refused)).await;
    }

    form.meant(&SensitiveAct {
        label: texts.text("console-roll-back"),
        objects: vec![format!("{slot}: {component}")],
        consequence: texts.text("sure-rules-roll-back"),
        is_typed: false,
        back: format!("{PATH}/rules/{slot}"),
    })?;

    let change = ProposedChange::RollBack {
        slot,
        instance: Some(form.value("instance").to_owned()).filter(|name| !name.is_empty()),
        // Without an id the current activation is rolled back, which may be another one than the user saw.
        activation_id: Some(id),
    };
    match request(app.clone(), &form, change, "").await {
        Ok(answer) => Ok(answer),
        Err(error) => {
            let refused = form.refused(error)?;
            slot_page(&app, &form.visitor, slot, Some(&refused)).await
        }
    }
}

/// Returns the name of the component that an activation put in place.
async fn activated(
    app: &App,
    visitor: &Visitor,
    slot: Slot,
    id: &str,
) -> Result<String, ServiceError> {
    let owner = ComponentOwner::from(&visitor.caller);
    let slots = components::slots(app, &app.management, &owner).await?;
    let history = slots.into_iter().filter(|one| one.slot == slot);
    let mut history = history.flat_map(|one| one.history);
    let activation = history.find(|one| one.activation_id.as_str() == id);
    let activation = activation.ok_or(ServiceError::NotFound("Activation"))?;
    let component = components::get(app, &owner, activation.component_id.as_str()).await?;
    let component = ComponentView::from(component);

    Ok(format!("{} {}", component.name, component.version))
}

/// Returns the slot if the user may change it.
fn permitted(visitor: &Visitor, slot: &str) -> Result<Slot, Response> {
    let slot = Slot::parse(slot).filter(|slot| may_change(visitor, *slot));
    slot.ok_or_else(|| refused(visitor.texts))
}

/// Reviews a request. An approval is confirmed by the user.
pub async fn review(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::ChangeRules)?;
    let Some(verdict) = Verdict::parse(form.value("verdict")) else {
        let problem = form.visitor.texts.text("problem-required");
        let refused = form.refused_at("verdict", problem);
        return shown(&app, &form.visitor, &id, Some(&refused)).await;
    };
    // A verdict decides about the request, so the cookie alone is not enough. A comment decides nothing.
    if verdict != Verdict::Comment {
        form.confirmed(&app, &page_of(&id)).await?;
    }

    let new = NewReview {
        verdict,
        comment: Some(form.value("comment").to_owned()),
    };
    match changes::review(&app, &officer(&form.visitor), &id, new).await {
        Ok(change) => Ok(to_page_of(&change)),
        Err(error) => {
            let refused = form.refused(error)?;
            shown(&app, &form.visitor, &id, Some(&refused)).await
        }
    }
}

fn to_page_of(change: &ChangeView) -> Response {
    Redirect::to(&page_of(change.change_id.as_str())).into_response()
}

/// Makes an approved change, compares it again, or withdraws it.
pub async fn act(
    State(app): State<App>,
    Path((id, act)): Path<(String, String)>,
    form: ConsoleForm,
) -> PageResult {
    // The permission depends on the change, which only the stored request knows.
    let change = changes::find(&app, &form.visitor.caller.org, &id).await?;
    form.visitor.require(change.content.change.permission())?;
    // Applying changes which component decides. A comparison or a withdrawal leaves the active one alone.
    if act == "apply" {
        form.confirmed(&app, &page_of(&id)).await?;
    }

    let texts = form.visitor.texts;
    let sure = match act.as_str() {
        "apply" => Some(("rules-apply", "sure-rules-apply")),
        "withdraw" => Some(("rules-withdraw", "sure-rules-withdraw")),
        _ => None,
    };
    if let Some((label, consequence)) = sure {
        form.meant(&SensitiveAct {
            label: texts.text(label),
            objects: vec![change_title(texts, &change.content.change)],
            consequence: texts.text(consequence),
            is_typed: false,
            back: page_of(&id),
        })?;
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
    Ok(to_page_of(&done.await??))
}
