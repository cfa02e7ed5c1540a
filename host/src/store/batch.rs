//! Statements that are sent to the database together.
//!
//! Every statement that is sent alone crosses to the thread of SQLite's connection and back, which costs
//! more than most statements themselves. PostgreSQL prepares one statement a message. Its way to several,
//! `with` queries that insert, is refused by databases that distribute tables (Citus), so it gets them one
//! by one.

use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, Arguments as _, AssertSqlSafe, Execute as _, SqlStr};

use super::{SqlDialect, StoreError};

/// Maximum number of parameters that are sent at once.
const PARAMETERS: usize = 2000;

/// Statements without results, in the order of their effects.
#[derive(Default)]
pub(super) struct StatementBatch {
    statements: Vec<(SqlStr, AnyArguments)>,
}

impl StatementBatch {
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// Adds a statement.
    pub fn add(&mut self, mut query: Query<'_, Any, AnyArguments>) -> Result<(), StoreError> {
        let arguments = query.take_arguments().map_err(sqlx::Error::Encode)?;
        let arguments = arguments.unwrap_or_default();
        self.statements.push((query.sql(), arguments));
        Ok(())
    }

    /// Sends the statements.
    pub async fn send(
        self,
        connection: &mut AnyConnection,
        dialect: SqlDialect,
    ) -> Result<(), StoreError> {
        let mut statements = self.statements.into_iter().peekable();
        while let Some((text, mut arguments)) = statements.next() {
            let mut text = text.as_str().to_owned();
            while let Some((next, more)) = statements.next_if(|(_, next)| {
                dialect == SqlDialect::Sqlite && arguments.len() + next.len() <= PARAMETERS
            }) {
                text += ";\n";
                text += &numbered_from(next.as_str(), arguments.len());
                arguments.values.0.extend(more.values.0);
            }
            let query = sqlx::query_with(AssertSqlSafe(text), arguments);
            query.execute(&mut *connection).await?;
        }
        Ok(())
    }
}

/// Numbers the parameters of a statement after those of earlier ones: with `first` 4, `$1` becomes `$5`.
fn numbered_from(text: &str, first: usize) -> String {
    let mut numbered = String::with_capacity(text.len() + 32);
    let mut parts = text.split('$');
    numbered.extend(parts.next());
    for part in parts {
        numbered.push('$');
        let end = part.find(|c: char| !c.is_ascii_digit());
        let (digits, rest) = part.split_at(end.unwrap_or(part.len()));
        match digits.parse::<usize>() {
            Ok(number) => numbered.push_str(&(number + first).to_string()),
            Err(_) => numbered.push_str(digits),
        }
        numbered.push_str(rest);
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_after_those_of_earlier_statements() {
        let text = "values ($1, '$', $12, $1)";
        let numbered = numbered_from(text, 30);
        assert_eq!(numbered, "values ($31, '$', $42, $31)");
    }
}
