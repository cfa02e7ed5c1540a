//! Templates: create from a PDF, read, add fields, clone, archive.

use crate::bindings::exports::holdfast::signing::signing::{Field, ProviderError, Template};
use crate::bindings::holdfast::host::blobs::Blob;
use crate::bindings::holdfast::host::room;
use crate::bindings::holdfast::signing::types::Area;
use crate::component::{Result, id_of, number};

/// Creates a template, or replaces document and fields of the one with this external id.
pub(crate) fn create(
    name: String,
    external_id: String,
    document: &Blob,
    fields: Vec<Field>,
) -> Template {
    // The id of an existing template stays, because the host has stored it.
    let known = room::find_template_of(&external_id);
    let mut template = room::Template {
        id: known
            .as_ref()
            .map_or_else(|| id_of(&external_id), |known| known.id),
        name,
        external_id,
        document: room::keep_document(document),
        roles: Vec::new(),
        fields: Vec::new(),
        archived: known.is_some_and(|known| known.archived),
    };

    for field in fields {
        append(&mut template, field);
    }

    // Written once, with all fields: the room keeps a template as one record.
    room::put_template(&template);
    shown(template)
}

pub(crate) fn find(id: &str) -> Result<room::Template> {
    room::find_template(number(id)?).ok_or(ProviderError::NotFound)
}

/// Adds fields. Fields that an interrupted call has already added are skipped.
pub(crate) fn add_fields(id: &str, fields: Vec<Field>) -> Result<Template> {
    let mut template = find(id)?;
    for field in fields {
        if !template.fields.iter().any(|known| is_same(known, &field)) {
            append(&mut template, field);
        }
    }
    room::put_template(&template);
    Ok(shown(template))
}

/// Clones a template, or returns the existing one with this external id.
pub(crate) fn clone(id: &str, name: String, external_id: String) -> Result<Template> {
    // The host repeats a call after a lost response, and must get the same clone.
    if let Some(known) = room::find_template_of(&external_id).filter(|known| !known.archived) {
        return Ok(shown(known));
    }

    let clone = room::Template {
        id: id_of(&external_id),
        name,
        external_id,
        archived: false,
        ..find(id)?
    };
    room::put_template(&clone);

    Ok(shown(clone))
}

pub(crate) fn archive(id: &str) -> Result<()> {
    let template = find(id)?;
    if !template.archived {
        room::put_template(&room::Template {
            archived: true,
            ..template
        });
    }
    Ok(())
}

fn append(template: &mut room::Template, field: Field) {
    // The contract lists roles in the order of their first appearance in the fields.
    if !template.roles.contains(&field.role) {
        template.roles.push(field.role.clone());
    }

    // Signatures have no default: each signer signs in person.
    let default_value = field
        .default_value
        .filter(|_| !is_signature(&field.field_type));
    let area = |area: Area| room::Area {
        page: area.page,
        x: area.x,
        y: area.y,
        w: area.w,
        h: area.h,
    };

    template.fields.push(room::Field {
        name: field.name,
        field_type: field.field_type,
        role: field.role,
        required: field.required,
        readonly: field.readonly,
        default_value,
        options: field.options,
        areas: field.areas.into_iter().map(area).collect(),
        attributes: field.attributes,
    });
}

fn is_same(known: &room::Field, field: &Field) -> bool {
    // Numbers change in their last digits on the way through JSON and the database.
    let near = |left: f64, right: f64| (left - right).abs() < 1e-6;
    known.name == field.name
        && known.field_type == field.field_type
        && known.role == field.role
        && known.areas.len() == field.areas.len()
        && known.areas.iter().zip(&field.areas).all(|(known, area)| {
            known.page == area.page
                && near(known.x, area.x)
                && near(known.y, area.y)
                && near(known.w, area.w)
                && near(known.h, area.h)
        })
}

/// Returns whether a field is filled by signing, not by typing a value.
pub(crate) fn is_signature(field_type: &str) -> bool {
    matches!(field_type, "signature" | "initials")
}

/// Returns the public view of a template.
pub(crate) fn shown(template: room::Template) -> Template {
    // The records and the world have types of their own, because both are frozen independently of each other.
    let area = |area: room::Area| Area {
        page: area.page,
        x: area.x,
        y: area.y,
        w: area.w,
        h: area.h,
    };
    let field = |field: room::Field| Field {
        name: field.name,
        field_type: field.field_type,
        role: field.role,
        required: field.required,
        readonly: field.readonly,
        default_value: field.default_value,
        options: field.options,
        areas: field.areas.into_iter().map(area).collect(),
        attributes: field.attributes,
    };

    Template {
        template_id: template.id.to_string(),
        name: template.name,
        roles: template.roles,
        fields: template.fields.into_iter().map(field).collect(),
        documents: 1,
    }
}
