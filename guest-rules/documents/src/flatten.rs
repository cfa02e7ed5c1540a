//! A document's form, made part of its pages.

use std::collections::BTreeMap;

use lopdf::{Dictionary, Object, ObjectId};

use crate::FieldValue;
use crate::error::Result;
use crate::geometry::{Box2, DisplayedBox, Matrix};
use crate::source::SourcePage;
use crate::target::{Placement, Role, Target};

/// Annotation flags (ISO 32000-1, table 165) of widgets that are not displayed.
const HIDDEN: i64 = 1 << 1;
const NO_VIEW: i64 = 1 << 5;

/// How far a value may be inherited from parent fields.
const MAX_FIELD_DEPTH: usize = 32;

/// What a form leaves to be painted. Keys are page indexes, 0-based.
#[derive(Default)]
pub(crate) struct Flattened {
    pub(crate) placements: BTreeMap<usize, Vec<Placement>>,
    pub(crate) without_appearance: Vec<Missing>,
}

/// A field with a value but no appearance: viewers would have drawn it on the fly.
pub(crate) struct Missing {
    pub(crate) page: usize,
    pub(crate) space: DisplayedBox,
    pub(crate) value: FieldValue,
}

/// Takes the form away and says what of it must be painted.
pub(crate) fn form(target: &mut Target, pages: &[SourcePage]) -> Result<Flattened> {
    let mut flattened = Flattened::default();
    for (index, page) in pages.iter().enumerate() {
        flatten_page(target, index, page, &mut flattened)?;
    }
    let root = target.document().trailer.get(b"Root").and_then(Object::as_reference);
    if let Ok(root) = root {
        let catalog = target.edit(root)?;
        catalog.remove(b"AcroForm");
        // Certification and usage rights speak of the form and of bytes that change now.
        catalog.remove(b"Perms");
    }
    Ok(flattened)
}

fn flatten_page(
    target: &mut Target,
    index: usize,
    page: &SourcePage,
    flattened: &mut Flattened,
) -> Result<()> {
    let annotations = target.dictionary(page.id).and_then(|page| page.get(b"Annots").ok());
    let Some(Object::Array(annotations)) = annotations.map(|object| target.resolve(object)) else {
        return Ok(());
    };
    let mut kept = Vec::with_capacity(annotations.len());
    let mut widgets = Vec::new();
    for annotation in annotations {
        match target.resolve(annotation) {
            Object::Dictionary(dictionary) if is_widget(target, dictionary) => {
                widgets.push(dictionary.clone());
            }
            _ => kept.push(annotation.clone()),
        }
    }
    if widgets.is_empty() {
        return Ok(());
    }
    for widget in &widgets {
        let flags = entry(target, widget, b"F").and_then(|flags| flags.as_i64().ok()).unwrap_or(0);
        let Some(rectangle) = box_at(target, widget, b"Rect") else {
            continue;
        };
        if flags & (HIDDEN | NO_VIEW) != 0 || rectangle.width() <= 0.0 || rectangle.height() <= 0.0 {
            continue;
        }
        if let Some((form, matrix)) = appearance(target, widget, rectangle) {
            let dictionary = target.edit(form)?;
            dictionary.set("Type", "XObject");
            dictionary.set("Subtype", "Form");
            let placement = Placement { form, matrix, role: Role::Content };
            flattened.placements.entry(index).or_default().push(placement);
        } else if let Some(value) = value(target, widget)
            && let Some(space) = page.geometry.displayed(rectangle)
        {
            flattened.without_appearance.push(Missing { page: index, space, value });
        }
    }
    let page = target.edit(page.id)?;
    if kept.is_empty() {
        page.remove(b"Annots");
    } else {
        page.set("Annots", kept);
    }
    Ok(())
}

fn is_widget(target: &Target, annotation: &Dictionary) -> bool {
    entry(target, annotation, b"Subtype")
        .is_some_and(|subtype| subtype.as_name().is_ok_and(|name| name == b"Widget"))
}

fn entry<'a>(target: &'a Target, dictionary: &'a Dictionary, key: &[u8]) -> Option<&'a Object> {
    dictionary.get(key).ok().map(|object| target.resolve(object))
}

fn numbers<const N: usize>(target: &Target, dictionary: &Dictionary, key: &[u8]) -> Option<[f64; N]> {
    let items = entry(target, dictionary, key)?.as_array().ok()?;
    let numbers: Vec<f64> = items
        .iter()
        .filter_map(|item| target.resolve(item).as_float().ok().map(f64::from))
        .collect();
    numbers.try_into().ok()
}

fn box_at(target: &Target, dictionary: &Dictionary, key: &[u8]) -> Option<Box2> {
    Box2::from_corners(numbers(target, dictionary, key)?)
}

/// The normal appearance in the widget's current state, and the matrix that puts it into the
/// widget's rectangle (ISO 32000-1, 12.5.5, algorithm 8.1).
fn appearance(target: &Target, widget: &Dictionary, rectangle: Box2) -> Option<(ObjectId, Matrix)> {
    let appearances = entry(target, widget, b"AP")?.as_dict().ok()?;
    let mut normal = appearances.get(b"N").ok()?;
    if let Object::Dictionary(states) = target.resolve(normal) {
        let state = entry(target, widget, b"AS")?.as_name().ok()?;
        normal = states.get(state).ok()?;
    }
    let id = last_reference(target, normal)?;
    let form = target.resolve(normal).as_stream().ok()?;
    let bounds = box_at(target, &form.dict, b"BBox")?;
    let own = numbers(target, &form.dict, b"Matrix").map_or(Matrix::IDENTITY, Matrix);
    let shown = own.apply_to_box(bounds);
    if shown.width() <= 0.0 || shown.height() <= 0.0 {
        return None;
    }
    let (across, down) = (rectangle.width() / shown.width(), rectangle.height() / shown.height());
    let matrix = Matrix([
        across,
        0.0,
        0.0,
        down,
        rectangle.x0 - shown.x0 * across,
        rectangle.y0 - shown.y0 * down,
    ]);
    Some((id, matrix))
}

fn last_reference(target: &Target, object: &Object) -> Option<ObjectId> {
    let mut id = object.as_reference().ok()?;
    for _ in 0..32 {
        match target.document().objects.get(&id) {
            Some(Object::Reference(next)) => id = *next,
            _ => return Some(id),
        }
    }
    None
}

/// The value of a text, choice or checkbox field, inherited where the widget has none.
fn value(target: &Target, widget: &Dictionary) -> Option<FieldValue> {
    let kind = inherited(target, widget, b"FT")?.as_name().ok()?.to_vec();
    match kind.as_slice() {
        b"Tx" | b"Ch" => {
            let text = lopdf::decode_text_string(inherited(target, widget, b"V")?).ok()?;
            Some(FieldValue::Text(text.replace('\r', "\n")))
        }
        b"Btn" => {
            let state = entry(target, widget, b"AS")
                .or_else(|| inherited(target, widget, b"V"))?
                .as_name()
                .ok()?;
            Some(FieldValue::Checkbox(state != b"Off"))
        }
        _ => None,
    }
}

fn inherited<'a>(target: &'a Target, widget: &'a Dictionary, key: &[u8]) -> Option<&'a Object> {
    let mut field = widget;
    for _ in 0..MAX_FIELD_DEPTH {
        if let Some(value) = entry(target, field, key) {
            return Some(value);
        }
        field = entry(target, field, b"Parent")?.as_dict().ok()?;
    }
    None
}
