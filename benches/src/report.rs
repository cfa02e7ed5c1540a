//! Medians, percentiles and printed tables.

use std::num::NonZero;
use std::thread;
use std::time::Duration;

/// Prints the facts of the machine, and how to read the results.
pub fn preamble() {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let load = load();
    println!("holdfast-bench: {cpus} CPUs, load {load:.2} before the start.");
    println!(
        "Compare ratios: all cases of a section ran in turns in this one run, so that they met the"
    );
    println!("same noise. Absolute times belong to this machine at this moment.");

    if load > 0.5 {
        println!(
            "NOTE: other programs are running. Rows with two threads need two idle CPUs to say"
        );
        println!("anything about scaling, and start-up times are too long.");
    }

    if cfg!(debug_assertions) {
        println!("NOTE: this is a debug build; build with --release before reading any number.");
    }
}

/// Returns the load average of the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|load| load.parse().ok())
        .unwrap_or_default()
}

/// Prints the title of a section.
pub fn heading(title: &str) {
    println!("\n{title}\n{}", "=".repeat(title.chars().count()));
}

/// Rows under headings; the first column is text, the others are numbers.
pub struct ReportTable {
    rows: Vec<Vec<String>>,
}

impl ReportTable {
    /// Creates a table without rows.
    pub fn new(headings: &[&str]) -> Self {
        Self {
            rows: vec![headings.iter().map(|&heading| heading.to_owned()).collect()],
        }
    }

    /// Appends a row with as many cells as there are headings.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Writes the table to stdout.
    pub fn print(&self) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells
                    .map(|cell| cell.chars().count())
                    .max()
                    .unwrap_or_default()
            })
            .collect();
        for (index, row) in self.rows.iter().enumerate() {
            println!("{}", line(row, &widths));
            if index == 0 {
                println!(
                    "{}",
                    widths
                        .iter()
                        .map(|&width| "-".repeat(width))
                        .collect::<Vec<_>>()
                        .join("  ")
                );
            }
        }
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let cells = row
        .iter()
        .zip(widths)
        .enumerate()
        .map(|(column, (cell, &width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });

    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// Returns the median; for an even number of values, the mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match (sorted.len() % 2, sorted.get(middle)) {
        (_, None) => f64::NAN,
        (0, Some(upper)) => (sorted[middle - 1] + upper) / 2.0,
        (_, Some(value)) => *value,
    }
}

/// Returns the smallest value that at least `percent` percent of the values do not exceed.
pub fn percentile(values: &[f64], percent: usize) -> f64 {
    let rank = (values.len() * percent).div_ceil(100).max(1);
    sorted(values).get(rank - 1).copied().unwrap_or(f64::NAN)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns microseconds with their fraction.
pub fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Returns milliseconds with their fraction.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Formats `1234567.8` as `1,234,568`.
pub fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }

    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(percentile(&values, 95), 19.0);
        assert_eq!(percentile(&values, 100), 20.0);
        assert_eq!(percentile(&[7.0], 95), 7.0);
    }

    #[test]
    fn numbers_are_formatted_with_thousands_separators() {
        assert_eq!(thousands(999.4), "999");
        assert_eq!(thousands(1_234_567.8), "1,234,568");
    }
}
