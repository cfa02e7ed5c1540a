//! Drawing of a page on which two placement components differ.

use maud::{Markup, html};

use super::behaviour::DrawnPage;

/// Returns the page as an SVG: areas before are blue and solid, areas after red and dashed.
pub fn svg(page: &DrawnPage, label: &str) -> Markup {
    html! {
        svg viewBox=(format!("0 0 {} {}", page.width, page.height)) role="img" aria-label=(label) {
            rect width=(page.width) height=(page.height) fill="#ffffff" stroke="#c8c8d0" stroke-width="100" {}
            @for line in &page.text {
                // As wide as in the document, also with another font: the areas have to surround their words.
                text x=(line.area.x) y=(line.area.y + line.area.h) font-size=(line.area.h) textLength=(line.area.w)
                    lengthAdjust="spacingAndGlyphs" fill="#55555f" { (line.text) }
            }
            @for (areas, colour, dashes) in [(&page.before, "#0a4cc0", "none"), (&page.after, "#c0102a", "600 400")] {
                @for area in areas {
                    rect x=(area.x) y=(area.y) width=(area.w) height=(area.h) fill="none" stroke=(colour) stroke-width="200" stroke-dasharray=(dashes) {}
                }
            }
        }
    }
}
