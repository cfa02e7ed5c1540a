//! Templates: create from a PDF, read, add fields, clone, archive.

use serde_json::{Value, json};

use crate::api::{Result, call, json};
use crate::bindings::exports::holdfast::signing::signing::{Field, ProviderError, Template};
use crate::bindings::holdfast::host::blobs::Blob;
use crate::bindings::holdfast::host::http::BodyPart;
use crate::bindings::holdfast::signing::types::Area;
use crate::values::{is_signature, percent_encoded, text, typed, uuid_of};
use crate::wire::{self, FieldOption, StoredArea, TemplateField, TemplateRole};

/// Creates a template. DocuSeal replaces the document of an existing `external_id`, so a retry does
/// not make a second template. A `shared_link` would let anyone start a submission.
pub(crate) fn create(
    name: &str,
    external_id: &str,
    document: &Blob,
    fields: &[Field],
) -> Result<Template> {
    let requested: Vec<Value> = fields.iter().map(requested).collect();
    let head = format!(
        r#"{{"name":{},"external_id":{},"shared_link":false,"remove_tags":false,"documents":[{{"name":{},"fields":{},"file":""#,
        Value::from(name),
        Value::from(external_id),
        Value::from(name),
        Value::from(requested),
    );
    // The document goes from the host to DocuSeal in base64 and never enters this memory.
    let body = vec![
        BodyPart::Text(head),
        BodyPart::BlobBase64(document),
        BodyPart::Text(r#""}]}"#.into()),
    ];
    let created: wire::Template = call("POST", "/templates/pdf", body)?;

    // Read back, because only reading reliably returns 0-based pages.
    let template = private(fetch(&created.id.to_string())?)?;
    Ok(ours(&with_defaults(template, fields)?))
}

pub(crate) fn read(template_id: &str) -> Result<Template> {
    Ok(ours(&fetch(template_id)?))
}

/// Adds fields. DocuSeal has no call for that: read the template, append, write it back. Fields
/// that an interrupted call has already added are skipped.
pub(crate) fn add_fields(template_id: &str, fields: &[Field]) -> Result<Template> {
    let template = fetch(template_id)?;
    let attachment = template
        .schema
        .first()
        .map(|document| document.attachment_uuid.clone())
        .ok_or_else(|| ProviderError::Rejected("the template has no document".into()))?;
    // Everything is written back as it was read, with members unknown to this plugin, because the call
    // replaces all of it.
    let mut roles = template.submitters.clone();

    let mut all = template.fields.clone();
    for field in fields {
        let submitter_uuid = role_uuid(&template, &mut roles, &field.role);
        if template
            .fields
            .iter()
            .any(|known| is_same(known, field, &submitter_uuid))
        {
            continue;
        }

        // DocuSeal stores values under this key, so no two fields may share one.
        let number = all.len().to_string();
        let parts = [template_id, &submitter_uuid, &field.name, &number];
        all.push(TemplateField {
            uuid: Some(uuid_of(&parts)),
            ..stored(field, submitter_uuid, &attachment)
        });
    }

    // `shared_link` is repeated, because the template may have been shared in DocuSeal's own pages.
    let body = json!({ "submitters": roles, "fields": all, "shared_link": false });
    let _: Value = call("PUT", &format!("/templates/{template_id}"), json(&body))?;
    read(template_id)
}

/// Clones a template. DocuSeal makes a new clone for every call, so an existing one is looked for
/// first.
pub(crate) fn clone(template_id: &str, name: &str, external_id: &str) -> Result<Template> {
    if let Some(existing) = find(external_id)? {
        return Ok(ours(&private(fetch(&existing)?)?));
    }

    let body = json!({ "name": name, "external_id": external_id });
    let clone: wire::Template = call(
        "POST",
        &format!("/templates/{template_id}/clone"),
        json(&body),
    )?;

    Ok(ours(&private(fetch(&clone.id.to_string())?)?))
}

pub(crate) fn archive(template_id: &str) -> Result<()> {
    let _: Value = call("DELETE", &format!("/templates/{template_id}"), Vec::new())?;
    Ok(())
}

pub(crate) fn fetch(template_id: &str) -> Result<wire::Template> {
    call("GET", &format!("/templates/{template_id}"), Vec::new())
}

fn find(external_id: &str) -> Result<Option<String>> {
    let query = percent_encoded(external_id);
    let page: wire::WirePage<wire::Template> = call(
        "GET",
        &format!("/templates?external_id={query}&limit=1"),
        Vec::new(),
    )?;
    // An archived template was given up, and nothing can be sent from it.
    let found = page.data.first().filter(|template| {
        template.external_id.as_deref() == Some(external_id) && template.archived_at.is_none()
    });

    Ok(found.map(|template| template.id.to_string()))
}

/// Makes sure that a template is not shared. Anyone with a shared link can start a submission, and
/// a clone inherits the setting, so the plugin switches it off and checks the result.
fn private(template: wire::Template) -> Result<wire::Template> {
    if template.shared_link != Some(true) {
        return Ok(template);
    }

    let id = template.id.to_string();
    let body = json!({ "shared_link": false });
    let _: Value = call("PUT", &format!("/templates/{id}"), json(&body))?;
    let template = fetch(&id)?;
    if template.shared_link == Some(true) {
        // A template that stays shared must not be usable at all.
        archive(&id)?;
        return Err(ProviderError::Rejected(
            "the template cannot be kept from being shared".into(),
        ));
    }

    Ok(template)
}

/// Restores `readonly` and `default_value`, which DocuSeal silently drops when it creates a
/// template but keeps when it replaces the fields.
fn with_defaults(template: wire::Template, fields: &[Field]) -> Result<wire::Template> {
    let mut all = template.fields.clone();
    // Written back only if something was lost: each write is a chance to lose a change made at DocuSeal
    // meanwhile.
    let mut dropped = false;
    for known in &mut all {
        let same = |field: &&Field| is_same(known, field, &known.submitter_uuid);
        let Some(field) = fields.iter().find(same) else {
            continue;
        };

        let wanted = default_of(field);
        // Compared as text, because DocuSeal may return a number for a text.
        let same_default = known.default_value.as_ref().map(text) == wanted.as_ref().map(text);
        if known.readonly != field.readonly || !same_default {
            dropped = true;
            known.readonly = field.readonly;
            known.default_value = wanted;
        }
    }

    if !dropped {
        return Ok(template);
    }

    let id = template.id.to_string();
    let body = json!({ "fields": all });
    let _: Value = call("PUT", &format!("/templates/{id}"), json(&body))?;

    fetch(&id)
}

/// Returns the default of a field. Signatures have none, because each signer signs in person.
fn default_of(field: &Field) -> Option<Value> {
    let default = field
        .default_value
        .as_ref()
        .filter(|_| !is_signature(&field.field_type))?;
    Some(typed(&field.field_type, default))
}

fn is_same(known: &TemplateField, field: &Field, submitter_uuid: &str) -> bool {
    // Numbers change in their last digits on the way through JSON and a database.
    let near = |left: f64, right: f64| (left - right).abs() < 1e-6;
    known.name == field.name
        && known.field_type == field.field_type
        && known.submitter_uuid == submitter_uuid
        && known.areas.len() == field.areas.len()
        && known.areas.iter().zip(&field.areas).all(|(known, area)| {
            known.page == area.page.saturating_sub(1)
                && near(known.x, area.x)
                && near(known.y, area.y)
                && near(known.w, area.w)
                && near(known.h, area.h)
        })
}

/// Builds a field for the request, with 1-based pages. `required` is always explicit, because the
/// default of DocuSeal is the opposite of ours.
fn requested(field: &Field) -> Value {
    let mut value = json!({
        "name": field.name,
        "type": field.field_type,
        "role": field.role,
        "required": field.required,
        "areas": field.areas.iter().map(|area| json!({
            "x": area.x, "y": area.y, "w": area.w, "h": area.h, "page": area.page,
        })).collect::<Vec<_>>(),
    });

    if let Value::Object(members) = &mut value {
        if field.readonly {
            members.insert("readonly".into(), true.into());
        }

        if let Some(default) = default_of(field) {
            members.insert("default_value".into(), default);
        }

        if !field.options.is_empty() {
            members.insert("options".into(), field.options.clone().into());
        }
    }

    value
}

/// Builds a field for writing back, with 0-based pages.
fn stored(field: &Field, submitter_uuid: String, attachment: &str) -> TemplateField {
    TemplateField {
        uuid: None,
        submitter_uuid,
        name: field.name.clone(),
        field_type: field.field_type.clone(),
        required: field.required,
        readonly: field.readonly,
        default_value: default_of(field),
        options: field
            .options
            .iter()
            .cloned()
            .map(FieldOption::Text)
            .collect(),
        areas: field
            .areas
            .iter()
            .map(|area| StoredArea {
                x: area.x,
                y: area.y,
                w: area.w,
                h: area.h,
                page: area.page.saturating_sub(1),
                attachment_uuid: Some(attachment.into()),
                further: serde_json::Map::new(),
            })
            .collect(),
        further: serde_json::Map::new(),
    }
}

fn role_uuid(template: &wire::Template, roles: &mut Vec<TemplateRole>, name: &str) -> String {
    if let Some(role) = roles
        .iter()
        .find(|role| role.name.eq_ignore_ascii_case(name))
    {
        return role.uuid.clone();
    }

    // Derived from its name, so an interrupted call that is repeated makes the same role.
    let uuid = uuid_of(&[&template.id.to_string(), name]);
    roles.push(TemplateRole {
        name: name.into(),
        uuid: uuid.clone(),
        further: serde_json::Map::new(),
    });

    uuid
}

fn ours(template: &wire::Template) -> Template {
    let role_name = |uuid: &str| {
        template
            .submitters
            .iter()
            .find(|role| role.uuid == uuid)
            .map(|role| role.name.clone())
            .unwrap_or_default()
    };

    Template {
        template_id: template.id.to_string(),
        name: template.name.clone(),
        roles: template
            .submitters
            .iter()
            .map(|role| role.name.clone())
            .collect(),
        fields: template
            .fields
            .iter()
            .map(|field| Field {
                name: field.name.clone(),
                field_type: field.field_type.clone(),
                role: role_name(&field.submitter_uuid),
                required: field.required,
                readonly: field.readonly,
                default_value: field.default_value.as_ref().map(text),
                options: field
                    .options
                    .iter()
                    .map(|option| option.text().to_owned())
                    .collect(),
                areas: field
                    .areas
                    .iter()
                    .map(|area| Area {
                        // DocuSeal counts pages from 0 here, and the world from 1.
                        page: area.page + 1,
                        x: area.x,
                        y: area.y,
                        w: area.w,
                        h: area.h,
                    })
                    .collect(),
                attributes: Vec::new(),
            })
            .collect(),
        documents: template.schema.len() as u32,
    }
}
