//! Walking arrays whose items may be references, missing or of the wrong type.

use hayro_syntax::object::{Array, MaybeRef, Object};
use hayro_syntax::xref::XRef;

/// The items of an array, references followed, those that lead nowhere left out.
pub(crate) fn resolved<'a>(
    array: &Array<'a>,
    xref: &'a XRef,
) -> impl Iterator<Item = Object<'a>> + use<'a> {
    array.raw_iter().filter_map(move |item| match item {
        MaybeRef::Ref(reference) => xref.get::<Object<'a>>(reference.into()),
        MaybeRef::NotRef(object) => Some(object),
    })
}
