//! Text of a code when neither `/ToUnicode` nor the glyph name provides it.

use std::collections::HashMap;

use hayro_font::hayro_cmap::{self, BfString, CMap, CMapName, CidFamily};
use hayro_font::{FontData, GlyphId};
use hayro_syntax::object::{Array, Dict, Name, Object, Stream, String as PdfString};
use skrifa::MetadataProvider;

use super::glyph_index;

/// Guesses in order of preference; each table is built on first use.
pub(crate) struct UnicodeFallback {
    /// Whether the codes are UTF-16 (`UniGB-UCS2-H`, or `/ToUnicode /Identity-H`).
    codes_are_unicode: bool,
    /// Maps from code to CID and from CID to Unicode, for the registered Adobe collections.
    collection: Option<(CMap, CMap)>,
    /// Map from glyph to character of the embedded font.
    reverse: Option<HashMap<u32, char>>,
}

impl UnicodeFallback {
    pub(crate) fn of(font: &Dict<'_>, is_composite: bool) -> Self {
        let encoding = font.get::<Name<'_>>("Encoding");
        let to_unicode = font.get::<Name<'_>>("ToUnicode");
        let says_unicode = |name: &Name<'_>| {
            name.as_str().starts_with("Uni")
                && ["UCS2", "UTF16"]
                    .iter()
                    .any(|form| name.as_str().contains(form))
        };

        Self {
            codes_are_unicode: is_composite
                && (encoding.as_ref().is_some_and(says_unicode)
                    || to_unicode.is_some_and(|name| name.as_str().starts_with("Identity"))),
            collection: if is_composite { collection(font) } else { None },
            reverse: None,
        }
    }

    /// Returns the text of a code in a simple font: the common encodings agree with Latin-1 for the
    /// characters that matter.
    pub(crate) fn simple(&self, code: u32) -> Box<str> {
        char::from_u32(code)
            .filter(|character| !character.is_control())
            .map(String::from)
            .unwrap_or_default()
            .into()
    }

    pub(crate) fn composite(
        &mut self,
        code: u32,
        code_bytes: u8,
        glyph: GlyphId,
        font_data: impl FnOnce() -> Option<FontData>,
    ) -> Box<str> {
        if self.codes_are_unicode {
            return utf16_code(code, code_bytes).into();
        }

        // The collections are published tables.
        // The map of the embedded font comes last: it can name several characters.
        if let Some((encoding, unicode)) = &self.collection
            && let Some(cid) = encoding.lookup_cid_code(code, code_bytes)
        {
            match unicode.lookup_bf_string(cid) {
                Some(BfString::Char(character)) => return character.to_string().into(),
                Some(BfString::String(text)) => return text.into(),
                None => {}
            }
        }

        let reverse = self
            .reverse
            .get_or_insert_with(|| font_data().map(reverse_map).unwrap_or_default());
        reverse
            .get(&glyph_index(glyph))
            .map(char::to_string)
            .unwrap_or_default()
            .into()
    }
}

fn utf16_code(code: u32, code_bytes: u8) -> String {
    let units = match code_bytes {
        4 => vec![(code >> 16) as u16, (code & 0xffff) as u16],
        _ => vec![(code & 0xffff) as u16],
    };
    // Half of a surrogate pair is no character.
    char::decode_utf16(units).filter_map(Result::ok).collect()
}

fn collection(font: &Dict<'_>) -> Option<(CMap, CMap)> {
    let descendant = font
        .get::<Array<'_>>("DescendantFonts")?
        .iter::<Dict<'_>>()
        .next()?;
    let system = descendant.get::<Dict<'_>>("CIDSystemInfo")?;
    let registry = system.get::<PdfString<'_>>("Registry")?;
    let ordering = system.get::<PdfString<'_>>("Ordering")?;
    let family = CidFamily::from_registry_ordering(registry.as_bytes(), ordering.as_bytes());
    // A font with an unregistered collection has no such table, and the embedded font answers alone.
    let unicode = CMap::parse(
        hayro_cmap::load_embedded(family.ucs2_cmap()?)?,
        hayro_cmap::load_embedded,
    )?;

    let encoding = match font.get::<Object<'_>>("Encoding")? {
        Object::Name(name) => match CMapName::from_bytes(name.as_ref()) {
            CMapName::IdentityH => CMap::identity_h(),
            CMapName::IdentityV => CMap::identity_v(),
            other => CMap::parse(hayro_cmap::load_embedded(other)?, hayro_cmap::load_embedded)?,
        },
        Object::Stream(stream) => parse_stream(&stream)?,
        _ => return None,
    };

    Some((encoding, unicode))
}

fn parse_stream(stream: &Stream<'_>) -> Option<CMap> {
    CMap::parse(&stream.decoded_data().ok()?, hayro_cmap::load_embedded)
}

/// Inverts the character map. The first character of each glyph wins, as later ones are mostly
/// compatibility forms.
fn reverse_map(data: FontData) -> HashMap<u32, char> {
    let mut map = HashMap::new();
    if let Ok(font) = skrifa::FontRef::from_index(data.as_ref().as_ref(), 0) {
        for (character, glyph) in font.charmap().mappings() {
            if let Some(character) = char::from_u32(character) {
                map.entry(glyph.to_u32()).or_insert(character);
            }
        }
    }

    map
}
