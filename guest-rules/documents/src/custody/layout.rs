//! Layout of the custody record.

mod blocks;

use blocks::{TextColumn, columns};

use crate::error::Result;
use crate::moment::in_words;
use crate::typeset::{Ink, SheetStyle, TextStyle, TypesetSheet};
use crate::{CheckResult, CustodyFacts};

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

pub(super) fn lay_out(facts: &CustodyFacts) -> Result<TypesetSheet> {
    let mut record = CustodyPages {
        sheet: TypesetSheet::new(WIDTH, HEIGHT)?,
        y: 54.0,
        facts,
    };
    record.title();
    record.verdict();
    record.envelope();
    record.hashes();
    record.parties();
    record.checks();
    record.timeline();
    record.provenance();
    record.margins();
    Ok(record.sheet)
}

struct CustodyPages<'a> {
    sheet: TypesetSheet,
    /// Vertical position of the next block.
    y: f32,
    facts: &'a CustodyFacts,
}

impl CustodyPages<'_> {
    fn title(&mut self) {
        self.sheet.fill(0.0, 0.0, WIDTH, 6.0, NAVY);
        self.sheet
            .text(LEFT, self.y + 18.0, "Custody record", TITLE);
        self.y += 32.0;
        let name = match self.facts.envelope_name.trim() {
            "" => "Unnamed envelope",
            name => name,
        };
        self.y += self
            .sheet
            .paragraph(LEFT, self.y, RIGHT - LEFT, name, SUBTITLE);
        let line = format!(
            "Issued by {} on {}",
            self.facts.issuer,
            in_words(&self.facts.recorded_at)
        );
        self.y += self
            .sheet
            .paragraph(LEFT, self.y, RIGHT - LEFT, &line, LABEL)
            + 12.0;
    }

    /// Shows the overall result of the checks, at the top of the record.
    fn verdict(&mut self) {
        let checks = &self.facts.checks;
        if checks.is_empty() {
            return;
        }
        let satisfied = checks.iter().filter(|check| check.satisfied).count();
        let all = satisfied == checks.len();
        let (ink, ground) = if all {
            (GREEN, PALE_GREEN)
        } else {
            (RED, PALE_RED)
        };
        let words = if all {
            format!("All {} control checks are satisfied", checks.len())
        } else {
            format!(
                "{} of {} control checks are not satisfied",
                checks.len() - satisfied,
                checks.len()
            )
        };
        self.sheet.fill(LEFT, self.y, RIGHT - LEFT, 30.0, ground);
        self.sheet.fill(LEFT, self.y, 3.0, 30.0, ink);
        self.sign(LEFT + 14.0, self.y + 15.0, all);
        self.sheet.text(
            LEFT + 30.0,
            self.y + 18.8,
            &words,
            SheetStyle::new(TextStyle::Bold, 11.0, ink),
        );
        self.y += 44.0;
    }

    /// Draws a tick or a cross around a point.
    fn sign(&mut self, x: f32, y: f32, good: bool) {
        if good {
            let points = [(x - 4.0, y + 0.3), (x - 1.2, y + 3.2), (x + 4.2, y - 3.6)];
            self.sheet.stroke(&points, 1.6, GREEN);
        } else {
            self.sheet
                .stroke(&[(x - 3.2, y - 3.2), (x + 3.2, y + 3.2)], 1.6, RED);
            self.sheet
                .stroke(&[(x - 3.2, y + 3.2), (x + 3.2, y - 3.2)], 1.6, RED);
        }
    }

    fn envelope(&mut self) {
        let facts = self.facts;
        self.heading("Envelope", 60.0);
        self.fact("Envelope", &facts.envelope_id);
        self.fact("Customer", &facts.customer_id);
        self.fact("Custodian", &facts.custodian);
        if let Some(party) = &facts.secured_party {
            self.fact("Secured party", party);
        }
        for (name, value) in &facts.attributes {
            self.fact(name, value);
        }
        self.y += 10.0;
    }

    fn hashes(&mut self) {
        let facts = self.facts;
        self.heading("Documents", 60.0);
        self.fact("Hash algorithm", &facts.hash_algorithm);
        self.fact("Authoritative copy", &facts.document_hash);
        self.fact("Non-authoritative copy", &facts.copy_hash);
        self.y += 10.0;
    }

    fn parties(&mut self) {
        if self.facts.parties.is_empty() {
            return;
        }
        let columns = columns([
            ("Party", 132.0),
            ("E-mail", 164.0),
            ("Role", 68.0),
            ("Signed", 140.0),
        ]);
        self.heading("Parties", 70.0);
        self.columns(&columns);
        for party in &self.facts.parties {
            let signed = match &party.signed_at {
                Some(at) => in_words(at),
                None => "not signed".to_owned(),
            };
            let cells = [
                (party.name.clone(), STRONG),
                (party.email.clone(), BODY),
                (party.role.clone(), BODY),
                (signed, BODY),
            ];
            self.row(&columns, &cells);
        }
        self.y += 14.0;
    }

    fn checks(&mut self) {
        if self.facts.checks.is_empty() {
            return;
        }
        let columns = columns([
            ("", 22.0),
            ("Requirement", 168.0),
            ("Reference", 84.0),
            ("Finding", 230.0),
        ]);
        self.heading("Control checks", 70.0);
        self.columns(&columns);
        for check in &self.facts.checks {
            self.check(&columns, check);
        }
        self.y += 14.0;
    }

    fn check(&mut self, columns: &[TextColumn], check: &CheckResult) {
        let verdict = if check.satisfied {
            "Satisfied"
        } else {
            "Not satisfied"
        };
        let finding = match check.detail.trim() {
            "" => verdict.to_owned(),
            detail => format!("{verdict}. {detail}"),
        };
        let finding_look = if check.satisfied {
            BODY
        } else {
            SheetStyle::new(TextStyle::Bold, 9.0, RED)
        };
        let cells = [
            (String::new(), BODY),
            (check.requirement.clone(), STRONG),
            (check.reference.clone(), BODY),
            (finding, finding_look),
        ];
        self.make_room_for(columns, &cells);
        let (x, y) = (LEFT + 9.0, self.y + 6.5);
        self.sign(x, y, check.satisfied);
        self.row(columns, &cells);
    }

    fn timeline(&mut self) {
        if self.facts.timeline.is_empty() {
            return;
        }
        let columns = columns([("Time", 138.0), ("Actor", 118.0), ("Event", 248.0)]);
        self.heading("Chain of custody", 70.0);
        self.columns(&columns);
        for entry in &self.facts.timeline {
            let event = match entry.detail.trim() {
                "" => entry.action.clone(),
                detail => format!("{}: {detail}", entry.action),
            };
            let cells = [
                (in_words(&entry.at), BODY),
                (entry.actor.clone(), BODY),
                (event, BODY),
            ];
            self.row(&columns, &cells);
        }
        self.y += 14.0;
    }

    fn provenance(&mut self) {
        self.heading("How this record was made", 80.0);
        self.fact("Rules component", &self.facts.rules_component);
        self.fact("Attachment", super::ATTACHMENT);
        let text = "The attached certificate is the machine-readable form of this record. Whoever holds \
            the authoritative copy can repeat every check: compute the hash named above over the \
            bytes of the document, compare it with this record, and run the component named here \
            over the stored facts.";
        self.y += 4.0;
        self.flow(
            LEFT,
            RIGHT - LEFT,
            text,
            SheetStyle::new(TextStyle::Regular, 8.5, MUTED),
        );
    }

    /// Draws the running heads and feet, once the number of pages is known.
    fn margins(&mut self) {
        let count = self.sheet.page_count();
        for index in 0..count {
            self.sheet.select_page(index);
            if index > 0 {
                self.sheet.fill(0.0, 0.0, WIDTH, 6.0, NAVY);
                self.sheet.text(
                    LEFT,
                    42.0,
                    "Custody record",
                    SheetStyle::new(TextStyle::Bold, 9.0, NAVY),
                );
                self.sheet
                    .text_right(RIGHT, 42.0, &self.facts.envelope_id, SMALL);
                self.sheet
                    .stroke(&[(LEFT, 50.0), (RIGHT, 50.0)], 0.5, HAIRLINE);
            }
            let foot = HEIGHT - 40.0;
            self.sheet
                .stroke(&[(LEFT, foot - 12.0), (RIGHT, foot - 12.0)], 0.5, HAIRLINE);
            let recorded = format!("Recorded {}", in_words(&self.facts.recorded_at));
            self.sheet.text(LEFT, foot, &recorded, SMALL);
            let number = format!("Page {} of {count}", index + 1);
            self.sheet.text_right(RIGHT, foot, &number, SMALL);
        }
    }
}
