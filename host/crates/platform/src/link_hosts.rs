//! Hosts of organizations' own for their signing links.
//!
//! A host names the organizations that use it in a file. It is read before the first use and every day after it, because
//! the links of a host with a new owner would lead signers to a stranger.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use reqwest::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::organizations::{self, OrganizationView};
use crate::permits::four_eyes;
use crate::{Caller, Core, ServiceError};
use holdfast_adapters::delivery::guard::{self, AddressRefusal, AllowedAddresses};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;
use holdfast_domain::job::MailLinkHost;
use holdfast_domain::organization::{LinkHost, LinkHostProblem, Organization, Permission};
use holdfast_domain::user::{User, UserStatus};
use holdfast_store::{StoreError, WriteTransaction, chores, jobs, organizations as rows, users};

/// Path of the file (RFC 8615). It has the id of each organization on a line of its own.
pub const FILE: &str = "/.well-known/holdfast";
/// Time limit of reading the file.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest file, in bytes: more than 100 organizations.
const LIMIT: usize = 4096;
/// Interval of the checks.
const HOUR: Duration = Duration::from_secs(3600);
/// Number of hosts that are checked at once.
const AT_ONCE: usize = 8;
/// Age of a success after which a host is checked again.
const DAY: Duration = Duration::from_secs(86_400);

/// Body of `PUT /organization/link-host`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "host": "contracts.lender.example" }]))]
pub struct NewLinkHost {
    /// Name of a host; its `/.well-known/holdfast` has the organization's id on a line of its own.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
}

/// Why a host is not known to serve an organization, as the rest of a sentence about its file.
#[derive(Debug, thiserror::Error)]
enum HostFinding {
    #[error("could not be reached: {0}")]
    Address(#[from] AddressRefusal),
    #[error("could not be reached: {}", guard::cause(.0))]
    Unreachable(#[from] reqwest::Error),
    #[error("answered status {}", .0.as_u16())]
    Status(StatusCode),
    #[error("answered more than {} bytes", LIMIT)]
    TooLarge,
    #[error("does not name the organization: it has no line {0}")]
    NotNamed(OrgId),
}

impl HostFinding {
    /// Returns the problem for a host that is in use.
    fn problem(&self) -> LinkHostProblem {
        match self {
            Self::Address(_) | Self::Unreachable(_) => LinkHostProblem::Unreachable,
            // Answers of a proxy or server in trouble say nothing about the owner.
            Self::Status(status)
                if status.is_server_error()
                    || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS]
                        .contains(status) =>
            {
                LinkHostProblem::Unreachable
            }
            Self::Status(_) | Self::TooLarge | Self::NotNamed(_) => LinkHostProblem::NotNamed,
        }
    }
}

/// Leads the links of the caller's organization to a host from now on. The owners and admins are notified.
///
/// # Errors
/// `Invalid` if the text is not the name of a host, or if the host's file does not name the organization. The message
/// states the finding. `Change` where the policy requires approvals: a change request sets the host then.
pub async fn set(
    core: &Core,
    caller: &Caller,
    new: NewLinkHost,
) -> Result<OrganizationView, ServiceError> {
    // Before the transaction, because the host may take seconds to answer.
    let host = verified(core, &caller.org, &new.host, &["host"]).await?;
    let mut tx = core.store.begin().await?;
    // This lock comes before that of the organization, in the same order as in a change request.
    four_eyes::permit_setting(core, &mut tx, &caller.org).await?;
    let now = core.clock.now();
    let organization = put(&mut tx, &caller.org, &caller.actor, Some(host), now).await?;
    tx.commit().await?;

    Ok(organization.into())
}

/// Leads the links of the caller's organization to the installation's address from now on. The owners and admins are
/// notified.
pub async fn remove(core: &Core, caller: &Caller) -> Result<OrganizationView, ServiceError> {
    // Without approvals: one person has to be able to end the use of a host that was lost.
    let mut tx = core.store.begin().await?;
    let now = core.clock.now();
    let organization = put(&mut tx, &caller.org, &caller.actor, None, now).await?;
    tx.commit().await?;

    Ok(organization.into())
}

/// Reads the name of a host, and the host's file.
///
/// # Errors
/// `Invalid` at `path` for a text that is not the name of a host, and for a host that does not name the organization.
pub(crate) async fn verified(
    core: &Core,
    org: &OrgId,
    host: &str,
    path: &[&str],
) -> Result<LinkHost, ServiceError> {
    let refused = |expected: &str, received: &str, why: String| {
        ServiceError::invalid("invalid_value", path, expected, received, why)
    };

    let host = LinkHost::verified(host.trim(), core.clock.now()).ok_or_else(|| {
        let why = "Write the name of the host alone, such as contracts.lender.example";
        refused("the name of a host", "another text", why.into())
    })?;
    names(core, &host, &org.live()).await.map_err(|found| {
        let why = format!("{}{FILE} {found}", host.origin());
        refused("a host that names the organization", "another host", why)
    })?;

    Ok(host)
}

/// Leads the links of an organization to a host in the caller's transaction; without a host, to the installation's address.
/// All owners and admins get a mail if new links lead to another place now.
pub(crate) async fn put(
    tx: &mut WriteTransaction,
    org: &OrgId,
    actor: &str,
    host: Option<LinkHost>,
    now: Timestamp,
) -> Result<Organization, ServiceError> {
    rows::lock(tx, org).await?;
    let found = rows::get(tx, org).await?;
    let mut organization = found.ok_or(ServiceError::NotFound("Organization"))?;

    let before = organization.clone();
    organization.settings.link_host = host;
    let is_moved = place_of_links(&before) != place_of_links(&organization);
    rows::set_settings(tx, &organization).await?;
    organizations::record(tx, actor, before, &organization, now).await?;
    if is_moved {
        notify(tx, &organization, actor, now).await?;
    }

    Ok(organization)
}

/// Adds a mail to each owner and admin about the host to which new links lead.
async fn notify(
    tx: &mut WriteTransaction,
    organization: &Organization,
    actor: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let org = &organization.id;
    // Test data has the users of its organization.
    let all = users::list(tx, &org.live()).await?;
    let administers =
        |user: &&User| user.status != UserStatus::Ended && user.role.may(Permission::Administer);
    for user in all.iter().filter(administers) {
        let job = MailLinkHost {
            user: user.id.clone(),
            host: place_of_links(organization).map(str::to_owned),
            by: actor.to_owned(),
        };
        jobs::insert(tx, org, &job, None, now).await?;
    }

    Ok(())
}

/// Returns the host to which new links lead; none for the installation's address.
fn place_of_links(organization: &Organization) -> Option<&str> {
    let host = organization.settings.link_host.as_ref();
    host.filter(|host| host.is_in_use())
        .map(|host| host.host.as_str())
}

/// Checks once an hour every host that was verified more than a day ago, on one node, until `stop` is cancelled. A host
/// that has ended its use because it cannot be reached is checked once a day.
pub async fn check_when_due(core: &Core, stop: &CancellationToken) -> Result<(), ServiceError> {
    let now = core.clock.now();
    if !chores::claim(&core.store, "link hosts", now, now + HOUR).await? {
        return Ok(());
    }

    let all = rows::list(&mut *core.store.read().await?).await?;
    // Test data has the host of its organization.
    let live = all.into_iter().filter(|one| !one.id.is_test());
    let due = live.filter_map(|organization| {
        let host = organization.settings.link_host;
        let host = host.filter(|host| is_due(host, now))?;
        Some((organization.id, host))
    });

    // A host that does not answer takes seconds, and the next task waits for all of them.
    let due: Vec<(OrgId, LinkHost)> = due.collect();
    let checks = stream::iter(due).for_each_concurrent(AT_ONCE, |(org, host)| async move {
        // The hosts are independent, so that a failure leaves the others their check.
        if let Err(error) = check_if_due(core, &org, &host, now).await {
            tracing::error!(%org, %error, "host of signing links could not be checked");
        }
    });
    tokio::select! {
        () = stop.cancelled() => {}
        () = checks => {}
    }

    Ok(())
}

async fn check_if_due(
    core: &Core,
    org: &OrgId,
    host: &LinkHost,
    now: Timestamp,
) -> Result<(), ServiceError> {
    // No link leads there any more, so a day is soon enough.
    if !host.is_in_use() {
        let chore = format!("link host of {org}");
        if !chores::claim(&core.store, &chore, now, now + DAY).await? {
            return Ok(());
        }
    }

    check(core, org, host).await
}

/// A host that named its organization no more may have changed hands, so only a person puts it to use again.
fn is_due(host: &LinkHost, now: Timestamp) -> bool {
    host.verified_at + DAY <= now && host.problem != Some(LinkHostProblem::NotNamed)
}

async fn check(core: &Core, org: &OrgId, host: &LinkHost) -> Result<(), ServiceError> {
    let found = names(core, host, org).await;
    let problem = found.as_ref().err().map(HostFinding::problem);

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    rows::lock(&mut tx, org).await?;
    let Some(mut organization) = rows::get(&mut tx, org).await? else {
        return Ok(());
    };
    // A user may have changed the host since, or another node checked it.
    if organization.settings.link_host.as_ref() != Some(host) {
        return Ok(());
    }

    let checked = host.after(problem, now);
    let has_changed = checked.problem != host.problem;
    let before = organization.clone();
    organization.settings.link_host = Some(checked);
    rows::set_settings(&mut tx, &organization).await?;
    // A success a day is no news for the ledger.
    if has_changed {
        organizations::record(&mut tx, "system", before, &organization, now).await?;
    }
    tx.commit().await?;

    if let Err(found) = found {
        let (host, is_ended) = (&host.host, has_changed);
        tracing::warn!(%org, %host, is_ended, %found, "host of signing links failed its check");
    }
    Ok(())
}

/// Reads the file of a host and looks for the organization in it.
async fn names(core: &Core, host: &LinkHost, org: &OrgId) -> Result<(), HostFinding> {
    let not_named = || HostFinding::NotNamed(org.clone());
    let url = Url::parse(&format!("{}{FILE}", host.origin())).map_err(|_| not_named())?;
    // The organization names this address. It must not lead into the operator's network.
    let allowed = AllowedAddresses::public(core.config.providers.allow_insecure);
    guard::check_url(&url, &allowed)?;

    let mut response = core.http.get(url).timeout(PATIENCE).send().await?;
    // Other successes and redirects are no file either.
    if response.status() != StatusCode::OK {
        return Err(HostFinding::Status(response.status()));
    }

    // Read in pieces, so that the limit holds without a Content-Length.
    let mut file = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if file.len() + piece.len() > LIMIT {
            return Err(HostFinding::TooLarge);
        }
        file.extend_from_slice(&piece);
    }

    let text = String::from_utf8_lossy(&file);
    let is_named = text.lines().any(|line| line.trim() == org.as_str());
    is_named.then_some(()).ok_or_else(not_named)
}
