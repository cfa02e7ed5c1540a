//! Optional content (layers) that is off when the document opens.

use std::collections::HashSet;

use hayro_syntax::object::{Array, Dict, MaybeRef, Name, Object, ObjectIdentifier};

/// The optional content groups that are off by default.
#[derive(Debug, Default)]
pub(crate) struct HiddenLayers(HashSet<ObjectIdentifier>);

impl HiddenLayers {
    /// Reads `/OCProperties` of the catalog (ISO 32000-1, 8.11.4).
    pub(crate) fn of(catalog: Option<&Dict<'_>>) -> Self {
        let Some(properties) = catalog.and_then(|root| root.get::<Dict<'_>>("OCProperties")) else {
            return Self::default();
        };
        let Some(default) = properties.get::<Dict<'_>>("D") else {
            return Self::default();
        };

        // With the base state OFF, only the layers in `ON` are visible (ISO 32000-1, table 101).
        let mut hidden = HashSet::new();
        if default.get::<Name<'_>>("BaseState").as_deref() == Some(b"OFF") {
            hidden.extend(references(&properties, "OCGs"));
            for shown in references(&default, "ON") {
                hidden.remove(&shown);
            }
        }

        hidden.extend(references(&default, "OFF"));
        Self(hidden)
    }

    /// Returns whether the group or membership dictionary under `key` hides its content.
    pub(crate) fn hides_entry(&self, dict: &Dict<'_>, key: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        if let Some(group) = dict.get_ref(key)
            && self.0.contains(&group.into())
        {
            return true;
        }

        dict.get::<Dict<'_>>(key)
            .is_some_and(|membership| self.hides_membership(&membership))
    }

    /// Returns whether a membership dictionary (OCMD) hides its content. Visibility expressions are
    /// ignored.
    fn hides_membership(&self, membership: &Dict<'_>) -> bool {
        let mut groups: Vec<ObjectIdentifier> = references(membership, "OCGs").collect();
        groups.extend(membership.get_ref("OCGs").map(ObjectIdentifier::from));
        // A membership dictionary without groups has no effect (ISO 32000-1, table 99).
        if groups.is_empty() {
            return false;
        }

        let is_off = |group: &ObjectIdentifier| self.0.contains(group);
        match membership.get::<Name<'_>>("P").as_deref() {
            Some(b"AllOn") => groups.iter().any(is_off),
            Some(b"AnyOff") => !groups.iter().any(is_off),
            Some(b"AllOff") => !groups.iter().all(is_off),
            _ => groups.iter().all(is_off),
        }
    }
}

fn references<'d>(dict: &Dict<'d>, key: &str) -> impl Iterator<Item = ObjectIdentifier> + use<'d> {
    dict.get::<Array<'d>>(key)
        .into_iter()
        .flat_map(|array| array.raw_iter())
        .filter_map(|item: MaybeRef<Object<'d>>| item.as_obj_ref())
        .map(ObjectIdentifier::from)
}
