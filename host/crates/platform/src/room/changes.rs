//! Changes of a submission by its sender: the order of the submitters, submitters without fields, and
//! corrections of a submitter.

use std::collections::BTreeMap;

use super::Room;
use super::form::FormError;
use holdfast_domain::id::OrgId;
use holdfast_domain::token::random;
use holdfast_store::room::{self as rooms, RoomSubmission, RoomSubmitter};
use holdfast_store::{StoreError, WriteTransaction};

/// Place of one submitter in a submission.
pub struct SubmitterPlace<'a> {
    /// Id in the room; none for a submitter without fields, who is added.
    pub id: Option<i64>,
    pub name: &'a str,
    pub email: &'a str,
    pub role: &'a str,
    pub position: i64,
    /// Place in the signing order, from 1.
    pub turn: i64,
    /// Role of the submitter that this one witnesses.
    pub witness_of: Option<&'a str>,
}

/// Another name and address of a submitter.
pub struct SubmitterCorrection<'a> {
    pub name: &'a str,
    pub email: &'a str,
    /// Whether another person takes the place. The entries and visits of the earlier one do not count.
    pub is_another_person: bool,
}

impl Room {
    /// Puts the submitters of a new submission in order and adds those without fields. Returns their
    /// ids, in the order of `places`.
    pub async fn arrange(
        &self,
        tx: &mut WriteTransaction,
        org: &OrgId,
        submission: i64,
        places: &[SubmitterPlace<'_>],
    ) -> Result<Vec<i64>, StoreError> {
        let submitters = rooms::submitters(tx, org, submission).await?;
        let mut ids = Vec::new();
        for place in places {
            let known = submitters
                .iter()
                .find(|submitter| Some(submitter.id) == place.id);
            // The frozen interface of providers has no place for groups and approvers,
            // so the host adds them here.
            let submitter = RoomSubmitter {
                position: place.position,
                turn: place.turn,
                witness_of: place.witness_of.map(ToOwned::to_owned),
                ..match known {
                    Some(known) => known.clone(),
                    None => without_fields(org, submission, place),
                }
            };
            match known {
                Some(_) => rooms::update_invitation(tx, &submitter).await?,
                None => rooms::insert_submitter(tx, &submitter).await?,
            }

            ids.push(submitter.id);
        }

        Ok(ids)
    }

    /// Changes name and address of a submitter. Fails with [`FormError::Closed`] once the submitter or
    /// the submission is done.
    pub async fn correct(
        &self,
        tx: &mut WriteTransaction,
        org: &OrgId,
        submitter: i64,
        to: SubmitterCorrection<'_>,
    ) -> Result<(), FormError> {
        let found = rooms::submitter(tx, org, submitter).await?;
        let found = found.ok_or(FormError::NotFound)?;
        let submission = rooms::lock_submission(tx, org, found.submission).await?;
        let is_open = |submission: &RoomSubmission| {
            submission.archived_at.is_none() && submission.completed_at.is_none()
        };
        // An executed document carries the old name, so a correction would contradict it.
        let submission = submission.filter(is_open).ok_or(FormError::Closed)?;

        // Read again under the lock: the submitter may have signed meanwhile.
        let found = rooms::submitter(tx, org, submitter).await?;
        let mut submitter = found.ok_or(FormError::NotFound)?;
        if submitter.is_done() {
            return Err(FormError::Closed);
        }

        to.name.clone_into(&mut submitter.name);
        to.email.clone_into(&mut submitter.email);
        rooms::update_invitation(tx, &submitter).await?;

        if to.is_another_person {
            // Entries of the earlier person must not become statements of the new
            // one. The sender's values stay.
            let unopened = RoomSubmitter {
                values: senders_values(&submission, &submitter),
                attachments: BTreeMap::new(),
                signature_style: None,
                opened_at: None,
                started_at: None,
                ip: None,
                user_agent: None,
                ..submitter
            };

            rooms::update_submitter(tx, &unopened).await?;
        }

        Ok(())
    }
}

/// Returns the values of the sender. For a submitter of an earlier release, these are the values that
/// the signer could not change.
fn senders_values(
    submission: &RoomSubmission,
    submitter: &RoomSubmitter,
) -> BTreeMap<String, String> {
    if let Some(prefilled) = &submitter.prefilled {
        return prefilled.clone();
    }

    let own = submission.fields.iter();
    let locked = own.filter(|field| field.submitter_uuid == submitter.role && field.is_locked());
    locked
        .filter_map(|field| {
            let value = submitter.values.get(&field.name)?;
            Some((field.name.clone(), value.clone()))
        })
        .collect()
}

fn without_fields(org: &OrgId, submission: i64, place: &SubmitterPlace<'_>) -> RoomSubmitter {
    let number = |number: i64, byte: &u8| number << 8 | i64::from(*byte);
    // 48 bits are exact as a number of JSON, too.
    let id = random::<6>().iter().fold(0, number);
    RoomSubmitter {
        slug: hex::encode(random::<7>()),
        name: place.name.to_owned(),
        email: place.email.to_owned(),
        role: place.role.to_owned(),
        ..RoomSubmitter::new(org, id, submission, place.position)
    }
}
