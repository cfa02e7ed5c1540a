//! Formulas: `[Price] * [Rate] / 100 - max([Trade-in], 0)`.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = sign { ("*" | "/") sign }
//! sign    = "-" sign | value
//! value   = number | "[" field "]" | "(" sum ")"
//!         | ("round" | "min" | "max" | "sum") "(" sum { "," sum } ")"
//! ```

use rust_decimal::{Decimal, RoundingStrategy};

/// Deepest nesting of brackets and signs.
const DEEPEST: usize = 32;

/// A parsed formula.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Formula {
    root: Node,
    fields: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Number(Decimal),
    Field(String),
    Negative(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Function {
    Round,
    Min,
    Max,
    Sum,
}

/// Rounds as amounts of money are rounded: a half goes away from zero.
fn rounded(number: Decimal, places: u32) -> Decimal {
    number.round_dp_with_strategy(places, RoundingStrategy::MidpointAwayFromZero)
}

impl Formula {
    /// Parses a formula.
    ///
    /// # Errors
    ///
    /// The reason, with the place in the text.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser {
            text: text.chars().collect(),
            at: 0,
            depth: 0,
            fields: Vec::new(),
        };

        let root = parser.sum()?;
        // Text behind the formula is an error: an author of `1 2` means something else than 1.
        match parser.peek() {
            None => Ok(Self {
                root,
                fields: parser.fields,
            }),
            Some(other) => Err(parser.wrong(&format!("{other:?} is not expected"))),
        }
    }

    /// Returns the names of the fields that it uses.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(String::as_str)
    }

    /// Computes the result with a number of decimal places; none for a division by zero and for a
    /// number with more than 28 digits. `value` gives the number of a field.
    pub(super) fn result(
        &self,
        decimals: u32,
        value: &mut dyn FnMut(&str) -> Decimal,
    ) -> Option<String> {
        // Rescaling stops at 28 digits, and fewer decimal places than promised are no result.
        let mut result = rounded(self.root.number(value)?, decimals);
        result.rescale(decimals);
        (result.scale() == decimals).then(|| {
            if result.is_zero() {
                // Never "-0.00".
                result.abs().to_string()
            } else {
                result.to_string()
            }
        })
    }
}

impl Node {
    fn number(&self, value: &mut dyn FnMut(&str) -> Decimal) -> Option<Decimal> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Field(name) => Some(value(name)),
            Self::Negative(node) => Some(-node.number(value)?),
            // Values come from signers. An overflow or a division by zero must not end the call.
            Self::Binary(operator, left, right) => {
                let (left, right) = (left.number(value)?, right.number(value)?);
                match operator {
                    Operator::Add => left.checked_add(right),
                    Operator::Subtract => left.checked_sub(right),
                    Operator::Multiply => left.checked_mul(right),
                    Operator::Divide => left.checked_div(right),
                }
            }
            Self::Call(function, nodes) => {
                let numbers = nodes.iter().map(|node| node.number(value));
                let numbers = numbers.collect::<Option<Vec<_>>>()?;
                match function {
                    Function::Min => numbers.into_iter().min(),
                    Function::Max => numbers.into_iter().max(),
                    Function::Sum => numbers
                        .into_iter()
                        .try_fold(Decimal::ZERO, |sum, number| sum.checked_add(number)),
                    Function::Round => {
                        let places = numbers.get(1).copied().unwrap_or_default();
                        let places = u32::try_from(places).ok()?;
                        Some(rounded(*numbers.first()?, places))
                    }
                }
            }
        }
    }
}

struct Parser {
    text: Vec<char>,
    at: usize,
    depth: usize,
    fields: Vec<String>,
}

impl Parser {
    fn peek(&mut self) -> Option<char> {
        while self.text.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn wrong(&self, why: &str) -> String {
        format!("{why} at character {}", self.at + 1)
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) {
            Ok(())
        } else {
            Err(self.wrong(&format!("{wanted:?} is missing")))
        }
    }

    /// Takes the characters for which `belongs` holds.
    fn run(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let rest = self.text.iter().skip(self.at);
        let run: String = rest.copied().take_while(|c| belongs(*c)).collect();
        self.at += run.chars().count();
        run
    }

    fn sum(&mut self) -> Result<Node, String> {
        let mut left = self.product()?;
        // The loop binds operators of one rank to the left, as people read them.
        loop {
            let operator = match self.peek() {
                Some('+') => Operator::Add,
                Some('-') => Operator::Subtract,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Node::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Node, String> {
        let mut left = self.sign()?;
        loop {
            let operator = match self.peek() {
                Some('*') => Operator::Multiply,
                Some('/') => Operator::Divide,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Node::Binary(operator, Box::new(left), Box::new(self.sign()?));
        }
    }

    fn sign(&mut self) -> Result<Node, String> {
        // Every level of nesting passes here, and each one takes room on the stack of the sandbox.
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong("it is nested too deeply"));
        }

        let node = if self.take('-') {
            Node::Negative(Box::new(self.sign()?))
        } else {
            self.value()?
        };
        self.depth -= 1;

        Ok(node)
    }

    fn value(&mut self) -> Result<Node, String> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let node = self.sum()?;
                self.expect(')')?;
                Ok(node)
            }
            Some('[') => {
                self.at += 1;
                // Names of fields may have spaces and signs of arithmetic, so only the bracket ends one.
                let name = self.run(|c| c != ']').trim().to_owned();
                self.expect(']')?;
                self.fields.push(name.clone());
                Ok(Node::Field(name))
            }
            Some(c) if c.is_ascii_digit() || c == '.' => {
                let digits = self.run(|c| c.is_ascii_digit() || c == '.');
                // A number with more digits than fit is refused: rounded, it would give another amount.
                let number = Decimal::from_str_exact(&digits);
                let number = number.map_err(|_| self.wrong(&format!("{digits} is no number")))?;
                Ok(Node::Number(number))
            }
            Some(c) if c.is_ascii_alphabetic() => {
                let name = self.run(|c| c.is_ascii_alphabetic());
                let function = match name.to_ascii_lowercase().as_str() {
                    "round" => Function::Round,
                    "min" => Function::Min,
                    "max" => Function::Max,
                    "sum" => Function::Sum,
                    _ => return Err(self.wrong(&format!("there is no function {name}"))),
                };

                self.call(function)
            }
            Some(other) => Err(self.wrong(&format!("{other:?} is not expected"))),
            None => Err(self.wrong("a value is missing")),
        }
    }

    fn call(&mut self, function: Function) -> Result<Node, String> {
        self.expect('(')?;
        let mut nodes = vec![self.sum()?];
        while self.take(',') {
            nodes.push(self.sum()?);
        }

        self.expect(')')?;
        // The other functions take any number of values.
        if function == Function::Round && nodes.len() > 2 {
            return Err(self.wrong("round takes a number and its decimal places"));
        }

        Ok(Node::Call(function, nodes))
    }
}
