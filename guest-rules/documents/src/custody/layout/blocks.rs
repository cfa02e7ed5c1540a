//! Building blocks of a record: headings, facts, tables and page breaks.

use super::{
    BODY, BOTTOM, COLUMN, CustodyPages, HAIRLINE, HEADING, LABEL, LEFT, NAVY, PALE, RED, RIGHT,
    SIGNS, STRONG, TOP,
};
use crate::typeset::{SheetStyle, TextStyle};
use crate::{CustodySection, TableColumn, TableRow};

/// One column of a table.
struct TextColumn<'a> {
    title: &'a str,
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
        let indent = 122.0;
        self.room(BODY.leading());
        let top = self.y;
        let label_height = self.sheet.paragraph(LEFT, top, indent - 8.0, label, LABEL);
        self.flow(LEFT + indent, RIGHT - LEFT - indent, value, BODY);

        // The value may have ended on the next page, where the height of the label does not count.
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
            // The line was wrapped to this width. The extra point keeps rounding from wrapping it again.
            self.sheet.paragraph(x, self.y, width + 1.0, &line, look);
            self.y += look.leading();
        }
    }

    /// Adds the table of a section.
    pub(super) fn table(&mut self, section: &CustodySection) {
        let signed = section.rows.iter().any(|row| row.satisfied.is_some());
        let columns = columns(&section.columns, if signed { SIGNS } else { 0.0 });
        self.columns(&columns);
        for row in &section.rows {
            self.row(&columns, row);
        }
        self.y += 4.0;
    }

    fn columns(&mut self, columns: &[TextColumn<'_>]) {
        self.sheet
            .fill(LEFT, self.y - 4.0, RIGHT - LEFT, 15.0, PALE);
        for column in columns {
            self.sheet
                .text(column.x, self.y + 6.0, column.title, COLUMN);
        }
        self.y += 16.0;
    }

    /// Starts a new page and repeats the table's titles, unless a row of this height fits here.
    fn make_room_for(&mut self, columns: &[TextColumn<'_>], height: f32) {
        // A row longer than a page has to break anyway, so it starts right here.
        if self.y + height.min(BOTTOM - TOP - 20.0) > BOTTOM {
            self.page();
            self.columns(columns);
        }
    }

    fn row(&mut self, columns: &[TextColumn<'_>], row: &TableRow) {
        // The finding stands in the last column, so an open check is red there.
        let last = columns.len().saturating_sub(1);
        let look = |place: usize| match (place, row.satisfied) {
            (0, _) => STRONG,
            (place, Some(false)) if place == last => SheetStyle::new(TextStyle::Bold, 9.0, RED),
            _ => BODY,
        };
        let cells = columns.iter().zip(&row.cells).enumerate();
        let wrapped: Vec<_> = cells
            .map(|(place, (column, text))| {
                let look = look(place);
                (column, look, self.sheet.wrap(text, look, column.width))
            })
            .collect();
        let lines = wrapped.iter().map(|(_, _, lines)| lines.len()).max();
        let lines = lines.unwrap_or_default();
        self.make_room_for(columns, lines.max(1) as f32 * BODY.leading());

        if let Some(satisfied) = row.satisfied {
            self.sign(LEFT + 9.0, self.y + 6.5, satisfied);
        }

        // A row may be longer than a page, so each line checks for its own room.
        for line in 0..lines {
            if self.y + BODY.leading() > BOTTOM {
                self.page();
                self.columns(columns);
            }

            for (column, look, texts) in &wrapped {
                if let Some(text) = texts.get(line) {
                    self.sheet
                        .paragraph(column.x, self.y, column.width + 1.0, text, *look);
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

/// Arranges columns side by side after `start` points, with a gutter between them.
fn columns(columns: &[TableColumn], start: f32) -> Vec<TextColumn<'_>> {
    let mut x = LEFT + start;
    let space = RIGHT - x;
    let arranged = columns.iter().map(|column| {
        let width = column.width * space;
        let arranged = TextColumn {
            title: &column.title,
            x: x + 2.0,
            width: width - 10.0,
        };
        x += width;

        arranged
    });

    arranged.collect()
}
