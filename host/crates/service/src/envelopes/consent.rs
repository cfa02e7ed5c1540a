//! Consent to unattended vaulting. The accepted terms authorize it, not the toggle
//! (specification, "Bulk send"). Terms accepted for a batch are copied to each of its
//! envelopes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, EnvelopeStatus, VaultTerms};
use holdfast_domain::id::EnvelopeId;
use holdfast_domain::job::VaultEnvelope;
use holdfast_platform::events;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::lookup;
use holdfast_platform::vaulting;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue};
use holdfast_store::{envelopes, jobs, vault};

/// Body of `POST /envelopes/{id}/vault-consent` and of its batch counterpart.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "auto_vault_enabled": true, "acknowledge_authoritative_copy": true,
}]))]
pub struct VaultConsent {
    pub auto_vault_enabled: bool,
    /// Acknowledges that the vault will hold the authoritative copy. Required to enable.
    #[serde(default)]
    pub acknowledge_authoritative_copy: bool,
}

impl VaultConsent {
    /// Returns the accepted terms; none when consent is withdrawn.
    pub fn terms(
        &self,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<Option<VaultTerms>, ServiceError> {
        if !self.auto_vault_enabled {
            return Ok(None);
        }
        if !self.acknowledge_authoritative_copy {
            let issue = ValidationIssue::new(
                "not_acknowledged",
                &["acknowledge_authoritative_copy"],
                "true",
                "false",
                "Unattended vaulting needs the acknowledgment",
            );
            return Err(ServiceError::Invalid(vec![issue]));
        }

        Ok(Some(VaultTerms {
            accepted_at: now,
            accepted_by: caller.creator(),
        }))
    }
}

/// Recorded consent to unattended vaulting.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "auto_vault_enabled": true,
    "vault_in_terms_accepted_at": "2026-11-21T09:30:00.000Z",
    "vault_in_terms_accepted_by": "alex@maple.example",
}]))]
pub struct EnvelopeConsent {
    pub envelope_id: EnvelopeId,
    pub auto_vault_enabled: bool,
    pub vault_in_terms_accepted_at: Option<Timestamp>,
    pub vault_in_terms_accepted_by: Option<String>,
}

/// Records or withdraws consent for one envelope. With consent, an envelope that is already
/// completed is queued for vaulting.
pub async fn of_envelope(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: VaultConsent,
    answer: &ResponseRecorder<EnvelopeConsent>,
) -> Result<EnvelopeConsent, ServiceError> {
    let id = EnvelopeId::parse(id).ok_or(ServiceError::NotFound("Envelope"))?;
    let now = core.clock.now();
    let terms = request.terms(caller, now)?;
    let mut tx = core.store.begin().await?;
    // The last signature may arrive now. Under the lock, either it sees the consent, or this call sees
    // the completed envelope.
    let envelope = lookup::lock_envelope(&mut tx, &caller.org, &id).await?;
    check_unvaulted(&envelope)?;

    let consented = Envelope {
        auto_vault: Some(request.auto_vault_enabled),
        vault_terms: terms.clone(),
        ..envelope
    };
    envelopes::set_vault_consent(&mut tx, &consented, now).await?;
    let action = match terms {
        Some(_) => "vault_consent.accepted",
        None => "vault_consent.withdrawn",
    };

    let details = json!({ "auto_vault_enabled": request.auto_vault_enabled });
    events::record(&mut tx, &consented, &caller.actor, action, details, now).await?;

    // Completed before the consent: nothing else would start the vaulting.
    if terms.is_some() && consented.status == EnvelopeStatus::Completed {
        vaulting::queue(&mut tx, &consented, None, now).await?;
    }

    // Withdrawal cancels automatic vaulting, but not vaulting that a caller requested.
    if terms.is_none() && vault::forget_unattended_intent(&mut tx, &consented).await? {
        let key = consented.id.as_str();
        jobs::remove::<VaultEnvelope>(&mut tx, &consented.org, key).await?;
    }

    let shown = EnvelopeConsent {
        envelope_id: consented.id,
        auto_vault_enabled: request.auto_vault_enabled,
        vault_in_terms_accepted_at: terms.as_ref().map(|terms| terms.accepted_at),
        vault_in_terms_accepted_by: terms.map(|terms| terms.accepted_by),
    };
    answer.commit(tx, &shown).await?;

    Ok(shown)
}

fn check_unvaulted(envelope: &Envelope) -> Result<(), ServiceError> {
    use EnvelopeStatus::{Completed, Pending, Preparing, Sent, Uploaded, Viewed};

    if envelope.is_upload() {
        return Err(ServiceError::Conflict(
            "A paper envelope is vaulted only when asked".into(),
        ));
    }

    match envelope.status {
        Pending | Uploaded | Preparing | Sent | Viewed | Completed => Ok(()),
        status => Err(ServiceError::Conflict(format!(
            "Cannot change vault consent of envelope with status: {status}"
        ))),
    }
}
