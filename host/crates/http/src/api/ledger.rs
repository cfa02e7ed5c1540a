//! The public log of all ledgers: hashes and signatures only.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::HttpError;
use crate::middleware::extract::ValidQuery;
use crate::middleware::limits::LedgerReader;
use crate::reply::{DataReply, Found};
use holdfast_domain::merkle::{TILE, TileId};
use holdfast_evidence::formats::LogHead;
use holdfast_platform::ServiceError;
use holdfast_platform::log;
use holdfast_service::{App, installation};

/// Query of `GET /ledger/head`.
#[derive(Deserialize, JsonSchema)]
pub struct HeadQuery {
    /// Size of an older tree. The answer then proves that the older tree is a prefix of this one.
    #[schemars(range(min = 0))]
    since: Option<u64>,
}

pub async fn head(
    State(app): State<App>,
    reader: LedgerReader,
    ValidQuery(query): ValidQuery<HeadQuery>,
) -> Result<Found<LogHead>, HttpError> {
    let head = log::head(&app, query.since).await?;
    // Who asks for a proof watches the log. The answer does not depend on the note.
    if query.since.is_some()
        && let Some(address) = &reader.address
        && let Err(error) = installation::note_monitor(&app, address).await
    {
        tracing::warn!(%error, "a monitor's question could not be noted");
    }

    Ok(DataReply::new(&head))
}

/// Serves the same log to readers of C2SP `tlog-tiles`, which fixes the paths and the non-JSON
/// formats: `checkpoint` and `tile/<level>/<index>[.p/<width>]` below `/ledger`.
pub fn tiles() -> Router<App> {
    Router::new()
        .route("/ledger/checkpoint", get(checkpoint))
        .route("/ledger/tile/{level}/{*index}", get(tile))
}

async fn checkpoint(State(app): State<App>, _reader: LedgerReader) -> Result<Response, HttpError> {
    let mut connection = app.store.read().await.map_err(ServiceError::from)?;
    let note = log::published(&app, &mut connection).await?;
    let note = note.ok_or(ServiceError::NotFound("Ledger head"))?;
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        // The head moves with each entry, and an old one would look like a log that stands still.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    Ok((headers, note).into_response())
}

async fn tile(
    State(app): State<App>,
    _reader: LedgerReader,
    Path((level, index)): Path<(String, String)>,
) -> Result<Response, HttpError> {
    let wanted = level.parse().ok().zip(tile_index(&index));
    let Some((level, (index, width))) = wanted else {
        return Err(ServiceError::NotFound("Tile").into());
    };

    let hashes = log::tile(&app, TileId { level, index }, width).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        // A tile never changes.
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];

    Ok((headers, hashes).into_response())
}

/// Parses a tile's index and width. The index is written in groups of three digits, all but the
/// last prefixed with `x`; `.p/<width>` marks a partial tile.
fn tile_index(path: &str) -> Option<(u64, Option<u64>)> {
    let (path, width) = match path.split_once(".p/") {
        None => (path, None),
        Some((path, width)) => {
            // A full tile has no width in its path, so a partial one is narrower (C2SP tlog-tiles).
            let width = width
                .parse()
                .ok()
                .filter(|width| (1..TILE).contains(width))?;
            (path, Some(width))
        }
    };

    let mut elements: Vec<&str> = path.split('/').collect();
    let last = elements.pop()?;
    let mut index: u64 = 0;
    // Only one spelling of an index is accepted, because caches key by the path.
    for element in elements
        .iter()
        .map(|element| element.strip_prefix('x'))
        .chain([Some(last)])
    {
        let digits = element?;
        let three = digits.len() == 3 && digits.bytes().all(|digit| digit.is_ascii_digit());
        let value: u64 = digits.parse().ok().filter(|_| three)?;
        // A path of any length can come from a stranger, so the number must not overflow.
        index = index.checked_mul(1000)?.checked_add(value)?;
    }

    Some((index, width))
}

#[cfg(test)]
mod tests {
    use super::tile_index;

    #[test]
    fn tile_paths_match_the_specification() {
        assert_eq!(tile_index("000"), Some((0, None)));
        assert_eq!(tile_index("x001/x234/067"), Some((1_234_067, None)));
        assert_eq!(tile_index("x001/234.p/17"), Some((1_234, Some(17))));

        for wrong in [
            "",
            "0",
            "x000",
            "001/002",
            "x1/000",
            "000.p/256",
            "000.p/0",
            "000.p/",
            "-01",
        ] {
            assert_eq!(tile_index(wrong), None, "{wrong}");
        }
    }
}
