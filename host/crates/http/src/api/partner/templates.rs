//! Partner API: templates.

use std::collections::BTreeMap;

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::web::templates::flag;
use crate::error::HttpError;
use crate::middleware::caller::{EnvelopesWrite, PartnerCaller};
use crate::middleware::extract::{MultipartForm, ResourceId, ValidJson, ValidQuery, valid};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::FoundWithWarnings;
use holdfast_domain::field::Field;
use holdfast_domain::id::TemplateId;
use holdfast_domain::template::{SourceFormat, Template, TemplateSharing, TemplateVariable};
use holdfast_service::App;
use holdfast_service::templates::{
    self, AddFields, AddedFields, AnchorOccurrences, CreateTemplate, CreatedTemplate, DryRun,
    RequestedField,
};

/// Multipart form of a new template.
#[derive(JsonSchema)]
#[schemars(extend("examples" = [{ "file": "contract.pdf", "name": "Retail instalment contract" }]))]
#[expect(dead_code, reason = "documents the form")]
pub struct PartnerTemplateForm {
    /// PDF, at most 50 MiB. Also `.docx` or `.odt` where a service converts them (slot
    /// `provider.conversion`).
    #[schemars(extend("format" = "binary"))]
    file: String,
    name: String,
    external_id: Option<String>,
    /// JSON array of fields. Without it, fields are read from the document's `{{…}}` tags.
    fields_json: Option<String>,
    /// `true`: a document that its author certified against changes is used without its signatures.
    accept_certification_loss: Option<bool>,
    /// Opens a protected document. It is not kept.
    password: Option<String>,
}

/// A created template.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da", "provider_template_id": 1021,
    "name": "Retail instalment contract", "fields_added": 1,
    "fields": [{ "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
                 "areas": [{ "page": 3, "x": 0.29, "y": 0.71, "w": 0.3, "h": 0.03 }],
                 "anchor_match": { "page": 3, "x": 0.12, "y": 0.72, "w": 0.14, "h": 0.012 } }],
}]))]
pub struct PartnerTemplateView {
    template_id: TemplateId,
    provider_template_id: Option<i64>,
    name: String,
    fields_added: usize,
    fields: Vec<Field>,
    /// Variables `[[name]]` of a document of a word processor, in the order of their first appearance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    variables: Vec<TemplateVariable>,
}

impl From<&Template> for PartnerTemplateView {
    fn from(template: &Template) -> Self {
        // The contract has a number here. Other vendors have ids of text, which become null.
        let number = template.provider_template.as_deref();
        Self {
            template_id: template.id.clone(),
            provider_template_id: number.and_then(|id| id.parse().ok()),
            name: template.name.clone(),
            fields_added: template.fields.len(),
            fields: template.fields.clone(),
            variables: template.variables().to_vec(),
        }
    }
}

/// Fields added to a template.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da", "fields_added": 1,
    "fields": [{ "name": "Signed on", "type": "date", "role": "Buyer", "required": false,
                 "areas": [{ "page": 1, "x": 0.7, "y": 0.04, "w": 0.2, "h": 0.02 }] }],
}]))]
pub struct AddedFieldsView {
    template_id: TemplateId,
    /// 0 in a dry run.
    fields_added: usize,
    fields: Vec<Field>,
    /// All occurrences of each anchor. Present in a dry run only.
    #[serde(skip_serializing_if = "Option::is_none")]
    occurrences: Option<Vec<AnchorOccurrences>>,
}

impl From<&AddedFields> for AddedFieldsView {
    fn from(added: &AddedFields) -> Self {
        Self {
            template_id: added.template.clone(),
            fields_added: added.fields.len(),
            fields: added.fields.clone(),
            occurrences: None,
        }
    }
}

impl From<DryRun> for AddedFieldsView {
    fn from(dry_run: DryRun) -> Self {
        Self {
            template_id: dry_run.template,
            fields_added: 0,
            fields: dry_run.fields,
            occurrences: Some(dry_run.occurrences),
        }
    }
}

pub async fn create(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesWrite>,
    once: IdempotencyKeyHeader,
    mut form: MultipartForm<PartnerTemplateForm>,
) -> Result<FoundWithWarnings<PartnerTemplateView>, HttpError> {
    let file = form.file()?;
    let name = form
        .texts
        .remove("name")
        .filter(|name| !name.trim().is_empty())
        .ok_or_else(|| HttpError::bad_request("name is required"))?;
    let fields = optional_fields(&form.texts)?;
    let request = CreateTemplate {
        name,
        external_id: form.texts.remove("external_id").filter(|id| !id.is_empty()),
        file,
        fields,
        // The partner API has no such members. They belong to the library of web-app users.
        kba_required: false,
        source_format: SourceFormat::Pdf,
        pricing_table: false,
        accept_certification_loss: flag(
            "accept_certification_loss",
            form.texts.remove("accept_certification_loss"),
        )?,
        folder: None,
        shared_with: TemplateSharing::default(),
    };

    once.answer_with_warnings(
        &app,
        &partner.caller,
        |created: &CreatedTemplate| (PartnerTemplateView::from(&created.template), created.warnings.clone()),
        |app, caller, answer| async move {
            templates::create(&app, &caller, request, &answer).await
        },
    )
    .await
}

/// Parses the `fields_json` of a form that may have none.
pub fn optional_fields(
    texts: &BTreeMap<String, String>,
) -> Result<Option<Vec<RequestedField>>, HttpError> {
    // No fields and an empty list differ: only without the part are tags of the document read.
    match texts.get("fields_json").map(|text| text.trim()) {
        None | Some("") => Ok(None),
        Some(text) => fields(text).map(Some),
    }
}

/// Parses the form's `fields_json`.
pub fn fields(text: &str) -> Result<Vec<RequestedField>, HttpError> {
    let fields: Value = serde_json::from_str(text).map_err(|error| {
        HttpError::bad_request(format!("fields_json is not valid JSON: {error}"))
    })?;
    match fields.as_array() {
        None => Err(HttpError::bad_request("fields_json must be an array")),
        // The schema asks for at least one field, and here an empty list means "no fields".
        Some(none) if none.is_empty() => Ok(Vec::new()),
        Some(_) => Ok(valid::<AddFields>(json!({ "fields": fields }))?.fields),
    }
}

/// Options of adding fields.
#[derive(Deserialize, JsonSchema)]
pub struct AddQuery {
    /// Returns where the fields and their anchors would be placed, and adds nothing.
    #[serde(default)]
    dry_run: bool,
}

pub async fn add_fields(
    State(app): State<App>,
    partner: PartnerCaller<EnvelopesWrite>,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<AddQuery>,
    once: IdempotencyKeyHeader,
    ValidJson(request): ValidJson<AddFields>,
) -> Result<FoundWithWarnings<AddedFieldsView>, HttpError> {
    // A dry run changes nothing, so it is not stored under the idempotency key.
    if query.dry_run {
        let dry_run = templates::dry_run(&app, &partner.caller, &id, request).await?;
        let view = AddedFieldsView::from(dry_run);
        return Ok(FoundWithWarnings::with_warnings(&view, &[]));
    }

    once.answer_with_warnings(
        &app,
        &partner.caller,
        |added: &AddedFields| (AddedFieldsView::from(added), added.warnings.clone()),
        |app, caller, answer| async move {
            templates::add_fields(&app, &caller, &id, request, &answer).await
        },
    )
    .await
}
