//! API keys, settings, and who did what, for users of an organization.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::HttpError;
use crate::middleware::act::{BareAct, NewAct};
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{PageWindow, ResourceId, ValidJson, ValidQuery, WholeListQuery};
use crate::reply::{Created, CursorReply, DataReply, Found, PageReply};
use holdfast_domain::id::EnvelopeId;
use holdfast_platform::access::api_keys::{self, ApiKeyView, IssuedKey, KeyChange, NewKey};
use holdfast_platform::access::audit::{self, AuditEntry};
use holdfast_platform::link_hosts::{self, NewLinkHost};
use holdfast_platform::organizations::{self, ChangeOrganization, OrganizationView};
use holdfast_service::App;
use holdfast_service::vault::integrity::{self, IntegrityFinding};

pub async fn keys(
    State(app): State<App>,
    user: WebCaller<may::Integrate>,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<ApiKeyView>, HttpError> {
    query.page_of(&api_keys::list(&app, &user.caller.org).await?)
}

/// A key can do everything that its scopes permit, so that owners and admins give it. Developers see and end keys.
pub async fn create_key(
    act: NewAct<WebCaller<may::Administer>, NewKey>,
) -> Result<Created<IssuedKey>, HttpError> {
    act.run(api_keys::create).await
}

pub async fn change_key(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
    ResourceId(id): ResourceId,
    ValidJson(change): ValidJson<KeyChange>,
) -> Result<Found<ApiKeyView>, HttpError> {
    let key = api_keys::change(&app, &user.caller, &id, change).await?;
    Ok(DataReply::new(&key))
}

pub async fn rotate_key(
    act: BareAct<WebCaller<may::Administer>>,
) -> Result<Found<IssuedKey>, HttpError> {
    act.run(api_keys::rotate).await
}

pub async fn deactivate_key(
    State(app): State<App>,
    user: WebCaller<may::Integrate>,
    ResourceId(id): ResourceId,
) -> Result<Found<ApiKeyView>, HttpError> {
    let key = api_keys::deactivate(&app, &user.caller, &id).await?;
    Ok(DataReply::new(&key))
}

pub async fn organization(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
) -> Result<Found<OrganizationView>, HttpError> {
    let organization = organizations::get(&app, &user.caller).await?;
    Ok(DataReply::new(&organization))
}

/// Payments, pinned components and the name are the operator's; the policy of changes has operations of its own.
pub async fn change_organization(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
    ValidJson(change): ValidJson<ChangeOrganization>,
) -> Result<Found<OrganizationView>, HttpError> {
    let organization = organizations::change(&app, &user.caller, user.role, change).await?;
    Ok(DataReply::new(&organization))
}

/// Leads new signing links to a host of the organization's own; its `/.well-known/holdfast` has to have the
/// organization's id on a line of its own. It is read now and every day.
pub async fn set_link_host(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
    ValidJson(new): ValidJson<NewLinkHost>,
) -> Result<Found<OrganizationView>, HttpError> {
    let organization = link_hosts::set(&app, &user.caller, new).await?;
    Ok(DataReply::new(&organization))
}

/// Leads new signing links to the installation's address. Links that were sent before work as long as the host leads
/// here.
pub async fn remove_link_host(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
) -> Result<Found<OrganizationView>, HttpError> {
    let organization = link_hosts::remove(&app, &user.caller).await?;
    Ok(DataReply::new(&organization))
}

#[derive(Deserialize, JsonSchema)]
pub struct AuditQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// Last id of the page before.
    starting_after: Option<String>,
    /// 1 to 100; 50 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
}

/// Returns the credential ledger (keys, tokens, settings) and the component ledger in one list. Acts on an envelope
/// are in its own ledger.
pub async fn audit_log(
    State(app): State<App>,
    user: WebCaller<may::Audit>,
    ValidQuery(query): ValidQuery<AuditQuery>,
) -> Result<CursorReply<AuditEntry>, HttpError> {
    let after = query.starting_after.as_deref();
    let window = PageWindow::checked((query.page, query.limit), after.is_some(), 50, 100)?;
    let entries = audit::list(&app, &user.caller, after, window.read()).await?;
    Ok(window.reply(entries))
}

#[derive(Deserialize, JsonSchema)]
pub struct FindingsQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// Last envelope of the page before.
    starting_after: Option<EnvelopeId>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
}

/// Returns the envelopes with problems in the last integrity check. Each vaulted envelope is checked every week.
pub async fn findings(
    State(app): State<App>,
    user: WebCaller<may::Audit>,
    ValidQuery(query): ValidQuery<FindingsQuery>,
) -> Result<CursorReply<IntegrityFinding>, HttpError> {
    let after = query.starting_after.as_ref();
    let window = PageWindow::checked((query.page, query.limit), after.is_some(), 20, 100)?;
    let found = integrity::findings(&app, &user.caller, after, window.read()).await?;
    Ok(window.reply(found))
}
