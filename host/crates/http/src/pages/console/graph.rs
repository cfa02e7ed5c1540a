//! Graphs as SVG, drawn by the server, each with a table of the same numbers.

use maud::{Markup, html};

/// Width of a column and height of the bars, in units of the drawing.
const COLUMN: usize = 60;
const HEIGHT: usize = 120;
/// Room above the bars for their numbers, and below for their labels.
const ABOVE: usize = 22;
const BELOW: usize = 26;

/// Stacked bars, one for each row.
pub struct StackedBars {
    pub title: String,
    /// Heading of the labels in the table.
    pub of_rows: String,
    /// Names of the parts of a bar, from below.
    pub parts: Vec<BarPart>,
    pub rows: Vec<BarRow>,
    /// Summary of the table.
    pub as_table: String,
}

/// Part of each bar.
pub struct BarPart {
    pub name: String,
    /// Class of its colour: `good`, `bad` or `open`.
    pub class: &'static str,
}

/// One bar.
pub struct BarRow {
    /// Label below the bar.
    pub short: String,
    /// Label in the table.
    pub long: String,
    /// One number for each part.
    pub values: Vec<i64>,
}

impl BarRow {
    fn total(&self) -> i64 {
        self.values.iter().sum()
    }
}

impl StackedBars {
    /// Renders the graph with its legend and its table.
    pub fn render(&self) -> Markup {
        let width = COLUMN * self.rows.len();
        let view = format!("0 0 {width} {}", ABOVE + HEIGHT + BELOW);
        let most = self.rows.iter().map(BarRow::total).max();
        let most = most.unwrap_or_default().max(1);

        // The table has every number, so the drawing is one picture for a screen reader.
        html! {
            figure.graph {
                figcaption { (self.title) }
                svg viewBox=(view) role="img" aria-label=(self.title) {
                    @for (at, row) in self.rows.iter().enumerate() { (bar(at, row, &self.parts, most)) }
                }
                p.legend {
                    @for part in &self.parts {
                        span { span class={ "spot " (part.class) } {} (part.name) }
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

fn bar(at: usize, row: &BarRow, parts: &[BarPart], most: i64) -> Markup {
    let (left, middle) = (at * COLUMN + COLUMN / 5, at * COLUMN + COLUMN / 2);
    let bottom = ABOVE + HEIGHT;

    // Heights of sums, and not sums of heights, so that rounding leaves no gap between two parts.
    let mut sum = 0;
    let mut drawn = Vec::new();
    for (part, value) in parts.iter().zip(&row.values) {
        let from = height(sum, most);
        sum += value;
        let to = height(sum, most);
        drawn.push((part.class, bottom - to, to - from));
    }

    html! {
        @for (class, top, tall) in drawn {
            @if tall > 0 {
                rect class=(class) x=(left) y=(top) width=(COLUMN * 3 / 5) height=(tall) {}
            }
        }
        @if sum > 0 {
            text x=(middle) y=(bottom - height(sum, most) - 6) text-anchor="middle" { (sum) }
        }
        text x=(middle) y=(bottom + 18) text-anchor="middle" { (row.short) }
    }
}

fn height(value: i64, most: i64) -> usize {
    let tall = i64::try_from(HEIGHT).unwrap_or_default();
    // At least one unit, or a single failure among thousands would not be seen.
    let scaled = (value.saturating_mul(tall) / most).max(i64::from(value > 0));
    usize::try_from(scaled).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_part_is_seen_and_the_highest_bar_fills_the_height() {
        assert_eq!(height(0, 5000), 0);
        assert_eq!(height(1, 5000), 1);
        assert_eq!(height(5000, 5000), HEIGHT);
    }

    #[test]
    fn the_table_has_the_numbers_of_the_bars() {
        let part = |name: &str, class| BarPart {
            name: name.to_owned(),
            class,
        };
        let graph = StackedBars {
            title: "Deliveries".into(),
            of_rows: "Day".into(),
            parts: vec![part("delivered", "good"), part("failed", "bad")],
            rows: vec![BarRow {
                short: "Mon".into(),
                long: "2026-11-30".into(),
                values: vec![3, 1],
            }],
            as_table: "As a table".into(),
        };

        let markup = graph.render().into_string();
        let row = r#"<tr><th scope="row">2026-11-30</th><td>3</td><td>1</td></tr>"#;
        assert!(markup.contains(row), "{markup}");
        assert_eq!(markup.matches("<rect").count(), 2, "{markup}");
    }
}
