//! Existing signatures and their permissions.

use std::collections::HashSet;

use hayro_syntax::object::{Array, Dict, MaybeRef, Name, Object, ObjectIdentifier};
use hayro_syntax::xref::XRef;

use crate::objects::resolved;

/// Number of form fields that are examined.
const MAX_FIELDS: usize = 100_000;

/// Existing digital signatures of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SignatureFacts {
    /// Signature fields that hold a signature.
    pub count: u32,
    /// The DocMDP level when the document is certified: 1 forbids every change, 2 allows filling
    /// in and signing, 3 also annotations (ISO 32000-1, 12.8.2.2).
    pub certification_level: Option<u32>,
}

pub(crate) fn signatures<'a>(catalog: &Dict<'a>, xref: &'a XRef) -> SignatureFacts {
    SignatureFacts {
        count: signed_fields(catalog, xref),
        certification_level: certification_level(catalog, xref),
    }
}

/// Counts signed fields in the field tree. A signature counts if its field has a value; the field
/// type may be inherited from an ancestor.
fn signed_fields(catalog: &Dict<'_>, xref: &XRef) -> u32 {
    let Some(form) = catalog.get::<Dict<'_>>("AcroForm") else {
        return 0;
    };

    // The field tree of a hostile document can contain itself.
    let mut visited: HashSet<ObjectIdentifier> = HashSet::new();
    let mut open: Vec<(MaybeRef<Object<'_>>, bool)> = children(&form, "Fields", false);
    let mut count = 0;

    let mut seen = 0;
    while let Some((field, inherits_signature)) = open.pop() {
        seen += 1;
        if seen > MAX_FIELDS {
            break;
        }

        let field = match field {
            MaybeRef::Ref(reference) => {
                let id = ObjectIdentifier::from(reference);
                if !visited.insert(id) {
                    continue;
                }
                xref.get::<Dict<'_>>(id)
            }
            MaybeRef::NotRef(object) => object.into_dict(),
        };

        let Some(field) = field else { continue };
        let is_signature = match field.get::<Name<'_>>("FT") {
            Some(kind) => kind.as_ref() == b"Sig",
            None => inherits_signature,
        };
        if is_signature && field.get::<Dict<'_>>("V").is_some() {
            count += 1;
        }

        open.extend(children(&field, "Kids", is_signature));
    }

    count
}

fn children<'a>(
    dict: &Dict<'a>,
    key: &str,
    inherits_signature: bool,
) -> Vec<(MaybeRef<Object<'a>>, bool)> {
    dict.get::<Array<'a>>(key)
        .map(|items| {
            items
                .raw_iter()
                .take(MAX_FIELDS)
                .map(|item| (item, inherits_signature))
                .collect()
        })
        .unwrap_or_default()
}

fn certification_level<'a>(catalog: &Dict<'a>, xref: &'a XRef) -> Option<u32> {
    let signature = catalog
        .get::<Dict<'_>>("Perms")?
        .get::<Dict<'_>>("DocMDP")?;
    let level = signature
        .get::<Array<'a>>("Reference")
        .into_iter()
        .flat_map(|references| resolved(&references, xref))
        .filter_map(Object::into_dict)
        .filter(|reference| {
            reference.get::<Name<'_>>("TransformMethod").as_deref() == Some(b"DocMDP")
        })
        .find_map(|reference| {
            reference
                .get::<Dict<'_>>("TransformParams")?
                .get::<u32>("P")
        });

    // The level is optional and defaults to 2. An undefined level counts as the strictest one:
    // guessing wrong would break a certification.
    Some(match level {
        None => 2,
        Some(level @ 1..=3) => level,
        Some(_) => 1,
    })
}
