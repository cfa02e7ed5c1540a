//! Font facts for the interpreter: how strings split into codes, and the advance, the text and the
//! box height of each code.

mod fallback;
mod metrics;

use std::collections::HashMap;
use std::sync::Arc;

use hayro_font::hayro_cmap::{self, BfString};
use hayro_font::{
    CMapResolverFn, Font, FontCache, FontGlyph, FontQuery, FontResolverFn, GlyphId, StandardFont,
};
use hayro_syntax::object::{Dict, Name, ObjectIdentifier};

use crate::unicode::compact_text;
use fallback::UnicodeFallback;
use metrics::FontMetrics;

/// A font, reduced to the needs of the interpreter.
pub(crate) struct FontFace<'a> {
    font: Option<Font<'a>>,
    is_composite: bool,
    pub(crate) is_vertical: bool,
    pub(crate) metrics: FontMetrics,
    fallback: UnicodeFallback,
    /// Meanings of codes of one byte, by code.
    single: Option<Box<[Option<CodeFacts>; 256]>>,
    /// Meanings of longer codes.
    codes: HashMap<(u32, u8), CodeFacts>,
}

/// Meaning of a character code; lengths in ems (thousandths of text space times 1000).
#[derive(Debug, Clone)]
pub(crate) struct CodeFacts {
    pub(crate) text: Box<str>,
    /// The text for comparisons, see [`compact_text`].
    pub(crate) compact: Box<str>,
    /// Advance along the baseline: to the right, or downwards (negative) in a vertical font.
    pub(crate) advance: f64,
    /// Offset from the pen to the origin of the glyph.
    pub(crate) displacement: (f64, f64),
    /// Whether word spacing applies (a one-byte code 32, ISO 32000-1, 9.3.3).
    pub(crate) is_word_space: bool,
}

impl<'a> FontFace<'a> {
    fn new(dict: &Dict<'a>, loader: &FontLoader<'a>) -> Self {
        let subtype = dict.get::<Name<'_>>("Subtype");
        let is_composite = subtype.as_deref() == Some(b"Type0");
        // Viewers show text in an unreadable font with a
        // substitute, so its codes and widths count here as well.
        let font = loader
            .cache
            .font(dict, &loader.fonts, &loader.cmaps)
            .or_else(|| {
                loader
                    .cache
                    .standard_font(StandardFont::Helvetica, &loader.fonts)
            });

        Self {
            is_vertical: font.as_ref().is_some_and(|font| !font.is_horizontal()),
            font,
            is_composite,
            metrics: FontMetrics::of(dict),
            fallback: UnicodeFallback::of(dict, is_composite),
            single: None,
            codes: HashMap::new(),
        }
    }

    /// Returns the code at the start of `bytes` and its length; `None` at the end of the string.
    pub(crate) fn next_code(&self, bytes: &[u8]) -> Option<(u32, usize)> {
        let first = *bytes.first()?;
        let Some(font) = &self.font else {
            return Some((u32::from(first), 1));
        };
        // Each code takes one byte at least.
        // A broken encoding would otherwise never reach the end of the string.
        let (code, length) = font.read_code(bytes, 0);
        Some((code, length.clamp(1, bytes.len())))
    }

    /// Returns the meaning of a code, computed once per font.
    pub(crate) fn facts(&mut self, code: u32, code_bytes: u8) -> &CodeFacts {
        let Self {
            font,
            fallback,
            is_composite,
            single,
            codes,
            ..
        } = self;
        let font = font.as_ref();

        let meaning = || meaning(font, fallback, *is_composite, (code, code_bytes));
        // Most fonts have codes of one byte. An array answers faster than a map, and each glyph asks.
        if code_bytes == 1 {
            let single = single.get_or_insert_with(|| Box::new([const { None }; 256]));
            if let Some(known) = single.get_mut(code as usize) {
                return known.get_or_insert_with(meaning);
            }
        }

        codes.entry((code, code_bytes)).or_insert_with(meaning)
    }
}

fn meaning(
    font: Option<&Font<'_>>,
    fallback: &mut UnicodeFallback,
    is_composite: bool,
    (code, code_bytes): (u32, u8),
) -> CodeFacts {
    // Word spacing applies to the code and not to the character (ISO 32000-1, 9.3.3).
    let is_word_space = code == 32 && code_bytes == 1;
    let Some(font) = font else {
        let text = fallback.simple(code);
        return CodeFacts {
            compact: compact_text(&text).into(),
            text,
            advance: 0.5,
            displacement: (0.0, 0.0),
            is_word_space,
        };
    };

    let advance = font.code_advance(code);
    let displacement = font.origin_displacement(code);
    let along = if font.is_horizontal() {
        advance.x
    } else {
        advance.y
    };

    let text = unicode(font, fallback, is_composite, code, code_bytes);
    CodeFacts {
        compact: compact_text(&text).into(),
        text,
        advance: finite(along / 1000.0),
        displacement: (
            finite(displacement.x / 1000.0),
            finite(displacement.y / 1000.0),
        ),
        is_word_space,
    }
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

fn unicode(
    font: &Font<'_>,
    fallback: &mut UnicodeFallback,
    is_composite: bool,
    code: u32,
    code_bytes: u8,
) -> Box<str> {
    let glyph_id = font.map_code(code);
    let glyph = font.glyph(glyph_id, code);
    let known = match &glyph {
        FontGlyph::Outline(glyph) => glyph.as_unicode(),
        FontGlyph::Type3(glyph) => glyph.as_unicode(),
    };
    // U+0000 is how broken maps name a missing character, so the fallback gets its turn.
    match known {
        Some(BfString::Char(character)) if character != '\0' => character.to_string().into(),
        Some(BfString::String(text)) if !text.is_empty() => text.into(),
        _ if is_composite => fallback.composite(code, code_bytes, glyph_id, || match &glyph {
            FontGlyph::Outline(glyph) => glyph.font_data().map(|data| data.data),
            FontGlyph::Type3(_) => None,
        }),
        _ => fallback.simple(code),
    }
}

/// Limit on loaded fonts: fonts in direct dictionaries are not cached and could pile up.
const MAX_FACES: usize = 10_000;

struct FontLoader<'a> {
    cache: FontCache<'a>,
    fonts: FontResolverFn,
    cmaps: CMapResolverFn,
}

/// Index of a font in a [`FontTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FontIndex(usize);

/// All fonts of a document that were used so far.
pub(crate) struct FontTable<'a> {
    loader: FontLoader<'a>,
    faces: Vec<FontFace<'a>>,
    by_object: HashMap<ObjectIdentifier, FontIndex>,
}

impl<'a> FontTable<'a> {
    pub(crate) fn new() -> Self {
        Self {
            loader: FontLoader {
                cache: FontCache::new(),
                // Only widths and names of a substitute are used, so the choice hardly matters.
                fonts: Arc::new(|query| match query {
                    FontQuery::Standard(font) => Some(font.get_font_data()),
                    FontQuery::Fallback(query) => Some(query.pick_standard_font().get_font_data()),
                }),
                cmaps: Arc::new(hayro_cmap::load_embedded),
            },
            faces: Vec::new(),
            by_object: HashMap::new(),
        }
    }

    /// Returns the font under `name` in a `/Font` resource dictionary.
    pub(crate) fn find(&mut self, fonts: &Dict<'a>, name: &[u8]) -> Option<FontIndex> {
        let object = fonts.get_ref(name).map(ObjectIdentifier::from);
        self.get(object, || fonts.get::<Dict<'a>>(name))
    }

    /// Returns the font of an object, or of a direct dictionary.
    pub(crate) fn get(
        &mut self,
        object: Option<ObjectIdentifier>,
        dict: impl FnOnce() -> Option<Dict<'a>>,
    ) -> Option<FontIndex> {
        if let Some(known) = object.and_then(|object| self.by_object.get(&object)) {
            return Some(*known);
        }
        // Text without a font is skipped, as for a font that does not exist.
        if self.faces.len() >= MAX_FACES {
            return None;
        }

        let index = FontIndex(self.faces.len());
        self.faces.push(FontFace::new(&dict()?, &self.loader));
        if let Some(object) = object {
            self.by_object.insert(object, index);
        }

        Some(index)
    }

    pub(crate) fn face_mut(&mut self, index: FontIndex) -> Option<&mut FontFace<'a>> {
        self.faces.get_mut(index.0)
    }
}

impl std::fmt::Debug for FontTable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FontTable")
            .field("faces", &self.faces.len())
            .finish_non_exhaustive()
    }
}

/// Returns the index of a [`GlyphId`], for lookups in the embedded font.
fn glyph_index(glyph: GlyphId) -> u32 {
    glyph.to_u32()
}
