//! Lexer of content streams: yields operators with their byte ranges.
//!
//! Made for hostile input: every position is checked, nothing recurses, and unknown bytes are
//! skipped.

use std::borrow::Cow;
use std::ops::Range;

/// An operand of an operator.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ContentOperand<'a> {
    Number(f64),
    /// Without the slash, `#xx` decoded.
    Name(Cow<'a, [u8]>),
    String(Cow<'a, [u8]>),
    /// Elements of an array, as positions in [`OperandStack::items`].
    Array(Range<usize>),
    /// Bytes of a dictionary, brackets included.
    Dict(&'a [u8]),
}

/// The operands of an operator. The buffer is reused for the next operator.
#[derive(Debug, Default)]
pub(crate) struct OperandStack<'a> {
    values: Vec<ContentOperand<'a>>,
    /// Strings and numbers of the arrays among the values, with nested arrays flattened.
    items: Vec<ContentOperand<'a>>,
}

/// The longest operand list has 33 values (`scn`); anything beyond the limit is noise.
const MAX_OPERANDS: usize = 64;

impl<'a> OperandStack<'a> {
    fn clear(&mut self) {
        self.values.clear();
        self.items.clear();
    }

    fn push(&mut self, value: ContentOperand<'a>) {
        if self.values.len() < MAX_OPERANDS {
            self.values.push(value);
        }
    }

    /// Returns the values in order.
    pub(crate) fn values(&self) -> &[ContentOperand<'a>] {
        &self.values
    }

    /// Returns the last `N` values as numbers. Viewers also use the values next to the operator
    /// when there are too many.
    pub(crate) fn numbers<const N: usize>(&self) -> Option<[f64; N]> {
        let start = self.values.len().checked_sub(N)?;
        let mut numbers = [0.0; N];
        for (number, value) in numbers.iter_mut().zip(self.values.get(start..)?) {
            match value {
                ContentOperand::Number(value) => *number = *value,
                _ => return None,
            }
        }

        Some(numbers)
    }

    /// Returns the last value.
    pub(crate) fn last(&self) -> Option<&ContentOperand<'a>> {
        self.values.last()
    }

    /// Returns the last value if it is a name.
    pub(crate) fn last_name(&self) -> Option<&[u8]> {
        match self.last()? {
            ContentOperand::Name(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the strings and numbers of an array value.
    pub(crate) fn items(&self, range: &Range<usize>) -> &[ContentOperand<'a>] {
        self.items.get(range.clone()).unwrap_or_default()
    }
}

/// An operator and its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ContentOperator<'a> {
    pub(crate) name: &'a [u8],
    /// From the first byte of its first operand to the last byte of its name. For an inline image,
    /// to the end of `EI`.
    pub(crate) range: Range<usize>,
}

/// Lexer of one content stream.
#[derive(Debug)]
pub(crate) struct ContentLexer<'a> {
    data: &'a [u8],
    position: usize,
}

impl<'a> ContentLexer<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { data, position: 0 }
    }

    /// Returns the next operator and stores its operands in `operands`.
    pub(crate) fn next(&mut self, operands: &mut OperandStack<'a>) -> Option<ContentOperator<'a>> {
        operands.clear();
        let mut start = None;
        loop {
            self.skip_space();
            let here = self.position;
            let first = self.peek()?;
            match first {
                b'0'..=b'9' | b'+' | b'-' | b'.' => {
                    operands.push(ContentOperand::Number(self.number()));
                }
                b'/' => operands.push(ContentOperand::Name(self.name())),
                b'(' => operands.push(ContentOperand::String(self.literal_string())),
                b'<' if self.peek_at(1) == Some(b'<') => {
                    operands.push(ContentOperand::Dict(self.dict()));
                }
                b'<' => operands.push(ContentOperand::String(self.hex_string())),
                b'[' => {
                    let array = self.array(&mut operands.items);
                    operands.push(array);
                }
                // A closing bracket without an opening one.
                b')' | b'>' | b']' | b'{' | b'}' => {
                    self.position += 1;
                    continue;
                }
                _ => {
                    let name = self.regular();
                    let start = start.unwrap_or(here);
                    if name == b"BI" {
                        self.skip_inline_image();
                    }

                    return Some(ContentOperator {
                        name,
                        range: start..self.position,
                    });
                }
            }

            // An edit replaces the operator with its operands, so the range begins at the first of them.
            start = start.or(Some(here));
        }
    }

    fn peek(&self) -> Option<u8> {
        self.data.get(self.position).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.data.get(self.position.checked_add(ahead)?).copied()
    }

    fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            if is_space(byte) {
                self.position += 1;
            } else if byte == b'%' {
                while self
                    .peek()
                    .is_some_and(|byte| byte != b'\n' && byte != b'\r')
                {
                    self.position += 1;
                }
            } else {
                break;
            }
        }
    }

    /// Reads a run of regular characters.
    fn regular(&mut self) -> &'a [u8] {
        let start = self.position;
        while self.peek().is_some_and(is_regular) {
            self.position += 1;
        }
        self.data.get(start..self.position).unwrap_or_default()
    }

    /// Reads a number as viewers do: a sign in the middle ends it, and the rest is dropped.
    fn number(&mut self) -> f64 {
        let mut negative = false;
        let mut whole = 0.0_f64;
        let mut scale = 0.0_f64;
        let mut digits_seen = false;

        let mut ended = false;
        while let Some(byte) = self.peek().filter(|byte| is_regular(*byte)) {
            match byte {
                b'0'..=b'9' if !ended => {
                    digits_seen = true;
                    if scale > 0.0 {
                        whole += f64::from(byte - b'0') * scale;
                        scale /= 10.0;
                    } else {
                        whole = whole * 10.0 + f64::from(byte - b'0');
                    }
                }
                b'.' if scale == 0.0 && !ended => scale = 0.1,
                b'-' if !digits_seen && !ended => negative = true,
                b'+' if !digits_seen && !ended => {}
                b'-' => ended = true,
                // Letters attached to a number start an operator: real files contain `0 0 1 rg0 g`.
                _ if byte.is_ascii_alphabetic() || byte == b'\'' || byte == b'"' => break,
                _ => ended = true,
            }

            self.position += 1;
        }

        if negative { -whole } else { whole }
    }

    fn name(&mut self) -> Cow<'a, [u8]> {
        self.position += 1;
        let raw = self.regular();
        if !raw.contains(&b'#') {
            return Cow::Borrowed(raw);
        }

        let mut decoded = Vec::with_capacity(raw.len());
        let mut rest = raw;
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            if byte == b'#'
                && let [high, low, after @ ..] = tail
                && let (Some(high), Some(low)) = (hex_digit(*high), hex_digit(*low))
            {
                decoded.push(high << 4 | low);
                rest = after;
            } else {
                decoded.push(byte);
            }
        }

        Cow::Owned(decoded)
    }

    fn literal_string(&mut self) -> Cow<'a, [u8]> {
        self.position += 1;
        let start = self.position;
        let mut depth = 1_usize;
        let mut plain = true;

        // Most strings contain no escapes and can be borrowed, so check that first.
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => {
                    plain = false;
                    self.position += 1;
                }
                b'\r' => plain = false,
                b'(' => depth += 1,
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                _ => {}
            }

            self.position += 1;
        }

        // A backslash as the last byte has moved the position past the end.
        self.position = self.position.min(self.data.len());
        let raw = self.data.get(start..self.position).unwrap_or_default();
        self.position = (self.position + 1).min(self.data.len());

        if plain {
            Cow::Borrowed(raw)
        } else {
            Cow::Owned(unescape(raw))
        }
    }

    fn hex_string(&mut self) -> Cow<'a, [u8]> {
        self.position += 1;
        let mut bytes = Vec::new();
        let mut high = None;
        while let Some(byte) = self.peek() {
            self.position += 1;
            if byte == b'>' {
                break;
            }
            let Some(digit) = hex_digit(byte) else {
                continue;
            };

            match high.take() {
                None => high = Some(digit),
                Some(high) => bytes.push(high << 4 | digit),
            }
        }

        // An odd count of digits is completed with a zero (ISO 32000-1, 7.3.4.3).
        if let Some(high) = high {
            bytes.push(high << 4);
        }

        Cow::Owned(bytes)
    }

    fn array(&mut self, items: &mut Vec<ContentOperand<'a>>) -> ContentOperand<'a> {
        let start = items.len();
        self.position += 1;
        loop {
            self.skip_space();
            let Some(byte) = self.peek() else { break };
            match byte {
                b']' => {
                    self.position += 1;
                    break;
                }
                b'0'..=b'9' | b'+' | b'-' | b'.' => {
                    items.push(ContentOperand::Number(self.number()))
                }
                b'(' => items.push(ContentOperand::String(self.literal_string())),
                b'<' if self.peek_at(1) == Some(b'<') => {
                    self.dict();
                }
                b'<' => items.push(ContentOperand::String(self.hex_string())),
                // Names and dictionaries in an array show no text, so they are only skipped.
                b'/' => {
                    self.name();
                }
                // `TJ` inside its own array: the closing bracket is missing.
                _ if is_regular(byte) => {
                    let before = self.position;
                    if matches!(self.regular(), b"TJ" | b"ET") {
                        self.position = before;
                        break;
                    }
                }
                _ => self.position += 1,
            }
        }

        ContentOperand::Array(start..items.len())
    }

    fn dict(&mut self) -> &'a [u8] {
        let start = self.position;
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'<' if self.peek_at(1) == Some(b'<') => {
                    depth += 1;
                    self.position += 2;
                }
                b'>' if self.peek_at(1) == Some(b'>') => {
                    depth = depth.saturating_sub(1);
                    self.position += 2;
                    if depth == 0 {
                        break;
                    }
                }
                // A bracket inside a string must not end the dictionary.
                b'(' => {
                    self.literal_string();
                }
                // In `<</A <41>>>` the first bracket closes the string.
                b'<' => {
                    self.hex_string();
                }
                _ => self.position += 1,
            }
        }

        self.data.get(start..self.position).unwrap_or_default()
    }

    /// Skips an inline image: starts after `BI` and ends after the matching `EI`.
    fn skip_inline_image(&mut self) {
        while let Some(byte) = self.peek() {
            // `ID` inside a string or a dictionary of the parameters begins no data.
            match byte {
                b'(' => {
                    self.literal_string();
                }
                b'<' if self.peek_at(1) == Some(b'<') => {
                    self.dict();
                }
                _ if is_regular(byte) => {
                    if self.regular() == b"ID" {
                        break;
                    }
                }
                _ => self.position += 1,
            }
        }

        // One white-space byte belongs to `ID`; the image data starts after it.
        self.position = (self.position + 1).min(self.data.len());
        while let Some(tail) = self.data.get(self.position..) {
            let Some(offset) = tail.windows(2).position(|pair| pair == b"EI") else {
                self.position = self.data.len();
                return;
            };

            let found = self.position + offset;
            self.position = found + 2;
            let space_before = found
                .checked_sub(1)
                .and_then(|before| self.data.get(before))
                .is_none_or(|byte| is_space(*byte));

            let after = self.data.get(self.position..).unwrap_or_default();
            if space_before && looks_like_content(after) {
                return;
            }
        }
    }
}

/// Returns whether the bytes after an `EI` look like content. Image data may contain `EI` too, but
/// after the real one a stretch of printable content follows.
fn looks_like_content(after: &[u8]) -> bool {
    after.first().is_none_or(|byte| is_space(*byte))
        && after
            .iter()
            .take(16)
            .all(|byte| is_space(*byte) || (0x20..0x7f).contains(byte))
}

fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte == b'\r' {
            // A line end inside a string counts as one line feed (ISO 32000-1, 7.3.4.2).
            rest.next_if_eq(&b'\n');
            bytes.push(b'\n');
            continue;
        }
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }

        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'b') => bytes.push(8),
            Some(b'f') => bytes.push(12),
            Some(b'\r') => {
                rest.next_if_eq(&b'\n');
            }
            Some(b'\n') | None => {}
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|byte| (b'0'..=b'7').contains(byte)) else {
                        break;
                    };
                    value = value * 8 + u32::from(digit - b'0');
                }

                // Overflow of the first digit is ignored (ISO 32000-1, 7.3.4.2).
                bytes.push(u8::try_from(value & 0xff).unwrap_or(0));
            }
            // The backslash before any other character is ignored (ISO 32000-1, 7.3.4.2).
            Some(other) => bytes.push(other),
        }
    }

    bytes
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 12 | b'\r' | b' ')
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte)
        && !matches!(
            byte,
            b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operators(data: &[u8]) -> Vec<(String, Vec<ContentOperand<'_>>, Range<usize>)> {
        let mut lexer = ContentLexer::new(data);
        let mut operands = OperandStack::default();
        let mut found = Vec::new();
        while let Some(operator) = lexer.next(&mut operands) {
            found.push((
                String::from_utf8_lossy(operator.name).into_owned(),
                operands.values().to_vec(),
                operator.range,
            ));
        }

        found
    }

    #[test]
    fn an_operation_range_spans_its_operands_and_operator() {
        let data = b"BT  /F1 12 Tf % size\n (Hi) Tj ET";
        let found = operators(data);
        let texts: Vec<_> = found
            .iter()
            .map(|(_, _, range)| String::from_utf8_lossy(&data[range.clone()]).into_owned())
            .collect();
        assert_eq!(texts, ["BT", "/F1 12 Tf", "(Hi) Tj", "ET"]);
    }

    #[test]
    fn malformed_numbers_are_parsed_leniently() {
        let found = operators(b"-.5 +3 --7 1-2 4. .25 n");
        let numbers: Vec<_> = found[0].1.clone();
        assert_eq!(
            numbers,
            [-0.5, 3.0, -7.0, 1.0, 4.0, 0.25].map(ContentOperand::Number)
        );
    }

    #[test]
    fn strings_are_unescaped() {
        let found = operators(b"(a\\(b\\)\\101\\\nc(d)) <4142 4> Tj");
        assert_eq!(
            found[0].1,
            [
                ContentOperand::String(Cow::Borrowed(b"a(b)Ac(d)")),
                ContentOperand::String(Cow::Borrowed(b"AB@")),
            ]
        );
    }

    #[test]
    fn names_and_dictionaries_are_parsed_as_operands() {
        let found = operators(b"/Span <</A <41>>> BDC");
        assert_eq!(found[0].1[1], ContentOperand::Dict(b"<</A <41>>>"));

        let found = operators(b"/Span <</ActualText (>>) /K <<>> >> BDC /A#20B gs");
        assert_eq!(
            found[0].1,
            [
                ContentOperand::Name(Cow::Borrowed(b"Span")),
                ContentOperand::Dict(b"<</ActualText (>>) /K <<>> >>"),
            ]
        );
        assert_eq!(found[1].1, [ContentOperand::Name(Cow::Borrowed(b"A B"))]);
    }

    #[test]
    fn an_inline_image_is_parsed_as_one_operator() {
        let found = operators(b"q BI /W 1 /H 1 ID \x00EI\xff EI\xfe\x01 EI Q (x) Tj");
        let names: Vec<_> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["q", "BI", "Q", "Tj"]);
    }

    #[test]
    fn truncated_content_ends_without_an_error() {
        for data in [
            &b"(never closed"[..],
            b"[ (a) 3",
            b"<41",
            b"<< /A",
            b"BI /W 1 ID xx",
            b"/",
            b"\\",
            b"( \\",
            b"1 2 3",
            b"))>>]]",
        ] {
            operators(data);
        }
    }
}
