//! Encodings of other programs that the strict parsers refuse (ITU-T X.690).

use std::borrow::Cow;

/// Limit on nested elements. Signatures with certificates and revocation lists have about 20.
const DEPTH: usize = 40;
/// Primitive and constructed octet strings.
const OCTETS: u8 = 0x04;
const OCTETS_IN_PARTS: u8 = 0x24;
const SEQUENCE: u8 = 0x30;
const GENERALIZED_TIME: u8 = 0x18;

/// Tag and length of an element.
struct ElementHeader {
    /// Bytes of the tag.
    tag: usize,
    /// Bytes of tag and length.
    size: usize,
    /// Bytes of the content; none for the indefinite form.
    length: Option<usize>,
    constructed: bool,
}

impl ElementHeader {
    fn read(bytes: &[u8]) -> Option<Self> {
        let first = *bytes.first()?;
        let mut tag = 1;
        // Tags above 30 take several bytes, each with its high bit set but the last (X.690, 8.1.2.4).
        if first & 0x1f == 0x1f {
            while bytes.get(tag)? & 0x80 != 0 {
                tag += 1;
            }
            tag += 1;
        }

        let short = *bytes.get(tag)?;
        let (length, size) = match short {
            // An indefinite length: two zero bytes end the content (X.690, 8.1.3.6).
            0x80 => (None, tag + 1),
            0x81..=0x84 => {
                let end = tag + 1 + usize::from(short & 0x7f);
                let digits = bytes.get(tag + 1..end)?;
                let length = digits
                    .iter()
                    .fold(0, |length, digit| length << 8 | usize::from(*digit));
                (Some(length), end)
            }
            // Four bytes reach 4 GiB, more than any document has.
            0x85.. => return None,
            short => (Some(usize::from(short)), tag + 1),
        };

        Some(Self {
            tag,
            size,
            length,
            constructed: first & 0x20 != 0,
        })
    }
}

/// Returns the first element of `bytes` with definite lengths throughout (X.690, 8.1.3), and with
/// octet strings in one piece. Elements that have both already keep their bytes: signed attributes
/// and certificates keep their signed bytes. Malformed and deeply nested input is returned unchanged.
pub fn definite(bytes: &[u8]) -> Cow<'_, [u8]> {
    match element(bytes, 0) {
        Some((Some(changed), _)) => Cow::Owned(changed),
        _ => Cow::Borrowed(bytes),
    }
}

/// Returns the first element, if it has to change, and the number of bytes that it has now.
fn element(bytes: &[u8], depth: usize) -> Option<(Option<Vec<u8>>, usize)> {
    let header = ElementHeader::read(bytes)?;
    // The input is untrusted, and deep nesting would overflow the stack. A primitive element needs a length.
    if depth > DEPTH || (header.length.is_none() && !header.constructed) {
        return None;
    }

    let content = match header.length {
        Some(length) => bytes.get(header.size..header.size.checked_add(length)?)?,
        None => bytes.get(header.size..)?,
    };
    if !header.constructed {
        return Some((None, header.size + content.len()));
    }

    let mut parts = Vec::new();
    let mut changed = header.length.is_none() || bytes[0] == OCTETS_IN_PARTS;
    let mut at = 0;
    loop {
        let rest = &content[at..];
        match header.length {
            Some(_) if rest.is_empty() => break,
            None if rest.starts_with(&[0, 0]) => {
                at += 2;
                break;
            }
            _ => {}
        }

        let (new, used) = element(rest, depth + 1)?;
        changed |= new.is_some();
        parts.push(new.map_or_else(|| Cow::Borrowed(&rest[..used]), Cow::Owned));

        at += used;
    }

    let used = header.size + at;
    // A definite element keeps its bytes, because signatures cover some of them exactly as they are.
    if !changed {
        return Some((None, used));
    }
    // DER has octet strings in one part only, so the parts become one.
    if bytes[0] == OCTETS_IN_PARTS {
        let mut whole = Vec::new();
        for part in parts {
            let header = ElementHeader::read(&part)?;
            if part[0] != OCTETS {
                return None;
            }
            whole.extend_from_slice(part.get(header.size..)?);
        }

        return Some((Some(encoded(&[OCTETS], &whole)), used));
    }

    Some((Some(encoded(&bytes[..header.tag], &parts.concat())), used))
}

fn encoded(tag: &[u8], content: &[u8]) -> Vec<u8> {
    let mut bytes = tag.to_vec();
    let length = content.len().to_be_bytes();
    let zeros = length.iter().take_while(|digit| **digit == 0).count();
    // DER demands the shortest form of a length (X.690, 10.1).
    match u8::try_from(content.len()) {
        Ok(short) if short < 0x80 => bytes.push(short),
        _ => {
            let digits = &length[zeros..];
            bytes.push(0x80 | digits.len().to_le_bytes()[0]);
            bytes.extend_from_slice(digits);
        }
    }

    bytes.extend_from_slice(content);
    bytes
}

/// Cuts the fractions of seconds from the times of a sequence, which RFC 3161, 2.4.2 permits and the
/// parser does not. Other input is returned unchanged.
pub fn without_fractions(bytes: &[u8]) -> Cow<'_, [u8]> {
    match whole_seconds(bytes) {
        Some(changed) => Cow::Owned(changed),
        None => Cow::Borrowed(bytes),
    }
}

fn whole_seconds(bytes: &[u8]) -> Option<Vec<u8>> {
    let outer = ElementHeader::read(bytes)?;
    let end = outer.size.checked_add(outer.length?)?;
    let mut rest = bytes.get(outer.size..end)?;

    let mut content = Vec::new();
    while !rest.is_empty() {
        let header = ElementHeader::read(rest)?;
        let end = header.size.checked_add(header.length?)?;
        let (whole, value) = (rest.get(..end)?, rest.get(header.size..end)?);
        let point = value.iter().position(|byte| *byte == b'.');
        match point {
            // Only times of this type can have fractions, which a point separates.
            Some(point) if rest[0] == GENERALIZED_TIME => {
                let seconds = [&value[..point], b"Z"].concat();
                content.extend(encoded(&[GENERALIZED_TIME], &seconds));
            }
            _ => content.extend_from_slice(whole),
        }

        rest = &rest[end..];
    }

    (bytes[0] == SEQUENCE).then(|| encoded(&[SEQUENCE], &content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indefinite_lengths_become_definite() {
        // A sequence of an integer, an octet string in two parts, and a context tag.
        let indefinite = [
            &[0x30, 0x80, 0x02, 0x01, 0x05][..],
            &[0x24, 0x80, 0x04, 0x02, 1, 2, 0x04, 0x01, 3, 0, 0],
            &[0xa0, 0x80, 0x30, 0x03, 0x02, 0x01, 0x07, 0, 0],
            &[0, 0],
        ];

        let expected = [
            &[0x30, 0x0f, 0x02, 0x01, 0x05][..],
            &[0x04, 0x03, 1, 2, 3],
            &[0xa0, 0x05, 0x30, 0x03, 0x02, 0x01, 0x07],
        ];
        let padded = [&indefinite.concat()[..], &[0; 9]].concat();
        assert_eq!(*definite(&padded), expected.concat());
        assert_eq!(*definite(&expected.concat()), expected.concat());
    }

    #[test]
    fn long_contents_have_their_length_in_several_bytes() {
        for size in [127, 128, 255, 256, 70_000] {
            let content = vec![7; size];
            let inner = encoded(&[OCTETS], &content);
            let indefinite = [&[0x30, 0x80][..], &inner, &[0, 0]].concat();
            let definite = definite(&indefinite);
            let header = ElementHeader::read(&definite).unwrap();
            assert_eq!(header.length, Some(inner.len()));
            assert!(definite.ends_with(&content));
        }
    }

    #[test]
    fn malformed_and_deep_elements_are_left_alone() {
        let deep = [0x30, 0x80].repeat(10_000);
        let cases: [&[u8]; 7] = [
            &[],
            &[0x30],
            &[0x30, 0x80, 0x02],
            &[0x04, 0x80, 0, 0],
            &[0x30, 0x85, 1, 1, 1, 1, 1],
            &[0x24, 0x80, 0x02, 0x01, 0x05, 0, 0],
            &deep,
        ];
        for bytes in cases {
            assert_eq!(*definite(bytes), *bytes);
            assert_eq!(*without_fractions(bytes), *bytes);
        }
    }

    #[test]
    fn fractions_of_seconds_are_cut() {
        let sequence = |time: &[u8]| {
            let content = [encoded(&[GENERALIZED_TIME], time), vec![0x02, 0x01, 0x05]];
            encoded(&[SEQUENCE], &content.concat())
        };
        let with = sequence(b"20261125120000.123Z");
        assert_eq!(*without_fractions(&with), sequence(b"20261125120000Z"));
        let without = sequence(b"20261125120000Z");
        assert_eq!(*without_fractions(&without), *without);
    }
}
