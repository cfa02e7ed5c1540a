//! Output for people or for programs.

use std::io::{self, Write as _};

use serde_json::{Value, json};

/// Output format of a command.
pub struct CommandOutput {
    json: bool,
}

#[expect(clippy::print_stderr, reason = "this is what prints")]
impl CommandOutput {
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints a result: the JSON value, or the text.
    pub fn one(&self, value: &Value, text: &str) {
        if self.json {
            print(&value.to_string())
        } else {
            print(text)
        }
    }

    /// Prints a result, and a note for the operator. The note goes to stderr, so that
    /// `$(holdfast …)` captures only the result.
    pub fn with_note(&self, value: &Value, text: &str, note: &str) {
        self.one(value, text);
        if !self.json {
            eprintln!("{note}");
        }
    }

    /// Prints a result, and the addresses of its pages in the console. Those go to stderr, too.
    pub fn with_pages(&self, value: &Value, text: &str, pages: impl IntoIterator<Item = String>) {
        self.one(value, text);
        if !self.json {
            for page in pages {
                eprintln!("{page}");
            }
        }
    }

    /// Prints a failure with its causes.
    pub fn failure(&self, error: &(dyn std::error::Error + 'static)) {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let more = error.to_string();
            // Some errors already quote their cause, and an operator should not read it twice.
            if !text.contains(&more) {
                text.push_str(": ");
                text.push_str(&more);
            }
            cause = error.source();
        }

        // A program that reads stdout gets one JSON value in any case. A person reads stderr.
        if self.json {
            print(&json!({ "error": text }).to_string());
        }

        eprintln!("holdfast: {text}");
    }
}

/// Prints a line. A reader such as `head` may have ended, which is no failure.
fn print(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}
