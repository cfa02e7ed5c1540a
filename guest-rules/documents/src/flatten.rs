//! Flattening a document's form into its pages.

use std::collections::BTreeMap;

use hayro_syntax::content::UntypedIter;
use lopdf::{Dictionary, Object, ObjectId};

use crate::FieldValue;
use crate::error::Result;
use crate::geometry::{PageTransform, UserSpaceBox};
use crate::painting::{ContentRole, FormPlacement};
use crate::source::SourcePage;
use crate::target::OverlayTarget;

/// Annotation flags (ISO 32000-1, table 165) of widgets that are not displayed.
const HIDDEN: i64 = 1 << 1;
const NO_VIEW: i64 = 1 << 5;

/// Limit on the bytes of an appearance that are checked for visible content.
const MAX_APPEARANCE_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of parent fields that are searched for an inherited value.
const MAX_FIELD_DEPTH: usize = 32;

/// Content of a removed form that still has to be painted. Keys are page indexes, 0-based.
#[derive(Default)]
pub(crate) struct FlattenedForm {
    pub(crate) placements: BTreeMap<usize, Vec<FormPlacement>>,
    pub(crate) without_appearance: Vec<MissingAppearance>,
}

/// A field with a value but no appearance, which viewers would have drawn on the fly. Such a field
/// is oriented by the entries of its page, not by the page as displayed.
pub(crate) struct MissingAppearance {
    pub(crate) page: usize,
    pub(crate) value: FieldValue,
    /// Size of the box to draw in, and the map from there to the user space of the page.
    pub(crate) size: (f32, f32),
    pub(crate) matrix: PageTransform,
}

/// Removes the form and returns the content of it that has to be painted. So do annotations that would be drawn
/// over one of the `values`, which are places in the user space of a page (from 0).
pub(crate) fn form(
    target: &mut OverlayTarget,
    pages: &[SourcePage],
    values: &[(usize, UserSpaceBox)],
) -> Result<FlattenedForm> {
    let mut flattened = FlattenedForm::default();
    for (index, page) in pages.iter().enumerate() {
        let here = values.iter().filter(|(page, _)| *page == index);
        let here: Vec<UserSpaceBox> = here.map(|(_, place)| *place).collect();
        flatten_page(target, index, page, &here, &mut flattened)?;
    }

    let root = target
        .document()
        .trailer
        .get(b"Root")
        .and_then(Object::as_reference);
    if let Ok(root) = root {
        let catalog = target.edit(root)?;
        catalog.remove(b"AcroForm");
        // Certification and usage rights cover the form and bytes that change now.
        catalog.remove(b"Perms");
    }

    Ok(flattened)
}

fn flatten_page(
    target: &mut OverlayTarget,
    index: usize,
    page: &SourcePage,
    values: &[UserSpaceBox],
    flattened: &mut FlattenedForm,
) -> Result<()> {
    let annotations = target
        .dictionary(page.id)
        .and_then(|page| page.get(b"Annots").ok());
    let Some(Object::Array(annotations)) = annotations.map(|object| target.resolve(object)) else {
        return Ok(());
    };

    let mut kept = Vec::with_capacity(annotations.len());
    let mut widgets = Vec::new();
    for annotation in annotations {
        match target.resolve(annotation) {
            Object::Dictionary(dictionary)
                if is_widget(target, dictionary) || hides(target, dictionary, values) =>
            {
                widgets.push(dictionary.clone());
            }
            _ => kept.push(annotation.clone()),
        }
    }

    // Most pages have no widget, and their list may be one that other pages share.
    if widgets.is_empty() {
        return Ok(());
    }

    for widget in &widgets {
        let flags = entry(target, widget, b"F")
            .and_then(|flags| flags.as_i64().ok())
            .unwrap_or(0);
        let Some(rectangle) = box_at(target, widget, b"Rect") else {
            continue;
        };
        // The signer did not see such a widget, so it is removed without becoming part of the page.
        if flags & (HIDDEN | NO_VIEW) != 0 || rectangle.width() <= 0.0 || rectangle.height() <= 0.0
        {
            continue;
        }

        let appearance = appearance(target, widget, rectangle);

        // Programs that leave drawing to the viewer write an appearance with at most a frame.
        let says_nothing = appearance.is_none_or(|(form, _)| shows_nothing(target, form));
        if let Some(value) = value(target, widget, appearance.is_none())
            && says_nothing
            && is_widget(target, widget)
        {
            let (size, matrix) = standing(turn(target, widget), rectangle);
            flattened.without_appearance.push(MissingAppearance {
                page: index,
                value,
                size,
                matrix,
            });
        }

        if let Some((form, matrix)) = appearance {
            let dictionary = target.edit(form)?;
            // Some programs leave these entries out of an appearance, and `Do` draws no stream without them.
            dictionary.set("Type", "XObject");
            dictionary.set("Subtype", "Form");
            let placement = FormPlacement {
                form,
                matrix,
                role: ContentRole::Content,
            };

            flattened
                .placements
                .entry(index)
                .or_default()
                .push(placement);
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

fn is_widget(target: &OverlayTarget, annotation: &Dictionary) -> bool {
    entry(target, annotation, b"Subtype")
        .is_some_and(|subtype| subtype.as_name().is_ok_and(|name| name == b"Widget"))
}

/// Returns whether an annotation that is drawn lies over one of these places.
fn hides(target: &OverlayTarget, annotation: &Dictionary, values: &[UserSpaceBox]) -> bool {
    // An annotation without an appearance has nothing that could be painted into the page.
    let rectangle = box_at(target, annotation, b"Rect");
    let Some(shown) = rectangle.filter(|_| annotation.has(b"AP")) else {
        return false;
    };
    values.iter().any(|value| {
        let across = shown.x0 < value.x1 && value.x0 < shown.x1;
        across && shown.y0 < value.y1 && value.y0 < shown.y1
    })
}

fn entry<'a>(
    target: &'a OverlayTarget,
    dictionary: &'a Dictionary,
    key: &[u8],
) -> Option<&'a Object> {
    dictionary
        .get(key)
        .ok()
        .map(|object| target.resolve(object))
}

fn numbers<const N: usize>(
    target: &OverlayTarget,
    dictionary: &Dictionary,
    key: &[u8],
) -> Option<[f64; N]> {
    let items = entry(target, dictionary, key)?.as_array().ok()?;
    let numbers: Vec<f64> = items
        .iter()
        .filter_map(|item| target.resolve(item).as_float().ok().map(f64::from))
        .collect();
    numbers.try_into().ok()
}

fn box_at(target: &OverlayTarget, dictionary: &Dictionary, key: &[u8]) -> Option<UserSpaceBox> {
    UserSpaceBox::from_corners(numbers(target, dictionary, key)?)
}

/// Returns the normal appearance for the current state of the widget, and the matrix that maps it
/// into the rectangle of the widget (ISO 32000-1, 12.5.5, algorithm 8.1).
fn appearance(
    target: &OverlayTarget,
    widget: &Dictionary,
    rectangle: UserSpaceBox,
) -> Option<(ObjectId, PageTransform)> {
    let appearances = entry(target, widget, b"AP")?.as_dict().ok()?;
    let mut normal = appearances.get(b"N").ok()?;
    // A widget with several states, such as a checkbox, shows the one that `AS` names.
    if let Object::Dictionary(states) = target.resolve(normal) {
        let state = entry(target, widget, b"AS")?.as_name().ok()?;
        normal = states.get(state).ok()?;
    }

    let id = last_reference(target, normal)?;
    let form = target.resolve(normal).as_stream().ok()?;
    let bounds = box_at(target, &form.dict, b"BBox")?;
    let own = numbers(target, &form.dict, b"Matrix").map_or(PageTransform::IDENTITY, PageTransform);
    let shown = own.apply_to_box(bounds);
    // Invisible signatures have an appearance without a size. The scale would be a division by zero.
    if shown.width() <= 0.0 || shown.height() <= 0.0 {
        return None;
    }

    let (across, down) = (
        rectangle.width() / shown.width(),
        rectangle.height() / shown.height(),
    );
    let matrix = PageTransform([
        across,
        0.0,
        0.0,
        down,
        rectangle.x0 - shown.x0 * across,
        rectangle.y0 - shown.y0 * down,
    ]);

    Some((id, matrix))
}

fn last_reference(target: &OverlayTarget, object: &Object) -> Option<ObjectId> {
    let mut id = object.as_reference().ok()?;
    // Bounded, because references of a hostile document can form a cycle.
    for _ in 0..32 {
        match target.document().objects.get(&id) {
            Some(Object::Reference(next)) => id = *next,
            _ => return Some(id),
        }
    }
    None
}

/// Returns the counterclockwise rotation of a widget relative to its page (`/MK /R`), in degrees.
fn turn(target: &OverlayTarget, widget: &Dictionary) -> i64 {
    entry(target, widget, b"MK")
        .and_then(|look| entry(target, look.as_dict().ok()?, b"R")?.as_i64().ok())
        .map_or(0, |turn| turn.rem_euclid(360))
}

/// Returns the size of the upright box for rotated content in a rectangle, and the map from the box
/// to the rectangle.
fn standing(turn: i64, rectangle: UserSpaceBox) -> ((f32, f32), PageTransform) {
    let UserSpaceBox { x0, y0, x1, y1 } = rectangle;
    let (width, height) = (rectangle.width() as f32, rectangle.height() as f32);
    match turn {
        90 => (
            (height, width),
            PageTransform([0.0, 1.0, -1.0, 0.0, x1, y0]),
        ),
        180 => (
            (width, height),
            PageTransform([-1.0, 0.0, 0.0, -1.0, x1, y1]),
        ),
        270 => (
            (height, width),
            PageTransform([0.0, -1.0, 1.0, 0.0, x0, y1]),
        ),
        _ => ((width, height), PageTransform([1.0, 0.0, 0.0, 1.0, x0, y0])),
    }
}

/// Returns whether an appearance draws neither text nor other forms nor pictures.
fn shows_nothing(target: &OverlayTarget, form: ObjectId) -> bool {
    let Some(Object::Stream(stream)) = target.document().objects.get(&form) else {
        return true;
    };
    // Content that cannot be decoded may show the value. Drawing the value again would print it twice.
    let Ok(content) = stream.get_plain_content_with_limit(MAX_APPEARANCE_BYTES) else {
        return false;
    };

    let mut operators = UntypedIter::new(&content);
    while let Some(instruction) = operators.next() {
        if matches!(
            &**instruction.operator,
            b"Tj" | b"TJ" | b"'" | b"\"" | b"Do" | b"BI"
        ) {
            return false;
        }
    }

    true
}

/// Returns the value of a text or choice field, inherited if the widget has none. The state of a
/// checkbox is returned only `with_state`, because its appearance shows the state without text.
fn value(target: &OverlayTarget, widget: &Dictionary, with_state: bool) -> Option<FieldValue> {
    let kind = inherited(target, widget, b"FT")?.as_name().ok()?.to_vec();
    match kind.as_slice() {
        // Programs end the lines of a field with CR, which the layout takes for a plain space.
        b"Tx" | b"Ch" => {
            let text = lopdf::decode_text_string(inherited(target, widget, b"V")?).ok()?;
            Some(FieldValue::Text(text.replace('\r', "\n")))
        }
        b"Btn" if with_state => {
            let state = entry(target, widget, b"AS")
                .or_else(|| inherited(target, widget, b"V"))?
                .as_name()
                .ok()?;
            Some(FieldValue::Checkbox(state != b"Off"))
        }
        _ => None,
    }
}

fn inherited<'a>(
    target: &'a OverlayTarget,
    widget: &'a Dictionary,
    key: &[u8],
) -> Option<&'a Object> {
    let mut field = widget;
    // Bounded, because the parents in a hostile document can form a cycle.
    for _ in 0..MAX_FIELD_DEPTH {
        if let Some(value) = entry(target, field, key) {
            return Some(value);
        }
        field = entry(target, field, b"Parent")?.as_dict().ok()?;
    }
    None
}
