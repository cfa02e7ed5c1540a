//! The least that a create costs on SQLite: a program with one thread that inserts the same rows and commits.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rusqlite::types::Value;
use rusqlite::{Connection, TransactionBehavior, params_from_iter};

use crate::Failure;
use crate::meter;

/// First argument that runs the floor program.
pub const FLOOR_PROGRAM: &str = "floor-program";

/// How the store opens its connections.
const SETTINGS: &str =
    "pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 10000;";
/// Characters at the end of an id that are counted up, so that copies of a row do not collide.
const COUNTED: usize = 8;

/// The newest row of each table.
pub struct NewestRows(BTreeMap<String, i64>);

/// Creates a second, and milliseconds of processor time each.
pub struct Floor {
    pub rate: f64,
    pub processor_ms: f64,
}

impl NewestRows {
    pub fn of(database: &Path) -> Result<Self, Failure> {
        let connection = Connection::open(database)?;
        let mut newest = BTreeMap::new();
        for table in tables(&connection)? {
            let query = format!("select coalesce(max(rowid), 0) from {table}");
            let last = connection.query_row(&query, [], |row| row.get(0))?;
            newest.insert(table, last);
        }

        Ok(Self(newest))
    }

    /// Runs the program in a process of its own on the rows that came since.
    pub fn measure(&self, database: &Path, time: Duration) -> Result<Floor, Failure> {
        let since: Vec<String> = self
            .0
            .iter()
            .map(|(table, last)| format!("{table}={last}"))
            .collect();
        let output = Command::new(std::env::current_exe()?)
            .arg(FLOOR_PROGRAM)
            .arg(database)
            .arg(time.as_millis().to_string())
            .args(since)
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }

        let text = String::from_utf8(output.stdout)?;
        let numbers: Vec<f64> = text
            .split_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect();
        match numbers[..] {
            [rate, processor_ms] => Ok(Floor { rate, processor_ms }),
            _ => Err(format!("the floor program printed {text:?}").into()),
        }
    }
}

/// Inserts copies of rows for a time, and prints rate and processor time.
pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let [database, time, since @ ..] = arguments else {
        return Err("the floor program needs a database, milliseconds and tables".into());
    };
    let mut connection = Connection::open(database)?;
    connection.execute_batch(SETTINGS)?;
    let inserts = inserts(&connection, since)?;
    let ids = ids(&inserts);
    // Split once: a search for every id in every text would be most of the work.
    let inserts: Vec<(String, Vec<CountedValue>)> = inserts
        .into_iter()
        .map(|(statement, values)| {
            let values = values
                .into_iter()
                .map(|value| CountedValue::of(value, &ids));
            (statement, values.collect())
        })
        .collect();

    let time = Duration::from_millis(time.parse()?);
    let (started, before) = (Instant::now(), meter::seconds(std::process::id(), false));
    let mut count = 0;
    while started.elapsed() < time {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (statement, values) in &inserts {
            let values = values.iter().map(|value| value.copied(count));
            transaction
                .prepare_cached(statement)?
                .execute(params_from_iter(values))?;
        }

        transaction.commit()?;
        count += 1;
    }

    let took = started.elapsed().as_secs_f64();
    let used = meter::seconds(std::process::id(), false) - before;
    println!(
        "{} {}",
        f64::from(count) / took,
        used * 1e3 / f64::from(count)
    );
    Ok(())
}

fn tables(connection: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement = connection.prepare(
        "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'",
    )?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

type Insert = (String, Vec<Value>);

/// Returns a statement and its values for each new row.
fn inserts(connection: &Connection, since: &[String]) -> Result<Vec<Insert>, Failure> {
    let mut inserts = Vec::new();
    for part in since {
        let (table, last) = part.split_once('=').ok_or("a table without a row")?;
        let mut statement =
            connection.prepare(&format!("select * from {table} where rowid > ?1"))?;
        let columns = statement.column_names().join(", ");
        let count = statement.column_count();
        let marks = vec!["?"; count].join(", ");

        let mut rows = statement.query([last.parse::<i64>()?])?;
        while let Some(row) = rows.next()? {
            let values: Result<_, _> = (0..count).map(|index| row.get(index)).collect();
            let insert = format!("insert or replace into {table} ({columns}) values ({marks})");
            inserts.push((insert, values?));
        }
    }

    match inserts.len() {
        0 => Err("no row was inserted".into()),
        _ => Ok(inserts),
    }
}

/// Returns the ids of the new rows: the first texts of rows that look like one.
fn ids(inserts: &[Insert]) -> Vec<String> {
    let mut ids: Vec<String> = inserts
        .iter()
        .flat_map(|(_, values)| values)
        .filter_map(|value| match value {
            Value::Text(text) if looks_like_an_id(text) => Some(text.clone()),
            _ => None,
        })
        .collect();
    ids.sort();
    ids.dedup();
    // Organization, key, customer and template stay.
    ids.retain(|id| {
        !["org_", "key_", "cus_", "tpl_"]
            .iter()
            .any(|kind| id.starts_with(kind))
    });
    ids
}

fn looks_like_an_id(text: &str) -> bool {
    text.split_once('_').is_some_and(|(kind, rest)| {
        kind.len() <= 6 && rest.len() >= 16 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Value of a row.
enum CountedValue {
    Same(Value),
    /// Text in the pieces between which each copy has its number: the ends of ids.
    Counted(Vec<String>),
}

impl CountedValue {
    fn of(value: Value, ids: &[String]) -> Self {
        let Value::Text(text) = value else {
            return Self::Same(value);
        };

        let mut pieces = vec![text];
        for id in ids {
            let kept = &id[..id.len() - COUNTED];
            pieces = pieces
                .iter()
                .flat_map(|piece| {
                    let mut parts: Vec<String> = piece.split(id).map(str::to_owned).collect();
                    let last = parts.len() - 1;
                    for part in &mut parts[..last] {
                        part.push_str(kept);
                    }
                    parts
                })
                .collect();
        }
        match <[String; 1]>::try_from(pieces) {
            Ok([text]) => Self::Same(Value::Text(text)),
            Err(pieces) => Self::Counted(pieces),
        }
    }

    fn copied(&self, count: i32) -> Value {
        match self {
            Self::Same(value) => value.clone(),
            Self::Counted(pieces) => Value::Text(pieces.join(&format!("{count:0COUNTED$}"))),
        }
    }
}
