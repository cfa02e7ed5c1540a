//! Lines of a text in JSON at which its problems are.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::str::Chars;

use crate::error::HttpError;

/// A problem of a text, with its line from 1.
#[derive(Debug, PartialEq)]
pub struct LineProblem {
    pub line: usize,
    pub message: String,
}

/// Returns the problems of an error, each at the line of the member that it is about.
pub fn by_line(text: &str, error: &HttpError) -> Vec<LineProblem> {
    let issues = error.issues();
    let lines = lines_of(text, issues.iter().map(|(path, _)| path.as_slice()));
    let mut problems: Vec<LineProblem> = issues
        .into_iter()
        .map(|(path, message)| LineProblem {
            line: line_of(&lines, &path),
            message,
        })
        .collect();
    if problems.is_empty() {
        problems.push(LineProblem {
            line: 1,
            message: error.message().to_owned(),
        });
    }

    problems.sort_by_key(|problem| problem.line);
    problems
}

/// Returns the line of a value, or of the value around it that lacks this member.
fn line_of(lines: &BTreeMap<Vec<String>, usize>, path: &[String]) -> usize {
    let mut around = (0..=path.len()).rev();
    let line = around.find_map(|end| lines.get(path.get(..end)?));
    line.copied().unwrap_or(1)
}

/// Returns the line on which the value of each path begins, and each value around one. The text is valid JSON.
fn lines_of<'a>(
    text: &'a str,
    paths: impl Iterator<Item = &'a [String]>,
) -> BTreeMap<Vec<String>, usize> {
    let around = |path: &'a [String]| (0..=path.len()).filter_map(move |end| path.get(..end));
    let mut finder = LineFinder {
        rest: text.chars().peekable(),
        line: 1,
        path: Vec::new(),
        wanted: paths.flat_map(around).collect(),
        lines: BTreeMap::new(),
    };
    finder.value();
    finder.lines
}

/// Reader of JSON that notes lines only.
struct LineFinder<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
    path: Vec<String>,
    /// Paths of which the lines are noted: all paths of a deep text would be many times its size.
    wanted: BTreeSet<&'a [String]>,
    lines: BTreeMap<Vec<String>, usize>,
}

impl LineFinder<'_> {
    fn take(&mut self) -> Option<char> {
        let taken = self.rest.next();
        if taken == Some('\n') {
            self.line += 1;
        }
        taken
    }

    fn skip_blank(&mut self) {
        while self.rest.peek().is_some_and(|one| one.is_whitespace()) {
            self.take();
        }
    }

    fn value(&mut self) {
        self.skip_blank();
        if self.wanted.contains(self.path.as_slice()) {
            self.lines.insert(self.path.clone(), self.line);
        }
        match self.rest.peek() {
            Some('{') => self.members('}'),
            Some('[') => self.members(']'),
            Some('"') => drop(self.string()),
            // A number or a word, which no sign ends but the next one of its list.
            _ => while self.rest.next_if(|one| !",]}\n".contains(*one)).is_some() {},
        }
    }

    /// Reads an object or an array up to its closing sign.
    fn members(&mut self, closing: char) {
        self.take();
        for index in 0_usize.. {
            self.skip_blank();
            if self.rest.peek().is_none_or(|one| *one == closing) {
                self.take();
                return;
            }

            let step = if closing == '}' {
                self.name()
            } else {
                index.to_string()
            };
            self.path.push(step);
            self.value();
            self.path.pop();

            self.skip_blank();
            self.rest.next_if_eq(&',');
        }
    }

    /// Reads the name of a member with its colon.
    fn name(&mut self) -> String {
        let name = self.string();
        self.skip_blank();
        self.rest.next_if_eq(&':');
        name
    }

    fn string(&mut self) -> String {
        let mut text = String::new();
        self.take();
        while let Some(one) = self.take() {
            match one {
                '"' => break,
                // No member of a map has a name with such a character.
                '\\' => text.extend(self.take()),
                _ => text.push(one),
            }
        }

        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use axum::http::StatusCode;

    const TEXT: &str = r#"{
  "name": "A \"map\", with }",
  "facts": [
    { "name": "apr", "kind": "percentage" },
    {
      "name": "vin",
      "printed": [{ "page": 12,
        "anchor": "VIN" }]
    }
  ]
}"#;

    #[test]
    fn a_value_has_the_line_on_which_it_begins() {
        let path = |path: &str| -> Vec<String> {
            let steps = path.split('.').filter(|step| !step.is_empty());
            steps.map(str::to_owned).collect()
        };
        let expected = [
            ("", 1),
            ("name", 2),
            ("facts", 3),
            ("facts.0.kind", 4),
            ("facts.1", 5),
            ("facts.1.name", 6),
            ("facts.1.printed.0.page", 7),
            ("facts.1.printed.0.anchor", 8),
            // Missing members.
            ("facts.1.kind", 5),
            ("facts.7", 3),
            ("applies_to", 1),
        ];
        let paths = expected.map(|(of, _)| path(of));
        let lines = lines_of(TEXT, paths.iter().map(Vec::as_slice));
        for (path, (of, line)) in paths.iter().zip(expected) {
            assert_eq!(line_of(&lines, path), line, "{of}");
        }
    }

    #[test]
    fn only_the_values_around_a_problem_are_noted() {
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        let path = ["0".to_owned(), "7".to_owned()];
        let lines = lines_of(&deep, std::iter::once(path.as_slice()));
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn problems_come_in_the_order_of_their_lines() {
        let details = json!([
            { "path": ["facts", 1, "name"], "message": "twice" },
            { "path": ["name"], "message": "too long" },
        ]);
        let error = HttpError::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid");
        let problem = |line: usize, message: &str| LineProblem {
            line,
            message: message.into(),
        };
        let whole = HttpError::new(StatusCode::CONFLICT, "Changed meanwhile");
        assert_eq!(by_line(TEXT, &whole), [problem(1, "Changed meanwhile")]);
        let found = by_line(TEXT, &error.with_details(details));
        assert_eq!(found, [problem(2, "too long"), problem(6, "twice")]);
    }
}
