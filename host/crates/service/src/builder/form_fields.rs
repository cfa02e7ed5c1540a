//! Fields of a document's own form (AcroForm), as fields of the template.

use bytes::Bytes;

use super::{FIELDS, NAME_CHARACTERS, fits};
use crate::templates::is_reserved;
use holdfast_base::config::EMBEDDED;
use holdfast_components::rules::form_fields::{FormField, FormFieldKind};
use holdfast_domain::field::{Area, Field, FieldRules, is_group};
use holdfast_domain::template::Template;
use holdfast_platform::{Core, ServiceError};

/// Maximum length of a text, in characters, as `holdfast:placement/field-rules` has it.
const LONGEST_TEXT: u32 = 4_000;

/// Role of the fields of a template that has no role yet.
const FIRST_ROLE: &str = "Signer";

/// Adds the fields of the document's form that the template does not have yet. They belong to the
/// template's first role.
pub(super) async fn add(
    core: &Core,
    template: &Template,
    pdf: Bytes,
    pages: usize,
    fields: &mut Vec<Field>,
) -> Result<(), ServiceError> {
    // The built-in component: those of organizations need not know forms.
    let (org, priority) = (&template.org, core.store.priority());
    let in_room = template.provider_instance == EMBEDDED;
    let documents = core.components.embedded_documents(org, priority);
    let found = match documents.form_fields(pdf).await? {
        Ok(found) => found,
        // The form is a convenience: a document without a readable one keeps the fields that it has.
        Err(error) => {
            tracing::info!(%org, ?error, "form of a document could not be read");
            return Ok(());
        }
    };

    let role = fields.first().map(|field| field.role.clone());
    let role = role.unwrap_or_else(|| FIRST_ROLE.to_owned());
    for field in found
        .into_iter()
        .filter_map(|field| imported(field, &role, pages, in_room))
    {
        // A field that the author placed counts more than one of the form with the same name.
        let is_new = !fields.iter().any(|known| known.name == field.name);
        if is_new && fields.len() < FIELDS {
            fields.push(field);
        }
    }

    Ok(())
}

/// Returns the template's field for a field of a form. A field with a value, or one that the reader
/// of the form cannot change, is part of the document's text.
///
/// Only the built-in signing room (`in_room`) marks one of several places.
fn imported(field: FormField, role: &str, pages: usize, in_room: bool) -> Option<Field> {
    if field.readonly || !field.value.trim().is_empty() {
        return None;
    }

    let name = [&field.label, &field.name]
        .into_iter()
        .map(|name| name.split_whitespace().collect::<Vec<_>>().join(" "))
        .find(|name| !name.is_empty() && !is_reserved(name))?;
    let name: String = name.chars().take(NAME_CHARACTERS).collect();
    // PDF has one type for signatures, and initials differ from them by name only.
    let field_type = match field.kind {
        FormFieldKind::Signature if name.to_lowercase().contains("initial") => "initials",
        FormFieldKind::Signature => "signature",
        FormFieldKind::Date => "date",
        FormFieldKind::Number => "number",
        FormFieldKind::Checkbox => "checkbox",
        FormFieldKind::Select if !field.options.is_empty() => "select",
        FormFieldKind::Radio if !field.options.is_empty() => "radio",
        FormFieldKind::Text | FormFieldKind::Select | FormFieldKind::Radio => "text",
    };

    let mut areas: Vec<Area> = field
        .areas
        .into_iter()
        .map(|area| Area {
            page: area.page,
            x: area.x,
            y: area.y,
            w: area.w,
            h: area.h,
        })
        .filter(|area| fits(area, pages))
        .collect();

    if field_type == "radio" && !(in_room && is_group(field_type, &field.options, &areas)) {
        // The chosen option is written as text, once.
        areas.truncate(1);
    }

    (!areas.is_empty()).then(|| Field {
        name,
        field_type: field_type.into(),
        role: role.to_owned(),
        required: field.required || field.kind == FormFieldKind::Signature,
        readonly: false,
        default_value: None,
        options: match field_type {
            "select" | "radio" => field.options,
            _ => Vec::new(),
        },
        areas,
        anchor_match: None,
        rules: FieldRules {
            max_length: field
                .max_length
                .filter(|length| field_type == "text" && *length > 0)
                .map(|length| length.min(LONGEST_TEXT).to_string()),
            ..FieldRules::default()
        },
    })
}
