//! Fonts of typed signatures. The documents component embeds the same files that a signer's browser
//! loads, so the signature in the document looks like its preview.
//!
//! Caveat and Great Vibes are subsets: Latin with its extension A, and Cyrillic. Sacramento is
//! unmodified, because its name is reserved.

/// Style of a typed signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handwriting {
    /// Caveat, an everyday hand.
    Casual,
    /// Great Vibes, a copperplate hand.
    Formal,
    /// Sacramento, a hand of thin strokes.
    Light,
}

/// Extent of a font's letters, in units of the font size.
#[derive(Clone, Copy, Debug)]
pub struct LetterExtent {
    /// Height over the baseline.
    pub ascent: f32,
    /// Depth under the baseline.
    pub descent: f32,
}

impl Handwriting {
    /// All styles; the first is the default.
    pub const ALL: [Self; 3] = [Self::Casual, Self::Formal, Self::Light];

    /// Name in the signing form and the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Casual => "casual",
            Self::Formal => "formal",
            Self::Light => "light",
        }
    }

    /// Parses the name of a style.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|style| style.as_str() == name)
    }

    /// TrueType font.
    pub fn font(self) -> &'static [u8] {
        match self {
            Self::Casual => include_bytes!("../fonts/caveat.ttf"),
            Self::Formal => include_bytes!("../fonts/great-vibes.ttf"),
            Self::Light => include_bytes!("../fonts/sacramento.ttf"),
        }
    }

    /// Extent of the letters (`hhea` of the font).
    pub fn extent(self) -> LetterExtent {
        let (ascent, descent) = match self {
            Self::Casual => (0.96, 0.30),
            Self::Formal => (0.851, 0.401),
            Self::Light => (0.93, 0.53),
        };
        LetterExtent { ascent, descent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_styles_are_parsed() {
        for style in Handwriting::ALL {
            assert_eq!(Handwriting::parse(style.as_str()), Some(style));
            assert_eq!(style.font()[..4], [0, 1, 0, 0], "{style:?}");
        }
        assert_eq!(Handwriting::parse("bold"), None);
    }
}
