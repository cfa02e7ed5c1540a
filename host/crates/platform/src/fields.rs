//! Fields in the words of rules and providers.

use holdfast_components::providers::signing as provider;
use holdfast_components::rules::placement;
use holdfast_domain::field::{Area, Field, FieldRules};

/// Returns an area in the words of the placement rules.
pub fn placement_area(area: &Area) -> placement::Area {
    placement::Area {
        page: area.page,
        x: area.x,
        y: area.y,
        w: area.w,
        h: area.h,
    }
}

/// Returns an area of the placement rules.
pub fn area(area: placement::Area) -> Area {
    Area {
        page: area.page,
        x: area.x,
        y: area.y,
        w: area.w,
        h: area.h,
    }
}

/// Returns a field that the placement rules have placed.
pub fn resolved(field: placement::ResolvedField) -> Field {
    Field {
        name: field.name,
        field_type: field.field_type,
        role: field.role,
        required: field.required,
        readonly: field.readonly,
        default_value: field.default_value,
        options: field.options,
        areas: field.areas.into_iter().map(area).collect(),
        anchor_match: field.anchor_match.map(area),
        rules: FieldRules::from_attributes(&field.attributes),
    }
}

/// Returns fields in the words of the signing providers.
pub fn provider_fields(fields: &[Field]) -> Vec<provider::Field> {
    fields
        .iter()
        .map(|field| provider::Field {
            name: field.name.clone(),
            field_type: field.field_type.clone(),
            role: field.role.clone(),
            required: field.required,
            readonly: field.readonly,
            default_value: field.default_value.clone(),
            options: field.options.clone(),
            areas: field
                .areas
                .iter()
                .map(|area| provider::Area {
                    page: area.page,
                    x: area.x,
                    y: area.y,
                    w: area.w,
                    h: area.h,
                })
                .collect(),
            attributes: field.rules.attributes(),
        })
        .collect()
}
