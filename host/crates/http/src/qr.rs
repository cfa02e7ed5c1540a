//! QR codes as drawings.

use std::fmt::Write as _;

use qrcodegen::{QrCode, QrCodeEcc};

use crate::error::HttpError;

/// Quiet zone in modules (ISO/IEC 18004, 5.3.8).
const QUIET: i32 = 4;

/// Draws a text as a QR code in SVG: a rectangle for each run of dark modules.
///
/// # Errors
/// For a text that is too long for a QR code.
pub fn svg(text: &str) -> Result<String, HttpError> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium).map_err(|error| {
        HttpError::internal(format!("no QR code can hold the address: {error}"))
    })?;
    let size = code.size();

    let mut path = String::new();
    for row in 0..size {
        let mut column = 0;
        while column < size {
            let start = column;
            while column < size && code.get_module(column, row) {
                column += 1;
            }

            let width = column - start;
            if width > 0 {
                let (x, y) = (start + QUIET, row + QUIET);
                // Writing to a text cannot fail.
                let _ = write!(path, "M{x} {y}h{width}v1h-{width}z");
            }

            column += 1;
        }
    }

    let side = size + 2 * QUIET;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {side} {side}\" shape-rendering=\"crispEdges\">\
         <path fill=\"#fff\" d=\"M0 0h{side}v{side}h-{side}z\"/><path d=\"{path}\"/></svg>"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_begins_with_a_finder_pattern_inside_its_quiet_zone() {
        let drawing = svg("https://sign.example.com/open/07").unwrap();
        assert!(drawing.contains("<path d=\"M4 4h7v1h-7z"), "{drawing}");
    }

    #[test]
    fn a_text_that_no_code_can_hold_is_an_error() {
        assert!(svg(&"x".repeat(3000)).is_err());
    }
}
