//! Consent of the signers to electronic records (15 U.S.C. §7001(c)): the text that each was shown and the
//! demonstrated access, for ledger, certificate and custody record. Signers are joined by their place, because an
//! e-mail address may be shared.

use holdfast_store::SqlConnection;
use serde::Serialize;
use serde_json::{Value, json};

use holdfast_base::config::EMBEDDED;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::disclosure::DemonstratedAccess;
use holdfast_domain::envelope::{Envelope, Signer};
use holdfast_domain::id::SignerId;
use holdfast_platform::lookup;
use holdfast_store::room::{self as rooms, GivenConsent, RoomSubmitter};
use holdfast_store::{StoreError, disclosures};

/// Attribute of the facts: the consents of all signers, as a JSON list.
pub const CONSUMER_CONSENT: &str = "consumer_consent";

/// Version that a consent has if the interface for tests signed in the place of a person.
pub const SIMULATED: &str = "test";

/// Reason why there is no consent to a disclosure of this service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingConsent {
    /// The signer has not signed.
    Unsigned,
    /// Another provider presented the document.
    OtherProvider(String),
    /// The interface for tests signed.
    Simulated,
    /// An earlier release recorded a consent without keeping its text.
    EarlierRelease,
}

impl MissingConsent {
    fn sentence(&self) -> String {
        match self {
            Self::Unsigned => "Has not signed.".into(),
            Self::OtherProvider(provider) => format!(
                "Signed at another provider ({provider}): this service showed no disclosure."
            ),
            Self::Simulated => {
                "TEST: signed by the test interface; no disclosure was shown to a person.".into()
            }
            Self::EarlierRelease => {
                "Signed with an earlier release of this service, which kept no text of a disclosure."
                    .into()
            }
        }
    }
}

/// Consent of one signer.
#[derive(Clone, Debug)]
pub struct SignersConsent {
    pub signer_id: SignerId,
    pub position: i64,
    pub name: String,
    pub email: String,
    pub role: String,
    /// Statement of the sender.
    pub consumer: Option<bool>,
    /// Consent to a text that this service showed and keeps.
    pub given: Result<GivenConsent, MissingConsent>,
    pub consented_at: Option<Timestamp>,
}

/// Member of the certificate's `consumer_consent`.
#[derive(Serialize)]
struct CertifiedConsent<'a> {
    signer_id: &'a SignerId,
    /// From 1.
    position: i64,
    signer: &'a str,
    role: &'a str,
    consumer: Option<bool>,
    disclosure_sha256: Option<&'a str>,
    disclosure_version: Option<&'a str>,
    language: Option<&'a str>,
    shown_at: Option<Timestamp>,
    consented_at: Option<Timestamp>,
    demonstrated: Option<&'a DemonstratedAccess>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl SignersConsent {
    fn certified(&self) -> Value {
        let given = self.given.as_ref().ok();
        json!(CertifiedConsent {
            signer_id: &self.signer_id,
            position: self.position + 1,
            signer: &self.email,
            role: &self.role,
            consumer: self.consumer,
            disclosure_sha256: given.map(|given| given.sha256.as_str()),
            disclosure_version: given.map(|given| given.version.as_str()),
            language: given.map(|given| given.locale.as_str()),
            shown_at: given.and_then(|given| given.shown_at),
            consented_at: self.consented_at,
            demonstrated: given.and_then(|given| given.demonstrated.as_ref()),
            reason: self.given.as_ref().err().map(MissingConsent::sentence),
        })
    }
}

/// Returns the consents of the signers, in their order; none for an upload, which was signed elsewhere.
pub async fn consents(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signers: &[Signer],
) -> Result<Vec<SignersConsent>, StoreError> {
    let submitters = match lookup::room_submission(envelope) {
        Some(id) => rooms::submitters(connection, &envelope.org, id).await?,
        None => Vec::new(),
    };
    let mut consents = Vec::new();
    if envelope.is_upload() {
        return Ok(consents);
    }

    for signer in signers {
        let submitter = submitters.iter().find(|one| is_of(one, signer));
        let given = given(connection, envelope, submitter).await?;
        consents.push(SignersConsent {
            signer_id: signer.id.clone(),
            position: signer.position,
            name: signer.name.clone(),
            email: signer.email.clone(),
            role: signer.role.clone(),
            consumer: signer.consumer,
            given,
            consented_at: submitter.and_then(|submitter| submitter.consented_at),
        });
    }

    Ok(consents)
}

fn is_of(submitter: &RoomSubmitter, signer: &Signer) -> bool {
    let id = submitter.id.to_string();
    signer.provider_submitter.as_ref() == Some(&id)
}

async fn given(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    submitter: Option<&RoomSubmitter>,
) -> Result<Result<GivenConsent, MissingConsent>, StoreError> {
    // Another provider shows a disclosure of its own, if any, and this service has no copy of it.
    let provider = envelope.sending.provider_instance.as_deref();
    let provider = provider.filter(|instance| *instance != EMBEDDED);
    if let Some(provider) = provider {
        return Ok(Err(MissingConsent::OtherProvider(provider.to_owned())));
    }
    let Some(submitter) = submitter.filter(|one| one.completed_at.is_some()) else {
        return Ok(Err(MissingConsent::Unsigned));
    };
    let Some(consent) = &submitter.consent else {
        return Ok(Err(MissingConsent::EarlierRelease));
    };

    // The test interface signs without a page, so no person saw a text.
    if consent.shown_at.is_none() && consent.version == SIMULATED {
        return Ok(Err(MissingConsent::Simulated));
    }

    // A digest alone proves nothing: the text must still be readable.
    let kept = disclosures::body(connection, &envelope.org, &consent.sha256).await?;
    Ok(match kept {
        Some(_) => Ok(consent.clone()),
        None => Err(MissingConsent::EarlierRelease),
    })
}

/// Returns the attribute of the facts; none for a record without consents.
pub async fn attribute(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signers: &[Signer],
) -> Result<Option<(String, String)>, StoreError> {
    let consents = consents(connection, envelope, signers).await?;
    // An empty list would read as if no signer had consented.
    if consents.is_empty() {
        return Ok(None);
    }
    let certified = consents.iter().map(SignersConsent::certified);
    let list = Value::Array(certified.collect());
    Ok(Some((CONSUMER_CONSENT.to_owned(), list.to_string())))
}

async fn submitter_of(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<Option<RoomSubmitter>, StoreError> {
    let Some(id) = lookup::room_submission(envelope) else {
        return Ok(None);
    };
    let submitters = rooms::submitters(connection, &envelope.org, id).await?;
    Ok(submitters.into_iter().find(|one| is_of(one, signer)))
}

/// Adds what a signer's consent rests on, and what a witness stated, to the ledger entry of the
/// completion.
pub async fn note(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signer: &Signer,
    details: &mut Value,
) -> Result<(), StoreError> {
    details["consumer"] = json!(signer.consumer);
    let Some(submitter) = submitter_of(connection, envelope, signer).await? else {
        return Ok(());
    };

    if let Some(stated) = &submitter.witness {
        details["witness_of"] = json!(signer.witness_of);
        details["witness"] = json!(stated);
    }

    // The other members of the consent are attributes that the signing room reports.
    if let Some(consent) = submitter.consent {
        details["consent_shown_at"] = json!(consent.shown_at);
        details["consent_demonstrated"] = json!(consent.demonstrated);
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_says_why_no_text_was_agreed_to() {
        for (missing, sentence) in [
            (MissingConsent::Unsigned, "Has not signed."),
            (
                MissingConsent::OtherProvider("docuseal".into()),
                "Signed at another provider (docuseal): this service showed no disclosure.",
            ),
            (
                MissingConsent::Simulated,
                "TEST: signed by the test interface; no disclosure was shown to a person.",
            ),
            (
                MissingConsent::EarlierRelease,
                "Signed with an earlier release of this service, which kept no text of a disclosure.",
            ),
        ] {
            assert_eq!(missing.sentence(), sentence);
        }
    }
}
