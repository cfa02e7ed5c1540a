//! Warnings about accepted requests that probably contain a mistake.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::templates::{FieldPlacement, RequestedField, placement_request};
use holdfast_components::Placement as PlacementRules;
use holdfast_components::rules::placement;
use holdfast_domain::envelope::{Signer, SignerKind};
use holdfast_domain::field::{Area, Field, FieldRules};
use holdfast_domain::template::Template;
use holdfast_domain::warning::Warning;
use holdfast_platform::fields::area;

/// Limit of searches for other occurrences per request, because each reads the document.
const SEARCHES: usize = 10;

/// Tag attributes that affect a field. Others are read and ignored.
const TAG_ATTRIBUTES: [&str; 9] = [
    "name", "type", "role", "required", "readonly", "default", "width", "height", "options",
];

/// Warns about roles that can finish without a required signature.
pub fn of_roles(template: &Template) -> Vec<Warning> {
    let roles = template.roles();
    if roles.is_empty() && template.document.is_some() {
        let message = "The template has no fields: nothing can be signed";
        return vec![Warning::new("no_fields", &["fields"], message)];
    }

    let signs = |role: &str| {
        let mut own = template.fields.iter().filter(|field| field.role == role);
        own.any(|field| field.is_signature() && field.required)
    };
    let is_asked = |role: &str| {
        let mut own = template.fields.iter().filter(|field| field.role == role);
        own.any(Field::is_signature)
    };

    let mut warnings = Vec::new();
    for role in roles.into_iter().filter(|role| !signs(role)) {
        // Without such a field the role can never sign. With optional ones only, it can finish without.
        if !is_asked(role) {
            let message = no_signature_field(role);
            warnings.push(Warning::new("no_signature_field", &["fields"], message));
        }
        let message = format!("Role {role} has no required signature or initials field");
        warnings.push(Warning::new("no_required_signature", &["fields"], message));
    }

    warnings
}

/// Warns about signers and witnesses with roles that ask for no signature: they complete a form, and nothing
/// claims that they signed (check 4 then fails).
pub fn of_unsigned_roles(template: &Template, signers: &[Signer]) -> Vec<Warning> {
    unsigned_roles(template, signers)
        .map(|(index, signer)| {
            let path = ["signers", &index.to_string(), "role"];
            Warning::new(
                "no_signature_field",
                &path,
                no_signature_field(&signer.role),
            )
        })
        .collect()
}

/// Returns the signers and witnesses with roles that have no signature or initials field, with their index.
pub fn unsigned_roles<'a>(
    template: &'a Template,
    signers: &'a [Signer],
) -> impl Iterator<Item = (usize, &'a Signer)> {
    // An approver agrees without signing, so the role needs no such field.
    signers.iter().enumerate().filter(move |(_, signer)| {
        signer.kind != SignerKind::Approver && !is_asked_to_sign(template, &signer.role)
    })
}

/// Whether a role has a signature or initials field.
pub fn is_asked_to_sign(template: &Template, role: &str) -> bool {
    let mut own = template.fields.iter().filter(|field| field.role == role);
    own.any(Field::is_signature)
}

/// Returns the sentence about a role without a signature field.
pub fn no_signature_field(role: &str) -> String {
    format!(
        "Role {role} has no signature or initials field: who has it completes the form and signs nothing"
    )
}

/// Warns about anchors without `occurrence` that occur more than once, and lists the other
/// occurrences. An error here yields no warning, because the placement itself succeeded.
pub async fn of_anchors(
    rules: &PlacementRules,
    pdf: &Bytes,
    requested: &[RequestedField],
) -> Vec<Warning> {
    let seconds: Vec<(usize, placement::FieldRequest)> = requested
        .iter()
        .enumerate()
        .filter_map(|(index, field)| Some((index, second(field)?)))
        .collect();
    if seconds.is_empty() {
        return Vec::new();
    }

    let (indexes, seconds): (Vec<usize>, Vec<_>) = seconds.into_iter().unzip();
    // Each request asks for the second occurrence, so a refused one occurs once.
    let once: Vec<u32> = match rules.place(pdf.clone(), seconds).await {
        Ok(Ok(_)) => Vec::new(),
        Ok(Err(placement::PlaceError::Rejected(issues))) => {
            issues.into_iter().map(|issue| issue.field_index).collect()
        }
        Ok(Err(_)) | Err(_) => return Vec::new(),
    };

    let mut searched: BTreeMap<(&str, Option<u32>), Vec<Area>> = BTreeMap::new();
    let mut warnings = Vec::new();
    for (position, index) in (0..).zip(indexes) {
        let Some(FieldPlacement::Anchor {
            anchor_text, page, ..
        }) = requested.get(index).map(|field| &field.placement)
        else {
            continue;
        };
        if once.contains(&position) {
            continue;
        }

        // Fields often share an anchor, and one search serves all of them.
        let wanted = (anchor_text.as_str(), *page);
        if !searched.contains_key(&wanted) && searched.len() < SEARCHES {
            let found = rules.occurrences(pdf.clone(), anchor_text.clone(), *page);
            let found = found.await.ok().and_then(Result::ok).unwrap_or_default();
            let others = found.into_iter().skip(1).map(area).collect();
            searched.insert(wanted, others);
        }

        let path = ["fields", &index.to_string(), "placement", "anchor_text"];
        let message = format!("“{anchor_text}” occurs more than once: the first match was used");
        warnings.push(Warning {
            occurrences: searched.get(&wanted).cloned().unwrap_or_default(),
            ..Warning::new("ambiguous_anchor", &path, message)
        });
    }

    warnings
}

/// Builds a request that can only be placed if the field's anchor occurs a second time.
fn second(field: &RequestedField) -> Option<placement::FieldRequest> {
    let mut asked = placement_request(field);
    match &mut asked.position {
        placement::Position::Anchor(anchor) if anchor.occurrence.is_none() && !is_exact(field) => {
            anchor.occurrence = Some(2);
            // No offset and almost no size: the field stays on the page wherever the match is.
            (anchor.offset_x, anchor.offset_y) = (0.0, 0.0);
            (anchor.w, anchor.h) = (1e-6, 1e-6);
            Some(asked)
        }
        _ => None,
    }
}

/// Returns whether the number of the occurrence counts only those that are written like the anchor.
fn is_exact(field: &RequestedField) -> bool {
    matches!(field.placement, FieldPlacement::Anchor { exact: true, .. })
}

/// Warns about tags with ignored attributes, and tags without a role next to tags with one.
pub fn of_tags(tags: &[placement::ResolvedField]) -> Vec<Warning> {
    // Where all tags have one role, a tag without a role belongs to it.
    let several = tags.iter().any(|tag| tag.role != tags[0].role);
    let mut warnings = Vec::new();
    for tag in tags {
        let written = |name: &str| tag.attributes.iter().any(|(known, _)| known == name);
        let unused = tag.attributes.iter().map(|(name, _)| name.as_str());
        for name in unused
            .filter(|name| !TAG_ATTRIBUTES.contains(name) && !FieldRules::NAMES.contains(name))
        {
            let message = format!("In the tag of {}: {name} has no effect", tag.name);
            warnings.push(Warning::new(
                "tag_attribute_without_effect",
                &["file"],
                message,
            ));
        }

        if several && !written("role") {
            let message = format!(
                "The tag of {} names no role: {} fills it",
                tag.name, tag.role
            );
            warnings.push(Warning::new("tag_without_role", &["file"], message));
        }
    }

    warnings
}
