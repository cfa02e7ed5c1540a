//! Templates: create from a PDF, read, add fields, clone, archive.

use serde_json::{Value, json};

use crate::api::{Result, call, json};
use crate::bindings::exports::holdfast::signing::signing::{Field, ProviderError, Template};
use crate::bindings::holdfast::host::blobs::Blob;
use crate::bindings::holdfast::host::http::BodyPart;
use crate::bindings::holdfast::signing::types::Area;
use crate::wire::{self, FieldOption, StoredArea, TemplateField, TemplateRole};

/// An existing `external_id` gets its document replaced, so a repeat does not
/// make a second template. `shared_link` would let anybody start a submission.
pub(crate) fn create(
    name: &str,
    external_id: &str,
    document: &Blob,
    fields: &[Field],
) -> Result<Template> {
    let fields: Vec<Value> = fields.iter().map(requested).collect();
    let head = format!(
        r#"{{"name":{},"external_id":{},"shared_link":false,"remove_tags":false,"documents":[{{"name":{},"fields":{},"file":""#,
        Value::from(name),
        Value::from(external_id),
        Value::from(name),
        Value::from(fields),
    );
    let body = vec![
        BodyPart::Text(head),
        BodyPart::BlobBase64(document),
        BodyPart::Text(r#""}]}"#.into()),
    ];
    let template: wire::Template = call("POST", "/templates/pdf", body)?;
    Ok(ours(&template))
}

pub(crate) fn read(template_id: &str) -> Result<Template> {
    Ok(ours(&fetch(template_id)?))
}

/// DocuSeal has no call that adds fields: read, append, write the whole back. What a call that
/// broke off has appended already is left as it is.
pub(crate) fn add_fields(template_id: &str, fields: &[Field]) -> Result<Template> {
    let template = fetch(template_id)?;
    let attachment = template
        .schema
        .first()
        .map(|document| document.attachment_uuid.clone())
        .ok_or_else(|| ProviderError::Rejected("the template has no document".into()))?;
    let mut roles = template.submitters.clone();
    let mut all = template.fields.clone();
    for field in fields {
        let submitter_uuid = role_uuid(&mut roles, &field.role);
        if template
            .fields
            .iter()
            .any(|known| is_same(known, field, &submitter_uuid))
        {
            continue;
        }
        all.push(TemplateField {
            uuid: None,
            submitter_uuid,
            name: field.name.clone(),
            field_type: field.field_type.clone(),
            required: field.required,
            readonly: field.readonly,
            default_value: field.default_value.clone().map(Value::from),
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
                    attachment_uuid: Some(attachment.clone()),
                })
                .collect(),
        });
    }
    let body = json!({ "submitters": roles, "fields": all, "shared_link": false });
    let _: Value = call("PUT", &format!("/templates/{template_id}"), json(&body))?;
    read(template_id)
}

fn is_same(known: &TemplateField, field: &Field, submitter_uuid: &str) -> bool {
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

pub(crate) fn clone(template_id: &str, name: &str, external_id: &str) -> Result<Template> {
    let body = json!({ "name": name, "external_id": external_id });
    let template: wire::Template = call(
        "POST",
        &format!("/templates/{template_id}/clone"),
        json(&body),
    )?;
    // A clone inherits the link setting of its source.
    let unshared = json!({ "shared_link": false });
    let _: Value = call(
        "PUT",
        &format!("/templates/{}", template.id),
        json(&unshared),
    )?;
    Ok(ours(&template))
}

pub(crate) fn archive(template_id: &str) -> Result<()> {
    let _: Value = call("DELETE", &format!("/templates/{template_id}"), Vec::new())?;
    Ok(())
}

pub(crate) fn fetch(template_id: &str) -> Result<wire::Template> {
    call("GET", &format!("/templates/{template_id}"), Vec::new())
}

/// A field as it is requested: 1-based pages, `required` always said because
/// DocuSeal's default is the opposite of ours.
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
        if let Some(default) = &field.default_value {
            members.insert("default_value".into(), default.as_str().into());
        }
        if !field.options.is_empty() {
            members.insert("options".into(), field.options.clone().into());
        }
    }
    value
}

fn role_uuid(roles: &mut Vec<TemplateRole>, name: &str) -> String {
    if let Some(role) = roles
        .iter()
        .find(|role| role.name.eq_ignore_ascii_case(name))
    {
        return role.uuid.clone();
    }
    // Any unique text serves as a new role's key.
    let uuid = format!(
        "role-{}-{}",
        roles.len() + 1,
        name.to_lowercase().replace(' ', "-")
    );
    roles.push(TemplateRole {
        name: name.into(),
        uuid: uuid.clone(),
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

/// A JSON value as the text a person would have typed.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
