//! Templates: a PDF, its fields, and a counterpart at the signing provider.

pub mod answers;
pub mod built;
pub mod composition;
pub mod deletion;
pub mod duplicates;
mod exact_anchors;
pub mod folders;
pub mod packages;
pub mod pages;
pub mod selection;
mod sharing;
mod tags;
pub mod variables;
pub mod versions;
pub mod warnings;

use std::collections::HashMap;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use holdfast_adapters::files::StorageArea as FileArea;
use holdfast_base::fair_queue::{QueueTurn, WorkOwner};
use holdfast_components::Placement as PlacementRules;
use holdfast_components::rules::placement;
use holdfast_domain::change::FieldPatch;
use holdfast_domain::component::Slot;
use holdfast_domain::envelope::KeptFile;
use holdfast_domain::field::{Area, Field, FieldRules, FieldType};
use holdfast_domain::hash::sha256;
use holdfast_domain::id::{DecisionId, OrgId, TemplateId};
use holdfast_domain::reminders::ReminderPlan;
use holdfast_domain::template::{
    RESTORABLE, SourceFormat, Template, TemplateSharing, TemplateVariable, WordSource,
};
use holdfast_domain::warning::Warning;
use holdfast_platform::access::credentials;
use holdfast_platform::components::questions::{self, RulesQuestion};
use holdfast_platform::conversion::{self, SourceDocument, VariableDocument};
use holdfast_platform::documents::{DocumentUpload, admit, check_signable, settled};
use holdfast_platform::fields::{area, placement_area, provider_fields, resolved};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::providers::provider;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue};
use holdfast_store::decisions::{self, PlacementDecision};
use holdfast_store::templates::{self, TemplateFilter as StoredFilter};

/// Maximum number of distinct anchors in a dry run: each one is a search of the document.
const SEARCHED_ANCHORS: usize = 50;

/// Body of `POST /partner/templates/:template_id/fields`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "fields": [
    { "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
      "placement": { "mode": "anchor", "anchor_text": "Buyer signature:", "offset_x": 0.17,
                     "offset_y": -0.01, "w": 0.3, "h": 0.03 } },
    { "name": "Signed on", "type": "date", "role": "Buyer",
      "placement": { "mode": "absolute",
                     "areas": [{ "page": 1, "x": 0.7, "y": 0.04, "w": 0.2, "h": 0.02 }] } },
] }]))]
pub struct AddFields {
    #[schemars(length(min = 1, max = 1000))]
    pub fields: Vec<RequestedField>,
}

/// Requested field.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RequestedField {
    /// Name shown to signers.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    #[serde(rename = "type")]
    pub field_type: FieldType,
    /// Submitter role that fills the field.
    #[schemars(length(min = 1, max = 200))]
    pub role: String,
    #[serde(default)]
    pub required: bool,
    /// Prefilled value. `{{date}}` in a date field stands for the day of signing, which the signer
    /// cannot change.
    pub default_value: Option<String>,
    /// Choices of a field of type `select` or `radio`.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub options: Vec<String>,
    #[serde(flatten)]
    pub rules: FieldRules,
    pub placement: FieldPlacement,
}

/// Position of a field. Unknown members are refused: a misspelt offset must not pass silently.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "lowercase", deny_unknown_fields)]
pub enum FieldPlacement {
    /// By coordinates.
    Absolute {
        #[schemars(length(min = 1, max = 500))]
        areas: Vec<Area>,
    },
    /// By a text in the document.
    Anchor {
        /// Literal text. Case and white space are ignored, and longer words match too. If a match
        /// wraps, its part on the first line places the field.
        #[schemars(length(min = 1, max = 500))]
        anchor_text: String,
        /// Number of the match, in the order in which the document draws its text; 1 when absent.
        #[schemars(range(min = 1))]
        occurrence: Option<u32>,
        /// Page to search, from 1; all pages when absent.
        #[schemars(range(min = 1))]
        page: Option<u32>,
        /// Whether apostrophes, quotation marks, hyphens and dashes must be the same characters. Otherwise those
        /// of one kind match each other.
        #[serde(default)]
        exact: bool,
        /// Distance from the anchor's left edge, as a fraction of the page's width.
        #[serde(default)]
        offset_x: f64,
        /// Distance from the anchor's top edge, as a fraction of the page's height.
        #[serde(default)]
        offset_y: f64,
        w: f64,
        h: f64,
    },
}

/// Data of a new template with its document.
pub struct CreateTemplate {
    pub name: String,
    pub external_id: Option<String>,
    pub file: DocumentUpload,
    /// None places the fields of the document's embedded tags, if there are any.
    pub fields: Option<Vec<RequestedField>>,
    pub kba_required: bool,
    pub source_format: SourceFormat,
    pub pricing_table: bool,
    /// A certified document is used without the certification of its author.
    pub accept_certification_loss: bool,
    /// Path of the folder.
    pub folder: Option<String>,
    pub shared_with: TemplateSharing,
}

/// Created template.
pub struct CreatedTemplate {
    pub template: Template,
    pub warnings: Vec<Warning>,
}

/// Fields added to a template.
pub struct AddedFields {
    pub template: TemplateId,
    pub fields: Vec<Field>,
    pub warnings: Vec<Warning>,
}

/// Occurrences of one anchor text.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AnchorOccurrences {
    /// Index of the field in the request, 0-based.
    pub field_index: usize,
    pub anchor_text: String,
    /// In document order, on the requested page or on all.
    pub matches: Vec<Area>,
}

/// Result of a dry run.
pub struct DryRun {
    pub template: TemplateId,
    pub fields: Vec<Field>,
    pub occurrences: Vec<AnchorOccurrences>,
}

/// Creates a template from a PDF, or from a document that the organization's provider converts to one.
pub async fn create(
    core: &Core,
    caller: &Caller,
    request: CreateTemplate,
    answer: &ResponseRecorder<CreatedTemplate>,
) -> Result<CreatedTemplate, ServiceError> {
    let folder = folders::checked(request.folder.as_deref().unwrap_or_default())?;
    let shared_with = sharing::checked(caller, &request.shared_with)?;
    // Made first: the id names the place of the document and is the idempotency key at the provider.
    let id = TemplateId::new();
    let owner = WorkOwner::new(&caller.org, id.as_str());
    let SourceDocument {
        pdf,
        format,
        room,
        word,
    } = conversion::read_as_pdf(core, &caller.org, &owner, &request.file).await?;
    let options = (
        request.file.password.as_deref(),
        request.accept_certification_loss,
    );
    let settled = settled(core, &caller.org, &owner, pdf, options).await?;
    let pdf = settled.pdf;

    let placement = core.placement(Some(&caller.org)).for_owner(owner.clone());
    let instance = core.signing_instance(&caller.org, request.kba_required);
    let TaggedDocument {
        fields,
        pdf,
        mut warnings,
        placed,
    } = match &request.fields {
        Some(fields) => {
            let (resolved, placed) = place(&placement, &pdf, fields).await?;
            TaggedDocument {
                fields: resolved,
                warnings: warnings::of_anchors(&placement, &pdf, fields).await,
                pdf,
                placed,
            }
        }
        None => from_tags(core, &placement, (&caller.org, &instance), pdf).await?,
    };

    warnings.extend(settled.warnings);
    let (facts, reader) = check_signable(core, owner, pdf.clone()).await?;
    answers::check(core, (&caller.org, &instance), &pdf, &fields, 0).await?;
    // The file is stored before its row. If a later step fails, the sweep removes it.
    let document = core
        .files
        .put(
            FileArea::Templates,
            &caller.org,
            id.as_str(),
            pdf.clone(),
            "application/pdf",
        )
        .await?;

    let word_source = match word {
        Some(word) => Some(word_source(core, &caller.org, &id, word).await?),
        None => None,
    };

    // Release the memory reservation before the provider call, which may be slow.
    drop(room);
    let signing = provider(core, &caller.org, &instance)?;
    let at_provider = signing
        .create_template(&request.name, id.as_str(), pdf, &provider_fields(&fields))
        .await?;
    let now = core.clock.now();
    let template = Template {
        id,
        external_id: request.external_id,
        kba_required: request.kba_required,
        source_format: match format {
            SourceFormat::Word => SourceFormat::Word,
            // The author's program may have made the PDF of a word document.
            SourceFormat::Pdf => request.source_format,
        },
        pricing_table: request.pricing_table,
        provider_template: Some(at_provider.template_id),
        document: Some(document),
        repair: settled.repair,
        fields,
        provider_stale: false,
        folder,
        shared_with,
        word_source,
        version_by: Some(caller.creator()),
        ..Template::new(caller.org.clone(), request.name, instance, now)
    };

    // A template in the signing room is a row here, too. None of the rows exists alone.
    let mut tx = core.store.begin().await?;
    signing.write(&mut tx).await?;
    templates::insert(&mut tx, &template).await?;
    decisions::insert_placement(&mut tx, &template, &placed, now).await?;
    // The pages were read above, so the first visitor need not wait for them.
    pages::keep(core, &mut tx, &template, &facts, &reader).await?;
    warnings.extend(warnings::of_roles(&template));
    let created = CreatedTemplate { template, warnings };
    answer.commit(tx, &created).await?;

    // Tags are read from the document and have no request that a candidate could repeat.
    if request.fields.is_some() {
        let template = &created.template;
        shadow_placement(core, template, &placed, &template.fields);
    }

    Ok(created)
}

/// Stores a document with variables, which have no defaults yet.
async fn word_source(
    core: &Core,
    org: &OrgId,
    id: &TemplateId,
    word: VariableDocument,
) -> Result<WordSource, ServiceError> {
    let (area, content_type) = (FileArea::Templates, word.kind.as_str());
    let put = core
        .files
        .put(area, org, id.as_str(), word.document, content_type);
    let variable = |name: String| TemplateVariable {
        name,
        default: None,
    };
    Ok(WordSource {
        document: KeptFile(put.await?),
        variables: word.names.into_iter().map(variable).collect(),
    })
}

/// Asks a candidate component for the same placement, if one shadows the placement rules.
fn shadow_placement(core: &Core, template: &Template, placed: &PlacementDecision, to: &[Field]) {
    if let Some(document) = &template.document {
        let record = template.id.as_str();
        core.shadows
            .offer(Slot::Placement, &template.org, record, || {
                let question = RulesQuestion::Placement {
                    document: document.clone(),
                    fields: Vec::deserialize(&placed.facts["fields"]).unwrap_or_default(),
                };
                (question, questions::placed(to))
            });
    }
}

/// Adds fields to a template and returns them with their areas.
pub async fn add_fields(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: AddFields,
    answer: &ResponseRecorder<AddedFields>,
) -> Result<AddedFields, ServiceError> {
    // The provider adds to the fields that it has, so it must have the present ones first.
    let template = synced(core, get(core, caller, id).await?).await?;
    let placement = core.placement(Some(&caller.org));
    let Resolution {
        fields: added,
        document,
        at_provider,
        placed,
    } = resolve(core, &placement, &template, &request).await?;
    let warnings = warnings::of_anchors(&placement, &document.bytes, &request.fields).await;

    // Release the memory reservation before the provider call, which may be slow.
    drop(document);
    let signing = provider(core, &caller.org, &template.provider_instance)?;
    signing
        .add_fields(&at_provider, &provider_fields(&added))
        .await?;
    let all = [template.fields.clone(), added.clone()].concat();

    let mut tx = core.store.begin().await?;
    signing.write(&mut tx).await?;
    let now = core.clock.now();
    // Compare-and-swap: of two concurrent additions, the second one is refused.
    templates::set_fields(&mut tx, &template, &all, now).await?;
    decisions::insert_placement(&mut tx, &template, &placed, now).await?;
    let shown = AddedFields {
        template: template.id.clone(),
        fields: added,
        warnings,
    };
    answer.commit(tx, &shown).await?;

    // After the commit: a candidate must not delay or fail the request.
    shadow_placement(core, &template, &placed, &shown.fields);
    Ok(shown)
}

/// Returns where fields would be placed and all occurrences of their anchors. Writes nothing.
pub async fn dry_run(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: AddFields,
) -> Result<DryRun, ServiceError> {
    let template = get(core, caller, id).await?;
    let rules = core.placement(Some(&caller.org));
    let Resolution {
        fields, document, ..
    } = resolve(core, &rules, &template, &request).await?;
    let mut known: HashMap<(&str, Option<u32>), Vec<Area>> = HashMap::new();

    let mut occurrences = Vec::new();
    for (field_index, field) in request.fields.iter().enumerate() {
        let FieldPlacement::Anchor {
            anchor_text, page, ..
        } = &field.placement
        else {
            continue;
        };

        let wanted = (anchor_text.as_str(), *page);
        // One search reads the whole document, so fields with the same anchor share its result.
        if !known.contains_key(&wanted) {
            if known.len() == SEARCHED_ANCHORS {
                return Err(ServiceError::Semantic(format!(
                    "A dry run looks for at most {SEARCHED_ANCHORS} different anchors"
                )));
            }

            let pdf = document.bytes.clone();
            let found = rules.occurrences(pdf, anchor_text.clone(), *page).await??;
            known.insert(wanted, found.into_iter().map(area).collect());
        }

        occurrences.push(AnchorOccurrences {
            field_index,
            anchor_text: anchor_text.clone(),
            matches: known.get(&wanted).cloned().unwrap_or_default(),
        });
    }

    Ok(DryRun {
        template: template.id,
        fields,
        occurrences,
    })
}

/// Document in memory with its memory reservation.
struct HeldDocument {
    bytes: Bytes,
    _room: QueueTurn,
}

/// Fields with their areas.
struct Resolution {
    fields: Vec<Field>,
    /// The document they are on.
    document: HeldDocument,
    /// Id of the template at the provider.
    at_provider: String,
    placed: PlacementDecision,
}

/// Places further fields of a template.
async fn resolve(
    core: &Core,
    placement: &PlacementRules,
    template: &Template,
    request: &AddFields,
) -> Result<Resolution, ServiceError> {
    let (Some(document), Some(at_provider)) = (&template.document, &template.provider_template)
    else {
        return Err(ServiceError::Conflict("Template has no document".into()));
    };

    let owner = WorkOwner::new(&template.org, template.id.as_str());
    let room = admit(core, &owner, document.size.unsigned_abs()).await?;
    let document = HeldDocument {
        bytes: core.files.get(document).await?,
        _room: room,
    };
    let (fields, placed) = place(placement, &document.bytes, &request.fields).await?;
    // Fields of one name hold one value, so they have one type.
    let issues = conflicting_types(&template.fields, &fields);
    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }

    // A rule of a new field may name an earlier field.
    let all = [template.fields.clone(), fields.clone()].concat();
    let known = template.fields.len();
    let at = (&template.org, template.provider_instance.as_str());
    answers::check(core, at, &document.bytes, &all, known).await?;

    Ok(Resolution {
        fields,
        document,
        at_provider: at_provider.clone(),
        placed,
    })
}

/// Returns a template that the caller sees.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<Template, ServiceError> {
    let id = TemplateId::parse(id).ok_or(ServiceError::NotFound("Template"))?;
    let mut connection = core.store.read().await?;
    let found = templates::get(&mut connection, &caller.org, &id).await?;
    let found = found.filter(|template| caller.sees(template));
    found.ok_or(ServiceError::NotFound("Template"))
}

/// Body of `POST /templates` as JSON: a template without a document, which is added later.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "name": "Retail instalment contract", "kba_required": false }]))]
pub struct DraftTemplate {
    #[schemars(length(min = 1, max = 500))]
    pub name: String,
    #[schemars(length(max = 500))]
    pub external_id: Option<String>,
    /// Whether signers must answer identity questions. Cannot be changed later.
    #[serde(default)]
    pub kba_required: bool,
    /// False: the signing page offers no way to decline; signers can ask the sender instead. True when absent.
    pub may_decline: Option<bool>,
    /// Format of the author's source document; `pdf` when absent.
    pub source_format: Option<SourceFormat>,
    /// Whether the document has a table of prices that the author's program fills in.
    #[serde(default)]
    pub pricing_table: bool,
    /// Path of the folder, such as `Sales/Ohio`: at most three names of 1 to 40 characters.
    #[schemars(length(max = 200))]
    pub folder: Option<String>,
    /// Users who see the template, beside owners and admins; all users of the organization when absent.
    #[serde(default)]
    pub shared_with: TemplateSharing,
}

/// Creates a template without a document, which the field builder adds.
pub async fn draft(
    core: &Core,
    caller: &Caller,
    request: DraftTemplate,
    answer: &ResponseRecorder<CreatedTemplate>,
) -> Result<CreatedTemplate, ServiceError> {
    let instance = core.signing_instance(&caller.org, request.kba_required);
    let now = core.clock.now();
    let template = Template {
        external_id: request.external_id,
        kba_required: request.kba_required,
        may_decline: request.may_decline.unwrap_or(true),
        source_format: request.source_format.unwrap_or(SourceFormat::Pdf),
        pricing_table: request.pricing_table,
        folder: folders::checked(request.folder.as_deref().unwrap_or_default())?,
        shared_with: sharing::checked(caller, &request.shared_with)?,
        version_by: Some(caller.creator()),
        ..Template::new(caller.org.clone(), request.name, instance, now)
    };

    let mut tx = core.store.begin().await?;
    templates::insert(&mut tx, &template).await?;
    let created = CreatedTemplate {
        template,
        warnings: Vec::new(),
    };
    answer.commit(tx, &created).await?;

    Ok(created)
}

/// Body of `PATCH /templates/{id}`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "name": "Retail instalment contract 2027" }]))]
pub struct ChangeTemplate {
    #[schemars(length(min = 1, max = 500))]
    pub name: Option<String>,
    #[schemars(length(max = 500))]
    pub external_id: Option<String>,
    /// Cannot be changed: a value other than the template's is refused.
    pub kba_required: Option<bool>,
    /// Words by which templates are sorted, of 1 to 40 characters without commas. They replace those before.
    #[schemars(length(max = 10))]
    pub tags: Option<Vec<String>>,
    /// Whether signers may decline. Applies to envelopes that are sent later.
    pub may_decline: Option<bool>,
    /// Plan of reminders of envelopes that are created later; null takes that of the organization.
    #[serde(default)]
    #[schemars(with = "Option<ReminderPlan>")]
    pub reminders: FieldPatch<ReminderPlan>,
    /// Path of the folder to move the template to, such as `Sales/Ohio`: at most three names of 1 to 40 characters.
    /// Empty: to the top.
    #[schemars(length(max = 200))]
    pub folder: Option<String>,
    /// Users who see the template, beside owners and admins. Without roles and users: all users of the organization.
    pub shared_with: Option<TemplateSharing>,
    /// Defaults of variables. Those that are not named keep theirs.
    #[schemars(length(max = 200))]
    pub variables: Option<Vec<TemplateVariable>>,
}

/// Changes the name, external id, tags, folder, sharing, defaults and reminders of a template, and whether signers may
/// decline.
pub async fn change(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: ChangeTemplate,
) -> Result<Template, ServiceError> {
    let not_found = || ServiceError::NotFound("Template");
    let id = TemplateId::parse(id).ok_or_else(not_found)?;
    let mut tx = core.store.begin().await?;
    // Locked: a change of the name must not take back a change of the sharing.
    let found = templates::lock(&mut tx, &caller.org, &id).await?;
    let found = found.filter(|template| caller.sees(template));
    let mut template = found.ok_or_else(not_found)?;

    check_fixed(template.kba_required, request.kba_required)?;
    if let Some(name) = request.name {
        template.name = name;
    }
    if let Some(tags) = &request.tags {
        template.tags = tags::checked(tags)?;
    }

    if let Some(folder) = &request.folder {
        template.folder = folders::checked(folder)?;
    }
    if let Some(wanted) = &request.variables {
        variables::set_defaults(&mut template, wanted)?;
    }
    let shared_before = template.shared_with.clone();
    if let Some(wanted) = &request.shared_with {
        template.shared_with = sharing::checked(caller, wanted)?;
    }

    template.external_id = request.external_id.or(template.external_id);
    template.may_decline = request.may_decline.unwrap_or(template.may_decline);
    request.reminders.apply(&mut template.reminders);
    template.updated_at = core.clock.now();
    templates::rename(&mut tx, &template, template.updated_at).await?;
    // Sharing is an act on access, so it goes into the ledger of credentials.
    if template.shared_with != shared_before {
        let details = json!({
            "template_id": template.id, "name": template.name,
            "before": shared_before, "shared_with": template.shared_with,
        });
        let (org, actor, at) = (&template.org, &caller.actor, template.updated_at);
        let action = "template.shared";
        credentials::record_by(&mut tx, Some(org), actor, action, details, at).await?;
    }
    tx.commit().await?;

    Ok(template)
}

/// Refuses a change of identity verification, which is fixed when a document is begun
/// (specification, "KBA rules").
pub(crate) fn check_fixed(is: bool, wanted: Option<bool>) -> Result<(), ServiceError> {
    match wanted {
        Some(wanted) if wanted != is => Err(ServiceError::Conflict(
            "kba_required cannot be changed once a document is begun".into(),
        )),
        _ => Ok(()),
    }
}

/// Templates of the library that a list has.
#[derive(Clone, Debug, Default)]
pub struct TemplateFilter {
    /// Lists the deleted ones that can be restored, in place of the present ones.
    pub deleted: bool,
    /// Lists those with this tag.
    pub tag: Option<String>,
    /// Lists those in this folder and the folders in it.
    pub folder: Option<String>,
}

/// Returns a page of the templates of the library that the caller sees, newest first, and their number.
pub async fn list(
    core: &Core,
    caller: &Caller,
    filter: &TemplateFilter,
    page: i64,
    limit: i64,
) -> Result<(Vec<Template>, i64), ServiceError> {
    let filter = StoredFilter {
        deleted_after: filter.deleted.then(|| core.clock.now() - RESTORABLE),
        tag: filter.tag.clone(),
        folder: filter.folder.clone(),
        reader: caller.template_reader(),
    };
    let mut connection = core.store.read().await?;
    Ok(templates::list(&mut connection, &caller.org, &filter, page, limit).await?)
}

/// Attempts to sync a template that others keep changing.
const SYNCS: usize = 5;

/// Returns the template once its provider has the same document and fields. The template's id is
/// the idempotency key at the provider, so a repeat does no harm.
pub async fn synced(core: &Core, mut template: Template) -> Result<Template, ServiceError> {
    for _ in 0..SYNCS {
        let (true, Some(document)) = (template.provider_stale, &template.document) else {
            return Ok(template);
        };

        let owner = WorkOwner::new(&template.org, template.id.as_str());
        let room = admit(core, &owner, document.size.unsigned_abs()).await?;
        let pdf = core.files.get(document).await?;

        // Release the memory reservation before the provider call, which may be slow.
        drop(room);
        let signing = provider(core, &template.org, &template.provider_instance)?;
        let (name, id) = (template.name.clone(), template.id.clone());
        let fields = provider_fields(&template.fields);
        let sent = signing
            .create_template(&name, id.as_str(), pdf, &fields)
            .await?;

        let mut tx = core.store.begin().await?;
        signing.write(&mut tx).await?;
        if !templates::note_synced(&mut tx, &template, &sent.template_id).await? {
            // The template changed during the call, so the provider has an older version.
            templates::note_stale(&mut tx, &template).await?;
        }

        template = templates::get(&mut tx, &template.org, &id)
            .await?
            .ok_or(ServiceError::NotFound("Template"))?;

        tx.commit().await?;
    }

    Err(ServiceError::Conflict(
        "The template keeps being changed; try again".into(),
    ))
}

async fn place(
    rules: &PlacementRules,
    pdf: &Bytes,
    fields: &[RequestedField],
) -> Result<(Vec<Field>, PlacementDecision), ServiceError> {
    let requested = exact_anchors::placement_requests(rules, pdf, fields).await?;
    // The facts let a verifier repeat the decision with the component that made it.
    let facts = json!({ "fields": requested });
    let placed = rules.place(pdf.clone(), requested).await?;
    let placed = placed.map_err(place_error)?;
    let decision = decided(rules, None, facts, &placed)?;
    let placed = placed.into_iter().map(resolved);

    // The component keeps the order of the request.
    let with_rules = |(field, asked): (Field, &RequestedField)| Field {
        options: asked.options.clone(),
        rules: asked.rules.clone(),
        ..field
    };

    let placed: Vec<Field> = placed.zip(fields).map(with_rules).collect();
    match answers::options(&placed) {
        issues if issues.is_empty() => Ok((unreserved(placed)?, decision)),
        issues => Err(ServiceError::Invalid(issues)),
    }
}

/// Returns the decision that placed these fields.
fn decided(
    rules: &PlacementRules,
    document: Option<String>,
    facts: Value,
    placed: &[placement::ResolvedField],
) -> Result<PlacementDecision, ServiceError> {
    Ok(PlacementDecision {
        id: DecisionId::new(),
        document,
        facts,
        answer: json!({ "ok": placed }),
        component: json!(rules.identity()?),
    })
}

/// Names of the signing form's own controls.
const RESERVED_NAMES: [&str; 8] = [
    "action",
    "consent",
    "reason",
    "document-version",
    "signature-style",
    "delegate-name",
    "delegate-email",
    "delegate-phone",
];

pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED_NAMES.contains(&name)
}

/// Returns an issue for each field with the name of one of the form's own controls.
pub(crate) fn reserved_names(fields: &[Field]) -> Vec<ValidationIssue> {
    let reserved = fields
        .iter()
        .enumerate()
        .filter(|(_, field)| is_reserved(&field.name));
    reserved
        .map(|(index, field)| {
            ValidationIssue::new(
                "reserved_name",
                &["fields", &index.to_string(), "name"],
                "another name",
                field.name.as_str(),
                format!("{} is a control of the signing form", field.name),
            )
        })
        .collect()
}

fn unreserved(fields: Vec<Field>) -> Result<Vec<Field>, ServiceError> {
    // An entry of such a field would be taken for a control of the form.
    let issues = reserved_names(&fields);
    if issues.is_empty() {
        Ok(fields)
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

/// Document without its tags, with the fields that they defined.
pub(crate) struct TaggedDocument {
    pub(crate) fields: Vec<Field>,
    pub(crate) pdf: Bytes,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) placed: PlacementDecision,
}

/// Creates fields from `{{…}}` tags. A document without tags has no fields.
pub(crate) async fn from_tags(
    core: &Core,
    rules: &PlacementRules,
    (org, provider): (&OrgId, &str),
    pdf: Bytes,
) -> Result<TaggedDocument, ServiceError> {
    let tags = rules.tags(pdf.clone()).await?.map_err(place_error)?;
    let mut warnings = warnings::of_tags(&tags);

    // Without tags, the document stays as it is.
    let document = (!tags.is_empty()).then(|| sha256(&pdf));
    // Tags are part of the document, so its hash takes the place of a request.
    let placed = decided(rules, document, json!({}), &tags)?;
    if tags.is_empty() {
        let fields = Vec::new();
        return Ok(TaggedDocument {
            fields,
            pdf,
            warnings,
            placed,
        });
    }

    let mut fields = unreserved(tags.into_iter().map(resolved).collect())?;
    let unusable = answers::drop_unusable(core, (org, provider), &mut fields).await?;
    warnings.splice(0..0, unusable);
    // Tags are instructions for this program. Signers must not see them.
    let stripped = core.documents(Some(org)).strip_tags(pdf).await??;
    Ok(TaggedDocument {
        fields,
        pdf: stripped.into(),
        warnings,
        placed,
    })
}

fn conflicting_types(existing: &[Field], added: &[Field]) -> Vec<ValidationIssue> {
    added
        .iter()
        .enumerate()
        .filter_map(|(index, field)| {
            let other = existing.iter().find(|other| other.name == field.name)?;
            (other.field_type != field.field_type).then(|| {
                ValidationIssue::new(
                    "conflicting_type",
                    &["fields", &index.to_string(), "type"],
                    other.field_type.as_str(),
                    field.field_type.as_str(),
                    format!("Field {} exists with type {}", field.name, other.field_type),
                )
            })
        })
        .collect()
}

pub(crate) fn placement_request(field: &RequestedField) -> placement::FieldRequest {
    let position = match &field.placement {
        FieldPlacement::Absolute { areas } => {
            placement::Position::Absolute(areas.iter().map(placement_area).collect())
        }
        FieldPlacement::Anchor {
            anchor_text,
            occurrence,
            page,
            offset_x,
            offset_y,
            w,
            h,
            // `exact_anchors` has turned it into the number of an occurrence.
            exact: _,
        } => placement::Position::Anchor(placement::Anchor {
            text: anchor_text.clone(),
            occurrence: *occurrence,
            page: *page,
            offset_x: *offset_x,
            offset_y: *offset_y,
            w: *w,
            h: *h,
        }),
    };

    placement::FieldRequest {
        name: field.name.clone(),
        field_type: field.field_type.as_str().into(),
        role: field.role.clone(),
        required: field.required,
        default_value: field.default_value.clone(),
        position,
    }
}

fn place_error(error: placement::PlaceError) -> ServiceError {
    match error {
        placement::PlaceError::Unreadable(error) => error.into(),
        placement::PlaceError::Rejected(issues) => {
            ServiceError::Invalid(issues.into_iter().map(placement_issue).collect())
        }
    }
}

pub(crate) fn placement_issue(issue: placement::Issue) -> ValidationIssue {
    let index = issue.field_index.to_string();
    let path: Vec<&str> = ["fields", index.as_str()]
        .into_iter()
        .chain(issue.path.iter().map(String::as_str))
        .collect();
    ValidationIssue::new(
        &issue.code,
        &path,
        issue.expected,
        issue.received,
        issue.message,
    )
}
