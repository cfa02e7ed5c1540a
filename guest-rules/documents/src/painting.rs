//! Painting on existing pages without disturbing their content.

use std::fmt::Write as _;

use holdfast_reader::ContentEnding;
use lopdf::{Dictionary, Object, ObjectId, Stream};

use crate::error::{Result, other};
use crate::geometry::PageTransform;
use crate::source::{MAX_CLOSERS, SourcePage};
use crate::target::OverlayTarget;

/// Maximum depth of a page in the page tree; inherited resources beyond it are ignored.
const MAX_TREE_DEPTH: usize = 64;

/// A form XObject and its position.
pub(crate) struct FormPlacement {
    pub(crate) form: ObjectId,
    /// Map from the form's space to the page's user space.
    pub(crate) matrix: PageTransform,
    pub(crate) role: ContentRole,
}

/// Role of painted content in a tagged document.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentRole {
    /// Part of the document.
    Content,
    /// Added to the page afterwards, like a page number; screen readers skip it.
    Artifact,
}

impl OverlayTarget {
    /// Paints forms on top of a page, independently of the graphics state that its own content
    /// leaves behind.
    pub(crate) fn paint(&mut self, page: &SourcePage, placements: &[FormPlacement]) -> Result<()> {
        if placements.is_empty() {
            return Ok(());
        }

        if let Some(content) = &page.closed {
            self.isolate(page, content)?;
        }

        let SourcePage {
            id, ending, closed, ..
        } = page;
        let page = *id;

        // A form keeps its open states to itself.
        let ending = if closed.is_some() {
            &ContentEnding::default()
        } else {
            ending
        };
        let mut tail = String::from("\n");

        // Close everything that the page leaves open, including the `q` that is put before its
        // content.
        tail.push_str(if ending.is_inside_text { "ET\n" } else { "" });
        tail.push_str(&"Q ".repeat(1 + ending.open_states.min(MAX_CLOSERS)));

        for placement in placements {
            let name = self.name_form(page, placement.form)?;
            let [a, b, c, d, e, f] = placement.matrix.0.map(number);
            let (open, close) = match placement.role {
                ContentRole::Content => ("", ""),
                ContentRole::Artifact => (
                    "/Artifact <</Type/Pagination/Subtype/Watermark>> BDC ",
                    " EMC",
                ),
            };

            // Writing to a string cannot fail.
            let _ = write!(
                tail,
                "\n{open}q {a} {b} {c} {d} {e} {f} cm /{name} Do Q{close}"
            );
        }

        tail.push('\n');
        let head = self.add(Stream::new(
            Dictionary::new(),
            format!(
                "{}\n",
                "q ".repeat(1 + ending.surplus_restores.min(MAX_CLOSERS))
            )
            .into_bytes(),
        ))?;

        let tail = self.add(Stream::new(Dictionary::new(), tail.into_bytes()))?;

        let existing = match self
            .dictionary(page)
            .and_then(|page| page.get(b"Contents").ok())
        {
            None => Vec::new(),
            Some(contents) => match self.resolve(contents) {
                Object::Array(streams) => streams.clone(),
                Object::Stream(_) => vec![contents.clone()],
                _ => Vec::new(),
            },
        };

        let mut contents = vec![Object::Reference(head)];
        contents.extend(existing);
        contents.push(Object::Reference(tail));
        self.edit(page)?.set("Contents", contents);

        Ok(())
    }

    /// Draws the content of a page as a form of its own. Its open states end with the form, in every
    /// reader, and cannot hide the marks on top.
    fn isolate(&mut self, page: &SourcePage, content: &[u8]) -> Result<()> {
        let resources = self.resources(page.id);
        // A copy: the form must not be among the resources that it draws with.
        let resources = self.add(resources)?;
        let mut form = Dictionary::new();
        form.set("Type", "XObject");
        form.set("Subtype", "Form");
        form.set(
            "BBox",
            page.geometry
                .user_box()
                .map(|edge| Object::Real(edge as f32))
                .to_vec(),
        );

        form.set("Resources", resources);
        let mut form = Stream::new(form, content.to_vec());
        form.compress()?;
        let form = self.add(form)?;

        let name = self.name_form(page.id, form)?;
        let call = Stream::new(Dictionary::new(), format!("/{name} Do").into_bytes());
        let call = self.add(call)?;
        self.edit(page.id)?.set("Contents", call);

        Ok(())
    }

    /// Returns the resources of a page, its own or those of the nearest node above it.
    fn resources(&self, page: ObjectId) -> Dictionary {
        let mut node = self.dictionary(page);
        for _ in 0..MAX_TREE_DEPTH {
            let Some(dictionary) = node else {
                break;
            };
            if let Ok(resources) = dictionary.get(b"Resources")
                && let Object::Dictionary(resources) = self.resolve(resources)
            {
                return resources.clone();
            }

            let parent = dictionary.get(b"Parent").and_then(Object::as_reference);
            node = parent.ok().and_then(|parent| self.dictionary(parent));
        }

        Dictionary::new()
    }

    /// Adds a form to a page's resources under an unused name, and returns the name.
    pub(crate) fn name_form(&mut self, page: ObjectId, form: ObjectId) -> Result<String> {
        let resources = self.own_resources(page)?;
        let holder = match resources {
            ContentHolder::Page => {
                let page_dictionary = self.edit(page)?;
                match page_dictionary.get(b"Resources").and_then(Object::as_dict) {
                    Ok(resources) => resources.get(b"XObject").ok().cloned(),
                    Err(_) => None,
                }
            }
            ContentHolder::Object(id) => self.edit(id)?.get(b"XObject").ok().cloned(),
        };

        let shared = holder.as_ref().and_then(|object| match self.trace(object) {
            (Some(id), Object::Dictionary(_)) => Some(id),
            _ => None,
        });
        let forms = match shared {
            Some(id) => self.edit(id)?,
            None => {
                let resources = match resources {
                    ContentHolder::Object(id) => self.edit(id)?,
                    ContentHolder::Page => dictionary_at(self.edit(page)?, b"Resources")?,
                };
                dictionary_at(resources, b"XObject")?
            }
        };

        // An earlier mark, or the document itself, may use the name for another form.
        let mut name = format!("Hf{}", form.0);
        while forms
            .get(name.as_bytes())
            .is_ok_and(|taken| *taken != Object::Reference(form))
        {
            name.push('x');
        }

        forms.set(name.as_bytes(), Object::Reference(form));
        Ok(name)
    }

    /// Finds the dictionary that holds a page's resources, and makes a page refer directly to
    /// resources it only inherited: adding a key to the page would otherwise hide the inherited
    /// ones.
    fn own_resources(&mut self, page: ObjectId) -> Result<ContentHolder> {
        let mut node = page;
        for depth in 0..MAX_TREE_DEPTH {
            let Some(dictionary) = self.dictionary(node) else {
                break;
            };

            if let Ok(resources) = dictionary.get(b"Resources") {
                match self.trace(resources) {
                    (Some(id), Object::Dictionary(_)) => {
                        if depth > 0 {
                            self.edit(page)?.set("Resources", Object::Reference(id));
                        }
                        return Ok(ContentHolder::Object(id));
                    }
                    (None, Object::Dictionary(_)) if depth == 0 => return Ok(ContentHolder::Page),
                    (None, Object::Dictionary(inherited)) => {
                        // Shared by all pages below: moved to an object of its own, to which each
                        // page refers.
                        let inherited = inherited.clone();
                        let id = self.add(inherited)?;
                        self.edit(node)?.set("Resources", Object::Reference(id));
                        self.edit(page)?.set("Resources", Object::Reference(id));
                        return Ok(ContentHolder::Object(id));
                    }
                    _ => {}
                }
            }

            match dictionary.get(b"Parent").and_then(Object::as_reference) {
                Ok(parent) => node = parent,
                Err(_) => break,
            }
        }

        self.edit(page)?.set("Resources", Dictionary::new());
        Ok(ContentHolder::Page)
    }
}

enum ContentHolder {
    /// A direct dictionary in the page.
    Page,
    Object(ObjectId),
}

/// Returns the dictionary under a key, creating it if necessary.
pub(crate) fn dictionary_at<'a>(
    dictionary: &'a mut Dictionary,
    key: &[u8],
) -> Result<&'a mut Dictionary> {
    if !matches!(dictionary.get(key), Ok(Object::Dictionary(_))) {
        dictionary.set(key, Dictionary::new());
    }
    match dictionary.get_mut(key) {
        Ok(Object::Dictionary(inner)) => Ok(inner),
        _ => Err(other("a dictionary could not be made")),
    }
}

/// Formats a number for PDF content: no exponent, no superfluous digits.
fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "" | "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_exponential() {
        let written = [0.0, -0.0, 1.0, -0.5, 1e-9, 612.25].map(number);
        assert_eq!(written, ["0", "0", "1", "-0.5", "0", "612.25"]);
    }
}
