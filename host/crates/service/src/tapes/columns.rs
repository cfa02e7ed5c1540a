//! Tapes of which a person chooses the facts of the columns: the file waits until then, and the choice is kept as the map
//! of the tape's name.

use std::collections::HashSet;

use super::{
    NewTape, TapeView, admit, checked_name, detected, find, maps, population, queue, stored,
};
use crate::facts::maps as fact_maps;
use holdfast_adapters::files::{FilesError, SpooledFile};
use holdfast_domain::tape::{
    DecimalMark, KEY_FACTS, OpenError, Tape, TapeColumn, TapeFormat, TapeKey, TapeMap, TapePart,
    TapeStatus, column_names, guessed, plain_name,
};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError};
use holdfast_store::tapes::{self as rows, NamedTapeMap};

/// Most facts that are offered. Each column of the page has a list of them.
const FACTS: usize = 300;

/// A file of which the columns are not known yet.
pub struct SentFile {
    pub file: SpooledFile,
    /// Name of the line or pool. The choice is kept under it.
    pub name: String,
    pub part: Option<TapePart>,
    /// Transfer that limits the records that are looked up.
    pub pool: Option<String>,
}

/// Facts and columns that a person chooses from.
pub struct ColumnChoice {
    pub tape: TapeView,
    /// Names of facts, some hundreds at most: those of the map that was kept, of the starters, of the organization's fact maps
    /// and of its other maps of tapes.
    pub facts: Vec<String>,
    /// The columns of the file, with the facts that they probably hold.
    pub columns: Vec<ProbableColumn>,
    /// Map that was kept under the tape's name, with the keys and forms of values of the last tape.
    pub remembered: Option<TapeMap>,
}

/// A column of the file.
pub struct ProbableColumn {
    pub name: String,
    pub holds: Option<TapeColumn>,
}

/// Stores a file until its columns are chosen.
pub async fn wait(
    core: &Core,
    caller: &Caller,
    sent: SentFile,
    answer: &ResponseRecorder<TapeView>,
) -> Result<TapeView, ServiceError> {
    let name = checked_name(&sent.name)?;
    let pool = match &sent.pool {
        Some(pool) => Some(population::known_pool(core, caller, pool).await?),
        None => None,
    };
    let format = detected(sent.file.head());
    let header = names(&sent.file, format).await?;

    let tape = NewTape {
        name,
        format,
        // Replaced by the choice.
        map: TapeMap {
            columns: Vec::new(),
            keys: TapeKey::ALL.to_vec(),
            date_order: None,
            decimal: DecimalMark::Point,
            separator: None,
            date_fact: None,
        },
        part: sent.part,
        pool,
        header: Some(header),
    };
    let tape = stored(core, caller, tape, &sent.file).await?;
    let mut tx = core.store.begin().await?;
    admit(&mut tx, &caller.org).await?;
    rows::insert(&mut tx, &tape).await?;
    let view = TapeView::from(&tape);
    answer.commit(tx, &view).await?;

    Ok(view)
}

async fn names(file: &SpooledFile, format: TapeFormat) -> Result<Vec<String>, ServiceError> {
    let file = file.open().await.map_err(FilesError::Spool)?;
    let file = file.into_std().await;
    let read = tokio::task::spawn_blocking(move || column_names(file, format)).await;
    let read = read.map_err(|error| ServiceError::Internal(error.to_string()))?;
    read.map_err(|error| match error {
        OpenError::Read(error) => FilesError::Spool(error).into(),
        OpenError::Refused(refusal) => ServiceError::invalid(
            refusal.code,
            &["file"],
            "a table with the names of its columns in the first row",
            "",
            refusal.message,
        ),
    })
}

/// Returns the facts and columns that a person chooses from.
///
/// # Errors
/// A problem with the code `columns_are_chosen` if the choice was made.
pub async fn choice(core: &Core, caller: &Caller, id: &str) -> Result<ColumnChoice, ServiceError> {
    let tape = find(core, caller, id).await?;
    let header = waiting(&tape)?.clone();
    let mut connection = core.store.read().await?;
    let remembered = rows::map(&mut connection, &caller.org, &tape.name).await?;
    drop(connection);

    let remembered = remembered.map(|named| named.map);
    let facts = known_facts(core, caller, remembered.as_ref()).await?;
    let columns = match &remembered {
        Some(map) => remembered_columns(&header, map),
        None => guessed_columns(&header, &facts),
    };
    Ok(ColumnChoice {
        tape: TapeView::from(&tape),
        facts,
        columns,
        remembered,
    })
}

/// Returns the names of the columns of a tape that waits for a choice.
fn waiting(tape: &Tape) -> Result<&Vec<String>, ServiceError> {
    let header = tape
        .header
        .as_ref()
        .filter(|_| tape.status == TapeStatus::Choosing);
    header.ok_or_else(|| {
        let message = "The columns of this tape are chosen, and its check has begun; GET the tape shows its status";
        Problem::new(ProblemKind::State, "columns_are_chosen", message).into()
    })
}

/// Returns the facts that a column can hold.
async fn known_facts(
    core: &Core,
    caller: &Caller,
    remembered: Option<&TapeMap>,
) -> Result<Vec<String>, ServiceError> {
    let mut facts: Vec<String> = KEY_FACTS.map(str::to_owned).into();
    // Before the others, so that each of them can be chosen again.
    if let Some(map) = remembered {
        facts.extend(map.columns.iter().map(|column| column.fact.clone()));
    }

    let starters = fact_maps::starters()?.into_iter().map(|map| map.facts);
    let own = fact_maps::list(core, caller).await?.into_iter();
    let of_contracts = starters.chain(own.map(|map| map.facts)).flatten();
    facts.extend(of_contracts.map(|fact| fact.name));
    for named in maps::list(core, caller).await? {
        facts.extend(named.map.columns.into_iter().map(|column| column.fact));
    }
    Ok(without_repeats(facts))
}

/// Returns the first [`FACTS`] different facts.
fn without_repeats(mut facts: Vec<String>) -> Vec<String> {
    let mut known: HashSet<String> = HashSet::new();
    facts.retain(|fact| known.insert(fact.clone()));
    facts.truncate(FACTS);
    facts
}

fn remembered_columns(header: &[String], map: &TapeMap) -> Vec<ProbableColumn> {
    let column = |name: &String| ProbableColumn {
        name: name.clone(),
        holds: map
            .columns
            .iter()
            .find(|column| plain_name(&column.column) == plain_name(name))
            .cloned(),
    };
    header.iter().map(column).collect()
}

fn guessed_columns(header: &[String], facts: &[String]) -> Vec<ProbableColumn> {
    let guesses = header.iter().zip(guessed(header, facts));
    let column = |(name, fact): (&String, Option<String>)| ProbableColumn {
        name: name.clone(),
        holds: fact.map(|fact| TapeColumn {
            column: name.clone(),
            fact,
            kind: None,
            tolerance: None,
            severity: None,
            fraction: false,
        }),
    };
    guesses.map(column).collect()
}

/// Keeps the choice under the tape's name, and queues the check.
pub async fn choose(
    core: &Core,
    caller: &Caller,
    id: &str,
    map: TapeMap,
    answer: &ResponseRecorder<TapeView>,
) -> Result<TapeView, ServiceError> {
    let tape = find(core, caller, id).await?;
    waiting(&tape)?;
    let problems = map.problems();
    if !problems.is_empty() {
        return Err(maps::refused(&[], &problems));
    }

    let named = NamedTapeMap {
        name: tape.name.clone(),
        map: map.clone(),
        made_by: caller.actor.clone(),
        updated_at: core.clock.now(),
    };
    let mut tx = core.store.begin().await?;
    rows::begin(&mut tx, &tape, &map).await?;
    rows::put_map(&mut tx, &caller.org, &named).await?;
    queue(&mut tx, &tape).await?;
    let view = TapeView::from(&Tape {
        map,
        header: None,
        status: TapeStatus::Checking,
        ..tape
    });
    answer.commit(tx, &view).await?;

    Ok(view)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Vec<String> {
        ["Loan No.", "Amount", "Colour"].map(str::to_owned).into()
    }

    fn facts_of(columns: &[ProbableColumn]) -> Vec<&str> {
        let facts = columns.iter().map(|column| column.holds.as_ref());
        facts
            .map(|holds| holds.map_or("-", |holds| holds.fact.as_str()))
            .collect()
    }

    #[test]
    fn each_fact_is_offered_once_and_not_too_many() {
        let facts = ["vin", "apr", "vin"].map(str::to_owned);
        assert_eq!(without_repeats(facts.into()), ["vin", "apr"]);
        let many = (0..1_000).map(|number| format!("fact_{number}"));
        assert_eq!(without_repeats(many.collect()).len(), FACTS);
    }

    #[test]
    fn columns_are_those_of_the_last_tape_or_guessed() {
        let facts = ["contract_number", "amount_financed", "make"].map(str::to_owned);
        let guessed = guessed_columns(&header(), &facts);
        assert_eq!(
            facts_of(&guessed),
            ["contract_number", "amount_financed", "-"]
        );

        // A column that was left out of the last tape stays out.
        let map = r#"{"columns":[{"column":"loan no.","fact":"external_id"}]}"#;
        let map = TapeMap::parse(map).unwrap();
        let remembered = remembered_columns(&header(), &map);
        assert_eq!(facts_of(&remembered), ["external_id", "-", "-"]);
    }
}
