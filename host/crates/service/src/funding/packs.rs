//! Funding packs: a lender publishes the rules under which it funds contracts, and originators that it has invited
//! subscribe to them.
//!
//! A pack is invisible to all others: they get the same answer as for a pack that does not exist.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::funding::{FundingInvitation, FundingPack, FundingPackVersion, applicable};
use holdfast_domain::id::{FundingPackId, OrgId};
use holdfast_platform::funding_acts::packs::{self as acts, PackTarget, Publication};
pub use holdfast_platform::funding_acts::packs::{NewVersion, PackSubscription};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::permits::four_eyes;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{SqlConnection, funding_packs as rows, organizations};

/// Body of `POST /funding-packs`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "name": "First Example Bank, retail", "component_id": "cmp_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "description": "Terms up to 84 months", "effective_at": "2027-01-01T00:00:00.000Z", "samples": [],
}]))]
pub struct NewPack {
    /// Name.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    #[serde(flatten)]
    pub version: NewVersion,
}

/// Body of `POST /funding-packs/{id}/invitations`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da" }]))]
pub struct PackInvitation {
    /// Id of the organization.
    pub organization_id: String,
}

/// A pack, for its lender and for invited organizations.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "pack_id": "fpk_01jdk7m3e8f4x9s2w5v6b0c1dc", "name": "First Example Bank, retail",
    "lender": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1db", "name": "First Example Bank" },
    "is_own": false, "subscribed": true, "pinned_version": null,
    "versions": [{
        "version": 1, "description": "Terms up to 84 months", "effective_at": "2027-01-01T00:00:00.000Z",
        "published_at": "2026-11-21T09:45:00.000Z", "samples": 0,
        "component": { "name": "first-bank", "version": "1.0.0", "sha256": "4be1…" },
    }],
}]))]
pub struct PackView {
    /// Id of the pack.
    pub pack_id: FundingPackId,
    /// Name.
    pub name: String,
    /// Organization that published it.
    pub lender: LenderView,
    /// Whether the caller's organization published it.
    pub is_own: bool,
    /// Whether the caller's organization has its contracts checked by it.
    pub subscribed: bool,
    /// Version that the subscription stays at; null for one that follows the pack.
    pub pinned_version: Option<u32>,
    /// Its versions, in order.
    pub versions: Vec<PackVersionView>,
}

/// Organization that published a pack.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LenderView {
    /// Id of the organization.
    pub organization_id: OrgId,
    /// Name.
    pub name: String,
}

/// Version of a pack.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PackVersionView {
    /// Number of the version, from 1.
    pub version: u32,
    /// News of the version.
    pub description: String,
    /// Time from which it applies to followers.
    pub effective_at: Timestamp,
    /// Time of the publication.
    pub published_at: Timestamp,
    /// Component that decides.
    pub component: ComponentIdentity,
    /// Number of sample contracts.
    pub samples: usize,
}

/// Packs that the caller may see.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PacksView {
    /// The packs.
    pub packs: Vec<PackView>,
}

/// Returns the version of the pack that decides about an organization's contracts.
pub(super) async fn subscribed(
    core: &Core,
    org: &OrgId,
    now: Timestamp,
) -> Result<Option<FundingPackVersion>, ServiceError> {
    // Test data is judged by the rules of its organization.
    let org = org.live();
    let mut connection = core.store.read().await?;
    let invitations = rows::invitations(&mut connection, &org).await?;
    let subscription = invitations
        .into_iter()
        .find(|invitation| invitation.subscribed_at.is_some());
    let Some(subscription) = subscription else {
        return Ok(None);
    };

    let (lender, pack) = (&subscription.lender, &subscription.pack);
    let versions = rows::versions(&mut connection, lender, pack).await?;
    Ok(applicable(&versions, subscription.pinned, now).cloned())
}

/// Publishes a pack with its first version.
///
/// # Errors
///
/// `Invalid` for a component that is not the lender's own for `rules.funding`, or a sample that is not its envelope; `Change`
/// where the lender's policy requires approvals.
pub async fn publish(
    core: &Core,
    caller: &Caller,
    request: NewPack,
    answer: &ResponseRecorder<PackView>,
) -> Result<PackView, ServiceError> {
    let name = request.name.trim().to_owned();
    if name.is_empty() {
        let why = "A pack needs a name";
        return Err(ServiceError::invalid(
            "invalid_value",
            &["name"],
            "a name",
            "blank",
            why,
        ));
    }

    let mut tx = core.store.begin().await?;
    four_eyes::permit_act(core, &mut tx, &caller.org).await?;
    let publication = publication(&mut tx, caller, PackTarget::New(name), request.version).await?;
    let pack = acts::publish(&mut tx, &caller.org, publication, core.clock.now()).await?;

    let view = shown(&mut tx, &pack, &caller.org, None).await?;
    answer.commit(tx, &view).await?;
    Ok(view)
}

/// Checks a version, and returns it for the transaction that publishes it.
async fn publication(
    connection: &mut SqlConnection,
    caller: &Caller,
    target: PackTarget,
    version: NewVersion,
) -> Result<Publication, ServiceError> {
    Ok(Publication {
        target,
        version: acts::check(connection, &caller.org, version, &[]).await?,
        by: caller.actor.clone(),
    })
}

/// Publishes a further version of a pack.
///
/// # Errors
///
/// Those of [`publish`]; `NotFound` for a pack that is not the caller's.
pub async fn publish_version(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: NewVersion,
    answer: &ResponseRecorder<PackView>,
) -> Result<PackView, ServiceError> {
    let mut tx = core.store.begin().await?;
    let pack = own(&mut tx, caller, id).await?;
    four_eyes::permit_act(core, &mut tx, &caller.org).await?;
    let publication = publication(&mut tx, caller, PackTarget::Version(pack.id), request).await?;
    let pack = acts::publish(&mut tx, &caller.org, publication, core.clock.now()).await?;

    let view = shown(&mut tx, &pack, &caller.org, None).await?;
    answer.commit(tx, &view).await?;
    Ok(view)
}

/// Invites an organization to a pack of the caller.
pub async fn invite(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: PackInvitation,
    answer: &ResponseRecorder<PackView>,
) -> Result<PackView, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let pack = own(&mut tx, caller, id).await?;
    let given = request.organization_id.as_str();
    let party = match OrgId::parse(given).filter(|org| !org.is_test() && !caller.org.is_test()) {
        Some(org) => organizations::get(&mut tx, &org).await?.map(|one| one.id),
        None => None,
    };
    let party = party.ok_or_else(|| {
        ServiceError::invalid(
            "unknown_party",
            &["organization_id"],
            "an organization of this installation",
            given,
            "No such organization; ask the party for the id of its organization",
        )
    })?;

    let invitation = FundingInvitation {
        org: party,
        pack: pack.id.clone(),
        lender: pack.org.clone(),
        invited_at: now,
        subscribed_at: None,
        pinned: None,
    };
    rows::invite(&mut tx, &invitation).await?;
    let view = shown(&mut tx, &pack, &caller.org, None).await?;
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Subscribes the caller's organization to a pack that it was invited to, in place of another one.
///
/// # Errors
///
/// `NotFound` for a pack without an invitation, `Invalid` for a version that the pack does not have; `Change` where the
/// policy requires approvals.
pub async fn subscribe(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: PackSubscription,
    answer: &ResponseRecorder<PackView>,
) -> Result<PackView, ServiceError> {
    let mut tx = core.store.begin().await?;
    let checked = acts::check_subscription(&mut tx, &caller.org, id, &request, &[]).await?;
    four_eyes::permit_act(core, &mut tx, &caller.org).await?;
    acts::subscribe(&mut tx, &caller.org, &checked, core.clock.now()).await?;

    let invitation = rows::invitation(&mut tx, &caller.org, &checked.pack.id).await?;
    let view = shown(&mut tx, &checked.pack, &caller.org, invitation.as_ref()).await?;
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Lists the packs of the caller's organization, and those that it was invited to.
pub async fn list(core: &Core, caller: &Caller) -> Result<PacksView, ServiceError> {
    let mut connection = core.store.read().await?;
    let mut packs = Vec::new();
    for pack in rows::list(&mut connection, &caller.org).await? {
        packs.push(shown(&mut connection, &pack, &caller.org, None).await?);
    }
    for invitation in rows::invitations(&mut connection, &caller.org).await? {
        let pack = rows::get(&mut connection, &invitation.lender, &invitation.pack).await?;
        // A lender may invite itself. Its own pack is in the list already.
        if let Some(pack) = pack.filter(|pack| pack.org != caller.org) {
            packs.push(shown(&mut connection, &pack, &caller.org, Some(&invitation)).await?);
        }
    }

    Ok(PacksView { packs })
}

/// Returns a pack of the caller's organization.
async fn own(
    connection: &mut SqlConnection,
    caller: &Caller,
    id: &str,
) -> Result<FundingPack, ServiceError> {
    let unknown = || ServiceError::NotFound("Funding pack");
    let id = FundingPackId::parse(id).ok_or_else(unknown)?;
    let found = rows::get(connection, &caller.org, &id).await?;
    found.ok_or_else(unknown)
}

async fn shown(
    connection: &mut SqlConnection,
    pack: &FundingPack,
    viewer: &OrgId,
    invitation: Option<&FundingInvitation>,
) -> Result<PackView, ServiceError> {
    let versions = rows::versions(connection, &pack.org, &pack.id).await?;
    let lender = organizations::get(connection, &pack.org).await?;
    Ok(PackView {
        pack_id: pack.id.clone(),
        name: pack.name.clone(),
        lender: LenderView {
            organization_id: pack.org.clone(),
            name: lender.map(|one| one.name).unwrap_or_default(),
        },
        is_own: pack.org == *viewer,
        subscribed: invitation.is_some_and(|one| one.subscribed_at.is_some()),
        pinned_version: invitation.and_then(|one| one.pinned),
        versions: versions
            .into_iter()
            .map(|version| PackVersionView {
                version: version.version,
                description: version.description,
                effective_at: version.effective_at,
                published_at: version.published_at,
                component: version.identity,
                samples: version.samples.len(),
            })
            .collect(),
    })
}
