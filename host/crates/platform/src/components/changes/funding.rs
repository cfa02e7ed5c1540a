//! Changes of what the funding of contracts needs: a stipulation that is waived, a pack that a lender publishes or an
//! originator subscribes to, and what becomes of contracts that the rules stop.

use holdfast_store::SqlConnection;

use super::ChangeOfficer;
use crate::funding_acts::AgreedChange;
use crate::funding_acts::packs::{
    self, CheckedSubscription, CheckedVersion, NewVersion, PackSubscription, PackTarget,
    Publication,
};
use crate::funding_acts::stipulations::{self, Waiver};
use crate::{Core, ServiceError, ValidationIssue, organizations};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::Component;
use holdfast_domain::component_change::{ComponentChange, RequestedChange};
use holdfast_domain::funding::StipulationState;
use holdfast_domain::id::{ComponentId, EnvelopeId, FundingPackId, OrgId, TemplateId};
use holdfast_store::{
    WriteTransaction, components, envelopes, funding_packs as pack_rows,
    organizations as organization_rows, templates,
};

/// Path of the members in the body of a change request.
const CHANGE: &str = "change";

/// Checks the waiver of a stipulation of an envelope or of a template.
pub(super) async fn propose_waiver(
    core: &Core,
    officer: &ChangeOfficer,
    of: (Option<&str>, Option<&str>),
    kind: String,
) -> Result<RequestedChange, ServiceError> {
    let caller = &officer.caller;
    let mut connection = core.store.read().await?;
    let (envelope_id, template_id) = match of {
        (Some(envelope), None) => {
            let id = EnvelopeId::parse(envelope).ok_or(ServiceError::NotFound("Envelope"))?;
            (Some(id), None)
        }
        (None, Some(template)) => {
            let unknown = || ServiceError::NotFound("Template");
            let id = TemplateId::parse(template).ok_or_else(unknown)?;
            let found = templates::get(&mut connection, &caller.org, &id).await?;
            let found = found.filter(|template| caller.sees(template));
            (None, Some(found.ok_or_else(unknown)?.id))
        }
        _ => {
            return Err(invalid(
                &[CHANGE, "envelope_id"],
                "an envelope or a template",
                "Name the envelope or the template of the stipulation, and not both",
            ));
        }
    };

    let change = RequestedChange::WaiveStipulation {
        envelope_id,
        template_id,
        kind,
    };
    if is_open(&mut connection, &caller.org, &change).await? {
        Ok(change)
    } else {
        Err(ServiceError::NotFound("Stipulation"))
    }
}

/// Checks the publication of a pack.
pub(super) async fn propose_pack(
    core: &Core,
    officer: &ChangeOfficer,
    pack: Option<String>,
    name: Option<String>,
    version: NewVersion,
) -> Result<RequestedChange, ServiceError> {
    let org = &officer.caller.org;
    let mut connection = core.store.read().await?;
    let (pack_id, name, previous) = match (pack, name) {
        (Some(pack), None) => {
            let unknown = || ServiceError::NotFound("Funding pack");
            let id = FundingPackId::parse(&pack).ok_or_else(unknown)?;
            let pack = pack_rows::get(&mut connection, org, &id).await?;
            let newest = packs::newest(&mut connection, org, &id).await?;
            (Some(id), pack.ok_or_else(unknown)?.name, newest)
        }
        (None, Some(name)) if !name.trim().is_empty() => (None, name.trim().to_owned(), 0),
        _ => {
            return Err(invalid(
                &[CHANGE, "name"],
                "a name for a new pack, or `pack_id`",
                "A new pack needs a name; a version has that of its pack",
            ));
        }
    };

    let checked = packs::check(&mut connection, org, version, &[CHANGE]).await?;
    Ok(RequestedChange::PublishFundingPack {
        pack_id,
        name,
        component_id: checked.component.id,
        component: checked.component.identity,
        description: checked.description,
        effective_at: checked.effective_at,
        samples: checked.samples,
        previous,
    })
}

/// Checks a subscription to a pack, or its end.
pub(super) async fn propose_subscription(
    core: &Core,
    org: &OrgId,
    pack: &str,
    subscription: &PackSubscription,
) -> Result<RequestedChange, ServiceError> {
    let mut connection = core.store.read().await?;
    let checked =
        packs::check_subscription(&mut connection, org, pack, subscription, &[CHANGE]).await?;

    Ok(RequestedChange::SubscribeFundingPack {
        pack_id: checked.pack.id,
        name: checked.pack.name,
        subscribed: checked.subscribed,
        version: checked.version,
        previous: packs::subscribed(&mut connection, org).await?,
    })
}

fn invalid(path: &[&str], expected: &str, why: &str) -> ServiceError {
    let issue = ValidationIssue::new("invalid_value", path, expected, "", why);
    ServiceError::Invalid(vec![issue])
}

/// Whether the stipulation of a waiver is open, or required by its template.
async fn is_open(
    connection: &mut SqlConnection,
    org: &OrgId,
    change: &RequestedChange,
) -> Result<bool, ServiceError> {
    let RequestedChange::WaiveStipulation {
        envelope_id,
        template_id,
        kind,
    } = change
    else {
        return Ok(false);
    };
    if let Some(template) = template_id {
        let required = stipulations::required_by(connection, org, template).await?;
        return Ok(required.has(kind));
    }

    let envelope = match envelope_id {
        Some(id) => envelopes::get(connection, org, id).await?,
        None => None,
    };
    let envelope = envelope.ok_or(ServiceError::NotFound("Envelope"))?;
    let all = stipulations::stored(connection, &envelope).await?;
    let mut all = all.iter();
    Ok(all.any(|one| one.kind == *kind && one.state == StipulationState::Open))
}

/// Whether what a change was requested about is still as it was.
pub(super) async fn is_unchanged(
    connection: &mut SqlConnection,
    org: &OrgId,
    change: &RequestedChange,
) -> Result<bool, ServiceError> {
    match change {
        // The approvals are about the version that followed then, with this component.
        RequestedChange::PublishFundingPack {
            pack_id,
            component_id,
            component,
            previous,
            ..
        } => {
            let newest = match pack_id {
                Some(pack) => packs::newest(connection, org, pack).await?,
                None => 0,
            };
            let present = own_component(connection, org, component_id).await?;
            Ok(newest == *previous && present.identity == *component)
        }
        RequestedChange::SubscribeFundingPack { previous, .. } => {
            Ok(packs::subscribed(connection, org).await? == *previous)
        }
        RequestedChange::SetFunding { previous, .. } => {
            let organization = organization_rows::get(connection, org).await?;
            Ok(organization.is_some_and(|one| one.settings.funding == *previous))
        }
        waiver => is_open(connection, org, waiver).await,
    }
}

async fn own_component(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &ComponentId,
) -> Result<Component, ServiceError> {
    let found = components::get(connection, Some(org), id).await?;
    found.ok_or(ServiceError::NotFound("Component"))
}

/// Makes an approved change; none of another kind.
pub(super) async fn make(
    tx: &mut WriteTransaction,
    officer: &ChangeOfficer,
    change: &ComponentChange,
    approved_by: &[String],
    now: Timestamp,
) -> Result<(), ServiceError> {
    let (org, by) = (&change.org, &officer.caller.actor);
    match &change.content.change {
        RequestedChange::WaiveStipulation {
            envelope_id: Some(envelope),
            kind,
            ..
        } => {
            let waiver = Waiver {
                envelope,
                kind,
                reason: change.content.reason.clone(),
                by,
                agreed: Some(AgreedChange {
                    change: &change.id,
                    approved_by,
                }),
            };
            stipulations::waive(tx, org, waiver, now).await?;
        }
        RequestedChange::WaiveStipulation {
            template_id: Some(template),
            kind,
            ..
        } => stipulations::drop_of_template(tx, org, template, kind).await?,
        RequestedChange::PublishFundingPack {
            pack_id,
            name,
            component_id,
            description,
            effective_at,
            samples,
            ..
        } => {
            let publication = Publication {
                target: match pack_id {
                    Some(pack) => PackTarget::Version(pack.clone()),
                    None => PackTarget::New(name.clone()),
                },
                version: CheckedVersion {
                    component: own_component(tx, org, component_id).await?,
                    description: description.clone(),
                    // A time that has passed in the meantime: from now on.
                    effective_at: effective_at.filter(|at| *at > now),
                    samples: samples.clone(),
                },
                by: by.clone(),
            };
            packs::publish(tx, org, publication, now).await?;
        }
        RequestedChange::SubscribeFundingPack {
            pack_id,
            subscribed,
            version,
            ..
        } => {
            let subscription = PackSubscription {
                subscribed: *subscribed,
                version: *version,
            };
            // Again: the lender may have taken the invitation back.
            let checked: CheckedSubscription =
                packs::check_subscription(tx, org, pack_id.as_str(), &subscription, &[]).await?;
            packs::subscribe(tx, org, &checked, now).await?;
        }
        RequestedChange::SetFunding { funding, .. } => {
            organizations::put_funding(tx, org, by, *funding, now).await?;
        }
        _ => {}
    }

    Ok(())
}
