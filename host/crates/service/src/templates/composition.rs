//! Composes documents of templates: a copy of one, or several merged in the given order. Fields
//! move with their pages, and roles of the same name become one (specification, "KBA and template
//! composition").

use std::sync::Arc;

use bytes::Bytes;

use crate::templates::pages::PageCache;
use crate::templates::{RequestedField, answers, from_tags, pages, place};
use holdfast_adapters::files::StorageArea as FileArea;
use holdfast_base::fair_queue::WorkOwner;
use holdfast_domain::envelope::{FileType, StoredFile};
use holdfast_domain::field::{Area, Field};
use holdfast_domain::id::{OrgId, TemplateId};
use holdfast_domain::reminders::ReminderPlan;
use holdfast_domain::template::{MadeFor, Origin, Template, TemplateSharing};
use holdfast_platform::documents::{UPLOAD_LIMIT, admit, picture};
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue};
use holdfast_store::decisions::{self, PlacementDecision};
use holdfast_store::{StoreError, templates};

/// Maximum number of a document's fields.
const FIELDS: usize = 1_000;

/// Attributes of a composed template, and its owner.
pub struct NewComposition {
    pub name: String,
    pub kba_required: bool,
    pub may_decline: bool,
    pub reminders: Option<ReminderPlan>,
    pub origin: Origin,
    pub made_for: Option<MadeFor>,
    /// Users who see the template; all without any.
    pub shared_with: TemplateSharing,
}

/// Composes a template of these sources, in this order. The provider gets it when it is first sent,
/// or by [`crate::templates::synced`]. Of concurrent calls for the same owner and source,
/// all return the template that was stored first.
pub async fn of_templates(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    sources: &[Template],
    composition: NewComposition,
) -> Result<Template, ServiceError> {
    let mut documents = Vec::new();
    for source in sources {
        // Its document has `[[name]]` where an envelope has a text of its own.
        if source.word_source.is_some() {
            let name = &source.name;
            return Err(ServiceError::Semantic(format!(
                "Template {name} has variables: make each envelope of it alone, with their values"
            )));
        }

        let Some(document) = &source.document else {
            let name = &source.name;
            return Err(ServiceError::Conflict(format!(
                "Template {name} has no document"
            )));
        };

        documents.push(document);
    }

    // The result is a document like an upload, so the same limit holds for it.
    let size: i64 = documents.iter().map(|document| document.size).sum();
    if size.unsigned_abs() > UPLOAD_LIMIT {
        return Err(ServiceError::Semantic(format!(
            "Together the templates are larger than {UPLOAD_LIMIT} bytes"
        )));
    }

    let fields = match sources {
        // A single source keeps its fields as they are. Only merging shifts pages and joins roles.
        [only] => only.fields.clone(),
        several => {
            let mut parts = Vec::new();
            for (source, document) in several.iter().zip(&documents) {
                let pages = pages::facts(core, pages, document).await?.len();
                parts.push((
                    source.fields.as_slice(),
                    u32::try_from(pages).unwrap_or(u32::MAX),
                ));
            }

            merged_fields(&parts)
        }
    };

    if fields.len() > FIELDS {
        return Err(ServiceError::Semantic(format!(
            "Together the templates have more than {FIELDS} fields"
        )));
    }

    let _room = admit(core, &WorkOwner::new(&caller.org, ""), size.unsigned_abs()).await?;
    let mut pdfs = Vec::new();
    for document in documents {
        pdfs.push(core.files.get(document).await?);
    }

    let pdf = if pdfs.len() == 1 {
        pdfs.remove(0)
    } else {
        let documents = core.documents(Some(&caller.org));
        documents.merge(pdfs).await??.into()
    };

    keep(core, caller, composition, Some((pdf, Vec::new())), fields).await
}

/// Fields of a document that takes the place of another one.
#[derive(Default)]
pub struct ReplacedFields<'a> {
    /// Fields that the caller places. The document's tags then stay as they are.
    pub requested: Option<&'a [RequestedField]>,
    /// Fields of the document before, which keep their places on a document without tags.
    pub before: &'a [Field],
}

/// Creates a template from a file. Without requested fields, a PDF's `{{…}}` tags become its fields, and without tags
/// it gets those of the document before, if there is one.
pub async fn of_upload(
    core: &Core,
    caller: &Caller,
    upload: &StoredFile,
    fields: ReplacedFields<'_>,
    composition: NewComposition,
) -> Result<Template, ServiceError> {
    let _room = admit(
        core,
        &WorkOwner::new(&caller.org, ""),
        upload.size.unsigned_abs(),
    )
    .await?;
    let bytes = core.files.get(upload).await?;

    // The type was detected at the upload, so an unknown one is a fault of this program.
    let kind = FileType::parse(&upload.content_type);
    let kind = kind.ok_or_else(|| ServiceError::Internal("an upload of no known type".into()))?;
    let placement = core.placement(Some(&caller.org));
    let (mut own, pdf, placed) = match (picture(kind, &bytes), fields.requested) {
        (Some(picture), requested) => {
            let documents = core.documents(Some(&caller.org));
            let pdf: Bytes = documents.picture_to_pdf(picture).await??.into();
            match requested {
                Some(requested) => {
                    let (own, placed) = place(&placement, &pdf, requested).await?;
                    (own, pdf, Some(placed))
                }
                None => (Vec::new(), pdf, None),
            }
        }
        (None, Some(requested)) => {
            let (own, placed) = place(&placement, &bytes, requested).await?;
            (own, bytes, Some(placed))
        }
        (None, None) => {
            let instance = core.signing_instance(&caller.org, composition.kba_required);
            let at = (&caller.org, instance.as_str());
            let tagged = from_tags(core, &placement, at, bytes).await?;
            (tagged.fields, tagged.pdf, Some(tagged.placed))
        }
    };

    if own.is_empty() && fields.requested.is_none() && !fields.before.is_empty() {
        let pages = placement.inspect(pdf.clone()).await??.pages.len();
        check_pages(fields.before, pages)?;
        own = fields.before.to_vec();
    }

    let placed = placed.into_iter().collect();
    keep(core, caller, composition, Some((pdf, placed)), own).await
}

/// Refuses fields on pages that a document does not have.
fn check_pages(fields: &[Field], pages: usize) -> Result<(), ServiceError> {
    let is_missing = |area: &Area| usize::try_from(area.page).is_ok_and(|page| page > pages);
    let missing = |field: &&Field| field.areas.iter().any(is_missing);
    let issue = |field: &Field| {
        let message = format!(
            "{} is on a page that the document does not have: place the fields anew",
            field.name
        );
        let expected = format!("a document with the pages of the fields, not {pages}");
        ValidationIssue::new("page_out_of_range", &["file"], expected, "", message)
    };

    let issues: Vec<ValidationIssue> = fields.iter().filter(missing).map(issue).collect();
    if issues.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

/// Creates a template without a document.
pub async fn empty(
    core: &Core,
    caller: &Caller,
    composition: NewComposition,
) -> Result<Template, ServiceError> {
    keep(core, caller, composition, None, Vec::new()).await
}

/// Returns the template that was made for this owner from this source, if any.
pub async fn made_before(
    core: &Core,
    org: &OrgId,
    made_for: &MadeFor,
) -> Result<Option<Template>, ServiceError> {
    let mut connection = core.store.read().await?;
    Ok(templates::made_for(&mut connection, org, made_for).await?)
}

/// Stores a composed template, with the decisions that placed its fields.
pub(super) async fn keep(
    core: &Core,
    caller: &Caller,
    composition: NewComposition,
    document: Option<(Bytes, Vec<PlacementDecision>)>,
    fields: Vec<Field>,
) -> Result<Template, ServiceError> {
    let instance = core.signing_instance(&caller.org, composition.kba_required);
    // Merging renames fields, so the rules are checked as a whole.
    if let Some((pdf, _)) = &document {
        answers::check(core, (&caller.org, &instance), pdf, &fields, 0).await?;
    }

    let now = core.clock.now();
    let mut template = Template {
        kba_required: composition.kba_required,
        may_decline: composition.may_decline,
        reminders: composition.reminders,
        origin: composition.origin,
        made_for: composition.made_for,
        shared_with: composition.shared_with,
        fields,
        ..Template::new(caller.org.clone(), composition.name, instance, now)
    };

    let mut placed = Vec::new();
    if let Some((pdf, decided)) = document {
        placed = decided;
        let (area, id) = (FileArea::Templates, template.id.as_str());
        let put = core
            .files
            .put(area, &caller.org, id, pdf, "application/pdf");
        template.document = Some(put.await?);
    }

    let mut tx = core.store.begin().await?;
    match templates::insert(&mut tx, &template).await {
        Ok(()) => {
            // The decision commits with the template: evidence names the component that placed the
            // fields.
            for placed in &placed {
                decisions::insert_placement(&mut tx, &template, placed, now).await?;
            }
            tx.commit().await?;
        }
        // Another request has stored the template of this source first. Return that one.
        Err(error) if error.is_unique_violation() => {
            // The failed insert has ended this transaction, and the look-up takes another connection.
            drop(tx);
            let made_for = template.made_for.as_ref();
            let made_for = made_for.ok_or(StoreError::Conflict)?;
            let first = made_before(core, &caller.org, made_for).await?;
            return first.ok_or(StoreError::Conflict.into());
        }
        Err(error) => return Err(error.into()),
    }

    Ok(template)
}

/// Returns templates that the caller sees, in this order, including deleted ones.
pub async fn found(
    core: &Core,
    caller: &Caller,
    ids: &[TemplateId],
) -> Result<Vec<Template>, ServiceError> {
    let mut connection = core.store.read().await?;
    let known = templates::by_ids(&mut connection, &caller.org, ids).await?;
    let find = |id: &TemplateId| {
        let found = known.iter().find(|template| template.id == *id);
        let found = found.filter(|template| caller.sees(template));
        found.cloned().ok_or(ServiceError::NotFound("Template"))
    };
    ids.iter().map(find).collect()
}

/// Merges the fields of documents, given with their page counts.
///
/// Roles that differ only in case are one role, as for providers. Fields with the same name and the
/// same settings stay one field in several places, with one value entered once. A field with the
/// same name and other settings gets a number appended.
fn merged_fields(parts: &[(&[Field], u32)]) -> Vec<Field> {
    let mut merged: Vec<Field> = Vec::new();
    let mut before = 0;
    for (fields, pages) in parts {
        // Compared with previous documents only: names within one document keep their meaning.
        let known = merged.clone();
        let made = |field: &Field, renamed: &[(&str, String)]| {
            let shifted = |area: &Area| Area {
                page: area.page.saturating_add(before),
                ..*area
            };
            let role = known
                .iter()
                .map(|other| &other.role)
                .find(|role| role.eq_ignore_ascii_case(&field.role))
                .unwrap_or(&field.role);
            let mut field = Field {
                role: role.clone(),
                areas: field.areas.iter().map(shifted).collect(),
                anchor_match: field.anchor_match.as_ref().map(shifted),
                ..field.clone()
            };
            field.rules.rename(renamed);

            field.name = own_name(&field, &known);
            field
        };

        // A field that gets another name changes the rules that name it, and with them perhaps the names
        // of further fields.
        let mut renamed: Vec<(&str, String)> = Vec::new();
        // Each pass but the last one renames another field, so their number bounds the passes.
        for _ in 0..=fields.len() {
            let all = fields.iter().map(|field| (field, made(field, &renamed)));
            let changed = all.filter(|(before, after)| before.name != after.name);
            let next: Vec<_> = changed
                .map(|(before, after)| (before.name.as_str(), after.name))
                .collect();
            if next == renamed {
                break;
            }

            renamed = next;
        }

        merged.extend(fields.iter().map(|field| made(field, &renamed)));
        before = before.saturating_add(*pages);
    }

    merged
}

/// Returns the field's name, or the first numbered name without a conflict.
fn own_name(field: &Field, known: &[Field]) -> String {
    let clashes = |name: &str| {
        let same_name = |other: &&Field| other.name == name;
        known
            .iter()
            .filter(same_name)
            .any(|other| !says_the_same(other, field))
    };

    let numbered = (2..).map(|number| format!("{} ({number})", field.name));
    std::iter::once(field.name.clone())
        .chain(numbered)
        .find(|name| !clashes(name))
        .unwrap_or_default()
}

fn says_the_same(left: &Field, right: &Field) -> bool {
    left.field_type == right.field_type
        && left.role == right.role
        && left.readonly == right.readonly
        && left.default_value == right.default_value
        && left.options == right.options
        && left.rules == right.rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::field::FieldRules;

    fn field(name: &str, role: &str, page: u32) -> Field {
        Field {
            name: name.into(),
            field_type: "text".into(),
            role: role.into(),
            required: false,
            readonly: false,
            default_value: None,
            options: Vec::new(),
            areas: vec![Area {
                page,
                x: 0.1,
                y: 0.1,
                w: 0.2,
                h: 0.05,
            }],
            anchor_match: None,
            rules: FieldRules::default(),
        }
    }

    #[test]
    fn composed_documents_renumber_pages_and_merge_roles() {
        let first = [field("Name", "Buyer", 3)];
        let second = [field("City", "BUYER", 1), field("Dealer", "Seller", 2)];
        let merged = merged_fields(&[(&first, 3), (&second, 2), (&first, 3)]);
        let places: Vec<(&str, &str, u32)> = merged
            .iter()
            .map(|field| {
                (
                    field.name.as_str(),
                    field.role.as_str(),
                    field.areas[0].page,
                )
            })
            .collect();
        assert_eq!(
            places,
            [
                ("Name", "Buyer", 3),
                ("City", "Buyer", 4),
                ("Dealer", "Seller", 5),
                ("Name", "Buyer", 8)
            ]
        );
    }

    #[test]
    fn rules_follow_the_fields_that_composition_renames() {
        let first = [field("Amount", "Buyer", 1)];
        let rules = FieldRules {
            condition: Some("Amount:100".into()),
            required_if: Some("!Amount".into()),
            formula: Some("[Amount] + [Other]".into()),
            ..FieldRules::default()
        };
        let second = [
            Field {
                default_value: Some("100".into()),
                ..field("Amount", "Buyer", 1)
            },
            Field {
                rules,
                ..field("Fee", "Buyer", 1)
            },
        ];

        let merged = merged_fields(&[(&first, 1), (&second, 1)]);
        let rules = &merged[2].rules;
        assert_eq!(rules.condition.as_deref(), Some("Amount (2):100"));
        assert_eq!(rules.required_if.as_deref(), Some("!Amount (2)"));
        assert_eq!(rules.formula.as_deref(), Some("[Amount (2)] + [Other]"));
    }

    #[test]
    fn equal_rules_about_fields_with_different_names_are_different() {
        let part = |amount: &str| {
            let rules = FieldRules {
                formula: Some("[Amount] * 0.1".into()),
                ..FieldRules::default()
            };
            let default_value = Some(amount.to_owned());
            [
                Field {
                    rules,
                    ..field("Fee", "Buyer", 1)
                },
                Field {
                    default_value,
                    ..field("Amount", "Buyer", 1)
                },
            ]
        };

        let (first, second) = (part("100"), part("200"));
        let merged = merged_fields(&[(&first, 1), (&second, 1)]);
        let names: Vec<&str> = merged.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["Fee", "Amount", "Fee (2)", "Amount (2)"]);

        let formula = merged[2].rules.formula.as_deref();
        assert_eq!(formula, Some("[Amount (2)] * 0.1"));
    }

    #[test]
    fn composed_fields_with_different_values_get_different_names() {
        let first = [field("Amount", "Buyer", 1)];
        let other = [Field {
            default_value: Some("100".into()),
            readonly: true,
            ..field("Amount", "Buyer", 1)
        }];
        let merged = merged_fields(&[(&first, 1), (&other, 1), (&other, 1), (&first, 1)]);
        let names: Vec<&str> = merged.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["Amount", "Amount (2)", "Amount (2)", "Amount"]);
    }
}
