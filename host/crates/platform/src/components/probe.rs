//! First call of a provider before it is activated: wrong settings are found now and not by the first signer.

use std::sync::Arc;
use std::time::Duration;

use super::activation::CheckedActivation;
use super::{ComponentManager, ComponentOwner, following};
use crate::providers::instance::InstanceConfig;
use crate::{Core, ServiceError};
use holdfast_components::providers::{
    ConversionPre, KbaPre, MessagingPre, PaymentPre, ProviderError, SigningPre, conversion, kba,
    messaging,
};
use holdfast_domain::component::{InstanceReference, Slot};
use holdfast_domain::component_change::ProviderProbe;

/// Id of an object that no service knows, of letters that plugins pass on.
const UNKNOWN: &str = "0";
/// A service that takes longer does not keep its settings from being activated.
const PATIENCE: Duration = Duration::from_secs(5);
/// Characters of a reason.
pub(super) const REASON: usize = 500;

/// Asks an organization's provider for an object that it cannot know, with the settings that are to be
/// activated; providers of identity, messages and conversions have a function for it. `None` for rules, and for
/// components without that function.
///
/// # Errors
/// `Semantic` with the plugin's reason if a setting or secret is missing.
pub(super) async fn probe(
    core: &Core,
    management: &Arc<ComponentManager>,
    owner: &ComponentOwner,
    checked: &CheckedActivation,
) -> Result<Option<ProviderProbe>, ServiceError> {
    let slot = checked.component.slot;
    let Some(org) = owner.org.as_ref().filter(|_| slot.is_provider()) else {
        return Ok(None);
    };

    let at = InstanceReference::own(org, &checked.instance);
    let Some(config) = settings_of(core, owner, checked) else {
        return Ok(None);
    };

    // The settings of the request, which are stored nowhere yet.
    let lease = core.lease_with(slot, &at.to_string(), &config);
    let artifact = following::artifact(core, management, &checked.component).await?;
    let asked = async {
        let components = &core.components;
        let asked = match slot {
            Slot::Payment => {
                let plugin = components.provider_from::<PaymentPre>(&artifact, org)?;
                plugin.read_intent(lease, UNKNOWN).await.map(drop)
            }
            Slot::Kba => {
                let plugin = components.provider_from::<KbaPre>(&artifact, org)?;
                return plugin.probe::<kba::ProviderError>(lease).await;
            }
            Slot::Messaging => {
                let plugin = components.provider_from::<MessagingPre>(&artifact, org)?;
                return plugin.probe::<messaging::ProviderError>(lease).await;
            }
            Slot::Conversion => {
                let plugin = components.provider_from::<ConversionPre>(&artifact, org)?;
                return plugin.probe::<conversion::ProviderError>(lease).await;
            }
            _ => {
                let plugin = components.provider_from::<SigningPre>(&artifact, org)?;
                plugin.read_template(lease, UNKNOWN).await.map(drop)
            }
        };

        asked.map(Some)
    };

    // No lock is held: a vendor that does not answer delays only this caller.
    let reason = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(None)) => return Ok(None),
        // The vendor looked for the object, so address and secrets are right.
        Ok(Ok(Some(())) | Err(ProviderError::NotFound)) => None,
        Ok(Err(error @ ProviderError::NotConfigured(_))) => {
            return Err(ServiceError::Semantic(error.to_string()));
        }
        // A vendor that is down must not keep its settings from being activated.
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer in {} seconds", PATIENCE.as_secs())),
    };

    Ok(Some(ProviderProbe {
        ok: reason.is_none(),
        reason: reason.map(|reason| reason.chars().take(REASON).collect()),
    }))
}

/// Returns the settings of an organization's instance: those to be activated, or else the present ones.
pub(super) fn settings_of(
    core: &Core,
    owner: &ComponentOwner,
    checked: &CheckedActivation,
) -> Option<InstanceConfig> {
    let org = owner.org.as_ref()?;
    let at = InstanceReference::own(org, &checked.instance);
    let active = core.components.active();
    let present = active.at(
        checked.component.slot,
        Some(org),
        &at.name,
        core.clock.now(),
    );
    let present = present.and_then(|(live, _)| live.config.clone());
    let sealed = checked.config.clone().or(present)?;

    InstanceConfig::open(&sealed, &core.cipher, &at)
}
