//! Graphs as SVG, drawn by the server, each with a table of the same numbers.

use maud::{Markup, html};

/// Width of a column and height of the bars, in units of the drawing.
const COLUMN: usize = 60;
const HEIGHT: usize = 120;
/// Room above the bars for their numbers, and below for their labels.
const ABOVE: usize = 22;
const BELOW: usize = 26;

/// Width of a drawing of strips or lying bars, which a phone shows about as large as it is.
const NARROW: usize = 300;
/// Height of the bars of a strip, and of a strip with its name.
const STRIP: usize = 44;
const STRIP_WITH_NAME: usize = STRIP + 26;
/// Thickness of a lying bar, the height of a line of its label, and the room around both.
const LYING: usize = 12;
const LINE: usize = 16;
const AROUND: usize = 14;
/// Letters of a line of the label above a lying bar.
const LETTERS: usize = 32;

/// Bars with a number for each part, one bar for each row.
pub struct BarGraph {
    pub title: String,
    /// Heading of the labels in the table.
    pub of_rows: String,
    /// Names of the parts of a bar, in their order from its begin.
    pub parts: Vec<BarPart>,
    pub rows: Vec<BarRow>,
    /// Summary of the table.
    pub as_table: String,
}

/// Part of each bar.
pub struct BarPart {
    pub name: String,
    /// Class of its colour: `good`, `bad`, `open` or `busy`.
    pub class: &'static str,
}

/// One bar.
pub struct BarRow {
    /// Label of a standing bar.
    pub short: String,
    /// Label of a lying bar, and in the table.
    pub long: String,
    /// One number for each part.
    pub values: Vec<i64>,
    /// Text beside a lying bar instead of its number.
    pub beside: Option<String>,
}

impl BarRow {
    /// Returns a row without another text than its number.
    pub fn new(short: String, long: String, values: Vec<i64>) -> Self {
        Self {
            short,
            long,
            values,
            beside: None,
        }
    }

    fn total(&self) -> i64 {
        self.values.iter().sum()
    }
}

impl BarGraph {
    /// Renders standing bars, each with its parts on top of each other.
    pub fn stacked(&self) -> Markup {
        let width = COLUMN * self.rows.len();
        let view = format!("0 0 {width} {}", ABOVE + HEIGHT + BELOW);
        let most = self.most();
        let drawing = html! {
            svg viewBox=(view) role="img" aria-label=(self.title) {
                @for (at, row) in self.rows.iter().enumerate() { (bar(at, row, &self.parts, most)) }
            }
        };
        self.figure("graph", drawing, true)
    }

    /// Renders a strip of small bars for each part, one below the other: for many rows, such as the days of a month. Each
    /// strip has a scale of its own.
    pub fn strips(&self) -> Markup {
        let tall = STRIP_WITH_NAME * self.parts.len() + BELOW;
        let view = format!("0 0 {NARROW} {tall}");
        let bottom = STRIP_WITH_NAME * self.parts.len();
        let drawing = html! {
            svg viewBox=(view) role="img" aria-label=(self.title) {
                @for (at, part) in self.parts.iter().enumerate() { (self.strip(at, part)) }
                @if let (Some(first), Some(last)) = (self.rows.first(), self.rows.last()) {
                    text x="0" y=(bottom + 18) { (first.short) }
                    text x=(NARROW) y=(bottom + 18) text-anchor="end" { (last.short) }
                }
            }
        };
        self.figure("graph narrow", drawing, false)
    }

    fn strip(&self, at: usize, part: &BarPart) -> Markup {
        let of_part = |row: &BarRow| row.values.get(at).copied().unwrap_or_default();
        let total: i64 = self.rows.iter().map(of_part).sum();
        let most = self.rows.iter().map(of_part).max();
        let most = most.unwrap_or_default().max(1);
        let (top, bottom) = (STRIP_WITH_NAME * at, STRIP_WITH_NAME * (at + 1));
        let column = NARROW / self.rows.len().max(1);
        let bars = self.rows.iter().enumerate().map(|(day, row)| {
            let tall = scaled(of_part(row), most, STRIP);
            (column * day + 1, bottom - tall, tall)
        });

        html! {
            text x="0" y=(top + 16) { (part.name) }
            text x=(NARROW) y=(top + 16) text-anchor="end" { (total) }
            rect class="line" x="0" y=(bottom) width=(NARROW) height="1" {}
            @for (left, top, tall) in bars {
                @if tall > 0 {
                    rect class=(part.class) x=(left) y=(top) width=(column.saturating_sub(2).max(1)) height=(tall) {}
                }
            }
        }
    }

    /// Renders lying bars, each below its label: for few rows with long labels.
    pub fn lying(&self) -> Markup {
        let labels: Vec<Vec<String>> = self.rows.iter().map(|row| label_lines(&row.long)).collect();
        let lines = labels.iter().map(Vec::len).max().unwrap_or_default();
        let tall = LYING + LINE * lines + AROUND;
        let view = format!("0 0 {NARROW} {}", tall * self.rows.len());
        let most = self.most();
        let drawing = html! {
            svg viewBox=(view) role="img" aria-label=(self.title) {
                @for (at, (row, label)) in self.rows.iter().zip(&labels).enumerate() {
                    // Labels stand on their bars, so that those of one line are as close to theirs.
                    (self.lying_bar(tall * at + LINE * (lines - label.len()), row, label, most))
                }
            }
        };
        self.figure("graph narrow", drawing, self.parts.len() > 1)
    }

    fn lying_bar(&self, top: usize, row: &BarRow, label: &[String], most: i64) -> Markup {
        let bar = top + LINE * label.len() + 6;
        let beside = row.beside.clone();
        let beside = beside.unwrap_or_else(|| row.total().to_string());
        let bars = lengths(row, &self.parts, most, NARROW);

        html! {
            @for (at, line) in label.iter().enumerate() { text x="0" y=(top + LINE * (at + 1)) { (line) } }
            text x=(NARROW) y=(bar - 6) text-anchor="end" { (beside) }
            rect class="line" x="0" y=(bar + LYING) width=(NARROW) height="1" {}
            @for (class, from, long) in bars {
                @if long > 0 {
                    rect class=(class) x=(from) y=(bar) width=(long) height=(LYING) {}
                }
            }
        }
    }

    /// Returns the largest number of a bar, at least 1.
    fn most(&self) -> i64 {
        let most = self.rows.iter().map(BarRow::total).max();
        most.unwrap_or_default().max(1)
    }

    /// Renders a drawing with its legend and its table.
    fn figure(&self, class: &str, drawing: Markup, has_legend: bool) -> Markup {
        // The table has every number, so the drawing is one picture for a screen reader.
        html! {
            figure class=(class) {
                figcaption { (self.title) }
                (drawing)
                @if has_legend {
                    p.legend {
                        @for part in &self.parts {
                            span { span class={ "spot " (part.class) } {} (part.name) }
                        }
                    }
                }
            }

            details {
                summary { (self.as_table) }
                div.scroll tabindex="0" role="region" aria-label=(self.title) {
                    table {
                        thead {
                            tr {
                                th scope="col" { (self.of_rows) }
                                @for part in &self.parts { th scope="col" { (part.name) } }
                            }
                        }
                        tbody {
                            @for row in &self.rows {
                                tr {
                                    th scope="row" { (row.long) }
                                    @for value in &row.values { td { (value) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the class, the begin and the length of each part of a bar.
fn lengths(
    row: &BarRow,
    parts: &[BarPart],
    most: i64,
    longest: usize,
) -> Vec<(&'static str, usize, usize)> {
    // Lengths of sums, and not sums of lengths, so that rounding leaves no gap between two parts.
    let mut sum = 0;
    let mut drawn = Vec::new();
    for (part, value) in parts.iter().zip(&row.values) {
        let from = scaled(sum, most, longest);
        sum += value;
        let to = scaled(sum, most, longest);
        drawn.push((part.class, from, to - from));
    }

    drawn
}

/// Returns a label in at most two lines. The end of one that is longer is in the table only.
fn label_lines(label: &str) -> Vec<String> {
    let Some(limit) = end_of_line(label, LETTERS) else {
        return vec![label.to_owned()];
    };

    let (begin, _) = label.split_at(limit);
    // A line ends behind a word or a part of an address, unless it has only one.
    let end = begin.rfind([' ', '/']).map_or(limit, |last| last + 1);
    let (first, rest) = label.split_at(end);
    let second = match end_of_line(rest, LETTERS) {
        Some(_) => {
            let (begin, _) = rest.split_at(end_of_line(rest, LETTERS - 1).unwrap_or(rest.len()));
            format!("{begin}…")
        }
        None => rest.to_owned(),
    };
    vec![first.trim_end().to_owned(), second]
}

/// Returns where a line of so many letters ends in a longer text. A letter of Chinese is as wide as two.
fn end_of_line(text: &str, letters: usize) -> Option<usize> {
    let mut width = 0;
    text.char_indices().find_map(|(at, letter)| {
        width += if letter >= '\u{2e80}' { 2 } else { 1 };
        (width > letters).then_some(at)
    })
}

fn bar(at: usize, row: &BarRow, parts: &[BarPart], most: i64) -> Markup {
    let (left, middle) = (at * COLUMN + COLUMN / 5, at * COLUMN + COLUMN / 2);
    let bottom = ABOVE + HEIGHT;
    let sum = row.total();

    html! {
        @for (class, from, tall) in lengths(row, parts, most, HEIGHT) {
            @if tall > 0 {
                rect class=(class) x=(left) y=(bottom - from - tall) width=(COLUMN * 3 / 5) height=(tall) {}
            }
        }
        @if sum > 0 {
            text x=(middle) y=(bottom - scaled(sum, most, HEIGHT) - 6) text-anchor="middle" { (sum) }
        }
        text x=(middle) y=(bottom + 18) text-anchor="middle" { (row.short) }
    }
}

/// Returns the length of a number in a drawing.
fn scaled(value: i64, most: i64, longest: usize) -> usize {
    let longest = i64::try_from(longest).unwrap_or_default();
    // At least one unit, or a single failure among thousands would not be seen.
    let scaled = (value.saturating_mul(longest) / most).max(i64::from(value > 0));
    usize::try_from(scaled).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliveries() -> BarGraph {
        let part = |name: &str, class| BarPart {
            name: name.to_owned(),
            class,
        };
        BarGraph {
            title: "Deliveries".into(),
            of_rows: "Day".into(),
            parts: vec![part("delivered", "good"), part("failed", "bad")],
            rows: vec![BarRow::new("Mon".into(), "2026-11-30".into(), vec![3, 1])],
            as_table: "As a table".into(),
        }
    }

    #[test]
    fn a_small_part_is_seen_and_the_highest_bar_fills_the_height() {
        assert_eq!(scaled(0, 5000, HEIGHT), 0);
        assert_eq!(scaled(1, 5000, HEIGHT), 1);
        assert_eq!(scaled(5000, 5000, HEIGHT), HEIGHT);
    }

    #[test]
    fn the_table_has_the_numbers_of_the_bars() {
        let graph = deliveries();
        let row = r#"<tr><th scope="row">2026-11-30</th><td>3</td><td>1</td></tr>"#;
        for (markup, bars) in [
            (graph.stacked(), 2),
            // With the line below each strip or bar.
            (graph.strips(), 4),
            (graph.lying(), 3),
        ] {
            let markup = markup.into_string();
            assert!(markup.contains(row), "{markup}");
            assert!(
                markup.contains(r#"role="img" aria-label="Deliveries""#),
                "{markup}"
            );
            assert_eq!(markup.matches("<rect").count(), bars, "{markup}");
        }
    }

    #[test]
    fn a_long_label_has_two_lines_and_the_table_has_all_of_it() {
        let label = "https://hooks.example.com/a/rather/long/path";
        let mut graph = deliveries();
        graph.rows[0].long = label.into();
        let markup = graph.lying().into_string();
        for part in [
            ">https://hooks.example.com/a/</text>".to_owned(),
            ">rather/long/path</text>".to_owned(),
            format!(">{label}</th>"),
        ] {
            assert!(markup.contains(&part), "{part}: {markup}");
        }
    }

    #[test]
    fn a_label_is_broken_behind_a_word_and_shortened_after_two_lines() {
        assert_eq!(label_lines("Signed"), ["Signed"]);
        assert_eq!(
            label_lines("Authoritative copy is unique, identifiable and unalterable"),
            [
                "Authoritative copy is unique,",
                "identifiable and unalterable"
            ]
        );
        let endless = "x".repeat(100);
        let [first, second]: [String; 2] = label_lines(&endless).try_into().unwrap();
        assert_eq!(first.len(), LETTERS);
        assert_eq!(second.chars().count(), LETTERS);
        assert!(second.ends_with('…'));
        let wide = "合".repeat(20);
        assert_eq!(label_lines(&wide), ["合".repeat(16), "合".repeat(4)]);
    }
}
