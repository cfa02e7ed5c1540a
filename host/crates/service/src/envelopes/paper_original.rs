//! The uploader's statement about the paper that an upload was made from. A scan beside a paper original
//! that still exists is not the sole original (UCC §9-314A).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, EnvelopeStatus, PaperOriginal, PaperOriginalState};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::lookup;
use holdfast_platform::{Caller, Core, ServiceError, events};
use holdfast_store::envelopes;

/// Ledger action of a statement.
const STATED: &str = "paper_original.stated";
/// Maximum length of a place, in characters.
const LONGEST_PLACE: usize = 500;

/// Statement about the paper original: `paper_original` of a create, of an upload, or the body of
/// `PUT /partner/envelopes/:id/paper-original`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "state": "kept", "where": "Maple Motors, safe 2" }]))]
pub struct PaperStatement {
    /// What became of the paper: `destroyed`, `marked` as a copy, `kept`, or `unknown`.
    pub state: PaperOriginalState,
    /// Where it is kept, the keeper, or how it was marked or destroyed.
    #[serde(default, rename = "where")]
    #[schemars(length(min = 1, max = 500))]
    pub place: Option<String>,
}

impl PaperStatement {
    /// Parses the part `paper_original` of an upload.
    ///
    /// # Errors
    /// `Invalid` for a text that is no statement.
    pub fn parse(text: &str) -> Result<Self, ServiceError> {
        let wrong = |why: String| {
            ServiceError::invalid(
                "invalid_value",
                &["paper_original"],
                "{\"state\": \"destroyed\", \"marked\", \"kept\" or \"unknown\", \"where\": text or absent}",
                // The part can be large, and the answer quotes its beginning only.
                text.chars().take(100).collect::<String>(),
                why,
            )
        };

        let statement: Self = serde_json::from_str(text)
            .map_err(|_| wrong("This is no statement about a paper original".into()))?;
        // The record prints the place in brackets, so a blank one would leave them empty.
        let is_long =
            |place: &String| place.trim().is_empty() || place.chars().count() > LONGEST_PLACE;
        if statement.place.as_ref().is_some_and(is_long) {
            return Err(wrong(format!(
                "where is a text of 1 to {LONGEST_PLACE} characters"
            )));
        }

        Ok(statement)
    }

    /// Returns the statement as the caller's.
    pub fn of(self, caller: &Caller, now: Timestamp) -> PaperOriginal {
        PaperOriginal {
            state: self.state,
            place: self.place.map(|place| place.trim().to_owned()),
            stated_by: Some(caller.creator()),
            at: Some(now),
        }
    }
}

/// Records the statement about the paper original of an upload that is not vaulted yet.
///
/// # Errors
/// `Conflict` for an envelope that is signed here, and from vault-in on: the certificate has the
/// statement of before.
pub async fn state(
    core: &Core,
    caller: &Caller,
    id: &str,
    statement: PaperStatement,
    answer: &ResponseRecorder<Envelope>,
) -> Result<Envelope, ServiceError> {
    let id = lookup::envelope(core, caller, id).await?.id;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // Under the lock, vault-in reads either the statement of before or this one.
    let mut envelope = lookup::lock_envelope(&mut tx, &caller.org, &id).await?;
    if !envelope.is_upload() {
        return Err(ServiceError::Conflict(
            "The envelope is signed here and has no paper original".into(),
        ));
    }

    if envelope.status != EnvelopeStatus::Uploaded {
        return Err(ServiceError::Conflict(format!(
            "Cannot state the paper original of an envelope with status: {}",
            envelope.status
        )));
    }

    envelope.set_paper_original(&statement.of(caller, now));
    envelope.updated_at = now;
    envelopes::set_metadata(&mut tx, &envelope).await?;
    let details = json!({ "paper_original": envelope.paper_original() });
    events::record(&mut tx, &envelope, &caller.actor, STATED, details, now).await?;
    answer.commit(tx, &envelope).await?;

    Ok(envelope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_has_one_of_four_states() {
        let kept = PaperStatement::parse(r#"{"state":"kept","where":"safe 2"}"#).unwrap();
        assert_eq!(kept.state, PaperOriginalState::Kept);
        assert_eq!(kept.place.as_deref(), Some("safe 2"));

        for text in [
            "",
            "kept",
            r#"{"state":"lost"}"#,
            r#"{"state":"kept","where":" "}"#,
            r#"{"state":"kept","who":"me"}"#,
        ] {
            assert!(PaperStatement::parse(text).is_err(), "{text}");
        }
    }
}
