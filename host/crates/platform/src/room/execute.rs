//! Creates the executed document after all signers have signed.

use holdfast_adapters::files::{FilesError, StorageArea as FileArea};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::ComponentError;
use holdfast_components::rules::document_values::{Continuation, FlowingField};
use holdfast_components::rules::documents::{Area, DocumentError, FieldValue, FilledField};
use holdfast_components::rules::handwriting::WrittenField;
use holdfast_domain::dates::DateFormat;
use holdfast_domain::id::OrgId;
use holdfast_store::StoreError;
use holdfast_store::room::{self as rooms, RoomField, RoomSubmission, RoomSubmitter};

use super::shown::ShownDocument;
use super::signature::{SignatureValue, component_style};
use super::{Room, dates_in, owner_of};

/// Reason the document could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Component(#[from] ComponentError),
    #[error("the document could not be filled in, or its files not added: {0:?}")]
    Document(DocumentError),
    #[error("the document is not the one that {0} saw and signed")]
    Changed(String),
    #[error("no such submission")]
    NotFound,
}

impl Room {
    /// Writes the values into the document and completes the submission, once all submitters have
    /// signed. Running it twice gives the same file and a single completion; running it before all
    /// have signed does nothing.
    pub async fn execute(&self, org: &OrgId, submission: i64) -> Result<(), ExecuteError> {
        let mut connection = self.store.read().await?;
        let found = rooms::submission(&mut connection, org, submission)
            .await?
            .ok_or(ExecuteError::NotFound)?;
        let submitters = rooms::submitters(&mut connection, org, submission).await?;
        let dates = dates_in(&mut connection, &found).await?.format;

        // No database connection is held during the document work, which may take long.
        drop(connection);
        let all_signed = submitters
            .iter()
            .all(|submitter| submitter.completed_at.is_some());
        if found.completed_at.is_some() || !all_signed {
            return Ok(());
        }

        // Documents of earlier releases may show their dates in another form by now,
        // so their digests need not match.
        if found.date_format.is_some() {
            confirm_shown(&found, &submitters, dates)?;
        }

        let pdf = self.files.get(&found.file()).await?;
        let fields = submitters
            .iter()
            .flat_map(|submitter| filled(&found.fields, submitter, dates))
            .collect::<Result<_, _>>()
            .map_err(ExecuteError::Document)?;
        let executed = self
            .components
            .documents(None, self.store.priority())
            .for_owner(WorkOwner::new(org, &submission.to_string()))
            .fill(pdf.clone(), fields)
            .await?
            .map_err(ExecuteError::Document)?;
        let executed = self.with_attachments(executed, &found, &submitters).await?;
        let file = self
            .files
            // Stored before the transaction: a crash in between
            // leaves an orphaned object, never a dangling row.
            .put(
                FileArea::Room,
                org,
                submitters
                    .first()
                    .map_or("signed", |first| owner_of(first, "signed")),
                executed.into(),
                "application/pdf",
            )
            .await?;

        // The document was filled without a lock: another worker may have completed it meanwhile.
        let mut tx = self.store.begin().await?;
        let mut submission = rooms::lock_submission(&mut tx, org, submission)
            .await?
            .ok_or(ExecuteError::NotFound)?;

        // Keeps the file of the run that committed first.
        if submission.completed_at.is_some() {
            return Ok(());
        }

        submission.signed = Some((file.key, file.sha256));
        submission.completed_at = Some(self.clock.now());
        rooms::update_submission(&mut tx, &submission).await?;
        if let Some(last) = submitters.last() {
            self.tell(&mut tx, last).await?;
        }

        Ok(tx.commit().await?)
    }
}

/// Requires that the document and the entries in it are those that each signer saw, by the digest in the signer's
/// evidence.
fn confirm_shown(
    submission: &RoomSubmission,
    submitters: &[RoomSubmitter],
    dates: DateFormat,
) -> Result<(), ExecuteError> {
    // Signatures of earlier releases recorded no digest.
    if submitters
        .iter()
        .any(|signer| signer.shown_sha256.is_none())
    {
        return Ok(());
    }

    // The digests give the order in which they signed. Times do not: the clocks of two nodes may differ.
    let mut has_signed = vec![false; submitters.len()];
    for _ in submitters {
        let signers = || submitters.iter().zip(&has_signed);
        let earlier = signers().filter(|(_, has_signed)| **has_signed);
        let earlier = earlier.map(|(signer, _)| signer.clone()).collect();
        let (file, fields) = (submission.file(), submission.fields.clone());
        let shown = ShownDocument::new(file, fields, dates, earlier).version();

        let next = signers().position(|(signer, has_signed)| {
            !has_signed && signer.shown_sha256.as_ref() == Some(&shown)
        });
        let Some(next) = next else {
            let left = signers().filter(|(_, has_signed)| !**has_signed);
            let roles: Vec<&str> = left.map(|(signer, _)| signer.role.as_str()).collect();
            return Err(ExecuteError::Changed(roles.join(" or ")));
        };
        has_signed[next] = true;
    }

    Ok(())
}

/// Returns the value that is written for an entry; none for an empty one, an error for a stored signature that
/// cannot be read.
pub(super) fn document_value(
    field: &RoomField,
    entered: &str,
    dates: DateFormat,
) -> Option<Result<FieldValue, DocumentError>> {
    if entered.is_empty() {
        return None;
    }

    // The signature was checked when it was saved. It is parsed again, because only its text is stored.
    let value = match field.field_type.as_str() {
        "signature" | "initials" => match SignatureValue::parse(entered) {
            Ok(SignatureValue::Typed(name)) => FieldValue::Typed(name),
            Ok(SignatureValue::Drawn(picture)) => FieldValue::Drawn(picture),
            Err(why) => {
                let why = format!("stored signature: {why:?}");
                return Some(Err(DocumentError::Other(why)));
            }
        },
        "checkbox" => FieldValue::Checkbox(entered == "true"),
        "radio" if field.is_group() && field.options.iter().any(|option| option == entered) => {
            FieldValue::Checkbox(true)
        }
        "date" => FieldValue::Text(dates.written(entered)),
        _ => FieldValue::Text(entered.to_owned()),
    };

    Some(Ok(value))
}

/// Returns one submitter's values with their positions on the pages.
pub(super) fn filled(
    fields: &[RoomField],
    submitter: &RoomSubmitter,
    dates: DateFormat,
) -> Vec<Result<FlowingField, DocumentError>> {
    let own = fields.iter();
    let own = own.filter(|field| field.submitter_uuid == submitter.role);
    let written = own.filter_map(|field| {
        let entered = submitter.values.get(&field.name)?;
        // One unreadable entry fails the document. A contract must not go out
        // without a signature that was given.
        let value = match document_value(field, entered, dates)? {
            Ok(value) => value,
            Err(why) => return Some(Err(why)),
        };
        let areas = field.places_of(entered).iter().map(|area| Area {
            page: area.page,
            x: area.x,
            y: area.y,
            w: area.w,
            h: area.h,
        });

        Some(Ok(FlowingField {
            continuation: continuation(field, submitter),
            field: WrittenField {
                field: FilledField {
                    areas: areas.collect(),
                    value,
                },
                style: submitter.signature_style.map(component_style),
            },
        }))
    });

    written.collect()
}

/// Ends the part of a long text that stands in its field.
pub(super) const REFERENCE: &str = "[… p. {page}]";

/// Returns the words for a text that continues at the end of the document. They are in no particular language: that of
/// the document is not known.
fn continuation(field: &RoomField, submitter: &RoomSubmitter) -> Option<Continuation> {
    field.rules.overflow.as_ref().map(|_| Continuation {
        heading: format!("{} ({}, {})", field.name, submitter.name, submitter.role),
        reference: REFERENCE.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::clock::Timestamp;
    use holdfast_store::room::RoomSubmission;

    fn signer(position: i64, role: &str, org: &OrgId) -> RoomSubmitter {
        RoomSubmitter {
            role: role.to_owned(),
            ..RoomSubmitter::new(org, position + 1, 1, position)
        }
    }

    /// Two signers of a document without fields; the clock of the second one's node is behind.
    #[test]
    fn the_order_of_signers_is_that_of_their_digests_and_not_of_their_clocks() {
        let org = OrgId::new();
        let submission = RoomSubmission {
            id: 1,
            org: org.clone(),
            template: 1,
            name: String::new(),
            preserve_order: false,
            document: ("key".to_owned(), "ab".repeat(32)),
            fields: Vec::new(),
            date_format: Some(DateFormat::default()),
            signed: None,
            created_at: Timestamp::from_millis(0),
            completed_at: None,
            archived_at: None,
        };
        let (mut first, mut second) = (signer(1, "Seller", &org), signer(0, "Buyer", &org));
        let shown = |earlier: Vec<RoomSubmitter>| {
            ShownDocument::new(
                submission.file(),
                Vec::new(),
                DateFormat::default(),
                earlier,
            )
            .version()
        };
        first.completed_at = Some(Timestamp::from_millis(2_000));
        first.shown_sha256 = Some(shown(Vec::new()));
        second.completed_at = Some(Timestamp::from_millis(1_000));
        second.shown_sha256 = Some(shown(vec![first.clone()]));

        let confirm =
            |signers: &[RoomSubmitter]| confirm_shown(&submission, signers, DateFormat::default());
        assert!(confirm(&[second.clone(), first.clone()]).is_ok());

        second.shown_sha256 = Some("00".repeat(32));
        let problem = confirm(&[second, first]).unwrap_err().to_string();
        assert_eq!(
            problem,
            "the document is not the one that Buyer saw and signed"
        );
    }
}
