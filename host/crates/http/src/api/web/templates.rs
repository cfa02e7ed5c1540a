//! Web API: an organization's template library.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::partner::templates::fields;
use crate::error::HttpError;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{
    JsonOrForm, MultipartForm, PageQuery, ResourceId, ValidJson, ValidQuery,
};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{CreatedWithWarnings, DataReply, Found, PageReply};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::field::Field;
use holdfast_domain::id::TemplateId;
use holdfast_domain::template::{SourceFormat, Template};
use holdfast_service::App;
use holdfast_service::templates::{
    self, ChangeTemplate, CreateTemplate, CreatedTemplate, DraftTemplate,
};

/// Multipart form of a new template.
#[derive(JsonSchema)]
#[schemars(extend("examples" = [{ "file": "contract.pdf", "name": "Retail instalment contract" }]))]
#[expect(dead_code, reason = "documents the form")]
pub struct TemplateForm {
    /// PDF, at most 50 MiB.
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
}

/// A template.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "Retail instalment contract",
    "external_id": null, "kba_required": false, "may_decline": true, "provider_instance": "embedded",
    "provider_template_id": 1021, "has_document": true, "source_format": "pdf",
    "pricing_table": false, "roles": ["Buyer"], "fields": [],
    "created_at": "2026-11-21T09:30:00.000Z", "updated_at": "2026-11-21T09:30:00.000Z",
}]))]
pub struct TemplateView {
    template_id: TemplateId,
    name: String,
    external_id: Option<String>,
    /// Whether signers must answer identity questions.
    kba_required: bool,
    /// Whether signers may decline, unless the envelope says otherwise.
    may_decline: bool,
    provider_instance: String,
    /// Null until the template exists at the provider.
    provider_template_id: Option<i64>,
    has_document: bool,
    source_format: SourceFormat,
    pricing_table: bool,
    /// In the order of their first appearance in the fields.
    roles: Vec<String>,
    fields: Vec<Field>,
    created_at: Timestamp,
    updated_at: Timestamp,
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
            provider_instance: template.provider_instance.clone(),
            provider_template_id: number.and_then(|id| id.parse().ok()),
            has_document: template.document.is_some(),
            source_format: template.source_format,
            pricing_table: template.pricing_table,
            roles: template.roles().into_iter().map(str::to_owned).collect(),
            fields: template.fields.clone(),
            created_at: template.created_at,
            updated_at: template.updated_at,
        }
    }
}

/// A deleted template.
#[derive(Serialize, JsonSchema)]
pub struct DeletedTemplate {
    template_id: TemplateId,
    deleted: bool,
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
    })
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
    ValidQuery(query): ValidQuery<PageQuery>,
) -> Result<PageReply<TemplateView>, HttpError> {
    let (page, limit) = query.checked()?;
    let (found, total) = templates::list(&app, &caller, page, limit).await?;
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
    let template = templates::delete(&app, &caller, &id).await?;
    Ok(DataReply::new(&DeletedTemplate {
        template_id: template.id,
        deleted: true,
    }))
}
