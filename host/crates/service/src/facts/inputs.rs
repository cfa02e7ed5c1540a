//! Fields and metadata that facts are read from.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_base::config::EMBEDDED;
use holdfast_domain::dates::DAY_OF_SIGNING;
use holdfast_domain::entry;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::fact_map::{FactInputs, FactMapDocument, FilledField};
use holdfast_domain::facts::FactPlace;
use holdfast_domain::field::{ATTACHMENT, Area, Field, is_group, is_signature};
use holdfast_domain::template::Template;
use holdfast_platform::providers::provider;
use holdfast_platform::{Core, ServiceError};
use holdfast_store::{StoreError, room, templates};
use serde_json::Value;

/// Which values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadStage {
    /// Those that the sender filled in.
    Draft,
    /// Those that were signed.
    Signed,
}

/// Collects the fields and the metadata that a map names.
pub(super) async fn of(
    core: &Core,
    envelope: &Envelope,
    map: &FactMapDocument,
    stage: ReadStage,
) -> Result<FactInputs, ServiceError> {
    let wanted: BTreeSet<&str> = map
        .facts
        .iter()
        .flat_map(|fact| &fact.fields)
        .map(String::as_str)
        .collect();
    let mut fields = match (stage, envelope.submitted()) {
        _ if wanted.is_empty() => Vec::new(),
        (ReadStage::Draft, _) => drafted(core, envelope).await?,
        (ReadStage::Signed, Some((EMBEDDED, submission))) => {
            signed_in_room(core, envelope, submission).await?
        }
        (ReadStage::Signed, Some((instance, submission))) => {
            signed_at_provider(core, envelope, instance, submission).await?
        }
        (ReadStage::Signed, None) => Vec::new(),
    };

    fields.retain(|field| {
        let is_filled = !field.value.trim().is_empty() && field.value != DAY_OF_SIGNING;
        is_filled && wanted.contains(field.name.as_str())
    });

    let keys = map.facts.iter().filter_map(|fact| fact.declared.as_deref());
    let declared = keys.filter_map(|key| Some((key.to_owned(), declared(envelope, key)?)));
    Ok(FactInputs {
        fields,
        declared: declared.collect(),
    })
}

/// Returns a member of the originator's metadata as a text.
fn declared(envelope: &Envelope, key: &str) -> Option<String> {
    let own = envelope.own_metadata().and_then(|own| own.get(key));
    let own = own.map(text_of).filter(|text| !text.trim().is_empty());
    // Metadata may have members of the same names, which the originator then means.
    own.or_else(|| match key {
        "external_id" => envelope.external_id.clone(),
        "secured_party" => envelope
            .secured_party
            .as_ref()
            .map(|party| party.name.clone()),
        _ => None,
    })
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        // A list or an object is no value of a fact.
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

async fn template_of(core: &Core, envelope: &Envelope) -> Result<Option<Template>, StoreError> {
    let Some(id) = &envelope.template else {
        return Ok(None);
    };
    let mut connection = core.store.read().await?;
    templates::find(&mut connection, &envelope.org, id).await
}

/// Returns the fields with what the sender filled in, or their default values.
async fn drafted(core: &Core, envelope: &Envelope) -> Result<Vec<FilledField>, ServiceError> {
    let template = template_of(core, envelope).await?;
    let fields = template.map(|template| template.fields).unwrap_or_default();
    let prefilled = envelope.prefilled();

    let filled = fields.into_iter().filter_map(|field| {
        let given = prefilled.and_then(|values| values.get(&field.name));
        let given = given.map(text_of).filter(|text| !text.is_empty());
        let value = given.or_else(|| field.default_value.clone())?;
        let stored = entry::stored(&field.field_type, &field.options, &value);
        filled(&field, stored.unwrap_or(value))
    });
    Ok(filled.collect())
}

/// Returns the field with a value. `None` for signatures and files, which are no values.
fn filled(field: &Field, value: String) -> Option<FilledField> {
    if is_signature(&field.field_type) || field.field_type == ATTACHMENT {
        return None;
    }

    let index = if is_group(&field.field_type, &field.options, &field.areas) {
        field.options.iter().position(|option| *option == value)
    } else {
        None
    };
    Some(FilledField {
        name: field.name.clone(),
        role: field.role.clone(),
        value,
        place: field.areas.get(index.unwrap_or_default()).map(place),
    })
}

/// Returns the values that were signed in the signing room.
async fn signed_in_room(
    core: &Core,
    envelope: &Envelope,
    submission: &str,
) -> Result<Vec<FilledField>, ServiceError> {
    let Ok(id) = submission.parse::<i64>() else {
        return Ok(Vec::new());
    };
    let mut connection = core.store.read().await?;
    let found = room::submission(&mut connection, &envelope.org, id).await?;
    let Some(found) = found else {
        return Ok(Vec::new());
    };

    let submitters = room::submitters(&mut connection, &envelope.org, id).await?;
    let mut filled = Vec::new();
    for submitter in &submitters {
        let own = found.fields.iter().filter(|field| {
            let is_typed = !field.is_signature() && field.field_type != ATTACHMENT;
            is_typed && field.submitter_uuid == submitter.role
        });
        for field in own {
            let Some(value) = submitter.values.get(&field.name) else {
                continue;
            };
            filled.push(FilledField {
                name: field.name.clone(),
                role: submitter.role.clone(),
                value: value.clone(),
                place: field.places_of(value).first().map(place),
            });
        }
    }

    Ok(filled)
}

/// Returns the values that were signed at another provider. Their places are those of the template, if it did not
/// change since.
async fn signed_at_provider(
    core: &Core,
    envelope: &Envelope,
    instance: &str,
    submission: &str,
) -> Result<Vec<FilledField>, ServiceError> {
    let template = template_of(core, envelope).await?;
    let template = template.filter(|template| template.updated_at <= envelope.created_at);
    let fields = template.map(|template| template.fields).unwrap_or_default();
    let places: BTreeMap<(&str, &str), Option<FactPlace>> = fields
        .iter()
        .map(|field| {
            let place = field.areas.first().map(place);
            ((field.role.as_str(), field.name.as_str()), place)
        })
        .collect();

    let signing = provider(core, &envelope.org, instance)?;
    let seen = signing.read_submission(submission).await?;
    let mut filled = Vec::new();
    for submitter in &seen.submitters {
        let typed = submitter
            .values
            .iter()
            .filter(|value| !is_signature(&value.field_type) && value.field_type != ATTACHMENT);
        filled.extend(typed.map(|value| {
            let key = (submitter.role.as_str(), value.name.as_str());
            FilledField {
                name: value.name.clone(),
                role: submitter.role.clone(),
                value: value.value.clone(),
                place: places.get(&key).cloned().flatten(),
            }
        }));
    }

    Ok(filled)
}

fn place(area: &Area) -> FactPlace {
    FactPlace::new(area.page, [area.x, area.y, area.w, area.h])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use holdfast_domain::clock::Timestamp;
    use holdfast_domain::envelope::{EnvelopeKind, OWN_METADATA, SecuredParty};
    use holdfast_domain::field::FieldRules;
    use holdfast_domain::id::{CustomerId, OrgId};

    fn envelope() -> Envelope {
        let (org, customer) = (OrgId::new(), CustomerId::new());
        let (kind, at) = (EnvelopeKind::Esign, Timestamp::from_millis(0));
        Envelope::new(org, customer, "Loan".into(), kind, "key:key_1".into(), at)
    }

    #[test]
    fn metadata_is_declared_as_it_is_written() {
        let mut envelope = envelope();
        envelope.external_id = Some("deal-1".into());
        envelope.secured_party = Some(SecuredParty {
            name: "First Bank".into(),
            role: None,
            address: None,
            email: None,
            identifier: None,
        });
        let own = json!({ "apr": 7.9, "new": true, "vin": "A", "empty": " ", "list": [1] });
        envelope.metadata.insert(OWN_METADATA.into(), own);

        for (key, value) in [
            ("apr", Some("7.9")),
            ("new", Some("true")),
            ("vin", Some("A")),
            ("empty", None),
            ("list", None),
            ("unknown", None),
            ("external_id", Some("deal-1")),
            ("secured_party", Some("First Bank")),
        ] {
            assert_eq!(declared(&envelope, key).as_deref(), value, "{key}");
        }
    }

    #[test]
    fn a_field_stands_where_its_value_is_written() {
        let area = |page: u32| Area {
            page,
            x: 1.0 / 3.0,
            y: 0.5,
            w: 0.02,
            h: 0.02,
        };
        let field = |field_type: &str| Field {
            name: "Use".into(),
            field_type: field_type.into(),
            role: "Buyer".into(),
            required: true,
            readonly: false,
            default_value: None,
            options: vec!["Personal".into(), "Business".into()],
            areas: vec![area(1), area(2)],
            anchor_match: None,
            rules: FieldRules::default(),
        };

        let chosen = filled(&field("radio"), "Business".into()).unwrap();
        let place = chosen.place.unwrap();
        assert_eq!((place.page, place.x), (2, 0.333_333));
        let typed = filled(&field("text"), "Business".into()).unwrap();
        assert_eq!(typed.place.unwrap().page, 1);
        for field_type in ["signature", "initials", "attachment"] {
            assert!(filled(&field(field_type), "x".into()).is_none());
        }
    }
}
