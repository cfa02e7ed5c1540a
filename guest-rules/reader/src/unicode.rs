//! Classification and decoding of characters.

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

/// Returns a text for comparisons: in lower case, with ligatures expanded, without white space and
/// invisible characters.
pub(crate) fn compact_text(text: &str) -> String {
    let mut compact = String::with_capacity(text.len());
    for character in text.chars() {
        match ligature(character) {
            Some(letters) => compact.push_str(letters),
            None if character.is_whitespace() || is_ignorable(character) => {}
            None => compact.extend(character.to_lowercase()),
        }
    }
    compact
}

/// Decodes a PDF text string: UTF-16 or UTF-8 with a byte order mark, otherwise PDFDocEncoding,
/// treated as Latin-1 except for the characters below.
pub(crate) fn text_string(bytes: &[u8]) -> String {
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
    fn text_strings_are_decoded_in_every_encoding() {
        assert_eq!(text_string(b"plain \x90"), "plain \u{2019}");
        assert_eq!(text_string(b"\xfe\xff\x00A\x20\xac"), "A\u{20ac}");
        assert_eq!(text_string(b"\xff\xfeA\x00"), "A");
        assert_eq!(text_string(b"\xef\xbb\xbf\xc3\xa9"), "\u{e9}");
        assert_eq!(text_string(b"\xfe\xff\xd8\x00"), "\u{fffd}");
    }
}
