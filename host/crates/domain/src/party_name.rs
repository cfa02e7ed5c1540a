//! Names of organizations and parties, which people compare by eye.
//!
//! Two names that look alike are one name: parties are chosen, and trusted, by what a page or a mail shows.

use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};
use unicode_security::skeleton;

/// Reason why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    #[error("a name is one line with something on it")]
    Empty,
    #[error("a name has no invisible characters")]
    Invisible,
}

/// Returns a name in the form in which it is stored: compatibility composed (NFKC), with single spaces.
///
/// # Errors
/// Nothing is left, or it has characters that a page does not show: those of control and format (such as marks of
/// direction), private ones and unassigned ones.
pub fn normalized(text: &str) -> Result<String, NameProblem> {
    let composed: String = text.nfkc().collect();
    if composed.chars().any(is_invisible) {
        return Err(NameProblem::Invisible);
    }

    let words: Vec<&str> = composed.split_whitespace().collect();
    if words.is_empty() {
        return Err(NameProblem::Empty);
    }

    Ok(words.join(" "))
}

fn is_invisible(character: char) -> bool {
    // Letters and signs that have no ink: fillers of Hangul, and the empty cell of Braille.
    let is_blank = matches!(
        character,
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}'
    );
    is_blank
        || matches!(
            character.general_category(),
            GeneralCategory::Control
                | GeneralCategory::Format
                | GeneralCategory::PrivateUse
                | GeneralCategory::Unassigned
                | GeneralCategory::LineSeparator
                | GeneralCategory::ParagraphSeparator
        )
}

/// Whether two names look alike: equal without regard to case, spaces and letters of other scripts that have the same
/// shape (UTS 39, section 4). Capitals have other look-alikes than small letters, such as I and l, so the shapes of both
/// are compared.
pub fn look_alike(one: &str, other: &str) -> bool {
    let small = |name: &str| shape(&name.to_lowercase());
    small(one) == small(other) || small(&shape(one)) == small(&shape(other))
}

/// Shape of a name: its letters without their differences of script, and without spaces.
fn shape(name: &str) -> String {
    let composed: String = name.nfkc().collect();
    let shown = skeleton(&composed);
    shown.filter(|one| !one.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_stored_in_one_form() {
        assert_eq!(
            normalized("  Second \u{a0} Example\tBank "),
            Err(NameProblem::Invisible)
        );
        assert_eq!(
            normalized("  Second \u{a0} Example Bank ").as_deref(),
            Ok("Second Example Bank")
        );
        assert_eq!(normalized("Ｂａｎｋ").as_deref(), Ok("Bank"), "full width");
        assert_eq!(normalized("Cafe\u{301}").as_deref(), Ok("Café"));
        assert_eq!(normalized("بنك المثال").as_deref(), Ok("بنك المثال"));
        assert_eq!(normalized(" "), Err(NameProblem::Empty));
    }

    #[test]
    fn characters_that_no_page_shows_are_refused() {
        for hidden in [
            "Ba\u{200b}nk",
            "Bank\u{202e}",
            "Ba\u{ad}nk",
            "Bank\u{7}",
            "Bank\u{e000}",
            "Bank\u{2028}",
            "\u{3164}",
            "\u{2800}",
        ] {
            assert_eq!(
                normalized(hidden),
                Err(NameProblem::Invisible),
                "{hidden:?}"
            );
        }
    }

    #[test]
    fn letters_of_the_same_shape_make_the_same_name() {
        for other in [
            "second example bank",
            "SECOND EXAMPLE BANK",
            "SecondExample Bank",
            // Cyrillic.
            "Sеcоnd Exаmplе Bаnk",
            // Greek.
            "Secοnd Example Bank",
            "Second Exampl\u{435} Bank",
        ] {
            assert!(look_alike("Second Example Bank", other), "{other}");
        }

        assert!(look_alike("Illinois Trust", "lllinois Trust"));
        assert!(look_alike("First Illinois Bank", "FIRST ILLINOIS BANK"));

        for other in [
            "Second Example Banks",
            "Third Example Bank",
            "Second Example Bunk",
        ] {
            assert!(!look_alike("Second Example Bank", other), "{other}");
        }
    }
}
