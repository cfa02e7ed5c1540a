//! Checks of the rules about signers' answers when a template gets its fields.

use bytes::Bytes;

use super::placement_issue;
use holdfast_base::config::EMBEDDED;
use holdfast_components::rules::document_values::FlowingField;
use holdfast_components::rules::document_values::Misfit;
use holdfast_components::rules::documents::{Area, FieldValue, FilledField};
use holdfast_components::rules::handwriting::WrittenField;
use holdfast_domain::dates::DAY_OF_SIGNING;
use holdfast_domain::entry;
use holdfast_domain::field::{ATTACHMENT, Field, FieldRules, FieldType};
use holdfast_domain::id::OrgId;
use holdfast_domain::warning::Warning;
use holdfast_platform::organizations;
use holdfast_platform::room::fitting::{FieldEntry, Misfitting};
use holdfast_platform::room::{ruled_field, unsent};
use holdfast_platform::{Core, ServiceError, ValidationIssue};

/// Maximum number of fields of a template that take files.
const ATTACHMENTS: usize = 10;

/// Refuses rules that could not be applied, and files in a document that cannot get an appendix. The first `known` fields were accepted before; indexes of issues count from
/// the first new one.
pub(crate) async fn check(
    core: &Core,
    (org, provider): (&OrgId, &str),
    pdf: &Bytes,
    fields: &[Field],
    known: usize,
) -> Result<(), ServiceError> {
    let mut issues = unsupported(provider, &fields[known..]);
    issues.extend(fields[known..].iter().enumerate().filter_map(wrong_default));
    // Most templates have no rules and need no call of the component.
    if fields.iter().any(|field| !field.rules.is_empty()) {
        let rules = core.components.answer_rules(org, core.store.priority());
        let found = rules
            .check(fields.iter().map(ruled_field).collect())
            .await?;
        // A rule may name an earlier field, so all fields were checked. The caller counts only the new
        // ones.
        let known = u32::try_from(known).unwrap_or(u32::MAX);
        issues.extend(found.into_iter().map(|mut issue| {
            issue.field_index = issue.field_index.saturating_sub(known);
            placement_issue(issue)
        }));
    }

    for index in only_conditional(fields) {
        let field = &fields[index];
        let index = index.saturating_sub(known).to_string();
        issues.push(ValidationIssue::new(
            "conditional_signature",
            &["fields", &index, "condition"],
            "a signature or initials field of the role without a condition",
            field.rules.condition.clone().unwrap_or_default(),
            format!(
                "{} could finish without signing: every signature has a condition",
                field.role
            ),
        ));
    }

    issues.extend(unfit_defaults(core, org, pdf, fields, known).await?);
    issues.extend(hidden_signatures(core, pdf, &fields[known..]).await?);
    let attached = fields.iter().filter(|field| field.field_type == ATTACHMENT);
    let count = attached.count();
    if count > ATTACHMENTS {
        issues.push(ValidationIssue::new(
            "too_big",
            &["fields"],
            format!("at most {ATTACHMENTS} fields for files"),
            count.to_string(),
            format!("A template has at most {ATTACHMENTS} fields for files"),
        ));
    }

    // Both become pages behind the document. A document that cannot get pages would fail after the
    // signing.
    if count > 0 || fields.iter().any(|field| field.rules.overflow.is_some()) {
        issues.extend(appendix(core, org, pdf).await?);
    }

    if issues.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

/// Returns an issue for the fields of a signed document on which a signature would not show: its annotations stay on
/// top of the pages.
async fn hidden_signatures(
    core: &Core,
    pdf: &Bytes,
    fields: &[Field],
) -> Result<Option<ValidationIssue>, ServiceError> {
    // Never compressed (ISO 32000-2, 12.8.1).
    if memchr::memmem::find(pdf, b"/ByteRange").is_none() {
        return Ok(None);
    }

    let area = |area: &holdfast_domain::field::Area| Area {
        page: area.page,
        x: area.x,
        y: area.y,
        w: area.w,
        h: area.h,
    };
    let sample = |field: &Field| FlowingField {
        field: WrittenField {
            field: FilledField {
                areas: field.areas.iter().map(area).collect(),
                value: FieldValue::Typed("Jordan Avery".to_owned()),
            },
            style: None,
        },
        continuation: None,
    };

    // Only the writer knows which annotation covers a place, so it writes a sample there.
    let signatures = fields.iter().filter(|field| field.is_signature());
    let tried = core
        .documents(None)
        .fill(pdf.clone(), signatures.map(sample).collect())
        .await?;
    Ok(tried.err().map(|error| {
        let message = "A signature cannot be written where a field is, or would not show there";
        ValidationIssue::new(
            "hidden_signature",
            &["fields"],
            "places that no annotation covers",
            ServiceError::from(error).to_string(),
            message,
        )
    }))
}

/// Returns the issue of a value that cannot be written.
pub fn unfit(path: &[&str], misfit: &Misfitting) -> ValidationIssue {
    let name = &misfit.field;
    match &misfit.why {
        Misfit::TooLong(room) => ValidationIssue::new(
            "too_big",
            path,
            format!("a text of about {room} characters, or `overflow` of the field"),
            "a longer text",
            format!("Field {name} has room for about {room} characters"),
        ),
        Misfit::NotDrawable(characters) => ValidationIssue::new(
            "invalid_value",
            path,
            "characters that can be printed",
            characters.as_str(),
            format!("No typeface has these characters of field {name}: {characters}"),
        ),
    }
}

/// Returns an issue for each default that cannot be written into its field. The first `known` fields were accepted
/// before.
async fn unfit_defaults(
    core: &Core,
    org: &OrgId,
    pdf: &Bytes,
    fields: &[Field],
    known: usize,
) -> Result<Vec<ValidationIssue>, ServiceError> {
    let given = fields.iter().enumerate().skip(known);
    let given = given.filter_map(|(index, field)| {
        let value = field.default_value.clone()?;
        // The day is known at the signing only, so there is no text yet that could be measured.
        (value != DAY_OF_SIGNING).then(|| (index - known, unsent(field.clone()), value))
    });
    let given: Vec<_> = given.collect();
    if given.is_empty() {
        return Ok(Vec::new());
    }

    let pages = core.placement(Some(org)).inspect(pdf.clone()).await??.pages;
    let entries: Vec<_> = given
        .iter()
        .map(|(_, field, value)| FieldEntry { field, value })
        .collect();
    let dates = organizations::read(core, org).await?.settings.dates.format;
    let misfits = core
        .room()
        .misfits(org, &pages, &entries, (None, dates))
        .await?;
    let issues = misfits.into_iter().filter_map(|misfit| {
        let mut named = given.iter();
        let (index, ..) = named.find(|(_, field, _)| field.name == misfit.field)?;
        Some(unfit(
            &["fields", &index.to_string(), "default_value"],
            &misfit,
        ))
    });

    Ok(issues.collect())
}

/// Returns an issue for a default that the field's type does not take.
fn wrong_default((index, field): (usize, &Field)) -> Option<ValidationIssue> {
    let value = field.default_value.as_deref()?;
    let is_date = field.field_type == FieldType::Date.as_str();
    if is_date && value == DAY_OF_SIGNING
        || entry::stored(&field.field_type, &field.options, value).is_some()
    {
        return None;
    }

    let mut expected = entry::expected(&field.field_type).to_owned();
    if is_date {
        expected += &format!(", or {DAY_OF_SIGNING} for the day of signing");
    }

    let message = format!("Field {} takes {expected}", field.name);
    Some(ValidationIssue::new(
        "invalid_value",
        &["fields", &index.to_string(), "default_value"],
        expected,
        value,
        message,
    ))
}

/// Returns an issue for each field that a signing provider cannot present: only the built-in signing
/// room applies rules and takes files.
pub fn unsupported(provider: &str, fields: &[Field]) -> Vec<ValidationIssue> {
    let needs_room = |field: &Field| !field.rules.is_empty() || field.field_type == ATTACHMENT;
    let all = fields.iter().enumerate();
    let refused = all.filter(|(_, field)| provider != EMBEDDED && needs_room(field));
    refused
        .map(|(index, field)| {
            ValidationIssue::new(
                "unsupported_by_provider",
                &["fields", &index.to_string()],
                "what the signing provider can do",
                field.field_type.as_str(),
                format!(
                    "Signing provider {provider} has no rules about answers and no files of signers: {}",
                    field.name
                ),
            )
        })
        .collect()
}

/// Returns the signature fields of roles that have only conditional signatures: their signer could
/// finish without signing.
fn only_conditional(fields: &[Field]) -> Vec<usize> {
    let always = |role: &str| {
        let mut own = fields.iter().filter(|field| field.role == role);
        own.any(|field| field.is_signature() && field.rules.condition.is_none())
    };
    let all = fields.iter().enumerate();
    let wrong = all.filter(|(_, field)| field.is_signature() && !always(&field.role));
    wrong.map(|(index, _)| index).collect()
}

/// Returns an issue for each choice without options.
pub(crate) fn options(fields: &[Field]) -> Vec<ValidationIssue> {
    // A choice without options could never be filled in.
    let is_choice = |field: &Field| matches!(field.field_type.as_str(), "select" | "radio");
    let is_blank = |option: &String| option.trim().is_empty();
    let all = fields.iter().enumerate();
    let wrong = all.filter(|(_, field)| {
        is_choice(field) && (field.options.is_empty() || field.options.iter().any(is_blank))
    });

    wrong
        .map(|(index, field)| {
            ValidationIssue::new(
                "too_small",
                &["fields", &index.to_string(), "options"],
                "at least one option, none of them empty",
                field.options.len().to_string(),
                format!("{} is a choice and has no options", field.name),
            )
        })
        .collect()
}

/// Pages can be added only by rewriting a document, which destroys the signatures that it has.
async fn appendix(
    core: &Core,
    org: &OrgId,
    pdf: &Bytes,
) -> Result<Option<ValidationIssue>, ServiceError> {
    let facts = core.placement(Some(org)).inspect(pdf.clone()).await??;
    let refused = |received: &str, message: &str| {
        let expected = "a document that can get an appendix";
        ValidationIssue::new(
            "appendix_impossible",
            &["fields"],
            expected,
            received,
            message,
        )
    };

    if facts.signatures > 0 {
        let message = "Files of signers and long texts become pages of the document, and a document with \
                       digital signatures cannot get pages: it would lose its signatures";
        return Ok(Some(refused("a signed document", message)));
    }

    // Merging a single document shows whether its pages can be written anew.
    let merged = core.documents(None).merge(vec![pdf.clone()]).await?;
    Ok(merged.err().map(|error| {
        let message = "Files of signers and long texts become pages of the document, and this document \
                       cannot get pages";
        refused(&ServiceError::from(error).to_string(), message)
    }))
}

/// Removes the rules that cannot be applied from fields of tags, with a warning for each: other
/// products give the same attributes other meanings, and their documents are not refused.
pub(crate) async fn drop_unusable(
    core: &Core,
    (org, provider): (&OrgId, &str),
    fields: &mut [Field],
) -> Result<Vec<Warning>, ServiceError> {
    let rules = core.components.answer_rules(org, core.store.priority());
    let mut warnings = Vec::new();
    for issue in unsupported(provider, fields) {
        warnings.push(without_effect(&issue.message));
    }

    // Such a provider presents no rule at all, so all of them go.
    if !warnings.is_empty() {
        for field in fields.iter_mut() {
            field.rules = FieldRules::default();
        }
    }

    // One rule can hide a problem of another one, so the check repeats until it finds nothing.
    while fields.iter().any(|field| !field.rules.is_empty()) {
        let found = rules
            .check(fields.iter().map(ruled_field).collect())
            .await?;
        let before = warnings.len();

        for issue in found {
            let index = usize::try_from(issue.field_index).unwrap_or(usize::MAX);
            let (Some(field), [name]) = (fields.get_mut(index), issue.path.as_slice()) else {
                continue;
            };

            if field.rules.remove(name) {
                let tag = format!("In the tag of {}: {name} has no effect", field.name);
                warnings.push(without_effect(&format!("{tag}: {}", issue.message)));
            }
        }

        // An issue that names no rule cannot be removed. Without this end it would return for ever.
        if warnings.len() == before {
            break;
        }
    }

    for index in only_conditional(fields) {
        let field = &mut fields[index];
        field.rules.condition = None;
        let tag = format!("In the tag of {}: condition has no effect", field.name);
        warnings.push(without_effect(&format!(
            "{tag}: it is no choice whether to sign"
        )));
    }

    Ok(warnings)
}

fn without_effect(message: &str) -> Warning {
    Warning::new("tag_attribute_without_effect", &["file"], message)
}
