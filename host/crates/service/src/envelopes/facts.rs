//! The facts about an envelope that compliance rules receive.

use holdfast_store::SqlConnection;
use serde_json::{Value, json};

use crate::envelopes::{consumer, people_notes};
use holdfast_adapters::texts::Texts;
use holdfast_base::config::EMBEDDED;
use holdfast_components::rules::{compliance, to_compliance};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{
    CustodianStatus, Envelope, EnvelopeKind, EnvelopeStatus, JURISDICTION, PaymentStatus,
    SecuredParty, Signer, same_address,
};
use holdfast_domain::event::EventType;
use holdfast_domain::identity::{KbaSession, KbaStatus};
use holdfast_domain::ledger::LedgerEntry;
use holdfast_platform::permits::chain;
use holdfast_store::{StoreError, kba, ledger, payments, signers};

/// Attribute: a payment or identity check was done by a sandbox.
pub const SANDBOX: &str = "provenance.sandbox";
/// Attribute: a signer used another browser than the one that passed the identity check.
pub const IDENTITY_REBOUND: &str = "provenance.identity_rebound";

/// Attribute: the signers with their ids, as JSON. Two signers may share an e-mail address, and the
/// records of 1.0 join by it.
const SIGNERS: &str = "signers";
/// Attribute: the identity checks with the ids of their signers, as JSON.
const IDENTITY_CHECKS: &str = "identity_checks";
/// Attribute: `esign` or `paper`.
const KIND: &str = "envelope_kind";
/// Attribute: `test` for test data.
const ENVIRONMENT: &str = "environment";
/// Attribute: what the uploader stated about the paper original, as JSON.
const PAPER_ORIGINAL: &str = "paper_original";
/// Attribute: the signatures that an upload had, as JSON.
const EXISTING_SIGNATURES: &str = "existing_signatures";
/// Attribute: time at which the record was released.
const RELEASED_AT: &str = "released_at";
/// Attribute: `none` for an authoritative copy without a mark.
pub const MARK: &str = "authoritative_mark";
/// Value of [`MARK`].
pub const UNMARKED: &str = "none";
/// Attribute: organization with rules that decide, unless a built-in pack does.
pub const RULES_OWNER: &str = "rules_owner";
/// Attribute: time of the question, which chooses the text of the law.
const ASKED_AT: &str = "asked_at";
/// Attribute: time at which the envelope was created.
const CREATED_AT: &str = "envelope_created_at";

/// Prefix of attributes with the partner's own facts.
const METADATA: &str = "metadata.";

/// Collects the facts of the record in its present state. `asked_at` is the time of the question: from
/// its effective date on, an amended article governs older transactions as well (UCC §A-301(a)).
pub async fn compliance_facts(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    asked_at: Timestamp,
) -> Result<compliance::EnvelopeFacts, StoreError> {
    let signers = signers::list(connection, &envelope.org, &envelope.id).await?;
    let entries = ledger::list(connection, Some(&envelope.org), &envelope.id).await?;
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
    attributes.extend(about_the_record(envelope, &entries));

    if let Some(jurisdiction) = envelope.jurisdiction() {
        attributes.push((JURISDICTION.to_owned(), jurisdiction.to_owned()));
        attributes.push((ASKED_AT.to_owned(), asked_at.to_string()));
        // Calendars of earlier releases choose the law by it.
        attributes.push((CREATED_AT.to_owned(), envelope.created_at.to_string()));
    }

    // An absent attribute states nothing. An empty list would state that there are no signers.
    if !signers.is_empty() {
        let people = signers
            .iter()
            .map(|signer| signer_fact(envelope, &signers, &entries, signer));
        let people = people.collect::<Vec<Value>>();
        attributes.push((SIGNERS.to_owned(), json!(people).to_string()));
    }

    if !passed.is_empty() {
        let checks = passed
            .iter()
            .filter_map(|check| identity_check(check, &signers));
        let checks = checks.collect::<Vec<Value>>();
        attributes.push((IDENTITY_CHECKS.to_owned(), json!(checks).to_string()));
    }

    attributes.extend(metadata(envelope));
    attributes.extend(consumer::attribute(connection, envelope, &signers).await?);
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
        signed_documents: signed_documents(&signers),
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
    // The prefix keeps a partner's name from posing as an attribute of the host.
    let own = envelope.own_metadata().into_iter().flatten();
    own.map(|(name, value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (format!("{METADATA}{name}"), text)
    })
}

/// Returns attributes for results that prove less than usual. They become members of the
/// certificate's `provenance` object.
async fn provenance(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    passed: &[KbaSession],
) -> Result<Vec<(String, String)>, StoreError> {
    let (org, id) = (&envelope.org, &envelope.id);
    let payment = payments::get(connection, org, id).await?;
    let collected = payment.and_then(|payment| payment.intent);
    // One simulated result is enough: the certificate must not look like that of a real contract.
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

/// Returns the executed parts by address, for components of 1.0. They cannot tell signers with one
/// address apart: such an address has signed once all of them have, at the time of the last.
fn signed_documents(signers: &[Signer]) -> Vec<compliance::SignedDocument> {
    let mut documents: Vec<compliance::SignedDocument> = Vec::new();
    for signer in signers {
        let mut listed = documents.iter();
        if listed.any(|listed| same_address(&listed.signer_email, &signer.email)) {
            continue;
        }

        let with_address = signers
            .iter()
            .filter(|other| same_address(&other.email, &signer.email));
        // One missing signature makes the whole `None`, and the address has not signed yet.
        let executed: Option<Vec<Timestamp>> = with_address
            .map(|signer| signer.signed_at().or(signer.approved_at()))
            .collect();
        if let Some(last) = executed.and_then(|times| times.into_iter().max()) {
            documents.push(compliance::SignedDocument {
                signer_email: signer.email.clone(),
                signed_at: last.to_string(),
            });
        }
    }

    documents
}

/// Describes a signer with an identity of their own.
fn signer_fact(
    envelope: &Envelope,
    signers: &[Signer],
    entries: &[LedgerEntry],
    signer: &Signer,
) -> Value {
    let notes = people_notes::notes(envelope, signers, entries, signer);
    let notes: Vec<String> = notes
        .iter()
        .map(|note| note.in_words(Texts::default()))
        .collect();
    json!({
        "signer_id": signer.id,
        "position": signer.position + 1,
        "name": signer.name,
        "email": signer.email,
        "role": signer.role,
        "kind": signer.kind,
        "signed_at": signer.signed_at(),
        "completed_at": signer.completed_at,
        "notes": notes,
    })
}

/// Describes a passed identity check with the id of its signer; none while it continues.
fn identity_check(check: &KbaSession, signers: &[Signer]) -> Option<Value> {
    let signer = signers.iter().find(|signer| check.is_of(signer));
    let mut fact = json!({
        "signer_id": signer.map(|signer| &signer.id),
        "signer": check.email,
        "outcome": check.status,
        "timestamp": check.ended_at?,
        "ip_address": check.ip,
        "session_id": check.provider_session,
    });

    // The sandbox asked no person.
    if check.instance == EMBEDDED {
        fact["sandbox"] = true.into();
    }

    Some(fact)
}

/// Returns the facts of the record as a whole: its kind, and the statements of its uploader.
fn about_the_record(
    envelope: &Envelope,
    entries: &[LedgerEntry],
) -> impl Iterator<Item = (String, String)> {
    let last = |kind: EventType| {
        let mut entries = entries.iter().rev();
        entries.find(|entry| entry.action == kind.as_str())
    };
    let is_paper = envelope.kind == EnvelopeKind::Paper || envelope.is_upload();
    let kind = if is_paper {
        EnvelopeKind::Paper
    } else {
        envelope.kind
    };

    // A document that its author certified against any change is neither marked nor sealed.
    let is_unmarked = last(EventType::VaultStored)
        .is_some_and(|stored| stored.details["seal_certificate_hash"].is_null());
    let signatures = &envelope.existing_signatures;
    let is_released = envelope.status == EnvelopeStatus::VaultedOut;
    let released = last(EventType::VaultReleased).filter(|_| is_released);

    let attributes = [
        (KIND, Some(kind.to_string())),
        (
            ENVIRONMENT,
            envelope.org.is_test().then(|| "test".to_owned()),
        ),
        (
            PAPER_ORIGINAL,
            is_paper.then(|| json!(envelope.paper_original()).to_string()),
        ),
        (
            EXISTING_SIGNATURES,
            (!signatures.is_empty()).then(|| json!(signatures).to_string()),
        ),
        (MARK, is_unmarked.then(|| UNMARKED.to_owned())),
        (RELEASED_AT, released.map(|entry| entry.at.to_string())),
    ];

    let attributes = attributes.into_iter();
    attributes.filter_map(|(name, value)| Some((name.to_owned(), value?)))
}
