//! Web API: an organization's template library.

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::partner::templates::fields;
use crate::error::HttpError;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{
    JsonOrForm, MultipartForm, ResourceId, ValidJson, ValidQuery, WholeListQuery, page_and_limit,
    valid,
};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{
    CreatedWithWarnings, DataReply, FileReply, Found, FoundWithWarnings, PageReply, Pdf,
};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::field::Field;
use holdfast_domain::id::TemplateId;
use holdfast_domain::reminders::ReminderPlan;
use holdfast_domain::template::{
    SourceFormat, Template, TemplateSharing, TemplateVariable, TemplateVersion,
};
use holdfast_service::App;
use holdfast_service::templates::duplicates::{self, DuplicateTemplate};
use holdfast_service::templates::versions::{
    self, FieldChange, NewVersion, RestoreVersion, VersionChange,
};
use holdfast_service::templates::{
    self, ChangeTemplate, CreateTemplate, CreatedTemplate, DraftTemplate, TemplateFilter, deletion,
};

/// Multipart form of a new template.
#[derive(JsonSchema)]
#[schemars(extend("examples" = [{ "file": "contract.pdf", "name": "Retail instalment contract" }]))]
#[expect(dead_code, reason = "documents the form")]
pub struct TemplateForm {
    /// PDF, at most 50 MiB. Also `.docx` or `.odt` where a service converts them (slot
    /// `provider.conversion`).
    #[schemars(extend("format" = "binary"))]
    file: String,
    name: String,
    external_id: Option<String>,
    /// JSON array of fields. Without it, fields are read from the document's `{{…}}` tags.
    fields_json: Option<String>,
    /// `true` or `false`. Cannot be changed later.
    kba_required: Option<bool>,
    source_format: Option<SourceFormat>,
    /// `true` or `false`.
    pricing_table: Option<bool>,
    /// `true`: a document that its author certified against changes is used without its signatures.
    accept_certification_loss: Option<bool>,
    /// Opens a protected document. It is not kept.
    password: Option<String>,
    /// Path of the folder, such as `Sales/Ohio`: at most three names of 1 to 40 characters.
    folder: Option<String>,
    /// JSON object with the `roles` and `users` that see the template, beside owners and admins; all users of the
    /// organization when absent.
    shared_with: Option<String>,
}

/// A template.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "Retail instalment contract",
    "external_id": null, "kba_required": false, "may_decline": true, "reminders": null, "provider_instance": "embedded",
    "provider_template_id": 1021, "has_document": true, "source_format": "pdf",
    "pricing_table": false, "roles": ["Buyer"], "fields": [], "tags": ["Ohio"], "folder": "Sales/Ohio",
    "shared_with": { "roles": ["sender"], "users": ["ada@oak.example"] },
    "variables": [{ "name": "customer_name", "default": null }], "version": 1,
    "created_at": "2026-11-21T09:30:00.000Z", "updated_at": "2026-11-21T09:30:00.000Z",
    "deleted_at": null, "restorable_until": null,
}]))]
pub struct TemplateView {
    template_id: TemplateId,
    name: String,
    external_id: Option<String>,
    /// Whether signers must answer identity questions.
    kba_required: bool,
    /// Whether signers may decline, unless the envelope overrides it.
    may_decline: bool,
    /// Plan of reminders of envelopes that name none; null takes that of the organization.
    reminders: Option<ReminderPlan>,
    provider_instance: String,
    /// Null until the template exists at the provider.
    provider_template_id: Option<i64>,
    has_document: bool,
    source_format: SourceFormat,
    pricing_table: bool,
    /// In the order of their first appearance in the fields.
    roles: Vec<String>,
    fields: Vec<Field>,
    /// Words by which the organization sorts its templates.
    tags: Vec<String>,
    /// Path of the folder; null at the top.
    folder: Option<String>,
    /// Users who see the template, beside owners and admins. Without roles and users: all users of the organization.
    shared_with: TemplateSharing,
    /// Variables `[[name]]` of a document of a word processor, in the order of their first appearance. Envelopes give
    /// their values in `variables`.
    variables: Vec<TemplateVariable>,
    /// Number of the present version, from 1. Another document makes another version.
    version: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Null unless the template is deleted.
    deleted_at: Option<Timestamp>,
    /// End of the 30 days in which a deleted template can be restored.
    restorable_until: Option<Timestamp>,
}

impl From<&Template> for TemplateView {
    fn from(template: &Template) -> Self {
        // The contract has a number here. Other vendors have ids of text, which become null.
        let number = template.provider_template.as_deref();
        Self {
            template_id: template.id.clone(),
            name: template.name.clone(),
            external_id: template.external_id.clone(),
            kba_required: template.kba_required,
            may_decline: template.may_decline,
            reminders: template.reminders,
            provider_instance: template.provider_instance.clone(),
            provider_template_id: number.and_then(|id| id.parse().ok()),
            has_document: template.document.is_some(),
            source_format: template.source_format,
            pricing_table: template.pricing_table,
            roles: template.roles().into_iter().map(str::to_owned).collect(),
            fields: template.fields.clone(),
            tags: template.tags.clone(),
            folder: template.folder.clone(),
            shared_with: template.shared_with.clone(),
            variables: template.variables().to_vec(),
            version: template.version,
            created_at: template.created_at,
            updated_at: template.updated_at,
            deleted_at: template.deleted_at,
            restorable_until: template.restorable_until(),
        }
    }
}

/// A deleted template.
#[derive(Serialize, JsonSchema)]
pub struct DeletedTemplate {
    template_id: TemplateId,
    deleted: bool,
    /// Until then it can be restored.
    restorable_until: Option<Timestamp>,
}

/// Which templates a list has.
#[derive(Deserialize, JsonSchema)]
pub struct TemplateQuery {
    /// Page number, from 1.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    /// Lists the deleted templates that can be restored, in place of the others.
    #[serde(default)]
    deleted: bool,
    /// Lists templates with this tag.
    tag: Option<String>,
    /// Lists templates in this folder, such as `Sales`, and in the folders in it.
    folder: Option<String>,
}

/// Version of a document.
#[derive(Deserialize, JsonSchema)]
pub struct DocumentQuery {
    /// Number of the version; the present one when absent.
    #[schemars(range(min = 1))]
    version: Option<i64>,
}

/// Options of a new version.
#[derive(Deserialize, JsonSchema)]
pub struct VersionQuery {
    /// Returns the effect on each field, and changes nothing.
    #[serde(default)]
    dry_run: bool,
}

/// Multipart form of a version with another document.
#[derive(JsonSchema)]
#[schemars(extend("examples" = [{ "file": "contract-2027.pdf" }]))]
#[expect(dead_code, reason = "documents the form")]
pub struct VersionForm {
    /// PDF, at most 50 MiB.
    #[schemars(extend("format" = "binary"))]
    file: String,
    /// `true`: a document that its author certified against changes is used without its signatures.
    accept_certification_loss: Option<bool>,
    /// Opens a protected document. It is not kept.
    password: Option<String>,
}

/// A version of a template.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "version": 2, "present": true, "made_by": "ada@oak.example", "made_at": "2026-11-21T09:30:00.000Z",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "size": 48213,
    "fields": 12,
}]))]
pub struct TemplateVersionView {
    /// Number, from 1.
    version: i64,
    /// Whether it is the one that is sent.
    present: bool,
    /// E-mail address of the user, or the API key; null for templates of earlier releases.
    made_by: Option<String>,
    made_at: Timestamp,
    /// SHA-256 of the document, lower-case hex.
    sha256: String,
    /// Size of the document in bytes.
    size: i64,
    /// Number of fields.
    fields: usize,
}

impl TemplateVersionView {
    fn new(version: &TemplateVersion, present: bool) -> Self {
        Self {
            version: version.number,
            present,
            made_by: version.made_by.clone(),
            made_at: version.made_at,
            sha256: version.document.sha256.clone(),
            size: version.document.size,
            fields: version.fields.len(),
        }
    }
}

/// A new version with what became of each field.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da", "version": 2, "made": true,
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "fields": [
        { "name": "Buyer signature", "role": "Buyer", "outcome": "moved",
          "from": [{ "page": 3, "x": 0.29, "y": 0.71, "w": 0.3, "h": 0.03 }],
          "to": [{ "page": 4, "x": 0.29, "y": 0.52, "w": 0.3, "h": 0.03 }] },
        { "name": "Trade-in", "role": "Buyer", "outcome": "lost",
          "from": [{ "page": 5, "x": 0.1, "y": 0.2, "w": 0.3, "h": 0.03 }], "to": [],
          "reason": "The new document has no page 5" },
    ],
}]))]
pub struct VersionChangeView {
    template_id: TemplateId,
    /// Number of the new version.
    version: i64,
    /// False in a dry run.
    made: bool,
    /// SHA-256 of its document, lower-case hex.
    sha256: String,
    /// The fields before in their order, and then the added ones.
    fields: Vec<FieldChange>,
}

impl VersionChangeView {
    fn new(change: &VersionChange, made: bool) -> Self {
        Self {
            template_id: change.template.clone(),
            version: change.number,
            made,
            sha256: change.sha256.clone(),
            fields: change.fields.clone(),
        }
    }
}

pub async fn create(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    once: IdempotencyKeyHeader,
    request: JsonOrForm<DraftTemplate, TemplateForm>,
) -> Result<CreatedWithWarnings<TemplateView>, HttpError> {
    let show = |created: &CreatedTemplate| {
        (
            TemplateView::from(&created.template),
            created.warnings.clone(),
        )
    };
    let request = match request {
        // A draft has no document yet, so it takes another path than an uploaded file.
        JsonOrForm::Json(request) => {
            return once
                .answer_with_warnings(&app, &caller, show, |app, caller, answer| async move {
                    templates::draft(&app, &caller, request, &answer).await
                })
                .await;
        }
        JsonOrForm::Form(form) => uploaded(form)?,
    };

    once.answer_with_warnings(&app, &caller, show, |app, caller, answer| async move {
        templates::create(&app, &caller, request, &answer).await
    })
    .await
}

fn uploaded(mut form: MultipartForm<TemplateForm>) -> Result<CreateTemplate, HttpError> {
    let file = form.file()?;
    let mut text = |name: &str| {
        form.texts
            .remove(name)
            .filter(|text| !text.trim().is_empty())
    };
    let name = text("name").ok_or_else(|| HttpError::bad_request("name is required"))?;

    let fields = match text("fields_json") {
        None => None,
        Some(text) => Some(fields(&text)?),
    };
    let shared_with = match text("shared_with") {
        None => TemplateSharing::default(),
        Some(text) => sharing(&text)?,
    };
    let format = text("source_format");
    let source_format = match format.as_deref() {
        None => SourceFormat::Pdf,
        Some(format) => SourceFormat::parse(format)
            .ok_or_else(|| HttpError::bad_request("source_format must be pdf or word"))?,
    };

    Ok(CreateTemplate {
        name,
        external_id: text("external_id"),
        file,
        fields,
        kba_required: flag("kba_required", text("kba_required"))?,
        source_format,
        pricing_table: flag("pricing_table", text("pricing_table"))?,
        accept_certification_loss: flag(
            "accept_certification_loss",
            text("accept_certification_loss"),
        )?,
        folder: text("folder"),
        shared_with,
    })
}

/// Parses the form's `shared_with`.
fn sharing(text: &str) -> Result<TemplateSharing, HttpError> {
    let sharing = serde_json::from_str(text).map_err(|error| {
        HttpError::bad_request(format!("shared_with is not valid JSON: {error}"))
    })?;
    valid::<TemplateSharing>(sharing)
}

/// Parses a text part that is `true` or `false`; false when absent.
pub fn flag(name: &str, text: Option<String>) -> Result<bool, HttpError> {
    match text.as_deref().map(str::trim) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        // A form has texts only. Any other word is refused, because `yes` would silently mean false.
        Some(_) => Err(HttpError::bad_request(format!(
            "{name} must be true or false"
        ))),
    }
}

pub async fn list(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ValidQuery(query): ValidQuery<TemplateQuery>,
) -> Result<PageReply<TemplateView>, HttpError> {
    let (page, limit) = page_and_limit(query.page, query.limit, 20, 100)?;
    let filter = TemplateFilter {
        deleted: query.deleted,
        tag: query.tag,
        folder: query.folder.filter(|folder| !folder.is_empty()),
    };
    let (found, total) = templates::list(&app, &caller, &filter, page, limit).await?;
    let views: Vec<TemplateView> = found.iter().map(TemplateView::from).collect();
    Ok(PageReply::new(&views, page, limit, total))
}

pub async fn read(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ResourceId(id): ResourceId,
) -> Result<Found<TemplateView>, HttpError> {
    let template = templates::get(&app, &caller, &id).await?;
    Ok(DataReply::new(&TemplateView::from(&template)))
}

pub async fn change(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    ResourceId(id): ResourceId,
    ValidJson(request): ValidJson<ChangeTemplate>,
) -> Result<Found<TemplateView>, HttpError> {
    let changed = templates::change(&app, &caller, &id, request).await?;
    Ok(DataReply::new(&TemplateView::from(&changed)))
}

pub async fn delete(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    ResourceId(id): ResourceId,
) -> Result<Found<DeletedTemplate>, HttpError> {
    let template = deletion::delete(&app, &caller, &id).await?;
    Ok(DataReply::new(&DeletedTemplate {
        restorable_until: template.restorable_until(),
        template_id: template.id,
        deleted: true,
    }))
}

pub async fn restore(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    ResourceId(id): ResourceId,
) -> Result<Found<TemplateView>, HttpError> {
    let restored = deletion::restore(&app, &caller, &id).await?;
    Ok(DataReply::new(&TemplateView::from(&restored)))
}

pub async fn duplicate(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    ResourceId(id): ResourceId,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<DuplicateTemplate>,
) -> Result<CreatedWithWarnings<TemplateView>, HttpError> {
    once.answer_with_warnings(
        &app,
        &caller,
        |created: &CreatedTemplate| {
            (
                TemplateView::from(&created.template),
                created.warnings.clone(),
            )
        },
        |app, caller, answer| async move {
            duplicates::duplicate(&app, &caller, &id, request, &answer).await
        },
    )
    .await
}

pub async fn document(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<DocumentQuery>,
) -> Result<FileReply<Pdf>, HttpError> {
    let document = duplicates::document(&app, &caller, &id, query.version).await?;
    FileReply::of_bytes(&app, &document.file_name, &document.pdf).await
}

pub async fn list_versions(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<TemplateVersionView>, HttpError> {
    let found = versions::list(&app, &caller, &id).await?;
    // The newest one is sent.
    let views = found.iter().enumerate();
    let views = views.map(|(index, version)| TemplateVersionView::new(version, index == 0));
    query.page_of(&views.collect::<Vec<_>>())
}

/// Makes a version of another document, or of an earlier version, and shows what becomes of the fields.
pub async fn add_version(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<VersionQuery>,
    once: IdempotencyKeyHeader,
    request: JsonOrForm<RestoreVersion, VersionForm>,
) -> Result<FoundWithWarnings<VersionChangeView>, HttpError> {
    let new = match request {
        JsonOrForm::Json(request) => NewVersion::Earlier(request.from_version),
        JsonOrForm::Form(mut form) => NewVersion::Document {
            file: form.file()?,
            accept_certification_loss: flag(
                "accept_certification_loss",
                form.texts.remove("accept_certification_loss"),
            )?,
        },
    };

    // A dry run changes nothing, so it is not stored under the idempotency key.
    if query.dry_run {
        let change = versions::compare(&app, &app.pages, &caller, &id, new).await?;
        let view = VersionChangeView::new(&change, false);
        return Ok(FoundWithWarnings::with_warnings(&view, &change.warnings));
    }

    once.answer_with_warnings(
        &app,
        &caller,
        |change: &VersionChange| {
            (
                VersionChangeView::new(change, true),
                change.warnings.clone(),
            )
        },
        |app, caller, answer| async move {
            versions::replace(&app, &app.pages, &caller, &id, new, &answer).await
        },
    )
    .await
}
