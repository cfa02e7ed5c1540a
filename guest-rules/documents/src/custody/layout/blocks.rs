//! Building blocks of a record: headings, facts, tables and page breaks.

use super::{
    BODY, BOTTOM, COLUMN, CustodyPages, HAIRLINE, HEADING, LABEL, LEFT, NAVY, PALE, RIGHT, TOP,
};
use crate::typeset::SheetStyle;

/// One column of a table.
pub(super) struct TextColumn {
    title: &'static str,
    x: f32,
    width: f32,
}

impl CustodyPages<'_> {
    /// Adds a section title, kept on one page with at least `following` points of its content.
    pub(super) fn heading(&mut self, title: &str, following: f32) {
        self.room(26.0 + following);
        self.sheet.text(LEFT, self.y + 11.0, title, HEADING);
        self.sheet
            .stroke(&[(LEFT, self.y + 17.5), (RIGHT, self.y + 17.5)], 0.8, NAVY);
        self.y += 24.0;
    }

    pub(super) fn fact(&mut self, label: &str, value: &str) {
        let value = if value.trim().is_empty() {
            "not given"
        } else {
            value
        };
        let indent = 122.0;
        self.room(BODY.leading());
        let top = self.y;
        let label_height = self.sheet.paragraph(LEFT, top, indent - 8.0, label, LABEL);
        self.flow(LEFT + indent, RIGHT - LEFT - indent, value, BODY);
        self.y = if self.y > top {
            self.y.max(top + label_height)
        } else {
            self.y
        } + 2.0;
    }

    /// Adds a text that may continue on the next page.
    pub(super) fn flow(&mut self, x: f32, width: f32, text: &str, look: SheetStyle) {
        for line in self.sheet.wrap(text, look, width) {
            self.room(look.leading());
            self.sheet.paragraph(x, self.y, width + 1.0, &line, look);
            self.y += look.leading();
        }
    }

    pub(super) fn columns(&mut self, columns: &[TextColumn]) {
        self.sheet
            .fill(LEFT, self.y - 4.0, RIGHT - LEFT, 15.0, PALE);
        for column in columns {
            self.sheet
                .text(column.x, self.y + 6.0, column.title, COLUMN);
        }
        self.y += 16.0;
    }

    /// Starts a new page and repeats the table's titles, unless a row fits on this one.
    pub(super) fn make_room_for<const N: usize>(
        &mut self,
        columns: &[TextColumn],
        cells: &[(String, SheetStyle); N],
    ) {
        let height = columns
            .iter()
            .zip(cells)
            .map(|(column, (text, look))| self.sheet.height(text, *look, column.width))
            .fold(BODY.leading(), f32::max);
        // A row longer than a page has to break anyway, so it starts right here.
        if self.y + height.min(BOTTOM - TOP - 20.0) > BOTTOM {
            self.page();
            self.columns(columns);
        }
    }

    pub(super) fn row<const N: usize>(
        &mut self,
        columns: &[TextColumn],
        cells: &[(String, SheetStyle); N],
    ) {
        self.make_room_for(columns, cells);
        let mut wrapped: Vec<_> = columns
            .iter()
            .zip(cells)
            .map(|(column, (text, look))| {
                (
                    column,
                    *look,
                    self.sheet.wrap(text, *look, column.width).into_iter(),
                )
            })
            .collect();
        loop {
            let lines: Vec<_> = wrapped
                .iter_mut()
                .map(|(column, look, lines)| (column.x, column.width, *look, lines.next()))
                .collect();
            if lines.iter().all(|(.., line)| line.is_none()) {
                break;
            }
            if self.y + BODY.leading() > BOTTOM {
                self.page();
                self.columns(columns);
            }
            for (x, width, look, line) in lines {
                if let Some(line) = line {
                    self.sheet.paragraph(x, self.y, width + 1.0, &line, look);
                }
            }
            self.y += BODY.leading();
        }
        self.y += 3.0;
        self.sheet
            .stroke(&[(LEFT, self.y), (RIGHT, self.y)], 0.5, HAIRLINE);
        self.y += 4.0;
    }

    pub(super) fn room(&mut self, height: f32) {
        if self.y + height > BOTTOM {
            self.page();
        }
    }

    pub(super) fn page(&mut self) {
        self.sheet.add_page();
        self.y = TOP;
    }
}

/// Arranges columns side by side from the left margin, with a gutter between them.
pub(super) fn columns<const N: usize>(widths: [(&'static str, f32); N]) -> [TextColumn; N] {
    let mut x = LEFT;
    widths.map(|(title, width)| {
        let column = TextColumn {
            title,
            x: x + 2.0,
            width: width - 10.0,
        };
        x += width;
        column
    })
}
