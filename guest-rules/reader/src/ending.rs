//! How the content of a page ends: its open states would hold all later drawing.

use crate::content::{ContentLexer, OperandStack};

/// What a content stream leaves open at its end.
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
            ending.is_inside_image = false;
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
                _ => {}
            }
        }
        ending.is_cut = !operands.values().is_empty();
        ending
    }

    /// Returns whether readers may disagree about where the content ends.
    #[must_use]
    pub fn is_unclear(&self) -> bool {
        self.is_cut || self.is_inside_image || self.open_marks > 0
    }
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
}
