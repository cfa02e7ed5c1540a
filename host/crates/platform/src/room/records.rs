//! Storage for the signing room's component. Changes are written in the caller's transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::{FutureExt as _, TryFutureExt as _};
use serde_json::json;

use super::{Room, attachments, dates_of};
use holdfast_adapters::files::{FilesError, StorageArea as FileArea};
use holdfast_components::room::{self as lent, Answer, RoomFailure, RoomRecords};
use holdfast_domain::envelope::StoredFile;
use holdfast_domain::field::{Area, FieldRules};
use holdfast_domain::id::{OrgId, TemplateId};
use holdfast_store::room::{
    self as rooms, RoomField, RoomRole, RoomSubmission, RoomSubmitter, RoomTemplate,
};
use holdfast_store::{StoreError, WriteTransaction};

/// Records of one organization during one unit of work. Other readers see the changes once
/// [`BufferedRoomRecords::write`] has committed. This unit of work sees its templates at once, because a batch
/// clones a template and then sends it.
pub struct BufferedRoomRecords {
    room: Room,
    org: OrgId,
    pending: Mutex<PendingChanges>,
}

#[derive(Default)]
struct PendingChanges {
    templates: BTreeMap<u64, lent::Template>,
    submissions: Vec<lent::NewSubmission>,
    archived: BTreeSet<u64>,
    /// Owner of the documents that are stored next.
    document_owner: Option<String>,
}

/// Why a record could not be read or stored.
#[derive(Debug, thiserror::Error)]
enum RecordsError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Files(#[from] FilesError),
}

impl From<RecordsError> for RoomFailure {
    fn from(error: RecordsError) -> Self {
        let disk_full = match &error {
            RecordsError::Store(error) => error.is_full(),
            RecordsError::Files(error) => error.is_full(),
        };
        Self {
            disk_full,
            why: error.to_string(),
        }
    }
}

/// Gives the work's failure to the component's caller.
fn answer<'a, T>(work: impl Future<Output = Result<T, RecordsError>> + Send + 'a) -> Answer<'a, T> {
    work.err_into().boxed()
}

impl Room {
    /// Opens an organization's records for one unit of work.
    pub fn records(&self, org: &OrgId) -> BufferedRoomRecords {
        BufferedRoomRecords {
            room: self.clone(),
            org: org.clone(),
            pending: Mutex::default(),
        }
    }
}

impl BufferedRoomRecords {
    fn pending(&self) -> MutexGuard<'_, PendingChanges> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the following documents as those of a template of the service, encrypted with its key.
    pub fn store_documents_of(&self, external_id: &str) {
        let owner = TemplateId::parse(external_id);
        self.pending().document_owner = owner.map(|owner| owner.as_str().to_owned());
    }

    /// Returns whether all changes have been written.
    pub fn is_written(&self) -> bool {
        let pending = self.pending();
        pending.templates.is_empty()
            && pending.submissions.is_empty()
            && pending.archived.is_empty()
    }

    /// Writes the pending changes.
    pub async fn write(&self, tx: &mut WriteTransaction) -> Result<(), StoreError> {
        // Taken before the first await, so that the lock is never held across one.
        let pending = mem::take(&mut *self.pending());
        for template in pending.templates.into_values() {
            rooms::put_template(tx, &self.template_row(template)?).await?;
        }

        // The format of the dates is fixed with the submission, because signers sign the dates that they see.
        let dates = dates_of(tx, &self.org).await?;
        for submission in pending.submissions {
            let (mut submission, submitters) = self.submission_rows(submission)?;
            submission.date_format = Some(dates.format);

            // The submission comes first, as its submitters refer to it.
            rooms::insert_submission(tx, &submission).await?;
            for submitter in &submitters {
                rooms::insert_submitter(tx, submitter).await?;
            }
        }

        for id in pending.archived {
            if let Some(mut row) = rooms::lock_submission(tx, &self.org, signed(id)).await? {
                // Archiving twice keeps the first time.
                row.archived_at.get_or_insert(self.room.clock.now());
                rooms::update_submission(tx, &row).await?;
            }
        }

        Ok(())
    }

    fn template_row(&self, template: lent::Template) -> Result<RoomTemplate, StoreError> {
        let now = self.room.clock.now();
        let (document_key, document_sha256) = document(&template.document)?;
        // The room names roles by themselves. Rows of earlier releases have ids
        // of their own, which are still read.
        let role = |name: &String| RoomRole {
            name: name.clone(),
            uuid: name.clone(),
        };

        Ok(RoomTemplate {
            id: signed(template.id),
            org: self.org.clone(),
            name: template.name,
            external_id: Some(template.external_id).filter(|id| !id.is_empty()),
            document_key,
            document_sha256,
            roles: template.roles.iter().map(role).collect(),
            fields: template.fields.into_iter().map(stored_field).collect(),
            created_at: now,
            archived_at: template.archived.then_some(now),
        })
    }

    fn submission_rows(
        &self,
        submission: lent::NewSubmission,
    ) -> Result<(RoomSubmission, Vec<RoomSubmitter>), StoreError> {
        let row = RoomSubmission {
            id: signed(submission.id),
            org: self.org.clone(),
            template: signed(submission.template_id),
            name: submission.name,
            preserve_order: submission.preserve_order,
            document: document(&submission.document)?,
            fields: submission.fields.into_iter().map(stored_field).collect(),
            date_format: None,
            signed: None,
            created_at: self.room.clock.now(),
            completed_at: None,
            archived_at: None,
        };

        // The sender's values are kept a second time: another person in this place starts again with them.
        let submitter = |(invitation, position): (lent::Invitation, i64)| RoomSubmitter {
            slug: invitation.slug,
            name: invitation.name,
            email: invitation.email,
            role: invitation.role,
            external_id: Some(submission.external_id.clone()),
            prefilled: Some(invitation.values.iter().cloned().collect()),
            values: invitation.values.into_iter().collect(),
            ..RoomSubmitter::new(&self.org, signed(invitation.id), row.id, position)
        };

        let invitations = submission.invitations.into_iter().zip(0..);
        let submitters = invitations.map(submitter).collect();
        Ok((row, submitters))
    }

    async fn lent(
        &self,
        submission: Option<RoomSubmission>,
    ) -> Result<Option<lent::Submission>, RecordsError> {
        let Some(submission) = submission else {
            return Ok(None);
        };

        // Pending changes are no rows yet, so an archived submission of this unit
        // of work is looked up beside them.
        let mut connection = self.room.store.read().await?;
        let submitters = rooms::submitters(&mut connection, &self.org, submission.id).await?;
        let id = submission.id.unsigned_abs();
        Ok(Some(lent::Submission {
            id,
            fields: submission.fields.into_iter().map(lent_field).collect(),
            submitters: submitters.into_iter().map(lent_submitter).collect(),
            completed_at: submission.completed_at.map(|at| at.to_string()),
            archived: submission.archived_at.is_some() || self.pending().archived.contains(&id),
        }))
    }

    /// Returns the pending version of a stored template, or the stored one.
    fn newest(&self, kept: Option<RoomTemplate>) -> Option<lent::Template> {
        let kept = kept.map(lent_template)?;
        let put = self.pending().templates.get(&kept.id).cloned();
        Some(put.unwrap_or(kept))
    }
}

impl RoomRecords for BufferedRoomRecords {
    fn find_template(&self, id: u64) -> Answer<'_, Option<lent::Template>> {
        answer(async move {
            if let Some(put) = self.pending().templates.get(&id) {
                return Ok(Some(put.clone()));
            }
            let mut connection = self.room.store.read().await?;
            let kept = rooms::template(&mut connection, &self.org, signed(id)).await?;
            Ok(kept.map(lent_template))
        })
    }

    fn find_template_of<'a>(&'a self, external_id: &'a str) -> Answer<'a, Option<lent::Template>> {
        answer(async move {
            // Pending ones first: a batch sends the clone that it has just made and not yet committed.
            let with_id = |put: &&lent::Template| put.external_id == external_id;
            if let Some(put) = self.pending().templates.values().find(with_id) {
                return Ok(Some(put.clone()));
            }

            let mut connection = self.room.store.read().await?;
            let kept = rooms::template_by_external_id(&mut connection, &self.org, external_id);
            let kept = kept.await?;
            Ok(self.newest(kept))
        })
    }

    fn keep_document(&self, document: Bytes) -> Answer<'_, String> {
        answer(async move {
            let owner = self.pending().document_owner.clone();
            let owner = owner.as_deref().unwrap_or("templates");
            let (area, pdf) = (FileArea::Room, "application/pdf");
            // Stored at once and not with the rows. If the unit of work fails, the sweep removes the object.
            let file = self.room.files.put(area, &self.org, owner, document, pdf);
            let file = file.await?;
            Ok(document_name(&file.key, &file.sha256))
        })
    }

    fn put_template(&self, template: lent::Template) {
        self.pending().templates.insert(template.id, template);
    }

    fn find_submission(&self, id: u64) -> Answer<'_, Option<lent::Submission>> {
        answer(async move {
            let mut connection = self.room.store.read().await?;
            let kept = rooms::submission(&mut connection, &self.org, signed(id)).await?;
            drop(connection);
            self.lent(kept).await
        })
    }

    fn find_submission_of<'a>(
        &'a self,
        external_id: &'a str,
    ) -> Answer<'a, Option<lent::Submission>> {
        answer(async move {
            let mut connection = self.room.store.read().await?;
            let kept = rooms::submission_by_external_id(&mut connection, &self.org, external_id);
            let kept = kept.await?;
            drop(connection);
            self.lent(kept).await
        })
    }

    fn add_submission(&self, submission: lent::NewSubmission) {
        self.pending().submissions.push(submission);
    }

    fn archive_submission(&self, id: u64) {
        self.pending().archived.insert(id);
    }

    fn executed_document(&self, id: u64) -> Answer<'_, Option<Bytes>> {
        answer(async move {
            let mut connection = self.room.store.read().await?;
            let kept = rooms::submission(&mut connection, &self.org, signed(id)).await?;
            // Reading the object may take long, and needs no connection.
            drop(connection);
            let Some((key, sha256)) = kept.and_then(|kept| kept.signed) else {
                return Ok(None);
            };

            // The row has no size. A read is checked by the digest, which covers the length.
            let file = StoredFile {
                key,
                sha256,
                size: 0,
                content_type: "application/pdf".into(),
            };

            Ok(Some(self.room.files.get(&file).await?))
        })
    }
}

/// Converts an id to the database's type; ids above 63 bits become -1, which no row has.
fn signed(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(-1)
}

/// Formats the name of a stored document in template records: key and SHA-256.
fn document_name(key: &str, sha256: &str) -> String {
    format!("{key} {sha256}")
}

fn document(name: &str) -> Result<(String, String), StoreError> {
    let parts = name.rsplit_once(' ');
    let (key, sha256) = parts.ok_or_else(|| StoreError::Inconsistent {
        table: "room_template",
        id: "document".into(),
        why: "the signing room's component names no document".into(),
    })?;
    Ok((key.to_owned(), sha256.to_owned()))
}

fn stored_field(field: lent::Field) -> RoomField {
    let area = |area: lent::Area| Area {
        page: area.page,
        x: area.x,
        y: area.y,
        w: area.w,
        h: area.h,
    };

    RoomField {
        uuid: String::new(),
        submitter_uuid: field.role,
        name: field.name,
        field_type: field.field_type,
        required: field.required,
        readonly: field.readonly,
        default_value: field.default_value,
        options: field.options,
        areas: field.areas.into_iter().map(area).collect(),
        rules: FieldRules::from_attributes(&field.attributes),
    }
}

fn lent_field(field: RoomField) -> lent::Field {
    let area = |area: Area| lent::Area {
        page: area.page,
        x: area.x,
        y: area.y,
        w: area.w,
        h: area.h,
    };

    lent::Field {
        name: field.name,
        field_type: field.field_type,
        role: field.submitter_uuid,
        required: field.required,
        readonly: field.readonly,
        default_value: field.default_value,
        options: field.options,
        areas: field.areas.into_iter().map(area).collect(),
        attributes: field.rules.attributes(),
    }
}

fn lent_template(template: RoomTemplate) -> lent::Template {
    // The component knows names only, and rows of earlier releases refer to ids.
    let role = |uuid: &str| {
        let role = template.roles.iter().find(|role| role.uuid == uuid);
        role.map(|role| role.name.clone()).unwrap_or_default()
    };
    let fields = template.fields.iter().cloned().map(|field| lent::Field {
        role: role(&field.submitter_uuid),
        ..lent_field(field)
    });

    lent::Template {
        id: template.id.unsigned_abs(),
        document: document_name(&template.document_key, &template.document_sha256),
        fields: fields.collect(),
        roles: template.roles.into_iter().map(|role| role.name).collect(),
        name: template.name,
        external_id: template.external_id.unwrap_or_default(),
        archived: template.archived_at.is_some(),
    }
}

fn lent_submitter(submitter: RoomSubmitter) -> lent::Submitter {
    let consent = submitter.consent.as_ref();
    let attachments = attachments::listed(&submitter.attachments);
    lent::Submitter {
        invitation: lent::Invitation {
            id: submitter.id.unsigned_abs(),
            slug: submitter.slug,
            name: submitter.name,
            email: submitter.email,
            role: submitter.role,
            values: submitter.values.into_iter().collect(),
        },
        opened_at: submitter.opened_at.map(|at| at.to_string()),
        started_at: submitter.started_at.map(|at| at.to_string()),
        consented_at: submitter.consented_at.map(|at| at.to_string()),
        consent_version: consent.map(|consent| consent.version.clone()),
        consent_locale: consent.map(|consent| consent.locale.into()),
        // A simulated consent is to no text.
        consent_sha256: submitter
            .consent
            .map(|consent| consent.sha256)
            .filter(|sha256| !sha256.is_empty()),
        shown_sha256: submitter.shown_sha256,
        completed_at: submitter.completed_at.map(|at| at.to_string()),
        declined_at: submitter.declined_at.map(|at| at.to_string()),
        decline_reason: submitter.decline_reason,
        attachments: (!attachments.is_empty()).then(|| json!(attachments).to_string()),
        ip: submitter.ip,
        user_agent: submitter.user_agent,
    }
}
