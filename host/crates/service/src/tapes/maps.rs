//! Maps of tapes, kept under a name so that the next tape of a line needs no further work.

use schemars::JsonSchema;
use serde::Serialize;

use super::checked_name;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::tape::{MapProblem, TapeMap};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue};
use holdfast_store::tapes::{self as rows, NamedTapeMap};

/// Maps of an organization that are listed.
const LISTED: i64 = 1000;

/// A map with its name.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "name": "Warehouse line 12", "sha256": "1f8c…", "made_by": "key:key_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "updated_at": "2026-11-21T09:45:00.000Z",
    "map": {
        "columns": [{ "column": "Loan Number", "fact": "contract_number" }], "keys": ["contract_number"],
        "decimal": ".",
    },
}]))]
pub struct TapeMapView {
    pub name: String,
    /// SHA-256 of the map's canonical JSON (RFC 8785), lower-case hex.
    pub sha256: String,
    /// How columns are read.
    pub map: TapeMap,
    /// Who stored this version: `key:…` or `user:…`.
    pub made_by: String,
    pub updated_at: Timestamp,
}

impl From<NamedTapeMap> for TapeMapView {
    fn from(named: NamedTapeMap) -> Self {
        Self {
            name: named.name,
            sha256: named.map.sha256(),
            map: named.map,
            made_by: named.made_by,
            updated_at: named.updated_at,
        }
    }
}

/// Returns the error of a map that cannot be used. `within` leads to the map in the request.
pub fn refused(within: &[&str], problems: &[MapProblem]) -> ServiceError {
    let issue = |problem: &MapProblem| {
        let path: Vec<&str> = within
            .iter()
            .copied()
            .chain(problem.path.iter().map(String::as_str))
            .collect();
        let (code, expected) = ("invalid_tape_map", "a map of a tape");
        ValidationIssue::new(code, &path, expected, "", problem.message.clone())
    };
    ServiceError::Invalid(problems.iter().map(issue).collect())
}

/// Stores a map under a name, in place of an earlier one.
pub async fn put(
    core: &Core,
    caller: &Caller,
    name: &str,
    map: TapeMap,
    answer: &ResponseRecorder<TapeMapView>,
) -> Result<TapeMapView, ServiceError> {
    let name = checked_name(name)?;
    let problems = map.problems();
    if !problems.is_empty() {
        return Err(refused(&[], &problems));
    }

    let named = NamedTapeMap {
        name,
        map,
        made_by: caller.actor.clone(),
        updated_at: core.clock.now(),
    };
    let mut tx = core.store.begin().await?;
    rows::put_map(&mut tx, &caller.org, &named).await?;
    let view = TapeMapView::from(named);
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Returns the map with a name.
pub async fn get(core: &Core, caller: &Caller, name: &str) -> Result<TapeMapView, ServiceError> {
    let unknown = || ServiceError::NotFound("Tape map");
    // A name that no map can have, such as one with a zero byte, which a database refuses.
    let name = checked_name(name).map_err(|_| unknown())?;
    let mut connection = core.store.read().await?;
    let named = rows::map(&mut connection, &caller.org, &name).await?;
    named.map(TapeMapView::from).ok_or_else(unknown)
}

/// Lists the caller's maps by name.
pub async fn list(core: &Core, caller: &Caller) -> Result<Vec<TapeMapView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let named = rows::maps(&mut connection, &caller.org, LISTED).await?;
    Ok(named.into_iter().map(TapeMapView::from).collect())
}
