//! Cells of tables that people open in a spreadsheet.

/// Returns a value that spreadsheets do not run as a formula: with an apostrophe before it, which they do not show. Some skip
/// spaces, read full-width forms as the usual ones, or take `|` and `%` for old macros (OWASP, CSV injection).
pub fn inert(value: &str) -> String {
    // Signers choose names and values, so a partner's export can carry a formula of an attacker.
    let first = value.chars().find(|one| *one != ' ' && *one != '\u{3000}');
    let is_dangerous = matches!(
        first,
        Some(
            '=' | '+'
                | '-'
                | '@'
                | '|'
                | '%'
                | '\t'
                | '\r'
                | '\n'
                | '\u{ff1d}'
                | '\u{ff0b}'
                | '\u{ff0d}'
                | '\u{ff20}'
                | '\u{ff5c}'
                | '\u{ff05}'
        )
    );
    if is_dangerous {
        format!("'{value}")
    } else {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_no_formula() {
        for value in [
            "=1+1",
            "+49",
            "-1",
            "@a",
            "|cmd",
            "%0A",
            "\tx",
            "\rx",
            "\nx",
            "＝1",
            "＋1",
            "－1",
            "＠a",
            "  =1",
            "\u{3000}=1",
        ] {
            assert_eq!(inert(value), format!("'{value}"));
        }

        for value in ["deal-1", "", " deal", "1 + 1"] {
            assert_eq!(inert(value), value);
        }
    }
}
