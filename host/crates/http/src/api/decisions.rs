//! Decisions of rules as data, for web-app users with the role `admin` or `compliance`.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use super::components::ComponentOfficer;
use crate::error::HttpError;
use crate::middleware::extract::{ValidQuery, page_and_limit};
use crate::reply::{FileReply, JsonLinesOrParquet};
use holdfast_platform::components::decisions::{self, ExportFormat, ExportOptions};
use holdfast_service::App;

/// Decisions of a page, unless another number is asked for.
const PAGE: i64 = 1_000;
/// Most decisions of a page.
const MOST: i64 = 10_000;

/// Query of `GET /decisions`.
#[derive(Deserialize, JsonSchema)]
pub struct DecisionsQuery {
    /// `jsonl` when absent: lines of the types `decision`, `block` and `head`. In `parquet`, blocks and head are in
    /// the metadata of the file.
    format: Option<ExportFormat>,
    /// Number of the last block that you have; the first page begins with block 1.
    #[schemars(range(min = 0))]
    after: Option<u32>,
    /// The page ends with the block of this many decisions; 1,000 when absent.
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<i64>,
    /// Names of members, and of named values such as `metadata.vin`, that are left out of parameters and answers;
    /// separated by commas.
    #[schemars(length(max = 1000))]
    mask: Option<String>,
}

/// Decisions get here within about a minute. `Link` has the address of the next page, if there is one; the export
/// can be continued later after its last block. `holdfast-verify --decisions` checks that none is left out.
pub async fn export(
    State(app): State<App>,
    officer: ComponentOfficer,
    ValidQuery(query): ValidQuery<DecisionsQuery>,
) -> Result<FileReply<JsonLinesOrParquet>, HttpError> {
    let format = query.format.unwrap_or(ExportFormat::JsonLines);
    // Pages end with whole blocks, because the proof of completeness is about blocks.
    let (_, limit) = page_and_limit(None, query.limit, PAGE, MOST)?;
    let names = query.mask.unwrap_or_default();
    let options = ExportOptions {
        format,
        after: query.after.map_or(0, i64::from),
        limit: limit.unsigned_abs(),
        mask: decisions::mask_of(&names),
    };
    let page = decisions::export(&app, &officer.caller.org, options).await?;
    let reply = FileReply::named_as(
        format.content_type(),
        &format!("decisions.{format}"),
        page.file,
    );

    let after = page.last;
    Ok(if page.has_more {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        // The link repeats every parameter, so the next page has the same form and the same mask.
        query.append_pair("format", format.as_str());
        query.append_pair("after", &after.to_string());
        query.append_pair("limit", &limit.to_string());
        query.append_pair("mask", &names);
        reply.with_next(&format!("?{}", query.finish()))
    } else {
        reply
    })
}
