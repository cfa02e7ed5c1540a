//! Publication of funding packs, and subscriptions to them.

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ServiceError;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{Component, Slot};
use holdfast_domain::component_change::SubscribedPack;
use holdfast_domain::funding::{FundingPack, FundingPackVersion};
use holdfast_domain::id::{ComponentId, EnvelopeId, FundingPackId, OrgId};
use holdfast_store::{
    WriteTransaction, components, envelopes, funding_packs as rows, organizations,
};

/// Most samples of a version.
const SAMPLES: usize = 20;
/// Most packs of a lender.
const PACKS: usize = 100;

/// Body of `POST /funding-packs/{id}/versions`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "component_id": "cmp_01jdk7m3e8f4x9s2w5v6b0c1dc", "description": "Terms up to 72 months",
}]))]
pub struct NewVersion {
    /// Component of your organization for `rules.funding`.
    pub component_id: String,
    /// Description of the change.
    #[schemars(length(min = 1, max = 2000))]
    pub description: String,
    /// Time from which the version applies to those who follow the pack; now if absent.
    pub effective_at: Option<Timestamp>,
    /// Envelopes of your organization that show how the rules judge. Others see only their number.
    #[serde(default)]
    #[schemars(length(max = 20))]
    pub samples: Vec<String>,
}

/// Body of `POST /funding-packs/{id}/subscription`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "subscribed": true, "version": null }]))]
pub struct PackSubscription {
    /// False ends the subscription.
    #[serde(default = "yes")]
    pub subscribed: bool,
    /// Version to stay at; null follows the pack.
    #[schemars(range(min = 1))]
    pub version: Option<u32>,
}

fn yes() -> bool {
    true
}

/// Subscription that was checked.
pub struct CheckedSubscription {
    pub pack: FundingPack,
    /// False ends the subscription.
    pub subscribed: bool,
    /// Version to stay at.
    pub version: Option<u32>,
}

/// Version that was checked.
pub struct CheckedVersion {
    pub component: Component,
    pub description: String,
    pub effective_at: Option<Timestamp>,
    pub samples: Vec<EnvelopeId>,
}

/// Pack that a version is for.
pub enum PackTarget {
    /// A new pack with this name.
    New(String),
    /// A pack of the lender.
    Version(FundingPackId),
}

/// Version to publish.
pub struct Publication {
    pub target: PackTarget,
    pub version: CheckedVersion,
    /// Actor who publishes it.
    pub by: String,
}

/// Checks a version. `path` is that of its members in the request.
///
/// # Errors
///
/// `Invalid` for a component that is not the lender's own for `rules.funding`, or a sample that is not its envelope.
pub async fn check(
    connection: &mut SqlConnection,
    org: &OrgId,
    version: NewVersion,
    path: &[&str],
) -> Result<CheckedVersion, ServiceError> {
    Ok(CheckedVersion {
        component: own_component(connection, org, &version.component_id, path).await?,
        samples: samples(connection, org, &version.samples, path).await?,
        description: version.description,
        effective_at: version.effective_at,
    })
}

/// Publishes a version. Returns the pack.
///
/// # Errors
///
/// `NotFound` for a pack that is not the lender's, `Conflict` for one too many.
pub async fn publish(
    tx: &mut WriteTransaction,
    org: &OrgId,
    publication: Publication,
    now: Timestamp,
) -> Result<FundingPack, ServiceError> {
    // Two requests at the same moment would choose the same number.
    organizations::lock(tx, org).await?;
    let (pack, number) = match publication.target {
        PackTarget::New(name) => (create(tx, org, name, &publication.by, now).await?, 1),
        PackTarget::Version(id) => {
            let pack = rows::get(tx, org, &id).await?;
            let pack = pack.ok_or(ServiceError::NotFound("Funding pack"))?;
            (pack, newest(tx, org, &id).await?.saturating_add(1))
        }
    };

    let version = publication.version;
    let version = FundingPackVersion {
        pack: pack.id.clone(),
        org: pack.org.clone(),
        version: number,
        component: version.component.id,
        identity: version.component.identity,
        description: version.description,
        effective_at: version.effective_at.unwrap_or(now),
        samples: version.samples,
        published_by: publication.by,
        published_at: now,
    };
    rows::insert_version(tx, &version).await?;

    Ok(pack)
}

/// Checks a subscription of an organization. `path` is that of its members in the request.
///
/// # Errors
///
/// `NotFound` for a pack without an invitation, `Invalid` for a version that the pack does not have.
pub async fn check_subscription(
    connection: &mut SqlConnection,
    org: &OrgId,
    pack: &str,
    request: &PackSubscription,
    path: &[&str],
) -> Result<CheckedSubscription, ServiceError> {
    let unknown = || ServiceError::NotFound("Funding pack");
    let id = FundingPackId::parse(pack).ok_or_else(unknown)?;
    let invitation = rows::invitation(connection, org, &id).await?;
    let invitation = invitation.ok_or_else(unknown)?;
    let pack = rows::get(connection, &invitation.lender, &id).await?;
    let pack = pack.ok_or_else(unknown)?;

    let versions = rows::versions(connection, &pack.org, &pack.id).await?;
    let version = request.version.filter(|_| request.subscribed);
    let is_known = |version: u32| versions.iter().any(|one| one.version == version);
    match version {
        Some(version) if !is_known(version) => Err(invalid(
            "unknown_version",
            path,
            &["version"],
            "a version of the pack",
            &version.to_string(),
            "The pack has no such version",
        )),
        version => Ok(CheckedSubscription {
            pack,
            subscribed: request.subscribed,
            version,
        }),
    }
}

/// Returns the subscription of an organization.
pub async fn subscribed(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<Option<SubscribedPack>, ServiceError> {
    let invitations = rows::invitations(connection, org).await?;
    let mut invitations = invitations.into_iter();
    let subscribed = invitations.find(|one| one.subscribed_at.is_some());
    Ok(subscribed.map(|one| SubscribedPack {
        pack_id: one.pack,
        version: one.pinned,
    }))
}

/// Subscribes an organization to a pack in place of another one, or ends its subscription to it.
pub async fn subscribe(
    tx: &mut WriteTransaction,
    org: &OrgId,
    checked: &CheckedSubscription,
    now: Timestamp,
) -> Result<(), ServiceError> {
    organizations::lock(tx, org).await?;
    let id = &checked.pack.id;
    let invitation = rows::invitation(tx, org, id).await?;
    let is_subscribed = invitation.is_some_and(|one| one.subscribed_at.is_some());
    // Ending a subscription must not end one to another pack.
    if checked.subscribed || is_subscribed {
        let pack = checked.subscribed.then_some(id);
        rows::subscribe(tx, org, pack, checked.version, now).await?;
    }

    Ok(())
}

/// Returns the number of the newest version of a pack; 0 without one.
pub async fn newest(
    connection: &mut SqlConnection,
    org: &OrgId,
    pack: &FundingPackId,
) -> Result<u32, ServiceError> {
    let versions = rows::versions(connection, org, pack).await?;
    Ok(versions.last().map_or(0, |last| last.version))
}

async fn create(
    tx: &mut WriteTransaction,
    org: &OrgId,
    name: String,
    by: &str,
    now: Timestamp,
) -> Result<FundingPack, ServiceError> {
    if rows::list(tx, org).await?.len() >= PACKS {
        return Err(ServiceError::Conflict(format!(
            "{PACKS} packs of an organization are the most"
        )));
    }

    let pack = FundingPack {
        id: FundingPackId::new(),
        org: org.clone(),
        name,
        created_by: by.to_owned(),
        created_at: now,
    };
    rows::insert(tx, &pack).await?;
    Ok(pack)
}

/// Returns the error of a member of a request.
fn invalid(
    code: &str,
    path: &[&str],
    members: &[&str],
    expected: &str,
    received: &str,
    why: &str,
) -> ServiceError {
    let path = [path, members].concat();
    ServiceError::invalid(code, &path, expected, received, why)
}

/// Returns a component of an organization's own for `rules.funding`.
async fn own_component(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &str,
    path: &[&str],
) -> Result<Component, ServiceError> {
    let found = match ComponentId::parse(id) {
        Some(id) => components::get(connection, Some(org), &id).await?,
        None => None,
    };
    let found = found
        .filter(|component| component.slot == Slot::Funding && component.org.as_ref() == Some(org));

    found.ok_or_else(|| {
        invalid(
            "unknown_component",
            path,
            &["component_id"],
            "a component of your organization for rules.funding",
            id,
            "Upload a component for rules.funding first",
        )
    })
}

async fn samples(
    connection: &mut SqlConnection,
    org: &OrgId,
    given: &[String],
    path: &[&str],
) -> Result<Vec<EnvelopeId>, ServiceError> {
    if given.len() > SAMPLES {
        let received = given.len().to_string();
        let why = "Too many samples";
        return Err(invalid(
            "too_many",
            path,
            &["samples"],
            "at most 20",
            &received,
            why,
        ));
    }

    let mut found = Vec::new();
    for (at, text) in given.iter().enumerate() {
        let envelope = match EnvelopeId::parse(text) {
            Some(id) => envelopes::get(connection, org, &id).await?,
            None => None,
        };
        let envelope = envelope.ok_or_else(|| {
            invalid(
                "unknown_envelope",
                path,
                &["samples", &at.to_string()],
                "an envelope of your organization",
                text,
                "No such envelope",
            )
        })?;
        found.push(envelope.id);
    }

    Ok(found)
}
