//! Text messages to signers, through the organization's provider (slot `provider.messaging`).

use serde_json::json;

use crate::signers::contact_view;
use crate::{Core, ServiceError, events};
use holdfast_base::config::EMBEDDED;
use holdfast_components::providers::messaging::TextMessage;
use holdfast_components::providers::{LeasedPlugin, MessagingProvider, ProviderError};
use holdfast_domain::component::Slot;
use holdfast_domain::envelope::{Envelope, Signer, SignerNotice};
use holdfast_domain::event::EventType;
use holdfast_domain::id::OrgId;
use holdfast_store::signers;

/// Subject of a text message.
#[derive(Clone, Copy, Debug)]
pub enum TextMessageKind {
    Invitation,
    Reminder,
    AccessCode,
}

impl TextMessageKind {
    /// Text form, as used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invitation => "invitation",
            Self::Reminder => "reminder",
            Self::AccessCode => "access_code",
        }
    }
}

/// Result of sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentText {
    /// The provider has taken the message.
    Taken,
    /// The provider will never deliver it, with the reason.
    Refused(String),
}

/// Checks that there is a provider if a signer gets text messages.
///
/// # Errors
/// [`ServiceError::NotConfigured`] when the organization has none.
pub fn check(core: &Core, org: &OrgId, signers: &[Signer]) -> Result<(), ServiceError> {
    if signers.iter().any(Signer::needs_phone) {
        match core.instance(Slot::Messaging, org) {
            instance if instance == EMBEDDED => core.sandbox(Slot::Messaging, Some(org)).map(drop),
            // Not `lease`, at which a dry run would end: this only asks whether there is a provider.
            instance => core.configured(Slot::Messaging, &instance).map(drop),
        }
    } else {
        Ok(())
    }
}

fn provider(core: &Core, org: &OrgId) -> Result<Box<dyn MessagingProvider>, ServiceError> {
    let instance = core.instance(Slot::Messaging, org);
    if instance == EMBEDDED {
        return Ok(core.sandbox(Slot::Messaging, Some(org))?.messaging(org));
    }
    let lease = core.lease(Slot::Messaging, &instance)?;
    let plugin = core.components.messaging(Some(org), &instance);
    Ok(Box::new(LeasedPlugin { plugin, lease }))
}

/// Hands a message to the organization's provider.
///
/// # Errors
/// [`ServiceError::NotConfigured`] without a provider, `OtherProvider` for a failure that a later
/// attempt may not have.
pub async fn send(
    core: &Core,
    org: &OrgId,
    message: TextMessage,
) -> Result<SentText, ServiceError> {
    match provider(core, org)?.send(message).await {
        Ok(_) => Ok(SentText::Taken),
        Err(ProviderError::Rejected(why)) => Ok(SentText::Refused(why)),
        Err(error) => Err(ServiceError::OtherProvider(Slot::Messaging, error)),
    }
}

/// Records and emits that a signer cannot be reached by text message.
pub async fn report(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    about: TextMessageKind,
    why: &str,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let data = json!({
        "signer": contact_view(signer),
        "message": about.as_str(),
        "reason": why,
        "at": now,
    });

    let failure = SignerNotice {
        at: now,
        failure: Some(why.to_owned()),
    };
    // The signer's row and the event in one transaction, so that the page never contradicts the ledger.
    let mut tx = core.store.begin().await?;
    signers::set_notice(&mut tx, envelope, signer, &failure).await?;
    let failed = EventType::SignerTextFailed;
    events::record_and_emit(&mut tx, envelope, "system", failed, data, now).await?;

    Ok(tx.commit().await?)
}
