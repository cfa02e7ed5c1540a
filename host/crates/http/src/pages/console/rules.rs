//! Rules and providers: slots with their activations, components, comparisons, and change requests.

use axum::extract::{Path, Query, Request, State};
use axum::response::{IntoResponse as _, Redirect};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::PATH;
use super::comparison::{generated_groups, past_groups};
use super::effective;
use super::forms::{FormView, RefusedForm, TextField};
use super::live::LiveList;
use super::navigation::{PageResult, Place, export, role as role_name};
use super::signed_in::{ConsoleForm, Visitor};
use crate::error::HttpError;
use crate::middleware::extract::MultipartForm;
use crate::middleware::limits;
use holdfast_adapters::texts::Texts;
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::component_change::{ChangeState, RequestedChange, Verdict, permission_of};
use holdfast_domain::organization::Permission;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_platform::components::attestations::{self, OfferedBundles};
use holdfast_platform::components::behaviour::{self, DiffRequest};
use holdfast_platform::components::changes::{self, ChangeView};
use holdfast_platform::components::live_shadow;
use holdfast_platform::components::shadow::{self, ReplayRequest};
use holdfast_platform::components::{
    self, ActivationView, ComponentOwner, ComponentUpload, ComponentView, SlotView, UPLOAD_LIMIT,
};
use holdfast_platform::{Problem, ProblemKind, ServiceError};
use holdfast_service::App;

/// Change requests and components of a page.
const CHANGES: i64 = 25;
const COMPONENTS: i64 = 100;

/// Whether the user may change a slot.
pub fn may_change(visitor: &Visitor, slot: Slot) -> bool {
    visitor.may(permission_of(Some(slot)))
}

#[derive(Deserialize)]
pub struct RulesQuery {
    month: Option<String>,
}

/// Shows slots, a month of effective dates, and change requests.
pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<RulesQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEvidence)?;

    shown(&app, &visitor, query.month.as_deref(), None).await
}

async fn shown(
    app: &App,
    visitor: &Visitor,
    month: Option<&str>,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let owner = ComponentOwner::from(&visitor.caller);
    let slots = components::slots(app, &app.management, &owner).await?;
    let changes = changes::list(app, &visitor.caller.org, None, CHANGES).await?;
    let policy = changes::policy(app, &visitor.caller.org).await?;

    let texts = visitor.texts;
    let body = html! {
        section.card {
            h2 { (texts.text("console-in-force")) }
            ul.rows {
                @for slot in &slots { li { (slot_row(visitor, slot)) } }
            }
            (export(texts, "components.csv"))
        }
        (effective::calendar(visitor, month, &slots))
        section.card {
            h2 { (texts.text("console-requests")) }
            p.soft { (texts.with("console-policy", [("count", i64::from(policy.reviews_required))])) }
            @if changes.is_empty() { p.soft { (texts.text("empty-changes")) } }
            ul.rows {
                @for change in &changes { li { (change_row(visitor, change)) } }
            }
            (export(texts, "changes.csv"))
        }
        @if visitor.may(Permission::ChangeRules) { (upload_form(visitor, refused)) }
        p { a href={ (PATH) "/funding" } { (texts.text("funding-packs")) } }
    };

    Ok(visitor.form_page(
        Place::Rules,
        Some(&LiveList::Rules),
        &texts.text("console-rules"),
        body,
        refused,
    ))
}

fn upload_form(visitor: &Visitor, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = format!("{PATH}/components");
    let form = FormView::new(texts, &action, refused);

    html! {
        details.card open[form.is_refused()] {
            summary { (texts.text("rules-upload")) }
            form method="post" action=(action) enctype="multipart/form-data" {
                (visitor.token())
                (form.summary())
                (form.file(&texts.text("rules-file"), Some(".wasm,application/wasm")))
                (form.text(&TextField {
                    limit: 64,
                    pattern: Some("[a-z0-9\\-]+"),
                    ..TextField::required("name", &texts.text("rules-name"))
                }))
                (form.text(&TextField {
                    limit: 64,
                    ..TextField::required("version", &texts.text("rules-version"))
                }))
                (form.text(&TextField {
                    limit: 200,
                    ..TextField::new("signature", &texts.text("rules-signature"))
                }))
                button type="submit" { (texts.text("rules-upload")) }
            }
        }
    }
}

/// Shows a slot: its active component, history, candidates and live comparison.
pub async fn slot(
    State(app): State<App>,
    visitor: Visitor,
    Path(slot): Path<String>,
) -> PageResult {
    visitor.require(Permission::ReadEvidence)?;
    let slot = Slot::parse(&slot).ok_or(ServiceError::NotFound("Slot"))?;

    slot_page(&app, &visitor, slot, None).await
}

/// Shows a slot; again with the problems of a refused form.
pub async fn slot_page(
    app: &App,
    visitor: &Visitor,
    slot: Slot,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let owner = ComponentOwner::from(&visitor.caller);
    let slots = components::slots(app, &app.management, &owner).await?;
    let (found, _) = components::list(app, &owner, Some(slot), 1, COMPONENTS).await?;
    // A slot that never had a candidate has no comparison, and that is no error of its page.
    let live = match live_shadow::view(app, &owner, &visitor.caller.org, slot).await {
        Ok(live) => Some(live),
        Err(ServiceError::Problem(Problem {
            kind: ProblemKind::NotFound,
            ..
        })) => None,
        Err(error) => return Err(error.into()),
    };
    let shown = slots.into_iter().find(|one| one.slot == slot);
    let shown = shown.ok_or(ServiceError::NotFound("Slot"))?;

    let texts = visitor.texts;
    let body = html! {
        section.card { (slot_row(visitor, &shown)) }
        @if let Some(live) = &live {
            section.card {
                h2 { (texts.text("rules-live")) }
                p { (live.candidate.name) " " (live.candidate.version) }
                p.soft {
                    @let numbers = [("compared", live.compared), ("differing", live.differing)];
                    (texts.with("console-compared", numbers)) " · " (visitor.moment(live.started_at))
                }
            }
        }
        section.card {
            h2 { (texts.text("rules-components")) }
            ul.rows {
                @for one in &found {
                    li {
                        a href={ (PATH) "/components/" (one.component_id) } { (one.name) " " (one.version) }
                        @if one.component_id == shown.active.component_id { " " span.tag { (texts.text("console-active")) } }
                        p.soft { (one.uploaded_by) " · " (visitor.moment(one.created_at)) }
                    }
                }
            }
        }
        section.card {
            h2 { (texts.text("rules-history")) }
            ul.rows {
                @for one in &shown.history { li { (activation_row(visitor, one, refused)) } }
            }
        }
    };

    Ok(visitor.form_page(
        Place::Rules,
        Some(&LiveList::Rules),
        slot.as_str(),
        body,
        refused,
    ))
}

fn activation_row(
    visitor: &Visitor,
    one: &ActivationView,
    refused: Option<&RefusedForm>,
) -> Markup {
    let texts = visitor.texts;
    let activation = one.activation_id.as_str();
    let action = format!("{PATH}/rules/{}/roll-back/{activation}", one.slot);
    let form = FormView::new(texts, &action, refused).with_ids(activation);
    html! {
        a href={ (PATH) "/components/" (one.component_id) } { code { (one.component_id) } }
        p.soft {
            (texts.text("console-since")) " " (visitor.moment(one.effective_at)) " · " (one.activated_by)
            @if let Some(instance) = &one.instance { " · " (instance) }
            @if let Some(reason) = &one.reason { " · " (reason) }
        }
        @if let Some(at) = one.rolled_back_at {
            p.soft { span.tag.wrong { (texts.text("rules-rolled-back")) } " " (visitor.moment(at)) }
        } @else if may_change(visitor, one.slot) {
            details open[form.is_refused()] {
                summary { (texts.text("console-roll-back")) }
                form method="post" action=(action) {
                    (visitor.token())
                    (form.summary())
                    @if let Some(instance) = &one.instance { input type="hidden" name="instance" value=(instance); }
                    (form.text(&TextField::required("reason", &texts.text("console-reason"))))
                    button.danger type="submit" { (texts.text("rules-request-change")) }
                }
            }
        }
    }
}

/// Report of a comparison that the user asked for.
enum ShownReport {
    None,
    Past(Box<shadow::ShadowReport>),
    Generated(Box<holdfast_components::behaviour::BehaviourDiff>),
}

/// Shows a component.
pub async fn component(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> PageResult {
    visitor.require(Permission::ReadEvidence)?;
    component_page(&app, &visitor, &id, &ShownReport::None, None).await
}

/// Shows a component with a refused request for its activation.
pub async fn component_again(
    app: &App,
    visitor: &Visitor,
    id: &str,
    refused: &RefusedForm,
) -> PageResult {
    component_page(app, visitor, id, &ShownReport::None, Some(refused)).await
}

async fn component_page(
    app: &App,
    visitor: &Visitor,
    id: &str,
    report: &ShownReport,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let owner = ComponentOwner::from(&visitor.caller);
    let component = ComponentView::from(components::get(app, &owner, id).await?);
    let said = attestations::list(app, &owner, id).await?;
    let texts = visitor.texts;
    let action = format!("{PATH}/components/{id}/compare");
    // Facts can be generated neither for a provider nor for documents, so these have no comparison.
    let body = html! {
        section.card {
            p { strong { (component.slot) } " " (component.version) }
            p.soft { (component.uploaded_by) " · " (visitor.moment(component.created_at)) }
            p.soft { "SHA-256 " code { (component.sha256) } }
            @if let Some(publisher) = &component.signed_by { p { (texts.text("rules-signed-by")) " " (publisher) } }
            @for one in &said {
                p.soft {
                    (one.publisher.as_deref().or(one.identity.as_deref()).unwrap_or("–"))
                    @if let Some(kind) = &one.predicate_type { " · " (kind) }
                }
            }
            @let run = [("count", component.conformance.vectors), ("own", component.conformance.own_vectors)];
            p.soft { (texts.with("rules-vectors", run)) }
            @if behaviour::can_generate(component.slot) {
                @for (kind, text) in [("generated", "rules-compare-generated"), ("past", "rules-compare-past")] {
                    form method="post" action=(action) {
                        (visitor.token())
                        input type="hidden" name="kind" value=(kind);
                        button.quiet type="submit" { (texts.text(text)) }
                    }
                }
            }
        }
        @match report {
            ShownReport::None => {}
            ShownReport::Past(report) => section.card {
                h2 { (texts.text("rules-compare-past")) }
                p { (named(&report.active)) " → " (component.name) " " (component.version) }
                @let numbers = [("compared", report.compared), ("differing", report.differing)];
                p.soft { (texts.with("console-compared", numbers)) }
                (past_groups(texts, &report.groups))
            },
            ShownReport::Generated(diff) => section.card {
                h2 { (texts.text("rules-compare-generated")) }
                p { (named(&diff.before)) " → " (named(&diff.after)) }
                @for function in &diff.functions {
                    h3 { (function.function) }
                    @let asked = function.stopped_after.unwrap_or(function.asked.all());
                    p.soft { (texts.with("rules-asked", [("asked", asked), ("differing", function.differing)])) }
                    (generated_groups(texts, &function.groups))
                }
            },
        }
        @if may_change(visitor, component.slot) { (activation_form(visitor, &component, refused)) }
    };

    Ok(visitor.form_page(Place::Rules, None, &component.name, body, refused))
}

fn named(identity: &ComponentIdentity) -> Markup {
    html! { (identity.name) " " (identity.version) }
}

fn activation_form(
    visitor: &Visitor,
    component: &ComponentView,
    refused: Option<&RefusedForm>,
) -> Markup {
    let texts = visitor.texts;
    let (slot, id) = (component.slot, &component.component_id);
    let action = format!("{PATH}/rules/{slot}/activate/{id}");
    let form = FormView::new(texts, &action, refused);

    // The API requires the source of rules, and the instance of a provider.
    html! {
        section.card {
            h2 { (texts.text("rules-request-activation")) }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                (form.text(&TextField::required("reason", &texts.text("console-reason"))))
                @if component.slot.is_provider() {
                    (form.text(&TextField {
                        limit: 64,
                        ..TextField::required("instance", &texts.text("rules-instance"))
                    }))
                } @else {
                    (form.text(&TextField {
                        kind: "url",
                        ..TextField::required("url", &texts.text("rules-source-url"))
                    }))
                    (form.text(&TextField {
                        limit: 100,
                        ..TextField::required("commit", &texts.text("rules-source-commit"))
                    }))
                }
                (form.text(&TextField {
                    kind: "datetime-local",
                    ..TextField::new("effective_at", &texts.text("rules-effective"))
                }))
                @if !component.slot.is_provider() {
                    (form.tick("compare", &texts.text("rules-compare-first"), true))
                }
                (form.tick("emergency", &texts.text("rules-emergency"), false))
                button type="submit" { (texts.text("rules-request-change")) }
            }
        }
    }
}

/// Compares a component with the active one, on past records or on generated facts.
pub async fn compare(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::ReadEvidence)?;

    // A comparison changes nothing, so reading evidence is enough.
    let (caller, management) = (&visitor.caller, &app.management);
    let report = match form.value("kind") {
        "past" => {
            // No progress is shown, because a report ends after a minute.
            let all = ReplayRequest::default();
            let report = shadow::replay(&app, management, caller, &id, &all, |_| {}).await?;
            ShownReport::Past(Box::new(report))
        }
        _ => {
            let usual = DiffRequest::default();
            let report = behaviour::diff(&app, management, caller, &id, &usual).await?;
            ShownReport::Generated(Box::new(report))
        }
    };

    component_page(&app, visitor, &id, &report, None).await
}

/// Fields of the upload.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "names the parts of the form")]
struct UploadFields {
    token: String,
    file: String,
    name: String,
    version: String,
    signature: String,
}

/// Takes a component, which changes nothing until it is activated.
pub async fn upload(State(app): State<App>, visitor: Visitor, request: Request) -> PageResult {
    visitor.require(Permission::ChangeRules)?;

    // Limit and place come before the body: a refused upload of 32 MiB is never read. The place is
    // held until the function ends, because dropping it gives it back.
    let owner = ComponentOwner::from(&visitor.caller);
    let org = visitor.caller.org.as_str();
    let (parts, body) = request.into_parts();
    limits::admit(&app, LimitedCredential::Uploads, org, &parts)?;
    let _place = components::place(&app, &app.management, &owner)?;
    let request = Request::from_parts(parts, body);
    let mut form = visitor.upload::<UploadFields>(&app, request).await?;
    let entries = form.texts.clone();
    let component = match add(&app, &visitor, &owner, &mut form).await {
        Ok(component) => component,
        Err(error) => {
            let action = format!("{PATH}/components");
            let members = ["name", "version", "signature", "file"];
            let members = members.map(|name| (name.to_owned(), name.to_owned()));
            let refused = RefusedForm::of(&action, &entries, error, &members)?;
            return shown(&app, &visitor, None, Some(&refused)).await;
        }
    };

    let page = format!("{PATH}/components/{}", component.component_id);
    Ok(Redirect::to(&page).into_response())
}

async fn add(
    app: &App,
    visitor: &Visitor,
    owner: &ComponentOwner,
    form: &mut MultipartForm<UploadFields>,
) -> Result<ComponentView, HttpError> {
    let mut text = |name: &str| form.texts.remove(name).unwrap_or_default();
    let (name, version, signature) = (text("name"), text("version"), text("signature"));

    let file = form.file()?.file;
    // The same limit as for an upload over the API.
    if file.size() > UPLOAD_LIMIT {
        let why = format!("file is larger than {UPLOAD_LIMIT} bytes");
        return Err(HttpError::bad_request(why));
    }

    let upload = ComponentUpload {
        from: None,
        name,
        version,
        signature: Some(signature).filter(|signature| !signature.is_empty()),
        bundles: OfferedBundles::default(),
        file,
    };

    // Only the inspection finds out the slot, so the service asks for the permission in between.
    let may = |slot: Slot| {
        if may_change(visitor, slot) {
            Ok(())
        } else {
            Err(HttpError::from(ServiceError::NotAllowed(
                "Only owners and admins change providers",
            )))
        }
    };

    let (component, _) = components::upload(app, &app.management, owner, upload, may).await?;
    Ok(component)
}

fn slot_row(visitor: &Visitor, slot: &SlotView) -> Markup {
    let now = visitor.now;
    // Matched by the component, because a node keeps the previous one when it cannot load the newest.
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
        a href={ (PATH) "/rules/" (slot.slot) } { (slot.slot) }
        p { a href={ (PATH) "/components/" (slot.active.component_id) } { (slot.active.name) " " (slot.active.version) } }
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

/// Returns what a request is about, in a line.
pub fn change_title(texts: Texts, change: &RequestedChange) -> String {
    match change {
        RequestedChange::Activate {
            slot, component, ..
        } => format!("{slot}: {component}"),
        RequestedChange::RollBack { slot, .. } => {
            format!("{slot}: {}", texts.text("console-roll-back"))
        }

        RequestedChange::Policy { .. } => texts.text("console-policy-change"),
        RequestedChange::SingleSignOn { .. } => texts.text("sign-on-title"),
        RequestedChange::LinkHost { link_host, .. } => {
            format!("{}: {link_host}", texts.text("settings-link-host"))
        }

        RequestedChange::InviteUser { email, role } => {
            let (act, role) = (texts.text("console-invite"), role_name(texts, *role));
            format!("{act}: {email}, {role}")
        }
        RequestedChange::ChangeRole { email, role, .. } => {
            let (act, role) = (texts.text("console-change-role"), role_name(texts, *role));
            format!("{act}: {email}, {role}")
        }
        RequestedChange::MoveIdentity {
            email, into_email, ..
        } => {
            let act = texts.text("console-move-account");
            let into = into_email.as_ref().map(|into| format!(" → {into}"));
            format!("{act}: {email}{}", into.unwrap_or_default())
        }

        RequestedChange::WaiveStipulation {
            envelope_id,
            template_id,
            kind,
        } => {
            let act = texts.text("console-waive-stipulation");
            let envelope = envelope_id.as_ref().map(ToString::to_string);
            let of = envelope.or(template_id.as_ref().map(ToString::to_string));
            format!("{act}: {kind}, {}", of.unwrap_or_default())
        }
        RequestedChange::PublishFundingPack {
            name, component, ..
        } => format!(
            "{}: {name}, {component}",
            texts.text("console-publish-funding-pack")
        ),
        RequestedChange::SubscribeFundingPack {
            name, subscribed, ..
        } => {
            let act = if *subscribed {
                "funding-subscribe"
            } else {
                "funding-end"
            };
            format!("{}: {name}", texts.text(act))
        }
        RequestedChange::SetFunding { funding, .. } => {
            format!("{}: {}", texts.text("settings-funding"), funding.as_str())
        }
    }
}

pub fn change_row(visitor: &Visitor, change: &ChangeView) -> Markup {
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
            a href={ (PATH) "/changes/" (change.change_id) } {
                (change_title(texts, &change.change))
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
