//! How the content of a page ends: its open states would hold all later drawing.

use crate::content::{ContentLexer, ContentOperand, OperandStack};

/// Unknown operators that all readers skip. MuPDF gives up on a content stream after 100 of them.
const MAX_UNKNOWN_OPERATORS: usize = 50;

/// Constructs that a content stream leaves open at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContentEnding {
    /// End of the last complete operator.
    pub complete: usize,
    /// Graphics states saved by `q` and not restored.
    pub open_states: usize,
    /// `Q` without a `q`.
    pub surplus_restores: usize,
    /// Marked content that is not ended.
    pub open_marks: usize,
    /// The content ends inside a text object.
    pub is_inside_text: bool,
    /// The content ends inside an inline image.
    pub is_inside_image: bool,
    /// Operands without an operator follow the last operator, as in a string that is not closed.
    pub is_cut: bool,
    /// A dictionary without an end, or with something else than a name for its first key, holds operators, which
    /// some readers draw.
    pub has_broken_dictionary: bool,
    /// Operators that ISO 32000-1 (annex A) does not know.
    pub unknown_operators: usize,
}

impl ContentEnding {
    /// Reads content to its end.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        let mut ending = Self::default();
        let mut lexer = ContentLexer::new(content);
        let mut operands = OperandStack::default();
        while let Some(operator) = lexer.next(&mut operands) {
            ending.complete = operator.range.end;
            // An image without an end takes all the rest, so only the last operator can be one.
            ending.is_inside_image = false;
            ending.has_broken_dictionary |= has_broken_dictionary(&operands);

            match operator.name {
                b"q" => ending.open_states += 1,
                b"Q" if ending.open_states > 0 => ending.open_states -= 1,
                b"Q" => ending.surplus_restores += 1,
                b"BT" => ending.is_inside_text = true,
                b"ET" => ending.is_inside_text = false,
                b"BMC" | b"BDC" => ending.open_marks += 1,
                b"EMC" => ending.open_marks = ending.open_marks.saturating_sub(1),
                b"BI" => {
                    let image = content.get(operator.range).unwrap_or_default();
                    ending.is_inside_image = !image.ends_with(b"EI");
                }
                name if !is_operator(name) => ending.unknown_operators += 1,
                _ => {}
            }
        }

        ending.is_cut = !operands.values().is_empty();
        ending.has_broken_dictionary |= has_broken_dictionary(&operands);
        ending
    }

    /// Returns whether readers may disagree about where the content ends.
    #[must_use]
    pub fn is_unclear(&self) -> bool {
        self.is_cut
            || self.is_inside_image
            || self.open_marks > 0
            || self.unknown_operators > MAX_UNKNOWN_OPERATORS
    }
}

fn has_broken_dictionary(operands: &OperandStack<'_>) -> bool {
    operands.values().iter().any(|operand| {
        let ContentOperand::Dict(dictionary) = operand else {
            return false;
        };

        let inside = dictionary.strip_prefix(b"<<").unwrap_or_default();
        let first = inside.trim_ascii_start().first();
        let is_sound = dictionary.ends_with(b">>") && matches!(first, Some(b'/' | b'>' | b'%'));

        // Nothing is lost with a dictionary that is merely cut.
        !is_sound
            && ContentLexer::new(inside)
                .next(&mut OperandStack::default())
                .is_some()
    })
}

/// Returns whether it is an operator of content that the other branches do not look at.
fn is_operator(name: &[u8]) -> bool {
    matches!(
        name,
        b"b" | b"B" | b"b*" | b"B*" | b"BX" | b"c" | b"cm" | b"cs" | b"CS" | b"d" | b"d0" | b"d1"
            | b"Do" | b"DP" | b"EX" | b"f" | b"F" | b"f*" | b"g" | b"G" | b"gs" | b"h" | b"i"
            | b"j" | b"J" | b"k" | b"K" | b"l" | b"m" | b"M" | b"MP" | b"n" | b"re" | b"rg"
            | b"RG" | b"ri" | b"s" | b"S" | b"sc" | b"SC" | b"scn" | b"SCN" | b"sh" | b"T*"
            | b"Tc" | b"Td" | b"TD" | b"Tf" | b"Tj" | b"TJ" | b"TL" | b"Tm" | b"Tr" | b"Ts"
            | b"Tw" | b"Tz" | b"v" | b"w" | b"W" | b"W*" | b"y" | b"'" | b"\""
            // Operands that are words.
            | b"true" | b"false" | b"null"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_that_is_closed_leaves_nothing_open() {
        let ending = ContentEnding::of(b"q BT (a) Tj ET /A BMC EMC BI /W 1 ID x EI Q % end");
        assert!(!ending.is_unclear(), "{ending:?}");
        assert_eq!((ending.open_states, ending.surplus_restores), (0, 0));
    }

    #[test]
    fn everything_that_is_left_open_is_found() {
        assert_eq!(ContentEnding::of(b"q q Q Q Q").surplus_restores, 1);
        assert!(ContentEnding::of(b"BT (a) Tj").is_inside_text);
        assert_eq!(ContentEnding::of(b"/OC /M BDC /A BMC").open_marks, 2);
        assert!(ContentEnding::of(b"BI /W 1 ID xx").is_inside_image);

        let cut = ContentEnding::of(b"(a) Tj [(b) 12 (de");
        assert!(cut.is_cut);
        assert_eq!(cut.complete, 6);
    }

    #[test]
    fn operators_inside_a_broken_dictionary_are_found() {
        for content in [
            &b"ET<<\nBT (a) Tj ET"[..],
            b"/P <<BT (a) Tj>> BDC",
            b"/P <</A 1 BDC",
        ] {
            assert!(
                ContentEnding::of(content).has_broken_dictionary,
                "{content:?}"
            );
        }

        let sound = ContentEnding::of(b"/P <</A <</B 1>>>> BDC /Q << >> BDC EMC EMC");
        assert!(!sound.has_broken_dictionary);
        assert!(!ContentEnding::of(b"S <</A (").has_broken_dictionary);
    }

    #[test]
    fn content_with_many_unknown_operators_is_unclear() {
        assert!(!ContentEnding::of(&b"0 0 m 1 1 l S foo ".repeat(50)).is_unclear());
        assert!(ContentEnding::of(&b"foo ".repeat(51)).is_unclear());
    }
}
