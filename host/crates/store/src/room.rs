//! Templates, submissions and submitters of the signing room.

use std::collections::BTreeMap;

use crate::SqlConnection;
use holdfast_handwriting::Handwriting;
use serde::{Deserialize, Serialize};

use super::row::{RowColumns, json_text, query_locked, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::dates::DateFormat;
use holdfast_domain::disclosure::DemonstratedAccess;
use holdfast_domain::envelope::StoredFile;
use holdfast_domain::field::{Area, FieldRules, is_group, is_signature};
use holdfast_domain::id::OrgId;
use holdfast_domain::locale::Locale;

/// Role of a template; fields refer to its `uuid`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoomRole {
    pub name: String,
    pub uuid: String,
}

/// Field of a template or submission; pages are 1-based.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoomField {
    pub uuid: String,
    pub submitter_uuid: String,
    pub name: String,
    #[serde(rename = "type")]
    pub field_type: String,
    pub required: bool,
    pub readonly: bool,
    pub default_value: Option<String>,
    pub options: Vec<String>,
    pub areas: Vec<Area>,
    #[serde(flatten)]
    pub rules: FieldRules,
}

impl RoomField {
    /// Returns whether each option has a place of its own, which is marked.
    pub fn is_group(&self) -> bool {
        is_group(&self.field_type, &self.options, &self.areas)
    }

    /// Returns the places where a value is written.
    pub fn places_of(&self, value: &str) -> &[Area] {
        if !self.is_group() {
            return &self.areas;
        }
        // A value that is none of the options is written once, at the first place.
        let chosen = self.options.iter().position(|option| option == value);
        let at = chosen.unwrap_or_default();
        self.areas.get(at..=at).unwrap_or_default()
    }
}

/// File that a submitter attached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoomAttachment {
    /// Storage key; never leaves the host.
    pub key: String,
    /// Lower-case hexadecimal.
    pub sha256: String,
    /// Name of the file, without folders.
    pub name: String,
    pub content_type: String,
    /// In bytes.
    pub size: i64,
}

impl RoomAttachment {
    pub fn file(&self) -> StoredFile {
        StoredFile {
            key: self.key.clone(),
            sha256: self.sha256.clone(),
            size: self.size,
            content_type: self.content_type.clone(),
        }
    }
}

impl RoomField {
    /// Returns whether the field takes a signature rather than a typed value.
    pub fn is_signature(&self) -> bool {
        is_signature(&self.field_type)
    }

    /// Returns whether the signer cannot change the field. A signature field is never locked,
    /// because only its signer can fill it.
    pub fn is_locked(&self) -> bool {
        (self.readonly || self.rules.formula.is_some()) && !self.is_signature()
    }
}

#[derive(Clone, Debug)]
pub struct RoomTemplate {
    pub id: i64,
    pub org: OrgId,
    pub name: String,
    pub external_id: Option<String>,
    pub document_key: String,
    pub document_sha256: String,
    pub roles: Vec<RoomRole>,
    pub fields: Vec<RoomField>,
    pub created_at: Timestamp,
    pub archived_at: Option<Timestamp>,
}

/// Document sent for signing, with copies of the template's document and fields at that time.
#[derive(Clone, Debug)]
pub struct RoomSubmission {
    pub id: i64,
    pub org: OrgId,
    pub template: i64,
    pub name: String,
    pub preserve_order: bool,
    /// Key and SHA-256 of the document.
    pub document: (String, String),
    pub fields: Vec<RoomField>,
    /// Form of the dates in the document. None for documents that were sent before it was recorded.
    pub date_format: Option<DateFormat>,
    /// Key and SHA-256 of the executed document.
    pub signed: Option<(String, String)>,
    pub created_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub archived_at: Option<Timestamp>,
}

impl RoomSubmission {
    /// Returns the document to be signed. Its size is not recorded.
    pub fn file(&self) -> StoredFile {
        let (key, sha256) = self.document.clone();
        StoredFile {
            key,
            sha256,
            size: 0,
            content_type: "application/pdf".into(),
        }
    }
}

/// Consent of a submitter: the text that was agreed to, and what the submitter's page delivered before.
#[derive(Clone, Debug)]
pub struct GivenConsent {
    pub version: String,
    pub locale: Locale,
    pub sha256: String,
    /// Time at which the text was first shown; none if no page showed it.
    pub shown_at: Option<Timestamp>,
    /// None if nothing was delivered.
    pub demonstrated: Option<DemonstratedAccess>,
}

/// Name and postal address of a witness, as the witness stated them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WitnessStatement {
    pub name: String,
    pub address: String,
}

#[derive(Clone, Debug)]
pub struct RoomSubmitter {
    pub id: i64,
    pub org: OrgId,
    pub submission: i64,
    pub position: i64,
    /// Place in the signing order, from 1. Submitters with an equal one sign in any order.
    pub turn: i64,
    /// Role of the submitter that this one witnesses, and that signs first.
    pub witness_of: Option<String>,
    /// Given with the signature of a witness of a submitter.
    pub witness: Option<WitnessStatement>,
    pub slug: String,
    pub name: String,
    pub email: String,
    pub role: String,
    pub external_id: Option<String>,
    pub values: BTreeMap<String, String>,
    /// Values that the sender prefilled; none for submitters of earlier releases.
    pub prefilled: Option<BTreeMap<String, String>>,
    /// Attached files by the name of their field.
    pub attachments: BTreeMap<String, RoomAttachment>,
    /// Style of typed signatures.
    pub signature_style: Option<Handwriting>,
    pub opened_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    /// Time of the consent to signing electronically (15 U.S.C. 7001(c)).
    pub consented_at: Option<Timestamp>,
    /// Text that was agreed to.
    pub consent: Option<GivenConsent>,
    /// SHA-256 of the document that the submitter signed, with the entries of earlier ones.
    pub shown_sha256: Option<String>,
    pub completed_at: Option<Timestamp>,
    pub declined_at: Option<Timestamp>,
    pub decline_reason: Option<String>,
    pub ip: Option<String>,
    pub user_agent: Option<String>,
}

impl RoomSubmitter {
    /// Returns a submitter who has not opened the document, at a position of the order.
    pub fn new(org: &OrgId, id: i64, submission: i64, position: i64) -> Self {
        Self {
            id,
            org: org.clone(),
            submission,
            position,
            turn: position + 1,
            witness_of: None,
            witness: None,
            slug: String::new(),
            name: String::new(),
            email: String::new(),
            role: String::new(),
            external_id: None,
            values: BTreeMap::new(),
            // None would mean a submitter of an earlier release, which did not record them.
            prefilled: Some(BTreeMap::new()),
            attachments: BTreeMap::new(),
            signature_style: None,
            opened_at: None,
            started_at: None,
            consented_at: None,
            consent: None,
            shown_sha256: None,
            completed_at: None,
            declined_at: None,
            decline_reason: None,
            ip: None,
            user_agent: None,
        }
    }

    /// Returns whether the submitter has completed or declined.
    pub fn is_done(&self) -> bool {
        self.completed_at.is_some() || self.declined_at.is_some()
    }
}

/// Creates a template, or replaces the one with the same
/// external id. An archived template stays archived.
pub async fn put_template(
    tx: &mut WriteTransaction,
    template: &RoomTemplate,
) -> Result<(), StoreError> {
    // The id of an existing row stays: submissions and our template name it.
    sqlx::query(
        "insert into room_template (bucket, template_id, org_id, name, external_id, document_key,
             document_sha256, roles, fields, created_at, archived_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         on conflict (bucket, org_id, external_id) do update set
             name = $4, document_key = $6, document_sha256 = $7, roles = $8, fields = $9,
             archived_at = coalesce(room_template.archived_at, $11)",
    )
    .bind(template.org.bucket())
    .bind(template.id)
    .bind(template.org.as_str())
    .bind(&template.name)
    .bind(template.external_id.as_deref())
    .bind(&template.document_key)
    .bind(&template.document_sha256)
    .bind(json_text(&template.roles))
    .bind(json_text(&template.fields))
    .bind(template.created_at.to_string())
    .bind(template.archived_at.map(|at| at.to_string()))
    .run(tx)
    .await
}

pub async fn template(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: i64,
) -> Result<Option<RoomTemplate>, StoreError> {
    query_rows(
        "select {columns} from room_template where bucket = $1 and org_id = $2 and template_id = $3",
    )
    .bind_org(org)
    .bind(id)
    .fetch_optional(connection)
    .await
}

pub async fn template_by_external_id(
    connection: &mut SqlConnection,
    org: &OrgId,
    external_id: &str,
) -> Result<Option<RoomTemplate>, StoreError> {
    query_rows(
        "select {columns} from room_template where bucket = $1 and org_id = $2 and external_id = $3",
    )
    .bind_org(org)
    .bind(external_id)
    .fetch_optional(connection)
    .await
}

table_row! {
    RoomTemplate of "room_template" by "name" {
        id: number("template_id"),
        org: parsed("org_id", OrgId::parse),
        name: text("name"),
        external_id: optional_text("external_id"),
        document_key: text("document_key"),
        document_sha256: text("document_sha256"),
        roles: json("roles"),
        fields: json("fields"),
        created_at: time("created_at"),
        archived_at: optional_time("archived_at"),
    }
}

pub async fn insert_submission(
    tx: &mut WriteTransaction,
    submission: &RoomSubmission,
) -> Result<(), StoreError> {
    // Document and fields are copies: a change of the template
    // must not reach a document that is out for signing.
    sqlx::query(
        "insert into room_submission (bucket, submission_id, org_id, template_id, name,
             preserve_order, document_key, fields, created_at, date_format)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(submission.org.bucket())
    .bind(submission.id)
    .bind(submission.org.as_str())
    .bind(submission.template)
    .bind(&submission.name)
    .bind(i64::from(submission.preserve_order))
    .bind(json_text(&submission.document))
    .bind(json_text(&submission.fields))
    .bind(submission.created_at.to_string())
    .bind(submission.date_format.map(DateFormat::as_str))
    .run(tx)
    .await
}

pub async fn submission(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: i64,
) -> Result<Option<RoomSubmission>, StoreError> {
    query_rows(
        "select {columns} from room_submission where bucket = $1 and org_id = $2 and submission_id = $3",
    )
    .bind_org(org)
    .bind(id)
    .fetch_optional(connection)
    .await
}

/// Returns a submission with its row locked, so that two signers who finish at the same moment see
/// each other's changes.
pub async fn lock_submission(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: i64,
) -> Result<Option<RoomSubmission>, StoreError> {
    query_locked(
        tx,
        "select {columns} from room_submission
         where bucket = $1 and org_id = $2 and submission_id = $3",
    )
    .bind_org(org)
    .bind(id)
    .fetch_optional(tx)
    .await
}

/// Writes the mutable columns of a submission.
pub async fn update_submission(
    tx: &mut WriteTransaction,
    submission: &RoomSubmission,
) -> Result<(), StoreError> {
    // Document and fields are left out, because signers have seen them.
    sqlx::query(
        "update room_submission set signed_key = $3, completed_at = $4, archived_at = $5
         where bucket = $1 and submission_id = $2",
    )
    .bind(submission.org.bucket())
    .bind(submission.id)
    .bind(submission.signed.as_ref().map(json_text))
    .bind(submission.completed_at.map(|at| at.to_string()))
    .bind(submission.archived_at.map(|at| at.to_string()))
    .run(tx)
    .await
}

pub async fn insert_submitter(
    tx: &mut WriteTransaction,
    submitter: &RoomSubmitter,
) -> Result<(), StoreError> {
    // `prefilled` repeats the values: a person who replaces the
    // signer starts with these, and not with the signer's entries.
    sqlx::query(
        "insert into room_submitter (bucket, submitter_id, org_id, submission_id, position, slug,
             name, email, role, external_id, field_values, prefilled, turn, witness_of)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    )
    .bind(submitter.org.bucket())
    .bind(submitter.id)
    .bind(submitter.org.as_str())
    .bind(submitter.submission)
    .bind(submitter.position)
    .bind(&submitter.slug)
    .bind(&submitter.name)
    .bind(&submitter.email)
    .bind(&submitter.role)
    .bind(submitter.external_id.as_deref())
    .bind(json_text(&submitter.values))
    .bind(submitter.prefilled.as_ref().map(json_text))
    .bind(submitter.turn)
    .bind(submitter.witness_of.as_deref())
    .run(tx)
    .await
}

/// Writes the columns of a submitter that the sender can change: name, address, place in the order and
/// witnessed role.
pub async fn update_invitation(
    tx: &mut WriteTransaction,
    submitter: &RoomSubmitter,
) -> Result<(), StoreError> {
    // The columns of `update_submitter` are left out, because they belong to the signer.
    sqlx::query(
        "update room_submitter set name = $3, email = $4, position = $5, turn = $6, witness_of = $7
         where bucket = $1 and submitter_id = $2",
    )
    .bind(submitter.org.bucket())
    .bind(submitter.id)
    .bind(&submitter.name)
    .bind(&submitter.email)
    .bind(submitter.position)
    .bind(submitter.turn)
    .bind(submitter.witness_of.as_deref())
    .run(tx)
    .await
}

/// Returns the submitters of a submission in signing order.
pub async fn submitters(
    connection: &mut SqlConnection,
    org: &OrgId,
    submission: i64,
) -> Result<Vec<RoomSubmitter>, StoreError> {
    query_rows(
        "select {columns} from room_submitter where bucket = $1 and org_id = $2 and submission_id = $3
         order by position",
    )
    .bind_org(org)
    .bind(submission)
    .fetch_all(connection)
    .await
}

pub async fn submitter(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: i64,
) -> Result<Option<RoomSubmitter>, StoreError> {
    query_rows(
        "select {columns} from room_submitter where bucket = $1 and org_id = $2 and submitter_id = $3",
    )
    .bind_org(org)
    .bind(id)
    .fetch_optional(connection)
    .await
}

/// Returns the newest unarchived submission with this external id.
pub async fn submission_by_external_id(
    connection: &mut SqlConnection,
    org: &OrgId,
    external_id: &str,
) -> Result<Option<RoomSubmission>, StoreError> {
    query_rows(
        // The submitter first: without statistics about the tables, PostgreSQL would join all rows of
        // the bucket.
        "with found as materialized (
             select submission_id as found_id from room_submitter
             where bucket = $1 and org_id = $2 and external_id = $3)
         select {columns} from found
             join room_submission s on s.bucket = $1 and s.submission_id = found.found_id
         where s.archived_at is null
         order by s.created_at desc limit 1",
    )
    .bind_org(org)
    .bind(external_id)
    .fetch_optional(connection)
    .await
}

/// Writes the mutable columns of a submitter.
pub async fn update_submitter(
    tx: &mut WriteTransaction,
    submitter: &RoomSubmitter,
) -> Result<(), StoreError> {
    let consent = submitter.consent.as_ref();
    // Name, address and place are left out, because they belong to the sender (`update_invitation`).
    sqlx::query(
        "update room_submitter set field_values = $3, opened_at = $4, started_at = $5,
             completed_at = $6, declined_at = $7, decline_reason = $8, ip = $9, user_agent = $10,
             consented_at = $11, shown_sha256 = $12, signature_style = $13, consent_version = $14,
             consent_locale = $15, consent_sha256 = $16, attachments = $17,
             consent_shown_at = $18, consent_demonstrated = $19, witness = $20
         where bucket = $1 and submitter_id = $2",
    )
    .bind(submitter.org.bucket())
    .bind(submitter.id)
    .bind(json_text(&submitter.values))
    .bind(submitter.opened_at.map(|at| at.to_string()))
    .bind(submitter.started_at.map(|at| at.to_string()))
    .bind(submitter.completed_at.map(|at| at.to_string()))
    .bind(submitter.declined_at.map(|at| at.to_string()))
    .bind(submitter.decline_reason.as_deref())
    .bind(submitter.ip.as_deref())
    .bind(submitter.user_agent.as_deref())
    .bind(submitter.consented_at.map(|at| at.to_string()))
    .bind(submitter.shown_sha256.as_deref())
    .bind(submitter.signature_style.map(Handwriting::as_str))
    .bind(consent.map(|consent| consent.version.as_str()))
    .bind(consent.map(|consent| consent.locale.as_str()))
    .bind(consent.map(|consent| consent.sha256.as_str()))
    .bind((!submitter.attachments.is_empty()).then(|| json_text(&submitter.attachments)))
    .bind(consent.and_then(|consent| consent.shown_at.map(|at| at.to_string())))
    .bind(consent.and_then(|consent| consent.demonstrated.as_ref().map(json_text)))
    .bind(submitter.witness.as_ref().map(json_text))
    .run(tx)
    .await
}

table_row! {
    RoomSubmission of "room_submission" by "name" {
        id: number("submission_id"),
        org: parsed("org_id", OrgId::parse),
        template: number("template_id"),
        name: text("name"),
        preserve_order: flag("preserve_order"),
        document: json("document_key"),
        fields: json("fields"),
        date_format: optional_parsed("date_format", DateFormat::parse),
        signed: optional_json("signed_key"),
        created_at: time("created_at"),
        completed_at: optional_time("completed_at"),
        archived_at: optional_time("archived_at"),
    }
}

table_row! {
    RoomSubmitter of "room_submitter" by "slug"
        also "turn", "signature_style", "consent_version", "consent_locale", "consent_sha256", "consent_shown_at",
            "consent_demonstrated"
    {
        id: number("submitter_id"),
        org: parsed("org_id", OrgId::parse),
        submission: number("submission_id"),
        position: number("position"),
        // Rows of earlier releases have no turn.
        turn: |row| match row.optional_number("turn")? {
            Some(turn) => turn,
            None => row.number("position")? + 1,
        },
        witness_of: optional_text("witness_of"),
        witness: optional_json("witness"),
        slug: text("slug"),
        name: text("name"),
        email: text("email"),
        role: text("role"),
        external_id: optional_text("external_id"),
        values: json("field_values"),
        prefilled: optional_json("prefilled"),
        attachments: optional_json("attachments").unwrap_or_default(),
        signature_style: |row| {
            let style = row.optional_text("signature_style")?;
            style.and_then(|style| Handwriting::parse(&style))
        },
        opened_at: optional_time("opened_at"),
        started_at: optional_time("started_at"),
        completed_at: optional_time("completed_at"),
        consented_at: optional_time("consented_at"),
        consent: |row| consent(row)?,
        shown_sha256: optional_text("shown_sha256"),
        declined_at: optional_time("declined_at"),
        decline_reason: optional_text("decline_reason"),
        ip: optional_text("ip"),
        user_agent: optional_text("user_agent"),
    }
}

fn consent(columns: &RowColumns<'_>) -> Result<Option<GivenConsent>, StoreError> {
    let locale = columns.optional_text("consent_locale")?;
    let version = columns.optional_text("consent_version")?;
    let sha256 = columns.optional_text("consent_sha256")?;
    let locale = locale.and_then(|tag| Locale::parse(&tag));
    let shown_at = columns.optional_time("consent_shown_at")?;
    let demonstrated: Option<DemonstratedAccess> = columns.optional_json("consent_demonstrated")?;

    // Earlier releases recorded only a time. Without its text it is no consent here.
    let all = version.zip(locale).zip(sha256);
    Ok(all.map(|((version, locale), sha256)| GivenConsent {
        version,
        locale,
        sha256,
        shown_at,
        demonstrated,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(y: f64) -> Area {
        Area {
            page: 1,
            x: 0.1,
            y,
            w: 0.02,
            h: 0.02,
        }
    }

    #[test]
    fn a_group_of_radio_buttons_marks_the_chosen_one() {
        let group = RoomField {
            uuid: "f".into(),
            submitter_uuid: "Buyer".into(),
            name: "Billing".into(),
            field_type: "radio".into(),
            required: true,
            readonly: false,
            default_value: None,
            options: vec!["Monthly".into(), "Yearly".into()],
            areas: vec![place(0.1), place(0.2)],
            rules: FieldRules::default(),
        };
        assert_eq!(group.places_of("Yearly"), [place(0.2)]);
        assert!(group.is_group());

        // A single place takes the choice as text.
        let alone = RoomField {
            areas: vec![place(0.1)],
            ..group.clone()
        };
        assert_eq!(alone.places_of("Yearly"), [place(0.1)]);
        assert!(!alone.is_group());

        // Two places with room for text show the choice twice.
        let wide = RoomField {
            areas: vec![
                Area {
                    w: 0.2,
                    ..place(0.1)
                },
                Area {
                    w: 0.2,
                    ..place(0.2)
                },
            ],
            ..group.clone()
        };
        assert_eq!(wide.places_of("Yearly").len(), 2);

        assert_eq!(
            group.places_of("Weekly"),
            [place(0.1)],
            "no option, written once"
        );

        let list = RoomField {
            field_type: "select".into(),
            ..group
        };
        assert_eq!(list.places_of("Yearly").len(), 2);
    }
}
