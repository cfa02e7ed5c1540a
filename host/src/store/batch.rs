//! Statements that are sent to the database together.
//!
//! Every statement that is sent alone crosses to the thread of SQLite's connection and back, or to the
//! server of PostgreSQL and back, which costs more than most statements themselves.

use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, Arguments as _, AssertSqlSafe, Execute as _, SqlStr};

use super::{SqlDialect, StoreError};

/// Maximum number of parameters that are sent at once. PostgreSQL counts them with 16 bits, and plans
/// long statements slowly.
const PARAMETERS: usize = 2000;

/// Statements whose results nobody needs, in the order in which they take effect. On PostgreSQL one must not
/// change rows that another one adds or changes.
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
        while statements.peek().is_some() {
            let (mut texts, mut all) = (Vec::new(), AnyArguments::default());
            while let Some((text, arguments)) = statements
                .next_if(|(_, next)| texts.is_empty() || all.len() + next.len() <= PARAMETERS)
            {
                texts.push(numbered_from(text.as_str(), all.len()));
                all.values.0.extend(arguments.values.0);
            }
            let text = AssertSqlSafe(joined(texts, dialect));
            sqlx::query_with(text, all)
                .execute(&mut *connection)
                .await?;
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

/// Joins statements to one text. PostgreSQL prepares one statement a text, so that the others become its
/// `with` queries.
fn joined(mut texts: Vec<String>, dialect: SqlDialect) -> String {
    match (dialect, texts.pop()) {
        (_, None) => String::new(),
        (_, Some(only)) if texts.is_empty() => only,
        (SqlDialect::Sqlite, Some(last)) => {
            texts.push(last);
            texts.join(";\n")
        }
        (SqlDialect::Postgres, Some(last)) => {
            let others = texts.iter().enumerate();
            let others = others.map(|(number, text)| format!("with_{number} as ({text})"));
            format!("with {} {last}", others.collect::<Vec<_>>().join(",\n"))
        }
    }
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

    #[test]
    fn postgresql_gets_one_statement_and_sqlite_several() {
        let texts = || vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let one = joined(texts(), SqlDialect::Postgres);
        assert_eq!(one, "with with_0 as (a),\nwith_1 as (b) c");
        assert_eq!(joined(texts(), SqlDialect::Sqlite), "a;\nb;\nc");
        assert_eq!(joined(vec!["a".to_owned()], SqlDialect::Postgres), "a");
    }
}
