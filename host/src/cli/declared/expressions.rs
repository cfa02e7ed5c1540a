//! Expressions and sentences of declared rules, for the rules of any slot.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use cel::Program;
use holdfast_conditions::{Conditions, Expression, SentencePart};

/// Time for an evaluation that takes microseconds.
const TRIAL: Duration = Duration::from_secs(5);

/// Functions of expressions, besides operators.
const FUNCTIONS: [&str; 22] = [
    "bool",
    "contains",
    "double",
    "endsWith",
    "int",
    "indexOf",
    "join",
    "lastIndexOf",
    "lowerAscii",
    "replace",
    "reverse",
    "size",
    "split",
    "startsWith",
    "string",
    "substring",
    "trim",
    "type",
    "uint",
    "upperAscii",
    "charAt",
    "dyn",
];

/// What the expressions of a slot's rules may use.
pub(super) struct Vocabulary {
    /// Names of facts.
    pub names: &'static [&'static str],
    /// Functions besides the common ones.
    pub functions: &'static [&'static str],
}

impl Vocabulary {
    /// Parses an expression, and checks the names in it.
    pub fn parse(&self, text: &str) -> Result<Expression, String> {
        let program = Program::compile(text).map_err(|error| error.to_string())?;
        let expression = Expression::of(program.expression())?;
        let (mut names, mut functions) = (Vec::new(), Vec::new());
        expression.uses(&mut Vec::new(), &mut names, &mut functions);

        // An unknown name would fail only when a record is evaluated in the vault,
        // so the author learns of it now.
        if let Some(unknown) = names.iter().find(|name| !self.names.contains(name)) {
            let known = self.names.join(", ");
            return Err(format!("there is no fact {unknown}; there are {known}"));
        }

        let is_operator = |name: &str| !name.starts_with(|first: char| first.is_ascii_alphabetic());
        let known: Vec<&str> = FUNCTIONS.iter().chain(self.functions).copied().collect();
        if let Some(unknown) = functions
            .iter()
            .find(|name| !is_operator(name) && !known.contains(name))
        {
            let known = known.join(", ");
            return Err(format!("there is no function {unknown}; there are {known}"));
        }

        Ok(expression)
    }

    /// Parses a sentence with expressions in braces. Doubled braces are braces.
    pub fn sentence(&self, text: &str) -> Result<Vec<SentencePart>, String> {
        let mut parts = Vec::new();
        let (mut plain, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }

            let end = rest.find('}').filter(|_| brace == "{");
            let end =
                end.ok_or("a brace has no partner; a brace in a sentence is written twice")?;
            parts.push(SentencePart::Text(std::mem::take(&mut plain)));
            parts.push(SentencePart::Value(self.parse(&rest[..end])?));

            rest = &rest[end + 1..];
        }

        plain.push_str(rest);
        parts.push(SentencePart::Text(plain));
        parts.retain(|part| *part != SentencePart::Text(String::new()));

        if parts.is_empty() {
            Err("it is empty".into())
        } else {
            Ok(parts)
        }
    }
}

/// Returns the expressions in sentences.
pub(super) fn values<'a>(
    sentences: impl Iterator<Item = &'a SentencePart>,
) -> impl Iterator<Item = &'a Expression> {
    sentences.filter_map(|part| match part {
        SentencePart::Value(value) => Some(value),
        SentencePart::Text(_) => None,
    })
}

/// Tries rules for some seconds at most. Here nothing counts their work; in the vault a call ends after 200 ms.
pub(super) fn tried_in_time(
    try_out: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Result<(), String> {
    let (send, tried_out) = mpsc::channel();

    // It ends with this process if the rules never do.
    std::thread::spawn(move || send.send(try_out()));
    match tried_out.recv_timeout(TRIAL) {
        Ok(found) => found,
        Err(RecvTimeoutError::Timeout) => Err(format!(
            "an empty record takes more than {} seconds, and a call in the vault has 200 ms: simplify the conditions",
            TRIAL.as_secs()
        )),
        Err(RecvTimeoutError::Disconnected) => Err("the conditions cannot be evaluated".into()),
    }
}

/// Refuses a condition that is never true or false.
///
/// # Errors
/// The condition has another type.
pub(super) fn is_condition(
    conditions: &Conditions,
    name: &str,
    condition: &Expression,
) -> Result<(), String> {
    // A condition may fail on an empty record and hold on others. Only a wrong type is wrong for all.
    match conditions.hold(condition) {
        Err(why) if why.starts_with("it is ") => Err(format!("condition of \"{name}\": {why}")),
        _ => Ok(()),
    }
}
