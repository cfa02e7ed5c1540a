//! The facts about an envelope that compliance rules receive.

use serde_json::json;
use sqlx::AnyConnection;

use crate::components::rules::{compliance, to_compliance};
use crate::config::EMBEDDED;
use crate::domain::envelope::{
    CustodianStatus, Envelope, EnvelopeStatus, JURISDICTION, PaymentStatus, SecuredParty, Signer,
};
use crate::domain::event::EventType;
use crate::domain::identity::{KbaSession, KbaStatus};
use crate::service::control::chain;
use crate::store::{StoreError, kba, ledger, payments, signers};

/// Attribute: a payment or identity check was done by a sandbox.
pub const SANDBOX: &str = "provenance.sandbox";
/// Attribute: a signer used another browser than the one that passed the identity check.
pub const IDENTITY_REBOUND: &str = "provenance.identity_rebound";

/// Attribute: time at which the envelope was created.
const CREATED_AT: &str = "envelope_created_at";

/// Attribute: the release of a record that left the vault, as JSON with `at`, `recipient_organization` and
/// `medium` (`electronic` or `paper`).
const RELEASE: &str = "release";

/// Prefix of attributes with the partner's own facts.
const METADATA: &str = "metadata.";

/// Collects the facts of the record in its present state.
pub async fn compliance_facts(
    connection: &mut AnyConnection,
    envelope: &Envelope,
) -> Result<compliance::EnvelopeFacts, StoreError> {
    let signers = signers::list(connection, &envelope.org, &envelope.id).await?;
    let custodians = signers::custodians(connection, &envelope.org, &envelope.id).await?;
    // Only passed attempts identify a signer; failed ones are in the ledger.
    let mut passed = kba::list(connection, &envelope.org, &envelope.id).await?;
    passed.retain(|session| {
        session.status == KbaStatus::Passed
            // The signer may have been replaced since by another person, who did not pass.
            && signers.iter().any(|signer| session.is_of(signer))
    });
    let mut attributes = provenance(connection, envelope, &passed).await?;
    attributes.extend(chain::attributes(connection, envelope).await?);
    attributes.extend(release(connection, envelope).await?);
    let jurisdiction = envelope.jurisdiction();
    if let Some(jurisdiction) = jurisdiction {
        attributes.push((JURISDICTION.to_owned(), jurisdiction.to_owned()));
        // Decides which law applies to a record without signatures.
        attributes.push((CREATED_AT.to_owned(), envelope.created_at.to_string()));
    }
    attributes.extend(metadata(envelope));
    let identity_verifications = passed
        .into_iter()
        .filter_map(identity_verification)
        .collect();
    Ok(compliance::EnvelopeFacts {
        envelope_id: envelope.id.to_string(),
        envelope_name: envelope.name.clone(),
        customer_id: envelope.customer.to_string(),
        status: to_compliance(envelope.status),
        vault_file_path: envelope.vault_file_path(),
        document_hash: envelope.record.document_hash.clone(),
        copy_file_path: envelope.copy_file_path(),
        vault_out_certificate_path: envelope.certificate_path(),
        secured_party: envelope.secured_party.as_ref().map(secured_party),
        submitters: signers.iter().map(submitter).collect(),
        signed_documents: signers.iter().filter_map(signed_document).collect(),
        custodians: custodians
            .iter()
            .map(|custodian| compliance::Custodian {
                email: custodian.email.clone(),
                status: match custodian.status {
                    CustodianStatus::Pending => compliance::CustodianStatus::Pending,
                    CustodianStatus::Accepted => compliance::CustodianStatus::Accepted,
                    CustodianStatus::Revoked => compliance::CustodianStatus::Revoked,
                },
            })
            .collect(),
        identity_verifications,
        attributes,
    })
}

/// Returns the partner's own facts as attributes `metadata.<name>`, for the checks of an organization.
fn metadata(envelope: &Envelope) -> impl Iterator<Item = (String, String)> {
    let own = envelope.own_metadata().into_iter().flatten();
    own.map(|(name, value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (format!("{METADATA}{name}"), text)
    })
}

/// Returns when, to whom and in which form a record was released, for the sentences of checks about the vault.
async fn release(
    connection: &mut AnyConnection,
    envelope: &Envelope,
) -> Result<Option<(String, String)>, StoreError> {
    if envelope.status != EnvelopeStatus::VaultedOut {
        return Ok(None);
    }
    let action = EventType::VaultReleased.as_str();
    let entry = ledger::last_of(connection, &envelope.org, &envelope.id, action).await?;
    let told = entry.map(|entry| {
        let form = &entry.details["form"];
        let medium = form["medium"].as_str().unwrap_or("electronic");
        json!({
            "at": entry.at,
            "recipient_organization": form["recipient_organization"],
            "medium": medium,
        })
    });
    Ok(told.map(|told| (RELEASE.to_owned(), told.to_string())))
}

/// Returns attributes for results that prove less than usual. They become members of the
/// certificate's `provenance` object.
async fn provenance(
    connection: &mut AnyConnection,
    envelope: &Envelope,
    passed: &[KbaSession],
) -> Result<Vec<(String, String)>, StoreError> {
    let (org, id) = (&envelope.org, &envelope.id);
    let payment = payments::get(connection, org, id).await?;
    let collected = payment.and_then(|payment| payment.intent);
    let pretended = envelope.payment == Some(PaymentStatus::Paid)
        && collected.is_some_and(|(instance, _)| instance == EMBEDDED)
        || passed.iter().any(|session| session.instance == EMBEDDED);
    let rebound = kba::rebound(connection, org, id).await?;
    let mut marks = Vec::new();
    if pretended {
        marks.push((SANDBOX.to_owned(), json!(true).to_string()));
    }
    if !rebound.is_empty() {
        let rebound: Vec<_> = rebound
            .into_iter()
            .map(|(email, at)| json!({ "signer_email": email, "at": at }))
            .collect();
        marks.push((IDENTITY_REBOUND.to_owned(), json!(rebound).to_string()));
    }
    Ok(marks)
}

fn identity_verification(session: KbaSession) -> Option<compliance::IdentityVerification> {
    Some(compliance::IdentityVerification {
        signer_email: session.email,
        outcome: session.status.to_string(),
        occurred_at: session.ended_at?.to_string(),
        ip_address: session.ip,
        provider_session_id: session.provider_session,
    })
}

fn secured_party(party: &SecuredParty) -> compliance::SecuredParty {
    compliance::SecuredParty {
        name: party.name.clone(),
        role: party.role.clone(),
        address: party.address.clone(),
        email: party.email.clone(),
        identifier: party.identifier.clone(),
    }
}

fn submitter(signer: &Signer) -> compliance::Submitter {
    compliance::Submitter {
        name: signer.name.clone(),
        email: signer.email.clone(),
        role: signer.role.clone(),
    }
}

fn signed_document(signer: &Signer) -> Option<compliance::SignedDocument> {
    signer.completed_at.map(|at| compliance::SignedDocument {
        signer_email: signer.email.clone(),
        signed_at: at.to_string(),
    })
}
