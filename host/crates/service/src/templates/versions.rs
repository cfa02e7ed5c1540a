//! Versions of a template: another document takes the place of the present one and keeps its fields, as far as they
//! have a place on it. Envelopes stay as they were made.
//!
//! | A field | On the new document |
//! |---|---|
//! | with the name of one of the document's `{{…}}` tags | is placed where the tag is |
//! | that stands where its anchor placed it | is placed by the anchor again |
//! | any other | stays on its pages, if they exist and have the same size |

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::pages::{self, PageCache};
use super::{TaggedDocument, answers, decided, from_tags, get, place_error, warnings};
use holdfast_adapters::files::StorageArea as FileArea;
use holdfast_base::fair_queue::{QueueTurn, WorkOwner};
use holdfast_components::Placement as PlacementRules;
use holdfast_components::rules::placement::{
    DocumentFacts, FieldRequest, Issue, PageFacts, PlaceError, Position, ResolvedField,
};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::envelope::{KeptFile, StoredFile};
use holdfast_domain::field::{Area, Field};
use holdfast_domain::hash::sha256;
use holdfast_domain::id::TemplateId;
use holdfast_domain::open_link::{OpenLink, OpenLinkStatus};
use holdfast_domain::template::{DocumentRepair, Template, TemplateVersion, WordSource};
use holdfast_domain::warning::Warning;
use holdfast_platform::documents::{DocumentUpload, admit, check_signable, read_whole, settled};
use holdfast_platform::fields::resolved;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::decisions::{self, PlacementDecision};
use holdfast_store::{StoreError, WriteTransaction, open_links, template_versions, templates};

/// Versions of a list, the newest ones.
const LISTED: i64 = 100;
/// Placements in which the anchors of fields are searched, the newest ones.
const PLACEMENTS: i64 = 1000;
/// Difference up to which sizes of pages are the same, in points.
const SAME_SIZE: f64 = 0.5;
/// Difference up to which places are the same, as a fraction of the page: browsers round numbers.
const SAME_PLACE: f64 = 1e-9;
/// Time for which a proposal can be confirmed. The sweep removes its document a day later.
const PROPOSAL: Duration = Duration::from_secs(3600);

/// Body of `POST /templates/{id}/versions` as JSON.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "from_version": 1 }]))]
pub struct RestoreVersion {
    /// Number of the version that gives the new one its document and fields.
    #[schemars(range(min = 1))]
    pub from_version: i64,
}

/// Source of a new version.
pub enum NewVersion {
    /// Another document.
    Document {
        file: DocumentUpload,
        /// A certified document is used without the certification of its author.
        accept_certification_loss: bool,
    },
    /// A document that [`propose`] has compared.
    Proposed(String),
    /// Document and fields of the version with this number.
    Earlier(i64),
}

/// What becomes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldOutcome {
    /// It stays where it is.
    Kept,
    /// It is somewhere else, or has fewer or more places.
    Moved,
    /// Its type, its role or another setting differs, and maybe its place.
    Changed,
    /// It has no place in the new version.
    Lost,
    /// Only the new version has it.
    Added,
}

/// A field in both versions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FieldChange {
    pub name: String,
    /// Submitter role that fills the field.
    pub role: String,
    pub outcome: FieldOutcome,
    /// Places in the version before; none for an added field.
    pub from: Vec<Area>,
    /// Places in the new version; none for a lost field.
    pub to: Vec<Area>,
    /// Why the field is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl FieldChange {
    fn placed(before: &Field, after: &Field) -> Self {
        let settings = |field: &Field| Field {
            areas: Vec::new(),
            anchor_match: None,
            ..field.clone()
        };
        let outcome = if settings(before) != settings(after) {
            FieldOutcome::Changed
        } else if before.areas == after.areas {
            FieldOutcome::Kept
        } else {
            FieldOutcome::Moved
        };
        Self {
            outcome,
            from: before.areas.clone(),
            ..Self::added(after)
        }
    }

    fn added(field: &Field) -> Self {
        Self {
            name: field.name.clone(),
            role: field.role.clone(),
            outcome: FieldOutcome::Added,
            from: Vec::new(),
            to: field.areas.clone(),
            reason: None,
        }
    }

    fn lost(field: &Field, reason: String) -> Self {
        Self {
            outcome: FieldOutcome::Lost,
            from: field.areas.clone(),
            to: Vec::new(),
            reason: Some(reason),
            ..Self::added(field)
        }
    }
}

/// A version that was made, or only compared with the present one.
pub struct VersionChange {
    pub template: TemplateId,
    /// Name of the template.
    pub name: String,
    /// Number of the new version.
    pub number: i64,
    /// SHA-256 of its document, lower-case hex.
    pub sha256: String,
    /// The fields before in their order, and then the added ones.
    pub fields: Vec<FieldChange>,
    pub warnings: Vec<Warning>,
}

/// Document of a new version.
enum VersionDocument {
    New(Bytes),
    /// That of an earlier version.
    Kept(StoredFile),
}

/// A version before it is made.
struct DraftVersion {
    document: VersionDocument,
    repair: Option<DocumentRepair>,
    fields: Vec<Field>,
    word_source: Option<WordSource>,
    changes: Vec<FieldChange>,
    warnings: Vec<Warning>,
    placed: Vec<PlacementDecision>,
    /// Pages of a new document, and the component that read them.
    read: Option<(DocumentFacts, ComponentIdentity)>,
    _room: Option<QueueTurn>,
}

impl DraftVersion {
    fn change(&self, template: &Template) -> VersionChange {
        VersionChange {
            template: template.id.clone(),
            name: template.name.clone(),
            number: next_number(template),
            sha256: match &self.document {
                VersionDocument::New(pdf) => sha256(pdf),
                VersionDocument::Kept(document) => document.sha256.clone(),
            },
            fields: self.changes.clone(),
            warnings: self.warnings.clone(),
        }
    }
}

/// Lists the newest 100 versions of a template, newest first: the present one, and those that it replaced.
pub async fn list(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<Vec<TemplateVersion>, ServiceError> {
    let template = get(core, caller, id).await?;
    let mut connection = core.store.read().await?;
    let replaced =
        template_versions::list(&mut connection, &template.org, &template.id, LISTED - 1).await?;
    let present = template.present_version();
    Ok(present.into_iter().chain(replaced).collect())
}

/// Returns a version of a template by its number.
pub(super) async fn version_of(
    core: &Core,
    template: &Template,
    number: i64,
) -> Result<TemplateVersion, ServiceError> {
    let found = if number == template.version {
        template.present_version()
    } else {
        let mut connection = core.store.read().await?;
        template_versions::get(&mut connection, &template.org, &template.id, number).await?
    };
    found.ok_or(ServiceError::NotFound("Version"))
}

/// Returns what a new version would do to the fields. Changes nothing.
pub async fn compare(
    core: &Core,
    pages: &PageCache,
    caller: &Caller,
    id: &str,
    new: NewVersion,
) -> Result<VersionChange, ServiceError> {
    let template = get(core, caller, id).await?;
    let draft = draft(core, pages, caller, &template, new).await?;
    let draft = with_links(core, &template, draft).await?;
    Ok(draft.change(&template))
}

/// Makes a new version. The provider gets it when the template is next used.
pub async fn replace(
    core: &Core,
    pages: &PageCache,
    caller: &Caller,
    id: &str,
    new: NewVersion,
    answer: &ResponseRecorder<VersionChange>,
) -> Result<VersionChange, ServiceError> {
    let before = get(core, caller, id).await?;
    let draft = draft(core, pages, caller, &before, new).await?;
    let draft = with_links(core, &before, draft).await?;
    let change = draft.change(&before);

    // The file is stored before its row. If a later step fails, the sweep removes it.
    let document = match draft.document {
        VersionDocument::Kept(document) => document,
        VersionDocument::New(pdf) => {
            let (area, id) = (FileArea::Templates, before.id.as_str());
            let put = core
                .files
                .put(area, &before.org, id, pdf, "application/pdf");
            put.await?
        }
    };

    let now = core.clock.now();
    let after = Template {
        document: Some(document),
        repair: draft.repair,
        fields: draft.fields,
        word_source: draft.word_source,
        ..before.clone()
    };
    let after = next(&before, after, caller.creator(), now);

    let mut tx = core.store.begin().await?;
    write(&mut tx, &before, &after, now).await?;
    for placed in &draft.placed {
        decisions::insert_placement(&mut tx, &after, placed, now).await?;
    }
    // The pages were read above, so the first visitor need not wait for them.
    if let Some((facts, reader)) = &draft.read {
        pages::keep(core, &mut tx, &after, facts, reader).await?;
    }
    answer.commit(tx, &change).await?;

    Ok(change)
}

/// Returns the template with the number, maker and time of its next version. The first document makes the first version.
pub(crate) fn next(
    before: &Template,
    after: Template,
    made_by: String,
    now: Timestamp,
) -> Template {
    Template {
        version: next_number(before),
        version_by: Some(made_by),
        version_at: Some(now),
        ..after
    }
}

fn next_number(before: &Template) -> i64 {
    before.version + i64::from(before.document.is_some())
}

/// Writes document and fields (compare-and-swap). If they are another version, the one before is kept.
pub(crate) async fn write(
    tx: &mut WriteTransaction,
    before: &Template,
    after: &Template,
    now: Timestamp,
) -> Result<(), ServiceError> {
    match templates::replace(tx, before, after, now).await {
        Ok(()) => {}
        Err(StoreError::Conflict) => return Err(changed()),
        Err(error) => return Err(error.into()),
    }

    if after.version != before.version
        && let Some(version) = before.present_version()
    {
        template_versions::insert(tx, before, &version).await?;
    }

    Ok(())
}

/// Refuses a change of a template that was changed since the caller saw it.
pub(crate) fn changed() -> ServiceError {
    ServiceError::Conflict("The template was changed meanwhile; open it again".into())
}

/// A document that waits for a confirmation, as a page carries it.
#[derive(Serialize, Deserialize)]
struct Proposal {
    /// The upload after the checks, with its tags.
    document: KeptFile,
    repair: Option<DocumentRepair>,
    /// [`Template::content`] that it was compared with.
    content: String,
    until: Timestamp,
}

impl Proposal {
    /// A proposal is for one template and user.
    fn context(caller: &Caller, template: &Template) -> String {
        format!("version of {} by {}", template.id, caller.actor)
    }

    fn open(
        core: &Core,
        caller: &Caller,
        template: &Template,
        sealed: &str,
    ) -> Result<Self, ServiceError> {
        let context = Self::context(caller, template);
        let opened = core.cipher.open(sealed, &context);
        let proposal: Option<Self> = opened.and_then(|text| serde_json::from_str(&text).ok());
        let in_time = proposal.filter(|proposal| proposal.until > core.clock.now());
        let proposal = in_time.ok_or_else(|| {
            ServiceError::Semantic("The comparison is over; upload the document again".into())
        })?;

        // The page has shown differences from other fields.
        if proposal.content == template.content() {
            Ok(proposal)
        } else {
            Err(changed())
        }
    }
}

/// Returns what another document would do to the fields, and a text with which [`NewVersion::Proposed`] confirms it
/// within an hour. The document is stored, and nothing else changes.
pub async fn propose(
    core: &Core,
    pages: &PageCache,
    caller: &Caller,
    id: &str,
    file: DocumentUpload,
    accept_certification_loss: bool,
) -> Result<(VersionChange, String), ServiceError> {
    let template = get(core, caller, id).await?;
    let upload = read(core, &template, &file, accept_certification_loss).await?;
    let (pdf, repair) = (upload.pdf.clone(), upload.repair.clone());
    let draft = draft_of(core, pages, &template, upload).await?;
    let draft = with_links(core, &template, draft).await?;

    let (area, id) = (FileArea::Templates, template.id.as_str());
    let put = core
        .files
        .put(area, &template.org, id, pdf, "application/pdf");
    let proposal = Proposal {
        document: KeptFile(put.await?),
        repair,
        content: template.content(),
        until: core.clock.now() + PROPOSAL,
    };
    let context = Proposal::context(caller, &template);
    let sealed = core.cipher.encrypt(&json!(proposal).to_string(), &context);

    Ok((draft.change(&template), sealed))
}

/// A document that takes the place of the template's.
struct NewDocument {
    pdf: Bytes,
    repair: Option<DocumentRepair>,
    warnings: Vec<Warning>,
    room: QueueTurn,
}

async fn read(
    core: &Core,
    template: &Template,
    file: &DocumentUpload,
    accept_certification_loss: bool,
) -> Result<NewDocument, ServiceError> {
    let owner = WorkOwner::new(&template.org, template.id.as_str());
    let (pdf, room) = read_whole(core, &owner, file).await?;
    let options = (file.password.as_deref(), accept_certification_loss);
    let settled = settled(core, &template.org, &owner, pdf, options).await?;

    Ok(NewDocument {
        pdf: settled.pdf,
        repair: settled.repair,
        warnings: settled.warnings,
        room,
    })
}

async fn draft(
    core: &Core,
    pages: &PageCache,
    caller: &Caller,
    template: &Template,
    new: NewVersion,
) -> Result<DraftVersion, ServiceError> {
    let document = match new {
        NewVersion::Earlier(number) => {
            let earlier = version_of(core, template, number).await?;
            return Ok(draft_of_earlier(template, earlier));
        }
        NewVersion::Document {
            file,
            accept_certification_loss,
        } => read(core, template, &file, accept_certification_loss).await?,
        NewVersion::Proposed(sealed) => {
            let proposal = Proposal::open(core, caller, template, &sealed)?;
            let KeptFile(document) = proposal.document;
            let owner = WorkOwner::new(&template.org, template.id.as_str());
            let room = admit(core, &owner, document.size.unsigned_abs()).await?;
            NewDocument {
                pdf: core.files.get(&document).await?,
                repair: proposal.repair,
                warnings: Vec::new(),
                room,
            }
        }
    };

    draft_of(core, pages, template, document).await
}

/// Adds a warning for each open link with people who do not fit a draft's roles: its page has no form any more.
async fn with_links(
    core: &Core,
    template: &Template,
    mut draft: DraftVersion,
) -> Result<DraftVersion, ServiceError> {
    let mut connection = core.store.read().await?;
    let links = open_links::unclosed(&mut connection, &template.org, &template.id).await?;
    drop(connection);

    let after = Template {
        fields: draft.fields.clone(),
        ..template.clone()
    };
    let (roles, now) = (after.roles(), core.clock.now());
    let is_lost = |link: &&OpenLink| link.status(now) == OpenLinkStatus::Open && !link.fits(&roles);
    for link in links.iter().filter(is_lost) {
        let message = format!(
            "The people of the open link {} do not fit the roles: nobody can sign by it",
            link.name
        );
        let warning = Warning::new("open_link_unavailable", &["fields"], message);
        draft.warnings.push(warning);
    }

    Ok(draft)
}

/// Compares with an earlier version. Its fields fitted its document then, so they are taken as they are.
fn draft_of_earlier(template: &Template, earlier: TemplateVersion) -> DraftVersion {
    let mut added: Vec<&Field> = earlier.fields.iter().collect();
    let mut changes = Vec::new();
    for field in &template.fields {
        let found = namesake(field, added.iter().copied());
        changes.push(match found {
            Some(position) => FieldChange::placed(field, added.remove(position)),
            None => FieldChange::lost(
                field,
                format!("Version {} has no such field", earlier.number),
            ),
        });
    }
    changes.extend(added.into_iter().map(FieldChange::added));

    DraftVersion {
        document: VersionDocument::Kept(earlier.document),
        repair: earlier.repair,
        fields: earlier.fields,
        word_source: earlier.word_source,
        changes,
        warnings: Vec::new(),
        placed: Vec::new(),
        read: None,
        _room: None,
    }
}

/// Returns the position of the field with the same name, of the same role if there are several.
fn namesake<'a>(field: &Field, others: impl Iterator<Item = &'a Field> + Clone) -> Option<usize> {
    let same_role = others
        .clone()
        .position(|other| other.name == field.name && other.role == field.role);
    same_role.or_else(|| others.clone().position(|other| other.name == field.name))
}

/// Finds the places of the template's fields on a new document.
async fn draft_of(
    core: &Core,
    pages: &PageCache,
    template: &Template,
    new: NewDocument,
) -> Result<DraftVersion, ServiceError> {
    let org = &template.org;
    let owner = WorkOwner::new(org, template.id.as_str());
    let rules = core.placement(Some(org)).for_owner(owner.clone());
    let at = (org, template.provider_instance.as_str());
    let TaggedDocument {
        fields: mut by_tags,
        pdf,
        warnings: of_tags,
        placed,
    } = from_tags(core, &rules, at, new.pdf).await?;
    let (facts, reader) = check_signable(core, owner, pdf.clone()).await?;
    let sizes = match &template.document {
        Some(document) => pages::facts(core, pages, document).await?.to_vec(),
        None => Vec::new(),
    };

    // A document without tags decides nothing about the fields.
    let mut placements = Vec::new();
    if !by_tags.is_empty() {
        placements.push(placed);
    }

    let tagged: Vec<String> = by_tags.iter().map(|field| field.name.clone()).collect();
    let (mut anchors, forgotten) = anchors_of(core, template).await?;
    anchors.retain(|index, _| !tagged.contains(&template.fields[*index].name));
    let (mut anchored, by_anchors) = find_anchors(&rules, &pdf, anchors, &template.fields).await?;
    placements.extend(by_anchors);

    let mut fields = Vec::new();
    let mut changes = Vec::new();
    for (index, field) in template.fields.iter().enumerate() {
        let place = if tagged.contains(&field.name) {
            let tag = namesake(field, by_tags.iter()).map(|tag| by_tags.remove(tag));
            tag.map(|tag| at_tag(field, tag))
                .ok_or_else(|| "The document has fewer tags of this name".to_owned())
        } else if let Some(found) = anchored.remove(&index) {
            found
        } else {
            staying(field, &sizes, &facts.pages)
        };
        match place {
            Ok(after) => {
                changes.push(FieldChange::placed(field, &after));
                fields.push(after);
            }
            Err(reason) => changes.push(FieldChange::lost(field, reason)),
        }
    }
    changes.extend(by_tags.iter().map(FieldChange::added));
    fields.extend(by_tags);

    // A rule may name a field that is lost, and a default may not fit another place.
    answers::check(core, at, &pdf, &fields, 0).await?;
    let after = Template {
        fields,
        ..template.clone()
    };
    let mut all = new.warnings;
    all.extend(of_tags);
    all.extend(forgotten);
    all.extend(warnings::of_roles(&after));

    Ok(DraftVersion {
        document: VersionDocument::New(pdf),
        repair: new.repair,
        fields: after.fields,
        word_source: None,
        changes,
        warnings: all,
        placed: placements,
        read: Some((facts, reader)),
        _room: Some(new.room),
    })
}

/// PDF of a template's text with values, and the template's fields on it.
pub(super) struct FilledText {
    pub pdf: Bytes,
    pub fields: Vec<Field>,
    /// The template's fields in their order, and then those that only the PDF has.
    pub changes: Vec<FieldChange>,
    pub placed: Vec<PlacementDecision>,
    _room: QueueTurn,
}

/// Finds the places of a template's fields on the PDF of its text with values, by the rules for another document.
pub(super) async fn on_filled_text(
    core: &Core,
    pages: &PageCache,
    template: &Template,
    (pdf, room): (Bytes, QueueTurn),
) -> Result<FilledText, ServiceError> {
    let new = NewDocument {
        pdf,
        repair: None,
        warnings: Vec::new(),
        room,
    };
    let draft = draft_of(core, pages, template, new).await?;
    match (draft.document, draft._room) {
        (VersionDocument::New(pdf), Some(room)) => Ok(FilledText {
            pdf,
            fields: draft.fields,
            changes: draft.changes,
            placed: draft.placed,
            _room: room,
        }),
        _ => Err(ServiceError::Internal("a draft of a PDF without it".into())),
    }
}

/// Returns the anchors of the fields that stand where an anchor placed them, by the index of the field. They are in the
/// decisions that placed the fields; a warning shows if these are too many to be read.
async fn anchors_of(
    core: &Core,
    template: &Template,
) -> Result<(BTreeMap<usize, FieldRequest>, Option<Warning>), ServiceError> {
    let mut connection = core.store.read().await?;
    let made =
        decisions::placements_of(&mut connection, &template.org, &template.id, PLACEMENTS).await?;
    drop(connection);

    let is_full = made.len() as i64 >= PLACEMENTS;
    let forgotten = is_full.then(|| {
        let message = format!(
            "Anchors were searched in the newest {PLACEMENTS} placements of fields; a field that was placed before stays on its page"
        );
        Warning::new("anchors_forgotten", &["fields"], message)
    });

    let mut anchors = BTreeMap::new();
    for decision in made {
        // Those of tags have no requests, and no anchors.
        let requested: Vec<FieldRequest> =
            Vec::deserialize(&decision.facts["fields"]).unwrap_or_default();
        let placed: Vec<ResolvedField> =
            Vec::deserialize(&decision.answer["ok"]).unwrap_or_default();
        for (index, field) in template.fields.iter().enumerate() {
            if anchors.contains_key(&index) {
                continue;
            }

            let mut pairs = requested.iter().zip(&placed);
            let found = pairs.find(|(request, placed)| {
                matches!(request.position, Position::Anchor(_)) && is_at(field, placed)
            });
            if let Some((request, _)) = found {
                // Name and settings may have changed in the builder since.
                let request = FieldRequest {
                    name: field.name.clone(),
                    field_type: field.field_type.clone(),
                    role: field.role.clone(),
                    required: field.required,
                    default_value: field.default_value.clone(),
                    position: request.position.clone(),
                };
                anchors.insert(index, request);
            }
        }
    }

    Ok((anchors, forgotten))
}

/// Whether a field is where it was placed.
fn is_at(field: &Field, placed: &ResolvedField) -> bool {
    let is_same = |one: f64, other: f64| (one - other).abs() <= SAME_PLACE;
    let mut pairs = field.areas.iter().zip(&placed.areas);
    field.areas.len() == placed.areas.len()
        && pairs.all(|(one, other)| {
            one.page == other.page
                && is_same(one.x, other.x)
                && is_same(one.y, other.y)
                && is_same(one.w, other.w)
                && is_same(one.h, other.h)
        })
}

/// Fields that were searched by their anchors, by index: as they are placed now, or why they are lost.
type AnchoredFields = HashMap<usize, Result<Field, String>>;

/// Places fields by their anchors. Returns the decision that placed them, if any is placed.
async fn find_anchors(
    rules: &PlacementRules,
    pdf: &Bytes,
    mut anchors: BTreeMap<usize, FieldRequest>,
    fields: &[Field],
) -> Result<(AnchoredFields, Option<PlacementDecision>), ServiceError> {
    let mut found = AnchoredFields::new();
    while !anchors.is_empty() {
        let requested: Vec<FieldRequest> = anchors.values().cloned().collect();
        let facts = json!({ "fields": requested });
        match rules.place(pdf.clone(), requested).await? {
            Ok(placed) => {
                let decision = decided(rules, None, facts, &placed)?;
                for (index, place) in anchors.into_keys().zip(placed) {
                    let place = resolved(place);
                    let field = Field {
                        areas: place.areas,
                        anchor_match: place.anchor_match,
                        ..fields[index].clone()
                    };
                    found.insert(index, Ok(field));
                }
                return Ok((found, Some(decision)));
            }
            Err(PlaceError::Rejected(issues)) => {
                let lost = rejected(&anchors, &issues);
                // The component names the fields that it rejects. Without them, the next round is the same.
                if lost.is_empty() {
                    return Err(place_error(PlaceError::Rejected(issues)));
                }

                for (index, reason) in lost {
                    anchors.remove(&index);
                    found.insert(index, Err(reason));
                }
            }
            Err(error) => return Err(place_error(error)),
        }
    }

    Ok((found, None))
}

/// Returns the rejected fields with the first reason of each.
fn rejected(anchors: &BTreeMap<usize, FieldRequest>, issues: &[Issue]) -> BTreeMap<usize, String> {
    let mut lost = BTreeMap::new();
    for issue in issues {
        let index = anchors.keys().nth(issue.field_index as usize);
        if let Some(index) = index {
            lost.entry(*index).or_insert_with(|| issue.message.clone());
        }
    }
    lost
}

/// Returns a field where a tag of its name is. Its settings stay: they may be of the builder, and a tag may lack them.
fn at_tag(field: &Field, tag: Field) -> Field {
    Field {
        areas: tag.areas,
        anchor_match: tag.anchor_match,
        ..field.clone()
    }
}

/// Returns a field with its places on pages that are as before, or why it has none.
fn staying(field: &Field, before: &[PageFacts], after: &[PageFacts]) -> Result<Field, String> {
    let why_not = |area: &Area| {
        let index = (area.page as usize).checked_sub(1);
        let page = |pages: &[PageFacts]| {
            let page = pages.get(index?)?;
            Some((page.width, page.height))
        };
        let Some((width, height)) = page(after) else {
            return Some(format!("The new document has no page {}", area.page));
        };
        let is_same = |one: f64, other: f64| (one - other).abs() <= SAME_SIZE;
        let same = page(before).is_some_and(|(w, h)| is_same(w, width) && is_same(h, height));
        (!same).then(|| format!("Page {} of the new document has another size", area.page))
    };

    let areas: Vec<Area> = field
        .areas
        .iter()
        .filter(|area| why_not(area).is_none())
        .copied()
        .collect();
    let reason = field.areas.iter().find_map(why_not);
    match reason {
        None => Ok(field.clone()),
        // A field with a place for each of its options stays as a whole or not at all.
        Some(reason) if areas.is_empty() || !field.options.is_empty() => Err(reason),
        Some(_) => Ok(Field {
            areas,
            ..field.clone()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::field::FieldRules;

    fn page(width: f64) -> PageFacts {
        PageFacts {
            width,
            height: 792.0,
            rotation: 0,
            has_text: true,
        }
    }

    fn field(pages: &[u32]) -> Field {
        let area = |page: &u32| Area {
            page: *page,
            x: 0.1,
            y: 0.1,
            w: 0.2,
            h: 0.05,
        };
        Field {
            name: "Name".into(),
            field_type: "text".into(),
            role: "Buyer".into(),
            required: true,
            readonly: false,
            default_value: None,
            options: Vec::new(),
            areas: pages.iter().map(area).collect(),
            anchor_match: None,
            rules: FieldRules::default(),
        }
    }

    #[test]
    fn a_field_stays_on_pages_of_the_same_size() {
        let before = [page(612.0), page(612.0)];
        let stays = |pages: &[u32], after: &[PageFacts]| {
            staying(&field(pages), &before, after).map(|field| field.areas.len())
        };
        assert_eq!(stays(&[1, 2], &before), Ok(2));
        assert_eq!(stays(&[1, 2], &before[..1]), Ok(1));

        let no_page = Err("The new document has no page 2".to_owned());
        assert_eq!(stays(&[2], &before[..1]), no_page);
        let other_size = Err("Page 2 of the new document has another size".to_owned());
        assert_eq!(stays(&[2], &[page(612.0), page(595.0)]), other_size);
    }

    #[test]
    fn a_tag_gives_a_field_its_place_and_nothing_else() {
        let before = Field {
            default_value: Some("Ann".into()),
            ..field(&[1])
        };
        let tag = Field {
            role: "Seller".into(),
            required: false,
            ..field(&[2])
        };
        let after = at_tag(&before, tag.clone());
        let expected = Field {
            areas: tag.areas,
            ..before.clone()
        };
        assert_eq!(after, expected);

        let outcome = |after: &Field| FieldChange::placed(&before, after).outcome;
        assert_eq!(outcome(&after), FieldOutcome::Moved);
        assert_eq!(outcome(&before), FieldOutcome::Kept);
    }

    #[test]
    fn a_field_with_another_setting_is_changed() {
        let before = field(&[1]);
        for after in [
            Field {
                role: "Seller".into(),
                ..before.clone()
            },
            Field {
                required: false,
                ..before.clone()
            },
            Field {
                field_type: "date".into(),
                ..field(&[2])
            },
        ] {
            let outcome = FieldChange::placed(&before, &after).outcome;
            assert_eq!(outcome, FieldOutcome::Changed);
        }
    }

    #[test]
    fn a_field_is_compared_with_its_namesake_of_the_same_role() {
        let buyer = field(&[1]);
        let seller = Field {
            role: "Seller".into(),
            ..field(&[2])
        };
        let fields = [seller.clone(), buyer.clone()];
        assert_eq!(namesake(&buyer, fields.iter()), Some(1));
        assert_eq!(namesake(&buyer, fields[..1].iter()), Some(0));
        assert_eq!(namesake(&buyer, fields[..0].iter()), None);
    }

    #[test]
    fn a_choice_stays_with_all_places_of_its_options_or_is_lost() {
        let before = [page(612.0), page(612.0)];
        let choice = Field {
            options: vec!["Yes".into(), "No".into()],
            ..field(&[1, 2])
        };
        assert!(staying(&choice, &before, &before).is_ok());
        assert!(staying(&choice, &before, &before[..1]).is_err());
    }
}
