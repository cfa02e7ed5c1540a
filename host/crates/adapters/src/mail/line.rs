//! User-supplied text made safe for a single line of a mail.

/// Replaces line breaks, control characters and characters that change the text direction.
pub(super) fn one_line(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|character| {
            // A space and not nothing, so that words on two lines stay two words.
            if is_unprintable(character) {
                ' '
            } else {
                character
            }
        })
        .collect();

    joined_words(&plain)
}

/// Like [`one_line`], truncated to `limit` characters.
pub(super) fn short_line(text: &str, limit: usize) -> String {
    let line = one_line(text);
    match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// Returns a file name for the document, without characters that file systems reject.
pub(super) fn file_name(document: &str) -> String {
    let plain: String = one_line(document)
        .chars()
        .map(|character| match character {
            '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' | ';' => ' ',
            other => other,
        })
        .take(80)
        .collect();
    // A leading point would hide the file, and a trailing one is dropped by some systems.
    let name = joined_words(plain.trim_matches(['.', ' ']));
    if name.is_empty() {
        return "document.pdf".to_owned();
    }

    format!("{name}.pdf")
}

fn joined_words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_unprintable(character: char) -> bool {
    let turns_direction = matches!(
        character,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    character.is_control() || turns_direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_name_is_reduced_to_one_line() {
        let name = "Ann\r\nBcc: all@example.com";
        assert_eq!(one_line(name), "Ann Bcc: all@example.com");
        assert_eq!(one_line("a\u{202e}b\u{0}c\t d\u{85}e"), "a b c d e");
        assert_eq!(one_line(" \r\n "), "");
    }

    #[test]
    fn a_long_display_name_is_truncated() {
        assert_eq!(short_line(&"é".repeat(9), 8), format!("{}…", "é".repeat(8)));
        assert_eq!(short_line(&"é".repeat(8), 8), "é".repeat(8));
    }

    #[test]
    fn an_attachment_is_named_after_the_document() {
        for (document, file) in [
            ("Contract 17", "Contract 17.pdf"),
            ("../../etc/passwd", "etc passwd.pdf"),
            ("a\r\nb\"; x", "a b x.pdf"),
            ("  ", "document.pdf"),
            ("Kaufvertrag für Özil", "Kaufvertrag für Özil.pdf"),
        ] {
            assert_eq!(file_name(document), file, "{document:?}");
        }
    }
}
