//! Making the executed document once everybody has signed.

use crate::components::ComponentError;
use crate::components::rules::documents::{Area, DocumentError, FieldValue, FilledField};
use crate::domain::id::OrgId;
use crate::fair_queue::Owner;
use crate::files::{Area as FileArea, FilesError};
use crate::store::StoreError;
use crate::store::room::{self as rooms, RoomField, RoomSubmitter};

use super::Room;
use super::signature::Signature;

/// Why the document could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Component(#[from] ComponentError),
    #[error("the document could not be filled in: {0:?}")]
    Document(DocumentError),
    #[error("no such submission")]
    NotFound,
}

impl Room {
    /// Once everybody has signed, writes the values into the document and
    /// completes the submission. Doing it twice gives the same file and one
    /// completion; doing it too early does nothing.
    pub async fn execute(&self, org: &OrgId, submission: i64) -> Result<(), ExecuteError> {
        let mut connection = self.store.read().await?;
        let found = rooms::submission(&mut connection, org, submission)
            .await?
            .ok_or(ExecuteError::NotFound)?;
        let submitters = rooms::submitters(&mut connection, org, submission).await?;
        drop(connection);
        let all_signed = submitters
            .iter()
            .all(|submitter| submitter.completed_at.is_some());
        if found.completed_at.is_some() || !all_signed {
            return Ok(());
        }
        let pdf = self.files.get(&found.file()).await?;
        let fields = submitters
            .iter()
            .flat_map(|submitter| filled(&found.fields, submitter))
            .collect::<Result<_, _>>()
            .map_err(ExecuteError::Document)?;
        let executed = self
            .components
            .documents(None, self.store.priority())
            .for_owner(Owner::new(org, &submission.to_string()))
            .fill(pdf.clone(), fields)
            .await?
            .map_err(ExecuteError::Document)?;
        let file = self
            .files
            .put(
                FileArea::Room,
                org,
                "signed",
                executed.into(),
                "application/pdf",
            )
            .await?;

        let mut tx = self.store.begin().await?;
        let mut submission = rooms::lock_submission(&mut tx, org, submission)
            .await?
            .ok_or(ExecuteError::NotFound)?;
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

/// What one submitter's values put on the pages.
fn filled(
    fields: &[RoomField],
    submitter: &RoomSubmitter,
) -> Vec<Result<FilledField, DocumentError>> {
    fields
        .iter()
        .filter(|field| field.submitter_uuid == submitter.role)
        .filter_map(|field| {
            let value = submitter
                .values
                .get(&field.name)
                .filter(|value| !value.is_empty())?;
            let value = match field.field_type.as_str() {
                "signature" | "initials" => match Signature::parse(value) {
                    Ok(Signature::Typed(name)) => FieldValue::Typed(name),
                    Ok(Signature::Drawn(picture)) => FieldValue::Drawn(picture),
                    Err(why) => return Some(Err(DocumentError::Other(why))),
                },
                "checkbox" => FieldValue::Checkbox(value == "true"),
                _ => FieldValue::Text(value.clone()),
            };
            let areas = field
                .areas
                .iter()
                .map(|area| Area {
                    page: area.page,
                    x: area.x,
                    y: area.y,
                    w: area.w,
                    h: area.h,
                })
                .collect();
            Some(Ok(FilledField { areas, value }))
        })
        .collect()
}
