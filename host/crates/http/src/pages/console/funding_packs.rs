//! Funding packs: those that the organization publishes as a lender, and those of lenders that it follows.

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::PATH;
use super::changes::{moment, request};
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::navigation::{PageResult, Place};
use super::signed_in::{ConsoleForm, Visitor};
use super::users::needs_approval;
use crate::error::HttpError;
use crate::middleware::extract::valid;
use holdfast_domain::component::Slot;
use holdfast_domain::organization::Permission;
use holdfast_platform::ServiceError;
use holdfast_platform::components::changes::ProposedChange;
use holdfast_platform::components::{self, ComponentOwner, ComponentScope};
use holdfast_service::App;
use holdfast_service::funding::packs::{
    self, NewPack, NewVersion, PackInvitation, PackSubscription, PackView,
};

/// Components to choose from.
const COMPONENTS: i64 = 100;

/// Values and names of the organization's components for funding rules.
type ComponentChoices = Vec<(String, String)>;

fn list_address() -> String {
    format!("{PATH}/funding")
}

fn address(id: impl std::fmt::Display, act: &str) -> String {
    format!("{PATH}/funding/{id}/{act}")
}

/// Lists the packs.
pub async fn list(State(app): State<App>, visitor: Visitor) -> PageResult {
    visitor.require(Permission::ReadEvidence)?;

    list_page(&app, &visitor, None).await
}

async fn list_page(app: &App, visitor: &Visitor, refused: Option<&RefusedForm>) -> PageResult {
    let found = packs::list(app, &visitor.caller).await?.packs;
    let (own, of_lenders): (Vec<_>, Vec<_>) = found.into_iter().partition(|pack| pack.is_own);
    let choices = choices(app, visitor).await?;

    let (texts, changes) = (visitor.texts, visitor.may(Permission::ChangeRules));
    let body = html! {
        p { (texts.text("funding-hint")) }
        @if changes { (visitor.identity_first(&list_address())) }
        section.card {
            h2 { (texts.text("funding-of-lenders")) }
            @if of_lenders.is_empty() { p.soft { (texts.text("funding-no-invitation")) } }
            ul.rows { @for pack in &of_lenders { li { (followed(visitor, pack, changes, refused)) } } }
        }
        section.card {
            h2 { (texts.text("funding-own")) }
            @if own.is_empty() { p.soft { (texts.text("funding-own-none")) } }
            ul.rows { @for pack in &own { li { (published(visitor, pack, &choices, refused)) } } }
        }
        @if changes { (new_pack(visitor, &choices, refused)) }
        p { a href={ (PATH) "/rules" } { (texts.text("console-rules")) } }
    };
    let title = texts.text("funding-packs");
    Ok(visitor.form_page(Place::Rules, None, &title, body, refused))
}

/// Returns the components that a version can have.
async fn choices(app: &App, visitor: &Visitor) -> Result<ComponentChoices, ServiceError> {
    let owner = ComponentOwner::from(&visitor.caller);
    let (found, _) = components::list(app, &owner, Some(Slot::Funding), 1, COMPONENTS).await?;
    let own = found
        .into_iter()
        .filter(|one| matches!(one.scope, ComponentScope::Organization));
    let named = own.map(|one| {
        let name = format!("{} {}", one.name, one.version);
        (one.component_id.to_string(), name)
    });
    Ok(named.collect())
}

fn heading(visitor: &Visitor, pack: &PackView) -> Markup {
    let texts = visitor.texts;
    html! {
        p { strong { (pack.name) } " " code { (pack.pack_id) } }
        @for version in pack.versions.iter().rev() {
            p.soft {
                (texts.with("template-version", [("number", version.version)])) " · "
                (version.description) " · " (version.component.name) " " (version.component.version) " · "
                (texts.text("console-since")) " " (visitor.moment(version.effective_at))
                @if version.effective_at > visitor.now { " " span.tag { (texts.text("console-planned")) } }
                @if version.samples > 0 {
                    " · " (texts.with("funding-sample-count", [("count", version.samples)]))
                }
            }
        }
    }
}

/// Renders a pack of a lender, with the form that has the contracts checked by it.
fn followed(
    visitor: &Visitor,
    pack: &PackView,
    changes: bool,
    refused: Option<&RefusedForm>,
) -> Markup {
    let texts = visitor.texts;
    let action = address(&pack.pack_id, "subscription");
    let form = FormView::new(texts, &action, refused).with_ids(&pack.pack_id);
    let follow = (String::new(), texts.text("funding-follow"));
    let pins = pack.versions.iter().map(|one| {
        let stay = texts.with("funding-stay", [("version", one.version)]);
        (one.version.to_string(), stay)
    });
    let ways: Vec<(String, String)> = std::iter::once(follow).chain(pins).collect();
    let pinned = pack.pinned_version.map(|version| version.to_string());

    html! {
        (heading(visitor, pack))
        p.soft { (pack.lender.name) " " code { (pack.lender.organization_id) } }
        @if pack.subscribed {
            p {
                span.tag { (texts.text("console-active")) } " "
                @match pack.pinned_version {
                    Some(version) => (texts.with("funding-stays", [("version", version)])),
                    None => (texts.text("funding-follows")),
                }
            }
        }
        @if changes {
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                (form.select("version", &texts.text("funding-way"), &ways, pinned.as_deref().unwrap_or_default()))
                div.actions {
                    button type="submit" name="act" value="follow" { (texts.text("funding-subscribe")) }
                    @if pack.subscribed {
                        button.quiet type="submit" name="act" value="end" { (texts.text("funding-end")) }
                    }
                }
            }
        }
    }
}

/// Renders a pack of the organization, with the forms for another version and an invitation.
fn published(
    visitor: &Visitor,
    pack: &PackView,
    choices: &ComponentChoices,
    refused: Option<&RefusedForm>,
) -> Markup {
    let texts = visitor.texts;
    let of = |act: &str| address(&pack.pack_id, act);
    let (publish, invite) = (of("versions"), of("invitations"));

    let version = FormView::new(texts, &publish, refused).with_ids(&pack.pack_id);
    let invitation =
        FormView::new(texts, &invite, refused).with_ids(format!("invite-{}", pack.pack_id));

    html! {
        (heading(visitor, pack))
        @if visitor.may(Permission::ChangeRules) {
            details open[version.is_refused()] {
                summary { (texts.text("funding-publish-version")) }
                form method="post" action=(publish) {
                    (visitor.token())
                    (version.summary())
                    (version_fields(&version, choices))
                    button type="submit" { (texts.text("funding-publish-version")) }
                }
            }
            details open[invitation.is_refused()] {
                summary { (texts.text("funding-invite")) }
                form method="post" action=(invite) {
                    (visitor.token())
                    (invitation.summary())
                    (invitation.text(&TextField {
                        limit: 64,
                        ..TextField::required("organization_id", &texts.text("funding-organization"))
                    }))
                    button type="submit" { (texts.text("funding-invite")) }
                }
            }
        }
    }
}

fn new_pack(
    visitor: &Visitor,
    choices: &ComponentChoices,
    refused: Option<&RefusedForm>,
) -> Markup {
    let (texts, action) = (visitor.texts, list_address());
    let form = FormView::new(texts, &action, refused);
    html! {
        details.card open[form.is_refused()] {
            summary { (texts.text("funding-publish")) }
            @if choices.is_empty() {
                p { (texts.text("funding-component-first")) }
            } @else {
                form method="post" action=(action) {
                    (visitor.token())
                    (form.summary())
                    (form.text(&TextField {
                        limit: 100,
                        ..TextField::required("name", &texts.text("rules-name"))
                    }))
                    (version_fields(&form, choices))
                    button type="submit" { (texts.text("funding-publish")) }
                }
            }
        }
    }
}

/// Renders the fields of a version.
fn version_fields(form: &FormView<'_>, choices: &ComponentChoices) -> Markup {
    let texts = form.texts;
    html! {
        (form.select("component_id", &texts.text("funding-component"), choices, ""))
        (form.text(&TextField {
            limit: 2000,
            ..TextField::required("description", &texts.text("funding-description"))
        }))
        (form.text(&TextField {
            kind: "datetime-local",
            ..TextField::new("effective_at", &texts.text("rules-effective"))
        }))
        (form.lines("samples", &texts.text("funding-samples"), 2, ""))
    }
}

/// Returns the members of a version in a form, or the form with its problem.
fn version_of(form: &ConsoleForm) -> Result<Value, RefusedForm> {
    let Ok(effective_at) = moment(form.value("effective_at")) else {
        let problem = form.visitor.texts.text("problem-date");
        return Err(form.refused_at("effective_at", problem));
    };
    let samples: Vec<&str> = form.value("samples").split_whitespace().collect();
    Ok(json!({
        "component_id": form.value("component_id"), "description": form.value("description"),
        "effective_at": effective_at, "samples": samples,
    }))
}

/// Requires a user who may change rules and has proven their identity: packs decide which contracts are funded.
async fn permitted(app: &App, form: &ConsoleForm) -> Result<(), Response> {
    form.visitor.require(Permission::ChangeRules)?;
    form.confirmed(app, &list_address()).await
}

/// Leads back to the list, or shows it with the problems of the form.
async fn after(app: &App, form: &ConsoleForm, done: Result<PackView, HttpError>) -> PageResult {
    match done {
        Ok(_) => Ok(Redirect::to(&list_address()).into_response()),
        Err(error) => list_page(app, &form.visitor, Some(&form.refused(error)?)).await,
    }
}

/// Publishes a pack with its first version.
pub async fn publish(State(app): State<App>, form: ConsoleForm) -> PageResult {
    permitted(&app, &form).await?;

    let mut body = match version_of(&form) {
        Ok(body) => body,
        Err(refused) => return list_page(&app, &form.visitor, Some(&refused)).await,
    };
    body["name"] = form.value("name").into();
    let new = match valid::<NewPack>(body) {
        Ok(new) => new,
        Err(error) => return after(&app, &form, Err(error)).await,
    };
    let change = ProposedChange::PublishFundingPack {
        pack_id: None,
        name: Some(new.name.clone()),
        version: new.version.clone(),
    };
    let published = packs::publish(&app, &form.visitor.caller, new, &unrecorded()).await;
    done_or_asked(&app, &form, published, change, "funding-publish").await
}

/// Leads on after an act, or requests it where the policy requires that others agree.
async fn done_or_asked(
    app: &App,
    form: &ConsoleForm,
    done: Result<PackView, ServiceError>,
    change: ProposedChange,
    act: &'static str,
) -> PageResult {
    if !needs_approval(&done) {
        return after(app, form, done.map_err(HttpError::from)).await;
    }

    let act = form.visitor.texts.text(act);
    match request(app.clone(), form, change, &act).await {
        Ok(answer) => Ok(answer),
        Err(error) => after(app, form, Err(error.into())).await,
    }
}

/// Publishes a further version of a pack.
pub async fn publish_version(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    permitted(&app, &form).await?;

    let body = match version_of(&form) {
        Ok(body) => body,
        Err(refused) => return list_page(&app, &form.visitor, Some(&refused)).await,
    };
    let new = match valid::<NewVersion>(body) {
        Ok(new) => new,
        Err(error) => return after(&app, &form, Err(error)).await,
    };
    let change = ProposedChange::PublishFundingPack {
        pack_id: Some(id.clone()),
        name: None,
        version: new.clone(),
    };
    let caller = &form.visitor.caller;
    let published = packs::publish_version(&app, caller, &id, new, &unrecorded()).await;
    done_or_asked(&app, &form, published, change, "funding-publish").await
}

/// Invites an organization to a pack.
pub async fn invite(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    permitted(&app, &form).await?;

    let invited = async {
        let organization = json!({ "organization_id": form.value("organization_id") });
        let invitation = valid::<PackInvitation>(organization)?;
        let caller = &form.visitor.caller;
        Ok::<_, HttpError>(packs::invite(&app, caller, &id, invitation, &unrecorded()).await?)
    };
    let invited = invited.await;
    after(&app, &form, invited).await
}

/// Follows a pack, stays at one of its versions, or ends the subscription.
pub async fn subscribe(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    permitted(&app, &form).await?;

    let version = Some(form.value("version")).filter(|version| !version.is_empty());
    // A text that is no number is no version, and none has the number 0.
    let version = version.map(|version| version.parse::<u32>().unwrap_or_default());
    let subscription = json!({ "subscribed": form.value("act") != "end", "version": version });
    let subscription = match valid::<PackSubscription>(subscription) {
        Ok(subscription) => subscription,
        Err(error) => return after(&app, &form, Err(error)).await,
    };
    let change = ProposedChange::SubscribeFundingPack {
        pack_id: id.clone(),
        subscription: subscription.clone(),
    };
    let caller = &form.visitor.caller;
    let subscribed = packs::subscribe(&app, caller, &id, subscription, &unrecorded()).await;
    done_or_asked(&app, &form, subscribed, change, "funding-subscribe").await
}
