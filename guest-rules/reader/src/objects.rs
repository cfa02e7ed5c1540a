//! Iteration over arrays with items that may be references, missing or of the wrong type.

use hayro_syntax::object::{Array, MaybeRef, Object};
use hayro_syntax::xref::XRef;

/// Returns the items of an array with references resolved, without dangling ones.
pub(crate) fn resolved<'a>(
    array: &Array<'a>,
    xref: &'a XRef,
) -> impl Iterator<Item = Object<'a>> + use<'a> {
    array.raw_iter().filter_map(move |item| match item {
        MaybeRef::Ref(reference) => xref.get::<Object<'a>>(reference.into()),
        MaybeRef::NotRef(object) => Some(object),
    })
}
