//! Duplicates of templates, and their documents as files.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::versions::version_of;
use super::{CreatedTemplate, get, warnings};
use holdfast_adapters::files::StorageArea as FileArea;
use holdfast_base::fair_queue::{QueueTurn, WorkOwner};
use holdfast_domain::envelope::{KeptFile, StoredFile};
use holdfast_domain::id::DecisionId;
use holdfast_domain::template::{Template, WordSource};
use holdfast_platform::documents::admit;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::decisions::{self, PlacementDecision};
use holdfast_store::templates;

/// Placements that a duplicate takes over: enough for all fields, which are added in few calls.
const PLACEMENTS: i64 = 1000;

/// Body of `POST /templates/{id}/duplicate`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "name": "Retail instalment contract, Ohio" }]))]
pub struct DuplicateTemplate {
    /// Name of the duplicate.
    #[schemars(length(min = 1, max = 500))]
    pub name: String,
    #[schemars(length(max = 500))]
    pub external_id: Option<String>,
}

/// Document of a template as a file.
pub struct TemplateDocument {
    /// Name to save it under, in ASCII.
    pub file_name: String,
    pub pdf: Bytes,
    _room: QueueTurn,
}

/// Returns the document of a template: that of a version, or the present one.
pub async fn document(
    core: &Core,
    caller: &Caller,
    id: &str,
    version: Option<i64>,
) -> Result<TemplateDocument, ServiceError> {
    let template = get(core, caller, id).await?;
    let number = version.unwrap_or(template.version);
    let version = version_of(core, &template, number).await?;
    let (pdf, room) = read(core, &template, &version.document).await?;

    Ok(TemplateDocument {
        file_name: format!("{}-version-{number}.pdf", template.id),
        pdf,
        _room: room,
    })
}

async fn read(
    core: &Core,
    template: &Template,
    document: &StoredFile,
) -> Result<(Bytes, QueueTurn), ServiceError> {
    let owner = WorkOwner::new(&template.org, template.id.as_str());
    let room = admit(core, &owner, document.size.unsigned_abs()).await?;
    Ok((core.files.get(document).await?, room))
}

/// Creates a template with the document, fields and settings of another one. Later changes of either
/// do not concern the other. It has no earlier versions.
pub async fn duplicate(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: DuplicateTemplate,
    answer: &ResponseRecorder<CreatedTemplate>,
) -> Result<CreatedTemplate, ServiceError> {
    let source = get(core, caller, id).await?;
    let now = core.clock.now();
    // The fields fit the provider of the source; that of new templates may have no such fields.
    let instance = source.provider_instance.clone();
    let mut template = Template {
        external_id: request.external_id,
        kba_required: source.kba_required,
        may_decline: source.may_decline,
        reminders: source.reminders,
        source_format: source.source_format,
        pricing_table: source.pricing_table,
        repair: source.repair().cloned(),
        fields: source.fields.clone(),
        tags: source.tags.clone(),
        folder: source.folder.clone(),
        shared_with: source.shared_with.clone(),
        version_by: Some(caller.creator()),
        ..Template::new(caller.org.clone(), request.name, instance, now)
    };

    // The file is stored before its row. If a later step fails, the sweep removes it.
    if let Some(document) = &source.document {
        let (pdf, _room) = read(core, &source, document).await?;
        let (area, id) = (FileArea::Templates, template.id.as_str());
        let put = core
            .files
            .put(area, &caller.org, id, pdf, "application/pdf");
        template.document = Some(put.await?);
    }

    if let Some(word) = &source.word_source {
        let file = &word.document.0;
        let (document, _room) = read(core, &source, file).await?;
        let (area, id) = (FileArea::Templates, template.id.as_str());
        let put = core
            .files
            .put(area, &caller.org, id, document, &file.content_type);
        template.word_source = Some(WordSource {
            document: KeptFile(put.await?),
            variables: word.variables.clone(),
        });
    }

    // The provider gets the document when the duplicate is first used.
    let mut tx = core.store.begin().await?;
    templates::insert(&mut tx, &template).await?;
    let placed = decisions::placements_of(&mut tx, &source.org, &source.id, PLACEMENTS).await?;
    // Oldest first, so that the newest one is the duplicate's last, too. They hold the anchors of the fields.
    for made in placed.into_iter().rev() {
        let made = PlacementDecision {
            id: DecisionId::new(),
            ..made
        };
        decisions::insert_placement(&mut tx, &template, &made, now).await?;
    }

    let warnings = warnings::of_roles(&template);
    let created = CreatedTemplate { template, warnings };
    answer.commit(tx, &created).await?;
    Ok(created)
}
