//! What happens at the provider becomes what happens to the envelope.
//!
//! A callback only says where to look. The submission is read back and compared
//! with the record, so that a repeated, reordered or lost callback does no harm:
//! every difference is applied once.

use serde_json::{Value, json};

use super::{ServiceError, envelopes as envelope_service, events, lifecycle, mails};
use crate::app::App;
use crate::components::providers::signing as provider;
use crate::components::rules::lifecycle::EnvelopeTrigger;
use crate::domain::clock::Timestamp;
use crate::domain::envelope::{Envelope, EnvelopeStatus, Signer, SignerStatus};
use crate::domain::event::EventType;
use crate::store::{Tx, envelopes, organizations, signers};
use crate::worker;

/// Fields shown in `envelope.completed`, and the size they may have together.
const FIELDS_LIMIT: usize = 200;
const FIELDS_BYTES: usize = 64 * 1024;

/// Why a callback was not taken.
#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    /// The plugin could not verify it.
    #[error("the callback could not be verified: {0}")]
    Unverified(String),
    /// Verified and not understood.
    #[error("the callback is malformed: {0}")]
    Malformed(String),
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// Takes a provider's callback.
pub async fn callback(
    app: &App,
    instance: &str,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
) -> Result<(), CallbackError> {
    let lease = app.signing_lease(None, instance)?;
    let subject = app
        .components
        .providers
        .signing
        .read_callback(lease, provider::Callback { headers, body })
        .await
        .map_err(ServiceError::from)?;
    let submission = match subject {
        Ok(provider::CallbackSubject::Submission(submission)) => submission,
        Ok(provider::CallbackSubject::Submitter((_, submission))) => submission,
        Ok(provider::CallbackSubject::Ignored) => return Ok(()),
        Err(provider::CallbackError::Unverified(why)) => {
            return Err(CallbackError::Unverified(why));
        }
        Err(provider::CallbackError::Malformed(why)) => return Err(CallbackError::Malformed(why)),
    };
    let mut connection = app.store.read().await.map_err(ServiceError::from)?;
    let envelope = envelopes::by_submission(&mut connection, instance, &submission)
        .await
        .map_err(ServiceError::from)?;
    drop(connection);
    match envelope {
        Some(envelope) => Ok(reconcile(app, &envelope).await?),
        // Somebody else's submission at the same provider.
        None => Ok(()),
    }
}

/// Brings an envelope up to what its provider says.
pub async fn reconcile(app: &App, envelope: &Envelope) -> Result<(), ServiceError> {
    let (Some(instance), Some(submission)) = (&envelope.provider_instance, &envelope.submission)
    else {
        return Ok(());
    };
    let lease = app.signing_lease(Some(&envelope.org), instance)?;
    let submission = app
        .components
        .providers
        .signing
        .read_submission(lease, submission)
        .await?;
    let now = app.clock.now();
    let mut tx = app.store.begin().await?;
    let Some(mut envelope) = envelopes::lock(&mut tx, &envelope.org, &envelope.id).await? else {
        return Ok(());
    };
    if !matches!(
        envelope.status,
        EnvelopeStatus::Sent | EnvelopeStatus::Viewed
    ) {
        return Ok(());
    }
    let mut signers = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
    let mut finished = false;
    for signer in &mut signers {
        let seen = submission
            .submitters
            .iter()
            .find(|seen| signer.provider_submitter.as_deref() == Some(&seen.submitter_id));
        if let Some(seen) = seen {
            finished |= follow(app, &mut tx, &mut envelope, signer, seen, now).await?;
        }
    }
    if let Some(declined) = signers
        .iter()
        .find(|signer| signer.status == SignerStatus::Declined)
    {
        decline(app, &mut tx, &mut envelope, declined, now).await?;
    } else if submission.status == provider::SubmissionStatus::Completed
        && signers
            .iter()
            .all(|signer| signer.status == SignerStatus::Completed)
    {
        complete(app, &mut tx, &mut envelope, &signers, &submission, now).await?;
    } else if finished && envelope.preserve_signing_order {
        for signer in envelope_service::invited_now(&envelope, &signers) {
            mails::invite(&mut tx, &envelope, signer, now).await?;
        }
    }
    Ok(tx.commit().await?)
}

/// Applies what one signer has done since. True when the signer has finished now.
async fn follow(
    app: &App,
    tx: &mut Tx,
    envelope: &mut Envelope,
    signer: &mut Signer,
    seen: &provider::Submitter,
    now: Timestamp,
) -> Result<bool, ServiceError> {
    let before = signer.status;
    let after = match seen.status {
        provider::SignerStatus::Pending => SignerStatus::Pending,
        provider::SignerStatus::Viewed => SignerStatus::Viewed,
        provider::SignerStatus::Started => SignerStatus::Started,
        provider::SignerStatus::Completed => SignerStatus::Completed,
        provider::SignerStatus::Declined => SignerStatus::Declined,
    };
    if progress(after) <= progress(before) {
        return Ok(false);
    }
    signer.status = after;
    if after == SignerStatus::Completed {
        let at = seen.completed_at.as_deref().and_then(Timestamp::parse);
        signer.completed_at = Some(at.unwrap_or(now));
    }
    if after == SignerStatus::Declined {
        signer.decline_reason = Some(seen.decline_reason.clone().unwrap_or_default());
    }
    if !seen.email.eq_ignore_ascii_case(&signer.email) {
        // Delegated at the provider: the record must say who really signs.
        let details = json!({ "role": signer.role, "from": signer.email, "to": seen.email });
        events::record(tx, envelope, "provider", "signer.delegated", details, now).await?;
        signer.email.clone_from(&seen.email);
        signer.name.clone_from(&seen.name);
    }
    signers::update(tx, envelope, signer).await?;
    if envelope.status == EnvelopeStatus::Sent {
        let next = lifecycle::next_status(app, envelope, EnvelopeTrigger::View)?;
        envelopes::set_status(tx, envelope, next, now).await?;
        envelope.status = next;
    }
    // A step that was passed over is told of too: a signer who has completed
    // has viewed and started.
    let steps = [
        (SignerStatus::Viewed, EventType::SignerViewed),
        (SignerStatus::Started, EventType::SignerStarted),
        (SignerStatus::Completed, EventType::SignerCompleted),
    ];
    for (status, event_type) in steps {
        let reached = progress(status) > progress(before) && progress(status) <= progress(after);
        if reached && after != SignerStatus::Declined {
            let data = json!({ "signer": envelope_service::signer_view(signer), "at": now });
            let actor = format!("signer:{}", signer.email);
            let mut details = data.clone();
            note_origin(&mut details, seen);
            events::record(tx, envelope, &actor, event_type.as_str(), details, now).await?;
            events::emit(tx, envelope, event_type, data, now).await?;
        }
    }
    Ok(after == SignerStatus::Completed)
}

/// The ledger keeps where a signer came from; events do not tell it.
fn note_origin(details: &mut Value, seen: &provider::Submitter) {
    if let Value::Object(members) = details {
        for (name, value) in &seen.attributes {
            if name == "ip" || name == "user_agent" {
                members.insert(name.clone(), value.as_str().into());
            }
        }
    }
}

fn progress(status: SignerStatus) -> u8 {
    match status {
        SignerStatus::Pending => 0,
        SignerStatus::Viewed => 1,
        SignerStatus::Started => 2,
        SignerStatus::Completed => 3,
        SignerStatus::Declined => 4,
    }
}

async fn decline(
    app: &App,
    tx: &mut Tx,
    envelope: &mut Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let next = lifecycle::next_status(app, envelope, EnvelopeTrigger::Decline)?;
    envelopes::set_status(tx, envelope, next, now).await?;
    envelope.status = next;
    let data = json!({
        "signer": envelope_service::signer_view(signer),
        "reason": signer.decline_reason,
    });
    let actor = format!("signer:{}", signer.email);
    events::record_and_emit(tx, envelope, &actor, EventType::EnvelopeDeclined, data, now).await?;
    Ok(mails::declined(tx, envelope, now).await?)
}

async fn complete(
    app: &App,
    tx: &mut Tx,
    envelope: &mut Envelope,
    signers: &[Signer],
    submission: &provider::Submission,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let next = lifecycle::next_status(app, envelope, EnvelopeTrigger::Complete)?;
    envelopes::set_status(tx, envelope, next, now).await?;
    envelope.status = next;
    let (fields, fields_truncated) = completed_fields(submission);
    let data = json!({
        "completed_at": now,
        "signers": signers.iter().map(envelope_service::signer_view).collect::<Vec<_>>(),
        "fields": fields,
        "fields_truncated": fields_truncated,
    });
    let details = json!({ "completed_at": now, "signers": signers.len() });
    let action = EventType::EnvelopeCompleted.as_str();
    events::record(tx, envelope, "system", action, details, now).await?;
    events::emit(tx, envelope, EventType::EnvelopeCompleted, data, now).await?;
    let organization = organizations::get(tx, &envelope.org).await?;
    let mut tell_at = now;
    if organization.is_some_and(|organization| organization.settings.auto_vault) {
        worker::insert_vault_job(tx, envelope, None, now).await?;
        tell_at = now + mails::VAULT_HEAD_START;
    }
    Ok(mails::completed(tx, envelope, tell_at).await?)
}

/// `fields[]` of the event: a number for `number`, `signed` for signatures,
/// text otherwise; cut at 200 fields or 64 KiB.
fn completed_fields(submission: &provider::Submission) -> (Vec<Value>, bool) {
    let mut fields = Vec::new();
    let mut bytes = 0;
    for submitter in &submission.submitters {
        for value in &submitter.values {
            let field = json!({
                "name": value.name,
                "type": value.field_type,
                "value": event_value(value),
                "signer_email": submitter.email,
            });
            bytes += field.to_string().len();
            if fields.len() == FIELDS_LIMIT || bytes > FIELDS_BYTES {
                return (fields, true);
            }
            fields.push(field);
        }
    }
    (fields, false)
}

fn event_value(value: &provider::SignedValue) -> Value {
    match value.field_type.as_str() {
        "signature" | "initials" => "signed".into(),
        "number" => value
            .value
            .parse::<f64>()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map_or_else(|| value.value.as_str().into(), Value::Number),
        _ => value.value.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submission(values: Vec<(&str, &str, &str)>) -> provider::Submission {
        provider::Submission {
            submission_id: "1".into(),
            status: provider::SubmissionStatus::Completed,
            archived: false,
            completed_at: None,
            submitters: vec![provider::Submitter {
                submitter_id: "1".into(),
                name: "Ann".into(),
                email: "ann@example.com".into(),
                role: "Buyer".into(),
                status: provider::SignerStatus::Completed,
                signing_url: String::new(),
                completed_at: None,
                decline_reason: None,
                values: values
                    .into_iter()
                    .map(|(name, field_type, value)| provider::SignedValue {
                        name: name.into(),
                        field_type: field_type.into(),
                        value: value.into(),
                    })
                    .collect(),
                attributes: Vec::new(),
            }],
        }
    }

    #[test]
    fn values_have_the_types_of_the_contract() {
        let (fields, truncated) = completed_fields(&submission(vec![
            ("amount", "number", "12.5"),
            ("agreed", "checkbox", "true"),
            ("signature", "signature", "Ann"),
            ("note", "text", "12"),
        ]));
        let values: Vec<&Value> = fields.iter().map(|field| &field["value"]).collect();
        assert_eq!(
            values,
            [&json!(12.5), &json!("true"), &json!("signed"), &json!("12")]
        );
        assert!(!truncated);
    }

    #[test]
    fn long_lists_of_fields_are_cut_and_say_so() {
        let (fields, truncated) = completed_fields(&submission(vec![("a", "text", "x"); 201]));
        assert_eq!((fields.len(), truncated), (200, true));
        let long = "x".repeat(40_000);
        let (fields, truncated) = completed_fields(&submission(vec![("a", "text", &long); 2]));
        assert_eq!((fields.len(), truncated), (1, true));
    }
}
