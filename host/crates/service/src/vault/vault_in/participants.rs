//! Which components produced an envelope's evidence.
//!
//! A run of the pipeline resolves its components once and keeps them to its end. A recorded step names
//! the components it called, so that a run that continues after a crash, when others may be active,
//! names both.

use std::collections::HashSet;

use holdfast_store::SqlConnection;
use serde::{Deserialize, Serialize};

use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::rules::ComplianceRules;
use holdfast_components::{ComponentError, Documents, Placement, built_in};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{ComponentIdentity, DecisionOrigin, EvidenceParticipant, Slot};
use holdfast_domain::envelope::Envelope;
use holdfast_domain::funding::FundingStage;
use holdfast_platform::Core;
use holdfast_store::{StoreError, components, decisions, funding, organizations};

/// The rules components of one run.
pub(super) struct PipelineComponents {
    pub(super) documents: Documents,
    pub(super) placement: Placement,
    pub(super) compliance: ComplianceRules,
    /// The built-in document writer and reader, regardless of activations.
    pub(super) embedded_documents: Documents,
    pub(super) embedded_placement: Placement,
}

impl PipelineComponents {
    pub(super) fn of(core: &Core, envelope: &Envelope) -> Self {
        let (components, org) = (&core.components, &envelope.org);
        let priority = core.store.priority();
        let owner = || WorkOwner::new(org, envelope.id.as_str());
        Self {
            documents: core.documents(Some(org)).for_owner(owner()),
            placement: core.placement(Some(org)).for_owner(owner()),
            compliance: components.compliance(Some(org)),
            // Where an uploaded component is not to be trusted, the host asks the built-in pair.
            embedded_documents: components
                .embedded_documents(org, priority)
                .for_owner(owner()),
            embedded_placement: components
                .embedded_placement(org, priority)
                .for_owner(owner()),
        }
    }

    /// Returns the document writer and reader, for steps that call both.
    pub(super) fn of_documents(&self) -> Result<Vec<CalledComponent>, ComponentError> {
        Ok(vec![
            CalledComponent::new(Slot::Documents, self.documents.identity())?,
            CalledComponent::new(Slot::Placement, self.placement.identity())?,
        ])
    }
}

/// A component that a step called.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct CalledComponent {
    pub(super) slot: Slot,
    #[serde(flatten)]
    pub(super) identity: ComponentIdentity,
}

impl CalledComponent {
    pub(super) fn new(
        slot: Slot,
        identity: Result<ComponentIdentity, ComponentError>,
    ) -> Result<Self, ComponentError> {
        Ok(Self {
            slot,
            identity: identity?,
        })
    }

    /// Returns whether `participant` is this component.
    pub(super) fn is(&self, participant: &EvidenceParticipant) -> bool {
        self.slot == participant.slot && self.identity == participant.identity
    }
}

/// Returns the components that worked on the envelope before the pipeline: those that
/// decided its transitions, the one that placed its template's fields, and the rules that checked it before it was sent.
pub(super) async fn before(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Vec<CalledComponent>, StoreError> {
    let moves = decisions::moves_of(connection, &envelope.org, &envelope.id).await?;
    let decided = moves
        .into_iter()
        .map(|made| (Slot::Lifecycle, made.component));
    let placed = match &envelope.template {
        Some(template) => decisions::placed_by(connection, &envelope.org, template).await?,
        None => None,
    };
    let placed = placed.map(|component| (Slot::Placement, component));
    // The component of a lender's pack is in the ledger of the lender, which is no part of the originator's evidence.
    let checks = funding::decisions_of(connection, &envelope.org, &envelope.id).await?;
    let checked = checks
        .into_iter()
        .filter(|check| check.stage == FundingStage::BeforeSending && check.pack.is_none())
        .map(|check| (Slot::Funding, check.component));
    let called = decided.chain(placed).chain(checked);
    let called = called.filter_map(|(slot, component)| {
        let identity = serde_json::from_value(component).ok()?;
        Some(CalledComponent { slot, identity })
    });

    Ok(called.collect())
}

/// Returns the rules that decide about an envelope, with their owner and activation.
pub async fn deciding_rules(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    rules: &ComponentIdentity,
    at: Timestamp,
) -> Result<Vec<EvidenceParticipant>, StoreError> {
    let called = CalledComponent {
        slot: Slot::Compliance,
        identity: rules.clone(),
    };
    named(connection, envelope, &[called], at).await
}

/// Returns the organization with the rules that decide about an envelope: none for a built-in pack.
pub async fn rules_owner(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    rules: &ComponentIdentity,
    at: Timestamp,
) -> Result<Option<String>, StoreError> {
    let rules = deciding_rules(connection, envelope, rules, at).await?;
    Ok(match rules.first().map(|one| one.owner) {
        None | Some(DecisionOrigin::Default) => None,
        Some(DecisionOrigin::Operator) => Some("the operator of this installation".into()),
        Some(DecisionOrigin::Organization) => {
            let organization = organizations::get(connection, &envelope.org).await?;
            organization.map(|organization| organization.name)
        }
    })
}

/// Returns each component once, with its owner and activation, ordered by slot.
pub(super) async fn named(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    called: &[CalledComponent],
    at: Timestamp,
) -> Result<Vec<EvidenceParticipant>, StoreError> {
    let mut seen = HashSet::new();
    let mut named = Vec::new();
    for CalledComponent { slot, identity } in called.iter().filter(|called| seen.insert(*called)) {
        // Test data is judged by the rules of its organization.
        let org = envelope.org.live();
        let activated = components::activated(connection, &org, *slot, identity, at).await?;
        // A built-in component that was activated by name still counts as the default.
        let came_along = built_in().any(|artifact| artifact.identity == *identity);
        let of_release = activated.as_ref().is_none_or(|one| one.is_of_release);

        let owner = activated
            .as_ref()
            .and_then(|one| one.component_owner.as_ref());
        named.push(EvidenceParticipant {
            slot: *slot,
            identity: identity.clone(),
            owner: if came_along || of_release {
                DecisionOrigin::Default
            } else if owner.is_some() {
                DecisionOrigin::Organization
            } else {
                DecisionOrigin::Operator
            },
            activation_id: activated.map(|one| one.activation),
        });
    }

    // The certificate lists the components, and a repeated run has to write the same bytes.
    named.sort_by(|one, other| {
        let (a, b) = (&one.identity, &other.identity);
        (one.slot, &a.name, &a.version).cmp(&(other.slot, &b.name, &b.version))
    });

    Ok(named)
}
