//! Layout of the custody record.

mod blocks;

use crate::error::Result;
use crate::typeset::{Ink, SheetStyle, TextStyle, TypesetSheet};
use crate::{CustodySection, CustodySheet};

const WIDTH: f32 = 612.0;
const HEIGHT: f32 = 792.0;
const LEFT: f32 = 54.0;
const RIGHT: f32 = WIDTH - 54.0;
const TOP: f32 = 76.0;
const BOTTOM: f32 = HEIGHT - 66.0;

const NAVY: Ink = (22, 38, 70);
const TEXT: Ink = (28, 30, 36);
const MUTED: Ink = (98, 104, 116);
const HAIRLINE: Ink = (208, 212, 220);
const PALE: Ink = (244, 246, 249);
const GREEN: Ink = (20, 110, 66);
const PALE_GREEN: Ink = (232, 245, 238);
const RED: Ink = (164, 34, 38);
const PALE_RED: Ink = (252, 236, 236);

const TITLE: SheetStyle = SheetStyle::new(TextStyle::Bold, 22.0, NAVY);
const SUBTITLE: SheetStyle = SheetStyle::new(TextStyle::Regular, 12.0, TEXT);
const HEADING: SheetStyle = SheetStyle::new(TextStyle::Bold, 11.5, NAVY);
const LABEL: SheetStyle = SheetStyle::new(TextStyle::Regular, 8.5, MUTED);
const BODY: SheetStyle = SheetStyle::new(TextStyle::Regular, 9.0, TEXT);
const STRONG: SheetStyle = SheetStyle::new(TextStyle::Bold, 9.0, TEXT);
const SMALL: SheetStyle = SheetStyle::new(TextStyle::Regular, 7.5, MUTED);
const COLUMN: SheetStyle = SheetStyle::new(TextStyle::Bold, 7.5, MUTED);

/// Width of the column of ticks and crosses.
const SIGNS: f32 = 22.0;

pub(super) fn lay_out(text: &CustodySheet) -> Result<TypesetSheet> {
    let mut record = CustodyPages {
        sheet: TypesetSheet::new(WIDTH, HEIGHT)?,
        y: 54.0,
        text,
    };
    record.sheet.follow(&text.title);
    record.title();

    record.verdict();
    for section in &text.sections {
        record.section(section);
    }

    // Heads and feet state the number of pages, so every page has to exist first.
    record.margins();
    Ok(record.sheet)
}

struct CustodyPages<'a> {
    sheet: TypesetSheet,
    /// Vertical position of the next block.
    y: f32,
    text: &'a CustodySheet,
}

impl CustodyPages<'_> {
    fn title(&mut self) {
        let text = self.text;
        self.sheet.fill(0.0, 0.0, WIDTH, 6.0, NAVY);
        self.sheet.text(LEFT, self.y + 18.0, &text.title, TITLE);
        self.y += 32.0;
        let name = &text.document_name;
        self.y += self
            .sheet
            .paragraph(LEFT, self.y, RIGHT - LEFT, name, SUBTITLE);

        let line = &text.byline;
        self.y += self
            .sheet
            .paragraph(LEFT, self.y, RIGHT - LEFT, line, LABEL)
            + 12.0;
    }

    /// Shows the overall result of the checks, at the top of the record.
    fn verdict(&mut self) {
        let Some((words, good)) = &self.text.verdict else {
            return;
        };

        let (ink, ground) = if *good {
            (GREEN, PALE_GREEN)
        } else {
            (RED, PALE_RED)
        };
        self.sheet.fill(LEFT, self.y, RIGHT - LEFT, 30.0, ground);
        self.sheet.fill(LEFT, self.y, 3.0, 30.0, ink);

        self.sign(LEFT + 14.0, self.y + 15.0, *good);
        self.sheet.text(
            LEFT + 30.0,
            self.y + 18.8,
            words,
            SheetStyle::new(TextStyle::Bold, 11.0, ink),
        );

        self.y += 44.0;
    }

    /// Draws a tick or a cross around a point.
    fn sign(&mut self, x: f32, y: f32, good: bool) {
        if good {
            // A tick looks the same in every direction of reading.
            let way = if self.sheet.is_mirrored() { -1.0 } else { 1.0 };
            let points = [(-4.0, 0.3), (-1.2, 3.2), (4.2, -3.6)];
            let points = points.map(|(right, down)| (x + way * right, y + down));
            self.sheet.stroke(&points, 1.6, GREEN);
        } else {
            self.sheet
                .stroke(&[(x - 3.2, y - 3.2), (x + 3.2, y + 3.2)], 1.6, RED);
            self.sheet
                .stroke(&[(x - 3.2, y + 3.2), (x + 3.2, y - 3.2)], 1.6, RED);
        }
    }

    /// Draws a section; one without any content is left out.
    fn section(&mut self, section: &CustodySection) {
        if section.facts.is_empty() && section.rows.is_empty() && section.note.is_empty() {
            return;
        }

        // The heading keeps room for some lines. Alone at the foot of a page it would look empty.
        self.heading(&section.heading, 70.0);
        for (label, value) in &section.facts {
            self.fact(label, value);
        }

        if !section.rows.is_empty() {
            self.table(section);
        }

        if !section.note.is_empty() {
            self.y += 4.0;
            let look = SheetStyle::new(TextStyle::Regular, 8.5, MUTED);
            self.flow(LEFT, RIGHT - LEFT, &section.note, look);
        }

        self.y += 10.0;
    }

    /// Draws the running heads and feet, once the number of pages is known.
    fn margins(&mut self) {
        let text = self.text;
        let count = self.sheet.page_count();
        for index in 0..count {
            self.sheet.select_page(index);
            // The first page has the title itself instead of a running head.
            if index > 0 {
                self.sheet.fill(0.0, 0.0, WIDTH, 6.0, NAVY);
                let look = SheetStyle::new(TextStyle::Bold, 9.0, NAVY);
                self.sheet.text(LEFT, 42.0, &text.title, look);
                self.sheet.text_right(RIGHT, 42.0, &text.envelope_id, SMALL);
                self.sheet
                    .stroke(&[(LEFT, 50.0), (RIGHT, 50.0)], 0.5, HAIRLINE);
            }

            let foot = HEIGHT - 40.0;
            self.sheet
                .stroke(&[(LEFT, foot - 12.0), (RIGHT, foot - 12.0)], 0.5, HAIRLINE);
            self.sheet.text(LEFT, foot, &text.foot, SMALL);
            let number = format!("{} / {count}", index + 1);
            self.sheet.text_right(RIGHT, foot, &number, SMALL);
        }
    }
}
