//! Success answers in the shape of the API contract: `{data}` and `{data, meta}`.
//!
//! An answer's type determines its status and `data`, and documents both.

use std::marker::PhantomData;
use std::sync::Arc;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as Documented, StatusCode as Status};
use axum::Json;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::{JsonSchema, Schema, json_schema};
use serde::Serialize;
use serde_json::{Value, json};

use super::error::HttpError;
use super::openapi::content;
use holdfast_adapters::files::{FilesError, SpoolWriter, SpooledFile};
use holdfast_domain::warning::Warning;
use holdfast_platform::ServiceError;
use holdfast_service::App;

/// `{ data: T }` with a status; if `WARNS`, with `warnings` beside it when there are any.
pub struct DataReply<const STATUS: u16, T, const WARNS: bool = false> {
    response: Response,
    shown: PhantomData<fn() -> T>,
}

/// 200 with `{ data }`.
pub type Found<T> = DataReply<200, T>;
/// 202 with `{ data }`.
pub type Accepted<T> = DataReply<202, T>;
/// 201 with `{ data }`.
pub type Created<T> = DataReply<201, T>;
/// 200 with `{ data, warnings? }`.
pub type FoundWithWarnings<T> = DataReply<200, T, true>;
/// 201 with `{ data, warnings? }`.
pub type CreatedWithWarnings<T> = DataReply<201, T, true>;

/// Returns the body of an answer.
pub fn body(data: &impl Serialize, warnings: &[Warning]) -> Value {
    let mut body = json!({ "data": data });
    if !warnings.is_empty() {
        body["warnings"] = json!(warnings);
    }
    body
}

impl<const STATUS: u16, T: Serialize> DataReply<STATUS, T> {
    /// Builds an answer with `data`.
    pub fn new(data: &T) -> Self {
        Self::raw(Json(body(data, &[])).into_response())
    }
}

impl<const STATUS: u16, T: Serialize> DataReply<STATUS, T, true> {
    /// Builds an answer with `data` and warnings about the request.
    pub fn with_warnings(data: &T, warnings: &[Warning]) -> Self {
        Self::raw(Json(body(data, warnings)).into_response())
    }
}

impl<const STATUS: u16, T, const WARNS: bool> DataReply<STATUS, T, WARNS> {
    /// Wraps a finished response, for example a replayed one.
    pub fn raw(mut response: Response) -> Self {
        // A replayed error keeps its own status.
        if response.status() == StatusCode::OK {
            *response.status_mut() = StatusCode::from_u16(STATUS).unwrap_or_default();
        }
        Self {
            response,
            shown: PhantomData,
        }
    }
}

impl<const STATUS: u16, T, const WARNS: bool> IntoResponse for DataReply<STATUS, T, WARNS> {
    fn into_response(self) -> Response {
        self.response
    }
}

impl<const STATUS: u16, T: JsonSchema, const WARNS: bool> OperationOutput
    for DataReply<STATUS, T, WARNS>
{
    type Inner = T;

    fn operation_response(context: &mut GenContext, _: &mut Operation) -> Option<Documented> {
        let (data, example) = schema_and_example::<T>(context);
        let mut properties = json!({ "data": data });
        if WARNS {
            let warning = context.schema.subschema_for::<Warning>();
            properties["warnings"] = json!({ "type": "array", "items": warning });
        }

        let schema = json_schema!({
            "type": "object",
            "required": ["data"],
            "properties": properties,
        });

        let example = example.map(|data| json!({ "data": data }));
        Some(documented(schema, example))
    }

    fn inferred_responses(
        context: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<Status>, Documented)> {
        with_status(STATUS, Self::operation_response(context, operation))
    }
}

/// 200 with `{ data: [T], meta }`.
pub struct ListReply<T, K = EitherList> {
    response: Response,
    shown: PhantomData<fn() -> (T, K)>,
}

/// 200 with `{ data: [T], meta: { page, limit, total } }`.
pub type PageReply<T> = ListReply<T, NumberedPages>;
/// 200 with `{ data: [T], meta: { limit, has_more } }`, for a list without a total. The next page begins
/// behind the last item.
pub type CursorReply<T> = ListReply<T, PagesBehind>;

/// How the pages of a list follow each other.
pub trait ListKind {
    /// Returns the names of the members that `meta` always has, their schemas, and an example.
    fn meta() -> (&'static [&'static str], Value, Value);
}

/// Pages with numbers.
pub struct NumberedPages;

impl ListKind for NumberedPages {
    fn meta() -> (&'static [&'static str], Value, Value) {
        let count = json!({ "type": "integer", "minimum": 0 });
        let meta = json!({ "page": count, "limit": count, "total": count });
        let example = json!({ "page": 1, "limit": 20, "total": 1 });
        (&["page", "limit", "total"], meta, example)
    }
}

/// Pages behind an item.
pub struct PagesBehind;

impl ListKind for PagesBehind {
    fn meta() -> (&'static [&'static str], Value, Value) {
        let limit = json!({ "type": "integer", "minimum": 1 });
        let meta = json!({ "limit": limit, "has_more": { "type": "boolean" } });
        let example = json!({ "limit": 20, "has_more": false });
        (&["limit", "has_more"], meta, example)
    }
}

/// Pages of either kind, as the caller asks for them.
pub struct EitherList;

impl ListKind for EitherList {
    fn meta() -> (&'static [&'static str], Value, Value) {
        let count = |text: &str| json!({ "type": "integer", "minimum": 0, "description": text });
        let meta = json!({
            "limit": count("Most items of a page."),
            "page": count("Number of the page; absent behind starting_after."),
            "total": count("Items of all pages; absent behind starting_after."),
            "has_more": {
                "type": "boolean", "description": "Whether more items follow; only behind starting_after.",
            },
        });

        // Only `limit` is in both kinds of answers, so only it is required.
        let example = json!({ "page": 1, "limit": 20, "total": 1 });
        (&["limit"], meta, example)
    }
}

impl<T: Serialize> PageReply<T> {
    /// Builds one page of a list of `total` items.
    pub fn new(data: &[T], page: i64, limit: i64, total: i64) -> Self {
        let meta = json!({ "page": page, "limit": limit, "total": total });
        Self::of(Json(json!({ "data": data, "meta": meta })).into_response())
    }

    /// Builds one page of a list with all its items.
    pub fn part_of(all: &[T], page: i64, limit: i64) -> Self {
        let skip = usize::try_from((page - 1).saturating_mul(limit)).unwrap_or(usize::MAX);
        let size = usize::try_from(limit).unwrap_or(usize::MAX);
        let from = skip.min(all.len());
        let to = from.saturating_add(size).min(all.len());
        let shown = all.get(from..to).unwrap_or_default();
        let total = i64::try_from(all.len()).unwrap_or(i64::MAX);
        Self::new(shown, page, limit, total)
    }
}

impl<T: Serialize> CursorReply<T> {
    /// Builds one page of up to `limit` items. `found` has one item more if there is another page.
    pub fn new(mut found: Vec<T>, limit: i64) -> Self {
        // The service reads one item more than shown, which costs less than counting all.
        let limit = usize::try_from(limit).unwrap_or_default();
        let has_more = found.len() > limit;
        found.truncate(limit);
        let meta = json!({ "limit": limit, "has_more": has_more });
        Self::of(Json(json!({ "data": found, "meta": meta })).into_response())
    }
}

impl<T, K> ListReply<T, K> {
    fn of(response: Response) -> Self {
        Self {
            response,
            shown: PhantomData,
        }
    }

    /// Returns the answer of an operation that has both kinds of pages.
    pub fn either(self) -> ListReply<T> {
        ListReply::of(self.response)
    }
}

impl<T, K> IntoResponse for ListReply<T, K> {
    fn into_response(self) -> Response {
        self.response
    }
}

impl<T: JsonSchema, K: ListKind> OperationOutput for ListReply<T, K> {
    type Inner = T;

    fn operation_response(context: &mut GenContext, _: &mut Operation) -> Option<Documented> {
        let (item, example) = schema_and_example::<T>(context);
        let (required, meta, meta_example) = K::meta();
        let schema = json_schema!({
            "type": "object",
            "required": ["data", "meta"],
            "properties": {
                "data": { "type": "array", "items": item },
                "meta": { "type": "object", "required": required, "properties": meta },
            },
        });

        let example = example.map(|item| json!({ "data": [item], "meta": meta_example }));
        Some(documented(schema, example))
    }

    fn inferred_responses(
        context: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<Status>, Documented)> {
        with_status(200, Self::operation_response(context, operation))
    }
}

/// Returns the schema of `T` and its first example; that of a list is one of its items.
pub fn schema_and_example<T: JsonSchema>(context: &mut GenContext) -> (Schema, Option<Value>) {
    let schema = context.schema.subschema_for::<T>();
    // A list's schema has no example of its own, and its items have.
    let first = |schema: &Schema| schema.get("examples").and_then(|all| all.get(0)).cloned();
    let resolved = context.resolve_schema(&schema);
    let of_item = || {
        let item = Schema::try_from(resolved.get("items")?.clone()).ok()?;
        Some(json!([first(context.resolve_schema(&item))?]))
    };
    let example = first(resolved).or_else(of_item);

    (schema, example)
}

fn documented(schema: Schema, example: Option<Value>) -> Documented {
    Documented {
        description: "Done".into(),
        content: content("application/json", schema, example),
        ..Documented::default()
    }
}

/// Documents an answer that always has one status.
fn with_status(status: u16, response: Option<Documented>) -> Vec<(Option<Status>, Documented)> {
    let response = response.map(|response| (Some(Status::Code(status)), response));
    response.into_iter().collect()
}

/// Media types of a [`FileReply`].
pub trait FileKind {
    const TYPES: &'static [&'static str];
}

macro_rules! file_kinds {
    ($($(#[$doc:meta])* $name:ident: [$($type:literal),*];)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl FileKind for $name {
            const TYPES: &'static [&'static str] = &[$($type),*];
        }
    )*};
}

file_kinds! {
    /// An archive.
    Zip: ["application/zip"];
    /// A WebAssembly component.
    Wasm: ["application/wasm"];
    /// A document.
    Pdf: ["application/pdf"];
    /// A document, or a certificate.
    PdfOrJson: ["application/pdf", "application/json"];
    /// A document or a picture.
    PdfOrPicture: ["application/pdf", "image/png", "image/jpeg"];
    /// A drawing.
    Svg: ["image/svg+xml"];
    /// A picture.
    Png: ["image/png"];
    /// A report, as a table, JSON or a document.
    CsvOrJsonOrPdf: ["text/csv", "application/json", "application/pdf"];
    /// A table.
    Csv: ["text/csv"];
    /// A table, as CSV or JSON Lines.
    CsvOrJsonLines: ["text/csv", "application/jsonl"];
    /// Records, as JSON Lines or Apache Parquet.
    JsonLinesOrParquet: ["application/jsonl", "application/vnd.apache.parquet"];
}

/// 200 with a file.
pub struct FileReply<K: FileKind>(Response, PhantomData<K>);

impl<K: FileKind> FileReply<K> {
    pub fn new(response: Response) -> Self {
        Self(response, PhantomData)
    }

    /// Sends a file to be saved under `name`.
    pub fn named(name: &str, file: SpooledFile) -> Self {
        Self::named_as(K::TYPES[0], name, file)
    }

    /// Sends a file with one of the media types.
    pub fn named_as(content_type: &str, name: &str, file: SpooledFile) -> Self {
        Self::new(attachment(content_type, name, file))
    }

    /// Adds a link to the next page (RFC 8288).
    pub fn with_next(mut self, address: &str) -> Self {
        // An address that is no header value is left out: the caller can still continue after its last block.
        if let Ok(link) = HeaderValue::from_str(&format!("<{address}>; rel=\"next\"")) {
            self.0.headers_mut().insert(header::LINK, link);
        }
        self
    }

    /// Sends bytes to be saved under `name`. They wait on disk, so a slow client holds no memory.
    pub async fn of_bytes(app: &App, name: &str, bytes: &[u8]) -> Result<Self, HttpError> {
        Self::of_type(app, K::TYPES[0], name, bytes).await
    }

    /// Like [`FileReply::of_bytes`], with one of the media types.
    pub async fn of_type(
        app: &App,
        content_type: &str,
        name: &str,
        bytes: &[u8],
    ) -> Result<Self, HttpError> {
        let lost = |error| HttpError::from(ServiceError::from(FilesError::Spool(error)));
        let mut spool = SpoolWriter::new(&app.config.spool_folder())
            .await
            .map_err(lost)?;
        spool.write(bytes).await.map_err(lost)?;
        let file = spool.finish().await.map_err(lost)?;
        Ok(Self::new(attachment(content_type, name, file)))
    }
}

/// Sends a file to be saved under `name`. It is streamed from disk, so a slow client holds a file
/// open and no memory.
fn attachment(kind: &str, name: &str, file: SpooledFile) -> Response {
    // The stream keeps the file open. It has no name on the disk, so it is gone with the answer.
    let file = Arc::new(file);
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_LENGTH, file.size().to_string()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}\""),
        ),
    ];

    (headers, Body::from_stream(file.pieces())).into_response()
}

/// Documents a file of one of these media types.
fn file(types: &[&str]) -> Documented {
    let content = types
        .iter()
        .map(|name| ((*name).to_owned(), MediaType::default()))
        .collect();
    Documented {
        description: format!("The file, with {}", header::CONTENT_DISPOSITION),
        content,
        ..Documented::default()
    }
}

impl<K: FileKind> IntoResponse for FileReply<K> {
    fn into_response(self) -> Response {
        self.0
    }
}

impl<K: FileKind> OperationOutput for FileReply<K> {
    type Inner = ();

    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<Status>, Documented)> {
        with_status(200, Some(file(K::TYPES)))
    }
}
