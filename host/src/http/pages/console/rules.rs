//! Rules and providers: active components with their activation, and change requests with their reviews.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::frame::{Place, failed};
use super::visitor::Visitor;
use crate::domain::component_change::{ChangeState, RequestedChange, Verdict};
use crate::domain::organization::Permission;
use crate::service::App;
use crate::service::components::changes::{self, ChangeView};
use crate::service::components::{self, ComponentOwner, SlotView};
use crate::texts::Texts;

/// Change requests of the page.
const CHANGES: i64 = 25;

/// Shows slots and change requests.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Response {
    if let Some(refused) = visitor.refusal(Permission::ReadEvidence) {
        return refused;
    }
    let owner = ComponentOwner::from(&visitor.caller);
    let read = async {
        let slots = components::slots(&app, &app.management, &owner).await?;
        let changes = changes::list(&app, &visitor.caller.org, None, CHANGES).await?;
        let policy = changes::policy(&app, &visitor.caller.org).await?;
        Ok((slots, changes, policy))
    };
    let (slots, changes, policy) = match read.await {
        Ok(read) => read,
        Err(error) => return failed(error),
    };
    let texts = visitor.texts;
    let body = html! {
        section.card {
            h2 { (texts.text("console-in-force")) }
            ul.rows {
                @for slot in &slots { li { (slot_row(&visitor, slot)) } }
            }
        }
        section.card {
            h2 { (texts.text("console-requests")) }
            p.soft { (texts.with("console-policy", [("count", i64::from(policy.reviews_required))])) }
            @if changes.is_empty() { p.soft { (texts.text("console-nothing")) } }
            ul.rows {
                @for change in &changes { li { (change_row(&visitor, change)) } }
            }
        }
    };
    visitor.page(Place::Rules, &texts.text("console-rules"), body)
}

fn slot_row(visitor: &Visitor, slot: &SlotView) -> Markup {
    let now = visitor.now;
    let in_force = slot.history.iter().find(|one| {
        one.rolled_back_at.is_none()
            && one.effective_at <= now
            && one.component_id == slot.active.component_id
    });
    let planned = slot
        .history
        .iter()
        .filter(|one| one.rolled_back_at.is_none() && one.effective_at > now);
    html! {
        p { strong { (slot.slot) } " " (slot.active.name) " " (slot.active.version) }
        @if let Some(one) = in_force {
            p.soft {
                (visitor.texts.text("console-since")) " " (visitor.moment(one.effective_at)) " · " (one.activated_by)
                @if let Some(reason) = &one.reason { " · " (reason) }
            }
        }
        @for one in planned {
            p.soft {
                span.tag { (visitor.texts.text("console-planned")) } " " (visitor.moment(one.effective_at))
                @if let Some(instance) = &one.instance { " · " (instance) }
                @if let Some(reason) = &one.reason { " · " (reason) }
            }
        }
        @for instance in &slot.instances {
            p.soft { (instance.instance) ": " (instance.name) " " (instance.version) }
        }
        @if let Some(problem) = &slot.problem { p.problem { (problem) } }
    }
}

fn change_row(visitor: &Visitor, change: &ChangeView) -> Markup {
    let texts = visitor.texts;
    let approvals = [
        ("given", i64::try_from(change.approvals).unwrap_or(i64::MAX)),
        (
            "required",
            i64::try_from(change.approvals_required).unwrap_or(i64::MAX),
        ),
    ];
    html! {
        p {
            span.tag { (state(texts, change.state)) } " "
            strong {
                @match &change.change {
                    RequestedChange::Activate { slot, component, .. } => { (slot) ": " (component) }
                    RequestedChange::RollBack { slot, .. } => { (slot) ": " (texts.text("console-roll-back")) }
                    RequestedChange::Policy { .. } => { (texts.text("console-policy-change")) }
                }
            }
        }
        p { (change.reason) }
        p.soft { (change.requested_by) " · " (visitor.moment(change.requested_at)) }
        @if let Some(source) = &change.source { p.soft { (source.url) " · " code { (source.commit) } } }
        p.soft { (texts.with("console-approvals", approvals)) }
        @for review in &change.reviews {
            p.soft {
                span.tag.wrong[review.verdict == Verdict::Refuse || review.void.is_some()] { (verdict(texts, review.verdict)) }
                " " (review.by)
                @if let Some(comment) = &review.comment { ": " (comment) }
            }
        }
        @if let Some(comparison) = &change.comparison {
            @let numbers = [("compared", comparison.compared), ("differing", comparison.differing)];
            p.soft { (texts.with("console-compared", numbers)) }
        }
    }
}

fn state(texts: Texts, state: ChangeState) -> String {
    texts.text(match state {
        ChangeState::Open => "change-open",
        ChangeState::Applied => "change-applied",
        ChangeState::Refused => "change-refused",
        ChangeState::Withdrawn => "change-withdrawn",
        ChangeState::Expired => "change-expired",
        ChangeState::Outdated => "change-outdated",
    })
}

fn verdict(texts: Texts, verdict: Verdict) -> String {
    texts.text(match verdict {
        Verdict::Approve => "review-approve",
        Verdict::Refuse => "review-refuse",
        Verdict::Comment => "review-comment",
    })
}
