//! Classification and decoding of characters.

use unicode_normalization::char::{decompose_canonical, decompose_compatible};

/// Returns the letters of a ligature character in the block U+FB00 to U+FB06.
pub(crate) fn ligature(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        _ => return None,
    })
}

/// Returns whether a character is invisible and must be ignored in comparisons: soft hyphen,
/// zero-width characters and joiners, byte order mark, control characters.
pub(crate) fn is_ignorable(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{fffd}'
    ) || (character.is_control() && !character.is_whitespace())
}

/// Passes on a character as comparisons see it: decomposed, with full case folding, and with one character
/// for all apostrophes, one for all quotation marks, and one for all hyphens and dashes.
pub fn fold(character: char, mut push: impl FnMut(char)) {
    if character.is_ascii() {
        push(character.to_ascii_lowercase());
        return;
    }

    let mut folded = |part: char| match part {
        '\u{2018}'..='\u{201b}' | '\u{2bc}' | '\u{2032}' | '\u{b4}' | '\u{60}' => push('\''),
        '\u{201c}'..='\u{201f}' | '\u{ab}' | '\u{bb}' | '\u{2033}' => push('"'),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => push('-'),
        // To upper case first: that is where "ß" becomes two letters and a final sigma any sigma.
        part => part
            .to_uppercase()
            .flat_map(char::to_lowercase)
            .for_each(&mut push),
    };

    // Programs write Arabic letters by their forms in a word.
    if matches!(character, '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}') {
        decompose_compatible(character, &mut folded);
    } else {
        decompose_canonical(character, &mut folded);
    }
}

/// Returns whether a character is written from right to left.
#[must_use]
pub fn is_right_to_left(character: char) -> bool {
    matches!(character, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Returns a text for comparisons: folded as by [`fold`], with ligatures expanded, without white space and
/// invisible characters.
pub(crate) fn compact_text(text: &str) -> String {
    let mut compact = String::with_capacity(text.len());
    for character in text.chars() {
        match ligature(character) {
            Some(letters) => compact.push_str(letters),
            None if character.is_whitespace() || is_ignorable(character) => {}
            None => fold(character, |part| compact.push(part)),
        }
    }

    compact
}

/// Decodes a PDF text string: UTF-16 or UTF-8 with a byte order mark, otherwise PDFDocEncoding,
/// treated as Latin-1 except for the characters below.
pub(crate) fn text_string(bytes: &[u8]) -> String {
    // The marks come first, because every sequence of bytes is valid in the last encoding.
    match bytes {
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes.iter().map(|byte| doc_encoding(*byte)).collect(),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.as_chunks::<2>().0.iter().map(|pair| unit(*pair));
    char::decode_utf16(units)
        .map(|decoded| decoded.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// Decodes the characters of PDFDocEncoding that differ from Latin-1 and occur in prose.
fn doc_encoding(byte: u8) -> char {
    match byte {
        0x80 => '\u{2022}',
        0x83 => '\u{2026}',
        0x84 => '\u{2014}',
        0x85 => '\u{2013}',
        0x8c => '\u{201e}',
        0x8d => '\u{201c}',
        0x8e => '\u{201d}',
        0x8f => '\u{2018}',
        0x90 => '\u{2019}',
        0x91 => '\u{201a}',
        0x92 => '\u{2122}',
        0x93 => '\u{fb01}',
        0x94 => '\u{fb02}',
        0xa0 => '\u{20ac}',
        other => char::from(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_look_alike_are_folded_to_the_same_text() {
        for (one, other) in [
            ("c\u{f3}nyuge", "co\u{301}nyuge"),
            ("STRASSE", "stra\u{df}e"),
            ("Buyer's \"car\"", "Buyer\u{2019}s \u{201c}car\u{201d}"),
            ("co-buyer", "co\u{2011}buyer"),
            ("\u{3a3}\u{39f}\u{3a3}", "\u{3c3}\u{3bf}\u{3c2}"),
            ("\u{628}", "\u{fe91}"),
        ] {
            assert_eq!(compact_text(one), compact_text(other));
        }

        assert_ne!(compact_text("resume"), compact_text("r\u{e9}sum\u{e9}"));
    }

    #[test]
    fn text_strings_are_decoded_in_every_encoding() {
        assert_eq!(text_string(b"plain \x90"), "plain \u{2019}");
        assert_eq!(text_string(b"\xfe\xff\x00A\x20\xac"), "A\u{20ac}");
        assert_eq!(text_string(b"\xff\xfeA\x00"), "A");
        assert_eq!(text_string(b"\xef\xbb\xbf\xc3\xa9"), "\u{e9}");
        assert_eq!(text_string(b"\xfe\xff\xd8\x00"), "\u{fffd}");
    }
}
