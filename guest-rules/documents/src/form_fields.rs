//! Fields of the form that a document already has (ISO 32000-1, 12.7).

use std::sync::Arc;

use lopdf::{Dictionary, Document, Object};
use memchr::memmem;

use crate::error::{Result, over_limit};
use crate::geometry::{PageGeometry, UserSpaceBox};
use crate::source::{SourceDocument, dictionary, resolve_in};
use crate::{Area, FormField, FormFieldKind};

/// Limit on the fields of a document, and on the annotations that are examined.
const MAX_FIELDS: usize = 1_000;
const MAX_ANNOTATIONS: usize = 50_000;
/// Limit on the choices of a field, and on the characters of one text.
const MAX_OPTIONS: usize = 500;
const MAX_CHARACTERS: usize = 4_000;
/// Limit on the depth of the field tree.
const MAX_DEPTH: usize = 32;

/// Flags of fields (ISO 32000-1, tables 221, 226 and 228).
const READ_ONLY: i64 = 1;
const REQUIRED: i64 = 1 << 1;
const RADIO: i64 = 1 << 15;
const PUSH_BUTTON: i64 = 1 << 16;

/// Flags of annotations that are not displayed (table 165).
const HIDDEN: i64 = 1 << 1;
const NO_VIEW: i64 = 1 << 5;

/// Lists the visible fields of the form in the order of the pages.
///
/// # Errors
///
/// `encrypted`, `unreadable` and `over-limit` for the document.
pub fn form_fields(pdf: Vec<u8>) -> Result<Vec<FormField>> {
    // Listing fields needs no data of pictures and typefaces, so the smaller way to open is enough.
    let source = SourceDocument::open_for_update(&Arc::new(pdf))?;
    let document = &source.document;
    let mut fields: Vec<FormField> = Vec::new();

    let mut examined = 0;
    for (number, page) in (1..).zip(&source.pages) {
        let page_entry = document.get_dictionary(page.id);
        let annotations = page_entry.and_then(|page| page.get(b"Annots"));
        let Ok(Object::Array(annotations)) =
            annotations.map(|annotations| resolve_in(document, annotations))
        else {
            continue;
        };

        // The limit counts over all pages, because each widget is compared with the fields before it.
        examined += annotations.len();
        if examined > MAX_ANNOTATIONS {
            return Err(over_limit(format!("{MAX_ANNOTATIONS} annotations")));
        }

        for annotation in annotations {
            let Some(widget) = dictionary(document, annotation) else {
                continue;
            };

            let node = FieldNode { document, widget };
            let (Some(kind), Some(area)) = (node.kind(), node.area(number, &page.geometry)) else {
                continue;
            };

            node.add(kind, area, &mut fields)?;
        }
    }

    Ok(fields)
}

/// A widget of a page, with the field dictionaries above it.
struct FieldNode<'a> {
    document: &'a Document,
    widget: &'a Dictionary,
}

impl<'a> FieldNode<'a> {
    /// Returns the widget and its parents, from the bottom up.
    fn chain(&self) -> impl Iterator<Item = &'a Dictionary> {
        // The depth is bounded, because the parents in a hostile document can form a cycle.
        let document = self.document;
        let above = move |node: &&'a Dictionary| dictionary(document, node.get(b"Parent").ok()?);
        std::iter::successors(Some(self.widget), above).take(MAX_DEPTH)
    }

    /// Returns an entry that fields inherit.
    fn inherited(&self, key: &[u8]) -> Option<&'a Object> {
        let entry = self.chain().find_map(|node| node.get(key).ok())?;
        Some(resolve_in(self.document, entry))
    }

    fn own(&self, key: &[u8]) -> Option<&'a Object> {
        let entry = self.widget.get(key).ok()?;
        Some(resolve_in(self.document, entry))
    }

    fn flags(&self) -> i64 {
        let flags = self.inherited(b"Ff").and_then(|flags| flags.as_i64().ok());
        flags.unwrap_or_default()
    }

    /// Returns the kind of a visible field; none for anything else.
    fn kind(&self) -> Option<FormFieldKind> {
        let widget = self.own(b"Subtype")?.as_name().ok()? == b"Widget";
        let flags = self.own(b"F").and_then(|flags| flags.as_i64().ok());
        if !widget || flags.unwrap_or_default() & (HIDDEN | NO_VIEW) != 0 {
            return None;
        }

        // A signature field with a value is signed already, and a push button holds no value.
        match self.inherited(b"FT")?.as_name().ok()? {
            b"Tx" => Some(self.kind_of_text()),
            b"Ch" => Some(FormFieldKind::Select),
            b"Sig" if self.inherited(b"V").is_none() => Some(FormFieldKind::Signature),
            b"Btn" if self.flags() & PUSH_BUTTON != 0 => None,
            b"Btn" if self.flags() & RADIO != 0 => Some(FormFieldKind::Radio),
            b"Btn" => Some(FormFieldKind::Checkbox),
            _ => None,
        }
    }

    /// Programs mark dates and numbers by the name of the script that formats them.
    fn kind_of_text(&self) -> FormFieldKind {
        let script = || {
            let actions = self.inherited(b"AA")?.as_dict().ok()?;
            let action = dictionary(self.document, actions.get(b"F").ok()?)?;
            match resolve_in(self.document, action.get(b"JS").ok()?) {
                Object::String(text, _) => Some(text.as_slice()),
                Object::Stream(stream) => Some(stream.content.as_slice()),
                _ => None,
            }
        };

        // The script is searched for a name and never run.
        let script = script().unwrap_or_default();
        let names = |name: &[u8]| memmem::find(script, name).is_some();
        if names(b"AFDate_Format") {
            FormFieldKind::Date
        } else if names(b"AFNumber_Format") {
            FormFieldKind::Number
        } else {
            FormFieldKind::Text
        }
    }

    /// Returns the place of the widget on the displayed page; none if it is not on it.
    fn area(&self, page: u32, geometry: &PageGeometry) -> Option<Area> {
        let corners = self.own(b"Rect")?.as_array().ok()?;
        let corners: Vec<f64> = corners
            .iter()
            .map_while(|number| resolve_in(self.document, number).as_float().ok())
            .map(f64::from)
            .collect();
        let rectangle = UserSpaceBox::from_corners(corners.try_into().ok()?)?;
        let shown = geometry.to_user.inverse()?.apply_to_box(rectangle);

        // A widget may reach over the edge.
        // Only the part on the page is kept, because `fill` refuses other areas.
        let (width, height) = (f64::from(geometry.width), f64::from(geometry.height));
        let fraction = |number: f64| (number.clamp(0.0, 1.0) * 1e5).round() / 1e5;
        let (left, right) = (fraction(shown.x0 / width), fraction(shown.x1 / width));
        let (top, bottom) = (
            fraction(1.0 - shown.y1 / height),
            fraction(1.0 - shown.y0 / height),
        );

        (right > left && bottom > top).then_some(Area {
            page,
            x: left,
            y: top,
            w: right - left,
            h: bottom - top,
        })
    }

    /// Adds the widget to the field of its name.
    fn add(&self, kind: FormFieldKind, area: Area, fields: &mut Vec<FormField>) -> Result<()> {
        // Widgets of one name are places of one field (ISO 32000-1, 12.7.3.2).
        let name = self.name();
        let known = fields
            .iter_mut()
            .find(|field| field.name == name && field.kind == kind);
        if let Some(field) = known {
            field.areas.push(area);
            // Each radio button has the name of its own choice,
            // so the choices come together widget by widget.
            if kind == FormFieldKind::Radio {
                add_options(&mut field.options, self.on_states());
            }
            return Ok(());
        }

        if fields.len() == MAX_FIELDS {
            return Err(over_limit(format!("{MAX_FIELDS} form fields")));
        }

        let mut options = Vec::new();
        match kind {
            FormFieldKind::Radio => add_options(&mut options, self.on_states()),
            FormFieldKind::Select => add_options(&mut options, self.choices()),
            _ => {}
        }

        let length = self.inherited(b"MaxLen");
        let length = length.and_then(|length| u32::try_from(length.as_i64().ok()?).ok());
        fields.push(FormField {
            name,
            label: self.inherited(b"TU").and_then(text).unwrap_or_default(),
            kind,
            required: self.flags() & REQUIRED != 0,
            readonly: self.flags() & READ_ONLY != 0,
            value: self.value(kind),
            options,
            max_length: length.filter(|length| *length > 0),
            areas: vec![area],
        });

        Ok(())
    }

    fn name(&self) -> String {
        let parts: Vec<String> = self
            .chain()
            .filter_map(|node| node.get(b"T").ok())
            .filter_map(|part| text(resolve_in(self.document, part)))
            .collect();
        // The chain goes from the widget upwards, and a full name begins at the top (ISO 32000-1, 12.7.3.2).
        parts.into_iter().rev().collect::<Vec<_>>().join(".")
    }

    fn value(&self, kind: FormFieldKind) -> String {
        let value = self.inherited(b"V");
        match (kind, value) {
            (FormFieldKind::Signature, _) | (_, None) => String::new(),
            (FormFieldKind::Checkbox, Some(value)) => match value.as_name() {
                Ok(name) if name != b"Off" => "true".into(),
                _ => String::new(),
            },
            (_, Some(Object::Name(name))) if name == b"Off" => String::new(),
            // The value of a list may name several choices.
            (_, Some(Object::Array(values))) => {
                let first = values.first();
                let first = first.and_then(|value| text(resolve_in(self.document, value)));
                first.unwrap_or_default()
            }
            (_, Some(value)) => text(value).unwrap_or_default(),
        }
    }

    /// Returns the names of the appearances of a radio button that is chosen.
    fn on_states(&self) -> Vec<String> {
        let appearances = self.own(b"AP").and_then(|entry| entry.as_dict().ok());
        let states = appearances.and_then(|entry| entry.get(b"N").ok());
        let states = states.and_then(|states| dictionary(self.document, states));
        let names = states.into_iter().flat_map(Dictionary::iter);
        names
            .map(|(name, _)| name)
            .filter(|name| name.as_slice() != b"Off")
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    }

    /// Returns the choices of a list as they are displayed.
    fn choices(&self) -> Vec<String> {
        let options = self.inherited(b"Opt");
        let options = options.and_then(|options| options.as_array().ok());
        // A pair has the exported value first and the displayed text second (ISO 32000-1, table 231).
        let choice = |option: &Object| match resolve_in(self.document, option) {
            Object::Array(pair) => text(resolve_in(self.document, pair.get(1)?)),
            plain => text(plain),
        };
        let options = options.into_iter().flatten().take(MAX_OPTIONS);
        options.filter_map(choice).collect()
    }
}

fn add_options(known: &mut Vec<String>, new: Vec<String>) {
    for option in new {
        // Two buttons may stand for the same choice, and a signer needs it in the list once.
        let unknown = !option.trim().is_empty() && !known.contains(&option);
        if unknown && known.len() < MAX_OPTIONS {
            known.push(option);
        }
    }
}

fn text(object: &Object) -> Option<String> {
    let text = match object {
        Object::Name(name) => String::from_utf8_lossy(name).into_owned(),
        other => lopdf::decode_text_string(other).ok()?,
    };
    Some(text.chars().take(MAX_CHARACTERS).collect())
}
