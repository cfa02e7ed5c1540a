//! Evaluation of expressions over facts.

use std::sync::Arc;

use cel::common::value::Val;
use cel::{Context, Env, Value};

use crate::expression::{Expression, SentencePart};

/// Stands in a sentence for a value that cannot be evaluated.
const NO_VALUE: &str = "–";

/// Facts of one record, ready for expressions.
pub struct Conditions {
    context: Context<'static, 'static>,
    written: fn(&dyn Val) -> Option<String>,
}

impl Conditions {
    /// Returns conditions over no facts yet. `written` writes values of the slot's own types.
    pub fn new(mut env: Env, written: fn(&dyn Val) -> Option<String>) -> Self {
        // Declaring the functions of a fresh environment does not fail.
        let _ = env.add_extension(cel::extensions::strings);
        Self {
            context: Context::with_env(Arc::new(env)),
            written,
        }
    }

    /// Sets a fact, in place of one of that name.
    pub fn set(&mut self, name: &str, value: &serde_json::Value) {
        let value = cel::to_value(value).unwrap_or(Value::Null);
        self.context.add_variable_from_value(name, value);
    }

    /// Sets a fact with a type of the slot's own.
    pub fn set_own(&mut self, name: &str, value: Box<dyn Val>) {
        self.context.add_variable_as_val(name, value);
    }

    /// Whether a condition holds.
    ///
    /// # Errors
    /// The condition cannot be evaluated, or is neither true nor false.
    pub fn hold(&self, condition: &Expression) -> Result<bool, String> {
        match Value::resolve(&condition.parsed(), &self.context) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("it is {} and not true or false", other.type_of())),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns a sentence with its values. A value that cannot be evaluated is left out.
    pub fn sentence(&self, parts: &[SentencePart]) -> String {
        let texts = parts.iter().map(|part| match part {
            SentencePart::Text(text) => text.clone(),
            SentencePart::Value(value) => self.value(value).unwrap_or_else(|| NO_VALUE.to_owned()),
        });

        texts.collect()
    }

    fn value(&self, expression: &Expression) -> Option<String> {
        let parsed = expression.parsed();
        let value = Value::resolve_val(&parsed, &self.context).ok()?;
        if let Some(text) = (self.written)(&*value) {
            return Some(text);
        }

        match Value::try_from(&*value).ok()? {
            Value::String(text) => Some(text.to_string()),
            Value::Int(number) => Some(number.to_string()),
            Value::UInt(number) => Some(number.to_string()),
            Value::Float(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            _ => None,
        }
    }
}
